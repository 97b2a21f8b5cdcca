/* use.h — what was used over time, as a table with a small curve of each kind.
 */
#ifndef CLI_USE_H
#define CLI_USE_H
#include "base/buf.h"
#include <jansson.h>
#include <stdbool.h>

/* The server's reply to GET /api/v2/jobs/JOB/use or /api/v2/nodes/NODE/use. `has_blocks`: the
 * terminal can show U+2581 … U+2588; else digits 0 … 9 stand for them. */
void use_print(struct buf *out, const json_t *reply, bool has_blocks, bool has_colours);

#endif
