#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "job_world.h"

void world_init(struct job_world *world, const int *instances)
{
    static const char *const names[WORLD_ROLES_MAX] = {"a", "b", "c", "d"};
    *world = (struct job_world){.now_ms = 1000000};
    arena_init(&world->arena);
    world->out.arena = &world->arena;
    uint16_t count = 0;
    for (; instances[count] >= 0; count++)
        world->roles[count] = (struct job_role_policy){
            .name = names[count],
            .instances = (uint32_t)instances[count],
            .min_failed = 1,
            .min_succeeded = -1,
        };
    world->policy = (struct job_policy){
        .retry = {.is_fancy = true},
        .is_gang = true,
        .backoff = {60, 900},
        .kill_grace_ms = 10000,
        .preemption_grace_ms = 30000,
        .roles = world->roles,
        .role_count = count,
    };
}

void world_begin(struct job_world *world)
{
    job_init(&world->job, &world->policy, world->now_ms, &world->out);
}

void world_release(struct job_world *world)
{
    job_release(&world->job);
    job_output_release(&world->out);
    arena_release(&world->arena);
}

void world_step(struct job_world *world, struct job_event event)
{
    world->now_ms += 10;
    world->out.count = 0;
    arena_clear(&world->arena);
    event.now_ms = world->now_ms;
    event.random = world->random;
    event.attempt_last = &world->attempt_last;
    job_step(&world->job, &world->policy, &event, &world->out);
}

void world_place(struct job_world *world)
{
    world_step(world, (struct job_event){.kind = JOB_EVENT_PLACED});
}

void world_run(struct job_world *world, uint16_t role, uint16_t index)
{
    world_step(world, (struct job_event){.kind = JOB_EVENT_TASK_PREPARING, .task = {role, index}});
    world_step(world, (struct job_event){.kind = JOB_EVENT_TASK_RUNNING, .task = {role, index}});
}

void world_run_all(struct job_world *world)
{
    world_place(world);
    for (uint16_t r = 0; r < world->policy.role_count; r++)
        for (uint16_t i = 0; i < job_role_count(&world->job, &world->policy, r); i++)
            if (world_task(world, r, i)->state == LIFE_CREATION_REQUESTED)
                world_run(world, r, i);
}

void world_exit(struct job_world *world, uint16_t role, uint16_t index, int32_t code,
                uint8_t attributes)
{
    struct completion completion = completion_of(code, "%s", "");
    completion.attributes = attributes;
    world_step(world, (struct job_event){.kind = JOB_EVENT_TASK_EXITED,
                                         .task = {role, index},
                                         .completion = &completion});
}

void world_simple(struct job_world *world, enum job_event_kind kind)
{
    world_step(world, (struct job_event){.kind = kind});
}

void world_timer(struct job_world *world)
{
    const int64_t due = job_wake_ms(&world->job, &world->policy);
    assert_true(due > 0);
    world->now_ms = due;
    world_simple(world, JOB_EVENT_TIMER);
}

void world_scale(struct job_world *world, uint16_t role, uint32_t instances, int32_t min_failed)
{
    world_step(world,
               (struct job_event){
                   .kind = JOB_EVENT_SCALE,
                   .scale = {.role = role, .instances = instances, .min_failed = &min_failed}});
}

const struct job_task *world_task(const struct job_world *world, uint16_t role, uint16_t index)
{
    return job_task_find(&world->job, (struct task_ref){role, index});
}

size_t world_count(const struct job_world *world, enum job_action_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < world->out.count; i++)
        count += world->out.items[i].kind == kind;
    return count;
}

const struct job_action *world_find(const struct job_world *world, enum job_action_kind kind)
{
    for (size_t i = 0; i < world->out.count; i++)
        if (world->out.items[i].kind == kind)
            return &world->out.items[i];
    return NULL;
}

const char *world_story(const struct job_world *world, const char *reason)
{
    for (size_t i = 0; i < world->out.count; i++)
        if (world->out.items[i].kind == JOB_ACTION_STORY &&
            strcmp(world->out.items[i].reason, reason) == 0)
            return world->out.items[i].message;
    return NULL;
}
