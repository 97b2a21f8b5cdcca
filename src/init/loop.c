#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "init/init.h"
#include "sys/clock.h"

enum { READ_BYTES = 64 * 1024, MS_PER_S = 1000, NS_PER_MS = 1000000 };

static int pipes_open(struct init *init, struct err *err)
{
    for (size_t i = 0; i < PIPES; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            return err_errno(err, errno, "pipe");
        init->read_ends[i] = ends[0];
        init->write_ends[i] = ends[1];
        /* only our end: a program's write must block, not fail, when we are slow */
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    return 0;
}

int loop_init(struct init *init, struct err *err)
{
    static const int HANDLED[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,
                                  SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof HANDLED / sizeof HANDLED[0]; i++)
        sigaddset(&set, HANDLED[i]);
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return err_errno(err, errno, "sigprocmask");
    signal(SIGPIPE, SIG_IGN);
    init->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (init->signals < 0)
        return err_errno(err, errno, "signalfd");
    if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_errno(err, errno, "prctl PR_SET_CHILD_SUBREAPER");
    return pipes_open(init, err);
}

static void signal_handle(struct init *init, int number)
{
    if (number == SIGCHLD)
        processes_reap(init);
    else if (number == SIGTERM)
        processes_stop(init);
    else if (init->main_pid > 0)
        kill(-init->main_pid, number);
}

static void signals_read(struct init *init)
{
    struct signalfd_siginfo info;
    while (read(init->signals, &info, sizeof info) == (ssize_t)sizeof info)
        signal_handle(init, (int)info.ssi_signo);
}

/* Before a log grows. */
static void time_note(struct init *init)
{
    const uint64_t ends[LOG_TIMES_STREAMS] = {init->logs[PIPE_STDOUT].offset,
                                              init->logs[PIPE_STDERR].offset, init->all.offset,
                                              init->logs[PIPE_RUNTIME].offset};
    log_times_note(&init->times, init->log_directory, clock_unix_ms(), ends);
}

static void output_take(struct init *init, enum pipe_kind kind, const char *bytes, size_t length)
{
    time_note(init);
    log_write(&init->logs[kind], bytes, length);
    relay_write(init, kind, bytes, length);
    if (kind == PIPE_RUNTIME)
        return;
    log_write(&init->all, bytes, length);
    init->unfinished = kind;
}

/* One read, so that the other pipe gets its turn. False: nothing there now. */
static bool pipe_read(struct init *init, enum pipe_kind kind)
{
    static char bytes[READ_BYTES];
    if (init->read_ends[kind] < 0)
        return false;
    ssize_t length = read(init->read_ends[kind], bytes, sizeof bytes);
    if (length > 0) {
        output_take(init, kind, bytes, (size_t)length);
        return true;
    }
    if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(init->read_ends[kind]);
        init->read_ends[kind] = -1;
    }
    return length < 0 && errno == EINTR;
}

/* When both streams have something, first the one that has begun a line: lines stay whole. */
static void pipes_read(struct init *init)
{
    enum pipe_kind first = init->all.last == '\n' ? PIPE_STDOUT : init->unfinished;
    pipe_read(init, first);
    pipe_read(init, first == PIPE_STDOUT ? PIPE_STDERR : PIPE_STDOUT);
    pipe_read(init, PIPE_RUNTIME);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return !a || (b && b < a) ? b : a;
}

short loop_turn(struct init *init, int fd, short events, int64_t deadline_ms)
{
    struct pollfd polled[PIPES + 2];
    for (size_t i = 0; i < PIPES; i++)
        polled[i] = (struct pollfd){init->read_ends[i], POLLIN, 0};
    polled[PIPES] = (struct pollfd){init->signals, POLLIN, 0};
    polled[PIPES + 1] = (struct pollfd){fd, events, 0};
    int64_t until = earlier(earlier(deadline_ms, processes_deadline(init)), relay_deadline(init)),
            timeout = -1;
    if (until) {
        timeout = until - clock_monotonic_ms();
        timeout = timeout < 0 ? 0 : timeout > INT32_MAX ? INT32_MAX : timeout;
    }
    int ready = poll(polled, PIPES + 2, (int)timeout);
    if (ready < 0 && errno != EINTR) {
        note(init, "poll: errno %d", errno);
        return 0;
    }
    if (ready > 0)
        pipes_read(init);
    if (ready > 0 && polled[PIPES].revents)
        signals_read(init);
    processes_deadlines(init);
    relay_deadlines(init);
    return (short)(ready > 0 ? polled[PIPES + 1].revents : 0);
}

void loop_drain(struct init *init)
{
    for (bool is_more = true; is_more;) {
        is_more = false;
        for (size_t i = 0; i < PIPES; i++)
            is_more = pipe_read(init, (enum pipe_kind)i) || is_more;
    }
}

void loop_finish(struct init *init)
{
    for (size_t i = 0; i < PIPES; i++) {
        if (init->write_ends[i] >= 0)
            close(init->write_ends[i]);
        init->write_ends[i] = -1;
    }
    loop_drain(init);
}

void note(struct init *init, const char *format, ...)
{
    cleanup_buf struct buf line = BUF_INIT;
    struct timespec now;
    struct tm parts;
    va_list args;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    buf_format(&line, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ skep-init: ", parts.tm_year + 1900,
               parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
               now.tv_nsec / NS_PER_MS);
    va_start(args, format);
    buf_vformat(&line, format, args);
    va_end(args);
    buf_char(&line, '\n');
    if (init->is_guest)
        return;
    time_note(init);
    log_write(&init->logs[PIPE_RUNTIME], line.at, line.length);
    relay_write(init, PIPE_RUNTIME, line.at, line.length);
}
