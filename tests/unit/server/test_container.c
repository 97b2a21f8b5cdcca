/* Secrets of a job are stored sealed. What the store has of a job becomes its file. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/event.h"
#include "core/plan.h"
#include "doc/problem.h"
#include "init/job_file.h"
#include "server/container.h"
#include "store/store.h"
#include "sys/key_file.h"

static void secrets_are_sealed_and_opened(void **state)
{
    struct spec_pair pairs[] = {{"a.b", "one"}, {"c", ""}}, *opened;
    struct key_file keys = {0}, other = {0};
    struct buf sealed = BUF_INIT;
    struct arena arena;
    struct err err;
    size_t count;
    (void)state;

    arena_init(&arena);
    secret_random(keys.seal, sizeof keys.seal);
    secret_random(other.seal, sizeof other.seal);
    secrets_seal(pairs, 2, keys.seal, &sealed);
    assert_int_equal(secrets_open(buf_as_text(&sealed), &keys, &arena, &opened, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_string_equal(opened[0].name, "a.b");
    assert_string_equal(opened[0].value, "one");
    assert_string_equal(opened[1].value, "");
    assert_int_equal(secrets_open(buf_as_text(&sealed), &other, &arena, &opened, &count, &err),
                     ERR_CORRUPT);
    /* in the midst of a rotation */
    memcpy(other.old_seal, keys.seal, sizeof other.old_seal);
    other.has_old = true;
    assert_int_equal(secrets_open(buf_as_text(&sealed), &other, &arena, &opened, &count, &err), 0);
    assert_int_equal(count, 2);
    buf_clear(&sealed);
    secrets_seal(NULL, 0, keys.seal, &sealed);
    assert_int_equal(sealed.length, 0);
    assert_int_equal(secrets_open(TEXT(""), &keys, &arena, &opened, &count, &err), 0);
    assert_int_equal(count, 0);
    arena_release(&arena);
    buf_release(&sealed);
}

enum { ROLE_TASKS = 10000, JOB = 1 };

static const char GROWN[] = "protocolVersion: 2\nname: grown\ntype: job\nprerequisites:\n"
                            "- {name: i, type: dockerimage, uri: d}\ntaskRoles:\n"
                            "  a: &role\n    dockerImage: i\n    commands: [x]\n"
                            "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n"
                            "  b: *role\n  c: *role\n";

static void task_add(struct output *output, uint16_t role, uint16_t index, bool is_removed)
{
    static const char *const names[] = {"a", "b", "c"};
    *ARRAY_ADD(&output->records) = (struct record){.kind = RECORD_TASK,
                                                   .task = {.job = {JOB},
                                                            .task = {role, index},
                                                            .role_name = names[role],
                                                            .is_removed = is_removed,
                                                            .state = LIFE_CREATION_PENDING,
                                                            .node = "",
                                                            .address = "",
                                                            .created_ms = 1,
                                                            .attempt_created_ms = 1}};
}

static void job_add(struct output *output, struct submission *submission)
{
    *ARRAY_ADD(&output->records) = (struct record){.kind = RECORD_JOB,
                                                   .job = {.id = {JOB},
                                                           .name = "grown",
                                                           .user = "alice",
                                                           .virtual_cluster = "default",
                                                           .submitted_ms = 1,
                                                           .trigger_role = -1,
                                                           .trigger_index = -1,
                                                           .trigger = "",
                                                           .reason = "",
                                                           .role_count = 3,
                                                           .submission = submission}};
    for (uint16_t i = 0; i < ROLE_TASKS; i++) {
        task_add(output, 0, i, false);
        task_add(output, 1, i, false);
    }
    task_add(output, 2, 0, false);
}

static void commit(struct store *store, struct output *output)
{
    const struct store_batch batch = {.output = output};
    struct err err = {0};
    assert_int_equal(store_commit(store, &batch, &err), 0);
    output_clear(output);
}

static int load(struct store_reader *reader, struct err *err)
{
    const struct launch_places places = {0};
    struct launch_job launch;
    const int code = launch_job_load(reader, (struct job_id){JOB}, &places, &launch, err);
    if (code == 0)
        launch_job_release(&launch);
    return code;
}

/* A server before this one let all roles together grow beyond what a job file may hold: such a job
 * is refused, and does not end the launcher. */
static void rows_of_too_many_tasks_are_refused(void **state)
{
    (void)state;
    char directory[64];
    cleanup_arena struct arena arena;
    arena_init(&arena);
    cleanup_problems struct problems problems;
    problems_init(&problems, &arena);
    struct spec_parsed parsed = {0};
    assert_int_equal(spec_parse(text_of(GROWN), &arena, &parsed, &problems), 0);
    struct buf spec_bytes = BUF_INIT, plan_bytes = BUF_INIT;
    spec_encode(parsed.spec, &spec_bytes);
    struct plan *plan = plan_of_spec(parsed.spec, "alice");
    plan_encode(plan, &plan_bytes);
    struct submission submission = {.spec_bytes = buf_as_text(&spec_bytes),
                                    .plan_bytes = buf_as_text(&plan_bytes),
                                    .source = text_of(GROWN)};
    struct output output;
    output_init(&output);
    struct store *store;
    struct store_reader *reader;
    struct err err = {0};
    assert_int_equal(folder_make("container", directory, sizeof directory), 0);
    assert_int_equal(store_open(directory, &store, &err), 0);
    job_add(&output, &submission);
    commit(store, &output);
    assert_int_equal(store_reader_open(store, &reader, &err), 0);
    assert_int_equal(load(reader, &err), ERR_TOO_BIG);
    assert_string_equal(err.text, "the job has 20001 tasks, and may have at most 20000");
    task_add(&output, 2, 0, true);
    commit(store, &output);
    assert_int_equal(load(reader, &err), 0);
    store_reader_close(reader);
    store_close(store);
    output_release(&output);
    plan_free(plan);
    spec_free(parsed.spec);
    buf_release(&spec_bytes);
    buf_release(&plan_bytes);
    char remove[100];
    snprintf(remove, sizeof remove, "rm -rf %s", directory);
    assert_int_equal(system(remove), 0);
}

static int begin(void **state)
{
    (void)state;
    return secret_init(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(secrets_are_sealed_and_opened),
    cmocka_unit_test(rows_of_too_many_tasks_are_refused),
};
UNIT_FILE(tests, begin, NULL);
