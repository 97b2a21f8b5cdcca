/* network.h — networks of jobs: the tasks of a job on this machine share a network namespace with
 * one address of its own (docs/rfc/0015-walls.md).
 *
 * Edge; thread-safe. A namespace lives as long as a process in it or a descriptor of ours: nothing
 * is mounted, so nothing is left behind, whoever is killed.
 */
#ifndef ENGINE_LOCAL_NETWORK_H
#define ENGINE_LOCAL_NETWORK_H
#include "engine/engine.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct networks;

enum { NETWORK_ADDRESS_MAX = 16, NETWORK_PREFIX_LOW = 8, NETWORK_PREFIX_HIGH = 28 };

struct network_config {
    const char *subnet; /* "10.213.0.0/16": addresses of all jobs; the first is the machine's */
    bool is_closed;     /* no way to other machines */
    uint32_t id;        /* of the engine: names its rules */
};

/* What a container needs to be put there. */
struct network_place {
    char address[NETWORK_ADDRESS_MAX];
    char path[48]; /* of the namespace, while the task runs or is being started */
};

/* Is it one? ERR_INVALID. Without I/O. */
int network_subnet_check(const char *words, struct err *err);

/* ERR_INVALID: no subnet; ERR_UNSUPPORTED: this machine cannot (no nft, no forwarding). */
int networks_new(const struct network_config *config, struct networks **networks, struct err *err);
/* What runs keeps its network; without any, the rules go as well. */
void networks_free(struct networks *networks);

/* The job's network, made when this is its first task, with the task's ports published.
 * ERR_CONFLICT: a port is in use on this machine. */
int networks_join(struct networks *networks, const char *job, struct attempt_id attempt,
                  const struct engine_port *ports, size_t count, struct network_place *place,
                  struct err *err);
/* A task of an earlier engine, which has `process`. */
int networks_adopt(struct networks *networks, const char *job, struct attempt_id attempt,
                   const struct engine_port *ports, size_t count, const char *address, int process,
                   struct err *err);
/* Nothing of the task runs any more: its ports are free. With its last task the job's network
 * waits, a round or two of housekeeping, for the next job of the same user, and is removed then.
 * One that has not joined is harmless. */
int networks_leave(struct networks *networks, struct attempt_id attempt, struct err *err);

/* What the job of this task has received and sent on this machine since its network was made, and
 * how many of its tasks have done so; nothing is set when the task has no network of its own. */
void networks_traffic(struct networks *networks, struct attempt_id attempt,
                      struct engine_stats *stats);

/* Remove the links of networks that are no more: they go with their namespaces, but a connection
 * that its task did not close can keep one for minutes. For housekeeping. */
void networks_sweep(struct networks *networks);

#endif
