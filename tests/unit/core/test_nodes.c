/* Nodes: lost, blamed, avoided, cordoned and pardoned; their limits and their facts. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/state.h"

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

/* The operator is told of names that do not meet, at the job that waits for them. */
static void nodes_beside_the_cells_are_named(void **state)
{
    (void)state;
    struct world world;
    world_two_clusters_init(&world);
    world_node(&world, "n3", 8, 4);
    world_node(&world, "n2", 8, 2);
    world_submit_to(&world, "first", "red", 100, 4);
    uint32_t second = world_submit_to(&world, "second", "blue", 100, 4);
    assert_string_equal(world_job(&world, second)->reason,
                        "it needs 1 x 4 G for blue at priority 100 in its cells of "
                        "NODE: 0 of 4 leaves are free, 4 more on bad nodes; it would have to use "
                        "node n2, which is bad; not used: n2 (it has 2 GPUs, fewer than its "
                        "cells), n3 (the configuration of the cells does not name it)");
    world_node(&world, "n2", 8, 4);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, second);
    world_release(&world);
}

/* A failure that costs no retry and counts 1 against the node. */
static void lose(struct world *world, uint64_t attempt)
{
    struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {attempt}, .blame = 1}};
    world_run(world, attempt);
    event.task.completion = completion_of(CODE_CONTAINER_DELETED, "%s", "said the test");
    world_step(world, &event);
}

/* Retries without a pause between. */
static void world_hurry(struct world *world)
{
    world->config.retry_pause_first_s = 0;
    world_configure(world);
}

static void told_at_each_level(void **state)
{
    (void)state;
    struct world world;
    uint64_t attempt = 1, avoided_at = 0;
    world_init(&world, "first-fit");
    world_hurry(&world);
    world_node(&world, "n1", 8, 0);
    world_submit_simple(&world, "unlucky", 1, 1, 0);
    do { /* it fades while they come: a little more than the 3 and 10 of the configuration */
        lose(&world, attempt);
        if (world_has_story(&world, "NodeAvoided", "node n1 is taken last now")) {
            assert_int_equal(avoided_at, 0);
            avoided_at = attempt;
        }
        assert_true(attempt < 20);
    } while (!world_has_story(&world, "NodeCordoned", "node n1 is taken no more") && attempt++);
    assert_in_range(avoided_at, 3, 4);
    assert_in_range(attempt, 10, 12);
    assert_true(world_node_row(&world)->is_cordoned);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* it waits for another */
    world_node_event(&world, EVENT_NODE_PARDON, "n1");
    assert_false(world_node_row(&world)->is_cordoned);
    assert_true(world_node_row(&world)->blame == 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world_release(&world);
}

static void a_node_may_be_cordoned_by_nobody_in_particular(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    struct event event = {
        .kind = EVENT_NODE_CORDON, .user = "", .node = {.name = "n1", .reason = ""}};
    world_step(&world, &event);
    assert_int_equal(world_answer(&world)->code, 0);
    assert_string_equal(world_node_row(&world)->closing.by, "the platform");
    world_release(&world);
}

/* A job that waits because of it is told who cordoned the node, why, and since when. */
static void who_waits_is_told_of_the_cordon(void **state)
{
    static const char *const policies[] = {"first-fit", "hived"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        uint64_t attempt = 1;
        world_init(&world, policies[i]);
        world_hurry(&world);
        world_node(&world, "n1", 8, 0);
        world_submit_simple(&world, "unlucky", 1, 1, 0);
        do {
            lose(&world, attempt);
            assert_true(attempt < 20);
        } while (!world_has_story(&world, "NodeCordoned", "n1 is taken no more") && attempt++);
        assert_true(world_has_story(&world, "Waiting",
                                    "; not used: n1 (cordoned by the platform since 19"));
        assert_true(world_has_story(&world, "Waiting",
                                    " failures of the platform were counted there, the last: -101 "
                                    "PodExternalDeleted of alice~unlucky worker-0)"));
        assert_non_null(
            strstr(world_node_row(&world)->facts.reason, "cordoned by the platform since "));
        /* an inventory that is told again keeps the reason; so does a restart */
        world_node(&world, "n1", 8, 0);
        assert_non_null(
            strstr(world_node_row(&world)->facts.reason, "cordoned by the platform since "));
        world_node_event(&world, EVENT_NODE_PARDON, "n1");
        assert_string_equal(world_node_row(&world)->facts.reason, "");
        world_release(&world);
    }
}

/* Who waits already hears of it as well, and of nodes that are lost or not healthy. */
static void nodes_that_are_not_used_are_named(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    for (int i = 1; i <= 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        world_node(&world, name, 8, 0);
    }
    world_submit_simple(&world, "fills", 5, 8, 0);
    world_submit_simple(&world, "waits", 1, 8, 0);
    assert_true(world_has_story(&world, "Waiting", "waiting: "));
    assert_false(world_has_story(&world, "Waiting", "not used"));
    world_node_event(&world, EVENT_NODE_LOST, "n2");
    assert_true(world_has_story(&world, "Waiting", "; not used: n2 (lost"));
    for (int i = 3; i <= 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        world_node_event(&world, EVENT_NODE_LOST, name);
    }
    assert_true(world_has_story(&world, "Waiting", " and 1 more"));
    world_release(&world);
}

/* A node with a remark of its own that is taken last: its row says why, and a restart knows it. */
static void a_remark_does_not_hide_the_blame(void **state)
{
    (void)state;
    struct world world;
    struct event event = {
        .kind = EVENT_NODE,
        .node = {.name = "n1", .cpu = 8, .memory_mib = 8192, .gpu_type = "", .address = "10.0.0.1"},
    };
    event.node.reason = "the disk is slow";
    event.node.is_healthy = true;
    world_init(&world, "first-fit");
    world_keep(&world);
    world_hurry(&world);
    world_step(&world, &event);
    assert_string_equal(world_node_row(&world)->facts.reason, "the disk is slow");
    world_submit_simple(&world, "unlucky", 1, 1, 0);
    for (uint64_t attempt = 1; attempt <= 4; attempt++)
        lose(&world, attempt);
    assert_non_null(strstr(world_node_row(&world)->facts.reason, "taken last by the platform"));
    uint64_t before = core_hash(world.core);
    world_restart(&world);
    assert_true(core_hash(world.core) == before);
    event.node.is_healthy = false;
    event.node.reason = "the disk is gone";
    world_step(&world, &event);
    assert_string_equal(world_node_row(&world)->facts.reason, "the disk is gone");
    before = core_hash(world.core);
    world_restart(&world);
    assert_true(core_hash(world.core) == before);
    world_release(&world);
}

/* Blame fades without a row: what a restart reads of it is what the core went on with. */
static void faded_blame_is_as_its_row_says(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_keep(&world);
    world_node(&world, "n1", 8, 0);
    world_node(&world, "n2", 8, 0);
    world_submit_simple(&world, "unlucky", 1, 1, 0);
    lose(&world, 1);
    for (int i = 0; i < 12; i++) { /* half of it an hour */
        world_timer(&world, 3600 * 1000);
        world_submit_simple(&world, "asks where to go", 1, 1, 0);
        const uint64_t before = core_hash(world.core);
        world_restart(&world);
        assert_true(core_hash(world.core) == before);
    }
    world_release(&world);
}

static int node_close(struct world *world, enum event_kind kind, const char *name, const char *why)
{
    struct event event = {
        .kind = kind, .user = "alice", .node = {.name = name, .address = "", .reason = why}};
    world_step(world, &event);
    return world_answer(world)->code;
}

/* What runs on it goes on; who waits for it is told who closed it, and why. */
static void cordoned_by_hand(void **state)
{
    static const char *const policies[] = {"first-fit", "hived"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 8, 0);
        world_submit_simple(&world, "runs", 1, 1, 0);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        assert_int_equal(node_close(&world, EVENT_NODE_CORDON, "n1", "a disk is replaced"), 0);
        assert_true(world_node_row(&world)->is_cordoned);
        assert_false(world_node_row(&world)->is_cordoned_for_blame);
        assert_string_equal(world_node_row(&world)->closing.by, "alice");
        assert_string_equal(world_node_row(&world)->closing.why, "a disk is replaced");
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        world_submit_simple(&world, "waits", 1, 1, 0);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        assert_true(
            world_has_story(&world, "Waiting", "; not used: n1 (cordoned by alice since 19"));
        assert_true(world_has_story(&world, "Waiting", ": a disk is replaced)"));
        world_node(&world, "n1", 8, 0); /* its inventory is told again */
        assert_true(world_node_row(&world)->is_cordoned);
        assert_int_equal(node_close(&world, EVENT_NODE_UNCORDON, "n1", NULL), 0);
        assert_false(world_node_row(&world)->is_cordoned);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        assert_int_equal(node_close(&world, EVENT_NODE_UNCORDON, "n1", NULL), 0); /* it is open */
        assert_int_equal(node_close(&world, EVENT_NODE_CORDON, "n9", NULL), ERR_NOT_FOUND);
        assert_int_equal(node_close(&world, EVENT_NODE_UNCORDON, "n9", NULL), ERR_NOT_FOUND);
        world_release(&world);
    }
}

static void a_reason_has_a_limit(void **state)
{
    (void)state;
    struct world world;
    char why[NODE_CLOSING_WHY_MAX + 2];
    memset(why, 'x', sizeof why);
    why[sizeof why - 1] = '\0';
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    assert_int_equal(node_close(&world, EVENT_NODE_CORDON, "n1", why), ERR_TOO_BIG);
    why[sizeof why - 2] = '\0';
    assert_int_equal(node_close(&world, EVENT_NODE_CORDON, "n1", why), 0);
    world_release(&world);
}

/* Its tasks end as preempted ones do and start elsewhere; neither side counts it as a failure. */
static void drained_tasks_start_elsewhere(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    uint32_t gang = world_submit_simple(&world, "gang", 2, 2, 0);
    world_run(&world, 1);
    world_run(&world, 2);
    world_node(&world, "n2", 8, 0);
    assert_int_equal(node_close(&world, EVENT_NODE_DRAIN, "n1", "a new kernel"), 0);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 2);
    assert_true(world_has_story(&world, "Preempted", "node n1 is drained by alice: a new kernel"));
    world_exit(&world, 1, 143, 0);
    world_exit(&world, 2, 143, 0);
    assert_string_equal(world_task(&world, gang, 0, 0)->node, "n2");
    assert_int_equal(world_job(&world, gang)->retries_user, 0);
    const struct core_node *n1 = &world.core->nodes.items[0];
    assert_true(n1->blame.value == 0);
    assert_int_equal(n1->task_count, 0);
    world_release(&world);
}

/* A task of a job without gang ends by itself; a second drain tells it nothing. */
static void a_node_is_drained_twice(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    struct plan_role role = world_role("worker", 2, 2, 0);
    struct plan plan = world_plan_of("tasks", &role);
    plan.is_gang = false;
    world_submit(&world, &plan);
    world_run(&world, 1); /* the other one has not started yet */
    for (size_t told = 0; told < 2; told++) {
        assert_int_equal(node_close(&world, EVENT_NODE_DRAIN, "n1", "a new kernel"), 0);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), told ? 0 : 2);
        assert_int_equal(world_story_count(&world, "NodeDrained"), told ? 0 : 2);
    }
    world_release(&world);
}

/* What the platform has cordoned, only a pardon opens; what both have, needs both. */
static void by_hand_and_for_its_failures(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_hurry(&world);
    world_node(&world, "n1", 8, 0);
    world_submit_simple(&world, "unlucky", 1, 1, 0);
    for (uint64_t attempt = 1; world.core->nodes.items[0].blame.level != BLAME_CORDON; attempt++) {
        assert_true(attempt < 20);
        lose(&world, attempt);
    }
    assert_int_equal(node_close(&world, EVENT_NODE_UNCORDON, "n1", NULL), ERR_CONFLICT);
    assert_non_null(strstr(world_answer(&world)->text, "pardon it"));
    assert_int_equal(node_close(&world, EVENT_NODE_CORDON, "n1", NULL), 0);
    assert_true(world_node_row(&world)->is_cordoned_for_blame);
    assert_int_equal(node_close(&world, EVENT_NODE_UNCORDON, "n1", NULL), 0);
    assert_true(world_node_row(&world)->is_cordoned);
    assert_int_equal(node_close(&world, EVENT_NODE_CORDON, "n1", NULL), 0);
    world_node_event(&world, EVENT_NODE_PARDON, "n1");
    assert_true(world_node_row(&world)->is_cordoned);
    assert_int_equal(node_close(&world, EVENT_NODE_UNCORDON, "n1", NULL), 0);
    assert_false(world_node_row(&world)->is_cordoned);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(cordoned_by_hand),
    cmocka_unit_test(a_reason_has_a_limit),
    cmocka_unit_test(drained_tasks_start_elsewhere),
    cmocka_unit_test(a_node_is_drained_twice),
    cmocka_unit_test(by_hand_and_for_its_failures),
    cmocka_unit_test(test_node_lost),
    cmocka_unit_test(test_blame),
    cmocka_unit_test(nodes_have_limits),
    cmocka_unit_test(as_many_nodes_as_allowed),
    cmocka_unit_test(a_node_says_how_its_gpus_are_wired),
    cmocka_unit_test(a_lost_node_keeps_its_reason),
    cmocka_unit_test(nodes_beside_the_cells_are_named),
    cmocka_unit_test(told_at_each_level),
    cmocka_unit_test(a_node_may_be_cordoned_by_nobody_in_particular),
    cmocka_unit_test(who_waits_is_told_of_the_cordon),
    cmocka_unit_test(a_remark_does_not_hide_the_blame),
    cmocka_unit_test(nodes_that_are_not_used_are_named),
    cmocka_unit_test(faded_blame_is_as_its_row_says),
};
UNIT_FILE(tests, NULL, NULL);
