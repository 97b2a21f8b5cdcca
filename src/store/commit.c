/* commit.c — a batch in one transaction: events, the core's records, changes. */
#include "base/err.h"
#include "core/event.h"
#include "core/output.h"
#include "store/news.h"
#include "store/noun.h"
#include "sys/clock.h"
#include "sys/log.h"
#include <assert.h>

/* Where the last record of each job and task stands: the ones before it need not be written. */
struct latest {
    struct id_map jobs, tasks;
};

static uint64_t task_key(const struct task_record *task)
{
    return (uint64_t)task->job.v << 32 | (uint64_t)task->task.role << 16 | task->task.index;
}

static void latest_find(struct latest *latest, const struct output *output)
{
    assert(latest->jobs.count == 0 && latest->tasks.count == 0);
    for (size_t i = 0; i < output->records.count; i++) {
        const struct record *record = &output->records.items[i];
        if (record->kind == RECORD_JOB)
            id_map_set(&latest->jobs, record->job.id.v, (uint32_t)i);
        else if (record->kind == RECORD_TASK)
            id_map_set(&latest->tasks, task_key(&record->task), (uint32_t)i);
    }
}

/* The row that makes it a job: everybody asks for that. All else goes in pieces. */
static int write_deleted(struct store *store, struct job_id job, struct err *err)
{
    assert(job.v != 0);
    const int code = job_purge(store, job, err);
    return code < 0 ? code : deletion_add(store, job, err);
}

static const struct job_record *latest_job(const struct latest *latest, const struct output *output,
                                           struct job_id job)
{
    uint32_t last = id_map_get(&latest->jobs, job.v);
    assert(last != MAP_NONE);
    return &output->records.items[last].job;
}

static int write_record(struct store *store, const struct output *output, size_t index,
                        const struct latest *latest, struct err *err)
{
    const struct record *record = &output->records.items[index];
    switch (record->kind) {
    case RECORD_JOB:
        return job_write(store, &record->job, latest_job(latest, output, record->job.id), err);
    case RECORD_TASK:
        return task_write(store, &record->task,
                          id_map_get(&latest->tasks, task_key(&record->task)) == index, err);
    case RECORD_STORY:
        return story_write(store, &record->story, err);
    case RECORD_NODE:
        return node_write(store, &record->node, err);
    case RECORD_CLUSTER:
        return cluster_write(store, &record->cluster, err);
    case RECORD_JOB_DELETED:
        return write_deleted(store, record->deleted, err);
    }
    assert(false && "a kind of record");
    return ERR_INTERNAL;
}

static int write_records(struct store *store, const struct output *output, struct err *err)
{
    enum { DELETED_WHOLE = 8 }; /* of more jobs the commit takes the rows of `jobs` alone */
    struct job_id whole[DELETED_WHOLE];
    uint32_t last_job = store->last_job;
    uint64_t last_attempt = store->last_attempt;
    struct latest latest = {0};
    size_t deleted = 0;
    int code = 0;
    latest_find(&latest, output);
    for (size_t i = 0; code == 0 && i < output->records.count; i++) {
        const struct record *record = &output->records.items[i];
        if (record->kind == RECORD_JOB_DELETED && deleted++ < DELETED_WHOLE)
            whole[deleted - 1] = record->deleted;
        code = write_record(store, output, i, &latest, err);
    }
    if (code == 0 && deleted > 0) /* a small job goes whole */
        code = deleted <= DELETED_WHOLE ? deletions_of(store, whole, deleted, err)
                                        : deletions_count(store, err);
    if (code == 0 && (store->last_job != last_job || store->last_attempt != last_attempt))
        code = counters_write_numbers(store, store->last_job, store->last_attempt, err);
    assert(store->last_job >= last_job && store->last_attempt >= last_attempt);
    id_map_release(&latest.jobs);
    id_map_release(&latest.tasks);
    return code;
}

static int write_change(struct store *store, struct store_change *change, struct err *err)
{
    switch (change->kind) {
    case CHANGE_TAG_ADD:
        return tag_add(store, change, err);
    case CHANGE_TAG_REMOVE:
        return tag_remove(store, change, err);
    case CHANGE_USER_ADD:
        return user_add(store, change, err);
    case CHANGE_USER_SET:
        return admins_guard(store, change, user_set, err);
    case CHANGE_USER_REMOVE:
        return admins_guard(store, change, user_remove, err);
    case CHANGE_MEMBER_ADD:
        return member_add(store, change, err);
    case CHANGE_MEMBER_REMOVE:
        return admins_guard(store, change, member_remove, err);
    case CHANGE_GROUP_ADD:
        return user_group_add(store, change, err);
    case CHANGE_GROUP_SET:
        return admins_guard(store, change, user_group_set, err);
    case CHANGE_GROUP_REMOVE:
        return admins_guard(store, change, user_group_remove, err);
    case CHANGE_TOKEN_ADD:
        return token_add(store, change, err);
    case CHANGE_TOKEN_REMOVE:
        return token_remove(store, change, err);
    case CHANGE_TOKENS_REMOVE:
        return tokens_remove(store, change, err);
    case CHANGE_SETTING:
        return setting_change(store, change, err);
    case CHANGE_ACCOUNTS:
        return accounts_say_several(store, err);
    case CHANGE_ATTEMPT_END:
        return attempt_end_add(store, change, err);
    case CHANGE_BARRIER:
        return barrier_pass(store, change, err);
    case CHANGE_LOG_TRIM:
        return events_trim(store, change->before_ms, err);
    case CHANGE_TOKENS_EXPIRE:
        return tokens_expire(store, change->before_ms, err);
    case CHANGE_QUOTAS:
        return quotas_set(store, change, err);
    case CHANGE_AUDIT:
        return 0;
    case CHANGE_AUDIT_TRIM:
        return audit_trim(store, change, err);
    case CHANGE_SUBMIT_KEY:
        return submit_key_add(store, change, err);
    case CHANGE_SUBMIT_KEYS_TRIM:
        return submit_keys_trim(store, change, err);
    case CHANGE_RESEAL:
        return job_reseal(store, change, err);
    case CHANGE_GPU_USE_TRIM:
        return gpu_use_trim(store, change->before_ms, err);
    case CHANGE_TEMPLATE_ADD:
        return template_add(store, change, err);
    case CHANGE_TEMPLATE_SET:
        return template_set(store, change, err);
    case CHANGE_TEMPLATE_REMOVE:
        return template_remove(store, change, err);
    case CHANGE_TEMPLATE_REVIEW:
        return template_review(store, change, err);
    case CHANGE_TEMPLATE_OFFICIAL:
        return template_official(store, change, err);
    case CHANGE_TEMPLATE_USE:
        return template_use(store, change, err);
    case CHANGE_TEMPLATE_STAR:
        return template_star(store, change, err);
    case CHANGE_REQUEST_ADD:
        return request_add(store, change, err);
    case CHANGE_REQUEST_ACT:
        return request_act(store, change, err);
    case CHANGE_REQUESTS_TRIM:
        return requests_trim(store, change, err);
    case CHANGE_NOTICE_ADD:
        return notice_add(store, change, err);
    case CHANGE_NOTICES_REMOVE:
        return notices_remove(store, change, err);
    case CHANGE_DELETIONS:
        return deletions_go_on(store, err);
    }
    assert(false && "a kind of change");
    return ERR_INTERNAL;
}

/* Each gets its own code; only what stops the whole transaction is returned. */
static int write_changes(struct store *store, struct store_change *changes, size_t count,
                         struct err *err)
{
    int code = 0;
    assert(count == 0 || changes);
    for (size_t i = 0; code == 0 && i < count; i++) {
        changes[i].code = 0;
        if (changes[i].audit)
            code = audit_around(store, &changes[i], write_change, err);
        else
            code = write_change(store, &changes[i], err);
    }
    return code;
}

static int output_write(struct store *store, const struct output *output, struct err *err)
{
    /* first: it asks which attempts had ended before */
    const int code = gpu_use_write(store, output, err);
    return code < 0 ? code : write_records(store, output, err);
}

static int write_batch(struct store *store, const struct store_batch *batch, struct err *err)
{
    assert(batch->event_count == 0 || batch->events);
    int code = events_write(store, batch->events, batch->event_count, err);
    if (code == 0 && batch->output)
        code = output_write(store, batch->output, err);
    if (code == 0)
        code = write_changes(store, batch->changes, batch->change_count, err);
    return code == 0 ? counters_write_progress(store, batch->event_count, err) : code;
}

/* Whoever has kept something of accounts, or by the number of a job, reads it anew. */
static void versions_raise(struct store *store)
{
    atomic_fetch_add(&store->account_version, 1);
    atomic_fetch_add(&store->token_version, 1);
}

static struct job_id job_of(const struct record *record)
{
    switch (record->kind) {
    case RECORD_JOB:
        return record->job.id;
    case RECORD_TASK:
        return record->task.job;
    case RECORD_STORY:
        return record->story.job;
    case RECORD_JOB_DELETED:
        return record->deleted;
    case RECORD_NODE:
    case RECORD_CLUSTER:
        break;
    }
    return (struct job_id){0};
}

/* In a transaction that is rolled back. A database may say only when it is asked for an answer that
 * it has refused what came before. */
static int records_try(struct store *store, const struct output *output, struct err *err)
{
    struct db *db = store->session.db;
    const uint32_t last_job = store->last_job;
    const uint64_t last_attempt = store->last_attempt;
    uint64_t commits;
    int code = db->ops->begin(db, true, err);
    if (code < 0)
        return code;
    store->pieces.is_put_off = true; /* what is left of a job costs nobody anything */
    code = output_write(store, output, err);
    store->pieces.is_put_off = false;
    if (code == 0)
        code = counters_read_commits(store, &commits, err);
    db->ops->rollback(db);
    store->last_job = last_job;
    store->last_attempt = last_attempt;
    store->deletions_written = store_deletions(store);
    return code;
}

int store_refused_job(struct store *store, const struct output *output, struct job_id *job,
                      struct err *err)
{
    assert(output);
    cleanup_id_map struct id_map tried = {0};
    struct output part = {0};
    int code = 0;
    for (size_t i = 0; code == 0 && i < output->records.count; i++) {
        *job = job_of(&output->records.items[i]);
        if (!job->v || id_map_get(&tried, job->v) != MAP_NONE)
            continue;
        id_map_set(&tried, job->v, 1);
        part.records.count = 0;
        for (size_t k = i; k < output->records.count; k++)
            if (job_of(&output->records.items[k]).v == job->v)
                *ARRAY_ADD(&part.records) = output->records.items[k];
        code = records_try(store, &part, err);
    }
    ARRAY_FREE(&part.records);
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no job's records are refused by themselves");
    return code == ERR_INTERNAL ? 0 : code;
}

int store_refused_node(struct store *store, const struct output *output, size_t *at,
                       struct node_id *node, struct err *err)
{
    assert(output && at);
    int code = 0;
    while (code == 0 && *at < output->records.count) {
        struct record *record = &output->records.items[(*at)++];
        if (record->kind != RECORD_NODE)
            continue;
        const struct output part = {.records = {record, 1, 1}};
        *node = record->node.id;
        code = records_try(store, &part, err);
    }
    if (code == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no node's row is refused by itself");
    return code == ERR_INTERNAL ? 0 : code;
}

/* Was the last commit stored, whose answer was lost? The database counts its commits. */
static int doubt_settle(struct store *store, struct err *err)
{
    assert(store->is_in_doubt);
    uint64_t commits = 0;
    int code = counters_read_commits(store, &commits, err);
    if (code == 0 && commits != store->stored_commits) {
        log_warning("store", "the last commit was stored, though its answer was lost");
        versions_raise(store);
        code = store_load_jobs(store, err);
    }
    if (code == 0)
        store->is_in_doubt = false;
    return code;
}

/* The numbers that were used are those of the rows again when it fails. */
static int transact(struct store *store, const struct store_batch *batch, struct err *err)
{
    struct db *db = store->session.db;
    uint32_t last_job = store->last_job;
    uint64_t last_attempt = store->last_attempt;
    assert(store->session.db && batch);
    store->pieces.job_count = 0;
    store->pieces.is_beside = false;
    int code = db->ops->begin(db, true, err);
    if (code < 0)
        return code;
    code = write_batch(store, batch, err);
    if (code == 0) {
        code = db->ops->commit(db, err);
        store->is_in_doubt = code < 0;
    }
    if (code < 0) {
        db->ops->rollback(db);
        store->last_job = last_job;
        store->last_attempt = last_attempt;
        store->deletions_written = store_deletions(store);
    }
    return code;
}

static void index_records(struct store *store, const struct output *output)
{
    for (size_t i = 0; i < output->records.count; i++) {
        const struct record *record = &output->records.items[i];
        if (record->kind == RECORD_JOB)
            job_index_put(store->job_index, &record->job,
                          record->job.submission && record->job.submission->has_priority);
        else if (record->kind == RECORD_TASK)
            job_index_touch(store->job_index, record->task.job);
        else if (record->kind == RECORD_JOB_DELETED)
            job_index_remove(store->job_index, record->deleted);
    }
}

/* A job's tasks are part of it. The name of one that goes is asked for while it is there. */
static void news_records(struct store *store, const struct output *output)
{
    for (size_t i = 0; i < output->records.count; i++) {
        const struct record *record = &output->records.items[i];
        switch (record->kind) {
        case RECORD_JOB:
            news_add(store->news, STORE_NEWS_JOB, record->job.id.v, "");
            break;
        case RECORD_TASK:
            news_add(store->news, STORE_NEWS_JOB, record->task.job.v, "");
            break;
        case RECORD_NODE:
            news_add(store->news, STORE_NEWS_NODE, record->node.id.v, "");
            break;
        case RECORD_JOB_DELETED:
            news_add(store->news, STORE_NEWS_JOB_REMOVED, record->deleted.v,
                     job_index_name(store->job_index, record->deleted));
            break;
        case RECORD_CLUSTER: /* the jobs that are told of it are in records of their own */
        case RECORD_STORY:
            break;
        }
    }
}

/* Of what a user may have and do. */
static bool is_of_accounts(enum store_change_kind kind)
{
    return kind == CHANGE_QUOTAS || kind == CHANGE_REQUEST_ACT ||
           (kind >= CHANGE_USER_ADD && kind <= CHANGE_GROUP_REMOVE);
}

/* A login may end the oldest one of its user. */
static bool may_end_tokens(enum store_change_kind kind)
{
    return is_of_accounts(kind) || kind == CHANGE_TOKEN_ADD || kind == CHANGE_TOKEN_REMOVE ||
           kind == CHANGE_TOKENS_REMOVE || kind == CHANGE_TOKENS_EXPIRE;
}

static void index_changes(struct store *store, const struct store_change *changes, size_t count)
{
    assert(count == 0 || changes);
    for (size_t i = 0; i < count; i++) {
        const struct store_change *change = &changes[i];
        if (change->code < 0)
            continue;
        if (is_of_accounts(change->kind))
            atomic_fetch_add(&store->account_version, 1);
        if (may_end_tokens(change->kind))
            atomic_fetch_add(&store->token_version, 1);
        if (change->kind == CHANGE_TAG_ADD || change->kind == CHANGE_TAG_REMOVE)
            news_add(store->news, STORE_NEWS_JOB, change->tag.job.v, "");
        if (change->kind == CHANGE_TAG_ADD)
            job_index_tag(store->job_index, change->tag.job, change->tag.name);
        else if (change->kind == CHANGE_TAG_REMOVE)
            job_index_untag(store->job_index, change->tag.job, change->tag.name);
    }
}

static void index_batch(struct store *store, const struct store_batch *batch)
{
    assert(store->job_index && store->news);
    job_index_write_begin(store->job_index);
    if (batch->output) {
        news_records(store, batch->output);
        index_records(store, batch->output);
        gpu_use_apply(store);
    }
    index_changes(store, batch->changes, batch->change_count);
    job_index_write_end(store->job_index);
}

static int commit_once(struct store *store, const struct store_batch *batch, struct err *err)
{
    int code = store->is_in_doubt ? doubt_settle(store, err) : 0;
    return code < 0 ? code : transact(store, batch, err);
}

int store_commit(struct store *store, const struct store_batch *batch, struct err *err)
{
    int64_t begin_us = clock_monotonic_us();
    struct database *database = store->database;
    int code = commit_once(store, batch, err);
    assert(store->database && (batch->event_count == 0 || batch->events));
    if (deletions_leave(store, code)) {
        log_debug("store", "what a deleted job has left goes later: %s", err->text);
        code = commit_once(store, batch, err);
        store->pieces.is_put_off = false;
    }
    if (code == ERR_UNAVAILABLE && !batch->keeps_reserve && database->ops->give_way(database))
        code = commit_once(store, batch, err);
    atomic_fetch_add(&store->commit_us, (uint64_t)(clock_monotonic_us() - begin_us));
    if (code < 0) {
        deletions_failed(store, code, err);
        atomic_fetch_add(&store->commit_failures, 1);
        return code;
    }
    deletions_publish(store);
    store->stored_commits++;
    store->stored_events += batch->event_count;
    struct db_progress progress = store_progress(store);
    database->ops->note(database, &progress);
    index_batch(store, batch);
    atomic_fetch_add(&store->commits, 1);
    atomic_fetch_add(&store->events, batch->event_count);
    if (batch->output)
        atomic_fetch_add(&store->records, batch->output->records.count);
    return 0;
}
