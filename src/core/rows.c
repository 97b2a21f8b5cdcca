#include "core/rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "core/plan.h"

struct task_row {
    struct task_record record; /* strings and arrays are of this row */
    char *node, *address;
    uint16_t *gpus;
    struct port_range *ports;
};

struct node_row {
    struct node_record record; /* its facts and its closing are owned */
};

/* Numbers are given one after the other but for a jump where an epoch begins: what belongs to the
 * numbers from `first` on stands in its array from `index` on. */
struct run {
    uint64_t first;
    size_t index;
};
struct runs {
    struct run *items;
    size_t count, room;
};

struct rows {
    struct runs job_runs, attempt_runs;
    uint32_t last_job;
    uint64_t last_attempt;
    struct {
        struct rows_job *items; /* by job_runs */
        size_t count, room;
    } jobs;
    struct {
        struct task_row *items;
        size_t count, room;
    } tasks;
    struct id_map task_keys;
    struct {
        struct node_row *items;
        size_t count, room;
    } nodes;
    struct {
        struct cluster_record *items; /* those that were closed once */
        size_t count, room;
    } closed;
    struct {
        struct {
            uint32_t job;
            enum life_state state;
        } * items; /* by attempt_runs */
        size_t count, room;
    } attempts;
};

static void run_begin(struct runs *runs, uint64_t first, size_t index)
{
    *ARRAY_ADD(runs) = (struct run){first, index};
}

static size_t run_index(const struct runs *runs, uint64_t number)
{
    size_t at = runs->count - 1;
    while (runs->items[at].first > number) {
        assert(at > 0);
        at--;
    }
    return runs->items[at].index + (size_t)(number - runs->items[at].first);
}

struct rows *rows_new(void)
{
    struct rows *rows = mem_zero(1, sizeof *rows);
    run_begin(&rows->job_runs, 1, 0);
    run_begin(&rows->attempt_runs, 0, 0);
    return rows;
}

void rows_skip(struct rows *rows, struct job_id last_job, struct attempt_id last_attempt)
{
    if (last_job.v > rows->last_job) {
        rows->last_job = last_job.v;
        run_begin(&rows->job_runs, (uint64_t)last_job.v + 1, rows->jobs.count);
    }
    if (last_attempt.v > rows->last_attempt) {
        rows->last_attempt = last_attempt.v;
        run_begin(&rows->attempt_runs, last_attempt.v + 1, rows->attempts.count);
    }
}

static void task_release(struct task_row *row)
{
    mem_free(row->node);
    mem_free(row->address);
    mem_free(row->gpus);
    for (size_t i = 0; i < row->record.port_count; i++)
        mem_free((char *)(uintptr_t)row->ports[i].label);
    mem_free(row->ports);
    *row = (struct task_row){0};
}

static void node_release(struct node_row *row)
{
    node_facts_release(&row->record.facts);
    node_closing_release(&row->record.closing);
    *row = (struct node_row){0};
}

static void job_release_row(struct rows_job *job)
{
    mem_free(job->reason);
    mem_free(job->extra);
    mem_free(job->plan);
    *job = (struct rows_job){0};
}

void rows_free(struct rows *rows)
{
    if (!rows)
        return;
    for (size_t i = 0; i < rows->jobs.count; i++)
        job_release_row(&rows->jobs.items[i]);
    for (size_t i = 0; i < rows->tasks.count; i++)
        task_release(&rows->tasks.items[i]);
    for (size_t i = 0; i < rows->nodes.count; i++)
        node_release(&rows->nodes.items[i]);
    for (size_t i = 0; i < rows->closed.count; i++) {
        mem_free((char *)(uintptr_t)rows->closed.items[i].name);
        node_closing_release(&rows->closed.items[i].closing);
    }
    ARRAY_FREE(&rows->closed);
    ARRAY_FREE(&rows->jobs);
    ARRAY_FREE(&rows->tasks);
    ARRAY_FREE(&rows->nodes);
    ARRAY_FREE(&rows->attempts);
    ARRAY_FREE(&rows->job_runs);
    ARRAY_FREE(&rows->attempt_runs);
    id_map_release(&rows->task_keys);
    mem_free(rows);
}

static struct rows_job *job_row(struct rows *rows, uint32_t id)
{
    assert(id != 0);
    size_t index = run_index(&rows->job_runs, id);

    while (rows->jobs.count <= index)
        ARRAY_ADD(&rows->jobs);
    if (id > rows->last_job)
        rows->last_job = id;
    rows->jobs.items[index].id = id;
    return &rows->jobs.items[index];
}

void rows_plan(struct rows *rows, uint32_t id, const struct plan *plan)
{
    assert(id != 0 && plan);
    struct rows_job *job = job_row(rows, id);
    struct buf bytes = BUF_INIT;
    plan_encode(plan, &bytes);
    mem_free(job->plan);
    job->plan_length = bytes.length;
    job->plan = buf_steal(&bytes);
}

static void job_apply(struct rows *rows, const struct job_record *record)
{
    assert(record->id.v != 0);
    struct rows_job *job = job_row(rows, record->id.v);
    job->state = record->state;
    job->is_stop_requested = record->is_stop_requested;
    job->code = record->completion.code;
    job->attempt = record->attempt;
    job->retries_user = record->retries_user;
    job->retries_platform = record->retries_platform;
    mem_free(job->reason);
    job->reason = mem_copy(record->reason);
    job->reason_topic = record->reason_topic;
    mem_free(job->extra);
    job->extra = mem_alloc(record->extra.length + 1);
    memcpy(job->extra, record->extra.at, record->extra.length);
    job->extra_length = record->extra.length;
}

static uint64_t task_key(uint32_t job, struct task_ref task)
{
    return (uint64_t)job << 32 | (uint64_t)task.role << 16 | task.index;
}

static void task_apply(struct rows *rows, const struct task_record *record)
{
    assert(record->job.v != 0);
    uint64_t key = task_key(record->job.v, record->task);
    uint32_t at = id_map_get(&rows->task_keys, key);
    if (at == MAP_NONE) {
        at = (uint32_t)rows->tasks.count;
        ARRAY_ADD(&rows->tasks);
        id_map_set(&rows->task_keys, key, at);
    }
    struct task_row *row = &rows->tasks.items[at];
    task_release(row);
    row->record = *record;
    row->record.node = row->node = mem_copy(record->node);
    row->record.address = row->address = mem_copy(record->address);
    row->record.role_name = "";
    row->gpus = mem_alloc((record->gpu_count + 1) * sizeof *row->gpus);
    if (record->gpu_count)
        memcpy(row->gpus, record->gpus, record->gpu_count * sizeof *row->gpus);
    row->record.gpus = row->gpus;
    row->ports = mem_alloc((record->port_count + 1) * sizeof *row->ports);
    for (size_t i = 0; i < record->port_count; i++) {
        row->ports[i] = record->ports[i];
        row->ports[i].label = mem_copy(record->ports[i].label);
    }
    row->record.ports = row->ports;
    if (!record->attempt.v)
        return;
    size_t index = run_index(&rows->attempt_runs, record->attempt.v);
    while (rows->attempts.count <= index)
        ARRAY_ADD(&rows->attempts);
    if (record->attempt.v > rows->last_attempt)
        rows->last_attempt = record->attempt.v;
    rows->attempts.items[index].job = record->job.v;
    rows->attempts.items[index].state = record->state;
}

static void node_apply(struct rows *rows, const struct node_record *record)
{
    while (rows->nodes.count <= record->id.v)
        ARRAY_ADD(&rows->nodes);
    struct node_row *row = &rows->nodes.items[record->id.v];
    node_release(row);
    row->record = *record;
    row->record.facts = (struct node_facts){0};
    node_facts_copy(&row->record.facts, &record->facts);
    row->record.closing = (struct node_closing){0};
    node_closing_copy(&row->record.closing, &record->closing);
}

static void cluster_apply(struct rows *rows, const struct cluster_record *record)
{
    size_t at = 0;
    while (at < rows->closed.count && strcmp(rows->closed.items[at].name, record->name) != 0)
        at++;
    if (at == rows->closed.count)
        *ARRAY_ADD(&rows->closed) = (struct cluster_record){.name = mem_copy(record->name)};
    node_closing_copy(&rows->closed.items[at].closing, &record->closing);
}

void rows_apply(struct rows *rows, const struct output *output)
{
    for (size_t i = 0; i < output->records.count; i++) {
        const struct record *record = &output->records.items[i];
        switch (record->kind) {
        case RECORD_JOB:
            job_apply(rows, &record->job);
            break;
        case RECORD_TASK:
            task_apply(rows, &record->task);
            break;
        case RECORD_NODE:
            node_apply(rows, &record->node);
            break;
        case RECORD_CLUSTER:
            cluster_apply(rows, &record->cluster);
            break;
        case RECORD_JOB_DELETED:
            job_row(rows, record->deleted.v)->is_deleted = true;
            break;
        case RECORD_STORY:
            break;
        }
    }
}

static int job_restore_row(struct core *core, const struct rows_job *job, struct err *err)
{
    assert(job->id != 0);
    struct plan *plan = plan_decode((struct text){job->plan, job->plan_length}, err);
    if (!plan)
        return ERR_CORRUPT;
    struct job_record record = {
        .id = {job->id},
        .extra = {job->extra, job->extra_length},
        .reason = job->reason,
        .reason_topic = job->reason_topic,
    };
    return core_restore_job(core, &record, plan, err);
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Of live jobs, by job, role and index. */
static int tasks_restore(const struct rows *rows, struct core *core, const struct id_map *live,
                         struct err *err)
{
    uint64_t *keys = mem_alloc(mem_size(rows->tasks.count + 1, sizeof *keys));
    size_t count = 0;
    int code = 0;
    for (size_t i = 0; i < rows->tasks.count; i++) {
        const struct task_record *record = &rows->tasks.items[i].record;
        if (!record->is_removed && id_map_get(live, record->job.v) != MAP_NONE)
            keys[count++] = task_key(record->job.v, record->task);
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 0; i < count && !code; i++) {
        uint32_t at = id_map_get(&rows->task_keys, keys[i]);
        code = core_restore_task(core, &rows->tasks.items[at].record, err);
    }
    mem_free(keys);
    return code;
}

/* A row of an attempt before the job's holds nothing. */
static bool is_held(const struct rows *rows, const struct task_record *record)
{
    if (!record->is_held || record->is_removed)
        return false;
    return record->job_attempt ==
           rows->jobs.items[run_index(&rows->job_runs, record->job.v)].attempt;
}

int rows_restore(const struct rows *rows, struct core *core, int64_t now_ms, struct output *output,
                 struct err *err)
{
    cleanup_id_map struct id_map live = {0}, held = {0};
    core_restore_counters(core, (struct job_id){rows->last_job},
                          (struct attempt_id){rows->last_attempt});
    int code = 0;
    for (size_t i = 0; i < rows->nodes.count && !code; i++)
        code = core_restore_node(core, &rows->nodes.items[i].record, err);
    for (size_t i = 0; i < rows->closed.count && !code; i++)
        if (rows->closed.items[i].closing.is_closed)
            code = core_restore_cluster(core, &rows->closed.items[i], err);
    for (size_t i = 0; i < rows->tasks.count; i++)
        if (is_held(rows, &rows->tasks.items[i].record))
            id_map_set(&held, rows->tasks.items[i].record.job.v, 1);
    for (size_t i = 0; i < rows->jobs.count && !code; i++) {
        const struct rows_job *job = &rows->jobs.items[i];
        if (!job->extra || job->is_deleted ||
            (job->state == LIFE_COMPLETED && id_map_get(&held, job->id) == MAP_NONE))
            continue;
        id_map_set(&live, job->id, 1);
        code = job_restore_row(core, job, err);
    }
    if (!code)
        code = tasks_restore(rows, core, &live, err);
    return code ? code : core_restore_finish(core, now_ms, output, err);
}

size_t rows_job_count(const struct rows *rows)
{
    return rows->jobs.count;
}

const struct rows_job *rows_job(const struct rows *rows, size_t nth)
{
    return &rows->jobs.items[nth];
}

size_t rows_attempt_count(const struct rows *rows)
{
    return rows->attempts.count;
}

size_t rows_open_attempts(const struct rows *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < rows->attempts.count; i++) {
        uint32_t job = rows->attempts.items[i].job;
        count += job && rows->jobs.items[run_index(&rows->job_runs, job)].state == LIFE_COMPLETED &&
                 rows->attempts.items[i].state < LIFE_ATTEMPT_COMPLETED;
    }
    return count;
}
