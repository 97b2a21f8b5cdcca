/* Nodes change while the plain policies search in pieces for a gang of unequal tasks: its search
 * begins anew, comes to its end, and finds places on nodes that are there.
 *
 * Covers: src/core/part.c
 */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "core/jobs.h"
#include "core/nodes.h"
#include "core/state.h"
#include "core/tasks.h"

enum { NODES = 6, GPUS = 4, CPUS = 24, ROLES = 4, LOWS = NODES * GPUS, STEPS_MAX = 4000 };

static const char *const policies[] = {"first-fit", "best-fit", "spread"};

enum happening {
    NOTHING,
    A_NODE_IS_LOST,
    A_NODE_FAILS,
    A_NODE_HAS_FEWER_CPUS,
    A_NODE_COMES,
    HAPPENINGS,
};

static void node_set(struct world *world, uint32_t number, uint32_t cpus)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", number);
    world_node(world, name, cpus, GPUS);
}

/* A gang in one group whose tasks all need something else: nothing but trials tells who must go. */
static uint32_t gang_submit(struct world *world)
{
    static const char *const names[ROLES] = {"one", "two", "three", "four"};
    struct plan_role roles[ROLES];
    for (uint32_t i = 0; i < ROLES; i++) {
        roles[i] = world_role(names[i], 1, 1 + ROLES - i, i + 1);
        roles[i].affinity_group = "all";
    }
    struct plan plan = world_plan_of("gang", roles);
    plan.role_count = ROLES;
    plan.priority = 100;
    return world_submit(world, &plan);
}

/* All GPUs are in use by jobs that may be preempted, of which every second has more CPUs. */
static uint32_t search_begin(struct world *world, const char *policy)
{
    char name[16];
    world_init(world, policy);
    for (uint32_t i = 1; i <= NODES; i++)
        node_set(world, i, CPUS);
    for (uint32_t i = 1; i <= LOWS; i++) {
        struct plan_role role = world_role("worker", 1, 2 + i % 2 * 3, 1);
        snprintf(name, sizeof name, "low%u", i);
        assert_int_equal(world_submit_role(world, name, (int32_t)(i % 3), role), i);
        assert_int_equal(world_command_count(world, COMMAND_CREATE), 1);
        world_run(world, i);
    }
    core_slice_set(world->core, 1);
    return gang_submit(world);
}

static void happen(struct world *world, enum happening happening)
{
    switch (happening) {
    case NOTHING:
    case HAPPENINGS:
        break;
    case A_NODE_IS_LOST:
        world_node_event(world, EVENT_NODE_LOST, "n1");
        break;
    case A_NODE_FAILS:
        world_node_event(world, EVENT_NODE_CORDON, "n1");
        break;
    case A_NODE_HAS_FEWER_CPUS: /* than those who run there need */
        node_set(world, 1, 1);
        break;
    case A_NODE_COMES: /* with room for some of it */
        node_set(world, NODES + 1, CPUS);
        break;
    }
}

/* Whoever is told to end does, until the gang has started. */
static void gang_starts(struct world *world, uint32_t gang)
{
    size_t starts = 0;
    for (uint32_t i = 0; i < STEPS_MAX && starts < ROLES; i++) {
        uint64_t attempts[LOWS];
        size_t kills = 0;
        for (; kills < world_command_count(world, COMMAND_KILL); kills++)
            attempts[kills] = world_command(world, COMMAND_KILL, kills)->attempt.v;
        for (size_t k = 0; k < world_command_count(world, COMMAND_CREATE); k++)
            starts += world_command(world, COMMAND_CREATE, k)->job.v == gang;
        for (size_t k = 0; k < kills; k++) {
            assert_in_range(attempts[k], 1, LOWS);
            world_exit(world, attempts[k], 0, 0);
            for (size_t c = 0; c < world_command_count(world, COMMAND_CREATE); c++)
                starts += world_command(world, COMMAND_CREATE, c)->job.v == gang;
        }
        if (!kills && !world_pass_step(world))
            break;
    }
    assert_int_equal(starts, ROLES);
}

static void gang_is_on_nodes(struct world *world, uint32_t gang, enum happening happening)
{
    const bool is_gone = happening == A_NODE_IS_LOST || happening == A_NODE_FAILS ||
                         happening == A_NODE_HAS_FEWER_CPUS;
    const struct core_job *job = core_job_find(world->core, (struct job_id){gang});
    assert_non_null(job);
    const uint32_t slot = core_job_slot(world->core, job);
    for (uint16_t role = 0; role < ROLES; role++) {
        const struct core_task *task =
            core_task_find(world->core, slot, (struct task_ref){role, 0});
        assert_true(task && task->is_taken);
        assert_false(is_gone && task->node == 0);
    }
}

/* After so many steps. False: it has told its victims by then. */
static bool search_is_disturbed(const char *policy, uint32_t steps, enum happening happening)
{
    struct world world;
    const uint32_t gang = search_begin(&world, policy);
    for (uint32_t i = 0; i < steps && world.core->placing.job; i++)
        world_pass_step(&world);
    const bool is_searched =
        world.core->placing.job == gang && world.core->placing.stage == PLACING_SEARCH;
    if (is_searched) {
        happen(&world, happening);
        gang_starts(&world, gang);
        gang_is_on_nodes(&world, gang, happening);
    }
    world_release(&world);
    return is_searched;
}

static void a_node_changes_at_any_piece(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        for (int happening = 0; happening < HAPPENINGS; happening++) {
            uint32_t steps = 0;
            while (search_is_disturbed(policies[i], steps, (enum happening)happening))
                steps += unit_every();
            assert_in_range(steps, 8, STEPS_MAX);
        }
}

/* Each piece that finds that a node has changed makes those after it twice as large. */
static void a_node_that_changes_at_every_piece_ends_it_sooner(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct world world;
        search_begin(&world, policies[i]);
        uint32_t steps = 0;
        while (!world_command_count(&world, COMMAND_KILL) && steps < STEPS_MAX)
            node_set(&world, NODES, CPUS + ++steps % 2);
        assert_in_range(steps, 2, 64);
        world_release(&world);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_node_changes_at_any_piece),
    cmocka_unit_test(a_node_that_changes_at_every_piece_ends_it_sooner),
};
UNIT_FILE(tests, NULL, NULL);
