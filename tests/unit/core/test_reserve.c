/* Reservations: the shadow knows what has started since, which nodes are gone, and when what runs
 * will have ended; so nobody behind the starving job delays it, and nobody waits for nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/state.h"
#include "world.h"

enum { STARVES_MS = 601000, DAY_S = 86400 };

struct demand {
    int32_t priority;
    uint32_t gpu;
    uint64_t limit_s; /* 0: none */
};

static uint32_t submit(struct world *world, const char *name, struct demand demand)
{
    struct plan_role role = world_role("worker", 1, 1, demand.gpu);
    struct plan plan = world_plan_of(name, &role);
    plan.priority = demand.priority;
    plan.time_limit_s = demand.limit_s;
    return world_submit(world, &plan);
}

/* The node that the job was just placed on, or "". */
static const char *node_of(const struct world *world, uint32_t job)
{
    const struct task_record *task = world_task(world, job, 0, 0);
    return task && task->node ? task->node : "";
}

static bool is_held_back(const struct world *world, uint32_t job)
{
    return strstr(world_job(world, job)->reason, "room is held back for alice~big") != NULL;
}

/* Two nodes of four GPUs, three of each in use, and a job of four that has starved. */
static void starving_init(struct world *world)
{
    world_init(world, "spread");
    world_node(world, "n1", 16, 4);
    world_node(world, "n2", 16, 4);
    submit(world, "old1", (struct demand){10, 3, 0});
    submit(world, "old2", (struct demand){10, 3, 0});
    submit(world, "big", (struct demand){10, 4, 0});
    world_timer(world, STARVES_MS);
    assert_int_equal(world_story_count(world, "Reserved"), 1);
}

/* What starts behind a starving job is taken into account for the next one: each alone leaves it a
 * node, both together would not. */
static void what_starts_behind_counts(void **state)
{
    (void)state;
    struct world world;
    starving_init(&world);
    uint32_t first = submit(&world, "s1", (struct demand){10, 1, 0});
    assert_string_equal(node_of(&world, first), "n1");
    uint32_t second = submit(&world, "s2", (struct demand){10, 1, 0});
    assert_string_equal(node_of(&world, second), "");
    assert_true(is_held_back(&world, second));
    world_release(&world);
}

/* A task of a gang that started behind has ended: its place is free in the shadow, too, before the
 * rest of the gang has ended. */
static void what_ends_behind_counts_no_more(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    world_node(&world, "n2", 16, 4);
    submit(&world, "old1", (struct demand){10, 2, 0});
    submit(&world, "old2", (struct demand){10, 3, 0});
    submit(&world, "big", (struct demand){10, 4, 0});
    world_timer(&world, STARVES_MS);
    assert_int_equal(world_story_count(&world, "Reserved"), 1);
    struct plan_role role = world_role("worker", 2, 1, 1);
    struct plan plan = world_plan_of("gang", &role);
    uint32_t gang = world_submit(&world, &plan);
    assert_string_equal(node_of(&world, gang), "n1");
    world_exit(&world, 3, 0, 0);
    uint32_t next = submit(&world, "next", (struct demand){10, 1, 0});
    assert_string_equal(node_of(&world, next), "n1");
    world_release(&world);
}

/* A job ahead of the starving one has changed what can be free when: the shadow is made anew, and
 * what it held before against the jobs behind no longer counts. */
static void what_starts_ahead_renews_the_shadow(void **state)
{
    (void)state;
    struct world world;
    starving_init(&world);
    submit(&world, "s1", (struct demand){10, 1, 0});
    uint32_t ahead = submit(&world, "ahead", (struct demand){100, 1, 0});
    assert_string_equal(node_of(&world, ahead), "n2");
    world_exit(&world, 4, 0, 0); /* it has ended again; attempts 1 and 2 are the old ones */
    uint32_t second = submit(&world, "s2", (struct demand){10, 1, 0});
    assert_string_equal(node_of(&world, second), "n2");
    world_release(&world);
}

/* A node that fails after the reservation was made is no place for the starving job: the other one
 * is kept for it. */
static void a_failed_node_is_no_room(void **state)
{
    (void)state;
    struct world world;
    starving_init(&world);
    struct event event = {
        .kind = EVENT_NODE,
        .node = {.name = "n2",
                 .cpu = 16,
                 .memory_mib = 16384,
                 .gpu_count = 4,
                 .gpu_type = "V100",
                 .address = "10.0.0.1",
                 .reason = "disk"},
    };
    world_step(&world, &event);
    uint32_t small = submit(&world, "s1", (struct demand){10, 1, 0});
    assert_string_equal(node_of(&world, small), "");
    assert_true(is_held_back(&world, small));
    world_release(&world);
}

/* A job that ends before the starving one could start may end others for its own start: it delays
 * nobody. One that lasts longer may not. */
static void who_ends_in_time_may_preempt(void **state)
{
    (void)state;
    static const struct {
        uint64_t limit_s;
        bool may;
    } cases[] = {{60, true}, {DAY_S / 2, false}, {0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world world;
        world_init(&world, "first-fit");
        world_node(&world, "n1", 16, 4);
        submit(&world, "limited", (struct demand){100, 3, 3600});
        world_run(&world, 1);
        submit(&world, "low", (struct demand){-1, 1, 0});
        world_run(&world, 2);
        submit(&world, "big", (struct demand){100, 4, 0});
        world_timer(&world, STARVES_MS);
        assert_int_equal(world_story_count(&world, "Reserved"), 1);
        uint32_t job = submit(&world, "p", (struct demand){100, 1, cases[i].limit_s});
        assert_int_equal(world_command_count(&world, COMMAND_KILL), cases[i].may);
        assert_int_equal(is_held_back(&world, job), !cases[i].may);
        world_release(&world);
    }
}

/* Another policy judges rooms otherwise: a reservation made by the old one ends with it, and is
 * made again by the new one. */
static void a_change_of_policy_makes_reservations_anew(void **state)
{
    (void)state;
    struct world world;
    starving_init(&world);
    submit(&world, "s1", (struct demand){10, 1, 0});
    world.config.policy = "best-fit";
    world_configure(&world);
    world_timer(&world, STARVES_MS);
    assert_int_equal(world_story_count(&world, "Reserved"), 1);
    world_release(&world);
}

/* Who no longer waits has no reservation: the room is for everybody again. */
static void a_stopped_job_gives_up_its_room(void **state)
{
    (void)state;
    struct world world;
    starving_init(&world);
    submit(&world, "s1", (struct demand){10, 1, 0});
    uint32_t second = submit(&world, "s2", (struct demand){10, 1, 0});
    assert_true(is_held_back(&world, second));
    assert_int_equal(world_ask(&world, EVENT_STOP, 3), 0);
    assert_string_equal(node_of(&world, second), "n2");
    world_release(&world);
}

/* What the shadow cannot follow makes it worthless, and it is made
 * anew before anything else is asked of it. Nothing that the core does leads there; a group that
 * only the shadow knows stands for a defect. */
static void a_shadow_that_cannot_follow_is_made_anew(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    submit(&world, "old", (struct demand){100, 3, 0});
    world_run(&world, 1);
    submit(&world, "low", (struct demand){-1, 1, 0});
    world_run(&world, 2);
    submit(&world, "big", (struct demand){100, 3, 0});
    world_timer(&world, STARVES_MS);
    assert_int_equal(world.core->reservations.count, 1);
    uint32_t job = submit(&world, "p", (struct demand){100, 1, 0});
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
    struct placer *shadow = world.core->reservations.items[0].shadow;
    const struct placement_member member = {1, 1, 1, 1, "", ""};
    const struct placement_request ghost = {.group = "ghost",
                                            .virtual_cluster = "default",
                                            .priority = 100,
                                            .pinned_cell_id = "",
                                            .members = &member,
                                            .member_count = 1};
    const struct placement_slot slot = {.node = {0}, .gpu_count = 1, .gpus = {3}};
    assert_int_equal(shadow->ops->commit(shadow, &ghost, &slot, 1, false, NULL), 0);
    world_exit(&world, 2, 143, 0);
    assert_string_equal(node_of(&world, job), "n1");
    assert_true(world.core->reservations.items[0].is_stale);
    submit(&world, "next", (struct demand){10, 1, 0}); /* now it is asked */
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_starts_behind_counts),
        cmocka_unit_test(what_ends_behind_counts_no_more),
        cmocka_unit_test(what_starts_ahead_renews_the_shadow),
        cmocka_unit_test(a_failed_node_is_no_room),
        cmocka_unit_test(who_ends_in_time_may_preempt),
        cmocka_unit_test(a_change_of_policy_makes_reservations_anew),
        cmocka_unit_test(a_stopped_job_gives_up_its_room),
        cmocka_unit_test(a_shadow_that_cannot_follow_is_made_anew),
    };
    return cmocka_run_group_tests_name("core reserve", tests, NULL, NULL);
}
