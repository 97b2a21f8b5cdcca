/* Which attempt of a job has passed a barrier is kept, for each kind of barrier, until the job
 * goes. */
#include "unit.h"
#include "world.h"

static int64_t passed(struct world *world, uint32_t job, enum barrier_kind kind)
{
    int64_t attempt = -2;
    assert_int_equal(
        store_barrier_passed(world->reader, (struct job_id){job}, kind, &attempt, &world->err), 0);
    return attempt;
}

static struct store_change pass(uint32_t job, enum barrier_kind kind, uint32_t attempt)
{
    return (struct store_change){
        .kind = CHANGE_BARRIER,
        .barrier = {.job = {job}, .attempt = attempt, .kind = kind},
    };
}

static void the_last_attempt_that_passed_is_kept(void **state)
{
    struct world *world = *state;

    submit(world, 1, "alice", "train");
    submit(world, 2, "alice", "other");
    assert_int_equal(passed(world, 1, BARRIER_START), -1);
    change(world, pass(1, BARRIER_START, 0), 0);
    assert_int_equal(passed(world, 1, BARRIER_START), 0);
    assert_int_equal(passed(world, 1, BARRIER_SSH), -1);
    assert_int_equal(passed(world, 2, BARRIER_START), -1);
    change(world, pass(1, BARRIER_START, 3), 0);
    change(world, pass(1, BARRIER_SSH, 2), 0);
    world_close(world); /* and after a restart */
    world_open(world);
    assert_int_equal(passed(world, 1, BARRIER_START), 3);
    assert_int_equal(passed(world, 1, BARRIER_SSH), 2);
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(passed(world, 1, BARRIER_START), -1);
    assert_int_equal(passed(world, 1, BARRIER_SSH), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_last_attempt_that_passed_is_kept, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
