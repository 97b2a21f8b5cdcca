#include "engine/local/sealed.h"
#include "base/err.h"
#include "sys/cleanup.h"
#include "sys/process.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC /* of kernels that can forbid it; older ones refuse the flag */
#define MFD_EXEC 0x10U
#endif

enum {
    SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
    ANSWER_MS = 10000,
};

static int memory_open(void)
{
    int fd = memfd_create("crun", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    return fd < 0 && errno == EINVAL ? memfd_create("crun", MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

static int copy_fill(int copy, const char *program, struct err *err)
{
    cleanup_close int from = open(program, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    if (from < 0 || fstat(from, &stat) < 0)
        return err_errno(err, errno, "open %s", program);
    if (stat.st_size > SEALED_BYTES_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "%s is larger than %d MiB", program,
                        SEALED_BYTES_MAX >> 20);
    for (off_t at = 0; at < stat.st_size;) {
        ssize_t got = sendfile(copy, from, &at, (size_t)(stat.st_size - at));
        if (got <= 0)
            return err_errno(err, got < 0 ? errno : EIO, "copy %s", program);
    }
    if (fcntl(copy, F_ADD_SEALS, SEALS) < 0)
        return err_errno(err, errno, "seal the copy of %s", program);
    return 0;
}

static int copy_try(const char *program, const char *path, struct err *err)
{
    const char *argv[] = {path, "--version", NULL};
    struct process process = {.argv = argv, .in = -1, .out = -1, .err = -1};
    int exit_code = 0;
    int code = process_run(&process, ANSWER_MS, NULL, NULL, &exit_code, err);
    if (code == 0 && exit_code != 0)
        code = err_fail(err, ERR_UNSUPPORTED, "", "a copy of %s in memory ends with %d", program,
                        exit_code);
    return code;
}

int sealed_make(const char *program, const char *path, struct err *err)
{
    if (access("/sys/fs/selinux/enforce", F_OK) == 0)
        return err_fail(err, ERR_UNSUPPORTED, "", "SELinux knows %s by its file", program);
    cleanup_close int copy = memory_open();
    if (copy < 0)
        return err_errno(err, errno, "make a file in memory");
    int code = copy_fill(copy, program, err);
    if (code < 0)
        return code;
    char target[64];
    snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)getpid(), copy);
    unlink(path); /* of an earlier server that was killed */
    if (symlink(target, path) < 0)
        return err_errno(err, errno, "make the link %s", path);
    code = copy_try(program, path, err);
    if (code < 0) {
        unlink(path);
        return code;
    }
    return fd_steal(&copy);
}
