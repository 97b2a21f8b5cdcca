/* The handshake of WebSocket with an API server that the test plays. */
#include "unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/upgrade.h"
#include "folder.h"
#include "kube/access.h"

enum { LIMIT_S = 30, REQUEST_MAX = 4096 };

static void failed(void *context, const char *trouble, int64_t for_ms)
{
    (void)context, (void)trouble, (void)for_ms;
}

static void answered(void *context)
{
    (void)context;
}

struct opening {
    const struct kube_client *client;
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
static void request_answer(int listener, const char *line, const char *answer)
{
    const struct timeval limit = {.tv_sec = LIMIT_S};
    char request[REQUEST_MAX] = "";
    size_t length = 0;
    assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    while (!strstr(request, "\r\n\r\n")) {
        ssize_t got = read(fd, request + length, REQUEST_MAX - 1 - length);
        assert_true(got > 0);
        length += (size_t)got;
        request[length] = '\0';
    }
    assert_non_null(strstr(request, line));
    assert_int_equal(write(fd, answer, strlen(answer)), (ssize_t)strlen(answer));
    close(fd);
}

static int listener_make(char *server, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    snprintf(server, size, "http://127.0.0.1:%u", ntohs(address.sin_port));
    return listener;
}

/* Nothing else may be asked for minutes, so that a token which has been renewed in its file is
 * found here first. */
static void a_token_that_is_refused_is_read_again(void **state)
{
    static const char refusal[] =
        "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    static const char absence[] =
        "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    char server[64], path[300];
    const int listener = listener_make(server, sizeof server);
    struct opening opening = {0};
    struct kube_client *client;
    pthread_t thread;
    uint64_t number;
    CURL *easy;
    (void)state;
    snprintf(path, sizeof path, "%s", in_folder("token"));
    token_write(path, "old");
    const struct kube_access access = {.server = server,
                                       .server_name = "",
                                       .proxy = "",
                                       .token = "",
                                       .token_path = path,
                                       .certificate_path = "",
                                       .key_path = "",
                                       .ca_path = "",
                                       .path = ""};
    assert_int_equal(kube_client_new(&access,
                                     (struct kube_watcher){.failed = failed, .answered = answered},
                                     &client, NULL),
                     0);
    cleanup_buf struct buf header = BUF_INIT;
    assert_int_equal(kube_client_easy(client, "/", &header, &number, &easy, NULL), 0);
    assert_string_equal(buf_cstr(&header), "Authorization: Bearer old");
    curl_easy_cleanup(easy);
    token_write(path, "new");
    opening.client = client;
    opening.access = &access;
    assert_int_equal(pthread_create(&thread, NULL, open_run, &opening), 0);
    request_answer(listener, "\r\nAuthorization: Bearer old\r\n", refusal);
    request_answer(listener, "\r\nAuthorization: Bearer new\r\n", absence);
    pthread_join(thread, NULL);
    assert_int_equal(opening.code, ERR_NOT_FOUND);
    kube_client_free(client);
    close(listener);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_token_that_is_refused_is_read_again, folder_setup,
                                    folder_teardown),
};

UNIT_FILE(tests, NULL, NULL);
