/* The handshake of WebSocket with an API server that the test plays. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/upgrade.h"
#include "folder.h"
#include "played.h"
#include "sys/clock.h"

struct opening {
    struct kube_client *client;
    const struct kube_access *access;
    int code;
    struct err err;
};

static void *open_run(void *context)
{
    struct opening *opening = context;
    struct kube_upgrade *upgrade = NULL;
    opening->code = kube_upgrade_open(opening->client, opening->access, "/exec?a=b", "v5", &upgrade,
                                      &opening->err);
    kube_upgrade_close(upgrade);
    return NULL;
}

static void token_write(const char *path, const char *token)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(token, file);
    assert_int_equal(fclose(file), 0);
}

/* Takes one request, which has this line, and answers. */
static void request_answer(const struct played *server, const char *line, const char *answer)
{
    char request[PLAYED_REQUEST_MAX];
    int fd = played_take(server, "\r\n\r\n", request);
    assert_non_null(strstr(request, line));
    assert_int_equal(write(fd, answer, strlen(answer)), (ssize_t)strlen(answer));
    close(fd);
}

/* Nothing else may be asked for minutes, so that a token which has been renewed in its file is
 * found here first. */
static void a_token_that_is_refused_is_read_again(void **state)
{
    static const char refusal[] =
        "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    static const char absence[] =
        "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    char path[300];
    struct played server;
    struct opening opening = {0};
    struct kube_client *client;
    pthread_t thread;
    uint64_t number;
    CURL *easy;
    (void)state;
    snprintf(path, sizeof path, "%s", in_folder("token"));
    token_write(path, "old");
    assert_int_equal(played_open(&server, 4), 0);
    server.access.token_path = path;
    assert_int_equal(kube_client_new(&server.access, UNWATCHED, &client, NULL), 0);
    cleanup_buf struct buf header = BUF_INIT;
    assert_int_equal(kube_client_easy(client, "/", &header, &number, &easy, NULL), 0);
    assert_string_equal(buf_cstr(&header), "Authorization: Bearer old");
    curl_easy_cleanup(easy);
    token_write(path, "new");
    opening.client = client;
    opening.access = &server.access;
    assert_int_equal(pthread_create(&thread, NULL, open_run, &opening), 0);
    request_answer(&server, "\r\nAuthorization: Bearer old\r\n", refusal);
    request_answer(&server, "\r\nAuthorization: Bearer new\r\n", absence);
    pthread_join(thread, NULL);
    assert_int_equal(opening.code, ERR_NOT_FOUND);
    kube_client_free(client);
    played_close(&server);
}

static void opening_begin(struct opening *opening, const struct played *server,
                          struct kube_client *client, pthread_t *thread)
{
    *opening = (struct opening){.client = client, .access = &server->access};
    assert_int_equal(pthread_create(thread, NULL, open_run, opening), 0);
}

static void nothing_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    (void)context, (void)key, (void)answer;
}

/* Not before this moment, and with an answer that ends it. */
static void asked_after(const struct played *server, const char *line, int64_t after_ms)
{
    request_answer(server, line,
                   "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert_true(clock_monotonic_ms() >= after_ms);
}

/* Whoever is told to wait, all wait: calls for programs in pods, and these for calls. */
static void a_pause_is_of_all_that_ask_the_server(void **state)
{
    static const char busy[] = "HTTP/1.1 429 Busy\r\nRetry-After: 1\r\nConnection: close\r\n"
                               "Content-Length: 0\r\n\r\n";
    struct played server;
    struct opening opening;
    struct kube_client *client;
    struct buf path = BUF_INIT;
    pthread_t thread;
    (void)state;
    assert_int_equal(played_open(&server, 4), 0);
    assert_int_equal(kube_client_new(&server.access, UNWATCHED, &client, NULL), 0);
    opening_begin(&opening, &server, client, &thread);
    int64_t begin_ms = clock_monotonic_ms();
    request_answer(&server, "GET /exec?a=b ", busy);
    asked_after(&server, "GET /exec?a=b ", begin_ms + 1000);
    pthread_join(thread, NULL);
    assert_int_equal(opening.code, ERR_NOT_FOUND);
    /* of a call */
    buf_string(&path, "/pods");
    begin_ms = clock_monotonic_ms();
    kube_client_quiet(client, 429, 1);
    kube_client_send(client,
                     &(struct kube_call){.method = "GET", .path = path, .done = nothing_done}, 0);
    asked_after(&server, "GET /pods ", begin_ms + 1000);
    /* one that is long */
    begin_ms = clock_monotonic_ms();
    kube_client_quiet(client, 503, 60);
    const int64_t left_ms = kube_client_quiet_ms(client);
    assert_true(clock_monotonic_ms() + left_ms >= begin_ms + 60000);
    opening_begin(&opening, &server, client, &thread);
    pthread_join(thread, NULL);
    assert_int_equal(opening.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(opening.err.text, "wants to be left alone"));
    kube_client_free(client);
    played_close(&server);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_pause_is_of_all_that_ask_the_server),
    cmocka_unit_test_setup_teardown(a_token_that_is_refused_is_read_again, folder_setup,
                                    folder_teardown),
};

UNIT_FILE(tests, NULL, NULL);
