/* A disk that fails and comes back, and a reload meanwhile. */
#include "../store/memory.h"
#include "faults.h"
#include "rounds.h"
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "engine/fake/fake.h"
#include "server/state.h"

/* The disk fails while a round is stored one by one: facts are kept, requests are refused. */
static void a_disk_that_fails_in_between_keeps_facts(void **state)
{
    struct world *world = *state;
    struct job_id job = running_job(world, "runs");
    struct wait first, stored, refused;

    round_begin(world, &first);
    ask_submit(world, &stored, "stored");
    containers_finish(world, job);
    ask_submit(world, &refused, "refused");
    /* the held one, the round, a new core, its first mail; then nothing until the second probe */
    COMMITS(0, ERR_INTERNAL, 0, 0, ERR_UNAVAILABLE, ERR_UNAVAILABLE);
    round_end(&first);
    assert_int_equal(wait_for(&stored), 0);
    assert_int_equal(wait_for(&refused), ERR_UNAVAILABLE);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(metric(world, "skep_events_set_aside_total"), 0);
    wait_until_tasks_run(world, stored.answer.job);
}

/* The commit was stored although the database could not say so: who asked is refused, and the job
 * is there. */
static void a_job_whose_answer_was_lost_is_found_and_runs_once(void **state)
{
    static const struct memory_commit lost = {ERR_UNAVAILABLE, true};
    struct world *world = *state;
    struct memory *memory = memory_new();
    struct wait request;
    struct job_id job;
    size_t containers;

    world_stop(world);
    store_in_memory(memory);
    world_start(world);
    metric_await(world, "skep_nodes", 1);
    memory_script(memory, &lost, 1);
    ask_submit(world, &request, "lost");
    assert_int_equal(wait_for(&request), ERR_UNAVAILABLE);
    metric_await(world, "skep_store_writable", 1);
    assert_int_equal(
        store_job_find(world->server->store, TEXT("admin"), TEXT("lost"), &job, &world->err), 0);
    assert_int_equal(job.v, 1);
    assert_int_equal(submit(world, job_text(world, "lost", ""), &job), ERR_CONFLICT);
    assert_int_equal(submit(world, job_text(world, "next", ""), &job), 0);
    assert_int_equal(job.v, 2); /* its number is not given again */
    wait_until_tasks_run(world, (struct job_id){1});
    wait_until_tasks_run(world, job);
    containers = tasks_of(world, (struct job_id){1}).count + tasks_of(world, job).count;
    assert_int_equal(engine_fake_container_count(world_engine(world)), containers);
    world_stop(world);
    store_in_memory(NULL);
    memory_free(memory);
    world_start(world);
}

/* It comes while the first probe is on its way, and is kept when the second one is: no commit is in
 * a hurry here. */
static void a_reload_waits_for_the_disk(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct wait request;

    commits_hold();
    COMMITS(ERR_UNAVAILABLE, ERR_UNAVAILABLE); /* the request's, and the first probe */
    ask_submit(world, &request, "refused");
    commits_await_held();
    commits_let_one();
    assert_int_equal(wait_for(&request), ERR_UNAVAILABLE);
    commits_await_held();
    server_reload(world->server, config_of(world, "scheduling: {policy: first-fit}\n"));
    commits_let_one();
    commits_await_held();
    assert_int_equal(metric(world, "skep_facts_kept"), 1);
    assert_int_equal(metric(world, "skep_store_writable"), 0);
    commits_release();
    metric_await(world, "skep_facts_kept", 0);
    metric_await(world, "skep_store_writable", 1);
    /* by HiveD there would be no such virtual cluster */
    assert_int_equal(submit(world, job_text(world, "a", "defaults: {virtualCluster: any}\n"), &job),
                     0);
}

static void a_reload_that_the_core_refuses_changes_nothing(void **state)
{
    struct world *world = *state;
    struct server_config *config = config_of(world, "scheduling: {finishedKeepSeconds: 9}\n");
    struct job_id job;

    config->core.policy = "no such policy";
    server_reload(world->server, config);
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    /* a core made anew is one of the configuration in force */
    COMMITS(ERR_UNAVAILABLE);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_SETTING,
                                                         .setting = {"test", TEXT("x")}}),
                     ERR_UNAVAILABLE);
    metric_await(world, "skep_store_writable", 1);
    assert_int_equal(submit(world, job_text(world, "b", ""), &job), 0);
}

static int64_t reloads_noted(struct world *world)
{
    return number(world, "SELECT count(*) FROM audit WHERE subject_kind = 'configuration'");
}

/* It is in force at once, so that its record is what is left to store; likewise of a refusal. */
static void the_record_of_a_reload_waits_for_the_disk(void **state)
{
    struct world *world = *state;
    struct wait refused;

    for (int i = 0; i < 2; i++) {
        struct server_config *config = config_of(world, "scheduling: {policy: first-fit}\n");
        if (i == 1)
            config->core.policy = "no such policy";
        commits_hold();
        COMMITS(ERR_UNAVAILABLE);
        server_reload(world->server, config);
        commits_await_held();
        ask_change(world, &refused);
        commits_release();
        assert_int_equal(wait_for(&refused), ERR_UNAVAILABLE);
        metric_await(world, "skep_store_writable", 1);
        settle(world);
        assert_int_equal(reloads_noted(world), i + 1);
    }
    assert_int_equal(number(world, "SELECT count(*) FROM audit WHERE subject_kind = "
                                   "'configuration' AND code <> 0"),
                     1);
}

static const struct CMUnitTest tests[] = {
    ROUNDS(a_disk_that_fails_in_between_keeps_facts),
    ROUNDS(a_job_whose_answer_was_lost_is_found_and_runs_once),
    ROUNDS(a_reload_waits_for_the_disk),
    ROUNDS(a_reload_that_the_core_refuses_changes_nothing),
    ROUNDS(the_record_of_a_reload_waits_for_the_disk),
};
UNIT_FILE(tests, world_begin, NULL);
