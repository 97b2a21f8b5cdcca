/* container.h — makes what the engine needs to start one attempt from what the store has of its
 * job.
 *
 * The launcher's thread, which keeps a `struct launch_job`; secrets_seal, which keeps nothing, is
 * for any thread. Plaintext secrets live in the arena given; it must be one that is wiped.
 */
#ifndef SERVER_CONTAINER_H
#define SERVER_CONTAINER_H
#include "base/buf.h"
#include "core/output.h"
#include "engine/engine.h"
#include "model/storage.h"
#include "server/v1_files.h"
#include "spec/spec.h"
#include "store/read.h"
#include "sys/key_file.h"

/* What jobs can have mounted. */
struct launch_places {
    const struct file_space *space;
    struct storage_list storages;
};

/* One job attempt, as all its tasks share it. */
struct launch_job {
    struct job_id job;
    uint32_t attempt;
    struct arena arena; /* of the rows */
    struct store_job row;
    struct store_source source;
    struct store_tasks tasks;
    struct store_accounts accounts;
    const char *user_keys; /* authorized_keys lines of the user's profile */
    struct spec *spec;
    struct launch_places places;
    struct v1_files files;
    struct buf job_file;
};

/* ERR_NOT_FOUND: the job has been removed; ERR_CORRUPT: its spec cannot be read; as v1_files_make.
 * What `places` names is borrowed until the release. */
int launch_job_load(struct store_reader *reader, struct job_id job,
                    const struct launch_places *places, struct launch_job *launch, struct err *err);
void launch_job_release(struct launch_job *launch);

/* NULL: this attempt is not the task's current one any more. */
const struct task_record *launch_job_task(const struct launch_job *launch, struct task_ref task,
                                          struct attempt_id attempt);

/* What those of its tasks that run may be told of their peers' addresses (init/address_file.h).
 * False: nothing yet, or it has one task alone. */
bool launch_job_peers(const struct launch_job *launch, struct arena *arena, struct buf *out);

struct container_keys {
    const struct key_file *sealing; /* of the secrets */
    const uint8_t *master_key;      /* the barrier's token is derived from it */
    const uint8_t *epoch_key;       /* the job's ssh key is (epoch_key_make) */
    const char *api_url;            /* as a task can reach it; "" unknown */
    bool has_claims;                /* its engine mounts the claims of a Kubernetes cluster */
    uint64_t log_segment_bytes;
};

/* Everything that `container` points to lives in `arena` or in `launch`. */
int container_make(const struct launch_job *launch, const struct task_record *task,
                   const struct container_keys *keys, bool is_gpu_simulated, struct arena *arena,
                   struct container *container, struct err *err);

/* What a job's keys are derived from: the master key itself in the first epoch, afterwards another
 * in each, so that a job of a restored server has no key of one that the copy did not know. */
void epoch_key_make(const uint8_t *master_key, const struct store_epoch *epoch,
                    uint8_t key[SECRET_KEY_SIZE]);

/* The secrets of a job file, as the store keeps them. */
void secrets_seal(const struct spec_pair *secrets, size_t count, const uint8_t *key,
                  struct buf *sealed);
int secrets_open(struct text sealed, const struct key_file *keys, struct arena *arena,
                 struct spec_pair **secrets, size_t *count, struct err *err);

/* plugin.c: shell text of a role's runtime plugins. */
struct plugin_text {
    struct buf pre, post, authorized_keys;
};
int plugin_write(const struct spec *spec, const struct spec_role *role,
                 const struct spec_pair *secrets, size_t secret_count, struct plugin_text *text,
                 struct err *err);
void plugin_text_release(struct plugin_text *text); /* wiped */
#define cleanup_plugin_text __attribute__((cleanup(plugin_text_release)))

/* ssh_key.c: the job's key pair, the same whenever it is made. Ed25519, OpenSSH's format. */
void ssh_key_make(const uint8_t *epoch_key, struct job_id job, const char *comment,
                  struct arena *arena, const char **private_key, const char **public_key);

#endif
