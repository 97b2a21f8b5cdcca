#include "cli/openpai_mail.h"

#include <string.h>

#include "base/arena.h"
#include "base/json_writer.h"
#include "base/mail_address.h"
#include "base/memory.h"
#include "cli/openpai.h"
#include "doc/doc.h"

enum { ADDRESSES_MAX = 10, PORT_MAX = 65535, PORT_TLS = 465 }; /* as the server takes them */

/* ---- mails ---- */

/* The name since OpenPAI 1.5, or that of before. */
static struct text value_of(const struct doc *configs, const char *key, const char *old_key)
{
    const struct text value = doc_get_text(configs, key, "");
    return value.length || !old_key ? value : doc_get_text(configs, old_key, "");
}

static bool is_host(struct text text)
{
    bool is_good = text.length > 0;
    for (size_t i = 0; i < text.length; i++)
        is_good = is_good && (text.at[i] > ' ' && !strchr("/@?#:", text.at[i]));
    return is_good;
}

/* smtp-host and smtp-port; before 1.5 smtp_url was both, with a colon between them. */
static bool server_of(const struct doc *configs, struct text *host, int64_t *port)
{
    struct text rest = doc_get_text(configs, "smtp_url", "");
    *host = doc_get_text(configs, "smtp-host", "");
    *port = doc_get_int(configs, "smtp-port", 0);
    if (!host->length) {
        *host = text_cut(&rest, ':');
        if (rest.length && !text_to_int64(rest, port))
            return false;
    }
    return is_host(*host) && *port >= 0 && *port <= PORT_MAX;
}

static const char *smtp_write(const struct doc *configs, struct text host, int64_t port,
                              const char *password_file, struct arena *arena,
                              struct openpai_output *output)
{
    const struct text user = value_of(configs, "smtp-auth-username", "smtp_auth_username");
    const struct text password = value_of(configs, "smtp-auth-password", "smtp_auth_password");
    const char *kind = port == PORT_TLS ? "smtps" : "smtp";
    cleanup_buf struct buf out = BUF_INIT;
    struct json_writer json;
    json_init(&json, &out);
    json_object(&json);
    json_key_string(
        &json, "url",
        port ? arena_format(arena, "%s://%.*s:%lld", kind, TEXT_ARG(host), (long long)port)
             : arena_format(arena, "%s://%.*s", kind, TEXT_ARG(host)));
    json_key_text(&json, "from", value_of(configs, "smtp-from", "smtp_from"));
    if (user.length && password.length) {
        json_key_text(&json, "user", user);
        json_key_string(&json, "passwordFile", password_file);
        buf_text(&output->mail_password, password);
        buf_char(&output->mail_password, '\n');
    }
    json_object_end(&json);
    return arena_copy(arena, buf_as_text(&out));
}

/* Several stand with commas between them. */
static const char *addresses_write(struct text list, const char *file, const char *path,
                                   struct arena *arena, struct openpai_output *output)
{
    cleanup_buf struct buf out = BUF_INIT;
    struct json_writer json;
    size_t count = 0;
    json_init(&json, &out);
    json_array(&json);
    while (list.length > 0) {
        const struct text address = text_trim(text_cut(&list, ','));
        if (mail_address_is_good(address) && count < ADDRESSES_MAX) {
            json_text(&json, address);
            count++;
        } else if (address.length) {
            openpai_note(output, NOTE_TO_DO, file, path,
                         arena_format(arena,
                                      "%.*s is not taken: notifications.alerts.mail has plain "
                                      "addresses, %d at most",
                                      TEXT_ARG(address), ADDRESSES_MAX));
        }
    }
    json_array_end(&json);
    return count ? arena_copy(arena, buf_as_text(&out)) : NULL;
}

bool openpai_mail(const struct doc *configs, const char *file, const char *path,
                  const char *password_file, struct arena *arena, struct openpai_output *output,
                  struct openpai_mail *mail)
{
    struct text host;
    int64_t port;
    if (!server_of(configs, &host, &port) ||
        !mail_address_is_good(value_of(configs, "smtp-from", "smtp_from"))) {
        openpai_note(output, NOTE_TO_DO, file, path,
                     "it has no mail server, or no address of a sender: write notifications.smtp "
                     "yourself");
        return false;
    }
    mail->smtp = smtp_write(configs, host, port, password_file, arena, output);
    mail->alerts =
        addresses_write(value_of(configs, "admin-receiver", "receiver"), file, path, arena, output);
    openpai_note(output, NOTE_TAKEN, file, path,
                 mail->alerts ? "it is notifications.smtp, and notifications.alerts.mail"
                              : "it is notifications.smtp; no address of an administrator stands "
                                "there, so nobody is told of alerts");
    openpai_note(
        output, NOTE_TO_DO, file, path,
        "try it with skepd --notify-test ADDRESS: mails go by TLS alone, from the start at "
        "port 465 and by STARTTLS elsewhere");
    return true;
}

/* ---- receivers ---- */

struct action {
    const char *name;
    enum openpai_note_kind kind;
    const char *text;
};

static const struct action ACTIONS[] = {
    {"email-admin", NOTE_TAKEN, "every alert is mailed to notifications.alerts.mail"},
    {"email-user", NOTE_TO_DO,
     "users are mailed about their jobs where these ask for it "
     "(extras.jobStatusChangeNotification)"},
    {"stop-jobs", NOTE_TO_DO,
     "a job whose tasks stand still is ended where it asks for it (extras.hang), and is an alert "
     "after hangAfterSeconds; for other rules a webhook with alerts: true may stop jobs by the "
     "API"},
    {"stop-job", NOTE_TO_DO, "see stop-jobs"},
    {"tag-jobs", NOTE_TO_DO, "a webhook with alerts: true may tag jobs by the API"},
    {"cordon-nodes", NOTE_TO_DO,
     "a node whose tasks fail again and again is avoided or cordoned (scheduling.blameAvoid, "
     "blameCordon); for an alert a webhook with alerts: true may cordon nodes by the API"},
    {"fix-nvidia-gpu-low-perf", NOTE_GONE, "Skep changes no settings of GPUs"},
};

static void action_note(struct text name, const char *file, const char *path, struct arena *arena,
                        struct openpai_output *output)
{
    path = arena_format(arena, "%s: %.*s", path, TEXT_ARG(name));
    for (size_t i = 0; i < COUNT_OF(ACTIONS); i++)
        if (text_is(name, ACTIONS[i].name)) {
            openpai_note(output, ACTIONS[i].kind, file, path, ACTIONS[i].text);
            return;
        }
    openpai_note(output, NOTE_GONE, file, path, "no such action of OpenPAI's is known");
}

/* Since OpenPAI 1.5 actions are a map, in which each has its settings; before, a list. */
static void receiver_note(const struct doc *receiver, const char *file, const char *path,
                          struct arena *arena, struct openpai_output *output)
{
    const struct text name = doc_get_text(receiver, "name", "");
    const struct doc *map = doc_get_map(receiver, "actions");
    const struct doc *list = doc_get_list(receiver, "actions");
    path = arena_format(arena, "%s: %.*s", path, TEXT_ARG(name));
    for (size_t i = 0; i < map->as.map.count; i++)
        action_note(map->as.map.entries[i].key, file, path, arena, output);
    for (size_t i = 0; i < list->as.list.count; i++)
        if (list->as.list.items[i]->kind == DOC_STRING)
            action_note(list->as.list.items[i]->as.string, file, path, arena, output);
    if (!doc_count(map) && !doc_count(list))
        openpai_note(output, NOTE_GONE, file, path, "it has no actions");
}

void openpai_receivers(const struct doc *list, const char *file, const char *path,
                       struct arena *arena, struct openpai_output *output)
{
    if (list->kind != DOC_LIST) {
        openpai_note(output, NOTE_TO_DO, file, path, "it is no list: look at it yourself");
        return;
    }
    for (size_t i = 0; i < list->as.list.count; i++)
        receiver_note(list->as.list.items[i], file, path, arena, output);
}
