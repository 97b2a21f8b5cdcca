/* The variables of both families, for both formats. One function for each group of
 * docs/user/environment.md. */
#include "init/env.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "init/directory.h"
#include "init/job_file.h"
#include "init/task_file.h"

/* What the groups below have in common. */
struct building {
    struct env *env;
    const struct job_file *job;
    const struct task_file *task;
    const struct env_host *host;
    const struct job_file_role *role; /* own */
    const struct job_file_task *self;
};

static void set(struct building *b, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void both(struct building *b, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void peer(struct building *b, const char *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static const char *vformat(struct arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Most are short, and a job of thousands of tasks has tens of thousands of them. */
static const char *vformat(struct arena *arena, const char *format, va_list args)
{
    char line[256];
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(line, sizeof line, format, args);
    assert(length >= 0);
    char *copy = arena_alloc(arena, (size_t)length + 1);
    if ((size_t)length < sizeof line)
        memcpy(copy, line, (size_t)length + 1);
    else
        vsnprintf(copy, (size_t)length + 1, format, again);
    va_end(again);
    return copy;
}

static const char *name_join(struct arena *arena, const char *prefix, const char *name)
{
    size_t first = strlen(prefix), second = strlen(name);
    char *joined = arena_alloc(arena, first + second + 1);
    memcpy(joined, prefix, first);
    memcpy(joined + first, name, second + 1);
    return joined;
}

static void set(struct building *b, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    env_put(b->env, name_join(b->env->arena, name, ""), vformat(b->env->arena, format, args));
    va_end(args);
}

/* PAI_name and QIZHI_name. */
static void both(struct building *b, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *value = vformat(b->env->arena, format, args);
    va_end(args);
    env_put(b->env, name_join(b->env->arena, "PAI_", name), value);
    env_put(b->env, name_join(b->env->arena, "QIZHI_", name), value);
}

/* A variable about some task of the job, its name formatted; the value in the arena. */
static void peer(struct building *b, const char *value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    env_put(b->env, vformat(b->env->arena, format, args), value)->is_peer = true;
    va_end(args);
}

/* "p,p+1,…" */
static const char *port_numbers(const struct building *b, unsigned first, uint32_t count)
{
    if (count == 1)
        return arena_format(b->env->arena, "%u", first);
    cleanup_buf struct buf list = BUF_INIT;
    for (uint32_t i = 0; i < count; i++)
        buf_format(&list, "%s%u", i ? "," : "", first + i);
    return arena_copy(b->env->arena, buf_as_text(&list));
}

static const char *role_list(const struct building *b)
{
    cleanup_buf struct buf list = BUF_INIT;
    for (size_t i = 0; i < b->job->role_count; i++)
        buf_format(&list, "%s%s", i ? "," : "", b->job->roles[i].name);
    return arena_copy(b->env->arena, buf_as_text(&list));
}

static void build_job(struct building *b)
{
    const struct job_file *job = b->job;
    const char *roles = role_list(b);
    both(b, "WORK_DIR", "%s", b->host->work_dir);
    both(b, "DEFAULT_FS_URI", "%s", job->fs_uri);
    set(b, "PAI_JOB_NAME", "%s", job_full_name(b->job, b->env->arena));
    set(b, "QIZHI_JOB_NAME", "%s", job->name);
    both(b, "FRAMEWORK_NAME", "%s", job_full_name(b->job, b->env->arena));
    set(b, "FRAMEWORK_NAME", "%s", job_full_name(b->job, b->env->arena));
    both(b, "USER_NAME", "%s", job->user);
    both(b, "USERNAME", "%s", job->user);
    set(b, "HADOOP_USER_NAME", "%s", job->user);
    both(b, "JOB_VC_NAME", "%s", job->virtual_cluster);
    both(b, "VIRTUAL_CLUSTER", "%s", job->virtual_cluster);
    both(b, "DATA_DIR", "%s", directory_expand(job, job->data_dir, b->env->arena));
    both(b, "CODE_DIR", "%s", directory_expand(job, job->code_dir, b->env->arena));
    if (job->output_dir[0] || job->format == JOB_FILE_V2)
        both(b, "OUTPUT_DIR", "%s", directory_expand(job, job->output_dir, b->env->arena));
    else
        both(b, "OUTPUT_DIR", "%s/Output/%s/%s", job->fs_uri, job->user, job->name);
    both(b, "KILL_ALL_ON_COMPLETED_TASK_NUM", "%" PRIu32, job->kill_all_on_completed);
    both(b, "JOB_TASK_COUNT", "%zu", job->task_count);
    both(b, "TASKS_NUM", "%zu", job->task_count);
    both(b, "JOB_TASK_ROLE_COUNT", "%zu", job->role_count);
    both(b, "TASK_ROLE_COUNT", "%zu", job->role_count);
    both(b, "TASK_ROLES_NUM", "%zu", job->role_count);
    both(b, "JOB_TASK_ROLE_LIST", "%s", roles);
    both(b, "TASK_ROLE_LIST", "%s", roles);
    set(b, "APP_ID", "application_%" PRIu64 "_%04" PRIu32, job->id, job->attempt + 1);
}

static const char *threshold(const struct building *b, int32_t value)
{
    bool is_null = value < 0 && b->job->format == JOB_FILE_V1; /* v1 shows null as nothing */
    return is_null ? "" : arena_format(b->env->arena, "%" PRId32, value);
}

static void build_current(struct building *b)
{
    const struct job_file_role *role = b->role;
    unsigned index = b->task->index;
    both(b, "CURRENT_TASK_ROLE_NAME", "%s", role->name);
    both(b, "CURRENT_TASK_ROLE_TASK_COUNT", "%" PRIu32, role->instances);
    both(b, "CURRENT_TASK_ROLE_CPU_COUNT", "%" PRIu32, role->cpu);
    both(b, "CURRENT_TASK_ROLE_MEM_MB", "%" PRIu64, role->memory_mib);
    both(b, "CURRENT_TASK_ROLE_SHM_MB", "%" PRIu32, role->shm_mib);
    both(b, "CURRENT_TASK_ROLE_GPU_COUNT", "%" PRIu32, role->gpu);
    both(b, "CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "%u", index);
    both(b, "CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT", "%s", threshold(b, role->min_failed));
    both(b, "CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT", "%s", threshold(b, role->min_succeeded));
    both(b, "RESOURCE", "%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu32, role->gpu, role->cpu,
         role->memory_mib, role->shm_mib);
    both(b, "TASK_INDEX", "%u", index);
    /* names of the first release, kept by all later ones */
    both(b, "TASK_ROLE_NAME", "%s", role->name);
    both(b, "TASK_ROLE_NO", "%u", b->task->role);
    both(b, "TASK_ROLE_NUM", "%" PRIu32, role->instances);
    both(b, "TASK_CPU_NUM", "%" PRIu32, role->cpu);
    both(b, "TASK_MEM_MB", "%" PRIu64, role->memory_mib);
    both(b, "TASK_GPU_NUM", "%" PRIu32, role->gpu);
    both(b, "TASK_ROLE_INDEX", "%u", index);
    both(b, "CONTAINER_ID", "%s", b->task->container);
    set(b, "CONTAINER_ID", "%s", b->task->container);
}

static void add_port_item(const struct building *b, struct buf *list, size_t port)
{
    const struct job_file_port *of = &b->role->ports[port];
    if (of->count > 0)
        buf_format(list, "%s:%s;", of->label, port_numbers(b, b->self->ports[port], of->count));
}

static void build_own_ports(struct building *b)
{
    cleanup_buf struct buf list = BUF_INIT;
    unsigned index = b->task->index, role = b->task->role;
    for (size_t i = 0; i < b->role->port_count; i++)
        if (b->role->ports[i].begin_at)
            add_port_item(b, &list, i);
    for (size_t i = 0; i < b->role->port_count; i++)
        if (!b->role->ports[i].begin_at)
            add_port_item(b, &list, i);
    both(b, "CONTAINER_HOST_PORT_LIST", "%s", buf_cstr(&list));
    for (size_t i = 0; i < b->role->port_count; i++) {
        const struct job_file_port *port = &b->role->ports[i];
        both(b, arena_format(b->env->arena, "CONTAINER_HOST_%s_PORT_LIST", port->label), "%s",
             port_numbers(b, b->self->ports[i], port->count));
    }
    both(b, "CONTAINER_HOST_IP", "%s", b->self->address);
    both(b, "CURRENT_CONTAINER_IP", "%s", b->self->address);
    both(b, "CONTAINER_HOST_PORT", "%u", env_port(b->job, role, index, "http"));
    both(b, "CURRENT_CONTAINER_PORT", "%u", env_port(b->job, role, index, "http"));
    both(b, "CONTAINER_SSH_PORT", "%u", env_port(b->job, role, index, "ssh"));
}

static void build_peer(struct building *b, size_t role, uint32_t index, const char *name)
{
    const struct job_file_role *of = &b->job->roles[role];
    const struct job_file_task *task = &b->job->tasks[job_file_first_task(b->job, role) + index];
    if (!task->address[0])
        return;
    peer(b, arena_copy(b->env->arena, text_of(task->address)), "PAI_HOST_IP_%s_%" PRIu32, name,
         index);
    for (size_t i = 0; i < of->port_count; i++) {
        const char *numbers = port_numbers(b, task->ports[i], of->ports[i].count);
        peer(b, numbers, "PAI_PORT_LIST_%s_%" PRIu32 "_%s", name, index, of->ports[i].label);
        peer(b, numbers, "PAI_%s_%" PRIu32 "_%s_PORT", name, index, of->ports[i].label);
    }
}

static void build_role(struct building *b, size_t role, const char *name)
{
    const struct job_file_role *of = &b->job->roles[role];
    struct arena *arena = b->env->arena;
    const char *hosts = env_host_list(b->job, role, "http", arena);
    both(b, arena_format(arena, "TASK_ROLE_%s_HOST_LIST", name), "%s", hosts);
    both(b, arena_format(arena, "TASK_ROLE_TASK_COUNT_%s", name), "%" PRIu32, of->instances);
    set(b, arena_format(arena, "PAI_RESOURCE_%s", name),
        "%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu32, of->gpu, of->cpu, of->memory_mib,
        of->shm_mib);
    set(b, arena_format(arena, "PAI_MIN_FAILED_TASK_COUNT_%s", name), "%s",
        threshold(b, of->min_failed));
    set(b, arena_format(arena, "PAI_MIN_SUCCEEDED_TASK_COUNT_%s", name), "%s",
        threshold(b, of->min_succeeded));
    for (uint32_t i = 0; i < of->instances; i++)
        build_peer(b, role, i, name);
}

/* FrameworkBarrier: FB_<ROLE>_IPS and _ADDRESSES; the port is what jobEnvs say in FB_<ROLE>_PORT,
 * else each task's first http port. */
static void build_barrier(struct building *b, size_t role, const char *name)
{
    struct arena *arena = b->env->arena;
    char *upper = arena_copy(arena, text_of(name));
    for (char *c = upper; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    const char *port_name = arena_format(arena, "FB_%s_PORT", upper), *port = NULL;
    for (size_t i = 0; i < b->job->env_count; i++)
        if (strcmp(b->job->envs[i].name, port_name) == 0)
            port = b->job->envs[i].value;
    cleanup_buf struct buf ips = BUF_INIT, addresses = BUF_INIT;
    size_t first = job_file_first_task(b->job, role);
    for (uint32_t i = 0; i < b->job->roles[role].instances; i++) {
        const char *ip = b->job->tasks[first + i].address;
        if (!ip[0])
            continue;
        buf_format(&ips, "%s%s", ips.length ? "," : "", ip);
        buf_format(&addresses, "%s%s:", addresses.length ? "," : "", ip);
        if (port)
            buf_string(&addresses, port);
        else
            buf_format(&addresses, "%u", env_port(b->job, role, i, "http"));
    }
    set(b, arena_format(arena, "FB_%s_IPS", upper), "%s", buf_cstr(&ips));
    set(b, arena_format(arena, "FB_%s_ADDRESSES", upper), "%s", buf_cstr(&addresses));
}

/* v2 names roles in this list as FrameworkController did: `ssh` aliases and PAI_HOST_IP_* exist in
 * that spelling too. */
static const char *role_controller_name(const struct building *b, size_t role)
{
    const char *spellings[ENV_SPELLINGS];
    size_t count = env_role_spellings(b->job, role, b->env->arena, spellings);
    return spellings[b->job->format == JOB_FILE_V2 && count > 1 ? 1 : 0];
}

static void build_roles(struct building *b)
{
    cleanup_buf struct buf instances = BUF_INIT;
    for (size_t i = 0; i < b->job->role_count; i++) {
        const char *spellings[ENV_SPELLINGS];
        size_t count = env_role_spellings(b->job, i, b->env->arena, spellings);
        const char *hosts = env_host_list(b->job, i, "http", b->env->arena);
        both(b, arena_format(b->env->arena, "TASK_ROLE_%zu_HOST_LIST", i), "%s", hosts);
        for (size_t k = 0; k < count; k++)
            build_role(b, i, spellings[k]);
        build_barrier(b, i, spellings[count - 1]);
        for (uint32_t k = 0; k < b->job->roles[i].instances; k++)
            buf_format(&instances, "%s%s:%" PRIu32, instances.length ? "," : "",
                       role_controller_name(b, i), k);
    }
    set(b, "PAI_TASK_ROLE_INSTANCES", "%s", buf_cstr(&instances));
}

static void build_controller(struct building *b)
{
    const struct task_file *task = b->task;
    set(b, "FC_FRAMEWORK_NAMESPACE", "default");
    set(b, "FC_FRAMEWORK_NAME", "%s", job_full_name(b->job, b->env->arena));
    set(b, "FC_FRAMEWORK_UID", "%" PRIu64, b->job->id);
    set(b, "FC_FRAMEWORK_ATTEMPT_ID", "%" PRIu32, b->job->attempt);
    set(b, "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID", "%" PRIu32 "_%" PRIu64, b->job->attempt,
        b->job->id);
    set(b, "FC_CONFIGMAP_NAME", "%s-attempt", job_full_name(b->job, b->env->arena));
    set(b, "FC_CONFIGMAP_UID", "%" PRIu64, b->job->id);
    set(b, "FC_TASKROLE_NAME", "%s", role_controller_name(b, task->role));
    set(b, "FC_TASKROLE_UID", "%" PRIu64 "-%u", b->job->id, task->role);
    set(b, "FC_TASK_INDEX", "%u", task->index);
    set(b, "FC_TASK_UID", "%" PRIu64 "-%u-%u", b->job->id, task->role, task->index);
    set(b, "FC_TASK_ATTEMPT_ID", "%" PRIu32, task->task_attempt);
    set(b, "FC_TASK_ATTEMPT_INSTANCE_UID", "%" PRIu32 "_%" PRIu64, task->task_attempt,
        task->attempt_id);
    set(b, "FC_POD_NAME", "%s", task->container);
    set(b, "FC_POD_UID", "%" PRIu64, task->attempt_id);
}

static void build_gpus(struct building *b)
{
    cleanup_buf struct buf devices = BUF_INIT, visible = BUF_INIT;
    for (size_t i = 0; i < b->task->gpu_count; i++) {
        buf_format(&devices, "%s%u", i ? "," : "", b->task->gpus[i]);
        buf_format(&visible, "%s%zu", i ? "," : "", i);
    }
    /* The container holds just these devices, so that CUDA numbers them from 0. */
    set(b, "NVIDIA_VISIBLE_DEVICES", "%s", b->task->gpu_count ? buf_cstr(&devices) : "none");
    set(b, "CUDA_VISIBLE_DEVICES", "%s", buf_cstr(&visible));
    set(b, "SKEP_GPUS", "%s", buf_cstr(&devices));
    set(b, "SKEP_GPUS_SIMULATED", "%d", b->task->is_gpu_simulated);
}

static void set_default(struct building *b, const char *name, const char *value)
{
    env_put(b->env, name, value)->is_default = true; /* both are literals */
}

static void build_skep(struct building *b)
{
    set(b, "SKEP_JOB_ID", "%" PRIu64, b->job->id);
    set(b, "SKEP_JOB_ATTEMPT", "%" PRIu32, b->job->attempt);
    set(b, "SKEP_ATTEMPT_ID", "%" PRIu64, b->task->attempt_id);
    set(b, "SKEP_TASK_ATTEMPT", "%" PRIu32, b->task->task_attempt);
    set(b, "SKEP_TASK_RETRIES", "%" PRIu32, b->task->retries);
    set(b, "SKEP_NODE", "%s", b->self->node);
    set(b, "SKEP_STOP_REASON_FILE", "%s", b->host->reason_file);
    set(b, "PAI_STOP_REASON_FILE", "%s", b->host->reason_file);
    set_default(b, "PYTHONUNBUFFERED", "1");
    set_default(b, "PYTHONFAULTHANDLER", "1");
}

void env_build(struct env *env, const struct job_file *job, const struct task_file *task,
               const struct env_host *host)
{
    assert(env_job_has_task(job, task->role, task->index));
    struct building b = {env,
                         job,
                         task,
                         host,
                         &job->roles[task->role],
                         &job->tasks[job_file_first_task(job, task->role) + task->index]};
    build_job(&b);
    build_current(&b);
    build_own_ports(&b);
    build_roles(&b);
    build_controller(&b);
    build_gpus(&b);
    build_skep(&b);
    env_build_training(env, job, task, host);
    for (size_t i = 0; i < job->env_count; i++)
        if (job->envs[i].name[0] && !strchr(job->envs[i].name, '='))
            env_set(env, job->envs[i].name, job->envs[i].value);
}
