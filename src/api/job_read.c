#include "api/cluster_status.h"
#include "api/handlers.h"
#include "api/page.h"
#include "api/task.h"
#include "api/view.h"
#include "core/plan.h"
#include "spec/spec.h"
#include <assert.h>

/* A reader, or the failure that call_reader left. */
static int need_reader(struct call *call, struct store_reader **reader)
{
    *reader = call_reader(call);
    return *reader ? 0 : call->err.code;
}

/* Names of the roles by index, out of the tasks, which are there for every role. */
static const char *const *role_names(struct call *call, const struct store_tasks *tasks,
                                     size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < tasks->count; i++)
        if (tasks->items[i].task.role >= *count)
            *count = (size_t)tasks->items[i].task.role + 1;
    const char **names = ARENA_ARRAY(call->arena, const char *, *count + 1);
    for (size_t i = 0; i < tasks->count; i++)
        names[tasks->items[i].task.role] = tasks->items[i].role_name;
    for (size_t i = 0; i < *count; i++)
        if (!names[i])
            names[i] = "";
    return names;
}

/* The job's whole row, and of its attempts the one asked for (-1: the latest). */
static int read_attempt(struct call *call, struct store_job *job, int64_t index,
                        struct job_record *attempt)
{
    struct store_reader *reader;
    int code = need_reader(call, &reader);
    if (code)
        return code;
    struct job_id id = job->record.id;
    code = store_job_read(reader, id, call->arena, job, &call->err);
    if (code)
        return code;
    *attempt = job->record;
    if (index < 0 || index == job->record.attempt)
        return 0;
    struct job_attempts attempts;
    code = store_job_attempts(reader, id, call->arena, &attempts, &call->err);
    for (size_t i = 0; !code && i < attempts.count; i++) {
        if (attempts.items[i].attempt == index) {
            *attempt = attempts.items[i];
            return 0;
        }
    }
    if (code)
        return code;
    return call_fail(call, ERR_NOT_FOUND, "NoJobError", "", "job %s~%s has no attempt %lld",
                     job->record.user, job->record.name, (long long)index);
}

/* `tasks`: what the detail says of them. */
enum tasks_wanted { TASKS_ALL, TASKS_STATES, TASKS_COUNT, TASKS_NONE };

static int tasks_wanted_parse(struct call *call, int64_t index, enum tasks_wanted *wanted)
{
    const struct text text = exchange_query(call->exchange, "tasks");
    *wanted = TASKS_ALL;
    if (!text.at || call->route->is_v1)
        return 0;
    if (text_is(text, "none"))
        *wanted = TASKS_NONE;
    else if (text_is(text, "count") && index < 0)
        *wanted = TASKS_COUNT;
    else if (text_is(text, "states") && index < 0)
        *wanted = TASKS_STATES;
    else if (!text_is(text, "all"))
        return call_fail(call, ERR_INVALID, NULL, "tasks", "tasks must be all or none%s",
                         index < 0 ? ", or count, or states" : " of an attempt");
    return 0;
}

/* The roles of the plan, in order. */
static int planned_roles(struct call *call, struct job_id job, struct view_detail *detail)
{
    cleanup_plan struct plan *plan = NULL;
    int code = store_job_plan(call->reader, job, &plan, &call->err);
    if (code)
        return code;
    const char **names = ARENA_ARRAY(call->arena, const char *, plan->role_count + 1u);
    for (uint16_t r = 0; r < plan->role_count; r++)
        names[r] = arena_copy(call->arena, text_of(plan->roles[r].name));
    detail->role_names = names;
    detail->role_count = plan->role_count;
    return 0;
}

static const char *const *counted_names(struct call *call, const struct store_task_counts *counts,
                                        size_t *count)
{
    const char **names = ARENA_ARRAY(call->arena, const char *, counts->count + 1);
    for (size_t r = 0; r < counts->count; r++)
        names[r] = counts->roles[r].name;
    *count = counts->count;
    return names;
}

static int tasks_read(struct call *call, int64_t index, enum tasks_wanted wanted,
                      struct store_tasks *tasks, struct view_detail *detail)
{
    const struct job_id job = detail->job->record.id;
    struct store_task_counts *counts;
    int code = 0;
    switch (wanted) {
    case TASKS_ALL:
        code = store_tasks(call->reader, job, index, call->arena, tasks, &call->err);
        if (!code)
            detail->role_names = role_names(call, tasks, &detail->role_count);
        return code;
    case TASKS_STATES:
    case TASKS_COUNT:
        counts = ARENA_NEW(call->arena, struct store_task_counts);
        code = store_task_states(call->reader, job, call->arena, counts, &call->err);
        detail->counts = counts;
        detail->has_states = wanted == TASKS_STATES;
        if (!code)
            detail->role_names = counted_names(call, counts, &detail->role_count);
        return code;
    case TASKS_NONE:
        break;
    }
    return code ? code : planned_roles(call, job, detail);
}

static int detail_reply(struct call *call, struct store_job *job, int64_t index)
{
    struct job_record attempt;
    enum tasks_wanted wanted;
    int code = tasks_wanted_parse(call, index, &wanted);
    if (!code)
        code = read_attempt(call, job, index, &attempt);
    if (code)
        return code;
    code = cluster_waiting_reason(call, &job->record, &job->record.reason);
    if (code)
        return code;
    struct store_tasks tasks = {0};
    struct view_detail detail = {.job = job,
                                 .attempt = &attempt,
                                 .tasks = &tasks,
                                 .rules = call_rules(call),
                                 .is_v1 = call->route->is_v1};
    code = tasks_read(call, index, wanted, &tasks, &detail);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    view_job_detail(&json, &detail);
    return 0;
}

int handle_job_detail(struct call *call)
{
    struct store_job job;
    int64_t index = -1;
    int code = call_job(call, call->parameters[0], &job);
    if (!code && call->parameters[1].at)
        code = call_index(call, call->parameters[1], "attempt", UINT32_MAX, &index);
    return code ? code : detail_reply(call, &job, index);
}

int call_job_v1(struct call *call, struct store_job *job)
{
    if (call->parameters[1].at)
        return call_job_of(call, call->parameters[0], call->parameters[1], job);
    return call_job(call, call->parameters[0], job);
}

int handle_job_detail_v1(struct call *call)
{
    struct store_job job;
    int code = call_job_v1(call, &job);
    return code ? code : detail_reply(call, &job, -1);
}

static int config_reply(struct call *call, const struct store_job *job)
{
    struct store_reader *reader;
    struct store_source source;
    int code = call_may(call, AUTH_READ_CONFIG, job);
    if (!code)
        code = need_reader(call, &reader);
    if (!code)
        code = store_job_source(reader, job->record.id, call->arena, &source, &call->err);
    if (code == ERR_NOT_FOUND)
        return call_fail(call, ERR_NOT_FOUND, "NoJobConfigError", "", "the job has no file");
    if (code)
        return code;
    bool is_json = source.format == SPEC_V1;
    call_text(call, 200, is_json ? "application/json; charset=utf-8" : "text/yaml; charset=utf-8",
              source.source);
    return 0;
}

int handle_job_config(struct call *call)
{
    struct store_job job;
    int code = call_job(call, call->parameters[0], &job);
    return code ? code : config_reply(call, &job);
}

int handle_job_config_v1(struct call *call)
{
    struct store_job job;
    int code = call_job_v1(call, &job);
    return code ? code : config_reply(call, &job);
}

/* ---- attempts ---- */

/* Of the server, whichever job was named. */
int handle_job_attempt_health(struct call *call)
{
    call_message(call, 200, "the history of attempts is kept");
    return 0;
}

static int attempts_read(struct call *call, struct store_job *job, struct job_attempts *attempts)
{
    struct store_reader *reader;
    int code = call_job(call, call->parameters[0], job);
    if (!code)
        code = need_reader(call, &reader);
    if (!code)
        code = store_job_attempts(reader, job->record.id, call->arena, attempts, &call->err);
    return code;
}

int handle_job_attempt_list(struct call *call)
{
    struct store_job job;
    struct job_attempts attempts = {0};
    struct list_page page;
    const size_t *rows;
    int code = attempts_read(call, &job, &attempts);
    if (!code)
        code = page_parse(call, &page, arena_format(call->arena, "attempts of %u", job.record.id.v),
                          NULL);
    if (code)
        return code;
    const size_t all = attempts.count;
    struct text *keys = ARENA_ARRAY(call->arena, struct text, all + 1);
    for (size_t i = 0; i < all; i++)
        keys[i] = page_number(call, attempts.items[all - 1 - i].attempt);
    const size_t count = page_pick(&page, keys, all, true, &rows);
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++)
        view_job_attempt(&json, &job, &attempts.items[all - 1 - rows[i]], rows[i] == 0,
                         call_rules(call));
    page_end(&page, &json);
    return 0;
}

int handle_job_attempt(struct call *call)
{
    struct store_job job;
    struct job_attempts attempts = {0};
    int64_t index;
    int code = call_index(call, call->parameters[1], "attempt", UINT32_MAX, &index);
    if (!code)
        code = attempts_read(call, &job, &attempts);
    for (size_t i = 0; !code && i < attempts.count; i++) {
        if (attempts.items[i].attempt != index)
            continue;
        struct json_writer json;
        call_json(call, 200, &json);
        view_job_attempt(&json, &job, &attempts.items[i], i + 1 == attempts.count,
                         call_rules(call));
        return 0;
    }
    if (code)
        return code;
    return call_fail(call, ERR_NOT_FOUND, "NoJobError", "", "the job has no attempt %lld",
                     (long long)index);
}

static int ends_read(struct call *call, const struct store_job *job, struct view_attempts *attempts)
{
    attempts->may_read = call_can(call, AUTH_READ_OUTPUT, job);
    attempts->attempt_ends =
        ARENA_ARRAY(call->arena, const struct store_attempt_end *, attempts->attempts.count + 1);
    for (size_t i = 0; i < attempts->attempts.count; i++) {
        struct store_attempt_end *end = ARENA_NEW(call->arena, struct store_attempt_end);
        int code = store_attempt_end(call->reader, attempts->attempts.items[i].attempt, call->arena,
                                     end, &call->err);
        if (code && code != ERR_NOT_FOUND)
            return code;
        attempts->attempt_ends[i] = code ? NULL : end;
    }
    return 0;
}

/* One that was scaled away: its last attempt stands for it. NULL: there never was such a task. */
static int task_of_history(struct call *call, struct job_id job, uint32_t job_attempt,
                           int64_t index, const struct task_record **task)
{
    struct store_tasks attempts = {0};
    int32_t role;
    int code = call_role(call, job, call->parameters[2], &role);
    if (code || role < 0 || index > UINT16_MAX)
        return code;
    code = store_task_attempts(call->reader, job, job_attempt,
                               (struct task_ref){(uint16_t)role, (uint16_t)index}, call->arena,
                               &attempts, &call->err);
    if (code == ERR_NOT_FOUND)
        return 0;
    if (!code && attempts.count > 0)
        *task = &attempts.items[attempts.count - 1];
    return code;
}

/* Of the attempts those on the page, newest first. */
static int task_page(struct call *call, const struct task_record *task, struct list_page *page,
                     struct store_tasks *attempts)
{
    const size_t all = attempts->count, *rows;
    int code = page_parse(call, page,
                          arena_format(call->arena, "attempts of %u.%u.%u.%u", task->job.v,
                                       task->job_attempt, task->task.role, task->task.index),
                          NULL);
    if (code)
        return code;
    struct text *keys = ARENA_ARRAY(call->arena, struct text, all + 1);
    struct task_record *shown = ARENA_ARRAY(call->arena, struct task_record, all + 1);
    for (size_t i = 0; i < all; i++)
        keys[i] = page_number(call, attempts->items[all - 1 - i].task_attempt);
    attempts->count = page_pick(page, keys, all, true, &rows);
    assert(attempts->items || !attempts->count);
    for (size_t i = 0; i < attempts->count; i++)
        shown[i] = attempts->items[all - 1 - rows[i]];
    attempts->items = shown;
    return 0;
}

/* The task with its attempts; in pages with a cursor, the attempts alone. */
static int task_reply(struct call *call, const struct store_job *job, struct view_task *view,
                      struct view_attempts *attempts)
{
    struct list_page page;
    int code = task_page(call, view->task, &page, &attempts->attempts);
    if (!code)
        code = ends_read(call, job, attempts);
    if (code)
        return code;
    view->rules = call_rules(call);
    struct json_writer json;
    call_json(call, 200, &json);
    if (page.has_cursor) {
        page_begin(&page, &json);
        for (size_t i = 0; i < attempts->attempts.count; i++)
            view_task_attempt(&json, view, attempts, i);
        page_end(&page, &json);
    } else {
        view_task(&json, view, attempts);
        page_link(&page);
    }
    return 0;
}

int handle_task_attempts(struct call *call)
{
    struct store_job job;
    struct job_record attempt;
    struct task_record row;
    struct view_attempts attempts = {0};
    int64_t job_attempt, index;
    bool is_there = false;
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = call_index(call, call->parameters[1], "attempt", UINT32_MAX, &job_attempt);
    if (!code)
        code = call_index(call, call->parameters[3], "taskIndex", SPEC_TASKS_MAX, &index);
    if (!code)
        code = read_attempt(call, &job, job_attempt, &attempt);
    if (!code && job_attempt == job.record.attempt)
        code = call_task_find(call, job.record.id, call->parameters[2], index, &row, &is_there);
    if (code)
        return code;
    const struct task_record *task = is_there ? &row : NULL;
    if (!task)
        code = task_of_history(call, job.record.id, (uint32_t)job_attempt, index, &task);
    if (code)
        return code;
    if (!task)
        return call_fail(call, ERR_NOT_FOUND, "NoTaskError", "", "the job has no task %.*s-%lld",
                         TEXT_ARG(call->parameters[2]), (long long)index);
    code = store_task_attempts(call->reader, job.record.id, (uint32_t)job_attempt, task->task,
                               call->arena, &attempts.attempts, &call->err);
    if (code == ERR_NOT_FOUND) { /* it waits for its first one */
        attempts.attempts = (struct store_tasks){0};
        code = 0;
    }
    return code ? code
                : task_reply(call, &job, &(struct view_task){.job = &attempt, .task = task},
                             &attempts);
}
