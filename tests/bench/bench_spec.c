/* Figures of the job file reader: microseconds a call, the best of several rounds.
 *
 * usage: bench-spec [MILLISECONDS_A_ROUND]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "arguments.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "spec/spec.h"

#define YAML                                                                                       \
    "protocolVersion: 2\n"                                                                         \
    "name: pytorch_cifar10\n"                                                                      \
    "type: job\n"                                                                                  \
    "contributor: somebody\n"                                                                      \
    "prerequisites:\n"                                                                             \
    "  - protocolVersion: 2\n"                                                                     \
    "    name: pytorch\n"                                                                          \
    "    type: dockerimage\n"                                                                      \
    "    uri: registry.example/pytorch:1.2\n"                                                      \
    "    auth: {username: me, password: <% $secrets.registry %>}\n"                                \
    "parameters:\n"                                                                                \
    "  epochs: 20\n"                                                                               \
    "  lr: 0.1\n"                                                                                  \
    "secrets:\n"                                                                                   \
    "  registry: very secret\n"                                                                    \
    "taskRoles:\n"                                                                                 \
    "  master:\n"                                                                                  \
    "    instances: 1\n"                                                                           \
    "    dockerImage: pytorch\n"                                                                   \
    "    resourcePerInstance:\n"                                                                   \
    "      cpu: 4\n"                                                                               \
    "      memoryMB: 8192\n"                                                                       \
    "      gpu: 1\n"                                                                               \
    "      ports: {tensorboard: 1}\n"                                                              \
    "    commands:\n"                                                                              \
    "      - python train.py --epochs <% $parameters.epochs %> --lr <% $parameters.lr %>\n"        \
    "  worker:\n"                                                                                  \
    "    instances: 3\n"                                                                           \
    "    dockerImage: pytorch\n"                                                                   \
    "    resourcePerInstance: {cpu: 4, memoryMB: 8192, gpu: 1}\n"                                  \
    "    commands:\n"                                                                              \
    "      - python train.py --epochs <% $parameters.epochs %>\n"                                  \
    "extras:\n"                                                                                    \
    "  com.microsoft.pai.runtimeplugin:\n"                                                         \
    "    - plugin: ssh\n"                                                                          \
    "      parameters: {jobssh: true}\n"

static const char json[] =
    "// a parameter-server job\n"
    "{\"jobName\": \"dist\", \"image\": \"img\", \"virtualCluster\": \"vc1\", \"retryCount\": 1,\n"
    " \"codeDir\": \"$PAI_DEFAULT_FS_URI/code\", \"killAllOnCompletedTaskNumber\": 2,\n"
    " \"taskRoles\": [\n"
    "  {\"name\": \"ps_server\", \"taskNumber\": 2, \"cpuNumber\": 2, \"memoryMB\": 8192,\n"
    "   \"gpuNumber\": 0, \"command\": \"python ps.py\"},\n"
    "  {\"name\": \"worker\", \"taskNumber\": 2, \"cpuNumber\": 2, \"memoryMB\": 8192,\n"
    "   \"gpuNumber\": 4, \"command\": \"python worker.py\"}]}\n";

struct work {
    const char *name;
    void (*call)(void *context);
    void *context;
    size_t bytes;
};

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void measure(const struct work *work, uint64_t round_ns)
{
    double best = 1e300;
    for (int round = 0; round < 5; round++) {
        uint64_t begin = now_ns(), count = 0, spent;
        do {
            for (int i = 0; i < 16; i++)
                work->call(work->context);
            count += 16;
            spent = now_ns() - begin;
        } while (spent < round_ns);
        double each = (double)spent / (double)count;
        best = each < best ? each : best;
    }
    printf("%-14s %8.2f us  %6zu bytes\n", work->name, best / 1000, work->bytes);
}

static void parse(void *context)
{
    struct arena scratch;
    struct problems problems;
    struct buf masked = BUF_INIT;
    struct spec_parsed parsed = {.masked = &masked};
    arena_init(&scratch);
    problems_init(&problems, &scratch);
    if (spec_parse(text_of(context), &scratch, &parsed, &problems) != 0)
        abort();
    spec_free(parsed.spec);
    buf_release(&masked);
    problems_release(&problems);
    arena_release(&scratch);
}

struct coded {
    struct spec *spec;
    struct buf bytes;
};

static void encode(void *context)
{
    struct coded *coded = context;
    buf_clear(&coded->bytes);
    spec_encode(coded->spec, &coded->bytes);
}

static void decode(void *context)
{
    struct coded *coded = context;
    struct err err;
    struct spec *spec = spec_decode(buf_as_text(&coded->bytes), &err);
    if (!spec)
        abort();
    spec_free(spec);
}

int main(int argc, char **argv)
{
    static char yaml[] = YAML, early[sizeof json];
    static const char usage[] = "usage: bench-spec [MILLISECONDS_A_ROUND]     (100)\n";
    arguments_check(argc, argv, 0, 1, 0, usage);
    uint64_t round_ns = (argc > 1 ? argument_number(argv[1], 1, 3600000, usage) : 100) * 1000000u;
    memcpy(early, json, sizeof json);

    struct arena scratch;
    struct problems problems;
    struct spec_parsed parsed = {0};
    arena_init(&scratch);
    problems_init(&problems, &scratch);
    if (spec_parse(text_of(yaml), &scratch, &parsed, &problems) != 0)
        return 1;
    struct coded coded = {.spec = parsed.spec};
    encode(&coded);
    const struct work works[] = {
        {"parse v2", parse, yaml, strlen(yaml)},
        {"parse v1", parse, early, strlen(early)},
        {"encode", encode, &coded, coded.bytes.length},
        {"decode", decode, &coded, coded.bytes.length},
    };
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        measure(&works[i], round_ns);
    spec_free(parsed.spec);
    buf_release(&coded.bytes);
    problems_release(&problems);
    arena_release(&scratch);
    return 0;
}
