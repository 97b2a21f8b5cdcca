/* doc.h — a YAML or JSON document as one tree, every node with its place in the text.
 *
 * Pure. The only module that sees libyaml: job files, configuration, failure rules and request
 * bodies are all read through it. Scalars are resolved by YAML 1.2's core schema, with YAML 1.1's
 * merge key `<<`, because OpenPAI read its files with js-yaml. JSON is read by the same function
 * with DOC_JSON (strict) or DOC_JSON_COMMENTS (`//` and block comments, as early job files had).
 *
 * Everything lives in the arena given; nothing points into the source text. A document keeps its
 * order of keys. Duplicate keys are a problem, as in js-yaml.
 *
 * Limits (each is a problem when exceeded, and tested): DOC_BYTES_MAX of text, DOC_DEPTH_MAX
 * levels, DOC_NODES_MAX nodes counted after alias expansion.
 */
#ifndef DOC_DOC_H
#define DOC_DOC_H
#include "base/text.h"
#include "doc/problem.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum { DOC_BYTES_MAX = 4 << 20, DOC_DEPTH_MAX = 64, DOC_NODES_MAX = 200000 };

enum doc_kind { DOC_NULL, DOC_BOOL, DOC_INT, DOC_REAL, DOC_STRING, DOC_LIST, DOC_MAP };
enum doc_format { DOC_YAML, DOC_JSON, DOC_JSON_COMMENTS };

struct doc_entry;

struct doc {
    enum doc_kind kind;
    struct place place; /* first character of the value */
    struct text source; /* scalars: as written, before resolution (without quotes and escapes) */
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct text string; /* NUL-terminated as well; may contain NUL bytes only if escaped so */
        struct {
            const struct doc **items;
            size_t count;
        } list;
        struct {
            struct doc_entry *entries;
            size_t count;
        } map;
    } as;
};

struct doc_entry {
    struct text key;
    struct place place; /* of the key */
    const struct doc *value;
};

/* The tree, or NULL when the text is not a document; every problem is added to `problems`. An empty
 * text is a DOC_NULL. Of several YAML documents in one text only one is allowed. */
const struct doc *doc_parse(struct text source, enum doc_format format, struct arena *arena,
                            struct problems *problems);

/* The value of a key, or NULL; also NULL when `doc` is not a map (or is NULL itself). */
const struct doc *doc_get(const struct doc *doc, const char *key);

/* "null", "a boolean", "an integer", "a number", "a string", "a list", "a map". */
const char *doc_kind_name(enum doc_kind kind);

#endif
