#include "engine/local/registry.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
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

/* One exchange: what to ask for, then what came. */
struct exchange {
    const char *url;
    const char *user, *password; /* "": none */
    const char *token;           /* NULL: none */
    bool is_head, is_insecure;
    long status;
    struct buf challenge; /* WWW-Authenticate */
    struct buf body;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_prepare(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t body_take(char *bytes, size_t one, size_t count, void *context)
{
    struct exchange *exchange = context;
    if (exchange->body.length + one * count > ANSWER_BYTES_MAX)
        return 0; /* ends the exchange as an error */
    buf_add(&exchange->body, bytes, one * count);
    return one * count;
}

static size_t header_take(char *bytes, size_t one, size_t count, void *context)
{
    static const char name[] = "www-authenticate:";
    struct exchange *exchange = context;
    size_t length = one * count;
    if (length > sizeof name && length < TOKEN_CHALLENGE_MAX &&
        strncasecmp(bytes, name, sizeof name - 1) == 0) {
        struct text value = {bytes + sizeof name - 1, length - sizeof name + 1};
        buf_clear(&exchange->challenge);
        buf_text(&exchange->challenge, text_trim(value));
    }
    return length;
}

static int exchange_run(struct exchange *exchange, struct err *err)
{
    pthread_once(&curl_once, curl_prepare);
    buf_clear(&exchange->challenge);
    buf_clear(&exchange->body);
    CURL *curl = curl_easy_init();
    if (!curl)
        return err_fail(err, ERR_UNAVAILABLE, "", "libcurl does not start");
    char failure[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = curl_slist_append(NULL, accepted);
    curl_easy_setopt(curl, CURLOPT_URL, exchange->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, exchange->is_insecure ? "http,https" : "https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, failure);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_NOBODY, exchange->is_head ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body_take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header_take);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, exchange);
    if (exchange->is_insecure) {
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (exchange->token) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, exchange->token);
    } else if (exchange->user[0]) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(curl, CURLOPT_USERNAME, exchange->user);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, exchange->password);
    }
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &exchange->status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    if (code == CURLE_OK)
        return 0;
    return err_fail(err, ERR_UNAVAILABLE, "", "%s",
                    failure[0] ? failure : curl_easy_strerror(code));
}

static void exchange_release(struct exchange *exchange)
{
    if (exchange->body.at) /* it may have been a token */
        sodium_memzero(exchange->body.at, exchange->body.length);
    buf_release(&exchange->body);
    buf_release(&exchange->challenge);
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
    struct buf url = BUF_INIT;
    buf_string(&url, realm);
    bool has_query = strchr(realm, '?') != NULL;
    url_add(&url, has_query ? '&' : '?', "service", service);
    url_add(&url, has_query || service[0] ? '&' : '?', "scope",
            parameter_find(challenge, "scope", arena));
    const char *copy = arena_copy(arena, buf_as_text(&url));
    buf_release(&url);
    return copy;
}

/* Asks again with what the challenge wants. The status of who refused stays in the exchange. */
static int challenge_answer(struct exchange *exchange, struct err *err)
{
    struct arena arena;
    arena_init(&arena);
    const char *url = registry_token_url(buf_as_text(&exchange->challenge), &arena);
    int result = 0;
    if (url[0]) {
        struct exchange issuer = *exchange;
        issuer.url = url;
        issuer.is_head = false;
        issuer.challenge = issuer.body = (struct buf)BUF_INIT;
        result = exchange_run(&issuer, err);
        const struct doc *doc = result == 0 && issuer.status == 200
                                    ? document_read(buf_as_text(&issuer.body), false, &arena)
                                    : NULL;
        const char *token = document_string(doc, "token");
        exchange->token = token[0] ? token : document_string(doc, "access_token");
        if (result == 0 && exchange->token[0])
            result = exchange_run(exchange, err);
        else if (result == 0 && issuer.status != 200)
            exchange->status = issuer.status;
        exchange->token = NULL;
        exchange_release(&issuer);
    }
    arena_wipe(&arena);
    arena_release(&arena);
    return result;
}

/* --- questions --- */

static int status_ask(const struct registry *registry, const char *kind, const char *name,
                      long *status, struct err *err)
{
    static const char *const schemes[] = {"https", "http"};
    bool is_hub = strcmp(registry->host, "docker.io") == 0;
    int result = 0;
    for (size_t i = 0; i < (registry->is_insecure ? 2u : 1u); i++) {
        struct buf url = BUF_INIT;
        buf_format(&url, "%s://%s/v2/%s/%s/%s", schemes[i],
                   is_hub ? "registry-1.docker.io" : registry->host, registry->path, kind, name);
        struct exchange exchange = {.url = buf_cstr(&url),
                                    .user = "",
                                    .password = "",
                                    .is_head = true,
                                    .is_insecure = registry->is_insecure};
        result = exchange_run(&exchange, err);
        if (result == 0 && exchange.status == 401) { /* who asks is told only now */
            exchange.user = registry->user;
            exchange.password = registry->password;
            bool is_basic = strncasecmp(buf_cstr(&exchange.challenge), "basic", 5) == 0;
            if (!is_basic)
                result = challenge_answer(&exchange, err);
            else if (registry->user[0])
                result = exchange_run(&exchange, err);
        }
        *status = exchange.status;
        exchange_release(&exchange);
        buf_release(&url);
        if (result == 0)
            return 0;
    }
    return result;
}

int registry_manifest_status(const struct registry *registry, const char *name, long *status,
                             struct err *err)
{
    return status_ask(registry, "manifests", name, status, err);
}

bool registry_has_blob(const struct registry *registry, const char *digest)
{
    long status;
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
