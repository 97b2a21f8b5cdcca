/* What is asked of the placer for a gang: parts, and roles without instances. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"

static void a_role_without_instances_needs_no_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) { /* with the others, or a part of its own */
        struct plan_role roles[] = {world_role("ps", 0, 1, 0), world_role("worker", 2, 1, 1)};
        struct plan plan = world_plan_of("a", roles);
        struct world world;
        plan.role_count = 2;
        roles[0].affinity_group = i ? "alone" : "";
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 1);
        uint32_t job = world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_timer(&world, 601000);
        world_node(&world, "n1", 8, 2); /* it has starved, and starts all the same */
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
        world_exit(&world, 1, 0, 0);
        world_exit(&world, 2, 0, 0);
        assert_true(world_job(&world, job)->completion.is_success);
        world_release(&world);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_role_without_instances_needs_no_place),
};
UNIT_FILE(tests, NULL, NULL);
