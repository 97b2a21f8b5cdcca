#include <assert.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/clusters.h"
#include "core/config.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/renew.h"
#include "core/reserve.h"
#include "core/room.h"
#include "core/shadow.h"
#include "core/state.h"
#include "core/tasks.h"

struct placer *core_placer(const struct core *core)
{
    return core->placer;
}

struct core *core_copy(const struct core *from)
{
    assert(!from->output);
    struct core *to = mem_zero(1, sizeof *to);
    int code = core_config_copy(&to->config, &from->config, NULL);
    assert(!code);
    (void)code;
    to->now_ms = from->now_ms;
    to->random = from->random;
    to->last_job = from->last_job;
    to->last_attempt = from->last_attempt;
    to->last_group = from->last_group;
    to->last_table = from->last_table;
    to->last_tasks_change = from->last_tasks_change;
    to->step = from->step;
    to->wake_ms = from->wake_ms;
    to->nodes_ms = from->nodes_ms;
    to->node_changes = from->node_changes;
    to->slice = from->slice;
    to->is_unblocked = from->is_unblocked;
    to->pass = from->pass;
    to->placing = from->placing;
    to->is_searching = from->is_searching;
    to->creating = from->creating;
    to->groups_given_up = from->groups_given_up;
    to->again_ms = from->again_ms;
    to->starves_ms = from->starves_ms;
    to->nodes_ms = from->nodes_ms;
    to->prepare_ms = from->prepare_ms;
    to->events = from->events;
    to->gpus_total = from->gpus_total;
    to->gpus_used = from->gpus_used;
    to->jobs_live = from->jobs_live;
    to->tasks_live = from->tasks_live;
    to->capacity = from->capacity;
    to->placer = from->placer->ops->copy(from->placer);
    renewal_copy(to, from);
    to->queue = queue_copy(from->queue);
    timers_copy(&to->timers, &from->timers);
    core_jobs_copy(to, from);
    holdovers_copy(to, from);
    naming_copy(to, from);
    core_nodes_copy(to, from);
    core_clusters_copy(to, from);
    core_tasks_copy(to, from);
    reserve_copy(to, from);
    shadow_copy(to, from);
    room_copy(to, from);
    arena_init(&to->scratch);
    to->actions.arena = &to->scratch;
    return to;
}
