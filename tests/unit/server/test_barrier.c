/* test_barrier.c — barriers at the server's port: held reports, restarts, tasks that never come. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "doc/problem.h"
#include "server/barrier.h"
#include "server/server.h"
#include "store/read.h"
#include "sys/file.h"
#include "sys/secret.h"
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
    char directory[64];
    struct server *server;
    struct service *service;
    struct arena arena;
    struct problems problems;
    struct err err;
    uint8_t key[SECRET_KEY_SIZE];
};

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    int code;
    struct job_id job;
    char text[200];
};

static void answered(void *context, const struct service_answer *answer)
{
    struct wait *wait = context;

    pthread_mutex_lock(&wait->lock);
    assert_false(wait->is_done);
    wait->is_done = true;
    wait->code = answer->code;
    wait->job = answer->job;
    snprintf(wait->text, sizeof wait->text, "%s", answer->text ? answer->text : "");
    pthread_cond_signal(&wait->done);
    pthread_mutex_unlock(&wait->lock);
}

static struct service_reply wait_init(struct wait *wait)
{
    *wait = (struct wait){.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    return (struct service_reply){answered, wait};
}

static int wait_for(struct wait *wait)
{
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 20;
    pthread_mutex_lock(&wait->lock);
    while (!wait->is_done)
        assert_int_equal(pthread_cond_timedwait(&wait->done, &wait->lock, &limit), 0);
    pthread_mutex_unlock(&wait->lock);
    return wait->code;
}

static bool is_done(struct wait *wait)
{
    pthread_mutex_lock(&wait->lock);
    bool done = wait->is_done;
    pthread_mutex_unlock(&wait->lock);
    return done;
}

static int told(void *context, const char *user, const char *password, struct err *err)
{
    (void)context, (void)user, (void)password, (void)err;
    return 0;
}

static void world_start(struct world *world)
{
    struct server_config *config;
    struct buf report = BUF_INIT, text = BUF_INIT;
    char path[100];

    snprintf(path, sizeof path, "%s.yaml", world->directory);
    buf_format(&text,
               "dataDirectory: %s\nengine: {kind: fake, fake: {runMilliseconds: 600000}}\n"
               "scheduling: {policy: first-fit, killGraceSeconds: 0}\n",
               world->directory);
    assert_int_equal(file_write(path, buf_as_text(&text), 0600, &world->err), 0);
    int code = server_config_read(path, &config, &report, &world->err);
    assert_string_equal(buf_cstr(&report), "");
    assert_int_equal(code, 0);
    unlink(path);
    buf_release(&report);
    buf_release(&text);
    assert_int_equal(
        server_new(config, &(struct server_teller){world, told}, &world->server, &world->err), 0);
    server_start(world->server);
    world->service = server_service(world->server);
    snprintf(path, sizeof path, "%s/key", world->directory);
    assert_int_equal(secret_key_load(path, world->key, &world->err), 0);
}

static void world_stop(struct world *world)
{
    server_stop(world->server);
    server_free(world->server);
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    strcpy(world->directory, "/tmp/test-barrier-XXXXXX");
    assert_non_null(mkdtemp(world->directory));
    arena_init(&world->arena);
    problems_init(&world->problems, &world->arena);
    world_start(world);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    char remove[100];

    world_stop(world);
    problems_release(&world->problems);
    arena_release(&world->arena);
    snprintf(remove, sizeof remove, "rm -rf %s", world->directory);
    free(world);
    return system(remove);
}

/* A job of three tasks of which all that take part have a container. */
static struct job_id job_start(struct world *world, const char *name, const char *extras)
{
    struct wait wait;
    struct service_reply reply = wait_init(&wait);
    struct store_reader *reader;
    struct store_tasks tasks;
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

    assert_int_equal(world->service->submit(world->service->context, "admin", text_of(text),
                                            &world->problems, reply, &world->err),
                     0);
    assert_int_equal(wait_for(&wait), 0);
    reader = world->service->reader_get(world->service->context, &world->err);
    for (size_t placed = 0; placed < 3;) { /* placed in the step that took it, or the next */
        assert_int_equal(store_tasks(reader, wait.job, -1, &world->arena, &tasks, &world->err), 0);
        placed = 0;
        for (size_t i = 0; i < tasks.count; i++)
            placed += tasks.items[i].attempt.v > 0;
    }
    world->service->reader_put(world->service->context, reader);
    return wait.job;
}

static struct attempt_id attempt_of(struct world *world, struct job_id job, size_t task)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_tasks tasks;

    assert_int_equal(store_tasks(reader, job, -1, &world->arena, &tasks, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    assert_true(task < tasks.count);
    return tasks.items[task].attempt;
}

static int report(struct world *world, struct service_barrier what, struct wait *wait)
{
    char token[BARRIER_TOKEN_SIZE];

    barrier_token(world->key, what.attempt, token);
    what.token = text_of(token);
    return world->service->barrier(world->service->context, &what, wait_init(wait), &world->err);
}

static struct service_barrier come(struct attempt_id attempt, enum store_barrier kind)
{
    return (struct service_barrier){
        .attempt = attempt, .kind = kind, .is_up = true, .is_waiting = true};
}

static uint64_t held(struct world *world)
{
    struct buf text = BUF_INIT;
    uint64_t count;

    world->service->metrics(world->service->context, &text);
    const char *at = strstr(buf_cstr(&text), "\nskep_barrier_requests_held ");
    assert_non_null(at);
    count = strtoull(at + strlen("\nskep_barrier_requests_held "), NULL, 10);
    buf_release(&text);
    return count;
}

static void act(struct world *world, enum service_action action, struct job_id job)
{
    struct wait wait;
    struct service_reply reply = wait_init(&wait);

    assert_int_equal(
        world->service->act(world->service->context, action, "admin", job, reply, &world->err), 0);
    assert_int_equal(wait_for(&wait), 0);
}

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
    assert_false(is_done(&waits[0]));
    while (held(world) != 2) /* counted after the older one was let go */
        sched_yield();
    assert_int_equal(report(world, come(attempts[2], BARRIER_START), &waits[2]), 0);
    assert_int_equal(wait_for(&waits[0]), 0);
    assert_int_equal(wait_for(&again), 0);
    assert_int_equal(wait_for(&waits[2]), 0);
    assert_int_equal(held(world), 0);
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
    barrier_token(world->key, attempt_of(world, job, 1), token); /* a peer's */
    what.token = text_of(token);
    assert_int_equal(
        world->service->barrier(world->service->context, &what, wait_init(&wait), &world->err),
        ERR_UNAUTHORIZED);
    assert_int_equal(report(world, come((struct attempt_id){4711}, BARRIER_START), &wait), 0);
    assert_int_equal(wait_for(&wait), ERR_NOT_FOUND);
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
    table = barrier_table_new(world->service->store, reader);
    barrier_report(table, &what[0], wait_init(&waits[0]));
    barrier_report(table, &what[1], wait_init(&waits[1]));
    barrier_table_free(table);
    assert_int_equal(wait_for(&waits[0]), ERR_UNAVAILABLE);
    assert_int_equal(wait_for(&waits[1]), ERR_UNAVAILABLE);
    table = barrier_table_new(world->service->store, reader);
    barrier_report(table, &what[2], wait_init(&waits[2]));
    barrier_report(table, &what[0], wait_init(&waits[0]));
    assert_false(is_done(&waits[0]));
    barrier_report(table, &what[1], wait_init(&waits[1]));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(wait_for(&waits[i]), 0);
    barrier_table_free(table);
    /* one that had not read its answer asks the next server */
    table = barrier_table_new(world->service->store, reader);
    barrier_report(table, &what[1], wait_init(&waits[1]));
    assert_int_equal(wait_for(&waits[1]), 0);
    barrier_table_free(table);
    world->service->reader_put(world->service->context, reader);
}

static struct record row_of(struct world *world, struct job_id job, size_t task)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_tasks tasks;

    assert_int_equal(store_tasks(reader, job, -1, &world->arena, &tasks, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    return (struct record){.kind = RECORD_TASK, .task = tasks.items[task]};
}

/* A try that ends is not counted; its next one is waited for, unless there is none. */
static void tasks_that_end(void **state)
{
    struct world *world = *state;
    struct job_id job = job_start(world, "a", "startBarrier: true");
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct barrier_table *table = barrier_table_new(world->service->store, reader);
    struct record row = row_of(world, job, 0), scaled = row_of(world, job, 2);
    struct wait waits[3];
    struct service_barrier what[3];

    for (size_t i = 0; i < 3; i++)
        what[i] = come(attempt_of(world, job, i), BARRIER_START);
    barrier_report(table, &what[0], wait_init(&waits[0]));
    barrier_report(table, &what[1], wait_init(&waits[1]));
    row.task.state = LIFE_ATTEMPT_COMPLETED;
    barrier_take(table, &row, 1);
    assert_int_equal(wait_for(&waits[0]), ERR_CONFLICT);
    assert_string_equal(waits[0].text, "this try has ended");
    /* one that is scaled away is not waited for, but the other is */
    scaled.task.is_deletion_pending = true;
    barrier_take(table, &scaled, 1);
    assert_false(is_done(&waits[1]));
    row.task.state = LIFE_COMPLETED;
    row.task.completion.code = 7;
    barrier_take(table, &row, 1);
    assert_int_equal(wait_for(&waits[1]), ERR_CONFLICT);
    assert_string_equal(waits[1].text, "w-0 has ended with code 7");
    barrier_report(table, &what[1], wait_init(&waits[1])); /* for good */
    assert_int_equal(wait_for(&waits[1]), ERR_CONFLICT);
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
    act(world, SERVICE_STOP, job);
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
        assert_string_equal(first.text, is_up ? "" : "w-1 has no ssh server");
        assert_int_equal(report(world, come(attempt_of(world, job, 2), BARRIER_SSH), &third), 0);
        assert_int_equal(wait_for(&third), is_up ? 0 : ERR_CONFLICT); /* no part in it */
        act(world, SERVICE_STOP, job);
    }
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD(all_wait_for_the_last),
        WORLD(only_the_try_itself_may_say_so),
        WORLD(a_restart_loses_nothing),
        WORLD(tasks_that_end),
        WORLD(the_server_ends),
        WORLD(the_end_of_the_job_lets_go),
        WORLD(the_ssh_barrier_counts_servers),
    };
    struct err err;

    log_setup(LOG_ERROR, LOG_TEXT);
    assert_int_equal(secret_init(&err), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
