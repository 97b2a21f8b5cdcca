/* reply_budget.h — how many bytes of replies may be on their way at once, in all and to one reader.
 *
 * Edge. Any thread. A reply that is made whole stays in memory until its client has taken it, and a
 * client may take its time (HTTP_IDLE_S from one byte to the next). So it counts from when it is
 * made until it has gone out or its connection has ended. A reader is a user, or a network where
 * nobody has signed in.
 *
 * Replies of REPLY_SMALL bytes or less neither count nor are refused: errors, probes and what an
 * administrator needs get through always, and there are no more of them than connections. Streams
 * hold a block each, and do not count either.
 */
#ifndef API_REPLY_BUDGET_H
#define API_REPLY_BUDGET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct http_hold;
struct reply_budget;

enum {
    REPLY_SMALL = 16 << 10,
    REPLIES_OF_READER_MAX = 64 << 20, /* the first one may have more */
    REPLIES_MAX = 256 << 20,
    REPLIES_RESERVE = 64 << 20, /* beyond, for readers to whom nothing is on its way */
};

struct reply_budget *reply_budget_new(void);
/* Every hold must have been freed. */
void reply_budget_free(struct reply_budget *budget);

/* Would a reply of so many bytes be refused now? ERR_BUSY. */
int reply_budget_check(struct reply_budget *budget, const char *reader, size_t bytes,
                       struct err *err);
/* Counts it until `hold` is freed. ERR_BUSY: there is no room, nothing has changed; but a reply
 * that `must` go out is counted beyond the limits. The first reply to a reader is refused only for
 * what is on its way to others, and one that goes out alone never. */
int reply_budget_take(struct reply_budget *budget, const char *reader, size_t bytes, bool must,
                      struct http_hold *hold, struct err *err);

/* What is counted now. */
uint64_t reply_budget_bytes(struct reply_budget *budget);

#endif
