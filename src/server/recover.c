/* recover.c — a core made from the store's rows; what the engine has against what the core wants.
 */
#include "base/err.h"
#include "base/memory.h"
#include "core/plan.h"
#include "server/clock.h"
#include "server/state.h"
#include <string.h>

static int restore_node(void *context, const struct node_record *node, struct err *err)
{
    struct server *server = context;

    pthread_mutex_lock(&server->state_lock);
    server_node(server, node->facts.name);
    pthread_mutex_unlock(&server->state_lock);
    return core_restore_node(server->core.core, node, err);
}

static int restore_job(void *context, const struct job_record *job, struct text plan_bytes,
                       struct err *err)
{
    struct server *server = context;
    struct plan *plan = plan_decode(plan_bytes, err);

    if (!plan)
        return ERR_CORRUPT;
    return core_restore_job(server->core.core, job, plan, err);
}

/* Given before the epoch began. Whether it has ever run, in the time that the store does not know
 * of, only the engine can tell. */
static bool is_of_past_epoch(const struct server *server, struct attempt_id attempt)
{
    return attempt.v < store_epoch_last(server->store).first_attempt.v;
}

/* An attempt must be among the engine's: it has run, or may have. */
static bool must_be_there(const struct server *server, const struct task_record *task)
{
    if (!task->attempt.v)
        return false;
    if (task->state == LIFE_RUNNING)
        return true;
    return (task->state == LIFE_CREATION_REQUESTED || task->state == LIFE_PREPARING) &&
           is_of_past_epoch(server, task->attempt);
}

void server_past_creates_drop(struct server *server)
{
    struct output *output = &server->core.output;
    size_t kept = 0;

    for (size_t i = 0; i < output->commands.count; i++) {
        const struct command *command = &output->commands.items[i];
        if (command->kind != COMMAND_CREATE || !is_of_past_epoch(server, command->attempt))
            output->commands.items[kept++] = *command;
    }
    output->commands.count = kept;
}

static int restore_task(void *context, const struct task_record *task, struct err *err)
{
    struct server *server = context;

    if (must_be_there(server, task))
        *ARRAY_ADD(&server->core.running) = task->attempt;
    hang_watch_take(server->hang_watch, &(struct record){.kind = RECORD_TASK, .task = *task}, 1);
    return core_restore_task(server->core.core, task, err);
}

static int restore_rows(struct server *server, struct err *err)
{
    struct store_restore restore = {server, restore_node, restore_job, restore_task};
    struct core_thread *core = &server->core;
    struct job_id last_job;
    struct attempt_id last_attempt;
    int code = store_restore_counters(core->reader, &last_job, &last_attempt, err);

    core->running.count = 0;
    if (code == 0)
        code = core_restore_counters(core->core, last_job, last_attempt);
    if (code == 0)
        code = store_restore(core->reader, &restore, err);
    return code;
}

int server_clock_restore(struct server *server, struct err *err)
{
    struct store_reader *reader = server->core.reader;
    int64_t last_ms = 0, trusted_ms = 0;
    struct text trusted;
    struct arena arena;
    int code = store_restore_time(reader, &last_ms, err);

    if (code < 0)
        return code;
    arena_init(&arena);
    code = store_setting(reader, RETENTION_TIME, &arena, &trusted, err);
    if (code == ERR_NOT_FOUND) {
        trusted_ms = last_ms; /* of a server that did not note it */
        code = 0;
    } else if (code == 0 && !text_to_int64(trusted, &trusted_ms)) {
        code = err_fail(err, ERR_CORRUPT, "", "the setting %s is not a time", RETENTION_TIME);
    }
    arena_release(&arena);
    server_clock_start(&server->core.clock, clock_boot_ms(), clock_wall_ms(), last_ms, trusted_ms);
    return code;
}

int server_restore(struct server *server, struct err *err)
{
    struct core_thread *core = &server->core;
    int64_t begin_us = clock_us(), now = core_thread_now(server);
    struct core_counts counts;
    struct event event;
    int code;

    core_thread_batch_begin(core);
    core->wake_ms = 0;
    event = (struct event){
        .kind = EVENT_RESTORE, .now_ms = now, .user = "", .config = &server->config->core};
    store_numbers(server->store, &event.last_job, &event.last_attempt);
    core_thread_log(core, &event);
    core->core = core_new(&server->config->core, err);
    if (!core->core)
        return err->code;
    code = restore_rows(server, err);
    if (code == 0)
        code = core_restore_finish(core->core, now, &core->output, err);
    if (code == 0)
        code = core_thread_commit(server, err);
    if (code < 0) {
        core_free(core->core);
        core->core = NULL;
        return code;
    }
    core_count(core->core, &counts);
    pthread_mutex_lock(&server->state_lock); /* a core made anew: others read while it is */
    server->counts = counts;
    pthread_mutex_unlock(&server->state_lock);
    atomic_fetch_add(&server->metrics.restores, 1);
    log_info("server", "%llu live jobs and %llu tasks restored in %lld ms",
             (unsigned long long)counts.jobs_live, (unsigned long long)counts.tasks_live,
             (long long)(clock_us() - begin_us) / 1000);
    return 0;
}

static void post_lost(struct server *server, struct attempt_id attempt)
{
    struct server_mail *mail = mail_event(EVENT_TASK_EXITED, "");

    mail->event.task.attempt = attempt;
    mail->event.task.completion =
        completion_of(CODE_CONTAINER_DELETED, "the container was gone when the server started");
    atomic_fetch_add(&server->metrics.lost, 1);
    server_post_fact(server, mail);
}

int server_engine_epoch(struct server *server, struct err *err)
{
    struct attempt_id *attempts = NULL, last = {0}, given;
    struct job_id job;
    size_t count = 0;
    int code = server->engine->ops->list(server->engine, &attempts, &count, err);

    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++)
        if (attempts[i].v > last.v)
            last = attempts[i];
    free(attempts);
    store_numbers(server->store, &job, &given);
    if (last.v <= given.v)
        return 0;
    return store_epoch_begin(server->store, last, "the engine holds tries that were never given",
                             err);
}

int server_reconcile(struct server *server, struct err *err)
{
    struct core_thread *core = &server->core;
    struct attempt_id *attempts = NULL;
    cleanup_id_map struct id_map there = {0};
    size_t count = 0;
    int code = server->engine->ops->list(server->engine, &attempts, &count, err);

    if (code < 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        id_map_set(&there, attempts[i].v, 1);
        if (core_attempt_is_live(core->core, attempts[i]))
            atomic_fetch_add(&server->metrics.adopted, 1);
        else
            leftover_take(server, attempts[i], true);
    }
    for (size_t i = 0; i < core->running.count; i++)
        if (id_map_get(&there, core->running.items[i].v) == MAP_NONE)
            post_lost(server, core->running.items[i]);
    ARRAY_FREE(&core->running);
    free(attempts);
    return 0;
}
