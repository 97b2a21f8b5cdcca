#include "api/api.h"
#include "api/call.h"
#include "api/login.h"
#include "api/passwords.h"
#include "api/snapshot.h"
#include "base/memory.h"
#include <time.h>

static void api_free(struct api *api)
{
    passwords_free(api->passwords);
    login_table_free(api->logins);
    snapshot_free(api->snapshot);
    mem_free(api);
}

static void changed(void *context)
{
    struct api *api = context;
    atomic_fetch_add(&api->generation, 1);
}

int api_start(const struct api_config *config, struct api **out, struct err *err)
{
    struct api *api = mem_zero(1, sizeof *api);
    api->config = *config;
    api->service = config->service;
    api->logins = login_table_new();
    api->snapshot = snapshot_new();
    api->started_ms = (int64_t)time(NULL) * 1000;
    atomic_store(&api->generation, 1);
    struct http_server_config http = {
        .listen = config->listen ? config->listen : "127.0.0.1:9186",
        .threads = config->threads,
        .door = config->door,
        .door_prefix = "/api/internal/",
        .app = api_app(api),
    };
    api->watch = (struct service_watch){.notify = changed, .context = api};
    api->service->watch(api->service->context, &api->watch);
    struct http_server *server = NULL;
    int failed = passwords_start(&api->passwords, err);
    if (!failed)
        failed = http_server_start(&http, &server, err);
    if (failed) {
        api->service->unwatch(api->service->context, &api->watch);
        api_free(api);
        return failed;
    }
    atomic_store(&api->http, server);
    *out = api;
    return 0;
}

uint16_t api_port(const struct api *api)
{
    return http_server_port(api->http);
}

void api_drain(struct api *api)
{
    http_server_drain(api->http);
}

void api_stop(struct api *api)
{
    if (!api)
        return;
    passwords_stop(api->passwords); /* nothing stays suspended */
    http_server_stop(api->http);
    api->service->unwatch(api->service->context, &api->watch);
    api_free(api);
}
