/* portal.h — the files of the web portal: those built into this program, or those of a folder.
 *
 * Edge. A path that names a page ("/", "/jobs/alice~train") gives index.html, which knows all
 * pages; "/plugin-frame.html" is the one in which a plugin runs; the rest ("/assets/NAME") gives
 * the file of that name. Built-in files carry what was made of them at build time: compressed
 * copies and an entity tag. Their names under /assets hold a hash of their content, so that a
 * browser may keep them for ever.
 */
#ifndef PORTAL_PORTAL_H
#define PORTAL_PORTAL_H
#include "base/text.h"
#include <stdbool.h>

struct arena;
struct err;

enum { PORTAL_FILE_MAX = 16 << 20 }; /* bytes of a file of a folder */

struct portal_file {
    const char *path;                /* "index.html", "assets/NAME" */
    const char *type;                /* for Content-Type */
    const char *etag;                /* weak, W/"…": one for all copies; NULL: none */
    struct text plain, gzip, brotli; /* .at == NULL: there is no such copy */
};

/* Was the portal built into this program? */
bool portal_is_built_in(void);

/* The built-in file of `path` ("/…", without a query). NULL: there is none. */
const struct portal_file *portal_find(struct text path);

/* The file of `path` in `folder`, read into `arena`; for development. ERR_NOT_FOUND (also for a
 * name that would lead out of the folder), ERR_TOO_BIG, ERR_IO. */
int portal_read(const char *folder, struct text path, struct arena *arena, struct portal_file *file,
                struct err *err);

#endif
