#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "base/utc.h"
#include "core/capacity.h"
#include "core/engines.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/records.h"
#include "core/renew.h"
#include "core/reserve.h"
#include "core/shadow.h"
#include "core/state.h"
#include "core/tasks.h"
#include "model/reason.h"

static struct blame_policy blame_policy_of(const struct core *core)
{
    return (struct blame_policy){core->config.blame_half_life_s, core->config.blame_avoid,
                                 core->config.blame_cordon};
}

uint32_t node_find(const struct core *core, const char *name)
{
    uint32_t at = text_map_get(&core->node_names, text_of(name));
    return at == MAP_NONE ? NONE : at;
}

static bool is_cordoned_for_blame(const struct core_node *node)
{
    return node->blame.level == BLAME_CORDON;
}

bool node_is_cordoned(const struct core_node *node)
{
    return is_cordoned_for_blame(node) || node->closing.is_closed;
}

/* Who cannot be used for a reason of its own says that. */
bool node_is_told_blame(const struct core_node *node)
{
    const bool is_usable = node->facts.is_healthy && !node->is_lost;
    return is_cordoned_for_blame(node) || !*node->facts.reason || (is_usable && *node->cordon);
}

double node_blame_now(const struct core *core, const struct core_node *node)
{
    struct blame_policy policy = blame_policy_of(core);
    return blame_value(&node->blame, &policy, core->now_ms);
}

static void node_release(struct core_node *node)
{
    node_facts_release(&node->facts);
    node_closing_release(&node->closing);
    mem_free(node->cordon);
    mem_free(node->refusal);
    ports_release(&node->ports);
}

static void string_set(char **to, const char *from)
{
    char *copy = mem_copy(from ? from : "");
    mem_free(*to);
    *to = copy;
}

void node_tell_placer(struct core *core, struct placer *placer, uint32_t at)
{
    assert(at < core->nodes.count);
    struct core_node *node = &core->nodes.items[at];
    struct node_facts told = node->facts;
    told.is_healthy = told.is_healthy && !node->is_lost && !node_is_cordoned(node);
    struct err err = {0};
    int code = placer->ops->node_set(placer, (struct node_id){at}, &told, &err);
    string_set(&node->refusal, code ? err.text : "");
    if (code)
        core_trace(core, "node %s: not used by the placer: %s", node->facts.name, err.text);
}

void nodes_note_change(struct core *core)
{
    core->nodes_ms = core->now_ms;
    core->node_changes++;
}

static void node_changed(struct core *core, uint32_t at)
{
    assert(at < core->nodes.count);
    capacity_update(core, at);
    core_engine_update(core, at);
    placer_node(core, at);
    renewal_node(core, at);
    placer_renew(core);
    reserve_node(core, at);
    record_node(core, at);
    nodes_note_change(core);
    core->is_unblocked = true;
}

static uint32_t node_add(struct core *core, const char *name)
{
    assert(node_find(core, name) == NONE);
    uint32_t at = (uint32_t)core->nodes.count;
    struct core_node *node = ARRAY_ADD(&core->nodes);
    *node = (struct core_node){.cordon = mem_copy(""), .refusal = mem_copy(""), .first_task = NONE};
    node_closing_copy(&node->closing, &(struct node_closing){0});
    node_facts_copy(&node->facts, &(struct node_facts){.name = name});
    text_map_set(&core->node_names, text_of(node->facts.name), at);
    return at;
}

static void node_reason_set(struct core_node *node, const char *reason)
{
    struct node_facts facts = node->facts;
    facts.reason = reason;
    node_facts_copy(&node->facts, &facts);
}

static void node_fill(struct core *core, struct core_node *node, const struct node_facts *facts)
{
    assert(node >= core->nodes.items && node < core->nodes.items + core->nodes.count);
    core->gpus_total -= node->is_lost ? 0 : node->facts.gpu_count;
    node_facts_copy(&node->facts, facts);
    node->is_lost = false;
    core->gpus_total += node->facts.gpu_count;
}

void node_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_NODE);
    const struct node_facts *from = &event->node;
    struct err err = {0};
    if (!from->name || !*from->name || strlen(from->name) > NODE_NAME_MAX ||
        from->gpu_count > UINT16_MAX) {
        err_fail(&err, ERR_INVALID, "name", "a node needs a name of 1…%d bytes", NODE_NAME_MAX);
        core_answer(core, event, (struct job_id){0}, &err);
        return;
    }
    uint32_t at = node_find(core, from->name);
    if (at == NONE && core->nodes.count >= CORE_NODES_MAX) {
        err_fail(&err, ERR_TOO_BIG, "name", "there are %d nodes already", CORE_NODES_MAX);
        core_answer(core, event, (struct job_id){0}, &err);
        return;
    }
    bool is_new = at == NONE || core->nodes.items[at].is_lost;
    if (at == NONE)
        at = node_add(core, from->name);
    struct core_node *node = &core->nodes.items[at];
    if (is_new)
        node->is_lost = true; /* its GPUs are not counted yet */
    node_fill(core, node, from);
    core_trace(core, "node %s: %s: %u CPUs, %llu MiB, %u GPUs%s%s, %s", node->facts.name,
               is_new ? "appeared" : "changed", node->facts.cpu,
               (unsigned long long)node->facts.memory_mib, node->facts.gpu_count,
               *node->facts.gpu_type ? " " : "", node->facts.gpu_type,
               node->facts.is_healthy ? "healthy" : "not healthy");
    node_changed(core, at);
    core_answer(core, event, (struct job_id){0}, NULL);
}

/* Each of its tasks ends as lost: the platform's failure, not the user's. */
static void node_tasks_lose(struct core *core, uint32_t at)
{
    struct arena *arena = &core->scratch;
    size_t count = 0;
    const char *name = core->nodes.items[at].facts.name;
    struct attempt_id *attempts =
        ARENA_ARRAY(arena, struct attempt_id, core->nodes.items[at].task_count + 1u);
    for (uint32_t i = core->nodes.items[at].first_task; i != NONE;
         i = core_task_at(core, i)->node_next)
        attempts[count++] = core_task_at(core, i)->attempt;
    /* the newest stands first */
    while (count > 0) {
        struct core_task *task = core_task_of_attempt(core, attempts[--count]);
        if (!task || !task->is_taken)
            continue; /* it had not been created, and ended with another one of its gang */
        struct core_job *job = core_job_at(core, task->job);
        struct completion completion = completion_of(CODE_NODE_LOST, "node %s was lost", name);
        core_job_step(core, job,
                      &(struct job_event){.kind = JOB_EVENT_TASK_EXITED,
                                          .task = task->ref,
                                          .attempt = task->attempt,
                                          .completion = &completion});
    }
}

/* The node that the event names; NONE after an answer. */
static uint32_t node_asked(struct core *core, const struct event *event)
{
    uint32_t at = node_find(core, event->node.name);
    struct err err = {0};
    if (at != NONE)
        return at;
    err_fail(&err, ERR_NOT_FOUND, "name", "there is no node %s", event->node.name);
    core_answer(core, event, (struct job_id){0}, &err);
    return NONE;
}

void node_lost_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_NODE_LOST);
    uint32_t at = node_asked(core, event);
    if (at == NONE)
        return;
    struct core_node *node = &core->nodes.items[at];
    if (!node->is_lost) {
        core_trace(core, "node %s: lost, with %u tasks", node->facts.name, node->task_count);
        node->is_lost = true;
        core->gpus_total -= node->facts.gpu_count;
        node_reason_set(node,
                        event->node.reason && *event->node.reason ? event->node.reason : "lost");
        node_blame(core, at, 1, "the node was lost");
        node_changed(core, at);
        node_tasks_lose(core, at);
    }
    core_answer(core, event, (struct job_id){0}, NULL);
}

/* `what`: the failure that changed it; NULL: time or a pardon did. */
static void level_told(struct core *core, uint32_t at, const char *what)
{
    assert(at < core->nodes.count);
    struct core_node *node = &core->nodes.items[at];
    const bool is_cordoned = node->blame.level == BLAME_CORDON;
    core_trace(core, "node %s: blame %.2f for failures of the platform -> %s", node->facts.name,
               node->blame.value, blame_level_name(node->blame.level));
    if (node->blame.level == BLAME_NONE) {
        string_set(&node->cordon, "");
    } else if (what) {
        cleanup_buf struct buf reason = BUF_INIT;
        char since[UTC_SIZE];
        buf_format(&reason, "%s" REASON_BLAME, is_cordoned ? "cordoned" : "taken last",
                   utc_text(core->now_ms, since), node->blame.value, what);
        string_set(&node->cordon, buf_cstr(&reason));
    }
    node_changed(core, at);
}

/* "n1 (cordoned by alice since 2026-11-21 10:04:12 UTC: a disk is replaced)" */
static void closing_tell(const struct core_node *node, struct buf *out)
{
    char since[UTC_SIZE];
    const struct node_closing *closing = &node->closing;
    assert(closing->is_closed);
    utc_text(closing->at_ms, since);
    if (*closing->why)
        buf_format(out, REASON_CORDONED_WHY, node->facts.name, closing->by, since, closing->why);
    else
        buf_format(out, REASON_CORDONED, node->facts.name, closing->by, since);
}

/* One that is not used, and why. */
static void unused_tell(const struct core_node *node, bool is_good, struct buf *out)
{
    const char *name = node->facts.name, *why = node->facts.reason;
    if (is_good)
        buf_format(out, REASON_UNUSED, name, node->refusal);
    else if (node->is_lost && *why && strcmp(why, "lost") != 0)
        buf_format(out, REASON_LOST_WHY, name, why);
    else if (node->is_lost)
        buf_format(out, REASON_LOST, name);
    else if (!node->facts.is_healthy && *why && strcmp(why, "not healthy") != 0)
        buf_format(out, REASON_UNHEALTHY_WHY, name, why);
    else if (!node->facts.is_healthy)
        buf_format(out, REASON_UNHEALTHY, name);
    else if (node->closing.is_closed)
        closing_tell(node, out);
    else
        buf_format(out, REASON_UNUSED, name, node->cordon);
}

const char *nodes_not_used(const struct core *core, struct arena *arena)
{
    enum { LOOKED_AT_MAX = 256, NAMED_MAX = 3 };
    uint32_t count = 0;
    cleanup_buf struct buf out = BUF_INIT;
    for (size_t i = 0; i < core->nodes.count && i < LOOKED_AT_MAX; i++) {
        const struct core_node *node = &core->nodes.items[i];
        const bool is_cordoned = node_is_cordoned(node);
        const bool is_good = node->facts.is_healthy && !node->is_lost && !is_cordoned;
        if (is_good && !*node->refusal)
            continue;
        if (count++ >= NAMED_MAX)
            continue;
        buf_string(&out, count == 1 ? REASON_NOT_USED : REASON_NEXT);
        unused_tell(node, is_good, &out);
    }
    if (count > NAMED_MAX)
        buf_format(&out, REASON_MORE_NODES, count - NAMED_MAX);
    return arena_copy(arena, buf_as_text(&out));
}

static void blame_timer(struct core *core, uint32_t at)
{
    assert(at < core->nodes.count);
    struct blame_policy policy = blame_policy_of(core);
    int64_t next_ms = blame_next_ms(&core->nodes.items[at].blame, &policy);
    if (next_ms)
        timers_set(&core->timers, timer_key(TIMER_NODE, at), next_ms);
    else
        timers_remove(&core->timers, timer_key(TIMER_NODE, at));
}

bool node_blame(struct core *core, uint32_t at, double weight, const char *what)
{
    assert(at < core->nodes.count && what);
    if (weight <= 0)
        return false;
    struct core_node *node = &core->nodes.items[at];
    struct blame_policy policy = blame_policy_of(core);
    bool is_listed = false;
    for (size_t i = 0; i < core->blamed.count; i++)
        is_listed = is_listed || core->blamed.items[i] == at;
    if (!is_listed)
        *ARRAY_ADD(&core->blamed) = at;
    const bool is_changed = blame_add(&node->blame, &policy, weight, core->now_ms);
    if (is_changed)
        level_told(core, at, what);
    else
        record_node(core, at);
    blame_timer(core, at);
    return is_changed;
}

/* Blamed for failures of the platform, while the blame still counts, … */
static size_t blamed_list(struct core *core, struct node_id *nodes)
{
    assert(core->blamed.count <= core->nodes.count);
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < core->blamed.count; i++) {
        uint32_t at = core->blamed.items[i];
        double blame = node_blame_now(core, core_node_at(core, at));
        if (blame < 0.01) /* the node keeps what is left, as its row does */
            continue;
        core->blamed.items[kept++] = at;
        if (blame >= core->config.blame_avoid)
            nodes[count++].v = at;
    }
    core->blamed.count = kept;
    return count;
}

/* … or refusing tasks, for as long as they are avoided for that. */
static size_t refusing_list(struct core *core, struct node_id *nodes)
{
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < core->refusing.count; i++) {
        uint32_t at = core->refusing.items[i];
        const struct core_node *node = core_node_at(core, at);
        if (node->avoid_ms <= core->now_ms)
            continue;
        core->refusing.items[kept++] = at;
        if (node_blame_now(core, node) < core->config.blame_avoid)
            nodes[count++].v = at;
    }
    core->refusing.count = kept;
    return count;
}

size_t nodes_to_avoid(struct core *core, struct arena *arena, const struct node_id **nodes)
{
    const size_t room = core->blamed.count + core->refusing.count;
    struct node_id *list = room ? ARENA_ARRAY(arena, struct node_id, room) : NULL;
    size_t count = 0;
    if (room) {
        count = blamed_list(core, list);
        count += refusing_list(core, list + count);
    }
    *nodes = list;
    return count;
}

void node_blame_refresh(struct core *core, uint32_t at)
{
    assert(at < core->nodes.count);
    struct blame_policy policy = blame_policy_of(core);
    if (blame_refresh(&core->nodes.items[at].blame, &policy, core->now_ms))
        level_told(core, at, NULL);
    else
        record_node(core, at); /* what is left of it */
    blame_timer(core, at);
}

void node_pardon_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_NODE_PARDON);
    uint32_t at = node_asked(core, event);
    if (at == NONE)
        return;
    blame_pardon(&core->nodes.items[at].blame, core->now_ms);
    blame_timer(core, at);
    level_told(core, at, NULL);
    core_answer(core, event, (struct job_id){0}, NULL);
}

/* --- cordoned by hand --- */

/* As by a preemption: each has its time for a checkpoint, and starts elsewhere, not counted. */
static void node_tasks_move(struct core *core, uint32_t at, const char *user)
{
    struct arena *arena = &core->scratch;
    const struct core_node *node = core_node_at(core, at);
    struct attempt_id *attempts = ARENA_ARRAY(arena, struct attempt_id, node->task_count + 1u);
    size_t count = 0;
    for (uint32_t i = node->first_task; i != NONE; i = core_task_at(core, i)->node_next)
        attempts[count++] = core_task_at(core, i)->attempt;
    const struct completion completion =
        completion_of(CODE_PREEMPTED, "node %s is drained by %s%s%s", node->facts.name, user,
                      *node->closing.why ? ": " : "", node->closing.why);
    while (count > 0) { /* the newest stands first */
        const struct core_task *task = core_task_of_attempt(core, attempts[--count]);
        if (!task || !task->is_taken)
            continue; /* it ended with another one of its gang */
        struct core_job *job = core_job_at(core, task->job);
        const struct job_event event = {
            .kind = job->plan->is_gang ? JOB_EVENT_PREEMPT : JOB_EVENT_TASK_KILL,
            .task = task->ref,
            .completion = &completion,
        };
        const struct job_task *life = job_task_find(&job->life, task->ref);
        if (life && life_is_completing(life->state))
            continue; /* it ends by now, perhaps by a drain before this one */
        if (!job->plan->is_gang)
            record_story(core, job, task, true, "NodeDrained", "%s", completion.diagnostics);
        core_job_step(core, job, &event);
    }
}

void node_cordon_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_NODE_CORDON || event->kind == EVENT_NODE_DRAIN);
    uint32_t at = node_asked(core, event);
    if (at == NONE)
        return;
    struct core_node *node = core_node_at(core, at);
    const char *why = event->node.reason ? event->node.reason : "";
    struct err err = {0};
    if (strlen(why) > NODE_CLOSING_WHY_MAX) {
        err_fail(&err, ERR_TOO_BIG, "reason", "more than %d bytes", NODE_CLOSING_WHY_MAX);
        core_answer(core, event, (struct job_id){0}, &err);
        return;
    }
    const char *user = *event->user ? event->user : "the platform";
    const struct node_closing closing = {true, user, why, core->now_ms};
    node_closing_copy(&node->closing, &closing);
    core_trace(core, "node %s: cordoned by %s, with %u tasks%s%s", node->facts.name, user,
               node->task_count, *why ? ": " : "", why);
    node_changed(core, at);
    if (event->kind == EVENT_NODE_DRAIN)
        node_tasks_move(core, at, user);
    core_answer(core, event, (struct job_id){0}, NULL);
}

void node_uncordon_event(struct core *core, const struct event *event)
{
    assert(event->kind == EVENT_NODE_UNCORDON);
    uint32_t at = node_asked(core, event);
    if (at == NONE)
        return;
    struct core_node *node = core_node_at(core, at);
    struct err err = {0};
    if (!node->closing.is_closed && is_cordoned_for_blame(node)) {
        err_fail(&err, ERR_CONFLICT, "name",
                 "node %s was cordoned by the platform for its failures: pardon it",
                 node->facts.name);
        core_answer(core, event, (struct job_id){0}, &err);
        return;
    }
    if (node->closing.is_closed) {
        core_trace(core, "node %s: uncordoned", node->facts.name);
        node_closing_copy(&node->closing, &(struct node_closing){0});
        node_changed(core, at);
    }
    core_answer(core, event, (struct job_id){0}, NULL);
}

/* --- refusals --- */

enum { AVOID_FIRST_MS = 10 * 1000, AVOID_MAX_MS = 600 * 1000 };

/* Doubled with each refusal in a row; less up to a quarter by chance. */
static int64_t avoid_for_ms(uint32_t refusals, uint64_t random)
{
    int64_t pause_ms = AVOID_FIRST_MS;
    for (uint32_t i = 1; i < refusals && pause_ms < AVOID_MAX_MS; i++)
        pause_ms *= 2;
    if (pause_ms > AVOID_MAX_MS)
        pause_ms = AVOID_MAX_MS;
    return pause_ms - (int64_t)(random % (uint64_t)(pause_ms / 4 + 1));
}

static void refusing_add(struct core *core, uint32_t at)
{
    for (size_t i = 0; i < core->refusing.count; i++)
        if (core->refusing.items[i] == at)
            return;
    *ARRAY_ADD(&core->refusing) = at;
}

void node_refused(struct core *core, uint32_t at)
{
    struct core_node *node = &core->nodes.items[at];
    if (node->refusals < UINT32_MAX)
        node->refusals++;
    node->avoid_ms = core->now_ms + avoid_for_ms(node->refusals, core->random);
    refusing_add(core, at);
    core_trace(core, "node %s: refused %u tasks in a row, taken last for %lld ms", node->facts.name,
               node->refusals, (long long)(node->avoid_ms - core->now_ms));
    record_node(core, at);
}

void node_accepted(struct core *core, uint32_t at)
{
    struct core_node *node = &core->nodes.items[at];
    if (node->refusals == 0)
        return;
    node->refusals = 0;
    node->avoid_ms = 0;
    record_node(core, at);
}

int node_restore(struct core *core, const struct node_record *record, struct err *err)
{
    if (record->id.v != core->nodes.count || node_find(core, record->facts.name) != NONE)
        return err_fail(err, ERR_CORRUPT, "nodes", "node %s is stored as number %u, after %zu",
                        record->facts.name, record->id.v, core->nodes.count);
    uint32_t at = node_add(core, record->facts.name);
    struct core_node *node = &core->nodes.items[at];
    struct node_facts facts = record->facts;
    node->is_lost = true;
    facts.reason = record->is_reason_blame ? "" : facts.reason;
    node_fill(core, node, &facts);
    string_set(&node->cordon, record->is_reason_blame ? record->facts.reason : "");
    if (record->is_lost) {
        node->is_lost = true;
        core->gpus_total -= node->facts.gpu_count;
    }
    node->blame = (struct blame){
        .value = record->blame,
        .at_ms = record->blame_ms,
        .level = record->is_cordoned_for_blame               ? BLAME_CORDON
                 : record->blame >= core->config.blame_avoid ? BLAME_AVOID
                                                             : BLAME_NONE,
    };
    node_closing_copy(&node->closing, &record->closing);
    node->refusals = record->refusals;
    node->avoid_ms = record->avoid_ms;
    if (node->avoid_ms > 0)
        refusing_add(core, at);
    capacity_update(core, at);
    core_engine_update(core, at);
    if (record->blame > 0) {
        *ARRAY_ADD(&core->blamed) = at;
        blame_timer(core, at);
    }
    return 0;
}

uint32_t core_node_count(const struct core *core)
{
    return (uint32_t)core->nodes.count;
}

struct core_node_use core_node_use(const struct core *core, struct node_id node)
{
    assert(node.v < core_node_count(core));
    const struct core_node *own = core_node_at(core, node.v);
    return (struct core_node_use){
        .gpus = own->gpus_used,
        .cpus = own->cpus_used,
        .memory_mib = own->memory_used_mib,
        .gpu_total = own->facts.gpu_count,
        .cpu_total = own->facts.cpu,
        .memory_mib_total = own->facts.memory_mib,
        .is_lost = own->is_lost,
        .is_healthy = own->facts.is_healthy,
    };
}

void core_nodes_copy(struct core *to, const struct core *from)
{
    assert(!to->nodes.count);
    ARRAY_COPY(&to->nodes, &from->nodes);
    ARRAY_COPY(&to->blamed, &from->blamed);
    ARRAY_COPY(&to->refusing, &from->refusing);
    core_engines_copy(to, from);
    for (uint32_t i = 0; i < core_node_count(to); i++) {
        const struct core_node *old = core_node_at(from, i);
        struct core_node *new = core_node_at(to, i);
        new->facts = (struct node_facts){0};
        node_facts_copy(&new->facts, &old->facts);
        new->closing = (struct node_closing){0};
        node_closing_copy(&new->closing, &old->closing);
        new->cordon = mem_copy(old->cordon);
        new->refusal = mem_copy(old->refusal);
        ports_copy(&new->ports, &old->ports);
        text_map_set(&to->node_names, text_of(new->facts.name), i);
    }
}

void core_nodes_release(struct core *core)
{
    for (uint32_t i = 0; i < core_node_count(core); i++)
        node_release(core_node_at(core, i));
    ARRAY_FREE(&core->nodes);
    ARRAY_FREE(&core->blamed);
    ARRAY_FREE(&core->refusing);
    core_engines_release(core);
    text_map_release(&core->node_names);
}
