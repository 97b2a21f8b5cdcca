#include "notify/send.h"
#include "base/mail_address.h"
#include "notify/message.h"
#include <arpa/inet.h>
#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- addresses --- */

static bool part_is_there(CURLU *url, CURLUPart part)
{
    char *value = NULL;
    const bool is_there = curl_url_get(url, part, &value, 0) == CURLUE_OK;
    curl_free(value);
    return is_there;
}

static bool is_printable(const char *text)
{
    const size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f || text[i] == '"' || text[i] == '\\')
            return false;
    return length > 0 && length <= NOTIFY_URL_MAX;
}

bool notify_url_is_good(const char *text, const char *scheme, const char *tls_scheme)
{
    CURLU *url = curl_url();
    char *found = NULL;
    const unsigned flags = CURLU_NON_SUPPORT_SCHEME;
    const bool is_good =
        url && is_printable(text) && curl_url_set(url, CURLUPART_URL, text, flags) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_SCHEME, &found, 0) == CURLUE_OK &&
        (strcmp(found, scheme) == 0 || strcmp(found, tls_scheme) == 0) &&
        part_is_there(url, CURLUPART_HOST) && !part_is_there(url, CURLUPART_USER) &&
        !part_is_there(url, CURLUPART_PASSWORD);
    curl_free(found);
    curl_url_cleanup(url);
    return is_good;
}

bool notify_url_is_loopback(const char *text)
{
    CURLU *url = curl_url();
    char *host = NULL;
    struct in_addr address;
    const bool is_read = url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
                         curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK;
    const bool is_loopback =
        is_read &&
        (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
         (inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127));
    curl_free(host);
    curl_url_cleanup(url);
    return is_loopback;
}

/* --- one request --- */

struct outgoing {
    CURL *curl;
    curl_socket_t socket;
    char failure[CURL_ERROR_SIZE];
    char command[5];  /* of SMTP: the first letters of the last one … */
    char answered[5]; /* … and of the last but QUIT */
    struct text rest; /* of the mail, that is not sent yet */
    char said[120];   /* the last line of the other side, to that one */
    const atomic_bool *is_ending;
};

static size_t answer_drop(char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes, (void)context;
    return size * count;
}

static size_t message_give(char *bytes, size_t size, size_t count, void *context)
{
    struct outgoing *request = context;
    const size_t room = size * count;
    const size_t length = request->rest.length < room ? request->rest.length : room;
    memcpy(bytes, request->rest.at, length);
    request->rest.at += length;
    request->rest.length -= length;
    return length;
}

static int progress_check(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total,
                          curl_off_t up_now)
{
    const struct outgoing *request = context;
    (void)total, (void)now, (void)up_total, (void)up_now;
    return request->is_ending && atomic_load(request->is_ending);
}

static void line_keep(char *to, size_t size, const char *bytes, size_t length)
{
    size_t kept = 0;
    for (size_t i = 0; i < length && kept + 1 < size && bytes[i] != '\r' && bytes[i] != '\n'; i++) {
        const bool is_shown = bytes[i] >= ' ' && bytes[i] <= '~';
        to[kept] = '?';
        if (is_shown)
            to[kept] = bytes[i];
        kept++;
    }
    to[kept] = '\0';
}

/* To which command of SMTP was the last answer, before the two say good bye? libcurl does not say
 * it otherwise. */
static int commands_follow(CURL *curl, curl_infotype type, char *bytes, size_t length,
                           void *context)
{
    struct outgoing *request = context;
    (void)curl;
    if (type == CURLINFO_HEADER_OUT)
        line_keep(request->command, sizeof request->command, bytes, length);
    else if (type == CURLINFO_HEADER_IN && strcmp(request->command, "QUIT") != 0)
        line_keep(request->said, sizeof request->said, bytes, length);
    if (type == CURLINFO_HEADER_OUT && strcmp(request->command, "QUIT") != 0)
        memcpy(request->answered, request->command, sizeof request->answered);
    return 0;
}

/* The connection's socket is known as long as it is open. */
static curl_socket_t socket_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct outgoing *request = context;
    (void)purpose;
    request->socket = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    return request->socket;
}

static int socket_close(void *context, curl_socket_t socket)
{
    struct outgoing *request = context;
    if (request->socket == socket)
        request->socket = CURL_SOCKET_BAD;
    return close(socket);
}

/* libcurl says good bye to a mail server, and waits for its answer: not to one that did not answer,
 * and not while we end. */
static void request_end(struct outgoing *request, CURLcode code)
{
    if (code && request->socket != CURL_SOCKET_BAD)
        shutdown(request->socket, SHUT_RDWR);
    curl_easy_cleanup(request->curl);
}

static bool request_begin(struct outgoing *request, const char *url, const char *schemes,
                          const char *ca_file, const atomic_bool *is_ending)
{
    *request = (struct outgoing){
        .curl = curl_easy_init(), .socket = CURL_SOCKET_BAD, .is_ending = is_ending};
    CURL *curl = request->curl;
    if (!curl)
        return false;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, schemes);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)NOTIFY_MS);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)NOTIFY_CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)(NOTIFY_MS / 1000));
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, socket_open);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, request);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, socket_close);
    curl_easy_setopt(curl, CURLOPT_CLOSESOCKETDATA, request);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, answer_drop);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress_check);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, request);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, request->failure);
    if (ca_file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file);
    if (notify_url_is_loopback(url)) /* what the environment says of proxies is for the network */
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    return true;
}

static void why_write(const struct outgoing *request, CURLcode code, char why[NOTIFY_WHY_SIZE])
{
    snprintf(why, NOTIFY_WHY_SIZE, "%.100s%s%.110s",
             request->failure[0] ? request->failure : curl_easy_strerror(code),
             request->said[0] ? ": " : "", request->said);
}

/* --- a mail --- */

/* Of this recipient, or of this text (a mailbox that is full, a list of who has written before:
 * 4xx)? What was said to the sender, the login, or the greeting is about all mails. Of 421, silence
 * and the end of the connection nobody knows: a relay may ask another one about each recipient. */
static enum notify_result result_of(const struct outgoing *request)
{
    const bool is_of_message =
        strcmp(request->answered, "RCPT") == 0 || strcmp(request->answered, "DATA") == 0;
    if (is_of_message && request->said[0] == '5')
        return NOTIFY_REFUSED;
    if (is_of_message && request->said[0] == '4' && strncmp(request->said, "421", 3) != 0)
        return NOTIFY_LATER;
    return is_of_message ? NOTIFY_UNSURE : NOTIFY_AWAY;
}

static void smtp_prepare(struct outgoing *request, const struct notify_smtp *smtp)
{
    CURL *curl = request->curl;
    curl_easy_setopt(curl, CURLOPT_USE_SSL,
                     (long)(smtp->is_plain ? CURLUSESSL_NONE : CURLUSESSL_ALL));
    curl_easy_setopt(curl, CURLOPT_MAIL_FROM, smtp->from);
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, message_give);
    curl_easy_setopt(curl, CURLOPT_READDATA, request);
    curl_easy_setopt(curl, CURLOPT_DEBUGFUNCTION, commands_follow);
    curl_easy_setopt(curl, CURLOPT_DEBUGDATA, request);
    curl_easy_setopt(curl, CURLOPT_VERBOSE, 1L); /* to that function */
    if (smtp->user) {
        curl_easy_setopt(curl, CURLOPT_USERNAME, smtp->user);
        curl_easy_setopt(curl, CURLOPT_PASSWORD, smtp->password);
    }
}

enum notify_result notify_mail(const struct notify_smtp *smtp, const char *to, struct text message,
                               const atomic_bool *is_ending, char why[NOTIFY_WHY_SIZE])
{
    struct outgoing request;
    assert(mail_address_is_good(text_of(to)) && (!smtp->user || smtp->password));
    if (!request_begin(&request, smtp->url, "smtp,smtps", smtp->ca_file, is_ending)) {
        snprintf(why, NOTIFY_WHY_SIZE, "libcurl has no memory");
        return NOTIFY_AWAY;
    }
    struct curl_slist *recipients = curl_slist_append(NULL, to);
    smtp_prepare(&request, smtp);
    curl_easy_setopt(request.curl, CURLOPT_MAIL_RCPT, recipients);
    request.rest = message;
    const CURLcode code = curl_easy_perform(request.curl);
    curl_slist_free_all(recipients);
    request_end(&request, code);
    if (!code)
        return NOTIFY_TAKEN;
    why_write(&request, code, why);
    return result_of(&request);
}

/* --- a webhook --- */

/* Of a wrong token, a wrong address or too many requests others would say the same, and 503 is of
 * the whole server; who fails by another status, or has the body and says nothing, may do so for
 * this body alone. */
static enum notify_result result_of_post(CURL *curl, CURLcode code, long status)
{
    curl_off_t given = 0;
    curl_easy_getinfo(curl, CURLINFO_SIZE_UPLOAD_T, &given);
    if (code) /* what we gave up says nothing of the body */
        return given > 0 && code != CURLE_ABORTED_BY_CALLBACK ? NOTIFY_UNSURE : NOTIFY_AWAY;
    if (status >= 200 && status < 300)
        return NOTIFY_TAKEN;
    if (status >= 500 && status != 503)
        return NOTIFY_UNSURE;
    const bool is_of_body = status >= 400 && status < 500 && status != 401 && status != 403 &&
                            status != 404 && status != 408 && status != 429;
    return is_of_body ? NOTIFY_REFUSED : NOTIFY_AWAY;
}

enum notify_result notify_post(const struct notify_hook *hook, struct text json,
                               const atomic_bool *is_ending, char why[NOTIFY_WHY_SIZE])
{
    struct outgoing request;
    if (!request_begin(&request, hook->url, "http,https", hook->ca_file, is_ending)) {
        snprintf(why, NOTIFY_WHY_SIZE, "libcurl has no memory");
        return NOTIFY_AWAY;
    }
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    CURL *curl = request.curl;
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)json.length);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, json.at);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "Skep");
    if (hook->token) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, hook->token);
    }
    const CURLcode code = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    const enum notify_result result = result_of_post(curl, code, status);
    curl_slist_free_all(headers);
    request_end(&request, code);
    if (code)
        why_write(&request, code, why);
    else if (result != NOTIFY_TAKEN)
        snprintf(why, NOTIFY_WHY_SIZE, "it answers with status %ld", status);
    return result;
}
