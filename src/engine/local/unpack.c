/* umoci unpacks an image's layers, and is ended when they are larger than an image may be. */
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/pull_work.h"
#include "engine/local/runtime.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/mailbox.h"
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHECK_MS = 100,         /* what a disk writes in this time may come on top of the limit */
    COUNT_MS = 1000,        /* at least between two counts of the entries */
    COUNT_SHARE = 4,        /* … and so many times as long as the last one took */
    DEPTH_MAX = 256,        /* of folders in an image: each open one takes a descriptor */
    RATIO_FLOOR_MIB = 1024, /* an image of less is not suspicious, however small its layers are */
    REPACK_MIB = 16,        /* what layers may grow by, besides twice their size, as gzip */
};

/* --- measuring --- */

static bool level_measure(int folder, unsigned depth, uint64_t max_entries, struct tree_size *size)
{
    cleanup_dir DIR *dir = fdopendir(folder);
    if (!dir) {
        close(folder);
        return false;
    }
    for (struct dirent *entry; size->entries <= max_entries && (entry = readdir(dir));) {
        struct stat stat;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(dir), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* gone already: it is being unpacked */
        uint64_t bytes = (uint64_t)stat.st_blocks * 512;
        bool is_folder = S_ISDIR(stat.st_mode);
        size->entries++;
        size->bytes += is_folder || stat.st_nlink < 2 ? bytes : bytes / stat.st_nlink;
        if (!is_folder)
            continue;
        int below =
            openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below >= 0 && depth == 0)
            close(below);
        if (below >= 0 && (depth == 0 || !level_measure(below, depth - 1, max_entries, size)))
            return false;
    }
    return true;
}

bool tree_measure(const char *path, uint64_t max_entries, struct tree_size *size)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *size = (struct tree_size){0};
    return folder >= 0 && level_measure(folder, DEPTH_MAX, max_entries, size);
}

/* --- limits --- */

static bool is_named_before(const struct manifest *manifest, size_t number)
{
    const char *digest = manifest->blobs[number].digest;
    for (size_t i = 0; i < number; i++)
        if (strcmp(manifest->blobs[i].digest, digest) == 0)
            return true;
    return false;
}

uint64_t layout_bytes(const char *layout, const struct manifest *manifest)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < manifest->blob_count; i++) {
        char path[PULL_PATH_MAX + 96];
        struct stat file;
        if (is_named_before(manifest, i)) /* images name the empty layer again and again */
            continue;
        snprintf(path, sizeof path, "%s/blobs/sha256/%s", layout,
                 digest_hex(manifest->blobs[i].digest));
        if (stat(path, &file) == 0 && S_ISREG(file.st_mode))
            bytes += (uint64_t)file.st_size;
    }
    return bytes;
}

uint64_t unpack_bytes_max(const struct engine_local_config *config, uint64_t compressed)
{
    uint64_t most = config->image_max_mib << 20, floor = (uint64_t)RATIO_FLOOR_MIB << 20;
    uint64_t ratio = config->image_max_ratio;
    uint64_t by_ratio = compressed > most / ratio ? most : compressed * ratio;
    by_ratio = by_ratio < floor ? floor : by_ratio;
    return by_ratio < most ? by_ratio : most;
}

static int too_big(struct work *work, struct err *err)
{
    const struct engine_local_config *config = work->pull->config;
    err_fail(err, ERR_TOO_BIG, "",
             "the image unpacks to more than %" PRIu64 " MiB, the most that its layers of %" PRIu64
             " MiB may unpack to here",
             unpack_bytes_max(config, work->unpack_bytes) >> 20, work->unpack_bytes >> 20);
    return work_fail_final(work, "ImageTooBig", err);
}

static int entries_check(struct work *work, struct tree_size *size, struct err *err)
{
    char path[PULL_PATH_MAX + 16];
    uint64_t most = work->pull->config->image_max_entries;
    snprintf(path, sizeof path, "%s/rootfs", work->folder);
    if (!tree_measure(path, most, size) && access(path, F_OK) == 0)
        err_fail(err, ERR_TOO_BIG, "", "folders of the image are nested more than %d deep",
                 DEPTH_MAX);
    else if (size->entries > most)
        err_fail(err, ERR_TOO_BIG, "",
                 "the image unpacks to more than %" PRIu64
                 " files and folders, the most that an image may have here",
                 most);
    else
        return 0;
    return work_fail_final(work, "ImageTooBig", err);
}

/* Bytes that a process has written so far; 0 when it cannot be told any more. */
static uint64_t bytes_written(pid_t pid)
{
    char path[64];
    unsigned long long bytes = 0;
    snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
    cleanup_file FILE *file = fopen(path, "re");
    return file && fscanf(file, "rchar: %*u wchar: %llu", &bytes) == 1 ? bytes : 0;
}

static int unpack_check(struct work *work, pid_t pid, struct err *err)
{
    struct tree_size size;
    int64_t now_ms = clock_monotonic_ms();
    if (bytes_written(pid) > unpack_bytes_max(work->pull->config, work->unpack_bytes))
        return too_big(work, err);
    if (now_ms < work->counted_ms)
        return room_check(work, err);
    int code = entries_check(work, &size, err);
    int64_t pause_ms = (clock_monotonic_ms() - now_ms) * COUNT_SHARE;
    work->counted_ms = now_ms + (pause_ms > COUNT_MS ? pause_ms : COUNT_MS);
    return code;
}

static int repack_check(struct work *work, pid_t pid, struct err *err)
{
    if (bytes_written(pid) <= work->unpack_bytes * 2 + ((uint64_t)REPACK_MIB << 20))
        return room_check(work, err);
    return too_big(work, err);
}

/* --- steps --- */

/* umoci does not know zstd: the same layers once more as gzip, in a layout beside. */
static int layers_repack(struct work *work, const char *layout, const char *tag, const char *beside,
                         struct err *err)
{
    char from[PULL_PATH_MAX + 160], to[PULL_PATH_MAX + 160];
    snprintf(from, sizeof from, "oci:%s:%s", layout, tag);
    snprintf(to, sizeof to, "oci:%s:%s", beside, tag);
    const char *argv[] = {"skopeo",
                          "--insecure-policy", /* it was let in before */
                          "copy",
                          "--quiet",
                          "--dest-compress-format",
                          "gzip",
                          "--dest-compress-level",
                          "1",
                          from,
                          to,
                          NULL};
    struct program program = {.argv = argv, .check_ms = CHECK_MS, .check = repack_check};
    return program_run(work, &program, err);
}

int image_unpack(struct work *work, const char *layout, const char *tag,
                 const struct manifest *manifest, struct tree_size *size, struct err *err)
{
    char image[PULL_PATH_MAX + 160], rootfs[PULL_PATH_MAX + 16], beside[PULL_PATH_MAX + 16];
    struct pull *pull = work->pull;
    int code = 0;
    work->unpack_bytes = layout_bytes(layout, manifest); /* who made it may say anything */
    work->counted_ms = 0;
    snprintf(beside, sizeof beside, "%s/as-gzip", work->folder);
    pull->watch.progress(pull->watch.context, "Unpacking", pull->reference->path);
    code = room_check(work, err);
    if (code == 0 && manifest->has_zstd)
        code = layers_repack(work, layout, tag, beside, err);
    snprintf(image, sizeof image, "%s:%s", manifest->has_zstd ? beside : layout, tag);
    snprintf(rootfs, sizeof rootfs, "%s/rootfs", work->folder);
    const char *argv[] = {"umoci", "raw", "unpack", "--image", image, rootfs, NULL};
    struct program program = {.argv = argv, .check_ms = CHECK_MS, .check = unpack_check};
    if (code == 0)
        code = program_run(work, &program, err);
    if (work->exit_code > 0 && work->exit_code < 128 && strcmp(pull->reason, "DiskFull") != 0)
        return work_fail_final(work, "ImageBroken", err); /* it will not be better the next time */
    if (code == 0)
        code = entries_check(work, size, err);
    if (code == 0 && size->bytes > unpack_bytes_max(pull->config, work->unpack_bytes))
        code = too_big(work, err);
    if (code == 0 && manifest->has_zstd)
        tree_remove(beside, NULL);
    return code;
}
