#include "engine/local/spawn.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/child.h"
#include "sys/process.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Shared with the child: until it executes conmon it runs in our memory, and we wait. */
struct conmon_child {
    const struct spawn *spawn;
    const char *volatile step;
    volatile int failure;
};

CHILD_ONLY static void pid_write(int fd)
{
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = '\n';
    for (unsigned long pid = (unsigned long)syscall(SYS_getpid); pid; pid /= 10)
        digits[--at] = (char)('0' + pid % 10);
    /* failing, the next start kills by control group instead */
    syscall(SYS_write, fd, digits + at, sizeof digits - at);
}

/* What a sysfs shows of networks is of the network namespace of who mounts it. */
CHILD_ONLY static const char *sys_mount(const struct spawn *spawn)
{
    int ours = -1;
    if (spawn->network_path) {
        ours = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/ns/net", O_RDONLY | O_CLOEXEC, 0);
        const int theirs =
            (int)syscall(SYS_openat, AT_FDCWD, spawn->network_path, O_RDONLY | O_CLOEXEC, 0);
        if (ours < 0 || theirs < 0 || syscall(SYS_setns, theirs, CLONE_NEWNET) < 0)
            return "enter the network of the task";
    }
    if (syscall(SYS_mount, "sysfs", spawn->sys_target, "sysfs",
                (unsigned long)(MS_NOSUID | MS_NOEXEC | MS_NODEV), NULL) < 0)
        return "mount a sysfs";
    return ours >= 0 && !spawn->is_in_network && syscall(SYS_setns, ours, CLONE_NEWNET) < 0
               ? "leave the network of the task"
               : NULL;
}

CHILD_ONLY static const char *namespace_enter(const struct spawn *spawn)
{
    if (syscall(SYS_mount, NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return "make the mounts private";
    if (spawn->hidden_mount && syscall(SYS_umount2, spawn->hidden_mount, MNT_DETACH) < 0)
        return "hide the v2 control groups";
    for (size_t i = 0; i < spawn->mount_count; i++)
        if (syscall(SYS_move_mount, spawn->mounts[i].fd, "", AT_FDCWD, spawn->mounts[i].target,
                    MOVE_MOUNT_F_EMPTY_PATH) < 0)
            return "mount what the task is made of";
    const char *failed = spawn->sys_target ? sys_mount(spawn) : NULL;
    if (failed)
        return failed;
    /* A node that the image brings along opens nothing, whatever the control group allows: runc
     * allows every task /dev/net/tun. A task's own devices are on another file system, in /dev. */
    if (syscall(SYS_mount, "overlay", spawn->overlay_target, "overlay", (unsigned long)MS_NODEV,
                spawn->overlay_options) < 0)
        return "mount the overlay";
    return NULL;
}

CHILD_ONLY static bool descriptors_place(const struct spawn *spawn)
{
    int high[4]; /* out of the way of 0 … 3 first */
    for (int i = 0; i < 4; i++)
        if ((high[i] = (int)syscall(SYS_fcntl, spawn->fds[i], F_DUPFD_CLOEXEC, 4)) < 0)
            return false;
    for (int i = 0; i < 4; i++)
        if (syscall(SYS_dup3, high[i], i, 0) < 0)
            return false;
    return true;
}

CHILD_ONLY static int child_run(void *context)
{
    struct conmon_child *child = context;
    const struct spawn *spawn = child->spawn;
    syscall(SYS_setsid); /* before the pid is known to anybody: no terminal's signal reaches it */
    pid_write(spawn->pid_fd);
    /* ours is for our own files; a container begins with Docker's, and so do its mount points */
    syscall(SYS_umask, 022);
    for (int i = 0; i < 2; i++)
        if (spawn->group_fds[i] >= 0 && syscall(SYS_write, spawn->group_fds[i], "0", 1UL) < 0)
            continue; /* somebody removed the group: conmon stays in ours and works as well */
    child->step = namespace_enter(spawn);
    if (!child->step) {
        child->step = "prepare conmon";
        if (syscall(SYS_chdir, spawn->directory) == 0 && descriptors_place(spawn)) {
            child_signals_reset();
            child->step = "execute conmon";
            syscall(SYS_execve, spawn->argv[0], spawn->argv, spawn->env);
        }
    }
    child->failure = errno;
    syscall(SYS_exit_group, 127);
    return 127;
}

int spawn_start(const struct spawn *spawn, pid_t *pid, int *pid_fd, struct err *err)
{
    struct conmon_child child = {.spawn = spawn};
    char *stack = mmap(NULL, CHILD_STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return err_errno(err, errno, "reserve a stack");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours may run in the child */
    *pid_fd = -1;
    *pid = __clone(child_run, stack + CHILD_STACK_BYTES,
                   CLONE_VM | CLONE_VFORK | CLONE_NEWNS | CLONE_PIDFD | SIGCHLD, &child, pid_fd);
    int failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, CHILD_STACK_BYTES);
    if (*pid < 0)
        return err_errno(err, failure, "start conmon");
    if (!child.failure)
        return 0;
    int status;
    process_wait(*pid, &status, NULL);
    close(*pid_fd);
    *pid_fd = -1;
    return err_errno(err, child.failure, "%s", child.step);
}

int syscall_kill(int pid_fd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, pid_fd, signal, NULL, 0u);
}
