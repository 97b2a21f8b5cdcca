#include "sys/process.h"
#include "base/buf.h"
#include "base/err.h"
#include "sys/child.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static void stream_redirect(posix_spawn_file_actions_t *actions, int fd, int target, int flags)
{
    if (fd >= 0)
        posix_spawn_file_actions_adddup2(actions, fd, target);
    else
        posix_spawn_file_actions_addopen(actions, target, "/dev/null", flags, 0);
}

/* --- bound to the thread that starts it: posix_spawn knows no parent-death signal --- */

enum { PROGRAM_PATH_MAX = 4096 };

/* Shared with the child: until it executes the program it runs in our memory, and we wait. */
struct process_child {
    const char *path;
    char *const *argv, *const *env;
    int streams[3];
    bool is_group;
    pid_t parent;
    volatile int failure;
};

CHILD_ONLY static int child_run(void *context)
{
    struct process_child *child = context;
    bool is_ready = syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0;
    if (is_ready && syscall(SYS_getppid) != child->parent)
        syscall(SYS_exit_group, 127); /* it died before it could be said that we die with it */
    if (is_ready && child->is_group)
        is_ready = syscall(SYS_setpgid, 0, 0) == 0;
    for (int i = 0; i < 3 && is_ready; i++) { /* out of the way of 0 … 2 first */
        child->streams[i] = (int)syscall(SYS_fcntl, child->streams[i], F_DUPFD_CLOEXEC, 3);
        is_ready = child->streams[i] >= 0;
    }
    for (int i = 0; i < 3 && is_ready; i++)
        is_ready = syscall(SYS_dup3, child->streams[i], i, 0) == i;
    if (is_ready) { /* what follows must not change why it is not */
        child_signals_reset();
        syscall(SYS_execve, child->path, child->argv, child->env);
    }
    child->failure = errno;
    syscall(SYS_exit_group, 127);
    return 127;
}

/* As execvp finds it; false: there is no such program. */
static bool program_find(const char *name, char path[PROGRAM_PATH_MAX])
{
    if (strchr(name, '/'))
        return snprintf(path, PROGRAM_PATH_MAX, "%s", name) < PROGRAM_PATH_MAX;
    const char *folders = getenv("PATH");
    struct text rest = text_of(folders ? folders : _PATH_DEFPATH);
    while (rest.at) {
        struct text folder = text_cut(&rest, ':');
        int length = snprintf(path, PROGRAM_PATH_MAX, "%.*s/%s", TEXT_ARG(folder), name);
        if (folder.length && length < PROGRAM_PATH_MAX && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

static int bound_spawn(const struct process *process, pid_t *pid, struct err *err)
{
    char path[PROGRAM_PATH_MAX];
    if (!program_find(process->argv[0], path))
        return err_fail(err, ERR_NOT_FOUND, "", "there is no program %s", process->argv[0]);
    cleanup_close int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return err_errno(err, errno, "open /dev/null");
    struct process_child child = {.path = path,
                                  .argv = (char *const *)(uintptr_t)process->argv,
                                  .env = process->env ? (char *const *)(uintptr_t)process->env
                                                      : environ,
                                  .streams = {process->in < 0 ? nothing : process->in,
                                              process->out < 0 ? nothing : process->out,
                                              process->err < 0 ? nothing : process->err},
                                  .is_group = process->is_group,
                                  .parent = getpid()};
    char *stack = mmap(NULL, CHILD_STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return err_errno(err, errno, "reserve a stack");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours may run in the child */
    *pid = __clone(child_run, stack + CHILD_STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
    int failure = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, CHILD_STACK_BYTES);
    if (*pid < 0)
        return err_errno(err, failure, "start %s", process->argv[0]);
    if (!child.failure)
        return 0;
    int status;
    process_wait(*pid, &status, NULL);
    if (child.failure == ENOENT)
        return err_fail(err, ERR_NOT_FOUND, "", "there is no program %s", process->argv[0]);
    return err_errno(err, child.failure, "start %s", process->argv[0]);
}

int process_spawn(const struct process *process, pid_t *pid, struct err *err)
{
    assert(process->argv && process->argv[0]);
    assert(process->is_bound || !process->is_group);
    if (process->is_bound)
        return bound_spawn(process, pid, err);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    stream_redirect(&actions, process->in, 0, O_RDONLY);
    stream_redirect(&actions, process->out, 1, O_WRONLY);
    stream_redirect(&actions, process->err, 2, O_WRONLY);
    if (process->more > 0)
        posix_spawn_file_actions_adddup2(&actions, process->more, 3);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char *const *argv = (char *const *)(uintptr_t)process->argv;
    char *const *env = process->env ? (char *const *)(uintptr_t)process->env : environ;
    int failure = posix_spawnp(pid, argv[0], &actions, &attributes, argv, env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (failure == ENOENT)
        return err_fail(err, ERR_NOT_FOUND, "", "there is no program %s", argv[0]);
    if (failure != 0)
        return err_errno(err, failure, "start %s", argv[0]);
    return 0;
}

int process_wait(pid_t pid, int *status, struct err *err)
{
    while (waitpid(pid, status, 0) < 0)
        if (errno != EINTR)
            return err_errno(err, errno, "wait for process %d", (int)pid);
    return 0;
}

int process_exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Returns false at the end of the stream. */
static bool stream_drain(int fd, struct buf *into)
{
    char bytes[16384];
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0)
        return errno == EINTR;
    if (got == 0)
        return false;
    size_t room = into->length < PROCESS_TEXT_MAX ? PROCESS_TEXT_MAX - into->length : 0;
    buf_add(into, bytes, (size_t)got < room ? (size_t)got : room);
    return true;
}

/* Read both streams until they end. False: the time ran out, or the third is readable. */
static bool streams_read(struct pollfd *streams, struct buf *const *into, uint32_t timeout_ms)
{
    int64_t due = clock_monotonic_ms() + timeout_ms;
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        int64_t left = timeout_ms ? due - clock_monotonic_ms() : -1;
        if (timeout_ms && left <= 0)
            return false;
        if (poll(streams, 3, (int)left) < 0) {
            if (errno == EINTR)
                continue;
            return false;
        }
        if (streams[2].revents)
            return false;
        for (int i = 0; i < 2; i++)
            if (streams[i].fd >= 0 && streams[i].revents &&
                (!into[i] || !stream_drain(streams[i].fd, into[i])))
                streams[i].fd = -1; /* a stream without a buffer is the end of the process */
    }
    return true;
}

int process_run(const struct process *process, uint32_t timeout_ms, struct buf *out,
                struct buf *complaint, int *exit_code, struct err *err)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    if ((out && pipe2(pipes[0], O_CLOEXEC) < 0) || (complaint && pipe2(pipes[1], O_CLOEXEC) < 0)) {
        int failure = errno;
        if (pipes[0][0] >= 0) {
            close(pipes[0][0]);
            close(pipes[0][1]);
        }
        return err_errno(err, failure, "make a pipe for %s", process->argv[0]);
    }
    cleanup_close int out_read = pipes[0][0], err_read = pipes[1][0];
    struct process child = *process;
    child.out = pipes[0][1];
    const bool shows = !complaint && process->err == STDERR_FILENO;
    child.err = shows ? STDERR_FILENO : pipes[1][1];
    pid_t pid = 0;
    int code = process_spawn(&child, &pid, err);
    if (child.out >= 0)
        close(child.out);
    if (child.err >= 0 && !shows)
        close(child.err);
    if (code < 0)
        return code;
    struct pollfd streams[3] = {{.fd = out_read, .events = POLLIN},
                                {.fd = err_read, .events = POLLIN},
                                {.fd = child.stop > 0 ? child.stop : -1, .events = POLLIN}};
    cleanup_close int watch = out ? -1 : process_watch(pid, NULL);
    if (!out)
        streams[0].fd = watch; /* the time counts without a stream, too */
    bool is_late = !streams_read(streams, (struct buf *const[]){out, complaint}, timeout_ms);
    if (is_late) /* its number is that of its group, too */
        kill(child.is_group ? -pid : pid, SIGKILL);
    int status = 0;
    code = process_wait(pid, &status, err);
    if (code < 0)
        return code;
    if (is_late && streams[2].revents)
        return err_fail(err, ERR_UNAVAILABLE, "", "%s was stopped", child.argv[0]);
    if (is_late)
        return err_fail(err, ERR_UNAVAILABLE, "", "%s did not end within %u ms", child.argv[0],
                        timeout_ms);
    *exit_code = process_exit_code(status);
    return 0;
}

int process_watch(pid_t pid, struct err *err)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0u);
    if (fd >= 0)
        return fd;
    if (errno == ESRCH)
        return err_fail(err, ERR_NOT_FOUND, "", "process %d is gone", (int)pid);
    return err_errno(err, errno, "watch process %d", (int)pid);
}

bool process_has_argument(pid_t pid, const char *argument)
{
    char path[64];
    cleanup_buf struct buf line = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    if (file_read(path, PROCESS_TEXT_MAX, &line, NULL) < 0)
        return false;
    struct text rest = buf_as_text(&line); /* each ends with a NUL */
    while (rest.length > 0)
        if (text_is(text_cut(&rest, 0), argument))
            return true;
    return false;
}

uint64_t process_start_time(pid_t pid)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, line, sizeof line - 1);
    if (got <= 0)
        return 0;
    line[got] = 0;
    /* the name may hold spaces and parentheses: fields are counted from the last ')' */
    char *at = strrchr(line, ')');
    if (!at)
        return 0;
    for (int field = 2; field < 22 && at; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

static void oom_score_path(pid_t pid, char path[64])
{
    if (pid == 0)
        snprintf(path, 64, "/proc/self/oom_score_adj");
    else
        snprintf(path, 64, "/proc/%d/oom_score_adj", (int)pid);
}

int process_oom_score(pid_t pid)
{
    char path[64];
    int score = 0;
    oom_score_path(pid, path);
    cleanup_file FILE *file = fopen(path, "re");
    return file && fscanf(file, "%d", &score) == 1 ? score : 0;
}

bool process_oom_score_put(pid_t pid, int score)
{
    char path[64], text[16];
    oom_score_path(pid, path);
    int length = snprintf(text, sizeof text, "%d", score);
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, (size_t)length) == length;
}
