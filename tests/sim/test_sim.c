/* Random worlds: every job ends, every invariant holds after every step, a replay of the event log
 * says the same words, a restart loses nothing.
 *
 * usage: test-sim [--worlds N] [--seed FIRST] [--policy NAME] [--slices] [--engines] [--trace]
 * --engines: the nodes are of two or three engines, and a gang lies on one of them.
 * --slices: a gang is placed in many small steps, and anything happens between them.
 * Exit 0: all worlds were good. Exit 1: prints the seed and what was wrong.
 *
 * Covers: src/sim/actions.c, src/sim/ledger.c, src/sim/sim.c
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "base/random.h"
#include "sim/sim.h"

enum { WORLDS = 2000, EVENTS_MAX = 2000000 }; /* with small steps */

static char current[128]; /* said by abort_tell */

static void abort_tell(int number)
{
    (void)number;
    ssize_t written = write(STDERR_FILENO, current, strlen(current));
    (void)written;
    signal(SIGABRT, SIG_DFL);
}

static void print(void *context, const char *text)
{
    (void)context;
    fputs(text, stdout);
}

struct options {
    uint64_t worlds, seed;
    const char *policy;
    bool is_traced, has_slices, has_engines;
};

struct totals {
    struct sim_result sum;
};

static const char *const clusters[] = {"default", "vc1"};

/* Four nodes of 4 GPUs in two racks, one node pinned for vc1; nodes 4 and beyond are not in it. */
static const char hived_document[] =
    "physicalCluster:\n"
    "  skuTypes:\n"
    "    FAKE: {gpu: 1, cpu: 2, memory: 200Mi}\n"
    "  cellTypes:\n"
    "    PAIR: {childCellType: FAKE, childCellNumber: 2}\n"
    "    NODE: {childCellType: PAIR, childCellNumber: 2, isNodeLevel: true}\n"
    "    RACK: {childCellType: NODE, childCellNumber: 2}\n"
    "  physicalCells:\n"
    "  - cellType: RACK\n"
    "    cellChildren: [{cellAddress: fake0, pinnedCellId: PIN}, {cellAddress: fake1}]\n"
    "  - cellType: RACK\n"
    "    cellChildren: [{cellAddress: fake2}, {cellAddress: fake3}]\n"
    "virtualClusters:\n"
    "  default:\n"
    "    virtualCells: [{cellType: RACK.NODE, cellNumber: 2}]\n"
    "  vc1:\n"
    "    virtualCells: [{cellType: RACK.NODE, cellNumber: 1}]\n"
    "    pinnedCells: [{pinnedCellId: PIN}]\n";
static const char *const pins[] = {NULL, "PIN"};

static void config_hived(struct sim_config *config, struct random *random)
{
    if (random_below(random, 3) == 0)
        return; /* automatic cells, one virtual cluster */
    config->placement_document = hived_document;
    config->node_count = 4 + (uint32_t)random_below(random, 2);
    config->cpu = 8;
    config->gpu_count = 4;
    config->pins = pins;
}

/* The shape of a world follows from its seed alone. */
static struct sim_config config_of(uint64_t seed, const struct options *options)
{
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived", "hived"};
    struct random random = {seed * 7919};
    struct sim_config config = {
        .seed = seed,
        .policy = options->policy ? options->policy : policies[random_below(&random, 5)],
        .clusters = clusters,
        .cluster_count = COUNT_OF(clusters),
        .node_count = 1 + (uint32_t)random_below(&random, 5),
        .cpu = 4 + (uint32_t)random_below(&random, 8),
        .gpu_count = (uint32_t)random_below(&random, 3) * 4,
        .memory_mib = 1000,
        .jobs = 5 + (uint32_t)random_below(&random, 20),
        .restarts = random_below(&random, 3) ? 0 : 30,
        .starvation_s = 5 + (uint32_t)random_below(&random, 120),
        .has_faults = random_below(&random, 2),
        .has_requests = random_below(&random, 2),
        .has_policies = seed % 3 == 0,
        .has_priorities = random_below(&random, 2),
        .is_replayed = seed % 4 == 0,
        .print = options->is_traced ? print : NULL,
    };
    if (strcmp(config.policy, "hived") == 0)
        config_hived(&config, &random);
    if (options->has_slices) {
        static const uint32_t slices[] = {1, 1, 30, 100};
        config.slice = slices[random_below(&random, COUNT_OF(slices))];
        config.has_interruptions = true;
        config.events_max = EVENTS_MAX;
        config.has_priorities = random_below(&random, 4) != 0;
    }
    if (options->has_engines) {
        config.engines = 2 + seed % 2;
        config.node_count += config.placement_document ? 0 : 3;
    }
    if (seed % 2) {
        config.gpus_per_switch = seed % 4 == 1 ? 2 : 1;
        config.gpus_per_numa = 2 * config.gpus_per_switch;
        config.has_gpu_faults = true;
    }
    return config;
}

static int world_run(uint64_t seed, const struct options *options, struct sim_result *sum)
{
    struct err err = {0};
    struct sim_result result;
    struct sim_config config = config_of(seed, options);
    snprintf(current, sizeof current, "\nseed %llu, policy %s\n", (unsigned long long)seed,
             config.policy);
    if (sim_run(&config, &result, &err)) {
        printf("seed %llu, policy %s: %s: %s\n", (unsigned long long)seed, config.policy, err.path,
               err.text);
        return 1;
    }
    sum->submitted += result.submitted;
    sum->refused += result.refused;
    sum->succeeded += result.succeeded;
    sum->failed += result.failed;
    sum->stopped += result.stopped;
    sum->deleted += result.deleted;
    sum->events += result.events;
    sum->attempts += result.attempts;
    sum->preempted += result.preempted;
    sum->restarts += result.restarts;
    sum->retries += result.retries;
    sum->interruptions += result.interruptions;
    sum->cuts += result.cuts;
    if (result.pass_longest > sum->pass_longest)
        sum->pass_longest = result.pass_longest;
    return 0;
}

/* The same world with small steps and with large ones, when nothing happens between two steps of a
 * pass: every task has the same place at every time. Not compared: worlds in which the core makes a
 * pause in a long pass, and those that have no end however large the steps are. There is one
 * exception, a preemption in vain in the middle of a pass ("Progress" in RFC 0016); none of the
 * first five thousand worlds has it. */
static int slices_compare(uint64_t seed, const struct options *options)
{
    enum { AT_ONCE_MAX = 32, SLICE_LARGE = 1000000 };
    struct err err = {0};
    struct sim_result small, large;
    struct sim_config config = config_of(seed, options);
    config.has_interruptions = config.is_replayed = false;
    config.restarts = 0;
    config.is_settled = config.has_gangs_only = true;
    config.starvation_s = 1000000;
    config.slice = SLICE_LARGE;
    config.events_max = 0;
    if (sim_run(&config, &large, &err))
        return 0;
    config.slice = 1;
    config.events_max = EVENTS_MAX;
    int code = sim_run(&config, &small, &err);
    if (!code && small.longest >= AT_ONCE_MAX - 1)
        return 0;
    if (!code && small.hash == large.hash && small.outcome == large.outcome &&
        small.attempts == large.attempts && small.preempted == large.preempted)
        return 0;
    printf("seed %llu, policy %s: %s\n", (unsigned long long)seed, config.policy,
           code ? err.text : "small steps have changed what jobs got");
    return 1;
}

/* The same world with and without restarts: every job ends the same way. */
static int restarts_compare(uint64_t seed, const struct options *options)
{
    struct err err = {0};
    struct sim_result with, without;
    struct sim_config config = config_of(seed, options);
    config.has_faults = config.has_requests = config.has_priorities = false;
    config.is_calm = true;
    config.is_replayed = false;
    config.restarts = 0;
    int code = sim_run(&config, &without, &err);
    config.restarts = 50;
    if (!code)
        code = sim_run(&config, &with, &err);
    if (!code && with.outcome == without.outcome)
        return 0;
    printf("seed %llu, policy %s: %s\n", (unsigned long long)seed, config.policy,
           code ? err.text : "restarts have changed how jobs ended");
    return 1;
}

static int options_read(int count, char **words, struct options *options)
{
    *options = (struct options){.worlds = WORLDS, .seed = 1};
    bool has_seed = false, has_worlds = false;
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--trace") == 0) {
            options->is_traced = true;
        } else if (strcmp(words[i], "--slices") == 0) {
            options->has_slices = true;
        } else if (strcmp(words[i], "--engines") == 0) {
            options->has_engines = true;
        } else if (strcmp(words[i], "--worlds") == 0 && i + 1 < count) {
            options->worlds = strtoull(words[++i], NULL, 10);
            has_worlds = true;
        } else if (strcmp(words[i], "--seed") == 0 && i + 1 < count) {
            options->seed = strtoull(words[++i], NULL, 10);
            has_seed = true;
        } else if (strcmp(words[i], "--policy") == 0 && i + 1 < count) {
            options->policy = words[++i];
        } else {
            fprintf(stderr, "usage: test-sim [--worlds N] [--seed FIRST] [--policy NAME] "
                            "[--slices] [--engines] [--trace]\n");
            return 2;
        }
    }
    if (has_seed && !has_worlds)
        options->worlds = 1;
    return 0;
}

int main(int count, char **words)
{
    struct options options;
    int code = options_read(count, words, &options);
    if (code)
        return code;
    signal(SIGABRT, abort_tell);
    struct sim_result sum = {0};
    clock_t begin = clock();
    int wrong = 0;
    for (uint64_t i = 0; i < options.worlds; i++)
        wrong += world_run(options.seed + i, &options, &sum);
    for (uint64_t i = 0; i < options.worlds / 10; i++)
        wrong += options.has_slices ? slices_compare(options.seed + i, &options)
                                    : restarts_compare(options.seed + i, &options);
    printf("worlds %llu, seeds %llu…%llu: %u jobs (%u refused): %u succeeded, %u failed, %u "
           "stopped, %u deleted; %llu events, %llu attempts, %llu preempted, %llu retries, %llu "
           "restarts, %llu cuts, %llu interruptions, longest pass %llu steps; %.1f s\n",
           (unsigned long long)options.worlds, (unsigned long long)options.seed,
           (unsigned long long)(options.seed + options.worlds - 1), sum.submitted, sum.refused,
           sum.succeeded, sum.failed, sum.stopped, sum.deleted, (unsigned long long)sum.events,
           (unsigned long long)sum.attempts, (unsigned long long)sum.preempted,
           (unsigned long long)sum.retries, (unsigned long long)sum.restarts,
           (unsigned long long)sum.cuts, (unsigned long long)sum.interruptions,
           (unsigned long long)sum.pass_longest, (double)(clock() - begin) / CLOCKS_PER_SEC);
    if (wrong)
        printf("%d worlds were wrong\n", wrong);
    return wrong ? 1 : 0;
}
