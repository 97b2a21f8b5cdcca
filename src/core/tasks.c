#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/capacity.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/records.h"
#include "core/renew.h"
#include "core/reserve.h"
#include "core/shadow.h"
#include "core/state.h"
#include "core/tasks.h"

enum { ROLE_BITS = 8, INDEX_BITS = 14 };
_Static_assert(JOB_ROLES_MAX <= 1 << ROLE_BITS && JOB_INSTANCES_MAX <= 1 << INDEX_BITS, "fits");

static uint64_t core_task_key(uint64_t table, struct task_ref ref)
{
    assert(table != 0);
    return (table << ROLE_BITS | ref.role) << INDEX_BITS | ref.index;
}

static struct core_task *task_in(struct core *core, uint64_t table, struct task_ref ref)
{
    uint32_t at = table ? id_map_get(&core->task_keys, core_task_key(table, ref)) : MAP_NONE;
    return at == MAP_NONE ? NULL : &core->tasks.items[at];
}

struct core_task *core_task_find(struct core *core, uint32_t slot, struct task_ref ref)
{
    return task_in(core, core_job_at(core, slot)->table, ref);
}

bool core_task_is_old(const struct core *core, const struct core_task *task)
{
    assert(task->job != NONE);
    return core_job_at(core, task->job)->table != task->table;
}

struct core_task *core_task_of_attempt(struct core *core, struct attempt_id attempt)
{
    uint32_t at = attempt.v ? id_map_get(&core->attempts, attempt.v) : MAP_NONE;
    return at == MAP_NONE || core_task_is_old(core, &core->tasks.items[at])
               ? NULL
               : &core->tasks.items[at];
}

struct core_task *core_task_get(struct core *core, uint32_t slot, struct task_ref ref)
{
    struct core_job *job = core_job_at(core, slot);
    if (!job->table)
        job->table = ++core->last_table;
    struct core_task *task = task_in(core, job->table, ref);
    if (task)
        return task;
    uint32_t at;
    if (core->free_tasks.count) {
        at = core->free_tasks.items[--core->free_tasks.count];
    } else {
        at = (uint32_t)core->tasks.count;
        ARRAY_ADD(&core->tasks);
    }
    assert(core->tasks.items && at < core->tasks.count);
    task = &core->tasks.items[at];
    *task = (struct core_task){
        .job = slot,
        .table = job->table,
        .ref = ref,
        .job_attempt = job->life.attempt,
        .node = NONE,
        .group = NONE,
        .node_next = NONE,
        .node_previous = NONE,
    };
    id_map_set(&core->task_keys, core_task_key(job->table, ref), at);
    return task;
}

void core_task_attempt(struct core *core, struct core_task *task, struct attempt_id attempt)
{
    assert(task->job != NONE);
    if (task->attempt.v)
        id_map_remove(&core->attempts, task->attempt.v);
    task->attempt = attempt;
    if (attempt.v)
        id_map_set(&core->attempts, attempt.v, core_task_index(core, task));
}

void core_task_address(struct core_task *task, const char *address)
{
    assert(task->job != NONE);
    mem_free(task->address);
    task->address = address ? mem_copy(address) : NULL;
}

/* GPUs and ports in one block. */
void core_task_set(struct core *core, struct core_task *task, const struct placement_slot *slot,
                   const struct port_range *ports, size_t port_count)
{
    (void)core;
    assert(!task->is_taken);
    mem_free(task->ports);
    core_task_address(task, NULL);
    size_t port_size = port_count * sizeof *ports, gpu_size = slot->gpu_count * sizeof *slot->gpus;
    task->node = slot->node.v;
    task->gpu_count = slot->gpu_count;
    task->cell_level = slot->cell_level;
    task->port_count = (uint16_t)port_count;
    task->ports = NULL;
    task->gpus = NULL;
    if (!port_size && !gpu_size)
        return;
    task->ports = mem_alloc(port_size + gpu_size);
    task->gpus = (uint16_t *)(task->ports + port_count);
    if (port_size)
        memcpy(task->ports, ports, port_size);
    if (gpu_size)
        memcpy(task->gpus, slot->gpus, gpu_size);
}

bool core_task_has_gpu(const struct core_task *task, uint16_t gpu)
{
    assert(task->job != NONE);
    for (size_t i = 0; i < task->gpu_count; i++)
        if (task->gpus[i] == gpu)
            return true;
    return false;
}

void core_task_take(struct core *core, struct core_task *task)
{
    assert(!task->is_taken && task->node < core_node_count(core));
    struct core_node *node = core_node_at(core, task->node);
    uint32_t at = core_task_index(core, task);
    task->is_taken = true;
    task->node_previous = NONE;
    task->node_next = node->first_task;
    if (node->first_task != NONE)
        core->tasks.items[node->first_task].node_previous = at;
    node->first_task = at;
    node->tasks_change = ++core->last_tasks_change;
    node->task_count++;
    node->gpus_used += task->gpu_count;
    node->cpus_used += core_job_at(core, task->job)->plan->roles[task->ref.role].cpu;
    node->memory_used_mib += core_job_at(core, task->job)->plan->roles[task->ref.role].memory_mib;
    capacity_update(core, task->node);
    core->gpus_used += task->gpu_count;
    core->tasks_live++;
    for (size_t i = 0; i < task->port_count; i++)
        ports_take(&node->ports, task->ports[i].first, task->ports[i].count);
}

static void core_group_drop(struct core *core, uint32_t at)
{
    assert(at < core->groups.count && core->groups.items[at].taken_count == 0);
    struct core_group *group = &core->groups.items[at];
    placer_release_group(core, group->name);
    renewal_release_group(core, group->name);
    reserve_release_group(core, group->name);
    capacity_group(core, group, false);
    core->groups_given_up -= group->given_up > 0;
    text_map_remove(&core->group_names, text_of(group->name));
    mem_free(group->name);
    mem_free(group->tasks);
    *group = (struct core_group){0};
    *ARRAY_ADD(&core->free_groups) = at;
}

void core_group_give_up(struct core *core, const char *name, uint32_t first_slot)
{
    struct core_group *group = core_group_find(core, name);
    assert(group && first_slot > 0 && first_slot < group->slot_count && !group->given_up);
    assert(group->taken_count >= group->slot_count - first_slot);
    group->given_up = first_slot;
    core->groups_given_up++;
    group->taken_count -= group->slot_count - first_slot;
    if (group->taken_count == 0)
        core_group_drop(core, core_group_index(core, group));
}

void core_task_release(struct core *core, struct core_task *task)
{
    if (!task->is_taken)
        return;
    struct core_node *node = core_node_at(core, task->node);
    task->is_taken = false;
    if (task->node_previous == NONE)
        node->first_task = task->node_next;
    else
        core->tasks.items[task->node_previous].node_next = task->node_next;
    if (task->node_next != NONE)
        core->tasks.items[task->node_next].node_previous = task->node_previous;
    node->tasks_change = ++core->last_tasks_change;
    node->task_count--;
    node->gpus_used -= task->gpu_count;
    node->cpus_used -= core_job_at(core, task->job)->plan->roles[task->ref.role].cpu;
    node->memory_used_mib -= core_job_at(core, task->job)->plan->roles[task->ref.role].memory_mib;
    capacity_update(core, task->node);
    core->gpus_used -= task->gpu_count;
    core->tasks_live--;
    for (size_t i = 0; i < task->port_count; i++)
        ports_give(&node->ports, task->ports[i].first, task->ports[i].count);
    core->is_unblocked = true;

    struct core_group *group = &core->groups.items[task->group];
    placer_release_slot(core, group->name, task->group_slot);
    renewal_release_slot(core, group->name, task->group_slot);
    reserve_release_slot(core, group->name, task->group_slot);
    assert(group->taken_count > 0);
    if (--group->taken_count == 0)
        core_group_drop(core, task->group);
    task->group = NONE;
}

void core_task_keep(struct core *core, struct core_task *task, bool is_kept)
{
    struct core_job *job = core_job_at(core, task->job);
    assert(!core_task_is_old(core, task) && !task->is_taken);
    job->kept += (uint32_t)is_kept - (uint32_t)task->is_kept;
    task->is_kept = is_kept;
}

void core_task_drop(struct core *core, struct core_task *task)
{
    assert(!task->is_taken && !task->is_kept);
    core_task_attempt(core, task, (struct attempt_id){0});
    id_map_remove(&core->task_keys, core_task_key(task->table, task->ref));
    mem_free(task->ports);
    mem_free(task->address);
    *task = (struct core_task){.job = NONE, .node = NONE, .group = NONE};
    *ARRAY_ADD(&core->free_tasks) = core_task_index(core, task);
}

/* Its row is gone, or is of an attempt before the job's: nothing is written. */
static void old_task_forget(struct core *core, struct old_table *table, struct core_task *task)
{
    assert(table->kept > 0 && core->old_kept > 0);
    command_of_task(core, COMMAND_FORGET, table->job, task);
    task->is_kept = false;
    table->kept--;
    core->old_kept--;
    core->ends_left -= core->ends_left > 0;
}

/* As many as the step may still drop; false: not all. */
static bool old_table_drop(struct core *core, struct old_table *table)
{
    while (table->next.role < table->role_count) {
        struct core_task *task = task_in(core, table->number, table->next);
        if (!task) { /* tasks are numbered without holes */
            table->next = (struct task_ref){table->next.role + 1, 0};
            continue;
        }
        if (!core->drops_left || (task->is_kept && !core->ends_left))
            return false;
        if (task->is_kept)
            old_task_forget(core, table, task);
        core->drops_left--;
        core_task_drop(core, task);
        table->next.index++;
    }
    return true;
}

void core_tasks_drop(struct core *core, struct core_job *job)
{
    assert(job->id.v);
    struct old_table table = {
        .number = job->table,
        .job = job->id,
        .role_count = job->plan->role_count,
        .kept = job->kept,
    };
    job->table = 0;
    job->kept = 0;
    core->old_kept += table.kept;
    if (table.number && !old_table_drop(core, &table))
        *ARRAY_ADD(&core->old_tables) = table;
}

bool core_old_tables_drop(struct core *core)
{
    size_t done = 0;
    if (!core->ends_left) /* whatever else there is to do: it comes to its end */
        core->ends_left = 1;
    while (done < core->old_tables.count && old_table_drop(core, &core->old_tables.items[done]))
        done++;
    core->old_tables.count -= done;
    if (done && core->old_tables.count)
        memmove(core->old_tables.items, core->old_tables.items + done,
                core->old_tables.count * sizeof *core->old_tables.items);
    return core->old_tables.count == 0;
}

bool core_kept_is_counted(const struct core *core)
{
    uint32_t kept = 0, of_tables = 0, of_jobs = 0;
    for (size_t i = 0; i < core->tasks.count; i++)
        kept += core->tasks.items[i].is_kept;
    for (size_t i = 0; i < core->old_tables.count; i++)
        of_tables += core->old_tables.items[i].kept;
    for (uint32_t i = 0; i < core_job_slots(core); i++)
        of_jobs += core_job_at(core, i)->kept;
    return of_tables == core->old_kept && kept == of_tables + of_jobs;
}

struct core_group *core_group_find(struct core *core, const char *name)
{
    uint32_t at = text_map_get(&core->group_names, text_of(name));
    return at == MAP_NONE ? NULL : &core->groups.items[at];
}

uint32_t core_group_add(struct core *core, struct core_job *job, const char *name,
                        uint16_t first_role, bool is_task, uint32_t slot_count)
{
    assert(slot_count > 0 && !core_group_find(core, name));
    uint32_t at;
    if (core->free_groups.count) {
        at = core->free_groups.items[--core->free_groups.count];
    } else {
        at = (uint32_t)core->groups.count;
        ARRAY_ADD(&core->groups);
    }
    struct core_group *group = &core->groups.items[at];
    *group = (struct core_group){
        .name = mem_copy(name),
        .job = core_job_slot(core, job),
        .first_role = first_role,
        .is_task = is_task,
        .taken_count = slot_count,
        .tasks = mem_alloc(mem_size(slot_count, sizeof *group->tasks)),
        .slot_count = slot_count,
        .sequence = core->last_attempt + 1,
        .number = ++core->last_group,
        .placed_ms = core->now_ms,
    };
    for (uint32_t i = 0; i < slot_count; i++)
        group->tasks[i] = NONE;
    text_map_set(&core->group_names, text_of(group->name), at);
    capacity_group(core, group, true);
    return at;
}

bool core_attempt_is_live(const struct core *core, struct attempt_id attempt)
{
    uint32_t at = attempt.v ? id_map_get(&core->attempts, attempt.v) : MAP_NONE;
    if (at == MAP_NONE)
        return false;
    const struct core_task *task = core_task_at(core, at);
    if (core_task_is_old(core, task))
        return false;
    const struct job_task *life = job_task_find(&core_job_at(core, task->job)->life, task->ref);
    return task->is_taken || (life && (life->is_held || life->is_let_go));
}

const char *core_attempt_node(const struct core *core, struct attempt_id attempt)
{
    if (!core_attempt_is_live(core, attempt))
        return NULL;
    const struct core_task *task = core_task_at(core, id_map_get(&core->attempts, attempt.v));
    return core_node_at(core, task->node)->facts.name;
}

uint16_t core_attempt_roles(struct core *core, struct job_id id, uint32_t attempt)
{
    const struct core_job *job = core_job_find(core, id);
    const bool is_under_way =
        job && job->life.attempt == attempt && job->life.state < LIFE_DELETION_PENDING;
    return is_under_way ? job->plan->role_count : 0;
}

void core_tasks_show(struct core *core, struct job_id id,
                     void (*see)(void *context, const struct task_record *row), void *context)
{
    const struct core_job *job = core_job_find(core, id);
    assert(job && see);
    /* cleared once: it is large, and tasks are many */
    struct task_record row = {.job = id, .job_attempt = job->life.attempt};
    for (uint16_t i = 0; i < job->life.role_count; i++) {
        row.role_name = job->plan->roles[i].name;
        for (size_t j = 0; j < job->life.roles[i].count; j++) {
            const struct job_task *life = &job->life.roles[i].items[j];
            row.task = (struct task_ref){i, (uint16_t)j};
            row.state = life->state;
            row.is_deletion_pending = life->is_deletion_pending;
            row.attempt = life->attempt;
            row.completion.code = life->completion ? life->completion->code : 0;
            see(context, &row);
        }
    }
}

/* --- all of them --- */

/* Labels point into the plan of the job. */
static void task_ports_copy(const struct core *to, struct core_task *new,
                            const struct core_task *old)
{
    assert(new != old && old->job != NONE);
    size_t size = old->port_count * sizeof *old->ports + old->gpu_count * sizeof *old->gpus;
    const struct plan_role *role = &core_job_at(to, old->job)->plan->roles[old->ref.role];
    new->ports = mem_copy_array(old->ports, 1, size);
    new->gpus = new->ports ? (uint16_t *)(new->ports + old->port_count) : NULL;
    assert(new->ports || old->port_count == 0);
    for (size_t i = 0; i < old->port_count; i++)
        for (size_t j = 0; j < role->port_count; j++)
            if (strcmp(role->ports[j].label, old->ports[i].label) == 0)
                new->ports[i].label = role->ports[j].label;
}

static void groups_copy(struct core *to, const struct core *from)
{
    ARRAY_COPY(&to->groups, &from->groups);
    ARRAY_COPY(&to->free_groups, &from->free_groups);
    for (uint32_t i = 0; i < core_group_slots(to); i++) {
        const struct core_group *old = core_group_at(from, i);
        struct core_group *new = core_group_at(to, i);
        if (!old->name)
            continue;
        new->name = mem_copy(old->name);
        new->tasks = mem_copy_array(old->tasks, old->slot_count, sizeof *old->tasks);
        text_map_set(&to->group_names, text_of(new->name), i);
    }
}

void core_tasks_copy(struct core *to, const struct core *from)
{
    assert(!to->tasks.count && !to->groups.count);
    ARRAY_COPY(&to->tasks, &from->tasks);
    ARRAY_COPY(&to->free_tasks, &from->free_tasks);
    ARRAY_COPY(&to->old_tables, &from->old_tables);
    to->old_kept = from->old_kept;
    for (uint32_t i = 0; i < to->tasks.count; i++) {
        const struct core_task *old = core_task_at(from, i);
        if (old->job == NONE)
            continue;
        struct core_task *new = core_task_at(to, i);
        if (core_task_is_old(from, old)) { /* its plan may be gone, and nobody asks for them */
            new->ports = NULL;
            new->gpus = NULL;
            new->address = NULL;
            new->port_count = new->gpu_count = 0;
        } else {
            task_ports_copy(to, new, old);
            new->address = old->address ? mem_copy(old->address) : NULL;
        }
        id_map_set(&to->task_keys, core_task_key(old->table, old->ref), i);
        if (old->attempt.v)
            id_map_set(&to->attempts, old->attempt.v, i);
    }
    groups_copy(to, from);
}

void core_tasks_release(struct core *core)
{
    for (size_t i = 0; i < core->tasks.count; i++) {
        mem_free(core->tasks.items[i].ports);
        mem_free(core->tasks.items[i].address);
    }
    for (size_t i = 0; i < core->groups.count; i++) {
        mem_free(core->groups.items[i].name);
        mem_free(core->groups.items[i].tasks);
    }
    ARRAY_FREE(&core->tasks);
    ARRAY_FREE(&core->groups);
    ARRAY_FREE(&core->free_tasks);
    ARRAY_FREE(&core->free_groups);
    ARRAY_FREE(&core->old_tables);
    id_map_release(&core->task_keys);
    id_map_release(&core->attempts);
    text_map_release(&core->group_names);
}
