#include "core/replay.h"

#include "base/err.h"
#include "core/plan.h"
#include <assert.h>

void replay_init(struct replay *replay)
{
    *replay = (struct replay){.rows = rows_new()};
}

void replay_release(struct replay *replay)
{
    core_free(replay->core);
    rows_free(replay->rows);
    *replay = (struct replay){0};
}

static int restore(struct replay *replay, const struct event *event, struct output *output,
                   struct err *err)
{
    assert(event->kind == EVENT_RESTORE);
    core_free(replay->core);
    replay->core = core_new(event->config, err);
    if (!replay->core)
        return err->code;
    if (replay->slice)
        core_slice_set(replay->core, replay->slice);
    rows_skip(replay->rows, event->last_job, event->last_attempt);
    int code = rows_restore(replay->rows, replay->core, event->now_ms, output, err);
    replay->restores++;
    return code;
}

/* The row of a new job needs its plan; the step takes it. */
static void submit(struct replay *replay, const struct event *event, struct output *output)
{
    assert(event->kind == EVENT_SUBMIT);
    struct plan *plan = plan_copy(event->submit.plan);
    core_step(replay->core, event, output);
    for (size_t i = 0; i < output->records.count; i++) {
        const struct record *record = &output->records.items[i];
        if (record->kind == RECORD_JOB && record->job.submission) {
            rows_plan(replay->rows, record->job.id.v, plan);
            break;
        }
    }
    plan_free(plan);
}

int replay_step(struct replay *replay, const struct event *event, struct output *output,
                struct err *err)
{
    int code = 0;
    output_clear(output);
    if (event->kind == EVENT_RESTORE) {
        code = restore(replay, event, output, err);
    } else if (!replay->core) {
        code = err_fail(err, ERR_UNSUPPORTED, "",
                        "the log does not begin with the start of a server: its beginning was "
                        "removed, or it is of a program that did not log restarts");
        event_plan_free(event);
    } else if (event->kind == EVENT_SUBMIT) {
        submit(replay, event, output);
    } else {
        core_step(replay->core, event, output);
    }
    if (code == 0)
        rows_apply(replay->rows, output);
    replay->events++;
    return code;
}
