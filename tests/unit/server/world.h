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
#include <sys/resource.h>

struct world {
    char directory[64];
    char password[64];
    struct server *server;
    struct service *service;
    struct arena arena;
    struct problems problems;
    struct err err;
    const char *extra; /* of the configuration */
    const char *user;
    const char *engine; /* "": what runs the tasks stands in `extra` */
};

/* Of each test file: secrets can be made, and the log tells of errors alone. */
int world_begin(void **state);

/* A world whose server has not begun. teardown. */
struct world *world_new(const char *engine, const char *extra);
/* Of each test: the world's begin and end. The second begin with more than the engine's 30 ms. */
int setup(void **state);
int setup_with(void **state, const char *engine, const char *extra);
int teardown(void **state);

/* A server in the world's folder, with its `engine` and `extra`. */
int world_try(struct world *world);
void world_start(struct world *world);
void world_stop(struct world *world);

struct engine *world_engine(struct world *world); /* the first */

/* A new password of "admin" is kept in the world, its context. */
int told(void *context, const char *user, const char *password, struct err *err);

/* One answer, waited for. */
struct wait {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    struct service_answer answer; /* its text is the next member */
    char text[300];
};
struct service_reply wait_init(struct wait *wait);
int wait_for(struct wait *wait); /* the answer's code; at most WAIT_S */
bool wait_is_done(struct wait *wait);

enum { WAIT_S = 60 };

/* Requests, and their durable answers. */
const char *job_text(struct world *world, const char *name, const char *more);
int submit(struct world *world, const char *text, struct job_id *job);
/* Not waited for; of the world's user, when it names none. The code of the port. */
int ask_submission(struct world *world, struct service_submission submission,
                   struct service_reply reply);
int act(struct world *world, enum service_action action, struct job_id job);
int change(struct world *world, struct store_change change);

/* Looks at once and again after each commit, of which it is told as the API is; at most WAIT_S. */
void commit_await(struct world *world, bool (*is_reached)(struct world *world, const void *what),
                  const void *what);

enum public_state shown(struct world *world, struct job_id job);
struct store_tasks tasks_of(struct world *world, struct job_id job); /* in the world's arena */
void wait_until(struct world *world, struct job_id job, enum public_state wanted);
void wait_until_tasks_run(struct world *world, struct job_id job); /* all of them */
/* Warnings of its story of this reason. */
size_t warnings(struct world *world, struct job_id job, const char *reason);

/* The value of one line of the metrics, and its becoming `wanted`: at most WAIT_S. */
uint64_t metric(struct world *world, const char *name);
void metric_await(struct world *world, const char *name, uint64_t wanted);

/* No file grows any more, and nothing is logged, until disk_empty; log_to(2) afterwards. */
struct rlimit disk_fill(void);
void disk_empty(struct rlimit before);

/* For a reload. */
struct server_config *config_of(struct world *world, const char *more);

/* Change the database behind the server's back; sqlite's code. */
int sql(struct world *world, const char *text);
/* The only job in quarantine, of which the trigger `bad` refuses rows: once the store takes them,
 * the next start ends the job as it should have ended. */
void quarantine_leave(struct world *world, struct job_id job, enum public_state ended);
/* What one number the database gives. */
int64_t number(struct world *world, const char *query);

#endif
