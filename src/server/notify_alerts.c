#include "server/notify_alerts.h"
#include "base/err.h"
#include "base/memory.h"
#include "model/told_book.h"
#include "notify/alert_message.h"
#include "server/notify_sender.h"
#include "server/state.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include <assert.h>
#include <stdatomic.h>

#define TOLD_SETTING "alerts.told"

enum { TARGETS_MAX = NOTIFY_ALERT_MAILS_MAX + NOTIFY_HOOKS_MAX };
_Static_assert((int)TARGETS_MAX <= (int)TOLD_TARGETS_MAX, "each target has a number of its own");

struct notify_alerts {
    struct server *server;
    atomic_bool is_saving, has_failed; /* what is to be stored: not yet; the last time */
    _Atomic uint64_t sent, dropped, waiting;

    /* the thread's own */
    struct told_book *book;
    struct buf saved, saving; /* what is stored; what will be, when is_saving ends */
    bool has_posted;          /* `saving` was given to the core thread */
    bool is_full;
};

/* One or the other. */
struct alert_target {
    const char *name;    /* as it is stored */
    const char *sent_as; /* what is paused when a message may be at fault, and not the target */
    const char *address;
    const struct notify_hook_config *hook;
};

struct alert_target_list {
    struct alert_target items[TARGETS_MAX];
    size_t count;
};

struct notify_alerts *notify_alerts_new(struct server *server)
{
    struct notify_alerts *alerts = mem_zero(1, sizeof *alerts);
    alerts->server = server;
    alerts->book = told_book_new();
    return alerts;
}

void notify_alerts_free(struct notify_alerts *alerts)
{
    if (!alerts)
        return;
    told_book_free(alerts->book);
    buf_release(&alerts->saved);
    buf_release(&alerts->saving);
    mem_free(alerts);
}

/* --- what is stored --- */

int notify_alerts_load(struct notify_alerts *alerts, struct store_reader *reader, struct err *err)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct text bytes = {0};
    int code = store_setting(reader, TOLD_SETTING, &arena, &bytes, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    buf_text(&alerts->saved, bytes);
    struct err damage;
    if (told_book_read(alerts->book, bytes, &damage) < 0)
        log_error("notify",
                  "which alerts were told before the start is not known, they are told "
                  "again: %s",
                  damage.text);
    return 0;
}

/* On the core's thread. While nothing can be stored, rounds go on by themselves. */
static void saved_tell(void *context, const struct service_answer *answer)
{
    struct notify_alerts *alerts = context;
    const bool has_failed = answer->code < 0;
    const bool had_failed = atomic_exchange(&alerts->has_failed, has_failed);
    atomic_store(&alerts->is_saving, false);
    if (!has_failed || !had_failed)
        notify_watch_wake(alerts->server->notify_watch);
}

/* True: it was not stored as it is now. */
static bool book_save(struct notify_alerts *alerts)
{
    assert(!atomic_load(&alerts->is_saving));
    buf_clear(&alerts->saving);
    told_book_write(alerts->book, &alerts->saving);
    if (text_equal(buf_as_text(&alerts->saving), buf_as_text(&alerts->saved)))
        return false;
    struct server_mail *mail = mail_new(MAIL_CHANGE);
    struct text value = buf_as_text(&alerts->saving);
    value.at = arena_copy(&mail->arena, value);
    mail->change = (struct store_change){.kind = CHANGE_SETTING, .setting = {TOLD_SETTING, value}};
    mail->reply = (struct service_reply){.done = saved_tell, .context = alerts};
    alerts->has_posted = true;
    atomic_store(&alerts->is_saving, true);
    server_post_fact(alerts->server, mail);
    return true;
}

/* What was to be stored is, or cannot be. */
static void saved_take(struct notify_alerts *alerts)
{
    const bool is_stored = alerts->has_posted && !atomic_load(&alerts->has_failed);
    alerts->has_posted = false;
    if (!is_stored)
        return;
    const struct buf old = alerts->saved;
    alerts->saved = alerts->saving;
    alerts->saving = old;
}

/* --- targets --- */

static void targets_find(struct notify_alerts *alerts, const struct notify_config *config,
                         struct arena *arena, struct alert_target_list *targets)
{
    const char *names[TARGETS_MAX];
    targets->count = 0;
    for (size_t i = 0; i < config->alerts.mail_count; i++)
        targets->items[targets->count++] =
            (struct alert_target){.name = arena_format(arena, "mail to %s", config->alerts.mail[i]),
                                  .address = config->alerts.mail[i]};
    for (size_t i = 0; i < config->hook_count; i++)
        if (config->hooks[i].has_alerts)
            targets->items[targets->count++] = (struct alert_target){
                .name = arena_format(arena, NOTICE_HOOK "%s", config->hooks[i].name),
                .hook = &config->hooks[i]};
    for (size_t i = 0; i < targets->count; i++) {
        struct alert_target *target = &targets->items[i];
        names[i] = target->name;
        target->sent_as =
            target->hook ? arena_format(arena, "%s, alerts", target->name) : target->name;
    }
    told_book_targets(alerts->book, names, targets->count);
}

/* --- sending --- */

struct alert_pile {
    const struct alert *items[NOTIFY_TOGETHER_MAX];
    size_t count;
};

/* True: the target may be asked for more. */
static bool pile_settle(struct notify_alerts *alerts, size_t number,
                        const struct alert_target *target, const struct alert_pile *pile,
                        enum notify_result result, const char *why)
{
    if (result != NOTIFY_TAKEN && result != NOTIFY_REFUSED)
        return false;
    if (result == NOTIFY_REFUSED)
        log_warning("notify", "%s: a message about the alert %s (%s)%s is refused: %s",
                    target->name, pile->items[0]->name, pile->items[0]->summary,
                    pile->count > 1 ? " and others" : "", why);
    told_book_said(alerts->book, number, pile->items, pile->count);
    atomic_fetch_add(result == NOTIFY_TAKEN ? &alerts->sent : &alerts->dropped, pile->count);
    return true;
}

static void mail_send(struct notify_alerts *alerts, struct notify_sender *sender, size_t number,
                      const struct alert_target *target)
{
    struct alert_pile pile;
    pile.count = told_book_due(alerts->book, number, NULL, pile.items, NOTIFY_TOGETHER_MAX);
    if (pile.count == 0 || notify_sender_is_paused(sender, NOTICE_MAIL) ||
        notify_sender_is_paused(sender, target->name) ||
        notify_sender_is_enough(sender, target->name))
        return;
    cleanup_buf struct buf message = BUF_INIT;
    char why[NOTIFY_WHY_SIZE] = "";
    const struct notify_alert_letter letter = {.from = sender->config->smtp.from,
                                               .to = target->address,
                                               .alerts = pile.items,
                                               .count = pile.count,
                                               .portal_url = sender->config->portal_url,
                                               .now_ms = clock_unix_ms()};
    notify_alert_letter_write(&letter, &message);
    const enum notify_result result =
        notify_sender_mail(sender, target->name, target->address, buf_as_text(&message), why);
    notify_sender_settle(sender, NOTICE_MAIL, target->sent_as, result, why);
    const bool goes_on = pile_settle(alerts, number, target, &pile, result, why);
    if (goes_on && pile.count == NOTIFY_TOGETHER_MAX) /* the next round may have more */
        notify_sender_due(sender, clock_monotonic_ms() + NOTIFY_ROUND_MS);
}

/* One group. False: nothing is due, or the webhook is away. */
static bool hook_post(struct notify_alerts *alerts, struct notify_sender *sender, size_t number,
                      const struct alert_target *target)
{
    struct alert_pile pile;
    const struct alert *first;
    if (told_book_due(alerts->book, number, NULL, &first, 1) == 0 ||
        notify_sender_is_paused(sender, target->name) ||
        notify_sender_is_paused(sender, target->sent_as))
        return false;
    pile.count = told_book_due(alerts->book, number, first->name, pile.items, NOTIFY_TOGETHER_MAX);
    struct notify_alert_group group = {.alerts = pile.items,
                                       .portal_url = sender->config->portal_url};
    group.count =
        pile.count + told_book_standing(alerts->book, number, first->name, pile.items + pile.count,
                                        NOTIFY_TOGETHER_MAX - pile.count, &group.left_out);
    cleanup_buf struct buf json = BUF_INIT;
    char why[NOTIFY_WHY_SIZE] = "";
    notify_alert_group_write(&group, &json);
    const enum notify_result result =
        notify_sender_post(sender, target->hook, buf_as_text(&json), why);
    notify_sender_settle(sender, target->name, target->sent_as, result, why);
    return pile_settle(alerts, number, target, &pile, result, why);
}

static void target_send(struct notify_alerts *alerts, struct notify_sender *sender, size_t number,
                        const struct alert_target *target)
{
    if (atomic_load(&alerts->has_failed)) /* what is sent need not be durable */
        told_book_announce(alerts->book, number);
    if (target->address)
        mail_send(alerts, sender, number, target);
    else
        while (!atomic_load(&sender->is_ending) && hook_post(alerts, sender, number, target))
            ;
    told_book_announce(alerts->book, number);
}

/* --- rounds --- */

static void outcome_log(struct notify_alerts *alerts, const struct told_round *round)
{
    if (round->full > 0 && !alerts->is_full)
        log_warning("notify",
                    "%zu alerts are not told: as many stand as can be kept in mind, they wait "
                    "until others have ended",
                    round->full);
    alerts->is_full = round->full > 0;
    if (round->given_up == 0)
        return;
    log_warning("notify", "the end of %zu alerts is not told: it could not be for too long",
                round->given_up);
    atomic_fetch_add(&alerts->dropped, round->given_up);
}

/* False: what stands is not known yet. */
static bool book_update(struct notify_alerts *alerts, struct notify_sender *sender,
                        struct arena *arena)
{
    const struct notify_config *config = sender->config;
    const int64_t now_ms = server_now_ms(alerts->server);
    struct alert *list;
    size_t count;
    struct told_round round;
    if (!alert_watch_copy(alerts->server->alert_watch, arena, &list, &count))
        return false;
    const struct told_rules rules = {.is_error_only = config->alerts.is_error_only,
                                     .after_ms = (int64_t)config->alerts.after_s * 1000,
                                     .given_up_ms = atomic_load(&alerts->server->trusted_ms) -
                                                    (int64_t)config->keep_hours * 3600 * 1000};
    told_book_take(alerts->book, list, count, &rules, now_ms, &round);
    if (round.next_ms)
        notify_sender_due(sender, clock_monotonic_ms() + round.next_ms - now_ms);
    outcome_log(alerts, &round);
    return true;
}

void notify_alerts_round(struct notify_alerts *alerts, struct notify_sender *sender)
{
    struct alert_target_list targets;
    if (atomic_load(&alerts->is_saving)) /* its end brings a round */
        return;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    saved_take(alerts);
    targets_find(alerts, sender->config, &arena, &targets);
    if (targets.count > 0 && !book_update(alerts, sender, &arena))
        return;
    const size_t waiting = told_book_waiting(alerts->book);
    for (size_t i = 0; i < targets.count && !atomic_load(&sender->is_ending); i++)
        target_send(alerts, sender, i, &targets.items[i]);
    atomic_store(&alerts->waiting, book_save(alerts) ? waiting : told_book_waiting(alerts->book));
    if (atomic_load(&alerts->has_failed))
        notify_sender_due(sender, clock_monotonic_ms() + NOTIFY_PAUSE_FIRST_MS);
}

void notify_alerts_metrics_write(const struct notify_alerts *alerts, struct buf *out)
{
    metric_write(out, "skep_alert_notices_waiting", "gauge",
                 "Beginnings and ends of alerts that are to be told, or are told and not stored "
                 "as such, by target, as of the last look.",
                 atomic_load(&alerts->waiting));
    metric_write(out, "skep_alert_notices_sent_total", "counter",
                 "Beginnings and ends of alerts that were taken, by target.",
                 atomic_load(&alerts->sent));
    metric_write(out, "skep_alert_notices_dropped_total", "counter",
                 "Beginnings and ends of alerts that were given up: refused, or too old.",
                 atomic_load(&alerts->dropped));
}
