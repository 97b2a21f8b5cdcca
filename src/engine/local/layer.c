#include "engine/local/layer.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/ids.h"
#include <assert.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { FD_PATH_MAX = 40, STOP_ENTRIES = 64 };

/* trusted.overlay.*: what an overlay notes on the files of its layers (Linux,
 * filesystems/overlayfs.rst). In a layer of ours this one stands alone: a file's data are those of
 * the file of the same path in the folders below. */
static const char overlay_attributes[] = "trusted.overlay.";
static const char metacopy[] = "trusted.overlay.metacopy";

/* A folder as it is in the image, and in the layer. */
struct folder_pair {
    int image, layer;
};

struct walk {
    const struct layer_order *order;
    int links; /* a folder with one name of each file that has several, by its inode's number */
    uint64_t entries;
    char *names, *value; /* XATTR_LIST_MAX, XATTR_SIZE_MAX: of one file's attributes */
};

static uint32_t id_given(const struct layer_order *order, uint32_t id)
{
    return id < ID_RANGE_IDS ? order->first + id : order->nobody;
}

/* --- attributes that name ids, or are lost with a change of the owner --- */

bool layer_list_map(const struct layer_order *order, unsigned char *list, size_t size)
{
    struct posix_acl_xattr_header header;
    struct posix_acl_xattr_entry entry;
    if (size < sizeof header || (size - sizeof header) % sizeof entry != 0)
        return false;
    memcpy(&header, list, sizeof header);
    if (le32toh(header.a_version) != POSIX_ACL_XATTR_VERSION)
        return false;
    for (size_t at = sizeof header; at < size; at += sizeof entry) {
        memcpy(&entry, list + at, sizeof entry);
        const uint16_t tag = le16toh(entry.e_tag);
        if (tag != ACL_USER && tag != ACL_GROUP)
            continue;
        entry.e_id = htole32(id_given(order, le32toh(entry.e_id)));
        memcpy(list + at, &entry, sizeof entry);
    }
    return true;
}

static void path_of(int folder, const char *name, char path[FD_PATH_MAX + NAME_MAX])
{
    snprintf(path, FD_PATH_MAX + NAME_MAX, "/proc/self/fd/%d/%s", folder, name);
}

/* What the layer's file system does not know is left out. */
static int attribute_put(struct walk *walk, const char *from, const char *to, const char *attribute,
                         struct err *err)
{
    const ssize_t size = lgetxattr(from, attribute, walk->value, XATTR_SIZE_MAX);
    if (size < 0)
        return err_errno(err, errno, "read an attribute of a file");
    if ((strcmp(attribute, XATTR_NAME_POSIX_ACL_ACCESS) == 0 ||
         strcmp(attribute, XATTR_NAME_POSIX_ACL_DEFAULT) == 0) &&
        !layer_list_map(walk->order, (unsigned char *)walk->value, (size_t)size))
        return err_fail(err, ERR_UNSUPPORTED, "", "an access list is of an unknown kind");
    if (lsetxattr(to, attribute, walk->value, (size_t)size, 0) < 0 && errno != ENOTSUP)
        return err_errno(err, errno, "give a file its attribute");
    return 0;
}

static int attributes_put(struct walk *walk, const struct folder_pair *at, const char *name,
                          struct err *err)
{
    char from[FD_PATH_MAX + NAME_MAX], to[FD_PATH_MAX + NAME_MAX];
    path_of(at->image, name, from);
    path_of(at->layer, name, to);
    const ssize_t size = llistxattr(from, walk->names, XATTR_LIST_MAX);
    if (size < 0)
        return errno == ENOTSUP ? 0 : err_errno(err, errno, "list the attributes of a file");
    int code = 0;
    for (const char *one = walk->names; one < walk->names + size && code == 0;
         one += strlen(one) + 1)
        if (strncmp(one, overlay_attributes, sizeof overlay_attributes - 1) != 0)
            code = attribute_put(walk, from, to, one, err);
    return code;
}

/* --- files and folders --- */

/* errno on failure: all of these. */
static bool file_make(int folder, const char *name, const struct stat *as)
{
    cleanup_close int fd =
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 && (as->st_size == 0 ||
                       (fsetxattr(fd, metacopy, "", 0, 0) == 0 && ftruncate(fd, as->st_size) == 0));
}

static bool link_make(const struct folder_pair *at, const char *name)
{
    char target[PATH_MAX];
    const ssize_t length = readlinkat(at->image, name, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    return symlinkat(target, at->layer, name) == 0;
}

static bool node_make(const struct folder_pair *at, const char *name, const struct stat *as)
{
    if (S_ISREG(as->st_mode))
        return file_make(at->layer, name, as);
    if (S_ISDIR(as->st_mode))
        return mkdirat(at->layer, name, 0700) == 0;
    if (S_ISLNK(as->st_mode))
        return link_make(at, name);
    return mknodat(at->layer, name, (as->st_mode & S_IFMT) | 0600, as->st_rdev) == 0;
}

/* The kernel takes set-user-id bits and capabilities from a file that gets another owner: they come
 * after it. */
static int entry_make(struct walk *walk, const struct folder_pair *at, const char *name,
                      const struct stat *as, struct err *err)
{
    const struct layer_order *order = walk->order;
    if (!node_make(at, name, as) || fchownat(at->layer, name, id_given(order, as->st_uid),
                                             id_given(order, as->st_gid), AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(err, errno, "make a file of a metadata layer");
    walk->entries++;
    if (S_ISLNK(as->st_mode))
        return 0;
    if (fchmodat(at->layer, name, as->st_mode & 07777, 0) < 0)
        return err_errno(err, errno, "chmod a file of a metadata layer");
    return attributes_put(walk, at, name, err);
}

/* 1: it is a name more of a file that was made. */
static int name_make(struct walk *walk, const struct folder_pair *at, const char *name,
                     const char *number, struct err *err)
{
    if (linkat(walk->links, number, at->layer, name, 0) == 0) {
        walk->entries++;
        return 1;
    }
    return errno == ENOENT ? 0 : err_errno(err, errno, "link a file of a metadata layer");
}

static int times_put(const struct folder_pair *at, const char *name, const struct stat *as,
                     struct err *err)
{
    const struct timespec times[] = {as->st_atim, as->st_mtim};
    if (utimensat(at->layer, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(err, errno, "set the time of a file of a metadata layer");
    return 0;
}

static int folder_copy(struct walk *walk, const struct folder_pair *at, unsigned depth,
                       struct err *err);

static int below_copy(struct walk *walk, const struct folder_pair *at, const char *name,
                      unsigned depth, struct err *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (depth == 0)
        return err_fail(err, ERR_TOO_BIG, "", "folders of the image are nested more than %d deep",
                        LAYER_DEPTH_MAX);
    cleanup_close int image = openat(at->image, name, flags);
    cleanup_close int layer = openat(at->layer, name, flags);
    if (image < 0 || layer < 0)
        return err_errno(err, errno, "open a folder of the image");
    const struct folder_pair below = {image, layer};
    return folder_copy(walk, &below, depth - 1, err);
}

static int file_copy(struct walk *walk, const struct folder_pair *at, const char *name,
                     const struct stat *as, struct err *err)
{
    char number[24];
    const bool has_names = !S_ISDIR(as->st_mode) && as->st_nlink > 1;
    snprintf(number, sizeof number, "%llu", (unsigned long long)as->st_ino);
    int code = has_names ? name_make(walk, at, name, number, err) : 0;
    if (code != 0)
        return code < 0 ? code : 0;
    code = entry_make(walk, at, name, as, err);
    if (code == 0 && has_names && linkat(at->layer, name, walk->links, number, 0) < 0)
        code = err_errno(err, errno, "link a file of a metadata layer");
    return code == 0 ? times_put(at, name, as, err) : code;
}

/* What is there already is of a folder that comes before this one. */
static int entry_copy(struct walk *walk, const struct folder_pair *at, const char *name,
                      unsigned depth, struct err *err)
{
    struct stat as, there;
    if (fstatat(at->image, name, &as, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(err, errno, "stat a file of the image");
    const bool is_there = fstatat(at->layer, name, &there, AT_SYMLINK_NOFOLLOW) == 0;
    if (!S_ISDIR(as.st_mode))
        return is_there ? 0 : file_copy(walk, at, name, &as, err);
    if (is_there && !S_ISDIR(there.st_mode))
        return 0;
    int code = is_there ? 0 : entry_make(walk, at, name, &as, err);
    if (code == 0)
        code = below_copy(walk, at, name, depth, err);
    return code == 0 ? times_put(at, name, is_there ? &there : &as, err) : code;
}

static int folder_copy(struct walk *walk, const struct folder_pair *at, unsigned depth,
                       struct err *err)
{
    const struct layer_order *order = walk->order;
    const int fd = openat(at->image, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        const int failure = errno;
        if (fd >= 0)
            close(fd);
        return err_errno(err, failure, "read a folder of the image");
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            return errno ? err_errno(err, errno, "read a folder of the image") : 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (walk->entries % STOP_ENTRIES == 0 && order->is_stopping &&
            order->is_stopping(order->context))
            return err_fail(err, ERR_BUSY, "", "the engine is stopping");
        const int code = entry_copy(walk, at, entry->d_name, depth, err);
        if (code < 0)
            return code;
    }
}

/* --- a layer --- */

static int folder_open(const char *path, struct err *err)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_errno(err, errno, "open %s", path) : fd;
}

/* What the top folder is does not show: a task's own layer has one. */
static int part_make(const struct layer_order *order, const char *name, struct err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", order->folder, name);
    if (mkdir(path, 0755) < 0 || chmod(path, 0755) < 0 ||
        chown(path, order->first, order->first) < 0)
        return err_errno(err, errno, "make %s", path);
    return folder_open(path, err);
}

/* Without what is mounted below it: an overlay does not show that either. */
static int lower_open(const char *path, struct err *err)
{
    const int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return fd < 0 ? err_errno(err, errno, "open %s without what is mounted below it", path) : fd;
}

static int lower_copy(struct walk *walk, const char *path, int layer, struct err *err)
{
    cleanup_close int image = lower_open(path, err);
    const struct folder_pair top = {image, layer};
    return image < 0 ? image : folder_copy(walk, &top, LAYER_DEPTH_MAX, err);
}

int layer_make(const struct layer_order *order, uint64_t *entries, struct err *err)
{
    assert(order->lower[0] && order->first % ID_RANGE_IDS == 0);
    cleanup_close int layer = part_make(order, LAYER_UPPER, err);
    cleanup_close int links = layer < 0 ? layer : part_make(order, "links", err);
    if (links < 0)
        return links;
    cleanup_free char *names = mem_zero(1, XATTR_LIST_MAX), *value = mem_zero(1, XATTR_SIZE_MAX);
    struct walk walk = {.order = order, .links = links, .names = names, .value = value};
    int code = 0;
    for (size_t i = 0; i < LAYER_LOWER_MAX && order->lower[i] && code == 0; i++)
        code = lower_copy(&walk, order->lower[i], layer, err);
    *entries = walk.entries;
    return code;
}
