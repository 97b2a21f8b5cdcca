/* Reservations: the shadow knows what has started since, which nodes are gone, and when what runs
 * will have ended; so nobody behind the starving job delays it, and nobody waits for nothing. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "core/reserve.h"
#include "core/shadow.h"
#include "core/state.h"

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
static void starving_under(struct world *world, const char *policy)
{
    world_init(world, policy);
    world_node(world, "n1", 16, 4);
    world_node(world, "n2", 16, 4);
    submit(world, "old1", (struct demand){10, 3, 0});
    submit(world, "old2", (struct demand){10, 3, 0});
    submit(world, "big", (struct demand){10, 4, 0});
    world_timer(world, STARVES_MS);
    assert_int_equal(world_story_count(world, "Reserved"), 1);
}

static void starving_init(struct world *world)
{
    starving_under(world, "spread");
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

/* A job without gang of two tasks of four GPUs each. */
static uint32_t submit_big(struct world *world)
{
    struct plan_role role = world_role("worker", 2, 1, 4);
    struct plan plan = world_plan_of("big", &role);
    plan.is_gang = false;
    return world_submit(world, &plan);
}

/* What waits of a job must not wait until its other tasks have ended, as they may run for ever: the
 * room that is held back lies beside them, whether they ran before it was or have started since. */
static void room_is_held_back_beside_its_own_tasks(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (int is_later = 0; is_later < 2; is_later++) {
            struct world world;
            world_init(&world, policies[i]);
            world_node(&world, "n1", 16, 4);
            submit(&world, "old1", (struct demand){10, 2, 0});
            submit(&world, "old2", (struct demand){10, 2, 0});
            world_node(&world, "n2", 16, 4);
            if (is_later)
                submit(&world, "old3", (struct demand){10, 4, 0});
            const uint32_t big = submit_big(&world);
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), !is_later);
            world_timer(&world, STARVES_MS);
            assert_int_equal(world_story_count(&world, "Reserved"), 1);
            if (is_later) {
                world_exit(&world, 3, 0, 0);
                assert_string_equal(node_of(&world, big), "n2");
            }
            world_exit(&world, 1, 0, 0);
            const uint32_t small = submit(&world, "small", (struct demand){10, 2, 0});
            assert_string_equal(node_of(&world, small), "");
            assert_true(is_held_back(&world, small));
            world_exit(&world, 2, 0, 0);
            assert_string_equal(world_task(&world, big, 0, 1)->node, "n1");
            world_release(&world);
        }
}

/* Its own tasks have all that it can ever have: it is the first that gets the place of one that
 * ends, and room that is of no use to it is everybody's. */
static void nothing_is_held_back_where_its_own_tasks_fill_all(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 16, 4);
        submit(&world, "old", (struct demand){10, 4, 0});
        world_node(&world, "n2", 16, 2);
        const uint32_t big = submit_big(&world);
        world_timer(&world, STARVES_MS);
        assert_int_equal(world_story_count(&world, "Reserved"), 1);
        world_exit(&world, 1, 0, 0);
        assert_string_equal(node_of(&world, big), "n1");
        world_timer(&world, 2000); /* a shadow is made anew at most once a second */
        const uint32_t small = submit(&world, "small", (struct demand){10, 2, 0});
        assert_string_equal(node_of(&world, small), "n2");
        assert_int_equal(world.core->reservations.count, 0);
        world_exit(&world, 2, 0, 0);
        assert_string_equal(world_task(&world, big, 0, 1)->node, "n1");
        world_release(&world);
    }
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

/* A gang of many tasks is searched for in steps, though a job starves: behind that one it is held
 * back when its places are found, and what the search has taken is free again; ahead of it, it
 * starts. */
static void a_large_search_is_cut_all_the_same(void **state)
{
    (void)state;
    static const char *const policies[] = {"spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (int is_ahead = 0; is_ahead < 2; is_ahead++) {
            struct world world;
            starving_under(&world, policies[i]);
            core_slice_set(world.core, 1);
            struct plan_role role = world_role("worker", 2, 1, 1);
            struct plan plan = world_plan_of("gang", &role);
            plan.priority = is_ahead ? 100 : 10;
            role.affinity_group = "all";
            const uint32_t gang = world_submit(&world, &plan);
            assert_true(world.core->is_searching);
            size_t starts = 0, held = 0;
            while (world_pass_step(&world)) {
                starts += world_command_count(&world, COMMAND_CREATE);
                held += world_job(&world, gang) && is_held_back(&world, gang);
            }
            assert_int_equal(starts, is_ahead ? 2 : 0);
            assert_int_equal(held > 0, !is_ahead);
            core_slice_set(world.core, 1000);
            const uint32_t one = submit(&world, "one", (struct demand){10, 1, 0});
            assert_int_equal(*node_of(&world, one) != 0, !is_ahead);
            world_release(&world);
        }
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

/* No node is left that it could ever have: nothing is held back for it, and others start. */
static void a_reservation_that_has_become_impossible_is_lost(void **state)
{
    (void)state;
    static const char *const names[] = {"n1", "n2"};
    struct world world;
    starving_init(&world);
    world_node(&world, "n3", 16, 2);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct event event = {.kind = EVENT_NODE_LOST, .node = {.name = names[i]}};
        world_step(&world, &event);
    }
    uint32_t small = submit(&world, "s1", (struct demand){10, 1, 0});
    assert_string_equal(node_of(&world, small), "n3");
    assert_int_equal(world.core->reservations.count, 0);
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
    const struct placement_slot slot = {.node = {0}, .gpu_count = 1, .gpus = (const uint16_t[]){3}};
    assert_int_equal(shadow->ops->commit(shadow, &ghost, &slot, 1, false, NULL), 0);
    world_exit(&world, 2, 143, 0);
    assert_string_equal(node_of(&world, job), "n1");
    assert_true(world.core->reservations.items[0].is_stale);
    submit(&world, "next", (struct demand){10, 1, 0}); /* now it is asked */
    world_release(&world);
}

static void test_starvation(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    world_submit_for(&world, "long", 10, 2, 3600);
    world_submit_for(&world, "rest", 10, 2, 60);
    uint32_t big = world_submit_for(&world, "big", 10, 4, 0);
    world_timer(&world, 601000);
    assert_true(world_has_story(&world, "Reserved", "has waited"));
    world_exit(&world, 2, 0, 0); /* two GPUs are free now */
    /* an endless job behind it would delay it */
    uint32_t endless = world_submit_for(&world, "endless", 10, 2, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    assert_non_null(strstr(world_job(&world, endless)->reason, "held back for alice~big"));
    /* a short one ends before big could start at all */
    world_submit_for(&world, "short", 10, 2, 60);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    /* a more urgent one is not held back */
    world_exit(&world, 3, 0, 0);
    world_submit_for(&world, "urgent", 100, 2, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world_exit(&world, 4, 0, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, big);
    world_exit(&world, 5, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, endless);
    world_release(&world);
}

static void only_so_many_jobs_are_held_back_for(void **state)
{
    (void)state;
    enum { CLUSTERS = 20 };
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    world_submit_role(&world, "holder", 10, world_role("worker", 1, 1, 2));
    world_submit_role(&world, "brief", 10, world_role("worker", 1, 1, 1));
    for (uint32_t i = 0; i < CLUSTERS; i++) { /* one a virtual cluster */
        char name[16], cluster[16];
        snprintf(name, sizeof name, "j%u", i);
        snprintf(cluster, sizeof cluster, "vc%u", i);
        struct plan_role role = world_role("worker", 1, 1, 4);
        struct plan plan = world_plan_of(name, &role);
        plan.virtual_cluster = cluster;
        world_submit(&world, &plan);
    }
    world_timer(&world, 601000);
    size_t reserved = world_story_count(&world, "Reserved");
    while (world_pass_step(&world)) /* a step makes some of them */
        reserved += world_story_count(&world, "Reserved");
    assert_int_equal(reserved, RESERVATIONS_MAX);
    world_release(&world);
}

/* The owner of cells gets them back from an opportunistic job, though a job of another virtual
 * cluster starves: it could not have them. */
static void a_reservation_takes_nothing_from_other_clusters(void **state)
{
    (void)state;
    for (int is_reserved_between = 0; is_reserved_between < 2; is_reserved_between++) {
        struct world world;
        world_two_clusters_init(&world);
        world_submit_to(&world, "holder", "red", 100, 2); /* attempt 1 */
        world_run(&world, 1);
        world_submit_to(&world, "brief", "red", 100, 1); /* attempt 2 */
        world_run(&world, 2);
        world_submit_to(&world, "wide", "red", 100, 4);
        if (is_reserved_between)
            world_submit_to(&world, "guest", "red", -1, 4); /* attempt 3, on blue's node */
        world_timer(&world, is_reserved_between ? 599000 : 601000);
        if (!is_reserved_between) {
            assert_int_equal(world_story_count(&world, "Reserved"), 1);
            world_submit_to(&world, "guest", "red", -1, 4);
        }
        world_run(&world, 3);
        uint32_t owner = world_submit_to(&world, "owner", "blue", 100, 4);
        assert_int_equal(world_command(&world, COMMAND_KILL, 0)->attempt.v, 3);
        assert_non_null(strstr(world_job(&world, owner)->reason, "not ended yet: alice~guest/0"));
        if (is_reserved_between) {
            world_exit(&world, 2, 0, 0);
            world_timer(&world, 2000);
            assert_int_equal(world_story_count(&world, "Reserved"), 1);
        }
        world_exit(&world, 3, 143, 0);
        assert_non_null(world_command(&world, COMMAND_CREATE, 0));
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, owner);
        world_release(&world);
    }
}

/* Nothing ends, and yet nobody slips in any more once a job has waited long enough. */
static void it_starves_on_time(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 8, 4);
        world_submit_role(&world, "holder", 10, world_role("worker", 1, 1, 2));
        world_submit_role(&world, "wide", 10, world_role("worker", 1, 1, 4));
        world_timer(&world, 300000);
        world_submit_role(&world, "second", 10, world_role("worker", 1, 1, 1));
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        world_submit_role(&world, "wider", 10, world_role("worker", 2, 1, 4));
        world_timer(&world, 300000);
        assert_int_equal(world_story_count(&world, "Reserved"), 1);
        uint32_t third = world_submit_role(&world, "third", 10, world_role("worker", 1, 1, 1));
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        assert_non_null(strstr(world_job(&world, third)->reason, "held back for alice~wide"));
        world_release(&world);
    }
}

/* Of two that came in the same millisecond the one with the smaller number starves first. */
static void the_smaller_number_is_ahead(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    world_submit_role(&world, "holder", 10, world_role("worker", 1, 1, 2));
    world_submit_role(&world, "brief", 10, world_role("worker", 1, 1, 2));
    world_submit_role(&world, "first", 10, world_role("worker", 1, 2, 4));
    world.now_ms -= 10;
    world_submit_role(&world, "second", 10, world_role("worker", 1, 1, 2));
    world_timer(&world, 601000);
    assert_int_equal(world_story_count(&world, "Reserved"), 1);
    world_exit(&world, 2, 0, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* second would delay first */
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, 3);
    world_release(&world);
}

/* A time limit beyond the end of time is none: nothing that has it slips in before a starving job.
 */
static void an_endless_limit_is_no_limit(void **state)
{
    (void)state;
    static const uint64_t limits[] = {UINT64_MAX, INT64_MAX, INT64_MAX / 1000, 1u << 31};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct world world;
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 4);
        struct plan_role role = world_role("worker", 1, 1, 2);
        struct plan plan = world_plan_of("long", &role);
        plan.time_limit_s = 3600;
        world_submit(&world, &plan);
        world_submit_role(&world, "brief", 10, role);
        world_submit_role(&world, "big", 10, world_role("worker", 1, 1, 4));
        world_timer(&world, 601000);
        assert_int_equal(world_story_count(&world, "Reserved"), 1);
        world_exit(&world, 2, 0, 0);
        plan.name = "endless";
        plan.time_limit_s = limits[i];
        uint32_t endless = world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        assert_non_null(strstr(world_job(&world, endless)->reason, "held back for alice~big"));
        world_release(&world);
    }
}

/* Two jobs hold all GPUs, one of them with a limit of an hour; a third needs all of them. */
static struct plan starving_begin(struct world *world, const struct plan_role *half)
{
    struct plan plan = world_plan_of("long", half);
    plan.time_limit_s = 3600;
    world_submit(world, &plan);
    world_submit_role(world, "brief", 10, *half);
    world_submit_role(world, "big", 10, world_role("worker", 1, 1, 4));
    plan.name = "slips in";
    assert_int_equal(world_command_count(world, COMMAND_CREATE), 0);
    return plan;
}

/* A time limit counts from the start: while a job is being prepared, its end moves on. */
static void a_job_that_has_not_started_ends_later(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    const struct plan_role half = world_role("worker", 1, 1, 2);
    struct plan plan = starving_begin(&world, &half);
    world_timer(&world, 601000);
    assert_int_equal(world_story_count(&world, "Reserved"), 1);
    world_timer(&world, 3600000);
    world_exit(&world, 2, 0, 0);
    plan.time_limit_s = 3700;
    world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    plan.name = "slips in too";
    plan.time_limit_s = 3500;
    world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world_release(&world);
}

/* Preparations take two minutes here: who slips in must end in time all the same. */
static void who_slips_in_is_prepared_first(void **state)
{
    (void)state;
    static const struct {
        uint64_t limit_s;
        size_t starts;
    } cases[] = {{2800, 1}, {2950, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct world world;
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 4);
        const struct plan_role half = world_role("worker", 1, 1, 2);
        world_submit_role(&world, "slow", 10, half);
        world_timer(&world, 120000);
        world_run(&world, 1);
        world_exit(&world, 1, 0, 0);
        struct plan plan = starving_begin(&world, &half);
        world_run(&world, 2);
        world_timer(&world, 601000);
        assert_int_equal(world_story_count(&world, "Reserved"), 1);
        world_exit(&world, 3, 0, 0);
        world_timer(&world, 2000); /* the time is found again at most once a second */
        plan.time_limit_s = cases[i].limit_s;
        world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), cases[i].starts);
        world_release(&world);
    }
}

static void big_scale(struct world *world, uint32_t job, uint32_t instances)
{
    struct event event = {.kind = EVENT_SCALE, .scale = {{job}, 0, instances}};
    world_step(world, &event);
}

/* A job without gang whose first task has run for two hours on n1; four GPUs more are not free. */
static uint32_t running_for_hours(struct world *world)
{
    world_init(world, "first-fit");
    world_node(world, "n1", 16, 4);
    const uint32_t big = submit_big(world);
    assert_string_equal(node_of(world, big), "n1");
    big_scale(world, big, 1);
    world_run(world, 1);
    world_node(world, "n2", 16, 4);
    submit(world, "old", (struct demand){10, 2, 0});
    world_timer(world, 7200000);
    return big;
}

/* A task that is tried again, or was added, has waited since then, however long its job has run. */
static void a_wait_begins_when_the_task_is_queued(void **state)
{
    (void)state;
    for (int is_scaled = 0; is_scaled < 2; is_scaled++) {
        struct world world;
        const uint32_t big = running_for_hours(&world);
        if (is_scaled) {
            big_scale(&world, big, 2);
        } else {
            world_node_event(&world, EVENT_NODE_LOST, "n1");
            world_exit(&world, 1, -1, EXIT_ALWAYS_RETRIED);
        }
        const uint32_t small = submit(&world, "small", (struct demand){10, 1, 0});
        assert_string_equal(node_of(&world, small), "n2");
        world_timer(&world, STARVES_MS);
        assert_true(world_has_story(&world, "Reserved", "has waited 60"));
        const uint32_t other = submit(&world, "other", (struct demand){10, 1, 0});
        assert_true(is_held_back(&world, other));
        assert_non_null(strstr(world_job(&world, other)->reason, "which has waited 60"));
        world_release(&world);
    }
}

/* The task that starved has started: nothing is held back for another one of the job before that
 * has waited as long. */
static void a_reservation_ends_with_the_wait(void **state)
{
    (void)state;
    struct world world;
    const uint32_t big = running_for_hours(&world);
    world_node(&world, "n3", 16, 4);
    submit(&world, "other", (struct demand){10, 3, 0});
    big_scale(&world, big, 2);
    world_timer(&world, STARVES_MS);
    assert_int_equal(world_story_count(&world, "Reserved"), 1);
    big_scale(&world, big, 3);
    world_exit(&world, 2, 0, 0);
    assert_string_equal(world_task(&world, big, 0, 1)->node, "n2");
    const uint32_t small = submit(&world, "small", (struct demand){10, 1, 0});
    assert_string_equal(node_of(&world, small), "n3");
    assert_int_equal(reserve_count(world.core), 0);
    world_release(&world);
}

static uint32_t submit_pair(struct world *world, const char *name, uint64_t limit_s)
{
    struct plan_role role = world_role("worker", 2, 1, 1);
    struct plan plan = world_plan_of(name, &role);
    role.affinity_group = "all";
    plan.time_limit_s = limit_s;
    return world_submit(world, &plan);
}

/* Two jobs of one shape are behind a starving one of another virtual cluster. The second has waited
 * longest and has the reservation of theirs; the first lost its node later, and begins to starve
 * while it is searched for. It is held back, and the second, which has a time limit, is tried for
 * it in pieces: that search is not ended by a shadow for the first, in whose favour the second
 * would lose its reservation in the middle of it. */
static void a_search_for_another_job_is_not_ended(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "spread");
    world_node(&world, "n1", 16, 4);
    world_node(&world, "n2", 16, 4);
    for (int i = 0; i < 2; i++) { /* attempts 1 to 4 */
        submit(&world, i ? "old2" : "old1", (struct demand){10, 3, 0});
        submit(&world, i ? "other2" : "other1", (struct demand){10, 1, 0});
    }
    struct plan_role wide = world_role("worker", 1, 1, 4);
    struct plan plan = world_plan_of("big", &wide);
    plan.virtual_cluster = "vc2";
    world_submit(&world, &plan);
    world_node(&world, "n3", 16, 2);
    const uint32_t first = submit_pair(&world, "first", 0); /* 5 and 6 */
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    const uint32_t second = submit_pair(&world, "second", DAY_S);
    world_timer(&world, STARVES_MS);
    world_pass_end(&world);
    assert_int_equal(reserve_count(world.core), 2);
    world_node_event(&world, EVENT_NODE_LOST, "n3");
    world_exit(&world, 5, -1, EXIT_ALWAYS_RETRIED);
    world_exit(&world, 6, -1, EXIT_ALWAYS_RETRIED);
    const int64_t starves_ms = world.now_ms + 600000;
    world_exit(&world, 2, 0, 0);
    world.now_ms = starves_ms - 1000;
    core_slice_set(world.core, 1);
    world_exit(&world, 4, 0, 0);
    assert_int_equal(world.core->placing.job, first);
    world.now_ms = starves_ms;
    while (world.core->placing.job == first)
        assert_true(world_pass_step(&world));
    assert_int_equal(world.core->placing.job, second);
    assert_int_equal(shadow_job(world.core), NONE);
    world_pass_end(&world);
    assert_int_equal(world.core->placing.job, 0);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_starts_behind_counts),
    cmocka_unit_test(room_is_held_back_beside_its_own_tasks),
    cmocka_unit_test(nothing_is_held_back_where_its_own_tasks_fill_all),
    cmocka_unit_test(what_ends_behind_counts_no_more),
    cmocka_unit_test(what_starts_ahead_renews_the_shadow),
    cmocka_unit_test(a_large_search_is_cut_all_the_same),
    cmocka_unit_test(a_failed_node_is_no_room),
    cmocka_unit_test(a_reservation_that_has_become_impossible_is_lost),
    cmocka_unit_test(who_ends_in_time_may_preempt),
    cmocka_unit_test(a_change_of_policy_makes_reservations_anew),
    cmocka_unit_test(a_stopped_job_gives_up_its_room),
    cmocka_unit_test(a_shadow_that_cannot_follow_is_made_anew),
    cmocka_unit_test(test_starvation),
    cmocka_unit_test(only_so_many_jobs_are_held_back_for),
    cmocka_unit_test(the_smaller_number_is_ahead),
    cmocka_unit_test(a_reservation_takes_nothing_from_other_clusters),
    cmocka_unit_test(it_starves_on_time),
    cmocka_unit_test(an_endless_limit_is_no_limit),
    cmocka_unit_test(a_job_that_has_not_started_ends_later),
    cmocka_unit_test(who_slips_in_is_prepared_first),
    cmocka_unit_test(a_wait_begins_when_the_task_is_queued),
    cmocka_unit_test(a_reservation_ends_with_the_wait),
    cmocka_unit_test(a_search_for_another_job_is_not_ended),
};
UNIT_FILE(tests, NULL, NULL);
