/* What people and engines may say to the core, and what it answers: limits, refusals, defaults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/state.h"
#include "job/job.h"
#include "placement/hived.h"
#include "spec/spec.h"
#include "world.h"

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

static int recall(struct world *world, uint32_t job, struct text extra, const struct plan *plan)
{
    struct job_record record = {.id = {job}, .extra = extra, .reason = ""};
    struct event event = {.kind = EVENT_START};
    event.start = (struct recall){{job}, &record, plan_copy(plan)};
    world_step(world, &event);
    return world_answer(world)->code;
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
    assert_int_equal(recall(&world, 0, buf_as_text(&extra), &plan), ERR_CORRUPT);
    assert_int_equal(recall(&world, job, TEXT("nonsense"), &plan), ERR_CORRUPT);
    world_timer(&world, 61000); /* the name is free */
    uint32_t other = world_submit(&world, &plan);
    assert_int_equal(recall(&world, job, buf_as_text(&extra), &plan), ERR_CONFLICT);
    world_ask(&world, EVENT_STOP, other);
    world_exit(&world, 2, 143, 0);
    world_timer(&world, 61000);
    assert_int_equal(recall(&world, job, buf_as_text(&extra), &plan), 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, job);
    buf_release(&extra);
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
    assert_int_equal(recall(&world, job, buf_as_text(&extra), &plan), 0);
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

/* --- nodes --- */

static int node_tell(struct world *world, enum event_kind kind, struct node_facts node,
                     const char *reason)
{
    struct event event = {.kind = kind, .node = node};
    event.node.address = "10.0.0.1";
    event.node.reason = reason;
    event.node.gpu_type = node.gpu_count ? "V100" : "";
    world_step(world, &event);
    return world_answer(world)->code;
}

static void nodes_have_limits(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    char name[NODE_NAME_MAX + 2] = {0};
    memset(name, 'n', NODE_NAME_MAX + 1);
    assert_int_equal(node_tell(&world, EVENT_NODE, (struct node_facts){.name = name}, NULL),
                     ERR_INVALID);
    assert_int_equal(node_tell(&world, EVENT_NODE, (struct node_facts){.name = name + 1}, NULL), 0);
    assert_int_equal(node_tell(&world, EVENT_NODE, (struct node_facts){.name = NULL}, NULL),
                     ERR_INVALID);
    struct node_facts large = {.name = "n1", .gpu_count = UINT16_MAX + 1};
    assert_int_equal(node_tell(&world, EVENT_NODE, large, NULL), ERR_INVALID);
    world_release(&world);
}

static void as_many_nodes_as_allowed(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 1, 0);
    size_t count = world.core->nodes.count;
    world.core->nodes.count = CORE_NODES_MAX; /* it is not read before the limit is checked */
    struct event event = {.kind = EVENT_NODE, .now_ms = world.now_ms, .request = 1, .user = ""};
    event.node = (struct node_facts){.name = "n2", .gpu_type = "", .address = ""};
    output_clear(&world.output);
    core_step(world.core, &event, &world.output);
    world.core->nodes.count = count;
    assert_int_equal(world_answer(&world)->code, ERR_TOO_BIG);
    core_check(world.core);
    world_release(&world);
}

static void a_node_says_how_its_gpus_are_wired(void **state)
{
    (void)state;
    static const uint16_t numa[] = {0, 0, 1, 1}, switches[] = {0, 1, 2, 3};
    static const char *const policies[] = {"first-fit", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        struct node_facts node = {.name = "n1",
                                  .cpu = 8,
                                  .memory_mib = 8192,
                                  .gpu_count = 4,
                                  .gpu_numa = numa,
                                  .gpu_switch = switches,
                                  .is_healthy = true};
        assert_int_equal(node_tell(&world, EVENT_NODE, node, NULL), 0);
        assert_memory_equal(world_node_row(&world)->facts.gpu_numa, numa, sizeof numa);
        assert_memory_equal(world_node_row(&world)->facts.gpu_switch, switches, sizeof switches);
        world_submit_simple(&world, "one", 1, 1, 1);
        uint32_t pair = world_submit_simple(&world, "pair", 1, 1, 2); /* not over NUMA nodes */
        assert_int_equal(world_task(&world, pair, 0, 0)->gpus[0], 2);
        assert_int_equal(world_task(&world, pair, 0, 0)->gpus[1], 3);
        struct core *copy = core_copy(world.core);
        core_check(copy);
        assert_true(core_hash(copy) == core_hash(world.core));
        core_free(copy);
        node.gpu_numa = node.gpu_switch = NULL; /* no longer known */
        assert_int_equal(node_tell(&world, EVENT_NODE, node, NULL), 0);
        assert_null(world_node_row(&world)->facts.gpu_numa);
        assert_null(world_node_row(&world)->facts.gpu_switch);
        world_release(&world);
    }
}

static void a_lost_node_keeps_its_reason(void **state)
{
    (void)state;
    static const struct {
        const char *told, *kept;
    } cases[] = {{NULL, "lost"}, {"", "lost"}, {"powered off", "powered off"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct world world;
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 4);
        node_tell(&world, EVENT_NODE_LOST, (struct node_facts){.name = "n1"}, cases[i].told);
        assert_true(world_node_row(&world)->is_lost);
        assert_string_equal(world_node_row(&world)->facts.reason, cases[i].kept);
        world_release(&world);
    }
}

/* --- configuration --- */

static void configurations_are_checked(void **state)
{
    (void)state;
    enum { WRONG = 6 };
    static const char *const paths[WRONG] = {"ports", "blame",           "policy",
                                             "",      "physicalCluster", "retryPause"};
    struct core_config wrong[WRONG];
    for (size_t i = 0; i < WRONG; i++)
        core_config_default(&wrong[i]);
    wrong[0].port_first = 40001;
    wrong[1].blame_avoid = 0;
    wrong[2].policy = "nonsense";
    wrong[3].placement_document = TEXT("a: [");
    wrong[4].placement_document = TEXT("physicalCluster: 7\nvirtualClusters: {}\n");
    wrong[5].retry_pause_first_s = wrong[5].retry_pause_max_s + 1;
    for (size_t i = 0; i < WRONG; i++) {
        struct err err = {0};
        assert_null(core_new(&wrong[i], &err));
        assert_int_equal(err.code, ERR_INVALID);
        assert_string_equal(err.path, paths[i]);
    }
    struct core_config empty; /* a file of comments alone: automatic, as without a file */
    core_config_default(&empty);
    empty.placement_document = TEXT("# nothing yet\n");
    struct core *core = core_new(&empty, NULL);
    assert_non_null(core);
    core_free(core);
}

static void hived_is_seen_under_its_policy_alone(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    assert_null(placer_hived_state(core_placer(world.core)));
    world_release(&world);
    world_init(&world, "hived");
    world_node(&world, "n1", 8, 4);
    assert_non_null(placer_hived_state(core_placer(world.core)));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submissions_have_limits),
        cmocka_unit_test(as_many_jobs_as_allowed),
        cmocka_unit_test(nobody_waits_nobody_is_answered),
        cmocka_unit_test(jobs_that_never_were),
        cmocka_unit_test(recalls_are_checked),
        cmocka_unit_test(a_job_started_again_keeps_its_name),
        cmocka_unit_test(notes_without_words),
        cmocka_unit_test(an_ended_attempt_is_not_live),
        cmocka_unit_test(a_silent_end_has_its_phrase),
        cmocka_unit_test(nodes_have_limits),
        cmocka_unit_test(as_many_nodes_as_allowed),
        cmocka_unit_test(a_node_says_how_its_gpus_are_wired),
        cmocka_unit_test(a_lost_node_keeps_its_reason),
        cmocka_unit_test(configurations_are_checked),
        cmocka_unit_test(hived_is_seen_under_its_policy_alone),
        cmocka_unit_test(a_scale_to_what_has_ended_ends_the_job),
    };
    return cmocka_run_group_tests_name("core asks", tests, NULL, NULL);
}
