/* storage.h — a folder that the operator offers to jobs, as the configuration names it.
 *
 * Pure. All strings are the configuration's; none is NULL.
 */
#ifndef MODEL_STORAGE_H
#define MODEL_STORAGE_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>

struct arena;

struct storage {
    const char *name;
    /* on every machine; what stands behind it is mounted there already. "": it has a claim alone */
    const char *directory;
    const char *claim; /* the PersistentVolumeClaim of a Kubernetes cluster's pods; "" none */
    const char *type;  /* what that is, for people: "directory", "nfs", "samba" */
    const char *server, *path; /* where people reach it from elsewhere, or "" */
    bool is_shared;            /* false: each user has a folder of their own in it */
    bool is_read_only;
    bool is_root_squashed; /* root of a task is the owner of the folder there, and never root */
};

struct storage_list {
    const struct storage *items;
    size_t count;
};

/* All of it, in the arena. */
struct storage_list storage_list_copy(struct storage_list storages, struct arena *arena);
void storage_copy(const struct storage *storage, struct arena *arena, struct storage *copy);

/* NULL: there is none of that name. */
const struct storage *storage_find(struct storage_list storages, struct text name);

#endif
