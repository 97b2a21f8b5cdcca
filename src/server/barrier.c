/* barrier.c — see barrier.h. */
#include "server/barrier.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "spec/spec.h"
#include "store/read.h"
#include "sys/log.h"
#include "sys/secret.h"
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct barrier_task {
    struct task_ref ref;
    struct attempt_id attempt; /* the current try */
    bool is_needed, has_come;
    struct service_reply held; /* .done NULL: none */
};

struct barrier {
    struct job_id job;
    uint32_t attempt; /* of the job */
    enum store_barrier kind;
    bool is_passed;
    char broken[160]; /* why it can never be passed; "" = it can */
    struct {          /* roles that take part, by index, and their names */
        bool *takes_part;
        size_t count;
    } roles;
    struct {
        struct barrier_task *items;
        size_t count, room;
    } tasks;
    struct id_map by_ref;
    size_t missing; /* tasks needed that have not come */
};

struct barrier_table {
    struct store *store;
    struct store_reader *reader;
    struct arena scratch;
    struct id_map by_key;
    struct {
        struct barrier **items;
        size_t count, room;
    } barriers;
    _Atomic uint64_t held;
};

static uint64_t barrier_key(struct job_id job, enum store_barrier kind)
{
    return (uint64_t)job.v << 1 | (uint64_t)kind;
}

static uint64_t ref_key(struct task_ref ref)
{
    return (uint64_t)ref.role << 16 | ref.index;
}

static void answer(struct service_reply reply, int code, const char *text)
{
    reply.done(reply.context,
               &(struct service_answer){.code = code, .path = "", .text = code ? text : ""});
}

static void task_release(struct barrier_table *table, struct barrier_task *task, int code,
                         const char *text)
{
    struct service_reply held = task->held;

    if (!held.done)
        return;
    task->held.done = NULL;
    atomic_fetch_sub(&table->held, 1);
    answer(held, code, text);
}

static void barrier_release(struct barrier_table *table, struct barrier *barrier, int code,
                            const char *text)
{
    for (size_t i = 0; i < barrier->tasks.count; i++)
        task_release(table, &barrier->tasks.items[i], code, text);
}

static void barrier_free(struct barrier *barrier)
{
    mem_free(barrier->roles.takes_part);
    ARRAY_FREE(&barrier->tasks);
    id_map_release(&barrier->by_ref);
    mem_free(barrier);
}

static struct barrier *barrier_find(struct barrier_table *table, struct job_id job,
                                    enum store_barrier kind)
{
    uint32_t index = id_map_get(&table->by_key, barrier_key(job, kind));

    return index == MAP_NONE ? NULL : table->barriers.items[index];
}

/* The job's attempt ends: nobody has anything to wait for. */
static void barrier_drop(struct barrier_table *table, struct barrier *barrier, const char *why)
{
    uint64_t key = barrier_key(barrier->job, barrier->kind);
    uint32_t index = id_map_get(&table->by_key, key);
    struct barrier *last = table->barriers.items[table->barriers.count - 1];

    assert(index < table->barriers.count);
    barrier_release(table, barrier, ERR_CONFLICT, why);
    table->barriers.items[index] = last;
    table->barriers.count--;
    id_map_set(&table->by_key, barrier_key(last->job, last->kind), index);
    id_map_remove(&table->by_key, key);
    barrier_free(barrier);
}

/* ---- what the tasks do ---- */

static void task_set(struct barrier *barrier, struct barrier_task *task, bool is_needed,
                     bool has_come)
{
    barrier->missing -= task->is_needed && !task->has_come;
    task->is_needed = is_needed;
    task->has_come = has_come;
    barrier->missing += is_needed && !has_come;
}

static struct barrier_task *task_of(struct barrier *barrier, const struct task_record *row)
{
    uint32_t index = id_map_get(&barrier->by_ref, ref_key(row->task));
    struct barrier_task *task;

    if (index != MAP_NONE)
        return &barrier->tasks.items[index];
    id_map_set(&barrier->by_ref, ref_key(row->task), (uint32_t)barrier->tasks.count);
    task = ARRAY_ADD(&barrier->tasks);
    *task = (struct barrier_task){.ref = row->task, .attempt = row->attempt};
    return task;
}

/* A row of the job attempt as it is now. */
static void barrier_row(struct barrier_table *table, struct barrier *barrier,
                        const struct task_record *row)
{
    bool is_off = row->is_removed || row->is_deletion_pending;
    struct barrier_task *task;

    if (barrier->is_passed || row->job_attempt != barrier->attempt ||
        row->task.role >= barrier->roles.count || !barrier->roles.takes_part[row->task.role])
        return;
    task = task_of(barrier, row);
    if (task->attempt.v != row->attempt.v || row->state >= LIFE_ATTEMPT_COMPLETED) {
        task_set(barrier, task, task->is_needed, false);
        task_release(table, task, ERR_CONFLICT, "this try has ended");
    }
    task->attempt = row->attempt;
    task_set(barrier, task, !is_off, task->has_come);
    if (row->state == LIFE_COMPLETED && !is_off && !barrier->broken[0])
        snprintf(barrier->broken, sizeof barrier->broken, "%.100s-%u has ended with code %d",
                 row->role_name, row->task.index, row->completion.code);
}

/* Whoever waits is answered when there is something to say. */
static void barrier_settle(struct barrier_table *table, struct barrier *barrier)
{
    struct store_change change = {.kind = CHANGE_BARRIER,
                                  .barrier = {barrier->job, barrier->attempt, barrier->kind}};
    struct store_batch batch = {.changes = &change, .change_count = 1};
    struct err err;

    if (barrier->is_passed)
        return;
    if (barrier->broken[0]) {
        barrier_release(table, barrier, ERR_CONFLICT, barrier->broken);
        return;
    }
    if (barrier->missing > 0 || barrier->tasks.count == 0)
        return;
    if (store_commit(table->store, &batch, &err) < 0) {
        log_warning("server", "job %u cannot pass a barrier yet: %s", barrier->job.v, err.text);
        barrier_release(table, barrier, ERR_UNAVAILABLE, err.text);
        return;
    }
    barrier->is_passed = true;
    barrier_release(table, barrier, 0, "");
    ARRAY_FREE(&barrier->tasks);
    id_map_release(&barrier->by_ref);
}

static void take_task(struct barrier_table *table, const struct task_record *row)
{
    for (int kind = BARRIER_START; kind <= BARRIER_SSH; kind++) {
        struct barrier *barrier = barrier_find(table, row->job, (enum store_barrier)kind);
        if (!barrier)
            continue;
        barrier_row(table, barrier, row);
        barrier_settle(table, barrier);
    }
}

static bool is_under_way(const struct job_record *job, uint32_t attempt)
{
    return job->attempt == attempt && job->state < LIFE_DELETION_PENDING;
}

static void take_job(struct barrier_table *table, struct job_id id, const struct job_record *job)
{
    for (int kind = BARRIER_START; kind <= BARRIER_SSH; kind++) {
        struct barrier *barrier = barrier_find(table, id, (enum store_barrier)kind);
        if (barrier && (!job || !is_under_way(job, barrier->attempt)))
            barrier_drop(table, barrier, "the job's attempt ends");
    }
}

void barrier_take(struct barrier_table *table, const struct record *records, size_t count)
{
    if (table->barriers.count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (records[i].kind == RECORD_TASK)
            take_task(table, &records[i].task);
        else if (records[i].kind == RECORD_JOB)
            take_job(table, records[i].job.id, &records[i].job);
        else if (records[i].kind == RECORD_JOB_DELETED)
            take_job(table, records[i].deleted, NULL);
    }
}

/* ---- reports ---- */

/* Who takes part: all in the start barrier, those with ssh in the other. */
static int barrier_roles(struct barrier_table *table, struct barrier *barrier, struct err *err)
{
    struct store_source source;
    struct spec *spec;
    int code = store_job_source(table->reader, barrier->job, &table->scratch, &source, err);

    if (code < 0)
        return code;
    spec = spec_decode(source.spec_bytes, err);
    if (!spec)
        return ERR_CORRUPT;
    barrier->roles.count = spec->role_count;
    barrier->roles.takes_part = mem_zero(spec->role_count, sizeof *barrier->roles.takes_part);
    for (size_t i = 0; i < spec->role_count; i++)
        barrier->roles.takes_part[i] =
            barrier->kind == BARRIER_START || spec->roles[i].is_ssh_enabled;
    spec_free(spec);
    return 0;
}

static int barrier_load(struct barrier_table *table, struct barrier *barrier, struct err *err)
{
    struct store_job job;
    struct store_tasks tasks;
    int64_t passed = -1;
    int code = store_job_read(table->reader, barrier->job, &table->scratch, &job, err);

    if (code == 0 && !is_under_way(&job.record, barrier->attempt))
        code = err_fail(err, ERR_CONFLICT, "", "the job's attempt ends");
    if (code == 0)
        code = store_barrier_passed(table->reader, barrier->job, barrier->kind, &passed, err);
    if (code)
        return code;
    barrier->is_passed = passed == (int64_t)barrier->attempt;
    if (barrier->is_passed)
        return 0;
    code = barrier_roles(table, barrier, err);
    if (code == 0)
        code = store_tasks(table->reader, barrier->job, -1, &table->scratch, &tasks, err);
    for (size_t i = 0; code == 0 && i < tasks.count; i++)
        barrier_row(table, barrier, &tasks.items[i]);
    return code;
}

/* NULL with an error: the attempt of the job ends, or its rows cannot be read. */
static struct barrier *barrier_of(struct barrier_table *table, const struct task_record *row,
                                  enum store_barrier kind, struct err *err)
{
    struct barrier *barrier = barrier_find(table, row->job, kind);

    if (barrier && barrier->attempt != row->job_attempt) {
        err_fail(err, ERR_CONFLICT, "", "this attempt of the job has ended");
        return NULL;
    }
    if (barrier)
        return barrier;
    barrier = mem_zero(1, sizeof *barrier);
    barrier->job = row->job;
    barrier->attempt = row->job_attempt;
    barrier->kind = kind;
    if (barrier_load(table, barrier, err)) {
        barrier_free(barrier);
        return NULL;
    }
    id_map_set(&table->by_key, barrier_key(row->job, kind), (uint32_t)table->barriers.count);
    *ARRAY_ADD(&table->barriers) = barrier;
    return barrier;
}

static void barrier_come(struct barrier_table *table, struct barrier *barrier,
                         const struct service_barrier *report, const struct task_record *row,
                         struct service_reply reply)
{
    uint32_t index = id_map_get(&barrier->by_ref, ref_key(row->task));
    struct barrier_task *task;

    if (barrier->is_passed) {
        answer(reply, 0, "");
        return;
    }
    if (index == MAP_NONE || barrier->tasks.items[index].attempt.v != report->attempt.v) {
        answer(reply, ERR_CONFLICT, "this task does not take part, or this try has ended");
        return;
    }
    task = &barrier->tasks.items[index];
    task_set(barrier, task, task->is_needed, true);
    task_release(table, task, ERR_UNAVAILABLE, "asked again");
    if (!report->is_up && !barrier->broken[0])
        snprintf(barrier->broken, sizeof barrier->broken, "%.100s-%u has no ssh server",
                 row->role_name, row->task.index);
    if (!report->is_waiting) {
        answer(reply, 0, "");
    } else if (atomic_load(&table->held) >= BARRIER_HELD_MAX && barrier->missing > 0) {
        answer(reply, ERR_BUSY, "too many wait: ask again");
    } else {
        task->held = reply;
        atomic_fetch_add(&table->held, 1);
    }
    barrier_settle(table, barrier);
}

void barrier_report(struct barrier_table *table, const struct service_barrier *report,
                    struct service_reply reply)
{
    struct task_record row;
    struct barrier *barrier = NULL;
    struct err err = {0};
    int code = store_attempt(table->reader, report->attempt, &table->scratch, &row, &err);

    if (code == 0 && row.state >= LIFE_ATTEMPT_COMPLETED)
        code = err_fail(&err, ERR_CONFLICT, "", "this try has ended");
    if (code == 0)
        barrier = barrier_of(table, &row, report->kind, &err);
    if (barrier)
        barrier_come(table, barrier, report, &row, reply);
    else
        answer(reply, code ? code : err.code, err.text);
    arena_clear(&table->scratch);
}

/* ---- the table ---- */

struct barrier_table *barrier_table_new(struct store *store, struct store_reader *reader)
{
    struct barrier_table *table = mem_zero(1, sizeof *table);

    table->store = store;
    table->reader = reader;
    arena_init(&table->scratch);
    return table;
}

void barrier_clear(struct barrier_table *table, const char *why)
{
    for (size_t i = 0; i < table->barriers.count; i++) {
        barrier_release(table, table->barriers.items[i], ERR_UNAVAILABLE, why);
        barrier_free(table->barriers.items[i]);
    }
    table->barriers.count = 0;
    id_map_release(&table->by_key);
    assert(atomic_load(&table->held) == 0);
}

void barrier_table_free(struct barrier_table *table)
{
    if (!table)
        return;
    barrier_clear(table, "the server is ending");
    ARRAY_FREE(&table->barriers);
    arena_release(&table->scratch);
    mem_free(table);
}

uint64_t barrier_held_count(const struct barrier_table *table)
{
    return atomic_load(&table->held);
}

void barrier_token(const uint8_t *master_key, struct attempt_id attempt,
                   char token[BARRIER_TOKEN_SIZE])
{
    static const char DIGITS[] = "0123456789abcdef";
    uint8_t key[SECRET_KEY_SIZE];

    secret_key_derive(master_key, attempt.v, "skepbarr", key);
    for (size_t i = 0; i < sizeof key; i++) {
        token[2 * i] = DIGITS[key[i] >> 4];
        token[2 * i + 1] = DIGITS[key[i] & 15];
    }
    token[2 * sizeof key] = '\0';
    secret_wipe(key, sizeof key);
}

bool barrier_token_is(const uint8_t *master_key, struct attempt_id attempt, struct text token)
{
    char wanted[BARRIER_TOKEN_SIZE];
    unsigned different = 0;

    if (token.length != sizeof wanted - 1)
        return false;
    barrier_token(master_key, attempt, wanted);
    for (size_t i = 0; i < token.length; i++)
        different |= (unsigned)(wanted[i] ^ token.at[i]);
    secret_wipe(wanted, sizeof wanted);
    return different == 0;
}
