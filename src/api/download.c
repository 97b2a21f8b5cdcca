/* a file of a storage as a stream, read ahead by the thread of its storage */
#include "api/file_task.h"
#include "api/handlers.h"
#include "api/link.h"
#include "api/range.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 256 << 10, AGAIN_MS = 200, FILE_LINK_LIFE_S = 600 };

/* The stream's and, while it reads, its thread's; the last one frees it. */
struct download {
    struct worker_task task; /* first */
    struct file_threads *threads;
    struct storage_thread *thread; /* held */
    char *user;
    int fd, event_fd;
    pthread_mutex_t lock; /* guards what follows */
    uint64_t at, end;
    char *block;
    size_t length, taken; /* of the block: what is there, and what of it has gone out */
    bool is_reading, is_broken, is_closed;
};

static void download_free(struct download *download)
{
    file_count_remove(download->threads, FILE_COUNT_DOWNLOADS, download->user);
    storage_thread_put(file_storage_threads(download->threads), download->thread);
    close(download->fd);
    close(download->event_fd);
    pthread_mutex_destroy(&download->lock);
    mem_free(download->user);
    mem_free(download->block);
    mem_free(download);
}

static void block_read(struct worker_task *task, void *context)
{
    struct download *download = (struct download *)task;
    (void)context;
    const uint64_t left = download->end - download->at;
    const size_t wanted = left < BLOCK ? (size_t)left : BLOCK;
    ssize_t length;
    do
        length = pread(download->fd, download->block, wanted, (off_t)download->at);
    while (length < 0 && errno == EINTR);
    pthread_mutex_lock(&download->lock);
    download->is_broken = length <= 0; /* nothing: it is shorter now than it was */
    download->length = length > 0 ? (size_t)length : 0;
    download->taken = 0;
    download->at += download->length;
    pthread_mutex_unlock(&download->lock);
}

static void block_done(struct worker_task *task, bool is_run)
{
    struct download *download = (struct download *)task;
    const uint64_t one = 1;
    pthread_mutex_lock(&download->lock);
    download->is_reading = false;
    download->is_broken |= !is_run;
    const bool is_closed = download->is_closed;
    if (!is_closed) {
        ssize_t written = write(download->event_fd, &one, sizeof one);
        assert(written == sizeof one);
        (void)written;
    }
    pthread_mutex_unlock(&download->lock);
    if (is_closed)
        download_free(download);
}

/* With the lock. A storage whose thread is busy is asked again. */
static ssize_t block_ask(struct download *download)
{
    uint64_t count;
    struct err err;
    ssize_t got = read(download->event_fd, &count, sizeof count);
    (void)got; /* nothing to read is fine */
    download->task =
        (struct worker_task){.run = block_read, .done = block_done, .owner = download->user};
    download->is_reading = true;
    int code = storage_thread_give(download->thread, &download->task, &err);
    if (code)
        download->is_reading = false;
    return code && code != ERR_BUSY ? HTTP_STREAM_BROKEN : HTTP_STREAM_WAIT;
}

static ssize_t download_read(void *state, char *bytes, size_t size)
{
    struct download *download = state;
    ssize_t result = HTTP_STREAM_WAIT;
    pthread_mutex_lock(&download->lock);
    const size_t left = download->length - download->taken;
    if (download->is_reading)
        result = HTTP_STREAM_WAIT;
    else if (left) {
        const size_t part = left < size ? left : size;
        memcpy(bytes, download->block + download->taken, part);
        download->taken += part;
        result = (ssize_t)part;
    } else if (download->is_broken)
        result = HTTP_STREAM_BROKEN;
    else if (download->at == download->end)
        result = HTTP_STREAM_END;
    else
        result = block_ask(download);
    pthread_mutex_unlock(&download->lock);
    return result;
}

static void download_close(void *state)
{
    struct download *download = state;
    pthread_mutex_lock(&download->lock);
    const bool is_reading = download->is_reading;
    download->is_closed = true;
    pthread_mutex_unlock(&download->lock);
    if (!is_reading)
        download_free(download);
}

/* ---- the request ---- */

static int open_work(struct file_task *task, const struct files_root *root)
{
    struct stat stat;
    task->fd = files_open(root, &task->path, &stat, &task->err);
    task->size = task->fd < 0 ? 0 : (uint64_t)stat.st_size;
    return task->fd < 0 ? task->fd : 0;
}

static void open_end(struct file_task *task)
{
    if (task->fd >= 0)
        close(task->fd);
}

/* The name as browsers take it (RFC 6266, RFC 8187): nothing of it is read as anything else. */
static const char *disposition_of(struct call *call, const char *name)
{
    cleanup_buf struct buf out = BUF_INIT;
    buf_string(&out, "attachment; filename*=UTF-8''");
    for (const char *at = name; *at; at++) {
        const bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                              (*at >= '0' && *at <= '9') || strchr("-._~", *at);
        if (is_plain)
            buf_char(&out, *at);
        else
            buf_format(&out, "%%%02X", (unsigned char)*at);
    }
    return arena_copy(call->arena, buf_as_text(&out));
}

static int range_refuse(struct call *call, uint64_t size)
{
    struct json_writer json;
    exchange_header(call->exchange, "Content-Range",
                    arena_format(call->arena, "bytes */%llu", (unsigned long long)size));
    call_json(call, 416, &json);
    json_object(&json);
    json_key_string(&json, "code", "RangeError");
    json_key_string(&json, "message",
                    arena_format(call->arena, "the file has %llu bytes", (unsigned long long)size));
    json_object_end(&json);
    return 0;
}

static struct download *download_new(struct call *call, struct file_task *task,
                                     const struct byte_range *part, int event_fd)
{
    struct download *download = mem_zero(1, sizeof *download);
    download->threads = call->api->files;
    download->thread = task->thread;
    storage_thread_again(file_storage_threads(call->api->files), task->thread);
    download->user = mem_copy(call->caller.auth.user);
    download->fd = fd_steal(&task->fd);
    download->event_fd = event_fd;
    download->at = part->begin;
    download->end = part->end;
    download->block = mem_alloc(BLOCK);
    pthread_mutex_init(&download->lock, NULL);
    return download;
}

static int open_reply(struct call *call, struct file_task *task)
{
    struct http_reply *reply = &call->exchange->reply;
    const struct byte_range whole = {0, task->size};
    struct byte_range part = whole;
    /* what would be compared with If-Range, a file that tasks write to does not have */
    const enum range_kind kind = call->exchange->if_range.at
                                     ? RANGE_NONE
                                     : range_parse(call->exchange->range, &whole, &part);
    if (kind == RANGE_OUTSIDE)
        return range_refuse(call, task->size);
    if (kind == RANGE_NONE)
        part = whole;
    int code =
        file_count_add(call->api->files, FILE_COUNT_DOWNLOADS, call->caller.auth.user, &call->err);
    if (code)
        return code;
    int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd < 0) {
        code = err_errno(&call->err, errno, "read a file");
        file_count_remove(call->api->files, FILE_COUNT_DOWNLOADS, call->caller.auth.user);
        return code;
    }
    exchange_header(call->exchange, "Accept-Ranges", "bytes");
    exchange_header(call->exchange, "Content-Disposition",
                    disposition_of(call, files_path_name(&task->path, task->path.count - 1)));
    /* should a browser show it after all, it shows it as a page of nobody's that runs nothing */
    exchange_header(call->exchange, "Content-Security-Policy", "default-src 'none'; sandbox");
    exchange_header(call->exchange, "X-Skep-Length",
                    arena_format(call->arena, "%llu", (unsigned long long)(part.end - part.begin)));
    if (kind == RANGE_BYTES)
        exchange_header(
            call->exchange, "Content-Range",
            arena_format(call->arena, "bytes %llu-%llu/%llu", (unsigned long long)part.begin,
                         (unsigned long long)part.end - 1, (unsigned long long)task->size));
    reply->status = kind == RANGE_BYTES ? 206 : 200;
    reply->content_type = "application/octet-stream";
    reply->stream = (struct http_stream){
        .read = download_read,
        .free = download_close,
        .state = download_new(call, task, &part, event_fd),
        .fd = event_fd,
        .poll_ms = AGAIN_MS,
    };
    return 0;
}

static int file_read(struct call *call, struct text path)
{
    struct file_task *task;
    int code = file_task_new(call, &task);
    if (!code)
        code = file_task_path(task, path);
    if (code)
        return code;
    task->work = open_work;
    task->reply = open_reply;
    task->end = open_end;
    return file_task_give(task);
}

/* GET /storages/:storage/file?path= */
int handle_file_read(struct call *call)
{
    struct text path = exchange_query(call->exchange, "path");
    return file_read(call, path.at ? path : TEXT(""));
}

/* POST /storages/:storage/links {path}: an address for a browser. A link is good for one path of
 * the API and any query, so the file stands in the path, as hexadecimal digits. */
int handle_file_link(struct call *call)
{
    static const char *const keys[] = {"path"};
    const struct doc *body;
    struct text path;
    struct file_task *task;
    struct json_writer json;
    call->is_trial = true; /* nothing is changed: no audit record */
    int code = file_task_new(call, &task);
    if (!code)
        code = call_body_of(call, keys, COUNT_OF(keys), "a file", &body);
    if (!code)
        code = call_body_string(call, body, "path", true, &path);
    if (!code)
        code = file_task_path(task, path);
    if (code)
        return code;
    char *hex = arena_alloc(call->arena, 2 * path.length + 1);
    sodium_bin2hex(hex, 2 * path.length + 1, (const unsigned char *)path.at, path.length);
    const char *target =
        arena_format(call->arena, "/api/v2/storages/%s/links/%s", task->storage->name, hex);
    call_json(call, 200, &json);
    json_object(&json);
    json_key_string(&json, "uri", link_make_for(call, target, "", FILE_LINK_LIFE_S));
    json_object_end(&json);
    return 0;
}

/* GET /storages/:storage/links/:file */
int handle_file_linked(struct call *call)
{
    const struct text hex = call->parameters[1];
    char *path = arena_alloc(call->arena, hex.length / 2 + 1);
    size_t length = 0;
    if (hex.length % 2 || sodium_hex2bin((unsigned char *)path, hex.length / 2 + 1, hex.at,
                                         hex.length, NULL, &length, NULL) < 0)
        return call_fail(call, ERR_NOT_FOUND, NULL, "", "this is no link to a file");
    return file_read(call, (struct text){path, length});
}
