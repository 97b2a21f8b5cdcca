/* Connections to what tasks listen on, made in their own networks: there a program is reached that
 * listens on loopback alone, as notebooks do. */
#include "base/err.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* In the network that this thread is in; negative: errno. */
static int loopback_connect(const struct sockaddr *address, socklen_t length)
{
    const int one = 1;
    cleanup_close int fd =
        socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, address, length) < 0 && errno != EINPROGRESS)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* keys are typed there */
    return fd_steal(&fd);
}

static int port_connect(uint16_t port, struct err *err)
{
    const struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = loopback_connect((const struct sockaddr *)&v4, sizeof v4);
    if (fd == -ECONNREFUSED)
        fd = loopback_connect((const struct sockaddr *)&v6, sizeof v6);
    if (fd >= 0)
        return fd;
    if (fd == -ECONNREFUSED || fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT)
        return err_fail(err, ERR_UNAVAILABLE, "", "nobody listens at port %u of the task", port);
    return err_errno(err, -fd, "connect to port %u of the task", port);
}

int local_connect(struct engine *engine, struct attempt_id attempt, uint16_t port, struct err *err)
{
    struct local_engine *local = (struct local_engine *)engine;
    cleanup_close int home = -1, task = -1;
    assert(port);
    task = task_hold(local, attempt, err);
    if (task < 0)
        return task;
    int code = runtime_network_enter(task, &home, err);
    if (code < 0)
        return code;
    int fd = port_connect(port, err);
    runtime_network_leave(home);
    return fd;
}
