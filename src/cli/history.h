/* history.h — what the server keeps of a job beside its current state.
 *
 * Both return 0 or an exit code after a message; `job` as the user named it.
 */
#ifndef CLI_HISTORY_H
#define CLI_HISTORY_H
#include "cli/client.h"
#include <jansson.h>
#include <stdbool.h>

/* All attempts of the job, newest first, each with its tasks and all of their attempts, into the
 * detail's `attempts`. `is_table`: of a task that ended well at its first try the task alone. */
int history_attempts(struct client *client, const char *job, bool is_table, json_t *detail);

/* The job's whole story, oldest first, into the detail's `events`. */
int history_events(struct client *client, const char *job, json_t *detail);

#endif
