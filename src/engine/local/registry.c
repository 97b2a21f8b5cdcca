#include "engine/local/registry.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include <assert.h>
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
    static const char bearer[] = "bearer ";
    if (challenge.length < sizeof bearer - 1 ||
        strncasecmp(challenge.at, bearer, sizeof bearer - 1) != 0)
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

/* What came of a challenge. */
enum meeting {
    MEETING_DONE,    /* there is what it wants: ask again */
    MEETING_REFUSED, /* *status is that of who refuses the credentials */
    MEETING_OPEN,    /* nobody has said anything about them */
};

/* That a token service is away, or busy, says nothing of the credentials. */
static enum meeting token_ask(struct registry *registry, const char *url, struct arena *arena,
                              long *status)
{
    long issued = 0;
    assert(url[0]);
    if (exchange_run(registry, url, true, &issued, NULL) < 0)
        return MEETING_OPEN;
    if (issued == 401 || issued == 403) {
        *status = issued;
        return MEETING_REFUSED;
    }
    if (issued != 200)
        return MEETING_OPEN;
    const struct doc *doc = document_read(buf_as_text(&registry->body), false, arena);
    const char *token = document_string(doc, "token");
    token = token[0] ? token : document_string(doc, "access_token");
    secret_free(registry->token);
    registry->token = token[0] ? mem_copy(token) : NULL;
    return token[0] ? MEETING_DONE : MEETING_OPEN;
}

/* Gets what the challenge wants. */
static enum meeting challenge_meet(struct registry *registry, long *status)
{
    if (strncasecmp(buf_cstr(&registry->challenge), "basic", 5) == 0) {
        const bool is_met = registry->config.user[0] && !registry->is_basic;
        registry->is_basic = true;
        return is_met ? MEETING_DONE : MEETING_REFUSED;
    }
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const char *url = registry_token_url(buf_as_text(&registry->challenge), &arena);
    enum meeting meeting = url[0] ? token_ask(registry, url, &arena, status) : MEETING_OPEN;
    arena_wipe(&arena);
    return meeting;
}

/* --- questions --- */

/* To others it may show what it hides from us: that, too, is 404 at some registries. */
static bool is_for_us_alone(const struct registry *registry, long status)
{
    return registry->config.has_other_credentials &&
           (status == 401 || status == 403 || status == 404);
}

static int url_ask(struct registry *registry, const char *url, long *status, struct err *err)
{
    enum meeting meeting = MEETING_REFUSED;
    int code = exchange_run(registry, url, false, status, err);
    if (code == 0 && *status == 401)
        meeting = challenge_meet(registry, status);
    if (meeting == MEETING_DONE)
        code = exchange_run(registry, url, false, status, err);
    if (code == 0 && meeting == MEETING_OPEN)
        code = err_fail(err, ERR_UNAVAILABLE, "", "the registry wants a token, and there is none");
    if (code == 0 && is_for_us_alone(registry, *status))
        code = err_fail(err, ERR_UNAVAILABLE, "", "it was asked without the pull's credentials");
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
        if (code == 0 || *status || registry->scheme) {
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

/* Of "https://HOST/v1/", as old versions of `docker login` wrote it, the host. */
static struct text auth_key_host(struct text key)
{
    static const char *const schemes[] = {"https://", "http://"};
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        const size_t length = strlen(schemes[i]);
        if (!text_starts(key, text_of(schemes[i])))
            continue;
        struct text rest = {key.at + length, key.length - length};
        return text_cut(&rest, '/');
    }
    return key;
}

static bool host_is_hub(struct text host)
{
    return text_is(host, "docker.io") || text_is(host, "index.docker.io") ||
           text_is(host, "registry-1.docker.io");
}

/* The repository's own, that of the nearest namespace above it, or the host's. */
static const struct doc *auth_entry(const struct doc *auths, const char *host, const char *path,
                                    struct arena *arena)
{
    char *key = arena_format(arena, "%s/%s", host, path);
    const struct doc *entry = doc_get(auths, key);
    for (char *end; !entry && (end = strrchr(key, '/'));) {
        *end = '\0';
        entry = doc_get(auths, key);
    }
    const size_t count = auths && auths->kind == DOC_MAP ? auths->as.map.count : 0;
    for (size_t i = 0; i < count && !entry; i++) {
        const struct text found = auth_key_host(auths->as.map.entries[i].key);
        if (text_is(found, host) || (host_is_hub(found) && host_is_hub(text_of(host))))
            entry = auths->as.map.entries[i].value;
    }
    return entry;
}

enum registry_auth registry_auth_find(struct text file, const char *host, const char *path,
                                      struct arena *arena, const char **user, const char **password)
{
    const struct doc *doc = document_read(file, false, arena);
    if (!doc || doc_get(doc_get(doc, "credHelpers"), host))
        return REGISTRY_AUTH_OTHER;
    const struct doc *entry = auth_entry(doc_get(doc, "auths"), host, path, arena);
    const char *encoded = document_string(entry, "auth");
    size_t room = strlen(encoded) + 1, length = 0;
    char *plain = arena_alloc(arena, room);
    if (document_string(entry, "identitytoken")[0] ||
        sodium_base642bin((unsigned char *)plain, room - 1, encoded, strlen(encoded), NULL, &length,
                          NULL, sodium_base64_VARIANT_ORIGINAL) < 0)
        return REGISTRY_AUTH_OTHER;
    char *colon = memchr(plain, ':', length);
    if (!colon)
        return REGISTRY_AUTH_NONE;
    plain[length] = '\0';
    *colon = 0;
    *user = plain;
    *password = colon + 1;
    return REGISTRY_AUTH_FOUND;
}
