/* Alerts told to operators: from the node to a mail server and a webhook, over restarts, and while
 * those are away.
 *
 * Covers: src/server/notify_sender.c */
#include "../notify/peer.h"
#include "unit.h"
#include "world.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/state.h"

static struct peer mail, hook;
static char extra[1200];
static const char *node_name; /* the only one that the engine has */

#define SMTP "smtp: {url: '%s', from: skep@example.org, startTls: false}"

static const char *config_text(char *text, size_t size, const char *alerts)
{
    snprintf(text, size,
             "notifications: {portalUrl: 'https://skep.example.org/', " SMTP
             ", webhooks: [{name: ops, url: '%s', events: [], alerts: true}], alerts: {%s}}\n",
             mail.url, hook.url, alerts);
    return text;
}

static void node_find(struct world *world)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_nodes nodes;
    do
        assert_int_equal(store_nodes(reader, &world->arena, &nodes, &world->err), 0);
    while (nodes.count == 0 && sched_yield() == 0);
    node_name = nodes.items[0].facts.name;
    world->service->reader_put(world->service->context, reader);
}

static int setup_with_alerts(void **state, const char *alerts)
{
    peer_begin(&mail, PEER_SMTP);
    peer_begin(&hook, PEER_HTTP);
    config_text(extra, sizeof extra, alerts);
    const int code = setup_with(state, "runMilliseconds: 30", extra);
    node_find(*state);
    return code;
}

static int setup_told(void **state)
{
    return setup_with_alerts(state, "mail: [ops@example.org], afterSeconds: 0");
}

static int setup_errors(void **state)
{
    return setup_with_alerts(state, "mail: [ops@example.org], severity: error, afterSeconds: 0");
}

static int teardown_told(void **state)
{
    const int code = teardown(state);
    peer_end(&mail);
    peer_end(&hook);
    return code;
}

static int node_act(struct world *world, enum service_node_action action, const char *reason)
{
    struct wait wait;
    struct service_reply reply = wait_init(&wait);
    int code = world->service->node_act(world->service->context, action, "admin", node_name,
                                        text_of(reason), reply, &world->err);
    return code < 0 ? code : wait_for(&wait);
}

/* How many messages that have come say both. Those of one moment are one: other alerts, as of a
 * server that has just begun, may stand in it, too. */
static size_t said(struct peer *peer, const char *text, const char *more)
{
    size_t found = 0;
    pthread_mutex_lock(&peer->lock);
    for (size_t i = 0; i < peer->count; i++)
        found += strstr(peer->items[i]->text.at, text) && strstr(peer->items[i]->text.at, more);
    pthread_mutex_unlock(&peer->lock);
    return found;
}

static void await_times(struct peer *peer, size_t times, const char *text, const char *more)
{
    for (size_t count = 1; said(peer, text, more) < times; count++)
        assert_non_null(peer_await(peer, count));
}

static void await(struct peer *peer, const char *text, const char *more)
{
    await_times(peer, 1, text, more);
}

#define CORDONED "\"alertname\":\"NodeCordoned\""
#define FIRING   "\"status\":\"firing\""
#define RESOLVED "\"status\":\"resolved\""

static void cordon_told(struct world *world)
{
    assert_int_equal(node_act(world, SERVICE_NODE_CORDON, "first"), 0);
    await(&mail, "warn: no task is started on node", "first");
    await(&hook, CORDONED, FIRING);
}

static void a_cordon_and_its_end_are_told(void **state)
{
    struct world *world = *state;
    cordon_told(world);
    assert_int_equal(said(&hook, CORDONED, RESOLVED), 0);
    assert_int_equal(node_act(world, SERVICE_NODE_UNCORDON, ""), 0);
    await(&mail, "ended: no task is started on node", "Ended:");
    await(&hook, CORDONED, RESOLVED);
    metric_await(world, "skep_alert_notices_waiting", 0);
    assert_true(metric(world, "skep_alert_notices_sent_total") >= 4);
    assert_int_equal(metric(world, "skep_alert_notices_dropped_total"), 0);
    assert_int_equal(said(&mail, "warn: no task is started", ""), 1);
    for (size_t i = 0; i < mail.count; i++)
        assert_string_equal(mail.items[i]->recipient, "<ops@example.org>");
}

/* Until what is stored names the cordon, or nothing is stored. */
static void stored_await(struct world *world, bool is_there)
{
    for (;;) {
        struct text value = {0};
        struct store_reader *reader =
            world->service->reader_get(world->service->context, &world->err);
        const int code = store_setting(reader, "alerts.told", &world->arena, &value, &world->err);
        world->service->reader_put(world->service->context, reader);
        assert_true(code == 0 || code == ERR_NOT_FOUND);
        if (is_there ? text_find(value, TEXT("NodeCordoned")) != SIZE_MAX : code == ERR_NOT_FOUND)
            return;
        sched_yield();
    }
}

static void a_restart_repeats_nothing_and_forgets_no_end(void **state)
{
    struct world *world = *state;
    cordon_told(world);
    metric_await(world, "skep_alert_notices_waiting", 0);
    world_stop(world);
    world_start(world);
    assert_int_equal(node_act(world, SERVICE_NODE_UNCORDON, ""), 0);
    await(&hook, CORDONED, RESOLVED);
    await(&mail, "ended: no task is started on node", "");
    assert_int_equal(said(&hook, CORDONED, FIRING), 1);
    assert_int_equal(said(&mail, "warn: no task is started", ""), 1);
    stored_await(world, false); /* nobody has to be told of anything */
}

static void damage_is_passed_over(void **state)
{
    struct world *world = *state;
    cordon_told(world);
    metric_await(world, "skep_alert_notices_waiting", 0);
    world_stop(world);
    assert_int_equal(sql(world, "UPDATE settings SET value = x'00' WHERE key = 'alerts.told'"), 0);
    world_start(world);
    await_times(&hook, 2, CORDONED, FIRING); /* told again */
}

/* What cannot be stored is told all the same, and stored when it can be. */
static void a_store_that_fails_hinders_nothing(void **state)
{
    struct world *world = *state;
    assert_int_equal(sql(world, "CREATE TRIGGER refusal BEFORE INSERT ON settings WHEN NEW.key = "
                                "'alerts.told' BEGIN SELECT RAISE(ABORT, 'the test says so'); END"),
                     0);
    cordon_told(world);
    assert_int_equal(sql(world, "DROP TRIGGER refusal"), 0);
    stored_await(world, true);
    assert_int_equal(said(&hook, CORDONED, FIRING), 1);
}

static void who_refuses_is_not_asked_again(void **state)
{
    struct world *world = *state;
    peer_answers(&mail, 0, 0, 550, 0, 0);
    assert_int_equal(node_act(world, SERVICE_NODE_CORDON, "first"), 0);
    await(&hook, CORDONED, FIRING);
    metric_await(world, "skep_alert_notices_waiting", 0);
    assert_true(metric(world, "skep_alert_notices_dropped_total") >= 1);
    assert_int_equal(metric(world, "skep_notice_targets_away"), 0);
    assert_int_equal(mail.count, 0);
}

/* It is told of what stands when it is back, not of what has been. */
static void who_is_away_is_told_when_it_is_back(void **state)
{
    struct world *world = *state;
    char text[1200];
    peer_answers(&hook, 0, 0, 0, 0, 503);
    assert_int_equal(node_act(world, SERVICE_NODE_CORDON, "first"), 0);
    await(&mail, "warn: no task is started", "");
    metric_await(world, "skep_notice_targets_away", 1);
    while (metric(world, "skep_alert_notices_waiting") == 0)
        sched_yield();
    peer_answers(&hook, 0, 0, 0, 0, 0);
    server_reload(world->server,
                  config_of(world, config_text(text, sizeof text,
                                               "mail: [ops@example.org], afterSeconds: 0")));
    metric_await(world, "skep_notice_targets_away", 0);
    metric_await(world, "skep_alert_notices_waiting", 0);
    assert_true(said(&hook, CORDONED, FIRING) >= 1);
}

static void a_new_target_is_told_of_what_stands(void **state)
{
    struct world *world = *state;
    char text[1200];
    cordon_told(world);
    server_reload(
        world->server,
        config_of(world,
                  config_text(text, sizeof text,
                              "mail: [night@example.org, ops@example.org], afterSeconds: 0")));
    await(&mail, "To: <night@example.org>", "NodeCordoned");
    assert_int_equal(said(&mail, "To: <ops@example.org>", "NodeCordoned"), 1);
    assert_int_equal(said(&hook, CORDONED, FIRING), 1);
    server_reload(world->server, config_of(world, "")); /* nobody is told any more */
    stored_await(world, false);
}

static void what_has_not_stood_for_long_is_not_told(void **state)
{
    struct world *world = *state;
    char text[1200];
    assert_int_equal(node_act(world, SERVICE_NODE_CORDON, "first"), 0);
    server_reload(world->server,
                  config_of(world, config_text(text, sizeof text, "mail: [night@example.org]")));
    assert_int_equal(node_act(world, SERVICE_NODE_UNCORDON, ""), 0);
    struct alert *alerts;
    size_t count;
    assert_int_equal(world->service->alerts(world->service->context, &world->arena, &alerts, &count,
                                            &world->err),
                     0); /* which looks: the server knows that it has ended */
    server_reload(world->server,
                  config_of(world, config_text(text, sizeof text,
                                               "mail: [ops@example.org], afterSeconds: 0")));
    assert_int_equal(node_act(world, SERVICE_NODE_CORDON, "second"), 0);
    await(&hook, CORDONED, "second");
    assert_int_equal(said(&mail, "first", ""), 0);
    assert_int_equal(said(&hook, "first", ""), 0);
}

#define TOLD(test) cmocka_unit_test_setup_teardown(test, setup_told, teardown_told)
static const struct CMUnitTest tests[] = {
    TOLD(a_cordon_and_its_end_are_told),
    TOLD(a_restart_repeats_nothing_and_forgets_no_end),
    TOLD(damage_is_passed_over),
    TOLD(a_store_that_fails_hinders_nothing),
    TOLD(who_refuses_is_not_asked_again),
    TOLD(who_is_away_is_told_when_it_is_back),
    TOLD(a_new_target_is_told_of_what_stands),
    cmocka_unit_test_setup_teardown(what_has_not_stood_for_long_is_not_told, setup_errors,
                                    teardown_told),
};
UNIT_FILE(tests, world_begin, NULL);
