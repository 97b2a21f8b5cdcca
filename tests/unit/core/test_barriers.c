/* test_barriers.c — the table of barriers in docs/rfc/0009-skep-init.md, cell by cell. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/barriers.h"

enum { HELD_MAX = 3, ROLES = 3, JOB = 7 };

struct world {
    struct barriers *barriers;
    struct barrier_output output;
    struct buf shown;
};

static int setup(void **state)
{
    static struct world world;
    world.barriers = barriers_new(HELD_MAX);
    world.shown = (struct buf)BUF_INIT;
    barrier_output_init(&world.output);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    barriers_free(world->barriers);
    barrier_output_release(&world->output);
    buf_release(&world->shown);
    return 0;
}

/* A row of w-0, w-1 (role 0) or p-0 (role 1): try `attempt`, which runs. */
static struct task_record row_of(uint16_t role, uint16_t index, uint64_t attempt)
{
    return (struct task_record){.job = {JOB},
                                .task = {role, index},
                                .role_name = role == 0 ? "w" : "p",
                                .state = LIFE_RUNNING,
                                .attempt = {attempt}};
}

struct barrier_shown {
    const struct task_record *tasks;
    size_t count;
};

static void show(const void *context, barrier_row_see *see, void *seer)
{
    const struct barrier_shown *shown = context;
    for (size_t i = 0; i < shown->count; i++)
        see(seer, &shown->tasks[i]);
}

#define SHOWN(tasks, count)                                                                        \
    .show_tasks = show, .context = &(const struct barrier_shown)                                   \
    {                                                                                              \
        tasks, count                                                                               \
    }

static const bool all_roles[ROLES] = {true, true, false};

/* Three tasks that run, of two roles; a third role takes no part. */
static void open_with(struct world *world, bool is_passed, const struct record *records,
                      size_t count)
{
    const struct task_record tasks[] = {row_of(0, 0, 1), row_of(0, 1, 2), row_of(1, 0, 3),
                                        row_of(2, 0, 4)};
    barriers_add(world->barriers, &(struct barrier_rows){.job = {JOB},
                                                         .kind = BARRIER_START,
                                                         .is_passed = is_passed,
                                                         .takes_part = all_roles,
                                                         .role_count = ROLES,
                                                         SHOWN(tasks, 4),
                                                         .records = records,
                                                         .record_count = count});
}

static void open_barrier(struct world *world)
{
    open_with(world, false, NULL, 0);
}

static void report_row(struct world *world, uint64_t request, struct task_record row, bool is_up,
                       bool is_waiting)
{
    barriers_report(world->barriers,
                    &(struct barrier_report){.request = request,
                                             .row = &row,
                                             .kind = BARRIER_START,
                                             .is_up = is_up,
                                             .is_waiting = is_waiting},
                    &world->output);
}

static void come(struct world *world, uint64_t request, uint16_t role, uint16_t index,
                 uint64_t attempt)
{
    report_row(world, request, row_of(role, index, attempt), true, true);
}

static void take(struct world *world, const struct record *record)
{
    barriers_take(world->barriers, record, 1, &world->output);
}

static void take_row(struct world *world, struct task_record row)
{
    take(world, &(struct record){.kind = RECORD_TASK, .task = row});
}

static void take_job(struct world *world, uint32_t attempt, enum life_state state)
{
    struct record record = {.kind = RECORD_JOB};
    record.job = (struct job_record){.id = {JOB}, .attempt = attempt, .state = state};
    take(world, &record);
}

/* What came out since the last look: "REQUEST:CODE text; …", and "passed" for a mark. */
static const char *told(struct world *world)
{
    buf_clear(&world->shown);
    for (size_t i = 0; i < world->output.passes.count; i++) {
        assert_int_equal(world->output.passes.items[i].job.v, JOB);
        buf_string(&world->shown, "passed; ");
    }
    for (size_t i = 0; i < world->output.answers.count; i++) {
        const struct barrier_answer *answer = &world->output.answers.items[i];
        buf_format(&world->shown, "%u:%s %s; ", (unsigned)answer->request,
                   answer->code ? err_name(answer->code) : "ok", answer->text);
    }
    barrier_output_clear(&world->output);
    return buf_cstr(&world->shown);
}

#define assert_told(world, text) assert_string_equal(told(world), text)

static void all_wait_for_the_last(void **state)
{
    struct world *world = *state;
    open_barrier(world);
    assert_true(barriers_has(world->barriers, (struct job_id){JOB}, BARRIER_START));
    assert_false(barriers_has(world->barriers, (struct job_id){JOB}, BARRIER_SSH));
    assert_false(barriers_has(world->barriers, (struct job_id){JOB + 1}, BARRIER_START));
    come(world, 11, 0, 0, 1);
    come(world, 12, 1, 0, 3);
    assert_told(world, "");
    assert_int_equal(barriers_held(world->barriers), 2);
    come(world, 13, 0, 0, 1); /* again, on a new connection */
    assert_told(world, "11:unavailable asked again; ");
    come(world, 14, 0, 1, 2);
    assert_told(world, "passed; 13:ok ; 14:ok ; 12:ok ; ");
    assert_int_equal(barriers_held(world->barriers), 0);
    come(world, 15, 0, 0, 1); /* who comes late goes on at once, and no second mark is made */
    take_row(world, row_of(0, 0, 9));
    come(world, 16, 0, 0, 9);
    assert_told(world, "15:ok ; 16:ok ; ");
}

static void a_report_need_not_wait(void **state)
{
    struct world *world = *state;
    open_barrier(world);
    report_row(world, 1, row_of(0, 0, 1), true, false);
    report_row(world, 2, row_of(0, 1, 2), true, false);
    assert_told(world, "1:ok ; 2:ok ; ");
    report_row(world, 3, row_of(1, 0, 3), true, false);
    assert_told(world, "passed; 3:ok ; ");
}

static void strangers_are_refused(void **state)
{
    struct world *world = *state;
    struct task_record row = row_of(0, 0, 1);
    open_barrier(world);
    come(world, 1, 2, 0, 4); /* its role takes no part */
    come(world, 2, 0, 0, 9); /* not its current try */
    assert_told(world, "1:conflict this task does not take part, or this try has ended; "
                       "2:conflict this task does not take part, or this try has ended; ");
    row.state = LIFE_ATTEMPT_COMPLETED;
    report_row(world, 3, row, true, true);
    assert_told(world, "3:conflict this try has ended; ");
    row = row_of(0, 0, 1);
    row.job_attempt = 1;
    report_row(world, 4, row, true, true);
    row.job_attempt = 0;
    row.job.v = JOB + 1; /* nothing is known of this job */
    report_row(world, 5, row, true, true);
    assert_told(world, "4:conflict this attempt of the job has ended; "
                       "5:conflict this attempt of the job has ended; ");
    barrier_refuse(&world->output, 6, ERR_NOT_FOUND, "no such try");
    assert_told(world, "6:not-found no such try; ");
}

static void a_full_table_notes_and_refuses(void **state)
{
    static const bool takes_part[] = {true};
    struct world *world = *state;
    struct task_record tasks[HELD_MAX + 2];
    for (uint16_t i = 0; i < HELD_MAX + 2; i++)
        tasks[i] = row_of(0, i, i + 1u);
    barriers_add(world->barriers, &(struct barrier_rows){.job = {JOB},
                                                         .kind = BARRIER_START,
                                                         .takes_part = takes_part,
                                                         .role_count = 1,
                                                         SHOWN(tasks, HELD_MAX + 2)});
    for (uint16_t i = 0; i <= HELD_MAX; i++)
        come(world, i + 1u, 0, i, i + 1u);
    assert_told(world, "4:busy too many wait: ask again; ");
    assert_int_equal(barriers_held(world->barriers), HELD_MAX);
    come(world, 9, 0, HELD_MAX + 1, HELD_MAX + 2); /* the last one is held for no time */
    assert_told(world, "passed; 1:ok ; 2:ok ; 3:ok ; 9:ok ; ");
}

static void tries_that_end_are_waited_for_again(void **state)
{
    struct world *world = *state;
    struct task_record row = row_of(0, 0, 1);
    open_barrier(world);
    come(world, 1, 0, 0, 1);
    row.state = LIFE_ATTEMPT_COMPLETED;
    take_row(world, row);
    assert_told(world, "1:conflict this try has ended; ");
    come(world, 2, 0, 1, 2);
    come(world, 3, 1, 0, 3);
    assert_told(world, "");
    take_row(world, row_of(0, 0, 5)); /* its next try */
    come(world, 4, 0, 0, 5);
    assert_told(world, "passed; 4:ok ; 2:ok ; 3:ok ; ");
}

static void the_next_try_replaces_one_that_came(void **state)
{
    struct world *world = *state;
    open_barrier(world);
    come(world, 1, 0, 0, 1);
    take_row(world, row_of(0, 0, 5));
    assert_told(world, "1:conflict this try has ended; ");
    come(world, 2, 0, 1, 2);
    come(world, 3, 1, 0, 3);
    assert_told(world, "");
}

static void a_task_that_ends_for_good_breaks_it(void **state)
{
    struct world *world = *state;
    struct task_record row = row_of(0, 0, 1), other = row_of(1, 0, 3);
    open_barrier(world);
    come(world, 1, 0, 1, 2);
    row.state = other.state = LIFE_COMPLETED;
    row.completion.code = 7;
    take_row(world, row);
    assert_told(world, "1:conflict w-0 has ended with code 7; ");
    take_row(world, other); /* the first reason stays */
    come(world, 2, 0, 1, 2);
    assert_told(world, "2:conflict w-0 has ended with code 7; ");
    report_row(world, 3, row_of(0, 1, 2), true, false);
    assert_told(world, "3:ok ; ");
}

static void a_task_without_server_breaks_it(void **state)
{
    struct world *world = *state;
    open_barrier(world);
    come(world, 1, 0, 1, 2);
    report_row(world, 2, row_of(0, 0, 1), false, true);
    assert_told(world, "2:conflict w-0 has no ssh server; 1:conflict w-0 has no ssh server; ");
}

static void a_long_name_is_cut(void **state)
{
    struct world *world = *state;
    char name[201];
    memset(name, 'r', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct task_record row = row_of(0, 0, 1);
    row.role_name = name;
    open_barrier(world);
    report_row(world, 1, row, false, true);
    const char *text = told(world);
    assert_non_null(strstr(text, "rrr-0 has no ssh server"));
    assert_true(strlen(text) < 160);
}

static void tasks_scaled_away_are_not_waited_for(void **state)
{
    struct world *world = *state;
    struct task_record row = row_of(0, 1, 2);
    open_barrier(world);
    come(world, 1, 0, 0, 1);
    row.is_deletion_pending = true;
    take_row(world, row);
    assert_told(world, "");
    row = row_of(1, 0, 3);
    row.is_removed = true;
    row.state = LIFE_COMPLETED;
    take_row(world, row);
    assert_told(world, "passed; 1:ok ; ");
}

static void a_new_task_is_waited_for(void **state)
{
    struct world *world = *state;
    open_barrier(world);
    take_row(world, row_of(0, 2, 8));
    for (uint16_t i = 0; i < 2; i++)
        come(world, i + 1u, 0, i, i + 1u);
    come(world, 3, 1, 0, 3);
    assert_told(world, "");
    come(world, 4, 0, 2, 8);
    assert_told(world, "passed; 1:ok ; 2:ok ; 4:ok ; 3:ok ; ");
}

static void the_end_of_the_attempt_lets_go(void **state)
{
    struct world *world = *state;
    const struct record others[] = {{.kind = RECORD_STORY}, {.kind = RECORD_NODE}};
    open_barrier(world);
    come(world, 1, 0, 0, 1);
    barriers_take(world->barriers, others, 2, &world->output);
    take_job(world, 0, LIFE_RUNNING); /* it goes on */
    assert_told(world, "");
    take_job(world, 0, LIFE_DELETION_PENDING);
    assert_told(world, "1:conflict the job's attempt ends; ");
    assert_false(barriers_has(world->barriers, (struct job_id){JOB}, BARRIER_START));
    open_barrier(world);
    come(world, 2, 0, 0, 1);
    take_job(world, 1, LIFE_CREATION_PENDING);
    assert_told(world, "2:conflict the job's attempt ends; ");
    take_row(world, row_of(0, 0, 1)); /* nobody asks for it */
    assert_told(world, "");
}

/* Of several barriers the others stay. */
static void one_of_several_ends(void **state)
{
    struct world *world = *state;
    const struct task_record tasks[] = {row_of(0, 0, 1), row_of(0, 1, 2)};
    struct barrier_rows rows = {.job = {JOB},
                                .kind = BARRIER_SSH,
                                .takes_part = all_roles,
                                .role_count = ROLES,
                                SHOWN(tasks, 2)};
    open_barrier(world);
    barriers_add(world->barriers, &rows);
    rows.job.v = JOB + 1;
    barriers_add(world->barriers, &rows);
    come(world, 1, 0, 0, 1);
    take(world, &(struct record){.kind = RECORD_JOB_DELETED, .deleted = {JOB}});
    assert_told(world, "1:conflict the job's attempt ends; ");
    assert_false(barriers_has(world->barriers, (struct job_id){JOB}, BARRIER_SSH));
    assert_true(barriers_has(world->barriers, (struct job_id){JOB + 1}, BARRIER_SSH));
}

/* The job is deleted by the same records: a mark would have no job. */
static void a_deleted_job_has_no_mark(void **state)
{
    struct world *world = *state;
    open_barrier(world);
    for (uint16_t i = 0; i < 2; i++)
        come(world, i + 1u, 0, i, i + 1u);
    come(world, 3, 1, 0, 3);
    take_job(world, 0, LIFE_COMPLETED);
    assert_int_equal(world->output.passes.count, 1);
    take(world, &(struct record){.kind = RECORD_JOB_DELETED, .deleted = {JOB + 1}});
    assert_int_equal(world->output.passes.count, 1);
    take(world, &(struct record){.kind = RECORD_JOB_DELETED, .deleted = {JOB}});
    assert_told(world, "1:ok ; 2:ok ; 3:ok ; ");
}

static void everybody_is_told_when_it_is_cleared(void **state)
{
    struct world *world = *state;
    open_barrier(world);
    come(world, 1, 0, 0, 1);
    barriers_clear(world->barriers, ERR_UNAVAILABLE, "the server is ending", &world->output);
    assert_told(world, "1:unavailable the server is ending; ");
    assert_int_equal(barriers_held(world->barriers), 0);
    assert_false(barriers_has(world->barriers, (struct job_id){JOB}, BARRIER_START));
}

static void a_stored_mark_is_known(void **state)
{
    struct world *world = *state;
    open_with(world, true, NULL, 0);
    come(world, 1, 0, 0, 1);
    assert_told(world, "1:ok ; ");
}

/* Rows are as before this round; its records come on top of them. */
static void records_of_the_round_count(void **state)
{
    struct world *world = *state;
    struct record records[] = {
        {.kind = RECORD_NODE},
        {.kind = RECORD_TASK, .task = row_of(0, 0, 9)},
        {.kind = RECORD_TASK, .task = row_of(0, 1, 2)},
        {.kind = RECORD_JOB, .job = {.id = {JOB}, .state = LIFE_RUNNING}},
        {.kind = RECORD_JOB, .job = {.id = {JOB + 1}, .state = LIFE_COMPLETED}},
        {.kind = RECORD_JOB_DELETED, .deleted = {JOB + 1}},
    };
    records[2].task.job.v = JOB + 1; /* of another job */
    open_with(world, false, records, 6);
    come(world, 1, 0, 0, 1);
    come(world, 2, 0, 0, 9);
    assert_told(world, "1:conflict this task does not take part, or this try has ended; ");
    barriers_clear(world->barriers, ERR_UNAVAILABLE, "again", &world->output);
    assert_told(world, "2:unavailable again; ");
    records[4].job.id.v = JOB; /* its attempt ends by them: there is no entry */
    open_with(world, false, records, 6);
    come(world, 3, 0, 0, 9);
    assert_told(world, "3:conflict this attempt of the job has ended; ");
    records[4].job.id.v = JOB + 1;
    records[5].deleted.v = JOB;
    open_with(world, false, records, 6);
    assert_false(barriers_has(world->barriers, (struct job_id){JOB}, BARRIER_START));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
    TEST(all_wait_for_the_last),
    TEST(a_report_need_not_wait),
    TEST(strangers_are_refused),
    TEST(a_full_table_notes_and_refuses),
    TEST(tries_that_end_are_waited_for_again),
    TEST(the_next_try_replaces_one_that_came),
    TEST(a_task_that_ends_for_good_breaks_it),
    TEST(a_task_without_server_breaks_it),
    TEST(a_long_name_is_cut),
    TEST(tasks_scaled_away_are_not_waited_for),
    TEST(a_new_task_is_waited_for),
    TEST(the_end_of_the_attempt_lets_go),
    TEST(one_of_several_ends),
    TEST(a_deleted_job_has_no_mark),
    TEST(everybody_is_told_when_it_is_cleared),
    TEST(a_stored_mark_is_known),
    TEST(records_of_the_round_count),
};
UNIT_FILE(tests, NULL, NULL);
