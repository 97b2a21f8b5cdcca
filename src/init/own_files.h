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
    struct text events;                /* version 2: memory.events */
    struct text oom_control, failures; /* version 1 */
    struct text limit; /* bytes; no number, or one that nothing reaches: there is none */
    struct text most;  /* bytes that were ever used; "" with version 2 before Linux 5.19 */
};

/* LIMIT: a process was killed for the container's limit, or for that of the pod, which is the same
 * and which what else is in the pod may use up to 16 MiB of. Of a kernel that does not tell the
 * most that was used this is said wherever there is a limit: a pod that asks for all that it may
 * use is the last whose processes the machine itself kills. */
enum exit_memory own_memory_judge(const struct own_memory *memory);

struct own_use {
    struct text cpu_stat, memory, io, pids;         /* version 2 */
    struct text cpuacct, memory_v1, blkio, pids_v1; /* version 1 */
};

/* False: neither version's memory is there. What else is not there is 0. */
bool own_use_read(const struct own_use *own, struct log_line_use *use);

#endif
