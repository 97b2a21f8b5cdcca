/* The job file: what is written is read back; a file that promises more than it holds costs
 * nothing. */
#include "files.h"
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "init/job_file.h"

static void job_round_trip(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT, again = BUF_INIT;
    struct arena arena;
    struct job_file job;
    struct err err = {0};
    arena_init(&arena);
    job_file_write(&JOB, &bytes);
    assert_int_equal(job_file_read(buf_as_text(&bytes), &arena, &job, &err), 0);
    assert_string_equal(job.roles[1].ports[2].label, "tb");
    assert_int_equal(job.roles[0].min_succeeded, -1);
    assert_int_equal(job.tasks[2].ports[0], 65535);
    assert_string_equal(job.tasks[1].node, "n3");
    assert_string_equal(job.envs[1].value, "two words\n");
    assert_int_equal(job_file_first_task(&job, 1), 1);
    job_file_write(&job, &again);
    assert_int_equal(again.length, bytes.length);
    assert_memory_equal(again.at, bytes.at, bytes.length);
    buf_release(&bytes);
    buf_release(&again);
    arena_release(&arena);
}

static void versions(void **state)
{
    (void)state;
    struct buf bytes = BUF_INIT;
    struct arena arena;
    struct job_file job;
    struct err err = {0};
    arena_init(&arena);
    job_file_write(&JOB, &bytes);
    bytes.at[8] = 9;
    assert_int_equal(job_file_read(buf_as_text(&bytes), &arena, &job, &err), ERR_UNSUPPORTED);
    assert_string_equal(err.text, "has version 9, this program reads version 1");
    buf_release(&bytes);
    arena_release(&arena);
}

/* A file that promises more than it holds must not make the reader allocate it. */
static void promises(void **state)
{
    (void)state;
    struct job_file_role role = {
        .name = "r", .instances = JOB_FILE_TASKS_MAX, .ports = PS_PORTS, .port_count = 2};
    struct job_file_task *tasks = mem_zero(JOB_FILE_TASKS_MAX, sizeof *tasks);
    for (size_t i = 0; i < JOB_FILE_TASKS_MAX; i++)
        tasks[i] = TASKS[0];
    struct job_file job = {.name = "j",
                           .user = "u",
                           .roles = &role,
                           .role_count = 1,
                           .tasks = tasks,
                           .task_count = JOB_FILE_TASKS_MAX};
    struct buf bytes = BUF_INIT;
    struct arena arena;
    arena_init(&arena);
    job_file_write(&job, &bytes);
    assert_int_equal(job_file_read(buf_as_text(&bytes), &arena, &job, NULL), 0);
    assert_int_equal(job.task_count, JOB_FILE_TASKS_MAX);
    mem_free(tasks);
    buf_release(&bytes);
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(job_round_trip),
    cmocka_unit_test(versions),
    cmocka_unit_test(promises),
};
UNIT_FILE(tests, NULL, NULL);
