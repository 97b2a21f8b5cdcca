/* uploads: begun, filled part by part, placed */
#include "api/audit.h"
#include "api/file_task.h"
#include "api/handlers.h"
#include "base/memory.h"
#include "sys/clock.h"
#include "sys/watcher.h"
#include <assert.h>
#include <sodium.h>

enum { ID_BYTES = 16, ID_SIZE = 2 * ID_BYTES + 1, SWEEP_MS_MAX = 30000 };

struct upload {
    char id[ID_SIZE];
    char *user;
    char *storage, *directory; /* of another one of its name nothing is known */
    char *path;
    struct files_upload file; /* who has made it busy alone may touch it */
    int64_t used_ms;
    bool is_busy, is_ended;
    struct upload *next;
};

struct uploads {
    struct file_threads *threads;
    struct watcher watcher; /* gives up what is idle; its lock guards the list, too */
    struct upload *first;
};

/* Not in the list any more. */
static void upload_free(struct uploads *uploads, struct upload *upload)
{
    files_upload_release(&upload->file);
    file_count_remove(uploads->threads, FILE_COUNT_UPLOADS, upload->user);
    mem_free(upload->user);
    mem_free(upload->storage);
    mem_free(upload->directory);
    mem_free(upload->path);
    mem_free(upload);
}

/* With the lock. */
static void list_remove(struct uploads *uploads, struct upload *upload)
{
    struct upload **at = &uploads->first;
    while (*at != upload)
        at = &(*at)->next;
    *at = upload->next;
}

static int64_t idle_ms(const struct uploads *uploads)
{
    const uint32_t wanted = file_config(uploads->threads)->idle_ms;
    return wanted ? wanted : API_UPLOAD_IDLE_MS;
}

/* With the lock: takes those out that nobody has gone on with. */
static struct upload *idle_take(struct uploads *uploads)
{
    const int64_t before_ms = clock_monotonic_ms() - idle_ms(uploads);
    struct upload *taken = NULL;
    for (struct upload **at = &uploads->first; *at;) {
        struct upload *upload = *at;
        if (upload->is_busy || upload->used_ms > before_ms) {
            at = &upload->next;
            continue;
        }
        *at = upload->next;
        upload->next = taken;
        taken = upload;
    }
    return taken;
}

static void *sweep_run(void *context)
{
    struct uploads *uploads = context;
    struct watcher *watcher = &uploads->watcher;
    const int64_t pause_ms = idle_ms(uploads) < SWEEP_MS_MAX ? idle_ms(uploads) : SWEEP_MS_MAX;
    pthread_mutex_lock(&watcher->lock);
    while (!watcher->is_ending) {
        watcher_await(watcher, clock_monotonic_ms() + pause_ms);
        struct upload *idle = idle_take(uploads);
        pthread_mutex_unlock(&watcher->lock);
        while (idle) {
            struct upload *upload = idle;
            idle = upload->next;
            upload_free(uploads, upload);
        }
        pthread_mutex_lock(&watcher->lock);
    }
    pthread_mutex_unlock(&watcher->lock);
    return NULL;
}

int uploads_start(struct file_threads *threads, struct uploads **out, struct err *err)
{
    struct uploads *uploads = mem_zero(1, sizeof *uploads);
    uploads->threads = threads;
    watcher_init(&uploads->watcher);
    *out = uploads; /* its free is the caller's also after an error */
    return watcher_start(&uploads->watcher, sweep_run, uploads, "the thread that ends idle uploads",
                         err);
}

void uploads_free(struct uploads *uploads)
{
    if (!uploads)
        return;
    watcher_stop(&uploads->watcher);
    while (uploads->first) {
        struct upload *upload = uploads->first;
        uploads->first = upload->next;
        upload_free(uploads, upload);
    }
    watcher_release(&uploads->watcher);
    mem_free(uploads);
}

/* ---- one of them, for one request ---- */

static struct upload *upload_new(struct call *call, const struct storage *storage, struct text path)
{
    struct uploads *uploads = file_uploads(call->api->files);
    unsigned char id[ID_BYTES];
    if (file_count_add(call->api->files, FILE_COUNT_UPLOADS, call->caller.auth.user, &call->err))
        return NULL;
    struct upload *upload = mem_zero(1, sizeof *upload);
    randombytes_buf(id, sizeof id);
    sodium_bin2hex(upload->id, sizeof upload->id, id, sizeof id);
    upload->user = mem_copy(call->caller.auth.user);
    upload->storage = mem_copy(storage->name);
    upload->directory = mem_copy(storage->directory);
    upload->path = mem_copy(arena_copy(call->arena, path));
    upload->file.fd = upload->file.folder = -1;
    upload->is_busy = true;
    pthread_mutex_lock(&uploads->watcher.lock);
    upload->next = uploads->first;
    uploads->first = upload;
    pthread_mutex_unlock(&uploads->watcher.lock);
    return upload;
}

/* Under the lock. The caller's own alone: another one's is not there. */
static struct upload *upload_find(const struct uploads *uploads, const struct file_task *task)
{
    const struct call *call = task->call;
    for (struct upload *at = uploads->first; at; at = at->next)
        if (text_is(call->parameters[1], at->id) && strcmp(at->storage, task->storage->name) == 0 &&
            strcmp(at->directory, task->storage->directory) == 0 && !at->is_ended &&
            strcmp(at->user, call->caller.auth.user) == 0)
            return at;
    return NULL;
}

static int upload_take(struct file_task *task)
{
    struct call *call = task->call;
    struct uploads *uploads = file_uploads(call->api->files);
    pthread_mutex_lock(&uploads->watcher.lock);
    struct upload *found = upload_find(uploads, task);
    const bool was_busy = found && found->is_busy;
    if (found)
        found->is_busy = true;
    pthread_mutex_unlock(&uploads->watcher.lock);
    if (!found)
        return call_fail(call, ERR_NOT_FOUND, "NoUploadError", "",
                         "there is no such upload: it has ended, or was given up because no part "
                         "came for %lld minutes; begin it again",
                         (long long)(idle_ms(uploads) / 60000));
    if (was_busy)
        return call_fail(call, ERR_CONFLICT, NULL, "",
                         "another request for this upload is under way");
    task->upload = found;
    return 0;
}

/* A request for an upload that is there, and that no other one is busy with. */
static int upload_task_new(struct call *call, struct file_task **task)
{
    int code = file_task_new(call, task);
    return code ? code : upload_take(*task);
}

static void upload_put(struct uploads *uploads, struct upload *upload, bool is_ended)
{
    pthread_mutex_lock(&uploads->watcher.lock);
    assert(upload->is_busy);
    upload->is_busy = false;
    upload->used_ms = clock_monotonic_ms();
    is_ended |= upload->is_ended;
    if (is_ended)
        list_remove(uploads, upload);
    pthread_mutex_unlock(&uploads->watcher.lock);
    if (is_ended)
        upload_free(uploads, upload);
}

static void task_put(struct file_task *task)
{
    upload_put(file_uploads(task->call->api->files), task->upload, false);
}

static void upload_json(struct call *call, int status, const struct upload *upload)
{
    struct json_writer json;
    call_json(call, status, &json);
    json_object(&json);
    json_key_string(&json, "id", upload->id);
    json_key_string(&json, "path", upload->path);
    json_key_int(&json, "size", (int64_t)upload->file.size);
    json_key_int(&json, "received", (int64_t)upload->file.received);
    json_key_int(&json, "partBytes", HTTP_BODY_MAX);
    json_object_end(&json);
}

/* ---- begin ---- */

static int begin_work(struct file_task *task, const struct files_root *root)
{
    return files_upload_begin(root, &task->path, task->size, task->is_replacing,
                              file_config(task->call->api->files)->reserve, &task->upload->file,
                              &task->err);
}

static int begin_reply(struct call *call, struct file_task *task)
{
    upload_json(call, 201, task->upload);
    return 0;
}

static void begin_end(struct file_task *task)
{
    upload_put(file_uploads(task->call->api->files), task->upload, task->upload->file.fd < 0);
}

static int size_read(struct file_task *task, const struct doc *body)
{
    struct call *call = task->call;
    const struct doc *size = doc_get(body, "size");
    const uint64_t most = file_config(call->api->files)->upload_max;
    if (!size || size->kind != DOC_INT || size->as.integer < 0)
        return call_fail(call, ERR_INVALID, NULL, "size",
                         "size must be the file's bytes, 0 or more");
    task->size = (uint64_t)size->as.integer;
    if (task->size > most)
        return call_fail(call, ERR_TOO_BIG, NULL, "size",
                         "the file has more than %llu MiB, the most that may be uploaded "
                         "(api.uploadMaxMB): use a job, or ask the operator",
                         (unsigned long long)(most >> 20));
    return 0;
}

static int replacing_read(struct file_task *task, const struct doc *body)
{
    const struct doc *replace = doc_get(body, "replace");
    if (replace && replace->kind != DOC_BOOL)
        return call_fail(task->call, ERR_INVALID, NULL, "replace", "replace must be true or false");
    task->is_replacing = replace && replace->as.boolean;
    return 0;
}

/* POST /storages/:storage/uploads {path, size, replace} */
int handle_upload_begin(struct call *call)
{
    static const char *const keys[] = {"path", "size", "replace"};
    const struct doc *body;
    struct text path;
    struct file_task *task;
    int code = file_task_new(call, &task);
    if (!code)
        code = call_body_of(call, keys, COUNT_OF(keys), "an upload", &body);
    if (!code)
        code = call_body_string(call, body, "path", true, &path);
    if (!code)
        code = file_task_path(task, path);
    if (!code)
        code = size_read(task, body);
    if (!code)
        code = replacing_read(task, body);
    if (code)
        return code;
    task->upload = upload_new(call, task->storage, path);
    if (!task->upload)
        return call->err.code;
    task->work = begin_work;
    task->reply = begin_reply;
    task->end = begin_end;
    return file_task_give(task);
}

/* ---- parts ---- */

static int part_work(struct file_task *task, const struct files_root *root)
{
    (void)root; /* the right to it has been checked again */
    return files_upload_add(&task->upload->file, buf_as_text(&task->call->exchange->body),
                            file_config(task->call->api->files)->reserve, &task->err);
}

static int part_reply(struct call *call, struct file_task *task)
{
    upload_json(call, 200, task->upload);
    return 0;
}

static int part_check(struct call *call, const struct upload *upload)
{
    const struct files_upload *file = &upload->file;
    const size_t length = call->exchange->body.length;
    int64_t offset;
    int code = call_number(call, "offset", 0, INT64_MAX, -1, &offset);
    if (code)
        return code;
    if (offset != (int64_t)file->received)
        return call_fail(call, ERR_CONFLICT, NULL, "offset",
                         "the upload has %llu bytes: the next part begins there",
                         (unsigned long long)file->received);
    if (!length || length > file->size - file->received)
        return call_fail(call, ERR_INVALID, NULL, "",
                         "the part has %zu bytes, and %llu of the file are missing", length,
                         (unsigned long long)(file->size - file->received));
    return 0;
}

/* PUT /storages/:storage/uploads/:upload?offset= */
int handle_upload_part(struct call *call)
{
    struct file_task *task;
    int code = upload_task_new(call, &task);
    if (code)
        return code;
    code = part_check(call, task->upload);
    if (code) {
        task_put(task);
        return code;
    }
    task->work = part_work;
    task->reply = part_reply;
    task->end = task_put;
    return file_task_give(task);
}

/* GET: how far it is */
int handle_upload(struct call *call)
{
    struct file_task *task;
    int code = upload_task_new(call, &task);
    if (code)
        return code;
    upload_json(call, 200, task->upload);
    task_put(task);
    return 0;
}

/* ---- the end ---- */

static int place_work(struct file_task *task, const struct files_root *root)
{
    return files_upload_place(root, &task->upload->file, &task->err);
}

static int place_reply(struct call *call, struct file_task *task)
{
    struct json_writer json;
    call_json(call, 201, &json);
    json_object(&json);
    json_key_string(&json, "path", task->upload->path);
    json_key_int(&json, "size", (int64_t)task->upload->file.size);
    json_object_end(&json);
    return 0;
}

/* Placed, or not to be placed: another try begins anew. */
static void place_end(struct file_task *task)
{
    const bool is_over = task->is_run && task->code != ERR_BUSY && task->code != ERR_UNAVAILABLE;
    upload_put(file_uploads(task->call->api->files), task->upload, is_over);
}

/* POST /storages/:storage/uploads/:upload: all parts are there */
int handle_upload_place(struct call *call)
{
    struct file_task *task;
    int code = upload_task_new(call, &task);
    if (code)
        return code;
    const struct files_upload *file = &task->upload->file;
    audit_word(call, true, "path", arena_copy(call->arena, text_of(task->upload->path)));
    if (file->received < file->size) {
        code = call_fail(call, ERR_CONFLICT, NULL, "", "%llu bytes of the file are missing",
                         (unsigned long long)(file->size - file->received));
        task_put(task);
        return code;
    }
    task->work = place_work;
    task->reply = place_reply;
    task->end = place_end;
    return file_task_give(task);
}

/* DELETE: what has come is thrown away, at once or with the end of the request under way */
int handle_upload_end(struct call *call)
{
    struct file_task *task;
    int code = file_task_new(call, &task);
    if (code)
        return code;
    struct uploads *uploads = file_uploads(call->api->files);
    pthread_mutex_lock(&uploads->watcher.lock);
    struct upload *found = upload_find(uploads, task);
    const bool was_busy = found && found->is_busy;
    if (found) {
        found->is_ended = true;
        found->is_busy = true;
        audit_word(call, false, "path", arena_copy(call->arena, text_of(found->path)));
    }
    pthread_mutex_unlock(&uploads->watcher.lock);
    if (found && !was_busy)
        upload_put(uploads, found, true);
    if (!found)
        return call_fail(call, ERR_NOT_FOUND, "NoUploadError", "", "there is no such upload");
    call_message(call, 200, "The upload is ended.");
    return 0;
}
