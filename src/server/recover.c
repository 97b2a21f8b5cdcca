/* recover.c — a core made from the store's rows; what the engine has against what the core wants.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "core/plan.h"
#include "server/batch.h"
#include "server/clock.h"
#include "server/config.h"
#include "server/state.h"
#include "sys/clock.h"
#include <string.h>

/* Rows of programs that knew one engine only do not name it: then it is the local one, or the
 * first, until another tells of the node. */
static void node_restore_known(struct server *server, const struct node_record *row)
{
    struct node_known *known = server_node(server, row->facts.name);
    node_facts_copy(&known->facts, &row->facts);
    known->is_engine_guessed = !*row->facts.engine;
    known->is_lost = row->is_lost;
    if (row->is_lost)
        return;
    known->engine = engine_named(server, row->facts.engine);
    for (size_t i = 0; known->is_engine_guessed && i < server->engines.count; i++)
        if (known->engine == ENGINE_NONE ||
            server->engines.items[i].config->kind == ENGINE_KIND_LOCAL)
            known->engine = (uint8_t)i;
}

int server_nodes_restore(struct server *server, struct err *err)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct store_nodes nodes;
    int code = store_nodes(server->core.reader, &arena, &nodes, err);
    pthread_mutex_lock(&server->state_lock);
    for (size_t i = 0; code == 0 && i < nodes.count; i++)
        node_restore_known(server, &nodes.items[i]);
    pthread_mutex_unlock(&server->state_lock);
    return code;
}

static int restore_counters(void *context, struct job_id last_job, struct attempt_id last_attempt,
                            struct err *err)
{
    struct server *server = context;
    (void)err;
    return core_restore_counters(server->core.core, last_job, last_attempt);
}

static int restore_node(void *context, const struct node_record *node, struct err *err)
{
    struct server *server = context;
    pthread_mutex_lock(&server->state_lock);
    server_node(server, node->facts.name);
    pthread_mutex_unlock(&server->state_lock);
    return core_restore_node(server->core.core, node, err);
}

static int restore_cluster(void *context, const struct cluster_record *cluster, struct err *err)
{
    struct server *server = context;
    return core_restore_cluster(server->core.core, cluster, err);
}

static int restore_job(void *context, const struct job_record *job, struct text plan_bytes,
                       struct err *err)
{
    struct server *server = context;
    if (quarantine_why(server, job->id))
        return 0;
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
    if (quarantine_why(server, task->job)) {
        quarantine_task(server, task);
        return 0;
    }
    if (must_be_there(server, task)) {
        ARRAY_ADD(&server->core.running);
        server->core.running.items[server->core.running.count - 1].attempt = task->attempt;
        server->core.running.items[server->core.running.count - 1].engine =
            engine_of_node(server, task->node);
    }
    struct record record = {.kind = RECORD_TASK, .task = *task};
    hang_watch_take(server->hang_watch, &record, 1);
    use_watch_take(server->use_watch, &record, 1);
    return core_restore_task(server->core.core, task, err);
}

static int restore_rows(struct server *server, struct err *err)
{
    struct store_restore restore = {server,          restore_counters, restore_node,
                                    restore_cluster, restore_job,      restore_task};
    server->core.running.count = 0;
    server->core.quarantine.containers.count = 0;
    return store_restore(server->core.reader, &restore, err);
}

static int restore_once(struct server *server, struct err *err)
{
    struct core_thread *core = &server->core;
    int64_t begin_us = clock_monotonic_us(), now = core_thread_now(server);
    struct core_counts counts;
    struct event event;
    int code;
    batch_begin(core);
    core->wake_ms = 0;
    event = (struct event){
        .kind = EVENT_RESTORE, .now_ms = now, .user = "", .config = &server->config->core};
    store_numbers(server->store, &event.last_job, &event.last_attempt);
    core_thread_log(core, &event);
    core->core = core_new(&server->config->core, err);
    core->cores++;
    if (!core->core)
        return err->code;
    code = restore_rows(server, err);
    if (code == 0)
        code = core_restore_finish(core->core, now, &core->output, err);
    if (code == 0)
        code = batch_commit(server, err);
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
             (long long)(clock_monotonic_us() - begin_us) / 1000);
    return 0;
}

int server_restore(struct server *server, struct err *err)
{
    unsigned refusals = 0;
    int code;
    do
        code = restore_once(server, err);
    while (code == ERR_INTERNAL &&
           (quarantine_find(server, &refusals, err) || unstored_find(server)));
    if (code == 0)
        quarantine_settle(server);
    return code;
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

int server_engine_epoch(struct server *server, const struct server_engine *own, bool *has_begun,
                        struct err *err)
{
    struct attempt_id last = {0}, given;
    *has_begun = false;
    for (size_t i = 0; i < own->held_count; i++)
        if (own->held[i].v > last.v)
            last = own->held[i];
    struct job_id job;
    store_numbers(server->store, &job, &given);
    if (last.v <= given.v)
        return 0;
    *has_begun = true;
    return store_epoch_begin(server->store, last, "the engine holds tries that were never given",
                             err);
}

/* Does the core want this attempt, and there? */
static bool is_wanted(struct server *server, struct attempt_id attempt, uint8_t engine)
{
    const char *node = core_attempt_node(server->core.core, attempt);
    return node && engine_of_node(server, node) == engine;
}

/* Those that ran on it, or on an engine that is not configured any more, and that nobody has. */
static void running_settle(struct server *server, uint8_t engine, const struct id_map *there)
{
    struct core_thread *core = &server->core;
    size_t kept = 0;
    for (size_t i = 0; i < core->running.count; i++) {
        const struct attempt_id attempt = core->running.items[i].attempt;
        const uint8_t of = core->running.items[i].engine;
        if (of != engine && of != ENGINE_NONE)
            core->running.items[kept++] = core->running.items[i];
        else if (id_map_get(there, attempt.v) == MAP_NONE &&
                 core_attempt_is_live(core->core, attempt))
            post_lost(server, attempt);
    }
    core->running.count = kept;
}

void server_reconcile(struct server *server, struct server_engine *own)
{
    cleanup_id_map struct id_map there = {0};
    for (size_t i = 0; i < own->held_count; i++) {
        if (is_wanted(server, own->held[i], own->number)) {
            id_map_set(&there, own->held[i].v, 1);
            atomic_fetch_add(&server->metrics.adopted, 1);
        } else {
            leftover_take(server, own->number, own->held[i], true);
        }
    }
    running_settle(server, own->number, &there);
    free(own->held);
    own->held = NULL;
    own->held_count = 0;
    own->is_settled = true;
    launcher_open(server->launcher, own->number);
}

void server_nodes_away(struct server *server)
{
    pthread_mutex_lock(&server->state_lock);
    for (size_t i = 0; i < server->nodes.count; i++) {
        const struct node_known *node = &server->nodes.items[i];
        const struct server_engine *own;
        struct server_mail *mail;
        if (node->engine == ENGINE_NONE)
            continue;
        own = &server->engines.items[node->engine];
        if (atomic_load(&own->engine))
            continue;
        mail = mail_event(EVENT_NODE, "");
        mail->event.node = node_facts_keep(&mail->arena, &node->facts);
        mail->event.node.is_healthy = false;
        mail->event.node.engine = arena_copy(&mail->arena, text_of(own->name));
        mail->event.node.reason =
            arena_format(&mail->arena, "its engine is not there: %s", own->trouble);
        server_post_fact(server, mail);
    }
    pthread_mutex_unlock(&server->state_lock);
}
