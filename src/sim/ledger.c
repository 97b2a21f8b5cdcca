#include "sim/ledger.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/core.h"
#include "core/output.h"
#include "core/plan.h"
#include "model/reason.h"

enum { PORTS_MAX = 4, PORT_WORDS = 65536 / 64 };

struct ledger_attempt { /* by its number; job 0: never seen */
    uint32_t job, job_attempt, node;
    struct task_ref task;
    uint64_t gpus; /* a bit for each device */
    struct {
        uint16_t first, count;
    } ports[PORTS_MAX];
    uint16_t port_count;
    bool is_live, is_created;
    uint64_t ended, forgotten; /* in this step; 0: not yet */
};

struct ledger_job {
    struct plan *plan;
    uint32_t placed, placed_attempt; /* tasks that got a place in the latest attempt, … */
    uint32_t first_node;             /* … and the place of the first of them */
    uint32_t attempt;                /* the latest */
    bool is_final, is_deleted;
};

struct ledger {
    struct {
        struct {
            char *name, *engine;
            uint32_t cpu, gpu_count;
            uint64_t memory_mib; /* the most that it ever had: what runs keeps its own */
            bool is_usable;
        } * items;
        size_t count, room;
    } nodes;
    struct {
        struct ledger_job *items; /* by number */
        size_t count, room;
    } jobs;
    struct {
        struct ledger_attempt *items;
        size_t count, room;
    } attempts;
    struct {
        char **items; /* virtual clusters that are closed */
        size_t count, room;
    } closed;
    uint64_t step;
    bool is_retold; /* what runs was told to a new placer, which counts CPUs and MiB in other units
                     */
};

struct ledger *ledger_new(void)
{
    return mem_zero(1, sizeof(struct ledger));
}

void ledger_free(struct ledger *ledger)
{
    if (!ledger)
        return;
    for (size_t i = 0; i < ledger->nodes.count; i++) {
        mem_free(ledger->nodes.items[i].name);
        mem_free(ledger->nodes.items[i].engine);
    }
    for (size_t i = 0; i < ledger->jobs.count; i++)
        plan_free(ledger->jobs.items[i].plan);
    for (size_t i = 0; i < ledger->closed.count; i++)
        mem_free(ledger->closed.items[i]);
    ARRAY_FREE(&ledger->closed);
    ARRAY_FREE(&ledger->nodes);
    ARRAY_FREE(&ledger->jobs);
    ARRAY_FREE(&ledger->attempts);
    mem_free(ledger);
}

void ledger_plan(struct ledger *ledger, uint32_t job, const struct plan *plan)
{
    while (ledger->jobs.count <= job)
        ARRAY_ADD(&ledger->jobs);
    assert(!ledger->jobs.items[job].plan);
    ledger->jobs.items[job].plan = plan_copy(plan);
}

static const struct plan *plan_find(const struct ledger *ledger, uint32_t job)
{
    return job < ledger->jobs.count ? ledger->jobs.items[job].plan : NULL;
}

static uint32_t node_named(const struct ledger *ledger, const char *name)
{
    for (size_t i = 0; i < ledger->nodes.count; i++)
        if (ledger->nodes.items[i].name && strcmp(ledger->nodes.items[i].name, name) == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

static struct ledger_attempt *attempt_at(struct ledger *ledger, struct attempt_id id)
{
    while (ledger->attempts.count <= id.v)
        ARRAY_ADD(&ledger->attempts);
    return &ledger->attempts.items[id.v];
}

/* --- records --- */

static void node_enter(struct ledger *ledger, const struct node_record *record)
{
    while (ledger->nodes.count <= record->id.v)
        ARRAY_ADD(&ledger->nodes);
    uint64_t most_mib = ledger->nodes.items[record->id.v].memory_mib;
    mem_free(ledger->nodes.items[record->id.v].name);
    mem_free(ledger->nodes.items[record->id.v].engine);
    ledger->nodes.items[record->id.v].engine = mem_copy(record->facts.engine);
    ledger->nodes.items[record->id.v].name = mem_copy(record->facts.name);
    ledger->nodes.items[record->id.v].cpu = record->facts.cpu;
    ledger->nodes.items[record->id.v].gpu_count = record->facts.gpu_count;
    ledger->nodes.items[record->id.v].memory_mib =
        record->facts.memory_mib > most_mib ? record->facts.memory_mib : most_mib;
    ledger->nodes.items[record->id.v].is_usable =
        record->facts.is_healthy && !record->is_lost && !record->is_cordoned;
}

static size_t closed_place(const struct ledger *ledger, const char *name)
{
    size_t at = 0;
    while (at < ledger->closed.count && strcmp(ledger->closed.items[at], name) != 0)
        at++;
    return at;
}

static void cluster_enter(struct ledger *ledger, const struct cluster_record *record)
{
    const size_t at = closed_place(ledger, record->name);
    const bool was_closed = at < ledger->closed.count;
    if (record->closing.is_closed && !was_closed)
        *ARRAY_ADD(&ledger->closed) = mem_copy(record->name);
    if (record->closing.is_closed || !was_closed)
        return;
    mem_free(ledger->closed.items[at]);
    ledger->closed.items[at] = ledger->closed.items[--ledger->closed.count];
}

static bool is_equal(const struct ledger_attempt *a, const struct ledger_attempt *b)
{
    return a->job == b->job && a->job_attempt == b->job_attempt && a->node == b->node &&
           a->task.role == b->task.role && a->task.index == b->task.index && a->gpus == b->gpus &&
           a->port_count == b->port_count && memcmp(a->ports, b->ports, sizeof a->ports) == 0;
}

static bool are_of_one_engine(const struct ledger *ledger, uint32_t a, uint32_t b)
{
    return strcmp(ledger->nodes.items[a].engine, ledger->nodes.items[b].engine) == 0;
}

static int task_enter(struct ledger *ledger, const struct task_record *record, struct err *err)
{
    if (!record->attempt.v || record->is_removed)
        return 0;
    struct ledger_attempt *attempt = attempt_at(ledger, record->attempt);
    struct ledger_attempt now = {
        .job = record->job.v,
        .job_attempt = record->job_attempt,
        .node = node_named(ledger, record->node),
        .task = record->task,
        .is_live = record->state >= LIFE_CREATION_REQUESTED && record->state <= LIFE_DELETING,
        .is_created = attempt->is_created,
        .forgotten = attempt->forgotten,
        .ended = attempt->ended,
    };
    if (attempt->is_live && !now.is_live)
        now.ended = ledger->step;
    assert(record->port_count <= PORTS_MAX);
    for (size_t i = 0; i < record->gpu_count; i++)
        now.gpus |= UINT64_C(1) << record->gpus[i];
    for (; now.port_count < record->port_count; now.port_count++) {
        now.ports[now.port_count].first = record->ports[now.port_count].first;
        now.ports[now.port_count].count = record->ports[now.port_count].count;
    }
    if (attempt->job && !is_equal(attempt, &now))
        return err_fail(err, ERR_INTERNAL, "task", "attempt %llu has moved",
                        (unsigned long long)record->attempt.v);
    if (attempt->job && !attempt->is_live && now.is_live)
        return err_fail(err, ERR_INTERNAL, "task", "attempt %llu lives again",
                        (unsigned long long)record->attempt.v);
    const struct plan *plan = plan_find(ledger, now.job);
    if (!plan)
        return err_fail(err, ERR_INTERNAL, "task", "of the unknown job %u", now.job);
    if (record->gpu_count < plan->roles[record->task.role].gpu) /* cells may have more */
        return err_fail(err, ERR_INTERNAL, "task", "attempt %llu has %zu GPUs, asked for %u",
                        (unsigned long long)record->attempt.v, record->gpu_count,
                        plan->roles[record->task.role].gpu);
    if (!attempt->job) {
        if (now.is_live && !ledger->nodes.items[now.node].is_usable)
            return err_fail(err, ERR_INTERNAL, "task", "attempt %llu is placed on an unusable node",
                            (unsigned long long)record->attempt.v);
        struct ledger_job *job = &ledger->jobs.items[now.job];
        if (job->placed_attempt != now.job_attempt)
            job->placed = 0;
        /* a gang whose tasks take their places over several steps goes on */
        if (now.is_live && !(plan->is_gang && job->placed) &&
            closed_place(ledger, plan->virtual_cluster) < ledger->closed.count)
            return err_fail(err, ERR_INTERNAL, "task",
                            "attempt %llu is placed although virtual cluster %s is closed",
                            (unsigned long long)record->attempt.v, plan->virtual_cluster);
        if (!job->placed)
            job->first_node = now.node;
        job->placed_attempt = now.job_attempt;
        job->placed++;
        if (plan->is_gang && now.is_live && !are_of_one_engine(ledger, now.node, job->first_node))
            return err_fail(err, ERR_INTERNAL, "task", "the gang of job %u is on two engines",
                            now.job);
    }
    *attempt = now;
    return 0;
}

/* Clients say in other languages why a job waits. */
static bool reason_has_codes(const char *reason)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    return !*reason || reason_read(text_of(reason), &arena);
}

static int job_enter(struct ledger *ledger, const struct job_record *record, struct err *err)
{
    const struct plan *plan = plan_find(ledger, record->id.v);
    if (!plan)
        return err_fail(err, ERR_INTERNAL, "job", "%u is not known", record->id.v);
    ledger->jobs.items[record->id.v].is_final = record->state == LIFE_COMPLETED;
    ledger->jobs.items[record->id.v].attempt = record->attempt;
    if (plan->retry_max >= 0 && record->retries_user > (uint32_t)plan->retry_max)
        return err_fail(err, ERR_INTERNAL, "job", "%u was retried %u times of %d", record->id.v,
                        record->retries_user, plan->retry_max);
    if (!reason_has_codes(record->reason))
        return err_fail(err, ERR_INTERNAL, "job", "%u waits for a reason without codes: %s",
                        record->id.v, record->reason);
    return 0;
}

static int records_enter(struct ledger *ledger, const struct output *output, struct err *err)
{
    int code = 0;
    for (size_t i = 0; i < output->records.count && !code; i++) {
        const struct record *record = &output->records.items[i];
        switch (record->kind) {
        case RECORD_JOB:
            code = job_enter(ledger, &record->job, err);
            break;
        case RECORD_TASK:
            code = task_enter(ledger, &record->task, err);
            break;
        case RECORD_NODE:
            node_enter(ledger, &record->node);
            break;
        case RECORD_CLUSTER:
            cluster_enter(ledger, &record->cluster);
            break;
        case RECORD_JOB_DELETED:
            if (record->deleted.v < ledger->jobs.count)
                ledger->jobs.items[record->deleted.v].is_deleted = true;
            break;
        case RECORD_STORY:
            break;
        }
    }
    return code;
}

/* --- commands --- */

/* A gang starts whole: all of its tasks have rows. */
static bool gang_is_placed(const struct ledger *ledger, const struct ledger_attempt *attempt)
{
    const struct ledger_job *job = &ledger->jobs.items[attempt->job];
    uint32_t tasks = 0;
    for (uint16_t i = 0; i < job->plan->role_count; i++)
        tasks += job->plan->roles[i].instances;
    return !job->plan->is_gang ||
           (job->placed_attempt == attempt->job_attempt && job->placed == tasks);
}

static const char *create_enter(const struct ledger *ledger, struct ledger_attempt *attempt,
                                const struct command *command, bool is_restart)
{
    bool is_again = attempt->is_created;
    attempt->is_created = true;
    if (!attempt->is_live)
        return "is created, but not live";
    if (is_restart)
        return NULL;
    if (is_again)
        return "is created twice";
    if (attempt->node >= ledger->nodes.count ||
        strcmp(ledger->nodes.items[attempt->node].name, command->node) != 0)
        return "is created on another node than its row says";
    return gang_is_placed(ledger, attempt) ? NULL : "is created before its gang is placed";
}

static const char *command_enter(struct ledger *ledger, const struct command *command,
                                 int64_t now_ms, bool is_restart)
{
    if (command->kind == COMMAND_WAKE)
        return command->at_ms >= now_ms ? NULL : "wake-up is in the past";
    struct ledger_attempt *attempt = attempt_at(ledger, command->attempt);
    if (!attempt->job || attempt->job != command->job.v)
        return "has no row of that job";
    if (command->kind == COMMAND_CREATE)
        return create_enter(ledger, attempt, command, is_restart);
    if (command->kind == COMMAND_KILL)
        return attempt->is_live || attempt->ended == ledger->step ? NULL
                                                                  : "is killed after its end";
    /* what is held at its end, but no longer at the end of the step, may be told twice */
    bool is_again = attempt->forgotten && attempt->forgotten != ledger->step && !is_restart;
    attempt->forgotten = ledger->step;
    if (attempt->is_live)
        return "is forgotten while it lives";
    return is_again ? "is forgotten twice" : NULL;
}

/* "job alice~a: preempts bob~b/0/worker": nobody ends its own tasks. */
static int preemptions_check(const struct output *output, struct err *err)
{
    static const char verb[] = ": preempts ";
    for (size_t i = 0; i < output->trace.count; i++) {
        const char *line = output->trace.items[i], *at = strstr(line, verb);
        if (strncmp(line, "job ", 4) != 0 || !at)
            continue;
        size_t length = (size_t)(at - line) - 4;
        const char *victim = at + sizeof verb - 1;
        if (strncmp(victim, line + 4, length) == 0 && victim[length] == '/')
            return err_fail(err, ERR_INTERNAL, "preemption", "of its own: %s", line);
    }
    return 0;
}

static bool is_retold(const struct output *output)
{
    for (size_t i = 0; i < output->trace.count; i++)
        if (strstr(output->trace.items[i], "what runs was told to a new placer"))
            return true;
    return false;
}

/* A core of the rows knows nothing of containers that were kept by a job that is deleted, or by an
 * attempt before its latest: the engine's are removed as orphans, if it has them still. */
static void orphans_enter(struct ledger *ledger)
{
    for (size_t i = 0; i < ledger->attempts.count; i++) {
        struct ledger_attempt *attempt = &ledger->attempts.items[i];
        if (!attempt->job || attempt->is_live || attempt->forgotten)
            continue;
        const struct ledger_job *job = &ledger->jobs.items[attempt->job];
        if (job->is_deleted || attempt->job_attempt != job->attempt)
            attempt->forgotten = ledger->step;
    }
}

int ledger_enter(struct ledger *ledger, const struct output *output, int64_t now_ms,
                 bool is_restart, struct err *err)
{
    ledger->step++;
    ledger->is_retold = ledger->is_retold || is_retold(output) || is_restart;
    int code = records_enter(ledger, output, err);
    for (size_t i = 0; i < output->commands.count && !code; i++) {
        const struct command *command = &output->commands.items[i];
        const char *wrong = command_enter(ledger, command, now_ms, is_restart);
        if (wrong)
            code = err_fail(err, ERR_INTERNAL, "command", "attempt %llu %s",
                            (unsigned long long)command->attempt.v, wrong);
    }
    if (is_restart)
        orphans_enter(ledger);
    return code ? code : preemptions_check(output, err);
}

/* --- the books --- */

struct use {
    uint64_t gpus, ports[PORT_WORDS];
    struct core_node_use sum;
};

static int ports_add(struct use *use, const struct ledger_attempt *attempt, struct err *err)
{
    for (uint16_t i = 0; i < attempt->port_count; i++)
        for (uint32_t k = 0; k < attempt->ports[i].count; k++) {
            uint32_t port = (uint32_t)attempt->ports[i].first + k;
            uint64_t bit = UINT64_C(1) << (port % 64);
            if (port > UINT16_MAX || use->ports[port / 64] & bit)
                return err_fail(err, ERR_INTERNAL, "port", "%u of node %u is given twice", port,
                                attempt->node);
            use->ports[port / 64] |= bit;
        }
    return 0;
}

static int attempt_add(const struct ledger *ledger, struct use *uses,
                       const struct ledger_attempt *attempt, struct err *err)
{
    if (attempt->node >= ledger->nodes.count)
        return err_fail(err, ERR_INTERNAL, "task", "of job %u is live on no node", attempt->job);
    if (ledger->jobs.items[attempt->job].is_final)
        return err_fail(err, ERR_INTERNAL, "task", "of job %u, which has ended, is live",
                        attempt->job);
    struct use *use = &uses[attempt->node];
    const struct plan_role *role =
        &ledger->jobs.items[attempt->job].plan->roles[attempt->task.role];
    if (use->gpus & attempt->gpus)
        return err_fail(err, ERR_INTERNAL, "gpu", "of node %u is given twice, to job %u",
                        attempt->node, attempt->job);
    use->gpus |= attempt->gpus;
    use->sum.gpus += (uint32_t)__builtin_popcountll(attempt->gpus);
    use->sum.cpus += role->cpu;
    use->sum.memory_mib += role->memory_mib;
    return ports_add(use, attempt, err);
}

static int node_compare(const struct ledger *ledger, uint32_t node, const struct use *use,
                        const struct core *core, struct err *err)
{
    struct core_node_use known = core_node_use(core, (struct node_id){node});
    /* a leaf of automatic cells has a CPU at least: there may be as many as GPUs */
    uint32_t cpus = ledger->nodes.items[node].cpu;
    if (cpus < ledger->nodes.items[node].gpu_count)
        cpus = ledger->nodes.items[node].gpu_count;
    bool is_over =
        use->sum.cpus > cpus || use->sum.memory_mib > ledger->nodes.items[node].memory_mib;
    if (use->sum.gpus > ledger->nodes.items[node].gpu_count || (is_over && !ledger->is_retold))
        return err_fail(err, ERR_INTERNAL, ledger->nodes.items[node].name,
                        "has %u GPU, %u CPU, %llu MiB given away", use->sum.gpus, use->sum.cpus,
                        (unsigned long long)use->sum.memory_mib);
    if (use->sum.gpus != known.gpus || use->sum.cpus != known.cpus ||
        use->sum.memory_mib != known.memory_mib)
        return err_fail(err, ERR_INTERNAL, ledger->nodes.items[node].name,
                        "is used by %u GPU, %u CPU, not %u, %u", use->sum.gpus, use->sum.cpus,
                        known.gpus, known.cpus);
    return 0;
}

int ledger_compare(const struct ledger *ledger, const struct core *core, struct err *err)
{
    struct use *uses = mem_zero(ledger->nodes.count + 1, sizeof *uses);
    uint64_t live = 0, gpus = 0;
    int code = 0;
    for (size_t i = 0; i < ledger->attempts.count && !code; i++) {
        if (!ledger->attempts.items[i].is_live)
            continue;
        live++;
        code = attempt_add(ledger, uses, &ledger->attempts.items[i], err);
    }
    for (uint32_t i = 0; i < ledger->nodes.count && !code; i++) {
        gpus += uses[i].sum.gpus;
        code = node_compare(ledger, i, &uses[i], core, err);
    }
    mem_free(uses);
    struct core_counts counts;
    core_count(core, &counts);
    if (!code && (counts.tasks_live != live || counts.gpus_used != gpus ||
                  counts.nodes != ledger->nodes.count))
        code = err_fail(err, ERR_INTERNAL, "counts", "are %llu tasks, %llu GPUs, not %llu, %llu",
                        (unsigned long long)counts.tasks_live, (unsigned long long)counts.gpus_used,
                        (unsigned long long)live, (unsigned long long)gpus);
    return code;
}

int ledger_close(const struct ledger *ledger, struct err *err)
{
    for (size_t i = 0; i < ledger->attempts.count; i++) {
        const struct ledger_attempt *attempt = &ledger->attempts.items[i];
        if (!attempt->job)
            continue;
        const bool is_gang = ledger->jobs.items[attempt->job].plan->is_gang; /* may end before */
        const char *wrong = attempt->is_live                   ? "lives for ever"
                            : !attempt->is_created && !is_gang ? "was never created"
                            : !attempt->forgotten              ? "was never forgotten"
                                                               : NULL;
        if (wrong)
            return err_fail(err, ERR_INTERNAL, "attempt", "%zu of job %u %s", i, attempt->job,
                            wrong);
    }
    return 0;
}
