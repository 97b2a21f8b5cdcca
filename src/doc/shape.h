/* shape.h — what a document may hold, as one table: read once to check, once to write JSON Schema.
 *
 * Pure. A shape describes a map; the checker reports everything that does not fit it, with place,
 * path and a hint where a typo is likely. Rules between fields are not its business.
 */
#ifndef DOC_SHAPE_H
#define DOC_SHAPE_H
#include "doc/doc.h"

struct buf;
struct shape;

enum field_kind {
    FIELD_ANY,
    FIELD_STRING,       /* min … max: bytes */
    FIELD_LABEL,        /* a string or a number, kept as written */
    FIELD_INT,          /* min … max */
    FIELD_BOOL,         //
    FIELD_CHOICE,       /* one of `choices` */
    FIELD_STRINGS,      /* list of strings; min … max: items */
    FIELD_MAP,          /* `shape` */
    FIELD_MAP_LIST,     /* list of `shape`; min … max: items */
    FIELD_VARIANT_LIST, /* list of maps; the string under `tag` picks one of `variants` */
    FIELD_MAP_MAP,      /* names (of `pattern`) to `shape`; min … max: entries */
    FIELD_INT_MAP,      /* names (of `pattern`) to integers in min … max */
    FIELD_FREE_MAP,     /* any keys with any values */
};

enum field_flags {
    FIELD_REQUIRED = 1,
    FIELD_NULLABLE = 2,
    FIELD_CONVERTS = 4, /* FIELD_INT: "2" is taken for 2; FIELD_CHOICE: 2 for "2" */
    FIELD_OR_TEXT = 8,  /* FIELD_MAP: a string may stand there instead */
};

/* A set of names: one character of `first`, then any of `rest`; both as in a regular expression's
 * brackets. */
struct shape_pattern {
    const char *first, *rest;
    const char *says; /* "letters, digits and _" */
};

struct shape_variant {
    const char *tag;
    const struct shape *shape;
};

struct field {
    const char *name;
    enum field_kind kind;
    unsigned flags;
    int64_t min, max; /* both 0: no limit */
    const struct shape_pattern *pattern;
    const struct shape *shape;
    const char *const *choices; /* ends with NULL */
    const struct shape_variant *variants;
    size_t variant_count;
    const char *tag;
    const char *help; /* one sentence for editors */
};

enum shape_unknown {
    UNKNOWN_ERROR,
    UNKNOWN_WARN,
    UNKNOWN_FREE, /* a warning only for what looks like a typo */
};

struct shape {
    const struct field *fields;
    size_t count;
    enum shape_unknown unknown;
};

/* Check `doc` (which may be of any kind) and all below it; `path` is where it stands ("" at the
 * top). */
void shape_check(const struct shape *shape, const struct doc *doc, const char *path,
                 struct problems *problems);

/* The schema of the shape as a JSON object, by JSON Schema draft 7; `title` may be NULL. */
void shape_schema(const struct shape *shape, const char *title, struct buf *out);

bool shape_pattern_fits(const struct shape_pattern *pattern, struct text text);

/* "did you mean X?" for the nearest of `count` names, or no hint when none is near. */
struct near {
    struct text best;
    unsigned distance;
};
void near_offer(struct near *near, struct text wrong, struct text name);
void near_hint(const struct near *near, struct problems *problems, struct problem *problem);

#endif
