#include "api/reply_budget.h"
#include "api/http.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "sys/secret.h"
#include <assert.h>
#include <pthread.h>

/* To whom something is on its way. */
struct reader {
    char *name;
    uint32_t index; /* among the readers */
    uint64_t bytes;
};

struct reply_budget {
    pthread_mutex_t lock;
    struct text_map map; /* name → index */
    struct reader **items;
    size_t count, room;
    uint64_t bytes;
};

struct reply_share {
    struct reply_budget *budget;
    struct reader *reader;
    uint64_t bytes;
};

struct reply_budget *reply_budget_new(void)
{
    struct reply_budget *budget = mem_zero(1, sizeof *budget);
    pthread_mutex_init(&budget->lock, NULL);
    secret_random(&budget->map.seed, sizeof budget->map.seed);
    return budget;
}

void reply_budget_free(struct reply_budget *budget)
{
    if (!budget)
        return;
    assert(budget->count == 0 && budget->bytes == 0);
    ARRAY_FREE(budget);
    text_map_release(&budget->map);
    pthread_mutex_destroy(&budget->lock);
    mem_free(budget);
}

/* ---- readers; all under the lock ---- */

static struct reader *reader_find(const struct reply_budget *budget, const char *name)
{
    const uint32_t index = text_map_get(&budget->map, text_of(name));
    return index == MAP_NONE ? NULL : budget->items[index];
}

static struct reader *reader_add(struct reply_budget *budget, const char *name)
{
    struct reader *reader = mem_zero(1, sizeof *reader);
    reader->name = mem_copy(name);
    reader->index = (uint32_t)budget->count;
    *ARRAY_ADD(budget) = reader;
    text_map_set(&budget->map, text_of(reader->name), reader->index);
    return reader;
}

/* The last one takes its place. */
static void reader_remove(struct reply_budget *budget, struct reader *reader)
{
    struct reader *last = budget->items[--budget->count];
    text_map_remove(&budget->map, text_of(reader->name));
    if (last != reader) {
        last->index = reader->index;
        budget->items[last->index] = last;
        text_map_set(&budget->map, text_of(last->name), last->index);
    }
    mem_free(reader->name);
    mem_free(reader);
}

static int room_check(const struct reply_budget *budget, const struct reader *reader, size_t bytes,
                      struct err *err)
{
    const uint64_t own = reader ? reader->bytes : 0;
    const uint64_t most = own ? REPLIES_MAX : (uint64_t)REPLIES_MAX + REPLIES_RESERVE;
    if (own && own + bytes > REPLIES_OF_READER_MAX)
        return err_fail(err, ERR_BUSY, "",
                        "this reply has %zu bytes, and %llu of earlier replies to you wait to be "
                        "read, of %d at most: read those to the end, or ask for less at a time",
                        bytes, (unsigned long long)own, REPLIES_OF_READER_MAX);
    if (budget->bytes && budget->bytes + bytes > most)
        return err_fail(err, ERR_BUSY, "",
                        "this reply has %zu bytes, and replies to all wait to be read that have "
                        "%llu: try again later, or ask for less at a time",
                        bytes, (unsigned long long)budget->bytes);
    return 0;
}

/* ---- replies ---- */

static void share_free(void *state)
{
    struct reply_share *share = state;
    struct reply_budget *budget = share->budget;
    pthread_mutex_lock(&budget->lock);
    assert(share->reader->bytes >= share->bytes && budget->bytes >= share->bytes);
    budget->bytes -= share->bytes;
    share->reader->bytes -= share->bytes;
    if (share->reader->bytes == 0)
        reader_remove(budget, share->reader);
    pthread_mutex_unlock(&budget->lock);
    mem_free(share);
}

int reply_budget_check(struct reply_budget *budget, const char *reader, size_t bytes,
                       struct err *err)
{
    pthread_mutex_lock(&budget->lock);
    int code = room_check(budget, reader_find(budget, reader), bytes, err);
    pthread_mutex_unlock(&budget->lock);
    return code;
}

int reply_budget_take(struct reply_budget *budget, const char *name, size_t bytes, bool must,
                      struct http_hold *hold, struct err *err)
{
    struct reply_share *share = NULL;
    if (bytes <= REPLY_SMALL)
        return 0;
    pthread_mutex_lock(&budget->lock);
    struct reader *reader = reader_find(budget, name);
    int code = must ? 0 : room_check(budget, reader, bytes, err);
    if (!code) {
        share = mem_zero(1, sizeof *share);
        *share = (struct reply_share){budget, reader ? reader : reader_add(budget, name), bytes};
        share->reader->bytes += bytes;
        budget->bytes += bytes;
    }
    pthread_mutex_unlock(&budget->lock);
    if (share)
        *hold = (struct http_hold){share_free, share};
    return code;
}

uint64_t reply_budget_bytes(struct reply_budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    const uint64_t bytes = budget->bytes;
    pthread_mutex_unlock(&budget->lock);
    return bytes;
}
