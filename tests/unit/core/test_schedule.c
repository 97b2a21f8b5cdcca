/* The scheduling pass: what hinders one class of jobs hinders no other, and nobody is forgotten. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/jobs.h"
#include "core/state.h"

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

static uint32_t submit_role(struct world *world, const char *name, struct plan_role role)
{
    struct plan plan = world_plan_of(name, &role);
    return world_submit(world, &plan);
}

/* The node has 25,001 ports to give: 24 jobs of 1,002 leave too few for one more. */
static void a_wait_for_ports_hinders_no_other_shape(void **state)
{
    (void)state;
    enum { RUNNING = 24 };
    static const struct plan_port many[] = {{"ssh", 1, 0}, {"http", 1, 0}, {"data", 1000, 0}};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 64, 0);
        struct plan_role role = world_role("worker", 1, 1, 0);
        const struct plan_port *few = role.ports;
        role.ports = many;
        role.port_count = COUNT_OF(many);
        char name[16];
        for (uint32_t j = 0; j < RUNNING; j++) {
            snprintf(name, sizeof name, "many%u", j);
            submit_role(&world, name, role);
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        }
        uint32_t waiting = submit_role(&world, "waiting", role);
        assert_non_null(strstr(world_job(&world, waiting)->reason, "too few free ports"));
        role.ports = few;
        role.port_count = 2;
        for (uint32_t j = RUNNING; j < 64; j++) {
            snprintf(name, sizeof name, "few%u", j);
            submit_role(&world, name, role);
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        }
        uint32_t late = submit_role(&world, "late", role);
        assert_string_not_equal(world_job(&world, late)->reason, "");
        assert_null(strstr(world_job(&world, late)->reason, "ports"));
        world_exit(&world, 1, 0, 0); /* the first in the queue that fits */
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, waiting);
        world_release(&world);
    }
}

/* `dear` has ended `cheap` and lost the node that it held meanwhile: now it pauses. Its like has
 * ended nobody for nothing, and need not pause. */
static void a_pause_hinders_nobody_else(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    world_node(&world, "n2", 8, 4);
    struct plan_role role = world_role("worker", 1, 8, 4);
    struct plan cheap = world_plan_of("cheap", &role);
    cheap.priority = -1;
    world_submit(&world, &cheap);
    world_submit_simple(&world, "beside", 1, 1, 0); /* on n2 */
    struct plan_role roles[] = {world_role("ps", 1, 1, 2), world_role("worker", 1, 1, 4)};
    roles[0].affinity_group = "x";
    struct plan dear = world_plan_of("dear", roles);
    dear.role_count = 2;
    dear.priority = 100;
    uint32_t first = world_submit(&world, &dear);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
    world_node_event(&world, EVENT_NODE_LOST, "n2");
    assert_non_null(strstr(world_job(&world, first)->reason, "held back for it has failed"));
    world_node(&world, "n2", 8, 4);
    assert_non_null(strstr(world_job(&world, first)->reason, "it tries again in 30 s"));
    dear.name = "twin";
    uint32_t twin = world_submit(&world, &dear);
    assert_non_null(strstr(world_job(&world, twin)->reason, "preempts others of lower priority"));
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, twin);
    world_release(&world);
}

enum { FAILING = 3000 };

/* Without the invariants, which cost more than the events. */
static void step_unchecked(struct world *world, struct event *event)
{
    event->now_ms = ++world->now_ms;
    event->request = ++world->request;
    event->user = "";
    output_clear(&world->output);
    core_step(world->core, event, &world->output);
}

static void exit_unchecked(struct world *world, uint64_t attempt)
{
    struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {attempt}}};
    event.task.completion = completion_of(0, "%s", "");
    step_unchecked(world, &event);
}

static void timer_unchecked(struct world *world)
{
    step_unchecked(world, &(struct event){.kind = EVENT_TIMER});
}

/* So many shapes that no short cut knows to be hopeless: they lack memory alone. */
static void submit_failing(struct world *world, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "large%u", i);
        struct plan_role role = world_role("worker", 1, 1, 0);
        role.memory_mib = 1000000 + i;
        struct plan plan = world_plan_of(name, &role);
        struct event event = {.kind = EVENT_SUBMIT, .submit = {.plan = plan_copy(&plan)}};
        step_unchecked(world, &event);
    }
}

static const struct command *creation_of(const struct world *world, uint32_t job)
{
    for (size_t i = 0; i < world_command_count(world, COMMAND_CREATE); i++)
        if (world_command(world, COMMAND_CREATE, i)->job.v == job)
            return world_command(world, COMMAND_CREATE, i);
    return NULL;
}

/* A node of 128 CPUs, all in use: attempt 1 has 28 of them, 100 more have one each. */
static void many_shapes_init(struct world *world)
{
    world_init(world, "first-fit");
    world_node(world, "n1", 128, 0);
    submit_role(world, "main", world_role("worker", 1, 28, 0));
    submit_role(world, "rest", world_role("worker", 100, 1, 0));
    submit_failing(world, FAILING);
}

/* Ends alone, each of which unblocks everything: whoever stands behind all that fails still gets
 * its turn, though no pass ever comes to its end. */
static void nobody_starves_behind_failures(void **state)
{
    (void)state;
    struct world world;
    many_shapes_init(&world);
    struct plan_role role = world_role("worker", 1, 2, 0);
    struct plan plan = world_plan_of("behind", &role);
    plan.priority = 1;
    uint32_t behind = world_submit(&world, &plan);
    world_pass_end(&world);
    assert_true(
        queue_has(world.core->queue,
                  core_job_slot(world.core, core_job_find(world.core, (struct job_id){behind}))));
    uint32_t ends = 0;
    bool is_started = false;
    for (uint64_t attempt = 1; attempt <= 101 && !is_started; attempt++, ends++) {
        exit_unchecked(&world, attempt);
        is_started = creation_of(&world, behind) != NULL;
    }
    assert_true(is_started);
    core_check(world.core);
    world_release(&world);
}

/* The reasons of all are told anew, too, a few at a time. */
static void the_last_hears_why_it_waits(void **state)
{
    (void)state;
    struct world world;
    many_shapes_init(&world);
    struct plan_role role = world_role("worker", 1, 2, 0);
    struct plan plan = world_plan_of("behind", &role);
    plan.priority = 1;
    uint32_t behind = world_submit(&world, &plan);
    world_pass_end(&world);
    bool is_told = false;
    exit_unchecked(&world, 2); /* one CPU is free now */
    const int64_t end_ms = world.now_ms + 80000;
    while (world.now_ms < end_ms && !is_told) {
        world.now_ms += 20;
        timer_unchecked(&world);
        const struct job_record *record = world_job(&world, behind);
        is_told = record && strstr(record->reason, "1 of 128 CPU");
    }
    assert_true(is_told);
    world_release(&world);
}

/* Though the pass is cut in each of these steps: what is freed goes to the first in order. */
static void the_first_in_order_is_served_first(void **state)
{
    (void)state;
    struct world world;
    many_shapes_init(&world);
    uint32_t jobs[2];
    for (int i = 0; i < 2; i++) {
        struct plan_role role = world_role("worker", 1, 20 + (uint32_t)i, 0);
        struct plan plan = world_plan_of(i ? "low" : "high", &role);
        plan.priority = i ? 1 : 100;
        jobs[i] = world_submit(&world, &plan);
    }
    world_pass_end(&world);
    exit_unchecked(&world, 1); /* 28 CPUs */
    assert_non_null(creation_of(&world, jobs[0]));
    assert_null(creation_of(&world, jobs[1]));
    assert_true(world.core->pass.next_ms > 0);
    world_release(&world);
}

/* No step does more than a bounded piece of the pass, and a copy goes on where the original does.
 */
static void a_cut_pass_is_bounded_and_copied(void **state)
{
    (void)state;
    enum { WORK_MAX = 3000 };
    struct world world, twin;
    many_shapes_init(&world);
    world_pass_end(&world);
    twin = world;
    output_init(&twin.output);
    exit_unchecked(&world, 1);
    assert_in_range(world.core->pass.work, 1, WORK_MAX);
    twin.core = core_copy(world.core);
    twin.now_ms = world.now_ms;
    uint32_t steps = 0;
    for (; world.core->pass.next_ms && steps < FAILING; steps++) {
        timer_unchecked(&world);
        timer_unchecked(&twin);
        assert_in_range(world.core->pass.work, 0, WORK_MAX);
        assert_int_equal(twin.core->pass.work, world.core->pass.work);
        assert_int_equal(twin.output.trace.count, world.output.trace.count);
        for (size_t i = 0; i < world.output.trace.count; i++)
            assert_string_equal(twin.output.trace.items[i], world.output.trace.items[i]);
    }
    assert_in_range(steps, 2, FAILING);
    assert_true(core_hash(twin.core) == core_hash(world.core));
    world_release(&twin);
    world_release(&world);
}

/* Jobs of one shape: room is held back from the endless one, but not from those that end before
 * the starving one can start. */
static void the_shortest_of_a_shape_slips_in(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 8, 4);
        struct plan_role half = world_role("worker", 1, 1, 2),
                         whole = world_role("worker", 1, 1, 4);
        struct plan plan = world_plan_of("long", &half);
        plan.time_limit_s = 3600;
        world_submit(&world, &plan); /* attempt 1 */
        plan.name = "rest";
        world_submit(&world, &plan);
        uint32_t starving = submit_role(&world, "starving", whole);
        world_timer(&world, 601000);
        assert_true(world_has_story(&world, "Reserved", "has waited"));
        static const uint64_t limits_s[] = {0, 7200, 600, 60, 1200};
        uint32_t jobs[COUNT_OF(limits_s)];
        for (size_t j = 0; j < COUNT_OF(limits_s); j++) {
            char name[16];
            snprintf(name, sizeof name, "job%zu", j);
            plan.name = name;
            plan.time_limit_s = limits_s[j];
            jobs[j] = world_submit(&world, &plan);
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        }
        static const size_t order[] = {3, 2, 4};
        for (uint64_t j = 0; j < COUNT_OF(order); j++) {
            world_exit(&world, 2 + j, 0, 0);
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
            assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, jobs[order[j]]);
        }
        world_exit(&world, 5, 0, 0);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_exit(&world, 1, 0, 0);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, starving);
        world_release(&world);
    }
}

/* A reason that differs in its holders alone is not told at once; when nothing else happens it is
 * told a little later, and then no more. */
static void reasons_do_not_grow_old(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    world_node(&world, "n1", 16, 4);
    world_submit_role(&world, "first", 10, world_role("worker", 1, 1, 4)); /* attempt 1 */
    world_run(&world, 1);
    world_submit_role(&world, "second", 10, world_role("worker", 1, 1, 4));
    uint32_t third = world_submit_role(&world, "third", 10, world_role("worker", 1, 1, 4));
    assert_non_null(strstr(world_job(&world, third)->reason, "first/0"));
    world_exit(&world, 1, 0, 0);
    assert_non_null(world_command(&world, COMMAND_CREATE, 0));
    const struct command *wake = world_command(&world, COMMAND_WAKE, 0);
    assert_non_null(wake);
    int64_t due_ms = wake->at_ms;
    world_timer(&world, due_ms - world.now_ms);
    const struct job_record *told = world_job(&world, third);
    assert_non_null(told);
    assert_non_null(strstr(told->reason, "second/0"));
    world_timer(&world, 10000);
    assert_null(world_job(&world, third));
    world_release(&world);
}

/* Who gets the node that all wait for, in the order chosen while they wait. */
static void the_order_of_the_queue_can_be_chosen(void **state)
{
    (void)state;
    static const struct {
        const char *order;
        int32_t priority; /* of the last one, which asks for least */
        const char *next;
    } cases[] = {{"priority", 10, "large"}, {"smallest", 10, "small"}, {"fifo", 10, "large"},
                 {"priority", 50, "small"}, {"smallest", 5, "large"},  {"fifo", 50, "large"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct world world;
        world_init(&world, "hived");
        world_node(&world, "n1", 16, 4);
        world_submit_role(&world, "first", 100, world_role("worker", 1, 1, 4)); /* attempt 1 */
        world_run(&world, 1);
        uint32_t large = world_submit_role(&world, "large", 10, world_role("worker", 1, 1, 4));
        uint32_t small =
            world_submit_role(&world, "small", cases[i].priority, world_role("worker", 1, 1, 3));
        world.config.order = cases[i].order;
        world_configure(&world);
        world_exit(&world, 1, 0, 0);
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v,
                         strcmp(cases[i].next, "large") ? small : large);
        assert_null(world_command(&world, COMMAND_CREATE, 1));
        world.config.order = "random";
        world_configure(&world);
        assert_int_equal(world_answer(&world)->code, ERR_INVALID);
        world_release(&world);
    }
}

/* A pass is cut and goes on soon: whoever stands behind many failures is not lost. */
static void a_long_pass_goes_on(void **state)
{
    (void)state;
    enum { SHAPES = 1010 };
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    uint32_t last = world_submit_role(&world, "last", -1, world_role("worker", 1, 8, 0));
    for (uint32_t i = 0; i < SHAPES; i++) {
        char name[16];
        snprintf(name, sizeof name, "j%u", i);
        struct plan_role role = world_role("worker", 1, 1, 0);
        role.memory_mib = 100000 + i;
        world_submit_role(&world, name, 10, role);
    }
    world_node_event(&world, EVENT_NODE_LOST, "n1"); /* the last in the queue now */
    assert_true(world_pass_end(&world) > 1);
    world_node(&world, "n1", 8, 0);
    uint32_t steps = 0;
    for (; steps < SHAPES && !world_command_count(&world, COMMAND_CREATE); steps++)
        assert_true(world_pass_step(&world));
    assert_in_range(steps, 1, SHAPES);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, last);
    world_release(&world);
}

/* Jobs of one shape share a search, and so its reason, which therefore names none of them. */
static void all_of_a_shape_wait_for_the_same(void **state)
{
    (void)state;
    struct world world;
    world_two_clusters_init(&world);
    world_submit_to(&world, "first", "red", 100, 4);
    uint32_t second = world_submit_to(&world, "second", "red", 100, 4);
    static const char reason[] =
        "it needs 1 x 4 G for red at priority 100 in its cells of NODE: 0 of "
        "4 leaves are free; held by alice~first/0 (4)";
    assert_string_equal(world_job(&world, second)->reason, reason);
    uint32_t third = world_submit_to(&world, "third", "red", 100, 4);
    assert_string_equal(world_job(&world, third)->reason, reason);
    assert_true(world_has_story(&world, "Waiting", "waiting: it needs 1 x 4 G"));
    world_release(&world);
}

/* To start a task is work, too: no step starts more than its work allows. */
static void many_starts_are_spread_over_steps(void **state)
{
    (void)state;
    enum { JOBS = 20, TASKS = 40, STEP_MAX = 4 };
    struct world world;
    world_init(&world, "first-fit");
    for (uint32_t i = 0; i < JOBS; i++) {
        char name[16];
        snprintf(name, sizeof name, "j%u", i);
        struct plan_role role = world_role("worker", TASKS, 1, 0);
        role.memory_mib = 10 + i; /* shapes of their own */
        world_submit_role(&world, name, 10, role);
    }
    world_node(&world, "n1", 2048, 0);
    size_t started = 0;
    do {
        const size_t step = world_command_count(&world, COMMAND_CREATE);
        assert_true(step <= STEP_MAX * TASKS);
        started += step;
    } while (world_pass_step(&world));
    assert_int_equal(started, JOBS * TASKS);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_wait_for_ports_hinders_no_other_shape),
    cmocka_unit_test(a_pause_hinders_nobody_else),
    cmocka_unit_test(nobody_starves_behind_failures),
    cmocka_unit_test(the_last_hears_why_it_waits),
    cmocka_unit_test(the_first_in_order_is_served_first),
    cmocka_unit_test(a_cut_pass_is_bounded_and_copied),
    cmocka_unit_test(the_shortest_of_a_shape_slips_in),
    cmocka_unit_test(reasons_do_not_grow_old),
    cmocka_unit_test(the_order_of_the_queue_can_be_chosen),
    cmocka_unit_test(a_long_pass_goes_on),
    cmocka_unit_test(all_of_a_shape_wait_for_the_same),
    cmocka_unit_test(many_starts_are_spread_over_steps),
};
UNIT_FILE(tests, NULL, NULL);
