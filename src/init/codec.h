/* codec.h — what the job file and the task file share: header, counted lists, NUL-terminated
 * copies.
 *
 * Pure; private to init.
 */
#ifndef INIT_CODEC_H
#define INIT_CODEC_H
#include "base/buf.h"

struct arena;
struct err;

/* Magic (8 bytes), version, and the length of what follows, filled in by codec_end. */
size_t codec_begin(struct buf *out, const char *magic, uint32_t version);
void codec_end(struct buf *out, size_t begin);

/* A cursor on the body, after checking magic, version and length. */
int codec_open(struct text bytes, const char *magic, uint32_t version, size_t bytes_max,
               struct cursor *cursor, struct err *err);

/* A copy in the arena; text with a NUL inside turns the cursor bad, as no C string can hold it. */
const char *codec_string(struct cursor *cursor, struct arena *arena);

/* A count at most `max`, each item of which takes at least `item_bytes`: what cannot be in the rest
 * of the file turns the cursor bad before anything is allocated. */
size_t codec_count(struct cursor *cursor, size_t max, size_t item_bytes);

void codec_put_string(struct buf *out, const char *string); /* NULL is written as "" */

#endif
