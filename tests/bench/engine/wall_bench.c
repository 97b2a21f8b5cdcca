/* wall-bench — what the walls between tasks cost, with and without each of them by turns in one
 * run.
 *
 * usage: wall-bench [RUNS [MEBIBYTES]]     (100, 64)
 *
 * Starts: from the call to STARTED, and to the moment when the engine has forgotten the task and
 * all of its files are gone, one at a time, RUNS times; and the processor time of skepd's part.
 *   plain: no wall that can be switched off
 *   disk: each task has a file system of its own for what it writes (or a project quota)
 *   network: each job has a network of its own; each run is another user's, so that none is kept
 * Bandwidth: MEBIBYTES from one task of a job to another one at the job's address, in the machine's
 * network and in the job's own. busybox's nc sends a kibibyte at a time: the two figures compare,
 * and are no limit of a network.
 */
#include "../arguments.h"
#include "base/memory.h"
#include "engine/local/task.h"
#include "world.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char usage[] = "usage: wall-bench [RUNS [MEBIBYTES]]     (100, 64)\n";

enum way_kind { WAY_PLAIN, WAY_DISK, WAY_NETWORK, WAYS };
enum { PATIENCE_MS = 120000, PORT = 23451 };

static struct way {
    const char *name;
    struct world world;
    double *started, *gone, *cpu;
} ways[WAYS] = {{.name = "plain"}, {.name = "disk"}, {.name = "network"}};

static int order(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double quantile(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, order);
    return values[(size_t)((double)(count - 1) * q)];
}

static double cpu_ms(void)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    const struct timeval times[] = {own.ru_utime, own.ru_stime, children.ru_utime,
                                    children.ru_stime};
    double sum = 0;
    for (size_t i = 0; i < COUNT_OF(times); i++)
        sum += (double)times[i].tv_sec * 1000 + (double)times[i].tv_usec / 1000;
    return sum;
}

static void forget(struct world *world, uint64_t attempt)
{
    world->engine->ops->forget(world->engine, (struct attempt_id){attempt}, NULL);
    while (world_is_listed(world, attempt))
        sched_yield();
}

static void ways_close(void)
{
    for (size_t w = 0; w < WAYS; w++) {
        if (ways[w].world.engine)
            world_close(&ways[w].world);
        mem_free(ways[w].started);
        mem_free(ways[w].gone);
        mem_free(ways[w].cpu);
    }
}

static void need(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "wall-bench: %s\n", what);
    ways_close();
    exit(1);
}

static void start_one(struct way *way, uint64_t attempt, size_t run)
{
    char job[40];
    struct err err = {0};
    snprintf(job, sizeof job, "user%zu~job", run);
    const struct task_options options = {.job = job, .memory_mib = 64, .cpu = 1};
    const double cpu = cpu_ms();
    const int64_t begun = now_us();
    need(world_create_with(&way->world, attempt, "true", &options, &err) == 0, err.text);
    const struct seen *start = world_wait(&way->world, ENGINE_STARTED, attempt, 0, PATIENCE_MS);
    need(start != NULL, "a task does not start");
    need(world_wait(&way->world, ENGINE_EXITED, attempt, 0, PATIENCE_MS) != NULL,
         "a task does not end");
    way->started[run] = (double)(start->at_us - begun) / 1000;
    forget(&way->world, attempt);
    way->gone[run] = (double)(now_us() - begun) / 1000;
    way->cpu[run] = cpu_ms() - cpu;
}

static void starts_print(size_t runs)
{
    printf("%-8s  %24s  %24s  %10s\n", "starts", "to STARTED, ms: p50 p90",
           "to its end, ms: p50 p90", "CPU, ms");
    const double plain = quantile(ways[WAY_PLAIN].started, runs, 0.5);
    for (size_t w = 0; w < WAYS; w++) {
        struct way *way = &ways[w];
        const double middle = quantile(way->started, runs, 0.5);
        printf("%-8s  %11.1f %12.1f  %11.1f %12.1f  %10.1f   (%+.1f ms to STARTED)\n", way->name,
               middle, quantile(way->started, runs, 0.9), quantile(way->gone, runs, 0.5),
               quantile(way->gone, runs, 0.9), quantile(way->cpu, runs, 0.5), middle - plain);
    }
}

/* --- bandwidth --- */

static double bandwidth(struct way *way, uint64_t attempt, unsigned mib)
{
    char command[500];
    struct err err = {0};
    const struct task_options options = {.job = "pair~job", .memory_mib = 256, .cpu = 2};
    snprintf(command, sizeof command,
             "mkfifo /tmp/open; echo ready; nc -l -p %d <> /tmp/open > /dev/null", PORT);
    need(world_create_with(&way->world, attempt, command, &options, &err) == 0, err.text);
    world_log_await(&way->world, attempt, "ready", PATIENCE_MS);
    /* until somebody listens; the file is only there in a network of the job's own */
    snprintf(command, sizeof command,
             "a=$(cat /skep/network 2>/dev/null || echo 127.0.0.1); "
             "until grep -qi ':%04X .* 0A ' /proc/net/tcp /proc/net/tcp6; do :; done; "
             "begin=$(cut -d' ' -f1 /proc/uptime); dd if=/dev/zero bs=1M count=%u 2>/dev/null | "
             "nc $a %d; echo took $begin $(cut -d' ' -f1 /proc/uptime)",
             PORT, mib, PORT);
    need(world_create_with(&way->world, attempt + 1, command, &options, &err) == 0, err.text);
    const struct seen *end = world_wait(&way->world, ENGINE_EXITED, attempt + 1, 0, PATIENCE_MS);
    need(end && end->exit.exit_code == 0, end ? end->log : "a task does not end");
    need(world_wait(&way->world, ENGINE_EXITED, attempt, 0, PATIENCE_MS) != NULL,
         "a task does not end");
    double begin, until;
    need(sscanf(end->log, "took %lf %lf", &begin, &until) == 2 && until > begin, end->log);
    return (double)mib / (until - begin);
}

static void way_open(struct way *way, size_t runs)
{
    need(world_open(&way->world), "no container can be started here");
    way->world.config.disk_quota = way == &ways[WAY_DISK] ? DISK_QUOTA_REQUIRED : DISK_QUOTA_OFF;
    way->world.config.has_private_network = way == &ways[WAY_NETWORK];
    world_start(&way->world);
    way->started = mem_zero(runs, sizeof *way->started);
    way->gone = mem_zero(runs, sizeof *way->gone);
    way->cpu = mem_zero(runs, sizeof *way->cpu);
}

int main(int argc, char **argv)
{
    arguments_check(argc, argv, 0, 2, 0, usage);
    const size_t runs = argc > 1 ? argument_number(argv[1], 1, 10000, usage) : 100;
    const unsigned mib = argc > 2 ? (unsigned)argument_number(argv[2], 1, 1 << 20, usage) : 64;
    for (size_t w = 0; w < WAYS; w++)
        way_open(&ways[w], runs);
    const struct local_engine *disk = (const struct local_engine *)ways[WAY_DISK].world.engine;
    printf("disk: %s\n", disk->disk_way == DISK_PROJECT ? "project quotas" : "an image a task");
    for (size_t run = 0; run < runs; run++)
        for (size_t w = 0; w < WAYS; w++)
            start_one(&ways[w], run + 1, run);
    starts_print(runs);
    double fastest[WAYS] = {0};
    for (uint64_t round = 0; round < 3; round++)
        for (size_t w = 0; w < WAYS; w += WAY_NETWORK) {
            const double rate = bandwidth(&ways[w], 100000 + 2 * round, mib);
            fastest[w] = rate > fastest[w] ? rate : fastest[w];
        }
    printf(
        "bandwidth between two tasks of a job, MiB/s, the best of 3: machine's network %.0f, own "
        "%.0f (%.2f of it)\n",
        fastest[WAY_PLAIN], fastest[WAY_NETWORK], fastest[WAY_NETWORK] / fastest[WAY_PLAIN]);
    ways_close();
    return 0;
}
