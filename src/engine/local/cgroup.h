/* cgroup.h — control groups as this machine has them: v2 alone, v1, or v1 with a v2 tree beside it.
 *
 * Edge. A group is named by its path from the root of the trees ("/skep/1a2b/17"), the same in all
 * of them. The runtime makes a container's group and sets its limits; this reads, kills, removes.
 */
#ifndef ENGINE_LOCAL_CGROUP_H
#define ENGINE_LOCAL_CGROUP_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct engine_stats;
struct err;

enum cgroup_kind { CGROUP_V2, CGROUP_V1, CGROUP_HYBRID };
enum { CGROUP_TREES_MAX = 24, CGROUP_PATH_MAX = 512 };

struct cgroup_tree {
    char mount[128];
    char root[256];       /* which group is mounted there: "" = the tree's root */
    char controllers[64]; /* ",rw,cpu,cpuacct,", ",rw,xattr,name=systemd,"; of v2 "," */
    bool is_v2;
};

struct cgroup_layout {
    enum cgroup_kind kind;
    struct cgroup_tree trees[CGROUP_TREES_MAX];
    size_t tree_count;
    char hybrid_mount[128];      /* of the v2 tree beside v1 ones; "" = none */
    bool has_hybrid_controllers; /* it holds some: crun refuses such a machine */
    bool has_swap;               /* memory and swap can be limited together */
};

/* From the text of /proc/self/mountinfo. ERR_UNSUPPORTED: no tree with the memory controller. */
int cgroup_layout_read(struct text mountinfo, struct cgroup_layout *layout, struct err *err);

/* Where a v1 controller (or, on v2, everything) is for this group: MOUNT/GROUP. False: nowhere. */
bool cgroup_path(const struct cgroup_layout *layout, const char *controller, const char *group,
                 char path[CGROUP_PATH_MAX]);

/* Where a group is in one tree. */
void cgroup_tree_path(const struct cgroup_tree *tree, const char *group,
                      char path[CGROUP_PATH_MAX]);

/* Is a process in the group, or below it? `lines` are those of its /proc/PID/cgroup. */
bool cgroup_lines_name(const struct cgroup_layout *layout, const char *group, struct text lines);
bool cgroup_has_process(const struct cgroup_layout *layout, const char *group, pid_t pid);

/* Memory ran out and processes of the group were killed for it. */
struct cgroup_oom {
    uint64_t kills;
    bool is_limit; /* at the group's own limit; else the machine's memory ran out. v1 says only
                    * whether the limit was ever reached: such a group is taken to have run out of
                    * its own memory */
};

/* False: there is no such group (any more), `oom` is all zero. */
bool cgroup_oom_read(const struct cgroup_layout *layout, const char *group, struct cgroup_oom *oom);

/* ERR_NOT_FOUND: there is no such group. */
int cgroup_stats(const struct cgroup_layout *layout, const char *group, struct engine_stats *stats,
                 struct err *err);

/* --- ending what is in a group (cgroup_kill.c) --- */

/* Lift the limit of CPU time of the group and of all below it. A killed process needs CPU time to
 * end: thousands of them that share one processor's time would take minutes. */
void cgroup_unlimit(const struct cgroup_layout *layout, const char *group);

/* SIGKILL to all that is in the group and below, once, without waiting for their end. The limit of
 * CPU time is lifted and, where the kernel cannot kill a group by itself (cgroup.kill, Linux 5.14),
 * the group is frozen meanwhile, so that nothing forks away from the list of its processes. */
void cgroup_kill(const struct cgroup_layout *layout, const char *group);

/* Kill all that is in the group and below, wait until it is empty, remove it from all trees. 0 also
 * when there was none. ERR_BUSY: something could not be killed within timeout_ms. */
int cgroup_remove(const struct cgroup_layout *layout, const char *group, uint32_t timeout_ms,
                  struct err *err);

/* Remove a group where it is empty; nothing is killed. */
void cgroup_drop(const struct cgroup_layout *layout, const char *group);

/* Make a group for processes of our own in the trees by which systemd follows processes (v2's and
 * its own named one). A process moves itself there by writing "0" to procs_fds, those that are not
 * -1; the caller closes them. */
int cgroup_make(const struct cgroup_layout *layout, const char *group, int procs_fds[2],
                struct err *err);

/* Call `visit` for every group right below `group`, once for each name in each tree. */
void cgroup_children(const struct cgroup_layout *layout, const char *group,
                     void (*visit)(void *context, const char *name), void *context);

#endif
