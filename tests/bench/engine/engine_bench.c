/* engine-bench — what starting a task costs, beside a bare runtime, Docker and Podman, in one run.
 *
 * usage: engine-bench [RUNS [CONTAINERS [AT_ONCE]]]     (100, 100, 8)
 *
 * Latency: from the call to the moment the user's command reads the clock, one at a time, RUNS
 * times, all ways by turns. Throughput: CONTAINERS with AT_ONCE under way.
 * bare: an overlay mounted by us, then the runtime's `run` of a bundle made by its own `spec` with
 * the host's network; the command is executed directly.
 * engine: create() of a task under skep-init, which runs the command in a shell, to its end and its
 * clean-up. Private network: the same with a network of the task's own and a published port, where
 * nft is installed.
 * skepd: a job submitted over HTTP, durable before it is answered; when bench_engine.py started
 * one. docker, podman: `run --rm` of an image of the same files, where their `info` works
 * (DOCKER_HOST, CONTAINERS_CONF and CONTAINERS_STORAGE_CONF say which).
 */
#include "../arguments.h"
#include "base/memory.h"
#include "engine/local/task.h"
#include "figures.h"
#include "world.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] = "usage: engine-bench [RUNS [CONTAINERS [AT_ONCE]]]     (100, 100, 8)\n";

enum way_kind { WAY_BARE, WAY_ENGINE, WAY_PRIVATE, WAY_SERVER, WAY_PROGRAM };

struct way {
    const char *name;
    enum way_kind kind;
    const char *program;
    bool is_here;
    double *values, rate;
};

static struct {
    int http, stamps;
    uint16_t stamp_port;
    const char *token;
} server;

static struct world world;
static const char *runtime_path;
static char bundles[300];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* --- bare runtime --- */

static void bare_prepare(const struct runtime *runtime)
{
    runtime_path = runtime->program;
    /* as the engine does for its containers: crun refuses hybrid machines otherwise */
    if (runtime->hidden_mount[0] &&
        (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
         umount2(runtime->hidden_mount, MNT_DETACH) < 0))
        perror("hide the v2 control groups");
    snprintf(bundles, sizeof bundles, "%s/bundles", world.folder);
    if (shell("set -e; mkdir %s; cd %s; %s spec; "
              "python3 -c \"import json;c=json.load(open('config.json'));p=c['process'];"
              "p['terminal']=False;p['args']=['/bin/stamp'];c['root']['readonly']=False;"
              "c['root']['path']='merged';l=c['linux'];"
              "l['namespaces']=[n for n in l['namespaces'] if n['type']!='network'];"
              "json.dump(c,open('config.json','w'))\"",
              bundles, bundles, runtime_path) != 0)
        exit(1);
}

struct bare {
    pid_t pid;
    int out;
    int64_t begun_us;
    char bundle[340];
};

static void bare_start(struct bare *bare, unsigned number)
{
    static const char *const parts[] = {"", "/upper", "/work", "/merged"};
    char path[500], options[2400], id[40];
    bare->begun_us = now_us();
    snprintf(bare->bundle, sizeof bare->bundle, "%s/%u", bundles, number);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        snprintf(path, sizeof path, "%s%s", bare->bundle, parts[i]);
        mkdir(path, 0755);
    }
    snprintf(path, sizeof path, "%s/config.json", bare->bundle);
    char from[400];
    snprintf(from, sizeof from, "%s/config.json", bundles);
    if (link(from, path) < 0)
        perror(path);
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s/upper,workdir=%s/work",
             world.image + 4, bare->bundle, bare->bundle);
    snprintf(path, sizeof path, "%s/merged", bare->bundle);
    if (mount("overlay", path, "overlay", 0, options) < 0)
        perror(path);
    snprintf(id, sizeof id, "skep-bench-%d-%u", (int)getpid(), number);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        exit(1);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    char *argv[] = {(char *)(uintptr_t)runtime_path,
                    (char *)(uintptr_t) "run",
                    (char *)(uintptr_t) "--bundle",
                    bare->bundle,
                    id,
                    NULL};
    if (posix_spawn(&bare->pid, runtime_path, &actions, NULL, argv, environ) != 0)
        exit(1);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    bare->out = ends[0];
}

/* Returns milliseconds to the command. */
static double bare_end(struct bare *bare)
{
    char text[64] = "", path[500];
    int status;
    ssize_t got = read(bare->out, text, sizeof text - 1);
    text[got > 0 ? got : 0] = 0;
    close(bare->out);
    waitpid(bare->pid, &status, 0);
    snprintf(path, sizeof path, "%s/merged", bare->bundle);
    umount2(path, MNT_DETACH);
    tree_remove(bare->bundle, NULL);
    return (double)(strtoll(text, NULL, 10) - bare->begun_us) / 1000;
}

static double bare_many(unsigned count, unsigned at_once)
{
    struct bare *slots = mem_zero(at_once, sizeof *slots);
    int64_t begun = now_us();
    unsigned started = 0, ended = 0;
    while (ended < count) {
        while (started < count && started - ended < at_once) {
            bare_start(&slots[started % at_once], 1000 + started);
            started++;
        }
        bare_end(&slots[ended % at_once]);
        ended++;
    }
    mem_free(slots);
    return (double)count * 1e6 / (double)(now_us() - begun);
}

/* --- the engine --- */

static const char host_cluster[] = "host"; /* it has the right to the host's network */

static void engine_create(uint64_t attempt, bool is_private)
{
    char job[40];
    snprintf(job, sizeof job, "alice~%llu", (unsigned long long)attempt);
    const struct task_options options = {.job = job,
                                         .virtual_cluster = is_private ? NULL : host_cluster,
                                         .port = (uint16_t)(20000 + attempt % 10000)};
    struct err err = {0};
    if (world_create_with(&world, attempt, "exec /bin/stamp", &options, &err) < 0) {
        fprintf(stderr, "create: %s\n", err.text);
        exit(1);
    }
}

static double engine_one(uint64_t attempt, bool is_private)
{
    int64_t begun = now_us();
    engine_create(attempt, is_private);
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, 30000);
    if (!end || end->exit.exit_code != 0) {
        fprintf(stderr, "attempt %llu: %s %s\n%s\n", (unsigned long long)attempt,
                end ? end->reason : "no end", end ? end->message : "", end ? end->platform : "");
        exit(1);
    }
    world.engine->ops->forget(world.engine, (struct attempt_id){attempt}, NULL);
    return (double)(strtoll(end->log, NULL, 10) - begun) / 1000;
}

static double engine_many(uint64_t first, unsigned count, unsigned at_once, bool is_private)
{
    int64_t begun = now_us();
    size_t from = world_seen_count(&world);
    unsigned started = 0, ended = 0;
    while (ended < count) {
        while (started < count && started - ended < at_once)
            engine_create(first + started++, is_private);
        const struct seen *end = world_wait(&world, ENGINE_EXITED, 0, from, 30000);
        if (!end || end->exit.exit_code != 0) {
            fprintf(stderr, "a container failed: %s\n", end ? end->message : "no end");
            exit(1);
        }
        world.engine->ops->forget(world.engine, (struct attempt_id){end->attempt}, NULL);
        from = (size_t)(end - world.seen.items) + 1;
        ended++;
    }
    return (double)count * 1e6 / (double)(now_us() - begun);
}

/* --- programs of others: docker, podman --- */

static void program_open(struct way *way)
{
    if (shell("command -v %s >/dev/null && timeout 10 %s info >/dev/null 2>&1", way->program,
              way->program) != 0)
        return;
    shell("%s rmi -f skep-bench:1 >/dev/null 2>&1", way->program);
    if (shell("tar -C %s -c . | %s import - skep-bench:1 >/dev/null", world.image + 4,
              way->program) == 0)
        way->is_here =
            *shell_output("%s run --rm --network host skep-bench:1 /bin/stamp", way->program) != 0;
    if (!way->is_here)
        fprintf(stderr, "%s answers, but starts no container here\n", way->program);
}

static double program_one(const struct way *way)
{
    int64_t begun = now_us();
    const char *text =
        shell_output("%s run --rm --network host skep-bench:1 /bin/stamp", way->program);
    if (!*text) {
        fprintf(stderr, "%s run failed\n", way->program);
        exit(1);
    }
    return (double)(strtoll(text, NULL, 10) - begun) / 1000;
}

static double program_many(const struct way *way, unsigned count, unsigned at_once)
{
    int64_t begun = now_us();
    if (shell("seq %u | xargs -P %u -I{} %s run --rm --network host skep-bench:1 /bin/stamp "
              ">/dev/null",
              count, at_once, way->program) != 0) {
        fprintf(stderr, "%s run failed\n", way->program);
        exit(1);
    }
    return (double)count * 1e6 / (double)(now_us() - begun);
}

/* --- a whole skepd: from the request to the command --- */

static void server_open(struct way *way, const char *port, const char *token)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof here;
    server.stamps = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = 60};
    setsockopt(server.stamps, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (bind(server.stamps, (struct sockaddr *)&here, sizeof here) < 0 ||
        getsockname(server.stamps, (struct sockaddr *)&here, &size) < 0)
        fail("a port for stamps");
    server.stamp_port = ntohs(here.sin_port);
    here.sin_port = htons((uint16_t)atoi(port));
    server.http = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    setsockopt(server.http, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(server.http, (struct sockaddr *)&here, sizeof here) < 0)
        fail("connect to skepd");
    server.token = token;
    way->is_here = true;
}

/* Read one answer whole; it must be 2xx. */
static void answer_read(void)
{
    char text[8192];
    size_t have = 0, want = sizeof text;
    while (have < want) {
        ssize_t got = read(server.http, text + have, sizeof text - 1 - have);
        if (got <= 0)
            fail("skepd's answer");
        have += (size_t)got;
        text[have] = 0;
        const char *body = strstr(text, "\r\n\r\n"),
                   *length = strcasestr(text, "\r\nContent-Length:");
        if (body && length)
            want = (size_t)(body + 4 - text) + strtoul(length + 17, NULL, 10);
    }
    if (strncmp(text, "HTTP/1.1 2", 10) != 0) {
        fprintf(stderr, "skepd: %s\n", text);
        exit(1);
    }
}

static void job_submit(unsigned number)
{
    char job[1024], request[2048];
    int body =
        snprintf(job, sizeof job,
                 "protocolVersion: 2\nname: bench-%d-%u\ntype: job\nprerequisites:\n- {name: i, "
                 "type: dockerimage, uri: '%s'}\ntaskRoles:\n  main:\n    instances: 1\n    "
                 "dockerImage: i\n    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}\n    "
                 "commands: ['exec /bin/stamp %u']\n",
                 (int)getpid(), number, world.image, server.stamp_port);
    int length = snprintf(request, sizeof request,
                          "POST /api/v2/jobs HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer "
                          "%s\r\nContent-Type: text/yaml\r\nContent-Length: %d\r\n\r\n%s",
                          server.token, body, job);
    if (write(server.http, request, (size_t)length) != length)
        fail("skepd's connection");
    answer_read();
}

static int64_t stamp_wait(void)
{
    char text[64];
    ssize_t got = recv(server.stamps, text, sizeof text - 1, 0);
    if (got <= 0)
        fail("no command began");
    text[got] = 0;
    return strtoll(text, NULL, 10);
}

static double server_one(unsigned number)
{
    int64_t begun = now_us();
    job_submit(number);
    return (double)(stamp_wait() - begun) / 1000;
}

/* A job counts when its command runs; the next is submitted then. */
static double server_many(unsigned first, unsigned count, unsigned at_once)
{
    int64_t begun = now_us(), last = begun;
    unsigned started = 0, ended = 0;
    while (ended < count) {
        while (started < count && started - ended < at_once)
            job_submit(first + started++);
        last = stamp_wait();
        ended++;
    }
    return (double)count * 1e6 / (double)(last - begun);
}

/* --- all of them --- */

static double way_one(const struct way *way, unsigned number)
{
    switch (way->kind) {
    case WAY_BARE: {
        struct bare one;
        bare_start(&one, number);
        return bare_end(&one);
    }
    case WAY_ENGINE:
        return engine_one(1 + number, false);
    case WAY_PRIVATE:
        return engine_one(20001 + number, true);
    case WAY_SERVER:
        return server_one(number);
    case WAY_PROGRAM:
        break;
    }
    return program_one(way);
}

static double way_many(const struct way *way, unsigned count, unsigned at_once)
{
    switch (way->kind) {
    case WAY_BARE:
        return bare_many(count, at_once);
    case WAY_ENGINE:
        return engine_many(100000, count, at_once, false);
    case WAY_PRIVATE:
        return engine_many(200000, count, at_once, true);
    case WAY_SERVER:
        return server_many(100000, count, at_once);
    case WAY_PROGRAM:
        break;
    }
    return program_many(way, count, at_once);
}

static void way_print(struct way *way, const struct way *bare, unsigned runs)
{
    if (!way->is_here) {
        printf("%-36s not here\n", way->name);
        return;
    }
    double median = quantile(way->values, runs, 0.5);
    printf("%-36s %7.1f %7.1f %7.1f %6.2f %9.1f %6.2f\n", way->name, median,
           quantile(way->values, runs, 0.9), quantile(way->values, runs, 0.99),
           median / quantile(bare->values, runs, 0.5), way->rate, way->rate / bare->rate);
}

static void processor_print(unsigned count, unsigned at_once)
{
    double before = cpu_ms();
    bare_many(count, at_once);
    double between = cpu_ms();
    engine_many(300000, count, at_once, false);
    printf("processor time a container: %.1f ms bare, %.1f ms engine\n", (between - before) / count,
           (cpu_ms() - between) / count);
}

int main(int argc, char **argv)
{
    arguments_check(argc, argv, 0, 3, 0, usage);
    unsigned runs = argc > 1 ? (unsigned)argument_number(argv[1], 1, 10000, usage) : 100;
    unsigned count = argc > 2 ? (unsigned)argument_number(argv[2], 1, 10000, usage) : 100;
    unsigned at_once = argc > 3 ? (unsigned)argument_number(argv[3], 1, 64, usage) : 8;
    const char *port = getenv("SKEP_BENCH_PORT"), *token = getenv("SKEP_BENCH_TOKEN");
    struct way ways[] = {
        {.name = "bare runtime + overlay", .kind = WAY_BARE, .is_here = true},
        {.name = "Skep's engine, create to command", .kind = WAY_ENGINE, .is_here = true},
        {.name = "… with a private network", .kind = WAY_PRIVATE},
        {.name = "skepd, submit over HTTP to command", .kind = WAY_SERVER},
        {.name = "docker run --rm", .kind = WAY_PROGRAM, .program = "docker"},
        {.name = "podman run --rm", .kind = WAY_PROGRAM, .program = "podman"},
    };
    if (!world_open(&world))
        return 2;
    if (shell("cp %s %s/bin/stamp", BENCH_STAMP, world.image + 4) != 0)
        return 1;
    static const char *const host_clusters[] = {host_cluster};
    ways[2].is_here = shell("PATH=/usr/sbin:/sbin:$PATH command -v nft >/dev/null") == 0;
    world.config.has_private_network = ways[2].is_here;
    world.config.rights[RIGHT_HOST_NETWORK] = (struct right_list){host_clusters, 1};
    world_start(&world);
    bare_prepare(&((struct local_engine *)world.engine)->runtime);
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        ways[i].values = mem_zero(runs, sizeof(double));
        if (ways[i].kind == WAY_PROGRAM)
            program_open(&ways[i]);
        else if (ways[i].kind == WAY_SERVER && port && token)
            server_open(&ways[i], port, token);
    }
    for (unsigned run = 0; run < runs; run++)
        for (size_t i = 0; i < COUNT_OF(ways); i++)
            if (ways[i].is_here)
                ways[i].values[run] = way_one(&ways[i], run);
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        if (ways[i].is_here)
            ways[i].rate = way_many(&ways[i], count, at_once);
    printf("%-36s %7s %7s %7s %6s %9s %6s\n", "ms until the command runs; starts/s", "median",
           "p90", "p99", "/bare", "starts/s", "/bare");
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        way_print(&ways[i], &ways[0], runs);
    processor_print(count, at_once);
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        if (ways[i].kind == WAY_PROGRAM && ways[i].is_here)
            shell("%s rmi -f skep-bench:1 >/dev/null", ways[i].program);
        mem_free(ways[i].values);
    }
    world_close(&world);
    return 0;
}
