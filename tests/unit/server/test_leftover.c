/* Containers of which nobody knows whether they are held. */
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "engine/fake/fake.h"
#include "server/state.h"

/* The container of a failed task, held for debugging. There is no other task, which would be killed
 * then: an engine tells the end of one that has ended before that once more, whenever it comes to
 * it. */
static struct attempt_id held_attempt(struct world *world)
{
    static const char text[] =
        "protocolVersion: 2\nname: held\ntype: job\n"
        "prerequisites:\n- {protocolVersion: 2, name: i, type: dockerimage, uri: x}\n"
        "taskRoles:\n  w:\n    dockerImage: i\n"
        "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n"
        "    commands: [run]\nextras: {debug: true}\n";
    struct job_id job;

    world_stop(world);
    world->engine = "runMilliseconds: 1, exitCode: 3";
    world_start(world);
    assert_int_equal(submit(world, text, &job), 0);
    wait_until(world, job, PUBLIC_FAILED);
    const struct store_tasks tasks = tasks_of(world, job);
    assert_int_equal(tasks.count, 1);
    assert_true(tasks.items[0].is_held);
    return tasks.items[0].attempt;
}

static void tell_exit(struct world *world, struct attempt_id attempt)
{
    tell_end(world, attempt,
             &(struct exit_report){
                 .exit_code = 3, .is_user_command = true, .reason = "", .message = ""});
}

static void a_container_stays_while_nobody_knows_whether_it_is_held(void **state)
{
    struct world *world = *state;
    struct attempt_id held = held_attempt(world);
    size_t before;

    settle(world);
    before = engine_fake_container_count(world_engine(world));
    assert_int_equal(before, 1);
    /* told again, and once more; first its row cannot be read, then it says that it is held */
    attempts_unreadable(ERR_IO);
    tell_exit(world, held);
    tell_exit(world, held);
    settle(world);
    assert_int_equal(world->server->core.leftovers.count, 1);
    assert_int_equal(engine_fake_container_count(world_engine(world)), before);
    server_reload(world->server, config_of(world, "")); /* a round of upkeep, for nothing yet */
    settle(world);
    assert_int_equal(world->server->core.leftovers.count, 1);
    attempts_unreadable(0);
    server_reload(world->server, config_of(world, ""));
    settle(world);
    assert_int_equal(world->server->core.leftovers.count, 0);
    assert_int_equal(engine_fake_container_count(world_engine(world)), before);
}

static void what_nobody_holds_goes_once_that_is_known(void **state)
{
    struct world *world = *state;
    struct job_id job = stopped_job(world, "a");
    const struct attempt_id attempt = tasks_of(world, job).items[0].attempt;

    attempts_unreadable(ERR_CORRUPT);
    tell_exit(world, attempt);
    settle(world);
    assert_int_equal(world->server->core.leftovers.count, 1);
    attempts_unreadable(0);
    server_reload(world->server, config_of(world, ""));
    settle(world);
    assert_int_equal(world->server->core.leftovers.count, 0);
    containers_await_none(world);
}

/* Its row says so, but the job has been started again: the row is of the attempt before. */
static void an_attempt_before_the_jobs_holds_nothing(void **state)
{
    struct world *world = *state;
    const struct attempt_id held = held_attempt(world);

    settle(world);
    tell_exit(world, held);
    settle(world);
    assert_int_equal(engine_fake_container_count(world_engine(world)), 1);
    assert_int_equal(sql(world, "UPDATE jobs SET attempt = attempt + 1"), 0);
    tell_exit(world, held);
    containers_await_none(world);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(a_container_stays_while_nobody_knows_whether_it_is_held),
    ROUNDS(what_nobody_holds_goes_once_that_is_known),
    ROUNDS(an_attempt_before_the_jobs_holds_nothing),
};
UNIT_FILE(tests, world_begin, NULL);
