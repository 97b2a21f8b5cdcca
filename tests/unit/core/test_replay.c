/* An event log is replayed over the restarts of the server: each core that comes of it is the one
 * that took the events. */
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "base/memory.h"
#include "core/replay.h"

/* The event for both. */
static void both_step(struct world *world, struct replay *replay, struct event event)
{
    struct output output;
    struct err err;
    struct event same = event;
    output_init(&output);
    if (event.kind == EVENT_SUBMIT)
        same.submit.plan = plan_copy(event.submit.plan);
    world_step(world, &event);
    same.now_ms = event.now_ms;
    same.random = event.random;
    same.request = event.request;
    same.user = event.user;
    assert_int_equal(replay_step(replay, &same, &output, &err), 0);
    assert_int_equal(output.records.count, world->output.records.count);
    assert_int_equal(output.commands.count, world->output.commands.count);
    assert_true(core_hash(replay->core) == core_hash(world->core));
    output_release(&output);
}

static struct event submission(const char *name, uint32_t gpu)
{
    struct plan_role role = world_role("worker", 1, 1, gpu);
    struct plan plan = world_plan_of(name, &role);
    return (struct event){.kind = EVENT_SUBMIT, .submit = {.plan = plan_copy(&plan)}};
}

static void restart(struct world *world, struct replay *replay)
{
    struct event event = {
        .kind = EVENT_RESTORE, .now_ms = world->now_ms, .user = "", .config = &world->config};
    struct output output;
    struct err err;
    output_init(&output);
    assert_int_equal(replay_step(replay, &event, &output, &err), 0);
    output_release(&output);
}

static void a_replay_follows_over_restarts(void **state)
{
    (void)state;
    struct world world;
    struct replay replay;
    struct event node = {.kind = EVENT_NODE,
                         .node = {.name = "n1",
                                  .address = "10.0.0.1",
                                  .cpu = 8,
                                  .memory_mib = 8000,
                                  .gpu_count = 2,
                                  .gpu_type = "V100",
                                  .is_healthy = true}};
    world_init(&world, "first-fit");
    world_keep(&world);
    replay_init(&replay);
    restart(&world, &replay);
    both_step(&world, &replay, node);
    both_step(&world, &replay, submission("one", 2));
    both_step(&world, &replay, submission("two", 1)); /* it waits */
    world_restart(&world);
    restart(&world, &replay);
    assert_true(core_hash(replay.core) == core_hash(world.core));
    both_step(&world, &replay, submission("three", 0));
    assert_int_equal(replay.restores, 2);
    assert_int_equal(replay.events, 6);
    replay_release(&replay);
    assert_null(replay.core);
    world_release(&world);
}

static void replay_do(struct replay *replay, struct event event)
{
    struct output output;
    struct err err;
    output_init(&output);
    event.user = "";
    event.now_ms = WORLD_START_MS;
    event.request = 1;
    assert_int_equal(replay_step(replay, &event, &output, &err), 0);
    output_release(&output);
}

/* The rows are found by their numbers, also beyond those that an epoch passes over. */
static void numbers_are_passed_over(void **state)
{
    (void)state;
    struct replay replay;
    struct core_config config;
    core_config_default(&config);
    config.policy = "first-fit";
    replay_init(&replay);
    struct event restore = {.kind = EVENT_RESTORE, .config = &config};
    const struct event node = {
        .kind = EVENT_NODE,
        .node = {.name = "n1", .address = "a", .cpu = 8, .memory_mib = 8000, .is_healthy = true}};
    replay_do(&replay, restore);
    replay_do(&replay, node);
    replay_do(&replay, submission("one", 0));
    replay_do(&replay, submission("two", 0));
    restore.last_job.v = 1000000;
    restore.last_attempt.v = 1000000000;
    replay_do(&replay, restore);
    replay_do(&replay, submission("three", 0));
    replay_do(&replay, (struct event){.kind = EVENT_TASK_STARTED, .task = {.attempt = {2}}});
    assert_int_equal(rows_job_count(replay.rows), 3);
    assert_int_equal(rows_job(replay.rows, 2)->id, 1000001);
    const uint64_t hash = core_hash(replay.core);
    restore.last_job.v = 1000001;
    restore.last_attempt.v = 1000000001;
    replay_do(&replay, restore); /* of the rows, those of before the epoch as well */
    assert_true(core_hash(replay.core) == hash);
    assert_int_equal(rows_open_attempts(replay.rows), 0);
    replay_release(&replay);
}

static void a_log_without_its_beginning_is_refused(void **state)
{
    (void)state;
    struct replay replay;
    struct output output;
    struct err err;
    struct event event = submission("one", 0);
    replay_init(&replay);
    output_init(&output);
    assert_int_equal(replay_step(&replay, &event, &output, &err), ERR_UNSUPPORTED);
    assert_null(replay.core);
    output_release(&output);
    replay_release(&replay);
}

static void a_configuration_that_is_none_is_refused(void **state)
{
    (void)state;
    struct replay replay;
    struct output output;
    struct err err;
    struct core_config config;
    core_config_default(&config);
    config.policy = "no-such-policy";
    struct event event = {.kind = EVENT_RESTORE, .user = "", .config = &config};
    replay_init(&replay);
    output_init(&output);
    assert_true(replay_step(&replay, &event, &output, &err) < 0);
    output_release(&output);
    replay_release(&replay);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_replay_follows_over_restarts),
    cmocka_unit_test(numbers_are_passed_over),
    cmocka_unit_test(a_log_without_its_beginning_is_refused),
    cmocka_unit_test(a_configuration_that_is_none_is_refused),
};
UNIT_FILE(tests, NULL, NULL);
