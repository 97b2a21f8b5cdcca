/* Waiting for the other tasks: by a request that the server holds until all have come; where no
 * server can be reached, by connecting to their ssh servers. Both are attempts with growing pauses
 * under one deadline; signals and output are dealt with meanwhile. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "init/init.h"
#include "sys/clock.h"

enum {
    PAUSE_FIRST_MS = 20,
    PAUSE_MAX_MS = 1000,
    CONNECT_MS = 5000,
    HOLD_MS = 60000,  /* a held request is made anew: a connection may be dead without a word */
    DEFAULT_S = 1800, /* OpenPAI documents 30 minutes */
    SAY_DEADLINE_MS = 10000, /* to say something that nobody waits for here */
    ANSWER_BYTES = 2048,
    SOCKET_PATH_MAX = sizeof((struct sockaddr_un *)NULL)->sun_path,
    STOPPED = 1, /* an outcome beside 0 and ERR_*: asked to end */
};

struct barrier_wait {
    struct init *init;
    int64_t deadline_ms;
    int64_t pause_ms;
};

static struct barrier_wait wait_begin(struct init *init, uint32_t timeout_s)
{
    int64_t timeout = timeout_s ? timeout_s : DEFAULT_S;
    return (struct barrier_wait){init, clock_monotonic_ms() + timeout * 1000, PAUSE_FIRST_MS};
}

static bool is_over(const struct barrier_wait *wait)
{
    return clock_monotonic_ms() >= wait->deadline_ms;
}

static void wait_pause(struct barrier_wait *wait)
{
    int64_t until = clock_monotonic_ms() + wait->pause_ms;
    if (until > wait->deadline_ms)
        until = wait->deadline_ms;
    while (!wait->init->is_stopping && clock_monotonic_ms() < until)
        loop_turn(wait->init, -1, 0, until);
    wait->pause_ms = wait->pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : wait->pause_ms * 2;
}

/* Until fd is ready. False: time is up, or the task is to end. */
static bool ready(struct barrier_wait *wait, int fd, short events, int64_t until)
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
static int connect_once(struct barrier_wait *wait, const struct sockaddr_storage *address,
                        socklen_t length)
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

/* --- by the server --- */

struct url {
    char host[SOCKET_PATH_MAX]; /* or the path of a socket */
    unsigned port;
    const char *path;
    bool is_local; /* port 0 */
};

/* unix:SOCKET:/PATH */
static bool local_url_read(const char *text, struct url *url)
{
    static const char SCHEME[] = "unix:";
    if (strncmp(text, SCHEME, sizeof SCHEME - 1) != 0)
        return false;
    text += sizeof SCHEME - 1;
    const char *colon = strchr(text, ':');
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof url->host || colon[1] != '/')
        return false;
    snprintf(url->host, sizeof url->host, "%.*s", (int)(colon - text), text);
    url->path = colon + 1;
    url->is_local = true;
    return true;
}

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

struct barrier_server {
    struct url url;
    struct sockaddr_storage address;
    socklen_t length;
};

/* An address that we cannot read is our own server's mistake. */
static int server_read(struct init *init, struct barrier_server *server, struct err *err)
{
    const char *text = init->task.barrier_url;
    *server = (struct barrier_server){0};
    if (local_url_read(text, &server->url)) {
        struct sockaddr_un *address = (struct sockaddr_un *)(void *)&server->address;
        address->sun_family = AF_UNIX;
        memcpy(address->sun_path, server->url.host, strlen(server->url.host) + 1);
        server->length = sizeof *address;
        return 0;
    }
    if (!url_read(text, &server->url))
        return err_fail(err, ERR_INVALID, "", "cannot read the server's address \"%s\"", text);
    server->length = address_of(server->url.host, server->url.port, &server->address);
    if (server->length == 0)
        return err_fail(err, ERR_INVALID, "", "\"%s\" is no IP address", server->url.host);
    return 0;
}

/* An answer is whole when the server has closed the connection. */
static size_t answer_read(struct barrier_wait *wait, int fd, int64_t until,
                          char answer[ANSWER_BYTES])
{
    size_t got = 0;
    bool is_open = true;
    while (is_open && got < ANSWER_BYTES - 1 && ready(wait, fd, POLLIN, until)) {
        ssize_t part = recv(fd, answer + got, ANSWER_BYTES - 1 - got, 0);
        is_open = part > 0 || (part < 0 && (errno == EAGAIN || errno == EINTR));
        got += part > 0 ? (size_t)part : 0;
    }
    answer[got] = '\0';
    return got;
}

/* What the server says to people, out of {"code": …, "message": "…"}. */
static void message_of(const char *answer, char *message, size_t size)
{
    static const char KEY[] = "\"message\":\"";
    const char *at = strstr(answer, KEY);
    size_t length = 0;
    for (at = at ? at + sizeof KEY - 1 : ""; *at && *at != '"' && length < size - 1; at++)
        if (*at != '\\' && (unsigned char)*at >= ' ')
            message[length++] = *at;
    message[length] = '\0';
}

/* One request: the status, or 0 when there was no answer in time. */
static int request_once(struct barrier_wait *wait, const struct barrier_server *server,
                        const char *what, char *message, size_t size)
{
    cleanup_buf struct buf text = BUF_INIT;
    char answer[ANSWER_BYTES] = "";
    int64_t until = clock_monotonic_ms() + HOLD_MS;
    int status = 0, fd = connect_once(wait, &server->address, server->length);
    message[0] = '\0';
    if (fd < 0)
        return 0;
    buf_format(&text,
               "POST %s%s HTTP/1.1\r\nHost: %s:%u\r\nAuthorization: Bearer %s\r\n"
               "Content-Length: 0\r\nConnection: close\r\n\r\n",
               server->url.path, what, server->url.is_local ? "localhost" : server->url.host,
               server->url.port, wait->init->task.barrier_token);
    ssize_t sent = send(fd, text.at, text.length, MSG_NOSIGNAL);
    if (sent == (ssize_t)text.length && answer_read(wait, fd, until, answer) > 0 &&
        sscanf(answer, "HTTP/1.%*d %d", &status) != 1)
        status = 0;
    message_of(answer, message, size);
    close(fd);
    return status;
}

enum outcome { PASSED, BROKEN, REFUSED, LATE, ASKED_TO_END };

/* Ask until there is an answer that stays. */
static enum outcome server_ask(struct barrier_wait *wait, const struct barrier_server *server,
                               const char *what, char *message, size_t size)
{
    for (;;) {
        int64_t begin_ms = clock_monotonic_ms();
        int status = request_once(wait, server, what, message, size);
        if (wait->init->is_stopping)
            return ASKED_TO_END;
        if (status >= 200 && status < 300)
            return PASSED;
        if (status == 409)
            return BROKEN;
        if (status >= 400 && status < 500 && status != 408 && status != 429) {
            if (!message[0])
                snprintf(message, size, "the server answered %d", status);
            return REFUSED;
        }
        if (is_over(wait))
            return LATE;
        if (clock_monotonic_ms() - begin_ms >= PAUSE_MAX_MS) /* it was held: no need to be shy */
            wait->pause_ms = PAUSE_FIRST_MS;
        wait_pause(wait);
    }
}

/* --- start --- */

int barrier_start(struct init *init, struct err *err)
{
    struct barrier_server server;
    char message[160];
    if (!init->task.has_start_barrier || !init->task.barrier_url[0])
        return 0;
    init->end.code = EXIT_FILE_BARRIER;
    int code = server_read(init, &server, err);
    if (code < 0)
        return code;
    struct barrier_wait wait = wait_begin(init, init->task.barrier_timeout_s);
    switch (server_ask(&wait, &server, "start", message, sizeof message)) {
    case PASSED:
        break;
    case BROKEN:
        init->end.code = EXIT_FILE_BARRIER_BROKEN;
        return err_fail(err, ERR_UNAVAILABLE, "", "start barrier: %s", message);
    case REFUSED:
        return err_fail(err, ERR_UNAVAILABLE, "", "start barrier: %s", message);
    case LATE:
        init->end.code = EXIT_FILE_BARRIER_TIMEOUT;
        return err_fail(err, ERR_UNAVAILABLE, "", "start barrier timed out: not all tasks came");
    case ASKED_TO_END:
        return STOPPED;
    }
    init->end.code = 0;
    note(init, "start barrier passed");
    return 0;
}

/* --- ssh --- */

static int ssh_wait_for(struct barrier_wait *wait, size_t role, uint32_t index, struct err *err)
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

/* Each by itself: for engines whose containers cannot reach the server. */
static int ssh_by_connecting(struct barrier_wait *wait, struct err *err)
{
    struct init *init = wait->init;
    for (size_t r = 0; r < init->job.role_count; r++) {
        const struct job_file_role *role = &init->job.roles[r];
        for (uint32_t i = 0; role->is_ssh_enabled && i < role->instances; i++) {
            if (init->sshd_pid == 0 && r == init->task.role && i == init->task.index)
                continue;
            int code = ssh_wait_for(wait, r, i, err);
            if (code != 0)
                return code;
        }
    }
    return 0;
}

/* Until our own server takes connections, or has ended. 0, or STOPPED. */
static int ssh_wait_for_own(struct barrier_wait *wait, bool *is_up)
{
    struct init *init = wait->init;
    struct sockaddr_storage address;
    unsigned port = env_port(&init->job, init->task.role, init->task.index, "ssh");
    socklen_t length = address_of(init->self->address, port, &address);
    if (length == 0) /* a name: our server listens at every address */
        length = address_of("127.0.0.1", port, &address);
    for (*is_up = false; init->sshd_pid > 0 && !is_over(wait); wait_pause(wait)) {
        int fd = connect_once(wait, &address, length);
        *is_up = fd >= 0;
        if (*is_up)
            close(fd);
        if (*is_up || init->is_stopping)
            break;
    }
    wait->pause_ms = PAUSE_FIRST_MS;
    return init->is_stopping ? STOPPED : 0;
}

/* What to say: `waits` for the others, or only that we are here. */
static const char *ssh_question(const struct init *init, bool is_up, bool waits)
{
    bool is_missing = !is_up && !init->role->is_ssh_optional;
    if (waits)
        return is_missing ? "ssh?missing=1" : "ssh";
    return is_missing ? "ssh?missing=1&report=1" : "ssh?report=1";
}

static int ssh_by_server(struct barrier_wait *wait, bool waits, struct err *err)
{
    struct init *init = wait->init;
    struct barrier_server server;
    char message[160];
    bool is_up;
    int code = server_read(init, &server, err);
    if (code == 0)
        code = ssh_wait_for_own(wait, &is_up);
    if (code != 0)
        return code;
    switch (server_ask(wait, &server, ssh_question(init, is_up, waits), message, sizeof message)) {
    case PASSED:
        return 0;
    case BROKEN:
    case REFUSED:
        init->end.code = EXIT_FILE_SSH_BARRIER;
        return err_fail(err, ERR_UNAVAILABLE, "", "ssh barrier gave up: %s", message);
    case LATE:
        init->end.code = EXIT_FILE_SSH_BARRIER;
        return err_fail(err, ERR_UNAVAILABLE, "",
                        "ssh barrier timed out: not all ssh servers came");
    case ASKED_TO_END:
        return STOPPED;
    }
    return 0;
}

/* Others wait for us, we wait for nobody. */
static int ssh_report(struct init *init, struct err *err)
{
    struct barrier_wait wait = wait_begin(init, 0);
    struct err why = {0};
    wait.deadline_ms = clock_monotonic_ms() + SAY_DEADLINE_MS;
    int code = ssh_by_server(&wait, false, &why);
    (void)err;
    if (code == STOPPED)
        return code;
    if (code < 0)
        note(init, "%s", why.text);
    init->end.code = 0;
    return 0;
}

int barrier_ssh(struct init *init, struct err *err)
{
    const struct task_file *task = &init->task;
    bool waits = task->has_ssh_barrier && init->role->is_ssh_enabled;
    bool has_server = task->reports_ssh && task->barrier_url[0];
    if (waits && init->role->is_ssh_optional && init->sshd_pid == 0) {
        note(init, "ssh barrier: no sshd runs here, nobody is waited for");
        waits = false;
    }
    if (!waits)
        return has_server ? ssh_report(init, err) : 0;
    struct barrier_wait wait = wait_begin(init, task->ssh_barrier_timeout_s);
    int code = has_server ? ssh_by_server(&wait, true, err) : ssh_by_connecting(&wait, err);
    if (code == 0)
        note(init, "ssh barrier passed");
    return code;
}
