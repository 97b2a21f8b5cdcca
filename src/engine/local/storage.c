#include "engine/local/storage.h"
#include <stdio.h>
#include <sys/statvfs.h>

enum {
    INODES_MAX = 10000,
    RUN_BYTES_MAX = 16 << 20,
    EXHAUSTED_BYTES = 64 << 10,
    EXHAUSTED_INODES = 8,
    TIGHT_BYTES = 1 << 20,
    TIGHT_INODES = 64,
};

static uint64_t inode_reserve(const struct statvfs *disk)
{
    uint64_t part = disk->f_files / 100;
    return part > INODES_MAX ? INODES_MAX : part < STORAGE_INODES_MIN ? STORAGE_INODES_MIN : part;
}

struct storage_reserve storage_reserve_data(const struct statvfs *disk, uint32_t reserve_mib)
{
    return (struct storage_reserve){(uint64_t)reserve_mib << 20, inode_reserve(disk)};
}

struct storage_reserve storage_reserve_run(const struct statvfs *disk)
{
    uint64_t part = disk->f_blocks * disk->f_frsize / 10;
    return (struct storage_reserve){part < RUN_BYTES_MAX ? part : RUN_BYTES_MAX,
                                    inode_reserve(disk)};
}

static bool is_below(uint64_t free, uint64_t reserve, bool was_short)
{
    return free < reserve + (was_short ? reserve / 4 : 0);
}

bool storage_is_short(const struct statvfs *disk, const struct storage_reserve *reserve,
                      bool was_short, const char *place, char reason[STORAGE_REASON_MAX])
{
    const uint64_t bytes = disk->f_bavail * disk->f_frsize, inodes = disk->f_favail;
    reason[0] = 0;
    if (is_below(bytes, reserve->bytes, was_short))
        snprintf(reason, STORAGE_REASON_MAX,
                 "disk pressure: %llu MiB free in the %s directory, %llu are kept in reserve",
                 (unsigned long long)(bytes >> 20), place,
                 (unsigned long long)(reserve->bytes >> 20));
    else if (disk->f_files > 0 && is_below(inodes, reserve->inodes, was_short))
        snprintf(reason, STORAGE_REASON_MAX,
                 "disk pressure: %llu inodes free in the %s directory, %llu are kept in reserve",
                 (unsigned long long)inodes, place, (unsigned long long)reserve->inodes);
    return reason[0] != 0;
}

static bool has_less(const struct statvfs *disk, uint64_t bytes, uint64_t inodes)
{
    return disk->f_bavail * disk->f_frsize < bytes ||
           (disk->f_files > 0 && disk->f_favail < inodes);
}

bool storage_is_exhausted(const struct statvfs *disk)
{
    return has_less(disk, EXHAUSTED_BYTES, EXHAUSTED_INODES);
}

bool storage_is_tight(const struct statvfs *disk)
{
    return has_less(disk, TIGHT_BYTES, TIGHT_INODES);
}

bool storage_directory_is_tight(const char *directory)
{
    struct statvfs disk;
    return statvfs(directory, &disk) == 0 && storage_is_tight(&disk);
}
