#include "cli/login_oidc.h"
#include "base/err.h"
#include "base/memory.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/loopback.h"
#include "cli/print.h"
#include "cli/web_page.h"
#include <assert.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* WAIT_S: for so long the server takes what the provider sends back. */
enum { WORD_BYTES = 32, WORD_SIZE = 44, WAIT_S = 600, INTERVAL_S_MAX = 60 };

/* ---- the server's answers ---- */

static int refused(const struct client *client, const struct client_reply *reply)
{
    json_t *json = json_loadb(buf_cstr(&reply->body), reply->body.length, 0, NULL);
    const char *message = field_text(json, "message");
    int code = !reply->status ? client_unreachable(client, reply->problem)
                              : cli_fail(EXIT_NOT_ALLOWED, "not logged in: %s",
                                         message ? message : "the server gives no reason");
    json_decref(json);
    return code;
}

/* POST; EXIT_* after a message. *json is an object, *status 200 or 202. */
static int post(struct client *client, const char *path, json_t *body, long *status, json_t **json)
{
    cleanup_client_reply struct client_reply reply = {0};
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    client_ask(client,
               &(struct client_request){.method = "POST",
                                        .path = path,
                                        .content_type = "application/json",
                                        .body = text_of(text ? text : "")},
               &reply);
    free(text);
    *json = NULL;
    *status = reply.status;
    if (reply.status != 200 && reply.status != 202)
        return refused(client, &reply);
    *json = json_loadb(buf_cstr(&reply.body), reply.body.length, 0, NULL);
    if (json_is_object(*json))
        return 0;
    json_decref(*json);
    return cli_fail(EXIT_REFUSED, "%s did not answer with JSON: is it a Skep server?",
                    client_server(client));
}

static int token_take(const struct client *client, json_t *json, char **name, char **token)
{
    const char *given = field_text(json, "token"), *user = field_text(json, "user");
    int code = 0;
    if (given && user) {
        *token = mem_copy(given);
        *name = mem_copy(user);
    } else {
        code =
            cli_fail(EXIT_REFUSED, "%s gave no token: is it a Skep server?", client_server(client));
    }
    json_decref(json);
    return code;
}

/* Under which address browsers reach the server; free it. */
static int public_url_get(struct client *client, char **url)
{
    json_t *json = NULL, *way;
    size_t i;
    int code = client_get(client, "/api/v2/authn/info", &json);
    *url = NULL;
    json_array_foreach (json_object_get(json, "methods"), i, way) {
        const char *type = field_text(way, "type"), *given = field_text(way, "publicUrl");
        if (type && strcmp(type, "OIDC") == 0 && web_page_is_good(given) && !*url)
            *url = mem_copy(given);
    }
    json_decref(json);
    if (!code && !*url)
        code = cli_fail(EXIT_REFUSED,
                        "%s has no OpenID Connect: log in with a user name and a password",
                        client_server(client));
    return code;
}

/* ---- by a browser of this machine: RFC 8252 ---- */

/* Base64url without padding. */
static int word_of(unsigned char bytes[WORD_BYTES], char word[WORD_SIZE])
{
    gnutls_datum_t encoded = {0};
    if (gnutls_base64_encode2(&(gnutls_datum_t){bytes, WORD_BYTES}, &encoded))
        return -1;
    assert(encoded.size == WORD_SIZE); /* its last letter is padding */
    for (size_t i = 0; i < WORD_SIZE - 1; i++) {
        word[i] = (char)encoded.data[i];
        if (word[i] == '+')
            word[i] = '-';
        else if (word[i] == '/')
            word[i] = '_';
    }
    word[WORD_SIZE - 1] = '\0';
    gnutls_free(encoded.data);
    return 0;
}

static int word_make(char word[WORD_SIZE])
{
    unsigned char bytes[WORD_BYTES];
    bool is_whole = getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes;
    return is_whole ? word_of(bytes, word) : -1;
}

/* BASE64URL(SHA-256(verifier)): RFC 7636. */
static int challenge_make(const char *verifier, char challenge[WORD_SIZE])
{
    unsigned char hash[WORD_BYTES];
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, verifier, strlen(verifier), hash) == 0
               ? word_of(hash, challenge)
               : -1;
}

static void page_tell(const char *public_url, const char *return_url, const char *challenge)
{
    cleanup_buf struct buf url = BUF_INIT;
    buf_format(&url, "%s/api/v2/authn/oidc/login?redirect_uri=", public_url);
    client_encode(&url, return_url);
    buf_format(&url, "&code_challenge=%s", challenge);
    fprintf(stderr,
            "Log in at this page, in a browser of this machine (elsewhere: --device):\n\n"
            "  %s\n\n",
            buf_cstr(&url));
    web_page_open(buf_cstr(&url));
}

/* Send the browser there; what it brought back. */
static int code_get(struct client *client, const char *challenge, struct loopback_answer *answer)
{
    cleanup_loopback struct loopback loopback;
    char word[WORD_SIZE], *public_url = NULL;
    struct err err = {0};
    if (word_make(word))
        return cli_fail(EXIT_REFUSED, "the system gives no random bytes");
    if (loopback_open(&loopback, word, &err))
        return cli_fail(EXIT_REFUSED, "%s", err.text);
    int code = public_url_get(client, &public_url);
    if (code)
        return code;
    page_tell(public_url, loopback.url, challenge);
    mem_free(public_url);
    if (loopback_wait(&loopback, (int64_t)WAIT_S * 1000, answer, &err))
        return cli_fail(EXIT_NOT_ALLOWED, "not logged in: %s", err.text);
    return answer->problem[0] ? cli_fail(EXIT_NOT_ALLOWED, "not logged in: %s", answer->problem)
                              : 0;
}

static int by_browser(struct client *client, char **name, char **token)
{
    /* the word that shows, together with the code, that it was this program that began */
    char verifier[WORD_SIZE], challenge[WORD_SIZE];
    struct loopback_answer answer = {0};
    long status;
    json_t *json = NULL;
    if (word_make(verifier) || challenge_make(verifier, challenge))
        return cli_fail(EXIT_REFUSED, "the system gives no random bytes");
    int code = code_get(client, challenge, &answer);
    if (!code)
        code = post(client, "/api/v2/authn/oidc/token",
                    json_pack("{s:s,s:s}", "code", answer.code, "code_verifier", verifier), &status,
                    &json);
    mem_free(answer.code);
    mem_free(answer.problem);
    return code ? code : token_take(client, json, name, token);
}

/* ---- by a browser elsewhere: RFC 8628 ---- */

static void interval_wait(int64_t seconds)
{
    struct timespec left = {.tv_sec = seconds < 1                ? 1
                                      : seconds > INTERVAL_S_MAX ? INTERVAL_S_MAX
                                                                 : seconds};
    while (nanosleep(&left, &left) < 0)
        continue;
}

static void code_tell(const json_t *json)
{
    const char *whole = field_text(json, "verification_uri_complete");
    const char *user_code = field_text(json, "user_code");
    fprintf(stderr, "Log in at this page, in any browser:\n\n  %s\n\nwith the code %s\n",
            field_text(json, "verification_uri"), user_code ? user_code : "");
    if (web_page_is_good(whole))
        fprintf(stderr, "(or at %s, when it shows the same code)\n", whole);
}

static int by_device(struct client *client, char **name, char **token)
{
    json_t *json = NULL;
    long status = 0;
    int code = post(client, "/api/v2/authn/oidc/device", NULL, &status, &json);
    if (code)
        return code;
    const char *given = field_text(json, "device_code"),
               *page = field_text(json, "verification_uri");
    if (!given || !web_page_is_good(page)) {
        json_decref(json);
        return cli_fail(EXIT_REFUSED, "%s gave no device code: is it a Skep server?",
                        client_server(client));
    }
    char *device_code = mem_copy(given);
    int64_t interval_s = field_int(json, "interval");
    code_tell(json);
    /* the server says when the code is too old */
    do {
        json_decref(json);
        interval_wait(interval_s);
        code = post(client, "/api/v2/authn/oidc/token",
                    json_pack("{s:s}", "device_code", device_code), &status, &json);
        if (!code)
            interval_s = field_int(json, "interval");
    } while (!code && status == 202);
    mem_free(device_code);
    return code ? code : token_take(client, json, name, token);
}

int login_oidc(const struct cli *cli, struct client *client, char **name, char **token)
{
    return cli_flag(cli, "device") ? by_device(client, name, token)
                                   : by_browser(client, name, token);
}
