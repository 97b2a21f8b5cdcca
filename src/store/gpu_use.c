/* gpu_use.c — see gpu_use.h. */
#include "store/gpu_use.h"
#include "base/err.h"
#include "base/utc.h"
#include "store/noun.h"
#include <assert.h>
#include <string.h>

static const char add[] =
    "INSERT INTO gpu_use (user_name, month, gpu_ms) VALUES (?,?,?) "
    "ON CONFLICT (user_name, month) DO UPDATE SET gpu_ms = gpu_use.gpu_ms + excluded.gpu_ms";
static const char select_one[] = "SELECT gpu_ms FROM gpu_use WHERE user_name = ? AND month = ?";
static const char delete_old[] = "DELETE FROM gpu_use WHERE month < ?";
static const char select_running[] =
    "SELECT attempt, job, CAST(length(gpus) AS BIGINT), attempt_launched_ms FROM tasks WHERE job "
    "IN (" LIVE_IDS
    ") AND attempt <> 0 AND state < 7 AND attempt_launched_ms > 0 AND length(gpus) > 0";
static const char count_ended[] = "SELECT count(*) FROM task_attempts WHERE attempt = ?";
_Static_assert(LIFE_ATTEMPT_COMPLETED == 7, "the number in select_running");

void gpu_use_init(struct gpu_use *use)
{
    *use = (struct gpu_use){0};
    pthread_mutex_init(&use->lock, NULL);
}

static void gpu_use_clear(struct gpu_use *use)
{
    for (size_t i = 0; i < use->users.count; i++)
        mem_free(use->users.items[i].name);
    ARRAY_FREE(&use->users);
    ARRAY_FREE(&use->running);
    id_map_release(&use->attempts);
    text_map_release(&use->user_names);
    use->floor_ms = 0;
}

void gpu_use_release(struct gpu_use *use)
{
    gpu_use_clear(use);
    ARRAY_FREE(&use->steps);
    pthread_mutex_destroy(&use->lock);
}

/* --- what runs; under the lock --- */

/* Readers look names up under the lock; the committing thread alone adds them. */
static uint32_t user_number(struct gpu_use *use, struct text name)
{
    uint32_t number = text_map_get(&use->user_names, name);
    if (number != MAP_NONE)
        return number;
    number = (uint32_t)use->users.count;
    struct gpu_use_user *user = ARRAY_ADD(&use->users);
    *user = (struct gpu_use_user){.name = mem_zero(name.length + 1, 1)};
    memcpy(user->name, name.at, name.length);
    text_map_set(&use->user_names, text_of(user->name), number);
    return number;
}

static int64_t counted_begin(const struct gpu_use *use, const struct gpu_use_run *run)
{
    return run->begin_ms > use->floor_ms ? run->begin_ms : use->floor_ms;
}

static void run_add(struct gpu_use *use, const struct gpu_use_step *step)
{
    struct gpu_use_user *user = &use->users.items[step->user];
    id_map_set(&use->attempts, step->attempt.v, (uint32_t)use->running.count);
    struct gpu_use_run *run = ARRAY_ADD(&use->running);
    *run = (struct gpu_use_run){step->attempt, step->user, step->gpus, step->begin_ms};
    user->gpus += run->gpus;
    user->begins += (int64_t)run->gpus * counted_begin(use, run);
}

static void run_remove(struct gpu_use *use, struct attempt_id attempt)
{
    const uint32_t index = id_map_get(&use->attempts, attempt.v);
    assert(index != MAP_NONE);
    struct gpu_use_run *run = &use->running.items[index];
    struct gpu_use_user *user = &use->users.items[run->user];
    assert(user->gpus >= run->gpus);
    user->gpus -= run->gpus;
    user->begins -= (int64_t)run->gpus * counted_begin(use, run);
    id_map_remove(&use->attempts, attempt.v);
    *run = use->running.items[--use->running.count];
    if (index < use->running.count)
        id_map_set(&use->attempts, run->attempt.v, index);
}

/* Another month is asked about: once a month, unless somebody sets the clock back. */
static void sums_make(struct gpu_use *use, int64_t floor_ms)
{
    use->floor_ms = floor_ms;
    for (size_t i = 0; i < use->users.count; i++)
        use->users.items[i].begins = 0;
    for (size_t i = 0; i < use->running.count; i++) {
        const struct gpu_use_run *run = &use->running.items[i];
        use->users.items[run->user].begins += (int64_t)run->gpus * counted_begin(use, run);
    }
}

static uint64_t running_ms(struct gpu_use *use, struct text name, int64_t month_ms, int64_t now_ms)
{
    int64_t sum = 0;
    pthread_mutex_lock(&use->lock);
    if (use->floor_ms != month_ms)
        sums_make(use, month_ms);
    const uint32_t number = text_map_get(&use->user_names, name);
    if (number != MAP_NONE) {
        const struct gpu_use_user *user = &use->users.items[number];
        sum = (int64_t)user->gpus * now_ms - user->begins;
    }
    pthread_mutex_unlock(&use->lock);
    return sum > 0 ? (uint64_t)sum : 0; /* not when the clock is before their begin */
}

/* --- a batch --- */

static bool is_running(const struct task_record *task)
{
    return task->attempt.v != 0 && task->gpu_count > 0 && task->attempt_launched_ms > 0 &&
           task->state < LIFE_ATTEMPT_COMPLETED;
}

static bool is_ended(const struct task_record *task)
{
    return task->attempt.v != 0 && task->state >= LIFE_ATTEMPT_COMPLETED;
}

/* A job of this batch has no row in the index yet. */
static struct text owner_of(const struct store *store, const struct output *output,
                            struct job_id job)
{
    struct text name = text_of(job_index_name(store->job_index, job));
    if (name.length > 0)
        return text_cut(&name, '~');
    for (size_t i = 0; i < output->records.count; i++)
        if (output->records.items[i].kind == RECORD_JOB &&
            output->records.items[i].job.id.v == job.v)
            return text_of(output->records.items[i].job.user);
    assert(false && "a task of a job that is not known");
    return TEXT("");
}

static int month_add(struct store *store, const struct gpu_use_step *step, int64_t begin_ms,
                     int64_t end_ms, struct err *err)
{
    struct sql sql = sql_of(&store->session, add);
    sql_put_string(&sql, store->gpu_use.users.items[step->user].name);
    sql_put_int(&sql, utc_month_of(begin_ms).number);
    sql_put_int(&sql, (end_ms - begin_ms) * step->gpus);
    return sql_run(&sql, NULL, err);
}

/* Each month gets its part. */
static int end_write(struct store *store, const struct gpu_use_step *step, int64_t end_ms,
                     struct err *err)
{
    int code = 0;
    for (int64_t at_ms = step->begin_ms; code == 0 && at_ms < end_ms;) {
        const int64_t month_ms = utc_month_of(at_ms).end_ms;
        const int64_t until_ms = month_ms > at_ms && month_ms < end_ms ? month_ms : end_ms;
        code = month_add(store, step, at_ms, until_ms, err);
        at_ms = until_ms;
    }
    return code;
}

/* The beginning of an attempt that ends: of what runs, or of this batch. NULL: it had no GPUs, did
 * not run, or has ended before. `seen`: attempts of the batch → their last step. */
static const struct gpu_use_step *begin_find(struct gpu_use *use, const struct id_map *seen,
                                             struct attempt_id attempt, struct gpu_use_step *copy)
{
    const uint32_t at = id_map_get(seen, attempt.v);
    const uint32_t index = id_map_get(&use->attempts, attempt.v);
    if (at != MAP_NONE) {
        *copy = use->steps.items[at];
        return copy->is_end ? NULL : copy;
    }
    if (index == MAP_NONE)
        return NULL;
    const struct gpu_use_run *run = &use->running.items[index];
    *copy = (struct gpu_use_step){run->attempt, run->user, run->gpus, run->begin_ms, false};
    return copy;
}

/* An attempt that begins and ends in one batch is known from nowhere else. The batch may be one
 * that was stored though its answer was lost, and that comes again: then its end has a row, as this
 * is asked before the records of the batch are written. */
static int is_counted(struct store *store, const struct id_map *seen, struct attempt_id attempt,
                      bool *is_there, struct err *err)
{
    struct sql sql = sql_of(&store->session, count_ended);
    int64_t count = 0;
    *is_there = false;
    if (id_map_get(seen, attempt.v) == MAP_NONE)
        return 0;
    sql_put_int(&sql, (int64_t)attempt.v);
    const int code = sql_number(&sql, &count, err);
    *is_there = count > 0;
    return code;
}

static int task_step(struct store *store, const struct output *output,
                     const struct task_record *task, struct id_map *seen, struct err *err)
{
    struct gpu_use *use = &store->gpu_use;
    struct gpu_use_step step;
    const bool is_known = begin_find(use, seen, task->attempt, &step) != NULL;
    int code = 0;
    if (is_ended(task) && is_known) {
        bool is_there;
        code = is_counted(store, seen, task->attempt, &is_there, err);
        step.is_end = true;
        if (code == 0 && !is_there)
            code = end_write(store, &step, task->attempt_completed_ms, err);
    } else if (is_running(task) && !is_known) {
        pthread_mutex_lock(&use->lock);
        step = (struct gpu_use_step){task->attempt,
                                     user_number(use, owner_of(store, output, task->job)),
                                     (uint32_t)task->gpu_count, task->attempt_launched_ms, false};
        pthread_mutex_unlock(&use->lock);
    } else {
        return 0;
    }
    id_map_set(seen, task->attempt.v, (uint32_t)use->steps.count);
    *ARRAY_ADD(&use->steps) = step;
    return code;
}

int gpu_use_write(struct store *store, const struct output *output, struct err *err)
{
    cleanup_id_map struct id_map seen = {0};
    int code = 0;
    store->gpu_use.steps.count = 0;
    for (size_t i = 0; code == 0 && i < output->records.count; i++)
        if (output->records.items[i].kind == RECORD_TASK)
            code = task_step(store, output, &output->records.items[i].task, &seen, err);
    return code;
}

void gpu_use_apply(struct store *store)
{
    struct gpu_use *use = &store->gpu_use;
    pthread_mutex_lock(&use->lock);
    for (size_t i = 0; i < use->steps.count; i++) {
        const struct gpu_use_step *step = &use->steps.items[i];
        if (step->is_end)
            run_remove(use, step->attempt);
        else
            run_add(use, step);
    }
    use->steps.count = 0;
    pthread_mutex_unlock(&use->lock);
}

/* --- others --- */

int gpu_use_load(struct store *store, uint64_t seed, struct err *err)
{
    struct gpu_use *use = &store->gpu_use;
    struct sql sql = sql_of(&store->session, select_running);
    int code;
    pthread_mutex_lock(&use->lock);
    gpu_use_clear(use);
    use->user_names.seed = seed;
    use->steps.count = 0;
    while ((code = sql_next(&sql, err)) > 0) {
        struct gpu_use_step step = {.attempt = {(uint64_t)sql_int(&sql)}};
        struct text name =
            text_of(job_index_name(store->job_index, (struct job_id){(uint32_t)sql_int(&sql)}));
        step.gpus = (uint32_t)sql_int(&sql) / 2; /* two bytes each */
        step.begin_ms = sql_int(&sql);
        step.user = user_number(use, text_cut(&name, '~'));
        run_add(use, &step);
    }
    pthread_mutex_unlock(&use->lock);
    return code;
}

int gpu_use_trim(struct store *store, int64_t before_ms, struct err *err)
{
    struct sql sql = sql_of(&store->session, delete_old);
    sql_put_int(&sql, utc_month_of(before_ms).number);
    return sql_run(&sql, NULL, err);
}

int store_gpu_use(struct store_reader *reader, struct text user, int64_t now_ms, uint64_t *gpu_ms,
                  struct err *err)
{
    const struct utc_month month = utc_month_of(now_ms);
    struct sql sql = sql_of(&reader->session, select_one);
    int64_t ended_ms = 0;
    sql_put_text(&sql, user);
    sql_put_int(&sql, month.number);
    int code = sql_number(&sql, &ended_ms, err);
    *gpu_ms =
        (uint64_t)ended_ms + running_ms(&reader->store->gpu_use, user, month.begin_ms, now_ms);
    return code;
}
