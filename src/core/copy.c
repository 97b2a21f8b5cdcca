#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/config.h"
#include "core/preempt.h"
#include "core/state.h"
#include "core/tasks.h"

struct placer *core_placer(const struct core *core)
{
    return core->placer;
}

/* --- copies --- */

static void items_copy(void *to, const void *from, size_t size)
{
    if (size)
        memcpy(to, from, size);
}

#define LIST_COPY(to, from, list)                                                                  \
    do {                                                                                           \
        ARRAY_RESERVE(&(to)->list, (from)->list.count);                                            \
        items_copy((to)->list.items, (from)->list.items,                                           \
                   (from)->list.count * sizeof *(to)->list.items);                                 \
        (to)->list.count = (from)->list.count;                                                     \
    } while (0)

static void *block_copy(const void *bytes, size_t size)
{
    if (!bytes)
        return NULL;
    void *copy = mem_alloc(size);
    memcpy(copy, bytes, size);
    return copy;
}

static void jobs_copy(struct core *to, const struct core *from)
{
    LIST_COPY(to, from, names);
    for (size_t i = 0; i < to->names.count; i++)
        if (to->names.items[i].text) {
            to->names.items[i].text = mem_copy(from->names.items[i].text);
            text_map_set(&to->job_names, text_of(to->names.items[i].text), (uint32_t)i);
        }
    LIST_COPY(to, from, jobs);
    for (size_t i = 0; i < to->jobs.count; i++) {
        const struct core_job *old = &from->jobs.items[i];
        struct core_job *new = &to->jobs.items[i];
        if (!old->id.v)
            continue;
        new->plan = plan_copy(old->plan);
        new->full_name = to->names.items[old->name].text;
        job_clone(&new->life, &old->life);
        new->holds = NULL;
        new->hold_count = 0;
        for (uint32_t j = 0; j < old->hold_count; j++)
            hold_add(to, new, old->holds[j].group, old->holds[j].slots, old->holds[j].slot_count);
        id_map_set(&to->job_ids, new->id.v, (uint32_t)i);
    }
}

/* Labels point into the plan of the job. */
static void task_ports_copy(const struct core *to, struct core_task *new,
                            const struct core_task *old)
{
    size_t size = old->port_count * sizeof *old->ports + old->gpu_count * sizeof *old->gpus;
    const struct plan_role *role = &to->jobs.items[old->job].plan->roles[old->ref.role];
    new->ports = block_copy(old->ports, size);
    new->gpus = new->ports ? (uint16_t *)(new->ports + old->port_count) : NULL;
    for (size_t i = 0; i < old->port_count; i++)
        for (size_t j = 0; j < role->port_count; j++)
            if (strcmp(role->ports[j].label, old->ports[i].label) == 0)
                new->ports[i].label = role->ports[j].label;
}

static void tasks_copy(struct core *to, const struct core *from)
{
    LIST_COPY(to, from, tasks);
    for (size_t i = 0; i < to->tasks.count; i++) {
        const struct core_task *old = &from->tasks.items[i];
        if (old->job == NONE)
            continue;
        task_ports_copy(to, &to->tasks.items[i], old);
        core_task_index(to, (uint32_t)i);
    }
    LIST_COPY(to, from, groups);
    for (size_t i = 0; i < to->groups.count; i++) {
        const struct core_group *old = &from->groups.items[i];
        struct core_group *new = &to->groups.items[i];
        if (!old->name)
            continue;
        new->name = mem_copy(old->name);
        new->tasks = block_copy(old->tasks, old->slot_count * sizeof *old->tasks);
        text_map_set(&to->group_names, text_of(new->name), (uint32_t)i);
    }
}

static void nodes_copy(struct core *to, const struct core *from)
{
    LIST_COPY(to, from, nodes);
    for (size_t i = 0; i < to->nodes.count; i++) {
        const struct core_node *old = &from->nodes.items[i];
        struct core_node *new = &to->nodes.items[i];
        new->facts = (struct node_facts){0};
        node_facts_copy(&new->facts, &old->facts);
        new->cordon = mem_copy(old->cordon);
        new->refusal = mem_copy(old->refusal);
        ports_copy(&new->ports, &old->ports);
        text_map_set(&to->node_names, text_of(new->facts.name), (uint32_t)i);
    }
}

static void reservations_copy(struct core *to, const struct core *from)
{
    LIST_COPY(to, from, reservations);
    for (size_t i = 0; i < to->reservations.count; i++)
        to->reservations.items[i].shadow =
            from->reservations.items[i].shadow->ops->copy(from->reservations.items[i].shadow);
}

struct core *core_copy(const struct core *from)
{
    assert(!from->output);
    struct core *to = mem_zero(1, sizeof *to);
    int code = config_copy(&to->config, &from->config, NULL);
    assert(!code);
    (void)code;
    to->now_ms = from->now_ms;
    to->random = from->random;
    to->last_job = from->last_job;
    to->last_attempt = from->last_attempt;
    to->step = from->step;
    to->wake_ms = from->wake_ms;
    to->is_unblocked = from->is_unblocked;
    to->pass = from->pass;
    to->again_ms = from->again_ms;
    to->starves_ms = from->starves_ms;
    to->prepare_ms = from->prepare_ms;
    to->events = from->events;
    to->gpus_total = from->gpus_total;
    to->gpus_used = from->gpus_used;
    to->jobs_live = from->jobs_live;
    to->tasks_live = from->tasks_live;
    to->capacity = from->capacity;
    to->placer = from->placer->ops->copy(from->placer);
    to->queue = queue_copy(from->queue);
    timers_copy(&to->timers, &from->timers);
    timers_copy(&to->name_timers, &from->name_timers);
    jobs_copy(to, from);
    nodes_copy(to, from);
    tasks_copy(to, from);
    reservations_copy(to, from);
    LIST_COPY(to, from, free_jobs);
    LIST_COPY(to, from, free_tasks);
    LIST_COPY(to, from, free_groups);
    LIST_COPY(to, from, free_names);
    LIST_COPY(to, from, blamed);
    arena_init(&to->scratch);
    to->actions.arena = &to->scratch;
    return to;
}
