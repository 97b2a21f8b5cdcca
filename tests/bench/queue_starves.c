/* Room is held back for a job that has waited for long. */
#include "queue_scenes.h"

#include <stdio.h>

#include "queue_world.h"

enum {
    STARVES_MS = 601000,
    STARVING_ENDS = 20,
    WEAK_JOBS = 100,
};

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

void starves_run(struct bench *bench)
{
    bench_starving(bench, NULL);
    bench_starving(bench, &many_groups);
    bench_starving(bench, &one_group);
    bench_starving(bench, &all_gpus);
    bench_room(bench, &many_groups);
    bench_room(bench, &one_group);
}

void behind_run(struct bench *bench)
{
    bench_behind(bench, &one_group, one_group.gpu);
    bench_behind(bench, &all_gpus, all_gpus.gpu);
    bench_behind(bench, &one_group, 0);
}
