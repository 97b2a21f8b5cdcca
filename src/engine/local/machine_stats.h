/* machine_stats.h — what this whole machine uses, by the kernel's counters.
 *
 * Edge. Whatever runs counts, not Skep's tasks alone. Disks are those that are no parts of others;
 * the network is that of the links that have a device: what tasks send each other is not in it.
 */
#ifndef ENGINE_LOCAL_MACHINE_STATS_H
#define ENGINE_LOCAL_MACHINE_STATS_H

struct engine_stats;

/* Sets all but what is about GPUs, which is zeroed; what the kernel does not tell stays 0. `root`:
 * before /proc and /sys; "" is this machine. */
void machine_stats(const char *root, struct engine_stats *stats);

#endif
