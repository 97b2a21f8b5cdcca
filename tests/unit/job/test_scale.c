/* Roles grow and shrink while the job runs. */
#include "job_world.h"
#include "unit.h"

#include "base/err.h"

static void surplus_tasks(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(3));
    world.policy.is_gang = false;
    world_begin(&world);
    world_step(&world, (struct job_event){.kind = JOB_EVENT_PLACED,
                                          .tasks = &(struct task_ref){0, 0},
                                          .task_count = 1});
    world_run(&world, 0, 0);
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 2);
    world_scale(&world, 0, 1, 1); /* the waiting ones go at once */
    assert_int_equal(world_count(&world, JOB_ACTION_TASK_REMOVED), 2);
    assert_int_equal(world_count(&world, JOB_ACTION_UNQUEUE), 1);
    assert_int_equal(job_role_count(&world.job, &world.policy, 0), 1);
    world_scale(&world, 0, 4, 1);
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 3);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 1);
    world_run_all(&world);
    world_scale(&world, 0, 0, 1);
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 4);
    world_scale(&world, 0, 0, 1); /* again: nothing more to do */
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 0);
    for (uint16_t i = 0; i < 4; i++) {
        world_exit(&world, 0, i, 143, 0);
        assert_null(world_story(&world, "TaskFailed")); /* whoever asked for it knows */
    }
    assert_int_equal(world.job.state, LIFE_RUNNING); /* paused */
    assert_int_equal(job_role_count(&world.job, &world.policy, 0), 0);
    const int32_t any = 1;
    world_step(&world, (struct job_event){.kind = JOB_EVENT_SCALE,
                                          .scale = {.instances = 1, .min_succeeded = &any}});
    world_run_all(&world);
    world_exit(&world, 0, 0, 0, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_true(world.job.is_inherited);
    world_release(&world);
}

/* All roles together have a limit, too. What is no longer wanted and has not ended counts. */
static void all_roles_together(void **state)
{
    (void)state;
    struct job_world world;
    struct err err;
    world_init(&world, ROLES(1, 1, 2));
    world.policy.is_gang = false;
    world_begin(&world);
    world_run_all(&world);
    assert_int_equal(job_can_scale(&world.job, &world.policy, 0, 10000, &err), 0);
    world_scale(&world, 0, 10000, 1);
    assert_int_equal(job_can_scale(&world.job, &world.policy, 1, 9998, &err), 0);
    assert_int_equal(job_can_scale(&world.job, &world.policy, 1, 9999, &err), ERR_TOO_BIG);
    assert_string_equal(err.path, "instances");
    world_scale(&world, 1, 9998, 1);
    world_scale(&world, 2, 1, 1);
    assert_int_equal(job_can_scale(&world.job, &world.policy, 1, 9999, &err), ERR_TOO_BIG);
    world_exit(&world, 2, 1, 143, 0);
    assert_int_equal(job_can_scale(&world.job, &world.policy, 1, 9999, &err), 0);
    assert_int_equal(job_can_scale(&world.job, &world.policy, 2, 3, &err), ERR_TOO_BIG);
    world_release(&world);
}

/* A job without gang of `tasks` tasks, the first of which has its place; two tasks a step. */
static void grow_begin(struct job_world *world, int tasks)
{
    world_init(world, ROLES(tasks));
    world->policy.is_gang = false;
    world_begin(world);
    world_step(world, (struct job_event){.kind = JOB_EVENT_PLACED,
                                         .tasks = &(struct task_ref){0, 0},
                                         .task_count = 1,
                                         .slice = 2});
}

static void grow_on(struct job_world *world)
{
    world_step(world, (struct job_event){.kind = JOB_EVENT_GO_ON, .slice = 2});
}

static void check_grown(const struct job_world *world, size_t entries, uint32_t waiting)
{
    const struct job *job = &world->job;
    assert_int_equal(job->roles[0].count, entries);
    assert_int_equal(job_waiting_count(job, &world->policy), waiting);
    assert_int_equal(job_goes_on(job), entries < job->roles[0].instances);
    for (uint16_t i = 1; i <= waiting; i++) /* with an entry or without */
        assert_true(job_task_is_waiting(job, &world->policy, (struct task_ref){0, i}));
    assert_false(
        job_task_is_waiting(job, &world->policy, (struct task_ref){0, (uint16_t)(waiting + 1)}));
    assert_int_equal(job_role_count(job, &world->policy, 0), waiting + 1);
}

static void a_large_table_is_made_over_several_steps(void **state)
{
    (void)state;
    struct job_world world;
    grow_begin(&world, 6);
    check_grown(&world, 1, 5);
    assert_null(job_task_find(&world.job, (struct task_ref){0, 1}));
    grow_on(&world);
    assert_int_equal(world_count(&world, JOB_ACTION_TASK_CHANGED), 2);
    assert_int_equal(world_count(&world, JOB_ACTION_JOB_CHANGED), 1); /* its row counts them */
    check_grown(&world, 3, 5);
    grow_on(&world);
    grow_on(&world);
    check_grown(&world, 6, 5);
    grow_on(&world);
    assert_int_equal(world.out.count, 0);
    world_release(&world);
}

static void a_place_comes_before_the_entry(void **state)
{
    (void)state;
    struct job_world world;
    grow_begin(&world, 6);
    world_step(&world, (struct job_event){.kind = JOB_EVENT_PLACED,
                                          .tasks = &(struct task_ref){0, 3},
                                          .task_count = 1,
                                          .slice = 2});
    assert_int_equal(world.job.roles[0].count, 4);
    assert_int_equal(world.job.live, 2);
    assert_int_equal(world.job.waiting, 4);
    const struct completion refused = completion_of(CODE_CREATION_PERMANENT, "no node is so large");
    world_step(&world, (struct job_event){.kind = JOB_EVENT_TASK_REFUSED,
                                          .task = {0, 4},
                                          .completion = &refused,
                                          .slice = 2});
    assert_int_equal(world.job.state, LIFE_DELETION_REQUESTED); /* any failure ends it */
    assert_false(world.job.is_growing);
    assert_int_equal(world.job.roles[0].count, 5);
    world_release(&world);
}

static void it_is_scaled_while_it_grows(void **state)
{
    (void)state;
    struct job_world world;
    grow_begin(&world, 6);
    world_step(&world,
               (struct job_event){.kind = JOB_EVENT_SCALE, .scale = {.instances = 4}, .slice = 2});
    check_grown(&world, 1, 3);
    assert_int_equal(world_count(&world, JOB_ACTION_QUEUE), 1);
    world_step(&world,
               (struct job_event){.kind = JOB_EVENT_SCALE, .scale = {.instances = 9}, .slice = 2});
    check_grown(&world, 1, 8);
    grow_on(&world);
    world_step(&world,
               (struct job_event){.kind = JOB_EVENT_SCALE, .scale = {.instances = 2}, .slice = 2});
    check_grown(&world, 2, 1); /* the third had an entry, and was waiting */
    world_step(&world, (struct job_event){.kind = JOB_EVENT_STOP, .slice = 2});
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 0);
    world_release(&world);
}

/* Eight tasks that run, of which two are wanted; two tasks a step. */
static void shrink_begin(struct job_world *world)
{
    world_init(world, ROLES(8));
    world->policy.is_gang = false;
    world->roles[0].min_failed = 1;
    world_begin(world);
    world_step(world, (struct job_event){.kind = JOB_EVENT_PLACED});
    world_run_all(world);
    world_step(world,
               (struct job_event){.kind = JOB_EVENT_SCALE, .scale = {.instances = 2}, .slice = 2});
}

static uint32_t marked_count(const struct job_world *world)
{
    uint32_t count = 0;
    for (size_t i = 0; i < world->job.roles[0].count; i++)
        count += world->job.roles[0].items[i].is_deletion_pending;
    return count;
}

static void surplus_tasks_are_told_over_several_steps(void **state)
{
    (void)state;
    struct job_world world;
    shrink_begin(&world);
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 2);
    assert_int_equal(marked_count(&world), 2);
    assert_true(job_goes_on(&world.job));
    grow_on(&world);
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 2);
    world_exit(&world, 0, 2, 1, 0); /* its turn has not come: it must not decide the attempt */
    assert_int_equal(world.job.state, LIFE_RUNNING);
    assert_int_equal(marked_count(&world), 5);
    grow_on(&world);
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 1);
    assert_false(job_goes_on(&world.job));
    for (uint16_t i = 3; i < 7; i++)
        world_exit(&world, 0, i, 143, 0);
    assert_int_equal(world.job.roles[0].count, 8);
    const struct completion killed = completion_of(143, "%s", "");
    world_step(&world, (struct job_event){.kind = JOB_EVENT_TASK_EXITED,
                                          .task = {0, 7},
                                          .completion = &killed,
                                          .slice = 2});
    assert_int_equal(world_count(&world, JOB_ACTION_TASK_REMOVED), 2);
    grow_on(&world);
    assert_int_equal(world.job.roles[0].count, 4);
    grow_on(&world);
    assert_int_equal(world.job.roles[0].count, 2);
    assert_false(job_goes_on(&world.job));
    world_release(&world);
}

/* Also one that had not been told: it goes from the table with those behind it, and what is kept of
 * it would go on. */
static void a_surplus_task_is_not_held(void **state)
{
    (void)state;
    struct job_world world;
    shrink_begin(&world);
    world.policy.debug_hold_s = 60;
    world_exit(&world, 0, 2, 1, 0);
    assert_int_equal(world_count(&world, JOB_ACTION_HOLD), 0);
    assert_int_equal(world.job.held, 0);
    world_exit(&world, 0, 7, 1, 0); /* it had been told */
    assert_int_equal(world.job.held, 0);
    world_exit(&world, 0, 1, 1, 0); /* this one is wanted */
    assert_int_equal(world_count(&world, JOB_ACTION_HOLD), 1);
    world_release(&world);
}

static void what_has_not_been_told_is_wanted_again(void **state)
{
    (void)state;
    struct job_world world;
    shrink_begin(&world);
    world_step(&world,
               (struct job_event){.kind = JOB_EVENT_SCALE, .scale = {.instances = 7}, .slice = 2});
    assert_int_equal(world_count(&world, JOB_ACTION_KILL), 0);
    assert_int_equal(world.job.waiting, 0);
    assert_false(job_goes_on(&world.job));
    for (uint16_t i = 0; i < 6; i++) /* the seventh had been told: it is replaced */
        assert_int_equal(job_task_find(&world.job, (struct task_ref){0, i})->state, LIFE_RUNNING);
    world_exit(&world, 0, 6, 143, 0);
    assert_int_equal(world.job.waiting, 1);
    world_exit(&world, 0, 5, 1, 0); /* it counts again */
    assert_int_equal(world.job.state, LIFE_DELETION_REQUESTED);
    world_release(&world);
}

static void surplus_tasks_that_wait_get_no_place(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(8));
    world.policy.is_gang = false;
    world_begin(&world);
    world_step(&world, (struct job_event){.kind = JOB_EVENT_PLACED,
                                          .tasks = &(struct task_ref){0, 0},
                                          .task_count = 1});
    world_step(&world,
               (struct job_event){.kind = JOB_EVENT_SCALE, .scale = {.instances = 2}, .slice = 2});
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 1);
    assert_int_equal(world.job.roles[0].count, 6);
    assert_false(job_task_is_waiting(&world.job, &world.policy, (struct task_ref){0, 5}));
    world_simple(&world, JOB_EVENT_STOP);
    assert_int_equal(world.job.waiting, 0);
    assert_false(job_goes_on(&world.job));
    world_release(&world);
}

static void it_is_stopped_while_it_grows(void **state)
{
    (void)state;
    struct job_world world;
    grow_begin(&world, 6);
    world_simple(&world, JOB_EVENT_STOP);
    assert_int_equal(world_count(&world, JOB_ACTION_UNQUEUE), 1);
    assert_int_equal(world.job.waiting, 0);
    assert_false(job_goes_on(&world.job));
    assert_int_equal(world.job.roles[0].count, 1); /* the others are nowhere */
    world_exit(&world, 0, 0, 143, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(surplus_tasks),
    cmocka_unit_test(all_roles_together),
    cmocka_unit_test(a_large_table_is_made_over_several_steps),
    cmocka_unit_test(a_place_comes_before_the_entry),
    cmocka_unit_test(it_is_scaled_while_it_grows),
    cmocka_unit_test(it_is_stopped_while_it_grows),
    cmocka_unit_test(surplus_tasks_are_told_over_several_steps),
    cmocka_unit_test(a_surplus_task_is_not_held),
    cmocka_unit_test(what_has_not_been_told_is_wanted_again),
    cmocka_unit_test(surplus_tasks_that_wait_get_no_place),
};
UNIT_FILE(tests, NULL, NULL);
