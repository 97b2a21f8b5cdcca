/* The watch for what needs attention: what it finds, and what a restart leaves of it. */
#include "unit.h"
#include "world.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "server/alert_watch.h"
#include "server/state.h"
#include "sys/clock.h"

static struct alert *alerts;
static size_t count;

static const char *node_name; /* the only one that the engine has */

static int setup_node(void **state)
{
    const int code = setup(state);
    struct world *world = *state;
    struct store_nodes nodes;
    metric_await(world, "skep_nodes", 1); /* is counted once its row is stored */
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    assert_int_equal(store_nodes(reader, &world->arena, &nodes, &world->err), 0);
    assert_int_equal(nodes.count, 1);
    node_name = nodes.items[0].facts.name;
    world->service->reader_put(world->service->context, reader);
    return code;
}

static void list(struct world *world)
{
    assert_int_equal(world->service->alerts(world->service->context, &world->arena, &alerts, &count,
                                            &world->err),
                     0);
}

static const struct alert *alert_of(const char *name, const char *value)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(alerts[i].name, name) == 0 && strcmp(alerts[i].labels[0].value, value) == 0)
            return &alerts[i];
    return NULL;
}

static int node_act(struct world *world, enum service_node_action action, const char *reason)
{
    struct wait wait;
    struct service_reply reply = wait_init(&wait);
    int code = world->service->node_act(world->service->context, action, "admin", node_name,
                                        text_of(reason), reply, &world->err);
    return code < 0 ? code : wait_for(&wait);
}

static void a_cordon_is_told_since_when(void **state)
{
    struct world *world = *state;
    const int64_t before_ms = clock_unix_ms();
    assert_int_equal(node_act(world, SERVICE_NODE_CORDON, "a disk is replaced"), 0);
    list(world);
    const struct alert *alert = alert_of("NodeCordoned", node_name);
    assert_non_null(alert);
    assert_string_equal(alert->summary, arena_format(&world->arena,
                                                     "no task is started on node %s: cordoned by "
                                                     "admin: a disk is replaced",
                                                     node_name));
    assert_string_equal(alert->severity, "warn");
    assert_int_equal(alert->ended_ms, 0);
    const int64_t since_ms = alert->since_ms;
    assert_in_range(since_ms, before_ms - 1000, clock_unix_ms() + 1000);

    world_stop(world);
    world_start(world);
    list(world);
    alert = alert_of("NodeCordoned", node_name);
    assert_non_null(alert);
    assert_int_equal(alert->since_ms, since_ms);
    assert_int_equal(node_act(world, SERVICE_NODE_UNCORDON, ""), 0);
    list(world);
    alert = alert_of("NodeCordoned", node_name);
    assert_non_null(alert);
    const int64_t ended_ms = alert->ended_ms;
    assert_true(ended_ms >= since_ms);

    world_stop(world);
    world_start(world);
    list(world); /* that it was there is still known */
    alert = alert_of("NodeCordoned", node_name);
    assert_non_null(alert);
    assert_int_equal(alert->since_ms, since_ms);
    assert_int_equal(alert->ended_ms, ended_ms);
}

/* A node that is lost has no time of its own: it is that of the round. */
static void a_lost_node_is_told(void **state)
{
    struct world *world = *state;
    struct alert_watch *watch = world->server->alert_watch;
    const int64_t now_ms = clock_unix_ms() + 3600 * 1000;
    assert_int_equal(alert_watch_round(watch, now_ms, &world->err), 0);
    struct engine_event event = {
        .kind = ENGINE_NODE_LOST,
        .node = &(struct node_facts){
            .name = node_name, .address = "", .gpu_type = "", .reason = "unplugged"}};
    struct engine_sink sink = server_sink(world->server, 0);
    sink.post(sink.context, &event);
    /* answered after it */
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_SETTING,
                                                         .setting = {"test", TEXT("x")}}),
                     0);
    assert_int_equal(alert_watch_round(watch, now_ms + 1, &world->err), 0);
    list(world);
    const struct alert *alert = alert_of("NodeNotReady", node_name);
    assert_non_null(alert);
    assert_non_null(
        strstr(alert->summary, arena_format(&world->arena, "node %s is lost", node_name)));
    assert_string_equal(alert->severity, "error");
    assert_int_equal(alert->ended_ms, 0);
}

static void a_server_that_ends_finds_nothing(void **state)
{
    struct world *world = *state;
    list(world);
    const struct alert *before = alerts;
    const size_t before_count = count;
    server_drain(world->server);
    list(world);
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < before_count && strcmp(before[at].name, alerts[i].name) != 0)
            at++;
        assert_true(at < before_count);
    }
    assert_null(alert_of("PaiServicePodNotReady", "running"));
}

/* What is stored and cannot be read is no reason not to start. */
/* One asks for a virtual cluster: administrators are told until it is decided. */
static void a_request_is_told_until_it_is_decided(void **state)
{
    struct world *world = *state;
    struct store_change ask = {.kind = CHANGE_REQUEST_ADD,
                               .request.row = {.id = "r1",
                                               .user = "admin",
                                               .virtual_cluster = "vc3",
                                               .why = "a course",
                                               .asked_ms = clock_unix_ms() - 5000}};
    assert_int_equal(change(world, ask), 0);
    const struct store_change account = {.kind = CHANGE_REQUEST_ADD,
                                         .request.row = {.id = "r2",
                                                         .kind = REQUEST_ACCOUNT,
                                                         .user = "dora",
                                                         .email = "dora@example.org",
                                                         .password_hash = "hash",
                                                         .address = "10.0.0.7",
                                                         .why = "",
                                                         .asked_ms = clock_unix_ms()}};
    assert_int_equal(change(world, account), 0);
    struct alert_watch *watch = world->server->alert_watch;
    assert_int_equal(alert_watch_round(watch, clock_unix_ms(), &world->err), 0);
    list(world);
    const struct alert *alert = alert_of("RequestWaits", "r1");
    assert_non_null(alert);
    assert_string_equal(alert->summary, "admin asks for the virtual cluster vc3");
    assert_int_equal(alert->since_ms, ask.request.row.asked_ms);
    alert = alert_of("RequestWaits", "r2");
    assert_non_null(alert);
    assert_string_equal(alert->summary, "a visitor asks for an account of the name dora");

    const struct store_change refuse = {.kind = CHANGE_REQUEST_ACT,
                                        .request = {.row = {.id = "r1",
                                                            .decided_ms = clock_unix_ms(),
                                                            .decider = "admin",
                                                            .answer = "full",
                                                            .group = ""},
                                                    .act = REQUEST_REFUSE}};
    assert_int_equal(change(world, refuse), 0);
    assert_int_equal(alert_watch_round(watch, clock_unix_ms(), &world->err), 0);
    list(world);
    assert_true(alert_of("RequestWaits", "r1")->ended_ms > 0);
    assert_int_equal(alert_of("RequestWaits", "r2")->ended_ms, 0);
}

static void damage_is_passed_over(void **state)
{
    struct world *world = *state;
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_SETTING,
                                                         .setting = {"alerts", TEXT("alt1x")}}),
                     0);
    world_stop(world);
    world_start(world);
    list(world);
    assert_null(alert_of("NodeCordoned", node_name));
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup_node, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_cordon_is_told_since_when),
    WORLD(a_lost_node_is_told),
    WORLD(a_server_that_ends_finds_nothing),
    WORLD(a_request_is_told_until_it_is_decided),
    WORLD(damage_is_passed_over),
};
UNIT_FILE(tests, world_begin, NULL);
