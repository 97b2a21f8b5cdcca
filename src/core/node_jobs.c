/* node_jobs.c — which jobs are on which nodes, for readers: "A snapshot for readers" in
 * docs/rfc/0016-gangs-in-steps.md. */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/core.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/tasks.h"

enum { WORK_OF_NODE = 4 }; /* to find its tasks and to sort them, beside each of these */

void core_node_jobs_release(struct core_node_jobs *jobs)
{
    ARRAY_FREE(&jobs->nodes);
    ARRAY_FREE(jobs);
    jobs->used = 0;
}

void core_node_jobs_clear(struct core_node_jobs *jobs)
{
    jobs->nodes.count = jobs->count = jobs->used = 0;
}

const struct core_node_job *core_node_jobs_of(const struct core_node_jobs *jobs,
                                              struct node_id node, size_t *count)
{
    const struct core_node_span *span =
        node.v < jobs->nodes.count ? &jobs->nodes.items[node.v] : NULL;
    *count = span ? span->count : 0;
    return *count ? &jobs->items[span->first] : NULL;
}

static int node_job_compare(const void *a, const void *b)
{
    const struct core_node_job *x = a, *y = b;
    return (x->job.v > y->job.v) - (x->job.v < y->job.v);
}

/* At the end of the table, by the numbers of the jobs. */
static void jobs_add(const struct core *core, const struct core_node *node,
                     struct core_node_jobs *jobs)
{
    const size_t first = jobs->count;
    for (uint32_t i = node->first_task; i != NONE; i = core_task_at(core, i)->node_next) {
        const struct job_id job = core_job_at(core, core_task_at(core, i)->job)->id;
        /* tasks of a job that started together are neighbours */
        if (jobs->count > first && jobs->items[jobs->count - 1].job.v == job.v)
            jobs->items[jobs->count - 1].task_count++;
        else
            *ARRAY_ADD(jobs) = (struct core_node_job){job, 1};
    }
    if (jobs->count - first < 2)
        return;
    qsort(jobs->items + first, jobs->count - first, sizeof *jobs->items, node_job_compare);
    size_t last = first;
    for (size_t i = first + 1; i < jobs->count; i++) {
        if (jobs->items[i].job.v == jobs->items[last].job.v)
            jobs->items[last].task_count += jobs->items[i].task_count;
        else
            jobs->items[++last] = jobs->items[i];
    }
    jobs->count = last + 1;
}

static void span_update(const struct core *core, const struct core_node *node,
                        struct core_node_jobs *jobs, struct core_node_span *span)
{
    const size_t first = jobs->count;
    assert(jobs->used >= span->count && first <= UINT32_MAX);
    jobs_add(core, node, jobs);
    jobs->used = jobs->used - span->count + (jobs->count - first);
    *span = (struct core_node_span){node->tasks_change, (uint32_t)first,
                                    (uint32_t)(jobs->count - first)};
}

/* It is copied anew when most of it is no node's, and when it has too little room: to let a large
 * one grow takes longer than a piece may. */
static void table_prepare(struct core_node_jobs *jobs, size_t tasks, size_t nodes, uint32_t work)
{
    const size_t more = work < tasks ? work : tasks;
    if (jobs->count > 2 * jobs->used + nodes)
        core_node_jobs_clear(jobs);
    if (jobs->count + more <= jobs->room)
        return;
    core_node_jobs_clear(jobs);
    ARRAY_FREE(jobs);
    ARRAY_RESERVE(jobs, 2 * (tasks + nodes));
}

bool core_node_jobs_update(const struct core *core, struct core_node_jobs *jobs, uint32_t work)
{
    const uint32_t nodes = core_node_count(core);
    assert(jobs->nodes.count <= nodes && work > 0);
    table_prepare(jobs, core->tasks_live, nodes, work);
    ARRAY_RESERVE(&jobs->nodes, nodes);
    while (jobs->nodes.count < nodes)
        ARRAY_ADD(&jobs->nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        const struct core_node *node = core_node_at(core, i);
        struct core_node_span *span = &jobs->nodes.items[i];
        if (span->change == node->tasks_change)
            continue;
        if (work == 0)
            return false;
        span_update(core, node, jobs, span);
        const uint32_t done = WORK_OF_NODE + node->task_count;
        work -= done < work ? done : work;
    }
    return true;
}
