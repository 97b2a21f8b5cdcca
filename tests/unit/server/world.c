/* world.c — see world.h. */
#include "base/buf.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/secret.h"
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/state.h"
#include "world.h"

static void answered(void *context, const struct service_answer *answer)
{
    struct wait *wait = context;

    pthread_mutex_lock(&wait->lock);
    assert_false(wait->is_done);
    wait->answer = *answer;
    snprintf(wait->text, sizeof wait->text, "%s", answer->text ? answer->text : "");
    wait->answer.text = wait->text;
    wait->is_done = true;
    pthread_cond_signal(&wait->done);
    pthread_mutex_unlock(&wait->lock);
}

struct service_reply wait_init(struct wait *wait)
{
    *wait = (struct wait){.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    return (struct service_reply){.done = answered, .context = wait};
}

static struct timespec wait_limit(void)
{
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += WAIT_S;
    return limit;
}

int wait_for(struct wait *wait)
{
    const struct timespec limit = wait_limit();

    pthread_mutex_lock(&wait->lock);
    while (!wait->is_done)
        assert_int_equal(pthread_cond_timedwait(&wait->done, &wait->lock, &limit), 0);
    pthread_mutex_unlock(&wait->lock);
    return wait->answer.code;
}

bool wait_is_done(struct wait *wait)
{
    pthread_mutex_lock(&wait->lock);
    bool is_done = wait->is_done;
    pthread_mutex_unlock(&wait->lock);
    return is_done;
}

int told(void *context, const char *user, const char *password, struct err *err)
{
    struct world *world = context;
    (void)err;

    assert_string_equal(user, "admin");
    snprintf(world->password, sizeof world->password, "%s", password);
    return 0;
}

int world_try(struct world *world)
{
    struct server_config *config;
    struct buf report = BUF_INIT, text = BUF_INIT;
    char path[100];
    int code;

    snprintf(path, sizeof path, "%s.yaml", world->directory);
    buf_format(&text, "dataDirectory: %s\n", world->directory);
    if (*world->engine)
        buf_format(&text, "engine: {kind: fake, fake: {%s}}\n", world->engine);
    buf_string(&text, world->extra);
    assert_int_equal(file_write(path, buf_as_text(&text), 0600, &world->err), 0);
    code = server_config_read(path, &config, &report, &world->err);
    assert_string_equal(buf_cstr(&report), "");
    assert_int_equal(code, 0);
    buf_release(&report);
    buf_release(&text);
    unlink(path);
    world->password[0] = '\0';
    return server_new(config, &(struct server_teller){world, told}, &world->server, &world->err);
}

void world_start(struct world *world)
{
    assert_int_equal(world_try(world), 0);
    server_start(world->server);
    world->service = server_service(world->server);
}

struct engine *world_engine(struct world *world)
{
    return atomic_load(&world->server->engines.items[0].engine);
}

void world_stop(struct world *world)
{
    server_stop(world->server);
    server_free(world->server);
    world->server = NULL;
}

int setup(void **state)
{
    return setup_with(state, "runMilliseconds: 30", "");
}

struct world *world_new(const char *engine, const char *extra)
{
    struct world *world = calloc(1, sizeof *world);

    strcpy(world->directory, "/tmp/test-server-XXXXXX");
    assert_non_null(mkdtemp(world->directory));
    arena_init(&world->arena);
    problems_init(&world->problems, &world->arena);
    world->extra = extra;
    world->user = "admin";
    world->engine = engine;
    return world;
}

int setup_with(void **state, const char *engine, const char *extra)
{
    struct world *world = world_new(engine, extra);

    world_start(world);
    *state = world;
    return 0;
}

int teardown(void **state)
{
    struct world *world = *state;
    char remove[100];

    if (world->server)
        world_stop(world);
    problems_release(&world->problems);
    arena_release(&world->arena);
    snprintf(remove, sizeof remove, "rm -rf %s", world->directory);
    free(world);
    return system(remove);
}

const char *job_text(struct world *world, const char *name, const char *more)
{
    return arena_format(
        &world->arena,
        "protocolVersion: 2\nname: %s\ntype: job\n"
        "prerequisites:\n- {protocolVersion: 2, name: i, type: dockerimage, uri: x}\n"
        "taskRoles:\n  w:\n    instances: 2\n    dockerImage: i\n"
        "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n"
        "    commands: [run <%% $secrets.key %%>]\nsecrets: {key: topsecret}\n%s",
        name, more);
}

int ask_submission(struct world *world, struct service_submission submission,
                   struct service_reply reply)
{
    if (!submission.user)
        submission.user = world->user;
    return world->service->submit(world->service->context, &submission, &world->problems, reply,
                                  &world->err);
}

int submit(struct world *world, const char *text, struct job_id *job)
{
    struct wait wait;
    struct service_reply reply = wait_init(&wait);
    int code = ask_submission(world, (struct service_submission){.source = text_of(text)}, reply);

    if (code < 0)
        return code;
    code = wait_for(&wait);
    *job = wait.answer.job;
    snprintf(world->err.text, sizeof world->err.text, "%.200s", wait.answer.text);
    return code;
}

int act(struct world *world, enum service_action action, struct job_id job)
{
    struct wait wait;
    struct service_reply reply = wait_init(&wait);
    int code =
        world->service->act(world->service->context, action, "admin", job, reply, &world->err);

    return code < 0 ? code : wait_for(&wait);
}

int change(struct world *world, struct store_change change)
{
    struct wait wait;
    struct service_reply reply = wait_init(&wait);
    int code = world->service->change(world->service->context, &change, reply, &world->err);

    return code < 0 ? code : wait_for(&wait);
}

struct notices { /* of commits */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned count;
};

static void notified(void *context)
{
    struct notices *notices = context;

    pthread_mutex_lock(&notices->lock);
    notices->count++;
    pthread_cond_broadcast(&notices->moved);
    pthread_mutex_unlock(&notices->lock);
}

void commit_await(struct world *world, bool (*is_reached)(struct world *world, const void *what),
                  const void *what)
{
    struct notices notices = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    struct service_watch watch = {.notify = notified, .context = &notices};
    const struct timespec limit = wait_limit();
    unsigned seen = 0;

    world->service->watch(world->service->context, &watch);
    while (!is_reached(world, what)) {
        pthread_mutex_lock(&notices.lock);
        while (notices.count == seen)
            assert_int_equal(pthread_cond_timedwait(&notices.moved, &notices.lock, &limit), 0);
        seen = notices.count;
        pthread_mutex_unlock(&notices.lock);
    }
    world->service->unwatch(world->service->context, &watch);
}

enum public_state shown(struct world *world, struct job_id job)
{
    struct store_job row;

    assert_int_equal(
        store_job_summary(world->service->store, job, &world->arena, &row, &world->err), 0);
    return row.shown;
}

struct job_wanted {
    struct job_id job;
    enum public_state shown;
};

static bool is_shown(struct world *world, const void *what)
{
    const struct job_wanted *wanted = what;

    return shown(world, wanted->job) == wanted->shown;
}

void wait_until(struct world *world, struct job_id job, enum public_state wanted)
{
    commit_await(world, is_shown, &(struct job_wanted){job, wanted});
}

struct store_tasks tasks_of(struct world *world, struct job_id job)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct store_tasks tasks;

    assert_int_equal(store_tasks(reader, job, -1, &world->arena, &tasks, &world->err), 0);
    world->service->reader_put(world->service->context, reader);
    return tasks;
}

static bool are_running(struct world *world, const void *what)
{
    const struct store_tasks tasks = tasks_of(world, *(const struct job_id *)what);
    size_t running = 0;

    while (running < tasks.count && tasks.items[running].state == LIFE_RUNNING)
        running++;
    return tasks.count > 0 && running == tasks.count;
}

void wait_until_tasks_run(struct world *world, struct job_id job)
{
    commit_await(world, are_running, &job);
}

size_t warnings(struct world *world, struct job_id job, const char *reason)
{
    struct store_reader *reader = world->service->reader_get(world->service->context, &world->err);
    struct stories stories;
    size_t count = 0;

    assert_int_equal(store_stories(reader, &(struct story_filter){.job = job, .is_warning = 1},
                                   false, &world->arena, &stories, &world->err),
                     0);
    world->service->reader_put(world->service->context, reader);
    for (size_t i = 0; i < stories.count; i++)
        count += strcmp(stories.items[i].record.reason, reason) == 0;
    return count;
}

uint64_t metric(struct world *world, const char *name)
{
    struct buf text = BUF_INIT;
    char line[80];

    snprintf(line, sizeof line, "\n%s ", name);
    world->service->metrics(world->service->context, &text);
    const char *at = strstr(buf_cstr(&text), line);
    assert_non_null(at);
    const uint64_t value = strtoull(at + strlen(line), NULL, 10);
    buf_release(&text);
    return value;
}

/* A count is told to nobody, so it is looked at again whenever the others have had their turn. */
void metric_await(struct world *world, const char *name, uint64_t wanted)
{
    const struct timespec limit = wait_limit();
    struct timespec now;

    while (metric(world, name) != wanted) {
        clock_gettime(CLOCK_REALTIME, &now);
        assert_true(now.tv_sec < limit.tv_sec);
        sched_yield();
    }
}

struct rlimit disk_fill(void)
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

void disk_empty(struct rlimit before)
{
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

struct server_config *config_of(struct world *world, const char *more)
{
    struct server_config *config;
    struct buf report = BUF_INIT;
    char path[100];

    snprintf(path, sizeof path, "%s/new.yaml", world->directory);
    assert_int_equal(
        file_write(path, text_of(arena_format(&world->arena, "engine: {kind: fake}\n%s", more)),
                   0600, &world->err),
        0);
    assert_int_equal(server_config_read(path, &config, &report, &world->err), 0);
    buf_release(&report);
    return config;
}

int sql(struct world *world, const char *text)
{
    char path[100];
    sqlite3 *db;
    int code;

    snprintf(path, sizeof path, "%s/skep.db", world->directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, WAIT_S * 1000), SQLITE_OK);
    code = sqlite3_exec(db, text, NULL, NULL, NULL);
    sqlite3_close(db);
    return code;
}

void quarantine_leave(struct world *world, struct job_id job, enum public_state ended)
{
    assert_int_equal(metric(world, "skep_jobs_quarantined"), 1);
    assert_int_equal(sql(world, "DROP TRIGGER bad"), 0);
    world_stop(world);
    world_start(world);
    assert_int_equal(metric(world, "skep_jobs_quarantined"), 0);
    assert_int_equal(shown(world, job), ended);
}

int64_t number(struct world *world, const char *query)
{
    char path[100];
    sqlite3 *db;
    sqlite3_stmt *statement;
    int64_t value;

    snprintf(path, sizeof path, "%s/skep.db", world->directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, WAIT_S * 1000), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

int world_begin(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, LOG_TEXT);
    return secret_init(NULL) < 0 ? -1 : 0;
}
