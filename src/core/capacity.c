#include <assert.h>

#include "core/capacity.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/request.h"
#include "core/state.h"

/* An upper bound of what is free, kept with every change: when even that is too little for a job,
 * no placer has to be asked. It costs some comparisons, where a search costs microseconds: with
 * hundreds of shapes in the queue every end of a task would else cost hundreds of searches. */

static void count_node(struct core *core, struct core_node *node, bool is_added)
{
    uint32_t one = is_added ? 1 : UINT32_MAX; /* modulo 2^32: minus one */
    struct capacity *capacity = &core->capacity;
    if (!node->is_counted)
        return;
    if (node->counted_gpus > CAPACITY_GPUS_MAX) {
        capacity->large_nodes += one;
    } else {
        capacity->nodes_by_gpus[node->counted_gpus] += one;
        capacity->gpus =
            is_added ? capacity->gpus + node->counted_gpus : capacity->gpus - node->counted_gpus;
        if (is_added && node->counted_gpus > capacity->most_gpus)
            capacity->most_gpus = node->counted_gpus;
    }
    capacity->cpus =
        is_added ? capacity->cpus + node->counted_cpus : capacity->cpus - node->counted_cpus;
}

void capacity_update(struct core *core, uint32_t at)
{
    struct core_node *node = core_node_at(core, at);
    count_node(core, node, false);
    node->is_counted = node->facts.is_healthy && !node->is_lost && !node_is_cordoned(node);
    node->counted_gpus =
        node->facts.gpu_count > node->gpus_used ? node->facts.gpu_count - node->gpus_used : 0;
    node->counted_cpus = node->facts.cpu > node->cpus_used ? node->facts.cpu - node->cpus_used : 0;
    count_node(core, node, true);
}

/* Whoever may be ended for others, and how cheaply: lazily preemptible groups may have been
 * downgraded by the placer. */
void capacity_group(struct core *core, const struct core_group *group, bool is_added)
{
    const struct plan *plan = core_job_at(core, group->job)->plan;
    int32_t priority = plan->is_lazy_preemptible ? PLACEMENT_PRIORITY_OPPO : plan->priority;
    assert(priority >= PLACEMENT_PRIORITY_OPPO && priority <= PLACEMENT_PRIORITY_MAX);
    uint32_t index = (uint32_t)(priority + 1);
    uint32_t *count = &core->capacity.groups_by_priority[index];
    uint64_t *word = &core->capacity.priorities[index / 64];
    *count = is_added ? *count + 1 : *count - 1;
    *word = *count ? *word | UINT64_C(1) << index % 64 : *word & ~(UINT64_C(1) << index % 64);
}

/* The lowest priority of what runs; above all when nothing does. */
static int32_t lowest_priority(const struct core *core)
{
    const struct capacity *capacity = &core->capacity;
    uint32_t at = 0;
    while (at < CAPACITY_PRIORITY_WORDS && !capacity->priorities[at])
        at++;
    if (at == CAPACITY_PRIORITY_WORDS)
        return CAPACITY_PRIORITIES - 1;
    const uint32_t index = at * 64 + (uint32_t)__builtin_ctzll(capacity->priorities[at]);
    assert(index < CAPACITY_PRIORITIES && capacity->groups_by_priority[index] > 0);
    return (int32_t)index - 1;
}

/* The most that are free on one node. */
static uint32_t most_gpus(struct core *core)
{
    struct capacity *capacity = &core->capacity;
    assert(capacity->most_gpus <= CAPACITY_GPUS_MAX);
    while (capacity->most_gpus > 0 && !capacity->nodes_by_gpus[capacity->most_gpus])
        capacity->most_gpus--;
    return capacity->most_gpus;
}

struct queue_room capacity_room(struct core *core)
{
    const struct capacity *capacity = &core->capacity;
    struct queue_room room = {.lowest = lowest_priority(core)};
    room.free = (struct queue_need){most_gpus(core), capacity->gpus, capacity->cpus};
    if (capacity->large_nodes)
        room.free = (struct queue_need){UINT32_MAX, UINT64_MAX, UINT64_MAX};
    return room;
}

/* All tasks of a gang, or one of the others. */
struct queue_need capacity_need(struct core *core, const struct core_job *job)
{
    assert(job->id.v);
    const struct plan *plan = job->plan;
    const struct job_policy *policy = policy_of(core, job);
    struct queue_need need = {0};
    bool is_first = true;
    if (job->hold_count)
        return need;
    for (uint16_t i = 0; i < plan->role_count; i++) {
        const struct plan_role *role = &plan->roles[i];
        if (plan->is_gang) {
            uint32_t count = job_role_instances(&job->life, policy, i);
            need.gpus += (uint64_t)role->gpu * count;
            need.cpus += (uint64_t)role->cpu * count;
            if (count && role->gpu > need.task_gpus)
                need.task_gpus = role->gpu;
        } else if (role_is_waiting(job, policy, i)) {
            if (is_first || role->gpu < need.task_gpus)
                need.gpus = need.task_gpus = role->gpu;
            if (is_first || role->cpu < need.cpus)
                need.cpus = role->cpu;
            is_first = false;
        }
    }
    return need;
}

/* Tasks of `gpus` each that fit at most. */
static uint64_t tasks_at_most(const struct capacity *capacity, uint32_t gpus)
{
    assert(gpus >= 1 && gpus <= CAPACITY_GPUS_MAX && capacity->most_gpus <= CAPACITY_GPUS_MAX);
    uint64_t count = 0;
    for (uint32_t i = gpus; i <= capacity->most_gpus; i++)
        count += (uint64_t)capacity->nodes_by_gpus[i] * (i / gpus);
    return count;
}

bool capacity_is_short(struct core *core, const struct core_job *job)
{
    assert(job->id.v);
    const struct plan *plan = job->plan;
    const struct capacity *capacity = &core->capacity;
    if (!plan->is_gang || job->hold_count || capacity->large_nodes ||
        lowest_priority(core) < plan->priority)
        return false;
    uint64_t cpus = 0;
    for (uint16_t i = 0; i < plan->role_count; i++) {
        const struct plan_role *role = &plan->roles[i];
        if (role->gpu &&
            (role->gpu > CAPACITY_GPUS_MAX || tasks_at_most(capacity, role->gpu) < role->instances))
            return true;
        cpus += (uint64_t)role->cpu * role->instances;
    }
    return cpus > capacity->cpus;
}
