#include "engine/local/registry.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include <curl/curl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { ANSWER_BYTES_MAX = 64 << 10, TIMEOUT_MS = 20000, TOKEN_CHALLENGE_MAX = 4096 };

static const char accepted[] =
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";

struct registry {
    struct registry_config config;
    CURL *curl;
    const char *scheme; /* NULL: not known yet */
    char *token;        /* heap; NULL: none yet */
    bool is_basic;      /* it wants user and password with each question */
    bool is_silent;
    struct buf challenge; /* of the last answer: WWW-Authenticate */
    struct buf body;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_prepare(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t body_take(char *bytes, size_t one, size_t count, void *context)
{
    struct registry *registry = context;
    if (registry->body.length + one * count > ANSWER_BYTES_MAX)
        return 0; /* ends the exchange as an error */
    buf_add(&registry->body, bytes, one * count);
    return one * count;
}

static size_t header_take(char *bytes, size_t one, size_t count, void *context)
{
    static const char name[] = "www-authenticate:";
    struct registry *registry = context;
    size_t length = one * count;
    if (length > sizeof name && length < TOKEN_CHALLENGE_MAX &&
        strncasecmp(bytes, name, sizeof name - 1) == 0) {
        struct text value = {bytes + sizeof name - 1, length - sizeof name + 1};
        buf_clear(&registry->challenge);
        buf_text(&registry->challenge, text_trim(value));
    }
    return length;
}

/* Called once a second at least. */
static int progress_check(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct registry_config *config = &((struct registry *)context)->config;
    (void)a, (void)b, (void)c, (void)d;
    return config->is_stopping && config->is_stopping(config->context);
}

static void credentials_put(struct registry *registry, bool is_for_token)
{
    const struct registry_config *config = &registry->config;
    CURL *curl = registry->curl;
    if (registry->token && !is_for_token) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, registry->token);
    } else if (config->user[0] && (registry->is_basic || is_for_token)) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(curl, CURLOPT_USERNAME, config->user);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, config->password);
    }
}

/* One request: its status, with `challenge` and `body` filled. */
static int exchange_run(struct registry *registry, const char *url, bool is_for_token, long *status,
                        struct err *err)
{
    CURL *curl = registry->curl;
    char failure[CURL_ERROR_SIZE] = "";
    bool is_insecure = registry->config.is_insecure;
    struct curl_slist *headers = curl_slist_append(NULL, accepted);
    buf_clear(&registry->challenge);
    buf_clear(&registry->body);
    curl_easy_reset(curl); /* the connection stays */
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, is_insecure ? "http,https" : "https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, failure);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_NOBODY, is_for_token ? 0L : 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body_take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, registry);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header_take);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, registry);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress_check);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, registry);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, is_insecure ? 0L : 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, is_insecure ? 0L : 2L);
    credentials_put(registry, is_for_token);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    curl_slist_free_all(headers);
    if (code == CURLE_OK)
        return 0;
    return err_fail(err, ERR_UNAVAILABLE, "", "%s",
                    failure[0] ? failure : curl_easy_strerror(code));
}

static void secret_free(char *secret)
{
    if (secret)
        sodium_memzero(secret, strlen(secret));
    mem_free(secret);
}

struct registry *registry_new(const struct registry_config *config)
{
    pthread_once(&curl_once, curl_prepare);
    struct registry *registry = mem_zero(1, sizeof *registry);
    registry->config = *config;
    registry->curl = curl_easy_init();
    registry->is_silent = !registry->curl;
    return registry;
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    curl_easy_cleanup(registry->curl);
    secret_free(registry->token);
    if (registry->body.at) /* it may have been a token */
        sodium_memzero(registry->body.at, registry->body.length);
    buf_release(&registry->body);
    buf_release(&registry->challenge);
    mem_free(registry);
}

/* --- tokens --- */

/* key="value" of a challenge; "" when it is not there. */
static const char *parameter_find(struct text challenge, const char *key, struct arena *arena)
{
    const char *wanted = arena_format(arena, "%s=\"", key);
    size_t at = text_find(challenge, text_of(wanted));
    if (at == SIZE_MAX)
        return "";
    struct text rest = {challenge.at + at + strlen(wanted), challenge.length - at - strlen(wanted)};
    return arena_copy(arena, text_cut(&rest, '"'));
}

static void url_add(struct buf *url, char separator, const char *key, const char *value)
{
    if (!value[0])
        return;
    buf_format(url, "%c%s=", separator, key);
    for (const char *at = value; *at; at++)
        if ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
            (*at >= '0' && *at <= '9') || strchr("-._~:/,", *at))
            buf_char(url, *at);
        else
            buf_format(url, "%%%02X", (unsigned)(unsigned char)*at);
}

const char *registry_token_url(struct text challenge, struct arena *arena)
{
    struct text scheme = challenge;
    if (!text_is(text_cut(&scheme, ' '), "Bearer"))
        return "";
    const char *realm = parameter_find(challenge, "realm", arena);
    const char *service = parameter_find(challenge, "service", arena);
    if (!realm[0])
        return "";
    cleanup_buf struct buf url = BUF_INIT;
    buf_string(&url, realm);
    bool has_query = strchr(realm, '?') != NULL;
    url_add(&url, has_query ? '&' : '?', "service", service);
    url_add(&url, has_query || service[0] ? '&' : '?', "scope",
            parameter_find(challenge, "scope", arena));
    return arena_copy(arena, buf_as_text(&url));
}

/* Gets what the challenge wants. *status is that of who refuses it, else untouched; true: ask
 * again. */
static bool challenge_meet(struct registry *registry, long *status)
{
    long issued = 0;
    bool is_met = false;
    if (strncasecmp(buf_cstr(&registry->challenge), "basic", 5) == 0) {
        is_met = registry->config.user[0] && !registry->is_basic;
        registry->is_basic = true;
        return is_met;
    }
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const char *url = registry_token_url(buf_as_text(&registry->challenge), &arena);
    if (url[0] && exchange_run(registry, url, true, &issued, NULL) == 0 && issued == 200) {
        const struct doc *doc = document_read(buf_as_text(&registry->body), false, &arena);
        const char *token = document_string(doc, "token");
        token = token[0] ? token : document_string(doc, "access_token");
        secret_free(registry->token);
        registry->token = token[0] ? mem_copy(token) : NULL;
        is_met = token[0];
    } else if (issued) {
        *status = issued;
    }
    arena_wipe(&arena);
    return is_met;
}

/* --- questions --- */

static int url_ask(struct registry *registry, const char *url, long *status, struct err *err)
{
    int code = exchange_run(registry, url, false, status, err);
    if (code == 0 && *status == 401 && challenge_meet(registry, status))
        code = exchange_run(registry, url, false, status, err);
    return code;
}

/* With TLS first, as skopeo does; which of the two answered is known from then on. */
static int status_ask(struct registry *registry, const char *kind, const char *name, long *status,
                      struct err *err)
{
    static const char *const schemes[] = {"https", "http"};
    const struct registry_config *config = &registry->config;
    bool is_hub = strcmp(config->host, "docker.io") == 0;
    int code = ERR_UNAVAILABLE;
    if (registry->is_silent)
        return err_fail(err, code, "", "the registry did not answer before");
    for (size_t i = 0; i < (config->is_insecure ? 2u : 1u) && code < 0; i++) {
        const char *scheme = registry->scheme ? registry->scheme : schemes[i];
        cleanup_buf struct buf url = BUF_INIT;
        buf_format(&url, "%s://%s/v2/%s/%s/%s", scheme,
                   is_hub ? "registry-1.docker.io" : config->host, config->path, kind, name);
        code = url_ask(registry, buf_cstr(&url), status, err);
        if (code == 0 || registry->scheme) {
            registry->scheme = scheme;
            break;
        }
    }
    registry->is_silent = code < 0;
    return code;
}

int registry_manifest_status(struct registry *registry, const char *name, long *status,
                             struct err *err)
{
    return status_ask(registry, "manifests", name, status, err);
}

bool registry_has_blob(struct registry *registry, const char *digest)
{
    long status = 0;
    /* 307: the registry sends who may read it to where it is kept */
    return status_ask(registry, "blobs", digest, &status, NULL) == 0 &&
           (status == 200 || status == 307);
}

/* --- files of credentials --- */

bool registry_auth_find(struct text file, const char *host, struct arena *arena, const char **user,
                        const char **password)
{
    bool is_hub = strcmp(host, "docker.io") == 0;
    const struct doc *auths = doc_get(document_read(file, false, arena), "auths");
    const struct doc *entry = doc_get(auths, host);
    if (!entry && is_hub)
        entry = doc_get(auths, "https://index.docker.io/v1/");
    const char *encoded = document_string(entry, "auth");
    size_t room = strlen(encoded) + 1, length = 0;
    char *plain = arena_alloc(arena, room);
    if (!encoded[0] || sodium_base642bin((unsigned char *)plain, room - 1, encoded, strlen(encoded),
                                         NULL, &length, NULL, sodium_base64_VARIANT_ORIGINAL) < 0)
        return false;
    char *colon = memchr(plain, ':', length);
    if (!colon)
        return false;
    *colon = 0;
    *user = plain;
    *password = colon + 1;
    return true;
}
