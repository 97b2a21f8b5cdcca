/* Many jobs wait, by what makes them different. */
#include "queue_scenes.h"

#include <stdio.h>

#include "base/memory.h"
#include "queue_world.h"

static void ends_run(struct bench *bench, const char *what)
{
    settle(bench, &bench->timer);
    bench->timer = (struct cost){0};
    bench->starts = 0;
    for (uint64_t i = 1; i <= ENDS; i++) {
        bench->now_ms += 100;
        end(bench, i, &bench->end);
        settle(bench, &bench->timer);
    }
    const struct cost *costs[] = {&bench->submit, &bench->end, &bench->timer};
    printf("%-34s", what);
    for (size_t i = 0; i < COUNT_OF(costs); i++)
        printf(" %8.1f %8.1f", costs[i]->count ? costs[i]->sum_us / (double)costs[i]->count : 0,
               costs[i]->worst_us);
    printf(" %8.1f %7.0f\n", (double)bench->timer.count / ENDS, (double)bench->starts);
    fflush(stdout);
    core_free(bench->core);
}

enum kind { EQUAL, LIMITS, MEMORY, DEMANDS, CLUSTERED, KINDS };

static const char *const kinds[KINDS] = {"equal", "time limits differ", "memory differs, CPUs free",
                                         "demands differ", "100 virtual clusters"};

static void bench_kind(struct bench *bench, enum kind kind)
{
    bool has_clusters = kind == CLUSTERED;
    char cluster[16];
    bench_begin(bench, has_clusters);
    fill(bench, has_clusters);
    for (uint32_t i = 0; i < bench->jobs; i++) {
        struct plan_role role = role_of(NODE_GPUS);
        struct plan plan = plan_of(&role, 1);
        if (kind == LIMITS)
            plan.time_limit_s = 1000 + i;
        if (kind == MEMORY) {
            role.gpu = 0;
            role.memory_mib = NODE_MIB / 2 + 1 + i % (NODE_MIB / 2);
        }
        if (kind == DEMANDS || kind == CLUSTERED) {
            role.cpu = 1 + i % NODE_CPU;
            role.gpu = 1 + i / NODE_CPU % NODE_GPUS;
            role.memory_mib = 1 + i;
        }
        snprintf(cluster, sizeof cluster, "vc%u", i % CLUSTERS);
        if (has_clusters)
            plan.virtual_cluster = cluster;
        submit(bench, &plan, &bench->submit);
        settle(bench, NULL);
    }
    ends_run(bench, kinds[kind]);
}

/* Small jobs go ahead of all that wait: each of them preempts one. Their submissions, with the
 * steps after them, and the ends of those who must go. */
static void bench_ahead(struct bench *bench)
{
    bench_begin(bench, false);
    fill(bench, false);
    for (uint32_t i = 0; i < bench->jobs; i++) {
        struct plan_role role = role_of(1 + i / NODE_CPU % NODE_GPUS);
        role.cpu = 1 + i % NODE_CPU;
        role.memory_mib = 1 + i;
        const struct plan plan = plan_of(&role, 1);
        submit(bench, &plan, NULL);
        settle(bench, NULL);
    }
    const struct plan_role role = role_of(NODE_GPUS);
    struct plan plan = plan_of(&role, 1);
    plan.priority = 100;
    for (uint32_t i = 0; i < ENDS; i++) {
        submit(bench, &plan, &bench->submit);
        settle(bench, &bench->submit);
    }
    ends_run(bench, "demands differ, others preempt");
}

/* All nodes are full of jobs of one GPU each, and some that need a whole node go ahead: each of
 * them preempts eight, and passes over those that others wait for. */
static void bench_crowd(struct bench *bench, bool is_gang)
{
    struct cost submission = {0}, steps = {0};
    bench_begin(bench, false);
    struct plan_role role = role_of(1);
    struct plan plan = plan_of(&role, 1);
    for (uint32_t i = 0; i < bench->nodes * NODE_GPUS; i++)
        submit(bench, &plan, NULL);
    settle(bench, NULL);
    role = role_of(NODE_GPUS);
    plan = plan_of(&role, 1);
    plan.priority = 100;
    plan.is_gang = is_gang;
    for (uint32_t i = 0; i < ENDS; i++) {
        submit(bench, &plan, &submission);
        settle(bench, &steps);
    }
    printf("\n%u jobs of one GPU run, and %u of %u GPUs preempt, %s gang\n",
           bench->nodes * NODE_GPUS, (uint32_t)ENDS, (uint32_t)NODE_GPUS,
           is_gang ? "each a" : "without");
    cost_print("their submissions", &submission);
    cost_print("steps after these", &steps);
    fflush(stdout);
    core_free(bench->core);
}

void bench_preemptors(struct bench *bench)
{
    bench_ahead(bench);
    bench_crowd(bench, true);
    bench_crowd(bench, false);
}

/* There is room, but ports are scarce: each shape asks for another number. */
static void bench_ports(struct bench *bench)
{
    bench_begin(bench, false);
    const struct plan_port most = {"data", 950, 0};
    struct plan_role role = role_of(1);
    role.ports = &most;
    role.port_count = 1;
    struct plan plan = plan_of(&role, 1);
    for (uint32_t i = 0; i < bench->nodes; i++) /* best fit might put two on one node */
        submit(bench, &plan, NULL);
    for (uint32_t i = 0; i < bench->jobs; i++) {
        struct plan_port ports[] = {{"a", 51 + i % 900, 0}, {"b", 1 + i / 900, 0}};
        role.ports = ports;
        role.port_count = 2;
        submit(bench, &plan, &bench->submit);
        settle(bench, NULL);
    }
    ends_run(bench, "ports differ, none are free");
}

/* It waits before the others. */
static void bench_gang(struct bench *bench, uint32_t gpu, const char *what)
{
    bench_begin(bench, false);
    fill(bench, false);
    struct plan plan = shape_plan(&many_groups, gpu);
    submit(bench, &plan, &bench->submit);
    settle(bench, NULL);
    struct plan_role role = role_of(NODE_GPUS);
    plan = plan_of(&role, 1);
    for (uint32_t i = 0; i < bench->jobs; i++)
        submit(bench, &plan, NULL);
    ends_run(bench, what);
}

void waits_run(struct bench *bench)
{
    printf("%-34s %17s %17s %17s %8s %7s\n", "the waiting jobs", "submission: worst", "end: worst",
           "timer: worst", "timers", "starts");
    for (int kind = 0; kind < KINDS; kind++)
        bench_kind(bench, (enum kind)kind);
    bench_ahead(bench);
    bench_ports(bench);
    bench_gang(bench, 1, "a gang of 256 groups, GPUs");
    bench_gang(bench, 0, "a gang of 256 groups, memory");
}
