/* Which jobs are on which nodes, for readers: copied in pieces, and brought up to date. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/random.h"
#include "core/nodes.h"
#include "core/state.h"

static const struct core_node_job *job_at(const struct core_node_jobs *jobs, uint32_t node,
                                          size_t at)
{
    size_t count;
    const struct core_node_job *own = core_node_jobs_of(jobs, (struct node_id){node}, &count);
    assert_true(at < count);
    return &own[at];
}

static size_t jobs_on(const struct core_node_jobs *jobs, uint32_t node)
{
    size_t count;
    const struct core_node_job *own = core_node_jobs_of(jobs, (struct node_id){node}, &count);
    assert_int_equal(own != NULL, count > 0);
    return count;
}

/* Tasks of several jobs stand mixed on a node; each job is told once, with all of its tasks there.
 */
static void a_job_counts_its_tasks_on_each_node(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    world_node(&world, "n2", 8, 0);
    const uint32_t first = world_submit_simple(&world, "a", 2, 1, 0);
    const uint32_t second = world_submit_simple(&world, "b", 8, 1, 0); /* on both nodes */
    const uint32_t third = world_submit_simple(&world, "c", 1, 1, 0);
    for (uint64_t attempt = 1; attempt <= 11; attempt++)
        world_run(&world, attempt);
    struct core_node_jobs jobs = {0};
    assert_true(core_node_jobs_update(world.core, &jobs, UINT32_MAX));
    const struct {
        uint32_t node, at, job, tasks;
    } expected[] = {{0, 0, first, 2}, {0, 1, second, 6}, {1, 0, second, 2}, {1, 1, third, 1}};
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const struct core_node_job *own = job_at(&jobs, expected[i].node, expected[i].at);
        assert_int_equal(own->job.v, expected[i].job);
        assert_int_equal(own->task_count, expected[i].tasks);
    }
    assert_int_equal(jobs_on(&jobs, 0), 2);
    assert_int_equal(jobs_on(&jobs, 1), 2);
    assert_int_equal(jobs_on(&jobs, 2), 0); /* there is no such node */
    core_node_jobs_release(&jobs);
    world_release(&world);
}

/* A task that starts again by itself: one of another job stands between it and its peer. */
static void tasks_of_one_job_need_not_be_neighbours(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world.config.retry_pause_first_s = 0;
    world_configure(&world);
    world_node(&world, "n1", 8, 0);
    struct plan_role role = world_role("worker", 2, 1, 0);
    struct plan plan = world_plan_of("a", &role);
    plan.is_gang = false;
    role.task_retry_max = 1;
    const uint32_t loose = world_submit(&world, &plan);
    world_run(&world, 1);
    world_run(&world, 2);
    const uint32_t other = world_submit_simple(&world, "b", 1, 1, 0);
    world_run(&world, 3);
    world_exit(&world, 1, 1, 0);
    struct core_node_jobs jobs = {0};
    assert_true(core_node_jobs_update(world.core, &jobs, UINT32_MAX));
    assert_int_equal(jobs_on(&jobs, 0), 2);
    assert_int_equal(job_at(&jobs, 0, 0)->job.v, loose);
    assert_int_equal(job_at(&jobs, 0, 0)->task_count, 2);
    assert_int_equal(job_at(&jobs, 0, 1)->job.v, other);
    assert_int_equal(job_at(&jobs, 0, 1)->task_count, 1);
    core_node_jobs_release(&jobs);
    world_release(&world);
}

enum { NODES = 5, ROUNDS = 400, PIECES_MAX = 64 };

static void expect_equal(const struct core_node_jobs *one, const struct core_node_jobs *other)
{
    for (uint32_t node = 0; node < NODES; node++) {
        assert_int_equal(jobs_on(one, node), jobs_on(other, node));
        for (size_t i = 0; i < jobs_on(one, node); i++) {
            assert_int_equal(job_at(one, node, i)->job.v, job_at(other, node, i)->job.v);
            assert_int_equal(job_at(one, node, i)->task_count, job_at(other, node, i)->task_count);
        }
    }
}

/* Something starts or ends: jobs of up to three tasks. */
static void change(struct world *world, struct random *random, uint32_t round)
{
    char name[32];
    if (random_below(random, 2)) {
        snprintf(name, sizeof name, "job-%u", round);
        world_submit_simple(world, name, 1 + (uint32_t)random_below(random, 3), 1, 0);
        return;
    }
    const uint64_t last = world->core->last_attempt;
    if (last > 0)
        world_exit(world, 1 + random_below(random, last), 0, 0);
}

/* Whatever happens between any two pieces: when one says that all is as it is now, it is. The table
 * does not grow for ever. */
static void what_is_copied_in_pieces_is_as_it_is(void **state)
{
    (void)state;
    struct world world;
    struct random random = {1};
    struct core_node_jobs jobs = {0};
    uint32_t whole = 0, cut = 0;
    world_init(&world, "spread");
    for (uint32_t i = 0; i < NODES; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%u", i);
        world_node(&world, name, 8, 0);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        change(&world, &random, round);
        if (!core_node_jobs_update(world.core, &jobs, 1 + (uint32_t)random_below(&random, 8))) {
            cut++;
            continue;
        }
        struct core_node_jobs fresh = {0};
        assert_true(core_node_jobs_update(world.core, &fresh, UINT32_MAX));
        expect_equal(&jobs, &fresh);
        core_node_jobs_release(&fresh);
        whole++;
        assert_true(jobs.count <= 2 * jobs.used + NODES + 3 * 8);
    }
    assert_true(whole > 0 && cut > 0);
    core_node_jobs_release(&jobs);
    world_release(&world);
}

/* Each piece comes further, however small it is; those that find nothing do nothing. */
static void a_copy_in_pieces_has_an_end(void **state)
{
    (void)state;
    struct world world;
    struct core_node_jobs jobs = {0};
    uint32_t pieces = 1;
    world_init(&world, "spread");
    for (uint32_t i = 0; i < NODES; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%u", i);
        world_node(&world, name, 8, 0);
    }
    world_submit_simple(&world, "a", 2 * NODES, 1, 0);
    for (; !core_node_jobs_update(world.core, &jobs, 1); pieces++)
        assert_true(pieces < PIECES_MAX);
    assert_int_equal(pieces, NODES);
    assert_int_equal(jobs.count, NODES);
    assert_true(core_node_jobs_update(world.core, &jobs, 1));
    struct core *copy = core_copy(world.core);
    assert_true(core_node_jobs_update(copy, &jobs, 1));
    assert_int_equal(jobs.count, NODES);
    core_free(copy);
    core_node_jobs_clear(&jobs); /* of another core, whose numbers say nothing */
    assert_int_equal(jobs_on(&jobs, 0), 0);
    assert_true(core_node_jobs_update(world.core, &jobs, UINT32_MAX));
    assert_int_equal(job_at(&jobs, 0, 0)->task_count, 2);
    core_node_jobs_release(&jobs);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_counts_its_tasks_on_each_node),
    cmocka_unit_test(tasks_of_one_job_need_not_be_neighbours),
    cmocka_unit_test(what_is_copied_in_pieces_is_as_it_is),
    cmocka_unit_test(a_copy_in_pieces_has_an_end),
};
UNIT_FILE(tests, NULL, NULL);
