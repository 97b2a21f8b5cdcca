/* A clock that is set, and what becomes of things by time alone.
 *
 * Covers: src/server/clock.c, src/server/clock_note.c, src/server/upkeep.c */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "server/state.h"
#include "store/read.h"
#include "sys/clock.h"

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

static void restart(struct world *world)
{
    world_stop(world);
    world_start(world);
    metric_await(world, "skep_nodes", 1);
}

static void nor_does_a_restart_with_it(void **state)
{
    struct world *world = *state;
    struct job_id job = limited_job(world);

    clock_set_by(2 * HOUR_MS);
    settle(world);
    restart(world);
    wait_until(world, job, PUBLIC_RUNNING);
    assert_true(metric(world, "skep_clock_apart_seconds") > 7000);
    clock_set_by(DAYS_MS(400)); /* while it is down as well */
    restart(world);
    settle(world);
    wait_until(world, job, PUBLIC_RUNNING);
    clock_pass(HOUR_MS);
    settle(world);
    wait_until(world, job, PUBLIC_FAILED);
}

/* Also when the clock was set back meanwhile, to before all that is stored. */
static void time_counts_while_the_server_is_down(void **state)
{
    struct world *world = *state;
    struct job_id job = limited_job(world);

    world_stop(world);
    clock_pass(2 * HOUR_MS);
    clock_set_by(-5 * HOUR_MS);
    world_start(world);
    wait_until(world, job, PUBLIC_FAILED);
}

/* Nothing but the wall clock says for how long the machine was off. */
static void time_counts_by_the_wall_clock_over_a_boot(void **state)
{
    struct world *world = *state;
    struct job_id job = limited_job(world);

    world_stop(world);
    machine_boot();
    clock_set_by(2 * HOUR_MS);
    world_start(world);
    wait_until(world, job, PUBLIC_FAILED);
}

/* The operator says that the clock is right. */
static void time_counts_by_a_clock_that_is_taken(void **state)
{
    struct world *world = *state;
    struct job_id job = limited_job(world);
    struct store *store;

    clock_set_by(2 * HOUR_MS);
    settle(world);
    world_stop(world);
    assert_int_equal(store_open(world->directory, &store, &world->err), 0);
    assert_int_equal(server_clock_forget(store, &world->err), 0);
    store_close(store);
    world_start(world);
    wait_until(world, job, PUBLIC_FAILED);
    metric_await(world, "skep_clock_apart_seconds", 0);
}

static void a_note_that_is_none_keeps_the_server_from_starting(void **state)
{
    static const char *const notes[] = {"boot-0", "boot-0 5", "boot-0 5 x", "boot-0  5"};
    struct world *world = *state;
    char text[120];

    world_stop(world);
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        snprintf(text, sizeof text,
                 "UPDATE settings SET value = CAST('%s' AS BLOB) WHERE key = 'core.time'",
                 notes[i]);
        assert_int_equal(sql(world, text), 0);
        assert_int_equal(world_try(world), ERR_CORRUPT);
        assert_non_null(strstr(world->err.text, "core.time"));
    }
    assert_int_equal(sql(world, "DELETE FROM settings WHERE key = 'core.time'"), 0);
    world_start(world);
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
    for (int boot = 0; boot < 3; boot++) {
        server_reload(world->server, config_of(world, retention));
        settle(world);
        assert_int_equal(shown(world, job), PUBLIC_STOPPED);
        reader = world->service->reader_get(world->service->context, &world->err);
        assert_int_equal(store_tokens(reader, TEXT("admin"), &world->arena, &tokens, &world->err),
                         0);
        world->service->reader_put(world->service->context, reader);
        assert_int_equal(tokens.count, 1);
        world_stop(world);
        machine_boot();
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
    for (int boot = 0; boot < 2; boot++) {
        stopped_job(world, boot ? "after" : "before");
        const struct engine_sink now = server_sink(world->server, 0);
        assert_true(now.trusted_ms(now.context) - before_ms < DAYS_MS(1));
        world_stop(world);
        machine_boot();
        world_start(world);
        metric_await(world, "skep_nodes", 1);
    }
    clock_pass(HOUR_MS);
    stopped_job(world, "later");
    const struct engine_sink later = server_sink(world->server, 0);
    assert_true(later.trusted_ms(later.context) - before_ms > DAYS_MS(399));
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

static bool is_lately(int64_t at_ms)
{
    const int64_t real_ms = clock_unix_ms();

    return at_ms > real_ms - DAYS_MS(1) && at_ms < real_ms + DAYS_MS(1);
}

/* Whoever is told of an alert once it has stood for a time would wait for the clock to come there.
 */
static void alerts_begin_by_the_time_that_passes(void **state)
{
    struct world *world = *state;
    struct alert *alerts;
    size_t count, found = 0;

    clock_set_by(DAYS_MS(400));
    tell_node(world, "sick", false);
    settle(world);
    assert_int_equal(world->service->alerts(world->service->context, &world->arena, &alerts, &count,
                                            &world->err),
                     0);
    clock_set_by(-DAYS_MS(400));
    for (size_t i = 0; i < count; i++) {
        found += strcmp(alerts[i].labels[0].value, "sick") == 0;
        assert_true(is_lately(alerts[i].since_ms));
    }
    assert_int_equal(found, 1);
}

/* Nor is a series of what is used moved away from its past. */
static void use_goes_by_the_time_that_passes(void **state)
{
    struct world *world = *state;
    struct use_points *points = mem_zero(1, sizeof *points);
    struct job_id job;

    world_stop(world);
    clock_set_by(DAYS_MS(400));
    world_start(world);
    job = limited_job(world);
    const struct record record = {.kind = RECORD_TASK, .task = tasks_of(world, job).items[0]};
    const struct use_key key = {.job = job, .attempt = record.task.attempt};
    struct use_watch *watch = use_watch_new(world->server);
    use_watch_take(watch, &record, 1);
    assert_int_equal(use_watch_start(watch, &world->err), 0); /* and takes its first sample */
    do
        (void)use_watch_points(watch, &key, USE_RECENT, points, &world->err);
    while (points->count == 0 && sched_yield() == 0);
    use_watch_free(watch);
    clock_set_by(-DAYS_MS(400));
    assert_true(is_lately(points->begin_ms));
    mem_free(points);
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

/* Until the engine has told of it since the start. */
static void node_await_seen(struct world *world, const char *name)
{
    bool is_seen = false;

    while (!is_seen) {
        sched_yield();
        pthread_mutex_lock(&world->server->state_lock);
        const struct node_known *known = server_node_find(world->server, name);
        is_seen = known && known->is_seen;
        pthread_mutex_unlock(&world->server->state_lock);
    }
}

/* Of the machines in the rows, those that the engine has not spoken of for a minute are gone, and
 * no others. */
static void machines_that_nobody_speaks_of_are_lost(void **state)
{
    struct world *world = *state;
    struct wait first;

    tell_node(world, "gone", true);
    tell_node(world, "sick", false);
    settle(world);
    assert_true(node_named(world, "gone").facts.is_healthy);
    assert_false(node_named(world, "sick").facts.is_healthy);
    assert_string_equal(node_named(world, "sick").facts.reason, "its disk is full");
    world_stop(world);
    world_start(world);
    node_await_seen(world, "fake0");
    tell_node(world, "sick", true);
    settle(world);
    server_reload(world->server, config_of(world, "")); /* a round of upkeep */
    settle(world);
    assert_false(node_named(world, "gone").is_lost);
    round_begin(world, &first);
    world->server->core.begin_ms -= UPKEEP_MS;
    world->server->engines.items[0].open_ms -= UPKEEP_MS;
    round_end(&first);
    server_reload(world->server, config_of(world, ""));
    settle(world);
    assert_true(node_named(world, "gone").is_lost);
    assert_false(node_named(world, "sick").is_lost);
    assert_true(node_named(world, "sick").facts.is_healthy);
    assert_false(node_named(world, "fake0").is_lost);
}

/* What else upkeep has found out is stored. */
static void the_time_is_noted_though_the_database_is_not_measured(void **state)
{
    struct world *world = *state;

    assert_int_equal(sql(world, "DELETE FROM settings WHERE key IN ('core.time', "
                                "'retention.time')"),
                     0);
    measure_fails(ERR_IO);
    server_reload(world->server, config_of(world, "")); /* a round of upkeep */
    settle(world);
    assert_int_equal(number(world, "SELECT count(*) FROM settings WHERE key IN ('core.time', "
                                   "'retention.time')"),
                     2);
    assert_true(is_writable(world));
}

static const struct CMUnitTest tests[] = {
    ROUNDS(a_clock_that_is_set_back_holds_up_no_retry),
    ROUNDS(nor_when_the_server_starts_with_it),
    ROUNDS(a_clock_that_is_set_forward_ends_nothing),
    ROUNDS(alerts_begin_by_the_time_that_passes),
    ROUNDS(use_goes_by_the_time_that_passes),
    ROUNDS(nor_does_a_restart_with_it),
    ROUNDS(time_counts_while_the_server_is_down),
    ROUNDS(time_counts_by_the_wall_clock_over_a_boot),
    ROUNDS(time_counts_by_a_clock_that_is_taken),
    ROUNDS(a_note_that_is_none_keeps_the_server_from_starting),
    ROUNDS(a_clock_far_ahead_purges_nothing),
    ROUNDS(nor_does_it_drop_messages),
    ROUNDS(nor_do_engines_believe_it),
    ROUNDS(machines_that_nobody_speaks_of_are_lost),
    ROUNDS(the_time_is_noted_though_the_database_is_not_measured),
};
UNIT_FILE(tests, world_begin, NULL);
