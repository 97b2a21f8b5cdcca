#include "api/byte_budget.h"
#include "api/http.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "sys/secret.h"
#include <assert.h>
#include <pthread.h>

/* Somebody for whom bytes are held. */
struct held_for {
    char *name;
    uint32_t index; /* among the clients */
    uint64_t bytes;
};

struct byte_budget {
    pthread_mutex_t lock;
    struct text_map map; /* name → index */
    struct held_for **items;
    size_t count, room;
    uint64_t bytes;
};

struct byte_share {
    struct byte_budget *budget;
    struct held_for *client;
    uint64_t bytes;
};

struct byte_budget *byte_budget_new(void)
{
    struct byte_budget *budget = mem_zero(1, sizeof *budget);
    pthread_mutex_init(&budget->lock, NULL);
    secret_random(&budget->map.seed, sizeof budget->map.seed);
    return budget;
}

void byte_budget_free(struct byte_budget *budget)
{
    if (!budget)
        return;
    assert(budget->count == 0 && budget->bytes == 0);
    ARRAY_FREE(budget);
    text_map_release(&budget->map);
    pthread_mutex_destroy(&budget->lock);
    mem_free(budget);
}

/* ---- clients; all under the lock ---- */

static struct held_for *client_find(const struct byte_budget *budget, const char *name)
{
    const uint32_t index = text_map_get(&budget->map, text_of(name));
    return index == MAP_NONE ? NULL : budget->items[index];
}

static struct held_for *client_add(struct byte_budget *budget, const char *name)
{
    struct held_for *client = mem_zero(1, sizeof *client);
    client->name = mem_copy(name);
    client->index = (uint32_t)budget->count;
    *ARRAY_ADD(budget) = client;
    text_map_set(&budget->map, text_of(client->name), client->index);
    return client;
}

/* The last one takes its place. */
static void client_remove(struct byte_budget *budget, struct held_for *client)
{
    struct held_for *last = budget->items[--budget->count];
    text_map_remove(&budget->map, text_of(client->name));
    if (last != client) {
        last->index = client->index;
        budget->items[last->index] = last;
        text_map_set(&budget->map, text_of(last->name), last->index);
    }
    mem_free(client->name);
    mem_free(client);
}

static int room_check(const struct byte_budget *budget, const struct held_for *client,
                      const char *what, size_t bytes, struct err *err)
{
    const uint64_t own = client ? client->bytes : 0;
    const uint64_t most = own ? BYTES_MAX : (uint64_t)BYTES_MAX + BYTES_RESERVE;
    if (own && own + bytes > BYTES_OF_ONE_MAX)
        return err_fail(err, ERR_BUSY, "",
                        "this %s has %zu bytes, and your earlier requests and replies that are "
                        "under way have %llu, of %d at most: end those, or ask for less at a time",
                        what, bytes, (unsigned long long)own, BYTES_OF_ONE_MAX);
    if (budget->bytes && budget->bytes + bytes > most)
        return err_fail(err, ERR_BUSY, "",
                        "this %s has %zu bytes, and the requests and replies of all that are under "
                        "way have %llu: try again later, or ask for less at a time",
                        what, bytes, (unsigned long long)budget->bytes);
    return 0;
}

/* ---- what is held ---- */

static void share_free(void *state)
{
    struct byte_share *share = state;
    struct byte_budget *budget = share->budget;
    pthread_mutex_lock(&budget->lock);
    assert(share->client->bytes >= share->bytes && budget->bytes >= share->bytes);
    budget->bytes -= share->bytes;
    share->client->bytes -= share->bytes;
    if (share->client->bytes == 0)
        client_remove(budget, share->client);
    pthread_mutex_unlock(&budget->lock);
    mem_free(share);
}

int byte_budget_take(struct byte_budget *budget, const char *name, const char *what, size_t bytes,
                     bool must, struct http_hold *hold, struct err *err)
{
    struct byte_share *share = NULL;
    if (bytes <= BYTES_SMALL)
        return 0;
    pthread_mutex_lock(&budget->lock);
    struct held_for *client = client_find(budget, name);
    int code = must ? 0 : room_check(budget, client, what, bytes, err);
    if (!code) {
        share = mem_zero(1, sizeof *share);
        *share = (struct byte_share){budget, client ? client : client_add(budget, name), bytes};
        share->client->bytes += bytes;
        budget->bytes += bytes;
    }
    pthread_mutex_unlock(&budget->lock);
    if (share)
        *hold = (struct http_hold){share_free, share};
    return code;
}

uint64_t byte_budget_bytes(struct byte_budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    const uint64_t bytes = budget->bytes;
    pthread_mutex_unlock(&budget->lock);
    return bytes;
}
