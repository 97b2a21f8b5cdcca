/* How a job's tasks are reached by ssh: early PAI's answer. */
#include "api/handlers.h"
#include "api/link.h"
#include "base/memory.h"
#include "spec/spec.h"
#include <assert.h>
#include <stdio.h>

/* OpenPAI's later versions have the path and never an answer. */
int handle_job_ssh(struct call *call)
{
    struct store_job job;
    int code = call_job(call, call->parameters[0], &job);
    if (code)
        return code;
    return call_fail(call, ERR_NOT_FOUND, "NoJobSshInfoError", "",
                     "where the tasks are reached by ssh stands in the job's detail "
                     "(containerIp, containerPorts); GET /api/v1/jobs/JOB/ssh has the key, too");
}

static int no_ssh(struct call *call, const struct store_job *job)
{
    return call_fail(call, ERR_NOT_FOUND, "NoJobSshInfoError", "",
                     "SSH info of job %s~%s is not found.", job->record.user, job->record.name);
}

static bool has_ssh(const struct spec *spec)
{
    for (size_t i = 0; i < spec->role_count; i++)
        if (spec->roles[i].is_ssh_enabled)
            return true;
    return false;
}

/* The job with its tasks, when the caller may have its key and its tasks have ssh. Early PAI gave
 * the key to everybody, without a token. */
static int ssh_read(struct call *call, struct store_job *job, struct spec **spec,
                    struct store_tasks *tasks)
{
    struct store_source source;
    *spec = NULL;
    int code = call_job_v1(call, job);
    if (!code)
        code = call_may(call, AUTH_CHANGE_JOB, job);
    if (!code && !call_reader(call))
        code = call->err.code;
    if (!code)
        code = store_job_source(call->reader, job->record.id, call->arena, &source, &call->err);
    if (!code)
        code = store_tasks(call->reader, job->record.id, -1, call->arena, tasks, &call->err);
    if (code)
        return code;
    *spec = spec_decode(source.spec_bytes, &call->err);
    if (!*spec)
        return call->err.code;
    if (!has_ssh(*spec)) {
        spec_free(*spec);
        *spec = NULL;
        return no_ssh(call, job);
    }
    return 0;
}

static const struct port_range *ssh_port(const struct task_record *task)
{
    for (size_t i = 0; i < task->port_count; i++)
        if (strcmp(task->ports[i].label, "ssh") == 0)
            return &task->ports[i];
    return NULL;
}

/* Ports were texts. */
static void task_json(struct json_writer *json, const struct task_record *task)
{
    const struct port_range *port = ssh_port(task);
    char text[32];
    if (!task->attempt.v || !port || !task->address || !task->address[0])
        return;
    json_object(json);
    snprintf(text, sizeof text, "skep-%llu", (unsigned long long)task->attempt.v);
    json_key_string(json, "id", text);
    json_key_string(json, "sshIp", task->address);
    snprintf(text, sizeof text, "%u", port->first);
    json_key_string(json, "sshPort", text);
    json_object_end(json);
}

static void keys_json(struct call *call, struct json_writer *json, const struct job_record *job)
{
    const char *name = arena_format(call->arena, "%s~%s", job->user, job->name);
    const char *path = arena_format(call->arena, "/api/v1/jobs/%s/ssh/key", name);
    json_key(json, "keyPair");
    json_object(json);
    json_key_string(json, "folderPath",
                    arena_format(call->arena, "/Container/%s/%s/ssh/keyFiles", job->user, name));
    json_key_string(json, "publicKeyFileName", arena_format(call->arena, "%s.pub", name));
    json_key_string(json, "privateKeyFileName", name);
    json_key_string(json, "privateKeyDirectDownloadLink", link_make(call, path, ""));
    json_object_end(json);
}

int handle_job_ssh_v1(struct call *call)
{
    struct store_job job;
    struct store_tasks tasks = {0};
    cleanup_spec struct spec *spec = NULL;
    int code = ssh_read(call, &job, &spec, &tasks);
    if (code)
        return code;
    assert(spec);
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key(&json, "containers");
    json_array(&json);
    for (size_t i = 0; i < tasks.count; i++)
        if (tasks.items[i].task.role < spec->role_count &&
            spec->roles[tasks.items[i].task.role].is_ssh_enabled)
            task_json(&json, &tasks.items[i]);
    json_array_end(&json);
    keys_json(call, &json, &job.record);
    json_object_end(&json);
    return 0;
}

int handle_job_ssh_key(struct call *call)
{
    struct service *service = call->api->service;
    struct store_job job;
    struct store_tasks tasks = {0};
    cleanup_spec struct spec *spec = NULL;
    const char *private_key, *public_key;
    int code = ssh_read(call, &job, &spec, &tasks);
    if (code)
        return code;
    service->ssh_keys(service->context, job.record.id,
                      arena_format(call->arena, "%s~%s", job.record.user, job.record.name),
                      call->arena, &private_key, &public_key);
    exchange_header(call->exchange, "Cache-Control", "no-store");
    call_text(call, 200, "application/x-pem-file", text_of(private_key));
    return 0;
}
