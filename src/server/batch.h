/* batch.h — the end of the core thread's round: one commit of all that came of its mails, then the
 * commands and the answers.
 *
 * Private to server: the core thread's. What becomes of a batch that cannot be stored stands in
 * batch_failure.h.
 */
#ifndef SERVER_BATCH_H
#define SERVER_BATCH_H
#include <stdbool.h>

struct core_thread;
struct err;
struct output;
struct server;

/* Nothing has come yet. The mails of the batch before must have found another owner. */
void batch_begin(struct core_thread *core);

/* Make events, records and changes durable, in one transaction. ERR_INTERNAL: the store refuses
 * something of it, now and later; other codes: it cannot be written now. */
int batch_commit(struct server *server, struct err *err);

/* What follows a commit: commands, answers, and whoever watches is woken; frees the mails. Those
 * that ask for a snapshot wait for it (snapshot.h), and dry runs go to their thread (trial.h). */
void batch_carry_out(struct server *server);

/* Of these, the commands alone. */
void batch_commands(struct server *server);

/* Wake who watches, if the store has news, or records that are none: stories. */
void batch_tell(struct server *server);

#endif
