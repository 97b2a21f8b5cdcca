/* One stream of everything that changes: jobs and nodes, each in its latest state. */
#include "api/handlers.h"
#include "api/http_watch.h"
#include "api/view.h"
#include "base/memory.h"
#include "sys/clock.h"
#include <time.h>

enum { CHANGES_RETRY_MS = 100 }; /* when what has changed could not be read */

struct changes_reader {
    struct api *api;
    struct http_stream *stream; /* of the reply */
    char *caller;
    uint64_t after, seen_generation;
    char *user, *cluster; /* only jobs of these; NULL: all */
    bool wants_nodes;
    bool is_sse;      /* Server-Sent Events, else one JSON object a line */
    int64_t told_ms;  /* when something was sent last */
    struct buf ready; /* not yet sent */
    size_t sent;
};

static void changes_free(void *state)
{
    struct changes_reader *reader = state;
    call_changes_remove(reader->api, reader->caller);
    mem_free(reader->caller);
    mem_free(reader->user);
    mem_free(reader->cluster);
    buf_release(&reader->ready);
    mem_free(reader);
}

/* One object: its number and type; line_end after what else it holds. */
static void line_begin(struct changes_reader *reader, struct json_writer *json, uint64_t number,
                       const char *type)
{
    if (reader->is_sse)
        buf_format(&reader->ready, "id: %llu\nevent: %s\ndata: ", (unsigned long long)number, type);
    json_init(json, &reader->ready);
    json_object(json);
    json_key_string(json, "type", type);
    json_key_int(json, "number", (int64_t)number);
}

static void line_end(struct changes_reader *reader, struct json_writer *json)
{
    json_object_end(json);
    buf_string(&reader->ready, reader->is_sse ? "\n\n" : "\n");
}

static void mark(struct changes_reader *reader, const char *type)
{
    struct json_writer json;
    line_begin(reader, &json, reader->after, type);
    line_end(reader, &json);
}

static bool is_wanted(const struct changes_reader *reader, const struct job_record *job)
{
    return (!reader->user || strcmp(reader->user, job->user) == 0) &&
           (!reader->cluster || strcmp(reader->cluster, job->virtual_cluster) == 0);
}

static void job_line(struct changes_reader *reader, const struct store_news_item *item,
                     struct arena *arena)
{
    struct store_job job;
    struct json_writer json;
    if (store_job_summary(reader->api->service->store, (struct job_id){item->id}, arena, &job,
                          NULL) ||
        !is_wanted(reader, &job.record))
        return; /* removed since: that is told next */
    line_begin(reader, &json, item->number, "job");
    json_key_string(&json, "id", arena_format(arena, "%s~%s", job.record.user, job.record.name));
    json_key(&json, "job");
    view_job_summary(&json, &job, false);
    line_end(reader, &json);
}

static void removed_line(struct changes_reader *reader, const struct store_news_item *item)
{
    struct json_writer json;
    struct text user = text_of(item->name);
    user = text_cut(&user, '~');
    if (reader->user && !text_is(user, reader->user))
        return;
    line_begin(reader, &json, item->number, "jobRemoved");
    json_key_string(&json, "id", item->name);
    line_end(reader, &json);
}

/* The nodes that there are, and what is known of their GPUs. */
struct node_rows {
    struct store_nodes nodes;
    const struct engine_gpu *gpus;
    size_t gpu_count;
};

static void node_line(struct changes_reader *reader, const struct store_news_item *item,
                      const struct node_rows *rows)
{
    const struct store_nodes *nodes = &rows->nodes;
    struct json_writer json;
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->items[i].id.v != item->id)
            continue;
        line_begin(reader, &json, item->number, "node");
        json_key(&json, "node");
        view_node(&json, &nodes->items[i], (int64_t)time(NULL) * 1000, rows->gpus, rows->gpu_count,
                  NULL);
        line_end(reader, &json);
        return;
    }
}

static bool has_nodes(const struct changes_reader *reader, const struct store_news *news)
{
    for (size_t i = 0; i < news->count && reader->wants_nodes; i++)
        if (news->items[i].kind == STORE_NEWS_NODE)
            return true;
    return false;
}

/* 0, or ERR_*: then nothing has been taken. */
static int nodes_fetch(struct changes_reader *reader, struct arena *arena, struct node_rows *rows)
{
    struct service *service = reader->api->service;
    struct err err;
    struct store_reader *database = service->reader_get(service->context, &err);
    if (!database)
        return ERR_BUSY;
    int code = store_nodes(database, arena, &rows->nodes, &err);
    service->reader_put(service->context, database);
    if (code == 0)
        service->gpus(service->context, arena, &rows->gpus, &rows->gpu_count);
    return code;
}

static void changes_fetch(struct changes_reader *reader)
{
    cleanup_arena struct arena arena;
    struct store_news news;
    struct node_rows rows = {0};
    arena_init(&arena);
    store_news(reader->api->service->store, reader->after, &arena, &news);
    if (has_nodes(reader, &news) && nodes_fetch(reader, &arena, &rows))
        return; /* every reader is out: at the next round */
    for (size_t i = 0; i < news.count; i++) {
        const struct store_news_item *item = &news.items[i];
        switch (item->kind) {
        case STORE_NEWS_JOB:
            job_line(reader, item, &arena);
            break;
        case STORE_NEWS_JOB_REMOVED:
            removed_line(reader, item);
            break;
        case STORE_NEWS_NODE:
            if (reader->wants_nodes)
                node_line(reader, item, &rows);
            break;
        }
    }
    reader->after = news.number;
    if (news.is_lost)
        mark(reader, "reset");
}

static void changes_refill(struct changes_reader *reader)
{
    const uint64_t generation = atomic_load(&reader->api->generation);
    const uint32_t configured_ms = reader->api->config.changes_alive_ms;
    const int64_t alive_ms = configured_ms ? configured_ms : API_CHANGES_ALIVE_MS;
    const int64_t now_ms = clock_monotonic_ms();
    buf_clear(&reader->ready);
    reader->sent = 0;
    if (generation != reader->seen_generation) {
        changes_fetch(reader);
        /* more than one read takes, or none was possible: at once again */
        if (reader->after == store_news_number(reader->api->service->store))
            reader->seen_generation = generation;
    }
    if (!reader->ready.length && now_ms - reader->told_ms >= alive_ms)
        mark(reader, "alive");
    if (reader->ready.length)
        reader->told_ms = now_ms;
    /* news ends the wait before */
    const bool is_all = reader->seen_generation == generation;
    reader->stream->poll_ms =
        is_all ? (uint32_t)(reader->told_ms + alive_ms - now_ms) : CHANGES_RETRY_MS;
}

static ssize_t changes_read(void *state, char *bytes, size_t size)
{
    struct changes_reader *reader = state;
    if (reader->sent == reader->ready.length)
        changes_refill(reader);
    size_t length = reader->ready.length - reader->sent;
    if (length > size)
        length = size;
    if (!length)
        return HTTP_STREAM_WAIT;
    memcpy(bytes, reader->ready.at + reader->sent, length);
    reader->sent += length;
    return (ssize_t)length;
}

static char *query_copy(const struct call *call, const char *name)
{
    struct text text = exchange_query(call->exchange, name);
    return text.length ? mem_copy(arena_copy(call->arena, text)) : NULL;
}

/* `since` of the query, or where an EventSource was; without either: from now on. */
static int begin_of(struct call *call, int64_t *since)
{
    struct text last = call->exchange->last_event_id;
    int code = call_number(call, "since", 0, INT64_MAX, -1, since);
    if (!code && *since < 0 && last.at && !text_to_int64(last, since))
        code = call_fail(call, ERR_INVALID, NULL, "Last-Event-ID", "must be a number");
    return code;
}

int handle_changes(struct call *call)
{
    int64_t since;
    int code = begin_of(call, &since);
    if (!code)
        code = call_changes_add(call);
    if (code)
        return code;
    struct changes_reader *reader = mem_zero(1, sizeof *reader);
    reader->api = call->api;
    reader->caller = mem_copy(call->caller.auth.user);
    reader->user = query_copy(call, "username");
    reader->cluster = query_copy(call, "vc");
    reader->wants_nodes = !reader->user && !reader->cluster;
    reader->is_sse = text_starts(call->exchange->accept, TEXT("text/event-stream"));
    reader->seen_generation = UINT64_MAX;
    reader->told_ms = clock_monotonic_ms();
    reader->after = since >= 0 ? (uint64_t)since : store_news_number(call->api->service->store);
    mark(reader, "start");
    struct http_reply *reply = &call->exchange->reply;
    reader->stream = &reply->stream;
    exchange_header(call->exchange, "Cache-Control", "no-store");
    reply->status = 200;
    reply->content_type = reader->is_sse ? "text/event-stream" : "application/x-ndjson";
    reply->stream = (struct http_stream){
        .read = changes_read,
        .free = changes_free,
        .state = reader,
        .fd = -1,
        .wants_news = true,
    };
    return 0;
}
