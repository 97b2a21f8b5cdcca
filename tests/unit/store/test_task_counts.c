/* Counts of a job's tasks are kept until the job changes. */
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "store/read.h"
#include "store/store.h"

static struct store_task_counts counts_of(struct world *world, unsigned job)
{
    struct store_task_counts counts;
    assert_int_equal(
        store_task_states(world->reader, (struct job_id){job}, &world->arena, &counts, &world->err),
        0);
    return counts;
}

static void counts_follow_every_change_of_a_task(void **state)
{
    struct world *world = *state;
    submit(world, 1, "alice", "train");
    assert_int_equal(commit(world, NULL, 0), 0);
    for (uint16_t i = 0; i < 3; i++) {
        assert_int_equal(counts_of(world, 1).roles[1].states[PUBLIC_RUNNING], i);
        assert_int_equal(counts_of(world, 1).roles[1].states[PUBLIC_WAITING], 3 - i);
        add_task(world, task_of(1, 1, i, 5u + i));
        assert_int_equal(commit(world, NULL, 0), 0);
    }
    const struct store_task_counts counts = counts_of(world, 1);
    assert_int_equal(counts.roles[1].states[PUBLIC_RUNNING], 3);
    assert_int_equal(counts.roles[1].each.at[2], PUBLIC_RUNNING);
}

/* Two jobs whose counts are kept at the same place. */
static void one_job_is_not_taken_for_another(void **state)
{
    struct world *world = *state;
    submit(world, 1, "alice", "one");
    submit(world, 257, "alice", "two");
    add_task(world, task_of(257, 1, 0, 5));
    assert_int_equal(commit(world, NULL, 0), 0);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(counts_of(world, 1).roles[1].states[PUBLIC_RUNNING], 0);
        assert_int_equal(counts_of(world, 257).roles[1].states[PUBLIC_RUNNING], 1);
    }
}

static void a_job_that_is_deleted_has_no_counts(void **state)
{
    struct world *world = *state;
    struct store_task_counts counts;
    submit(world, 1, "alice", "train");
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(counts_of(world, 1).count, 2);
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(
        store_task_states(world->reader, (struct job_id){1}, &world->arena, &counts, &world->err),
        ERR_NOT_FOUND);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(counts_follow_every_change_of_a_task),
    WORLD(one_job_is_not_taken_for_another),
    WORLD(a_job_that_is_deleted_has_no_counts),
};
UNIT_FILE(tests, NULL, NULL);
