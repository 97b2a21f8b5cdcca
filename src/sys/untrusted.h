/* untrusted.h — files whose names a task or an image controls.
 *
 * Edge. What stands at such a name may be a link to anywhere, a FIFO that never answers, or a
 * device node whose mere opening does something. So it is first found without being opened
 * (O_PATH), looked at, and opened only when it is a plain file. Needs Linux 5.6 (openat2) and
 * /proc.
 */
#ifndef SYS_UNTRUSTED_H
#define SYS_UNTRUSTED_H
#include "base/text.h"
#include <stddef.h>
#include <sys/types.h>

struct buf;
struct err;
struct stat;

enum untrusted_links {
    UNTRUSTED_NO_LINKS, /* no link at all, and nothing outside the folder */
    UNTRUSTED_IN_ROOT,  /* links are followed as if the folder were the root */
};

/* Open the plain file `path` below `folder` for reading; `stat` gets what it is. Returns the
 * descriptor. ERR_NOT_FOUND: there is nothing, or a link where none may be; ERR_INVALID: it is not
 * a plain file. The error names `path`. */
int untrusted_open(int folder, const char *path, enum untrusted_links links, struct stat *stat,
                   struct err *err);

/* Open for reading what an O_PATH descriptor stands for, once it is known to be a plain file; -1
 * and errno. */
int untrusted_reopen(int found);

/* Append the file to `out`. As untrusted_open; ERR_TOO_BIG beyond `limit` bytes. After an error
 * `out` is as it was. */
int untrusted_read(const char *directory, const char *path, enum untrusted_links links,
                   size_t limit, struct buf *out, struct err *err);

/* Replace the file `name` in `directory`, whole, without following or opening what is there. It has
 * this mode whatever the umask, as who reads it may be another user.
 * Not synced. `directory` itself is ours: only what is in it is not trusted. */
int untrusted_put(const char *directory, const char *name, struct text content, mode_t mode,
                  struct err *err);

#endif
