#include "large_job.h"
#include "unit.h"

#include "base/memory.h"
#include "store/noun.h"

static void add_story(struct world *world, uint32_t job, int index)
{
    *ARRAY_ADD(&world->output.records) = (struct record){.kind = RECORD_STORY,
                                                         .story = {.job = {job},
                                                                   .role = -1,
                                                                   .index = -1,
                                                                   .at_ms = index,
                                                                   .reason = "Waiting",
                                                                   .message = "message"}};
}

static void tasks_store(struct world *world, uint32_t job)
{
    struct store_change ends[LARGE_TASKS / 3 + 1];
    size_t count = 0;

    for (uint16_t i = 0; i < LARGE_TASKS; i++) {
        struct task_record task = task_of(job, 1, i, (uint64_t)job * 1000 + i);
        task.state = LIFE_COMPLETED;
        add_task(world, task);
        if (i % 3 == 0)
            ends[count++] =
                (struct store_change){.kind = CHANGE_ATTEMPT_END,
                                      .attempt_end = {.attempt = task.attempt,
                                                      .rule = {.phrase = "", .file = "", .log = ""},
                                                      .tail = TEXT("last words\n")}};
    }
    assert_int_equal(commit(world, ends, count), 0);
}

void large_job_store(struct world *world, uint32_t job, const char *name)
{
    submit(world, job, "alice", name);
    tasks_store(world, job);
    for (int i = 0; i < LARGE_STORIES; i++)
        add_story(world, job, i);
    for (uint32_t i = 0; i <= LARGE_ATTEMPTS; i++) {
        struct job_record ended = job_of(job, "alice", name);
        ended.state = LIFE_COMPLETED;
        ended.attempt = i;
        add_job(world, ended);
    }
    assert_int_equal(commit(world, NULL, 0), 0);
}

int64_t number_read(struct world *world, const char *text)
{
    struct sql sql = sql_of(&world->reader->session, text);
    int64_t value = -1;

    assert_int_equal(sql_number(&sql, &value, &world->err), 0);
    return value;
}

int64_t large_job_rows(struct world *world, uint32_t job)
{
    static const char count[] =
        "SELECT (SELECT count(*) FROM tasks WHERE job = ?1) + (SELECT count(*) FROM task_attempts "
        "WHERE job = ?1) + (SELECT count(*) FROM stories WHERE job = ?1) + (SELECT count(*) FROM "
        "job_attempts WHERE job = ?1) + (SELECT count(*) FROM attempt_ends WHERE attempt >= ?2 AND "
        "attempt < ?3)";
    struct sql sql = sql_of(&world->reader->session, count);
    int64_t value = -1;

    sql_put_int(&sql, job);
    sql_put_int(&sql, (int64_t)job * 1000);
    sql_put_int(&sql, (int64_t)job * 1000 + 1000);
    assert_int_equal(sql_number(&sql, &value, &world->err), 0);
    return value;
}

unsigned deletions_finish(struct world *world)
{
    unsigned pieces = 0;

    for (; store_deletions(world->store) > 0; pieces++) {
        assert_in_range(pieces, 0, 1000);
        change(world, (struct store_change){.kind = CHANGE_DELETIONS}, 0);
    }
    return pieces;
}
