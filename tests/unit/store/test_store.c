/* A store is opened again: what was committed is loaded, what cannot be right is refused.
 *
 * Covers: src/store/counters.c, src/store/directory.c, src/store/nodes.c, src/store/noun.c,
 * src/store/sql.c, src/store/sqlite/database.c */
#include "unit.h"
#include "world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/output.h"
#include "core/plan.h"
#include "store/migrations.h"
#include "store/read.h"
#include "store/store.h"
#include "sys/file.h"

static int seen_nodes, seen_clusters, seen_jobs, seen_tasks;

static int see_counters(void *context, struct job_id last_job, struct attempt_id last_attempt,
                        struct err *err)
{
    (void)context;
    (void)err;
    assert_int_equal(last_job.v, 2); /* numbers are never used again */
    assert_int_equal(last_attempt.v, 78);
    assert_int_equal(seen_nodes, 0); /* before all else */
    return 0;
}

static int see_node(void *context, const struct node_record *node, struct err *err)
{
    (void)context;
    (void)err;
    assert_string_equal(node->facts.name, "n1");
    assert_int_equal(node->facts.gpu_numa[1], 1);
    assert_null(node->facts.gpu_switch);
    assert_true(node->closing.is_closed && node->is_cordoned && !node->is_cordoned_for_blame);
    assert_string_equal(node->closing.by, "alice");
    assert_string_equal(node->closing.why, "a disk is replaced");
    assert_int_equal(node->closing.at_ms, 1234567890123);
    seen_nodes++;
    return 0;
}

static int see_cluster(void *context, const struct cluster_record *cluster, struct err *err)
{
    (void)context;
    (void)err;
    assert_string_equal(cluster->name, "vc1");
    assert_true(cluster->closing.is_closed);
    assert_string_equal(cluster->closing.by, "alice");
    assert_string_equal(cluster->closing.why, "a course");
    assert_int_equal(cluster->closing.at_ms, 1234567890124);
    seen_clusters++;
    return 0;
}

static int see_job(void *context, const struct job_record *job, struct text plan, struct err *err)
{
    struct plan *decoded = plan_decode(plan, err);
    (void)context;
    assert_non_null(decoded);
    assert_true(text_equal(job->extra, TEXT("extra\0bytes")));
    plan_free(decoded);
    seen_jobs++;
    return 0;
}

static int see_task(void *context, const struct task_record *task, struct err *err)
{
    (void)context;
    (void)err;
    assert_int_equal(task->job.v, 1);
    seen_tasks++;
    return 0;
}

/* Whose records are refused is found without storing any. */
static void the_job_that_is_refused_is_named(void **state)
{
    struct world *world = *state;
    struct job_id job;

    submit(world, 1, "alice", "train");
    assert_int_equal(commit(world, NULL, 0), 0);
    add_task(world, task_of(1, 0, 1, 77));
    assert_int_equal(store_refused_job(world->store, &world->output, &job, &world->err),
                     ERR_NOT_FOUND);
    add_job(world, job_of(5, "alice", "unknown")); /* has no row that could change */
    assert_int_equal(store_refused_job(world->store, &world->output, &job, &world->err), 0);
    assert_int_equal(job.v, 5);
    assert_true(strlen(world->err.text) > 0);
    assert_int_equal(commit(world, NULL, 0), ERR_INTERNAL);
    assert_int_equal(commit(world, NULL, 0), 0); /* nothing is left open */
}

static void a_restart_loads_what_lives(void **state)
{
    struct world *world = *state;
    static const uint16_t numa[] = {0, 1};
    struct job_record final = job_of(2, "alice", "old");
    struct store_restore restore = {NULL, see_counters, see_node, see_cluster, see_job, see_task};
    struct job_id last_job;
    struct attempt_id last_attempt;

    submit(world, 1, "alice", "train");
    submit(world, 2, "alice", "old");
    add_task(world, task_of(1, 1, 1, 77));
    add_task(world, task_of(2, 1, 1, 78));
    final.state = LIFE_COMPLETED;
    add_job(world, final);
    *ARRAY_ADD(&world->output.records) =
        (struct record){.kind = RECORD_NODE,
                        .node = {.id = {0},
                                 .facts = {.name = "n1",
                                           .address = "a",
                                           .gpu_type = "V100",
                                           .gpu_count = 2,
                                           .reason = "",
                                           .gpu_numa = numa},
                                 .closing = {true, "alice", "a disk is replaced", 1234567890123},
                                 .blame = 1.5}};
    *ARRAY_ADD(&world->output.records) = (struct record){
        .kind = RECORD_CLUSTER, .cluster = {"vc1", {true, "alice", "a course", 1234567890124}}};
    assert_int_equal(commit(world, NULL, 0), 0);
    add_deleted(world, 2);
    assert_int_equal(commit(world, NULL, 0), 0);
    world_close(world);
    world_open(world);
    assert_int_equal(store_restore_counters(world->reader, &last_job, &last_attempt, &world->err),
                     0);
    assert_int_equal(last_job.v, 2); /* numbers are never used again */
    assert_int_equal(last_attempt.v, 78);
    assert_int_equal(store_restore(world->reader, &restore, &world->err), 0);
    assert_int_equal(seen_nodes, 1);
    assert_int_equal(seen_clusters, 1);
    assert_int_equal(seen_jobs, 1);
    assert_int_equal(seen_tasks, 1);
}

static void a_second_process_is_refused(void **state)
{
    struct world *world = *state;
    pid_t child;
    int status;

    if (world->memory)
        skip(); /* it has no other process */
    child = fork();
    if (child == 0) {
        struct store *store;
        int code = world_try(world, &store);
        char number[20];
        snprintf(number, sizeof number, "process %ld", (long)getppid());
        _exit(code == ERR_CONFLICT && strstr(world->err.text, number) ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void strange_databases_are_refused(void **state)
{
    struct world *world = *state;
    char path[100];
    struct store *store;

    SQLITE_ONLY(world);
    world_close(world);
    snprintf(path, sizeof path, "%s/skep.db", world->directory);
    assert_int_equal(world_sql(world, "PRAGMA user_version = 999"), 0);
    assert_int_equal(store_open(world->directory, &store, &world->err), ERR_UNSUPPORTED);
    assert_non_null(strstr(world->err.text, "newer"));
    unlink(path);
    assert_int_equal(world_sql(world, "CREATE TABLE t (a)"), 0);
    assert_int_equal(store_open(world->directory, &store, &world->err), ERR_CORRUPT);
    assert_non_null(strstr(world->err.text, "another program"));
    assert_int_equal(
        file_write(path, TEXT("this is no database, but long enough to be one"), 0600, &world->err),
        0);
    assert_int_equal(store_open(world->directory, &store, &world->err), ERR_CORRUPT);
    assert_non_null(strstr(world->err.text, "skep.db"));
    unlink(path);
    assert_int_equal(store_open("/nonexistent/skep", &store, &world->err), ERR_IO);
    world_open(world);
}

/* A database that was just made is of the newest version: no migration is run on it again. */
static void the_newest_version_is_written(void **state)
{
    struct world *world = *state;
    char path[100];
    sqlite3 *db;
    sqlite3_stmt *stmt;

    SQLITE_ONLY(world);
    snprintf(path, sizeof path, "%s/skep.db", world->directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int64(stmt, 0), sqlite_migration_count);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(the_job_that_is_refused_is_named), WORLD(a_restart_loads_what_lives),
    WORLD(a_second_process_is_refused),      WORLD(strange_databases_are_refused),
    WORLD(the_newest_version_is_written),
};
UNIT_FILE(tests, NULL, NULL);
