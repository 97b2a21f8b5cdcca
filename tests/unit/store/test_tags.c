/* Names and tags of jobs; both go with the job. */
#include "large_job.h"
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/output.h"
#include "store/migrations.h"
#include "store/read.h"
#include "store/store.h"

/* Every job is found by its names, of whatever length they may have; longer ones find nothing. */
static void find_by_the_longest_names(struct world *world)
{
    enum { NAME_MAX_BYTES = 255 };
    char user[1000], name[1000];
    struct job_id job;

    memset(user, 'u', sizeof user);
    memset(name, 'n', sizeof name);
    user[STORE_USER_NAME_MAX] = name[NAME_MAX_BYTES] = '\0';
    submit(world, 70, user, "short");
    submit(world, 71, "alice", name);
    submit(world, 72, user, name);
    assert_int_equal(store_job_find(world->store, text_of(user), TEXT("short"), &job, NULL), 0);
    assert_int_equal(job.v, 70);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), text_of(name), &job, NULL), 0);
    assert_int_equal(job.v, 71);
    assert_int_equal(store_job_find(world->store, text_of(user), text_of(name), &job, NULL), 0);
    assert_int_equal(job.v, 72);
    user[STORE_USER_NAME_MAX] = 'u';
    name[NAME_MAX_BYTES] = 'n';
    const struct text user_more = {user, sizeof user}, name_more = {name, sizeof name};
    assert_int_equal(store_job_find(world->store, user_more, TEXT("short"), &job, NULL),
                     ERR_NOT_FOUND);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), name_more, &job, NULL),
                     ERR_NOT_FOUND);
}

static void names_tags_and_purges(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct store_job row;
    char longer[STORE_TAG_MAX + 2];
    struct job_record final = job_of(1, "alice", "train");
    struct job_id ended[4];

    submit(world, 1, "alice", "train");
    submit(world, 2, "bob", "train");
    assert_int_equal(store_job_find(world->store, TEXT("bob"), TEXT("train"), &job, &world->err),
                     0);
    assert_int_equal(job.v, 2);
    assert_int_equal(store_job_find(world->store, TEXT("bob~tr"), TEXT("ain"), &job, &world->err),
                     ERR_NOT_FOUND);
    find_by_the_longest_names(world);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, "b"}}, 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, "a"}}, 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, "a"}}, 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{9}, "a"}}, ERR_NOT_FOUND);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, "a,b"}}, ERR_INVALID);
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, longer}}, ERR_INVALID);
    for (int i = 0; i < STORE_TAGS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "tag%d", i);
        change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{2}, name}}, 0);
    }
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{2}, "more"}}, ERR_TOO_BIG);
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{2}, "tag3"}}, 0);
    world_close(world);
    world_open(world);
    assert_int_equal(
        store_job_summary(world->store, (struct job_id){1}, &world->arena, &row, &world->err), 0);
    assert_int_equal(row.tag_count, 2);
    assert_string_equal(row.tags[0], "a");
    assert_int_equal(
        store_job_read(world->reader, (struct job_id){1}, &world->arena, &row, &world->err), 0);
    assert_int_equal(row.tag_count, 2);
    assert_string_equal(row.tags[1], "b");
    change(world, (struct store_change){.kind = CHANGE_TAG_REMOVE, .tag = {{1}, "b"}}, 0);
    change(world, (struct store_change){.kind = CHANGE_TAG_REMOVE, .tag = {{1}, "b"}},
           ERR_NOT_FOUND);
    final.state = LIFE_COMPLETED;
    final.completed_ms = 50;
    add_job(world, final);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_jobs_final(world->store, 50, ended, 4), 0);
    assert_int_equal(store_jobs_final(world->store, 51, ended, 4), 1);
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("train"), &job, &world->err),
                     ERR_NOT_FOUND);
    assert_int_equal(
        store_job_read(world->reader, (struct job_id){1}, &world->arena, &row, &world->err),
        ERR_NOT_FOUND);
}

/* What is asked for in the round in which the job is deleted comes after the deletion. */
static void a_job_that_its_round_deletes_gets_no_tag(void **state)
{
    struct world *world = *state;
    struct store_change changes[2];

    submit(world, 1, "alice", "small");
    submit(world, 2, "alice", "stays");
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, "old"}}, 0);
    changes[0] = (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{1}, "new"}};
    changes[1] = (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{2}, "new"}};
    add_deleted(world, 1);
    assert_int_equal(commit(world, changes, COUNT_OF(changes)), 0);
    assert_int_equal(changes[0].code, ERR_NOT_FOUND);
    assert_int_equal(changes[1].code, 0);
    assert_int_equal(number_read(world, "SELECT count(*) FROM deleted_jobs"), 0);
    assert_int_equal(number_read(world, "SELECT count(*) FROM tags WHERE job = 1"), 0);
    assert_int_equal(number_read(world, "SELECT count(*) FROM tags WHERE job = 2"), 1);
}

static const char *migration_of(const struct migration *migrations, unsigned count,
                                const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (strstr(migrations[i].name, name))
            return migrations[i].sql;
    return "";
}

/* A version before had left some, of a job that was tagged in the round in which it was deleted. */
static void tags_of_no_job_go_with_the_next_version(void **state)
{
    struct world *world = *state;
    const char *sql =
        migration_of(sqlite_migrations, sqlite_migration_count, "tags-of-deleted-jobs");

#ifdef HAS_POSTGRES
    if (world->address[0])
        sql = migration_of(postgres_migrations, postgres_migration_count, "tags-of-deleted-jobs");
#endif
    submit(world, 2, "alice", "stays");
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{2}, "new"}}, 0);
    world_close(world);
    assert_int_equal(world_sql(world, "INSERT INTO tags (job, name) VALUES (1, 'new'), (3, 'new')"),
                     0);
    assert_int_equal(world_sql(world, sql), 0);
    world_open(world);
    assert_int_equal(number_read(world, "SELECT count(*) FROM tags"), 1);
    assert_int_equal(number_read(world, "SELECT count(*) FROM tags WHERE job = 2"), 1);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(names_tags_and_purges),
    WORLD(a_job_that_its_round_deletes_gets_no_tag),
    WORLD(tags_of_no_job_go_with_the_next_version),
};
UNIT_FILE(tests, NULL, NULL);
