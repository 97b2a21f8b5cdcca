/* The server when its edges fail: a store that refuses, rows that cannot be read, an
 * engine that lies, a reload and a restart at a bad moment.
 *
 * Covers: src/server/admission.c, src/server/batch.c, src/server/batch_failure.c,
 * src/server/core_thread.c, src/server/leftover.c, src/server/mail.c, src/server/quarantine.c */
#include "../store/memory.h"
#include "faults.h"
#include "unit.h"
#include "world.h"

#include <sched.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/trial.h"
#include "engine/fake/fake.h"
#include "model/alert.h"
#include "server/state.h"
#include "store/read.h"
#include "sys/clock.h"
#include "sys/log.h"

static int setup_quiet(void **state)
{
    log_to(-1);
    int code =
        setup_with(state, "runMilliseconds: 600000", "scheduling: {finishedKeepSeconds: 0}\n");
    metric_await(*state, "skep_nodes", 1);
    return code;
}

/* Requests whose answers are waited for later. */
static void ask_act(struct world *world, struct wait *wait, enum service_action action,
                    struct job_id job)
{
    struct service_reply reply = wait_init(wait);

    assert_int_equal(
        world->service->act(world->service->context, action, "admin", job, reply, &world->err), 0);
}

static void ask_submit(struct world *world, struct wait *wait, const char *name)
{
    struct service_reply reply = wait_init(wait);

    assert_int_equal(
        ask_submission(world,
                       (struct service_submission){.source = text_of(job_text(world, name, ""))},
                       reply),
        0);
}

static void ask_change(struct world *world, struct wait *wait)
{
    struct store_change change = {.kind = CHANGE_SETTING, .setting = {"test", TEXT("x")}};
    struct service_reply reply = wait_init(wait);

    assert_int_equal(world->service->change(world->service->context, &change, reply, &world->err),
                     0);
}

/* From here on until round_end all that is asked is one round of the core thread. */
static void round_begin(struct world *world, struct wait *first)
{
    commits_hold();
    ask_change(world, first);
    commits_await_held();
}

static void round_end(struct wait *first)
{
    commits_release();
    assert_int_equal(wait_for(first), 0);
}

static bool is_writable(struct world *world)
{
    struct service_check checks[SERVICE_CHECKS_MAX];

    world->service->ready(world->service->context, checks);
    return checks[0].is_ok;
}

/* All is well, and what stands behind the named check holds these words. */
static bool is_ready_with(struct world *world, const char *name, const char *words)
{
    struct service_check checks[SERVICE_CHECKS_MAX];
    size_t count = world->service->ready(world->service->context, checks);
    bool has_words = false;

    for (size_t i = 0; i < count; i++) {
        if (!checks[i].is_ok)
            return false;
        has_words |= strcmp(checks[i].name, name) == 0 && strstr(checks[i].text, words);
    }
    return has_words;
}

static struct job_id stopped_job(struct world *world, const char *name)
{
    struct job_id job;

    assert_int_equal(submit(world, job_text(world, name, ""), &job), 0);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
    return job;
}

static struct job_id running_job(struct world *world, const char *name)
{
    struct job_id job;

    assert_int_equal(submit(world, job_text(world, name, ""), &job), 0);
    wait_until_tasks_run(world, job);
    return job;
}

/* The containers of a job of which all tasks run end now. */
static void containers_finish(struct world *world, struct job_id job)
{
    const struct store_tasks tasks = tasks_of(world, job);

    for (size_t i = 0; i < tasks.count; i++)
        assert_int_equal(
            engine_fake_finish(world_engine(world), tasks.items[i].attempt, &world->err), 0);
}

static void containers_await_none(struct world *world)
{
    while (engine_fake_container_count(world_engine(world)) > 0)
        sched_yield();
}

static void a_job_deleted_in_a_round_is_not_started_in_it(void **state)
{
    struct world *world = *state;
    struct job_id job = stopped_job(world, "a");
    struct wait first, deletion, start, again, other;

    round_begin(world, &first);
    ask_act(world, &deletion, SERVICE_DELETE, job);
    ask_act(world, &start, SERVICE_START, job);
    ask_act(world, &again, SERVICE_DELETE, job);
    ask_submit(world, &other, "b");
    round_end(&first);
    assert_int_equal(wait_for(&deletion), 0);
    assert_int_equal(wait_for(&start), ERR_NOT_FOUND);
    assert_int_equal(wait_for(&again), ERR_NOT_FOUND);
    assert_int_equal(wait_for(&other), 0);
    assert_int_equal(metric(world, "skep_store_commit_failures_total"), 0);
    /* what a round has deleted says nothing about the next */
    job = stopped_job(world, "c");
    assert_int_equal(act(world, SERVICE_START, job), 0);
}

/* Its row still says that it waits when the start is taken. */
static void a_job_stopped_in_a_round_is_started_in_it(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct wait first, stop, start, other, deletion, gone;

    world_stop(world);
    world->engine = "nodes: 1, cpu: 2, runMilliseconds: 600000";
    world_start(world);
    running_job(world, "fills");
    assert_int_equal(submit(world, job_text(world, "waits", ""), &job), 0);
    round_begin(world, &first);
    ask_act(world, &stop, SERVICE_STOP, job);
    ask_act(world, &start, SERVICE_START, job);
    ask_submit(world, &other, "b");
    round_end(&first);
    assert_int_equal(wait_for(&stop), 0);
    assert_int_equal(wait_for(&start), 0);
    assert_int_equal(wait_for(&other), 0);
    assert_int_equal(shown(world, job), PUBLIC_WAITING);

    round_begin(world, &first);
    ask_act(world, &stop, SERVICE_STOP, job);
    ask_act(world, &deletion, SERVICE_DELETE, job);
    ask_act(world, &gone, SERVICE_START, job);
    round_end(&first);
    assert_int_equal(wait_for(&stop), 0);
    assert_int_equal(wait_for(&deletion), 0);
    assert_int_equal(wait_for(&gone), ERR_NOT_FOUND);
}

static void what_one_request_cannot_have_stored_costs_nobody_else(void **state)
{
    struct world *world = *state;
    struct job_id running = running_job(world, "runs");
    struct wait first, before, bad, after, stop;

    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE INSERT ON jobs WHEN NEW.name = 'bad' "
                                "BEGIN SELECT RAISE(ABORT, 'no such name'); END"),
                     0);
    round_begin(world, &first);
    ask_submit(world, &before, "before");
    ask_submit(world, &bad, "bad");
    containers_finish(world, running);
    ask_submit(world, &after, "after");
    ask_act(world, &stop, SERVICE_STOP, (struct job_id){99});
    round_end(&first);
    assert_int_equal(wait_for(&before), 0);
    assert_int_equal(wait_for(&bad), ERR_INTERNAL);
    assert_non_null(strstr(bad.text, "no such name"));
    assert_int_equal(wait_for(&after), 0);
    assert_int_equal(wait_for(&stop), ERR_NOT_FOUND);
    assert_true(is_writable(world));
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 1);
    wait_until(world, running, PUBLIC_SUCCEEDED);
    wait_until_tasks_run(world, before.answer.job);
    wait_until_tasks_run(world, after.answer.job);
    assert_int_equal(after.answer.job.v, before.answer.job.v + 1); /* `bad` had no number */
    /* also when it comes alone */
    ask_submit(world, &bad, "bad");
    assert_int_equal(wait_for(&bad), ERR_INTERNAL);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    ask_submit(world, &bad, "bad");
    assert_int_equal(wait_for(&bad), 0);
}

static void a_fact_that_cannot_be_stored_is_set_aside(void **state)
{
    struct world *world = *state;
    struct job_id job = running_job(world, "runs");
    const struct attempt_id bad = tasks_of(world, job).items[0].attempt;

    assert_int_equal(sql(world, arena_format(&world->arena,
                                             "CREATE TRIGGER bad BEFORE INSERT ON task_attempts "
                                             "WHEN NEW.attempt = %llu "
                                             "BEGIN SELECT RAISE(ABORT, 'no'); END",
                                             (unsigned long long)bad.v)),
                     0);
    containers_finish(world, job);
    metric_await(world, "skep_events_set_aside_total", 1);
    assert_true(is_writable(world));
    assert_int_equal(shown(world, job), PUBLIC_RUNNING);
    assert_int_equal(metric(world, "skep_facts_kept"), 0);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    /* nothing of it is left behind: a stop finds no container and says so */
    containers_await_none(world);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
}

static void an_exit_is_stored_without_what_is_kept_beside_it(void **state)
{
    struct world *world = *state;
    struct job_id job;

    world_stop(world);
    world->engine = "runMilliseconds: 1, log: \"last words\\n\"";
    world_start(world);
    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE INSERT ON attempt_ends "
                                "BEGIN SELECT RAISE(ABORT, 'no'); END"),
                     0);
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
}

/* A job whose time limit has passed, and of which the store takes no row any more. */
static struct job_id bad_job(struct world *world)
{
    struct job_id job;

    assert_int_equal(
        submit(world, job_text(world, "bad", "extras: {timeLimitSeconds: 60}\n"), &job), 0);
    wait_until_tasks_run(world, job);
    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE UPDATE ON jobs WHEN NEW.name = 'bad' "
                                "BEGIN SELECT RAISE(ABORT, 'no such row'); END"),
                     0);
    return job;
}

static size_t stories_of_quarantine(struct world *world, struct job_id job)
{
    struct store_reader *reader;
    struct stories stories;

    assert_int_equal(store_reader_open(world->server->store, &reader, &world->err), 0);
    assert_int_equal(store_stories(reader, &(struct story_filter){.job = job, .is_warning = 1},
                                   false, &world->arena, &stories, &world->err),
                     0);
    size_t count = 0;
    for (size_t i = 0; i < stories.count; i++)
        count += strcmp(stories.items[i].record.reason, "Quarantined") == 0 &&
                 strstr(stories.items[i].record.message, "could not be stored") != NULL;
    store_reader_close(reader);
    return count;
}

/* Would a job of the whole only node have its place? */
static bool has_place(struct world *world)
{
    struct wait wait;
    struct core_trial trial;
    const struct service_reply reply = wait_init(&wait);
    const struct service_submission submission = {
        .source = TEXT("protocolVersion: 2\nname: whole\ntype: job\n"
                       "prerequisites: [{protocolVersion: 2, name: i, type: dockerimage, uri: x}]\n"
                       "taskRoles: {w: {dockerImage: i, commands: [run],\n"
                       "  resourcePerInstance: {cpu: 2, memoryMB: 1, gpu: 0}}}\n"),
        .user = world->user};
    assert_int_equal(world->service->trial(world->service->context, &submission, &world->problems,
                                           &world->arena, &trial, reply, &world->err),
                     0);
    assert_int_equal(wait_for(&wait), 0);
    return trial.is_placed;
}

/* It holds nothing any more, though its rows say that it runs; what would become of others is said
 * without it. */
static void a_dry_run_knows_which_job_is_left_out(void **state)
{
    struct world *world = *state;
    world_stop(world);
    world->engine = "nodes: 1, cpu: 2, runMilliseconds: 600000";
    world_start(world);
    assert_true(has_place(world));
    bad_job(world);
    assert_false(has_place(world));
    clock_pass(100000);
    metric_await(world, "skep_jobs_quarantined", 1);
    assert_true(has_place(world));
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
}

/* Whether an alert of this name stands. */
static bool is_alerted(struct world *world, const char *name)
{
    struct alert *alerts;
    size_t count;
    assert_int_equal(world->service->alerts(world->service->context, &world->arena, &alerts, &count,
                                            &world->err),
                     0);
    for (size_t i = 0; i < count; i++)
        if (strcmp(alerts[i].name, name) == 0 && !alerts[i].ended_ms)
            return true;
    return false;
}

/* Nobody has asked for anything: time alone makes the row that is refused. */
static void what_becomes_due_and_cannot_be_stored_ends_one_job(void **state)
{
    struct world *world = *state;
    struct job_id good = running_job(world, "good"), bad = bad_job(world), next;

    clock_pass(100000);
    assert_int_equal(submit(world, job_text(world, "next", ""), &next), 0);
    metric_await(world, "skep_jobs_quarantined", 1);
    assert_true(is_writable(world));
    wait_until_tasks_run(world, next);
    while (engine_fake_container_count(world_engine(world)) > 4) /* those of the others */
        sched_yield();
    assert_int_equal(stories_of_quarantine(world, bad), 0); /* its rows are as they were */
    assert_int_equal(act(world, SERVICE_STOP, bad), ERR_CONFLICT);
    assert_int_equal(act(world, SERVICE_STOP, good), 0);
    wait_until(world, good, PUBLIC_STOPPED);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    assert_int_equal(metric(world, "skep_facts_kept"), 0);
    world_stop(world);
    world_start(world); /* what has taken its place is no contradiction */
    assert_int_equal(metric(world, "skep_jobs_quarantined"), 1);
    assert_true(is_alerted(world, "JobsQuarantined"));
    /* once its rows are mended, the next start ends it */
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    world_stop(world);
    world_start(world);
    assert_int_equal(metric(world, "skep_jobs_quarantined"), 0);
    assert_false(is_alerted(world, "JobsQuarantined"));
    assert_int_equal(stories_of_quarantine(world, bad), 1);
    assert_int_equal(shown(world, bad), PUBLIC_FAILED);   /* its limit had passed */
    assert_int_equal(act(world, SERVICE_DELETE, bad), 0); /* as any other */
}

/* The store takes the end of the job, though not what had become due. */
static void its_rows_say_the_end_when_they_can(void **state)
{
    struct world *world = *state;
    struct job_id bad = bad_job(world);

    assert_int_equal(
        sql(world, arena_format(&world->arena,
                                "DROP TRIGGER bad; CREATE TRIGGER bad BEFORE UPDATE ON jobs WHEN "
                                "NEW.name = 'bad' AND NEW.state <> %d "
                                "BEGIN SELECT RAISE(ABORT, 'no such row'); END",
                                LIFE_COMPLETED)),
        0);
    clock_pass(100000);
    wait_until(world, bad, PUBLIC_FAILED);
    assert_int_equal(stories_of_quarantine(world, bad), 1);
    assert_int_equal(metric(world, "skep_jobs_quarantined"), 0);
    containers_await_none(world);
    assert_true(is_writable(world));
    assert_int_equal(act(world, SERVICE_DELETE, bad), 0);
}

/* The same comes with whatever is asked for next: who asks does not pay for it. */
static void who_comes_with_it_has_an_answer(void **state)
{
    struct world *world = *state;
    struct job_id bad = bad_job(world);
    struct wait first, request;

    round_begin(world, &first);
    clock_pass(100000);
    ask_submit(world, &request, "train");
    round_end(&first);
    assert_int_equal(wait_for(&request), 0);
    metric_await(world, "skep_jobs_quarantined", 1);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    wait_until_tasks_run(world, request.answer.job);
    assert_int_equal(act(world, SERVICE_DELETE, bad), ERR_CONFLICT);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
}

/* The disk fails while a round is stored one by one: facts are kept, requests are refused. */
static void a_disk_that_fails_in_between_keeps_facts(void **state)
{
    struct world *world = *state;
    struct job_id job = running_job(world, "runs");
    struct wait first, stored, refused;

    round_begin(world, &first);
    ask_submit(world, &stored, "stored");
    containers_finish(world, job);
    ask_submit(world, &refused, "refused");
    /* the held one, the round, a new core, its first mail; then nothing until the second probe */
    COMMITS(0, ERR_INTERNAL, 0, 0, ERR_UNAVAILABLE, ERR_UNAVAILABLE);
    round_end(&first);
    assert_int_equal(wait_for(&stored), 0);
    assert_int_equal(wait_for(&refused), ERR_UNAVAILABLE);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    wait_until_tasks_run(world, stored.answer.job);
}

/* The commit was stored although the database could not say so: who asked is refused, and the job
 * is there. */
static void a_job_whose_answer_was_lost_is_found_and_runs_once(void **state)
{
    static const struct memory_commit lost = {ERR_UNAVAILABLE, true};
    struct world *world = *state;
    struct memory *memory = memory_new();
    struct wait request;
    struct job_id job;
    size_t containers;

    world_stop(world);
    store_in_memory(memory);
    world_start(world);
    metric_await(world, "skep_nodes", 1);
    memory_script(memory, &lost, 1);
    ask_submit(world, &request, "lost");
    assert_int_equal(wait_for(&request), ERR_UNAVAILABLE);
    metric_await(world, "skep_store_writable", 1);
    assert_int_equal(
        store_job_find(world->server->store, TEXT("admin"), TEXT("lost"), &job, &world->err), 0);
    assert_int_equal(job.v, 1);
    assert_int_equal(submit(world, job_text(world, "lost", ""), &job), ERR_CONFLICT);
    assert_int_equal(submit(world, job_text(world, "next", ""), &job), 0);
    assert_int_equal(job.v, 2); /* its number is not given again */
    wait_until_tasks_run(world, (struct job_id){1});
    wait_until_tasks_run(world, job);
    containers = tasks_of(world, (struct job_id){1}).count + tasks_of(world, job).count;
    assert_int_equal(engine_fake_container_count(world_engine(world)), containers);
    world_stop(world);
    store_in_memory(NULL);
    memory_free(memory);
    world_start(world);
}

static void a_reload_waits_for_the_disk(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct wait request;

    COMMITS(ERR_UNAVAILABLE, ERR_UNAVAILABLE, ERR_UNAVAILABLE); /* the request's, and two probes */
    ask_submit(world, &request, "refused");
    assert_int_equal(wait_for(&request), ERR_UNAVAILABLE);
    server_reload(world->server, config_of(world, "scheduling: {policy: first-fit}\n"));
    metric_await(world, "skep_facts_kept", 1);
    metric_await(world, "skep_facts_kept", 0);
    metric_await(world, "skep_store_writable", 1);
    /* by HiveD there would be no such virtual cluster */
    assert_int_equal(submit(world, job_text(world, "a", "defaults: {virtualCluster: any}\n"), &job),
                     0);
}

static void a_reload_that_the_core_refuses_changes_nothing(void **state)
{
    struct world *world = *state;
    struct server_config *config = config_of(world, "scheduling: {finishedKeepSeconds: 9}\n");
    struct job_id job;

    config->core.policy = "no such policy";
    server_reload(world->server, config);
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    /* a core made anew is one of the configuration in force */
    COMMITS(ERR_UNAVAILABLE);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_SETTING,
                                                         .setting = {"test", TEXT("x")}}),
                     ERR_UNAVAILABLE);
    metric_await(world, "skep_store_writable", 1);
    assert_int_equal(submit(world, job_text(world, "b", ""), &job), 0);
}

/* The container of a failed task, held for debugging. */
static struct attempt_id held_attempt(struct world *world)
{
    struct job_id job;

    world_stop(world);
    world->engine = "runMilliseconds: 1, exitCode: 3";
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "held", "extras: {debug: true}\n"), &job), 0);
    wait_until(world, job, PUBLIC_FAILED);
    const struct store_tasks tasks = tasks_of(world, job);
    for (size_t i = 0; i < tasks.count; i++)
        if (tasks.items[i].is_held)
            return tasks.items[i].attempt;
    fail_msg("no container is held");
    return (struct attempt_id){0};
}

/* Everything that was asked of the core thread and of the launcher before is done: the first answer
 * may come in the midst of the round that does it, the second only in a later one. */
static void settle(struct world *world)
{
    struct wait wait;

    for (int i = 0; i < 2; i++) {
        ask_change(world, &wait);
        assert_int_equal(wait_for(&wait), 0);
    }
    metric_await(world, "skep_commands_waiting", 0);
}

static void tell_end(struct world *world, struct attempt_id attempt, const struct exit_report *exit)
{
    struct engine_sink sink = server_sink(world->server, 0);

    sink.post(
        sink.context,
        &(struct engine_event){
            .kind = ENGINE_EXITED, .attempt = attempt, .exit = exit, .reason = "", .message = ""});
}

static void tell_exit(struct world *world, struct attempt_id attempt)
{
    tell_end(world, attempt,
             &(struct exit_report){
                 .exit_code = 3, .is_user_command = true, .reason = "", .message = ""});
}

static void a_container_stays_while_nobody_knows_whether_it_is_held(void **state)
{
    struct world *world = *state;
    struct attempt_id held = held_attempt(world);
    size_t before;

    settle(world);
    before = engine_fake_container_count(world_engine(world));
    assert_true(before >= 1);
    /* told again; first its row cannot be read, then it says that it is held */
    attempts_unreadable(ERR_IO);
    tell_exit(world, held);
    settle(world);
    assert_int_equal(world->server->core.leftovers.count, 1);
    assert_int_equal(engine_fake_container_count(world_engine(world)), before);
    server_reload(world->server, config_of(world, "")); /* a round of upkeep, for nothing yet */
    settle(world);
    assert_int_equal(world->server->core.leftovers.count, 1);
    attempts_unreadable(0);
    server_reload(world->server, config_of(world, ""));
    settle(world);
    assert_int_equal(world->server->core.leftovers.count, 0);
    assert_int_equal(engine_fake_container_count(world_engine(world)), before);
}

static void what_nobody_holds_goes_once_that_is_known(void **state)
{
    struct world *world = *state;
    struct job_id job = stopped_job(world, "a");
    const struct attempt_id attempt = tasks_of(world, job).items[0].attempt;

    attempts_unreadable(ERR_CORRUPT);
    tell_exit(world, attempt);
    settle(world);
    assert_int_equal(world->server->core.leftovers.count, 1);
    attempts_unreadable(0);
    server_reload(world->server, config_of(world, ""));
    settle(world);
    assert_int_equal(world->server->core.leftovers.count, 0);
    containers_await_none(world);
}

/* Its row says so, but the job has been started again: the row is of the attempt before. */
static void an_attempt_before_the_jobs_holds_nothing(void **state)
{
    struct world *world = *state;
    const struct attempt_id held = held_attempt(world);

    settle(world);
    tell_exit(world, held);
    settle(world);
    const size_t before = engine_fake_container_count(world_engine(world));
    assert_true(before >= 1);
    assert_int_equal(sql(world, "UPDATE jobs SET attempt = attempt + 1"), 0);
    tell_exit(world, held);
    settle(world);
    while (engine_fake_container_count(world_engine(world)) >= before)
        sched_yield();
    assert_int_equal(engine_fake_container_count(world_engine(world)), before - 1);
}

/* Those that wait for a webhook that is away. */
static struct store_notices messages(struct world *world)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_notices rows;
    assert_int_equal(store_notices(reader, 100, &world->arena, &rows, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    return rows;
}

static void a_message_that_cannot_be_made_hinders_nobody(void **state)
{
    struct world *world = *state;
    world_stop(world);
    world->extra = "notifications: {webhooks: [{name: ops, url: 'http://127.0.0.1:9/', events: "
                   "[stopped]}]}\n";
    world_start(world);
    const struct job_id unknown = running_job(world, "unknown"),
                        later = running_job(world, "later");
    world_stop(world); /* of what was before, the store alone knows now */
    jobs_unreadable(ERR_UNAVAILABLE);
    world_start(world);
    assert_int_equal(act(world, SERVICE_STOP, unknown), 0);
    wait_until(world, unknown, PUBLIC_STOPPED);
    jobs_unreadable(0);
    const struct job_id known = running_job(world, "known");
    jobs_unreadable(ERR_CORRUPT);
    assert_int_equal(act(world, SERVICE_STOP, known), 0);
    wait_until(world, known, PUBLIC_STOPPED);
    jobs_unreadable(0);
    assert_int_equal(act(world, SERVICE_STOP, later), 0);
    wait_until(world, later, PUBLIC_STOPPED);
    const struct store_notices rows = messages(world);
    assert_int_equal(rows.count, 2);
    assert_int_equal(rows.items[0].notice.job.v, known.v);
    assert_int_equal(rows.items[1].notice.job.v, later.v);
    assert_true(atomic_load(&world->server->is_writable));
}

static double blame(struct world *world)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_nodes nodes;

    assert_int_equal(store_nodes(reader, &world->arena, &nodes, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    assert_int_equal(nodes.count, 1);
    return nodes.items[0].blame;
}

static void a_printed_line_blames_no_node(void **state)
{
    struct world *world = *state;
    const struct exit_report printed = {.exit_code = 1,
                                        .is_user_command = true,
                                        .reason = "",
                                        .message = "",
                                        .log_tail = TEXT("GPU is lost\n")};
    struct exit_report measured = printed;
    struct job_id job;

    for (int i = 0; i < 12; i++) {
        job = running_job(world, arena_format(&world->arena, "p%d", i));
        tell_end(world, tasks_of(world, job).items[0].attempt, &printed);
        assert_int_equal(act(world, SERVICE_STOP, job), 0);
    }
    assert_true(blame(world) == 0);
    measured.has_gpu_lost = true;
    job = running_job(world, "measured");
    tell_end(world, tasks_of(world, job).items[0].attempt, &measured);
    settle(world);
    assert_true(blame(world) > 0.9);
}

enum { HOUR_MS = 3600 * 1000 };
#define DAYS_MS(days) ((days)*INT64_C(86400000))

/* Its first attempt ends at once, and the next one comes after a second. */
static void submit_that_retries(struct world *world, struct job_id *job)
{
    world_stop(world);
    world->engine = "runMilliseconds: 20, exitCode: 200";
    world->extra = "scheduling: {retryPauseFirstSeconds: 1, retryPauseMaxSeconds: 1}\n";
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "retries", ""), job), 0);
}

static bool has_tried_again(struct world *world, const void *what)
{
    const struct store_tasks tasks = tasks_of(world, *(const struct job_id *)what);

    return tasks.count > 0 && tasks.items[0].attempt.v > 6; /* the third try of two tasks */
}

static void a_clock_that_is_set_back_holds_up_no_retry(void **state)
{
    struct world *world = *state;
    struct job_id job;

    submit_that_retries(world, &job);
    clock_set_by(-HOUR_MS);
    commit_await(world, has_tried_again, &job);
}

static void nor_when_the_server_starts_with_it(void **state)
{
    struct world *world = *state;
    struct job_id job;

    submit_that_retries(world, &job);
    world_stop(world);
    clock_set_by(-HOUR_MS);
    world_start(world);
    commit_await(world, has_tried_again, &job);
    /* nowhere in the log, over the restart as well */
    assert_int_equal(sql(world, "CREATE TEMP TABLE times (back CHECK (back = 0));"
                                "INSERT INTO times SELECT count(*) FROM event_log a "
                                "JOIN event_log b ON b.sequence = a.sequence + 1 "
                                "WHERE b.at_ms < a.at_ms"),
                     0);
}

static struct job_id limited_job(struct world *world)
{
    struct job_id job;

    assert_int_equal(
        submit(world, job_text(world, "limited", "extras: {timeLimitSeconds: 3600}\n"), &job), 0);
    wait_until_tasks_run(world, job);
    return job;
}

static void a_clock_that_is_set_forward_ends_nothing(void **state)
{
    struct world *world = *state;
    struct job_id job = limited_job(world);

    clock_set_by(2 * HOUR_MS);
    settle(world);
    assert_int_equal(shown(world, job), PUBLIC_RUNNING);
    assert_true(metric(world, "skep_clock_apart_seconds") > 7000);
    assert_true(is_ready_with(world, "clock", " 2 h behind the machine's clock"));
    assert_true(is_ready_with(world, "store", "written"));
    /* and the time after it goes on */
    clock_pass(2 * HOUR_MS);
    settle(world);
    wait_until(world, job, PUBLIC_FAILED);
}

static void a_clock_far_ahead_purges_nothing(void **state)
{
    struct world *world = *state;
    const char *retention = "retention: {jobDays: 30, eventLogDays: 30}\n";
    struct store_token token = {"t", "admin", true, 1, 0, 0};
    struct store_tokens tokens;
    struct store_reader *reader;
    struct job_id job = stopped_job(world, "old");

    settle(world);
    token.expires_ms = clock_unix_ms() + DAYS_MS(100);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_TOKEN_ADD, .token = token}),
                     0);
    clock_set_by(DAYS_MS(400));
    for (int restart = 0; restart < 3; restart++) {
        server_reload(world->server, config_of(world, retention));
        settle(world);
        assert_int_equal(shown(world, job), PUBLIC_STOPPED);
        reader = world->service->reader_get(world->service->context, &world->err);
        assert_int_equal(store_tokens(reader, TEXT("admin"), &world->arena, &tokens, &world->err),
                         0);
        world->service->reader_put(world->service->context, reader);
        assert_int_equal(tokens.count, 1);
        world_stop(world);
        world_start(world);
        metric_await(world, "skep_nodes", 1);
    }
    /* an hour later it is believed */
    clock_pass(HOUR_MS);
    server_reload(world->server, config_of(world, retention));
    settle(world);
    struct store_job row;
    assert_int_equal(
        store_job_summary(world->service->store, job, &world->arena, &row, &world->err),
        ERR_NOT_FOUND);
    reader = world->service->reader_get(world->service->context, &world->err);
    assert_int_equal(store_tokens(reader, TEXT("admin"), &world->arena, &tokens, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    assert_int_equal(tokens.count, 0);
}

static void tell_node(struct world *world, const char *name, bool is_healthy)
{
    const struct node_facts node = {.name = name,
                                    .address = "127.0.0.1",
                                    .gpu_type = "",
                                    .cpu = 1,
                                    .memory_mib = 1000,
                                    .reason = is_healthy ? NULL : "its disk is full",
                                    .is_healthy = is_healthy};
    struct engine_sink sink = server_sink(world->server, 0);

    sink.post(sink.context, &(struct engine_event){
                                .kind = ENGINE_NODE, .node = &node, .reason = "", .message = ""});
}

static struct node_record node_named(struct world *world, const char *name)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_nodes nodes;

    assert_int_equal(store_nodes(reader, &world->arena, &nodes, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    for (size_t i = 0; i < nodes.count; i++)
        if (strcmp(nodes.items[i].facts.name, name) == 0)
            return nodes.items[i];
    fail_msg("no node %s", name);
    return (struct node_record){0};
}

/* Of the machines in the rows, those that the engine has not spoken of for a minute are gone, and
 * no others. */
/* The thread that sends looks at them after each commit that has one. */
static void nor_does_it_drop_messages(void **state)
{
    struct world *world = *state;
    world_stop(world);
    world->extra = "notifications: {webhooks: [{name: ops, url: 'http://127.0.0.1:9/', events: "
                   "[stopped]}]}\n";
    world_start(world);
    stopped_job(world, "old");
    metric_await(world, "skep_notices_waiting", 1);
    clock_set_by(DAYS_MS(400));
    stopped_job(world, "new");
    metric_await(world, "skep_notices_waiting", 2);
    assert_int_equal(metric(world, "skep_notices_dropped_total"), 0);
    assert_int_equal(messages(world).count, 2);
}

/* By the same time engines remove what is old. */
static void nor_do_engines_believe_it(void **state)
{
    struct world *world = *state;
    const struct engine_sink sink = server_sink(world->server, 0);
    const int64_t before_ms = sink.trusted_ms(sink.context);
    assert_true(before_ms <= clock_unix_ms() && clock_unix_ms() - before_ms < DAYS_MS(1));
    clock_set_by(DAYS_MS(400));
    for (int restart = 0; restart < 2; restart++) {
        stopped_job(world, restart ? "after" : "before");
        const struct engine_sink now = server_sink(world->server, 0);
        assert_true(now.trusted_ms(now.context) - before_ms < DAYS_MS(1));
        world_stop(world);
        world_start(world);
        metric_await(world, "skep_nodes", 1);
    }
    clock_pass(HOUR_MS);
    stopped_job(world, "later");
    const struct engine_sink later = server_sink(world->server, 0);
    assert_true(later.trusted_ms(later.context) - before_ms > DAYS_MS(399));
}

static void machines_that_nobody_speaks_of_are_lost(void **state)
{
    struct world *world = *state;

    tell_node(world, "gone", true);
    tell_node(world, "sick", false);
    settle(world);
    assert_true(node_named(world, "gone").facts.is_healthy);
    assert_false(node_named(world, "sick").facts.is_healthy);
    assert_string_equal(node_named(world, "sick").facts.reason, "its disk is full");
    world_stop(world);
    world_start(world);
    tell_node(world, "sick", true);
    settle(world);
    server_reload(world->server, config_of(world, "")); /* a round of upkeep */
    settle(world);
    assert_false(node_named(world, "gone").is_lost);
    world->server->core.begin_ms -= UPKEEP_MS;
    world->server->engines.items[0].open_ms -= UPKEEP_MS;
    server_reload(world->server, config_of(world, ""));
    settle(world);
    assert_true(node_named(world, "gone").is_lost);
    assert_false(node_named(world, "sick").is_lost);
    assert_true(node_named(world, "sick").facts.is_healthy);
    assert_false(node_named(world, "fake0").is_lost);
}

/* Memory of a requester, of which nothing is left when he has asked. */
struct lent {
    char *items[16];
    size_t count;
};

static char *lend(struct lent *lent, const char *string)
{
    assert_true(lent->count < COUNT_OF(lent->items));
    return lent->items[lent->count++] = mem_copy(string);
}

static void lent_spoil(struct lent *lent)
{
    while (lent->count > 0) {
        char *string = lent->items[--lent->count];
        memset(string, '?', strlen(string));
        mem_free(string);
    }
}

/* Whoever asks may go before the core thread takes what he asked: all of it is copied. */
static void what_is_asked_is_copied(void **state)
{
    struct world *world = *state;
    struct lent lent = {0};
    struct wait first, of_group, of_user;
    struct store_user user;
    struct store_group group;
    struct store_members members;

    round_begin(world, &first);
    const char **clusters = mem_zero(1, sizeof *clusters);
    struct store_member *groups = mem_zero(1, sizeof *groups);
    clusters[0] = lend(&lent, "vc1");
    groups[0].name = lend(&lent, "team");
    struct store_change change = {.kind = CHANGE_GROUP_ADD,
                                  .group = {.name = lend(&lent, "team"),
                                            .description = lend(&lent, "of red"),
                                            .external_name = lend(&lent, "cn=team"),
                                            .extension_json = lend(&lent, "{\"a\":1}"),
                                            .virtual_clusters = {clusters, 1}}};
    assert_int_equal(
        world->service->change(world->service->context, &change, wait_init(&of_group), &world->err),
        0);
    change = (struct store_change){.kind = CHANGE_USER_ADD,
                                   .user = {.name = lend(&lent, "dora"),
                                            .password_hash = lend(&lent, "hash"),
                                            .email = lend(&lent, "dora@example.org"),
                                            .groups = {groups, 1},
                                            .virtual_clusters = {clusters, 1},
                                            .extension_json = lend(&lent, "{\"b\":2}")}};
    assert_int_equal(
        world->service->change(world->service->context, &change, wait_init(&of_user), &world->err),
        0);
    lent_spoil(&lent);
    memset(clusters, 0, sizeof *clusters);
    memset(groups, 0, sizeof *groups);
    mem_free(clusters);
    mem_free(groups);
    round_end(&first);
    assert_int_equal(wait_for(&of_group), 0);
    assert_int_equal(wait_for(&of_user), 0);
    struct store_reader *rows = world->service->reader_get(world->service->context, &world->err);
    assert_int_equal(store_group(rows, TEXT("team"), &world->arena, &group, &members, &world->err),
                     0);
    assert_string_equal(group.description, "of red");
    assert_string_equal(group.external_name, "cn=team");
    assert_string_equal(group.extension_json, "{\"a\":1}");
    assert_int_equal(group.virtual_clusters.count, 1);
    assert_string_equal(group.virtual_clusters.items[0], "vc1");
    assert_int_equal(store_user(rows, TEXT("dora"), &world->arena, &user, &world->err), 0);
    assert_string_equal(user.password_hash, "hash");
    assert_string_equal(user.email, "dora@example.org");
    assert_string_equal(user.extension_json, "{\"b\":2}");
    assert_int_equal(user.virtual_clusters.count, 1);
    assert_string_equal(user.virtual_clusters.items[0], "vc1");
    assert_int_equal(user.groups.count, 1);
    assert_string_equal(user.groups.items[0].name, "team");
    world->service->reader_put(world->service->context, rows);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup_quiet, teardown_faults)
static const struct CMUnitTest tests[] = {
    WORLD(a_job_deleted_in_a_round_is_not_started_in_it),
    WORLD(a_job_stopped_in_a_round_is_started_in_it),
    WORLD(what_one_request_cannot_have_stored_costs_nobody_else),
    WORLD(a_fact_that_cannot_be_stored_is_set_aside),
    WORLD(an_exit_is_stored_without_what_is_kept_beside_it),
    WORLD(what_becomes_due_and_cannot_be_stored_ends_one_job),
    WORLD(a_dry_run_knows_which_job_is_left_out),
    WORLD(its_rows_say_the_end_when_they_can),
    WORLD(who_comes_with_it_has_an_answer),
    WORLD(a_disk_that_fails_in_between_keeps_facts),
    WORLD(a_job_whose_answer_was_lost_is_found_and_runs_once),
    WORLD(a_reload_waits_for_the_disk),
    WORLD(a_reload_that_the_core_refuses_changes_nothing),
    WORLD(a_container_stays_while_nobody_knows_whether_it_is_held),
    WORLD(what_nobody_holds_goes_once_that_is_known),
    WORLD(an_attempt_before_the_jobs_holds_nothing),
    WORLD(a_message_that_cannot_be_made_hinders_nobody),
    WORLD(a_printed_line_blames_no_node),
    WORLD(a_clock_that_is_set_back_holds_up_no_retry),
    WORLD(nor_when_the_server_starts_with_it),
    WORLD(a_clock_that_is_set_forward_ends_nothing),
    WORLD(a_clock_far_ahead_purges_nothing),
    WORLD(nor_does_it_drop_messages),
    WORLD(nor_do_engines_believe_it),
    WORLD(machines_that_nobody_speaks_of_are_lost),
    WORLD(what_is_asked_is_copied),
};
UNIT_FILE(tests, world_begin, NULL);
