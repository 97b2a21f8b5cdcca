/* An engine that refuses, tells twice, tells of strangers, or forgets to tell.
 *
 * Covers: src/server/alert_watch.c, src/server/engine_in.c, src/server/launch.c,
 * src/server/recover.c */
#include "faults.h"
#include "liar.h"
#include "unit.h"
#include "world.h"

#include <sched.h>

#include "base/err.h"
#include "engine/fake/fake.h"
#include "server/alert_watch.h"
#include "server/state.h"
#include "store/read.h"
#include "sys/clock.h"
#include "sys/log.h"

static const struct attempt_id stranger = {4711};

static int setup_lies(void **state)
{
    log_to(-1);
    int code = setup_with(state, "runMilliseconds: 600000",
                          "scheduling: {backoffMinSeconds: 1, backoffMaxSeconds: 1, "
                          "killGraceSeconds: 0}\n");
    metric_await(*state, "skep_nodes", 1);
    return code;
}

static int teardown_lies(void **state)
{
    faults_clear();
    int code = teardown(state);
    liar_clear();
    log_to(2);
    return code;
}

static void settle(struct world *world)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(change(world, (struct store_change){.kind = CHANGE_SETTING,
                                                             .setting = {"test", TEXT("x")}}),
                         0);
}

static void tell(struct world *world, enum engine_event_kind kind, struct attempt_id attempt,
                 int32_t exit_code)
{
    const struct exit_report exit = {
        .exit_code = exit_code, .is_user_command = true, .reason = "", .message = ""};
    struct engine_sink sink = server_sink(world->server, 0);

    sink.post(sink.context,
              &(struct engine_event){
                  .kind = kind, .attempt = attempt, .exit = &exit, .reason = "", .message = ""});
}

static void await(unsigned (*count)(struct attempt_id attempt), struct attempt_id attempt,
                  unsigned wanted)
{
    while (count(attempt) < wanted)
        sched_yield();
    assert_int_equal(count(attempt), wanted);
}

static struct job_id running_job_with(struct world *world, const char *name, const char *more)
{
    struct job_id job;

    assert_int_equal(submit(world, job_text(world, name, more), &job), 0);
    wait_until_tasks_run(world, job);
    return job;
}

static struct job_id running_job(struct world *world, const char *name)
{
    return running_job_with(world, name, "");
}

static struct attempt_id attempt_of(struct world *world, struct job_id job, size_t task)
{
    const struct store_tasks tasks = tasks_of(world, job);

    assert_true(task < tasks.count);
    return tasks.items[task].attempt;
}

/* A place that refuses is no failure: no budget pays, though this job has none. */
static void a_refusal_costs_nothing(void **state)
{
    struct world *world = *state;
    struct job_id job = running_job_with(world, "a", "jobRetryCount: 0\n");
    const struct attempt_id first = attempt_of(world, job, 0);
    struct store_job row;

    tell(world, ENGINE_REFUSED, first, 0);
    await(liar_forgets, first, 1);
    settle(world);
    wait_until_tasks_run(world, job);
    assert_true(attempt_of(world, job, 0).v > first.v);
    assert_int_equal(
        store_job_summary(world->service->store, job, &world->arena, &row, &world->err), 0);
    assert_int_equal(row.record.attempt, 1);
    assert_int_equal(row.record.retries_user, 0);
    assert_int_equal(row.record.retries_platform, 1);
    tell(world, ENGINE_REFUSED, first, 0); /* told again */
    await(liar_forgets, first, 2);
    assert_int_equal(shown(world, job), PUBLIC_RUNNING);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
}

/* A busy engine is asked again; one that never takes it ends the job. */
static void what_the_engine_refuses_for_now_is_tried_again(void **state)
{
    static const int codes[] = {ERR_BUSY, ERR_UNAVAILABLE, ERR_IO};
    struct world *world = *state;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        liar_refuse(2, codes[i]);
        struct job_id job = running_job(world, arena_format(&world->arena, "j%zu", i));
        assert_int_equal(act(world, SERVICE_STOP, job), 0);
        wait_until(world, job, PUBLIC_STOPPED);
    }
    assert_int_equal(metric(world, "skep_create_failures_total"), 6);
}

/* The refusal waits for the disk, and a core that is made anew asks for the attempt again first. */
static void what_was_refused_is_not_created_after_a_full_disk(void **state)
{
    struct world *world = *state;

    liar_refuse(1, ERR_BUSY);
    COMMITS(0, ERR_UNAVAILABLE);
    struct job_id job = running_job_with(world, "a", "extras: {gangAllocation: false}\n");
    settle(world);
    assert_int_equal(tasks_of(world, job).count, 2);
    assert_int_equal(engine_fake_container_count(world_engine(world)), 2);
    assert_int_equal(metric(world, "skep_create_failures_total"), 1);
}

static void what_it_refuses_for_good_ends_the_job(void **state)
{
    static const int codes[] = {ERR_INVALID, ERR_TOO_BIG, ERR_UNSUPPORTED};
    struct world *world = *state;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct job_id job;
        liar_refuse(1000, codes[i]);
        assert_int_equal(
            submit(world, job_text(world, arena_format(&world->arena, "j%zu", i), ""), &job), 0);
        wait_until(world, job, PUBLIC_FAILED);
        assert_int_equal(tasks_of(world, job).items[0].completion.code, CODE_CREATION_PERMANENT);
        liar_refuse(0, 0);
    }
}

/* The store takes no row of the ends of its tries. */
static void ends_refuse(struct world *world, struct job_id job)
{
    assert_int_equal(sql(world, arena_format(&world->arena,
                                             "CREATE TRIGGER bad BEFORE INSERT ON task_attempts "
                                             "WHEN NEW.job = %u "
                                             "BEGIN SELECT RAISE(ABORT, 'no'); END",
                                             job.v)),
                     0);
}

/* Its job is left out, and no creation is tried again: neither now nor after a start, until the
 * store takes the row. */
static void it_is_left_out(struct world *world, struct job_id job)
{
    metric_await(world, "skep_jobs_quarantined", 1);
    for (size_t i = 0; i < 2; i++) /* the last that the engine is told of them */
        await(liar_kills, attempt_of(world, job, i), 1);
    const unsigned creates = liar_creates();
    for (int life = 0; life < 2; life++) {
        for (int i = 0; i < 10; i++) {
            settle(world);
            metric_await(world, "skep_commands_waiting", 0);
            assert_int_equal(metric(world, "skep_events_set_aside_total"), life == 0);
            assert_int_equal(liar_creates(), creates);
        }
        assert_int_equal(warnings(world, job, "EndNotStored"), 1);
        assert_int_equal(act(world, SERVICE_STOP, job), ERR_CONFLICT);
        while (engine_fake_container_count(world_engine(world)) > 0)
            sched_yield();
        if (life == 0) {
            world_stop(world);
            world_start(world);
        }
    }
    quarantine_leave(world, job, PUBLIC_STOPPED);
    assert_int_equal(act(world, SERVICE_DELETE, job), 0);
}

static void a_creation_that_failed_is_not_tried_for_ever(void **state)
{
    struct world *world = *state;
    struct job_id job;
    char source[LIAR_TEXT_SIZE];

    liar_refuse(1, ERR_INVALID);
    liar_hold();
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    liar_await_held();
    ends_refuse(world, job);
    liar_release(source);
    it_is_left_out(world, job);
}

/* A program that has run, and of which only the order to run it is stored, does not run again. */
static void what_has_ended_is_not_created_again(void **state)
{
    struct world *world = *state;
    struct job_id job;

    liar_refuse(1000, 0);
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    while (liar_creates() < 2)
        sched_yield();
    ends_refuse(world, job);
    tell(world, ENGINE_EXITED, attempt_of(world, job, 0), 0);
    await(liar_forgets, attempt_of(world, job, 0), 1); /* by now the engine would run it again */
    it_is_left_out(world, job);
}

static void every_exit_is_forgotten_once_it_is_stored(void **state)
{
    struct world *world = *state;
    struct job_id job = running_job(world, "a");
    const struct attempt_id first = attempt_of(world, job, 0), second = attempt_of(world, job, 1);

    tell(world, ENGINE_EXITED, first, 0);
    await(liar_forgets, first, 1);
    assert_int_equal(liar_forgets(second), 0);
    /* told again, and by one that the server never heard of */
    tell(world, ENGINE_EXITED, first, 0);
    await(liar_forgets, first, 2);
    tell(world, ENGINE_EXITED, stranger, 0);
    await(liar_forgets, stranger, 1);
    settle(world);
    assert_int_equal(shown(world, job), PUBLIC_RUNNING);
    tell(world, ENGINE_EXITED, second, 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    await(liar_forgets, second, 1);
}

static void what_is_told_after_the_end_changes_nothing(void **state)
{
    struct world *world = *state;
    struct job_id job = running_job(world, "a");
    const struct attempt_id first = attempt_of(world, job, 0);

    tell(world, ENGINE_EXITED, first, 0);
    tell(world, ENGINE_STARTED, first, 0);
    tell(world, ENGINE_PREPARING, first, 0);
    tell(world, ENGINE_EXITED, first, 3);
    tell(world, ENGINE_STARTED, stranger, 0);
    settle(world);
    assert_int_equal(tasks_of(world, job).items[0].completion.code, 0);
    assert_int_equal(tasks_of(world, job).items[0].state, LIFE_COMPLETED);
    tell(world, ENGINE_EXITED, attempt_of(world, job, 1), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
}

static void a_start_ends_strangers_and_adopts_its_own(void **state)
{
    struct world *world = *state;
    /* no gang: the end of the lost task must not end the other one */
    struct job_id job = running_job_with(world, "a", "extras: {gangAllocation: false}\n");
    const struct attempt_id live = attempt_of(world, job, 0), lost = attempt_of(world, job, 1);

    world_stop(world);
    liar_clear();
    liar_list((struct attempt_id[]){stranger, live}, 2);
    world_start(world);
    await(liar_kills, stranger, 1);
    /* the launcher may be quicker than the thread that goes on comparing */
    metric_await(world, "skep_orphans_total", 1);
    metric_await(world, "skep_adopted_total", 1);
    metric_await(world, "skep_lost_total", 1);
    assert_int_equal(liar_kills(live), 0);
    await(liar_forgets, lost, 1); /* its end is stored */
}

/* What is left of a grace goes by the time that has passed, also when the clock was set meanwhile.
 */
static void a_start_repeats_a_kill_with_what_is_left_of_its_grace(void **state)
{
    enum { GRACE_MS = 3600 * 1000, HOUR_MS = 3600 * 1000 };
    struct world *world = *state;
    char reason[LIAR_TEXT_SIZE];
    uint32_t left_ms;

    world_stop(world);
    world->extra = "scheduling: {killGraceSeconds: 3600}\n";
    world_start(world);
    struct job_id job = running_job(world, "a");
    const struct attempt_id attempt = attempt_of(world, job, 0), other = attempt_of(world, job, 1);
    liar_spare();
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    await(liar_kills, attempt, 1);
    assert_int_equal(liar_grace_ms(attempt, reason), GRACE_MS);
    clock_set_by(2 * HOUR_MS);
    clock_pass(HOUR_MS / 2);
    world_stop(world);
    liar_clear();
    liar_spare();
    liar_list((struct attempt_id[]){attempt, other}, 2);
    world_start(world);
    await(liar_kills, attempt, 1);
    left_ms = liar_grace_ms(attempt, reason);
    assert_true(left_ms <= GRACE_MS / 2 && left_ms > GRACE_MS / 2 - WAIT_S * 1000);
}

/* What is created may have been given the devices that a stranger still holds. */
static void a_start_ends_strangers_before_it_creates(void **state)
{
    struct world *world = *state;
    struct job_id old = running_job(world, "old"), job;
    const struct attempt_id orphan = attempt_of(world, old, 0);

    assert_int_equal(act(world, SERVICE_STOP, old), 0);
    wait_until(world, old, PUBLIC_STOPPED);
    const unsigned before = liar_creates();
    liar_refuse(2, 0);
    assert_int_equal(submit(world, job_text(world, "new", ""), &job), 0);
    while (liar_creates() < before + 2)
        sched_yield();
    world_stop(world);
    liar_clear();
    liar_list(&orphan, 1);
    world_start(world);
    wait_until_tasks_run(world, job);
    assert_int_equal(liar_creates(), 2); /* the same again: nobody knew whether they were made */
    assert_int_equal(liar_kills(orphan), 1);
    assert_int_equal(liar_creates_before(orphan), 0);
}

/* The container of a failed task, held for debugging. */
static struct attempt_id held_attempt(struct world *world)
{
    struct job_id job;

    assert_int_equal(submit(world, job_text(world, "held", "extras: {debug: true}\n"), &job), 0);
    wait_until_tasks_run(world, job);
    tell(world, ENGINE_EXITED, attempt_of(world, job, 0), 3);
    wait_until(world, job, PUBLIC_FAILED);
    assert_true(tasks_of(world, job).items[0].is_held);
    return attempt_of(world, job, 0);
}

static void a_start_leaves_what_is_held(void **state)
{
    struct world *world = *state;
    const struct attempt_id held = held_attempt(world);

    settle(world);
    assert_int_equal(liar_forgets(held), 0);
    world_stop(world);
    liar_clear();
    liar_list((struct attempt_id[]){held, stranger}, 2);
    world_start(world);
    tell(world, ENGINE_EXITED, held, 3); /* as an engine does after a start */
    await(liar_kills, stranger, 1);
    settle(world);
    assert_int_equal(liar_kills(held), 0);
    assert_int_equal(liar_forgets(held), 0);
}

static void a_start_leaves_what_it_cannot_read(void **state)
{
    struct world *world = *state;

    world_stop(world);
    liar_clear();
    liar_list(&stranger, 1);
    attempts_unreadable(ERR_IO);
    world_start(world);
    settle(world);
    assert_int_equal(liar_kills(stranger), 0);
    attempts_unreadable(0);
    server_reload(world->server, config_of(world, "")); /* a round of upkeep */
    await(liar_kills, stranger, 1);
}

static struct attempt_id report_at_barrier(struct world *world, struct job_id job,
                                           struct wait *wait)
{
    const struct attempt_id attempt = attempt_of(world, job, 0);
    char token[BARRIER_TOKEN_SIZE];
    struct service_barrier what = {
        .attempt = attempt, .kind = BARRIER_START, .is_up = true, .is_waiting = true};

    barrier_token(world->server->keys.master, attempt, token);
    what.token = text_of(token);
    assert_int_equal(
        world->service->barrier(world->service->context, &what, wait_init(wait), &world->err), 0);
    return attempt;
}

/* What the table knew may no longer be so: whoever waits comes again, and finds what is stored. */
static void a_full_disk_sends_those_at_a_barrier_away(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct wait wait, again;

    assert_int_equal(submit(world, job_text(world, "a", "extras: {startBarrier: true}\n"), &job),
                     0);
    wait_until_tasks_run(world, job);
    report_at_barrier(world, job, &wait);
    metric_await(world, "skep_barrier_requests_held", 1);
    COMMITS(ERR_UNAVAILABLE, ERR_UNAVAILABLE);
    tell(world, ENGINE_EXITED, attempt_of(world, job, 1), 3);
    assert_int_equal(wait_for(&wait), ERR_UNAVAILABLE);
    wait_until(world, job, PUBLIC_FAILED);
    report_at_barrier(world, job, &again);
    assert_int_equal(wait_for(&again), ERR_CONFLICT);
}

static void tell_node(struct world *world, const char *name, uint32_t cpu, bool is_lost)
{
    const struct node_facts node = {.name = name,
                                    .address = "127.0.0.1",
                                    .gpu_type = "",
                                    .cpu = cpu,
                                    .memory_mib = 1000,
                                    .is_healthy = true};
    struct engine_sink sink = server_sink(world->server, 0);

    sink.post(sink.context, &(struct engine_event){.kind = is_lost ? ENGINE_NODE_LOST : ENGINE_NODE,
                                                   .node = &node,
                                                   .reason = "",
                                                   .message = ""});
}

static void a_full_disk_loses_no_word_of_nodes(void **state)
{
    struct world *world = *state;
    struct store_nodes nodes;
    struct store_reader *reader;
    struct wait wait;
    struct store_change setting = {.kind = CHANGE_SETTING, .setting = {"test", TEXT("x")}};

    COMMITS(ERR_UNAVAILABLE, ERR_UNAVAILABLE);
    tell_node(world, "n1", 5, false);
    tell_node(world, "n2", 6, false);
    tell_node(world, "n1", 7, false);
    tell_node(world, "n2", 6, true);
    metric_await(world, "skep_nodes", 3);
    assert_int_equal(
        world->service->change(world->service->context, &setting, wait_init(&wait), &world->err),
        0);
    assert_int_equal(wait_for(&wait), 0);
    reader = world->service->reader_get(world->service->context, &world->err);
    assert_int_equal(store_nodes(reader, &world->arena, &nodes, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    assert_int_equal(nodes.count, 3);
    assert_string_equal(nodes.items[1].facts.name, "n1");
    assert_int_equal(nodes.items[1].facts.cpu, 7);
    assert_true(nodes.items[2].is_lost);
}

static void drain(struct world *world)
{
    struct wait wait;

    assert_int_equal(world->service->node_act(world->service->context, SERVICE_NODE_DRAIN, "admin",
                                              tasks_of(world, (struct job_id){1}).items[0].node,
                                              TEXT("a disk is replaced"), wait_init(&wait),
                                              &world->err),
                     0);
    assert_int_equal(wait_for(&wait), 0);
}

/* What was told to end is told again by a core made of the rows, which know why and until when. */
static void a_full_disk_changes_neither_grace_nor_reason(void **state)
{
    struct world *world = *state;
    enum { GRACE_MS = 5000 * 1000 };
    char reason[LIAR_TEXT_SIZE];

    world_stop(world);
    world->extra = "scheduling: {killGraceSeconds: 7000, preemptionGraceSeconds: 5000}\n";
    world_start(world);
    struct job_id job = running_job(world, "a");
    liar_spare();
    drain(world);
    for (size_t i = 0; i < 2; i++) {
        await(liar_kills, attempt_of(world, job, i), 1);
        assert_int_equal(liar_grace_ms(attempt_of(world, job, i), reason), GRACE_MS);
        assert_string_equal(reason, "preempted");
    }
    COMMITS(ERR_UNAVAILABLE);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_SETTING,
                                                         .setting = {"test", TEXT("x")}}),
                     ERR_UNAVAILABLE);
    for (size_t i = 0; i < 2; i++) {
        await(liar_kills, attempt_of(world, job, i), 2);
        /* what is left of it */
        assert_in_range(liar_grace_ms(attempt_of(world, job, i), reason), GRACE_MS - 1000 * WAIT_S,
                        GRACE_MS - 1);
        assert_string_equal(reason, "preempted");
    }
}

/* A container is made of what was offered when its launch began, however often that changes before
 * the engine has taken it. */
static void a_launch_keeps_what_it_began_with_over_reloads(void **state)
{
    struct world *world = *state;
    char source[LIAR_TEXT_SIZE];
    struct job_id job;

    world_stop(world);
    world->extra = "storages: [{name: corpus, directory: /usr}]\n";
    world_start(world);
    liar_hold();
    assert_int_equal(
        submit(world, job_text(world, "a", "extras: {storages: [{name: corpus}]}\n"), &job), 0);
    liar_await_held();
    server_reload(world->server, config_of(world, "storages: [{name: corpus, directory: /etc}]\n"));
    server_reload(world->server, config_of(world, "storages: [{name: other, directory: /bin}]\n"));
    settle(world);
    assert_int_equal(metric(world, "skep_commands_waiting"), 2); /* one is being carried out */
    liar_release(source);
    assert_string_equal(source, "/usr");
    metric_await(world, "skep_commands_waiting", 0);
}

/* Its numbers are used up, though the rows know nothing of them (they are a copy of long ago). */
static void a_start_gives_no_number_that_the_engine_holds(void **state)
{
    struct world *world = *state;
    const struct attempt_id before = attempt_of(world, running_job(world, "before"), 1);
    struct store_epoch epoch = store_epoch_last(world->server->store);

    world_stop(world);
    liar_clear();
    world_start(world); /* holds what was given, and nothing else */
    assert_int_equal(store_epoch_last(world->server->store).first_attempt.v, epoch.first_attempt.v);
    assert_in_range(attempt_of(world, running_job(world, "known"), 0).v, before.v + 1,
                    stranger.v - 1);
    world_stop(world);
    liar_clear();
    liar_list(&stranger, 1);
    world_start(world);
    await(liar_kills, stranger, 1);
    epoch = store_epoch_last(world->server->store);
    assert_true(epoch.first_attempt.v > stranger.v);
    assert_true(attempt_of(world, running_job(world, "after"), 0).v >= epoch.first_attempt.v);
}

/* Each GPU has alerts of its own, and one that is well has none. */
static void trouble_of_gpus_is_told(void **state)
{
    static const struct engine_gpu gpus[] = {
        {.node = "n", .uuid = "", .index = 2, .has_errors = true, .job = "", .role = ""},
        {.node = "n", .uuid = "", .index = 3, .is_lost = true, .job = "", .role = ""},
        {.node = "n",
         .uuid = "",
         .index = 4,
         .has_errors = true,
         .ecc_errors = 2,
         .job = "",
         .role = ""},
    };
    static const struct {
        const char *name, *minor, *summary;
    } WANTED[] = {
        {"NvidiaGpuLost", "3", "GPU 3 of node n is lost"},
        {"NvidiaSmiDoubleEccError", "4", "GPU 4 of node n has had 2 errors of its memory"},
    };
    struct world *world = *state;
    struct alert *alerts;
    size_t count, found = 0;
    liar_gpus(gpus, COUNT_OF(gpus));
    assert_int_equal(
        alert_watch_round(world->server->alert_watch, clock_unix_ms() + 3600 * 1000, &world->err),
        0);
    assert_int_equal(world->service->alerts(world->service->context, &world->arena, &alerts, &count,
                                            &world->err),
                     0);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(alerts[i].name, "Nvidia", 6) != 0)
            continue;
        const size_t at = strcmp(alerts[i].name, WANTED[0].name) == 0 ? 0 : 1;
        assert_string_equal(alerts[i].name, WANTED[at].name);
        assert_string_equal(alerts[i].labels[0].value, "n");
        assert_string_equal(alerts[i].labels[1].value, WANTED[at].minor);
        assert_string_equal(alerts[i].summary, WANTED[at].summary);
        found++;
    }
    assert_int_equal(found, COUNT_OF(WANTED));
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup_lies, teardown_lies)
static const struct CMUnitTest tests[] = {
    WORLD(trouble_of_gpus_is_told),
    WORLD(a_refusal_costs_nothing),
    WORLD(what_the_engine_refuses_for_now_is_tried_again),
    WORLD(what_was_refused_is_not_created_after_a_full_disk),
    WORLD(what_it_refuses_for_good_ends_the_job),
    WORLD(a_creation_that_failed_is_not_tried_for_ever),
    WORLD(what_has_ended_is_not_created_again),
    WORLD(every_exit_is_forgotten_once_it_is_stored),
    WORLD(what_is_told_after_the_end_changes_nothing),
    WORLD(a_start_ends_strangers_and_adopts_its_own),
    WORLD(a_start_ends_strangers_before_it_creates),
    WORLD(a_start_repeats_a_kill_with_what_is_left_of_its_grace),
    WORLD(a_start_leaves_what_is_held),
    WORLD(a_start_leaves_what_it_cannot_read),
    WORLD(a_full_disk_sends_those_at_a_barrier_away),
    WORLD(a_full_disk_loses_no_word_of_nodes),
    WORLD(a_full_disk_changes_neither_grace_nor_reason),
    WORLD(a_launch_keeps_what_it_began_with_over_reloads),
    WORLD(a_start_gives_no_number_that_the_engine_holds),
};
UNIT_FILE(tests, world_begin, NULL);
