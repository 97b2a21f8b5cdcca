/* POST /jobs/:job/webPorts: a way into what a task serves on one of its ports. */
#include "api/audit.h"
#include "api/handlers.h"
#include "api/http_watch.h"
#include "api/relay.h"
#include "api/task.h"
#include "api/web_ports.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <stdio.h>

/* "/lab?x=1": of the same origin, and one line of a header. */
static bool is_path(struct text path)
{
    for (size_t i = 0; i < path.length; i++)
        if (path.at[i] <= 0x20 || path.at[i] >= 0x7f || path.at[i] == '\\')
            return false;
    return path.length && path.length < WEB_PORT_PATH_MAX && path.at[0] == '/' &&
           !text_starts(path, TEXT("//")) && !text_starts(path, TEXT("/.skep/"));
}

static int port_of_body(struct call *call, const struct doc *body, const struct task_record *task,
                        uint16_t *port)
{
    struct text label;
    int64_t offset = doc_get_int(body, "offset", 0);
    int code = call_body_string(call, body, "label", true, &label);
    if (code)
        return code;
    for (size_t i = 0; i < task->port_count; i++) {
        const struct port_range *range = &task->ports[i];
        if (!text_is(label, range->label))
            continue;
        if (offset < 0 || offset >= range->count)
            return call_fail(call, ERR_INVALID, NULL, "offset", "%s has %u ports: offset is 0..%u",
                             range->label, range->count, range->count - 1);
        *port = (uint16_t)(range->first + offset);
        return 0;
    }
    return call_fail(call, ERR_NOT_FOUND, "NoPortError", "label", "task %s-%u has no port %.*s",
                     task->role_name, task->task.index, TEXT_ARG(label));
}

static int path_of_body(struct call *call, const struct doc *body, struct web_port_grant *grant)
{
    struct text path;
    int code = call_body_string(call, body, "path", false, &path);
    if (code)
        return code;
    if (!path.at)
        path = TEXT("/");
    if (!is_path(path))
        return call_fail(call, ERR_INVALID, NULL, "path",
                         "path must be a path on the port itself: /lab?reset=1");
    snprintf(grant->path, sizeof grant->path, "%.*s", TEXT_ARG(path));
    return 0;
}

static int ticket_reply(struct call *call, const struct web_port_grant *grant)
{
    const struct origin_pattern *origin = &call->api->web_port_origin;
    char ticket[WEB_PORT_WORD_SIZE];
    struct json_writer json;
    int code = web_ports_ticket(call->api->web_ports, grant, clock_unix_ms(), ticket, &call->err);
    if (code)
        return code;
    const char *base =
        arena_format(call->arena, "%s://%s%.*s", origin->is_secure ? "https" : "http", grant->host,
                     TEXT_ARG(origin->suffix));
    call_json(call, 201, &json);
    json_object(&json);
    json_key_string(&json, "uri",
                    arena_format(call->arena, "%s/.skep/enter?ticket=%s", base, ticket));
    json_key_string(&json, "origin", base);
    json_key_int(&json, "port", grant->port);
    json_key_int(&json, "ticketSeconds", WEB_PORT_TICKET_S);
    json_key_int(&json, "sessionSeconds", WEB_PORT_SESSION_S);
    json_object_end(&json);
    return 0;
}

int handle_web_port_open(struct call *call)
{
    static const char *const KEYS[] = {"role", "index", "label", "offset", "path"};
    struct store_job job;
    struct task_record task;
    const struct doc *body;
    struct web_port_grant grant = {.path = ""};
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = call_may(call, AUTH_ENTER_JOB, &job);
    if (!code && !call->api->web_ports)
        code = call_fail(call, ERR_UNSUPPORTED, "WebPortsOffError", "",
                         "the operator has not set up web ports of tasks (api.webPorts)");
    if (!code)
        code =
            call_body_of(call, KEYS, COUNT_OF(KEYS), "role, index, label, offset and path", &body);
    if (!code)
        code = path_of_body(call, body, &grant);
    if (!code)
        code = call_running_task(call, body, &job, &task);
    if (!code)
        code = port_of_body(call, body, &task, &grant.port);
    if (code)
        return code;
    audit_word(call, true, "port",
               arena_format(call->arena, "%s-%u:%u", task.role_name, task.task.index, grant.port));
    grant.opener = opener_of(call);
    grant.attempt = task.attempt;
    grant.engine = call->api->service->engine_of(call->api->service->context, task.node);
    web_port_host(call->api->service->token_key, task.attempt, grant.port, grant.host);
    return ticket_reply(call, &grant);
}
