/* exec.c — programs beside a task's own: `exec` of the API server, by v5.channel.k8s.io.
 *
 * A message's first byte is its channel. skep-init gives the program the task's environment
 * (init/beside.c); the node's runtime makes the terminal. Each program has a thread here, between
 * the connection and the caller's descriptors. When the connection is closed a program with a
 * terminal is hung up by its runtime; others end when they read or write next.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/byte_flow.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_object.h"
#include "engine/kubernetes/state.h"
#include "engine/kubernetes/upgrade.h"
#include "init/layout.h"
#include "sys/clock.h"
#include "sys/websocket.h"

enum channel {
    CHANNEL_INPUT,
    CHANNEL_OUTPUT,
    CHANNEL_ERROR,
    CHANNEL_STATUS,
    CHANNEL_RESIZE,
    CHANNEL_CLOSE = 255, /* of the channel that the second byte names */
};

enum {
    PART_BYTES = 16 << 10,
    WAITING_MAX = 256 << 10, /* towards either side: then the other one waits */
    CODE_MAX = 255,
    CODE_KILLED = 137,
    CODE_BROKEN = 126,
    CODE_LOST = 255, /* as ssh has it */
    TASK_END_S = 2,
};

struct way { /* what comes from the program, and its caller has not taken yet */
    int fd;  /* -1: nobody takes it */
    struct byte_flow flow;
};

struct kube_exec {
    struct engine_exec exec; /* first; the caller's */
    struct kube *kube;
    struct attempt_id attempt;
    pthread_t thread;
    struct kube_upgrade *upgrade;
    struct websocket *websocket;
    int ours[3];        /* our ends of what the caller has: input, output, error; -1: none */
    int wake;           /* of the thread, by an operation */
    int input;          /* the first of `ours`, while something may come */
    struct way ways[2]; /* output, error */
    bool is_held;       /* the connection has not been read, as its bytes were not taken */
    bool has_terminal;
    bool has_code;        /* the server has told it */
    int code;             /* its exit code */
    pthread_mutex_t lock; /* of what follows */
    bool is_ending, has_size, is_over;
    uint16_t rows, columns;
};

static void descriptor_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void told(int fd)
{
    const uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

/* --- the connection --- */

static size_t way_left(const struct way *way)
{
    return way->fd < 0 ? 0 : byte_flow_left(&way->flow);
}

static size_t bytes_left(const struct kube_exec *exec)
{
    return way_left(&exec->ways[0]) + way_left(&exec->ways[1]);
}

static ssize_t on_read(void *context, void *bytes, size_t size)
{
    struct kube_exec *exec = context;
    exec->is_held = bytes_left(exec) >= WAITING_MAX;
    if (exec->is_held)
        return WEBSOCKET_LATER;
    return kube_upgrade_read(exec->upgrade, bytes, size);
}

static ssize_t on_write(void *context, const void *bytes, size_t size)
{
    return kube_upgrade_write(((struct kube_exec *)context)->upgrade, bytes, size);
}

/* {"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"7"}]}} */
static int code_of(struct text status)
{
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(status, DOC_JSON, &arena, &problems);
    const struct doc *causes = doc_get_list(doc_get(doc, "details"), "causes");
    int64_t code;
    if (strcmp(object_string(doc, "status"), "Success") == 0)
        return 0;
    for (size_t i = 0; i < causes->as.list.count; i++)
        if (strcmp(object_string(causes->as.list.items[i], "reason"), "ExitCode") == 0 &&
            text_to_int64(text_of(object_string(causes->as.list.items[i], "message")), &code) &&
            code >= 0 && code <= CODE_MAX)
            return (int)code;
    return CODE_BROKEN;
}

static void on_message(void *context, bool is_text, struct text message)
{
    struct kube_exec *exec = context;
    (void)is_text;
    if (message.length == 0)
        return;
    const enum channel channel = (enum channel)(unsigned char)message.at[0];
    const struct text bytes = {message.at + 1, message.length - 1};
    if (channel == CHANNEL_STATUS && bytes.length > 0) {
        exec->has_code = true;
        exec->code = code_of(bytes);
    } else if ((channel == CHANNEL_OUTPUT || channel == CHANNEL_ERROR) &&
               exec->ways[channel - CHANNEL_OUTPUT].fd >= 0) {
        buf_text(&exec->ways[channel - CHANNEL_OUTPUT].flow.bytes, bytes);
    }
}

static void channel_send(struct kube_exec *exec, enum channel channel, struct text bytes)
{
    cleanup_buf struct buf message = BUF_INIT;
    buf_char(&message, (char)channel);
    buf_text(&message, bytes);
    websocket_send(exec->websocket, false, buf_as_text(&message));
}

static void size_send(struct kube_exec *exec)
{
    char text[64];
    pthread_mutex_lock(&exec->lock);
    const bool has_size = exec->has_size;
    snprintf(text, sizeof text, "{\"Width\":%u,\"Height\":%u}", exec->columns, exec->rows);
    exec->has_size = false;
    pthread_mutex_unlock(&exec->lock);
    if (has_size)
        channel_send(exec, CHANNEL_RESIZE, text_of(text));
}

/* --- the caller's descriptors --- */

static void way_write(struct way *way)
{
    while (way_left(way) > 0) {
        const struct text front = byte_flow_front(&way->flow);
        const ssize_t written = send(way->fd, front.at, front.length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            return;
        if (written < 0)
            way->fd = -1; /* its owner closes it */
        else
            byte_flow_advance(&way->flow, (size_t)written);
    }
}

static void input_read(struct kube_exec *exec)
{
    char bytes[PART_BYTES];
    const ssize_t got = recv(exec->input, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) {
        channel_send(exec, CHANNEL_INPUT, (struct text){bytes, (size_t)got});
        return;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    channel_send(exec, CHANNEL_CLOSE, (struct text){"\0", 1});
    exec->input = -1;
}

/* --- the thread --- */

enum { WAIT_CONNECTION, WAIT_WAKE, WAIT_INPUT, WAIT_OUTPUT, WAIT_ERROR, WAITS };

/* A descriptor of which nothing is wanted is left out: that its other side has gone would be told
 * for ever. */
static void waits_make(const struct kube_exec *exec, struct pollfd waits[WAITS])
{
    const short connection = websocket_events(exec->websocket, !exec->is_held);
    for (size_t i = 0; i < WAITS; i++)
        waits[i] = (struct pollfd){.fd = -1};
    waits[WAIT_WAKE] = (struct pollfd){.fd = exec->wake, .events = POLLIN};
    if (connection)
        waits[WAIT_CONNECTION] =
            (struct pollfd){.fd = kube_upgrade_fd(exec->upgrade), .events = connection};
    if (exec->input >= 0 && websocket_queued(exec->websocket) < WAITING_MAX)
        waits[WAIT_INPUT] = (struct pollfd){.fd = exec->input, .events = POLLIN};
    for (int i = 0; i < 2; i++)
        if (way_left(&exec->ways[i]) > 0)
            waits[WAIT_OUTPUT + i] = (struct pollfd){.fd = exec->ways[i].fd, .events = POLLOUT};
}

/* Until something can be done; or only at what can be done now. */
static void wait_for_any(struct kube_exec *exec, bool waits_for_it)
{
    struct pollfd waits[WAITS];
    waits_make(exec, waits);
    const int got = poll(waits, WAITS, waits_for_it ? exec->kube->ping_ms : 0);
    /* balancers on the way cut what is quiet */
    if (got == 0 && waits_for_it && !websocket_is_behind(exec->websocket))
        websocket_ping(exec->websocket);
    if (got <= 0)
        return;
    uint64_t count;
    if (waits[WAIT_WAKE].revents && read(exec->wake, &count, sizeof count) < 0)
        count = 0; /* somebody was faster: there is nothing to read any more */
    if (waits[WAIT_INPUT].revents)
        input_read(exec);
}

static bool is_ending(struct kube_exec *exec)
{
    pthread_mutex_lock(&exec->lock);
    const bool is = exec->is_ending;
    pthread_mutex_unlock(&exec->lock);
    return is;
}

static void *exec_run(void *context)
{
    struct kube_exec *exec = context;
    bool is_open = true;
    while (is_open && !is_ending(exec)) {
        size_send(exec);
        is_open = websocket_work(exec->websocket);
        for (size_t i = 0; i < 2; i++)
            way_write(&exec->ways[i]);
        /* the connection may hold more, of which poll would not tell */
        const bool can_read = websocket_wants_turn(exec->websocket) ||
                              (exec->is_held && bytes_left(exec) < WAITING_MAX);
        if (is_open)
            wait_for_any(exec, !can_read);
    }
    /* what came last is the caller's, too */
    while (bytes_left(exec) > 0 && !is_ending(exec)) {
        struct pollfd waits[] = {
            {.fd = exec->wake, .events = POLLIN},
            {.fd = way_left(&exec->ways[0]) ? exec->ways[0].fd : -1, .events = POLLOUT},
            {.fd = way_left(&exec->ways[1]) ? exec->ways[1].fd : -1, .events = POLLOUT}};
        poll(waits, COUNT_OF(waits), -1);
        for (size_t i = 0; i < 2; i++)
            way_write(&exec->ways[i]);
    }
    for (size_t i = 0; i < 2; i++)
        if (exec->ways[i].fd >= 0)
            shutdown(exec->ways[i].fd, SHUT_WR);
    pthread_mutex_lock(&exec->lock);
    exec->is_over = true;
    pthread_mutex_unlock(&exec->lock);
    told(exec->exec.end);
    return NULL;
}

/* --- the operations --- */

static void exec_resize(struct engine_exec *own, uint16_t rows, uint16_t columns)
{
    struct kube_exec *exec = (struct kube_exec *)own;
    pthread_mutex_lock(&exec->lock);
    exec->rows = rows;
    exec->columns = columns;
    exec->has_size = true;
    pthread_mutex_unlock(&exec->lock);
    told(exec->wake);
}

/* Waits a short while for the word of its end. */
static bool task_has_ended(struct kube *kube, struct attempt_id attempt)
{
    const struct timespec until = clock_moment(clock_monotonic_ms() + TASK_END_S * 1000);
    bool is = false;
    int waited = 0;
    pthread_mutex_lock(&kube->lock);
    while (!is && waited == 0) {
        const struct kube_task *task = kube_task_find(kube, attempt);
        is = !task || task->state >= TASK_ENDED || task->is_kill_wanted;
        if (!is)
            waited = pthread_cond_timedwait(&kube->synced, &kube->lock, &until);
    }
    pthread_mutex_unlock(&kube->lock);
    return is;
}

static bool exec_ended(struct engine_exec *own, struct engine_exec_end *end)
{
    struct kube_exec *exec = (struct kube_exec *)own;
    pthread_mutex_lock(&exec->lock);
    const bool is_over = exec->is_over;
    pthread_mutex_unlock(&exec->lock);
    if (!is_over)
        return false;
    *end = (struct engine_exec_end){.code = exec->has_code ? exec->code : CODE_LOST};
    if (!exec->has_code || exec->code == CODE_KILLED)
        end->is_task_ended = task_has_ended(exec->kube, exec->attempt);
    end->is_lost = !exec->has_code && !end->is_task_ended;
    return true;
}

/* Nothing of it runs here any more. */
static void exec_release(struct kube_exec *exec)
{
    struct engine_exec *own = &exec->exec;
    websocket_free(exec->websocket);
    kube_upgrade_close(exec->upgrade);
    if (own->input == own->output)
        own->input = -1;
    int *const descriptors[] = {&own->input,    &own->output,   &own->error,    &own->end,
                                &exec->ours[0], &exec->ours[1], &exec->ours[2], &exec->wake};
    for (size_t i = 0; i < COUNT_OF(descriptors); i++)
        descriptor_close(descriptors[i]);
    for (size_t i = 0; i < COUNT_OF(exec->ways); i++)
        byte_flow_release(&exec->ways[i].flow);
    pthread_mutex_destroy(&exec->lock);
    mem_free(exec);
}

static void exec_free(struct engine_exec *own)
{
    struct kube_exec *exec = (struct kube_exec *)own;
    pthread_mutex_lock(&exec->lock);
    exec->is_ending = true;
    pthread_mutex_unlock(&exec->lock);
    told(exec->wake);
    pthread_join(exec->thread, NULL);
    websocket_close(exec->websocket, WEBSOCKET_CLOSE_NORMAL, "");
    websocket_work(exec->websocket);
    exec_release(exec);
}

/* --- its start --- */

static void words_write(const char *const *words, struct buf *path)
{
    for (size_t i = 0; words[i]; i++) {
        buf_string(path, "&command=");
        object_encode(path, words[i]);
    }
}

static void path_write(const struct kube *kube, struct attempt_id attempt, const char *const *begin,
                       const struct engine_exec_request *request, struct buf *path)
{
    char name[OBJECT_NAME_SIZE];
    object_name(name, kube->settings.instance, attempt);
    buf_format(path,
               "/api/v1/namespaces/%s/pods/%s/exec?container=%s&stdin=true&stdout=true&stderr=%s"
               "&tty=%s",
               kube->settings.space, name, POD_CONTAINER_TASK,
               request->has_terminal ? "false" : "true", request->has_terminal ? "true" : "false");
    words_write(begin, path);
    words_write(request->argv, path);
}

static int pair_make(int *theirs, int *ours, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return err_errno(err, errno, "make a pair of sockets");
    *theirs = ends[0];
    *ours = ends[1];
    return 0;
}

static int descriptors_make(struct kube_exec *exec, struct err *err)
{
    struct engine_exec *own = &exec->exec;
    own->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    exec->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (own->end < 0 || exec->wake < 0)
        return err_errno(err, errno, "make a descriptor");
    int code = pair_make(&own->input, &exec->ours[0], err);
    if (code == 0 && !exec->has_terminal)
        code = pair_make(&own->output, &exec->ours[1], err);
    if (code == 0 && !exec->has_terminal)
        code = pair_make(&own->error, &exec->ours[2], err);
    if (exec->has_terminal)
        own->output = own->input;
    exec->input = exec->ours[0];
    exec->ways[0].fd = exec->has_terminal ? exec->ours[0] : exec->ours[1];
    exec->ways[1].fd = exec->ours[2];
    return code;
}

static int exec_start(struct kube_exec *exec, const char *const *begin,
                      const struct engine_exec_request *request, struct err *err)
{
    cleanup_buf struct buf path = BUF_INIT;
    const struct websocket_ops ops = {exec, on_read, on_write, on_message};
    const struct kube *kube = exec->kube;
    path_write(kube, exec->attempt, begin, request, &path);
    int code = kube_upgrade_open(kube->client, &kube->access, buf_cstr(&path), "v5.channel.k8s.io",
                                 &exec->upgrade, err);
    if (code < 0)
        return code;
    exec->websocket = websocket_new(&ops, true);
    if (pthread_create(&exec->thread, NULL, exec_run, exec) != 0)
        return err_fail(err, ERR_UNAVAILABLE, "", "no thread can be made");
    return 0;
}

int kube_task_check(struct kube *kube, struct attempt_id attempt, struct err *err)
{
    pthread_mutex_lock(&kube->lock);
    const struct kube_task *task = kube_task_find(kube, attempt);
    int code = 0;
    if (!task || task->state == TASK_FORGOTTEN)
        code = err_fail(err, ERR_NOT_FOUND, "", "there is no attempt %llu",
                        (unsigned long long)attempt.v);
    else if (task->state != TASK_RUNS || task->is_kill_wanted)
        code = err_fail(err, ERR_CONFLICT, "", "the task does not run");
    pthread_mutex_unlock(&kube->lock);
    return code;
}

int kube_exec_words(struct kube *kube, struct attempt_id attempt, const char *const *begin,
                    const struct engine_exec_request *request, struct engine_exec **out,
                    struct err *err)
{
    static const struct engine_exec_ops ops = {exec_resize, exec_ended, exec_free};
    struct kube_exec *exec = mem_zero(1, sizeof *exec);
    exec->exec =
        (struct engine_exec){.ops = &ops, .input = -1, .output = -1, .error = -1, .end = -1};
    exec->kube = kube;
    exec->attempt = attempt;
    exec->ours[0] = exec->ours[1] = exec->ours[2] = exec->wake = -1;
    exec->has_terminal = exec->has_size = request->has_terminal;
    exec->rows = request->rows;
    exec->columns = request->columns;
    pthread_mutex_init(&exec->lock, NULL);
    int code = descriptors_make(exec, err);
    if (code == 0)
        code = exec_start(exec, begin, request, err);
    if (code < 0)
        exec_release(exec);
    else
        *out = &exec->exec;
    return code;
}

int kube_exec(struct engine *engine, struct attempt_id attempt,
              const struct engine_exec_request *request, struct engine_exec **out, struct err *err)
{
    struct kube *kube = (struct kube *)engine;
    const char *const begin[] = {LAYOUT_INIT, LAYOUT_BESIDE,
                                 request->has_terminal ? request->terminal : "-", NULL};
    int code = kube_task_check(kube, attempt, err);
    return code < 0 ? code : kube_exec_words(kube, attempt, begin, request, out, err);
}
