/* A node of which the store refuses the row costs nobody anything. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "server/state.h"
#include "store/read.h"

enum { HALF_LIFE_MS = 3600 * 1000 };

static struct node_record node_of(struct world *world)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_nodes nodes;

    assert_int_equal(store_nodes(reader, &world->arena, &nodes, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    assert_int_equal(nodes.count, 1);
    return nodes.items[0];
}

/* A task ends because of its node. */
static void blame(struct world *world, const char *name)
{
    const struct exit_report lost = {
        .exit_code = 1, .is_user_command = true, .has_gpu_lost = true, .reason = "", .message = ""};
    const struct job_id job = running_job(world, name);

    tell_end(world, tasks_of(world, job).items[0].attempt, &lost);
    settle(world);
}

/* A node that is avoided for its failures, until time alone has made them count less; and the store
 * takes no row of a node any more. */
static void node_refuse(struct world *world)
{
    world_stop(world);
    world->extra = "scheduling: {finishedKeepSeconds: 0, blameAvoid: 1,\n"
                   "  blameHalfLifeSeconds: 3600}\n";
    world_start(world);
    metric_await(world, "skep_nodes", 1);
    blame(world, "first");
    blame(world, "second");
    assert_true(node_of(world).blame > 1.5);
    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE INSERT ON nodes "
                                "BEGIN SELECT RAISE(ABORT, 'no such node'); END"),
                     0);
    clock_pass(3 * (int64_t)HALF_LIFE_MS);
}

static void what_becomes_due_of_a_node_refuses_nobody(void **state)
{
    struct world *world = *state;
    struct wait stop;

    const struct job_id runs = running_job(world, "runs");
    node_refuse(world);
    const int64_t blamed_ms = node_of(world).blame_ms;
    ask_act(world, &stop, SERVICE_STOP, runs);
    assert_int_equal(wait_for(&stop), 0);
    metric_await(world, "skep_nodes_unstored", 1);
    assert_true(is_alerted(world, "NodesUnstored"));
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
        world->server->core.unstored.retry_ms = 0;
        server_reload(world->server, config_of(world, world->extra)); /* a round of upkeep */
        settle(world);
        metric_await(world, "skep_nodes_unstored", i == 0);
        assert_true((node_of(world).blame_ms == blamed_ms) == (i == 0));
    }
    assert_true(is_writable(world));
    assert_false(is_alerted(world, "NodesUnstored"));
}

/* After a restart the row says again what is due. */
static void a_restart_finds_it_again(void **state)
{
    struct world *world = *state;
    struct job_id job;

    node_refuse(world);
    world_stop(world);
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "next", ""), &job), 0);
    wait_until_tasks_run(world, job);
    metric_await(world, "skep_nodes_unstored", 1);
    assert_true(is_writable(world));
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(what_becomes_due_of_a_node_refuses_nobody),
    ROUNDS(a_restart_finds_it_again),
};
UNIT_FILE(tests, world_begin, NULL);
