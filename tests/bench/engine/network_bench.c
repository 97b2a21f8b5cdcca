/* network-bench — bytes from one task to another one on the same machine, in the machine's network
 * and in networks of their jobs' own, by turns in one run.
 *
 * usage: network-bench [ROUNDS [MILLISECONDS]]     (7, 1000)
 *
 * Each figure is the median of ROUNDS measurements of MILLISECONDS each, by one stream and by four
 * at once, of writes of 256 KiB that the other side reads; with the highest, and the ratio to the
 * machine's network, round by round.
 *   machine: both tasks have the right to the machine's network, and talk over its loopback
 *   job: two tasks of a job with a network of its own, at the job's address
 *   published: a task calls a published port of another job at the machine's address: out by its
 *     own veth pair, translated by the rules, in by the other one's
 */
#include "../arguments.h"
#include "base/memory.h"
#include "figures.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: network-bench [ROUNDS [MILLISECONDS]]     (7, 1000)\n";

enum { WAYS = 3, STREAMS = 2, PATIENCE_MS = 120000, PORT_HOST = 23461, PORT_PRIVATE = 23462 };

static const unsigned streams[STREAMS] = {1, 4};

static const struct way {
    const char *name;
    const char *job; /* of the sender */
    const char *virtual_cluster;
    const char *address; /* of the receiver, in the sender's shell */
    uint16_t port;
} ways[WAYS] = {
    {"machine", "host~talk", "host", "127.0.0.1", PORT_HOST},
    {"job", "alice~talk", NULL, "$(cat /skep/network)", PORT_PRIVATE},
    {"published", "bob~call", NULL, "$(ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p')",
     PORT_PRIVATE},
};

static struct world world;
static uint64_t next_attempt = 1;

static void need(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "network-bench: %s\n", what);
    world_close(&world);
    exit(1);
}

static uint64_t task_start(const char *job, const char *virtual_cluster, uint16_t published,
                           const char *command)
{
    struct err err = {0};
    const uint64_t attempt = next_attempt++;
    const struct task_options options = {.job = job,
                                         .virtual_cluster = virtual_cluster,
                                         .port = published,
                                         .memory_mib = 256,
                                         .cpu = 2};
    need(world_create_with(&world, attempt, command, &options, &err) == 0, err.text);
    return attempt;
}

static void receivers_start(void)
{
    for (size_t w = 0; w < WAYS - 1; w++) {
        char command[60];
        snprintf(command, sizeof command, "exec /bin/stream serve %u", ways[w].port);
        const uint64_t attempt =
            task_start(ways[w].job, ways[w].virtual_cluster, ways[w].port, command);
        world_log_await(&world, attempt, "ready", PATIENCE_MS);
    }
}

/* MiB a second. */
static double measure(const struct way *way, unsigned count, unsigned duration_ms)
{
    char command[200];
    unsigned long long bytes = 0;
    long long took_us = 0;
    snprintf(command, sizeof command, "exec /bin/stream send %s %u %u %u", way->address, way->port,
             count, duration_ms);
    const uint64_t attempt = task_start(way->job, way->virtual_cluster, 0, command);
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS);
    need(end && end->exit.exit_code == 0, end ? end->log : "a task does not end");
    need(sscanf(end->log, "%llu bytes %lld us", &bytes, &took_us) == 2 && took_us > 0, end->log);
    world.engine->ops->forget(world.engine, (struct attempt_id){attempt}, NULL);
    return (double)bytes / (1 << 20) * 1e6 / (double)took_us;
}

static void streams_print(unsigned count, double *values[WAYS], size_t rounds)
{
    double *ratios = mem_zero(rounds, sizeof *ratios);
    struct middle middle_ratio[WAYS];
    for (size_t w = 0; w < WAYS; w++) {
        for (size_t i = 0; i < rounds; i++)
            ratios[i] = values[w][i] / values[0][i];
        middle_ratio[w] = middle_of(ratios, rounds);
    }
    for (size_t w = 0; w < WAYS; w++) {
        const double middle = quantile(values[w], rounds, 0.5);
        printf("%-10s %7u %10.0f %10.0f %8.2f   %8.2f .. %.2f\n", ways[w].name, count, middle,
               values[w][rounds - 1], middle_ratio[w].median, middle_ratio[w].low,
               middle_ratio[w].high);
    }
    mem_free(ratios);
}

int main(int argc, char **argv)
{
    arguments_check(argc, argv, 0, 2, 0, usage);
    const size_t rounds = argc > 1 ? argument_number(argv[1], 1, 1000, usage) : 7;
    const unsigned ms = argc > 2 ? (unsigned)argument_number(argv[2], 10, 60000, usage) : 1000;
    static const char *const host_clusters[] = {"host"};
    double *values[STREAMS][WAYS];
    if (!world_open(&world))
        return 2;
    need(shell("cp %s %s/bin/stream", BENCH_STREAM, world.image + 4) == 0, "no program stream");
    world.config.has_private_network = true;
    world.config.rights[RIGHT_HOST_NETWORK] = (struct right_list){host_clusters, 1};
    world_start(&world);
    receivers_start();
    for (size_t s = 0; s < STREAMS; s++)
        for (size_t w = 0; w < WAYS; w++)
            values[s][w] = mem_zero(rounds, sizeof(double));
    for (size_t i = 0; i < rounds; i++)
        for (size_t s = 0; s < STREAMS; s++)
            for (size_t turn = 0; turn < WAYS; turn++) { /* none is always the first */
                const size_t w = (i + turn) % WAYS;
                values[s][w][i] = measure(&ways[w], streams[s], ms);
            }
    printf("load average %s\n", shell_output("cut -d' ' -f1-3 /proc/loadavg"));
    printf("%-10s %7s %10s %10s %8s %20s\n", "network", "streams", "MiB/s p50", "highest",
           "ratio p50", "interval of p50");
    for (size_t s = 0; s < STREAMS; s++) {
        streams_print(streams[s], values[s], rounds);
        for (size_t w = 0; w < WAYS; w++)
            mem_free(values[s][w]);
    }
    world_close(&world);
    return 0;
}
