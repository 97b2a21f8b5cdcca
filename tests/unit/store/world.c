/* world.c — see world.h. */
#include "base/err.h"
#include "base/memory.h"
#include "core/event.h"
#include "core/plan.h"
#ifdef HAS_POSTGRES
#include <libpq-fe.h>
#endif
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "world.h"

int world_try(struct world *world, struct store **store)
{
    struct store_opening opening = {.address = world->relayed[0] ? world->relayed : world->address};
    struct database *database;
    int code;

    if (world->memory) {
        code = memory_open(world->memory, &database, &world->err);
        return code < 0 ? code : store_open_on(database, store, &world->err);
    }
    return store_open_with(world->directory, &opening, store, &world->err);
}

void world_open(struct world *world)
{
    if (world_try(world, &world->store) < 0)
        fail_msg("%s", world->err.text);
    assert_int_equal(store_reader_open(world->store, &world->reader, &world->err), 0);
}

void world_close(struct world *world)
{
    store_reader_close(world->reader);
    store_close(world->store);
}

#ifdef HAS_POSTGRES
/* As the server's own user; the number of errors. */
static int postgres_sql(const char *address, const char *text)
{
    PGconn *conn = PQconnectdb(address);
    PGresult *result = PQexec(conn, text);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        print_error("%s: %s", text, PQerrorMessage(conn));
    PQclear(result);
    PQfinish(conn);
    return status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK;
}

/* A database of a new name: of another one's rows, or empty. */
static void database_make(struct world *world, const char *of)
{
    static int number;
    const char *server = getenv("SKEP_TEST_POSTGRES");
    const char *at = strstr(server, "/postgres?");
    char text[100];

    assert_non_null(at);
    snprintf(world->address, sizeof world->address, "%.*s/test%ld_%d?%s", (int)(at - server),
             server, (long)getpid(), ++number, at + strlen("/postgres?"));
    snprintf(text, sizeof text, "CREATE DATABASE test%ld_%d TEMPLATE %s", (long)getpid(), number,
             of);
    assert_int_equal(postgres_sql(server, text), 0);
}

void world_copy(struct world *world)
{
    const char *name = strrchr(world->address, '/'), *at = strstr(world->address, "/test");
    char of[40], text[200];

    assert_non_null(name);
    snprintf(of, sizeof of, "%.*s", (int)strcspn(at + 1, "?"), at + 1);
    /* only one that nobody uses is copied; a connection that was closed may last a while */
    snprintf(text, sizeof text,
             "SELECT pg_terminate_backend(pid, 180000) FROM pg_stat_activity WHERE datname = '%s'",
             of);
    assert_int_equal(postgres_sql(getenv("SKEP_TEST_POSTGRES"), text), 0);
    database_make(world, of);
}
#endif

int world_sql(const struct world *world, const char *text)
{
    char path[100];
    sqlite3 *db;
    int code;

    if (world->memory)
        return memory_sql(world->memory, text);
#ifdef HAS_POSTGRES
    if (world->address[0])
        return postgres_sql(world->address, text);
#endif
    snprintf(path, sizeof path, "%s/skep.db", world->directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    code = sqlite3_exec(db, text, NULL, NULL, NULL);
    sqlite3_close(db);
    return code;
}

static int setup_on(void **state, struct memory *memory)
{
    struct world *world = mem_zero(1, sizeof *world);
    struct plan_role roles[] = {plan_role_of("ps"), plan_role_of("worker")};
    struct plan plan = {.name = "train",
                        .user = "alice",
                        .virtual_cluster = "default",
                        .roles = roles,
                        .role_count = 2};

    roles[1].instances = 3;
    strcpy(world->directory, "/tmp/test-store-XXXXXX");
    assert_non_null(mkdtemp(world->directory));
    output_init(&world->output);
    arena_init(&world->arena);
    plan_encode(&plan, &world->plan_bytes);
#ifdef HAS_POSTGRES
    if (getenv("SKEP_TEST_POSTGRES") && !memory)
        database_make(world, "template0");
#endif
    world->memory = memory;
    world_open(world);
    *state = world;
    return 0;
}

int setup(void **state)
{
    return setup_on(state, getenv("SKEP_TEST_MEMORY") ? memory_new() : NULL);
}

int setup_in_memory(void **state)
{
    return setup_on(state, memory_new());
}

int teardown(void **state)
{
    struct world *world = *state;
    char remove[100];

    world_close(world);
    memory_free(world->memory);
    output_release(&world->output);
    arena_release(&world->arena);
    buf_release(&world->plan_bytes);
    snprintf(remove, sizeof remove, "rm -rf %s", world->directory);
    mem_free(world);
    return system(remove);
}

struct job_record job_of(uint32_t id, const char *user, const char *name)
{
    return (struct job_record){.id = {id},
                               .name = name,
                               .user = user,
                               .virtual_cluster = "default",
                               .priority = 10,
                               .submitted_ms = 1000 + id,
                               .trigger_role = -1,
                               .trigger_index = -1,
                               .trigger = "",
                               .reason = "",
                               .task_count = 4,
                               .role_count = 2,
                               .extra = TEXT("extra\0bytes")};
}

void add_job(struct world *world, struct job_record job)
{
    *ARRAY_ADD(&world->output.records) = (struct record){.kind = RECORD_JOB, .job = job};
}

void add_task(struct world *world, struct task_record task)
{
    *ARRAY_ADD(&world->output.records) = (struct record){.kind = RECORD_TASK, .task = task};
}

void add_deleted(struct world *world, uint32_t job)
{
    *ARRAY_ADD(&world->output.records) =
        (struct record){.kind = RECORD_JOB_DELETED, .deleted = {job}};
}

struct submission *submission_of(struct world *world)
{
    struct submission *submission = ARENA_NEW(&world->output.arena, struct submission);

    *submission = (struct submission){.spec_bytes = TEXT("spec\0bytes"),
                                      .plan_bytes = buf_as_text(&world->plan_bytes),
                                      .source = TEXT("name: train"),
                                      .sealed = TEXT("sealed\0"),
                                      .format = 1,
                                      .has_priority = true,
                                      .notices = 0x85};
    return submission;
}

void add_submitted(struct world *world, uint32_t id, const char *user, const char *name)
{
    struct job_record job = job_of(id, user, name);

    job.submission = submission_of(world);
    add_job(world, job);
}

int commit(struct world *world, struct store_change *changes, size_t count)
{
    struct store_event event = {5, 1, TEXT("body")};
    struct store_batch batch = {.events = &event,
                                .event_count = 1,
                                .output = &world->output,
                                .changes = changes,
                                .change_count = count};
    int code = store_commit(world->store, &batch, &world->err);

    output_clear(&world->output);
    arena_clear(&world->arena);
    return code;
}

void change(struct world *world, struct store_change change, int expected)
{
    assert_int_equal(commit(world, &change, 1), 0);
    assert_int_equal(change.code, expected);
}

void submit(struct world *world, uint32_t id, const char *user, const char *name)
{
    add_submitted(world, id, user, name);
    assert_int_equal(commit(world, NULL, 0), 0);
}

struct task_record task_of(uint32_t job, uint16_t role, uint16_t index, uint64_t attempt)
{
    static const uint16_t gpus[] = {0, 3, 259};
    static const struct port_range ports[] = {{"ssh", 15000, 1}, {"http", 15001, 2}};

    return (struct task_record){.job = {job},
                                .task = {role, index},
                                .role_name = role ? "worker" : "ps",
                                .state = LIFE_RUNNING,
                                .attempt = {attempt},
                                .node = "n1",
                                .address = "10.0.0.1",
                                .gpus = gpus,
                                .gpu_count = 3,
                                .cell_level = 4,
                                .killed = KILL_PREEMPTED,
                                .kill_by_ms = 30007,
                                .ports = ports,
                                .port_count = 2,
                                .created_ms = 7,
                                .completion = {.code = 0}};
}
