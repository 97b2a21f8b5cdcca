/* What deleted jobs have left goes between the rounds, whoever else wants something. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include <stdatomic.h>

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

    piece_fails(ERR_INTERNAL); /* the next try would come in a minute */
    assert_int_equal(act(world, SERVICE_DELETE, job), 0);
    assert_int_equal(submit(world, job_text(world, "large", ""), &again), 0);
    world_stop(world);
    assert_true(number(world, ROWS_OF_1) > 0);
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
    piece_fails(ERR_INTERNAL); /* the next piece would come in a minute */
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

static const struct CMUnitTest tests[] = {
    ROUNDS(what_is_left_goes_while_nobody_wants_anything),
    ROUNDS(what_is_left_goes_while_there_is_always_mail),
    ROUNDS(a_piece_that_is_refused_hinders_nobody),
    ROUNDS(the_next_start_goes_on),
    ROUNDS(nothing_goes_by_size_for_what_is_going),
};
UNIT_FILE(tests, world_begin, NULL);
