/* world.h — a server without HTTP in a folder of its own, and the requests of its tests. */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H
#include "base/arena.h"
#include "base/err.h"
#include "doc/problem.h"
#include "server/config.h"
#include "server/server.h"
#include "store/read.h"
#include <pthread.h>

struct world {
    char directory[64];
    char password[64];
    struct server *server;
    struct service *service;
    struct arena arena;
    struct problems problems;
    struct err err;
    const char *extra; /* of the configuration */
    const char *user, *engine;
};

/* Of each test: the world's begin and end. */
int setup(void **state);
int teardown(void **state);

/* A server in the world's folder, with its `engine` and `extra`. */
int world_try(struct world *world);
void world_start(struct world *world);
void world_stop(struct world *world);

/* A new password of "admin" is kept in the world, its context. */
int told(void *context, const char *user, const char *password, struct err *err);

/* Requests, and their durable answers. */
const char *job_text(struct world *world, const char *name, const char *more);
int submit(struct world *world, const char *text, struct job_id *job);
int act(struct world *world, enum service_action action, struct job_id job);
int change(struct world *world, struct store_change change);

/* Woken by each commit, as the API is. */
struct look {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned count;
};
void notified(void *context);

enum job_shown shown(struct world *world, struct job_id job);
/* At most 20 s. */
void wait_until(struct world *world, struct job_id job, enum job_shown wanted);

/* For a reload. */
struct server_config *config_of(struct world *world, const char *more);

/* Change the database behind the server's back; sqlite's code. */
int sql(struct world *world, const char *text);

#endif
