#include "core/peers.h"

#include <assert.h>

#include "core/output.h"

bool peer_runs(const struct task_record *task, uint32_t job_attempt)
{
    assert(task->address);
    return task->job_attempt == job_attempt && task->state == LIFE_RUNNING && task->address[0];
}

bool peer_is_known(const struct task_record *task, uint32_t job_attempt)
{
    if (peer_runs(task, job_attempt))
        return true;
    return task->job_attempt == job_attempt && task->state == LIFE_COMPLETED &&
           task->attempt_launched_ms > 0 && task->address[0];
}

bool peer_is_news(const struct task_record *task)
{
    return !task->is_removed && (task->state == LIFE_RUNNING || task->state == LIFE_COMPLETED);
}

bool peers_may_be_told(const struct task_record *tasks, size_t count, uint32_t job_attempt,
                       bool is_gang)
{
    for (size_t i = 0; i < count && is_gang; i++) {
        const bool is_over =
            tasks[i].job_attempt == job_attempt && tasks[i].state == LIFE_COMPLETED;
        if (!is_over && !peer_runs(&tasks[i], job_attempt))
            return false;
    }
    return true;
}
