/* job_network.h — which jobs have the machine's network, where the operator lets the number of
 * accounts decide (docs/rfc/0015-walls.md).
 *
 * With engine.network.mode auto a job has it that was submitted while the machine had one account,
 * or whose virtual cluster has the right hostNetwork. A job that cannot do without is refused when
 * it is submitted.
 */
#ifndef SERVER_JOB_NETWORK_H
#define SERVER_JOB_NETWORK_H
#include "server/config.h"
#include <stdbool.h>
#include <stddef.h>

struct err;
struct server;
struct spec;
struct store_reader;

/* Before the first user is made: what a configuration without a mode means in this store, from its
 * first start on. Accounts that are made elsewhere make several of them. */
int job_network_begin(struct server *server, struct err *err);

/* What the engine's mode is; NETWORK_MODE_UNSET: that of the store. */
enum network_mode job_network_mode(const struct server *server, const struct engine_config *engine);

/* May the job have what its file asks for? ERR_FORBIDDEN: names the right, and how to get it. */
int job_network_check(struct server *server, struct store_reader *reader, const struct spec *spec,
                      struct err *err);

/* For people: whose network the next job gets. */
void job_network_text(struct server *server, char *text, size_t size);

#endif
