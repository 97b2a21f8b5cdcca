#include "core/trial.h"

#include <assert.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/memory.h"
#include "core/core.h"
#include "core/event.h"
#include "core/output.h"
#include "core/preempt.h"
#include "core/reserve.h"
#include "core/room.h"
#include "core/schedule.h"
#include "core/shadow.h"
#include "core/state.h"

static struct core_trial_task task_of(struct arena *arena, const struct task_record *task)
{
    uint16_t *gpus = ARENA_ARRAY(arena, uint16_t, task->gpu_count + 1);
    for (size_t i = 0; i < task->gpu_count; i++)
        gpus[i] = task->gpus[i];
    return (struct core_trial_task){
        .role = arena_copy(arena, text_of(task->role_name)),
        .node = arena_copy(arena, text_of(task->node)),
        .index = task->task.index,
        .gpus = gpus,
        .gpu_count = task->gpu_count,
    };
}

/* The last record of each task counts; it has one when it has a place. */
static void records_read(const struct output *output, struct job_id job, struct arena *arena,
                         struct core_trial *trial)
{
    struct id_map places = {0};
    trial->tasks = ARENA_ARRAY(arena, struct core_trial_task, output->records.count + 1);
    for (size_t i = 0; i < output->records.count; i++) {
        const struct record *record = &output->records.items[i];
        if (record->kind == RECORD_JOB && record->job.id.v == job.v)
            trial->reason = arena_copy(arena, text_of(record->job.reason));
        if (record->kind != RECORD_TASK || record->task.job.v != job.v || !record->task.attempt.v)
            continue;
        const uint64_t key = ((uint64_t)record->task.task.role << 16 | record->task.task.index) + 1;
        uint32_t at = id_map_get(&places, key);
        if (at == MAP_NONE) {
            at = (uint32_t)trial->task_count++;
            id_map_set(&places, key, at);
        }
        trial->tasks[at] = task_of(arena, &record->task);
    }
    trial->is_placed = trial->task_count > 0;
    id_map_release(&places);
}

static bool is_known(const struct core_trial *trial, struct job_id job)
{
    for (size_t i = 0; i < trial->victim_count; i++)
        if (trial->victims[i].v == job.v)
            return true;
    return false;
}

static void victims_read(const struct output *output, struct arena *arena, struct core_trial *trial)
{
    trial->victims = ARENA_ARRAY(arena, struct job_id, output->commands.count + 1);
    for (size_t i = 0; i < output->commands.count; i++) {
        const struct command *command = &output->commands.items[i];
        if (command->kind == COMMAND_KILL && !is_known(trial, command->job))
            trial->victims[trial->victim_count++] = command->job;
    }
}

static bool steps_are_left(const struct core *core)
{
    return core->placing.job || holdovers_are_left(core) || core->going_jobs.count ||
           shadow_is_made(core) || room_is_asked(core) || reserve_is_joining(core) ||
           placer_is_untidy(core) || schedule_is_cut(core) || core_order_changes(core);
}

bool core_trial_prepare(struct core *core, int64_t now_ms)
{
    enum { WORK_ANY = 1 << 30 };
    core_slice_set(core, WORK_ANY);
    if (!steps_are_left(core))
        return true;
    struct output output;
    output_init(&output);
    schedule_hurry(core);
    core_step(core, &(struct event){.kind = EVENT_TIMER, .now_ms = now_ms, .user = ""}, &output);
    output_release(&output);
    return !steps_are_left(core);
}

int core_trial(struct core *core, struct event *submit, struct arena *arena,
               struct core_trial *trial, struct err *err)
{
    struct output output;
    int code = 0;
    assert(submit->kind == EVENT_SUBMIT && submit->submit.plan);
    *trial = (struct core_trial){.reason = ""};
    output_init(&output);
    submit->request = 1;
    core_step(core, submit, &output);
    submit->submit.plan = NULL; /* taken */
    assert(output.answers.count == 1);
    const struct answer *answer = &output.answers.items[0];
    if (answer->code)
        code = err_fail(err, answer->code, answer->path, "%s", answer->text);
    if (!code) {
        records_read(&output, answer->job, arena, trial);
        victims_read(&output, arena, trial);
    }
    output_release(&output);
    return code;
}
