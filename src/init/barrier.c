/* Waiting for the other tasks: by connecting to their ssh servers, or by a request that the server
 * holds until all have come. Both are attempts with growing pauses under one deadline; signals and
 * output are dealt with meanwhile. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "init/init.h"

enum {
    PAUSE_FIRST_MS = 20,
    PAUSE_MAX_MS = 1000,
    CONNECT_MS = 5000,
    BARRIER_DEFAULT_S = 600, /* FrameworkBarrier's */
    SSH_DEFAULT_S = 1800,    /* OpenPAI documents 30 minutes */
    ANSWER_BYTES = 512,
    STOPPED = 1, /* an outcome beside 0 and ERR_*: asked to end */
};

struct wait {
    struct init *init;
    int64_t deadline_ms;
    int64_t pause_ms;
};

static struct wait wait_begin(struct init *init, uint32_t timeout_s, uint32_t default_s)
{
    int64_t timeout = timeout_s ? timeout_s : default_s;
    return (struct wait){init, clock_monotonic_ms() + timeout * 1000, PAUSE_FIRST_MS};
}

static bool is_over(const struct wait *wait)
{
    return clock_monotonic_ms() >= wait->deadline_ms;
}

static void wait_pause(struct wait *wait)
{
    int64_t until = clock_monotonic_ms() + wait->pause_ms;
    if (until > wait->deadline_ms)
        until = wait->deadline_ms;
    while (!wait->init->is_stopping && clock_monotonic_ms() < until)
        loop_turn(wait->init, -1, 0, until);
    wait->pause_ms = wait->pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : wait->pause_ms * 2;
}

/* Until fd is ready. False: time is up, or the task is to end. */
static bool ready(struct wait *wait, int fd, short events, int64_t until)
{
    if (until > wait->deadline_ms)
        until = wait->deadline_ms;
    while (!wait->init->is_stopping && clock_monotonic_ms() < until)
        if (loop_turn(wait->init, fd, events, until))
            return true;
    return false;
}

static socklen_t address_of(const char *host, unsigned port, struct sockaddr_storage *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)address;
    memset(address, 0, sizeof *address);
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        return sizeof *v4;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return sizeof *v6;
    }
    return 0;
}

/* A connected socket or -1. */
static int connect_once(struct wait *wait, const struct sockaddr_storage *address, socklen_t length)
{
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int code = connect(fd, (const struct sockaddr *)address, length), number = 0;
    socklen_t size = sizeof number;
    if (code < 0 && errno == EINPROGRESS &&
        ready(wait, fd, POLLOUT, clock_monotonic_ms() + CONNECT_MS) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size) == 0 && number == 0)
        code = 0;
    if (code == 0)
        return fd;
    close(fd);
    return -1;
}

/* --- ssh --- */

static int ssh_wait_for(struct wait *wait, size_t role, uint32_t index, struct err *err)
{
    struct init *init = wait->init;
    const char *host = init->job.tasks[job_file_first_task(&init->job, role) + index].address;
    struct sockaddr_storage address;
    socklen_t length = address_of(host, env_port(&init->job, role, index, "ssh"), &address);
    if (length == 0) {
        note(init, "ssh barrier: %s-%u has no IP address (\"%s\"), not waited for",
             init->job.roles[role].name, index, host);
        return 0;
    }
    wait->pause_ms = PAUSE_FIRST_MS;
    for (;;) {
        int fd = connect_once(wait, &address, length);
        if (fd >= 0) {
            close(fd);
            return 0;
        }
        if (init->is_stopping)
            return STOPPED;
        if (is_over(wait)) {
            init->end.code = EXIT_FILE_SSH_BARRIER;
            return err_fail(err, ERR_UNAVAILABLE, "",
                            "ssh barrier timed out: no answer from %s-%u at %s port %u",
                            init->job.roles[role].name, index, host,
                            env_port(&init->job, role, index, "ssh"));
        }
        wait_pause(wait);
    }
}

int barrier_ssh(struct init *init, struct err *err)
{
    if (!init->task.has_ssh_barrier || !init->role->is_ssh_enabled)
        return 0;
    if (init->task.ssh_barrier_timeout_s == 0 && init->sshd_pid == 0) {
        note(init, "ssh barrier: no sshd runs here, nobody is waited for");
        return 0;
    }
    struct wait wait = wait_begin(init, init->task.ssh_barrier_timeout_s, SSH_DEFAULT_S);
    for (size_t r = 0; r < init->job.role_count; r++) {
        const struct job_file_role *role = &init->job.roles[r];
        for (uint32_t i = 0; role->is_ssh_enabled && i < role->instances; i++) {
            if (init->sshd_pid == 0 && r == init->task.role && i == init->task.index)
                continue;
            int code = ssh_wait_for(&wait, r, i, err);
            if (code != 0)
                return code;
        }
    }
    note(init, "ssh barrier passed");
    return 0;
}

/* --- start --- */

struct url {
    char host[64];
    unsigned port;
    const char *path;
};

/* http://HOST:PORT/PATH with a numeric host, as the server writes it. */
static bool url_read(const char *text, struct url *url)
{
    static const char SCHEME[] = "http://";
    if (strncmp(text, SCHEME, sizeof SCHEME - 1) != 0)
        return false;
    text += sizeof SCHEME - 1;
    const char *slash = strchr(text, '/'), *colon = strrchr(text, ':');
    if (slash)
        for (colon = slash; colon > text && *colon != ':'; colon--)
            continue;
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof url->host)
        return false;
    bool is_bracketed = text[0] == '[' && colon[-1] == ']';
    snprintf(url->host, sizeof url->host, "%.*s", (int)(colon - text) - 2 * is_bracketed,
             text + is_bracketed);
    url->port = (unsigned)strtoul(colon + 1, NULL, 10);
    url->path = slash ? slash : "/";
    return url->port > 0 && url->port <= UINT16_MAX;
}

/* One held request: the status, or 0 when there was no answer. */
static int request_once(struct wait *wait, const struct url *url,
                        const struct sockaddr_storage *address, socklen_t length)
{
    struct buf text = BUF_INIT;
    char answer[ANSWER_BYTES];
    size_t got = 0;
    int status = 0, fd = connect_once(wait, address, length);
    if (fd < 0)
        return 0;
    buf_format(&text,
               "GET %s HTTP/1.1\r\nHost: %s:%u\r\nAuthorization: Bearer %s\r\n"
               "Connection: close\r\n\r\n",
               url->path, url->host, url->port, wait->init->task.barrier_token);
    ssize_t sent = send(fd, text.at, text.length, MSG_NOSIGNAL);
    bool is_open = sent == (ssize_t)text.length;
    while (is_open && got < sizeof answer - 1 && !memchr(answer, '\n', got) &&
           ready(wait, fd, POLLIN, wait->deadline_ms)) {
        ssize_t part = recv(fd, answer + got, sizeof answer - 1 - got, 0);
        is_open = part > 0 || (part < 0 && (errno == EAGAIN || errno == EINTR));
        got += part > 0 ? (size_t)part : 0;
    }
    answer[got] = '\0';
    if (sscanf(answer, "HTTP/1.%*d %d", &status) != 1)
        status = 0;
    buf_release(&text);
    close(fd);
    return status;
}

int barrier_start(struct init *init, struct err *err)
{
    struct url url;
    struct sockaddr_storage address;
    if (!init->task.barrier_url[0])
        return 0;
    init->end.code = EXIT_FILE_BARRIER;
    if (!url_read(init->task.barrier_url, &url))
        return err_fail(err, ERR_INVALID, "", "start barrier: cannot read the address \"%s\"",
                        init->task.barrier_url);
    socklen_t length = address_of(url.host, url.port, &address);
    if (length == 0)
        return err_fail(err, ERR_INVALID, "", "start barrier: \"%s\" is no IP address", url.host);
    struct wait wait = wait_begin(init, init->task.barrier_timeout_s, BARRIER_DEFAULT_S);
    for (;;) {
        int status = request_once(&wait, &url, &address, length);
        if (init->is_stopping)
            return STOPPED;
        if (status >= 200 && status < 300)
            break;
        if (status >= 400 && status < 500 && status != 408 && status != 429)
            return err_fail(err, ERR_UNAVAILABLE, "", "start barrier: the server answered %d",
                            status);
        if (is_over(&wait)) {
            init->end.code = EXIT_FILE_BARRIER_TIMEOUT;
            return err_fail(err, ERR_UNAVAILABLE, "", "start barrier timed out (last answer %d)",
                            status);
        }
        wait_pause(&wait);
    }
    init->end.code = 0;
    note(init, "start barrier passed");
    return 0;
}
