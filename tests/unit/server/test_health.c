/* What the server tells of itself: that it is alive and ready, and its figures. */
#include "unit.h"
#include "world.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "server/server.h"
#include "server/state.h"

static void readiness_and_metrics_speak(void **state)
{
    struct world *world = *state;
    struct service_check checks[SERVICE_CHECKS_MAX];
    struct job_id job;
    struct buf text = BUF_INIT;
    size_t count;

    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    count = world->service->ready(world->service->context, checks);
    for (size_t i = 0; i < count; i++)
        assert_true(checks[i].is_ok);
    assert_true(world->service->is_alive(world->service->context));
    world->service->metrics(world->service->context, &text);
    assert_non_null(strstr(buf_cstr(&text), "\nskep_creates_total 2\n"));
    assert_non_null(strstr(buf_cstr(&text), "skep_request_seconds_count 1\n"));
    buf_release(&text);
    server_drain(world->server);
    assert_int_equal(submit(world, job_text(world, "b", ""), &job), ERR_UNAVAILABLE);
    count = world->service->ready(world->service->context, checks);
    assert_false(checks[count - 1].is_ok);
}

static const char *check_text(const struct world *world, const char *name, char text[256])
{
    struct service_check checks[SERVICE_CHECKS_MAX];
    const size_t count = world->service->ready(world->service->context, checks);
    for (size_t i = 0; i < count; i++)
        if (strcmp(checks[i].name, name) == 0) {
            snprintf(text, 256, "%s", checks[i].text);
            return text;
        }
    fail_msg("no check %s", name);
    return NULL;
}

/* Whatever the numbers are. */
static void readiness_speaks_in_sentences(void **state)
{
    struct world *world = *state;
    char text[256];

    for (int nodes = 1; nodes <= 2; nodes++) {
        world_stop(world);
        world->engine = nodes == 1 ? "nodes: 1" : "nodes: 2";
        world_start(world);
        metric_await(world, "skep_nodes", (uint64_t)nodes);
        while (strstr(check_text(world, "engine", text), ", 1 command waits"))
            sched_yield(); /* of the beginning */
        assert_string_equal(check_text(world, "engine", text),
                            nodes == 1 ? "1 node, 0 commands wait" : "2 nodes, 0 commands wait");
    }
    assert_non_null(strstr(check_text(world, "core", text), "0 of "));
    assert_non_null(strstr(text, " requests wait"));
}

static const struct service_check *check_find(const struct service_check *checks, size_t count,
                                              const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(checks[i].name, name) == 0)
            return &checks[i];
    fail_msg("no check %s", name);
    return NULL;
}

/* Nothing can run then, which must not look as if all were well; what is asked for waits. */
static void an_only_machine_that_is_not_healthy_is_told(void **state)
{
    struct world *world = *state;
    struct engine_sink sink = server_sink(world->server, 0);
    struct service_check checks[SERVICE_CHECKS_MAX];
    struct store_nodes nodes;

    metric_await(world, "skep_nodes", 1);
    size_t count = world->service->ready(world->service->context, checks);
    assert_false(check_find(checks, count, "engine fake")->is_degraded);
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    assert_int_equal(store_nodes(reader, &world->arena, &nodes, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    struct node_facts facts = nodes.items[0].facts;
    facts.is_healthy = false;
    facts.reason = "the disk of the data directory is nearly full";
    sink.post(sink.context, &(struct engine_event){.kind = ENGINE_NODE, .node = &facts});
    metric_await(world, "skep_engine_nodes_healthy{engine=\"fake\"}", 0);
    count = world->service->ready(world->service->context, checks);
    const struct service_check *check = check_find(checks, count, "engine fake");
    assert_true(check->is_degraded && check->is_ok);
    assert_non_null(strstr(check->text, "1 node, 0 healthy"));
    assert_non_null(strstr(check->text, "nearly full"));
}

/* What the core counts, of a job whose tasks run and of one that waits. */
static void the_use_of_the_cluster_is_measured(void **state)
{
    struct world *world = *state;
    struct job_id job;

    world_stop(world);
    world->engine = "nodes: 1, gpus: 4, cpu: 8, runMilliseconds: 600000";
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "runs", ""), &job), 0);
    wait_until_tasks_run(world, job);
    const struct store_tasks tasks = tasks_of(world, job);
    assert_true(metric(world, "skep_events_total") > 0);
    metric_await(world, "skep_jobs_live", 1);
    metric_await(world, "skep_jobs_queued", 0);
    metric_await(world, "skep_tasks_live", tasks.count);
    metric_await(world, "skep_nodes", 1);
    metric_await(world, "skep_gpus", 4);
    metric_await(world, "skep_gpus_used", 0);
    metric_await(world, "skep_store_writable", 1);
    assert_true(metric(world, "skep_store_commits_total") > 0);
    assert_true(metric(world, "skep_store_records_total") > 0);
    assert_true(metric(world, "skep_store_database_bytes") > 0);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static const struct CMUnitTest tests[] = {
    WORLD(readiness_and_metrics_speak),
    WORLD(readiness_speaks_in_sentences),
    WORLD(an_only_machine_that_is_not_healthy_is_told),
    WORLD(the_use_of_the_cluster_is_measured),
};
UNIT_FILE(tests, world_begin, NULL);
