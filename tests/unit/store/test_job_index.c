/* The index of all jobs in memory: many come and go, and it forgets its dead. */
#include "lists.h"
#include "unit.h"
#include "world.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/output.h"
#include "store/job_index.h"
#include "store/job_index_row.h"
#include "store/read.h"
#include "store/store.h"

static void many_jobs_come_and_go(void **state)
{
    struct world *world = *state;
    struct job_record job;
    struct job_id found;

    /* enough to make the index forget its dead */
    for (uint32_t i = 1; i <= 9000; i++) {
        char *name = arena_format(&world->output.arena, "j%u", i);
        job = job_of(i, i % 2 ? "alice" : "bob", name);
        job.submission = submission_of(world);
        job.state = LIFE_COMPLETED;
        add_job(world, job);
    }
    assert_int_equal(commit(world, NULL, 0), 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{8999}, "kept"}}, 0);
    for (uint32_t i = 1; i <= 8000; i++)
        add_deleted(world, i);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(list(world, (struct job_filter){0}, NULL), 1000);
    assert_int_equal(
        store_job_find(world->store, TEXT("alice"), TEXT("j8999"), &found, &world->err), 0);
    assert_int_equal(found.v, 8999);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("j999"), &found, &world->err),
                     ERR_NOT_FOUND);
    struct text kept = TEXT("kept"), bob = TEXT("bob");
    assert_int_equal(list(world, (struct job_filter){.tags = &kept, .tag_count = 1}, NULL), 1);
    assert_int_equal(list(world, (struct job_filter){.users = &bob, .user_count = 1}, NULL), 500);
    /* a deleted job's tags do not stay: no job has that number again, and nothing would end them */
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{8001}, "gone"}}, 0);
    add_deleted(world, 8001);
    assert_int_equal(commit(world, NULL, 0), 0);
    while (store_deletions(world->store) > 0)
        change(world, (struct store_change){.kind = CHANGE_DELETIONS}, 0);
    assert_int_equal(world_sql(world, "INSERT INTO tags (job, name) VALUES (8001, 'gone')"), 0);
    world_sql(world, "DELETE FROM tags WHERE job = 8001");
    submit(world, 9001, "bob", "new");
    assert_int_equal(list(world, (struct job_filter){.users = &bob, .user_count = 1}, NULL), 501);
}

/* Users choose names: no table may be without a seed that they do not know. */
static void every_table_has_the_seed(void **state)
{
    enum { SEED = 7, OTHER = 8 };
    struct job_index *jobs = job_index_new(SEED), *from = job_index_new(OTHER);
    (void)state;
    job_index_take(jobs, from); /* as when it is read again */
    for (int i = 0; i < 2; i++) {
        const struct job_index *index = i ? from : jobs;
        const uint64_t seed = i ? SEED : OTHER;
        assert_true(index->seed == seed && index->names.seed == seed);
        assert_true(index->users.map.seed == seed && index->virtual_clusters.map.seed == seed);
        assert_true(index->phrases.map.seed == seed && index->tags.map.seed == seed);
    }
    job_index_free(jobs);
    job_index_free(from);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(many_jobs_come_and_go),
    cmocka_unit_test(every_table_has_the_seed),
};
UNIT_FILE(tests, NULL, NULL);
