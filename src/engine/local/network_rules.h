/* network_rules.h — what may pass between the networks of jobs, the machine and the world: one
 * table of nftables an engine.
 *
 * Edge, internal to network.c. The rules are written once, by the program nft, and are the same for
 * all jobs: they know their links by the interfaces' group. What changes with each task is a map of
 * published ports, changed by netlink.
 */
#ifndef ENGINE_LOCAL_NETWORK_RULES_H
#define ENGINE_LOCAL_NETWORK_RULES_H
#include "engine/engine.h"
#include "sys/netlink.h"

enum { NETWORK_TABLE_BYTES = 24 };

struct network_rules {
    char table[NETWORK_TABLE_BYTES];
    char subnet[24]; /* 10.213.0.0/16 */
    uint32_t group;
    bool is_closed; /* nothing leads to other machines */
};

/* Write the rules, with an empty map. ERR_UNSUPPORTED: there is no nft, or the kernel refuses. */
int network_rules_write(const struct network_rules *rules, struct err *err);
/* Delete an engine's table, also that of an earlier engine. `socket` as below. 0 also where there
 * is none, or the kernel knows no tables. */
int network_rules_drop(const char *table, struct netlink *socket, struct err *err);

/* `socket` is of NETLINK_NETFILTER. All of the ports, or none. */
int network_ports_publish(const struct network_rules *rules, struct netlink *socket,
                          const struct engine_port *ports, size_t count, uint32_t address,
                          struct err *err);
/* Those that are there. */
int network_ports_withdraw(const struct network_rules *rules, struct netlink *socket,
                           const struct engine_port *ports, size_t count, struct err *err);

/* The name of an engine's table. */
void network_table_name(uint32_t id, char table[NETWORK_TABLE_BYTES]);

/* Does the table of another engine of this machine lead one of the ports to a task of its own? Then
 * nobody else is reached at it, whatever listens there: ERR_CONFLICT. `own`: this engine's table.
 */
int network_ports_check_others(const char *own, struct netlink *socket,
                               const struct engine_port *ports, size_t count, struct err *err);

#endif
