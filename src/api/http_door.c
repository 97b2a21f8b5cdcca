#include "api/http_door.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
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

static void *door_run(void *context)
{
    struct http_door *door = context;
    struct pollfd watches[] = {{.fd = door->wake_fd, .events = POLLIN},
                               {.fd = door->listen_fd, .events = POLLIN}};
    while (poll(watches, COUNT_OF(watches), -1) < 0 || !watches[0].revents) {
        int fd = accept4(door->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            door->ops.take(door->ops.context, fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            poll(watches, 1, PAUSE_MS); /* who waits is answered when others have gone */
    }
    return NULL;
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
    if (door->listen_fd >= 0)
        close(door->listen_fd);
    if (door->wake_fd >= 0)
        close(door->wake_fd);
    mem_free(door);
}

int http_door_open(const char *folder, const char *name, const struct http_door_ops *ops,
                   struct http_door **out, struct err *err)
{
    struct http_door *door = mem_zero(1, sizeof *door);
    door->ops = *ops;
    door->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    door->listen_fd = socket_open(folder, name, err);
    int result = door->listen_fd < 0 ? door->listen_fd : 0;
    if (result == 0 &&
        (door->wake_fd < 0 || pthread_create(&door->thread, NULL, door_run, door) != 0))
        result = err_fail(err, ERR_UNAVAILABLE, "", "no thread can be made for %s", folder);
    if (result < 0) {
        door_free(door);
        return result;
    }
    *out = door;
    return 0;
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
