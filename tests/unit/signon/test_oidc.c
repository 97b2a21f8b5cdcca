/* Logins at a provider that the test plays: what it says of itself, well and wrongly, with and
 * without a place to ask for claims. A real one is in tests/system/signon. */
#include "folder.h"
#include "tokens.h"
#include "unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "signon/oidc.h"

enum { NOW_S = 1800000000, REQUEST_MAX = 8192 };

enum page_kind { PAGE_DISCOVERY, PAGE_KEYS, PAGE_TOKEN, PAGE_USER, PAGE_DEVICE, PAGES };

/* What is answered at one of the provider's places. */
struct page {
    const char *path, *status, *body;
    unsigned asked;
    char request[REQUEST_MAX]; /* the last */
};

static struct {
    struct arena arena;
    int listener;
    pthread_t thread;
    pthread_mutex_t lock; /* of the pages */
    struct page pages[PAGES];
    char url[64];
    gnutls_privkey_t key, other_key;
    struct oidc_config config;
    struct oidc *oidc;
    struct oidc_try attempt;
    struct identity identity;
    struct err err;
} world;

/* ---- the provider ---- */

/* The head, and a body as long as it says; false: the connection has nothing, or too much. */
static bool request_read(int fd, char request[REQUEST_MAX])
{
    size_t length = 0, wanted = REQUEST_MAX - 1;
    while (length < wanted) {
        ssize_t got = read(fd, request + length, REQUEST_MAX - 1 - length);
        if (got <= 0)
            return false;
        length += (size_t)got;
        request[length] = '\0';
        const char *end = strstr(request, "\r\n\r\n");
        const char *body = strstr(request, "Content-Length: ");
        if (end)
            wanted = (size_t)(end - request) + 4 + (body ? strtoul(body + 16, NULL, 10) : 0);
    }
    return true;
}

static void request_answer(int fd, const char *request)
{
    const char *path = strchr(request, ' ') + 1;
    size_t length = strcspn(path, " ");
    const char *status = "404 Not Found", *body = "{}";
    pthread_mutex_lock(&world.lock);
    for (int i = 0; i < PAGES; i++) {
        struct page *page = &world.pages[i];
        if (strlen(page->path) != length || memcmp(page->path, path, length) != 0)
            continue;
        page->asked++;
        strcpy(page->request, request);
        status = page->status;
        body = page->body;
    }
    dprintf(fd, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status,
            strlen(body), body);
    pthread_mutex_unlock(&world.lock);
}

static void *provider_run(void *context)
{
    static char request[REQUEST_MAX];
    (void)context;
    for (;;) {
        int fd = accept(world.listener, NULL, NULL);
        if (fd < 0)
            return NULL; /* teardown has shut it */
        if (request_read(fd, request))
            request_answer(fd, request);
        close(fd);
    }
}

static void page_put(enum page_kind kind, const char *status, const char *body)
{
    pthread_mutex_lock(&world.lock);
    world.pages[kind].status = status;
    world.pages[kind].body = body;
    pthread_mutex_unlock(&world.lock);
}

static unsigned page_asked(enum page_kind kind)
{
    pthread_mutex_lock(&world.lock);
    unsigned asked = world.pages[kind].asked;
    pthread_mutex_unlock(&world.lock);
    return asked;
}

/* Were these words in the last request? */
static bool page_was_told(enum page_kind kind, const char *words)
{
    pthread_mutex_lock(&world.lock);
    bool was = strstr(world.pages[kind].request, words) != NULL;
    pthread_mutex_unlock(&world.lock);
    return was;
}

/* The provider's words of itself; one member is `value`, JSON, instead, or left out for NULL. */
static void discovery_put(const char *name, const char *value)
{
    static const struct {
        const char *name, *below;
    } members[] = {
        {"issuer", ""},
        {"authorization_endpoint", "/authorize"},
        {"token_endpoint", "/token"},
        {"jwks_uri", "/keys"},
        {"userinfo_endpoint", "/user"},
        {"end_session_endpoint", "/logout"},
        {"device_authorization_endpoint", "/device"},
        {"token_endpoint_auth_methods_supported", NULL},
    };
    cleanup_buf struct buf text = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        bool is_meant = name && strcmp(members[i].name, name) == 0;
        if (is_meant ? !value : !members[i].below)
            continue;
        buf_format(&text, "%s\"%s\":", text.length ? "," : "{", members[i].name);
        if (is_meant)
            buf_string(&text, value);
        else
            buf_format(&text, "\"%s%s\"", world.url, members[i].below);
    }
    buf_string(&text, "}");
    page_put(PAGE_DISCOVERY, "200 OK", arena_copy(&world.arena, buf_as_text(&text)));
}

/* Its keys are this one, under the name that tokens have. */
static void keys_put(gnutls_privkey_t key)
{
    page_put(PAGE_KEYS, "200 OK",
             arena_format(&world.arena, "{\"keys\":[%s]}",
                          tokens_jwk(&world.arena, key,
                                     key == world.key ? ",\"kid\":\"k\"" : ",\"kid\":\"other\"")));
}

/* A code is answered by a token with these claims; `more` of the reply's members. */
static void token_put(gnutls_privkey_t key, const char *claims, const char *more)
{
    const char *header = key == world.key ? "{\"alg\":\"ES256\",\"kid\":\"k\"}"
                                          : "{\"alg\":\"ES256\",\"kid\":\"other\"}";
    const char *all =
        arena_format(&world.arena,
                     "{\"iss\":\"%s\",\"aud\":\"skep\",\"sub\":\"1\",\"nonce\":"
                     "\"%s\",\"iat\":%d,\"exp\":%d%s}",
                     world.config.issuer, world.attempt.nonce, NOW_S, NOW_S + 60, claims);
    page_put(PAGE_TOKEN, "200 OK",
             arena_format(&world.arena, "{\"id_token\":\"%s\"%s}",
                          tokens_make(&world.arena, header, all, key, GNUTLS_SIGN_ECDSA_SHA256),
                          more));
}

static const char ACCESS[] = ",\"access_token\":\"a-word\"";

/* ---- the client ---- */

/* One that has asked nothing yet, with world.config. */
static void client_renew(void)
{
    oidc_free(world.oidc);
    world.oidc = NULL;
    assert_int_equal(oidc_new(&world.config, &world.oidc, &world.err), 0);
}

static int login(int64_t now_s)
{
    return oidc_finish(world.oidc, &world.attempt, TEXT("code"), now_s, &world.arena,
                       &world.identity, &world.err);
}

static int login_url(int64_t now_s)
{
    cleanup_buf struct buf url = BUF_INIT;
    return oidc_login_url(world.oidc, &world.attempt, now_s, &url, &world.err);
}

static void assert_fails(int code, int wanted, const char *words)
{
    if (code != wanted || !strstr(world.err.text, words))
        fail_msg("%d: %s", code, world.err.text);
}

static int setup(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    static const char *const paths[PAGES] = {"/.well-known/openid-configuration", "/keys", "/token",
                                             "/user", "/device"};
    (void)state;
    arena_init(&world.arena);
    pthread_mutex_init(&world.lock, NULL);
    for (int i = 0; i < PAGES; i++)
        world.pages[i] = (struct page){.path = paths[i], .status = "404 Not Found", .body = "{}"};
    world.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(world.listener, (const struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(world.listener, 8), 0);
    assert_int_equal(getsockname(world.listener, (struct sockaddr *)&address, &size), 0);
    snprintf(world.url, sizeof world.url, "http://127.0.0.1:%u", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&world.thread, NULL, provider_run, NULL), 0);
    world.key = tokens_key(GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1));
    world.other_key = tokens_key(GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1));
    world.config = (struct oidc_config){
        .issuer = world.url,
        .client_id = "skep",
        .return_url = "https://skep.test/return",
        .user_claim = "preferred_username",
        .groups_claim = "groups",
    };
    oidc_try_make(&world.attempt);
    discovery_put(NULL, NULL);
    keys_put(world.key);
    client_renew();
    return folder_setup(state);
}

static int teardown(void **state)
{
    shutdown(world.listener, SHUT_RDWR);
    pthread_join(world.thread, NULL);
    close(world.listener);
    pthread_mutex_destroy(&world.lock);
    gnutls_privkey_deinit(world.key);
    gnutls_privkey_deinit(world.other_key);
    oidc_free(world.oidc);
    world.oidc = NULL;
    arena_release(&world.arena);
    return folder_teardown(state);
}

/* ---- who it is ---- */

/* What the token says is not asked for. */
static void a_whole_token_is_enough(void **state)
{
    (void)state;
    token_put(world.key, ",\"preferred_username\":\"ann\",\"groups\":[\"a\",\"b\"]", ACCESS);
    assert_int_equal(login(NOW_S), 0);
    assert_string_equal(world.identity.name, "ann");
    assert_string_equal(world.identity.id, arena_format(&world.arena, "oidc %s 1", world.url));
    assert_int_equal(world.identity.group_count, 2);
    assert_string_equal(world.identity.groups[1], "b");
    assert_int_equal(page_asked(PAGE_USER), 0);
    assert_true(page_was_told(PAGE_TOKEN, "grant_type=authorization_code&code=code&"));
    assert_true(page_was_told(PAGE_TOKEN, "&client_id=skep"));
}

static void what_the_token_lacks_is_asked_for(void **state)
{
    (void)state;
    token_put(world.key, ",\"preferred_username\":\"ann\"", ACCESS);
    page_put(PAGE_USER, "200 OK", "{\"sub\":\"1\",\"groups\":\"a\",\"email\":\"a@b\"}");
    assert_int_equal(login(NOW_S), 0);
    assert_int_equal(world.identity.group_count, 1);
    assert_string_equal(world.identity.email, "a@b");
    assert_int_equal(page_asked(PAGE_USER), 1);
    assert_true(page_was_told(PAGE_USER, "Authorization: Bearer a-word"));
    page_put(PAGE_USER, "200 OK", "{\"sub\":\"2\",\"groups\":\"a\"}");
    assert_fails(login(NOW_S), ERR_UNAUTHORIZED, "speaks of another user");
    page_put(PAGE_USER, "500 Oh", "{\"sub\":\"1\"}");
    assert_fails(login(NOW_S), ERR_UNAVAILABLE, "does not say who it is");
    page_put(PAGE_USER, "200 OK", "a.signed.one");
    assert_fails(login(NOW_S), ERR_UNAVAILABLE, "does not say who it is");
    /* nothing to ask with */
    token_put(world.key, ",\"preferred_username\":\"ann\"", "");
    assert_int_equal(login(NOW_S), 0);
    assert_int_equal(page_asked(PAGE_USER), 4);
}

/* Then the token is all that there is: who is named in it has no groups; nobody else gets in. */
static void a_provider_without_a_place_for_claims(void **state)
{
    (void)state;
    discovery_put("userinfo_endpoint", NULL);
    token_put(world.key, ",\"preferred_username\":\"ann\"", ACCESS);
    assert_int_equal(login(NOW_S), 0);
    assert_string_equal(world.identity.name, "ann");
    assert_int_equal(world.identity.group_count, 0);
    token_put(world.key, ",\"groups\":[\"a\"]", ACCESS);
    assert_fails(login(NOW_S), ERR_FORBIDDEN, "it gives no claim preferred_username");
    discovery_put("userinfo_endpoint", "null");
    client_renew();
    assert_fails(login(NOW_S), ERR_FORBIDDEN, "it gives no claim preferred_username");
    assert_int_equal(page_asked(PAGE_USER), 0);
}

/* ---- what the provider says of itself ---- */

static void wrong_words_of_itself(void **state)
{
    static const char *const needed[] = {"authorization_endpoint", "token_endpoint", "jwks_uri"};
    static const char *const others[] = {"userinfo_endpoint", "end_session_endpoint",
                                         "device_authorization_endpoint"};
    static const char *const bad[] = {
        "5",
        "{}",
        "[\"https://idp.example.org/\"]",
        "\"/relative\"",
        "\"http://idp.example.org/\"", /* not a loopback address */
        "\"javascript:alert(1)\"",
        "\"https://user:word@idp.example.org/\"",
        "\"https://idp.example.org/\\r\\nX: y\"",
    };
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(needed); i++) {
        const char *name = i < COUNT_OF(needed) ? needed[i] : others[i - COUNT_OF(needed)];
        const char *words =
            arena_format(&world.arena, "the provider's %s is no URL that may be asked", name);
        for (size_t k = 0; k < COUNT_OF(bad); k++) {
            discovery_put(name, bad[k]);
            client_renew();
            assert_fails(login_url(NOW_S), ERR_UNAVAILABLE, words);
        }
        static const char *const none[] = {NULL, "null", "\"\""};
        for (size_t k = 0; k < COUNT_OF(none); k++) {
            discovery_put(name, none[k]);
            client_renew();
            if (i < COUNT_OF(needed))
                assert_fails(login_url(NOW_S), ERR_UNAVAILABLE, words);
            else
                assert_int_equal(login_url(NOW_S), 0);
        }
    }
}

static void a_provider_by_another_name(void **state)
{
    static const char *const names[] = {NULL, "5", "\"\"", "\"https://evil.example.org\""};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        discovery_put("issuer", names[i]);
        client_renew();
        assert_fails(login_url(NOW_S), ERR_UNAVAILABLE, "the provider calls itself ");
    }
    discovery_put("issuer", arena_format(&world.arena, "\"%s/\"", world.url)); /* not quite */
    client_renew();
    assert_fails(login_url(NOW_S), ERR_UNAVAILABLE, "the provider calls itself ");
    world.config.issuer = arena_format(&world.arena, "%s/", world.url);
    client_renew();
    assert_int_equal(login_url(NOW_S), 0);
}

/* After a failure it is left alone for a while, and then asked again; what it said is kept. */
static void a_provider_that_comes_back(void **state)
{
    static const char *const bodies[] = {"", "[]", "no JSON", "{\"issuer\":"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        page_put(PAGE_DISCOVERY, "200 OK", bodies[i]);
        client_renew();
        assert_fails(login_url(NOW_S), ERR_UNAVAILABLE, "no JSON object");
    }
    page_put(PAGE_DISCOVERY, "404 Not Found", "{}");
    client_renew();
    assert_fails(login_url(NOW_S), ERR_UNAVAILABLE, "answers 404");
    const unsigned before = page_asked(PAGE_DISCOVERY);
    discovery_put(NULL, NULL);
    assert_fails(login_url(NOW_S + OIDC_PAUSE_S - 1), ERR_UNAVAILABLE, "answers 404");
    assert_int_equal(page_asked(PAGE_DISCOVERY), before);
    assert_int_equal(login_url(NOW_S + OIDC_PAUSE_S), 0);
    assert_int_equal(login_url(NOW_S + OIDC_PAUSE_S + OIDC_KEEP_S - 1), 0);
    assert_int_equal(page_asked(PAGE_DISCOVERY), before + 1);
    assert_int_equal(login_url(NOW_S + OIDC_PAUSE_S + OIDC_KEEP_S), 0);
    assert_int_equal(page_asked(PAGE_DISCOVERY), before + 2);
}

/* The secret goes where the provider knows it: by Basic, but for one that knows forms alone. */
static void where_the_secret_goes(void **state)
{
    static const struct {
        const char *methods;
        bool is_in_form;
    } rows[] = {
        {NULL, false},
        {"\"client_secret_post\"", false}, /* no list */
        {"[5,\"client_secret_post\"]", true},
        {"[\"client_secret_post\",\"client_secret_basic\"]", false},
        {"[\"private_key_jwt\"]", false},
    };
    (void)state;
    folder_put("secret", "a/word\n");
    world.config.secret_file = in_folder("secret");
    token_put(world.key, ",\"preferred_username\":\"ann\",\"groups\":[]", "");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        discovery_put("token_endpoint_auth_methods_supported", rows[i].methods);
        client_renew();
        assert_int_equal(login(NOW_S), 0);
        assert_int_equal(page_was_told(PAGE_TOKEN, "&client_secret=a%2Fword"), rows[i].is_in_form);
        assert_int_equal(page_was_told(PAGE_TOKEN, "Authorization: Basic "), !rows[i].is_in_form);
    }
}

static void what_a_provider_does_not_have(void **state)
{
    struct oidc_device device;
    cleanup_buf struct buf url = BUF_INIT;
    (void)state;
    discovery_put("end_session_endpoint", NULL);
    assert_int_equal(oidc_logout_url(world.oidc, "https://skep.test/bye", NOW_S, &url, &world.err),
                     0);
    assert_int_equal(url.length, 0);
    discovery_put("device_authorization_endpoint", NULL);
    client_renew();
    assert_fails(oidc_device_begin(world.oidc, NOW_S, &world.arena, &device, &world.err),
                 ERR_UNSUPPORTED, "has no device codes");
    assert_int_equal(page_asked(PAGE_DEVICE), 0);
}

/* ---- its keys ---- */

/* A key that is not known is asked for, but not by each token that names one. */
static void keys_that_change(void **state)
{
    static const char CLAIMS[] = ",\"preferred_username\":\"ann\",\"groups\":[]";
    (void)state;
    token_put(world.key, CLAIMS, "");
    page_put(PAGE_KEYS, "500 Oh", "{}");
    assert_fails(login(NOW_S), ERR_UNAVAILABLE, "keys cannot be had");
    page_put(PAGE_KEYS, "200 OK", "[]");
    assert_fails(login(NOW_S), ERR_UNAVAILABLE, "keys cannot be had");
    keys_put(world.key);
    assert_int_equal(login(NOW_S), 0);
    assert_int_equal(login(NOW_S), 0);
    assert_int_equal(page_asked(PAGE_KEYS), 3);
    token_put(world.other_key, CLAIMS, "");
    assert_fails(login(NOW_S), ERR_UNAUTHORIZED, "a key that the provider does not publish");
    assert_int_equal(page_asked(PAGE_KEYS), 4);
    keys_put(world.other_key);
    assert_fails(login(NOW_S + OIDC_KEYS_AGAIN_S - 1), ERR_UNAUTHORIZED, "does not publish");
    assert_int_equal(page_asked(PAGE_KEYS), 4);
    assert_int_equal(login(NOW_S + OIDC_KEYS_AGAIN_S), 0);
    assert_int_equal(page_asked(PAGE_KEYS), 5);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_whole_token_is_enough, setup, teardown),
    cmocka_unit_test_setup_teardown(what_the_token_lacks_is_asked_for, setup, teardown),
    cmocka_unit_test_setup_teardown(a_provider_without_a_place_for_claims, setup, teardown),
    cmocka_unit_test_setup_teardown(wrong_words_of_itself, setup, teardown),
    cmocka_unit_test_setup_teardown(a_provider_by_another_name, setup, teardown),
    cmocka_unit_test_setup_teardown(a_provider_that_comes_back, setup, teardown),
    cmocka_unit_test_setup_teardown(where_the_secret_goes, setup, teardown),
    cmocka_unit_test_setup_teardown(what_a_provider_does_not_have, setup, teardown),
    cmocka_unit_test_setup_teardown(keys_that_change, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
