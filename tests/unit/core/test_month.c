/* A month of a cluster's life, simulated: what the core keeps and writes is bounded by what there
 * is, not by what there was.
 *
 * Covers: src/core/rows.c, src/core/records.c, src/core/check.c, src/core/check_places.c */
#include "unit.h"
#include "world.h"

#include <malloc.h>
#include <stdio.h>

enum {
    NODES = 4,
    WAITING = 3,
    PERIOD_MS = 600000,
    PERIODS_A_DAY = 144,
    DAYS = 30,
    WARM_DAYS = 5, /* tables have their sizes then */
};

struct month {
    struct world world;
    int64_t wake_ms;
    uint64_t rows, steps, attempt;
};

/* After each step. */
static void account(struct month *month)
{
    const struct output *output = &month->world.output;
    month->steps++;
    month->rows += output->records.count;
    for (size_t i = 0; i < output->commands.count; i++) {
        const struct command *command = &output->commands.items[i];
        if (command->kind == COMMAND_WAKE)
            month->wake_ms = command->at_ms;
        if (command->kind == COMMAND_CREATE)
            month->attempt = command->attempt.v;
    }
}

static void run_until(struct month *month, int64_t until_ms)
{
    while (month->wake_ms && month->wake_ms <= until_ms) {
        const int64_t after_ms = month->wake_ms - month->world.now_ms;
        month->wake_ms = 0;
        world_timer(&month->world, after_ms > 0 ? after_ms : 0);
        account(month);
    }
    if (month->world.now_ms < until_ms)
        month->world.now_ms = until_ms;
}

static uint64_t timer_count(const struct world *world)
{
    struct core_counts counts;
    core_count(world->core, &counts);
    return counts.timers;
}

/* Jobs without gang, each of its own shape, for which no node is large enough. */
static void waiting_submit(struct month *month)
{
    for (uint32_t i = 0; i < WAITING; i++) {
        char name[16];
        snprintf(name, sizeof name, "waits%u", i);
        struct plan_role role = world_role("worker", 2, 64 + i, 0);
        struct plan plan = world_plan_of(name, &role);
        plan.is_gang = false;
        assert_int_not_equal(world_submit(&month->world, &plan), 0);
        account(month);
    }
}

/* A node fails and comes back; a job with a limit of ten days starts and ends. */
static void period(struct month *month, uint32_t number)
{
    struct world *world = &month->world;
    const int64_t begin_ms = world->now_ms;
    char name[16];
    snprintf(name, sizeof name, "job%u", number);
    world_node_event(world, EVENT_NODE_LOST, "n0");
    account(month);
    run_until(month, begin_ms + PERIOD_MS / 10);
    world_node(world, "n0", 8, 0);
    account(month);
    struct plan_role role = world_role("worker", 1, 8, 0);
    struct plan plan = world_plan_of(name, &role);
    plan.time_limit_s = 10 * 86400;
    month->attempt = 0;
    assert_int_not_equal(world_submit(world, &plan), 0);
    account(month);
    assert_int_not_equal(month->attempt, 0);
    const uint64_t attempt = month->attempt;
    world_run(world, attempt); /* two steps, the second is accounted */
    account(month);
    run_until(month, begin_ms + PERIOD_MS / 2);
    world_exit(world, attempt, 0, 0);
    account(month);
    run_until(month, begin_ms + PERIOD_MS);
}

static void nothing_piles_up(void **state)
{
    (void)state;
    static struct month month;
    size_t memory = 0;
    month = (struct month){0};
    world_init(&month.world, "best-fit");
    for (int i = 0; i < NODES; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        world_node(&month.world, name, 8, 0);
        account(&month);
    }
    waiting_submit(&month);
    for (uint32_t i = 0; i < DAYS * PERIODS_A_DAY; i++) {
        period(&month, i);
        /* a job that runs, its name and that of the one before, nodes, the queue's */
        assert_in_range(timer_count(&month.world), 0, NODES + WAITING + 6);
        if (i == WARM_DAYS * PERIODS_A_DAY)
            memory = mallinfo2().uordblks;
    }
    print_message("%d days: %llu steps, %llu rows, %llu timers, %zu KiB\n", DAYS,
                  (unsigned long long)month.steps, (unsigned long long)month.rows,
                  (unsigned long long)timer_count(&month.world), mallinfo2().uordblks / 1024);
    assert_in_range(mallinfo2().uordblks, 0, memory + 65536);
    /* a period has some ten events: the job's and its task's rows and stories, the node's */
    assert_in_range(month.rows, 0, (uint64_t)DAYS * PERIODS_A_DAY * 40);
    world_release(&month.world);
}

/* An end elsewhere changes nothing of those that still wait. */
static void who_still_waits_is_not_written(void **state)
{
    (void)state;
    enum { JOBS = 200 };
    struct world world;
    world_init(&world, "best-fit");
    world_node(&world, "n0", 8, 0);
    const uint32_t running = world_submit_simple(&world, "runs", 1, 1, 0);
    assert_int_not_equal(running, 0);
    world_run(&world, 1);
    for (uint32_t i = 0; i < JOBS; i++) {
        char name[16];
        snprintf(name, sizeof name, "waits%u", i);
        struct plan_role role = world_role("worker", 2, 64 + i, 0);
        struct plan plan = world_plan_of(name, &role);
        plan.is_gang = false;
        assert_int_not_equal(world_submit(&world, &plan), 0);
    }
    world_exit(&world, 1, 0, 0);
    for (size_t i = 0; i < world.output.records.count; i++) {
        const struct record *record = &world.output.records.items[i];
        assert_true(record->kind != RECORD_JOB || record->job.id.v == running);
    }
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_piles_up),
    cmocka_unit_test(who_still_waits_is_not_written),
};
UNIT_FILE(tests, NULL, NULL);
