/* A copy of the core is the core: whatever happens next, both say the same words. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"
#include "core/output_text.h"

static uint32_t submit(struct world *world, const char *name, int32_t priority,
                       struct plan_role role, uint64_t limit_s)
{
    struct plan plan = world_plan_of(name, &role);
    plan.priority = priority;
    plan.time_limit_s = limit_s;
    return world_submit(world, &plan);
}

static struct event exit_of(uint64_t attempt, double blame)
{
    struct event event = {.kind = EVENT_TASK_EXITED,
                          .task = {.attempt = {attempt}, .blame = blame}};
    event.task.completion = completion_of(blame > 0 ? CODE_CONTAINER_DELETED : 0, "%s", "ended");
    return event;
}

/* The same event to both; the same output. */
static void both_step(struct world *world, struct core *copy, struct event event)
{
    struct buf own = BUF_INIT, other = BUF_INIT;
    struct output output;
    struct event same = event;
    if (event.kind == EVENT_SUBMIT)
        same.submit.plan = plan_copy(event.submit.plan);
    output_init(&output);
    world_step(world, &event);
    same.now_ms = event.now_ms;
    same.random = event.random;
    same.request = event.request;
    same.user = event.user;
    core_step(copy, &same, &output);
    core_check(copy);
    output_write(&world->output, WORLD_START_MS, &own);
    output_write(&output, WORLD_START_MS, &other);
    assert_string_equal(buf_cstr(&own), buf_cstr(&other));
    assert_true(core_hash(world->core) == core_hash(copy));
    buf_release(&own);
    buf_release(&other);
    output_release(&output);
}

static void both_submit(struct world *world, struct core *copy, const char *name, uint32_t gpu)
{
    struct plan_role role = world_role("worker", 1, 1, gpu);
    struct plan plan = world_plan_of(name, &role);
    struct event event = {.kind = EVENT_SUBMIT, .user = "alice"};
    event.submit.plan = plan_copy(&plan);
    both_step(world, copy, event);
}

static void both_go_on(struct world *world)
{
    struct core *copy = core_copy(world->core);
    core_check(copy);
    assert_true(core_hash(copy) == core_hash(world->core));
    both_submit(world, copy, "new", 1);
    both_submit(world, copy, "newer", 2);
    for (uint64_t attempt = 1; attempt <= 12; attempt++) {
        both_step(world, copy, exit_of(attempt, (double)(attempt % 3)));
        if (attempt % 4 == 0) {
            world->now_ms += 400000;
            both_step(world, copy, (struct event){.kind = EVENT_TIMER});
        }
    }
    struct event lost = {.kind = EVENT_NODE_LOST, .node = {.address = ""}};
    lost.node.name = "n1";
    both_step(world, copy, lost);
    core_free(copy);
}

static void a_new_core(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        struct core *copy = core_copy(world.core);
        both_submit(&world, copy, "waits", 1); /* no node has appeared */
        assert_true(*world_job(&world, 1)->reason);
        core_free(copy);
        world_release(&world);
    }
}

/* Something in every table: entries that are free again, tasks without devices and ports, tasks
 * that wait, a node with blame, a starving job with room held back, names that expire. */
static void a_busy_core(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 16, 4);
        world_node(&world, "n2", 16, 4);
        submit(&world, "over", 10, world_role("worker", 2, 1, 1), 0); /* attempts 1 and 2 */
        world_exit(&world, 1, 0, 0);
        world_exit(&world, 2, 0, 0);
        world_timer(&world, 61000);                                       /* and its name is free */
        submit(&world, "ended", 10, world_role("worker", 1, 1, 0), 0);    /* 3 */
        submit(&world, "long", 10, world_role("worker", 2, 1, 2), 36000); /* 4 and 5 */
        struct plan_role bare = world_role("worker", 1, 1, 0);
        bare.port_count = 0;
        submit(&world, "bare", 10, bare, 0); /* 6 */
        struct plan_role some = world_role("worker", 4, 1, 2);
        struct plan plan = world_plan_of("some", &some); /* two of four tasks fit: 7 and 8 */
        plan.is_gang = false;
        world_submit(&world, &plan);
        submit(&world, "big", 10, world_role("worker", 2, 1, 4), 0); /* will starve */
        world_run(&world, 4);
        world_run(&world, 6);
        world_exit(&world, 3, 0, 0);
        struct event event = exit_of(7, 4); /* the node is blamed: taken last */
        world_step(&world, &event);
        world_timer(&world, 601000); /* the reason for waiting is told anew */
        assert_int_equal(world_story_count(&world, "Reserved"), 1);
        event = exit_of(8, 0);
        world_step(&world, &event);
        both_go_on(&world);
        world_release(&world);
    }
}

/* A node has changed since the reason was told: who waits is tried again, though too little is
 * free. */
static void a_core_whose_node_has_changed(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    submit(&world, "runs", 10, world_role("worker", 4, 1, 1), 0); /* attempts 1 to 4 */
    submit(&world, "waits", 10, world_role("worker", 1, 1, 4), 0);
    world.now_ms += 1000;
    world_node(&world, "n1", 17, 4);
    struct core *copy = core_copy(world.core);
    world.now_ms -= 10; /* within the same millisecond */
    both_step(&world, copy, exit_of(1, 0));
    core_free(copy);
    world_release(&world);
}

/* One part of a gang is bound and held, the other waits for the end of others. */
static void a_preempting_core(void **state)
{
    (void)state;
    static const char *const policies[] = {"first-fit", "hived"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        world_node(&world, "n1", 8, 4);
        world_node(&world, "n2", 8, 4);
        submit(&world, "cheap", -1, world_role("worker", 1, 1, 4), 0);
        struct plan_role roles[] = {world_role("ps", 1, 1, 2), world_role("worker", 1, 1, 4)};
        struct plan plan = world_plan_of("dear", roles);
        plan.role_count = 2;
        plan.priority = 100;
        roles[0].affinity_group = "x";
        world_submit(&world, &plan);
        assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
        both_go_on(&world);
        world_release(&world);
    }
}

static void test_copy(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "hived");
    world_node(&world, "n1", 8, 4);
    world_submit_for(&world, "a", -1, 4, 0);
    world_run(&world, 1);
    world_submit_for(&world, "b", 10, 4, 0); /* preempts: a hold is copied, too */
    world_submit_for(&world, "c", 10, 4, 0);
    struct core *copy = core_copy(world.core);
    core_check(copy);
    assert_true(core_hash(copy) == core_hash(world.core));
    uint64_t before = core_hash(copy);
    world_exit(&world, 1, 143, 0);
    assert_true(core_hash(world.core) != before);
    assert_true(core_hash(copy) == before); /* what is done to one is not seen by the other */
    uint64_t after = core_hash(world.core);
    core_free(world.core);
    world.core = copy;
    world.now_ms -= 10;
    world_exit(&world, 1, 143, 0);
    assert_true(core_hash(world.core) == after);
    world_release(&world);
}

/* Whatever happens to one of many jobs is seen. */
static void each_job_is_in_the_hash(void **state)
{
    enum { JOBS = 3 };
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 8, 0);
    for (uint64_t i = 0; i < JOBS; i++)
        world_submit_simple(&world, (const char *[]){"a", "b", "c"}[i], 1, 1, 0);
    for (uint64_t attempt = JOBS; attempt > 0; attempt--) {
        const uint64_t before = core_hash(world.core);
        world_run(&world, attempt);
        assert_true(core_hash(world.core) != before);
    }
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_new_core),
    cmocka_unit_test(a_busy_core),
    cmocka_unit_test(a_core_whose_node_has_changed),
    cmocka_unit_test(a_preempting_core),
    cmocka_unit_test(test_copy),
    cmocka_unit_test(each_job_is_in_the_hash),
};
UNIT_FILE(tests, NULL, NULL);
