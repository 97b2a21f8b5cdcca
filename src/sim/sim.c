#include "sim/sim.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/random.h"
#include "core/core.h"
#include "core/output_text.h"
#include "core/plan.h"
#include "core/replay.h"
#include "engine/fake/fake.h"
#include "engine/translate.h"
#include "sim/actions.h"
#include "sim/ledger.h"
#include "sim/world.h"

enum {
    ORIGIN_MS = 1000000000,
    EVENTS_MAX = 20000, /* more is no progress */
    PASS_PAUSE_MS = 10, /* before a step of a long pass */
    /* Each interruption may let a gang begin anew that finds no place, and its steps are where the
     * next one comes. So a pass is interrupted so often, and is then left alone: it must come to
     * its end within so many steps, whatever has happened before. With the smallest slices a part
     * of a few tasks asks each starving job in some hundred steps, and up to twenty times: passes
     * of 12,000 steps have come to their end. */
    PASS_INTERRUPTIONS_MAX = 40,
    PASS_STEPS_MAX = 40000,
    DRAIN_MS = 4 * 3600000, /* after the last submission, before the rest is stopped */
};

static uint32_t events_max(const struct sim *sim)
{
    return sim->config->events_max ? sim->config->events_max : EVENTS_MAX;
}

/* --- engine → core --- */

/* A judge of its own: exits 1…9 are the user's, some of them transient or permanent. */
static struct completion judge(const struct exit_report *exit)
{
    if (exit->is_lost)
        return completion_of(CODE_NODE_LOST, "the node is lost");
    if (exit->is_missing)
        return completion_of(CODE_CONTAINER_DELETED, "the container is gone");
    if (exit->reason && *exit->reason)
        return completion_of(CODE_CREATION_UNKNOWN, "%s", exit->reason);
    struct completion completion = completion_of(exit->exit_code, "exited");
    if (exit->exit_code == 3)
        completion.attributes = EXIT_TRANSIENT;
    if (exit->exit_code == 4)
        completion.attributes = EXIT_TRANSIENT | EXIT_CONFLICT;
    if (exit->exit_code == 5)
        completion.attributes = EXIT_PERMANENT;
    return completion;
}

const char *sim_node_engine(const struct sim *sim, const char *node)
{
    static const char *const names[] = {"here", "there", "beyond"};
    const size_t engines =
        sim->config->engines < COUNT_OF(names) ? sim->config->engines : COUNT_OF(names);
    const char *end = node + strlen(node);
    uint32_t number = 0, place = 1;
    for (; end > node && end[-1] >= '0' && end[-1] <= '9'; place *= 10)
        number += (uint32_t)(*--end - '0') * place;
    return engines > 1 ? names[number % engines] : "";
}

static void sim_hear(void *context, const struct engine_event *event)
{
    struct sim *sim = context;
    struct sim_mail *mail = mem_zero(1, sizeof *mail);
    struct exit_meaning meaning;
    arena_init(&mail->arena);
    if (event->kind == ENGINE_EXITED)
        meaning = (struct exit_meaning){judge(event->exit),
                                        event->exit->is_missing || event->exit->is_lost};
    engine_event_translate(event, event->kind == ENGINE_EXITED ? &meaning : NULL, &mail->arena,
                           &mail->event);
    if (mail->event.kind == EVENT_NODE)
        mail->event.node.engine = sim_node_engine(sim, mail->event.node.name);
    *ARRAY_ADD(&sim->mails) = mail;
}

/* --- core → engine --- */

static void command_do(struct sim *sim, const struct command *command)
{
    struct err err = {0};
    struct engine *engine = sim->engine;
    switch (command->kind) {
    case COMMAND_CREATE: {
        const struct rows_job *job = rows_job(sim->rows, command->job.v - 1);
        struct plan *plan = plan_decode((struct text){job->plan, job->plan_length}, &err);
        assert(plan);
        struct container container = {
            .attempt = command->attempt,
            .job = plan->name,
            .role = plan->roles[command->task.role].name,
            .index = command->task.index,
            .node = command->node,
        };
        int code = engine->ops->create(engine, &container, &err);
        assert(!code);
        (void)code;
        plan_free(plan);
        break;
    }
    case COMMAND_KILL:
        if (engine->ops->kill(engine, command->attempt, command->grace_ms, command->reason,
                              command->is_held, &err) == ERR_NOT_FOUND) {
            struct exit_report exit = {.is_missing = true};
            sim_hear(sim, &(struct engine_event){
                              .kind = ENGINE_EXITED, .attempt = command->attempt, .exit = &exit});
        }
        break;
    case COMMAND_FORGET:
        engine->ops->forget(engine, command->attempt, &err); /* unknown when its node was lost */
        break;
    case COMMAND_WAKE:
        sim->wake_ms = command->at_ms - ORIGIN_MS;
        break;
    }
}

/* --- steps --- */

static void result_hash(struct sim *sim, struct text text)
{
    sim->result.output = text_hash(text, sim->result.output);
}

static void output_tell(struct sim *sim)
{
    if (sim->config->print || sim->config->is_replayed) {
        buf_clear(&sim->text);
        output_write(&sim->output, ORIGIN_MS, &sim->text);
        result_hash(sim, buf_as_text(&sim->text));
    }
    if (sim->config->print)
        sim->config->print(sim->config->context, buf_cstr(&sim->text));
    for (size_t i = 0; i < sim->output.commands.count; i++)
        if (sim->output.commands.items[i].kind == COMMAND_KILL &&
            strcmp(sim->output.commands.items[i].reason, "preempted") == 0)
            sim->result.preempted++;
}

static void event_log(struct sim *sim, const struct event *event)
{
    size_t at = sim->log_bytes.length;
    event_encode(event, &sim->log_bytes);
    ARRAY_ADD(&sim->log);
    sim->log.items[sim->log.count - 1].at = at;
    sim->log.items[sim->log.count - 1].length = sim->log_bytes.length - at;
}

/* What the step has given, entered and compared; the first mistake ends the world. */
static void books_check(struct sim *sim, bool is_restart)
{
    if (!sim->wrong)
        sim->wrong =
            ledger_enter(sim->ledger, &sim->output, ORIGIN_MS + sim->now_ms, is_restart, sim->err);
    if (!sim->wrong)
        sim->wrong = ledger_compare(sim->ledger, sim->core, sim->err);
    if (!sim->wrong)
        sim->wrong = core_check_places(sim->core, sim->err);
}

static int sim_step_once(struct sim *sim, struct event *event, uint32_t *job)
{
    int code = 0;
    event->now_ms = ORIGIN_MS + sim->now_ms;
    /* chance by time alone: a restart adds events, but not time */
    event->random = random_mix(sim->config->seed ^ (uint64_t)event->now_ms);
    event->request = ++sim->request;
    if (!event->user)
        event->user = "";
    event_log(sim, event);
    struct plan *plan = event->kind == EVENT_SUBMIT ? plan_copy(event->submit.plan) : NULL;

    output_clear(&sim->output);
    core_step(sim->core, event, &sim->output);
    core_check(sim->core);
    sim->result.events++;
    if (sim->output.answers.count) {
        code = sim->output.answers.items[0].code;
        if (job)
            *job = sim->output.answers.items[0].job.v;
        if (plan && !code) {
            rows_plan(sim->rows, sim->output.answers.items[0].job.v, plan);
            ledger_plan(sim->ledger, sim->output.answers.items[0].job.v, plan);
        }
    }
    plan_free(plan);
    books_check(sim, false);
    rows_apply(sim->rows, &sim->output);
    output_tell(sim);
    for (size_t i = 0; i < sim->output.commands.count; i++)
        if (!sim->loses_commands || sim->output.commands.items[i].kind == COMMAND_WAKE)
            command_do(sim, &sim->output.commands.items[i]);
    sim->result.cuts += sim->wake_ms <= sim->now_ms;
    return code;
}

int sim_step(struct sim *sim, struct event *event, uint32_t *job)
{
    const int code = sim_step_once(sim, event, job);
    uint64_t steps = 0;
    for (; sim->config->is_settled && sim->wake_ms <= sim->now_ms &&
           sim->result.events <= events_max(sim);
         steps++) {
        sim->wake_ms = INT64_MAX;
        sim_step_once(sim, &(struct event){.kind = EVENT_TIMER}, NULL);
    }
    if (steps > sim->result.longest)
        sim->result.longest = steps;
    return code;
}

static void mails_deliver(struct sim *sim)
{
    for (size_t i = 0; i < sim->mails.count; i++) { /* a step may add some */
        if (sim->result.events > events_max(sim))
            return; /* run() says so */
        struct sim_mail *mail = sim->mails.items[i];
        sim_step(sim, &mail->event, NULL);
        arena_release(&mail->arena);
        mem_free(mail);
        sim->mails.items[i] = NULL;
    }
    sim->mails.count = 0;
}

static void mails_lose(struct sim *sim)
{
    for (size_t i = 0; i < sim->mails.count; i++) {
        if (!sim->mails.items[i])
            continue;
        arena_release(&sim->mails.items[i]->arena);
        mem_free(sim->mails.items[i]);
    }
    sim->mails.count = 0;
}

/* --- restart --- */

static void reconcile(struct sim *sim)
{
    struct attempt_id *attempts;
    size_t count;
    struct err err = {0};
    int code = sim->engine->ops->list(sim->engine, &attempts, &count, &err);
    assert(!code);
    (void)code;
    for (size_t i = 0; i < count; i++) {
        if (core_attempt_is_live(sim->core, attempts[i]))
            continue;
        sim->engine->ops->kill(sim->engine, attempts[i], 0, "orphan", false, &err);
        sim->engine->ops->forget(sim->engine, attempts[i], &err);
    }
    mem_free(attempts);
}

/* A core of the rows, as each life of a server begins. */
static int core_begin(struct sim *sim)
{
    event_log(sim, &(struct event){.kind = EVENT_RESTORE,
                                   .now_ms = ORIGIN_MS + sim->now_ms,
                                   .user = "",
                                   .config = &sim->core_config});
    core_free(sim->core);
    sim->core = core_new(&sim->core_config, sim->err);
    if (!sim->core)
        return sim->err->code;
    if (sim->config->slice)
        core_slice_set(sim->core, sim->config->slice);
    output_clear(&sim->output);
    return rows_restore(sim->rows, sim->core, ORIGIN_MS + sim->now_ms, &sim->output, sim->err);
}

static int restart(struct sim *sim)
{
    uint64_t before = core_hash(sim->core);
    int code = core_begin(sim);
    if (code)
        return code;
    core_check(sim->core);
    sim->result.restarts++;
    bool is_quiet = sim->output.records.count == 0;
    uint64_t after = core_hash(sim->core);
    if (is_quiet && after != before)
        return err_fail(sim->err, ERR_INTERNAL, "restart", "the restored core differs at %lld ms",
                        (long long)sim->now_ms);
    books_check(sim, true);
    rows_apply(sim->rows, &sim->output);
    output_tell(sim);
    sim->wake_ms = INT64_MAX;
    for (size_t i = 0; i < sim->output.commands.count; i++)
        command_do(sim, &sim->output.commands.items[i]);
    reconcile(sim);
    return 0;
}

static bool pass_goes_on(const struct sim *sim)
{
    return sim->wake_ms <= sim->now_ms + PASS_PAUSE_MS;
}

/* Something comes between two steps of a pass. False: it is left alone by now. */
static bool pass_interrupt(struct sim *sim)
{
    if (!sim->config->has_interruptions || !pass_goes_on(sim))
        return true;
    if (sim->pass_interruptions >= PASS_INTERRUPTIONS_MAX)
        return false;
    sim->pass_interruptions++;
    sim->pass_steps = 0;
    return true;
}

static int maybe_restart(struct sim *sim)
{
    bool is_due = random_below(&sim->accident, 1000) < sim->config->restarts;
    if (!is_due || !pass_interrupt(sim))
        return 0;
    mails_lose(sim);
    return restart(sim);
}

/* The oracle of progress. */
static void wake_up(struct sim *sim)
{
    sim->wake_ms = INT64_MAX;
    sim_step(sim, &(struct event){.kind = EVENT_TIMER}, NULL);
    if (!pass_goes_on(sim)) {
        sim->pass_interruptions = sim->pass_steps = 0;
        return;
    }
    if (++sim->pass_steps > sim->result.pass_longest)
        sim->result.pass_longest = sim->pass_steps;
    if (sim->pass_steps > PASS_STEPS_MAX && !sim->wrong)
        sim->wrong = err_fail(sim->err, ERR_INTERNAL, "sim", "a pass has no end after %d steps",
                              PASS_STEPS_MAX);
}

/* Between two steps of a pass that goes on at once: the commonest places for a mistake. */
static int interrupt_random(struct sim *sim)
{
    const bool may_submit = sim->result.submitted + sim->result.refused < sim->config->jobs;
    sim->result.interruptions++;
    switch (random_below(&sim->accident, 6)) {
    case 0: /* the next step comes late */
        sim->now_ms += 1 + (int64_t)random_below(&sim->accident, 200);
        wake_up(sim);
        break;
    case 1:
        if (sim->config->has_faults)
            action_fault(sim);
        break;
    case 2:
        if (sim->config->has_requests)
            action_request(sim);
        break;
    case 3:
        if (may_submit)
            action_submit(sim);
        break;
    case 4: { /* the copy goes on as the original would */
        struct core *copy = core_copy(sim->core);
        core_free(sim->core);
        sim->core = copy;
        break;
    }
    default:
        if (!sim->config->restarts)
            break;
        mails_lose(sim);
        return restart(sim);
    }
    return 0;
}

static bool is_interrupted(struct sim *sim)
{
    return sim->config->has_interruptions && sim->wake_ms <= sim->now_ms && !sim->is_ending &&
           random_below(&sim->accident, 3) == 0 && pass_interrupt(sim);
}

/* --- the run --- */

static bool is_all_final(const struct sim *sim)
{
    struct core_counts counts;
    core_count(sim->core, &counts);
    return counts.jobs_live == 0;
}

/* The end: nodes come back, held containers go, some with their jobs, whoever still waits or runs
 * is stopped. */
static void ending_begin(struct sim *sim)
{
    char name[80];
    sim->is_ending = true;
    for (uint32_t i = 0; i < sim->config->node_count; i++) {
        snprintf(name, sizeof name, "%s%u",
                 sim->config->node_prefix ? sim->config->node_prefix : "fake", i);
        engine_fake_node_return(sim->engine, name, NULL);
        engine_fake_node_refuse(sim->engine, name, NULL, 0, NULL);
    }
    for (uint32_t id = 1; id <= rows_job_count(sim->rows); id++) {
        struct event event = {.kind = EVENT_STOP};
        event.job.v = id;
        sim_step(sim, &event, NULL);
        /* with its job, or by itself: if it still runs it is not deleted */
        event = (struct event){.kind = id % 2 ? EVENT_DELETE : EVENT_RELEASE};
        event.job.v = id;
        if (event.kind == EVENT_RELEASE || !rows_job(sim->rows, id - 1)->is_deleted)
            sim_step(sim, &event, NULL);
    }
    struct attempt_id *attempts; /* ends that were not told are told now */
    size_t count;
    sim->engine->ops->list(sim->engine, &attempts, &count, NULL);
    mem_free(attempts);
}

static int64_t next_ms(struct sim *sim)
{
    int64_t at = engine_fake_next_ms(sim->engine);
    if (sim->wake_ms < at)
        at = sim->wake_ms;
    if (sim->action_ms < at)
        at = sim->action_ms;
    return at;
}

static int stuck(struct sim *sim)
{
    for (size_t i = 0; i < rows_job_count(sim->rows); i++) {
        const struct rows_job *job = rows_job(sim->rows, i);
        if (job->id && job->state != LIFE_COMPLETED)
            return err_fail(sim->err, ERR_INTERNAL, "sim",
                            "nothing will happen, but job %u is %s: %.100s", job->id,
                            life_state_name(job->state), job->reason);
    }
    return err_fail(sim->err, ERR_INTERNAL, "sim", "nothing will happen, but the core is not done");
}

static int run_once(struct sim *sim, int64_t last_ms)
{
    int64_t at = next_ms(sim);
    if (!pass_goes_on(sim)) /* its last step may have been an event's */
        sim->pass_interruptions = sim->pass_steps = 0;
    if (!sim->is_ending && (at == INT64_MAX || at > last_ms)) {
        ending_begin(sim);
        mails_deliver(sim);
        return 0;
    }
    if (at == INT64_MAX)
        return stuck(sim);
    if (at > sim->now_ms)
        sim->now_ms = at;
    engine_fake_advance(sim->engine, sim->now_ms);
    int code = maybe_restart(sim);
    if (code)
        return code;
    mails_deliver(sim);
    if (is_interrupted(sim))
        return interrupt_random(sim);
    if (sim->wake_ms <= sim->now_ms)
        wake_up(sim);
    if (sim->action_ms > sim->now_ms)
        return 0;
    sim->action_ms = INT64_MAX;
    if (sim->result.submitted + sim->result.refused < sim->config->jobs) {
        /* sometimes the server dies between the commit and the commands */
        sim->loses_commands = random_below(&sim->accident, 1000) < sim->config->restarts;
        action_next(sim);
        if (sim->loses_commands) {
            sim->loses_commands = false;
            mails_lose(sim);
            return restart(sim);
        }
    } else {
        action_open_all(sim);
    }
    return 0;
}

/* Each that has ended is forgotten, at once or some steps later. */
static size_t containers_left(const struct sim *sim)
{
    return engine_fake_container_count(sim->engine);
}

static int run(struct sim *sim)
{
    int64_t last_ms = INT64_MAX;
    /* what was kept is given up in the last steps, whether its container is there or not */
    while (!sim->is_ending || !is_all_final(sim) || engine_fake_next_ms(sim->engine) != INT64_MAX ||
           pass_goes_on(sim)) {
        if (sim->action_ms == INT64_MAX && last_ms == INT64_MAX)
            last_ms = sim->now_ms + DRAIN_MS;
        int code = run_once(sim, last_ms);
        if (code || sim->wrong)
            return code ? code : sim->wrong;
        if (sim->result.events > events_max(sim))
            return err_fail(sim->err, ERR_INTERNAL, "sim", "no end after %u events",
                            events_max(sim));
    }
    return containers_left(sim) == 0
               ? 0
               : err_fail(sim->err, ERR_INTERNAL, "sim", "%zu containers are not forgotten",
                          containers_left(sim));
}

static int outcome_count(struct sim *sim)
{
    cleanup_buf struct buf outcome = BUF_INIT;
    for (size_t i = 0; i < rows_job_count(sim->rows); i++) {
        const struct rows_job *job = rows_job(sim->rows, i);
        bool is_final = job->state == LIFE_COMPLETED;
        if (!is_final)
            return err_fail(sim->err, ERR_INTERNAL, "sim", "job %u has not ended", job->id);
        sim->result.deleted += job->is_deleted;
        sim->result.retries += job->retries_user + job->retries_platform;
        if (job->code == CODE_STOP_REQUESTED)
            sim->result.stopped++;
        else if (job->code >= 0 && job->code == CODE_SUCCEEDED)
            sim->result.succeeded++;
        else
            sim->result.failed++;
        buf_format(&outcome, "%u %d %u %u;", job->id, job->code, job->retries_user, job->attempt);
    }
    sim->result.outcome = text_hash(buf_as_text(&outcome), 0);
    size_t open = rows_open_attempts(sim->rows);
    if (open)
        return err_fail(sim->err, ERR_INTERNAL, "sim", "%zu attempts of ended jobs have no end",
                        open);
    size_t left = engine_fake_container_count(sim->engine);
    if (left)
        return err_fail(sim->err, ERR_INTERNAL, "sim", "%zu containers are left", left);
    sim->result.attempts = rows_attempt_count(sim->rows);
    sim->result.end_ms = sim->now_ms;
    sim->result.hash = core_hash(sim->core);
    return 0;
}

/* The same events through a new core: the same state and the same words. */
static int replay(struct sim *sim)
{
    struct replay again;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    replay_init(&again);
    again.slice = sim->config->slice;
    uint64_t said = 0;
    int code = 0;
    for (size_t i = 0; i < sim->log.count && !code; i++) {
        struct event event;
        struct text bytes = {buf_cstr(&sim->log_bytes) + sim->log.items[i].at,
                             sim->log.items[i].length};
        code = event_decode(bytes, &arena, &event, sim->err);
        if (!code)
            code = replay_step(&again, &event, &sim->output, sim->err);
        if (code || (event.kind == EVENT_RESTORE && i == 0))
            continue;
        buf_clear(&sim->text);
        output_write(&sim->output, ORIGIN_MS, &sim->text);
        said = text_hash(buf_as_text(&sim->text), said);
        arena_clear(&arena);
    }
    if (!code && (core_hash(again.core) != sim->result.hash || said != sim->result.output))
        code = err_fail(sim->err, ERR_INTERNAL, "sim",
                        "the replay of %zu events in %llu lives differs", sim->log.count,
                        (unsigned long long)again.restores);
    replay_release(&again);
    return code;
}

static void sim_release(struct sim *sim)
{
    mails_lose(sim);
    if (sim->engine)
        sim->engine->ops->free(sim->engine);
    core_free(sim->core);
    rows_free(sim->rows);
    ledger_free(sim->ledger);
    output_release(&sim->output);
    ARRAY_FREE(&sim->mails);
    ARRAY_FREE(&sim->log);
    buf_release(&sim->log_bytes);
    buf_release(&sim->text);
}

int sim_run(const struct sim_config *config, struct sim_result *result, struct err *err)
{
    struct err unused;
    struct sim sim = {
        .config = config,
        .random = {config->seed},
        .accident = {~config->seed},
        .closing = {config->seed + 1},
        .rows = rows_new(),
        .ledger = ledger_new(),
        .wake_ms = INT64_MAX,
        .action_ms = 1,
        .err = err ? err : &unused,
    };
    output_init(&sim.output);
    core_config_default(&sim.core_config);
    sim.core_config.policy = config->policy;
    sim.core_config.starvation_after_s = config->starvation_s;
    if (config->placement_document)
        sim.core_config.placement_document = text_of(config->placement_document);
    struct engine_fake_config engine = {
        .node_prefix = config->node_prefix,
        .node_count = config->node_count,
        .cpu = config->cpu,
        .memory_mib = config->memory_mib,
        .gpu_count = config->gpu_count,
        .gpu_type = config->gpu_type,
        .gpus_per_numa = config->gpus_per_numa,
        .gpus_per_switch = config->gpus_per_switch,
        .create_ms = 10,
        .start_ms = 500,
        .run_ms = 20000,
        .is_time_virtual = true,
        .rules = action_rules,
        .rule_count = action_rule_count,
    };
    struct engine_sink sink = {.context = &sim, .post = sim_hear};
    int code = core_begin(&sim);
    if (!code)
        code = engine_fake_new(&engine, &sink, &sim.engine, sim.err);
    if (!code)
        code = run(&sim);
    if (!code)
        code = outcome_count(&sim);
    if (!code)
        code = ledger_close(sim.ledger, sim.err);
    if (!code && config->is_replayed)
        code = replay(&sim);
    if (result)
        *result = sim.result;
    sim_release(&sim);
    return code;
}
