#include "api/token_cache.h"
#include "api/call.h"
#include "base/arena.h"
#include "base/memory.h"
#include "sys/secret.h"
#include <assert.h>
#include <pthread.h>
#include <sodium.h>

enum { HASH_SIZE = 32, LOCKS = 64 };

struct slot {
    uint8_t hash[HASH_SIZE];
    uint64_t version; /* 0: nothing is here */
    int64_t expires_s;
    struct caller caller; /* its texts are the slot's, in one block: */
    void *block;
};

struct token_cache {
    uint8_t key[HASH_SIZE]; /* of this process: a hash tells nothing of its token */
    pthread_mutex_t locks[LOCKS];
    struct slot slots[TOKEN_CACHE_SLOTS];
};

struct token_cache *token_cache_new(void)
{
    struct token_cache *cache = mem_zero(1, sizeof *cache);
    secret_random(cache->key, sizeof cache->key);
    for (size_t i = 0; i < LOCKS; i++)
        pthread_mutex_init(&cache->locks[i], NULL);
    return cache;
}

void token_cache_free(struct token_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < TOKEN_CACHE_SLOTS; i++)
        mem_free(cache->slots[i].block);
    for (size_t i = 0; i < LOCKS; i++)
        pthread_mutex_destroy(&cache->locks[i]);
    mem_free(cache);
}

/* The slot of the token, whose hash is written, and its lock taken. */
static struct slot *slot_enter(struct token_cache *cache, struct text token,
                               uint8_t hash[HASH_SIZE], pthread_mutex_t **lock)
{
    uint32_t number;
    crypto_generichash(hash, HASH_SIZE, (const unsigned char *)token.at, token.length, cache->key,
                       sizeof cache->key);
    memcpy(&number, hash, sizeof number);
    *lock = &cache->locks[number % LOCKS];
    pthread_mutex_lock(*lock);
    return &cache->slots[number % TOKEN_CACHE_SLOTS];
}

bool token_cache_get(struct token_cache *cache, struct text token, uint64_t version, int64_t now_s,
                     struct arena *arena, struct caller *caller)
{
    uint8_t hash[HASH_SIZE];
    pthread_mutex_t *lock;
    assert(version);
    const struct slot *slot = slot_enter(cache, token, hash, &lock);
    const bool is_known = slot->version == version &&
                          sodium_memcmp(slot->hash, hash, HASH_SIZE) == 0 &&
                          (!slot->expires_s || slot->expires_s > now_s);
    if (is_known) {
        *caller = slot->caller;
        struct auth_caller *auth = &caller->auth;
        const char **groups = ARENA_ARRAY(arena, const char *, auth->group_count + 1);
        for (size_t i = 0; i < auth->group_count; i++)
            groups[i] = arena_copy(arena, text_of(slot->caller.auth.groups[i]));
        auth->groups = groups;
        auth->user = arena_copy(arena, text_of(slot->caller.auth.user));
        caller->token_id = arena_copy(arena, text_of(slot->caller.token_id));
    }
    pthread_mutex_unlock(lock);
    return is_known;
}

/* The slot keeps what the caller points to: the list of groups, then all texts. */
static const char *text_place(char **at, const char *text)
{
    char *place = *at;
    const size_t size = strlen(text) + 1;
    memcpy(place, text, size);
    *at += size;
    return place;
}

static void slot_keep(struct slot *slot, const struct caller *caller)
{
    const struct auth_caller *auth = &caller->auth;
    size_t size = mem_size(auth->group_count + 1, sizeof *auth->groups) + strlen(auth->user) + 1 +
                  strlen(caller->token_id) + 1;
    for (size_t i = 0; i < auth->group_count; i++)
        size += strlen(auth->groups[i]) + 1;
    mem_free(slot->block);
    slot->block = mem_alloc(size);
    const char **groups = slot->block;
    char *at = (char *)(groups + auth->group_count + 1);
    slot->caller = *caller;
    for (size_t i = 0; i < auth->group_count; i++)
        groups[i] = text_place(&at, auth->groups[i]);
    slot->caller.auth.groups = groups;
    slot->caller.auth.user = text_place(&at, auth->user);
    slot->caller.token_id = text_place(&at, caller->token_id);
    assert(at == (char *)slot->block + size);
}

void token_cache_put(struct token_cache *cache, struct text token, uint64_t version,
                     int64_t expires_s, const struct caller *caller)
{
    uint8_t hash[HASH_SIZE];
    pthread_mutex_t *lock;
    assert(version && !caller->auth.cluster_count && !caller->auth.storage_count);
    struct slot *slot = slot_enter(cache, token, hash, &lock);
    if (slot->version <= version) {
        memcpy(slot->hash, hash, HASH_SIZE);
        slot->version = version;
        slot->expires_s = expires_s;
        slot_keep(slot, caller);
    }
    pthread_mutex_unlock(lock);
}
