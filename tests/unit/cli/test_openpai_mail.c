/* Whom OpenPAI's alert manager told of alerts. */
#include "openpai_world.h"
#include "unit.h"

#include <string.h>

#include "cli/openpai_mail.h"

static bool is_noted(const struct openpai_world *world, enum openpai_note_kind kind,
                     const char *path, const char *says)
{
    for (size_t i = 0; i < world->output.note_count; i++) {
        const struct openpai_note *note = &world->output.notes[i];
        if (note->kind == kind && strcmp(note->path, path) == 0 && strstr(note->text, says))
            return true;
    }
    return false;
}

static bool has(const struct buf *text, const char *part)
{
    return text->length && strstr(buf_cstr(text), part) != NULL;
}

#define CONFIGS "alert-manager.alert-handler.email-configs"

static void mails_of_the_alert_handler(void **state)
{
    struct openpai_world *world = *state;
    world->input.layout =
        openpai_world_read(world, "machine-list: [{hostip: 10.0.0.1, pai-master: 'true'}]");
    openpai_world_import(world,
                         "alert-manager:\n  port: 9093\n  pai-bearer-token: t\n  alert-handler:\n"
                         "    port: 9095\n    email-configs:\n"
                         "      admin-receiver: 'ops@x.org, boss@x.org, no address'\n"
                         "      smtp-host: smtp.x.org\n      smtp-port: 587\n"
                         "      smtp-from: pai@x.org\n      smtp-auth-username: pai\n"
                         "      smtp-auth-password: between us\n");
    assert_true(has(&world->output.skepd,
                    "\nnotifications:\n  alerts:\n    mail: [\"ops@x.org\",\"boss@x.org\"]\n"
                    "  portalUrl: \"https://10.0.0.1:9186\"\n"
                    "  smtp: {\"url\":\"smtp://smtp.x.org:587\",\"from\":\"pai@x.org\",\"user\":"
                    "\"pai\",\"passwordFile\":\"/new/smtp-password\"}\n"));
    assert_string_equal(buf_cstr(&world->output.mail_password), "between us\n");
    assert_false(has(&world->output.skepd, "between us"));
    assert_true(is_noted(world, NOTE_TAKEN, CONFIGS, "notifications.alerts.mail"));
    assert_true(is_noted(world, NOTE_TO_DO, CONFIGS, "--notify-test"));
    assert_true(is_noted(world, NOTE_TO_DO, CONFIGS, "no address is not taken"));
    assert_true(is_noted(world, NOTE_GONE, "alert-manager.port", "notifications.alerts"));
    assert_true(is_noted(world, NOTE_GONE, "alert-manager.alert-handler.port", ""));
    assert_true(is_noted(world, NOTE_GONE, "alert-manager.pai-bearer-token", "token"));
}

static void mails_of_older_versions(void **state)
{
    struct openpai_world *world = *state;
    openpai_world_import(world, "alert-manager: {email-notification: {receiver: ops@x.org, "
                                "smtp_url: 'smtp.x.org:465', smtp_from: pai@x.org}}\n");
    assert_true(has(&world->output.skepd, "  alerts:\n    mail: [\"ops@x.org\"]\n"
                                          "  smtp: {\"url\":\"smtps://smtp.x.org:465\",\"from\":"
                                          "\"pai@x.org\"}\n"));
    assert_int_equal(world->output.mail_password.length, 0);
    assert_false(has(&world->output.skepd, "portalUrl"));
}

/* What stands there twice, or is not enough to send a mail, is told. */
static void mails_that_cannot_be_sent(void **state)
{
    static const char *const CASES[] = {
        "{admin-receiver: a@b.c, smtp-from: d@e.f}",
        "{smtp-host: h, smtp-port: 25}",
        "{smtp-host: h, smtp-port: 25, smtp-from: nobody}",
        "{smtp-host: 'h/x', smtp-from: d@e.f}",
        "{smtp-host: h, smtp-port: 65536, smtp-from: d@e.f}",
        "{smtp_url: 'h:x', smtp-from: d@e.f}",
        "7",
    };
    struct openpai_world *world = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        openpai_world_import(world, arena_format(&world->arena,
                                                 "alert-manager: {alert-handler: {email-configs: "
                                                 "%s}}\n",
                                                 CASES[i]));
        assert_false(has(&world->output.skepd, "notifications"));
        assert_true(is_noted(world, NOTE_TO_DO, CONFIGS, "notifications.smtp"));
    }
    openpai_world_import(world,
                         "alert-manager: {alert-handler: {email-configs: {smtp-host: h, smtp-from: "
                         "d@e.f}}, email-notification: {smtp_url: i, smtp_from: d@e.f}}\n");
    assert_true(has(&world->output.skepd, "smtp://h\""));
    assert_false(has(&world->output.skepd, "smtp://i\""));
    assert_true(is_noted(world, NOTE_TAKEN, CONFIGS, "nobody is told"));
    assert_true(is_noted(world, NOTE_GONE, "alert-manager.email-notification", "as well"));
}

static void each_action_of_a_receiver_has_a_note(void **state)
{
    struct openpai_world *world = *state;
#define RECEIVERS "alert-manager.customized-receivers"
    openpai_world_import(
        world, "alert-manager:\n  customized-routes: {routes: [{receiver: r}]}\n"
               "  customized-receivers:\n"
               "  - {name: r, actions: {email-admin: , email-user: {template: t}, stop-jobs: , "
               "fix-nvidia-gpu-low-perf: , dance: }}\n"
               "  - {name: old, actions: [cordon-nodes, tag-jobs], tags: [a]}\n  - {name: none}\n"
               "prometheus: {customized-alerts: 'groups: []', port: 1}\n");
    assert_true(is_noted(world, NOTE_TAKEN, RECEIVERS ": r: email-admin", "mail"));
    assert_true(is_noted(world, NOTE_TO_DO, RECEIVERS ": r: email-user", "extras"));
    assert_true(is_noted(world, NOTE_TO_DO, RECEIVERS ": r: stop-jobs", "hang"));
    assert_true(is_noted(world, NOTE_GONE, RECEIVERS ": r: fix-nvidia-gpu-low-perf", ""));
    assert_true(is_noted(world, NOTE_GONE, RECEIVERS ": r: dance", "no such action"));
    assert_true(is_noted(world, NOTE_TO_DO, RECEIVERS ": old: cordon-nodes", "blame"));
    assert_true(is_noted(world, NOTE_TO_DO, RECEIVERS ": old: tag-jobs", "webhook"));
    assert_true(is_noted(world, NOTE_GONE, RECEIVERS ": none", "no actions"));
    assert_true(is_noted(world, NOTE_TO_DO, "alert-manager.customized-routes", "labels"));
    assert_true(is_noted(world, NOTE_GONE, "prometheus", "customized-alerts"));
    openpai_world_import(world, "alert-manager: {customized-receivers: 7}\n");
    assert_true(is_noted(world, NOTE_TO_DO, RECEIVERS, "no list"));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, openpai_world_make, openpai_world_free)
static const struct CMUnitTest tests[] = {
    TEST(mails_of_the_alert_handler),
    TEST(mails_of_older_versions),
    TEST(mails_that_cannot_be_sent),
    TEST(each_action_of_a_receiver_has_a_note),
};
UNIT_FILE(tests, NULL, NULL);
