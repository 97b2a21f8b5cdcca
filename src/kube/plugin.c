#include "kube/plugin.h"

#include <assert.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/utc.h"
#include "doc/doc.h"
#include "kube/access.h"
#include "sys/process.h"

enum { COMPLAINT_SHOWN = 120 };

extern char **environ;

static void bytes_wipe(struct buf *buf)
{
    if (buf->at)
        explicit_bzero(buf->at, buf->room);
    buf_release(buf);
}

void kube_credential_release(struct kube_credential *credential)
{
    bytes_wipe(&credential->header);
    bytes_wipe(&credential->certificate);
    bytes_wipe(&credential->key);
    buf_release(&credential->ca);
    *credential = (struct kube_credential){0};
}

/* --- what it is told --- */

static void bytes_write(struct json_writer *json, const char *key, struct text bytes)
{
    gnutls_datum_t encoded = {0};
    if (gnutls_base64_encode2(
            &(gnutls_datum_t){(unsigned char *)(uintptr_t)bytes.at, (unsigned)bytes.length},
            &encoded) < 0)
        abort(); /* as of malloc */
    json_key_text(json, key, (struct text){(const char *)encoded.data, encoded.size});
    gnutls_free(encoded.data);
}

static void cluster_write(const struct kube_access *access, struct json_writer *json)
{
    json_key(json, "cluster");
    json_object(json);
    json_key_string(json, "server", access->server);
    if (access->server_name[0])
        json_key_string(json, "tls-server-name", access->server_name);
    if (access->is_unchecked)
        json_key_bool(json, "insecure-skip-tls-verify", true);
    if (access->ca.length > 0)
        bytes_write(json, "certificate-authority-data", access->ca);
    if (access->proxy[0])
        json_key_string(json, "proxy-url", access->proxy);
    if (access->plugin->cluster_config[0]) {
        json_key(json, "config");
        json_raw(json, text_of(access->plugin->cluster_config));
    }
    json_object_end(json);
}

void kube_plugin_info(const struct kube_access *access, bool has_terminal, struct buf *out)
{
    struct json_writer json;
    json_init(&json, out);
    json_object(&json);
    json_key_string(&json, "kind", "ExecCredential");
    json_key_string(&json, "apiVersion", access->plugin->version);
    json_key(&json, "spec");
    json_object(&json);
    json_key_bool(&json, "interactive", has_terminal);
    if (access->plugin->wants_cluster)
        cluster_write(access, &json);
    json_object_end(&json);
    json_object_end(&json);
}

/* --- what it says --- */

static int credential_fail(const struct kube_access *access, const char *what, struct err *err)
{
    return err_fail(err, ERR_INVALID, "", "the exec plugin %.100s of %.80s %s",
                    access->plugin->command, access->path, what);
}

static struct text status_text(const struct doc *status, const char *key)
{
    return doc_get_text(status, key, "");
}

/* A token becomes a line of a request. */
static bool token_is_good(struct text token)
{
    for (size_t i = 0; i < token.length; i++)
        if ((unsigned char)token.at[i] <= ' ' || (unsigned char)token.at[i] >= 0x7f)
            return false;
    return true;
}

static int status_read(const struct kube_access *access, const struct doc *status,
                       struct kube_credential *credential, struct err *err)
{
    const struct text token = status_text(status, "token");
    const struct text certificate = status_text(status, "clientCertificateData");
    const struct text key = status_text(status, "clientKeyData");
    const struct text expires = status_text(status, "expirationTimestamp");
    if (token.length == 0 && certificate.length == 0)
        return credential_fail(access, "says neither a token nor a client certificate", err);
    if ((certificate.length > 0) != (key.length > 0))
        return credential_fail(access, "says a client certificate without its key, or a key alone",
                               err);
    if (!token_is_good(token))
        return credential_fail(access, "says a token with characters that none has", err);
    if (expires.length > 0 &&
        (!utc_read(expires, &credential->expires_ms) || credential->expires_ms == 0))
        return credential_fail(access, "says an expirationTimestamp that is no time", err);
    if (token.length > 0)
        buf_format(&credential->header, "Authorization: Bearer %.*s", TEXT_ARG(token));
    buf_text(&credential->certificate, certificate);
    buf_text(&credential->key, key);
    return 0;
}

int kube_plugin_read(const struct kube_access *access, struct text answer,
                     struct kube_credential *credential, struct err *err)
{
    struct arena arena;
    cleanup_problems struct problems problems;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(answer, DOC_JSON, &arena, &problems);
    int code = 0;
    *credential = (struct kube_credential){0};
    if (!doc || problems.error_count > 0 || doc->kind != DOC_MAP)
        code = credential_fail(access, "does not answer with JSON", err);
    else if (!text_is(doc_get_text(doc, "kind", ""), "ExecCredential"))
        code = credential_fail(access, "does not answer with an ExecCredential", err);
    else if (!text_is(doc_get_text(doc, "apiVersion", ""), access->plugin->version))
        code =
            credential_fail(access, "answers with another apiVersion than the kubeconfig's", err);
    else
        code = status_read(access, doc_get(doc, "status"), credential, err);
    arena_wipe(&arena);
    arena_release(&arena);
    if (code < 0)
        kube_credential_release(credential);
    return code;
}

/* --- it runs --- */

static bool is_replaced(const char *variable, const char *const *by)
{
    const size_t length = strcspn(variable, "=") + 1;
    for (; *by; by++)
        if (strncmp(variable, *by, length) == 0)
            return true;
    return false;
}

/* Ours, but for those that it has of its own. */
static const char *const *env_make(const struct kube_plugin *plugin, const char *info,
                                   struct arena *arena)
{
    size_t ours = 0, own = 0, count = 0;
    while (environ[ours])
        ours++;
    while (plugin->env[own])
        own++;
    const char **more = ARENA_ARRAY(arena, const char *, own + 2);
    if (own > 0)
        memcpy(more, plugin->env, own * sizeof *more);
    more[own] = info;
    const char **env = ARENA_ARRAY(arena, const char *, ours + own + 2);
    for (size_t i = 0; i < ours; i++)
        if (!is_replaced(environ[i], more))
            env[count++] = environ[i];
    memcpy(env + count, more, (own + 1) * sizeof *env);
    return env;
}

/* Its last words, in one line. */
static void complaint_shorten(struct buf *complaint, struct arena *arena, const char **shown)
{
    struct text text = text_trim(buf_as_text(complaint));
    if (text.length > COMPLAINT_SHOWN)
        text = (struct text){text.at + text.length - COMPLAINT_SHOWN, COMPLAINT_SHOWN};
    char *line = arena_copy(arena, text);
    for (char *at = line; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = ' ';
    *shown = line;
}

static int answer_take(const struct kube_access *access, int exit_code, struct text answer,
                       struct buf *complaint, struct arena *arena,
                       struct kube_credential *credential, struct err *err)
{
    const char *shown;
    if (exit_code == 0)
        return kube_plugin_read(access, answer, credential, err);
    complaint_shorten(complaint, arena, &shown);
    return err_fail(err, ERR_UNAVAILABLE, "",
                    "the exec plugin %.60s of %.60s ends with code %d%s%s", access->plugin->command,
                    access->path, exit_code, shown[0] ? ": " : "", shown);
}

static int start_fail(const struct kube_access *access, int code, struct err *err)
{
    const struct kube_plugin *plugin = access->plugin;
    char why[120];
    snprintf(why, sizeof why, "%.110s", err ? err->text : "");
    if (code == ERR_NOT_FOUND)
        return err_fail(err, code, "", "there is no command %.60s, the exec plugin of %.60s%s%.80s",
                        plugin->command, access->path, plugin->hint[0] ? ": " : "", plugin->hint);
    return err_fail(err, code, "", "the exec plugin of %.80s: %s", access->path, why);
}

int kube_plugin_run(const struct kube_access *access, bool has_terminal, int stop,
                    struct kube_credential *credential, struct err *err)
{
    const struct kube_plugin *plugin = access->plugin;
    cleanup_arena struct arena arena;
    cleanup_buf struct buf info = BUF_INIT, complaint = BUF_INIT;
    struct buf answer = BUF_INIT;
    struct err why = {0};
    int exit_code = 0;
    assert(plugin);
    arena_init(&arena);
    *credential = (struct kube_credential){0};
    const bool shows = has_terminal && plugin->can_use_terminal;
    if (plugin->needs_terminal && !has_terminal)
        return err_fail(err, ERR_UNSUPPORTED, "",
                        "the exec plugin %.80s of %.80s wants a terminal (interactiveMode: "
                        "Always), and there is none",
                        plugin->command, access->path);
    buf_string(&info, "KUBERNETES_EXEC_INFO=");
    kube_plugin_info(access, shows, &info);
    const struct process process = {.argv = plugin->arguments,
                                    .env = env_make(plugin, buf_cstr(&info), &arena),
                                    .in = shows ? 0 : -1,
                                    .out = -1,
                                    .err = shows ? STDERR_FILENO : -1,
                                    .is_bound = true,
                                    /* one that asks somebody must read from the terminal */
                                    .is_group = !shows,
                                    .stop = stop};
    int code =
        process_run(&process, PLUGIN_MS, &answer, shows ? NULL : &complaint, &exit_code, &why);
    if (code < 0) {
        if (err)
            *err = why;
        code = start_fail(access, code, err);
    } else {
        code = answer_take(access, exit_code, buf_as_text(&answer), &complaint, &arena, credential,
                           err);
    }
    bytes_wipe(&answer);
    return code;
}
