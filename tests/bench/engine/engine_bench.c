/* engine-bench — what the local engine costs over a bare `crun run` of the same image.
 *
 * usage: engine-bench [RUNS [CONTAINERS [AT_ONCE]]]     (20, 100, 8)
 *
 * Latency: from the call to the moment the user's command reads the clock, one at a time, RUNS
 * times, interleaved. Throughput: CONTAINERS with AT_ONCE under way, until the last has ended.
 * bare: an overlay mounted by us, then the runtime's `run` of a bundle made by its own `spec` with
 * the host's network; the command is executed directly.
 * engine: create() of a task under skep-init, which runs the command in a shell.
 * Where a Docker or Podman daemon answers, `run --rm` of the same files is measured, too.
 */
#include "base/memory.h"
#include "engine/local/task.h"
#include "world.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world world;
static const char *runtime_path;
static char bundles[300];

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

static void row(const char *name, double *values, size_t count)
{
    printf("%-28s median %7.1f ms   p10 %7.1f   p90 %7.1f   (%zu runs)\n", name,
           quantile(values, count, 0.5), quantile(values, count, 0.1), quantile(values, count, 0.9),
           count);
}

/* Processor time of this process and of all that it has waited for, in ms: comparable on a busy
 * machine, too. */
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

static double engine_one(uint64_t attempt)
{
    int64_t begun = now_us();
    world_create(&world, attempt, "exec /bin/stamp");
    const struct seen *end = world_wait(&world, ENGINE_EXITED, attempt, 0, 30000);
    if (!end || end->exit.exit_code != 0) {
        fprintf(stderr, "attempt %llu: %s %s\n%s\n", (unsigned long long)attempt,
                end ? end->reason : "no end", end ? end->message : "", end ? end->platform : "");
        exit(1);
    }
    world.engine->ops->forget(world.engine, (struct attempt_id){attempt}, NULL);
    return (double)(strtoll(end->log, NULL, 10) - begun) / 1000;
}

static double engine_many(uint64_t first, unsigned count, unsigned at_once)
{
    int64_t begun = now_us();
    size_t from = world_seen_count(&world);
    unsigned started = 0, ended = 0;
    while (ended < count) {
        while (started < count && started - ended < at_once)
            world_create(&world, first + started++, "exec /bin/stamp");
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

/* --- daemons --- */

static void daemon_measure(const char *program, unsigned runs)
{
    if (shell("command -v %s >/dev/null && timeout 5 %s info >/dev/null 2>&1", program, program) !=
        0) {
        printf("%-28s not here\n", program);
        return;
    }
    if (shell("tar -C %s -c . | %s import - skep-bench:1 >/dev/null", world.image + 4, program) !=
        0)
        return;
    double *values = mem_zero(runs, sizeof *values);
    for (unsigned i = 0; i < runs; i++) {
        int64_t begun = now_us();
        const char *text =
            shell_output("%s run --rm --network host skep-bench:1 /bin/stamp", program);
        values[i] = (double)(strtoll(text, NULL, 10) - begun) / 1000;
    }
    char name[64];
    snprintf(name, sizeof name, "%s run --rm", program);
    row(name, values, runs);
    mem_free(values);
    shell("%s rmi skep-bench:1 >/dev/null", program);
}

int main(int argc, char **argv)
{
    unsigned runs = argc > 1 ? (unsigned)atoi(argv[1]) : 20;
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
    unsigned at_once = argc > 3 ? (unsigned)atoi(argv[3]) : 8;
    if (!runs || !count || !at_once || !world_open(&world))
        return 2;
    if (shell("cp %s %s/bin/stamp", BENCH_STAMP, world.image + 4) != 0)
        return 1;
    world_start(&world);
    bare_prepare(&((struct local_engine *)world.engine)->runtime);
    double *bare = mem_zero(runs, sizeof *bare), *engine = mem_zero(runs, sizeof *engine);
    for (unsigned i = 0; i < runs; i++) {
        struct bare one;
        bare_start(&one, i);
        bare[i] = bare_end(&one);
        engine[i] = engine_one(1 + i);
    }
    row("bare run + overlay", bare, runs);
    row("engine", engine, runs);
    printf("%-28s %.2f (budget 2.00)\n", "ratio of medians",
           quantile(engine, runs, 0.5) / quantile(bare, runs, 0.5));
    double cpu_begun = cpu_ms();
    double bare_rate = bare_many(count, at_once);
    double cpu_between = cpu_ms();
    double rate = engine_many(100000, count, at_once);
    double cpu_ended = cpu_ms();
    printf("%-28s %.0f/s bare, %.0f/s engine (budget 100/s)\n", "containers, many at a time",
           bare_rate, rate);
    printf("%-28s %.1f ms bare, %.1f ms engine\n", "processor time a container",
           (cpu_between - cpu_begun) / count, (cpu_ended - cpu_between) / count);
    daemon_measure("docker", runs);
    daemon_measure("podman", runs);
    mem_free(bare);
    mem_free(engine);
    world_close(&world);
    return 0;
}
