#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/clusters.h"
#include "core/engines.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/renew.h"
#include "core/state.h"
#include "core/tasks.h"
#include "core/waiting.h"

/* --- invariants --- */

enum { PAST_PLACERS_MAX = 32 };

/* assert would vanish from a build without assertions; whoever calls core_check wants to know */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(__func__, #condition);                                                    \
    } while (0)

static void check_failed(const char *function, const char *condition)
{
    assert(false && "an invariant of the core");
    (void)function;
    (void)condition;
    abort();
}

/* Neither a port nor a GPU is given twice: to this task and to one before or after it. */
static void check_task(const struct core *core, const struct core_task *task, struct ports *ports)
{
    assert(task->job != NONE);
    for (size_t j = 0; j < task->port_count; j++) {
        CHECK(ports_are_free(ports, task->ports[j].first, task->ports[j].count));
        ports_take(ports, task->ports[j].first, task->ports[j].count);
    }
    for (uint32_t k = task->node_next; k != NONE; k = core_task_at(core, k)->node_next)
        for (size_t j = 0; j < core_task_at(core, k)->gpu_count; j++)
            CHECK(!core_task_has_gpu(task, core_task_at(core, k)->gpus[j]));
}

static void check_node(const struct core *core, uint32_t at)
{
    assert(at < core_node_count(core));
    const struct core_node *node = core_node_at(core, at);
    struct ports ports = {0};
    uint32_t tasks = 0, gpus = 0;
    for (uint32_t i = node->first_task; i != NONE; i = core_task_at(core, i)->node_next) {
        const struct core_task *task = core_task_at(core, i);
        CHECK(task->is_taken && task->node == at);
        tasks++;
        gpus += task->gpu_count;
        check_task(core, task, &ports);
    }
    CHECK(tasks == node->task_count && gpus == node->gpus_used);
    CHECK(ports.taken + held_ports_of(core, at) == node->ports.taken);
    CHECK(node->is_counted ==
          (node->facts.is_healthy && !node->is_lost && !node_is_cordoned(node)));
    CHECK(node->gpus_used > node->facts.gpu_count ||
          node->counted_gpus == node->facts.gpu_count - node->gpus_used);
    ports_release(&ports);
}

static void check_groups(const struct core *core)
{
    uint32_t given_up = 0;
    for (uint32_t i = 0; i < core_group_slots(core); i++) {
        const struct core_group *group = core_group_at(core, i);
        if (!group->name)
            continue;
        uint32_t taken = 0;
        for (uint32_t j = 0; j < group->slot_count; j++) {
            if (group->tasks[j] == NONE)
                continue;
            const struct core_task *task = core_task_at(core, group->tasks[j]);
            taken += task->is_taken && task->group == i && task->group_slot == j;
        }
        const struct core_job *holder = hold_holder(core, group->name);
        const struct hold *hold =
            holder ? hold_find((struct core_job *)(uintptr_t)holder, group->name) : NULL;
        const uint32_t awaited = hold ? hold->slot_count - hold->started : 0;
        CHECK(taken + awaited == group->taken_count && group->taken_count > 0);
        CHECK(!group->given_up || (!hold && group->given_up < group->slot_count));
        given_up += group->given_up > 0;
    }
    CHECK(given_up == core->groups_given_up);
}

/* The sums by which a search is spared are those of the nodes and groups: whoever could start or
 * preempt is not passed over. */
static void check_capacity(const struct core *core)
{
    const struct capacity *known = &core->capacity;
    struct capacity sum = {0};
    for (uint32_t i = 0; i < core_node_count(core); i++) {
        const struct core_node *node = core_node_at(core, i);
        if (!node->is_counted)
            continue;
        if (node->counted_gpus > CAPACITY_GPUS_MAX) {
            sum.large_nodes++;
        } else {
            sum.nodes_by_gpus[node->counted_gpus]++;
            sum.gpus += node->counted_gpus;
            CHECK(node->counted_gpus <= known->most_gpus);
        }
        sum.cpus += node->counted_cpus;
    }
    for (uint32_t i = 0; i < core_group_slots(core); i++) {
        const struct core_group *group = core_group_at(core, i);
        if (!group->name)
            continue;
        const struct plan *plan = core_job_at(core, group->job)->plan;
        sum.groups_by_priority[(plan->is_lazy_preemptible ? -1 : plan->priority) + 1]++;
    }
    CHECK(sum.large_nodes == known->large_nodes && sum.cpus == known->cpus);
    CHECK(sum.gpus == known->gpus);
    CHECK(!memcmp(sum.nodes_by_gpus, known->nodes_by_gpus, sizeof sum.nodes_by_gpus));
    CHECK(
        !memcmp(sum.groups_by_priority, known->groups_by_priority, sizeof sum.groups_by_priority));
    for (uint32_t i = 0; i < CAPACITY_PRIORITIES; i++)
        CHECK((known->priorities[i / 64] >> i % 64 & 1) == (known->groups_by_priority[i] > 0));
}

/* True: it holds a place. */
static bool check_task_of(const struct core *core, uint32_t slot, struct task_ref ref)
{
    struct core *mutable = (struct core *)(uintptr_t)core;
    const struct core_job *job = core_job_at(core, slot);
    const struct job_task *life = job_task_find(&job->life, ref);
    const struct core_task *task = core_task_find(mutable, slot, ref);
    const bool is_live = life->state >= LIFE_CREATION_REQUESTED && life->state <= LIFE_DELETING;
    CHECK(task);
    CHECK(task->is_taken == is_live);
    CHECK(task->attempt.v == life->attempt.v && task->job_attempt == job->life.attempt);
    CHECK(!is_live || core_task_of_attempt(mutable, life->attempt) == task);
    CHECK(task->is_kept == job_task_is_kept(life));
    return is_live;
}

static void check_tasks(const struct core *core, uint32_t slot, uint32_t *taken)
{
    assert(slot < core_job_slots(core));
    struct core *mutable = (struct core *)(uintptr_t)core;
    const struct core_job *job = core_job_at(core, slot);
    uint32_t kept = 0;
    for (uint16_t i = 0; job->life.has_tasks && i < job->plan->role_count; i++)
        for (size_t j = 0; j < job->life.roles[i].count; j++) {
            const struct task_ref ref = {i, (uint16_t)j};
            *taken += check_task_of(core, slot, ref);
            kept += core_task_find(mutable, slot, ref)->is_kept;
        }
    CHECK(kept == job->kept);
}

static void check_job(const struct core *core, uint32_t slot, size_t *queued, size_t *tasks)
{
    struct core *mutable = (struct core *)(uintptr_t)core;
    const struct core_job *job = core_job_at(core, slot);
    const struct job_policy *policy = policy_of(mutable, job);
    uint32_t taken = 0;
    bool is_queued = queue_has(core->queue, slot);
    check_tasks(core, slot, &taken);
    CHECK(taken == job->life.live);
    CHECK(is_queued == (job_waiting_count(&job->life, policy) > 0));
    /* a gang holds nothing while it waits */
    CHECK(!job->plan->is_gang || !is_queued || taken == 0 || job->waiting == WAITING_STARTING);
    bool is_idle = true; /* a job without any instance, until it is scaled */
    for (uint16_t i = 0; i < job->plan->role_count; i++)
        is_idle = is_idle && job_role_instances(&job->life, policy, i) == 0;
    CHECK(job_is_final(&job->life) || is_queued || job->wake_ms || taken || is_idle ||
          job->is_going_on || job->life.execution == EXECUTION_CREATE);
    CHECK(!job->hold_count || is_queued);
    CHECK(!job->victim_count || job->hold_count);
    const bool is_by_task = core->placing.stage == PLACING_TASKS;
    CHECK(core->placing.job != job->id.v || (is_queued && job->plan->is_gang == !is_by_task));
    CHECK(job->waiting == waiting_state(core, job));
    CHECK(!job->is_changed && !job->is_finished && !job->submission);
    CHECK(job->is_going_on || !job_goes_on(&job->life));
    *queued += is_queued;
    *tasks += taken;
}

/* Each node that is not lost counts at the engine of its facts. */
static void check_engines(const struct core *core)
{
    uint32_t counted = 0, told = 0;
    for (uint32_t i = 0; i < core_node_count(core); i++) {
        const struct core_node *node = core_node_at(core, i);
        CHECK((node->engine == 0) == node->is_lost);
        CHECK(node->is_lost ||
              strcmp(core_engine_name(core, node->engine), node->facts.engine) == 0);
        counted += !node->is_lost;
    }
    for (size_t i = 0; i < core->engines.count; i++)
        told += core->engines.items[i].nodes;
    CHECK(counted == told);
}

void core_check(const struct core *core)
{
    size_t queued = 0, tasks = 0, jobs = 0;
    for (uint32_t i = 0; i < core_node_count(core); i++)
        check_node(core, (uint32_t)i);
    check_groups(core);
    check_capacity(core);
    check_engines(core);
    for (uint32_t i = 0; i < core_job_slots(core); i++)
        if (core_job_at(core, i)->id.v) {
            check_job(core, (uint32_t)i, &queued, &tasks);
            jobs++;
        }
    CHECK(queued == queue_count(core->queue));
    CHECK(tasks == core->tasks_live && jobs == core->jobs_live);
    /* what is kept goes with its table at the latest: the next step is asked for until it has */
    CHECK(core_kept_is_counted(core));
    CHECK(!core->old_kept || timers_next_ms(&core->timers) <= core->now_ms);
    CHECK(!core->output && core->actions.count == 0);
    /* each may be as large as the placer: they are freed as fast as they are made */
    CHECK(past_placer_count(core) <= PAST_PLACERS_MAX);
}

/* --- hash --- */

static void mix(uint64_t *hash, uint64_t value)
{
    *hash = (*hash ^ value) * 0x9e3779b97f4a7c15u;
    *hash ^= *hash >> 29;
}

static void mix_text(uint64_t *hash, const char *string)
{
    mix(hash, text_hash(text_of(string), 0));
}

static void mix_node(uint64_t *hash, const struct core *core, uint32_t at)
{
    const struct core_node *node = core_node_at(core, at);
    uint64_t blame;
    memcpy(&blame, &node->blame.value, sizeof blame);
    mix_text(hash, node->facts.name);
    mix(hash, (uint64_t)node->facts.cpu << 32 | node->facts.gpu_count);
    mix(hash, node->facts.memory_mib);
    mix(hash, (uint64_t)node->facts.is_healthy << 1 | node->is_lost);
    mix(hash, blame);
    mix(hash, (uint64_t)node->blame.at_ms);
    mix(hash, node->blame.level);
    mix(hash, node->refusals);
    mix(hash, (uint64_t)node->avoid_ms);
    mix(hash, (uint64_t)node->closing.at_ms << 1 | node->closing.is_closed);
    mix_text(hash, node->closing.by);
    mix_text(hash, node->closing.why);
    mix_text(hash, node_is_told_blame(node) ? node->cordon : ""); /* else a restart forgets it */
    mix(hash, (uint64_t)node->task_count << 32 | (node->ports.taken - held_ports_of(core, at)));
}

static void mix_closed(uint64_t *hash, const struct cluster_record *cluster)
{
    assert(cluster->closing.is_closed);
    mix_text(hash, cluster->name);
    mix(hash, (uint64_t)cluster->closing.at_ms);
    mix_text(hash, cluster->closing.by);
    mix_text(hash, cluster->closing.why);
}

static void mix_job(uint64_t *hash, const struct core *core, uint32_t slot)
{
    struct core *mutable = (struct core *)(uintptr_t)core;
    const struct core_job *job = core_job_at(core, slot);
    mix(hash, job->id.v);
    mix_text(hash, job->full_name);
    mix(hash, job_hash(&job->life));
    mix(hash, queue_has(core->queue, slot));
    for (uint16_t i = 0; job->life.has_tasks && i < job->plan->role_count; i++)
        for (size_t j = 0; j < job->life.roles[i].count; j++) {
            const struct core_task *task =
                core_task_find(mutable, slot, (struct task_ref){i, (uint16_t)j});
            assert(task);
            if (!task->is_taken)
                continue;
            mix(hash,
                (uint64_t)task->node << 32 | (uint64_t)task->cell_level << 16 | task->gpu_count);
            for (size_t k = 0; k < task->gpu_count; k++)
                mix(hash, task->gpus[k]);
            for (size_t k = 0; k < task->port_count; k++)
                mix(hash, (uint64_t)task->ports[k].first << 16 | task->ports[k].count);
        }
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Independent of where things stand in the tables, so that a restored core can be compared. */
uint64_t core_hash(const struct core *core)
{
    uint64_t hash = 1;
    mix(&hash, core->last_job);
    mix(&hash, core->last_attempt);
    for (uint32_t i = 0; i < core_node_count(core); i++)
        mix_node(&hash, core, i);
    for (uint32_t i = 0; i < core_closed_count(core); i++)
        mix_closed(&hash, core_closed_at(core, i));
    uint64_t *ids = mem_alloc(mem_size(core_job_slots(core) + 1, sizeof *ids));
    size_t count = 0;
    for (uint32_t i = 0; i < core_job_slots(core); i++)
        if (core_job_at(core, i)->id.v)
            ids[count++] = (uint64_t)core_job_at(core, i)->id.v << 32 | i;
    qsort(ids, count, sizeof *ids, compare_ids);
    for (size_t i = 0; i < count; i++)
        mix_job(&hash, core, (uint32_t)ids[i]);
    mem_free(ids);
    return hash;
}
