/* batch_failure.h — a batch that the store does not take.
 *
 * Private to server: the core thread's. The core has run ahead of the store, so it is thrown away.
 * Requests are refused; facts are kept until the store can be written again, when a core of its
 * rows steps through them. One mail that can never be stored is found and set aside, so that
 * nobody else pays for it.
 */
#ifndef SERVER_BATCH_FAILURE_H
#define SERVER_BATCH_FAILURE_H

struct err;
struct server;
struct server_mail;

/* The store cannot be written: there is no core from now on. */
void batch_failure_all(struct server *server, const struct err *err);

/* The store refuses something of the batch: each of its mails has a transaction of its own. */
void batch_failure_part(struct server *server, const struct err *why);

/* What has become due by itself is stepped and stored without any mail, on a core of the rows if
 * there is none: a job of which the store refuses that is left out (quarantine.h), and so is the
 * row of a node (unstored.h). 0: there is a core. Else there is none; ERR_INTERNAL: neither is to
 * blame. */
int batch_failure_due(struct server *server, struct err *err);

/* Ends this process, by SIGTERM, when the database is behind what was stored (store_is_behind), as
 * `err` says. */
void batch_failure_end(const struct server *server, const struct err *err);

/* A mail that comes while there is no core: a request is refused, a fact kept. */
void batch_failure_mail(struct server *server, struct server_mail *mail);

#endif
