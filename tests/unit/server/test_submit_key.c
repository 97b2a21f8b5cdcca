/* A submission that is sent again with its idempotency key is not a second job. */
#include "faults.h"
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "store/read.h"
#include "sys/log.h"

static int setup_quiet(void **state)
{
    log_to(-1);
    return setup_with(state, "runMilliseconds: 600000", "scheduling: {finishedKeepSeconds: 0}\n");
}

static int teardown_quiet(void **state)
{
    int code = teardown(state);
    log_to(STDERR_FILENO);
    return code;
}

static void ask_keyed(struct world *world, struct wait *wait, const char *text, const char *key)
{
    struct service_reply reply = wait_init(wait);
    const struct service_submission submission = {.source = text_of(text), .key = text_of(key)};
    assert_int_equal(ask_submission(world, submission, reply), 0);
}

static int submit_keyed(struct world *world, const char *text, const char *key, struct job_id *job)
{
    struct wait wait;
    ask_keyed(world, &wait, text, key);
    int code = wait_for(&wait);
    *job = wait.answer.job;
    snprintf(world->err.text, sizeof world->err.text, "%.200s", wait.text);
    return code;
}

static void the_first_answer_comes_again(void **state)
{
    struct world *world = *state;
    const char *text = job_text(world, "a", ""), *other = job_text(world, "b", "");
    struct job_id first, again;

    assert_int_equal(submit_keyed(world, text, "k1", &first), 0);
    assert_int_equal(submit_keyed(world, text, "k1", &again), 0);
    assert_int_equal(again.v, first.v);
    assert_int_equal(submit_keyed(world, text, "k2", &again), ERR_CONFLICT);
    assert_non_null(strstr(world->err.text, "exists already"));
    assert_int_equal(submit_keyed(world, other, "k1", &again), ERR_CONFLICT);
    assert_non_null(strstr(world->err.text, "another job file, that of admin~a"));
    world_stop(world);
    world_start(world);
    assert_int_equal(submit_keyed(world, text, "k1", &again), 0);
    assert_int_equal(again.v, first.v);
    /* the job may go meanwhile: it is not made again */
    assert_int_equal(act(world, SERVICE_STOP, first), 0);
    wait_until(world, first, PUBLIC_STOPPED);
    assert_int_equal(act(world, SERVICE_DELETE, first), 0);
    assert_int_equal(submit_keyed(world, text, "k1", &again), 0);
    assert_int_equal(again.v, first.v);
    assert_int_equal(submit_keyed(world, text, "k3", &again), 0);
    assert_int_not_equal(again.v, first.v);
}

/* What was refused has taken no key, and may be mended and sent again with it. */
static void a_refusal_takes_no_key(void **state)
{
    struct world *world = *state;
    struct job_id job;

    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    assert_int_equal(submit_keyed(world, job_text(world, "a", ""), "k1", &job), ERR_CONFLICT);
    assert_int_equal(submit_keyed(world, job_text(world, "b", ""), "k1", &job), 0);
}

static void in_one_round_they_are_one_job(void **state)
{
    struct world *world = *state;
    const char *text = job_text(world, "a", "");
    struct store_change none = {.kind = CHANGE_SETTING, .setting = {"test", TEXT("x")}};
    struct wait held, first, second, third, other;
    struct service_reply reply = wait_init(&held);

    commits_hold();
    assert_int_equal(world->service->change(world->service->context, &none, reply, &world->err), 0);
    commits_await_held();
    ask_keyed(world, &first, text, "k1");
    ask_keyed(world, &second, text, "k1");
    ask_keyed(world, &other, job_text(world, "b", ""), "k1");
    ask_keyed(world, &third, text, "k1");
    commits_release();
    assert_int_equal(wait_for(&held), 0);
    assert_int_equal(wait_for(&first), 0);
    assert_int_equal(wait_for(&second), 0);
    assert_int_equal(wait_for(&third), 0);
    assert_int_equal(wait_for(&other), ERR_CONFLICT);
    assert_int_equal(second.answer.job.v, first.answer.job.v);
    assert_int_equal(third.answer.job.v, first.answer.job.v);
}

/* A round that is stored one by one, because one of its requests cannot be. */
static void nor_are_they_when_the_round_is_parted(void **state)
{
    struct world *world = *state;
    const char *text = job_text(world, "a", "");
    struct store_change none = {.kind = CHANGE_SETTING, .setting = {"test", TEXT("x")}};
    struct wait held, first, bad, bad_again, second;
    struct service_reply reply = wait_init(&held);

    assert_int_equal(sql(world, "CREATE TRIGGER bad BEFORE INSERT ON jobs WHEN NEW.name = 'bad' "
                                "BEGIN SELECT RAISE(ABORT, 'no such name'); END"),
                     0);
    commits_hold();
    assert_int_equal(world->service->change(world->service->context, &none, reply, &world->err), 0);
    commits_await_held();
    ask_keyed(world, &first, text, "k1");
    ask_keyed(world, &bad, job_text(world, "bad", ""), "k2");
    ask_keyed(world, &bad_again, job_text(world, "bad", ""), "k2");
    ask_keyed(world, &second, text, "k1");
    commits_release();
    assert_int_equal(wait_for(&held), 0);
    assert_int_equal(wait_for(&first), 0);
    assert_int_equal(wait_for(&bad), ERR_INTERNAL);
    assert_int_equal(wait_for(&bad_again), ERR_INTERNAL);
    assert_int_equal(wait_for(&second), 0);
    assert_int_equal(second.answer.job.v, first.answer.job.v);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup_quiet, teardown_quiet)

static const struct CMUnitTest tests[] = {
    WORLD(the_first_answer_comes_again),
    WORLD(a_refusal_takes_no_key),
    WORLD(in_one_round_they_are_one_job),
    WORLD(nor_are_they_when_the_round_is_parted),
};
UNIT_FILE(tests, world_begin, NULL);
