#include "engine/local/disk_image.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/process.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FORMAT_TIMEOUT_MS = 60000,
    ATTACH_TRIES = 64,  /* others take loop devices as well */
    LOOP_PATH_MAX = 64, /* /dev/loop17 */
};

/* Linux, fs/ext4: stop at once, without writing what is in memory. */
#define EXT4_SHUTDOWN         _IOR('X', 125, uint32_t)
#define EXT4_SHUTDOWN_NO_LOGS 2u

/* --- the file --- */

int disk_image_format(const char *path, uint64_t bytes, struct err *err)
{
    char inode_bytes[24];
    cleanup_buf struct buf complaint = BUF_INIT;
    snprintf(inode_bytes, sizeof inode_bytes, "%d", DISK_INODE_BYTES);
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        return err_errno(err, errno, "make %s", path);
    /* nothing is reserved for root, and tables of inodes are holes, which read as zeros */
    const char *argv[] = {"mke2fs",
                          "-q",
                          "-F",
                          "-t",
                          "ext4",
                          "-m",
                          "0",
                          "-O",
                          "^has_journal,^resize_inode",
                          "-E",
                          "lazy_itable_init=1,nodiscard,root_owner=0:0",
                          "-i",
                          inode_bytes,
                          path,
                          NULL};
    static const char *const env[] = {"PATH=/usr/sbin:/sbin:/usr/bin:/bin", NULL};
    const struct process process = {.argv = argv, .env = env, .in = -1, .out = -1, .err = -1};
    int exit_code = 0;
    int code = process_run(&process, FORMAT_TIMEOUT_MS, NULL, &complaint, &exit_code, err);
    if (code == 0 && exit_code != 0)
        code = err_fail(err, ERR_UNAVAILABLE, "", "mke2fs: %.*s",
                        TEXT_ARG(text_trim(buf_as_text(&complaint))));
    return code;
}

/* One row of bytes that are not a hole. */
static int part_copy(int from, int to, off_t begin, off_t end)
{
    off_t in = begin, out = begin;
    while (in < end) {
        ssize_t copied = copy_file_range(from, &in, to, &out, (size_t)(end - in), 0);
        if (copied < 0 && errno == EINTR)
            continue;
        if (copied <= 0) {
            errno = copied < 0 ? errno : EIO;
            return -1;
        }
    }
    return 0;
}

int disk_image_copy(const char *empty, const char *path, struct err *err)
{
    struct stat stat;
    cleanup_close int from = open(empty, O_RDONLY | O_CLOEXEC);
    if (from < 0 || fstat(from, &stat) < 0)
        return err_errno(err, errno, "open %s", empty);
    cleanup_close int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0 || ftruncate(to, stat.st_size) < 0)
        return err_errno(err, errno, "make %s", path);
    for (off_t at = 0; at < stat.st_size;) {
        const off_t begin = lseek(from, at, SEEK_DATA);
        if (begin < 0 && errno == ENXIO)
            break; /* the rest is a hole */
        at = begin < 0 ? -1 : lseek(from, begin, SEEK_HOLE);
        if (at < 0 || part_copy(from, to, begin, at) < 0)
            return err_errno(err, errno, "copy %s", path);
    }
    return 0;
}

/* --- loop devices --- */

/* The device that is attached to the file already; -1: none. */
static int loop_find(const char *path, char device[LOOP_PATH_MAX])
{
    cleanup_dir DIR *dir = opendir("/sys/block");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char file[128];
        cleanup_buf struct buf text = BUF_INIT;
        if (strncmp(entry->d_name, "loop", 4) != 0 || strlen(entry->d_name) > 16)
            continue;
        snprintf(file, sizeof file, "/sys/block/%.16s/loop/backing_file", entry->d_name);
        if (file_read(file, 8192, &text, NULL) < 0 || !text_is(text_trim(buf_as_text(&text)), path))
            continue;
        snprintf(device, LOOP_PATH_MAX, "/dev/%.16s", entry->d_name);
        return open(device, O_RDWR | O_CLOEXEC);
    }
    return -1;
}

static int loop_attach(const char *path, char device[LOOP_PATH_MAX], struct err *err)
{
    cleanup_close int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return err_errno(err, errno, "open %s", path);
    cleanup_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return err_errno(err, errno, "open /dev/loop-control");
    struct loop_config config = {.fd = (uint32_t)file,
                                 /* without a second copy of each page in memory */
                                 .info = {.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO}};
    for (int i = 0; i < ATTACH_TRIES; i++) {
        const int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0)
            return err_errno(err, errno, "find a free loop device");
        snprintf(device, LOOP_PATH_MAX, "/dev/loop%d", number);
        cleanup_close int fd = open(device, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            return err_errno(err, errno, "open %s", device);
        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
            return fd_steal(&fd);
        if (errno != EBUSY)
            return err_errno(err, errno, "attach %s to %s", device, path);
    }
    return err_fail(err, ERR_BUSY, "", "others take every free loop device");
}

/* --- the mount --- */

static int device_mount(const char *device, const char *path, struct err *err)
{
    cleanup_close int context = fsopen("ext4", FSOPEN_CLOEXEC);
    if (context < 0)
        return err_errno(err, errno, "open the file system ext4");
    if (fsconfig(context, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
        fsconfig(context, FSCONFIG_SET_FLAG, "noinit_itable", NULL, 0) < 0 ||
        fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_errno(err, errno, "read the file system in %s", path);
    int fd = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    return fd < 0 ? err_errno(err, errno, "mount %s", path) : fd;
}

int disk_image_mount(const char *path, struct err *err)
{
    char device[LOOP_PATH_MAX];
    cleanup_close int loop = loop_attach(path, device, err);
    return loop < 0 ? loop : device_mount(device, path, err); /* the mount keeps it attached */
}

int disk_image_mount_again(const char *path, struct err *err)
{
    char device[LOOP_PATH_MAX];
    cleanup_close int loop = loop_find(path, device);
    return loop < 0 ? disk_image_mount(path, err) : device_mount(device, path, err);
}

void disk_image_drop(int fd)
{
    uint32_t how = EXT4_SHUTDOWN_NO_LOGS;
    assert(fd >= 0);
    cleanup_close int root = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0)
        ioctl(root, EXT4_SHUTDOWN, &how); /* refused: then the kernel writes it first */
    close(fd);
}
