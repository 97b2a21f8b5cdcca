/* fetch.c — what a kubelet has rotated away before it was read, from the pod's own segments.
 *
 * skep-init is started once more in the pod (init/fetch.c): it writes what is missing as pieces.
 * While that runs, the log is its thread's alone: the stream from the kubelet has been ended. A
 * connection that brings nothing any more gives its turn back.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "engine/kubernetes/state.h"
#include "init/layout.h"
#include "init/log_line.h"
#include "sys/clock.h"

enum { READ_BYTES = 64 << 10, HEAD_MAX = 64 };

_Static_assert((int)LOG_PIECE_STREAMS == (int)LOG_STORE_STREAMS, "the streams of one layout");

struct taking {
    struct kube_fetch *fetch;
    struct log_store_task store;
    char path[LOG_STORE_PATH_MAX];
    struct buf bytes; /* come, and not taken yet */
    uint64_t taken;
    bool has_ended;
    enum log_fetch_end end;
};

static void trouble_set(struct kube_fetch *fetch, const char *text)
{
    snprintf(fetch->trouble, sizeof fetch->trouble, "%.190s", text);
}

/* --- pieces --- */

/* One from the begin of `left`. 0: it is not whole yet; negative: it is none. */
static int piece_take(struct taking *taking, struct text *left, struct err *err)
{
    const char *newline = memchr(left->at, '\n', left->length);
    struct log_piece piece;
    if (!newline)
        return left->length > HEAD_MAX ? err_fail(err, ERR_CORRUPT, "", "what comes is no log") : 0;
    const size_t head = (size_t)(newline - left->at);
    if (taking->has_ended || !log_piece_read((struct text){left->at, head}, &piece))
        return err_fail(err, ERR_CORRUPT, "", "what comes is no log");
    if (left->length < head + 1 + piece.length)
        return 0;
    const struct text bytes = {newline + 1, piece.length};
    *left = (struct text){bytes.at + bytes.length, left->length - head - 1 - piece.length};
    if (piece.is_end) {
        taking->has_ended = true;
        taking->end = piece.end;
        return 1;
    }
    const struct kube *kube = taking->fetch->kube;
    const int code = log_store_put(&taking->store, taking->path, kube->logs.segment_bytes,
                                   (enum log_stream)piece.stream, piece.offset, bytes, err);
    taking->taken += bytes.length;
    return code < 0 ? code : 1;
}

static int pieces_take(struct taking *taking, struct err *err)
{
    struct text left = buf_as_text(&taking->bytes);
    int code = 1;
    while (code > 0 && left.length > 0)
        code = piece_take(taking, &left, err);
    const size_t length = left.length;
    if (length > 0 && length < taking->bytes.length)
        memmove(taking->bytes.at, left.at, length);
    taking->bytes.length = length;
    return code < 0 ? code : 0;
}

/* --- the program --- */

enum awaited { CAME, CLOSED, STOPPED, SILENT };

/* Its task is not there any more, or runs on a node that is lost: nothing comes of that. */
static bool is_in_vain(const struct kube_fetch *fetch)
{
    struct kube *kube = fetch->kube;
    pthread_mutex_lock(&kube->lock);
    const struct kube_task *task = kube_task_find(kube, fetch->attempt);
    const bool is = !task || task->state == TASK_FORGOTTEN || task->is_lost;
    pthread_mutex_unlock(&kube->lock);
    return is;
}

/* Waits for this descriptor. CAME: something can be read; CLOSED: it cannot be waited for. */
static enum awaited descriptor_await(const struct kube_fetch *fetch, int fd)
{
    const struct kube *kube = fetch->kube;
    const int64_t until_ms = clock_monotonic_ms() + kube->logs.fetch_silence_ms;
    for (;;) {
        struct pollfd waits[] = {{.fd = fd, .events = POLLIN},
                                 {.fd = kube->logs.fetch_end, .events = POLLIN}};
        const int64_t left_ms = until_ms - clock_monotonic_ms();
        if (left_ms <= 0)
            return SILENT;
        const int got =
            poll(waits, 2, left_ms < KUBE_FETCH_LOOK_MS ? (int)left_ms : KUBE_FETCH_LOOK_MS);
        if (got < 0 && errno != EINTR)
            return CLOSED;
        if (got > 0)
            return waits[1].revents ? STOPPED : CAME;
        if (is_in_vain(fetch))
            return STOPPED;
    }
}

/* Some more of its output. */
static enum awaited output_read(struct taking *taking, const struct engine_exec *exec)
{
    static _Thread_local char bytes[READ_BYTES];
    for (;;) {
        const enum awaited awaited = descriptor_await(taking->fetch, exec->output);
        if (awaited != CAME)
            return awaited;
        const ssize_t got = recv(exec->output, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got > 0) {
            buf_add(&taking->bytes, bytes, (size_t)got);
            return CAME;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            return CLOSED;
    }
}

/* Why it has ended without a word. */
static void error_read(struct kube_fetch *fetch, const struct engine_exec *exec)
{
    char text[160];
    const ssize_t got = recv(exec->error, text, sizeof text - 1, MSG_DONTWAIT);
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    trouble_set(fetch, text[0] ? text : "it ended before it had told all");
}

static enum fetch_result result_of(const struct taking *taking)
{
    switch (taking->end) {
    case LOG_FETCH_WHOLE:
        return FETCH_WHOLE;
    case LOG_FETCH_BROKEN:
        return FETCH_BROKEN;
    case LOG_FETCH_PART:
        break;
    }
    return taking->taken >= LOG_PIECE_MAX ? FETCH_PART
           : taking->taken > 0            ? FETCH_LITTLE
                                          : FETCH_NOTHING;
}

/* All of it is on this machine's disk: skep-init may end. That the program ends is its answer. */
static bool taken_tell(struct taking *taking, struct engine_exec *exec)
{
    struct engine_exec_end end = {0};
    enum awaited awaited;
    if (send(exec->input, "t", 1, MSG_NOSIGNAL) != 1)
        return false;
    while ((awaited = output_read(taking, exec)) == CAME)
        continue;
    return awaited == CLOSED && descriptor_await(taking->fetch, exec->end) == CAME &&
           exec->ops->ended(exec, &end) && (end.code == 0 || end.is_task_ended);
}

static enum fetch_result output_take(struct taking *taking, struct engine_exec *exec)
{
    struct err err = {0};
    while (!taking->has_ended) {
        const enum awaited awaited = output_read(taking, exec);
        if (awaited == CLOSED)
            error_read(taking->fetch, exec);
        else if (awaited == SILENT)
            trouble_set(taking->fetch, "its pod does not answer");
        else if (awaited == STOPPED)
            trouble_set(taking->fetch, "its task is not there any more");
        if (awaited != CAME)
            return FETCH_FAILED;
        if (pieces_take(taking, &err) < 0) {
            trouble_set(taking->fetch, err.text);
            return FETCH_FAILED;
        }
    }
    if (taking->end == LOG_FETCH_WHOLE && !taken_tell(taking, exec)) {
        trouble_set(taking->fetch, "skep-init could not be told that its log has been taken");
        return FETCH_FAILED;
    }
    return result_of(taking);
}

static enum fetch_result fetch_do(struct taking *taking)
{
    struct kube_fetch *fetch = taking->fetch;
    struct engine_exec *exec = NULL;
    struct err err = {0};
    uint64_t ends[LOG_STORE_STREAMS];
    char numbers[LOG_STORE_STREAMS][24];
    const char *begin[4 + LOG_STORE_STREAMS] = {LAYOUT_INIT, LAYOUT_FETCH, "/skep"};
    const char *const nothing[] = {NULL};
    log_store_ends(&taking->store, taking->path, ends);
    for (size_t i = 0; i < LOG_STORE_STREAMS; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%" PRIu64, ends[i]);
        begin[3 + i] = numbers[i];
    }
    const struct engine_exec_request request = {.argv = nothing};
    if (kube_exec_words(fetch->kube, fetch->attempt, begin, &request, &exec, &err) < 0) {
        trouble_set(fetch, err.text);
        return FETCH_FAILED;
    }
    const enum fetch_result result = output_take(taking, exec);
    exec->ops->free(exec);
    return result;
}

/* --- turns --- */

static void done_send(const struct kube_fetch *fetch)
{
    const struct kube_call call = {
        .context = fetch->kube, .key = fetch->attempt.v, .done = fetch->done};
    kube_client_send(fetch->kube->client, &call, 0);
}

static void *fetch_run(void *context)
{
    struct kube_fetch *fetch = context;
    struct taking taking = {.fetch = fetch};
    log_store_path(fetch->kube->logs.directory, fetch->attempt, taking.path);
    fetch->result = fetch_do(&taking);
    log_store_task_release(&taking.store);
    buf_release(&taking.bytes);
    done_send(fetch);
    return NULL;
}

bool kube_fetch_start(struct kube *kube, struct attempt_id attempt,
                      void (*done)(void *context, uint64_t key, const struct kube_answer *answer))
{
    for (size_t i = 0; i < KUBE_FETCHES_MAX && !kube->logs.is_ending; i++) {
        struct kube_fetch *fetch = &kube->logs.fetches[i];
        if (fetch->attempt.v != 0)
            continue;
        *fetch = (struct kube_fetch){.kube = kube, .attempt = attempt, .done = done};
        fetch->has_thread = pthread_create(&fetch->thread, NULL, fetch_run, fetch) == 0;
        if (!fetch->has_thread) { /* it is tried again after a pause, as others that fail */
            trouble_set(fetch, "no thread can be made");
            done_send(fetch);
        }
        return true;
    }
    return false;
}

enum fetch_result kube_fetch_take(struct kube *kube, struct attempt_id attempt, char trouble[200])
{
    struct kube_fetch *fetch = NULL;
    for (size_t i = 0; i < KUBE_FETCHES_MAX && !kube->logs.is_ending; i++)
        if (kube->logs.fetches[i].attempt.v == attempt.v)
            fetch = &kube->logs.fetches[i];
    trouble[0] = '\0';
    if (!fetch) /* the engine ends, which waits for it */
        return FETCH_FAILED;
    if (fetch->has_thread)
        pthread_join(fetch->thread, NULL);
    snprintf(trouble, sizeof fetch->trouble, "%s", fetch->trouble);
    fetch->attempt.v = 0;
    return fetch->result;
}

int kube_fetches_open(struct kube *kube, struct err *err)
{
    kube->logs.fetch_end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return kube->logs.fetch_end < 0 ? err_errno(err, errno, "make a descriptor") : 0;
}

void kube_fetches_end(struct kube *kube)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&kube->lock);
    kube->logs.is_ending = true;
    pthread_mutex_unlock(&kube->lock);
    while (kube->logs.fetch_end >= 0 && write(kube->logs.fetch_end, &one, sizeof one) < 0 &&
           errno == EINTR)
        continue;
    for (size_t i = 0; i < KUBE_FETCHES_MAX; i++)
        if (kube->logs.fetches[i].attempt.v != 0 && kube->logs.fetches[i].has_thread)
            pthread_join(kube->logs.fetches[i].thread, NULL);
    if (kube->logs.fetch_end >= 0)
        close(kube->logs.fetch_end);
}
