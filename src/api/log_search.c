#include "api/log_search.h"
#include "api/handlers.h"
#include "api/http_watch.h"
#include "api/throttle.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/printable.h"
#include "exits/matcher.h"
#include "spec/spec.h"
#include "store/read.h"
#include "sys/clock.h"
#include "sys/worker.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A block is small enough for the matcher to search all of it, whatever the expression. */
enum { BLOCK = MATCHER_WORK_MAX / MATCHER_PROGRAM_MAX > (128 << 10) ? 128 << 10 : 64 << 10 };
enum { CONTEXT_BYTES = 32 << 10, NICE = 5 };

struct searching {
    const struct log_search *search;
    struct matcher *matcher; /* NULL: a plain text */
    struct buf *out;
    char *block;
    int64_t until_ms;
    size_t found;
    size_t unread;  /* logs that could not be read */
    uint64_t bytes; /* read */
    /* where it stands */
    struct log_place place;
    const struct task_record *attempt;
    uint8_t engine;
    bool is_beyond; /* where it began */
    bool is_enough; /* out of time, or of room */
};

/* A search that ends for want of time must have come further than the one before it. */
static void time_check(struct searching *searching)
{
    if (searching->is_beyond && clock_monotonic_ms() >= searching->until_ms)
        searching->is_enough = true;
}

bool log_place_parse(struct text text, struct log_place *place)
{
    int64_t values[6];
    for (size_t i = 0; i < COUNT_OF(values); i++)
        if (!text_to_int64(text_cut(&text, '.'), &values[i]) || values[i] < 0 ||
            (i < 4 && values[i] > UINT32_MAX))
            return false;
    if (text.at || values[1] > UINT16_MAX || values[2] > UINT16_MAX)
        return false;
    *place = (struct log_place){.job_attempt = (uint32_t)values[0],
                                .task = {.role = (uint16_t)values[1], .index = (uint16_t)values[2]},
                                .task_attempt = (uint32_t)values[3],
                                .offset = (uint64_t)values[4],
                                .line = (uint64_t)values[5]};
    return true;
}

/* ---- what is looked for ---- */

static struct matcher *matcher_of(const struct log_search *search, char reason[160])
{
    cleanup_buf struct buf expression = BUF_INIT;
    struct matcher *matcher = matcher_new_of_lines();
    /* ^ and $ are ends of lines */
    buf_string(&expression, search->ignores_case ? "(?im)" : "(?m)");
    buf_text(&expression, search->pattern);
    if (!matcher_add(matcher, buf_as_text(&expression), reason)) {
        matcher_free(matcher);
        return NULL;
    }
    matcher_build(matcher);
    return matcher;
}

int log_search_check(const struct log_search *search, struct err *err)
{
    char reason[160];
    if (!search->is_expression)
        return 0;
    struct matcher *matcher = matcher_of(search, reason);
    if (!matcher)
        return err_fail(err, ERR_INVALID, "re", "not an expression of RE2: %s", reason);
    matcher_free(matcher);
    return 0;
}

static const char *word_find(struct text text, struct text word, bool ignores_case)
{
    if (!ignores_case)
        return memmem(text.at, text.length, word.at, word.length);
    for (; text.length >= word.length; text.at++, text.length--)
        if (strncasecmp(text.at, word.at, word.length) == 0)
            return text.at;
    return NULL;
}

/* The next line of at least the wanted number; `text` begins with a line. */
static const char *number_find(const struct searching *searching, struct text text)
{
    for (uint64_t line = searching->place.line + 1; line < searching->search->line; line++) {
        text_cut(&text, '\n');
        if (!text.at)
            return NULL;
    }
    return text.at;
}

/* The next line that has it; at NULL: none. Behind the last newline no line has begun yet. */
static struct text line_find(const struct searching *searching, struct text text)
{
    const struct log_search *search = searching->search;
    const char *at = NULL;
    assert(text.length > 0);
    text.length -= text.at[text.length - 1] == '\n';
    if (search->line) {
        at = number_find(searching, text);
    } else if (searching->matcher) {
        struct text found;
        if (matcher_search(searching->matcher, 0, text, &found))
            at = found.at;
    } else {
        at = word_find(text, search->pattern, search->ignores_case);
    }
    if (!at)
        return (struct text){NULL, 0};
    const char *begin = memrchr(text.at, '\n', (size_t)(at - text.at));
    begin = begin ? begin + 1 : text.at;
    const char *end = memchr(at, '\n', (size_t)(text.at + text.length - at));
    return (struct text){begin, (size_t)((end ? end : text.at + text.length) - begin)};
}

static uint64_t newlines(const char *at, const char *end)
{
    uint64_t count = 0;
    for (; at < end; at++)
        count += *at == '\n';
    return count;
}

/* ---- what is told ---- */

/* Less than `size` at the log's end only. It is kept in pieces, in whose ends lines need not end: a
 * read may be of several. Negative: an ERR_*, and `err` says why. */
static ssize_t log_take(struct searching *searching, uint64_t *offset, char *bytes, size_t size,
                        struct err *err)
{
    struct service *service = searching->search->service;
    const struct attempt_id attempt = searching->attempt->attempt;
    size_t got = 0;
    while (got < size) {
        const uint64_t wanted = *offset + got;
        uint64_t at = wanted;
        struct log_part part;
        ssize_t length =
            service->log_read(service->context, searching->engine, attempt,
                              searching->search->stream, &at, bytes + got, size - got, &part, err);
        if (got == 0)
            *offset = at;
        if (length <= 0 || (got && at != wanted)) /* what stands between is gone */
            return got ? (ssize_t)got : length;
        got += (size_t)length;
    }
    return (ssize_t)got;
}

static void line_write(struct json_writer *json, struct text line)
{
    cleanup_buf struct buf shown = BUF_INIT;
    bool is_long = line.length > LOG_SEARCH_LINE_MAX;
    if (is_long)
        line.length = LOG_SEARCH_LINE_MAX;
    printable_put(&shown, line);
    json_text(json, printable_head(buf_as_text(&shown), LOG_SEARCH_LINE_MAX));
}

/* Up to `context` lines that end at `offset`, the oldest first. */
static void before_write(struct searching *searching, struct json_writer *json, uint64_t offset,
                         char *bytes)
{
    size_t wanted = searching->search->context;
    uint64_t from = offset > CONTEXT_BYTES ? offset - CONTEXT_BYTES : 0;
    struct err err; /* the line itself was read: it comes without its neighbours */
    ssize_t length = offset ? log_take(searching, &from, bytes, (size_t)(offset - from), &err) : 0;
    json_key(json, "before");
    json_array(json);
    if (length > 0 && from + (uint64_t)length == offset) {
        const char *end = bytes + length - 1, *at = end; /* the newline of the last one */
        while (wanted && at > bytes)
            if (*--at == '\n')
                wanted--;
        struct text rest = {at, (size_t)(end - at)};
        if (!wanted) /* at the newline before the first of them */
            text_cut(&rest, '\n');
        while (rest.at)
            line_write(json, text_cut(&rest, '\n'));
    }
    json_array_end(json);
}

static void after_write(struct searching *searching, struct json_writer *json, uint64_t offset,
                        char *bytes)
{
    size_t wanted = searching->search->context;
    struct err err;
    ssize_t length = log_take(searching, &offset, bytes, CONTEXT_BYTES, &err);
    struct text rest = {bytes, length > 0 ? (size_t)length : 0};
    json_key(json, "after");
    json_array(json);
    while (rest.length && wanted--)
        line_write(json, text_cut(&rest, '\n'));
    json_array_end(json);
}

static void line_begin(const struct searching *searching, struct json_writer *json,
                       const char *type)
{
    const struct task_record *attempt = searching->attempt;
    json_init(json, searching->out);
    json_object(json);
    json_key_string(json, "type", type);
    json_key_int(json, "attempt", attempt->job_attempt);
    json_key_string(json, "role", attempt->role_name);
    json_key_int(json, "index", attempt->task.index);
    json_key_int(json, "taskAttempt", attempt->task_attempt);
}

/* A log of which nothing, or no more, could be read: nobody may take it for searched. */
static void unread_write(struct searching *searching, const struct err *err)
{
    struct json_writer json;
    line_begin(searching, &json, "unread");
    json_key_int(&json, "offset", (int64_t)searching->place.offset);
    json_key_string(&json, "message", err->text);
    json_object_end(&json);
    buf_char(searching->out, '\n');
    searching->unread++;
}

static void match_write(struct searching *searching, struct text line, uint64_t offset,
                        uint64_t number)
{
    struct json_writer json;
    line_begin(searching, &json, "match");
    json_key_int(&json, "line", (int64_t)number);
    json_key_int(&json, "offset", (int64_t)offset);
    json_key(&json, "text");
    line_write(&json, line);
    if (searching->search->context) {
        char *bytes = mem_alloc(CONTEXT_BYTES);
        before_write(searching, &json, offset, bytes);
        after_write(searching, &json, offset + line.length + 1, bytes);
        mem_free(bytes);
    }
    json_object_end(&json);
    buf_char(searching->out, '\n');
    searching->found++;
}

static void end_write(struct searching *searching)
{
    const struct log_place *place = &searching->place;
    char cursor[120];
    struct json_writer json;
    json_init(&json, searching->out);
    json_object(&json);
    json_key_string(&json, "type", "end");
    json_key_int(&json, "matches", (int64_t)searching->found);
    json_key_int(&json, "unread", (int64_t)searching->unread);
    json_key_int(&json, "bytes", (int64_t)searching->bytes);
    json_key(&json, "cursor");
    if (searching->is_enough) {
        snprintf(cursor, sizeof cursor, "%u.%u.%u.%u.%llu.%llu", place->job_attempt,
                 place->task.role, place->task.index, place->task_attempt,
                 (unsigned long long)place->offset, (unsigned long long)place->line);
        json_string(&json, cursor);
    } else {
        json_null(&json);
    }
    json_object_end(&json);
    buf_char(searching->out, '\n');
}

/* ---- one log ---- */

/* Whole lines, or one that is longer than a block. */
static void block_search(struct searching *searching, struct text text)
{
    struct log_place *place = &searching->place;
    const char *begin = text.at, *end = text.at + text.length;
    const uint64_t offset = place->offset;
    while (text.length && !searching->is_enough) {
        struct text line = line_find(searching, text);
        if (!line.at)
            break;
        place->line += newlines(text.at, line.at);
        match_write(searching, line, offset + (uint64_t)(line.at - begin), place->line + 1);
        const char *next = line.at + line.length < end ? line.at + line.length + 1 : end;
        place->line += next > line.at && next[-1] == '\n';
        text = (struct text){next, (size_t)(end - next)};
        place->offset = offset + (uint64_t)(next - begin);
        searching->is_beyond = true;
        searching->is_enough = searching->found >= searching->search->limit ||
                               searching->out->length > LOG_SEARCH_REPLY_MAX;
        time_check(searching);
    }
    if (searching->is_enough)
        return;
    place->line += newlines(text.at, end);
    place->offset = offset + (uint64_t)(end - begin);
}

static void log_search_one(struct searching *searching)
{
    struct log_place *place = &searching->place;
    while (!searching->is_enough) {
        uint64_t offset = place->offset;
        struct err err;
        ssize_t length = log_take(searching, &offset, searching->block, BLOCK, &err);
        if (length < 0 && length != ERR_NOT_FOUND) /* else it is gone, or there never was one */
            unread_write(searching, &err);
        if (length <= 0)
            return;
        if (offset != place->offset) /* what stood between is gone */
            place->line = 0;
        place->offset = offset;
        searching->bytes += (uint64_t)length;
        const char *last = memrchr(searching->block, '\n', (size_t)length);
        if (last && length == BLOCK)
            length = last + 1 - searching->block;
        block_search(searching, (struct text){searching->block, (size_t)length});
        searching->is_beyond = true;
        time_check(searching);
    }
}

/* ---- all logs of the job ---- */

/* -1: before the place at which the search began, 0: in it, 1: behind it. */
static int place_order(const struct task_record *attempt, const struct log_place *from)
{
    const int64_t at[] = {attempt->job_attempt, attempt->task.role, attempt->task.index,
                          attempt->task_attempt};
    const int64_t begin[] = {from->job_attempt, from->task.role, from->task.index,
                             from->task_attempt};
    for (size_t i = 0; i < COUNT_OF(at); i++)
        if (at[i] != begin[i])
            return at[i] < begin[i] ? -1 : 1;
    return 0;
}

static void attempt_search(struct searching *searching, const struct task_record *attempt)
{
    const struct log_search *search = searching->search;
    struct service *service = search->service;
    int order = place_order(attempt, &search->from);
    if (order < 0 || !attempt->attempt.v || searching->is_enough)
        return;
    searching->attempt = attempt;
    searching->engine = service->engine_of(service->context, attempt->node);
    searching->place = order == 0 ? search->from
                                  : (struct log_place){.job_attempt = attempt->job_attempt,
                                                       .task = attempt->task,
                                                       .task_attempt = attempt->task_attempt};
    searching->is_beyond |= order > 0;
    log_search_one(searching);
    if (searching->is_beyond && searching->out->length > LOG_SEARCH_REPLY_MAX)
        searching->is_enough = true;
    time_check(searching);
}

static bool task_is_wanted(const struct log_search *search, const struct task_record *task)
{
    return (!search->role.at || text_is(search->role, task->role_name)) &&
           (search->index < 0 || search->index == task->task.index);
}

/* Has the search begun behind all attempts of the task? */
static bool task_is_passed(const struct log_search *search, uint32_t job_attempt,
                           struct task_ref task)
{
    const struct log_place *from = &search->from;
    if (job_attempt != from->job_attempt)
        return job_attempt < from->job_attempt;
    return task.role < from->task.role ||
           (task.role == from->task.role && task.index < from->task.index);
}

static int task_order(const void *a, const void *b)
{
    const struct task_record *left = a, *right = b;
    if (left->task.role != right->task.role)
        return left->task.role < right->task.role ? -1 : 1;
    return (left->task.index > right->task.index) - (left->task.index < right->task.index);
}

static int job_attempt_search(struct searching *searching, struct store_reader *reader,
                              uint32_t job_attempt, struct err *err)
{
    const struct log_search *search = searching->search;
    cleanup_arena struct arena arena;
    struct store_tasks tasks = {0};
    arena_init(&arena);
    int code = store_tasks(reader, search->job, job_attempt, &arena, &tasks, err);
    if (code)
        return code == ERR_NOT_FOUND ? 0 : code;
    qsort(tasks.items, tasks.count, sizeof *tasks.items, task_order);
    for (size_t i = 0; i < tasks.count && !searching->is_enough; i++) {
        struct store_tasks tries = {0};
        const struct task_ref task = tasks.items[i].task;
        if (!task_is_wanted(search, &tasks.items[i]) || task_is_passed(search, job_attempt, task))
            continue;
        code = store_task_attempts(reader, search->job, job_attempt, task, &arena, &tries, err);
        if (code && code != ERR_NOT_FOUND)
            return code;
        for (size_t k = 0; k < tries.count; k++)
            attempt_search(searching, &tries.items[k]);
    }
    return 0;
}

int log_search_run(const struct log_search *search, struct buf *out, struct err *err)
{
    struct service *service = search->service;
    char reason[160];
    struct searching searching = {
        .search = search, .out = out, .until_ms = clock_monotonic_ms() + search->most_ms};
    assert((search->pattern.length || search->line) && search->limit);
    if (search->is_expression && !(searching.matcher = matcher_of(search, reason)))
        return err_fail(err, ERR_INVALID, "re", "not an expression of RE2: %s", reason);
    struct store_reader *reader = service->reader_get(service->context, err);
    int code = reader ? 0 : err->code;
    searching.block = mem_alloc(BLOCK);
    uint32_t first = search->attempt >= 0 ? (uint32_t)search->attempt : search->from.job_attempt;
    uint32_t end = search->attempt >= 0 ? first + 1 : search->job_attempt_count;
    for (uint32_t at = first; at < end && !code && !searching.is_enough; at++) {
        code = job_attempt_search(&searching, reader, at, err);
        if (searching.is_enough || at + 1 == end)
            continue;
        searching.place = (struct log_place){.job_attempt = at + 1};
        searching.is_beyond = true;
        time_check(&searching);
    }
    if (reader)
        service->reader_put(service->context, reader);
    if (!code)
        end_write(&searching);
    mem_free(searching.block);
    matcher_free(searching.matcher);
    return code;
}

/* ---- the request ---- */

struct search_task {
    struct worker_task task; /* first */
    struct call *call;
    struct log_search search;
    bool is_run;
    int code;
    struct err err;
};

int log_search_start(struct api *api, struct err *err)
{
    const struct worker_config worker = {
        .name = "the thread that searches logs",
        .waiting_max = LOG_SEARCH_WAITING_MAX,
        .busy_text = "too many searches of logs at this moment: try again",
        .nice = NICE,
    };
    return worker_start(&worker, &api->search_worker, err);
}

static void task_run(struct worker_task *task, void *context)
{
    struct search_task *own = (struct search_task *)task;
    (void)context;
    own->is_run = true;
    /* The body is the exchange's, which releases it also when the client has gone meanwhile. */
    own->code = log_search_run(&own->search, &own->call->exchange->reply.body, &own->err);
}

static void task_done(struct worker_task *task, bool is_run)
{
    struct call *call = ((struct search_task *)task)->call;
    (void)is_run;
    throttle_search_remove(call->api, call->caller.auth.user);
    exchange_resume(call->exchange);
}

static int search_end(struct call *call)
{
    struct search_task *own = call->task;
    struct http_reply *reply = &call->exchange->reply;
    int code = own->code;
    if (!own->is_run)
        code = err_fail(&own->err, ERR_UNAVAILABLE, "", "the server is ending");
    call->err = own->err;
    if (!code) {
        reply->status = 200;
        reply->content_type = "application/x-ndjson";
    }
    return code;
}

/* q=TEXT, re=EXPRESSION, or line=N. */
static int pattern_read(struct call *call, struct log_search *search)
{
    int64_t line;
    int code = call_number(call, "line", 1, INT64_MAX, 0, &line);
    if (code)
        return code;
    search->line = (uint64_t)line;
    struct text plain = exchange_query(call->exchange, "q");
    struct text expression = exchange_query(call->exchange, "re");
    search->is_expression = expression.at != NULL;
    search->pattern = expression.at ? expression : plain;
    search->ignores_case = call_flag(call, "ignoreCase");
    if ((plain.at != NULL) + (expression.at != NULL) + (line > 0) != 1 ||
        (!search->pattern.length && line == 0) || search->pattern.length > LOG_SEARCH_PATTERN_MAX)
        return call_fail(call, ERR_INVALID, NULL, "q",
                         "either q, a text, or re, an expression, of 1 to %d bytes, or line, the "
                         "number of a line",
                         LOG_SEARCH_PATTERN_MAX);
    if (line > 0)
        return 0;
    if (memchr(search->pattern.at, '\n', search->pattern.length))
        return call_fail(call, ERR_INVALID, NULL, "q", "a line has no end of a line in it");
    return log_search_check(search, &call->err);
}

static int numbers_read(struct call *call, struct log_search *search)
{
    int64_t limit, context;
    struct text cursor = exchange_query(call->exchange, "cursor");
    int code = call_number(call, "index", 0, SPEC_TASKS_MAX, -1, &search->index);
    if (!code)
        code = call_number(call, "attempt", 0, UINT32_MAX, -1, &search->attempt);
    if (!code)
        code = call_number(call, "limit", 1, LOG_SEARCH_LINES_MAX, LOG_SEARCH_LINES, &limit);
    if (!code)
        code = call_number(call, "context", 0, LOG_SEARCH_CONTEXT_MAX, 0, &context);
    if (code)
        return code;
    search->limit = (size_t)limit;
    search->context = (size_t)context;
    if (cursor.at && !log_place_parse(cursor, &search->from))
        return call_fail(call, ERR_INVALID, NULL, "cursor", "this is no cursor of a search");
    return 0;
}

/* GET /jobs/:job/logs/search */
int handle_log_search(struct call *call)
{
    struct search_task *own = ARENA_NEW(call->arena, struct search_task);
    struct log_search *search = &own->search;
    struct store_job job;
    struct text stream = exchange_query(call->exchange, "stream");
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = call_may(call, AUTH_READ_OUTPUT, &job);
    if (!code)
        code = log_stream_parse(call, stream.at ? stream : TEXT("all"), &search->stream);
    if (!code)
        code = pattern_read(call, search);
    if (!code)
        code = numbers_read(call, search);
    if (!code)
        code = throttle_search_add(call);
    if (code)
        return code;
    search->service = call->api->service;
    search->job = job.record.id;
    search->job_attempt_count = job.record.attempt + 1;
    search->role = exchange_query(call->exchange, "role");
    const uint32_t most_ms = call->api->config.log_search_ms;
    search->most_ms = most_ms ? most_ms : LOG_SEARCH_MS;
    own->task =
        (struct worker_task){.run = task_run, .done = task_done, .owner = call->caller.auth.user};
    own->call = call;
    call->task = own;
    call->resume = search_end;
    exchange_suspend(call->exchange);
    /* What it is given is its thread's: `own` may have ended before this returns. */
    code = worker_give(call->api->search_worker, &own->task, &own->err);
    if (code) {
        own->code = code;
        own->is_run = true; /* with this error */
        throttle_search_remove(call->api, call->caller.auth.user);
        exchange_resume(call->exchange);
    }
    return 0;
}
