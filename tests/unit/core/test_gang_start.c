/* A large gang whose places are found starts over several steps: docs/rfc/0016-gangs-in-steps.md.
 * Here each step takes one task further.
 */
#include "unit.h"
#include "world.h"
#include <stdio.h>

#include "base/err.h"
#include "core/gang_start.h"
#include "core/jobs.h"
#include "core/state.h"
#include "core/tasks.h"

enum { NODES = 3, GPUS = 4, TASKS = 4 };

/* Of two parts, with two and one GPUs for each of their two tasks: they need two nodes. */
static uint32_t begin(struct world *world, const char *policy)
{
    world_init(world, policy);
    world_keep(world);
    for (unsigned i = 1; i <= NODES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        world_node(world, name, 16, GPUS);
    }
    world_timer(world, 1);
    core_slice_set(world->core, 1);
    struct plan_role roles[] = {world_role("a", 2, 1, 2), world_role("b", 2, 1, 1)};
    for (size_t i = 0; i < COUNT_OF(roles); i++)
        roles[i].affinity_group = roles[i].name;
    struct plan plan = world_plan_of("gang", roles);
    plan.role_count = COUNT_OF(roles);
    return world_submit(world, &plan);
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

/* Its first task has its place. */
static void until_starting(struct world *world, uint32_t job)
{
    while (state_of(world, job) != WAITING_STARTING)
        assert_true(world_pass_step(world));
}

/* All have, and the first is created. */
static void until_creating(struct world *world, uint32_t job)
{
    until_starting(world, job);
    while (!gang_is_creating(world->core))
        assert_true(world_pass_step(world));
    world_pass_step(world);
    assert_int_equal(world_command_count(world, COMMAND_CREATE), 1);
}

static size_t commands_to_end(struct world *world, enum command_kind kind)
{
    size_t count = 0;
    do {
        count += world_command_count(world, kind);
        check_places(world);
    } while (world_pass_step(world));
    return count;
}

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

/* A forecast asks for all in one step: that takes memory for the tasks that there are. */
static void a_step_without_bounds_takes_little_memory(void **state)
{
    (void)state;
    struct world world;
    const uint32_t gang = begin(&world, "best-fit");
    until_starting(&world, gang);
    core_slice_set(world.core, 1 << 30);
    assert_int_equal(commands_to_end(&world, COMMAND_CREATE), TASKS);
    assert_in_range(arena_size(&world.core->scratch), 1, 1 << 20);
    world_release(&world);
}

/* Whoever is created finds the rows of all of its peers. */
static void all_have_rows_before_one_is_created(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        uint32_t gang = begin(&world, policies[i]);
        until_starting(&world, gang);
        for (uint16_t k = 0; k < TASKS; k++) {
            const struct task_record *row = world_task(&world, gang, k / 2, k % 2);
            assert_int_equal(row->state, LIFE_CREATION_REQUESTED);
            assert_int_equal(row->attempt.v, k + 1u);
            assert_int_equal(row->port_count, 2);
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
            assert_true(world_pass_step(&world));
        }
        assert_int_equal(commands_to_end(&world, COMMAND_CREATE), TASKS);
        assert_false(gang_is_creating(world.core));
        world_release(&world);
    }
}

static void nobody_else_is_tried_meanwhile(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world, "hived");
    until_starting(&world, gang);
    uint32_t other = world_submit_for(&world, "other", 500, 1, 0);
    until_creating(&world, gang);
    assert_int_equal(state_of(&world, other), WAITING_QUEUED);
    assert_int_equal(commands_to_end(&world, COMMAND_CREATE), TASKS + 1);
    assert_int_equal(state_of(&world, other), WAITING_NOT);
    world_release(&world);
}

/* No container is ended that never was; the places of all are free. */
static void it_is_stopped_while_it_starts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        uint32_t gang = begin(&world, policies[i]);
        until_starting(&world, gang);
        world_pass_step(&world);
        world_pass_step(&world);
        assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
        assert_int_equal(commands_to_end(&world, COMMAND_KILL), 0);
        assert_null(core_job_find(world.core, (struct job_id){gang}));
        struct core_counts counts;
        core_count(world.core, &counts);
        assert_int_equal(counts.gpus_used, 0);
        assert_int_equal(counts.tasks_live, 0);
        world_release(&world);
    }
}

/* A group whose other slots nobody wants, or NULL. */
static const struct core_group *given_up(const struct world *world)
{
    for (uint32_t i = 0; i < core_group_slots(world->core); i++)
        if (core_group_at(world->core, i)->given_up)
            return core_group_at(world->core, i);
    return NULL;
}

/* One task of a part has its place, and the end of the gang is told to one in each step: what the
 * part holds beside it goes back with it. Nobody is tried before that, whatever happens. */
static void the_rest_of_a_part_goes_with_its_last_task(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (int is_copied = 0; is_copied < 2; is_copied++) {
            struct world world;
            const uint32_t gang = begin(&world, policies[i]);
            until_starting(&world, gang);
            const uint32_t other = world_submit_for(&world, "other", 500, GPUS, 0);
            world_pass_step(&world); /* both tasks of the first part, and one of the second */
            assert_int_equal(world.core->tasks_live, 3);
            assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
            if (is_copied) {
                struct core *copy = core_copy(world.core);
                assert_int_equal(copy->groups_given_up, world.core->groups_given_up);
                core_free(world.core);
                world.core = copy;
            }
            uint32_t steps = 0;
            for (; given_up(&world); steps++) {
                check_places(&world);
                assert_int_equal(given_up(&world)->given_up, 1);
                assert_int_equal(given_up(&world)->taken_count, 1);
                assert_int_equal(state_of(&world, other), WAITING_QUEUED);
                assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
                assert_true(world_pass_step(&world));
            }
            assert_in_range(steps, 1, TASKS);
            assert_int_equal(commands_to_end(&world, COMMAND_CREATE), 1);
            assert_int_equal(state_of(&world, other), WAITING_NOT);
            world_release(&world);
        }
}

static void it_is_stopped_while_it_is_created(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world, "hived");
    until_creating(&world, gang);
    assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
    assert_int_equal(commands_to_end(&world, COMMAND_KILL), 1);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_job(&world, gang)->state, LIFE_COMPLETED);
    world_release(&world);
}

/* Of those still to start, or of one that has its place: nothing exists, it is placed anew. */
static void a_node_fails_while_it_starts(void **state)
{
    (void)state;
    static const enum event_kind kinds[] = {EVENT_NODE, EVENT_NODE_LOST};
    for (size_t i = 0; i < COUNT_OF(policies) * COUNT_OF(kinds); i++) {
        struct world world;
        uint32_t gang = begin(&world, policies[i % COUNT_OF(policies)]);
        until_starting(&world, gang);
        const struct core_job *job = core_job_find(world.core, (struct job_id){gang});
        const struct hold *hold = &job->holds[1];
        char node[16];
        snprintf(node, sizeof node, "n%u", hold->slots[1].node.v + 1);
        if (kinds[i / COUNT_OF(policies)] == EVENT_NODE_LOST)
            world_node_event(&world, EVENT_NODE_LOST, node);
        else
            world_step(&world, &(struct event){.kind = EVENT_NODE,
                                               .node = {.name = node,
                                                        .cpu = 16,
                                                        .memory_mib = 1000,
                                                        .gpu_count = GPUS,
                                                        .gpu_type = "",
                                                        .address = "",
                                                        .reason = "disk"}});
        assert_int_equal(commands_to_end(&world, COMMAND_CREATE), TASKS);
        assert_int_equal(job->life.attempt, 1);
        assert_int_equal(job->life.retries_user, 0);
        world_release(&world);
    }
}

/* Some rows are stored, and no container can be: the attempt is undone. */
static void a_restart_while_it_starts_begins_anew(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        uint32_t gang = begin(&world, policies[i]);
        until_starting(&world, gang);
        world_pass_step(&world);
        world_restart(&world);
        assert_true(world_has_story(&world, "StartInterrupted", "the server ended"));
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        assert_int_equal(commands_to_end(&world, COMMAND_CREATE), TASKS);
        const struct core_job *job = core_job_find(world.core, (struct job_id){gang});
        assert_int_equal(job->life.attempt, 1);
        assert_int_equal(job->life.retries_platform, 1);
        assert_int_equal(job->life.retries_user, 0);
        world_release(&world);
    }
}

/* All rows are stored: whoever was created is created again, which is harmless. */
static void a_restart_while_it_is_created_creates_all(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world, "hived");
    until_creating(&world, gang);
    world_restart(&world);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), TASKS);
    assert_int_equal(core_job_find(world.core, (struct job_id){gang})->life.attempt, 0);
    world_release(&world);
}

/* It starts first: the new placer is told of a gang that runs. */
static void another_placer_finds_it_whole(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world, "hived");
    until_starting(&world, gang);
    world.config.policy = "best-fit";
    world_configure(&world);
    assert_int_equal(state_of(&world, gang), WAITING_STARTING);
    assert_true(core_policy_changes(world.core));
    assert_int_equal(commands_to_end(&world, COMMAND_CREATE), TASKS);
    assert_int_equal(state_of(&world, gang), WAITING_NOT);
    assert_false(core_policy_changes(world.core));
    check_places(&world);
    world_release(&world);
}

/* Ports that are held for it, too. */
static void another_placer_comes_while_ports_are_taken(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world, "hived");
    while (world.core->placing.stage != PLACING_PORTS)
        assert_true(world_pass_step(&world));
    world.config.policy = "best-fit";
    world_configure(&world);
    assert_int_not_equal(state_of(&world, gang), WAITING_STARTING);
    assert_int_equal(commands_to_end(&world, COMMAND_CREATE), TASKS);
    world_release(&world);
}

static void a_copy_goes_on_with_the_start(void **state)
{
    (void)state;
    struct world world;
    uint32_t gang = begin(&world, "hived");
    size_t created = 0;
    do {
        struct core *copy = core_copy(world.core);
        assert_int_equal(core_hash(copy), core_hash(world.core));
        core_free(world.core);
        world.core = copy;
        check_places(&world);
        created += world_command_count(&world, COMMAND_CREATE);
    } while (world_pass_step(&world));
    assert_int_equal(created, TASKS);
    assert_int_equal(core_job_find(world.core, (struct job_id){gang})->life.live, TASKS);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_have_rows_before_one_is_created),
    cmocka_unit_test(a_step_without_bounds_takes_little_memory),
    cmocka_unit_test(nobody_else_is_tried_meanwhile),
    cmocka_unit_test(it_is_stopped_while_it_starts),
    cmocka_unit_test(the_rest_of_a_part_goes_with_its_last_task),
    cmocka_unit_test(it_is_stopped_while_it_is_created),
    cmocka_unit_test(a_node_fails_while_it_starts),
    cmocka_unit_test(a_restart_while_it_starts_begins_anew),
    cmocka_unit_test(a_restart_while_it_is_created_creates_all),
    cmocka_unit_test(another_placer_finds_it_whole),
    cmocka_unit_test(another_placer_comes_while_ports_are_taken),
    cmocka_unit_test(a_copy_goes_on_with_the_start),
};
UNIT_FILE(tests, NULL, NULL);
