/* The automatic cells change while tasks run: a new placer is told of them. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/err.h"
#include "core/core.h"
#include "core/jobs.h"
#include "core/renew.h"
#include "core/shadow.h"
#include "core/state.h"

enum { CPUS = 8 };

/* Of so much memory a CPU. Were what runs told anew? */
static bool node_set(struct world *world, uint32_t cpu, uint32_t memory_mib)
{
    struct event event = {
        .kind = EVENT_NODE,
        .node = {.name = "n1",
                 .cpu = cpu,
                 .memory_mib = (uint64_t)cpu * memory_mib,
                 .gpu_type = "",
                 .is_healthy = true,
                 .address = "10.0.0.1"},
    };
    world_step(world, &event);
    return world_has_trace(world, "what runs was told to a new placer");
}

static bool starts(struct world *world, const char *name, uint32_t instances, uint32_t cpu)
{
    world_submit_simple(world, name, instances, cpu, 0);
    return world_command_count(world, COMMAND_CREATE) == instances;
}

/* A machine comes back with other memory: its CPU leaves have other names, the tasks there keep
 * their CPUs. */
static void tasks_keep_their_cpus(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    assert_false(node_set(&world, CPUS, 1024));
    assert_true(starts(&world, "a", 2, 3));
    assert_true(node_set(&world, CPUS, 2048));
    assert_false(node_set(&world, CPUS, 2048));
    assert_false(starts(&world, "wide", 1, 3)); /* two are left */
    assert_true(starts(&world, "b", 2, 1));
    assert_false(starts(&world, "none", 1, 1));
    assert_true(node_set(&world, CPUS / 2, 2048)); /* fewer than are in use */
    assert_false(starts(&world, "more", 1, 1));
    assert_true(node_set(&world, 3 * CPUS, 2048)); /* who waits is served: 3 + 1 + 1 */
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 3);
    assert_true(starts(&world, "rest", 3 * CPUS - 8 - 5, 1));
    assert_false(starts(&world, "last", 1, 1));
    world_release(&world);
}

/* Cells are made in pieces, of which those in use know nothing: what begins to run on these while
 * others are still to be made is told to a new placer, too, and nobody waits for ever. */
static void what_began_on_old_cells_is_told(void **state)
{
    (void)state;
    enum { OTHERS = 8, AT = 3 /* n1 has had its turn */, STEPS_MAX = 1000 };
    struct world world;
    world_init(&world, "hived");
    core_slice_set(world.core, 1);
    node_set(&world, CPUS, 1024);
    for (uint32_t i = 0; i < OTHERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "other%u", i);
        world_node(&world, name, CPUS, 0);
    }
    world_pass_end(&world);
    assert_false(node_set(&world, CPUS, 2048)); /* nothing runs */
    for (uint32_t i = 0; i < AT; i++)
        assert_true(world_pass_step(&world));
    assert_false(node_set(&world, CPUS, 4096));
    world_pass_end(&world);
    bool has_begun = starts(&world, "a", 1, 1), is_told = false;
    uint32_t steps = 0;
    for (; steps < STEPS_MAX && world_pass_step(&world); steps++) {
        has_begun |= world_command_count(&world, COMMAND_CREATE) > 0;
        is_told |= world_has_trace(&world, "what runs was told to a new placer");
    }
    assert_true(has_begun);
    assert_true(is_told);
    assert_in_range(steps, 1, STEPS_MAX - 1);
    world_release(&world);
}

/* --- in pieces --- */

enum { OTHERS = 3, ALL_CPUS = (1 + OTHERS) * CPUS };

enum happening {
    NOTHING,
    A_TASK_ENDS,
    A_GANG_ENDS,
    A_NODE_IS_LOST,
    A_NODE_COMES,
    THE_NODE_CHANGES_AGAIN,
    ANOTHER_NODE_CHANGES,
    WHO_PREEMPTS_IS_STOPPED,
    A_JOB_IS_SUBMITTED,
    IT_IS_COPIED,
    THE_SERVER_RESTARTS,
    ANOTHER_POLICY_BEGINS,
    THE_POLICY_STAYS,
    A_WRONG_POLICY_IS_ASKED,
    HAPPENINGS,
};

/* Why another placer takes over. */
enum cause { THE_NODE_CHANGES, THE_POLICY_CHANGES, THE_DOCUMENT_CHANGES, CAUSES };

static const char same_cells[] = "# automatic ones, as without a document\n";

/* Four machines are full but for a CPU, one of their tasks is being preempted, and the first one
 * comes back with other memory, or the configuration is read again. */
static uint32_t renewal_begin_by(struct world *world, enum cause cause)
{
    world_init(world, "hived");
    world_keep(world);
    core_slice_set(world->core, 1);
    node_set(world, CPUS, 1024);
    for (uint32_t i = 0; i < OTHERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "other%u", i);
        world_node(world, name, CPUS, 0);
    }
    world_pass_end(world);
    world_submit_simple(world, "wide", 1 + OTHERS, 5, 0);
    world_pass_end(world);
    world_submit_simple(world, "narrow", ALL_CPUS - (1 + OTHERS) * 5 - 1, 1, 0);
    world_pass_end(world);
    struct plan_role role = world_role("worker", 1, CPUS, 0);
    struct plan plan = world_plan_of("high", &role);
    plan.priority = 100;
    const uint32_t high = world_submit(world, &plan);
    world_pass_end(world);
    if (cause == THE_NODE_CHANGES)
        assert_false(node_set(world, CPUS, 2048));
    if (cause == THE_POLICY_CHANGES)
        world->config.policy = "spread";
    if (cause == THE_DOCUMENT_CHANGES)
        world->config.placement_document = text_of(same_cells);
    if (cause != THE_NODE_CHANGES)
        world_configure(world);
    assert_int_equal(core_policy_changes(world->core), cause != THE_NODE_CHANGES);
    assert_true(placer_is_renewing(world->core));
    return high;
}

static uint32_t renewal_begin(struct world *world)
{
    return renewal_begin_by(world, THE_NODE_CHANGES);
}

static void happen(struct world *world, enum happening what, uint32_t high)
{
    switch (what) {
    case NOTHING:
    case HAPPENINGS:
        break;
    case A_TASK_ENDS:
        world_run(world, 1);
        world_exit(world, 1, 0, 0);
        break;
    case A_GANG_ENDS:
        for (uint64_t attempt = 1; attempt <= 1 + OTHERS; attempt++)
            world_exit(world, attempt, 0, 0);
        break;
    case A_NODE_IS_LOST:
        world_node_event(world, EVENT_NODE_LOST, "other1");
        break;
    case A_NODE_COMES:
        world_node(world, "more", CPUS, 0);
        break;
    case THE_NODE_CHANGES_AGAIN:
        node_set(world, CPUS, 4096);
        break;
    case ANOTHER_NODE_CHANGES:
        world_node(world, "other0", 2 * CPUS, 0);
        break;
    case WHO_PREEMPTS_IS_STOPPED:
        assert_int_equal(world_ask(world, EVENT_STOP, high), 0);
        break;
    case A_JOB_IS_SUBMITTED:
        world_submit_simple(world, "new", 1, 1, 0);
        break;
    case IT_IS_COPIED: {
        struct core *copy = core_copy(world->core);
        core_free(world->core);
        world->core = copy;
        break;
    }
    case THE_SERVER_RESTARTS:
        world_restart(world);
        break;
    case ANOTHER_POLICY_BEGINS:
        world->config.policy = "best-fit";
        world_configure(world);
        break;
    case THE_POLICY_STAYS:
        world->config.policy = "hived";
        world->config.placement_document = TEXT("");
        world_configure(world);
        break;
    case A_WRONG_POLICY_IS_ASKED: {
        struct core_config wrong = world->config;
        wrong.policy = "nonsense";
        const bool changes = core_policy_changes(world->core);
        world_step(world, &(struct event){.kind = EVENT_CONFIG, .config = &wrong});
        assert_int_equal(world_answer(world)->code, ERR_INVALID);
        if (!changes)
            assert_false(core_policy_changes(world->core));
        break;
    }
    }
}

static uint32_t cpus_of(const struct world *world, bool is_used)
{
    uint32_t cpus = 0;
    for (uint32_t i = 0; i < core_node_count(world->core); i++) {
        const struct core_node_use use = core_node_use(world->core, (struct node_id){i});
        assert_in_range(use.cpus, 0, use.cpu_total); /* no leaf is given twice */
        cpus += use.is_lost ? 0 : is_used ? use.cpus : use.cpu_total;
    }
    return cpus;
}

/* Everybody goes, and all CPUs are there for others: none has leaked. */
static void all_is_free(struct world *world)
{
    for (uint32_t job = 1; job <= world->core->last_job; job++)
        world_ask(world, EVENT_STOP, job);
    world_pass_end(world);
    for (uint64_t attempt = 1; attempt <= world->core->last_attempt; attempt++)
        world_exit(world, attempt, 0, 0);
    world_pass_end(world);
    assert_int_equal(cpus_of(world, true), 0);
    struct plan_role role = world_role("worker", cpus_of(world, false), 1, 0);
    struct plan plan = world_plan_of("all", &role);
    plan.is_gang = false; /* its tasks are on several leaf types */
    assert_true(world_submit(world, &plan) != 0);
    world_pass_end(world);
    assert_int_equal(cpus_of(world, true), cpus_of(world, false));
}

/* At every step. */
static void happens_at_any_step(enum cause cause, enum happening what)
{
    uint32_t steps = ((uint32_t)cause + (uint32_t)what) % unit_every();
    for (bool is_over = false; !is_over; steps += unit_every()) {
        struct world world;
        const uint32_t high = renewal_begin_by(&world, cause);
        for (uint32_t i = 0; i < steps; i++)
            world_pass_step(&world);
        is_over = !placer_is_renewing(world.core);
        happen(&world, what, high);
        cpus_of(&world, true);
        world_pass_end(&world);
        assert_false(placer_is_renewing(world.core));
        assert_false(core_policy_changes(world.core));
        assert_string_equal(world.core->config.policy, world.config.policy);
        assert_string_equal(core_placer(world.core)->ops->name, world.config.policy);
        assert_true(
            text_equal(world.core->config.placement_document, world.config.placement_document));
        cpus_of(&world, true);
        all_is_free(&world);
        world_release(&world);
    }
    assert_in_range(steps, 4, 1000);
}

static void what_happens_meanwhile_counts(void **state)
{
    (void)state;
    for (enum cause cause = 0; cause < CAUSES; cause++)
        for (enum happening what = NOTHING; what < HAPPENINGS; what++)
            happens_at_any_step(cause, what);
}

/* A change in every step: the queue is served all the same. */
static void a_node_that_changes_for_ever_hinders_nobody(void **state)
{
    (void)state;
    enum { STEPS_MAX = 2000 };
    struct world world;
    renewal_begin(&world);
    world_submit_simple(&world, "new", 1, 1, 0); /* there is a CPU for it */
    bool has_started = false;
    for (uint32_t i = 0; i < STEPS_MAX && !has_started; i++) {
        node_set(&world, CPUS, i % 2 ? 2048 : 4096);
        has_started = world_command_count(&world, COMMAND_CREATE) > 0;
    }
    assert_true(has_started);
    world_release(&world);
}

/* Until what runs has been told, the policy of before decides, and readers see its cells. */
static void the_policy_of_before_decides_until_then(void **state)
{
    (void)state;
    struct world world;
    renewal_begin(&world);
    world_pass_end(&world);
    world.config.port_last = 30000;
    world.config.policy = "best-fit";
    world_configure(&world);
    assert_int_equal(world_answer(&world)->code, 0);
    assert_int_equal(world.core->config.port_last, 30000); /* a number counts at once */
    assert_string_equal(world.core->config.policy, "hived");
    assert_string_equal(core_placer(world.core)->ops->name, "hived");
    struct plan_role role = world_role("worker", 1, 1, 0);
    struct plan plan = world_plan_of("unknown", &role);
    plan.virtual_cluster = "nowhere";
    assert_int_equal(world_submit(&world, &plan), 0);
    assert_int_equal(world_answer(&world)->code, ERR_INVALID);
    world.config.port_last = 35000; /* the same policy again: it goes on */
    world_configure(&world);
    assert_true(core_policy_changes(world.core));
    world_pass_end(&world);
    assert_int_equal(world.core->config.port_last, 35000);
    assert_string_equal(world.core->config.policy, "best-fit");
    assert_true(world_submit(&world, &plan) != 0); /* which knows no virtual clusters */
    world_release(&world);
}

/* Whoever asks may have made the placer already. It is freed when it is not needed. */
static void a_placer_comes_with_the_configuration(void **state)
{
    (void)state;
    enum { NEW, SAME, WRONG, COUNT };
    for (uint32_t which = NEW; which < COUNT; which++) {
        struct world world;
        world_init(&world, "hived");
        node_set(&world, CPUS, 1024);
        struct core_config config = world.config;
        config.policy = which == NEW ? "spread" : "hived";
        config.backoff_min_s = which == WRONG ? config.backoff_max_s + 1 : config.backoff_min_s;
        struct placer *placer = placer_new(config.policy, config.placement_document, NULL);
        struct event event = {.kind = EVENT_CONFIG, .config = &config, .placer = placer};
        world_step(&world, &event);
        assert_int_equal(world_answer(&world)->code, which == WRONG ? ERR_INVALID : 0);
        assert_int_equal(core_placer(world.core) == placer, which == NEW);
        assert_false(core_policy_changes(world.core)); /* it fitted into the step */
        world_release(&world);
    }
}

/* A shadow is a copy of the placer of before: that is copied whole before another takes over. */
static void a_shadow_is_copied_first(void **state)
{
    (void)state;
    struct world world;
    renewal_begin(&world);
    world_pass_end(&world);
    world_submit_simple(&world, "waits", 2, CPUS, 0);
    world_pass_end(&world);
    const int64_t starves_ms = (int64_t)world.config.starvation_after_s * 1000;
    world_timer(&world, starves_ms + 1000);
    while (!placer_is_copied(world.core))
        assert_true(world_pass_step(&world));
    world.config.policy = "spread";
    world_configure(&world);
    assert_true(core_policy_changes(world.core));
    assert_false(placer_is_renewing(world.core));
    struct core *copy = core_copy(world.core);
    core_free(world.core);
    world.core = copy;
    for (; placer_is_copied(world.core); assert_true(world_pass_step(&world)))
        assert_false(placer_is_renewing(world.core));
    world_pass_end(&world);
    assert_string_equal(core_placer(world.core)->ops->name, "spread");
    all_is_free(&world);
    world_release(&world);
}

/* The placer of before goes with the steps that follow. */
static void the_last_one_is_freed_in_pieces(void **state)
{
    (void)state;
    struct world world;
    renewal_begin(&world);
    world_pass_end(&world);
    uint32_t steps = 0;
    for (; world.core->past_placers.count; steps++)
        world_timer(&world, 1);
    assert_in_range(steps, 2, 1000);
    world_release(&world);
    renewal_begin(&world);
    while (!world.core->past_placers.count)
        world_pass_step(&world);
    assert_int_equal(world.core->past_placers.count, 1);
    world.config.policy = "best-fit"; /* another one is freed while it is */
    world_configure(&world);
    world_release(&world);
}

/* A gang takes its places first: another placer is told of them. */
static void a_gang_starts_first(void **state)
{
    (void)state;
    enum { TASKS = 300, LARGE = 2 * TASKS };
    struct world world;
    world_init(&world, "hived");
    node_set(&world, CPUS, 1024);
    world_node(&world, "large", LARGE, 0);
    world_submit_simple(&world, "one", 1, 1, 0);
    core_slice_set(world.core, 1);
    const uint32_t gang = world_submit_simple(&world, "gang", TASKS, 1, 0);
    const struct core_job *job = core_job_find(world.core, (struct job_id){gang});
    while (job->waiting != WAITING_STARTING)
        assert_true(world_pass_step(&world));
    node_set(&world, CPUS, 2048);
    assert_true(renewal_waits(world.core));
    uint32_t creates = 0;
    for (; job->waiting == WAITING_STARTING; assert_true(world_pass_step(&world)))
        assert_false(placer_is_renewing(world.core));
    while (world_pass_step(&world))
        creates += (uint32_t)world_command_count(&world, COMMAND_CREATE);
    assert_in_range(creates, TASKS - 250, TASKS);
    assert_int_equal(cpus_of(&world, true), TASKS + 1);
    world_release(&world);
}

/* A preemption is begun anew with the new placer. */
static void a_preemption_under_way(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    node_set(&world, CPUS, 1024);
    assert_true(starts(&world, "low", 1, CPUS));
    uint64_t attempt = world_command(&world, COMMAND_CREATE, 0)->attempt.v;
    world_run(&world, attempt);
    struct plan_role role = world_role("worker", 1, CPUS, 0);
    struct plan plan = world_plan_of("high", &role);
    plan.priority = 100;
    assert_true(world_submit(&world, &plan) != 0);
    assert_int_equal(world_story_count(&world, "Preempted"), 1);
    assert_true(node_set(&world, CPUS, 2048));
    world_exit(&world, attempt, 0, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world_release(&world);
}

/* The first machine beyond a million CPUs makes a leaf two CPUs. */
static void growth_keeps_what_runs(void **state)
{
    (void)state;
    enum { LARGE = 4096, FIT = (1 << 20) / LARGE };
    struct world world;
    world_init(&world, "hived");
    core_slice_set(world.core, 1 << 20); /* in one piece */
    node_set(&world, CPUS, 1024);
    for (uint32_t i = 0; i < FIT; i++) {
        char name[16];
        snprintf(name, sizeof name, "large%u", i);
        if (i + 1 == FIT)
            assert_true(starts(&world, "a", 2, 3));
        world_node(&world, name, LARGE, 0);
        assert_int_equal(world_has_trace(&world, "what runs was told to a new placer"),
                         i + 1 == FIT);
    }
    world_release(&world);
}

/* --- another policy begins while tasks run --- */

static const char two_boxes[] =
    "physicalCluster:\n"
    "  skuTypes: {V100: {gpu: 1, cpu: 4, memory: 1Gi}}\n"
    "  cellTypes: {BOX: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: BOX, cellAddress: n0}, {cellType: BOX, cellAddress: n1}]\n"
    "virtualClusters: {default: {virtualCells: [{cellType: BOX, cellNumber: 2}]}}\n";

/* A worker with all GPUs of a node, and a server with many CPUs. */
static void with_server(struct world *world, const char *name, uint32_t cpu)
{
    struct plan_role roles[] = {world_role("worker", 1, cpu, 4), world_role("server", 1, cpu, 0)};
    struct plan plan = world_plan(name);
    plan.roles = roles;
    plan.role_count = 2;
    assert_true(world_submit(world, &plan) != 0);
    assert_int_equal(world_command_count(world, COMMAND_CREATE), 2);
}

static void hived_begin(struct world *world)
{
    world->config.policy = "hived";
    world->config.placement_document = TEXT(two_boxes);
    world_configure(world);
}

static bool waits(struct world *world, const char *name, uint32_t gpu)
{
    world_submit_simple(world, name, 1, 1, gpu);
    return world_command_count(world, COMMAND_CREATE) == 0;
}

/* The first gang's server lies on a node whose GPUs are all of the second: it must not be counted
 * in one of their cells, which would be free when the first has ended. */
static void a_server_takes_no_device(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n0", 16, 4);
    world_node(&world, "n1", 16, 4);
    with_server(&world, "a", 10); /* its server is on n1 */
    with_server(&world, "b", 3);  /* its worker is on n1 */
    assert_string_equal(world_task(&world, 2, 0, 0)->node, "n1");
    hived_begin(&world);
    for (uint64_t attempt = 1; attempt <= 2; attempt++) {
        world_run(&world, attempt);
        world_exit(&world, attempt, 0, 0);
    }
    assert_false(waits(&world, "c", 4));
    assert_string_equal(world_command(&world, COMMAND_CREATE, 0)->node, "n0");
    assert_true(waits(&world, "d", 1));
    world_release(&world);
}

/* It runs on a GPU of which the new cells know nothing but the device. */
static void an_unknown_type_keeps_its_devices(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n0", 16, 4);
    struct plan_role role = world_role("worker", 1, 1, 4);
    struct plan plan = world_plan_of("a", &role);
    role.sku_type = "V100";
    assert_true(world_submit(&world, &plan) != 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world.config.policy = "hived";
    world.config.placement_document =
        TEXT("physicalCluster:\n"
             "  skuTypes: {A100: {gpu: 1, cpu: 4, memory: 1Gi}}\n"
             "  cellTypes: {BOX: {childCellType: A100, childCellNumber: 4, isNodeLevel: true}}\n"
             "  physicalCells: [{cellType: BOX, cellAddress: n0}]\n"
             "virtualClusters: {default: {virtualCells: [{cellType: BOX, cellNumber: 1}]}}\n");
    world_configure(&world);
    assert_true(waits(&world, "b", 1));
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1); /* b */
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tasks_keep_their_cpus),
    cmocka_unit_test(what_began_on_old_cells_is_told),
    cmocka_unit_test(what_happens_meanwhile_counts),
    cmocka_unit_test(the_policy_of_before_decides_until_then),
    cmocka_unit_test(a_placer_comes_with_the_configuration),
    cmocka_unit_test(a_shadow_is_copied_first),
    cmocka_unit_test(a_node_that_changes_for_ever_hinders_nobody),
    cmocka_unit_test(the_last_one_is_freed_in_pieces),
    cmocka_unit_test(a_gang_starts_first),
    cmocka_unit_test(a_preemption_under_way),
    cmocka_unit_test(growth_keeps_what_runs),
    cmocka_unit_test(a_server_takes_no_device),
    cmocka_unit_test(an_unknown_type_keeps_its_devices),
};
UNIT_FILE(tests, NULL, NULL);
