/* log_search.h — the lines of all of a job's logs that match, found by the server. */
#ifndef CLI_LOG_SEARCH_H
#define CLI_LOG_SEARCH_H
#include "cli/command.h"

struct client;

/* By the options of `skep logs`: search, expression, ignore-case, context, role, index, attempt,
 * stream. EXIT_OK: there are such lines; EXIT_REFUSED: none, or a message. */
int logs_search(struct cli *cli, struct client *client);

#endif
