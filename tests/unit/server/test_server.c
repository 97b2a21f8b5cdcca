/* test_server.c — the server without HTTP: requests in, durable answers out, restarts, failures. */
#include "base/buf.h"
#include "base/err.h"
#include "core/core.h"
#include "doc/problem.h"
#include "engine/fake/fake.h"
#include "server/audit.h"
#include "server/config.h"
#include "server/server.h"
#include "server/state.h"
#include "store/read.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/secret.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "world.h"

static void a_job_runs_and_is_there_after_a_restart(void **state)
{
    struct world *world = *state;
    struct store_reader *reader;
    struct store_source source;
    struct stories stories;
    struct job_id job, again;

    assert_int_equal(strlen(world->password), 20); /* a first start */
    assert_int_equal(submit(world, job_text(world, "train", ""), &job), 0);
    assert_int_equal(job.v, 1);
    assert_int_equal(submit(world, job_text(world, "train", ""), &again), ERR_CONFLICT);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    world_stop(world);
    world_start(world);
    assert_string_equal(world->password, "");
    assert_int_equal(shown(world, job), PUBLIC_SUCCEEDED);
    /* the name stays taken, though the core has forgotten the job */
    assert_int_equal(submit(world, job_text(world, "train", ""), &again), ERR_CONFLICT);
    assert_non_null(strstr(world->err.text, "exists"));
    assert_int_equal(submit(world, job_text(world, "train2", ""), &again), 0);
    assert_int_equal(again.v, 2);
    reader = world->service->reader_get(world->service->context, &world->err);
    assert_non_null(reader);
    assert_int_equal(store_job_source(reader, job, &world->arena, &source, &world->err), 0);
    assert_int_equal(text_find(source.source, TEXT("topsecret")), SIZE_MAX);
    assert_int_equal(text_find(source.sealed, TEXT("topsecret")), SIZE_MAX);
    assert_true(source.sealed.length > 0);
    assert_int_equal(store_stories(reader, &(struct story_filter){.job = job, .is_warning = -1},
                                   true, &world->arena, &stories, &world->err),
                     0);
    assert_true(stories.count >= 3);
    world->service->reader_put(world->service->context, reader);
    wait_until(world, again, PUBLIC_SUCCEEDED);
}

static void wrong_files_and_forbidden_clusters_are_refused(void **state)
{
    struct world *world = *state;
    const char *const vc1 = "vc1", *const vc3 = "vc3";
    struct store_user bob = {"bob", "", "", false, {0}, {&vc1, 1}, "{}", 1};
    struct job_id job;

    /* a policy for which virtual clusters are names alone */
    world_stop(world);
    world->extra = "scheduling: {policy: first-fit}\n";
    world_start(world);
    assert_int_equal(submit(world, "protocolVersion: 2\nname: x\n", &job), ERR_INVALID);
    assert_true(world->problems.error_count > 0);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = bob}), 0);
    world->user = "bob";
    assert_int_equal(submit(world, job_text(world, "a", "defaults: {virtualCluster: vc2}\n"), &job),
                     ERR_FORBIDDEN);
    assert_string_equal(world->err.path, "defaults.virtualCluster");
    assert_int_equal(submit(world, job_text(world, "a", "defaults: {virtualCluster: vc1}\n"), &job),
                     0);
    /* a group gives its members what it was granted */
    struct store_group team = {"team", "", {&vc3, 1}, 1};
    struct store_member in_team = {"team", false};
    assert_int_equal(submit(world, job_text(world, "b", "defaults: {virtualCluster: vc3}\n"), &job),
                     ERR_FORBIDDEN);
    bob.groups = (struct store_members){&in_team, 1};
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_SET, .user = bob}),
                     ERR_NOT_FOUND);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_GROUP_ADD, .group = team}),
                     0);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_SET, .user = bob}), 0);
    assert_int_equal(submit(world, job_text(world, "b", "defaults: {virtualCluster: vc3}\n"), &job),
                     0);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_GROUP_REMOVE,
                                                         .group = {.name = "team"}}),
                     0);
    assert_int_equal(submit(world, job_text(world, "c", "defaults: {virtualCluster: vc3}\n"), &job),
                     ERR_FORBIDDEN);
    world->user = "nobody";
    assert_int_equal(submit(world, job_text(world, "a", "defaults: {virtualCluster: vc1}\n"), &job),
                     ERR_NOT_FOUND);
}

static void jobs_are_stopped_and_deleted(void **state)
{
    struct world *world = *state;
    struct job_id job;

    const char *quick = world->engine;

    world_stop(world);
    world->extra = "scheduling: {finishedKeepSeconds: 0}\n";
    world->engine = "runMilliseconds: 600000";
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    assert_int_equal(act(world, SERVICE_DELETE, job), ERR_CONFLICT); /* it lives */
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
    world_stop(world);
    world->engine = quick;
    world_start(world);
    assert_int_equal(act(world, SERVICE_START, job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(act(world, SERVICE_DELETE, job), 0);
    assert_int_equal(act(world, SERVICE_DELETE, job), ERR_NOT_FOUND);
    assert_int_equal(act(world, SERVICE_START, job), ERR_NOT_FOUND);
    assert_int_equal(act(world, SERVICE_STOP, (struct job_id){99}), ERR_NOT_FOUND);
}

static void a_stopped_job_starts_again_after_a_restart(void **state)
{
    struct world *world = *state;
    struct job_id job;

    /* more than there is: it waits */
    assert_int_equal(submit(world,
                            "protocolVersion: 2\nname: big\ntype: job\n"
                            "prerequisites:\n- {name: i, type: dockerimage, uri: x}\n"
                            "taskRoles:\n  w:\n    dockerImage: i\n    commands: [x]\n"
                            "    resourcePerInstance: {cpu: 60, memoryMB: 1, gpu: 0}\n",
                            &job),
                     0);
    assert_int_equal(act(world, SERVICE_STOP, job), 0);
    wait_until(world, job, PUBLIC_STOPPED);
    world_stop(world);
    world_start(world);
    assert_int_equal(act(world, SERVICE_START, job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
}

static void tags_users_and_settings_change_durably(void **state)
{
    struct world *world = *state;
    struct job_id job;
    struct store_user user = {"bob", "", "", false, {0}, {0}, "{}", 1};

    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    assert_int_equal(
        change(world, (struct store_change){.kind = CHANGE_TAG_ADD, .tag = {job, "red"}}), 0);
    assert_int_equal(
        change(world, (struct store_change){.kind = CHANGE_TAG_REMOVE, .tag = {job, "blue"}}),
        ERR_NOT_FOUND);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = user}),
                     0);
    assert_int_equal(change(world, (struct store_change){.kind = CHANGE_USER_ADD, .user = user}),
                     ERR_CONFLICT);
    assert_int_equal(
        change(world, (struct store_change){.kind = CHANGE_USER_ADD,
                                            .user = {"admin", "", "", true, {0}, {0}, "{}", 1}}),
        ERR_CONFLICT); /* the first start has made it */
}

static void readiness_and_metrics_speak(void **state)
{
    struct world *world = *state;
    struct service_check checks[SERVICE_CHECKS_MAX];
    struct job_id job;
    struct buf text = BUF_INIT;
    size_t count;

    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    count = world->service->ready(world->service->context, checks);
    for (size_t i = 0; i < count; i++)
        assert_true(checks[i].is_ok);
    assert_true(world->service->is_alive(world->service->context));
    world->service->metrics(world->service->context, &text);
    assert_non_null(strstr(buf_cstr(&text), "\nskep_creates_total 2\n"));
    assert_non_null(strstr(buf_cstr(&text), "skep_request_seconds_count 1\n"));
    buf_release(&text);
    server_drain(world->server);
    assert_int_equal(submit(world, job_text(world, "b", ""), &job), ERR_UNAVAILABLE);
    count = world->service->ready(world->service->context, checks);
    assert_false(checks[count - 1].is_ok);
}

static void a_second_server_is_refused(void **state)
{
    struct world *world = *state;
    struct world other = {.extra = "", .engine = "nodes: 1"};
    pid_t child = fork();
    int status;

    if (child == 0) { /* the lock is one process's own */
        strcpy(other.directory, world->directory);
        _exit(world_try(&other) == ERR_CONFLICT && strstr(other.err.text, "in use") ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void a_reload_takes_effect(void **state)
{
    struct world *world = *state;
    struct server_config *config;
    struct buf report = BUF_INIT, keys = BUF_INIT;
    char path[100];
    struct job_id job;

    snprintf(path, sizeof path, "%s/new.yaml", world->directory);
    assert_int_equal(file_write(path,
                                TEXT("engine: {kind: fake}\nscheduling: {finishedKeepSeconds: 7}\n"
                                     "api: {listen: \"127.0.0.1:1\"}\n"),
                                0600, &world->err),
                     0);
    assert_int_equal(server_config_read(path, &config, &report, &world->err), 0);
    assert_int_equal(config->core.finished_keep_s, 7);
    server_reload(world->server, config);
    assert_int_equal(submit(world, job_text(world, "after", ""), &job), 0);
    buf_release(&report);
    buf_release(&keys);
}

/* No file grows any more, until disk_empty. */
static struct rlimit disk_fill(void)
{
    struct rlimit before, full;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    full = before;
    full.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    log_to(-1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    return before;
}

static void disk_empty(struct rlimit before)
{
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* The containers of a job of which all tasks run end now. */
static size_t containers_finish(struct world *world, struct job_id job)
{
    const struct store_tasks tasks = tasks_of(world, job);

    for (size_t i = 0; i < tasks.count; i++)
        assert_int_equal(
            engine_fake_finish(world->server->engine, tasks.items[i].attempt, &world->err), 0);
    return tasks.count;
}

/* They end, and nobody can write it down. */
static void containers_finish_unwritten(struct world *world, struct job_id job)
{
    metric_await(world, "skep_facts_kept", containers_finish(world, job));
}

static void a_full_disk_refuses_requests_and_loses_no_fact(void **state)
{
    struct world *world = *state;
    struct service_check checks[SERVICE_CHECKS_MAX];
    struct rlimit before;
    struct job_id job, refused;

    world_stop(world);
    world->engine = "runMilliseconds: 600000";
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "runs", ""), &job), 0);
    wait_until_tasks_run(world, job);
    before = disk_fill();
    assert_int_equal(submit(world, job_text(world, "more", ""), &refused), ERR_UNAVAILABLE);
    assert_non_null(strstr(world->err.text, "nothing can be stored: "));
    assert_int_equal(submit(world, job_text(world, "more", ""), &refused), ERR_UNAVAILABLE);
    assert_int_equal(act(world, SERVICE_STOP, job), ERR_UNAVAILABLE);
    world->service->ready(world->service->context, checks);
    assert_false(checks[0].is_ok);
    containers_finish_unwritten(world, job);
    assert_int_equal(shown(world, job), PUBLIC_RUNNING);
    disk_empty(before);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    log_to(2);
    assert_int_equal(submit(world, job_text(world, "more", ""), &refused), 0);
    assert_int_equal(refused.v, 2); /* what was refused has left no trace */
    wait_until_tasks_run(world, refused);
    containers_finish(world, refused);
    wait_until(world, refused, PUBLIC_SUCCEEDED);
    world->service->ready(world->service->context, checks);
    assert_true(checks[0].is_ok);
}

/* Of a server that has ended: its log gives what its rows say. */
static void expect_audit(struct world *world, uint64_t restores, uint64_t jobs)
{
    struct server_config *config = config_of(world, world->extra);
    struct audit audit;
    struct store *store;
    int code;

    assert_int_equal(store_open(world->directory, &store, &world->err), 0);
    code = server_audit(store, &config->core, &audit, &world->err);
    store_close(store);
    server_config_free(config);
    assert_string_equal(code < 0 ? world->err.text : "", "");
    assert_int_equal(audit.restores, restores);
    assert_int_equal(audit.jobs, jobs);
    assert_true(audit.events > restores);
}

/* Each ended attempt of the job has both: the exit's row and what is kept of its end. */
static void expect_ends(struct world *world, struct store *store, struct job_id job, size_t *ended)
{
    struct store_reader *reader;
    struct store_tasks tasks;

    assert_int_equal(store_reader_open(store, &reader, &world->err), 0);
    assert_int_equal(store_tasks(reader, job, -1, &world->arena, &tasks, &world->err), 0);
    for (size_t i = 0; i < tasks.count; i++) {
        const struct task_record *task = &tasks.items[i];
        struct store_end end;
        int code = store_attempt_end(reader, task->attempt, &world->arena, &end, &world->err);
        if (task->state < LIFE_ATTEMPT_COMPLETED) {
            assert_int_equal(code, ERR_NOT_FOUND);
            continue;
        }
        if (task->completion.code != 231) { /* ended with its peer, or lost with the server */
            assert_true(code == ERR_NOT_FOUND || end.rule.number == 0);
            continue;
        }
        assert_int_equal(code, 0);
        assert_true(text_is(end.tail, "started\nSyntaxError: invalid syntax\n"));
        assert_int_equal(end.rule.code, 231);
        assert_string_equal(end.rule.phrase, "ContainerSyntaxError");
        assert_string_equal(end.rule.file, "");
        assert_string_equal(end.rule.log, "user");
        assert_true(text_is(end.rule.text, "SyntaxError: invalid syntax"));
        assert_true(end.rule.number > 0 && end.rule.pattern > 0 && end.rule.line > 0);
        (*ended)++;
    }
    store_reader_close(reader);
}

#define SYNTAX_ERROR "exitCode: 1, log: \"\\e[31mSyntaxError: invalid syntax\\e[0m\\n\""

static void the_end_of_an_attempt_outlives_a_full_disk(void **state)
{
    struct world *world = *state;
    struct rlimit before;
    struct job_id job;
    size_t ended = 0;

    world_stop(world);
    world->engine = "runMilliseconds: 600000, " SYNTAX_ERROR;
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "fails", ""), &job), 0);
    wait_until_tasks_run(world, job);
    before = disk_fill();
    containers_finish_unwritten(world, job);
    assert_int_equal(shown(world, job), PUBLIC_RUNNING);
    disk_empty(before);
    wait_until(world, job, PUBLIC_FAILED);
    log_to(2);
    expect_ends(world, world->service->store, job, &ended);
    assert_true(ended >= 1); /* one fails, the other ends with the attempt or by itself */
}

/* A server that takes job after job, and tells of each by one byte; two have ended by the third. */
static void submit_until_killed(struct world *world, int round, int tell)
{
    struct job_id job;

    world_start(world);
    for (int i = 0;
         submit(world, job_text(world, arena_format(&world->arena, "r%dj%d", round, i), ""),
                &job) == 0 &&
         write(tell, "a", 1) == 1;
         i++)
        if (i < 2)
            wait_until(world, job, PUBLIC_FAILED);
    _exit(1);
}

/* Killed at any instant, a server leaves either both or none of an exit and what is kept of it. */
static void a_crash_does_not_part_an_exit_and_its_end(void **state)
{
    struct world *world = *state;
    enum { ROUNDS = 6 };
    size_t ended = 0, jobs = 0;
    struct store *store;

    world_stop(world);
    world->engine = "runMilliseconds: 1, " SYNTAX_ERROR;
    for (int round = 0; round < ROUNDS; round++) {
        int told[2], status;
        assert_int_equal(pipe(told), 0);
        pid_t child = fork();
        if (child == 0)
            submit_until_killed(world, round, told[1]);
        close(told[1]);
        /* each time later, while exits and answers go on */
        for (int answers = 0; answers < 6 + 9 * round; answers++)
            assert_int_equal(read(told[0], &(char){0}, 1), 1);
        assert_int_equal(kill(child, SIGKILL), 0);
        close(told[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
    }
    assert_int_equal(store_open(world->directory, &store, &world->err), 0);
    for (uint32_t id = 1;; id++) {
        struct store_job row;
        if (store_job_summary(store, (struct job_id){id}, &world->arena, &row, &world->err) < 0)
            break;
        expect_ends(world, store, (struct job_id){id}, &ended);
        jobs++;
    }
    store_close(store);
    assert_true(ended > 10);
    expect_audit(world, 1 + ROUNDS, jobs);
    world_start(world);
}

static void the_event_log_gives_the_same_again(void **state)
{
    enum { JOBS = 40 };
    struct world *world = *state;
    struct job_id job = {0}, first = {0};

    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(
            submit(world, job_text(world, arena_format(&world->arena, "r%d", i), ""), &job), 0);
        if (i == 0)
            first = job;
        if (i % 5 == 0)
            assert_int_equal(act(world, SERVICE_STOP, job), 0);
        if (i % 10 == 9) { /* in mid-flight */
            world_stop(world);
            world_start(world);
        }
    }
    for (uint32_t i = 1; i <= JOBS; i++)
        wait_until(world, (struct job_id){i}, i % 5 == 1 ? PUBLIC_STOPPED : PUBLIC_SUCCEEDED);
    assert_int_equal(act(world, SERVICE_START, first), 0); /* the core has forgotten it */
    wait_until(world, first, PUBLIC_SUCCEEDED);
    assert_int_equal(act(world, SERVICE_DELETE, (struct job_id){7}), 0);
    world_stop(world);
    expect_audit(world, 1 + JOBS / 10, JOBS - 1);
    world_start(world);
}

static int audit(struct world *world)
{
    struct server_config *config = config_of(world, "");
    struct audit audit;
    struct store *store;
    int code;

    assert_int_equal(store_open(world->directory, &store, &world->err), 0);
    code = server_audit(store, &config->core, &audit, &world->err);
    store_close(store);
    server_config_free(config);
    return code;
}

static void an_audit_finds_what_differs(void **state)
{
    struct world *world = *state;
    struct job_id job, waits;

    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(submit(world,
                            "protocolVersion: 2\nname: big\ntype: job\n"
                            "prerequisites:\n- {name: i, type: dockerimage, uri: x}\n"
                            "taskRoles:\n  w:\n    dockerImage: i\n    commands: [x]\n"
                            "    resourcePerInstance: {cpu: 60, memoryMB: 1, gpu: 0}\n",
                            &waits),
                     0);
    world_stop(world);
    assert_int_equal(audit(world), 0);
    assert_int_equal(sql(world, "UPDATE jobs SET code = 1 WHERE id = 1"), 0);
    assert_int_equal(audit(world), ERR_CORRUPT);
    assert_non_null(strstr(world->err.text, "job 1: by the event log it is in state 8"));
    assert_int_equal(sql(world, "UPDATE jobs SET code = 0 WHERE id = 1;"
                                "UPDATE nodes SET blame = 2, blame_ms = 5"),
                     0);
    assert_int_equal(audit(world), ERR_CORRUPT);
    assert_non_null(strstr(world->err.text, "another state"));
    assert_int_equal(sql(world, "UPDATE nodes SET blame = 0, blame_ms = 0"), 0);
    assert_int_equal(audit(world), 0);
    /* a row that is lost, of a job that has ended and of one that waits; and one too many */
    for (int id = 1; id <= 2; id++) {
        assert_int_equal(sql(world, arena_format(&world->arena,
                                                 "CREATE TABLE kept AS SELECT * FROM jobs WHERE "
                                                 "id = %d; DELETE FROM jobs WHERE id = %d",
                                                 id, id)),
                         0);
        assert_int_equal(audit(world), ERR_CORRUPT);
        assert_non_null(strstr(world->err.text, arena_format(&world->arena, "job %d: by", id)));
        assert_int_equal(sql(world, "INSERT INTO jobs SELECT * FROM kept; DROP TABLE kept"), 0);
        assert_int_equal(audit(world), 0);
    }
    /* retention has taken the beginning */
    assert_int_equal(sql(world, "DELETE FROM event_log WHERE sequence = 1"), 0);
    assert_int_equal(audit(world), ERR_UNSUPPORTED);
    world_start(world);
}

/* A copy without its mark: numbers go on where none was given, and the log still gives the rows. */
static void a_copy_is_audited_like_any_other(void **state)
{
    struct world *world = *state;
    struct job_id job;
    char path[100];

    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(job.v, 1);
    world_stop(world);
    snprintf(path, sizeof path, "%s/mark", world->directory);
    assert_int_equal(unlink(path), 0);
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "b", ""), &job), 0);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    assert_int_equal(job.v, 1000001);
    assert_int_equal(tasks_of(world, job).items[0].attempt.v, 1000000001);
    world_stop(world);
    expect_audit(world, 2, 2);
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "c", ""), &job), 0);
    assert_int_equal(job.v, 1000002);
    wait_until(world, job, PUBLIC_SUCCEEDED);
    world_stop(world);
    expect_audit(world, 3, 3);
    world_start(world);
}

/* What a copy knows only as given may have run already: it gets another number. */
static void an_attempt_of_a_past_epoch_is_not_created(void **state)
{
    struct world *world = *state;
    struct job_id job;
    char path[100];

    world_stop(world);
    world->engine = "runMilliseconds: 600000";
    world_start(world);
    assert_int_equal(submit(world, job_text(world, "a", ""), &job), 0);
    wait_until_tasks_run(world, job);
    assert_true(tasks_of(world, job).items[0].attempt.v <= 2);
    world_stop(world);
    assert_int_equal(sql(world, "UPDATE tasks SET state = 1, launched_ms = 0, "
                                "attempt_launched_ms = 0"),
                     0);
    world_start(world); /* the same epoch: nobody else can have created it */
    wait_until_tasks_run(world, job);
    assert_true(tasks_of(world, job).items[0].attempt.v <= 2);
    assert_int_equal(metric(world, "skep_lost_total"), 0);
    world_stop(world);
    assert_int_equal(sql(world, "UPDATE tasks SET state = 1, launched_ms = 0, "
                                "attempt_launched_ms = 0"),
                     0);
    snprintf(path, sizeof path, "%s/mark", world->directory);
    assert_int_equal(unlink(path), 0);
    world_start(world);
    metric_await(world, "skep_lost_total", 2);
    wait_until_tasks_run(world, job);
    assert_true(tasks_of(world, job).items[0].attempt.v > 1000000000);
}

static void a_lost_password_is_replaced(void **state)
{
    struct world *world = *state;
    struct server_teller teller = {world, told};
    struct store *store;
    struct store_reader *reader;
    struct store_user user;
    struct store_tokens tokens;
    struct store_change changes[] = {
        {.kind = CHANGE_TOKEN_ADD, .token = {"browser", "admin", false, 1, 0}},
        {.kind = CHANGE_TOKEN_ADD, .token = {"application", "admin", true, 1, 0}},
    };
    struct store_batch batch = {.changes = changes, .change_count = COUNT_OF(changes)};
    char before[64];

    snprintf(before, sizeof before, "%s", world->password);
    world_stop(world);
    assert_int_equal(store_open(world->directory, &store, &world->err), 0);
    assert_int_equal(store_commit(store, &batch, &world->err), 0);
    assert_int_equal(server_password_reset(store, "nobody", &teller, &world->err), ERR_NOT_FOUND);
    assert_int_equal(server_password_reset(store, "admin", &teller, &world->err), 0);
    assert_string_not_equal(world->password, before);
    assert_int_equal(store_reader_open(store, &reader, &world->err), 0);
    assert_int_equal(store_user(reader, TEXT("admin"), &world->arena, &user, &world->err), 0);
    assert_true(password_matches(text_of(world->password), user.password_hash));
    assert_false(password_matches(text_of(before), user.password_hash));
    assert_true(user.is_admin);
    assert_int_equal(store_tokens(reader, TEXT("admin"), &world->arena, &tokens, &world->err), 0);
    assert_int_equal(tokens.count, 0);
    store_reader_close(reader);
    store_close(store);
    world_start(world);
}

int main(void)
{
#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WORLD(a_job_runs_and_is_there_after_a_restart),
        WORLD(wrong_files_and_forbidden_clusters_are_refused),
        WORLD(jobs_are_stopped_and_deleted),
        WORLD(a_stopped_job_starts_again_after_a_restart),
        WORLD(tags_users_and_settings_change_durably),
        WORLD(readiness_and_metrics_speak),
        WORLD(a_second_server_is_refused),
        WORLD(a_reload_takes_effect),
        WORLD(the_event_log_gives_the_same_again),
        WORLD(an_audit_finds_what_differs),
        WORLD(a_copy_is_audited_like_any_other),
        WORLD(an_attempt_of_a_past_epoch_is_not_created),
        WORLD(a_full_disk_refuses_requests_and_loses_no_fact),
        WORLD(the_end_of_an_attempt_outlives_a_full_disk),
        WORLD(a_crash_does_not_part_an_exit_and_its_end),
        WORLD(a_lost_password_is_replaced),
    };

    log_setup(LOG_ERROR, LOG_TEXT);
    if (secret_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
