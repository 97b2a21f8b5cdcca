/* storages as administrators see them: what is offered, how it is, and who runs with it */
#include "api/file_task.h"
#include "api/handlers.h"
#include "base/memory.h"
#include "spec/spec.h"
#include <string.h>

/* Their job files are read, which takes some microseconds each. */
enum { JOBS_READ_MAX = 500 };

struct job_uses {
    uint32_t *counts; /* by storage */
    uint64_t read,
        others; /* jobs that run: those that were looked at, and those beyond the limit */
};

static void job_count(const struct spec *spec, struct storage_list storages, uint32_t *counts)
{
    for (size_t i = 0; i < storages.count; i++)
        for (size_t j = 0; j < spec->storage_count; j++)
            if (strcmp(spec->storages[j].name, storages.items[i].name) == 0) {
                counts[i]++;
                break; /* it may be mounted twice */
            }
}

/* A job that has gone meanwhile uses nothing. */
static int job_read(struct call *call, struct job_id job, struct storage_list storages,
                    uint32_t *counts)
{
    cleanup_arena struct arena arena;
    struct store_source source;
    arena_init(&arena);
    int code = store_job_source(call->reader, job, &arena, &source, &call->err);
    if (code)
        return code == ERR_NOT_FOUND ? 0 : code;
    cleanup_spec struct spec *spec = spec_decode(source.spec_bytes, &call->err);
    if (!spec)
        return call->err.code;
    job_count(spec, storages, counts);
    return 0;
}

static int uses_read(struct call *call, struct storage_list storages, struct job_uses *uses)
{
    const struct job_filter filter = {.states = 1u << PUBLIC_RUNNING | 1u << PUBLIC_STOPPING,
                                      .order = ORDER_SUBMITTED,
                                      .is_descending = true,
                                      .limit = JOBS_READ_MAX};
    struct job_page page;
    *uses = (struct job_uses){.counts = ARENA_ARRAY(call->arena, uint32_t, storages.count)};
    if (!storages.count)
        return 0;
    if (!call_reader(call))
        return call->err.code;
    store_job_list(call->api->service->store, &filter, call->arena, &page);
    int code = 0;
    for (size_t i = 0; !code && i < page.count; i++)
        code = job_read(call, page.items[i].record.id, storages, uses->counts);
    uses->read = page.count;
    uses->others = page.total - page.count;
    return code;
}

static void health_json(struct json_writer *json, const struct storage *storage,
                        const struct storage_health *health)
{
    static const char *const NAMES[] = {
        [STORAGE_UNSEEN] = "unseen",         [STORAGE_WELL] = "well",
        [STORAGE_UNWRITABLE] = "unwritable", [STORAGE_ABSENT] = "absent",
        [STORAGE_SILENT] = "silent",         [STORAGE_ELSEWHERE] = "elsewhere",
    };
    json_key(json, "health");
    json_object(json);
    json_key_string(json, "state", NAMES[health->state]);
    cleanup_buf struct buf text = BUF_INIT;
    if (health->state == STORAGE_SILENT)
        buf_format(&text, "the disk behind it has not answered for %lld s",
                   (long long)(health->silent_ms / 1000));
    else if (health->state == STORAGE_ELSEWHERE && storage->directory[0])
        buf_string(&text, "the server could not start the thread that reads it; its log says why");
    else if (health->number)
        buf_format(&text, "%s %s: %s", storage->directory,
                   health->state == STORAGE_ABSENT ? "cannot be opened" : "cannot be written to",
                   strerrordesc_np(health->number));
    json_key_text(json, "message", buf_as_text(&text));
    if (health->looked_ms)
        json_key_int(json, "lookedTime", health->looked_ms);
    if (health->total_bytes) {
        json_key_int(json, "totalBytes", (int64_t)health->total_bytes);
        json_key_int(json, "freeBytes", (int64_t)health->free_bytes);
    }
    json_object_end(json);
}

static void storage_json(struct json_writer *json, const struct storage *storage,
                         const struct storage_health *health, uint32_t jobs)
{
    json_object(json);
    json_key_string(json, "name", storage->name);
    json_key_string(json, "type", storage->type);
    json_key_string(json, "directory", storage->directory);
    json_key_string(json, "claim", storage->claim);
    json_key_string(json, "server", storage->server);
    json_key_string(json, "path", storage->path);
    json_key_bool(json, "share", storage->is_shared);
    json_key_bool(json, "readOnly", storage->is_read_only);
    json_key_bool(json, "rootSquash", storage->is_root_squashed);
    json_key_int(json, "jobs", jobs);
    health_json(json, storage, health);
    json_object_end(json);
}

/* GET /api/v2/storage/health */
int handle_storage_health(struct call *call)
{
    const struct service *service = call->api->service;
    const struct storage_list storages = service->storages(service->context, call->arena);
    struct storage_threads *threads = file_storage_threads(call->api->files);
    struct job_uses uses;
    int code = uses_read(call, storages, &uses);
    if (code)
        return code;
    struct json_writer json;
    call_json(call, 200, &json);
    json_object(&json);
    json_key(&json, "storages");
    json_array(&json);
    for (size_t i = 0; i < storages.count; i++) {
        struct storage_health health;
        storage_health(threads, &storages.items[i], &health);
        storage_json(&json, &storages.items[i], &health, uses.counts[i]);
    }
    json_array_end(&json);
    json_key_int(&json, "jobsRead", (int64_t)uses.read);
    json_key_int(&json, "jobsNotRead", (int64_t)uses.others);
    json_object_end(&json);
    return 0;
}
