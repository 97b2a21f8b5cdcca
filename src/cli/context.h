/* context.h — what the commands that change contexts share. */
#ifndef CLI_CONTEXT_H
#define CLI_CONTEXT_H
#include "cli/settings.h"

/* Revoke the token of a context, which has one, at its server. 0, or an exit code after a message.
 * The settings keep the token. */
int context_log_out(const struct context *context);

#endif
