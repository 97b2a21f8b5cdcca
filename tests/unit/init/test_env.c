/* The environment of one task of each format, whole, against golden files; what must give way when
 * there is too much; the shapes of distributed training.
 *
 * To accept a change: SKEP_GOLDEN_WRITE=1 build/tests/unit/init/test-init-env DIRECTORY */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "init/env.h"
#include "init/job_file.h"
#include "init/ssh_config.h"
#include "init/task_file.h"

static const char *golden_directory;
static const struct env_host HOST = {"/workspace", "eth0", "/skep/run/reason"};
static const struct job_file_port PORTS[] = {{"http", 1, 0}, {"ssh", 1, 0}};
static const struct job_file_port MANY_PORTS[] = {{"http", 2, 0}, {"ssh", 1, 0}, {"tb", 1, 6006}};

static const struct job_file_role TWO_ROLES[] = {
    {.name = "ps_server",
     .instances = 2,
     .cpu = 2,
     .memory_mib = 8192,
     .shm_mib = 64,
     .min_failed = 1,
     .min_succeeded = -1,
     .is_ssh_enabled = true,
     .ports = PORTS,
     .port_count = 2},
    {.name = "worker",
     .instances = 2,
     .cpu = 4,
     .gpu = 1,
     .memory_mib = 16384,
     .shm_mib = 64,
     .min_failed = 1,
     .min_succeeded = -1,
     .is_ssh_enabled = true,
     .ports = MANY_PORTS,
     .port_count = 3},
};
static const struct job_file_task FOUR_TASKS[] = {
    {"10.0.0.1", "n1", (const uint16_t[]){5001, 5002}},
    {"10.0.0.2", "n2", (const uint16_t[]){5101, 5102}},
    {"10.0.0.3", "n3", (const uint16_t[]){5201, 5203, 6006}},
    {"10.0.0.2", "n2", (const uint16_t[]){5301, 5303, 6006}},
};
static const struct job_file_pair ENVS[] = {{"LEARNING_RATE", "0.1"}, {"RANK", "mine"}};
static const uint16_t GPUS[] = {5};

static struct job_file job_of(enum job_file_format format)
{
    return (struct job_file){
        .format = (uint8_t)format,
        .name = "tfdist",
        .user = "alice",
        .virtual_cluster = "vc1",
        .id = 7,
        .attempt = 1,
        .is_gang = true,
        .is_namespaced = true,
        .kill_all_on_completed = 2,
        .fs_uri = format == JOB_FILE_V1 ? "hdfs://nn:9000" : "",
        .data_dir =
            format == JOB_FILE_V1 ? "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_USER_NAMES" : "",
        .output_dir = "",
        .code_dir = "",
        .envs = ENVS,
        .env_count = format == JOB_FILE_V1 ? 2 : 0,
        .roles = TWO_ROLES,
        .role_count = 2,
        .tasks = FOUR_TASKS,
        .task_count = 4,
    };
}

static const struct task_file TASK = {.attempt_id = 42,
                                      .container = "skep-42",
                                      .role = 1,
                                      .index = 1,
                                      .task_attempt = 2,
                                      .retries = 1,
                                      .gpus = GPUS,
                                      .gpu_count = 1,
                                      .command = "x"};

struct fixture {
    struct arena arena;
    struct env env;
};

static void begin(struct fixture *fixture, const struct job_file *job, const struct task_file *task)
{
    arena_init(&fixture->arena);
    env_init(&fixture->env, &fixture->arena);
    env_build(&fixture->env, job, task, &HOST);
}

static void finish(struct fixture *fixture)
{
    env_release(&fixture->env);
    arena_release(&fixture->arena);
}

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
    snprintf(path, sizeof path, "%s/%s", golden_directory, name);
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

static void script_quotes(void **state)
{
    (void)state;
    struct fixture f;
    struct job_file job = job_of(JOB_FILE_V2);
    struct buf script = BUF_INIT;
    begin(&f, &job, &TASK);
    env_set(&f.env, "ODD", "it's $HOME");
    env_set(&f.env, "not-a-name", "x");
    env_write_script(&f.env, &script);
    assert_non_null(strstr(buf_cstr(&script), "export ODD='it'\\''s $HOME'\n"));
    assert_null(strstr(buf_cstr(&script), "not-a-name"));
    buf_release(&script);
    finish(&f);
}

/* roles given as "name:instances:gpus", the task as role and index */
struct shape {
    const char *roles[3];
    unsigned instances[3], gpus[3], role, index;
    const char *rank, *world, *node_rank, *tf; /* NULL: not set */
};

static void shapes(void **state)
{
    (void)state;
    static const struct shape SHAPES[] = {
        {{"main"}, {1}, {1}, 0, 0, NULL, NULL, NULL, NULL},
        {{"train"}, {3}, {0}, 0, 2, "2", "3", "2", NULL},
        {{"train"}, {3}, {8}, 0, 2, NULL, NULL, "2", NULL}, /* how many processes: not ours to say
                                                             */
        {{"worker", "Master"},
         {2, 1},
         {1, 1},
         0,
         1,
         "2",
         "3",
         "2",
         "{\"cluster\":{\"worker\":[\"a:1\",\"a:2\"],\"master\":[\"a:3\"]},"
         "\"task\":{\"type\":\"worker\",\"index\":1}}"},
        {{"worker", "master"},
         {2, 1},
         {1, 1},
         1,
         0,
         "0",
         "3",
         "0",
         "{\"cluster\":{\"worker\":[\"a:1\",\"a:2\"],\"master\":[\"a:3\"]},"
         "\"task\":{\"type\":\"master\",\"index\":0}}"},
        {{"ps_server", "worker", "evaluator"},
         {1, 1, 1},
         {0, 0, 0},
         2,
         0,
         NULL,
         NULL,
         NULL,
         "{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"a:2\"]},"
         "\"task\":{\"type\":\"evaluator\",\"index\":0}}"},
        {{"worker", "worker2"}, {2, 1}, {0, 0}, 0, 0, "0", "2", "0", NULL}, /* a kind twice */
        {{"workerbee", "ps"}, {1, 1}, {0, 0}, 0, 0, NULL, NULL, NULL, NULL},
        {{"ps"}, {2}, {0}, 0, 0, "0", "2", "0", NULL}, /* nobody trains */
    };
    for (size_t s = 0; s < COUNT_OF(SHAPES); s++) {
        const struct shape *shape = &SHAPES[s];
        struct job_file_role roles[3] = {0};
        struct job_file_task tasks[8] = {0};
        uint16_t ports[8][2];
        struct job_file job = job_of(JOB_FILE_V2);
        struct fixture f;
        job.roles = roles;
        job.tasks = tasks;
        job.role_count = job.task_count = 0;
        for (size_t r = 0; r < 3 && shape->roles[r]; r++) {
            roles[job.role_count++] = (struct job_file_role){.name = shape->roles[r],
                                                             .instances = shape->instances[r],
                                                             .gpu = shape->gpus[r],
                                                             .ports = PORTS,
                                                             .port_count = 2};
            for (unsigned i = 0; i < shape->instances[r]; i++) {
                ports[job.task_count][0] = (uint16_t)(job.task_count + 1);
                ports[job.task_count][1] = 0;
                tasks[job.task_count] = (struct job_file_task){"a", "n", ports[job.task_count]};
                job.task_count++;
            }
        }
        const struct task_file task = {.container = "c",
                                       .command = "x",
                                       .role = (uint16_t)shape->role,
                                       .index = (uint16_t)shape->index};
        begin(&f, &job, &task);
        const char *const PAIRS[][2] = {{"RANK", shape->rank},
                                        {"WORLD_SIZE", shape->world},
                                        {"NODE_RANK", shape->node_rank},
                                        {"TF_CONFIG", shape->tf}};
        for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
            const char *got = env_get(&f.env, PAIRS[i][0]);
            if (PAIRS[i][1] && got)
                assert_string_equal(got, PAIRS[i][1]);
            else if (PAIRS[i][1] || got)
                fail_msg("shape %zu: %s is %s", s, PAIRS[i][0], got ? got : "not set");
        }
        finish(&f);
    }
}

/* A task of a job without gang may start before its peers have places. */
static void unplaced(void **state)
{
    (void)state;
    struct job_file job = job_of(JOB_FILE_V2);
    struct job_file_task tasks[4];
    struct fixture f;
    struct buf config = BUF_INIT;
    memcpy(tasks, FOUR_TASKS, sizeof tasks);
    tasks[0].address = "";
    job.tasks = tasks;
    begin(&f, &job, &TASK);
    assert_string_equal(env_get(&f.env, "PAI_TASK_ROLE_ps_server_HOST_LIST"), "10.0.0.2:5101");
    assert_null(env_get(&f.env, "PAI_HOST_IP_ps_server_0"));
    assert_null(env_get(&f.env, "TF_CONFIG"));
    ssh_config_write(&job, "", "/k", &f.arena, &config);
    assert_null(strstr(buf_cstr(&config), "ps_server-0"));
    assert_non_null(strstr(buf_cstr(&config), "Host ps_server-1 psserver-1\n  HostName 10.0.0.2\n"
                                              "  Port 5102\n  Strict"));
    buf_release(&config);
    finish(&f);
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

int main(int argc, char **argv)
{
    static const struct CMUnitTest TESTS[] = {
        cmocka_unit_test(golden_v1),     cmocka_unit_test(golden_v2),
        cmocka_unit_test(image_and_job), cmocka_unit_test(crowded),
        cmocka_unit_test(script_quotes), cmocka_unit_test(shapes),
        cmocka_unit_test(unplaced),      cmocka_unit_test(dashes),
    };
    golden_directory = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(TESTS, NULL, NULL);
}
