/* rows.c — see rows.h. */
#include "store/rows.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

static void row_put_completion(struct sql *sql, const struct completion *completion)
{
    sql_put_int(sql, completion->code);
    sql_put_int(sql, completion->exit_code);
    sql_put_int(sql, completion->is_success);
    sql_put_int(sql, completion->attributes);
    sql_put_string(sql, completion->phrase);
    sql_put_string(sql, completion->diagnostics);
}

static void row_get_completion(struct sql *sql, struct completion *completion)
{
    completion->code = (int32_t)sql_int(sql);
    completion->exit_code = (int32_t)sql_int(sql);
    completion->is_success = sql_bool(sql);
    completion->attributes = (uint8_t)sql_int(sql);
    sql_copy(sql, completion->phrase, sizeof completion->phrase);
    sql_copy(sql, completion->diagnostics, sizeof completion->diagnostics);
}

void row_put_job_fixed(struct sql *sql, const struct job_record *job, bool has_priority)
{
    sql_put_int(sql, job->id.v);
    sql_put_string(sql, job->name);
    sql_put_string(sql, job->user);
    sql_put_string(sql, job->virtual_cluster);
    sql_put_int(sql, job->submitted_ms);
    sql_put_int(sql, has_priority);
}

void row_put_job_state(struct sql *sql, const struct job_record *job)
{
    sql_put_int(sql, job->priority);
    sql_put_int(sql, (int64_t)job->state);
    sql_put_int(sql, job->is_stop_requested);
    sql_put_int(sql, job->attempt);
    sql_put_int(sql, job->retries_user);
    sql_put_int(sql, job->retries_platform);
    sql_put_int(sql, job->retries_resource);
    sql_put_int(sql, job->retry_at_ms);
    sql_put_int(sql, job->attempt_created_ms);
    sql_put_int(sql, job->attempt_launched_ms);
    sql_put_int(sql, job->attempt_completed_ms);
    sql_put_int(sql, job->launched_ms);
    sql_put_int(sql, job->completed_ms);
    row_put_completion(sql, &job->completion);
    sql_put_int(sql, job->trigger_role);
    sql_put_int(sql, job->trigger_index);
    sql_put_string(sql, job->trigger);
    sql_put_string(sql, job->reason);
    sql_put_int(sql, job->task_count);
    sql_put_int(sql, job->role_count);
    sql_put_int(sql, (int64_t)job->gpu_count);
    sql_put_blob(sql, job->extra);
    sql_put_int(sql, (int64_t)job->reason_topic);
}

void row_get_job(struct sql *sql, struct job_record *job, bool *has_priority, struct arena *arena)
{
    *job = (struct job_record){.id = {(uint32_t)sql_int(sql)}};
    job->name = sql_string(sql, arena);
    job->user = sql_string(sql, arena);
    job->virtual_cluster = sql_string(sql, arena);
    job->submitted_ms = sql_int(sql);
    *has_priority = sql_bool(sql);
    job->priority = (int32_t)sql_int(sql);
    job->state = (enum life_state)sql_int(sql);
    job->is_stop_requested = sql_bool(sql);
    job->attempt = (uint32_t)sql_int(sql);
    job->retries_user = (uint32_t)sql_int(sql);
    job->retries_platform = (uint32_t)sql_int(sql);
    job->retries_resource = (uint32_t)sql_int(sql);
    job->retry_at_ms = sql_int(sql);
    job->attempt_created_ms = sql_int(sql);
    job->attempt_launched_ms = sql_int(sql);
    job->attempt_completed_ms = sql_int(sql);
    job->launched_ms = sql_int(sql);
    job->completed_ms = sql_int(sql);
    row_get_completion(sql, &job->completion);
    job->trigger_role = (int32_t)sql_int(sql);
    job->trigger_index = (int32_t)sql_int(sql);
    job->trigger = sql_string(sql, arena);
    job->reason = sql_string(sql, arena);
    job->task_count = (uint32_t)sql_int(sql);
    job->role_count = (uint32_t)sql_int(sql);
    job->gpu_count = (uint64_t)sql_int(sql);
    job->extra = sql_text(sql, arena);
    job->reason_topic = (uint64_t)sql_int(sql);
}

void row_put_job_attempt(struct sql *sql, const struct job_record *job)
{
    sql_put_int(sql, job->id.v);
    sql_put_int(sql, job->attempt);
    sql_put_int(sql, (int64_t)job->state);
    sql_put_int(sql, job->retries_user);
    sql_put_int(sql, job->retries_platform);
    sql_put_int(sql, job->retries_resource);
    sql_put_int(sql, job->attempt_created_ms);
    sql_put_int(sql, job->attempt_launched_ms);
    sql_put_int(sql, job->attempt_completed_ms);
    row_put_completion(sql, &job->completion);
    sql_put_int(sql, job->trigger_role);
    sql_put_int(sql, job->trigger_index);
    sql_put_string(sql, job->trigger);
}

void row_get_job_attempt(struct sql *sql, struct job_record *job, struct arena *arena)
{
    job->id.v = (uint32_t)sql_int(sql);
    job->attempt = (uint32_t)sql_int(sql);
    job->state = (enum life_state)sql_int(sql);
    job->retries_user = (uint32_t)sql_int(sql);
    job->retries_platform = (uint32_t)sql_int(sql);
    job->retries_resource = (uint32_t)sql_int(sql);
    job->attempt_created_ms = sql_int(sql);
    job->attempt_launched_ms = sql_int(sql);
    job->attempt_completed_ms = sql_int(sql);
    row_get_completion(sql, &job->completion);
    job->trigger_role = (int32_t)sql_int(sql);
    job->trigger_index = (int32_t)sql_int(sql);
    job->trigger = sql_string(sql, arena);
    job->reason = "";
}

static struct text row_numbers(struct buf *scratch, const uint16_t *numbers, size_t count)
{
    size_t begin = scratch->length;

    for (size_t i = 0; i < count; i++) {
        buf_put_u8(scratch, (uint8_t)(numbers[i] & 0xff));
        buf_put_u8(scratch, (uint8_t)(numbers[i] >> 8));
    }
    return count ? (struct text){scratch->at + begin, scratch->length - begin} : (struct text){0};
}

static const uint16_t *row_numbers_read(struct text bytes, size_t count, struct arena *arena)
{
    uint16_t *numbers = arena_array(arena, count, sizeof *numbers);

    for (size_t i = 0; i < count; i++)
        numbers[i] = (uint16_t)((uint8_t)bytes.at[2 * i] | (uint8_t)bytes.at[2 * i + 1] << 8);
    return numbers;
}

static void row_ports(struct buf *out, const struct task_record *task)
{
    for (size_t i = 0; i < task->port_count; i++) {
        buf_put_text(out, text_of(task->ports[i].label));
        buf_put_u32(out, task->ports[i].first);
        buf_put_u32(out, task->ports[i].count);
    }
}

void row_put_task(struct sql *sql, const struct task_record *task, struct buf *scratch)
{
    size_t split;

    buf_clear(scratch);
    row_ports(scratch, task);
    split = scratch->length;
    row_numbers(scratch, task->gpus, task->gpu_count);
    sql_put_int(sql, task->job.v);
    sql_put_int(sql, task->task.role);
    sql_put_int(sql, task->task.index);
    sql_put_string(sql, task->role_name);
    sql_put_int(sql, (int64_t)task->state);
    sql_put_int(sql, task->is_deletion_pending);
    sql_put_int(sql, task->is_held);
    sql_put_int(sql, (int64_t)task->attempt.v);
    sql_put_int(sql, task->job_attempt);
    sql_put_int(sql, task->task_attempt);
    sql_put_int(sql, task->retries);
    sql_put_int(sql, task->accountable_retries);
    sql_put_string(sql, task->node);
    sql_put_string(sql, task->address);
    sql_put_blob(sql, (struct text){buf_cstr(scratch) + split, scratch->length - split});
    sql_put_blob(sql, (struct text){buf_cstr(scratch), split});
    sql_put_int(sql, task->created_ms);
    sql_put_int(sql, task->launched_ms);
    sql_put_int(sql, task->completed_ms);
    sql_put_int(sql, task->attempt_created_ms);
    sql_put_int(sql, task->attempt_launched_ms);
    sql_put_int(sql, task->attempt_completed_ms);
    row_put_completion(sql, &task->completion);
    sql_put_int(sql, task->cell_level);
    sql_put_int(sql, (int64_t)task->killed);
    sql_put_int(sql, task->kill_by_ms);
}

static int row_ports_read(struct text bytes, struct task_record *task, struct arena *arena,
                          struct err *err)
{
    struct cursor cursor = cursor_of(bytes);
    struct port_range *ports;
    size_t count = 0;

    while (!cursor.is_bad && cursor.at < cursor.end) {
        cursor_text(&cursor);
        cursor_u32(&cursor);
        cursor_u32(&cursor);
        count++;
    }
    if (cursor.is_bad)
        return err_fail(err, ERR_CORRUPT, "", "the ports of task %u/%u of job %u are damaged",
                        task->task.role, task->task.index, task->job.v);
    ports = arena_array(arena, count, sizeof *ports);
    cursor = cursor_of(bytes);
    for (size_t i = 0; i < count; i++) {
        ports[i].label = arena_copy(arena, cursor_text(&cursor));
        ports[i].first = (uint16_t)cursor_u32(&cursor);
        ports[i].count = (uint16_t)cursor_u32(&cursor);
    }
    task->ports = ports;
    task->port_count = count;
    return 0;
}

int row_get_task(struct sql *sql, struct task_record *task, struct arena *arena, struct err *err)
{
    struct text gpus, ports;

    *task = (struct task_record){.job = {(uint32_t)sql_int(sql)}};
    task->task.role = (uint16_t)sql_int(sql);
    task->task.index = (uint16_t)sql_int(sql);
    task->role_name = sql_string(sql, arena);
    task->state = (enum life_state)sql_int(sql);
    task->is_deletion_pending = sql_bool(sql);
    task->is_held = sql_bool(sql);
    task->attempt.v = (uint64_t)sql_int(sql);
    task->job_attempt = (uint32_t)sql_int(sql);
    task->task_attempt = (uint32_t)sql_int(sql);
    task->retries = (uint32_t)sql_int(sql);
    task->accountable_retries = (uint32_t)sql_int(sql);
    task->node = sql_string(sql, arena);
    task->address = sql_string(sql, arena);
    gpus = sql_text(sql, arena);
    ports = sql_text(sql, arena);
    task->created_ms = sql_int(sql);
    task->launched_ms = sql_int(sql);
    task->completed_ms = sql_int(sql);
    task->attempt_created_ms = sql_int(sql);
    task->attempt_launched_ms = sql_int(sql);
    task->attempt_completed_ms = sql_int(sql);
    row_get_completion(sql, &task->completion);
    task->cell_level = (uint8_t)sql_int(sql);
    task->killed = (enum kill_reason)sql_int(sql);
    task->kill_by_ms = sql_int(sql);
    if (gpus.length % 2 != 0)
        return err_fail(err, ERR_CORRUPT, "", "the GPUs of task %u/%u of job %u are damaged",
                        task->task.role, task->task.index, task->job.v);
    task->gpu_count = gpus.length / 2;
    task->gpus = row_numbers_read(gpus, task->gpu_count, arena);
    return row_ports_read(ports, task, arena, err);
}

void row_put_story(struct sql *sql, const struct story_record *story)
{
    sql_put_int(sql, story->job.v);
    sql_put_int(sql, story->role);
    sql_put_int(sql, story->index);
    sql_put_int(sql, (int64_t)story->attempt.v);
    sql_put_int(sql, story->is_warning);
    sql_put_int(sql, story->at_ms);
    sql_put_string(sql, story->reason);
    sql_put_string(sql, story->message);
}

void row_get_story(struct sql *sql, struct story_record *story, struct arena *arena)
{
    story->job.v = (uint32_t)sql_int(sql);
    story->role = (int32_t)sql_int(sql);
    story->index = (int32_t)sql_int(sql);
    story->attempt.v = (uint64_t)sql_int(sql);
    story->is_warning = sql_bool(sql);
    story->at_ms = sql_int(sql);
    story->reason = sql_string(sql, arena);
    story->message = sql_string(sql, arena);
}

static void row_put_places(struct sql *sql, const uint16_t *places, size_t count,
                           struct buf *scratch)
{
    if (places && count > 0)
        sql_put_blob(sql, row_numbers(scratch, places, count));
    else
        sql_put_null(sql);
}

void row_put_node(struct sql *sql, const struct node_record *node, struct buf *scratch)
{
    buf_clear(scratch);
    /* reserved at once: the bytes must not move between the two columns */
    for (size_t i = 0; i < node->facts.gpu_count; i++)
        buf_put_u32(scratch, 0);
    buf_clear(scratch);
    sql_put_int(sql, node->id.v);
    sql_put_string(sql, node->facts.name);
    sql_put_string(sql, node->facts.address);
    sql_put_string(sql, node->facts.gpu_type);
    sql_put_int(sql, node->facts.cpu);
    sql_put_int(sql, node->facts.gpu_count);
    sql_put_int(sql, (int64_t)node->facts.memory_mib);
    sql_put_int(sql, node->facts.is_healthy);
    sql_put_int(sql, node->is_cordoned);
    sql_put_int(sql, node->is_lost);
    sql_put_real(sql, node->blame);
    sql_put_int(sql, node->blame_ms);
    sql_put_string(sql, node->facts.reason);
    sql_put_int(sql, node->is_reason_blame);
    row_put_places(sql, node->facts.gpu_numa, node->facts.gpu_count, scratch);
    row_put_places(sql, node->facts.gpu_switch, node->facts.gpu_count, scratch);
}

static int row_get_places(struct sql *sql, const struct node_record *node, const uint16_t **places,
                          struct arena *arena, struct err *err)
{
    struct text bytes = sql_text(sql, arena);

    *places = NULL;
    if (!bytes.at)
        return 0;
    if (bytes.length != 2 * (size_t)node->facts.gpu_count)
        return err_fail(err, ERR_CORRUPT, "", "the topology of node %s is damaged",
                        node->facts.name);
    *places = row_numbers_read(bytes, node->facts.gpu_count, arena);
    return 0;
}

int row_get_node(struct sql *sql, struct node_record *node, struct arena *arena, struct err *err)
{
    int code;

    *node = (struct node_record){.id = {(uint32_t)sql_int(sql)}};
    node->facts.name = sql_string(sql, arena);
    node->facts.address = sql_string(sql, arena);
    node->facts.gpu_type = sql_string(sql, arena);
    node->facts.cpu = (uint32_t)sql_int(sql);
    node->facts.gpu_count = (uint32_t)sql_int(sql);
    node->facts.memory_mib = (uint64_t)sql_int(sql);
    node->facts.is_healthy = sql_bool(sql);
    node->is_cordoned = sql_bool(sql);
    node->is_lost = sql_bool(sql);
    node->blame = sql_real(sql);
    node->blame_ms = sql_int(sql);
    node->facts.reason = sql_string(sql, arena);
    node->is_reason_blame = sql_bool(sql);
    code = row_get_places(sql, node, &node->facts.gpu_numa, arena, err);
    return code < 0 ? code : row_get_places(sql, node, &node->facts.gpu_switch, arena, err);
}

void row_put_end(struct sql *sql, const struct store_end *end)
{
    sql_put_int(sql, (int64_t)end->attempt.v);
    sql_put_blob(sql, end->tail);
    sql_put_int(sql, end->rule.code);
    sql_put_string(sql, end->rule.phrase);
    sql_put_int(sql, end->rule.number);
    sql_put_int(sql, end->rule.pattern);
    sql_put_int(sql, end->rule.line);
    sql_put_string(sql, end->rule.file);
    sql_put_string(sql, end->rule.log);
    sql_put_text(sql, end->rule.text);
}

void row_get_end(struct sql *sql, struct store_end *end, struct arena *arena)
{
    end->attempt.v = (uint64_t)sql_int(sql);
    end->tail = sql_text(sql, arena);
    end->rule.code = (int32_t)sql_int(sql);
    end->rule.phrase = sql_string(sql, arena);
    end->rule.number = (uint32_t)sql_int(sql);
    end->rule.pattern = (uint32_t)sql_int(sql);
    end->rule.line = (uint32_t)sql_int(sql);
    end->rule.file = sql_string(sql, arena);
    end->rule.log = sql_string(sql, arena);
    end->rule.text = sql_text(sql, arena);
}

void row_put_user(struct sql *sql, const struct store_user *user)
{
    sql_put_string(sql, user->name);
    sql_put_string(sql, user->password_hash);
    sql_put_string(sql, user->email);
    sql_put_int(sql, user->is_admin);
    sql_put_string(sql, user->groups_json);
    sql_put_string(sql, user->virtual_clusters_json);
    sql_put_string(sql, user->extension_json);
    sql_put_int(sql, user->created_ms);
}

void row_get_user(struct sql *sql, struct store_user *user, struct arena *arena)
{
    user->name = sql_string(sql, arena);
    user->password_hash = sql_string(sql, arena);
    user->email = sql_string(sql, arena);
    user->is_admin = sql_bool(sql);
    user->groups_json = sql_string(sql, arena);
    user->virtual_clusters_json = sql_string(sql, arena);
    user->extension_json = sql_string(sql, arena);
    user->created_ms = sql_int(sql);
}

void row_put_token(struct sql *sql, const struct store_token *token)
{
    sql_put_string(sql, token->id);
    sql_put_string(sql, token->user);
    sql_put_int(sql, token->is_application);
    sql_put_int(sql, token->created_ms);
    sql_put_int(sql, token->expires_ms);
}

void row_get_token(struct sql *sql, struct store_token *token, struct arena *arena)
{
    token->id = sql_string(sql, arena);
    token->user = sql_string(sql, arena);
    token->is_application = sql_bool(sql);
    token->created_ms = sql_int(sql);
    token->expires_ms = sql_int(sql);
}
