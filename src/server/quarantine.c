#include "server/quarantine.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/rows_core.h"
#include "server/state.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTING "quarantine.jobs" /* their numbers, with a space between two */

static struct quarantined_job *job_find(struct quarantine *quarantine, struct job_id job)
{
    for (size_t i = 0; i < quarantine->count; i++)
        if (quarantine->items[i].job.v == job.v)
            return &quarantine->items[i];
    return NULL;
}

void quarantine_release(struct quarantine *quarantine)
{
    ARRAY_FREE(&quarantine->containers);
    ARRAY_FREE(quarantine);
}

/* The setting that names all of them but one. */
static const char *list_text(const struct quarantine *quarantine, struct job_id but,
                             struct arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < quarantine->count; i++)
        if (quarantine->items[i].job.v != but.v)
            text =
                arena_format(arena, "%s%s%u", text, *text ? " " : "", quarantine->items[i].job.v);
    return text;
}

static int list_keep(struct server *server, struct err *err)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    const char *text = list_text(&server->core.quarantine, (struct job_id){0}, &arena);
    struct store_change change = {.kind = CHANGE_SETTING, .setting = {SETTING, text_of(text)}};
    return store_commit(server->store, &(struct store_batch){.changes = &change, .change_count = 1},
                        err);
}

/* From the next core on. False: it is left out already. */
static bool job_leave_out(struct server *server, struct job_id job, const struct err *why)
{
    struct quarantine *quarantine = &server->core.quarantine;
    struct err err;
    if (job_find(quarantine, job))
        return false;
    struct quarantined_job *entry = ARRAY_ADD(quarantine);
    *entry = (struct quarantined_job){.job = job};
    snprintf(entry->why, sizeof entry->why, "%.190s", why->text);
    atomic_store(&server->metrics.quarantined, quarantine->count);
    log_error("store",
              "job %u is left out, and its containers are ended: what follows of it cannot be "
              "stored: %s",
              job.v, entry->why);
    if (list_keep(server, &err) < 0)
        log_error("store", "that job %u is left out cannot be kept: %s", job.v, err.text);
    return true;
}

bool quarantine_find(struct server *server, unsigned *refusals, const struct err *err)
{
    struct job_id job;
    struct err why;
    if (++*refusals < 2) {
        log_warning("store", "what has become due is refused, and tried once more: %s", err->text);
        return true;
    }
    *refusals = 0;
    int code = store_refused_job(server->store, &server->core.output, &job, &why);
    if (code < 0) {
        log_error("store", "no job is to blame for what is refused: %s", why.text);
        return false;
    }
    /* false: its rows were not read: others refer to it */
    return job_leave_out(server, job, &why);
}

/* --- by what a fact leads to --- */

/* The row of the try that a fact is of. */
static int row_read(struct server *server, struct attempt_id attempt, struct arena *arena,
                    struct task_record *row)
{
    struct err err;
    const int code = store_attempt(server->core.reader, attempt, arena, row, &err);
    if (code < 0 && code != ERR_NOT_FOUND)
        log_error("store", "the row of attempt %llu cannot be read: %s",
                  (unsigned long long)attempt.v, err.text);
    return code;
}

bool quarantine_other(struct server *server, const struct server_mail *mail)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct task_record row = {.job = {0}};
    struct job_id job;
    struct err why;
    if (mail->kind != MAIL_EVENT || mail->is_request || mail_is_purge(mail))
        return false;
    if (mail_is_of_task(mail) && row_read(server, mail->event.task.attempt, &arena, &row) < 0)
        return false;
    if (store_refused_job(server->store, &server->core.output, &job, &why) < 0)
        return false;
    return job.v != row.job.v && job_leave_out(server, job, &why);
}

/* To its user: the row stays as it was. */
static void end_say(struct server *server, const struct task_record *row, const struct err *why)
{
    cleanup_output struct output output;
    struct err err;
    output_init(&output);
    *ARRAY_ADD(&output.records) = (struct record){
        .kind = RECORD_STORY,
        .story = {.job = row->job,
                  .role = row->task.role,
                  .index = row->task.index,
                  .is_warning = true,
                  .at_ms = core_thread_now(server),
                  .reason = "EndNotStored",
                  .message = arena_format(&output.arena, "its end could not be stored, %s: %.190s",
                                          row->state == LIFE_RUNNING
                                              ? "so that it counts as running until the job ends"
                                              : "so that the server has left the job out",
                                          why->text)}};
    if (store_commit(server->store, &(struct store_batch){.output = &output}, &err) < 0)
        log_error("store", "job %u is not told that an end could not be stored: %s", row->job.v,
                  err.text);
}

/* Nothing of it runs any more, whatever its row says: it is not to be found standing still. */
static void watches_tell(struct server *server, const struct task_record *row)
{
    struct record record = {.kind = RECORD_TASK, .task = *row};
    record.task.state = LIFE_ATTEMPT_COMPLETED;
    hang_watch_take(server->hang_watch, &record, 1);
    use_watch_take(server->use_watch, &record, 1);
}

void quarantine_end(struct server *server, struct attempt_id attempt, const struct err *why)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct task_record row;
    if (row_read(server, attempt, &arena, &row) < 0 || row.state >= LIFE_ATTEMPT_COMPLETED)
        return;
    if (row.state != LIFE_RUNNING)
        job_leave_out(server, row.job, why);
    watches_tell(server, &row);
    end_say(server, &row, why);
}

const char *quarantine_why(const struct server *server, struct job_id job)
{
    const struct quarantine *quarantine = &server->core.quarantine;
    for (size_t i = 0; i < quarantine->count; i++)
        if (quarantine->items[i].job.v == job.v)
            return quarantine->items[i].why;
    return NULL;
}

void quarantine_task(struct server *server, const struct task_record *task)
{
    struct quarantine *quarantine = &server->core.quarantine;
    const struct quarantined_job *entry = job_find(quarantine, task->job);
    assert(entry);
    watches_tell(server, task);
    if (entry->is_settled || !task->attempt.v || task->state >= LIFE_ATTEMPT_COMPLETED)
        return;
    ARRAY_ADD(&quarantine->containers);
    quarantine->containers.items[quarantine->containers.count - 1].attempt = task->attempt;
    quarantine->containers.items[quarantine->containers.count - 1].engine =
        engine_of_node(server, task->node);
}

/* --- the end of one, in its rows --- */

enum { ENDING_STEPS_MAX = 1000 };

static bool is_ended(const struct output *output)
{
    for (size_t i = output->records.count; i > 0; i--)
        if (output->records.items[i - 1].kind == RECORD_JOB)
            return output->records.items[i - 1].job.state == LIFE_COMPLETED;
    return false;
}

/* What would become of its rows if it were stopped, and its containers gone: a core that has
 * nothing but this job says it. */
static int ending_make(struct server *server, struct job_id job, struct output *output,
                       struct err *err)
{
    const int64_t now_ms = core_thread_now(server);
    const struct rows_core_ask ask = {
        .config = &server->config->core, .now_ms = now_ms, .job = job.v};
    cleanup_core struct core *core = NULL;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct store_tasks tasks;
    int code = store_tasks(server->core.reader, job, -1, &arena, &tasks, err);
    if (code == 0)
        code = rows_core(server->core.reader, &ask, &core, err);
    if (code < 0)
        return code;
    struct event event = {.kind = EVENT_STOP, .now_ms = now_ms, .user = "", .job = job};
    core_step(core, &event, output);
    event = (struct event){.kind = EVENT_TASK_EXITED, .now_ms = now_ms, .user = ""};
    event.task.completion =
        completion_of(CODE_CONTAINER_DELETED, "the server has left the job out");
    for (size_t i = 0; i < tasks.count; i++) {
        event.task.attempt = tasks.items[i].attempt;
        if (event.task.attempt.v && tasks.items[i].state < LIFE_ATTEMPT_COMPLETED)
            core_step(core, &event, output);
    }
    event = (struct event){.kind = EVENT_TIMER, .now_ms = now_ms, .user = ""};
    for (int i = 0; i < ENDING_STEPS_MAX && !is_ended(output); i++)
        core_step(core, &event, output);
    return is_ended(output) ? 0 : err_fail(err, ERR_CORRUPT, "", "it does not end");
}

static void ending_say(const struct quarantined_job *entry, int64_t now_ms, struct output *output)
{
    const char *text = arena_format(&output->arena,
                                    "ended by the server: what follows of this job could not be "
                                    "stored: %s",
                                    entry->why);
    for (size_t i = 0; i < output->records.count; i++) {
        struct record *record = &output->records.items[i];
        if (record->kind == RECORD_JOB)
            snprintf(record->job.completion.diagnostics, sizeof record->job.completion.diagnostics,
                     "%s", text);
    }
    *ARRAY_ADD(&output->records) = (struct record){.kind = RECORD_STORY,
                                                   .story = {.job = entry->job,
                                                             .role = -1,
                                                             .index = -1,
                                                             .is_warning = true,
                                                             .at_ms = now_ms,
                                                             .reason = "Quarantined",
                                                             .message = text}};
}

/* True: its rows say that it has ended, and it is as any other job. */
static bool job_end(struct server *server, const struct quarantined_job *entry)
{
    cleanup_output struct output output;
    cleanup_arena struct arena arena;
    struct err err;
    output_init(&output);
    arena_init(&arena);
    int code = ending_make(server, entry->job, &output, &err);
    if (code == 0) {
        ending_say(entry, core_thread_now(server), &output);
        const char *left = list_text(&server->core.quarantine, entry->job, &arena);
        struct store_change change = {.kind = CHANGE_SETTING, .setting = {SETTING, text_of(left)}};
        const struct store_batch batch = {.output = &output, .changes = &change, .change_count = 1};
        code = store_commit(server->store, &batch, &err);
    }
    if (code < 0)
        log_error("store", "job %u cannot be ended in its rows, which say what they said: %s",
                  entry->job.v, err.text);
    else
        log_warning("store", "job %u has been ended: %s", entry->job.v, entry->why);
    return code == 0;
}

void quarantine_settle(struct server *server)
{
    struct quarantine *quarantine = &server->core.quarantine;
    for (size_t i = 0; i < quarantine->containers.count; i++)
        if (quarantine->containers.items[i].engine != ENGINE_NONE)
            leftover_take(server, quarantine->containers.items[i].engine,
                          quarantine->containers.items[i].attempt, true);
    quarantine->containers.count = 0;
    for (size_t i = quarantine->count; i-- > 0;) {
        struct quarantined_job *entry = &quarantine->items[i];
        const bool is_over = !entry->is_settled && job_end(server, entry);
        entry->is_settled = true;
        if (is_over)
            *entry = quarantine->items[--quarantine->count];
    }
    atomic_store(&server->metrics.quarantined, quarantine->count);
}

int quarantine_load(struct server *server, struct err *err)
{
    struct quarantine *quarantine = &server->core.quarantine;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct text list;
    int code = store_setting(server->core.reader, SETTING, &arena, &list, err);
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    const char *at = arena_copy(&arena, list);
    while (*at) {
        char *end;
        const unsigned long job = strtoul(at, &end, 10);
        if (end == at || job == 0 || job > UINT32_MAX)
            return err_fail(err, ERR_CORRUPT, "", "the setting %s is no list of jobs", SETTING);
        *ARRAY_ADD(quarantine) = (struct quarantined_job){
            .job = {(uint32_t)job},
            .why = "an earlier run of the server could not store its changes"};
        at = end + (*end == ' ');
    }
    return 0;
}
