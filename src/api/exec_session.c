#include "api/exec_session.h"
#include "api/http_watch.h"
#include "api/service.h"
#include "base/byte_flow.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/printable.h"
#include "doc/doc.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/secret.h"
#include "sys/websocket.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BLOCK = 16 << 10,
    WAITING_MAX = 64 << 10, /* bytes on their way in either direction before no more are read */
    GONE_MS = 3000 * EXEC_PING_S, /* a client that has not said anything for three pings */
    FAREWELL_MS = 5000,           /* after the end, without a byte going out; in all, when told */
    PROGRAM_NAME_MAX = 64,
};
enum { CHANNEL_INPUT = 0, CHANNEL_OUTPUT = 1, CHANNEL_ERROR = 2 };
enum { CLOSE_REPLACED = 4001 };

/* The newest of what a terminal has shown. */
struct shown {
    char *bytes;   /* EXEC_REPLAY_BYTES */
    uint64_t end;  /* bytes ever written */
    uint64_t sent; /* those before this one have gone out to some connection */
};

struct connection {
    struct http_socket socket; /* fd -1: nobody is connected */
    struct websocket *websocket;
    struct buf early; /* came with the upgrade, before anything that is read */
    size_t early_taken;
    int64_t heard_ms;
    bool is_leaving; /* the farewell is on its way */
};

struct exec_session {
    struct exec_sessions *all;
    struct arena arena; /* of the strings */
    char id[EXEC_ID_LENGTH + 1];
    struct exec_wanted wanted;
    pthread_t thread;
    int wake_fd;

    /* under the lock of all */
    struct connection offered; /* socket.fd -1: none */
    uint64_t offered_from;
    struct opener opener;
    const char *told_to_end; /* why: a word of the protocol; NULL: not */
    bool is_doubtful;        /* whether the opener still may is looked at at once */
    bool is_done;            /* nothing but the end of the thread follows */

    /* the thread's */
    struct engine_exec *exec;
    struct connection connection;
    struct shown replay;
    struct byte_flow input;
    bool was_attached, is_input_over, is_output_over, is_error_over;
    bool is_told;           /* to end: nobody is waited for any more */
    const char *end_reason; /* NULL: it runs */
    int end_code;
    int64_t begun_ms, moved_ms, detached_ms, ping_ms, look_ms, farewell_ms; /* 0: not yet */
};

struct exec_sessions {
    struct service *service;
    pthread_mutex_t lock;
    struct exec_session *items[EXEC_SESSIONS_MAX];
    bool is_stopping;
};

/* --- the replay --- */

static void shown_add(struct shown *replay, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t at = (size_t)((replay->end + i) % EXEC_REPLAY_BYTES);
        size_t part = EXEC_REPLAY_BYTES - at < length - i ? EXEC_REPLAY_BYTES - at : length - i;
        memcpy(replay->bytes + at, bytes + i, part);
        i += part;
    }
    replay->end += length;
}

static uint64_t shown_begin(const struct shown *replay)
{
    return replay->end > EXEC_REPLAY_BYTES ? replay->end - EXEC_REPLAY_BYTES : 0;
}

/* --- what is said --- */

static void say(struct exec_session *session, const struct buf *json)
{
    if (session->connection.websocket)
        websocket_send(session->connection.websocket, true, buf_as_text(json));
}

static void say_bytes(struct exec_session *session, char channel, const char *bytes, size_t length)
{
    cleanup_buf struct buf message = BUF_INIT;
    if (!session->connection.websocket || !length)
        return;
    buf_char(&message, channel);
    buf_add(&message, bytes, length);
    websocket_send(session->connection.websocket, false, buf_as_text(&message));
}

static void say_attached(struct exec_session *session, uint64_t from)
{
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_object(&json);
    json_key_string(&json, "type", "attached");
    json_key_bool(&json, "terminal", session->wanted.request.has_terminal);
    json_key_int(&json, "from", (int64_t)from);
    json_key_int(&json, "seen", (int64_t)session->replay.sent);
    json_object_end(&json);
    say(session, &text);
}

static const char *end_sentence(const char *reason)
{
    static const struct {
        const char *reason, *sentence;
    } ALL[] = {
        {"exited", "the program has ended"},
        {"taskEnded", "the task has ended, and the program with it"},
        {"connectionLost", "the connection to the program was lost, so that its end is not known"},
        {"idle", "nothing was typed or written for an hour"},
        {"detached", "nobody was connected for a minute"},
        {"stopped", "the session was told to end"},
        {"notAllowed",
         "the user is not allowed any more: the token, the account or the right has ended"},
        {"serverEnding", "the server is ending"},
    };
    for (size_t i = 0; i < COUNT_OF(ALL); i++)
        if (strcmp(ALL[i].reason, reason) == 0)
            return ALL[i].sentence;
    assert(false && "a reason without a sentence");
    return reason;
}

/* The last message. */
static void say_end(struct exec_session *session)
{
    cleanup_buf struct buf text = BUF_INIT;
    struct json_writer json;
    json_init(&json, &text);
    json_object(&json);
    json_key_string(&json, "type", "end");
    json_key_string(&json, "reason", session->end_reason);
    json_key_string(&json, "message", end_sentence(session->end_reason));
    if (session->end_code >= 0)
        json_key_int(&json, "code", session->end_code);
    json_object_end(&json);
    say(session, &text);
    websocket_close(session->connection.websocket, WEBSOCKET_CLOSE_NORMAL, session->end_reason);
    session->connection.is_leaving = true;
}

/* A line of the job's story: who, what, where from. Not the arguments: others read it. */
static void note(const struct exec_session *session, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void note(const struct exec_session *session, const char *reason, const char *format, ...)
{
    const struct exec_wanted *wanted = &session->wanted;
    struct service *service = session->all->service;
    cleanup_buf struct buf text = BUF_INIT, name = BUF_INIT;
    va_list args;
    const char *program = wanted->request.argv[0];
    printable_put(&name, text_of(program ? program : "the shell"));
    struct text shown = printable_head(buf_as_text(&name), PROGRAM_NAME_MAX);
    buf_format(&text, "%s %.*s of %s", reason[4] == 'S' ? "started" : "ended", TEXT_ARG(shown),
               wanted->opener.user);
    if (wanted->address.length)
        buf_format(&text, " from %.*s", TEXT_ARG(wanted->address));
    va_start(args, format);
    buf_vformat(&text, format, args);
    va_end(args);
    service->note(service->context, wanted->attempt, reason, buf_cstr(&text));
    log_info("api", "session %.8s in %s %s-%u: %s", session->id, wanted->job, wanted->role,
             wanted->index, buf_cstr(&text));
}

/* --- the connection --- */

static bool is_connected(const struct exec_session *session)
{
    return session->connection.socket.fd >= 0;
}

static ssize_t socket_read(void *context, void *bytes, size_t size)
{
    struct exec_session *session = context;
    struct connection *connection = &session->connection;
    size_t left = connection->early.length - connection->early_taken;
    if (byte_flow_left(&session->input) > WAITING_MAX)
        return WEBSOCKET_LATER; /* the program does not read */
    if (left) {
        size_t part = left < size ? left : size;
        memcpy(bytes, connection->early.at + connection->early_taken, part);
        connection->early_taken += part;
        return (ssize_t)part;
    }
    ssize_t length = recv(connection->socket.fd, bytes, size, 0);
    if (length > 0) {
        connection->heard_ms = clock_monotonic_ms();
        return length;
    }
    return length < 0 && (errno == EAGAIN || errno == EINTR) ? WEBSOCKET_LATER : WEBSOCKET_BROKEN;
}

static ssize_t socket_write(void *context, const void *bytes, size_t size)
{
    struct exec_session *session = context;
    ssize_t length = send(session->connection.socket.fd, bytes, size, MSG_NOSIGNAL);
    if (length > 0) {
        if (session->end_reason && !session->is_told)
            session->farewell_ms = clock_monotonic_ms() + FAREWELL_MS;
        return length;
    }
    return length < 0 && (errno == EAGAIN || errno == EINTR) ? WEBSOCKET_LATER : WEBSOCKET_BROKEN;
}

static void control_take(struct exec_session *session, struct text message)
{
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(message, DOC_JSON, &arena, &problems);
    struct text type = doc_get_text(doc, "type", "");
    int64_t rows = doc_get_int(doc, "rows", 0), columns = doc_get_int(doc, "columns", 0);
    if (text_is(type, "resize") && rows > 0 && columns > 0 && rows <= UINT16_MAX &&
        columns <= UINT16_MAX && session->exec)
        session->exec->ops->resize(session->exec, (uint16_t)rows, (uint16_t)columns);
    else if (text_is(type, "inputEnd"))
        session->is_input_over = true;
    else if (text_is(type, "end") && !session->end_reason)
        session->end_reason = "stopped";
}

static void on_message(void *context, bool is_text, struct text message)
{
    struct exec_session *session = context;
    session->moved_ms = clock_monotonic_ms();
    if (is_text)
        control_take(session, message);
    else if (message.length > 1 && message.at[0] == CHANNEL_INPUT && !session->is_input_over &&
             !session->end_reason)
        buf_add(&session->input.bytes, message.at + 1, message.length - 1);
}

static void connection_close(struct connection *connection)
{
    websocket_free(connection->websocket);
    buf_release(&connection->early);
    if (connection->socket.fd >= 0)
        http_socket_close(&connection->socket);
    *connection = (struct connection){.socket.fd = -1};
}

static void connection_take(struct exec_session *session, struct connection *offered, uint64_t from)
{
    struct connection *connection = &session->connection;
    const struct websocket_ops ops = {session, socket_read, socket_write, on_message};
    struct shown *replay = &session->replay;
    if (connection->websocket) {
        websocket_close(connection->websocket, CLOSE_REPLACED, "another connection has taken it");
        websocket_work(connection->websocket);
        connection_close(connection);
    }
    *connection = *offered;
    connection->websocket = websocket_new(&ops, false);
    connection->heard_ms = clock_monotonic_ms();
    session->was_attached = true;
    if (from < shown_begin(replay))
        from = shown_begin(replay);
    if (from > replay->end)
        from = replay->end;
    say_attached(session, from);
    while (from < replay->end) {
        size_t at = (size_t)(from % EXEC_REPLAY_BYTES);
        size_t part = EXEC_REPLAY_BYTES - at;
        if (part > replay->end - from)
            part = (size_t)(replay->end - from);
        if (part > BLOCK)
            part = BLOCK;
        say_bytes(session, CHANNEL_OUTPUT, replay->bytes + at, part);
        from += part;
    }
    replay->sent = replay->end;
}

/* --- the program --- */

static void output_take(struct exec_session *session, int fd, char channel, bool *is_over)
{
    char bytes[BLOCK];
    ssize_t length = read(fd, bytes, sizeof bytes);
    if (length > 0) {
        session->moved_ms = clock_monotonic_ms();
        if (session->wanted.request.has_terminal)
            shown_add(&session->replay, bytes, (size_t)length);
        say_bytes(session, channel, bytes, (size_t)length);
        if (is_connected(session))
            session->replay.sent = session->replay.end;
    } else if (length == 0 || errno != EINTR) {
        /* nothing now: at the end nobody is left who could write */
        *is_over = length == 0 || errno != EAGAIN || session->end_reason;
    }
}

static void input_give(struct exec_session *session)
{
    struct engine_exec *exec = session->exec;
    const struct text front = byte_flow_front(&session->input);
    if (exec->input >= 0 && front.length) {
        ssize_t length = write(exec->input, front.at, front.length);
        if (length > 0)
            byte_flow_advance(&session->input, (size_t)length);
        else if (length < 0 && errno != EAGAIN && errno != EINTR)
            byte_flow_advance(&session->input, front.length); /* it does not want any more */
    }
    if (!byte_flow_left(&session->input) && session->is_input_over && exec->input >= 0 &&
        exec->input != exec->output) {
        close(exec->input);
        exec->input = -1;
    }
}

static void program_end_take(struct exec_session *session)
{
    struct engine_exec_end end;
    if (session->end_reason || !session->exec->ops->ended(session->exec, &end))
        return;
    session->end_reason = end.is_task_ended ? "taskEnded"
                          : end.is_lost     ? "connectionLost"
                                            : "exited";
    session->end_code = end.is_task_ended || end.is_lost ? -1 : end.code;
}

/* --- the thread --- */

/* May more of its output be read? Not faster than it goes out. Before anybody has come it waits. */
static bool wants_output(const struct exec_session *session)
{
    if (!is_connected(session))
        return session->was_attached && session->wanted.request.has_terminal;
    return websocket_queued(session->connection.websocket) < WAITING_MAX;
}

/* What cannot be looked up now, it is the next time. */
static void opener_look(struct exec_session *session, int64_t now_ms)
{
    struct exec_sessions *all = session->all;
    session->look_ms = now_ms + 1000 * OPENER_LOOK_S;
    pthread_mutex_lock(&all->lock);
    const struct opener opener = session->opener;
    pthread_mutex_unlock(&all->lock);
    if (opener_check(all->service, &opener) == ERR_FORBIDDEN)
        session->end_reason = "notAllowed";
}

/* What is due by time; everything that ends the session sets the reason. */
static void times_check(struct exec_session *session, int64_t now_ms)
{
    struct connection *connection = &session->connection;
    if (now_ms >= session->look_ms && !session->end_reason)
        opener_look(session, now_ms);
    if (now_ms >= session->ping_ms) {
        session->ping_ms = now_ms + 1000 * EXEC_PING_S;
        if (connection->websocket && !connection->is_leaving)
            websocket_ping(connection->websocket);
    }
    if (is_connected(session) && now_ms - connection->heard_ms > GONE_MS)
        connection_close(connection);
    if (!is_connected(session) && !session->detached_ms)
        session->detached_ms = now_ms;
    if (is_connected(session))
        session->detached_ms = 0;
    if (session->end_reason)
        return;
    bool may_come = session->wanted.request.has_terminal || !session->was_attached;
    if (session->detached_ms &&
        (!may_come || now_ms - session->detached_ms > 1000 * EXEC_DETACHED_S))
        session->end_reason = "detached";
    else if (now_ms - session->moved_ms > 1000 * EXEC_IDLE_S)
        session->end_reason = "idle";
}

/* What others have asked for. */
static void wishes_take(struct exec_session *session)
{
    struct exec_sessions *all = session->all;
    uint64_t count;
    while (read(session->wake_fd, &count, sizeof count) < 0 && errno == EINTR)
        continue;
    pthread_mutex_lock(&all->lock);
    struct connection offered = session->offered;
    uint64_t from = session->offered_from;
    session->offered = (struct connection){.socket.fd = -1};
    const char *told = session->told_to_end;
    if (session->is_doubtful)
        session->look_ms = 0;
    session->is_doubtful = false;
    pthread_mutex_unlock(&all->lock);
    if (offered.socket.fd >= 0)
        connection_take(session, &offered, from);
    session->is_told = told != NULL;
    if (told && !session->end_reason)
        session->end_reason = told;
}

enum { WAIT_WISH, WAIT_END, WAIT_OUTPUT, WAIT_ERROR, WAIT_INPUT, WAIT_SOCKET, WAITS };

static void waits_fill(const struct exec_session *session, struct pollfd waits[WAITS])
{
    const struct engine_exec *exec = session->exec;
    bool has_input = byte_flow_left(&session->input) > 0;
    bool wants = wants_output(session);
    for (int i = 0; i < WAITS; i++)
        waits[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    waits[WAIT_WISH].fd = session->wake_fd;
    if (!session->end_reason)
        waits[WAIT_END].fd = exec->end;
    if (wants && !session->is_output_over)
        waits[WAIT_OUTPUT].fd = exec->output;
    if (wants && !session->is_error_over)
        waits[WAIT_ERROR].fd = exec->error;
    if (has_input && exec->input >= 0)
        waits[WAIT_INPUT] = (struct pollfd){.fd = exec->input, .events = POLLOUT};
    if (!is_connected(session))
        return;
    waits[WAIT_SOCKET].fd = session->connection.socket.fd;
    waits[WAIT_SOCKET].events = websocket_events(session->connection.websocket,
                                                 byte_flow_left(&session->input) <= WAITING_MAX);
}

/* Ended by itself or with its task: whoever comes for the rest gets it, unless the session is told
 * to end. */
static bool is_rest_kept(const struct exec_session *session)
{
    return !session->is_told && (strcmp(session->end_reason, "exited") == 0 ||
                                 strcmp(session->end_reason, "taskEnded") == 0 ||
                                 strcmp(session->end_reason, "connectionLost") == 0);
}

/* Everything that it wrote has been read, and whoever is there has been told how it ended. */
static bool is_over(struct exec_session *session, int64_t now_ms)
{
    bool has_terminal = session->wanted.request.has_terminal;
    if (!session->end_reason)
        return false;
    if (!is_rest_kept(session))
        session->is_output_over = session->is_error_over = true;
    if (!session->farewell_ms)
        session->farewell_ms = now_ms + FAREWELL_MS;
    bool is_drained = session->is_output_over && session->is_error_over;
    if (is_drained && is_connected(session) && !session->connection.is_leaving)
        say_end(session);
    if (is_connected(session))
        return now_ms > session->farewell_ms;
    bool may_come = is_rest_kept(session) && (has_terminal || !session->was_attached);
    return !may_come || now_ms - session->detached_ms > 1000 * EXEC_DETACHED_S;
}

static void session_loop(struct exec_session *session)
{
    bool was_told = false;
    for (int64_t now_ms = clock_monotonic_ms(); !was_told; now_ms = clock_monotonic_ms()) {
        struct pollfd waits[WAITS];
        times_check(session, now_ms);
        if (is_over(session, now_ms))
            return;
        if (is_connected(session) && !websocket_work(session->connection.websocket)) {
            was_told = session->connection.is_leaving;
            connection_close(&session->connection);
            continue;
        }
        input_give(session);
        waits_fill(session, waits);
        const bool goes_on =
            is_connected(session) && websocket_wants_turn(session->connection.websocket);
        if (poll(waits, WAITS, goes_on ? 0 : 1000) < 0)
            continue;
        if (waits[WAIT_WISH].revents)
            wishes_take(session);
        if (waits[WAIT_END].revents)
            program_end_take(session);
        if (waits[WAIT_OUTPUT].revents || (session->end_reason && wants_output(session)))
            output_take(session, session->exec->output, CHANNEL_OUTPUT, &session->is_output_over);
        if (session->exec->error >= 0 &&
            (waits[WAIT_ERROR].revents || (session->end_reason && wants_output(session))))
            output_take(session, session->exec->error, CHANNEL_ERROR, &session->is_error_over);
    }
}

static void session_talk(struct exec_session *session)
{
    session->begun_ms = session->moved_ms = clock_monotonic_ms();
    session->ping_ms = session->begun_ms + 1000 * EXEC_PING_S;
    session->is_error_over = session->exec->error < 0;
    note(session, "ExecStarted", "%s", "");
    session_loop(session);
    session->exec->ops->free(session->exec);
    int64_t lasted_s = (clock_monotonic_ms() - session->begun_ms) / 1000;
    if (session->end_code >= 0)
        note(session, "ExecEnded", " after %lld s with code %d", (long long)lasted_s,
             session->end_code);
    else
        note(session, "ExecEnded", " after %lld s: %s", (long long)lasted_s,
             end_sentence(session->end_reason));
}

static void *session_run(void *context)
{
    struct exec_session *session = context;
    struct exec_sessions *all = session->all;
    struct service *service = all->service;
    const struct exec_wanted *wanted = &session->wanted;
    struct err err = {0};
    int code = service->exec(service->context, wanted->engine, wanted->attempt, &wanted->request,
                             &session->exec, &err);
    wanted->started(wanted->context, session->id, code, &err);
    if (code == 0)
        session_talk(session);
    connection_close(&session->connection);
    pthread_mutex_lock(&all->lock);
    struct connection offered = session->offered;
    session->offered = (struct connection){.socket.fd = -1};
    session->is_done = true;
    pthread_mutex_unlock(&all->lock);
    connection_close(&offered); /* came too late */
    return NULL;
}

/* --- the table --- */

static void session_free(struct exec_session *session)
{
    if (session->wake_fd >= 0)
        close(session->wake_fd);
    byte_flow_release(&session->input);
    mem_free(session->replay.bytes);
    arena_release(&session->arena);
    mem_free(session);
}

/* With the lock. */
static void reap(struct exec_sessions *sessions)
{
    for (size_t i = 0; i < EXEC_SESSIONS_MAX; i++) {
        struct exec_session *session = sessions->items[i];
        if (!session || !session->is_done)
            continue;
        pthread_join(session->thread, NULL);
        session_free(session);
        sessions->items[i] = NULL;
    }
}

static void wake(const struct exec_session *session)
{
    const uint64_t one = 1;
    while (write(session->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

struct exec_sessions *exec_sessions_new(struct service *service)
{
    struct exec_sessions *sessions = mem_zero(1, sizeof *sessions);
    sessions->service = service;
    pthread_mutex_init(&sessions->lock, NULL);
    return sessions;
}

void exec_sessions_stop(struct exec_sessions *sessions)
{
    pthread_mutex_lock(&sessions->lock);
    sessions->is_stopping = true;
    for (size_t i = 0; i < EXEC_SESSIONS_MAX; i++) {
        struct exec_session *session = sessions->items[i];
        if (!session)
            continue;
        session->told_to_end = "serverEnding";
        wake(session);
    }
    pthread_mutex_unlock(&sessions->lock);
    for (size_t i = 0; i < EXEC_SESSIONS_MAX; i++) {
        struct exec_session *session = sessions->items[i]; /* none comes or goes any more */
        if (!session)
            continue;
        pthread_join(session->thread, NULL);
        pthread_mutex_lock(&sessions->lock);
        sessions->items[i] = NULL;
        pthread_mutex_unlock(&sessions->lock);
        session_free(session);
    }
}

void exec_sessions_free(struct exec_sessions *sessions)
{
    if (!sessions)
        return;
    pthread_mutex_destroy(&sessions->lock);
    mem_free(sessions);
}

/* With the lock: a free slot, or NULL with the error. */
static struct exec_session **slot_find(struct exec_sessions *sessions,
                                       const struct exec_wanted *wanted, struct err *err)
{
    struct exec_session **slot = NULL;
    size_t of_user = 0, of_task = 0;
    if (sessions->is_stopping) {
        err_fail(err, ERR_UNAVAILABLE, "", "the server is ending");
        return NULL;
    }
    reap(sessions);
    for (size_t i = 0; i < EXEC_SESSIONS_MAX; i++) {
        const struct exec_session *session = sessions->items[i];
        if (!session) {
            slot = &sessions->items[i];
            continue;
        }
        of_user += strcmp(session->wanted.opener.user, wanted->opener.user) == 0;
        of_task += session->wanted.attempt.v == wanted->attempt.v;
    }
    if (of_task >= EXEC_SESSIONS_TASK_MAX)
        err_fail(err, ERR_BUSY, "", "%d sessions are open in this task already", (int)of_task);
    else if (of_user >= EXEC_SESSIONS_USER_MAX)
        err_fail(err, ERR_BUSY, "", "you have %d sessions already", (int)of_user);
    else if (!slot)
        err_fail(err, ERR_BUSY, "", "%d sessions are open already", EXEC_SESSIONS_MAX);
    else
        return slot;
    return NULL;
}

static struct exec_session *session_new(struct exec_sessions *sessions,
                                        const struct exec_wanted *wanted)
{
    struct exec_session *session = mem_zero(1, sizeof *session);
    struct arena *arena = &session->arena;
    arena_init(arena);
    session->all = sessions;
    session->wanted = *wanted;
    session->opener = wanted->opener;
    session->wanted.job = arena_copy(arena, text_of(wanted->job));
    session->wanted.role = arena_copy(arena, text_of(wanted->role));
    session->wanted.address = text_of(arena_copy(arena, wanted->address));
    size_t count = 0;
    while (wanted->request.argv[count])
        count++;
    const char **argv = ARENA_ARRAY(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++)
        argv[i] = arena_copy(arena, text_of(wanted->request.argv[i]));
    argv[count] = NULL;
    session->wanted.request.argv = argv;
    session->wanted.request.terminal =
        wanted->request.terminal ? arena_copy(arena, text_of(wanted->request.terminal)) : NULL;
    session->replay.bytes = mem_zero(1, EXEC_REPLAY_BYTES);
    session->offered.socket.fd = session->connection.socket.fd = -1;
    session->end_code = -1;
    secret_random_word(session->id, EXEC_ID_LENGTH);
    session->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return session;
}

int exec_session_open(struct exec_sessions *sessions, const struct exec_wanted *wanted,
                      struct err *err)
{
    assert(wanted->request.argv && wanted->started);
    pthread_mutex_lock(&sessions->lock);
    struct exec_session **slot = slot_find(sessions, wanted, err);
    int code = slot ? 0 : err->code;
    if (slot) {
        struct exec_session *session = session_new(sessions, wanted);
        int number = session->wake_fd < 0
                         ? errno
                         : pthread_create(&session->thread, NULL, session_run, session);
        if (number) {
            code = err_fail(err, ERR_UNAVAILABLE, "", "a session cannot be made: errno %d", number);
            session_free(session);
        } else {
            *slot = session;
        }
    }
    pthread_mutex_unlock(&sessions->lock);
    return code;
}

/* With the lock. */
static struct exec_session *session_find(struct exec_sessions *sessions, struct text id,
                                         const char *user, struct err *err)
{
    for (size_t i = 0; i < EXEC_SESSIONS_MAX; i++) {
        struct exec_session *session = sessions->items[i];
        if (session && !session->is_done && text_is(id, session->id) &&
            strcmp(session->wanted.opener.user, user) == 0)
            return session;
    }
    err_fail(err, ERR_NOT_FOUND, "", "you have no such session, or it has ended");
    return NULL;
}

int exec_session_check(struct exec_sessions *sessions, struct text id, const char *user,
                       struct arena *arena, const char **job, struct err *err)
{
    pthread_mutex_lock(&sessions->lock);
    const struct exec_session *session = session_find(sessions, id, user, err);
    if (session)
        *job = arena_copy(arena, text_of(session->wanted.job));
    pthread_mutex_unlock(&sessions->lock);
    return session ? 0 : err->code;
}

void exec_sessions_doubt(struct exec_sessions *sessions, const char *user)
{
    pthread_mutex_lock(&sessions->lock);
    for (size_t i = 0; i < EXEC_SESSIONS_MAX; i++) {
        struct exec_session *session = sessions->items[i];
        if (!session || (user[0] && strcmp(session->wanted.opener.user, user) != 0))
            continue;
        session->is_doubtful = true;
        wake(session);
    }
    pthread_mutex_unlock(&sessions->lock);
}

/* A place in a session for a connection that is being upgraded. */
struct attach {
    struct exec_sessions *sessions;
    char id[EXEC_ID_LENGTH + 1];
    struct opener opener;
    uint64_t from;
};

static void attach_drop(void *state)
{
    mem_free(state);
}

static void attach_take(void *state, struct http_socket socket, struct text early)
{
    struct attach *attach = state;
    struct connection offered = {.socket = socket};
    struct err err;
    buf_text(&offered.early, early);
    pthread_mutex_lock(&attach->sessions->lock);
    struct exec_session *session =
        session_find(attach->sessions, text_of(attach->id), attach->opener.user, &err);
    if (session) {
        struct connection earlier = session->offered;
        session->offered = offered;
        session->offered_from = attach->from;
        session->opener = attach->opener;
        session->is_doubtful = true; /* it may have lost something since it asked */
        offered = earlier;
        wake(session);
    }
    pthread_mutex_unlock(&attach->sessions->lock);
    connection_close(&offered);
    attach_drop(attach);
}

void exec_session_attach(struct exec_sessions *sessions, struct text id,
                         const struct opener *opener, uint64_t from, struct http_upgrade *upgrade)
{
    struct attach *attach = mem_zero(1, sizeof *attach);
    attach->sessions = sessions;
    snprintf(attach->id, sizeof attach->id, "%.*s", TEXT_ARG(id));
    attach->opener = *opener;
    attach->from = from;
    *upgrade = (struct http_upgrade){attach_take, attach_drop, attach};
}

int exec_session_end(struct exec_sessions *sessions, struct text id, const char *user,
                     struct err *err)
{
    pthread_mutex_lock(&sessions->lock);
    struct exec_session *session = session_find(sessions, id, user, err);
    if (session && !session->told_to_end) {
        session->told_to_end = "stopped";
        wake(session);
    }
    int code = session ? 0 : err->code;
    pthread_mutex_unlock(&sessions->lock);
    return code;
}
