#include "kube/access.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "doc/doc.h"
#include "sys/file.h"

/* A document and the folder that its relative paths begin at. */
struct source {
    const char *path, *folder;
    struct arena *arena;
    const struct doc *doc;
};

/* Several that are one: what stands in an earlier one hides what has its name in later ones. */
struct sources {
    struct source items[ACCESS_FILES_MAX];
    size_t count;
};

static const char *string_of(const struct doc *doc, const char *key)
{
    const struct doc *value = doc_get(doc, key);
    return value && value->kind == DOC_STRING ? value->as.string.at : "";
}

static const char *path_of(const struct source *source, const char *path)
{
    if (!path[0] || path[0] == '/')
        return path;
    return arena_format(source->arena, "%s/%s", source->folder, path);
}

int kube_access_part(const char *path, struct arena *arena, struct text *content, struct err *err)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    int code = file_read(path, ACCESS_FILE_MAX, &bytes, err);
    if (code == 0)
        *content = (struct text){arena_copy(arena, buf_as_text(&bytes)), bytes.length};
    if (bytes.at)
        explicit_bzero(bytes.at, bytes.room); /* it may be a key */
    return code;
}

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* False: it is not base64. */
static bool base64_read(struct text encoded, struct arena *arena, struct text *bytes)
{
    char *out = arena_alloc(arena, encoded.length / 4 * 3 + 4);
    uint32_t word = 0;
    unsigned bits = 0, padding = 0;
    size_t length = 0;
    for (size_t i = 0; i < encoded.length; i++) {
        const char c = encoded.at[i];
        if (c == '\n' || c == '\r' || c == ' ')
            continue;
        int digit = digit_of(c);
        padding += c == '=';
        if ((digit < 0 && c != '=') || (digit >= 0 && padding > 0) || padding > 2)
            return false;
        if (digit < 0)
            continue;
        word = word << 6 | (uint32_t)digit;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out[length++] = (char)(word >> bits & 0xff);
        }
    }
    *bytes = (struct text){out, length};
    return bits < 6;
}

/* KEY-data, or the file that KEY names. */
static int part_read(const struct source *source, const struct doc *from, const char *key,
                     struct text *content, struct err *err)
{
    const char *data_key = arena_format(source->arena, "%s-data", key);
    const char *data = string_of(from, data_key), *path = string_of(from, key);
    *content = TEXT("");
    if (data[0]) {
        if (!base64_read(text_of(data), source->arena, content))
            return err_fail(err, ERR_INVALID, data_key, "%.120s: it is no base64", source->path);
        return 0;
    }
    return path[0] ? kube_access_part(path_of(source, path), source->arena, content, err) : 0;
}

/* The file that KEY names, where its content does not stand beside it; "": none. */
static const char *file_of(const struct source *source, const struct doc *from, const char *key)
{
    const bool has_data = string_of(from, arena_format(source->arena, "%s-data", key))[0] != '\0';
    return has_data ? "" : path_of(source, string_of(from, key));
}

/* The entry of a list by its name, as kubeconfigs have them ({name: N, KIND: {…}}), and where it
 * stands. Of several files the first that has the name: nothing of another's entry is added. */
static int entry_find(const struct sources *sources, const char *list, const char *kind,
                      const char *name, const struct source **source, const struct doc **entry,
                      struct err *err)
{
    for (size_t k = 0; k < sources->count; k++) {
        const struct doc *entries = doc_get_list(sources->items[k].doc, list);
        for (size_t i = 0; i < entries->as.list.count; i++) {
            const struct doc *item = entries->as.list.items[i];
            if (strcmp(string_of(item, "name"), name) != 0)
                continue;
            *source = &sources->items[k];
            *entry = doc_get_map(item, kind);
            return 0;
        }
    }
    return sources->count == 1
               ? err_fail(err, ERR_INVALID, list, "%.100s: it has no %s \"%.60s\"",
                          sources->items[0].path, kind, name)
               : err_fail(err, ERR_INVALID, list,
                          "%.100s and %zu more kubeconfigs: they have no %s \"%.60s\"",
                          sources->items[0].path, sources->count - 1, kind, name);
}

static int cluster_read(const struct source *source, const struct doc *cluster,
                        struct kube_access *access, struct err *err)
{
    struct text server = text_of(string_of(cluster, "server"));
    while (server.length > 0 && server.at[server.length - 1] == '/')
        server.length--;
    if (!text_starts(server, TEXT("https://")) && !text_starts(server, TEXT("http://")))
        return err_fail(err, ERR_INVALID, "clusters.cluster.server",
                        "%.100s: the server's address begins with neither https:// nor http://",
                        source->path);
    access->server = arena_copy(source->arena, server);
    access->server_name = string_of(cluster, "tls-server-name");
    access->proxy = string_of(cluster, "proxy-url");
    access->is_unchecked = doc_get_bool(cluster, "insecure-skip-tls-verify", false);
    access->ca_path = file_of(source, cluster, "certificate-authority");
    return part_read(source, cluster, "certificate-authority", &access->ca, err);
}

/* --- exec plugins --- */

/* A relative path begins at the kubeconfig's folder; a name without a slash is found in PATH. */
static const char *command_of(const struct source *source, const char *command)
{
    return strchr(command, '/') ? path_of(source, command) : command;
}

static int plugin_fail(const struct source *source, const char *key, const char *what,
                       struct err *err)
{
    return err_fail(err, ERR_INVALID, arena_format(source->arena, "users.user.exec%s", key),
                    "%.120s: %s", source->path, what);
}

static int arguments_read(const struct source *source, const struct doc *exec,
                          struct kube_plugin *plugin, struct err *err)
{
    const struct doc *list = doc_get_list(exec, "args");
    const size_t count = list->as.list.count;
    if (count > ACCESS_ITEMS_MAX)
        return plugin_fail(source, ".args", "there are more than 256 arguments", err);
    const char **arguments = ARENA_ARRAY(source->arena, const char *, count + 2);
    arguments[0] = plugin->command;
    for (size_t i = 0; i < count; i++) {
        const struct doc *item = list->as.list.items[i];
        if (item->kind != DOC_STRING)
            return plugin_fail(source, ".args", "each argument must be a string", err);
        arguments[i + 1] = item->as.string.at;
    }
    plugin->arguments = arguments;
    return 0;
}

static int env_read(const struct source *source, const struct doc *exec, struct kube_plugin *plugin,
                    struct err *err)
{
    const struct doc *list = doc_get_list(exec, "env");
    const size_t count = list->as.list.count;
    if (count > ACCESS_ITEMS_MAX)
        return plugin_fail(source, ".env", "there are more than 256 variables", err);
    const char **env = ARENA_ARRAY(source->arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *name = string_of(list->as.list.items[i], "name");
        if (!name[0] || strchr(name, '='))
            return plugin_fail(source, ".env", "a variable has no name", err);
        env[i] =
            arena_format(source->arena, "%s=%s", name, string_of(list->as.list.items[i], "value"));
    }
    plugin->env = env;
    return 0;
}

/* v1 asks that it is said; v1beta1 has "if there is one". */
static int terminal_read(const struct source *source, const struct doc *exec,
                         struct kube_plugin *plugin, struct err *err)
{
    const char *mode = string_of(exec, "interactiveMode");
    const bool is_beta = strcmp(plugin->version, ACCESS_PLUGIN_V1) != 0;
    plugin->needs_terminal = strcmp(mode, "Always") == 0;
    plugin->can_use_terminal =
        plugin->needs_terminal || strcmp(mode, "IfAvailable") == 0 || (is_beta && !mode[0]);
    if (plugin->can_use_terminal || strcmp(mode, "Never") == 0)
        return 0;
    return plugin_fail(source, ".interactiveMode", "it must be Never, IfAvailable or Always", err);
}

/* What the kubeconfig has for plugins in the cluster's extensions. */
static int cluster_config_read(const struct source *source, const struct doc *cluster,
                               struct kube_plugin *plugin, struct err *err)
{
    static const char name[] = "client.authentication.k8s.io/exec";
    const struct doc *list = doc_get_list(cluster, "extensions");
    cleanup_buf struct buf json = BUF_INIT;
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *item = list->as.list.items[i], *value = doc_get(item, "extension");
        if (strcmp(string_of(item, "name"), name) != 0 || !value)
            continue;
        if (doc_to_json(value, ACCESS_FILE_MAX, &json) < 0)
            return err_fail(err, ERR_TOO_BIG, "clusters.cluster.extensions", "%.150s: too large",
                            source->path);
        plugin->cluster_config = arena_copy(source->arena, buf_as_text(&json));
    }
    return 0;
}

static int plugin_read(const struct source *source, const struct doc *exec,
                       const struct doc *cluster, struct kube_access *access, struct err *err)
{
    struct kube_plugin *plugin = ARENA_NEW(source->arena, struct kube_plugin);
    *plugin = (struct kube_plugin){
        .command = command_of(source, string_of(exec, "command")),
        .version = string_of(exec, "apiVersion"),
        .hint = string_of(exec, "installHint"),
        .cluster_config = "",
        .wants_cluster = doc_get_bool(exec, "provideClusterInfo", false),
    };
    if (strcmp(plugin->version, ACCESS_PLUGIN_V1) != 0 &&
        strcmp(plugin->version, ACCESS_PLUGIN_V1BETA1) != 0)
        return plugin_fail(source, ".apiVersion",
                           "it must be " ACCESS_PLUGIN_V1 " or " ACCESS_PLUGIN_V1BETA1, err);
    if (!plugin->command[0])
        return plugin_fail(source, ".command", "it names no command", err);
    int code = arguments_read(source, exec, plugin, err);
    if (code == 0)
        code = env_read(source, exec, plugin, err);
    if (code == 0)
        code = terminal_read(source, exec, plugin, err);
    if (code == 0 && plugin->wants_cluster)
        code = cluster_config_read(source, cluster, plugin, err);
    access->plugin = plugin;
    return code;
}

static int user_read(const struct source *source, const struct doc *user, const struct doc *cluster,
                     struct kube_access *access, struct err *err)
{
    static const char *const unknown[] = {"auth-provider", "username", "password",     "as",
                                          "as-groups",     "as-uid",   "as-user-extra"};
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        if (doc_get(user, unknown[i]))
            return err_fail(err, ERR_UNSUPPORTED, "users.user",
                            "%.100s: its user has %s, which is not offered; a token, a client "
                            "certificate or exec is",
                            source->path, unknown[i]);
    access->token = string_of(user, "token");
    access->token_path = path_of(source, string_of(user, "tokenFile"));
    access->certificate_path = file_of(source, user, "client-certificate");
    access->key_path = file_of(source, user, "client-key");
    int code = part_read(source, user, "client-certificate", &access->certificate, err);
    if (code == 0)
        code = part_read(source, user, "client-key", &access->key, err);
    if (code == 0 && (access->certificate.length > 0) != (access->key.length > 0))
        code = err_fail(err, ERR_INVALID, "users.user",
                        "%.100s: client-certificate and client-key belong together", source->path);
    const struct doc *exec = doc_get(user, "exec");
    if (code < 0 || !exec)
        return code;
    if (access->token[0] || access->token_path[0] || access->certificate.length > 0)
        return plugin_fail(source, "", "its user has a token or a certificate beside exec", err);
    return plugin_read(source, exec, cluster, access, err);
}

static int document_read(struct source *source, struct text content, struct err *err)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, source->arena);
    source->doc = doc_parse(content, DOC_YAML, source->arena, &problems);
    if (!source->doc || problems.error_count > 0)
        return err_fail(err, ERR_INVALID, "", "%.150s is no YAML document", source->path);
    return 0;
}

static int source_add(struct sources *sources, const char *path, struct arena *arena,
                      struct err *err)
{
    struct text content = {0};
    const char *slash = strrchr(path, '/');
    if (sources->count == ACCESS_FILES_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "KUBECONFIG names more than %d files",
                        ACCESS_FILES_MAX);
    struct source *source = &sources->items[sources->count];
    *source = (struct source){
        .path = arena_copy(arena, text_of(path)),
        .folder = slash ? arena_copy(arena, (struct text){path, (size_t)(slash - path)}) : ".",
        .arena = arena};
    int code = kube_access_part(path, arena, &content, err);
    if (code == 0)
        code = document_read(source, content, err);
    if (code == 0)
        sources->count++;
    return code;
}

static int sources_read(const struct sources *sources, const char *context,
                        struct kube_access *access, struct err *err)
{
    const struct doc *entry = NULL, *cluster = NULL, *user = NULL;
    const struct source *source = NULL;
    for (size_t i = 0; i < sources->count && !context[0]; i++)
        context = string_of(sources->items[i].doc, "current-context");
    if (!context[0])
        return err_fail(err, ERR_INVALID, "current-context", "%.150s has none, and none is named",
                        sources->items[0].path);
    int code = entry_find(sources, "contexts", "context", context, &source, &entry, err);
    if (code < 0)
        return code;
    access->space = string_of(entry, "namespace");
    code = entry_find(sources, "clusters", "cluster", string_of(entry, "cluster"), &source,
                      &cluster, err);
    if (code == 0)
        code = cluster_read(source, cluster, access, err);
    if (code == 0)
        code = entry_find(sources, "users", "user", string_of(entry, "user"), &source, &user, err);
    if (code < 0)
        return code;
    access->path = source->path;
    return user_read(source, user, cluster, access, err);
}

int kube_access_of_file(const char *path, const char *context, struct arena *arena,
                        struct kube_access *access, struct err *err)
{
    struct sources sources = {.count = 0};
    *access = (struct kube_access){.path = ""};
    int code = source_add(&sources, path, arena, err);
    return code < 0 ? code : sources_read(&sources, context, access, err);
}

int kube_access_of_files(const char *paths, const char *context, struct arena *arena,
                         struct kube_access *access, struct err *err)
{
    struct sources sources = {.count = 0};
    struct text rest = text_of(paths);
    struct err why = {0};
    *access = (struct kube_access){.path = ""};
    while (rest.length > 0) {
        const char *path = arena_copy(arena, text_cut(&rest, ':'));
        const int code = path[0] ? source_add(&sources, path, arena, &why) : 0;
        if (code < 0 && code != ERR_NOT_FOUND)
            return err_fail(err, code, why.path, "%s", why.text);
    }
    if (sources.count == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "no kubeconfig is there: %.200s", paths);
    return sources_read(&sources, context, access, err);
}

int kube_access_of_pod(const char *host, const char *port, const char *folder, struct arena *arena,
                       struct kube_access *access, struct err *err)
{
    struct text space = {0};
    if (!host || !host[0] || !port || !port[0])
        return err_fail(err, ERR_UNAVAILABLE, "",
                        "this is no pod of a cluster (KUBERNETES_SERVICE_HOST is not set), and no "
                        "kubeconfig is named");
    *access = (struct kube_access){.token = "",
                                   .server_name = "",
                                   .proxy = "",
                                   .certificate_path = "",
                                   .key_path = "",
                                   .path = ""};
    const bool is_v6 = strchr(host, ':') != NULL;
    access->server =
        arena_format(arena, "https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
    access->token_path = arena_format(arena, "%s/token", folder);
    access->ca_path = arena_format(arena, "%s/ca.crt", folder);
    int code = kube_access_part(access->ca_path, arena, &access->ca, err);
    if (code == 0)
        code = kube_access_part(arena_format(arena, "%s/namespace", folder), arena, &space, err);
    if (code == 0)
        access->space = arena_copy(arena, text_trim(space));
    return code;
}
