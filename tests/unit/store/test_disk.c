/* What has been acknowledged is on the disk; what a disk refuses changes nothing.
 *
 * Covers: src/store/commit.c, src/store/sqlite/connection.c, src/store/sqlite/database.c */
#include "disk.h"
#include "large_job.h"
#include "unit.h"
#include "world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/memory.h"
#include "store/read.h"
#include "store/store.h"
#include "sys/file.h"

static int setup_disk(void **state)
{
    disk_begin();
    return setup(state);
}

static void every_commit_is_synced_before_it_is_acknowledged(void **state)
{
    struct world *world = *state;
    uint64_t syncs = disk_count(DISK_LOG).syncs;

    for (uint32_t i = 1; i <= 20; i++) {
        char *name = arena_format(&world->output.arena, "j%u", i);
        submit(world, i, "alice", name);
        assert_true(disk_count(DISK_LOG).syncs > syncs);
        assert_int_equal(disk_count(DISK_LOG).unsynced, 0);
        syncs = disk_count(DISK_LOG).syncs;
    }
}

/* One that is larger than the log is allowed to grow before it is copied into the database. A page
 * that does not change is not written, so each value differs from the one before in each byte. */
static void commit_much(struct world *world, unsigned mebibytes)
{
    static unsigned char fill;
    char *bytes = mem_alloc(STORE_SETTING_MAX);
    struct text value = {bytes, STORE_SETTING_MAX};

    for (unsigned i = 0; i < mebibytes; i++) {
        char key[] = {(char)('a' + i % 4), '\0'};
        memset(bytes, ++fill, STORE_SETTING_MAX);
        change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {key, value}}, 0);
    }
    mem_free(bytes);
}

static void the_log_is_copied_by_another_thread(void **state)
{
    struct world *world = *state;
    uint64_t syncs = disk_count(DISK_DATABASE).syncs;

    disk_watch(DISK_DATABASE, pthread_self());
    commit_much(world, 6);
    assert_true(disk_await_syncs(DISK_DATABASE, syncs + 1));
    commit_much(world, 6);
    assert_int_equal(disk_watched(), 0); /* a commit never waits for a copy */
}

static void a_log_does_not_grow_for_ever(void **state)
{
    struct world *world = *state;
    struct store_counts counts;

    /* 128 MiB are committed, and between any two commits there is no moment for anybody else, but
     * for a copy after each 8 MiB */
    for (int i = 0; i < 16; i++) {
        uint64_t syncs = disk_count(DISK_DATABASE).syncs;
        commit_much(world, 8);
        assert_true(disk_await_syncs(DISK_DATABASE, syncs + 1));
    }
    store_count(world->store, &counts);
    assert_true(counts.wal_bytes < 100u << 20);
}

static void a_reader_that_keeps_its_snapshot_holds_no_commit(void **state)
{
    struct world *world = *state;
    char path[100];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/skep.db", world->directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT * FROM jobs", NULL, NULL, NULL), SQLITE_OK);
    disk_watch(DISK_DATABASE, pthread_self());
    commit_much(world, 80);
    assert_int_equal(disk_watched(), 0);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    commit_much(world, 1);
}

static void counters_read(struct world *world, uint32_t job, uint64_t attempt)
{
    struct job_id last_job;
    struct attempt_id last_attempt;

    assert_int_equal(store_restore_counters(world->reader, &last_job, &last_attempt, &world->err),
                     0);
    assert_int_equal(last_job.v, job);
    assert_int_equal(last_attempt.v, attempt);
}

static void a_failed_commit_uses_no_number(void **state)
{
    static const struct {
        enum disk_op op;
        int code, expected;
    } faults[] = {
        {DISK_WRITE, SQLITE_FULL, ERR_UNAVAILABLE}, {DISK_WRITE, SQLITE_IOERR_WRITE, ERR_IO},
        {DISK_SYNC, SQLITE_IOERR_FSYNC, ERR_IO},    {DISK_WRITE, SQLITE_READONLY, ERR_UNAVAILABLE},
        {DISK_WRITE, SQLITE_CORRUPT, ERR_CORRUPT},
    };
    struct world *world = *state;

    for (uint32_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char *name = arena_format(&world->output.arena, "j%u", i);
        struct store_counts before, after;
        store_count(world->store, &before);
        disk_fail(faults[i].op, DISK_LOG, 0, faults[i].code);
        add_submitted(world, 1000 + i, "alice", "never");
        add_task(world, task_of(1000 + i, 1, 1, 5000 + i));
        assert_int_equal(commit(world, NULL, 0), faults[i].expected);
        disk_heal();
        store_count(world->store, &after);
        assert_int_equal(after.commit_failures, before.commit_failures + 1);
        assert_int_equal(after.commits, before.commits);
        assert_int_equal(after.events, before.events);
        assert_int_equal(after.records, before.records);
        add_submitted(world, i + 1, "alice", name);
        add_task(world, task_of(i + 1, 1, 1, 100 + i));
        assert_int_equal(commit(world, NULL, 0), 0);
        counters_read(world, i + 1, 100 + i);
        store_count(world->store, &before);
        assert_int_equal(before.commits, after.commits + 1);
        assert_int_equal(before.events, after.events + 1);
        assert_int_equal(before.records, after.records + 2);
        world_close(world);
        world_open(world);
        counters_read(world, i + 1, 100 + i);
    }
}

static void a_disk_that_fails_in_the_middle_of_a_commit_stores_nothing(void **state)
{
    struct world *world = *state;
    struct job_id job;

    /* after so many writes of the commit; in the end it is whole */
    for (uint64_t after = 0;; after++) {
        int code;
        disk_fail(DISK_WRITE, DISK_LOG, after, SQLITE_FULL);
        add_submitted(world, 1, "alice", "train");
        add_task(world, task_of(1, 1, 1, 77));
        code = commit(world, NULL, 0);
        disk_heal();
        if (code == 0)
            break;
        assert_int_equal(code, ERR_UNAVAILABLE);
        assert_non_null(strstr(world->err.text, "full"));
        assert_int_equal(
            store_job_find(world->store, TEXT("alice"), TEXT("train"), &job, &world->err),
            ERR_NOT_FOUND);
        counters_read(world, 0, 0);
    }
    counters_read(world, 1, 77);
}

static void a_full_disk_takes_the_reserve(void **state)
{
    struct world *world = *state;
    struct store_counts counts;
    struct stat status;
    char path[100];

    snprintf(path, sizeof path, "%s/reserve", world->directory);
    assert_int_equal(stat(path, &status), 0);
    assert_in_range(status.st_size, 256 << 10, 8 << 20);
    assert_true(status.st_blocks * 512 >= status.st_size); /* it really takes the room */
    assert_false(store_is_short(world->store));
    disk_fill_while(path);
    submit(world, 1, "alice", "train");
    assert_int_not_equal(stat(path, &status), 0);
    assert_true(store_is_short(world->store));
    submit(world, 2, "alice", "other");
    counters_read(world, 2, 0);
    store_count(world->store, &counts);
    assert_int_equal(counts.commit_failures, 0);
    /* what was given up helps no more */
    disk_heal();
    disk_fail(DISK_WRITE, DISK_LOG, 0, SQLITE_FULL);
    add_submitted(world, 3, "alice", "third");
    assert_int_equal(commit(world, NULL, 0), ERR_UNAVAILABLE);
    counters_read(world, 2, 0);
    disk_heal();
    assert_false(store_make_room(world->store));
    assert_false(store_is_short(world->store));
    assert_int_equal(stat(path, &status), 0);
    world_close(world);
    world_open(world); /* it is found again */
    assert_false(store_is_short(world->store));
}

/* The reserve has gone, and the log has filled its room: that is used again and again. */
static void a_full_disk_uses_the_log_again(void **state)
{
    enum { JOBS = 150, LOG_BYTES = 256 << 10 };
    struct world *world = *state;
    struct store_counts counts;
    char path[100];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/reserve", world->directory);
    disk_fill_while(path);
    submit(world, 1, "alice", "j1");
    assert_true(store_is_short(world->store));
    disk_bound(DISK_LOG, LOG_BYTES);
    for (uint32_t i = 2; i <= JOBS; i++)
        submit(world, i, "alice", arena_format(&world->output.arena, "j%u", i));
    store_count(world->store, &counts);
    assert_int_equal(counts.commit_failures, 0);
    /* somebody reads what is old, and goes on: nobody waits for that */
    snprintf(path, sizeof path, "%s/skep.db", world->directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT * FROM jobs", NULL, NULL, NULL), SQLITE_OK);
    uint32_t last = JOBS;
    int code = 0;
    while (code == 0) {
        last++;
        add_submitted(world, last, "alice", arena_format(&world->output.arena, "j%u", last));
        code = commit(world, NULL, 0);
    }
    assert_int_equal(code, ERR_UNAVAILABLE);
    counters_read(world, last - 1, 0);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    submit(world, last, "alice", arena_format(&world->output.arena, "j%u", last));
    disk_heal();
    world_close(world);
    world_open(world);
    counters_read(world, last, 0);
}

/* So large a log that its checkpoints are under way as well; what is stored replaces what was. */
static void a_full_disk_uses_a_large_log_again(void **state)
{
    struct world *world = *state;
    struct store_counts counts;
    char path[100];

    commit_much(world, 4);
    snprintf(path, sizeof path, "%s/reserve", world->directory);
    disk_fill_while(path);
    submit(world, 1, "alice", "j1");
    assert_true(store_is_short(world->store));
    disk_bound(DISK_LOG, 6 << 20);
    commit_much(world, 80);
    store_count(world->store, &counts);
    assert_int_equal(counts.commit_failures, 0);
}

/* The database would have to grow as well: it is tried once, and again when something was stored.
 */
static void a_disk_that_is_full_to_the_last_page_refuses(void **state)
{
    struct world *world = *state;
    struct stat status;
    char path[100];
    uint32_t last = 1;

    snprintf(path, sizeof path, "%s/reserve", world->directory);
    disk_fill_while(path);
    submit(world, 1, "alice", "j1");
    snprintf(path, sizeof path, "%s/skep.db", world->directory);
    assert_int_equal(stat(path, &status), 0);
    disk_bound(DISK_LOG, 256 << 10);
    disk_bound(DISK_DATABASE, (uint64_t)status.st_size);
    for (int code = 0; code == 0;) {
        last++;
        add_submitted(world, last, "alice", arena_format(&world->output.arena, "j%u", last));
        code = commit(world, NULL, 0);
        assert_true(code == 0 || code == ERR_UNAVAILABLE);
    }
    disk_watch(DISK_DATABASE, pthread_self());
    for (int i = 0; i < 3; i++) {
        add_submitted(world, last, "alice", "again");
        assert_int_equal(commit(world, NULL, 0), ERR_UNAVAILABLE);
    }
    assert_int_equal(disk_watched(), 0);
    disk_heal();
    submit(world, last, "alice", "again");
    counters_read(world, last, 0);
}

static void a_piece_of_a_deletion_takes_no_reserve(void **state)
{
    struct world *world = *state;
    struct store_change piece = {.kind = CHANGE_DELETIONS};
    const struct store_batch batch = {.changes = &piece, .change_count = 1, .keeps_reserve = true};
    struct stat status;
    char path[100];
    int64_t left;

    snprintf(path, sizeof path, "%s/reserve", world->directory);
    large_job_store(world, 1, "large");
    large_job_store(world, 2, "other");
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    left = large_job_rows(world, 1);
    disk_fill_while(path);
    for (int i = 0; i < 3; i++)
        assert_int_equal(store_commit(world->store, &batch, &world->err), ERR_UNAVAILABLE);
    assert_false(store_is_short(world->store));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(store_deletions(world->store), 1);
    assert_int_equal(large_job_rows(world, 1), left);
    /* who deletes a job does take it, and then there is room for the pieces, too */
    add_deleted(world, 2);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_true(store_is_short(world->store));
    assert_int_equal(store_commit(world->store, &batch, &world->err), 0);
    assert_true(large_job_rows(world, 1) < left);
    deletions_finish(world);
    assert_int_equal(large_job_rows(world, 1) + large_job_rows(world, 2), 0);
}

/* --- the power fails --- */

struct power {
    const char *directory;
    _Atomic uint32_t acknowledged; /* the power may fail on the checkpoint's thread */
    uint32_t at_failure;
    struct buf mark;
};

/* The mark is written behind SQLite's back: at its best it has reached the disk at once. */
static void power_failed(void *context)
{
    struct power *power = context;
    char path[100];

    power->at_failure = power->acknowledged;
    snprintf(path, sizeof path, "%s/mark", power->directory);
    assert_int_equal(file_read(path, 1000, &power->mark, NULL), 0);
}

/* Whether the database that the failure left has every job up to `last`, and no other wholly or in
 * part beyond the one that was under way. */
static void check_survivors(struct world *world, uint32_t last)
{
    struct job_id last_job;
    struct attempt_id last_attempt;
    struct store_job row;

    assert_int_equal(store_check(world->store, &world->err), 0);
    assert_int_equal(store_restore_counters(world->reader, &last_job, &last_attempt, &world->err),
                     0);
    assert_in_range(last_job.v, last, last + 1);
    for (uint32_t i = 1; i <= last_job.v; i++)
        assert_int_equal(
            store_job_read(world->reader, (struct job_id){i}, &world->arena, &row, &world->err), 0);
    arena_clear(&world->arena);
}

static void power_try(struct world *world, uint64_t after, unsigned seed)
{
    struct world left = {.directory = "/tmp/test-store-left-XXXXXX"};
    static struct power power; /* the power may fail later, when the world ends */
    char remove[100], path[100];

    buf_release(&power.mark);
    power = (struct power){.directory = world->directory};
    disk_lose_power(after, seed, power_failed, &power);
    for (uint32_t i = 1; i <= 40 && !disk_has_lost_power(); i++) {
        char *name = arena_format(&world->output.arena, "j%u", i);
        if (i % 8 == 0)
            commit_much(world, 2);
        submit(world, i, "alice", name);
        power.acknowledged = i;
    }
    if (!disk_has_lost_power())
        return;
    assert_non_null(mkdtemp(left.directory));
    disk_restore(left.directory);
    snprintf(path, sizeof path, "%s/mark", left.directory);
    assert_int_equal(file_write(path, buf_as_text(&power.mark), 0600, NULL), 0);
    buf_release(&power.mark);
    arena_init(&left.arena);
    world_open(&left);
    check_survivors(&left, power.at_failure);
    world_close(&left);
    arena_release(&left.arena);
    snprintf(remove, sizeof remove, "rm -rf %s", left.directory);
    assert_int_equal(system(remove), 0);
}

static void a_power_failure_loses_nothing_that_was_acknowledged(void **state)
{
    unsigned seed = 20261121;

    (void)state;
    for (unsigned round = 0; round < 25; round++) {
        void *world;
        setup_disk(&world);
        print_message("round %u: seed %u\n", round, seed);
        power_try(world, (uint64_t)rand_r(&seed) % (round % 2 ? 400 : 4000), seed);
        assert_int_equal(teardown(&world), 0);
    }
}

/* A job is deleted, with pieces after that, until the power fails. */
static void power_try_deletion(struct world *world, uint64_t after, unsigned seed, bool *has_failed)
{
    struct world left = {.directory = "/tmp/test-store-left-XXXXXX"};
    static struct power power; /* the power may fail later, when the world ends */
    char remove[100], path[100];
    struct job_id job;
    int64_t all;

    buf_release(&power.mark);
    power = (struct power){.directory = world->directory};
    large_job_store(world, 1, "large");
    large_job_store(world, 2, "other");
    all = large_job_rows(world, 2);
    disk_lose_power(after, seed, power_failed, &power);
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    power.acknowledged = 1;
    while (!disk_has_lost_power() && store_deletions(world->store) > 0)
        change(world, (struct store_change){.kind = CHANGE_DELETIONS}, 0);
    *has_failed = disk_has_lost_power();
    if (!*has_failed)
        return;
    assert_non_null(mkdtemp(left.directory));
    disk_restore(left.directory);
    snprintf(path, sizeof path, "%s/mark", left.directory);
    assert_int_equal(file_write(path, buf_as_text(&power.mark), 0600, NULL), 0);
    buf_release(&power.mark);
    arena_init(&left.arena);
    output_init(&left.output);
    world_open(&left);
    assert_int_equal(store_check(left.store, &left.err), 0);
    if (store_job_find(left.store, TEXT("alice"), TEXT("large"), &job, NULL) == 0) {
        /* the event was not acknowledged yet, and no row has gone */
        assert_int_equal(power.at_failure, 0);
        assert_int_equal(large_job_rows(&left, 1), all);
        assert_int_equal(store_deletions(left.store), 0);
    } else {
        assert_int_equal(store_deletions(left.store), large_job_rows(&left, 1) > 0);
        deletions_finish(&left);
        assert_int_equal(large_job_rows(&left, 1), 0);
    }
    assert_int_equal(large_job_rows(&left, 2), all);
    world_close(&left);
    output_release(&left.output);
    arena_release(&left.arena);
    snprintf(remove, sizeof remove, "rm -rf %s", left.directory);
    assert_int_equal(system(remove), 0);
}

static void a_power_failure_between_pieces_leaves_nothing_over(void **state)
{
    unsigned seed = 20261128, round = 0;
    bool has_failed = true;

    (void)state;
    /* after more and more operations of the disk, until the job has gone before */
    for (uint64_t after = 0; has_failed; after += 1 + (uint64_t)rand_r(&seed) % 100) {
        void *world;
        setup_disk(&world);
        power_try_deletion(world, after, seed, &has_failed);
        assert_int_equal(teardown(&world), 0);
        round++;
    }
    assert_true(round > 5);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup_disk, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(every_commit_is_synced_before_it_is_acknowledged),
    WORLD(the_log_is_copied_by_another_thread),
    WORLD(a_log_does_not_grow_for_ever),
    WORLD(a_reader_that_keeps_its_snapshot_holds_no_commit),
    WORLD(a_failed_commit_uses_no_number),
    WORLD(a_disk_that_fails_in_the_middle_of_a_commit_stores_nothing),
    WORLD(a_full_disk_takes_the_reserve),
    WORLD(a_full_disk_uses_the_log_again),
    WORLD(a_full_disk_uses_a_large_log_again),
    WORLD(a_disk_that_is_full_to_the_last_page_refuses),
    WORLD(a_piece_of_a_deletion_takes_no_reserve),
    cmocka_unit_test(a_power_failure_loses_nothing_that_was_acknowledged),
    cmocka_unit_test(a_power_failure_between_pieces_leaves_nothing_over),
};
UNIT_FILE(tests, NULL, NULL);
