/* The short cut that knows by numbers alone that nothing fits. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"

/* The short cut that knows by numbers alone that nothing fits does not count nodes of more than 255
 * GPUs: there the placer is asked. */
static void nodes_of_many_gpus(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 300); /* the plain placers give the first 64 */
    uint32_t all =
        world_submit_role(&world, "all", 10, world_role("worker", 1, 1, PLACEMENT_GPUS_MAX));
    const struct task_record *task = world_task(&world, all, 0, 0);
    assert_int_equal(task->gpu_count, PLACEMENT_GPUS_MAX);
    assert_int_equal(task->gpus[PLACEMENT_GPUS_MAX - 1], PLACEMENT_GPUS_MAX - 1);
    uint32_t next = world_submit_role(&world, "next", 10, world_role("worker", 1, 1, 1));
    world_node(&world, "n2", 1, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, next);
    world_release(&world);
}

/* Whoever runs with a lower priority may be ended, whatever the number of that priority. */
static void priorities_at_edges(void **state)
{
    static const int32_t priorities[] = {PLACEMENT_PRIORITY_OPPO, 0, 61, 62, 63, 64, 126, 127, 999};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(priorities); i++) {
        struct world world;
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 4);
        const uint32_t first = world_submit_for(&world, "first", priorities[i], 4, 0);
        world_run(&world, 1);
        world_submit_for(&world, "equal", priorities[i], 4, 0);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        world_submit_for(&world, "higher", priorities[i] + 1, 4, 0);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
        assert_int_equal(world_command(&world, COMMAND_KILL, 0)->job.v, first);
        world_release(&world);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(priorities_at_edges),
    cmocka_unit_test(nodes_of_many_gpus),
};
UNIT_FILE(tests, NULL, NULL);
