/* job_index.c — see job_index.h: keeping the rows; looking through them is in job_index_list.c. */
#include "base/arena.h"
#include "base/memory.h"
#include "store/job_index_row.h"
#include <assert.h>

enum { COMPACT_MIN = 4096 };

static void words_init(struct words *words, uint64_t seed)
{
    *words = (struct words){.map = {.seed = seed}};
}

static void words_release(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        mem_free(words->items[i]);
    ARRAY_FREE(words);
    text_map_release(&words->map);
}

static uint32_t words_add(struct words *words, struct text word)
{
    uint32_t index = text_map_get(&words->map, word);
    if (index != MAP_NONE)
        return index;
    char *copy = mem_alloc(word.length + 1);
    if (word.length)
        memcpy(copy, word.at, word.length);
    copy[word.length] = '\0';
    index = (uint32_t)words->count;
    assert(words->count < MAP_NONE);
    *ARRAY_ADD(words) = copy;
    text_map_set(&words->map, (struct text){copy, word.length}, index);
    return index;
}

static void job_index_init(struct job_index *jobs, uint64_t seed)
{
    jobs->seed = seed;
    jobs->names = (struct text_map){.seed = seed};
    arena_init(&jobs->pool);
    words_init(&jobs->users, seed);
    words_init(&jobs->virtual_clusters, seed);
    words_init(&jobs->phrases, seed);
    words_init(&jobs->tags, seed);
}

static void job_index_release(struct job_index *jobs)
{
    assert(jobs->count <= jobs->chunks.count * CHUNK_ROWS);
    for (size_t i = 0; i < jobs->count; i++)
        mem_free(job_index_row(jobs, i)->tags);
    for (size_t i = 0; i < jobs->chunks.count; i++)
        mem_free(jobs->chunks.items[i].rows);
    ARRAY_FREE(&jobs->chunks);
    text_map_release(&jobs->names);
    arena_release(&jobs->pool);
    words_release(&jobs->users);
    words_release(&jobs->virtual_clusters);
    words_release(&jobs->phrases);
    words_release(&jobs->tags);
    ARRAY_FREE(&jobs->uses);
}

/* What the row's user has by it is counted, or no more. */
static void use_count(struct job_index *jobs, const struct job_index_row *row, bool is_counted)
{
    const uint64_t one = is_counted ? 1 : UINT64_MAX; /* one less */
    while (jobs->uses.count <= row->user)
        *ARRAY_ADD(&jobs->uses) = (struct store_use){0};
    struct store_use *use = &jobs->uses.items[row->user];
    assert(is_counted || use->stored_jobs > 0);
    use->stored_jobs += one;
    if (row->state == LIFE_COMPLETED)
        return;
    assert(is_counted || (use->live_jobs > 0 && use->gpus >= row->gpu_count));
    use->live_jobs += one;
    use->gpus += one * row->gpu_count;
}

struct job_index *job_index_new(uint64_t seed)
{
    struct job_index *jobs = mem_zero(1, sizeof *jobs);
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    /* glibc's default lets readers starve the writer */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&jobs->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    job_index_init(jobs, seed);
    return jobs;
}

void job_index_free(struct job_index *jobs)
{
    if (!jobs)
        return;
    job_index_release(jobs);
    pthread_rwlock_destroy(&jobs->lock);
    mem_free(jobs);
}

void job_index_take(struct job_index *jobs, struct job_index *from)
{
    assert(jobs != from);
    const size_t kept = offsetof(struct job_index, seed); /* the locks stay where they are */
    job_index_write_begin(jobs);
    struct job_index old;
    memcpy(&old, jobs, sizeof old);
    memcpy((char *)jobs + kept, (const char *)from + kept, sizeof old - kept);
    memcpy((char *)from + kept, (const char *)&old + kept, sizeof old - kept);
    jobs->version_base = old.version_base + old.version;
    job_index_write_end(jobs);
}

size_t job_index_position(const struct job_index *jobs, struct job_id job)
{
    assert(jobs->dead <= jobs->count);
    size_t low = 0, high = jobs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (job_index_row(jobs, middle)->id < job.v)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < jobs->count) {
        const struct job_index_row *row = job_index_row(jobs, low);
        if (row->id == job.v && !row->is_dead)
            return low;
    }
    return SIZE_MAX;
}

uint64_t job_index_pairs(struct text text)
{
    uint64_t pairs = 0;
    for (size_t i = 1; i < text.length; i++) {
        uint32_t pair = (uint32_t)(uint8_t)text.at[i - 1] << 8 | (uint8_t)text.at[i];
        pairs |= (uint64_t)1 << (pair * 2654435761u >> 26);
    }
    return pairs;
}

static struct job_index_row *job_index_add(struct job_index *jobs, const struct job_record *job)
{
    size_t user_length = strlen(job->user), name_length = strlen(job->name);
    assert(jobs->count == 0 || job_index_row(jobs, jobs->count - 1)->id < job->id.v);
    struct job_index_row *row;
    if (jobs->count == jobs->chunks.count * CHUNK_ROWS)
        ARRAY_ADD(&jobs->chunks)->rows = mem_zero(CHUNK_ROWS, sizeof *row);
    row = job_index_row(jobs, jobs->count++);
    char *full = arena_alloc(&jobs->pool, user_length + 1 + name_length + 1);
    memcpy(full, job->user, user_length);
    full[user_length] = '~';
    memcpy(full + user_length + 1, job->name, name_length);
    *row = (struct job_index_row){
        .id = job->id.v,
        .full = full,
        .name_at = (uint16_t)(user_length + 1),
        .full_length = (uint16_t)(user_length + 1 + name_length),
        .pairs = job_index_pairs(text_of(job->name)),
        .user = words_add(&jobs->users, text_of(job->user)),
        .virtual_cluster = words_add(&jobs->virtual_clusters, text_of(job->virtual_cluster)),
    };
    /* of two with one name (the older is final and may be forgotten by now) the newer is found */
    text_map_set(&jobs->names, job_index_full(row), row->id);
    return row;
}

void job_index_write_begin(struct job_index *jobs)
{
    pthread_rwlock_wrlock(&jobs->lock);
}

static void job_index_compact(struct job_index *jobs);

void job_index_write_end(struct job_index *jobs)
{
    assert(jobs->dead <= jobs->count);
    if (jobs->dead > COMPACT_MIN && jobs->dead > jobs->count / 2)
        job_index_compact(jobs);
    pthread_rwlock_unlock(&jobs->lock);
}

static void job_index_order_check(struct job_index *jobs, size_t index)
{
    int64_t submitted_ms = job_index_row(jobs, index)->submitted_ms;
    assert(index < jobs->count);
    if ((index > 0 && job_index_row(jobs, index - 1)->submitted_ms > submitted_ms) ||
        (index + 1 < jobs->count && job_index_row(jobs, index + 1)->submitted_ms < submitted_ms))
        jobs->is_shuffled = true;
}

void job_index_put(struct job_index *jobs, const struct job_record *job, bool has_priority)
{
    size_t index = job_index_position(jobs, job->id);
    assert(job->id.v != 0);
    struct job_index_row *row;
    if (index == SIZE_MAX) {
        row = job_index_add(jobs, job);
        row->has_priority = has_priority;
        index = jobs->count - 1;
    } else {
        row = job_index_row(jobs, index);
        assert(jobs->counts[row->shown] > 0);
        jobs->counts[row->shown]--;
        use_count(jobs, row, false);
    }
    row->state = (uint8_t)job->state;
    row->shown = (uint8_t)life_public(job->state, job->completion.code, job->retry_at_ms != 0);
    jobs->counts[row->shown]++;
    row->is_stop_requested = job->is_stop_requested;
    row->is_success = job->completion.is_success;
    row->attributes = job->completion.attributes;
    row->priority = job->priority;
    row->attempt = job->attempt;
    row->retries_user = job->retries_user;
    row->retries_platform = job->retries_platform;
    row->retries_resource = job->retries_resource;
    row->retry_at_ms = job->retry_at_ms;
    row->submitted_ms = job->submitted_ms;
    row->attempt_created_ms = job->attempt_created_ms;
    row->attempt_launched_ms = job->attempt_launched_ms;
    row->attempt_completed_ms = job->attempt_completed_ms;
    row->launched_ms = job->launched_ms;
    row->completed_ms = job->completed_ms;
    row->code = job->completion.code;
    row->phrase = words_add(&jobs->phrases, text_of(job->completion.phrase));
    row->trigger_role = job->trigger_role;
    row->trigger_index = job->trigger_index;
    row->task_count = job->task_count;
    row->role_count = job->role_count;
    row->gpu_count = job->gpu_count;
    row->version = ++jobs->version;
    use_count(jobs, row, true);
    job_index_order_check(jobs, index);
}

void job_index_touch(struct job_index *jobs, struct job_id job)
{
    size_t index = job_index_position(jobs, job);
    assert(job.v != 0);
    if (index != SIZE_MAX)
        job_index_row(jobs, index)->version = ++jobs->version;
}

uint64_t job_index_version(struct job_index *jobs, struct job_id job)
{
    pthread_rwlock_rdlock(&jobs->lock);
    size_t index = job_index_position(jobs, job);
    uint64_t version =
        index == SIZE_MAX ? 0 : jobs->version_base + job_index_row(jobs, index)->version;
    pthread_rwlock_unlock(&jobs->lock);
    return version;
}

void job_index_remove(struct job_index *jobs, struct job_id job)
{
    size_t index = job_index_position(jobs, job);
    assert(job.v != 0);
    if (index == SIZE_MAX)
        return;
    struct job_index_row *row = job_index_row(jobs, index);
    assert(jobs->counts[row->shown] > 0);
    jobs->counts[row->shown]--;
    use_count(jobs, row, false);
    row->is_dead = true;
    mem_free(row->tags);
    row->tags = NULL;
    row->tag_count = 0;
    jobs->dead++;
    if (text_map_get(&jobs->names, job_index_full(row)) == row->id)
        text_map_remove(&jobs->names, job_index_full(row));
}

static void row_tag(struct job_index *jobs, struct job_index_row *row, struct text name)
{
    uint32_t tag = words_add(&jobs->tags, name);
    assert(row->id != 0);
    for (size_t i = 0; i < row->tag_count; i++)
        if (row->tags[i] == tag)
            return;
    row->tags = mem_realloc(row->tags, mem_size(row->tag_count + 1u, sizeof *row->tags));
    row->tags[row->tag_count++] = tag;
}

void job_index_tag(struct job_index *jobs, struct job_id job, const char *name)
{
    assert(job.v != 0 && name);
    size_t index = job_index_position(jobs, job);
    if (index != SIZE_MAX)
        row_tag(jobs, job_index_row(jobs, index), text_of(name));
}

void job_index_untag(struct job_index *jobs, struct job_id job, const char *name)
{
    assert(job.v != 0 && name);
    size_t index = job_index_position(jobs, job);
    uint32_t tag = text_map_get(&jobs->tags.map, text_of(name));
    if (index == SIZE_MAX || tag == MAP_NONE)
        return;
    struct job_index_row *row = job_index_row(jobs, index);
    for (uint16_t i = 0; i < row->tag_count; i++) {
        if (row->tags[i] == tag) {
            row->tags[i] = row->tags[--row->tag_count];
            return;
        }
    }
}

/* Leave out the dead: everything anew, words and names too. */
static void job_index_compact(struct job_index *jobs)
{
    struct job_index fresh = {0};
    assert(jobs->dead <= jobs->count);
    job_index_init(&fresh, jobs->seed);
    for (size_t i = 0; i < jobs->count; i++) {
        const struct job_index_row *old = job_index_row(jobs, i);
        struct job_index_row *row;
        if (old->is_dead)
            continue;
        row = job_index_add(
            &fresh, &(struct job_record){
                        .id = {old->id},
                        .user = jobs->users.items[old->user],
                        .name = old->full + old->name_at,
                        .virtual_cluster = jobs->virtual_clusters.items[old->virtual_cluster],
                    });
        struct job_index_row moved = *old;
        moved.full = row->full;
        moved.user = row->user;
        moved.virtual_cluster = row->virtual_cluster;
        moved.phrase = words_add(&fresh.phrases, text_of(jobs->phrases.items[old->phrase]));
        moved.tags = NULL;
        moved.tag_count = 0;
        *row = moved;
        use_count(&fresh, row, true);
        job_index_order_check(&fresh, fresh.count - 1);
        for (size_t t = 0; t < old->tag_count; t++)
            row_tag(&fresh, row, text_of(jobs->tags.items[old->tags[t]]));
    }
    job_index_release(jobs);
    jobs->names = fresh.names;
    jobs->pool = fresh.pool;
    jobs->chunks.items = fresh.chunks.items;
    jobs->chunks.count = fresh.chunks.count;
    jobs->chunks.room = fresh.chunks.room;
    jobs->users = fresh.users;
    jobs->uses.items = fresh.uses.items;
    jobs->uses.count = fresh.uses.count;
    jobs->uses.room = fresh.uses.room;
    jobs->virtual_clusters = fresh.virtual_clusters;
    jobs->phrases = fresh.phrases;
    jobs->tags = fresh.tags;
    jobs->count = fresh.count;
    jobs->dead = 0;
    jobs->is_shuffled = fresh.is_shuffled;
}

const char *job_index_name(const struct job_index *jobs, struct job_id job)
{
    size_t position = job_index_position(jobs, job);
    return position == SIZE_MAX ? "" : job_index_row(jobs, position)->full;
}

bool job_index_has(const struct job_index *jobs, struct job_id job)
{
    return job_index_position(jobs, job) != SIZE_MAX;
}

void job_index_use(struct job_index *jobs, struct text user, struct store_use *use)
{
    *use = (struct store_use){0};
    pthread_rwlock_rdlock(&jobs->lock);
    uint32_t word = text_map_get(&jobs->users.map, user);
    if (word != MAP_NONE && word < jobs->uses.count)
        *use = jobs->uses.items[word];
    pthread_rwlock_unlock(&jobs->lock);
}
