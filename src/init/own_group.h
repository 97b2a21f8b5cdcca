/* own_group.h — what the control group of this container says, read from inside of it.
 *
 * Edge. In a pod the node's runtime mounts it at /sys/fs/cgroup, read-only; the engine cannot see
 * it from outside. What a task's root mounts over it spoils its own figures only.
 */
#ifndef INIT_OWN_GROUP_H
#define INIT_OWN_GROUP_H
#include "init/exit_file.h"
#include <stdbool.h>

struct log_line_use;

/* `root`: skep-init's folder, beside which /sys is. */
enum exit_memory own_group_memory(const char *root);
/* False: no control group can be read there. */
bool own_group_use(const char *root, struct log_line_use *use);

#endif
