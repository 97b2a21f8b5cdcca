/* barriers.c — the state of each barrier that somebody has asked for: open, broken or passed. */
#include "core/barriers.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"

enum { BROKEN_SIZE = 160 }; /* a name of a role may be longer: it is cut */

struct barrier_task {
    struct attempt_id attempt; /* the current try */
    uint64_t request;          /* that is held; 0: none */
    bool is_known;             /* it has a row */
    bool is_needed, has_come;
};

/* Tasks are numbered without holes: to find one costs nothing, and neither does the table of a
 * large job. */
struct barrier_role {
    bool takes_part;
    struct barrier_task *items; /* by index */
    size_t count, room;
};

struct barrier {
    struct job_id job;
    uint32_t attempt; /* of the job */
    enum barrier_kind kind;
    bool is_passed;
    char broken[BROKEN_SIZE]; /* why it can never be passed; "" when it can */
    struct barrier_role *roles;
    size_t role_count;
    size_t known;   /* tasks */
    size_t missing; /* tasks needed that have not come */
};

struct barriers {
    struct id_map by_key;
    struct {
        struct barrier **items;
        size_t count, room;
    } list;
    size_t held, held_max;
};

/* --- what goes out --- */

void barrier_output_init(struct barrier_output *output)
{
    *output = (struct barrier_output){0};
    arena_init(&output->arena);
}

void barrier_output_clear(struct barrier_output *output)
{
    output->answers.count = output->passes.count = 0;
    arena_clear(&output->arena);
}

void barrier_output_release(struct barrier_output *output)
{
    ARRAY_FREE(&output->answers);
    ARRAY_FREE(&output->passes);
    arena_release(&output->arena);
}

static void answer(struct barrier_output *output, uint64_t request, int code, const char *text)
{
    assert(request != 0 && code <= 0);
    *ARRAY_ADD(&output->answers) = (struct barrier_answer){
        .request = request,
        .code = code,
        .text = code ? arena_copy(&output->arena, text_of(text)) : "",
    };
}

void barrier_refuse(struct barrier_output *output, uint64_t request, int code, const char *text)
{
    assert(code < 0);
    answer(output, request, code, text);
}

/* A job that is deleted by the same records has no row for a mark. */
static void passes_forget(struct barrier_output *output, struct job_id job)
{
    size_t kept = 0;
    for (size_t i = 0; i < output->passes.count; i++)
        if (output->passes.items[i].job.v != job.v)
            output->passes.items[kept++] = output->passes.items[i];
    output->passes.count = kept;
}

/* --- the table --- */

static uint64_t barrier_key(struct job_id job, enum barrier_kind kind)
{
    assert((unsigned)kind < BARRIER_KINDS);
    return (uint64_t)job.v << 1 | (uint64_t)kind;
}

struct barriers *barriers_new(size_t held_max)
{
    struct barriers *barriers = mem_zero(1, sizeof *barriers);
    barriers->held_max = held_max;
    return barriers;
}

static void tasks_drop(struct barrier *barrier)
{
    for (size_t i = 0; i < barrier->role_count; i++)
        ARRAY_FREE(&barrier->roles[i]);
    barrier->known = barrier->missing = 0;
}

static void barrier_free(struct barrier *barrier)
{
    tasks_drop(barrier);
    mem_free(barrier->roles);
    mem_free(barrier);
}

void barriers_free(struct barriers *barriers)
{
    if (!barriers)
        return;
    for (size_t i = 0; i < barriers->list.count; i++)
        barrier_free(barriers->list.items[i]);
    ARRAY_FREE(&barriers->list);
    id_map_release(&barriers->by_key);
    mem_free(barriers);
}

static struct barrier *barrier_find(const struct barriers *barriers, struct job_id job,
                                    enum barrier_kind kind)
{
    uint32_t at = id_map_get(&barriers->by_key, barrier_key(job, kind));
    return at == MAP_NONE ? NULL : barriers->list.items[at];
}

bool barriers_has(const struct barriers *barriers, struct job_id job, enum barrier_kind kind)
{
    return barrier_find(barriers, job, kind) != NULL;
}

size_t barriers_held(const struct barriers *barriers)
{
    return barriers->held;
}

/* --- letting go --- */

static void task_let_go(struct barriers *barriers, struct barrier_task *task, int code,
                        const char *text, struct barrier_output *output)
{
    if (!task->request)
        return;
    assert(output && barriers->held > 0);
    barriers->held--;
    answer(output, task->request, code, text);
    task->request = 0;
}

static void barrier_let_go(struct barriers *barriers, struct barrier *barrier, int code,
                           const char *text, struct barrier_output *output)
{
    for (size_t i = 0; i < barrier->role_count; i++)
        for (size_t j = 0; j < barrier->roles[i].count; j++)
            task_let_go(barriers, &barrier->roles[i].items[j], code, text, output);
}

void barriers_clear(struct barriers *barriers, int code, const char *text,
                    struct barrier_output *output)
{
    for (size_t i = 0; i < barriers->list.count; i++) {
        barrier_let_go(barriers, barriers->list.items[i], code, text, output);
        barrier_free(barriers->list.items[i]);
    }
    assert(barriers->held == 0);
    barriers->list.count = 0;
    id_map_release(&barriers->by_key);
}

/* The job's attempt ends: nobody has anything to wait for. */
static void barrier_drop(struct barriers *barriers, struct barrier *barrier,
                         struct barrier_output *output)
{
    uint64_t key = barrier_key(barrier->job, barrier->kind);
    uint32_t at = id_map_get(&barriers->by_key, key);
    struct barrier *last = barriers->list.items[barriers->list.count - 1];
    assert(at < barriers->list.count);
    barrier_let_go(barriers, barrier, ERR_CONFLICT, "the job's attempt ends", output);
    barriers->list.items[at] = last;
    barriers->list.count--;
    id_map_set(&barriers->by_key, barrier_key(last->job, last->kind), at);
    id_map_remove(&barriers->by_key, key);
    barrier_free(barrier);
}

/* Whoever waits is answered when there is something to say. */
static void barrier_settle(struct barriers *barriers, struct barrier *barrier,
                           struct barrier_output *output)
{
    assert(barrier->missing <= barrier->known);
    if (barrier->is_passed)
        return;
    if (barrier->broken[0]) {
        barrier_let_go(barriers, barrier, ERR_CONFLICT, barrier->broken, output);
        return;
    }
    if (barrier->missing > 0 || barrier->known == 0)
        return;
    *ARRAY_ADD(&output->passes) =
        (struct barrier_pass){barrier->job, barrier->attempt, barrier->kind};
    barrier->is_passed = true;
    barrier_let_go(barriers, barrier, 0, "", output);
    tasks_drop(barrier);
}

static void barrier_break(struct barrier *barrier, const struct task_record *row, const char *why)
{
    assert(!barrier->is_passed);
    if (barrier->broken[0])
        return; /* the first reason counts */
    cleanup_buf struct buf text = BUF_INIT;
    buf_format(&text, "%.100s-%u %s", row->role_name, row->task.index, why);
    size_t length = text.length < BROKEN_SIZE ? text.length : BROKEN_SIZE - 1;
    memcpy(barrier->broken, buf_cstr(&text), length);
    barrier->broken[length] = '\0';
}

/* --- what the tasks do --- */

static void task_set(struct barrier *barrier, struct barrier_task *task, bool is_needed,
                     bool has_come)
{
    assert(barrier->missing >= (size_t)(task->is_needed && !task->has_come));
    barrier->missing -= task->is_needed && !task->has_come;
    task->is_needed = is_needed;
    task->has_come = has_come;
    barrier->missing += is_needed && !has_come;
}

static struct barrier_task *task_find(struct barrier *barrier, struct task_ref ref)
{
    if (ref.role >= barrier->role_count || ref.index >= barrier->roles[ref.role].count)
        return NULL;
    struct barrier_task *task = &barrier->roles[ref.role].items[ref.index];
    return task->is_known ? task : NULL;
}

static struct barrier_task *task_of(struct barrier *barrier, const struct task_record *row)
{
    assert(!barrier->is_passed && row->task.role < barrier->role_count);
    struct barrier_role *role = &barrier->roles[row->task.role];
    while (role->count <= row->task.index)
        ARRAY_ADD(role);
    struct barrier_task *task = &role->items[row->task.index];
    if (task->is_known)
        return task;
    *task = (struct barrier_task){.attempt = row->attempt, .is_known = true};
    barrier->known++;
    return task;
}

static bool takes_part(const struct barrier *barrier, const struct task_record *row)
{
    return row->job_attempt == barrier->attempt && row->task.role < barrier->role_count &&
           barrier->roles[row->task.role].takes_part;
}

/* A row of the job attempt as it is now. `output`: NULL while nobody is held. */
static void barrier_row(struct barriers *barriers, struct barrier *barrier,
                        const struct task_record *row, struct barrier_output *output)
{
    bool is_off = row->is_removed || row->is_deletion_pending;
    if (barrier->is_passed || !takes_part(barrier, row))
        return;
    struct barrier_task *task = task_of(barrier, row);
    if (task->attempt.v != row->attempt.v || row->state >= LIFE_ATTEMPT_COMPLETED) {
        task_set(barrier, task, task->is_needed, false);
        task_let_go(barriers, task, ERR_CONFLICT, "this try has ended", output);
    }
    task->attempt = row->attempt;
    task_set(barrier, task, !is_off, task->has_come);
    if (row->state == LIFE_COMPLETED && !is_off) {
        char why[64];
        snprintf(why, sizeof why, "has ended with code %d", row->completion.code);
        barrier_break(barrier, row, why);
    }
}

static bool attempt_ends(const struct barrier *barrier, const struct job_record *row)
{
    return row->attempt != barrier->attempt || row->state >= LIFE_DELETION_PENDING;
}

struct row_seer {
    struct barriers *barriers;
    struct barrier *barrier;
};

static void row_see(void *context, const struct task_record *row)
{
    const struct row_seer *seer = context;
    barrier_row(seer->barriers, seer->barrier, row, NULL);
}

/* The entry as the rows and the records have it; NULL when its attempt ends. */
static struct barrier *barrier_new(struct barriers *barriers, const struct barrier_rows *rows)
{
    assert(rows->job.v != 0);
    struct barrier *barrier = mem_zero(1, sizeof *barrier);
    bool is_over = false;
    barrier->job = rows->job;
    barrier->attempt = rows->attempt;
    barrier->kind = rows->kind;
    barrier->is_passed = rows->is_passed;
    barrier->roles = mem_zero(rows->role_count + 1, sizeof *barrier->roles);
    barrier->role_count = rows->role_count;
    for (size_t i = 0; i < rows->role_count; i++)
        barrier->roles[i].takes_part = rows->takes_part[i];
    if (!rows->is_passed)
        rows->show_tasks(rows->context, row_see, &(struct row_seer){barriers, barrier});
    for (size_t i = 0; i < rows->record_count && !is_over; i++) {
        const struct record *record = &rows->records[i];
        if (record->kind == RECORD_TASK && record->task.job.v == rows->job.v)
            barrier_row(barriers, barrier, &record->task, NULL);
        else if (record->kind == RECORD_JOB && record->job.id.v == rows->job.v)
            is_over = attempt_ends(barrier, &record->job);
        else if (record->kind == RECORD_JOB_DELETED)
            is_over = record->deleted.v == rows->job.v;
    }
    if (!is_over)
        return barrier;
    barrier_free(barrier);
    return NULL;
}

void barriers_add(struct barriers *barriers, const struct barrier_rows *rows)
{
    assert(!barriers_has(barriers, rows->job, rows->kind));
    struct barrier *barrier = barrier_new(barriers, rows);
    if (!barrier)
        return;
    id_map_set(&barriers->by_key, barrier_key(rows->job, rows->kind),
               (uint32_t)barriers->list.count);
    *ARRAY_ADD(&barriers->list) = barrier;
}

static void task_taken(struct barriers *barriers, const struct task_record *row,
                       struct barrier_output *output)
{
    for (int kind = 0; kind < BARRIER_KINDS; kind++) {
        struct barrier *barrier = barrier_find(barriers, row->job, (enum barrier_kind)kind);
        if (!barrier)
            continue;
        barrier_row(barriers, barrier, row, output);
        barrier_settle(barriers, barrier, output);
    }
}

/* `row` NULL: the job is deleted. */
static void job_taken(struct barriers *barriers, struct job_id job, const struct job_record *row,
                      struct barrier_output *output)
{
    for (int kind = 0; kind < BARRIER_KINDS; kind++) {
        struct barrier *barrier = barrier_find(barriers, job, (enum barrier_kind)kind);
        if (barrier && (!row || attempt_ends(barrier, row)))
            barrier_drop(barriers, barrier, output);
    }
    if (!row)
        passes_forget(output, job);
}

void barriers_take(struct barriers *barriers, const struct record *records, size_t count,
                   struct barrier_output *output)
{
    for (size_t i = 0; i < count && (barriers->list.count || output->passes.count); i++) {
        const struct record *record = &records[i];
        switch (record->kind) {
        case RECORD_TASK:
            task_taken(barriers, &record->task, output);
            break;
        case RECORD_JOB:
            job_taken(barriers, record->job.id, &record->job, output);
            break;
        case RECORD_JOB_DELETED:
            job_taken(barriers, record->deleted, NULL, output);
            break;
        case RECORD_STORY:
        case RECORD_NODE:
        case RECORD_CLUSTER:
            break;
        }
    }
}

/* --- reports --- */

/* The task that reports, or NULL when it takes no part or this is not its current try. */
static struct barrier_task *reporter_of(struct barrier *barrier, const struct task_record *row)
{
    assert(!barrier->is_passed);
    struct barrier_task *task = task_find(barrier, row->task);
    return task && task->attempt.v == row->attempt.v ? task : NULL;
}

void barriers_report(struct barriers *barriers, const struct barrier_report *report,
                     struct barrier_output *output)
{
    assert(report->request != 0);
    const struct task_record *row = report->row;
    struct barrier *barrier = barrier_find(barriers, row->job, report->kind);
    if (!barrier || barrier->attempt != row->job_attempt) {
        answer(output, report->request, ERR_CONFLICT, "this attempt of the job has ended");
        return;
    }
    if (barrier->is_passed) {
        answer(output, report->request, 0, "");
        return;
    }
    struct barrier_task *task = reporter_of(barrier, row);
    if (!task || row->state >= LIFE_ATTEMPT_COMPLETED) {
        answer(output, report->request, ERR_CONFLICT,
               task ? "this try has ended" : "this task does not take part, or this try has ended");
        return;
    }
    task_set(barrier, task, task->is_needed, true);
    task_let_go(barriers, task, ERR_UNAVAILABLE, "asked again", output);
    if (!report->is_up)
        barrier_break(barrier, row, "has no ssh server");
    if (!report->is_waiting) {
        answer(output, report->request, 0, "");
    } else if (barriers->held >= barriers->held_max && barrier->missing > 0) {
        answer(output, report->request, ERR_BUSY, "too many wait: ask again");
    } else {
        task->request = report->request;
        barriers->held++;
    }
    barrier_settle(barriers, barrier, output);
}
