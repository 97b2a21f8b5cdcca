#include "engine/local/spawn.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/process.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 64 << 10 };

/* Shared with the child: until it executes conmon it runs in our memory, and we wait. */
struct birth {
    const struct spawn *spawn;
    const char *volatile step;
    volatile int failure;
};

static void pid_write(int fd)
{
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = '\n';
    for (unsigned pid = (unsigned)getpid(); pid; pid /= 10)
        digits[--at] = (char)('0' + pid % 10);
    if (write(fd, digits + at, sizeof digits - at) < 0)
        return; /* the next start kills by control group instead */
}

static const char *namespace_enter(const struct spawn *spawn)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return "make the mounts private";
    if (spawn->hidden_mount && umount2(spawn->hidden_mount, MNT_DETACH) < 0)
        return "hide the v2 control groups";
    if (mount("overlay", spawn->overlay_target, "overlay", 0, spawn->overlay_options) < 0)
        return "mount the overlay";
    return NULL;
}

/* Only system calls from here on: the heap and locks are the parent's. */
static int birth_run(void *context)
{
    struct birth *birth = context;
    const struct spawn *spawn = birth->spawn;
    setsid(); /* before the pid is known to anybody: no terminal's signal reaches conmon */
    pid_write(spawn->pid_fd);
    for (int i = 0; i < 2; i++)
        if (spawn->group_fds[i] >= 0 && write(spawn->group_fds[i], "0", 1) < 0)
            continue; /* somebody removed the group: conmon stays in ours and works as well */
    birth->step = namespace_enter(spawn);
    if (birth->step)
        goto failed;
    birth->step = "prepare conmon";
    if (chdir(spawn->directory) < 0)
        goto failed;
    int high[4]; /* out of the way of 0 … 3 first */
    for (int i = 0; i < 4; i++)
        if ((high[i] = fcntl(spawn->fds[i], F_DUPFD_CLOEXEC, 4)) < 0)
            goto failed;
    for (int i = 0; i < 4; i++)
        if (dup2(high[i], i) < 0)
            goto failed;
    for (int signal = 1; signal < NSIG; signal++)
        if (signal != SIGKILL && signal != SIGSTOP)
            sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    birth->step = "execute conmon";
    execve(spawn->argv[0], (char *const *)(uintptr_t)spawn->argv,
           (char *const *)(uintptr_t)spawn->env);
failed:
    birth->failure = errno;
    _exit(127);
}

int spawn_start(const struct spawn *spawn, pid_t *pid, int *pid_fd, struct err *err)
{
    struct birth birth = {.spawn = spawn};
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return err_errno(err, errno, "reserve a stack");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours may run in the child */
    *pid_fd = -1;
    *pid = clone(birth_run, stack + STACK_BYTES,
                 CLONE_VM | CLONE_VFORK | CLONE_NEWNS | CLONE_PIDFD | SIGCHLD, &birth, pid_fd);
    int failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, STACK_BYTES);
    if (*pid < 0)
        return err_errno(err, failure, "start conmon");
    if (!birth.failure)
        return 0;
    int status;
    process_wait(*pid, &status, NULL);
    close(*pid_fd);
    *pid_fd = -1;
    return err_errno(err, birth.failure, "%s", birth.step);
}

int syscall_kill(int pid_fd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, pid_fd, signal, NULL, 0u);
}
