/* enter.c — a program beside the task's own: for a user who opens a terminal in a running task.
 *
 * Started by the engine in the task's container as the task's user. One socket leads to the engine
 * (layout.h): it learns how the program ends, and whoever closes its end, also by dying, ends the
 * program with all that it started. As a subreaper this process keeps hold of what forks away.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"
#include "init/init.h"
#include "init/layout.h"
#include "sys/clock.h"

enum { HANGUP_MS = 500, KILL_AGAIN_MS = 50, FAILED = 126, NOT_FOUND = 127 };

/* Of whoever signals all of the container. */
static const int IGNORED[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE};

struct terminal {
    int master, slave; /* -1: the program has pipes */
    struct winsize size;
    char name[64]; /* $TERM */
};

/* "24x80:xterm" */
static int terminal_parse(const char *text, struct terminal *terminal, struct err *err)
{
    unsigned rows, columns;
    *terminal = (struct terminal){.master = -1, .slave = -1};
    if (strcmp(text, "-") == 0)
        return 0;
    if (sscanf(text, "%ux%u:%63s", &rows, &columns, terminal->name) != 3 || rows > UINT16_MAX ||
        columns > UINT16_MAX)
        return err_fail(err, ERR_INVALID, "", "\"%s\" is no terminal", text);
    terminal->size =
        (struct winsize){.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    return 0;
}

static int terminal_open(struct terminal *terminal, struct err *err)
{
    terminal->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal->master < 0 || unlockpt(terminal->master) < 0)
        return err_errno(err, errno, "cannot make a terminal");
    ioctl(terminal->master, TIOCSWINSZ, &terminal->size);
    /* by the descriptor: what is mounted at /dev/pts does not matter */
    terminal->slave = ioctl(terminal->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return terminal->slave < 0 ? err_errno(err, errno, "cannot open the terminal") : 0;
}

static void message_send(const char *bytes, size_t length, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    /* nobody there: the next poll tells */
    while (sendmsg(LAYOUT_ENTER_FD, &message, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

static void message_byte(char byte)
{
    message_send(&byte, 1, -1);
}

/* In the child. */
static void program_become(struct init *init, char **argv, const struct terminal *terminal)
{
    sigset_t none;
    char *shell[2] = {NULL, NULL};
    bool is_bash;
    /* told here, and not by the parent: the program may end the task, and the parent with it, at
     * once */
    const char started = LAYOUT_ENTER_STARTED;
    message_send(&started, 1, terminal->master);
    setsid();
    if (terminal->slave >= 0) {
        ioctl(terminal->slave, TIOCSCTTY, 0);
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
            dup2(terminal->slave, fd);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < sizeof IGNORED / sizeof IGNORED[0]; i++)
        signal(IGNORED[i], SIG_DFL);
    environ = init->environment;
    if (terminal->slave >= 0)
        setenv("TERM", terminal->name, 1);
    if (!argv[0]) {
        shell[0] = (char *)(uintptr_t)shell_find(&is_bash);
        argv = shell;
    }
    if (argv[0])
        execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "skep-init: cannot run %s: %s\r\n", argv[0] ? argv[0] : "a shell",
            argv[0] ? strerror(errno) : "the image has neither bash nor sh");
    _exit(!argv[0] || errno == ENOENT ? NOT_FOUND : FAILED);
}

/* Signals come by the descriptor that is returned. */
static int signals_open(struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return err_errno(err, errno, "sigprocmask");
    for (size_t i = 0; i < sizeof IGNORED / sizeof IGNORED[0]; i++)
        signal(IGNORED[i], SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_errno(err, errno, "signalfd");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_errno(err, errno, "prctl PR_SET_CHILD_SUBREAPER");
    return fd;
}

static bool is_told_to_end(int signals)
{
    struct signalfd_siginfo info;
    bool is_told = false;
    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info)
        is_told = is_told || info.ssi_signo == SIGTERM;
    return is_told;
}

/* Until the program ends, or must. */
static void program_watch(struct init *init, int signals)
{
    struct pollfd ready[] = {{.fd = signals, .events = POLLIN},
                             {.fd = LAYOUT_ENTER_FD, .events = POLLIN}};
    for (bool is_over = false; !is_over;) {
        processes_reap(init);
        if (init->is_main_done)
            return;
        if (poll(ready, 2, -1) < 0)
            continue;
        bool is_task_ending = ready[0].revents && is_told_to_end(signals);
        if (is_task_ending)
            message_byte(LAYOUT_ENTER_ENDING);
        is_over = is_task_ending || ready[1].revents;
    }
}

/* What is left of it. */
static void program_end(struct init *init, int signals)
{
    struct pollfd ready = {.fd = signals, .events = POLLIN};
    int64_t kill_ms = clock_monotonic_ms() + HANGUP_MS;
    if (processes_reap(init))
        processes_signal(SIGHUP);
    while (processes_reap(init)) {
        int64_t left_ms = kill_ms - clock_monotonic_ms();
        if (left_ms <= 0) {
            processes_signal(SIGKILL);
            left_ms = KILL_AGAIN_MS; /* again, for what was forked meanwhile */
        }
        poll(&ready, 1, (int)left_ms);
        is_told_to_end(signals);
    }
}

static int program_run(struct init *init, char **argv, struct terminal *terminal, struct err *err)
{
    int signals = signals_open(err);
    if (signals < 0)
        return signals;
    init->main_pid = fork();
    if (init->main_pid < 0)
        return err_errno(err, errno, "fork");
    if (init->main_pid == 0)
        program_become(init, argv, terminal);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd); /* the program's alone: their end is seen when it closes them */
    if (terminal->master >= 0) {
        close(terminal->master);
        close(terminal->slave);
    }
    program_watch(init, signals);
    if (init->is_main_done) {
        int status = init->main_status;
        unsigned code =
            WIFSIGNALED(status) ? 128u + (unsigned)WTERMSIG(status) : (unsigned)WEXITSTATUS(status);
        char exited[2] = {LAYOUT_ENTER_EXITED, (char)(unsigned char)code};
        message_send(exited, sizeof exited, -1);
    }
    program_end(init, signals);
    return 0;
}

int enter(struct init *init, int count, char **arguments)
{
    static int (*const STEPS[])(struct init *, struct err *) = {
        task_read, job_read, setup_network, setup_identity, setup_environment,
    };
    struct terminal terminal;
    struct err err = {0};
    init->is_guest = true;
    /* the task's own processes, of the same user, shall not speak in our name; what is executed
     * can be traced again */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    fcntl(LAYOUT_ENTER_FD, F_SETFD, FD_CLOEXEC);
    int code = count > 0 ? terminal_parse(arguments[0], &terminal, &err)
                         : err_fail(&err, ERR_INVALID, "", "enter needs a terminal");
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0] && code == 0; i++)
        code = STEPS[i](init, &err);
    if (code == 0 && terminal.name[0])
        code = terminal_open(&terminal, &err);
    if (code == 0)
        code = program_run(init, arguments + 1, &terminal, &err);
    if (code < 0)
        dprintf(STDERR_FILENO, "skep-init: %s\n", err.text);
    return code < 0 ? FAILED : 0;
}
