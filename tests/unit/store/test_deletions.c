/* A job is deleted at once; what its tasks and attempts have left goes in pieces. */
#include "large_job.h"
#include "memory.h"
#include "unit.h"
#include "world.h"

#include "base/err.h"
#include "base/memory.h"
#include "store/read.h"
#include "sys/log.h"

static void delete_job(struct world *world, uint32_t job)
{
    add_deleted(world, job);
    assert_int_equal(commit(world, NULL, 0), 0);
}

static uint64_t stories_of(struct world *world, uint32_t job)
{
    const struct story_filter filter = {.job = {job}, .is_warning = -1, .limit = 1};
    struct stories stories;

    assert_int_equal(
        store_stories(world->reader, &filter, true, &world->arena, &stories, &world->err), 0);
    assert_true(stories.count == 0 || stories.total > 0);
    return stories.total;
}

static int try_find(struct world *world, uint64_t attempt)
{
    struct task_record row;
    return store_attempt(world->reader, (struct attempt_id){attempt}, &world->arena, &row,
                         &world->err);
}

static int end_find(struct world *world, uint64_t attempt)
{
    struct store_attempt_end end;
    return store_attempt_end(world->reader, (struct attempt_id){attempt}, &world->arena, &end,
                             &world->err);
}

static int tries_find(struct world *world, uint32_t job, uint16_t index)
{
    struct store_tasks tries;
    return store_task_attempts(world->reader, (struct job_id){job}, 0, (struct task_ref){1, index},
                               &world->arena, &tries, &world->err);
}

/* What was submitted, the barrier that was passed, and tags are in tables of their own. */
static void beside_store(struct world *world, uint32_t job)
{
    change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {{job}, "kept"}}, 0);
    change(world,
           (struct store_change){.kind = CHANGE_BARRIER,
                                 .barrier = {.job = {job}, .attempt = 1, .kind = BARRIER_START}},
           0);
}

static int64_t beside_rows(struct world *world)
{
    return number_read(world, "SELECT (SELECT count(*) FROM job_plans) + (SELECT count(*) FROM "
                              "job_sources) + (SELECT count(*) FROM tags) + (SELECT count(*) FROM "
                              "barriers)");
}

static void expect_nothing_beside(struct world *world, uint32_t job)
{
    const struct job_id id = {job};
    struct plan *plan = NULL;
    struct store_source source;
    struct store_sealed sealed;
    size_t count;
    int64_t attempt;

    assert_int_equal(store_job_plan(world->reader, id, &plan, &world->err), ERR_NOT_FOUND);
    assert_int_equal(store_job_source(world->reader, id, &world->arena, &source, &world->err),
                     ERR_NOT_FOUND);
    assert_int_equal(store_sealed_read(world->reader, (struct job_id){0}, &world->arena, &sealed, 1,
                                       &count, &world->err),
                     0);
    assert_true(count == 0 || sealed.job.v != job);
    assert_int_equal(store_barrier_passed(world->reader, id, BARRIER_START, &attempt, &world->err),
                     0);
    assert_int_equal(attempt, -1);
    change(world, (struct store_change){.kind = CHANGE_TAG_REMOVE, .tag = {id, "kept"}},
           ERR_NOT_FOUND);
}

/* Whoever reads rows without asking for their job is shown none of this one. */
static void expect_hidden(struct world *world, uint32_t job)
{
    struct job_id found;
    struct store_job row;
    struct store_tasks tasks;

    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("large"), &found, NULL),
                     ERR_NOT_FOUND);
    assert_int_equal(
        store_job_read(world->reader, (struct job_id){job}, &world->arena, &row, &world->err),
        ERR_NOT_FOUND);
    assert_int_equal(
        store_tasks(world->reader, (struct job_id){job}, -1, &world->arena, &tasks, &world->err),
        ERR_NOT_FOUND);
    assert_int_equal(stories_of(world, job), 0);
    for (uint16_t i = 0; i < LARGE_TASKS; i++) {
        assert_int_equal(try_find(world, (uint64_t)job * 1000 + i), ERR_NOT_FOUND);
        assert_int_equal(end_find(world, (uint64_t)job * 1000 + i), ERR_NOT_FOUND);
        assert_int_equal(tries_find(world, job, i), ERR_NOT_FOUND);
    }
}

static void a_large_job_is_deleted_at_once_and_goes_in_pieces(void **state)
{
    struct world *world = *state;
    int64_t all, left;

    large_job_store(world, 1, "large");
    large_job_store(world, 2, "other");
    beside_store(world, 1);
    beside_store(world, 2);
    assert_int_equal(beside_rows(world), 2 * 4);
    all = large_job_rows(world, 1);
    assert_true(all > 1500);
    assert_int_equal(stories_of(world, 0), 2 * LARGE_STORIES);
    assert_int_equal(try_find(world, 1000), 0);
    assert_int_equal(end_find(world, 1000), 0);
    assert_int_equal(tries_find(world, 1, 0), 0);
    delete_job(world, 1);
    assert_int_equal(store_deletions(world->store), 1);
    left = large_job_rows(world, 1);
    assert_in_range(all - left, 1, PIECE_ROWS_MAX);
    while (store_deletions(world->store) > 0) {
        const int64_t before = large_job_rows(world, 1);
        expect_hidden(world, 1);
        expect_nothing_beside(world, 1);
        assert_int_equal(stories_of(world, 0), LARGE_STORIES);
        change(world, (struct store_change){.kind = CHANGE_DELETIONS}, 0);
        assert_in_range(before - large_job_rows(world, 1), 1, PIECE_ROWS_MAX);
    }
    assert_int_equal(large_job_rows(world, 1), 0);
    assert_int_equal(beside_rows(world), 4);
    assert_int_equal(number_read(world, "SELECT count(*) FROM deleted_jobs"), 0);
    /* of the other one nothing has gone */
    assert_int_equal(large_job_rows(world, 2), all);
    assert_int_equal(try_find(world, 2000 + LARGE_TASKS - 1), 0);
    assert_int_equal(end_find(world, 2000), 0);
    change(world, (struct store_change){.kind = CHANGE_DELETIONS}, 0); /* nothing is left to do */
    assert_int_equal(large_job_rows(world, 2), all);
}

static void its_name_is_free_at_once_and_its_number_for_nobody(void **state)
{
    struct world *world = *state;
    struct job_id found, last_job;
    struct attempt_id last_attempt;
    int64_t all;

    large_job_store(world, 1, "large");
    delete_job(world, 1);
    large_job_store(world, 2, "large");
    all = large_job_rows(world, 2);
    assert_true(large_job_rows(world, 1) > 0);
    assert_int_equal(store_job_find(world->store, TEXT("alice"), TEXT("large"), &found, NULL), 0);
    assert_int_equal(found.v, 2);
    assert_int_equal(stories_of(world, 0), LARGE_STORIES);
    assert_int_equal(stories_of(world, 2), LARGE_STORIES);
    world_close(world);
    world_open(world);
    store_numbers(world->store, &last_job, &last_attempt);
    assert_int_equal(last_job.v, 2);
    assert_int_equal(last_attempt.v, 2000 + LARGE_TASKS - 1);
    assert_true(deletions_finish(world) > 1);
    assert_int_equal(large_job_rows(world, 1), 0);
    assert_int_equal(large_job_rows(world, 2), all);
    assert_int_equal(stories_of(world, 2), LARGE_STORIES);
}

static void the_next_start_goes_on(void **state)
{
    struct world *world = *state;
    unsigned starts = 0;

    large_job_store(world, 1, "large");
    delete_job(world, 1);
    for (; store_deletions(world->store) > 0; starts++) {
        const int64_t before = large_job_rows(world, 1);
        world_close(world);
        world_open(world);
        assert_int_equal(store_deletions(world->store), 1);
        assert_int_equal(large_job_rows(world, 1), before);
        expect_hidden(world, 1);
        for (int i = 0; i < 4 && store_deletions(world->store) > 0; i++)
            change(world, (struct store_change){.kind = CHANGE_DELETIONS}, 0);
    }
    assert_true(starts > 1);
    assert_int_equal(large_job_rows(world, 1), 0);
}

static void small_jobs_go_whole_and_many_of_them_in_pieces(void **state)
{
    enum { JOBS = 150 };
    static const char count[] = "SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM "
                                "task_attempts) + (SELECT count(*) FROM attempt_ends)";
    struct world *world = *state;
    int64_t all;

    for (uint32_t i = 1; i <= JOBS; i++) {
        char *name = arena_format(&world->output.arena, "j%u", i);
        struct task_record task = task_of(i, 0, 0, i);
        task.state = LIFE_COMPLETED;
        add_submitted(world, i, "alice", name);
        add_task(world, task);
    }
    assert_int_equal(commit(world, NULL, 0), 0);
    all = number_read(world, count);
    assert_int_equal(all, 2 * JOBS);
    delete_job(world, 1);
    assert_int_equal(store_deletions(world->store), 0);
    assert_int_equal(number_read(world, count), all - 2);
    for (uint32_t i = 2; i < JOBS; i++)
        add_deleted(world, i);
    assert_int_equal(commit(world, NULL, 0), 0);
    /* one commit of many deletions takes little for each */
    assert_int_equal(store_deletions(world->store), JOBS - 2);
    assert_int_equal(number_read(world, count), all - 2);
    assert_in_range(deletions_finish(world), 1, JOBS / 4);
    assert_int_equal(number_read(world, count), 2); /* of the last job */
}

/* An exit is told again after its job was deleted. */
static void an_end_that_is_told_again_leaves_nothing(void **state)
{
    struct world *world = *state;
    struct store_change end = {.kind = CHANGE_ATTEMPT_END,
                               .attempt_end = {.attempt = {1000 + LARGE_TASKS - 1},
                                               .rule = {.phrase = "", .file = "", .log = ""},
                                               .tail = TEXT("last words\n")}};
    int64_t left;

    large_job_store(world, 1, "large");
    delete_job(world, 1);
    left = large_job_rows(world, 1);
    assert_int_equal(commit(world, &end, 1), 0);
    assert_int_equal(large_job_rows(world, 1), left);
    deletions_finish(world);
    assert_int_equal(number_read(world, "SELECT count(*) FROM attempt_ends"), 0);
}

static int no_job(void *context, const struct job_record *job, struct text plan, struct err *err)
{
    (void)context;
    (void)plan;
    return err_fail(err, ERR_INTERNAL, "", "job %u is restored", job->id.v);
}

static int no_task(void *context, const struct task_record *task, struct err *err)
{
    (void)context;
    return err_fail(err, ERR_INTERNAL, "", "a task of job %u is restored", task->job.v);
}

static int no_node(void *context, const struct node_record *node, struct err *err)
{
    (void)context;
    return err_fail(err, ERR_INTERNAL, "", "node %u is restored", node->id.v);
}

static int no_cluster(void *context, const struct cluster_record *cluster, struct err *err)
{
    (void)context;
    return err_fail(err, ERR_INTERNAL, "", "cluster %s is restored", cluster->name);
}

static int any_counters(void *context, struct job_id job, struct attempt_id attempt,
                        struct err *err)
{
    (void)context;
    (void)job;
    (void)attempt;
    (void)err;
    return 0;
}

static void no_core_is_made_of_what_is_left(void **state)
{
    struct world *world = *state;
    const struct store_restore restore = {.counters = any_counters,
                                          .node = no_node,
                                          .cluster = no_cluster,
                                          .job = no_job,
                                          .task = no_task};
    struct task_record held = task_of(1, 1, LARGE_TASKS - 1, 1000 + LARGE_TASKS - 1);

    large_job_store(world, 1, "large");
    held.state = LIFE_COMPLETED;
    held.is_held = true;
    held.job_attempt = LARGE_ATTEMPTS;
    add_task(world, held);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_restore(world->reader, &restore, &world->err), ERR_INTERNAL);
    delete_job(world, 1);
    assert_true(number_read(world, "SELECT count(*) FROM tasks WHERE is_held <> 0") > 0);
    assert_int_equal(store_restore(world->reader, &restore, &world->err), 0);
}

static void a_piece_that_is_not_stored_is_done_again(void **state)
{
    static const struct memory_commit lost[] = {
        {ERR_IO, false}, {ERR_IO, true}, {ERR_UNAVAILABLE, false}, {ERR_IO, true}};
    struct world *world = *state;
    int64_t left;

    large_job_store(world, 1, "large");
    large_job_store(world, 2, "other");
    left = large_job_rows(world, 2);
    /* the event, too: whether its answer is lost or it is not stored */
    memory_script(world->memory, lost, 1);
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), ERR_IO);
    assert_int_equal(store_deletions(world->store), 0);
    memory_script(world->memory, &lost[1], 1);
    add_deleted(world, 1);
    assert_int_equal(commit(world, NULL, 0), ERR_IO);
    log_setup(LOG_ERROR, LOG_TEXT); /* what was lost is found */
    change(world, (struct store_change){.kind = CHANGE_SETTING, .setting = {"k", TEXT("v")}}, 0);
    assert_int_equal(store_deletions(world->store), 1);
    memory_script(world->memory, lost, COUNT_OF(lost));
    for (size_t i = 0; i < COUNT_OF(lost); i++) {
        struct store_change piece = {.kind = CHANGE_DELETIONS};
        assert_int_equal(commit(world, &piece, 1), lost[i].code);
        assert_int_equal(store_deletions(world->store), 1);
    }
    assert_true(deletions_finish(world) > 1);
    assert_int_equal(large_job_rows(world, 1), 0);
    assert_int_equal(large_job_rows(world, 2), left);
}

static int piece(struct world *world)
{
    struct store_change piece = {.kind = CHANGE_DELETIONS};
    return commit(world, &piece, 1);
}

/* Pieces until none waits that was not refused; how many were refused. */
static unsigned pieces_try(struct world *world)
{
    unsigned refused = 0;

    for (unsigned i = 0; store_deletions_waiting(world->store) > 0; i++) {
        assert_in_range(i, 0, 1000);
        const int code = piece(world);
        assert_true(code == 0 || code == ERR_INTERNAL);
        refused += code != 0;
    }
    return refused;
}

/* Rows of this table cannot be deleted. */
static void rows_stay(struct world *world, const char *table, const char *which)
{
    const char *text =
        world->address[0]
            ? arena_format(&world->arena,
                           "CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                           "IF %s THEN RAISE integrity_constraint_violation; END IF; "
                           "RETURN OLD; END $$; CREATE TRIGGER bad BEFORE DELETE ON %s "
                           "FOR EACH ROW EXECUTE FUNCTION bad()",
                           which, table)
            : arena_format(&world->arena,
                           "CREATE TRIGGER bad BEFORE DELETE ON %s WHEN %s "
                           "BEGIN SELECT RAISE(ABORT, 'stays'); END",
                           table, which);
    assert_int_equal(world_sql(world, text), 0);
}

static void rows_go(struct world *world)
{
    const char *text = world->address[0] ? "DROP FUNCTION bad CASCADE" : "DROP TRIGGER bad";
    assert_int_equal(world_sql(world, text), 0);
}

/* Neither its own deletion nor that of others fails by it, nor do their rows stay. */
static void a_row_that_cannot_be_deleted_holds_up_nobody(void **state)
{
    struct world *world = *state;
    int64_t all;

    log_setup(LOG_ERROR, LOG_TEXT);
    large_job_store(world, 1, "large");
    large_job_store(world, 2, "other");
    submit(world, 3, "alice", "small");
    submit(world, 4, "alice", "last");
    all = large_job_rows(world, 1);
    rows_stay(world, "task_attempts", "OLD.job = 1");
    delete_job(world, 1);
    assert_int_equal(large_job_rows(world, 1), all);
    assert_int_equal(store_deletions_waiting(world->store), 1);
    delete_job(world, 2);
    assert_true(large_job_rows(world, 2) < all);
    delete_job(world, 3);
    assert_int_equal(store_deletions(world->store), 2); /* a small one leaves nothing, as ever */
    assert_int_equal(pieces_try(world), 2);
    assert_int_equal(large_job_rows(world, 2), 0);
    assert_int_equal(large_job_rows(world, 1), all);
    assert_int_equal(store_deletions(world->store), 1);
    delete_job(world, 4);
    assert_int_equal(store_deletions(world->store), 1);
    /* it is tried again when nothing else is left */
    assert_int_equal(piece(world), ERR_INTERNAL);
    rows_go(world);
    assert_int_equal(piece(world), 0);
    assert_int_equal(store_deletions_waiting(world->store), 1);
    assert_true(deletions_finish(world) > 1);
    assert_int_equal(large_job_rows(world, 1), 0);
}

static int64_t tasks_left(struct world *world)
{
    return number_read(world, "SELECT count(*) FROM tasks");
}

static void those_that_were_refused_are_tried_in_turns(void **state)
{
    enum { JOBS = 12 };
    struct world *world = *state;

    log_setup(LOG_ERROR, LOG_TEXT);
    for (uint32_t i = 1; i <= JOBS; i++) {
        add_submitted(world, i, "alice", arena_format(&world->output.arena, "j%u", i));
        add_task(world, task_of(i, 0, 0, i));
    }
    assert_int_equal(commit(world, NULL, 0), 0);
    rows_stay(world, "tasks", "OLD.job IN (3, 7)");
    for (uint32_t i = 1; i <= JOBS; i++)
        add_deleted(world, i);
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_deletions(world->store), JOBS);
    assert_int_equal(pieces_try(world), 4); /* each with others, and alone */
    assert_int_equal(tasks_left(world), 2);
    rows_go(world);
    rows_stay(world, "tasks", "OLD.job = 3");
    assert_int_equal(piece(world), ERR_INTERNAL);
    assert_int_equal(store_deletions_waiting(world->store), 0);
    assert_int_equal(piece(world), 0);
    assert_int_equal(tasks_left(world), 1);
    assert_int_equal(store_deletions_waiting(world->store), 1); /* so that may be mended, too */
    assert_int_equal(pieces_try(world), 1);
    /* the next start knows nothing of it */
    world_close(world);
    world_open(world);
    assert_int_equal(store_deletions_waiting(world->store), 1);
    assert_int_equal(pieces_try(world), 1);
    rows_go(world);
    deletions_finish(world);
    assert_int_equal(tasks_left(world), 0);
}

/* No job is passed over for what passes by itself. */
static void a_disk_that_is_full_refuses_no_job(void **state)
{
    static const struct memory_commit full[] = {
        {ERR_UNAVAILABLE, false}, {ERR_BUSY, false}, {ERR_IO, false}};
    struct world *world = *state;

    log_setup(LOG_ERROR, LOG_TEXT);
    large_job_store(world, 1, "large");
    delete_job(world, 1);
    memory_script(world->memory, full, COUNT_OF(full));
    for (size_t i = 0; i < COUNT_OF(full); i++) {
        assert_int_equal(store_deletions_waiting(world->store), 1);
        assert_int_equal(piece(world), full[i].code);
    }
    assert_int_equal(store_deletions_waiting(world->store), 0);
    assert_true(deletions_finish(world) > 1);
}

/* Who asks which job's records are refused is not told of one that is deleted. */
static void what_a_job_leaves_is_not_its_records(void **state)
{
    struct world *world = *state;
    struct job_id job;

    large_job_store(world, 1, "large");
    rows_stay(world, "task_attempts", "OLD.job = 1");
    add_deleted(world, 1);
    assert_int_equal(store_refused_job(world->store, &world->output, &job, &world->err),
                     ERR_NOT_FOUND);
    assert_int_equal(commit(world, NULL, 0), 0);
    rows_go(world);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(a_large_job_is_deleted_at_once_and_goes_in_pieces),
    WORLD(its_name_is_free_at_once_and_its_number_for_nobody),
    WORLD(the_next_start_goes_on),
    WORLD(small_jobs_go_whole_and_many_of_them_in_pieces),
    WORLD(an_end_that_is_told_again_leaves_nothing),
    WORLD(no_core_is_made_of_what_is_left),
    WORLD(a_row_that_cannot_be_deleted_holds_up_nobody),
    WORLD(those_that_were_refused_are_tried_in_turns),
    WORLD(what_a_job_leaves_is_not_its_records),
    cmocka_unit_test_setup_teardown(a_piece_that_is_not_stored_is_done_again, setup_in_memory,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_disk_that_is_full_refuses_no_job, setup_in_memory, teardown),
};
UNIT_FILE(tests, NULL, NULL);
