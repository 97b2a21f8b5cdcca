/* hived_bench.c — decisions per CPU second, beside the figures of the original.
 *
 * usage: hived-bench [--gangs N] [--opp PERCENT] [--check] [GPUS…]
 *
 * The workload that the original was measured with: racks of 16 nodes of 8 GPUs, eight virtual
 * clusters owning all nodes, mixed gangs, fill to 85 %, then churn of N gangs (200,000: at every
 * size each is replaced several times). One line a size and node list (none, all). A pod is one
 * decision that binds and one commit; how many decisions end in a wait or with victims depends on
 * the size (at 102,400 GPUs four times as many as pods), so decisions are counted, too; releases
 * count in churn's time. The request goes in as a structure here, as annotation text there.
 */
#include "../arguments.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/random.h"
#include "hived/hived.h"
#include "hived_view.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct figures { /* of the original; 0: not measured */
    uint32_t gpus;
    bool is_all;
    double build, events, fill, churn, schedule_p50, schedule_p99, commit_p50, commit_p99, release,
        mib;
};

static const struct figures original[] = {
    {128, false, 0.00, 0.00, 5346, 4414, 30, 300, 33, 330, 32, 28},
    {128, true, 0.00, 0.00, 5290, 4282, 32, 316, 33, 322, 32, 27},
    {1024, false, 0.02, 0.01, 5297, 4630, 33, 199, 37, 253, 34, 36},
    {1024, true, 0.02, 0.01, 4660, 4139, 46, 275, 37, 248, 33, 39},
    {4096, false, 0.08, 0.07, 3866, 3067, 50, 192, 58, 512, 39, 76},
    {4096, true, 0.07, 0.07, 2759, 2345, 100, 398, 66, 568, 43, 74},
    {16384, false, 0.86, 1.01, 1617, 1450, 121, 335, 201, 3694, 59, 197},
    {16384, true, 0.86, 1.02, 941, 873, 327, 1458, 218, 3004, 65, 216},
    {65536, false, 16.27, 20.15, 449, 341, 647, 9569, 1060, 45934, 78, 664},
    {65536, true, 14.85, 21.52, 252, 201, 1472, 14207, 1016, 65400, 78, 730},
    {102400, false, 42.28, 53.04, 285, 302, 735, 1145, 1341, 23072, 62, 1117},
};

/* Of so many gangs and ends one is timed: to look at the clock costs a fifth of a decision. */
enum { TIMED = 8 };

struct samples {
    uint32_t *items; /* nanoseconds */
    size_t count, room;
};

struct gang {
    uint64_t id;
    uint32_t pods, leaves;
};

struct bench {
    struct hived *hived;
    struct random random;
    struct arena arena;
    struct {
        struct gang *items;
        size_t count, room;
    } live;
    const char **nodes;
    struct hived_scope scope;
    uint64_t gpus, used, pods, waits, next_gang, ends;
    unsigned opp;
    struct samples schedule, commit, release;
};

static double cpu_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t clock_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void sample(struct samples *samples, uint64_t since)
{
    *ARRAY_ADD(samples) = (uint32_t)(clock_now() - since);
}

static int number_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double quantile(struct samples *samples, double q)
{
    if (!samples->count)
        return 0;
    qsort(samples->items, samples->count, sizeof *samples->items, number_compare);
    return samples->items[(size_t)((double)(samples->count - 1) * q)] / 1e3;
}

/* Seconds that all of them took, of which one in TIMED was timed. */
static double total_s(const struct samples *samples)
{
    double sum = 0;
    for (size_t i = 0; i < samples->count; i++)
        sum += samples->items[i];
    return sum * TIMED / 1e9;
}

/* --- the cluster --- */

static const struct {
    const char *name, *child;
    uint32_t number;
    bool is_node;
} types[] = {{"PAIR", "GPU", 2, false}, {"SOCK", "PAIR", 2, false}, {"NODE", "SOCK", 2, true},
             {"N2", "NODE", 2, false},  {"N4", "N2", 2, false},     {"N8", "N4", 2, false},
             {"RACK", "N8", 2, false}};

static void names_write(struct arena *arena, struct hived_cell_spec *cell, unsigned level,
                        uint32_t *next)
{
    if (level == 0) {
        cell->address = arena_format(arena, "n%06u", (*next)++);
        return;
    }
    cell->child_count = 2;
    cell->children = ARENA_ARRAY(arena, struct hived_cell_spec, 2);
    names_write(arena, &cell->children[0], level - 1, next);
    names_write(arena, &cell->children[1], level - 1, next);
}

static struct hived_config *config_make(uint32_t gpus)
{
    struct hived_config *config = hived_config_new();
    struct arena *arena = &config->arena;
    uint32_t racks = gpus / 128, next = 0;
    config->types = ARENA_ARRAY(arena, struct hived_type, COUNT_OF(types) + 1);
    for (size_t i = 0; i < COUNT_OF(types); i++)
        config->types[config->type_count++] =
            (struct hived_type){.name = types[i].name,
                                .child_name = types[i].child,
                                .child_number = types[i].number,
                                .is_node_level = types[i].is_node};
    config->cells = ARENA_ARRAY(arena, struct hived_cell_spec, racks);
    config->cell_count = racks;
    for (uint32_t i = 0; i < racks; i++) {
        config->cells[i].type_name = "RACK";
        names_write(arena, &config->cells[i], 4, &next);
    }
    config->vcs = ARENA_ARRAY(arena, struct hived_vc_spec, 8);
    config->vc_count = 8;
    for (uint32_t i = 0; i < 8; i++) {
        config->vcs[i].name = arena_format(arena, "vc%u", i);
        config->vcs[i].cells = ARENA_NEW(arena, struct hived_vc_cell);
        config->vcs[i].cells[0] =
            (struct hived_vc_cell){.path = "RACK.N8.N4.N2.NODE", .number = racks * 16 / 8};
        config->vcs[i].cell_count = 1;
    }
    struct problems problems;
    struct arena scratch;
    arena_init(&scratch);
    problems_init(&problems, &scratch);
    if (!hived_config_finish(config, &problems)) {
        fprintf(stderr, "%s\n", problems.items[0].text);
        exit(1);
    }
    problems_release(&problems);
    arena_release(&scratch);
    return config;
}

/* --- gangs --- */

static const char *const vc_names[] = {"vc0", "vc1", "vc2", "vc3", "vc4", "vc5", "vc6", "vc7"};

/* Decimal, with a NUL; printf would cost as much as a decision. */
static void number_write(char *at, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        *at++ = digits[--count];
    *at = 0;
}

enum { NAME_SIZE = 48 };

struct names { /* of a gang, and of its pods in turn */
    char gang[NAME_SIZE], pod[NAME_SIZE];
    size_t length;
};

static void names_begin(struct names *names, const struct gang *gang)
{
    names->gang[0] = 'g';
    number_write(&names->gang[1], gang->id);
    names->length = strlen(names->gang);
    memcpy(names->pod, names->gang, names->length);
    names->pod[names->length] = '.';
}

static void names_pod(struct names *names, uint32_t pod)
{
    number_write(&names->pod[names->length + 1], pod);
}

static struct gang gang_next(struct bench *bench, struct hived_request *request,
                             struct hived_member *member)
{
    static const struct {
        uint32_t below, pods, leaves;
    } kinds[] = {{700, 1, 1}, {780, 1, 2}, {860, 1, 4}, {960, 1, 8},
                 {980, 2, 8}, {995, 4, 8}, {1000, 8, 8}};
    uint64_t r = random_below(&bench->random, 1000);
    size_t kind = 0;
    while (r >= kinds[kind].below)
        kind++;
    struct gang gang = {bench->next_gang++, kinds[kind].pods, kinds[kind].leaves};
    *member = (struct hived_member){.pods = gang.pods, .leaves = gang.leaves};
    *request = (struct hived_request){
        .leaf_type = "GPU", .members = member, .member_count = 1, .leaves = gang.leaves};
    request->priority = random_below(&bench->random, 100) < bench->opp ? -1 : 0;
    request->virtual_cluster = vc_names[random_below(&bench->random, 8)];
    return gang;
}

static void submit(struct bench *bench)
{
    struct hived_request request;
    struct hived_member member;
    struct gang gang = gang_next(bench, &request, &member);
    struct names names;
    names_begin(&names, &gang);
    request.group = names.gang;
    bool is_timed = bench->next_gang % TIMED == 0; /* its first pod */
    struct hived_ask ask = {.request = &request,
                            .pod = names.pod,
                            .phase = HIVED_FILTERING,
                            .scope = bench->scope.count ? &bench->scope : NULL};
    for (uint32_t i = 0; i < gang.pods; i++) {
        struct hived_result result;
        struct err err;
        names_pod(&names, i);
        arena_clear(&bench->arena);
        uint64_t start = is_timed ? clock_now() : 0;
        if (hived_schedule(bench->hived, &ask, &bench->arena, &result, &err)) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        if (is_timed)
            sample(&bench->schedule, start);
        if (result.kind != HIVED_BIND) {
            bench->waits++;
            return;
        }
        start = is_timed ? clock_now() : 0;
        if (hived_commit(bench->hived, &ask, &result.placement, result.slot, &err)) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        if (is_timed)
            sample(&bench->commit, start);
        is_timed = false;
        bench->pods++;
    }
    bench->used += (uint64_t)gang.pods * gang.leaves;
    *ARRAY_ADD(&bench->live) = gang;
}

static void end_one(struct bench *bench)
{
    size_t at = (size_t)random_below(&bench->random, bench->live.count);
    struct gang gang = bench->live.items[at];
    bench->live.items[at] = bench->live.items[--bench->live.count];
    struct names names;
    names_begin(&names, &gang);
    for (uint32_t i = 0; i < gang.pods; i++) {
        names_pod(&names, i);
        bool is_timed = bench->ends++ % TIMED == 0;
        uint64_t start = is_timed ? clock_now() : 0;
        hived_pod_end_named(bench->hived, names.gang, names.pod);
        if (is_timed)
            sample(&bench->release, start);
    }
    bench->used -= (uint64_t)gang.pods * gang.leaves;
}

static void fill(struct bench *bench)
{
    while (bench->used * 100 < bench->gpus * 85)
        submit(bench);
}

static const struct figures *original_of(uint32_t gpus, bool is_all)
{
    for (size_t i = 0; i < COUNT_OF(original); i++)
        if (original[i].gpus == gpus && original[i].is_all == is_all)
            return &original[i];
    return NULL;
}

static void line_print(const char *who, const struct figures *f)
{
    printf("%7u %-4s %-8s %6.2f /%6.2f %9.0f %9.0f %8.1f /%8.1f %8.1f /%8.1f %8.1f %6.0f\n",
           f->gpus, f->is_all ? "all" : "none", who, f->build, f->events, f->fill, f->churn,
           f->schedule_p50, f->schedule_p99, f->commit_p50, f->commit_p99, f->release, f->mib);
    fflush(stdout);
}

static void cluster_start(struct bench *bench, struct figures *figures)
{
    double start = cpu_now();
    bench->hived = hived_new(config_make(figures->gpus));
    figures->build = cpu_now() - start;
    start = cpu_now();
    uint32_t nodes = hived_node_count(bench->hived);
    for (uint32_t i = 0; i < nodes; i++)
        hived_node_set(bench->hived, hived_node_name(bench->hived, i), true);
    figures->events = cpu_now() - start;
    bench->nodes = mem_zero(nodes, sizeof *bench->nodes);
    for (uint32_t i = 0; i < nodes; i++)
        bench->nodes[i] = hived_node_name(bench->hived, i);
    bench->scope =
        (struct hived_scope){.nodes = bench->nodes, .count = figures->is_all ? nodes : 0};
}

struct span { /* of work: CPU seconds, pods bound, decisions that bound nothing */
    double cpu_s;
    uint64_t pods, waits;
};

static struct span span_begin(const struct bench *bench)
{
    return (struct span){cpu_now(), bench->pods, bench->waits};
}

static void span_end(struct span *span, const struct bench *bench)
{
    span->cpu_s = cpu_now() - span->cpu_s;
    span->pods = bench->pods - span->pods;
    span->waits = bench->waits - span->waits;
}

static void results_print(struct bench *bench, struct figures *figures, const struct span *filled,
                          const struct span *churned)
{
    const struct figures *before = original_of(figures->gpus, figures->is_all);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    figures->mib = (double)usage.ru_maxrss / 1024;
    figures->fill = (double)filled->pods / filled->cpu_s;
    figures->churn = (double)churned->pods / churned->cpu_s;
    figures->schedule_p50 = quantile(&bench->schedule, 0.5);
    figures->schedule_p99 = quantile(&bench->schedule, 0.99);
    figures->commit_p50 = quantile(&bench->commit, 0.5);
    figures->commit_p99 = quantile(&bench->commit, 0.99);
    figures->release = quantile(&bench->release, 0.5);
    line_print("here", figures);
    if (before)
        line_print("original", before);
    printf(
        "%7u %-4s %-8s p99 of release %.1f us, worst of schedule %.1f, commit %.1f, release "
        "%.1f; decisions per CPU s: fill %.0f, churn %.0f (%llu and %llu of them bound nothing); "
        "pods per CPU s in churn without the releases: %.0f\n",
        figures->gpus, figures->is_all ? "all" : "none", "also", quantile(&bench->release, 0.99),
        quantile(&bench->schedule, 1), quantile(&bench->commit, 1), quantile(&bench->release, 1),
        (double)(filled->pods + filled->waits) / filled->cpu_s,
        (double)(churned->pods + churned->waits) / churned->cpu_s,
        (unsigned long long)filled->waits, (unsigned long long)churned->waits,
        (double)churned->pods / (churned->cpu_s - total_s(&bench->release)));
}

static void run(uint32_t gpus, bool is_all, uint64_t gangs, unsigned opp, bool does_check)
{
    struct bench bench = {.gpus = gpus, .opp = opp, .random = {12345}};
    struct figures figures = {.gpus = gpus, .is_all = is_all};
    arena_init(&bench.arena);
    cluster_start(&bench, &figures);
    struct span filled = span_begin(&bench);
    fill(&bench);
    span_end(&filled, &bench);
    uint64_t placed = bench.next_gang - bench.waits;
    struct span churned = span_begin(&bench);
    while (bench.next_gang - bench.waits - placed < gangs) {
        end_one(&bench);
        fill(&bench);
    }
    span_end(&churned, &bench);
    results_print(&bench, &figures, &filled, &churned);
    struct err err;
    if (does_check && hived_check(bench.hived, &err))
        printf("%s\n", err.text);
    fflush(stdout);
    hived_free(bench.hived);
}

/* Each run in its own process, so that peak memory is its own. */
static void run_apart(uint32_t gpus, bool is_all, uint64_t gangs, unsigned opp, bool does_check)
{
    pid_t child = fork();
    if (child == 0) {
        run(gpus, is_all, gangs, opp, does_check);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {128, 1024, 4096, 16384, 65536, 102400};
    uint64_t gangs = 200000;
    unsigned opp = 20;
    bool is_given = false, does_check = false;
    static const char usage[] = "usage: hived-bench [--gangs N] [--opp PERCENT] [--check] [GPUS…]  "
                                "   (200000, 20, sizes from "
                                "128 to 102400)\n";
    arguments_check(argc, argv, 0, argc, 1, usage);
    printf("   GPUs list who       set-up CPU s   fill/CPU s churn/CPUs  schedule us p50/p99  "
           "commit us p50/p99  release    MiB\n");
    fflush(stdout);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--gangs") && i + 1 < argc) {
            gangs = argument_number(argv[++i], 1, 1000000000, usage);
        } else if (!strcmp(argv[i], "--opp") && i + 1 < argc) {
            opp = (unsigned)argument_number(argv[++i], 0, 100, usage);
        } else if (!strcmp(argv[i], "--check")) {
            does_check = true;
        } else {
            is_given = true;
            uint32_t gpus = (uint32_t)argument_number(argv[i], 128, 1000000, usage);
            run_apart(gpus, false, gangs, opp, does_check);
            run_apart(gpus, true, gangs, opp, does_check);
        }
    }
    for (size_t i = 0; i < COUNT_OF(sizes) && !is_given; i++) {
        run_apart(sizes[i], false, gangs, opp, does_check);
        run_apart(sizes[i], true, gangs, opp, does_check);
    }
    return 0;
}
