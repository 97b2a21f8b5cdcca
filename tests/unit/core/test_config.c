/* The configuration of the core: checked whole, and changed while jobs wait and run. */
#include "unit.h"

#include "world.h"
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/state.h"
#include "placement/hived.h"

static void test_config(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t job = world_submit_simple(&world, "a", 2, 1, 1);
    world_run(&world, 1);
    static const char *const policies[] = {"best-fit", "hived", "spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) { /* what runs keeps running */
        world.config.policy = policies[i];
        struct event event = {.kind = EVENT_CONFIG, .config = &world.config};
        world_step(&world, &event);
        assert_int_equal(world_answer(&world)->code, 0);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        world_submit_simple(&world, "b", 1, 1, 3); /* two GPUs are taken in any policy */
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    }
    const char *const wrong_policy = "nonsense";
    struct core_config bad[6];
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        bad[i] = world.config;
    bad[0].policy = wrong_policy;
    bad[1].port_first = 0;
    bad[2].backoff_min_s = bad[2].backoff_max_s + 1;
    bad[3].blame_avoid = bad[3].blame_cordon + 1;
    bad[4].policy = NULL;
    bad[5].placement_document = TEXT("physicalCluster: [");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (i == 4) {
            assert_null(core_new(&bad[i], NULL));
            continue;
        }
        struct event event = {.kind = EVENT_CONFIG, .config = &bad[i]};
        world_step(&world, &event);
        assert_int_equal(world_answer(&world)->code, ERR_INVALID);
    }
    world_exit(&world, 1, 0, 0);
    world_exit(&world, 2, 0, 0);
    assert_int_equal(world_job(&world, job)->state, LIFE_COMPLETED);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1); /* b */
    world_release(&world);
}

static void configurations_are_checked(void **state)
{
    (void)state;
    enum { WRONG = 8 };
    static const char *const paths[WRONG] = {"ports",           "blame",      "policy", "",
                                             "physicalCluster", "retryPause", "order",  "order"};
    struct core_config wrong[WRONG];
    for (size_t i = 0; i < WRONG; i++)
        core_config_default(&wrong[i]);
    wrong[0].port_first = 40001;
    wrong[1].blame_avoid = 0;
    wrong[2].policy = "nonsense";
    wrong[3].placement_document = TEXT("a: [");
    wrong[4].placement_document = TEXT("physicalCluster: 7\nvirtualClusters: {}\n");
    wrong[5].retry_pause_first_s = wrong[5].retry_pause_max_s + 1;
    wrong[6].order = "nonsense";
    wrong[7].order = NULL;
    for (size_t i = 0; i < WRONG; i++) {
        struct err err = {0};
        assert_null(core_new(&wrong[i], &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_string_equal(err.path, paths[i]);
    }
    struct core_config empty; /* a file of comments alone: automatic, as without a file */
    core_config_default(&empty);
    empty.placement_document = TEXT("# nothing yet\n");
    struct core *core = core_new(&empty, NULL);
    assert_non_null(core);
    core_free(core);
}

static void hived_is_seen_under_its_policy_alone(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    assert_null(placer_hived_state(core_placer(world.core)));
    world_release(&world);
    world_init(&world, "hived");
    world_node(&world, "n1", 8, 4);
    assert_non_null(placer_hived_state(core_placer(world.core)));
    world_release(&world);
}

static const char k80_document[] =
    "physicalCluster:\n"
    "  cellTypes: {BOX: {childCellType: K80, childCellNumber: 4, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: BOX, cellAddress: n1}]\n"
    "  skuTypes: {K80: {gpu: 1, cpu: 2, memory: 1Gi}}\n"
    "virtualClusters: {default: {virtualCells: [{cellType: BOX, cellNumber: 1}]}}\n";

static void what_the_configuration_lacks_runs_on(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    world_node(&world, "n1", 8, 4);
    world_node(&world, "n2", 8, 4);
    struct plan_role role = world_role("worker", 1, 1, 4);
    role.sku_type = "V100";
    uint32_t runs = world_submit_role(&world, "runs", 10, role);
    world_run(&world, 1);
    world_submit_role(&world, "beside", 10, role);
    uint32_t waits = world_submit_role(&world, "waits", 10, role);
    world.now_ms += 11000; /* its reason is old by now */
    world_reconfigure(&world, k80_document);
    assert_true(world_has_trace(&world, "node n2: not used by the placer"));
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
    assert_non_null(strstr(world_job(&world, waits)->reason, "the cluster has no V100"));
    assert_int_equal(world_submit_role(&world, "late", 10, role), 0);
    assert_int_equal(world_answer(&world)->code, ERR_NOT_FOUND);
    struct plan_role any = world_role("worker", 1, 1, 1);
    uint32_t other = world_submit_role(&world, "other", 10, any);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* n1 is in use */
    assert_int_equal(world_ask(&world, EVENT_STOP, other), 0);
    world_exit(&world, 1, 0, 0);
    assert_true(world_job(&world, runs)->completion.is_success);
    world_reconfigure(&world, ""); /* automatic again */
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, waits);
    world_release(&world);
}

/* --- another order, in pieces --- */

enum { GPUS = 8, SIZES = 6 };

enum happening {
    THE_FIRST_ENDS,
    A_JOB_COMES,
    A_JOB_IS_STOPPED,
    IT_IS_COPIED,
    THE_SERVER_RESTARTS,
    THE_ORDER_IS_TAKEN_BACK,
    THE_POLICY_CHANGES,
    HAPPENINGS,
};

/* One job has all GPUs, and the larger ones of those that wait have come first. Returns the first
 * of these: it needs SIZES GPUs, the last one needs one. */
static uint32_t order_begin(struct world *world)
{
    char name[16];
    uint32_t first = 0;
    world_init(world, "first-fit");
    world_keep(world);
    core_slice_set(world->core, 1);
    world_node(world, "n1", 64, GPUS);
    world_submit_simple(world, "all", 1, 1, GPUS);
    world_run(world, 1);
    for (uint32_t gpus = SIZES; gpus > 0; gpus--) {
        snprintf(name, sizeof name, "waits%u", gpus);
        const uint32_t job = world_submit_simple(world, name, 1, 1, gpus);
        first = first ? first : job;
    }
    world_pass_end(world);
    world->config.order = "smallest";
    world_configure(world);
    assert_true(core_order_changes(world->core));
    return first;
}

/* Who gets a place first when all GPUs become free. */
static uint32_t started_first(struct world *world)
{
    const uint32_t all = 1;
    world_exit(world, 1, 0, 0);
    for (size_t i = 0; i < world->output.records.count; i++) {
        const struct record *record = &world->output.records.items[i];
        if (record->kind == RECORD_TASK && record->task.job.v != all)
            return record->task.job.v;
    }
    fail_msg("nobody has started");
    return 0;
}

/* The step itself is one more piece: who decides is known after it. */
static uint32_t first_of_now(const struct world *world, uint32_t first)
{
    return core_order_changes(world->core) ? first : first + SIZES - 1;
}

static void order_is_in_force(struct world *world, uint32_t expected)
{
    bool is_told = !core_order_changes(world->core);
    while (world_pass_step(world))
        is_told |= world_has_trace(world, "the order of the queue is smallest");
    assert_false(core_order_changes(world->core));
    assert_true(is_told);
    assert_int_equal(started_first(world), expected);
}

static uint32_t first_starts(struct world *world, uint32_t first)
{
    const uint32_t started = started_first(world);
    assert_int_equal(started, first_of_now(world, first));
    return started;
}

static void copy_does_the_same(struct world *world, uint32_t first)
{
    struct core *copy = core_copy(world->core), *own = world->core;
    const int64_t now_ms = world->now_ms;
    assert_int_equal(core_order_changes(copy), core_order_changes(own));
    const uint32_t started = first_starts(world, first);
    world->core = copy; /* it has heard of nothing */
    world->now_ms = now_ms;
    assert_int_equal(started_first(world), started);
    assert_true(core_hash(copy) == core_hash(own));
    core_free(own);
}

static void order_happens(struct world *world, enum happening happening, uint32_t first)
{
    uint32_t expected = first + SIZES - 1;
    switch (happening) {
    case THE_FIRST_ENDS:
        first_starts(world, first);
        world_pass_end(world);
        assert_false(core_order_changes(world->core));
        return;
    case A_JOB_COMES: /* in both orders at its place: the one of a GPU goes first in the new one */
        world_submit_simple(world, "late", 1, 1, 1);
        break;
    case A_JOB_IS_STOPPED:
        assert_int_equal(world_ask(world, EVENT_STOP, expected--), 0);
        break;
    case IT_IS_COPIED:
        copy_does_the_same(world, first);
        return;
    case THE_SERVER_RESTARTS:
        world_restart(world);
        assert_false(core_order_changes(world->core));
        break;
    case THE_ORDER_IS_TAKEN_BACK:
        world->config.order = "priority";
        world_configure(world);
        world_pass_end(world);
        assert_int_equal(started_first(world), first);
        return;
    case THE_POLICY_CHANGES:
        world->config.policy = "best-fit";
        world_configure(world);
        break;
    case HAPPENINGS:
        break;
    }
    order_is_in_force(world, expected);
}

/* Until all that wait are in the new order the one of before decides, whatever happens. */
static void another_order_decides_when_all_are_in_it(void **state)
{
    (void)state;
    for (int happening = 0; happening < HAPPENINGS; happening++) {
        uint32_t cuts = 0;
        for (bool is_over = false; !is_over; cuts++) {
            struct world world;
            const uint32_t first = order_begin(&world);
            for (uint32_t i = 0; i < cuts; i++)
                assert_true(world_pass_step(&world));
            is_over = !core_order_changes(world.core);
            order_happens(&world, (enum happening)happening, first);
            world_release(&world);
        }
        assert_in_range(cuts, SIZES, 4 * SIZES);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(another_order_decides_when_all_are_in_it),
    cmocka_unit_test(test_config),
    cmocka_unit_test(configurations_are_checked),
    cmocka_unit_test(hived_is_seen_under_its_policy_alone),
    cmocka_unit_test(what_the_configuration_lacks_runs_on),
};
UNIT_FILE(tests, NULL, NULL);
