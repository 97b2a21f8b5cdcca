/* The jobs of the core: names, starts and stops, scales, notes, limits of time, retries. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "job/job.h"

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
    plan.name = "c"; /* released while one of them ends: that goes when it has */
    world_submit(&world, &plan);
    world_run(&world, 3);
    world_run(&world, 4);
    world_exit(&world, 3, 1, 0);
    job = world_job(&world, 2)->id.v;
    assert_int_equal(world_ask(&world, EVENT_RELEASE, job), 0);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 1);
    assert_int_equal(world_command(&world, COMMAND_FORGET, 0)->attempt.v, 3);
    assert_false(world_task(&world, job, 0, 1)->is_held);
    world_exit(&world, 4, 143, 0);
    assert_int_equal(world_command_count(&world, COMMAND_FORGET), 1);
    assert_int_equal(world_command(&world, COMMAND_FORGET, 0)->attempt.v, 4);
    plan.name = "b"; /* deleted while held: containers and row go */
    job = world_submit(&world, &plan);
    world_exit(&world, 5, 1, 0);
    world_exit(&world, 6, 143, 0);
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
    uint32_t job = world_submit_for(&world, "a", 10, 1, 60);
    world_run(&world, 1);
    const struct command *wake = world_command(&world, COMMAND_WAKE, 0);
    assert_non_null(wake);
    world_timer(&world, 61000);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_job(&world, job)->completion.code, CODE_DEADLINE_EXCEEDED);
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

/* The name of a job that was stopped is kept for a minute. When it is started again meanwhile, the
 * name is its own for as long as it lives. */
static void a_job_started_again_keeps_its_name(void **state)
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
    world_timer(&world, 30000);
    assert_int_equal(world_recall(&world, job, buf_as_text(&extra), &plan), 0);
    world_timer(&world, 120000);
    assert_int_equal(world_submit(&world, &plan), 0);
    assert_int_equal(world_answer(&world)->code, ERR_CONFLICT);
    assert_int_equal(world_ask(&world, EVENT_STOP, job), 0);
    world_exit(&world, 2, 143, 0);
    assert_int_equal(world_submit(&world, &plan), 0); /* for a minute again */
    world_timer(&world, 61000);
    assert_int_not_equal(world_submit(&world, &plan), 0);
    buf_release(&extra);
    world_release(&world);
}

/* When the container said nothing, the phrase of its code stands for it. */
static void a_silent_end_has_its_phrase(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t job = world_submit_simple(&world, "a", 1, 1, 0);
    world_run(&world, 1);
    struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {1}}};
    event.task.completion = completion_of(CODE_HUNG, "%s", "");
    world_step(&world, &event);
    const char *trigger = world_job(&world, job)->trigger;
    assert_non_null(strstr(trigger, "worker-0 ended with"));
    assert_non_null(strstr(trigger, event.task.completion.phrase));
    world_release(&world);
}

/* Scaled down to the tasks that have ended, a job has nothing more to wait for: it ends at once. */
static void a_scale_to_what_has_ended_ends_the_job(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 4, 1);
    struct plan_role role = world_role("worker", 2, 1, 1);
    struct plan plan = world_plan_of("a", &role);
    plan.is_gang = false;
    uint32_t job = world_submit(&world, &plan);
    world_run(&world, 1);
    struct event sick = {
        .kind = EVENT_NODE,
        .node = {.name = "n1",
                 .cpu = 4,
                 .memory_mib = 4096,
                 .gpu_count = 1,
                 .gpu_type = "V100",
                 .address = "10.0.0.1",
                 .reason = "disk"},
    };
    world_step(&world, &sick);
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    struct event event = {.kind = EVENT_SCALE, .user = "alice"};
    event.scale.job.v = job;
    event.scale.instances = 1;
    world_step(&world, &event);
    assert_int_equal(world_answer(&world)->code, 0);
    assert_int_equal(world_job(&world, job)->state, LIFE_COMPLETED);
    assert_true(world_job(&world, job)->completion.is_success);
    world_release(&world);
}

struct shown_rows {
    size_t count, ended;
    struct task_record last;
};

static void row_see(void *context, const struct task_record *row)
{
    struct shown_rows *seen = context;
    seen->count++;
    seen->ended += row->state == LIFE_COMPLETED;
    seen->last = *row;
}

/* As their rows say, those that wait for a place as well; only while the attempt is under way. */
static void tasks_are_shown(void **state)
{
    (void)state;
    struct world world;
    struct plan_role roles[] = {world_role("worker", 2, 1, 0), world_role("server", 3, 4, 0)};
    struct plan plan = world_plan_of("loose", roles);
    plan.role_count = 2;
    plan.is_gang = false;
    roles[0].min_failed = -1;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 6, 0); /* room for the workers and one server */
    const struct job_id job = {world_submit(&world, &plan)};
    assert_int_equal(core_attempt_roles(world.core, job, 0), 2);
    assert_int_equal(core_attempt_roles(world.core, job, 1), 0);
    assert_int_equal(core_attempt_roles(world.core, (struct job_id){job.v + 1}, 0), 0);
    struct shown_rows seen = {0};
    core_tasks_show(world.core, job, row_see, &seen);
    assert_int_equal(seen.count, 5);
    assert_int_equal(seen.ended, 0);
    assert_string_equal(seen.last.role_name, "server");
    assert_int_equal(seen.last.job.v, job.v);
    assert_int_equal(seen.last.task.index, 2);
    assert_int_equal(seen.last.attempt.v, 0); /* it waits */
    world_run(&world, 1);
    world_exit(&world, 1, 7, 0);
    seen = (struct shown_rows){0};
    core_tasks_show(world.core, job, row_see, &seen);
    assert_int_equal(seen.count, 5);
    assert_int_equal(seen.ended, 1);
    assert_int_equal(world_ask(&world, EVENT_STOP, job.v), 0);
    assert_int_equal(core_attempt_roles(world.core, job, 0), 0);
    world_release(&world);
}

/* What a quota counts: instances that are added, each with its GPUs. */
static void gpus_that_a_scaling_adds(void **state)
{
    (void)state;
    struct world world;
    struct plan_role roles[] = {world_role("worker", 2, 1, 3), world_role("server", 1, 1, 0)};
    struct plan plan = world_plan_of("loose", roles);
    plan.role_count = 2;
    plan.is_gang = false;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 8);
    const struct job_id job = {world_submit(&world, &plan)};
    assert_int_equal(core_scale_gpus(world.core, job, 0, 5), 9);
    assert_int_equal(core_scale_gpus(world.core, job, 0, 2), 0);
    assert_int_equal(core_scale_gpus(world.core, job, 0, 1), 0);
    assert_int_equal(core_scale_gpus(world.core, job, 1, 100), 0);
    assert_int_equal(core_scale_gpus(world.core, job, 2, 5), 0); /* it has no such role … */
    assert_int_equal(core_scale_gpus(world.core, (struct job_id){job.v + 1}, 0, 5), 0);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tasks_are_shown),
    cmocka_unit_test(gpus_that_a_scaling_adds),
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_stop),
    cmocka_unit_test(test_start_again),
    cmocka_unit_test(test_retries_are_spaced),
    cmocka_unit_test(test_a_gang_waits_no_longer),
    cmocka_unit_test(test_debug_hold),
    cmocka_unit_test(test_scale),
    cmocka_unit_test(test_notes),
    cmocka_unit_test(test_time_limit),
    cmocka_unit_test(a_job_started_again_keeps_its_name),
    cmocka_unit_test(a_silent_end_has_its_phrase),
    cmocka_unit_test(a_scale_to_what_has_ended_ends_the_job),
};
UNIT_FILE(tests, NULL, NULL);
