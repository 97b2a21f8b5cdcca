#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "job/step.h"
#include <assert.h>

/* Version 1 had no quick_ends, version 2 no ending, version 3 no pause of preemptions. */
enum { SAVE_VERSION = 4, ENDING_SHIFT = 2 };

static void completion_put(struct buf *out, const struct completion *completion)
{
    buf_put_u8(out, completion != NULL);
    if (!completion)
        return;
    buf_put_u32(out, (uint32_t)completion->code);
    buf_put_u32(out, (uint32_t)completion->exit_code);
    buf_put_u8(out, completion->is_success);
    buf_put_u8(out, completion->attributes);
    buf_put_text(out, text_of(completion->phrase));
    buf_put_text(out, text_of(completion->diagnostics));
}

static bool text_take(struct cursor *cursor, char *to, size_t size)
{
    assert(size > 0);
    const struct text text = cursor_text(cursor);
    if (text.length >= size)
        return false;
    if (text.length > 0)
        memcpy(to, text.at, text.length);
    to[text.length] = '\0';
    return true;
}

static bool completion_take(struct cursor *cursor, struct completion **completion)
{
    if (!cursor_u8(cursor))
        return true;
    struct completion taken = {.code = (int32_t)cursor_u32(cursor)};
    taken.exit_code = (int32_t)cursor_u32(cursor);
    taken.is_success = cursor_u8(cursor);
    taken.attributes = cursor_u8(cursor);
    if (!text_take(cursor, taken.phrase, sizeof taken.phrase) ||
        !text_take(cursor, taken.diagnostics, sizeof taken.diagnostics))
        return false;
    completion_set(completion, &taken);
    return true;
}

/* Only scaled roles differ from the policy, but every row says all: rescaling is rare, roles few.
 */
static void roles_put(struct buf *out, const struct job *job)
{
    assert(job->role_count <= JOB_ROLES_MAX);
    buf_put_u8(out, job->roles != NULL);
    for (uint16_t r = 0; job->roles && r < job->role_count; r++) {
        const struct job_role *role = &job->roles[r];
        buf_put_u32(out, role->instances);
        buf_put_u32(out, (uint32_t)role->min_failed);
        buf_put_u32(out, (uint32_t)role->min_succeeded);
        buf_put_u32(out, (uint32_t)role->count);
    }
}

static void held_put(struct buf *out, const struct job *job)
{
    buf_put_u32(out, job->held);
    for (uint16_t r = 0; job->held > 0 && r < job->role_count; r++)
        for (uint16_t i = 0; i < job->roles[r].count; i++)
            if (job->roles[r].items[i].is_held)
                buf_put_u32(out, (uint32_t)r << 16 | i);
}

void job_save(const struct job *job, struct buf *out)
{
    assert(job->role_count <= JOB_ROLES_MAX);
    buf_put_u8(out, SAVE_VERSION);
    buf_put_u8(out, (uint8_t)job->state);
    buf_put_u8(out, (uint8_t)job->execution);
    const unsigned flags = (unsigned)job->has_tasks | (unsigned)job->is_inherited << 1 |
                           (unsigned)job->ending << ENDING_SHIFT;
    buf_put_u8(out, (uint8_t)flags);
    buf_put_u32(out, job->role_count);
    buf_put_u32(out, job->attempt);
    buf_put_u32(out, job->retries_user);
    buf_put_u32(out, job->retries_platform);
    buf_put_u32(out, job->retries_resource);
    buf_put_u32(out, job->quick_ends);
    buf_put_u32(out, job->preempt_failures);
    buf_put_u64(out, (uint64_t)job->preempt_after_ms);
    const int64_t times[] = {job->submitted_ms,        job->launched_ms,
                             job->completed_ms,        job->attempt_created_ms,
                             job->attempt_launched_ms, job->attempt_completed_ms,
                             job->retry_at_ms,         job->hold_until_ms};
    for (size_t i = 0; i < COUNT_OF(times); i++)
        buf_put_u64(out, (uint64_t)times[i]);
    buf_put_u32(out, (uint32_t)job->trigger_role);
    buf_put_u32(out, (uint32_t)job->trigger_index);
    completion_put(out, job->completion);
    roles_put(out, job);
    held_put(out, job);
}

/* ---- back ---- */

/* A role's numbers, without its tasks. */
static bool role_take(struct cursor *cursor, const struct job *job, struct job_role *role,
                      uint32_t *count)
{
    role->instances = cursor_u32(cursor);
    role->min_failed = (int32_t)cursor_u32(cursor);
    role->min_succeeded = (int32_t)cursor_u32(cursor);
    *count = cursor_u32(cursor);
    return role->instances <= JOB_INSTANCES_MAX && *count <= JOB_INSTANCES_MAX &&
           (*count == 0 || job->has_tasks);
}

static bool roles_take(struct cursor *cursor, struct job *job, uint32_t *counts)
{
    if (!cursor_u8(cursor))
        return !job->has_tasks;
    job->roles = mem_zero(job->role_count, sizeof *job->roles);
    for (uint16_t r = 0; r < job->role_count; r++)
        if (!role_take(cursor, job, &job->roles[r], &counts[r]))
            return false;
    return true;
}

static void tables_make(struct job *job, const uint32_t *counts)
{
    for (uint16_t r = 0; job->roles && r < job->role_count; r++) {
        struct job_role *role = &job->roles[r];
        ARRAY_RESERVE(role, counts[r]);
        for (uint32_t i = 0; i < counts[r]; i++)
            (void)ARRAY_ADD(role);
    }
}

/* Of a job without its table they are looked at and passed over. */
static bool held_take(struct cursor *cursor, struct job *job, const uint32_t *counts)
{
    const uint32_t count = cursor_u32(cursor);
    for (uint32_t i = 0; i < count && !cursor->is_bad; i++) {
        const uint32_t key = cursor_u32(cursor);
        const struct task_ref ref = {(uint16_t)(key >> 16), (uint16_t)key};
        if (ref.role >= job->role_count || ref.index >= counts[ref.role])
            return false;
        if (!job->has_tasks)
            continue;
        if (job_task_find(job, ref)->is_held)
            return false;
        job->roles[ref.role].items[ref.index].is_held = true;
        job->held++;
    }
    return true;
}

/* What stands before the roles. */
static bool head_take(struct cursor *cursor, struct job *job)
{
    const uint8_t version = cursor_u8(cursor);
    if (version < 1 || version > SAVE_VERSION)
        return false;
    const uint8_t state = cursor_u8(cursor), execution = cursor_u8(cursor);
    const uint8_t flags = cursor_u8(cursor);
    job->has_tasks = flags & 1;
    job->is_inherited = flags & 2;
    job->ending = flags >> ENDING_SHIFT;
    const uint32_t roles = cursor_u32(cursor);
    if (state > LIFE_COMPLETED || execution > EXECUTION_STOP || roles != job->role_count)
        return false;
    job->state = state;
    job->execution = execution;
    job->attempt = cursor_u32(cursor);
    job->retries_user = cursor_u32(cursor);
    job->retries_platform = cursor_u32(cursor);
    job->retries_resource = cursor_u32(cursor);
    job->quick_ends = version >= 2 ? cursor_u32(cursor) : 0;
    job->preempt_failures = version >= 4 ? cursor_u32(cursor) : 0;
    job->preempt_after_ms = version >= 4 ? (int64_t)cursor_u64(cursor) : 0;
    int64_t *const times[] = {&job->submitted_ms,        &job->launched_ms,
                              &job->completed_ms,        &job->attempt_created_ms,
                              &job->attempt_launched_ms, &job->attempt_completed_ms,
                              &job->retry_at_ms,         &job->hold_until_ms};
    for (size_t i = 0; i < COUNT_OF(times); i++)
        *times[i] = (int64_t)cursor_u64(cursor);
    job->trigger_role = (int32_t)cursor_u32(cursor);
    job->trigger_index = (int32_t)cursor_u32(cursor);
    return completion_take(cursor, &job->completion);
}

static bool job_take(struct cursor *cursor, struct job *job, bool is_recall)
{
    uint32_t counts[JOB_ROLES_MAX] = {0};
    if (!head_take(cursor, job) || !roles_take(cursor, job, counts))
        return false;
    if (is_recall && job_is_final(job))
        job->has_tasks = false;
    else if (is_recall)
        return false;
    else
        tables_make(job, counts);
    if (!held_take(cursor, job, counts))
        return false;
    const bool has_end = job->state >= LIFE_DELETION_PENDING;
    if (job->ending > KILL_OTHER || (job->ending && (!job->has_tasks || !job_is_completing(job))))
        return false;
    return !cursor->is_bad && cursor->at == cursor->end && has_end == (job->completion != NULL) &&
           (job->has_tasks || job->state == LIFE_CREATION_PENDING ||
            job->state >= LIFE_ATTEMPT_COMPLETED);
}

/* The tasks are not made: a page of a job's tasks asks this, and the job may have 20,000. */
bool job_saved_counts(struct text saved, uint16_t role_count, uint32_t *counts)
{
    struct job job = {.role_count = role_count};
    struct cursor cursor = cursor_of(saved);
    uint32_t found[JOB_ROLES_MAX] = {0};
    bool is_known = head_take(&cursor, &job) && role_count <= JOB_ROLES_MAX && cursor_u8(&cursor);
    for (uint16_t r = 0; is_known && r < role_count; r++) {
        struct job_role role = {0};
        uint32_t count;
        is_known = role_take(&cursor, &job, &role, &count) && !cursor.is_bad;
        found[r] = count > role.instances ? count : role.instances;
    }
    if (is_known)
        memcpy(counts, found, role_count * sizeof *counts);
    job_release(&job);
    return is_known;
}

bool job_saved_held(struct text saved, uint16_t role_count, struct job_held *held)
{
    struct job job = {.role_count = role_count};
    struct cursor cursor = cursor_of(saved);
    *held = (struct job_held){0};
    bool is_known = head_take(&cursor, &job);
    const bool has_roles = is_known && cursor_u8(&cursor);
    for (uint16_t r = 0; has_roles && is_known && r < role_count; r++) {
        struct job_role role = {0};
        uint32_t count;
        is_known = role_take(&cursor, &job, &role, &count) && !cursor.is_bad;
    }
    const uint32_t count = is_known ? cursor_u32(&cursor) : 0;
    for (uint32_t i = 0; i < count && i < JOB_HELD_NAMED; i++) {
        const uint32_t key = cursor_u32(&cursor);
        held->tasks[i] = (struct task_ref){(uint16_t)(key >> 16), (uint16_t)key};
        is_known = is_known && held->tasks[i].role < role_count;
    }
    is_known = is_known && !cursor.is_bad;
    held->count = is_known ? count : 0;
    held->until_ms = is_known ? job.hold_until_ms : 0;
    job_release(&job);
    return is_known;
}

static int job_read(struct job *job, const struct job_policy *policy, struct text saved,
                    bool is_recall, struct err *err)
{
    assert(policy->role_count <= JOB_ROLES_MAX);
    *job = (struct job){.role_count = policy->role_count};
    struct cursor cursor = cursor_of(saved);
    if (job_take(&cursor, job, is_recall))
        return 0;
    job_release(job);
    return err_fail(err, ERR_CORRUPT, "", "the stored state of the job cannot be read");
}

int job_restore(struct job *job, const struct job_policy *policy, struct text saved,
                struct err *err)
{
    return job_read(job, policy, saved, false, err);
}

int job_recall(struct job *job, const struct job_policy *policy, struct text saved, struct err *err)
{
    return job_read(job, policy, saved, true, err);
}

int job_restore_task(struct job *job, struct task_ref ref, const struct job_task *task,
                     struct err *err)
{
    if (!job_task_find(job, ref))
        return err_fail(err, ERR_CORRUPT, "", "task %u of role %u is not one of the job's",
                        ref.index, ref.role);
    const bool has_end = task->state >= LIFE_DELETION_PENDING;
    struct job_task *slot = &job->roles[ref.role].items[ref.index];
    if (slot->created_ms != 0 || task->created_ms == 0 || (has_end && !task->completion) ||
        (task->state >= LIFE_CREATION_REQUESTED && task->state <= LIFE_DELETING &&
         task->attempt.v == 0) ||
        (unsigned)task->killed > KILL_OTHER)
        return err_fail(err, ERR_CORRUPT, "", "the stored task %u of role %u cannot be right",
                        ref.index, ref.role);
    const bool is_held = slot->is_held, was_kept = task->is_held || task->is_let_go;
    *slot = *task;
    slot->is_held = is_held;
    slot->is_let_go =
        was_kept && !is_held; /* the job's row names it no more: its turn is to come */
    job->let_go += slot->is_let_go;
    slot->quick_ends = 0; /* rows have neither: it waits for a place at once */
    slot->retry_at_ms = 0;
    slot->waits_ms = task->attempt_created_ms;
    slot->completion = NULL;
    if (task->completion)
        completion_set(&slot->completion, task->completion);
    slot->is_killed = life_is_completing(task->state);
    return 0;
}

/* With what is left of its grace; should the clock have been set back, with no more than it had.
 * Rows of before these two were stored have neither. */
static void task_kill_again(struct step *step, struct task_ref ref)
{
    assert(job_task_find(step->job, ref));
    const struct job_task *task = step_task(step, ref);
    const struct job_policy *policy = step->policy;
    struct job_action *action = step_task_action(step, JOB_ACTION_KILL, ref);
    action->is_held = task->is_held;
    if (task->killed == KILL_NONE) {
        action->grace_ms = policy->kill_grace_ms;
        action->reason = kill_reason_name(
            step->job->execution == EXECUTION_STOP ? KILL_STOPPED : KILL_ATTEMPT_COMPLETED);
        return;
    }
    const int64_t left_ms = task->kill_by_ms > step->now_ms ? task->kill_by_ms - step->now_ms : 0;
    const uint32_t most_ms =
        task->killed == KILL_PREEMPTED ? policy->preemption_grace_ms : policy->kill_grace_ms;
    action->grace_ms = left_ms < most_ms ? (uint32_t)left_ms : most_ms;
    action->reason = kill_reason_name(task->killed);
}

/* Of a large gang that was to get its places in several steps: none has been created before all
 * have theirs. */
static bool start_is_cut(const struct job *job, const struct job_policy *policy)
{
    for (uint16_t r = 0; policy->is_gang && job->has_tasks && r < job->role_count; r++)
        if (job->roles[r].count < job->roles[r].instances)
            return true;
    return false;
}

/* Count a restored task and say again what may not have been done. */
static void task_resume(struct step *step, struct task_ref ref, bool is_cut)
{
    assert(job_task_find(step->job, ref));
    struct job *job = step->job;
    struct job_task *task = step_task(step, ref);
    struct job_role *role = &job->roles[ref.role];
    job->live += task_is_live(task);
    const bool is_wanted = task_is_wanted(role, ref.index);
    job->waiting += task->state == LIFE_CREATION_PENDING && is_wanted;
    if (task->state == LIFE_COMPLETED && is_wanted) {
        role->succeeded += task->completion->is_success;
        role->failed += !task->completion->is_success;
    }
    /* also when its image was being fetched: the engine knows it, or knows nothing of it any more
     */
    task->is_uncreated = is_cut && task->state == LIFE_CREATION_REQUESTED;
    if ((task->state == LIFE_CREATION_REQUESTED && !is_cut) || task->state == LIFE_PREPARING)
        step_task_action(step, JOB_ACTION_CREATE, ref);
    if (task_is_live(task) && life_is_completing(task->state))
        task_kill_again(step, ref);
}

int job_restore_finish(struct job *job, const struct job_policy *policy, int64_t now_ms,
                       struct job_output *output, struct err *err)
{
    struct step step = {.job = job, .policy = policy, .output = output, .now_ms = now_ms};
    const bool is_cut = start_is_cut(job, policy);
    for (uint16_t r = 0; job->has_tasks && r < job->role_count; r++) {
        for (uint16_t i = 0; i < job->roles[r].count; i++)
            if (job->roles[r].items[i].created_ms == 0)
                return err_fail(err, ERR_CORRUPT, "", "task %u of role %u is not stored", i, r);
        for (uint16_t i = 0; i < job->roles[r].count; i++)
            task_resume(&step, (struct task_ref){r, i}, is_cut);
        job->roles[r].waits_ms = job->attempt_created_ms;
    }
    if (job_is_completing(job) && job->live == 0 && !job_goes_on(job))
        return err_fail(err, ERR_CORRUPT, "", "the job is ending, but no task of it is");
    if (!policy->is_gang && job->has_tasks && job_is_active(job)) {
        const uint32_t missing = job_missing_count(job);
        job->is_growing = missing > 0;
        job->waiting += missing;
        job_surplus_restore(job);
    }
    if (is_cut && job_is_active(job))
        step_start_undo(&step);
    else if (job_waiting_count(job, policy) > 0)
        step_action(&step, JOB_ACTION_QUEUE);
    return 0;
}

/* ---- copies ---- */

void job_clone(struct job *to, const struct job *from)
{
    assert(to != from);
    *to = *from;
    if (from->completion) {
        to->completion = NULL;
        completion_set(&to->completion, from->completion);
    }
    if (!from->roles)
        return;
    to->roles = mem_alloc(mem_size(from->role_count, sizeof *to->roles));
    for (uint16_t r = 0; r < from->role_count; r++) {
        const struct job_role *source = &from->roles[r];
        struct job_role *role = &to->roles[r];
        *role = *source;
        role->items = NULL;
        role->room = 0;
        ARRAY_RESERVE(role, source->count);
        for (size_t i = 0; i < source->count; i++) {
            role->items[i] = source->items[i];
            role->items[i].completion = NULL;
            if (source->items[i].completion)
                completion_set(&role->items[i].completion, source->items[i].completion);
        }
    }
}

static void task_put(struct buf *out, const struct job_task *task)
{
    buf_put_u8(out, (uint8_t)task->state);
    buf_put_u8(out,
               (uint8_t)(task->is_deletion_pending | task->is_held << 1 | task->is_let_go << 2));
    buf_put_u8(out, (uint8_t)task->killed);
    buf_put_u64(out, (uint64_t)task->kill_by_ms);
    buf_put_u64(out, task->attempt.v);
    buf_put_u32(out, task->task_attempt);
    buf_put_u32(out, task->retries);
    buf_put_u32(out, task->retries_counted);
    const int64_t times[] = {task->created_ms,          task->launched_ms,
                             task->completed_ms,        task->attempt_created_ms,
                             task->attempt_launched_ms, task->attempt_completed_ms};
    for (size_t i = 0; i < COUNT_OF(times); i++)
        buf_put_u64(out, (uint64_t)times[i]);
    completion_put(out, task->completion);
}

uint64_t job_hash(const struct job *job)
{
    assert(job->role_count <= JOB_ROLES_MAX);
    cleanup_buf struct buf bytes = BUF_INIT;
    job_save(job, &bytes);
    uint64_t hash = text_hash(buf_as_text(&bytes), 0);
    for (uint16_t r = 0; job->roles && r < job->role_count; r++)
        for (size_t i = 0; i < job->roles[r].count; i++) {
            buf_clear(&bytes);
            task_put(&bytes, &job->roles[r].items[i]);
            hash = text_hash(buf_as_text(&bytes), hash);
        }
    return hash;
}

size_t job_memory(const struct job *job)
{
    size_t bytes = sizeof *job + (job->completion ? sizeof *job->completion : 0);
    for (uint16_t r = 0; job->roles && r < job->role_count; r++) {
        const struct job_role *role = &job->roles[r];
        bytes += sizeof *role + role->room * sizeof *role->items;
        for (size_t i = 0; i < role->count; i++)
            bytes += role->items[i].completion ? sizeof *role->items[i].completion : 0;
    }
    return bytes;
}
