/* The core: submissions, places, ends, retries, stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "job/job.h"
#include "world.h"

static void test_one_job(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t job = world_submit_simple(&world, "train", 2, 1, 2);
    assert_int_equal(job, 1);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    const struct task_record *task = world_task(&world, job, 0, 1);
    assert_non_null(task);
    assert_int_equal(task->state, LIFE_CREATION_REQUESTED);
    assert_string_equal(task->node, "n1");
    assert_int_equal(task->gpu_count, 2);
    assert_int_equal(task->gpus[0], 2);
    assert_int_equal(task->port_count, 2);
    assert_int_equal(task->ports[0].first, 15002);
    const struct job_record *record = world_job(&world, job);
    assert_int_equal(record->state, LIFE_CREATION_REQUESTED);
    assert_non_null(record->submission);
    assert_true(world.output.records.items[0].kind == RECORD_JOB);

    world_run(&world, 1);
    assert_int_equal(world_job(&world, job)->state, LIFE_RUNNING);
    assert_true(world_has_story(&world, "Started", "worker-0 started on node n1 with GPUs 0,1"));
    world_run(&world, 2);
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_task(&world, job, 0, 0)->state, LIFE_COMPLETED);
    world_exit(&world, 2, 0, 0);
    record = world_job(&world, job);
    assert_int_equal(record->state, LIFE_COMPLETED);
    assert_true(record->completion.is_success);
    struct core_counts counts;
    core_count(world.core, &counts);
    assert_int_equal(counts.jobs_live, 0);
    assert_int_equal(counts.gpus_used, 0);
    assert_int_equal(counts.gpus_total, 4);
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
