#include "sys/userns.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/child.h"
#include "sys/cleanup.h"
#include "sys/process.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>

/* Only there so that the namespace is; it shares our memory and is killed before we go on. */
CHILD_ONLY static int child_wait(void *context)
{
    const pid_t parent = *(const pid_t *)context;
    syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L);
    while (syscall(SYS_getppid) == parent)
        syscall(SYS_ppoll, NULL, 0L, NULL, NULL, 0L); /* no signal comes but SIGKILL */
    syscall(SYS_exit_group, 0);
    return 0;
}

static int child_start(char *stack, pid_t *parent)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid =
        __clone(child_wait, stack + CHILD_STACK_BYTES, CLONE_VM | CLONE_NEWUSER | SIGCHLD, parent);
    const int failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failure;
    return pid;
}

static int map_put(pid_t pid, const char *name, const struct userns_map *map, struct err *err)
{
    char path[64];
    cleanup_buf struct buf text = BUF_INIT;
    assert(map->count > 0 && map->count <= USERNS_EXTENTS_MAX);
    for (size_t i = 0; i < map->count; i++)
        buf_format(&text, "%u %u %u\n", map->extents[i].inside, map->extents[i].outside,
                   map->extents[i].count);
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text.at, text.length) != (ssize_t)text.length)
        return err_errno(err, errno, "write %s", path);
    return 0;
}

static int namespace_open(pid_t pid, const struct userns_map *users,
                          const struct userns_map *groups, struct err *err)
{
    char path[64];
    int code = map_put(pid, "uid_map", users, err);
    if (code == 0)
        code = map_put(pid, "gid_map", groups, err);
    if (code < 0)
        return code;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_errno(err, errno, "open %s", path) : fd;
}

int userns_make(const struct userns_map *users, const struct userns_map *groups, struct err *err)
{
    pid_t parent = getpid();
    char *stack = mmap(NULL, CHILD_STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return err_errno(err, errno, "reserve a stack");
    const pid_t pid = child_start(stack, &parent);
    int code;
    if (pid < 0 && (errno == EINVAL || errno == ENOSPC || errno == EUSERS || errno == EPERM))
        code = err_fail(err, ERR_UNSUPPORTED, "", "the kernel gives no user namespace: %s",
                        strerrordesc_np(errno));
    else if (pid < 0)
        code = err_errno(err, errno, "make a user namespace");
    else
        code = namespace_open(pid, users, groups, err);
    if (pid > 0) {
        int status;
        kill(pid, SIGKILL);
        process_wait(pid, &status, NULL);
    }
    munmap(stack, CHILD_STACK_BYTES);
    return code;
}

int userns_mount(const char *path, int userns_fd, bool is_recursive, struct err *err)
{
    const unsigned deep = is_recursive ? AT_RECURSIVE : 0;
    struct mount_attr attributes = {
        .attr_set = MOUNT_ATTR_IDMAP, .propagation = MS_PRIVATE, .userns_fd = (unsigned)userns_fd};
    cleanup_close int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | deep);
    if (fd < 0)
        return err_errno(err, errno, "open %s", path);
    if (mount_setattr(fd, "", AT_EMPTY_PATH | deep, &attributes, sizeof attributes) == 0)
        return fd_steal(&fd);
    if (errno == EINVAL || errno == ENOSYS || errno == EPERM)
        return err_fail(err, ERR_UNSUPPORTED, "", "%s cannot be mounted with other ids: %s", path,
                        strerrordesc_np(errno));
    return err_errno(err, errno, "mount %s with other ids", path);
}
