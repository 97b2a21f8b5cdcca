/* A commit is stored whole or not at all. */
#include "unit.h"
#include "world.h"

#include <string.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/output.h"
#include "store/read.h"

static void a_failing_commit_stores_nothing(void **state)
{
    struct world *world = *state;
    struct job_record never = job_of(9, "alice", "never");
    struct job_id job;

    add_submitted(world, 1, "alice", "train");
    add_job(world, never); /* was never stored: a defect, and the whole batch is refused */
    assert_int_equal(commit(world, NULL, 0), ERR_INTERNAL);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("train"), &job, &world->err),
                     ERR_NOT_FOUND);
    submit(world, 1, "alice", "train");
    /* a new job of a number that is taken: the record's fault as well, not the disk's */
    add_submitted(world, 1, "alice", "again");
    assert_int_equal(commit(world, NULL, 0), ERR_INTERNAL);
    assert_non_null(strstr(world->err.text, "takes no such row"));
    submit(world, 2, "alice", "other");
}

static bool has_job(struct world *world, const char *name)
{
    struct job_id job;

    return store_job_find(world->store, TEXT("alice"), text_of(name), &job, &world->err) == 0;
}

/* What becomes of the next commit. */
static void next_commit(struct world *world, int code, bool is_stored)
{
    memory_script(world->memory, &(struct memory_commit){code, is_stored}, 1);
}

static int submit_with_attempt(struct world *world, uint32_t id, const char *name, uint64_t attempt)
{
    add_submitted(world, id, "alice", name);
    add_task(world, task_of(id, 0, 0, attempt));
    return commit(world, NULL, 0);
}

static void assert_numbers(struct world *world, uint32_t last_job, uint64_t last_attempt)
{
    struct job_id job;
    struct attempt_id attempt;

    store_numbers(world->store, &job, &attempt);
    assert_int_equal(job.v, last_job);
    assert_int_equal(attempt.v, last_attempt);
}

static void a_refused_commit_is_not_there_and_can_be_tried_again(void **state)
{
    static const int codes[] = {ERR_UNAVAILABLE, ERR_BUSY, ERR_IO, ERR_CORRUPT};
    struct world *world = *state;
    struct store_counts counts;

    assert_int_equal(submit_with_attempt(world, 1, "one", 70), 0);
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        next_commit(world, codes[i], false);
        assert_int_equal(submit_with_attempt(world, 2, "two", 77), codes[i]);
        assert_false(has_job(world, "two"));
        assert_numbers(world, 1, 70);
    }
    assert_int_equal(submit_with_attempt(world, 2, "other", 77), 0);
    assert_true(has_job(world, "other") && !has_job(world, "two"));
    assert_numbers(world, 2, 77);
    store_count(world->store, &counts);
    assert_int_equal(counts.commits, 2);
    assert_int_equal(counts.commit_failures, COUNT_OF(codes));
}

/* The next commit asks first whether it was stored. */
static void a_commit_whose_answer_was_lost_is_found(void **state)
{
    struct world *world = *state;

    assert_int_equal(submit_with_attempt(world, 1, "one", 70), 0);
    next_commit(world, ERR_UNAVAILABLE, true);
    assert_int_equal(submit_with_attempt(world, 2, "two", 77), ERR_UNAVAILABLE);
    assert_false(has_job(world, "two")); /* nobody knows yet */
    assert_numbers(world, 1, 70);
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {"k", TEXT("v")}}, 0);
    assert_true(has_job(world, "one") && has_job(world, "two"));
    assert_numbers(world, 2, 77);
    /* once it is known, nothing is loaded again: this one fails for good */
    next_commit(world, ERR_IO, false);
    assert_int_equal(submit_with_attempt(world, 3, "three", 78), ERR_IO);
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {"k", TEXT("w")}}, 0);
    assert_false(has_job(world, "three"));
    assert_numbers(world, 2, 77);
    world_close(world);
    world_open(world);
    assert_true(has_job(world, "one") && has_job(world, "two") && !has_job(world, "three"));
}

#define WORLD(test)     cmocka_unit_test_setup_teardown(test, setup, teardown)
#define IN_MEMORY(test) cmocka_unit_test_setup_teardown(test, setup_in_memory, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_failing_commit_stores_nothing),
    IN_MEMORY(a_refused_commit_is_not_there_and_can_be_tried_again),
    IN_MEMORY(a_commit_whose_answer_was_lost_is_found),
};
UNIT_FILE(tests, NULL, NULL);
