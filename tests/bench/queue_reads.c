/* A barrier of a large job, and which jobs are on all nodes. */
#include "queue_scenes.h"

#include <stdio.h>

#include "base/memory.h"
#include "core/barriers.h"
#include "queue_world.h"
#include "server/barrier.h"
#include "server/snapshot.h"

struct shown_job {
    struct core *core;
    struct job_id job;
};

static void tasks_show(const void *context, barrier_row_see *see, void *seer)
{
    const struct shown_job *shown = context;
    core_tasks_show(shown->core, shown->job, see, seer);
}

static void task_come(struct barriers *barriers, struct barrier_output *output, uint32_t at,
                      bool is_waiting)
{
    const struct task_record row = {
        .job = {1},
        .task = {(uint16_t)(at / no_gang.tasks), (uint16_t)(at % no_gang.tasks)},
        .role_name = "",
        .state = LIFE_RUNNING,
        .attempt = {at + 1},
    };
    barriers_report(barriers,
                    &(struct barrier_report){.request = at + 1,
                                             .row = &row,
                                             .kind = BARRIER_START,
                                             .is_up = true,
                                             .is_waiting = is_waiting},
                    output);
}

/* The first report, for which all tasks are looked at; then all come, as many wait as may, and the
 * last one is there. */
static void bench_barrier(struct bench *bench)
{
    struct cost first = {0}, last = {0};
    static const bool all[] = {true, true};
    const uint32_t tasks = (uint32_t)shape_tasks(&no_gang);
    bench_begin(bench, false);
    bench->submitted = 0;
    const struct plan plan = shape_plan(&no_gang, 1);
    submit(bench, &plan, NULL);
    settle(bench, NULL);
    const struct shown_job shown = {bench->core, {1}};
    for (int round = 0; round < COPIES; round++) {
        struct barrier_output output;
        struct barriers *barriers = barriers_new(BARRIER_HELD_MAX);
        barrier_output_init(&output);
        heap_cool();
        double begin = now_us();
        barriers_add(barriers, &(struct barrier_rows){.job = {1},
                                                      .kind = BARRIER_START,
                                                      .takes_part = all,
                                                      .role_count = COUNT_OF(all),
                                                      .show_tasks = tasks_show,
                                                      .context = &shown});
        cost_add(&first, now_us() - begin);
        for (uint32_t i = 0; i + 1 < tasks; i++)
            task_come(barriers, &output, i, i + BARRIER_HELD_MAX >= tasks);
        barrier_output_clear(&output);
        begin = now_us();
        task_come(barriers, &output, tasks - 1, true);
        cost_add(&last, now_us() - begin);
        barrier_output_release(&output);
        barriers_free(barriers);
    }
    printf("\n%-50s %8s %8s %8s %8s %8s\n", "a barrier of 20,000 tasks", "events", "mean", "worst",
           "of them", "over 1ms");
    cost_print("the first report", &first);
    cost_print("the last, of 2,048 that wait", &last);
    core_free(bench->core);
}

static void jobs_update(struct bench *bench, struct core_node_jobs *jobs, struct cost *cost)
{
    bool is_whole = false;
    while (!is_whole) {
        const double begin = now_us();
        is_whole = core_node_jobs_update(bench->core, jobs, SNAPSHOT_TASKS);
        cost_add(cost, now_us() - begin);
    }
}

/* All nodes are full of jobs of one GPU each. */
static void bench_node_jobs(struct bench *bench)
{
    struct cost fresh = {0}, again = {0}, after_ends = {0};
    uint64_t ended = 0;
    bench_begin(bench, false);
    const struct plan_role role = role_of(1);
    const struct plan plan = plan_of(&role, 1);
    for (uint32_t i = 0; i < bench->nodes * NODE_GPUS; i++)
        submit(bench, &plan, NULL);
    settle(bench, NULL);
    for (int round = 0; round < COPIES; round++) {
        struct core_node_jobs jobs = {0};
        heap_cool();
        jobs_update(bench, &jobs, &fresh);
        core_node_jobs_clear(&jobs);
        jobs_update(bench, &jobs, &again);
        for (uint32_t i = 0; i < SNAPSHOT_ENDS; i++)
            end(bench, ++ended, NULL);
        settle(bench, NULL);
        jobs_update(bench, &jobs, &after_ends);
        core_node_jobs_release(&jobs);
    }
    printf("\n%-50s %8s %8s %8s %8s %8s\n", "which jobs are on all nodes", "pieces", "mean",
           "worst", "of them", "over 1ms");
    cost_print("8 jobs on each, into new memory", &fresh);
    cost_print("where it was before", &again);
    cost_print("it is brought up to date after 10 ends", &after_ends);
    fflush(stdout);
    core_free(bench->core);
}

void reads_run(struct bench *bench)
{
    bench_barrier(bench);
    bench_node_jobs(bench);
}
