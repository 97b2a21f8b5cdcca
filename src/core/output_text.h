/* output_text.h — an output as lines, for golden traces, replays and people who debug.
 *
 * Pure. One line for each trace line, record, command and answer, in order; equal outputs give
 * equal text. Times are given relative to `origin_ms`.
 */
#ifndef CORE_OUTPUT_TEXT_H
#define CORE_OUTPUT_TEXT_H
#include <stdint.h>

struct buf;
struct output;

/* Append; every line ends with a newline. */
void output_write(const struct output *output, int64_t origin_ms, struct buf *out);

#endif
