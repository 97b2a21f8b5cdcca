#include "api/task.h"
#include "core/plan.h"
#include "store/read.h"

/* The task of the current attempt, placed or not, by its row alone. False: there is none. */
static int one_task(struct call *call, struct job_id job, struct task_ref ref,
                    struct task_record *task, bool *is_there)
{
    struct task_filter filter = {.job_attempt = -1, .limit = 1};
    struct store_tasks tasks = {0};
    filter.has_after = ref.role > 0 || ref.index > 0;
    if (ref.index > 0)
        filter.after = (struct task_ref){ref.role, (uint16_t)(ref.index - 1)};
    else if (ref.role > 0)
        filter.after = (struct task_ref){(uint16_t)(ref.role - 1), UINT16_MAX};
    int code = store_task_page(call->reader, job, &filter, call->arena, &tasks, &call->err);
    *is_there = !code && tasks.count && tasks.items[0].task.role == ref.role &&
                tasks.items[0].task.index == ref.index;
    if (*is_there)
        *task = tasks.items[0];
    return code;
}

int call_task_find(struct call *call, struct job_id job, struct text role, int64_t index,
                   struct task_record *task, bool *is_there)
{
    cleanup_plan struct plan *plan = NULL;
    *is_there = false;
    if (!call_reader(call))
        return call->err.code;
    int code = store_job_plan(call->reader, job, &plan, &call->err);
    for (uint16_t r = 0; !code && !*is_there && index <= UINT16_MAX && r < plan->role_count; r++)
        if (!role.at || text_is(role, plan->roles[r].name))
            code = one_task(call, job, (struct task_ref){r, (uint16_t)index}, task, is_there);
    return code;
}

int call_role(struct call *call, struct job_id job, struct text name, int32_t *role)
{
    cleanup_plan struct plan *plan = NULL;
    *role = -1;
    if (!call_reader(call))
        return call->err.code;
    int code = store_job_plan(call->reader, job, &plan, &call->err);
    for (uint16_t r = 0; !code && r < plan->role_count; r++)
        if (text_is(name, plan->roles[r].name))
            *role = r;
    return code;
}

int call_task(struct call *call, const struct store_job *job, struct text role, int64_t index,
              struct task_record *task)
{
    bool is_there;
    int code = call_task_find(call, job->record.id, role, index, task, &is_there);
    if (code || is_there)
        return code;
    return call_fail(call, ERR_NOT_FOUND, "NoTaskError", "role", "job %s has no task %.*s-%lld",
                     job->record.name, TEXT_ARG(role), (long long)index);
}

int call_running_task(struct call *call, const struct doc *body, const struct store_job *job,
                      struct task_record *task)
{
    struct text role;
    int code = call_body_string(call, body, "role", false, &role);
    if (!code)
        code = call_task(call, job, role, doc_get_int(body, "index", 0), task);
    if (!code && (!task->attempt.v || task->state != LIFE_RUNNING))
        code = call_fail(call, ERR_CONFLICT, "ConflictJobError", "", "task %s-%u does not run",
                         task->role_name, task->task.index);
    return code;
}
