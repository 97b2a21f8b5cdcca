#include "server/alert_watch.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/state.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/watcher.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ALERTS_SETTING "alerts"

enum { ALERT_REQUESTS_MAX = 100 }; /* of requests that are open; others need attention, too */
enum { NEWS_MS = 1000 };           /* between two rounds of the thread, however many nodes change */

struct alert_list {
    struct alert *items;
    size_t count, room;
};

struct alert_watch {
    struct server *server;
    struct watcher watcher;
    _Atomic bool has_news; /* of nodes */

    pthread_mutex_t lock; /* of what follows */
    struct alert_book *book;
    struct store_reader *reader;
    struct arena nodes_arena; /* of `nodes`: what is wrong with them, as of the last look */
    struct alert_list nodes;
    bool knows_nodes;
    struct buf saved;           /* what is stored of the book */
    int64_t begin_ms, saved_ms; /* monotonic */
    int64_t looked_ms;          /* the last round, likewise; 0: none */
};

struct alert_watch *alert_watch_new(struct server *server)
{
    struct alert_watch *watch = mem_zero(1, sizeof *watch);
    watch->server = server;
    watch->book = alert_book_new();
    watch->begin_ms = watch->saved_ms = clock_monotonic_ms();
    arena_init(&watch->nodes_arena);
    pthread_mutex_init(&watch->lock, NULL);
    watcher_init(&watch->watcher);
    return watch;
}

void alert_watch_take(struct alert_watch *watch, const struct record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (records[i].kind != RECORD_NODE && records[i].kind != RECORD_CLUSTER)
            continue;
        pthread_mutex_lock(&watch->watcher.lock);
        atomic_store(&watch->has_news, true);
        watcher_wake(&watch->watcher);
        pthread_mutex_unlock(&watch->watcher.lock);
        return;
    }
}

/* --- what is wrong --- */

static void node_find(struct arena *arena, const struct node_record *node, struct alert_list *found)
{
    const char *name = node->facts.name;
    const char *why = node->facts.reason ? node->facts.reason : "";
    if (node->is_lost || !node->facts.is_healthy)
        *ARRAY_ADD(found) = (struct alert){
            .name = "NodeNotReady",
            .severity = "error",
            .labels = {{"node_name", name}},
            .summary =
                arena_format(arena, "node %s is %s%s%s", name,
                             node->is_lost ? "lost" : "not healthy", why[0] ? ": " : "", why),
        };
    if (!node->is_cordoned)
        return;
    const struct node_closing *closing = &node->closing;
    if (closing->is_closed)
        why = arena_format(arena, "cordoned by %s%s%s", closing->by, closing->why[0] ? ": " : "",
                           closing->why);
    *ARRAY_ADD(found) = (struct alert){
        .name = "NodeCordoned",
        .severity = "warn",
        .labels = {{"node_name", name}},
        .summary =
            arena_format(arena, "no task is started on node %s%s%s", name, why[0] ? ": " : "", why),
        .since_ms = closing->is_closed ? closing->at_ms : 0,
    };
}

static void closed_find(struct arena *arena, const struct cluster_record *cluster,
                        struct alert_list *found)
{
    *ARRAY_ADD(found) = (struct alert){
        .name = "VirtualClusterClosed",
        .severity = "warn",
        .labels = {{"virtual_cluster", cluster->name}},
        .summary = cluster_closed_text(cluster, arena),
        .since_ms = cluster->closing.at_ms,
    };
}

static int nodes_find(struct alert_watch *watch, struct err *err)
{
    if (!atomic_exchange(&watch->has_news, false) && watch->knows_nodes)
        return 0;
    struct store_nodes nodes = {0};
    arena_clear(&watch->nodes_arena);
    watch->nodes.count = 0;
    int code = store_nodes(watch->reader, &watch->nodes_arena, &nodes, err);
    for (size_t i = 0; code == 0 && i < nodes.count; i++)
        node_find(&watch->nodes_arena, &nodes.items[i], &watch->nodes);
    struct store_clusters closed = {0};
    if (code == 0)
        code = store_closed_clusters(watch->reader, &watch->nodes_arena, &closed, err);
    for (size_t i = 0; code == 0 && i < closed.count; i++)
        closed_find(&watch->nodes_arena, &closed.items[i], &watch->nodes);
    watch->knows_nodes = code == 0;
    return code;
}

static void gpu_find(struct arena *arena, const struct engine_gpu *gpu, struct alert_list *found)
{
    struct alert alert = {.severity = "error",
                          .labels = {{"node_name", gpu->node},
                                     {"minor_number", arena_format(arena, "%u", gpu->index)}}};
    if (gpu->is_lost) {
        alert.name = "NvidiaGpuLost";
        alert.summary = arena_format(arena, "GPU %u of node %s is lost", gpu->index, gpu->node);
        *ARRAY_ADD(found) = alert;
    }
    if (gpu->has_errors && gpu->ecc_errors > 0) {
        alert.name = "NvidiaSmiDoubleEccError";
        alert.summary = arena_format(arena, "GPU %u of node %s has had %llu error%s of its memory",
                                     gpu->index, gpu->node, (unsigned long long)gpu->ecc_errors,
                                     gpu->ecc_errors == 1 ? "" : "s");
        *ARRAY_ADD(found) = alert;
    }
}

static void server_find(struct server *server, struct arena *arena, struct alert_list *found)
{
    struct service_check *checks = ARENA_ARRAY(arena, struct service_check, SERVICE_CHECKS_MAX);
    const size_t count = server_ready(server, checks);
    for (size_t i = 0; i < count; i++)
        if (!checks[i].is_ok || checks[i].is_degraded)
            *ARRAY_ADD(found) = (struct alert){.name = "PaiServicePodNotReady",
                                               .severity = checks[i].is_ok ? "warn" : "error",
                                               .labels = {{"name", checks[i].name}},
                                               .summary = checks[i].text};
    /* only an operator can mend their rows (quarantine.h) */
    const uint64_t left_out = atomic_load(&server->metrics.quarantined);
    if (left_out > 0)
        *ARRAY_ADD(found) = (struct alert){
            .name = "JobsQuarantined",
            .severity = "error",
            .summary = arena_format(arena,
                                    "the store refuses what follows of %" PRIu64
                                    " job%s, which neither run nor end: see the server's log",
                                    left_out, left_out == 1 ? "" : "s")};
    const uint64_t unstored = atomic_load(&server->metrics.nodes_unstored);
    if (unstored > 0)
        *ARRAY_ADD(found) = (struct alert){
            .name = "NodesUnstored",
            .severity = "warn",
            .summary = arena_format(arena,
                                    "the store refuses the row of %" PRIu64
                                    " node%s, which work%s on: see the server's log",
                                    unstored, unstored == 1 ? "" : "s", unstored == 1 ? "s" : "")};
}

static int request_compare(const void *a, const void *b)
{
    const struct store_request *first = a, *second = b;
    if (first->asked_ms != second->asked_ms)
        return first->asked_ms < second->asked_ms ? -1 : 1;
    return strcmp(first->id, second->id);
}

/* What administrators are asked for. Beyond ALERT_REQUESTS_MAX the later ones wait: none that is
 * told ends before it is decided. */
static int requests_find(struct alert_watch *watch, struct arena *arena, struct alert_list *found,
                         struct err *err)
{
    struct store_requests open = {0};
    int code =
        store_requests(watch->reader, &(struct request_filter){.is_open = true}, arena, &open, err);
    if (code < 0)
        return code;
    if (open.count > 1)
        qsort(open.items, open.count, sizeof *open.items, request_compare);
    for (size_t i = 0; i < open.count && i < ALERT_REQUESTS_MAX; i++) {
        const struct store_request *request = &open.items[i];
        *ARRAY_ADD(found) = (struct alert){
            .name = "RequestWaits",
            .severity = "warn",
            .labels = {{"request", request->id}},
            .summary = request->kind == REQUEST_ACCOUNT
                           ? arena_format(arena, "a visitor asks for an account of the name %s",
                                          request->user)
                           : arena_format(arena, "%s asks for the virtual cluster %s",
                                          request->user, request->virtual_cluster),
            .since_ms = request->asked_ms,
        };
    }
    return 0;
}

static bool job_alert(struct alert_watch *watch, struct arena *arena, const struct hang_job *job,
                      struct alert *alert)
{
    struct store_job row;
    struct err err;
    if (store_job_summary(watch->server->store, job->id, arena, &row, &err) < 0)
        return false; /* deleted meanwhile */
    const char *name = arena_format(arena, "%s~%s", row.record.user, row.record.name);
    *alert = (struct alert){.name = "JobIdle",
                            .severity = "warn",
                            .labels = {{"job_name", name}, {"username", row.record.user}}};
    return true;
}

static void jobs_find(struct alert_watch *watch, struct arena *arena, const struct hang_job *jobs,
                      size_t count, int64_t now_ms, struct alert_list *found)
{
    const int64_t apart_ms = now_ms - clock_monotonic_ms();
    for (size_t i = 0; i < count; i++) {
        struct alert alert;
        if (jobs[i].idle == 0 || !job_alert(watch, arena, &jobs[i], &alert))
            continue;
        alert.summary =
            jobs[i].idle == jobs[i].tasks
                ? arena_format(arena, "no task of job %s works or writes", alert.labels[0].value)
                : arena_format(arena, "%u of %u running tasks of job %s neither work nor write",
                               jobs[i].idle, jobs[i].tasks, alert.labels[0].value);
        alert.since_ms = jobs[i].since_ms + apart_ms;
        *ARRAY_ADD(found) = alert;
    }
}

/* --- what cannot be known yet --- */

struct doubts {
    struct alert_watch *watch;
    const struct engine_gpu *gpus;
    size_t gpu_count;
    const struct hang_job *jobs;
    size_t job_count;
};

static const char *label_of(const struct alert *alert, const char *key)
{
    for (size_t i = 0; i < ALERT_LABELS && alert->labels[i].key; i++)
        if (strcmp(alert->labels[i].key, key) == 0)
            return alert->labels[i].value;
    return NULL;
}

/* Tasks and GPUs are not known yet right after the start. */
static bool is_settling(const struct alert_watch *watch)
{
    return clock_monotonic_ms() - watch->begin_ms < ALERT_SETTLE_MS;
}

/* The GPUs of a node are known once the first is. */
static bool gpu_stays(const struct doubts *doubts, const char *node)
{
    if (!is_settling(doubts->watch))
        return false;
    for (size_t i = 0; i < doubts->gpu_count; i++)
        if (strcmp(doubts->gpus[i].node, node) == 0)
            return false;
    return true;
}

/* Whether a task works is only known of what it does while it is watched. */
static bool job_stays(const struct doubts *doubts, const char *name)
{
    struct store *store = doubts->watch->server->store;
    struct text rest = text_of(name), user = text_cut(&rest, '~');
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct job_id job;
    struct store_job row;
    struct err err;
    if (store_job_find(store, user, rest, &job, &err) < 0 ||
        store_job_summary(store, job, &arena, &row, &err) < 0 || row.shown != PUBLIC_RUNNING)
        return false;
    for (size_t i = 0; i < doubts->job_count; i++)
        if (doubts->jobs[i].id.v == job.v)
            return doubts->jobs[i].is_undecided;
    return is_settling(doubts->watch);
}

static bool stays(void *context, const struct alert *alert)
{
    const struct doubts *doubts = context;
    const char *job = label_of(alert, "job_name"), *node = label_of(alert, "node_name");
    if (job)
        return job_stays(doubts, job);
    return node && label_of(alert, "minor_number") && gpu_stays(doubts, node);
}

/* --- rounds --- */

/* Under the lock. */
static int round_make(struct alert_watch *watch, int64_t now_ms, struct err *err)
{
    int code = nodes_find(watch, err);
    if (code < 0)
        return code;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    cleanup_array struct alert_list found = {0};
    const bool is_first = !watch->looked_ms;
    watch->looked_ms = clock_monotonic_ms();
    struct doubts doubts = {.watch = watch}; /* what those below do not say anything of */
    for (size_t i = 0; i < watch->nodes.count; i++)
        *ARRAY_ADD(&found) = watch->nodes.items[i];
    server_gpus(watch->server, &arena, &doubts.gpus, &doubts.gpu_count);
    for (size_t i = 0; i < doubts.gpu_count; i++)
        gpu_find(&arena, &doubts.gpus[i], &found);
    server_find(watch->server, &arena, &found);
    code = requests_find(watch, &arena, &found, err);
    if (code < 0)
        return code;
    doubts.jobs = hang_watch_jobs(watch->server->hang_watch, &arena, &doubts.job_count);
    jobs_find(watch, &arena, doubts.jobs, doubts.job_count, now_ms, &found);
    const struct alert_time time = {now_ms, atomic_load(&watch->server->trusted_ms)};
    if (alert_book_take(watch->book, found.items, found.count, time, stays, &doubts) || is_first)
        notify_watch_wake(watch->server->notify_watch);
    return 0;
}

/* A server that ends has left its engines and its checks behind: what it would find is its end. */
int alert_watch_round(struct alert_watch *watch, int64_t now_ms, struct err *err)
{
    if (atomic_load(&watch->server->is_draining))
        return 0;
    pthread_mutex_lock(&watch->lock);
    int code = round_make(watch, now_ms, err);
    pthread_mutex_unlock(&watch->lock);
    return code;
}

/* Whoever asks at about the same time shares a round: each goes over all GPUs. */
static bool is_due(const struct alert_watch *watch)
{
    return !watch->looked_ms || atomic_load(&watch->has_news) ||
           clock_monotonic_ms() - watch->looked_ms >= NEWS_MS;
}

int alert_watch_list(struct alert_watch *watch, struct arena *arena, struct alert **alerts,
                     size_t *count, struct err *err)
{
    int code = 0;
    pthread_mutex_lock(&watch->lock);
    if (is_due(watch) && !atomic_load(&watch->server->is_draining))
        code = round_make(watch, server_now_ms(watch->server), err);
    if (code == 0)
        alert_book_list(watch->book, arena, alerts, count);
    pthread_mutex_unlock(&watch->lock);
    return code;
}

bool alert_watch_copy(struct alert_watch *watch, struct arena *arena, struct alert **alerts,
                      size_t *count)
{
    pthread_mutex_lock(&watch->lock);
    const bool is_known = watch->looked_ms != 0;
    if (is_known)
        alert_book_list(watch->book, arena, alerts, count);
    pthread_mutex_unlock(&watch->lock);
    return is_known;
}

/* --- what is stored --- */

static void book_save(struct alert_watch *watch)
{
    struct buf bytes = BUF_INIT;
    pthread_mutex_lock(&watch->lock);
    alert_book_write(watch->book, server_now_ms(watch->server), STORE_SETTING_MAX, &bytes);
    const bool has_changed = !text_equal(buf_as_text(&bytes), buf_as_text(&watch->saved));
    watch->saved_ms = clock_monotonic_ms();
    if (has_changed) {
        buf_release(&watch->saved);
        watch->saved = bytes;
        bytes = (struct buf)BUF_INIT;
    }
    pthread_mutex_unlock(&watch->lock);
    buf_release(&bytes);
    if (!has_changed)
        return;
    struct server_mail *mail = mail_new(MAIL_CHANGE);
    struct text value = buf_as_text(&watch->saved); /* this thread alone replaces it */
    value.at = arena_copy(&mail->arena, value);
    mail->change =
        (struct store_change){.kind = CHANGE_SETTING, .setting = {ALERTS_SETTING, value}};
    server_post_fact(watch->server, mail);
}

static int book_load(struct alert_watch *watch, struct err *err)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct text bytes = {0};
    int code = store_setting(watch->reader, ALERTS_SETTING, &arena, &bytes, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    buf_text(&watch->saved, bytes);
    struct err damage;
    if (bytes.length > 0 && alert_book_read(watch->book, bytes, &damage) < 0)
        log_error("server", "alerts of before the start are not known: %s", damage.text);
    return 0;
}

/* --- life --- */

static bool watch_wait(struct alert_watch *watch, int64_t round_ms)
{
    pthread_mutex_lock(&watch->watcher.lock);
    while (!watch->watcher.is_ending) {
        const int64_t pause_ms = atomic_load(&watch->has_news) ? NEWS_MS : ALERT_ROUND_MS;
        if (!watcher_await(&watch->watcher, round_ms + pause_ms))
            break;
    }
    const bool goes_on = !watch->watcher.is_ending;
    pthread_mutex_unlock(&watch->watcher.lock);
    return goes_on;
}

static void *watch_run(void *context)
{
    struct alert_watch *watch = context;
    int64_t round_ms;
    do {
        struct err err;
        round_ms = clock_monotonic_ms();
        if (alert_watch_round(watch, server_now_ms(watch->server), &err) < 0)
            log_warning("server", "what needs attention is not known: %s", err.text);
        if (round_ms - watch->saved_ms >= ALERT_SAVE_MS && atomic_load(&watch->server->is_writable))
            book_save(watch);
    } while (watch_wait(watch, round_ms));
    return NULL;
}

int alert_watch_start(struct alert_watch *watch, struct err *err)
{
    int code = store_reader_open(watch->server->store, &watch->reader, err);
    if (code == 0)
        code = book_load(watch, err);
    if (code < 0)
        return code;
    return watcher_start(&watch->watcher, watch_run, watch, "the thread that looks for alerts",
                         err);
}

void alert_watch_stop(struct alert_watch *watch)
{
    if (watch && watcher_stop(&watch->watcher))
        book_save(watch);
}

void alert_watch_free(struct alert_watch *watch)
{
    if (!watch)
        return;
    alert_watch_stop(watch);
    alert_book_free(watch->book);
    store_reader_close(watch->reader);
    ARRAY_FREE(&watch->nodes);
    arena_release(&watch->nodes_arena);
    buf_release(&watch->saved);
    pthread_mutex_destroy(&watch->lock);
    watcher_release(&watch->watcher);
    mem_free(watch);
}
