/* The configuration's storages: each is named once, and none lies in another. */
#include "folder.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "doc/doc.h"
#include "doc/problem.h"
#include "server/config.h"
#include "server/config_storages.h"
#include "sys/file.h"

static int read_config(const char *text, struct server_config **config, struct buf *report,
                       struct err *err)
{
    char path[100];

    snprintf(path, sizeof path, "%s/c.yaml", in_folder(""));
    assert_int_equal(file_write(path, text_of(text), 0600, err), 0);
    return server_config_read(path, config, report, err);
}

static void storages_are_named_once(void **state)
{
    static const char GOOD[] =
        "storages:\n- {name: corpus, directory: /srv/c, claim: corpus.v2, readOnly: true}\n"
        "- {name: home, directory: /srv/h, share: false, type: nfs, "
        "server: nfs.lab, path: /x, rootSquash: true}\n";
    struct server_config *config, *other;
    struct buf report = BUF_INIT, keys = BUF_INIT;
    struct err err;
    (void)state;

    assert_int_equal(read_config(GOOD, &config, &report, &err), 0);
    assert_int_equal(config->storages.count, 2);
    assert_true(config->storages.items[0].is_shared && config->storages.items[0].is_read_only);
    assert_string_equal(config->storages.items[0].claim, "corpus.v2");
    assert_string_equal(config->storages.items[0].type, "directory");
    assert_false(config->storages.items[1].is_shared || config->storages.items[1].is_read_only);
    assert_string_equal(config->storages.items[1].server, "nfs.lab");
    assert_false(config->storages.items[0].is_root_squashed);
    assert_true(config->storages.items[1].is_root_squashed);
    assert_int_equal(read_config("# none\n", &other, &report, &err), 0);
    server_config_compare(config, other, &keys);
    assert_string_equal(buf_cstr(&keys), ""); /* a reload takes effect */
    buf_clear(&keys);
    server_config_compare(config, config, &keys);
    assert_string_equal(buf_cstr(&keys), "");
    server_config_free(config);
    server_config_free(other);
    assert_int_equal(
        read_config("storages:\n- {name: a, directory: /x}\n- {name: a, directory: y}\n", &config,
                    &report, &err),
        ERR_INVALID);
    assert_non_null(strstr(buf_cstr(&report), "storage 1 is called a as well"));
    assert_non_null(strstr(buf_cstr(&report), "must begin with /"));
    assert_int_equal(read_config("storages: [{name: a}]\n", &config, &report, &err), ERR_INVALID);
    assert_non_null(strstr(buf_cstr(&report), "a has neither a directory nor a claim"));
    assert_int_equal(read_config("storages: [{name: a, claim: Data_1}]\n", &config, &report, &err),
                     ERR_INVALID);
    assert_int_equal(read_config("storages: [{name: a, claim: d}]\n", &config, &report, &err), 0);
    server_config_free(config);
    assert_int_equal(
        read_config("storages: [{name: a/b, directory: /x}]\n", &config, &report, &err),
        ERR_INVALID);
    buf_release(&report);
    buf_release(&keys);
}

/* Of two storages, in this order, what is said; "" nothing. Each % is the test's folder. */
static void two_say(const char *first, const char *second, const char *says)
{
    struct server_config *config;
    struct buf text = BUF_INIT, report = BUF_INIT, wanted = BUF_INIT;
    struct err err;

    buf_format(&text, "dataDirectory: %s/data\nstorages:\n- {name: a, directory: %s%s}\n",
               in_folder(""), in_folder(""), first);
    buf_format(&text, "- {name: b, directory: %s%s}\n", in_folder(""), second);
    for (; *says; says++)
        if (*says == '%')
            buf_string(&wanted, in_folder(""));
        else
            buf_char(&wanted, *says);
    const int code = read_config(buf_cstr(&text), &config, &report, &err);
    if (!strstr(buf_cstr(&report), buf_cstr(&wanted)))
        fail_msg("%s%s: %s", buf_cstr(&text), buf_cstr(&wanted), buf_cstr(&report));
    assert_int_equal(code, wanted.length > 0 ? ERR_INVALID : 0);
    if (code == 0) {
        assert_int_equal(report.length, 0);
        server_config_free(config);
    }
    buf_release(&text);
    buf_release(&report);
    buf_release(&wanted);
}

static void link_make(const char *target, const char *name)
{
    assert_int_equal(symlink(target, in_folder(name)), 0);
}

/* Who writes in the outer one could replace the inner one's folder before it is mounted. */
static void no_storage_lies_in_another(void **state)
{
    (void)state;

    two_say("/outer", "/outside", "");
    two_say("/outer", "/outer/inner",
            "c.yaml:4:3: storages.directory: storage b, %/outer/inner, lies in storage a, %/outer: "
            "who writes there could put a link in its place");
    two_say("/outer/x/y/", "/outer",
            "c.yaml:4:3: storages.directory: storage a, %/outer/x/y/, lies in storage b, %/outer");
    two_say("/outer/", "/other/.././outer//", "");
    two_say("/outer, readOnly: true", "/outer/inner", "");
    two_say("/outer", "/outer/inner, readOnly: true", "storage b, %/outer/inner, lies in ");
    two_say("/outer", "/outer/../other", "");
    two_say("/outer", "/../../../../../../..", "storage a, %/outer, lies in storage b, ");
}

/* By what the links lead to now, and by where they stand. */
static void no_link_hides_where_a_storage_lies(void **state)
{
    (void)state;

    folder_put("real/outer/inner/file", "");
    folder_put("real/else/file", "");
    link_make("real/outer", "alias");
    link_make(in_folder("real/outer/inner"), "deep");
    link_make("../else", "real/outer/out"); /* as a user may have made it */
    link_make("alias/out/..", "through");
    link_make("round", "round");
    two_say("/alias", "/real/else", "");
    two_say("/alias", "/real/outer/inner", "storage b, %/real/outer/inner, lies in storage a");
    two_say("/real/outer", "/alias/inner", "storage b, %/alias/inner, lies in storage a");
    two_say("/deep", "/alias", "storage a, %/deep, lies in storage b, %/alias");
    two_say("/deep", "/alias/inner", "");
    two_say("/real/outer", "/real/outer/out/../outer",
            "storage b, %/real/outer/out/../outer, lies in storage a");
    two_say("/alias", "/real/outer/out", "storage b, %/real/outer/out, lies in storage a");
    two_say("/through/else", "/real/outer", "storage a, %/through/else, lies in storage b");
    two_say("/real/else", "/through", "storage a, %/real/else, lies in storage b, %/through");
    two_say("/round/x", "/real/else", "");
}

/* Jobs of format 1 write there. */
static void no_storage_lies_in_the_files_of_format_1(void **state)
{
    struct server_config *config;
    struct buf report = BUF_INIT;
    struct err err;
    (void)state;

    two_say("/other", "/data/files/x", "storage b, %/data/files/x, lies in filesDirectory, %/data");
    two_say("/data/files", "/other", "storage a, %/data/files, lies in filesDirectory, %/data/");
    assert_int_equal(read_config("filesDirectory: /srv/all/v1\n"
                                 "storages: [{name: all, directory: /srv/all}]\n",
                                 &config, &report, &err),
                     ERR_INVALID);
    assert_non_null(strstr(buf_cstr(&report),
                           "filesDirectory, /srv/all/v1, lies in storage all, /srv/all: who"));
    buf_clear(&report);
    assert_int_equal(read_config("filesDirectory: /srv/v1\n"
                                 "storages: [{name: all, directory: /srv/all}, "
                                 "{name: claimed, claim: srv}]\n",
                                 &config, &report, &err),
                     0);
    server_config_free(config);
    buf_release(&report);
}

/* A file system that nobody serves: what is looked up in it hangs until `device` is closed. */
static bool silent_disk_mount(const char *folder, int *device)
{
    char options[100];

    *device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (*device < 0)
        return false;
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", *device);
    if (mount("nothing", folder, "fuse", MS_NODEV | MS_NOSUID, options) == 0)
        return true;
    close(*device);
    return false;
}

/* Names are compared all the same. */
static void a_disk_that_hangs_is_not_waited_for(void **state)
{
    struct server_config config = {.data_directory = "/d", .files_directory = ""};
    struct buf text = BUF_INIT, report = BUF_INIT;
    struct problems problems;
    int device;
    (void)state;

    folder_put("silent/file", "");
    if (!silent_disk_mount(in_folder("silent"), &device))
        skip();
    arena_init(&config.arena);
    problems_init(&problems, &config.arena);
    buf_format(&text, "storages:\n- {name: a, directory: %s/silent/a}\n", in_folder(""));
    buf_format(&text, "- {name: b, directory: %s/silent/a/b}\n", in_folder(""));
    const struct doc *doc = doc_parse(buf_as_text(&text), DOC_YAML, &config.arena, &problems);
    config_storages_read(&config, doc);
    config_storages_check(&config, doc, 1, &problems);
    problems_print(&problems, "c", &report);
    assert_int_equal(problems.error_count, 1);
    assert_non_null(strstr(buf_cstr(&report), "c:2:3: warning: storages: a disk does not answer"));
    assert_non_null(strstr(buf_cstr(&report), "/silent/a/b, lies in storage a, "));
    close(device);
    assert_int_equal(umount2(in_folder("silent"), MNT_DETACH), 0);
    problems_release(&problems);
    arena_release(&config.arena);
    buf_release(&text);
    buf_release(&report);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(storages_are_named_once),
    cmocka_unit_test(no_storage_lies_in_another),
    cmocka_unit_test(no_link_hides_where_a_storage_lies),
    cmocka_unit_test(no_storage_lies_in_the_files_of_format_1),
    cmocka_unit_test(a_disk_that_hangs_is_not_waited_for),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
