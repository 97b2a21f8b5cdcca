#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/seats.h"
#include "core/state.h"
#include "core/waiting.h"

/* --- invariants --- */

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

/* Neither a port nor a GPU is given twice: to this seat and to one before or after it. */
static void check_seat(const struct core *core, const struct seat *seat, struct ports *ports)
{
    for (size_t j = 0; j < seat->port_count; j++) {
        CHECK(ports_are_free(ports, seat->ports[j].first, seat->ports[j].count));
        ports_take(ports, seat->ports[j].first, seat->ports[j].count);
    }
    for (uint32_t k = seat->node_next; k != NONE; k = core->seats.items[k].node_next)
        for (size_t j = 0; j < core->seats.items[k].gpu_count; j++)
            CHECK(!seat_has_gpu(seat, core->seats.items[k].gpus[j]));
}

static void check_node(const struct core *core, uint32_t at)
{
    const struct node *node = &core->nodes.items[at];
    struct ports ports = {0};
    uint32_t seats = 0, gpus = 0;
    for (uint32_t i = node->first_seat; i != NONE; i = core->seats.items[i].node_next) {
        const struct seat *seat = &core->seats.items[i];
        CHECK(seat->is_taken && seat->node == at);
        seats++;
        gpus += seat->gpu_count;
        check_seat(core, seat, &ports);
    }
    CHECK(seats == node->seat_count && gpus == node->gpus_used);
    CHECK(ports.taken == node->ports.taken);
    CHECK(node->is_counted ==
          (node->facts.is_healthy && !node->is_lost && !node_is_cordoned(node)));
    CHECK(node->gpus_used > node->facts.gpu_count ||
          node->counted_gpus == node->facts.gpu_count - node->gpus_used);
    ports_release(&ports);
}

static void check_groups(const struct core *core)
{
    for (size_t i = 0; i < core->groups.count; i++) {
        const struct group *group = &core->groups.items[i];
        if (!group->name)
            continue;
        uint32_t live = 0;
        for (uint32_t j = 0; j < group->slot_count; j++) {
            if (group->seats[j] == NONE)
                continue;
            const struct seat *seat = &core->seats.items[group->seats[j]];
            live += seat->is_taken && seat->group == i && seat->group_slot == j;
        }
        CHECK(live == group->live && live > 0);
    }
}

static void check_tasks(const struct core *core, uint32_t slot, uint32_t *taken)
{
    struct core *mutable = (struct core *)(uintptr_t)core;
    const struct live *live = &core->jobs.items[slot];
    for (uint16_t i = 0; live->job.has_tasks && i < live->plan->role_count; i++)
        for (size_t j = 0; j < live->job.roles[i].count; j++) {
            struct task_ref ref = {i, (uint16_t)j};
            const struct job_task *task = job_task_find(&live->job, ref);
            const struct seat *seat = seat_find(mutable, slot, ref);
            bool is_live = task->state >= LIFE_CREATION_REQUESTED && task->state <= LIFE_DELETING;
            CHECK(seat);
            CHECK(seat->is_taken == is_live);
            CHECK(!is_live || seat->attempt.v == task->attempt.v);
            CHECK(!is_live || seat_of_attempt(mutable, task->attempt) == seat);
            *taken += is_live;
        }
}

static void check_job(const struct core *core, uint32_t slot, size_t *queued, size_t *tasks)
{
    struct core *mutable = (struct core *)(uintptr_t)core;
    const struct live *live = &core->jobs.items[slot];
    const struct job_policy *policy = policy_of(mutable, live);
    uint32_t taken = 0;
    bool is_queued = queue_has(core->queue, slot);
    check_tasks(core, slot, &taken);
    CHECK(taken == live->job.live);
    CHECK(is_queued == (job_waiting_count(&live->job, policy) > 0));
    /* a gang holds nothing while it waits */
    CHECK(!live->plan->is_gang || !is_queued || taken == 0);
    bool is_idle = true; /* a job without any instance, until it is scaled */
    for (uint16_t i = 0; i < live->plan->role_count; i++)
        is_idle = is_idle && job_role_instances(&live->job, policy, i) == 0;
    CHECK(job_is_final(&live->job) || is_queued || live->wake_ms || taken || is_idle ||
          live->job.execution == EXECUTION_CREATE);
    CHECK(!live->hold_count || is_queued);
    CHECK(live->waiting == waiting_state(core, live));
    CHECK(!live->is_changed && !live->is_finished && !live->submission);
    *queued += is_queued;
    *tasks += taken;
}

void core_check(const struct core *core)
{
    size_t queued = 0, tasks = 0, live = 0;
    for (size_t i = 0; i < core->nodes.count; i++)
        check_node(core, (uint32_t)i);
    check_groups(core);
    for (size_t i = 0; i < core->jobs.count; i++)
        if (core->jobs.items[i].id.v) {
            check_job(core, (uint32_t)i, &queued, &tasks);
            live++;
        }
    CHECK(queued == queue_count(core->queue));
    CHECK(tasks == core->tasks_live && live == core->jobs_live);
    CHECK(!core->output && core->actions.count == 0);
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

static void mix_node(uint64_t *hash, const struct node *node)
{
    uint64_t blame;
    memcpy(&blame, &node->blame.value, sizeof blame);
    mix_text(hash, node->facts.name);
    mix(hash, (uint64_t)node->facts.cpu << 32 | node->facts.gpu_count);
    mix(hash, node->facts.memory_mib);
    mix(hash, (uint64_t)node->facts.is_healthy << 1 | node->is_lost);
    mix(hash, blame);
    mix(hash, (uint64_t)node->blame.at_ms);
    mix(hash, node->blame.level);
    mix_text(hash, node->cordon);
    mix(hash, (uint64_t)node->seat_count << 32 | node->ports.taken);
}

static void mix_job(uint64_t *hash, const struct core *core, uint32_t slot)
{
    struct core *mutable = (struct core *)(uintptr_t)core;
    const struct live *live = &core->jobs.items[slot];
    mix(hash, live->id.v);
    mix_text(hash, live->full_name);
    mix(hash, job_hash(&live->job));
    mix(hash, queue_has(core->queue, slot));
    for (uint16_t i = 0; live->job.has_tasks && i < live->plan->role_count; i++)
        for (size_t j = 0; j < live->job.roles[i].count; j++) {
            const struct seat *seat = seat_find(mutable, slot, (struct task_ref){i, (uint16_t)j});
            assert(seat);
            if (!seat->is_taken)
                continue;
            mix(hash,
                (uint64_t)seat->node << 32 | (uint64_t)seat->cell_level << 16 | seat->gpu_count);
            for (size_t k = 0; k < seat->gpu_count; k++)
                mix(hash, seat->gpus[k]);
            for (size_t k = 0; k < seat->port_count; k++)
                mix(hash, (uint64_t)seat->ports[k].first << 16 | seat->ports[k].count);
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
    for (size_t i = 0; i < core->nodes.count; i++)
        mix_node(&hash, &core->nodes.items[i]);
    uint64_t *ids = mem_alloc(mem_size(core->jobs.count + 1, sizeof *ids));
    size_t count = 0;
    for (size_t i = 0; i < core->jobs.count; i++)
        if (core->jobs.items[i].id.v)
            ids[count++] = (uint64_t)core->jobs.items[i].id.v << 32 | i;
    qsort(ids, count, sizeof *ids, compare_ids);
    for (size_t i = 0; i < count; i++)
        mix_job(&hash, core, (uint32_t)ids[i]);
    mem_free(ids);
    return hash;
}
