/* A gang lies on the nodes of one engine: docs/rfc/0019-several-engines.md. The nodes of the engine
 * "a" are a1, a2, …
 *
 * Covers: src/core/engines.c, src/core/start.c, src/core/reserve.c
 */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/state.h"
#include "core/tasks.h"

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

enum { GPUS = 4, STARVES_MS = 601000 };

static void node_tell(struct world *world, const char *name, bool is_healthy)
{
    const char engine[2] = {name[0], '\0'};
    struct event event = {
        .kind = EVENT_NODE,
        .node = {.name = name,
                 .engine = engine,
                 .cpu = 16,
                 .memory_mib = 16384,
                 .gpu_count = GPUS,
                 .gpu_type = "V100",
                 .is_healthy = is_healthy,
                 .address = "10.0.0.1"},
    };
    world_step(world, &event);
}

static void begin(struct world *world, const char *policy, const char *const *nodes)
{
    world_init(world, policy);
    for (size_t i = 0; nodes[i]; i++)
        node_tell(world, nodes[i], true);
    world_timer(world, 1);
}

#define NODES(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static uint32_t submit(struct world *world, const char *name, int32_t priority, uint32_t tasks)
{
    return world_submit_role(world, name, priority, world_role("worker", tasks, 1, GPUS));
}

/* Where the task is; "": nowhere. */
static const char *place_of(struct world *world, uint32_t job, uint16_t role, uint16_t index)
{
    struct core *core = world->core;
    struct core_job *found = core_job_find(core, (struct job_id){job});
    const struct core_task *task =
        core_task_find(core, core_job_slot(core, found), (struct task_ref){role, index});
    return task && task->is_taken ? core_node_at(core, task->node)->facts.name : "";
}

static bool is_on(struct world *world, uint32_t job, uint16_t index, char engine)
{
    return place_of(world, job, 0, index)[0] == engine;
}

static bool has_begun(struct world *world, uint32_t job)
{
    return place_of(world, job, 0, 0)[0] != '\0';
}

static void check_places(const struct world *world)
{
    struct err err = {0};
    if (core_check_places(world->core, &err))
        fail_msg("%s: %s", err.path, err.text);
}

static void a_gang_waits_for_room_on_one_engine(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i], NODES("a1", "b1"));
        uint32_t gang = submit(&world, "gang", 10, 2);
        assert_false(has_begun(&world, gang));
        assert_non_null(strstr(world_job(&world, gang)->reason,
                               "no engine has room for all of its tasks: on a ("));
        assert_non_null(strstr(world_job(&world, gang)->reason, "); on b ("));
        uint32_t one = submit(&world, "one", 10, 1); /* no gang of several tasks */
        assert_true(has_begun(&world, one));
        assert_int_equal(world_ask(&world, EVENT_STOP, one), 0);
        node_tell(&world, "b2", true);
        check_places(&world);
        if (!has_begun(&world, gang)) /* "one" has not ended yet */
            node_tell(&world, "b3", true);
        assert_true(is_on(&world, gang, 0, 'b') && is_on(&world, gang, 1, 'b'));
        world_release(&world);
    }
}

static void a_gang_may_span_engines_where_that_is_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i], NODES("a1", "b1"));
        uint32_t gang = submit(&world, "gang", 10, 2);
        assert_false(has_begun(&world, gang));
        world.config.gangs_span_engines = true;
        world_configure(&world);
        assert_true(has_begun(&world, gang));
        assert_true(is_on(&world, gang, 0, 'a') != is_on(&world, gang, 1, 'a'));
        world_release(&world);
    }
}

static void tasks_without_gang_go_anywhere(void **state)
{
    (void)state;
    struct world world;
    begin(&world, "first-fit", NODES("a1", "b1"));
    struct plan_role role = world_role("worker", 2, 1, GPUS);
    struct plan plan = world_plan_of("loose", &role);
    plan.is_gang = false;
    uint32_t loose = world_submit(&world, &plan);
    assert_true(is_on(&world, loose, 0, 'a') && is_on(&world, loose, 1, 'b'));
    world_release(&world);
}

/* Parts of a gang are searched for one after the other: all of them on one engine. */
static void all_parts_lie_on_one_engine(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (uint32_t slice = 0; slice < 2; slice++) {
            struct world world;
            begin(&world, policies[i], NODES("a1", "b1", "b2"));
            if (slice)
                core_slice_set(world.core, slice);
            struct plan_role roles[2] = {world_role("x", 1, 1, GPUS), world_role("y", 1, 1, GPUS)};
            roles[0].affinity_group = "x";
            roles[1].affinity_group = "y";
            struct plan plan = world_plan_of("gang", roles);
            plan.role_count = 2;
            uint32_t gang = world_submit(&world, &plan);
            world_pass_end(&world);
            check_places(&world);
            assert_int_equal(place_of(&world, gang, 0, 0)[0], 'b');
            assert_int_equal(place_of(&world, gang, 1, 0)[0], 'b');
            world_release(&world);
        }
}

/* The first engine is full of what could be ended: the second has room. */
static void nobody_ends_while_another_engine_has_room(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i], NODES("a1", "a2"));
        uint32_t low = submit(&world, "low", 1, 2);
        assert_true(is_on(&world, low, 0, 'a'));
        node_tell(&world, "b1", true);
        node_tell(&world, "b2", true);
        uint32_t high = submit(&world, "high", 100, 2);
        assert_true(is_on(&world, high, 0, 'b') && is_on(&world, high, 1, 'b'));
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
        world_release(&world);
    }
}

/* Room for two: only b can be made free whole, and what runs on a goes on. */
static void those_who_are_ended_are_of_one_engine(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++)
        for (uint32_t slice = 0; slice < 2; slice++) {
            struct world world;
            begin(&world, policies[i], NODES("a1"));
            uint32_t kept = submit(&world, "kept", 1, 1);
            node_tell(&world, "b1", true);
            node_tell(&world, "b2", true);
            uint32_t low = submit(&world, "low", 2, 2);
            assert_true(is_on(&world, kept, 0, 'a') && is_on(&world, low, 0, 'b'));
            const uint64_t attempts[] = {world_task(&world, low, 0, 0)->attempt.v,
                                         world_task(&world, low, 0, 1)->attempt.v};
            world_run(&world, attempts[0]);
            world_run(&world, attempts[1]);
            if (slice)
                core_slice_set(world.core, slice);
            uint32_t high = submit(&world, "high", 100, 2);
            world_pass_end(&world);
            check_places(&world);
            assert_false(has_begun(&world, high));
            world_exit(&world, attempts[0], -210, 0);
            world_pass_end(&world);
            world_exit(&world, attempts[1], -210, 0);
            world_pass_end(&world);
            check_places(&world);
            assert_true(is_on(&world, high, 0, 'b') && is_on(&world, high, 1, 'b'));
            assert_true(is_on(&world, kept, 0, 'a'));
            world_release(&world);
        }
}

/* A gang that has starved waits for two nodes of one engine: one of each does not help it. */
static void room_is_held_back_on_one_engine(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        begin(&world, policies[i], NODES("a1"));
        submit(&world, "onA", 10, 1);
        node_tell(&world, "b1", true);
        submit(&world, "onB", 10, 1);
        node_tell(&world, "b2", true);
        uint32_t big = submit(&world, "big", 10, 2);
        node_tell(&world, "a2", true);
        world_timer(&world, STARVES_MS);
        assert_int_equal(world_story_count(&world, "Reserved"), 1);
        assert_false(has_begun(&world, big));
        submit(&world, "small1", 10, 1); /* one engine is left for it when both have ended */
        submit(&world, "small2", 10, 1);
        assert_non_null(strstr(world_job(&world, 5)->reason, "room is held back for alice~big"));
        check_places(&world);
        world_release(&world);
    }
}

static void an_engine_without_nodes_does_not_count(void **state)
{
    (void)state;
    struct world world;
    begin(&world, "best-fit", NODES("a1", "b1", "b2"));
    world_node_event(&world, EVENT_NODE_LOST, "a1");
    node_tell(&world, "b2", false);
    uint32_t gang = submit(&world, "gang", 10, 2);
    assert_null(strstr(world_job(&world, gang)->reason, "no engine"));
    node_tell(&world, "b2", true);
    assert_true(is_on(&world, gang, 0, 'b'));
    world_release(&world);
}

static void what_no_engine_has_room_for_is_said(void **state)
{
    (void)state;
    struct world world;
    begin(&world, "best-fit", NODES("a1", "b1"));
    uint32_t gang = submit(&world, "gang", 10, 2);
    assert_non_null(strstr(world_job(&world, gang)->reason, "it can never start"));
    node_tell(&world, "a2", false); /* it may get well */
    uint32_t again = submit(&world, "again", 10, 2);
    assert_non_null(strstr(world_job(&world, again)->reason, "no engine has room"));
    const char *of_b = strstr(world_job(&world, again)->reason, "on b ("),
               *never = strstr(world_job(&world, again)->reason, "it can never start");
    assert_true(of_b && never > of_b); /* and nowhere before */
    world_release(&world);
}

/* Why the job waits, as the step says in which it has been tried. */
static const char *reason_of(struct world *world, uint32_t job)
{
    const struct job_record *record;
    while (!(record = world_job(world, job)) || !record->reason[0])
        assert_true(world_pass_step(world));
    return record->reason;
}

/* Each engine is asked in a step of its own, and four of them are told in words: those where ends
 * of jobs may help, before others. */
static void what_each_engine_wants_is_said(void **state)
{
    (void)state;
    for (uint32_t slice = 0; slice < 2; slice++) {
        struct world world;
        begin(&world, "best-fit", NODES("a1", "b1", "c1", "d1", "e1", "f1"));
        if (slice)
            core_slice_set(world.core, slice);
        uint32_t gang = submit(&world, "gang", 10, 2);
        const char *reason = reason_of(&world, gang);
        assert_non_null(strstr(reason, "tasks: on a (it needs "));
        assert_non_null(strstr(reason, "); on b ("));
        assert_non_null(strstr(reason, "); on d ("));
        assert_null(strstr(reason, "on e ("));
        assert_non_null(strstr(reason, "); nor on 2 others"));
        node_tell(&world, "f2", false); /* it may get well */
        gang = world_submit_role(&world, "other", 10, world_role("worker", 2, 2, GPUS));
        reason = reason_of(&world, gang);
        assert_non_null(strstr(reason, "tasks: on a ("));
        assert_null(strstr(reason, "on d ("));
        assert_non_null(strstr(reason, "); on f (it needs "));
        assert_null(strstr(strstr(reason, "on f ("), "never"));
        world_release(&world);
    }
}

/* What was said in earlier steps is copied, and forgotten with the job. */
static void a_search_is_copied_with_what_engines_have_said(void **state)
{
    (void)state;
    struct world world;
    begin(&world, "best-fit", NODES("a1", "b1", "c1"));
    core_slice_set(world.core, 1);
    uint32_t gang = submit(&world, "gang", 10, 2);
    const struct core_job *job = core_job_find(world.core, (struct job_id){gang});
    while (job->engine_try.said_count == 0) /* the search goes on in the next step */
        assert_true(world_pass_step(&world));
    struct core *copy = core_copy(world.core);
    const struct core_job *copied = core_job_find(copy, (struct job_id){gang});
    assert_int_equal(copied->engine_try.said_count, job->engine_try.said_count);
    assert_ptr_not_equal(copied->engine_try.said, job->engine_try.said);
    core_free(copy);
    assert_int_equal(world_ask(&world, EVENT_STOP, gang), 0);
    world_pass_end(&world);
    world_release(&world);
}

static void a_copy_and_a_restart_know_the_engines(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    world_keep(&world);
    node_tell(&world, "a1", true);
    node_tell(&world, "b1", true);
    uint32_t gang = submit(&world, "gang", 10, 2);
    struct core *copy = core_copy(world.core);
    assert_int_equal(copy->engines.count, 2);
    assert_string_equal(copy->engines.items[1].name, "b");
    core_free(copy);
    world_restart(&world);
    assert_false(has_begun(&world, gang));
    node_tell(&world, "a2", true);
    assert_true(is_on(&world, gang, 0, 'a') && is_on(&world, gang, 1, 'a'));
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_gang_waits_for_room_on_one_engine),
    cmocka_unit_test(a_gang_may_span_engines_where_that_is_allowed),
    cmocka_unit_test(tasks_without_gang_go_anywhere),
    cmocka_unit_test(all_parts_lie_on_one_engine),
    cmocka_unit_test(nobody_ends_while_another_engine_has_room),
    cmocka_unit_test(those_who_are_ended_are_of_one_engine),
    cmocka_unit_test(room_is_held_back_on_one_engine),
    cmocka_unit_test(an_engine_without_nodes_does_not_count),
    cmocka_unit_test(what_no_engine_has_room_for_is_said),
    cmocka_unit_test(what_each_engine_wants_is_said),
    cmocka_unit_test(a_search_is_copied_with_what_engines_have_said),
    cmocka_unit_test(a_copy_and_a_restart_know_the_engines),
};
UNIT_FILE(tests, NULL, NULL);
