#include "server/config_notify.h"
#include "base/arena.h"
#include "base/mail_address.h"
#include "doc/doc.h"
#include "doc/problem.h"
#include "model/notice.h"
#include "notify/message.h"
#include "notify/send.h"
#include "server/config_shape.h"
#include "server/config_values.h"
#include <assert.h>
#include <string.h>

void config_notify_init(struct notify_config *config)
{
    *config = (struct notify_config){.keep_hours = NOTIFY_KEEP_HOURS,
                                     .alerts = {.after_s = NOTIFY_ALERT_AFTER_S}};
}

static const char *text_of_key(const struct doc *doc, const char *key, struct arena *arena)
{
    const struct doc *found = doc_get(doc, key);
    return found ? arena_copy(arena, found->as.string) : NULL;
}

/* The shape has seen to it that it is there. */
static const char *text_of_needed(const struct doc *doc, const char *key, struct arena *arena)
{
    return arena_copy(arena, doc_get_text(doc, key, ""));
}

static struct place place_of(const struct doc *doc, const char *key)
{
    const struct doc *found = doc_get(doc, key);
    return found ? found->place : doc->place;
}

static void smtp_read(const struct doc *doc, struct arena *arena, struct notify_config *config,
                      struct problems *problems)
{
    struct notify_smtp_config *smtp = &config->smtp;
    config->has_smtp = true;
    *smtp = (struct notify_smtp_config){.url = text_of_needed(doc, "url", arena),
                                        .from = text_of_needed(doc, "from", arena),
                                        .starts_tls = doc_get_bool(doc, "startTls", true),
                                        .user = text_of_key(doc, "user", arena),
                                        .password_file = text_of_key(doc, "passwordFile", arena),
                                        .ca_file = text_of_key(doc, "caFile", arena)};
    if (!notify_url_is_good(smtp->url, "smtp", "smtps"))
        problem_add(problems, place_of(doc, "url"), "notifications.smtp.url",
                    "must be smtp://HOST[:PORT] or smtps://HOST[:PORT], without a user");
    if (!mail_address_is_good(text_of(smtp->from)))
        problem_add(problems, place_of(doc, "from"), "notifications.smtp.from",
                    "must be a mail address, NAME@DOMAIN");
    if (!smtp->user != !smtp->password_file)
        problem_add(problems, doc->place, "notifications.smtp",
                    "user and passwordFile are given together");
    else if (smtp->user && !smtp->starts_tls && strncmp(smtp->url, "smtp:", 5) == 0 &&
             !notify_url_is_loopback(smtp->url))
        problem_add(problems, place_of(doc, "startTls"), "notifications.smtp.startTls",
                    "a password is sent by TLS alone");
}

static void events_read(const struct doc *item, struct notify_hook_config *hook,
                        struct problems *problems)
{
    const struct doc *list = doc_get(item, "events");
    hook->has_events = list != NULL;
    for (size_t i = 0; list && i < list->as.list.count; i++) {
        const struct doc *event = list->as.list.items[i];
        enum notice_kind kind;
        if (notice_kind_find(event->as.string, &kind))
            hook->events |= NOTICE_BIT(kind);
        else
            problem_add(problems, event->place, "notifications.webhooks.events",
                        "%.*s is none of running, succeeded, stopped, failed, retried",
                        TEXT_ARG(event->as.string));
    }
}

static void hook_read(const struct doc *item, struct arena *arena, struct notify_config *config,
                      struct problems *problems)
{
    struct notify_hook_config *hook = &config->hooks[config->hook_count];
    *hook = (struct notify_hook_config){.name = text_of_needed(item, "name", arena),
                                        .url = text_of_needed(item, "url", arena),
                                        .token_file = text_of_key(item, "tokenFile", arena),
                                        .ca_file = text_of_key(item, "caFile", arena),
                                        .has_alerts = doc_get_bool(item, "alerts", false)};
    if (!notify_url_is_good(hook->url, "http", "https"))
        problem_add(problems, place_of(item, "url"), "notifications.webhooks.url",
                    "must be https:// or http://HOST[:PORT][/PATH], without a user");
    else if (hook->token_file && strncmp(hook->url, "http:", 5) == 0 &&
             !notify_url_is_loopback(hook->url))
        problem_add(problems, place_of(item, "tokenFile"), "notifications.webhooks.tokenFile",
                    "a token is sent by TLS alone");
    events_read(item, hook, problems);
    for (size_t i = 0; i < config->hook_count; i++)
        if (strcmp(config->hooks[i].name, hook->name) == 0)
            problem_add(problems, item->place, "notifications.webhooks.name",
                        "webhook %zu is called %s as well", i + 1, hook->name);
    config->hook_count++;
}

static void alert_mails_read(const struct doc *list, struct arena *arena,
                             struct notify_config *config, struct problems *problems)
{
    static const char path[] = "notifications.alerts.mail";
    if (list->as.list.count > 0 && !config->has_smtp)
        problem_add(problems, list->place, path,
                    "nothing says by which server mails are sent: notifications.smtp");
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *item = list->as.list.items[i];
        const char *address = arena_copy(arena, item->as.string);
        bool is_new = true;
        for (size_t k = 0; k < config->alerts.mail_count; k++)
            is_new = is_new && strcmp(config->alerts.mail[k], address) != 0;
        if (!mail_address_is_good(text_of(address)))
            problem_add(problems, item->place, path,
                        "%s cannot be used: must be a mail address, NAME@DOMAIN", address);
        else if (!is_new)
            problem_add(problems, item->place, path, "%s stands there twice", address);
        else if (config->alerts.mail_count == NOTIFY_ALERT_MAILS_MAX)
            problem_add(problems, item->place, path,
                        "at most %d addresses: a mailing list can have more",
                        NOTIFY_ALERT_MAILS_MAX);
        else
            config->alerts.mail[config->alerts.mail_count++] = address;
    }
}

static void alerts_read(const struct doc *doc, struct arena *arena, struct notify_config *config,
                        struct problems *problems)
{
    config->alerts.is_error_only = config_choice(doc, "severity", config_alert_severities, 0) == 1;
    config->alerts.after_s = (uint32_t)doc_get_int(doc, "afterSeconds", NOTIFY_ALERT_AFTER_S);
    alert_mails_read(doc_get_list(doc, "mail"), arena, config, problems);
    bool is_told = doc_count(doc_get_list(doc, "mail")) > 0;
    for (size_t i = 0; i < config->hook_count; i++)
        is_told = is_told || config->hooks[i].has_alerts;
    if (!is_told)
        problem_warn(problems, doc->place, "notifications.alerts",
                     "nobody is told: name addresses by mail, or webhooks that have alerts: true");
}

static void portal_read(const struct doc *doc, struct arena *arena, struct notify_config *config,
                        struct problems *problems)
{
    struct text url = doc_get_text(doc, "portalUrl", "");
    while (url.length > 0 && url.at[url.length - 1] == '/')
        url.length--;
    if (!url.length)
        return;
    config->portal_url = arena_copy(arena, url);
    if (!notify_url_is_good(config->portal_url, "http", "https"))
        problem_add(problems, place_of(doc, "portalUrl"), "notifications.portalUrl",
                    "must be https:// or http://HOST[:PORT][/PATH], without a user");
}

void config_notify_read(const struct doc *doc, struct arena *arena, struct notify_config *config,
                        struct problems *problems)
{
    const struct doc *section = doc_get(doc, "notifications");
    if (!section)
        return;
    config->keep_hours = (uint32_t)doc_get_int(section, "keepHours", NOTIFY_KEEP_HOURS);
    portal_read(section, arena, config, problems);
    if (doc_get(section, "smtp"))
        smtp_read(doc_get(section, "smtp"), arena, config, problems);
    const struct doc *hooks = doc_get_list(section, "webhooks");
    assert(hooks->as.list.count <= NOTIFY_HOOKS_MAX);
    for (size_t i = 0; i < hooks->as.list.count; i++)
        hook_read(hooks->as.list.items[i], arena, config, problems);
    if (doc_get(section, "alerts"))
        alerts_read(doc_get(section, "alerts"), arena, config, problems);
}

static const char *copied(const char *text, struct arena *arena)
{
    return text ? arena_copy(arena, text_of(text)) : NULL;
}

void config_notify_copy(struct notify_config *to, const struct notify_config *from,
                        struct arena *arena)
{
    *to = *from;
    to->portal_url = copied(from->portal_url, arena);
    to->smtp.url = copied(from->smtp.url, arena);
    to->smtp.from = copied(from->smtp.from, arena);
    to->smtp.user = copied(from->smtp.user, arena);
    to->smtp.password_file = copied(from->smtp.password_file, arena);
    to->smtp.ca_file = copied(from->smtp.ca_file, arena);
    for (size_t i = 0; i < from->hook_count; i++) {
        struct notify_hook_config *hook = &to->hooks[i];
        hook->name = copied(hook->name, arena);
        hook->url = copied(hook->url, arena);
        hook->token_file = copied(hook->token_file, arena);
        hook->ca_file = copied(hook->ca_file, arena);
    }
    for (size_t i = 0; i < from->alerts.mail_count; i++)
        to->alerts.mail[i] = copied(from->alerts.mail[i], arena);
}

bool config_notify_tells_users(const struct notify_config *config)
{
    bool tells = config->has_smtp;
    for (size_t i = 0; i < config->hook_count; i++)
        tells = tells || !config->hooks[i].has_events;
    return tells;
}
