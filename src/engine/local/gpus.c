/* The GPUs of tasks: how they were at the start, how they are used, what became of them. */
#include "base/err.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/document.h"
#include "engine/local/gpu_watch.h"
#include "engine/local/inventory.h"
#include "engine/local/task.h"
#include "sys/cleanup.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* How long a worker waits for NVML before a task starts and after one has failed, however busy the
 * machine is. A call that has gone on for longer is not waited for. */
enum { NVML_WAIT_MS = 10000 };

static struct task_gpus *gpus_new(const char *job, const char *role, uint32_t index, size_t count)
{
    struct task_gpus *gpus = mem_zero(1, sizeof *gpus);
    gpus->job = mem_copy(job);
    gpus->role = mem_copy(role);
    gpus->index = index;
    gpus->count = count;
    gpus->items = mem_zero(count, sizeof *gpus->items);
    return gpus;
}

void task_gpus_free(struct task_gpus *gpus)
{
    if (!gpus)
        return;
    mem_free(gpus->job);
    mem_free(gpus->role);
    mem_free(gpus->items);
    mem_free(gpus);
}

void task_gpus_note(struct local_engine *local, struct task *task, const struct container *wanted)
{
    struct gpu_watch *watch = inventory_gpus(local->inventory);
    if (!watch || wanted->gpu_count == 0 || wanted->is_gpu_simulated)
        return;
    /* what came before is not this task's; when that is not known, no growth is */
    const bool is_fresh = gpu_watch_refresh(watch, NVML_WAIT_MS);
    struct task_gpus *gpus = gpus_new(wanted->job, wanted->role, wanted->index, wanted->gpu_count);
    for (size_t i = 0; i < gpus->count; i++) {
        struct task_gpu *gpu = &gpus->items[i];
        struct gpu_state state;
        gpu->gpu = wanted->gpus[i];
        if (!gpu_watch_read(watch, gpu->gpu, &state))
            continue;
        gpu->was_lost = gpu->is_lost_told = state.is_lost;
        gpu->has_errors = is_fresh && state.has_errors;
        gpu->ecc_errors = state.ecc_errors;
        gpu->retired_pages = state.retired_pages;
    }
    pthread_mutex_lock(&local->lock);
    assert(!task->gpus);
    task->gpus = gpus;
    pthread_mutex_unlock(&local->lock);
}

/* --- across a restart: by UUID, because the numbers may have changed --- */

void task_gpus_write(const struct local_engine *local, const struct task *task,
                     struct json_writer *json)
{
    const struct gpu_watch *watch = inventory_gpus(local->inventory);
    if (!task->gpus)
        return;
    json_key(json, "gpus");
    json_array(json);
    for (size_t i = 0; i < task->gpus->count; i++) {
        const struct task_gpu *gpu = &task->gpus->items[i];
        json_object(json);
        json_key_string(json, "uuid", gpu_watch_gpu(watch, gpu->gpu)->uuid);
        json_key_bool(json, "known", gpu->has_errors);
        json_key_bool(json, "lost", gpu->was_lost);
        json_key_int(json, "ecc", (int64_t)gpu->ecc_errors);
        json_key_int(json, "retired", (int64_t)gpu->retired_pages);
        json_object_end(json);
    }
    json_array_end(json);
}

static bool gpu_find(const struct gpu_watch *watch, const char *uuid, uint16_t *gpu)
{
    for (size_t i = 0; uuid[0] && i < gpu_watch_count(watch); i++)
        if (strcmp(gpu_watch_gpu(watch, i)->uuid, uuid) == 0) {
            *gpu = (uint16_t)i;
            return true;
        }
    return false;
}

void task_gpus_adopt(struct local_engine *local, struct task *task, const struct doc *state)
{
    const struct gpu_watch *watch = inventory_gpus(local->inventory);
    const struct doc *list = doc_get(state, "gpus");
    if (!watch || document_count(list) == 0)
        return;
    struct task_gpus *gpus = gpus_new(document_string(state, "job"), document_string(state, "role"),
                                      (uint32_t)document_int(state, "index"), document_count(list));
    gpus->count = 0; /* those that are still there */
    for (size_t i = 0; i < document_count(list); i++) {
        const struct doc *item = list->as.list.items[i];
        struct task_gpu *gpu = &gpus->items[gpus->count];
        if (!gpu_find(watch, document_string(item, "uuid"), &gpu->gpu))
            continue;
        gpu->has_errors = document_bool(item, "known");
        gpu->was_lost = gpu->is_lost_told = document_bool(item, "lost");
        gpu->ecc_errors = (uint64_t)document_int(item, "ecc");
        gpu->retired_pages = (uint64_t)document_int(item, "retired");
        gpus->count++;
    }
    task->gpus = gpus;
}

/* --- the end --- */

static uint64_t growth(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0; /* less: the driver was loaded anew */
}

static void gpu_judge(struct local_engine *local, const struct task *task, struct task_gpu *gpu,
                      struct exit_report *report)
{
    struct gpu_watch *watch = inventory_gpus(local->inventory);
    struct gpu_state state;
    if (!gpu_watch_read(watch, gpu->gpu, &state))
        return;
    const char *uuid = gpu_watch_gpu(watch, gpu->gpu)->uuid;
    if (state.is_lost && !gpu->was_lost)
        report->has_gpu_lost = true;
    if (state.is_lost || !gpu->has_errors || !state.has_errors)
        return;
    uint64_t errors = growth(gpu->ecc_errors, state.ecc_errors);
    uint64_t pages = growth(gpu->retired_pages, state.retired_pages);
    if (errors == 0 && pages == 0)
        return;
    report->has_gpu_ecc_error = true;
    event_note(local, task->attempt, "GpuMemoryErrors",
               "GPU %u (%s) of %s-%u counted %llu uncorrectable memory errors and retired %llu "
               "pages while the task ran",
               gpu->gpu, uuid, task->gpus->role, task->gpus->index, (unsigned long long)errors,
               (unsigned long long)pages);
}

void task_gpus_judge(struct local_engine *local, struct task *task, struct exit_report *report)
{
    struct gpu_watch *watch = inventory_gpus(local->inventory);
    if (!watch || !task->gpus || report->exit_code == 0)
        return;
    gpu_watch_refresh(watch, NVML_WAIT_MS);
    for (size_t i = 0; i < task->gpus->count; i++)
        gpu_judge(local, task, &task->gpus->items[i], report);
    gpus_lost_tell(local); /* before the end is told */
}

/* --- while they run --- */

static void gpu_stats_add(const struct gpu_state *state, struct engine_stats *stats)
{
    stats->gpu_busy_ms += state->busy_ms;
    stats->gpu_count += state->has_use;
    stats->gpu_memory_bytes += state->memory_used_bytes;
    stats->gpu_power_mw += state->power_mw;
}

void task_gpus_stats(struct local_engine *local, const struct task *task,
                     struct engine_stats *stats)
{
    struct gpu_watch *watch = inventory_gpus(local->inventory);
    uint32_t percent = 0;
    for (size_t i = 0; watch && task->gpus && i < task->gpus->count; i++) {
        struct gpu_state state;
        if (!gpu_watch_read(watch, task->gpus->items[i].gpu, &state))
            continue;
        gpu_stats_add(&state, stats);
        percent += state.busy_percent;
    }
    if (stats->gpu_count)
        stats->gpu_percent = percent / stats->gpu_count;
}

void machine_gpus_stats(struct local_engine *local, struct engine_stats *stats)
{
    struct gpu_watch *watch = inventory_gpus(local->inventory);
    for (size_t i = 0; watch && i < gpu_watch_count(watch); i++) {
        struct gpu_state state;
        if (gpu_watch_read(watch, i, &state))
            gpu_stats_add(&state, stats);
    }
}

static bool task_is_alive(const struct task *task)
{
    return task && task->gpus && task->phase != TASK_ENDED;
}

void gpus_lost_tell(struct local_engine *local)
{
    struct lost {
        struct attempt_id attempt;
        uint16_t gpu;
        uint32_t index;
        char role[64];
    };
    cleanup_array struct {
        struct lost *items;
        size_t count, room;
    } lost = {0};
    struct gpu_watch *watch = inventory_gpus(local->inventory);
    pthread_mutex_lock(&local->lock);
    for (size_t i = 0; i < local->task_room; i++) {
        struct task *task = local->tasks[i];
        for (size_t k = 0; task_is_alive(task) && k < task->gpus->count; k++) {
            struct task_gpu *gpu = &task->gpus->items[k];
            struct gpu_state state;
            if (gpu->is_lost_told || !gpu_watch_read(watch, gpu->gpu, &state) || !state.is_lost)
                continue;
            gpu->is_lost_told = true;
            struct lost *one = ARRAY_ADD(&lost);
            *one = (struct lost){task->attempt, gpu->gpu, task->gpus->index, ""};
            snprintf(one->role, sizeof one->role, "%s", task->gpus->role);
        }
    }
    pthread_mutex_unlock(&local->lock);
    for (size_t i = 0; i < lost.count; i++)
        event_note(local, lost.items[i].attempt, "GpuLost",
                   "GPU %u (%s) of %s-%u is lost: the driver cannot reach it any more",
                   lost.items[i].gpu, gpu_watch_gpu(watch, lost.items[i].gpu)->uuid,
                   lost.items[i].role, lost.items[i].index);
}

/* Whose it is. With the lock. */
static void holder_find(const struct local_engine *local, struct arena *arena,
                        struct engine_gpu *gpu)
{
    for (size_t i = 0; i < local->task_room; i++) {
        const struct task *task = local->tasks[i];
        for (size_t k = 0; task_is_alive(task) && k < task->gpus->count; k++) {
            if (task->gpus->items[k].gpu != gpu->index)
                continue;
            gpu->attempt = task->attempt;
            gpu->job = arena_copy(arena, text_of(task->gpus->job));
            gpu->role = arena_copy(arena, text_of(task->gpus->role));
            gpu->task_index = task->gpus->index;
            return;
        }
    }
}

void local_gpus(struct engine *engine, struct arena *arena, const struct engine_gpu **gpus,
                size_t *count)
{
    struct local_engine *local = (struct local_engine *)engine;
    struct gpu_watch *watch = inventory_gpus(local->inventory);
    *count = watch ? gpu_watch_count(watch) : 0;
    struct engine_gpu *items = ARENA_ARRAY(arena, struct engine_gpu, *count);
    for (size_t i = 0; i < *count; i++) {
        const struct nvml_gpu *known = gpu_watch_gpu(watch, i);
        struct gpu_state state = {.is_lost = known->is_lost};
        gpu_watch_read(watch, i, &state);
        items[i] = (struct engine_gpu){.node = inventory_node(local->inventory)->name,
                                       .uuid = known->uuid,
                                       .index = (uint16_t)i,
                                       .is_lost = state.is_lost,
                                       .has_use = state.has_use,
                                       .has_errors = state.has_errors,
                                       .busy_percent = state.busy_percent,
                                       .memory_bytes = known->memory_mib << 20,
                                       .memory_used_bytes = state.memory_used_bytes,
                                       .ecc_errors = state.ecc_errors,
                                       .retired_pages = state.retired_pages,
                                       .job = "",
                                       .role = ""};
    }
    pthread_mutex_lock(&local->lock);
    for (size_t i = 0; i < *count; i++)
        holder_find(local, arena, &items[i]);
    pthread_mutex_unlock(&local->lock);
    *gpus = items;
}
