/* The story of a job says why. */
#include "job_world.h"
#include "unit.h"

static void stories_say_why(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(1));
    world.policy.retry = (struct retry_policy){.max = -2};
    world_begin(&world);
    world_run_all(&world);
    struct completion completion = completion_of(231, "the source code has an error");
    strcpy(completion.phrase, "ContainerSyntaxError");
    completion.exit_code = 1;
    completion.attributes = EXIT_PERMANENT | EXIT_NEVER_RETRIED;
    world_step(&world,
               (struct job_event){.kind = JOB_EVENT_TASK_EXITED, .completion = &completion});
    assert_string_equal(world_story(&world, "TaskFailed"),
                        "a-0 exited 1 (231 ContainerSyntaxError): the source code has an error, "
                        "not retried");
    assert_string_equal(world_story(&world, "Failed"),
                        "ended with 231 (ContainerSyntaxError): the source code has an error");
    assert_true(world.job.is_inherited);
    world_release(&world);
}

/* Each time of a task is the one at which it came into that state. */
static void times_are_those_of_the_states(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(2)); /* the other goes on */
    world_begin(&world);
    world_run_all(&world);
    const struct job_task *task = world_task(&world, 0, 0);
    assert_in_range(task->launched_ms, 1, world.now_ms);
    assert_int_equal(task->attempt_launched_ms, task->launched_ms);
    assert_int_equal(task->attempt_completed_ms, 0);
    assert_int_equal(task->completed_ms, 0);
    world.now_ms += 1000;
    world_exit(&world, 0, 0, 0, 0);
    task = world_task(&world, 0, 0);
    assert_int_equal(task->attempt_completed_ms, world.now_ms);
    assert_int_equal(task->completed_ms, world.now_ms);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stories_say_why),
    cmocka_unit_test(times_are_those_of_the_states),
};
UNIT_FILE(tests, NULL, NULL);
