/* world.h — a local engine in a folder of its own, with the events it posts, for system tests. */
#ifndef TESTS_SYSTEM_ENGINE_WORLD_H
#define TESTS_SYSTEM_ENGINE_WORLD_H
#include "base/err.h"
#include "engine/engine.h"
#include "engine/local/local.h"
#include <pthread.h>

struct seen {
    enum engine_event_kind kind;
    uint64_t attempt;
    char reason[64], message[1024];
    struct exit_report exit; /* its texts point to `log` and `platform` */
    char *log, *platform;
    int64_t at_us; /* monotonic */
};

struct world {
    char folder[200];
    char image[256]; /* "dir:FOLDER/rootfs": busybox */
    char image_root[256];
    struct engine_local_config config;
    struct engine *engine;
    int64_t start_us;           /* how long its last start took */
    _Atomic int64_t trusted_ms; /* by which it removes what is old; 0: the wall clock's time */
    pthread_mutex_t lock;
    pthread_cond_t has_event;
    struct {
        struct seen *items;
        size_t count, room;
    } seen;
    struct node_facts node;
    char node_reason[256];
};

int64_t now_us(void);

/* Of a sink: the world's trusted time. `context`: the world. */
int64_t world_trusted(void *context);

/* Makes the folder and the image; false (with a line on stderr) when this machine cannot run
 * containers: then the test is skipped. */
bool world_open(struct world *world);
void world_close(struct world *world); /* kills what runs, removes the folder */

void world_start(struct world *world); /* the engine; fails the test when it does not start */
void world_stop(struct world *world);

/* What a start must end is killed there, and waited for no longer than ten seconds: what takes
 * longer is gone on with later. Both fail the test when the last start did not wait for so long. */

/* Until nothing is left in the control group of an attempt that no task explains. */
void world_remains_await(struct world *world, uint64_t attempt, uint32_t timeout_ms);
/* Did an attempt end as one that was never let go, and could not be undone in time? */
bool world_ended_undone(const struct world *world, const struct seen *end);

/* A task that runs `command` under skep-init. */
void world_create(struct world *world, uint64_t attempt, const char *command);

struct task_options {
    const char *image; /* NULL: world->image */
    const char *user, *password;
    const char *job, *virtual_cluster; /* NULL: "alice~job", none */
    uint32_t cpu;
    uint64_t memory_mib, shm_mib;
    const struct engine_mount *mounts;
    size_t mount_count;
    uint16_t port; /* given to the task under the label `web`; 0: none */
    const uint16_t *gpus;
    size_t gpu_count;
    bool is_gpu_simulated;
};
int world_create_with(struct world *world, uint64_t attempt, const char *command,
                      const struct task_options *options, struct err *err);

/* Wait for an event of this attempt (0: any), counted from the `from`-th event; NULL after
 * timeout_ms. Pointers stay valid until world_close. */
const struct seen *world_wait(struct world *world, enum engine_event_kind kind, uint64_t attempt,
                              size_t from, uint32_t timeout_ms);
size_t world_seen_count(struct world *world);

/* Until `words` are in the log of an attempt whose container has started, or will; the test fails
 * after timeout_ms, or when the attempt ends without them. */
void world_log_await(struct world *world, uint64_t attempt, const char *words, uint32_t timeout_ms);

/* While no engine runs: until the monitor of a task has ended, and written down what it knows. */
void world_monitor_await(const struct world *world, uint64_t attempt, uint32_t timeout_ms);

bool world_is_listed(struct world *world, uint64_t attempt);

/* Run a shell command; its exit code. */
int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The whole output of a shell command, trimmed; in a static buffer. */
const char *shell_output(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Run the tests whose names match one of the patterns argv[1] …, all without any, between `setup`
 * and `teardown`; a pattern that matches none fails. Tasks that a test leaves running are killed
 * behind it: a fork bomb of one that failed would have all others fail, too. Returns the exit code
 * of the program. */
struct CMUnitTest;
int world_tests_run(struct world *world, int argc, char **argv, const struct CMUnitTest *tests,
                    size_t count, int (*setup)(void **state), int (*teardown)(void **state));

#endif
