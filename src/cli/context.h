/* context.h — what the commands that change contexts share. */
#ifndef CLI_CONTEXT_H
#define CLI_CONTEXT_H
#include "cli/client.h"
#include "cli/command.h"
#include "cli/settings.h"

/* Revoke the token of a context, which has one, at its server. 0, or an exit code after a message.
 * The settings keep the token. */
int context_log_out(const struct context *context);

/* Show the certificate that the command line names, or else that of the context (NULL: none). */
void cli_identify(const struct cli *cli, struct client *client, const struct context *context);

#endif
