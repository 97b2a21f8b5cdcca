/* file.h — whole files and directories.
 *
 * Edge. Errors name the path.
 */
#ifndef SYS_FILE_H
#define SYS_FILE_H
#include "base/text.h"
#include <stddef.h>
#include <sys/types.h>

struct buf;
struct err;

/* Append the file to `out`. ERR_NOT_FOUND, ERR_TOO_BIG beyond `limit` bytes, ERR_IO. */
int file_read(const char *path, size_t limit, struct buf *out, struct err *err);

/* Replace the file so that after a crash it is the old or the new one, whole: written beside,
 * synced, renamed, the directory synced. */
int file_write(const char *path, struct text content, mode_t mode, struct err *err);

/* As file_write, but ERR_CONFLICT when the file exists; of several at once one wins. */
int file_create(const char *path, struct text content, mode_t mode, struct err *err);

/* After this the names in the directory survive a crash. */
int dir_sync(const char *path, struct err *err);

/* mkdir -p; `mode` for those made. */
int dir_make(const char *path, mode_t mode, struct err *err);

#endif
