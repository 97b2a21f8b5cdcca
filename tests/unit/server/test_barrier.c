/* Barriers at the server's port: held reports, restarts, tasks that never come. */
#include "unit.h"
#include "world.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/barrier.h"
#include "server/rows_core.h"
#include "server/state.h"
#include "store/read.h"
#include "sys/key_file.h"

static uint8_t key[SECRET_KEY_SIZE];

static int barrier_setup(void **state)
{
    int code = setup_with(state, "runMilliseconds: 600000",
                          "scheduling: {policy: first-fit, killGraceSeconds: 0}\n");
    struct world *world = *state;
    char path[100];

    snprintf(path, sizeof path, "%s/key", world->directory);
    struct key_file keys;
    assert_int_equal(key_file_load(path, &keys, &world->err), 0);
    memcpy(key, keys.master, sizeof key);
    return code;
}

/* A job of three tasks of which all that take part have a container. */
static struct job_id job_start(struct world *world, const char *name, const char *extras)
{
    struct job_id job;
    const char *text = arena_format(
        &world->arena,
        "protocolVersion: 2\nname: %s\ntype: job\n"
        "prerequisites:\n- {name: i, type: dockerimage, uri: x}\n"
        "taskRoles:\n"
        "  w: &w\n    instances: 2\n    dockerImage: i\n    completion: {minFailedInstances: -1}\n"
        "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n    commands: [run]\n"
        "  p:\n    instances: 1\n    dockerImage: i\n    completion: {minFailedInstances: -1}\n"
        "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n    commands: [run]\n"
        "extras: {%s}\n",
        name, extras);

    assert_int_equal(submit(world, text, &job), 0);
    wait_until_tasks_run(world, job);
    return job;
}

static struct attempt_id attempt_of(struct world *world, struct job_id job, size_t task)
{
    const struct store_tasks tasks = tasks_of(world, job);

    assert_true(task < tasks.count);
    return tasks.items[task].attempt;
}

static int report(struct world *world, struct service_barrier what, struct wait *wait)
{
    char token[BARRIER_TOKEN_SIZE];

    barrier_token(key, what.attempt, token);
    what.token = text_of(token);
    return world->service->barrier(world->service->context, &what, wait_init(wait), &world->err);
}

static struct service_barrier come(struct attempt_id attempt, enum barrier_kind kind)
{
    return (struct service_barrier){
        .attempt = attempt, .kind = kind, .is_up = true, .is_waiting = true};
}

#define HELD "skep_barrier_requests_held"

static void all_wait_for_the_last(void **state)
{
    struct world *world = *state;
    struct job_id job = job_start(world, "a", "startBarrier: true");
    struct wait waits[3], again, other;
    struct attempt_id attempts[3];

    for (size_t i = 0; i < 3; i++)
        attempts[i] = attempt_of(world, job, i);
    assert_int_equal(report(world, come(attempts[0], BARRIER_START), &waits[0]), 0);
    assert_int_equal(report(world, come(attempts[1], BARRIER_START), &waits[1]), 0);
    /* asked anew: the older request is let go, the task has still come */
    assert_int_equal(report(world, come(attempts[1], BARRIER_START), &again), 0);
    assert_int_equal(wait_for(&waits[1]), ERR_UNAVAILABLE);
    assert_false(wait_is_done(&waits[0]));
    metric_await(world, HELD, 2); /* counted after the older one was let go */
    assert_int_equal(report(world, come(attempts[2], BARRIER_START), &waits[2]), 0);
    assert_int_equal(wait_for(&waits[0]), 0);
    assert_int_equal(wait_for(&again), 0);
    assert_int_equal(wait_for(&waits[2]), 0);
    assert_int_equal(metric(world, HELD), 0);
    /* who comes late goes on at once */
    assert_int_equal(report(world, come(attempts[0], BARRIER_START), &other), 0);
    assert_int_equal(wait_for(&other), 0);
}

static void only_the_try_itself_may_say_so(void **state)
{
    struct world *world = *state;
    struct job_id job = job_start(world, "a", "startBarrier: true");
    struct service_barrier what = come(attempt_of(world, job, 0), BARRIER_START);
    char token[BARRIER_TOKEN_SIZE];
    struct wait wait;

    what.token = TEXT("");
    assert_int_equal(
        world->service->barrier(world->service->context, &what, wait_init(&wait), &world->err),
        ERR_UNAUTHORIZED);
    barrier_token(key, attempt_of(world, job, 1), token); /* a peer's */
    what.token = text_of(token);
    assert_int_equal(
        world->service->barrier(world->service->context, &what, wait_init(&wait), &world->err),
        ERR_UNAUTHORIZED);
    assert_int_equal(report(world, come((struct attempt_id){4711}, BARRIER_START), &wait), 0);
    assert_int_equal(wait_for(&wait), ERR_NOT_FOUND);
}

/* The report, with a core as the rows have it: the server's own belongs to its thread. */
static void report_to(struct world *world, struct barrier_table *table,
                      const struct service_barrier *what, struct wait *wait,
                      const struct output *output)
{
    const struct rows_core_ask ask = {.config = &world->server->config->core};
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct core *core;

    assert_int_equal(rows_core(reader, &ask, &core, &world->err), 0);
    barrier_report(table, core, what, wait_init(wait), output);
    core_free(core);
    world->service->reader_put(world->service->context, reader);
}

/* A round of the core thread: records and a report, one commit, the answers. */
static void round_run(struct world *world, struct barrier_table *table, const struct record *record,
                      const struct service_barrier *what, struct wait *wait)
{
    struct store_change changes[2];
    struct store_batch batch = {.changes = changes};
    struct output output;

    output_init(&output);
    if (record)
        *ARRAY_ADD(&output.records) = *record;
    barrier_take(table, output.records.items, output.records.count);
    if (what)
        report_to(world, table, what, wait, &output);
    batch.change_count = barrier_change_count(table);
    assert_in_range(batch.change_count, 0, 2);
    barrier_changes(table, changes);
    if (batch.change_count > 0)
        assert_int_equal(store_commit(world->service->store, &batch, &world->err), 0);
    barrier_answer(table);
    output_release(&output);
}

static void come_to(struct world *world, struct barrier_table *table,
                    const struct service_barrier *what, struct wait *wait)
{
    round_run(world, table, NULL, what, wait);
}

static void take(struct world *world, struct barrier_table *table, const struct record *record)
{
    round_run(world, table, record, NULL, NULL);
}

/* What a restart leaves is the store: a table after a table stands for server after server. (The
 * containers of the fake engine do not outlive it.) */
static void a_restart_loses_nothing(void **state)
{
    struct world *world = *state;
    struct job_id job = job_start(world, "a", "startBarrier: true");
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct wait waits[3];
    struct barrier_table *table;
    struct service_barrier what[3];

    for (size_t i = 0; i < 3; i++)
        what[i] = come(attempt_of(world, job, i), BARRIER_START);
    server_stop(world->server); /* only one may write the store */
    table = barrier_table_new(reader);
    come_to(world, table, &what[0], &waits[0]);
    come_to(world, table, &what[1], &waits[1]);
    barrier_table_free(table);
    assert_int_equal(wait_for(&waits[0]), ERR_UNAVAILABLE);
    assert_int_equal(wait_for(&waits[1]), ERR_UNAVAILABLE);
    table = barrier_table_new(reader);
    come_to(world, table, &what[2], &waits[2]);
    come_to(world, table, &what[0], &waits[0]);
    assert_false(wait_is_done(&waits[0]));
    come_to(world, table, &what[1], &waits[1]);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(wait_for(&waits[i]), 0);
    barrier_table_free(table);
    /* one that had not read its answer asks the next server */
    table = barrier_table_new(reader);
    come_to(world, table, &what[1], &waits[1]);
    assert_int_equal(wait_for(&waits[1]), 0);
    barrier_table_free(table);
    world->service->reader_put(world->service->context, reader);
}

static struct record row_of(struct world *world, struct job_id job, size_t task)
{
    return (struct record){.kind = RECORD_TASK, .task = tasks_of(world, job).items[task]};
}

/* A try that ends is not counted; its next one is waited for, unless there is none. */
static void tasks_that_end(void **state)
{
    struct world *world = *state;
    struct job_id job = job_start(world, "a", "startBarrier: true");
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct barrier_table *table = barrier_table_new(reader);
    struct record row = row_of(world, job, 0), scaled = row_of(world, job, 2);
    struct wait waits[3];
    struct service_barrier what[3];

    for (size_t i = 0; i < 3; i++)
        what[i] = come(attempt_of(world, job, i), BARRIER_START);
    come_to(world, table, &what[0], &waits[0]);
    come_to(world, table, &what[1], &waits[1]);
    row.task.state = LIFE_ATTEMPT_COMPLETED;
    take(world, table, &row);
    assert_int_equal(wait_for(&waits[0]), ERR_CONFLICT);
    assert_string_equal(waits[0].answer.text, "this try has ended");
    /* one that is scaled away is not waited for, but the other is */
    scaled.task.is_deletion_pending = true;
    take(world, table, &scaled);
    assert_false(wait_is_done(&waits[1]));
    row.task.state = LIFE_COMPLETED;
    row.task.completion.code = 7;
    take(world, table, &row);
    assert_int_equal(wait_for(&waits[1]), ERR_CONFLICT);
    assert_string_equal(waits[1].answer.text, "w-0 has ended with code 7");
    come_to(world, table, &what[1], &waits[1]); /* for good */
    assert_int_equal(wait_for(&waits[1]), ERR_CONFLICT);
    barrier_table_free(table);
    world->service->reader_put(world->service->context, reader);
}

/* What a commit that fails would have told is told to nobody: all ask again. */
static void a_commit_that_fails_passes_nobody(void **state)
{
    struct world *world = *state;
    struct job_id job = job_start(world, "a", "startBarrier: true");
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct barrier_table *table = barrier_table_new(reader);
    struct output output;
    struct wait waits[3];

    output_init(&output);
    for (size_t i = 0; i < 3; i++) {
        struct service_barrier what = come(attempt_of(world, job, i), BARRIER_START);
        report_to(world, table, &what, &waits[i], &output);
    }
    assert_int_equal(barrier_change_count(table), 1);
    assert_false(wait_is_done(&waits[0])); /* nothing is told before the commit */
    barrier_clear(table, "nothing can be stored now");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(wait_for(&waits[i]), ERR_UNAVAILABLE);
    assert_int_equal(barrier_change_count(table), 0);
    assert_int_equal(barrier_held_count(table), 0);
    output_release(&output);
    barrier_table_free(table);
    world->service->reader_put(world->service->context, reader);
}

/* A try that is known from the records of this round alone, and one that they end. */
static void the_records_of_the_round_come_first(void **state)
{
    struct world *world = *state;
    struct job_id job = job_start(world, "a", "startBarrier: true");
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct barrier_table *table = barrier_table_new(reader);
    struct service_barrier what = come(attempt_of(world, job, 0), BARRIER_START);
    struct record row = row_of(world, job, 0);
    struct wait wait;

    row.task.state = LIFE_ATTEMPT_COMPLETED;
    round_run(world, table, &row, &what, &wait);
    assert_int_equal(wait_for(&wait), ERR_CONFLICT);
    assert_string_equal(wait.answer.text, "this try has ended");
    row.task.state = LIFE_RUNNING;
    what.attempt.v = row.task.attempt.v = 4711; /* not stored yet */
    round_run(world, table, &row, &what, &wait);
    assert_int_equal(barrier_held_count(table), 1);
    barrier_clear(table, "the test ends");
    assert_int_equal(wait_for(&wait), ERR_UNAVAILABLE);
    barrier_table_free(table);
    world->service->reader_put(world->service->context, reader);
}

static void the_server_ends(void **state)
{
    struct world *world = *state;
    struct job_id job = job_start(world, "a", "startBarrier: true");
    struct service_barrier what = come(attempt_of(world, job, 0), BARRIER_START);
    struct wait wait;

    assert_int_equal(report(world, what, &wait), 0);
    server_stop(world->server);
    assert_int_equal(wait_for(&wait), ERR_UNAVAILABLE);
    assert_int_equal(report(world, what, &wait), ERR_UNAVAILABLE);
}

static void the_end_of_the_job_lets_go(void **state)
{
    struct world *world = *state;
    struct job_id job = job_start(world, "a", "startBarrier: true");
    struct wait wait;
    struct attempt_id attempt = attempt_of(world, job, 0);

    assert_int_equal(report(world, come(attempt, BARRIER_START), &wait), 0);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    assert_int_equal(wait_for(&wait), ERR_CONFLICT);
    assert_int_equal(report(world, come(attempt, BARRIER_START), &wait), 0);
    assert_int_equal(wait_for(&wait), ERR_CONFLICT);
}

/* Only tasks with ssh count, whether they wait or not; one without a server ends it for all. */
static void the_ssh_barrier_counts_servers(void **state)
{
    static const char EXTRAS[] = "com.microsoft.pai.runtimeplugin: [{plugin: ssh, taskroles: [w], "
                                 "parameters: {jobssh: true, sshbarrier: true}}]";
    struct world *world = *state;

    for (int is_up = 0; is_up < 2; is_up++) {
        struct job_id job = job_start(world, is_up ? "a" : "b", EXTRAS);
        struct service_barrier what = come(attempt_of(world, job, 1), BARRIER_SSH);
        struct wait first, second, third;
        what.is_up = is_up;
        what.is_waiting = false;
        assert_int_equal(report(world, come(attempt_of(world, job, 0), BARRIER_SSH), &first), 0);
        assert_int_equal(report(world, what, &second), 0);
        assert_int_equal(wait_for(&second), 0);
        assert_int_equal(wait_for(&first), is_up ? 0 : ERR_CONFLICT);
        assert_string_equal(first.answer.text, is_up ? "" : "w-1 has no ssh server");
        assert_int_equal(report(world, come(attempt_of(world, job, 2), BARRIER_SSH), &third), 0);
        assert_int_equal(wait_for(&third), is_up ? 0 : ERR_CONFLICT); /* no part in it */
        assert_int_equal(act(world, SERVICE_STOP, job), 0);
    }
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, barrier_setup, teardown)

static const struct CMUnitTest tests[] = {
    WORLD(all_wait_for_the_last),
    WORLD(only_the_try_itself_may_say_so),
    WORLD(a_restart_loses_nothing),
    WORLD(tasks_that_end),
    WORLD(a_commit_that_fails_passes_nobody),
    WORLD(the_records_of_the_round_come_first),
    WORLD(the_server_ends),
    WORLD(the_end_of_the_job_lets_go),
    WORLD(the_ssh_barrier_counts_servers),
};
UNIT_FILE(tests, world_begin, NULL);
