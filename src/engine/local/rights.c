#include "engine/local/rights.h"
#include <assert.h>
#include <string.h>

const char *const right_names[RIGHTS] = {
    [RIGHT_HOST_NETWORK] = "hostNetwork",
    [RIGHT_SYS_ADMIN] = "sysAdmin",
    [RIGHT_FUSE] = "fuse",
    [RIGHT_LOCK_MEMORY] = "lockMemory",
    [RIGHT_NEW_PRIVILEGES] = "newPrivileges",
    [RIGHT_HOST_USERS] = "hostUsers",
};

unsigned rights_of(const struct right_list lists[RIGHTS], const char *virtual_cluster)
{
    unsigned rights = 0;
    assert(virtual_cluster);
    for (unsigned right = 0; right < RIGHTS; right++)
        for (size_t i = 0; i < lists[right].count; i++) {
            const char *name = lists[right].items[i];
            if (strcmp(name, "*") == 0 || strcmp(name, virtual_cluster) == 0)
                rights |= 1u << right;
        }
    return rights;
}
