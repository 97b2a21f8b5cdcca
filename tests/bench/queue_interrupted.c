/* A node fails, or a large gang is stopped, while the gang takes its cells or gives them back. */
#include "queue_scenes.h"

#include <stdio.h>

#include "hived/hived.h"
#include "placement/hived.h"
#include "queue_world.h"

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

/* The group of a large gang, and its state; false: HiveD knows none. */
static bool gang_view(struct bench *bench, struct hived_group_view *view)
{
    struct hived *hived = placer_hived_state(core_placer(bench->core));
    const char *name;
    for (uint32_t at = 0; hived && (name = hived_group_next(hived, &at));)
        if (hived_group_find(hived, name, view) && view->slot_count >= all_gpus.tasks)
            return true;
    return false;
}

static void timer(struct bench *bench, struct cost *cost)
{
    step(bench, &(struct event){.kind = EVENT_TIMER}, cost);
}

static void steps_run(struct bench *bench, uint32_t count, struct cost *cost)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!goes_on(bench)) /* it was asked for before */
            bench->now_ms += PAUSE_MS;
        timer(bench, cost);
    }
}

/* Steps until the gang has a group that does not preempt (any more). */
static uint32_t steps_until_its_own(struct bench *bench)
{
    struct hived_group_view view;
    uint32_t count = 0;
    while (count < TIMERS_MAX && goes_on(bench) &&
           (!gang_view(bench, &view) || view.state == HIVED_GROUP_PREEMPTING)) {
        timer(bench, NULL);
        count++;
    }
    return count;
}

enum interrupted { TAKES, TAKES_RESERVED, GIVES_BACK, INTERRUPTED };

static const char *const interrupted_names[INTERRUPTED] = {
    "takes its cells", "takes the cells that were reserved for it", "has ended"};

/* A large gang preempts all that run, and all of those end. */
static void preempt_all(struct bench *bench, const struct plan *plan)
{
    fill(bench, false);
    submit(bench, plan, NULL);
    settle(bench, NULL);
    for (uint64_t i = 1; i <= bench->nodes; i++) {
        bench->now_ms += 100;
        end(bench, i, NULL);
        if (i < bench->nodes)
            settle(bench, NULL);
    }
}

/* In the middle of that a node fails; or the gang is stopped. */
static void bench_interrupted(struct bench *bench, enum interrupted what, bool is_stopped)
{
    enum { BEFORE_OWN = 3, BEHIND_GROUP = 12, NEXT = 100 };
    struct cost change = {0}, steps = {0}, again = {0};
    const struct plan plan = shape_plan(&all_gpus, NODE_GPUS);
    uint32_t count = BEHIND_GROUP;
    if (what == TAKES_RESERVED) { /* it is not seen from outside how far that has come */
        bench_begin(bench, false);
        preempt_all(bench, &plan);
        count = steps_until_its_own(bench);
        core_free(bench->core);
        if (count < BEFORE_OWN) { /* a small cluster has no place for it */
            printf("\nno gang takes what was reserved for it: there is too little room\n");
            return;
        }
        count -= BEFORE_OWN;
    }
    bench_begin(bench, false);
    if (what == TAKES_RESERVED)
        preempt_all(bench, &plan);
    else
        submit(bench, &plan, NULL);
    if (what == TAKES)
        steps_until_its_own(bench);
    if (what == GIVES_BACK) {
        settle(bench, NULL);
        step(bench, &(struct event){.kind = EVENT_STOP, .job = {(uint32_t)bench->submitted}}, NULL);
        settle(bench, NULL);
        for (uint64_t i = 1; i <= all_gpus.tasks; i++)
            end(bench, i, NULL);
    }
    steps_run(bench, count, NULL);
    struct node_facts node = node_of("n7");
    node.is_healthy = false;
    heap_cool();
    if (is_stopped)
        step(bench, &(struct event){.kind = EVENT_STOP, .job = {(uint32_t)bench->submitted}},
             &change);
    else
        step(bench, &(struct event){.kind = EVENT_NODE, .node = node}, &change);
    steps_run(bench, NEXT, &steps);
    settle(bench, &again);
    printf("\n%s %s, and %s\n", all_gpus.name, interrupted_names[what],
           is_stopped ? "is stopped" : "a node fails");
    cost_print("that event", &change);
    cost_print("the next steps", &steps);
    cost_print("those after them", &again);
    fflush(stdout);
    core_free(bench->core);
}

void interrupted_run(struct bench *bench)
{
    bench_interrupted(bench, TAKES, false);
    bench_interrupted(bench, GIVES_BACK, false);
    bench_interrupted(bench, TAKES_RESERVED, false);
    bench_interrupted(bench, TAKES_RESERVED, true);
    bench_node_change(bench);
}
