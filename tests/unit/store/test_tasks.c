/* Tasks and their attempts: rows, and what the plan says where there is no row. */
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "base/memory.h"
#include "core/output.h"
#include "job/job.h"
#include "store/read.h"

static void tasks_without_a_row_come_from_the_plan(void **state)
{
    struct world *world = *state;
    struct store_tasks tasks;
    struct task_record task = task_of(1, 1, 1, 77);

    submit(world, 1, "alice", "train");
    add_task(world, task);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, -1, &world->arena, &tasks, &world->err), 0);
    assert_int_equal(tasks.count, 4);
    assert_string_equal(tasks.items[0].role_name, "ps");
    assert_int_equal(tasks.items[0].state, LIFE_CREATION_PENDING);
    assert_int_equal(tasks.items[1].task.index, 0);
    task = tasks.items[2];
    assert_int_equal(task.attempt.v, 77);
    assert_int_equal(task.gpus[2], 259);
    assert_int_equal(task.cell_level, 4);
    assert_int_equal(task.killed, KILL_PREEMPTED);
    assert_int_equal(task.kill_by_ms, 30007);
    assert_int_equal(task.port_count, 2);
    assert_string_equal(task.ports[1].label, "http");
    assert_int_equal(task.ports[1].first, 15001);
    assert_int_equal(task.ports[1].count, 2);
    assert_int_equal(
        store_attempt(world->reader, (struct attempt_id){77}, &world->arena, &task, &world->err),
        0);
    assert_int_equal(
        store_attempt(world->reader, (struct attempt_id){78}, &world->arena, &task, &world->err),
        ERR_NOT_FOUND);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, 1, &world->arena, &tasks, &world->err),
        ERR_NOT_FOUND);
}

/* A large job that was scaled: role 0 down to one of its two tasks, role 1 up to three, of which
 * the last is entered in a later step. There are as many rows as tasks are wanted. */
static void rows_that_are_scaled_away_stand_for_no_others(void **state)
{
    struct world *world = *state;
    struct job_task entries[2] = {0};
    struct job_role roles[] = {{.instances = 1, .items = entries, .count = 2},
                               {.instances = 3, .items = entries, .count = 2}};
    const struct job life = {.role_count = 2, .has_tasks = true, .roles = roles};
    struct job_record job = job_of(1, "alice", "train");
    struct store_tasks tasks;
    cleanup_buf struct buf extra = BUF_INIT;

    submit(world, 1, "alice", "train");
    job_save(&life, &extra);
    job.extra = buf_as_text(&extra);
    job.task_count = 4;
    add_job(world, job);
    for (uint16_t i = 0; i < 4; i++)
        add_task(world, task_of(1, i / 2, i % 2, 70 + i));
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, -1, &world->arena, &tasks, &world->err), 0);
    assert_int_equal(tasks.count, 5);
    assert_int_equal(tasks.items[4].task.role, 1);
    assert_int_equal(tasks.items[4].task.index, 2);
    assert_int_equal(tasks.items[4].state, LIFE_CREATION_PENDING);
}

static void history_keeps_attempts_that_end_and_begin_in_one_batch(void **state)
{
    struct world *world = *state;
    struct job_record job = job_of(1, "alice", "train");
    struct task_record task = task_of(1, 0, 0, 5);
    struct job_attempts attempts;
    struct store_tasks tasks;

    submit(world, 1, "alice", "train");
    task.state = LIFE_ATTEMPT_COMPLETED;
    task.completion = completion_of(1, "first");
    add_task(world, task);
    job.state = LIFE_ATTEMPT_COMPLETED;
    job.completion = completion_of(1, "failed");
    add_job(world, job);
    task = task_of(1, 0, 0, 6);
    task.job_attempt = 1;
    add_task(world, task);
    job = job_of(1, "alice", "train");
    job.attempt = 1;
    job.state = LIFE_RUNNING;
    add_job(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);

    assert_int_equal(store_job_attempts(world->reader, (struct job_id){1}, &world->arena, &attempts,
                                        &world->err),
                     0);
    assert_int_equal(attempts.count, 2);
    assert_string_equal(attempts.items[0].completion.diagnostics, "failed");
    assert_int_equal(attempts.items[1].state, LIFE_RUNNING);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, 0, &world->arena, &tasks, &world->err), 0);
    assert_int_equal(tasks.count, 1);
    assert_int_equal(tasks.items[0].attempt.v, 5);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, 1, &world->arena, &tasks, &world->err), 0);
    assert_int_equal(tasks.count, 4);
    assert_int_equal(tasks.items[0].attempt.v, 6);
    /* a task's own attempts: one past, one current */
    task.task_attempt = 0;
    task.state = LIFE_ATTEMPT_COMPLETED;
    add_task(world, task);
    task.attempt.v = 7;
    task.task_attempt = 1;
    task.state = LIFE_RUNNING;
    add_task(world, task);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_task_attempts(world->reader, (struct job_id){1}, 1,
                                         (struct task_ref){0, 0}, &world->arena, &tasks,
                                         &world->err),
                     0);
    assert_int_equal(tasks.count, 2);
    assert_int_equal(tasks.items[0].attempt.v, 6);
    assert_int_equal(tasks.items[1].attempt.v, 7);
    /* ended: it stands in both tables and is shown once */
    task.state = LIFE_COMPLETED;
    add_task(world, task);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_task_attempts(world->reader, (struct job_id){1}, 1,
                                         (struct task_ref){0, 0}, &world->arena, &tasks,
                                         &world->err),
                     0);
    assert_int_equal(tasks.count, 2);
    assert_int_equal(tasks.items[1].state, LIFE_COMPLETED);
    /* scaled down */
    task.is_removed = true;
    add_task(world, task);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, -1, &world->arena, &tasks, &world->err), 0);
    assert_int_equal(tasks.items[0].attempt.v, 0);
}

/* How many tasks are on the page, and the index of the first. */
static size_t page_of(struct world *world, const struct task_filter *filter, unsigned *first)
{
    struct store_tasks tasks;
    assert_int_equal(store_task_page(world->reader, (struct job_id){1}, filter, &world->arena,
                                     &tasks, &world->err),
                     0);
    *first = tasks.count ? tasks.items[0].task.index : 99;
    return tasks.count;
}

/* With a row for each task and without: the same pages. */
static void tasks_come_in_pages(void **state)
{
    struct world *world = *state;
    static const struct text worker[] = {{"none", 4}, {"worker", 6}}, node[] = {{"elsewhere", 9}};
    struct store_task_counts counts;
    unsigned first;

    submit(world, 1, "alice", "train");
    for (int round = 0; round < 2; round++) {
        struct task_filter filter = {.job_attempt = -1, .limit = 3};
        if (round == 1) /* the last one gets its row */
            add_task(world, task_of(1, 1, 2, 8));
        else
            for (uint16_t i = 0; i < 3; i++)
                add_task(world, task_of(1, i > 0, (uint16_t)(i > 0 ? i - 1 : 0), 5u + i));
        assert_int_equal(commit(world, NULL, 0), 0);
        assert_int_equal(page_of(world, &filter, &first), 3);
        filter.has_after = true;
        filter.after = (struct task_ref){0, 0};
        assert_int_equal(page_of(world, &filter, &first), 3);
        filter.after = (struct task_ref){0, UINT16_MAX}; /* the first of the next role */
        assert_int_equal(page_of(world, &filter, &first), 3);
        assert_int_equal(first, 0);
        filter.after = (struct task_ref){1, 1};
        assert_int_equal(page_of(world, &filter, &first), 1);
        assert_int_equal(first, 2);
        filter.after = (struct task_ref){1, 2};
        assert_int_equal(page_of(world, &filter, &first), 0);
        filter = (struct task_filter){
            .job_attempt = -1, .roles = worker, .role_count = 2, .limit = UINT64_MAX};
        assert_int_equal(page_of(world, &filter, &first), 3);
        filter.nodes = node;
        filter.node_count = 1;
        assert_int_equal(page_of(world, &filter, &first), 0);
        filter = (struct task_filter){
            .job_attempt = -1, .states = 1u << PUBLIC_WAITING, .limit = UINT64_MAX};
        assert_int_equal(page_of(world, &filter, &first), round ? 0 : 1);
        filter = (struct task_filter){.job_attempt = 0, .limit = 2};
        assert_int_equal(page_of(world, &filter, &first), 2);
        assert_int_equal(store_task_states(world->reader, (struct job_id){1}, &world->arena,
                                           &counts, &world->err),
                         0);
        assert_int_equal(counts.count, 2);
        assert_string_equal(counts.roles[1].name, "worker");
        assert_int_equal(counts.roles[0].states[PUBLIC_RUNNING], 1);
        assert_int_equal(counts.roles[1].states[PUBLIC_WAITING], round ? 0 : 1);
        assert_int_equal(counts.roles[1].states[PUBLIC_RUNNING], round ? 3 : 2);
        assert_int_equal(counts.roles[0].each.length, 1);
        assert_int_equal(counts.roles[1].each.length, 3);
        assert_int_equal(counts.roles[1].each.at[1], PUBLIC_RUNNING);
        assert_int_equal(counts.roles[1].each.at[2], round ? PUBLIC_RUNNING : PUBLIC_WAITING);
        filter = (struct task_filter){
            .job_attempt = -1, .keyword = TEXT("worker[2"), .limit = UINT64_MAX};
        assert_int_equal(page_of(world, &filter, &first), 1);
        assert_int_equal(first, 2);
    }
    assert_int_equal(
        store_task_states(world->reader, (struct job_id){9}, &world->arena, &counts, &world->err),
        ERR_NOT_FOUND);
}

/* Page by page of one task: all of them, in order, with and without a row. */
static void tasks_without_a_row_stand_between_those_with_one(void **state)
{
    struct world *world = *state;
    struct task_filter filter = {.job_attempt = -1, .limit = 1};
    struct store_tasks all, page;

    submit(world, 1, "alice", "train");
    add_task(world, task_of(1, 1, 1, 8));
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){1}, -1, &world->arena, &all, &world->err), 0);
    assert_int_equal(all.count, 4);
    for (size_t i = 0; i < all.count; i++) {
        assert_int_equal(store_task_page(world->reader, (struct job_id){1}, &filter, &world->arena,
                                         &page, &world->err),
                         0);
        assert_int_equal(page.count, 1);
        assert_int_equal(page.items[0].task.role, all.items[i].task.role);
        assert_int_equal(page.items[0].task.index, all.items[i].task.index);
        assert_int_equal(page.items[0].attempt.v, i == 2 ? 8 : 0);
        assert_string_equal(page.items[0].role_name, all.items[i].role_name);
        filter.has_after = true;
        filter.after = page.items[0].task;
    }
    assert_int_equal(store_task_page(world->reader, (struct job_id){1}, &filter, &world->arena,
                                     &page, &world->err),
                     0);
    assert_int_equal(page.count, 0);
    assert_int_equal(store_task_page(world->reader, (struct job_id){9}, &filter, &world->arena,
                                     &page, &world->err),
                     ERR_NOT_FOUND);
}

/* What store_tasks gives, page by page and counted, for one attempt of the job. */
static void expect_pages(struct world *world, int64_t job_attempt, size_t expected)
{
    const struct job_id job = {1};
    struct task_filter filter = {.job_attempt = job_attempt};
    struct store_tasks all, page;
    struct store_task_totals totals;
    assert_int_equal(store_tasks(world->reader, job, job_attempt, &world->arena, &all, &world->err),
                     0);
    assert_int_equal(all.count, expected);
    assert_int_equal(
        store_task_totals(world->reader, job, job_attempt, &world->arena, &totals, &world->err), 0);
    uint64_t counted[2] = {0};
    for (size_t i = 0; i < all.count; i++)
        counted[all.items[i].task.role]++;
    assert_int_equal(totals.count, 2);
    assert_int_equal(totals.roles[0], counted[0]);
    assert_int_equal(totals.roles[1], counted[1]);
    for (uint64_t limit = 1; limit <= 4; limit++) {
        filter.has_after = false;
        filter.limit = limit;
        for (size_t at = 0; at <= all.count; at += page.count) {
            assert_int_equal(
                store_task_page(world->reader, job, &filter, &world->arena, &page, &world->err), 0);
            assert_int_equal(page.count, all.count - at < limit ? all.count - at : limit);
            if (page.count == 0)
                break;
            for (size_t i = 0; i < page.count; i++) {
                assert_int_equal(page.items[i].task.role, all.items[at + i].task.role);
                assert_int_equal(page.items[i].task.index, all.items[at + i].task.index);
                assert_int_equal(page.items[i].attempt.v, all.items[at + i].attempt.v);
            }
            filter.has_after = true;
            filter.after = page.items[page.count - 1].task;
        }
    }
}

/* Ended attempts of tasks in the job's first attempt, some tried again, some scaled away. */
static void tasks_of_an_attempt_are_counted_and_come_in_pages(void **state)
{
    struct world *world = *state;
    struct job_record job = job_of(1, "alice", "train");
    struct store_task_totals totals;
    unsigned attempt = 5;

    submit(world, 1, "alice", "train");
    for (uint16_t i = 0; i < 6; i++) { /* two of them beyond the plan's three */
        struct task_record task = task_of(1, 1, i, attempt++);
        task.state = LIFE_ATTEMPT_COMPLETED;
        add_task(world, task);
        task.attempt.v = attempt++;
        task.task_attempt = 1;
        task.state = i % 2 ? LIFE_COMPLETED : LIFE_RUNNING;
        add_task(world, task);
    }
    job.task_count = 7;
    add_job(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);
    expect_pages(world, -1, 7);
    expect_pages(world, 0, 7);
    for (uint16_t i = 4; i < 6; i++) {
        struct task_record task = task_of(1, 1, i, 0);
        task.is_removed = true;
        add_task(world, task);
    }
    job.task_count = 5;
    add_job(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);
    expect_pages(world, -1, 5);
    expect_pages(world, 0, 7);
    job.attempt = 1;
    job.task_count = 4;
    job.state = LIFE_RUNNING;
    add_job(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);
    expect_pages(world, 0, 6);
    expect_pages(world, 1, 4);
    expect_pages(world, -1, 4);
    assert_int_equal(store_task_totals(world->reader, (struct job_id){1}, 2, &world->arena, &totals,
                                       &world->err),
                     ERR_NOT_FOUND);
    assert_int_equal(store_task_totals(world->reader, (struct job_id){9}, -1, &world->arena,
                                       &totals, &world->err),
                     ERR_NOT_FOUND);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(rows_that_are_scaled_away_stand_for_no_others),
    WORLD(tasks_without_a_row_come_from_the_plan),
    WORLD(history_keeps_attempts_that_end_and_begin_in_one_batch),
    WORLD(tasks_come_in_pages),
    WORLD(tasks_without_a_row_stand_between_those_with_one),
    WORLD(tasks_of_an_attempt_are_counted_and_come_in_pages),
};
UNIT_FILE(tests, NULL, NULL);
