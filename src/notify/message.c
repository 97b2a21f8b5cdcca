#include "notify/message.h"
#include "base/buf.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/utc.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- the mail --- */

static void identity_write(struct buf *out, const struct notice *notice)
{
    if (notice_is_of_request(notice->kind)) {
        buf_format(out, "request.%s", notice->job_name);
        return;
    }
    buf_format(out, "%" PRIu32 ".%" PRIu32 ".%s.%" PRId64, notice->job.v, notice->attempt,
               notice_kind_name(notice->kind), notice->at_ms);
}

static void head_write(const struct notify_letter *letter, struct text subject, struct buf *out)
{
    cleanup_buf struct buf id = BUF_INIT;
    if (letter->count == 0) {
        buf_format(&id, "trial.%" PRId64, letter->now_ms);
    } else {
        identity_write(&id, letter->notices[0]);
        if (letter->count > 1) {
            buf_char(&id, '-');
            identity_write(&id, letter->notices[letter->count - 1]);
        }
    }
    const struct notify_mail_head head = {.from = letter->from,
                                          .to = letter->to,
                                          .subject = subject,
                                          .id = buf_cstr(&id),
                                          .now_ms = letter->now_ms};
    notify_mail_head_write(&head, out);
}

static void url_write(struct buf *out, const char *portal_url, const struct notice *notice)
{
    buf_format(out, "%s/jobs/", portal_url);
    notify_path_write(notice->user, out);
    buf_char(out, '~');
    notify_path_write(notice->job_name, out);
}

static bool has_end(const struct notice *notice)
{
    return notice->kind == NOTICE_FAILED || notice->kind == NOTICE_RETRIED ||
           notice->kind == NOTICE_STOPPED;
}

static void notice_write(const struct notify_letter *letter, const struct notice *notice,
                         struct buf *body)
{
    char at[UTC_SIZE];
    buf_format(body, "Job:              %s~%s\n", notice->user, notice->job_name);
    buf_format(body, "State:            %s\n", notice_state_name(notice->kind));
    buf_format(body, "When:             %s\n", utc_text(notice->at_ms, at));
    buf_format(body, "Virtual cluster:  %s\n", notice->virtual_cluster);
    if (notice->attempt > 0)
        buf_format(body, "Attempt:          %" PRIu32 "%s\n", notice->attempt,
                   notice->kind == NOTICE_RETRIED ? ", which begins now" : "");
    if (has_end(notice)) {
        buf_format(body, "Exit code:        %" PRId32 "%s%s%s%s\n", notice->code,
                   notice->phrase[0] ? " (" : "", notice->phrase, notice->phrase[0] ? ")" : "",
                   notice->kind == NOTICE_RETRIED ? ", of the attempt before" : "");
        if (notice->why[0])
            buf_format(body, "Why:              %s\n", notice->why);
    }
    if (letter->portal_url) {
        buf_string(body, "Page:             ");
        url_write(body, letter->portal_url, notice);
        buf_char(body, '\n');
    }
}

static void decision_write(const struct notify_letter *letter, const struct notice *notice,
                           struct buf *body)
{
    char at[UTC_SIZE];
    if (notice->virtual_cluster[0])
        buf_format(body, "Request:          for the virtual cluster %s\n", notice->virtual_cluster);
    else
        buf_format(body, "Request:          for the account %s\n", notice->user);
    buf_format(body, "Decision:         %s\n", notice_kind_name(notice->kind));
    buf_format(body, "When:             %s\n", utc_text(notice->at_ms, at));
    if (notice->phrase[0])
        buf_format(body, "Group:            %s, of which you are a member now\n", notice->phrase);
    if (notice->why[0])
        buf_format(body, "Answer:           %s\n", notice->why);
    if (letter->portal_url)
        buf_format(body, "Page:             %s/profile\n", letter->portal_url);
}

/* Why it has come, and how to have none any more. */
static void cause_write(const struct notify_letter *letter, struct buf *body)
{
    bool has_job = false, has_request = false;
    for (size_t i = 0; i < letter->count; i++) {
        const bool is_request = notice_is_of_request(letter->notices[i]->kind);
        has_request = has_request || is_request;
        has_job = has_job || !is_request;
    }
    if (has_job)
        buf_string(body, "You get this mail because the job's file asks for it "
                         "(extras.jobStatusChangeNotification).\n");
    if (has_request)
        buf_string(body,
                   "You are told of decisions on your requests. The profile in the portal turns "
                   "that off (requestDecisionNotification).\n");
}

void notify_letter_write(const struct notify_letter *letter, struct buf *out)
{
    cleanup_buf struct buf subject = BUF_INIT, body = BUF_INIT;
    bool is_of_jobs = true;
    assert(letter->count > 0);
    for (size_t i = 0; i < letter->count; i++)
        is_of_jobs = is_of_jobs && !notice_is_of_request(letter->notices[i]->kind);
    buf_string(&subject, "[Skep] ");
    if (letter->count == 1)
        notice_title(letter->notices[0], &subject);
    else
        buf_format(&subject, "%zu changes of your jobs%s", letter->count,
                   is_of_jobs ? "" : " and requests");
    for (size_t i = 0; i < letter->count; i++) {
        if (letter->count > 1) {
            notice_title(letter->notices[i], &body);
            buf_string(&body, "\n\n");
        }
        if (notice_is_of_request(letter->notices[i]->kind))
            decision_write(letter, letter->notices[i], &body);
        else
            notice_write(letter, letter->notices[i], &body);
        buf_char(&body, '\n');
    }
    cause_write(letter, &body);
    head_write(letter, buf_as_text(&subject), out);
    notify_mail_body_write(buf_as_text(&body), out);
}

void notify_trial_write(const struct notify_letter *letter, struct buf *out)
{
    cleanup_buf struct buf body = BUF_INIT;
    assert(letter->count == 0);
    buf_string(&body, "An administrator of Skep has asked for this mail, to see whether messages "
                      "about jobs arrive.\n");
    if (letter->portal_url)
        buf_format(&body, "Portal: %s/\n", letter->portal_url);
    head_write(letter, TEXT("[Skep] a trial"), out);
    notify_mail_body_write(buf_as_text(&body), out);
}

/* --- the webhook --- */

enum { LABELS = 8 };

struct alert_labels {
    const char *values[LABELS];
    char attempt[12], code[12];
};

static const char *const label_names[LABELS] = {
    "alertname", "severity", "job_name", "username", "state", "virtual_cluster", "attempt", "code"};

static void labels_make(const struct notice *notice, struct buf *name, struct alert_labels *labels)
{
    const bool is_bad = notice->kind == NOTICE_FAILED || notice->kind == NOTICE_RETRIED;
    buf_clear(name);
    buf_format(name, "%s~%s", notice->user, notice->job_name);
    snprintf(labels->attempt, sizeof labels->attempt, "%" PRIu32, notice->attempt);
    snprintf(labels->code, sizeof labels->code, "%" PRId32, notice->code);
    const char *const values[LABELS] = {"PAIJobStatusChange",
                                        is_bad ? "warn" : "info",
                                        buf_cstr(name),
                                        notice->user,
                                        notice_state_name(notice->kind),
                                        notice->virtual_cluster,
                                        labels->attempt,
                                        labels->code};
    memcpy(labels->values, values, sizeof values);
}

static void common_write(struct json_writer *json, const struct notify_alerts_body *alerts)
{
    cleanup_buf struct buf first_name = BUF_INIT, name = BUF_INIT;
    struct alert_labels first, other;
    bool is_common[LABELS];
    memset(is_common, true, sizeof is_common);
    labels_make(alerts->notices[0], &first_name, &first);
    for (size_t i = 1; i < alerts->count; i++) {
        labels_make(alerts->notices[i], &name, &other);
        for (size_t k = 0; k < LABELS; k++)
            is_common[k] = is_common[k] && strcmp(first.values[k], other.values[k]) == 0;
    }
    json_key(json, "commonLabels");
    json_object(json);
    for (size_t k = 0; k < LABELS; k++)
        if (is_common[k])
            json_key_string(json, label_names[k], first.values[k]);
    json_object_end(json);
}

static void alert_write(struct json_writer *json, const struct notify_alerts_body *alerts,
                        const struct notice *notice)
{
    cleanup_buf struct buf name = BUF_INIT, text = BUF_INIT;
    struct alert_labels labels;
    char at[UTC_SIZE], fingerprint[20];
    labels_make(notice, &name, &labels);
    json_object(json);
    json_key_string(json, "status", "firing");
    json_key(json, "labels");
    json_object(json);
    for (size_t k = 0; k < LABELS; k++)
        json_key_string(json, label_names[k], labels.values[k]);
    json_object_end(json);
    json_key(json, "annotations");
    json_object(json);
    notice_title(notice, &text);
    if (has_end(notice) && notice->why[0])
        buf_format(&text, ": %s", notice->why);
    json_key_text(json, "summary", buf_as_text(&text));
    json_object_end(json);
    json_key_string(json, "startsAt", utc_instant(notice->at_ms, at));
    json_key_string(json, "endsAt", "0001-01-01T00:00:00Z");
    buf_clear(&text);
    if (alerts->portal_url)
        url_write(&text, alerts->portal_url, notice);
    json_key_text(json, "generatorURL", buf_as_text(&text));
    buf_clear(&text);
    identity_write(&text, notice);
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, text_hash(buf_as_text(&text), 0));
    json_key_string(json, "fingerprint", fingerprint);
    json_object_end(json);
}

void notify_alerts_write(const struct notify_alerts_body *alerts, struct buf *out)
{
    struct json_writer json;
    assert(alerts->count > 0);
    json_init(&json, out);
    json_object(&json);
    json_key_string(&json, "version", "4");
    json_key_string(&json, "groupKey", "{}:{alertname=\"PAIJobStatusChange\"}");
    json_key_int(&json, "truncatedAlerts", 0);
    json_key_string(&json, "status", "firing");
    json_key_string(&json, "receiver", "skep");
    json_key(&json, "groupLabels");
    json_object(&json);
    json_key_string(&json, "alertname", "PAIJobStatusChange");
    json_object_end(&json);
    common_write(&json, alerts);
    json_key(&json, "commonAnnotations");
    json_object(&json);
    json_object_end(&json);
    json_key_string(&json, "externalURL", alerts->portal_url ? alerts->portal_url : "");
    json_key(&json, "alerts");
    json_array(&json);
    for (size_t i = 0; i < alerts->count; i++)
        alert_write(&json, alerts, alerts->notices[i]);
    json_array_end(&json);
    json_object_end(&json);
}
