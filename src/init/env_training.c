/* Conventions of distributed training: torch.distributed's variables and TensorFlow's TF_CONFIG,
 * where the shape of the job says what they must be. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json_writer.h"
#include "init/env.h"
#include "init/job_file.h"
#include "init/task_file.h"

enum kind { KIND_OTHER, KIND_CHIEF, KIND_MASTER, KIND_WORKER, KIND_PS, KIND_EVALUATOR };

static bool begins_word(const char *name, const char *word)
{
    size_t i = 0;
    for (; word[i]; i++)
        if ((name[i] | 0x20) != word[i]) /* letters only: lower case */
            return false;
    char next = (char)(name[i] | 0x20);
    return !(next >= 'a' && next <= 'z');
}

static enum kind role_kind(const char *name)
{
    static const struct {
        const char *word;
        enum kind kind;
    } WORDS[] = {
        {"chief", KIND_CHIEF},   {"master", KIND_MASTER}, {"workers", KIND_WORKER},
        {"worker", KIND_WORKER}, {"ps", KIND_PS},         {"evaluator", KIND_EVALUATOR},
    };
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (begins_word(name, WORDS[i].word))
            return WORDS[i].kind;
    return begins_word(name, "parameter") ? KIND_PS : KIND_OTHER;
}

/* The role of this kind, or -1. */
static int kind_find(const struct job_file *job, enum kind kind)
{
    for (size_t i = 0; i < job->role_count; i++)
        if (role_kind(job->roles[i].name) == kind)
            return (int)i;
    return -1;
}

static const char *kind_name(enum kind kind)
{
    switch (kind) {
    case KIND_CHIEF:
        return "chief";
    case KIND_MASTER:
        return "master";
    case KIND_WORKER:
        return "worker";
    case KIND_PS:
        return "ps";
    case KIND_EVALUATOR:
        return "evaluator";
    case KIND_OTHER:
        break;
    }
    return "";
}

/* Roles that train as one group, in the order of their ranks: master (or chief) and worker when the
 * job has both, else the own role alone. */
static size_t group_roles(const struct job_file *job, size_t own, size_t roles[2])
{
    enum kind kind = role_kind(job->roles[own].name);
    int first = kind_find(job, KIND_MASTER), second = kind_find(job, KIND_WORKER);
    if (first < 0)
        first = kind_find(job, KIND_CHIEF);
    bool is_member = kind == KIND_MASTER || kind == KIND_CHIEF || kind == KIND_WORKER;
    if (!is_member || first < 0 || second < 0 || (own != (size_t)first && own != (size_t)second)) {
        roles[0] = own;
        return 1;
    }
    roles[0] = (size_t)first;
    roles[1] = (size_t)second;
    return 2;
}

static void set_number(struct env *env, const char *name, uint64_t value)
{
    env_set(env, name, arena_format(env->arena, "%" PRIu64, value));
}

static void set_interface(struct env *env, const char *interface)
{
    static const char *const NAMES[] = {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME",
                                        "TP_SOCKET_IFNAME"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        env_put(env, NAMES[i], arena_copy(env->arena, text_of(interface)))->is_default = true;
    }
}

static void build_torch(struct env *env, const struct job_file *job, const struct task_file *task,
                        const struct env_host *host)
{
    size_t roles[2], count = group_roles(job, task->role, roles);
    uint64_t world = 0, rank = 0;
    uint32_t gpus = 0;
    for (size_t i = 0; i < count; i++) {
        const struct job_file_role *role = &job->roles[roles[i]];
        if (roles[i] == task->role)
            rank = world + task->index;
        world += role->instances;
        gpus = role->gpu > gpus ? role->gpu : gpus;
    }
    const char *address = job->tasks[job_file_first_task(job, roles[0])].address;
    if (world < 2 || !address[0])
        return;
    unsigned port = env_port(job, roles[0], 0, "master");
    env_set(env, "MASTER_ADDR", address);
    set_number(env, "MASTER_PORT", port ? port : env_port(job, roles[0], 0, "http"));
    set_number(env, "NNODES", world);
    set_number(env, "NODE_RANK", rank);
    if (gpus <= 1) { /* one process a task; with more GPUs the program decides how many */
        set_number(env, "WORLD_SIZE", world);
        set_number(env, "RANK", rank);
        set_number(env, "LOCAL_RANK", 0);
    }
    if (host->interface[0])
        set_interface(env, host->interface);
}

/* All roles are of TensorFlow's kinds, no kind twice, and somebody trains. */
static bool is_tensorflow_shape(const struct job_file *job)
{
    unsigned seen = 0;
    for (size_t i = 0; i < job->role_count; i++) {
        enum kind kind = role_kind(job->roles[i].name);
        if (kind == KIND_OTHER || (seen & (1U << kind)))
            return false;
        seen |= 1U << kind;
    }
    unsigned trains = 1U << KIND_WORKER | 1U << KIND_CHIEF | 1U << KIND_MASTER;
    return (seen & trains) && job->task_count > 1;
}

static void tensorflow_hosts(const struct job_file *job, size_t role, struct json_writer *json)
{
    char host[320];
    size_t first = job_file_first_task(job, role);
    json_array(json);
    for (uint32_t i = 0; i < job->roles[role].instances; i++) {
        snprintf(host, sizeof host, "%s:%u", job->tasks[first + i].address,
                 env_port(job, role, i, "http"));
        json_string(json, host);
    }
    json_array_end(json);
}

static void build_tensorflow(struct env *env, const struct job_file *job,
                             const struct task_file *task)
{
    if (!is_tensorflow_shape(job))
        return;
    for (size_t i = 0; i < job->task_count; i++)
        if (!job->tasks[i].address[0])
            return;
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_object(&json);
    json_key(&json, "cluster");
    json_object(&json);
    for (size_t i = 0; i < job->role_count; i++) {
        enum kind kind = role_kind(job->roles[i].name);
        if (kind == KIND_EVALUATOR) /* not a member of the cluster, says TensorFlow */
            continue;
        json_key(&json, kind_name(kind));
        tensorflow_hosts(job, i, &json);
    }
    json_object_end(&json);
    json_key(&json, "task");
    json_object(&json);
    json_key_string(&json, "type", kind_name(role_kind(job->roles[task->role].name)));
    json_key_int(&json, "index", task->index);
    json_object_end(&json);
    json_object_end(&json);
    env_set(env, "TF_CONFIG", buf_cstr(&text));
}

void env_build_training(struct env *env, const struct job_file *job, const struct task_file *task,
                        const struct env_host *host)
{
    assert(env_job_has_task(job, task->role, task->index));
    build_torch(env, job, task, host);
    build_tensorflow(env, job, task);
}
