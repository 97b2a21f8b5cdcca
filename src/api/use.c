/* use.c — what the tasks of a job, and a machine, used over time. */
#include "api/handlers.h"
#include "api/view.h"
#include "core/plan.h"
#include "model/use_series.h"
#include "spec/spec.h"
#include <assert.h>
#include <time.h>

enum { TASKS_MAX = 1000 }; /* whose rows and series are read for one reply */

/* What was asked for, and what was found. */
struct use_reply {
    enum use_resolution resolution;
    struct use_points sum;
    uint64_t given_cpu, given_memory_mib, given_gpu;
    uint64_t task_count;
    size_t series_count;
};

static int resolution_read(struct call *call, enum use_resolution *resolution)
{
    struct text name = exchange_query(call->exchange, "resolution");
    *resolution = text_is(name, "recent") ? USE_RECENT : USE_WHOLE;
    if (!name.at || text_is(name, "recent") || text_is(name, "whole"))
        return 0;
    return call_fail(call, ERR_INVALID, "InvalidParametersError", "resolution",
                     "resolution is \"recent\" (the last half hour) or \"whole\"");
}

/* ---- as JSON ---- */

/* Cores, GPUs and watts are measured in thousandths. */
static bool is_thousandths(size_t field)
{
    return field == USE_CPU || field == USE_GPU || field == USE_GPU_POWER;
}

void view_use_value(struct json_writer *json, size_t field, uint64_t value)
{
    if (value == USE_UNKNOWN)
        json_null(json);
    else if (is_thousandths(field))
        json_real(json, (double)value / 1000);
    else
        json_int(json, (int64_t)value);
}

/* Mean and most of what is known; false: nothing is. */
static bool field_measure(const struct use_points *points, size_t field, uint64_t *mean,
                          uint64_t *most)
{
    uint64_t sum = 0, count = 0;
    *most = 0;
    for (size_t i = 0; i < points->count; i++) {
        uint64_t value = points->values[i][field];
        if (value == USE_UNKNOWN)
            continue;
        sum += value;
        count++;
        if (value > *most)
            *most = value;
    }
    *mean = count ? sum / count : 0;
    return count > 0;
}

/* A field of which nothing is known is left out. */
static void fields_write(struct json_writer *json, const struct use_points *points)
{
    json_key(json, "use");
    json_object(json);
    for (size_t k = 0; k < USE_FIELDS; k++) {
        uint64_t mean, most;
        if (!field_measure(points, k, &mean, &most))
            continue;
        json_key(json, USE_FIELD_NAMES[k]);
        json_object(json);
        json_key(json, "mean");
        view_use_value(json, k, mean);
        json_key(json, "most");
        view_use_value(json, k, most);
        json_key(json, "points");
        json_array(json);
        for (size_t i = 0; i < points->count; i++)
            view_use_value(json, k, points->values[i][k]);
        json_array_end(json);
        json_object_end(json);
    }
    json_object_end(json);
}

static void use_write(struct call *call, const struct use_reply *use, bool is_job)
{
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key_string(&json, "resolution", use->resolution == USE_RECENT ? "recent" : "whole");
    json_key_int(&json, "beginTime", use->sum.begin_ms);
    json_key_int(&json, "stepSeconds", use->sum.step_ms / 1000);
    json_key_int(&json, "pointCount", (int64_t)use->sum.count);
    if (is_job) {
        json_key_int(&json, "taskCount", (int64_t)use->task_count);
        json_key_int(&json, "sampledTaskCount", (int64_t)use->series_count);
    }
    json_key(&json, "given");
    json_object(&json);
    json_key_int(&json, "cpu", (int64_t)use->given_cpu);
    json_key_int(&json, "memory", (int64_t)(use->given_memory_mib << 20));
    json_key_int(&json, "gpu", (int64_t)use->given_gpu);
    json_object_end(&json);
    fields_write(&json, &use->sum);
    json_object_end(&json);
}

/* ---- a job ---- */

/* Which tasks: role= and index=, by default all; of which attempt of the job: jobAttempt=, by
 * default the current one; which attempt of a task: taskAttempt=, by default its latest one. */
struct use_query {
    struct text role;
    int64_t index, job_attempt, task_attempt; /* -1: not given */
};

static int query_read(struct call *call, struct use_query *query)
{
    query->role = exchange_query(call->exchange, "role");
    int code = call_number(call, "index", 0, SPEC_TASKS_MAX, -1, &query->index);
    if (!code)
        code = call_number(call, "jobAttempt", 0, UINT32_MAX, -1, &query->job_attempt);
    if (!code)
        code = call_number(call, "taskAttempt", 0, UINT32_MAX, -1, &query->task_attempt);
    if (!code && !query->role.at && (query->index >= 0 || query->task_attempt >= 0))
        code = call_fail(call, ERR_INVALID, "InvalidParametersError", "role",
                         "index and taskAttempt are those of a task: say its role, too");
    if (!code && query->index < 0 && query->task_attempt >= 0)
        code = call_fail(call, ERR_INVALID, "InvalidParametersError", "index",
                         "taskAttempt is that of one task: say its index, too");
    return code;
}

/* The attempt of the task that is meant; 0: it has none. */
static int attempt_of(struct call *call, const struct use_query *query,
                      const struct task_record *task, struct attempt_id *attempt)
{
    struct store_tasks attempts = {0};
    *attempt = task->attempt;
    if (query->task_attempt < 0)
        return 0;
    *attempt = (struct attempt_id){0};
    int code = store_task_attempts(call->reader, task->job, task->job_attempt, task->task,
                                   call->arena, &attempts, &call->err);
    if (code && code != ERR_NOT_FOUND)
        return code;
    for (size_t i = 0; i < attempts.count; i++)
        if (attempts.items[i].task_attempt == query->task_attempt)
            *attempt = attempts.items[i].attempt;
    return 0;
}

/* One grid for all of them: from the first start to the last end, or the half hour before it. */
static void grid_make(const struct store_tasks *tasks, struct use_reply *use)
{
    int64_t now_ms = (int64_t)time(NULL) * 1000, begin_ms = now_ms, end_ms = 0;
    for (size_t i = 0; i < tasks->count; i++) {
        const struct task_record *task = &tasks->items[i];
        if (!task->attempt_launched_ms)
            continue;
        int64_t until_ms = task->attempt_completed_ms ? task->attempt_completed_ms : now_ms;
        begin_ms = task->attempt_launched_ms < begin_ms ? task->attempt_launched_ms : begin_ms;
        end_ms = until_ms > end_ms ? until_ms : end_ms;
    }
    int64_t recent_ms = end_ms - (USE_RECENT_POINTS - 1) * USE_STEP_MS;
    if (use->resolution == USE_RECENT && begin_ms < recent_ms)
        begin_ms = recent_ms;
    use_points_grid(&use->sum, begin_ms, end_ms);
}

static int task_add(struct call *call, const struct use_query *query,
                    const struct task_record *task, struct use_reply *use,
                    struct use_points *points)
{
    const struct service *service = call->api->service;
    struct attempt_id attempt;
    struct err err;
    int code = attempt_of(call, query, task, &attempt);
    if (code || !attempt.v)
        return code;
    code = service->use(service->context, task->job, attempt, NULL, use->resolution, points, &err);
    if (code == ERR_NOT_FOUND || (code == 0 && points->count == 0))
        return 0;
    if (code < 0)
        return call_fail(call, code, NULL, "", "%s", err.text);
    if (query->task_attempt >= 0 || query->index >= 0) /* of one task: its own steps */
        use->sum = *points;
    else
        use_points_sum(&use->sum, points);
    use->series_count++;
    return 0;
}

static int tasks_add(struct call *call, const struct use_query *query,
                     const struct store_tasks *tasks, struct use_reply *use)
{
    struct use_points *points = ARENA_NEW(call->arena, struct use_points);
    int code = 0;
    grid_make(tasks, use);
    for (size_t i = 0; !code && i < tasks->count; i++)
        code = task_add(call, query, &tasks->items[i], use, points);
    if (use->series_count == 0)
        use->sum.count = 0;
    return code;
}

/* So many tasks of the role are meant. */
static void given_add(const struct store_task_totals *totals, const struct plan *plan, uint16_t r,
                      uint64_t count, struct use_reply *use)
{
    assert(r < totals->count);
    use->task_count += count;
    use->given_cpu += count * plan->roles[r].cpu;
    use->given_memory_mib += count * plan->roles[r].memory_mib;
    use->given_gpu += count * plan->roles[r].gpu;
}

/* The role's number; plan->role_count: there is none of that name. */
static uint16_t role_find(const struct plan *plan, struct text name)
{
    uint16_t r = 0;
    while (r < plan->role_count && !text_is(name, plan->roles[r].name))
        r++;
    return r;
}

/* A page that begins with the first task that is meant: of the role, or of all. */
static struct task_filter filter_of(const struct use_query *query, uint16_t role)
{
    const bool is_one = query->index >= 0;
    struct task_filter filter = {.job_attempt = query->job_attempt,
                                 .limit = is_one ? 1 : TASKS_MAX};
    if (query->index > 0)
        filter.after = (struct task_ref){role, (uint16_t)(query->index - 1)};
    else if (role > 0)
        filter.after = (struct task_ref){(uint16_t)(role - 1), UINT16_MAX};
    filter.has_after = query->index > 0 || role > 0;
    return filter;
}

/* Behind those of the role stand others'. */
static void tasks_keep_meant(const struct use_query *query, uint16_t role,
                             struct store_tasks *tasks)
{
    size_t kept = 0;
    while (kept < tasks->count && tasks->items[kept].task.role == role &&
           (query->index < 0 || tasks->items[kept].task.index == query->index))
        kept++;
    tasks->count = kept;
}

/* The tasks that are meant: the first TASKS_MAX of them, and how many they are. */
static int tasks_read(struct call *call, struct job_id job, const struct use_query *query,
                      struct store_tasks *tasks, struct use_reply *use)
{
    struct store_task_totals totals;
    cleanup_plan struct plan *plan = NULL;
    int code = store_job_plan(call->reader, job, &plan, &call->err);
    if (!code)
        code = store_task_totals(call->reader, job, query->job_attempt, call->arena, &totals,
                                 &call->err);
    if (code)
        return code;
    const uint16_t role = query->role.at ? role_find(plan, query->role) : 0;
    const struct task_filter filter = filter_of(query, role);
    code = store_task_page(call->reader, job, &filter, call->arena, tasks, &call->err);
    if (!code && query->role.at)
        tasks_keep_meant(query, role, tasks);
    for (uint16_t r = 0; !code && r < plan->role_count; r++)
        if (!query->role.at || r == role)
            given_add(&totals, plan, r, query->index >= 0 ? tasks->count : totals.roles[r], use);
    if (!code && query->role.at && use->task_count == 0)
        code = call_fail(call, ERR_NOT_FOUND, "NoTaskError", "", "the job has no such task");
    return code;
}

int handle_job_use(struct call *call)
{
    struct store_job job;
    struct use_query query;
    struct use_reply *use = ARENA_NEW(call->arena, struct use_reply);
    struct store_tasks tasks = {0};
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = resolution_read(call, &use->resolution);
    if (!code)
        code = query_read(call, &query);
    if (!code && !call_reader(call))
        code = call->err.code;
    if (!code)
        code = tasks_read(call, job.record.id, &query, &tasks, use);
    if (!code)
        code = tasks_add(call, &query, &tasks, use);
    if (!code)
        use_write(call, use, true);
    return code;
}

/* ---- a machine ---- */

int handle_node_use(struct call *call)
{
    const struct service *service = call->api->service;
    struct use_reply *use = ARENA_NEW(call->arena, struct use_reply);
    struct store_nodes nodes;
    struct err err;
    int code = resolution_read(call, &use->resolution);
    if (!code && !call_reader(call))
        code = call->err.code;
    if (!code)
        code = store_nodes(call->reader, call->arena, &nodes, &call->err);
    if (code)
        return code;
    for (size_t i = 0; i < nodes.count; i++) {
        const struct node_facts *facts = &nodes.items[i].facts;
        if (!text_is(call->parameters[0], facts->name))
            continue;
        use->given_cpu = facts->cpu;
        use->given_memory_mib = facts->memory_mib;
        use->given_gpu = facts->gpu_count;
        code = service->use(service->context, (struct job_id){0}, (struct attempt_id){0},
                            facts->name, use->resolution, &use->sum, &err);
        if (code < 0 && code != ERR_NOT_FOUND)
            return call_fail(call, code, NULL, "", "%s", err.text);
        if (code == ERR_NOT_FOUND)
            use->sum = (struct use_points){.step_ms = USE_STEP_MS};
        use_write(call, use, false);
        return 0;
    }
    return call_fail(call, ERR_NOT_FOUND, "NoNodeError", "", "there is no node %.*s",
                     TEXT_ARG(call->parameters[0]));
}
