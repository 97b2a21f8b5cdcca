/* files.h — a job file and a task file with everything in them, for the tests of the formats. */
#ifndef TESTS_INIT_FILES_H
#define TESTS_INIT_FILES_H
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "init/job_file.h"
#include "init/task_file.h"

static const struct job_file_port PS_PORTS[] = {{"http", 1, 0}, {"ssh", 1, 0}};
static const struct job_file_port WORKER_PORTS[] = {{"http", 2, 0}, {"ssh", 1, 0}, {"tb", 1, 6006}};
static const struct job_file_role ROLES[] = {
    {.name = "ps_server",
     .instances = 1,
     .cpu = 2,
     .memory_mib = 8192,
     .min_failed = 1,
     .min_succeeded = -1,
     .ports = PS_PORTS,
     .port_count = 2},
    {.name = "worker",
     .instances = 2,
     .cpu = 4,
     .gpu = 4,
     .memory_mib = 16384,
     .shm_mib = 64,
     .min_failed = 1,
     .min_succeeded = 2,
     .is_ssh_enabled = true,
     .ports = WORKER_PORTS,
     .port_count = 3},
};
static const struct job_file_task TASKS[] = {
    {"10.0.0.1", "n1", (const uint16_t[]){5001, 5002}},
    {"10.0.0.3", "n3", (const uint16_t[]){5201, 5203, 6006}},
    {"10.0.0.2", "n2", (const uint16_t[]){65535, 5303, 6006}},
};
static const struct job_file_pair ENVS[] = {{"A", "1"}, {"B", "two words\n"}};
static const struct job_file JOB = {
    .format = JOB_FILE_V1,
    .name = "tfdist",
    .user = "alice",
    .virtual_cluster = "vc1",
    .id = 77,
    .attempt = 3,
    .is_gang = true,
    .is_namespaced = true,
    .kill_all_on_completed = 2,
    .fs_uri = "hdfs://nn:9000",
    .data_dir = "$PAI_DEFAULT_FS_URI/d",
    .output_dir = "",
    .code_dir = "/c",
    .envs = ENVS,
    .env_count = 2,
    .roles = ROLES,
    .role_count = 2,
    .tasks = TASKS,
    .task_count = 3,
};
static const struct task_file TASK = {
    .attempt_id = 1ULL << 40,
    .container = "skep-1099511627776",
    .role = 1,
    .index = 1,
    .task_attempt = 2,
    .retries = 1,
    .gpus = (const uint16_t[]){4, 5},
    .gpu_count = 2,
    .is_gpu_simulated = true,
    .pre_command = "true",
    .command = "echo hi\n",
    .post_command = "",
    .ssh_private_key = "KEY",
    .ssh_public_key = "ssh-ed25519 AAAA skep",
    .ssh_authorized_keys = "ssh-rsa B me",
    .has_ssh_barrier = true,
    .ssh_barrier_timeout_s = 60,
    .barrier_url = "http://127.0.0.1:1/b",
    .barrier_token = "t",
    .barrier_timeout_s = 600,
    .code_path = "/files/alice/code",
    .segment_bytes = 4096,
};

#endif
