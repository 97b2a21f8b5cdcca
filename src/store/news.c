/* news.c — see news.h. */
#include "store/news.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include <assert.h>
#include <pthread.h>

struct news_entry {
    uint32_t id;
    uint8_t kind;
    char *name;
};

struct news {
    pthread_mutex_t lock;
    uint64_t floor, last;    /* what came after `floor` is known, up to `last` */
    struct news_entry *ring; /* NEWS_KEPT; number N stands at N % NEWS_KEPT */
};

struct news *news_new(int64_t now_ms)
{
    struct news *news = mem_zero(1, sizeof *news);
    assert(now_ms >= 0);
    pthread_mutex_init(&news->lock, NULL);
    news->floor = news->last = (uint64_t)now_ms << 10;
    news->ring = mem_zero(NEWS_KEPT, sizeof *news->ring);
    return news;
}

void news_free(struct news *news)
{
    if (!news)
        return;
    for (size_t i = 0; i < NEWS_KEPT; i++)
        mem_free(news->ring[i].name);
    mem_free(news->ring);
    pthread_mutex_destroy(&news->lock);
    mem_free(news);
}

static struct news_entry *entry_of(const struct news *news, uint64_t number)
{
    assert(number > news->floor && number <= news->last);
    return &news->ring[number % NEWS_KEPT];
}

void news_add(struct news *news, enum store_news_kind kind, uint32_t id, const char *name)
{
    assert(name);
    pthread_mutex_lock(&news->lock);
    struct news_entry *entry = entry_of(news, ++news->last);
    mem_free(entry->name);
    *entry = (struct news_entry){
        .id = id, .kind = (uint8_t)kind, .name = name[0] ? mem_copy(name) : NULL};
    if (news->last - news->floor > NEWS_KEPT)
        news->floor = news->last - NEWS_KEPT;
    assert(news->last - news->floor <= NEWS_KEPT);
    pthread_mutex_unlock(&news->lock);
}

void news_forget(struct news *news)
{
    pthread_mutex_lock(&news->lock);
    assert(news->floor <= news->last);
    news->floor = ++news->last;
    pthread_mutex_unlock(&news->lock);
}

uint64_t news_number(struct news *news)
{
    pthread_mutex_lock(&news->lock);
    assert(news->floor <= news->last);
    uint64_t last = news->last;
    pthread_mutex_unlock(&news->lock);
    return last;
}

/* A job and its removal are the same thing. */
static uint64_t key_of(const struct news_entry *entry)
{
    return (uint64_t)(entry->kind == STORE_NEWS_NODE) << 32 | entry->id;
}

/* Under the lock: each thing once, at its last change. */
static void collect(const struct news *news, uint64_t after, uint64_t end, struct arena *arena,
                    struct store_news *out)
{
    cleanup_id_map struct id_map seen = {0};
    size_t count = 0;
    assert(end - after <= NEWS_READ_MAX);
    struct store_news_item items[NEWS_READ_MAX];
    for (uint64_t number = end; number > after; number--) {
        const struct news_entry *entry = entry_of(news, number);
        if (id_map_get(&seen, key_of(entry) + 1) != MAP_NONE)
            continue;
        id_map_set(&seen, key_of(entry) + 1, 1);
        items[count++] = (struct store_news_item){
            .number = number,
            .kind = (enum store_news_kind)entry->kind,
            .id = entry->id,
            .name = entry->name ? arena_copy(arena, text_of(entry->name)) : "",
        };
    }
    out->items = ARENA_ARRAY(arena, struct store_news_item, count + 1);
    for (size_t i = 0; i < count; i++)
        out->items[i] = items[count - 1 - i];
    out->count = count;
}

void news_read(struct news *news, uint64_t after, struct arena *arena, struct store_news *out)
{
    *out = (struct store_news){0};
    pthread_mutex_lock(&news->lock);
    out->is_lost = after < news->floor || after > news->last;
    out->number = news->last;
    if (!out->is_lost) {
        if (out->number - after > NEWS_READ_MAX)
            out->number = after + NEWS_READ_MAX;
        collect(news, after, out->number, arena, out);
    }
    pthread_mutex_unlock(&news->lock);
}
