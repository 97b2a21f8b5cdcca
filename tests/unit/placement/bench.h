/* bench.h — HiveD behind the core's seam, for tests: every step checks its invariants. */
#ifndef TESTS_PLACEMENT_BENCH_H
#define TESTS_PLACEMENT_BENCH_H
#include "base/arena.h"
#include "placement/placement.h"

struct bench {
    struct placer *placer;
    struct arena arena;
};

/* Four nodes of four GPUs each, of which two virtual clusters own two each. */
extern const char bench_four_nodes[];

void bench_init(struct bench *bench, const char *yaml); /* NULL: cells follow the nodes */
void bench_check(struct bench *bench);
void bench_release(struct bench *bench);

/* Node "n<id>" of V100, 1 GiB a CPU. */
int bench_node(struct bench *bench, uint32_t id, uint32_t cpu, uint32_t gpu, bool is_healthy);

/* `count` tasks of 64 MiB each, priority 10. */
struct placement_request bench_ask(struct bench *bench, const char *group, uint32_t count,
                                   uint32_t gpu, uint32_t cpu);
struct placement_result bench_place(struct bench *bench, const struct placement_request *request,
                                    bool is_taken);
/* What this placer shows of its cells and groups, in the bench's arena. */
const char *bench_cells(struct bench *bench, struct placer *placer);

#endif
