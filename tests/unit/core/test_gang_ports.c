/* The ports of a gang are the same on each of its nodes where it asks so, and belong to nobody
 * else. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "core/state.h"

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
    assert_string_equal(world_job(&world, job)->reason, "the fixed port 9000 is taken on node n1");
    ports[0] = (struct plan_port){"http", 1, 0};
    ports[1].count = 11;
    plan.name = "d";
    job = world_submit(&world, &plan);
    assert_string_equal(world_job(&world, job)->reason, "too few free ports on node n1");
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, 3);
    world_release(&world);
}

static void submit_and_wait(struct world *world, const char *user, const char *name,
                            struct plan_role role, const char *reason)
{
    struct plan plan = world_plan_of(name, &role);
    plan.user = user;
    assert_string_equal(world_job(world, world_submit(world, &plan))->reason, reason);
}

/* Users whose jobs need the same share one reason: it has no words of one of them. */
static void all_of_a_class_are_told_what_is_true_of_each(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world.config.port_first = 15000;
    world.config.port_last = 15001;
    struct event event = {.kind = EVENT_CONFIG, .config = &world.config};
    world_step(&world, &event);
    world_node(&world, "n1", 8, 0);
    struct plan_port ports[] = {{"secret-label", 3, 8078}, {"http", 1, 0}};
    struct plan_role role = world_role("secret-x", 1, 1, 0);
    role.ports = &(const struct plan_port){"http", 1, 8080};
    role.port_count = 1;
    struct plan holder = world_plan_of("holder", &role);
    assert_non_null(world_task(&world, world_submit(&world, &holder), 0, 0));
    role.ports = ports;
    submit_and_wait(&world, "alice", "a", role, "the fixed port 8080 is taken on node n1");
    role.name = "worker";
    ports[0].label = "web";
    submit_and_wait(&world, "bob", "a", role, "the fixed port 8080 is taken on node n1");
    assert_int_equal(queue_class_count(world.core->queue), 1);
    ports[0] = (struct plan_port){"web", 3, 0};
    submit_and_wait(&world, "bob", "b", role, "too few free ports on node n1");
    role.name = "secret-x";
    submit_and_wait(&world, "alice", "b", role, "too few free ports on node n1");
    assert_int_equal(queue_class_count(world.core->queue), 2);
    world_release(&world);
}

/* Tasks of a gang with one fixed port need a node each: with fewer nodes nobody ends for it. */
static void nobody_ends_for_a_port_that_cannot_be_had(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (uint32_t tasks = 2; tasks <= 3; tasks++) {
            struct world world;
            world_init(&world, policies[i]);
            world_node(&world, "n1", 8, 4);
            world_node(&world, "n2", 8, 4);
            world_submit_for(&world, "low1", -1, 4, 0);
            world_submit_for(&world, "low2", -1, 4, 0);
            const struct plan_port port = {"http", 1, 9000};
            struct plan_role role = world_role("worker", tasks, 1, tasks == 2 ? 4 : 2);
            role.ports = &port;
            role.port_count = 1;
            struct plan plan = world_plan_of("gang", &role);
            plan.priority = 100;
            uint32_t gang = world_submit(&world, &plan);
            assert_int_equal(world_command_count(&world, COMMAND_KILL), tasks == 2 ? 2 : 0);
            if (tasks == 3)
                assert_non_null(strstr(world_job(&world, gang)->reason,
                                       "3 of its tasks need the fixed port 9000, each on a node "
                                       "of its own: 2 nodes could give it"));
            world_release(&world);
        }
}

/* One node's port is held by a job that stays. */
static void a_port_of_a_job_that_stays_cannot_be_had(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    const struct plan_port port = {"http", 1, 9000};
    struct plan_role role = world_role("worker", 1, 1, 0);
    role.ports = &port;
    role.port_count = 1;
    struct plan plan = world_plan_of("stays", &role);
    plan.priority = 100;
    world_submit(&world, &plan);
    world_submit_for(&world, "low", -1, 4, 0);
    role.gpu = 4;
    plan = world_plan_of("gang", &role);
    plan.priority = 100;
    uint32_t gang = world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
    assert_non_null(strstr(world_job(&world, gang)->reason, "fixed port 9000"));
    plan = world_plan_of("above", &role);
    plan.priority = 120;
    world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
    world_release(&world);
}

/* Many nodes, on each a job that stays with the port 9000, but for the last ones, and one of low
 * priority with all GPUs. */
static void ports_taken_init(struct world *world, const char *policy, uint32_t nodes, uint32_t free)
{
    const struct plan_port port = {"http", 1, 9000};
    world_init(world, policy);
    for (uint32_t i = 0; i < nodes; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        world_node(world, name, 8, 4);
        snprintf(name, sizeof name, "stays%u", i);
        struct plan_role role = world_role("worker", 1, 5, 0);
        role.ports = &port;
        role.port_count = i + free < nodes;
        struct plan plan = world_plan_of(name, &role);
        plan.priority = 100;
        world_submit(world, &plan);
        snprintf(name, sizeof name, "low%u", i);
        world_submit_for(world, name, -1, 4, 0);
    }
    while (world_pass_step(world))
        ;
}

/* Whether the end of others can give a job its ports is asked in steps of bounded work, of a gang
 * and of a job without gang; nobody ends before the answer. */
static void many_nodes_are_looked_at_in_steps(void **state)
{
    (void)state;
    enum { NODES = 120, SLICE = 20, TASKS = 2, STEPS_MAX = 1000 };
    static const char *const policies[] = {"first-fit", "best-fit", "spread"};
    for (size_t i = 0; i < 2 * COUNT_OF(policies); i++)
        for (uint32_t free = 0; free <= TASKS; free += TASKS) {
            struct world world;
            ports_taken_init(&world, policies[i / 2], NODES, free);
            core_slice_set(world.core, SLICE);
            const struct plan_port port = {"http", 1, 9000};
            struct plan_role role = world_role("worker", TASKS, 1, 4);
            role.ports = &port;
            role.port_count = 1;
            struct plan plan = world_plan_of("urgent", &role);
            plan.is_gang = i % 2;
            plan.priority = 100;
            const uint32_t job = world_submit(&world, &plan);
            uint32_t steps = 0, kills = 0, looked = 0, looks = 0;
            bool is_told = false;
            do {
                const uint32_t now = world.core->placing.look.node;
                assert_true(now <= looked + SLICE);
                looks += now > looked;
                looked = now;
                kills += (uint32_t)world_command_count(&world, COMMAND_KILL);
                const struct job_record *record = world_job(&world, job);
                is_told |= record && strstr(record->reason, "nodes could give it");
            } while (world_pass_step(&world) && ++steps < STEPS_MAX);
            assert_in_range(steps, 1, STEPS_MAX - 1);
            assert_true(looks >= NODES / SLICE);
            assert_int_equal(kills, !free ? 0 : plan.is_gang ? TASKS : 1);
            assert_int_equal(is_told, !free);
            world_release(&world);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(many_nodes_are_looked_at_in_steps),
    cmocka_unit_test(test_ports),
    cmocka_unit_test(all_of_a_class_are_told_what_is_true_of_each),
    cmocka_unit_test(nobody_ends_for_a_port_that_cannot_be_had),
    cmocka_unit_test(a_port_of_a_job_that_stays_cannot_be_had),
};
UNIT_FILE(tests, NULL, NULL);
