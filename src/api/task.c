#include "api/task.h"

int call_task(struct call *call, const struct store_job *job, struct text role, int64_t index,
              struct task_record *task)
{
    struct store_tasks tasks;
    if (!call_reader(call))
        return call->err.code;
    int code = store_tasks(call->reader, job->record.id, -1, call->arena, &tasks, &call->err);
    if (code)
        return code;
    for (size_t i = 0; i < tasks.count; i++) {
        const struct task_record *at = &tasks.items[i];
        if (at->task.index != index || (role.at && !text_is(role, at->role_name)))
            continue;
        *task = *at;
        return 0;
    }
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
