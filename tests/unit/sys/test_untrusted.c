/* Files at names that somebody else controls: read when they are plain, refused unopened else. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "sys/file.h"
#include "sys/untrusted.h"
/* cmocka wants these first */
#include "base/buf.h"

enum { LIMIT = 1000 };

static char folder[64];

static const char *place(const char *name)
{
    static char paths[4][160];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    struct err err = {0};
    assert_int_equal(file_write(place(name), text_of(text), 0644, &err), 0);
}

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/skep-test-untrusted-XXXXXX");
    return mkdtemp(folder) && mkdir(place("below"), 0755) == 0 && mkdir(place("etc"), 0755) == 0
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void assert_read(const char *name, enum untrusted_links links, const char *wanted)
{
    struct buf out = BUF_INIT;
    struct err err = {0};
    buf_string(&out, ">");
    if (untrusted_read(folder, name, links, LIMIT, &out, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    assert_string_equal(buf_cstr(&out) + 1, wanted);
    buf_release(&out);
}

static void assert_refused(const char *name, enum untrusted_links links, int code)
{
    struct buf out = BUF_INIT;
    struct err err = {0};
    buf_string(&out, "before");
    assert_int_equal(untrusted_read(folder, name, links, LIMIT, &out, &err), code);
    assert_string_equal(buf_cstr(&out), "before");
    assert_non_null(strstr(err.text, name));
    buf_release(&out);
}

static void test_plain(void **state)
{
    (void)state;
    put("plain", "text");
    put("below/plain", "deeper");
    assert_read("plain", UNTRUSTED_NO_LINKS, "text");
    assert_read("below/plain", UNTRUSTED_NO_LINKS, "deeper");
    assert_int_equal(link(place("plain"), place("second")), 0); /* another name of a plain file */
    assert_read("second", UNTRUSTED_NO_LINKS, "text");
    assert_refused("nothing", UNTRUSTED_NO_LINKS, ERR_NOT_FOUND);
    assert_refused("plain/below", UNTRUSTED_NO_LINKS, ERR_NOT_FOUND);
    assert_refused("../../etc/passwd", UNTRUSTED_NO_LINKS, ERR_NOT_FOUND);
    assert_int_equal(untrusted_read(place("no"), "x", UNTRUSTED_NO_LINKS, LIMIT, NULL, NULL),
                     ERR_NOT_FOUND);
}

static void test_links(void **state)
{
    (void)state;
    put("etc/passwd", "root");
    assert_int_equal(symlink("/etc/passwd", place("link")), 0);
    assert_int_equal(symlink("etc", place("other")), 0);
    assert_int_equal(symlink("/proc/self/mem", place("magic")), 0);
    assert_refused("link", UNTRUSTED_NO_LINKS, ERR_NOT_FOUND);
    assert_refused("other/passwd", UNTRUSTED_NO_LINKS, ERR_NOT_FOUND);
    assert_read("link", UNTRUSTED_IN_ROOT, "root"); /* within the folder, not the machine's */
    assert_read("/other/../link", UNTRUSTED_IN_ROOT, "root");
    assert_refused("magic", UNTRUSTED_IN_ROOT, ERR_NOT_FOUND);
    assert_refused("/../../../proc/version", UNTRUSTED_IN_ROOT, ERR_NOT_FOUND);
}

static void test_huge(void **state)
{
    (void)state;
    put("huge", "");
    put("growing", "");
    assert_int_equal(truncate(place("huge"), (off_t)1 << 40), 0);
    assert_refused("huge", UNTRUSTED_NO_LINKS, ERR_TOO_BIG);
    assert_int_equal(truncate(place("growing"), LIMIT + 1), 0);
    assert_refused("growing", UNTRUSTED_NO_LINKS, ERR_TOO_BIG);
}

static void test_no_files(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(place("pipe"), 0666), 0);
    assert_refused("pipe", UNTRUSTED_NO_LINKS, ERR_INVALID);
    assert_refused("pipe", UNTRUSTED_IN_ROOT, ERR_INVALID);
    assert_refused("below", UNTRUSTED_NO_LINKS, ERR_INVALID);
}

/* A node of no driver: had it been opened, the error would be that there is no such device. */
static void test_device(void **state)
{
    (void)state;
    if (mknod(place("device"), S_IFCHR | 0666, makedev(240, 77)) < 0)
        skip();
    assert_refused("device", UNTRUSTED_NO_LINKS, ERR_INVALID);
    assert_refused("device", UNTRUSTED_IN_ROOT, ERR_INVALID);
}

static void test_put(void **state)
{
    (void)state;
    struct err err = {0};
    put("victim", "untouched");
    assert_int_equal(symlink("victim", place("reason")), 0);
    assert_int_equal(symlink("victim", place(".reason~")), 0);
    const mode_t before = umask(077); /* the server's own */
    assert_int_equal(untrusted_put(folder, "reason", TEXT("why"), 0644, &err), 0);
    umask(before);
    struct stat written;
    assert_int_equal(stat(place("reason"), &written), 0);
    assert_int_equal(written.st_mode & 07777, 0644);
    assert_read("reason", UNTRUSTED_NO_LINKS, "why");
    assert_read("victim", UNTRUSTED_NO_LINKS, "untouched");
    assert_int_equal(mkdir(place(".reason~"), 0755), 0);
    assert_true(untrusted_put(folder, "reason", TEXT("again"), 0644, &err) < 0);
    assert_read("reason", UNTRUSTED_NO_LINKS, "why");
    assert_int_equal(untrusted_put(place("no"), "x", TEXT(""), 0644, &err), ERR_NOT_FOUND);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_plain),    cmocka_unit_test(test_links),  cmocka_unit_test(test_huge),
    cmocka_unit_test(test_no_files), cmocka_unit_test(test_device), cmocka_unit_test(test_put),
};
UNIT_FILE(tests, setup, teardown);
