/* tasks.c — tasks and their attempts. */
#include "base/err.h"
#include "core/plan.h"
#include "job/job.h"
#include "store/noun.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <stdlib.h>

#define COLUMNS(C)                                                                                                                                 \
    C(job)                                                                                                                                         \
    "," C(role) "," C(task_index) "," C(role_name) "," C(state) "," C(is_deletion_pending) "," C(is_held) "," C(attempt) "," C(job_attempt) "," C( \
        task_attempt) "," C(retries) "," C(accountable_retries) "," C(node) "," C(address) "," C(gpus) "," C(ports) "," C(created_ms) "," C(launched_ms) "," C(completed_ms) "," C(attempt_created_ms) "," C(attempt_launched_ms) "," C(attempt_completed_ms) "," COMPLETION_COLUMNS(C) "," C(cell_level) "," C(killed) "," C(kill_by_ms)
#define SELECT_FROM(table) "SELECT " COLUMNS(COLUMN_NAME) " FROM " table

static const char replace[] = REPLACE_INTO("tasks", COLUMNS, "job, role, task_index");
static const char replace_attempt[] = REPLACE_INTO("task_attempts", COLUMNS, "attempt");
static const char delete[] = "DELETE FROM tasks WHERE job = ? AND role = ? AND task_index = ?";
static const char delete_job[] = "DELETE FROM tasks WHERE job = ?";
static const char delete_job_attempts[] = "DELETE FROM task_attempts WHERE job = ?";
static const char select_job[] =
    SELECT_FROM("tasks") " WHERE job = ? AND job_attempt = ? ORDER BY role, task_index";
#define BEHIND " AND (role, task_index) > (?, ?) "
static const char select_job_behind[] =
    SELECT_FROM("tasks") " WHERE job = ? AND job_attempt = ?" BEHIND
                         "ORDER BY role, task_index LIMIT ?";
static const char select_job_past[] = SELECT_FROM(
    "task_attempts") " WHERE job = ? AND job_attempt = ? ORDER BY role, task_index, task_attempt";
/* of each task its latest attempt */
static const char select_ever_behind[] = SELECT_FROM(
    "task_attempts") " WHERE job = ? AND job_attempt = ?" BEHIND
                     "AND task_attempt = (SELECT max(same.task_attempt) FROM task_attempts AS same "
                     "WHERE same.job = task_attempts.job AND same.job_attempt = "
                     "task_attempts.job_attempt AND same.role = task_attempts.role AND "
                     "same.task_index = task_attempts.task_index) "
                     "ORDER BY role, task_index LIMIT ?";
#define OF_ROLE " WHERE job = ?1 AND job_attempt = ?2 AND role = ?3 AND task_index >= ?4"
static const char count_beyond[] = "SELECT count(*) FROM tasks" OF_ROLE;
static const char count_ended[] = "SELECT count(DISTINCT task_index) FROM task_attempts" OF_ROLE;
static const char count_ever[] = "SELECT count(*) FROM (SELECT task_index FROM tasks" OF_ROLE
                                 " UNION SELECT task_index FROM task_attempts" OF_ROLE ") AS ever";
static const char select_one[] =
    SELECT_FROM("tasks") " WHERE job = ? AND job_attempt = ? AND role = ? AND task_index = ? "
                         "AND" IS_NOT_DELETED("job");
static const char select_one_past[] =
    SELECT_FROM("task_attempts") " WHERE job = ? AND job_attempt = ? AND role = ? AND task_index = "
                                 "? AND" IS_NOT_DELETED("job") "ORDER BY task_attempt";
static const char select_attempt[] =
    SELECT_FROM("tasks") " WHERE attempt = ? AND attempt <> 0 AND" IS_NOT_DELETED("job");
static const char select_attempt_past[] =
    SELECT_FROM("task_attempts") " WHERE attempt = ? AND" IS_NOT_DELETED("job");
/* a retry begins without tasks: the rows of the attempt before are history */
static const char select_live[] =
    SELECT_FROM("tasks") " WHERE job IN (" LIVE_IDS ") AND "
                         "job_attempt = (SELECT jobs.attempt FROM jobs WHERE id = job) ORDER BY "
                         "job, role, task_index";

/* --- rows --- */

static void row_put_ports(struct buf *out, const struct task_record *task)
{
    assert(task->port_count == 0 || task->ports);
    for (size_t i = 0; i < task->port_count; i++) {
        buf_put_text(out, text_of(task->ports[i].label));
        buf_put_u32(out, task->ports[i].first);
        buf_put_u32(out, task->ports[i].count);
    }
}

static void row_put(struct sql *sql, const struct task_record *task, struct buf *scratch)
{
    assert(task->job.v != 0);
    buf_clear(scratch);
    row_put_ports(scratch, task);
    size_t split = scratch->length;
    numbers_put(scratch, task->gpus, task->gpu_count);
    sql_put_int(sql, task->job.v);
    sql_put_int(sql, task->task.role);
    sql_put_int(sql, task->task.index);
    sql_put_string(sql, task->role_name);
    sql_put_int(sql, (int64_t)task->state);
    sql_put_int(sql, task->is_deletion_pending);
    sql_put_int(sql, task->is_held);
    sql_put_int(sql, (int64_t)task->attempt.v);
    sql_put_int(sql, task->job_attempt);
    sql_put_int(sql, task->task_attempt);
    sql_put_int(sql, task->retries);
    sql_put_int(sql, task->accountable_retries);
    sql_put_string(sql, task->node);
    sql_put_string(sql, task->address);
    sql_put_blob(sql, (struct text){buf_cstr(scratch) + split, scratch->length - split});
    sql_put_blob(sql, (struct text){buf_cstr(scratch), split});
    sql_put_int(sql, task->created_ms);
    sql_put_int(sql, task->launched_ms);
    sql_put_int(sql, task->completed_ms);
    sql_put_int(sql, task->attempt_created_ms);
    sql_put_int(sql, task->attempt_launched_ms);
    sql_put_int(sql, task->attempt_completed_ms);
    completion_put(sql, &task->completion);
    sql_put_int(sql, task->cell_level);
    sql_put_int(sql, (int64_t)task->killed);
    sql_put_int(sql, task->kill_by_ms);
}

static int row_get_ports(struct text bytes, struct task_record *task, struct arena *arena,
                         struct err *err)
{
    struct cursor cursor = cursor_of(bytes);
    size_t count = 0;
    while (!cursor.is_bad && cursor.at < cursor.end) {
        cursor_text(&cursor);
        cursor_u32(&cursor);
        cursor_u32(&cursor);
        count++;
    }
    if (cursor.is_bad)
        return err_fail(err, ERR_CORRUPT, "", "the ports of task %u/%u of job %u are damaged",
                        task->task.role, task->task.index, task->job.v);
    struct port_range *ports;
    ports = arena_array(arena, count, sizeof *ports);
    cursor = cursor_of(bytes);
    for (size_t i = 0; i < count; i++) {
        ports[i].label = arena_copy(arena, cursor_text(&cursor));
        ports[i].first = (uint16_t)cursor_u32(&cursor);
        ports[i].count = (uint16_t)cursor_u32(&cursor);
    }
    task->ports = ports;
    task->port_count = count;
    return 0;
}

/* ERR_CORRUPT: the bytes of GPUs or ports make no sense. */
static int row_get(struct sql *sql, struct task_record *task, struct arena *arena, struct err *err)
{
    assert(sql->statement);
    *task = (struct task_record){.job = {(uint32_t)sql_int(sql)}};
    task->task.role = (uint16_t)sql_int(sql);
    task->task.index = (uint16_t)sql_int(sql);
    task->role_name = sql_string(sql, arena);
    task->state = (enum life_state)sql_int(sql);
    task->is_deletion_pending = sql_bool(sql);
    task->is_held = sql_bool(sql);
    task->attempt.v = (uint64_t)sql_int(sql);
    task->job_attempt = (uint32_t)sql_int(sql);
    task->task_attempt = (uint32_t)sql_int(sql);
    task->retries = (uint32_t)sql_int(sql);
    task->accountable_retries = (uint32_t)sql_int(sql);
    task->node = sql_string(sql, arena);
    task->address = sql_string(sql, arena);
    struct text gpus = sql_text(sql, arena);
    struct text ports = sql_text(sql, arena);
    task->created_ms = sql_int(sql);
    task->launched_ms = sql_int(sql);
    task->completed_ms = sql_int(sql);
    task->attempt_created_ms = sql_int(sql);
    task->attempt_launched_ms = sql_int(sql);
    task->attempt_completed_ms = sql_int(sql);
    completion_get(sql, &task->completion);
    task->cell_level = (uint8_t)sql_int(sql);
    task->killed = (enum kill_reason)sql_int(sql);
    task->kill_by_ms = sql_int(sql);
    if (gpus.length % 2 != 0)
        return err_fail(err, ERR_CORRUPT, "", "the GPUs of task %u/%u of job %u are damaged",
                        task->task.role, task->task.index, task->job.v);
    task->gpu_count = gpus.length / 2;
    task->gpus = numbers_get(gpus, task->gpu_count, arena);
    return row_get_ports(ports, task, arena, err);
}

/* --- changes --- */

static int write_row(struct store *store, const char *text, const struct task_record *task,
                     struct err *err)
{
    assert(task->job.v != 0);
    struct sql sql = sql_of(&store->session, text);
    row_put(&sql, task, &store->scratch);
    return sql_run(&sql, NULL, err);
}

static int delete_row(struct store *store, const struct task_record *task, struct err *err)
{
    struct sql sql = sql_of(&store->session, delete);
    assert(task->is_removed);
    sql_put_int(&sql, task->job.v);
    sql_put_int(&sql, task->task.role);
    sql_put_int(&sql, task->task.index);
    return sql_run(&sql, NULL, err);
}

int task_write(struct store *store, const struct task_record *task, bool is_last, struct err *err)
{
    int code = 0;
    assert(task->job.v != 0);
    if (task->attempt.v > store->last_attempt)
        store->last_attempt = task->attempt.v;
    if (is_last && task->is_removed)
        code = delete_row(store, task, err);
    else if (is_last)
        code = write_row(store, replace, task, err);
    if (code == 0 && task->attempt.v != 0 && task->state >= LIFE_ATTEMPT_COMPLETED)
        code = write_row(store, replace_attempt, task, err);
    return code;
}

int tasks_purge(struct store *store, struct job_id job, struct err *err)
{
    int code = purge(store, delete_job, job, err);
    return code < 0 ? code : purge(store, delete_job_attempts, job, err);
}

int tasks_restore(struct store_reader *reader, const struct store_restore *restore,
                  struct arena *arena, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_live);
    assert(reader->session.db);
    int code;
    while ((code = sql_next(&sql, err)) > 0) {
        struct task_record task;
        arena_clear(arena);
        code = row_get(&sql, &task, arena, err);
        if (code == 0)
            code = restore->task(restore->context, &task, err);
        if (code < 0) {
            sql_done(&sql);
            break;
        }
    }
    return code;
}

/* --- reads --- */

struct task_list {
    struct task_record *items;
    size_t count, room;
};

static int read_tasks(struct sql *sql, struct arena *arena, struct task_list *list, struct err *err)
{
    int code;
    while ((code = sql_next(sql, err)) > 0) {
        struct task_record *task = ARRAY_ADD(list);
        code = row_get(sql, task, arena, err);
        if (code < 0) {
            sql_done(sql);
            return code;
        }
    }
    return code;
}

struct task_record task_unplaced(const struct job_record *job, struct task_ref task,
                                 const char *role_name)
{
    struct task_record row = {
        .job = job->id,
        .task = task,
        .role_name = role_name,
        .state = job->state == LIFE_COMPLETED ? LIFE_COMPLETED : LIFE_CREATION_PENDING,
        .job_attempt = job->attempt,
        .node = "",
        .address = "",
        .created_ms = job->attempt_created_ms ? job->attempt_created_ms : job->submitted_ms,
    };
    assert(job->id.v != 0);
    if (job->state == LIFE_COMPLETED) {
        row.completion = job->completion;
        row.completed_ms = job->completed_ms;
    }
    return row;
}

uint32_t *task_role_counts(const struct job_record *job, const struct plan *plan,
                           struct arena *arena)
{
    assert(plan);
    uint32_t *counts = ARENA_ARRAY(arena, uint32_t, plan->role_count);
    for (uint16_t r = 0; r < plan->role_count; r++)
        counts[r] = plan->roles[r].instances;
    job_saved_counts(job->extra, plan->role_count, counts);
    return counts;
}

/* Add what the plan has (or what it was scaled to) and the rows have not. */
static int tasks_fill(struct store_reader *reader, const struct job_record *job,
                      struct arena *arena, struct task_list *rows, struct err *err)
{
    struct task_list all = {0};
    cleanup_plan struct plan *plan = NULL;
    size_t next = 0;
    int code = store_job_plan(reader, job->id, &plan, err);
    if (code < 0)
        return code;
    const uint32_t *counts = task_role_counts(job, plan, arena);
    for (uint16_t r = 0; r < plan->role_count; r++) {
        const char *name = arena_copy(arena, text_of(plan->roles[r].name));
        for (uint32_t i = 0; i < counts[r]; i++) {
            struct task_ref task = {r, (uint16_t)i};
            if (next < rows->count && rows->items[next].task.role == r &&
                rows->items[next].task.index == i)
                *ARRAY_ADD(&all) = rows->items[next++];
            else
                *ARRAY_ADD(&all) = task_unplaced(job, task, name);
        }
        while (next < rows->count && rows->items[next].task.role == r) /* scaled up */
            *ARRAY_ADD(&all) = rows->items[next++];
    }
    ARRAY_FREE(rows);
    *rows = all;
    return 0;
}

/* Of several attempts of one task only the latest stays. */
static void tasks_keep_latest(struct task_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool is_same = kept > 0 && list->items[kept - 1].task.role == list->items[i].task.role &&
                       list->items[kept - 1].task.index == list->items[i].task.index;
        list->items[is_same ? kept - 1 : kept++] = list->items[i];
    }
    list->count = kept;
}

static int refs_order(struct task_ref left, struct task_ref right)
{
    if (left.role != right.role)
        return left.role < right.role ? -1 : 1;
    return (left.index > right.index) - (left.index < right.index);
}

static int tasks_order(const void *a, const void *b)
{
    return refs_order(((const struct task_record *)a)->task, ((const struct task_record *)b)->task);
}

/* Those that were scaled away in this attempt and are not wanted again. */
static int tasks_add_gone(struct store_reader *reader, const struct job_record *job,
                          struct arena *arena, struct task_list *rows, struct err *err)
{
    cleanup_array struct task_list past = {0};
    const size_t present = rows->count;
    struct sql sql = sql_of(&reader->session, select_job_past);
    sql_put_int(&sql, job->id.v);
    sql_put_int(&sql, job->attempt);
    int code = read_tasks(&sql, arena, &past, err);
    tasks_keep_latest(&past);
    for (size_t i = 0; i < past.count; i++)
        if (present == 0 ||
            !bsearch(&past.items[i], rows->items, present, sizeof *rows->items, tasks_order))
            *ARRAY_ADD(rows) = past.items[i];
    if (rows->count > present)
        qsort(rows->items, rows->count, sizeof *rows->items, tasks_order);
    return code;
}

/* Has each task of the job a row? Rows that are scaled away stand for no others: until their
 * containers have ended, there may be as many rows as tasks are wanted, and wanted ones without. */
static bool are_all_rows(const struct job_record *job, size_t rows, struct arena *arena)
{
    uint32_t *counts = ARENA_ARRAY(arena, uint32_t, job->role_count + 1u);
    uint64_t tasks = 0;
    if (!job_saved_counts(job->extra, (uint16_t)job->role_count, counts))
        return rows >= job->task_count; /* it was never scaled */
    for (uint16_t r = 0; r < job->role_count; r++)
        tasks += counts[r];
    return rows >= tasks;
}

static int read_tasks_of(struct store_reader *reader, struct job_id job, int64_t job_attempt,
                         struct arena *arena, struct task_list *list, struct err *err)
{
    struct store_job row = {0};
    int code = job_read(reader, job, arena, &row, err);
    if (code < 0)
        return code;
    if (job_attempt > row.record.attempt)
        return err_fail(err, ERR_NOT_FOUND, "", "job %u has no attempt %lld", job.v,
                        (long long)job_attempt);
    bool is_past = job_attempt >= 0 && job_attempt < row.record.attempt;
    struct sql sql = sql_of(&reader->session, is_past ? select_job_past : select_job);
    sql_put_int(&sql, job.v);
    sql_put_int(&sql, is_past ? job_attempt : row.record.attempt);
    code = read_tasks(&sql, arena, list, err);
    if (code == 0 && is_past)
        tasks_keep_latest(list);
    else if (code == 0 && !are_all_rows(&row.record, list->count, arena))
        code = tasks_fill(reader, &row.record, arena, list, err);
    if (code == 0 && job_attempt == row.record.attempt)
        code = tasks_add_gone(reader, &row.record, arena, list, err);
    return code;
}

int store_tasks(struct store_reader *reader, struct job_id job, int64_t job_attempt,
                struct arena *arena, struct store_tasks *tasks, struct err *err)
{
    struct task_list list = {0};
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_tasks_of(reader, job, job_attempt, arena, &list, err);
    reader_end(reader);
    LIST_HAND_OVER(&list, arena, tasks);
    return code;
}

/* --- some of a job's tasks --- */

static bool is_among(const char *word, const struct text *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text_is(words[i], word))
            return true;
    return count == 0;
}

/* Is the keyword a part of what people know the task by? */
static bool task_has(const struct task_record *task, struct text keyword)
{
    char name[300], codes[32] = "";
    snprintf(name, sizeof name, "%s[%u]", task->role_name, task->task.index);
    if (task->state >= LIFE_DELETION_PENDING)
        snprintf(codes, sizeof codes, "%d %d", task->completion.code, task->completion.exit_code);
    const char *const parts[] = {name, task->node, task->address, task->completion.phrase, codes};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (parts[i] && text_find(text_of(parts[i]), keyword) != SIZE_MAX)
            return true;
    return false;
}

static bool task_passes(const struct task_filter *filter, const struct task_record *task)
{
    const enum public_state shown = life_public(task->state, task->completion.code, false);
    const bool is_behind = !filter->has_after || refs_order(task->task, filter->after) > 0;
    return is_behind && (!filter->states || (filter->states >> shown & 1)) &&
           is_among(task->role_name, filter->roles, filter->role_count) &&
           is_among(task->node, filter->nodes, filter->node_count) &&
           (!filter->keyword.length || task_has(task, filter->keyword)) &&
           (!filter->passes || filter->passes(filter->context, task));
}

static void tasks_keep_passing(struct task_list *list, const struct task_filter *filter)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count && kept < filter->limit; i++)
        if (task_passes(filter, &list->items[i]))
            list->items[kept++] = list->items[i];
    list->count = kept;
}

/* The tasks of a job's plan, or what it was scaled to, in order. */
struct planned {
    const struct plan *plan;
    const uint32_t *counts;
    uint32_t role, index;
};

static struct planned planned_behind(const struct task_filter *filter, const struct plan *plan,
                                     const uint32_t *counts)
{
    if (!filter->has_after)
        return (struct planned){plan, counts, 0, 0};
    return (struct planned){plan, counts, filter->after.role, filter->after.index + 1u};
}

/* The next of them; false: there is none. */
static bool planned_find(struct planned *planned, struct task_ref *task)
{
    assert(planned->plan && planned->counts);
    while (planned->role < planned->plan->role_count &&
           planned->index >= planned->counts[planned->role]) {
        planned->role++;
        planned->index = 0;
    }
    *task = (struct task_ref){(uint16_t)planned->role, (uint16_t)planned->index};
    return planned->role < planned->plan->role_count;
}

/* Is each task wanted, so that no more rows are read than tasks are wanted? */
static bool is_page_bound(const struct task_filter *filter)
{
    const bool is_each = !filter->states && !filter->role_count && !filter->node_count &&
                         !filter->keyword.length && !filter->passes;
    return is_each && filter->limit <= INT32_MAX;
}

static struct sql rows_behind(struct store_reader *reader, const struct job_record *job,
                              const struct task_filter *filter)
{
    const bool is_bound = is_page_bound(filter);
    struct sql sql = sql_of(&reader->session, select_job_behind);
    sql_put_int(&sql, job->id.v);
    sql_put_int(&sql, job->attempt);
    sql_put_int(&sql, filter->has_after ? filter->after.role : -1);
    sql_put_int(&sql, filter->has_after ? filter->after.index : -1);
    sql_put_int(&sql, is_bound ? (int64_t)filter->limit : INT64_MAX);
    return sql;
}

/* 1: a row; 0: there are no more; or ERR_*. */
static int row_next(struct sql *sql, struct task_record *row, struct arena *arena, struct err *err)
{
    const int code = sql_next(sql, err);
    if (code <= 0)
        return code;
    const int got = row_get(sql, row, arena, err);
    return got < 0 ? got : 1;
}

/* Rows, and between them the planned tasks that have none: no more than are wanted. */
static int read_tasks_behind(struct store_reader *reader, const struct job_record *job,
                             const struct task_filter *filter, struct arena *arena,
                             struct task_list *list, struct err *err)
{
    cleanup_plan struct plan *plan = NULL;
    int has_row = store_job_plan(reader, job->id, &plan, err);
    if (has_row < 0)
        return has_row;
    struct planned planned = planned_behind(filter, plan, task_role_counts(job, plan, arena));
    struct sql sql = rows_behind(reader, job, filter);
    struct task_record row;
    has_row = row_next(&sql, &row, arena, err);
    while (has_row >= 0 && list->count < filter->limit) {
        struct task_ref task;
        const bool is_planned = planned_find(&planned, &task);
        if (!has_row && !is_planned)
            break;
        const int order = !has_row ? 1 : !is_planned ? -1 : refs_order(row.task, task);
        struct task_record *kept = ARRAY_ADD(list);
        *kept = order <= 0 ? row : task_unplaced(job, task, plan->roles[task.role].name);
        if (!task_passes(filter, kept))
            list->count--;
        else if (order > 0)
            kept->role_name = arena_copy(arena, text_of(kept->role_name)); /* not the plan's */
        if (order >= 0)
            planned.index++;
        if (order <= 0)
            has_row = row_next(&sql, &row, arena, err);
    }
    if (has_row)
        sql_done(&sql);
    return has_row < 0 ? has_row : 0;
}

/* What was ever of the attempt: those that are there, and between them those that have gone. */
static int read_ever_behind(struct store_reader *reader, const struct job_record *job,
                            const struct task_filter *filter, struct arena *arena,
                            struct task_list *list, struct err *err)
{
    cleanup_array struct task_list present = {0}, past = {0};
    int code = 0;
    if (filter->job_attempt == job->attempt)
        code = read_tasks_behind(reader, job, filter, arena, &present, err);
    if (code < 0)
        return code;
    struct sql sql = sql_of(&reader->session, select_ever_behind);
    sql_put_int(&sql, job->id.v);
    sql_put_int(&sql, filter->job_attempt);
    sql_put_int(&sql, filter->has_after ? filter->after.role : -1);
    sql_put_int(&sql, filter->has_after ? filter->after.index : -1);
    sql_put_int(&sql, (int64_t)filter->limit);
    code = read_tasks(&sql, arena, &past, err);
    for (size_t i = 0, k = 0; list->count < filter->limit;) {
        if (i == present.count && k == past.count)
            break;
        const int order = i == present.count ? 1
                          : k == past.count  ? -1
                                            : refs_order(present.items[i].task, past.items[k].task);
        *ARRAY_ADD(list) = order <= 0 ? present.items[i] : past.items[k];
        i += order <= 0;
        k += order >= 0;
    }
    return code;
}

static int read_task_page(struct store_reader *reader, struct job_id job,
                          const struct task_filter *filter, struct arena *arena,
                          struct task_list *list, struct err *err)
{
    struct store_job row = {0};
    int code = job_read(reader, job, arena, &row, err);
    if (code < 0)
        return code;
    if (filter->job_attempt < 0)
        return read_tasks_behind(reader, &row.record, filter, arena, list, err);
    if (is_page_bound(filter) && filter->job_attempt <= row.record.attempt)
        return read_ever_behind(reader, &row.record, filter, arena, list, err);
    code = read_tasks_of(reader, job, filter->job_attempt, arena, list, err);
    tasks_keep_passing(list, filter);
    return code;
}

int store_task_page(struct store_reader *reader, struct job_id job,
                    const struct task_filter *filter, struct arena *arena,
                    struct store_tasks *tasks, struct err *err)
{
    struct task_list list = {0};
    int code = reader_begin(reader, err);
    assert(reader->session.db);
    if (code < 0)
        return code;
    code = read_task_page(reader, job, filter, arena, &list, err);
    reader_end(reader);
    LIST_HAND_OVER(&list, arena, tasks);
    return code;
}

/* --- how many they are --- */

/* Of the role's tasks that have rows, those from an index on. */
static int count_rows(struct store_reader *reader, const char *text, const struct job_record *job,
                      int64_t job_attempt, struct task_ref from, uint64_t *count, struct err *err)
{
    struct sql sql = sql_of(&reader->session, text);
    sql_put_int(&sql, job->id.v);
    sql_put_int(&sql, job_attempt);
    sql_put_int(&sql, from.role);
    sql_put_int(&sql, from.index);
    const int code = sql_next(&sql, err);
    if (code > 0) {
        *count += (uint64_t)sql_int(&sql);
        sql_done(&sql);
    }
    return code < 0 ? code : 0;
}

static int read_task_totals(struct store_reader *reader, struct job_id job, int64_t job_attempt,
                            struct arena *arena, struct store_task_totals *totals, struct err *err)
{
    struct store_job row = {0};
    cleanup_plan struct plan *plan = NULL;
    int code = job_read(reader, job, arena, &row, err);
    if (code == 0)
        code = store_job_plan(reader, job, &plan, err);
    if (code < 0)
        return code;
    if (job_attempt > row.record.attempt)
        return err_fail(err, ERR_NOT_FOUND, "", "job %u has no attempt %lld", job.v,
                        (long long)job_attempt);
    const bool is_past = job_attempt >= 0 && job_attempt < row.record.attempt;
    const char *text = is_past ? count_ended : job_attempt < 0 ? count_beyond : count_ever;
    const uint32_t *planned = task_role_counts(&row.record, plan, arena);
    totals->count = plan->role_count;
    totals->roles = ARENA_ARRAY(arena, uint64_t, plan->role_count + 1u);
    for (uint16_t r = 0; code == 0 && r < plan->role_count; r++) {
        const uint32_t begin = is_past ? 0 : planned[r];
        totals->roles[r] = begin;
        if (begin <= UINT16_MAX)
            code = count_rows(reader, text, &row.record,
                              job_attempt < 0 ? row.record.attempt : job_attempt,
                              (struct task_ref){r, (uint16_t)begin}, &totals->roles[r], err);
    }
    return code;
}

int store_task_totals(struct store_reader *reader, struct job_id job, int64_t job_attempt,
                      struct arena *arena, struct store_task_totals *totals, struct err *err)
{
    assert(reader->session.db);
    *totals = (struct store_task_totals){0};
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_task_totals(reader, job, job_attempt, arena, totals, err);
    reader_end(reader);
    return code;
}

struct task_key {
    struct job_id job;
    uint32_t job_attempt;
    struct task_ref task;
};

static int read_task_attempts(struct store_reader *reader, const char *text,
                              const struct task_key *key, struct arena *arena,
                              struct task_list *list, struct err *err)
{
    struct sql sql = sql_of(&reader->session, text);
    sql_put_int(&sql, key->job.v);
    sql_put_int(&sql, key->job_attempt);
    sql_put_int(&sql, key->task.role);
    sql_put_int(&sql, key->task.index);
    return read_tasks(&sql, arena, list, err);
}

int store_task_attempts(struct store_reader *reader, struct job_id job, uint32_t job_attempt,
                        struct task_ref task, struct arena *arena, struct store_tasks *attempts,
                        struct err *err)
{
    const struct task_key key = {job, job_attempt, task};
    struct task_list list = {0};
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_task_attempts(reader, select_one_past, &key, arena, &list, err);
    size_t past = list.count;
    if (code == 0)
        code = read_task_attempts(reader, select_one, &key, arena, &list, err);
    reader_end(reader);
    /* the current one may have ended, and then it stands in both tables */
    if (code == 0 && list.count > past && past > 0 &&
        list.items[past - 1].attempt.v == list.items[past].attempt.v) {
        list.items[past - 1] = list.items[past];
        list.count = past;
    }
    if (code == 0 && list.count == 0)
        code = err_fail(err, ERR_NOT_FOUND, "", "task %u/%u of job %u has no attempt", task.role,
                        task.index, job.v);
    LIST_HAND_OVER(&list, arena, attempts);
    return code;
}

int store_attempt(struct store_reader *reader, struct attempt_id attempt, struct arena *arena,
                  struct task_record *row, struct err *err)
{
    assert(reader->session.db);
    int code = 0;
    struct sql sql;
    for (int i = 0; i < 2; i++) {
        sql = sql_of(&reader->session, i == 0 ? select_attempt : select_attempt_past);
        sql_put_int(&sql, (int64_t)attempt.v);
        code = sql_next(&sql, err);
        if (code != 0)
            break;
    }
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no attempt %llu", (unsigned long long)attempt.v);
    if (code > 0) {
        code = row_get(&sql, row, arena, err);
        sql_done(&sql);
    }
    return code;
}
