/* walk_check.c — what must hold while nothing moves; see walk.h. */
#include "faults.h"
#include "quiet.h"
#include "unit.h"
#include "walk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/plan.h"
#include "rounds.h"
#include "server/state.h"

/* All that is looked at is of one instant. */
struct look {
    struct walk *walk;
    struct store_reader *reader;
    struct arena arena;
    struct err err;
    struct yard_container containers[YARD_CONTAINERS_MAX];
    size_t container_count;
    uint64_t jobs_live, tasks_live, gpus_used; /* by the rows */
};

static const struct yard_container *container_of(const struct look *look, struct attempt_id attempt)
{
    for (size_t i = 0; i < look->container_count; i++)
        if (look->containers[i].attempt.v == attempt.v)
            return &look->containers[i];
    return NULL;
}

/* --- rows against what was answered --- */

static void task_check(struct look *look, const struct task_record *task)
{
    const struct yard_container *container = container_of(look, task->attempt);
    const unsigned long long number = task->attempt.v;

    if (!task->attempt.v || task->state >= LIFE_ATTEMPT_COMPLETED)
        return;
    look->tasks_live++;
    look->gpus_used += task->gpu_count;
    if (!container)
        walk_fail(look->walk, "attempt %llu is live in state %d, and has no container", number,
                  task->state);
    if (strcmp(task->node, yard_node_name(container->node)) != 0)
        walk_fail(look->walk, "attempt %llu is on another node than its row says", number);
    if (task->state == LIFE_RUNNING && container->phase == YARD_MADE)
        walk_fail(look->walk, "attempt %llu runs only by its row", number);
    if (task->state < LIFE_RUNNING && container->phase == YARD_RUNS)
        walk_fail(look->walk, "attempt %llu runs, and its row does not say so", number);
}

static void job_compare(struct look *look, const struct walk_job *job, const struct store_job *row)
{
    const bool is_over = row->record.state == LIFE_COMPLETED;

    if (strcmp(row->record.name, job->name) != 0)
        walk_fail(look->walk, "job %u is %s instead of %s", job->id.v, row->record.name, job->name);
    if (row->record.is_stop_requested != job->is_stopped && !is_over)
        walk_fail(look->walk, "%s: its row says that a stop was %s", job->name,
                  job->is_stopped ? "not taken" : "taken");
}

static void job_check(struct look *look, const struct walk_job *job)
{
    struct store_job row;
    struct store_tasks tasks;
    const int code = store_job_read(look->reader, job->id, &look->arena, &row, &look->err);

    if (code == ERR_NOT_FOUND && job->is_there)
        walk_fail(look->walk, "%s was taken, and is not there", job->name);
    if (code == ERR_NOT_FOUND)
        return;
    if (code < 0)
        walk_fail(look->walk, "%s cannot be read: %s", job->name, look->err.text);
    if (!job->is_there)
        walk_fail(look->walk, "%s is there, and should not be", job->name);
    job_compare(look, job, &row);
    if (store_tasks(look->reader, job->id, -1, &look->arena, &tasks, &look->err) < 0)
        walk_fail(look->walk, "tasks of %s: %s", job->name, look->err.text);
    size_t wanted = 0, held = 0;
    for (size_t i = 0; i < tasks.count; i++) {
        wanted += !tasks.items[i].is_deletion_pending;
        held += tasks.items[i].is_held;
        task_check(look, &tasks.items[i]);
    }
    look->jobs_live += row.record.state != LIFE_COMPLETED || held > 0;
    if (wanted != job->instances && row.record.state != LIFE_COMPLETED)
        walk_fail(look->walk, "%s has %zu tasks instead of %u", job->name, wanted, job->instances);
}

static void jobs_check(struct look *look)
{
    struct walk *walk = look->walk;
    const struct job_filter filter = {.limit = 1000};
    struct job_page page;
    size_t wanted = 0;

    for (size_t i = 0; i < walk->job_count; i++) {
        job_check(look, &walk->jobs[i]);
        wanted += walk->jobs[i].is_there;
    }
    store_job_list(walk->world->service->store, &filter, &look->arena, &page);
    if (page.total != wanted)
        walk_fail(walk, "there are %llu jobs instead of %zu", (unsigned long long)page.total,
                  wanted);
}

/* --- the engine --- */

/* Held for debugging: its row says so, and the job has not been started again. */
static bool is_held(struct look *look, const struct task_record *task)
{
    struct store_job row;

    return task->is_held &&
           store_job_read(look->reader, task->job, &look->arena, &row, &look->err) == 0 &&
           row.record.attempt == task->job_attempt;
}

/* Only what is live has a container, or what is held for debugging. */
static void container_check(struct look *look, const struct yard_container *container)
{
    const unsigned long long number = container->attempt.v;
    struct task_record task;

    if (look->walk->is_unreadable)
        return;
    if (store_attempt(look->reader, container->attempt, &look->arena, &task, &look->err) < 0)
        walk_fail(look->walk, "attempt %llu has a container, and no row: %s", number,
                  look->err.text);
    if (task.state < LIFE_ATTEMPT_COMPLETED) {
        if (container->phase == YARD_ENDED && container->is_told)
            walk_fail(look->walk, "the end of attempt %llu was told, and is not known", number);
        return;
    }
    if (container->phase != YARD_ENDED)
        walk_fail(look->walk, "attempt %llu has ended, and its container goes on", number);
    if (container->is_told && !is_held(look, &task))
        walk_fail(look->walk, "attempt %llu has ended, and its container is left", number);
}

static void containers_check(struct look *look)
{
    if (yard_wrong()[0])
        walk_fail(look->walk, "%s", yard_wrong());
    for (size_t i = 0; i < look->container_count; i++)
        container_check(look, &look->containers[i]);
}

/* --- what is no job's --- */

static void nodes_check(struct look *look)
{
    struct store_nodes nodes;

    if (store_nodes(look->reader, &look->arena, &nodes, &look->err) < 0)
        walk_fail(look->walk, "nodes: %s", look->err.text);
    for (size_t i = 0; i < nodes.count; i++)
        for (unsigned n = 0; n < YARD_NODES; n++)
            if (strcmp(nodes.items[i].facts.name, yard_node_name(n)) == 0 &&
                nodes.items[i].closing.is_closed != look->walk->is_cordoned[n])
                walk_fail(look->walk, "node %s: its row says that it is%s closed",
                          yard_node_name(n), look->walk->is_cordoned[n] ? " not" : "");
}

static unsigned setting_of(struct look *look)
{
    struct text value;

    if (store_setting(look->reader, "walk", &look->arena, &value, &look->err) < 0)
        return 0;
    return (unsigned)strtoul(arena_copy(&look->arena, value), NULL, 10);
}

static bool is_cluster_closed(struct look *look)
{
    struct store_clusters clusters;

    if (store_closed_clusters(look->reader, &look->arena, &clusters, &look->err) < 0)
        walk_fail(look->walk, "clusters: %s", look->err.text);
    return clusters.count > 0;
}

static void audits_check(struct look *look)
{
    const struct audit_filter filter = {.limit = 10000};
    const struct walk *walk = look->walk;
    struct store_audits audits;
    unsigned requests = 0, reloads = 0;

    if (store_audits(look->reader, &filter, &look->arena, &audits, &look->err) < 0)
        walk_fail(walk, "audit: %s", look->err.text);
    for (size_t i = 0; i < audits.count; i++) {
        requests += strcmp(audits.items[i].route, "walk") == 0;
        reloads += strstr(audits.items[i].route, "configuration") != NULL;
    }
    if (requests < walk->audits || requests > walk->audits + walk->audits_doubtful)
        walk_fail(walk, "%u requests are written down instead of %u (%u got no answer)", requests,
                  walk->audits, walk->audits_doubtful);
    if (reloads < walk->reloads || reloads > walk->reloads + walk->reloads_doubtful)
        walk_fail(walk, "%u reloads are written down instead of %u (%u met a power failure)",
                  reloads, walk->reloads, walk->reloads_doubtful);
}

static void admin_check(struct look *look)
{
    const struct walk *walk = look->walk;

    nodes_check(look);
    if (is_cluster_closed(look) != walk->is_closed)
        walk_fail(walk, "the virtual cluster is%s closed", walk->is_closed ? " not" : "");
    if (setting_of(look) != walk->setting)
        walk_fail(walk, "the setting is %u instead of %u", setting_of(look), walk->setting);
    audits_check(look);
}

/* --- the core --- */

static int take_counters(void *core, struct job_id job, struct attempt_id attempt, struct err *err)
{
    (void)err;
    return core_restore_counters(core, job, attempt);
}

static int take_node(void *core, const struct node_record *node, struct err *err)
{
    return core_restore_node(core, node, err);
}

static int take_cluster(void *core, const struct cluster_record *cluster, struct err *err)
{
    return core_restore_cluster(core, cluster, err);
}

static int take_job(void *core, const struct job_record *job, struct text plan, struct err *err)
{
    struct plan *own = plan_decode(plan, err);

    return own ? core_restore_job(core, job, own, err) : ERR_CORRUPT;
}

static int take_task(void *core, const struct task_record *task, struct err *err)
{
    return core_restore_task(core, task, err);
}

/* What a restart would make of the rows now. */
static struct core *rows_core_make(struct look *look, struct output *output)
{
    struct server *server = look->walk->world->server;
    struct core *core = core_new(&server->config->core, &look->err);
    const struct store_restore restore = {core,         take_counters, take_node,
                                          take_cluster, take_job,      take_task};

    assert_non_null(core);
    if (store_restore(look->reader, &restore, &look->err) < 0 ||
        core_restore_finish(core, server->core.clock.now_ms, output, &look->err) < 0)
        walk_fail(look->walk, "no core can be made of the rows: %s", look->err.text);
    return core;
}

/* Unless a restart is the occasion for more, it changes nothing. */
static void core_compare(struct look *look)
{
    struct core *core = look->walk->world->server->core.core;
    cleanup_output struct output output;

    output_init(&output);
    if (!core)
        walk_fail(look->walk, "there is no core");
    core_check(core);
    if (core_check_places(core, &look->err) < 0)
        walk_fail(look->walk, "places: %s", look->err.text);
    cleanup_core struct core *other = rows_core_make(look, &output);
    core_check(other);
    if (output.records.count == 0 && core_hash(core) != core_hash(other))
        walk_fail(look->walk, "the rows make another core than the one there is");
}

static void metric_check(struct look *look, const char *text, const char *name, uint64_t wanted)
{
    const char *line = arena_format(&look->arena, "\n%s ", name), *at = strstr(text, line);

    assert_non_null(at);
    const uint64_t value = strtoull(at + strlen(line), NULL, 10);
    if (value != wanted)
        walk_fail(look->walk, "%s is %llu instead of %llu", name, (unsigned long long)value,
                  (unsigned long long)wanted);
}

static void metrics_check(struct look *look)
{
    const struct {
        const char *name;
        uint64_t wanted;
    } metrics[] = {
        {"skep_jobs_live", look->jobs_live},
        {"skep_tasks_live", look->tasks_live},
        {"skep_gpus_used", look->gpus_used},
        {"skep_store_writable", 1},
        {"skep_facts_kept", 0},
        {"skep_commands_waiting", 0},
        {"skep_events_set_aside_total", 0},
        {"skep_jobs_quarantined", 0},
        {"skep_nodes_unstored", 0},
        {"skep_store_deletions", 0},
    };
    struct service *service = look->walk->world->service;
    cleanup_buf struct buf text = BUF_INIT;

    service->metrics(service->context, &text);
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
        metric_check(look, buf_cstr(&text), metrics[i].name, metrics[i].wanted);
}

static void look_begin(struct look *look, struct walk *walk)
{
    struct service *service = walk->world->service;

    look->walk = walk;
    look->jobs_live = look->tasks_live = look->gpus_used = 0;
    arena_init(&look->arena);
    look->reader = service->reader_get(service->context, &look->err);
    assert_non_null(look->reader);
    walk->reader = look->reader;
    look->container_count = yard_containers(look->containers);
}

static void look_end(struct look *look)
{
    struct service *service = look->walk->world->service;

    service->reader_put(service->context, look->reader);
    look->walk->reader = NULL;
    arena_release(&look->arena);
}

void walk_check(struct walk *walk)
{
    static struct look look;

    walk_hold(walk);
    look_begin(&look, walk);
    jobs_check(&look);
    containers_check(&look);
    admin_check(&look);
    core_compare(&look);
    metrics_check(&look);
    look_end(&look);
    quiet_release();
}

void walk_check_empty(struct walk *walk)
{
    static const char *const tables[] = {
        "jobs",    "job_plans", "job_sources", "job_attempts",  "tasks",
        "stories", "tags",      "barriers",    "task_attempts", "attempt_ends"};
    static struct yard_container containers[YARD_CONTAINERS_MAX];

    if (yard_containers(containers) > 0)
        walk_fail(walk, "attempt %llu is left in the yard",
                  (unsigned long long)containers[0].attempt.v);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        const char *query = arena_format(&walk->world->arena, "SELECT count(*) FROM %s", tables[i]);
        const int64_t rows = number(walk->world, query);
        if (rows > 0)
            walk_fail(walk, "%lld rows of deleted jobs are left in %s", (long long)rows, tables[i]);
    }
    if (number(walk->world, "SELECT count(*) FROM event_log a JOIN event_log b ON b.sequence = "
                            "a.sequence + 1 WHERE b.at_ms < a.at_ms") > 0)
        walk_fail(walk, "the event log goes back in time");
}

/* --- what has become of what was not answered --- */

static void job_learn(struct look *look, struct walk_job *job)
{
    struct job_id id;
    struct store_job row;
    struct store_tasks tasks;
    const int code = store_job_find(look->walk->world->service->store, TEXT("admin"),
                                    text_of(job->name), &id, &look->err);

    job->is_doubtful = false;
    job->is_gone = job->is_gone || (job->is_there && code == ERR_NOT_FOUND);
    job->is_there = code == 0;
    if (code < 0)
        return;
    if (job->id.v && job->id.v != id.v)
        walk_fail(look->walk, "%s has become job %u", job->name, id.v);
    job->id = id;
    if (store_job_read(look->reader, id, &look->arena, &row, &look->err) < 0 ||
        store_tasks(look->reader, id, -1, &look->arena, &tasks, &look->err) < 0)
        walk_fail(look->walk, "%s cannot be read: %s", job->name, look->err.text);
    job->is_stopped = row.record.is_stop_requested;
    job->instances = 0;
    for (size_t i = 0; i < tasks.count; i++)
        job->instances += !tasks.items[i].is_deletion_pending;
}

static void admin_learn(struct look *look)
{
    struct walk *walk = look->walk;
    struct store_nodes nodes;

    walk->is_admin_doubtful = false;
    walk->is_closed = is_cluster_closed(look);
    walk->setting = setting_of(look);
    if (store_nodes(look->reader, &look->arena, &nodes, &look->err) < 0)
        walk_fail(walk, "nodes: %s", look->err.text);
    for (size_t i = 0; i < nodes.count; i++)
        for (unsigned n = 0; n < YARD_NODES; n++)
            if (strcmp(nodes.items[i].facts.name, yard_node_name(n)) == 0)
                walk->is_cordoned[n] = nodes.items[i].closing.is_closed;
}

void walk_learn(struct walk *walk)
{
    static struct look look;

    look_begin(&look, walk);
    for (size_t i = 0; i < walk->job_count; i++)
        if (walk->jobs[i].is_doubtful)
            job_learn(&look, &walk->jobs[i]);
    if (walk->is_admin_doubtful)
        admin_learn(&look);
    look_end(&look);
}
