/* A node of which the store refuses the row costs nobody anything. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include <stdatomic.h>

#include "base/err.h"
#include "server/state.h"
#include "store/read.h"

enum { HALF_LIFE_MS = 3600 * 1000 };

static struct store_nodes nodes_of(struct world *world)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_nodes nodes;

    assert_int_equal(store_nodes(reader, &world->arena, &nodes, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    return nodes;
}

static struct node_record node_of(struct world *world)
{
    const struct store_nodes nodes = nodes_of(world);

    assert_int_equal(nodes.count, 1);
    return nodes.items[0];
}

/* A task ends because of its node. */
static struct attempt_id blame(struct world *world, const char *name)
{
    const struct exit_report lost = {
        .exit_code = 1, .is_user_command = true, .has_gpu_lost = true, .reason = "", .message = ""};
    const struct job_id job = running_job(world, name);
    const struct attempt_id attempt = tasks_of(world, job).items[0].attempt;

    tell_end(world, attempt, &lost);
    settle(world);
    return attempt;
}

static bool has_ended(struct world *world, struct attempt_id attempt)
{
    return number(world, arena_format(&world->arena,
                                      "SELECT count(*) FROM task_attempts WHERE attempt = %llu",
                                      (unsigned long long)attempt.v)) == 1;
}

static void rows_refuse(struct world *world, const char *which)
{
    assert_int_equal(sql(world, arena_format(&world->arena,
                                             "CREATE TRIGGER bad BEFORE INSERT ON nodes WHEN %s "
                                             "BEGIN SELECT RAISE(ABORT, 'no such node'); END",
                                             which)),
                     0);
}

/* Nodes that are avoided for their failures, until time alone has made them count less: of all at
 * one instant. */
static void nodes_blame(struct world *world, int nodes)
{
    world_stop(world);
    world->engine = arena_format(&world->arena, "nodes: %d, runMilliseconds: 600000", nodes);
    world->extra = "scheduling: {finishedKeepSeconds: 0, blameAvoid: 1,\n"
                   "  blameHalfLifeSeconds: 3600}\n";
    world_start(world);
    metric_await(world, "skep_nodes", (uint64_t)nodes);
    blame(world, "first");
    blame(world, "second");
    world_stop(world);
    assert_int_equal(sql(world, "UPDATE nodes SET blame = 1.9, is_cordoned = (SELECT "
                                "max(is_cordoned) FROM nodes), blame_ms = (SELECT max(blame_ms) "
                                "FROM nodes)"),
                     0);
    world_start(world);
    metric_await(world, "skep_nodes", (uint64_t)nodes);
    settle(world);
    assert_true(nodes_of(world).items[nodes - 1].blame > 1.5);
}

/* The store takes no row of them any more. */
static void nodes_refuse(struct world *world, int nodes)
{
    nodes_blame(world, nodes);
    rows_refuse(world, "true");
    clock_pass(3 * (int64_t)HALF_LIFE_MS);
}

/* A round of it, which finds that the rows may be tried again. */
static void upkeep(struct world *world)
{
    struct wait first;

    round_begin(world, &first);
    world->server->core.unstored.retry_ms = 0;
    round_end(&first);
    server_reload(world->server, config_of(world, world->extra));
    settle(world);
}

static void what_becomes_due_of_a_node_refuses_nobody(void **state)
{
    struct world *world = *state;
    struct wait stop;

    const struct job_id runs = running_job(world, "runs");
    nodes_refuse(world, 1);
    const int64_t blamed_ms = node_of(world).blame_ms;
    ask_act(world, &stop, SERVICE_STOP, runs);
    assert_int_equal(wait_for(&stop), 0);
    metric_await(world, "skep_nodes_unstored", 1);
    alert_await(world, "NodesUnstored", true);
    assert_true(is_writable(world));
    const uint64_t failures = metric(world, "skep_store_commit_failures_total");
    /* what else happens at the node is stored, but for its row */
    blame(world, "third");
    assert_true(node_of(world).blame_ms == blamed_ms);
    assert_int_equal(metric(world, "skep_store_commit_failures_total"), failures);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    assert_int_equal(metric(world, "skep_facts_kept"), 0);
    /* tried again, in vain and not */
    for (int i = 0; i < 2; i++) {
        if (i == 1)
            assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
        upkeep(world);
        metric_await(world, "skep_nodes_unstored", i == 0);
        assert_true((node_of(world).blame_ms == blamed_ms) == (i == 0));
    }
    assert_true(is_writable(world));
    alert_await(world, "NodesUnstored", false);
}

/* All of them have become due in one step. */
static void several_nodes_refuse_nobody(void **state)
{
    struct world *world = *state;
    struct wait stop;

    const struct job_id runs = running_job(world, "runs");
    nodes_refuse(world, 3);
    ask_act(world, &stop, SERVICE_STOP, runs);
    assert_int_equal(wait_for(&stop), 0);
    assert_int_equal(metric(world, "skep_nodes_unstored"), 3);
    assert_true(is_writable(world));
    running_job(world, "next");
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    assert_int_equal(metric(world, "skep_facts_kept"), 0);
    /* one of them is taken again, whichever stands first */
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    rows_refuse(world, "NEW.id <> 0");
    upkeep(world);
    metric_await(world, "skep_nodes_unstored", 2);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    upkeep(world);
    metric_await(world, "skep_nodes_unstored", 0);
}

/* The rows of the others are stored as ever. */
static void only_the_row_that_is_refused_is_left_out(void **state)
{
    struct world *world = *state;

    nodes_blame(world, 3);
    const int64_t blamed_ms = nodes_of(world).items[1].blame_ms;
    rows_refuse(world, "NEW.id = 1");
    clock_pass(3 * (int64_t)HALF_LIFE_MS);
    running_job(world, "next");
    assert_int_equal(metric(world, "skep_nodes_unstored"), 1);
    const struct store_nodes nodes = nodes_of(world);
    assert_true(nodes.items[0].blame_ms > blamed_ms);
    assert_true(nodes.items[1].blame_ms == blamed_ms);
    assert_true(nodes.items[2].blame_ms > blamed_ms);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
}

/* After a restart the rows say again what is due. */
static void restart_and_find(struct world *world, int nodes)
{
    struct job_id job;

    nodes_refuse(world, nodes);
    world_stop(world);
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "next", ""), &job), 0);
    wait_until_tasks_run(world, job);
    metric_await(world, "skep_nodes_unstored", (uint64_t)nodes);
    assert_true(is_writable(world));
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
}

static void a_restart_finds_it_again(void **state)
{
    restart_and_find(*state, 1);
}

static void a_restart_finds_all_of_them_again(void **state)
{
    restart_and_find(*state, 3);
}

/* Nothing has become due: what a task's end says of its node is refused with the end. */
static void a_task_ends_on_a_node_whose_row_is_refused(void **state)
{
    struct world *world = *state;

    rows_refuse(world, "true");
    const int64_t blamed_ms = node_of(world).blame_ms;
    const struct attempt_id attempt = blame(world, "fails");
    assert_true(has_ended(world, attempt));
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    assert_int_equal(metric(world, "skep_nodes_unstored"), 1);
    assert_true(node_of(world).blame_ms == blamed_ms);
    assert_true(is_writable(world));
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
}

static void node_say(struct world *world, const char *name, bool is_healthy)
{
    const struct engine_sink sink = server_sink(world->server, 0);
    struct node_facts facts = node_of(world).facts;

    facts.name = name;
    facts.is_healthy = is_healthy;
    facts.reason = is_healthy ? "" : "its disk is full";
    sink.post(sink.context, &(struct engine_event){.kind = ENGINE_NODE, .node = &facts});
    settle(world);
}

/* The core knows it all the same, and so does one that is made anew of rows that do not. */
static void nothing_is_placed_on_a_sick_node_whose_row_is_refused(void **state)
{
    struct world *world = *state;
    const char *name = node_of(world).facts.name;
    struct job_id first, second;
    struct wait bad;

    rows_refuse(world, "true");
    node_say(world, name, false);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    assert_int_equal(metric(world, "skep_nodes_unstored"), 1);
    assert_true(node_of(world).facts.is_healthy);
    assert_int_equal(submit(world, job_text(world, "first", ""), &first), 0);
    settle(world);
    assert_int_equal(shown(world, first), PUBLIC_WAITING);
    assert_int_equal(sql(world, "CREATE TRIGGER name BEFORE INSERT ON jobs WHEN NEW.name = 'bad' "
                                "BEGIN SELECT RAISE(ABORT, 'no such name'); END"),
                     0);
    const uint64_t restores = atomic_load(&world->server->metrics.restores);
    ask_submit(world, &bad, "bad");
    assert_int_equal(wait_for(&bad), ERR_INTERNAL);
    assert_true(atomic_load(&world->server->metrics.restores) > restores);
    settle(world);
    assert_int_equal(submit(world, job_text(world, "second", ""), &second), 0);
    settle(world);
    assert_int_equal(shown(world, second), PUBLIC_WAITING);
    node_say(world, name, true);
    wait_until_tasks_run(world, second);
    assert_int_equal(sql(world, "DROP TRIGGER bad; DROP TRIGGER name"), 0);
}

/* The rows of those that come later are numbered as if it had not been told of. */
static void a_node_that_is_not_stored_yet_is_set_aside(void **state)
{
    struct world *world = *state;

    rows_refuse(world, "NEW.name = 'bad'");
    node_say(world, "bad", true);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 1);
    assert_int_equal(metric(world, "skep_nodes_unstored"), 0);
    assert_true(is_writable(world));
    assert_int_equal(nodes_of(world).count, 1);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    node_say(world, "good", true);
    assert_int_equal(nodes_of(world).count, 2);
    world_stop(world);
    world_start(world);
    running_job(world, "next");
}

static const struct CMUnitTest tests[] = {
    ROUNDS(what_becomes_due_of_a_node_refuses_nobody),
    ROUNDS(several_nodes_refuse_nobody),
    ROUNDS(only_the_row_that_is_refused_is_left_out),
    ROUNDS(a_restart_finds_it_again),
    ROUNDS(a_restart_finds_all_of_them_again),
    ROUNDS(a_task_ends_on_a_node_whose_row_is_refused),
    ROUNDS(nothing_is_placed_on_a_sick_node_whose_row_is_refused),
    ROUNDS(a_node_that_is_not_stored_yet_is_set_aside),
};
UNIT_FILE(tests, world_begin, NULL);
