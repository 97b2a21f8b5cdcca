#include "signon/fetch.h"
#include "base/buf.h"
#include "base/err.h"
#include <arpa/inet.h>
#include <assert.h>
#include <curl/curl.h>
#include <string.h>

static bool host_is_loopback(const char *host)
{
    struct in_addr address;
    if (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
        return true;
    return inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

static bool has_part(CURLU *url, CURLUPart part)
{
    char *value = NULL;
    bool is_there = curl_url_get(url, part, &value, 0) == CURLUE_OK;
    curl_free(value);
    return is_there;
}

static bool url_check(const char *text, bool *is_loopback)
{
    CURLU *url = curl_url();
    char *scheme = NULL, *host = NULL;
    bool is_good = url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
                   curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                   curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                   !has_part(url, CURLUPART_USER) && !has_part(url, CURLUPART_PASSWORD);
    *is_loopback = is_good && host_is_loopback(host);
    is_good =
        is_good && (strcmp(scheme, "https") == 0 || (strcmp(scheme, "http") == 0 && *is_loopback));
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(url);
    return is_good;
}

bool fetch_url_is_good(const char *url)
{
    bool is_loopback;
    size_t length = strlen(url);
    if (!length || length > FETCH_URL_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)url[i] <= ' ' || (unsigned char)url[i] >= 0x7f || url[i] == '"' ||
            url[i] == '\\')
            return false;
    return url_check(url, &is_loopback);
}

static size_t body_take(char *bytes, size_t size, size_t count, void *context)
{
    struct buf *body = context;
    size_t length = size * count;
    if (body->length + length > FETCH_BODY_MAX)
        return 0;
    buf_add(body, bytes, length);
    return length;
}

static int progress_check(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total,
                          curl_off_t up_now)
{
    const atomic_bool *is_ending = context;
    (void)total, (void)now, (void)up_total, (void)up_now;
    return is_ending && atomic_load(is_ending);
}

static void curl_prepare(CURL *curl, const struct fetch *fetch, struct buf *body)
{
    curl_easy_setopt(curl, CURLOPT_URL, fetch->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)FETCH_MS);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)FETCH_CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body_take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress_check);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, (void *)(uintptr_t)fetch->is_ending);
    if (fetch->ca_file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, fetch->ca_file);
    if (fetch->form)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, fetch->form);
    if (fetch->user) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(curl, CURLOPT_USERNAME, fetch->user);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, fetch->password);
    }
    if (fetch->bearer) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, fetch->bearer);
    }
}

int fetch_run(const struct fetch *fetch, struct buf *body, long *status, struct err *err)
{
    char failure[CURL_ERROR_SIZE] = "";
    bool is_loopback;
    assert(!fetch->user || fetch->password);
    if (!fetch_url_is_good(fetch->url) || !url_check(fetch->url, &is_loopback))
        return err_fail(err, ERR_INVALID, "", "%.150s is not a URL that may be asked", fetch->url);
    CURL *curl = curl_easy_init();
    if (!curl)
        return err_fail(err, ERR_UNAVAILABLE, "", "libcurl has no memory");
    struct curl_slist *headers = curl_slist_append(NULL, "Accept: application/json");
    curl_prepare(curl, fetch, body);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, failure);
    if (is_loopback) /* what the environment says of proxies is meant for the network */
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    if (code == CURLE_WRITE_ERROR)
        return err_fail(err, ERR_UNAVAILABLE, "", "%.100s answers more than %d bytes", fetch->url,
                        FETCH_BODY_MAX);
    if (code)
        return err_fail(err, ERR_UNAVAILABLE, "", "%.100s: %.100s", fetch->url,
                        failure[0] ? failure : curl_easy_strerror(code));
    return 0;
}

void fetch_encode(struct buf *out, struct text text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (is_plain || (c && strchr("-._~", c)))
            buf_char(out, (char)c);
        else
            buf_format(out, "%%%02X", c);
    }
}

void fetch_parameter(struct buf *url, const char *name, struct text value)
{
    assert(url->length);
    buf_format(url, "%s%s=", strchr(url->at, '?') ? "&" : "?", name);
    fetch_encode(url, value);
}
