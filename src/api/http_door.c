#include "api/http_door.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/cleanup.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, PAUSE_MS = 100 };

struct http_door {
    struct http_door_ops ops;
    int listen_fd, wake_fd;
    pthread_t thread;
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* False: there is no room for one more now. */
static bool connection_take(struct http_door *door)
{
    union address from = {0};
    socklen_t length = sizeof from;
    if (!door->ops.has_room(door->ops.context))
        return false;
    int fd = accept4(door->listen_fd, &from.any, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
    door->ops.take(door->ops.context, fd, &from.any, length);
    return true;
}

static void *door_run(void *context)
{
    struct http_door *door = context;
    struct pollfd watches[] = {{.fd = door->wake_fd, .events = POLLIN},
                               {.fd = door->listen_fd, .events = POLLIN}};
    while (poll(watches, COUNT_OF(watches), -1) < 0 || !watches[0].revents)
        if (watches[1].revents && !connection_take(door))
            poll(watches, 1, PAUSE_MS); /* who waits is answered when others have gone */
    return NULL;
}

/* "127.0.0.1:9186", "[::1]:9186", ":9186" */
static int address_parse(const char *listen, union address *address, socklen_t *length,
                         struct err *err)
{
    memset(address, 0, sizeof *address);
    const char *colon = strrchr(listen, ':');
    int64_t port = 0;
    if (!colon || !text_to_int64(text_of(colon + 1), &port) || port < 0 || port > UINT16_MAX)
        return err_fail(err, ERR_INVALID, "listen", "'%s' is not ADDRESS:PORT", listen);
    char host[64] = "";
    size_t host_length = (size_t)(colon - listen);
    bool is_v6 = listen[0] == '[';
    if (is_v6 && (host_length < 2 || listen[host_length - 1] != ']'))
        return err_fail(err, ERR_INVALID, "listen", "'%s' is not [ADDRESS]:PORT", listen);
    if (host_length >= sizeof host)
        return err_fail(err, ERR_INVALID, "listen", "'%s' is not ADDRESS:PORT", listen);
    memcpy(host, listen + is_v6, host_length - (is_v6 ? 2 : 0));
    int found = 1;
    if (is_v6) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)port);
        found = inet_pton(AF_INET6, host, &address->v6.sin6_addr);
        *length = sizeof address->v6;
    } else {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons((uint16_t)port);
        address->v4.sin_addr.s_addr = htonl(INADDR_ANY);
        if (host[0])
            found = inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                              &address->v4.sin_addr);
        *length = sizeof address->v4;
    }
    if (found != 1)
        return err_fail(err, ERR_INVALID, "listen", "'%s' is not a numeric address", host);
    return 0;
}

static int address_open(const char *listen_at, uint16_t *port, struct err *err)
{
    union address address;
    socklen_t length = 0;
    int code = address_parse(listen_at, &address, &length, err);
    if (code)
        return code;
    cleanup_close int fd =
        socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(err, errno, "listen on %s", listen_at);
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, &address.any, length) < 0 || listen(fd, BACKLOG) < 0)
        return err_errno(err, errno, "listen on %s", listen_at);
    union address real = {0};
    length = sizeof real;
    if (getsockname(fd, &real.any, &length) < 0)
        return err_errno(err, errno, "listen on %s", listen_at);
    *port = ntohs(real.any.sa_family == AF_INET6 ? real.v6.sin6_port : real.v4.sin_port);
    return fd_steal(&fd);
}

/* By the folder's descriptor: a socket's address holds 108 bytes, a path may be longer. */
static int socket_open(const char *folder, const char *name, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    cleanup_close int directory = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return err_errno(err, errno, "open %s", folder);
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(err, errno, "make a socket");
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory, name);
    if (unlinkat(directory, name, 0) < 0 && errno != ENOENT)
        return err_errno(err, errno, "replace %s/%s", folder, name);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        fchmodat(directory, name, 0666, 0) < 0 || listen(fd, BACKLOG) < 0)
        return err_errno(err, errno, "listen at %s/%s", folder, name);
    return fd_steal(&fd);
}

static void door_free(struct http_door *door)
{
    close(door->listen_fd);
    if (door->wake_fd >= 0)
        close(door->wake_fd);
    mem_free(door);
}

/* `fd`: it listens, or is the error that it could not. */
static int door_start(int fd, const struct http_door_ops *ops, struct http_door **out,
                      struct err *err)
{
    if (fd < 0)
        return fd;
    struct http_door *door = mem_zero(1, sizeof *door);
    door->ops = *ops;
    door->listen_fd = fd;
    door->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (door->wake_fd < 0 || pthread_create(&door->thread, NULL, door_run, door) != 0) {
        door_free(door);
        return err_fail(err, ERR_UNAVAILABLE, "", "no thread can be made that takes connections");
    }
    *out = door;
    return 0;
}

int http_door_listen(const char *address, const struct http_door_ops *ops, struct http_door **door,
                     uint16_t *port, struct err *err)
{
    return door_start(address_open(address, port, err), ops, door, err);
}

int http_door_open(const char *folder, const char *name, const struct http_door_ops *ops,
                   struct http_door **door, struct err *err)
{
    return door_start(socket_open(folder, name, err), ops, door, err);
}

void http_door_close(struct http_door *door)
{
    const uint64_t one = 1;
    if (!door)
        return;
    if (write(door->wake_fd, &one, sizeof one) == sizeof one)
        pthread_join(door->thread, NULL);
    door_free(door);
}
