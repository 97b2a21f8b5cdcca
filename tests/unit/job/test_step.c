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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stories_say_why),
};
UNIT_FILE(tests, NULL, NULL);
