/* Whether there is room beside a job that starves is asked in steps:
 * docs/rfc/0016-gangs-in-steps.md, "Room that is held back". Whatever happens between two of them,
 * the answer is right. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "core/jobs.h"
#include "core/queue.h"
#include "core/reserve.h"
#include "core/room.h"
#include "core/shadow.h"
#include "core/state.h"
#include "core/trial.h"

enum { STARVES_MS = 601000, STEPS_MAX = 2000, LARGE = 1 << 20, TASKS = 5 };
enum { OLD = 1, BIG, NEW, ASKING }; /* jobs of room_init, */
enum { WAITING = 3, FIRST };        /* and of places_init */

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

static struct plan_role role_of(const char *name, const char *type, uint32_t gpu)
{
    struct plan_role role = world_role(name, 1, 1, gpu);
    role.sku_type = type;
    return role;
}

static uint32_t submit(struct world *world, const char *name, int32_t priority,
                       struct plan_role role)
{
    return world_submit_role(world, name, priority, role);
}

static void node_set(struct world *world, const char *name, const char *type, bool is_healthy)
{
    struct event event = {.kind = EVENT_NODE,
                          .node = {.name = name,
                                   .cpu = 16,
                                   .memory_mib = 16384,
                                   .gpu_count = 5,
                                   .gpu_type = type,
                                   .address = "10.0.0.1",
                                   .reason = is_healthy ? NULL : "disk",
                                   .is_healthy = is_healthy}};
    world_step(world, &event);
}

/* Of two nodes, the first is needed by a job that starves, and another job has four of its five
 * GPUs. The second is in use by a job that started behind it, and may be preempted: that is told
 * when the next one asks. */
static void room_init(struct world *world, const char *policy)
{
    world_init(world, policy);
    world_keep(world);
    node_set(world, "n1", "A100", true);
    node_set(world, "n2", "V100", true);
    assert_int_equal(submit(world, "old", 100, role_of("worker", "A100", 4)), OLD);
    world_run(world, 1);
    assert_int_equal(submit(world, "big", 100, role_of("worker", "A100", 5)), BIG);
    world_timer(world, STARVES_MS);
    assert_int_equal(world->core->reservations.count, 1);
    assert_int_equal(submit(world, "new", -1, role_of("worker", "V100", 5)), NEW);
    assert_int_equal(world_command_count(world, COMMAND_CREATE), 1);
    world_run(world, 2);
}

static const char *held_back(const struct world *world)
{
    const struct job_record *job = world_job(world, ASKING);
    return job && job->reason ? strstr(job->reason, "room is held back for alice~big") : NULL;
}

struct seen {
    size_t kills, starts, steps;
    bool is_held_back, was_asked, was_copied;
};

static void see(const struct world *world, struct seen *seen)
{
    seen->kills += world_command_count(world, COMMAND_KILL);
    seen->starts += world_command_count(world, COMMAND_CREATE);
    seen->is_held_back |= held_back(world) != NULL;
    seen->was_asked |= room_is_asked(world->core);
    seen->was_copied |= world->core->room.copy != NULL;
}

/* Its tasks take the second node, in one group; `wants_more`, and the GPU that is free on the
 * first, too. */
static void asking_begin(struct world *world, bool wants_more, uint32_t slice, struct seen *seen)
{
    struct plan_role roles[] = {role_of("first", "V100", 1), role_of("second", "A100", 1)};
    roles[0].instances = TASKS;
    roles[0].affinity_group = "all";
    struct plan plan = world_plan_of("asking", roles);
    plan.role_count = wants_more ? 2 : 1;
    plan.priority = 100;
    core_slice_set(world->core, slice);
    assert_int_equal(world_submit(world, &plan), ASKING);
    see(world, seen);
}

static void steps_end(struct world *world, struct seen *seen)
{
    for (; seen->steps < STEPS_MAX && world_pass_step(world); seen->steps++)
        see(world, seen);
    assert_true(seen->steps < STEPS_MAX);
    assert_false(room_is_asked(world->core));
    assert_int_equal(world->core->room.stage, ROOM_NONE);
}

/* In as many steps as may be, and in one: whoever may end others does, and whoever would take the
 * room ends nobody. */
static void steps_answer_what_one_step_answers(void **state)
{
    (void)state;
    static const uint32_t slices[] = {LARGE, 30, 7, 2, 1};
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (size_t k = 0; k < COUNT_OF(slices); k++)
            for (int wants_more = 0; wants_more < 2; wants_more++) {
                struct world world;
                struct seen seen = {0};
                room_init(&world, policies[i]);
                asking_begin(&world, wants_more, slices[k], &seen);
                steps_end(&world, &seen);
                assert_int_equal(seen.kills, !wants_more);
                assert_int_equal(seen.is_held_back, wants_more);
                if (slices[k] == LARGE)
                    assert_false(seen.was_asked);
                if (slices[k] == 1) /* others end in a copy, which is made in steps, too */
                    assert_true(seen.was_asked && seen.was_copied && seen.steps > 4);
                world_release(&world);
            }
}

/* What is done after so many steps, and what must be when all is over. */
struct happening {
    void (*happens)(struct world *world);
    void (*is_right)(struct world *world, const struct seen *seen);
};

static void happening_run(const struct happening *happening, const char *policy, bool *was_asked,
                          uint32_t steps)
{
    struct world world;
    struct seen seen = {0};
    room_init(&world, policy);
    asking_begin(&world, false, 1, &seen);
    for (uint32_t i = 0; i < steps && room_is_asked(world.core); i++) {
        assert_true(world_pass_step(&world));
        see(&world, &seen);
    }
    *was_asked = room_is_asked(world.core);
    happening->happens(&world);
    see(&world, &seen);
    steps_end(&world, &seen);
    happening->is_right(&world, &seen);
    world_release(&world);
}

static void happenings_run(const struct happening *happening)
{
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        bool was_asked = true;
        for (uint32_t steps = 0; was_asked && steps < STEPS_MAX; steps += unit_every())
            happening_run(happening, policies[i], &was_asked, steps);
        assert_false(was_asked);
    }
}

/* Whoever is in the way ends by itself: nobody need be ended. */
static void new_ends(struct world *world)
{
    world_exit(world, 2, 0, 0);
}

static void asking_has_started(struct world *world, const struct seen *seen)
{
    assert_int_equal(seen->starts, TASKS);
    assert_int_equal(world->core->tasks_live, 1 + TASKS);
}

static void what_ends_meanwhile_is_free(void **state)
{
    (void)state;
    happenings_run(&(struct happening){new_ends, asking_has_started});
}

static void asking_stops(struct world *world)
{
    assert_int_equal(world_ask(world, EVENT_STOP, ASKING), 0);
}

/* The shadow is what it was: the next one gets the same answer. */
static void another_may(struct world *world, const struct seen *seen)
{
    struct seen next = {0};
    assert_int_equal(world->core->reservations.count, 1);
    submit(world, "other", 100, role_of("worker", "V100", 5));
    see(world, &next);
    steps_end(world, &next);
    assert_int_equal(seen->kills + next.kills, 1);
    assert_int_equal(world->core->tasks_live, 2);
}

static void a_stopped_job_leaves_the_shadow_alone(void **state)
{
    (void)state;
    happenings_run(&(struct happening){asking_stops, another_may});
}

static void big_stops(struct world *world)
{
    assert_int_equal(world_ask(world, EVENT_STOP, BIG), 0);
}

static void it_preempts(struct world *world, const struct seen *seen)
{
    assert_int_equal(seen->kills, 1);
    world_exit(world, 2, 143, 0);
    struct seen after = {0};
    see(world, &after);
    steps_end(world, &after);
    assert_int_equal(after.starts, TASKS);
}

static void who_starves_no_more_is_not_asked(void **state)
{
    (void)state;
    happenings_run(&(struct happening){big_stops, it_preempts});
}

static void node_fails(struct world *world)
{
    node_set(world, "n2", "V100", false);
}

static void nothing_starts(struct world *world, const struct seen *seen)
{
    assert_int_equal(seen->starts, 0);
    node_set(world, "n2", "V100", true);
    struct seen after = {0};
    steps_end(world, &after);
    assert_int_equal(world->core->reservations.count, 1);
}

static void a_failed_node_is_no_room(void **state)
{
    (void)state;
    happenings_run(&(struct happening){node_fails, nothing_starts});
}

static void node_joins(struct world *world)
{
    node_set(world, "n3", "V100", true);
}

static void asking_runs(struct world *world, const struct seen *seen)
{
    assert_int_equal(seen->starts + seen->kills > 0, true);
    assert_int_equal(world->core->reservations.count, 1);
}

static void a_node_that_joins_is_used(void **state)
{
    (void)state;
    happenings_run(&(struct happening){node_joins, asking_runs});
}

/* A copy of the core goes on at the same place. */
static void core_is_copied(struct world *world)
{
    struct core *copy = core_copy(world->core);
    core_free(world->core);
    world->core = copy;
}

static void a_copy_goes_on(void **state)
{
    (void)state;
    happenings_run(&(struct happening){core_is_copied, it_preempts});
}

/* What would become of another job is asked. */
static void trial_is_asked(struct world *world)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct core_trial trial;
    struct err err;
    struct plan_role role = role_of("worker", "A100", 1);
    struct plan plan = world_plan_of("what-if", &role);
    plan.priority = 100;
    struct event event = {.kind = EVENT_SUBMIT,
                          .now_ms = world->now_ms,
                          .user = plan.user,
                          .submit = {.plan = plan_copy(&plan)}};
    assert_int_equal(world_trial(world, &event, &arena, &trial, &err), 0);
    assert_false(trial.is_placed);
    assert_non_null(strstr(trial.reason, "room is held back"));
}

static void a_trial_ends_it_first(void **state)
{
    (void)state;
    happenings_run(&(struct happening){trial_is_asked, it_preempts});
}

static void policy_changes(struct world *world)
{
    world->config.policy = strcmp(world->config.policy, "spread") ? "spread" : "best-fit";
    world_configure(world);
}

static void another_placer_is_asked_anew(void **state)
{
    (void)state;
    happenings_run(&(struct happening){policy_changes, it_preempts});
}

static void server_restarts(struct world *world)
{
    world_restart(world);
    core_slice_set(world->core, 1);
}

static void a_restart_asks_anew(void **state)
{
    (void)state;
    happenings_run(&(struct happening){server_restarts, it_preempts});
}

/* --- whoever needs nobody's end --- */

/* Each node has a free GPU, and the job that starves needs a whole node. */
static void places_init(struct world *world, const char *policy, uint32_t slice)
{
    world_init(world, policy);
    world_node(world, "n1", 16, 4);
    world_node(world, "n2", 16, 4);
    submit(world, "old1", 10, world_role("worker", 1, 1, 3));
    submit(world, "old2", 10, world_role("worker", 1, 1, 3));
    submit(world, "big", 10, world_role("worker", 1, 1, 4));
    world_timer(world, STARVES_MS);
    assert_int_equal(world->core->reservations.count, 1);
    core_slice_set(world->core, slice);
}

/* The first one leaves a node to it, both together would not. */
static void places_are_asked_for_in_steps(void **state)
{
    (void)state;
    static const uint32_t slices[] = {LARGE, 30, 7, 1};
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (size_t k = 0; k < COUNT_OF(slices); k++) {
            struct world world;
            struct seen first = {0}, second = {0};
            places_init(&world, policies[i], slices[k]);
            submit(&world, "first", 10, world_role("worker", 1, 1, 1));
            see(&world, &first);
            steps_end(&world, &first);
            assert_int_equal(first.starts, 1);
            if (slices[k] == LARGE || slices[k] == 1)
                assert_int_equal(first.was_asked, slices[k] == 1);
            assert_false(first.was_copied);
            submit(&world, "second", 10, world_role("worker", 1, 1, 1));
            see(&world, &second);
            steps_end(&world, &second);
            assert_int_equal(second.starts, 0);
            world_release(&world);
        }
}

/* What happens while the shadow itself is asked, which is then as it was: `starts_behind` of two
 * more jobs of one GPU, of which there was room for one. */
static void asked_in_the_shadow(void (*happens)(struct world *world), size_t starts,
                                size_t starts_behind)
{
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        bool was_asked = true;
        for (uint32_t steps = 0; was_asked && steps < STEPS_MAX; steps += unit_every()) {
            struct world world;
            struct seen first = {0}, behind = {0};
            places_init(&world, policies[i], 1);
            world_keep(&world);
            assert_int_equal(submit(&world, "first", 10, world_role("worker", 1, 1, 1)), FIRST);
            see(&world, &first);
            for (uint32_t k = 0; k < steps && room_is_asked(world.core); k++) {
                assert_true(world_pass_step(&world));
                see(&world, &first);
            }
            was_asked = room_is_asked(world.core);
            const size_t before = first.starts;
            if (was_asked) {
                happens(&world);
                see(&world, &first);
            }
            steps_end(&world, &first);
            if (was_asked) {
                assert_int_equal(before, 0);
                assert_int_equal(first.starts, starts);
                for (int k = 0; k < 2; k++) {
                    submit(&world, k ? "third" : "second", 10, world_role("worker", 1, 1, 1));
                    see(&world, &behind);
                    steps_end(&world, &behind);
                }
                assert_int_equal(behind.starts, starts_behind);
            }
            world_release(&world);
        }
        assert_false(was_asked);
    }
}

static void first_stops(struct world *world)
{
    assert_int_equal(world_ask(world, EVENT_STOP, FIRST), 0);
}

static void one_that_is_stopped_has_taken_nothing(void **state)
{
    (void)state;
    asked_in_the_shadow(first_stops, 0, 1);
}

static void waiting_stops(struct world *world)
{
    assert_int_equal(world_ask(world, EVENT_STOP, WAITING), 0);
}

static void without_who_starves_all_start(void **state)
{
    (void)state;
    asked_in_the_shadow(waiting_stops, 1, 1);
}

static void a_copy_asks_on(void **state)
{
    (void)state;
    asked_in_the_shadow(core_is_copied, 1, 0);
}

static void another_policy_asks_anew(void **state)
{
    (void)state;
    asked_in_the_shadow(policy_changes, 1, 0);
}

/* Something ends in each step, so other places are found each time: the question has an end. */
static void other_places_are_asked_for_so_often(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        struct seen seen = {0};
        places_init(&world, policies[i], 1);
        submit(&world, "first", 10, world_role("worker", 1, 1, 1));
        assert_true(room_is_asked(world.core));
        for (; !seen.starts && seen.steps < STEPS_MAX; seen.steps++) {
            world.core->node_changes++; /* as good as one */
            assert_true(world_pass_step(&world));
            see(&world, &seen);
        }
        assert_int_equal(seen.starts, 1);
        world_release(&world);
    }
}

/* The one that starves has so many tasks that no step may ask for all of them. */
static void tasks_starve(struct world *world, const char *policy)
{
    enum { NODES = 60, NODE_TASKS = 100 };
    char name[16];
    world_init(world, policy);
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%d", i);
        world_node(world, name, NODE_TASKS + 1, 0);
    }
    struct plan_role role = world_role("worker", NODES, NODE_TASKS, 0);
    struct plan plan = world_plan_of("old", &role);
    world_submit(world, &plan);
    role = world_role("worker", NODES * NODE_TASKS, 1, 0);
    role.port_count = 0;
    plan = world_plan_of("big", &role);
    world_submit(world, &plan);
    world_pass_end(world);
    world_timer(world, STARVES_MS);
    world_pass_end(world);
    assert_int_equal(world->core->reservations.count, 1);
}

/* However often it begins anew, no step does more than so much, and others wait no longer than for
 * so many tries. When nothing happens any more, it starts. */
static void no_step_asks_for_all_of_it(void **state)
{
    enum { WORK_MAX = 3 * 4096 }; /* with one piece more, and its undoing */
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        struct seen seen = {0};
        tasks_starve(&world, policies[i]);
        const uint32_t asking = submit(&world, "asking", 10, world_role("worker", 1, 1, 0));
        assert_true(room_is_asked(world.core));
        while (seen.steps < STEPS_MAX && world.core->placing.job + room_is_asked(world.core)) {
            world.core->node_changes++; /* as good as one */
            assert_true(world_pass_step(&world));
            assert_true(world.core->pass.work <= WORK_MAX);
            see(&world, &seen);
            seen.steps++;
        }
        assert_true(seen.steps < STEPS_MAX);
        assert_int_equal(seen.starts, 0);
        const struct core_job *job = core_job_find(world.core, (struct job_id){asking});
        const char *reason = queue_reason(
            world.core->queue, queue_class_of(world.core->queue, core_job_slot(world.core, job)));
        assert_non_null(strstr(reason, "room is held back for alice~big"));
        world_node(&world, "more", 1, 0); /* something may be free */
        steps_end(&world, &seen);
        assert_int_equal(seen.starts, 1);
        world_release(&world);
    }
}

/* --- a large part behind the one that starves --- */

enum { LARGE_PART = 3 };

/* Of two nodes one is free, and of no use to the job that starves. */
static void large_init(struct world *world, const char *policy, uint32_t slice)
{
    world_init(world, policy);
    world_keep(world);
    node_set(world, "n1", "A100", true);
    node_set(world, "n2", "V100", true);
    submit(world, "old", 100, role_of("worker", "A100", 4));
    world_run(world, 1);
    submit(world, "big", 100, role_of("worker", "A100", 5));
    world_timer(world, STARVES_MS);
    assert_int_equal(world->core->reservations.count, 1);
    core_slice_set(world->core, slice);
}

struct stages {
    bool was_committing, was_joining;
};

static void stages_see(const struct world *world, struct stages *stages)
{
    stages->was_committing |= world->core->room.stage == ROOM_COMMIT;
    stages->was_joining |= reserve_is_joining(world->core);
}

static void large_submit(struct world *world, const char *name, struct seen *seen)
{
    struct plan_role role = role_of("worker", "V100", 1);
    role.instances = TASKS;
    role.affinity_group = "all";
    struct plan plan = world_plan_of(name, &role);
    plan.priority = 100;
    world_submit(world, &plan);
    see(world, seen);
}

/* `happens` after so many steps; whether it is still being placed then. */
static bool large_run(const char *policy, uint32_t steps, void (*happens)(struct world *world),
                      size_t starts, struct stages *stages)
{
    struct world world;
    struct seen seen = {0};
    large_init(&world, policy, 1);
    large_submit(&world, "large", &seen);
    for (uint32_t i = 0; i < steps && !seen.starts; i++) {
        stages_see(&world, stages);
        world_pass_step(&world);
        see(&world, &seen);
    }
    const bool was_placed = seen.starts || world.core->placing.stage == PLACING_START;
    if (!was_placed) {
        happens(&world);
        see(&world, &seen);
        for (; seen.steps < STEPS_MAX && world_pass_step(&world); seen.steps++)
            see(&world, &seen);
        assert_true(seen.steps < STEPS_MAX);
        assert_int_equal(seen.starts, starts);
        assert_false(reserve_is_joining(world.core) || room_is_asked(world.core));
    }
    world_release(&world);
    return !was_placed;
}

static void large_runs(void (*happens)(struct world *world), size_t starts)
{
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct stages stages = {0};
        uint32_t steps = 0;
        while (large_run(policies[i], steps, happens, starts, &stages))
            assert_true((steps += unit_every()) < STEPS_MAX);
        assert_true(stages.was_committing);
        assert_true(stages.was_joining || strcmp(policies[i], "hived") != 0);
    }
}

static void nothing_happens(struct world *world)
{
    (void)world;
}

static void a_large_part_starts_behind_it(void **state)
{
    (void)state;
    large_runs(nothing_happens, TASKS);
}

static void large_stops(struct world *world)
{
    assert_int_equal(world_ask(world, EVENT_STOP, LARGE_PART), 0);
    struct seen seen = {0};
    steps_end(world, &seen);
    assert_int_equal(seen.starts, 0);
    large_submit(world, "next", &seen); /* the shadow is what it was */
    steps_end(world, &seen);
    assert_int_equal(seen.starts, TASKS);
    assert_int_equal(world_ask(world, EVENT_STOP, LARGE_PART + 1), 0);
}

static void a_large_part_that_is_stopped_leaves_nothing(void **state)
{
    (void)state;
    large_runs(large_stops, 0);
}

static void big_stops_behind_large(struct world *world)
{
    assert_int_equal(world_ask(world, EVENT_STOP, BIG), 0);
}

static void a_large_part_starts_without_who_starves(void **state)
{
    (void)state;
    large_runs(big_stops_behind_large, TASKS);
}

static void a_large_part_starts_in_a_copy(void **state)
{
    (void)state;
    large_runs(core_is_copied, TASKS);
}

static void a_large_part_starts_after_a_restart(void **state)
{
    (void)state;
    large_runs(server_restarts, TASKS);
}

static void a_large_part_starts_with_another_policy(void **state)
{
    (void)state;
    large_runs(policy_changes, TASKS);
}

static void large_node_changes(struct world *world)
{
    node_set(world, "n2", "V100", false);
    node_set(world, "n2", "V100", true);
}

static void a_large_part_starts_when_its_node_is_back(void **state)
{
    (void)state;
    large_runs(large_node_changes, TASKS);
}

static void old_ends(struct world *world)
{
    world_exit(world, 1, 0, 0);
}

static void what_ends_meanwhile_lets_both_start(void **state)
{
    (void)state;
    large_runs(old_ends, TASKS + 1);
}

/* --- a small job asks a shadow that is not tidy --- */

enum { SMALL = LARGE_PART + 1 };

/* The large part has run, and ends: what it had in the shadow is given back by whoever asks there,
 * the placer's own cells by then. The one that is submitted fits where the large part was. */
static void small_begin(struct world *world, const char *policy, struct seen *seen)
{
    const uint64_t first = 2; /* attempt of the large part */
    large_init(world, policy, 1);
    large_submit(world, "large", seen);
    steps_end(world, seen);
    assert_int_equal(seen->starts, TASKS);
    for (uint64_t attempt = first; attempt < first + TASKS; attempt++)
        world_run(world, attempt);
    for (uint64_t attempt = first; attempt < first + TASKS; attempt++)
        world_exit(world, attempt, 0, 0);
    *seen = (struct seen){0};
    assert_int_equal(submit(world, "small", 100, role_of("worker", "V100", 5)), SMALL);
    see(world, seen);
}

/* `happens` after so many steps, unless the small job has its places by then: false. */
static bool small_run(const char *policy, uint32_t steps, void (*happens)(struct world *world),
                      size_t starts, bool *was_committing)
{
    struct world world;
    struct seen seen;
    memset(&seen, 0, sizeof seen);
    small_begin(&world, policy, &seen);
    for (uint32_t i = 0; i < steps && !seen.starts; i++) {
        world_pass_step(&world);
        *was_committing |= world.core->room.stage == ROOM_COMMIT;
        see(&world, &seen);
    }
    const bool was_placed = seen.starts || world.core->placing.stage == PLACING_START;
    if (!was_placed) {
        happens(&world);
        see(&world, &seen);
        steps_end(&world, &seen);
        assert_int_equal(seen.starts, starts);
    }
    world_release(&world);
    return !was_placed;
}

/* HiveD's shadows alone give back in pieces. */
static void small_runs(void (*happens)(struct world *world), size_t starts)
{
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        uint32_t steps = 0;
        bool was_committing = false;
        while (small_run(policies[i], steps, happens, starts, &was_committing))
            assert_true((steps += unit_every()) < STEPS_MAX);
        assert_int_equal(was_committing, strcmp(policies[i], "hived") == 0);
    }
}

static void a_small_job_waits_for_an_untidy_shadow(void **state)
{
    (void)state;
    small_runs(nothing_happens, 1);
}

static void small_stops(struct world *world)
{
    assert_int_equal(world_ask(world, EVENT_STOP, SMALL), 0);
    struct seen seen = {0};
    steps_end(world, &seen);
    assert_int_equal(seen.starts, 0);
    large_submit(world, "next", &seen); /* the shadow is what it was */
    steps_end(world, &seen);
    assert_int_equal(seen.starts, TASKS);
    assert_int_equal(world_ask(world, EVENT_STOP, SMALL + 1), 0);
}

static void a_small_job_that_is_stopped_leaves_nothing(void **state)
{
    (void)state;
    small_runs(small_stops, 0);
}

static void a_node_comes(struct world *world)
{
    node_set(world, "n3", "V100", false);
}

static void others_come_and_go_while_the_shadow_is_untidy(void **state)
{
    (void)state;
    small_runs(big_stops_behind_large, 1);
    small_runs(core_is_copied, 1);
    small_runs(server_restarts, 1);
    small_runs(a_node_comes, 1);
    small_runs(old_ends, 2);
}

/* A task of the starving job itself starts meanwhile: its step does not give back all that is left,
 * but the shadow is made anew. */
static void an_own_task_leaves_an_untidy_shadow_alone(void **state)
{
    (void)state;
    struct world world;
    struct seen seen = {0};
    const uint64_t first = 2; /* attempt of the large part */
    world_init(&world, "hived");
    node_set(&world, "n1", "A100", true);
    node_set(&world, "n2", "V100", true);
    submit(&world, "old", 100, role_of("worker", "A100", 4));
    world_run(&world, 1);
    struct plan_role role = role_of("worker", "A100", 5);
    role.instances = 2;
    struct plan plan = world_plan_of("big", &role);
    plan.is_gang = false;
    plan.priority = 100;
    assert_int_equal(world_submit(&world, &plan), BIG);
    world_timer(&world, STARVES_MS);
    core_slice_set(world.core, 1);
    large_submit(&world, "large", &seen);
    steps_end(&world, &seen);
    assert_int_equal(seen.starts, TASKS);
    for (uint64_t attempt = first; attempt < first + TASKS; attempt++)
        world_run(&world, attempt);
    for (uint64_t attempt = first; attempt < first + TASKS; attempt++)
        world_exit(&world, attempt, 0, 0);
    steps_end(&world, &seen);
    const struct reservation *reservation = &world.core->reservations.items[0];
    assert_true(shadow_is_untidy(reservation->shadow));
    seen = (struct seen){0};
    world_exit(&world, 1, 0, 0);
    see(&world, &seen);
    steps_end(&world, &seen);
    assert_int_equal(seen.starts, 1);
    assert_int_equal(world.core->reservations.count, 1);
    assert_true(reservation->is_stale);
    seen = (struct seen){0};
    submit(&world, "small", 100, role_of("worker", "V100", 5));
    see(&world, &seen);
    steps_end(&world, &seen);
    assert_int_equal(seen.starts, 1);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_own_task_leaves_an_untidy_shadow_alone),
    cmocka_unit_test(a_small_job_waits_for_an_untidy_shadow),
    cmocka_unit_test(a_small_job_that_is_stopped_leaves_nothing),
    cmocka_unit_test(others_come_and_go_while_the_shadow_is_untidy),
    cmocka_unit_test(a_large_part_starts_behind_it),
    cmocka_unit_test(a_large_part_that_is_stopped_leaves_nothing),
    cmocka_unit_test(a_large_part_starts_without_who_starves),
    cmocka_unit_test(a_large_part_starts_in_a_copy),
    cmocka_unit_test(a_large_part_starts_after_a_restart),
    cmocka_unit_test(a_large_part_starts_with_another_policy),
    cmocka_unit_test(a_large_part_starts_when_its_node_is_back),
    cmocka_unit_test(what_ends_meanwhile_lets_both_start),
    cmocka_unit_test(no_step_asks_for_all_of_it),
    cmocka_unit_test(steps_answer_what_one_step_answers),
    cmocka_unit_test(what_ends_meanwhile_is_free),
    cmocka_unit_test(a_stopped_job_leaves_the_shadow_alone),
    cmocka_unit_test(who_starves_no_more_is_not_asked),
    cmocka_unit_test(a_failed_node_is_no_room),
    cmocka_unit_test(a_node_that_joins_is_used),
    cmocka_unit_test(a_copy_goes_on),
    cmocka_unit_test(a_trial_ends_it_first),
    cmocka_unit_test(another_placer_is_asked_anew),
    cmocka_unit_test(a_restart_asks_anew),
    cmocka_unit_test(places_are_asked_for_in_steps),
    cmocka_unit_test(other_places_are_asked_for_so_often),
    cmocka_unit_test(one_that_is_stopped_has_taken_nothing),
    cmocka_unit_test(without_who_starves_all_start),
    cmocka_unit_test(a_copy_asks_on),
    cmocka_unit_test(another_policy_asks_anew),
};
UNIT_FILE(tests, NULL, NULL);
