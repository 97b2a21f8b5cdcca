/* admission.h — what is refused before the core sees it: a name that only the store knows to be
 * taken, a job that has been deleted, what would fill a disk that is nearly full, what is more than
 * the quotas of a job's owner.
 *
 * Private to server: the core thread's.
 */
#ifndef SERVER_ADMISSION_H
#define SERVER_ADMISSION_H
#include <stdbool.h>

struct server;
struct server_mail;
struct store_change;

/* May the core step through this event? It gets what it needs of the store's rows (a job that is
 * started again: its plan and record). False: the mail has been answered, or (submit_key.h) will be
 * with the one that it repeats. */
bool admission_pass(struct server *server, struct server_mail *mail);
/* Is it refused while the disk is nearly full? All changes are but those that remove something,
 * what has happened already, and logins, without which nobody could remove anything; a login may
 * find the user changed. */
bool change_grows(const struct store_change *change);
/* Of a submission alone: its name. */
bool admission_submit(struct server *server, struct server_mail *mail);

#endif
