/* A gang is placed and started: whole, in parts, and not at all when a node of it fails. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/jobs.h"
#include "core/state.h"

static void test_gang_waits_whole(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    uint32_t big = world_submit_simple(&world, "big", 3, 1, 2);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    assert_non_null(strstr(world_job(&world, big)->reason, "3 x (2 GPU, 1 CPU, "));
    assert_true(world_has_story(&world, "Waiting", "it can never start"));
    /* it holds nothing, and what fits behind it starts */
    world_submit_simple(&world, "small", 1, 1, 4);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    /* a second node is enough for both */
    world_node(&world, "n2", 8, 8);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 3);
    assert_int_equal(world_job(&world, big)->state, LIFE_CREATION_REQUESTED);
    assert_string_equal(world_job(&world, big)->reason, "");
    world_release(&world);
}

static void test_parts_of_a_gang(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    struct plan plan = world_plan("a");
    struct plan_role roles[] = {world_role("ps", 1, 1, 2), world_role("worker", 1, 1, 4)};
    roles[0].affinity_group = "x";
    plan.roles = roles;
    plan.role_count = 2;
    uint32_t job = world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    struct core_counts counts;
    core_count(world.core, &counts);
    assert_int_equal(counts.gpus_used, 0); /* the first part was given back */
    world_node(&world, "n2", 8, 4);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    assert_int_equal(world_job(&world, job)->state, LIFE_CREATION_REQUESTED);
    world_release(&world);

    /* and preempts for both of its parts, or for none */
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 4);
    world_node(&world, "n2", 8, 4);
    world_submit_for(&world, "cheap1", -1, 4, 0);
    world_submit_for(&world, "cheap2", -1, 4, 0);
    plan.priority = 100;
    job = world_submit(&world, &plan);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 2);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* held for it */
    world_exit(&world, 2, 143, 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 2);
    assert_int_equal(world_command(&world, COMMAND_CREATE, 0)->job.v, job);
    world_release(&world);
}

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
        world_submit_role(&world, "cheap", -1, world_role("worker", 1, 8, 4));
        world_submit_role(&world, "beside", 10, world_role("worker", 1, 1, 0)); /* on n2 */
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

/* --- a job without gang: as many of its tasks in each step as its work allows, here one --- */

enum { BIG = 2, SMALL = 3 };

/* Two tasks of so many GPUs each, and three of one GPU. */
static uint32_t begin_tasks(struct world *world, const char *policy, uint32_t big_gpus)
{
    world_init(world, policy);
    world_keep(world);
    world_node(world, "n1", 16, 4);
    world_node(world, "n2", 16, 4);
    core_slice_set(world->core, 1);
    world_timer(world, 1); /* cells are made in pieces, too */
    world_pass_end(world);
    struct plan_role roles[] = {world_role("big", BIG, 1, big_gpus),
                                world_role("small", SMALL, 1, 1)};
    struct plan plan = world_plan_of("tasks", roles);
    plan.role_count = COUNT_OF(roles);
    plan.is_gang = false;
    return world_submit(world, &plan);
}

static const struct core_job *job_of(const struct world *world, uint32_t job)
{
    struct err err = {0};
    if (core_check_places(world->core, &err))
        fail_msg("%s: %s", err.path, err.text);
    return core_job_find(world->core, (struct job_id){job});
}

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

static void tasks_start_one_in_each_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        const uint32_t job = begin_tasks(&world, policies[i], 2);
        for (uint32_t k = 1; k <= BIG + SMALL; k++) {
            assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
            assert_int_equal(job_of(&world, job)->life.live, k);
            world_pass_step(&world);
        }
        assert_int_equal(job_of(&world, job)->waiting, WAITING_NOT);
        assert_false(world_pass_step(&world));
        world_release(&world);
    }
}

/* Why some wait is told when all have had their turn, though theirs was in another step. */
static void the_reason_of_an_early_role_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        const uint32_t job = begin_tasks(&world, policies[i], 5);
        bool is_told = false;
        do {
            const struct job_record *row = world_job(&world, job);
            is_told = is_told || (row && strstr(row->reason, "it needs 1 x "));
        } while (world_pass_step(&world));
        assert_true(is_told);
        assert_int_equal(job_of(&world, job)->life.live, SMALL);
        assert_int_equal(job_of(&world, job)->waiting, WAITING_QUEUED);
        /* there is room for one of the two now */
        world_node(&world, "n3", 16, 8);
        world_pass_end(&world);
        assert_int_equal(job_of(&world, job)->life.live, SMALL + 1);
        world_release(&world);
    }
}

/* A forecast asks for all in one step: that takes memory for the tasks that there are. */
static void a_step_without_bounds_takes_little_memory(void **state)
{
    (void)state;
    struct world world;
    const uint32_t job = begin_tasks(&world, "best-fit", 2);
    core_slice_set(world.core, 1 << 30);
    world_pass_end(&world);
    assert_int_equal(job_of(&world, job)->life.live, BIG + SMALL);
    assert_in_range(arena_size(&world.core->scratch), 1, 1 << 20);
    world_release(&world);
}

static void nobody_else_is_tried_between_two_tasks(void **state)
{
    (void)state;
    struct world world;
    const uint32_t job = begin_tasks(&world, "hived", 2);
    const uint32_t other = world_submit_for(&world, "other", 500, 1, 0);
    while (job_of(&world, job)->waiting != WAITING_NOT) {
        assert_int_equal(job_of(&world, other)->waiting, WAITING_QUEUED);
        assert_true(world_pass_step(&world));
    }
    world_pass_end(&world);
    assert_int_equal(job_of(&world, other)->waiting, WAITING_NOT);
    world_release(&world);
}

static void it_is_stopped_between_two_tasks(void **state)
{
    (void)state;
    struct world world;
    const uint32_t job = begin_tasks(&world, "spread", 2);
    world_pass_step(&world);
    assert_int_equal(world_ask(&world, EVENT_STOP, job), 0);
    size_t kills = 0;
    do
        kills += world_command_count(&world, COMMAND_KILL);
    while (world_pass_step(&world));
    assert_int_equal(kills, 2);
    world_exit(&world, 1, 143, 0);
    world_exit(&world, 2, 143, 0);
    assert_null(job_of(&world, job));
    world_release(&world);
}

static void a_restart_between_two_tasks_starts_the_rest(void **state)
{
    (void)state;
    struct world world;
    const uint32_t job = begin_tasks(&world, "best-fit", 2);
    world_pass_step(&world);
    world_restart(&world);
    world_pass_end(&world);
    assert_int_equal(job_of(&world, job)->waiting, WAITING_NOT);
    assert_int_equal(job_of(&world, job)->life.live, BIG + SMALL);
    world_release(&world);
}

static size_t rows_told(const struct world *world, uint32_t job)
{
    size_t count = 0;
    for (uint16_t role = 0; role < 2; role++)
        for (uint16_t i = 0; i < 20; i++)
            count += world_task(world, job, role, i) != NULL;
    return count;
}

/* The rows of those that wait follow those of the first that has a place. */
static void rows_follow_some_in_each_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        const uint32_t job = begin_tasks(&world, policies[i], 2);
        size_t rows = rows_told(&world, job);
        assert_in_range(rows, 1, 2);
        assert_true(job_of(&world, job)->is_going_on);
        while (job_of(&world, job)->is_going_on) {
            assert_true(world_pass_step(&world));
            assert_in_range(rows_told(&world, job), 1, 3);
        }
        assert_int_equal(job_of(&world, job)->life.roles[0].count, BIG);
        assert_int_equal(job_of(&world, job)->life.roles[1].count, SMALL);
        world_release(&world);
    }
}

static int scale(struct world *world, uint32_t job, uint16_t role, uint32_t instances)
{
    struct event event = {.kind = EVENT_SCALE,
                          .request = ++world->request,
                          .scale = {.job = {job}, .role = role, .instances = instances}};
    world_step(world, &event);
    return world_answer(world)->code;
}

/* Ten more tasks get their rows one after the other, also over a restart between them. */
static void new_instances_follow_one_in_each_step(void **state)
{
    (void)state;
    struct world world;
    const uint32_t job = begin_tasks(&world, "hived", 2);
    world_pass_end(&world);
    assert_int_equal(scale(&world, job, 1, SMALL + 10), 0);
    const uint32_t before = (uint32_t)job_of(&world, job)->life.roles[1].count;
    assert_in_range(before, SMALL, SMALL + 2);
    world_pass_step(&world);
    assert_in_range(rows_told(&world, job), 1, 3);
    world_restart(&world);
    world_pass_end(&world);
    assert_int_equal(job_of(&world, job)->life.roles[1].count, SMALL + 10);
    assert_int_equal(job_of(&world, job)->life.live,
                     BIG + SMALL + 1); /* as much as there is room */
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_follow_some_in_each_step),
    cmocka_unit_test(new_instances_follow_one_in_each_step),
    cmocka_unit_test(test_gang_waits_whole),
    cmocka_unit_test(test_parts_of_a_gang),
    cmocka_unit_test(a_held_node_that_fails_undoes_the_gang),
    cmocka_unit_test(tasks_start_one_in_each_step),
    cmocka_unit_test(the_reason_of_an_early_role_is_told),
    cmocka_unit_test(a_step_without_bounds_takes_little_memory),
    cmocka_unit_test(nobody_else_is_tried_between_two_tasks),
    cmocka_unit_test(it_is_stopped_between_two_tasks),
    cmocka_unit_test(a_restart_between_two_tasks_starts_the_rest),
};
UNIT_FILE(tests, NULL, NULL);
