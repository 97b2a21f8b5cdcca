/* task_counts.c — in which states the tasks of a job are. */
#include "base/err.h"
#include "core/plan.h"
#include "store/noun.h"
#include "sys/cleanup.h"
#include <assert.h>

static const char select_job_states[] =
    "SELECT role, task_index, state, code FROM tasks WHERE job = ? AND job_attempt = ? "
    "ORDER BY role, task_index";

/* --- what was counted last --- */

/* A job of 20,000 tasks is counted by reading as many rows, and asked about by everybody who looks
 * at it: what came of it counts until the job changes (job_index_version). */
struct task_counts_cache {
    pthread_mutex_t lock;
    struct counted {
        struct job_id job;
        uint64_t version; /* 0: nothing is here */
        struct arena arena;
        struct store_task_counts counts;
    } slots[COUNTED_JOBS];
};

struct task_counts_cache *task_counts_cache_new(void)
{
    struct task_counts_cache *cache = mem_zero(1, sizeof *cache);
    pthread_mutex_init(&cache->lock, NULL);
    for (size_t i = 0; i < COUNTED_JOBS; i++)
        arena_init(&cache->slots[i].arena);
    return cache;
}

void task_counts_cache_free(struct task_counts_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < COUNTED_JOBS; i++)
        arena_release(&cache->slots[i].arena);
    pthread_mutex_destroy(&cache->lock);
    mem_free(cache);
}

static void counts_copy(const struct store_task_counts *from, struct arena *arena,
                        struct store_task_counts *to)
{
    *to = (struct store_task_counts){.roles = arena_array(arena, from->count, sizeof *to->roles),
                                     .count = from->count};
    for (size_t r = 0; r < from->count; r++) {
        to->roles[r] = from->roles[r];
        to->roles[r].name = arena_copy(arena, text_of(from->roles[r].name));
        to->roles[r].each.at = arena_copy(arena, from->roles[r].each);
    }
}

static struct counted *slot_of(struct task_counts_cache *cache, struct job_id job)
{
    return &cache->slots[job.v % COUNTED_JOBS];
}

static bool counts_known(struct task_counts_cache *cache, struct job_id job, uint64_t version,
                         struct arena *arena, struct store_task_counts *counts)
{
    const struct counted *slot = slot_of(cache, job);
    pthread_mutex_lock(&cache->lock);
    const bool is_known = version && slot->job.v == job.v && slot->version == version;
    if (is_known)
        counts_copy(&slot->counts, arena, counts);
    pthread_mutex_unlock(&cache->lock);
    return is_known;
}

/* `version` was asked for before the rows were read: they may be newer, never older. */
static void counts_keep(struct task_counts_cache *cache, struct job_id job, uint64_t version,
                        const struct store_task_counts *counts)
{
    struct counted *slot = slot_of(cache, job);
    if (!version)
        return;
    pthread_mutex_lock(&cache->lock);
    if (slot->job.v != job.v || slot->version < version) {
        arena_clear(&slot->arena);
        counts_copy(counts, &slot->arena, &slot->counts);
        slot->job = job;
        slot->version = version;
    }
    pthread_mutex_unlock(&cache->lock);
}

/* --- counting --- */

/* The roles of the plan, with nothing counted. */
static int counts_make(struct store_reader *reader, struct job_id job, struct arena *arena,
                       struct store_task_counts *counts, struct plan **plan, struct err *err)
{
    int code = store_job_plan(reader, job, plan, err);
    if (code < 0)
        return code;
    assert(*plan);
    *counts = (struct store_task_counts){
        .roles = arena_array(arena, (*plan)->role_count, sizeof *counts->roles),
        .count = (*plan)->role_count};
    for (uint16_t r = 0; r < (*plan)->role_count; r++)
        counts->roles[r].name = arena_copy(arena, text_of((*plan)->roles[r].name));
    return 0;
}

/* What a task's row says of its state. */
struct state_row {
    uint16_t role, index;
    char shown; /* enum public_state */
};
struct state_rows {
    struct state_row *items;
    size_t count, room;
};

static int read_state_rows(struct store_reader *reader, const struct job_record *job,
                           struct state_rows *rows, struct err *err)
{
    struct sql sql = sql_of(&reader->session, select_job_states);
    int code;
    sql_put_int(&sql, job->id.v);
    sql_put_int(&sql, job->attempt);
    while ((code = sql_next(&sql, err)) > 0) {
        struct state_row *row = ARRAY_ADD(rows);
        row->role = (uint16_t)sql_int(&sql);
        row->index = (uint16_t)sql_int(&sql);
        const enum life_state state = (enum life_state)sql_int(&sql);
        row->shown = (char)life_public(state, (int32_t)sql_int(&sql), false);
    }
    return code;
}

/* `rows` by role and index; tasks without one are as the job: `unplaced`. */
static void states_gather(const struct state_rows *rows, const uint32_t *planned, char unplaced,
                          struct arena *arena, struct store_task_counts *counts)
{
    size_t at = 0;
    for (uint16_t r = 0; r < counts->count; r++) {
        const size_t first = at;
        size_t length = planned[r];
        while (at < rows->count && rows->items[at].role == r)
            at++;
        if (at > first && length <= rows->items[at - 1].index)
            length = rows->items[at - 1].index + 1u;
        char *each = arena_alloc(arena, length + 1);
        memset(each, unplaced, length);
        for (size_t i = first; i < at; i++)
            each[rows->items[i].index] = rows->items[i].shown;
        for (size_t i = 0; i < length; i++)
            if (each[i] < (char)PUBLIC_STATE_COUNT)
                counts->roles[r].states[(size_t)each[i]]++;
        counts->roles[r].each = (struct text){each, length};
    }
}

static int read_task_states(struct store_reader *reader, struct job_id job, struct arena *arena,
                            struct store_task_counts *counts, struct err *err)
{
    cleanup_plan struct plan *plan = NULL;
    cleanup_array struct state_rows rows = {0};
    struct store_job row = {0};
    int code = job_read(reader, job, arena, &row, err);
    if (code >= 0)
        code = counts_make(reader, job, arena, counts, &plan, err);
    if (code >= 0)
        code = read_state_rows(reader, &row.record, &rows, err);
    if (code < 0)
        return code;
    const struct task_record none = task_unplaced(&row.record, (struct task_ref){0}, "");
    const enum public_state unplaced = life_public(none.state, none.completion.code, false);
    states_gather(&rows, task_role_counts(&row.record, plan, arena), (char)unplaced, arena, counts);
    return 0;
}

int store_task_states(struct store_reader *reader, struct job_id job, struct arena *arena,
                      struct store_task_counts *counts, struct err *err)
{
    struct task_counts_cache *cache = reader->store->task_counts;
    const uint64_t version = job_index_version(reader->store->job_index, job);
    assert(reader->session.db);
    if (counts_known(cache, job, version, arena, counts))
        return 0;
    *counts = (struct store_task_counts){0};
    int code = reader_begin(reader, err);
    if (code < 0)
        return code;
    code = read_task_states(reader, job, arena, counts, err);
    reader_end(reader);
    if (code == 0)
        counts_keep(cache, job, version, counts);
    return code;
}
