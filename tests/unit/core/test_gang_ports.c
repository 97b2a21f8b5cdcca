/* The ports of a gang are the same on each of its nodes where it asks so, and belong to nobody
 * else. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/memory.h"

static void test_ports(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world.config.port_first = 15000;
    world.config.port_last = 15009;
    struct event event = {.kind = EVENT_CONFIG, .config = &world.config};
    world_step(&world, &event);
    world_node(&world, "n1", 8, 0);
    world_node(&world, "n2", 8, 0);
    struct plan_port ports[] = {{"tensorboard", 2, 9000}, {"ssh", 4, 0}};
    struct plan_role role = world_role("worker", 1, 1, 0);
    struct plan plan = world_plan("a");
    role.ports = ports;
    plan.roles = &role;
    plan.role_count = 1;
    uint32_t job = world_submit(&world, &plan);
    const struct task_record *task = world_task(&world, job, 0, 0);
    assert_int_equal(task->ports[0].first, 9000);
    assert_int_equal(task->ports[0].count, 2);
    assert_string_equal(task->ports[0].label, "tensorboard");
    assert_int_equal(task->ports[1].first, 15000);
    plan.name = "b"; /* the fixed port is taken on n1: the other node is as good */
    job = world_submit(&world, &plan);
    assert_string_equal(world_task(&world, job, 0, 0)->node, "n2");
    plan.name = "c";
    job = world_submit(&world, &plan);
    assert_non_null(strstr(world_job(&world, job)->reason, "fixed port of role worker"));
    ports[0] = (struct plan_port){"http", 1, 0};
    ports[1].count = 11;
    plan.name = "d";
    job = world_submit(&world, &plan);
    assert_non_null(strstr(world_job(&world, job)->reason, "too few free ports"));
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, 3);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ports),
};
UNIT_FILE(tests, NULL, NULL);
