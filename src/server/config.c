/* config.c — see config.h. */
#include "server/config.h"
#include "base/address.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/name_pattern.h"
#include "base/origin.h"
#include "doc/doc.h"
#include "doc/shape.h"
#include "hived/config.h"
#include "server/config_shape.h"
#include "server/engines.h"
#include "signon/fetch.h"
#include "store/postgres/postgres.h"
#include "sys/api_socket.h"
#include "sys/file.h"
#include <string.h>

enum { FILE_BYTES_MAX = 4 << 20 };

/* Readers of checked values: the shape has refused what is of another kind. */

static void get_string(struct server_config *config, const struct doc *doc, const char *key,
                       const char **value)
{
    const struct doc *found = doc_get(doc, key);
    if (found && found->kind == DOC_STRING)
        *value = arena_copy(&config->arena, found->as.string);
}

static uint64_t get_int(const struct doc *doc, const char *key, uint64_t otherwise)
{
    const struct doc *found = doc_get(doc, key);
    return found && found->kind == DOC_INT ? (uint64_t)found->as.integer : otherwise;
}

static void get_u32(const struct doc *doc, const char *key, uint32_t *value)
{
    *value = (uint32_t)get_int(doc, key, *value);
}

static void get_bool(const struct doc *doc, const char *key, bool *value)
{
    const struct doc *found = doc_get(doc, key);
    if (found && found->kind == DOC_BOOL)
        *value = found->as.boolean;
}

static void get_strings(struct server_config *config, const struct doc *doc, const char *key,
                        const char *const **items, size_t *count)
{
    const struct doc *found = doc_get(doc, key);
    if (!found || found->kind != DOC_LIST)
        return;
    const char **list;
    list = arena_array(&config->arena, found->as.list.count, sizeof *list);
    for (size_t i = 0; i < found->as.list.count; i++)
        list[i] = arena_copy(&config->arena, found->as.list.items[i]->as.string);
    *items = list;
    *count = found->as.list.count;
}

static int get_choice(const struct doc *doc, const char *key, const char *const *choices,
                      int otherwise)
{
    const struct doc *found = doc_get(doc, key);
    if (found && found->kind == DOC_STRING)
        for (int i = 0; choices[i]; i++)
            if (text_is(found->as.string, choices[i]))
                return i;
    return otherwise;
}

static void engine_default(struct engine_config *engine)
{
    *engine = (struct engine_config){
        .name = "local",
        .kind = ENGINE_KIND_LOCAL,
        .network_mode = NETWORK_MODE_UNSET,
        .log_segment_mib = 256,
        .fake = {.node_prefix = "fake",
                 .nodes = 1,
                 .cpu = 64,
                 .memory_mib = 65536,
                 .run_ms = 100,
                 .log = ""},
    };
}

static const char *const oidc_scopes[] = {"profile", "email"};

static void read_oidc(struct server_config *config, const struct doc *doc)
{
    struct api_oidc *oidc = &config->oidc;
    config->has_oidc = doc != NULL;
    *oidc = (struct api_oidc){.public_url = "",
                              .provider = {.issuer = "",
                                           .client_id = "",
                                           .scopes = oidc_scopes,
                                           .scope_count = COUNT_OF(oidc_scopes),
                                           .user_claim = "preferred_username",
                                           .groups_claim = "groups"}};
    get_string(config, doc, "issuer", &oidc->provider.issuer);
    get_string(config, doc, "clientId", &oidc->provider.client_id);
    get_string(config, doc, "clientSecretFile", &oidc->provider.secret_file);
    get_string(config, doc, "caFile", &oidc->provider.ca_file);
    get_string(config, doc, "publicUrl", &oidc->public_url);
    get_strings(config, doc, "portals", &oidc->portals, &oidc->portal_count);
    get_strings(config, doc, "scopes", &oidc->provider.scopes, &oidc->provider.scope_count);
    get_string(config, doc, "userClaim", &oidc->provider.user_claim);
    get_string(config, doc, "groupsClaim", &oidc->provider.groups_claim);
    get_strings(config, doc, "allowedGroups", &oidc->policy.allowed, &oidc->policy.allowed_count);
    get_bool(doc, "createUsers", &oidc->policy.creates_users);
    get_bool(doc, "adoptUsers", &oidc->policy.adopts_users);
}

static void read_ldap(struct server_config *config, const struct doc *doc)
{
    struct directory_config *directory = &config->ldap.directory;
    bool starts_tls = true;
    config->has_ldap = doc != NULL;
    config->ldap = (struct api_ldap){0};
    *directory = (struct directory_config){
        .url = "",
        .base = "",
        .user_filter = "(uid={user})",
        .id_attribute = "entryUUID",
        .name_attribute = "uid",
        .mail_attribute = "mail",
        .group_filter = "(member={dn})",
        .group_attribute = "cn",
        .timeout_s = 5,
    };
    get_string(config, doc, "url", &directory->url);
    get_bool(doc, "startTls", &starts_tls);
    directory->is_plain = !starts_tls;
    get_string(config, doc, "caFile", &directory->ca_file);
    get_string(config, doc, "base", &directory->base);
    get_string(config, doc, "userFilter", &directory->user_filter);
    get_string(config, doc, "bindAs", &directory->bind_as);
    get_string(config, doc, "bindDn", &directory->bind_dn);
    get_string(config, doc, "bindPasswordFile", &directory->bind_password_file);
    get_string(config, doc, "idAttribute", &directory->id_attribute);
    get_string(config, doc, "nameAttribute", &directory->name_attribute);
    get_string(config, doc, "mailAttribute", &directory->mail_attribute);
    get_string(config, doc, "groupBase", &directory->group_base);
    get_string(config, doc, "groupFilter", &directory->group_filter);
    get_string(config, doc, "groupAttribute", &directory->group_attribute);
    get_u32(doc, "timeoutSeconds", &directory->timeout_s);
    get_strings(config, doc, "allowedGroups", &config->ldap.policy.allowed,
                &config->ldap.policy.allowed_count);
    get_bool(doc, "createUsers", &config->ldap.policy.creates_users);
}

static void config_default(struct server_config *config)
{
    config->path = "";
    config->listen = "127.0.0.1:9186";
    config->tls_clients.pattern = "CN:{user}";
    config->data_directory = SERVER_DATA_DIRECTORY;
    config->socket = "";
    config->database = "";
    config->admin_name = "admin";
    config->files_directory = "";
    config->exit_rules_path = "";
    config->cells_path = "";
    config->log_level = LOG_INFO;
    config->log_format = LOG_AUTO;
    config->requests_max = 10000;
    core_config_default(&config->core);
    config->core.finished_keep_s = 1; /* beyond that the store knows the names */
    config->hang_after_s = 1800;
    config->retention = (struct retention_config){.job_days = 365,
                                                  .event_log_days = 30,
                                                  .database_mib = 20480,
                                                  .use_mib = 1024,
                                                  .audit_days = 365,
                                                  .audit_records = 1000000};
    config->engines = ARENA_NEW(&config->arena, struct engine_config);
    config->engine_count = 1;
    engine_default(config->engines);
    read_oidc(config, NULL);
    read_ldap(config, NULL);
}

static void read_scheduling(struct server_config *config, const struct doc *doc)
{
    struct core_config *core = &config->core;
    int policy = get_choice(doc, "policy", config_policies, -1);
    if (policy >= 0)
        core->policy = config_policies[policy];
    int order = get_choice(doc, "order", config_orders, -1);
    if (order >= 0)
        core->order = config_orders[order];
    core->port_first = (uint16_t)get_int(doc, "portFirst", core->port_first);
    core->port_last = (uint16_t)get_int(doc, "portLast", core->port_last);
    get_u32(doc, "backoffMinSeconds", &core->backoff_min_s);
    get_u32(doc, "backoffMaxSeconds", &core->backoff_max_s);
    get_u32(doc, "retryPauseFirstSeconds", &core->retry_pause_first_s);
    get_u32(doc, "retryPauseMaxSeconds", &core->retry_pause_max_s);
    get_u32(doc, "retryCalmSeconds", &core->retry_calm_s);
    core->is_backoff_growing = doc_get_bool(doc, "backoffGrows", core->is_backoff_growing);
    core->gangs_span_engines = doc_get_bool(doc, "gangsSpanEngines", core->gangs_span_engines);
    get_u32(doc, "gangTimeoutSeconds", &core->gang_timeout_s);
    core->kill_grace_ms =
        (uint32_t)(get_int(doc, "killGraceSeconds", core->kill_grace_ms / 1000) * 1000);
    core->preemption_grace_ms =
        (uint32_t)(get_int(doc, "preemptionGraceSeconds", core->preemption_grace_ms / 1000) * 1000);
    get_u32(doc, "starvationAfterSeconds", &core->starvation_after_s);
    get_u32(doc, "finishedKeepSeconds", &core->finished_keep_s);
    get_u32(doc, "debugHoldSeconds", &core->debug_hold_s);
    get_u32(doc, "blameHalfLifeSeconds", &core->blame_half_life_s);
    if (doc_get(doc, "blameAvoid"))
        core->blame_avoid = (double)get_int(doc, "blameAvoid", 0);
    if (doc_get(doc, "blameCordon"))
        core->blame_cordon = (double)get_int(doc, "blameCordon", 0);
    config->hang_after_s = get_int(doc, "hangAfterSeconds", config->hang_after_s);
}

static void read_images(struct server_config *config, struct engine_config *engine,
                        const struct doc *doc)
{
    struct engine_local_config *local = &engine->local;
    get_strings(config, doc, "localRoots", &local->image_roots, &local->image_root_count);
    get_strings(config, doc, "insecureRegistries", &local->insecure_registries,
                &local->insecure_registry_count);
    get_string(config, doc, "registryAuthFile", &local->registry_auth_file);
    get_u32(doc, "pulls", &local->pulls);
    get_u32(doc, "pullTries", &local->pull_tries);
    get_u32(doc, "pullStallSeconds", &local->pull_stall_s);
    local->image_max_mib = get_int(doc, "unpackedMaxMB", 0);
    local->image_max_entries = get_int(doc, "unpackedMaxFiles", 0);
    get_u32(doc, "unpackedMaxRatio", &local->image_max_ratio);
    local->image_keep_s = get_int(doc, "keepDays", 0) * 86400;
    get_u32(doc, "highPercent", &local->image_high_percent);
}

static void read_kubernetes(struct server_config *config, const struct doc *doc,
                            struct engine_kubernetes_config *kubernetes)
{
    get_string(config, doc, "kubeconfig", &kubernetes->kubeconfig);
    get_string(config, doc, "context", &kubernetes->context);
    get_string(config, doc, "namespace", &kubernetes->space);
    get_string(config, doc, "instance", &kubernetes->instance);
    get_string(config, doc, "nodeSelector", &kubernetes->node_selector);
    get_string(config, doc, "initImage", &kubernetes->init_image);
    get_string(config, doc, "apiUrl", &kubernetes->api_url);
    get_string(config, doc, "runtimeClass", &kubernetes->runtime_class);
    get_string(config, doc, "priorityClass", &kubernetes->priority_class);
    get_string(config, doc, "serviceAccount", &kubernetes->service_account);
    get_string(config, doc, "podTemplate", &kubernetes->pod_template);
    get_string(config, doc, "infinibandResource", &kubernetes->infiniband_resource);
    get_string(config, doc, "taint", &kubernetes->taint);
    get_string(config, doc, "gpuResource", &kubernetes->gpu_resource);
    get_string(config, doc, "gpuTypeLabel", &kubernetes->gpu_type_label);
    get_string(config, doc, "deviceDriver", &kubernetes->device_driver);
    get_string(config, doc, "deviceClass", &kubernetes->device_class);
    get_string(config, doc, "gpuTypeAttribute", &kubernetes->gpu_type_attribute);
    kubernetes->gpus =
        (enum kube_gpus)get_choice(doc, "gpus", config_kubernetes_gpus, KUBE_GPUS_PLUGIN);
    get_u32(doc, "nodeLostSeconds", &kubernetes->node_lost_s);
}

static void read_engine(struct server_config *config, struct engine_config *engine,
                        const struct doc *doc)
{
    struct engine_local_config *local = &engine->local;
    const struct doc *devices = doc_get(doc, "devices"), *fake = doc_get(doc, "fake");
    engine->kind =
        (enum engine_kind)get_choice(doc, "kind", config_engine_kinds, (int)engine->kind);
    engine->name = config_engine_kinds[engine->kind];
    get_string(config, doc, "name", &engine->name);
    get_string(config, doc, "runtime", &local->runtime);
    get_string(config, doc, "initPath", &local->init_path);
    get_string(config, doc, "nodeName", &local->node_name);
    get_string(config, doc, "address", &local->address);
    get_u32(doc, "cpu", &local->cpu);
    local->memory_mib = get_int(doc, "memoryMB", 0);
    get_u32(doc, "workers", &local->workers);
    get_u32(doc, "pidsMax", &local->pids_max);
    get_u32(doc, "diskReserveMB", &local->disk_reserve_mib);
    local->container_keep_s = get_int(doc, "containerKeepHours", 0) * 3600;
    engine->log_segment_mib = get_int(doc, "logSegmentMB", engine->log_segment_mib);
    local->log_keep_s = get_int(doc, "logKeepDays", 0) * 86400;
    local->log_keep_mib = get_int(doc, "logKeepMB", 0);
    get_u32(devices, "simulatedGpus", &local->simulated_gpus);
    get_string(config, devices, "simulatedGpuType", &local->simulated_gpu_type);
    get_string(config, devices, "nvmlPath", &local->nvml_path);
    local->gpu_sample_ms = (uint32_t)(get_int(devices, "sampleSeconds", 0) * 1000);
    get_strings(config, devices, "cdiDirectories", &local->cdi_directories,
                &local->cdi_directory_count);
    const struct doc *disk = doc_get(doc, "disk"), *network = doc_get(doc, "network");
    const struct doc *users = doc_get(doc, "userNamespaces");
    local->user_namespaces = (enum user_namespaces)get_choice(users, "mode", config_user_modes, 0);
    local->user_images = (enum user_images)get_choice(users, "images", config_user_images, 0);
    get_u32(users, "firstId", &local->first_id);
    get_u32(users, "jobs", &local->id_jobs);
    local->disk_quota = (enum disk_quota)get_choice(disk, "quota", config_disk_quotas, 0);
    local->disk_mib = get_int(disk, "taskMB", 0);
    engine->network_mode = (enum network_mode)get_choice(network, "mode", config_network_modes,
                                                         (int)engine->network_mode);
    local->is_network_closed = get_choice(network, "outside", config_network_outsides, 0) == 1;
    get_string(config, network, "subnet", &local->subnet);
    for (size_t i = 0; i < RIGHTS; i++)
        get_strings(config, doc_get(doc, "rights"), right_names[i], &local->rights[i].items,
                    &local->rights[i].count);
    read_images(config, engine, doc_get(doc, "images"));
    read_kubernetes(config, doc_get(doc, "kubernetes"), &engine->kubernetes);
    get_string(config, fake, "nodePrefix", &engine->fake.node_prefix);
    get_u32(fake, "nodes", &engine->fake.nodes);
    get_u32(fake, "cpu", &engine->fake.cpu);
    engine->fake.memory_mib = get_int(fake, "memoryMB", engine->fake.memory_mib);
    get_u32(fake, "gpus", &engine->fake.gpu_count);
    get_u32(fake, "runMilliseconds", &engine->fake.run_ms);
    get_u32(fake, "loseEveryMilliseconds", &engine->fake.lose_every_ms);
    engine->fake.exit_code = (int32_t)get_int(fake, "exitCode", 0);
    get_string(config, fake, "log", &engine->fake.log);
}

static void read_engines(struct server_config *config, const struct doc *doc)
{
    const struct doc *list = doc_get(doc, "engines");
    if (!list) {
        read_engine(config, config->engines, doc_get(doc, "engine"));
        return;
    }
    config->engine_count = list->as.list.count;
    config->engines = ARENA_ARRAY(&config->arena, struct engine_config, config->engine_count);
    for (size_t i = 0; i < config->engine_count; i++) {
        engine_default(&config->engines[i]);
        read_engine(config, &config->engines[i], list->as.list.items[i]);
    }
}

static void read_storages(struct server_config *config, const struct doc *doc)
{
    const struct doc *list = doc_get_list(doc, "storages");
    struct storage *storages = ARENA_ARRAY(&config->arena, struct storage, list->as.list.count);
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *item = list->as.list.items[i];
        struct storage *storage = &storages[i];
        *storage = (struct storage){.directory = "", .claim = "", .server = "", .path = ""};
        get_string(config, item, "name", &storage->name);
        get_string(config, item, "directory", &storage->directory);
        get_string(config, item, "claim", &storage->claim);
        get_string(config, item, "server", &storage->server);
        get_string(config, item, "path", &storage->path);
        storage->type = config_storage_types[get_choice(item, "type", config_storage_types, 0)];
        storage->is_shared = doc_get_bool(item, "share", true);
        storage->is_read_only = doc_get_bool(item, "readOnly", false);
        storage->is_root_squashed = doc_get_bool(item, "rootSquash", false);
    }
    config->storages = (struct storage_list){storages, list->as.list.count};
}

static void read_offered_images(struct server_config *config, const struct doc *doc)
{
    const struct doc *list = doc_get_list(doc_get(doc, "portal"), "images");
    const size_t count = list->as.list.count;
    struct offered_image *images = ARENA_ARRAY(&config->arena, struct offered_image, count);
    for (size_t i = 0; i < count; i++) {
        const struct doc *item = list->as.list.items[i];
        images[i] = (struct offered_image){.about = ""};
        get_string(config, item, "name", &images[i].name);
        get_string(config, item, "uri", &images[i].uri);
        get_string(config, item, "about", &images[i].about);
    }
    config->images = (struct offered_images){images, count};
}

/* People choose by the name. */
static void check_offered_images(const struct server_config *config, const struct doc *doc,
                                 struct problems *problems)
{
    const struct doc *list = doc_get_list(doc_get(doc, "portal"), "images");
    for (size_t i = 0; i < config->images.count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(config->images.items[i].name, config->images.items[j].name) == 0)
                problem_add(problems, list->as.list.items[i]->place, "portal.images.name",
                            "image %zu is called %s as well", j + 1, config->images.items[j].name);
}

static void check_storages(const struct server_config *config, const struct doc *doc,
                           struct problems *problems)
{
    const struct doc *list = doc_get_list(doc, "storages");
    for (size_t i = 0; i < config->storages.count; i++) {
        const struct storage *storage = &config->storages.items[i];
        const struct place place = list->as.list.items[i]->place;
        if (!storage->directory[0] && !storage->claim[0])
            problem_add(problems, place, "storages",
                        "%s has neither a directory nor a claim: it is nowhere", storage->name);
        if (storage->directory[0] && storage->directory[0] != '/')
            problem_add(problems, place, "storages.directory", "must begin with /");
        for (size_t j = 0; j < i; j++)
            if (strcmp(storage->name, config->storages.items[j].name) == 0)
                problem_add(problems, place, "storages.name", "storage %zu is called %s as well",
                            j + 1, storage->name);
    }
}

static void check_oidc(const struct server_config *config, const struct doc *doc,
                       struct problems *problems)
{
    const struct api_oidc *oidc = &config->oidc;
    const struct {
        const char *key, *value;
        bool is_url;
    } needed[] = {{"api.oidc.issuer", oidc->provider.issuer, true},
                  {"api.oidc.publicUrl", oidc->public_url, true},
                  {"api.oidc.clientId", oidc->provider.client_id, false}};

    for (size_t i = 0; i < COUNT_OF(needed); i++) {
        if (!needed[i].value[0])
            problem_add(problems, doc->place, needed[i].key, "must be given");
        else if (needed[i].is_url && !fetch_url_is_good(needed[i].value))
            problem_add(problems, doc->place, needed[i].key,
                        "must be an https URL; http: only of a loopback address");
    }
}

static void check_ldap(const struct server_config *config, const struct doc *doc,
                       struct problems *problems)
{
    enum { BASE_MAX = 512 };
    const struct directory_config *ldap = &config->ldap.directory;
    const struct {
        bool is_wrong;
        const char *key, *text;
    } rules[] = {
        {!directory_url_is_good(ldap->url, ldap->is_plain), "api.ldap.url",
         "must be ldaps://HOST[:PORT] or ldap://HOST[:PORT]; without startTls only ldaps, or "
         "ldap of a loopback address"},
        {!ldap->base[0] || strlen(ldap->base) > BASE_MAX, "api.ldap.base",
         "must be given, of at most 512 bytes"},
        {!strstr(ldap->user_filter, "{user}"), "api.ldap.userFilter", "must contain {user}"},
        {ldap->bind_as && !strstr(ldap->bind_as, "{user}"), "api.ldap.bindAs",
         "must contain {user}"},
        {!!ldap->bind_dn != !!ldap->bind_password_file, "api.ldap.bindDn",
         "bindDn and bindPasswordFile go together"},
        {ldap->group_base && !strstr(ldap->group_filter, "{dn}") &&
             !strstr(ldap->group_filter, "{user}"),
         "api.ldap.groupFilter", "must contain {dn} or {user}"},
        {config->ldap.policy.allowed_count && !ldap->group_base, "api.ldap.allowedGroups",
         "needs groupBase"},
    };

    for (size_t i = 0; i < COUNT_OF(rules); i++)
        if (rules[i].is_wrong)
            problem_add(problems, doc->place, rules[i].key, "%s", rules[i].text);
}

/* A browser takes every name below localhost for its own machine, and each for an origin. */
static void read_web_ports(struct server_config *config, const struct doc *doc)
{
    get_string(config, doc, "listen", &config->web_listen);
    get_string(config, doc, "origin", &config->web_origin);
    const char *port = config->web_listen ? strrchr(config->web_listen, ':') : NULL;
    if (port && !config->web_origin)
        config->web_origin = arena_format(&config->arena, "http://*.localhost%s", port);
}

static void read_tls_clients(struct server_config *config, const struct doc *doc)
{
    struct tls_clients_config *clients = &config->tls_clients;
    clients->mode = (enum tls_client_mode)get_choice(doc, "clientCertificates",
                                                     config_tls_client_modes, (int)clients->mode);
    get_string(config, doc, "clientCaFile", &clients->authorities);
    get_string(config, doc, "clientRevocationFile", &clients->revoked);
    get_string(config, doc, "clientName", &clients->pattern);
}

static void read_top(struct server_config *config, const struct doc *doc)
{
    const struct doc *api = doc_get(doc, "api"), *log = doc_get(doc, "log");
    const struct doc *retention = doc_get(doc, "retention"), *tls = doc_get(api, "tls");
    get_string(config, doc, "dataDirectory", &config->data_directory);
    get_string(config, doc, "database", &config->database);
    get_string(config, doc, "filesDirectory", &config->files_directory);
    get_string(config, doc, "adminName", &config->admin_name);
    get_string(config, doc, "exitRulesFile", &config->exit_rules_path);
    get_string(config, api, "listen", &config->listen);
    get_string(config, api, "socket", &config->socket);
    read_oidc(config, doc_get(api, "oidc"));
    read_ldap(config, doc_get(api, "ldap"));
    get_strings(config, api, "origins", &config->origins, &config->origin_count);
    get_strings(config, api, "proxies", &config->proxies, &config->proxy_count);
    get_u32(tls, "hstsSeconds", &config->hsts_s);
    config->tls = (enum api_tls)get_choice(tls, "mode", config_tls_modes, (int)config->tls);
    get_string(config, tls, "certificateFile", &config->certificate_path);
    get_string(config, tls, "keyFile", &config->key_path);
    read_tls_clients(config, tls);
    read_web_ports(config, doc_get(api, "webPorts"));
    get_u32(api, "threads", &config->threads);
    get_u32(api, "requestsMax", &config->requests_max);
    get_bool(api, "shareConfigurations", &config->is_config_shared);
    get_bool(api, "shareLogs", &config->is_log_shared);
    get_bool(api, "openReads", &config->is_v1_read_open);
    config->log_level =
        (enum log_level)get_choice(log, "level", config_log_levels, (int)config->log_level);
    config->log_format =
        (enum log_format)get_choice(log, "format", config_log_formats, (int)config->log_format);
    config->retention.job_days = get_int(retention, "jobDays", config->retention.job_days);
    config->retention.event_log_days =
        get_int(retention, "eventLogDays", config->retention.event_log_days);
    config->retention.database_mib =
        get_int(retention, "databaseMB", config->retention.database_mib);
    config->retention.use_mib = get_int(retention, "useMB", config->retention.use_mib);
    config->retention.audit_days = get_int(retention, "auditDays", config->retention.audit_days);
    config->retention.audit_records =
        get_int(retention, "auditRecords", config->retention.audit_records);
    read_scheduling(config, doc_get(doc, "scheduling"));
    read_storages(config, doc);
    read_offered_images(config, doc);
    read_engines(config, doc);
}

/* What a cluster must be told, and what would go unheard. */
static void check_kubernetes(const struct engine_config *engine, const struct doc *doc,
                             struct problems *problems)
{
    static const char *const unused[] = {
        "runtime",  "initPath",       "nodeName", "address",       "cpu",
        "memoryMB", "workers",        "pidsMax",  "diskReserveMB", "containerKeepHours",
        "disk",     "userNamespaces", "network",  "rights",        "devices",
        "images",   "fake",
    };
    const struct doc *own = doc_get(doc, "kubernetes");
    const char *init_image = engine->kubernetes.init_image;
    if (engine->kind == ENGINE_KIND_KUBERNETES && !init_image)
        problem_add(problems, own ? own->place : doc->place, "engine.kubernetes.initImage",
                    "an image that has skep-init must be named");
    for (size_t i = 0; engine->kind == ENGINE_KIND_KUBERNETES && i < COUNT_OF(unused); i++)
        if (doc_get(doc, unused[i]))
            problem_add(problems, doc_get(doc, unused[i])->place, "engine",
                        "%s says how containers of this machine are run: for pods of a cluster "
                        "nothing of it is used",
                        unused[i]);
    if (engine->kind == ENGINE_KIND_KUBERNETES && strchr(engine->name, '/'))
        problem_add(problems, doc_get(doc, "name")->place, "engine.name",
                    "a folder is called after it: it must have no /");
    if (engine->kind != ENGINE_KIND_KUBERNETES && own)
        problem_add(problems, own->place, "engine.kubernetes",
                    "the engine's kind is %s, so that nothing of this is used",
                    config_engine_kinds[engine->kind]);
}

/* Each has a name of its own and machines of its own; this machine is one engine's. */
static void check_engines(const struct server_config *config, const struct doc *doc,
                          struct problems *problems)
{
    const struct doc *list = doc_get(doc, "engines");
    if (list && doc_get(doc, "engine"))
        problem_add(problems, list->place, "engines", "engine stands there as well: name all here");
    if (!list && doc_get(doc, "engine"))
        check_kubernetes(config->engines, doc_get(doc, "engine"), problems);
    for (size_t i = 0; list && i < config->engine_count; i++)
        check_kubernetes(&config->engines[i], list->as.list.items[i], problems);
    for (size_t i = 0; list && i < config->engine_count; i++) {
        const struct engine_config *engine = &config->engines[i];
        const struct place place = list->as.list.items[i]->place;
        for (size_t j = 0; j < i; j++) {
            const struct engine_config *other = &config->engines[j];
            if (strcmp(engine->name, other->name) == 0)
                problem_add(problems, place, "engines.name", "engine %zu is called %s as well",
                            j + 1, other->name);
            if (engine->kind == ENGINE_KIND_LOCAL && other->kind == ENGINE_KIND_LOCAL)
                problem_add(problems, place, "engines.kind",
                            "engine %zu is local as well: this machine is one engine's", j + 1);
            if (engine->kind == ENGINE_KIND_FAKE && other->kind == ENGINE_KIND_FAKE &&
                strcmp(engine->fake.node_prefix, other->fake.node_prefix) == 0)
                problem_add(problems, place, "engines.fake.nodePrefix",
                            "the machines of engine %zu are called %s0, %s1, … as well", j + 1,
                            other->fake.node_prefix, other->fake.node_prefix);
        }
    }
}

static void check_proxies(const struct server_config *config, const struct doc *api,
                          struct problems *problems)
{
    struct address_range range;
    struct err err;
    for (size_t i = 0; i < config->proxy_count; i++)
        if (address_range_parse(config->proxies[i], &range, &err) < 0)
            problem_add(problems, doc_get(api, "proxies")->as.list.items[i]->place, "api.proxies",
                        "%s", err.text);
}

static void check_web_ports(const struct server_config *config, const struct doc *doc,
                            struct problems *problems)
{
    struct origin_pattern origin;
    struct err err;
    if (config->web_listen && !strrchr(config->web_listen, ':'))
        problem_add(problems, doc->place, "api.webPorts.listen", "'%s' is not ADDRESS:PORT",
                    config->web_listen);
    if (config->web_origin && origin_pattern_parse(config->web_origin, &origin, &err) < 0)
        problem_add(problems, doc->place, "api.webPorts.origin", "%s", err.text);
}

/* Rules between keys. */
static void check_tls_clients(const struct server_config *config, const struct doc *doc,
                              struct problems *problems)
{
    const struct tls_clients_config *clients = &config->tls_clients;
    const struct place place = doc ? doc->place : (struct place){1, 1};
    if (!name_pattern_is_good(clients->pattern))
        problem_add(problems, place, "api.tls.clientName",
                    "must be CN:, email: or uri: and a text with {user} in it, once");
    if (clients->mode == TLS_CLIENT_OFF)
        return;
    if (!clients->authorities)
        problem_add(problems, place, "api.tls.clientCaFile",
                    "must name who vouches for clients when certificates are wanted of them");
    if (config->tls == API_TLS_OFF)
        problem_add(problems, place, "api.tls.clientCertificates",
                    "clients show certificates by TLS alone, and the mode is off");
}

static void check_together(const struct server_config *config, const struct doc *doc,
                           struct problems *problems)
{
    const struct core_config *core = &config->core;
    const struct doc *scheduling = doc_get(doc, "scheduling");
    const struct doc *database = doc_get(doc, "database");
    struct place place = scheduling ? scheduling->place : (struct place){1, 1};
    if (config->database[0] && !postgres_is_address(config->database)) /* it may hold a password */
        problem_add(problems, database->place, "database",
                    "must be an address of PostgreSQL, postgres://USER@HOST/DATABASE");
    if (!config->certificate_path != !config->key_path)
        problem_add(problems, doc_get(doc, "api")->place, "api.tls",
                    "certificateFile and keyFile are given together");
    check_tls_clients(config, doc_get(doc_get(doc, "api"), "tls"), problems);
    check_proxies(config, doc_get(doc, "api"), problems);
    check_web_ports(config, doc_get(doc_get(doc, "api"), "webPorts"), problems);
    if (config->has_oidc)
        check_oidc(config, doc_get(doc_get(doc, "api"), "oidc"), problems);
    if (config->has_ldap)
        check_ldap(config, doc_get(doc_get(doc, "api"), "ldap"), problems);
    if (core->port_first > core->port_last)
        problem_add(problems, place, "scheduling.portFirst", "%u is above portLast, %u",
                    core->port_first, core->port_last);
    if (core->backoff_min_s > core->backoff_max_s)
        problem_add(problems, place, "scheduling.backoffMinSeconds",
                    "%u is above backoffMaxSeconds, %u", core->backoff_min_s, core->backoff_max_s);
    if (core->retry_pause_first_s > core->retry_pause_max_s)
        problem_add(problems, place, "scheduling.retryPauseFirstSeconds",
                    "%u is above retryPauseMaxSeconds, %u", core->retry_pause_first_s,
                    core->retry_pause_max_s);
    if (core->blame_avoid > core->blame_cordon)
        problem_add(problems, place, "scheduling.blameAvoid", "%g is above blameCordon, %g",
                    core->blame_avoid, core->blame_cordon);
}

/* What the core would refuse without anybody hearing why, line by line. */
static int check_cells(const char *path, struct text content, struct buf *report, struct err *err)
{
    int code = 0;
    cleanup_arena struct arena scratch;
    arena_init(&scratch);
    cleanup_problems struct problems problems;
    problems_init(&problems, &scratch);
    struct hived_config *cells =
        hived_config_read(doc_parse(content, DOC_YAML, &scratch, &problems), &problems);
    problems_print(&problems, path, report);
    if (!cells)
        code = err_fail(err, ERR_INVALID, "", "%s has %zu error%s", path, problems.error_count,
                        problems.error_count == 1 ? "" : "s");
    hived_config_free(cells);
    return code;
}

static int read_cells_file(struct server_config *config, const struct doc *doc, struct buf *report,
                           struct err *err)
{
    cleanup_buf struct buf content = BUF_INIT;
    get_string(config, doc_get(doc, "scheduling"), "cellsFile", &config->cells_path);
    const char *path = config->cells_path;
    if (!path[0])
        return 0;
    int code = file_read(path, FILE_BYTES_MAX, &content, err);
    if (code == 0 && !strcmp(config->core.policy, "hived"))
        code = check_cells(path, buf_as_text(&content), report, err);
    if (code == 0)
        config->core.placement_document =
            (struct text){arena_copy(&config->arena, buf_as_text(&content)), content.length};
    return code;
}

static int config_parse(struct server_config *config, struct text source, struct buf *report,
                        struct err *err)
{
    int code = 0;
    cleanup_arena struct arena scratch;
    arena_init(&scratch);
    cleanup_problems struct problems problems;
    problems_init(&problems, &scratch);
    const struct doc *doc = doc_parse(source, DOC_YAML, &config->arena, &problems);
    if (doc && doc->kind != DOC_NULL)
        shape_check(&config_shape, doc, "", &problems);
    if (problems.error_count == 0 && doc && doc->kind == DOC_MAP) {
        config->doc = doc;
        read_top(config, doc);
        check_together(config, doc, &problems);
        check_engines(config, doc, &problems);
        check_storages(config, doc, &problems);
        check_offered_images(config, doc, &problems);
        if (problems.error_count == 0)
            code = read_cells_file(config, doc, report, err);
    }
    problems_print(&problems, config->path, report);
    if (problems.error_count > 0)
        code = err_fail(err, ERR_INVALID, "", "%s has %zu error%s", config->path,
                        problems.error_count, problems.error_count == 1 ? "" : "s");
    return code;
}

int server_config_read(const char *path, struct server_config **out, struct buf *report,
                       struct err *err)
{
    struct server_config *config = mem_zero(1, sizeof *config);
    cleanup_buf struct buf source = BUF_INIT;
    int code = 0;
    arena_init(&config->arena);
    config_default(config);
    if (path) {
        config->path = arena_copy(&config->arena, text_of(path));
        code = file_read(path, FILE_BYTES_MAX, &source, err);
        if (code == 0)
            code = config_parse(config, buf_as_text(&source), report, err);
    }
    if (code < 0) {
        server_config_free(config);
        return code;
    }
    *out = config;
    return 0;
}

const char *server_socket(const struct server_config *config, struct arena *arena)
{
    if (strcmp(config->socket, "none") == 0)
        return NULL;
    if (config->socket[0])
        return config->socket;
    if (strcmp(config->data_directory, SERVER_DATA_DIRECTORY) == 0)
        return PATH_API_SOCKET;
    return arena_format(arena, "%s/socket/api", config->data_directory);
}

void server_config_free(struct server_config *config)
{
    if (!config)
        return;
    arena_release(&config->arena);
    mem_free(config);
}
