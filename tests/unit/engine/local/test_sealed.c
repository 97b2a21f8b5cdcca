/* A sealed copy of skep-init cannot be written. */
#include "folder.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/sealed.h"
#include "sys/file.h"

static void test_sealed(void **state)
{
    (void)state;
    struct err err = {0};
    if (access("/sys/fs/selinux/enforce", F_OK) == 0) { /* refused, as the header says */
        assert_int_equal(sealed_make("/bin/true", in_folder("copy"), &err), ERR_UNSUPPORTED);
        return;
    }
    folder_put("copy", "what a killed server left\n");
    folder_put("good", "#!/bin/sh\necho \"$1\" > \"$(dirname \"$0\")/asked\"\n");
    assert_int_equal(chmod(in_folder("good"), 0755), 0);
    int fd = sealed_make(in_folder("good"), in_folder("copy"), &err);
    assert_true(fd >= 0);
    struct buf asked = BUF_INIT;
    assert_int_equal(file_read(in_folder("asked"), 100, &asked, &err), 0);
    assert_string_equal(buf_cstr(&asked), "--version\n");
    buf_release(&asked);
    int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    assert_int_equal(fcntl(fd, F_GET_SEALS), seals);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    int write_fd = open(in_folder("copy"), O_RDWR | O_CLOEXEC);
    assert_true(write_fd < 0 || write(write_fd, "x", 1) < 0);
    if (write_fd >= 0)
        close(write_fd);
    close(fd);
    assert_int_equal(access(in_folder("copy"), X_OK), -1);
}

static void test_sealed_refused(void **state)
{
    (void)state;
    struct err err = {0};
    struct stat stat;
    folder_put("bad", "#!/bin/sh\nexit 3\n");
    assert_int_equal(chmod(in_folder("bad"), 0755), 0);
    assert_int_equal(sealed_make(in_folder("bad"), in_folder("no-copy"), &err), ERR_UNSUPPORTED);
    assert_int_equal(lstat(in_folder("no-copy"), &stat), -1);
    folder_put("huge", "");
    assert_int_equal(truncate(in_folder("huge"), SEALED_BYTES_MAX + 1), 0);
    assert_true(sealed_make(in_folder("huge"), in_folder("no-copy"), &err) < 0);
    assert_true(sealed_make(in_folder("missing"), in_folder("no-copy"), &err) < 0);
    assert_int_equal(lstat(in_folder("no-copy"), &stat), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sealed),
    cmocka_unit_test(test_sealed_refused),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
