/* state.h — what the files of the fake engine share: its nodes and containers, and what is due.
 *
 * Edge, internal. All is under the engine's lock. life.c has what happens to containers and nodes
 * as time passes; fake.c the port, and what only a fake can do.
 */
#ifndef ENGINE_FAKE_STATE_H
#define ENGINE_FAKE_STATE_H
#include "base/arena.h"
#include "base/map.h"
#include "core/timers.h"
#include "engine/engine.h"
#include "engine/fake/fake.h"
#include <pthread.h>

enum phase { PHASE_CREATED, PHASE_PREPARING, PHASE_RUNNING, PHASE_ENDED };

/* What is due. */
enum due { DUE_PREPARE, DUE_START, DUE_END, DUE_KILL, DUE_NODES, DUE_REPORT, DUE_AGAIN, DUE_LOSE };

enum { SIGNAL_KILL = 9, SIGNAL_TERM = 15, SIGNAL_BASE = 128 };

struct fake_container {
    struct attempt_id attempt; /* 0: free entry */
    enum phase phase;
    uint32_t node;
    const struct engine_fake_rule *rule;
    bool is_killed, is_refused;
    struct exit_report exit;
    char *log;
    int64_t created_ms;
    struct { /* our ends of the followers' sockets */
        int *items;
        size_t count, room;
    } followers;
};

struct fake_node {
    char name[64];
    const char *refusal; /* NULL: it takes what it is asked to; in the arena */
    uint32_t refusals;   /* how often more; 0: always */
    bool is_lost;
    uint64_t gpus_lost; /* a bit for each */
};

struct fake {
    struct engine engine;
    struct engine_sink sink;
    struct engine_fake_config config;
    struct engine_fake_rule *rules;
    struct arena arena; /* strings of the configuration */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool is_ending;
    int64_t now_ms; /* virtual */
    int64_t origin_ms;
    struct timers timers;
    struct id_map attempts;
    struct {
        struct fake_container *items;
        size_t count, room;
    } containers;
    struct {
        uint32_t *items;
        size_t count, room;
    } free_containers;
    struct fake_node *nodes;
};

/* What is due for an attempt, or a node, is one timer for each kind. */
enum { DUE_BITS = 8 };

static inline uint64_t fake_due_key(uint64_t key, enum due due)
{
    return key << DUE_BITS | due;
}

int64_t fake_now_ms(const struct fake *fake);
void fake_due(struct fake *fake, int64_t after_ms, uint64_t key, enum due due);

/* NULL: there is none. */
struct fake_container *fake_container_find(struct fake *fake, struct attempt_id attempt);
void fake_container_drop(struct fake *fake, struct fake_container *container);
void fake_container_end(struct fake_container *container, int32_t code, int32_t signal);
/* A node goes, with its containers, or comes back. */
void fake_node_turn(struct fake *fake, uint32_t node, bool is_lost);

/* All that is due until `now_ms`; without the lock while it is posted. Returns the number posted.
 */
size_t fake_run(struct fake *fake, int64_t now_ms);

#endif
