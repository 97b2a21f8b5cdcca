#include "engine/kubernetes/access.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "sys/file.h"

/* A document and the folder that its relative paths begin at. */
struct source {
    const char *path, *folder;
    struct arena *arena;
};

static const char *path_of(const struct source *source, const char *path)
{
    if (!path[0] || path[0] == '/')
        return path;
    return arena_format(source->arena, "%s/%s", source->folder, path);
}

static int whole_read(const char *path, struct arena *arena, struct text *content, struct err *err)
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
    const char *data = object_string(from, data_key), *path = object_string(from, key);
    *content = TEXT("");
    if (data[0]) {
        if (!base64_read(text_of(data), source->arena, content))
            return err_fail(err, ERR_INVALID, data_key, "%.120s: it is no base64", source->path);
        return 0;
    }
    return path[0] ? whole_read(path_of(source, path), source->arena, content, err) : 0;
}

/* The entry of a list by its name, as kubeconfigs have them: {name: N, KIND: {…}}. */
static int entry_find(const struct source *source, const struct doc *doc, const char *list,
                      const char *kind, const char *name, const struct doc **entry, struct err *err)
{
    const struct doc *entries = doc_get_list(doc, list);
    for (size_t i = 0; i < entries->as.list.count; i++) {
        const struct doc *item = entries->as.list.items[i];
        if (strcmp(object_string(item, "name"), name) == 0) {
            *entry = doc_get_map(item, kind);
            return 0;
        }
    }
    return err_fail(err, ERR_INVALID, list, "%.100s: it has no %s \"%.60s\"", source->path, kind,
                    name);
}

static int cluster_read(const struct source *source, const struct doc *cluster,
                        struct kube_access *access, struct err *err)
{
    struct text server = text_of(object_string(cluster, "server"));
    while (server.length > 0 && server.at[server.length - 1] == '/')
        server.length--;
    if (!text_starts(server, TEXT("https://")) && !text_starts(server, TEXT("http://")))
        return err_fail(err, ERR_INVALID, "clusters.cluster.server",
                        "%.100s: the server's address begins with neither https:// nor http://",
                        source->path);
    access->server = arena_copy(source->arena, server);
    access->server_name = object_string(cluster, "tls-server-name");
    access->proxy = object_string(cluster, "proxy-url");
    access->is_unchecked = doc_get_bool(cluster, "insecure-skip-tls-verify", false);
    return part_read(source, cluster, "certificate-authority", &access->ca, err);
}

static int user_read(const struct source *source, const struct doc *user,
                     struct kube_access *access, struct err *err)
{
    static const char *const unknown[] = {"exec", "auth-provider", "username", "password",
                                          "as",   "as-groups"};
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        if (doc_get(user, unknown[i]))
            return err_fail(err, ERR_UNSUPPORTED, "users.user",
                            "%.100s: its user has %s, which is not offered; a token or a client "
                            "certificate is",
                            source->path, unknown[i]);
    access->token = object_string(user, "token");
    access->token_path = path_of(source, object_string(user, "tokenFile"));
    int code = part_read(source, user, "client-certificate", &access->certificate, err);
    if (code == 0)
        code = part_read(source, user, "client-key", &access->key, err);
    if (code == 0 && (access->certificate.length > 0) != (access->key.length > 0))
        code = err_fail(err, ERR_INVALID, "users.user",
                        "%.100s: client-certificate and client-key belong together", source->path);
    return code;
}

static int document_read(const struct source *source, const char *context, struct text content,
                         struct kube_access *access, struct err *err)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, source->arena);
    const struct doc *doc = doc_parse(content, DOC_YAML, source->arena, &problems), *entry = NULL;
    if (!doc || problems.error_count > 0)
        return err_fail(err, ERR_INVALID, "", "%.150s is no YAML document", source->path);
    if (!context[0])
        context = object_string(doc, "current-context");
    if (!context[0])
        return err_fail(err, ERR_INVALID, "current-context", "%.150s has none, and none is named",
                        source->path);
    int code = entry_find(source, doc, "contexts", "context", context, &entry, err);
    if (code < 0)
        return code;
    access->space = object_string(entry, "namespace");
    const char *user = object_string(entry, "user");
    code = entry_find(source, doc, "clusters", "cluster", object_string(entry, "cluster"), &entry,
                      err);
    if (code == 0)
        code = cluster_read(source, entry, access, err);
    if (code == 0)
        code = entry_find(source, doc, "users", "user", user, &entry, err);
    return code < 0 ? code : user_read(source, entry, access, err);
}

int kube_access_of_file(const char *path, const char *context, struct arena *arena,
                        struct kube_access *access, struct err *err)
{
    struct text content = {0};
    const char *slash = strrchr(path, '/');
    struct source source = {
        path, slash ? arena_copy(arena, (struct text){path, (size_t)(slash - path)}) : ".", arena};
    *access = (struct kube_access){0};
    int code = whole_read(path, arena, &content, err);
    return code < 0 ? code : document_read(&source, context, content, access, err);
}

int kube_access_of_pod(const char *host, const char *port, const char *folder, struct arena *arena,
                       struct kube_access *access, struct err *err)
{
    struct text space = {0};
    if (!host || !host[0] || !port || !port[0])
        return err_fail(err, ERR_UNAVAILABLE, "",
                        "this is no pod of a cluster (KUBERNETES_SERVICE_HOST is not set), and no "
                        "kubeconfig is named");
    *access = (struct kube_access){.token = "", .server_name = "", .proxy = ""};
    const bool is_v6 = strchr(host, ':') != NULL;
    access->server =
        arena_format(arena, "https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
    access->token_path = arena_format(arena, "%s/token", folder);
    int code = whole_read(arena_format(arena, "%s/ca.crt", folder), arena, &access->ca, err);
    if (code == 0)
        code = whole_read(arena_format(arena, "%s/namespace", folder), arena, &space, err);
    if (code == 0)
        access->space = arena_copy(arena, text_trim(space));
    return code;
}

int kube_access_header(const struct kube_access *access, struct buf *out)
{
    struct buf bytes = BUF_INIT;
    struct text token = text_of(access->token);
    int code = 0;
    if (access->token_path[0]) {
        code = file_read(access->token_path, ACCESS_TOKEN_MAX, &bytes, NULL);
        token = text_trim(buf_as_text(&bytes));
    }
    if (code == 0 && token.length > 0)
        buf_format(out, "Authorization: Bearer %.*s", TEXT_ARG(token));
    if (bytes.at)
        explicit_bzero(bytes.at, bytes.room);
    buf_release(&bytes);
    return code;
}
