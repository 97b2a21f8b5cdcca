/* OpenPAI's /alerts: what needs somebody's attention, or has needed it lately, in Alertmanager's
 * shape. The server keeps since when and until when (model/alert_book.h). */
#include "api/handlers.h"
#include "api/page.h"
#include "base/utc.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FINGERPRINT_SIZE = 17 };

static void fingerprint(const struct alert *alert, char hex[FINGERPRINT_SIZE])
{
    snprintf(hex, FINGERPRINT_SIZE, "%016" PRIx64, alert_fingerprint(alert));
}

static void alert_json(struct json_writer *json, const struct alert *alert)
{
    static const char *const receivers[] = {"webportal-notification"};
    char id[FINGERPRINT_SIZE], at[UTC_SIZE];
    fingerprint(alert, id);
    json_object(json);
    json_key(json, "labels");
    json_object(json);
    json_key_string(json, "alertname", alert->name);
    json_key_string(json, "severity", alert->severity);
    for (size_t i = 0; i < ALERT_LABELS && alert->labels[i].key; i++)
        json_key_string(json, alert->labels[i].key, alert->labels[i].value);
    json_object_end(json);
    json_key(json, "annotations");
    json_object(json);
    json_key_string(json, "summary", alert->summary);
    json_object_end(json);
    json_key_string(json, "startsAt", utc_instant(alert->since_ms, at));
    json_key_string(json, "endsAt",
                    alert->ended_ms ? utc_instant(alert->ended_ms, at) : "0001-01-01T00:00:00Z");
    json_key_string(json, "generatorURL", "");
    json_key(json, "status");
    json_object(json);
    json_key_string(json, "state", alert->ended_ms ? "resolved" : "active");
    json_key_strings(json, "silencedBy", NULL, 0);
    json_key_strings(json, "inhibitedBy", NULL, 0);
    json_object_end(json);
    json_key_strings(json, "receivers", receivers, 1);
    json_key_string(json, "fingerprint", id);
    json_object_end(json);
}

enum state_wanted { WANTS_ACTIVE = 1, WANTS_RESOLVED = 2, WANTS_ALL = 3 };

static int state_parse(struct call *call, unsigned *wanted)
{
    const struct text state = exchange_query(call->exchange, "state");
    if (!state.at || text_is(state, "active"))
        *wanted = WANTS_ACTIVE;
    else if (text_is(state, "resolved"))
        *wanted = WANTS_RESOLVED;
    else if (text_is(state, "all"))
        *wanted = WANTS_ALL;
    else
        return call_fail(call, ERR_INVALID, NULL, "state", "must be active, resolved or all");
    return 0;
}

/* Those about machines are the admins'; users see those of their own jobs. */
static bool is_shown(const struct call *call, bool is_admin, unsigned wanted,
                     const struct alert *alert)
{
    if (!(wanted & (alert->ended_ms ? WANTS_RESOLVED : WANTS_ACTIVE)))
        return false;
    if (is_admin)
        return true;
    for (size_t i = 0; i < ALERT_LABELS && alert->labels[i].key; i++)
        if (strcmp(alert->labels[i].key, "username") == 0)
            return strcmp(alert->labels[i].value, call->caller.auth.user) == 0;
    return false;
}

/* The newest first, and what stands before what has ended. */
static void alerts_json(struct list_page *page, const struct alert *alerts, size_t count)
{
    struct arena *arena = page->call->arena;
    struct text *keys = ARENA_ARRAY(arena, struct text, count + 1);
    for (size_t i = 0; i < count; i++) {
        char id[FINGERPRINT_SIZE];
        fingerprint(&alerts[i], id);
        keys[i] = text_of(arena_format(arena, "%d%016llx%s", !alerts[i].ended_ms,
                                       (unsigned long long)alerts[i].since_ms, id));
    }
    const size_t *rows, shown = page_pick(page, keys, count, true, &rows);
    assert(shown <= count);
    struct json_writer json;
    call_json(page->call, 200, &json);
    page_begin(page, &json);
    for (size_t i = 0; i < shown; i++)
        alert_json(&json, &alerts[rows[i]]);
    page_end(page, &json);
}

int handle_alert_list(struct call *call)
{
    const struct service *service = call->api->service;
    const bool is_admin = call_can(call, AUTH_ADMINISTER, NULL);
    struct list_page page;
    unsigned wanted = 0;
    struct alert *alerts;
    size_t count, kept = 0;
    int code = page_parse(call, &page, "alerts", NULL);
    if (!code)
        code = state_parse(call, &wanted);
    if (!code)
        code = service->alerts(service->context, call->arena, &alerts, &count, &call->err);
    if (code)
        return code;
    for (size_t i = 0; i < count; i++)
        if (is_shown(call, is_admin, wanted, &alerts[i]))
            alerts[kept++] = alerts[i];
    alerts_json(&page, alerts, kept);
    return 0;
}
