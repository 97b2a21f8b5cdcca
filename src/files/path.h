/* path.h — a path below the folder of a storage, as a request names it.
 *
 * Pure. "a/b/c", without "/" at either end; "" is the folder itself. Names are opened one by one
 * (tree.h): what keeps a path inside its folder is the kernel, and not this reading. It refuses
 * what no file can be called, and names that cannot be shown to people.
 */
#ifndef FILES_PATH_H
#define FILES_PATH_H
#include "base/text.h"
#include <stddef.h>
#include <stdint.h>

struct err;

enum { FILES_PATH_MAX = 2048, FILES_NAME_MAX = 255, FILES_DEPTH_MAX = 64 };

struct files_path {
    char text[FILES_PATH_MAX + 1];   /* the names, each ended by a NUL byte */
    uint16_t names[FILES_DEPTH_MAX]; /* where each begins: a path can be copied */
    size_t count;                    /* 0: the folder itself */
};

static inline const char *files_path_name(const struct files_path *path, size_t index)
{
    return path->text + path->names[index];
}

/* ERR_INVALID: a name is empty, "." or "..", has a NUL byte or another control character, or is not
 * UTF-8; ERR_TOO_BIG: a limit. The error's path is `field`. */
int files_path_parse(struct text text, const char *field, struct files_path *path, struct err *err);

/* Under which name a file stands until it takes the place of another one, in the same folder. The
 * same for the same name, so that what a crash left is found again. */
enum { FILES_SPARE_SIZE = 32 };
void files_spare_name(const char *name, char spare[FILES_SPARE_SIZE]);

#endif
