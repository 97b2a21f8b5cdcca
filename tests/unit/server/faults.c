/* faults.c — see faults.h. */
#include "faults.h"
#include "../store/memory.h"
#include "base/err.h"
#include "store/read.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "world.h"
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool is_holding, is_held, is_letting, is_holding_restores, is_restore_held, is_short;
    unsigned commits, commit_at;
    int commit_codes[COMMIT_CODES_MAX], piece_code, attempt_code, job_code, plan_code, measure_code;
    bool is_each_piece;
    struct job_id kept;
    int kept_code;
    unsigned seen, fail_at, power_at; /* commits, and those that fail, counted from 1; 0: none */
    int fail_code;
    bool is_power_off, is_power_late;
    struct memory *memory;
    int64_t wall_ms, boot_ms;
    bool is_stopped;
    int64_t stopped_wall_ms, stopped_boot_ms;
    unsigned boots;
} faults = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

int __real_store_commit(struct store *store, const struct store_batch *batch, struct err *err);
int __wrap_store_commit(struct store *store, const struct store_batch *batch, struct err *err);
int __real_store_refused_job(struct store *store, const struct output *output, struct job_id *job,
                             struct err *err);
int __wrap_store_refused_job(struct store *store, const struct output *output, struct job_id *job,
                             struct err *err);
int __real_store_open_with(const char *directory, const struct store_opening *opening,
                           struct store **store, struct err *err);
int __wrap_store_open_with(const char *directory, const struct store_opening *opening,
                           struct store **store, struct err *err);
int __real_store_restore(struct store_reader *reader, const struct store_restore *restore,
                         struct err *err);
int __wrap_store_restore(struct store_reader *reader, const struct store_restore *restore,
                         struct err *err);
int64_t __real_clock_unix_ms(void);
int64_t __wrap_clock_unix_ms(void);
int64_t __real_clock_boot_ms(void);
int64_t __wrap_clock_boot_ms(void);
void __wrap_clock_boot_id(char id[CLOCK_BOOT_ID_MAX]);
int __real_store_attempt(struct store_reader *reader, struct attempt_id attempt,
                         struct arena *arena, struct task_record *row, struct err *err);
int __wrap_store_attempt(struct store_reader *reader, struct attempt_id attempt,
                         struct arena *arena, struct task_record *row, struct err *err);

int __real_store_job_read(struct store_reader *reader, struct job_id job, struct arena *arena,
                          struct store_job *row, struct err *err);
int __wrap_store_job_read(struct store_reader *reader, struct job_id job, struct arena *arena,
                          struct store_job *row, struct err *err);

int __real_store_job_plan(struct store_reader *reader, struct job_id job, struct plan **plan,
                          struct err *err);
int __wrap_store_job_plan(struct store_reader *reader, struct job_id job, struct plan **plan,
                          struct err *err);

int __real_store_measure(struct store *store, uint64_t *used_bytes, int64_t *oldest_event_ms,
                         struct err *err);
int __wrap_store_measure(struct store *store, uint64_t *used_bytes, int64_t *oldest_event_ms,
                         struct err *err);

bool __real_store_is_short(const struct store *store);
bool __wrap_store_is_short(const struct store *store);

bool __wrap_store_is_short(const struct store *store)
{
    pthread_mutex_lock(&faults.lock);
    const bool is_short = faults.is_short;
    pthread_mutex_unlock(&faults.lock);
    return is_short || __real_store_is_short(store);
}

int __wrap_store_measure(struct store *store, uint64_t *used_bytes, int64_t *oldest_event_ms,
                         struct err *err)
{
    pthread_mutex_lock(&faults.lock);
    const int code = faults.measure_code;
    pthread_mutex_unlock(&faults.lock);
    if (code < 0)
        return err_fail(err, code, "", "not measured by the test");
    return __real_store_measure(store, used_bytes, oldest_event_ms, err);
}

static bool is_piece(const struct store_batch *batch)
{
    return batch->change_count == 1 && batch->changes[0].kind == CHANGE_DELETIONS;
}

/* Under the lock. */
static int deletion_code(const struct output *output)
{
    for (size_t i = 0; output && i < output->records.count; i++)
        if (output->records.items[i].kind == RECORD_JOB_DELETED &&
            output->records.items[i].deleted.v == faults.kept.v)
            return faults.kept_code;
    return 0;
}

int __wrap_store_refused_job(struct store *store, const struct output *output, struct job_id *job,
                             struct err *err)
{
    pthread_mutex_lock(&faults.lock);
    const int code = deletion_code(output);
    *job = faults.kept;
    pthread_mutex_unlock(&faults.lock);
    if (code < 0)
        return err_fail(err, code, "", "refused by the test") == ERR_INTERNAL ? 0 : code;
    return __real_store_refused_job(store, output, job, err);
}

/* Under the lock. */
static void commit_hold(void)
{
    faults.is_held = true;
    pthread_cond_broadcast(&faults.moved);
    while (faults.is_holding && !faults.is_letting)
        pthread_cond_wait(&faults.moved, &faults.lock);
    faults.is_held = faults.is_letting = false;
    pthread_cond_broadcast(&faults.moved);
}

/* Under the lock: what is to become of this commit. */
static int commit_code(const struct store_batch *batch)
{
    int code = 0;

    faults.seen++;
    if (faults.power_at == faults.seen && !faults.is_power_late)
        faults.is_power_off = true;
    if (faults.is_power_off)
        return ERR_UNAVAILABLE;
    if (faults.piece_code < 0 && is_piece(batch)) {
        code = faults.piece_code;
        faults.piece_code = faults.is_each_piece ? code : 0;
    } else if (faults.commit_at < faults.commits) {
        code = faults.commit_codes[faults.commit_at++];
    } else if (faults.fail_at == faults.seen) {
        code = faults.fail_code;
    }
    return code == 0 ? deletion_code(batch->output) : code;
}

int __wrap_store_commit(struct store *store, const struct store_batch *batch, struct err *err)
{
    pthread_mutex_lock(&faults.lock);
    if (faults.is_holding)
        commit_hold();
    const int code = commit_code(batch);
    const bool is_last = faults.power_at == faults.seen;
    pthread_mutex_unlock(&faults.lock);
    if (code < 0)
        return err_fail(err, code, "", "refused by the test");
    const int real = __real_store_commit(store, batch, err);
    if (is_last)
        power_fail();
    return real;
}

unsigned commits_count(void)
{
    pthread_mutex_lock(&faults.lock);
    const unsigned count = faults.seen;
    pthread_mutex_unlock(&faults.lock);
    return count;
}

void commit_fails_after(unsigned others, int code)
{
    pthread_mutex_lock(&faults.lock);
    faults.fail_at = code < 0 ? faults.seen + others + 1 : 0;
    faults.fail_code = code;
    pthread_mutex_unlock(&faults.lock);
}

void power_fails_after(unsigned others, bool is_stored)
{
    pthread_mutex_lock(&faults.lock);
    faults.power_at = faults.seen + others + 1;
    faults.is_power_late = is_stored;
    pthread_mutex_unlock(&faults.lock);
}

void power_fail(void)
{
    pthread_mutex_lock(&faults.lock);
    faults.is_power_off = true;
    pthread_mutex_unlock(&faults.lock);
}

bool power_is_off(void)
{
    pthread_mutex_lock(&faults.lock);
    const bool is_off = faults.is_power_off;
    pthread_mutex_unlock(&faults.lock);
    return is_off;
}

void power_restore(void)
{
    pthread_mutex_lock(&faults.lock);
    faults.is_power_off = false;
    faults.power_at = 0;
    pthread_mutex_unlock(&faults.lock);
}

int __wrap_store_open_with(const char *directory, const struct store_opening *opening,
                           struct store **store, struct err *err)
{
    struct database *database;

    pthread_mutex_lock(&faults.lock);
    struct memory *memory = faults.memory;
    pthread_mutex_unlock(&faults.lock);
    if (!memory)
        return __real_store_open_with(directory, opening, store, err);
    int code = memory_open(memory, &database, err);
    return code < 0 ? code : store_open_on(database, store, err);
}

int __wrap_store_attempt(struct store_reader *reader, struct attempt_id attempt,
                         struct arena *arena, struct task_record *row, struct err *err)
{
    pthread_mutex_lock(&faults.lock);
    int code = faults.attempt_code;
    pthread_mutex_unlock(&faults.lock);
    if (code < 0)
        return err_fail(err, code, "", "unreadable by the test");
    return __real_store_attempt(reader, attempt, arena, row, err);
}

int __wrap_store_job_read(struct store_reader *reader, struct job_id job, struct arena *arena,
                          struct store_job *row, struct err *err)
{
    pthread_mutex_lock(&faults.lock);
    int code = faults.job_code;
    pthread_mutex_unlock(&faults.lock);
    if (code < 0)
        return err_fail(err, code, "", "unreadable by the test");
    return __real_store_job_read(reader, job, arena, row, err);
}

int __wrap_store_job_plan(struct store_reader *reader, struct job_id job, struct plan **plan,
                          struct err *err)
{
    pthread_mutex_lock(&faults.lock);
    int code = faults.plan_code;
    pthread_mutex_unlock(&faults.lock);
    if (code < 0)
        return err_fail(err, code, "", "unreadable by the test");
    return __real_store_job_plan(reader, job, plan, err);
}

int __wrap_store_restore(struct store_reader *reader, const struct store_restore *restore,
                         struct err *err)
{
    pthread_mutex_lock(&faults.lock);
    faults.is_restore_held = true;
    pthread_cond_broadcast(&faults.moved);
    while (faults.is_holding_restores)
        pthread_cond_wait(&faults.moved, &faults.lock);
    faults.is_restore_held = false;
    pthread_mutex_unlock(&faults.lock);
    return __real_store_restore(reader, restore, err);
}

static int64_t shifted(int64_t real_ms, const int64_t *stopped_ms, const int64_t *by_ms)
{
    pthread_mutex_lock(&faults.lock);
    const int64_t ms = (faults.is_stopped ? *stopped_ms : real_ms) + *by_ms;
    pthread_mutex_unlock(&faults.lock);
    return ms;
}

int64_t __wrap_clock_unix_ms(void)
{
    return shifted(__real_clock_unix_ms(), &faults.stopped_wall_ms, &faults.wall_ms);
}

int64_t __wrap_clock_boot_ms(void)
{
    return shifted(__real_clock_boot_ms(), &faults.stopped_boot_ms, &faults.boot_ms);
}

void clock_stop(void)
{
    const int64_t wall_ms = __real_clock_unix_ms(), boot_ms = __real_clock_boot_ms();

    pthread_mutex_lock(&faults.lock);
    faults.is_stopped = true;
    faults.stopped_wall_ms = wall_ms;
    faults.stopped_boot_ms = boot_ms;
    pthread_mutex_unlock(&faults.lock);
}

void __wrap_clock_boot_id(char id[CLOCK_BOOT_ID_MAX])
{
    pthread_mutex_lock(&faults.lock);
    snprintf(id, CLOCK_BOOT_ID_MAX, "boot-%u", faults.boots);
    pthread_mutex_unlock(&faults.lock);
}

void machine_boot(void)
{
    pthread_mutex_lock(&faults.lock);
    faults.boots++;
    faults.boot_ms = 60000 - (faults.is_stopped ? faults.stopped_boot_ms : __real_clock_boot_ms());
    pthread_mutex_unlock(&faults.lock);
}

void clock_set_by(int64_t wall_ms)
{
    pthread_mutex_lock(&faults.lock);
    faults.wall_ms += wall_ms;
    pthread_mutex_unlock(&faults.lock);
}

void clock_pass(int64_t boot_ms)
{
    pthread_mutex_lock(&faults.lock);
    faults.wall_ms += boot_ms;
    faults.boot_ms += boot_ms;
    pthread_mutex_unlock(&faults.lock);
}

void commits_hold(void)
{
    pthread_mutex_lock(&faults.lock);
    faults.is_holding = true;
    pthread_mutex_unlock(&faults.lock);
}

void commits_await_held(void)
{
    pthread_mutex_lock(&faults.lock);
    while (!faults.is_held)
        pthread_cond_wait(&faults.moved, &faults.lock);
    pthread_mutex_unlock(&faults.lock);
}

void commits_let_one(void)
{
    pthread_mutex_lock(&faults.lock);
    assert(faults.is_held);
    faults.is_letting = true;
    pthread_cond_broadcast(&faults.moved);
    while (faults.is_letting)
        pthread_cond_wait(&faults.moved, &faults.lock);
    pthread_mutex_unlock(&faults.lock);
}

void commits_release(void)
{
    pthread_mutex_lock(&faults.lock);
    faults.is_holding = false;
    pthread_cond_broadcast(&faults.moved);
    pthread_mutex_unlock(&faults.lock);
}

void restores_hold(void)
{
    pthread_mutex_lock(&faults.lock);
    faults.is_holding_restores = true;
    pthread_mutex_unlock(&faults.lock);
}

void restores_await_held(void)
{
    pthread_mutex_lock(&faults.lock);
    while (!faults.is_restore_held)
        pthread_cond_wait(&faults.moved, &faults.lock);
    pthread_mutex_unlock(&faults.lock);
}

void restores_release(void)
{
    pthread_mutex_lock(&faults.lock);
    faults.is_holding_restores = false;
    pthread_cond_broadcast(&faults.moved);
    pthread_mutex_unlock(&faults.lock);
}

void commits_script(const int *codes, unsigned count)
{
    pthread_mutex_lock(&faults.lock);
    assert(count <= COMMIT_CODES_MAX);
    for (unsigned i = 0; i < count; i++)
        faults.commit_codes[i] = codes[i];
    faults.commits = count;
    faults.commit_at = 0;
    pthread_mutex_unlock(&faults.lock);
}

static void pieces_set(int code, bool is_each)
{
    pthread_mutex_lock(&faults.lock);
    faults.piece_code = code;
    faults.is_each_piece = is_each;
    pthread_mutex_unlock(&faults.lock);
}

void piece_fails(int code)
{
    pieces_set(code, false);
}

void pieces_fail(int code)
{
    pieces_set(code, true);
}

void deletion_fails(struct job_id job, int code)
{
    pthread_mutex_lock(&faults.lock);
    faults.kept = job;
    faults.kept_code = code;
    pthread_mutex_unlock(&faults.lock);
}

void measure_fails(int code)
{
    pthread_mutex_lock(&faults.lock);
    faults.measure_code = code;
    pthread_mutex_unlock(&faults.lock);
}

void disk_short(bool is_short)
{
    pthread_mutex_lock(&faults.lock);
    faults.is_short = is_short;
    pthread_mutex_unlock(&faults.lock);
}

void store_in_memory(struct memory *memory)
{
    pthread_mutex_lock(&faults.lock);
    faults.memory = memory;
    pthread_mutex_unlock(&faults.lock);
}

void attempts_unreadable(int code)
{
    pthread_mutex_lock(&faults.lock);
    faults.attempt_code = code;
    pthread_mutex_unlock(&faults.lock);
}

void jobs_unreadable(int code)
{
    pthread_mutex_lock(&faults.lock);
    faults.job_code = code;
    pthread_mutex_unlock(&faults.lock);
}

void plans_unreadable(int code)
{
    pthread_mutex_lock(&faults.lock);
    faults.plan_code = code;
    pthread_mutex_unlock(&faults.lock);
}

void faults_clear(void)
{
    commits_release();
    restores_release();
    commits_script(NULL, 0);
    piece_fails(0);
    measure_fails(0);
    deletion_fails((struct job_id){0}, 0);
    disk_short(false);
    attempts_unreadable(0);
    jobs_unreadable(0);
    plans_unreadable(0);
    store_in_memory(NULL);
    commit_fails_after(0, 0);
    power_restore();
    pthread_mutex_lock(&faults.lock);
    faults.wall_ms = faults.boot_ms = 0;
    faults.is_stopped = false;
    faults.seen = 0;
    pthread_mutex_unlock(&faults.lock);
}

int teardown_faults(void **state)
{
    faults_clear();
    int code = teardown(state);
    log_to(2);
    return code;
}
