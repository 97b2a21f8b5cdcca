#include "kube/route.h"

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "kube/access.h"
#include "kube/plugin.h"

static void blob_set(CURL *easy, CURLoption option, struct text bytes, unsigned flags)
{
    struct curl_blob blob = {(void *)(uintptr_t)bytes.at, bytes.length, flags};
    if (bytes.length > 0)
        curl_easy_setopt(easy, option, &blob);
}

/* Thousands of connections are quiet most of the time: their buffers, 34 KiB each, are kept only
 * while something is in them. */
static CURLcode buffers_lend(CURL *easy, void *tls, void *context)
{
    (void)easy, (void)context;
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    return CURLE_OK;
}

void kube_route_rest(CURL *easy)
{
    struct curl_tlssessioninfo *info = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) == CURLE_OK && info &&
        info->backend == CURLSSLBACKEND_OPENSSL && info->internals)
        SSL_free_buffers(info->internals);
}

static bool is_openssl(void)
{
    const char *tls = curl_version_info(CURLVERSION_NOW)->ssl_version;
    return tls && strncmp(tls, "OpenSSL/", 8) == 0;
}

static void tls_set(CURL *easy, const struct kube_access *access,
                    const struct kube_credential *credential)
{
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (is_openssl())
        curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, buffers_lend);
    /* libcurl would trust the system's authorities beside the cluster's own */
    if (credential->ca.length > 0 || access->ca.length > 0)
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    if (credential->ca.length == 0)
        blob_set(easy, CURLOPT_CAINFO_BLOB, access->ca, CURL_BLOB_NOCOPY);
    /* copied: newer ones may come while a stream with these goes on */
    blob_set(easy, CURLOPT_CAINFO_BLOB, buf_as_text(&credential->ca), CURL_BLOB_COPY);
    blob_set(easy, CURLOPT_SSLCERT_BLOB, buf_as_text(&credential->certificate), CURL_BLOB_COPY);
    blob_set(easy, CURLOPT_SSLKEY_BLOB, buf_as_text(&credential->key), CURL_BLOB_COPY);
    if (access->is_unchecked) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

CURL *kube_route_easy(const struct kube_route *route, const struct kube_credential *credential,
                      const char *path)
{
    cleanup_buf struct buf url = BUF_INIT;
    CURL *easy = curl_easy_init();
    if (!easy)
        abort(); /* as of malloc: the event log makes that safe */
    buf_format(&url, "%s%s", route->base, path);
    curl_easy_setopt(easy, CURLOPT_URL, buf_cstr(&url));
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROXY, route->proxy);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, route->connect_to);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)ROUTE_CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    tls_set(easy, route->access, credential);
    return easy;
}

static bool is_this_machine(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

/* A certificate for another name: the URL has that name, and the connection goes where it should.
 */
static int base_rename(struct kube_route *route, CURLU *url, const char *host, const char *port,
                       struct err *err)
{
    const char *name = route->access->server_name;
    cleanup_buf struct buf to = BUF_INIT;
    char *base = NULL;
    buf_format(&to, "::%s:%s", host, port);
    route->connect_to = curl_slist_append(NULL, buf_cstr(&to));
    if (curl_url_set(url, CURLUPART_HOST, name, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_URL, &base, 0) != CURLUE_OK)
        return err_fail(err, ERR_INVALID, "", "%.150s is no name of a server", name);
    const size_t length = strlen(base);
    base[length - (length > 0 && base[length - 1] == '/')] = '\0';
    route->base = mem_copy(base);
    curl_free(base);
    return 0;
}

int kube_route_init(struct kube_route *route, const struct kube_access *access, struct err *err)
{
    char *host = NULL, *port = NULL;
    int code = 0;
    CURLU *url = curl_url();
    *route = (struct kube_route){.access = access};
    if (!url || curl_url_set(url, CURLUPART_URL, access->server, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK) {
        code = err_fail(err, ERR_INVALID, "", "%.150s is no address of a server", access->server);
    } else {
        if (access->server_name[0])
            code = base_rename(route, url, host, port, err);
        else
            route->base = mem_copy(access->server);
        if (access->proxy[0] || is_this_machine(host))
            route->proxy = access->proxy;
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(url);
    return code;
}

void kube_route_release(struct kube_route *route)
{
    curl_slist_free_all(route->connect_to);
    mem_free(route->base);
    *route = (struct kube_route){0};
}
