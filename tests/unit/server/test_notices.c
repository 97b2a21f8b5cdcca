/* Messages about changes of jobs, as part of a commit. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "server/state.h"
#include "sys/clock.h"

static void a_message_that_cannot_be_made_hinders_nobody(void **state)
{
    struct world *world = *state;
    world_stop(world);
    world->extra = "notifications: {webhooks: [{name: ops, url: 'http://127.0.0.1:9/', events: "
                   "[stopped]}]}\n";
    world_start(world);
    const struct job_id unknown = running_job(world, "unknown"),
                        later = running_job(world, "later");
    world_stop(world); /* of what was before, the store alone knows now */
    jobs_unreadable(ERR_UNAVAILABLE);
    world_start(world);
    assert_int_equal(act(world, SERVICE_STOP, unknown), 0);
    wait_until(world, unknown, PUBLIC_STOPPED);
    jobs_unreadable(0);
    wait_until_tasks_run(world, later); /* again: its containers went with the server */
    const struct job_id known = running_job(world, "known");
    jobs_unreadable(ERR_CORRUPT);
    assert_int_equal(act(world, SERVICE_STOP, known), 0);
    wait_until(world, known, PUBLIC_STOPPED);
    jobs_unreadable(0);
    assert_int_equal(act(world, SERVICE_STOP, later), 0);
    wait_until(world, later, PUBLIC_STOPPED);
    const struct store_notices rows = messages(world);
    assert_int_equal(rows.count, 2);
    assert_int_equal(rows.items[0].notice.job.v, known.v);
    assert_int_equal(rows.items[1].notice.job.v, later.v);
    assert_true(atomic_load(&world->server->is_writable));
}

/* A webhook is told of what ends, and the store takes no message about jobs of the name "bad". */
static void messages_refuse(struct world *world, const char *more)
{
    world_stop(world);
    world->extra =
        arena_format(&world->arena,
                     "notifications: {webhooks: [{name: ops, url: 'http://127.0.0.1:9/', "
                     "events: [stopped, retried, succeeded]}]}\n%s",
                     more);
    world_start(world);
    assert_int_equal(sql(world,
                         "CREATE TRIGGER bad BEFORE INSERT ON notices WHEN NEW.job_name = 'bad' "
                         "BEGIN SELECT RAISE(ABORT, 'no such message'); END"),
                     0);
}

static void a_message_that_cannot_be_stored_hinders_no_request(void **state)
{
    struct world *world = *state;
    messages_refuse(world, "");
    const struct job_id bad = running_job(world, "bad"), good = running_job(world, "good");
    struct wait first, stop, other;
    round_begin(world, &first);
    ask_act(world, &stop, SERVICE_STOP, bad);
    ask_act(world, &other, SERVICE_STOP, good);
    round_end(&first);
    assert_int_equal(wait_for(&stop), 0);
    assert_int_equal(wait_for(&other), 0);
    wait_until(world, bad, PUBLIC_STOPPED);
    wait_until(world, good, PUBLIC_STOPPED);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    const struct store_notices rows = messages(world);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.items[0].notice.job.v, good.v);
}

/* The end of a container, with what is kept beside it. */
static void nor_an_end(void **state)
{
    struct world *world = *state;
    messages_refuse(world, "");
    const struct job_id bad = running_job(world, "bad"), good = running_job(world, "good");
    containers_finish(world, bad);
    containers_finish(world, good);
    wait_until(world, bad, PUBLIC_SUCCEEDED);
    wait_until(world, good, PUBLIC_SUCCEEDED);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    assert_true(is_writable(world));
    assert_int_equal(messages(world).count, 1);
}

/* Who has asked is told of the decision by mail, in its transaction. */
static void nor_a_decision(void **state)
{
    struct world *world = *state;
    const struct store_change address = {.kind = CHANGE_USER_SET,
                                         .user = {.name = "admin", .email = "admin@example.org"},
                                         .fields = USER_EMAIL};
    struct store_change ask = {.kind = CHANGE_REQUEST_ADD,
                               .request.row = {.id = "1",
                                               .kind = REQUEST_CLUSTER,
                                               .user = "admin",
                                               .virtual_cluster = "vc1",
                                               .email = "",
                                               .address = "10.0.0.7",
                                               .why = "a course",
                                               .asked_ms = 1000}};
    struct store_change decide = {.kind = CHANGE_REQUEST_ACT,
                                  .request = {.row = {.id = "1",
                                                      .decided_ms = clock_unix_ms(),
                                                      .decider = "admin",
                                                      .answer = "",
                                                      .group = ""},
                                              .act = REQUEST_ACCEPT}};
    world_stop(world);
    world->extra = "notifications: {smtp: {url: 'smtp://127.0.0.1:9', from: skep@example.org}}\n";
    world_start(world);
    assert_int_equal(change(world, address), 0); /* a message to nobody is not kept */
    assert_int_equal(change(world, ask), 0);
    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE INSERT ON notices "
                                "BEGIN SELECT RAISE(ABORT, 'no such message'); END"),
                     0);
    assert_int_equal(change(world, decide), 0);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    assert_int_equal(messages(world).count, 0);
    /* the next one is told of */
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    ask.request.row.id = decide.request.row.id = "2";
    ask.request.row.virtual_cluster = "vc2";
    assert_int_equal(change(world, ask), 0);
    assert_int_equal(change(world, decide), 0);
    assert_int_equal(messages(world).count, 1);
}

static bool has_tried_again(struct world *world, const void *what)
{
    const struct store_tasks tasks = tasks_of(world, *(const struct job_id *)what);
    return tasks.count > 0 && tasks.items[0].attempt.v > 6; /* the third try of two tasks */
}

/* Nobody has asked for the next try of a job, it comes with every event: the server would store
 * nothing any more. */
static void nor_what_becomes_due(void **state)
{
    struct world *world = *state;
    struct job_id bad, next;
    world->engine = "runMilliseconds: 20, exitCode: 200";
    messages_refuse(world, "scheduling: {retryPauseFirstSeconds: 1, retryPauseMaxSeconds: 1}\n");
    assert_int_equal(submit(world, job_text(world, "bad", ""), &bad), 0);
    commit_await(world, has_tried_again, &bad);
    assert_int_equal(submit(world, job_text(world, "next", ""), &next), 0);
    commit_await(world, has_tried_again, &bad);
    assert_true(is_writable(world));
    assert_int_equal(metric(world, "skep_jobs_quarantined"), 0);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    assert_int_equal(act(world, SERVICE_STOP, bad), 0);
    /* messages about others are stored again */
    assert_int_equal(act(world, SERVICE_STOP, next), 0);
    wait_until(world, next, PUBLIC_STOPPED);
    const struct store_notices rows = messages(world);
    assert_true(rows.count > 0);
    for (size_t i = 0; i < rows.count; i++)
        assert_int_equal(rows.items[i].notice.job.v, next.v);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(a_message_that_cannot_be_made_hinders_nobody),
    ROUNDS(a_message_that_cannot_be_stored_hinders_no_request),
    ROUNDS(nor_an_end),
    ROUNDS(nor_a_decision),
    ROUNDS(nor_what_becomes_due),
};
UNIT_FILE(tests, world_begin, NULL);
