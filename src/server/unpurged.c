#include "server/unpurged.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/output.h"
#include "server/state.h"
#include "sys/clock.h"
#include <assert.h>

void unpurged_release(struct unpurged *unpurged)
{
    id_map_release(&unpurged->numbers);
    ARRAY_FREE(unpurged);
}

static bool is_listed(const struct unpurged *unpurged, struct job_id job)
{
    return id_map_get(&unpurged->numbers, job.v) != MAP_NONE;
}

void unpurged_add(struct server *server, struct job_id job, const struct err *why)
{
    struct unpurged *unpurged = &server->core.unpurged;
    if (is_listed(unpurged, job))
        return;
    if (unpurged->count == 0)
        unpurged->retry_ms = clock_monotonic_ms() + UPKEEP_MS;
    id_map_set(&unpurged->numbers, job.v, 1);
    *ARRAY_ADD(unpurged) = job;
    atomic_store(&server->metrics.jobs_unpurged, unpurged->count);
    log_error("store", "job %u is old enough to go, but cannot be removed, and stays: %s", job.v,
              why->text);
}

/* What the store says of its removal: 0 when it would be done. */
static int removal_try(struct server *server, struct job_id job, struct err *err)
{
    struct record record = {.kind = RECORD_JOB_DELETED, .deleted = job};
    const struct output output = {.records = {&record, 1, 1}};
    struct job_id refused;
    const int code = store_refused_job(server->store, &output, &refused, err);
    if (code == ERR_NOT_FOUND)
        return 0;
    return code == 0 ? ERR_INTERNAL : code;
}

void unpurged_find(struct server *server, struct server_mail *const *mails, size_t count, int code)
{
    struct err err;
    for (size_t i = 0; i < count && !store_refusal_passes(code); i++) {
        if (!mail_is_purge(mails[i]))
            continue;
        code = removal_try(server, mails[i]->event.job, &err);
        if (code < 0 && !store_refusal_passes(code))
            unpurged_add(server, mails[i]->event.job, &err);
    }
}

void unpurged_retry(struct server *server)
{
    struct unpurged *unpurged = &server->core.unpurged;
    const int64_t now_ms = clock_monotonic_ms();
    struct err err;
    if (unpurged->count == 0 || now_ms < unpurged->retry_ms)
        return;
    unpurged->retry_ms = now_ms + UPKEEP_MS;
    const struct job_id job = unpurged->items[0];
    const int code = removal_try(server, job, &err);
    for (size_t i = 1; i < unpurged->count; i++)
        unpurged->items[i - 1] = unpurged->items[i];
    if (code < 0) {
        unpurged->items[unpurged->count - 1] = job;
        return;
    }
    log_info("store", "job %u can be removed", job.v);
    id_map_remove(&unpurged->numbers, job.v);
    unpurged->count--;
    atomic_store(&server->metrics.jobs_unpurged, unpurged->count);
    unpurged->retry_ms = now_ms; /* so may the next one */
}

size_t unpurged_room(const struct unpurged *unpurged, size_t most)
{
    return most + unpurged->count;
}

size_t unpurged_drop(const struct unpurged *unpurged, struct job_id *jobs, size_t count,
                     size_t most)
{
    size_t kept = 0;
    for (size_t i = 0; i < count && kept < most; i++)
        if (!is_listed(unpurged, jobs[i]))
            jobs[kept++] = jobs[i];
    return kept;
}
