/* OpenPAI's /alerts: what needs somebody's attention now, in Alertmanager's shape.
 *
 * Made of the state of this instant: nodes, GPUs, the server's own checks. Nothing is stored, so
 * that an alert ends as soon as what it is about has ended. */
#include "api/handlers.h"
#include "api/page.h"
#include "base/utc.h"
#include "engine/engine.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <sodium.h>
#include <stdio.h>

enum { FINGERPRINT_SIZE = 17 };

struct alert {
    const char *name, *severity;
    const char *label, *value;       /* beside the name: whose it is; NULL: none */
    const char *other, *other_value; /* likewise */
    const char *summary;
};

struct alerts {
    struct alert *items;
    size_t count, room;
};

static void alert_add(struct alerts *alerts, struct alert alert)
{
    *ARRAY_ADD(alerts) = alert;
}

/* The same alert has the same number, as long as it lasts. */
static void fingerprint(const struct alert *alert, char hex[FINGERPRINT_SIZE])
{
    unsigned char hash[crypto_generichash_BYTES_MIN];
    char text[512];
    int length =
        snprintf(text, sizeof text, "%s|%s|%s", alert->name, alert->value ? alert->value : "",
                 alert->other_value ? alert->other_value : "");
    size_t size = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    crypto_generichash(hash, sizeof hash, (const unsigned char *)text, size, NULL, 0);
    sodium_bin2hex(hex, FINGERPRINT_SIZE, hash, 8);
}

static void alert_json(struct json_writer *json, const struct alert *alert)
{
    static const char *const receivers[] = {"webportal-notification"};
    char id[FINGERPRINT_SIZE];
    fingerprint(alert, id);
    json_object(json);
    json_key(json, "labels");
    json_object(json);
    json_key_string(json, "alertname", alert->name);
    json_key_string(json, "severity", alert->severity);
    if (alert->label)
        json_key_string(json, alert->label, alert->value);
    if (alert->other)
        json_key_string(json, alert->other, alert->other_value);
    json_object_end(json);
    json_key(json, "annotations");
    json_object(json);
    json_key_string(json, "summary", alert->summary);
    json_object_end(json);
    json_key_null(json, "startsAt"); /* not kept */
    json_key_string(json, "endsAt", "0001-01-01T00:00:00Z");
    json_key_string(json, "generatorURL", "");
    json_key(json, "status");
    json_object(json);
    json_key_string(json, "state", "active");
    json_key_strings(json, "silencedBy", NULL, 0);
    json_key_strings(json, "inhibitedBy", NULL, 0);
    json_object_end(json);
    json_key_strings(json, "receivers", receivers, 1);
    json_key_string(json, "fingerprint", id);
    json_object_end(json);
}

static void node_alerts(struct call *call, struct alerts *alerts, const struct node_record *node)
{
    const char *name = node->facts.name;
    const char *why = node->facts.reason && node->facts.reason[0] ? node->facts.reason : "";
    struct alert alert = {.label = "node_name", .value = name};
    if (node->is_lost || !node->facts.is_healthy) {
        alert.name = "NodeNotReady";
        alert.severity = "error";
        alert.summary =
            arena_format(call->arena, "node %s is %s%s%s", name,
                         node->is_lost ? "lost" : "not healthy", why[0] ? ": " : "", why);
        alert_add(alerts, alert);
    }
    if (node->is_cordoned) {
        alert.name = "NodeCordoned";
        alert.severity = "warn";
        if (node->closing.is_closed)
            why = arena_format(call->arena, "cordoned by %s%s%s", node->closing.by,
                               node->closing.why[0] ? ": " : "", node->closing.why);
        alert.summary = arena_format(call->arena, "no task is started on node %s%s%s", name,
                                     why[0] ? ": " : "", why);
        alert_add(alerts, alert);
    }
}

static void gpu_alerts(struct call *call, struct alerts *alerts)
{
    const struct service *service = call->api->service;
    const struct engine_gpu *gpus;
    size_t count;
    service->gpus(service->context, call->arena, &gpus, &count);
    for (size_t i = 0; i < count; i++) {
        const struct engine_gpu *gpu = &gpus[i];
        struct alert alert = {.severity = "error",
                              .label = "node_name",
                              .value = gpu->node,
                              .other = "minor_number",
                              .other_value = arena_format(call->arena, "%u", gpu->index)};
        if (gpu->is_lost) {
            alert.name = "NvidiaGpuLost";
            alert.summary =
                arena_format(call->arena, "GPU %u of node %s is lost", gpu->index, gpu->node);
            alert_add(alerts, alert);
        }
        if (gpu->has_errors && gpu->ecc_errors > 0) {
            alert.name = "NvidiaSmiDoubleEccError";
            alert.summary =
                arena_format(call->arena, "GPU %u of node %s has had %llu errors of its memory",
                             gpu->index, gpu->node, (unsigned long long)gpu->ecc_errors);
            alert_add(alerts, alert);
        }
    }
}

static void server_alerts(struct call *call, struct alerts *alerts)
{
    struct service *service = call->api->service;
    struct service_check *checks =
        ARENA_ARRAY(call->arena, struct service_check, SERVICE_CHECKS_MAX);
    size_t count = service->ready(service->context, checks);
    for (size_t i = 0; i < count; i++) {
        struct alert alert = {.name = "PaiServicePodNotReady",
                              .severity = checks[i].is_ok ? "warn" : "error",
                              .label = "name",
                              .value = checks[i].name,
                              .summary = checks[i].text};
        if (!checks[i].is_ok || checks[i].is_degraded)
            alert_add(alerts, alert);
    }
}

static void alerts_json(struct list_page *page, const struct alerts *alerts)
{
    struct arena *arena = page->call->arena;
    struct text *keys = ARENA_ARRAY(arena, struct text, alerts->count + 1);
    for (size_t i = 0; i < alerts->count; i++) {
        char *key = arena_alloc(arena, FINGERPRINT_SIZE);
        fingerprint(&alerts->items[i], key);
        keys[i] = text_of(key);
    }
    const size_t *rows, count = page_pick(page, keys, alerts->count, false, &rows);
    assert(count <= alerts->count);
    struct json_writer json;
    call_json(page->call, 200, &json);
    page_begin(page, &json);
    for (size_t i = 0; i < count; i++)
        alert_json(&json, &alerts->items[rows[i]]);
    page_end(page, &json);
}

/* Those about machines are the admins': nothing in them is about a user's job. */
int handle_alert_list(struct call *call)
{
    struct store_nodes nodes = {0};
    bool is_admin = call_can(call, AUTH_ADMINISTER, NULL);
    struct list_page page;
    int code = page_parse(call, &page, "alerts", NULL);
    if (!code && !call_reader(call))
        code = call->err.code;
    if (!code && is_admin)
        code = store_nodes(call->reader, call->arena, &nodes, &call->err);
    if (code)
        return code;
    cleanup_array struct alerts alerts = {0};
    for (size_t i = 0; i < nodes.count; i++)
        node_alerts(call, &alerts, &nodes.items[i]);
    if (is_admin) {
        gpu_alerts(call, &alerts);
        server_alerts(call, &alerts);
    }
    alerts_json(&page, &alerts);
    return 0;
}
