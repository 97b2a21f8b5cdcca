/* alert_watch.h — the thread that looks for what needs somebody's attention.
 *
 * It looks at the nodes, the GPUs that are sampled, the server's own checks, and the jobs whose
 * tasks stand still; after a change of a node at once, else every ALERT_ROUND_MS. Since when and
 * until when is the book's to say (model/alert_book.h), which is stored as the setting "alerts"
 * when it has changed, ALERT_SAVE_MS after the last time at the earliest, so that a restart goes on
 * with it. After a round in which an alert began, ended or changed its severity it wakes the notify
 * watch.
 */
#ifndef SERVER_ALERT_WATCH_H
#define SERVER_ALERT_WATCH_H
#include "core/output.h"
#include "model/alert_book.h"
#include <stddef.h>
#include <stdint.h>

struct alert_watch;
struct arena;
struct err;
struct server;

enum {
    ALERT_ROUND_MS = 10 * 1000,
    ALERT_SAVE_MS = 10 * 1000,
    ALERT_SETTLE_MS = 60 * 1000, /* after the start nothing is known of GPUs not sampled yet */
};

/* Borrows the server. start: reads what is stored; ERR_UNAVAILABLE when no thread can be made. */
struct alert_watch *alert_watch_new(struct server *server);
int alert_watch_start(struct alert_watch *watch, struct err *err);
/* Records that are durable; any other than a node's is passed over. Never blocks. */
void alert_watch_take(struct alert_watch *watch, const struct record *records, size_t count);
/* What stands, then what has ended, in the arena: of nodes at this moment, of all else a second
 * ago at most. Any thread. */
int alert_watch_list(struct alert_watch *watch, struct arena *arena, struct alert **alerts,
                     size_t *count, struct err *err);
/* The same as of the last round, without another one; false: there has been none since the start.
 * Any thread. */
bool alert_watch_copy(struct alert_watch *watch, struct arena *arena, struct alert **alerts,
                      size_t *count);
void alert_watch_stop(struct alert_watch *watch); /* stores what is not stored yet */
void alert_watch_free(struct alert_watch *watch);

/* One look, as of this Unix time. For tests: without thread. */
int alert_watch_round(struct alert_watch *watch, int64_t now_ms, struct err *err);

#endif
