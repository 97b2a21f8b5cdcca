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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_token_that_is_refused_is_read_again, folder_setup,
                                    folder_teardown),
};

UNIT_FILE(tests, NULL, NULL);
