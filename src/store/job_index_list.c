/* job_index_list.c — filters, orders and names over the index. */
#include "base/arena.h"
#include "base/memory.h"
#include "model/history_share.h"
#include "store/job_index_row.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <stdlib.h>

enum { NEAR_MAX = 1000 }; /* a page that ends there is picked out in one walk */

/* A filter with its words looked up: one byte a word. */
struct sieve {
    const struct job_filter *filter;
    uint8_t *users, *virtual_clusters; /* wanted */
    uint8_t *user_keys, *cluster_keys; /* the keyword is in it */
    uint8_t *tags, *tags_not;          /* NULL: no demand */
    uint32_t states;
    uint64_t pairs; /* of the keyword */
};

struct match {
    uint64_t key;
    uint32_t row;
};

struct ranking {
    const struct job_index *jobs;
    enum job_order order;
    bool is_descending;
};

static bool has_keyword(const char *bytes, size_t length, struct text keyword)
{
    assert(bytes || length == 0);
    return memmem(bytes, length, keyword.at, keyword.length) != NULL;
}

static uint8_t *words_wanted(const struct words *words, const struct text *wanted, size_t count,
                             bool is_all_when_empty, struct arena *arena)
{
    assert(count == 0 || wanted);
    uint8_t *marks = arena_alloc(arena, words->count + 1);
    if (count == 0 && is_all_when_empty)
        memset(marks, 1, words->count);
    for (size_t i = 0; i < count; i++) {
        uint32_t index = text_map_get(&words->map, wanted[i]);
        if (index != MAP_NONE)
            marks[index] = 1;
    }
    return marks;
}

static uint8_t *words_with(const struct words *words, struct text keyword, struct arena *arena)
{
    assert(keyword.length > 0);
    uint8_t *marks = arena_alloc(arena, words->count + 1);
    for (size_t i = 0; i < words->count; i++)
        marks[i] = has_keyword(words->items[i], strlen(words->items[i]), keyword);
    return marks;
}

static void sieve_make(struct sieve *sieve, const struct job_index *jobs,
                       const struct job_filter *filter, struct arena *arena)
{
    *sieve = (struct sieve){.filter = filter, .states = filter->states};
    if (sieve->states == 0)
        sieve->states = UINT32_MAX;
    sieve->users = words_wanted(&jobs->users, filter->users, filter->user_count, true, arena);
    sieve->virtual_clusters = words_wanted(&jobs->virtual_clusters, filter->virtual_clusters,
                                           filter->virtual_cluster_count, true, arena);
    if (filter->keyword.length) {
        sieve->user_keys = words_with(&jobs->users, filter->keyword, arena);
        sieve->pairs = job_index_pairs(filter->keyword);
        sieve->cluster_keys = words_with(&jobs->virtual_clusters, filter->keyword, arena);
    }
    if (filter->tag_count)
        sieve->tags = words_wanted(&jobs->tags, filter->tags, filter->tag_count, false, arena);
    if (filter->tag_not_count)
        sieve->tags_not =
            words_wanted(&jobs->tags, filter->tags_not, filter->tag_not_count, false, arena);
}

static bool row_has_any(const struct job_index_row *row, const uint8_t *marks)
{
    assert(row->tag_count == 0 || row->tags);
    for (size_t i = 0; i < row->tag_count; i++)
        if (marks[row->tags[i]])
            return true;
    return false;
}

static bool row_has_priority(const struct job_index_row *row, const struct job_filter *filter)
{
    assert(filter->priority_count == 0 || filter->priorities);
    if (!row->has_priority)
        return filter->wants_default_priority;
    for (size_t i = 0; i < filter->priority_count; i++)
        if (filter->priorities[i] == row->priority)
            return true;
    return false;
}

static bool sieve_passes(const struct sieve *sieve, const struct job_index_row *row)
{
    assert(row->shown < PUBLIC_STATE_COUNT);
    const struct job_filter *filter = sieve->filter;
    if (row->is_dead || !(sieve->states >> row->shown & 1) || !sieve->users[row->user] ||
        !sieve->virtual_clusters[row->virtual_cluster])
        return false;
    if (row->submitted_ms < filter->since_ms ||
        (filter->until_ms && row->submitted_ms >= filter->until_ms))
        return false;
    if ((filter->priority_count || filter->wants_default_priority) &&
        !row_has_priority(row, filter))
        return false;
    if (sieve->tags && !row_has_any(row, sieve->tags))
        return false;
    if (sieve->tags_not && row_has_any(row, sieve->tags_not))
        return false;
    return !sieve->user_keys || sieve->user_keys[row->user] ||
           sieve->cluster_keys[row->virtual_cluster] ||
           ((sieve->pairs & ~row->pairs) == 0 &&
            has_keyword(row->full + row->name_at, (size_t)(row->full_length - row->name_at),
                        filter->keyword));
}

/* The first eight bytes as a number that orders as the text does. */
static uint64_t text_key(const char *text)
{
    uint64_t key = 0;
    if (strnlen(text, sizeof key) == sizeof key) {
        memcpy(&key, text, sizeof key);
        return __builtin_bswap64(key);
    }
    for (int i = 0; i < 8; i++)
        key = key << 8 | (*text ? (uint8_t)*text++ : 0u);
    return key;
}

static uint64_t row_key(const struct job_index *jobs, const struct job_index_row *row,
                        enum job_order order)
{
    /* by name: FAILED, RUNNING, STOPPED, STOPPING, SUCCEEDED, WAITING */
    static const uint8_t state_ranks[PUBLIC_STATE_COUNT] = {
        [PUBLIC_FAILED] = 0,   [PUBLIC_RUNNING] = 1,   [PUBLIC_STOPPED] = 2,
        [PUBLIC_STOPPING] = 3, [PUBLIC_SUCCEEDED] = 4, [PUBLIC_WAITING] = 5,
    };
    switch (order) {
    case ORDER_SUBMITTED:
        return (uint64_t)row->submitted_ms;
    case ORDER_NAME:
        return text_key(row->full + row->name_at);
    case ORDER_USER:
        return text_key(jobs->users.items[row->user]);
    case ORDER_VIRTUAL_CLUSTER:
        return text_key(jobs->virtual_clusters.items[row->virtual_cluster]);
    case ORDER_RETRIES:
        return (uint64_t)row->retries_user + row->retries_platform + row->retries_resource;
    case ORDER_TASKS:
        return row->task_count;
    case ORDER_GPUS:
        return row->gpu_count;
    case ORDER_STATE:
        return state_ranks[row->shown];
    case ORDER_COMPLETED:
        return row->completed_ms ? (uint64_t)row->completed_ms : UINT64_MAX;
    case ORDER_PRIORITY:
        return row->has_priority ? (uint64_t)((int64_t)row->priority + INT32_MAX) : UINT64_MAX;
    }
    assert(false && "an order");
    return 0;
}

static int rows_compare_text(const struct ranking *ranking, const struct match *a,
                             const struct match *b)
{
    const struct job_index *jobs = ranking->jobs;
    const struct job_index_row *left = job_index_row(jobs, a->row);
    const struct job_index_row *right = job_index_row(jobs, b->row);
    if (ranking->order == ORDER_NAME)
        return strcmp(left->full + left->name_at, right->full + right->name_at);
    if (ranking->order == ORDER_USER && left->user != right->user)
        return strcmp(jobs->users.items[left->user], jobs->users.items[right->user]);
    if (ranking->order == ORDER_VIRTUAL_CLUSTER && left->virtual_cluster != right->virtual_cluster)
        return strcmp(jobs->virtual_clusters.items[left->virtual_cluster],
                      jobs->virtual_clusters.items[right->virtual_cluster]);
    return 0;
}

static int matches_compare(const struct match *a, const struct match *b,
                           const struct ranking *ranking)
{
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    int order = rows_compare_text(ranking, a, b);
    if (order != 0)
        return ranking->is_descending ? -order : order;
    return a->row > b->row ? -1 : a->row < b->row;
}

static int matches_compare_void(const void *a, const void *b, void *ranking)
{
    return matches_compare(a, b, ranking);
}

/* What rows of the same number are ordered by; "" when that is their ids. */
static const char *row_text(const struct ranking *ranking, const struct job_index_row *row)
{
    const struct job_index *jobs = ranking->jobs;
    if (ranking->order == ORDER_NAME)
        return row->full + row->name_at;
    if (ranking->order == ORDER_USER)
        return jobs->users.items[row->user];
    if (ranking->order == ORDER_VIRTUAL_CLUSTER)
        return jobs->virtual_clusters.items[row->virtual_cluster];
    return "";
}

/* Does the row come after a job that stood there? */
static bool row_is_behind(const struct ranking *ranking, const struct job_index_row *row,
                          const struct job_place *place)
{
    if (!place)
        return true;
    const uint64_t key = row_key(ranking->jobs, row, ranking->order);
    if (key != place->number)
        return ranking->is_descending ? key < place->number : key > place->number;
    const char *text = row_text(ranking, row);
    const size_t length = strlen(text),
                 shorter = length < place->text.length ? length : place->text.length;
    int order = shorter ? memcmp(text, place->text.at, shorter) : 0;
    if (order == 0)
        order = (length > place->text.length) - (length < place->text.length);
    if (order != 0)
        return ranking->is_descending ? order < 0 : order > 0;
    return row->id < place->job.v;
}

static struct job_place row_place(const struct ranking *ranking, const struct job_index_row *row,
                                  struct arena *arena)
{
    const struct text text = text_of(row_text(ranking, row));
    return (struct job_place){.job = {row->id},
                              .number = row_key(ranking->jobs, row, ranking->order),
                              .text = {arena_copy(arena, text), text.length}};
}

static void match_swap(struct match *a, struct match *b)
{
    struct match kept = *a;
    *a = *b;
    *b = kept;
}

/* Order so that the `wanted` smallest come first, in any order among themselves. */
static void matches_select(struct match *matches, size_t count, size_t wanted,
                           const struct ranking *ranking)
{
    size_t low = 0, high = count;
    assert(wanted <= count);
    while (high - low > 16 && wanted > low && wanted < high) {
        size_t middle = low + (high - low) / 2, i = low, j = high - 1;
        struct match pivot;
        /* median of three, so that sorted input is no bad case */
        if (matches_compare(&matches[middle], &matches[low], ranking) < 0)
            match_swap(&matches[middle], &matches[low]);
        if (matches_compare(&matches[j], &matches[low], ranking) < 0)
            match_swap(&matches[j], &matches[low]);
        if (matches_compare(&matches[j], &matches[middle], ranking) < 0)
            match_swap(&matches[j], &matches[middle]);
        pivot = matches[middle];
        for (;;) {
            while (matches_compare(&matches[i], &pivot, ranking) < 0)
                i++;
            while (matches_compare(&pivot, &matches[j], ranking) < 0)
                j--;
            if (i >= j)
                break;
            match_swap(&matches[i++], &matches[j--]);
        }
        if (wanted <= j + 1)
            high = j + 1;
        else
            low = j + 1;
    }
    if (high - low > 1 && wanted > low && wanted < high)
        qsort_r(matches + low, high - low, sizeof *matches, matches_compare_void,
                (void *)(uintptr_t)ranking);
}

static int strings_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void row_show(const struct job_index *jobs, const struct job_index_row *row,
                     struct arena *arena, struct store_job *job)
{
    assert(row->name_at > 0 && row->name_at <= row->full_length);
    assert(row->phrase < jobs->phrases.count &&
           row->virtual_cluster < jobs->virtual_clusters.count);
    const char *full = arena_copy(arena, job_index_full(row));
    const char **tags = arena_array(arena, row->tag_count, sizeof *tags);
    struct job_record *record = &job->record;
    *record = (struct job_record){
        .id = {row->id},
        .name = full + row->name_at,
        .user = arena_copy(arena, (struct text){full, row->name_at - 1u}),
        .virtual_cluster =
            arena_copy(arena, text_of(jobs->virtual_clusters.items[row->virtual_cluster])),
        .priority = row->priority,
        .state = (enum life_state)row->state,
        .is_stop_requested = row->is_stop_requested,
        .attempt = row->attempt,
        .retries_user = row->retries_user,
        .retries_platform = row->retries_platform,
        .retries_resource = row->retries_resource,
        .retry_at_ms = row->retry_at_ms,
        .submitted_ms = row->submitted_ms,
        .attempt_created_ms = row->attempt_created_ms,
        .attempt_launched_ms = row->attempt_launched_ms,
        .attempt_completed_ms = row->attempt_completed_ms,
        .launched_ms = row->launched_ms,
        .completed_ms = row->completed_ms,
        .completion = {.code = row->code,
                       .is_success = row->is_success,
                       .attributes = row->attributes},
        .trigger_role = row->trigger_role,
        .trigger_index = row->trigger_index,
        .trigger = "",
        .reason = "",
        .task_count = row->task_count,
        .role_count = row->role_count,
        .gpu_count = row->gpu_count,
        .extra = {"", 0},
    };
    strncpy(record->completion.phrase, jobs->phrases.items[row->phrase],
            sizeof record->completion.phrase - 1);
    job->shown = (enum public_state)row->shown;
    job->has_priority = row->has_priority;
    job->notices = STORE_NOTICES_UNKNOWN;
    for (size_t i = 0; i < row->tag_count; i++)
        tags[i] = arena_copy(arena, text_of(jobs->tags.items[row->tags[i]]));
    qsort(tags, row->tag_count, sizeof *tags, strings_compare);
    job->tags = tags;
    job->tag_count = row->tag_count;
}

/* ---- pages ---- */

static bool filter_is_empty(const struct job_filter *filter)
{
    return !filter->user_count && !filter->virtual_cluster_count && !filter->states &&
           !filter->keyword.length && !filter->tag_count && !filter->tag_not_count &&
           !filter->priority_count && !filter->wants_default_priority && !filter->since_ms &&
           !filter->until_ms;
}

/* How many rows stand before this one, be it there or not. */
static size_t rows_before(const struct job_index *jobs, struct job_id job)
{
    size_t low = 0, high = jobs->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (job_index_row(jobs, middle)->id < job.v)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many rows were submitted before that time; they stand in the order of their submission. */
static size_t rows_submitted_before(const struct job_index *jobs, int64_t before_ms)
{
    assert(!jobs->is_shuffled);
    size_t low = 0, high = jobs->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (job_index_row(jobs, middle)->submitted_ms < before_ms)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The newest first: rows stand in that order, backwards. Returns how many of `end` there are. */
static size_t page_newest(const struct job_index *jobs, const struct sieve *sieve, size_t end,
                          struct match *matches, uint64_t *total)
{
    const struct job_filter *filter = sieve->filter;
    const struct ranking ranking = {jobs, filter->order, filter->is_descending};
    bool is_short = filter->skips_total || filter_is_empty(filter);
    size_t kept = 0, from = jobs->count;
    const size_t first = filter->since_ms ? rows_submitted_before(jobs, filter->since_ms) : 0;
    *total = 0;
    if (filter->after && is_short)
        from = rows_before(jobs, filter->after->job);
    const size_t last = filter->until_ms ? rows_submitted_before(jobs, filter->until_ms) : from;
    for (size_t i = from < last ? from : last; i-- > first && (kept < end || !is_short);) {
        const struct job_index_row *row = job_index_row(jobs, i);
        if (!sieve_passes(sieve, row))
            continue;
        if (kept < end && row_is_behind(&ranking, row, filter->after))
            matches[kept++] = (struct match){0, (uint32_t)i};
        ++*total;
    }
    if (filter_is_empty(filter))
        *total = jobs->count - jobs->dead;
    assert(kept <= *total || filter->skips_total);
    return kept;
}

/* The worst stands first; a place that got another match is put right. */
static void heap_sink(struct match *heap, size_t count, size_t at, const struct ranking *ranking)
{
    assert(at < count);
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && matches_compare(&heap[child], &heap[child + 1], ranking) < 0)
            child++;
        if (matches_compare(&heap[child], &heap[at], ranking) <= 0)
            return;
        match_swap(&heap[child], &heap[at]);
    }
}

struct best {
    struct match *items; /* a heap once it is full */
    size_t count, room;
    uint64_t total; /* that match */
};

static void best_take(struct best *best, struct match match, const struct ranking *ranking)
{
    assert(best->count <= best->room);
    if (best->count < best->room) {
        best->items[best->count++] = match;
        for (size_t at = best->count / 2; best->count == best->room && at-- > 0;)
            heap_sink(best->items, best->count, at, ranking);
    } else if (best->room > 0 && matches_compare(&match, &best->items[0], ranking) < 0) {
        best->items[0] = match;
        heap_sink(best->items, best->count, 0, ranking);
    }
}

/* The best `end` of all in one walk, for pages near the beginning. Chunks are taken from both ends
 * in turn: where rows stand in the order asked for, or in its reverse, the best come early. */
static size_t page_best(const struct job_index *jobs, const struct sieve *sieve, size_t end,
                        const struct ranking *ranking, struct match *matches, uint64_t *total)
{
    struct best best = {.items = matches, .room = end};
    uint64_t flip = ranking->is_descending ? UINT64_MAX : 0;
    size_t chunks = (jobs->count + CHUNK_ROWS - 1) / CHUNK_ROWS;
    for (size_t c = 0; c < chunks; c++) {
        size_t first = (c % 2 ? chunks - 1 - c / 2 : c / 2) * CHUNK_ROWS;
        size_t next = first + CHUNK_ROWS < jobs->count ? first + CHUNK_ROWS : jobs->count;
        assert(first < next); /* each chunk once, and none is empty */
        while (next-- > first) {
            const struct job_index_row *row = job_index_row(jobs, next);
            uint64_t key;
            if (!sieve_passes(sieve, row))
                continue;
            best.total++;
            if (!row_is_behind(ranking, row, sieve->filter->after))
                continue;
            key = row_key(jobs, row, ranking->order) ^ flip;
            best_take(&best, (struct match){key, (uint32_t)next}, ranking);
        }
    }
    *total = best.total;
    qsort_r(matches, best.count, sizeof *matches, matches_compare_void, (void *)(uintptr_t)ranking);
    return best.count;
}

/* All that match, then the page picked out of them: for pages far from the beginning. */
static size_t page_deep(const struct job_index *jobs, const struct sieve *sieve, size_t end,
                        const struct ranking *ranking, struct match *matches, uint64_t *total)
{
    const struct job_filter *filter = sieve->filter;
    uint64_t flip = ranking->is_descending ? UINT64_MAX : 0;
    size_t count = 0, offset;
    *total = 0;
    for (size_t i = 0; i < jobs->count; i++) {
        const struct job_index_row *row = job_index_row(jobs, i);
        if (!sieve_passes(sieve, row))
            continue;
        ++*total;
        if (row_is_behind(ranking, row, filter->after))
            matches[count++] =
                (struct match){row_key(jobs, row, ranking->order) ^ flip, (uint32_t)i};
    }
    if (end > count)
        end = count;
    offset = filter->offset < end ? (size_t)filter->offset : end;
    assert(offset <= end && end <= count);
    matches_select(matches, count, end, ranking);
    matches_select(matches, end, offset, ranking);
    qsort_r(matches + offset, end - offset, sizeof *matches, matches_compare_void,
            (void *)(uintptr_t)ranking);
    return end;
}

/* Where the page ends, unless the list ends before. */
static size_t page_end(const struct job_index *jobs, const struct job_filter *filter)
{
    assert(jobs->dead <= jobs->count);
    if (filter->limit == 0 || filter->offset >= jobs->count)
        return 0;
    return filter->limit < jobs->count - filter->offset ? (size_t)(filter->offset + filter->limit)
                                                        : jobs->count;
}

void job_index_list(struct job_index *jobs, const struct job_filter *filter, struct arena *arena,
                    struct job_page *page)
{
    struct ranking ranking = {jobs, filter->order, filter->is_descending};
    assert(jobs->dead <= jobs->count);
    cleanup_arena struct arena scratch;
    arena_init(&scratch);
    *page = (struct job_page){0};
    pthread_rwlock_rdlock(&jobs->lock);
    struct sieve sieve;
    sieve_make(&sieve, jobs, filter, &scratch);
    size_t end = page_end(jobs, filter);
    bool is_newest =
        filter->order == ORDER_SUBMITTED && filter->is_descending && !jobs->is_shuffled;
    bool is_near = end <= NEAR_MAX;
    cleanup_free struct match *matches =
        mem_alloc(mem_size((is_newest || is_near ? end : jobs->count) + 1, sizeof *matches));
    size_t kept;
    if (is_newest)
        kept = page_newest(jobs, &sieve, end, matches, &page->total);
    else if (is_near)
        kept = page_best(jobs, &sieve, end, &ranking, matches, &page->total);
    else
        kept = page_deep(jobs, &sieve, end, &ranking, matches, &page->total);
    assert(kept <= end);
    if (filter->offset < kept) {
        page->count = kept - (size_t)filter->offset;
        page->items = arena_array(arena, page->count, sizeof *page->items);
        if (filter->wants_places)
            page->places = arena_array(arena, page->count, sizeof *page->places);
        for (size_t i = 0; i < page->count; i++) {
            const struct job_index_row *row = job_index_row(jobs, matches[filter->offset + i].row);
            row_show(jobs, row, arena, &page->items[i]);
            if (filter->wants_places)
                page->places[i] = row_place(&ranking, row, arena);
        }
    }
    pthread_rwlock_unlock(&jobs->lock);
}

bool job_index_has_user(struct job_index *jobs, struct text user)
{
    bool has = false;
    pthread_rwlock_rdlock(&jobs->lock);
    uint32_t word = text_map_get(&jobs->users.map, user); /* of most new names there is none */
    for (size_t i = 0; word != MAP_NONE && i < jobs->count && !has; i++) {
        const struct job_index_row *row = job_index_row(jobs, i);
        has = !row->is_dead && row->user == word;
    }
    pthread_rwlock_unlock(&jobs->lock);
    return has;
}

bool job_index_find(struct job_index *jobs, struct text user, struct text name, struct job_id *job)
{
    if (user.length > STORE_USER_NAME_MAX || name.length > 255)
        return false;
    char full[STORE_USER_NAME_MAX + 1 + 256];
    if (user.length)
        memcpy(full, user.at, user.length);
    full[user.length] = '~';
    if (name.length)
        memcpy(full + user.length + 1, name.at, name.length);
    pthread_rwlock_rdlock(&jobs->lock);
    uint32_t id = text_map_get(&jobs->names, (struct text){full, user.length + 1 + name.length});
    pthread_rwlock_unlock(&jobs->lock);
    if (id == MAP_NONE)
        return false;
    job->v = id;
    return true;
}

bool job_index_summary(struct job_index *jobs, struct job_id job, struct arena *arena,
                       struct store_job *row)
{
    pthread_rwlock_rdlock(&jobs->lock);
    size_t index = job_index_position(jobs, job);
    if (index != SIZE_MAX)
        row_show(jobs, job_index_row(jobs, index), arena, row);
    pthread_rwlock_unlock(&jobs->lock);
    return index != SIZE_MAX;
}

void job_index_counts(struct job_index *jobs, uint64_t counts[PUBLIC_STATE_COUNT])
{
    pthread_rwlock_rdlock(&jobs->lock);
    memcpy(counts, jobs->counts, sizeof jobs->counts);
    pthread_rwlock_unlock(&jobs->lock);
}

size_t job_index_final(struct job_index *jobs, int64_t completed_before_ms, struct job_id *ids,
                       size_t room)
{
    size_t found = 0;
    pthread_rwlock_rdlock(&jobs->lock);
    for (size_t i = 0; i < jobs->count && found < room; i++) {
        const struct job_index_row *row = job_index_row(jobs, i);
        if (!row->is_dead && row->state == LIFE_COMPLETED &&
            row->completed_ms < completed_before_ms)
            ids[found++] = (struct job_id){row->id};
    }
    pthread_rwlock_unlock(&jobs->lock);
    return found;
}

/* By the number of the user's word. */
static struct history_owner *owners_make(const struct job_index *jobs,
                                         const struct store_shares *shares)
{
    const size_t count = jobs->users.count;
    struct history_owner *owners = mem_zero(count + 1, sizeof *owners);
    for (size_t i = 0; i < count; i++) {
        const struct store_use none = {0};
        const struct store_use *use = i < jobs->uses.count ? &jobs->uses.items[i] : &none;
        owners[i] = (struct history_owner){.kept = use->stored_jobs - use->live_jobs, .share = -1};
    }
    for (size_t i = 0; i < shares->count; i++) {
        const uint32_t word = text_map_get(&jobs->users.map, text_of(shares->items[i].user));
        if (word != MAP_NONE)
            owners[word].share = shares->items[i].value;
    }
    return owners;
}

size_t job_index_surplus(struct job_index *jobs, const struct store_shares *shares,
                         struct job_id *ids, size_t room)
{
    size_t found = 0;
    pthread_rwlock_rdlock(&jobs->lock);
    cleanup_free struct history_owner *owners = owners_make(jobs, shares);
    history_share_cut(owners, jobs->users.count, room);
    for (size_t i = 0; i < jobs->count && found < room; i++) {
        const struct job_index_row *row = job_index_row(jobs, i);
        if (row->is_dead || row->state != LIFE_COMPLETED || owners[row->user].loses == 0)
            continue;
        owners[row->user].loses--;
        ids[found++] = (struct job_id){row->id};
    }
    pthread_rwlock_unlock(&jobs->lock);
    return found;
}
