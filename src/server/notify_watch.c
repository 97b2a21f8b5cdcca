#include "server/notify_watch.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mail_address.h"
#include "base/map.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "doc/problem.h"
#include "model/notice.h"
#include "notify/message.h"
#include "server/config_notify.h"
#include "server/notify_alerts.h"
#include "server/notify_sender.h"
#include "server/notify_tries.h"
#include "server/state.h"
#include "spec/spec.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/watcher.h"
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { IDLE_MS = 600 * 1000 }; /* a round at least so often: messages grow old */

/* A configuration, shared by who uses it just now. */
struct notify_settings {
    struct arena arena;
    struct notify_config config;
};

struct row_numbers {
    uint64_t *items;
    size_t count, room;
};

struct notify_watch {
    struct server *server;
    struct watcher watcher;
    bool has_news;                /* under the watcher's lock */
    struct notify_settings *next; /* likewise: not NULL: the configuration has changed */
    _Atomic bool tells, is_by_mail_alone;
    _Atomic uint64_t sent, dropped, waiting;

    /* the thread's own */
    struct notify_settings *settings;
    struct store_reader *reader;
    struct notify_sender sender;
    struct notify_alerts *alerts;
    struct notify_tries tries;  /* rows that webhooks have not taken */
    struct id_map done;         /* rows that are removed, which the table may still have */
    struct row_numbers removed; /* since the last mail to the core thread */
};

static struct notify_settings *settings_of(const struct notify_config *config)
{
    struct notify_settings *settings = mem_zero(1, sizeof *settings);
    arena_init(&settings->arena);
    config_notify_copy(&settings->config, config, &settings->arena);
    return settings;
}

static void settings_free(struct notify_settings *settings)
{
    if (!settings)
        return;
    arena_release(&settings->arena);
    mem_free(settings);
}

struct notify_watch *notify_watch_new(struct server *server)
{
    struct notify_watch *watch = mem_zero(1, sizeof *watch);
    watch->server = server;
    watch->has_news = true; /* what has waited since the last time */
    notify_sender_init(&watch->sender);
    watch->alerts = notify_alerts_new(server);
    watcher_init(&watch->watcher);
    notify_watch_configure(watch, &server->config->notify);
    return watch;
}

void notify_watch_configure(struct notify_watch *watch, const struct notify_config *config)
{
    struct notify_settings *settings = settings_of(config);
    bool has_hook = false;
    for (size_t i = 0; i < config->hook_count; i++)
        has_hook = has_hook || !config->hooks[i].has_events;
    atomic_store(&watch->tells, config_notify_tells_users(config));
    atomic_store(&watch->is_by_mail_alone, config->has_smtp && !has_hook);
    pthread_mutex_lock(&watch->watcher.lock);
    settings_free(watch->next);
    watch->next = settings;
    watch->has_news = true;
    watcher_wake(&watch->watcher);
    pthread_mutex_unlock(&watch->watcher.lock);
}

static const char *address_of(struct store_reader *reader, const char *user, struct arena *arena)
{
    struct store_user row;
    struct err err;
    return store_user(reader, text_of(user), arena, &row, &err) < 0 ? "" : row.email;
}

int notify_submit_check(struct server *server, const char *user, const struct spec *spec,
                        struct problems *problems, struct arena *arena, struct err *err)
{
    static const char path[] = "extras.jobStatusChangeNotification";
    const struct place place = {.line = spec->notify_line, .column = 1};
    if (notices_asked(spec) == 0)
        return 0;
    if (!atomic_load(&server->notify_watch->tells)) {
        problem_warn(problems, place, path,
                     "no message can be sent here: the administrators "
                     "have set up neither a mail server nor a webhook");
        return 0;
    }
    const bool is_by_mail_alone = atomic_load(&server->notify_watch->is_by_mail_alone);
    struct store_reader *reader = is_by_mail_alone ? server->service.reader_get(server, err) : NULL;
    if (is_by_mail_alone && !reader)
        return ERR_UNAVAILABLE;
    if (reader && !mail_address_is_good(text_of(address_of(reader, user, arena))))
        problem_warn(problems, place, path,
                     "no message can be sent to you: your account has no mail address that can be "
                     "used");
    server->service.reader_put(server, reader);
    return 0;
}

void notify_watch_wake(struct notify_watch *watch)
{
    pthread_mutex_lock(&watch->watcher.lock);
    watch->has_news = true;
    watcher_wake(&watch->watcher);
    pthread_mutex_unlock(&watch->watcher.lock);
}

/* --- what is done with rows --- */

static void row_remove(struct notify_watch *watch, uint64_t number)
{
    id_map_set(&watch->done, number, 1);
    notify_try_end(&watch->tries, number);
    *ARRAY_ADD(&watch->removed) = number;
}

static void rows_tell(struct notify_watch *watch)
{
    if (watch->removed.count == 0)
        return;
    struct server_mail *mail = mail_new(MAIL_CHANGE);
    uint64_t *numbers = ARENA_ARRAY(&mail->arena, uint64_t, watch->removed.count);
    memcpy(numbers, watch->removed.items, watch->removed.count * sizeof *numbers);
    mail->change = (struct store_change){.kind = CHANGE_NOTICES_REMOVE,
                                         .sent = {numbers, watch->removed.count}};
    watch->removed.count = 0;
    server_post_fact(watch->server, mail);
}

/* Some that are sent together. */
struct pile {
    const struct store_notice *rows[NOTIFY_TOGETHER_MAX];
    const struct notice *notices[NOTIFY_TOGETHER_MAX];
    size_t count;
};

static void pile_add(struct pile *pile, const struct store_notice *row)
{
    assert(pile->count < NOTIFY_TOGETHER_MAX);
    pile->rows[pile->count] = row;
    pile->notices[pile->count++] = &row->notice;
}

static bool row_waits(const struct notify_watch *watch, const struct store_notice *row,
                      const char *target)
{
    return strcmp(row->target, target) == 0 && id_map_get(&watch->done, row->number) == MAP_NONE;
}

static void pile_remove(struct notify_watch *watch, const struct pile *pile, bool is_sent)
{
    for (size_t i = 0; i < pile->count; i++)
        row_remove(watch, pile->rows[i]->number);
    atomic_fetch_add(is_sent ? &watch->sent : &watch->dropped, pile->count);
}

/* "alice~train", "the request 8f2c…": what the first of them is about, for the log. */
static const char *pile_subject(const struct pile *pile, struct arena *arena)
{
    assert(pile->count > 0);
    const struct notice *first = pile->notices[0];
    if (notice_is_of_request(first->kind))
        return arena_format(arena, "the request %s", first->job_name);
    return arena_format(arena, "%s~%s", first->user, first->job_name);
}

/* What has come of a pile that was sent to `target`; `to` is what may be at fault instead
 * (notify_sender_settle). True: the target may be asked for more. */
static bool pile_settle(struct notify_watch *watch, const struct pile *pile, const char *target,
                        const char *to, enum notify_result result, const char *why)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const bool goes_on = notify_sender_settle(&watch->sender, target, to, result, why);
    if (result == NOTIFY_REFUSED)
        log_warning("notify", "%s: a message about %s%s is refused: %s", target,
                    pile_subject(pile, &arena), pile->count > 1 ? " and others" : "", why);
    if (result == NOTIFY_TAKEN || result == NOTIFY_REFUSED)
        pile_remove(watch, pile, result == NOTIFY_TAKEN);
    return goes_on;
}

/* --- mail --- */

struct addressee {
    const char *address;
    bool hears_decisions; /* on their requests */
};

/* Unless the user's extension says otherwise. */
static bool hears_decisions(const struct store_user *row, struct arena *arena)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(text_of(row->extension_json), DOC_JSON, arena, &problems);
    const struct doc *said = doc_get(doc, "requestDecisionNotification");
    return !said || said->kind != DOC_BOOL || said->as.boolean;
}

/* 1: there is an address; 0: there is none, nor may there be a user; < 0: that is not known. */
static int addressee_find(struct notify_watch *watch, const char *user, struct arena *arena,
                          struct addressee *found, struct err *err)
{
    struct store_user row;
    int code = store_user(watch->reader, text_of(user), arena, &row, err);
    if (code == ERR_NOT_FOUND)
        return 0;
    if (code < 0)
        return code;
    found->address = row.email;
    found->hears_decisions = hears_decisions(&row, arena);
    return !row.is_inactive && mail_address_is_good(text_of(row.email));
}

static const char *mail_name(const char *user, struct arena *arena)
{
    return arena_format(arena, "mail to %s", user);
}

/* The oldest of what waits for a user. */
static void mail_pile(const struct notify_watch *watch, const struct store_notices *all,
                      const char *user, struct pile *pile)
{
    pile->count = 0;
    for (size_t i = 0; i < all->count && pile->count < NOTIFY_TOGETHER_MAX; i++) {
        const struct store_notice *row = &all->items[i];
        if (row_waits(watch, row, NOTICE_MAIL) && strcmp(row->notice.user, user) == 0)
            pile_add(pile, row);
    }
}

/* Takes decisions on requests out of it, of which the user does not want to hear. */
static void decisions_drop(struct notify_watch *watch, struct pile *pile)
{
    struct pile kept = {.count = 0}, dropped = {.count = 0};
    for (size_t i = 0; i < pile->count; i++)
        pile_add(notice_is_of_request(pile->notices[i]->kind) ? &dropped : &kept, pile->rows[i]);
    pile_remove(watch, &dropped, false);
    *pile = kept;
}

/* One mail to a user at most, with what waits for them. False: the mail server is away. */
static bool user_mail(struct notify_watch *watch, const struct store_notices *all, const char *user,
                      struct arena *arena)
{
    const struct notify_config *config = &watch->settings->config;
    struct pile pile;
    struct err err;
    struct addressee found = {.address = NULL};
    mail_pile(watch, all, user, &pile);
    int code = pile.count > 0 ? addressee_find(watch, user, arena, &found, &err) : 0;
    if (code < 0) {
        log_error("notify", "the mail address of %s is not known now: %s", user, err.text);
        notify_sender_due(&watch->sender, clock_monotonic_ms() + NOTIFY_PAUSE_FIRST_MS);
        return true;
    }
    if (code == 0) {
        if (pile.count > 0)
            log_info("notify",
                     "%s has no mail address that can be used: nothing is sent about %s%s", user,
                     pile_subject(&pile, arena), pile.count > 1 ? " and others" : "");
        pile_remove(watch, &pile, false);
        return true;
    }
    if (!found.hears_decisions)
        decisions_drop(watch, &pile);
    if (pile.count == 0)
        return true;
    const char *to = mail_name(user, arena);
    if (notify_sender_is_paused(&watch->sender, to) || notify_sender_is_enough(&watch->sender, to))
        return true;
    cleanup_buf struct buf message = BUF_INIT;
    char why[NOTIFY_WHY_SIZE] = "";
    const struct notify_letter letter = {.from = config->smtp.from,
                                         .to = found.address,
                                         .notices = pile.notices,
                                         .count = pile.count,
                                         .portal_url = config->portal_url,
                                         .now_ms = clock_unix_ms()};
    notify_letter_write(&letter, &message);
    const enum notify_result result =
        notify_sender_mail(&watch->sender, to, found.address, buf_as_text(&message), why);
    if (pile.count == NOTIFY_TOGETHER_MAX) /* the next round may have more for them */
        notify_sender_due(&watch->sender, clock_monotonic_ms() + NOTIFY_ROUND_MS);
    return pile_settle(watch, &pile, NOTICE_MAIL, to, result, why);
}

/* Those to whom the last mail went, or those to whom it did not. False: the mail server is away. */
static bool mails_pass(struct notify_watch *watch, const struct store_notices *all, bool has_failed,
                       struct text_map *users, struct arena *arena)
{
    bool goes_on = true;
    for (size_t i = 0; goes_on && i < all->count && !atomic_load(&watch->sender.is_ending); i++) {
        const struct store_notice *row = &all->items[i];
        const struct text user = text_of(row->notice.user);
        if (!row_waits(watch, row, NOTICE_MAIL) || text_map_get(users, user) != MAP_NONE)
            continue;
        const char *name = mail_name(row->notice.user, arena);
        if (notify_sender_has_failed(&watch->sender, name) != has_failed)
            continue;
        text_map_set(users, user, 1);
        goes_on = user_mail(watch, all, row->notice.user, arena);
        rows_tell(watch);
    }
    return goes_on;
}

/* Once to each user for whom something waits, last to those who may hold up the others; who has
 * more is the next round's. */
static void mails_send(struct notify_watch *watch, const struct store_notices *all,
                       struct arena *arena)
{
    struct text_map users = {.seed = watch->sender.mails.map.seed};
    if (!watch->settings->config.has_smtp || notify_sender_is_paused(&watch->sender, NOTICE_MAIL))
        return;
    if (mails_pass(watch, all, false, &users, arena))
        mails_pass(watch, all, true, &users, arena);
    text_map_release(&users);
}

int notify_try(const struct notify_config *config, struct text to, struct err *err)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    if (!config->has_smtp)
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "no mail server is configured: "
                        "notifications.smtp");
    if (!mail_address_is_good(to))
        return err_fail(err, ERR_INVALID, "email", "there is no mail address to send to");
    cleanup_buf struct buf message = BUF_INIT;
    char why[NOTIFY_WHY_SIZE] = "";
    const char *address = arena_copy(&arena, to);
    const struct notify_letter letter = {.from = config->smtp.from,
                                         .to = address,
                                         .portal_url = config->portal_url,
                                         .now_ms = clock_unix_ms()};
    notify_trial_write(&letter, &message);
    if (notify_by_smtp(&config->smtp, address, buf_as_text(&message), NULL, why) == NOTIFY_TAKEN)
        return 0;
    return err_fail(err, ERR_UNAVAILABLE, "", "the mail server has not taken it: %s", why);
}

/* --- webhooks --- */

/* How often was it not taken? False: it waits, or is another target's. */
static bool row_tries(struct notify_watch *watch, const struct store_notice *row,
                      const char *target, int64_t now_ms, uint32_t *count)
{
    int64_t until_ms;
    if (!row_waits(watch, row, target))
        return false;
    *count = notify_try_count(&watch->tries, row->number, &until_ms);
    if (until_ms <= now_ms)
        return true;
    notify_sender_due(&watch->sender, until_ms);
    return false;
}

/* First those that were never in a POST that was not taken, then those that were seldom. */
static void hook_pile(struct notify_watch *watch, const struct store_notices *all,
                      const char *target, struct pile *pile)
{
    const int64_t now_ms = clock_monotonic_ms();
    uint32_t least = UINT32_MAX, count;
    pile->count = 0;
    for (size_t i = 0; i < all->count && least > 0; i++)
        if (row_tries(watch, &all->items[i], target, now_ms, &count) && count < least)
            least = count;
    const size_t most = notify_try_together(least, NOTIFY_TOGETHER_MAX);
    for (size_t i = 0; i < all->count && pile->count < most; i++)
        if (row_tries(watch, &all->items[i], target, now_ms, &count) && count == least)
            pile_add(pile, &all->items[i]);
}

static bool hook_post(struct notify_watch *watch, const struct notify_hook_config *hook,
                      const char *target, const struct pile *pile, struct arena *arena)
{
    cleanup_buf struct buf json = BUF_INIT;
    char why[NOTIFY_WHY_SIZE] = "";
    const struct notify_alerts_body body = {.notices = pile->notices,
                                            .count = pile->count,
                                            .portal_url = watch->settings->config.portal_url};
    notify_alerts_write(&body, &json);
    const enum notify_result result =
        notify_sender_post(&watch->sender, hook, buf_as_text(&json), why);
    for (size_t i = 0; result == NOTIFY_UNSURE && i < pile->count; i++)
        notify_try_failed(&watch->tries, pile->rows[i]->number, clock_monotonic_ms());
    const char *about = arena_format(arena, "%s, about %s~%s", target, pile->notices[0]->user,
                                     pile->notices[0]->job_name);
    return pile_settle(watch, pile, target, about, result, why);
}

static void hook_send(struct notify_watch *watch, const struct store_notices *all,
                      const struct notify_hook_config *hook, struct arena *arena)
{
    const char *target = arena_format(arena, NOTICE_HOOK "%s", hook->name);
    bool goes_on = !notify_sender_is_paused(&watch->sender, target);
    while (goes_on && !atomic_load(&watch->sender.is_ending)) {
        struct pile pile;
        hook_pile(watch, all, target, &pile);
        goes_on = pile.count > 0 && hook_post(watch, hook, target, &pile, arena);
        rows_tell(watch);
    }
}

/* --- rounds --- */

static bool target_is_known(const struct notify_config *config, const char *target)
{
    if (strcmp(target, NOTICE_MAIL) == 0)
        return config->has_smtp;
    const char *name = target + (sizeof NOTICE_HOOK - 1);
    for (size_t i = 0; i < config->hook_count; i++)
        if (strncmp(target, NOTICE_HOOK, sizeof NOTICE_HOOK - 1) == 0 &&
            strcmp(config->hooks[i].name, name) == 0)
            return true;
    return false;
}

/* What is too old, too many, or for a target that is not there any more. */
static void rows_drop(struct notify_watch *watch, const struct store_notices *all)
{
    const struct notify_config *config = &watch->settings->config;
    const int64_t old_ms =
        atomic_load(&watch->server->trusted_ms) - (int64_t)config->keep_hours * 3600 * 1000;
    size_t waiting = 0, old = 0, many = 0, strange = 0;
    for (size_t i = 0; i < all->count; i++)
        waiting += id_map_get(&watch->done, all->items[i].number) == MAP_NONE;
    for (size_t i = 0; i < all->count; i++) {
        const struct store_notice *row = &all->items[i];
        size_t *why = NULL;
        if (id_map_get(&watch->done, row->number) != MAP_NONE)
            continue;
        if (!target_is_known(config, row->target))
            why = &strange;
        else if (row->notice.at_ms < old_ms)
            why = &old;
        else if (waiting > NOTIFY_WAITING_MAX)
            why = &many;
        if (!why)
            continue;
        ++*why;
        waiting--;
        row_remove(watch, row->number);
        atomic_fetch_add(&watch->dropped, 1);
    }
    if (old > 0)
        log_warning("notify", "%zu messages are dropped: they could not be sent for %u hours", old,
                    config->keep_hours);
    if (many > 0)
        log_warning("notify", "%zu messages are dropped: more than %d wait", many,
                    NOTIFY_WAITING_MAX);
    if (strange > 0)
        log_warning("notify",
                    "%zu messages are dropped: the configuration does not have their "
                    "target any more",
                    strange);
    atomic_store(&watch->waiting, waiting);
    rows_tell(watch);
}

/* Rows that the table does not have any more need not be remembered. */
static void done_tidy(struct notify_watch *watch, const struct store_notices *all)
{
    struct id_map still = {0};
    for (size_t i = 0; i < all->count; i++)
        if (id_map_get(&watch->done, all->items[i].number) != MAP_NONE)
            id_map_set(&still, all->items[i].number, 1);
    id_map_release(&watch->done);
    watch->done = still;
}

static void waiting_count(struct notify_watch *watch, const struct store_notices *all)
{
    uint64_t waiting = 0;
    for (size_t i = 0; i < all->count; i++)
        waiting += id_map_get(&watch->done, all->items[i].number) == MAP_NONE;
    atomic_store(&watch->waiting, waiting);
}

static void round_make(struct notify_watch *watch)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct store_notices all;
    struct err err;
    watch->sender.due_ms = clock_monotonic_ms() + IDLE_MS;
    watch->sender.config = &watch->settings->config;
    notify_sender_tidy(&watch->sender);
    notify_alerts_round(watch->alerts, &watch->sender);
    /* some more than may wait, so that what is too many is seen */
    if (store_notices(watch->reader, 2 * NOTIFY_WAITING_MAX, &arena, &all, &err) < 0) {
        log_error("notify", "what waits to be sent cannot be read: %s", err.text);
        notify_sender_due(&watch->sender, clock_monotonic_ms() + NOTIFY_PAUSE_FIRST_MS);
        return;
    }
    done_tidy(watch, &all);
    rows_drop(watch, &all);
    mails_send(watch, &all, &arena);
    for (size_t i = 0; i < watch->settings->config.hook_count; i++)
        hook_send(watch, &all, &watch->settings->config.hooks[i], &arena);
    waiting_count(watch, &all);
}

/* Until there is something to do; false: the thread ends. */
static bool watch_wait(struct notify_watch *watch, int64_t round_ms)
{
    struct notify_settings *past = NULL;
    pthread_mutex_lock(&watch->watcher.lock);
    while (!watch->watcher.is_ending) {
        const int64_t news_ms = round_ms + NOTIFY_ROUND_MS;
        const int64_t due_ms =
            watch->has_news && news_ms < watch->sender.due_ms ? news_ms : watch->sender.due_ms;
        if (!watcher_await(&watch->watcher, due_ms))
            break;
    }
    watch->has_news = false;
    if (watch->next) {
        past = watch->settings;
        watch->settings = watch->next;
        watch->next = NULL;
    }
    const bool goes_on = !watch->watcher.is_ending;
    pthread_mutex_unlock(&watch->watcher.lock);
    if (past) { /* what was wrong may be right now */
        notify_sender_forget(&watch->sender);
        notify_tries_release(&watch->tries);
    }
    settings_free(past);
    return goes_on;
}

static void *watch_run(void *context)
{
    struct notify_watch *watch = context;
    int64_t round_ms = clock_monotonic_ms() - NOTIFY_ROUND_MS;
    while (watch_wait(watch, round_ms)) {
        round_ms = clock_monotonic_ms();
        round_make(watch);
    }
    return NULL;
}

int notify_watch_start(struct notify_watch *watch, struct err *err)
{
    int code = store_reader_open(watch->server->store, &watch->reader, err);
    if (code == 0)
        code = notify_alerts_load(watch->alerts, watch->reader, err);
    if (code < 0)
        return code;
    return watcher_start(&watch->watcher, watch_run, watch, "the thread that sends messages", err);
}

void notify_watch_stop(struct notify_watch *watch)
{
    if (!watch)
        return;
    atomic_store(&watch->sender.is_ending, true);
    watcher_stop(&watch->watcher);
}

void notify_watch_free(struct notify_watch *watch)
{
    if (!watch)
        return;
    notify_watch_stop(watch);
    store_reader_close(watch->reader);
    settings_free(watch->settings);
    settings_free(watch->next);
    notify_sender_release(&watch->sender);
    notify_alerts_free(watch->alerts);
    notify_tries_release(&watch->tries);
    id_map_release(&watch->done);
    ARRAY_FREE(&watch->removed);
    watcher_release(&watch->watcher);
    mem_free(watch);
}

void notify_metrics_write(const struct notify_watch *watch, struct buf *out)
{
    metric_write(out, "skep_notices_waiting", "gauge",
                 "Messages about jobs that wait to be sent, as of the last look.",
                 atomic_load(&watch->waiting));
    metric_write(out, "skep_notices_sent_total", "counter", "Messages about jobs that were taken.",
                 atomic_load(&watch->sent));
    metric_write(out, "skep_notices_dropped_total", "counter",
                 "Messages about jobs that were given up: refused, too old, or too many.",
                 atomic_load(&watch->dropped));
    metric_write(out, "skep_notice_targets_away", "gauge",
                 "Mail servers and webhooks that take nothing now.",
                 atomic_load(&watch->sender.away));
    notify_alerts_metrics_write(watch->alerts, out);
}
