#include "server/use_watch.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "server/state.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/watcher.h"
#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLES_MIN = 2 }; /* of a series that is worth a file */

/* A sample that is not on disk yet. */
struct use_sample {
    uint32_t step; /* since 1970, of USE_STEP_MS */
    struct use_point point;
};

/* An attempt that runs, or a machine. */
struct watched {
    struct use_key key;
    char *node; /* owned; the key's */
    uint8_t engine;
    bool has_ended; /* saved and dropped in the next round */
    bool is_seen;   /* of a machine: its engine still tells of it */
    bool is_on_disk;
    struct engine_stats counters; /* of the last sample, if there was one */
    int64_t sampled_us;           /* monotonic; 0: never */
    struct use_point last;        /* the latest sample, under the watcher's lock like … */
    int64_t last_us;              /* … its time, monotonic; 0: none */
    struct {
        struct use_sample *items;
        size_t count, room;
    } samples; /* since it was last saved */
};

struct use_watch {
    struct server *server;
    struct watcher watcher;
    char folder[PATH_MAX];

    /* under the watcher's lock; the thread alone changes `all` */
    uint64_t limit_bytes;
    struct {
        struct use_change { /* what a record says */
            struct use_key key;
            uint8_t engine;
            bool is_running, is_job_gone;
        } * items;
        size_t count, room;
    } changes;
    struct {
        struct watched **items;
        size_t count, room;
    } all;
    struct id_map by_attempt; /* to all, */
    struct text_map by_node;  /* as this: a machine's name is its own */

    pthread_mutex_t files; /* a file is written over, or read; not with the watcher's lock */

    /* the thread's own */
    int64_t saved_ms, swept_ms; /* 0: never */
    bool has_warned;            /* that nothing can be written; until it can again */
    struct use_series series;   /* the one that is being saved */
};

struct use_watch *use_watch_new(struct server *server)
{
    struct use_watch *watch = mem_zero(1, sizeof *watch);
    watch->server = server;
    watch->limit_bytes = server->config->retention.use_mib << 20;
    snprintf(watch->folder, sizeof watch->folder, "%s/use", server->config->data_directory);
    watcher_init(&watch->watcher);
    pthread_mutex_init(&watch->files, NULL);
    return watch;
}

void use_watch_take(struct use_watch *watch, const struct record *records, size_t count)
{
    pthread_mutex_lock(&watch->watcher.lock);
    for (size_t i = 0; i < count; i++) {
        const struct task_record *task = &records[i].task;
        if (records[i].kind == RECORD_JOB_DELETED)
            *ARRAY_ADD(&watch->changes) =
                (struct use_change){.key.job = records[i].deleted, .is_job_gone = true};
        if (records[i].kind != RECORD_TASK || !task->attempt.v)
            continue;
        bool is_running = task->state == LIFE_RUNNING;
        *ARRAY_ADD(&watch->changes) = (struct use_change){
            .key = {.job = task->job, .attempt = task->attempt},
            .engine = is_running ? engine_of_node(watch->server, task->node) : ENGINE_NONE,
            .is_running = is_running,
        };
    }
    pthread_mutex_unlock(&watch->watcher.lock);
}

void use_watch_configure(struct use_watch *watch, uint64_t limit_bytes)
{
    pthread_mutex_lock(&watch->watcher.lock);
    watch->limit_bytes = limit_bytes;
    pthread_mutex_unlock(&watch->watcher.lock);
}

/* ---- who is watched ---- */

/* The thread may look without the lock. */
static struct watched *watched_of(struct use_watch *watch, const struct use_key *key)
{
    uint32_t at = key->node ? text_map_get(&watch->by_node, text_of(key->node))
                            : id_map_get(&watch->by_attempt, key->attempt.v);
    return at == MAP_NONE ? NULL : watch->all.items[at];
}

/* Where it stands among all; MAP_NONE: nowhere any more. */
static void watched_place(struct use_watch *watch, const struct watched *one, uint32_t at)
{
    if (one->node && at != MAP_NONE)
        text_map_set(&watch->by_node, text_of(one->node), at);
    else if (one->node)
        text_map_remove(&watch->by_node, text_of(one->node));
    else if (at != MAP_NONE)
        id_map_set(&watch->by_attempt, one->key.attempt.v, at);
    else
        id_map_remove(&watch->by_attempt, one->key.attempt.v);
}

static struct watched *watched_add(struct use_watch *watch, const struct use_key *key,
                                   uint8_t engine)
{
    struct watched *one = mem_zero(1, sizeof *one);
    one->key = *key;
    one->engine = engine;
    if (key->node)
        one->key.node = one->node = mem_copy(key->node);
    one->is_on_disk = use_file_is_there(watch->folder, key); /* after a restart it goes on */
    pthread_mutex_lock(&watch->watcher.lock);
    watched_place(watch, one, (uint32_t)watch->all.count);
    *ARRAY_ADD(&watch->all) = one;
    pthread_mutex_unlock(&watch->watcher.lock);
    return one;
}

static void watched_drop(struct use_watch *watch, size_t at)
{
    pthread_mutex_lock(&watch->watcher.lock);
    struct watched *one = watch->all.items[at], *last = watch->all.items[--watch->all.count];
    watched_place(watch, one, MAP_NONE);
    if (last != one) {
        watch->all.items[at] = last;
        watched_place(watch, last, (uint32_t)at);
    }
    pthread_mutex_unlock(&watch->watcher.lock);
    ARRAY_FREE(&one->samples);
    mem_free(one->node);
    mem_free(one);
}

static void samples_drop(struct use_watch *watch, struct watched *one)
{
    pthread_mutex_lock(&watch->watcher.lock);
    one->samples.count = 0;
    pthread_mutex_unlock(&watch->watcher.lock);
}

static void job_gone(struct use_watch *watch, struct job_id job)
{
    for (size_t i = 0; i < watch->all.count; i++) {
        struct watched *one = watch->all.items[i];
        if (one->node || one->key.job.v != job.v)
            continue;
        one->has_ended = true;
        samples_drop(watch, one);
    }
    use_files_drop(watch->folder, job);
}

static void change_apply(struct use_watch *watch, const struct use_change *change, bool is_off)
{
    if (change->is_job_gone) {
        job_gone(watch, change->key.job);
        return;
    }
    struct watched *one = watched_of(watch, &change->key);
    if (!one && change->is_running && !is_off)
        watched_add(watch, &change->key, change->engine);
    else if (one && !change->is_running)
        one->has_ended = true;
}

/* A machine that its engine tells of, and can say something about, is watched. */
static void node_watch(struct use_watch *watch, const char *name, uint8_t engine)
{
    struct use_key key = {.node = name};
    struct err err;
    if (!engine_able(watch->server, engine, ENGINE_CAN_NODE_STATS, &err))
        return;
    struct watched *one = watched_of(watch, &key);
    if (!one)
        one = watched_add(watch, &key, engine);
    one->is_seen = true;
}

static void nodes_watch(struct use_watch *watch)
{
    struct server *server = watch->server;
    struct {
        struct {
            char *name;
            uint8_t engine;
        } * items;
        size_t count, room;
    } nodes = {0};
    pthread_mutex_lock(&server->state_lock);
    for (size_t i = 0; i < server->nodes.count; i++)
        if (server->nodes.items[i].is_seen) {
            ARRAY_ADD(&nodes);
            nodes.items[nodes.count - 1].name = mem_copy(server->nodes.items[i].facts.name);
            nodes.items[nodes.count - 1].engine = server->nodes.items[i].engine;
        }
    pthread_mutex_unlock(&server->state_lock);
    for (size_t i = 0; i < watch->all.count; i++)
        watch->all.items[i]->is_seen = false;
    for (size_t i = 0; i < nodes.count; i++) {
        node_watch(watch, nodes.items[i].name, nodes.items[i].engine);
        mem_free(nodes.items[i].name);
    }
    for (size_t i = 0; i < watch->all.count; i++)
        if (watch->all.items[i]->node && !watch->all.items[i]->is_seen)
            watch->all.items[i]->has_ended = true;
    ARRAY_FREE(&nodes);
}

/* Take over what has been told since the last time. */
static void changes_apply(struct use_watch *watch)
{
    pthread_mutex_lock(&watch->watcher.lock);
    __typeof__(watch->changes) changes = watch->changes;
    memset(&watch->changes, 0, sizeof watch->changes);
    bool is_off = watch->limit_bytes == 0;
    pthread_mutex_unlock(&watch->watcher.lock);
    for (size_t i = 0; i < changes.count; i++)
        change_apply(watch, &changes.items[i], is_off);
    ARRAY_FREE(&changes);
    if (!is_off)
        nodes_watch(watch);
    for (size_t i = 0; is_off && i < watch->all.count; i++)
        watch->all.items[i]->has_ended = true;
}

/* ---- samples ---- */

static uint64_t rate(uint64_t before, uint64_t now, int64_t passed_us, uint64_t scale)
{
    assert(passed_us > 0);
    if (now < before)
        return USE_UNKNOWN;
    return (uint64_t)((double)(now - before) * (double)scale / (double)passed_us);
}

static bool has_disk(const struct engine_stats *stats)
{
    return !stats->has_only_gpus && !stats->has_no_disk;
}

void use_values(const struct engine_stats *before, const struct engine_stats *now,
                int64_t passed_us, uint64_t values[USE_FIELDS])
{
    for (size_t i = 0; i < USE_FIELDS; i++)
        values[i] = USE_UNKNOWN;
    if (!now->has_only_gpus)
        values[USE_MEMORY] = now->memory_bytes;
    if (now->gpu_count > 0)
        values[USE_GPU_MEMORY] = now->gpu_memory_bytes;
    if (now->gpu_power_mw > 0)
        values[USE_GPU_POWER] = now->gpu_power_mw;
    if (!before || passed_us <= 0)
        return;
    if (!now->has_only_gpus && !before->has_only_gpus)
        values[USE_CPU] = rate(before->cpu_ns, now->cpu_ns, passed_us, 1);
    if (has_disk(before) && has_disk(now)) {
        values[USE_READ] = rate(before->io_read_bytes, now->io_read_bytes, passed_us, 1000000);
        values[USE_WRITTEN] = rate(before->io_write_bytes, now->io_write_bytes, passed_us, 1000000);
    }
    if (now->gpu_count > 0)
        values[USE_GPU] = rate(before->gpu_busy_ms, now->gpu_busy_ms, passed_us, 1000000);
    if (now->network_tasks > 0 && before->network_tasks > 0) { /* to each an equal part */
        values[USE_RECEIVED] = rate(before->received_bytes, now->received_bytes,
                                    passed_us * now->network_tasks, 1000000);
        values[USE_SENT] =
            rate(before->sent_bytes, now->sent_bytes, passed_us * now->network_tasks, 1000000);
    }
}

static bool counters_read(struct use_watch *watch, const struct watched *one,
                          struct engine_stats *stats)
{
    struct err err;
    struct engine *engine = engine_able(watch->server, one->engine,
                                        one->node ? ENGINE_CAN_NODE_STATS : ENGINE_CAN_STATS, &err);
    if (!engine)
        return false;
    if (one->node)
        return engine->ops->node_stats(engine, one->node, stats, &err) == 0;
    return engine->ops->stats(engine, one->key.attempt, stats, &err) == 0;
}

static void watched_sample(struct use_watch *watch, struct watched *one, int64_t now_ms)
{
    struct engine_stats counters;
    uint64_t values[USE_FIELDS];
    if (one->has_ended || !counters_read(watch, one, &counters))
        return;
    int64_t now_us = clock_monotonic_us();
    use_values(one->sampled_us ? &one->counters : NULL, &counters, now_us - one->sampled_us,
               values);
    one->counters = counters;
    one->sampled_us = now_us;
    pthread_mutex_lock(&watch->watcher.lock);
    if (one->samples.count == USE_SAMPLES_MAX) { /* nothing can be written: the oldest goes */
        one->samples.count--;
        memmove(one->samples.items, one->samples.items + 1,
                one->samples.count * sizeof *one->samples.items);
    }
    struct use_sample *sample = ARRAY_ADD(&one->samples);
    sample->step = (uint32_t)(now_ms / USE_STEP_MS);
    for (size_t i = 0; i < USE_FIELDS; i++)
        sample->point.codes[i] = use_code(values[i]);
    one->last = sample->point;
    one->last_us = now_us;
    pthread_mutex_unlock(&watch->watcher.lock);
}

/* ---- on disk ---- */

static void sample_add(struct use_series *series, const struct use_sample *sample)
{
    uint64_t values[USE_FIELDS];
    for (size_t i = 0; i < USE_FIELDS; i++)
        values[i] = use_value(sample->point.codes[i]);
    use_series_add(series, (int64_t)sample->step * USE_STEP_MS, values);
}

/* What is on disk is read, and written again with what has come since. */
static void watched_save(struct use_watch *watch, struct watched *one)
{
    struct use_series *series = &watch->series;
    struct err err;
    if (one->samples.count == 0 || (!one->is_on_disk && one->samples.count < SAMPLES_MIN))
        return;
    if (!one->is_on_disk || use_file_load(watch->folder, &one->key, series, &err) < 0)
        memset(series, 0, sizeof *series);
    for (size_t i = 0; i < one->samples.count; i++)
        sample_add(series, &one->samples.items[i]);
    pthread_mutex_lock(&watch->files);
    const int code = use_file_save(watch->folder, &one->key, series, &err);
    pthread_mutex_unlock(&watch->files);
    if (code < 0) {
        if (!watch->has_warned)
            log_warning("server", "what tasks use is not kept: %s", err.text);
        watch->has_warned = true;
        return;
    }
    watch->has_warned = false;
    one->is_on_disk = true;
    samples_drop(watch, one);
}

static void ended_drop(struct use_watch *watch)
{
    for (size_t i = watch->all.count; i-- > 0;) {
        if (!watch->all.items[i]->has_ended)
            continue;
        watched_save(watch, watch->all.items[i]);
        watched_drop(watch, i);
    }
}

static bool job_is_known(void *context, struct job_id job)
{
    struct use_watch *watch = context;
    cleanup_arena struct arena arena;
    struct store_job row;
    struct err err;
    arena_init(&arena);
    return store_job_summary(watch->server->store, job, &arena, &row, &err) != ERR_NOT_FOUND;
}

static void sweep(struct use_watch *watch)
{
    pthread_mutex_lock(&watch->watcher.lock);
    uint64_t limit = watch->limit_bytes;
    pthread_mutex_unlock(&watch->watcher.lock);
    use_files_sweep(watch->folder, limit, job_is_known, watch);
}

void use_watch_round(struct use_watch *watch, int64_t now_ms)
{
    changes_apply(watch);
    for (size_t i = 0; i < watch->all.count; i++)
        watched_sample(watch, watch->all.items[i], now_ms);
    ended_drop(watch);
    if (now_ms - watch->saved_ms >= USE_SAVE_MS || now_ms < watch->saved_ms) {
        for (size_t i = 0; i < watch->all.count; i++)
            watched_save(watch, watch->all.items[i]);
        watch->saved_ms = now_ms;
    }
    if (now_ms - watch->swept_ms >= USE_SWEEP_MS || now_ms < watch->swept_ms) {
        sweep(watch);
        watch->swept_ms = now_ms;
    }
}

/* ---- reading ---- */

/* The samples may have been saved since they were copied: the series has those then. */
static void samples_add(struct use_series *series, const struct use_sample *samples, size_t count)
{
    const int64_t last = series->last;
    for (size_t i = 0; i < count; i++)
        if ((int64_t)samples[i].step > last)
            sample_add(series, &samples[i]);
}

int use_watch_points(struct use_watch *watch, const struct use_key *key,
                     enum use_resolution resolution, struct use_points *points, struct err *err)
{
    cleanup_free struct use_series *series = mem_alloc(sizeof *series);
    pthread_mutex_lock(&watch->watcher.lock);
    const struct watched *one = watched_of(watch, key);
    const bool is_watched = one != NULL;
    const size_t count = one ? one->samples.count : 0;
    cleanup_free struct use_sample *samples =
        one ? mem_copy_array(one->samples.items, count, sizeof *samples) : NULL;
    pthread_mutex_unlock(&watch->watcher.lock);
    pthread_mutex_lock(&watch->files);
    int code = use_file_load(watch->folder, key, series, err);
    pthread_mutex_unlock(&watch->files);
    if (code < 0 && is_watched) {
        memset(series, 0, sizeof *series);
        code = 0;
    }
    if (code < 0)
        return code;
    samples_add(series, samples, count);
    use_series_points(series, resolution, points);
    return 0;
}

bool use_watch_last(struct use_watch *watch, const struct use_key *key, uint64_t values[USE_FIELDS])
{
    pthread_mutex_lock(&watch->watcher.lock);
    const struct watched *one = watched_of(watch, key);
    const int64_t last_us = one ? one->last_us : 0;
    const bool is_known = last_us && clock_monotonic_us() - last_us <= (int64_t)USE_LAST_MS * 1000;
    for (size_t i = 0; is_known && i < USE_FIELDS; i++)
        values[i] = use_value(one->last.codes[i]);
    pthread_mutex_unlock(&watch->watcher.lock);
    return is_known;
}

/* ---- the thread ---- */

static bool step_await(struct use_watch *watch, int64_t due_ms)
{
    pthread_mutex_lock(&watch->watcher.lock);
    while (!watch->watcher.is_ending && watcher_await(&watch->watcher, due_ms))
        continue;
    bool goes_on = !watch->watcher.is_ending;
    pthread_mutex_unlock(&watch->watcher.lock);
    return goes_on;
}

static void *watch_run(void *argument)
{
    struct use_watch *watch = argument;
    int64_t due_ms = clock_monotonic_ms();
    do {
        use_watch_round(watch, server_now_ms(watch->server));
        while (due_ms <= clock_monotonic_ms()) /* a round that was late is not made up for */
            due_ms += USE_STEP_MS;
    } while (step_await(watch, due_ms));
    return NULL;
}

int use_watch_start(struct use_watch *watch, struct err *err)
{
    return watcher_start(&watch->watcher, watch_run, watch,
                         "the thread that samples what tasks use", err);
}

void use_watch_stop(struct use_watch *watch)
{
    if (!watch || !watcher_stop(&watch->watcher))
        return;
    for (size_t i = 0; i < watch->all.count; i++)
        watched_save(watch, watch->all.items[i]);
}

void use_watch_free(struct use_watch *watch)
{
    if (!watch)
        return;
    use_watch_stop(watch);
    while (watch->all.count > 0)
        watched_drop(watch, watch->all.count - 1);
    ARRAY_FREE(&watch->all);
    ARRAY_FREE(&watch->changes);
    id_map_release(&watch->by_attempt);
    text_map_release(&watch->by_node);
    watcher_release(&watch->watcher);
    pthread_mutex_destroy(&watch->files);
    mem_free(watch);
}
