/* own_files.h — what the files of a container's control group say of it, of both versions.
 *
 * Pure. Did its memory run out, and what has it used? The engine of this machine reads these files
 * from outside (engine/local/cgroup.h). In a pod nobody else can: with control groups of version 1
 * the cluster is not told that a child was killed, and with version 2 it may be told late.
 */
#ifndef INIT_OWN_FILES_H
#define INIT_OWN_FILES_H
#include "base/text.h"
#include "init/exit_file.h"
#include <stdbool.h>

struct log_line_use;

/* What stands in the group's folder; "" what is not there. */
struct own_memory {
    struct text events;                             /* version 2: memory.events */
    struct text oom_control, failures, limit, most; /* version 1 */
};

enum exit_memory own_memory_judge(const struct own_memory *memory);

struct own_use {
    struct text cpu_stat, memory, io, pids;         /* version 2 */
    struct text cpuacct, memory_v1, blkio, pids_v1; /* version 1 */
};

/* False: neither version's memory is there. What else is not there is 0. */
bool own_use_read(const struct own_use *own, struct log_line_use *use);

#endif
