#include "api/api.h"
#include "api/handlers.h"
#include "api/http_watch.h"
#include "api/link.h"
#include "api/range.h"
#include "api/task.h"
#include "base/memory.h"
#include "spec/spec.h"
#include <assert.h>
#include <poll.h>
#include <unistd.h>

enum {
    LOG_POLL_MS = 100, /* while nothing wakes a follower: no log yet, or none that can be watched */
    TAIL_BYTES_MAX = 16 << 20,
    TAIL_LINES_MAX = 100000,
    TAIL_BLOCK = 64 << 10,
    TAIL_MODE_BYTES = 16384, /* what OpenPAI's tail mode shows */
};

static const struct {
    const char *name;
    enum log_stream stream;
} STREAMS[] = {
    {"stdout", LOG_STDOUT}, {"stderr", LOG_STDERR}, {"all", LOG_ALL}, {"runtime", LOG_RUNTIME}};

/* A log on its way out. Either of one attempt, or (`is_job`) of a task through all its attempts
 * after `after`, in their order. */
struct log_reader {
    char *caller; /* who follows */
    struct api *api;
    struct http_stream *stream; /* of the reply: its descriptor changes with the attempt */
    struct attempt_id attempt;  /* 0: none now */
    uint8_t engine;             /* that has it */
    enum log_stream which;
    uint64_t offset; /* within the attempt; without one, what is to be left out of the next ones */
    uint64_t end;    /* without follow: what was there at the start */
    bool is_follow, is_job;
    bool is_part;      /* of a range that was asked for, or the end alone */
    bool is_tail;      /* the end alone: TAIL_MODE_BYTES */
    struct job_id job; /* is_job */
    struct task_ref task;
    uint32_t job_attempt; /* `after` is of this attempt of the job or an earlier one */
    uint64_t after;       /* id of the latest attempt that was taken up */
    bool is_over;         /* not is_job: the attempt has ended, whether it has a log or not */
    uint64_t seen_generation;
};

/* From here on the follower looks from time to time. */
static void watch_close(struct log_reader *log)
{
    if (log->stream->fd >= 0)
        close(log->stream->fd);
    log->stream->fd = -1;
    log->stream->poll_ms = LOG_POLL_MS;
}

/* True: whatever happens to the log from here on wakes the follower. */
static bool watch_open(struct log_reader *log)
{
    struct service *service = log->api->service;
    struct err err;
    assert(log->stream->fd < 0 && log->attempt.v);
    int fd = service->log_watch(service->context, log->engine, log->attempt, log->which, &err);
    if (fd < 0)
        return false;
    log->stream->fd = fd;
    log->stream->poll_ms = 0;
    return true;
}

static void log_free(void *state)
{
    struct log_reader *log = state;
    watch_close(log);
    if (log->is_follow)
        call_follower_remove(log->api, log->caller);
    mem_free(log->caller);
    mem_free(log);
}

/* Whatever made the descriptor readable is news only once. One that is at its end would be readable
 * for ever: the engine has let go of it. */
static void watch_drain(struct log_reader *log)
{
    char scratch[4096];
    struct pollfd ready = {.fd = log->stream->fd, .events = POLLIN};
    while (ready.fd >= 0 && poll(&ready, 1, 0) == 1) {
        if (read(ready.fd, scratch, sizeof scratch) > 0)
            continue;
        watch_close(log);
        return;
    }
}

static void log_of(const struct call *call, const struct task_record *attempt,
                   struct log_reader *log)
{
    const struct service *service = call->api->service;
    log->attempt = attempt->attempt;
    log->engine = service->engine_of(service->context, attempt->node);
}

/* ---- whole ---- */

static ssize_t log_whole(void *state, char *bytes, size_t size)
{
    struct log_reader *log = state;
    struct service *service = log->api->service;
    if (log->offset >= log->end)
        return HTTP_STREAM_END;
    if (size > log->end - log->offset)
        size = (size_t)(log->end - log->offset);
    struct log_part part;
    struct err err;
    ssize_t length = service->log_read(service->context, log->engine, log->attempt, log->which,
                                       &log->offset, bytes, size, &part, &err);
    if (length < 0)
        return HTTP_STREAM_BROKEN;
    log->offset += (uint64_t)length;
    return length ? length : HTTP_STREAM_END;
}

/* ---- follow ---- */

/* *found: the first attempt after log->after within one attempt of the job, if there is one. */
static int attempt_after(const struct log_reader *log, struct store_reader *reader,
                         uint32_t job_attempt, struct arena *arena, struct task_record *found)
{
    struct store_tasks tries = {0};
    struct err err;
    int code = store_task_attempts(reader, log->job, job_attempt, log->task, arena, &tries, &err);
    for (size_t i = 0; !code && i < tries.count; i++) {
        const uint64_t id = tries.items[i].attempt.v;
        if (id > log->after && (!found->attempt.v || id <= found->attempt.v))
            *found = tries.items[i];
    }
    return code == ERR_NOT_FOUND ? 0 : code;
}

/* *found: the next attempt of the followed task through those of the job. */
static int attempt_search(struct log_reader *log, const struct store_job *job, struct arena *arena,
                          struct task_record *found)
{
    struct service *service = log->api->service;
    struct err err;
    struct store_reader *reader = service->reader_get(service->context, &err);
    int code = reader ? 0 : err.code;
    for (uint32_t at = log->job_attempt; !code && at <= job->record.attempt && !found->attempt.v;
         at++) {
        code = attempt_after(log, reader, at, arena, found);
        if (found->attempt.v)
            log->job_attempt = at;
    }
    if (reader)
        service->reader_put(service->context, reader);
    return code;
}

/* The next attempt of the followed task, when there is one. Negative: nobody knows now. */
static int attempt_find(struct log_reader *log, bool *is_job_final)
{
    struct service *service = log->api->service;
    cleanup_arena struct arena arena;
    struct err err;
    struct store_job job = {0};
    struct task_record found = {0};
    arena_init(&arena);
    const bool is_gone = store_job_summary(service->store, log->job, &arena, &job, &err) != 0;
    *is_job_final = is_gone || job.record.state == LIFE_COMPLETED;
    const int code = is_gone ? 0 : attempt_search(log, &job, &arena, &found);
    if (code < 0)
        return code;
    if (found.attempt.v) {
        log->attempt.v = log->after = found.attempt.v;
        log->engine = service->engine_of(service->context, found.node);
    }
    return found.attempt.v != 0;
}

/* After the end of one attempt (or before the first): is there another? */
static ssize_t attempt_next(struct log_reader *log, bool *has_next)
{
    uint64_t generation = atomic_load(&log->api->generation);
    bool is_job_final;
    *has_next = false;
    if (generation == log->seen_generation)
        return HTTP_STREAM_WAIT;
    const int found = attempt_find(log, &is_job_final);
    if (found < 0) /* it is asked again, even if nothing else changes */
        return HTTP_STREAM_WAIT;
    *has_next = found;
    if (*has_next)
        return 0;
    log->seen_generation = generation;
    return is_job_final ? HTTP_STREAM_END : HTTP_STREAM_WAIT;
}

/* An attempt has told all; what was still to be left out is left out of the next one. */
static void attempt_finish(struct log_reader *log, const struct log_part *part)
{
    log->offset = log->offset > part->end ? log->offset - part->end : 0;
    log->attempt.v = 0;
    log->seen_generation = UINT64_MAX;
}

/* Has the followed attempt ended, or gone with its job? Negative: nobody knows now. */
static int alone_has_ended(const struct log_reader *log)
{
    struct service *service = log->api->service;
    cleanup_arena struct arena arena;
    struct err err;
    struct task_record row = {0};
    arena_init(&arena);
    struct store_reader *reader = service->reader_get(service->context, &err);
    if (!reader)
        return err.code;
    const int code = store_attempt(reader, log->attempt, &arena, &row, &err);
    service->reader_put(service->context, reader);
    if (code == ERR_NOT_FOUND)
        return true;
    return code < 0 ? code : row.state >= LIFE_ATTEMPT_COMPLETED;
}

/* One attempt alone, without a log: perhaps its container is still to be made. When it has ended,
 * it is read once more: all may have come since it was looked for. */
static ssize_t alone_await(struct log_reader *log, bool *is_to_read)
{
    const uint64_t generation = atomic_load(&log->api->generation);
    if (log->is_over)
        return HTTP_STREAM_END;
    if (generation == log->seen_generation)
        return HTTP_STREAM_WAIT;
    const int ended = alone_has_ended(log);
    if (ended < 0) /* it is asked again, even if nothing else changes */
        return HTTP_STREAM_WAIT;
    log->seen_generation = generation;
    log->is_over = *is_to_read = ended;
    return HTTP_STREAM_WAIT;
}

/* Nothing more of the followed attempt: ended, or not there. */
static ssize_t attempt_leave(struct log_reader *log, const struct log_part *part, ssize_t length,
                             bool *has_next)
{
    *has_next = false;
    watch_close(log);
    if (length == ERR_UNAVAILABLE)
        return HTTP_STREAM_WAIT;
    if (!log->is_job)
        return length == 0 ? HTTP_STREAM_END : alone_await(log, has_next);
    if (length == 0)
        attempt_finish(log, part);
    /* no log: it does not exist yet, or not any more, and then there is a later attempt */
    return attempt_next(log, has_next);
}

static ssize_t log_follow(void *state, char *bytes, size_t size)
{
    struct log_reader *log = state;
    struct service *service = log->api->service;
    for (bool was_watched = false;;) {
        struct log_part part = {0};
        struct err err;
        ssize_t length = ERR_NOT_FOUND;
        if (log->attempt.v) {
            watch_drain(log);
            length = service->log_read(service->context, log->engine, log->attempt, log->which,
                                       &log->offset, bytes, size, &part, &err);
        }
        if (length > 0) {
            log->offset += (uint64_t)length;
            return length;
        }
        if (length == 0 && !part.is_ended) {
            if (log->stream->fd >= 0 || was_watched || !watch_open(log))
                return HTTP_STREAM_WAIT;
            was_watched = true; /* nobody was woken for what came before: read once more */
            continue;
        }
        bool has_next;
        ssize_t next = attempt_leave(log, &part, length, &has_next);
        if (!has_next)
            return next;
    }
}

/* ---- where to begin ---- */

/* First offset of the last `lines` lines before `end`. */
static uint64_t tail_lines(struct call *call, const struct log_reader *log,
                           const struct log_part *part, int64_t lines)
{
    struct service *service = call->api->service;
    char *block = arena_alloc(call->arena, TAIL_BLOCK);
    uint64_t at = part->end;
    uint64_t floor = part->end > TAIL_BYTES_MAX ? part->end - TAIL_BYTES_MAX : 0;
    if (floor < part->begin)
        floor = part->begin;
    bool is_last_byte = true; /* the newline at the very end ends the last line */
    while (at > floor) {
        uint64_t from = at - floor > TAIL_BLOCK ? at - TAIL_BLOCK : floor;
        size_t size = (size_t)(at - from);
        struct log_part ignored;
        struct err err;
        ssize_t length = service->log_read(service->context, log->engine, log->attempt, log->which,
                                           &from, block, size, &ignored, &err);
        if (length <= 0)
            return at;
        for (size_t i = (size_t)length; i-- > 0;) {
            if (block[i] == '\n' && !is_last_byte && lines-- <= 1)
                return from + i + 1;
            is_last_byte = false;
        }
        at = from;
    }
    return floor;
}

/* The log is gone: what the history kept of it is the reply. */
static bool log_from_tail(struct call *call, const struct log_reader *log)
{
    struct store_attempt_end end;
    struct err err;
    if (!call_reader(call) ||
        store_attempt_end(call->reader, log->attempt, call->arena, &end, &err) || !end.tail.length)
        return false;
    exchange_header(call->exchange, "X-Skep-Log", "last lines");
    call_text(call, 200, "text/plain; charset=utf-8", end.tail);
    return true;
}

/* Where the log goes on, its length is not known. */
static const char *total_of(struct call *call, const struct log_part *part)
{
    return part->is_ended ? arena_format(call->arena, "%llu", (unsigned long long)part->end) : "*";
}

/* Of what the query says the part that the header Range asks for; a part that is not there is
 * answered. */
static void range_take(struct call *call, struct log_reader *log, const struct log_part *part)
{
    const struct exchange *exchange = call->exchange;
    const struct byte_range whole = {log->offset, log->end};
    struct byte_range range;
    struct json_writer json;
    /* what would be compared with If-Range, a log does not have */
    switch (exchange->if_range.at ? RANGE_NONE : range_parse(exchange->range, &whole, &range)) {
    case RANGE_NONE:
        return;
    case RANGE_BYTES:
        log->offset = range.begin;
        log->end = range.end;
        log->is_part = true;
        exchange_header(call->exchange, "Content-Range",
                        arena_format(call->arena, "bytes %llu-%llu/%s",
                                     (unsigned long long)range.begin,
                                     (unsigned long long)range.end - 1, total_of(call, part)));
        return;
    case RANGE_OUTSIDE:
        exchange_header(call->exchange, "Content-Range",
                        arena_format(call->arena, "bytes */%s", total_of(call, part)));
        call_json(call, 416, &json);
        json_object(&json);
        json_key_string(&json, "code", "RangeError");
        json_key_string(&json, "message",
                        arena_format(call->arena, "the log has the bytes from %llu to %llu",
                                     (unsigned long long)whole.begin,
                                     (unsigned long long)whole.end));
        json_object_end(&json);
        return;
    }
}

/* A part, and how many bytes come. */
static void length_tell(struct call *call, struct log_reader *log, const struct log_part *part)
{
    if (log->offset > log->end)
        log->offset = log->end;
    exchange_header(call->exchange, "Accept-Ranges", "bytes");
    range_take(call, log, part);
    if (!call->exchange->reply.status)
        exchange_header(
            call->exchange, "X-Skep-Length",
            arena_format(call->arena, "%llu", (unsigned long long)(log->end - log->offset)));
}

/* The begin of the line in which `offset` is, unless that is far away. */
static uint64_t line_start(struct call *call, const struct log_reader *log,
                           const struct log_part *part, uint64_t offset)
{
    struct service *service = call->api->service;
    char *block = arena_alloc(call->arena, TAIL_BLOCK);
    uint64_t from = offset - part->begin > TAIL_BLOCK ? offset - TAIL_BLOCK : part->begin;
    const uint64_t wanted = offset - from;
    struct log_part ignored;
    struct err err; /* then it begins in the middle of a line */
    const ssize_t length = service->log_read(service->context, log->engine, log->attempt,
                                             log->which, &from, block, wanted, &ignored, &err);
    const char *newline = length == (ssize_t)wanted && length ? memrchr(block, '\n', wanted) : NULL;
    if (newline)
        return from + (uint64_t)(newline + 1 - block);
    return from == part->begin ? from : offset;
}

/* Who has not asked for a byte is told at which one the log begins. */
static void offset_tell(struct call *call, const struct log_reader *log)
{
    if (!log->is_job || !log->is_follow) /* else the follow says so */
        exchange_header(call->exchange, "X-Skep-Offset",
                        arena_format(call->arena, "%llu", (unsigned long long)log->offset));
}

/* since=TIME: from what was written then on, in whole lines. */
static int since_take(struct call *call, struct log_reader *log, const struct log_part *part,
                      int64_t since_ms)
{
    struct service *service = call->api->service;
    uint64_t offset;
    int code = service->log_time(service->context, log->engine, log->attempt, log->which, since_ms,
                                 &offset, &call->err);
    if (code)
        return code;
    if (offset > part->end)
        offset = part->end;
    log->offset = offset > part->begin ? line_start(call, log, part, offset) : part->begin;
    return 0;
}

/* offset=N, tail=BYTES, tail-lines=N, tail-mode=true, since=TIME; by default from the start. */
static int log_begin(struct call *call, struct log_reader *log)
{
    struct service *service = call->api->service;
    int64_t offset, tail, lines, since_ms;
    int code = call_number(call, "offset", 0, INT64_MAX, 0, &offset);
    if (!code)
        code = call_number(call, "tail", 1, TAIL_BYTES_MAX, 0, &tail);
    if (!code)
        code = call_number(call, "tail-lines", 0, TAIL_LINES_MAX, -1, &lines);
    if (!code)
        code = call_number(call, "since", 0, INT64_MAX, -1, &since_ms);
    if (!code && since_ms >= 0 && (offset || tail || lines >= 0))
        code = call_fail(call, ERR_INVALID, NULL, "since",
                         "a log begins at since, at offset, or with its tail: give one of them");
    if (code)
        return code;
    if (log->is_tail || call_flag(call, "tail-mode") || call_flag(call, "tailMode"))
        tail = TAIL_MODE_BYTES;
    struct log_part part = {0};
    struct err err = {0};
    uint64_t probe = 0;
    char byte;
    ssize_t length = service->log_read(service->context, log->engine, log->attempt, log->which,
                                       &probe, &byte, 1, &part, &err);
    if (length == ERR_NOT_FOUND && !log->is_follow && log_from_tail(call, log))
        return 0;
    if (length == ERR_NOT_FOUND && !log->is_follow)
        return call_fail(call, ERR_NOT_FOUND, "NoTaskLogError", "", "%s",
                         err.text[0] ? err.text : "the task has no log");
    if (length < 0 && length != ERR_NOT_FOUND) {
        call->err = err;
        return (int)length;
    }
    if (part.begin > (uint64_t)offset && !tail && lines < 0)
        exchange_header(
            call->exchange, "X-Skep-Removed",
            arena_format(call->arena, "%llu", (unsigned long long)part.begin - (uint64_t)offset));
    log->end = part.end;
    log->offset = (uint64_t)offset > part.begin ? (uint64_t)offset : part.begin;
    if (tail)
        log->offset =
            part.end - part.begin > (uint64_t)tail ? part.end - (uint64_t)tail : part.begin;
    if (lines > 0)
        log->offset = tail_lines(call, log, &part, lines);
    if (lines == 0)
        log->offset = part.end;
    if (since_ms >= 0 && length >= 0 && (code = since_take(call, log, &part, since_ms)))
        return code;
    if (length >= 0 && (tail || lines >= 0 || since_ms >= 0))
        offset_tell(call, log);
    if (!log->is_follow && length >= 0)
        length_tell(call, log, &part);
    return 0;
}

int log_stream_parse(struct call *call, struct text name, enum log_stream *stream)
{
    for (size_t i = 0; i < COUNT_OF(STREAMS); i++) {
        if (text_is(name, STREAMS[i].name)) {
            *stream = STREAMS[i].stream;
            return 0;
        }
    }
    return call_fail(call, ERR_NOT_FOUND, "NoTaskLogError", "stream",
                     "a log is one of stdout, stderr, all, runtime");
}

static int log_reply(struct call *call, const struct log_reader *from)
{
    struct http_reply *reply = &call->exchange->reply;
    if (reply->status) /* the last lines alone, or no such range */
        return 0;
    struct service *service = call->api->service;
    int code = 0;
    if (from->is_follow && from->attempt.v)
        code = service->log_can_follow(service->context, from->engine, &call->err);
    if (!code && from->is_follow)
        code = call_follower_add(call);
    if (code)
        return code;
    struct log_reader *log = mem_zero(1, sizeof *log);
    *log = *from;
    log->api = call->api;
    log->caller = mem_copy(call->caller.auth.user);
    log->stream = &reply->stream;
    reply->status = log->is_part ? 206 : 200;
    reply->content_type = "text/plain; charset=utf-8";
    reply->stream = (struct http_stream){
        .read = log->is_follow ? log_follow : log_whole,
        .free = log_free,
        .state = log,
        .fd = -1,
        .poll_ms = LOG_POLL_MS,
    };
    return 0;
}

/* ---- paths ---- */

/* The attempt that a path names: job, attempt, role, index, attempt of the task. */
static int path_attempt(struct call *call, struct task_record *attempt)
{
    struct store_job job;
    struct store_tasks attempts = {0};
    int64_t job_attempt, index, task_attempt;
    int32_t role = -1;
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = call_may(call, AUTH_READ_OUTPUT, &job);
    if (!code)
        code = call_index(call, call->parameters[1], "attempt", UINT32_MAX, &job_attempt);
    if (!code)
        code = call_index(call, call->parameters[3], "taskIndex", SPEC_TASKS_MAX, &index);
    if (!code)
        code = call_index(call, call->parameters[4], "task attempt", UINT32_MAX, &task_attempt);
    if (!code)
        code = call_role(call, job.record.id, call->parameters[2], &role);
    if (!code && role >= 0 && index <= UINT16_MAX)
        code = store_task_attempts(call->reader, job.record.id, (uint32_t)job_attempt,
                                   (struct task_ref){(uint16_t)role, (uint16_t)index}, call->arena,
                                   &attempts, &call->err);
    if (code == ERR_NOT_FOUND && role >= 0)
        code = 0; /* the task has none yet, or never was */
    for (size_t i = 0; !code && i < attempts.count; i++) {
        if (attempts.items[i].task_attempt == task_attempt && attempts.items[i].attempt.v) {
            *attempt = attempts.items[i];
            return 0;
        }
    }
    if (code)
        return code;
    return call_fail(call, ERR_NOT_FOUND, "NoTaskLogError", "", "the task has no such attempt");
}

/* Links that a browser can open, as those of the original: the whole log, or its end. */
static const char *log_path(const struct call *call, const char *stream, bool is_tail)
{
    const struct text *names = call->parameters;
    return is_tail
               ? arena_format(call->arena, "/api/internal/tail-logs/%.*s:%.*s:%.*s:%.*s:%.*s:%s",
                              TEXT_ARG(names[0]), TEXT_ARG(names[1]), TEXT_ARG(names[2]),
                              TEXT_ARG(names[3]), TEXT_ARG(names[4]), stream)
               : arena_format(call->arena,
                              "/api/v2/jobs/%.*s/attempts/%.*s/taskRoles/%.*s/taskIndex/%.*s/"
                              "attempts/%.*s/logs/%s",
                              TEXT_ARG(names[0]), TEXT_ARG(names[1]), TEXT_ARG(names[2]),
                              TEXT_ARG(names[3]), TEXT_ARG(names[4]), stream);
}

int handle_log_list(struct call *call)
{
    struct task_record attempt = {.node = ""};
    int code = path_attempt(call, &attempt);
    if (code)
        return code;
    bool is_tail = call_flag(call, "tail-mode") || call_flag(call, "tailMode");
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key(&json, "locations");
    json_array(&json);
    for (size_t i = 0; i < COUNT_OF(STREAMS); i++) {
        const char *path = log_path(call, STREAMS[i].name, is_tail);
        json_object(&json);
        json_key_string(&json, "name", STREAMS[i].name);
        json_key_string(&json, "uri", link_make(call, path, ""));
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    return 0;
}

/* The log that a path of six names is of. */
static int log_open(struct call *call, struct log_reader *log)
{
    struct task_record attempt = {.node = ""};
    int code = log_stream_parse(call, call->parameters[5], &log->which);
    if (!code)
        code = path_attempt(call, &attempt);
    if (code)
        return code;
    log_of(call, &attempt, log);
    return log_begin(call, log);
}

int handle_log_read(struct call *call)
{
    struct log_reader log = {.is_follow = call_flag(call, "follow"), .seen_generation = UINT64_MAX};
    int code = log_open(call, &log);
    return code ? code : log_reply(call, &log);
}

/* OpenPAI's links to the end of a log: "JOB:ATTEMPT:ROLE:INDEX:TASKATTEMPT:STREAM". */
int handle_tail_log(struct call *call)
{
    enum { NAME_COUNT = 6 };
    struct log_reader log = {.is_tail = true};
    struct text rest = call->parameters[0];
    for (size_t i = 0; i < NAME_COUNT; i++)
        call->parameters[i] = text_cut(&rest, ':');
    if (rest.at || !call->parameters[NAME_COUNT - 1].length)
        return call_fail(call, ERR_NOT_FOUND, "NoTaskLogError", "",
                         "the name of a log is JOB:ATTEMPT:ROLE:INDEX:TASKATTEMPT:STREAM");
    int code = log_open(call, &log);
    if (code)
        return code;
    log.is_part = true;
    return log_reply(call, &log);
}

/* A task that waits for its next try: its latest one that had a container, of this attempt of the
 * job or of an earlier one. */
static int earlier_attempt(struct call *call, const struct store_job *job, struct log_reader *log)
{
    struct store_tasks tries = {0};
    for (int64_t at = job->record.attempt; at >= 0 && !log->attempt.v; at--) {
        int code = store_task_attempts(call->reader, job->record.id, (uint32_t)at, log->task,
                                       call->arena, &tries, &call->err);
        if (code == ERR_NOT_FOUND)
            continue;
        if (code)
            return code;
        for (size_t i = 0; i < tries.count; i++)
            if (tries.items[i].attempt.v > log->attempt.v)
                log_of(call, &tries.items[i], log);
    }
    return 0;
}

/* The task that role= and index= name; by default the first one. */
static int query_task(struct call *call, const struct store_job *job, struct log_reader *log)
{
    struct task_record task;
    int64_t index;
    int code = call_number(call, "index", 0, SPEC_TASKS_MAX, 0, &index);
    if (!code)
        code = call_task(call, job, exchange_query(call->exchange, "role"), index, &task);
    if (code)
        return code;
    log_of(call, &task, log);
    log->task = task.task;
    return 0;
}

/* The task has no attempt at this moment: the follow shows those behind the latest that it had.
 * Each read of the store sees what was stored by then, and an attempt that began since the task was
 * read has not ended: so the task is read again. */
static int attempt_await(struct call *call, const struct store_job *job, struct log_reader *log)
{
    assert(!log->attempt.v);
    int code = earlier_attempt(call, job, log);
    log->after = log->attempt.v;
    return code ? code : query_task(call, job, log);
}

/* A follow shows the attempts after `after`, by default the current one and what comes. The reply
 * says where it began, so that a client whose connection is cut can go on: after the same attempt,
 * leaving out as many bytes as it has had (they may be of several attempts). */
static int follow_begin(struct call *call, const struct store_job *job, struct log_reader *log)
{
    int64_t after, offset;
    int code = call_number(call, "after", 0, INT64_MAX, -1, &after);
    if (!code)
        code = call_number(call, "offset", 0, INT64_MAX, 0, &offset);
    if (code)
        return code;
    log->job_attempt = after >= 0 ? 0 : job->record.attempt;
    if (after >= 0) {
        log->after = (uint64_t)after;
        log->offset = (uint64_t)offset;
        log->attempt.v = 0;
    } else if (!log->attempt.v) {
        code = attempt_await(call, job, log);
    }
    if (!code && log->attempt.v) {
        code = log_begin(call, log);
        log->after = log->attempt.v - 1;
    }
    if (code)
        return code;
    exchange_header(call->exchange, "X-Skep-After",
                    arena_format(call->arena, "%llu", (unsigned long long)log->after));
    exchange_header(call->exchange, "X-Skep-Offset",
                    arena_format(call->arena, "%llu", (unsigned long long)log->offset));
    if (log->attempt.v)
        log->after = log->attempt.v;
    return 0;
}

/* GET /jobs/:job/logs?role=&index=&stream=&follow=: the latest attempt; follow goes on with the
 * next attempts until the job is final. */
int handle_log_follow(struct call *call)
{
    struct store_job job;
    struct log_reader log = {.is_follow = call_flag(call, "follow"), .is_job = true};
    struct text name = exchange_query(call->exchange, "stream");
    log.seen_generation = UINT64_MAX;
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = call_may(call, AUTH_READ_OUTPUT, &job);
    if (!code)
        code = log_stream_parse(call, name.at ? name : TEXT("all"), &log.which);
    if (!code)
        code = query_task(call, &job, &log);
    if (code)
        return code;
    log.job = job.record.id;
    if (log.is_follow) {
        code = follow_begin(call, &job, &log);
    } else {
        code = log.attempt.v ? 0 : earlier_attempt(call, &job, &log);
        if (!code && !log.attempt.v)
            return call_fail(
                call, ERR_NOT_FOUND, "NoTaskLogError", "", "the task has not started yet: %s",
                job.record.reason && job.record.reason[0] ? job.record.reason : "its job waits");
        if (!code)
            code = log_begin(call, &log);
    }
    return code ? code : log_reply(call, &log);
}
