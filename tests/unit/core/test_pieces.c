/* The plain policies search in pieces for one task of a job without gang: whatever happens between
 * two of them, the search comes to its end, and nobody ends for what is free already.
 *
 * Covers: src/core/start.c, src/core/part.c
 */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "core/jobs.h"
#include "core/state.h"
#include "core/tasks.h"

enum { NODES = 6, GPUS = 4, LOWS = NODES * GPUS - 1, ATTEMPTS = 400, STEPS_MAX = 4000, BIG = 2 };

static const char *const policies[] = {"first-fit", "best-fit", "spread"};

enum happening {
    NOTHING,
    A_NODE_IS_LOST,
    A_NODE_FAILS,
    A_NODE_COMES,
    ONE_ENDS,
    ALL_END,
    THE_JOB_IS_STOPPED,
    THE_TASKS_ARE_SCALED_AWAY,
    ANOTHER_POLICY,
    A_RESTART,
    A_COPY,
    HAPPENINGS,
};

/* What the job has been seen to do. */
struct course {
    struct world world;
    uint32_t job;
    bool is_told[ATTEMPTS]; /* to end, by attempt, and has not ended yet */
    size_t starts, kills;
};

static void note(struct course *course)
{
    const struct world *world = &course->world;
    for (size_t i = 0; i < world_command_count(world, COMMAND_CREATE); i++)
        course->starts += world_command(world, COMMAND_CREATE, i)->job.v == course->job;
    for (size_t i = 0; i < world_command_count(world, COMMAND_KILL); i++) {
        const uint64_t attempt = world_command(world, COMMAND_KILL, i)->attempt.v;
        assert_in_range(attempt, 1, ATTEMPTS - 1);
        course->is_told[attempt] = true;
        course->kills++;
    }
}

static void node_set(struct world *world, uint32_t number)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", number);
    world_node(world, name, 2 * GPUS, GPUS);
}

/* For one of its large tasks. */
static bool is_searched_for(const struct course *course)
{
    const struct core *core = course->world.core;
    return core->placing.job == course->job && core->placing.stage == PLACING_TASKS &&
           core->placing.task.role == 1 && core->is_searching;
}

/* All GPUs but one are in use by jobs that may be preempted. A job without gang takes that one, and
 * needs two whole nodes as well. */
static void search_begin(struct course *course, const char *policy)
{
    struct world *world = &course->world;
    *course = (struct course){0};
    world_init(world, policy);
    world_keep(world);
    for (uint32_t i = 1; i <= NODES; i++)
        node_set(world, i);
    for (uint32_t i = 1; i <= LOWS; i++) {
        char name[16];
        snprintf(name, sizeof name, "low%u", i);
        world_submit_role(world, name, (int32_t)(i % 3), world_role("worker", 1, 1, 1));
        world_run(world, i);
    }
    core_slice_set(world->core, 1);
    struct plan_role roles[] = {world_role("small", 1, 1, 1), world_role("big", BIG, 1, GPUS)};
    struct plan plan = world_plan_of("tasks", roles);
    plan.role_count = 2;
    plan.is_gang = false;
    plan.priority = 100;
    course->job = world_submit(world, &plan);
    note(course);
    while (!is_searched_for(course)) {
        assert_true(world_pass_step(world));
        note(course);
    }
}

static void low_ends(struct course *course, uint64_t attempt)
{
    world_exit(&course->world, attempt, 0, 0);
    note(course);
}

static void happen(struct course *course, enum happening happening)
{
    struct world *world = &course->world;
    struct core *before = world->core;
    struct event scale = {.kind = EVENT_SCALE, .scale = {{course->job}, 1, 0}};
    switch (happening) {
    case NOTHING:
    case HAPPENINGS:
        break;
    case A_NODE_IS_LOST:
        world_node_event(world, EVENT_NODE_LOST, "n1");
        break;
    case A_NODE_FAILS:
        world_node_event(world, EVENT_NODE_CORDON, "n1");
        break;
    case A_NODE_COMES:
        node_set(world, NODES + 1);
        break;
    case ONE_ENDS:
        low_ends(course, 1);
        break;
    case ALL_END:
        for (uint64_t i = 1; i <= LOWS; i++)
            low_ends(course, i);
        break;
    case THE_JOB_IS_STOPPED:
        assert_int_equal(world_ask(world, EVENT_STOP, course->job), 0);
        break;
    case THE_TASKS_ARE_SCALED_AWAY:
        world_step(world, &scale);
        break;
    case ANOTHER_POLICY:
        world->config.policy = strcmp(world->config.policy, "spread") ? "spread" : "best-fit";
        world_configure(world);
        break;
    case A_RESTART:
        world_restart(world);
        core_slice_set(world->core, 1);
        break;
    case A_COPY:
        world->core = core_copy(before);
        core_free(before);
        break;
    }
    note(course);
}

/* Whoever is told to end does, until nothing more follows. */
static void all_follows(struct course *course)
{
    for (uint32_t i = 0; i < STEPS_MAX; i++) {
        uint64_t attempt = 1;
        while (attempt < ATTEMPTS && !course->is_told[attempt])
            attempt++;
        if (attempt < ATTEMPTS) {
            course->is_told[attempt] = false;
            world_exit(&course->world, attempt, 143, 0);
        } else if (!world_pass_step(&course->world)) {
            return;
        }
        note(course);
    }
    fail();
}

static void check_what_follows(struct course *course, enum happening happening)
{
    const struct world *world = &course->world;
    const size_t kills = course->kills;
    all_follows(course);
    const struct core_job *job = core_job_find(world->core, (struct job_id){course->job});
    if (happening == THE_JOB_IS_STOPPED) {
        assert_null(job);
        assert_int_equal(course->kills, kills);
        return;
    }
    assert_int_equal(job->life.live, happening == THE_TASKS_ARE_SCALED_AWAY ? 1 : BIG + 1);
    assert_int_equal(job->waiting, WAITING_NOT);
    if (happening != A_NODE_IS_LOST && happening != A_NODE_FAILS)
        return;
    for (uint16_t i = 0; i < BIG; i++)
        assert_int_not_equal(
            core_task_find(world->core, core_job_slot(world->core, job), (struct task_ref){1, i})
                ->node,
            0);
}

/* After so many steps. False: the first task waits for its victims by then. */
static bool search_is_disturbed(const char *policy, uint32_t steps, enum happening happening)
{
    struct course course;
    search_begin(&course, policy);
    for (uint32_t i = 0; i < steps && is_searched_for(&course); i++) {
        world_pass_step(&course.world);
        note(&course);
    }
    const bool is_searched = is_searched_for(&course);
    if (is_searched) {
        assert_int_equal(course.starts, 1);
        assert_int_equal(course.kills, 0);
        happen(&course, happening);
        check_what_follows(&course, happening);
    }
    world_release(&course.world);
    return is_searched;
}

static void anything_happens_at_any_piece(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        for (int happening = 0; happening < HAPPENINGS; happening++) {
            uint32_t steps = 0;
            while (search_is_disturbed(policies[i], steps, (enum happening)happening))
                steps++;
            assert_in_range(steps, 8, STEPS_MAX);
        }
}

/* Whom an earlier piece has named, and who has ended since, is not among those it waits for. */
static void who_has_ended_is_not_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct course course;
        search_begin(&course, policies[i]);
        const struct naming *naming = &course.world.core->naming;
        while (is_searched_for(&course) && !naming->victims.count)
            world_pass_step(&course.world);
        assert_true(is_searched_for(&course));
        const struct core_group *named =
            core_group_at(course.world.core, naming->victims.items[0].group);
        char name[32];
        snprintf(name, sizeof name, "%s", named->name);
        world_exit(&course.world, core_task_at(course.world.core, named->tasks[0])->attempt.v, 0,
                   0);
        const struct job_record *row = NULL;
        while (!row || !strstr(row->reason, "not ended yet: alice~low")) {
            assert_true(world_pass_step(&course.world));
            row = world_job(&course.world, course.job);
        }
        assert_null(strstr(row->reason, name));
        world_release(&course.world);
    }
}

/* Each piece that finds that a node has changed makes those after it twice as large. */
static void a_node_that_changes_at_every_piece_ends_it_sooner(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct course course;
        search_begin(&course, policies[i]);
        uint32_t steps = 0;
        for (; !course.kills && steps < STEPS_MAX; steps++) {
            world_node(&course.world, "n6", 2 * GPUS + steps % 2, GPUS);
            note(&course);
        }
        assert_in_range(steps, 2, 64);
        world_release(&course.world);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(anything_happens_at_any_piece),
    cmocka_unit_test(who_has_ended_is_not_named),
    cmocka_unit_test(a_node_that_changes_at_every_piece_ends_it_sooner),
};
UNIT_FILE(tests, NULL, NULL);
