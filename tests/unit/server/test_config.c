/* The configuration of the server: every key, and what is wrong with its place and a hint.
 *
 * Covers: src/server/config_compare.c, src/server/config_shape.c, src/server/config_signon.c,
 * src/server/config_values.c */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/config.h"
#include "sys/file.h"

static int read_config(const char *text, struct server_config **config, struct buf *report,
                       struct err *err)
{
    char path[100];

    snprintf(path, sizeof path, "%s/c.yaml", in_folder(""));
    assert_int_equal(file_write(path, text_of(text), 0600, err), 0);
    return server_config_read(path, config, report, err);
}

static void every_key_is_read(void **state)
{
    struct server_config *config;
    struct buf report = BUF_INIT;
    struct err err;
    (void)state;

    assert_int_equal(
        read_config(
            "dataDirectory: /d\ndatabase: 'postgres://u@h/d'\nfilesDirectory: /f\nadminName: "
            "root\nexitRulesFile: /e\n"
            "api: {listen: 'h:1', threads: 3, requestsMax: 50, shareConfigurations: true, "
            "shareLogs: true}\n"
            "log: {level: debug, format: json}\n"
            "scheduling: {policy: spread, order: smallest, portFirst: 20000, portLast: 20010, "
            "killGraceSeconds: 3, preemptionGraceSeconds: 4, backoffMinSeconds: 5, "
            "backoffMaxSeconds: 6, starvationAfterSeconds: 7, finishedKeepSeconds: 8, "
            "debugHoldSeconds: 9, blameHalfLifeSeconds: 10, blameAvoid: 2, blameCordon: 4,\n"
            "  retryPauseFirstSeconds: 11, retryPauseMaxSeconds: 12, retryCalmSeconds: 13, "
            "backoffGrows: true, gangsSpanEngines: true, gangTimeoutSeconds: 14, hangAfterSeconds: "
            "600}\n"
            "retention: {jobDays: 1, eventLogDays: 2, databaseMB: 3, useMB: 4, auditDays: 5, "
            "auditRecords: 6}\n"
            "auth: {signUp: request}\n"
            "engine: {kind: fake, runtime: /r, initPath: /i, nodeName: n, address: a, "
            "cpu: 2, memoryMB: 3, workers: 4, pidsMax: 5, diskReserveMB: 6, "
            "containerKeepHours: 2, logKeepDays: 3, logKeepMB: 7, logSegmentMB: 8,\n"
            "  disk: {quota: required, taskMB: 99},\n"
            "  network: {mode: private, subnet: 10.9.0.0/24, outside: none},\n"
            "  rights: {hostNetwork: [y], sysAdmin: [x, y], fuse: [x], lockMemory: ['*'], "
            "newPrivileges: [], hostUsers: [y]},\n"
            "  userNamespaces: {mode: required, images: metadata, firstId: 1310720, jobs: 10},\n"
            "  devices: {simulatedGpus: 8, simulatedGpuType: V100, nvmlPath: /n, "
            "sampleSeconds: 9, cdiDirectories: [/x, /y]},\n"
            "  images: {localRoots: [/l], insecureRegistries: [r:1], registryAuthFile: /f, "
            "pulls: 2, pullTries: 3, pullStallSeconds: 4, unpackedMaxMB: 5, unpackedMaxFiles: 6, "
            "unpackedMaxRatio: 7, keepDays: 5, highPercent: 6},\n"
            "  fake: {nodes: 2, cpu: 3, memoryMB: 4, gpus: 5, runMilliseconds: 6, "
            "loseEveryMilliseconds: 7, exitCode: 8, log: said}}\n",
            &config, &report, &err),
        0);
    assert_string_equal(buf_cstr(&report), "");
    assert_string_equal(config->data_directory, "/d");
    assert_string_equal(config->database, "postgres://u@h/d");
    assert_string_equal(config->files_directory, "/f");
    assert_string_equal(config->listen, "h:1");
    assert_true(config->is_config_shared && config->is_log_shared);
    assert_true(config->has_sign_up);
    assert_int_equal(config->requests_max, 50);
    assert_int_equal(config->log_level, LOG_DEBUG);
    assert_int_equal(config->log_format, LOG_JSON);
    assert_string_equal(config->core.policy, "spread");
    assert_string_equal(config->core.order, "smallest");
    assert_int_equal(config->core.port_first, 20000);
    assert_int_equal(config->core.kill_grace_ms, 3000);
    assert_int_equal(config->core.preemption_grace_ms, 4000);
    const struct core_config *core = &config->core;
    assert_int_equal(core->port_last, 20010);
    assert_int_equal(core->backoff_min_s, 5);
    assert_int_equal(core->backoff_max_s, 6);
    assert_int_equal(core->starvation_after_s, 7);
    assert_int_equal(core->finished_keep_s, 8);
    assert_int_equal(core->debug_hold_s, 9);
    assert_int_equal(core->blame_half_life_s, 10);
    assert_int_equal(core->retry_pause_first_s, 11);
    assert_int_equal(core->retry_pause_max_s, 12);
    assert_int_equal(core->retry_calm_s, 13);
    assert_int_equal(core->gang_timeout_s, 14);
    assert_true(core->is_backoff_growing);
    assert_true(core->gangs_span_engines);
    assert_true(core->blame_avoid == 2 && core->blame_cordon == 4);
    assert_int_equal(config->hang_after_s, 600);
    assert_string_equal(config->admin_name, "root");
    assert_string_equal(config->exit_rules_path, "/e");
    assert_int_equal(config->retention.job_days, 1);
    assert_int_equal(config->retention.event_log_days, 2);
    assert_int_equal(config->retention.database_mib, 3);
    assert_int_equal(config->retention.use_mib, 4);
    assert_int_equal(config->retention.audit_days, 5);
    assert_int_equal(config->retention.audit_records, 6);
    assert_int_equal(config->engine_count, 1);
    const struct engine_config *engine = &config->engines[0];
    assert_int_equal(engine->kind, ENGINE_KIND_FAKE);
    const struct engine_local_config *local = &engine->local;
    assert_string_equal(local->runtime, "/r");
    assert_string_equal(local->init_path, "/i");
    assert_string_equal(local->node_name, "n");
    assert_string_equal(local->address, "a");
    assert_int_equal(local->cpu, 2);
    assert_int_equal(local->memory_mib, 3);
    assert_int_equal(local->workers, 4);
    assert_int_equal(local->pids_max, 5);
    assert_int_equal(local->disk_quota, DISK_QUOTA_REQUIRED);
    assert_int_equal(local->disk_mib, 99);
    assert_int_equal(rights_of(local->rights, "x"),
                     1u << RIGHT_SYS_ADMIN | 1u << RIGHT_FUSE | 1u << RIGHT_LOCK_MEMORY);
    assert_int_equal(config->engines[0].network_mode, NETWORK_MODE_PRIVATE);
    assert_true(local->is_network_closed);
    assert_string_equal(local->subnet, "10.9.0.0/24");
    assert_int_equal(rights_of(local->rights, "y"),
                     1u << RIGHT_HOST_NETWORK | 1u << RIGHT_SYS_ADMIN | 1u << RIGHT_LOCK_MEMORY |
                         1u << RIGHT_HOST_USERS);
    assert_int_equal(local->user_namespaces, USER_NAMESPACES_REQUIRED);
    assert_int_equal(local->user_images, USER_IMAGES_METADATA);
    assert_int_equal(local->first_id, 1310720);
    assert_int_equal(local->id_jobs, 10);
    assert_int_equal(rights_of(local->rights, ""), 1u << RIGHT_LOCK_MEMORY);
    assert_int_equal(local->disk_reserve_mib, 6);
    assert_int_equal(local->log_keep_s, 3 * 86400);
    assert_int_equal(local->log_keep_mib, 7);
    assert_int_equal(engine->log_segment_mib, 8);
    assert_int_equal(local->simulated_gpus, 8);
    assert_string_equal(local->simulated_gpu_type, "V100");
    assert_string_equal(local->nvml_path, "/n");
    assert_int_equal(local->gpu_sample_ms, 9000);
    assert_string_equal(local->image_roots[0], "/l");
    assert_string_equal(local->registry_auth_file, "/f");
    assert_int_equal(local->pulls, 2);
    assert_int_equal(local->pull_tries, 3);
    assert_int_equal(local->pull_stall_s, 4);
    assert_int_equal(local->image_high_percent, 6);
    assert_string_equal(engine->local.cdi_directories[1], "/y");
    assert_string_equal(engine->local.insecure_registries[0], "r:1");
    assert_int_equal(engine->local.container_keep_s, 7200);
    assert_int_equal(engine->local.image_keep_s, 5 * 86400);
    assert_int_equal(engine->local.image_max_mib, 5);
    assert_int_equal(engine->local.image_max_entries, 6);
    assert_int_equal(engine->local.image_max_ratio, 7);
    assert_int_equal(engine->fake.nodes, 2);
    assert_int_equal(engine->fake.cpu, 3);
    assert_int_equal(engine->fake.memory_mib, 4);
    assert_int_equal(engine->fake.gpu_count, 5);
    assert_int_equal(engine->fake.run_ms, 6);
    assert_int_equal(engine->fake.lose_every_ms, 7);
    assert_int_equal(engine->fake.exit_code, 8);
    assert_string_equal(engine->fake.log, "said");
    server_config_free(config);
    buf_release(&report);
}

static void wrong_keys_and_values_are_told_with_place_and_hint(void **state)
{
    struct server_config *config;
    struct buf report = BUF_INIT;
    struct err err;
    (void)state;

    assert_int_equal(read_config("dataDirektory: /d\napi:\n  threads: many\n"
                                 "scheduling: {portFirst: 9, portLast: 8}\n",
                                 &config, &report, &err),
                     ERR_INVALID);
    assert_non_null(strstr(buf_cstr(&report), "c.yaml:1:1: dataDirektory: unknown"));
    assert_non_null(strstr(buf_cstr(&report), "did you mean dataDirectory?"));
    assert_non_null(strstr(buf_cstr(&report), "c.yaml:3:12: api.threads: "));
    buf_clear(&report);
    assert_int_equal(
        read_config("scheduling: {portFirst: 9, portLast: 8}\n", &config, &report, &err),
        ERR_INVALID);
    assert_non_null(strstr(buf_cstr(&report), "9 is above portLast, 8"));
    buf_clear(&report);
    assert_int_equal(read_config("database: mysql://u:topsecret@h/d\n", &config, &report, &err),
                     ERR_INVALID);
    assert_non_null(
        strstr(buf_cstr(&report), "c.yaml:1:11: database: must be an address of Postg"));
    assert_null(strstr(buf_cstr(&report), "topsecret"));
    assert_int_equal(server_config_read("/nonexistent", &config, &report, &err), ERR_NOT_FOUND);
    buf_release(&report);
}

/* What a reload says of the engines: each key that waits for a restart, by the engine's name. */
static void a_change_of_engines_is_told_key_by_key(void **state)
{
    static const struct {
        const char *first, *second, *keys;
    } cases[] = {
        {"engine: {cpu: 4}\n", "engine: {cpu: 4}\n", ""},
        {"engine: {cpu: 4}\n", "engine: {cpu: 5}\n", "engine.cpu"},
        {"engine: {cpu: 4}\n", "# none\n", "engine.cpu"},
        {"# none\n", "engine: {disk: {taskMB: 900}}\n", "engine.disk.taskMB"},
        {"engine: {cpu: 4}\n", "engines: [{name: local, kind: local, cpu: 4}]\n", ""},
        {"engine: {cpu: 4}\n", "engine: {kind: fake}\n",
         "engine (fake is new), engines.local (removed)"},
        {"engine: {name: a, kind: local}\n", "engine: {name: a, kind: fake}\n", "engine.kind"},
        {"engine: {rights: {fuse: [a, b]}}\n", "engine: {rights: {fuse: [a]}}\n",
         "engine.rights.fuse"},
        {"engines: [{name: a}, {name: b, kind: fake, fake: {nodes: 2}}]\n",
         "engines: [{name: b, kind: fake, fake: {nodes: 3}}, {name: a}]\n", "engines.b.fake.nodes"},
        {"engines: [{name: a}]\n", "engines: [{name: a}, {name: b, kind: fake}]\n",
         "engines.b (b is new)"},
        {"engines: [{name: a}, {name: b, kind: fake}]\n", "engines: [{name: a}]\n",
         "engines.b (removed)"},
    };
    struct buf report = BUF_INIT, keys = BUF_INIT;
    struct err err;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct server_config *first, *second;
        assert_int_equal(read_config(cases[i].first, &first, &report, &err), 0);
        assert_int_equal(read_config(cases[i].second, &second, &report, &err), 0);
        buf_clear(&keys);
        server_config_compare(first, second, &keys);
        assert_string_equal(buf_cstr(&keys), cases[i].keys);
        server_config_free(first);
        server_config_free(second);
    }
    buf_release(&report);
    buf_release(&keys);
}

static void several_engines_are_read(void **state)
{
    struct server_config *config, *other;
    struct buf report = BUF_INIT, keys = BUF_INIT;
    struct err err;
    (void)state;

    assert_int_equal(read_config("engines:\n- {name: here}\n"
                                 "- {kind: fake, fake: {nodes: 3, nodePrefix: rack}}\n"
                                 "- {name: far, kind: fake, logSegmentMB: 7}\n",
                                 &config, &report, &err),
                     0);
    assert_int_equal(config->engine_count, 3);
    assert_string_equal(config->engines[0].name, "here");
    assert_int_equal(config->engines[0].kind, ENGINE_KIND_LOCAL);
    assert_string_equal(config->engines[1].name, "fake");
    assert_string_equal(config->engines[1].fake.node_prefix, "rack");
    assert_int_equal(config->engines[1].fake.nodes, 3);
    assert_int_equal(config->engines[2].log_segment_mib, 7);
    assert_string_equal(config->engines[2].fake.node_prefix, "fake");
    assert_int_equal(
        read_config("engines:\n- {name: here}\n- {name: far, kind: fake}\n", &other, &report, &err),
        0);
    server_config_compare(config, other, &keys);
    assert_string_equal(buf_cstr(&keys), "engines.far.logSegmentMB, engines.fake (removed)");
    server_config_free(config);
    server_config_free(other);
    buf_release(&report);
    buf_release(&keys);
}

static void a_cluster_is_read(void **state)
{
    struct server_config *config;
    struct buf report = BUF_INIT;
    struct err err;
    (void)state;

    assert_int_equal(
        read_config("engine:\n  kind: kubernetes\n  kubernetes: {kubeconfig: /k, context: c, "
                    "namespace: n, instance: i, nodeSelector: a=b, initImage: image, apiUrl: u, "
                    "runtimeClass: r, priorityClass: p, serviceAccount: s, taint: t, gpus: env, "
                    "gpuResource: g, gpuTypeLabel: l, nodeReserve: {cpu: 2, memoryMB: 300, pods: "
                    "9}}\n",
                    &config, &report, &err),
        0);
    const struct engine_kubernetes_config *cluster = &config->engines[0].kubernetes;
    assert_int_equal(config->engines[0].kind, ENGINE_KIND_KUBERNETES);
    assert_string_equal(config->engines[0].name, "kubernetes");
    assert_string_equal(cluster->kubeconfig, "/k");
    assert_string_equal(cluster->context, "c");
    assert_string_equal(cluster->space, "n");
    assert_string_equal(cluster->instance, "i");
    assert_string_equal(cluster->node_selector, "a=b");
    assert_string_equal(cluster->init_image, "image");
    assert_string_equal(cluster->api_url, "u");
    assert_string_equal(cluster->runtime_class, "r");
    assert_string_equal(cluster->priority_class, "p");
    assert_string_equal(cluster->service_account, "s");
    assert_string_equal(cluster->taint, "t");
    assert_string_equal(cluster->gpu_resource, "g");
    assert_string_equal(cluster->gpu_type_label, "l");
    assert_int_equal(cluster->gpus, KUBE_GPUS_ENV);
    assert_int_equal(cluster->node_reserve.cpu, 2);
    assert_int_equal(cluster->node_reserve.memory_mib, 300);
    assert_int_equal(cluster->node_reserve.pods, 9);
    assert_int_equal(cluster->network.mode, KUBE_NETWORK_HOST);
    assert_int_equal(cluster->network.users, KUBE_USERS_OFF);
    server_config_free(config);
    buf_release(&report);
}

static void a_cluster_whose_pods_have_addresses_is_read(void **state)
{
    struct server_config *config;
    struct buf report = BUF_INIT;
    struct err err;
    (void)state;
    assert_int_equal(
        read_config("engine:\n  kind: kubernetes\n  kubernetes: {initImage: i, network: "
                    "pod, userNamespaces: auto, hostNetwork: [hpc]}\n",
                    &config, &report, &err),
        0);
    const struct pod_network *network = &config->engines[0].kubernetes.network;
    assert_int_equal(network->mode, KUBE_NETWORK_POD);
    assert_int_equal(network->users, KUBE_USERS_AUTO);
    assert_int_equal(network->host_cluster_count, 1);
    assert_string_equal(network->host_clusters[0], "hpc");
    server_config_free(config);
    buf_release(&report);
}

static void a_cluster_with_claims_is_read(void **state)
{
    struct server_config *config;
    struct buf report = BUF_INIT;
    struct err err;
    (void)state;
    assert_int_equal(read_config("engine:\n  kind: kubernetes\n  kubernetes: {initImage: i, gpus: "
                                 "dra, deviceDriver: d, deviceClass: c, gpuTypeAttribute: a}\n",
                                 &config, &report, &err),
                     0);
    const struct engine_kubernetes_config *cluster = &config->engines[0].kubernetes;
    assert_int_equal(cluster->gpus, KUBE_GPUS_DRA);
    assert_string_equal(cluster->device_driver, "d");
    assert_string_equal(cluster->device_class, "c");
    assert_string_equal(cluster->gpu_type_attribute, "a");
    assert_int_equal(cluster->gpu_metrics_port, 0);
    server_config_free(config);
    buf_release(&report);
}

static void exporters_of_gpus_are_asked_where_the_operator_says_so(void **state)
{
    static const struct {
        const char *value, *path;
        int port;
    } cases[] = {{"{}", NULL, 9400}, {"{port: 9401, path: /gpus}", "/gpus", 9401}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct server_config *config;
        struct buf report = BUF_INIT;
        struct err err;
        char text[200];
        snprintf(text, sizeof text,
                 "engine:\n  kind: kubernetes\n  kubernetes: {initImage: i, gpuMetrics: %s}\n",
                 cases[i].value);
        assert_int_equal(read_config(text, &config, &report, &err), 0);
        const struct engine_kubernetes_config *cluster = &config->engines[0].kubernetes;
        assert_int_equal(cluster->gpu_metrics_port, cases[i].port);
        if (cases[i].path)
            assert_string_equal(cluster->gpu_metrics_path, cases[i].path);
        else
            assert_null(cluster->gpu_metrics_path);
        server_config_free(config);
        buf_release(&report);
    }
}

static void a_cluster_is_asked_what_its_nodes_use_unless_that_is_off(void **state)
{
    static const struct {
        const char *value;
        bool is_off;
    } cases[] = {{"{initImage: i}", false},
                 {"{initImage: i, nodeMetrics: auto}", false},
                 {"{initImage: i, nodeMetrics: \"off\"}", true}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct server_config *config;
        struct buf report = BUF_INIT;
        struct err err;
        char text[200];
        snprintf(text, sizeof text, "engine:\n  kind: kubernetes\n  kubernetes: %s\n",
                 cases[i].value);
        assert_int_equal(read_config(text, &config, &report, &err), 0);
        assert_int_equal(config->engines[0].kubernetes.is_node_metrics_off, cases[i].is_off);
        server_config_free(config);
        buf_release(&report);
    }
}

static void engines_that_collide_are_told_with_their_lines(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"engine: {kind: fake}\nengines:\n- {kind: fake}\n",
         "c.yaml:3:1: engines: engine stands there as well"},
        {"engines:\n- {name: a, kind: fake}\n- {name: a}\n",
         "c.yaml:3:3: engines.name: engine 1 is called a as well"},
        {"engines:\n- {name: a}\n- {name: b}\n",
         "c.yaml:3:3: engines.kind: engine 1 is local as well"},
        {"engines:\n- {name: a, kind: fake}\n- {name: b, kind: fake}\n",
         "c.yaml:3:3: engines.fake.nodePrefix: the machines of engine 1 are called fake0, fake1"},
        {"engine: {kind: kubernetes}\n",
         "c.yaml:1:9: engine.kubernetes.initImage: an image that has skep-init must be named"},
        {"engines:\n- {kind: kubernetes, kubernetes: {namespace: n}}\n",
         "c.yaml:2:34: engine.kubernetes.initImage"},
        {"engine: {kind: kubernetes, network: {mode: host}, kubernetes: {initImage: i}}\n",
         "c.yaml:1:37: engine: network says how containers of this machine are run"},
        {"engines:\n- kind: kubernetes\n  kubernetes: {initImage: i}\n  pidsMax: 7\n",
         "c.yaml:4:12: engine: pidsMax says how"},
        {"engine: {kubernetes: {initImage: i}}\n",
         "c.yaml:1:22: engine.kubernetes: the engine's kind is local"},
        {"engine: {kind: kubernetes, kubernetes: {initImage: i, userNamespaces: auto}}\n",
         "c.yaml:1:40: engine.kubernetes.userNamespaces: a pod in its node's network"},
        {"engines:\n- {kind: kubernetes, kubernetes: {initImage: i, network: pod}}\n- {kind: "
         "local}\nscheduling: {gangsSpanEngines: true}\n",
         "c.yaml:2:3: engines.kubernetes.network: with scheduling.gangsSpanEngines"},
        {"engines: []\n", "c.yaml:1:10: engines"},
        {"engines:\n- {kind: fke}\n", "c.yaml:2:10: engines[0].kind"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct server_config *config;
        struct buf report = BUF_INIT;
        struct err err;
        assert_int_equal(read_config(cases[i].text, &config, &report, &err), ERR_INVALID);
        if (!strstr(buf_cstr(&report), cases[i].says))
            fail_msg("%s", buf_cstr(&report));
        buf_release(&report);
    }
}

static void web_ports_have_an_origin(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"api: {webPorts: {listen: \"9187\"}}\n",
         "c.yaml:1:17: api.webPorts.listen: '9187' is not ADDRESS:PORT"},
        {"api: {webPorts: {listen: \":9187\", origin: \"https://jobs.example.org\"}}\n",
         "c.yaml:1:17: api.webPorts.origin: "},
        {"api: {webPorts: {origin: \"https://*.jobs.example.org\"}}\n", "api.webPorts.listen"},
    };
    struct server_config *config;
    struct buf report = BUF_INIT;
    struct err err;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        buf_clear(&report);
        assert_int_equal(read_config(cases[i].text, &config, &report, &err), ERR_INVALID);
        if (!strstr(buf_cstr(&report), cases[i].says))
            fail_msg("%s", buf_cstr(&report));
    }
    buf_clear(&report);
    assert_int_equal(
        read_config("api: {webPorts: {listen: \"[::1]:9187\"}}\n", &config, &report, &err), 0);
    assert_string_equal(config->web_origin, "http://*.localhost:9187");
    server_config_free(config);
    buf_clear(&report);
    assert_int_equal(read_config("api: {listen: \":1\"}\n", &config, &report, &err), 0);
    assert_null(config->web_listen); /* nothing is listened on unless it is said */
    server_config_free(config);
    buf_release(&report);
}

/* What is wrong in the file with the cells is said before anything is taken from it. */
static void the_cells_are_checked(void **state)
{
    struct server_config *config;
    struct buf report = BUF_INIT, text = BUF_INIT;
    struct err err;
    char path[100];
    (void)state;

    snprintf(path, sizeof path, "%s/cells.yaml", in_folder(""));
    assert_int_equal(file_write(path,
                                text_of("physicalCluster:\n"
                                        "  cellTypes: {N: {childCellType: G, childCellNumber: 2, "
                                        "isNodeLevel: true}}\n"
                                        "  physicalCells: [{cellType: N, cellAddress: a}]\n"
                                        "virtualClusters:\n"
                                        "  red: {virtualCells: [{cellType: N, cellNumber: 2}]}\n"),
                                0600, &err),
                     0);
    buf_format(&text, "scheduling: {policy: hived, cellsFile: %s}\n", path);
    assert_int_equal(read_config(buf_cstr(&text), &config, &report, &err), ERR_INVALID);
    assert_non_null(strstr(buf_cstr(&report), "cells.yaml:5:"));
    assert_non_null(strstr(buf_cstr(&report), "2 cells N of chain N are given away (red 2)"));
    buf_clear(&report);
    buf_clear(&text);
    buf_format(&text, "scheduling: {policy: spread, cellsFile: %s}\n", path);
    assert_int_equal(read_config(buf_cstr(&text), &config, &report, &err), 0);
    server_config_free(config);
    buf_release(&report);
    buf_release(&text);
}

static void prepared_images_are_named_once(void **state)
{
    static const char GOOD[] =
        "portal: {images: [{name: PyTorch, uri: 'lab/torch:2', about: of CUDA 12}, "
        "{name: small, uri: alpine}]}\n";
    static const char *const OTHERS[] = {
        "# none\n",
        "portal: {images: [{name: PyTorch, uri: 'lab/torch:2', about: of CUDA 12}, "
        "{name: tiny, uri: alpine}]}\n",
        "portal: {images: [{name: PyTorch, uri: 'lab/torch:3', about: of CUDA 12}, "
        "{name: small, uri: alpine}]}\n",
        "portal: {images: [{name: PyTorch, uri: 'lab/torch:2', about: of CUDA 12}, "
        "{name: small, uri: alpine, about: x}]}\n"};
    struct server_config *config, *other;
    struct buf report = BUF_INIT, keys = BUF_INIT;
    struct err err;
    (void)state;

    assert_int_equal(read_config(GOOD, &config, &report, &err), 0);
    assert_int_equal(config->images.count, 2);
    assert_string_equal(config->images.items[0].name, "PyTorch");
    assert_string_equal(config->images.items[0].uri, "lab/torch:2");
    assert_string_equal(config->images.items[0].about, "of CUDA 12");
    assert_string_equal(config->images.items[1].about, "");
    server_config_compare(config, config, &keys);
    assert_string_equal(buf_cstr(&keys), "");
    for (size_t i = 0; i < COUNT_OF(OTHERS); i++) {
        buf_clear(&keys);
        assert_int_equal(read_config(OTHERS[i], &other, &report, &err), 0);
        server_config_compare(config, other, &keys);
        assert_string_equal(buf_cstr(&keys), "portal.images");
        server_config_free(other);
    }
    server_config_free(config);
    assert_int_equal(read_config("portal: {images: [{name: a, uri: b}, {name: a, uri: c}]}\n",
                                 &config, &report, &err),
                     ERR_INVALID);
    assert_non_null(strstr(buf_cstr(&report), "image 1 is called a as well"));
    assert_int_equal(read_config("portal: {images: [{name: a}]}\n", &config, &report, &err),
                     ERR_INVALID);
    assert_int_equal(read_config("portal: {image: []}\n", &config, &report, &err), ERR_INVALID);
    buf_release(&report);
    buf_release(&keys);
}

static void links_of_the_portal_lead_to_pages(void **state)
{
    static const char GOOD[] =
        "portal: {manualUrl: 'https://wiki.test/', feedbackUrl: 'http://tracker.test/new?a=b'}\n";
    struct server_config *config, *other;
    struct buf report = BUF_INIT, keys = BUF_INIT;
    struct err err;
    (void)state;

    assert_int_equal(read_config(GOOD, &config, &report, &err), 0);
    assert_string_equal(config->manual_url, "https://wiki.test/");
    assert_string_equal(config->feedback_url, "http://tracker.test/new?a=b");
    assert_int_equal(read_config("# none\n", &other, &report, &err), 0);
    assert_null(other->manual_url);
    assert_null(other->feedback_url);
    server_config_compare(config, other, &keys);
    assert_string_equal(buf_cstr(&keys), "portal.manualUrl, portal.feedbackUrl");
    server_config_free(other);
    server_config_free(config);
    assert_int_equal(
        read_config("portal: {feedbackUrl: 'javascript:alert(1)'}\n", &config, &report, &err),
        ERR_INVALID);
    assert_non_null(strstr(buf_cstr(&report), "portal.feedbackUrl"));
    assert_int_equal(read_config("portal: {manualUrl: wiki}\n", &config, &report, &err),
                     ERR_INVALID);
    buf_release(&report);
    buf_release(&keys);
}

static void an_empty_file_gives_the_defaults(void **state)
{
    struct server_config *config, *other;
    struct buf report = BUF_INIT, keys = BUF_INIT;
    struct err err;
    (void)state;

    assert_int_equal(read_config("# nothing\n", &config, &report, &err), 0);
    assert_string_equal(config->listen, "127.0.0.1:9186");
    assert_int_equal(config->engines[0].kind, ENGINE_KIND_LOCAL);
    assert_int_equal(config->engines[0].local.user_namespaces, USER_NAMESPACES_AUTO);
    assert_int_equal(server_config_read(NULL, &other, &report, &err), 0);
    server_config_compare(config, other, &keys);
    assert_string_equal(buf_cstr(&keys), "");
    other->listen = "elsewhere:1";
    other->core.policy = "spread"; /* what the core takes up at once needs no restart */
    other->core.port_last--;
    server_config_compare(config, other, &keys);
    assert_string_equal(buf_cstr(&keys), "api.listen");
    server_config_free(config);
    server_config_free(other);
    buf_release(&report);
    buf_release(&keys);
}

static void test_oidc(void **state)
{
    struct server_config *config;
    struct buf report = BUF_INIT, keys = BUF_INIT;
    struct err err;
    struct server_config *other;
    (void)state;
    assert_int_equal(read_config("api:\n  oidc:\n    issuer: https://idp\n    clientId: skep\n"
                                 "    publicUrl: https://skep\n    portals: [https://p]\n"
                                 "    userClaim: email\n    createUsers: true\n",
                                 &config, &report, &err),
                     0);
    assert_true(config->has_oidc && config->oidc.policy.creates_users);
    assert_false(config->oidc.policy.adopts_users);
    assert_string_equal(config->oidc.provider.issuer, "https://idp");
    assert_string_equal(config->oidc.provider.user_claim, "email");
    assert_string_equal(config->oidc.provider.groups_claim, "groups");
    assert_int_equal(config->oidc.provider.scope_count, 2);
    assert_string_equal(config->oidc.portals[0], "https://p");
    assert_int_equal(read_config("log: {level: info}\n", &other, &report, &err), 0);
    assert_false(other->has_oidc);
    server_config_compare(config, other, &keys);
    assert_string_equal(buf_cstr(&keys), "api.oidc");
    server_config_free(config);
    server_config_free(other);
    buf_clear(&report);
    assert_int_equal(read_config("api:\n  oidc:\n    issuer: http://idp\n    publicUrl: skep\n",
                                 &config, &report, &err),
                     ERR_INVALID);
    static const char *const said[] = {"api.oidc.clientId: must be given",
                                       "api.oidc.issuer: must be an https URL",
                                       "api.oidc.publicUrl: must be an https URL"};
    for (size_t i = 0; i < COUNT_OF(said); i++)
        if (!strstr(buf_cstr(&report), said[i]))
            fail_msg("'%s' is not in: %s", said[i], buf_cstr(&report));
    buf_release(&report);
    buf_release(&keys);
}

/* Whoever may choose a name must not get the account of the provider's user of that name. */
static void test_visitors_and_adoption(void **state)
{
#define PROVIDER                                                                                   \
    "api: {oidc: {issuer: 'https://idp', clientId: skep, publicUrl: 'https://skep', adoptUsers: "
    static const struct {
        const char *text;
        bool is_warned;
    } cases[] = {
        {PROVIDER "true}}\nauth: {signUp: request}\n", true},
        {PROVIDER "false}}\nauth: {signUp: request}\n", false},
        {PROVIDER "true}}\n", false},
    };
    struct server_config *config;
    struct buf report = BUF_INIT;
    struct err err;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        buf_clear(&report);
        assert_int_equal(read_config(cases[i].text, &config, &report, &err), 0);
        assert_int_equal(strstr(buf_cstr(&report), "api.oidc.adoptUsers: with auth.signUp") != NULL,
                         cases[i].is_warned);
        server_config_free(config);
    }
    buf_release(&report);
#undef PROVIDER
}

static void test_ldap(void **state)
{
    struct server_config *config, *other;
    struct buf report = BUF_INIT, keys = BUF_INIT;
    struct err err;
    (void)state;
    assert_int_equal(
        read_config("api:\n  ldap:\n    url: ldap://ldap.example.org\n    base: dc=example\n"
                    "    bindDn: cn=skepd\n    bindPasswordFile: /p\n    groupBase: ou=groups\n"
                    "    allowedGroups: [lab]\n    createUsers: true\n    timeoutSeconds: 9\n",
                    &config, &report, &err),
        0);
    const struct directory_config *directory = &config->ldap.directory;
    assert_true(config->has_ldap && config->ldap.policy.creates_users && !directory->is_plain);
    assert_string_equal(directory->url, "ldap://ldap.example.org");
    assert_string_equal(directory->base, "dc=example");
    assert_string_equal(directory->user_filter, "(uid={user})");
    assert_string_equal(directory->bind_password_file, "/p");
    assert_string_equal(directory->group_filter, "(member={dn})");
    assert_string_equal(config->ldap.policy.allowed[0], "lab");
    assert_int_equal(directory->timeout_s, 9);
    assert_int_equal(read_config("log: {level: info}\n", &other, &report, &err), 0);
    assert_false(other->has_ldap);
    server_config_compare(config, other, &keys);
    assert_string_equal(buf_cstr(&keys), "api.ldap");
    server_config_free(config);
    server_config_free(other);
    buf_clear(&report);
    assert_int_equal(
        read_config("api:\n  ldap:\n    url: ldap://ldap.example.org\n"
                    "    startTls: false\n    userFilter: (uid=x)\n    bindAs: uid=x\n"
                    "    bindDn: cn=skepd\n    groupBase: ou=g\n    groupFilter: (a=b)\n",
                    &config, &report, &err),
        ERR_INVALID);
    static const char *const said[] = {
        "api.ldap.url: must be ldaps://",       "api.ldap.base: must be given",
        "api.ldap.userFilter: must contain",    "api.ldap.bindAs: must contain",
        "api.ldap.bindDn: bindDn and bindPass", "api.ldap.groupFilter: must contain"};
    for (size_t i = 0; i < COUNT_OF(said); i++)
        if (!strstr(buf_cstr(&report), said[i]))
            fail_msg("'%s' is not in: %s", said[i], buf_cstr(&report));
    buf_clear(&report);
    assert_int_equal(read_config("api: {ldap: {url: 'ldaps://h', base: b, allowedGroups: [g]}}\n",
                                 &config, &report, &err),
                     ERR_INVALID);
    assert_non_null(strstr(buf_cstr(&report), "api.ldap.allowedGroups: needs groupBase"));
    buf_release(&report);
    buf_release(&keys);
}

static void certificates_of_clients(void **state)
{
    struct server_config *config, *other;
    struct buf report = BUF_INIT, keys = BUF_INIT;
    struct err err;
    (void)state;
    assert_int_equal(read_config("api: {tls: {clientCertificates: required, clientCaFile: /ca, "
                                 "clientRevocationFile: /crl, clientName: 'email:{user}@a'}}\n",
                                 &config, &report, &err),
                     0);
    assert_int_equal(config->tls_clients.mode, TLS_CLIENT_REQUIRED);
    assert_string_equal(config->tls_clients.authorities, "/ca");
    assert_string_equal(config->tls_clients.revoked, "/crl");
    assert_string_equal(config->tls_clients.pattern, "email:{user}@a");
    assert_int_equal(read_config("{}\n", &other, &report, &err), 0);
    assert_int_equal(other->tls_clients.mode, TLS_CLIENT_OFF);
    assert_string_equal(other->tls_clients.pattern, "CN:{user}");
    server_config_compare(config, other, &keys);
    assert_string_equal(buf_cstr(&keys), "api.tls.clientCertificates");
    server_config_free(config);
    server_config_free(other);
    buf_clear(&report);
    assert_int_equal(read_config("api:\n  tls: {mode: off, clientCertificates: optional, "
                                 "clientName: user}\n",
                                 &config, &report, &err),
                     ERR_INVALID);
    static const char *const said[] = {"c.yaml:2:8: api.tls.clientName: must be CN:, email: or",
                                       "api.tls.clientCaFile: must name who vouches",
                                       "api.tls.clientCertificates: clients show certificates by"};
    for (size_t i = 0; i < COUNT_OF(said); i++)
        if (!strstr(buf_cstr(&report), said[i]))
            fail_msg("'%s' is not in: %s", said[i], buf_cstr(&report));
    buf_release(&report);
    buf_release(&keys);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(certificates_of_clients),
    cmocka_unit_test(test_oidc),
    cmocka_unit_test(test_visitors_and_adoption),
    cmocka_unit_test(test_ldap),
    cmocka_unit_test(every_key_is_read),
    cmocka_unit_test(wrong_keys_and_values_are_told_with_place_and_hint),
    cmocka_unit_test(several_engines_are_read),
    cmocka_unit_test(a_change_of_engines_is_told_key_by_key),
    cmocka_unit_test(a_cluster_is_read),
    cmocka_unit_test(a_cluster_whose_pods_have_addresses_is_read),
    cmocka_unit_test(a_cluster_with_claims_is_read),
    cmocka_unit_test(exporters_of_gpus_are_asked_where_the_operator_says_so),
    cmocka_unit_test(a_cluster_is_asked_what_its_nodes_use_unless_that_is_off),
    cmocka_unit_test(engines_that_collide_are_told_with_their_lines),
    cmocka_unit_test(web_ports_have_an_origin),
    cmocka_unit_test(the_cells_are_checked),
    cmocka_unit_test(prepared_images_are_named_once),
    cmocka_unit_test(links_of_the_portal_lead_to_pages),
    cmocka_unit_test(an_empty_file_gives_the_defaults),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
