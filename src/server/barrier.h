/* barrier.h — the requests of tasks that wait for the others of their job attempt (docs/rfc/0009).
 *
 * Who has come and who is answered is decided by core/barriers.h; here the rows of the store are
 * read for it, and its answers are given. The core thread's alone, so that a report and the end of
 * a task have one order: in each round first the records, then the reports, then one commit with
 * what both give, then the answers.
 */
#ifndef SERVER_BARRIER_H
#define SERVER_BARRIER_H
#include "api/service.h"
#include "core/output.h"
#include "store/store.h"
#include <stddef.h>
#include <stdint.h>

struct barrier_table;
struct store_reader;

/* Requests held at once; those beyond are noted and answered ERR_BUSY, to be asked again. Half of
 * the connections that the API has. */
enum { BARRIER_HELD_MAX = 2048, BARRIER_TOKEN_SIZE = 65 };

/* An empty table; borrows the reader, which must outlive it. */
struct barrier_table *barrier_table_new(struct store_reader *reader);
void barrier_table_free(struct barrier_table *table); /* answers who still waits */

/* Records that are part of the next commit. */
void barrier_take(struct barrier_table *table, const struct record *records, size_t count);

/* A task has come; `output` has the records of this round, which the store does not have yet. After
 * the commit `reply` is called at once when it does not wait, has nothing to wait for or cannot;
 * else when the last task comes, or one is known not to come (ERR_CONFLICT). A newer report of the
 * same try takes the place of an older one, which gets ERR_UNAVAILABLE. */
void barrier_report(struct barrier_table *table, struct core *core,
                    const struct service_barrier *report, struct service_reply reply,
                    const struct output *output);

/* Barriers passed since the last answers, to be part of the commit: their number, and the changes.
 */
size_t barrier_change_count(const struct barrier_table *table);
void barrier_changes(const struct barrier_table *table, struct store_change *changes);

/* The commit has been made: give the answers. */
void barrier_answer(struct barrier_table *table);

/* It has failed, or the server ends: answer everybody ERR_UNAVAILABLE and know nothing any more. */
void barrier_clear(struct barrier_table *table, const char *why);

/* Requests held now; any thread. */
uint64_t barrier_held_count(const struct barrier_table *table);

/* The password of one try, 64 hexadecimal digits: the same whenever it is made. */
void barrier_token(const uint8_t *master_key, struct attempt_id attempt,
                   char token[BARRIER_TOKEN_SIZE]);
/* In a time that does not tell how much of it is right. */
bool barrier_token_is(const uint8_t *master_key, struct attempt_id attempt, struct text token);

#endif
