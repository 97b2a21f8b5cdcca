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
    struct spec_pair *secrets; /* in `scratch` */
    size_t secret_count;
    size_t rendered_bytes;
    struct prerequisite *prerequisites; /* v2.c */
    size_t prerequisite_count;
};

/* Fill reader->spec from reader->root; every problem is in reader->problems. */
void spec_v1_read(struct spec_reader *reader);
void spec_v2_read(struct spec_reader *reader);
void spec_v2_extras_read(struct spec_reader *reader); /* after the roles */

/* extras that both formats have: notifications, time limit, debug, hang */
void spec_extensions_read(struct spec_reader *reader, const struct doc *extras);

/* Flatten the secrets block; complains about anchors and aliases in it. */
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

/* Totals over all roles, role names that become one. */
void reader_roles_finish(struct spec_reader *reader, const struct doc *roles);

/* template.c: `<% $parameters.a.b[0] %>` and its kind */

struct template_scope {
    const struct doc *parameters, *script, *output, *data; /* NULL: nothing of the kind */
    const struct spec_pair *secrets;                       /* only their names are used */
    size_t secret_count;
    size_t secret_bytes; /* what the secrets will add, counted up */
    bool is_json;        /* values are escaped as inside a JSON string */
    struct problems *problems;
    struct place place;
    const char *path;
};

/* Append `source` to `out`, references replaced but for secrets and what is unknown (a warning).
 * ERR_TOO_BIG when `out`, with the secrets rendered, grows beyond `length_max`. */
int template_render(struct template_scope *scope, struct text source, size_t length_max,
                    struct buf *out);

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
