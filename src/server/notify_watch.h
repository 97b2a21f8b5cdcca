/* notify_watch.h — the thread that sends messages about changes of jobs, and about alerts
 * (docs/rfc/0021-notifications.md; those about alerts: notify_alerts.h).
 *
 * What waits about jobs stands in the store (the table notices, written by the commits of
 * notices.h); what has been sent, or given up, is removed from it by a mail to the core thread.
 * After a commit with messages it looks at once, but at most once in NOTIFY_ROUND_MS; else when a
 * pause ends.
 */
#ifndef SERVER_NOTIFY_WATCH_H
#define SERVER_NOTIFY_WATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;
struct notify_config;
struct notify_watch;
struct problems;
struct server;
struct spec;
struct text;

enum { NOTIFY_WAITING_MAX = 20000 }; /* messages about jobs; the oldest go first */

/* Borrows the server. start: ERR_UNAVAILABLE when no thread can be made. */
struct notify_watch *notify_watch_new(struct server *server);
int notify_watch_start(struct notify_watch *watch, struct err *err);
/* Where messages go from now on; copied. */
void notify_watch_configure(struct notify_watch *watch, const struct notify_config *config);
/* There are messages that are durable, or other alerts than before. Never blocks for long. */
void notify_watch_wake(struct notify_watch *watch);
void notify_watch_stop(struct notify_watch *watch); /* gives up what is being sent */
void notify_watch_free(struct notify_watch *watch);

/* Of a job that is submitted: a message that its file asks for, and that nobody will get, is a
 * warning. Any thread. */
int notify_submit_check(struct server *server, const char *user, const struct spec *spec,
                        struct problems *problems, struct arena *arena, struct err *err);

/* Send a mail to this address now, to see whether it arrives. ERR_UNSUPPORTED: there is no mail
 * server; ERR_INVALID: no address; ERR_UNAVAILABLE: why it was not taken. Blocks, as
 * long as one mail may take; no server is needed. */
int notify_try(const struct notify_config *config, struct text to, struct err *err);

void notify_metrics_write(const struct notify_watch *watch, struct buf *out);

#endif
