/* A large gang takes places for which others preempt already. */
#include "queue_scenes.h"

#include <inttypes.h>
#include <stdio.h>

#include "hived/hived.h"
#include "placement/hived.h"
#include "queue_world.h"

enum { WEAK = 20, STRONG = 100 };

static void report(const char *what, const struct cost *submission, const struct cost *steps)
{
    printf("\n%s\n", what);
    cost_print("its submission", submission);
    cost_print("steps after that", steps);
    fflush(stdout);
}

static void strong_submit(struct bench *bench, uint32_t tasks, const char *what)
{
    struct cost submission = {0}, steps = {0};
    struct shape shape = all_gpus;
    shape.tasks = tasks;
    struct plan plan = shape_plan(&shape, NODE_GPUS);
    plan.priority = STRONG;
    bench->now_ms += 1000;
    heap_cool();
    submit(bench, &plan, &submission);
    settle(bench, &steps);
    report(what, &submission, &steps);
    core_free(bench->core);
}

static void weak_submit(struct bench *bench)
{
    struct plan plan = shape_plan(&all_gpus, NODE_GPUS);
    bench_begin(bench, false);
    fill(bench, false);
    plan.priority = WEAK;
    submit(bench, &plan, NULL);
    settle(bench, NULL);
}

/* Those who run are in the way of both. */
static void bench_one_gang(struct bench *bench)
{
    weak_submit(bench);
    strong_submit(bench, all_gpus.tasks, "a gang of 80,000 GPUs takes the places of another one");
}

/* It is not searched for in pieces. */
static void bench_one_node(struct bench *bench)
{
    weak_submit(bench);
    strong_submit(bench, 1, "a job of one node takes one of the places of such a gang");
}

static void bench_small_ones(struct bench *bench)
{
    const struct plan_role role = role_of(NODE_GPUS);
    struct plan plan = plan_of(&role, 1);
    bench_begin(bench, false);
    fill(bench, false);
    plan.priority = WEAK;
    for (uint32_t i = 0; i < bench->nodes / 2; i++) {
        submit(bench, &plan, NULL);
        settle(bench, NULL);
    }
    strong_submit(bench, all_gpus.tasks, "a gang takes the places of 5,000 jobs that preempt");
}

/* Half of them have ended: those cells are free, but for the weaker one. */
static void bench_reserved(struct bench *bench)
{
    weak_submit(bench);
    for (uint64_t i = 1; i <= bench->nodes / 2; i++) {
        end(bench, i, NULL);
        settle(bench, NULL);
    }
    strong_submit(bench, all_gpus.tasks / 4,
                  "a gang of 20,000 GPUs takes some of what is reserved");
}

/* All but one: nobody need be ended for it. */
static void bench_free(struct bench *bench)
{
    weak_submit(bench);
    for (uint64_t i = 1; i < bench->nodes; i++) {
        end(bench, i, NULL);
        settle(bench, NULL);
    }
    strong_submit(bench, all_gpus.tasks - 1, "a gang takes what is reserved, and free");
}

enum lazy_scene { GOES_ON, OTHERS_END, STOPPED, ONE_TASK, LAZY_SCENES };

static const char *const lazy_names[LAZY_SCENES] = {
    "displaces a lazy one",
    "displaces a lazy one, and others must end as well",
    "displaces a lazy one, and is stopped meanwhile",
    "(one task) displaces a lazy one of 40,000",
};

static void lazy_report(struct bench *bench, enum lazy_scene scene, uint32_t gpus,
                        const struct cost *submission, const struct cost *steps)
{
    char what[128];
    snprintf(what, sizeof what, "a gang of %u GPUs %s (%" PRIu64 " tasks run)", gpus,
             lazy_names[scene], bench->starts);
    report(what, submission, steps);
}

/* A gang takes what its virtual cluster owns from a lazy one, which goes on on cells of others; or
 * would, but somebody else uses these. */
static void bench_lazy(struct bench *bench, enum lazy_scene scene)
{
    enum { DISPLACING = 10 }; /* pieces, before it is stopped */
    struct shape shape = all_gpus;
    bench->clusters = 2;
    shape.tasks = bench->nodes / bench->clusters;
    struct plan plan = shape_plan(&shape, NODE_GPUS), others = plan;
    plan.virtual_cluster = "vc0";
    plan.priority = WEAK;
    plan.is_lazy_preemptible = true;
    bench_begin(bench, true);
    submit(bench, &plan, NULL);
    settle(bench, NULL);
    others.virtual_cluster = "vc1";
    if (scene == OTHERS_END) {
        submit(bench, &others, NULL);
        settle(bench, NULL);
    }
    struct shape one = shape;
    one.tasks = scene == ONE_TASK ? 1 : shape.tasks;
    plan = shape_plan(&one, NODE_GPUS);
    plan.virtual_cluster = "vc0";
    plan.priority = STRONG;
    struct cost submission = {0}, strong = {0}, stop = {0};
    submit(bench, &plan, &submission);
    uint32_t displacing = 0;
    while (scene == STOPPED && displacing < DISPLACING && goes_on(bench)) {
        step(bench, &(struct event){.kind = EVENT_TIMER}, NULL);
        displacing += hived_is_displacing(placer_hived_state(core_placer(bench->core)));
    }
    if (scene == STOPPED)
        step(bench, &(struct event){.kind = EVENT_STOP, .job = {(uint32_t)bench->submitted}},
             &stop);
    settle(bench, &strong);
    lazy_report(bench, scene, one.tasks * NODE_GPUS, scene == STOPPED ? &stop : &submission,
                &strong);
    core_free(bench->core);
    bench->clusters = 0;
}

void overtaken_run(struct bench *bench)
{
    printf("\n%-50s %8s %8s %8s %8s %8s\n", "who preempts is overtaken", "events", "mean", "worst",
           "of them", "over 1ms");
    bench_one_gang(bench);
    bench_one_node(bench);
    bench_small_ones(bench);
    bench_reserved(bench);
    bench_free(bench);
    for (int scene = 0; scene < LAZY_SCENES; scene++)
        bench_lazy(bench, (enum lazy_scene)scene);
}
