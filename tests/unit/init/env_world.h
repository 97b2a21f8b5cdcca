/* env_world.h — a job of two roles and the environment of one of its tasks, for the tests of init.
 */
#ifndef TESTS_INIT_ENV_WORLD_H
#define TESTS_INIT_ENV_WORLD_H
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "init/env.h"
#include "init/job_file.h"
#include "init/task_file.h"

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

static inline struct job_file job_of(enum job_file_format format)
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

static inline void begin(struct fixture *fixture, const struct job_file *job,
                         const struct task_file *task)
{
    arena_init(&fixture->arena);
    env_init(&fixture->env, &fixture->arena);
    env_build(&fixture->env, job, task, &HOST);
}

static inline void finish(struct fixture *fixture)
{
    env_release(&fixture->env);
    arena_release(&fixture->arena);
}

#endif
