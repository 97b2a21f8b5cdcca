/* env.h — the environment of a task, computed from the job file and the task file.
 *
 * Pure. Both families of names are set for both job formats: PAI_* and QIZHI_* (which differ in
 * JOB_NAME only), the names without prefix that early jobs used, FrameworkController's FC_* and
 * FB_*, the conventions of distributed training, and SKEP_*. Where two generations spelled one name
 * in two ways (role name as written, or lowered and stripped), both are set.
 *
 * Source of the rules: PAI 0.1 to 0.14 and QIZHI 1.0 bootstrap, OpenPAI 1.x runtime,
 * FrameworkController; docs/user/environment.md is the list.
 */
#ifndef INIT_ENV_H
#define INIT_ENV_H
#include "base/map.h"
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct buf;
struct job_file;
struct task_file;

enum {
    ENV_VALUE_MAX = 128 * 1024 - 4096, /* Linux refuses a single string of 128 KiB */
    ENV_BYTES_MAX = 1 << 20,           /* and all of them beyond a quarter of the stack limit */
};

struct env_entry {
    const char *name, *value;
    bool is_default; /* gives way to the image's own value */
    bool is_peer;    /* about another task: the first to go when there are too many */
};

struct env {
    struct arena *arena;
    struct env_entry *items;
    size_t count, room;
    struct text_map by_name;
};

/* What only the running container knows. */
struct env_host {
    const char *work_dir;  /* at the start, the image's */
    const char *interface; /* network interface that has the task's address; "" = unknown */
    const char *reason_file;
};

/* Entries and their strings live in `arena`, which must outlive env. */
void env_init(struct env *env, struct arena *arena);
void env_release(struct env *env);
void env_set(struct env *env, const char *name, const char *value); /* the last one counts */
/* As env_set, but both strings live in env's arena already. Returns the entry, valid until the
 * next. */
struct env_entry *env_put(struct env *env, const char *name, const char *value);
const char *env_get(const struct env *env, const char *name); /* NULL: not set */

/* Everything. The task must be one of the job's (env_job_has_task). */
void env_build(struct env *env, const struct job_file *job, const struct task_file *task,
               const struct env_host *host);

/* MASTER_ADDR, RANK, TF_CONFIG …; a part of env_build. */
void env_build_training(struct env *env, const struct job_file *job, const struct task_file *task,
                        const struct env_host *host);

/* The image's environment with `env` on top, as execve wants it, in the arena. Variables that
 * would make the kernel refuse it are left out: single values over ENV_VALUE_MAX, and those about
 * other tasks when all take more than ENV_BYTES_MAX. Returns how many were left out. */
size_t env_merge(const struct env *env, char *const *image, char ***merged);

/* All of `env` as a shell script of export lines, for those that env_merge had to leave out. */
void env_write_script(const struct env *env, struct buf *out);

/* Spellings of a role's name in variables: as written; v2: lower-case letters and digits only;
 * with _ for what a shell does not allow. Returns how many differ (1 to 3). */
enum { ENV_SPELLINGS = 3 };
size_t env_role_spellings(const struct job_file *job, size_t role, struct arena *arena,
                          const char *spellings[ENV_SPELLINGS]);

/* "10.0.0.1:5001,10.0.0.2:5101": the first port labelled `label` (first label when absent) of the
 * role's placed tasks. */
const char *env_host_list(const struct job_file *job, size_t role, const char *label,
                          struct arena *arena);

/* First port of a label of one task; 0 when the role has no such label. */
unsigned env_port(const struct job_file *job, size_t role, size_t index, const char *label);

bool env_job_has_task(const struct job_file *job, size_t role, size_t index);

#endif
