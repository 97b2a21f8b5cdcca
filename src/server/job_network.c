/* job_network.c — see job_network.h. */
#include "server/job_network.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/state.h"
#include "spec/spec.h"
#include "store/read.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* setting: the mode of a configuration without one; stores of before it have none */
#define MODE_OF_STORE "network.mode"

static int change_one(struct server *server, struct store_change change, struct err *err)
{
    struct store_batch batch = {.changes = &change, .change_count = 1};
    change.err = err;
    const int code = store_commit(server->store, &batch, err);
    return code < 0 ? code : change.code;
}

/* A store without users is new. */
static int mode_note(struct server *server, struct err *err)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct store_users users;
    struct text mode;
    int code = store_users(server->core.reader, &arena, &users, err);
    if (code == 0 && users.count == 0)
        code = change_one(
            server,
            (struct store_change){.kind = CHANGE_SETTING, .setting = {MODE_OF_STORE, TEXT("auto")}},
            err);
    if (code < 0)
        return code;
    code = store_setting(server->core.reader, MODE_OF_STORE, &arena, &mode, err);
    server->is_network_auto = code == 0 && text_is(mode, "auto");
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* A server of before goes on as it was until the operator chooses. */
static void unset_tell(const struct server *server, const struct store_accounts *accounts)
{
    for (size_t i = 0; i < server->config->engine_count; i++)
        if (!server->is_network_auto && accounts->are_several &&
            server->config->engines[i].kind == ENGINE_KIND_LOCAL &&
            server->config->engines[i].network_mode == NETWORK_MODE_UNSET)
            log_warning("server",
                        "there are several accounts, and their tasks share the machine's network: "
                        "choose by engine.network.mode, auto or host");
}

int job_network_begin(struct server *server, struct err *err)
{
    const struct server_config *config = server->config;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct store_accounts accounts;
    int code = mode_note(server, err);
    if (code == 0 && (config->has_oidc || config->has_ldap))
        code = change_one(server, (struct store_change){.kind = CHANGE_ACCOUNTS}, err);
    if (code == 0)
        code = store_accounts(server->core.reader, &arena, &accounts, err);
    if (code == 0)
        unset_tell(server, &accounts);
    return code;
}

enum network_mode job_network_mode(const struct server *server, const struct engine_config *engine)
{
    if (engine->network_mode != NETWORK_MODE_UNSET)
        return engine->network_mode;
    return server->is_network_auto ? NETWORK_MODE_AUTO : NETWORK_MODE_HOST;
}

/* Does a job of the virtual cluster that is submitted now get the machine's network there? */
static bool is_given(const struct server *server, const struct engine_config *engine,
                     const struct store_accounts *accounts, const char *cluster)
{
    if (engine->kind == ENGINE_KIND_KUBERNETES)
        return pod_network_is_host(&engine->kubernetes.network, cluster);
    if (engine->kind != ENGINE_KIND_LOCAL)
        return true;
    const enum network_mode mode = job_network_mode(server, engine);
    const unsigned rights = rights_of(engine->local.rights, cluster);
    return mode == NETWORK_MODE_HOST || (mode == NETWORK_MODE_AUTO && !accounts->are_several) ||
           (rights & 1u << RIGHT_HOST_NETWORK);
}

/* What of the job file needs the machine's network, as a path; "": nothing does. */
static void need_find(const struct spec *spec, char path[96])
{
    path[0] = '\0';
    if (spec->wants_host_network)
        snprintf(path, 96, "extras.hostNetwork");
    for (size_t i = 0; i < spec->role_count && !path[0]; i++)
        if (spec->roles[i].wants_infiniband)
            snprintf(path, 96, "taskRoles.%.40s.extraContainerOptions.infiniband",
                     spec->roles[i].name);
}

int job_network_check(struct server *server, struct store_reader *reader, const struct spec *spec,
                      struct err *err)
{
    const struct server_config *config = server->engines.config;
    const char *cluster = spec->virtual_cluster;
    char path[96];
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct store_accounts accounts;
    need_find(spec, path);
    if (!path[0])
        return 0;
    const int code = store_accounts(reader, &arena, &accounts, err);
    for (size_t i = 0; i < config->engine_count && code == 0; i++)
        if (!is_given(server, &config->engines[i], &accounts, cluster))
            return err_fail(err, ERR_FORBIDDEN, path,
                            "needs the machine's network, and virtual cluster %.60s has not the "
                            "right hostNetwork: ask the operator to name it in %s",
                            cluster,
                            config->engines[i].kind == ENGINE_KIND_KUBERNETES
                                ? "engine.kubernetes.hostNetwork"
                                : "engine.rights.hostNetwork");
    return code;
}

/* What stands against networks of jobs on this machine; "": nothing, or the engine is not open. */
static void trouble_of(const struct server *server, size_t number, char *text, size_t size)
{
    struct engine *engine = atomic_load(&server->engines.items[number].engine);
    text[0] = '\0';
    if (engine)
        engine_local_network_trouble(engine, text, size);
}

/* With several accounts, and a mode that goes by their number. */
static void several_text(const struct server *server, size_t number, char *text, size_t size)
{
    char trouble[120];
    trouble_of(server, number, trouble, sizeof trouble);
    if (trouble[0])
        snprintf(text, size, "the machine's, for all jobs, though there are several accounts: %s",
                 trouble);
    else
        snprintf(text, size, "each new job's own: there are or were several accounts");
}

void job_network_text(struct server *server, char *text, size_t size)
{
    const struct server_config *config = server->engines.config;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct store_accounts accounts = {0};
    struct err err = {0};
    const struct service *service = &server->service;
    struct store_reader *reader = service->reader_get(service->context, &err);
    int code = reader ? store_accounts(reader, &arena, &accounts, &err) : ERR_UNAVAILABLE;
    service->reader_put(service->context, reader);
    snprintf(text, size, "no containers on this machine");
    for (size_t i = 0; i < config->engine_count; i++) {
        if (config->engines[i].kind != ENGINE_KIND_LOCAL)
            continue;
        const enum network_mode mode = job_network_mode(server, &config->engines[i]);
        if (code < 0)
            snprintf(text, size, "%.190s", err.text);
        else if (mode == NETWORK_MODE_AUTO && accounts.are_several)
            several_text(server, i, text, size);
        else if (mode == NETWORK_MODE_AUTO)
            snprintf(text, size, "the machine's, as long as there is one account");
        else
            snprintf(text, size, "%s",
                     mode == NETWORK_MODE_HOST ? "the machine's, for all jobs" : "each job's own");
    }
}
