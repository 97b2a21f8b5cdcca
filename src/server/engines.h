/* engines.h — the engines of the configuration, each with its nodes (docs/rfc/0013-engine-port.md).
 *
 * A node belongs to the engine that told of it first, and its tasks are carried out there. One that
 * cannot be opened is opened again by a thread, after growing pauses; the others do not wait for
 * it. Once opened, an engine stays open until the end.
 */
#ifndef SERVER_ENGINES_H
#define SERVER_ENGINES_H
#include "engine/engine.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct engine_config;
struct err;
struct server;
struct server_config;

enum {
    ENGINES_MAX = 16,
    ENGINE_NONE = UINT8_MAX, /* of a node whose engine is not configured, or not known yet */
};

struct server_engine {
    struct server *server;
    uint8_t number; /* its place in the configuration */
    char *name;
    char check[100];                    /* "engine NAME": its line in /readyz */
    const struct engine_config *config; /* as at the start; the table's */
    uint64_t log_segment_bytes;
    _Atomic(struct engine *) engine; /* NULL until it is open */
    struct attempt_id *held;         /* what it held then; the core thread's from then on */
    size_t held_count;
    bool is_settled; /* the core thread's: that has been compared with what the core wants */
    int64_t open_ms; /* monotonic: when that was */
    int64_t next_ms, pause_ms; /* the keeper's: when it is tried again */
    char trouble[200];         /* under the server's state_lock; "" none */
};

struct engine_table {
    struct server_engine items[ENGINES_MAX];
    size_t count;
    struct server_config *config; /* as at the start: the engines borrow its strings */
    pthread_t keeper;
    pthread_mutex_t lock; /* of is_ending */
    pthread_cond_t wake;
    bool has_keeper, is_ending;
};

/* What an engine tells goes to its own sink. */
struct engine_sink server_sink(struct server *server, size_t number);

/* One of the configuration. `door`: a folder of the server's sockets, for tasks of this machine;
 * NULL: none. A running engine, to be freed by its own ops; events come to `sink` from then on. The
 * engine's own errors: ERR_UNSUPPORTED says what this machine lacks. */
int engine_of_config(const struct engine_config *engine, const char *data_directory,
                     const char *door, struct engine_sink sink, struct engine **out,
                     struct err *err);

/* The table of the server's configuration; none is open. */
void engines_init(struct server *server);
/* Open what can be opened. An error: none can, the text is of the first. */
int engines_open(struct server *server, struct err *err);
/* Keeps trying those that could not be opened. ERR_UNAVAILABLE: no thread. */
int engines_keep(struct server *server, struct err *err);
void engines_stop(struct server *server); /* no engine is opened any more */
void engines_free(struct server *server);

/* By the node's name; ENGINE_NONE. Any thread. */
uint8_t engine_of_node(struct server *server, const char *node);
/* By its name in the configuration; ENGINE_NONE. */
uint8_t engine_named(const struct server *server, const char *name);
/* NULL: not open, with ERR_UNAVAILABLE and why in `err`; or there is none of this number. Any
 * thread. */
struct engine *engine_open(struct server *server, uint8_t number, struct err *err);
/* The same, when it also can do this. */
struct engine *engine_able(struct server *server, uint8_t number, enum engine_capability capability,
                           struct err *err);

#endif
