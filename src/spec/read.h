/* read.h — a checked tree becomes a spec: what the readers of both formats share.
 *
 * Private to spec. The shapes have been checked before; the readers add the rules between fields,
 * and must take any tree, because they go on after errors to report all of them.
 */
#ifndef SPEC_READ_H
#define SPEC_READ_H
#include "base/arena.h"
#include "base/err.h"
#include "doc/doc.h"
#include "spec/spec.h"

struct spec_reader {
    struct spec *spec;
    struct arena *arena;   /* the spec's */
    struct arena *scratch; /* the caller's */
    struct problems *problems;
    const struct doc *root;
    const struct doc *raw; /* the root as it was read; `root` may be a copy with values put in */
    bool is_json;          /* that is what it was read as, with comments; else YAML */
    const struct spec_kept *kept; /* NULL: masks stand for nothing */
    bool has_all_kept;            /* the mask of the whole block stands for all of them */
    struct spec_pair *secrets;    /* in `scratch` */
    size_t secret_count;
    size_t rendered_bytes;
    struct prerequisite *prerequisites; /* v2.c */
    size_t prerequisite_count;
};

/* Read `source` into reader->spec; `scratch` and `problems` are set. 0, or ERR_INVALID with a NULL
 * spec. */
int spec_read(struct text source, struct spec_reader *reader);

/* Fill reader->spec from reader->root; every problem is in reader->problems. */
void spec_v1_read(struct spec_reader *reader);
void spec_v2_read(struct spec_reader *reader);
void spec_market_read(struct spec_reader *reader);
void spec_v2_extras_read(struct spec_reader *reader); /* after the roles */

/* extras that both formats have: notifications, time limit, debug, hang */
void spec_extensions_read(struct spec_reader *reader, const struct doc *extras);

/* When the whole block is masked and there are kept secrets, `root` becomes a copy whose block is
 * an empty map, and all of them are the file's. Before the shape is checked. */
void spec_secrets_unmask(struct spec_reader *reader);

/* Flatten the secrets block; complains about anchors and aliases in it, and about masks that stand
 * for nothing. */
void spec_secrets_read(struct spec_reader *reader);

/* Append the source to `out` with the value of the top-level `secrets` masked. */
void spec_mask(struct text source, const struct doc *root, struct buf *out);

/* A problem at PATH, PATH being a format. */
struct problem *reader_problem(struct spec_reader *reader, const struct doc *doc, const char *text,
                               const char *path_format, ...) __attribute__((format(printf, 4, 5)));
struct problem *reader_warning(struct spec_reader *reader, const struct doc *doc, const char *text,
                               const char *path_format, ...) __attribute__((format(printf, 4, 5)));

/* A NUL-terminated copy in the spec's arena. */
const char *reader_copy(struct spec_reader *reader, struct text text);

/* Room for one more item of an array in the spec's arena; the array moves as it grows. */
void *reader_grow(struct spec_reader *reader, void *items, size_t count, size_t item_size);
#define READER_ADD(reader, items, count)                                                           \
    ((items) = reader_grow((reader), (items), (count), sizeof *(items)), &(items)[(count)++])

/* The role of that name, or NULL. */
struct spec_role *reader_role(struct spec_reader *reader, struct text name);

/* "names no role", with the nearest; `doc` is where, PATH a format. */
void role_unknown(struct spec_reader *reader, const struct doc *doc, struct text name,
                  bool is_warning, const char *path_format, ...)
    __attribute__((format(printf, 5, 6)));

/* Add the ports `ssh` and `http` where they lack and check the total; `doc` is where to complain.
 */
void reader_ports_finish(struct spec_reader *reader, struct spec_role *role, const struct doc *doc,
                         const char *path);

/* v1.c: what the role of format 1 and the task of the marketplace's format share */

/* A number of the map, `fallback` when it has none or one that the shape has complained of. */
uint32_t early_number(const struct doc *doc, const char *key, uint32_t fallback, int64_t most);
/* `path` is that of the name, of the role, of the list. */
void early_role_name_read(struct spec_reader *reader, struct spec_role *role,
                          const struct doc *name, const char *path);
void early_completion_read(struct spec_reader *reader, struct spec_role *role,
                           const struct doc *doc, const char *path);
void early_ports_read(struct spec_reader *reader, struct spec_role *role, const struct doc *list,
                      const char *path);
/* The type of GPU for roles that have one, and ssh as every early job had it. */
void early_role_defaults(struct spec_reader *reader, struct spec_role *role);

/* market.c: `$$a.b$$` of the marketplace's format */

struct market_reference {
    size_t begin, end; /* of the whole `$$…$$` */
    struct text name;  /* "a.b" */
};
bool market_reference_next(struct text source, size_t from, struct market_reference *found);
/* What the dotted name means in a map, when it can be put into a text; else NULL. */
const struct doc *market_value(const struct doc *from, struct text name);
/* What a reference means to the task itself (NULL: outside tasks), or NULL. */
const struct doc *market_of_task(const struct doc *task, struct text name);
/* A copy of the tree in which every reference that names something has been replaced; the
 * prerequisites and parameters are left alone. */
const struct doc *market_expand(struct spec_reader *reader, const struct doc *root);
/* The prerequisite of this type and name, or NULL. */
const struct doc *market_prerequisite(const struct doc *root, const char *type, struct text name);

/* What a task of that format runs, line by line: what its data and its script need, its own
 * command, what its output needs. `doc` is where a line, or what asks for it, stands in the file;
 * NULL: nowhere. `command` is the task's own, as it stands in the file or with its parameters put
 * in.
 */
struct market_line {
    struct text text;
    const struct doc *doc;
    bool is_own; /* of the task's own command */
};
struct market_lines {
    struct arena *arena; /* holds the texts */
    struct market_line *items;
    size_t count, room;
};
void market_lines_read(struct market_lines *lines, const struct doc *root, const struct doc *task,
                       const struct doc *command);
void market_lines_release(struct market_lines *lines);
#define cleanup_market_lines __attribute__((cleanup(market_lines_release)))

/* Totals over all roles, role names that become one. */
void reader_roles_finish(struct spec_reader *reader, const struct doc *roles);

/* template.c: `<% $parameters.a.b[0] %>` and its kind */

struct template_scope {
    const struct doc *parameters, *script, *output, *data; /* NULL: nothing of the kind */
    const struct spec_pair *secrets;                       /* only their names are used */
    size_t secret_count;
    const char *secrets_of; /* the job that all of them are kept of: no other one can be meant.
                               NULL: they stand in the file */
    size_t secret_bytes;    /* what the secrets will add, counted up */
    bool is_json;           /* values are escaped as inside a JSON string */
    struct problems *problems;
    struct place place;
    const char *path;
};

/* Append `source` to `out`, references replaced but for secrets and what is unknown (a warning).
 * ERR_TOO_BIG when `out`, with the secrets rendered, grows beyond `length_max`. */
int template_render(struct template_scope *scope, struct text source, size_t length_max,
                    struct buf *out);

/* Say of each `<% $secrets.x %>` that names none. */
void template_secrets_check(struct template_scope *scope, struct text source);

/* plugins.c */

/* The plugin that prerequisite `item` asks for, for one role. */
void plugin_of_prerequisite(struct spec_reader *reader, const struct doc *item, size_t index,
                            const char *role, struct template_scope scope);
/* The list in extras; also says which roles have ssh and converts the old storage plugin. */
void plugins_read(struct spec_reader *reader, const struct doc *extras);

/* One storage, "" mount path: the default. Checks that neither leaves its directory, and the limit.
 */
void storage_add(struct spec_reader *reader, const struct doc *doc, const char *path,
                 struct text name, struct text mount_path);

#endif
