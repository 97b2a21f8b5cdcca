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

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_failing_commit_stores_nothing),
};
UNIT_FILE(tests, NULL, NULL);
