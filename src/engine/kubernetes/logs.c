/* logs.c — brings the logs of tasks from their kubelets into the store (log_store.h).
 *
 * One stream follows the log of each container that runs, for as long as it runs. A stream that
 * breaks begins again, and what comes twice is passed over. Where something is missing, because the
 * kubelet has rotated its file twice meanwhile, the stream is ended and what is missing is fetched
 * from the pod (fetch.c); then the stream begins again. The end of a task is told when its log is
 * whole, or after KUBE_LOG_PATIENCE_MS: docs/rfc/0017-kubernetes-engine.md, "Logs".
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/pod_object.h"
#include "engine/kubernetes/state.h"
#include "engine/local/log_watch.h"
#include "engine/local/logs.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/mailbox.h"

enum {
    STATUS_SERVER = 500,
    FAILURES_MAX = 3,          /* of the kubelet of a task that has ended */
    FETCH_FAILURES_MAX = 5,    /* then what is missing is a hole */
    PAUSE_ENDED_MAX_MS = 5000, /* its end waits for its log */
};

static void path_of(const struct kube *kube, struct attempt_id attempt,
                    char path[LOG_STORE_PATH_MAX])
{
    log_store_path(kube->logs.directory, attempt, path);
}

/* --- the streams; on the client's thread, which alone drops tasks --- */

/* One that is not forgotten. */
static struct kube_task *task_followed(struct kube *kube, uint64_t key)
{
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task && task->state == TASK_FORGOTTEN)
        task = NULL;
    pthread_mutex_unlock(&kube->lock);
    return task;
}

static void use_note(struct kube *kube, struct kube_task *task)
{
    pthread_mutex_lock(&kube->lock);
    task->log.use = task->log.store->use;
    task->log.use_ms = clock_monotonic_ms();
    pthread_mutex_unlock(&kube->lock);
}

/* skep-init waits for the word that all has been fetched, as a line says that a task can write as
 * well. */
static bool is_waiting(const struct kube_task *task)
{
    return task->log.store->is_awaited && task->state < TASK_ENDED &&
           task->log.fetch_failures < FETCH_FAILURES_MAX;
}

/* Something must be fetched before more is read. */
static bool is_missed(const struct kube_task *task)
{
    return task->log.store->is_torn || is_waiting(task);
}

static bool log_bytes(void *context, uint64_t key, struct text bytes)
{
    struct kube *kube = context;
    struct kube_task *task = task_followed(kube, key);
    char path[LOG_STORE_PATH_MAX];
    struct err err = {0};
    if (!task)
        return false;
    const uint64_t use_at_ms = task->log.store->use_at_ms;
    path_of(kube, task->attempt, path);
    const int code = log_store_take(task->log.store, path, kube->logs.segment_bytes, bytes, &err);
    if (code < 0 && !task->log.is_failing) /* a full disk is told once, not with every piece */
        log_error("engine", "kubernetes: the log of attempt %llu: %s", (unsigned long long)key,
                  err.text);
    task->log.is_failing = code < 0;
    if (task->log.store->use_at_ms != use_at_ms)
        use_note(kube, task);
    return !is_missed(task);
}

static void log_done(void *context, uint64_t key, const struct kube_answer *answer);

static void log_send(struct kube *kube, struct kube_task *task, bool takes_holes)
{
    struct kube_call call = {.method = "GET",
                             .context = kube,
                             .key = task->attempt.v,
                             .bytes = log_bytes,
                             .done = log_done};
    char name[OBJECT_NAME_SIZE];
    object_name(name, kube->settings.instance, task->attempt);
    buf_format(&call.path, "/api/v1/namespaces/%s/pods/%s/log?container=%s&follow=true",
               kube->settings.space, name, POD_CONTAINER_TASK);
    task->log.again_ms = 0;
    /* nothing can be fetched from a pod that is over */
    log_store_again(task->log.store, takes_holes || task->state >= TASK_ENDED ||
                                         task->log.fetch_failures >= FETCH_FAILURES_MAX);
    kube_client_send(kube->client, &call, 0);
}

static void log_ask(struct kube *kube, struct kube_task *task)
{
    task->log.is_open = true;
    task->log.store = mem_zero(1, sizeof *task->log.store);
    kube->logs.streams++;
    log_send(kube, task, false);
}

/* No stream of it is open any more, nor will be. */
static void log_close(struct kube *kube, struct kube_task *task)
{
    kube->logs.streams--;
    task->log.is_open = false;
    log_store_task_free(task->log.store);
    task->log.store = NULL;
}

static bool log_waits(const struct kube_task *task)
{
    const struct kube_log *log = &task->log;
    return task->state <= TASK_ENDED && log->is_wanted && !log->is_open && !log->is_done;
}

/* One more may have its turn: first whose end waits for it. */
static void log_next(struct kube *kube)
{
    struct kube_task *next = NULL;
    if (!kube->logs.has_waiting || kube->logs.streams >= KUBE_LOG_STREAMS_MAX)
        return;
    for (size_t i = 0; i < kube->tasks.count && !(next && next->log.is_held); i++) {
        struct kube_task *task = kube->tasks.items[i];
        if (log_waits(task) && (!next || task->log.is_held))
            next = task;
    }
    kube->logs.has_waiting = next != NULL;
    if (next)
        log_ask(kube, next);
}

void task_log_want(struct kube *kube, struct kube_task *task)
{
    if (!kube->logs.directory || task->log.is_wanted)
        return;
    task->log.is_wanted = true;
    if (kube->is_listed && kube->logs.streams < KUBE_LOG_STREAMS_MAX)
        log_ask(kube, task);
    else
        kube->logs.has_waiting = true;
}

void logs_listed(struct kube *kube)
{
    for (size_t i = 0; i < kube->tasks.count && kube->logs.streams < KUBE_LOG_STREAMS_MAX; i++) {
        struct kube_task *task = kube->tasks.items[i];
        if (log_waits(task))
            log_ask(kube, task);
    }
}

void task_log_leave(struct kube *kube, struct kube_task *task)
{
    char path[LOG_STORE_PATH_MAX];
    task->log.is_done = true;
    task->log.is_held = false;
    if (task->log.again_ms > 0 || task->log.fetch_turn > 0) { /* who comes next is seen later */
        task->log.again_ms = 0;
        task->log.fetch_turn = 0;
        log_close(kube, task);
    }
    if (!kube->logs.directory)
        return;
    path_of(kube, task->attempt, path);
    log_store_wake(path);
}

void task_log_begin(const struct kube *kube, struct attempt_id attempt, const char *job)
{
    struct err err = {0};
    if (kube->logs.directory && log_store_begin(kube->logs.directory, attempt, job, &err) < 0)
        log_error("engine", "kubernetes: %s: attempt %llu will have no log", err.text,
                  (unsigned long long)attempt.v);
}

void task_log_tails(const struct kube *kube, struct attempt_id attempt, struct buf *user,
                    struct buf *platform)
{
    char path[LOG_STORE_PATH_MAX];
    if (!kube->logs.directory)
        return;
    path_of(kube, attempt, path);
    logs_tail(path, LOG_ALL, KUBE_LOG_TAIL_MAX, user);
    logs_tail(path, LOG_RUNTIME, KUBE_PLATFORM_TAIL_MAX, platform);
}

static void log_finish(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    const bool is_awaited = task->log.is_held;
    task_log_leave(kube, task);
    if (is_awaited && kube->is_listed)
        kube_task_tell(task, tells);
}

/* Was that all of it? */
static bool is_over(const struct kube_task *task, const struct kube_answer *answer)
{
    if (task->log.store->is_whole)
        return true;
    if (task->state < TASK_ENDED)
        return false;
    /* a kubelet ends the stream when the container has ended; what it refuses it has no more */
    if (answer->status >= STATUS_SERVER || answer->is_right_missing)
        return task->log.failures >= FAILURES_MAX;
    return answer->status == 200 || answer->status == 400 || answer->status == 403 ||
           answer->status == 404;
}

static void fetch_ask(struct kube *kube, struct kube_task *task);

static void pause_over(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    (void)answer;
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    /* an earlier pause may have been cut short */
    const bool is_due =
        task && task->log.again_ms > 0 && clock_monotonic_ms() >= task->log.again_ms;
    if (is_due && is_waiting(task)) /* all that its kubelet has is known */
        fetch_ask(kube, task);
    else if (is_due)
        log_send(kube, task, false);
    log_next(kube);
    pthread_mutex_unlock(&kube->lock);
}

/* It is asked for again, and keeps its turn: later and later where its kubelet does not answer, as
 * the logs of all tasks of a node fail at once. */
static void log_pause(struct kube *kube, struct kube_task *task)
{
    const struct kube_call call = {.context = kube, .key = task->attempt.v, .done = pause_over};
    uint32_t pause_ms = feed_backoff_ms(task->log.failures, kube->chance++);
    if (task->state == TASK_ENDED && pause_ms > PAUSE_ENDED_MAX_MS)
        pause_ms = PAUSE_ENDED_MAX_MS;
    task->log.again_ms = clock_monotonic_ms() + pause_ms;
    kube->logs.pauses++;
    kube_client_send(kube->client, &call, pause_ms);
}

/* --- what is missing --- */

static void fetch_done(void *context, uint64_t key, const struct kube_answer *answer);

static void fetch_ask(struct kube *kube, struct kube_task *task)
{
    task->log.again_ms = 0;
    task->log.fetch_turn = 0;
    if (task->state >= TASK_ENDED)
        log_send(kube, task, true);
    else if (!kube_fetch_start(kube, task->attempt, fetch_done))
        task->log.fetch_turn = ++kube->logs.fetch_turns;
}

/* A turn is free: for whoever has waited longest. */
static void fetch_next(struct kube *kube)
{
    struct kube_task *next = NULL;
    for (size_t i = 0; i < kube->tasks.count; i++) {
        struct kube_task *task = kube->tasks.items[i];
        if (task->log.fetch_turn > 0 && (!next || task->log.fetch_turn < next->log.fetch_turn))
            next = task;
    }
    if (next)
        fetch_ask(kube, next);
}

/* Nothing more comes, or its turn goes to another. */
static void log_over(struct kube *kube, struct kube_task *task, struct tells *tells)
{
    log_close(kube, task);
    if (task->state != TASK_FORGOTTEN && !task->log.is_done)
        log_finish(kube, task, tells);
}

/* It failed; or skep-init does not wait, although a line says so: then all is there, and comes
 * within the turn of a fetch or fills it. */
static bool is_vain(const struct kube_task *task, enum fetch_result result)
{
    return result == FETCH_FAILED || (task->log.store->is_awaited && result != FETCH_PART);
}

/* Whatever a task writes that runs, its fetches have pauses between them. */
static void fetched(struct kube *kube, struct kube_task *task, enum fetch_result result,
                    const char *trouble, struct tells *tells)
{
    log_store_changed(task->log.store);
    if (task->state == TASK_FORGOTTEN || task->log.is_done || result == FETCH_WHOLE) {
        log_over(kube, task, tells);
        return;
    }
    const bool is_in_vain = is_vain(task, result);
    const bool is_some = result == FETCH_PART || result == FETCH_LITTLE;
    task->log.fetch_failures = is_in_vain ? task->log.fetch_failures + 1 : 0;
    if (task->log.fetch_failures == FETCH_FAILURES_MAX)
        log_warning("engine",
                    "kubernetes: what the kubelet has no more of the log of attempt %llu cannot be "
                    "fetched from its pod: %s",
                    (unsigned long long)task->attempt.v,
                    trouble[0] ? trouble : "its log says that it has ended, and it has not");
    task->log.failures = is_in_vain ? task->log.fetch_failures : 1;
    if (is_in_vain || (is_some && task->state < TASK_ENDED))
        log_pause(kube, task);
    else /* what the pod does not have either is lost */
        log_send(kube, task, true);
}

static void fetch_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    char trouble[200];
    (void)answer;
    kube_enter(kube, &tells);
    const struct attempt_id attempt = {key};
    const enum fetch_result result = kube_fetch_take(kube, attempt, trouble);
    struct kube_task *task = kube_task_find(kube, attempt);
    if (task)
        fetched(kube, task, result, trouble, &tells);
    else
        kube->logs.streams--;
    fetch_next(kube);
    log_next(kube);
    kube_leave(kube, &tells);
}

static void log_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    kube_enter(kube, &tells);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    const bool is_wanted = task && task->state != TASK_FORGOTTEN && !task->log.is_done;
    if (task && !is_missed(task))
        task->log.failures = answer->status == 200 ? 1 : task->log.failures + 1;
    if (is_wanted && is_missed(task))
        fetch_ask(kube, task);
    else if (is_wanted && !is_over(task, answer))
        log_pause(kube, task);
    else if (task)
        log_over(kube, task, &tells);
    else
        kube->logs.streams--;
    log_next(kube);
    kube_leave(kube, &tells);
}

/* --- ends --- */

static void patience_over(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    (void)answer;
    kube_enter(kube, &tells);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task && task->log.is_held) {
        log_warning("engine", "kubernetes: the end of the log of attempt %llu does not come",
                    (unsigned long long)key);
        log_finish(kube, task, &tells);
    }
    kube_leave(kube, &tells);
}

bool task_log_hold(struct kube *kube, struct kube_task *task)
{
    if (!task->log.is_wanted || task->log.is_done) {
        task_log_leave(kube, task);
        return false;
    }
    task->log.is_held = true;
    const struct kube_call call = {.context = kube, .key = task->attempt.v, .done = patience_over};
    kube_client_send(kube->client, &call, KUBE_LOG_PATIENCE_MS);
    if (task->log.again_ms > 0) /* its pause may be longer than that */
        log_send(kube, task, false);
    else if (task->log.fetch_turn > 0)
        fetch_ask(kube, task);
    log_next(kube);
    return true;
}

/* --- readers; any thread --- */

/* Has its log ended? One that nothing is known of has. */
static bool is_ended(struct kube *kube, struct attempt_id attempt)
{
    pthread_mutex_lock(&kube->lock);
    const struct kube_task *task = kube_task_find(kube, attempt);
    const bool is = !task || task->log.is_done || task->state == TASK_FORGOTTEN ||
                    (task->state == TASK_ENDED && !task->log.is_held);
    pthread_mutex_unlock(&kube->lock);
    return is;
}

ssize_t kube_log_read(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                      uint64_t *offset, char *bytes, size_t size, struct log_part *part,
                      struct err *err)
{
    struct kube *kube = (struct kube *)engine;
    char path[LOG_STORE_PATH_MAX];
    if (!kube->logs.directory)
        return engine_need(engine, ENGINE_CAN_LOG, err);
    path_of(kube, attempt, path);
    const bool is_over = is_ended(kube, attempt); /* before: what is written then is read */
    const ssize_t got = logs_read(path, stream, offset, bytes, size, part, err);
    part->is_ended = is_over;
    return got;
}

static bool is_use_known(const struct kube_task *task)
{
    return task->log.use_ms > 0 && clock_monotonic_ms() - task->log.use_ms < KUBE_USE_OLD_MS;
}

int kube_stats(struct engine *engine, struct attempt_id attempt, struct engine_stats *stats,
               struct err *err)
{
    struct kube *kube = (struct kube *)engine;
    pthread_mutex_lock(&kube->lock);
    const struct kube_task *task = kube_task_find(kube, attempt);
    const bool is_running = task && task->state == TASK_RUNS;
    const bool has_use = is_running && is_use_known(task);
    *stats = (struct engine_stats){.has_only_gpus = !has_use};
    if (has_use)
        *stats = (struct engine_stats){.cpu_ns = task->log.use.cpu_ns,
                                       .memory_bytes = task->log.use.memory_bytes,
                                       .io_read_bytes = task->log.use.read_bytes,
                                       .io_write_bytes = task->log.use.written_bytes,
                                       .pids = task->log.use.pids};
    const bool has_gpus = is_running && kube_task_gpus_add(kube, task, stats);
    pthread_mutex_unlock(&kube->lock);
    return has_use || has_gpus
               ? 0
               : err_fail(err, ERR_NOT_FOUND, "", "what attempt %llu uses is not known now",
                          (unsigned long long)attempt.v);
}

int kube_log_time(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                  int64_t at_ms, uint64_t *offset, struct err *err)
{
    struct kube *kube = (struct kube *)engine;
    char path[LOG_STORE_PATH_MAX];
    if (!kube->logs.directory)
        return engine_need(engine, ENGINE_CAN_LOG, err);
    path_of(kube, attempt, path);
    return logs_time(path, stream, at_ms, offset, err);
}

int kube_log_watch(struct engine *engine, struct attempt_id attempt, enum log_stream stream,
                   struct err *err)
{
    struct kube *kube = (struct kube *)engine;
    char path[LOG_STORE_PATH_MAX];
    (void)stream; /* one folder holds all of them */
    if (!kube->logs.directory)
        return engine_need(engine, ENGINE_CAN_FOLLOW, err);
    if (!kube->logs.watch)
        return err_fail(err, ERR_UNAVAILABLE, "", "logs cannot be watched here");
    path_of(kube, attempt, path);
    return log_watch_add(kube->logs.watch, path, err);
}

/* --- retention: a thread of its own, as the logs of many tasks take long to measure --- */

/* A task that is made now comes before its folder, so that no folder is taken for a dead one's.
 * Before the first list nobody knows which tasks there are. */
static bool is_live(void *context, struct attempt_id attempt)
{
    struct kube *kube = context;
    pthread_mutex_lock(&kube->lock);
    const bool is = !kube->is_listed || kube_task_find(kube, attempt) != NULL;
    pthread_mutex_unlock(&kube->lock);
    return is;
}

static void *logs_collect(void *context)
{
    struct kube *kube = context;
    struct watcher *collector = &kube->logs.collector;
    int64_t due_ms = clock_monotonic_ms() + KUBE_COLLECT_MS;
    pthread_mutex_lock(&collector->lock);
    while (!collector->is_ending) {
        if (watcher_await(collector, due_ms) || clock_monotonic_ms() < due_ms)
            continue;
        pthread_mutex_unlock(&collector->lock);
        const struct log_retention retention = {.room_bytes = kube->logs.room_bytes,
                                                .keep_s = kube->logs.keep_s,
                                                .now_s = kube->sink.trusted_ms(kube->sink.context) /
                                                         1000};
        log_store_collect(kube->logs.directory, &retention, is_live, kube);
        due_ms = clock_monotonic_ms() + KUBE_COLLECT_MS;
        pthread_mutex_lock(&collector->lock);
    }
    pthread_mutex_unlock(&collector->lock);
    return NULL;
}

int logs_start(struct kube *kube, struct err *err)
{
    if (!kube->logs.directory)
        return 0;
    return watcher_start(&kube->logs.collector, logs_collect, kube,
                         "the thread that removes old logs", err);
}

int logs_open(struct kube *kube, const char *directory, struct err *err)
{
    struct err why = {0};
    const char *logs = arena_format(&kube->arena, "%s/logs", directory);
    const char *const folders[] = {directory, logs};
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        if (mkdir(folders[i], 0700) < 0 && errno != EEXIST)
            return err_errno(err, errno, "make %s", folders[i]);
    kube->logs.directory = logs;
    kube->given_up = arena_format(&kube->arena, "%s/given-up", directory);
    kube->secret_notes = arena_format(&kube->arena, "%s/secrets", directory);
    secrets_noted_read(kube);
    if (kube->settings.network.mode == KUBE_NETWORK_POD)
        kube->address_notes = arena_format(&kube->arena, "%s/addresses", directory);
    kube->logs.watch = log_watch_new(&why);
    if (!kube->logs.watch)
        log_warning("engine", "kubernetes: %s: who follows a log looks from time to time",
                    why.text);
    kube->engine.capabilities |=
        ENGINE_CAN(ENGINE_CAN_LOG) | ENGINE_CAN(ENGINE_CAN_FOLLOW) | ENGINE_CAN(ENGINE_CAN_STATS);
    return 0;
}

void logs_close(struct kube *kube)
{
    watcher_stop(&kube->logs.collector);
    watcher_release(&kube->logs.collector);
    log_watch_free(kube->logs.watch);
}
