/* queue-bench: what one event costs the core while many jobs wait, by what makes them different.
 *
 * usage: queue-bench [NODES [JOBS [POLICY [PART]]]]
 * NODES: of 8 GPUs, all in use (10000). JOBS: waiting (100000). POLICY: hived (default), first-fit,
 * best-fit, spread. PART: waits, lives, cells, snapshots, starves, behind, preempts or unequal; all
 * without it.
 * waits: for each kind of queue the program prints the mean and the worst time of a submission, of
 * an end that frees a node's place, and of a timer with which a pass goes on, and how many such
 * timers an end causes. lives: what happens to large jobs, which preempt or find an empty cluster,
 * from submission to end, by the kinds of events. cells: nodes appear, and one changes; the policy
 * does. snapshots: what readers get is copied as a whole and in pieces. starves: room is held back
 * for a job. behind: a large gang starts behind such a job. preempts: one scene of waits, small
 * jobs that preempt. unequal: gangs of tasks of which no two kinds are equal. It asserts nothing.
 * CPU time of the one thread.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arguments.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/core.h"
#include "core/plan.h"
#include "hived/hived.h"
#include "placement/hived.h"
#include "server/snapshot.h"

enum {
    NODE_GPUS = 8,
    NODE_CPU = 64,
    NODE_MIB = 65536,
    ENDS = 300,
    FREES = 200,
    STARVES_MS = 601000,
    STARVING_ENDS = 20,
    WEAK_JOBS = 100,
    COPIES = 5,
    SNAPSHOTS = 100,
    SNAPSHOT_ENDS = 10,
    TIMERS_MAX = 4000, /* of one end; the rest is cut */
    PAUSE_MS = 10,     /* of the core, between two steps of a long pass */
    CLUSTERS = 100,
    GROUPS = 256,
    GROUP_TASKS = 78, /* 19,968 tasks in all */
    OVER_US = 1000,   /* what no event should take */
};

struct cost {
    uint64_t count;
    double sum_us, worst_us;
    uint64_t worst_at; /* which of the events, from 1 */
    uint64_t over;     /* so many took longer than OVER_US */
};

struct bench {
    struct core *core;
    struct output output;
    const char *policy;
    uint32_t nodes, jobs, clusters;
    int64_t now_ms;
    uint64_t submitted;
    struct cost submit, end, timer;
    struct cost node, cells; /* a node appears; what follows from that */
    uint64_t starts;
};

/* --- one event --- */

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void cost_add(struct cost *cost, double us)
{
    cost->count++;
    cost->sum_us += us;
    cost->over += us > OVER_US;
    if (us <= cost->worst_us)
        return;
    cost->worst_us = us;
    cost->worst_at = cost->count;
}

static void step(struct bench *bench, struct event *event, struct cost *cost)
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
static void step_next(struct bench *bench, struct event *event, struct cost *cost,
                      struct cost *start)
{
    struct cost one = {0};
    const uint64_t starts = bench->starts;
    step(bench, event, &one);
    cost_add(bench->starts > starts ? start : cost, one.sum_us);
}

/* At once, or after a pause that the core makes when there is much to do. */
static bool goes_on(struct bench *bench)
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

static void settle(struct bench *bench, struct cost *cost)
{
    for (uint32_t i = 0; i < TIMERS_MAX && goes_on(bench); i++)
        step(bench, &(struct event){.kind = EVENT_TIMER}, cost);
}

static void submit(struct bench *bench, const struct plan *like, struct cost *cost)
{
    char name[32];
    struct plan plan = *like;
    snprintf(name, sizeof name, "job-%" PRIu64, ++bench->submitted);
    plan.name = name;
    step(bench, &(struct event){.kind = EVENT_SUBMIT, .submit = {.plan = plan_copy(&plan)}}, cost);
}

static void end(struct bench *bench, uint64_t attempt, struct cost *cost)
{
    struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {attempt}}};
    event.task.completion = completion_of(0, "%s", "");
    step(bench, &event, cost);
}

/* --- worlds --- */

static struct plan_role role_of(uint32_t gpu)
{
    struct plan_role role = plan_role_of("worker");
    role.gpu = gpu;
    return role;
}

static struct plan plan_of(const struct plan_role *roles, uint16_t count)
{
    return (struct plan){.user = "alice",
                         .virtual_cluster = "default",
                         .priority = 10,
                         .is_retry_fancy = true,
                         .is_gang = true,
                         .roles = roles,
                         .role_count = count};
}

/* Virtual clusters of equal size, for HiveD; other policies take any name. */
static void document_write(const struct bench *bench, struct buf *out)
{
    buf_string(out, "physicalCluster:\n"
                    "  skuTypes: {V100: {gpu: 1, cpu: 8, memory: 8192Mi}}\n"
                    "  cellTypes: {NODE: {childCellType: V100, childCellNumber: 8, isNodeLevel: "
                    "true}}\n  physicalCells:\n");
    for (uint32_t i = 0; i < bench->nodes; i++)
        buf_format(out, "  - {cellType: NODE, cellAddress: n%u}\n", i);
    buf_string(out, "virtualClusters:\n");
    for (uint32_t i = 0; i < CLUSTERS; i++)
        buf_format(out, "  vc%u: {virtualCells: [{cellType: NODE, cellNumber: %u}]}\n", i,
                   bench->nodes / CLUSTERS);
}

static struct node_facts node_of(const char *name)
{
    return (struct node_facts){.name = name,
                               .cpu = NODE_CPU,
                               .memory_mib = NODE_MIB,
                               .gpu_count = NODE_GPUS,
                               .gpu_type = "V100",
                               .address = "10.0.0.1",
                               .is_healthy = true};
}

static void bench_begin(struct bench *bench, bool has_clusters)
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
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        const struct node_facts node = node_of(name);
        step(bench, &(struct event){.kind = EVENT_NODE, .node = node}, &bench->node);
    }
    settle(bench, &bench->cells);
}

static void ends_run(struct bench *bench, const char *what)
{
    settle(bench, &bench->timer);
    bench->timer = (struct cost){0};
    bench->starts = 0;
    for (uint64_t i = 1; i <= ENDS; i++) {
        bench->now_ms += 100;
        end(bench, i, &bench->end);
        settle(bench, &bench->timer);
    }
    const struct cost *costs[] = {&bench->submit, &bench->end, &bench->timer};
    printf("%-34s", what);
    for (size_t i = 0; i < COUNT_OF(costs); i++)
        printf(" %8.1f %8.1f", costs[i]->count ? costs[i]->sum_us / (double)costs[i]->count : 0,
               costs[i]->worst_us);
    printf(" %8.1f %7.0f\n", (double)bench->timer.count / ENDS, (double)bench->starts);
    fflush(stdout);
    core_free(bench->core);
}

/* All GPUs of all nodes are in use, by jobs of one node each. */
static void fill(struct bench *bench, bool has_clusters)
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

enum kind { EQUAL, LIMITS, MEMORY, DEMANDS, CLUSTERED, KINDS };

static const char *const kinds[KINDS] = {"equal", "time limits differ", "memory differs, CPUs free",
                                         "demands differ", "100 virtual clusters"};

static void bench_kind(struct bench *bench, enum kind kind)
{
    bool has_clusters = kind == CLUSTERED;
    char cluster[16];
    bench_begin(bench, has_clusters);
    fill(bench, has_clusters);
    for (uint32_t i = 0; i < bench->jobs; i++) {
        struct plan_role role = role_of(NODE_GPUS);
        struct plan plan = plan_of(&role, 1);
        if (kind == LIMITS)
            plan.time_limit_s = 1000 + i;
        if (kind == MEMORY) {
            role.gpu = 0;
            role.memory_mib = NODE_MIB / 2 + 1 + i % (NODE_MIB / 2);
        }
        if (kind == DEMANDS || kind == CLUSTERED) {
            role.cpu = 1 + i % NODE_CPU;
            role.gpu = 1 + i / NODE_CPU % NODE_GPUS;
            role.memory_mib = 1 + i;
        }
        snprintf(cluster, sizeof cluster, "vc%u", i % CLUSTERS);
        if (has_clusters)
            plan.virtual_cluster = cluster;
        submit(bench, &plan, &bench->submit);
        settle(bench, NULL);
    }
    ends_run(bench, kinds[kind]);
}

/* Small jobs go ahead of all that wait: each of them preempts one. Their submissions, with the
 * steps after them, and the ends of those who must go. */
static void bench_preemptors(struct bench *bench)
{
    bench_begin(bench, false);
    fill(bench, false);
    for (uint32_t i = 0; i < bench->jobs; i++) {
        struct plan_role role = role_of(1 + i / NODE_CPU % NODE_GPUS);
        role.cpu = 1 + i % NODE_CPU;
        role.memory_mib = 1 + i;
        const struct plan plan = plan_of(&role, 1);
        submit(bench, &plan, NULL);
        settle(bench, NULL);
    }
    const struct plan_role role = role_of(NODE_GPUS);
    struct plan plan = plan_of(&role, 1);
    plan.priority = 100;
    for (uint32_t i = 0; i < ENDS; i++) {
        submit(bench, &plan, &bench->submit);
        settle(bench, &bench->submit);
    }
    ends_run(bench, "demands differ, others preempt");
}

/* There is room, but ports are scarce: each shape asks for another number. */
static void bench_ports(struct bench *bench)
{
    bench_begin(bench, false);
    const struct plan_port most = {"data", 950, 0};
    struct plan_role role = role_of(1);
    role.ports = &most;
    role.port_count = 1;
    struct plan plan = plan_of(&role, 1);
    for (uint32_t i = 0; i < bench->nodes; i++) /* best fit might put two on one node */
        submit(bench, &plan, NULL);
    for (uint32_t i = 0; i < bench->jobs; i++) {
        struct plan_port ports[] = {{"a", 51 + i % 900, 0}, {"b", 1 + i / 900, 0}};
        role.ports = ports;
        role.port_count = 2;
        submit(bench, &plan, &bench->submit);
        settle(bench, NULL);
    }
    ends_run(bench, "ports differ, none are free");
}

/* A job whose tasks are all in groups of one size. */
struct shape {
    uint16_t groups;
    uint32_t tasks; /* of each group */
    uint32_t gpu;   /* of each task */
    bool is_gang;
    const char *name;
};

static const struct shape many_groups = {GROUPS, GROUP_TASKS, 1, true,
                                         "a gang of 256 groups of 78"};
static const struct shape one_group = {1, 10000, 1, true, "a gang of one group of 10,000"};
static const struct shape all_gpus = {1, 10000, NODE_GPUS, true,
                                      "a gang of one group of 10,000, each of 8 GPUs"};
static const struct shape no_gang = {2, 10000, 1, false, "20,000 tasks without gang"};

static uint64_t shape_tasks(const struct shape *shape)
{
    return (uint64_t)shape->groups * shape->tasks;
}

static struct plan shape_plan(const struct shape *shape, uint32_t gpu)
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

/* It waits before the others. */
static void bench_gang(struct bench *bench, uint32_t gpu, const char *what)
{
    bench_begin(bench, false);
    fill(bench, false);
    struct plan plan = shape_plan(&many_groups, gpu);
    submit(bench, &plan, &bench->submit);
    settle(bench, NULL);
    struct plan_role role = role_of(NODE_GPUS);
    plan = plan_of(&role, 1);
    for (uint32_t i = 0; i < bench->jobs; i++)
        submit(bench, &plan, NULL);
    ends_run(bench, what);
}

/* --- the life of a large job --- */

static void cost_print(const char *what, const struct cost *cost)
{
    if (cost->count)
        printf("%-50s %8" PRIu64 " %8.1f %8.1f %8" PRIu64 " %8" PRIu64 "\n", what, cost->count,
               cost->sum_us / (double)cost->count, cost->worst_us, cost->worst_at, cost->over);
}

/* What it preempts are the jobs that were submitted first: each of them has one task. */
static void victims_end(struct bench *bench, uint64_t tasks, struct cost *end, struct cost *step,
                        struct cost *start)
{
    for (uint64_t i = 1; i <= bench->nodes && bench->starts < tasks; i++) {
        bench->now_ms += 100;
        struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {i}}};
        event.task.completion = completion_of(0, "%s", "");
        step_next(bench, &event, end, start);
        for (uint32_t k = 0; k < TIMERS_MAX && goes_on(bench); k++)
            step_next(bench, &(struct event){.kind = EVENT_TIMER}, step, start);
    }
}

/* Its containers have been told to end, and do. */
static void tasks_exit(struct bench *bench, uint64_t before, uint64_t count, struct cost *exit,
                       struct cost *step)
{
    for (uint64_t i = 1; i <= count; i++) {
        struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {before + i}}};
        event.task.completion = completion_of(143, "%s", "");
        step_next(bench, &event, exit, exit);
        settle(bench, step);
    }
}

/* As in skepd. */
static void heap_set(void)
{
    enum { KEPT_BYTES = 16 << 20 };
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MXFAST, 0);
}

/* Memory that the bench has freed before must not make the first steps cheaper. */
static void heap_cool(void)
{
    malloc_trim(0);
}

/* In a full cluster the job preempts, in an empty one it starts at once. */
static void bench_life(struct bench *bench, const struct shape *shape, bool is_full)
{
    struct cost submission = {0}, search = {0}, end = {0}, retry = {0}, start = {0};
    struct cost scale = {0}, scaled = {0}, stop = {0}, stopping = {0}, exit = {0}, exiting = {0};
    bench_begin(bench, false);
    if (is_full)
        fill(bench, false);
    const uint64_t before = bench->starts, tasks = shape_tasks(shape);
    struct plan plan = shape_plan(shape, shape->gpu);
    heap_cool();
    bench->starts = 0;
    submit(bench, &plan, &submission);
    const uint32_t job = (uint32_t)bench->submitted;
    for (uint32_t k = 0; k < TIMERS_MAX && goes_on(bench); k++)
        step_next(bench, &(struct event){.kind = EVENT_TIMER}, &search, &start);
    victims_end(bench, tasks, &end, &retry, &start);
    const uint64_t started = bench->starts;
    uint64_t left = started;
    if (!shape->is_gang) { /* the second role's tasks go, the last of them at last */
        step(bench, &(struct event){.kind = EVENT_SCALE, .scale = {.job = {job}, .role = 1}},
             &scale);
        settle(bench, &scale);
        left = started < shape->tasks ? started : shape->tasks;
        tasks_exit(bench, before + left, started - left, &scaled, &scaled);
    }
    step(bench, &(struct event){.kind = EVENT_STOP, .job = {job}}, &stop);
    settle(bench, &stopping);
    tasks_exit(bench, before, left, &exit, &exiting);
    printf("\n%s, %s cluster (%" PRIu64 " of %" PRIu64 " start)\n", shape->name,
           is_full ? "full" : "empty", started, tasks);
    cost_print("its submission", &submission);
    cost_print("steps of its search, and to tell its victims", &search);
    cost_print("ends of jobs until it starts", &end);
    cost_print("steps of its search and its start after that", &retry);
    cost_print("steps in which its tasks are created", &start);
    cost_print("half of its tasks are scaled away", &scale);
    cost_print("ends of those, and steps after the last of them", &scaled);
    cost_print("its end is asked for", &stop);
    cost_print("steps in which its tasks are told", &stopping);
    cost_print("ends of its tasks", &exit);
    cost_print("steps after the last of them", &exiting);
    fflush(stdout);
    core_free(bench->core);
}

/* A large group preempts another one, and is stopped before that has ended. */
static void bench_give_up(struct bench *bench)
{
    struct cost submission = {0}, search = {0}, stop = {0}, rest = {0};
    bench_begin(bench, false);
    struct plan plan = shape_plan(&all_gpus, NODE_GPUS);
    plan.priority = 10;
    submit(bench, &plan, NULL);
    settle(bench, NULL);
    plan.priority = 100;
    heap_cool();
    submit(bench, &plan, &submission);
    settle(bench, &search);
    step(bench, &(struct event){.kind = EVENT_STOP, .job = {(uint32_t)bench->submitted}}, &stop);
    settle(bench, &rest);
    printf("\n%s preempts another one, and gives up\n", all_gpus.name);
    cost_print("its submission", &submission);
    cost_print("steps of its search, and to tell its victim", &search);
    cost_print("it is stopped", &stop);
    cost_print("steps after that", &rest);
    fflush(stdout);
    core_free(bench->core);
}

/* A gang has told all that runs to end for it, and waits; then a node changes, so that its places
 * are asked for again. */
static void bench_node_change(struct bench *bench)
{
    struct cost search = {0}, change = {0}, steps = {0};
    bench_begin(bench, false);
    fill(bench, false);
    const struct plan plan = shape_plan(&all_gpus, NODE_GPUS);
    submit(bench, &plan, &search);
    settle(bench, &search);
    struct node_facts node = node_of("n7");
    node.cpu -= 8;
    heap_cool();
    step(bench, &(struct event){.kind = EVENT_NODE, .node = node}, &change);
    settle(bench, &steps);
    node.is_healthy = false;
    step(bench, &(struct event){.kind = EVENT_NODE, .node = node}, &change);
    settle(bench, &steps);
    printf("\n%s waits for its victims, and a node changes, and fails\n", all_gpus.name);
    cost_print("steps until it has told them", &search);
    cost_print("the node's changes", &change);
    cost_print("steps after these", &steps);
    fflush(stdout);
    core_free(bench->core);
}

/* What skepd copies for requests that read cells. */
static void cells_copy(struct bench *bench, struct cost *cost)
{
    for (uint32_t i = 0; i < COPIES; i++) {
        const double begin = now_us();
        struct hived *copy = placer_hived_copy(core_placer(bench->core));
        cost_add(cost, now_us() - begin);
        hived_free(copy);
    }
}

/* What skepd makes for requests that read cells: all of it, and in pieces. */
struct shown {
    struct cost whole, first, after_ends, after_all, after_gang, after_task, nodes, nodes_again;
    struct hived *mirror;
};

static void mirror_update(struct bench *bench, struct shown *shown, struct cost *cost)
{
    struct hived *old = NULL;
    bool is_whole = false;
    while (!is_whole) {
        const double begin = now_us();
        is_whole =
            placer_hived_mirror(core_placer(bench->core), &shown->mirror, &old, SNAPSHOT_CELLS);
        cost_add(cost, now_us() - begin);
    }
    hived_free(old);
}

static void nodes_copy(struct bench *bench, struct core_node_use *nodes, struct cost *cost)
{
    const double begin = now_us();
    const uint32_t count = core_node_count(bench->core);
    for (uint32_t i = 0; i < count; i++)
        nodes[i] = core_node_use(bench->core, (struct node_id){i});
    cost_add(cost, now_us() - begin);
}

/* In turns, so that the load of the machine is the same for all; then all jobs end at once. */
static void bench_snapshots(struct bench *bench)
{
    struct shown shown = {0};
    struct cost ends = {0};
    uint64_t ended = 0;
    bench_begin(bench, false);
    fill(bench, false);
    settle(bench, NULL);
    for (uint32_t i = 0; i < COPIES; i++) {
        cells_copy(bench, &shown.whole);
        hived_free(shown.mirror);
        shown.mirror = NULL;
        heap_cool(); /* the core's thread frees none of these: malloc has not to sort them */
        mirror_update(bench, &shown, &shown.first);
        for (uint32_t k = 0; k < SNAPSHOTS; k++) {
            for (uint32_t end_at = 0; end_at < SNAPSHOT_ENDS; end_at++)
                end(bench, 1 + ended++ % bench->nodes, &ends);
            settle(bench, NULL);
            mirror_update(bench, &shown, &shown.after_ends);
        }
        struct core_node_use *nodes = mem_alloc(mem_size(bench->nodes, sizeof *nodes));
        nodes_copy(bench, nodes, &shown.nodes);
        nodes_copy(bench, nodes, &shown.nodes_again);
        mem_free(nodes);
    }
    while (ended < bench->nodes)
        end(bench, 1 + ended++, &ends);
    mirror_update(bench, &shown, &shown.after_all);
    const struct plan plan = shape_plan(&all_gpus, NODE_GPUS);
    submit(bench, &plan, NULL);
    settle(bench, NULL);
    mirror_update(bench, &shown, &shown.after_gang);
    end(bench, bench->starts, &ends);
    mirror_update(bench, &shown, &shown.after_task);
    printf("\n%-50s %8s %8s %8s %8s %8s\n", "snapshots for readers", "pieces", "mean", "worst",
           "of them", "over 1ms");
    cost_print("all of HiveD is copied", &shown.whole);
    cost_print("a mirror is made", &shown.first);
    cost_print("it is brought up to date after 10 ends", &shown.after_ends);
    cost_print("after the end of all", &shown.after_all);
    cost_print("after the start of 10,000 tasks of 8 GPUs", &shown.after_gang);
    cost_print("after the end of one of these", &shown.after_task);
    cost_print("the use of nodes", &shown.nodes);
    cost_print("the use of nodes, where it was before", &shown.nodes_again);
    cost_print("for comparison: these ends", &ends);
    fflush(stdout);
    hived_free(shown.mirror);
    core_free(bench->core);
}

/* Automatic cells follow the nodes: the first ones, and those of a full cluster after a node has
 * lost a GPU. */
static void bench_cells(struct bench *bench)
{
    struct cost change = {0}, steps = {0}, leaves = {0}, leaf_steps = {0}, frees = {0}, ends = {0},
                copy = {0};
    bench_begin(bench, false);
    const struct cost nodes = bench->node, cells = bench->cells;
    fill(bench, false);
    settle(bench, NULL);
    struct node_facts node = node_of("n7");
    node.gpu_switch = (const uint16_t[NODE_GPUS]){[3] = NODE_GPU_LOST};
    step(bench, &(struct event){.kind = EVENT_NODE, .node = node}, &change);
    settle(bench, &steps);
    node.cpu += 16; /* other CPU leaves */
    step(bench, &(struct event){.kind = EVENT_NODE, .node = node}, &leaves);
    settle(bench, &leaf_steps);
    for (uint32_t i = 0; i < FREES; i++)
        step(bench, &(struct event){.kind = EVENT_TIMER}, &frees);
    for (uint64_t i = 1; i <= ENDS; i++) /* what runs is known to the new cells */
        end(bench, i, &ends);
    cells_copy(bench, &copy);
    printf("\n%-50s %8s %8s %8s %8s %8s\n", "automatic cells", "events", "mean", "worst", "of them",
           "over 1ms");
    cost_print("the nodes appear", &nodes);
    cost_print("steps in which their cells are made", &cells);
    cost_print("all are full, and a node loses a GPU", &change);
    cost_print("steps in which the cells are made anew", &steps);
    cost_print("the node gets more CPUs", &leaves);
    cost_print("steps in which the cells are made anew", &leaf_steps);
    cost_print("steps in which the cells of before are freed", &frees);
    cost_print("ends of jobs after that", &ends);
    cost_print("copies of the cells", &copy);
    fflush(stdout);
    core_free(bench->core);
}

/* All nodes are full, and the configuration is read again: nothing but the policy has changed. */
static void bench_policy(struct bench *bench, const char *policy)
{
    struct cost change = {0}, steps = {0};
    struct core_config config;
    bench_begin(bench, false);
    fill(bench, false);
    settle(bench, NULL);
    core_config_default(&config);
    config.port_last = 15999;
    config.policy = policy;
    step(bench, &(struct event){.kind = EVENT_CONFIG, .config = &config}, &change);
    settle(bench, &steps);
    printf("\nthe policy becomes %s, and %u jobs run\n", policy, bench->nodes);
    cost_print("the configuration is read", &change);
    cost_print("steps after that", &steps);
    fflush(stdout);
    core_free(bench->core);
}

/* All nodes are full, every other job with a time limit. One job has waited for ten minutes, and
 * room is held back for it; then one ahead of it starts, and one behind asks for a place. */
static void bench_starving(struct bench *bench, const struct shape *shape)
{
    struct cost begin = {0}, steps = {0}, ends = {0}, ahead = {0}, behind = {0}, over = {0};
    bench_begin(bench, false);
    struct plan_role role = role_of(NODE_GPUS);
    struct plan plan = plan_of(&role, 1);
    for (uint32_t i = 0; i < bench->nodes; i++) {
        plan.time_limit_s = i % 2 ? 3600 + i : 0;
        submit(bench, &plan, NULL);
    }
    struct plan starving = shape ? shape_plan(shape, shape->gpu) : plan;
    starving.priority = 10;
    submit(bench, &starving, NULL);
    settle(bench, NULL);
    bench->now_ms += STARVES_MS;
    step(bench, &(struct event){.kind = EVENT_TIMER}, &begin);
    settle(bench, &steps);
    plan.priority = 100;
    submit(bench, &plan, &ahead);
    settle(bench, &ahead);
    role.gpu = 1;
    plan.priority = 10;
    plan.time_limit_s = 60;
    for (uint64_t i = 1; i <= STARVING_ENDS; i++) {
        bench->now_ms += 2000;
        end(bench, 2 * i, &ends);
        settle(bench, &ends);
        submit(bench, &plan, &behind);
        settle(bench, &behind);
    }
    for (uint32_t i = 0; i < FREES; i++)
        step(bench, &(struct event){.kind = EVENT_TIMER}, &over);
    printf("\na job starves: %s\n", shape ? shape->name : "one node");
    cost_print("it begins to", &begin);
    cost_print("steps after that", &steps);
    cost_print("one ahead of it is submitted, and preempts", &ahead);
    cost_print("ends of jobs, and steps after them", &ends);
    cost_print("one behind it is submitted, and steps after it", &behind);
    cost_print("steps in which shadows are freed", &over);
    fflush(stdout);
    core_free(bench->core);
}

/* A gang that needs more nodes than those on which weaker jobs run has waited for ten minutes. One
 * behind it would preempt one of these jobs: is there room for both? */
static void bench_room(struct bench *bench, const struct shape *shape)
{
    struct cost asked = {0};
    bench_begin(bench, false);
    struct plan_role role = role_of(NODE_GPUS);
    struct plan plan = plan_of(&role, 1);
    for (uint32_t i = 0; i < bench->nodes; i++) {
        plan.priority = i + WEAK_JOBS < bench->nodes ? 10 : 5;
        submit(bench, &plan, NULL);
    }
    struct plan starving = shape_plan(shape, shape->gpu);
    starving.priority = 10;
    submit(bench, &starving, NULL);
    settle(bench, NULL);
    bench->now_ms += STARVES_MS;
    step(bench, &(struct event){.kind = EVENT_TIMER}, NULL);
    settle(bench, NULL);
    plan.priority = 10;
    submit(bench, &plan, &asked);
    settle(bench, &asked);
    printf("\none behind it would preempt: %s\n", shape->name);
    cost_print("its submission, and steps after it", &asked);
    fflush(stdout);
    core_free(bench->core);
}

/* A job starves that only one node of another kind could serve. A large gang behind it asks whether
 * there is room for both, and starts. */
static void bench_behind(struct bench *bench, const struct shape *shape, uint32_t gpu)
{
    struct cost submission = {0}, steps = {0};
    bench_begin(bench, false);
    struct node_facts node = node_of("other");
    node.gpu_type = "A100";
    step(bench, &(struct event){.kind = EVENT_NODE, .node = node}, NULL);
    settle(bench, NULL);
    struct plan_role role = role_of(NODE_GPUS);
    role.sku_type = "A100";
    const struct plan plan = plan_of(&role, 1);
    submit(bench, &plan, NULL);
    submit(bench, &plan, NULL);
    settle(bench, NULL);
    bench->now_ms += STARVES_MS;
    step(bench, &(struct event){.kind = EVENT_TIMER}, NULL);
    settle(bench, NULL);
    heap_cool();
    struct plan behind = shape_plan(shape, gpu);
    struct plan_role own = behind.roles[0];
    own.memory_mib = 1;
    behind.roles = &own;
    behind.priority = 10;
    bench->starts = 0;
    submit(bench, &behind, &submission);
    for (uint32_t i = 0; i < TIMERS_MAX && goes_on(bench) && !bench->starts; i++)
        step(bench, &(struct event){.kind = EVENT_TIMER}, &steps);
    printf("\nbehind one that starves: %s%s\n", gpu ? shape->name : "10,000 tasks without GPUs",
           bench->starts ? "" : ", which does not start");
    cost_print("it is submitted", &submission);
    cost_print("steps until it starts", &steps);
    fflush(stdout);
    core_free(bench->core);
}

static bool has_tasks(const struct bench *bench)
{
    for (size_t i = 0; i < bench->output.records.count; i++)
        if (bench->output.records.items[i].kind == RECORD_TASK)
            return true;
    return false;
}

/* A large group is stopped when some of its tasks have their places. */
static void bench_start_stop(struct bench *bench)
{
    struct cost stop = {0}, steps = {0};
    bench_begin(bench, false);
    const struct plan plan = shape_plan(&one_group, 1);
    submit(bench, &plan, NULL);
    for (uint32_t k = 0; k < TIMERS_MAX && goes_on(bench) && !has_tasks(bench); k++)
        step(bench, &(struct event){.kind = EVENT_TIMER}, NULL);
    heap_cool();
    step(bench, &(struct event){.kind = EVENT_STOP, .job = {(uint32_t)bench->submitted}}, &stop);
    settle(bench, &steps);
    printf("\n%s is stopped while it starts\n", one_group.name);
    cost_print("its end is asked for", &stop);
    cost_print("steps after that", &steps);
    fflush(stdout);
    core_free(bench->core);
}

/* All tasks of a large job have failed, and their containers, kept for debugging, may go: in one
 * step, and in many. */
static void bench_held(struct bench *bench, bool is_cut)
{
    struct cost exit = {0}, release = {0}, steps = {0};
    bench_begin(bench, false);
    struct plan_role role = role_of(1);
    role.instances = one_group.tasks;
    role.min_failed = (int32_t)role.instances; /* the last of them decides */
    struct plan plan = plan_of(&role, 1);
    plan.is_gang = false;
    plan.is_debug = true;
    bench->starts = 0;
    submit(bench, &plan, NULL);
    settle(bench, NULL);
    for (uint64_t i = 1; i <= bench->starts; i++) {
        struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {i}}};
        event.task.completion = completion_of(1, "%s", "");
        step(bench, &event, &exit);
        settle(bench, NULL);
    }
    if (!is_cut)
        core_slice_set(bench->core, UINT32_MAX);
    heap_cool();
    step(bench, &(struct event){.kind = EVENT_RELEASE, .job = {(uint32_t)bench->submitted}},
         &release);
    settle(bench, &steps);
    printf("\n%" PRIu64 " containers kept for debugging are let go, %s\n", exit.count,
           is_cut ? "in pieces" : "in one step");
    cost_print("failures of its tasks", &exit);
    cost_print("its containers are released", &release);
    cost_print("steps after that", &steps);
    fflush(stdout);
    core_free(bench->core);
}

/* A gang of one affinity group whose roles all need something else: whether it fits is not known by
 * counting alone. */
static struct plan unequal_plan(struct plan_role *roles, uint16_t count, uint32_t instances)
{
    for (uint16_t i = 0; i < count; i++) {
        static char names[GROUPS][16];
        snprintf(names[i], sizeof names[i], "role%u", i);
        roles[i] = role_of(1 + i % (NODE_GPUS - 1));
        roles[i].name = names[i];
        roles[i].affinity_group = "all";
        roles[i].instances = instances;
        roles[i].cpu = 1 + i % 16;
        roles[i].memory_mib = 1 + i;
    }
    struct plan plan = plan_of(roles, count);
    plan.priority = 100;
    return plan;
}

/* It preempts jobs of so many GPUs, one on each node; 0: nobody. */
static void bench_unequal(struct bench *bench, uint16_t roles, uint32_t instances, uint32_t used)
{
    struct cost submission = {0}, search = {0}, ends = {0}, steps = {0}, start = {0};
    struct plan_role unequal[GROUPS];
    bench_begin(bench, false);
    struct plan_role role = role_of(used);
    role.memory_mib = NODE_MIB / 2;
    role.cpu = NODE_CPU / 2 + 1;
    const struct plan running = plan_of(&role, 1);
    for (uint32_t i = 0; used && i < bench->nodes; i++)
        submit(bench, &running, NULL);
    const struct plan plan = unequal_plan(unequal, roles, instances);
    heap_cool();
    bench->starts = 0;
    submit(bench, &plan, &submission);
    for (uint32_t k = 0; k < TIMERS_MAX && goes_on(bench); k++)
        step_next(bench, &(struct event){.kind = EVENT_TIMER}, &search, &start);
    if (used)
        victims_end(bench, (uint64_t)roles * instances, &ends, &steps, &start);
    printf("\na gang of %u unequal roles of %u tasks, nodes with %u of %u GPUs in use (%" PRIu64
           " start)\n",
           roles, instances, used, (uint32_t)NODE_GPUS, bench->starts);
    cost_print("its submission", &submission);
    cost_print("steps of its search, and to tell its victims", &search);
    cost_print("ends of jobs until it starts", &ends);
    cost_print("steps of its search and its start after that", &steps);
    cost_print("steps in which its tasks are created", &start);
    fflush(stdout);
    core_free(bench->core);
}

static void unequal_run(struct bench *bench)
{
    printf("\n%-50s %8s %8s %8s %8s %8s\n", "gangs of unequal tasks", "events", "mean", "worst",
           "of them", "over 1ms");
    bench_unequal(bench, 4, 50, 0);
    bench_unequal(bench, 4, 50, NODE_GPUS);
    bench_unequal(bench, GROUPS, 3, 0);
    bench_unequal(bench, GROUPS, 3, NODE_GPUS);
    bench_unequal(bench, GROUPS, 1, NODE_GPUS - 2);
    bench_unequal(bench, GROUPS, GROUP_TASKS, NODE_GPUS);
}

static void starving_run(struct bench *bench)
{
    bench_starving(bench, NULL);
    bench_starving(bench, &many_groups);
    bench_starving(bench, &one_group);
    bench_starving(bench, &all_gpus);
    bench_room(bench, &many_groups);
    bench_room(bench, &one_group);
}

static void behind_run(struct bench *bench)
{
    bench_behind(bench, &one_group, one_group.gpu);
    bench_behind(bench, &all_gpus, all_gpus.gpu);
    bench_behind(bench, &one_group, 0);
}

static void lives_run(struct bench *bench)
{
    const struct shape *shapes[] = {&many_groups, &one_group, &all_gpus, &no_gang};
    printf("\n%-50s %8s %8s %8s %8s %8s\n", "the life of a large job", "events", "mean", "worst",
           "of them", "over 1ms");
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        bench_life(bench, shapes[i], true);
        bench_life(bench, shapes[i], false);
    }
    bench_give_up(bench);
    bench_node_change(bench);
    bench_start_stop(bench);
    bench_held(bench, false);
    bench_held(bench, true);
}

static void waits_run(struct bench *bench)
{
    printf("%-34s %17s %17s %17s %8s %7s\n", "the waiting jobs", "submission: worst", "end: worst",
           "timer: worst", "timers", "starts");
    for (int kind = 0; kind < KINDS; kind++)
        bench_kind(bench, (enum kind)kind);
    bench_preemptors(bench);
    bench_ports(bench);
    bench_gang(bench, 1, "a gang of 256 groups, GPUs");
    bench_gang(bench, 0, "a gang of 256 groups, memory");
}

static const char usage[] =
    "usage: queue-bench [NODES [JOBS [POLICY [PART]]]]     (10000, 100000, hived, all parts)\n"
    "POLICY: hived, first-fit, best-fit or spread. PART: waits, lives, cells, snapshots,\n"
    "starves, behind, preempts or unequal.\n";

/* The word at `at`, one of those given; NULL: there is none. */
static const char *word_of(int count, char **words, int at, const char *const *known, size_t many)
{
    if (count <= at)
        return NULL;
    for (size_t i = 0; i < many; i++)
        if (!strcmp(words[at], known[i]))
            return known[i];
    fprintf(stderr, "%s: there is no such policy or part\n%s", words[at], usage);
    exit(2);
}

int main(int count, char **words)
{
    static const char *const policies[] = {"hived", "first-fit", "best-fit", "spread"};
    static const char *const all[] = {"waits",   "lives",  "cells",    "snapshots",
                                      "starves", "behind", "preempts", "unequal"};
    arguments_check(count, words, 0, 4, 0, usage);
    const char *policy = word_of(count, words, 3, policies, COUNT_OF(policies));
    const char *part = word_of(count, words, 4, all, COUNT_OF(all));
    struct bench bench = {
        .policy = policy ? policy : policies[0],
        .nodes = count > 1 ? (uint32_t)argument_number(words[1], CLUSTERS, CORE_NODES_MAX, usage)
                           : 10000,
        .jobs =
            count > 2 ? (uint32_t)argument_number(words[2], 1, CORE_JOBS_MAX / 2, usage) : 100000,
    };
    heap_set();
    output_init(&bench.output);
    printf("policy %s, %u nodes, %u jobs wait; microseconds\n", bench.policy, bench.nodes,
           bench.jobs);
    if (!part || part == all[0])
        waits_run(&bench);
    if (!part || part == all[1])
        lives_run(&bench);
    if (!part || part == all[2]) {
        bench_cells(&bench);
        bench_policy(&bench, strcmp(bench.policy, "hived") != 0 ? "hived" : "best-fit");
    }
    if (!part || part == all[3])
        bench_snapshots(&bench);
    if (!part || part == all[4])
        starving_run(&bench);
    if (!part || part == all[5])
        behind_run(&bench);
    if (part == all[6])
        bench_preemptors(&bench);
    if (!part || part == all[7])
        unequal_run(&bench);
    output_release(&bench.output);
    return 0;
}
