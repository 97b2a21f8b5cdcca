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
 * levels and DOC_NODES_MAX nodes, both counted after alias expansion, DOC_ANCHORS_MAX anchors,
 * DOC_KEY_MAX bytes of a key.
 */
#ifndef DOC_DOC_H
#define DOC_DOC_H
#include "base/text.h"
#include "doc/problem.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;

enum {
    DOC_BYTES_MAX = 4 << 20,
    DOC_DEPTH_MAX = 60,
    DOC_NODES_MAX = 200000,
    DOC_ANCHORS_MAX = 1000,
    DOC_KEY_MAX = 4096,
};

enum doc_kind { DOC_NULL, DOC_BOOL, DOC_INT, DOC_REAL, DOC_STRING, DOC_LIST, DOC_MAP };
enum doc_format { DOC_YAML, DOC_JSON, DOC_JSON_COMMENTS };

struct doc_entry;

struct doc {
    enum doc_kind kind;
    bool is_shared;     /* has an anchor, or takes keys from elsewhere by `<<` */
    struct place place; /* first character of the value, its tag and anchor included */
    struct place end;   /* behind its last character; a block value may end on a later line */
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
            struct doc_entry *entries;       /* in the order of the text */
            const struct doc_entry **by_key; /* sorted, for doc_find; NULL when there are few */
            size_t count;
        } map;
    } as;
};

struct doc_entry {
    struct text key;
    struct place place; /* of the key */
    bool is_merged;     /* came by `<<` */
    const struct doc *value;
};

/* The tree, or NULL when the text is not a document; every problem is added to `problems`. An empty
 * text is a DOC_NULL. Of several YAML documents in one text only one is allowed. A tree may come
 * back together with errors (a duplicate key, an unknown tag): `problems->error_count` tells. */
const struct doc *doc_parse(struct text source, enum doc_format format, struct arena *arena,
                            struct problems *problems);

/* The value of a key, or NULL; also NULL when `doc` is not a map (or is NULL itself). */
const struct doc *doc_get(const struct doc *doc, const char *key);
const struct doc *doc_find(const struct doc *doc, struct text key);

/* The value of a key when it is of that kind, else `fallback` (also for a map that is not one). A
 * checker has complained before: these never do. doc_get_int converts strings of digits too. */
struct text doc_get_text(const struct doc *doc, const char *key, const char *fallback);
int64_t doc_get_int(const struct doc *doc, const char *key, int64_t fallback);
bool doc_get_bool(const struct doc *doc, const char *key, bool fallback);

/* The value of a key when it is of that kind, else NULL. */
const struct doc *doc_get_kind(const struct doc *doc, const char *key, enum doc_kind kind);

/* The list, or the map, under a key; an empty one when there is none of that kind. Never NULL. */
const struct doc *doc_get_list(const struct doc *doc, const char *key);
const struct doc *doc_get_map(const struct doc *doc, const char *key);

/* Number of items of a list or entries of a map; 0 for anything else, NULL included. */
size_t doc_count(const struct doc *doc);

/* Whether the value is an integer, or a number without a fraction that fits one (`2.0`, `1e3`). */
bool doc_to_int(const struct doc *doc, int64_t *value);

/* The same for the text of a string: `"2"`, `" 2 "`, `"2.0"`. */
bool doc_text_to_int(struct text text, int64_t *value);

/* Where a place is in the text that was parsed; the text's length when it is behind its end. */
size_t doc_offset(struct text source, struct place place);

/* Append the tree as JSON. ERR_TOO_BIG as soon as `out` would grow by more than `bytes_max`: a
 * small text with aliases can stand for a huge one. Numbers are written as they were when JSON
 * allows that. */
int doc_to_json(const struct doc *doc, size_t bytes_max, struct buf *out);

/* "null", "a boolean", "an integer", "a number", "a string", "a list", "a map". */
const char *doc_kind_name(enum doc_kind kind);

#endif
