/* Roles grow and shrink while the job runs. */
#include "job_world.h"
#include "unit.h"

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
    for (uint16_t i = 0; i < 4; i++)
        world_exit(&world, 0, i, 143, 0);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(surplus_tasks),
};
UNIT_FILE(tests, NULL, NULL);
