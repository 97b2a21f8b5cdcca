/* yard.h — an engine whose containers outlive the server, and do what the test says.
 *
 * The linker puts it in the place of every engine (`--wrap`, see meson.build). It has three
 * machines, and no thread: what happens there is told on the caller's thread. While the power is
 * off (faults.h) it does nothing that it is asked for. Nothing is made twice: the first thing that
 * the server does wrong is kept, in words.
 */
#ifndef TEST_YARD_H
#define TEST_YARD_H
#include "model/ids.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YARD_NODES = 3, YARD_CPU = 4, YARD_GPUS = 2, YARD_CONTAINERS_MAX = 400 };

enum yard_phase { YARD_MADE, YARD_RUNS, YARD_ENDED };

struct yard_container {
    struct attempt_id attempt;
    char job[80], role[32]; /* of which task */
    uint32_t index;
    unsigned node;
    enum yard_phase phase;
    bool is_killed, is_told; /* its end is asked for; it has been told */
    bool is_refused, is_missing;
    int32_t exit_code;
    uint64_t gpus; /* a bit for each */
    uint32_t cpu;
};

void yard_clear(void);
const char *yard_wrong(void); /* "": nothing */

/* Copies of what there is, at most YARD_CONTAINERS_MAX. */
size_t yard_containers(struct yard_container *containers);
unsigned yard_creates(void);

/* What becomes of one. False: there is none in a phase for it. */
bool yard_start(struct attempt_id attempt);
bool yard_end(struct attempt_id attempt, int32_t exit_code);
bool yard_vanish(struct attempt_id attempt); /* behind everybody's back */
bool yard_refuse(struct attempt_id attempt); /* its node does not take it after all */
/* It ends, and nobody is told before a server lists what there is. */
bool yard_end_unheard(struct attempt_id attempt, int32_t exit_code);

/* What was asked to end ends, and is told. How many were. */
size_t yard_kills_settle(void);

/* The node goes, with its containers; is not healthy; or is as it was. */
enum yard_node { YARD_NODE_FINE, YARD_NODE_SICK, YARD_NODE_GONE };
void yard_node_set(unsigned node, enum yard_node state);
void yard_node_tell(unsigned node); /* again */
const char *yard_node_name(unsigned node);

/* The next creations are refused with this code; 0: taken, and nothing comes of them. */
void yard_creates_fail(unsigned count, int code);

/* Things are told that are so already, or of what there is none. */
void yard_tell_again(struct attempt_id attempt);
void yard_tell_stranger(struct attempt_id attempt);

#endif
