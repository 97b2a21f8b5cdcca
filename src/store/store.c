/* store.c — opening and closing, readers, counts, restoring. */
#include "store/store.h"
#include "base/err.h"
#include "store/news.h"
#include "store/noun.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

struct db_progress store_progress(const struct store *store)
{
    assert(store->epochs.count > 0);
    return (struct db_progress){
        .epoch = store->epochs.items[store->epochs.count - 1].id, /* nobody else adds to them */
        .commits = store->stored_commits,
        .events = store->stored_events,
        .last_job = {store->last_job},
        .last_attempt = {store->last_attempt},
    };
}

/* An index is made, to be the store's, or to take the place of what the store's holds. */
int store_load_jobs(struct store *store, struct err *err)
{
    assert(store->job_index && store->news);
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return err_errno(err, errno, "getrandom");
    struct job_index *index = job_index_new(seed);
    int code = jobs_load(store, index, err);
    if (code == 0)
        code = tags_load(store, index, err);
    if (code == 0)
        code = counters_load(store, err);
    if (code == 0) {
        job_index_take(store->job_index, index);
        news_forget(store->news);
        code = gpu_use_load(store, seed, err);
        if (code == 0)
            code = deletions_load(store, err);
    }
    job_index_free(index);
    return code;
}

static int store_load(struct store *store, struct err *err)
{
    assert(!store->job_index && !store->news);
    store->job_index = job_index_new(0);
    store->task_counts = task_counts_cache_new();
    store->news = news_new((int64_t)time(NULL) * 1000);
    int code = store_load_jobs(store, err);
    if (code == 0)
        code = epochs_load(store, err);
    if (code < 0)
        return code;
    struct db_progress progress = store_progress(store);
    return store->database->ops->start(store->database, &progress, err);
}

int store_open(const char *directory, struct store **out, struct err *err)
{
    return store_open_with(directory, &(struct store_opening){0}, out, err);
}

int store_open_with(const char *directory, const struct store_opening *opening, struct store **out,
                    struct err *err)
{
    assert(directory && opening && out);
    struct database *database;
    int code = opening->address && *opening->address
                   ? postgres_open(opening->address, directory, &database, err)
                   : sqlite_open(directory, opening->accepts_loss, &database, err);
    return code < 0 ? code : store_open_on(database, out, err);
}

int store_find(const char *directory, const struct store_opening *opening, bool *is_there,
               struct err *err)
{
    assert(directory && opening);
    cleanup_free char *path = NULL;
    if (opening->address && *opening->address)
        return postgres_find(opening->address, is_there, err);
    path = mem_alloc(strlen(directory) + sizeof "/skep.db");
    sprintf(path, "%s/skep.db", directory);
    *is_there = access(path, F_OK) == 0;
    if (!*is_there && errno != ENOENT)
        return err_errno(err, errno, "look for %s", path);
    return 0;
}

int store_open_on(struct database *database, struct store **out, struct err *err)
{
    struct store *store = mem_zero(1, sizeof *store);
    assert(database && out);
    store->database = database;
    store->session.db = database->writer;
    gpu_use_init(&store->gpu_use);
    pthread_mutex_init(&store->epochs.lock, NULL);
    int code = store_load(store, err);
    if (code < 0) {
        store_close(store);
        return code;
    }
    *out = store;
    return 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    assert(store->database);
    session_release(&store->session);
    store->database->ops->close(store->database);
    ARRAY_FREE(&store->epochs);
    pthread_mutex_destroy(&store->epochs.lock);
    job_index_free(store->job_index);
    news_free(store->news);
    gpu_use_release(&store->gpu_use);
    pieces_release(&store->pieces);
    task_counts_cache_free(store->task_counts);
    buf_release(&store->scratch);
    mem_free(store);
}

void store_news(struct store *store, uint64_t after, struct arena *arena, struct store_news *news)
{
    news_read(store->news, after, arena, news);
}

uint64_t store_news_number(struct store *store)
{
    return news_number(store->news);
}

bool store_is_short(const struct store *store)
{
    return store->database->ops->is_short(store->database);
}

bool store_refusal_passes(int code)
{
    return code == ERR_UNAVAILABLE || code == ERR_BUSY || code == ERR_CONFLICT;
}

bool store_is_behind(const struct store *store)
{
    return atomic_load(&store->database->is_behind);
}

bool store_make_room(struct store *store)
{
    return store->database->ops->make_room(store->database);
}

void store_numbers(const struct store *store, struct job_id *job, struct attempt_id *attempt)
{
    job->v = store->last_job;
    attempt->v = store->last_attempt;
}

int store_measure(struct store *store, uint64_t *used_bytes, int64_t *oldest_event_ms,
                  struct err *err)
{
    assert(used_bytes && oldest_event_ms);
    int code = store->database->ops->measure(store->database, used_bytes, err);
    return code < 0 ? code : events_oldest(store, oldest_event_ms, err);
}

uint64_t store_account_version(const struct store *store)
{
    return atomic_load(&store->account_version) + 1;
}

uint64_t store_token_version(const struct store *store)
{
    return atomic_load(&store->token_version) + 1;
}

void store_count(const struct store *store, struct store_counts *counts)
{
    struct db_counts database;
    store->database->ops->count(store->database, &database);
    *counts = (struct store_counts){
        .commits = atomic_load(&store->commits),
        .commit_failures = atomic_load(&store->commit_failures),
        .records = atomic_load(&store->records),
        .events = atomic_load(&store->events),
        .commit_us = atomic_load(&store->commit_us),
        .database_bytes = database.database_bytes,
        .wal_bytes = database.log_bytes,
        .wal_large_since_ms = database.log_large_since_ms,
    };
}

int store_check(struct store *store, struct err *err)
{
    return store->database->ops->check(store->database, err);
}

/* --- readers --- */

int store_reader_open(struct store *store, struct store_reader **out, struct err *err)
{
    assert(store->database);
    struct db *db;
    int code = store->database->ops->connect(store->database, &db, err);
    if (code < 0)
        return code;
    *out = mem_zero(1, sizeof **out);
    (*out)->store = store;
    (*out)->session.db = db;
    return 0;
}

void store_reader_close(struct store_reader *reader)
{
    if (!reader)
        return;
    session_release(&reader->session);
    reader->session.db->ops->close(reader->session.db);
    mem_free(reader);
}

int reader_begin(struct store_reader *reader, struct err *err)
{
    assert(reader->session.db);
    return reader->session.db->ops->begin(reader->session.db, false, err);
}

void reader_end(struct store_reader *reader)
{
    assert(reader->session.db);
    reader->session.db->ops->rollback(reader->session.db); /* it has only read */
}

int rows_trim(struct store *store, const char *delete_old, const char *delete_many,
              const struct store_change *change, struct err *err)
{
    assert(delete_old && delete_many);
    struct sql sql = sql_of(&store->session, delete_old);
    sql_put_int(&sql, change->before_ms);
    int code = sql_run(&sql, NULL, err);
    if (code < 0 || change->most == 0)
        return code;
    sql = sql_of(&store->session, delete_many);
    sql_put_int(&sql, (int64_t)change->most);
    return sql_run(&sql, NULL, err);
}

/* --- restoring --- */

static int restore_nodes(struct store_reader *reader, const struct store_restore *restore,
                         struct arena *arena, struct err *err)
{
    assert(restore->node);
    struct store_nodes nodes;
    int code = store_nodes(reader, arena, &nodes, err);
    for (size_t i = 0; code == 0 && i < nodes.count; i++)
        code = restore->node(restore->context, &nodes.items[i], err);
    return code;
}

static int restore_clusters(struct store_reader *reader, const struct store_restore *restore,
                            struct arena *arena, struct err *err)
{
    assert(restore->cluster);
    struct store_clusters clusters;
    int code = store_closed_clusters(reader, arena, &clusters, err);
    for (size_t i = 0; code == 0 && i < clusters.count; i++)
        code = restore->cluster(restore->context, &clusters.items[i], err);
    return code;
}

static int restore_counters(struct store_reader *reader, const struct store_restore *restore,
                            struct err *err)
{
    assert(restore->counters);
    struct job_id last_job;
    struct attempt_id last_attempt;
    int code = store_restore_counters(reader, &last_job, &last_attempt, err);
    return code < 0 ? code : restore->counters(restore->context, last_job, last_attempt, err);
}

int store_restore(struct store_reader *reader, const struct store_restore *restore, struct err *err)
{
    assert(reader->session.db);
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    code = restore_counters(reader, restore, err);
    if (code == 0)
        code = restore_nodes(reader, restore, &arena, err);
    if (code == 0)
        code = restore_clusters(reader, restore, &arena, err);
    if (code == 0)
        code = jobs_restore(reader, restore, &arena, err);
    if (code == 0)
        code = tasks_restore(reader, restore, &arena, err);
    reader_end(reader);
    return code;
}
