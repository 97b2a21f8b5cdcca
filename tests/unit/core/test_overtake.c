/* A small job takes a place for which a large gang preempts: HiveD cancels that preemption in
 * pieces, and whatever happens between them leaves what it leaves when that is one step.
 * docs/rfc/0016-gangs-in-steps.md, "Others preempt for its places".
 *
 * Covers: src/core/part.c, src/core/start.c, src/core/schedule.c
 */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/state.h"
#include "core/tasks.h"

enum { NODES = 6, GPUS = 4, PIECES = 8, STEPS = 24, SLICE_LARGE = 1000 };

struct scene {
    struct world world;
    uint32_t weak, strong;
};

static void check_places(const struct world *world)
{
    struct err err = {0};
    if (core_check_places(world->core, &err))
        fail_msg("%s: %s", err.path, err.text);
}

static bool step(struct world *world)
{
    const bool goes_on = world_pass_step(world);
    check_places(world);
    return goes_on;
}

static uint32_t submit(struct world *world, const char *name, int32_t priority, uint32_t tasks,
                       bool is_gang)
{
    const struct plan_role role = world_role("a", tasks, 1, tasks > 1 ? 1 : GPUS);
    struct plan plan = world_plan_of(name, &role);
    plan.priority = priority;
    plan.is_gang = is_gang;
    return world_submit(world, &plan);
}

static enum waiting_state state_of(const struct world *world, uint32_t job)
{
    return core_job_find(world->core, (struct job_id){job})->waiting;
}

/* All nodes are in use, and one gang preempts all of them; then the small job, and so many steps.
 * False: it has been searched for. */
static bool scene_begin(struct scene *scene, bool is_gang, uint32_t slice, uint32_t steps)
{
    struct world *world = &scene->world;
    char name[16];
    world_init(world, "hived");
    world_keep(world);
    for (unsigned i = 1; i <= NODES; i++) {
        snprintf(name, sizeof name, "n%u", i);
        world_node(world, name, 16, GPUS);
    }
    core_slice_set(world->core, 1);
    world_timer(world, 1);
    world_pass_end(world);
    for (unsigned i = 1; i <= NODES; i++) {
        snprintf(name, sizeof name, "low%u", i);
        submit(world, name, 1, 1, true);
        world_pass_end(world);
        world_run(world, i);
    }
    scene->weak = submit(world, "weak", 20, NODES * GPUS, true);
    world_pass_end(world);
    assert_int_equal(state_of(world, scene->weak), WAITING_PREEMPTING);
    core_slice_set(world->core, slice);
    scene->strong = submit(world, "strong", 100, 1, is_gang);
    check_places(world);
    for (uint32_t i = 0; i < steps; i++)
        step(world);
    return world->core->is_searching;
}

static void steps_finish(struct world *world)
{
    while (step(world))
        ;
}

/* The only one; NULL: it has none. */
static const struct core_task *task_of(const struct world *world, uint32_t job)
{
    struct core_job *found = core_job_find(world->core, (struct job_id){job});
    return found ? core_task_find(world->core, core_job_slot(world->core, found),
                                  (struct task_ref){0, 0})
                 : NULL;
}

static const char *strong_place(const struct scene *scene)
{
    return core_node_at(scene->world.core, task_of(&scene->world, scene->strong)->node)->facts.name;
}

/* Those who run are stopped, one after the other. */
static void lows_end(struct world *world)
{
    enum { PAUSE_MS = 3600000 };
    for (uint32_t i = 1; i <= NODES; i++) {
        const struct core_task *task = task_of(world, i);
        const uint64_t attempt = task ? task->attempt.v : 0;
        world_ask(world, EVENT_STOP, i);
        if (attempt)
            world_exit(world, attempt, 143, 0);
        steps_finish(world);
    }
    world_timer(world, PAUSE_MS); /* who has preempted in vain may do so again */
    steps_finish(world);
}

/* The strong one gets its place first, then the weak one. */
static void scene_end(struct scene *scene, const char *node)
{
    struct world *world = &scene->world;
    lows_end(world);
    assert_int_equal(state_of(world, scene->strong), WAITING_NOT);
    if (node)
        assert_string_equal(strong_place(scene), node);
    const uint64_t attempt = task_of(&scene->world, scene->strong)->attempt.v;
    world_run(world, attempt);
    world_exit(world, attempt, 0, 0);
    steps_finish(world);
    assert_int_equal(state_of(world, scene->weak), WAITING_NOT);
    world_release(world);
}

/* Its place, when nothing is cut. */
static const char *place_at_once(bool is_gang)
{
    static char place[16];
    struct scene scene;
    assert_false(scene_begin(&scene, is_gang, SLICE_LARGE, 0));
    assert_int_equal(state_of(&scene.world, scene.strong), WAITING_PREEMPTING);
    lows_end(&scene.world);
    snprintf(place, sizeof place, "%s", strong_place(&scene));
    world_release(&scene.world);
    return place;
}

static void the_large_gang_gives_back_in_steps(void **state)
{
    (void)state;
    for (int is_gang = 0; is_gang < 2; is_gang++) {
        struct scene scene;
        const char *place = place_at_once(is_gang);
        uint32_t steps = 0;
        assert_true(scene_begin(&scene, is_gang, 1, 0));
        while (scene.world.core->is_searching && step(&scene.world))
            steps++;
        assert_in_range(steps, PIECES, STEPS);
        steps_finish(&scene.world);
        assert_int_equal(state_of(&scene.world, scene.strong), WAITING_PREEMPTING);
        scene_end(&scene, place);
    }
}

static void it_may_be_stopped_at_every_step(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < STEPS; steps++)
        for (int is_gang = 0; is_gang < 2; is_gang++) {
            struct scene scene;
            struct world *world = &scene.world;
            scene_begin(&scene, is_gang, 1, steps);
            assert_int_equal(world_ask(world, EVENT_STOP, scene.strong), 0);
            steps_finish(world);
            lows_end(world);
            assert_int_equal(state_of(world, scene.weak), WAITING_NOT);
            world_release(world);
        }
}

static void the_large_gang_may_be_stopped_at_every_step(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < STEPS; steps++)
        for (int is_gang = 0; is_gang < 2; is_gang++) {
            struct scene scene;
            scene_begin(&scene, is_gang, 1, steps);
            assert_int_equal(world_ask(&scene.world, EVENT_STOP, scene.weak), 0);
            steps_finish(&scene.world);
            lows_end(&scene.world);
            assert_int_equal(state_of(&scene.world, scene.strong), WAITING_NOT);
            world_release(&scene.world);
        }
}

/* A job ends, a node comes, and one is lost and comes again. */
static void others_end_and_nodes_change_at_every_step(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < STEPS; steps++)
        for (int is_gang = 0; is_gang < 2; is_gang++) {
            struct scene scene;
            struct world *world = &scene.world;
            scene_begin(&scene, is_gang, 1, steps);
            world_exit(world, 1 + steps % NODES, 0, 0);
            check_places(world);
            if (steps % 2)
                world_node(world, "n2", 16, GPUS);
            else
                world_node(world, "n7", 16, GPUS);
            check_places(world);
            scene_end(&scene, NULL);
        }
}

static void a_copy_goes_on_alike(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < STEPS; steps++)
        for (int is_gang = 0; is_gang < 2; is_gang++) {
            struct scene scene;
            struct world *world = &scene.world, twin;
            scene_begin(&scene, is_gang, 1, steps);
            twin = *world;
            twin.rows = NULL;
            output_init(&twin.output);
            twin.core = core_copy(world->core);
            for (bool goes_on = true; goes_on;) {
                goes_on = step(world);
                assert_int_equal(step(&twin), goes_on);
                if (goes_on)
                    assert_int_equal(twin.output.trace.count, world->output.trace.count);
                assert_true(core_hash(twin.core) == core_hash(world->core));
            }
            core_free(twin.core);
            output_release(&twin.output);
            scene_end(&scene, NULL);
        }
}

static void another_core_begins_anew(void **state)
{
    (void)state;
    for (uint32_t steps = 0; steps < STEPS; steps++)
        for (int is_gang = 0; is_gang < 2; is_gang++) {
            struct scene scene;
            scene_begin(&scene, is_gang, 1, steps);
            world_restart(&scene.world);
            steps_finish(&scene.world);
            scene_end(&scene, NULL);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_large_gang_gives_back_in_steps),
    cmocka_unit_test(it_may_be_stopped_at_every_step),
    cmocka_unit_test(the_large_gang_may_be_stopped_at_every_step),
    cmocka_unit_test(others_end_and_nodes_change_at_every_step),
    cmocka_unit_test(a_copy_goes_on_alike),
    cmocka_unit_test(another_core_begins_anew),
};
UNIT_FILE(tests, NULL, NULL);
