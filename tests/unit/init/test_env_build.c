/* The environment of one task of each format, whole, against golden files; what must give way when
 * there is too much.
 *
 * To accept a change: SKEP_GOLDEN_WRITE=1 build/tests/unit/test-init env_build */
#include "env_world.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "init/env.h"
#include "init/job_file.h"
#include "init/task_file.h"

static int line_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void golden_check(const char *name, struct env *env)
{
    char path[512], *nothing[] = {NULL}, **lines;
    struct buf got = BUF_INIT, wanted = BUF_INIT;
    size_t count = 0;
    assert_int_equal(env_merge(env, nothing, &lines), 0);
    while (lines[count])
        count++;
    qsort(lines, count, sizeof *lines, line_compare);
    for (size_t i = 0; i < count; i++)
        buf_format(&got, "%s\n", lines[i]);
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIRECTORY, name);
    FILE *file = fopen(path, getenv("SKEP_GOLDEN_WRITE") ? "w+" : "r");
    assert_non_null(file);
    if (getenv("SKEP_GOLDEN_WRITE")) {
        fputs(buf_cstr(&got), file);
        rewind(file);
    }
    for (int c; (c = fgetc(file)) != EOF;)
        buf_char(&wanted, (char)c);
    fclose(file);
    assert_string_equal(buf_cstr(&got), buf_cstr(&wanted));
    buf_release(&got);
    buf_release(&wanted);
}

static void golden_v1(void **state)
{
    (void)state;
    struct fixture f;
    struct job_file job = job_of(JOB_FILE_V1);
    begin(&f, &job, &TASK);
    golden_check("env-v1.txt", &f.env);
    finish(&f);
}

static void golden_v2(void **state)
{
    (void)state;
    struct fixture f;
    struct job_file job = job_of(JOB_FILE_V2);
    begin(&f, &job, &TASK);
    golden_check("env-v2.txt", &f.env);
    finish(&f);
}

static void image_and_job(void **state)
{
    (void)state;
    struct fixture f;
    struct job_file job = job_of(JOB_FILE_V1);
    char *image[] = {"PATH=/bin", "PYTHONUNBUFFERED=", "MASTER_ADDR=image", "WEIRD", NULL};
    char **merged;
    bool has_path = false, has_python = false, has_weird = false;
    begin(&f, &job, &TASK);
    assert_int_equal(env_merge(&f.env, image, &merged), 0);
    for (; *merged; merged++) {
        has_path = has_path || strcmp(*merged, "PATH=/bin") == 0;
        has_weird = has_weird || strcmp(*merged, "WEIRD") == 0;
        has_python = has_python || strcmp(*merged, "PYTHONUNBUFFERED=") == 0;
        assert_string_not_equal(*merged, "PYTHONUNBUFFERED=1"); /* a default gives way */
        assert_string_not_equal(*merged, "MASTER_ADDR=image");  /* the platform's word counts */
    }
    assert_true(has_path && has_python && has_weird);
    assert_string_equal(env_get(&f.env, "RANK"), "mine"); /* jobEnvs come last */
    finish(&f);
}

/* 20,000 tasks: the variables about peers are left out, the lists that fit stay. */
static void crowded(void **state)
{
    (void)state;
    struct job_file_role role = {
        .name = "worker", .instances = JOB_FILE_TASKS_MAX, .ports = PORTS, .port_count = 2};
    struct job_file_task *tasks = mem_zero(JOB_FILE_TASKS_MAX, sizeof *tasks);
    for (size_t i = 0; i < JOB_FILE_TASKS_MAX; i++)
        tasks[i] = FOUR_TASKS[0];
    struct job_file job = job_of(JOB_FILE_V2);
    job.roles = &role;
    job.role_count = 1;
    job.tasks = tasks;
    job.task_count = JOB_FILE_TASKS_MAX;
    const struct task_file task = {.container = "c", .command = "x"};
    struct fixture f;
    char *nothing[] = {NULL}, **merged;
    struct buf script = BUF_INIT;
    size_t bytes = 0;
    begin(&f, &job, &task);
    assert_true(env_merge(&f.env, nothing, &merged) >= 5 * (size_t)JOB_FILE_TASKS_MAX);
    for (; *merged; merged++) {
        bytes += strlen(*merged) + 1;
        assert_true(strlen(*merged) < 128 * 1024);
    }
    assert_true(bytes < ENV_BYTES_MAX);
    env_write_script(&f.env, &script);
    assert_non_null(strstr(buf_cstr(&script), "export PAI_HOST_IP_worker_19999='10.0.0.1'\n"));
    buf_release(&script);
    finish(&f);
    mem_free(tasks);
}

static void dashes(void **state)
{
    (void)state;
    struct job_file job = job_of(JOB_FILE_V1);
    struct job_file_role roles[2] = {TWO_ROLES[0], TWO_ROLES[1]};
    struct fixture f;
    roles[0].name = "g2p-train";
    job.roles = roles;
    begin(&f, &job, &TASK);
    assert_string_equal(env_get(&f.env, "PAI_HOST_IP_g2p-train_0"), "10.0.0.1");
    assert_string_equal(env_get(&f.env, "PAI_HOST_IP_g2p_train_0"), "10.0.0.1");
    finish(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(golden_v1), cmocka_unit_test(golden_v2), cmocka_unit_test(image_and_job),
    cmocka_unit_test(crowded),   cmocka_unit_test(dashes),
};
UNIT_FILE(tests, NULL, NULL);
