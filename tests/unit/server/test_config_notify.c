/* The configuration's notifications: what is read, what is refused, and what is told of it. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "model/notice.h"
#include "server/config.h"
#include "sys/file.h"

static int read_config(const char *text, struct server_config **config, struct buf *report)
{
    char path[100];
    struct err err;
    snprintf(path, sizeof path, "%s/c.yaml", in_folder(""));
    buf_clear(report);
    assert_int_equal(file_write(path, text_of(text), 0600, &err), 0);
    return server_config_read(path, config, report, &err);
}

static const char WHOLE[] =
    "notifications:\n"
    "  portalUrl: https://skep.example.org/portal/\n"
    "  keepHours: 5\n"
    "  smtp: {url: 'smtps://mail.example.org:465', from: skep@example.org, user: skep,\n"
    "         passwordFile: /etc/skep/mail, caFile: /etc/skep/ca.pem}\n"
    "  webhooks:\n"
    "  - {name: ops, url: 'https://hooks.example.org/secret', tokenFile: /etc/skep/hook,\n"
    "     events: [failed, retried]}\n"
    "  - {name: own, url: 'http://127.0.0.1:9095/alert-handler', alerts: true}\n"
    "  alerts: {mail: [ops@example.org, night@example.org], severity: error, afterSeconds: 5}\n";

static void targets_are_read(void **state)
{
    (void)state;
    struct server_config *config;
    cleanup_buf struct buf report = BUF_INIT;
    assert_int_equal(read_config(WHOLE, &config, &report), 0);
    assert_string_equal(buf_cstr(&report), "");
    struct notify_config copy;
    config_notify_copy(&copy, &config->notify, &config->arena);
    const struct notify_config *both[] = {&config->notify, &copy};
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        const struct notify_config *notify = both[i];
        assert_string_equal(notify->portal_url, "https://skep.example.org/portal");
        assert_int_equal(notify->keep_hours, 5);
        assert_true(notify->has_smtp);
        assert_string_equal(notify->smtp.url, "smtps://mail.example.org:465");
        assert_string_equal(notify->smtp.from, "skep@example.org");
        assert_string_equal(notify->smtp.user, "skep");
        assert_string_equal(notify->smtp.password_file, "/etc/skep/mail");
        assert_string_equal(notify->smtp.ca_file, "/etc/skep/ca.pem");
        assert_true(notify->smtp.starts_tls);
        assert_int_equal(notify->hook_count, 2);
        assert_string_equal(notify->hooks[0].name, "ops");
        assert_string_equal(notify->hooks[0].url, "https://hooks.example.org/secret");
        assert_string_equal(notify->hooks[0].token_file, "/etc/skep/hook");
        assert_true(notify->hooks[0].has_events);
        assert_int_equal(notify->hooks[0].events,
                         NOTICE_BIT(NOTICE_FAILED) | NOTICE_BIT(NOTICE_RETRIED));
        assert_false(notify->hooks[1].has_events);
        assert_null(notify->hooks[1].token_file);
        assert_false(notify->hooks[0].has_alerts);
        assert_true(notify->hooks[1].has_alerts);
        assert_int_equal(notify->alerts.mail_count, 2);
        assert_string_equal(notify->alerts.mail[0], "ops@example.org");
        assert_string_equal(notify->alerts.mail[1], "night@example.org");
        assert_true(notify->alerts.is_error_only);
        assert_int_equal(notify->alerts.after_s, 5);
    }
    assert_ptr_not_equal(copy.alerts.mail[0], config->notify.alerts.mail[0]);
    server_config_free(config);
}

static void without_the_section_nothing_is_sent(void **state)
{
    (void)state;
    struct server_config *config;
    cleanup_buf struct buf report = BUF_INIT;
    assert_int_equal(read_config("adminName: admin\n", &config, &report), 0);
    assert_false(config->notify.has_smtp);
    assert_int_equal(config->notify.hook_count, 0);
    assert_int_equal(config->notify.keep_hours, NOTIFY_KEEP_HOURS);
    assert_null(config->notify.portal_url);
    assert_int_equal(config->notify.alerts.mail_count, 0);
    assert_false(config->notify.alerts.is_error_only);
    assert_int_equal(config->notify.alerts.after_s, NOTIFY_ALERT_AFTER_S);
    assert_false(config_notify_tells_users(&config->notify));
    server_config_free(config);
}

static void who_tells_users(void **state)
{
    struct notify_config config = {.hook_count = 1, .hooks = {{.has_events = true}}};
    (void)state;
    assert_false(config_notify_tells_users(&config));
    config.hooks[0].has_events = false;
    assert_true(config_notify_tells_users(&config));
    config = (struct notify_config){.has_smtp = true};
    assert_true(config_notify_tells_users(&config));
}

#define SMTP "smtp: {url: 'smtp://h', from: a@b}, "

static void what_cannot_be_used_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"smtp: {from: a@b}", "url"},
        {"smtp: {url: 'smtp://h'}", "from"},
        {"smtp: {url: 'http://h', from: a@b}", "notifications.smtp.url: must be smtp://"},
        {"smtp: {url: 'smtp://u:p@h', from: a@b}", "notifications.smtp.url: must be smtp://"},
        {"smtp: {url: 'smtp://h', from: 'Skep <a@b>'}", "must be a mail address"},
        {"smtp: {url: 'smtp://h', from: a@b, user: u}", "user and passwordFile are given together"},
        {"smtp: {url: 'smtp://h', from: a@b, passwordFile: /x}",
         "user and passwordFile are given together"},
        {"smtp: {url: 'smtp://h', from: a@b, user: u, passwordFile: /x, startTls: false}",
         "a password is sent by TLS alone"},
        {"webhooks: [{url: 'https://h'}]", "name"},
        {"webhooks: [{name: a, url: 'ftp://h'}]", "notifications.webhooks.url: must be https://"},
        {"webhooks: [{name: a, url: 'http://h', tokenFile: /x}]", "a token is sent by TLS alone"},
        {"webhooks: [{name: a, url: 'https://h', events: [ended]}]",
         "ended is none of running, succeeded"},
        {"webhooks: [{name: a, url: 'https://h'}, {name: a, url: 'https://i'}]",
         "webhook 1 is called a as well"},
        {"portalUrl: 'skep.example.org'", "notifications.portalUrl: must be https://"},
        {"keepHours: 0", "keepHours"},
        {"mail: {}", "mail"},
        {"alerts: {mail: [a@b]}", "notifications.alerts.mail: nothing says by which server mails"},
        {SMTP "alerts: {mail: ['Ops <a@b>']}", "Ops <a@b> cannot be used: must be a mail address"},
        {SMTP "alerts: {mail: [a@b, c@d, a@b]}", "a@b stands there twice"},
        {SMTP "alerts: {mail: [a@b, c@d, c@d]}", "c@d stands there twice"},
        {SMTP "alerts: {mail: [a@1, a@2, a@3, a@4, a@5, a@6, a@7, a@8, a@9, a@10, a@11]}",
         "at most 10 addresses"},
        {SMTP "alerts: {mail: a@b}", "notifications.alerts.mail"},
        {SMTP "alerts: {mail: [a@b], severity: info}", "notifications.alerts.severity"},
        {SMTP "alerts: {mail: [a@b], afterSeconds: -1}", "notifications.alerts.afterSeconds"},
        {SMTP "alerts: {to: [a@b]}", "notifications.alerts"},
        {"webhooks: [{name: a, url: 'https://h', alerts: 1}]", "alerts"},
    };
    (void)state;
    cleanup_buf struct buf report = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[300];
        struct server_config *config;
        snprintf(text, sizeof text, "notifications: {%s}\n", cases[i].text);
        assert_int_equal(read_config(text, &config, &report), ERR_INVALID);
        assert_non_null(strstr(report.at, cases[i].says));
    }
}

static void a_problem_says_its_line(void **state)
{
    (void)state;
    struct server_config *config;
    cleanup_buf struct buf report = BUF_INIT;
    assert_int_equal(read_config("notifications:\n"
                                 "  smtp: {url: 'smtp://h', from: a@b}\n"
                                 "  alerts:\n"
                                 "    mail:\n"
                                 "    - ops@example.org\n"
                                 "    - ops\n",
                                 &config, &report),
                     ERR_INVALID);
    assert_non_null(strstr(report.at, "c.yaml:6:7"));
}

static void alerts_that_nobody_is_told_of_are_a_warning(void **state)
{
    (void)state;
    struct server_config *config;
    cleanup_buf struct buf report = BUF_INIT;
    assert_int_equal(read_config("notifications: {alerts: {severity: error}}\n", &config, &report),
                     0);
    assert_non_null(strstr(buf_cstr(&report), "notifications.alerts: nobody is told"));
    server_config_free(config);
    assert_int_equal(
        read_config("notifications: {webhooks: [{name: a, url: 'https://h'}, {name: "
                    "b, url: 'https://h', alerts: true}], alerts: {severity: error}}\n",
                    &config, &report),
        0);
    assert_string_equal(buf_cstr(&report), "");
    server_config_free(config);
}

/* To this machine itself no network lies between. */
static void loopback_may_do_without_tls(void **state)
{
    (void)state;
    struct server_config *config;
    cleanup_buf struct buf report = BUF_INIT;
    assert_int_equal(read_config("notifications: {smtp: {url: 'smtp://127.0.0.1', from: a@b, user: "
                                 "u, passwordFile: /x, startTls: false}, webhooks: [{name: a, url: "
                                 "'http://localhost/x', tokenFile: /x}]}\n",
                                 &config, &report),
                     0);
    assert_false(config->notify.smtp.starts_tls);
    server_config_free(config);
}

/* The path of a webhook's address may be its secret. */
static void settings_tell_no_secret(void **state)
{
    (void)state;
    struct server_config *config;
    cleanup_buf struct buf report = BUF_INIT, out = BUF_INIT;
    assert_int_equal(read_config(WHOLE, &config, &report), 0);
    server_config_settings(config, config, &out);
    assert_non_null(strstr(out.at, "\"https://hooks.example.org/******\""));
    assert_null(strstr(out.at, "hooks.example.org/secret"));
    assert_non_null(strstr(out.at, "\"notifications.webhooks[0].events\""));
    assert_non_null(strstr(out.at, "\"notifications.smtp.from\""));
    assert_non_null(strstr(out.at, "\"notifications.webhooks[1].alerts\""));
    assert_non_null(strstr(out.at, "\"notifications.alerts.mail\""));
    assert_non_null(strstr(out.at, "\"notifications.alerts.afterSeconds\""));
    assert_non_null(strstr(out.at, "\"needRestart\":[]"));
    server_config_free(config);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(targets_are_read),
    cmocka_unit_test(without_the_section_nothing_is_sent),
    cmocka_unit_test(who_tells_users),
    cmocka_unit_test(what_cannot_be_used_is_refused),
    cmocka_unit_test(a_problem_says_its_line),
    cmocka_unit_test(alerts_that_nobody_is_told_of_are_a_warning),
    cmocka_unit_test(loopback_may_do_without_tls),
    cmocka_unit_test(settings_tell_no_secret),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
