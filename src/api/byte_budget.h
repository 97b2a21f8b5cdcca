/* byte_budget.h — how many bytes of requests and replies may be under way at once, in all and of
 * one client.
 *
 * Edge. Any thread. A request's body stays in memory from when it is announced until its reply is
 * made, and a reply that is made whole from then until its client has taken it or its connection
 * has ended (of an action on many jobs, whose reply must go out, an estimate from its begin on);
 * and clients may take their time (HTTP_REQUEST_MS for a body, HTTP_IDLE_S from one byte of a reply
 * to the next). A client is a user, or a network where nobody has signed in.
 *
 * What has BYTES_SMALL bytes or less neither counts nor is refused: errors, probes and what an
 * administrator needs get through always, and there is no more of it than connections. Streams hold
 * a block each, and do not count either.
 */
#ifndef API_REPLY_BUDGET_H
#define API_REPLY_BUDGET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct http_hold;
struct byte_budget;

enum {
    BYTES_SMALL = 16 << 10,
    BYTES_OF_ONE_MAX = 64 << 20, /* the first reply may have more */
    BYTES_MAX = 256 << 20,
    BYTES_RESERVE = 64 << 20, /* beyond, for clients of whom nothing is under way */
};

struct byte_budget *byte_budget_new(void);
/* Every hold must have been freed. */
void byte_budget_free(struct byte_budget *budget);

/* Counts it until `hold` is freed. `what`: "body" or "reply", for the words of an error. ERR_BUSY:
 * there is no room, nothing has changed; but what `must` go out is counted beyond the limits. The
 * first of a client is refused only for what is under way of others, and one that is alone never.
 */
int byte_budget_take(struct byte_budget *budget, const char *client, const char *what, size_t bytes,
                     bool must, struct http_hold *hold, struct err *err);

/* What is counted now. */
uint64_t byte_budget_bytes(struct byte_budget *budget);

#endif
