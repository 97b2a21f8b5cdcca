#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/rows.h"
#include "core/state.h"
#include "core/trial.h"

void world_init(struct world *world, const char *policy)
{
    *world = (struct world){.now_ms = WORLD_START_MS};
    core_config_default(&world->config);
    world->config.policy = policy;
    world->core = core_new(&world->config, NULL);
    assert(world->core);
    output_init(&world->output);
}

void world_release(struct world *world)
{
    core_free(world->core);
    output_release(&world->output);
    rows_free(world->rows);
}

static void world_check(const struct world *world)
{
    struct err err = {0};
    core_check(world->core);
    if (core_check_places(world->core, &err))
        printf("%s: %s\n", err.path, err.text);
    assert(!err.code);
    for (size_t i = 0; i < world->output.commands.count; i++) {
        const struct command *command = &world->output.commands.items[i];
        assert(command->kind != COMMAND_WAKE || command->at_ms >= world->now_ms);
    }
}

void world_keep(struct world *world)
{
    world->rows = rows_new();
}

void world_restart(struct world *world)
{
    struct err err = {0};
    core_free(world->core);
    world->core = core_new(&world->config, &err);
    assert(world->core);
    output_clear(&world->output);
    int code = rows_restore(world->rows, world->core, world->now_ms, &world->output, &err);
    if (code)
        printf("%s: %s\n", err.path, err.text);
    assert(!code);
    rows_apply(world->rows, &world->output);
    world_check(world);
}

void world_step(struct world *world, struct event *event)
{
    world->now_ms += 10;
    event->now_ms = world->now_ms;
    event->random = (uint64_t)world->now_ms * 0x9e3779b97f4a7c15u;
    event->request = ++world->request;
    if (!event->user)
        event->user = "";
    struct plan *plan =
        world->rows && event->kind == EVENT_SUBMIT ? plan_copy(event->submit.plan) : NULL;
    output_clear(&world->output);
    core_step(world->core, event, &world->output);
    world_check(world);
    if (plan && !world_answer(world)->code)
        rows_plan(world->rows, world_answer(world)->job.v, plan);
    plan_free(plan);
    if (world->rows)
        rows_apply(world->rows, &world->output);
}

void world_node(struct world *world, const char *name, uint32_t cpu, uint32_t gpu)
{
    struct event event = {
        .kind = EVENT_NODE,
        .node = {.name = name,
                 .cpu = cpu,
                 .memory_mib = cpu * 1024u,
                 .gpu_count = gpu,
                 .gpu_type = gpu ? "V100" : "",
                 .is_healthy = true,
                 .address = "10.0.0.1"},
    };
    world_step(world, &event);
}

void world_node_event(struct world *world, enum event_kind kind, const char *name)
{
    struct event event = {.kind = kind, .node = {.name = name, .address = ""}};
    world_step(world, &event);
}

struct plan_role world_role(const char *name, uint32_t instances, uint32_t cpu, uint32_t gpu)
{
    static const struct plan_port ports[] = {{"ssh", 1, 0}, {"http", 1, 0}};
    struct plan_role role = plan_role_of(name);
    role.instances = instances;
    role.cpu = cpu;
    role.gpu = gpu;
    role.memory_mib = 100;
    role.ports = ports;
    role.port_count = 2;
    return role;
}

struct plan world_plan(const char *name)
{
    return (struct plan){
        .name = name,
        .user = "alice",
        .virtual_cluster = "default",
        .priority = 10,
        .is_retry_fancy = true,
        .is_gang = true,
    };
}

struct plan world_plan_of(const char *name, const struct plan_role *role)
{
    struct plan plan = world_plan(name);
    plan.roles = role;
    plan.role_count = 1;
    return plan;
}

uint32_t world_submit(struct world *world, const struct plan *plan)
{
    struct event event = {
        .kind = EVENT_SUBMIT,
        .user = plan->user,
        .submit = {.plan = plan_copy(plan)},
    };
    world_step(world, &event);
    const struct answer *answer = world_answer(world);
    assert(answer);
    return answer->code ? 0 : answer->job.v;
}

uint32_t world_submit_simple(struct world *world, const char *name, uint32_t instances,
                             uint32_t cpu, uint32_t gpu)
{
    struct plan_role role = world_role("worker", instances, cpu, gpu);
    struct plan plan = world_plan_of(name, &role);
    return world_submit(world, &plan);
}

int world_ask(struct world *world, enum event_kind kind, uint32_t job)
{
    struct event event = {.kind = kind, .user = "alice"};
    event.start = (struct recall){.job = {job}};
    if (kind != EVENT_START)
        event.job.v = job;
    world_step(world, &event);
    return world_answer(world)->code;
}

static void task_event(struct world *world, enum event_kind kind, uint64_t attempt)
{
    struct event event = {.kind = kind, .task = {.attempt = {attempt}}};
    world_step(world, &event);
}

void world_run(struct world *world, uint64_t attempt)
{
    task_event(world, EVENT_TASK_PREPARING, attempt);
    task_event(world, EVENT_TASK_STARTED, attempt);
}

void world_exit(struct world *world, uint64_t attempt, int code, uint8_t attributes)
{
    struct event event = {.kind = EVENT_TASK_EXITED, .task = {.attempt = {attempt}}};
    event.task.completion = completion_of(code, "%s", "said the test");
    event.task.completion.attributes = attributes;
    world_step(world, &event);
}

void world_configure(struct world *world)
{
    struct event event = {.kind = EVENT_CONFIG, .config = &world->config};
    world_step(world, &event);
}

void world_timer(struct world *world, int64_t after_ms)
{
    world->now_ms += after_ms;
    struct event event = {.kind = EVENT_TIMER};
    world_step(world, &event);
}

bool world_pass_step(struct world *world)
{
    int64_t next_ms = world->core->pass.next_ms;
    if (!next_ms && !world->core->going_jobs.count && !core_order_changes(world->core))
        return false;
    world_timer(world, next_ms > world->now_ms ? next_ms - world->now_ms : 0);
    return true;
}

uint32_t world_pass_end(struct world *world)
{
    uint32_t count = 0;
    while (world_pass_step(world))
        count++;
    return count;
}

const struct command *world_command(const struct world *world, enum command_kind kind, size_t nth)
{
    for (size_t i = 0; i < world->output.commands.count; i++)
        if (world->output.commands.items[i].kind == kind && nth-- == 0)
            return &world->output.commands.items[i];
    return NULL;
}

size_t world_command_count(const struct world *world, enum command_kind kind)
{
    size_t count = 0;
    while (world_command(world, kind, count))
        count++;
    return count;
}

const struct job_record *world_job(const struct world *world, uint32_t job)
{
    const struct job_record *found = NULL;
    for (size_t i = 0; i < world->output.records.count; i++) {
        const struct record *record = &world->output.records.items[i];
        if (record->kind == RECORD_JOB && record->job.id.v == job &&
            (!found || record->job.attempt >= found->attempt))
            found = &record->job;
    }
    return found;
}

const struct task_record *world_task(const struct world *world, uint32_t job, uint16_t role,
                                     uint16_t index)
{
    const struct task_record *found = NULL;
    for (size_t i = 0; i < world->output.records.count; i++) {
        const struct record *record = &world->output.records.items[i];
        if (record->kind == RECORD_TASK && record->task.job.v == job &&
            record->task.task.role == role && record->task.task.index == index)
            found = &record->task;
    }
    return found;
}

size_t world_story_count(const struct world *world, const char *reason)
{
    size_t count = 0;
    for (size_t i = 0; i < world->output.records.count; i++) {
        const struct record *record = &world->output.records.items[i];
        count += record->kind == RECORD_STORY && strcmp(record->story.reason, reason) == 0;
    }
    return count;
}

bool world_has_trace(const struct world *world, const char *part)
{
    for (size_t i = 0; i < world->output.trace.count; i++)
        if (strstr(world->output.trace.items[i], part))
            return true;
    return false;
}

const struct node_record *world_node_row(const struct world *world)
{
    const struct node_record *node = NULL;
    for (size_t i = 0; i < world->output.records.count; i++)
        if (world->output.records.items[i].kind == RECORD_NODE)
            node = &world->output.records.items[i].node;
    return node;
}

bool world_has_story(const struct world *world, const char *reason, const char *part)
{
    for (size_t i = 0; i < world->output.records.count; i++) {
        const struct record *record = &world->output.records.items[i];
        if (record->kind == RECORD_STORY && strcmp(record->story.reason, reason) == 0 &&
            strstr(record->story.message, part))
            return true;
    }
    return false;
}

const struct answer *world_answer(const struct world *world)
{
    return world->output.answers.count ? &world->output.answers.items[0] : NULL;
}

const char *const world_two_clusters =
    "physicalCluster:\n"
    "  cellTypes: {NODE: {childCellType: G, childCellNumber: 4, isNodeLevel: true}}\n"
    "  physicalCells: [{cellType: NODE, cellAddress: n1}, {cellType: NODE, cellAddress: n2}]\n"
    "virtualClusters:\n"
    "  red: {virtualCells: [{cellType: NODE, cellNumber: 1}]}\n"
    "  blue: {virtualCells: [{cellType: NODE, cellNumber: 1}]}\n";

uint32_t world_submit_for(struct world *world, const char *name, int32_t priority, uint32_t gpu,
                          uint64_t limit_s)
{
    struct plan plan = world_plan(name);
    struct plan_role role = world_role("worker", 1, 1, gpu);
    plan.roles = &role;
    plan.role_count = 1;
    plan.priority = priority;
    plan.time_limit_s = limit_s;
    return world_submit(world, &plan);
}

int world_recall(struct world *world, uint32_t job, struct text extra, const struct plan *plan)
{
    struct job_record record = {.id = {job}, .extra = extra, .reason = ""};
    struct event event = {.kind = EVENT_START};
    event.start = (struct recall){{job}, &record, plan_copy(plan)};
    world_step(world, &event);
    return world_answer(world)->code;
}

uint32_t world_submit_role(struct world *world, const char *name, int32_t priority,
                           struct plan_role role)
{
    struct plan plan = world_plan_of(name, &role);
    plan.priority = priority;
    return world_submit(world, &plan);
}

void world_reconfigure(struct world *world, const char *document)
{
    struct event event = {.kind = EVENT_CONFIG, .config = &world->config};
    world->config.placement_document = text_of(document);
    world_step(world, &event);
    assert_int_equal(world_answer(world)->code, 0);
}

uint32_t world_submit_to(struct world *world, const char *name, const char *cluster,
                         int32_t priority, uint32_t gpu)
{
    struct plan_role role = world_role("worker", 1, 1, gpu);
    struct plan plan = world_plan_of(name, &role);
    plan.virtual_cluster = cluster;
    plan.priority = priority;
    return world_submit(world, &plan);
}

void world_two_clusters_init(struct world *world)
{
    world_init(world, "hived");
    world_node(world, "n1", 8, 4);
    world_node(world, "n2", 8, 4);
    world_reconfigure(world, world_two_clusters);
}

int world_trial(struct world *world, struct event *submit, struct arena *arena,
                struct core_trial *trial, struct err *err)
{
    enum { STEPS_MAX = 4000 };
    struct core *copy = core_copy(world->core);
    uint32_t steps = 0;
    while (!core_trial_prepare(copy, submit->now_ms))
        assert(++steps < STEPS_MAX);
    int code = core_trial(copy, submit, arena, trial, err);
    core_free(copy);
    return code;
}
