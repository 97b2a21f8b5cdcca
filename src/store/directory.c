/* directory.c — see directory.h. */
#include "store/directory.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The lock is the process's own: it goes when the process goes, however it ends. (A lock of the
 * open file would live on in a child that a killed server had just forked.) */
int directory_lock(const char *directory, int *out_fd, struct err *err)
{
    assert(directory && out_fd);
    cleanup_free char *path = mem_alloc(strlen(directory) + sizeof "/lock");
    cleanup_close int fd = -1;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char text[32] = "";
    sprintf(path, "%s/lock", directory);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, errno, "open %s", path);
    ssize_t length;
    if (fcntl(fd, F_SETLK, &whole) < 0) {
        if (errno != EAGAIN && errno != EACCES)
            return err_errno(err, errno, "lock %s", path);
        length = pread(fd, text, sizeof text - 1, 0);
        if (length > 0 && strchr(text, '\n'))
            *strchr(text, '\n') = '\0';
        return err_fail(err, ERR_CONFLICT, "", "%s is in use by another skepd (process %s)",
                        directory, length > 0 ? text : "unknown");
    }
    length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* the number is only for the message above, and no reason not to start on a full disk; what is
     * written first takes the room of the number before */
    if (pwrite(fd, text, (size_t)length, 0) == length && ftruncate(fd, length) < 0)
        return err_errno(err, errno, "truncate %s", path);
    *out_fd = fd_steal(&fd);
    return 0;
}
