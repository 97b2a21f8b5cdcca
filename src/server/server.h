/* server.h — the server: store, core and engine put together, and the service that the API sees.
 *
 * Threads: the core thread (the only writer of the store), the launcher (gives the engine its
 * commands), the hang watch (samples running tasks), and those that the store, the engine and the
 * API have of their own. They share the mailboxes, the store's readers, the configured exit rules
 * (under a lock) and atomic counters.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H
#include "api/service.h"
#include "server/config.h"

struct err;
struct server;
struct store;

/* Where the password of the user goes that a first start creates: to a terminal, into a file.
 * Called before the user is stored, so that a crash between the two leaves nobody without a
 * password. */
struct server_teller {
    void *context;
    int (*tell)(void *context, const char *user, const char *password, struct err *err);
};

/* Everything but the API; the server owns `config` from then on, also on failure. Events begin to
 * flow with server_start. */
int server_new(struct server_config *config, const struct server_teller *teller,
               struct server **server, struct err *err);
void server_start(struct server *server);

/* Where the API listens, when the configuration left the port to the system: tasks started from
 * then on know whom to ask at their barriers. */
void server_listens(struct server *server, uint16_t port);

/* The folder for the socket that tasks ask; NULL: no task of this engine could reach it. */
const char *server_door(const struct server *server);

/* The port for the API; valid until server_free. */
struct service *server_service(struct server *server);

/* A new configuration, the server's from then on: takes effect after what was asked before. */
void server_reload(struct server *server, struct server_config *config);

/* From now on readiness says no, and nothing new is taken; what was taken is carried out and
 * answered before server_stop returns. Containers go on. */
void server_drain(struct server *server);
void server_stop(struct server *server);
/* It has sent SIGTERM to this process, because only a start can go on from what the database has
 * lost (store_is_behind). Any thread. */
bool server_must_restart(const struct server *server);
void server_free(struct server *server);

/* Give a user a new random password, tell it, and revoke all tokens of the user, also those of
 * applications; no server may use the store. ERR_NOT_FOUND. */
/* Seal everything anew by a new key; no server runs. `count`: jobs whose secrets were. What was
 * left of one before is done first. */
int server_key_rotate(struct store *store, const char *directory, size_t *count, struct err *err);
int server_password_reset(struct store *store, const char *user, const struct server_teller *teller,
                          struct err *err);

/* The next server takes the wall clock's time, if that is ahead, as on another boot of the machine.
 * No server runs. */
int server_clock_forget(struct store *store, struct err *err);

#endif
