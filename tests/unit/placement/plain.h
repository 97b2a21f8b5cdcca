/* plain.h — a plain placer, asked in pieces and at once, for tests. */
#ifndef TESTS_PLACEMENT_PLAIN_H
#define TESTS_PLACEMENT_PLAIN_H
#include "base/arena.h"
#include "placement/placement.h"

enum { PLAIN_GPUS = 4, PLAIN_PIECES_MAX = 300 };

extern const char *const plain_policies[3];
/* One task on all GPUs of a node. */
extern const struct placement_member plain_small;
/* What the placer answers lives here, for one test. */
extern struct arena plain_arena;

int plain_setup(void **state);
int plain_teardown(void **state);

/* A node of 16 CPUs and four GPUs, which may be changed before it is told. */
struct node_facts plain_node(void);
void plain_node_set(struct placer *placer, uint32_t id, const struct node_facts *node);
/* The same with its health. */
void plain_node_is(struct placer *placer, uint32_t id, bool is_healthy);
void plain_node_cpu(struct placer *placer, uint32_t id, uint32_t cpu); /* healthy */

struct placement_request plain_ask(const char *group, const struct placement_member *members,
                                   size_t count, int32_t priority);
struct placement_result plain_place(struct placer *placer, const struct placement_request *request);
/* What is bound is taken. */
void plain_take(struct placer *placer, const struct placement_request *request,
                const struct placement_result *result);
/* `count` jobs named small0, small1, … of priority 10 start. */
void plain_fill(struct placer *placer, const struct placement_member *member, uint32_t count);

/* As often as it is cut: in so many pieces. */
struct placement_result plain_search(struct placer *placer, const struct placement_request *request,
                                     uint32_t *pieces);
/* By a copy of the placer, in one piece. */
struct placement_result plain_place_at_once(struct placer *placer,
                                            struct placement_request request);
void plain_results_equal(const struct placement_result *a, const struct placement_result *b);
/* The placer's tables say the same. */
void plain_check(struct placer *placer);

#endif
