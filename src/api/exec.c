/* A terminal in a running task: opening sessions, and the WebSocket that leads to one. */
#include "api/audit.h"
#include "api/exec_session.h"
#include "api/handlers.h"
#include "api/link.h"
#include "api/task.h"
#include "base/memory.h"
#include "base/printable.h"
#include "sys/websocket.h"
#include <assert.h>
#include <ctype.h>
#include <strings.h>

static const char PROTOCOL[] = "skep.exec.v1";

enum {
    COMMAND_AUDIT_MAX = 1024,
    TERMINAL_NAME_MAX = 48,
    SIZE_MAX_CELLS = 4096,
    KEY_LENGTH = WEBSOCKET_KEY_SIZE - 1
};

/* ---- opening ---- */

static int command_read(struct call *call, const struct doc *body, const char *const **argv)
{
    const struct doc *command = doc_get(body, "command");
    size_t count = doc_count(command), bytes = 0;
    const char **words = ARENA_ARRAY(call->arena, const char *, count + 1);
    words[count] = NULL;
    *argv = words;
    if (!command || command->kind == DOC_NULL)
        return 0;
    if (command->kind != DOC_LIST || count > ENGINE_EXEC_ARGUMENTS_MAX)
        return call_fail(call, ERR_INVALID, NULL, "command",
                         "command must be a list of at most %d strings", ENGINE_EXEC_ARGUMENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct doc *word = command->as.list.items[i];
        if (word->kind != DOC_STRING || memchr(word->as.string.at, 0, word->as.string.length))
            return call_fail(call, ERR_INVALID, NULL, "command",
                             "body:%u:%u: a word of the command must be a string without NUL",
                             word->place.line, word->place.column);
        bytes += word->as.string.length + 1;
        words[i] = arena_copy(call->arena, word->as.string);
    }
    if (count && !words[0][0])
        return call_fail(call, ERR_INVALID, NULL, "command", "the program has no name");
    if (bytes > ENGINE_EXEC_BYTES_MAX)
        return call_fail(call, ERR_TOO_BIG, NULL, "command", "the command has more than %d bytes",
                         ENGINE_EXEC_BYTES_MAX);
    return 0;
}

/* Admins alone read it there, so the arguments stand in it. */
static void command_audit(struct call *call, const char *const *argv)
{
    cleanup_buf struct buf words = BUF_INIT, text = BUF_INIT;
    for (; *argv; argv++)
        buf_format(&words, "%s%s", words.length ? " " : "", *argv);
    printable_put(&text, buf_as_text(&words));
    struct text shown = printable_head(buf_as_text(&text), COMMAND_AUDIT_MAX);
    audit_word(call, true, "command", arena_copy(call->arena, shown));
}

static bool is_terminal_name(struct text name)
{
    for (size_t i = 0; i < name.length; i++)
        if (!isalnum((unsigned char)name.at[i]) && !memchr("-+._", name.at[i], 4))
            return false;
    return name.length && name.length <= TERMINAL_NAME_MAX;
}

static int terminal_read(struct call *call, const struct doc *body,
                         struct engine_exec_request *request)
{
    int64_t rows = doc_get_int(body, "rows", 24), columns = doc_get_int(body, "columns", 80);
    struct text name;
    int code = call_body_string(call, body, "term", false, &name);
    if (code)
        return code;
    request->has_terminal = doc_get_bool(body, "terminal", true);
    request->terminal = name.at ? arena_copy(call->arena, name) : "xterm-256color";
    if (rows < 1 || rows > SIZE_MAX_CELLS || columns < 1 || columns > SIZE_MAX_CELLS)
        return call_fail(call, ERR_INVALID, NULL, "rows", "rows and columns must be in 1..%d",
                         SIZE_MAX_CELLS);
    if (name.at && !is_terminal_name(name))
        return call_fail(call, ERR_INVALID, NULL, "term", "'%.60s' is no name of a terminal",
                         request->terminal);
    request->rows = (uint16_t)rows;
    request->columns = (uint16_t)columns;
    return 0;
}

static const char *session_path(struct call *call, const char *id)
{
    return arena_format(call->arena, "/api/v2/exec/%s", id);
}

static int session_reply(struct call *call, int status, const char *id)
{
    struct json_writer json;
    call_json(call, status, &json);
    json_object(&json);
    json_key_string(&json, "id", id);
    json_key_string(&json, "uri",
                    link_make_for(call, session_path(call, id), "", LINK_SOCKET_LIFE_S));
    json_object_end(&json);
    return 0;
}

static int opened(struct call *call)
{
    call->err = call->answer_err;
    if (call->answer_code)
        return call->answer_code;
    return session_reply(call, 201, call->resume_state);
}

/* On the session's thread. */
static void on_started(void *context, const char *id, int code, const struct err *err)
{
    struct call *call = context;
    call->answer_code = code;
    if (code)
        call->answer_err = *err;
    call->resume_state = arena_copy(call->arena, text_of(id));
    exchange_resume(call->exchange);
}

int handle_exec_open(struct call *call)
{
    static const char *const KEYS[] = {"role", "index", "command", "terminal",
                                       "term", "rows",  "columns"};
    struct store_job job;
    struct task_record task;
    const struct doc *body;
    struct exec_wanted wanted = {
        .address = call->exchange->address, .started = on_started, .context = call};
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = call_may(call, AUTH_ENTER_JOB, &job);
    if (!code)
        code = call_body_of(call, KEYS, COUNT_OF(KEYS),
                            "role, index, command, terminal, term, rows and columns", &body);
    if (!code)
        code = command_read(call, body, &wanted.request.argv);
    if (!code)
        code = terminal_read(call, body, &wanted.request);
    if (!code)
        code = call_running_task(call, body, &job, &task);
    if (code)
        return code;
    struct err err;
    command_audit(call, wanted.request.argv);
    wanted.opener = opener_of(call);
    wanted.job = arena_format(call->arena, "%s~%s", job.record.user, job.record.name);
    wanted.role = task.role_name;
    wanted.index = task.task.index;
    wanted.attempt = task.attempt;
    wanted.engine = call->api->service->engine_of(call->api->service->context, task.node);
    call_suspend(call, opened);
    code = exec_session_open(call->api->sessions, &wanted, &err);
    if (code)
        call_refused(call, code, &err);
    return 0;
}

/* ---- one session ---- */

static int session_fail(struct call *call, int code)
{
    if (code == ERR_NOT_FOUND)
        call->error_code = "NoSessionError";
    return code;
}

/* Whoever comes to a session needs the right by which it was opened. */
static int session_enter(struct call *call)
{
    const char *job;
    int code = exec_session_check(call->api->sessions, call->parameters[0], call->caller.auth.user,
                                  call->arena, &job, &call->err);
    if (code)
        return session_fail(call, code);
    struct text name = text_of(job), owner = text_cut(&name, '~');
    const struct auth_subject subject = {.owner = arena_copy(call->arena, owner), .name = name.at};
    return call_may_about(call, AUTH_ENTER_JOB, &subject);
}

/* POST /exec/:id/link: another link, for who comes back. */
int handle_exec_link(struct call *call)
{
    struct text id = call->parameters[0];
    audit_subject(call, "session", id);
    int code = session_enter(call);
    if (code)
        return code;
    return session_reply(call, 200, arena_copy(call->arena, id));
}

int handle_exec_end(struct call *call)
{
    audit_subject(call, "session", call->parameters[0]);
    int code = exec_session_end(call->api->sessions, call->parameters[0], call->caller.auth.user,
                                &call->err);
    if (code)
        return session_fail(call, code);
    call_message(call, 200, "the session ends");
    return 0;
}

static bool offers_protocol(struct text offered)
{
    while (offered.at && offered.length)
        if (text_is(text_trim(text_cut(&offered, ',')), PROTOCOL))
            return true;
    return false;
}

static bool is_websocket(const struct exchange *exchange)
{
    return exchange->method == HTTP_GET && exchange->upgrade.length == 9 &&
           strncasecmp(exchange->upgrade.at, "websocket", 9) == 0 &&
           exchange->websocket_key.length == KEY_LENGTH;
}

/* GET /exec/:id, which becomes a WebSocket. */
int handle_exec_attach(struct call *call)
{
    struct exchange *exchange = call->exchange;
    char accept[WEBSOCKET_ACCEPT_SIZE];
    int64_t from;
    int code = call_number(call, "from", 0, INT64_MAX, 0, &from);
    if (code)
        return code;
    if (!is_websocket(exchange) || !text_is(exchange->websocket_version, "13")) {
        exchange_header(exchange, "Sec-WebSocket-Version", "13");
        return call_fail(call, ERR_INVALID, NULL, "",
                         "this path is a WebSocket of version 13 (RFC 6455)");
    }
    code = session_enter(call);
    if (code)
        return code;
    const struct opener opener = opener_of(call);
    exec_session_attach(call->api->sessions, call->parameters[0], &opener, (uint64_t)from,
                        &exchange->reply.upgrade);
    websocket_accept(exchange->websocket_key, accept);
    exchange_header(exchange, "Upgrade", "websocket");
    exchange_header(exchange, "Sec-WebSocket-Accept", arena_copy(call->arena, text_of(accept)));
    if (offers_protocol(exchange->websocket_protocol))
        exchange_header(exchange, "Sec-WebSocket-Protocol", PROTOCOL);
    exchange->reply.status = 101;
    call->is_held = true;
    return 0;
}
