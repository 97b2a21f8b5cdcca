/* The end of a large attempt is told to its tasks in several steps:
 * docs/rfc/0016-gangs-in-steps.md. Here each step tells one.
 *
 * Covers: src/core/jobs.c, src/core/core.c, src/core/tasks.c
 */
#include "unit.h"
#include "world.h"

#include "core/jobs.h"
#include "core/state.h"

enum { TASKS = 4 };

/* A gang that runs, as attempts 1…4. */
static uint32_t begin(struct world *world)
{
    world_init(world, "first-fit");
    world_keep(world);
    world_node(world, "n1", 16, TASKS);
    const struct plan_role role = world_role("worker", TASKS, 1, 1);
    struct plan plan = world_plan_of("gang", &role);
    plan.retry_max = 1;
    uint32_t gang = world_submit(world, &plan);
    for (uint64_t i = 1; i <= TASKS; i++)
        world_run(world, i);
    core_slice_set(world->core, 1);
    return gang;
}

static bool goes_on(const struct world *world)
{
    return world->core->going_jobs.count > 0;
}

/* Each KILL with its row, in the order of the tasks; the core asks for the next step at once. */
static void tasks_are_told_one_by_one(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world);
    assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
    for (uint16_t i = 0; i < TASKS; i++) {
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
        assert_int_equal(world_command(&world, COMMAND_KILL, 0)->task.index, i);
        assert_int_equal(world_task(&world, gang, 0, i)->state, LIFE_DELETION_REQUESTED);
        assert_int_equal(goes_on(&world), i + 1 < TASKS);
        assert_int_equal(world_command_count(&world, COMMAND_WAKE), i + 1 < TASKS);
        world_timer(&world, 0);
    }
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
    world_release(&world);
}

/* Whatever event comes next takes the end further; who ends by itself is not told. */
static void any_event_goes_on(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world);
    assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
    world_exit(&world, 2, 0, 0);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
    assert_int_equal(world_command(&world, COMMAND_KILL, 0)->task.index, 2);
    assert_int_equal(world_task(&world, gang, 0, 1)->completion.code, 0);
    world_node(&world, "n2", 16, TASKS);
    assert_int_equal(world_command(&world, COMMAND_KILL, 0)->task.index, 3);
    assert_false(goes_on(&world));
    for (uint64_t i = 1; i <= TASKS; i++)
        if (i != 2)
            world_exit(&world, i, 143, 0);
    assert_int_equal(world_job(&world, gang)->state, LIFE_COMPLETED);
    world_release(&world);
}

static void a_lost_node_ends_those_that_were_not_told(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world);
    assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
    world_node_event(&world, EVENT_NODE_LOST, "n1");
    assert_int_equal(world_job(&world, gang)->state, LIFE_COMPLETED);
    assert_int_equal(world_job(&world, gang)->completion.code, CODE_STOP_REQUESTED);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
    assert_false(goes_on(&world));
    world_release(&world);
}

/* Who had been told is told again, the others follow one by one. */
static void a_restart_goes_on(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world);
    assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
    world_timer(&world, 0);
    world_restart(&world);
    core_slice_set(world.core, 1);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 2);
    for (uint16_t i = 2; i < TASKS; i++) {
        assert_true(goes_on(&world));
        world_timer(&world, 0);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
        assert_int_equal(world_command(&world, COMMAND_KILL, 0)->task.index, i);
        assert_string_equal(world_command(&world, COMMAND_KILL, 0)->reason, "stopped");
    }
    assert_false(goes_on(&world));
    world_release(&world);
}

static void a_copy_goes_on_alike(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world);
    assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
    struct core *copy = core_copy(world.core);
    core_free(world.core);
    world.core = copy;
    for (uint16_t i = 1; i < TASKS; i++) {
        assert_true(goes_on(&world));
        world_timer(&world, 0);
        assert_int_equal(world_command(&world, COMMAND_KILL, 0)->task.index, i);
    }
    assert_false(goes_on(&world));
    world_release(&world);
}

/* All of a job's tasks have failed, and their containers are kept. */
static uint32_t held_begin(struct world *world)
{
    world_init(world, "first-fit");
    world_keep(world);
    world_node(world, "n1", 16, TASKS);
    const struct plan_role role = world_role("worker", TASKS, 1, 1);
    struct plan plan = world_plan_of("kept", &role);
    plan.is_debug = true;
    const uint32_t job = world_submit(world, &plan);
    for (uint64_t i = 1; i <= TASKS; i++)
        world_run(world, i);
    for (uint64_t i = 1; i <= TASKS; i++)
        world_exit(world, i, 3, 0);
    assert_int_equal(core_job_find(world->core, (struct job_id){job})->life.held, TASKS);
    core_slice_set(world->core, 1);
    return job;
}

enum let_go_change { CHANGE_NONE, CHANGE_COPY, CHANGE_RESTART, CHANGE_LAST };

/* One FORGET in each step, whatever happens between any two of them; the job is forgotten after the
 * last. */
static void held_containers_go_one_by_one(void **state)
{
    (void)state;
    for (int change = 0; change < CHANGE_LAST; change++)
        for (uint16_t at = 1; at < TASKS; at++) {
            struct world world;
            const uint32_t job = held_begin(&world);
            assert_int_equal(world_ask(&world, EVENT_RELEASE, job), 0);
            for (uint16_t i = 0; i < TASKS; i++) {
                assert_int_equal(world_command_count(&world, COMMAND_FORGET), 1);
                assert_int_equal(world_command(&world, COMMAND_FORGET, 0)->attempt.v, i + 1u);
                assert_false(world_task(&world, job, 0, i)->is_held);
                assert_int_equal(goes_on(&world), i + 1 < TASKS);
                assert_int_equal(world_command_count(&world, COMMAND_WAKE), i + 1 < TASKS);
                assert_int_equal(core_attempt_is_live(world.core, (struct attempt_id){TASKS}),
                                 i + 1 < TASKS);
                if (change == CHANGE_COPY && i + 1 == at) {
                    struct core *copy = core_copy(world.core);
                    core_free(world.core);
                    world.core = copy;
                } else if (change == CHANGE_RESTART && i + 1 == at) {
                    world_restart(&world);
                    core_slice_set(world.core, 1);
                    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 0);
                }
                world_timer(&world, 0);
            }
            assert_null(core_job_find(world.core, (struct job_id){job}));
            world_release(&world);
        }
}

static void forgotten_count(const struct world *world, uint32_t *counts)
{
    for (size_t i = 0; i < world_command_count(world, COMMAND_FORGET); i++)
        counts[world_command(world, COMMAND_FORGET, i)->attempt.v]++;
}

/* Released while they are being killed: each is forgotten once, whether it ends before its turn or
 * after it. */
static void killed_containers_go_once(void **state)
{
    (void)state;
    for (uint64_t early = 2; early <= TASKS; early++) {
        struct world world;
        uint32_t counts[TASKS + 1] = {0};
        world_init(&world, "first-fit");
        world_node(&world, "n1", 16, TASKS);
        const struct plan_role role = world_role("worker", TASKS, 1, 1);
        struct plan plan = world_plan_of("kept", &role);
        plan.is_debug = true;
        const uint32_t job = world_submit(&world, &plan);
        for (uint64_t i = 1; i <= TASKS; i++)
            world_run(&world, i);
        world_exit(&world, 1, 3, 0);
        assert_int_equal(core_job_find(world.core, (struct job_id){job})->life.held, TASKS);
        core_slice_set(world.core, 1);
        assert_int_equal(world_ask(&world, EVENT_RELEASE, job), 0);
        forgotten_count(&world, counts);
        world_exit(&world, early, 143, 0);
        forgotten_count(&world, counts);
        while (goes_on(&world)) {
            world_timer(&world, 0);
            forgotten_count(&world, counts);
        }
        for (uint64_t i = 2; i <= TASKS; i++) {
            assert_int_equal(counts[i], i == early);
            if (i == early)
                continue;
            world_exit(&world, i, 143, 0);
            forgotten_count(&world, counts);
        }
        for (uint64_t i = 1; i <= TASKS; i++)
            assert_int_equal(counts[i], 1);
        assert_null(core_job_find(world.core, (struct job_id){job}));
        world_release(&world);
    }
}

/* The attempt is retried in the step in which the last one is let go: the rows that it leaves say
 * that nothing is held, so a restart does not look for it. */
static void rows_of_a_retried_attempt_hold_nothing(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, TASKS);
    struct plan_role role = world_role("worker", 2, 1, 1);
    role.min_failed = 2;
    struct plan plan = world_plan_of("kept", &role);
    plan.is_debug = true;
    plan.retry_max = 1;
    const uint32_t job = world_submit(&world, &plan);
    world_run(&world, 1);
    world_run(&world, 2);
    world_exit(&world, 1, 3, 0);
    assert_true(world_task(&world, job, 0, 0)->is_held);
    world_node_event(&world, EVENT_NODE_LOST, "n1"); /* nobody has a place for the next attempt */
    assert_int_equal(core_job_find(world.core, (struct job_id){job})->life.attempt, 1);
    for (uint16_t i = 0; i < 2; i++) {
        assert_int_equal(world_task(&world, job, 0, i)->job_attempt, 0);
        assert_int_equal(world_task(&world, job, 0, i)->state, LIFE_COMPLETED);
        assert_false(world_task(&world, job, 0, i)->is_held);
    }
    world_release(&world);
}

static bool has_deleted(const struct world *world, uint32_t job)
{
    for (size_t i = 0; i < world->output.records.count; i++)
        if (world->output.records.items[i].kind == RECORD_JOB_DELETED &&
            world->output.records.items[i].deleted.v == job)
            return true;
    return false;
}

/* The container of `attempt` is the one that goes in this step, unless it is 0; others follow. */
static void expect_one_goes(const struct world *world, uint64_t attempt, bool is_last)
{
    assert_int_equal(world_command_count(world, COMMAND_FORGET), attempt ? 1 : 0);
    if (attempt) {
        const struct command *command = world_command(world, COMMAND_FORGET, 0);
        assert_int_equal(command->attempt.v, attempt);
        assert_int_equal(command->job.v, 1);
        assert_string_equal(command->node, "n1");
        assert_int_equal(command->task.index, attempt - 1);
        assert_false(core_attempt_is_live(world->core, command->attempt));
    }
    assert_int_equal(world->core->old_kept == 0, is_last);
    assert_true(is_last || world_command_count(world, COMMAND_WAKE) > 0);
}

enum left_change { LEFT_NONE, LEFT_COPY, LEFT_LOST, LEFT_OTHER, LEFT_LAST };

/* Between two steps, or as one of them: which takes the containers that are left further. */
static void left_change(struct world *world, enum left_change change)
{
    struct core *copy;
    switch (change) {
    case LEFT_COPY:
        copy = core_copy(world->core);
        assert_int_equal(core_hash(copy), core_hash(world->core));
        core_free(world->core);
        world->core = copy;
        world_timer(world, 0);
        break;
    case LEFT_LOST:
        world_node_event(world, EVENT_NODE_LOST, "n1");
        break;
    case LEFT_OTHER:
        assert_int_not_equal(world_submit_simple(world, "other", 1, 1, 0), 0);
        break;
    case LEFT_NONE:
    case LEFT_LAST:
        world_timer(world, 0);
        break;
    }
}

/* Its row and it are gone when that is answered; its containers follow, one in each step, whatever
 * happens between any two of them. */
static void a_deletion_lets_them_go_one_by_one(void **state)
{
    (void)state;
    for (int change = 0; change < LEFT_LAST; change++)
        for (uint16_t at = 1; at < TASKS; at++) {
            struct world world;
            const uint32_t job = held_begin(&world);
            assert_int_equal(world_ask(&world, EVENT_DELETE, job), 0);
            assert_true(has_deleted(&world, job));
            assert_null(core_job_find(world.core, (struct job_id){job}));
            for (uint16_t i = 1; i <= TASKS; i++) {
                expect_one_goes(&world, i, i == TASKS);
                left_change(&world, i == at ? (enum left_change)change : LEFT_NONE);
            }
            expect_one_goes(&world, 0, true);
            assert_int_equal(world.core->old_tables.count, 0);
            world_release(&world);
        }
}

/* Some have been let go by then: each goes once. */
static void a_deletion_goes_on_with_a_release(void **state)
{
    (void)state;
    struct world world;
    uint32_t counts[TASKS + 1] = {0};
    const uint32_t job = held_begin(&world);
    assert_int_equal(world_ask(&world, EVENT_RELEASE, job), 0);
    forgotten_count(&world, counts);
    assert_int_equal(world_ask(&world, EVENT_DELETE, job), 0);
    forgotten_count(&world, counts);
    assert_null(core_job_find(world.core, (struct job_id){job}));
    while (world.core->old_kept) {
        world_timer(&world, 0);
        forgotten_count(&world, counts);
    }
    for (uint64_t i = 1; i <= TASKS; i++)
        assert_int_equal(counts[i], 1);
    world_release(&world);
}

/* Nothing of it is in rows: to the new core they are orphans, which are no business of its own. */
static void a_restart_knows_none_that_are_left(void **state)
{
    (void)state;
    struct world world;
    const uint32_t job = held_begin(&world);
    assert_int_equal(world_ask(&world, EVENT_DELETE, job), 0);
    world_restart(&world);
    assert_null(core_job_find(world.core, (struct job_id){job}));
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 0);
    for (uint64_t i = 1; i <= TASKS; i++)
        assert_false(core_attempt_is_live(world.core, (struct attempt_id){i}));
    world_release(&world);
}

/* Its containers were held until it was stopped, and one of them has gone since. */
static uint32_t stopped_begin(struct world *world)
{
    world_init(world, "first-fit");
    world_keep(world);
    world_node(world, "n1", 16, TASKS);
    struct plan_role role = world_role("worker", TASKS, 1, 1);
    role.min_failed = -1;
    struct plan plan = world_plan_of("kept", &role);
    plan.is_gang = false;
    plan.is_debug = true;
    const uint32_t job = world_submit(world, &plan);
    for (uint64_t i = 1; i <= TASKS; i++)
        world_run(world, i);
    for (uint64_t i = 1; i < TASKS; i++)
        world_exit(world, i, 3, 0);
    core_slice_set(world->core, 1);
    assert_int_equal(world_ask(world, EVENT_STOP, job), 0);
    world_exit(world, TASKS, 143, 0);
    assert_int_equal(world_command_count(world, COMMAND_FORGET), 2); /* its own, and the first */
    assert_int_equal(core_job_find(world->core, (struct job_id){job})->life.let_go, TASKS - 2);
    return job;
}

/* Rows of the attempts of before are written no more: those of the tasks are the new attempt's. */
static void expect_new_rows(const struct world *world)
{
    for (size_t i = 0; i < world->output.records.count; i++) {
        const struct record *record = &world->output.records.items[i];
        if (record->kind == RECORD_TASK)
            assert_int_equal(record->task.job_attempt, 1);
    }
}

enum anew_change { ANEW_NONE, ANEW_COPY, ANEW_STOP, ANEW_LAST };

/* The new attempt begins in this step, and what is left of the one before goes beside it: each
 * once, one in a step. */
static void a_new_start_goes_on_with_what_is_left(void **state)
{
    (void)state;
    for (int change = 0; change < ANEW_LAST; change++) {
        struct world world;
        uint32_t counts[2 * TASKS + 1] = {0}, steps = 0;
        const uint32_t job = stopped_begin(&world);
        assert_int_equal(world_ask(&world, EVENT_START, job), 0);
        assert_int_equal(world_job(&world, job)->attempt, 1);
        assert_int_equal(core_job_find(world.core, (struct job_id){job})->life.let_go, 0);
        expect_new_rows(&world);
        forgotten_count(&world, counts);
        for (; world.core->old_kept; steps++) {
            assert_true(world_command_count(&world, COMMAND_WAKE) > 0);
            if (steps == 0 && change == ANEW_COPY) {
                struct core *copy = core_copy(world.core);
                core_free(world.core);
                world.core = copy;
            }
            if (steps == 0 && change == ANEW_STOP)
                assert_int_equal(world_ask(&world, EVENT_STOP, job), 0);
            else
                world_timer(&world, 0);
            assert_true(world_command_count(&world, COMMAND_FORGET) <= 1);
            expect_new_rows(&world);
            forgotten_count(&world, counts);
        }
        assert_int_equal(steps, TASKS - 2);
        world_pass_end(&world);
        for (uint64_t i = 1; i <= 2 * TASKS; i++) {
            assert_int_equal(counts[i], i > 1 && i < TASKS);
            if (i <= TASKS || change != ANEW_STOP)
                assert_int_equal(core_attempt_is_live(world.core, (struct attempt_id){i}),
                                 i > TASKS);
        }
        world_release(&world);
    }
}

/* Their rows still say that they are held; but these are of an attempt before the job's. */
static void a_restart_knows_none_of_an_attempt_before(void **state)
{
    (void)state;
    struct world world;
    const uint32_t job = stopped_begin(&world);
    assert_int_equal(world_ask(&world, EVENT_START, job), 0);
    assert_int_equal(world_ask(&world, EVENT_STOP, job), 0);
    world_restart(&world);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 0);
    for (uint64_t i = 1; i <= TASKS; i++)
        assert_false(core_attempt_is_live(world.core, (struct attempt_id){i}));
    world_release(&world);
}

/* The next attempt has a table of its own, while that of the last one is dropped task by task; its
 * attempts are known to nobody any more. */
static void an_old_table_is_dropped_in_steps(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world);
    core_slice_set(world.core, 8); /* which places the gang in one step */
    world_exit(&world, 1, 1, 0);
    while (goes_on(&world))
        world_timer(&world, 0);
    core_slice_set(world.core, 1);
    for (uint64_t i = 2; i <= TASKS; i++)
        world_exit(&world, i, 143, 0);
    assert_int_equal(world.core->old_tables.count, 1);
    assert_false(core_attempt_is_live(world.core, (struct attempt_id){TASKS}));
    struct core *copy = core_copy(world.core);
    assert_int_equal(copy->old_tables.count, 1);
    assert_int_equal(core_hash(copy), core_hash(world.core));
    core_free(world.core);
    world.core = copy;
    world_exit(&world, TASKS, 143, 0); /* told twice */
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 0);
    for (int i = 0; i < TASKS && world.core->old_tables.count; i++)
        world_timer(&world, 0);
    assert_int_equal(world.core->old_tables.count, 0);
    assert_int_equal(core_job_find(world.core, (struct job_id){gang})->life.attempt, 1);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tasks_are_told_one_by_one),
    cmocka_unit_test(any_event_goes_on),
    cmocka_unit_test(a_lost_node_ends_those_that_were_not_told),
    cmocka_unit_test(a_restart_goes_on),
    cmocka_unit_test(a_copy_goes_on_alike),
    cmocka_unit_test(held_containers_go_one_by_one),
    cmocka_unit_test(killed_containers_go_once),
    cmocka_unit_test(rows_of_a_retried_attempt_hold_nothing),
    cmocka_unit_test(a_deletion_lets_them_go_one_by_one),
    cmocka_unit_test(a_deletion_goes_on_with_a_release),
    cmocka_unit_test(a_restart_knows_none_that_are_left),
    cmocka_unit_test(a_new_start_goes_on_with_what_is_left),
    cmocka_unit_test(a_restart_knows_none_of_an_attempt_before),
    cmocka_unit_test(an_old_table_is_dropped_in_steps),
};
UNIT_FILE(tests, NULL, NULL);
