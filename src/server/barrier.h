/* barrier.h — which tasks of a job attempt have come, and the requests of those who wait for the
 * others (docs/rfc/0009).
 *
 * The core thread's alone, so that a report and the end of a task have one order. A table holds
 * what can be lost: after a restart, or when the store has failed, the tasks ask again. That a
 * barrier has been passed is durable before anybody is told.
 */
#ifndef SERVER_BARRIER_H
#define SERVER_BARRIER_H
#include "api/service.h"
#include "core/output.h"
#include <stddef.h>
#include <stdint.h>

struct barrier_table;
struct store;
struct store_reader;

/* Requests held at once; those beyond are noted and answered ERR_BUSY, to be asked again. Half of
 * the connections that the API has. */
enum { BARRIER_HELD_MAX = 2048, BARRIER_TOKEN_SIZE = 65 };

/* An empty table; borrows both, which must outlive it. */
struct barrier_table *barrier_table_new(struct store *store, struct store_reader *reader);
void barrier_table_free(struct barrier_table *table); /* answers who still waits */

/* Records that are durable. */
void barrier_take(struct barrier_table *table, const struct record *records, size_t count);

/* A task has come. `reply` is called at once when it does not wait, has nothing to wait for or
 * cannot; else when the last task comes, or one is known not to come (ERR_CONFLICT). A newer report
 * of the same try takes the place of an older one, which gets ERR_UNAVAILABLE. */
void barrier_report(struct barrier_table *table, const struct service_barrier *report,
                    struct service_reply reply);

/* Answer everybody ERR_UNAVAILABLE and know nothing any more. */
void barrier_clear(struct barrier_table *table, const char *why);

/* Requests held now; any thread. */
uint64_t barrier_held_count(const struct barrier_table *table);

/* The password of one try, 64 hexadecimal digits: the same whenever it is made. */
void barrier_token(const uint8_t *master_key, struct attempt_id attempt,
                   char token[BARRIER_TOKEN_SIZE]);
/* In a time that does not tell how much of it is right. */
bool barrier_token_is(const uint8_t *master_key, struct attempt_id attempt, struct text token);

#endif
