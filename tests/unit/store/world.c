/* world.c — see world.h. */
#include "base/memory.h"
#include "core/event.h"
#include "core/plan.h"
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

void world_open(struct world *world)
{
    assert_int_equal(store_open(world->directory, &world->store, &world->err), 0);
    assert_int_equal(store_reader_open(world->store, &world->reader, &world->err), 0);
}

void world_close(struct world *world)
{
    store_reader_close(world->reader);
    store_close(world->store);
}

int world_sql(const struct world *world, const char *text)
{
    char path[100];
    sqlite3 *db;
    int code;

    snprintf(path, sizeof path, "%s/skep.db", world->directory);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    code = sqlite3_exec(db, text, NULL, NULL, NULL);
    sqlite3_close(db);
    return code;
}

int setup(void **state)
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
    world_open(world);
    *state = world;
    return 0;
}

int teardown(void **state)
{
    struct world *world = *state;
    char remove[100];

    world_close(world);
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
                                      .has_priority = true};
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
    struct store_batch batch = {&event, 1, &world->output, changes, count};
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
