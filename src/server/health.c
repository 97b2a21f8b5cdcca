/* health.c — what the server tells of itself: whether it is alive and ready, and its figures. */
#include "api/service.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "server/job_network.h"
#include "server/state.h"
#include "sys/clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ALIVE_MS = 10000 };

bool server_is_alive(void *context)
{
    struct server *server = context;
    int64_t idle_ms = clock_monotonic_ms() - atomic_load(&server->core_seen_ms);
    return idle_ms < ALIVE_MS || mailbox_count(&server->mailbox) == 0;
}

static void check_fill(struct service_check *check, const char *name, bool is_ok, const char *text)
{
    check->name = name;
    check->is_ok = is_ok;
    check->is_degraded = false;
    snprintf(check->text, sizeof check->text, "%s", text);
}

/* What a person should know of a store that is written. */
static void store_text(struct server *server, char *text, size_t size)
{
    struct err err = {0};
    struct store_counts counts;
    store_count(server->store, &counts);
    snprintf(text, size, "%.190s", server_room(server, &err) < 0 ? err.text : "written");
    if (err.code < 0 || counts.wal_large_since_ms == 0)
        return;
    time_t since = counts.wal_large_since_ms / 1000;
    struct tm tm;
    char when[32];
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&since, &tm));
    snprintf(text, size,
             "written; since %s its log has grown to %llu MiB: a program keeps a snapshot of the "
             "database (a backup, an open sqlite3)",
             when, (unsigned long long)counts.wal_bytes >> 20);
}

/* One engine that is not there does not make the server unready: the others go on. */
static void engine_text(struct server *server, uint64_t nodes, char *text, size_t size)
{
    cleanup_buf struct buf words = BUF_INIT;
    const size_t commands = launcher_count(server->launcher);
    buf_format(&words, "%llu node%s, %zu command%s", (unsigned long long)nodes,
               nodes == 1 ? "" : "s", commands, commands == 1 ? " waits" : "s wait");
    pthread_mutex_lock(&server->state_lock);
    for (size_t i = 0; i < server->engines.count; i++)
        if (server->engines.items[i].trouble[0])
            buf_format(&words, "; engine %s: %s", server->engines.items[i].name,
                       server->engines.items[i].trouble);
    pthread_mutex_unlock(&server->state_lock);
    snprintf(text, size, "%s", buf_cstr(&words));
}

size_t server_ready(void *context, struct service_check checks[SERVICE_CHECKS_MAX])
{
    struct server *server = context;
    size_t waiting = mailbox_requests(&server->mailbox), room = server->mailbox.request_room;
    char text[200];
    store_text(server, text, sizeof text);
    pthread_mutex_lock(&server->state_lock);
    check_fill(&checks[0], "store",
               atomic_load(&server->is_writable) && !store_is_short(server->store),
               server->store_trouble[0] ? server->store_trouble : text);
    struct core_counts counts;
    counts = server->counts;
    pthread_mutex_unlock(&server->state_lock);
    snprintf(text, sizeof text, "%zu of %zu requests wait%s", waiting, room,
             waiting == 1 ? "s" : "");
    check_fill(&checks[1], "core", server_is_alive(server) && waiting < room, text);
    engine_text(server, counts.nodes, text, sizeof text);
    check_fill(&checks[2], "engine", counts.nodes > 0, text);
    server_clock_text(atomic_load(&server->metrics.clock_behind_ms), text, sizeof text);
    check_fill(&checks[3], "clock", true, text); /* requests are served all the same */
    job_network_text(server, text, sizeof text);
    check_fill(&checks[4], "network", true, text);
    const size_t count = 5 + engine_checks(server, &checks[5]);
    check_fill(&checks[count], "running", !atomic_load(&server->is_draining),
               atomic_load(&server->is_draining) ? "the server is ending" : "taking requests");
    return count + 1;
}

static void write_core_metrics(struct server *server, struct buf *out)
{
    pthread_mutex_lock(&server->state_lock);
    struct core_counts counts;
    counts = server->counts;
    pthread_mutex_unlock(&server->state_lock);
    metric_write(out, "skep_events_total", "counter", "Events stepped through.", counts.events);
    metric_write(out, "skep_jobs_live", "gauge",
                 "Jobs that have not ended, and those whose containers are held for debugging.",
                 counts.jobs_live);
    metric_write(out, "skep_jobs_queued", "gauge", "Jobs that wait for places.",
                 counts.jobs_queued);
    metric_write(out, "skep_tasks_live", "gauge", "Tasks with a container.", counts.tasks_live);
    metric_write(out, "skep_nodes", "gauge", "Machines known.", counts.nodes);
    metric_write(out, "skep_gpus", "gauge", "GPUs of all machines.", counts.gpus_total);
    metric_write(out, "skep_gpus_used", "gauge", "GPUs given to tasks.", counts.gpus_used);
}

static void write_store_metrics(struct server *server, struct buf *out)
{
    struct store_counts counts;
    store_count(server->store, &counts);
    metric_write(out, "skep_store_commits_total", "counter", "Transactions made durable.",
                 counts.commits);
    metric_write(out, "skep_store_commit_failures_total", "counter", "Transactions that failed.",
                 counts.commit_failures);
    metric_write(out, "skep_store_records_total", "counter", "Records given by the core.",
                 counts.records);
    metric_write(out, "skep_store_database_bytes", "gauge", "Size of the database.",
                 counts.database_bytes);
    metric_write(out, "skep_store_wal_bytes", "gauge", "Size of its write-ahead log.",
                 counts.wal_bytes);
    metric_write(out, "skep_store_wal_large_since_seconds", "gauge",
                 "Unix time from which on the log is larger than 200 MiB, because a program keeps "
                 "a snapshot; 0 when it is not.",
                 (uint64_t)counts.wal_large_since_ms / 1000);
    metric_write(out, "skep_store_reserve_held", "gauge",
                 "1 when the reserve for a full disk is there; 0: ordinary requests are refused.",
                 !store_is_short(server->store));
    metric_write(out, "skep_store_writable", "gauge", "1 when the store can be written.",
                 atomic_load(&server->is_writable));
}

static void write_gpu_metrics(struct server *server, struct buf *out)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const struct engine_gpu *gpus;
    size_t count;
    server_gpus(server, &arena, &gpus, &count);
    gpu_metrics_write(gpus, count, out);
}

void server_metrics(void *context, struct buf *out)
{
    struct server *server = context;
    struct metrics *metrics = &server->metrics;
    write_core_metrics(server, out);
    write_store_metrics(server, out);
    metric_write(out, "skep_requests_total", "counter", "Requests taken by the core thread.",
                 atomic_load(&metrics->requests));
    metric_write(out, "skep_requests_refused_total", "counter",
                 "Requests refused: too many wait, or the server is ending.",
                 atomic_load(&metrics->refused));
    metric_write(out, "skep_mailbox_waiting", "gauge", "Requests and facts that wait.",
                 mailbox_count(&server->mailbox));
    metric_write(out, "skep_facts_total", "counter", "Events of the engine.",
                 atomic_load(&metrics->facts));
    metric_write(out, "skep_facts_kept", "gauge",
                 "Of those, what is kept in memory until the disk has room again.",
                 atomic_load(&metrics->facts_kept));
    metric_write(out, "skep_events_set_aside_total", "counter",
                 "Requests and facts refused because the store cannot take what follows from them.",
                 atomic_load(&metrics->set_aside));
    metric_write(out, "skep_jobs_quarantined", "gauge",
                 "Jobs left out, as the store refuses what follows of them.",
                 atomic_load(&metrics->quarantined));
    metric_write(out, "skep_nodes_unstored", "gauge",
                 "Nodes of which the store refuses the row, which stays as it was.",
                 atomic_load(&metrics->nodes_unstored));
    metric_write(out, "skep_jobs_unpurged", "gauge",
                 "Old jobs that the store does not let retention remove.",
                 atomic_load(&metrics->jobs_unpurged));
    metric_write(out, "skep_clock_apart_seconds", "gauge",
                 "Between the server's own time and the machine's clock, which was set.",
                 (uint64_t)llabs(atomic_load(&metrics->clock_behind_ms)) / 1000);
    metric_write(out, "skep_batches_total", "counter", "Rounds of the core thread.",
                 atomic_load(&metrics->batches));
    metric_write(out, "skep_batch_mails_total", "counter", "Requests and facts in those rounds.",
                 atomic_load(&metrics->batch_mails));
    metric_write(out, "skep_creates_total", "counter", "Containers asked for.",
                 atomic_load(&metrics->creates));
    metric_write(out, "skep_create_failures_total", "counter", "Of those, refused at once.",
                 atomic_load(&metrics->create_failures));
    metric_write(out, "skep_kills_total", "counter", "Containers asked to end.",
                 atomic_load(&metrics->kills));
    metric_write(out, "skep_commands_waiting", "gauge",
                 "Commands that wait for the engine, or are being carried out.",
                 launcher_count(server->launcher));
    metric_write(out, "skep_adopted_total", "counter", "Containers found again at the start.",
                 atomic_load(&metrics->adopted));
    metric_write(out, "skep_orphans_total", "counter", "Containers of no live task, removed.",
                 atomic_load(&metrics->orphans));
    metric_write(out, "skep_lost_total", "counter", "Containers gone at the start.",
                 atomic_load(&metrics->lost));
    metric_write(out, "skep_idle_tasks_total", "counter",
                 "Tasks that stood still while their peers moved.",
                 atomic_load(&metrics->idle_tasks));
    metric_write(out, "skep_tasks_idle", "gauge", "Running tasks that stand still.",
                 hang_watch_idle_count(server->hang_watch));
    metric_write(out, "skep_barrier_requests_held", "gauge",
                 "Tasks that wait for others at a barrier.", barrier_held_count(server->barriers));
    notify_metrics_write(server->notify_watch, out);
    metric_write(out, "skep_purged_jobs_total", "counter", "Old jobs removed.",
                 atomic_load(&metrics->purged_jobs));
    metric_write(out, "skep_store_deletions", "gauge",
                 "Deleted jobs of which rows are left, which go little by little.",
                 store_deletions(server->store));
    metric_write(out, "skep_store_deletions_refused", "gauge",
                 "Those of them of which a row could not be deleted.",
                 store_deletions_refused(server->store));
    histogram_write(&metrics->request, "skep_request_seconds",
                    "From the mailbox to the durable answer.", out);
    histogram_write(&metrics->commit, "skep_commit_seconds", "One transaction.", out);
    histogram_write(&metrics->launch, "skep_launch_seconds", "Handing one container over.", out);
    engine_metrics_write(server, out);
    write_gpu_metrics(server, out);
}
