/* job_index_row.h — how the job index keeps a job.
 *
 * Private to job_index.c and job_index_list.c. Rows stand in order of their ids, in chunks that
 * never move; words (users, virtual clusters, phrases, tags) are kept once and named by index.
 */
#ifndef STORE_JOB_INDEX_ROW_H
#define STORE_JOB_INDEX_ROW_H
#include "base/arena.h"
#include "base/map.h"
#include "store/job_index.h"
#include <pthread.h>
#include <stddef.h>

enum { CHUNK_ROWS = 4096 };

/* What filters and the usual order look at stands in the first 64 bytes: one line of the cache. */
struct job_index_row {
    uint32_t id, user, virtual_cluster;
    uint8_t state, shown, attributes;
    bool has_priority, is_stop_requested, is_success, is_dead;
    uint16_t name_at, full_length, tag_count;
    int32_t priority;
    const char *full; /* "user~name", NUL-terminated, in the pool */
    uint32_t *tags;
    uint64_t pairs; /* job_index_pairs of the name */
    int64_t submitted_ms;
    uint64_t gpu_count;
    uint32_t task_count, role_count;
    uint32_t attempt, retries_user, retries_platform, retries_resource;
    int64_t retry_at_ms, launched_ms, completed_ms;
    int64_t attempt_created_ms, attempt_launched_ms, attempt_completed_ms;
    int32_t code, trigger_role, trigger_index;
    uint32_t phrase;
    uint64_t version; /* of the index, when the job or a task of it changed last */
};

struct words {
    char **items;
    size_t count, room;
    struct text_map map;
};

struct job_index {
    pthread_rwlock_t lock;
    uint64_t seed;
    struct {
        struct job_index_chunk {
            struct job_index_row *rows;
        } * items;
        size_t count, room;
    } chunks;
    size_t count, dead;
    bool is_shuffled;      /* a row was submitted before one that stands before it */
    struct text_map names; /* "user~name" → id */
    struct arena pool;
    struct words users, virtual_clusters, phrases, tags;
    struct { /* what each user has, by the number of the word */
        struct store_use *items;
        size_t count, room;
    } uses;
    uint64_t counts[PUBLIC_STATE_COUNT];
    uint64_t version;      /* grows by every change */
    uint64_t version_base; /* above all versions of the indices that were here before */
};

static inline struct job_index_row *job_index_row(const struct job_index *jobs, size_t index)
{
    return &jobs->chunks.items[index / CHUNK_ROWS].rows[index % CHUNK_ROWS];
}

static inline struct text job_index_full(const struct job_index_row *row)
{
    return (struct text){row->full, row->full_length};
}

_Static_assert(offsetof(struct job_index_row, gpu_count) == 64, "what filters look at is together");

/* A bit for each pair of bytes that follow each other: a text without all bits of a keyword does
 * not hold it. */
uint64_t job_index_pairs(struct text text);

/* SIZE_MAX: not there. */
size_t job_index_position(const struct job_index *jobs, struct job_id job);

#endif
