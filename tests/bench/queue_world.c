#include "queue_world.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"

const struct shape many_groups = {GROUPS, GROUP_TASKS, 1, true, "a gang of 256 groups of 78"};
const struct shape one_group = {1, 10000, 1, true, "a gang of one group of 10,000"};
const struct shape all_gpus = {1, 10000, NODE_GPUS, true,
                               "a gang of one group of 10,000, each of 8 GPUs"};
const struct shape no_gang = {2, 10000, 1, false, "20,000 tasks without gang"};

/* --- one event --- */

double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

void cost_add(struct cost *cost, double us)
{
    cost->count++;
    cost->sum_us += us;
    cost->over += us > OVER_US;
    if (us <= cost->worst_us)
        return;
    cost->worst_us = us;
    cost->worst_at = cost->count;
}

void step(struct bench *bench, struct event *event, struct cost *cost)
{
    event->now_ms = bench->now_ms;
    event->user = "";
    output_clear(&bench->output);
    double begin = now_us();
    core_step(bench->core, event, &bench->output);
    double us = now_us() - begin;
    for (size_t i = 0; i < bench->output.commands.count; i++)
        bench->starts += bench->output.commands.items[i].kind == COMMAND_CREATE;
    if (cost)
        cost_add(cost, us);
}

/* The same, unless tasks have started: then that is what it cost. */
void step_next(struct bench *bench, struct event *event, struct cost *cost, struct cost *start)
{
    struct cost one = {0};
    const uint64_t starts = bench->starts;
    step(bench, event, &one);
    cost_add(bench->starts > starts ? start : cost, one.sum_us);
}

/* At once, or after a pause that the core makes when there is much to do. */
bool goes_on(struct bench *bench)
{
    for (size_t i = 0; i < bench->output.commands.count; i++) {
        const struct command *command = &bench->output.commands.items[i];
        if (command->kind != COMMAND_WAKE || command->at_ms > bench->now_ms + PAUSE_MS)
            continue;
        if (command->at_ms > bench->now_ms)
            bench->now_ms = command->at_ms;
        return true;
    }
    return false;
}

void settle(struct bench *bench, struct cost *cost)
{
    for (uint32_t i = 0; i < TIMERS_MAX && goes_on(bench); i++)
        step(bench, &(struct event){.kind = EVENT_TIMER}, cost);
}

void submit(struct bench *bench, const struct plan *like, struct cost *cost)
{
    char name[32];
    struct plan plan = *like;
    snprintf(name, sizeof name, "job-%" PRIu64, ++bench->submitted);
    plan.name = name;
    step(bench, &(struct event){.kind = EVENT_SUBMIT, .submit = {.plan = plan_copy(&plan)}}, cost);
}

void end(struct bench *bench, uint64_t attempt, struct cost *cost)
{
    struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {attempt}}};
    event.task.completion = completion_of(0, "%s", "");
    step(bench, &event, cost);
}

/* --- worlds --- */

struct plan_role role_of(uint32_t gpu)
{
    struct plan_role role = plan_role_of("worker");
    role.gpu = gpu;
    return role;
}

struct plan plan_of(const struct plan_role *roles, uint16_t count)
{
    return (struct plan){.user = "alice",
                         .virtual_cluster = "default",
                         .priority = 10,
                         .is_retry_fancy = true,
                         .is_gang = true,
                         .roles = roles,
                         .role_count = count};
}

/* Other policies take any name. */
void document_write(const struct bench *bench, struct buf *out)
{
    const uint32_t clusters = bench->clusters ? bench->clusters : CLUSTERS;
    buf_string(out, "physicalCluster:\n"
                    "  skuTypes: {V100: {gpu: 1, cpu: 8, memory: 8192Mi}}\n"
                    "  cellTypes: {NODE: {childCellType: V100, childCellNumber: 8, isNodeLevel: "
                    "true}}\n  physicalCells:\n");
    for (uint32_t i = 0; i < bench->nodes; i++)
        buf_format(out, "  - {cellType: NODE, cellAddress: n%u}\n", i);
    buf_string(out, "virtualClusters:\n");
    for (uint32_t i = 0; i < clusters; i++)
        buf_format(out, "  vc%u: {virtualCells: [{cellType: NODE, cellNumber: %u}]}\n", i,
                   bench->nodes / clusters);
}

struct node_facts node_of(const char *name)
{
    return (struct node_facts){.name = name,
                               .cpu = NODE_CPU,
                               .memory_mib = NODE_MIB,
                               .gpu_count = NODE_GPUS,
                               .gpu_type = "V100",
                               .address = "10.0.0.1",
                               .is_healthy = true};
}

void bench_begin(struct bench *bench, bool has_clusters)
{
    struct core_config config;
    struct err err = {0};
    struct buf document = BUF_INIT;
    core_config_default(&config);
    config.policy = bench->policy;
    config.port_last = 15999; /* a thousand */
    if (has_clusters && !strcmp(bench->policy, "hived")) {
        document_write(bench, &document);
        config.placement_document = buf_as_text(&document);
    }
    bench->now_ms = 1000000;
    bench->submitted = bench->starts = 0;
    bench->submit = bench->end = bench->timer = bench->node = bench->cells = (struct cost){0};
    bench->core = core_new(&config, &err);
    buf_release(&document);
    if (!bench->core) {
        fprintf(stderr, "%s: %s\n", err.path, err.text);
        exit(1);
    }
    for (uint32_t i = 0; i < bench->nodes; i++) {
        char name[16], type[16];
        snprintf(name, sizeof name, "n%u", i);
        struct node_facts node = node_of(name);
        if (bench->has_two_types && i % 2)
            node.gpu_type = "A100";
        if (bench->many_types) {
            snprintf(type, sizeof type, "T%u", i % bench->many_types);
            node.gpu_type = type;
        }
        step(bench, &(struct event){.kind = EVENT_NODE, .node = node}, &bench->node);
    }
    settle(bench, &bench->cells);
}

/* All GPUs of all nodes are in use, by jobs of one node each. */
void fill(struct bench *bench, bool has_clusters)
{
    struct plan_role role = role_of(NODE_GPUS);
    role.memory_mib = NODE_MIB / 2;
    struct plan plan = plan_of(&role, 1);
    char cluster[16];
    for (uint32_t i = 0; i < bench->nodes; i++) {
        snprintf(cluster, sizeof cluster, "vc%u", i % CLUSTERS);
        if (has_clusters)
            plan.virtual_cluster = cluster;
        submit(bench, &plan, NULL);
    }
}

uint64_t shape_tasks(const struct shape *shape)
{
    return (uint64_t)shape->groups * shape->tasks;
}

struct plan shape_plan(const struct shape *shape, uint32_t gpu)
{
    static struct plan_role roles[GROUPS];
    static char names[GROUPS][16];
    for (uint16_t i = 0; i < shape->groups; i++) {
        snprintf(names[i], sizeof names[i], "group%u", i);
        roles[i] = role_of(gpu);
        roles[i].name = roles[i].affinity_group = names[i];
        roles[i].instances = shape->tasks;
        roles[i].memory_mib = gpu ? 1 : NODE_MIB;
    }
    struct plan plan = plan_of(roles, shape->groups);
    plan.is_gang = shape->is_gang;
    plan.priority = 100;
    return plan;
}

/* --- costs and memory --- */

void cost_print(const char *what, const struct cost *cost)
{
    if (cost->count)
        printf("%-50s %8" PRIu64 " %8.1f %8.1f %8" PRIu64 " %8" PRIu64 "\n", what, cost->count,
               cost->sum_us / (double)cost->count, cost->worst_us, cost->worst_at, cost->over);
}

/* As in skepd. */
void heap_set(void)
{
    enum { KEPT_BYTES = 16 << 20 };
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MXFAST, 0);
}

/* Memory that the bench has freed before must not make the first steps cheaper. */
void heap_cool(void)
{
    malloc_trim(0);
}
