/* upkeep.c — what the core thread does beside requests: the first user, retention. */
#include "base/err.h"
#include "server/clock.h"
#include "server/state.h"
#include "sys/clock.h"
#include <string.h>

enum {
    PURGE_MAX = 125, /* some 5 us each; and what they leave goes in pieces */
    PASSWORD_LENGTH = 20,
    DAY_MS = 86400 * 1000,
    AGAIN_MS = 500,
    PURGE_AGAIN_MS = 250,
    GPU_USE_DAYS = 400,
    SUBMIT_KEYS_MAX = 100000 /* of all users together; each is kept for a day */
};

/* A random password for `user`: told, then stored. Whoever has a token by an older one loses it. */
static int password_make(struct store *store, enum store_change_kind kind,
                         const struct store_user *user, const struct server_teller *teller,
                         struct err *err)
{
    char password[PASSWORD_LENGTH + 1], hash[PASSWORD_HASH_SIZE];
    const struct store_audit audit = {.at_ms = clock_unix_ms(),
                                      .address = "this machine",
                                      .route = kind == CHANGE_USER_ADD ? "skepd: the first start"
                                                                       : "skepd --reset-password"};
    struct store_change changes[] = {
        {.kind = kind, .user = *user, .audit = &audit, .err = err},
        {.kind = CHANGE_TOKENS_REMOVE,
         .token = {.id = "", .user = user->name, .is_application = true},
         .err = err},
    };
    struct store_batch batch = {.changes = changes, .change_count = COUNT_OF(changes)};
    secret_random_word(password, PASSWORD_LENGTH);
    int code = password_hash(text_of(password), hash, err);
    if (code == 0)
        code = teller->tell(teller->context, user->name, password, err);
    secret_wipe(password, sizeof password);
    if (code < 0)
        return code;
    changes[0].user.password_hash = hash;
    code = store_commit(store, &batch, err);
    return code < 0 ? code : changes[0].code;
}

/* OpenPAI's clients count on these two: everybody's, and the one that makes admins. */
static int server_first_groups(struct server *server, struct err *err)
{
    struct store_change changes[] = {
        {.kind = CHANGE_GROUP_ADD,
         .group = {.name = "default", .description = "everybody", .created_ms = clock_unix_ms()},
         .err = err},
        {.kind = CHANGE_GROUP_ADD,
         .group = {.name = "admingroup",
                   .description = "admins of the platform",
                   .created_ms = clock_unix_ms(),
                   .is_admin = true},
         .err = err},
    };
    struct store_batch batch = {.changes = changes, .change_count = COUNT_OF(changes)};
    int code = store_commit(server->store, &batch, err);
    for (size_t i = 0; code == 0 && i < COUNT_OF(changes); i++)
        if (changes[i].code < 0 && changes[i].code != ERR_CONFLICT)
            code = changes[i].code;
    return code;
}

int server_first_user(struct server *server, const struct server_teller *teller, struct err *err)
{
    struct store_user admin = {.name = server->config->admin_name,
                               .email = "",
                               .is_admin = true,
                               .extension_json = "{}",
                               .created_ms = clock_unix_ms()};
    struct store_member groups[] = {{.name = "default"}, {.name = "admingroup"}};
    int code = server_first_groups(server, err);
    if (code < 0)
        return code;
    admin.groups = (struct store_members){groups, COUNT_OF(groups)};
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct store_users users;
    code = store_users(server->core.reader, &arena, &users, err);
    if (code < 0 || users.count > 0)
        return code;
    return password_make(server->store, CHANGE_USER_ADD, &admin, teller, err);
}

int server_password_reset(struct store *store, const char *name, const struct server_teller *teller,
                          struct err *err)
{
    cleanup_store_reader struct store_reader *reader = NULL;
    int code = store_reader_open(store, &reader, err);
    if (code < 0)
        return code;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct store_user user;
    code = store_user(reader, text_of(name), &arena, &user, err);
    if (code == 0)
        code = password_make(store, CHANGE_USER_SET, &user, teller, err);
    return code;
}

struct mail_list {
    struct server_mail *first, **last;
};

static void list_add(struct mail_list *list, struct server_mail *mail)
{
    *list->last = mail;
    list->last = (struct server_mail **)(void *)&mail->mail.next;
}

/* There may be more: soon again. */
static void upkeep_again(struct server *server, int64_t pause_ms)
{
    const int64_t at_ms = clock_monotonic_ms() + pause_ms;
    if (at_ms < server->core.upkeep_at_ms)
        server->core.upkeep_at_ms = at_ms;
}

/* Through the core, which may still have them in memory. */
static void purge(struct server *server, struct mail_list *list, const struct job_id *jobs,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct server_mail *mail = mail_event(EVENT_DELETE, "");
        mail->event.job = jobs[i];
        list_add(list, mail);
    }
    if (count > 0)
        log_info("server", "%zu old jobs are removed", count);
    atomic_fetch_add(&server->metrics.purged_jobs, count);
    if (count > 0)
        upkeep_again(server, PURGE_AGAIN_MS);
}

/* True: there were some. */
static bool purge_before(struct server *server, struct mail_list *list, int64_t before_ms)
{
    const struct unpurged *unpurged = &server->core.unpurged;
    const uint64_t deletions = store_deletions_waiting(server->store);
    const size_t most = deletions < PURGE_MAX ? (size_t)(PURGE_MAX - deletions) : 0;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const size_t room = unpurged_room(unpurged, most);
    struct job_id *jobs = ARENA_ARRAY(&arena, struct job_id, room);
    size_t count = 0;
    if (most > 0)
        count = store_jobs_final(server->store, before_ms, jobs, room);
    else /* what those before have left goes first */
        upkeep_again(server, PURGE_AGAIN_MS);
    count = unpurged_drop(unpurged, jobs, count, most);
    purge(server, list, jobs, count);
    return count > 0;
}

/* The database is too large: of those who keep more than their share, whatever their age. */
static int purge_surplus(struct server *server, struct mail_list *list, struct err *err)
{
    const struct unpurged *unpurged = &server->core.unpurged;
    const size_t room = unpurged_room(unpurged, PURGE_MAX);
    struct store_shares shares;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    if (store_deletions_waiting(server->store) > 0) { /* whose room is not free yet */
        upkeep_again(server, PURGE_AGAIN_MS);
        return 0;
    }
    struct job_id *jobs = ARENA_ARRAY(&arena, struct job_id, room);
    int code = store_quota_shares(server->core.reader, QUOTA_KEPT_JOBS, &arena, &shares, err);
    if (code == 0) {
        const size_t count = store_jobs_surplus(server->store, &shares, jobs, room);
        purge(server, list, jobs, unpurged_drop(unpurged, jobs, count, PURGE_MAX));
    }
    return code;
}

static void change_before(struct mail_list *list, enum store_change_kind kind, int64_t before_ms)
{
    struct server_mail *mail = mail_new(MAIL_CHANGE);
    mail->change = (struct store_change){.kind = kind, .before_ms = before_ms};
    list_add(list, mail);
}

/* Those that have been there for long enough to have told of all their machines. */
static bool has_told(const struct server *server, uint8_t engine)
{
    const struct server_engine *own = &server->engines.items[engine];
    return atomic_load(&own->engine) && clock_monotonic_ms() - own->open_ms >= UPKEEP_MS;
}

/* Machines of the rows that their engine has not spoken of are gone, and those of engines that are
 * not configured any more. */
static void lose_unseen_nodes(struct server *server, struct mail_list *list)
{
    pthread_mutex_lock(&server->state_lock);
    for (size_t i = 0; i < server->nodes.count; i++) {
        struct node_known *node = &server->nodes.items[i];
        struct server_mail *mail;
        if (node->is_seen || (node->engine != ENGINE_NONE && !has_told(server, node->engine)))
            continue;
        node->is_seen = true; /* once */
        node->is_lost = true;
        mail = mail_event(EVENT_NODE_LOST, "");
        mail->event.node.name = arena_copy(&mail->arena, text_of(node->facts.name));
        mail->event.node.gpu_type = mail->event.node.address = "";
        list_add(list, mail);
    }
    pthread_mutex_unlock(&server->state_lock);
}

/* A time that no step of the clock has made, noted down each time: a restart must not make the
 * server believe what it did not believe before. */
static int64_t retention_time(struct server *server, struct mail_list *list)
{
    struct server_mail *notes[CLOCK_NOTES];
    core_thread_now(server);
    server_clock_note(server, notes);
    for (size_t i = 0; i < CLOCK_NOTES; i++)
        list_add(list, notes[i]);
    const int64_t doubted_ms = server_clock_doubted_ms(&server->core.clock);
    if (doubted_ms > DAY_MS)
        log_warning("server",
                    "the clock is %lld days ahead of what was last seen: nothing is "
                    "removed by age until it has stood so for an hour",
                    (long long)doubted_ms / DAY_MS);
    return atomic_load(&server->trusted_ms);
}

static void audit_retain(const struct retention_config *retention, struct mail_list *list,
                         int64_t now)
{
    struct server_mail *mail = mail_new(MAIL_CHANGE);
    mail->change = (struct store_change){.kind = CHANGE_AUDIT_TRIM};
    if (retention->audit_days > 0)
        mail->change.before_ms = now - (int64_t)retention->audit_days * DAY_MS;
    mail->change.most = retention->audit_records;
    list_add(list, mail);
}

static void submit_keys_retain(struct mail_list *list, int64_t now)
{
    struct server_mail *mail = mail_new(MAIL_CHANGE);
    mail->change = (struct store_change){
        .kind = CHANGE_SUBMIT_KEYS_TRIM, .before_ms = now - DAY_MS, .most = SUBMIT_KEYS_MAX};
    list_add(list, mail);
}

static void requests_retain(struct mail_list *list, int64_t now)
{
    struct server_mail *mail = mail_new(MAIL_CHANGE);
    mail->change = (struct store_change){.kind = CHANGE_REQUESTS_TRIM,
                                         .before_ms = now - (int64_t)REQUEST_KEEP_DAYS * DAY_MS,
                                         .most = REQUESTS_CLOSED_MAX};
    list_add(list, mail);
}

struct server_mail *server_upkeep(struct server *server)
{
    const struct retention_config *retention = &server->config->retention;
    struct mail_list list = {NULL, &list.first};
    int64_t now = retention_time(server, &list);
    int64_t jobs_before = 0, events_before = 0, oldest_event;
    if (retention->job_days > 0)
        jobs_before = now - (int64_t)retention->job_days * DAY_MS;
    if (retention->event_log_days > 0)
        events_before = now - (int64_t)retention->event_log_days * DAY_MS;
    uint64_t used;
    struct err err;
    unpurged_retry(server);
    if (store_measure(server->store, &used, &oldest_event, &err) < 0) {
        log_error("store", "%s", err.text);
        return list.first;
    }
    /* a bounded number a round; what is old goes before what is too much */
    const bool is_too_large = retention->database_mib > 0 && used >> 20 >= retention->database_mib;
    const bool has_old = jobs_before > 0 && purge_before(server, &list, jobs_before);
    if (is_too_large && store_deletions_waiting(server->store) == 0)
        events_before = now;
    if (is_too_large && !has_old && purge_surplus(server, &list, &err) < 0)
        log_error("store", "whose jobs are to go is not known: %s", err.text);
    if (oldest_event && oldest_event < events_before) {
        change_before(&list, CHANGE_LOG_TRIM, events_before);
        upkeep_again(server, AGAIN_MS);
    }
    change_before(&list, CHANGE_TOKENS_EXPIRE, now);
    change_before(&list, CHANGE_GPU_USE_TRIM, now - (int64_t)GPU_USE_DAYS * DAY_MS);
    submit_keys_retain(&list, now);
    requests_retain(&list, now);
    audit_retain(retention, &list, now);
    if (clock_monotonic_ms() - server->core.begin_ms >= UPKEEP_MS)
        lose_unseen_nodes(server, &list);
    return list.first;
}
