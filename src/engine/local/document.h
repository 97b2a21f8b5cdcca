/* document.h — small JSON documents of other programs: conmon, the runtime, registries.
 *
 * Pure. What is not there, or of another kind, reads as nothing. */
#ifndef ENGINE_LOCAL_DOCUMENT_H
#define ENGINE_LOCAL_DOCUMENT_H
#include "base/text.h"
#include "doc/doc.h"
#include <stdint.h>

struct arena;

/* NULL: not JSON (or, with is_yaml, not YAML). */
const struct doc *document_read(struct text text, bool is_yaml, struct arena *arena);

const char *document_string(const struct doc *doc, const char *key); /* "" */
int64_t document_int(const struct doc *doc, const char *key);        /* 0 */
bool document_bool(const struct doc *doc, const char *key);          /* false */
/* The value itself; 0 also where it does not fit. */
uint16_t document_u16(const struct doc *value);

/* Items of a list; 0 when it is none. */
size_t document_count(const struct doc *doc);

/* A list of strings as an array in the arena; items that are none are left out. */
const char *const *document_strings(const struct doc *doc, const char *key, struct arena *arena,
                                    size_t *count);

#endif
