/* What is kept of the ends of attempts: the rule and the last lines. */
#include "unit.h"
#include "world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/output.h"
#include "store/migrations.h"
#include "store/read.h"
#include "store/store.h"

static void add_attempt(struct world *world, uint32_t job, uint64_t attempt, enum life_state state,
                        int32_t code)
{
    struct task_record task = task_of(job, 0, 0, attempt);

    task.state = state;
    task.completion.code = code;
    add_task(world, task);
}

static struct store_change end_of(uint64_t attempt, int32_t code, struct text tail)
{
    return (struct store_change){.kind = CHANGE_ATTEMPT_END,
                                 .attempt_end = {.attempt = {attempt},
                                                 .rule = {.code = code,
                                                          .phrase = "ContainerSyntaxError",
                                                          .number = 12,
                                                          .pattern = 3,
                                                          .line = 345,
                                                          .file = "/etc/skep/rules.yaml",
                                                          .log = "user",
                                                          .text = TEXT("SyntaxError: caf\xc3\xa9")},
                                                 .tail = tail}};
}

static int end_read(struct world *world, uint64_t attempt, struct store_attempt_end *end)
{
    return store_attempt_end(world->reader, (struct attempt_id){attempt}, &world->arena, end,
                             &world->err);
}

static void an_end_is_read_back_whole(void **state)
{
    struct world *world = *state;
    struct store_change change = end_of(5, 231, TEXT("one\ntwo\n"));
    struct store_attempt_end end;

    /* the exit's row and what is kept of it, in one transaction */
    add_submitted(world, 1, "alice", "j1");
    add_attempt(world, 1, 5, LIFE_COMPLETED, 231);
    assert_int_equal(commit(world, &change, 1), 0);
    assert_int_equal(change.code, 0);
    world_close(world);
    world_open(world);
    assert_int_equal(end_read(world, 5, &end), 0);
    assert_true(text_is(end.tail, "one\ntwo\n"));
    assert_int_equal(end.rule.code, 231);
    assert_string_equal(end.rule.phrase, "ContainerSyntaxError");
    assert_int_equal(end.rule.number, 12);
    assert_int_equal(end.rule.pattern, 3);
    assert_int_equal(end.rule.line, 345);
    assert_string_equal(end.rule.file, "/etc/skep/rules.yaml");
    assert_string_equal(end.rule.log, "user");
    assert_true(text_is(end.rule.text, "SyntaxError: caf\xc3\xa9"));
    assert_int_equal(end_read(world, 6, &end), ERR_NOT_FOUND);
}

/* An engine tells an exit again after a restart; by then its log may have gone. */
static void what_was_told_first_stays(void **state)
{
    struct world *world = *state;
    struct store_change first = end_of(5, 231, TEXT("words\n")), again = end_of(5, 231, TEXT(""));
    struct store_attempt_end end;

    again.attempt_end.rule.number = 0;
    add_submitted(world, 1, "alice", "j1");
    add_attempt(world, 1, 5, LIFE_COMPLETED, 231);
    assert_int_equal(commit(world, &first, 1), 0);
    assert_int_equal(commit(world, &again, 1), 0);
    assert_int_equal(again.code, 0);
    assert_int_equal(end_read(world, 5, &end), 0);
    assert_true(text_is(end.tail, "words\n"));
    assert_int_equal(end.rule.number, 12);
}

/* A task that was stopped exits with 143, and a rule knows that: but its row says -210. */
static void a_rule_that_did_not_decide_is_not_kept(void **state)
{
    struct world *world = *state;
    struct store_change change = end_of(5, 143, TEXT("words\n"));
    struct store_attempt_end end;

    add_submitted(world, 1, "alice", "j1");
    add_attempt(world, 1, 5, LIFE_COMPLETED, -210);
    assert_int_equal(commit(world, &change, 1), 0);
    assert_int_equal(end_read(world, 5, &end), 0);
    assert_true(text_is(end.tail, "words\n"));
    assert_int_equal(end.rule.number, 0);
    assert_int_equal(end.rule.code, 0);
    assert_string_equal(end.rule.phrase, "");
    assert_int_equal(end.rule.text.length, 0);
}

static void nothing_is_kept_that_no_row_names(void **state)
{
    struct world *world = *state;
    struct store_change change = end_of(5, 231, TEXT("words\n"));
    struct store_attempt_end end;

    assert_int_equal(commit(world, &change, 1), 0); /* of an orphan */
    assert_int_equal(change.code, 0);
    assert_int_equal(end_read(world, 5, &end), ERR_NOT_FOUND);
    add_submitted(world, 1, "alice", "j1");
    add_attempt(world, 1, 5, LIFE_RUNNING, 0);
    assert_int_equal(commit(world, &change, 1), 0); /* it has not ended */
    assert_int_equal(end_read(world, 5, &end), ERR_NOT_FOUND);
    add_attempt(world, 1, 5, LIFE_ATTEMPT_COMPLETED, 231);
    add_attempt(world, 1, 6, LIFE_RUNNING, 0); /* the next try in the same step */
    assert_int_equal(commit(world, &change, 1), 0);
    assert_int_equal(end_read(world, 5, &end), 0);
    /* with the job goes what is kept of all its attempts … */
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(end_read(world, 5, &end), ERR_NOT_FOUND);
    /* … and does not come back when the exit is told again */
    assert_int_equal(commit(world, &change, 1), 0);
    assert_int_equal(end_read(world, 5, &end), ERR_NOT_FOUND);
}

static void too_long_ones_hinder_no_other(void **state)
{
    struct world *world = *state;
    char longer[STORE_TAIL_MAX + 1];
    struct store_change changes[4];
    struct store_attempt_end end;

    memset(longer, 'x', sizeof longer);
    changes[0] = end_of(5, 231, (struct text){longer, STORE_TAIL_MAX + 1});
    changes[1] = end_of(6, 231, (struct text){longer, STORE_TAIL_MAX});
    changes[2] = end_of(7, 231, TEXT(""));
    changes[2].attempt_end.rule.text = (struct text){longer, STORE_MATCH_MAX + 1};
    changes[3] = end_of(8, 231, TEXT(""));
    changes[3].attempt_end.rule.text = (struct text){longer, STORE_MATCH_MAX};
    add_submitted(world, 1, "alice", "j1");
    for (uint64_t attempt = 5; attempt < 9; attempt++)
        add_attempt(world, 1, attempt, LIFE_COMPLETED, 231);
    assert_int_equal(commit(world, changes, 4), 0);
    assert_int_equal(changes[0].code, ERR_TOO_BIG);
    assert_int_equal(changes[2].code, ERR_TOO_BIG);
    assert_int_equal(end_read(world, 5, &end), ERR_NOT_FOUND);
    assert_int_equal(end_read(world, 6, &end), 0);
    assert_int_equal(end.tail.length, STORE_TAIL_MAX);
    assert_int_equal(end_read(world, 7, &end), ERR_NOT_FOUND);
    assert_int_equal(end_read(world, 8, &end), 0);
    assert_int_equal(end.rule.text.length, STORE_MATCH_MAX);
}

/* What version 3 left: lines of an attempt that is there, and of one that was deleted. */
static const char old_rows[] =
    "INSERT INTO counters VALUES ('job', 1), ('attempt', 9);"
    "INSERT INTO task_attempts (job, role, task_index, role_name, state, is_deletion_pending, "
    "is_held, attempt, job_attempt, task_attempt, retries, accountable_retries, node, address, "
    "gpus, ports, created_ms, launched_ms, completed_ms, attempt_created_ms, attempt_launched_ms, "
    "attempt_completed_ms, code, is_success, attributes, phrase, diagnostics) VALUES "
    "(1, 0, 0, 'w', 8, 0, 0, 5, 0, 0, 0, 0, 'n', '', x'', x'', 1, 1, 1, 1, 1, 1, 1, 0, 0, '', '');"
    "INSERT INTO attempt_tails VALUES (5, 'old words'), (9, 'nobody''s');"
    "INSERT INTO nodes (id, name, address, gpu_type, cpu, gpu_count, memory_mib, is_healthy, "
    "is_cordoned, is_lost, blame, reason) VALUES (0, 'n', '', '', 1, 0, 1, 1, 1, 0, 12.5, '')";

static void a_database_of_version_3_is_taken_over(void **state)
{
    struct world *world = *state;
    const int64_t now_ms = (int64_t)time(NULL) * 1000;
    struct store_nodes nodes;
    struct store_attempt_end end;
    struct task_record row;
    char path[100];

    SQLITE_ONLY(world);
    world_close(world);
    snprintf(path, sizeof path, "%s/skep.db", world->directory);
    unlink(path);
    snprintf(path, sizeof path, "%s/mark", world->directory); /* it made none */
    unlink(path);
    for (int i = 0; i < 3; i++)
        assert_int_equal(world_sql(world, sqlite_migrations[i].sql), SQLITE_OK);
    assert_int_equal(world_sql(world, old_rows), SQLITE_OK);
    assert_int_equal(
        world_sql(world, "PRAGMA user_version = 3; PRAGMA application_id = 1399547248"), SQLITE_OK);
    world_open(world);
    assert_int_equal(end_read(world, 5, &end), 0);
    assert_true(text_is(end.tail, "old words"));
    assert_int_equal(end.rule.number, 0);
    assert_int_equal(end_read(world, 9, &end), ERR_NOT_FOUND);
    assert_int_equal(
        store_attempt(world->reader, (struct attempt_id){5}, &world->arena, &row, &world->err), 0);
    /* blame counts from the time of the migration on */
    assert_int_equal(store_nodes(world->reader, &world->arena, &nodes, &world->err), 0);
    assert_int_equal(nodes.count, 1);
    assert_true(nodes.items[0].blame == 12.5);
    assert_true(nodes.items[0].is_reason_blame); /* it is cordoned */
    assert_in_range(nodes.items[0].blame_ms, now_ms - 1000, now_ms + 60000);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(an_end_is_read_back_whole),
    WORLD(what_was_told_first_stays),
    WORLD(a_rule_that_did_not_decide_is_not_kept),
    WORLD(nothing_is_kept_that_no_row_names),
    WORLD(too_long_ones_hinder_no_other),
    WORLD(a_database_of_version_3_is_taken_over),
};
UNIT_FILE(tests, NULL, NULL);
