/* The core: submissions, places, ends, retries, stops. */
#include "unit.h"

#include "world.h"
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/state.h"
#include "job/job.h"
#include "spec/spec.h"

static void test_one_job(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t job = world_submit_simple(&world, "train", 2, 1, 2);
    assert_int_equal(job, 1);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    const struct task_record *task = world_task(&world, job, 0, 1);
    assert_non_null(task);
    assert_int_equal(task->state, LIFE_CREATION_REQUESTED);
    assert_string_equal(task->node, "n1");
    assert_int_equal(task->gpu_count, 2);
    assert_int_equal(task->gpus[0], 2);
    assert_int_equal(task->port_count, 2);
    assert_int_equal(task->ports[0].first, 15002);
    const struct job_record *record = world_job(&world, job);
    assert_int_equal(record->state, LIFE_CREATION_REQUESTED);
    assert_non_null(record->submission);
    assert_true(world.output.records.items[0].kind == RECORD_JOB);

    world_run(&world, 1);
    assert_int_equal(world_job(&world, job)->state, LIFE_RUNNING);
    assert_true(world_has_story(&world, "Started", "worker-0 started on node n1 with GPUs 0,1"));
    world_run(&world, 2);
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_task(&world, job, 0, 0)->state, LIFE_COMPLETED);
    world_exit(&world, 2, 0, 0);
    record = world_job(&world, job);
    assert_int_equal(record->state, LIFE_COMPLETED);
    assert_true(record->completion.is_success);
    struct core_counts counts;
    core_count(world.core, &counts);
    assert_int_equal(counts.jobs_live, 0);
    assert_int_equal(counts.gpus_used, 0);
    assert_int_equal(counts.gpus_total, 4);
    world_release(&world);
}

static void assert_refused(struct world *world, const struct plan *plan, int code, const char *path)
{
    assert_int_equal(world_submit(world, plan), 0);
    assert_int_equal(world_answer(world)->code, code);
    assert_string_equal(world_answer(world)->path, path);
    assert_int_equal(world->output.records.count, 0);
}

static void submissions_have_limits(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    struct plan_role role = world_role("worker", 1, 1, 0);
    const struct plan good = world_plan_of("good", &role);
    char name[SPEC_NAME_MAX + 2] = {0};
    memset(name, 'x', SPEC_NAME_MAX + 1);
    struct plan plan = good;
    plan.name = name;
    assert_refused(&world, &plan, ERR_INVALID, "name");
    plan.name = name + 1; /* as long as allowed */
    assert_int_equal(world_submit(&world, &plan), 1);
    plan = good;
    plan.user = "";
    assert_refused(&world, &plan, ERR_INVALID, "name");
    plan = good;
    plan.priority = PLACEMENT_PRIORITY_MAX + 1;
    assert_refused(&world, &plan, ERR_INVALID, "priority");
    plan.priority = PLACEMENT_PRIORITY_OPPO - 1;
    assert_refused(&world, &plan, ERR_INVALID, "priority");
    static struct plan_role roles[JOB_ROLES_MAX + 1];
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        roles[i] = role;
    plan = good;
    plan.roles = roles;
    plan.role_count = COUNT_OF(roles);
    assert_refused(&world, &plan, ERR_INVALID, "taskRoles");
    struct plan_role pinned = role; /* first-fit knows no cells */
    pinned.pinned_cell_id = "PIN";
    plan = world_plan_of("pinned", &pinned);
    assert_refused(&world, &plan, ERR_NOT_FOUND, "pinnedCellId");
    assert_int_equal(world_submit(&world, &good), 2); /* refusals cost no number and no name */
    world_release(&world);
}

static void as_many_jobs_as_allowed(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    struct plan_role role = world_role("worker", 1, 1, 0);
    struct plan plan = world_plan_of("one more", &role);
    struct event event = {.kind = EVENT_SUBMIT, .now_ms = world.now_ms, .request = 1, .user = ""};
    event.submit.plan = plan_copy(&plan);
    world.core->jobs_live += CORE_JOBS_MAX;
    output_clear(&world.output);
    core_step(world.core, &event, &world.output);
    world.core->jobs_live -= CORE_JOBS_MAX;
    assert_int_equal(world_answer(&world)->code, ERR_TOO_BIG);
    core_check(world.core);
    world_release(&world);
}

static void nobody_waits_nobody_is_answered(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    struct event event = {.kind = EVENT_STOP, .now_ms = world.now_ms, .user = ""};
    event.job.v = 9;
    core_step(world.core, &event, &world.output);
    assert_int_equal(world.output.answers.count, 0);
    world_release(&world);
    core_free(NULL);
}

static void jobs_that_never_were(void **state)
{
    (void)state;
    static const enum event_kind asks[] = {EVENT_STOP, EVENT_START, EVENT_DELETE, EVENT_RELEASE};
    struct world world;
    world_init(&world, "first-fit");
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        assert_int_equal(world_ask(&world, asks[i], 0), ERR_NOT_FOUND);
        assert_int_equal(world_ask(&world, asks[i], 99), ERR_NOT_FOUND);
    }
    world_release(&world);
}

static void tell(struct world *world, enum event_kind kind, uint64_t attempt, const char *reason,
                 const char *message)
{
    struct event event = {.kind = kind,
                          .task = {.attempt = {attempt}, .reason = reason, .message = message}};
    world_step(world, &event);
}

static void notes_without_words(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    struct plan_role role = world_role("worker", 1, 1, 1);
    struct plan plan = world_plan_of("a", &role);
    plan.is_debug = true;
    world_submit(&world, &plan);
    world_run(&world, 1);
    tell(&world, EVENT_TASK_NOTE, 1, NULL, NULL);
    assert_true(world_has_story(&world, "Note", ""));
    tell(&world, EVENT_TASK_IDLE, 1, "Hung", NULL);
    assert_true(world_has_story(&world, "Hung", "worker-0: no progress"));
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 0); /* it did not ask for that */
    world_exit(&world, 1, 1, 0); /* its container is held for debugging: what it says is old */
    tell(&world, EVENT_TASK_IDLE, 1, "Hung", NULL);
    assert_int_equal(world.output.records.count, 0);
    world_release(&world);
}

static void an_ended_attempt_is_not_live(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    world_submit_simple(&world, "a", 2, 1, 1);
    world_run(&world, 1);
    world_run(&world, 2);
    assert_true(core_attempt_is_live(world.core, (struct attempt_id){1}));
    world_exit(&world, 1, 0, 0);
    assert_false(core_attempt_is_live(world.core, (struct attempt_id){1}));
    assert_true(core_attempt_is_live(world.core, (struct attempt_id){2}));
    assert_false(core_attempt_is_live(world.core, (struct attempt_id){0}));
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_one_job),
    cmocka_unit_test(submissions_have_limits),
    cmocka_unit_test(as_many_jobs_as_allowed),
    cmocka_unit_test(nobody_waits_nobody_is_answered),
    cmocka_unit_test(jobs_that_never_were),
    cmocka_unit_test(notes_without_words),
    cmocka_unit_test(an_ended_attempt_is_not_live),
};
UNIT_FILE(tests, NULL, NULL);
