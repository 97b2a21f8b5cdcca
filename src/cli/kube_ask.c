#include "cli/kube_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "base/printable.h"
#include "cli/print.h"
#include "kube/login.h"
#include "kube/route.h"

struct kube_ask {
    const struct kube_access *access;
    struct kube_route route;
    struct kube_login *login;
};

/* What has come of an answer. */
struct arriving {
    struct buf bytes;
    bool begins, has_begun, is_too_big;
};

void kube_reply_release(struct kube_reply *reply)
{
    json_decref(reply->json);
    *reply = (struct kube_reply){0};
}

int kube_ask_new(const struct kube_access *access, struct kube_ask **out, struct err *err)
{
    struct kube_ask *ask = mem_zero(1, sizeof *ask);
    ask->access = access;
    int code = kube_route_init(&ask->route, access, err);
    if (code == 0)
        code = kube_login_new(access, isatty(STDIN_FILENO), NULL, NULL, &ask->login, err);
    if (code < 0)
        kube_ask_free(ask);
    else
        *out = ask;
    return code;
}

void kube_ask_free(struct kube_ask *ask)
{
    if (!ask)
        return;
    kube_login_free(ask->login);
    kube_route_release(&ask->route);
    mem_free(ask);
}

static size_t bytes_take(char *bytes, size_t size, size_t count, void *context)
{
    struct arriving *taking = context;
    const size_t length = size * count;
    taking->is_too_big = taking->bytes.length + length > KUBE_ASK_MAX;
    if (taking->is_too_big)
        return 0;
    buf_add(&taking->bytes, bytes, length);
    taking->has_begun = taking->begins && memchr(bytes, '\n', length);
    return taking->has_begun ? 0 : length;
}

static int64_t date_of(CURL *easy)
{
    struct curl_header *header;
    if (curl_easy_header(easy, "Date", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return 0;
    const time_t at = curl_getdate(header->value, NULL);
    return at > 0 ? (int64_t)at * 1000 : 0;
}

static void trouble_set(struct kube_reply *reply, const char *text)
{
    cleanup_buf struct buf shown = BUF_INIT;
    printable_put(&shown, text_of(text));
    snprintf(reply->trouble, sizeof reply->trouble, "%.190s", buf_cstr(&shown));
}

static void reply_read(const struct arriving *taking, CURL *easy, struct kube_reply *reply)
{
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    reply->status = (int)status;
    reply->date_ms = date_of(easy);
    reply->json = json_loadb(taking->bytes.at ? taking->bytes.at : "", taking->bytes.length,
                             JSON_DISABLE_EOF_CHECK, NULL);
    const char *message =
        reply->json ? json_string_value(json_object_get(reply->json, "message")) : NULL;
    if (status >= 300) {
        char words[32];
        snprintf(words, sizeof words, "it answers %ld", status);
        trouble_set(reply, message ? message : words);
    }
}

static void perform(struct kube_ask *ask, CURL *easy, struct arriving *taking, const char *header,
                    const char *body, struct kube_reply *reply)
{
    char failure[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = curl_slist_append(NULL, "Accept: application/json");
    if (header[0])
        headers = curl_slist_append(headers, header);
    if (body) {
        headers = curl_slist_append(headers, "Content-Type: application/json");
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, failure);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, bytes_take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, taking);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)KUBE_ASK_MS);
    const CURLcode code = curl_easy_perform(easy);
    if (code == CURLE_OK || taking->has_begun)
        reply_read(taking, easy, reply);
    else if (taking->is_too_big)
        snprintf(reply->trouble, sizeof reply->trouble, "its answer is larger than %d MiB",
                 KUBE_ASK_MAX >> 20);
    else
        snprintf(reply->trouble, sizeof reply->trouble, "%.80s: %.110s", ask->access->server,
                 failure[0] ? failure : curl_easy_strerror(code));
    curl_slist_free_all(headers);
}

void kube_ask_send(struct kube_ask *ask, const char *path, json_t *body, bool begins,
                   struct kube_reply *reply)
{
    cleanup_credential struct kube_credential credential = {0};
    struct arriving taking = {.begins = begins};
    struct err why = {0};
    kube_reply_release(reply);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    if (kube_login_wait(ask->login, &credential, &why) < 0) {
        snprintf(reply->trouble, sizeof reply->trouble, "%.190s", why.text);
    } else {
        CURL *easy = kube_route_easy(&ask->route, &credential, path);
        perform(ask, easy, &taking, buf_cstr(&credential.header), text, reply);
        curl_easy_cleanup(easy);
    }
    buf_release(&taking.bytes);
    free(text);
}
