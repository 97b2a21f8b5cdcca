/* audit.h — checks that a replay of the event log gives the rows that the store has.
 *
 * Everything that the log holds is stepped through again, over all restarts (core/replay.h); then a
 * core is made of the rows that this gives and one of those in the store, and they are compared,
 * as is how each job ended. No server may run on the data meanwhile.
 */
#ifndef SERVER_AUDIT_H
#define SERVER_AUDIT_H
#include <stdint.h>

struct core_config;
struct err;
struct store;

struct audit {
    uint64_t events, restores, jobs;
};

/* ERR_CORRUPT: they differ; `err` says where. ERR_UNSUPPORTED: the log does not reach back to the
 * first start. */
int server_audit(struct store *store, const struct core_config *config, struct audit *audit,
                 struct err *err);

#endif
