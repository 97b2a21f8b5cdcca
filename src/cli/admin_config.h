/* admin_config.h — what a server's configuration wants of the walls between tasks, and which of it
 * a machine cannot give.
 *
 * Edge: reads the file, and tries the folders of its storages. Whether the file is right as a whole
 * is for skepd to say (--check-config); here what is not understood is left out.
 */
#ifndef CLI_ADMIN_CONFIG_H
#define CLI_ADMIN_CONFIG_H
#include "base/arena.h"
#include "sys/machine.h"
#include <stdbool.h>
#include <stddef.h>

struct err;

enum { ADMIN_STORAGES_MAX = 256, ADMIN_RIGHTS = 6, ADMIN_CLUSTERS_MAX = 16 };

struct admin_storage {
    const char *name, *directory;
    bool is_squashed;
    bool can_map; /* its files can be shown with other ids */
    char why_not[120];
};

struct admin_cluster {             /* an engine whose tasks are pods */
    const char *name, *kubeconfig; /* "": as a pod of it */
    char why_not[120];             /* "": the file can be read */
};

struct admin_config {           /* of the engine of this machine; strings live in the arena */
    const char *data_directory; /* NULL: none is named */
    bool is_local;              /* false: no containers run here, and nothing that follows counts */
    /* modes, as they are written or by default */
    const char *network, *users, *user_images, *quota;
    const char *runtime;              /* "": none is named */
    const char *web_origin;           /* of the relay to ports of tasks; NULL: no relay */
    const char *rights[ADMIN_RIGHTS]; /* whose they are, "hpc, lab"; "": nobody's */
    struct admin_storage storages[ADMIN_STORAGES_MAX];
    size_t storage_count;
    struct admin_cluster clusters[ADMIN_CLUSTERS_MAX];
    size_t cluster_count;
};

/* ERR_IO, ERR_NOT_FOUND, ERR_INVALID: no YAML; then the text has the first problem. */
int admin_config_read(const char *path, struct arena *arena, struct admin_config *config,
                      struct err *err);

/* Finds out whether its storages can be shown with other ids, and whether the files that say where
 * its clusters are can be read; only root can. */
void admin_config_try(struct admin_config *config);

/* Adds a finding for each thing that is configured, after what was found on the machine. Returns
 * how many there are then, `room` at most. Without I/O; what it adds lives as long as `config`. */
size_t admin_config_judge(const struct admin_config *config, struct arena *arena,
                          struct machine_finding *findings, size_t count, size_t room);

#endif
