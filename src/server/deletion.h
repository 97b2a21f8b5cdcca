/* deletion.h — what deleted jobs have left in the store goes in pieces, between the rounds.
 *
 * Private to server: the core thread's. A piece is a commit of its own, without records, so that
 * the core has not run ahead of the store when it fails: nobody else is refused anything. The next
 * one comes a second later; the store passes the jobs over whose pieces are refused, and when
 * nothing else is left, one of these is tried a minute. A piece is done whenever no mail waits, and
 * now and then while some does. The states stand in docs/rfc/0016-gangs-in-steps.md.
 */
#ifndef SERVER_DELETION_H
#define SERVER_DELETION_H
#include <stdbool.h>
#include <stdint.h>

struct server;

enum { DELETION_WAIT_MS = 100 /* at most between two pieces while there is always mail */ };

struct deletion {
    int64_t last_ms;    /* of the last piece; monotonic, as the next */
    int64_t retry_ms;   /* the last one failed: none before this time; 0: it did not */
    int64_t refused_ms; /* none before of a job that was passed over */
};

/* No mail need be waited for beyond this (monotonic) time; INT64_MAX: nothing is left. */
int64_t deletion_due(const struct server *server);
/* One piece, if any is due; `is_idle`: no mail waits. There must be a core. */
void deletion_go_on(struct server *server, bool is_idle);

#endif
