#include "server/notify_sender.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/notices.h"
#include "signon/secret_file.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/secret.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    SECRET_MAX = 4096,
    AGAIN_MS = 15 * 1000, /* between two looks whether somebody may get a mail again */
};
#define MAILS_PERIOD_US ((int64_t)NOTIFY_MAILS_AT_ONCE * NOTIFY_MAIL_EVERY_MS * 1000)

void notify_sender_init(struct notify_sender *sender)
{
    *sender = (struct notify_sender){.due_ms = INT64_MAX};
    secret_random(&sender->mails.map.seed, sizeof sender->mails.map.seed);
    sender->pauses.places.seed = sender->mails.map.seed;
}

/* --- what nobody knows --- */

static struct notify_doubt *doubt_of(struct notify_sender *sender, const char *target)
{
    for (size_t i = 0; i < sender->doubt_count; i++)
        if (strcmp(sender->doubts[i].target, target) == 0)
            return &sender->doubts[i];
    return NULL;
}

static void doubt_end(struct notify_sender *sender, struct notify_doubt *doubt)
{
    if (!doubt)
        return;
    mem_free(doubt->target);
    mem_free(doubt->recipient);
    *doubt = sender->doubts[--sender->doubt_count];
}

static void doubts_forget(struct notify_sender *sender)
{
    while (sender->doubt_count > 0)
        doubt_end(sender, &sender->doubts[0]);
}

/* True: another one has failed before. */
static bool doubt_take(struct notify_sender *sender, const char *target, const char *recipient)
{
    struct notify_doubt *doubt = doubt_of(sender, target);
    const bool is_second = doubt && strcmp(doubt->recipient, recipient) != 0;
    doubt_end(sender, doubt);
    assert(sender->doubt_count < COUNT_OF(sender->doubts)); /* a configuration ends them all */
    sender->doubts[sender->doubt_count++] =
        (struct notify_doubt){.target = mem_copy(target), .recipient = mem_copy(recipient)};
    return is_second;
}

void notify_sender_release(struct notify_sender *sender)
{
    doubts_forget(sender);
    notify_pauses_release(&sender->pauses);
    rate_release(&sender->mails);
}

void notify_sender_due(struct notify_sender *sender, int64_t at_ms)
{
    if (at_ms < sender->due_ms)
        sender->due_ms = at_ms;
}

/* --- who is away --- */

static void away_count(struct notify_sender *sender)
{
    atomic_store(&sender->away, sender->pauses.target_count);
}

static void pause_begin(struct notify_sender *sender, const char *name, bool is_target,
                        const char *why)
{
    if (atomic_load(&sender->is_ending)) /* given up by ourselves */
        return;
    if (notify_pause_begin(&sender->pauses, name, is_target, clock_monotonic_ms()))
        log_warning("notify", "%s: messages wait: %s", name, why);
    away_count(sender);
}

static void pause_end(struct notify_sender *sender, const char *name)
{
    if (notify_pause_end(&sender->pauses, name))
        log_info("notify", "%s: messages are taken again", name);
    away_count(sender);
}

bool notify_sender_is_paused(struct notify_sender *sender, const char *name)
{
    int64_t until_ms;
    if (!notify_pause_is_on(&sender->pauses, name, clock_monotonic_ms(), &until_ms))
        return false;
    notify_sender_due(sender, until_ms);
    return true;
}

void notify_sender_forget(struct notify_sender *sender)
{
    notify_pauses_release(&sender->pauses);
    doubts_forget(sender);
}

void notify_sender_tidy(struct notify_sender *sender)
{
    notify_pauses_tidy(&sender->pauses, clock_monotonic_ms());
    away_count(sender);
}

bool notify_sender_has_failed(const struct notify_sender *sender, const char *recipient)
{
    return text_map_get(&sender->pauses.places, text_of(recipient)) != MAP_NONE;
}

bool notify_sender_settle(struct notify_sender *sender, const char *target, const char *recipient,
                          enum notify_result result, const char *why)
{
    assert(strcmp(target, recipient) != 0);
    if (atomic_load(&sender->is_ending)) /* given up by ourselves, perhaps */
        return false;
    const bool is_second = result == NOTIFY_UNSURE && doubt_take(sender, target, recipient);
    if (result == NOTIFY_LATER || result == NOTIFY_UNSURE) {
        pause_begin(sender, recipient, false, why);
        notify_sender_is_paused(sender, recipient); /* until when */
    }
    if (result == NOTIFY_AWAY || is_second) {
        pause_begin(sender, target, true, why);
        notify_sender_is_paused(sender, target);
        return false;
    }
    if (result == NOTIFY_UNSURE)
        return true;
    doubt_end(sender, doubt_of(sender, target));
    pause_end(sender, target);
    if (result != NOTIFY_LATER)
        pause_end(sender, recipient);
    return true;
}

/* --- sending --- */

bool notify_sender_is_enough(struct notify_sender *sender, const char *recipient)
{
    if (rate_used(&sender->mails, text_of(recipient), NOTIFY_MAILS_AT_ONCE, MAILS_PERIOD_US,
                  clock_monotonic_us()) < NOTIFY_MAILS_AT_ONCE)
        return false;
    notify_sender_due(sender, clock_monotonic_ms() + AGAIN_MS);
    return true;
}

/* Wiped and freed by the caller; *secret NULL: there is none. */
static int secret_get(const char *path, const char *key, char **secret, struct err *err)
{
    *secret = NULL;
    return path ? secret_file_read(path, key, SECRET_MAX, secret, err) : 0;
}

static void secret_drop(char *secret)
{
    if (secret)
        secret_wipe(secret, strlen(secret));
    mem_free(secret);
}

enum notify_result notify_by_smtp(const struct notify_smtp_config *from, const char *address,
                                  struct text message, const atomic_bool *is_ending,
                                  char why[NOTIFY_WHY_SIZE])
{
    char *password;
    struct err err;
    if (secret_get(from->password_file, "notifications.smtp.passwordFile", &password, &err) < 0) {
        snprintf(why, NOTIFY_WHY_SIZE, "%.200s", err.text);
        return NOTIFY_AWAY;
    }
    const struct notify_smtp smtp = {.url = from->url,
                                     .is_plain = !from->starts_tls,
                                     .user = from->user,
                                     .password = password,
                                     .ca_file = from->ca_file,
                                     .from = from->from};
    const enum notify_result result = notify_mail(&smtp, address, message, is_ending, why);
    secret_drop(password);
    return result;
}

enum notify_result notify_sender_mail(struct notify_sender *sender, const char *recipient,
                                      const char *address, struct text message,
                                      char why[NOTIFY_WHY_SIZE])
{
    assert(sender->config->has_smtp);
    const enum notify_result result =
        notify_by_smtp(&sender->config->smtp, address, message, &sender->is_ending, why);
    if (result == NOTIFY_TAKEN || result == NOTIFY_REFUSED)
        rate_take(&sender->mails, text_of(recipient), NOTIFY_MAILS_AT_ONCE, MAILS_PERIOD_US,
                  clock_monotonic_us());
    return result;
}

enum notify_result notify_sender_post(struct notify_sender *sender,
                                      const struct notify_hook_config *hook, struct text json,
                                      char why[NOTIFY_WHY_SIZE])
{
    char *token;
    struct err err;
    if (secret_get(hook->token_file, "notifications.webhooks.tokenFile", &token, &err) < 0) {
        snprintf(why, NOTIFY_WHY_SIZE, "%.200s", err.text);
        return NOTIFY_AWAY;
    }
    const struct notify_hook to = {.url = hook->url, .token = token, .ca_file = hook->ca_file};
    const enum notify_result result = notify_post(&to, json, &sender->is_ending, why);
    secret_drop(token);
    return result;
}
