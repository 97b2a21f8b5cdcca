/* rights.h — what the operator allows to tasks beyond their walls, by virtual cluster
 * (docs/rfc/0015-walls.md).
 *
 * Edge, without I/O. A right is given to all tasks of the virtual clusters that are named for it;
 * "*" names all of them.
 */
#ifndef ENGINE_LOCAL_RIGHTS_H
#define ENGINE_LOCAL_RIGHTS_H
#include <stddef.h>

enum right {
    RIGHT_HOST_NETWORK,   /* the machine's network instead of one of the job's own */
    RIGHT_SYS_ADMIN,      /* CAP_SYS_ADMIN, and the system calls that go with it */
    RIGHT_FUSE,           /* the device /dev/fuse */
    RIGHT_LOCK_MEMORY,    /* CAP_IPC_LOCK, and no limit of locked memory */
    RIGHT_NEW_PRIVILEGES, /* set-user-id programs and file capabilities work: sudo, ping */
    RIGHT_HOST_USERS,     /* the machine's user ids instead of a range of the job's own */
    RIGHTS,
};

/* Keys of the configuration, in the order of the enum. */
extern const char *const right_names[RIGHTS];

struct right_list { /* names of virtual clusters */
    const char *const *items;
    size_t count;
};

/* A set of 1u << RIGHT_…; `virtual_cluster` may be "": then only "*" counts. */
unsigned rights_of(const struct right_list lists[RIGHTS], const char *virtual_cluster);

#endif
