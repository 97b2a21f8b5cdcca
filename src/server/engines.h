/* engines.h — the engine that the configuration names. */
#ifndef SERVER_ENGINES_H
#define SERVER_ENGINES_H
#include "engine/engine.h"

struct err;
struct server_config;

/* `door`: a folder of the server's sockets, for tasks of this machine; NULL: none. A running
 * engine, to be freed by its own ops; events come to `sink` from then on. The engine's own errors:
 * ERR_UNSUPPORTED says what this machine lacks. */
int engine_of_config(const struct server_config *config, const char *door, struct engine_sink sink,
                     struct engine **engine, struct err *err);

#endif
