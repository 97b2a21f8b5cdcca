/* The shadow of a reservation is made in steps: docs/rfc/0016-gangs-in-steps.md, "Room that is held
 * back". Whatever happens between two of them, it is right afterwards. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/shadow.h"
#include "core/state.h"
#include "core/trial.h"

enum { STARVES_MS = 601000, STEPS_MAX = 1000, BIG = 4, LARGE = 1 << 20 };

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

static uint32_t submit(struct world *world, const char *name, uint32_t gpu, uint64_t limit_s)
{
    struct plan_role role = world_role("worker", 1, 1, gpu);
    struct plan plan = world_plan_of(name, &role);
    plan.time_limit_s = limit_s;
    return world_submit(world, &plan);
}

static bool is_held_back(const struct world *world, uint32_t job)
{
    return strstr(world_job(world, job)->reason, "room is held back for alice~big") != NULL;
}

/* Two nodes of four GPUs, of which three jobs have some; another one has begun to starve. */
static void starving_init(struct world *world, const char *policy, uint32_t slice)
{
    world_init(world, policy);
    world_keep(world);
    world_node(world, "n1", 16, 4);
    world_node(world, "n2", 16, 4);
    submit(world, "old1", 3, 3600); /* attempt 1, … */
    submit(world, "old2", 3, 7200);
    submit(world, "old3", 1, 5400);
    for (uint64_t attempt = 1; attempt <= 3; attempt++)
        world_run(world, attempt);
    struct plan_role role = world_role("worker", 1, 1, 4);
    struct plan plan = world_plan_of("big", &role);
    assert_int_equal(world_submit(world, &plan), BIG);
    core_slice_set(world->core, slice);
    world_timer(world, STARVES_MS);
}

static const struct reservation *reservation_of(const struct world *world)
{
    assert_false(shadow_is_made(world->core));
    assert_int_equal(world->core->reservations.count, 1);
    return &world->core->reservations.items[0];
}

/* To the step after which so many have been. False: the shadow is made before. */
static bool steps_go(struct world *world, uint32_t steps)
{
    for (uint32_t i = 0; i < steps && shadow_is_made(world->core); i++)
        assert_true(world_pass_step(world));
    return shadow_is_made(world->core);
}

static void steps_end(struct world *world)
{
    for (uint32_t i = 0; i < STEPS_MAX && world_pass_step(world); i++)
        ;
    assert_false(shadow_is_made(world->core));
}

/* In as many steps as may be, and in one: the same time is found. */
static void steps_find_what_one_step_finds(void **state)
{
    (void)state;
    static const uint32_t slices[] = {1, 2, 7, 30};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        starving_init(&world, policies[i], LARGE);
        const int64_t starts_ms = reservation_of(&world)->starts_ms;
        assert_int_not_equal(starts_ms, INT64_MAX);
        world_release(&world);
        for (size_t k = 0; k < COUNT_OF(slices); k++) {
            starving_init(&world, policies[i], slices[k]);
            assert_true(shadow_is_made(world.core));
            steps_end(&world);
            assert_int_equal(reservation_of(&world)->starts_ms, starts_ms);
            world_release(&world);
        }
    }
}

/* What is done after so many steps, and what must be when all is over. */
struct happening {
    void (*happens)(struct world *world);
    void (*is_right)(struct world *world);
};

static void happenings_run(const struct happening *happening)
{
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        bool was_made = true;
        for (uint32_t steps = 0; was_made && steps < STEPS_MAX; steps++) {
            struct world world;
            starving_init(&world, policies[i], 1);
            was_made = steps_go(&world, steps);
            happening->happens(&world);
            steps_end(&world);
            happening->is_right(&world);
            world_release(&world);
        }
        assert_false(was_made);
    }
}

/* A task ends: the placer is told when it has been copied, and the shadow is, too. Then there is
 * room for the job, so it starts. */
static void old_ends(struct world *world)
{
    world_exit(world, 1, 0, 0);
    world_exit(world, 3, 0, 0);
}

static void big_has_started(struct world *world)
{
    assert_int_equal(world->core->reservations.count, 0);
    assert_int_equal(world->core->tasks_live, 2);
    assert_int_equal(queue_count(world->core->queue), 0);
}

static void what_ends_meanwhile_is_free(void **state)
{
    (void)state;
    happenings_run(&(struct happening){old_ends, big_has_started});
}

/* A node joins that has room for it. */
static void node_joins(struct world *world)
{
    world_node(world, "n3", 16, 4);
}

static void big_is_there(struct world *world)
{
    assert_int_equal(world->core->reservations.count, 0);
    assert_int_equal(world->core->tasks_live, 4);
}

static void a_node_that_joins_is_used(void **state)
{
    (void)state;
    happenings_run(&(struct happening){node_joins, big_is_there});
}

/* A node fails: there is no room for it any more but on the other one, which is kept for it. */
static void node_fails(struct world *world)
{
    struct event event = {.kind = EVENT_NODE,
                          .node = {.name = "n2",
                                   .cpu = 16,
                                   .memory_mib = 16384,
                                   .gpu_count = 4,
                                   .gpu_type = "V100",
                                   .address = "10.0.0.1",
                                   .reason = "disk"}};
    world_step(world, &event);
}

static void other_node_is_kept(struct world *world)
{
    reservation_of(world);
    world_exit(world, 3, 0, 0); /* there is room on it, or was before */
    steps_end(world);
    const uint32_t small = submit(world, "small", 1, 0);
    size_t held = is_held_back(world, small);
    while (world_pass_step(world))
        held += world_job(world, small) && is_held_back(world, small);
    assert_true(held);
    assert_int_equal(world->core->tasks_live, 2);
}

static void a_failed_node_is_no_room(void **state)
{
    (void)state;
    happenings_run(&(struct happening){node_fails, other_node_is_kept});
}

/* It is stopped: nothing is held back, and the others go on. */
static void big_stops(struct world *world)
{
    assert_int_equal(world_ask(world, EVENT_STOP, BIG), 0);
}

static void nothing_is_held(struct world *world)
{
    assert_int_equal(world->core->reservations.count, 0);
    world_exit(world, 2, 0, 0);
    submit(world, "small", 3, 0);
    steps_end(world);
    assert_int_equal(world->core->tasks_live, 3);
}

static void a_stopped_job_needs_none(void **state)
{
    (void)state;
    happenings_run(&(struct happening){big_stops, nothing_is_held});
}

/* A job is submitted: it is answered at once, and tried when the shadow can be asked. */
static void small_comes(struct world *world)
{
    submit(world, "small", 1, 0);
    assert_int_equal(world_answer(world)->code, 0);
}

static void small_counts(struct world *world)
{
    reservation_of(world);
    assert_int_equal(world->core->tasks_live, 4);
    world_exit(world, 3, 0, 0);
    steps_end(world);
    submit(world, "other", 1, 0); /* the other node is for the one that starves */
    steps_end(world);
    assert_int_equal(world->core->tasks_live, 3);
}

static void who_comes_meanwhile_waits(void **state)
{
    (void)state;
    happenings_run(&(struct happening){small_comes, small_counts});
}

/* A copy of the core goes on at the same place. */
static void core_is_copied(struct world *world)
{
    struct core *copy = core_copy(world->core);
    core_free(world->core);
    world->core = copy;
}

static void time_is_known(struct world *world)
{
    const int64_t starts_ms = reservation_of(world)->starts_ms;
    assert_in_range(starts_ms, WORLD_START_MS + 3600000, WORLD_START_MS + 7201000);
}

static void a_copy_goes_on(void **state)
{
    (void)state;
    happenings_run(&(struct happening){core_is_copied, time_is_known});
}

/* What would become of another job is asked. */
static void trial_is_asked(struct world *world)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct core_trial trial;
    struct err err;
    struct plan_role role = world_role("worker", 1, 1, 4);
    struct plan plan = world_plan_of("what-if", &role);
    struct event event = {.kind = EVENT_SUBMIT,
                          .now_ms = world->now_ms,
                          .user = plan.user,
                          .submit = {.plan = plan_copy(&plan)}};
    assert_int_equal(world_trial(world, &event, &arena, &trial, &err), 0);
    assert_false(trial.is_placed);
    assert_true(strlen(trial.reason) > 0);
}

static void a_trial_ends_it_first(void **state)
{
    (void)state;
    happenings_run(&(struct happening){trial_is_asked, time_is_known});
}

/* Another policy: what was made is thrown away, and begun again at once. */
static void policy_changes(struct world *world)
{
    world->config.policy = strcmp(world->config.policy, "spread") ? "spread" : "best-fit";
    world_configure(world);
}

static void room_is_held(struct world *world)
{
    reservation_of(world);
}

static void another_placer_begins_anew(void **state)
{
    (void)state;
    happenings_run(&(struct happening){policy_changes, room_is_held});
}

/* Nothing of it is recorded: it is begun again. */
static void server_restarts(struct world *world)
{
    world_restart(world);
    core_slice_set(world->core, 1);
}

static void a_restart_begins_anew(void **state)
{
    (void)state;
    happenings_run(&(struct happening){server_restarts, room_is_held});
}

/* One ahead of it has started and ended: the shadow is made anew, in steps, before one behind it
 * gets an answer. One that ends in time may start. */
static void a_stale_shadow_is_made_in_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (uint32_t limit_s = 0; limit_s <= 60; limit_s += 60) {
            struct world world;
            starving_init(&world, policies[i], LARGE);
            struct plan_role role = world_role("worker", 1, 1, 1);
            struct plan plan = world_plan_of("ahead", &role);
            plan.priority = 100;
            world_submit(&world, &plan); /* attempt 4 */
            assert_true(reservation_of(&world)->is_stale);
            world_exit(&world, 4, 0, 0);
            core_slice_set(world.core, 1);
            submit(&world, "small", 1, limit_s);
            assert_true(shadow_is_made(world.core));
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
            size_t starts = 0;
            while (world_pass_step(&world))
                starts += world_command_count(&world, COMMAND_CREATE);
            assert_false(reservation_of(&world)->is_stale);
            assert_int_equal(starts, 1); /* it leaves a node to the other one in any case */
            world_release(&world);
        }
}

/* Something has ended since the time was found: it is found anew, in steps, when somebody asks who
 * has a time limit. */
static void time_is_found_anew_in_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        starving_init(&world, policies[i], LARGE);
        const int64_t starts_ms = reservation_of(&world)->starts_ms;
        world_exit(&world, 3, 0, 0);
        world_timer(&world, 2000);
        assert_true(reservation_of(&world)->is_aged);
        core_slice_set(world.core, 1);
        submit(&world, "small", 1, 60);
        assert_true(shadow_is_made(world.core));
        assert_int_equal(world.core->shadow_making.purpose, SHADOW_FOR_TIME);
        size_t starts = 0;
        while (world_pass_step(&world))
            starts += world_command_count(&world, COMMAND_CREATE);
        assert_int_equal(starts, 1);
        assert_true(reservation_of(&world)->starts_ms <= starts_ms);
        world_release(&world);
    }
}

/* Each step comes late, and something ends in each: the time is found once, not again and again
 * before the job has had its turn. */
static void a_slow_machine_finds_it_once(void **state)
{
    (void)state;
    enum { STEP_MS = 2000 };
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        starving_init(&world, policies[i], LARGE);
        world_exit(&world, 3, 0, 0);
        world_timer(&world, STEP_MS);
        core_slice_set(world.core, 1);
        submit(&world, "small", 1, 60);
        assert_true(shadow_is_made(world.core));
        size_t starts = 0;
        for (uint32_t k = 0; k < STEPS_MAX && !starts; k++) {
            if (shadow_is_made(world.core))
                world.core->shadow_making.is_aged = true;
            world_timer(&world, STEP_MS);
            starts += world_command_count(&world, COMMAND_CREATE);
        }
        assert_int_equal(starts, 1);
        world_release(&world);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(steps_find_what_one_step_finds),
    cmocka_unit_test(what_ends_meanwhile_is_free),
    cmocka_unit_test(a_node_that_joins_is_used),
    cmocka_unit_test(a_failed_node_is_no_room),
    cmocka_unit_test(a_stopped_job_needs_none),
    cmocka_unit_test(who_comes_meanwhile_waits),
    cmocka_unit_test(a_copy_goes_on),
    cmocka_unit_test(a_trial_ends_it_first),
    cmocka_unit_test(another_placer_begins_anew),
    cmocka_unit_test(a_restart_begins_anew),
    cmocka_unit_test(a_stale_shadow_is_made_in_steps),
    cmocka_unit_test(time_is_found_anew_in_steps),
    cmocka_unit_test(a_slow_machine_finds_it_once),
};
UNIT_FILE(tests, NULL, NULL);
