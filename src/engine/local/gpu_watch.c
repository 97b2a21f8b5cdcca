#include "engine/local/gpu_watch.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/mailbox.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { END_WAIT_MS = 2000 };

struct gpu_watch {
    char library[1024];
    uint32_t interval_ms;
    void (*changed)(void *context);
    void *context;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock;             /* of what follows */
    pthread_cond_t told;              /* the list has come, a round is done, the thread has ended */
    pthread_cond_t wake;              /* for the thread */
    bool is_ending, is_over, is_left; /* left: the thread frees the watch */
    bool is_listed, is_started;
    bool is_telling; /* in `changed` */
    int list_code;
    struct err list_err;
    uint64_t rounds_wanted, rounds_done; /* with counters of errors */
    int64_t call_begin_ms;               /* 0: no call is under way */
    size_t count;
    bool is_sampled;
    struct gpu_state states[NVML_GPUS_MAX];

    size_t usable_count; /* what the readers see: 0 when the list came too late */

    struct nvml_gpu gpus[NVML_GPUS_MAX]; /* never changes once listed */

    /* the thread's own */
    struct nvml *nvml;
    int64_t sampled_ms, errors_ms;
    bool is_reopen_told;
};

/* --- the thread --- */

static void watch_drop(struct gpu_watch *watch)
{
    pthread_cond_destroy(&watch->told);
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    mem_free(watch);
}

static void call_mark(struct gpu_watch *watch, bool is_begin)
{
    pthread_mutex_lock(&watch->lock);
    watch->call_begin_ms = is_begin ? clock_monotonic_ms() : 0;
    pthread_mutex_unlock(&watch->lock);
}

static bool list_make(struct gpu_watch *watch)
{
    struct err err = {0};
    size_t count = 0;
    call_mark(watch, true);
    int code = nvml_open(watch->library, &watch->nvml, &err);
    if (code == 0)
        code = nvml_list(watch->nvml, watch->gpus, &count, &err);
    pthread_mutex_lock(&watch->lock);
    watch->call_begin_ms = 0;
    watch->is_listed = true;
    watch->list_code = code;
    watch->list_err = err;
    watch->count = count;
    for (size_t i = 0; i < count; i++)
        watch->states[i].is_lost = watch->gpus[i].is_lost;
    bool goes_on = count > 0 && !watch->is_ending;
    pthread_cond_broadcast(&watch->told);
    pthread_mutex_unlock(&watch->lock);
    return goes_on;
}

/* Take a sample over; true: a GPU was lost, or is back. Under the lock. */
static bool state_take(struct gpu_state *state, const struct nvml_sample *sample, int64_t passed_ms)
{
    bool is_changed = state->is_lost != sample->is_lost;
    state->is_lost = sample->is_lost;
    state->has_use = sample->has_use;
    state->busy_percent = sample->has_use ? sample->busy_percent : 0;
    state->memory_used_bytes = sample->has_use ? sample->memory_used_bytes : 0;
    state->power_mw = sample->power_mw;
    if (sample->has_use && sample->busy_percent > 0) {
        uint64_t busy = (uint64_t)passed_ms * sample->busy_percent / 100;
        state->busy_ms += busy ? busy : 1;
    }
    if (sample->has_errors) {
        state->has_errors = true;
        state->ecc_errors = sample->ecc_errors;
        state->retired_pages = sample->retired_pages;
    }
    return is_changed;
}

static void lost_reopen(struct gpu_watch *watch)
{
    struct err err = {0};
    bool has_lost = false;
    for (size_t i = 0; i < watch->count; i++)
        has_lost |= watch->states[i].is_lost; /* only this thread writes it */
    if (!has_lost)
        return;
    call_mark(watch, true);
    int code = nvml_reopen(watch->nvml, watch->gpus, watch->count, &err);
    call_mark(watch, false);
    if (code < 0 && !watch->is_reopen_told)
        log_warning("engine", "%s", err.text);
    watch->is_reopen_told = code < 0;
}

static void round_make(struct gpu_watch *watch, uint64_t wanted)
{
    struct nvml_sample samples[NVML_GPUS_MAX] = {0};
    int64_t now_ms = clock_monotonic_ms();
    bool has_errors = watch->errors_ms == 0 || now_ms - watch->errors_ms >= GPU_WATCH_ERRORS_MS;
    if (has_errors && watch->errors_ms)
        lost_reopen(watch);
    if (has_errors)
        watch->errors_ms = now_ms;
    has_errors |= wanted > watch->rounds_done;
    call_mark(watch, true);
    for (size_t i = 0; i < watch->count; i++)
        nvml_sample(watch->nvml, i, has_errors, &samples[i]);
    pthread_mutex_lock(&watch->lock);
    watch->call_begin_ms = 0;
    int64_t passed_ms = watch->sampled_ms ? now_ms - watch->sampled_ms : watch->interval_ms;
    bool is_changed = false;
    for (size_t i = 0; i < watch->count; i++)
        is_changed |= state_take(&watch->states[i], &samples[i], passed_ms);
    watch->sampled_ms = now_ms;
    watch->is_sampled = true;
    if (has_errors)
        watch->rounds_done = wanted;
    is_changed &= watch->is_started;
    watch->is_telling = is_changed;
    pthread_cond_broadcast(&watch->told);
    pthread_mutex_unlock(&watch->lock);
    if (!is_changed)
        return;
    watch->changed(watch->context);
    pthread_mutex_lock(&watch->lock);
    watch->is_telling = false;
    pthread_cond_broadcast(&watch->told);
    pthread_mutex_unlock(&watch->lock);
}

/* Until the next round is due or asked for; false: the end. */
static bool round_wait(struct gpu_watch *watch, uint64_t *wanted)
{
    const struct timespec due = clock_moment(clock_monotonic_ms() + watch->interval_ms);
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_ending && watch->rounds_wanted == *wanted &&
           pthread_cond_timedwait(&watch->wake, &watch->lock, &due) == 0)
        continue;
    *wanted = watch->rounds_wanted;
    bool goes_on = !watch->is_ending;
    pthread_mutex_unlock(&watch->lock);
    return goes_on;
}

static void *watch_run(void *context)
{
    struct gpu_watch *watch = context;
    uint64_t wanted = 0;
    if (list_make(watch))
        do
            round_make(watch, wanted);
        while (round_wait(watch, &wanted));
    nvml_close(watch->nvml);
    pthread_mutex_lock(&watch->lock);
    watch->is_over = true;
    bool is_left = watch->is_left;
    pthread_cond_broadcast(&watch->told);
    pthread_mutex_unlock(&watch->lock);
    if (is_left)
        watch_drop(watch);
    return NULL;
}

/* --- its readers --- */

struct gpu_watch *gpu_watch_new(const struct gpu_watch_config *config, struct err *err, int *code)
{
    assert(config->interval_ms > 0 && config->changed);
    struct gpu_watch *watch = mem_zero(1, sizeof *watch);
    snprintf(watch->library, sizeof watch->library, "%s", config->library);
    watch->interval_ms = config->interval_ms;
    watch->changed = config->changed;
    watch->context = config->context;
    pthread_mutex_init(&watch->lock, NULL);
    clock_condition_init(&watch->told);
    clock_condition_init(&watch->wake);
    watch->has_thread = pthread_create(&watch->thread, NULL, watch_run, watch) == 0;
    if (!watch->has_thread) {
        *code = err_fail(err, ERR_UNAVAILABLE, "", "cannot start the thread that watches GPUs");
        return watch;
    }
    const struct timespec due = clock_moment(clock_monotonic_ms() + config->list_ms);
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_listed && pthread_cond_timedwait(&watch->told, &watch->lock, &due) == 0)
        continue;
    if (watch->is_listed) {
        *code = watch->list_code;
        watch->usable_count = watch->list_code == 0 ? watch->count : 0;
        if (err)
            *err = watch->list_err;
    } else {
        *code = err_fail(err, ERR_BUSY, "", "NVML has not answered for %u ms: GPUs are left out",
                         config->list_ms);
        watch->is_ending = true; /* too late is never: places have been counted */
    }
    pthread_mutex_unlock(&watch->lock);
    return watch;
}

void gpu_watch_start(struct gpu_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->is_started = true;
    pthread_mutex_unlock(&watch->lock);
}

void gpu_watch_free(struct gpu_watch *watch)
{
    if (!watch)
        return;
    if (!watch->has_thread) {
        watch_drop(watch);
        return;
    }
    const struct timespec due = clock_moment(clock_monotonic_ms() + END_WAIT_MS);
    pthread_mutex_lock(&watch->lock);
    watch->is_ending = true;
    watch->is_started = false;
    pthread_cond_broadcast(&watch->wake);
    while (watch->is_telling)
        pthread_cond_wait(&watch->told, &watch->lock);
    while (!watch->is_over && pthread_cond_timedwait(&watch->told, &watch->lock, &due) == 0)
        continue;
    watch->is_left = !watch->is_over;
    bool is_left = watch->is_left;
    pthread_t thread = watch->thread;
    pthread_mutex_unlock(&watch->lock);
    if (is_left) {
        log_warning("engine", "NVML does not come back: its thread is left behind");
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    watch_drop(watch);
}

size_t gpu_watch_count(const struct gpu_watch *watch)
{
    return watch->usable_count;
}

const struct nvml_gpu *gpu_watch_gpu(const struct gpu_watch *watch, size_t gpu)
{
    assert(gpu < watch->usable_count);
    return &watch->gpus[gpu];
}

bool gpu_watch_read(struct gpu_watch *watch, size_t gpu, struct gpu_state *state)
{
    pthread_mutex_lock(&watch->lock);
    bool is_known = gpu < watch->usable_count && watch->is_sampled;
    if (is_known)
        *state = watch->states[gpu];
    pthread_mutex_unlock(&watch->lock);
    return is_known;
}

bool gpu_watch_refresh(struct gpu_watch *watch, uint32_t timeout_ms)
{
    const struct timespec due = clock_moment(clock_monotonic_ms() + timeout_ms);
    pthread_mutex_lock(&watch->lock);
    uint64_t wanted = ++watch->rounds_wanted;
    bool is_stuck =
        watch->call_begin_ms && clock_monotonic_ms() - watch->call_begin_ms > (int64_t)timeout_ms;
    pthread_cond_broadcast(&watch->wake);
    while (watch->rounds_done < wanted && !watch->is_over && !is_stuck &&
           pthread_cond_timedwait(&watch->told, &watch->lock, &due) == 0)
        continue;
    bool is_done = watch->rounds_done >= wanted;
    pthread_mutex_unlock(&watch->lock);
    return is_done;
}

int64_t gpu_watch_silent_ms(struct gpu_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    int64_t silent = watch->call_begin_ms ? clock_monotonic_ms() - watch->call_begin_ms : 0;
    pthread_mutex_unlock(&watch->lock);
    return silent;
}
