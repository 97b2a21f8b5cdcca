/* userns.h — user namespaces, and mounts that show files with other ids.
 *
 * Edge. A namespace is made without a process that stays: it lives as long as its descriptor, what
 * is mounted by it, or what runs in it. Needs root.
 */
#ifndef SYS_USERNS_H
#define SYS_USERNS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum { USERNS_EXTENTS_MAX = 8 };

struct userns_extent { /* inside … inside + count - 1 are outside … outside + count - 1 */
    uint32_t inside, outside, count;
};

struct userns_map {
    struct userns_extent extents[USERNS_EXTENTS_MAX];
    size_t count;
};

/* A user namespace with these ids of users and of groups; a descriptor. What the kernel counts by
 * user (inotify instances, pending signals, message queues, …) is counted for who is inside, and
 * once more, with all others of the namespace, for its `owner`, an id of ours; who has that id may
 * do everything inside. ERR_UNSUPPORTED: the kernel has none, or no more of them
 * (user.max_user_namespaces); ERR_IO. */
int userns_make(const struct userns_map *users, const struct userns_map *groups, uint32_t owner,
                struct err *err);

/* A mount of `path`, with `is_recursive` of what is mounted below it as well, that is nowhere yet:
 * a file of id `inside` of the namespace is seen as `outside`. A descriptor for move_mount.
 * ERR_UNSUPPORTED: the kernel, or this file system, cannot; ERR_IO. */
int userns_mount(const char *path, int userns_fd, bool is_recursive, struct err *err);

#endif
