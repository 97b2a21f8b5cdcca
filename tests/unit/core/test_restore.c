/* Restart: the core comes back from its rows, and refuses rows that contradict each other. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/state.h"

/* One job of two tasks, just placed on one node: what the store holds then. Everything may be
 * changed before it is restored. */
struct rows {
    uint32_t last_job;
    uint64_t last_attempt;
    struct node_record nodes[2];
    size_t node_count;
    struct job_record jobs[2];
    size_t job_count;
    struct task_record tasks[3];
    size_t task_count;
    struct plan_role role;
    struct plan plan;
    struct port_range ports[2][2];
};

static void rows_init(struct rows *rows, struct world *world, bool is_gang)
{
    *rows = (struct rows){.last_job = 2, .last_attempt = 3};
    rows->role = world_role("worker", 2, 1, 1);
    rows->plan = world_plan_of("a", &rows->role);
    rows->plan.is_gang = is_gang;
    rows->plan.time_limit_s = 600;
    world_init(world, "first-fit");
    world_node(world, "n1", 8, 4);
    uint32_t job = world_submit(world, &rows->plan);
    rows->nodes[rows->node_count++] = (struct node_record){.facts = {.name = "n1",
                                                                     .address = "10.0.0.1",
                                                                     .gpu_type = "V100",
                                                                     .cpu = 8,
                                                                     .gpu_count = 4,
                                                                     .memory_mib = 8192,
                                                                     .is_healthy = true,
                                                                     .reason = ""}};
    rows->jobs[rows->job_count++] = *world_job(world, job);
    for (uint16_t i = 0; i < 2; i++) {
        struct task_record *task = &rows->tasks[rows->task_count++];
        *task = *world_task(world, job, 0, i);
        memcpy(rows->ports[i], task->ports, sizeof rows->ports[i]);
        task->ports = rows->ports[i];
    }
}

static int rows_restore(const struct rows *rows, struct core *core, struct output *output,
                        struct err *err)
{
    int code = core_restore_counters(core, (struct job_id){rows->last_job},
                                     (struct attempt_id){rows->last_attempt});
    for (size_t i = 0; i < rows->node_count && !code; i++)
        code = core_restore_node(core, &rows->nodes[i], err);
    for (size_t i = 0; i < rows->job_count && !code; i++)
        code = core_restore_job(core, &rows->jobs[i], plan_copy(&rows->plan), err);
    for (size_t i = 0; i < rows->task_count && !code; i++)
        code = core_restore_task(core, &rows->tasks[i], err);
    return code ? code : core_restore_finish(core, WORLD_START_MS + 1000, output, err);
}

typedef void change_fn(struct rows *rows);

static int restored(change_fn *change, bool is_gang, struct world *after)
{
    struct world before;
    struct rows rows;
    struct err err = {0};
    rows_init(&rows, &before, is_gang);
    change(&rows);
    world_init(after, "first-fit");
    int code = rows_restore(&rows, after->core, &after->output, &err);
    if (code)
        assert_true(*err.text);
    else
        core_check(after->core);
    world_release(&before);
    return code;
}

static void nothing(struct rows *rows)
{
    (void)rows;
}

static void history(struct rows *rows) /* rows of an attempt before, of tasks that are gone */
{
    struct task_record *old = &rows->tasks[rows->task_count++];
    *old = rows->tasks[0];
    old->job_attempt = 7;
    old->attempt.v = 3;
}

static void removed(struct rows *rows)
{
    history(rows);
    rows->tasks[2].job_attempt = 0;
    rows->tasks[2].is_removed = true;
}

static void blamed(struct rows *rows)
{
    rows->nodes[0].blame = 4;
    rows->nodes[0].blame_ms = WORLD_START_MS;
}

static void what_ran_runs_on(void **state)
{
    (void)state;
    static change_fn *const changes[] = {nothing, history, removed, blamed};
    for (size_t i = 0; i < 2 * COUNT_OF(changes); i++) {
        struct world world;
        assert_int_equal(restored(changes[i / 2], i % 2, &world), 0);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2); /* said once more */
        assert_int_equal(world_command(&world, COMMAND_CREATE, 1)->attempt.v, 2);
        struct core_counts counts;
        core_count(world.core, &counts);
        assert_int_equal(counts.gpus_used, 2);
        world.now_ms += 2000;
        world_exit(&world, 1, 0, 0);
        world_exit(&world, 2, 0, 0);
        assert_int_equal(world_job(&world, 1)->state, LIFE_COMPLETED);
        assert_true(world_job(&world, 1)->completion.is_success);
        world_release(&world);
    }
}

/* What an engine says may look like the words of the platform. */
static void engine_reason(struct rows *rows)
{
    rows->nodes[0].facts.is_healthy = false;
    rows->nodes[0].facts.reason = "taken last week for a repair";
}

static void blame_reason(struct rows *rows)
{
    blamed(rows);
    rows->nodes[0].facts.reason = "whatever was said of it";
    rows->nodes[0].is_reason_blame = true;
}

static void a_value_says_whose_the_reason_is(void **state)
{
    (void)state;
    struct world world;
    assert_int_equal(restored(engine_reason, true, &world), 0);
    assert_string_equal(world.core->nodes.items[0].facts.reason, "taken last week for a repair");
    assert_string_equal(world.core->nodes.items[0].cordon, "");
    world_release(&world);
    assert_int_equal(restored(blame_reason, true, &world), 0);
    assert_string_equal(world.core->nodes.items[0].facts.reason, "");
    assert_string_equal(world.core->nodes.items[0].cordon, "whatever was said of it");
    world_release(&world);
}

enum { PREEMPTION_GRACE_MS = 30000, KILL_GRACE_MS = 10000 };

static void preempted(struct rows *rows)
{
    rows->jobs[0].state = LIFE_DELETION_REQUESTED;
    for (size_t i = 0; i < 2; i++) {
        rows->tasks[i].state = LIFE_DELETION_REQUESTED;
        rows->tasks[i].completion = completion_of(CODE_PREEMPTED, "%s", "by the test");
        rows->tasks[i].killed = KILL_PREEMPTED;
        rows->tasks[i].kill_by_ms = WORLD_START_MS + 1000 + 25000; /* restored after 1000 */
    }
}

static void preempted_long_ago(struct rows *rows)
{
    preempted(rows);
    rows->tasks[0].kill_by_ms = rows->tasks[1].kill_by_ms = WORLD_START_MS - 1;
}

static void preempted_in_the_future(struct rows *rows) /* the clock was set back */
{
    preempted(rows);
    rows->tasks[0].kill_by_ms = rows->tasks[1].kill_by_ms = INT64_MAX;
}

static void preempted_by_an_old_server(struct rows *rows)
{
    preempted(rows);
    rows->tasks[0].killed = rows->tasks[1].killed = KILL_NONE;
    rows->tasks[0].kill_by_ms = rows->tasks[1].kill_by_ms = 0;
}

/* A task keeps the reason for which it is ended, and what is left of its time. */
static void a_kill_under_way_goes_on(void **state)
{
    (void)state;
    static const struct {
        change_fn *change;
        uint32_t grace_ms;
        const char *reason;
    } cases[] = {
        {preempted, 25000, "preempted"},
        {preempted_long_ago, 0, "preempted"},
        {preempted_in_the_future, PREEMPTION_GRACE_MS, "preempted"},
        {preempted_by_an_old_server, KILL_GRACE_MS, "attempt completed"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct world world;
        assert_int_equal(restored(cases[i].change, false, &world), 0);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 2);
        for (size_t j = 0; j < 2; j++) {
            const struct command *command = world_command(&world, COMMAND_KILL, j);
            assert_int_equal(command->grace_ms, cases[i].grace_ms);
            assert_string_equal(command->reason, cases[i].reason);
        }
        world_release(&world);
    }
}

/* The row of a task that is being preempted says so, and until when; that of its next try does not.
 */
static void the_row_says_why_it_is_killed(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    const uint32_t low = world_submit_simple(&world, "low", 1, 1, 4);
    world_run(&world, 1);
    struct plan_role role = world_role("worker", 1, 1, 4);
    struct plan plan = world_plan_of("high", &role);
    plan.priority = 100;
    const uint32_t high = world_submit(&world, &plan);
    assert_int_equal(world_task(&world, low, 0, 0)->killed, KILL_PREEMPTED);
    assert_int_equal(world_task(&world, low, 0, 0)->kill_by_ms, world.now_ms + PREEMPTION_GRACE_MS);
    world_exit(&world, 1, 143, 0);
    world_run(&world, 2);
    world_exit(&world, 2, 0, 0);
    assert_int_equal(world_job(&world, high)->state, LIFE_COMPLETED);
    assert_int_equal(world_task(&world, low, 0, 0)->attempt.v, 3);
    assert_int_equal(world_task(&world, low, 0, 0)->killed, KILL_NONE);
    assert_int_equal(world_task(&world, low, 0, 0)->kill_by_ms, 0);
    world_release(&world);
}

static void node_twice(struct rows *rows)
{
    rows->nodes[rows->node_count++] = rows->nodes[0];
    rows->nodes[1].id.v = 1;
}

static void node_number(struct rows *rows)
{
    rows->nodes[0].id.v = 3;
}

static void job_zero(struct rows *rows)
{
    rows->jobs[0].id.v = 0;
}

static void job_after_last(struct rows *rows)
{
    rows->jobs[0].id.v = 3;
}

static void job_twice(struct rows *rows)
{
    rows->jobs[rows->job_count++] = rows->jobs[0];
}

static void name_twice(struct rows *rows)
{
    job_twice(rows);
    rows->jobs[1].id.v = 2;
}

static void job_bytes(struct rows *rows)
{
    rows->jobs[0].extra.length--;
}

static void task_of_nobody(struct rows *rows)
{
    rows->tasks[0].job.v = 2;
}

static void role_unknown(struct rows *rows)
{
    rows->tasks[0].task.role = 1;
}

static void index_unknown(struct rows *rows)
{
    rows->tasks[1].task.index = 9;
}

static void task_missing(struct rows *rows)
{
    rows->task_count = 1;
}

static void attempt_after_last(struct rows *rows)
{
    rows->tasks[0].attempt.v = 4;
}

static void attempt_twice(struct rows *rows)
{
    rows->tasks[1].attempt = rows->tasks[0].attempt;
}

static void attempt_none(struct rows *rows)
{
    rows->tasks[1].attempt.v = 0;
}

static void node_unknown(struct rows *rows)
{
    rows->tasks[0].node = "n9";
}

static void gpus_too_many(struct rows *rows)
{
    rows->tasks[0].gpu_count = PLACEMENT_GPUS_MAX + 1;
}

static void ports_too_many(struct rows *rows)
{
    rows->tasks[0].port_count = 3;
}

static void port_label(struct rows *rows)
{
    rows->ports[0][0].label = "unknown";
}

static void port_zero(struct rows *rows)
{
    rows->ports[0][0].first = 0;
}

static void port_none(struct rows *rows)
{
    rows->ports[0][0].count = 0;
}

static void port_beyond(struct rows *rows)
{
    rows->ports[0][0].first = UINT16_MAX;
    rows->ports[0][0].count = 2;
}

static void port_of_two(struct rows *rows)
{
    rows->ports[1][0].first = rows->ports[0][0].first;
}

static void gpu_of_two(struct rows *rows)
{
    rows->tasks[1].gpus = rows->tasks[0].gpus;
}

static void kill_reason_unknown(struct rows *rows)
{
    rows->tasks[0].killed = (enum kill_reason)(KILL_OTHER + 1);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    static change_fn *const changes[] = {
        node_twice,    node_number,  job_zero,       job_after_last,      job_twice,
        name_twice,    job_bytes,    task_of_nobody, role_unknown,        index_unknown,
        task_missing,  attempt_none, attempt_twice,  attempt_after_last,  node_unknown,
        gpus_too_many, port_label,   ports_too_many, port_zero,           port_beyond,
        port_none,     port_of_two,  gpu_of_two,     kill_reason_unknown,
    };
    for (size_t i = 0; i < 2 * COUNT_OF(changes); i++) {
        struct world world;
        if (restored(changes[i / 2], i % 2, &world) != ERR_CORRUPT)
            fail_msg("change %zu of a %s was believed", i / 2, i % 2 ? "gang" : "job");
        world_release(&world);
    }
}

static void test_restore_refuses(void **state)
{
    (void)state;
    struct world world;
    struct err err = {0};
    world_init(&world, "first-fit");
    core_restore_counters(world.core, (struct job_id){5}, (struct attempt_id){9});
    struct node_record node = {
        .facts = {.name = "n1", .address = "", .gpu_type = "", .reason = ""}};
    assert_int_equal(core_restore_node(world.core, &node, &err), 0);
    assert_int_equal(core_restore_node(world.core, &node, &err), ERR_CORRUPT);
    struct plan plan = world_plan("a");
    struct plan_role role = world_role("worker", 1, 1, 0);
    plan.roles = &role;
    plan.role_count = 1;
    struct job_record job = {.id = {6}, .reason = ""};
    assert_int_equal(core_restore_job(world.core, &job, plan_copy(&plan), &err), ERR_CORRUPT);
    job.id.v = 5;
    job.extra = TEXT("nonsense");
    assert_int_equal(core_restore_job(world.core, &job, plan_copy(&plan), &err), ERR_CORRUPT);
    struct task_record task = {.job = {5}, .node = ""};
    assert_int_equal(core_restore_task(world.core, &task, &err), ERR_CORRUPT);
    world_release(&world);
}

/* A stopped job comes back from its row, unless its name has found another owner or its row is not
 * one that we wrote. */
static void recalls_are_checked(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    struct plan_role role = world_role("worker", 1, 1, 0);
    struct plan plan = world_plan_of("again", &role);
    uint32_t job = world_submit(&world, &plan);
    world_ask(&world, EVENT_STOP, job);
    world_exit(&world, 1, 143, 0);
    struct buf extra = BUF_INIT;
    buf_text(&extra, world_job(&world, job)->extra);
    assert_int_equal(world_recall(&world, 0, buf_as_text(&extra), &plan), ERR_CORRUPT);
    assert_int_equal(world_recall(&world, job, TEXT("nonsense"), &plan), ERR_CORRUPT);
    world_timer(&world, 61000); /* the name is free */
    uint32_t other = world_submit(&world, &plan);
    assert_int_equal(world_recall(&world, job, buf_as_text(&extra), &plan), ERR_CONFLICT);
    world_ask(&world, EVENT_STOP, other);
    world_exit(&world, 2, 143, 0);
    world_timer(&world, 61000);
    assert_int_equal(world_recall(&world, job, buf_as_text(&extra), &plan), 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, job);
    buf_release(&extra);
    world_release(&world);
}

static void timers(struct world *world, int count)
{
    for (int i = 0; i < count; i++)
        world_timer(world, 0);
}

/* The tasks of its last attempt are not made only to be dropped by the same event. */
static void a_recall_makes_no_tasks(void **state)
{
    (void)state;
    enum { TASKS = 100, STEPS = 10 };
    struct world world;
    struct core_counts counts;
    world_init(&world, "first-fit");
    world_node(&world, "n1", TASKS, 0);
    struct plan_role role = world_role("worker", TASKS, 1, 0);
    role.port_count = 0;
    struct plan plan = world_plan_of("again", &role);
    plan.is_gang = false;
    uint32_t job = world_submit(&world, &plan);
    timers(&world, STEPS);
    core_count(world.core, &counts);
    assert_int_equal(counts.tasks_live, TASKS);
    world_ask(&world, EVENT_STOP, job);
    struct buf extra = BUF_INIT; /* of its last row */
    for (uint64_t i = 1; i <= TASKS + STEPS; i++) {
        if (i <= TASKS)
            world_exit(&world, i, 143, 0);
        else
            world_timer(&world, 0);
        const struct job_record *row = world_job(&world, job);
        if (row) {
            buf_clear(&extra);
            buf_text(&extra, row->extra);
        }
    }
    assert_int_equal(world.core->actions.dropped.count, 0);
    core_slice_set(world.core, 1); /* what is dropped now is not gone with the same step */
    assert_int_equal(world_recall(&world, job, buf_as_text(&extra), &plan), 0);
    assert_int_equal(world.core->actions.dropped.count, 0);
    timers(&world, TASKS);
    core_count(world.core, &counts);
    assert_int_equal(counts.tasks_live, TASKS);
    buf_release(&extra);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_ran_runs_on),
    cmocka_unit_test(a_value_says_whose_the_reason_is),
    cmocka_unit_test(a_kill_under_way_goes_on),
    cmocka_unit_test(the_row_says_why_it_is_killed),
    cmocka_unit_test(contradictions_are_refused),
    cmocka_unit_test(test_restore_refuses),
    cmocka_unit_test(recalls_are_checked),
    cmocka_unit_test(a_recall_makes_no_tasks),
};
UNIT_FILE(tests, NULL, NULL);
