/* storage.h — tells whether the places that the engine writes to have bytes and inodes left.
 *
 * Edge. Two places: the data directory (layers, logs) and the run directory (a tmpfs). A place that
 * was short is well again when a quarter more than its reserve is free, so that a node does not
 * come and go with every file.
 */
#ifndef ENGINE_LOCAL_STORAGE_H
#define ENGINE_LOCAL_STORAGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct statvfs;

enum {
    STORAGE_REASON_MAX = 160,
    STORAGE_INODES_MIN = 64, /* a task takes about thirty */
};

/* What must stay free. */
struct storage_reserve {
    uint64_t bytes, inodes;
};

/* Of the data directory: `reserve_mib`, and a hundredth of the inodes, 10,000 at most. */
struct storage_reserve storage_reserve_data(const struct statvfs *disk, uint32_t reserve_mib);
/* Of the run directory: a tenth of its size, 16 MiB at most, and as many inodes as above. */
struct storage_reserve storage_reserve_run(const struct statvfs *disk);

/* Is less free than the reserve (`was_short`: and a quarter)? Then `reason` says what and how much.
 * File systems that make inodes as they need them (f_files 0) are never short of them. */
bool storage_is_short(const struct statvfs *disk, const struct storage_reserve *reserve,
                      bool was_short, const char *place, char reason[STORAGE_REASON_MAX]);

/* Nothing more can be written: what fails now fails for that. */
bool storage_is_exhausted(const struct statvfs *disk);

/* What a start of the engine tries out there may have failed for lack of room: less than a MiB or
 * 64 inodes are free. */
bool storage_is_tight(const struct statvfs *disk);
/* The same, of the file system of a directory; false when nothing can be learnt of it. */
bool storage_directory_is_tight(const char *directory);

#endif
