/* rate.h — how often each of many may do something: a bucket of tokens for each name.
 *
 * Pure: the time is the caller's. A bucket holds `count` tokens and is filled again evenly within
 * the period, so that a burst of `count` is taken at once, and after it count / period. Names are
 * copied; RATE_NAMES_MAX are kept: when there are more, all buckets are full again. One thread at a
 * time.
 */
#ifndef BASE_RATE_H
#define BASE_RATE_H
#include "base/map.h"
#include "base/text.h"
#include <stdint.h>

enum { RATE_NAMES_MAX = 131072 };

struct rate_table {
    struct text_map map; /* name → item; its seed is the caller's to set */
    struct rate_item {
        char *name;
        int64_t full_us; /* when the bucket is full again */
    } * items;
    size_t count, room;
};

void rate_release(struct rate_table *table);

/* After how many microseconds there is a token, 0: now. Takes none, and keeps no name. */
int64_t rate_wait(const struct rate_table *table, struct text name, int64_t count,
                  int64_t period_us, int64_t now_us);
/* Take a token: 0, or after how many microseconds there is one. `count` is at least 1. */
int64_t rate_take(struct rate_table *table, struct text name, int64_t count, int64_t period_us,
                  int64_t now_us);
/* Take so many tokens, whether they are there or not: the next one comes when these have. */
void rate_owe(struct rate_table *table, struct text name, int64_t count, int64_t period_us,
              int64_t tokens, int64_t now_us);
/* Tokens that are missing in the bucket. */
int64_t rate_used(const struct rate_table *table, struct text name, int64_t count,
                  int64_t period_us, int64_t now_us);

#endif
