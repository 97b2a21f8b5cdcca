/* trial.h — dry runs: what would become of a submission, answered by a thread of its own.
 *
 * The core thread hands a dry run over once everybody else of its round has an answer, and has no
 * part in it from then on: the thread makes a core of the store's rows (rows_core.h), lets what is
 * under way there come to its end, and gives it the submission (core/trial.h).
 */
#ifndef SERVER_TRIAL_H
#define SERVER_TRIAL_H

struct err;
struct server;
struct server_mail;
struct trials;

enum { TRIALS_WAITING = 8 }; /* beside the one under way; more are refused with ERR_BUSY */

int trials_new(struct server *server, struct trials **trials, struct err *err);
/* The one under way ends soon; it and those that wait are answered ERR_UNAVAILABLE. */
void trials_stop(struct trials *trials);
void trials_free(struct trials *trials); /* NULL is fine */

/* The core thread's: the mail is of MAIL_TRIAL, and is answered and freed from here on. */
void trials_take(struct trials *trials, struct server_mail *mail);

#endif
