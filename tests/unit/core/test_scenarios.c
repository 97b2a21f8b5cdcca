/* The core as its users meet it: one short story a test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "job/job.h"
#include "world.h"

static uint32_t submit_for(struct world *world, const char *name, int32_t priority, uint32_t gpu,
                           uint64_t limit_s)
{
    struct plan plan = world_plan(name);
    struct plan_role role = world_role("worker", 1, 1, gpu);
    plan.roles = &role;
    plan.role_count = 1;
    plan.priority = priority;
    plan.time_limit_s = limit_s;
    return world_submit(world, &plan);
}

static void test_gang_waits_whole(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t big = world_submit_simple(&world, "big", 3, 1, 2);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    assert_non_null(strstr(world_job(&world, big)->reason, "3 x (2 GPU, 1 CPU, "));
    assert_true(world_has_story(&world, "Waiting", "it can never start"));
    /* it holds nothing, and what fits behind it starts */
    world_submit_simple(&world, "small", 1, 1, 4);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    /* a second node is enough for both */
    world_node(&world, "n2", 8, 8);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 3);
    assert_int_equal(world_job(&world, big)->state, LIFE_CREATION_REQUESTED);
    assert_string_equal(world_job(&world, big)->reason, "");
    world_release(&world);
}

static void test_names(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    assert_int_equal(world_submit_simple(&world, "a", 1, 1, 0), 1);
    assert_int_equal(world_submit_simple(&world, "a", 1, 1, 0), 0);
    assert_int_equal(world_answer(&world)->code, ERR_CONFLICT);
    assert_string_equal(world_answer(&world)->path, "name");
    struct plan_role role = world_role("worker", 1, 1, 0);
    struct plan plan = world_plan("a");
    plan.roles = &role;
    plan.role_count = 1;
    plan.user = "bob"; /* names are each user's own */
    assert_int_equal(world_submit(&world, &plan), 2);
    world_run(&world, 1);
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_submit_simple(&world, "a", 1, 1, 0), 0); /* for a while */
    world_timer(&world, 61000);
    assert_int_equal(world_submit_simple(&world, "a", 1, 1, 0), 3);
    plan.name = "";
    assert_int_equal(world_submit(&world, &plan), 0);
    assert_int_equal(world_answer(&world)->code, ERR_INVALID);
    plan.name = "b";
    role.instances = JOB_INSTANCES_MAX + 1;
    assert_int_equal(world_submit(&world, &plan), 0);
    assert_int_equal(world_answer(&world)->code, ERR_TOO_BIG);
    plan.role_count = 0;
    assert_int_equal(world_submit(&world, &plan), 0);
    struct plan_role many[3] = {world_role("a", 9000, 1, 0), world_role("b", 9000, 1, 0),
                                world_role("c", 9000, 1, 0)};
    plan.roles = many;
    plan.role_count = 3;
    assert_int_equal(world_submit(&world, &plan), 0);
    assert_int_equal(world_answer(&world)->code, ERR_TOO_BIG);
    world_release(&world);
}

static void test_stop(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t runs = world_submit_simple(&world, "runs", 1, 1, 4);
    uint32_t waits = world_submit_simple(&world, "waits", 1, 1, 4);
    assert_int_equal(world_ask(&world, EVENT_STOP, waits), 0);
    assert_int_equal(world_job(&world, waits)->state, LIFE_COMPLETED);
    assert_int_equal(world_job(&world, waits)->completion.code, CODE_STOP_REQUESTED);
    assert_int_equal(world_ask(&world, EVENT_STOP, waits), ERR_CONFLICT);
    assert_int_equal(world_ask(&world, EVENT_STOP, 99), ERR_NOT_FOUND);
    assert_int_equal(world_ask(&world, EVENT_STOP, 0), ERR_NOT_FOUND);
    world_run(&world, 1);
    assert_int_equal(world_ask(&world, EVENT_STOP, runs), 0);
    const struct command *kill = world_command(&world, COMMAND_KILL, 0);
    assert_string_equal(kill->reason, "stopped");
    assert_int_equal(kill->grace_ms, 10000);
    assert_string_equal(kill->node, "n1");
    assert_int_equal(world_ask(&world, EVENT_DELETE, runs), ERR_CONFLICT);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_job(&world, runs)->completion.code, CODE_STOP_REQUESTED);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 1);
    world_exit(&world, 1, 143, 0); /* told twice */
    assert_int_equal(world.output.records.count, 0);
    assert_int_equal(world_ask(&world, EVENT_DELETE, runs), 0);
    assert_int_equal(world.output.records.items[0].kind, RECORD_JOB_DELETED);
    assert_int_equal(world_ask(&world, EVENT_DELETE, 99), ERR_NOT_FOUND);
    world_release(&world);
}

static void test_start_again(void **state)
{
    (void)state;
    struct world world;
    struct plan plan = world_plan("again");
    struct plan_role role = world_role("worker", 1, 1, 0);
    plan.roles = &role;
    plan.role_count = 1;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t job = world_submit(&world, &plan);
    assert_int_equal(world_ask(&world, EVENT_START, job), ERR_CONFLICT);
    world_ask(&world, EVENT_STOP, job);
    world_exit(&world, 1, 143, 0);
    struct job_record record = *world_job(&world, job);
    char *extra = mem_copy("");
    extra = mem_realloc(extra, record.extra.length + 1);
    memcpy(extra, record.extra.at, record.extra.length);
    record.extra.at = extra;
    record.reason = "";
    assert_int_equal(world_ask(&world, EVENT_START, job), ERR_NOT_FOUND); /* not in memory */
    struct event event = {.kind = EVENT_START};
    event.start = (struct recall){{job}, &record, plan_copy(&plan)};
    world_step(&world, &event);
    assert_int_equal(world_answer(&world)->code, 0);
    assert_int_equal(world_job(&world, job)->attempt, 1);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->attempt.v, 2);
    /* it lives: a second START finds it, and the plan given is not leaked */
    event = (struct event){.kind = EVENT_START};
    event.start = (struct recall){{job}, &record, plan_copy(&plan)};
    world_step(&world, &event);
    assert_int_equal(world_answer(&world)->code, ERR_CONFLICT);
    /* one that ended by itself does not start again */
    world_exit(&world, 2, 0, 0);
    record = *world_job(&world, job);
    event = (struct event){.kind = EVENT_START};
    struct job_record copy = record;
    mem_free(extra);
    extra = mem_realloc(NULL, record.extra.length + 1);
    memcpy(extra, record.extra.at, record.extra.length);
    copy.extra.at = extra;
    event.start = (struct recall){{job}, &copy, plan_copy(&plan)};
    world_step(&world, &event);
    assert_int_equal(world_answer(&world)->code, ERR_CONFLICT);
    copy.id.v = 77; /* never was */
    event = (struct event){.kind = EVENT_START};
    event.start = (struct recall){{77}, &copy, plan_copy(&plan)};
    world_step(&world, &event);
    assert_int_equal(world_answer(&world)->code, ERR_CORRUPT);
    mem_free(extra);
    world_release(&world);
}

static void test_node_lost(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t job = world_submit_simple(&world, "a", 2, 1, 2);
    world_node(&world, "n2", 8, 4);
    world_run(&world, 1);
    world_run(&world, 2);
    world_node_event(&world, EVENT_NODE_LOST, "n1");
    /* both tasks are gone, and the gang starts elsewhere at once, not counted */
    const struct job_record *record = world_job(&world, job);
    assert_int_equal(record->attempt, 1);
    assert_int_equal(record->retries_platform, 1);
    assert_int_equal(record->retries_user, 0);
    assert_string_equal(world_task(&world, job, 0, 1)->node, "n2");
    size_t rows = 0;
    for (size_t i = 0; i < world.output.records.count; i++) {
        const struct record *row = &world.output.records.items[i];
        rows += row->kind == RECORD_TASK && row->task.attempt.v <= 2 &&
                row->task.job_attempt == 0 && row->task.state == LIFE_COMPLETED;
    }
    assert_int_equal(rows, 2);   /* the history of the first attempt */
    world_exit(&world, 1, 0, 0); /* the lost container speaks again */
    assert_int_equal(world.output.records.count, 0);
    world_node_event(&world, EVENT_NODE_LOST, "n1"); /* again: nothing */
    assert_int_equal(world.output.records.count, 0);
    world_node_event(&world, EVENT_NODE_LOST, "n9");
    assert_int_equal(world_answer(&world)->code, ERR_NOT_FOUND);
    world_node(&world, "n1", 8, 4);
    struct core_counts counts;
    core_count(world.core, &counts);
    assert_int_equal(counts.gpus_total, 8);
    assert_int_equal(counts.nodes, 2);
    world_node(&world, "", 1, 0);
    assert_int_equal(world_answer(&world)->code, ERR_INVALID);
    world_release(&world);
}

static void test_preemption(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 8, 4);
        uint32_t cheap = submit_for(&world, "cheap", -1, 4, 0);
        world_run(&world, 1);
        uint32_t dear = submit_for(&world, "dear", 100, 4, 0);
        const struct command *kill = world_command(&world, COMMAND_KILL, 0);
        assert_non_null(kill);
        assert_string_equal(kill->reason, "preempted");
        assert_int_equal(kill->grace_ms, 30000);
        assert_non_null(strstr(world_job(&world, dear)->reason, "alice~cheap"));
        assert_true(world_has_story(&world, "Preempted", "alice~dear"));
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        submit_for(&world, "other", 10, 4, 0); /* nobody slips in between */
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_exit(&world, 1, 143, 0);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, dear);
        const struct job_record *record = world_job(&world, cheap);
        assert_int_equal(record->state, LIFE_CREATION_PENDING);
        assert_int_equal(record->retries_platform, 1);
        assert_int_equal(record->retries_user, 0);
        /* it had waited longer, but priority comes first */
        world_exit(&world, 2, 0, 0);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, 3);
        world_release(&world);
    }
}

static void test_preemptor_is_stopped(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    submit_for(&world, "cheap", -1, 4, 0);
    uint32_t dear = submit_for(&world, "dear", 100, 4, 0);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
    world_ask(&world, EVENT_STOP, dear);
    uint32_t third = submit_for(&world, "third", 10, 4, 0);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, third);
    world_release(&world);
}

static void test_starvation(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    submit_for(&world, "long", 10, 2, 3600);
    submit_for(&world, "rest", 10, 2, 60);
    uint32_t big = submit_for(&world, "big", 10, 4, 0);
    world_timer(&world, 601000);
    assert_true(world_has_story(&world, "Reserved", "has waited"));
    world_exit(&world, 2, 0, 0); /* two GPUs are free now */
    /* an endless job behind it would delay it */
    uint32_t endless = submit_for(&world, "endless", 10, 2, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    assert_non_null(strstr(world_job(&world, endless)->reason, "held back for alice~big"));
    /* a short one ends before big could start at all */
    submit_for(&world, "short", 10, 2, 60);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    /* a more urgent one is not held back */
    world_exit(&world, 3, 0, 0);
    submit_for(&world, "urgent", 100, 2, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world_exit(&world, 4, 0, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, big);
    world_exit(&world, 5, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, endless);
    world_release(&world);
}

static void test_ports(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world.config.port_first = 15000;
    world.config.port_last = 15009;
    struct event event = {.kind = EVENT_CONFIG, .config = &world.config};
    world_step(&world, &event);
    world_node(&world, "n1", 8, 0);
    world_node(&world, "n2", 8, 0);
    struct plan_port ports[] = {{"tensorboard", 2, 9000}, {"ssh", 4, 0}};
    struct plan_role role = world_role("worker", 1, 1, 0);
    struct plan plan = world_plan("a");
    role.ports = ports;
    plan.roles = &role;
    plan.role_count = 1;
    uint32_t job = world_submit(&world, &plan);
    const struct task_record *task = world_task(&world, job, 0, 0);
    assert_int_equal(task->ports[0].first, 9000);
    assert_int_equal(task->ports[0].count, 2);
    assert_string_equal(task->ports[0].label, "tensorboard");
    assert_int_equal(task->ports[1].first, 15000);
    plan.name = "b"; /* the fixed port is taken on n1: the other node is as good */
    job = world_submit(&world, &plan);
    assert_string_equal(world_task(&world, job, 0, 0)->node, "n2");
    plan.name = "c";
    job = world_submit(&world, &plan);
    assert_non_null(strstr(world_job(&world, job)->reason, "fixed port of role worker"));
    ports[0] = (struct plan_port){"http", 1, 0};
    ports[1].count = 11;
    plan.name = "d";
    job = world_submit(&world, &plan);
    assert_non_null(strstr(world_job(&world, job)->reason, "too few free ports"));
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, 3);
    world_release(&world);
}

static void test_blame(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world.config.retry_pause_first_s = 0;
    world_configure(&world);
    world_node(&world, "n1", 8, 0);
    world_node(&world, "n2", 8, 0);
    struct plan plan = world_plan("a");
    struct plan_role role = world_role("worker", 1, 1, 0);
    plan.roles = &role;
    plan.role_count = 1;
    uint32_t job = world_submit(&world, &plan);
    for (uint64_t i = 1; i <= 3; i++) {
        struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {i}, .blame = 1}};
        event.task.completion = completion_of(CODE_CONTAINER_DELETED, "gone");
        event.task.completion.attributes = EXIT_TRANSIENT;
        world_step(&world, &event);
        assert_string_equal(world_task(&world, job, 0, 0)->node, "n1");
    }
    struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {4}, .blame = 20}};
    event.task.completion = completion_of(CODE_NODE_LOST, "gone");
    world_step(&world, &event);
    assert_string_equal(world_task(&world, job, 0, 0)->node, "n2");
    const struct node_record *node = NULL;
    for (size_t i = 0; i < world.output.records.count; i++)
        if (world.output.records.items[i].kind == RECORD_NODE)
            node = &world.output.records.items[i].node;
    assert_true(node->is_cordoned);
    assert_non_null(strstr(node->facts.reason, "cordoned"));
    world_node_event(&world, EVENT_NODE_PARDON, "n1");
    assert_false(world.output.records.items[0].node.is_cordoned);
    world_node_event(&world, EVENT_NODE_PARDON, "n9");
    assert_int_equal(world_answer(&world)->code, ERR_NOT_FOUND);
    /* blame decays: cordoned, then good again by time alone */
    event = (struct event){.kind = EVENT_TASK_EXITED, .task = {.attempt = {5}, .blame = 12}};
    event.task.completion = completion_of(CODE_NODE_LOST, "gone");
    world_step(&world, &event);
    assert_string_equal(world_task(&world, job, 0, 0)->node, "n1");
    world_timer(&world, 3 * 3600 * 1000);
    bool is_back = false;
    for (size_t i = 0; i < world.output.records.count; i++)
        is_back |= world.output.records.items[i].kind == RECORD_NODE &&
                   !world.output.records.items[i].node.is_cordoned;
    assert_true(is_back);
    world_release(&world);
}

static void test_config(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t job = world_submit_simple(&world, "a", 2, 1, 1);
    world_run(&world, 1);
    static const char *const policies[] = {"best-fit", "hived", "spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) { /* what runs keeps running */
        world.config.policy = policies[i];
        struct event event = {.kind = EVENT_CONFIG, .config = &world.config};
        world_step(&world, &event);
        assert_int_equal(world_answer(&world)->code, 0);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        world_submit_simple(&world, "b", 1, 1, 3); /* two GPUs are taken in any policy */
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    }
    const char *const wrong_policy = "nonsense";
    struct core_config bad[6];
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        bad[i] = world.config;
    bad[0].policy = wrong_policy;
    bad[1].port_first = 0;
    bad[2].backoff_min_s = bad[2].backoff_max_s + 1;
    bad[3].blame_avoid = bad[3].blame_cordon + 1;
    bad[4].policy = NULL;
    bad[5].placement_document = TEXT("physicalCluster: [");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (i == 4) {
            assert_null(core_new(&bad[i], NULL));
            continue;
        }
        struct event event = {.kind = EVENT_CONFIG, .config = &bad[i]};
        world_step(&world, &event);
        assert_int_equal(world_answer(&world)->code, ERR_INVALID);
    }
    world_exit(&world, 1, 0, 0);
    world_exit(&world, 2, 0, 0);
    assert_int_equal(world_job(&world, job)->state, LIFE_COMPLETED);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1); /* b */
    world_release(&world);
}

static void test_debug_hold(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    struct plan plan = world_plan("a");
    struct plan_role role = world_role("worker", 2, 1, 1);
    plan.roles = &role;
    plan.role_count = 1;
    plan.is_debug = true;
    uint32_t job = world_submit(&world, &plan);
    world_run(&world, 1);
    world_run(&world, 2);
    world_exit(&world, 1, 1, 0);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 0);
    assert_true(world_task(&world, job, 0, 0)->is_held);
    assert_true(world_command(&world, COMMAND_KILL, 0)->is_held);
    world_exit(&world, 2, 143, 0);
    assert_int_equal(world_job(&world, job)->state, LIFE_COMPLETED);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 0);
    assert_true(core_attempt_is_live(world.core, (struct attempt_id){1}));
    assert_false(core_attempt_is_live(world.core, (struct attempt_id){9}));
    struct core_counts counts;
    core_count(world.core, &counts);
    assert_int_equal(counts.gpus_used, 0); /* files are kept, devices are not */
    assert_int_equal(world_ask(&world, EVENT_RELEASE, job), 0);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 2);
    assert_string_equal(world_command(&world, COMMAND_FORGET, 0)->node, "n1");
    assert_false(core_attempt_is_live(world.core, (struct attempt_id){1}));
    plan.name = "b"; /* deleted while held: containers and row go */
    job = world_submit(&world, &plan);
    world_exit(&world, 3, 1, 0);
    world_exit(&world, 4, 143, 0);
    assert_int_equal(world_ask(&world, EVENT_DELETE, job), 0);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 2);
    assert_int_equal(world.output.records.items[world.output.records.count - 1].kind,
                     RECORD_JOB_DELETED);
    world_release(&world);
}

static void scale(struct world *world, uint32_t job, uint32_t instances, int want)
{
    struct event event = {.kind = EVENT_SCALE, .scale = {{job}, 0, instances}};
    world_step(world, &event);
    assert_int_equal(world_answer(world)->code, want);
}

static void test_scale(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    struct plan plan = world_plan("a");
    struct plan_role role = world_role("worker", 2, 1, 1);
    plan.roles = &role;
    plan.role_count = 1;
    plan.is_gang = false;
    uint32_t job = world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    scale(&world, job, 6, 0); /* four fit, two wait */
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    assert_true(*world_job(&world, job)->reason);
    scale(&world, job, 1, 0);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 3);
    world_exit(&world, 4, 143, 0);
    assert_true(world_task(&world, job, 0, 3)->is_removed);
    scale(&world, job, JOB_INSTANCES_MAX + 1, ERR_TOO_BIG);
    scale(&world, 77, 1, ERR_NOT_FOUND);
    scale(&world, world_submit_simple(&world, "gang", 1, 1, 0), 2, ERR_CONFLICT);
    world_release(&world);
}

static void test_notes(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    struct plan plan = world_plan("a");
    struct plan_role role = world_role("worker", 1, 1, 1);
    plan.roles = &role;
    plan.role_count = 1;
    plan.is_hang_retry = true;
    uint32_t job = world_submit(&world, &plan);
    struct event event = {.kind = EVENT_TASK_NOTE,
                          .task = {.attempt = {1}, .reason = "Pulling", .message = "40 %"}};
    world_step(&world, &event);
    assert_true(world_has_story(&world, "Pulling", "40 %"));
    event = (struct event){.kind = EVENT_TASK_NOTE, .task = {.attempt = {9}}};
    world_step(&world, &event);
    assert_int_equal(world.output.records.count, 0);
    event = (struct event){.kind = EVENT_TASK_IDLE, .task = {.attempt = {1}, .message = "no CPU"}};
    world_step(&world, &event);
    assert_true(world_has_story(&world, "Idle", "worker-0: no CPU"));
    assert_string_equal(world_command(&world, COMMAND_KILL, 0)->reason, "hung");
    world_exit(&world, 1, 134, 0);
    assert_int_equal(world_job(&world, job)->completion.code, CODE_HUNG);
    world_step(&world, &event);
    assert_int_equal(world.output.records.count, 0);
    world_release(&world);
}

static void test_time_limit(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t job = submit_for(&world, "a", 10, 1, 60);
    world_run(&world, 1);
    const struct command *wake = world_command(&world, COMMAND_WAKE, 0);
    assert_non_null(wake);
    world_timer(&world, 61000);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_job(&world, job)->completion.code, CODE_DEADLINE_EXCEEDED);
    world_release(&world);
}

static void test_parts_of_a_gang(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    struct plan plan = world_plan("a");
    struct plan_role roles[] = {world_role("ps", 1, 1, 2), world_role("worker", 1, 1, 4)};
    roles[0].affinity_group = "x";
    plan.roles = roles;
    plan.role_count = 2;
    uint32_t job = world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    struct core_counts counts;
    core_count(world.core, &counts);
    assert_int_equal(counts.gpus_used, 0); /* the first part was given back */
    world_node(&world, "n2", 8, 4);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    assert_int_equal(world_job(&world, job)->state, LIFE_CREATION_REQUESTED);
    world_release(&world);

    /* and preempts for both of its parts, or for none */
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    world_node(&world, "n2", 8, 4);
    submit_for(&world, "cheap1", -1, 4, 0);
    submit_for(&world, "cheap2", -1, 4, 0);
    plan.priority = 100;
    job = world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 2);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* held for it */
    world_exit(&world, 2, 143, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, job);
    world_release(&world);
}

static void test_copy(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    world_node(&world, "n1", 8, 4);
    submit_for(&world, "a", -1, 4, 0);
    world_run(&world, 1);
    submit_for(&world, "b", 10, 4, 0); /* preempts: a hold is copied, too */
    submit_for(&world, "c", 10, 4, 0);
    struct core *copy = core_copy(world.core);
    core_check(copy);
    assert_true(core_hash(copy) == core_hash(world.core));
    uint64_t before = core_hash(copy);
    world_exit(&world, 1, 143, 0);
    assert_true(core_hash(world.core) != before);
    assert_true(core_hash(copy) == before); /* what is done to one is not seen by the other */
    uint64_t after = core_hash(world.core);
    core_free(world.core);
    world.core = copy;
    world.now_ms -= 10;
    world_exit(&world, 1, 143, 0);
    assert_true(core_hash(world.core) == after);
    world_release(&world);
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

/* As early PAI had it, when the configuration asks for it. */
static void test_a_gang_waits_no_longer(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world.config.gang_timeout_s = 500;
    world.config.is_backoff_growing = true;
    world_configure(&world);
    world_node(&world, "n1", 8, 0);
    world_submit_simple(&world, "large", 3, 8, 0);
    assert_true(world_has_story(&world, "Waiting", "waiting: "));
    world_timer(&world, 499 * 1000);
    assert_false(world_has_story(&world, "GangTimeout", ""));
    world_timer(&world, 1000);
    assert_true(world_has_story(&world, "GangTimeout", "no place for all tasks within 500 s"));
    /* the first window of the growing ones has one length */
    assert_true(world_has_story(&world, "BackingOff",
                                "attempt 0 ended with 251 (JobGangAllocationTimeout); retried in "
                                "60 s (`skep start` retries it now), not "
                                "counted"));
    core_check(world.core);
    world_timer(&world, 60 * 1000);
    assert_true(world_has_story(&world, "Waiting", "waiting: ")); /* and waits again */
    world_release(&world);
}

/* What always fails for the platform's fault is spaced, and blames its node more slowly. */
static void test_retries_are_spaced(void **state)
{
    (void)state;
    static const int64_t wanted_s[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    uint32_t job = world_submit_simple(&world, "loops", 1, 1, 0);
    for (uint64_t i = 0; i < COUNT_OF(wanted_s); i++) {
        int64_t before_ms = world.now_ms;
        world_run(&world, i + 1);
        world_exit(&world, i + 1, CODE_CONTAINER_DELETED, EXIT_TRANSIENT);
        core_check(world.core);
        if (wanted_s[i] == 0) {
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
            continue;
        }
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        const struct command *wake = world_command(&world, COMMAND_WAKE, 0);
        assert_non_null(wake);
        assert_in_range(wake->at_ms - world.now_ms, wanted_s[i] * 750, wanted_s[i] * 1000);
        assert_true(world_has_story(&world, "BackingOff", ", not counted"));
        before_ms = wake->at_ms;
        world_timer(&world, wake->at_ms - world.now_ms - 20);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_timer(&world, 20);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        assert_true(world.now_ms >= before_ms);
    }
    /* who runs for a while begins anew */
    world_run(&world, COUNT_OF(wanted_s) + 1);
    world_timer(&world, 600 * 1000);
    world_exit(&world, COUNT_OF(wanted_s) + 1, CODE_CONTAINER_DELETED, EXIT_TRANSIENT);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    (void)job;
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gang_waits_whole),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_start_again),
        cmocka_unit_test(test_node_lost),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_preemptor_is_stopped),
        cmocka_unit_test(test_starvation),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_retries_are_spaced),
        cmocka_unit_test(test_a_gang_waits_no_longer),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_debug_hold),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_parts_of_a_gang),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_restore_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
