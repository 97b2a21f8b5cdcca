/* build.h — the tree under construction: what the YAML and the JSON reader share.
 *
 * Private to doc. The reader calls build_open/build_key/build_value/build_close in the order of the
 * text; the builder keeps the path for problems, counts nodes and levels, finds duplicate keys and
 * resolves merge keys.
 */
#ifndef DOC_BUILD_H
#define DOC_BUILD_H
#include "doc/doc.h"

enum { DOC_FEW_KEYS = 12 }; /* up to here a map is searched from its first entry */

struct build_frame {
    struct doc *node;    /* the list or map being filled */
    size_t first;        /* its first item in `pending` */
    struct text key;     /* of the value that comes next */
    struct place place;  /* of that key */
    bool has_key;        /* maps: a key has been read, its value has not */
    bool is_merge_key;   /* that key is a plain `<<` */
    bool has_merge;      /* some key of the map is a plain `<<` */
    size_t count_before; /* nodes when it was opened */
    unsigned height;     /* levels of its highest item so far */
};

struct build_item {
    struct doc_entry entry;
    bool is_merge;
};

struct builder {
    struct arena *arena;
    struct problems *problems;
    struct build_item *items; /* of all open collections */
    size_t count, room;
    struct build_frame frames[DOC_DEPTH_MAX];
    size_t depth;
    const struct doc *root;
    size_t node_count;  /* after alias expansion */
    unsigned height;    /* levels of the value added last; a scalar has none */
    size_t value_count; /* nodes of the value added last */
    bool is_stopped;    /* a limit was exceeded: nothing more is taken */
};

void build_init(struct builder *builder, struct arena *arena, struct problems *problems);
void build_release(struct builder *builder);

/* True when a map waits for a key. */
bool build_wants_key(const struct builder *builder);

struct doc *build_node(struct builder *builder, enum doc_kind kind, struct place place);
void build_key(struct builder *builder, struct text key, struct place place, bool is_merge_key);

/* Add a finished value: a scalar, or the target of an alias with its size. */
void build_value(struct builder *builder, const struct doc *value, size_t node_count,
                 unsigned height);
void build_open(struct builder *builder, struct doc *node);
void build_close(struct builder *builder);

/* By bytes; any order would do. */
int doc_key_compare(struct text a, struct text b);

/* A problem at the current path. */
struct problem *build_problem(struct builder *builder, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* scalar.c: resolve a plain scalar by YAML 1.2's core schema into kind and value. */
void scalar_resolve(struct doc *doc);
/* The same for one kind only; false when the text is not of that kind. */
bool scalar_is_null(struct text text);
bool scalar_to_bool(struct text text, bool *value);
bool scalar_to_int(struct text text, int64_t *value);
bool scalar_to_real(struct text text, double *value);

/* place.c: step over one character (a line break of YAML counts as one) at `at`. */
size_t place_step(struct text source, size_t at, struct place *place);

/* json.c */
const struct doc *json_parse(struct text source, bool has_comments, struct arena *arena,
                             struct problems *problems);

#endif
