/* spec.h — a job file, checked: what the user asked for, in one shape for both file formats.
 *
 * Pure. OpenPAI protocol v2 (YAML) and early PAI / QIZHI v1 (JSON with comments) are read into the
 * same structure. A spec is immutable and owns all its memory. Secrets are never in it: text that
 * names `<% $secrets.x %>` stays unrendered, their values are handed out apart, once, at parse.
 *
 * Source of the rules: OpenPAI job protocol 2; PAI v0.4–0.14 job configuration 1 (docs/rfc/).
 */
#ifndef SPEC_SPEC_H
#define SPEC_SPEC_H
#include "base/text.h"
#include "doc/problem.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;

enum {
    SPEC_BYTES_MAX = 1 << 20,
    SPEC_NAME_MAX = 255,
    SPEC_ROLES_MAX = 256,
    SPEC_INSTANCES_MAX = 10000, /* of one role, as FrameworkController */
    SPEC_TASKS_MAX = 20000,     /* of one job */
    SPEC_PORTS_MAX = 1000,      /* port numbers of one task */
    SPEC_LIST_MAX = 256,     /* prerequisites, deployments, storages, variables, secrets, items of
                                any list of names */
    SPEC_PLUGINS_MAX = 4096, /* plugins, those that prerequisites make included */
    SPEC_LINES_MAX = 100000, /* lines of one list of commands */
    SPEC_CPU_MAX = 100000,
    SPEC_GPU_MAX = 10000,
    SPEC_MEMORY_MIB_MAX = 1 << 30,
    SPEC_RETRY_MAX = 1000000,
    SPEC_URI_MAX = 4096,            /* bytes of an image, path or URI */
    SPEC_DESCRIPTION_MAX = 65536,   /* bytes of a description */
    SPEC_COMMAND_MAX = 256 << 10,   /* bytes of one role's command, rendered */
    SPEC_RENDERED_MAX = 4 << 20,    /* bytes of all commands and parameters, rendered */
    SPEC_CREDENTIAL_MAX = 8192,     /* bytes of a user name or password of a registry, rendered */
    SPEC_PARAMETERS_MAX = 64 << 10, /* bytes of one plugin's parameters, rendered */
    SPEC_SECRET_MAX = 64 << 10,     /* bytes of one secret */
};

enum spec_format {
    SPEC_V1,
    SPEC_V2,
    SPEC_MARKET, /* of OpenPAI's marketplace, 0.8 to 0.12; runs as format 1, which it became there
                  */
};

struct spec_pair {
    const char *name, *value;
};

struct spec_port {
    const char *label;
    uint32_t count;
    uint32_t begin_at; /* v1 portList: fixed first port; 0 = any free ones */
};

struct spec_auth { /* of an image; any value may hold `<% $secrets.x %>` */
    const char *username, *password, *registry_uri;
};

struct spec_image {
    const char *name; /* of the prerequisite; "" in v1 */
    const char *uri;
    const struct spec_auth *auth; /* NULL: none */
};

struct spec_storage {
    const char *name, *mount_path; /* mount_path: default "/mnt/NAME" */
    uint32_t line;                 /* of the file; not stored */
};

struct spec_plugin { /* com.microsoft.pai.runtimeplugin, and prerequisites with `plugin:` */
    const char *name;
    const char *parameters_json; /* "{}" when absent; may hold `<% $secrets.x %>` */
    bool is_failure_ignored;
    const char *const *roles; /* NULL: all */
    size_t role_count;
};

/* completion: -1 disables; see OpenPAI protocol and FrameworkController 6.5 */
struct spec_completion {
    int32_t min_failed, min_succeeded;
};

/* extras.hivedScheduler.taskRoles.X, gpuType of v1 */
struct spec_placement {
    const char *sku_type;        /* "" = any; v1 gpuType: comma list, any of */
    const char *pinned_cell_id;  /* "" = none */
    const char *affinity_group;  /* "" = the whole job when gang is on */
    const char *within_one_cell; /* cell type that must hold all instances; "" = no demand */
};

struct spec_role {
    const char *name; /* as written */
    uint32_t instances;
    uint32_t cpu;
    uint64_t memory_mib;
    uint32_t gpu;
    uint32_t shm_mib; /* 512 in v2, 64 in v1 unless given */
    bool wants_infiniband;
    uint32_t image;      /* index into images */
    const char *command; /* v2: rendered lines joined by newline, with pre- and postCommands */
    const char *const *prerequisites;
    size_t prerequisite_count;
    struct spec_port *ports; /* `ssh` and `http` are always there */
    size_t port_count;
    struct spec_completion completion;
    int32_t task_retry_count; /* honoured only for jobs without gang */
    struct spec_placement placement;
    bool is_ssh_enabled;  /* plugin ssh with jobssh or a key, or a v1 job */
    bool is_ssh_optional; /* an image without sshd is no failure: v1, failurePolicy ignore */
    bool has_ssh_barrier;
    uint32_t ssh_barrier_timeout_s; /* 0 (v1): the default */
};

enum spec_priority_class { SPEC_OPPO = -1, SPEC_TEST = 10, SPEC_PROD = 100, SPEC_CRIT = 120 };

struct spec_notifications {
    bool running, succeeded, stopped, failed, retried;
};

struct spec {
    struct arena *arena; /* owns everything below */
    enum spec_format format;
    const char *name;
    const char *virtual_cluster;
    int32_t priority;       /* enum spec_priority_class, default SPEC_TEST */
    bool has_priority;      /* false: the file named none */
    int32_t retry_count;    /* job: 0 …; v1 also -1 any failure, -2 always */
    bool is_gang;           /* all tasks placed and started together */
    bool has_start_barrier; /* no command begins before all tasks have come up: extras.startBarrier,
                               v1 jobs */
    uint32_t start_barrier_timeout_s; /* 0: the default */
    bool is_lazy_preemptible;         /* HiveD lazyPreemptionEnable */
    const char *within_one_cell;      /* cell type that must hold each affinity group; "" = none */
    bool ignores_suggested_nodes;
    bool is_debug;                  /* v1 isDebug, v2 extras.debug: hold containers after failure */
    uint32_t kill_all_on_completed; /* v1 killAllOnCompletedTaskNumber; 0 = off */
    uint64_t time_limit_s;          /* extras.timeLimitSeconds; 0 = none (a Skep extension) */
    uint64_t hang_after_s;          /* extras.hang.afterSeconds; 0 = the server's default */
    bool hang_retry;                /* extras.hang.retry: dump stacks, then retry */
    struct spec_image *images;
    size_t image_count;
    struct spec_role *roles; /* in the file's order */
    size_t role_count;
    struct spec_plugin *plugins; /* in the order of their start; what they do at the end runs in
                                    reverse */
    size_t plugin_count;
    struct spec_storage *storages;
    size_t storage_count;
    bool wants_default_storages;
    bool wants_host_network;        /* extras.hostNetwork: else it is refused; not stored */
    uint32_t default_storages_line; /* of the file; not stored */
    uint32_t notify_line;           /* of extras.jobStatusChangeNotification; likewise */
    struct spec_pair *envs;         /* v1 jobEnvs */
    size_t env_count;
    const char *code_dir, *data_dir, *output_dir, *auth_file; /* v1; "" when absent */
    struct spec_notifications notify;
    const char *tag; /* extras.submitFrom, or "" */
};

/* The secrets of a job that was submitted before. In a file that is parsed with them the mask of a
 * stored copy stands for them: that of the whole block for all, that of one for the one of the same
 * name. */
struct spec_kept {
    const char *job; /* "user~name", for what is said */
    const struct spec_pair *secrets;
    size_t count;
};

/* What a parse gives. On errors `spec` is NULL. */
struct spec_parsed {
    const struct spec_kept *kept; /* on entry; NULL: a mask stands for nothing and is refused */
    struct spec *spec;
    struct buf *masked; /* not used when NULL on entry: receives the source with the secrets block
                           masked, the only text that may be stored or shown */
    struct spec_pair *secrets; /* values of the top-level secrets block, dotted names; in the arena
                                  given to spec_parse, which the caller wipes, or those of `kept` */
    size_t secret_count;
};

/* Read a job file; the format is told by the content: what has `tasks` or `protocol_version` in the
 * place of `taskRoles` and `protocolVersion` is of the marketplace's format, JSON (comments
 * allowed) without `protocolVersion` is v1, everything else v2, which may be written as JSON too.
 * Every error and warning goes to `problems`. Returns 0, or ERR_INVALID with parsed->spec NULL. */
int spec_parse(struct text source, struct arena *scratch, struct spec_parsed *parsed,
               struct problems *problems);
void spec_free(struct spec *spec);

static inline void cleanup_free_spec(struct spec **spec)
{
    spec_free(*spec);
}
#define cleanup_spec __attribute__((cleanup(cleanup_free_spec)))

/* One more storage at its default place. For who knows what an empty list of storages means, before
 * the spec is stored. */
/* Does the role ask for a port of this label? */
bool spec_role_has_port(const struct spec_role *role, const char *label);

void spec_storage_add(struct spec *spec, const char *name);

/* Render `<% $secrets.x %>` in `value` with the secrets; unknown references stay as they are. */
void spec_render_secrets(struct text value, const struct spec_pair *secrets, size_t count,
                         struct buf *out);

/* The same inside the strings of a JSON text (`parameters_json`): the secrets are escaped. */
void spec_render_secrets_json(struct text json, const struct spec_pair *secrets, size_t count,
                              struct buf *out);

/* JSON Schema (draft 7) of a format, written from the table that the parser checks by. */
void spec_schema(enum spec_format format, struct buf *out);

/* Compact binary form, for the store; versioned. Decoding checks everything and gives ERR_CORRUPT.
 */
void spec_encode(const struct spec *spec, struct buf *out);
struct spec *spec_decode(struct text bytes, struct err *err);

/* Tasks of all roles: at most SPEC_TASKS_MAX. */
uint32_t spec_task_count(const struct spec *spec);

#endif
