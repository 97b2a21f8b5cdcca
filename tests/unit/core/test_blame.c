/* A node is blamed for the platform's failures: avoided, cordoned, told of, pardoned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "job/job.h"
#include "world.h"

/* A failure that costs no retry and counts 1 against the node. */
static void lose(struct world *world, uint64_t attempt)
{
    struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {attempt}, .blame = 1}};
    world_run(world, attempt);
    event.task.completion = completion_of(CODE_CONTAINER_DELETED, "%s", "said the test");
    world_step(world, &event);
}

/* Retries without a pause between. */
static void world_hurry(struct world *world)
{
    world->config.retry_pause_first_s = 0;
    world_configure(world);
}

static void told_at_each_level(void **state)
{
    (void)state;
    struct world world;
    uint64_t attempt = 1, avoided_at = 0;
    world_init(&world, "first-fit");
    world_hurry(&world);
    world_node(&world, "n1", 8, 0);
    world_submit_simple(&world, "unlucky", 1, 1, 0);
    do { /* it fades while they come: a little more than the 3 and 10 of the configuration */
        lose(&world, attempt);
        if (world_has_story(&world, "NodeAvoided", "node n1 is taken last now")) {
            assert_int_equal(avoided_at, 0);
            avoided_at = attempt;
        }
        assert_true(attempt < 20);
    } while (!world_has_story(&world, "NodeCordoned", "node n1 is taken no more") && attempt++);
    assert_in_range(avoided_at, 3, 4);
    assert_in_range(attempt, 10, 12);
    assert_true(world_node_row(&world)->is_cordoned);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* it waits for another */
    world_node_event(&world, EVENT_NODE_PARDON, "n1");
    assert_false(world_node_row(&world)->is_cordoned);
    assert_true(world_node_row(&world)->blame == 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world_release(&world);
}

/* A job that waits because of it is told who cordoned the node, why, and since when. */
static void who_waits_is_told_of_the_cordon(void **state)
{
    static const char *const policies[] = {"first-fit", "hived"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        uint64_t attempt = 1;
        world_init(&world, policies[i]);
        world_hurry(&world);
        world_node(&world, "n1", 8, 0);
        world_submit_simple(&world, "unlucky", 1, 1, 0);
        do {
            lose(&world, attempt);
            assert_true(attempt < 20);
        } while (!world_has_story(&world, "NodeCordoned", "n1 is taken no more") && attempt++);
        assert_true(world_has_story(&world, "Waiting",
                                    "; not used: n1 (cordoned by the platform since 19"));
        assert_true(world_has_story(&world, "Waiting",
                                    " failures of the platform were counted there, the last: -101 "
                                    "PodExternalDeleted of alice~unlucky worker-0)"));
        assert_non_null(
            strstr(world_node_row(&world)->facts.reason, "cordoned by the platform since "));
        /* an inventory that is told again keeps the reason; so does a restart */
        world_node(&world, "n1", 8, 0);
        assert_non_null(
            strstr(world_node_row(&world)->facts.reason, "cordoned by the platform since "));
        world_node_event(&world, EVENT_NODE_PARDON, "n1");
        assert_string_equal(world_node_row(&world)->facts.reason, "");
        world_release(&world);
    }
}

/* Who waits already hears of it as well, and of nodes that are lost or not healthy. */
static void nodes_that_are_not_used_are_named(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    for (int i = 1; i <= 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        world_node(&world, name, 8, 0);
    }
    world_submit_simple(&world, "fills", 5, 8, 0);
    world_submit_simple(&world, "waits", 1, 8, 0);
    assert_true(world_has_story(&world, "Waiting", "waiting: "));
    assert_false(world_has_story(&world, "Waiting", "not used"));
    world_node_event(&world, EVENT_NODE_LOST, "n2");
    assert_true(world_has_story(&world, "Waiting", "; not used: n2 (lost"));
    for (int i = 3; i <= 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        world_node_event(&world, EVENT_NODE_LOST, name);
    }
    assert_true(world_has_story(&world, "Waiting", " and 1 more"));
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_at_each_level),
        cmocka_unit_test(who_waits_is_told_of_the_cordon),
        cmocka_unit_test(nodes_that_are_not_used_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
