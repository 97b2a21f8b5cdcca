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
#include "server/config_plugins.h"
#include "server/config_shape.h"
#include "server/config_signon.h"
#include "server/config_storages.h"
#include "server/config_values.h"
#include "server/engines.h"
#include "signon/fetch.h"
#include "store/postgres/postgres.h"
#include "sys/api_socket.h"
#include "sys/file.h"
#include <string.h>

enum { FILE_BYTES_MAX = 4 << 20 };

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

static void config_default(struct server_config *config)
{
    config_notify_init(&config->notify);
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
    config->has_files = true;
    config->upload_max_mib = 65536;
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
    config_oidc_read(config, NULL);
    config_ldap_read(config, NULL);
}

static void read_scheduling(struct server_config *config, const struct doc *doc)
{
    struct core_config *core = &config->core;
    int policy = config_choice(doc, "policy", config_policies, -1);
    if (policy >= 0)
        core->policy = config_policies[policy];
    int order = config_choice(doc, "order", config_orders, -1);
    if (order >= 0)
        core->order = config_orders[order];
    core->port_first = (uint16_t)config_int(doc, "portFirst", core->port_first);
    core->port_last = (uint16_t)config_int(doc, "portLast", core->port_last);
    config_u32(doc, "backoffMinSeconds", &core->backoff_min_s);
    config_u32(doc, "backoffMaxSeconds", &core->backoff_max_s);
    config_u32(doc, "retryPauseFirstSeconds", &core->retry_pause_first_s);
    config_u32(doc, "retryPauseMaxSeconds", &core->retry_pause_max_s);
    config_u32(doc, "retryCalmSeconds", &core->retry_calm_s);
    core->is_backoff_growing = doc_get_bool(doc, "backoffGrows", core->is_backoff_growing);
    core->gangs_span_engines = doc_get_bool(doc, "gangsSpanEngines", core->gangs_span_engines);
    config_u32(doc, "gangTimeoutSeconds", &core->gang_timeout_s);
    core->kill_grace_ms =
        (uint32_t)(config_int(doc, "killGraceSeconds", core->kill_grace_ms / 1000) * 1000);
    core->preemption_grace_ms =
        (uint32_t)(config_int(doc, "preemptionGraceSeconds", core->preemption_grace_ms / 1000) *
                   1000);
    config_u32(doc, "starvationAfterSeconds", &core->starvation_after_s);
    config_u32(doc, "finishedKeepSeconds", &core->finished_keep_s);
    config_u32(doc, "debugHoldSeconds", &core->debug_hold_s);
    config_u32(doc, "blameHalfLifeSeconds", &core->blame_half_life_s);
    if (doc_get(doc, "blameAvoid"))
        core->blame_avoid = (double)config_int(doc, "blameAvoid", 0);
    if (doc_get(doc, "blameCordon"))
        core->blame_cordon = (double)config_int(doc, "blameCordon", 0);
    config->hang_after_s = config_int(doc, "hangAfterSeconds", config->hang_after_s);
}

static void read_images(struct server_config *config, struct engine_config *engine,
                        const struct doc *doc)
{
    struct engine_local_config *local = &engine->local;
    config_strings(config, doc, "localRoots", &local->image_roots, &local->image_root_count);
    config_strings(config, doc, "insecureRegistries", &local->insecure_registries,
                   &local->insecure_registry_count);
    config_string(config, doc, "registryAuthFile", &local->registry_auth_file);
    config_u32(doc, "pulls", &local->pulls);
    config_u32(doc, "pullTries", &local->pull_tries);
    config_u32(doc, "pullStallSeconds", &local->pull_stall_s);
    local->image_max_mib = config_int(doc, "unpackedMaxMB", 0);
    local->image_max_entries = config_int(doc, "unpackedMaxFiles", 0);
    config_u32(doc, "unpackedMaxRatio", &local->image_max_ratio);
    local->image_keep_s = config_int(doc, "keepDays", 0) * 86400;
    config_u32(doc, "highPercent", &local->image_high_percent);
}

static void read_kubernetes(struct server_config *config, const struct doc *doc,
                            struct engine_kubernetes_config *kubernetes)
{
    config_string(config, doc, "kubeconfig", &kubernetes->kubeconfig);
    config_string(config, doc, "context", &kubernetes->context);
    config_string(config, doc, "namespace", &kubernetes->space);
    config_string(config, doc, "instance", &kubernetes->instance);
    config_string(config, doc, "nodeSelector", &kubernetes->node_selector);
    config_string(config, doc, "initImage", &kubernetes->init_image);
    config_string(config, doc, "apiUrl", &kubernetes->api_url);
    config_string(config, doc, "runtimeClass", &kubernetes->runtime_class);
    config_string(config, doc, "priorityClass", &kubernetes->priority_class);
    config_string(config, doc, "serviceAccount", &kubernetes->service_account);
    config_string(config, doc, "podTemplate", &kubernetes->pod_template);
    config_string(config, doc, "infinibandResource", &kubernetes->infiniband_resource);
    kubernetes->network.mode =
        (enum kube_network)config_choice(doc, "network", config_kubernetes_networks, 0);
    kubernetes->network.users =
        (enum kube_users)config_choice(doc, "userNamespaces", config_kubernetes_users, 0);
    config_strings(config, doc, "hostNetwork", &kubernetes->network.host_clusters,
                   &kubernetes->network.host_cluster_count);
    config_string(config, doc, "taint", &kubernetes->taint);
    const struct doc *reserve = doc_get(doc, "nodeReserve");
    config_u32(reserve, "cpu", &kubernetes->node_reserve.cpu);
    kubernetes->node_reserve.memory_mib = (uint64_t)config_int(reserve, "memoryMB", 0);
    config_u32(reserve, "pods", &kubernetes->node_reserve.pods);
    config_string(config, doc, "gpuResource", &kubernetes->gpu_resource);
    config_string(config, doc, "gpuTypeLabel", &kubernetes->gpu_type_label);
    config_string(config, doc, "deviceDriver", &kubernetes->device_driver);
    config_string(config, doc, "deviceClass", &kubernetes->device_class);
    config_string(config, doc, "gpuTypeAttribute", &kubernetes->gpu_type_attribute);
    kubernetes->gpus =
        (enum kube_gpus)config_choice(doc, "gpus", config_kubernetes_gpus, KUBE_GPUS_PLUGIN);
    const struct doc *metrics = doc_get_kind(doc, "gpuMetrics", DOC_MAP);
    if (metrics)
        kubernetes->gpu_metrics_port = (uint16_t)config_int(metrics, "port", KUBE_GPU_METRICS_PORT);
    config_string(config, metrics, "path", &kubernetes->gpu_metrics_path);
    kubernetes->is_node_metrics_off =
        config_choice(doc, "nodeMetrics", config_node_metrics, 0) == 1;
    config_u32(doc, "nodeLostSeconds", &kubernetes->node_lost_s);
}

static void read_engine(struct server_config *config, struct engine_config *engine,
                        const struct doc *doc)
{
    struct engine_local_config *local = &engine->local;
    const struct doc *devices = doc_get(doc, "devices"), *fake = doc_get(doc, "fake");
    engine->kind =
        (enum engine_kind)config_choice(doc, "kind", config_engine_kinds, (int)engine->kind);
    engine->name = config_engine_kinds[engine->kind];
    config_string(config, doc, "name", &engine->name);
    config_string(config, doc, "runtime", &local->runtime);
    config_string(config, doc, "initPath", &local->init_path);
    config_string(config, doc, "nodeName", &local->node_name);
    config_string(config, doc, "address", &local->address);
    config_u32(doc, "cpu", &local->cpu);
    local->memory_mib = config_int(doc, "memoryMB", 0);
    config_u32(doc, "workers", &local->workers);
    config_u32(doc, "pidsMax", &local->pids_max);
    config_u32(doc, "diskReserveMB", &local->disk_reserve_mib);
    local->container_keep_s = config_int(doc, "containerKeepHours", 0) * 3600;
    engine->log_segment_mib = config_int(doc, "logSegmentMB", engine->log_segment_mib);
    local->log_keep_s = config_int(doc, "logKeepDays", 0) * 86400;
    local->log_keep_mib = config_int(doc, "logKeepMB", 0);
    config_u32(devices, "simulatedGpus", &local->simulated_gpus);
    config_string(config, devices, "simulatedGpuType", &local->simulated_gpu_type);
    config_string(config, devices, "nvmlPath", &local->nvml_path);
    local->gpu_sample_ms = (uint32_t)(config_int(devices, "sampleSeconds", 0) * 1000);
    config_strings(config, devices, "cdiDirectories", &local->cdi_directories,
                   &local->cdi_directory_count);
    const struct doc *disk = doc_get(doc, "disk"), *network = doc_get(doc, "network");
    const struct doc *users = doc_get(doc, "userNamespaces");
    local->user_namespaces =
        (enum user_namespaces)config_choice(users, "mode", config_user_modes, 0);
    local->user_images = (enum user_images)config_choice(users, "images", config_user_images, 0);
    config_u32(users, "firstId", &local->first_id);
    config_u32(users, "jobs", &local->id_jobs);
    local->disk_quota = (enum disk_quota)config_choice(disk, "quota", config_disk_quotas, 0);
    local->disk_mib = config_int(disk, "taskMB", 0);
    engine->network_mode = (enum network_mode)config_choice(network, "mode", config_network_modes,
                                                            (int)engine->network_mode);
    local->is_network_closed = config_choice(network, "outside", config_network_outsides, 0) == 1;
    config_string(config, network, "subnet", &local->subnet);
    for (size_t i = 0; i < RIGHTS; i++)
        config_strings(config, doc_get(doc, "rights"), right_names[i], &local->rights[i].items,
                       &local->rights[i].count);
    read_images(config, engine, doc_get(doc, "images"));
    read_kubernetes(config, doc_get(doc, "kubernetes"), &engine->kubernetes);
    config_string(config, fake, "nodePrefix", &engine->fake.node_prefix);
    config_u32(fake, "nodes", &engine->fake.nodes);
    config_u32(fake, "cpu", &engine->fake.cpu);
    engine->fake.memory_mib = config_int(fake, "memoryMB", engine->fake.memory_mib);
    config_u32(fake, "gpus", &engine->fake.gpu_count);
    config_u32(fake, "runMilliseconds", &engine->fake.run_ms);
    config_u32(fake, "loseEveryMilliseconds", &engine->fake.lose_every_ms);
    engine->fake.exit_code = (int32_t)config_int(fake, "exitCode", 0);
    config_string(config, fake, "log", &engine->fake.log);
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

static void read_portal(struct server_config *config, const struct doc *doc)
{
    const struct doc *list = doc_get_list(doc_get(doc, "portal"), "images");
    const size_t count = list->as.list.count;
    struct offered_image *images = ARENA_ARRAY(&config->arena, struct offered_image, count);
    for (size_t i = 0; i < count; i++) {
        const struct doc *item = list->as.list.items[i];
        images[i] = (struct offered_image){.about = ""};
        config_string(config, item, "name", &images[i].name);
        config_string(config, item, "uri", &images[i].uri);
        config_string(config, item, "about", &images[i].about);
    }
    config->images = (struct offered_images){images, count};
    config_string(config, doc_get(doc, "portal"), "manualUrl", &config->manual_url);
    config_string(config, doc_get(doc, "portal"), "feedbackUrl", &config->feedback_url);
}

/* They are followed by a browser that is signed in: a script must not be one. */
static void check_portal_links(const struct server_config *config, const struct doc *doc,
                               struct problems *problems)
{
    const struct doc *portal = doc_get(doc, "portal");
    const struct {
        const char *key, *name, *url;
    } links[] = {{"manualUrl", "portal.manualUrl", config->manual_url},
                 {"feedbackUrl", "portal.feedbackUrl", config->feedback_url}};
    for (size_t i = 0; i < COUNT_OF(links); i++)
        if (links[i].url && strncmp(links[i].url, "https://", 8) != 0 &&
            strncmp(links[i].url, "http://", 7) != 0)
            problem_add(problems, doc_get(portal, links[i].key)->place, links[i].name,
                        "must begin with https:// or http://");
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

/* A browser takes every name below localhost for its own machine, and each for an origin. */
static void read_web_ports(struct server_config *config, const struct doc *doc)
{
    config_string(config, doc, "listen", &config->web_listen);
    config_string(config, doc, "origin", &config->web_origin);
    const char *port = config->web_listen ? strrchr(config->web_listen, ':') : NULL;
    if (port && !config->web_origin)
        config->web_origin = arena_format(&config->arena, "http://*.localhost%s", port);
}

static void read_tls_clients(struct server_config *config, const struct doc *doc)
{
    struct tls_clients_config *clients = &config->tls_clients;
    clients->mode = (enum tls_client_mode)config_choice(
        doc, "clientCertificates", config_tls_client_modes, (int)clients->mode);
    config_string(config, doc, "clientCaFile", &clients->authorities);
    config_string(config, doc, "clientRevocationFile", &clients->revoked);
    config_string(config, doc, "clientName", &clients->pattern);
}

static void read_top(struct server_config *config, const struct doc *doc)
{
    const struct doc *api = doc_get(doc, "api"), *log = doc_get(doc, "log");
    const struct doc *retention = doc_get(doc, "retention"), *tls = doc_get(api, "tls");
    config_string(config, doc, "dataDirectory", &config->data_directory);
    config_string(config, doc, "database", &config->database);
    config_string(config, doc, "filesDirectory", &config->files_directory);
    config_string(config, doc, "adminName", &config->admin_name);
    config_string(config, doc, "exitRulesFile", &config->exit_rules_path);
    config_string(config, api, "listen", &config->listen);
    config_string(config, api, "socket", &config->socket);
    config_oidc_read(config, doc_get(api, "oidc"));
    config_ldap_read(config, doc_get(api, "ldap"));
    config_strings(config, api, "origins", &config->origins, &config->origin_count);
    config_strings(config, api, "proxies", &config->proxies, &config->proxy_count);
    config_u32(tls, "hstsSeconds", &config->hsts_s);
    config->tls = (enum api_tls)config_choice(tls, "mode", config_tls_modes, (int)config->tls);
    config_string(config, tls, "certificateFile", &config->certificate_path);
    config_string(config, tls, "keyFile", &config->key_path);
    read_tls_clients(config, tls);
    read_web_ports(config, doc_get(api, "webPorts"));
    config_bool(api, "files", &config->has_files);
    config_u32(api, "uploadMaxMB", &config->upload_max_mib);
    config_u32(api, "threads", &config->threads);
    config_u32(api, "requestsMax", &config->requests_max);
    config_bool(api, "shareConfigurations", &config->is_config_shared);
    config_bool(api, "shareLogs", &config->is_log_shared);
    config_bool(api, "openReads", &config->is_v1_read_open);
    config->has_sign_up =
        config_choice(doc_get(doc, "auth"), "signUp", config_sign_ups, config->has_sign_up) == 1;
    config->log_level =
        (enum log_level)config_choice(log, "level", config_log_levels, (int)config->log_level);
    config->log_format =
        (enum log_format)config_choice(log, "format", config_log_formats, (int)config->log_format);
    config->retention.job_days = config_int(retention, "jobDays", config->retention.job_days);
    config->retention.event_log_days =
        config_int(retention, "eventLogDays", config->retention.event_log_days);
    config->retention.database_mib =
        config_int(retention, "databaseMB", config->retention.database_mib);
    config->retention.use_mib = config_int(retention, "useMB", config->retention.use_mib);
    config->retention.audit_days = config_int(retention, "auditDays", config->retention.audit_days);
    config->retention.audit_records =
        config_int(retention, "auditRecords", config->retention.audit_records);
    read_scheduling(config, doc_get(doc, "scheduling"));
    config_storages_read(config, doc);
    read_portal(config, doc);
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
    struct err err;
    if (own && pod_network_check(&engine->kubernetes.network, &err) < 0)
        problem_add(problems, own->place, err.path, "%s", err.text);
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
        if (config->core.gangs_span_engines && config->engine_count > 1 &&
            engine->kind == ENGINE_KIND_KUBERNETES &&
            engine->kubernetes.network.mode == KUBE_NETWORK_POD)
            problem_add(problems, place, "engines.kubernetes.network",
                        "with scheduling.gangsSpanEngines tasks elsewhere would not be told the "
                        "addresses of pods: it must be host");
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
        config_oidc_check(config, doc_get(doc_get(doc, "api"), "oidc"), problems);
    if (config->has_ldap)
        config_ldap_check(config, doc_get(doc_get(doc, "api"), "ldap"), problems);
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
    config_string(config, doc_get(doc, "scheduling"), "cellsFile", &config->cells_path);
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
        config_storages_check(config, doc, CONFIG_STORAGES_PATIENCE_MS, &problems);
        check_offered_images(config, doc, &problems);
        check_portal_links(config, doc, &problems);
        config_plugins_read(doc, &config->arena, &config->plugins, &problems);
        config_notify_read(doc, &config->arena, &config->notify, &problems);
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
