/* submit_key.h — a submission that is sent again, because its answer was lost, is not a second job.
 *
 * Private to server: the core thread's. The client sends an idempotency key with it. The key is
 * stored in the transaction that stores the job, and kept for a day (upkeep.c), whatever becomes of
 * the job. A submission that was refused leaves no key.
 */
#ifndef SERVER_SUBMIT_KEY_H
#define SERVER_SUBMIT_KEY_H
#include <stdbool.h>

struct core_thread;
struct server;
struct server_mail;

/* Is this submission to be carried out? False: the one that had its key before is stored, and the
 * mail has got the same answer, or it is in this batch, and the mail will get it after the commit;
 * or that was another job file, and the mail has been refused. */
bool submit_key_pass(struct server *server, struct server_mail *mail);
/* After the core's step, which has taken it: the key goes with the job. */
void submit_key_keep(struct core_thread *core, struct server_mail *mail);

#endif
