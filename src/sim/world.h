/* world.h — a simulated world while it runs: what its files share.
 *
 * Private to sim.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H
#include "base/arena.h"
#include "base/buf.h"
#include "base/random.h"
#include "core/core.h"
#include "core/replay.h"
#include "sim/sim.h"

struct engine;
struct err;
struct ledger;

/* An event of the engine on its way to the core; what it points to is in the mail's arena. */
struct sim_mail {
    struct event event;
    struct arena arena;
};

struct sim {
    const struct sim_config *config;
    struct random random;   /* of what happens from outside */
    struct random accident; /* of restarts: without them the same happens from outside */
    struct random closing;  /* of virtual clusters that are closed and opened */
    struct core *core;
    struct core_config core_config;
    struct engine *engine;
    struct rows *rows;
    struct ledger *ledger;
    struct output output;
    struct sim_result result;
    struct {
        struct sim_mail **items;
        size_t count, room;
    } mails;
    struct {
        struct {
            size_t at, length;
        } * items;
        size_t count, room;
    } log;
    struct buf log_bytes, text;
    int64_t now_ms; /* from 0 */
    int64_t wake_ms, action_ms;
    uint32_t pass_interruptions; /* so often since a pass over the queue began … */
    uint32_t pass_steps;         /* … and its steps since then that nothing came between */
    uint64_t request;
    bool is_ending, loses_commands;
    int wrong; /* a code: the ledger, or the core's check of its placer, in `err` */
    struct err *err;
};

/* sim.c: whose node it is, by its number. */
const char *sim_node_engine(const struct sim *sim, const char *node);

/* sim.c: one event through the core, and all that follows at once; returns the answer's code, and
 * the job that it is of (may be NULL). */
int sim_step(struct sim *sim, struct event *event, uint32_t *job);

#endif
