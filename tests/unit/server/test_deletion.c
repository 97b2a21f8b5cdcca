/* What deleted jobs have left goes between the rounds, whoever else wants something. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "server/state.h"
#include "sys/clock.h"

#define ROWS_OF_1                                                                                  \
    "SELECT (SELECT count(*) FROM stories WHERE job = 1) + (SELECT count(*) FROM tasks WHERE job " \
    "= 1) + (SELECT count(*) FROM task_attempts WHERE job = 1) + (SELECT count(*) FROM "           \
    "deleted_jobs)"

/* One that has ended, with more of a story than goes at once. */
static struct job_id large_job(struct world *world)
{
    struct job_id job = stopped_job(world, "large");

    assert_int_equal(job.v, 1);
    world_stop(world);
    assert_int_equal(
        sql(world,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) "
            "INSERT INTO stories (job, role, task_index, attempt, is_warning, at_ms, reason, "
            "message) SELECT 1, -1, -1, 0, 0, i, 'Waiting', 'message' FROM n"),
        0);
    world_start(world);
    return job;
}

static void what_is_left_goes_while_nobody_wants_anything(void **state)
{
    struct world *world = *state;
    struct job_id job = large_job(world), again;

    assert_int_equal(act(world, SERVICE_DELETE, job), 0);
    assert_int_equal(submit(world, job_text(world, "large", ""), &again), 0);
    assert_int_equal(again.v, 2);
    metric_await(world, "skep_store_deletions", 0);
    assert_int_equal(number(world, ROWS_OF_1), 0);
    wait_until_tasks_run(world, again);
    assert_true(number(world, "SELECT count(*) FROM stories WHERE job = 2") > 0);
}

/* Each answer asks for the next change, on the core thread, so that mail waits after each round. */
struct chain {
    struct world *world;
    _Atomic bool is_over;
    struct wait wait;
    struct service_reply end;
};

static void chain_go_on(void *context, const struct service_answer *answer)
{
    struct chain *chain = context;
    const struct store_change change = {.kind = CHANGE_SETTING, .setting = {"test", TEXT("x")}};
    const struct service_reply reply = {.done = chain_go_on, .context = chain};
    struct err err;

    if (atomic_load(&chain->is_over) || answer->code < 0)
        chain->end.done(chain->end.context, answer);
    else
        chain->world->service->change(chain->world->service->context, &change, reply, &err);
}

static void what_is_left_goes_while_there_is_always_mail(void **state)
{
    struct world *world = *state;
    struct chain chain = {.world = world};
    struct job_id job = large_job(world);

    chain.end = wait_init(&chain.wait);
    chain_go_on(&chain, &(struct service_answer){.path = "", .text = ""});
    assert_int_equal(act(world, SERVICE_DELETE, job), 0);
    metric_await(world, "skep_store_deletions", 0);
    assert_false(wait_is_done(&chain.wait));
    atomic_store(&chain.is_over, true);
    assert_int_equal(wait_for(&chain.wait), 0);
    assert_int_equal(number(world, ROWS_OF_1), 0);
}

/* The disk is full between two pieces. Nobody else is refused anything, the core is not made anew,
 * and nothing is tried again at once. */
static void a_piece_that_is_refused_hinders_nobody(void **state)
{
    struct world *world = *state;
    struct job_id job = large_job(world), other;
    const uint64_t restores = atomic_load(&world->server->metrics.restores);
    const int64_t begin_ms = clock_monotonic_ms();

    piece_fails(ERR_UNAVAILABLE);
    assert_int_equal(act(world, SERVICE_DELETE, job), 0);
    metric_await(world, "skep_store_deletions", 0);
    assert_true(clock_monotonic_ms() - begin_ms >= 1000);
    assert_int_equal(number(world, ROWS_OF_1), 0);
    assert_int_equal(submit(world, job_text(world, "other", ""), &other), 0);
    assert_true(is_writable(world));
    assert_int_equal(atomic_load(&world->server->metrics.restores), restores);
}

static void the_next_start_goes_on(void **state)
{
    struct world *world = *state;
    struct job_id job = large_job(world), again;

    pieces_fail(ERR_INTERNAL);
    assert_int_equal(act(world, SERVICE_DELETE, job), 0);
    assert_int_equal(submit(world, job_text(world, "large", ""), &again), 0);
    world_stop(world);
    assert_true(number(world, ROWS_OF_1) > 0);
    pieces_fail(0);
    world_start(world);
    metric_await(world, "skep_store_deletions", 0);
    assert_int_equal(number(world, ROWS_OF_1), 0);
    wait_until_tasks_run(world, again);
}

/* The database is too large, by rows that are being deleted: no other job pays for them. */
static void nothing_goes_by_size_for_what_is_going(void **state)
{
    struct world *world = *state;
    struct job_id job = large_job(world), kept = stopped_job(world, "kept");

    assert_int_equal(sql(world, "UPDATE stories SET message = hex(zeroblob(1000)) WHERE job = 1"),
                     0);
    pieces_fail(ERR_UNAVAILABLE);
    assert_int_equal(act(world, SERVICE_DELETE, job), 0);
    server_reload(world->server, config_of(world, "retention: {databaseMB: 1}\n"));
    /* upkeep ends the round of the reload: the second answer comes after it */
    for (int i = 0; i < 2; i++)
        assert_int_equal(change(world, (struct store_change){.kind = CHANGE_SETTING,
                                                             .setting = {"test", TEXT("x")}}),
                         0);
    assert_true(number(world, ROWS_OF_1) > 0);
    assert_int_equal(metric(world, "skep_purged_jobs_total"), 0);
    assert_int_equal(shown(world, kept), PUBLIC_STOPPED);
}

/* One row of the job 1 cannot be deleted. */
static void row_refuse(struct world *world)
{
    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE DELETE ON stories WHEN OLD.job = 1 "
                                "BEGIN SELECT RAISE(ABORT, 'stays'); END"),
                     0);
}

static void read_all(const char *path, struct buf *bytes)
{
    char some[4096];
    size_t count;
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    while ((count = fread(some, 1, sizeof some, file)) > 0)
        buf_add(bytes, some, count);
    fclose(file);
}

/* The page of the database that has this text is none any more; no server runs. */
static void page_damage(struct world *world, const char *marker)
{
    enum { PAGE_SIZE_AT = 16 };
    cleanup_buf struct buf bytes = BUF_INIT;
    const char *path = arena_format(&world->arena, "%s/skep.db", world->directory);

    read_all(path, &bytes);
    const uint8_t *all = (const uint8_t *)buf_cstr(&bytes);
    const size_t size = (size_t)all[PAGE_SIZE_AT] << 8 | all[PAGE_SIZE_AT + 1];
    const uint8_t *found = memmem(all, bytes.length, marker, strlen(marker));
    assert_non_null(found);
    assert_true(size >= 512);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)((size_t)(found - all) / size * size), SEEK_SET), 0);
    for (int i = 0; i < 8; i++)
        fputc(0xff, file);
    assert_int_equal(fclose(file), 0);
}

static void page_of_1_damage(struct world *world)
{
    assert_int_equal(sql(world, "UPDATE stories SET message = 'a page that is lost' WHERE job = 1 "
                                "AND at_ms = 700"),
                     0);
    world_stop(world);
    page_damage(world, "a page that is lost");
    world_start(world);
}

/* The others do not notice: their rows go, nobody is refused, and no core is made anew. */
static void expect_others_go(struct world *world, struct job_id bad)
{
    const uint64_t restores = atomic_load(&world->server->metrics.restores);
    const struct job_id first = stopped_job(world, "first"), second = stopped_job(world, "second");

    assert_int_equal(act(world, SERVICE_DELETE, bad), 0);
    assert_int_equal(act(world, SERVICE_DELETE, first), 0);
    metric_await(world, "skep_store_deletions_refused", 1);
    assert_int_equal(act(world, SERVICE_DELETE, second), 0);
    assert_int_equal(metric(world, "skep_store_deletions"), 1);
    assert_int_equal(number(world, "SELECT count(*) FROM tasks WHERE job > 1"), 0);
    assert_int_equal(atomic_load(&world->server->metrics.restores), restores);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    assert_true(is_writable(world));
}

static void a_row_that_cannot_be_deleted_holds_up_nobody(void **state)
{
    struct world *world = *state;
    const struct job_id job = large_job(world);
    struct wait first;

    row_refuse(world);
    expect_others_go(world, job);
    /* a minute later it is tried again */
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    round_begin(world, &first);
    world->server->core.deletion.refused_ms = 0;
    round_end(&first);
    metric_await(world, "skep_store_deletions", 0);
    assert_int_equal(number(world, ROWS_OF_1), 0);
}

static void nor_does_a_page_that_is_damaged(void **state)
{
    struct world *world = *state;
    const struct job_id job = large_job(world);

    page_of_1_damage(world);
    expect_others_go(world, job);
    assert_true(number(world, "SELECT count(*) FROM deleted_jobs") > 0);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(what_is_left_goes_while_nobody_wants_anything),
    ROUNDS(what_is_left_goes_while_there_is_always_mail),
    ROUNDS(a_piece_that_is_refused_hinders_nobody),
    ROUNDS(the_next_start_goes_on),
    ROUNDS(nothing_goes_by_size_for_what_is_going),
    ROUNDS(a_row_that_cannot_be_deleted_holds_up_nobody),
    ROUNDS(nor_does_a_page_that_is_damaged),
};
UNIT_FILE(tests, world_begin, NULL);
