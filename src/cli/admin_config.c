/* admin_config.c — see admin_config.h. */
#include "cli/admin_config.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "sys/file.h"
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- the file --- */

static const char *string_of(const struct doc *doc, const char *key, const char *otherwise,
                             struct arena *arena)
{
    const struct doc *found = doc_get(doc, key);
    return found && found->kind == DOC_STRING ? arena_copy(arena, found->as.string) : otherwise;
}

/* The engine whose containers run on this machine; NULL: there is none. One that is not configured
 * is one. */
static const struct doc *engine_of(const struct doc *root, bool *is_local)
{
    const struct doc *list = doc_get_list(root, "engines");
    const struct doc *alone = doc_get(root, "engine");
    *is_local = false;
    for (size_t i = 0; i < list->as.list.count; i++)
        if (text_is(doc_get_text(list->as.list.items[i], "kind", "local"), "local")) {
            *is_local = true;
            return list->as.list.items[i];
        }
    if (list->as.list.count == 0)
        *is_local = text_is(doc_get_text(alone, "kind", "local"), "local");
    return alone;
}

static const struct right_cost {
    const char *name;
    const char *meaning; /* of giving it */
} rights[ADMIN_RIGHTS] = {
    {"hostNetwork", "their tasks reach all that listens on the machine, and each other's ports"},
    {"sysAdmin", "their tasks mount what they like; with the machine's user ids they can become "
                 "root on the machine"},
    {"fuse", "their tasks reach the kernel's code for FUSE"},
    {"lockMemory", "their tasks may lock all the memory that they may use"},
    {"newPrivileges", "a set-user-id program of an image gives the capabilities of root in a task"},
    {"hostUsers", "what escapes from their tasks is root on the machine"},
};

static const char *names_of(const struct doc *list, struct arena *arena)
{
    cleanup_buf struct buf names = BUF_INIT;
    for (size_t i = 0; i < list->as.list.count; i++)
        if (list->as.list.items[i]->kind == DOC_STRING)
            buf_format(&names, "%s%.*s", names.length ? ", " : "",
                       TEXT_ARG(list->as.list.items[i]->as.string));
    return arena_copy(arena, buf_as_text(&names));
}

static void storages_read(const struct doc *root, struct arena *arena, struct admin_config *config)
{
    const struct doc *list = doc_get_list(root, "storages");
    for (size_t i = 0; i < list->as.list.count && i < ADMIN_STORAGES_MAX; i++) {
        const struct doc *item = list->as.list.items[i];
        config->storages[config->storage_count++] = (struct admin_storage){
            .name = string_of(item, "name", "", arena),
            .directory = string_of(item, "directory", "", arena),
            .is_squashed = doc_get_bool(item, "rootSquash", false),
            .can_map = true,
        };
    }
}

static void cluster_read(const struct doc *engine, struct arena *arena, struct admin_config *config)
{
    if (!text_is(doc_get_text(engine, "kind", "local"), "kubernetes") ||
        config->cluster_count == ADMIN_CLUSTERS_MAX)
        return;
    config->clusters[config->cluster_count++] = (struct admin_cluster){
        .name = string_of(engine, "name", "kubernetes", arena),
        .kubeconfig = string_of(doc_get(engine, "kubernetes"), "kubeconfig", "", arena),
    };
}

static void clusters_read(const struct doc *root, struct arena *arena, struct admin_config *config)
{
    const struct doc *list = doc_get_list(root, "engines");
    for (size_t i = 0; i < list->as.list.count; i++)
        cluster_read(list->as.list.items[i], arena, config);
    if (list->as.list.count == 0)
        cluster_read(doc_get(root, "engine"), arena, config);
}

static void config_fill(const struct doc *root, struct arena *arena, struct admin_config *config)
{
    bool is_local;
    const struct doc *engine = engine_of(root, &is_local);
    const struct doc *given = doc_get(engine, "rights");
    *config = (struct admin_config){
        .is_local = is_local,
        .data_directory = string_of(root, "dataDirectory", NULL, arena),
        .network = string_of(doc_get(engine, "network"), "mode", "auto", arena),
        .users = string_of(doc_get(engine, "userNamespaces"), "mode", "auto", arena),
        .user_images = string_of(doc_get(engine, "userNamespaces"), "images", "auto", arena),
        .quota = string_of(doc_get(engine, "disk"), "quota", "possible", arena),
        .runtime = string_of(engine, "runtime", "", arena),
    };
    const struct doc *web_ports = doc_get(doc_get(root, "api"), "webPorts");
    if (web_ports) /* browsers keep what is below localhost on their own machine */
        config->web_origin = string_of(web_ports, "origin", "http://*.localhost", arena);
    for (size_t i = 0; i < ADMIN_RIGHTS; i++)
        config->rights[i] = names_of(doc_get_list(given, rights[i].name), arena);
    storages_read(root, arena, config);
    clusters_read(root, arena, config);
}

int admin_config_read(const char *path, struct arena *arena, struct admin_config *config,
                      struct err *err)
{
    cleanup_buf struct buf source = BUF_INIT;
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    int code = file_read(path, DOC_BYTES_MAX, &source, err);
    if (code < 0)
        return code;
    const struct doc *root = doc_parse(buf_as_text(&source), DOC_YAML, arena, &problems);
    if (problems.error_count > 0) {
        const struct problem *first = problems_sorted(&problems)[0];
        return err_fail(err, ERR_INVALID, "", "%s:%u:%u: %s", path, first->place.line,
                        first->place.column, first->text);
    }
    if (root && root->kind != DOC_MAP && root->kind != DOC_NULL)
        return err_fail(err, ERR_INVALID, "", "%s is no configuration", path);
    config_fill(root && root->kind == DOC_MAP ? root : NULL, arena, config);
    return 0;
}

static void cluster_try(struct admin_cluster *cluster)
{
    if (cluster->kubeconfig[0] && access(cluster->kubeconfig, R_OK) < 0)
        snprintf(cluster->why_not, sizeof cluster->why_not, "%.80s: %s", cluster->kubeconfig,
                 strerror(errno));
}

void admin_config_try(struct admin_config *config)
{
    for (size_t i = 0; i < config->cluster_count; i++)
        cluster_try(&config->clusters[i]);
    for (size_t i = 0; i < config->storage_count && geteuid() == 0; i++) {
        struct admin_storage *storage = &config->storages[i];
        struct err err = {0};
        storage->can_map = machine_ids_try(storage->directory, &err) == 0;
        if (!storage->can_map)
            snprintf(storage->why_not, sizeof storage->why_not, "%.110s", err.text);
    }
}

/* --- what the machine cannot give of it --- */

struct config_judge {
    const struct admin_config *config;
    struct arena *arena;
    struct machine_finding *findings;
    size_t machine_count, count, room; /* machine_count: of what was found on the machine */
};

static void add(struct config_judge *judge, const char *name, enum machine_state state,
                const char *meaning, const char *format, ...) __attribute__((format(printf, 5, 6)));

static void add(struct config_judge *judge, const char *name, enum machine_state state,
                const char *meaning, const char *format, ...)
{
    if (judge->count == judge->room)
        return;
    struct machine_finding *finding = &judge->findings[judge->count++];
    *finding = (struct machine_finding){
        .name = name, .state = state, .meaning = state == MACHINE_GOOD ? "" : meaning};
    va_list args;
    va_start(args, format);
    vsnprintf(finding->found, sizeof finding->found, format, args);
    va_end(args);
}

/* Of what was found; UNKNOWN when nothing was. */
static enum machine_state state_of(const struct config_judge *judge, const char *name)
{
    for (size_t i = 0; i < judge->machine_count; i++)
        if (strcmp(judge->findings[i].name, name) == 0)
            return judge->findings[i].state;
    return MACHINE_UNKNOWN;
}

/* What is wanted or required of something that the machine has, has not, or may have. */
static enum machine_state state_wanted(enum machine_state there, bool is_required)
{
    if (there == MACHINE_GOOD || there == MACHINE_UNKNOWN)
        return there;
    return is_required ? MACHINE_MISSING : MACHINE_LESS;
}

static void judge_network(struct config_judge *judge)
{
    const char *mode = judge->config->network;
    const bool is_required = strcmp(mode, "private") == 0;
    const enum machine_state state = state_wanted(state_of(judge, "job networks"), is_required);
    if (strcmp(mode, "host") == 0)
        add(judge, "engine.network", MACHINE_LESS,
            "all tasks reach what listens on the machine's loopback, and each other's ports: "
            "choose auto or private where its users need not trust each other",
            "%s", mode);
    else
        add(judge, "engine.network", state,
            state == MACHINE_UNKNOWN ? "only root can try it"
            : is_required
                ? "the engine does not open: see job networks"
                : "with several accounts tasks reach what listens on the machine's loopback "
                  "all the same: see job networks",
            is_required ? "%s" : "%s: the machine's while it has one account", mode);
}

static void judge_users(struct config_judge *judge)
{
    const char *mode = judge->config->users;
    const bool is_required = strcmp(mode, "required") == 0;
    const bool by_mounts = strcmp(judge->config->user_images, "metadata") != 0;
    const bool by_layers = strcmp(judge->config->user_images, "idmapped") != 0;
    enum machine_state there = by_mounts ? state_of(judge, "idmapped mounts") : MACHINE_LESS;
    if (there != MACHINE_GOOD && by_layers)
        there = state_of(judge, "metadata layers");
    const enum machine_state state = state_wanted(there, is_required);
    if (strcmp(mode, "off") == 0)
        add(judge, "engine.userNamespaces", MACHINE_LESS,
            "root of a task is root of the machine, without most of its capabilities", "%s", mode);
    else
        add(judge, "engine.userNamespaces", state,
            state == MACHINE_UNKNOWN ? "only root can try it"
            : is_required
                ? "the engine does not open: see idmapped mounts, metadata layers"
                : "root of a task is root of the machine: see idmapped mounts, metadata layers",
            "%s", mode);
}

static void judge_disk(struct config_judge *judge)
{
    const char *quota = judge->config->quota;
    const bool has_quotas = state_of(judge, "project quotas") == MACHINE_GOOD;
    const bool has_images = state_of(judge, "mke2fs") == MACHINE_GOOD;
    if (strcmp(quota, "required") == 0)
        add(judge, "engine.disk",
            has_quotas   ? MACHINE_GOOD
            : has_images ? MACHINE_LESS
                         : MACHINE_MISSING,
            has_images
                ? "each task has a file system in a file, which makes starts slower, and what "
                  "it wrote may be lost when the machine's disk is full: see project quotas"
                : "the engine does not open: see project quotas and mke2fs",
            "%s", quota);
    else
        add(judge, "engine.disk",
            strcmp(quota, "off") != 0 && has_quotas ? MACHINE_GOOD : MACHINE_LESS,
            "tasks can fill the disk, down to the reserve", "%s", quota);
}

static void judge_storages(struct config_judge *judge)
{
    const struct admin_config *config = judge->config;
    const bool is_required = strcmp(config->users, "required") == 0;
    for (size_t i = 0; i < config->storage_count; i++) {
        const struct admin_storage *storage = &config->storages[i];
        const char *name = arena_format(judge->arena, "storage %s", storage->name);
        if (strcmp(config->users, "off") == 0)
            add(judge, name, storage->is_squashed ? MACHINE_LESS : MACHINE_GOOD,
                "rootSquash has no effect without user ids of tasks", "%.80s", storage->directory);
        else
            add(judge, name, storage->can_map ? MACHINE_GOOD : MACHINE_LESS,
                is_required || storage->is_squashed
                    ? "tasks that have it do not start"
                    : "root of tasks that have it is root of the machine",
                "%s", storage->can_map ? storage->directory : storage->why_not);
    }
}

static void judge_rights(struct config_judge *judge)
{
    for (size_t i = 0; i < ADMIN_RIGHTS; i++)
        if (judge->config->rights[i][0])
            add(judge, arena_format(judge->arena, "right %s", rights[i].name), MACHINE_LESS,
                rights[i].meaning, "%.110s", judge->config->rights[i]);
}

/* What tasks serve, and the cookies that let browsers in, go over a network as they are. */
static void judge_web_ports(struct config_judge *judge)
{
    const char *origin = judge->config->web_origin;
    if (!origin)
        return;
    const struct text host = text_of(origin + strcspn(origin, "*"));
    const bool is_near = text_starts(host, TEXT("*.localhost:")) || text_is(host, "*.localhost");
    const bool is_open = text_starts(text_of(origin), TEXT("http://")) && !is_near;
    add(judge, "api.webPorts", is_open ? MACHINE_LESS : MACHINE_GOOD,
        "whoever sees the network reads what tasks serve there, and can take over the sessions of "
        "those who look at it: name an origin that begins with https",
        "%.110s", origin);
}

/* Whether a cluster answers now is for the server to say. */
static void judge_clusters(struct config_judge *judge)
{
    for (size_t i = 0; i < judge->config->cluster_count; i++) {
        const struct admin_cluster *cluster = &judge->config->clusters[i];
        add(judge, arena_format(judge->arena, "engine %s", cluster->name),
            cluster->why_not[0] ? MACHINE_MISSING : MACHINE_GOOD,
            "the engine does not open: the server goes on with the others, if there are any",
            "%.110s",
            cluster->why_not[0]      ? cluster->why_not
            : cluster->kubeconfig[0] ? cluster->kubeconfig
                                     : "as a pod of the cluster");
    }
}

size_t admin_config_judge(const struct admin_config *config, struct arena *arena,
                          struct machine_finding *findings, size_t count, size_t room)
{
    struct config_judge judge = {config, arena, findings, count, count, room};
    assert(count <= room);
    judge_web_ports(&judge);
    judge_clusters(&judge);
    if (!config->is_local) {
        add(&judge, "engine", MACHINE_GOOD, "", "no containers run on this machine");
        return judge.count;
    }
    if (config->runtime[0])
        add(&judge, "engine.runtime",
            access(config->runtime, X_OK) == 0 ? MACHINE_GOOD : MACHINE_MISSING,
            "the engine does not open: it is no program", "%.110s", config->runtime);
    judge_network(&judge);
    judge_users(&judge);
    judge_disk(&judge);
    judge_storages(&judge);
    judge_rights(&judge);
    return judge.count;
}
