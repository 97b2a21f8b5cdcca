/* Programs that are started beside a task's own, by the runtime's `exec`. skep-init stands between
 * the runtime and the program (init/enter.c): it makes the terminal, tells how the program ends,
 * and ends all of it when our end of its socket is closed, which the kernel does when the server
 * dies. */
#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/local/document.h"
#include "engine/local/enter_socket.h"
#include "engine/local/task.h"
#include "init/layout.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/mailbox.h"
#include "sys/process.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    START_MS = 30000,   /* less than the server's end may take, which waits for it */
    TASK_END_MS = 2000, /* from the end of a task's processes to that of its first one */
    RUNTIME_END_MS = 5000,
    CONFIG_MAX = 4 << 20,
    PTMX_MAJOR = 5,
    PTMX_MINOR = 2,
};

struct local_exec {
    struct engine_exec exec; /* first */
    int task;                /* pidfd of the task's first process */
    pid_t runtime;
    struct enter_socket socket; /* exec.end */
};

/* Their ends of its descriptors, until it has them. */
struct their_ends {
    int streams[3], socket;
};

static void descriptor_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void their_ends_close(struct their_ends *ends)
{
    for (int i = 0; i < 3; i++)
        descriptor_close(&ends->streams[i]);
    descriptor_close(&ends->socket);
}

/* --- what it runs --- */

static void arguments_write(const struct engine_exec_request *request, struct json_writer *json)
{
    char terminal[128] = "-";
    if (request->has_terminal)
        snprintf(terminal, sizeof terminal, "%ux%u:%s", request->rows, request->columns,
                 request->terminal[0] ? request->terminal : "xterm");
    json_key(json, "args");
    json_array(json);
    json_string(json, LAYOUT_INIT);
    json_string(json, LAYOUT_ENTER);
    json_string(json, terminal);
    for (const char *const *argument = request->argv; *argument; argument++)
        json_string(json, *argument);
    json_array_end(json);
}

/* As the task's own process in the container's configuration: user, rights, limits, environment,
 * folder. */
static int program_write(const struct doc *config, const struct engine_exec_request *request,
                         struct arena *arena, struct buf *out, struct err *err)
{
    struct json_writer json;
    const struct doc *process = doc_get_map(config, "process");
    if (!doc_get(process, "args"))
        return err_fail(err, ERR_CORRUPT, "", "the container's configuration has no process");
    json_init(&json, out);
    json_object(&json);
    for (size_t i = 0; i < process->as.map.count; i++) {
        const struct doc_entry *entry = &process->as.map.entries[i];
        cleanup_buf struct buf value = BUF_INIT;
        if (text_is(entry->key, "args"))
            continue;
        if (doc_to_json(entry->value, CONFIG_MAX, &value) < 0)
            return err_fail(err, ERR_TOO_BIG, "", "the container's configuration is too big");
        json_key(&json, arena_copy(arena, entry->key));
        json_raw(&json, buf_as_text(&value));
    }
    arguments_write(request, &json);
    json_object_end(&json);
    return 0;
}

/* Does the container inherit its network from the runtime (start.c)? Then so must what joins it. */
static bool network_is_inherited(const struct doc *config)
{
    const struct doc *list = doc_get_list(doc_get_map(config, "linux"), "namespaces");
    bool has_users = false, has_network = false;
    for (size_t i = 0; i < document_count(list); i++) {
        const char *type = document_string(list->as.list.items[i], "type");
        has_users |= strcmp(type, "user") == 0;
        has_network |= strcmp(type, "network") == 0;
    }
    return has_users && !has_network;
}

static int program_put(const struct local_engine *local, const char *id,
                       const struct engine_exec_request *request, const char *path,
                       bool *has_inherited_network, struct err *err)
{
    char config_path[RUNTIME_PATH_MAX];
    cleanup_buf struct buf text = BUF_INIT, program = BUF_INIT;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    task_run_path(local, id, "config.json", config_path);
    int code = file_read(config_path, CONFIG_MAX, &text, err);
    const struct doc *config = code == 0 ? document_read(buf_as_text(&text), false, &arena) : NULL;
    if (code == 0 && !config)
        code = err_fail(err, ERR_CORRUPT, "", "%s is not JSON", config_path);
    if (code == 0)
        *has_inherited_network = network_is_inherited(config);
    if (code == 0)
        code = program_write(config, request, &arena, &program, err);
    if (code == 0)
        code = file_put(path, buf_as_text(&program), 0600, err);
    return code;
}

/* --- its descriptors --- */

/* A pipe: `ours` is the end that we use, 0 to read or 1 to write. */
static int pipe_make(int ours, int *own, int *other, struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, errno, "make a pipe");
    *own = ends[ours];
    *other = ends[!ours];
    fcntl(*own, F_SETFL, O_NONBLOCK);
    return 0;
}

/* Standard error is a pipe with a terminal, too, until it runs: what the runtime complains of. */
static int descriptors_make(struct local_exec *exec, bool has_terminal, struct their_ends *ends,
                            struct err *err)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return err_errno(err, errno, "make a pair of sockets");
    exec->exec.end = exec->socket.fd = sockets[0];
    ends->socket = sockets[1];
    fcntl(exec->exec.end, F_SETFL, O_NONBLOCK);
    int code = pipe_make(0, &exec->exec.error, &ends->streams[2], err);
    if (code == 0 && !has_terminal)
        code = pipe_make(1, &exec->exec.input, &ends->streams[0], err);
    if (code == 0 && !has_terminal)
        code = pipe_make(0, &exec->exec.output, &ends->streams[1], err);
    return code;
}

/* The task could send anything: only a terminal's master is read from without ever waiting. */
static bool is_master(int fd)
{
    struct stat status;
    unsigned number;
    return fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) &&
           major(status.st_rdev) == PTMX_MAJOR && minor(status.st_rdev) == PTMX_MINOR &&
           ioctl(fd, TIOCGPTN, &number) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

/* What the runtime or skep-init said before they gave up. */
static int start_failed(const struct local_exec *exec, struct err *err)
{
    char text[512];
    ssize_t length = read(exec->exec.error, text, sizeof text);
    struct text said = text_trim((struct text){text, length > 0 ? (size_t)length : 0});
    if (said.length)
        return err_fail(err, ERR_UNAVAILABLE, "", "the program cannot be started: %.*s",
                        TEXT_ARG(said));
    return err_fail(err, ERR_UNAVAILABLE, "", "the program cannot be started");
}

static int start_wait(struct local_exec *exec, bool has_terminal, struct err *err)
{
    const int64_t until = clock_monotonic_ms() + START_MS;
    for (int64_t left = START_MS; left > 0; left = until - clock_monotonic_ms()) {
        struct pollfd ready = {.fd = exec->exec.end, .events = POLLIN};
        char bytes[ENTER_MESSAGE_SIZE] = {0};
        int fd;
        if (poll(&ready, 1, (int)left) <= 0)
            continue;
        ssize_t length = enter_socket_take(&exec->socket, bytes, &fd);
        if (length < 0)
            continue;
        if (length != 1 || bytes[0] != LAYOUT_ENTER_STARTED || (has_terminal && !is_master(fd))) {
            descriptor_close(&fd);
            return start_failed(exec, err);
        }
        if (has_terminal) {
            descriptor_close(&exec->exec.error);
            exec->exec.input = exec->exec.output = fd;
        } else {
            descriptor_close(&fd);
        }
        return 0;
    }
    return err_fail(err, ERR_UNAVAILABLE, "", "the program was not started within %d s",
                    START_MS / 1000);
}

/* --- operations --- */

static void exec_resize(struct engine_exec *exec, uint16_t rows, uint16_t columns)
{
    struct winsize size = {.ws_row = rows, .ws_col = columns};
    if (exec->error < 0) /* it has gone: nobody looks at it any more */
        (void)ioctl(exec->output, TIOCSWINSZ, &size);
}

static bool exec_ended(struct engine_exec *engine_exec, struct engine_exec_end *end)
{
    struct local_exec *exec = (struct local_exec *)engine_exec;
    const struct enter_socket *told = &exec->socket;
    if (!enter_socket_is_over(&exec->socket))
        return false;
    /* the kernel kills what is in a container before its first process has ended */
    struct pollfd task = {.fd = exec->task, .events = POLLIN};
    bool is_killed = !told->has_code && !told->is_ending;
    *end = (struct engine_exec_end){.code = told->has_code ? told->code : 128 + SIGKILL};
    end->is_task_ended = told->is_ending || (is_killed && poll(&task, 1, TASK_END_MS) == 1);
    return true;
}

static void exec_free(struct engine_exec *engine_exec)
{
    struct local_exec *exec = (struct local_exec *)engine_exec;
    struct engine_exec *own = &exec->exec;
    if (own->input == own->output)
        own->input = -1;
    descriptor_close(&own->input);
    descriptor_close(&own->output);
    descriptor_close(&own->error);
    descriptor_close(&own->end); /* skep-init ends the program, and with it the runtime ends */
    if (exec->runtime > 0) {
        cleanup_close int watch = process_watch(exec->runtime, NULL);
        struct pollfd ready = {.fd = watch, .events = POLLIN};
        int status;
        if (watch < 0 || poll(&ready, 1, RUNTIME_END_MS) != 1)
            kill(exec->runtime, SIGKILL);
        process_wait(exec->runtime, &status, NULL);
    }
    descriptor_close(&exec->task);
    mem_free(exec);
}

static const struct engine_exec_ops exec_ops = {exec_resize, exec_ended, exec_free};

static int program_start(struct local_engine *local, const char *id, struct local_exec *exec,
                         const struct engine_exec_request *request, struct err *err)
{
    char path[RUNTIME_PATH_MAX], name[48];
    struct their_ends ends = {{-1, -1, -1}, -1};
    bool has_inherited_network = false;
    snprintf(name, sizeof name, "exec-%p", (void *)exec); /* unique while it exists */
    task_run_path(local, id, name, path);
    int code = program_put(local, id, request, path, &has_inherited_network, err);
    if (code == 0)
        code = descriptors_make(exec, request->has_terminal, &ends, err);
    const struct runtime_program program = {
        .process = path,
        .streams = {ends.streams[0], ends.streams[1], ends.streams[2]},
        .more = ends.socket,
        .network_of = has_inherited_network ? exec->task : -1,
    };
    if (code == 0)
        code = runtime_exec(&local->runtime, id, &program, &exec->runtime, err);
    their_ends_close(&ends);
    if (code == 0)
        code = start_wait(exec, request->has_terminal, err);
    unlink(path);
    return code;
}

int task_hold(struct local_engine *local, struct attempt_id attempt, struct err *err)
{
    int fd = -1;
    pthread_mutex_lock(&local->lock);
    const struct task *task = task_find(local, attempt);
    if (!task)
        err_fail(err, ERR_NOT_FOUND, "", "there is no container of attempt %" PRIu64, attempt.v);
    else if (task->phase != TASK_RUNNING || !task->is_started || task->init_fd < 0)
        err_fail(err, ERR_CONFLICT, "", "the task does not run");
    else if (task->is_kill_wanted)
        err_fail(err, ERR_CONFLICT, "", "the task is ending");
    else if ((fd = fcntl(task->init_fd, F_DUPFD_CLOEXEC, 0)) < 0)
        err_errno(err, errno, "hold the task's first process");
    pthread_mutex_unlock(&local->lock);
    return fd < 0 ? err->code : fd;
}

int local_exec(struct engine *engine, struct attempt_id attempt,
               const struct engine_exec_request *request, struct engine_exec **out, struct err *err)
{
    struct local_engine *local = (struct local_engine *)engine;
    struct err failure = {0};
    char id[24];
    assert(request->argv && (!request->has_terminal || request->terminal));
    snprintf(id, sizeof id, "%" PRIu64, attempt.v);
    int task = task_hold(local, attempt, &failure);
    int code = task < 0 ? task : 0;
    if (code == 0) {
        struct local_exec *exec = mem_zero(1, sizeof *exec);
        exec->exec = (struct engine_exec){
            .ops = &exec_ops, .input = -1, .output = -1, .error = -1, .end = -1};
        exec->task = task;
        code = program_start(local, id, exec, request, &failure);
        if (code == 0)
            *out = &exec->exec;
        else
            exec_free(&exec->exec);
    }
    if (code < 0 && err)
        *err = failure;
    return code;
}
