/* What is sent about alerts: mails, and bodies of webhooks. */
#include "unit.h"

#include <string.h>

#include "base/memory.h"
#include "notify/alert_message.h"

static const struct alert cordoned = {.name = "NodeCordoned",
                                      .severity = "warn",
                                      .labels = {{"node_name", "n1"}},
                                      .summary = "no task is started on node n1: cordoned by admin",
                                      .since_ms = 1764000000000};
static const struct alert pardoned = {.name = "NodeCordoned",
                                      .severity = "warn",
                                      .labels = {{"node_name", "n2"}},
                                      .summary = "no task is started on node n2",
                                      .since_ms = 1764000000000,
                                      .ended_ms = 1764000001500};
static const struct alert idle = {.name = "JobIdle",
                                  .severity = "warn",
                                  .labels = {{"job_name", "alice~train"}, {"username", "alice"}},
                                  .summary = "no task of job alice~train works or writes",
                                  .since_ms = 1764000000000};

static void letter(const struct alert *const *alerts, size_t count, const char *portal_url,
                   struct buf *out)
{
    notify_alert_letter_write(&(struct notify_alert_letter){.from = "skep@example.org",
                                                            .to = "ops@example.org",
                                                            .alerts = alerts,
                                                            .count = count,
                                                            .portal_url = portal_url,
                                                            .now_ms = 1764000002000},
                              out);
}

static void a_mail_says_what_is_wrong(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    const struct alert *const alerts[] = {&cordoned};
    (void)state;
    letter(alerts, 1, "https://skep.example.org", &out);
    assert_string_equal(
        buf_cstr(&out),
        "From: Skep <skep@example.org>\r\n"
        "To: <ops@example.org>\r\n"
        "Subject: [Skep] warn: no task is started on node n1: cordoned by admin\r\n"
        "Date: Mon, 24 Nov 2025 16:00:02 +0000\r\n"
        "Message-ID: <skep.alert.2626da1c67b15e67.warn.1764000000000@example.org>\r\n"
        "Auto-Submitted: auto-generated\r\n"
        "MIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
        "Alert:            NodeCordoned\r\n"
        "Severity:         warn\r\n"
        "node_name:        n1\r\n"
        "What:             no task is started on node n1: cordoned by admin\r\n"
        "Since:            2025-11-24 16:00:00 UTC\r\n"
        "Page:             https://skep.example.org/cluster?tab=3Dnodes\r\n\r\n"
        "You get this mail because Skep's configuration names your address (notifica=\r\n"
        "tions.alerts.mail).\r\n");
}

static void a_mail_says_what_has_ended(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    const struct alert *const alerts[] = {&pardoned};
    (void)state;
    letter(alerts, 1, NULL, &out);
    assert_non_null(strstr(out.at, "Subject: [Skep] ended: no task is started on node n2\r\n"));
    assert_non_null(strstr(out.at, ".ended.1764000001500@example.org>\r\n"));
    assert_non_null(strstr(out.at, "Ended:            2025-11-24 16:00:01 UTC\r\n"));
    assert_null(strstr(out.at, "Page:"));
}

static void several_alerts_are_one_mail(void **state)
{
    static const struct {
        const struct alert *alerts[3];
        size_t count;
        const char *subject;
    } cases[] = {
        {{&pardoned, &cordoned, &idle}, 3, "2 alerts, 1 ended"},
        {{&pardoned, &idle}, 2, "1 alert, 1 ended"},
        {{&cordoned, &idle}, 2, "2 alerts\r\n"},
        {{&pardoned, &pardoned}, 2, "2 alerts ended"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_buf struct buf out = BUF_INIT, again = BUF_INIT;
        letter(cases[i].alerts, cases[i].count, "https://skep.example.org", &out);
        const char *subject = strstr(out.at, "Subject: [Skep] ");
        assert_non_null(subject);
        assert_memory_equal(subject + 16, cases[i].subject, strlen(cases[i].subject));
        letter(cases[i].alerts, cases[i].count, "https://skep.example.org", &again);
        assert_string_equal(out.at, again.at);
    }
    cleanup_buf struct buf out = BUF_INIT;
    letter(cases[0].alerts, 3, "https://skep.example.org", &out);
    assert_non_null(strstr(out.at, "Message-ID: <skep.alert."));
    assert_non_null(strstr(out.at, "-alert.dc3174e7a12498d9.warn.1764000000000@example.org>\r\n"));
    assert_non_null(strstr(out.at, "\r\nwarn: no task of job alice~train works or writes\r\n\r\n"));
    assert_non_null(strstr(out.at, "job_name:         alice~train\r\n"));
    assert_non_null(strstr(out.at, "username:         alice\r\n"));
    assert_non_null(strstr(out.at, "https://skep.example.org/jobs/alice~train\r\n"));
}

/* What a user can write, as the name of a job or the reason of a cordon, is never a header. */
static void nothing_of_an_alert_is_a_header(void **state)
{
    struct alert alert = idle;
    alert.labels[0].value = "eve~x\r\nBcc: eve@example.org";
    alert.summary = "x\r\nBcc: eve@example.org\r\n\r\n\x1b[31m.\r\nQUIT";
    const struct alert *const alerts[] = {&alert};
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    letter(alerts, 1, "https://skep.example.org", &out);
    const char *body = strstr(out.at, "\r\n\r\n"), *bcc = strstr(out.at, "\nBcc");
    assert_true(!bcc || bcc > body);
    assert_non_null(strstr(out.at, "Subject: =?UTF-8?Q?"));
    assert_non_null(strstr(body, "/jobs/eve~x%0D%0ABcc%3A%20eve"));
}

static void a_webhook_gets_a_group_of_alertmanager(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    const struct alert *const alerts[] = {&pardoned, &cordoned};
    (void)state;
    notify_alert_group_write(&(struct notify_alert_group){alerts, 2, 0, "https://skep.example.org"},
                             &out);
    assert_string_equal(
        buf_cstr(&out),
        "{\"version\":\"4\",\"groupKey\":\"{}:{alertname=\\\"NodeCordoned\\\"}\","
        "\"truncatedAlerts\":0,\"status\":\"firing\",\"receiver\":\"skep\","
        "\"groupLabels\":{\"alertname\":\"NodeCordoned\"},"
        "\"commonLabels\":{\"alertname\":\"NodeCordoned\",\"severity\":\"warn\"},"
        "\"commonAnnotations\":{},\"externalURL\":\"https://skep.example.org\",\"alerts\":["
        "{\"status\":\"resolved\",\"labels\":{\"alertname\":\"NodeCordoned\","
        "\"severity\":\"warn\",\"node_name\":\"n2\"},"
        "\"annotations\":{\"summary\":\"no task is started on node n2\"},"
        "\"startsAt\":\"2025-11-24T16:00:00.000Z\",\"endsAt\":\"2025-11-24T16:00:01.500Z\","
        "\"generatorURL\":\"https://skep.example.org/cluster?tab=nodes\","
        "\"fingerprint\":\"9384200582dc2062\"},"
        "{\"status\":\"firing\",\"labels\":{\"alertname\":\"NodeCordoned\","
        "\"severity\":\"warn\",\"node_name\":\"n1\"},"
        "\"annotations\":{\"summary\":\"no task is started on node n1: cordoned by admin\"},"
        "\"startsAt\":\"2025-11-24T16:00:00.000Z\",\"endsAt\":\"0001-01-01T00:00:00Z\","
        "\"generatorURL\":\"https://skep.example.org/cluster?tab=nodes\","
        "\"fingerprint\":\"2626da1c67b15e67\"}]}");
}

/* All of it is over when nothing of the group stands, what was left out included. */
static void the_status_is_that_of_the_group(void **state)
{
    const struct alert *const alerts[] = {&pardoned};
    (void)state;
    for (size_t left_out = 0; left_out < 2; left_out++) {
        cleanup_buf struct buf out = BUF_INIT;
        notify_alert_group_write(&(struct notify_alert_group){alerts, 1, left_out, NULL}, &out);
        assert_non_null(strstr(out.at, left_out ? "\"truncatedAlerts\":1,\"status\":\"firing\""
                                                : "\"truncatedAlerts\":0,\"status\":\"resolved\""));
        assert_non_null(strstr(out.at, "\"externalURL\":\"\""));
        assert_non_null(strstr(out.at, "\"generatorURL\":\"\""));
    }
}

static void what_is_common_stands_at_the_top(void **state)
{
    struct alert other = idle;
    other.labels[0].value = "alice~sweep";
    other.severity = "error";
    const struct alert *const alerts[] = {&idle, &other};
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    notify_alert_group_write(&(struct notify_alert_group){alerts, 2, 0, NULL}, &out);
    assert_non_null(
        strstr(out.at, "\"commonLabels\":{\"alertname\":\"JobIdle\",\"username\":\"alice\"}"));
}

static void each_kind_has_its_page(void **state)
{
    static const struct {
        const char *key, *page;
    } cases[] = {{"virtual_cluster", "/cluster"},
                 {"name", "/admin?tab=services"},
                 {"other", "/"},
                 {NULL, "/"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct alert alert = cordoned;
        const struct alert *const alerts[] = {&alert};
        cleanup_buf struct buf out = BUF_INIT, wanted = BUF_INIT;
        alert.labels[0].key = cases[i].key;
        notify_alert_group_write(&(struct notify_alert_group){alerts, 1, 0, "https://s"}, &out);
        buf_format(&wanted, "\"generatorURL\":\"https://s%s\"", cases[i].page);
        assert_non_null(strstr(out.at, buf_cstr(&wanted)));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_mail_says_what_is_wrong),
    cmocka_unit_test(a_mail_says_what_has_ended),
    cmocka_unit_test(several_alerts_are_one_mail),
    cmocka_unit_test(nothing_of_an_alert_is_a_header),
    cmocka_unit_test(a_webhook_gets_a_group_of_alertmanager),
    cmocka_unit_test(the_status_is_that_of_the_group),
    cmocka_unit_test(what_is_common_stands_at_the_top),
    cmocka_unit_test(each_kind_has_its_page),
};
UNIT_FILE(tests, NULL, NULL);
