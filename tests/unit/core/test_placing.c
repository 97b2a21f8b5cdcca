/* A large gang is placed in several steps: docs/rfc/0016-gangs-in-steps.md. Here each step takes it
 * one part, one victim or one release further.
 *
 * Covers: src/core/start.c, src/core/part.c, src/core/preempt.c, src/core/schedule.c
 */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/gang_start.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/state.h"
#include "core/tasks.h"

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

enum { NODES = 4, GPUS = 4 };

static void node_add(struct world *world, unsigned number)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", number);
    world_node(world, name, 16, GPUS);
}

static void begin(struct world *world, const char *policy)
{
    world_init(world, policy);
    for (unsigned i = 1; i <= NODES; i++)
        node_add(world, i);
    core_slice_set(world->core, 1);
    world_timer(world, 1); /* the nodes are of before, and their cells */
    world_pass_end(world);
}

/* A gang of so many parts, each of one task with so many GPUs. */
static uint32_t submit_parts_of(struct world *world, const char *name, int32_t priority,
                                uint16_t parts, uint32_t gpu)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct plan_role roles[COUNT_OF(names)];
    for (uint16_t i = 0; i < parts; i++) {
        roles[i] = world_role(names[i], 1, 1, gpu);
        roles[i].affinity_group = names[i];
    }
    struct plan plan = world_plan_of(name, roles);
    plan.role_count = parts;
    plan.priority = priority;
    return world_submit(world, &plan);
}

/* Each on a node of its own. */
static uint32_t submit_parts(struct world *world, const char *name, int32_t priority,
                             uint16_t parts)
{
    return submit_parts_of(world, name, priority, parts, GPUS);
}

static uint32_t submit_one(struct world *world, const char *name, int32_t priority)
{
    return submit_parts(world, name, priority, 1);
}

static void check_places(const struct world *world)
{
    struct err err = {0};
    if (core_check_places(world->core, &err))
        fail_msg("%s: %s", err.path, err.text);
}

static enum waiting_state state_of(const struct world *world, uint32_t job)
{
    check_places(world);
    return core_job_find(world->core, (struct job_id){job})->waiting;
}

/* Of the last step. */
static size_t commands_of(const struct world *world, enum command_kind kind, uint32_t job)
{
    size_t count = 0;
    for (size_t i = 0; i < world_command_count(world, kind); i++)
        count += world_command(world, kind, i)->job.v == job;
    return count;
}

/* Steps until the pass has come to its end: how many commands of this kind they gave. */
static size_t commands_until_end(struct world *world, enum command_kind kind, uint32_t job)
{
    size_t count = 0;
    while (world_pass_step(world)) {
        check_places(world);
        count += commands_of(world, kind, job);
    }
    return count;
}

/* Steps until the job has been created: how many. */
static uint32_t steps_until_created(struct world *world, uint32_t job, size_t tasks)
{
    uint32_t steps = 0;
    for (size_t created = 0; created < tasks; steps++) {
        created += commands_of(world, COMMAND_CREATE, job);
        if (created < tasks)
            assert_true(world_pass_step(world));
        check_places(world);
    }
    return steps;
}

static const char *node_of(const struct world *world, uint32_t job, uint16_t role)
{
    const struct core_job *found = core_job_find(world->core, (struct job_id){job});
    const struct core_task *task =
        core_task_find(world->core, core_job_slot(world->core, found), (struct task_ref){role, 0});
    return core_node_at(world->core, task->node)->facts.name;
}

/* What is submitted meanwhile is answered and waits, be it ahead or behind. The gang starts whole,
 * on the places that it gets in one step as well. */
static void a_gang_is_placed_in_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world, whole;
        begin(&world, policies[i]);
        begin(&whole, policies[i]);
        core_slice_set(whole.core, 1000);
        submit_parts(&whole, "gang", 10, 3);
        uint32_t gang = submit_parts(&world, "gang", 10, 3);
        assert_int_equal(state_of(&world, gang), WAITING_PLACING);
        uint32_t behind = submit_one(&world, "behind", 10);
        uint32_t ahead = submit_one(&world, "ahead", 500);
        assert_true(behind && ahead);
        steps_until_created(&world, gang, 3);
        for (uint16_t role = 0; role < 3; role++)
            assert_string_equal(node_of(&world, gang, role), node_of(&whole, gang, role));
        assert_int_equal(commands_until_end(&world, COMMAND_CREATE, ahead), 1);
        assert_int_equal(state_of(&world, behind), WAITING_QUEUED);
        world_release(&whole);
        world_release(&world);
    }
}

/* Of a gang that fits into a step nothing is left for the next. */
static void a_small_gang_is_placed_at_once(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    for (unsigned i = 1; i <= NODES; i++)
        node_add(&world, i);
    submit_parts(&world, "gang", 10, 4);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 4);
    world_release(&world);
}

/* A search of several steps, and a start of one: afterwards it is over, and the next has its turn.
 */
static void what_was_searched_in_steps_may_start_in_one(void **state)
{
    (void)state;
    enum { SLICE = 20, PARTS = 3 };
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        core_slice_set(world.core, SLICE);
        assert_false(gang_is_large(world.core, PARTS));
        uint32_t gang = submit_parts(&world, "gang", 10, PARTS);
        assert_int_equal(state_of(&world, gang), WAITING_PLACING);
        steps_until_created(&world, gang, PARTS);
        uint32_t next = submit_one(&world, "next", 10);
        size_t created = world_command_count(&world, COMMAND_CREATE);
        assert_int_equal(created + commands_until_end(&world, COMMAND_CREATE, next), 1);
        world_release(&world);
    }
}

/* Whoever waits is told nothing about room that is about to be given back. */
static void a_gang_without_a_place_gives_all_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        submit_one(&world, "runs", 10);
        uint32_t gang = submit_parts(&world, "gang", 10, 4), other;
        while (state_of(&world, gang) == WAITING_PLACING)
            world_pass_step(&world);
        assert_non_null(strstr(world_job(&world, gang)->reason, "it needs 1 x"));
        assert_true(holdovers_are_left(world.core));
        other = submit_parts(&world, "other", 10, 3);
        assert_int_equal(commands_until_end(&world, COMMAND_CREATE, other), 3);
        assert_int_equal(state_of(&world, gang), WAITING_QUEUED);
        world_release(&world);
    }
}

/* A gang that finds no place, while something is freed at each of its steps, is not tried for ever:
 * those behind it have their turn, and then it has its own again. */
static void those_behind_a_gang_have_their_turn(void **state)
{
    (void)state;
    enum { ENDS = 60, SLICE = 5 }; /* a part in one step, among so many that run */
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        core_slice_set(world.core, SLICE);
        world_node(&world, "n5", ENDS, 0);
        world_pass_end(&world);
        for (unsigned k = 1; k <= ENDS; k++) { /* attempt k */
            char name[16];
            snprintf(name, sizeof name, "short%u", k);
            world_submit_simple(&world, name, 1, 1, 0);
        }
        submit_one(&world, "runs", 500);
        uint32_t gang = submit_parts_of(&world, "gang", 100, 4, GPUS - 1), created = 0, tried = 0;
        uint32_t behind = world_submit_for(&world, "behind", 10, 1, 0);
        for (uint64_t k = 1; k <= ENDS; k++) {
            world_exit(&world, k, 0, 0);
            for (size_t n = 0; n < world_command_count(&world, COMMAND_CREATE); n++)
                created += world_command(&world, COMMAND_CREATE, n)->job.v == behind;
            tried += world_has_trace(&world, "job alice~gang: it needs");
        }
        assert_int_equal(created, 1);
        assert_in_range(tried, 2, 50);
        assert_int_equal(core_job_find(world.core, (struct job_id){gang})->life.attempt, 0);
        world_release(&world);
    }
}

static void what_it_found_is_free_when_it_is_stopped(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        uint32_t gang = submit_parts(&world, "gang", 10, 4);
        world_pass_step(&world);
        uint32_t other = submit_parts(&world, "other", 10, 4);
        assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
        assert_int_equal(commands_until_end(&world, COMMAND_CREATE, other), 4);
        world_release(&world);
    }
}

/* A node on which a part has found its place fails: that part is searched for anew. */
static void a_node_that_fails_meanwhile_is_not_used(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        uint32_t gang = submit_parts(&world, "gang", 10, 3);
        const char *first = core_job_find(world.core, (struct job_id){gang})->holds[0].group;
        assert_non_null(strstr(first, "/a"));
        char node[16];
        const struct hold *hold = core_job_find(world.core, (struct job_id){gang})->holds;
        snprintf(node, sizeof node, "n%u", hold->slots[0].node.v + 1);
        world_node_event(&world, EVENT_NODE_LOST, node);
        assert_int_equal(state_of(&world, gang), WAITING_PLACING);
        assert_in_range(steps_until_created(&world, gang, 3), 4, 20);
        for (uint16_t role = 0; role < 3; role++)
            assert_string_not_equal(node_of(&world, gang, role), node);
        check_places(&world);
        world_release(&world);
    }
}

/* Nodes that change again and again make a search longer, not endless. */
static void a_search_ends_though_nodes_change(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        node_add(&world, NODES + 1);
        world_pass_end(&world);
        submit_parts(&world, "gang", 10, 4);
        uint32_t steps = 0;
        while (!world_command_count(&world, COMMAND_CREATE) && steps++ < 40)
            if (steps % 2)
                node_add(&world, NODES + 1);
            else
                world_node_event(&world, EVENT_NODE_LOST, "n5");
        assert_in_range(steps, 4, 30);
        world_release(&world);
    }
}

static void fill(struct world *world)
{
    for (unsigned i = 1; i <= NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "low%u", i);
        submit_one(world, name, -1);
        world_pass_end(world);
        world_run(world, i);
    }
}

/* The node of what a gang has found fails while it must not preempt: searched for in pieces, the
 * place is not taken from others either. */
static void a_paused_gang_ends_nobody(void **state)
{
    (void)state;
    struct world world;
    begin(&world, "hived");
    submit_one(&world, "one", 10);
    submit_one(&world, "two", 10);
    world_pass_end(&world);
    struct plan_role role = world_role("a", 2, 1, GPUS);
    struct plan plan = world_plan_of("gang", &role);
    plan.priority = 100;
    const uint32_t gang = world_submit(&world, &plan);
    struct core_job *job = core_job_find(world.core, (struct job_id){gang});
    job->life.preempt_after_ms = world.now_ms + 30000;
    while (!job->hold_count)
        assert_true(world_pass_step(&world));
    const uint32_t node = job->holds[0].slots[0].node.v;
    char name[16];
    snprintf(name, sizeof name, "n%u", node + 1);
    world_node_event(&world, EVENT_NODE_LOST, name);
    assert_int_equal(commands_until_end(&world, COMMAND_KILL, gang), 0);
    assert_int_equal(state_of(&world, gang), WAITING_PAUSED);
    world_release(&world);
}

/* Nobody is told before every part has its place or waits for one; then one is told after the
 * other, and the gang starts when the last has ended. */
static void victims_are_told_in_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        fill(&world);
        uint32_t gang = submit_parts(&world, "gang", 100, NODES), told = 0;
        for (uint32_t step = 0; state_of(&world, gang) == WAITING_PLACING && step < 50; step++) {
            assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
            world_pass_step(&world);
        }
        assert_int_equal(state_of(&world, gang), WAITING_PREEMPTING);
        while (world_pass_step(&world)) {
            assert_in_range(world_command_count(&world, COMMAND_KILL), 0, 1);
            told += (uint32_t)world_command_count(&world, COMMAND_KILL);
            if (told == NODES)
                break;
        }
        assert_int_equal(told, NODES);
        assert_non_null(strstr(world_job(&world, gang)->reason, "not ended yet: alice~low"));
        world_pass_end(&world);
        for (uint64_t attempt = 1; attempt < NODES; attempt++)
            world_exit(&world, attempt, 143, 0);
        assert_int_equal(commands_until_end(&world, COMMAND_CREATE, gang), 0);
        world_exit(&world, NODES, 143, 0);
        assert_int_equal(commands_until_end(&world, COMMAND_CREATE, gang), NODES);
        world_release(&world);
    }
}

/* Who has not been told runs on. One that has ended by itself is passed over. */
static void a_gang_that_is_stopped_tells_no_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        fill(&world);
        uint32_t gang = submit_parts(&world, "gang", 100, NODES);
        while (!world_command_count(&world, COMMAND_KILL))
            assert_true(world_pass_step(&world));
        uint64_t told = world_command(&world, COMMAND_KILL, 0)->attempt.v;
        world_exit(&world, told == NODES ? 1 : told + 1, 0, 0);
        size_t kills = world_command_count(&world, COMMAND_KILL);
        assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        assert_int_equal(world_pass_end(&world) > 0, 1);
        assert_in_range(kills, 0, 1);
        check_places(&world);
        struct core_counts counts;
        core_count(world.core, &counts);
        assert_in_range(counts.tasks_live, NODES - 1, NODES);
        world_release(&world);
    }
}

/* Another placer knows nothing of what was found: the search begins anew. */
static void another_placer_begins_anew(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        uint32_t gang = submit_parts(&world, "gang", 10, 4);
        world.config.policy = policies[(i + 1) % COUNT_OF(policies)];
        world_configure(&world);
        assert_false(holdovers_are_left(world.core));
        assert_int_equal(state_of(&world, gang), WAITING_PLACING);
        assert_int_equal(commands_until_end(&world, COMMAND_CREATE, gang), 4);
        world_release(&world);
    }
}

/* A copy goes on at the same place, and what it does is not seen by the original. */
static void a_copy_goes_on_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world, twin;
        begin(&world, policies[i]);
        submit_one(&world, "runs", 10);
        submit_parts(&world, "gang", 10, 4);
        for (uint32_t step = 0; step < 12; step++) {
            twin = world;
            output_init(&twin.output);
            twin.core = core_copy(world.core);
            bool goes_on = world_pass_step(&world);
            assert_int_equal(world_pass_step(&twin), goes_on);
            assert_int_equal(twin.output.trace.count, world.output.trace.count);
            assert_true(core_hash(twin.core) == core_hash(world.core));
            world_pass_end(&twin);
            check_places(&twin);
            core_free(twin.core);
            output_release(&twin.output);
        }
        world_release(&world);
    }
}

/* Nothing of a search is in the rows: it begins anew, and each task is created once. Victims that
 * were told end, and only then the gang starts. */
static void a_restart_between_steps_begins_anew(void **state)
{
    (void)state;
    for (uint32_t stop_at = 0; stop_at < 12; stop_at++) {
        struct world world;
        world_init(&world, "hived");
        world_keep(&world);
        for (unsigned i = 1; i <= NODES; i++)
            node_add(&world, i);
        core_slice_set(world.core, 1);
        fill(&world);
        uint32_t gang = submit_parts(&world, "gang", 100, NODES);
        for (uint32_t step = 0; step < stop_at; step++)
            world_pass_step(&world);
        world_restart(&world);
        core_slice_set(world.core, 1);
        world_pass_end(&world);
        check_places(&world);
        size_t created = 0;
        for (uint64_t attempt = 1; attempt <= NODES; attempt++) {
            world_exit(&world, attempt, 143, 0);
            created += commands_until_end(&world, COMMAND_CREATE, gang);
        }
        assert_int_equal(created, NODES);
        world_release(&world);
    }
}

/* --- one large part, whose cells HiveD takes in pieces before the core knows of them --- */

enum { LARGE_TASKS = NODES - 1, LARGE_STEPS = 14 };

/* So many steps after its submission; false: it has begun to start. */
static bool large_begin(struct world *world, uint32_t steps, uint32_t *gang)
{
    struct plan_role role = world_role("a", LARGE_TASKS, 1, GPUS);
    struct plan plan = world_plan_of("gang", &role);
    world_init(world, "hived");
    world_keep(world);
    for (unsigned i = 1; i <= NODES; i++)
        node_add(world, i);
    core_slice_set(world->core, 1);
    world_timer(world, 1);
    world_pass_end(world);
    submit_parts_of(world, "runs", 10, 1, 1);
    world_pass_end(world);
    *gang = world_submit(world, &plan);
    for (uint32_t i = 0; i < steps; i++)
        world_pass_step(world);
    return core_job_find(world->core, (struct job_id){*gang})->hold_count == 0 &&
           state_of(world, *gang) == WAITING_PLACING;
}

static void a_large_part_that_is_stopped_leaves_nothing(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < LARGE_STEPS; steps++) {
        struct world world;
        uint32_t gang;
        const bool is_searched_for = large_begin(&world, steps, &gang);
        assert_true(is_searched_for || steps > 6);
        assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
        world_pass_end(&world);
        if (is_searched_for) {
            const uint32_t other = submit_parts(&world, "other", 10, LARGE_TASKS);
            assert_int_equal(commands_until_end(&world, COMMAND_CREATE, other), LARGE_TASKS);
        }
        world_release(&world);
    }
}

static void a_large_part_is_searched_for_anew_when_a_node_fails(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < LARGE_STEPS; steps++) {
        struct world world;
        uint32_t gang;
        if (large_begin(&world, steps, &gang)) {
            world_exit(&world, 1, 0, 0); /* that of "runs" */
            world_node_event(&world, EVENT_NODE_LOST, "n4");
            assert_int_equal(commands_until_end(&world, COMMAND_CREATE, gang), LARGE_TASKS);
            assert_string_not_equal(node_of(&world, gang, 0), "n4");
        }
        world_release(&world);
    }
}

/* What ends meanwhile is free when the gang has its places. */
static void ends_are_not_lost_while_a_large_part_is_placed(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < LARGE_STEPS; steps++) {
        struct world world;
        uint32_t gang;
        large_begin(&world, steps, &gang);
        const size_t created = world_command_count(&world, COMMAND_CREATE);
        world_exit(&world, 1, 0, 0);
        const uint32_t other = submit_one(&world, "other", 10);
        assert_int_equal(commands_until_end(&world, COMMAND_CREATE, other), 1);
        assert_true(created == 0 || steps > 6);
        assert_int_equal(state_of(&world, gang), WAITING_NOT);
        world_release(&world);
    }
}

static void a_copy_of_a_large_part_goes_on_alike(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < LARGE_STEPS; steps++) {
        struct world world, twin;
        uint32_t gang;
        large_begin(&world, steps, &gang);
        twin = world;
        twin.rows = NULL;
        output_init(&twin.output);
        twin.core = core_copy(world.core);
        for (bool goes_on = true; goes_on;) {
            goes_on = world_pass_step(&world);
            assert_int_equal(world_pass_step(&twin), goes_on);
            assert_int_equal(twin.output.trace.count, world.output.trace.count);
            assert_true(core_hash(twin.core) == core_hash(world.core));
            check_places(&twin);
        }
        assert_string_equal(node_of(&twin, gang, 0), node_of(&world, gang, 0));
        core_free(twin.core);
        output_release(&twin.output);
        world_release(&world);
    }
}

/* Nothing of it is in the rows. */
static void a_large_part_begins_anew_after_a_restart(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < LARGE_STEPS; steps++) {
        struct world world;
        uint32_t gang;
        if (large_begin(&world, steps, &gang)) {
            world_restart(&world); /* it starts at once: the slices are large again */
            assert_int_equal(commands_of(&world, COMMAND_CREATE, gang), LARGE_TASKS);
            check_places(&world);
        }
        world_release(&world);
    }
}

/* A port is taken on a node: all is given back, and the next search does without that node. */
static void a_port_conflict_searches_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        const struct plan_port port = {"http", 1, 9000};
        struct plan_role busy = world_role("worker", 1, 1, 0);
        busy.ports = &port;
        busy.port_count = 1;
        struct plan plan = world_plan_of("busy", &busy);
        uint32_t first = world_submit(&world, &plan);
        char taken[16];
        snprintf(taken, sizeof taken, "%s", world_task(&world, first, 0, 0)->node);
        struct plan_role roles[] = {world_role("a", 1, 1, 1), world_role("b", 1, 1, GPUS)};
        for (size_t k = 0; k < 2; k++) {
            roles[k].affinity_group = roles[k].name;
            roles[k].ports = &port;
            roles[k].port_count = 1;
        }
        plan = world_plan_of("gang", roles);
        plan.role_count = 2;
        uint32_t gang = world_submit(&world, &plan);
        assert_in_range(steps_until_created(&world, gang, 2), 4, 40);
        for (uint16_t role = 0; role < 2; role++)
            assert_string_not_equal(node_of(&world, gang, role), taken);
        check_places(&world);
        world_release(&world);
    }
}

/* The step in which a search of several ends has a bound, too, when it begins another. */
static void a_port_conflict_at_the_end_of_a_search_has_a_bound(void **state)
{
    (void)state;
    enum { MACHINES = 10, PARTS = 20, SLICE = 300, LAST_PART = 50 };
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        for (unsigned k = 1; k <= MACHINES; k++)
            node_add(&world, k);
        world_timer(&world, 1);
        core_slice_set(world.core, SLICE);
        const struct plan_port port = {"http", 1, 9000};
        char names[PARTS][8];
        struct plan_role roles[PARTS];
        for (uint16_t k = 0; k < PARTS; k++) {
            snprintf(names[k], sizeof names[k], "p%u", k);
            roles[k] = world_role(names[k], 1, 1, 1);
            roles[k].affinity_group = names[k];
            roles[k].ports = &port;
            roles[k].port_count = 1;
        }
        struct plan plan = world_plan_of("gang", roles);
        plan.role_count = PARTS;
        const uint32_t gang = world_submit(&world, &plan);
        uint32_t most = 0;
        do
            most = world.core->pass.work > most ? world.core->pass.work : most;
        while (world_pass_step(&world));
        assert_in_range(most, SLICE, 2 * SLICE + LAST_PART);
        assert_int_equal(state_of(&world, gang), WAITING_QUEUED);
        world_release(&world);
    }
}

/* A request is checked without a search: also while a gang of the same name is given back. */
static void a_name_may_come_again_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i]);
        world.config.finished_keep_s = 0;
        world_configure(&world);
        uint32_t gang = submit_parts(&world, "gang", 10, 4);
        world_pass_step(&world);
        world_pass_step(&world);
        assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
        assert_true(holdovers_are_left(world.core));
        uint32_t again = submit_parts(&world, "gang", 10, 4);
        assert_true(again);
        assert_int_equal(commands_until_end(&world, COMMAND_CREATE, again), 4);
        world_release(&world);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_gang_is_placed_in_steps),
    cmocka_unit_test(a_small_gang_is_placed_at_once),
    cmocka_unit_test(what_was_searched_in_steps_may_start_in_one),
    cmocka_unit_test(a_gang_without_a_place_gives_all_back),
    cmocka_unit_test(those_behind_a_gang_have_their_turn),
    cmocka_unit_test(what_it_found_is_free_when_it_is_stopped),
    cmocka_unit_test(a_node_that_fails_meanwhile_is_not_used),
    cmocka_unit_test(a_search_ends_though_nodes_change),
    cmocka_unit_test(a_paused_gang_ends_nobody),
    cmocka_unit_test(victims_are_told_in_steps),
    cmocka_unit_test(a_gang_that_is_stopped_tells_no_more),
    cmocka_unit_test(another_placer_begins_anew),
    cmocka_unit_test(a_copy_goes_on_alike),
    cmocka_unit_test(a_restart_between_steps_begins_anew),
    cmocka_unit_test(a_large_part_that_is_stopped_leaves_nothing),
    cmocka_unit_test(a_large_part_is_searched_for_anew_when_a_node_fails),
    cmocka_unit_test(ends_are_not_lost_while_a_large_part_is_placed),
    cmocka_unit_test(a_copy_of_a_large_part_goes_on_alike),
    cmocka_unit_test(a_large_part_begins_anew_after_a_restart),
    cmocka_unit_test(a_port_conflict_searches_again),
    cmocka_unit_test(a_port_conflict_at_the_end_of_a_search_has_a_bound),
    cmocka_unit_test(a_name_may_come_again_at_once),
};
UNIT_FILE(tests, NULL, NULL);
