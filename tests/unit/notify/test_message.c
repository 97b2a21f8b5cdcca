/* What is sent about changes of jobs: mails, and bodies of webhooks.
 *
 * Covers: src/notify/mail_text.c */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "notify/message.h"

static const struct notice failed = {.job = {7},
                                     .attempt = 1,
                                     .kind = NOTICE_FAILED,
                                     .at_ms = 1764000000000,
                                     .user = "alice",
                                     .job_name = "train",
                                     .virtual_cluster = "default",
                                     .code = 137,
                                     .phrase = "ContainerKilled",
                                     .why = "worker-0 ended with 137: out of memory"};
static const struct notice running = {.job = {8},
                                      .kind = NOTICE_RUNNING,
                                      .at_ms = 1764000001000,
                                      .user = "alice",
                                      .job_name = "sweep",
                                      .virtual_cluster = "default",
                                      .phrase = "",
                                      .why = ""};

static void letter(const struct notice *const *notices, size_t count, const char *portal_url,
                   struct buf *out)
{
    notify_letter_write(&(struct notify_letter){.from = "skep@example.org",
                                                .to = "alice@example.org",
                                                .notices = notices,
                                                .count = count,
                                                .portal_url = portal_url,
                                                .now_ms = 1764000002000},
                        out);
}

static void a_mail_says_what_became_of_the_job(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    const struct notice *const notices[] = {&failed};
    (void)state;
    letter(notices, 1, "https://skep.example.org", &out);
    assert_string_equal(
        buf_cstr(&out),
        "From: Skep <skep@example.org>\r\n"
        "To: <alice@example.org>\r\n"
        "Subject: [Skep] alice~train failed\r\n"
        "Date: Mon, 24 Nov 2025 16:00:02 +0000\r\n"
        "Message-ID: <skep.7.1.failed.1764000000000@example.org>\r\n"
        "Auto-Submitted: auto-generated\r\n"
        "MIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
        "Job:              alice~train\r\n"
        "State:            FAILED\r\n"
        "When:             2025-11-24 16:00:00 UTC\r\n"
        "Virtual cluster:  default\r\n"
        "Attempt:          1\r\n"
        "Exit code:        137 (ContainerKilled)\r\n"
        "Why:              worker-0 ended with 137: out of memory\r\n"
        "Page:             https://skep.example.org/jobs/alice~train\r\n\r\n"
        "You get this mail because the job's file asks for it (extras.jobStatusChang=\r\n"
        "eNotification).\r\n");
}

static void several_changes_are_one_mail(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    const struct notice *const notices[] = {&failed, &running};
    (void)state;
    letter(notices, 2, NULL, &out);
    assert_non_null(strstr(out.at, "Subject: [Skep] 2 changes of your jobs\r\n"));
    assert_non_null(strstr(out.at, "Message-ID: <skep.7.1.failed.1764000000000-8.0.running."
                                   "1764000001000@example.org>\r\n"));
    assert_non_null(strstr(out.at, "\r\nalice~train failed\r\n\r\nJob:"));
    assert_non_null(strstr(out.at, "\r\nalice~sweep is running\r\n\r\nJob:"));
    assert_null(strstr(out.at, "Page:"));
    /* the same again is the same mail */
    cleanup_buf struct buf again = BUF_INIT;
    letter(notices, 2, NULL, &again);
    assert_string_equal(out.at, again.at);
}

static void a_mail_says_what_was_decided(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    const struct notice granted = {.kind = NOTICE_ACCEPTED,
                                   .at_ms = 1764000000000,
                                   .user = "alice",
                                   .job_name = "8f2c",
                                   .virtual_cluster = "vc1",
                                   .phrase = "lab",
                                   .why = "until May"};
    const struct notice *notices[] = {&granted, &failed};
    (void)state;
    letter(notices, 1, "https://skep.example.org", &out);
    assert_non_null(strstr(
        out.at, "Subject: [Skep] your request for the virtual cluster vc1 was accepted\r\n"));
    assert_non_null(strstr(out.at, "Message-ID: <skep.request.8f2c@example.org>\r\n"));
    assert_non_null(strstr(out.at, "Request:          for the virtual cluster vc1\r\n"
                                   "Decision:         accepted\r\n"
                                   "When:             2025-11-24 16:00:00 UTC\r\n"
                                   "Group:            lab, of which you are a member now\r\n"
                                   "Answer:           until May\r\n"
                                   "Page:             https://skep.example.org/profile\r\n"));
    assert_non_null(strstr(out.at, "requestDecisionNotification"));
    assert_null(strstr(out.at, "extras."));
    buf_clear(&out);
    letter(notices, 2, NULL, &out);
    assert_non_null(strstr(out.at, "Subject: [Skep] 2 changes of your jobs and requests\r\n"));
    assert_non_null(strstr(out.at, "extras.jobStatusChang"));
    const struct notice account = {.kind = NOTICE_ACCEPTED,
                                   .at_ms = 1764000000000,
                                   .user = "carol",
                                   .job_name = "9a",
                                   .virtual_cluster = "",
                                   .phrase = "",
                                   .why = ""};
    buf_clear(&out);
    notices[0] = &account;
    letter(notices, 1, NULL, &out);
    assert_non_null(strstr(out.at, "Request:          for the account carol\r\n"
                                   "Decision:         accepted\r\n"
                                   "When:             2025-11-24 16:00:00 UTC\r\n\r\n"));
}

/* What a user can write somewhere is never a header, an end of the mail, or an escape sequence. */
static void nothing_of_a_job_is_a_header(void **state)
{
    struct notice notice = failed;
    notice.job_name = "x\r\nBcc: eve@example.org\r\n\r\nbody";
    notice.why = "\x1b[31mred\x1b[0m\n.\r\nQUIT\nSch\xc3\xb6n =\xff";
    const struct notice *const notices[] = {&notice};
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    letter(notices, 1, "https://skep.example.org", &out);
    const char *body = strstr(out.at, "\r\n\r\n");
    const char *bcc = strstr(out.at, "\nBcc");
    assert_true(!bcc || bcc > body);
    const char *to = strstr(out.at, "Subject: =?UTF-8?Q?");
    assert_non_null(to);
    assert_true(to < body);
    for (const char *c = out.at; *c; c++) {
        assert_true((unsigned char)*c < 0x7f && (*c >= ' ' || *c == '\r' || *c == '\n'));
        if (*c == '\n')
            assert_true(c[-1] == '\r');
    }
    assert_non_null(strstr(body, "Sch=C3=B6n =3D=EF=BF=BD"));
    for (const char *line = out.at; line && *line;) {
        const char *end = strstr(line, "\r\n");
        assert_true(end - line <= 998);
        if (line > body)
            assert_true(end - line <= 76);
        line = end + 2;
    }
}

static void a_long_subject_is_folded_between_characters(void **state)
{
    struct notice notice = failed;
    char name[301];
    for (size_t i = 0; i < 300; i += 2)
        memcpy(name + i, "\xc3\xb6", 2);
    name[300] = '\0';
    notice.job_name = name;
    const struct notice *const notices[] = {&notice};
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    letter(notices, 1, NULL, &out);
    size_t words = 0;
    for (const char *word = out.at; (word = strstr(word, "=?UTF-8?Q?")); word++, words++) {
        const char *end = strstr(word, "?=");
        assert_true(end - word + 2 <= 75);
        assert_memory_not_equal(end - 3, "=C3", 3); /* half a character */
    }
    assert_true(words > 10);
}

static void a_trial_says_what_it_is(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    (void)state;
    struct notify_letter trial = {.from = "skep@example.org",
                                  .to = "admin@example.org",
                                  .portal_url = "https://skep.example.org",
                                  .now_ms = 1764000002000};
    notify_trial_write(&trial, &out);
    assert_non_null(strstr(out.at, "Subject: [Skep] a trial\r\n"));
    assert_non_null(strstr(out.at, "Message-ID: <skep.trial.1764000002000@example.org>\r\n"));
    assert_non_null(strstr(out.at, "Portal: https://skep.example.org/\r\n"));
}

static void a_webhook_gets_alertmanager_s_body(void **state)
{
    cleanup_buf struct buf out = BUF_INIT;
    const struct notice *const notices[] = {&failed, &running};
    (void)state;
    notify_alerts_write(&(struct notify_alerts_body){notices, 1, "https://skep.example.org"}, &out);
    assert_string_equal(
        buf_cstr(&out),
        "{\"version\":\"4\",\"groupKey\":\"{}:{alertname=\\\"PAIJobStatusChange\\\"}\","
        "\"truncatedAlerts\":0,\"status\":\"firing\",\"receiver\":\"skep\","
        "\"groupLabels\":{\"alertname\":\"PAIJobStatusChange\"},"
        "\"commonLabels\":{\"alertname\":\"PAIJobStatusChange\",\"severity\":\"warn\","
        "\"job_name\":\"alice~train\",\"username\":\"alice\",\"state\":\"FAILED\","
        "\"virtual_cluster\":\"default\",\"attempt\":\"1\",\"code\":\"137\"},"
        "\"commonAnnotations\":{},\"externalURL\":\"https://skep.example.org\",\"alerts\":["
        "{\"status\":\"firing\",\"labels\":{\"alertname\":\"PAIJobStatusChange\","
        "\"severity\":\"warn\",\"job_name\":\"alice~train\",\"username\":\"alice\","
        "\"state\":\"FAILED\",\"virtual_cluster\":\"default\",\"attempt\":\"1\",\"code\":\"137\"},"
        "\"annotations\":{\"summary\":\"alice~train failed: worker-0 ended with 137: out of "
        "memory\"},\"startsAt\":\"2025-11-24T16:00:00.000Z\","
        "\"endsAt\":\"0001-01-01T00:00:00Z\","
        "\"generatorURL\":\"https://skep.example.org/jobs/alice~train\","
        "\"fingerprint\":\"c1d1e6ce11acaad9\"}]}");
    buf_clear(&out);
    notify_alerts_write(&(struct notify_alerts_body){notices, 2, NULL}, &out);
    assert_non_null(strstr(out.at, "\"commonLabels\":{\"alertname\":\"PAIJobStatusChange\","
                                   "\"username\":\"alice\",\"virtual_cluster\":\"default\"},"));
    assert_non_null(strstr(out.at, "\"externalURL\":\"\""));
    assert_non_null(strstr(out.at, "\"summary\":\"alice~sweep is running\""));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_mail_says_what_became_of_the_job),
    cmocka_unit_test(several_changes_are_one_mail),
    cmocka_unit_test(a_mail_says_what_was_decided),
    cmocka_unit_test(nothing_of_a_job_is_a_header),
    cmocka_unit_test(a_long_subject_is_folded_between_characters),
    cmocka_unit_test(a_trial_says_what_it_is),
    cmocka_unit_test(a_webhook_gets_alertmanager_s_body),
};
UNIT_FILE(tests, NULL, NULL);
