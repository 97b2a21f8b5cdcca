/* config.c — see config.h. */
#include "server/config.h"
#include "base/address.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "doc/shape.h"
#include "hived/config.h"
#include "server/engines.h"
#include "signon/fetch.h"
#include "store/postgres/postgres.h"
#include "sys/api_socket.h"
#include "sys/file.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STORAGES_MAX = 256, FILE_BYTES_MAX = 4 << 20, SECONDS_MAX = 20 * 365 * 86400 };

static const char *const level_choices[] = {"error", "warning", "info", "debug", NULL};
static const char *const format_choices[] = {"auto", "text", "json", NULL};
static const char *const disk_choices[] = {"possible", "required", "off", NULL};
static const char *const network_choices[] = {"host", "private", NULL};
static const char *const outside_choices[] = {"nat", "none", NULL};
static const char *const tls_choices[] = {"auto", "on", "off", NULL};
static const char *const storage_choices[] = {"directory", "nfs", "samba", NULL};
static const struct shape_pattern storage_name = {"a-zA-Z0-9_", "a-zA-Z0-9._\\-",
                                                  "letters, digits, _, - and ."};
static const char *const kind_choices[] = {"local", "fake", NULL};
static const char *const order_choices[] = {"priority", "smallest", "fifo", NULL};
static const char *const policy_choices[] = {"hived", "best-fit", "spread", "first-fit", NULL};

#define INT(key, low, high, text)                                                                  \
    {                                                                                              \
        .name = (key), .kind = FIELD_INT, .min = (low), .max = (high), .help = (text)              \
    }
#define STRING(key, text)                                                                          \
    {                                                                                              \
        .name = (key), .kind = FIELD_STRING, .min = 1, .max = 4096, .help = (text)                 \
    }
#define REQUIRED(key, shown_as, text)                                                              \
    {                                                                                              \
        .name = (key), .kind = FIELD_STRING, .flags = FIELD_REQUIRED, .min = 1, .max = 4096,       \
        .pattern = (shown_as), .help = (text)                                                      \
    }
#define STRINGS(key, text)                                                                         \
    {                                                                                              \
        .name = (key), .kind = FIELD_STRINGS, .min = 0, .max = 1000, .help = (text)                \
    }
#define CHOICE(key, list, text)                                                                    \
    {                                                                                              \
        .name = (key), .kind = FIELD_CHOICE, .choices = (list), .help = (text)                     \
    }
#define BOOL(key, text)                                                                            \
    {                                                                                              \
        .name = (key), .kind = FIELD_BOOL, .help = (text)                                          \
    }
#define MAP(key, of, text)                                                                         \
    {                                                                                              \
        .name = (key), .kind = FIELD_MAP, .shape = (of), .help = (text)                            \
    }
#define MAP_LIST(key, of, most, text)                                                              \
    {                                                                                              \
        .name = (key), .kind = FIELD_MAP_LIST, .min = 1, .max = (most), .shape = (of),             \
        .help = (text)                                                                             \
    }
#define SHAPE(list)                                                                                \
    {                                                                                              \
        .fields = (list), .count = COUNT_OF(list), .unknown = UNKNOWN_ERROR                        \
    }

static const struct field log_fields[] = {
    CHOICE("level", level_choices, "Least important line that is written."),
    CHOICE("format", format_choices, "auto: text on a terminal, JSON otherwise."),
};
static const struct shape log_shape = SHAPE(log_fields);

static const struct field tls_fields[] = {
    CHOICE("mode", tls_choices, "auto: unless the API listens on a loopback address."),
    STRING("certificateFile", "PEM file; without it one is made at the first start."),
    STRING("keyFile", "PEM file of its key, mode 600."),
    INT("hstsSeconds", 0, SECONDS_MAX, "Browsers speak nothing but TLS for so long; 0: not told."),
};
static const struct shape tls_shape = SHAPE(tls_fields);

static const struct field oidc_fields[] = {
    STRING("issuer", "URL of the provider."),
    STRING("clientId", "What the provider calls this server."),
    STRING("clientSecretFile", "File with the secret that the provider gave, mode 600."),
    STRING("publicUrl", "URL under which browsers reach this API."),
    STRINGS("portals", "Origins of other pages that may be given a token after a login."),
    STRINGS("scopes", "What is asked for beside openid."),
    STRING("userClaim", "The claim that names the user."),
    STRING("groupsClaim", "The claim that lists the user's groups."),
    STRINGS("allowedGroups",
            "Groups of the provider that may log in; everybody when none is named."),
    BOOL("createUsers", "Users are made at their first login."),
    BOOL("adoptUsers", "A user with a password here is the provider's user of that name."),
    STRING("caFile", "PEM file: whom to trust instead of those whom the system trusts."),
};
static const struct shape oidc_shape = SHAPE(oidc_fields);

static const struct field api_fields[] = {
    STRING("listen", "ADDRESS:PORT of the REST API."),
    STRING("socket", "Path of a socket for the users of this machine; none: no socket."),
    MAP("tls", &tls_shape, "What is spoken at `listen`."),
    STRINGS("proxies", "Reverse proxies whose X-Forwarded-For is believed, ADDRESS[/BITS]."),
    MAP("oidc", &oidc_shape, "Login by OpenID Connect."),
    STRINGS("origins", "Origins whose pages may read the API's replies; *: any."),
    INT("threads", 0, 1024, "Threads that serve requests; 0: one a processor."),
    INT("requestsMax", 16, 1000000, "Requests that may wait for the core; more get 429."),
    BOOL("shareConfigurations", "Any user may read the job file of any job."),
    BOOL("shareLogs", "Any user may read the logs of any job."),
    BOOL("openReads", "Lists and details of API v1 need no token."),
};
static const struct shape api_shape = SHAPE(api_fields);

static const struct field scheduling_fields[] = {
    CHOICE("policy", policy_choices, "How places are chosen."),
    CHOICE("order", order_choices, "Which of the waiting jobs goes first."),
    STRING("cellsFile", "File with HiveD's configuration: physical and virtual cells."),
    INT("portFirst", 1, 65535, "First port given to tasks."),
    INT("portLast", 1, 65535, "Last port given to tasks."),
    INT("backoffMinSeconds", 1, SECONDS_MAX, "Shortest pause after a transient conflict."),
    INT("backoffMaxSeconds", 1, SECONDS_MAX, "Longest pause after a transient conflict."),
    INT("retryPauseFirstSeconds", 0, SECONDS_MAX,
        "Pause before the second retry in a row that no budget ends; it doubles. 0: none."),
    INT("retryPauseMaxSeconds", 0, SECONDS_MAX, "Longest such pause."),
    INT("retryCalmSeconds", 1, SECONDS_MAX, "An attempt that ran so long begins a new row."),
    BOOL("backoffGrows", "The window of the pause grows with each conflict, as early PAI's did."),
    INT("gangTimeoutSeconds", 0, SECONDS_MAX,
        "A gang that waits longer ends with 251 and backs off, as in early PAI; 0: never."),
    INT("killGraceSeconds", 0, 86400, "From SIGTERM to SIGKILL."),
    INT("preemptionGraceSeconds", 0, 86400, "The same when preempted: time for a checkpoint."),
    INT("starvationAfterSeconds", 1, SECONDS_MAX, "A gang that waits longer gets a reservation."),
    INT("finishedKeepSeconds", 0, 86400,
        "How long the name of an ended job stays taken after it was deleted."),
    INT("debugHoldSeconds", 0, SECONDS_MAX, "How long failed containers of debug jobs are kept."),
    INT("blameHalfLifeSeconds", 0, SECONDS_MAX, "Failures of a node count half after this."),
    INT("blameAvoid", 1, 1000000, "A node with so many failures is taken last."),
    INT("blameCordon", 1, 1000000, "A node with so many failures is not taken."),
    INT("hangAfterSeconds", 0, SECONDS_MAX,
        "A task without work and output for so long stands still; 0: not watched."),
};
static const struct shape scheduling_shape = SHAPE(scheduling_fields);

static const struct field retention_fields[] = {
    INT("jobDays", 0, 36500, "Jobs that ended before are removed; 0: never."),
    INT("eventLogDays", 0, 36500, "Events logged before are removed; 0: never."),
    INT("databaseMB", 0, 1 << 30, "Above this the oldest ended jobs are removed; 0: any size."),
};
static const struct shape retention_shape = SHAPE(retention_fields);

static const struct field fake_fields[] = {
    STRING("nodePrefix", "The machines are named PREFIX0, PREFIX1, …; at most 40 bytes are used."),
    INT("nodes", 1, 100000, "Machines."),
    INT("cpu", 1, 100000, "Processors of each."),
    INT("memoryMB", 1, 1 << 30, "Memory of each."),
    INT("gpus", 0, 64, "GPUs of each."),
    INT("runMilliseconds", 0, 86400000, "How long each container runs."),
    INT("exitCode", 0, 255, "With which each ends."),
    INT("loseEveryMilliseconds", 0, 86400000, "How often the first machine is lost; 0: never."),
    STRING("log", "What each writes before."),
};
static const struct shape fake_shape = SHAPE(fake_fields);

static const struct field devices_fields[] = {
    INT("simulatedGpus", 0, 64, "So many GPUs that do not exist, instead of real ones."),
    STRING("simulatedGpuType", "Their type."),
    STRING("nvmlPath", "Library of NVIDIA's driver."),
    INT("sampleSeconds", 1, 3600, "Time between two looks at real GPUs."),
    STRINGS("cdiDirectories", "Folders with CDI specifications."),
};
static const struct shape devices_shape = SHAPE(devices_fields);

static const struct field images_fields[] = {
    STRINGS("localRoots",
            "Folders below which local images may be used; DATA/images when none is named."),
    STRINGS("insecureRegistries", "Registries without TLS, HOST or HOST:PORT."),
    STRING("registryAuthFile", "Credentials for pulls that have none of their own."),
    INT("pulls", 0, 16, "Images fetched at the same time."),
    INT("pullTries", 1, 100, "Tries of one image."),
    INT("pullStallSeconds", 1, 86400, "A pull without progress for so long is tried again."),
    INT("unpackedMaxMB", 1, 1 << 30, "What an image may unpack to."),
    INT("unpackedMaxFiles", 1, 1 << 30, "Files and folders that an image may have."),
    INT("unpackedMaxRatio", 1, 1000000,
        "An image may unpack to so many times the bytes of its layers, but to 1 GiB at least."),
    INT("keepDays", 1, 36500, "An image unused for so long is removed."),
    INT("highPercent", 1, 100, "Disk use from which unused images are removed at once."),
};
static const struct shape images_shape = SHAPE(images_fields);

static const struct field disk_fields[] = {
    CHOICE("quota", disk_choices,
           "possible: by project quotas where there are some; required: else by a file system of "
           "each task; off: none."),
    INT("taskMB", 16, 1 << 30, "What a task may write."),
};
static const struct shape disk_shape = SHAPE(disk_fields);

static const struct field network_fields[] = {
    CHOICE("mode", network_choices, "host: the machine's network; private: one a job."),
    STRING("subnet", "Addresses of private networks, ADDRESS/BITS."),
    CHOICE("outside", outside_choices, "nat: they reach other machines; none: they do not."),
};
static const struct shape network_shape = SHAPE(network_fields);

static const struct field rights_fields[] = {
    STRINGS("hostNetwork",
            "Virtual clusters whose tasks are in the machine's network; \"*\": all."),
    STRINGS("sysAdmin", "… whose tasks get CAP_SYS_ADMIN."),
    STRINGS("fuse", "… whose tasks get /dev/fuse."),
    STRINGS("lockMemory", "… whose tasks get CAP_IPC_LOCK."),
    STRINGS("newPrivileges", "… in whose tasks set-user-id programs work."),
};
static const struct shape rights_shape = SHAPE(rights_fields);

static const struct field engine_fields[] = {
    CHOICE("kind", kind_choices, "local: containers on this machine; fake: none, for tests."),
    STRING("runtime", "Path of crun or runc."),
    STRING("initPath", "Path of skep-init on this machine."),
    STRING("nodeName", "Name of this machine."),
    STRING("address", "Address at which tasks of this machine are reached."),
    INT("cpu", 1, 100000, "Processors to give out."),
    INT("memoryMB", 1, 1 << 30, "Memory to give out."),
    INT("workers", 0, 64, "Threads that start and end containers."),
    INT("pidsMax", 1, 4194304,
        "Processes and threads of one container; its share of half of the machine's when not "
        "given."),
    INT("diskReserveMB", 0, 1 << 30, "With less free space no task is started."),
    INT("containerKeepHours", 1, 1000000, "How long files of ended containers stay."),
    INT("logSegmentMB", 1, 65536,
        "Each stream of a task's log keeps its newest two pieces of this."),
    INT("logKeepDays", 1, 36500, "How long logs of ended containers stay."),
    INT("logKeepMB", 1, 1 << 30, "Above this the oldest logs of those who have most are removed."),
    MAP("disk", &disk_shape, "What a task may take of the disk."),
    MAP("network", &network_shape, "The network of tasks."),
    MAP("rights", &rights_shape, "What tasks may beyond their walls, by virtual cluster."),
    MAP("devices", &devices_shape, "GPUs."),
    MAP("images", &images_shape, "Images and registries."),
    MAP("fake", &fake_shape, "What the fake engine plays."),
    STRING("name", "What it is called in messages; its kind when none is given."),
};
static const struct shape engine_shape = SHAPE(engine_fields);

static const struct field storage_fields[] = {
    REQUIRED("name", &storage_name, "By which jobs and groups name it."),
    REQUIRED("directory", NULL,
             "Its folder on every machine; what stands behind it must be mounted there."),
    CHOICE("type", storage_choices, "What stands behind it, for people."),
    STRING("server", "nfs, samba: where people reach it from elsewhere …"),
    STRING("path", "… and by which path."),
    BOOL("share", "false: each user has a folder of their own in it."),
    BOOL("readOnly", "Tasks cannot write there."),
};
static const struct shape storage_shape = SHAPE(storage_fields);

static const struct field top_fields[] = {
    STRING("dataDirectory", "Where everything is kept."),
    STRING("database", "postgres://…: a database of PostgreSQL instead of SQLite's."),
    STRING("filesDirectory", "Files of format 1 jobs; DATA/files when none is named."),
    STRING("adminName", "Name of the user that the first start creates."),
    STRING("exitRulesFile", "Operator's own exit codes and failure rules."),
    MAP("api", &api_shape, "The REST API."),
    MAP("log", &log_shape, "The server's own log."),
    MAP("scheduling", &scheduling_shape, "Places, retries, pauses."),
    MAP("retention", &retention_shape, "How long history is kept."),
    MAP_LIST("storages", &storage_shape, STORAGES_MAX, "Folders that jobs can have mounted."),
    MAP("engine", &engine_shape, "What runs the containers."),
    MAP_LIST("engines", &engine_shape, ENGINES_MAX,
             "Several of them, each with its machines, instead of engine."),
};
static const struct shape top_shape = SHAPE(top_fields);

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
    const char **list;

    if (!found || found->kind != DOC_LIST)
        return;
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

static void config_default(struct server_config *config)
{
    config->path = "";
    config->listen = "127.0.0.1:9186";
    config->data_directory = SERVER_DATA_DIRECTORY;
    config->socket = "";
    config->database = "";
    config->admin_name = "admin";
    config->files_directory = "";
    config->exit_rules_path = "";
    config->log_level = LOG_INFO;
    config->log_format = LOG_AUTO;
    config->requests_max = 10000;
    core_config_default(&config->core);
    config->core.finished_keep_s = 1; /* beyond that the store knows the names */
    config->hang_after_s = 1800;
    config->retention = (struct retention_config){365, 30, 20480};
    config->engines = ARENA_NEW(&config->arena, struct engine_config);
    config->engine_count = 1;
    engine_default(config->engines);
    read_oidc(config, NULL);
}

static void read_scheduling(struct server_config *config, const struct doc *doc)
{
    struct core_config *core = &config->core;
    int policy = get_choice(doc, "policy", policy_choices, -1);

    if (policy >= 0)
        core->policy = policy_choices[policy];
    int order = get_choice(doc, "order", order_choices, -1);
    if (order >= 0)
        core->order = order_choices[order];
    core->port_first = (uint16_t)get_int(doc, "portFirst", core->port_first);
    core->port_last = (uint16_t)get_int(doc, "portLast", core->port_last);
    get_u32(doc, "backoffMinSeconds", &core->backoff_min_s);
    get_u32(doc, "backoffMaxSeconds", &core->backoff_max_s);
    get_u32(doc, "retryPauseFirstSeconds", &core->retry_pause_first_s);
    get_u32(doc, "retryPauseMaxSeconds", &core->retry_pause_max_s);
    get_u32(doc, "retryCalmSeconds", &core->retry_calm_s);
    core->is_backoff_growing = doc_get_bool(doc, "backoffGrows", core->is_backoff_growing);
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

static void read_engine(struct server_config *config, struct engine_config *engine,
                        const struct doc *doc)
{
    struct engine_local_config *local = &engine->local;
    const struct doc *devices = doc_get(doc, "devices"), *fake = doc_get(doc, "fake");

    engine->kind = (enum engine_kind)get_choice(doc, "kind", kind_choices, (int)engine->kind);
    engine->name = kind_choices[engine->kind];
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
    local->disk_quota = (enum disk_quota)get_choice(disk, "quota", disk_choices, 0);
    local->disk_mib = get_int(disk, "taskMB", 0);
    local->has_private_network = get_choice(network, "mode", network_choices, 0) == 1;
    local->is_network_closed = get_choice(network, "outside", outside_choices, 0) == 1;
    get_string(config, network, "subnet", &local->subnet);
    for (size_t i = 0; i < RIGHTS; i++)
        get_strings(config, doc_get(doc, "rights"), right_names[i], &local->rights[i].items,
                    &local->rights[i].count);
    read_images(config, engine, doc_get(doc, "images"));
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
        *storage = (struct storage){.server = "", .path = ""};
        get_string(config, item, "name", &storage->name);
        get_string(config, item, "directory", &storage->directory);
        get_string(config, item, "server", &storage->server);
        get_string(config, item, "path", &storage->path);
        storage->type = storage_choices[get_choice(item, "type", storage_choices, 0)];
        storage->is_shared = doc_get_bool(item, "share", true);
        storage->is_read_only = doc_get_bool(item, "readOnly", false);
    }
    config->storages = (struct storage_list){storages, list->as.list.count};
}

static void check_storages(const struct server_config *config, const struct doc *doc,
                           struct problems *problems)
{
    const struct doc *list = doc_get_list(doc, "storages");

    for (size_t i = 0; i < config->storages.count; i++) {
        const struct storage *storage = &config->storages.items[i];
        const struct place place = list->as.list.items[i]->place;
        if (storage->directory[0] != '/')
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
    get_strings(config, api, "origins", &config->origins, &config->origin_count);
    get_strings(config, api, "proxies", &config->proxies, &config->proxy_count);
    get_u32(tls, "hstsSeconds", &config->hsts_s);
    config->tls = (enum api_tls)get_choice(tls, "mode", tls_choices, (int)config->tls);
    get_string(config, tls, "certificateFile", &config->certificate_path);
    get_string(config, tls, "keyFile", &config->key_path);
    get_u32(api, "threads", &config->threads);
    get_u32(api, "requestsMax", &config->requests_max);
    get_bool(api, "shareConfigurations", &config->is_config_shared);
    get_bool(api, "shareLogs", &config->is_log_shared);
    get_bool(api, "openReads", &config->is_v1_read_open);
    config->log_level =
        (enum log_level)get_choice(log, "level", level_choices, (int)config->log_level);
    config->log_format =
        (enum log_format)get_choice(log, "format", format_choices, (int)config->log_format);
    config->retention.job_days = get_int(retention, "jobDays", config->retention.job_days);
    config->retention.event_log_days =
        get_int(retention, "eventLogDays", config->retention.event_log_days);
    config->retention.database_mib =
        get_int(retention, "databaseMB", config->retention.database_mib);
    read_scheduling(config, doc_get(doc, "scheduling"));
    read_storages(config, doc);
    read_engines(config, doc);
}

/* Each has a name of its own and machines of its own; this machine is one engine's. */
static void check_engines(const struct server_config *config, const struct doc *doc,
                          struct problems *problems)
{
    const struct doc *list = doc_get(doc, "engines");

    if (list && doc_get(doc, "engine"))
        problem_add(problems, list->place, "engines", "engine stands there as well: name all here");
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

/* Rules between keys. */
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
    check_proxies(config, doc_get(doc, "api"), problems);
    if (config->has_oidc)
        check_oidc(config, doc_get(doc_get(doc, "api"), "oidc"), problems);
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
    cleanup_arena struct arena scratch;
    cleanup_problems struct problems problems;
    struct hived_config *cells;
    int code = 0;

    arena_init(&scratch);
    problems_init(&problems, &scratch);
    cells = hived_config_read(doc_parse(content, DOC_YAML, &scratch, &problems), &problems);
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
    const char *path = NULL;
    cleanup_buf struct buf content = BUF_INIT;
    int code;

    get_string(config, doc_get(doc, "scheduling"), "cellsFile", &path);
    if (!path)
        return 0;
    code = file_read(path, FILE_BYTES_MAX, &content, err);
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
    cleanup_arena struct arena scratch;
    cleanup_problems struct problems problems;
    const struct doc *doc;
    int code = 0;

    arena_init(&scratch);
    problems_init(&problems, &scratch);
    doc = doc_parse(source, DOC_YAML, &scratch, &problems);
    if (doc && doc->kind != DOC_NULL)
        shape_check(&top_shape, doc, "", &problems);
    if (problems.error_count == 0 && doc && doc->kind == DOC_MAP) {
        read_top(config, doc);
        check_together(config, doc, &problems);
        check_engines(config, doc, &problems);
        check_storages(config, doc, &problems);
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
    struct buf source = BUF_INIT;
    int code = 0;

    arena_init(&config->arena);
    config_default(config);
    if (path) {
        config->path = arena_copy(&config->arena, text_of(path));
        code = file_read(path, FILE_BYTES_MAX, &source, err);
        if (code == 0)
            code = config_parse(config, buf_as_text(&source), report, err);
        buf_release(&source);
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

static void note_if(bool is_different, const char *key, struct buf *keys)
{
    if (is_different)
        buf_format(keys, "%s%s", keys->length ? ", " : "", key);
}

/* Either may be NULL. */
static bool texts_differ(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) != 0 : a != b;
}

static bool lists_differ(const char *const *old, size_t old_count, const char *const *now,
                         size_t now_count)
{
    bool is_different = old_count != now_count;

    for (size_t i = 0; !is_different && i < now_count; i++)
        is_different = strcmp(old[i], now[i]) != 0;
    return is_different;
}

static bool oidc_differs(const struct server_config *old_config, const struct server_config *config)
{
    const struct api_oidc *old = &old_config->oidc, *now = &config->oidc;

    return old_config->has_oidc != config->has_oidc ||
           strcmp(old->public_url, now->public_url) != 0 ||
           strcmp(old->provider.issuer, now->provider.issuer) != 0 ||
           strcmp(old->provider.client_id, now->provider.client_id) != 0 ||
           texts_differ(old->provider.secret_file, now->provider.secret_file) ||
           texts_differ(old->provider.ca_file, now->provider.ca_file) ||
           strcmp(old->provider.user_claim, now->provider.user_claim) != 0 ||
           strcmp(old->provider.groups_claim, now->provider.groups_claim) != 0 ||
           old->policy.creates_users != now->policy.creates_users ||
           old->policy.adopts_users != now->policy.adopts_users ||
           lists_differ(old->portals, old->portal_count, now->portals, now->portal_count) ||
           lists_differ(old->provider.scopes, old->provider.scope_count, now->provider.scopes,
                        now->provider.scope_count) ||
           lists_differ(old->policy.allowed, old->policy.allowed_count, now->policy.allowed,
                        now->policy.allowed_count);
}

static bool engines_differ(const struct server_config *old, const struct server_config *now)
{
    bool is_different = old->engine_count != now->engine_count;

    for (size_t i = 0; !is_different && i < now->engine_count; i++)
        is_different = old->engines[i].kind != now->engines[i].kind ||
                       strcmp(old->engines[i].name, now->engines[i].name) != 0;
    return is_different;
}

static bool storages_differ(const struct storage_list *old, const struct storage_list *now)
{
    bool is_different = old->count != now->count;

    for (size_t i = 0; !is_different && i < now->count; i++) {
        const struct storage *a = &old->items[i], *b = &now->items[i];
        is_different = strcmp(a->name, b->name) != 0 || strcmp(a->directory, b->directory) != 0 ||
                       strcmp(a->type, b->type) != 0 || strcmp(a->server, b->server) != 0 ||
                       strcmp(a->path, b->path) != 0 || a->is_shared != b->is_shared ||
                       a->is_read_only != b->is_read_only;
    }
    return is_different;
}

void server_config_compare(const struct server_config *old, const struct server_config *now,
                           struct buf *keys)
{
    note_if(strcmp(old->database, now->database) != 0, "database", keys);
    note_if(strcmp(old->data_directory, now->data_directory) != 0, "dataDirectory", keys);
    note_if(strcmp(old->files_directory, now->files_directory) != 0, "filesDirectory", keys);
    note_if(strcmp(old->listen, now->listen) != 0, "api.listen", keys);
    note_if(strcmp(old->socket, now->socket) != 0, "api.socket", keys);
    note_if(old->tls != now->tls || texts_differ(old->certificate_path, now->certificate_path) ||
                texts_differ(old->key_path, now->key_path) || old->hsts_s != now->hsts_s,
            "api.tls", keys);
    note_if(lists_differ(old->origins, old->origin_count, now->origins, now->origin_count),
            "api.origins", keys);
    note_if(lists_differ(old->proxies, old->proxy_count, now->proxies, now->proxy_count),
            "api.proxies", keys);
    note_if(oidc_differs(old, now), "api.oidc", keys);
    note_if(old->threads != now->threads, "api.threads", keys);
    note_if(old->requests_max != now->requests_max, "api.requestsMax", keys);
    note_if(old->is_config_shared != now->is_config_shared, "api.shareConfigurations", keys);
    note_if(old->is_log_shared != now->is_log_shared, "api.shareLogs", keys);
    note_if(old->is_v1_read_open != now->is_v1_read_open, "api.openReads", keys);
    note_if(storages_differ(&old->storages, &now->storages), "storages", keys);
    note_if(engines_differ(old, now), "engine.kind", keys);
    note_if(strcmp(old->core.policy, now->core.policy) != 0, "scheduling.policy", keys);
    note_if(old->core.port_first != now->core.port_first ||
                old->core.port_last != now->core.port_last,
            "scheduling.portFirst, scheduling.portLast", keys);
}
