/* Dry runs are answered by a thread of their own: nobody else waits for them.
 *
 * Covers: src/server/trial.c, src/server/rows_core.c */
#include "faults.h"
#include "unit.h"
#include "world.h"

#include <string.h>

#include "core/trial.h"
#include "server/trial.h"
#include "sys/log.h"

struct asked {
    struct wait wait;
    struct arena arena;
    struct core_trial trial;
};

static int setup_one_node(void **state)
{
    log_to(-1);
    int code = setup_with(state, "nodes: 1, gpus: 0, cpu: 4, runMilliseconds: 600000",
                          "scheduling: {policy: first-fit}\n");
    metric_await(*state, "skep_nodes", 1);
    return code;
}

static int trial_ask(struct world *world, struct asked *asked, const char *name)
{
    struct service_reply reply = wait_init(&asked->wait);
    arena_init(&asked->arena);
    const struct service_submission submission = {.source = text_of(job_text(world, name, "")),
                                                  .user = world->user};
    return world->service->trial(world->service->context, &submission, &world->problems,
                                 &asked->arena, &asked->trial, reply, &world->err);
}

/* Its code. */
static int trial_of(struct world *world, struct asked *asked, const char *name)
{
    assert_int_equal(trial_ask(world, asked, name), 0);
    return wait_for(&asked->wait);
}

/* What was answered before is known to it; nothing of it is stored. */
static void it_says_what_would_become_of_a_job(void **state)
{
    struct world *world = *state;
    struct asked fits, waits, taken;
    struct job_id first, second;

    assert_int_equal(trial_of(world, &fits, "train"), 0);
    assert_true(fits.trial.is_placed);
    assert_int_equal(fits.trial.task_count, 2);
    assert_int_equal(metric(world, "skep_jobs_live"), 0);
    assert_int_equal(submit(world, job_text(world, "train", ""), &first), 0);
    assert_int_equal(submit(world, job_text(world, "other", ""), &second), 0);
    assert_int_equal(trial_of(world, &waits, "more"), 0);
    assert_false(waits.trial.is_placed);
    assert_true(strlen(waits.trial.reason) > 0);
    assert_int_equal(trial_of(world, &taken, "train"), ERR_CONFLICT);
    arena_release(&fits.arena);
    arena_release(&waits.arena);
    arena_release(&taken.arena);
}

static void others_are_answered_meanwhile(void **state)
{
    struct world *world = *state;
    struct asked asked;
    struct job_id job;

    restores_hold();
    assert_int_equal(trial_ask(world, &asked, "what-if"), 0);
    restores_await_held();
    assert_int_equal(submit(world, job_text(world, "train", ""), &job), 0);
    wait_until_tasks_run(world, job);
    assert_false(wait_is_done(&asked.wait));
    restores_release();
    assert_int_equal(wait_for(&asked.wait), 0);
    arena_release(&asked.arena);
}

/* So many wait, and no more; when the server ends, all of them have an answer. */
static void few_wait_and_the_end_answers_them(void **state)
{
    struct world *world = *state;
    struct asked asked[TRIALS_WAITING + 1], one_more;

    restores_hold();
    for (size_t i = 0; i < TRIALS_WAITING + 1; i++) {
        assert_int_equal(trial_ask(world, &asked[i], "what-if"), 0);
        if (i == 0)
            restores_await_held();
    }
    assert_int_equal(trial_of(world, &one_more, "what-if"), ERR_BUSY);
    assert_string_equal(one_more.wait.text, "others try jobs just now: ask again");
    server_drain(world->server);
    restores_release();
    world_stop(world);
    for (size_t i = 0; i < TRIALS_WAITING + 1; i++) {
        const int code = wait_for(&asked[i].wait);
        assert_true(code == 0 || code == ERR_UNAVAILABLE);
        if (code)
            assert_string_equal(asked[i].wait.text, "the server is ending");
        arena_release(&asked[i].arena);
    }
    arena_release(&one_more.arena);
    world_start(world);
}

#define TOLD(test) cmocka_unit_test_setup_teardown(test, setup_one_node, teardown_faults)

static const struct CMUnitTest tests[] = {
    TOLD(it_says_what_would_become_of_a_job),
    TOLD(others_are_answered_meanwhile),
    TOLD(few_wait_and_the_end_answers_them),
};
UNIT_FILE(tests, world_begin, NULL);
