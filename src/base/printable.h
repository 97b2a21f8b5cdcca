/* printable.h — makes of what programs write a text that is safe to show to people.
 *
 * Pure. Logs hold colours, progress bars, half characters and plain bytes; what is kept of them in
 * rows, stories and replies goes through here, so that each of those is valid UTF-8 and safe on a
 * terminal.
 */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H
#include "base/text.h"

struct buf;

/* Append `text` as a terminal would show it in the end: bytes that are no UTF-8 become U+FFFD;
 * escape sequences (ECMA-48) and control characters but newline and tab are left out; behind a
 * carriage return the line begins anew, as progress bars want it. At most three times as long. */
void printable_put(struct buf *out, struct text text);

/* Valid UTF-8 in one line, without control characters: safe to show as it is. */
bool printable_is_line(struct text text);

/* Only without escape sequences: for searches, which a colour in the middle must not hinder. */
void printable_strip(struct buf *out, struct text text);

/* The last `most` bytes of printable text: whole lines if there are any, whole characters always.
 */
struct text printable_tail(struct text text, size_t most);
/* The first `most` bytes, whole characters. */
struct text printable_head(struct text text, size_t most);

#endif
