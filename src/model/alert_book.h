/* alert_book.h — what needs somebody's attention, since when, and until when.
 *
 * Pure. The book is told again and again what is wrong at that moment. What is wrong for the first
 * time begins to stand; what is not wrong any more has ended, and is kept for ALERT_KEEP_MS, but
 * the latest ALERTS_KEPT of all at most. What is wrong again within ALERT_AGAIN_MS goes on as if it
 * had never ended. One that lasted less than ALERT_BRIEF_MS, and whose time nobody knew, is
 * forgotten at its end: a server that has just started, or a hiccup.
 *
 * Times are Unix milliseconds. A time of the book that is later than the round's was wrong, and is
 * the round's from then on. The book owns all that it holds.
 */
#ifndef MODEL_ALERT_BOOK_H
#define MODEL_ALERT_BOOK_H
#include "base/text.h"
#include "model/alert.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;

enum {
    ALERT_AGAIN_MS = 60 * 1000,
    ALERT_BRIEF_MS = 10 * 1000,
    ALERT_KEEP_MS = 7 * 86400 * 1000,
    ALERTS_KEPT = 1000,
};

struct alert_book;

struct alert_book *alert_book_new(void);
void alert_book_free(struct alert_book *book);

/* The time of what begins and ends, and the time by which is forgotten what ended long ago: the
 * latter believes no jump of the clock (server/clock.h), as what it takes does not come back. */
struct alert_time {
    int64_t now_ms;
    int64_t trusted_ms;
};

/* What is wrong now, each thing once. `stays`, which may be NULL, is asked of what stands and was
 * not found: true when it cannot be known yet whether it has ended. True: an alert has begun, ended
 * or changed its severity. */
bool alert_book_take(struct alert_book *book, const struct alert *found, size_t count,
                     struct alert_time time,
                     bool (*stays)(void *context, const struct alert *alert), void *context);

/* A copy in the arena: what stands, then what has ended; the newest first. */
void alert_book_list(const struct alert_book *book, struct arena *arena, struct alert **list,
                     size_t *count);

/* To and from `most` bytes at most: what stands first; what does not fit is left out. What stands
 * for less than ALERT_BRIEF_MS is not written. An empty book is no bytes. Read: some bytes, into an
 * empty book; ERR_CORRUPT, and it stays empty. */
void alert_book_write(const struct alert_book *book, int64_t now_ms, size_t most, struct buf *out);
int alert_book_read(struct alert_book *book, struct text bytes, struct err *err);

#endif
