#include "api/api.h"
#include "api/byte_budget.h"
#include "api/call.h"
#include "api/directory_login.h"
#include "api/exec_session.h"
#include "api/file_task.h"
#include "api/http_tls.h"
#include "api/log_search.h"
#include "api/login.h"
#include "api/oidc.h"
#include "api/oidc_thread.h"
#include "api/passwords.h"
#include "api/relay.h"
#include "api/snapshot.h"
#include "api/stream_guard.h"
#include "api/throttle.h"
#include "api/token_cache.h"
#include "base/memory.h"
#include "sys/file.h"
#include "sys/log.h"
#include "sys/worker.h"
#include <string.h>
#include <time.h>

static void api_free(struct api *api)
{
    oidc_thread_free(api->oidc);
    directory_login_free(api);
    passwords_free(api->passwords);
    login_table_free(api->logins);
    throttle_free(api->throttle);
    byte_budget_free(api->held);
    token_cache_free(api->tokens);
    snapshot_free(api->snapshot);
    stream_guards_free(api->guards);
    exec_sessions_free(api->sessions);
    relay_stop(api->relay);
    web_ports_free(api->web_ports);
    worker_free(api->search_worker);
    file_threads_free(api->files);
    http_tls_close(api->tls);
    mem_free(api->socket_folder);
    mem_free(api->origins);
    mem_free(api);
}

static void revoked(void *context, const char *user)
{
    struct api *api = context;
    struct http_server *server = atomic_load(&api->http);
    exec_sessions_doubt(api->sessions, user);
    if (stream_guards_doubt(api->guards, user) && server)
        http_server_wake(server);
}

static void storages_changed(void *context)
{
    struct api *api = context;
    const struct service *service = api->service;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    if (api->files) /* else they are read when it starts */
        file_threads_change(api->files, service->storages(service->context, &arena));
}

static void changed(void *context)
{
    struct api *api = context;
    struct http_server *server = atomic_load(&api->http);
    atomic_fetch_add(&api->generation, 1);
    if (server)
        http_server_news(server);
}

/* No packet to a loopback address leaves the machine. */
static bool is_loopback(const char *listen)
{
    struct text at = text_of(listen);
    return text_starts(at, TEXT("127.")) || text_starts(at, TEXT("localhost:")) ||
           text_starts(at, TEXT("[::1]:"));
}

static int tls_start(struct api *api, struct err *err)
{
    const struct api_config *config = &api->config;
    if (config->tls == API_TLS_OFF || (config->tls == API_TLS_AUTO && is_loopback(config->listen)))
        return 0;
    struct http_tls_config tls = {config->certificate, config->key, config->tls_folder,
                                  config->clients};
    int code = http_tls_open(&tls, &api->tls, err);
    if (code)
        return code;
    char fingerprint[TLS_FINGERPRINT_SIZE];
    http_tls_fingerprint(api->tls, fingerprint);
    log_info("api", "TLS with the fingerprint %s", fingerprint);
    return 0;
}

/* The folder of the socket, and its name in it. */
static int socket_prepare(struct api *api, struct http_server_config *http, struct err *err)
{
    const char *path = api->config.socket;
    if (!path)
        return 0;
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path || !slash[1])
        return err_fail(err, ERR_INVALID, "api.socket", "'%s' is not the path of a file", path);
    api->socket_folder = mem_copy(path);
    api->socket_folder[slash - path] = '\0';
    http->socket_folder = api->socket_folder;
    http->socket_name = slash + 1;
    return dir_make(api->socket_folder, 0755, err);
}

static int oidc_start(struct api *api, struct err *err)
{
    const struct api_oidc *config = api->config.oidc;
    cleanup_buf struct buf return_url = BUF_INIT;
    struct text base = text_of(config ? config->public_url : "");
    if (!config)
        return 0;
    while (base.length && base.at[base.length - 1] == '/')
        base.length--;
    buf_text(&return_url, base);
    buf_string(&return_url, "/api/v2/authn/oidc/return");
    struct oidc_config provider = config->provider;
    provider.return_url = buf_cstr(&return_url);
    return oidc_thread_start(&provider, &api->oidc, err);
}

/* After the certificate has been read. */
static int web_ports_start(struct api *api, struct err *err)
{
    const struct api_config *config = &api->config;
    if (!config->web_listen)
        return 0;
    int code = origin_pattern_parse(config->web_origin, &api->web_port_origin, err);
    if (code)
        return code;
    api->web_ports = web_ports_new();
    const struct relay_config relay = {.listen = config->web_listen,
                                       .origin = api->web_port_origin,
                                       .has_tls = api->tls && api->web_port_origin.is_secure,
                                       .ports = api->web_ports,
                                       .service = api->service};
    code = relay_start(&relay, &api->relay, err);
    if (!code)
        log_info("api", "web ports of tasks at port %u, %s", relay_port(api->relay),
                 config->web_origin);
    return code;
}

/* The frames of plugins have no origin: browsers call that "null". Whoever has a token may use it
 * from there, and no reply depends on anything that a browser sends by itself. */
static void origins_add(struct api *api, struct http_server_config *http)
{
    if (api->config.plugins.count == 0)
        return;
    api->origins = mem_zero(http->origin_count + 1, sizeof *api->origins);
    for (size_t i = 0; i < http->origin_count; i++)
        api->origins[i] = http->origins[i];
    api->origins[http->origin_count++] = "null";
    http->origins = api->origins;
}

static int http_start(struct api *api, struct http_server **server, struct err *err)
{
    const struct api_config *config = &api->config;
    struct http_server_config http = {
        .listen = config->listen,
        .threads = config->threads,
        .door = config->door,
        .door_prefix = "/api/internal/",
        .origins = config->origins,
        .origin_count = config->origin_count,
        .proxies = config->proxies,
        .proxy_count = config->proxy_count,
        .hsts_s = config->hsts_s,
        .app = api_app(api),
    };
    origins_add(api, &http);
    int code = tls_start(api, err);
    http.tls = api->tls;
    if (!code)
        code = web_ports_start(api, err);
    if (!code)
        code = socket_prepare(api, &http, err);
    return code ? code : http_server_start(&http, server, err);
}

static int files_start(struct api *api, struct err *err)
{
    const struct service *service = api->service;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    return file_threads_start(&api->config.files, service->storages(service->context, &arena),
                              &api->files, err);
}

int api_start(const struct api_config *config, struct api **out, struct err *err)
{
    struct api *api = mem_zero(1, sizeof *api);
    api->config = *config;
    if (!api->config.listen)
        api->config.listen = "127.0.0.1:9186";
    api->service = config->service;
    api->logins = login_table_new();
    api->throttle = throttle_new();
    api->held = byte_budget_new();
    api->tokens = token_cache_new();
    api->snapshot = snapshot_new();
    api->guards = stream_guards_new();
    api->sessions = exec_sessions_new(api->service);
    api->started_ms = (int64_t)time(NULL) * 1000;
    atomic_store(&api->generation, 1);
    api->watch = (struct service_watch){
        .notify = changed, .revoked = revoked, .storages = storages_changed, .context = api};
    api->service->watch(api->service->context, &api->watch);
    struct http_server *server = NULL;
    int code = login_recall(api, err);
    if (!code)
        code = passwords_start(&api->passwords, err);
    if (!code)
        code = oidc_start(api, err);
    if (!code)
        code = directory_login_start(api, err);
    if (!code)
        code = log_search_start(api, err);
    if (!code)
        code = files_start(api, err);
    if (!code)
        code = http_start(api, &server, err);
    if (code) {
        api->service->unwatch(api->service->context, &api->watch);
        api_free(api);
        return code;
    }
    atomic_store(&api->http, server);
    *out = api;
    return 0;
}

const char *api_scheme(const struct api *api)
{
    return api->tls ? "https" : "http";
}

int api_reload(struct api *api, struct err *err)
{
    return api->tls ? http_tls_reload(api->tls, err) : 0;
}

uint16_t api_port(const struct api *api)
{
    return http_server_port(api->http);
}

void api_drain(struct api *api)
{
    http_server_drain(api->http);
    exec_sessions_stop(api->sessions); /* their programs are the engines', which end next … */
    relay_stop(api->relay);            /* … and so are what these connections lead to */
    api->relay = NULL;
}

void api_stop(struct api *api)
{
    if (!api)
        return;
    /* Each of these answers who waits for it and refuses whoever still comes ("the server is
     * ending"), so their order is free; afterwards no request is suspended, which is what the end
     * of the HTTP server wants. */
    if (api->oidc)
        oidc_thread_stop(api->oidc);
    directory_login_stop(api);
    exec_sessions_stop(api->sessions);
    worker_stop(api->search_worker);
    file_threads_stop(api->files);
    passwords_stop(api->passwords);
    http_server_stop(api->http);
    api->service->unwatch(api->service->context, &api->watch);
    api_free(api);
}
