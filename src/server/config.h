/* config.h — the server's configuration file.
 *
 * YAML; every key is documented in docs/operator/configuration.md. An unknown key is an error with
 * its place and a hint. A configuration owns all its memory and is immutable.
 */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H
#include "api/api.h"
#include "api/directory_login.h"
#include "api/oidc.h"
#include "base/arena.h"
#include "core/core.h"
#include "engine/kubernetes/kubernetes.h"
#include "engine/local/local.h"
#include "model/image.h"
#include "model/portal_plugin.h"
#include "model/storage.h"
#include "server/config_notify.h"
#include "sys/log.h"
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct doc;
struct err;

enum engine_kind { ENGINE_KIND_LOCAL, ENGINE_KIND_FAKE, ENGINE_KIND_KUBERNETES };

/* a machine that the fake engine plays */
struct fake_config {
    const char *node_prefix; /* of the nodes' names */
    uint32_t nodes, cpu, gpu_count, run_ms, lose_every_ms;
    uint64_t memory_mib;
    int32_t exit_code;
    const char *log;
};

struct retention_config {
    uint64_t job_days, event_log_days; /* 0: for ever */
    uint64_t database_mib;             /* larger: the oldest jobs that have ended go; 0: any size */
    uint64_t use_mib; /* of what tasks used: more, and the oldest go; 0: not kept */
    uint64_t audit_days, audit_records; /* 0: for ever; any number */
};

/* engine.network.mode */
enum network_mode {
    NETWORK_MODE_AUTO,    /* by the number of accounts: job_network.h */
    NETWORK_MODE_HOST,    /* the machine's, for all */
    NETWORK_MODE_PRIVATE, /* each job's own */
    NETWORK_MODE_UNSET,
};

struct engine_config {
    const char *name; /* unique */
    enum engine_kind kind;
    enum network_mode network_mode;
    struct engine_local_config local; /* without directories, and without what network_mode says */
    struct fake_config fake;
    struct engine_kubernetes_config kubernetes;
    uint64_t log_segment_mib; /* of a stream of a task's log; it keeps the newest two */
};

struct server_config {
    struct arena arena;
    const char *path;      /* of the file; "" when there is none */
    const struct doc *doc; /* what stands in it; NULL: nothing */
    const char *listen;
    bool is_listen_given, is_data_given; /* by the command line, whatever the file says */
    const char *socket;                  /* "": the usual one, server_socket; "none" */
    enum api_tls tls;
    const char *certificate_path, *key_path; /* both NULL: made at the first start */
    struct tls_clients_config tls_clients;
    const char *const *origins, *const *proxies;
    size_t origin_count, proxy_count;
    uint32_t hsts_s;
    const char *web_listen, *web_origin; /* of web ports; both NULL: none */
    bool has_files;                      /* of storages, by the API */
    uint32_t upload_max_mib;
    bool has_oidc;
    struct api_oidc oidc; /* when there is one */
    bool has_ldap;
    struct api_ldap ldap; /* likewise */
    const char *data_directory;
    const char *database; /* address of PostgreSQL's; "": SQLite's in the data directory */
    bool accepts_loss;    /* by the command line: struct store_opening */
    const char *admin_name;
    const char *files_directory; /* of v1 jobs; "": DATA/files */
    const char *exit_rules_path; /* "" none */
    const char *cells_path;      /* likewise */
    enum log_level log_level;
    enum log_format log_format;
    uint32_t threads; /* of the API; 0: one a processor */
    uint32_t requests_max;
    bool is_config_shared, is_log_shared, is_v1_read_open;
    bool has_sign_up; /* auth.signUp: visitors may ask for accounts */
    struct core_config core;
    struct retention_config retention;
    uint64_t hang_after_s; /* of jobs that name no time of their own; 0: not watched */
    struct storage_list storages;
    struct offered_images images; /* prepared ones, which the portal offers */
    const char *manual_url;       /* of the operator's own, in the portal's help; NULL: none */
    const char *feedback_url;     /* likewise: where people say what is wrong */
    struct portal_plugins plugins;
    struct notify_config notify;
    struct engine_config *engines; /* at least one */
    size_t engine_count;
};

#define SERVER_DATA_DIRECTORY "/var/lib/skep"

/* The path of the socket for the users of this machine, in the arena; NULL: none. Of a server that
 * keeps its data in the usual place it is the one that the command line looks for. */
const char *server_socket(const struct server_config *config, struct arena *arena);

/* Read the file; NULL path: all defaults. ERR_INVALID: `report` gets all problems, one a line with
 * file, line and column. ERR_NOT_FOUND, ERR_IO. Warnings go to `report`, too, on success. */
int server_config_read(const char *path, struct server_config **config, struct buf *report,
                       struct err *err);
void server_config_free(struct server_config *config);

/* What differs and takes effect only after a restart: a list of keys, or "". */
void server_config_compare(const struct server_config *old, const struct server_config *now,
                           struct buf *keys);

/* What is in force, key by key, with where each value comes from, as a JSON object: the reply of
 * GET /api/v2/settings. Passwords are masked. Of a value that the machine or the engine decides,
 * and of what is not there, it says null. `first`: as the server was started; `now`: as it was read
 * last.
 */
void server_config_settings(const struct server_config *first, const struct server_config *now,
                            struct buf *out);

#endif
