/* logs.c — brings the logs of tasks from their kubelets into the store (log_store.h).
 *
 * One stream follows the log of each container that runs, for as long as it runs: so nothing is
 * lost when the kubelet rotates its file. A stream that breaks begins again, and what comes twice
 * is passed over. The end of a task is told when its log is whole, or after KUBE_LOG_PATIENCE_MS.
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
#include "sys/log.h"

enum {
    STATUS_SERVER = 500,
    FAILURES_MAX = 3,    /* of the kubelet of a task that has ended */
    PAUSE_MAX_MS = 5000, /* its end may come in the pause, and would wait for it */
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

static bool log_bytes(void *context, uint64_t key, struct text bytes)
{
    struct kube *kube = context;
    struct kube_task *task = task_followed(kube, key);
    char path[LOG_STORE_PATH_MAX];
    struct err err = {0};
    if (!task)
        return false;
    path_of(kube, task->attempt, path);
    const int code = log_store_take(&task->log.store, path, kube->logs.segment_bytes, bytes, &err);
    if (code < 0 && !task->log.is_failing) /* a full disk is told once, not with every piece */
        log_error("engine", "kubernetes: the log of attempt %llu: %s", (unsigned long long)key,
                  err.text);
    task->log.is_failing = code < 0;
    return true;
}

static void log_done(void *context, uint64_t key, const struct kube_answer *answer);

static void log_ask(struct kube *kube, struct kube_task *task, uint32_t delay_ms)
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
    task->log.is_open = true;
    kube->logs.streams++;
    kube_client_send(kube->client, &call, delay_ms);
}

/* One more may have its turn: first whose end waits for it. */
static void log_next(struct kube *kube)
{
    struct kube_task *next = NULL;
    if (kube->logs.streams >= KUBE_LOG_STREAMS_MAX)
        return;
    for (size_t i = 0; i < kube->tasks.count; i++) {
        struct kube_task *task = kube->tasks.items[i];
        const struct kube_log *log = &task->log;
        if (task->state <= TASK_ENDED && log->is_wanted && !log->is_open && !log->is_done &&
            (!next || (log->is_held && !next->log.is_held)))
            next = task;
    }
    if (next)
        log_ask(kube, next, 0);
}

void task_log_want(struct kube *kube, struct kube_task *task)
{
    if (!kube->logs.directory || task->log.is_wanted)
        return;
    task->log.is_wanted = true;
    if (kube->logs.streams < KUBE_LOG_STREAMS_MAX)
        log_ask(kube, task, 0);
}

void task_log_leave(struct kube *kube, struct kube_task *task)
{
    char path[LOG_STORE_PATH_MAX];
    task->log.is_done = true;
    task->log.is_held = false;
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
        kube_task_tell(kube, task, tells);
}

/* Was that all of it? */
static bool is_over(const struct kube_task *task, const struct kube_answer *answer)
{
    if (task->log.store.is_whole)
        return true;
    if (task->state < TASK_ENDED)
        return false;
    /* a kubelet ends the stream when the container has ended; what it refuses it has no more */
    if (answer->status >= STATUS_SERVER)
        return task->log.failures >= FAILURES_MAX;
    return answer->status == 200 || answer->status == 400 || answer->status == 403 ||
           answer->status == 404;
}

static void log_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    tells_init(&tells);
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    uint32_t delay_ms = 0;
    kube->logs.streams--;
    if (task) {
        task->log.is_open = false;
        log_store_again(&task->log.store);
        task->log.failures = answer->status == 200 ? 1 : task->log.failures + 1;
        delay_ms = feed_backoff_ms(task->log.failures, kube->chance++);
    }
    if (!task || task->state == TASK_FORGOTTEN || task->log.is_done)
        ;
    else if (is_over(task, answer))
        log_finish(kube, task, &tells);
    else
        log_ask(kube, task, delay_ms < PAUSE_MAX_MS ? delay_ms : PAUSE_MAX_MS);
    log_next(kube);
    pthread_mutex_unlock(&kube->lock);
    tells_post(kube, &tells);
}

/* --- ends --- */

static void patience_over(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    struct tells tells;
    (void)answer;
    tells_init(&tells);
    pthread_mutex_lock(&kube->lock);
    struct kube_task *task = kube_task_find(kube, (struct attempt_id){key});
    if (task && task->log.is_held) {
        log_warning("engine", "kubernetes: the end of the log of attempt %llu does not come",
                    (unsigned long long)key);
        log_finish(kube, task, &tells);
    }
    pthread_mutex_unlock(&kube->lock);
    tells_post(kube, &tells);
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

/* --- retention --- */

static bool is_live(void *context, struct attempt_id attempt)
{
    struct kube *kube = context;
    pthread_mutex_lock(&kube->lock);
    const bool is = kube_task_find(kube, attempt) != NULL;
    pthread_mutex_unlock(&kube->lock);
    return is;
}

static void logs_collect(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    (void)key, (void)answer;
    log_store_collect(kube->logs.directory, kube->logs.room_bytes, kube->logs.keep_s, is_live,
                      kube);
    kube_client_send(kube->client, &(struct kube_call){.context = kube, .done = logs_collect},
                     KUBE_COLLECT_MS);
}

void logs_start(struct kube *kube)
{
    if (kube->logs.directory)
        kube_client_send(kube->client, &(struct kube_call){.context = kube, .done = logs_collect},
                         KUBE_COLLECT_MS);
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
    kube->logs.watch = log_watch_new(&why);
    if (!kube->logs.watch)
        log_warning("engine", "kubernetes: %s: who follows a log looks from time to time",
                    why.text);
    kube->engine.capabilities |= ENGINE_CAN(ENGINE_CAN_LOG) | ENGINE_CAN(ENGINE_CAN_FOLLOW);
    return 0;
}

void logs_close(struct kube *kube)
{
    log_watch_free(kube->logs.watch);
}
