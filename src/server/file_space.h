/* file_space.h — the files that jobs of format 1 name: a directory in place of early PAI's HDFS.
 *
 * A path in a job file means a place below that directory, however it is written: "/x/y", or the
 * space's URI followed by "/x/y". Nothing outside can be reached: not by "..", not by a link, not
 * by exchanging a folder while it is looked at. Every user's jobs may read and write all of it, as
 * in early PAI. Safe to use from any thread.
 */
#ifndef SERVER_FILE_SPACE_H
#define SERVER_FILE_SPACE_H
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct buf;
struct err;

struct file_space {
    char directory[PATH_MAX]; /* real path; the same in containers that mount it */
    char uri[PATH_MAX + 16];  /* "file://" and the directory */
    int fd;                   /* of the directory */
    bool has_openat2;         /* false (before Linux 5.6): links are not followed at all */
};

/* The directory is made when it does not exist. ERR_INVALID: a container could not have it mounted
 * at its own path (/, /proc, /usr, …). */
int file_space_init(struct file_space *space, const char *directory, struct err *err);
void file_space_release(struct file_space *space);

/* The path below the directory, without "." and double slashes; "" is the directory itself. `field`
 * is the job file's, for errors. ERR_INVALID: empty, or a part of it is ".."; ERR_UNSUPPORTED: a
 * URI that is not of this space; ERR_TOO_BIG: PATH_MAX. */
int file_space_path(const struct file_space *space, const char *field, const char *path,
                    struct arena *arena, const char **below, struct err *err);

/* What follows takes paths that file_space_path gave. ERR_NOT_FOUND; ERR_FORBIDDEN: a link leads
 * out; ERR_INVALID: not a folder, not a plain file; ERR_IO. */
int file_space_folder_check(const struct file_space *space, const char *field, const char *below,
                            struct err *err);
/* mkdir -p; everybody may write into the folders made, whichever user the image has. */
int file_space_folder_make(const struct file_space *space, const char *field, const char *below,
                           struct err *err);
/* Append a plain file. ERR_TOO_BIG beyond `limit` bytes. */
int file_space_read(const struct file_space *space, const char *field, const char *below,
                    size_t limit, struct buf *out, struct err *err);

#endif
