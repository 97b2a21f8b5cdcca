/* What a round itself has done counts for what is asked later in it.
 *
 * Covers: src/server/admission.c */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include "base/err.h"

static void a_job_deleted_in_a_round_is_not_started_in_it(void **state)
{
    struct world *world = *state;
    struct job_id job = stopped_job(world, "a");
    struct wait first, deletion, start, again, other;

    round_begin(world, &first);
    ask_act(world, &deletion, SERVICE_DELETE, job);
    ask_act(world, &start, SERVICE_START, job);
    ask_act(world, &again, SERVICE_DELETE, job);
    ask_submit(world, &other, "b");
    round_end(&first);
    assert_int_equal(wait_for(&deletion), 0);
    assert_int_equal(wait_for(&start), ERR_NOT_FOUND);
    assert_int_equal(wait_for(&again), ERR_NOT_FOUND);
    assert_int_equal(wait_for(&other), 0);
    assert_int_equal(metric(world, "skep_store_commit_failures_total"), 0);
    /* what a round has deleted says nothing about the next */
    job = stopped_job(world, "c");
    assert_int_equal(act(world, SERVICE_START, job), 0);
}

/* The name is free for whoever asks after the deletion, and for nobody before it. */
static void the_name_of_a_job_deleted_in_a_round_is_given_in_it(void **state)
{
    struct world *world = *state;
    struct job_id job = stopped_job(world, "a");
    struct wait first, early, deletion, late, other;

    round_begin(world, &first);
    ask_submit(world, &early, "a");
    ask_act(world, &deletion, SERVICE_DELETE, job);
    ask_submit(world, &late, "a");
    ask_submit(world, &other, "a");
    round_end(&first);
    assert_int_equal(wait_for(&early), ERR_CONFLICT);
    assert_int_equal(wait_for(&deletion), 0);
    assert_int_equal(wait_for(&late), 0);
    assert_int_equal(wait_for(&other), ERR_CONFLICT);
    assert_true(late.answer.job.v > job.v);
    wait_until_tasks_run(world, late.answer.job);
}

/* Its row still says that it waits when the start is taken. */
static void a_job_stopped_in_a_round_is_started_in_it(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct wait first, stop, start, other, deletion, gone;

    world_stop(world);
    world->engine = "nodes: 1, cpu: 2, runMilliseconds: 600000";
    world_start(world);
    running_job(world, "fills");
    assert_int_equal(submit(world, job_text(world, "waits", ""), &job), 0);
    round_begin(world, &first);
    ask_act(world, &stop, SERVICE_STOP, job);
    ask_act(world, &start, SERVICE_START, job);
    ask_submit(world, &other, "b");
    round_end(&first);
    assert_int_equal(wait_for(&stop), 0);
    assert_int_equal(wait_for(&start), 0);
    assert_int_equal(wait_for(&other), 0);
    assert_int_equal(shown(world, job), PUBLIC_WAITING);

    round_begin(world, &first);
    ask_act(world, &stop, SERVICE_STOP, job);
    ask_act(world, &deletion, SERVICE_DELETE, job);
    ask_act(world, &gone, SERVICE_START, job);
    round_end(&first);
    assert_int_equal(wait_for(&stop), 0);
    assert_int_equal(wait_for(&deletion), 0);
    assert_int_equal(wait_for(&gone), ERR_NOT_FOUND);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(a_job_deleted_in_a_round_is_not_started_in_it),
    ROUNDS(the_name_of_a_job_deleted_in_a_round_is_given_in_it),
    ROUNDS(a_job_stopped_in_a_round_is_started_in_it),
};
UNIT_FILE(tests, world_begin, NULL);
