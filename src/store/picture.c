/* picture.c — see picture.h: keeping the rows; looking through them is in picture_list.c. */
#include "base/arena.h"
#include "base/memory.h"
#include "store/picture_row.h"
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
    char *copy;

    if (index != MAP_NONE)
        return index;
    copy = mem_alloc(word.length + 1);
    if (word.length)
        memcpy(copy, word.at, word.length);
    copy[word.length] = '\0';
    index = (uint32_t)words->count;
    *ARRAY_ADD(words) = copy;
    text_map_set(&words->map, (struct text){copy, word.length}, index);
    return index;
}

static void picture_init(struct picture *picture, uint64_t seed)
{
    picture->seed = seed;
    picture->names = (struct text_map){.seed = seed};
    arena_init(&picture->pool);
    words_init(&picture->users, seed);
    words_init(&picture->virtual_clusters, seed);
    words_init(&picture->phrases, seed);
    words_init(&picture->tags, seed);
}

static void picture_release(struct picture *picture)
{
    for (size_t i = 0; i < picture->count; i++)
        mem_free(picture_row(picture, i)->tags);
    for (size_t i = 0; i < picture->chunks.count; i++)
        mem_free(picture->chunks.items[i].rows);
    ARRAY_FREE(&picture->chunks);
    text_map_release(&picture->names);
    arena_release(&picture->pool);
    words_release(&picture->users);
    words_release(&picture->virtual_clusters);
    words_release(&picture->phrases);
    words_release(&picture->tags);
}

struct picture *picture_new(uint64_t seed)
{
    struct picture *picture = mem_zero(1, sizeof *picture);
    pthread_rwlockattr_t attributes;

    pthread_rwlockattr_init(&attributes);
    /* glibc's default lets readers starve the writer */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&picture->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    picture_init(picture, seed);
    return picture;
}

void picture_free(struct picture *picture)
{
    if (!picture)
        return;
    picture_release(picture);
    pthread_rwlock_destroy(&picture->lock);
    mem_free(picture);
}

size_t picture_index(const struct picture *picture, struct job_id job)
{
    size_t low = 0, high = picture->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (picture_row(picture, middle)->id < job.v)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < picture->count) {
        const struct picture_row *row = picture_row(picture, low);
        if (row->id == job.v && !row->is_dead)
            return low;
    }
    return SIZE_MAX;
}

uint64_t picture_pairs(struct text text)
{
    uint64_t pairs = 0;

    for (size_t i = 1; i < text.length; i++) {
        uint32_t pair = (uint32_t)(uint8_t)text.at[i - 1] << 8 | (uint8_t)text.at[i];
        pairs |= (uint64_t)1 << (pair * 2654435761u >> 26);
    }
    return pairs;
}

static struct picture_row *picture_add(struct picture *picture, const struct job_record *job)
{
    struct picture_row *row;
    size_t user_length = strlen(job->user), name_length = strlen(job->name);
    char *full;

    assert(picture->count == 0 || picture_row(picture, picture->count - 1)->id < job->id.v);
    if (picture->count == picture->chunks.count * CHUNK_ROWS)
        ARRAY_ADD(&picture->chunks)->rows = mem_zero(CHUNK_ROWS, sizeof *row);
    row = picture_row(picture, picture->count++);
    full = arena_alloc(&picture->pool, user_length + 1 + name_length + 1);
    memcpy(full, job->user, user_length);
    full[user_length] = '~';
    memcpy(full + user_length + 1, job->name, name_length);
    *row = (struct picture_row){
        .id = job->id.v,
        .full = full,
        .name_at = (uint16_t)(user_length + 1),
        .full_length = (uint16_t)(user_length + 1 + name_length),
        .pairs = picture_pairs(text_of(job->name)),
        .user = words_add(&picture->users, text_of(job->user)),
        .virtual_cluster = words_add(&picture->virtual_clusters, text_of(job->virtual_cluster)),
    };
    /* of two with one name (the older is final and may be forgotten by now) the newer is found */
    text_map_set(&picture->names, picture_full(row), row->id);
    return row;
}

void picture_write_begin(struct picture *picture)
{
    pthread_rwlock_wrlock(&picture->lock);
}

static void picture_compact(struct picture *picture);

void picture_write_end(struct picture *picture)
{
    if (picture->dead > COMPACT_MIN && picture->dead > picture->count / 2)
        picture_compact(picture);
    pthread_rwlock_unlock(&picture->lock);
}

static void picture_order_check(struct picture *picture, size_t index)
{
    int64_t submitted_ms = picture_row(picture, index)->submitted_ms;

    if ((index > 0 && picture_row(picture, index - 1)->submitted_ms > submitted_ms) ||
        (index + 1 < picture->count &&
         picture_row(picture, index + 1)->submitted_ms < submitted_ms))
        picture->is_shuffled = true;
}

void picture_job(struct picture *picture, const struct job_record *job, bool has_priority)
{
    size_t index = picture_index(picture, job->id);
    struct picture_row *row;

    if (index == SIZE_MAX) {
        row = picture_add(picture, job);
        row->has_priority = has_priority;
        index = picture->count - 1;
    } else {
        row = picture_row(picture, index);
        picture->counts[row->shown]--;
    }
    row->state = (uint8_t)job->state;
    row->shown = (uint8_t)life_public(job->state, job->completion.code, job->retry_at_ms != 0);
    picture->counts[row->shown]++;
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
    row->phrase = words_add(&picture->phrases, text_of(job->completion.phrase));
    row->trigger_role = job->trigger_role;
    row->trigger_index = job->trigger_index;
    row->task_count = job->task_count;
    row->role_count = job->role_count;
    row->gpu_count = job->gpu_count;
    picture_order_check(picture, index);
}

void picture_remove(struct picture *picture, struct job_id job)
{
    size_t index = picture_index(picture, job);
    struct picture_row *row;

    if (index == SIZE_MAX)
        return;
    row = picture_row(picture, index);
    picture->counts[row->shown]--;
    row->is_dead = true;
    mem_free(row->tags);
    row->tags = NULL;
    row->tag_count = 0;
    picture->dead++;
    if (text_map_get(&picture->names, picture_full(row)) == row->id)
        text_map_remove(&picture->names, picture_full(row));
}

static void row_tag(struct picture *picture, struct picture_row *row, struct text name)
{
    uint32_t tag = words_add(&picture->tags, name);

    for (size_t i = 0; i < row->tag_count; i++)
        if (row->tags[i] == tag)
            return;
    row->tags = mem_realloc(row->tags, mem_size(row->tag_count + 1u, sizeof *row->tags));
    row->tags[row->tag_count++] = tag;
}

void picture_tag(struct picture *picture, struct job_id job, const char *name)
{
    size_t index = picture_index(picture, job);

    if (index != SIZE_MAX)
        row_tag(picture, picture_row(picture, index), text_of(name));
}

void picture_untag(struct picture *picture, struct job_id job, const char *name)
{
    size_t index = picture_index(picture, job);
    uint32_t tag = text_map_get(&picture->tags.map, text_of(name));
    struct picture_row *row;

    if (index == SIZE_MAX || tag == MAP_NONE)
        return;
    row = picture_row(picture, index);
    for (uint16_t i = 0; i < row->tag_count; i++) {
        if (row->tags[i] == tag) {
            row->tags[i] = row->tags[--row->tag_count];
            return;
        }
    }
}

/* Leave out the dead: everything anew, words and names too. */
static void picture_compact(struct picture *picture)
{
    struct picture fresh = {0};

    picture_init(&fresh, picture->seed);
    for (size_t i = 0; i < picture->count; i++) {
        const struct picture_row *old = picture_row(picture, i);
        struct picture_row *row;
        if (old->is_dead)
            continue;
        row = picture_add(
            &fresh, &(struct job_record){
                        .id = {old->id},
                        .user = picture->users.items[old->user],
                        .name = old->full + old->name_at,
                        .virtual_cluster = picture->virtual_clusters.items[old->virtual_cluster],
                    });
        struct picture_row moved = *old;
        moved.full = row->full;
        moved.user = row->user;
        moved.virtual_cluster = row->virtual_cluster;
        moved.phrase = words_add(&fresh.phrases, text_of(picture->phrases.items[old->phrase]));
        moved.tags = NULL;
        moved.tag_count = 0;
        *row = moved;
        picture_order_check(&fresh, fresh.count - 1);
        for (size_t t = 0; t < old->tag_count; t++)
            row_tag(&fresh, row, text_of(picture->tags.items[old->tags[t]]));
    }
    picture_release(picture);
    picture->names = fresh.names;
    picture->pool = fresh.pool;
    picture->chunks.items = fresh.chunks.items;
    picture->chunks.count = fresh.chunks.count;
    picture->chunks.room = fresh.chunks.room;
    picture->users = fresh.users;
    picture->virtual_clusters = fresh.virtual_clusters;
    picture->phrases = fresh.phrases;
    picture->tags = fresh.tags;
    picture->count = fresh.count;
    picture->dead = 0;
    picture->is_shuffled = fresh.is_shuffled;
}

bool picture_has(const struct picture *picture, struct job_id job)
{
    return picture_index(picture, job) != SIZE_MAX;
}
