#include "cli/job.h"
#include "base/memory.h"
#include "cli/print.h"
#include "sys/clock.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    FILE_MAX = 4 << 20,
    RECONNECT_MS = 500,
    BUSY_MS = 2000,
    SUBMIT_AGAIN_MS = 60000,
    KEY_SIZE = 33
};

void job_path(struct buf *path, const char *job, const char *rest)
{
    buf_string(path, "/api/v2/jobs/");
    client_encode(path, job);
    buf_string(path, rest);
}

void node_path(struct buf *path, const char *node, const char *rest)
{
    buf_string(path, "/api/v2/nodes/");
    client_encode(path, node);
    buf_string(path, rest);
}

int each_argument(struct cli *cli, const struct each_call *call)
{
    struct client *client = cli_client(cli);
    int first = 0;
    if (!client)
        return EXIT_REFUSED;
    for (int i = 0; i < cli->argument_count; i++) {
        cleanup_buf struct buf path = BUF_INIT;
        call->path(&path, cli->arguments[i], call->rest);
        struct client_request request = {.method = call->method,
                                         .path = buf_cstr(&path),
                                         .content_type = call->body ? "application/json" : NULL,
                                         .body = text_of(call->body)};
        int code = client_call(client, &request, NULL);
        if (!code)
            printf("%s %s\n", call->done, cli->arguments[i]);
        else if (!first)
            first = code;
        if (code == EXIT_UNREACHABLE)
            break;
    }
    return first;
}

int file_content(const char *path, struct buf *content)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rbe");
    if (!file)
        return cli_fail(EXIT_USAGE, "%s: %s", path, strerror(errno));
    char block[16384];
    size_t length;
    while (content->length <= FILE_MAX && (length = fread(block, 1, sizeof block, file)) > 0)
        buf_add(content, block, length);
    bool is_bad = ferror(file);
    if (!is_stdin)
        fclose(file);
    if (is_bad)
        return cli_fail(EXIT_USAGE, "%s: cannot be read", path);
    if (content->length > FILE_MAX)
        return cli_fail(EXIT_USAGE, "%s: more than %d bytes", path, FILE_MAX);
    return 0;
}

static int submit_key_make(char key[KEY_SIZE])
{
    unsigned char random[(KEY_SIZE - 1) / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return cli_fail(EXIT_REFUSED, "the system gives no random bytes");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(key + 2 * i, 3, "%02x", random[i]);
    return 0;
}

/* The server's answer to a submission may be lost: it is sent again then, for as long as a restart
 * takes, and by its key the server knows that it is the same one. */
static void submit_ask(struct client *client, const struct client_request *request,
                       struct client_reply *reply)
{
    const int64_t until_ms = clock_monotonic_ms() + SUBMIT_AGAIN_MS;
    client_ask(client, request, reply);
    if (reply->status || !reply->is_cut)
        return;
    print_error("the connection to %s was cut: the job is submitted again, with the same key\n",
                client_server(client));
    while ((reply->status == 0 || reply->status == 503) && clock_monotonic_ms() < until_ms) {
        poll(NULL, 0, RECONNECT_MS);
        client_reply_release(reply);
        client_ask(client, request, reply);
    }
}

int job_submit(struct client *client, const struct job_submission *submission, struct buf *name)
{
    char key[KEY_SIZE];
    cleanup_buf struct buf path = BUF_INIT;
    buf_string(&path, "/api/v2/jobs");
    if (submission->secrets_of) {
        buf_string(&path, "?secretsOf=");
        client_encode(&path, submission->secrets_of);
    }
    struct client_request request = {.method = "POST",
                                     .path = buf_cstr(&path),
                                     .content_type = "text/plain",
                                     .body = submission->content,
                                     .idempotency_key = key};
    cleanup_client_reply struct client_reply reply = {0};
    int code = submit_key_make(key);
    if (code)
        return code;
    submit_ask(client, &request, &reply);
    if (reply.status < 200 || reply.status > 299) {
        code = client_explain(client, &reply, submission->file);
    } else {
        json_t *json = json_loadb(buf_cstr(&reply.body), reply.body.length, 0, NULL);
        const char *full = field_text(json, "name");
        const char *warnings = field_text(json, "warnings");
        if (full)
            buf_string(name, full);
        else
            code = cli_fail(EXIT_REFUSED, "%s did not tell the job's name: is it a Skep server?",
                            client_server(client));
        if (warnings)
            print_error("%s\n", warnings);
        json_decref(json);
    }
    return code;
}

int job_exit_code(const json_t *detail)
{
    const json_t *status = json_object_get(detail, "jobStatus");
    const char *state = field_text(status, "state");
    /* the program's own code, not the one that the rules made of it; below 0: the platform's */
    int64_t code = field_int(status, "appExitCode"), own = field_int(status, "appOriginalExitCode");
    if (code > 0 && own)
        code = own;
    if (state && strcmp(state, "SUCCEEDED") == 0)
        return 0;
    if (state && strcmp(state, "STOPPED") == 0)
        return EXIT_STOPPED;
    return code >= 1 && code <= 255 ? (int)code : EXIT_PLATFORM;
}

/* ---- waiting ---- */

struct waiting {
    struct client *client;
    const char *job;
    bool is_quiet;
    int64_t deadline_ms; /* 0: none */
    int64_t sequence;    /* of the last event seen */
    struct buf line;
};

static void tell(const struct waiting *waiting, const char *line)
{
    json_t *event = json_loads(line, 0, NULL);
    if (!event)
        return;
    struct waiting *changed = (struct waiting *)(uintptr_t)waiting;
    changed->sequence = field_int(event, "sequence");
    if (!waiting->is_quiet)
        print_error("%s: %s\n", waiting->job, field_text(event, "message"));
    json_decref(event);
}

static int busy_ms(const struct waiting *waiting)
{
    const int64_t left_ms = waiting->deadline_ms - clock_monotonic_ms();
    if (!waiting->deadline_ms || left_ms > BUSY_MS)
        return BUSY_MS;
    return left_ms > 0 ? (int)left_ms : 0;
}

static bool waiting_take(void *context, const char *bytes, size_t length)
{
    struct waiting *waiting = context;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != '\n') {
            buf_char(&waiting->line, bytes[i]);
            continue;
        }
        tell(waiting, buf_cstr(&waiting->line));
        buf_clear(&waiting->line);
    }
    return true;
}

/* Follow the story until the server says that it is over, or goes away. While so many follow that
 * there is no place, the job is looked at from time to time. */
static int story_follow(struct waiting *waiting)
{
    cleanup_buf struct buf path = BUF_INIT, rest = BUF_INIT;
    buf_format(&rest, "/events?follow=true&after=%lld", (long long)waiting->sequence);
    job_path(&path, waiting->job, buf_cstr(&rest));
    struct client_stream stream = {.take = waiting_take, .context = waiting, .bears_busy = true};
    buf_clear(&waiting->line);
    if (waiting->deadline_ms)
        client_deadline(waiting->client, waiting->deadline_ms);
    int code = client_follow(waiting->client, buf_cstr(&path), &stream);
    client_deadline(waiting->client, 0);
    if (stream.is_busy)
        poll(NULL, 0, busy_ms(waiting));
    return stream.is_broken ? 0 : code;
}

static bool is_final(const json_t *detail)
{
    const char *sub = field_text(json_object_get(detail, "jobStatus"), "subState");
    return sub && strcmp(sub, "Completed") == 0;
}

/* The detail, or NULL with `*code`: 0 when the server is away for now. */
static json_t *detail_ask(struct waiting *waiting, int *code)
{
    cleanup_buf struct buf path = BUF_INIT;
    cleanup_client_reply struct client_reply reply;
    job_path(&path, waiting->job, "");
    client_ask(waiting->client, &(struct client_request){.method = "GET", .path = buf_cstr(&path)},
               &reply);
    json_t *detail = NULL;
    *code = 0;
    if (reply.status >= 200 && reply.status <= 299)
        detail = json_loadb(buf_cstr(&reply.body), reply.body.length, 0, NULL);
    else if (reply.status && reply.status != 429 && reply.status < 500)
        *code = client_explain(waiting->client, &reply, NULL);
    return detail;
}

static int wait_loop(struct waiting *waiting)
{
    bool is_first = true;
    for (;;) {
        int code;
        json_t *detail = detail_ask(waiting, &code);
        if (code)
            return EXIT_SKEP;
        if (detail && is_final(detail)) {
            code = job_exit_code(detail);
            json_decref(detail);
            return code;
        }
        if (waiting->deadline_ms && clock_monotonic_ms() >= waiting->deadline_ms) {
            json_decref(detail);
            return cli_fail(EXIT_TIME_OVER, "the time is over: job %s has not ended", waiting->job);
        }
        if (!detail && is_first)
            return client_unreachable(waiting->client, "connection refused"), EXIT_SKEP;
        if (!detail)
            poll(NULL, 0, RECONNECT_MS); /* the server is restarting */
        else if (story_follow(waiting))
            code = EXIT_SKEP;
        json_decref(detail);
        if (code)
            return code;
        is_first = false;
    }
}

int job_wait(struct client *client, const char *job, const struct wait_options *options)
{
    struct waiting waiting = {
        .client = client,
        .job = job,
        .is_quiet = options->is_quiet,
        .deadline_ms = options->timeout_s ? clock_monotonic_ms() + options->timeout_s * 1000 : 0,
    };
    int code = wait_loop(&waiting);
    buf_release(&waiting.line);
    return code;
}

/* ---- logs ---- */

struct logging {
    /* where the follow began: after this attempt, so many bytes further on */
    char after[24];
    uint64_t offset;
    uint64_t written; /* since then, perhaps of several attempts */
    bool is_closed;   /* nobody reads our output any more */
};

static bool logging_take(void *context, const char *bytes, size_t length)
{
    struct logging *logging = context;
    logging->written += length;
    logging->is_closed = fwrite(bytes, 1, length, stdout) != length || fflush(stdout) != 0;
    return !logging->is_closed;
}

static void log_query(struct buf *rest, const struct log_options *options,
                      const struct logging *logging)
{
    buf_format(rest, "/logs?stream=%s", options->stream ? options->stream : "all");
    if (options->role) {
        buf_string(rest, "&role=");
        client_encode(rest, options->role);
    }
    if (options->index) {
        buf_string(rest, "&index=");
        client_encode(rest, options->index);
    }
    if (options->is_follow)
        buf_string(rest, "&follow=true");
    if (logging->after[0])
        buf_format(rest, "&after=%s&offset=%llu", logging->after,
                   (unsigned long long)logging->offset + logging->written);
    else if (options->tail_lines >= 0)
        buf_format(rest, "&tail-lines=%ld", options->tail_lines);
    else if (options->since_ms >= 0)
        buf_format(rest, "&since=%lld", (long long)options->since_ms);
}

/* The server is back (true), or not within a minute. */
static bool server_is_back(struct client *client)
{
    for (int i = 0; i < 60000 / RECONNECT_MS; i++) {
        cleanup_client_reply struct client_reply reply;
        client_ask(client, &(struct client_request){.method = "GET", .path = "/readyz"}, &reply);
        bool is_ready = reply.status == 200;
        if (is_ready)
            return true;
        poll(NULL, 0, RECONNECT_MS);
    }
    return false;
}

void job_log_removed(const struct client_stream *stream)
{
    if (stream->removed[0])
        fprintf(stderr, "skep: the first %s bytes of this log have been removed: it was too long\n",
                stream->removed);
}

int job_log(struct client *client, const char *job, const struct log_options *options)
{
    struct logging logging = {.after = ""};
    bool is_first = true;
    if (options->is_whole)
        snprintf(logging.after, sizeof logging.after, "0");
    for (;;) {
        cleanup_buf struct buf path = BUF_INIT, rest = BUF_INIT;
        log_query(&rest, options, &logging);
        job_path(&path, job, buf_cstr(&rest));
        struct client_stream stream = {.take = logging_take, .context = &logging};
        int code = client_follow(client, buf_cstr(&path), &stream);
        job_log_removed(&stream);
        if (logging.is_closed || !stream.is_broken)
            return code;
        int64_t offset = 0;
        if (!logging.after[0] && text_to_int64(text_of(stream.offset), &offset)) {
            snprintf(logging.after, sizeof logging.after, "%s", stream.after);
            logging.offset = (uint64_t)offset;
        }
        if (is_first && code == EXIT_UNREACHABLE)
            return client_unreachable(client, "connection refused");
        if (!options->is_follow || !server_is_back(client))
            return cli_fail(EXIT_UNREACHABLE, "%s went away", client_server(client));
        is_first = false;
    }
}

int job_task_put(const char *task, json_t *request)
{
    size_t at = strcspn(task, "[:"), length = strlen(task);
    int64_t index = 0;
    json_object_set_new(request, "role", json_stringn(task, at));
    if (at == length)
        return 0;
    struct text number = {task + at + 1, length - at - 1};
    if (task[at] == '[')
        number.length = number.length && task[length - 1] == ']' ? number.length - 1 : 0;
    if (!text_to_int64(number, &index) || index < 0 || index > UINT32_MAX)
        return cli_fail(EXIT_USAGE, "'%s' is no task: ROLE, ROLE[INDEX] or ROLE:INDEX", task);
    json_object_set_new(request, "index", json_integer(index));
    return 0;
}
