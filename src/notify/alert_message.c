#include "notify/alert_message.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/utc.h"
#include "notify/mail_text.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Where the portal shows more. */
static void page_write(const struct alert *alert, const char *portal_url, struct buf *out)
{
    static const struct {
        const char *label, *page;
    } pages[] = {{"job_name", "/jobs/"},
                 {"node_name", "/cluster?tab=nodes"},
                 {"virtual_cluster", "/cluster"},
                 {"name", "/admin?tab=services"}};
    buf_string(out, portal_url);
    for (size_t i = 0; i < COUNT_OF(pages) && alert->labels[0].key; i++) {
        if (strcmp(alert->labels[0].key, pages[i].label) != 0)
            continue;
        buf_string(out, pages[i].page);
        if (i == 0)
            notify_path_write(alert->labels[0].value, out);
        return;
    }
    buf_char(out, '/');
}

/* --- the mail --- */

static void identity_write(const struct alert *alert, struct buf *out)
{
    buf_format(out, "alert.%016" PRIx64 ".%s.%" PRId64, alert_fingerprint(alert),
               alert->ended_ms ? "ended" : alert->severity,
               alert->ended_ms ? alert->ended_ms : alert->since_ms);
}

static void title_write(const struct alert *alert, struct buf *out)
{
    buf_format(out, "%s: %s", alert->ended_ms ? "ended" : alert->severity, alert->summary);
}

static void subject_write(const struct notify_alert_letter *letter, struct buf *out)
{
    size_t ended = 0;
    for (size_t i = 0; i < letter->count; i++)
        ended += letter->alerts[i]->ended_ms != 0;
    const size_t begun = letter->count - ended;
    buf_string(out, "[Skep] ");
    if (letter->count == 1)
        title_write(letter->alerts[0], out);
    else if (begun > 0 && ended > 0)
        buf_format(out, "%zu alert%s, %zu ended", begun, begun > 1 ? "s" : "", ended);
    else
        buf_format(out, "%zu alerts%s", letter->count, ended > 0 ? " ended" : "");
}

static void alert_describe(const struct notify_alert_letter *letter, const struct alert *alert,
                           struct buf *body)
{
    const size_t labels = alert_label_count(alert);
    char at[UTC_SIZE];
    buf_format(body, "Alert:            %s\n", alert->name);
    buf_format(body, "Severity:         %s\n", alert->severity);
    for (size_t i = 0; i < labels; i++)
        buf_format(body, "%s:%*s%s\n", alert->labels[i].key,
                   (int)(17 - strlen(alert->labels[i].key)), "", alert->labels[i].value);
    buf_format(body, "What:             %s\n", alert->summary);
    buf_format(body, "Since:            %s\n", utc_text(alert->since_ms, at));
    if (alert->ended_ms)
        buf_format(body, "Ended:            %s\n", utc_text(alert->ended_ms, at));
    if (letter->portal_url) {
        buf_string(body, "Page:             ");
        page_write(alert, letter->portal_url, body);
        buf_char(body, '\n');
    }
}

void notify_alert_letter_write(const struct notify_alert_letter *letter, struct buf *out)
{
    cleanup_buf struct buf subject = BUF_INIT, id = BUF_INIT, body = BUF_INIT;
    assert(letter->count > 0);
    subject_write(letter, &subject);
    identity_write(letter->alerts[0], &id);
    if (letter->count > 1) {
        buf_char(&id, '-');
        identity_write(letter->alerts[letter->count - 1], &id);
    }
    for (size_t i = 0; i < letter->count; i++) {
        if (letter->count > 1) {
            title_write(letter->alerts[i], &body);
            buf_string(&body, "\n\n");
        }
        alert_describe(letter, letter->alerts[i], &body);
        buf_char(&body, '\n');
    }
    buf_string(&body, "You get this mail because Skep's configuration names your address "
                      "(notifications.alerts.mail).\n");
    const struct notify_mail_head head = {.from = letter->from,
                                          .to = letter->to,
                                          .subject = buf_as_text(&subject),
                                          .id = buf_cstr(&id),
                                          .now_ms = letter->now_ms};
    notify_mail_head_write(&head, out);
    notify_mail_body_write(buf_as_text(&body), out);
}

/* --- the webhook --- */

static void labels_write(struct json_writer *json, const struct alert *alert)
{
    const size_t labels = alert_label_count(alert);
    json_key(json, "labels");
    json_object(json);
    json_key_string(json, "alertname", alert->name);
    json_key_string(json, "severity", alert->severity);
    for (size_t i = 0; i < labels; i++)
        json_key_string(json, alert->labels[i].key, alert->labels[i].value);
    json_object_end(json);
}

/* Alerts of one name have the same keys. */
static void common_write(struct json_writer *json, const struct notify_alert_group *group)
{
    const struct alert *first = group->alerts[0];
    const size_t labels = alert_label_count(first);
    bool has_severity = true, has_label[ALERT_LABELS] = {true, true};
    assert(labels <= ALERT_LABELS);
    for (size_t i = 1; i < group->count; i++) {
        const struct alert *other = group->alerts[i];
        assert(strcmp(first->name, other->name) == 0 && alert_label_count(other) == labels);
        has_severity = has_severity && strcmp(first->severity, other->severity) == 0;
        for (size_t k = 0; k < labels; k++)
            has_label[k] =
                has_label[k] && strcmp(first->labels[k].value, other->labels[k].value) == 0;
    }
    json_key(json, "commonLabels");
    json_object(json);
    json_key_string(json, "alertname", first->name);
    if (has_severity)
        json_key_string(json, "severity", first->severity);
    for (size_t k = 0; k < labels; k++)
        if (has_label[k])
            json_key_string(json, first->labels[k].key, first->labels[k].value);
    json_object_end(json);
}

static void alert_write(struct json_writer *json, const struct alert *alert, const char *portal_url)
{
    cleanup_buf struct buf page = BUF_INIT;
    char at[UTC_SIZE], fingerprint[20];
    json_object(json);
    json_key_string(json, "status", alert->ended_ms ? "resolved" : "firing");
    labels_write(json, alert);
    json_key(json, "annotations");
    json_object(json);
    json_key_string(json, "summary", alert->summary);
    json_object_end(json);
    json_key_string(json, "startsAt", utc_instant(alert->since_ms, at));
    json_key_string(json, "endsAt",
                    alert->ended_ms ? utc_instant(alert->ended_ms, at) : "0001-01-01T00:00:00Z");
    if (portal_url)
        page_write(alert, portal_url, &page);
    json_key_text(json, "generatorURL", buf_as_text(&page));
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, alert_fingerprint(alert));
    json_key_string(json, "fingerprint", fingerprint);
    json_object_end(json);
}

void notify_alert_group_write(const struct notify_alert_group *group, struct buf *out)
{
    cleanup_buf struct buf key = BUF_INIT;
    struct json_writer json;
    assert(group->count > 0);
    const char *name = group->alerts[0]->name;
    bool stands = group->left_out > 0;
    for (size_t i = 0; i < group->count; i++)
        stands = stands || !group->alerts[i]->ended_ms;
    buf_format(&key, "{}:{alertname=\"%s\"}", name);
    json_init(&json, out);
    json_object(&json);
    json_key_string(&json, "version", "4");
    json_key_text(&json, "groupKey", buf_as_text(&key));
    json_key_int(&json, "truncatedAlerts", (int64_t)group->left_out);
    json_key_string(&json, "status", stands ? "firing" : "resolved");
    json_key_string(&json, "receiver", "skep");
    json_key(&json, "groupLabels");
    json_object(&json);
    json_key_string(&json, "alertname", name);
    json_object_end(&json);
    common_write(&json, group);
    json_key(&json, "commonAnnotations");
    json_object(&json);
    json_object_end(&json);
    json_key_string(&json, "externalURL", group->portal_url ? group->portal_url : "");
    json_key(&json, "alerts");
    json_array(&json);
    for (size_t i = 0; i < group->count; i++)
        alert_write(&json, group->alerts[i], group->portal_url);
    json_array_end(&json);
    json_object_end(&json);
}
