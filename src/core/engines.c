#include "core/engines.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/request.h"

/* --- the engines of the nodes --- */

static uint16_t engine_find(struct core *core, const char *name)
{
    for (size_t i = 0; i < core->engines.count; i++)
        if (strcmp(core->engines.items[i].name, name) == 0)
            return (uint16_t)(i + 1);
    if (core->engines.count == CORE_ENGINES_MAX)
        return 0;
    *ARRAY_ADD(&core->engines) = (struct node_engine){.name = mem_copy(name)};
    return (uint16_t)core->engines.count;
}

void core_engine_update(struct core *core, uint32_t at)
{
    struct core_node *node = core_node_at(core, at);
    const uint16_t number = node->is_lost ? 0 : engine_find(core, node->facts.engine);
    if (number == node->engine)
        return;
    if (node->engine) {
        assert(core->engines.items[node->engine - 1].nodes > 0);
        core->engines.items[node->engine - 1].nodes--;
    }
    if (number)
        core->engines.items[number - 1].nodes++;
    node->engine = number;
}

void core_engines_copy(struct core *to, const struct core *from)
{
    assert(!to->engines.count);
    ARRAY_COPY(&to->engines, &from->engines);
    for (size_t i = 0; i < to->engines.count; i++)
        to->engines.items[i].name = mem_copy(from->engines.items[i].name);
}

void core_engines_release(struct core *core)
{
    for (size_t i = 0; i < core->engines.count; i++)
        mem_free(core->engines.items[i].name);
    ARRAY_FREE(&core->engines);
}

const char *core_engine_name(const struct core *core, uint16_t number)
{
    assert(number <= core->engines.count);
    return number ? core->engines.items[number - 1].name : NULL;
}

uint16_t core_engine_next(const struct core *core, uint16_t number)
{
    while (number < core->engines.count)
        if (core->engines.items[number++].nodes > 0)
            return number;
    return 0;
}

static bool engines_are_several(const struct core *core)
{
    const uint16_t first = core_engine_next(core, 0);
    return first && core_engine_next(core, first);
}

static bool has_peers(struct core *core, const struct core_job *job)
{
    uint32_t tasks = 0;
    for (uint16_t i = 0; i < job->plan->role_count && tasks < 2; i++)
        if (job->plan->roles[i].part == i)
            tasks += part_task_count(core, job, i);
    return tasks > 1;
}

static bool is_bound(struct core *core, const struct core_job *job)
{
    assert(job->id.v);
    return job->plan->is_gang && !core->config.gangs_span_engines && has_peers(core, job);
}

bool core_engine_matters(struct core *core, const struct core_job *job)
{
    return engines_are_several(core) && is_bound(core, job);
}

/* --- a try --- */

/* Also where there is one engine so far: nodes of another may appear before the search ends. */
void engine_try_begin(struct core *core, struct core_job *job)
{
    job->engine_try =
        (struct engine_try){.engine = is_bound(core, job) ? core_engine_next(core, 0) : 0,
                            .spares_others = core_engine_matters(core, job),
                            .is_never = true};
}

const char *engine_try_name(const struct core *core, const struct core_job *job)
{
    return engines_are_several(core) ? core_engine_name(core, job->engine_try.engine) : NULL;
}

/* Said of one engine is what ends of jobs may still change there; of the first of these. */
static void outcome_keep(struct core *core, const struct engine_try *try,
                         const struct start_outcome *outcome, struct engine_told *told)
{
    assert(try->engine && outcome->reason);
    if (told->engine && (!told->is_never || outcome->is_never))
        return;
    const char *name = core_engine_name(core, try->engine);
    *told = (struct engine_told){
        .engine = try->engine,
        .is_never = outcome->is_never,
        .topic = text_words_hash(text_of(name), outcome->topic),
        .reason = arena_format(&core->scratch, "no engine has room for all of its tasks; on %s: %s",
                               *name ? name : "that which is not known", outcome->reason),
    };
}

bool engine_try_next(struct core *core, struct core_job *job, struct engine_told *told,
                     struct start_outcome *outcome)
{
    struct engine_try *try = &job->engine_try;
    const bool is_never = outcome->kind == PLACEMENT_WAIT && outcome->is_never;
    if (!try->engine || !engines_are_several(core))
        return false;
    if (outcome->kind == PLACEMENT_WAIT || !try->spares_others)
        outcome_keep(core, try, outcome, told);
    try->could_preempt |= outcome->kind == PLACEMENT_PREEMPT;
    try->is_never &= is_never;
    try->is_held_back |= outcome->is_held_back;
    try->engine = core_engine_next(core, try->engine);
    if (!try->engine && try->spares_others && try->could_preempt) {
        try->spares_others = false;
        try->engine = core_engine_next(core, 0);
    }
    if (try->engine)
        return true;
    outcome->reason = told->reason;
    outcome->topic = told->topic;
    outcome->is_never = try->is_never;
    outcome->is_held_back |= try->is_held_back;
    return false;
}
