/* config_settings.c — server_config_settings of config.h: what is in force, key by key. */
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/origin.h"
#include "doc/doc.h"
#include "doc/shape.h"
#include "model/notice.h"
#include "server/config.h"
#include "server/config_shape.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A section of the file: a map, with what may stand in it. */
struct section {
    struct json_writer *json;
    const struct doc *doc; /* NULL: it is not in the file */
    const struct shape *shape;
    const char *path; /* "api.tls." */
};

/* There is one: the rows below are those of the shape. */
static const struct field *field_find(const struct shape *shape, const char *name)
{
    size_t i = 0;
    while (i < shape->count && strcmp(shape->fields[i].name, name) != 0)
        i++;
    assert(i < shape->count);
    return &shape->fields[i];
}

static void row_begin(const struct section *section, const char *name)
{
    const struct doc *found = doc_get(section->doc, name);
    char key[200];
    snprintf(key, sizeof key, "%s%s", section->path, name);
    json_object(section->json);
    json_key_string(section->json, "key", key);
    json_key_string(section->json, "source", found ? "file" : "default");
    if (found)
        json_key_int(section->json, "line", found->place.line);
    json_key_string(section->json, "help", field_find(section->shape, name)->help);
    json_key(section->json, "value");
}

static void row_text(const struct section *section, const char *name, const char *value)
{
    row_begin(section, name);
    json_string(section->json, value && value[0] ? value : NULL);
    json_object_end(section->json);
}

static void row_int(const struct section *section, const char *name, uint64_t value)
{
    row_begin(section, name);
    json_int(section->json, (int64_t)value);
    json_object_end(section->json);
}

/* 0 stands for what the machine, or the engine, decides. */
static void row_size(const struct section *section, const char *name, uint64_t value)
{
    row_begin(section, name);
    if (value || doc_get(section->doc, name))
        json_int(section->json, (int64_t)value);
    else
        json_null(section->json);
    json_object_end(section->json);
}

static void row_bool(const struct section *section, const char *name, bool value)
{
    row_begin(section, name);
    json_bool(section->json, value);
    json_object_end(section->json);
}

static void row_list(const struct section *section, const char *name, const char *const *items,
                     size_t count)
{
    row_begin(section, name);
    json_array(section->json);
    for (size_t i = 0; i < count; i++)
        json_string(section->json, items[i]);
    json_array_end(section->json);
    json_object_end(section->json);
}

static struct section section_in(const struct section *outer, const char *name, const char *path)
{
    return (struct section){.json = outer->json,
                            .doc = doc_get(outer->doc, name),
                            .shape = field_find(outer->shape, name)->shape,
                            .path = path};
}

/* By the command line, whatever the file says. */
static void row_given(const struct section *section, const char *name, const char *value)
{
    struct json_writer *json = section->json;
    char key[200];
    snprintf(key, sizeof key, "%s%s", section->path, name);
    json_object(json);
    json_key_string(json, "key", key);
    json_key_string(json, "source", "command line");
    json_key_string(json, "help", field_find(section->shape, name)->help);
    json_key_string(json, "value", value);
    json_object_end(json);
}

/* The address without its password, and without parameters, which may hold one as well. */
static const char *address_mask(const char *address, struct arena *arena)
{
    const char *host = strstr(address, "://");
    if (!host)
        return address[0] ? "******" : "";
    host += 3;
    const char *at = memrchr(host, '@', strcspn(host, "/")); /* a password may hold '?' */
    const char *end = at ? at + strcspn(at, "?") : host + strcspn(host, "?");
    const char *parameters = *end ? "?******" : "";
    if (!at)
        return arena_format(arena, "%.*s%s", (int)(end - address), address, parameters);
    const char *user_end = host + strcspn(host, ":?@");
    return arena_format(arena, "%.*s%s%.*s%s", (int)(user_end - address), address,
                        user_end < at ? ":******" : "", (int)(end - at), at, parameters);
}

static void tls_rows(const struct section *api, const struct server_config *config)
{
    const struct section tls = section_in(api, "tls", "api.tls.");
    row_text(&tls, "mode", config_tls_modes[config->tls]);
    row_text(&tls, "certificateFile", config->certificate_path);
    row_text(&tls, "keyFile", config->key_path);
    row_int(&tls, "hstsSeconds", config->hsts_s);
    const struct tls_clients_config *clients = &config->tls_clients;
    row_text(&tls, "clientCertificates", config_tls_client_modes[clients->mode]);
    row_text(&tls, "clientCaFile", clients->authorities);
    row_text(&tls, "clientRevocationFile", clients->revoked);
    row_text(&tls, "clientName", clients->pattern);
}

static void oidc_rows(const struct section *api, const struct api_oidc *oidc)
{
    const struct section rows = section_in(api, "oidc", "api.oidc.");
    row_text(&rows, "issuer", oidc->provider.issuer);
    row_text(&rows, "clientId", oidc->provider.client_id);
    row_text(&rows, "clientSecretFile", oidc->provider.secret_file);
    row_text(&rows, "publicUrl", oidc->public_url);
    row_list(&rows, "portals", oidc->portals, oidc->portal_count);
    row_list(&rows, "scopes", oidc->provider.scopes, oidc->provider.scope_count);
    row_text(&rows, "userClaim", oidc->provider.user_claim);
    row_text(&rows, "groupsClaim", oidc->provider.groups_claim);
    row_list(&rows, "allowedGroups", oidc->policy.allowed, oidc->policy.allowed_count);
    row_bool(&rows, "createUsers", oidc->policy.creates_users);
    row_bool(&rows, "adoptUsers", oidc->policy.adopts_users);
    row_text(&rows, "caFile", oidc->provider.ca_file);
}

static void ldap_rows(const struct section *api, const struct api_ldap *ldap)
{
    const struct section rows = section_in(api, "ldap", "api.ldap.");
    const struct directory_config *directory = &ldap->directory;
    row_text(&rows, "url", directory->url);
    row_bool(&rows, "startTls", !directory->is_plain);
    row_text(&rows, "caFile", directory->ca_file);
    row_text(&rows, "base", directory->base);
    row_text(&rows, "userFilter", directory->user_filter);
    row_text(&rows, "bindAs", directory->bind_as);
    row_text(&rows, "bindDn", directory->bind_dn);
    row_text(&rows, "bindPasswordFile", directory->bind_password_file);
    row_text(&rows, "idAttribute", directory->id_attribute);
    row_text(&rows, "nameAttribute", directory->name_attribute);
    row_text(&rows, "mailAttribute", directory->mail_attribute);
    row_text(&rows, "groupBase", directory->group_base);
    row_text(&rows, "groupFilter", directory->group_filter);
    row_text(&rows, "groupAttribute", directory->group_attribute);
    row_list(&rows, "allowedGroups", ldap->policy.allowed, ldap->policy.allowed_count);
    row_bool(&rows, "createUsers", ldap->policy.creates_users);
    row_int(&rows, "timeoutSeconds", directory->timeout_s);
}

static void api_rows(const struct section *top, const struct server_config *config)
{
    const struct section api = section_in(top, "api", "api.");
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const char *socket = server_socket(config, &arena);
    if (config->is_listen_given)
        row_given(&api, "listen", config->listen);
    else
        row_text(&api, "listen", config->listen);
    row_text(&api, "socket", socket ? socket : "none");
    tls_rows(&api, config);
    row_list(&api, "proxies", config->proxies, config->proxy_count);
    if (config->has_oidc)
        oidc_rows(&api, &config->oidc);
    if (config->has_ldap)
        ldap_rows(&api, &config->ldap);
    const struct section web_ports = section_in(&api, "webPorts", "api.webPorts.");
    row_text(&web_ports, "listen", config->web_listen);
    row_text(&web_ports, "origin", config->web_origin);
    row_bool(&api, "files", config->has_files);
    row_size(&api, "uploadMaxMB", config->upload_max_mib);
    row_list(&api, "origins", config->origins, config->origin_count);
    row_size(&api, "threads", config->threads);
    row_int(&api, "requestsMax", config->requests_max);
    row_bool(&api, "shareConfigurations", config->is_config_shared);
    row_bool(&api, "shareLogs", config->is_log_shared);
    row_bool(&api, "openReads", config->is_v1_read_open);
}

static void scheduling_rows(const struct section *top, const struct server_config *config)
{
    const struct section rows = section_in(top, "scheduling", "scheduling.");
    const struct core_config *core = &config->core;
    row_text(&rows, "policy", core->policy);
    row_text(&rows, "order", core->order);
    row_text(&rows, "cellsFile", config->cells_path);
    row_int(&rows, "portFirst", core->port_first);
    row_int(&rows, "portLast", core->port_last);
    row_int(&rows, "backoffMinSeconds", core->backoff_min_s);
    row_int(&rows, "backoffMaxSeconds", core->backoff_max_s);
    row_int(&rows, "retryPauseFirstSeconds", core->retry_pause_first_s);
    row_int(&rows, "retryPauseMaxSeconds", core->retry_pause_max_s);
    row_int(&rows, "retryCalmSeconds", core->retry_calm_s);
    row_bool(&rows, "backoffGrows", core->is_backoff_growing);
    row_bool(&rows, "gangsSpanEngines", core->gangs_span_engines);
    row_int(&rows, "gangTimeoutSeconds", core->gang_timeout_s);
    row_int(&rows, "killGraceSeconds", core->kill_grace_ms / 1000);
    row_int(&rows, "preemptionGraceSeconds", core->preemption_grace_ms / 1000);
    row_int(&rows, "starvationAfterSeconds", core->starvation_after_s);
    row_int(&rows, "finishedKeepSeconds", core->finished_keep_s);
    row_int(&rows, "debugHoldSeconds", core->debug_hold_s);
    row_int(&rows, "blameHalfLifeSeconds", core->blame_half_life_s);
    row_int(&rows, "blameAvoid", (uint64_t)core->blame_avoid);
    row_int(&rows, "blameCordon", (uint64_t)core->blame_cordon);
    row_int(&rows, "hangAfterSeconds", config->hang_after_s);
}

static void retention_rows(const struct section *top, const struct retention_config *retention)
{
    const struct section rows = section_in(top, "retention", "retention.");
    row_int(&rows, "jobDays", retention->job_days);
    row_int(&rows, "eventLogDays", retention->event_log_days);
    row_int(&rows, "auditDays", retention->audit_days);
    row_int(&rows, "auditRecords", retention->audit_records);
    row_int(&rows, "databaseMB", retention->database_mib);
    row_int(&rows, "useMB", retention->use_mib);
}

static void storage_rows(const struct section *top, const struct storage_list *storages)
{
    const struct doc *list = doc_get_list(top->doc, "storages");
    for (size_t i = 0; i < storages->count; i++) {
        const struct storage *storage = &storages->items[i];
        char path[32];
        snprintf(path, sizeof path, "storages[%zu].", i);
        const struct section rows = {top->json, list->as.list.items[i],
                                     field_find(top->shape, "storages")->shape, path};
        row_text(&rows, "name", storage->name);
        row_text(&rows, "directory", storage->directory);
        row_text(&rows, "claim", storage->claim);
        row_text(&rows, "type", storage->type);
        row_text(&rows, "server", storage->server);
        row_text(&rows, "path", storage->path);
        row_bool(&rows, "share", storage->is_shared);
        row_bool(&rows, "readOnly", storage->is_read_only);
        row_bool(&rows, "rootSquash", storage->is_root_squashed);
    }
}

static void portal_rows(const struct section *top, const struct server_config *config)
{
    const struct section portal = section_in(top, "portal", "portal.");
    const struct offered_images *images = &config->images;
    const struct doc *list = doc_get_list(portal.doc, "images");
    for (size_t i = 0; i < images->count; i++) {
        char path[40];
        snprintf(path, sizeof path, "portal.images[%zu].", i);
        const struct section rows = {top->json, list->as.list.items[i],
                                     field_find(portal.shape, "images")->shape, path};
        row_text(&rows, "name", images->items[i].name);
        row_text(&rows, "uri", images->items[i].uri);
        row_text(&rows, "about", images->items[i].about);
    }
    row_text(&portal, "manualUrl", config->manual_url);
    row_text(&portal, "feedbackUrl", config->feedback_url);
}

static void plugin_rows(const struct section *top, const struct portal_plugins *plugins)
{
    const struct section portal = section_in(top, "portal", "portal.");
    const struct doc *list = doc_get_list(portal.doc, "plugins");
    for (size_t i = 0; i < plugins->count; i++) {
        char path[40];
        snprintf(path, sizeof path, "portal.plugins[%zu].", i);
        const struct section rows = {top->json, list->as.list.items[i],
                                     field_find(portal.shape, "plugins")->shape, path};
        row_text(&rows, "id", plugins->items[i].id);
        row_text(&rows, "title", plugins->items[i].title);
        row_text(&rows, "uri", plugins->items[i].uri);
        row_list(&rows, "origins", plugins->items[i].origins, plugins->items[i].origin_count);
        row_text(&rows, "scope", plugins->items[i].scope);
        row_text(&rows, "config", plugins->items[i].config_json);
    }
}

/* ---- engines ---- */

/* Of a section of the engine's own, whose path is put together. */
static struct section engine_section(const struct section *engine, const char *name,
                                     struct arena *arena)
{
    return section_in(engine, name, arena_format(arena, "%s%s.", engine->path, name));
}

static void image_rows(const struct section *engine, const struct engine_local_config *local,
                       struct arena *arena)
{
    const struct section rows = engine_section(engine, "images", arena);
    row_list(&rows, "localRoots", local->image_roots, local->image_root_count);
    row_list(&rows, "insecureRegistries", local->insecure_registries,
             local->insecure_registry_count);
    row_text(&rows, "registryAuthFile", local->registry_auth_file);
    row_size(&rows, "pulls", local->pulls);
    row_size(&rows, "pullTries", local->pull_tries);
    row_size(&rows, "pullStallSeconds", local->pull_stall_s);
    row_size(&rows, "unpackedMaxMB", local->image_max_mib);
    row_size(&rows, "unpackedMaxFiles", local->image_max_entries);
    row_size(&rows, "unpackedMaxRatio", local->image_max_ratio);
    row_size(&rows, "keepDays", local->image_keep_s / 86400);
    row_size(&rows, "highPercent", local->image_high_percent);
}

static void device_rows(const struct section *engine, const struct engine_local_config *local,
                        struct arena *arena)
{
    const struct section rows = engine_section(engine, "devices", arena);
    row_int(&rows, "simulatedGpus", local->simulated_gpus);
    row_text(&rows, "simulatedGpuType", local->simulated_gpu_type);
    row_text(&rows, "nvmlPath", local->nvml_path);
    row_size(&rows, "sampleSeconds", local->gpu_sample_ms / 1000);
    row_list(&rows, "cdiDirectories", local->cdi_directories, local->cdi_directory_count);
}

static void wall_rows(const struct section *engine, const struct engine_config *config,
                      struct arena *arena)
{
    const struct engine_local_config *local = &config->local;
    const struct section disk = engine_section(engine, "disk", arena);
    row_text(&disk, "quota", config_disk_quotas[local->disk_quota]);
    row_size(&disk, "taskMB", local->disk_mib);
    const struct section users = engine_section(engine, "userNamespaces", arena);
    row_text(&users, "mode", config_user_modes[local->user_namespaces]);
    row_text(&users, "images", config_user_images[local->user_images]);
    row_size(&users, "firstId", local->first_id);
    row_size(&users, "jobs", local->id_jobs);
    const struct section network = engine_section(engine, "network", arena);
    row_text(&network, "mode",
             config->network_mode == NETWORK_MODE_UNSET
                 ? NULL
                 : config_network_modes[config->network_mode]);
    row_text(&network, "subnet", local->subnet);
    row_text(&network, "outside", config_network_outsides[local->is_network_closed]);
    const struct section rights = engine_section(engine, "rights", arena);
    for (size_t i = 0; i < RIGHTS; i++)
        row_list(&rights, right_names[i], local->rights[i].items, local->rights[i].count);
}

static void local_rows(const struct section *rows, const struct engine_config *config,
                       struct arena *arena)
{
    const struct engine_local_config *local = &config->local;
    row_text(rows, "runtime", local->runtime);
    row_text(rows, "initPath", local->init_path);
    row_text(rows, "nodeName", local->node_name);
    row_text(rows, "address", local->address);
    row_size(rows, "cpu", local->cpu);
    row_size(rows, "memoryMB", local->memory_mib);
    row_size(rows, "workers", local->workers);
    row_size(rows, "pidsMax", local->pids_max);
    row_size(rows, "diskReserveMB", local->disk_reserve_mib);
    row_size(rows, "containerKeepHours", local->container_keep_s / 3600);
    wall_rows(rows, config, arena);
    device_rows(rows, local, arena);
    image_rows(rows, local, arena);
}

static void kubernetes_rows(const struct section *engine,
                            const struct engine_kubernetes_config *config, struct arena *arena)
{
    const struct section rows = engine_section(engine, "kubernetes", arena);
    row_text(&rows, "kubeconfig", config->kubeconfig);
    row_text(&rows, "context", config->context);
    row_text(&rows, "namespace", config->space);
    row_text(&rows, "instance", config->instance);
    row_text(&rows, "nodeSelector", config->node_selector);
    row_text(&rows, "initImage", config->init_image);
    row_text(&rows, "apiUrl", config->api_url);
    row_text(&rows, "runtimeClass", config->runtime_class);
    row_text(&rows, "priorityClass", config->priority_class);
    row_text(&rows, "serviceAccount", config->service_account);
    row_text(&rows, "podTemplate", config->pod_template);
    row_text(&rows, "infinibandResource", config->infiniband_resource);
    row_text(&rows, "network", config_kubernetes_networks[config->network.mode]);
    row_list(&rows, "hostNetwork", config->network.host_clusters,
             config->network.host_cluster_count);
    row_text(&rows, "userNamespaces", config_kubernetes_users[config->network.users]);
    row_text(&rows, "taint", config->taint ? config->taint : ENGINE_KUBERNETES_TAINT);
    const struct section reserve = engine_section(&rows, "nodeReserve", arena);
    row_int(&reserve, "cpu", config->node_reserve.cpu);
    row_int(&reserve, "memoryMB", config->node_reserve.memory_mib);
    row_int(&reserve, "pods", config->node_reserve.pods);
    row_text(&rows, "gpus", config_kubernetes_gpus[config->gpus]);
    row_text(&rows, "gpuResource", config->gpu_resource);
    row_text(&rows, "gpuTypeLabel", config->gpu_type_label);
    row_text(&rows, "deviceDriver", config->device_driver);
    row_text(&rows, "deviceClass", config->device_class);
    row_text(&rows, "gpuTypeAttribute", config->gpu_type_attribute);
    const struct section metrics = engine_section(&rows, "gpuMetrics", arena);
    row_size(&metrics, "port", config->gpu_metrics_port);
    row_text(&metrics, "path",
             config->gpu_metrics_port && !config->gpu_metrics_path ? KUBE_GPU_METRICS_PATH
                                                                   : config->gpu_metrics_path);
    row_text(&rows, "nodeMetrics", config_node_metrics[config->is_node_metrics_off]);
    row_int(&rows, "nodeLostSeconds", config->node_lost_s ? config->node_lost_s : KUBE_NODE_LOST_S);
}

static void fake_rows(const struct section *engine, const struct fake_config *config,
                      struct arena *arena)
{
    const struct section rows = engine_section(engine, "fake", arena);
    row_text(&rows, "nodePrefix", config->node_prefix);
    row_int(&rows, "nodes", config->nodes);
    row_int(&rows, "cpu", config->cpu);
    row_int(&rows, "memoryMB", config->memory_mib);
    row_int(&rows, "gpus", config->gpu_count);
    row_int(&rows, "runMilliseconds", config->run_ms);
    row_int(&rows, "exitCode", (uint64_t)config->exit_code);
    row_int(&rows, "loseEveryMilliseconds", config->lose_every_ms);
    row_text(&rows, "log", config->log);
}

/* The path of a webhook's address may be its secret. */
static const char *hook_mask(const char *url, struct arena *arena)
{
    struct text origin;
    struct err err;
    if (web_origin_of(text_of(url), &origin, &err) < 0)
        return "******";
    return origin.length == strlen(url) ? url
                                        : arena_format(arena, "%.*s/******", TEXT_ARG(origin));
}

static void notify_rows(const struct section *top, const struct notify_config *config)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const struct section rows = section_in(top, "notifications", "notifications.");
    row_text(&rows, "portalUrl", config->portal_url);
    row_int(&rows, "keepHours", config->keep_hours);
    if (config->has_smtp) {
        const struct section smtp = section_in(&rows, "smtp", "notifications.smtp.");
        row_text(&smtp, "url", config->smtp.url);
        row_text(&smtp, "from", config->smtp.from);
        row_bool(&smtp, "startTls", config->smtp.starts_tls);
        row_text(&smtp, "user", config->smtp.user);
        row_text(&smtp, "passwordFile", config->smtp.password_file);
        row_text(&smtp, "caFile", config->smtp.ca_file);
    }
    const struct doc *list = doc_get_list(rows.doc, "webhooks");
    for (size_t i = 0; i < config->hook_count; i++) {
        const struct notify_hook_config *hook = &config->hooks[i];
        const char *events[NOTICE_KINDS];
        size_t event_count = 0;
        for (int kind = 0; kind < NOTICE_KINDS; kind++)
            if (hook->events & NOTICE_BIT(kind))
                events[event_count++] = notice_kind_name((enum notice_kind)kind);
        char path[48];
        snprintf(path, sizeof path, "notifications.webhooks[%zu].", i);
        const struct section item = {top->json, list->as.list.items[i],
                                     field_find(rows.shape, "webhooks")->shape, path};
        row_text(&item, "name", hook->name);
        row_text(&item, "url", hook_mask(hook->url, &arena));
        row_text(&item, "tokenFile", hook->token_file);
        row_text(&item, "caFile", hook->ca_file);
        row_list(&item, "events", events, event_count);
        row_bool(&item, "alerts", hook->has_alerts);
    }
    const struct section alerts = section_in(&rows, "alerts", "notifications.alerts.");
    row_list(&alerts, "mail", config->alerts.mail, config->alerts.mail_count);
    row_text(&alerts, "severity", config_alert_severities[config->alerts.is_error_only]);
    row_int(&alerts, "afterSeconds", config->alerts.after_s);
}

/* Of its own kind only: nothing of the others is used. */
static void engine_rows(const struct section *rows, const struct engine_config *config)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    row_text(rows, "name", config->name);
    row_text(rows, "kind", config_engine_kinds[config->kind]);
    row_int(rows, "logSegmentMB", config->log_segment_mib);
    row_size(rows, "logKeepDays", config->local.log_keep_s / 86400);
    row_size(rows, "logKeepMB", config->local.log_keep_mib);
    switch (config->kind) {
    case ENGINE_KIND_LOCAL:
        local_rows(rows, config, &arena);
        break;
    case ENGINE_KIND_KUBERNETES:
        kubernetes_rows(rows, &config->kubernetes, &arena);
        break;
    case ENGINE_KIND_FAKE:
        fake_rows(rows, &config->fake, &arena);
        break;
    }
}

static void engines_rows(const struct section *top, const struct server_config *config)
{
    const struct doc *list = doc_get(top->doc, "engines");
    for (size_t i = 0; i < config->engine_count; i++) {
        char path[32] = "engine.";
        if (list)
            snprintf(path, sizeof path, "engines[%zu].", i);
        const struct section rows = {
            top->json, list ? list->as.list.items[i] : doc_get(top->doc, "engine"),
            field_find(top->shape, list ? "engines" : "engine")->shape, path};
        engine_rows(&rows, &config->engines[i]);
    }
}

static void top_rows(const struct section *top, const struct server_config *config)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    if (config->is_data_given)
        row_given(top, "dataDirectory", config->data_directory);
    else
        row_text(top, "dataDirectory", config->data_directory);
    row_text(top, "database", address_mask(config->database, &arena));
    row_text(top, "filesDirectory",
             config->files_directory[0] ? config->files_directory
                                        : arena_format(&arena, "%s/files", config->data_directory));
    row_text(top, "adminName", config->admin_name);
    row_text(top, "exitRulesFile", config->exit_rules_path);
    api_rows(top, config);
    const struct section log = section_in(top, "log", "log.");
    row_text(&log, "level", config_log_levels[config->log_level]);
    row_text(&log, "format", config_log_formats[config->log_format]);
    scheduling_rows(top, config);
    retention_rows(top, &config->retention);
    storage_rows(top, &config->storages);
    portal_rows(top, config);
    plugin_rows(top, &config->plugins);
    const struct section auth = section_in(top, "auth", "auth.");
    row_text(&auth, "signUp", config_sign_ups[config->has_sign_up]);
    notify_rows(top, &config->notify);
    engines_rows(top, config);
}

void server_config_settings(const struct server_config *first, const struct server_config *now,
                            struct buf *out)
{
    struct json_writer json;
    cleanup_buf struct buf keys = BUF_INIT;
    json_init(&json, out);
    json_object(&json);
    json_key_string(&json, "file", now->path[0] ? now->path : NULL);
    server_config_compare(first, now, &keys);
    json_key(&json, "needRestart");
    json_array(&json);
    for (struct text rest = buf_as_text(&keys); rest.length > 0;)
        json_text(&json, text_trim(text_cut(&rest, ',')));
    json_array_end(&json);
    json_key(&json, "settings");
    json_array(&json);
    const struct section top = {&json, now->doc, &config_shape, ""};
    top_rows(&top, now);
    json_array_end(&json);
    json_object_end(&json);
}
