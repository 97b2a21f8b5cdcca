/* Tasks that the platform ends, and tasks that nobody takes. */
#include "job_world.h"
#include "unit.h"

static void platform_ends_tasks(void **state)
{
    (void)state;
    static const struct {
        int32_t code;
        const char *reason;
        uint32_t grace_ms;
    } cases[] = {{CODE_PREEMPTED, "preempted", 30000},
                 {CODE_REFUSED, "preempted", 30000},
                 {CODE_HUNG, "hung", 10000},
                 {CODE_EVICTED, "ended by the platform", 10000}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct job_world world;
        world_init(&world, ROLES(2));
        world.policy.is_gang = false;
        world.roles[0].task_retry = (struct retry_policy){.max = 1, .is_fancy = true};
        world_begin(&world);
        world_run_all(&world);
        const struct completion completion = completion_of(cases[i].code, "why");
        const struct job_event kill = {
            .kind = JOB_EVENT_TASK_KILL, .task = {0, 1}, .completion = &completion};
        world_step(&world, kill);
        assert_string_equal(world_find(&world, JOB_ACTION_KILL)->reason, cases[i].reason);
        assert_int_equal(world_find(&world, JOB_ACTION_KILL)->grace_ms, cases[i].grace_ms);
        world_step(&world, kill); /* again */
        assert_int_equal(world.out.count, 0);
        world_run(&world, 0, 1); /* too late */
        assert_int_equal(world.out.count, 0);
        world_exit(&world, 0, 1, 137, 0);
        const struct job_task *task = world_task(&world, 0, 1);
        assert_int_equal(task->state, LIFE_CREATION_PENDING);
        assert_int_equal(task->attempt.v, 0); /* that of the try before is in its row */
        assert_int_equal(task->retries_counted, cases[i].code == CODE_HUNG);
        assert_int_equal(world.job.state, LIFE_RUNNING);
        assert_int_equal(job_waiting_count(&world.job, &world.policy), 1);
        assert_true(job_task_is_waiting(&world.job, &world.policy, (struct task_ref){0, 1}));
        assert_false(job_task_is_waiting(&world.job, &world.policy, (struct task_ref){0, 0}));
        assert_false(job_task_is_waiting(&world.job, &world.policy, (struct task_ref){0, 9}));
        world_release(&world);
    }
    struct job_world world;
    world_init(&world, ROLES(2));
    world_begin(&world);
    world_run_all(&world);
    const struct completion preempted = completion_of(CODE_PREEMPTED, "for b~big");
    world_step(&world, (struct job_event){.kind = JOB_EVENT_PREEMPT, .completion = &preempted});
    assert_int_equal(world_find(&world, JOB_ACTION_KILL)->grace_ms, 30000);
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 0);
    world_exit(&world, 0, 0, 143, 0);
    world_exit(&world, 0, 1, 143, 0);
    assert_int_equal(world.job.state, LIFE_CREATION_PENDING);
    assert_int_equal(world.job.retries_platform, 1);
    world_release(&world);
}

static void refused(void **state)
{
    (void)state;
    struct job_world world;
    const struct completion never = completion_of(CODE_CREATION_PERMANENT, "no such cluster");
    world_init(&world, ROLES(2));
    world_begin(&world);
    world_step(&world, (struct job_event){.kind = JOB_EVENT_REFUSED, .completion = &never});
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_int_equal(world.job.completion->code, CODE_CREATION_PERMANENT);
    world_release(&world);
    world_init(&world, ROLES(2));
    world_begin(&world); /* one of a gang is the gang */
    world_step(&world, (struct job_event){
                           .kind = JOB_EVENT_TASK_REFUSED, .task = {0, 1}, .completion = &never});
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    world_release(&world);
    world_init(&world, ROLES(2));
    world.policy.is_gang = false;
    world.roles[0].min_failed = -1;
    world_begin(&world);
    world_step(&world, (struct job_event){
                           .kind = JOB_EVENT_TASK_REFUSED, .task = {0, 1}, .completion = &never});
    assert_int_equal(world.job.state, LIFE_CREATION_REQUESTED);
    world_run_all(&world);
    world_step(&world, (struct job_event){
                           .kind = JOB_EVENT_TASK_REFUSED, .task = {0, 0}, .completion = &never});
    assert_int_equal(world.out.count, 0); /* it has a place */
    world_exit(&world, 0, 0, 0, 0);
    assert_int_equal(world.job.state, LIFE_COMPLETED);
    assert_true(world.job.completion->is_success);
    assert_false(world.job.is_inherited);
    world_release(&world);
}

static int64_t waits_ms(const struct job_world *world)
{
    return job_waits_ms(&world->job, &world->policy);
}

/* Since when the one has waited that has waited longest: since the attempt began, since it was to
 * be tried again, behind its pause, or since it was added. */
static void a_task_waits_since_it_wants_a_place(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(3));
    world.policy.is_gang = false;
    world.policy.pause = (struct retry_pause){.first_s = 100, .max_s = 100, .calm_s = 1000};
    world.roles[0].task_retry.is_fancy = true;
    const int64_t begin_ms = world.now_ms;
    world_begin(&world);
    assert_int_equal(waits_ms(&world), begin_ms);
    world_step(&world, (struct job_event){.kind = JOB_EVENT_PLACED,
                                          .tasks = &(struct task_ref){0, 0},
                                          .task_count = 1});
    assert_int_equal(waits_ms(&world), begin_ms);
    world_place(&world);
    world_run(&world, 0, 0);
    world_exit(&world, 0, 0, CODE_CONTAINER_DELETED, EXIT_TRANSIENT);
    assert_int_equal(waits_ms(&world), world.now_ms); /* it is tried again at once, … */
    world_place(&world);
    world_run(&world, 0, 0);
    world_exit(&world, 0, 0, CODE_CONTAINER_DELETED, EXIT_TRANSIENT);
    assert_int_equal(job_waiting_count(&world.job, &world.policy), 0); /* … then behind a pause */
    world_scale(&world, 0, 4, 1);
    assert_int_equal(waits_ms(&world), world.now_ms);
    world_place(&world);
    world_timer(&world);
    assert_int_equal(waits_ms(&world), world.now_ms);
    const int64_t again_ms = world.now_ms;
    assert_true(again_ms > begin_ms + 50000);
    world_scale(&world, 0, 5, 1);
    assert_int_equal(waits_ms(&world), again_ms);
    world_step(&world, (struct job_event){.kind = JOB_EVENT_PLACED,
                                          .tasks = &(struct task_ref){0, 0},
                                          .task_count = 1});
    assert_true(waits_ms(&world) > again_ms);
    world_release(&world);
}

/* Tasks that have no entries in the table yet, as their job grows in pieces, wait as well. */
static void a_task_without_an_entry_waits(void **state)
{
    (void)state;
    struct job_world world;
    world_init(&world, ROLES(100));
    world.policy.is_gang = false;
    const int64_t begin_ms = world.now_ms;
    world_begin(&world);
    world_step(&world, (struct job_event){.kind = JOB_EVENT_PLACED,
                                          .slice = 10,
                                          .tasks = &(struct task_ref){0, 0},
                                          .task_count = 1});
    assert_true(world.job.is_growing);
    assert_int_equal(waits_ms(&world), begin_ms);
    while (world.job.is_growing)
        world_step(&world, (struct job_event){.kind = JOB_EVENT_GO_ON, .slice = 10});
    assert_int_equal(waits_ms(&world), begin_ms);
    world_run_all(&world);
    world_step(&world, (struct job_event){
                           .kind = JOB_EVENT_SCALE, .slice = 10, .scale = {.instances = 200}});
    const int64_t added_ms = world.now_ms;
    for (int i = 0; i < 2; i++) {
        assert_true(world.job.is_growing);
        assert_int_equal(waits_ms(&world), added_ms);
        world_step(&world, (struct job_event){.kind = JOB_EVENT_GO_ON, .slice = 10});
    }
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_task_waits_since_it_wants_a_place),
    cmocka_unit_test(a_task_without_an_entry_waits),
    cmocka_unit_test(platform_ends_tasks),
    cmocka_unit_test(refused),
};
UNIT_FILE(tests, NULL, NULL);
