#include "unit.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "played.h"

struct kube_access access_to(const char *server)
{
    return (struct kube_access){.server = server,
                                .server_name = "",
                                .proxy = "",
                                .token = "",
                                .token_path = "",
                                .certificate_path = "",
                                .key_path = "",
                                .ca_path = "",
                                .path = ""};
}

static void nothing_failed(void *context, const char *trouble, int64_t for_ms)
{
    (void)context, (void)trouble, (void)for_ms;
}

static void nothing_answered(void *context)
{
    (void)context;
}

const struct kube_watcher UNWATCHED = {.failed = nothing_failed, .answered = nothing_answered};

int played_open(struct played *played, int backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    played->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(played->listener, (struct sockaddr *)&address, length) < 0 ||
        listen(played->listener, backlog) < 0 ||
        getsockname(played->listener, (struct sockaddr *)&address, &length) < 0)
        return -1;
    snprintf(played->server, sizeof played->server, "http://127.0.0.1:%u", ntohs(address.sin_port));
    played->access = access_to(played->server);
    return 0;
}

int played_close(struct played *played)
{
    return close(played->listener);
}

int played_take(const struct played *played, const char *end, char request[PLAYED_REQUEST_MAX])
{
    const struct timeval limit = {.tv_sec = PLAYED_LIMIT_S};
    size_t length = 0;
    int fd;
    assert_int_equal(setsockopt(played->listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit),
                     0);
    fd = accept(played->listener, NULL, NULL);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    do {
        ssize_t got = read(fd, request + length, PLAYED_REQUEST_MAX - 1 - length);
        assert_true(got > 0);
        length += (size_t)got;
        request[length] = '\0';
    } while (!strstr(request, end));
    return fd;
}
