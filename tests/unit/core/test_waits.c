/* Why jobs wait and how they come to start: long queues, held places, reservations, nodes and
 * configurations that change under them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "job/job.h"
#include "world.h"

static uint32_t submit(struct world *world, const char *name, int32_t priority,
                       struct plan_role role)
{
    struct plan plan = world_plan_of(name, &role);
    plan.priority = priority;
    return world_submit(world, &plan);
}

static void reconfigure(struct world *world, const char *document)
{
    struct event event = {.kind = EVENT_CONFIG, .config = &world->config};
    world->config.placement_document = text_of(document);
    world_step(world, &event);
    assert_int_equal(world_answer(world)->code, 0);
}

/* --- the queue --- */

/* A reason that differs in its holders alone is not told at once; when nothing else happens it is
 * told a little later, and then no more. */
static void reasons_do_not_grow_old(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    world_node(&world, "n1", 16, 4);
    submit(&world, "first", 10, world_role("worker", 1, 1, 4)); /* attempt 1 */
    world_run(&world, 1);
    submit(&world, "second", 10, world_role("worker", 1, 1, 4));
    uint32_t third = submit(&world, "third", 10, world_role("worker", 1, 1, 4));
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
        submit(&world, "first", 100, world_role("worker", 1, 1, 4)); /* attempt 1 */
        world_run(&world, 1);
        uint32_t large = submit(&world, "large", 10, world_role("worker", 1, 1, 4));
        uint32_t small = submit(&world, "small", cases[i].priority, world_role("worker", 1, 1, 3));
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
    uint32_t last = submit(&world, "last", -1, world_role("worker", 1, 8, 0));
    for (uint32_t i = 0; i < SHAPES; i++) {
        char name[16];
        snprintf(name, sizeof name, "j%u", i);
        struct plan_role role = world_role("worker", 1, 1, 0);
        role.memory_mib = 100000 + i;
        submit(&world, name, 10, role);
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

/* --- gangs with roles of no instances --- */

static void a_role_without_instances_needs_no_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) { /* with the others, or a part of its own */
        struct plan_role roles[] = {world_role("ps", 0, 1, 0), world_role("worker", 2, 1, 1)};
        struct plan plan = world_plan_of("a", roles);
        struct world world;
        plan.role_count = 2;
        roles[0].affinity_group = i ? "alone" : "";
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 1);
        uint32_t job = world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_timer(&world, 601000);
        world_node(&world, "n1", 8, 2); /* it has starved, and starts all the same */
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
        world_exit(&world, 1, 0, 0);
        world_exit(&world, 2, 0, 0);
        assert_true(world_job(&world, job)->completion.is_success);
        world_release(&world);
    }
}

/* --- places held while others are being ended --- */

static void sicken(struct world *world)
{
    struct event event = {.kind = EVENT_NODE, .node = {.address = ""}};
    event.node = (struct node_facts){
        .name = "n2", .cpu = 8, .memory_mib = 8192, .gpu_count = 4, .gpu_type = "V100"};
    world_step(world, &event);
}

static void lose(struct world *world)
{
    world_node_event(world, EVENT_NODE_LOST, "n2");
}

static void cordon(struct world *world)
{
    struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {2}, .blame = 20}};
    event.task.completion = completion_of(CODE_CONTAINER_DELETED, "gone");
    world_step(world, &event);
}

/* A gang of two parts: one is bound to n2 and held, the other waits for the end of `cheap` on n1.
 */
static void a_held_node_that_fails_undoes_the_gang(void **state)
{
    (void)state;
    static void (*const failures[])(struct world *) = {sicken, lose, cordon};
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        struct world world;
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 4);
        world_node(&world, "n2", 8, 4);
        submit(&world, "cheap", -1, world_role("worker", 1, 8, 4));
        submit(&world, "beside", 10, world_role("worker", 1, 1, 0)); /* on n2 */
        struct plan_role roles[] = {world_role("ps", 1, 1, 2), world_role("worker", 1, 1, 4)};
        struct plan plan = world_plan_of("dear", roles);
        plan.role_count = 2;
        plan.priority = 100;
        roles[0].affinity_group = "x";
        uint32_t dear = world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
        failures[i](&world);
        assert_non_null(strstr(world_job(&world, dear)->reason, "held back for it has failed"));
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        world_node(&world, "n3", 8, 4);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* whole or not at all */
        world_exit(&world, 1, 143, 0);
        assert_string_not_equal(world_task(&world, dear, 0, 0)->node, "n2");
        assert_string_not_equal(world_task(&world, dear, 1, 0)->node, "n2");
        world_release(&world);
    }
}

/* --- reservations --- */

static void only_so_many_jobs_are_held_back_for(void **state)
{
    (void)state;
    enum { RESERVATIONS_MAX = 16, CLUSTERS = 20 };
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    submit(&world, "holder", 10, world_role("worker", 1, 1, 2));
    submit(&world, "brief", 10, world_role("worker", 1, 1, 1));
    for (uint32_t i = 0; i < CLUSTERS; i++) { /* one a virtual cluster */
        char name[16], cluster[16];
        snprintf(name, sizeof name, "j%u", i);
        snprintf(cluster, sizeof cluster, "vc%u", i);
        struct plan_role role = world_role("worker", 1, 1, 4);
        struct plan plan = world_plan_of(name, &role);
        plan.virtual_cluster = cluster;
        world_submit(&world, &plan);
    }
    world_timer(&world, 601000);
    assert_int_equal(world_story_count(&world, "Reserved"), RESERVATIONS_MAX);
    world_release(&world);
}

/* Two virtual clusters of a node each, red and blue; one GPU a leaf. */
static const char *const two_clusters =
    "physicalCluster:\n"
    "  cellTypes: {NODE: {childCellType: G, childCellNumber: 4, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: NODE, cellAddress: n1}, {cellType: NODE, cellAddress: n2}]\n"
    "virtualClusters:\n"
    "  red: {virtualCells: [{cellType: NODE, cellNumber: 1}]}\n"
    "  blue: {virtualCells: [{cellType: NODE, cellNumber: 1}]}\n";

static uint32_t submit_to(struct world *world, const char *name, const char *cluster,
                          int32_t priority, uint32_t gpu)
{
    struct plan_role role = world_role("worker", 1, 1, gpu);
    struct plan plan = world_plan_of(name, &role);
    plan.virtual_cluster = cluster;
    plan.priority = priority;
    return world_submit(world, &plan);
}

static void two_clusters_init(struct world *world)
{
    world_init(world, "hived");
    world_node(world, "n1", 8, 4);
    world_node(world, "n2", 8, 4);
    reconfigure(world, two_clusters);
}

/* The operator is told of names that do not meet, at the job that waits for them. */
static void nodes_beside_the_cells_are_named(void **state)
{
    (void)state;
    struct world world;
    two_clusters_init(&world);
    world_node(&world, "n3", 8, 4);
    world_node(&world, "n2", 8, 2);
    submit_to(&world, "first", "red", 100, 4);
    uint32_t second = submit_to(&world, "second", "blue", 100, 4);
    assert_string_equal(world_job(&world, second)->reason,
                        "it needs 1 x 4 G for blue at priority 100 in its cells of "
                        "NODE: 0 of 4 leaves are free, 4 more on bad nodes; it would have to use "
                        "node n2, which is bad; not used: n2 (it has 2 GPUs, fewer than its "
                        "cells), n3 (the configuration of the cells does not name it)");
    world_node(&world, "n2", 8, 4);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, second);
    world_release(&world);
}

/* Jobs of one shape share a search, and so its reason, which therefore names none of them. */
static void all_of_a_shape_wait_for_the_same(void **state)
{
    (void)state;
    struct world world;
    two_clusters_init(&world);
    submit_to(&world, "first", "red", 100, 4);
    uint32_t second = submit_to(&world, "second", "red", 100, 4);
    static const char reason[] =
        "it needs 1 x 4 G for red at priority 100 in its cells of NODE: 0 of "
        "4 leaves are free; held by alice~first/0 (4)";
    assert_string_equal(world_job(&world, second)->reason, reason);
    uint32_t third = submit_to(&world, "third", "red", 100, 4);
    assert_string_equal(world_job(&world, third)->reason, reason);
    assert_true(world_has_story(&world, "Waiting", "waiting: it needs 1 x 4 G"));
    world_release(&world);
}

/* The owner of cells gets them back from an opportunistic job, though a job of another virtual
 * cluster starves: it could not have them. */
static void a_reservation_takes_nothing_from_other_clusters(void **state)
{
    (void)state;
    for (int is_reserved_between = 0; is_reserved_between < 2; is_reserved_between++) {
        struct world world;
        two_clusters_init(&world);
        submit_to(&world, "holder", "red", 100, 2); /* attempt 1 */
        world_run(&world, 1);
        submit_to(&world, "brief", "red", 100, 1); /* attempt 2 */
        world_run(&world, 2);
        submit_to(&world, "wide", "red", 100, 4);
        if (is_reserved_between)
            submit_to(&world, "guest", "red", -1, 4); /* attempt 3, on blue's node */
        world_timer(&world, is_reserved_between ? 599000 : 601000);
        if (!is_reserved_between) {
            assert_int_equal(world_story_count(&world, "Reserved"), 1);
            submit_to(&world, "guest", "red", -1, 4);
        }
        world_run(&world, 3);
        uint32_t owner = submit_to(&world, "owner", "blue", 100, 4);
        assert_int_equal(world_command(&world, COMMAND_KILL, 0)->attempt.v, 3);
        assert_non_null(strstr(world_job(&world, owner)->reason, "not ended yet: alice~guest/0"));
        if (is_reserved_between) {
            world_exit(&world, 2, 0, 0);
            world_timer(&world, 2000);
            assert_int_equal(world_story_count(&world, "Reserved"), 1);
        }
        world_exit(&world, 3, 143, 0);
        assert_non_null(world_command(&world, COMMAND_CREATE, 0));
        assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, owner);
        world_release(&world);
    }
}

/* Within one virtual cluster a job behind the starving one ends nobody for room that it needs; it
 * says so. */
static void who_preempts_must_leave_room(void **state)
{
    (void)state;
    struct world world;
    two_clusters_init(&world);
    submit_to(&world, "holder", "red", 100, 2);
    world_run(&world, 1);
    submit_to(&world, "low", "red", 10, 2);
    world_run(&world, 2);
    submit_to(&world, "wide", "red", 50, 4); /* may end low, not holder */
    world_timer(&world, 601000);
    assert_int_equal(world_story_count(&world, "Reserved"), 1);
    uint32_t late = submit_to(&world, "late", "red", 50, 2);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
    assert_string_equal(world_job(&world, late)->reason,
                        "others of lower priority would have to be preempted, but room is held "
                        "back for alice~wide; held by alice~low/0");
    world_release(&world);
}

/* Nothing ends, and yet nobody slips in any more once a job has waited long enough. */
static void it_starves_on_time(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 8, 4);
        submit(&world, "holder", 10, world_role("worker", 1, 1, 2));
        submit(&world, "wide", 10, world_role("worker", 1, 1, 4));
        world_timer(&world, 300000);
        submit(&world, "second", 10, world_role("worker", 1, 1, 1));
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        submit(&world, "wider", 10, world_role("worker", 2, 1, 4));
        world_timer(&world, 300000);
        assert_int_equal(world_story_count(&world, "Reserved"), 1);
        uint32_t third = submit(&world, "third", 10, world_role("worker", 1, 1, 1));
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        assert_non_null(strstr(world_job(&world, third)->reason, "held back for alice~wide"));
        world_release(&world);
    }
}

/* Of two that came in the same millisecond the one with the smaller number starves first. */
static void the_smaller_number_is_ahead(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    submit(&world, "holder", 10, world_role("worker", 1, 1, 2));
    submit(&world, "brief", 10, world_role("worker", 1, 1, 2));
    submit(&world, "first", 10, world_role("worker", 1, 2, 4));
    world.now_ms -= 10;
    submit(&world, "second", 10, world_role("worker", 1, 1, 2));
    world_timer(&world, 601000);
    assert_int_equal(world_story_count(&world, "Reserved"), 1);
    world_exit(&world, 2, 0, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* second would delay first */
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, 3);
    world_release(&world);
}

/* A time limit beyond the end of time is none: nothing that has it slips in before a starving job.
 */
static void an_endless_limit_is_no_limit(void **state)
{
    (void)state;
    static const uint64_t limits[] = {UINT64_MAX, INT64_MAX, INT64_MAX / 1000, 1u << 31};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct world world;
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 4);
        struct plan_role role = world_role("worker", 1, 1, 2);
        struct plan plan = world_plan_of("long", &role);
        plan.time_limit_s = 3600;
        world_submit(&world, &plan);
        submit(&world, "brief", 10, role);
        submit(&world, "big", 10, world_role("worker", 1, 1, 4));
        world_timer(&world, 601000);
        assert_int_equal(world_story_count(&world, "Reserved"), 1);
        world_exit(&world, 2, 0, 0);
        plan.name = "endless";
        plan.time_limit_s = limits[i];
        uint32_t endless = world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        assert_non_null(strstr(world_job(&world, endless)->reason, "held back for alice~big"));
        world_release(&world);
    }
}

/* Two jobs hold all GPUs, one of them with a limit of an hour; a third needs all of them. */
static struct plan starving_begin(struct world *world, const struct plan_role *half)
{
    struct plan plan = world_plan_of("long", half);
    plan.time_limit_s = 3600;
    world_submit(world, &plan);
    submit(world, "brief", 10, *half);
    submit(world, "big", 10, world_role("worker", 1, 1, 4));
    plan.name = "slips in";
    assert_int_equal(world_command_count(world, COMMAND_CREATE), 0);
    return plan;
}

/* A time limit counts from the start: while a job is being prepared, its end moves on. */
static void a_job_that_has_not_started_ends_later(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    const struct plan_role half = world_role("worker", 1, 1, 2);
    struct plan plan = starving_begin(&world, &half);
    world_timer(&world, 601000);
    assert_int_equal(world_story_count(&world, "Reserved"), 1);
    world_timer(&world, 3600000);
    world_exit(&world, 2, 0, 0);
    plan.time_limit_s = 3700;
    world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    plan.name = "slips in too";
    plan.time_limit_s = 3500;
    world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world_release(&world);
}

/* Preparations take two minutes here: who slips in must end in time all the same. */
static void who_slips_in_is_prepared_first(void **state)
{
    (void)state;
    static const struct {
        uint64_t limit_s;
        size_t starts;
    } cases[] = {{2800, 1}, {2950, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct world world;
        world_init(&world, "first-fit");
        world_node(&world, "n1", 8, 4);
        const struct plan_role half = world_role("worker", 1, 1, 2);
        submit(&world, "slow", 10, half);
        world_timer(&world, 120000);
        world_run(&world, 1);
        world_exit(&world, 1, 0, 0);
        struct plan plan = starving_begin(&world, &half);
        world_run(&world, 2);
        world_timer(&world, 601000);
        assert_int_equal(world_story_count(&world, "Reserved"), 1);
        world_exit(&world, 3, 0, 0);
        world_timer(&world, 2000); /* the time is found again at most once a second */
        plan.time_limit_s = cases[i].limit_s;
        world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), cases[i].starts);
        world_release(&world);
    }
}

/* --- large nodes --- */

/* The short cut that knows by numbers alone that nothing fits does not count nodes of more than 255
 * GPUs: there the placer is asked. */
static void nodes_of_many_gpus(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 300); /* the plain placers give the first 64 */
    uint32_t all = submit(&world, "all", 10, world_role("worker", 1, 1, PLACEMENT_GPUS_MAX));
    const struct task_record *task = world_task(&world, all, 0, 0);
    assert_int_equal(task->gpu_count, PLACEMENT_GPUS_MAX);
    assert_int_equal(task->gpus[PLACEMENT_GPUS_MAX - 1], PLACEMENT_GPUS_MAX - 1);
    uint32_t next = submit(&world, "next", 10, world_role("worker", 1, 1, 1));
    world_node(&world, "n2", 1, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    world_exit(&world, 1, 0, 0);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, next);
    world_release(&world);
}

/* --- a configuration that no longer has what runs --- */

static const char k80_document[] =
    "physicalCluster:\n"
    "  cellTypes: {BOX: {childCellType: K80, childCellNumber: 4, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: BOX, cellAddress: n1}]\n"
    "  skuTypes: {K80: {gpu: 1, cpu: 2, memory: 1Gi}}\n"
    "virtualClusters: {default: {virtualCells: [{cellType: BOX, cellNumber: 1}]}}\n";

static void what_the_configuration_lacks_runs_on(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    world_node(&world, "n1", 8, 4);
    world_node(&world, "n2", 8, 4);
    struct plan_role role = world_role("worker", 1, 1, 4);
    role.sku_type = "V100";
    uint32_t runs = submit(&world, "runs", 10, role);
    world_run(&world, 1);
    submit(&world, "beside", 10, role);
    uint32_t waits = submit(&world, "waits", 10, role);
    world.now_ms += 11000; /* its reason is old by now */
    reconfigure(&world, k80_document);
    assert_true(world_has_trace(&world, "alice~runs/0: not known to the placer"));
    assert_true(world_has_trace(&world, "node n2: not used by the placer"));
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
    assert_non_null(strstr(world_job(&world, waits)->reason, "the cluster has no V100"));
    assert_int_equal(submit(&world, "late", 10, role), 0);
    assert_int_equal(world_answer(&world)->code, ERR_NOT_FOUND);
    world_exit(&world, 1, 0, 0);
    assert_true(world_job(&world, runs)->completion.is_success);
    reconfigure(&world, ""); /* automatic again */
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, waits);
    world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_do_not_grow_old),
        cmocka_unit_test(the_order_of_the_queue_can_be_chosen),
        cmocka_unit_test(a_long_pass_goes_on),
        cmocka_unit_test(a_role_without_instances_needs_no_place),
        cmocka_unit_test(a_held_node_that_fails_undoes_the_gang),
        cmocka_unit_test(only_so_many_jobs_are_held_back_for),
        cmocka_unit_test(the_smaller_number_is_ahead),
        cmocka_unit_test(nodes_beside_the_cells_are_named),
        cmocka_unit_test(all_of_a_shape_wait_for_the_same),
        cmocka_unit_test(a_reservation_takes_nothing_from_other_clusters),
        cmocka_unit_test(who_preempts_must_leave_room),
        cmocka_unit_test(it_starves_on_time),
        cmocka_unit_test(an_endless_limit_is_no_limit),
        cmocka_unit_test(a_job_that_has_not_started_ends_later),
        cmocka_unit_test(who_slips_in_is_prepared_first),
        cmocka_unit_test(nodes_of_many_gpus),
        cmocka_unit_test(what_the_configuration_lacks_runs_on),
    };
    return cmocka_run_group_tests_name("core waits", tests, NULL, NULL);
}
