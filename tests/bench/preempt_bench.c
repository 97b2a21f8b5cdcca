/* preempt-bench: what it costs to find whom a gang preempts, at the placers' own seam.
 *
 * Every node is full of jobs of one GPU. A gang of higher priority needs half of all GPUs: as tasks
 * of one GPU, as tasks that take a whole node, and as unequal tasks: of a whole node and one that
 * takes more CPUs beside it, and of three and of two GPUs. Prints milliseconds of CPU and, for each
 * policy, how many times those of hived; asserts nothing.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "arguments.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "placement/hived.h"
#include "placement/simple.h"

enum { GPUS = 8, CPUS = 64, TASK_CPUS = 4, TASK_MIB = 1024, MEMBERS = 8, MEMBER_TASKS = 10000 };

static const char usage[] = "usage: preempt-bench [NODES]\n"
                            "NODES: only this many, 2 to 20000 (200, 300, 1000 and 10000)\n";
static const char *const policies[] = {"hived", "best-fit", "spread", "first-fit"};

static double cpu_ms(void)
{
    return (double)clock() * 1000 / CLOCKS_PER_SEC;
}

static void check(int code, const struct err *err)
{
    if (code == 0)
        return;
    fprintf(stderr, "preempt-bench: %s\n", err->text);
    exit(1);
}

static struct placer *placer_make(const char *policy, uint32_t nodes)
{
    struct placer *placer = placer_simple_new(policy);
    struct err err = {0};
    if (!placer)
        placer = placer_hived_new(NULL, &err);
    if (!placer) {
        fprintf(stderr, "preempt-bench: %s\n", err.text);
        exit(1);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%05u", i);
        const struct node_facts node = {.name = name,
                                        .cpu = CPUS,
                                        .memory_mib = CPUS * 1024,
                                        .gpu_count = GPUS,
                                        .gpu_type = "V100",
                                        .is_healthy = true};
        check(placer->ops->node_set(placer, (struct node_id){i}, &node, &err), &err);
    }
    return placer;
}

static struct placement_request request_of(const char *name, const struct placement_member *members,
                                           size_t count, int32_t priority)
{
    return (struct placement_request){.group = name,
                                      .virtual_cluster = "default",
                                      .priority = priority,
                                      .pinned_cell_id = "",
                                      .members = members,
                                      .member_count = count,
                                      .may_preempt = true};
}

static struct placement_result place(struct placer *placer, const struct placement_request *request,
                                     struct arena *arena)
{
    struct placement_result result;
    struct err err = {0};
    check(placer->ops->place(placer, request, arena, &result, &err), &err);
    return result;
}

static struct placement_slot
slot_placed(struct placer *placer, const struct placement_request *request, struct arena *arena)
{
    const struct placement_result result = place(placer, request, arena);
    if (result.kind == PLACEMENT_BIND)
        return result.slots[0];
    fprintf(stderr, "preempt-bench: %s\n", result.reason ? result.reason : "it would preempt");
    exit(1);
}

/* Jobs of one GPU on every device, the first of each node before the second of any. Hived has its
 * own idea of where they go. */
static void cluster_fill(struct placer *placer, uint32_t nodes, bool is_hived)
{
    const struct placement_member member = {1, TASK_CPUS, TASK_MIB, 1, "", ""};
    struct arena arena;
    struct err err = {0};
    arena_init(&arena);
    for (uint32_t i = 0; i < nodes * GPUS; i++) {
        char name[24];
        snprintf(name, sizeof name, "low~job%u/0", i);
        const struct placement_request request = request_of(name, &member, 1, 10);
        struct placement_slot slot = {
            .node = {i % nodes}, .gpu_count = 1, .gpus = (const uint16_t[]){(uint16_t)(i / nodes)}};
        if (is_hived)
            slot = slot_placed(placer, &request, &arena);
        check(placer->ops->commit(placer, &request, &slot, 1, false, &err), &err);
        arena_clear(&arena);
    }
    arena_release(&arena);
}

/* Equal tasks of so many GPUs that take half of all. */
static size_t equal_tasks(uint32_t nodes, uint32_t task_gpus, struct placement_member *members)
{
    size_t count = 0;
    for (uint32_t left = nodes / 2 * GPUS / task_gpus; left > 0; count++) {
        const uint32_t tasks = left < MEMBER_TASKS ? left : MEMBER_TASKS;
        members[count] = (struct placement_member){
            tasks, task_gpus * TASK_CPUS, task_gpus * TASK_MIB, task_gpus, "", ""};
        left -= tasks;
    }
    return count;
}

/* As many tasks of the one kind as of the other. */
static size_t unequal_tasks(uint32_t nodes, uint32_t first_gpus, uint32_t second_gpus,
                            struct placement_member *members)
{
    const uint32_t tasks = nodes / 2 * GPUS / (first_gpus + second_gpus);
    members[0] = (struct placement_member){
        tasks, first_gpus * TASK_CPUS, first_gpus * TASK_MIB, first_gpus, "", ""};
    members[1] = (struct placement_member){
        tasks, second_gpus * TASK_CPUS + 1, second_gpus * TASK_MIB, second_gpus, "", ""};
    return 2;
}

/* Milliseconds until the victims are known; 0 when there are none. */
static double gang_preempt(const char *policy, uint32_t nodes,
                           const struct placement_member *members, size_t count, size_t *victims)
{
    struct placer *placer = placer_make(policy, nodes);
    struct arena arena;
    cluster_fill(placer, nodes, policy == policies[0]);
    arena_init(&arena);
    const struct placement_request request = request_of("high~gang/0", members, count, 100);
    const double begin_ms = cpu_ms();
    const struct placement_result result = place(placer, &request, &arena);
    const double end_ms = cpu_ms();
    *victims = result.victim_count;
    if (result.kind != PLACEMENT_PREEMPT)
        printf("  (%s: no preemption)\n", policy);
    placer->ops->free(placer);
    arena_release(&arena);
    return end_ms - begin_ms;
}

static void gang_measure(uint32_t nodes, const struct placement_member *members, size_t count)
{
    double hived_ms = 0;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        size_t victims;
        const double ms = gang_preempt(policies[i], nodes, members, count, &victims);
        if (i == 0)
            hived_ms = ms;
        printf("  %s %.2f ms", policies[i], ms);
        if (i > 0 && hived_ms > 0)
            printf(" (%.3f x)", ms / hived_ms);
        printf(", %zu end", victims);
    }
    printf("\n");
    fflush(stdout);
}

static void measure(uint32_t nodes)
{
    static const uint32_t task_gpus[] = {1, GPUS}, pairs[][2] = {{GPUS, GPUS}, {3, 2}};
    struct placement_member members[MEMBERS];
    for (size_t t = 0; t < COUNT_OF(task_gpus); t++) {
        printf("%5u nodes, %6u tasks of %u GPU:", nodes, nodes / 2 * GPUS / task_gpus[t],
               task_gpus[t]);
        gang_measure(nodes, members, equal_tasks(nodes, task_gpus[t], members));
    }
    for (size_t t = 0; t < COUNT_OF(pairs); t++) {
        const size_t count = unequal_tasks(nodes, pairs[t][0], pairs[t][1], members);
        printf("%5u nodes, %6u tasks of %u GPU and as many of %u and another CPU:", nodes,
               members[0].count, pairs[t][0], pairs[t][1]);
        gang_measure(nodes, members, count);
    }
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {200, 300, 1000, 10000};
    arguments_check(argc, argv, 0, 1, 0, usage);
    if (argc > 1) {
        measure((uint32_t)argument_number(argv[1], 2, MEMBERS * MEMBER_TASKS / GPUS * 2, usage));
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        measure(sizes[i]);
    return 0;
}
