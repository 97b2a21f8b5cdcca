#include "core/engines.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/request.h"
#include "model/reason.h"

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

/* Why one engine does not take the gang. */
struct engine_said {
    uint16_t engine;
    bool is_never; /* no end of jobs can change it */
    uint64_t topic;
    char *reason;
};

static void said_clear(struct engine_try *try)
{
    for (uint16_t i = 0; i < try->said_count; i++)
        mem_free(try->said[i].reason);
    mem_free(try->said);
    try->said = NULL;
    try->said_count = try->unsaid_count = 0;
}

void engine_try_end(struct core_job *job)
{
    said_clear(&job->engine_try);
}

void engine_try_copy(struct engine_try *to, const struct engine_try *from)
{
    *to = *from;
    if (!from->said)
        return;
    to->said = mem_zero(ENGINES_SAID_MAX, sizeof *to->said);
    for (uint16_t i = 0; i < from->said_count; i++) {
        to->said[i] = from->said[i];
        to->said[i].reason = mem_copy(from->said[i].reason);
    }
}

/* Also where there is one engine so far: nodes of another may appear before the search ends. */
void engine_try_begin(struct core *core, struct core_job *job)
{
    engine_try_end(job);
    job->engine_try =
        (struct engine_try){.engine = is_bound(core, job) ? core_engine_next(core, 0) : 0,
                            .spares_others = core_engine_matters(core, job),
                            .is_never = true};
}

const char *engine_try_name(const struct core *core, const struct core_job *job)
{
    return engines_are_several(core) ? core_engine_name(core, job->engine_try.engine) : NULL;
}

/* The place of what an engine says: where all are taken, that of one where no end of jobs helps. */
static struct engine_said *said_place(struct engine_try *try, bool is_never)
{
    if (try->said_count < ENGINES_SAID_MAX)
        return &try->said[try->said_count++];
    try->unsaid_count++;
    if (is_never)
        return NULL;
    for (uint16_t i = try->said_count; i-- > 0;)
        if (try->said[i].is_never) {
            mem_free(try->said[i].reason);
            memmove(&try->said[i], &try->said[i + 1],
                    (try->said_count - i - 1u) * sizeof *try->said);
            return &try->said[try->said_count - 1];
        }
    return NULL;
}

static void outcome_keep(struct engine_try *try, const struct start_outcome *outcome)
{
    assert(try->engine && outcome->reason);
    if (!try->said)
        try->said = mem_zero(ENGINES_SAID_MAX, sizeof *try->said);
    struct engine_said *said = said_place(try, outcome->is_never);
    if (said)
        *said = (struct engine_said){.engine = try->engine,
                                     .is_never = outcome->is_never,
                                     .topic = outcome->topic,
                                     .reason = mem_copy(outcome->reason)};
}

/* All of them, in the order in which they were asked. */
static void said_tell(struct core *core, const struct engine_try *try,
                      struct start_outcome *outcome)
{
    cleanup_buf struct buf text = BUF_INIT;
    assert(try->said_count > 0);
    outcome->topic = 0;
    buf_string(&text, REASON_NO_ENGINE);
    for (uint16_t i = 0; i < try->said_count; i++) {
        const struct engine_said *said = &try->said[i];
        const char *name = core_engine_name(core, said->engine);
        buf_string(&text, i ? REASON_NEXT_ENGINE : "");
        buf_format(&text, REASON_ENGINE, *name ? name : "an engine that is not known");
        buf_string(&text, said->reason);
        buf_string(&text, REASON_ENGINE_END);
        outcome->topic = text_words_hash(text_of(name), outcome->topic * 31 + said->topic);
    }
    if (try->unsaid_count)
        buf_format(&text, REASON_OTHER_ENGINES, try->unsaid_count,
                   try->unsaid_count == 1 ? "" : "s");
    outcome->reason = arena_copy(&core->scratch, buf_as_text(&text));
}

bool engine_try_next(struct core *core, struct core_job *job, struct start_outcome *outcome)
{
    struct engine_try *try = &job->engine_try;
    const bool is_never = outcome->kind == PLACEMENT_WAIT && outcome->is_never;
    if (!try->engine || !engines_are_several(core))
        return false;
    if (outcome->kind == PLACEMENT_WAIT || !try->spares_others)
        outcome_keep(try, outcome);
    try->could_preempt |= outcome->kind == PLACEMENT_PREEMPT;
    try->is_never &= is_never;
    try->is_held_back |= outcome->is_held_back;
    try->engine = core_engine_next(core, try->engine);
    if (!try->engine && try->spares_others && try->could_preempt) {
        try->spares_others = false;
        try->engine = core_engine_next(core, 0);
        said_clear(try); /* each is asked once more */
    }
    if (try->engine)
        return true;
    said_tell(core, try, outcome);
    said_clear(try);
    outcome->is_never = try->is_never;
    outcome->is_held_back |= try->is_held_back;
    return false;
}
