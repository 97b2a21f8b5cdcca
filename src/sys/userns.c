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
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>

/* Shared with the child, which runs in our memory until it is killed. */
struct namespace_child {
    pid_t parent;
    uint32_t owner;
    int ready; /* a byte is written here once the namespace is there */
    volatile int failure;
};

/* The owner is who asks for the namespace. Capabilities stay as they are: kernels may let nobody
 * else make one. */
CHILD_ONLY static bool owner_become(uint32_t owner)
{
    if (owner == 0)
        return true;
    const long dumpable = syscall(SYS_prctl, PR_GET_DUMPABLE, 0L, 0L, 0L, 0L);
    syscall(SYS_prctl, PR_SET_SECUREBITS, (unsigned long)SECBIT_NO_SETUID_FIXUP, 0L, 0L, 0L);
    if (syscall(SYS_setresuid, -1, owner, -1) < 0)
        return false;
    /* the kernel takes our memory for that of a set-user-id program now */
    return dumpable != 1 || syscall(SYS_prctl, PR_SET_DUMPABLE, 1L, 0L, 0L, 0L) == 0;
}

/* Only there so that the namespace is; it is killed before we go on. */
CHILD_ONLY static int child_wait(void *context)
{
    struct namespace_child *child = context;
    if (!owner_become(child->owner) || syscall(SYS_unshare, CLONE_NEWUSER) < 0) {
        child->failure = errno;
        syscall(SYS_exit_group, 127);
    }
    syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0L, 0L, 0L);
    syscall(SYS_write, child->ready, "", 1UL);
    while (syscall(SYS_getppid) == child->parent)
        syscall(SYS_ppoll, NULL, 0L, NULL, NULL, 0L); /* no signal comes but SIGKILL */
    syscall(SYS_exit_group, 0);
    return 0;
}

/* 0 once it has the namespace, or what failed. */
static int child_start(char *stack, struct namespace_child *child, pid_t *pid)
{
    int ends[2];
    char byte;
    sigset_t all, before;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    child->ready = ends[1];
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *pid = __clone(child_wait, stack + CHILD_STACK_BYTES, CLONE_VM | SIGCHLD, child);
    const int failure = *pid < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (!failure) /* a byte, or the end of a child that has failed */
        while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
            ;
    close(ends[0]);
    return failure ? failure : child->failure;
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

int userns_make(const struct userns_map *users, const struct userns_map *groups, uint32_t owner,
                struct err *err)
{
    struct namespace_child child = {.parent = getpid(), .owner = owner};
    char *stack = mmap(NULL, CHILD_STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return err_errno(err, errno, "reserve a stack");
    pid_t pid = -1;
    const int failure = child_start(stack, &child, &pid);
    int code;
    if (failure == EINVAL || failure == ENOSPC || failure == EUSERS || failure == EPERM)
        code = err_fail(err, ERR_UNSUPPORTED, "", "the kernel gives no user namespace: %s",
                        strerrordesc_np(failure));
    else if (failure)
        code = err_errno(err, failure, "make a user namespace");
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
