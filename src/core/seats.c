#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/capacity.h"
#include "core/jobs.h"
#include "core/reserve.h"
#include "core/seats.h"
#include "core/state.h"

static uint64_t seat_key(uint32_t job, struct task_ref task)
{
    return (uint64_t)job << 32 | (uint64_t)task.role << 16 | task.index;
}

struct seat *seat_find(struct core *core, uint32_t job, struct task_ref task)
{
    uint32_t at = id_map_get(&core->seat_keys, seat_key(job, task));
    return at == MAP_NONE ? NULL : &core->seats.items[at];
}

struct seat *seat_of_attempt(struct core *core, struct attempt_id attempt)
{
    uint32_t at = attempt.v ? id_map_get(&core->attempts, attempt.v) : MAP_NONE;
    return at == MAP_NONE ? NULL : &core->seats.items[at];
}

struct seat *seat_get(struct core *core, uint32_t job, struct task_ref task)
{
    struct seat *seat = seat_find(core, job, task);
    if (seat)
        return seat;
    uint32_t at;
    if (core->free_seats.count) {
        at = core->free_seats.items[--core->free_seats.count];
    } else {
        at = (uint32_t)core->seats.count;
        ARRAY_ADD(&core->seats);
    }
    assert(core->seats.items && at < core->seats.count);
    seat = &core->seats.items[at];
    *seat = (struct seat){
        .job = job,
        .task = task,
        .job_attempt = core->jobs.items[job].job.attempt,
        .node = NONE,
        .group = NONE,
        .node_next = NONE,
        .node_previous = NONE,
    };
    id_map_set(&core->seat_keys, seat_key(job, task), at);
    return seat;
}

/* Into the maps of a copy. */
void seat_index(struct core *core, uint32_t at)
{
    const struct seat *seat = &core->seats.items[at];
    id_map_set(&core->seat_keys, seat_key(seat->job, seat->task), at);
    if (seat->attempt.v)
        id_map_set(&core->attempts, seat->attempt.v, at);
}

void seat_attempt(struct core *core, struct seat *seat, struct attempt_id attempt)
{
    if (seat->attempt.v)
        id_map_remove(&core->attempts, seat->attempt.v);
    seat->attempt = attempt;
    if (attempt.v)
        id_map_set(&core->attempts, attempt.v, (uint32_t)(seat - core->seats.items));
}

/* GPUs and ports in one block. */
void seat_set(struct core *core, struct seat *seat, const struct placement_slot *slot,
              const struct port_range *ports, size_t port_count)
{
    (void)core;
    assert(!seat->is_taken);
    mem_free(seat->ports);
    size_t port_size = port_count * sizeof *ports, gpu_size = slot->gpu_count * sizeof *slot->gpus;
    seat->node = slot->node.v;
    seat->gpu_count = slot->gpu_count;
    seat->cell_level = slot->cell_level;
    seat->port_count = (uint16_t)port_count;
    seat->ports = NULL;
    seat->gpus = NULL;
    if (!port_size && !gpu_size)
        return;
    seat->ports = mem_alloc(port_size + gpu_size);
    seat->gpus = (uint16_t *)(seat->ports + port_count);
    if (port_size)
        memcpy(seat->ports, ports, port_size);
    if (gpu_size)
        memcpy(seat->gpus, slot->gpus, gpu_size);
}

bool seat_has_gpu(const struct seat *seat, uint16_t gpu)
{
    for (size_t i = 0; i < seat->gpu_count; i++)
        if (seat->gpus[i] == gpu)
            return true;
    return false;
}

void seat_take(struct core *core, struct seat *seat)
{
    assert(!seat->is_taken && seat->node < core->nodes.count);
    struct node *node = &core->nodes.items[seat->node];
    uint32_t at = (uint32_t)(seat - core->seats.items);
    seat->is_taken = true;
    seat->node_previous = NONE;
    seat->node_next = node->first_seat;
    if (node->first_seat != NONE)
        core->seats.items[node->first_seat].node_previous = at;
    node->first_seat = at;
    node->seat_count++;
    node->gpus_used += seat->gpu_count;
    node->cpus_used += core->jobs.items[seat->job].plan->roles[seat->task.role].cpu;
    node->memory_used_mib += core->jobs.items[seat->job].plan->roles[seat->task.role].memory_mib;
    capacity_update(core, seat->node);
    core->gpus_used += seat->gpu_count;
    core->tasks_live++;
    for (size_t i = 0; i < seat->port_count; i++)
        ports_take(&node->ports, seat->ports[i].first, seat->ports[i].count);
}

static void core_group_drop(struct core *core, uint32_t at)
{
    struct group *group = &core->groups.items[at];
    core->placer->ops->release_group(core->placer, group->name);
    reserve_release_group(core, group->name);
    capacity_group(core, group, false);
    text_map_remove(&core->group_names, text_of(group->name));
    mem_free(group->name);
    mem_free(group->seats);
    *group = (struct group){0};
    *ARRAY_ADD(&core->free_groups) = at;
}

void seat_release(struct core *core, struct seat *seat)
{
    if (!seat->is_taken)
        return;
    struct node *node = &core->nodes.items[seat->node];
    seat->is_taken = false;
    if (seat->node_previous == NONE)
        node->first_seat = seat->node_next;
    else
        core->seats.items[seat->node_previous].node_next = seat->node_next;
    if (seat->node_next != NONE)
        core->seats.items[seat->node_next].node_previous = seat->node_previous;
    node->seat_count--;
    node->gpus_used -= seat->gpu_count;
    node->cpus_used -= core->jobs.items[seat->job].plan->roles[seat->task.role].cpu;
    node->memory_used_mib -= core->jobs.items[seat->job].plan->roles[seat->task.role].memory_mib;
    capacity_update(core, seat->node);
    core->gpus_used -= seat->gpu_count;
    core->tasks_live--;
    for (size_t i = 0; i < seat->port_count; i++)
        ports_give(&node->ports, seat->ports[i].first, seat->ports[i].count);
    core->is_unblocked = true;

    struct group *group = &core->groups.items[seat->group];
    core->placer->ops->release_slot(core->placer, group->name, seat->group_slot);
    reserve_release_slot(core, group->name, seat->group_slot);
    assert(group->live > 0);
    if (--group->live == 0)
        core_group_drop(core, seat->group);
    seat->group = NONE;
}

void seat_drop(struct core *core, struct seat *seat)
{
    assert(!seat->is_taken);
    seat_attempt(core, seat, (struct attempt_id){0});
    id_map_remove(&core->seat_keys, seat_key(seat->job, seat->task));
    mem_free(seat->ports);
    *seat = (struct seat){.job = NONE, .node = NONE, .group = NONE};
    *ARRAY_ADD(&core->free_seats) = (uint32_t)(seat - core->seats.items);
}

void seats_drop(struct core *core, struct live *live)
{
    uint32_t job = live_slot(core, live);
    for (uint16_t role = 0; role < live->plan->role_count; role++)
        for (uint32_t i = 0; i < JOB_INSTANCES_MAX; i++) {
            struct seat *seat = seat_find(core, job, (struct task_ref){role, (uint16_t)i});
            if (!seat)
                break; /* tasks are numbered without holes */
            seat_drop(core, seat);
        }
}

struct group *core_group_find(struct core *core, const char *name)
{
    uint32_t at = text_map_get(&core->group_names, text_of(name));
    return at == MAP_NONE ? NULL : &core->groups.items[at];
}

uint32_t core_group_add(struct core *core, struct live *live, const char *name, uint16_t first_role,
                        bool is_task, uint32_t slot_count)
{
    uint32_t at;
    if (core->free_groups.count) {
        at = core->free_groups.items[--core->free_groups.count];
    } else {
        at = (uint32_t)core->groups.count;
        ARRAY_ADD(&core->groups);
    }
    struct group *group = &core->groups.items[at];
    *group = (struct group){
        .name = mem_copy(name),
        .job = live_slot(core, live),
        .first_role = first_role,
        .is_task = is_task,
        .live = slot_count,
        .seats = mem_alloc(mem_size(slot_count, sizeof *group->seats)),
        .slot_count = slot_count,
        .sequence = core->last_attempt + 1,
        .placed_ms = core->now_ms,
    };
    for (uint32_t i = 0; i < slot_count; i++)
        group->seats[i] = NONE;
    text_map_set(&core->group_names, text_of(group->name), at);
    capacity_group(core, group, true);
    return at;
}

/* In the order in which they were placed; parts of one gang by their roles. */
struct group_key {
    uint64_t sequence;
    uint32_t first_role, group;
};

static int group_key_compare(const void *a, const void *b)
{
    const struct group_key *x = a, *y = b;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    if (x->first_role != y->first_role)
        return x->first_role < y->first_role ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

void groups_sort(const struct core *core, uint32_t *groups, size_t count)
{
    struct group_key *keys = mem_alloc(mem_size(count + 1, sizeof *keys));
    for (size_t i = 0; i < count; i++) {
        const struct group *group = &core->groups.items[groups[i]];
        keys[i] = (struct group_key){group->sequence, group->first_role, groups[i]};
    }
    qsort(keys, count, sizeof *keys, group_key_compare);
    for (size_t i = 0; i < count; i++)
        groups[i] = keys[i].group;
    mem_free(keys);
}
