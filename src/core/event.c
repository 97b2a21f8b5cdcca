#include "core/event.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/core.h"
#include "core/plan.h"

/* The configuration of version 2 had no pauses of retries, that of 3 no time for gangs to wait,
 * that of 4 no order of the queue, that of 7 no gangs that span engines. RESTORE had no numbers up
 * to version 5, STARTED no node and nodes no engine up to version 6, and no address up to 8. */
enum { EVENT_VERSION = 9, EVENT_VERSION_MIN = 2 };

/* --- out --- */

static void put_string(struct buf *out, const char *string)
{
    buf_put_text(out, text_of(string ? string : ""));
}

static void put_double(struct buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    buf_put_u64(out, bits);
}

static void put_plan(struct buf *out, const struct plan *plan)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    if (plan)
        plan_encode(plan, &bytes);
    buf_put_text(out, buf_as_text(&bytes));
}

static void put_numbers(struct buf *out, const uint16_t *numbers, uint32_t count)
{
    buf_put_u8(out, numbers && count);
    for (uint32_t i = 0; numbers && i < count; i++)
        buf_put_u32(out, numbers[i]);
}

static void put_node(struct buf *out, const struct node_facts *node)
{
    put_string(out, node->name);
    put_string(out, node->address);
    put_string(out, node->reason);
    put_string(out, node->gpu_type);
    buf_put_u32(out, node->cpu);
    buf_put_u64(out, node->memory_mib);
    buf_put_u32(out, node->gpu_count);
    buf_put_u8(out, node->is_healthy);
    put_numbers(out, node->gpu_numa, node->gpu_count);
    put_numbers(out, node->gpu_switch, node->gpu_count);
    put_string(out, node->engine);
}

static void put_task(struct buf *out, const struct event *event)
{
    const struct completion *completion = &event->task.completion;
    buf_put_u64(out, event->task.attempt.v);
    put_string(out, event->task.reason);
    put_string(out, event->task.message);
    if (event->kind == EVENT_TASK_STARTED) {
        put_string(out, event->task.node);
        put_string(out, event->task.address);
    }
    if (event->kind != EVENT_TASK_EXITED)
        return;
    buf_put_u32(out, (uint32_t)completion->code);
    buf_put_u32(out, (uint32_t)completion->exit_code);
    buf_put_u8(out, completion->is_success);
    buf_put_u8(out, completion->attributes);
    put_string(out, completion->phrase);
    put_string(out, completion->diagnostics);
    put_double(out, event->task.blame);
}

static void put_config(struct buf *out, const struct core_config *config)
{
    buf_put_u32(out, config->port_first);
    buf_put_u32(out, config->port_last);
    buf_put_u32(out, config->backoff_min_s);
    buf_put_u32(out, config->backoff_max_s);
    buf_put_u32(out, config->retry_pause_first_s);
    buf_put_u32(out, config->retry_pause_max_s);
    buf_put_u32(out, config->retry_calm_s);
    buf_put_u8(out, config->is_backoff_growing);
    buf_put_u32(out, config->gang_timeout_s);
    buf_put_u32(out, config->kill_grace_ms);
    buf_put_u32(out, config->preemption_grace_ms);
    buf_put_u32(out, config->starvation_after_s);
    buf_put_u32(out, config->finished_keep_s);
    buf_put_u32(out, config->debug_hold_s);
    buf_put_u32(out, config->blame_half_life_s);
    put_double(out, config->blame_avoid);
    put_double(out, config->blame_cordon);
    buf_put_text(out, config->placement_document);
    put_string(out, config->policy);
    put_string(out, config->order);
    buf_put_u8(out, config->gangs_span_engines);
}

static void put_recall(struct buf *out, const struct recall *recall)
{
    buf_put_u32(out, recall->job.v);
    buf_put_u8(out, recall->record != NULL);
    if (!recall->record)
        return;
    buf_put_text(out, recall->record->extra);
    put_plan(out, recall->plan);
}

void event_encode(const struct event *event, struct buf *out)
{
    buf_put_u8(out, EVENT_VERSION);
    buf_put_u8(out, (uint8_t)event->kind);
    buf_put_u64(out, (uint64_t)event->now_ms);
    buf_put_u64(out, event->random);
    buf_put_u64(out, event->request);
    put_string(out, event->user);
    switch (event->kind) {
    case EVENT_SUBMIT:
        buf_put_u8(out, event->submit.format);
        put_plan(out, event->submit.plan);
        break;
    case EVENT_START:
        put_recall(out, &event->start);
        break;
    case EVENT_STOP:
    case EVENT_DELETE:
    case EVENT_RELEASE:
        buf_put_u32(out, event->job.v);
        break;
    case EVENT_SCALE:
        buf_put_u32(out, event->scale.job.v);
        buf_put_u32(out, event->scale.role);
        buf_put_u32(out, event->scale.instances);
        break;
    case EVENT_NODE:
    case EVENT_NODE_LOST:
    case EVENT_NODE_PARDON:
    case EVENT_NODE_CORDON:
    case EVENT_NODE_DRAIN:
    case EVENT_NODE_UNCORDON:
        put_node(out, &event->node);
        break;
    case EVENT_CLUSTER_CLOSE:
    case EVENT_CLUSTER_OPEN:
        put_string(out, event->cluster.name);
        put_string(out, event->cluster.reason);
        break;
    case EVENT_TASK_PREPARING:
    case EVENT_TASK_STARTED:
    case EVENT_TASK_EXITED:
    case EVENT_TASK_NOTE:
    case EVENT_TASK_IDLE:
    case EVENT_TASK_REFUSED:
        put_task(out, event);
        break;
    case EVENT_TIMER:
        break;
    case EVENT_CONFIG:
        put_config(out, event->config);
        break;
    case EVENT_RESTORE:
        put_config(out, event->config);
        buf_put_u32(out, event->last_job.v);
        buf_put_u64(out, event->last_attempt.v);
        break;
    }
}

/* --- in --- */

struct event_reader {
    struct cursor cursor;
    struct arena *arena;
    uint8_t version;
};

static const char *take_string(struct event_reader *reader)
{
    assert(reader->arena);
    struct text text = cursor_text(&reader->cursor);
    if (text.length && memchr(text.at, 0, text.length)) {
        reader->cursor.is_bad = true;
        return "";
    }
    return arena_copy(reader->arena, text);
}

static void take_chars(struct event_reader *reader, char *to, size_t size)
{
    assert(size > 0);
    struct text text = cursor_text(&reader->cursor);
    if (text.length >= size) {
        reader->cursor.is_bad = true;
        return;
    }
    if (text.length)
        memcpy(to, text.at, text.length);
    to[text.length] = '\0';
}

static double take_double(struct event_reader *reader)
{
    uint64_t bits = cursor_u64(&reader->cursor);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t take_u16(struct event_reader *reader)
{
    uint32_t value = cursor_u32(&reader->cursor);
    if (value > UINT16_MAX)
        reader->cursor.is_bad = true;
    return (uint16_t)value;
}

static bool take_bool(struct event_reader *reader)
{
    uint8_t value = cursor_u8(&reader->cursor);
    if (value > 1)
        reader->cursor.is_bad = true;
    return value;
}

/* NULL, and the cursor bad, when it is not one; nothing is read for the core after that. */
static struct plan *take_plan(struct event_reader *reader)
{
    assert(reader->arena);
    struct text bytes = cursor_text(&reader->cursor);
    struct plan *plan = reader->cursor.is_bad ? NULL : plan_decode(bytes, NULL);
    if (!plan)
        reader->cursor.is_bad = true;
    return plan;
}

static const uint16_t *take_numbers(struct event_reader *reader, uint32_t count)
{
    assert(reader->arena);
    if (!take_bool(reader))
        return NULL;
    if (count > (size_t)(reader->cursor.end - reader->cursor.at)) {
        reader->cursor.is_bad = true;
        return NULL;
    }
    uint16_t *numbers = ARENA_ARRAY(reader->arena, uint16_t, count + 1u);
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = take_u16(reader);
    return numbers;
}

static void take_node(struct event_reader *reader, struct node_facts *node)
{
    node->name = take_string(reader);
    node->address = take_string(reader);
    node->reason = take_string(reader);
    node->gpu_type = take_string(reader);
    node->cpu = cursor_u32(&reader->cursor);
    node->memory_mib = cursor_u64(&reader->cursor);
    node->gpu_count = cursor_u32(&reader->cursor);
    node->is_healthy = take_bool(reader);
    node->gpu_numa = take_numbers(reader, node->gpu_count);
    node->gpu_switch = take_numbers(reader, node->gpu_count);
    node->engine = reader->version >= 7 ? take_string(reader) : "";
}

static void take_task(struct event_reader *reader, struct event *event)
{
    struct completion *completion = &event->task.completion;
    event->task.attempt.v = cursor_u64(&reader->cursor);
    event->task.reason = take_string(reader);
    event->task.message = take_string(reader);
    if (event->kind == EVENT_TASK_STARTED) {
        event->task.node = reader->version >= 7 ? take_string(reader) : "";
        event->task.address = reader->version >= 9 ? take_string(reader) : "";
    }
    if (event->kind != EVENT_TASK_EXITED)
        return;
    completion->code = (int32_t)cursor_u32(&reader->cursor);
    completion->exit_code = (int32_t)cursor_u32(&reader->cursor);
    completion->is_success = take_bool(reader);
    completion->attributes = cursor_u8(&reader->cursor);
    take_chars(reader, completion->phrase, sizeof completion->phrase);
    take_chars(reader, completion->diagnostics, sizeof completion->diagnostics);
    event->task.blame = take_double(reader);
}

static const struct core_config *take_config(struct event_reader *reader)
{
    assert(reader->arena);
    struct cursor *cursor = &reader->cursor;
    struct core_config *config = ARENA_NEW(reader->arena, struct core_config);
    config->port_first = take_u16(reader);
    config->port_last = take_u16(reader);
    config->backoff_min_s = cursor_u32(cursor);
    config->backoff_max_s = cursor_u32(cursor);
    if (reader->version >= 3) {
        config->retry_pause_first_s = cursor_u32(cursor);
        config->retry_pause_max_s = cursor_u32(cursor);
        config->retry_calm_s = cursor_u32(cursor);
    }
    if (reader->version >= 4) {
        config->is_backoff_growing = take_bool(reader);
        config->gang_timeout_s = cursor_u32(cursor);
    }
    config->kill_grace_ms = cursor_u32(cursor);
    config->preemption_grace_ms = cursor_u32(cursor);
    config->starvation_after_s = cursor_u32(cursor);
    config->finished_keep_s = cursor_u32(cursor);
    config->debug_hold_s = cursor_u32(cursor);
    config->blame_half_life_s = cursor_u32(cursor);
    config->blame_avoid = take_double(reader);
    config->blame_cordon = take_double(reader);
    struct text document = cursor_text(cursor);
    config->placement_document.at = arena_copy(reader->arena, document);
    config->placement_document.length = document.length;
    config->policy = take_string(reader);
    config->order = reader->version >= 5 ? take_string(reader) : "priority";
    config->gangs_span_engines = reader->version < 8 || take_bool(reader);
    return config;
}

static void take_recall(struct event_reader *reader, struct recall *recall)
{
    assert(reader->arena);
    recall->job.v = cursor_u32(&reader->cursor);
    if (!take_bool(reader))
        return;
    struct job_record *record = ARENA_NEW(reader->arena, struct job_record);
    record->id = recall->job;
    struct text extra = cursor_text(&reader->cursor);
    char *copy = arena_alloc(reader->arena, extra.length + 1);
    if (extra.length)
        memcpy(copy, extra.at, extra.length);
    record->extra = (struct text){copy, extra.length};
    record->reason = "";
    recall->record = record;
    recall->plan = take_plan(reader);
}

static void take_body(struct event_reader *reader, struct event *event)
{
    switch (event->kind) {
    case EVENT_SUBMIT:
        event->submit.format = cursor_u8(&reader->cursor);
        event->submit.plan = take_plan(reader);
        break;
    case EVENT_START:
        take_recall(reader, &event->start);
        break;
    case EVENT_STOP:
    case EVENT_DELETE:
    case EVENT_RELEASE:
        event->job.v = cursor_u32(&reader->cursor);
        break;
    case EVENT_SCALE:
        event->scale.job.v = cursor_u32(&reader->cursor);
        event->scale.role = take_u16(reader);
        event->scale.instances = cursor_u32(&reader->cursor);
        break;
    case EVENT_NODE:
    case EVENT_NODE_LOST:
    case EVENT_NODE_PARDON:
    case EVENT_NODE_CORDON:
    case EVENT_NODE_DRAIN:
    case EVENT_NODE_UNCORDON:
        take_node(reader, &event->node);
        break;
    case EVENT_CLUSTER_CLOSE:
    case EVENT_CLUSTER_OPEN:
        event->cluster.name = take_string(reader);
        event->cluster.reason = take_string(reader);
        break;
    case EVENT_TASK_PREPARING:
    case EVENT_TASK_STARTED:
    case EVENT_TASK_EXITED:
    case EVENT_TASK_NOTE:
    case EVENT_TASK_IDLE:
    case EVENT_TASK_REFUSED:
        take_task(reader, event);
        break;
    case EVENT_TIMER:
        break;
    case EVENT_CONFIG:
        event->config = take_config(reader);
        break;
    case EVENT_RESTORE:
        event->config = take_config(reader);
        if (reader->version < 6)
            break;
        event->last_job.v = cursor_u32(&reader->cursor);
        event->last_attempt.v = cursor_u64(&reader->cursor);
        break;
    }
}

void event_plan_free(const struct event *event)
{
    if (event->kind == EVENT_SUBMIT)
        plan_free(event->submit.plan);
    if (event->kind == EVENT_START)
        plan_free(event->start.plan);
}

int event_decode(struct text bytes, struct arena *arena, struct event *event, struct err *err)
{
    struct event_reader reader = {cursor_of(bytes), arena, 0};
    *event = (struct event){0};
    reader.version = cursor_u8(&reader.cursor);
    bool is_known = reader.version >= EVENT_VERSION_MIN && reader.version <= EVENT_VERSION;
    uint8_t kind = cursor_u8(&reader.cursor);
    is_known = is_known && kind <= EVENT_CLUSTER_OPEN;
    if (is_known) {
        event->kind = kind;
        event->now_ms = (int64_t)cursor_u64(&reader.cursor);
        event->random = cursor_u64(&reader.cursor);
        event->request = cursor_u64(&reader.cursor);
        event->user = take_string(&reader);
        take_body(&reader, event);
    }
    if (is_known && !reader.cursor.is_bad && reader.cursor.at == reader.cursor.end)
        return 0;
    if (is_known)
        event_plan_free(event);
    return err_fail(err, ERR_CORRUPT, "event", "not a stored event");
}

const char *event_name(enum event_kind kind)
{
    static const char *const names[] = {
        [EVENT_SUBMIT] = "submit",
        [EVENT_STOP] = "stop",
        [EVENT_START] = "start",
        [EVENT_DELETE] = "delete",
        [EVENT_SCALE] = "scale",
        [EVENT_RELEASE] = "release",
        [EVENT_NODE] = "node",
        [EVENT_NODE_LOST] = "node lost",
        [EVENT_NODE_PARDON] = "node pardon",
        [EVENT_TASK_PREPARING] = "task preparing",
        [EVENT_TASK_STARTED] = "task started",
        [EVENT_TASK_EXITED] = "task exited",
        [EVENT_TASK_NOTE] = "task note",
        [EVENT_TASK_IDLE] = "task idle",
        [EVENT_TIMER] = "timer",
        [EVENT_CONFIG] = "config",
        [EVENT_RESTORE] = "restore",
        [EVENT_TASK_REFUSED] = "task refused",
        [EVENT_NODE_CORDON] = "node cordon",
        [EVENT_NODE_DRAIN] = "node drain",
        [EVENT_NODE_UNCORDON] = "node uncordon",
        [EVENT_CLUSTER_CLOSE] = "virtual cluster close",
        [EVENT_CLUSTER_OPEN] = "virtual cluster open",
    };
    assert((unsigned)kind <= EVENT_CLUSTER_OPEN);
    return names[kind];
}
