#include "api/handlers.h"
#include "api/page.h"
#include "api/view.h"
#include "base/memory.h"

enum { STORY_POLL_MS = 100, STORY_PAGE = 200, STORY_LIMIT = 1000, STORY_LIMIT_MAX = 100000 };
static const struct page_limits limits = {1, STORY_LIMIT_MAX, STORY_LIMIT};

/* Lines of one job's story as they happen, one JSON object a line, until the job is final. */
struct story_reader {
    struct api *api;
    struct job_id job;
    char *caller; /* who follows */
    char *user, *name;
    int is_warning;
    uint64_t after, seen_generation;
    struct buf ready; /* not yet sent */
    size_t sent;
};

static void story_free(void *state)
{
    struct story_reader *reader = state;
    call_story_remove(reader->api, reader->caller);
    mem_free(reader->caller);
    mem_free(reader->user);
    mem_free(reader->name);
    buf_release(&reader->ready);
    mem_free(reader);
}

/* Fetch what is new. Returns HTTP_STREAM_WAIT or HTTP_STREAM_END when there is nothing. */
static ssize_t story_fetch(struct story_reader *reader)
{
    struct service *service = reader->api->service;
    cleanup_arena struct arena arena;
    struct err err;
    struct store_job job;
    struct stories stories = {0};
    arena_init(&arena);
    bool is_final = store_job_summary(service->store, reader->job, &arena, &job, &err) != 0 ||
                    job.record.state == LIFE_COMPLETED;
    struct store_reader *rows = service->reader_get(service->context, &err);
    int code = rows ? 0 : ERR_BUSY;
    if (rows) {
        struct story_filter filter = {.job = reader->job,
                                      .after = reader->after,
                                      .is_warning = reader->is_warning,
                                      .limit = STORY_PAGE};
        code = store_stories(rows, &filter, false, &arena, &stories, &err);
        service->reader_put(service->context, rows);
    }
    buf_clear(&reader->ready);
    reader->sent = 0;
    for (size_t i = 0; !code && i < stories.count; i++) {
        struct json_writer json;
        json_init(&json, &reader->ready);
        view_story(&json, reader->user, reader->name, &stories.items[i]);
        buf_char(&reader->ready, '\n');
        reader->after = stories.items[i].sequence;
    }
    if (code || stories.count == STORY_PAGE)
        reader->seen_generation = UINT64_MAX; /* look again at once */
    bool is_end = !code && !stories.count && is_final;
    if (code && code != ERR_BUSY)
        return HTTP_STREAM_BROKEN;
    return is_end ? HTTP_STREAM_END : HTTP_STREAM_WAIT;
}

static ssize_t story_read(void *state, char *bytes, size_t size)
{
    struct story_reader *reader = state;
    if (reader->sent == reader->ready.length) {
        uint64_t generation = atomic_load(&reader->api->generation);
        if (generation == reader->seen_generation)
            return HTTP_STREAM_WAIT;
        reader->seen_generation = generation;
        ssize_t result = story_fetch(reader);
        if (!reader->ready.length)
            return result;
        /* the end of the job may be in what was just read: look once more after it */
        reader->seen_generation = UINT64_MAX;
    }
    size_t length = reader->ready.length - reader->sent;
    if (length > size)
        length = size;
    memcpy(bytes, reader->ready.at + reader->sent, length);
    reader->sent += length;
    return (ssize_t)length;
}

static void follow_reply(struct call *call, const struct store_job *job, int is_warning,
                         uint64_t after)
{
    struct story_reader *reader = mem_zero(1, sizeof *reader);
    reader->api = call->api;
    reader->caller = mem_copy(call->caller.auth.user);
    reader->job = job->record.id;
    reader->user = mem_copy(job->record.user);
    reader->name = mem_copy(job->record.name);
    reader->is_warning = is_warning;
    reader->after = after;
    reader->seen_generation = UINT64_MAX;
    struct http_reply *reply = &call->exchange->reply;
    reply->status = 200;
    reply->content_type = "application/x-ndjson";
    reply->stream = (struct http_stream){
        .read = story_read,
        .free = story_free,
        .state = reader,
        .fd = -1,
        .poll_ms = STORY_POLL_MS,
    };
}

static int type_parse(struct call *call, int *is_warning)
{
    struct text type = exchange_query(call->exchange, "type");
    *is_warning = -1;
    if (!type.at)
        return 0;
    if (text_is(type, "Warning"))
        *is_warning = 1;
    else if (text_is(type, "Normal"))
        *is_warning = 0;
    else
        return call_fail(call, ERR_INVALID, NULL, "type", "type must be Warning or Normal");
    return 0;
}

static int list_reply(struct call *call, const struct store_job *job, struct story_filter *filter)
{
    struct list_page page;
    struct stories stories = {0};
    int code =
        page_parse(call, &page, arena_format(call->arena, "events of %u", filter->job.v), &limits);
    if (!code && page.after.at && !page_number_parse(page.after, &filter->before))
        code = page_fail(&page);
    if (!code && !call_reader(call))
        code = call->err.code;
    filter->limit = page.limit + 1; /* is there another page? */
    if (!code)
        code = store_stories(call->reader, filter, true, call->arena, &stories, &call->err);
    if (code)
        return code;
    const size_t count = page_keep(&page, stories.count);
    if (count > 0 && count < stories.count)
        page.last = page_number(call, stories.items[count - 1].sequence);
    page.total = (int64_t)stories.total;
    struct json_writer json;
    call_json(call, 200, &json);
    page_begin(&page, &json);
    for (size_t i = 0; i < count; i++)
        view_story(&json, job->record.user, job->record.name, &stories.items[i]);
    page_end(&page, &json);
    return 0;
}

int handle_event_list(struct call *call)
{
    struct store_job job;
    int is_warning;
    int64_t after, offset;
    int code = call_job(call, call->parameters[0], &job);
    if (!code)
        code = type_parse(call, &is_warning);
    if (!code)
        code = call_number(call, "after", 0, INT64_MAX, 0, &after);
    if (!code)
        code = call_number(call, "offset", 0, INT64_MAX, 0, &offset);
    if (code)
        return code;
    if (call_flag(call, "follow")) {
        code = call_story_add(call);
        if (code)
            return code;
        follow_reply(call, &job, is_warning, (uint64_t)after);
        return 0;
    }
    return list_reply(call, &job,
                      &(struct story_filter){.job = job.record.id,
                                             .after = (uint64_t)after,
                                             .is_newest_first = true,
                                             .is_warning = is_warning,
                                             .offset = (uint64_t)offset});
}
