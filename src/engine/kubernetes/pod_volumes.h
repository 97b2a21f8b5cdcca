/* pod_volumes.h — what a pod has mounted: skep-init, its files, its own spaces, and storages.
 *
 * Pure. A storage is a PersistentVolumeClaim of the pods' namespace, or a folder of the node.
 */
#ifndef ENGINE_KUBERNETES_POD_VOLUMES_H
#define ENGINE_KUBERNETES_POD_VOLUMES_H
#include <stdint.h>

struct container;
struct err;
struct json_writer;

/* ERR_UNSUPPORTED: a storage that no pod can have, and why. */
int pod_mounts_check(const struct container *container, struct err *err);

/* "volumes" of the pod; the secret has the files. `log_mib`: of the one with the logs; 0: any. */
void pod_volumes_write(struct json_writer *json, const struct container *container,
                       uint64_t log_mib, const char *secret);
/* "volumeMounts" of the task's container. */
void pod_mounts_write(struct json_writer *json, const struct container *container);
/* "volumeMounts" of the container that brings skep-init. */
void pod_program_mount_write(struct json_writer *json);

/* "resource": "AMOUNTunit". */
void pod_amount_write(struct json_writer *json, const char *resource, uint64_t amount,
                      const char *unit);

#endif
