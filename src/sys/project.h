/* project.h — limits of bytes and inodes for a folder, by the file system's project quotas.
 *
 * Edge. ext4 and XFS can count what belongs to a number, a project, which new files inherit from
 * their folder. The kernel does not hold who has CAP_SYS_RESOURCE to a limit; overlayfs writes
 * without it, whoever mounted it. Needs Linux 5.14.
 */
#ifndef SYS_PROJECT_H
#define SYS_PROJECT_H
#include <stdbool.h>
#include <stdint.h>

struct err;

struct project_use {
    uint64_t bytes, inodes;         /* in use */
    uint64_t bytes_max, inodes_max; /* 0: no limit */
};

/* Does the file system of this folder hold projects to their limits? `fd` is of anything in it. */
bool project_is_enforced(int fd);

/* 0: no limit, which also forgets a project that has no files. ERR_IO. */
int project_limit(int fd, uint32_t project, uint64_t bytes, uint64_t inodes, struct err *err);

/* False: nothing is known of it. */
bool project_use_read(int fd, uint32_t project, struct project_use *use);

/* The file or folder is of the project from now on, and so is what comes into a folder. What is in
 * it already stays what it is. ERR_IO. */
int project_put(const char *path, uint32_t project, struct err *err);

#endif
