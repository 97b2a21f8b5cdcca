/* job_file.h — what every task of a job attempt must know: roles, places, ports.
 *
 * Pure. Written once per job attempt by the server when all its tasks have places, read by
 * skep-init. Compact binary with a version; a reader refuses what it does not know (ERR_CORRUPT,
 * ERR_UNSUPPORTED) instead of guessing. Holds no secret.
 *
 * skep-init computes the environment from this table: a job of 500 tasks would else write 500 × 500
 * variables to disk.
 */
#ifndef INIT_JOB_FILE_H
#define INIT_JOB_FILE_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;

enum {
    JOB_FILE_ROLES_MAX = 256,
    JOB_FILE_TASKS_MAX = 20000,
    JOB_FILE_PORTS_MAX = 1000, /* labels of one role */
    JOB_FILE_PAIRS_MAX = 10000,
    JOB_FILE_BYTES_MAX = 64 << 20,
};

enum job_file_format { JOB_FILE_V1, JOB_FILE_V2 };

struct job_file_pair {
    const char *name, *value;
};

struct job_file_port {
    const char *label;
    uint32_t count;    /* consecutive numbers */
    uint32_t begin_at; /* v1: fixed first port; 0 = chosen by the platform */
};

struct job_file_role {
    const char *name; /* as written in the job file */
    uint32_t instances, cpu, gpu, shm_mib;
    uint64_t memory_mib;
    int32_t min_failed, min_succeeded; /* -1: off */
    bool is_ssh_enabled;
    bool is_ssh_optional; /* where the image has no sshd, the task does without; always in v1 */
    const struct job_file_port *ports; /* `ssh` and `http` among them */
    size_t port_count;
};

/* Tasks stand in the order of the roles, then of their index. A task without a place yet (jobs
 * without gang) has address "" and its ports are 0. */
struct job_file_task {
    const char *address, *node;
    const uint16_t *ports; /* first port of each of the role's labels, in their order */
};

struct job_file {
    uint8_t format; /* enum job_file_format */
    const char *name, *user, *virtual_cluster;
    uint64_t id;      /* of the job */
    uint32_t attempt; /* index of the job's attempt, from 0 */
    bool is_gang;
    bool is_namespaced; /* PAI_JOB_NAME is "user~job"; false: submitted by the oldest v1 paths */
    uint32_t kill_all_on_completed;               /* v1; 0 = off */
    const char *fs_uri;                           /* "hdfs://…", "" = none */
    const char *data_dir, *output_dir, *code_dir; /* v1, as written; "" = none */
    const struct job_file_pair *envs;             /* v1 jobEnvs, set last and verbatim */
    size_t env_count;
    const struct job_file_role *roles;
    size_t role_count;
    const struct job_file_task *tasks; /* sum of instances */
    size_t task_count;
};

/* Append the encoding. Asserts the limits: the server has checked them long before. */
void job_file_write(const struct job_file *job, struct buf *out);

/* Everything that `job` points to is in `arena`. ERR_CORRUPT: not a job file, or damaged;
 * ERR_UNSUPPORTED: of another version. */
int job_file_read(struct text bytes, struct arena *arena, struct job_file *job, struct err *err);

/* Index in `tasks` of a role's first task. */
size_t job_file_first_task(const struct job_file *job, size_t role);

#endif
