/* Two engines under one server: the fake one, and one that refuses, moves, lies and is not there.
 *
 * Covers: src/server/engines.c, src/server/engine_health.c,
 * src/server/engine_make.c */
#include "rogue.h"
#include "unit.h"
#include "world.h"

#include <sched.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "server/state.h"
#include "store/read.h"
#include "sys/log.h"

static int setup_engines(void **state)
{
    log_to(-1);
    rogue_clear();
    int code = setup_with(state, "",
                          "engines:\n"
                          "- {name: tame, kind: fake, fake: {cpu: 4, runMilliseconds: 600000}}\n"
                          "- {name: rogue, kind: fake, fake: {nodePrefix: rogue}}\n"
                          "scheduling: {policy: first-fit, killGraceSeconds: 0, "
                          "preemptionGraceSeconds: 0, retryPauseFirstSeconds: 0}\n");
    metric_await(*state, "skep_nodes", 2);
    return code;
}

static int teardown_engines(void **state)
{
    int code = teardown(state);
    rogue_clear();
    log_to(2);
    return code;
}

/* A gang of two without any budget. Of one processor each it needs more memory than rogue0 has; of
 * more it fits there alone. */
static struct job_id job_of_cpu(struct world *world, const char *name, unsigned cpu)
{
    struct job_id job;
    const char *text = arena_format(
        &world->arena,
        "protocolVersion: 2\nname: %s\ntype: job\njobRetryCount: 0\n"
        "prerequisites:\n- {protocolVersion: 2, name: i, type: dockerimage, uri: x}\n"
        "taskRoles:\n  w:\n    instances: 2\n    dockerImage: i\n"
        "    resourcePerInstance: {cpu: %u, memoryMB: %u, gpu: 0}\n    commands: [run]\n",
        name, cpu, cpu == 1 ? 2 * ROGUE_MIB : 1);

    assert_int_equal(submit(world, text, &job), 0);
    return job;
}

static struct job_id job_on_rogue(struct world *world, const char *name)
{
    return job_of_cpu(world, name, ROGUE_CPU / 2);
}

static struct attempt_id attempt_of(struct world *world, struct job_id job, size_t task)
{
    return tasks_of(world, job).items[task].attempt;
}

static struct store_job summary_of(struct world *world, struct job_id job)
{
    struct store_job row;

    assert_int_equal(
        store_job_summary(world->service->store, job, &world->arena, &row, &world->err), 0);
    return row;
}

static void stop(struct world *world, struct job_id job)
{
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
}

static struct node_record node_of(struct world *world, const char *name)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct node_record found = {0};
    struct store_nodes nodes;

    assert_int_equal(store_nodes(reader, &world->arena, &nodes, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    for (size_t i = 0; i < nodes.count; i++)
        if (strcmp(nodes.items[i].facts.name, name) == 0)
            found = nodes.items[i];
    assert_non_null(found.facts.name);
    return found;
}

static void settle(struct world *world)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(change(world, (struct store_change){.kind = CHANGE_SETTING,
                                                             .setting = {"test", TEXT("x")}}),
                         0);
}

static bool is_engine_told(struct world *world, const char *part)
{
    struct service_check checks[SERVICE_CHECKS_MAX];
    size_t count = world->service->ready(world->service->context, checks);

    for (size_t i = 0; i < count; i++)
        if (strcmp(checks[i].name, "engine") == 0)
            return checks[i].is_ok && strstr(checks[i].text, part);
    return false;
}

static struct service_check check_of(struct world *world, const char *name)
{
    struct service_check checks[SERVICE_CHECKS_MAX];
    size_t count = world->service->ready(world->service->context, checks);

    for (size_t i = 0; i < count; i++)
        if (strcmp(checks[i].name, name) == 0)
            return checks[i];
    fail_msg("there is no check %s", name);
    return (struct service_check){0};
}

static bool are_figures(struct world *world, const char *const *lines)
{
    struct buf text = BUF_INIT;
    bool are_there = true;

    world->service->metrics(world->service->context, &text);
    for (; *lines; lines++)
        are_there = are_there && strstr(buf_cstr(&text), *lines);
    buf_release(&text);
    return are_there;
}

/* A gang that has room on both together, and on none alone. */
static void a_gang_does_not_span_them(void **state)
{
    struct world *world = *state;
    struct job_id job = job_of_cpu(world, "wide", 3); /* tame has 4 CPUs, rogue room for both */

    wait_until_tasks_run(world, job);
    assert_string_equal(tasks_of(world, job).items[0].node, "rogue0");
    assert_string_equal(tasks_of(world, job).items[1].node, "rogue0");
    stop(world, job);
}

static void each_engine_has_a_line_of_its_own(void **state)
{
    static const char *const figures[] = {"skep_engine_open{engine=\"tame\"} 1\n",
                                          "skep_engine_open{engine=\"rogue\"} 0\n",
                                          "skep_engine_nodes{engine=\"rogue\"} 1\n",
                                          "skep_engine_nodes_healthy{engine=\"rogue\"} 0\n",
                                          "skep_engine_nodes_healthy{engine=\"tame\"} 1\n",
                                          NULL};
    struct world *world = *state;
    struct job_id job = job_on_rogue(world, "a");

    wait_until_tasks_run(world, job);
    assert_false(check_of(world, "engine tame").is_degraded);
    assert_string_equal(check_of(world, "engine rogue").text, "1 node, 1 healthy");
    world_stop(world);
    rogue_away(true);
    world_start(world);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    while (!strstr(check_of(world, "engine rogue").text, "2 commands wait for it"))
        settle(world);
    assert_true(check_of(world, "engine rogue").is_degraded &&
                check_of(world, "engine rogue").is_ok);
    assert_string_equal(check_of(world, "engine rogue").text,
                        "not open; 1 node, 0 healthy, 2 commands wait for it: the cluster does not "
                        "answer");
    assert_string_equal(check_of(world, "engine tame").text, "1 node, 1 healthy");
    assert_true(are_figures(world, figures));
    rogue_away(false);
    wait_until(world, job, PUBLIC_STOPPED);
    while (check_of(world, "engine rogue").is_degraded)
        sched_yield();
}

static void each_task_goes_to_the_engine_of_its_node(void **state)
{
    struct world *world = *state;
    struct job_id tame = job_of_cpu(world, "tame", 1), rogue = job_on_rogue(world, "rogue");

    wait_until_tasks_run(world, tame);
    wait_until_tasks_run(world, rogue);
    assert_string_equal(tasks_of(world, tame).items[0].node, "fake0");
    assert_string_equal(tasks_of(world, rogue).items[0].node, "rogue0");
    assert_int_equal(rogue_creates(), 2);
    assert_string_equal(node_of(world, "fake0").facts.engine, "tame");
    assert_string_equal(node_of(world, "rogue0").facts.engine, "rogue");
    stop(world, tame);
    assert_int_equal(rogue_kills(), 0);
    stop(world, rogue);
    assert_int_equal(rogue_kills(), 2);
}

static void what_is_refused_or_moved_costs_nothing(void **state)
{
    struct world *world = *state;
    struct job_id job;

    rogue_refuse(3);
    rogue_move(1);
    job = job_on_rogue(world, "a");
    wait_until_tasks_run(world, job);
    assert_int_equal(summary_of(world, job).record.retries_user, 0);
    assert_true(summary_of(world, job).record.retries_platform >= 2);
    settle(world);
    assert_int_equal(node_of(world, "rogue0").refusals, 0); /* it has taken some since */
    stop(world, job);
    while (rogue_forgets() < rogue_creates())
        sched_yield(); /* nothing of it is left there */
}

static void a_node_of_another_engine_is_not_taken(void **state)
{
    struct world *world = *state;

    rogue_tell_node("fake0");
    settle(world);
    assert_string_equal(node_of(world, "fake0").facts.engine, "tame");
    assert_int_equal(node_of(world, "fake0").facts.cpu, 4);
    assert_true(
        is_engine_told(world, "engine rogue: its node fake0 is one of the engine \"tame\""));
}

static void an_engine_has_no_say_in_the_tasks_of_another(void **state)
{
    struct world *world = *state;
    struct job_id job = job_of_cpu(world, "a", 1);

    wait_until_tasks_run(world, job);
    rogue_tell_exit(attempt_of(world, job, 0), 3);
    while (rogue_forgets() < 1)
        sched_yield();
    settle(world);
    assert_int_equal(shown(world, job), PUBLIC_RUNNING);
    stop(world, job);
}

static void what_an_engine_cannot_do_is_said(void **state)
{
    struct world *world = *state;
    const struct service *service = world->service;
    const uint8_t rogue = service->engine_of(service->context, "rogue0");

    assert_int_equal(service->log_can_follow(service->context, rogue, &world->err),
                     ERR_UNSUPPORTED);
    assert_string_equal(world->err.text, "the engine \"rogue\" cannot follow logs");
    assert_int_equal(service->log_can_follow(service->context,
                                             service->engine_of(service->context, "fake0"),
                                             &world->err),
                     0);
    assert_int_equal(service->log_can_follow(service->context,
                                             service->engine_of(service->context, "nowhere"),
                                             &world->err),
                     ERR_UNAVAILABLE);
}

static bool is_away(struct world *world)
{
    const struct node_record node = node_of(world, "rogue0");

    return !node.facts.is_healthy && !node.is_lost &&
           strstr(node.facts.reason, "the cluster does not answer");
}

static bool is_back(struct world *world)
{
    return node_of(world, "rogue0").facts.is_healthy;
}

/* A commit that changes no job is told to nobody. */
static void node_await(struct world *world, bool (*is_so)(struct world *world))
{
    while (!is_so(world))
        settle(world);
}

/* The other engine goes on, what ran stays, and what was asked meanwhile is done afterwards. */
static void an_engine_that_is_away_hinders_nobody(void **state)
{
    struct world *world = *state;
    struct job_id stays = job_of_cpu(world, "stays", 10), ends = job_of_cpu(world, "ends", 10);

    wait_until_tasks_run(world, stays);
    wait_until_tasks_run(world, ends);
    world_stop(world);
    rogue_away(true);
    world_start(world);
    node_await(world, is_away);
    assert_true(is_engine_told(world, "engine rogue: the cluster does not answer"));
    wait_until_tasks_run(world, job_of_cpu(world, "tame", 1));
    assert_int_equal(act(world, SERVICE_STOP, ends), 0);
    settle(world);
    assert_int_equal(rogue_kills(), 0);
    assert_int_equal(shown(world, stays), PUBLIC_RUNNING);
    rogue_away(false);
    wait_until(world, ends, PUBLIC_STOPPED);
    node_await(world, is_back);
    assert_int_equal(metric(world, "skep_adopted_total"), 4);
    assert_int_equal(metric(world, "skep_lost_total"), 0);
    assert_int_equal(shown(world, stays), PUBLIC_RUNNING);
    assert_int_equal(rogue_creates(), 4); /* none was started again */
    stop(world, stays);
}

/* Attempts that went away with their cluster's memory: they are lost when it is back, not before.
 */
static void what_is_found_later_is_compared_then(void **state)
{
    struct world *world = *state;
    struct job_id job = job_on_rogue(world, "a");

    wait_until_tasks_run(world, job);
    world_stop(world);
    rogue_clear(); /* it has lost both */
    rogue_away(true);
    world_start(world);
    node_await(world, is_away);
    settle(world);
    assert_int_equal(metric(world, "skep_lost_total"), 0);
    rogue_away(false);
    metric_await(world, "skep_lost_total", 2);
    while (rogue_creates() < 2) /* nobody's budget pays for it */
        sched_yield();
    stop(world, job);
}

/* The rows are a copy's, which shows only when the engine is there: what they say shall start may
 * have run already, and has waited for the engine. It gets another number. */
static void an_attempt_of_a_past_epoch_is_not_created_by_an_engine_that_comes_late(void **state)
{
    struct world *world = *state;
    struct job_id job = job_on_rogue(world, "a");

    wait_until_tasks_run(world, job);
    const struct attempt_id second = attempt_of(world, job, 1);
    world_stop(world);
    assert_int_equal(sql(world, "UPDATE tasks SET state = 1, launched_ms = 0, "
                                "attempt_launched_ms = 0"),
                     0);
    rogue_clear();
    rogue_hold(second); /* one of them it has; the other one has run, and ended */
    rogue_hold((struct attempt_id){second.v + 10});
    rogue_away(true);
    world_start(world);
    while (!strstr(check_of(world, "engine rogue").text, "2 commands wait for it"))
        settle(world);
    rogue_away(false);
    metric_await(world, "skep_lost_total", 1);
    while (attempt_of(world, job, 0).v < 1000000000)
        settle(world);
    wait_until_tasks_run(world, job);
    assert_int_equal(rogue_creates(), 2); /* those of now */
    stop(world, job);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup_engines, teardown_engines)
static const struct CMUnitTest tests[] = {
    WORLD(each_task_goes_to_the_engine_of_its_node),
    WORLD(a_gang_does_not_span_them),
    WORLD(each_engine_has_a_line_of_its_own),
    WORLD(what_is_refused_or_moved_costs_nothing),
    WORLD(a_node_of_another_engine_is_not_taken),
    WORLD(an_engine_has_no_say_in_the_tasks_of_another),
    WORLD(what_an_engine_cannot_do_is_said),
    WORLD(an_engine_that_is_away_hinders_nobody),
    WORLD(what_is_found_later_is_compared_then),
    WORLD(an_attempt_of_a_past_epoch_is_not_created_by_an_engine_that_comes_late),
};
UNIT_FILE(tests, world_begin, NULL);
