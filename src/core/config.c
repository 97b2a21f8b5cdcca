#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/config.h"
#include "core/gang_start.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/request.h"
#include "core/reserve.h"
#include "core/schedule.h"
#include "core/state.h"
#include "core/tasks.h"
#include "core/waiting.h"

void core_config_default(struct core_config *config)
{
    *config = (struct core_config){
        .port_first = 15000,
        .port_last = 40000,
        .backoff_min_s = 60,
        .backoff_max_s = 900,
        .retry_pause_first_s = 1,
        .retry_pause_max_s = 300,
        .retry_calm_s = 600,
        .kill_grace_ms = 10000,
        .preemption_grace_ms = 30000,
        .starvation_after_s = 600,
        .finished_keep_s = 60,
        .debug_hold_s = 604800,
        .blame_half_life_s = 3600,
        .blame_avoid = 3,
        .blame_cordon = 10,
        .placement_document = TEXT(""),
        .policy = "hived",
        .order = "priority",
    };
}

static int config_check(const struct core_config *config, struct err *err)
{
    if (config->port_first < 1 || config->port_first > config->port_last)
        return err_fail(err, ERR_INVALID, "ports", "must be a range within 1…65535, got %u…%u",
                        config->port_first, config->port_last);
    if (config->backoff_min_s > config->backoff_max_s)
        return err_fail(err, ERR_INVALID, "backoff", "must be a range, got %u…%u s",
                        config->backoff_min_s, config->backoff_max_s);
    if (config->retry_pause_first_s > config->retry_pause_max_s)
        return err_fail(err, ERR_INVALID, "retryPause", "must be a range, got %u…%u s",
                        config->retry_pause_first_s, config->retry_pause_max_s);
    if (!(config->blame_avoid > 0) || !(config->blame_avoid <= config->blame_cordon))
        return err_fail(err, ERR_INVALID, "blame", "avoid must be positive and at most cordon");
    if (!config->policy)
        return err_fail(err, ERR_INVALID, "policy", "is missing");
    if (!config->order || !queue_order_named(config->order))
        return err_fail(err, ERR_INVALID, "order", "there is no order %s",
                        config->order ? config->order : "");
    return 0;
}

int config_copy(struct core_config *to, const struct core_config *from, struct err *err)
{
    int code = config_check(from, err);
    if (code)
        return code;
    *to = *from;
    to->policy = mem_copy(from->policy);
    to->order = queue_order_named(from->order)->name;
    char *document = mem_alloc(from->placement_document.length + 1);
    if (from->placement_document.length)
        memcpy(document, from->placement_document.at, from->placement_document.length);
    document[from->placement_document.length] = '\0';
    to->placement_document.at = document;
    return 0;
}

void config_release(struct core_config *config)
{
    mem_free((char *)(uintptr_t)config->policy);
    mem_free((char *)(uintptr_t)config->placement_document.at);
    *config = (struct core_config){0};
}

/* --- a new placer is told what runs --- */

static void group_tell(struct core *core, struct placer *placer, struct core_group *group)
{
    struct core_job *job = core_job_at(core, group->job);
    struct request request;
    if (group->is_task) {
        assert(group->slot_count == 1);
        const struct core_task *task = core_task_at(core, group->tasks[0]);
        request_of_task(core, job, task->ref, 0, &core->scratch, &request);
    } else {
        request_of_part(core, job, group->first_role, &core->scratch, &request);
    }
    request.placement.group = group->name;
    assert(request.task_count == group->slot_count);
    struct placement_slot *slots =
        ARENA_ARRAY(&core->scratch, struct placement_slot, group->slot_count);
    for (uint32_t i = 0; i < group->slot_count; i++) {
        const struct core_task *task =
            group->tasks[i] == NONE ? NULL : core_task_at(core, group->tasks[i]);
        slots[i].node = NODE_NONE;
        if (!task || !task->is_taken)
            continue; /* this task has ended */
        assert(core_group_at(core, task->group) == group);
        slots[i].node.v = task->node;
        slots[i].cell_level = task->cell_level;
        slots[i].gpu_count = task->gpu_count;
        slots[i].gpus = task->gpus;
    }
    struct err err = {0};
    group->is_refused =
        placer->ops->commit(placer, &request.placement, slots, group->slot_count, true, &err) != 0;
    if (group->is_refused)
        core_trace(core, "group %s: not known to the placer: %s", group->name, err.text);
}

/* The devices of all, before the first group is told: see placement.h. */
static void devices_tell(struct core *core, struct placer *placer)
{
    for (uint32_t i = 0; placer->ops->expect && i < core_group_slots(core); i++) {
        const struct core_group *group = core_group_at(core, i);
        for (uint32_t k = 0; group->name && k < group->slot_count; k++) {
            const struct core_task *task =
                group->tasks[k] == NONE ? NULL : core_task_at(core, group->tasks[k]);
            if (task && task->is_taken && task->gpu_count)
                placer->ops->expect(placer, (struct node_id){task->node}, task->gpus,
                                    task->gpu_count);
        }
    }
}

enum { GROUP_RANKS = 3 };

/* Tasks with GPUs have known devices, others take any cells of the node: they come last, so that
 * they do not take what is known to be somebody's. */
static int group_rank(const struct core *core, const struct core_group *group)
{
    assert(group->name);
    uint32_t with = 0, without = 0;
    for (uint32_t i = 0; i < group->slot_count; i++) {
        if (group->tasks[i] == NONE)
            continue;
        if (core_task_at(core, group->tasks[i])->gpu_count)
            with++;
        else
            without++;
    }
    return !without ? 0 : with ? 1 : 2;
}

void placer_fill(struct core *core, struct placer *placer)
{
    for (uint32_t i = 0; i < core_node_count(core); i++)
        node_tell_placer(core, placer, (uint32_t)i);
    /* in the order in which they were placed */
    uint32_t *order = mem_alloc(mem_size(core_group_slots(core) + 1, sizeof *order));
    size_t count = 0;
    for (uint32_t i = 0; i < core_group_slots(core); i++)
        if (core_group_at(core, i)->name)
            order[count++] = (uint32_t)i;
    groups_sort(core, order, count);
    devices_tell(core, placer);
    for (int rank = 0; rank < GROUP_RANKS; rank++)
        for (size_t i = 0; i < count; i++)
            if (group_rank(core, core_group_at(core, order[i])) == rank)
                group_tell(core, placer, core_group_at(core, order[i]));
    mem_free(order);
}

/* Waiting jobs whose preemption or reservation was the old placer's business start again. */
static void waiting_forget(struct core *core)
{
    reserve_drop_all(core);
    holdovers_forget(core);
    for (uint32_t i = 0; i < core_job_slots(core); i++) {
        struct core_job *job = core_job_at(core, i);
        if (job->id.v)
            placing_forget(core, job);
        if (job->hold_count) {
            holds_forget(core, job);
            core_job_queue(core, job);
        }
        if (job->id.v)
            waiting_changed(core, job, WAITING_BY_PLACER);
    }
}

static void placer_change(struct core *core, struct placer *placer)
{
    assert(placer != core->placer);
    gang_start_finish(core);
    waiting_forget(core);
    placer_fill(core, placer);
    core->placer->ops->free(core->placer);
    core->placer = placer;
    schedule_forget_shapes(core);
}

void placer_renew(struct core *core)
{
    const struct placer_ops *ops = core->placer->ops;
    if (!ops->is_outdated || !ops->is_outdated(core->placer))
        return;
    struct placer *placer = placer_new(core->config.policy, core->config.placement_document, NULL);
    assert(placer); /* the configuration is the one in force */
    placer_change(core, placer);
    core_trace(core, "cells: their units have changed, what runs was told to a new placer");
}

void config_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_CONFIG);
    struct err err = {0};
    struct core_config config;
    int code = config_copy(&config, event->config, &err);
    if (code) {
        core_answer(core, event, (struct job_id){0}, &err);
        return;
    }
    bool is_same = strcmp(config.policy, core->config.policy) == 0 &&
                   text_equal(config.placement_document, core->config.placement_document);
    struct placer *placer =
        is_same ? NULL : placer_new(config.policy, config.placement_document, &err);
    if (!is_same && !placer) {
        config_release(&config);
        core_answer(core, event, (struct job_id){0}, &err);
        return;
    }
    config_release(&core->config);
    core->config = config;
    core->policy_job = 0;
    queue_order_set(core->queue, queue_order_named(config.order));
    if (placer)
        placer_change(core, placer);
    core->is_unblocked = true;
    nodes_note_change(core); /* reasons told before may name what is no more */
    core_trace(core, "configuration: policy %s, order %s%s", core->config.policy,
               core->config.order, placer ? ", what runs was told to a new placer" : "");
    core_answer(core, event, (struct job_id){0}, NULL);
}
