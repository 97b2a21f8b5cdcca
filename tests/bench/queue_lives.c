/* What happens to large jobs, from submission to end. */
#include "queue_scenes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/memory.h"
#include "queue_world.h"

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

/* All tasks of a large job have failed, and their containers, kept for debugging, may go, as they
 * are released or the job is deleted: in one step, and in many. */
static void bench_held(struct bench *bench, bool is_cut, enum event_kind kind)
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
    step(bench, &(struct event){.kind = kind, .job = {(uint32_t)bench->submitted}}, &release);
    settle(bench, &steps);
    printf("\n%" PRIu64 " containers kept for debugging are let go, %s\n", exit.count,
           is_cut ? "in pieces" : "in one step");
    cost_print("failures of its tasks", &exit);
    cost_print(kind == EVENT_DELETE ? "the job is deleted" : "its containers are released",
               &release);
    cost_print("steps after that", &steps);
    fflush(stdout);
    core_free(bench->core);
}

/* What the last row of the job said that is to be given back when it starts again: into `buf`. */
static void extra_keep(const struct bench *bench, uint32_t job, struct buf *extra)
{
    for (size_t i = 0; i < bench->output.records.count; i++) {
        const struct record *record = &bench->output.records.items[i];
        if (record->kind != RECORD_JOB || record->job.id.v != job || !record->job.extra.length)
            continue;
        buf_clear(extra);
        buf_add(extra, record->job.extra.at, record->job.extra.length);
    }
}

/* A job of 20,000 tasks is stopped and started again a few times, and deleted. */
static void bench_again(struct bench *bench)
{
    enum { TIMES = 4 };
    struct cost again = {0}, start = {0}, stop = {0}, steps = {0}, exits = {0}, delete = {0},
                rest = {0};
    cleanup_buf struct buf extra = BUF_INIT;
    bench_begin(bench, false);
    const struct plan plan = shape_plan(&no_gang, 1);
    bench->starts = 0;
    submit(bench, &plan, &again);
    const uint32_t job = (uint32_t)bench->submitted;
    for (uint32_t time = 0; time < TIMES; time++) {
        const uint64_t before = time ? bench->starts : 0;
        struct job_record record = {.id = {job}, .reason = "", .extra = buf_as_text(&extra)};
        struct event event = {.kind = EVENT_START, .start = {.job = {job}, .record = &record}};
        event.start.plan = time ? plan_copy(&plan) : NULL;
        if (time)
            step(bench, &event, &again);
        settle(bench, &start);
        step(bench, &(struct event){.kind = EVENT_STOP, .job = {job}}, &stop);
        settle(bench, &steps);
        for (uint64_t i = before + 1; i <= bench->starts; i++) {
            struct event exit = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {i}}};
            exit.task.completion = completion_of(143, "%s", "");
            step(bench, &exit, &exits);
            extra_keep(bench, job, &extra);
        }
        settle(bench, &rest);
    }
    step(bench, &(struct event){.kind = EVENT_DELETE, .job = {job}}, &delete);
    settle(bench, &rest);
    printf("\n%s are stopped and started again (%" PRIu64 " starts)\n", no_gang.name,
           bench->starts);
    cost_print("it is submitted, or started again", &again);
    cost_print("steps of its start", &start);
    cost_print("its end is asked for", &stop);
    cost_print("steps in which its tasks are told", &steps);
    cost_print("ends of its tasks", &exits);
    cost_print("it is deleted", &delete);
    cost_print("steps after the last end, and after that", &rest);
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

void unequal_run(struct bench *bench)
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

/* A large gang is searched for, and with each piece a job ends: these are kept until the search is
 * over, and count then. */
static void bench_ends_meanwhile(struct bench *bench, const struct shape *shape)
{
    struct cost submission = {0}, ends = {0};
    bench_begin(bench, false);
    fill(bench, false);
    settle(bench, NULL);
    heap_cool();
    const struct plan plan = shape_plan(shape, shape->gpu);
    submit(bench, &plan, &submission);
    for (uint64_t i = 1; i <= bench->nodes && goes_on(bench); i++)
        end(bench, i, &ends);
    printf("\n%s, while a job ends with each piece of the search\n", shape->name);
    cost_print("its submission", &submission);
    cost_print("ends of jobs", &ends);
    fflush(stdout);
    core_free(bench->core);
}

void lives_run(struct bench *bench)
{
    const struct shape *shapes[] = {&many_groups, &one_group, &all_gpus, &no_gang};
    printf("\n%-50s %8s %8s %8s %8s %8s\n", "the life of a large job", "events", "mean", "worst",
           "of them", "over 1ms");
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        bench_life(bench, shapes[i], true);
        bench_life(bench, shapes[i], false);
    }
    bench_give_up(bench);
    bench_start_stop(bench);
    bench_ends_meanwhile(bench, &one_group);
    bench_ends_meanwhile(bench, &all_gpus);
    bench_again(bench);
    bench_held(bench, false, EVENT_RELEASE);
    bench_held(bench, true, EVENT_RELEASE);
    bench_held(bench, true, EVENT_DELETE);
}
