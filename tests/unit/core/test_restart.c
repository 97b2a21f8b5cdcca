/* A core that begins from its rows goes on where the last one was: what it knew of groups, of
 * reasons and of held containers was not lost with it.
 *
 * Covers: src/core/restore.c, src/core/rows.c, src/core/tasks.c */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/memory.h"
#include "core/rows.h"
#include "hived/hived.h"
#include "placement/hived.h"

static void begin(struct world *world, const char *policy)
{
    world_init(world, policy);
    world_keep(world);
    world_node(world, "n1", 16, 4);
}

static uint32_t submit(struct world *world, const char *name, int32_t priority, uint32_t gpu,
                       uint64_t limit_s)
{
    struct plan_role role = world_role("worker", 1, 1, gpu);
    struct plan plan = world_plan_of(name, &role);
    plan.priority = priority;
    plan.time_limit_s = limit_s;
    return world_submit(world, &plan);
}

/* Whoever was told to end for another job is not told again: the grace that it was given runs on.
 */
static void victims_are_told_once(void **state)
{
    (void)state;
    for (int is_gang = 0; is_gang < 2; is_gang++) {
        struct world world;
        begin(&world, "first-fit");
        struct plan_role role = world_role("worker", 1, 1, 4);
        struct plan plan = world_plan_of("low", &role);
        role.task_retry_max = 3;
        plan.priority = -1;
        plan.is_gang = is_gang;
        world_submit(&world, &plan);
        world_run(&world, 1);
        uint32_t high = submit(&world, "high", 100, 4, 0);
        assert_true(world_has_trace(&world, "high: preempts alice~low"));
        world_restart(&world);
        assert_false(world_has_trace(&world, ": preempts alice"));
        world_timer(&world, 1000);
        assert_false(world_has_trace(&world, ": preempts alice"));
        world_exit(&world, 1, 143, 0);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, high);
        world_release(&world);
    }
}

static void start_at(struct world *world, uint64_t attempt, const char *address)
{
    struct event event = {.kind = EVENT_TASK_STARTED,
                          .task = {.attempt = {attempt}, .address = address}};
    world_step(world, &event);
}

/* A task that has an address of its own keeps it, and the next one at its place does not have it.
 */
static void an_address_of_its_own_is_kept(void **state)
{
    (void)state;
    struct world world;
    begin(&world, "first-fit");
    const uint32_t job = submit(&world, "job", 10, 0, 0);
    const char *of_node = mem_copy(world_task(&world, job, 0, 0)->address);
    start_at(&world, 1, "10.1.0.7");
    assert_string_equal(world_task(&world, job, 0, 0)->address, "10.1.0.7");
    struct core *copy = core_copy(world.core);
    core_free(copy);
    world_restart(&world);
    start_at(&world, 1, NULL);
    assert_int_equal(world.output.records.count, 0);
    start_at(&world, 1, "10.1.0.7"); /* who waits for it is told by the row */
    assert_string_equal(world_task(&world, job, 0, 0)->address, "10.1.0.7");
    world_exit(&world, 1, 0, 0);
    assert_string_equal(world_task(&world, job, 0, 0)->address, "10.1.0.7");
    const uint32_t next = submit(&world, "next", 10, 0, 0);
    world_run(&world, 2);
    assert_string_equal(world_task(&world, next, 0, 0)->address, of_node);
    mem_free((char *)(uintptr_t)of_node);
    world_release(&world);
}

/* The order in which groups were placed, not that of their numbers, says who keeps the cells when
 * a restart brings a configuration in which they do not all fit. */
static void who_was_placed_first_keeps_its_cells(void **state)
{
    (void)state;
    static const char one_node[] =
        "physicalCluster:\n"
        "  cellTypes: {NODE: {childCellType: G, childCellNumber: 4, isNodeLevel: true}}\n"
        "  physicalCells: [{cellType: NODE, cellAddress: n1}, {cellType: NODE, cellAddress: n2}]\n"
        "virtualClusters:\n"
        "  default: {virtualCells: [{cellType: NODE, cellNumber: 1}]}\n";
    struct world world;
    begin(&world, "first-fit");
    submit(&world, "first", 10, 4, 0);
    uint32_t late = submit(&world, "late", 10, 3, 0);
    world_node(&world, "n2", 16, 2);
    uint32_t early = submit(&world, "early", 10, 2, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, early);
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, late);
    world.config.policy = "hived";
    world.config.placement_document = text_of(one_node);
    world_node(&world, "n2", 16, 4);
    world_restart(&world);
    struct hived_group_view view;
    assert_true(
        hived_group_find(placer_hived_state(core_placer(world.core)), "alice~early/0", &view));
    assert_true(view.has_virtual);
    assert_true(
        hived_group_find(placer_hived_state(core_placer(world.core)), "alice~late/0", &view));
    assert_false(view.has_virtual);
    world_release(&world);
}

/* Time limits run from the launch, not from the restart: a job that lasts beyond the end of what a
 * starving one waits for would delay it. */
static void limits_run_on(void **state)
{
    (void)state;
    struct world world;
    begin(&world, "first-fit");
    submit(&world, "limited", 10, 3, 2000);
    world_run(&world, 1);
    world_timer(&world, 1000000);
    world_restart(&world);
    submit(&world, "big", 10, 4, 0);
    world_timer(&world, 601000);
    assert_int_equal(world_story_count(&world, "Reserved"), 1);
    uint32_t longer = submit(&world, "longer", 10, 1, 900);
    assert_non_null(strstr(world_job(&world, longer)->reason, "room is held back"));
    uint32_t brief = submit(&world, "brief", 10, 1, 300);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, brief);
    world_release(&world);
}

/* A reason that a job was told before is no news after a restart. */
static void reasons_are_told_once(void **state)
{
    (void)state;
    struct world world;
    begin(&world, "first-fit");
    submit(&world, "a", 10, 4, 0);
    submit(&world, "b", 10, 4, 0);
    assert_int_equal(world_story_count(&world, "Waiting"), 1);
    world_restart(&world);
    assert_int_equal(world_story_count(&world, "Waiting"), 0);
    world_timer(&world, 1000);
    assert_int_equal(world_story_count(&world, "Waiting"), 0);
    world_release(&world);
}

/* A container that is kept for debugging is kept over restarts, until it is released. */
static void held_containers_are_released_after_it(void **state)
{
    (void)state;
    struct world world;
    begin(&world, "first-fit");
    struct plan_role role = world_role("worker", 1, 1, 1);
    struct plan plan = world_plan_of("a", &role);
    plan.is_debug = true;
    world_submit_simple(&world, "before", 2, 1, 0); /* rows of others stand before its own */
    uint32_t job = world_submit(&world, &plan);
    world_run(&world, 3);
    world_exit(&world, 3, 1, 0);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 0);
    world_restart(&world);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 0);
    assert_int_equal(world_ask(&world, EVENT_RELEASE, job), 0);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 1);
    assert_int_equal(world_command(&world, COMMAND_FORGET, 0)->attempt.v, 3);
    /* the rows of all attempts, the last among them, and one for none */
    assert_int_equal(rows_attempt_count(world.rows), 1 + 3);
    world_release(&world);
}

/* A pause that ended while the server was down: the core is woken now, not in the past. */
static void what_passed_meanwhile_is_due_at_once(void **state)
{
    (void)state;
    struct world world;
    begin(&world, "first-fit");
    uint32_t job = submit(&world, "pauses", 10, 1, 0);
    for (uint64_t attempt = 1; attempt <= 2; attempt++) { /* the first retry has no pause */
        world_run(&world, attempt);
        world_exit(&world, attempt, CODE_CONTAINER_DELETED, EXIT_TRANSIENT);
    }
    assert_null(world_command(&world, COMMAND_CREATE, 0));
    world.now_ms += 3600 * 1000;
    world_restart(&world);
    const struct command *wake = world_command(&world, COMMAND_WAKE, 0);
    assert_non_null(wake);
    assert_int_equal(wake->at_ms, world.now_ms);
    world_timer(&world, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, job);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_address_of_its_own_is_kept),
    cmocka_unit_test(victims_are_told_once),
    cmocka_unit_test(who_was_placed_first_keeps_its_cells),
    cmocka_unit_test(limits_run_on),
    cmocka_unit_test(reasons_are_told_once),
    cmocka_unit_test(held_containers_are_released_after_it),
    cmocka_unit_test(what_passed_meanwhile_is_due_at_once),
};
UNIT_FILE(tests, NULL, NULL);
