/* server.h — the composition: store, core, engine, and the service that the API sees.
 *
 * Threads: the core thread (the only writer of the store), the launcher (speaks to the engine), the
 * engine's own, the API's. They share the mailboxes, the store's readers and atomic counters.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H
#include "api/service.h"
#include "server/config.h"

struct server;

/* Everything but the API; the server owns `config` from then on, also on failure. Events begin to
 * flow with server_start. `admin_password` (at least 32 bytes) receives the password of the user
 * that a first start creates, else "". */
int server_new(struct server_config *config, struct server **server, char *admin_password,
               struct err *err);
void server_start(struct server *server);

/* The port for the API; valid until server_free. */
struct service *server_service(struct server *server);

/* A new configuration, the server's from then on: takes effect after what was asked before. */
void server_reload(struct server *server, struct server_config *config);

/* From now on readiness says no, and nothing new is taken; what was taken is carried out and
 * answered before server_stop returns. Containers go on. */
void server_drain(struct server *server);
void server_stop(struct server *server);
void server_free(struct server *server);

#endif
