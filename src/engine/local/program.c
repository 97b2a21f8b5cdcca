/* Programs of a pull, and what their words mean. */
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/pull_work.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/process.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COMPLAINT_MAX = 16 << 10 };

/* --- words --- */

void pull_complaint(const char *text, char *out, unsigned long size)
{
    struct text rest = text_trim(text_of(text)), last = rest;
    while (rest.at) {
        struct text line = text_trim(text_cut(&rest, '\n'));
        if (line.length)
            last = line;
    }
    size_t at = text_find(last, TEXT("msg=\""));
    if (at != SIZE_MAX) {
        assert(last.at);
        last = (struct text){last.at + at + 5, last.length - at - 5};
        if (last.length && last.at[last.length - 1] == '"')
            last.length--;
    }
    size_t used = 0;
    assert(last.at || !last.length);
    for (size_t i = 0; i < last.length && used + 1 < size; i++) {
        if (last.at[i] == '\\' && i + 1 < last.length)
            i++; /* \" and \\ of the log format */
        out[used++] = last.at[i];
    }
    out[used] = 0;
}

/* A name that the user chose is no part of what went wrong. */
static void name_blank(char *words, const char *name)
{
    size_t length = strlen(name);
    for (char *at = words; length && (at = strstr(at, name)); at += length)
        memset(at, '_', length);
}

const char *pull_reason(const char *complaint, const char *name, bool *is_final)
{
    static const struct {
        const char *words, *reason;
        bool is_final;
    } table[] = {
        {"no space left on device", "DiskFull", true},
        {"disk quota exceeded", "DiskFull", true},
        {"manifest unknown", "ImageNotFound", true},
        {"name unknown", "ImageNotFound", true},
        {"no such host", "RegistryUnavailable", false},
        {"not found", "ImageNotFound", true},
        {"no such file or directory", "ImageNotFound", true},
        {"unauthorized", "ImagePullUnauthorized", true},
        {"authentication required", "ImagePullUnauthorized", true},
        {"denied", "ImagePullUnauthorized", true},
        {"invalid username/password", "ImagePullUnauthorized", true},
        {"connection refused", "RegistryUnavailable", false},
        {"i/o timeout", "RegistryUnavailable", false},
        {"connection reset", "RegistryUnavailable", false},
        {"unexpected eof", "RegistryUnavailable", false},
        {"service unavailable", "RegistryUnavailable", false},
        {"too many requests", "RegistryUnavailable", false},
    };
    char lower[COMPLAINT_MAX];
    size_t i = 0;
    for (; complaint[i] && i + 1 < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)complaint[i]);
    lower[i] = 0;
    name_blank(lower, name);
    for (i = 0; i < COUNT_OF(table); i++)
        if (strstr(lower, table[i].words)) {
            *is_final = table[i].is_final;
            return table[i].reason;
        }
    *is_final = false;
    return "ImagePullError";
}

const char *pull_reason_of_status(long status, bool *is_final)
{
    *is_final = status == 401 || status == 403 || status == 404;
    if (status == 404)
        return "ImageNotFound";
    if (*is_final)
        return "ImagePullUnauthorized";
    return status == 429 || status >= 500 ? "RegistryUnavailable" : NULL;
}

int work_fail(struct work *work, const char *complaint, struct err *err)
{
    char words[COMPLAINT_MAX];
    const size_t room = sizeof err->text - 8;
    pull_complaint(complaint, words, sizeof words);
    work->pull->reason = pull_reason(words, work->pull->reference->path, &work->pull->is_final);
    size_t length = strlen(words);
    if (length <= room)
        return err_fail(err, ERR_UNAVAILABLE, "", "%s",
                        words[0] ? words : "the program said nothing");
    /* what went wrong stands at the end, behind names that may be long */
    return err_fail(err, ERR_UNAVAILABLE, "", "%.*s ... %s", (int)room / 4, words,
                    words + length - (room - room / 4));
}

int work_fail_here(struct work *work, struct err *err)
{
    bool is_final;
    const char *reason = pull_reason(err->text, "", &is_final);
    work->pull->reason = strcmp(reason, "DiskFull") == 0 ? reason : "ImagePullError";
    work->pull->is_final = true;
    return err->code;
}

int work_fail_final(struct work *work, const char *reason, const struct err *err)
{
    work->pull->reason = reason;
    work->pull->is_final = true;
    return err->code;
}

/* --- programs --- */

/* The end of what a program has said: an image can make it say gigabytes. */
struct complaint {
    int fd; /* of the pipe, which does not block */
    size_t length;
    char text[COMPLAINT_MAX];
};

/* Whatever can be read now, a pipe full at most; false: nobody can write any more. */
static bool complaint_read(struct complaint *complaint)
{
    enum { PIECE = 4096, PIECES = 16 };
    ssize_t got = 1;
    for (int i = 0; i < PIECES && got > 0; i++) {
        const size_t room = sizeof complaint->text - 1;
        if (complaint->length + PIECE > room) {
            const size_t kept = room - PIECE < complaint->length ? room - PIECE : complaint->length;
            memmove(complaint->text, complaint->text + complaint->length - kept, kept);
            complaint->length = kept;
        }
        got = read(complaint->fd, complaint->text + complaint->length, PIECE);
        complaint->length += got > 0 ? (size_t)got : 0;
    }
    complaint->text[complaint->length] = '\0';
    return got > 0 || (got < 0 && errno == EAGAIN);
}

static int program_check(struct work *work, const struct program *program, pid_t pid,
                         struct err *err)
{
    struct pull_watch *watch = &work->pull->watch;
    if (watch->is_stopping(watch->context, 0)) {
        work->pull->reason = "RegistryUnavailable";
        return err_fail(err, ERR_BUSY, "", "the pull was given up");
    }
    return program->check ? program->check(work, pid, err) : 0;
}

static int program_await(struct work *work, pid_t pid, const struct program *program,
                         struct complaint *complaint, int *status, struct err *err)
{
    int code = 0;
    bool is_open = true;
    int64_t due_ms = clock_monotonic_ms() + program->check_ms;
    cleanup_close int ended = process_watch(pid, err);
    if (ended < 0) { /* nobody would know of its end, nor read what it says */
        code = err->code;
        kill(pid, SIGKILL);
    }
    while (code == 0) {
        const int64_t left_ms = due_ms - clock_monotonic_ms();
        struct pollfd fds[] = {{.fd = ended, .events = POLLIN},
                               {.fd = is_open ? complaint->fd : -1, .events = POLLIN}};
        if (left_ms > 0)
            poll(fds, COUNT_OF(fds), (int)left_ms);
        if (fds[1].revents)
            is_open = complaint_read(complaint);
        if (fds[0].revents)
            break;
        if (clock_monotonic_ms() < due_ms)
            continue;
        code = program_check(work, program, pid, err);
        due_ms = clock_monotonic_ms() + program->check_ms;
        if (code < 0)
            kill(pid, SIGKILL);
    }
    int waited = process_wait(pid, status, code == 0 ? err : NULL);
    complaint_read(complaint); /* a pipe holds no more */
    return code < 0 ? code : waited;
}

/* `pipe` is the end of a pipe to which it complains. */
static int program_start(const struct program *program, int pipe, pid_t *pid, struct err *err)
{
    struct process process = {.argv = program->argv,
                              .in = -1,
                              .out = program->out ? program->out : -1,
                              .err = pipe,
                              .is_bound = true};
    int code = process_spawn(&process, pid, err);
    if (code == 0 && process_oom_score(0) < 0)
        process_oom_score_put(*pid, 0); /* a pull can be repeated */
    return code;
}

int program_run(struct work *work, const struct program *program, struct err *err)
{
    int pipe[2];
    pid_t pid = 0;
    int status = 0;
    if (pipe2(pipe, O_CLOEXEC) < 0)
        return err_errno(err, errno, "make a pipe");
    cleanup_free struct complaint *complaint = mem_zero(1, sizeof *complaint);
    cleanup_close int fd = complaint->fd = pipe[0];
    int code = fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? err_errno(err, errno, "set up a pipe")
                                                  : program_start(program, pipe[1], &pid, err);
    close(pipe[1]);
    if (code == 0)
        code = program_await(work, pid, program, complaint, &status, err);
    work->exit_code = code == 0 ? process_exit_code(status) : 0;
    if (work->exit_code != 0) {
        if (!complaint->text[0])
            snprintf(complaint->text, sizeof complaint->text, "%s ended with code %d",
                     program->argv[0], work->exit_code);
        code = work_fail(work, complaint->text, err);
    }
    return code;
}
