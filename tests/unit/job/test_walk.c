/* Random lives of jobs: whatever happens, the edges are legal, no container is asked for or given
 * back twice, counters agree with the tasks, no timer is asked for in the past, a restart changes
 * nothing, and every job ends.
 *
 * A failure prints its seed; `test-job walk -- SEED` runs it alone.
 *
 * Covers: src/job/job.c, src/job/attempt.c, src/job/task.c, src/job/step.c */
#include "job_world.h"
#include "unit.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/random.h"

enum { WALKS = 20000, EVENTS = 80, ATTEMPTS_MAX = 20000 };

struct walk {
    struct job_world world;
    struct random random;
    bool is_created[ATTEMPTS_MAX];  /* by attempt id: a container was asked for … */
    bool is_released[ATTEMPTS_MAX]; /* … and has ended */
    bool is_held[ATTEMPTS_MAX];
    uint32_t containers;
    uint32_t slice; /* so many tasks are told of an end in one step; 0: all */
};

static struct walk walk; /* large */
static uint64_t first_seed = 1, last_seed = WALKS, seed;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("seed %llu: %s", (unsigned long long)seed, #condition);                       \
    } while (0)

static uint64_t below(uint64_t limit)
{
    return random_below(&walk.random, limit);
}

static void policy_draw(void)
{
    int instances[WORLD_ROLES_MAX + 1];
    const size_t roles = 1 + below(3);
    for (size_t r = 0; r < roles; r++)
        instances[r] = (int)below(5);
    instances[roles] = -1;
    world_init(&walk.world, instances);
    struct job_policy *policy = &walk.world.policy;
    policy->is_gang = below(2);
    policy->is_created_only = below(8) == 0;
    policy->retry = (struct retry_policy){(int32_t)below(5) - 2, below(3) > 0};
    policy->kill_all_on_completed = (uint32_t)(below(4) == 0 ? 1 + below(3) : 0);
    policy->is_backoff_growing = below(2);
    policy->pause = (struct retry_pause){(uint32_t)below(3), (uint32_t)(2 + below(20)),
                                         (uint32_t)(1 + below(100))};
    policy->gang_timeout_s = below(3) == 0 ? 100 : 0;
    policy->time_limit_s = below(4) == 0 ? 1000 : 0;
    policy->debug_hold_s = below(3) == 0 ? 500 : 0;
    for (size_t r = 0; r < roles; r++) {
        struct job_role_policy *role = &walk.world.roles[r];
        role->min_failed = (int32_t)below(4) - 1;
        role->min_succeeded = (int32_t)below(4) - 1;
        if (!policy->is_gang)
            role->task_retry = (struct retry_policy){(int32_t)below(5) - 2, below(2)};
    }
}

/* ---- what must hold ---- */

static void check_action(const struct job_action *action)
{
    const uint64_t id = action->attempt.v;
    CHECK(id < ATTEMPTS_MAX);
    switch (action->kind) {
    case JOB_ACTION_JOB_CHANGED:
    case JOB_ACTION_TASK_CHANGED:
        CHECK(action->from == action->to || life_can_follow(action->from, action->to) ||
              (action->kind == JOB_ACTION_JOB_CHANGED && action->from == LIFE_COMPLETED &&
               action->to == LIFE_CREATION_PENDING));
        break;
    case JOB_ACTION_CREATE:
        CHECK(id > 0 && !walk.is_created[id]);
        walk.is_created[id] = true;
        walk.containers++;
        break;
    case JOB_ACTION_RELEASE:
        CHECK(!walk.is_released[id]);
        walk.is_released[id] = true;
        walk.containers -= walk.is_created[id];
        break;
    case JOB_ACTION_KILL:
        CHECK(walk.is_created[id] && !walk.is_released[id] && action->reason);
        walk.is_held[id] |= action->is_held;
        break;
    case JOB_ACTION_HOLD:
        CHECK(walk.is_released[id]);
        walk.is_held[id] = true;
        break;
    case JOB_ACTION_FORGET:
        CHECK(walk.is_held[id]);
        walk.is_held[id] = false;
        break;
    case JOB_ACTION_STORY:
        CHECK(action->reason && action->message && action->message[0]);
        break;
    case JOB_ACTION_ATTEMPT_COMPLETED:
    case JOB_ACTION_COMPLETED:
        CHECK(walk.containers == 0);
        break;
    case JOB_ACTION_TASK_REMOVED:
    case JOB_ACTION_QUEUE:
    case JOB_ACTION_UNQUEUE:
        break;
    }
}

static void check_task(const struct job_task *task)
{
    const bool is_live = task->state >= LIFE_CREATION_REQUESTED && task->state <= LIFE_DELETING;
    CHECK(task->created_ms > 0);
    CHECK(task->state != LIFE_CREATION_PENDING || task->attempt.v == 0);
    CHECK(!is_live || (walk.is_created[task->attempt.v] != task->is_uncreated &&
                       !walk.is_released[task->attempt.v]));
    CHECK(!task->is_uncreated || task->state == LIFE_CREATION_REQUESTED);
    CHECK(task->state < LIFE_DELETION_PENDING || task->completion);
    CHECK(task->retries_counted <= task->retries && task->retries == task->task_attempt);
}

static void check_job(void)
{
    const struct job *job = &walk.world.job;
    uint32_t live = 0, waiting = 0, paused = 0, held = 0, let_go = 0, uncreated = 0;
    bool missing = false, surplus = false;
    for (uint16_t r = 0; job->roles && r < job->role_count; r++) {
        uint32_t succeeded = 0, failed = 0;
        const struct job_role *role = &job->roles[r];
        CHECK(job->has_tasks || role->count == 0);
        for (size_t i = 0; i < role->count; i++) {
            const struct job_task *task = &role->items[i];
            check_task(task);
            live += task->state >= LIFE_CREATION_REQUESTED && task->state <= LIFE_DELETING;
            uncreated += task->is_uncreated;
            CHECK(task->retry_at_ms == 0 || task->state == LIFE_CREATION_PENDING);
            const bool is_wanted = i < role->instances;
            waiting += task->state == LIFE_CREATION_PENDING && task->retry_at_ms == 0 && is_wanted;
            paused += task->retry_at_ms > 0 && is_wanted;
            held += task->is_held;
            let_go += task->is_let_go;
            CHECK(!task->is_held || !task->is_let_go);
            if (task->state == LIFE_COMPLETED && !task->is_deletion_pending && is_wanted) {
                succeeded += task->completion->is_success;
                failed += !task->completion->is_success;
            }
            CHECK(is_wanted || task->is_deletion_pending || job->is_shrinking ||
                  job->state >= LIFE_DELETION_PENDING);
            surplus |= !is_wanted || task->is_deletion_pending;
        }
        CHECK(role->succeeded == succeeded && role->failed == failed);
        const bool is_whole = role->count >= role->instances;
        if (!is_whole && (job->is_starting || job->is_growing)) /* the others are to come */
            waiting += role->instances - (uint32_t)role->count;
        missing |= !is_whole;
    }
    CHECK(job->live == live && job->waiting == waiting && job->paused == paused &&
          job->held == held && job->let_go == let_go);
    CHECK(walk.containers == live - uncreated);
    CHECK(uncreated == 0 || job->is_starting || job->ending);
    CHECK((job->state >= LIFE_DELETION_PENDING) == (job->completion != NULL));
    CHECK(job->state != LIFE_COMPLETED || (live == 0 && waiting == 0 && paused == 0));
    CHECK(!life_is_completing(job->state) || live > 0 || job_goes_on(job));
    CHECK(!job_goes_on(job) || life_is_completing(job->state) || job->is_starting ||
          job->is_growing || job->is_shrinking || let_go > 0);
    CHECK(!job->is_shrinking || (surplus && !walk.world.policy.is_gang));
    CHECK(!job->is_growing || (missing && !walk.world.policy.is_gang));
    CHECK(job->is_growing || job->is_starting || !missing || life_is_completing(job->state) ||
          job->state >= LIFE_ATTEMPT_COMPLETED || !job->has_tasks);
    CHECK((job->hold_until_ms > 0) == (job->state == LIFE_COMPLETED && held > 0));
    CHECK(job->retry_at_ms == 0 || job->state == LIFE_ATTEMPT_COMPLETED);
    const int64_t wake_ms = job_wake_ms(job, &walk.world.policy);
    CHECK(job->state != LIFE_ATTEMPT_COMPLETED || wake_ms > 0);
    CHECK(paused == 0 || wake_ms > 0 || job_goes_on(job));
}

static void step(struct job_event event)
{
    uint32_t created = 0;
    const struct job_world *world = &walk.world;
    const int64_t due_ms = job_wake_ms(&world->job, &world->policy);
    const bool was_going_on = job_goes_on(&world->job);
    event.slice = walk.slice;
    world_step(&walk.world, event);
    CHECK(walk.slice || !job_goes_on(&world->job));
    CHECK(event.kind != JOB_EVENT_GO_ON || was_going_on || world->out.count == 0);
    const bool was_due = due_ms > 0 && due_ms <= world->now_ms;
    const int64_t wake_ms = job_wake_ms(&world->job, &world->policy);
    CHECK(was_due || wake_ms == 0 || wake_ms >= world->now_ms);
    for (size_t i = 0; i < walk.world.out.count; i++) {
        check_action(&walk.world.out.items[i]);
        created += walk.world.out.items[i].kind == JOB_ACTION_CREATE;
    }
    for (uint16_t r = 0; walk.world.policy.is_gang && created > 0 && r < world->job.role_count; r++)
        CHECK(world->job.roles[r].count == walk.world.policy.roles[r].instances);
    check_job();
}

/* The process ends and another one takes over from what is stored. */
static void restart(void)
{
    struct job_world *world = &walk.world;
    struct buf saved = BUF_INIT;
    job_save(&world->job, &saved);
    struct job restored;
    CHECK(job_restore(&restored, &world->policy, buf_as_text(&saved), NULL) == 0);
    buf_release(&saved);
    for (uint16_t r = 0; world->job.has_tasks && r < world->job.role_count; r++)
        for (uint16_t i = 0; i < world->job.roles[r].count; i++)
            CHECK(job_restore_task(&restored, (struct task_ref){r, i},
                                   &world->job.roles[r].items[i], NULL) == 0);
    world->out.count = 0;
    const bool is_cut = world->job.is_starting && world->job.waiting > 0;
    CHECK(job_restore_finish(&restored, &world->policy, world->now_ms, &world->out, NULL) == 0);
    CHECK(is_cut || job_hash(&restored) == job_hash(&world->job));
    CHECK(!is_cut || (restored.live == 0 && restored.state != LIFE_COMPLETED));
    for (size_t i = 0; i < world->out.count; i++) { /* repeated commands name live containers */
        const struct job_action *action = &world->out.items[i];
        if (action->kind == JOB_ACTION_CREATE && !walk.is_created[action->attempt.v]) {
            CHECK(world->job.is_starting || world->job.ending);
            walk.is_created[action->attempt.v] = true;
            walk.containers++;
        }
        if (is_cut && action->kind != JOB_ACTION_CREATE && action->kind != JOB_ACTION_KILL) {
            check_action(action);
            continue;
        }
        CHECK(action->kind == JOB_ACTION_QUEUE ||
              ((action->kind == JOB_ACTION_CREATE || action->kind == JOB_ACTION_KILL) &&
               walk.is_created[action->attempt.v] && !walk.is_released[action->attempt.v]));
    }
    struct job clone;
    job_clone(&clone, &restored);
    job_release(&restored);
    job_release(&world->job);
    world->job = clone;
    check_job();
}

/* ---- what happens ---- */

static const struct {
    int32_t code;
    uint8_t attributes;
} ends[] = {
    {0, 0},
    {0, 0},
    {1, 0},
    {7, EXIT_PERMANENT},
    {231, EXIT_PERMANENT | EXIT_NEVER_RETRIED},
    {-1001, EXIT_TRANSIENT},
    {CODE_CONTAINER_DELETED, EXIT_TRANSIENT},
    {201, EXIT_TRANSIENT | EXIT_CONFLICT},
    {CODE_CREATION_PERMANENT, EXIT_PERMANENT},
    {CODE_PREEMPTED, EXIT_TRANSIENT},
    {CODE_HUNG, 0},
    {CODE_REFUSED, EXIT_TRANSIENT | EXIT_ALWAYS_RETRIED},
};

static struct task_ref task_draw(void)
{
    const uint16_t role = (uint16_t)below(walk.world.policy.role_count);
    return (struct task_ref){role, (uint16_t)below(6)};
}

/* The next ones of a gang that gets its places in several steps. */
static void place_next(void)
{
    const struct job *job = &walk.world.job;
    struct task_ref refs[3];
    const size_t most = 1 + below(COUNT_OF(refs));
    size_t count = 0;
    for (uint16_t r = 0; r < job->role_count; r++)
        for (uint16_t i = job->has_tasks ? (uint16_t)job->roles[r].count : 0;
             i < job_role_instances(job, &walk.world.policy, r) && count < most; i++)
            refs[count++] = (struct task_ref){r, i};
    if (count > 0 && job_waiting_count(job, &walk.world.policy) > 0)
        step((struct job_event){
            .kind = JOB_EVENT_PLACED, .tasks = refs, .task_count = count, .is_in_steps = true});
}

static void place_some(void)
{
    const struct job_world *world = &walk.world;
    struct task_ref refs[64];
    size_t count = 0;
    if (world->policy.is_gang && (walk.slice || world->job.is_starting)) {
        place_next();
        return;
    }
    for (uint16_t r = 0; r < world->policy.role_count; r++)
        for (uint16_t i = 0; i < job_role_count(&world->job, &world->policy, r); i++)
            if (job_task_is_waiting(&world->job, &world->policy, (struct task_ref){r, i}) &&
                (world->policy.is_gang || below(2)) && count < COUNT_OF(refs))
                refs[count++] = (struct task_ref){r, i};
    if (count > 0)
        step((struct job_event){.kind = JOB_EVENT_PLACED, .tasks = refs, .task_count = count});
}

static void happen(void)
{
    static const enum job_event_kind kinds[] = {
        JOB_EVENT_TASK_PREPARING, JOB_EVENT_TASK_RUNNING, JOB_EVENT_TASK_RUNNING,
        JOB_EVENT_TASK_EXITED,    JOB_EVENT_TASK_EXITED,  JOB_EVENT_TASK_EXITED,
        JOB_EVENT_TASK_EXITED,    JOB_EVENT_TASK_REFUSED, JOB_EVENT_TASK_KILL,
        JOB_EVENT_JUDGE,          JOB_EVENT_TIMER,        JOB_EVENT_SCALE,
        JOB_EVENT_RELEASE,        JOB_EVENT_GO_ON,        JOB_EVENT_GO_ON,
    };
    static const enum job_event_kind rare[] = {JOB_EVENT_STOP, JOB_EVENT_START, JOB_EVENT_PREEMPT,
                                               JOB_EVENT_LOST, JOB_EVENT_REFUSED};
    struct job_world *world = &walk.world;
    const uint64_t draw = below(20);
    if (draw < 3) {
        place_some();
        return;
    }
    if (draw == 3) {
        restart();
        return;
    }
    if (draw == 4 && job_waiting_count(&world->job, &world->policy) > 0) {
        if (world->job.is_starting)
            place_next();
        else
            step((struct job_event){.kind = JOB_EVENT_PLACED});
        return;
    }
    const size_t end = below(COUNT_OF(ends));
    struct completion completion = completion_of(ends[end].code, "because");
    completion.attributes = ends[end].attributes;
    const int32_t threshold = (int32_t)below(4) - 1;
    struct job_event event = {
        .kind = kinds[below(COUNT_OF(kinds))], .task = task_draw(), .completion = &completion};
    if (below(12) == 0)
        event.kind = rare[below(COUNT_OF(rare))];
    event.scale.role = (uint16_t)below(world->policy.role_count + 1);
    event.scale.instances = (uint32_t)below(6);
    event.scale.min_failed = below(2) ? &threshold : NULL;
    event.scale.min_succeeded = below(3) ? NULL : &threshold;
    if (below(6) == 0)
        event.attempt.v = below(world->attempt_last + 2); /* perhaps stale */
    const struct job_task *task = job_task_find(&world->job, event.task);
    if (task && task->is_uncreated &&
        (event.kind == JOB_EVENT_TASK_PREPARING || event.kind == JOB_EVENT_TASK_RUNNING))
        return; /* who should say so? */
    if (event.kind == JOB_EVENT_TIMER && below(2) && job_wake_ms(&world->job, &world->policy) > 0)
        world->now_ms = job_wake_ms(&world->job, &world->policy);
    step(event);
}

/* From wherever it is: every container ends, every timer comes, and it is stopped. */
static void finish(void)
{
    struct job_world *world = &walk.world;
    step((struct job_event){.kind = JOB_EVENT_STOP});
    for (int round = 0; round < 10 && !job_is_final(&world->job); round++) {
        while (job_goes_on(&world->job) && below(8))
            step((struct job_event){.kind = JOB_EVENT_GO_ON});
        for (uint16_t r = 0; r < world->policy.role_count; r++)
            for (uint16_t i = 0;
                 i < JOB_INSTANCES_MAX && job_task_find(&world->job, (struct task_ref){r, i});
                 i++) {
                const struct completion killed = completion_of(143, "%s", "");
                step((struct job_event){
                    .kind = JOB_EVENT_TASK_EXITED, .task = {r, i}, .completion = &killed});
            }
    }
    CHECK(job_is_final(&world->job));
    CHECK(walk.containers == 0);
    CHECK(job_can_delete(&world->job, NULL) == 0);
}

static void random_lives(void **state)
{
    (void)state;
    for (seed = first_seed; seed <= last_seed; seed++) {
        memset(&walk, 0, sizeof walk);
        walk.random.state = seed;
        policy_draw();
        walk.slice = (uint32_t)below(3);
        walk.world.random = below(1000000);
        world_begin(&walk.world);
        check_job();
        const uint64_t events = below(EVENTS);
        for (uint64_t i = 0; i < events; i++)
            happen();
        finish();
        world_release(&walk.world);
    }
}

/* Nobody stops them: if their containers end, jobs end by themselves. */
static void lives_end_by_themselves(void **state)
{
    (void)state;
    for (seed = first_seed; seed <= last_seed; seed++) {
        memset(&walk, 0, sizeof walk);
        walk.random.state = seed ^ 0x5eed;
        policy_draw();
        walk.slice = (uint32_t)below(3);
        struct job_world *world = &walk.world;
        world->policy.is_created_only = false;
        /* "always, also after success" ends by being stopped only, as do tasks of that kind */
        if (world->policy.retry.max == -2)
            world->policy.retry.max = 1;
        world->roles[0].instances += world->roles[0].instances == 0;
        for (size_t r = 0; r < world->policy.role_count; r++)
            if (world->roles[r].task_retry.max == -2)
                world->roles[r].task_retry.max = 1;
        world_begin(world);
        for (int round = 0; round < 1000 && !job_is_final(&world->job); round++) {
            if (below(10) == 0)
                restart();
            if (world->job.state == LIFE_ATTEMPT_COMPLETED ||
                (world->job.paused > 0 && world->job.waiting == 0 && world->job.live == 0))
                world->now_ms = job_wake_ms(&world->job, &world->policy);
            else if (below(20) == 0) /* a time limit may pass, whatever the job does */
                world->now_ms += (int64_t)below(1000000);
            step((struct job_event){.kind = JOB_EVENT_TIMER});
            if (job_goes_on(&world->job))
                step((struct job_event){.kind = JOB_EVENT_GO_ON});
            place_some();
            const struct task_ref ref = task_draw();
            /* later ends are good, so that -1 and the transient ones do not go on for ever */
            const size_t end = round > 200 ? 0 : below(COUNT_OF(ends));
            struct completion completion = completion_of(ends[end].code, "because");
            completion.attributes = ends[end].attributes;
            const struct job_task *task = job_task_find(&world->job, ref);
            if (task && task->is_uncreated)
                continue;
            step((struct job_event){.kind = JOB_EVENT_TASK_RUNNING, .task = ref});
            step((struct job_event){
                .kind = JOB_EVENT_TASK_EXITED, .task = ref, .completion = &completion});
        }
        CHECK(job_is_final(&world->job));
        world_release(world);
    }
}

static int seed_read(void **state)
{
    (void)state;
    last_seed /= unit_every();
    if (unit_argument(0))
        first_seed = last_seed = strtoull(unit_argument(0), NULL, 10);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_lives),
    cmocka_unit_test(lives_end_by_themselves),
};
UNIT_FILE(tests, seed_read, NULL);
