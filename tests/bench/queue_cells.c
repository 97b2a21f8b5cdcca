/* Nodes appear and change, and so do the policy and the order; readers get copies of that. */
#include "queue_scenes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "hived/hived.h"
#include "placement/hived.h"
#include "queue_world.h"
#include "server/snapshot.h"

enum { SNAPSHOTS = 100 };

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
void snapshots_run(struct bench *bench)
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

/* The configuration is read, in which nothing but the policy has changed, and the policy comes into
 * force. */
static void policy_set(struct bench *bench, const char *policy, struct cost *change,
                       struct cost *steps)
{
    struct core_config config;
    core_config_default(&config);
    config.port_last = 15999;
    config.policy = policy;
    step(bench, &(struct event){.kind = EVENT_CONFIG, .config = &config}, change);
    while (core_policy_changes(bench->core))
        step(bench, &(struct event){.kind = EVENT_TIMER}, steps);
}

/* All nodes are full, so many jobs preempt others, and the policy changes. */
static void bench_policy(struct bench *bench, const char *policy, uint32_t preemptors)
{
    struct cost others = {0}, change = {0}, steps = {0}, searches = {0};
    bench_begin(bench, false);
    fill(bench, false);
    settle(bench, NULL);
    const struct plan_role role = role_of(NODE_GPUS);
    struct plan plan = plan_of(&role, 1);
    plan.priority = 100;
    for (uint32_t i = 0; i < preemptors; i++) {
        submit(bench, &plan, &others);
        settle(bench, &others);
    }
    policy_set(bench, policy, &change, &steps);
    settle(bench, &searches);
    printf("\nthe policy becomes %s, %u jobs run, and %u preempt\n", policy, bench->nodes,
           preemptors);
    cost_print("those that preempt are submitted", &others);
    cost_print("the configuration is read", &change);
    cost_print("steps until the policy is in force", &steps);
    cost_print("steps after that, with the searches anew", &searches);
    fflush(stdout);
    core_free(bench->core);
}

/* One affinity group of two roles with so many tasks each. */
static struct plan plan_of_two(struct plan_role roles[2], uint32_t instances, uint32_t gpu)
{
    roles[0] = roles[1] = role_of(gpu);
    roles[1].name = "other";
    for (size_t i = 0; i < 2; i++) {
        roles[i].instances = instances;
        roles[i].affinity_group = "all";
        roles[i].memory_mib = 1;
    }
    return plan_of(roles, 2);
}

/* One affinity group of two roles of 10,000 tasks runs, and the policy changes; then a node does,
 * so that its cells are made anew. */
static void bench_policy_of_part(struct bench *bench, const char *policy, uint32_t gpu)
{
    struct cost start = {0}, change = {0}, steps = {0}, again = {0}, back = {0};
    struct plan_role roles[2];
    const struct plan plan = plan_of_two(roles, one_group.tasks, gpu);
    bench_begin(bench, false);
    submit(bench, &plan, &start);
    settle(bench, &start);
    policy_set(bench, policy, &change, &steps);
    settle(bench, &again);
    policy_set(bench, bench->policy, &change, &back);
    settle(bench, &again);
    printf("\none group of %" PRIu64 " tasks of %u GPUs runs, and the policy becomes %s\n",
           bench->starts, gpu, policy);
    cost_print("it starts", &start);
    cost_print("the configuration is read", &change);
    cost_print("steps until the policy is in force", &steps);
    cost_print("steps until that of before is again", &back);
    cost_print("steps after that", &again);
    fflush(stdout);
    core_free(bench->core);
}

/* Such a group runs on all nodes, and one of these loses a GPU: it is a recovery. */
static void bench_lost(struct bench *bench, uint32_t gpu)
{
    struct cost start = {0}, change = {0}, steps = {0};
    struct plan_role roles[2];
    const uint32_t instances = bench->nodes * NODE_GPUS / gpu / COUNT_OF(roles);
    const struct plan plan = plan_of_two(roles, instances, gpu);
    bench_begin(bench, false);
    submit(bench, &plan, &start);
    settle(bench, &start);
    struct node_facts node = node_of("n7");
    node.gpu_switch = (const uint16_t[NODE_GPUS]){[3] = NODE_GPU_LOST};
    step(bench, &(struct event){.kind = EVENT_NODE, .node = node}, &change);
    settle(bench, &steps);
    printf("\none group of %" PRIu64 " tasks of %u GPUs runs, and a node loses a GPU\n",
           bench->starts, gpu);
    cost_print("it starts", &start);
    cost_print("the event", &change);
    cost_print("steps in which the cells are made anew", &steps);
    fflush(stdout);
    core_free(bench->core);
}

/* Many jobs wait in a full cluster, of eight shapes or each of its own, and the configuration is
 * read again: smaller ones go first. */
static void bench_order(struct bench *bench, bool is_of_few)
{
    struct cost change = {0}, steps = {0}, passes = {0}, before = {0}, ends = {0};
    struct core_config config;
    bench_begin(bench, false);
    fill(bench, false);
    settle(bench, NULL);
    for (uint32_t i = 0; i < bench->jobs; i++) {
        struct plan_role role = role_of(1 + i * 7 % NODE_GPUS);
        if (!is_of_few)
            role.memory_mib = 1 + i;
        const struct plan plan = plan_of(&role, 1);
        submit(bench, &plan, NULL);
    }
    settle(bench, NULL);
    for (uint64_t i = 1; i <= ENDS; i++) {
        bench->now_ms += PAUSE_MS;
        end(bench, i, &before);
    }
    core_config_default(&config);
    config.port_last = 15999;
    config.policy = bench->policy;
    config.order = "smallest";
    step(bench, &(struct event){.kind = EVENT_CONFIG, .config = &config}, &change);
    while (core_order_changes(bench->core))
        step(bench, &(struct event){.kind = EVENT_TIMER}, &steps);
    settle(bench, &passes);
    for (uint64_t i = ENDS + 1; i <= 2 * ENDS; i++) {
        bench->now_ms += PAUSE_MS;
        end(bench, i, &ends);
    }
    printf("\nthe order becomes smallest, and %u jobs wait, %s\n", bench->jobs,
           is_of_few ? "of eight shapes" : "each of its own shape");
    cost_print("ends of jobs before that", &before);
    cost_print("the configuration is read", &change);
    cost_print("steps until the order is in force", &steps);
    cost_print("steps after that", &passes);
    cost_print("ends of jobs after that", &ends);
    fflush(stdout);
    core_free(bench->core);
}

void cells_run(struct bench *bench)
{
    bench_cells(bench);
    const char *next = strcmp(bench->policy, "hived") != 0 ? "hived" : "best-fit";
    bench_policy(bench, next, 0);
    bench_policy(bench, next, bench->nodes / 2);
    bench_policy_of_part(bench, next, 4);
    bench_policy_of_part(bench, next, 1);
    bench_policy_of_part(bench, next, 0);
    bench_lost(bench, 4);
    bench_lost(bench, 8);
    bench_order(bench, true);
    bench_order(bench, false);
}
