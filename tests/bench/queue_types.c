/* A large group is on several leaf types: when it starts, and when another placer takes over. And
 * the quotas shrink, so that what runs loses its virtual cells to another one. */
#include "queue_scenes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "placement/placement.h"
#include "queue_world.h"

enum { TASK_GPUS = 4, WEAK = 20, STRONG = 100, MANY_TYPES = 64 };

/* One group of two roles that use all GPUs, or a CPU of each node. */
static struct plan plan_of_two(const struct bench *bench, struct plan_role roles[2], uint32_t gpu)
{
    roles[0] = roles[1] = role_of(gpu);
    roles[1].name = "other";
    for (size_t i = 0; i < 2; i++) {
        roles[i].instances = gpu ? bench->nodes * NODE_GPUS / gpu / 2 : bench->nodes;
        roles[i].affinity_group = "all";
        roles[i].memory_mib = gpu ? 1 : NODE_MIB / 2;
    }
    return plan_of(roles, 2);
}

/* The configuration is read, and its policy comes into force. */
static void policy_set(struct bench *bench, struct text document, struct cost *change,
                       struct cost *steps)
{
    struct core_config config;
    core_config_default(&config);
    config.port_last = 15999;
    config.policy = "hived";
    config.placement_document = document;
    struct placer *placer = placer_new(config.policy, document, NULL); /* by another thread */
    step(bench, &(struct event){.kind = EVENT_CONFIG, .config = &config, .placer = placer}, change);
    while (core_policy_changes(bench->core))
        step(bench, &(struct event){.kind = EVENT_TIMER}, steps);
    settle(bench, steps);
}

static void report(const char *what, const struct cost *change, const struct cost *steps)
{
    printf("\n%s\n", what);
    cost_print("the event", change);
    cost_print("steps after that", steps);
    fflush(stdout);
}

static void bench_start(struct bench *bench, uint32_t gpu)
{
    struct cost submission = {0}, steps = {0};
    struct plan_role roles[2];
    struct plan plan = plan_of_two(bench, roles, gpu);
    char what[96];
    roles[0].sku_type = "V100";
    roles[1].sku_type = "A100";
    bench->policy = "hived";
    bench->has_two_types = true;
    bench_begin(bench, false);
    heap_cool();
    submit(bench, &plan, &submission);
    settle(bench, &steps);
    snprintf(what, sizeof what, "a group of %" PRIu64 " tasks of %u GPUs of two types starts",
             bench->starts, gpu);
    report(what, &submission, &steps);
    core_free(bench->core);
}

/* Tasks of one kind are on nodes of two types: under HiveD they could not have been placed so. */
static void bench_scattered(struct bench *bench, uint32_t gpu)
{
    struct cost change = {0}, steps = {0};
    struct plan_role roles[2];
    const struct plan plan = plan_of_two(bench, roles, gpu);
    char what[96];
    bench->policy = "best-fit";
    bench->has_two_types = true;
    bench_begin(bench, false);
    submit(bench, &plan, NULL);
    settle(bench, NULL);
    policy_set(bench, (struct text){0}, &change, &steps);
    snprintf(what, sizeof what,
             "%" PRIu64 " tasks of %u GPUs are on two types, and the policy becomes HiveD",
             bench->starts, gpu);
    report(what, &change, &steps);
    core_free(bench->core);
}

/* What they ask for is no more. */
static void bench_gone(struct bench *bench)
{
    struct cost change = {0}, steps = {0};
    struct plan_role roles[2];
    const struct plan plan = plan_of_two(bench, roles, TASK_GPUS);
    char what[96];
    roles[0].sku_type = roles[1].sku_type = "V100";
    bench->policy = "best-fit";
    bench->has_two_types = false;
    bench_begin(bench, false);
    submit(bench, &plan, NULL);
    settle(bench, NULL);
    for (uint32_t i = 0; i < bench->nodes; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        struct node_facts node = node_of(name);
        node.gpu_type = i % 2 ? "A100" : "H100";
        step(bench, &(struct event){.kind = EVENT_NODE, .node = node}, NULL);
    }
    settle(bench, NULL);
    policy_set(bench, (struct text){0}, &change, &steps);
    snprintf(what, sizeof what,
             "%" PRIu64 " tasks ask for a type that is gone, and the policy becomes HiveD",
             bench->starts);
    report(what, &change, &steps);
    core_free(bench->core);
}

/* Half of the nodes are another virtual cluster's now. Of two gangs the stronger one takes what is
 * left; many jobs of one node each may be the weaker ones. */
static void bench_quotas(struct bench *bench, uint32_t weak_tasks)
{
    struct cost change = {0}, steps = {0};
    struct plan_role role = role_of(NODE_GPUS);
    struct buf document = BUF_INIT;
    char what[96];
    bench->policy = "hived";
    bench->has_two_types = false;
    bench->clusters = 1;
    role.affinity_group = "all";
    role.memory_mib = 1;
    bench_begin(bench, true);
    for (uint32_t placed = 0; placed < bench->nodes; placed += role.instances) {
        const bool is_weak = placed < bench->nodes / 2;
        role.instances = is_weak ? weak_tasks : bench->nodes / 2;
        struct plan plan = plan_of(&role, 1);
        plan.virtual_cluster = "vc0";
        plan.priority = is_weak ? WEAK : STRONG;
        submit(bench, &plan, NULL);
        settle(bench, NULL);
    }
    bench->clusters = 2;
    document_write(bench, &document);
    policy_set(bench, buf_as_text(&document), &change, &steps);
    snprintf(what, sizeof what,
             "the quotas shrink, and a gang takes those of groups of %u tasks (%" PRIu64 " run)",
             weak_tasks, bench->starts);
    report(what, &change, &steps);
    core_free(bench->core);
    buf_release(&document);
    bench->clusters = 0;
}

/* A gang of many roles, each of which may be on all types, in lists that begin with another one;
 * each wants a node, of which one less is there at least, which only trying can show. */
static void bench_many(struct bench *bench, uint32_t roles, uint32_t types)
{
    static struct plan_role many[GROUPS];
    static char names[GROUPS][16], lists[GROUPS][1024];
    struct cost submission = {0}, steps = {0};
    const uint32_t nodes = bench->nodes;
    char what[96];
    for (uint32_t i = 0; i < roles; i++) {
        size_t at = 0;
        for (uint32_t k = 0; k < types; k++)
            at += (size_t)snprintf(lists[i] + at, sizeof lists[i] - at, "%sT%u", k ? "," : "",
                                   (i / types % 2 ? i + types - k : i + k) % types);
        snprintf(names[i], sizeof names[i], "role%u", i);
        many[i] = role_of(NODE_GPUS);
        many[i].name = names[i];
        many[i].affinity_group = "all";
        many[i].sku_type = lists[i];
        many[i].memory_mib = 1;
    }
    const struct plan_role one = role_of(NODE_GPUS);
    const struct plan small = plan_of(&one, 1), plan = plan_of(many, (uint16_t)roles);
    bench->policy = "hived";
    bench->nodes = types;
    bench->many_types = types;
    bench_begin(bench, false);
    submit(bench, &small, NULL); /* so the cells are there */
    settle(bench, NULL);
    end(bench, 1, NULL);
    submit(bench, &plan, &submission);
    settle(bench, &steps);
    snprintf(what, sizeof what, "%u roles on %u types, each of which has one node", roles, types);
    report(what, &submission, &steps);
    core_free(bench->core);
    bench->many_types = 0;
    bench->nodes = nodes;
}

void types_run(struct bench *bench)
{
    const char *const policy = bench->policy;
    printf("\n%-50s %8s %8s %8s %8s %8s\n", "several leaf types, and quotas that shrink", "events",
           "mean", "worst", "of them", "over 1ms");
    bench_start(bench, TASK_GPUS);
    bench_start(bench, NODE_GPUS);
    bench_scattered(bench, TASK_GPUS);
    bench_scattered(bench, 0);
    bench_gone(bench);
    bench_quotas(bench, bench->nodes / 2);
    bench_quotas(bench, 1);
    bench_many(bench, MANY_TYPES + 1, MANY_TYPES);
    bench_many(bench, GROUPS, MANY_TYPES);
    bench->policy = policy;
    bench->has_two_types = false;
}
