/* engines.h — the engine that the configuration names. */
#ifndef SERVER_ENGINES_H
#define SERVER_ENGINES_H
#include "engine/engine.h"

struct err;
struct server_config;

int engine_of_config(const struct server_config *config, struct engine_sink sink,
                     struct engine **engine, struct err *err);

#endif
