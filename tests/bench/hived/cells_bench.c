/* cells_bench.c — what the automatic cells cost: set-up, a machine that joins, and tasks of one
 * shape placed one by one until the cluster is full, then replaced at random.
 *
 * usage: cells-bench MACHINES CPUS GPUS TASK_CPUS [TASK_GPUS]
 */
#include "../arguments.h"
#include "base/arena.h"
#include "base/memory.h"
#include "base/random.h"
#include "hived/hived.h"
#include "placement/hived.h"
#include <sys/resource.h>
#include <time.h>

enum { TASKS_MAX = 200000, CHURN_MAX = 100000, CHURN_MS = 3000, MIB_A_CPU = 4096 };

static const char usage[] =
    "usage: cells-bench MACHINES CPUS GPUS TASK_CPUS [TASK_GPUS]\n"
    "The automatic cells of so many equal machines; tasks until they are full, then replaced.\n";

struct bench {
    struct placer *placer;
    struct arena arena;
    uint32_t cpu, gpu;
    struct placement_member task;
};

struct samples {
    double *items; /* seconds */
    size_t count;
};

struct figures {
    struct samples decide, commit, release;
};

static double cpu_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void node_set(struct bench *bench, uint32_t id)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", id);
    struct node_facts node = {.name = name,
                              .cpu = bench->cpu,
                              .memory_mib = (uint64_t)bench->cpu * MIB_A_CPU,
                              .gpu_count = bench->gpu,
                              .gpu_type = bench->gpu ? "V100" : "",
                              .is_healthy = true};
    if (bench->placer->ops->node_set(bench->placer, (struct node_id){id}, &node, NULL))
        abort();
}

/* False: there is no room. */
static bool task_start(struct bench *bench, uint32_t id, struct figures *figures)
{
    const struct placer_ops *ops = bench->placer->ops;
    char group[16];
    snprintf(group, sizeof group, "g%u", id);
    struct placement_request request = {.group = group,
                                        .virtual_cluster = "default",
                                        .priority = 10,
                                        .pinned_cell_id = "",
                                        .members = &bench->task,
                                        .member_count = 1};
    struct placement_result result;
    arena_clear(&bench->arena);
    double before = cpu_now();
    if (ops->place(bench->placer, &request, &bench->arena, &result, NULL))
        abort();
    double decided = cpu_now();
    if (result.kind != PLACEMENT_BIND)
        return false;
    if (ops->commit(bench->placer, &request, result.slots, result.slot_count, false, NULL))
        abort();
    figures->decide.items[figures->decide.count++] = decided - before;
    figures->commit.items[figures->commit.count++] = cpu_now() - decided;
    return true;
}

static void task_end(struct bench *bench, uint32_t id, struct figures *figures)
{
    char group[16];
    snprintf(group, sizeof group, "g%u", id);
    double before = cpu_now();
    bench->placer->ops->release_group(bench->placer, group);
    figures->release.items[figures->release.count++] = cpu_now() - before;
}

static int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void samples_print(const char *name, struct samples *samples)
{
    size_t count = samples->count;
    if (!count)
        return;
    qsort(samples->items, count, sizeof *samples->items, double_compare);
    printf("  %s %.1f / %.1f µs", name, samples->items[count / 2] * 1e6,
           samples->items[count * 99 / 100] * 1e6);
    samples->count = 0;
}

static void figures_print(const char *what, size_t count, struct figures *figures)
{
    printf("%s %zu tasks, p50 / p99:", what, count);
    samples_print("decision", &figures->decide);
    samples_print("commit", &figures->commit);
    samples_print("release", &figures->release);
    printf("\n");
}

static void churn(struct bench *bench, uint32_t *live, uint32_t count, struct figures *figures)
{
    struct random random = {1};
    uint32_t next = count, turns = 0;
    double end = cpu_now() + CHURN_MS / 1e3;
    for (; count && turns < CHURN_MAX && cpu_now() < end; turns++) {
        uint32_t at = (uint32_t)random_below(&random, count);
        task_end(bench, live[at], figures);
        live[at] = next++;
        if (!task_start(bench, live[at], figures))
            abort(); /* there is the room of the one that ended */
    }
    figures_print("churn", turns, figures);
}

static void setup(struct bench *bench, uint32_t machines)
{
    double start = cpu_now();
    for (uint32_t i = 0; i < machines; i++)
        node_set(bench, i);
    const struct hived *hived = placer_hived_state(bench->placer);
    double built = cpu_now();
    struct rusage usage_now;
    getrusage(RUSAGE_SELF, &usage_now);
    printf("set-up %.3f s, %ld MiB;", built - start, usage_now.ru_maxrss / 1024);
    for (uint32_t i = 0; i < hived_leaf_type_count(hived); i++)
        printf(" %s", hived_leaf_type_name(hived, i));
    start = cpu_now();
    node_set(bench, machines);
    placer_hived_state(bench->placer);
    double first = cpu_now() - start; /* makes room for as many again */
    start = cpu_now();
    node_set(bench, machines + 1);
    placer_hived_state(bench->placer);
    printf("; the next machine joins in %.1f ms, the one after in %.3f ms\n", first * 1e3,
           (cpu_now() - start) * 1e3);
}

int main(int argc, char **argv)
{
    arguments_check(argc, argv, 4, 5, 0, usage);
    uint32_t machines = (uint32_t)argument_number(argv[1], 1, 100000, usage);
    struct bench bench = {.cpu = (uint32_t)argument_number(argv[2], 1, 1 << 20, usage),
                          .gpu = (uint32_t)argument_number(argv[3], 0, 64, usage)};
    bench.task = (struct placement_member){
        .count = 1,
        .cpu = (uint32_t)argument_number(argv[4], 1, 1 << 20, usage),
        .memory_mib = 64,
        .gpu = argc > 5 ? (uint32_t)argument_number(argv[5], 0, 64, usage) : 0,
        .sku_type = "",
        .within_one_cell = ""};
    bench.placer = placer_hived_new(NULL, NULL);
    arena_init(&bench.arena);
    setup(&bench, machines);
    size_t room = TASKS_MAX > CHURN_MAX ? TASKS_MAX : CHURN_MAX;
    struct figures figures = {{mem_zero(room, sizeof(double)), 0},
                              {mem_zero(room, sizeof(double)), 0},
                              {mem_zero(room, sizeof(double)), 0}};
    uint32_t *live = mem_zero(TASKS_MAX, sizeof *live), count = 0;
    while (count < TASKS_MAX && task_start(&bench, count, &figures)) {
        live[count] = count;
        count++;
    }
    figures_print("fill", count, &figures);
    churn(&bench, live, count, &figures);
    mem_free(live);
    mem_free(figures.decide.items);
    mem_free(figures.commit.items);
    mem_free(figures.release.items);
    bench.placer->ops->free(bench.placer);
    arena_release(&bench.arena);
    return 0;
}
