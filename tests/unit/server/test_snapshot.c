/* Snapshots for readers are made between the rounds of the core thread, out of those before. */
#include "faults.h"
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/memory.h"
#include "core/core.h"
#include "hived/hived.h"
#include "server/snapshot.h"
#include "sys/log.h"

enum { NODES = 300, NODE_GPUS = 8 };

static int setup_cells(void **state)
{
    log_to(-1);
    int code = setup_with(state, "nodes: 300, gpus: 8, cpu: 8, runMilliseconds: 600000", "");
    metric_await(*state, "skep_nodes", NODES);
    return code;
}

static void snapshot_ask(struct world *world, struct wait *wait, struct service_snapshot *snapshot)
{
    struct service_reply reply = wait_init(wait);

    assert_int_equal(
        world->service->snapshot(world->service->context, snapshot, reply, &world->err), 0);
}

static void snapshot_release(struct service_snapshot *snapshot)
{
    hived_free(snapshot->hived);
    hived_free(snapshot->old);
    mem_free(snapshot->nodes);
    core_node_jobs_release(&snapshot->jobs);
    *snapshot = (struct service_snapshot){0};
}

/* Once there are cells. What `snapshot` has is given with the question. */
static void snapshot_get(struct world *world, struct service_snapshot *snapshot)
{
    struct wait wait;

    do {
        snapshot_ask(world, &wait, snapshot);
        assert_int_equal(wait_for(&wait), 0);
    } while (!snapshot->hived);
    assert_int_equal(snapshot->node_count, NODES);
}

static uint32_t gpus_used(const struct service_snapshot *snapshot)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < snapshot->node_count; i++)
        used += snapshot->nodes[i].gpus;
    return used;
}

/* What HiveD says of the type of leaf that is a GPU. */
static uint32_t leaves_used(const struct service_snapshot *snapshot)
{
    struct arena arena;
    uint32_t count, used = 0;

    arena_init(&arena);
    const struct hived_quota *quota = hived_vc_quota(snapshot->hived, 0, &arena, &count);
    for (uint32_t i = 0; i < count; i++)
        if (strncmp(quota[i].leaf_type, "CPU", 3) != 0)
            used += quota[i].used;
    arena_release(&arena);
    return used;
}

static struct job_id gpus_take(struct world *world, const char *name)
{
    struct job_id job;
    const char *text = arena_format(
        &world->arena,
        "protocolVersion: 2\nname: %s\ntype: job\n"
        "prerequisites:\n- {protocolVersion: 2, name: i, type: dockerimage, uri: x}\n"
        "taskRoles:\n  w:\n    instances: 5\n    dockerImage: i\n"
        "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 8}\n    commands: [run]\n",
        name);

    assert_int_equal(submit(world, text, &job), 0);
    wait_until_tasks_run(world, job);
    return job;
}

/* What was answered before is in it; cells that are given back are brought up to date. */
static void it_shows_what_was_answered(void **state)
{
    struct world *world = *state;
    struct service_snapshot first = {0}, second = {0};
    struct hived_group_view view;

    struct job_id job = gpus_take(world, "a");
    snapshot_get(world, &first);
    assert_int_equal(gpus_used(&first), 5 * NODE_GPUS);
    assert_int_equal(leaves_used(&first), 5 * NODE_GPUS);
    assert_true(first.cost_us > 0);
    assert_null(first.old);
    gpus_take(world, "b");
    snapshot_get(world, &second); /* from nothing, while the first is read */
    assert_int_equal(leaves_used(&second), 10 * NODE_GPUS);
    assert_int_equal(leaves_used(&first), 5 * NODE_GPUS);
    assert_true(second.version > first.version);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
    const struct hived *cells = first.hived;
    snapshot_get(world, &first);
    assert_ptr_equal(first.hived, cells);
    assert_int_equal(gpus_used(&first), 5 * NODE_GPUS);
    assert_int_equal(leaves_used(&first), 5 * NODE_GPUS);
    assert_false(hived_group_find(first.hived, "no such group", &view));
    snapshot_release(&first);
    snapshot_release(&second);
}

/* Other cells: those that were given come back, to be freed by who gave them. */
static void cells_of_before_come_back(void **state)
{
    struct world *world = *state;
    struct service_snapshot snapshot = {0};

    gpus_take(world, "a");
    snapshot_get(world, &snapshot);
    server_reload(world->server, config_of(world, "scheduling: {policy: best-fit}\n"));
    struct hived *cells = snapshot.hived;
    struct wait wait;
    do { /* the reload is a mail as others are */
        snapshot_ask(world, &wait, &snapshot);
        assert_int_equal(wait_for(&wait), 0);
    } while (snapshot.hived);
    assert_ptr_equal(snapshot.old, cells);
    assert_false(snapshot.is_making);
    assert_int_equal(gpus_used(&snapshot), 5 * NODE_GPUS);
    snapshot_release(&snapshot);
}

/* Several at once: each gets its own, in their order. */
static void all_who_ask_get_one(void **state)
{
    enum { READERS = 4 };
    struct world *world = *state;
    struct service_snapshot snapshots[READERS] = {0};
    struct wait first, waits[READERS];

    gpus_take(world, "a");
    snapshot_get(world, &snapshots[0]);
    snapshot_release(&snapshots[0]);
    commits_hold();
    const struct store_change change = {.kind = CHANGE_SETTING, .setting = {"test", TEXT("x")}};
    struct service_reply reply = wait_init(&first);
    assert_int_equal(world->service->change(world->service->context, &change, reply, &world->err),
                     0);
    commits_await_held();
    for (int i = 0; i < READERS; i++)
        snapshot_ask(world, &waits[i], &snapshots[i]);
    commits_release();
    for (int i = READERS - 1; i >= 0; i--) {
        assert_int_equal(wait_for(&waits[i]), 0);
        assert_int_equal(leaves_used(&snapshots[i]), 5 * NODE_GPUS);
    }
    assert_int_equal(wait_for(&first), 0);
    for (int i = 0; i < READERS; i++)
        snapshot_release(&snapshots[i]);
}

/* Whoever waits for a piece when the core is thrown away is told so. */
static void a_store_that_fails_refuses_those_who_wait(void **state)
{
    struct world *world = *state;
    struct service_snapshot snapshot = {0};
    struct wait first, asked, stop, start;

    struct job_id job = gpus_take(world, "a");
    commits_hold();
    const struct store_change change = {.kind = CHANGE_SETTING, .setting = {"test", TEXT("x")}};
    struct service_reply reply = wait_init(&first);
    assert_int_equal(world->service->change(world->service->context, &change, reply, &world->err),
                     0);
    commits_await_held();
    /* one round: the start is stored after the stop, when the snapshot waits already */
    COMMITS(0, 0, ERR_UNAVAILABLE);
    snapshot_ask(world, &asked, &snapshot);
    reply = wait_init(&stop);
    assert_int_equal(world->service->act(world->service->context, SERVICE_STOP, "admin", job, reply,
                                         &world->err),
                     0);
    reply = wait_init(&start);
    assert_int_equal(world->service->act(world->service->context, SERVICE_START, "admin", job,
                                         reply, &world->err),
                     0);
    commits_release();
    assert_int_equal(wait_for(&first), 0);
    assert_int_equal(wait_for(&stop), 0);
    assert_int_equal(wait_for(&start), ERR_UNAVAILABLE);
    assert_int_equal(wait_for(&asked), ERR_UNAVAILABLE);
    assert_non_null(strstr(asked.text, "nothing can be stored now"));
    snapshot_release(&snapshot);
}

/* The end of the server leaves nobody without an answer. */
static void the_end_answers_those_who_wait(void **state)
{
    struct world *world = *state;
    struct service_snapshot snapshot = {0};
    struct wait asked;

    gpus_take(world, "a");
    snapshot_ask(world, &asked, &snapshot);
    world_stop(world);
    const int code = wait_for(&asked);
    assert_true(code == 0 || code == ERR_UNAVAILABLE);
    snapshot_release(&snapshot);
}

#define CELLS_TEST(test) cmocka_unit_test_setup_teardown(test, setup_cells, teardown_faults)

static const struct CMUnitTest tests[] = {
    CELLS_TEST(it_shows_what_was_answered),
    CELLS_TEST(cells_of_before_come_back),
    CELLS_TEST(all_who_ask_get_one),
    CELLS_TEST(a_store_that_fails_refuses_those_who_wait),
    CELLS_TEST(the_end_answers_those_who_wait),
};
UNIT_FILE(tests, world_begin, NULL);
