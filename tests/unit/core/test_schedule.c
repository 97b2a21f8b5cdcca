/* The scheduling pass: what hinders one class of jobs hinders no other, and nobody is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "world.h"

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

static uint32_t submit_role(struct world *world, const char *name, struct plan_role role)
{
    struct plan plan = world_plan_of(name, &role);
    return world_submit(world, &plan);
}

/* --- what belongs to the shape --- */

/* The node has 25,001 ports to give: 24 jobs of 1,002 leave too few for one more. */
static void a_wait_for_ports_hinders_no_other_shape(void **state)
{
    (void)state;
    enum { RUNNING = 24 };
    static const struct plan_port many[] = {{"ssh", 1, 0}, {"http", 1, 0}, {"data", 1000, 0}};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 64, 0);
        struct plan_role role = world_role("worker", 1, 1, 0);
        const struct plan_port *few = role.ports;
        role.ports = many;
        role.port_count = COUNT_OF(many);
        char name[16];
        for (uint32_t j = 0; j < RUNNING; j++) {
            snprintf(name, sizeof name, "many%u", j);
            submit_role(&world, name, role);
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        }
        uint32_t waiting = submit_role(&world, "waiting", role);
        assert_non_null(strstr(world_job(&world, waiting)->reason, "too few free ports"));
        role.ports = few;
        role.port_count = 2;
        for (uint32_t j = RUNNING; j < 64; j++) {
            snprintf(name, sizeof name, "few%u", j);
            submit_role(&world, name, role);
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        }
        uint32_t late = submit_role(&world, "late", role);
        assert_string_not_equal(world_job(&world, late)->reason, "");
        assert_null(strstr(world_job(&world, late)->reason, "ports"));
        world_exit(&world, 1, 0, 0); /* the first in the queue that fits */
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, waiting);
        world_release(&world);
    }
}

/* `dear` has ended `cheap` and lost the node that it held meanwhile: now it pauses. Its like has
 * ended nobody for nothing, and need not pause. */
static void a_pause_hinders_nobody_else(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    world_node(&world, "n2", 8, 4);
    struct plan_role role = world_role("worker", 1, 8, 4);
    struct plan cheap = world_plan_of("cheap", &role);
    cheap.priority = -1;
    world_submit(&world, &cheap);
    world_submit_simple(&world, "beside", 1, 1, 0); /* on n2 */
    struct plan_role roles[] = {world_role("ps", 1, 1, 2), world_role("worker", 1, 1, 4)};
    roles[0].affinity_group = "x";
    struct plan dear = world_plan_of("dear", roles);
    dear.role_count = 2;
    dear.priority = 100;
    uint32_t first = world_submit(&world, &dear);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
    world_node_event(&world, EVENT_NODE_LOST, "n2");
    assert_non_null(strstr(world_job(&world, first)->reason, "held back for it has failed"));
    world_node(&world, "n2", 8, 4);
    assert_non_null(strstr(world_job(&world, first)->reason, "it tries again in 30 s"));
    dear.name = "twin";
    uint32_t twin = world_submit(&world, &dear);
    assert_non_null(strstr(world_job(&world, twin)->reason, "preempts others of lower priority"));
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, twin);
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_for_ports_hinders_no_other_shape),
        cmocka_unit_test(a_pause_hinders_nobody_else),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
