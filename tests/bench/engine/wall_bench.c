/* wall-bench — what the walls between tasks cost, with and without each of them by turns in one
 * run.
 *
 * usage: wall-bench [RUNS [WAY…]]     (100, all ways); SKEP_TEST_RUNTIME=crun or runc
 *
 * Starts: from the call to STARTED, and to the moment when the engine has forgotten the task and
 * all of its files are gone, one at a time, RUNS times; and the processor time of skepd's part.
 * Each way stands beside the plain start of the same round: the differences are those of pairs,
 * with the interval in which the median of all such pairs lies by 95 of 100.
 * Rates: as many starts again, eight at once.
 *   plain: no wall that can be switched off; always measured
 *   disk: each task has a file system of its own for what it writes (or a project quota)
 *   network: each job has a network of its own; each is another user's, so that none is kept
 *   users: each job has user ids of its own
 *   both: a network and user ids, of another user each time
 *   kept: a network for one user's jobs, one after the other
 */
#include "../arguments.h"
#include "base/memory.h"
#include "engine/local/task.h"
#include "figures.h"
#include "world.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] = "usage: wall-bench [RUNS [WAY…]]     (100, all ways: disk network "
                            "users both kept); SKEP_TEST_RUNTIME=crun or runc\n";

enum way_kind { WAY_PLAIN, WAY_DISK, WAY_NETWORK, WAY_USERS, WAY_BOTH, WAY_KEPT, WAYS };
enum { PATIENCE_MS = 120000, AT_ONCE = 8, ROUNDS = 5 };

static struct world worlds[WAYS];

static struct way {
    const char *name;
    bool is_wanted;
    double *started, *gone, *cpu;
} ways[WAYS] = {{.name = "plain"}, {.name = "disk"}, {.name = "network"},
                {.name = "users"}, {.name = "both"}, {.name = "kept"}};

static void forget(struct world *world, uint64_t attempt)
{
    world->engine->ops->forget(world->engine, (struct attempt_id){attempt}, NULL);
    while (world_is_listed(world, attempt))
        sched_yield();
}

static void ways_close(void)
{
    for (size_t w = 0; w < WAYS; w++) {
        mem_free(ways[w].started);
        mem_free(ways[w].gone);
        mem_free(ways[w].cpu);
    }
    for (size_t i = 0; i < COUNT_OF(worlds); i++)
        if (worlds[i].engine)
            world_close(&worlds[i]);
}

static void need(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "wall-bench: %s\n", what);
    ways_close();
    exit(1);
}

static void task_create(enum way_kind kind, uint64_t attempt)
{
    char job[64];
    struct err err = {0};
    snprintf(job, sizeof job, kind == WAY_KEPT ? "keeper~job%llu" : "user%llu~job",
             (unsigned long long)attempt);
    const struct task_options options = {.job = job, .memory_mib = 64, .cpu = 1};
    need(world_create_with(&worlds[kind], attempt, "true", &options, &err) == 0, err.text);
}

static void start_one(enum way_kind kind, uint64_t attempt, size_t run)
{
    struct way *way = &ways[kind];
    struct world *world = &worlds[kind];
    const double cpu = cpu_ms();
    const int64_t begun = now_us();
    task_create(kind, attempt);
    const struct seen *start = world_wait(world, ENGINE_STARTED, attempt, 0, PATIENCE_MS);
    need(start != NULL, "a task does not start");
    need(world_wait(world, ENGINE_EXITED, attempt, 0, PATIENCE_MS) != NULL, "a task does not end");
    way->started[run] = (double)(start->at_us - begun) / 1000;
    forget(world, attempt);
    way->gone[run] = (double)(now_us() - begun) / 1000;
    way->cpu[run] = cpu_ms() - cpu;
}

/* Differences to the plain start of the same round. */
struct differences {
    struct middle middle;
    double p95;
};

static struct differences differences_of(const double *values, const double *plain, size_t runs)
{
    double *pairs = mem_zero(runs, sizeof *pairs);
    for (size_t i = 0; i < runs; i++)
        pairs[i] = values[i] - plain[i];
    const struct differences result = {.middle = middle_of(pairs, runs),
                                       .p95 = quantile(pairs, runs, 0.95)};
    mem_free(pairs);
    return result;
}

static void differences_print(const char *what, size_t runs, size_t offset)
{
    const char *plain = (const char *)&ways[WAY_PLAIN];
    printf("differences %-16s %8s %20s %8s\n", what, "p50", "interval of p50", "p95");
    for (size_t w = WAY_PLAIN + 1; w < WAYS; w++) {
        const char *way = (const char *)&ways[w];
        if (!ways[w].is_wanted)
            continue;
        const struct differences found = differences_of(*(double *const *)(way + offset),
                                                        *(double *const *)(plain + offset), runs);
        printf("%-28s %+8.2f   %+8.2f .. %+6.2f %+8.2f\n", ways[w].name, found.middle.median,
               found.middle.low, found.middle.high, found.p95);
    }
}

static void starts_print(size_t runs)
{
    differences_print("to STARTED, ms", runs, offsetof(struct way, started));
    differences_print("to its end, ms", runs, offsetof(struct way, gone));
    differences_print("of CPU, ms", runs, offsetof(struct way, cpu));
    printf("\n%-14s  %24s  %24s  %10s\n", "starts", "to STARTED, ms: p50 p95",
           "to its end, ms: p50 p95", "CPU, ms");
    for (size_t w = 0; w < WAYS; w++)
        if (ways[w].is_wanted)
            printf("%-14s  %11.1f %12.1f  %11.1f %12.1f  %10.1f\n", ways[w].name,
                   quantile(ways[w].started, runs, 0.5), quantile(ways[w].started, runs, 0.95),
                   quantile(ways[w].gone, runs, 0.5), quantile(ways[w].gone, runs, 0.95),
                   quantile(ways[w].cpu, runs, 0.5));
}

/* --- rates --- */

/* Starts a second, AT_ONCE under way. Each is another user's, but for the kept network. */
static double rate(enum way_kind kind, uint64_t first, size_t count)
{
    struct world *world = &worlds[kind];
    size_t from = world_seen_count(world), begun = 0, ended = 0;
    const int64_t since = now_us();
    while (ended < count) {
        for (; begun < count && begun - ended < AT_ONCE; begun++)
            task_create(kind, first + begun);
        const struct seen *end = world_wait(world, ENGINE_EXITED, 0, from, PATIENCE_MS);
        need(end && end->exit.exit_code == 0, "a task fails");
        world->engine->ops->forget(world->engine, (struct attempt_id){end->attempt}, NULL);
        from = (size_t)(end - world->seen.items) + 1;
        ended++;
    }
    return (double)count * 1e6 / (double)(now_us() - since);
}

static void rates_print(size_t runs)
{
    double rates[WAYS][ROUNDS];
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t w = 0; w < WAYS; w++)
            if (ways[w].is_wanted)
                rates[w][round] =
                    rate((enum way_kind)w, 1000000 * (round + 1) + 100000 * w, runs / ROUNDS + 1);
    printf("\nstarts a second, %d at once, median of %d rounds\n", AT_ONCE, ROUNDS);
    for (size_t w = 0; w < WAYS; w++)
        if (ways[w].is_wanted)
            printf("%-14s  %6.1f\n", ways[w].name, quantile(rates[w], ROUNDS, 0.5));
}

static void world_prepare(enum way_kind kind)
{
    struct world *world = &worlds[kind];
    need(world_open(world), "no container can be started here");
    world->config.disk_quota = kind == WAY_DISK ? DISK_QUOTA_REQUIRED : DISK_QUOTA_OFF;
    world->config.has_private_network = kind == WAY_NETWORK || kind == WAY_BOTH || kind == WAY_KEPT;
    world->config.user_namespaces =
        kind == WAY_USERS || kind == WAY_BOTH ? USER_NAMESPACES_REQUIRED : USER_NAMESPACES_OFF;
    world_start(world);
}

static void way_want(const char *name)
{
    for (size_t w = 0; w < WAYS; w++)
        if (strcmp(ways[w].name, name) == 0) {
            ways[w].is_wanted = true;
            return;
        }
    fprintf(stderr, "%s: no such way\n%s", name, usage);
    exit(2);
}

static void ways_prepare(size_t runs)
{
    for (size_t w = 0; w < WAYS; w++) {
        if (!ways[w].is_wanted)
            continue;
        world_prepare((enum way_kind)w);
        ways[w].started = mem_zero(runs, sizeof(double));
        ways[w].gone = mem_zero(runs, sizeof(double));
        ways[w].cpu = mem_zero(runs, sizeof(double));
    }
    const struct local_engine *local = (const struct local_engine *)worlds[WAY_PLAIN].engine;
    printf("runtime: %s; load average %s\n", local->runtime.program,
           shell_output("cut -d' ' -f1-3 /proc/loadavg"));
    if (!ways[WAY_DISK].is_wanted)
        return;
    const struct local_engine *disk = (const struct local_engine *)worlds[WAY_DISK].engine;
    printf("disk: %s\n", disk->disk_way == DISK_PROJECT ? "project quotas" : "an image a task");
}

int main(int argc, char **argv)
{
    arguments_check(argc, argv, 0, 1 + WAYS, 0, usage);
    const size_t runs = argc > 1 ? argument_number(argv[1], 1, 10000, usage) : 100;
    for (int i = 2; i < argc; i++)
        way_want(argv[i]);
    for (size_t w = 0; w < WAYS; w++)
        ways[w].is_wanted |= argc <= 2 || w == WAY_PLAIN;
    ways_prepare(runs);
    for (size_t run = 0; run < runs; run++)
        for (size_t w = 0; w < WAYS; w++) { /* each is the first one in turn */
            const size_t turn = (w + run) % WAYS;
            if (ways[turn].is_wanted)
                start_one((enum way_kind)turn, 1 + run * WAYS + turn, run);
        }
    starts_print(runs);
    rates_print(runs);
    printf("load average %s\n", shell_output("cut -d' ' -f1-3 /proc/loadavg"));
    ways_close();
    return 0;
}
