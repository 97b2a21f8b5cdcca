/* Programs of a pull, and what their words mean. */
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/pull_work.h"
#include "sys/cleanup.h"
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

static int program_await(struct work *work, pid_t pid, const struct program *program, int *status,
                         struct err *err)
{
    struct pull_watch *watch = &work->pull->watch;
    int code = 0;
    cleanup_close int ended = process_watch(pid, err);
    while (ended >= 0 && code == 0) {
        struct pollfd poll_fd = {.fd = ended, .events = POLLIN};
        if (poll(&poll_fd, 1, (int)program->check_ms) > 0)
            break;
        if (watch->is_stopping(watch->context, 0)) {
            work->pull->reason = "RegistryUnavailable";
            code = err_fail(err, ERR_BUSY, "", "the server stops");
        } else if (program->check) {
            code = program->check(work, pid, err);
        }
        if (code < 0)
            kill(pid, SIGKILL);
    }
    int waited = process_wait(pid, status, code == 0 ? err : NULL);
    return code < 0 ? code : waited;
}

/* Its complaint goes through a file, so that nobody has to read a pipe meanwhile, and not on the
 * disk of which it may complain. */
int program_run(struct work *work, const struct program *program, struct err *err)
{
    char path[PULL_PATH_MAX + 48];
    snprintf(path, sizeof path, "%s/complaint-%llu", work->pull->run_directory,
             (unsigned long long)work->pull->number);
    cleanup_close int complaint = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (complaint < 0)
        return err_errno(err, errno, "open %s", path);
    pid_t pid;
    int status = 0;
    struct process process = {.argv = program->argv,
                              .in = -1,
                              .out = program->out ? program->out : -1,
                              .err = complaint,
                              .is_bound = true};
    int code = process_spawn(&process, &pid, err);
    if (code == 0 && process_oom_score(0) < 0)
        process_oom_score_put(pid, 0); /* a pull can be repeated */
    if (code == 0)
        code = program_await(work, pid, program, &status, err);
    work->exit_code = code == 0 ? process_exit_code(status) : 0;
    if (work->exit_code != 0) {
        char text[COMPLAINT_MAX];
        off_t size = lseek(complaint, 0, SEEK_END);
        off_t from = size > (off_t)sizeof text - 1 ? size - (off_t)sizeof text + 1 : 0;
        ssize_t got = pread(complaint, text, sizeof text - 1, from);
        text[got > 0 ? got : 0] = 0;
        if (!text[0])
            snprintf(text, sizeof text, "%s ended with code %d", program->argv[0], work->exit_code);
        code = work_fail(work, text, err);
    }
    unlink(path);
    return code;
}
