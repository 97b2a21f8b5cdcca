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

static bool is_warning(const struct job_world *world, const char *reason)
{
    for (size_t i = 0; i < world->out.count; i++)
        if (world->out.items[i].kind == JOB_ACTION_STORY &&
            strcmp(world->out.items[i].reason, reason) == 0)
            return world->out.items[i].is_warning;
    fail_msg("there is no story of %s", reason);
    return false;
}

/* All have succeeded; one is enough; one has failed. */
static void only_failures_are_warnings(void **state)
{
    (void)state;
    for (int end = 0; end < 3; end++) {
        struct job_world world;
        world_init(&world, ROLES(2));
        if (end == 1)
            world.roles[0].min_succeeded = 1;
        world_begin(&world);
        world_run_all(&world);
        if (end == 0)
            world_exit(&world, 0, 1, 0, 0);
        world_exit(&world, 0, 0, end == 2 ? 1 : 0, 0);
        assert_int_equal(is_warning(&world, end == 2 ? "AttemptFailed" : "AttemptSucceeded"),
                         end == 2);
        assert_int_equal(is_warning(&world, end == 2 ? "TaskFailed" : "TaskSucceeded"), end == 2);
        world_release(&world);
    }
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
    cmocka_unit_test(only_failures_are_warnings),
    cmocka_unit_test(times_are_those_of_the_states),
};
UNIT_FILE(tests, NULL, NULL);
