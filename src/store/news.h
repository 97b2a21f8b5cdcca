/* news.h — what has changed, in order, for those who follow: the last changes, in memory.
 *
 * Private to store. The committing thread adds, any thread reads. A change has a number. Numbers
 * only grow, over restarts, too: the first of a start is made of its time, with room for a million
 * changes a second, and is exact in a number of JavaScript.
 */
#ifndef STORE_NEWS_H
#define STORE_NEWS_H
#include "store/read.h"

enum {
    NEWS_KEPT = 1 << 16,
    NEWS_READ_MAX = 512, /* changes that one read looks at */
};

struct news;

struct news *news_new(int64_t now_ms);
void news_free(struct news *news);

/* The writer. `name` is copied; "" where the id says it all. */
void news_add(struct news *news, enum store_news_kind kind, uint32_t id, const char *name);
/* Something has changed, and nobody knows what. */
void news_forget(struct news *news);

/* As store_news and store_news_number. */
void news_read(struct news *news, uint64_t after, struct arena *arena, struct store_news *out);
uint64_t news_number(struct news *news);

#endif
