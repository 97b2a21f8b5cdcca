#include "server/hang_watch.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "core/plan.h"
#include "job/hang.h"
#include "server/state.h"
#include "sys/clock.h"
#include "sys/watcher.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct watched_task {
    struct task_ref ref;
    struct attempt_id attempt;
    uint8_t engine;
    uint64_t gpu_busy_ms; /* at the last sample */
    int64_t first_ms;     /* of the first sample; 0: there was none */
};

struct watched_job {
    struct job_id id;
    uint64_t after_s; /* 0: not watched */
    bool is_unread;   /* its plan, by which it is; after_s is what was known before */
    struct {
        struct watched_task *items;
        size_t count, room;
    } tasks;
    struct { /* beside the tasks */
        struct hang_track *items;
        size_t count, room;
    } tracks;
};

struct change { /* what a record says of a task */
    struct job_id job;
    struct watched_task task;
    bool is_running;
};

struct hang_watch {
    struct server *server;
    struct watcher watcher;
    struct store_reader *reader; /* the thread's */

    /* under the watcher's lock */
    int64_t news_ms; /* the first of the changes came then; 0: there are none */
    uint64_t default_after_s;
    uint32_t generation; /* of the default: jobs are read again when it changes */
    struct {
        struct change *items;
        size_t count, room;
    } changes;
    struct {
        struct hang_job *items;
        size_t count, room;
    } still;

    /* the thread's own */
    uint32_t seen_generation;
    uint64_t seen_default_s;
    int64_t read_ms;     /* when plans that are unread are read; 0: all have been */
    bool is_unread_told; /* that some could not be read, since all could */
    struct id_map by_id;
    struct {
        struct watched_job *items;
        size_t count, room;
    } jobs;
    _Atomic uint64_t idle_count;
};

struct hang_watch *hang_watch_new(struct server *server)
{
    struct hang_watch *watch = mem_zero(1, sizeof *watch);
    watch->server = server;
    watch->default_after_s = server->config->hang_after_s;
    watcher_init(&watch->watcher);
    return watch;
}

void hang_watch_take(struct hang_watch *watch, const struct record *records, size_t count)
{
    pthread_mutex_lock(&watch->watcher.lock);
    for (size_t i = 0; i < count; i++) {
        const struct task_record *task = &records[i].task;
        struct change *change;
        if (records[i].kind != RECORD_TASK)
            continue;
        change = ARRAY_ADD(&watch->changes);
        change->job = task->job;
        change->task = (struct watched_task){.ref = task->task,
                                             .attempt = task->attempt,
                                             .engine = engine_of_node(watch->server, task->node)};
        change->is_running = task->state == LIFE_RUNNING && task->attempt.v;
        if (watch->news_ms == 0) {
            watch->news_ms = clock_monotonic_ms();
            watcher_wake(&watch->watcher);
        }
    }
    pthread_mutex_unlock(&watch->watcher.lock);
}

void hang_watch_configure(struct hang_watch *watch, uint64_t after_s)
{
    pthread_mutex_lock(&watch->watcher.lock);
    if (watch->default_after_s != after_s)
        watch->generation++;
    watch->default_after_s = after_s;
    watcher_wake(&watch->watcher);
    pthread_mutex_unlock(&watch->watcher.lock);
}

uint64_t hang_watch_idle_count(struct hang_watch *watch)
{
    return atomic_load(&watch->idle_count);
}

/* --- which tasks run --- */

enum { READ_AGAIN_MS = 1000 };

static int job_read(struct hang_watch *watch, struct watched_job *job, struct err *err)
{
    cleanup_plan struct plan *plan = NULL;
    const int code = store_job_plan(watch->reader, job->id, &plan, err);
    job->is_unread = code < 0 && code != ERR_NOT_FOUND;
    if (code == 0)
        job->after_s = plan->hang_after_s ? plan->hang_after_s : watch->seen_default_s;
    else if (code == ERR_NOT_FOUND) /* deleted meanwhile */
        job->after_s = 0;
    return job->is_unread ? code : 0;
}

/* Those whose plans are unread. That one cannot be read says nothing: it is read again. */
static void jobs_read(struct hang_watch *watch)
{
    struct err err = {0};
    int code = 0;
    if (watch->read_ms == 0 || clock_monotonic_ms() < watch->read_ms)
        return;
    watch->read_ms = 0;
    for (size_t i = 0; i < watch->jobs.count; i++) {
        struct watched_job *job = &watch->jobs.items[i];
        if (code != ERR_UNAVAILABLE && job->is_unread) /* else the store is away, for all of them */
            code = job_read(watch, job, &err);
        if (!job->is_unread)
            continue;
        watch->read_ms = clock_monotonic_ms() + READ_AGAIN_MS;
        if (!watch->is_unread_told)
            log_warning("server",
                        "whether job %u is watched for standing still cannot be read, and is read "
                        "again: %s",
                        job->id.v, err.text);
        watch->is_unread_told = true;
    }
    watch->is_unread_told = watch->is_unread_told && watch->read_ms;
}

static void job_unread(struct hang_watch *watch, struct watched_job *job)
{
    job->is_unread = true;
    watch->read_ms = clock_monotonic_ms();
}

static struct watched_job *job_take(struct hang_watch *watch, struct job_id id)
{
    uint32_t at = id_map_get(&watch->by_id, id.v);
    if (at != MAP_NONE)
        return &watch->jobs.items[at];
    id_map_set(&watch->by_id, id.v, (uint32_t)watch->jobs.count);
    struct watched_job *job = ARRAY_ADD(&watch->jobs);
    job->id = id;
    job_unread(watch, job);
    return job;
}

static void job_drop(struct hang_watch *watch, uint32_t at)
{
    struct watched_job *job = &watch->jobs.items[at];
    struct watched_job *last = &watch->jobs.items[watch->jobs.count - 1];
    ARRAY_FREE(&job->tasks);
    ARRAY_FREE(&job->tracks);
    id_map_remove(&watch->by_id, job->id.v);
    if (job != last) {
        *job = *last;
        id_map_set(&watch->by_id, job->id.v, at);
    }
    watch->jobs.count--;
}

static size_t task_find(const struct watched_job *job, struct task_ref ref)
{
    for (size_t i = 0; i < job->tasks.count; i++)
        if (job->tasks.items[i].ref.role == ref.role && job->tasks.items[i].ref.index == ref.index)
            return i;
    return SIZE_MAX;
}

static void task_ended(struct hang_watch *watch, struct job_id id, struct task_ref ref)
{
    uint32_t at = id_map_get(&watch->by_id, id.v);
    if (at == MAP_NONE)
        return;
    struct watched_job *job = &watch->jobs.items[at];
    size_t i = task_find(job, ref);
    if (i == SIZE_MAX)
        return;
    job->tasks.items[i] = job->tasks.items[--job->tasks.count];
    job->tracks.items[i] = job->tracks.items[--job->tracks.count];
    if (job->tasks.count == 0)
        job_drop(watch, at);
}

static void change_apply(struct hang_watch *watch, const struct change *change)
{
    struct watched_job *job;
    if (!change->is_running) {
        task_ended(watch, change->job, change->task.ref);
        return;
    }
    job = job_take(watch, change->job);
    size_t i = task_find(job, change->task.ref);
    if (i == SIZE_MAX) {
        *ARRAY_ADD(&job->tasks) = change->task;
        (void)ARRAY_ADD(&job->tracks);
    } else if (job->tasks.items[i].attempt.v != change->task.attempt.v) {
        job->tasks.items[i] = change->task;
        job->tracks.items[i] = (struct hang_track){0};
    }
}

/* Takes over what has been told since the last time. */
static void changes_apply(struct hang_watch *watch)
{
    __typeof__(watch->changes) changes;
    uint32_t generation;

    pthread_mutex_lock(&watch->watcher.lock);
    changes = watch->changes;
    watch->news_ms = 0;
    memset(&watch->changes, 0, sizeof watch->changes);
    watch->seen_default_s = watch->default_after_s;
    generation = watch->generation;
    pthread_mutex_unlock(&watch->watcher.lock);
    for (size_t i = 0; i < changes.count; i++)
        change_apply(watch, &changes.items[i]);
    ARRAY_FREE(&changes);
    if (generation == watch->seen_generation)
        return;
    watch->seen_generation = generation;
    for (size_t i = 0; i < watch->jobs.count; i++)
        job_unread(watch, &watch->jobs.items[i]);
}

/* --- samples --- */

/* The engine sums the use up, so that no moment of it is missed between two samples. */
static void gpus_sample(struct watched_task *task, const struct engine_stats *stats,
                        struct hang_sample *sample)
{
    sample->has_gpus = stats->gpu_count > 0;
    if (stats->gpu_busy_ms > task->gpu_busy_ms)
        sample->gpu_percent = (uint8_t)(stats->gpu_percent > 0 ? stats->gpu_percent : 1);
    task->gpu_busy_ms = stats->gpu_busy_ms;
}

static bool task_sample(struct hang_watch *watch, struct watched_task *task, int64_t now_ms,
                        struct hang_sample *sample)
{
    struct log_part part = {0};
    uint64_t offset = UINT64_MAX;
    struct err err;
    struct engine *engine = engine_able(watch->server, task->engine, ENGINE_CAN_STATS, &err);
    if (!engine)
        return false;
    struct engine_stats stats;
    if (engine->ops->stats(engine, task->attempt, &stats, &err) < 0 || stats.has_only_gpus)
        return false; /* it has just ended: the record comes; or half of its use is not known */
    char byte;
    if (engine_need(engine, ENGINE_CAN_LOG, &err) < 0 ||
        engine->ops->log_read(engine, task->attempt, LOG_ALL, &offset, &byte, 0, &part, &err) < 0)
        part.end = 0; /* nothing written yet */
    *sample =
        (struct hang_sample){.at_ms = now_ms, .cpu_ns = stats.cpu_ns, .output_bytes = part.end};
    gpus_sample(task, &stats, sample);
    return true;
}

static void tell(struct hang_watch *watch, const struct watched_job *job, size_t index,
                 enum hang_verdict verdict, int64_t now_ms)
{
    const struct hang_track *track = &job->tracks.items[index];
    enum event_kind kind = verdict == HANG_IDLE ? EVENT_TASK_IDLE : EVENT_TASK_NOTE;
    struct server_mail *mail = mail_event(kind, "");
    char message[160];
    snprintf(message, sizeof message,
             "no work on the processor%s and no output for %" PRId64 " s%s",
             track->last.has_gpus ? ", no use of its GPUs" : "", (now_ms - track->moved_ms) / 1000,
             job->tasks.count == 1  ? ""
             : verdict == HANG_IDLE ? " while its peers moved"
                                    : ", like all tasks of the job");
    mail->event.task.attempt = job->tasks.items[index].attempt;
    mail->event.task.reason = "Idle";
    mail->event.task.message = arena_copy(&mail->arena, text_of(message));
    if (verdict == HANG_IDLE)
        atomic_fetch_add(&watch->server->metrics.idle_tasks, 1);
    server_post_fact(watch->server, mail);
}

static void job_sample(struct hang_watch *watch, struct watched_job *job)
{
    int64_t now_ms = clock_monotonic_ms();
    for (size_t i = 0; i < job->tasks.count; i++) {
        struct hang_sample sample;
        if (!task_sample(watch, &job->tasks.items[i], now_ms, &sample))
            continue;
        if (job->tasks.items[i].first_ms == 0)
            job->tasks.items[i].first_ms = now_ms;
        hang_track_sample(&job->tracks.items[i], &sample);
    }
    for (size_t i = 0; i < job->tasks.count; i++) {
        enum hang_verdict verdict =
            hang_judge(job->tracks.items, job->tracks.count, i, job->after_s, now_ms);
        if (verdict == HANG_IDLE || verdict == HANG_ALL)
            tell(watch, job, i, verdict, now_ms);
    }
}

/* What is told of a job's tasks. */
static struct hang_job job_still(const struct watched_job *job)
{
    struct hang_job still = {
        .id = job->id, .tasks = (uint32_t)job->tasks.count, .is_undecided = job->is_unread};
    for (size_t i = 0; i < job->tracks.count; i++) {
        const struct hang_track *track = &job->tracks.items[i];
        if (track->told == HANG_NO) {
            still.is_undecided |=
                job->after_s > 0 && track->moved_ms == job->tasks.items[i].first_ms;
            continue;
        }
        still.idle++;
        if (still.since_ms == 0 || track->moved_ms < still.since_ms)
            still.since_ms = track->moved_ms;
    }
    return still;
}

static void idle_count(struct hang_watch *watch)
{
    uint64_t idle = 0;
    pthread_mutex_lock(&watch->watcher.lock);
    watch->still.count = 0;
    for (size_t i = 0; i < watch->jobs.count; i++) {
        const struct hang_job still = job_still(&watch->jobs.items[i]);
        if (still.idle > 0 || still.is_undecided)
            *ARRAY_ADD(&watch->still) = still;
        idle += still.idle;
    }
    pthread_mutex_unlock(&watch->watcher.lock);
    atomic_store(&watch->idle_count, idle);
}

const struct hang_job *hang_watch_jobs(struct hang_watch *watch, struct arena *arena, size_t *count)
{
    pthread_mutex_lock(&watch->watcher.lock);
    *count = watch->still.count;
    struct hang_job *jobs = ARENA_ARRAY(arena, struct hang_job, *count + 1);
    for (size_t i = 0; i < *count; i++)
        jobs[i] = watch->still.items[i];
    pthread_mutex_unlock(&watch->watcher.lock);
    return jobs;
}

static void jobs_sample(struct hang_watch *watch)
{
    for (size_t i = 0; i < watch->jobs.count; i++) {
        struct watched_job *job = &watch->jobs.items[i];
        if (job->after_s > 0)
            job_sample(watch, job);
    }
}

enum { NEWS_MS = 1000 }; /* what has begun or ended is known after this, with others */

static int64_t sample_pause_ms(const struct hang_watch *watch)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < watch->jobs.count; i++) {
        uint64_t after_s = watch->jobs.items[i].after_s;
        if (after_s > 0 && after_s < least)
            least = after_s;
    }
    if (least >= HANG_SAMPLE_MAX_MS / 250)
        return HANG_SAMPLE_MAX_MS;
    return (int64_t)least * 250 > HANG_SAMPLE_MIN_MS ? (int64_t)least * 250 : HANG_SAMPLE_MIN_MS;
}

/* Until the next sample, until plans are read again, or until a task that has begun is to be known:
 * its job may need a sample sooner than those before. */
static bool watch_wait(struct hang_watch *watch, int64_t sample_ms)
{
    pthread_mutex_lock(&watch->watcher.lock);
    const uint32_t generation = watch->generation;
    while (!watch->watcher.is_ending && generation == watch->generation) {
        int64_t due_ms = watch->news_ms && watch->news_ms + NEWS_MS < sample_ms
                             ? watch->news_ms + NEWS_MS
                             : sample_ms;
        if (watch->read_ms && watch->read_ms < due_ms)
            due_ms = watch->read_ms;
        if (!watcher_await(&watch->watcher, due_ms))
            break;
    }
    bool goes_on = !watch->watcher.is_ending;
    pthread_mutex_unlock(&watch->watcher.lock);
    return goes_on;
}

static void *watch_run(void *argument)
{
    struct hang_watch *watch = argument;
    int64_t sampled_ms = 0;
    do {
        changes_apply(watch);
        jobs_read(watch);
        if (clock_monotonic_ms() >= sampled_ms + sample_pause_ms(watch)) {
            sampled_ms = clock_monotonic_ms();
            jobs_sample(watch);
        }
        idle_count(watch);
    } while (watch_wait(watch, sampled_ms + sample_pause_ms(watch)));
    return NULL;
}

/* --- life --- */

int hang_watch_start(struct hang_watch *watch, struct err *err)
{
    int code = store_reader_open(watch->server->store, &watch->reader, err);
    if (code < 0)
        return code;
    return watcher_start(&watch->watcher, watch_run, watch, "the thread that looks for hung tasks",
                         err);
}

void hang_watch_stop(struct hang_watch *watch)
{
    if (watch)
        watcher_stop(&watch->watcher);
}

void hang_watch_free(struct hang_watch *watch)
{
    if (!watch)
        return;
    hang_watch_stop(watch);
    while (watch->jobs.count > 0)
        job_drop(watch, (uint32_t)watch->jobs.count - 1);
    ARRAY_FREE(&watch->jobs);
    ARRAY_FREE(&watch->changes);
    ARRAY_FREE(&watch->still);
    id_map_release(&watch->by_id);
    store_reader_close(watch->reader);
    watcher_release(&watch->watcher);
    mem_free(watch);
}
