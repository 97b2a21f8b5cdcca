/* What registries answer: challenges, states; and who logs in to which. */
#include "unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/pull.h"
#include "engine/local/registry.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_challenge(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    assert_string_equal(
        registry_token_url(TEXT("Bearer realm=\"https://auth.x/token\",service=\"reg x\","
                                "scope=\"repository:a/b:pull\""),
                           &arena),
        "https://auth.x/token?service=reg%20x&scope=repository:a/b:pull");
    assert_string_equal(
        registry_token_url(TEXT("Bearer realm=\"https://auth.x/token?a=1\",scope=\"s\""), &arena),
        "https://auth.x/token?a=1&scope=s");
    assert_string_equal(registry_token_url(TEXT("bearer realm=\"https://auth.x/\""), &arena),
                        "https://auth.x/");
    assert_string_equal(registry_token_url(TEXT("Bearers realm=\"x\""), &arena), "");
    assert_string_equal(registry_token_url(TEXT("Basic realm=\"x\""), &arena), "");
    assert_string_equal(registry_token_url(TEXT("Bearer service=\"x\""), &arena), "");
    assert_string_equal(registry_token_url(TEXT(""), &arena), "");
    arena_release(&arena);
}

static void test_auth_file(void **state)
{
    (void)state;
    struct arena arena;
    const char *user, *password;
    arena_init(&arena);
    struct text file = TEXT("{\"auths\":{\"r:5000\":{\"auth\":\"Ym9iOnM6ZWNyZXQ=\"},\"bad\":"
                            "{\"auth\":\"***\"},\"half\":{\"auth\":\"Ym9i\"},\"empty\":{},"
                            "\"token\":{\"auth\":\"YTpi\",\"identitytoken\":\"x\"},"
                            "\"http://old:80/v2/\":{\"auth\":\"YTpi\"},"
                            "\"https://index.docker.io/v1/\":{\"auth\":\"YTpi\"}},"
                            "\"credHelpers\":{\"help\":\"some\"}}");
    const struct {
        const char *host;
        enum registry_auth found;
        const char *user, *password;
    } cases[] = {
        {"r:5000", REGISTRY_AUTH_FOUND, "bob", "s:ecret"},
        {"docker.io", REGISTRY_AUTH_FOUND, "a", "b"},
        {"old:80", REGISTRY_AUTH_FOUND, "a", "b"},
        {"half", REGISTRY_AUTH_NONE, "", ""}, /* as skopeo reads it */
        {"empty", REGISTRY_AUTH_NONE, "", ""},
        {"r", REGISTRY_AUTH_NONE, "", ""},
        {"bad", REGISTRY_AUTH_OTHER, "", ""},
        {"token", REGISTRY_AUTH_OTHER, "", ""},
        {"help", REGISTRY_AUTH_OTHER, "", ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        user = password = "";
        assert_int_equal(registry_auth_find(file, cases[i].host, "a/b", &arena, &user, &password),
                         cases[i].found);
        assert_string_equal(user, cases[i].user);
        assert_string_equal(password, cases[i].password);
    }
    assert_int_equal(registry_auth_find(TEXT("{"), "r", "a", &arena, &user, &password),
                     REGISTRY_AUTH_OTHER);
    assert_int_equal(registry_auth_find(TEXT("{}"), "r", "a", &arena, &user, &password),
                     REGISTRY_AUTH_NONE);
    arena_release(&arena);
}

/* The most specific key counts, and only whole names do. */
static void test_auth_namespaces(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    struct text file = TEXT("{\"auths\":{\"r\":{\"auth\":\"aG9zdDp4\"},\"r/team\":"
                            "{\"auth\":\"dGVhbTp4\"},\"r/team/app\":{\"auth\":\"YXBwOng=\"},"
                            "\"docker.io/team\":{\"auth\":\"dGVhbTp4\"}}}");
    static const char *const cases[][3] = {
        {"r", "team/app", "app"},
        {"r", "team/other", "team"},
        {"r", "team/app/deep", "app"},
        {"r", "teams/app", "host"},
        {"r", "app", "host"},
        {"docker.io", "team/app", "team"},
        {"docker.io", "library/app", ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *user = "", *password;
        registry_auth_find(file, cases[i][0], cases[i][1], &arena, &user, &password);
        assert_string_equal(user, cases[i][2]);
    }
    arena_release(&arena);
}

/* --- a registry, played --- */

struct played {
    const char *challenge; /* NULL: none; it may name the port */
    int answer;            /* to who has shown nothing that it knows; "good" is a token of it */
    int token_status;      /* 0: the token service resets the connection */
    const char *token;     /* that it gives */
    int listener, questions;
    unsigned port;
    pthread_t thread;
};

static void reset(int fd)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

/* Without a question that it understands, as of TLS, the connection ends. */
static void question_answer(struct played *played, int fd, const char *question)
{
    char answer[512], body[64] = "", header[256] = "";
    int status = played->answer;
    if (strncmp(question, "GET /token", 10) == 0) {
        status = played->token_status;
        if (played->token)
            snprintf(body, sizeof body, "{\"token\":\"%s\"}", played->token);
    } else if (strncmp(question, "HEAD /v2/", 9) != 0) {
        return;
    } else if (strstr(question, "Authorization: Bearer good\r\n") ||
               strstr(question, "Authorization: Basic Ym9iOnNlY3JldA==\r\n")) {
        status = 200;
    } else if (played->challenge && status == 401) {
        char *at = header + snprintf(header, sizeof header, "WWW-Authenticate: ");
        for (const char *c = played->challenge; *c; c++)
            at += *c == '#' ? sprintf(at, "%u", played->port) : sprintf(at, "%c", *c);
        snprintf(at, 3, "\r\n");
    }
    played->questions++;
    if (!status) {
        reset(fd);
        return;
    }
    int length = snprintf(answer, sizeof answer,
                          "HTTP/1.1 %d x\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                          status, header, strlen(body), body);
    send(fd, answer, (size_t)length, MSG_NOSIGNAL);
}

static void *played_run(void *context)
{
    struct played *played = context;
    for (int fd; (fd = accept(played->listener, NULL, NULL)) >= 0; close(fd)) {
        char question[4096];
        size_t length = 0;
        ssize_t got;
        do {
            got = read(fd, question + length, sizeof question - 1 - length);
            length += got > 0 ? (size_t)got : 0;
            question[length] = '\0';
        } while (got > 0 && isupper((unsigned char)question[0]) && !strstr(question, "\r\n\r\n"));
        question_answer(played, fd, question);
    }
    return NULL;
}

static void played_start(struct played *played)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    played->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(played->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(played->listener, 8), 0);
    assert_int_equal(getsockname(played->listener, (struct sockaddr *)&address, &size), 0);
    played->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&played->thread, NULL, played_run, played), 0);
}

static void played_stop(struct played *played)
{
    shutdown(played->listener, SHUT_RDWR);
    pthread_join(played->thread, NULL);
    close(played->listener);
}

/* The status; below 0: the error. */
static long asked(struct played played, const char *user, const char *password, bool has_other)
{
    char host[32];
    long status = 0, again = 0;
    played_start(&played);
    snprintf(host, sizeof host, "127.0.0.1:%u", played.port);
    const struct registry_config config = {.host = host,
                                           .path = "a/b",
                                           .user = user,
                                           .password = password,
                                           .has_other_credentials = has_other,
                                           .is_insecure = true};
    struct registry *registry = registry_new(&config);
    struct err err = {0};
    const int code = registry_manifest_status(registry, "1", &status, &err);
    const int questions = played.questions;
    assert_int_equal(registry_manifest_status(registry, "1", &again, NULL), code);
    if (code == 0)
        assert_int_equal(again, status);
    else /* it has been asked often enough */
        assert_true(played.questions == questions && err.text[0]);
    assert_true(code == 0 || !registry_has_blob(registry, "sha256:0"));
    registry_free(registry);
    played_stop(&played);
    return code < 0 ? code : status;
}

#define TOKENS "realm=\"http://127.0.0.1:#/token\",service=\"s\",scope=\"repository:a/b:pull\""

/* What the token service does not say of the credentials is not taken for a refusal of them. */
static void test_tokens(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *token;
        long result;
    } cases[] = {
        {200, "good", 200},
        {200, "other", 401}, /* which the registry does not let in */
        {401, NULL, 401},
        {403, NULL, 403},
        {0, NULL, ERR_UNAVAILABLE},
        {429, NULL, ERR_UNAVAILABLE},
        {503, NULL, ERR_UNAVAILABLE},
        {404, NULL, ERR_UNAVAILABLE},
        {307, NULL, ERR_UNAVAILABLE},
        {200, NULL, ERR_UNAVAILABLE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct played played = {.challenge = "Bearer " TOKENS,
                                      .answer = 401,
                                      .token_status = cases[i].status,
                                      .token = cases[i].token};
        assert_int_equal(asked(played, "bob", "secret", false), cases[i].result);
    }
}

/* RFC 7235, 2.1: the names of schemes are the same in all letters. */
static void test_schemes(void **state)
{
    (void)state;
    static const char *const bearer[] = {"bearer " TOKENS, "BEARER " TOKENS};
    static const char *const basic[] = {"Basic realm=\"x\"", "basic realm=\"x\""};
    for (size_t i = 0; i < COUNT_OF(bearer); i++) {
        struct played played = {
            .challenge = bearer[i], .answer = 401, .token_status = 200, .token = "good"};
        assert_int_equal(asked(played, "", "", false), 200);
        played.challenge = basic[i];
        assert_int_equal(asked(played, "bob", "secret", false), 200);
        assert_int_equal(asked(played, "bob", "wrong", false), 401);
        assert_int_equal(asked(played, "", "", false), 401);
    }
    const struct played others = {.challenge = "Negotiate", .answer = 401};
    assert_int_equal(asked(others, "bob", "secret", false), ERR_UNAVAILABLE);
}

/* Whoever else has credentials may be let in where we are not. */
static void test_other_credentials(void **state)
{
    (void)state;
    const struct played basic = {.challenge = "Basic realm=\"x\"", .answer = 401};
    const struct played tokens = {
        .challenge = "Bearer " TOKENS, .answer = 401, .token_status = 401};
    static const int answers[] = {403, 404, 503, 200};
    assert_int_equal(asked(basic, "", "", true), ERR_UNAVAILABLE);
    assert_int_equal(asked(tokens, "", "", true), ERR_UNAVAILABLE);
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        const struct played played = {.answer = answers[i]};
        assert_int_equal(asked(played, "", "", false), answers[i]);
        assert_int_equal(asked(played, "", "", true),
                         answers[i] == 403 || answers[i] == 404 ? ERR_UNAVAILABLE : answers[i]);
    }
}

static void test_status(void **state)
{
    (void)state;
    bool is_final;
    assert_string_equal(pull_reason_of_status(404, &is_final), "ImageNotFound");
    assert_true(is_final);
    assert_string_equal(pull_reason_of_status(401, &is_final), "ImagePullUnauthorized");
    assert_true(is_final);
    assert_string_equal(pull_reason_of_status(403, &is_final), "ImagePullUnauthorized");
    assert_true(is_final);
    assert_string_equal(pull_reason_of_status(429, &is_final), "RegistryUnavailable");
    assert_false(is_final);
    assert_string_equal(pull_reason_of_status(503, &is_final), "RegistryUnavailable");
    assert_null(pull_reason_of_status(200, &is_final));
    assert_false(is_final);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_challenge),       cmocka_unit_test(test_auth_file),
    cmocka_unit_test(test_auth_namespaces), cmocka_unit_test(test_tokens),
    cmocka_unit_test(test_schemes),         cmocka_unit_test(test_other_credentials),
    cmocka_unit_test(test_status),
};
UNIT_FILE(tests, NULL, NULL);
