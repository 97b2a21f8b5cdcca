/* exec, shell, attach: a program in a running task, before this terminal. */
#include "base/memory.h"
#include "base/text.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/print.h"
#include "sys/clock.h"
#include "sys/websocket.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

enum {
    BLOCK = 16 << 10,
    WAITING_MAX = 64 << 10,
    RETRY_MS = 500,
    PATIENCE_MS = 60000, /* the server keeps a session for so long */
};
enum { CLOSE_REPLACED = 4001 };
enum { CHANNEL_INPUT = 0, CHANNEL_OUTPUT = 1, CHANNEL_ERROR = 2 };

/* One session, over as many connections as it takes. */
struct sitting {
    struct client *client;
    char *id;
    struct client_socket *socket;
    struct websocket *websocket;
    uint64_t received; /* bytes of output, which a new connection leaves out */
    bool has_terminal; /* there */
    bool is_raw, is_input_over, is_over, is_output_broken;
    int signals; /* signalfd of SIGWINCH */
    int code;
    struct termios before;
};

/* ---- this terminal ---- */

static void terminal_raw(struct sitting *sitting)
{
    struct termios raw;
    if (!sitting->has_terminal || sitting->is_raw || tcgetattr(STDIN_FILENO, &sitting->before) < 0)
        return;
    raw = sitting->before;
    cfmakeraw(&raw);
    sitting->is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void terminal_restore(struct sitting *sitting)
{
    if (sitting->is_raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &sitting->before);
    sitting->is_raw = false;
}

static void terminal_size(unsigned *rows, unsigned *columns)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    *rows = size.ws_row;
    *columns = size.ws_col;
}

static void bytes_put(struct sitting *sitting, int fd, const char *bytes, size_t length)
{
    while (length && !sitting->is_output_broken) {
        ssize_t wrote = write(fd, bytes, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0 && errno == EAGAIN) { /* a terminal that others have made not to block */
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            poll(&ready, 1, -1);
            continue;
        }
        if (wrote < 0) {
            sitting->is_output_broken = true;
            break;
        }
        bytes += wrote;
        length -= (size_t)wrote;
    }
}

/* ---- what is said ---- */

/* `message` is given away. */
static void say(struct sitting *sitting, json_t *message)
{
    char *text = json_dumps(message, JSON_COMPACT);
    websocket_send(sitting->websocket, true, text_of(text));
    free(text);
    json_decref(message);
}

static void say_size(struct sitting *sitting)
{
    unsigned rows, columns;
    terminal_size(&rows, &columns);
    say(sitting,
        json_pack("{s:s, s:i, s:i}", "type", "resize", "rows", (int)rows, "columns", (int)columns));
}

static void control_take(struct sitting *sitting, struct text message)
{
    json_t *json = json_loadb(message.at, message.length, 0, NULL);
    const char *type = field_text(json, "type");
    if (type && strcmp(type, "attached") == 0) {
        sitting->received = (uint64_t)field_int(json, "from");
        sitting->has_terminal = json_is_true(json_object_get(json, "terminal"));
        if (sitting->has_terminal && isatty(STDIN_FILENO)) {
            terminal_raw(sitting);
            say_size(sitting);
        }
    } else if (type && strcmp(type, "end") == 0) {
        const char *reason = field_text(json, "reason"), *sentence = field_text(json, "message");
        sitting->is_over = true;
        sitting->code = (int)field_int(json, "code");
        if (!reason || strcmp(reason, "exited") != 0) {
            terminal_restore(sitting);
            sitting->code = cli_fail(EXIT_SKEP, "%s", sentence ? sentence : "the session ended");
        }
    }
    json_decref(json);
}

static void on_message(void *context, bool is_text, struct text message)
{
    struct sitting *sitting = context;
    if (is_text) {
        control_take(sitting, message);
    } else if (message.length > 1) {
        sitting->received += message.length - 1;
        bytes_put(sitting, message.at[0] == CHANNEL_ERROR ? STDERR_FILENO : STDOUT_FILENO,
                  message.at + 1, message.length - 1);
    }
}

/* ---- the connection ---- */

static void disconnect(struct sitting *sitting)
{
    websocket_free(sitting->websocket);
    client_socket_close(sitting->socket);
    sitting->websocket = NULL;
    sitting->socket = NULL;
}

static ssize_t socket_read(void *context, void *bytes, size_t size)
{
    const struct sitting *sitting = context;
    return client_socket_read(sitting->socket, bytes, size);
}

static ssize_t socket_write(void *context, const void *bytes, size_t size)
{
    const struct sitting *sitting = context;
    return client_socket_write(sitting->socket, bytes, size);
}

static int connect_once(struct sitting *sitting)
{
    const struct websocket_ops ops = {sitting, socket_read, socket_write, on_message};
    cleanup_buf struct buf path = BUF_INIT;
    buf_string(&path, "/api/v2/exec/");
    client_encode(&path, sitting->id);
    buf_format(&path, "?from=%llu", (unsigned long long)sitting->received);
    int code =
        client_socket_open(sitting->client, buf_cstr(&path), "skep.exec.v1", &sitting->socket);
    if (code == 0)
        sitting->websocket = websocket_new(&ops, true);
    return code;
}

static void input_take(struct sitting *sitting)
{
    char message[1 + BLOCK];
    ssize_t length = read(STDIN_FILENO, message + 1, BLOCK);
    message[0] = CHANNEL_INPUT;
    if (length > 0) {
        websocket_send(sitting->websocket, false, (struct text){message, (size_t)length + 1});
    } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
        sitting->is_input_over = true;
        say(sitting, json_pack("{s:s}", "type", "inputEnd"));
    }
}

/* Until the session has ended, or the connection has. */
static void talk(struct sitting *sitting)
{
    while (websocket_work(sitting->websocket) && !sitting->is_output_broken) {
        bool wants_input = !sitting->is_input_over && !sitting->is_over &&
                           websocket_queued(sitting->websocket) < WAITING_MAX;
        struct pollfd waits[] = {
            {.fd = client_socket_fd(sitting->socket),
             .events = websocket_events(sitting->websocket, true)},
            {.fd = wants_input ? STDIN_FILENO : -1, .events = POLLIN},
            {.fd = sitting->signals, .events = POLLIN},
        };
        if (poll(waits, COUNT_OF(waits), websocket_wants_turn(sitting->websocket) ? 0 : -1) < 0)
            continue;
        if (waits[1].revents)
            input_take(sitting);
        if (waits[2].revents) {
            struct signalfd_siginfo info;
            while (read(sitting->signals, &info, sizeof info) == (ssize_t)sizeof info)
                continue;
            if (sitting->has_terminal)
                say_size(sitting);
        }
    }
}

/* Connected again within the server's patience, or not at all. */
static int reconnect(struct sitting *sitting)
{
    const int64_t until = clock_monotonic_ms() + PATIENCE_MS;
    int code = EXIT_UNREACHABLE;
    terminal_restore(sitting);
    print_error("skep: the connection is lost, trying again\n");
    while (code == EXIT_UNREACHABLE && clock_monotonic_ms() < until) {
        poll(NULL, 0, RETRY_MS);
        code = connect_once(sitting);
    }
    if (code == EXIT_UNREACHABLE)
        cli_fail(EXIT_SKEP,
                 "%s cannot be reached any more; go on within a minute by: skep attach %s",
                 client_server(sitting->client), sitting->id);
    return code ? EXIT_SKEP : 0;
}

static int sit(struct sitting *sitting)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sitting->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    int code = connect_once(sitting);
    if (code == EXIT_UNREACHABLE)
        code = client_unreachable(sitting->client, "the connection broke");
    while (!code) {
        talk(sitting);
        unsigned why = websocket_close_code(sitting->websocket);
        disconnect(sitting);
        if (sitting->is_over) {
            code = sitting->code;
            break;
        }
        if (sitting->is_output_broken) /* nobody reads here any more, as of `| head` */
            code = EXIT_SKEP;
        else if (why == CLOSE_REPLACED)
            code = cli_fail(EXIT_SKEP, "another window has taken over the session");
        else if (!sitting->has_terminal)
            code = cli_fail(EXIT_SKEP, "the connection broke, and the command was ended");
        else
            code = reconnect(sitting);
    }
    terminal_restore(sitting);
    disconnect(sitting);
    close(sitting->signals);
    return code;
}

/* ---- commands ---- */

static json_t *request_make(const struct cli *cli, const char *const *command, int count)
{
    bool has_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    const char *name = getenv("TERM");
    json_t *words = json_array();
    unsigned rows, columns;
    terminal_size(&rows, &columns);
    for (int i = 0; i < count; i++)
        json_array_append_new(words, json_string(command[i]));
    has_terminal = !cli_flag(cli, "no-terminal") && (has_terminal || cli_flag(cli, "terminal"));
    json_t *request = json_pack("{s:b, s:i, s:i, s:o}", "terminal", has_terminal, "rows", (int)rows,
                                "columns", (int)columns, "command", words);
    if (name && name[0] && strcmp(name, "dumb") != 0)
        json_object_set_new(request, "term", json_string(name));
    return request;
}

static int session_open(struct cli *cli, struct client *client, json_t *request, char **id)
{
    cleanup_buf struct buf path = BUF_INIT;
    char *body = json_dumps(request, JSON_COMPACT);
    json_auto_t *reply = NULL;
    if (!body)
        return cli_fail(EXIT_USAGE, "the command is not UTF-8");
    job_path(&path, cli->arguments[0], "/exec");
    const struct client_request post = {.method = "POST",
                                        .path = buf_cstr(&path),
                                        .content_type = "application/json",
                                        .body = text_of(body)};
    int code = client_call(client, &post, &reply);
    const char *given = field_text(reply, "id");
    if (!code && !given)
        code = cli_fail(EXIT_SKEP, "the server named no session");
    if (!code)
        *id = mem_copy(given);
    free(body);
    return code;
}

static int session_begin(struct cli *cli, const char *task, const char *const *command, int count)
{
    struct sitting sitting = {.client = cli_client(cli)};
    if (!sitting.client)
        return EXIT_REFUSED;
    json_t *request = request_make(cli, command, count);
    int code = task ? job_task_put(task, request) : 0;
    if (!code)
        code = session_open(cli, sitting.client, request, &sitting.id);
    if (!code)
        code = sit(&sitting);
    mem_free(sitting.id);
    json_decref(request);
    return code;
}

int run_exec(struct cli *cli)
{
    int at = cli->rest_at;
    if (at == cli->argument_count || at < 1 || at > 2)
        return cli_fail(EXIT_USAGE,
                        "exec needs JOB [TASK] -- COMMAND: the command stands behind `--`");
    return session_begin(cli, at == 2 ? cli->arguments[1] : NULL, cli->arguments + at,
                         cli->argument_count - at);
}

int run_shell(struct cli *cli)
{
    return session_begin(cli, cli->argument_count > 1 ? cli->arguments[1] : NULL, NULL, 0);
}

int run_attach(struct cli *cli)
{
    struct sitting sitting = {.client = cli_client(cli)};
    if (!sitting.client)
        return EXIT_REFUSED;
    sitting.id = mem_copy(cli->arguments[0]);
    int code = sit(&sitting);
    mem_free(sitting.id);
    return code;
}
