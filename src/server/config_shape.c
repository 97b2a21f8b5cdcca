#include "server/config_shape.h"
#include "base/memory.h"
#include "doc/shape.h"
#include "engine/local/id_ranges.h"
#include "model/portal_plugin.h"
#include "server/config_notify.h"
#include "server/engines.h"

enum { STORAGES_MAX = 256, IMAGES_MAX = 100, SECONDS_MAX = 20 * 365 * 86400 };

const char *const config_log_levels[] = {"error", "warning", "info", "debug", NULL};
const char *const config_log_formats[] = {"auto", "text", "json", NULL};
const char *const config_disk_quotas[] = {"possible", "required", "off", NULL};
const char *const config_user_modes[] = {"auto", "required", "off", NULL};
const char *const config_user_images[] = {"auto", "idmapped", "metadata", NULL};
const char *const config_network_modes[] = {"auto", "host", "private", NULL};
const char *const config_network_outsides[] = {"nat", "none", NULL};
const char *const config_tls_modes[] = {"auto", "on", "off", NULL};
const char *const config_tls_client_modes[] = {"off", "optional", "required", NULL};
const char *const config_storage_types[] = {"directory", "nfs", "samba", NULL};
static const struct shape_pattern storage_name = {"a-zA-Z0-9_", "a-zA-Z0-9._\\-",
                                                  "letters, digits, _, - and ."};
static const struct shape_pattern claim_name = {"a-z0-9", "a-z0-9.\\-",
                                                "small letters, digits, - and ."};
const char *const config_engine_kinds[] = {"local", "fake", "kubernetes", NULL};
const char *const config_kubernetes_networks[] = {"host", "pod", NULL};
const char *const config_kubernetes_users[] = {"off", "auto", "required", NULL};
const char *const config_kubernetes_gpus[] = {"device-plugin", "env", "dra", NULL};
const char *const config_node_metrics[] = {"auto", "off", NULL};
const char *const config_sign_ups[] = {"off", "request", NULL};
const char *const config_orders[] = {"priority", "smallest", "fifo", NULL};
const char *const config_plugin_scopes[] = {"submit", "read", "usual", NULL};
const char *const config_alert_severities[] = {"warn", "error", NULL};
const char *const config_policies[] = {"hived", "best-fit", "spread", "first-fit", NULL};

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
#define NAMED(key, shown_as, text)                                                                 \
    {                                                                                              \
        .name = (key), .kind = FIELD_STRING, .min = 1, .max = 253, .pattern = (shown_as),          \
        .help = (text)                                                                             \
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
#define FREE_MAP(key, text)                                                                        \
    {                                                                                              \
        .name = (key), .kind = FIELD_FREE_MAP, .help = (text)                                      \
    }
#define SHAPE(list)                                                                                \
    {                                                                                              \
        .fields = (list), .count = COUNT_OF(list), .unknown = UNKNOWN_ERROR                        \
    }

static const struct field log_fields[] = {
    CHOICE("level", config_log_levels, "Least important line that is written."),
    CHOICE("format", config_log_formats, "auto: text on a terminal, JSON otherwise."),
};
static const struct shape log_shape = SHAPE(log_fields);

static const struct field tls_fields[] = {
    CHOICE("mode", config_tls_modes, "auto: unless the API listens on a loopback address."),
    STRING("certificateFile", "PEM file; without it one is made at the first start."),
    STRING("keyFile", "PEM file of its key, mode 600, or 640 of root's."),
    CHOICE("clientCertificates", config_tls_client_modes, "Whether clients are asked for one."),
    STRING("clientCaFile", "PEM file: who may vouch for clients."),
    STRING("clientRevocationFile", "PEM file of revocation lists."),
    STRING("clientName", "Which name of a certificate is the user's; {user} stands for it."),
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

static const struct field ldap_fields[] = {
    STRING("url", "ldaps://HOST[:PORT] or ldap://HOST[:PORT]."),
    BOOL("startTls", "An ldap: connection is encrypted before anything is said."),
    STRING("caFile", "PEM file: whom to trust instead of those whom the system trusts."),
    STRING("base", "Below which users are."),
    STRING("userFilter", "Which entry is the user's; {user} stands for what was typed."),
    STRING("bindAs", "The user's name in the directory, when it is known; {user} likewise."),
    STRING("bindDn", "Who searches."),
    STRING("bindPasswordFile", "File with the password of bindDn, mode 600."),
    STRING("idAttribute", "The attribute that stays when the name changes."),
    STRING("nameAttribute", "The attribute that names the user."),
    STRING("mailAttribute", "The attribute with the mail address."),
    STRING("groupBase", "Below which groups are; without it groups are not looked at."),
    STRING("groupFilter", "Which are the user's; {dn} stands for the user's entry."),
    STRING("groupAttribute", "The attribute that names a group."),
    STRINGS("allowedGroups", "Groups that may log in; everybody when none is named."),
    BOOL("createUsers", "Users are made at their first login."),
    INT("timeoutSeconds", 1, 60, "Of each step of a question."),
};
static const struct shape ldap_shape = SHAPE(ldap_fields);

static const struct field web_ports_fields[] = {
    REQUIRED("listen", NULL, "ADDRESS:PORT of the relay to ports of tasks."),
    STRING("origin", "Where browsers find it: https://*.NAME[:PORT]."),
};
static const struct shape web_ports_shape = SHAPE(web_ports_fields);

static const struct field api_fields[] = {
    STRING("listen", "ADDRESS:PORT of the REST API."),
    STRING("socket", "Path of a socket for the users of this machine; none: no socket."),
    MAP("tls", &tls_shape, "What is spoken at `listen`."),
    STRINGS("proxies", "Reverse proxies whose X-Forwarded-For is believed, ADDRESS[/BITS]."),
    MAP("oidc", &oidc_shape, "Login by OpenID Connect."),
    MAP("ldap", &ldap_shape, "Login by the passwords of an LDAP directory."),
    MAP("webPorts", &web_ports_shape, "Notebooks and other web pages that tasks serve."),
    BOOL("files", "Users read and write files of storages through the API."),
    INT("uploadMaxMB", 1, 1 << 30, "MiB of one file that is uploaded."),
    STRINGS("origins", "Origins whose pages may read the API's replies; *: any."),
    INT("threads", 0, 1024, "Threads that serve requests; 0: one a processor, 2 to 8."),
    INT("requestsMax", 16, 1000000, "Requests that may wait for the core; more get 429."),
    BOOL("shareConfigurations", "Any user may read the job file of any job."),
    BOOL("shareLogs", "Any user may read the logs of any job."),
    BOOL("openReads", "Lists and details of API v1 need no token."),
};
static const struct shape api_shape = SHAPE(api_fields);

static const struct field scheduling_fields[] = {
    CHOICE("policy", config_policies, "How places are chosen."),
    CHOICE("order", config_orders, "Which of the waiting jobs goes first."),
    STRING("cellsFile", "File with HiveD's configuration: physical and virtual cells."),
    INT("portFirst", 1, 65535, "First port given to tasks."),
    INT("portLast", 1, 65535, "Last port given to tasks."),
    INT("backoffMinSeconds", 1, SECONDS_MAX, "Shortest pause after a transient conflict."),
    INT("backoffMaxSeconds", 1, SECONDS_MAX, "Longest pause after a transient conflict."),
    INT("retryPauseFirstSeconds", 0, SECONDS_MAX,
        "Pause before the second retry in a row that no budget ends; it doubles. 0: none."),
    INT("retryPauseMaxSeconds", 0, SECONDS_MAX, "Longest such pause."),
    INT("retryCalmSeconds", 1, SECONDS_MAX, "An attempt that ran so long begins a new row."),
    BOOL("gangsSpanEngines",
         "A gang may have tasks on several engines, whose networks must reach each other."),
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
    INT("auditDays", 0, 36500, "Audit records of before are removed; 0: never."),
    INT("auditRecords", 0, 1 << 30, "Beyond so many the oldest are removed; 0: any number."),
    INT("databaseMB", 0, 1 << 30, "Above this the oldest ended jobs are removed; 0: any size."),
    INT("useMB", 0, 1 << 20, "Disk for what tasks used over time; 0: it is not kept."),
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
    INT("sampleSeconds", 1, 3600, "Time between two samples of real GPUs."),
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
    INT("pullStallSeconds", 1, 86400,
        "A pull that gets less than 1 MiB in so long is tried again."),
    INT("unpackedMaxMB", 1, 1 << 30, "What an image may unpack to."),
    INT("unpackedMaxFiles", 1, 1 << 30, "Files and folders that an image may have."),
    INT("unpackedMaxRatio", 1, 1000000,
        "An image may unpack to so many times the bytes of its layers, but to 1 GiB at least."),
    INT("keepDays", 1, 36500, "An image unused for so long is removed."),
    INT("highPercent", 1, 100, "Disk use from which unused images are removed at once."),
};
static const struct shape images_shape = SHAPE(images_fields);

static const struct field disk_fields[] = {
    CHOICE("quota", config_disk_quotas,
           "possible: by project quotas where there are some; required: else by a file system of "
           "each task; off: none."),
    INT("taskMB", 16, 1 << 30, "What a task may write."),
};
static const struct shape disk_shape = SHAPE(disk_fields);

static const struct field user_fields[] = {
    CHOICE("mode", config_user_modes,
           "auto: root of a task is nobody on the machine, where the machine can; required: "
           "else it does not run; off: it is root of the machine."),
    CHOICE("images", config_user_images,
           "How a job's ids are put on an image: by idmapped mounts, or by metadata layers, which "
           "older kernels have; auto: by the first that works."),
    INT("firstId", ID_RANGE_IDS, UINT32_MAX, "First of the ids, a multiple of 65536."),
    INT("jobs", 1, ID_RANGES_COUNT_MAX, "Jobs that may have tasks at a time; 65536 ids for each."),
};
static const struct shape user_shape = SHAPE(user_fields);

static const struct field network_fields[] = {
    CHOICE("mode", config_network_modes,
           "auto: the machine's network as long as it has one account, then one a job; host: the "
           "machine's; private: one a job."),
    STRING("subnet", "Addresses of private networks, ADDRESS/BITS."),
    CHOICE("outside", config_network_outsides,
           "nat: they reach other machines; none: they do not."),
};
static const struct shape network_shape = SHAPE(network_fields);

static const struct field rights_fields[] = {
    STRINGS("hostNetwork",
            "Virtual clusters whose tasks are in the machine's network; \"*\": all."),
    STRINGS("sysAdmin", "… whose tasks get CAP_SYS_ADMIN."),
    STRINGS("fuse", "… whose tasks get /dev/fuse."),
    STRINGS("lockMemory", "… whose tasks get CAP_IPC_LOCK."),
    STRINGS("newPrivileges", "… in whose tasks set-user-id programs work."),
    STRINGS("hostUsers", "… in whose tasks root is root of the machine."),
};
static const struct shape rights_shape = SHAPE(rights_fields);

static const struct field gpu_metrics_fields[] = {
    INT("port", 1, 65535, "Where the exporter listens on each node."),
    STRING("path", "What is asked for there."),
};
static const struct shape gpu_metrics_shape = SHAPE(gpu_metrics_fields);

static const struct field node_reserve_fields[] = {
    INT("cpu", 0, 100000, "Processors of each node."),
    INT("memoryMB", 0, 1 << 30, "Memory of each node."),
    INT("pods", 0, 100000, "How many pods on each node."),
};
static const struct shape node_reserve_shape = SHAPE(node_reserve_fields);

static const struct field kubernetes_fields[] = {
    STRING("kubeconfig", "Path of the file that says where the cluster is, or of several with : "
                         "between them; none in a pod of it."),
    STRING("context", "Its context; the current one when not given."),
    STRING("namespace", "Of the pods; the context's when not given."),
    STRING("instance", "What the names of the pods begin with; one of its own for each Skep."),
    STRING("nodeSelector", "Labels of the nodes that are Skep's, a=b,c; all when not given."),
    STRING("initImage", "An image that has /usr/lib/skep/skep-init and /bin/sh."),
    STRING("apiUrl", "The API's address as the pods reach it."),
    STRING("runtimeClass", "RuntimeClass of the pods."),
    STRING("priorityClass", "PriorityClass of the pods."),
    STRING("serviceAccount", "Service account of the pods; they get no token of it."),
    STRING("podTemplate", "Path of a part of a Pod, which is merged into every pod."),
    STRING("infinibandResource",
           "The extended resource that a pod with InfiniBand asks for, rdma/hca for example."),
    CHOICE("network", config_kubernetes_networks,
           "host: the pods are in the network of their nodes; pod: in the cluster's, each with an "
           "address of its own."),
    STRINGS("hostNetwork", "With network: pod, virtual clusters whose tasks are in the network of "
                           "their nodes all the same; \"*\": all."),
    CHOICE("userNamespaces", config_kubernetes_users,
           "With network: pod. auto: root of a task is nobody on the node, where the node's "
           "runtime can; required: other nodes get no tasks; off: it is root of the node."),
    STRING("taint", "Key of the taint that keeps other pods from Skep's nodes."),
    MAP("nodeReserve", &node_reserve_shape,
        "What Skep leaves of each node to pods that no taint keeps away, those of DaemonSets."),
    CHOICE("gpus", config_kubernetes_gpus,
           "device-plugin: so many are asked for; env: NVIDIA_VISIBLE_DEVICES names them; dra: a "
           "ResourceClaim has them."),
    STRING("gpuResource", "The extended resource that the device plugin offers."),
    STRING("gpuTypeLabel", "The label that has the type of a node's GPUs."),
    STRING("deviceDriver", "The DRA driver whose devices are the GPUs."),
    STRING("deviceClass", "The DeviceClass that the claims name."),
    STRING("gpuTypeAttribute", "The attribute of a device that has the type of the GPU."),
    MAP("gpuMetrics", &gpu_metrics_shape,
        "DCGM's exporter on the nodes, which tells how their GPUs are used; not asked when not "
        "given."),
    CHOICE("nodeMetrics", config_node_metrics,
           "auto: the resource metrics API is asked what nodes use, where there is one; off: it is "
           "not."),
    INT("nodeLostSeconds", 1, 86400,
        "The tasks of a node that is silent for so long are tried again elsewhere."),
};
static const struct shape kubernetes_shape = SHAPE(kubernetes_fields);

static const struct field engine_fields[] = {
    CHOICE("kind", config_engine_kinds,
           "local: containers on this machine; kubernetes: pods of a cluster; fake: none, for "
           "tests."),
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
    MAP("userNamespaces", &user_shape, "User ids of tasks."),
    MAP("network", &network_shape, "The network of tasks."),
    MAP("rights", &rights_shape, "What tasks may beyond their walls, by virtual cluster."),
    MAP("devices", &devices_shape, "GPUs."),
    MAP("images", &images_shape, "Images and registries."),
    MAP("kubernetes", &kubernetes_shape, "The cluster of a kubernetes engine, and its pods."),
    MAP("fake", &fake_shape, "What the fake engine plays."),
    STRING("name", "What it is called in messages; its kind when none is given."),
};
static const struct shape engine_shape = SHAPE(engine_fields);

static const struct field storage_fields[] = {
    REQUIRED("name", &storage_name, "By which jobs and groups name it."),
    STRING("directory",
           "Its folder on every machine; what stands behind it must be mounted there."),
    NAMED("claim", &claim_name,
          "The PersistentVolumeClaim that is it for the pods of a kubernetes engine."),
    CHOICE("type", config_storage_types, "What stands behind it, for people."),
    STRING("server", "nfs, samba: where people reach it from elsewhere …"),
    STRING("path", "… and by which path."),
    BOOL("share", "false: each user has a folder of their own in it."),
    BOOL("readOnly", "Tasks cannot write there."),
    BOOL("rootSquash", "Root of a task is the owner of the folder there, and never root."),
};
static const struct shape storage_shape = SHAPE(storage_fields);

static const struct field offered_image_fields[] = {
    REQUIRED("name", NULL, "What people choose by."),
    REQUIRED("uri", NULL, "The image, as a job file names it."),
    STRING("about", "What it is for, or what is in it."),
};
static const struct shape offered_image_shape = SHAPE(offered_image_fields);
static const struct field plugin_fields[] = {
    STRING("id", "What a job file names in extras.submitFrom, so that its copy begins there."),
    REQUIRED("title", NULL, "What the bar of the portal calls it."),
    REQUIRED("uri", NULL, "Address of its script, which defines the element pai-plugin."),
    STRINGS("origins", "Other origins that it loads from and talks to."),
    CHOICE("scope", config_plugin_scopes, "What the token that it gets is good for."),
    FREE_MAP("config", "For the script, which reads it."),
};
static const struct shape plugin_shape = SHAPE(plugin_fields);
static const struct field portal_fields[] = {
    MAP_LIST("plugins", &plugin_shape, PORTAL_PLUGINS_MAX, "Pages of others."),
    MAP_LIST("images", &offered_image_shape, IMAGES_MAX, "Prepared images for new jobs."),
    STRING("manualUrl", "https://…: a manual of your own, which the help leads to."),
    STRING("feedbackUrl", "https://…: where people say what is wrong, likewise."),
};
static const struct shape portal_shape = SHAPE(portal_fields);

static const struct field auth_fields[] = {
    CHOICE("signUp", config_sign_ups,
           "request: visitors may ask for an account, which administrators accept or refuse; off: "
           "they may not."),
};
static const struct shape auth_shape = SHAPE(auth_fields);

static const struct field smtp_fields[] = {
    REQUIRED("url", NULL, "smtps://HOST[:PORT], or smtp://HOST[:PORT]."),
    REQUIRED("from", NULL, "Address of the sender."),
    BOOL("startTls", "smtp: TLS begins by STARTTLS; false: none."),
    STRING("user", "Who logs in; nobody when not given."),
    STRING("passwordFile", "File with the password."),
    STRING("caFile", "PEM file of the authorities to trust; the system's when not given."),
};
static const struct shape smtp_shape = SHAPE(smtp_fields);
static const struct field webhook_fields[] = {
    REQUIRED("name", &storage_name, "What it is called in messages."),
    REQUIRED("url", NULL, "To which is posted, https or http."),
    STRING("tokenFile", "File with the token that is shown there, as Bearer."),
    STRING("caFile", "PEM file of the authorities to trust; the system's when not given."),
    STRINGS("events", "running, succeeded, stopped, failed, retried: these changes of all jobs; "
                      "not given: those that the jobs ask for."),
    BOOL("alerts", "It is told of alerts, too."),
};
static const struct shape webhook_shape = SHAPE(webhook_fields);
static const struct field alerts_fields[] = {
    STRINGS("mail", "Addresses to which alerts are mailed."),
    CHOICE("severity", config_alert_severities, "The mildest that is told."),
    INT("afterSeconds", 0, 86400, "How long one has stood, or been over, before it is told."),
};
static const struct shape alerts_shape = SHAPE(alerts_fields);
static const struct field notifications_fields[] = {
    STRING("portalUrl", "Address of the portal as users open it, for links."),
    INT("keepHours", 1, 24 * 30, "A message that could not be sent for so long is dropped."),
    MAP("smtp", &smtp_shape, "The mail server."),
    MAP_LIST("webhooks", &webhook_shape, NOTIFY_HOOKS_MAX, "Receivers of Alertmanager's webhooks."),
    MAP("alerts", &alerts_shape, "What operators are told of alerts."),
};
static const struct shape notifications_shape = SHAPE(notifications_fields);

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
    MAP("portal", &portal_shape, "What the web portal offers."),
    MAP("auth", &auth_shape, "Who gets an account."),
    MAP("notifications", &notifications_shape, "Messages about changes of jobs, and about alerts."),
    MAP("engine", &engine_shape, "What runs the containers."),
    MAP_LIST("engines", &engine_shape, ENGINES_MAX,
             "Several of them, each with its machines, instead of engine."),
};
const struct shape config_shape = SHAPE(top_fields);
