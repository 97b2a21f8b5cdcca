/* limits.h — what a task may take of its machine beside processors, memory and disk, and whether it
 * was refused more.
 *
 * Edge; the figures are pure. The table of all limits stands in docs/rfc/0015-walls.md.
 */
#ifndef ENGINE_LOCAL_LIMITS_H
#define ENGINE_LOCAL_LIMITS_H
#include <stdbool.h>
#include <stdint.h>

struct cgroup_layout;

enum {
    LIMIT_PIDS_MIN = 1024, /* of any task: an interpreter with its libraries' threads */
    LIMIT_PIDS_MAX = 32768,
    LIMIT_IO_WEIGHT_MIN = 10,
    LIMIT_IO_WEIGHT_MAX = 1000, /* what all kernels take */
};

/* How many processes and threads this machine may have. */
uint64_t limit_pids_machine(void);

/* How many of them a task with `cpu` of the machine's `machine_cpu` processors may have: its share
 * of one half, within the limits above. The other half is the machine's own. `cpu` 0: all. */
uint64_t limit_pids(uint64_t machine_pids, uint32_t machine_cpu, uint32_t cpu);

/* Bytes from which the kernel takes page cache back, before the limit is met: 1/64 below it, 32 MiB
 * at most. More would slow a task that has a right to its memory. 0: no limit. */
uint64_t limit_memory_high(uint64_t memory_mib);

/* Of 10 to 1,000: ten a processor. `cpu` 0: the most. */
uint32_t limit_io_weight(uint32_t cpu);

/* Of the group that the runtime has made: the weight in the disk's queue, and where the kernel has
 * it (v2) memory.high. A kernel without one of them has nothing to set. */
void limits_set(const struct cgroup_layout *layout, const char *group, uint64_t memory_mib,
                uint32_t cpu);

/* How often the group was refused one more process; 0 when there is no such group. */
uint64_t limit_pids_refused(const struct cgroup_layout *layout, const char *group);

/* Has this process CAP_SYS_RESOURCE? Else resource limits can only be lowered. */
bool limit_can_raise(void);

#endif
