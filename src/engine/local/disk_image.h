/* disk_image.h — a file system of a given size in a file, for one task.
 *
 * Edge. The file is sparse: it takes of the disk what was written. It is ext4 without a journal,
 * which nobody needs after a crash of the machine that ended the task as well, copied from an empty
 * one; a loop device is attached to it for as long as it is mounted. Needs Linux 5.8.
 */
#ifndef ENGINE_LOCAL_DISK_IMAGE_H
#define ENGINE_LOCAL_DISK_IMAGE_H
#include <stdint.h>

struct err;

enum { DISK_INODE_BYTES = 16 << 10 }; /* a file for so many bytes, as mke2fs does */

/* An empty one, by mke2fs. ERR_NOT_FOUND: it is not installed; ERR_UNAVAILABLE: what it said. */
int disk_image_format(const char *path, uint64_t bytes, struct err *err);

/* The file `path` as a copy of an empty one. ERR_IO. */
int disk_image_copy(const char *empty, const char *path, struct err *err);

/* Mount it, nowhere: the descriptor is the file system's root, and the mount lasts as long as that
 * or whatever else has it open. ERR_IO. */
int disk_image_mount(const char *path, struct err *err);

/* The same for one that may be mounted still, by a task that an earlier engine started. */
int disk_image_mount_again(const char *path, struct err *err);

/* Close the descriptor of a file system whose content nobody wants any more: what was not yet
 * written to the disk never is. */
void disk_image_drop(int fd);

#endif
