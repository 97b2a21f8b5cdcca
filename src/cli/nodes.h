/* nodes.h — the table of `skep nodes`, from the server's reply.
 *
 * Pure, but for the time zone in which a time is shown.
 */
#ifndef CLI_NODES_H
#define CLI_NODES_H
#include "base/buf.h"
#include <jansson.h>
#include <stdbool.h>

/* Append the table of `data`, the reply's list of nodes. Wide: what their GPUs do as well. The
 * engine has a column when it is wide, or when the nodes are of more than one. */
void nodes_print(struct buf *out, const json_t *data, bool is_wide, bool has_colours);

#endif
