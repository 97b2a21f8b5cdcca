/* A gang is placed and started: whole, in parts, and not at all when a node of it fails. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/memory.h"

static void test_gang_waits_whole(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t big = world_submit_simple(&world, "big", 3, 1, 2);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    assert_non_null(strstr(world_job(&world, big)->reason, "3 x (2 GPU, 1 CPU, "));
    assert_true(world_has_story(&world, "Waiting", "it can never start"));
    /* it holds nothing, and what fits behind it starts */
    world_submit_simple(&world, "small", 1, 1, 4);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    /* a second node is enough for both */
    world_node(&world, "n2", 8, 8);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 3);
    assert_int_equal(world_job(&world, big)->state, LIFE_CREATION_REQUESTED);
    assert_string_equal(world_job(&world, big)->reason, "");
    world_release(&world);
}

static void test_parts_of_a_gang(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    struct plan plan = world_plan("a");
    struct plan_role roles[] = {world_role("ps", 1, 1, 2), world_role("worker", 1, 1, 4)};
    roles[0].affinity_group = "x";
    plan.roles = roles;
    plan.role_count = 2;
    uint32_t job = world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    struct core_counts counts;
    core_count(world.core, &counts);
    assert_int_equal(counts.gpus_used, 0); /* the first part was given back */
    world_node(&world, "n2", 8, 4);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    assert_int_equal(world_job(&world, job)->state, LIFE_CREATION_REQUESTED);
    world_release(&world);

    /* and preempts for both of its parts, or for none */
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    world_node(&world, "n2", 8, 4);
    world_submit_for(&world, "cheap1", -1, 4, 0);
    world_submit_for(&world, "cheap2", -1, 4, 0);
    plan.priority = 100;
    job = world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 2);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* held for it */
    world_exit(&world, 2, 143, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, job);
    world_release(&world);
}

static void sicken(struct world *world)
{
    struct event event = {.kind = EVENT_NODE, .node = {.address = ""}};
    event.node = (struct node_facts){
        .name = "n2", .cpu = 8, .memory_mib = 8192, .gpu_count = 4, .gpu_type = "V100"};
    world_step(world, &event);
}

static void lose(struct world *world)
{
    world_node_event(world, EVENT_NODE_LOST, "n2");
}

static void cordon(struct world *world)
{
    struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {2}, .blame = 20}};
    event.task.completion = completion_of(CODE_CONTAINER_DELETED, "gone");
    world_step(world, &event);
}

/* A gang of two parts: one is bound to n2 and held, the other waits for the end of `cheap` on n1.
 */
static void a_held_node_that_fails_undoes_the_gang(void **state)
{
    (void)state;
    static void (*const failures[])(struct world *) = {sicken, lose, cordon};
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        struct world world;
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 4);
        world_node(&world, "n2", 8, 4);
        world_submit_role(&world, "cheap", -1, world_role("worker", 1, 8, 4));
        world_submit_role(&world, "beside", 10, world_role("worker", 1, 1, 0)); /* on n2 */
        struct plan_role roles[] = {world_role("ps", 1, 1, 2), world_role("worker", 1, 1, 4)};
        struct plan plan = world_plan_of("dear", roles);
        plan.role_count = 2;
        plan.priority = 100;
        roles[0].affinity_group = "x";
        uint32_t dear = world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
        failures[i](&world);
        assert_non_null(strstr(world_job(&world, dear)->reason, "held back for it has failed"));
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_node(&world, "n3", 8, 4);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* whole or not at all */
        world_exit(&world, 1, 143, 0);
        assert_string_not_equal(world_task(&world, dear, 0, 0)->node, "n2");
        assert_string_not_equal(world_task(&world, dear, 1, 0)->node, "n2");
        world_release(&world);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_gang_waits_whole),
    cmocka_unit_test(test_parts_of_a_gang),
    cmocka_unit_test(a_held_node_that_fails_undoes_the_gang),
};
UNIT_FILE(tests, NULL, NULL);
