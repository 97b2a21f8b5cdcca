#include "api/byte_budget.h"
#include "api/file_task.h"
#include "api/handlers.h"
#include "base/memory.h"

static int info_reply(struct call *call)
{
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key_string(&json, "name", "PAI RESTful API"); /* clients of OpenPAI look for it */
    json_key_string(&json, "product", "skep");
    json_key_string(&json, "version", SKEP_VERSION);
    json_key_string(&json, "launcherType", "k8s"); /* of the two words that clients know */
    json_key_string(&json, "authnMethod", call->api->oidc ? "OIDC" : "basic");
    json_key_bool(&json, "webPorts", call->api->web_ports != NULL);
    json_key_bool(&json, "sharedConfigurations", call->api->config.is_config_shared);
    json_key_bool(&json, "sharedLogs", call->api->config.is_log_shared);
    json_key(&json, "images");
    json_array(&json);
    for (size_t i = 0; i < call->api->config.images.count; i++) {
        const struct offered_image *image = &call->api->config.images.items[i];
        json_object(&json);
        json_key_string(&json, "name", image->name);
        json_key_string(&json, "uri", image->uri);
        json_key_string(&json, "about", image->about);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_key_string(&json, "manualUrl", call->api->config.manual_url);
    json_key_string(&json, "feedbackUrl", call->api->config.feedback_url);
    json_object_end(&json);
    return 0;
}

int handle_root_v1(struct call *call)
{
    return info_reply(call);
}

int handle_root_v2(struct call *call)
{
    call_text(call, 200, "text/plain; charset=utf-8", TEXT("Skep " SKEP_VERSION " API v2\n"));
    return 0;
}

int handle_info(struct call *call)
{
    return info_reply(call);
}

/* The configuration in force; passwords are masked. */
int handle_settings(struct call *call)
{
    struct service *service = call->api->service;
    cleanup_buf struct buf settings = BUF_INIT;
    struct json_writer json;
    service->settings(service->context, &settings);
    call_json(call, 200, &json);
    json_raw(&json, buf_as_text(&settings));
    return 0;
}

/* The process answers. */
int handle_healthz(struct call *call)
{
    call_text(call, 200, "text/plain; charset=utf-8", TEXT("ok\n"));
    return 0;
}

/* The core thread moves; otherwise a restart would help. */
int handle_livez(struct call *call)
{
    struct service *service = call->api->service;
    bool is_alive = service->is_alive(service->context);
    call_text(call, is_alive ? 200 : 503, "text/plain; charset=utf-8",
              is_alive ? TEXT("ok\n") : TEXT("the core thread does not move\n"));
    return 0;
}

/* Everything that a request needs is there. */
int handle_readyz(struct call *call)
{
    struct service *service = call->api->service;
    struct service_check checks[SERVICE_CHECKS_MAX];
    memset(checks, 0, sizeof checks);
    size_t count = service->ready(service->context, checks);
    bool is_ready = true, is_verbose = call_flag(call, "verbose");
    cleanup_buf struct buf text = BUF_INIT;
    for (size_t i = 0; i < count; i++) {
        is_ready = is_ready && checks[i].is_ok;
        const bool is_degraded = checks[i].is_ok && checks[i].is_degraded;
        if (is_verbose || !checks[i].is_ok || is_degraded)
            buf_format(&text, "[%c] %s %s%s%s\n",
                       !checks[i].is_ok ? '-'
                       : is_degraded    ? '!'
                                        : '+',
                       checks[i].name,
                       !checks[i].is_ok ? "failed"
                       : is_degraded    ? "degraded"
                                        : "ok",
                       checks[i].text[0] ? ": " : "", checks[i].text);
    }
    buf_string(&text, is_ready ? "ready\n" : "not ready\n");
    call_text(call, is_ready ? 200 : 503, "text/plain; charset=utf-8", buf_as_text(&text));
    return 0;
}

static void metric(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void job_metrics(struct call *call, struct buf *out)
{
    uint64_t counts[PUBLIC_STATE_COUNT] = {0};
    store_job_counts(call->api->service->store, counts);
    metric(out, "skep_jobs", "gauge", "Jobs by the state that people see.");
    for (unsigned i = 0; i < PUBLIC_STATE_COUNT; i++)
        buf_format(out, "skep_jobs{state=\"%s\"} %llu\n", public_state_name((enum public_state)i),
                   (unsigned long long)counts[i]);
}

static void http_metrics(struct call *call, struct buf *out)
{
    struct http_server_counts counts = {0};
    struct http_server *server = atomic_load(&call->api->http);
    if (server)
        http_server_count(server, &counts);
    metric(out, "skep_http_requests_total", "counter", "Requests answered, by class of status.");
    for (unsigned i = 2; i <= 5; i++)
        buf_format(out, "skep_http_requests_total{code=\"%uxx\"} %llu\n", i,
                   (unsigned long long)atomic_load(&call->api->requests[i]));
    metric(out, "skep_http_request_seconds_total", "counter",
           "Time from a request's headers until its reply is made, without streams.");
    buf_format(out, "skep_http_request_seconds_total %.6f\n",
               (double)atomic_load(&call->api->request_us) / 1e6);
    metric(out, "skep_http_connections", "gauge", "Open connections.");
    buf_format(out, "skep_http_connections %llu\n", (unsigned long long)counts.connections);
    metric(out, "skep_http_streams", "gauge", "Logs and stories that are being followed.");
    buf_format(out, "skep_http_streams %llu\n", (unsigned long long)counts.streams);
    metric(out, "skep_http_held_bytes", "gauge",
           "Bytes of bodies and replies of more than 16 KiB that their clients have not sent or "
           "taken yet.");
    buf_format(out, "skep_http_held_bytes %llu\n",
               (unsigned long long)byte_budget_bytes(call->api->held));
}

static void file_metrics(struct call *call, struct buf *out)
{
    metric(out, "skep_storage_threads", "gauge",
           "Threads of storages, with those that wait for the disk of a storage that is gone.");
    buf_format(out, "skep_storage_threads %zu\n",
               storage_threads_count(file_storage_threads(call->api->files)));
}

int handle_metrics(struct call *call)
{
    struct service *service = call->api->service;
    cleanup_buf struct buf text = BUF_INIT;
    metric(&text, "skep_build_info", "gauge", "Version of the server.");
    buf_string(&text, "skep_build_info{version=\"" SKEP_VERSION "\"} 1\n");
    job_metrics(call, &text);
    http_metrics(call, &text);
    file_metrics(call, &text);
    service->metrics(service->context, &text);
    call_text(call, 200, "text/plain; version=0.0.4; charset=utf-8", buf_as_text(&text));
    return 0;
}
