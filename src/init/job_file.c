#include "init/job_file.h"

#include <assert.h>

#include "base/arena.h"
#include "base/err.h"
#include "init/codec.h"

#define MAGIC "skep-job"
enum { VERSION = 1 };
enum { SSH_OFF, SSH_ON, SSH_OPTIONAL };

size_t job_file_first_task(const struct job_file *job, size_t role)
{
    assert(role <= job->role_count);
    size_t first = 0;
    for (size_t i = 0; i < role; i++)
        first += job->roles[i].instances;
    return first;
}

static void role_write(const struct job_file_role *role, struct buf *out)
{
    codec_put_string(out, role->name);
    buf_put_u32(out, role->instances);
    buf_put_u32(out, role->cpu);
    buf_put_u32(out, role->gpu);
    buf_put_u32(out, role->shm_mib);
    buf_put_u64(out, role->memory_mib);
    buf_put_u32(out, (uint32_t)role->min_failed);
    buf_put_u32(out, (uint32_t)role->min_succeeded);
    buf_put_u8(out, !role->is_ssh_enabled   ? SSH_OFF
                    : role->is_ssh_optional ? SSH_OPTIONAL
                                            : SSH_ON);
    assert(role->port_count <= JOB_FILE_PORTS_MAX);
    buf_put_u32(out, (uint32_t)role->port_count);
    for (size_t i = 0; i < role->port_count; i++) {
        codec_put_string(out, role->ports[i].label);
        buf_put_u32(out, role->ports[i].count);
        buf_put_u32(out, role->ports[i].begin_at);
    }
}

static void task_write(const struct job_file_task *task, size_t port_count, struct buf *out)
{
    codec_put_string(out, task->address);
    codec_put_string(out, task->node);
    for (size_t i = 0; i < port_count; i++) {
        buf_put_u8(out, (uint8_t)task->ports[i]);
        buf_put_u8(out, (uint8_t)(task->ports[i] >> 8));
    }
}

void job_file_write(const struct job_file *job, struct buf *out)
{
    assert(job->role_count <= JOB_FILE_ROLES_MAX && job->task_count <= JOB_FILE_TASKS_MAX);
    assert(job->env_count <= JOB_FILE_PAIRS_MAX);
    assert(job_file_first_task(job, job->role_count) == job->task_count);
    size_t begin = codec_begin(out, MAGIC, VERSION);
    buf_put_u8(out, job->format);
    buf_put_u8(out, job->is_gang);
    buf_put_u8(out, job->is_namespaced);
    buf_put_u64(out, job->id);
    buf_put_u32(out, job->attempt);
    buf_put_u32(out, job->kill_all_on_completed);
    codec_put_string(out, job->name);
    codec_put_string(out, job->user);
    codec_put_string(out, job->virtual_cluster);
    codec_put_string(out, job->fs_uri);
    codec_put_string(out, job->data_dir);
    codec_put_string(out, job->output_dir);
    codec_put_string(out, job->code_dir);
    buf_put_u32(out, (uint32_t)job->env_count);
    for (size_t i = 0; i < job->env_count; i++) {
        codec_put_string(out, job->envs[i].name);
        codec_put_string(out, job->envs[i].value);
    }
    buf_put_u32(out, (uint32_t)job->role_count);
    for (size_t i = 0; i < job->role_count; i++)
        role_write(&job->roles[i], out);
    const struct job_file_task *task = job->tasks;
    for (size_t i = 0; i < job->role_count; i++)
        for (uint32_t k = 0; k < job->roles[i].instances; k++)
            task_write(task++, job->roles[i].port_count, out);
    codec_end(out, begin);
}

/* A name that becomes part of a variable's name. */
static const char *name_read(struct cursor *in, struct arena *arena)
{
    const char *name = codec_string(in, arena);
    if (!name[0] || strchr(name, '='))
        in->is_bad = true;
    return name;
}

static void role_read(struct cursor *in, struct arena *arena, struct job_file_role *role)
{
    role->name = name_read(in, arena);
    role->instances = cursor_u32(in);
    role->cpu = cursor_u32(in);
    role->gpu = cursor_u32(in);
    role->shm_mib = cursor_u32(in);
    role->memory_mib = cursor_u64(in);
    role->min_failed = (int32_t)cursor_u32(in);
    role->min_succeeded = (int32_t)cursor_u32(in);
    uint8_t ssh = cursor_u8(in);
    role->is_ssh_enabled = ssh != SSH_OFF;
    role->is_ssh_optional = ssh == SSH_OPTIONAL;
    if (ssh > SSH_OPTIONAL)
        in->is_bad = true;
    role->port_count = codec_count(in, JOB_FILE_PORTS_MAX, 12);
    struct job_file_port *ports = ARENA_ARRAY(arena, struct job_file_port, role->port_count);
    for (size_t i = 0; i < role->port_count; i++) {
        ports[i].label = name_read(in, arena);
        ports[i].count = cursor_u32(in);
        ports[i].begin_at = cursor_u32(in);
        if (ports[i].count > UINT16_MAX)
            in->is_bad = true;
    }
    role->ports = ports;
}

static void task_read(struct cursor *in, struct arena *arena, size_t port_count,
                      struct job_file_task *task)
{
    task->address = codec_string(in, arena);
    task->node = codec_string(in, arena);
    uint16_t *ports = ARENA_ARRAY(arena, uint16_t, port_count);
    for (size_t i = 0; i < port_count; i++) {
        ports[i] = cursor_u8(in);
        ports[i] = (uint16_t)(ports[i] | (cursor_u8(in) << 8));
    }
    task->ports = ports;
}

static void tasks_read(struct cursor *in, struct arena *arena, struct job_file *job)
{
    uint64_t count = 0;
    for (size_t i = 0; i < job->role_count; i++)
        count += job->roles[i].instances;
    if (in->is_bad || count > JOB_FILE_TASKS_MAX) {
        in->is_bad = true;
        return;
    }
    struct job_file_task *tasks = ARENA_ARRAY(arena, struct job_file_task, (size_t)count);
    size_t at = 0;
    for (size_t i = 0; i < job->role_count; i++)
        for (uint32_t k = 0; k < job->roles[i].instances && !in->is_bad; k++)
            task_read(in, arena, job->roles[i].port_count, &tasks[at++]);
    job->tasks = tasks;
    job->task_count = at;
}

static void envs_read(struct cursor *in, struct arena *arena, struct job_file *job)
{
    job->env_count = codec_count(in, JOB_FILE_PAIRS_MAX, 8);
    struct job_file_pair *envs = ARENA_ARRAY(arena, struct job_file_pair, job->env_count);
    for (size_t i = 0; i < job->env_count; i++) {
        envs[i].name = codec_string(in, arena);
        envs[i].value = codec_string(in, arena);
    }
    job->envs = envs;
}

int job_file_read(struct text bytes, struct arena *arena, struct job_file *job, struct err *err)
{
    struct cursor in;
    *job = (struct job_file){0};
    int code = codec_open(bytes, MAGIC, VERSION, JOB_FILE_BYTES_MAX, &in, err);
    if (code < 0)
        return code;
    job->format = cursor_u8(&in);
    job->is_gang = cursor_u8(&in) != 0;
    job->is_namespaced = cursor_u8(&in) != 0;
    job->id = cursor_u64(&in);
    job->attempt = cursor_u32(&in);
    job->kill_all_on_completed = cursor_u32(&in);
    job->name = codec_string(&in, arena);
    job->user = codec_string(&in, arena);
    job->virtual_cluster = codec_string(&in, arena);
    job->fs_uri = codec_string(&in, arena);
    job->data_dir = codec_string(&in, arena);
    job->output_dir = codec_string(&in, arena);
    job->code_dir = codec_string(&in, arena);
    envs_read(&in, arena, job);
    job->role_count = codec_count(&in, JOB_FILE_ROLES_MAX, 41);
    struct job_file_role *roles = ARENA_ARRAY(arena, struct job_file_role, job->role_count);
    for (size_t i = 0; i < job->role_count; i++)
        role_read(&in, arena, &roles[i]);
    job->roles = roles;
    tasks_read(&in, arena, job);
    if (in.is_bad || in.at != in.end || job->format > JOB_FILE_V2 || job->role_count == 0)
        return err_fail(err, ERR_CORRUPT, "", "the job file is damaged");
    return 0;
}
