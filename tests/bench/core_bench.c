/* core-bench: what the core costs, without store, engine or network.
 *
 * usage: core-bench [JOBS] [POLICY]
 * JOBS: of the large measurements (100000). POLICY: hived (default), first-fit, best-fit, spread.
 * Prints figures; asserts nothing. CPU seconds of this process.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/core.h"
#include "core/plan.h"
#include "core/rows.h"

enum { NODES = 100, NODE_CPU = 64, NODE_GPUS = 8 };

static struct core *core;
static struct output output;
static int64_t now_ms = 1000000;
static uint64_t events;
static const char *policy = "hived";

static double cpu_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Resident: large arrays take address space ahead, which costs nothing. */
static size_t memory_bytes(void)
{
    size_t pages = 0, resident = 0;
    malloc_trim(0);
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%zu %zu", &pages, &resident) != 2) {
        perror("/proc/self/statm");
        exit(1);
    }
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void step(struct event *event)
{
    event->now_ms = ++now_ms;
    event->user = "";
    output_clear(&output);
    core_step(core, event, &output);
    events++;
}

static void core_make(void)
{
    struct core_config config;
    struct err err = {0};
    core_config_default(&config);
    config.policy = policy;
    core = core_new(&config, &err);
    if (!core) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    for (int i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%03d", i);
        struct event event = {
            .kind = EVENT_NODE,
            .node = {.name = name,
                     .cpu = NODE_CPU,
                     .memory_mib = NODE_CPU * 4096,
                     .gpu_count = NODE_GPUS,
                     .gpu_type = "V100",
                     .is_healthy = true,
                     .address = "10.0.0.1"},
        };
        step(&event);
    }
}

static struct plan *plan_make(uint64_t number, uint32_t instances, uint32_t gpu)
{
    static const struct plan_port ports[] = {{"ssh", 1, 0}, {"http", 1, 0}};
    char name[32];
    snprintf(name, sizeof name, "job-%llu", (unsigned long long)number);
    struct plan_role role = plan_role_of("worker");
    role.instances = instances;
    role.gpu = gpu;
    role.memory_mib = 100;
    role.ports = ports;
    role.port_count = 2;
    struct plan plan = {
        .name = name,
        .user = "alice",
        .virtual_cluster = "default",
        .priority = 10,
        .is_retry_fancy = true,
        .is_gang = true,
        .roles = &role,
        .role_count = 1,
    };
    return plan_copy(&plan);
}

static void submit(uint64_t number, uint32_t instances, uint32_t gpu)
{
    struct event event = {.kind = EVENT_SUBMIT,
                          .submit = {.plan = plan_make(number, instances, gpu)}};
    step(&event);
}

static void task_step(enum event_kind kind, uint64_t attempt)
{
    struct event event = {.kind = kind, .task = {.attempt = {attempt}}};
    if (kind == EVENT_TASK_EXITED)
        event.task.completion = completion_of(0, "%s", "");
    step(&event);
}

static void attempt_run(uint64_t attempt)
{
    task_step(EVENT_TASK_PREPARING, attempt);
    task_step(EVENT_TASK_STARTED, attempt);
    task_step(EVENT_TASK_EXITED, attempt);
}

static void rate(const char *what, uint64_t count, double seconds)
{
    printf("%-58s %10.0f /s  (%llu in %.3f s)\n", what, seconds > 0 ? (double)count / seconds : 0,
           (unsigned long long)count, seconds);
}

static void bench_cycles(uint64_t jobs)
{
    core_make();
    events = 0;
    double begin = cpu_s();
    for (uint64_t i = 1; i <= jobs; i++) {
        submit(i, 1, 1);
        attempt_run(i);
    }
    double seconds = cpu_s() - begin;
    rate("events, one task of one GPU at a time", events, seconds);
    rate("submit-start-end cycles of the same", jobs, seconds);
    core_free(core);

    core_make();
    begin = cpu_s();
    uint64_t gangs = jobs / 50, attempt = 1;
    events = 0;
    for (uint64_t i = 1; i <= gangs; i++) {
        submit(i, 8, 1);
        for (int j = 0; j < 8; j++)
            attempt_run(attempt++);
    }
    rate("events, gangs of 8 tasks", events, cpu_s() - begin);
    core_free(core);
}

/* The cluster is full; everything else waits. */
static void bench_queue(uint64_t jobs)
{
    core_make();
    size_t empty = memory_bytes();
    for (uint64_t i = 1; i <= NODES; i++)
        submit(i, 1, NODE_GPUS);
    size_t before = memory_bytes();
    double begin = cpu_s();
    for (uint64_t i = 1; i <= jobs; i++)
        submit(1000 + i, 1, NODE_GPUS);
    double seconds = cpu_s() - begin;
    size_t bytes = memory_bytes() - before;
    struct core_counts counts;
    core_count(core, &counts);
    printf("%-58s %10.1f MB  (%llu queued, %zu bytes each; empty core %.1f MB)\n", "memory",
           (double)bytes / 1e6, (unsigned long long)counts.jobs_queued, bytes / (jobs ? jobs : 1),
           (double)empty / 1e6);
    rate("submissions to a full cluster", jobs, seconds);
    begin = cpu_s();
    uint64_t ends = jobs < 20000 ? jobs : 20000;
    for (uint64_t i = 1; i <= ends; i++)
        attempt_run(i);
    rate("ends that start the next, with all these queued", ends, cpu_s() - begin);
    begin = cpu_s();
    struct core *copy = core_copy(core);
    printf("%-58s %10.1f ms\n", "copy of the core", (cpu_s() - begin) * 1000);
    core_free(copy);
    core_free(core);
}

/* Many shapes: each freed place may suit any of them. */
static void bench_shapes(uint64_t jobs)
{
    core_make();
    for (uint64_t i = 1; i <= NODES; i++)
        submit(i, 1, NODE_GPUS);
    for (uint64_t i = 1; i <= jobs; i++)
        submit(1000 + i, 1 + (uint32_t)(i % 50), NODE_GPUS - (uint32_t)(i / 50 % 4));
    double begin = cpu_s();
    uint64_t ends = 2000, attempt = 1;
    for (uint64_t i = 0; i < ends; i++)
        task_step(EVENT_TASK_EXITED, attempt++);
    rate("ends with 200 shapes queued", ends, cpu_s() - begin);
    core_free(core);
}

static double longest_ms;

static void step_measured(struct event *event)
{
    const double begin = cpu_s();
    step(event);
    const double took_ms = (cpu_s() - begin) * 1000;
    longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
}

/* The event, and all steps that follow from it. */
static void cluster_act(enum event_kind kind, const char *what)
{
    const double begin = cpu_s();
    uint32_t steps = 1;
    longest_ms = 0;
    step_measured(&(struct event){.kind = kind, .cluster = {.name = "default", .reason = ""}});
    for (bool goes_on = true; goes_on; steps++) {
        goes_on = false;
        for (size_t i = 0; i < output.commands.count; i++)
            if (output.commands.items[i].kind == COMMAND_WAKE &&
                output.commands.items[i].at_ms <= now_ms + 20)
                goes_on = true;
        now_ms += 20;
        step_measured(&(struct event){.kind = EVENT_TIMER});
    }
    printf("%-58s %10.2f ms, %u steps, %.0f ms in all\n", what, longest_ms, steps,
           (cpu_s() - begin) * 1000);
}

/* Each job a class of its own: the most that there may be to tell. */
static void bench_closing(uint64_t jobs)
{
    core_make();
    for (uint64_t i = 1; i <= NODES * NODE_GPUS; i++) {
        submit(i, 1, 1);
        attempt_run(i);
    }
    for (uint64_t i = 1; i <= jobs; i++) {
        struct plan *plan = plan_make(100000 + i, 1, 1);
        ((struct plan_role *)(uintptr_t)plan->roles)[0].memory_mib = i;
        step(&(struct event){.kind = EVENT_SUBMIT, .submit = {.plan = plan}});
    }
    cluster_act(EVENT_CLUSTER_CLOSE, "longest step of a closing, all jobs queued are classes");
    const double begin = cpu_s();
    longest_ms = 0;
    for (uint64_t i = 1; i <= NODES * NODE_GPUS; i++)
        step_measured(
            &(struct event){.kind = EVENT_TASK_EXITED,
                            .task = {.attempt = {i}, .completion = {.is_success = true}}});
    rate("ends while all these are closed", NODES * NODE_GPUS, cpu_s() - begin);
    printf("%-58s %10.2f ms\n", "longest of these", longest_ms);
    cluster_act(EVENT_CLUSTER_OPEN, "longest step of an opening");
    core_free(core);
}

static void bench_restore(uint64_t jobs)
{
    core_make();
    struct rows *rows = rows_new();
    struct output gathered;
    output_init(&gathered);
    uint64_t running = NODES * NODE_GPUS;
    for (uint64_t i = 1; i <= jobs; i++) {
        struct plan *plan = plan_make(i, 1, 1);
        submit(i, 1, 1);
        rows_plan(rows, (uint32_t)i, plan);
        plan_free(plan);
        rows_apply(rows, &output);
    }
    core_free(core);
    struct core_config config;
    core_config_default(&config);
    config.policy = policy;
    core = core_new(&config, NULL);
    for (int i = 0; i < NODES; i++) {
        struct node_record node = {.id = {(uint32_t)i},
                                   .facts = {.cpu = NODE_CPU,
                                             .memory_mib = NODE_CPU * 4096,
                                             .gpu_count = NODE_GPUS,
                                             .gpu_type = "V100",
                                             .address = "10.0.0.1",
                                             .reason = "",
                                             .is_healthy = true}};
        char name[16];
        snprintf(name, sizeof name, "n%03d", i);
        node.facts.name = name;
        struct output one;
        output_init(&one);
        *ARRAY_ADD(&one.records) = (struct record){.kind = RECORD_NODE, .node = node};
        rows_apply(rows, &one);
        output_release(&one);
    }
    struct err err = {0};
    double begin = cpu_s();
    int code = rows_restore(rows, core, now_ms, &gathered, &err);
    double seconds = cpu_s() - begin;
    if (code)
        fprintf(stderr, "restore: %s\n", err.text);
    printf("%-58s %10.3f s   (%llu live, %llu of them running)\n", "restore", seconds,
           (unsigned long long)jobs, (unsigned long long)(running < jobs ? running : jobs));
    output_release(&gathered);
    rows_free(rows);
    core_free(core);
}

int main(int count, char **words)
{
    static const char usage[] = "usage: core-bench [JOBS [POLICY]]     (100000, hived)\n"
                                "POLICY: hived, first-fit, best-fit or spread.\n";
    static const char *const policies[] = {"hived", "first-fit", "best-fit", "spread"};
    arguments_check(count, words, 0, 2, 0, usage);
    uint64_t jobs = count > 1 ? argument_number(words[1], 1, 10000000, usage) : 100000;
    bool is_known = count < 3;
    for (size_t i = 0; i < COUNT_OF(policies) && !is_known; i++)
        is_known = !strcmp(words[2], policies[i]);
    if (!is_known) {
        fprintf(stderr, "%s: no such policy\n%s", words[2], usage);
        return 2;
    }
    if (count > 2)
        policy = words[2];
    mallopt(M_MXFAST, 0); /* as skepd does: no step pays for what many before it have freed */
    output_init(&output);
    printf("policy %s, %d nodes of %d CPUs and %d GPUs\n", policy, NODES, NODE_CPU, NODE_GPUS);
    bench_cycles(jobs);
    bench_queue(1000);
    bench_queue(jobs);
    bench_shapes(jobs < 20000 ? jobs : 20000);
    bench_closing(jobs);
    bench_restore(jobs);
    output_release(&output);
    return 0;
}
