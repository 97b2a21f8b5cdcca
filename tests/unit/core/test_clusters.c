/* Virtual clusters that are closed: nothing of them starts, whatever it is, until they are opened.
 */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "core/clusters.h"
#include "core/jobs.h"
#include "core/state.h"
#include "core/trial.h"

static int cluster_act(struct world *world, enum event_kind kind, const char *name, const char *why)
{
    struct event event = {.kind = kind, .user = "admin", .cluster = {.name = name, .reason = why}};
    world_step(world, &event);
    return world_answer(world)->code;
}

static int cluster_close(struct world *world, const char *name, const char *why)
{
    return cluster_act(world, EVENT_CLUSTER_CLOSE, name, why);
}

static int cluster_open(struct world *world, const char *name)
{
    return cluster_act(world, EVENT_CLUSTER_OPEN, name, NULL);
}

static const struct cluster_record *cluster_row(const struct world *world)
{
    for (size_t i = world->output.records.count; i-- > 0;)
        if (world->output.records.items[i].kind == RECORD_CLUSTER)
            return &world->output.records.items[i].cluster;
    return NULL;
}

static enum waiting_state state_of(const struct world *world, uint32_t job)
{
    return core_job_find(world->core, (struct job_id){job})->waiting;
}

static uint64_t gpus_used(const struct world *world)
{
    struct core_counts counts;
    core_count(world->core, &counts);
    return counts.gpus_used;
}

static const char *const policies[] = {"first-fit", "best-fit", "spread", "hived"};

static void nothing_starts_until_it_is_opened(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        struct world world;
        world_init(&world, policies[i]);
        if (!strcmp(policies[i], "hived")) {
            world_release(&world);
            world_two_clusters_init(&world);
        }
        const char *vc = strcmp(policies[i], "hived") ? "default" : "red";
        world_node(&world, "n1", 16, 4);
        world_node(&world, "n2", 16, 4);
        const uint32_t runs = world_submit_to(&world, "runs", vc, 10, 1);
        assert_non_null(world_command(&world, COMMAND_CREATE, 0));
        assert_int_equal(cluster_close(&world, vc, "a course"), 0);
        const struct cluster_record *row = cluster_row(&world);
        assert_string_equal(row->name, vc);
        assert_true(row->closing.is_closed && row->closing.at_ms == world.now_ms);
        assert_string_equal(row->closing.by, "admin");
        assert_string_equal(row->closing.why, "a course");
        const uint32_t waits = world_submit_to(&world, "waits", vc, 120, 1);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
        char text[100];
        snprintf(text, sizeof text, "virtual cluster %s is closed by admin since ", vc);
        assert_non_null(strstr(world_job(&world, waits)->reason, text));
        assert_non_null(strstr(world_job(&world, waits)->reason, "UTC: a course"));
        assert_true(world_job(&world, waits)->reason_topic == CLUSTER_CLOSED_TOPIC);
        assert_true(world_has_story(&world, "Waiting", text));
        world_exit(&world, 1, 0, 0); /* the one that runs goes on to its end, and frees room */
        assert_int_equal(world_job(&world, runs)->state, LIFE_COMPLETED);
        world_pass_end(&world);
        assert_int_equal(state_of(&world, waits), WAITING_QUEUED);
        assert_int_equal(cluster_open(&world, vc), 0);
        assert_false(cluster_row(&world)->closing.is_closed);
        assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
        world_release(&world);
    }
}

static void others_start_meanwhile(void **state)
{
    (void)state;
    struct world world;
    world_two_clusters_init(&world);
    world_node(&world, "n1", 16, 4);
    world_node(&world, "n2", 16, 4);
    assert_int_equal(cluster_close(&world, "red", ""), 0);
    const uint32_t red = world_submit_to(&world, "red", "red", 10, 1);
    assert_non_null(strstr(world_job(&world, red)->reason, "is closed by admin since"));
    world_submit_to(&world, "blue", "blue", 10, 1);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    /* opening another one tells it nothing new */
    assert_int_equal(cluster_close(&world, "blue", ""), 0);
    assert_int_equal(cluster_open(&world, "blue"), 0);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    assert_int_equal(state_of(&world, red), WAITING_QUEUED);
    world_release(&world);
}

static void a_closing_has_limits(void **state)
{
    (void)state;
    struct world world;
    char text[CLUSTER_CLOSED_WHY_MAX + 2], name[CLUSTER_NAME_MAX + 2];
    world_init(&world, "first-fit");
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(cluster_close(&world, "a", text), ERR_TOO_BIG);
    assert_null(cluster_row(&world));
    assert_int_equal(cluster_close(&world, "a", text + 1), 0);
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(cluster_close(&world, name, ""), ERR_INVALID);
    assert_int_equal(cluster_close(&world, name + 1, NULL), 0);
    assert_int_equal(cluster_close(&world, "", ""), ERR_INVALID);
    assert_int_equal(cluster_close(&world, NULL, ""), ERR_INVALID);
    assert_int_equal(cluster_open(&world, ""), ERR_INVALID);
    assert_int_equal(cluster_open(&world, "never"), 0); /* it is open */
    assert_null(cluster_row(&world));
    for (int i = 2; i < CLUSTERS_CLOSED_MAX; i++) {
        snprintf(text, sizeof text, "vc%d", i);
        assert_int_equal(cluster_close(&world, text, ""), 0);
    }
    assert_int_equal(cluster_close(&world, "more", ""), ERR_TOO_BIG);
    assert_int_equal(cluster_close(&world, "a", "again"), 0); /* it is one of them */
    struct event event = {.kind = EVENT_CLUSTER_CLOSE, .cluster = {.name = "a"}};
    world_step(&world, &event);
    assert_string_equal(cluster_row(&world)->closing.by, "the platform");
    assert_int_equal(cluster_open(&world, "a"), 0);
    assert_int_equal(cluster_close(&world, "more", ""), 0);
    assert_non_null(cluster_closed(world.core, "more"));
    assert_null(cluster_closed(world.core, "a"));
    world_release(&world);
}

/* Those behind the first of a class are told with it, and a new reason reaches them all. */
static void a_second_closing_tells_its_reason(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 4, 0);
    cluster_close(&world, "default", "a course");
    const uint32_t job = world_submit_simple(&world, "a", 1, 1, 0);
    world.now_ms += 60000;
    cluster_close(&world, "default", "a longer course");
    world_pass_end(&world);
    const uint32_t behind = world_submit_simple(&world, "b", 1, 1, 0);
    assert_non_null(strstr(world_job(&world, behind)->reason, ": a longer course"));
    assert_int_equal(state_of(&world, job), WAITING_QUEUED);
    world_release(&world);
}

static void a_starving_job_keeps_no_room(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    world_submit_to(&world, "old", "default", 10, 3);
    const uint32_t big = world_submit_to(&world, "big", "default", 10, 4);
    world_timer(&world, 601000);
    assert_int_equal(state_of(&world, big), WAITING_STARVING);
    world_submit_to(&world, "other", "other", 10, 1);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0); /* the room is held back */
    assert_int_equal(cluster_close(&world, "default", ""), 0);
    assert_int_equal(state_of(&world, big), WAITING_QUEUED);
    world_pass_end(&world);
    assert_int_equal(world.core->reservations.count, 0);
    assert_int_equal(gpus_used(&world), 4); /* the other one has started */
    world_release(&world);
}

/* Whoever was told to end for a job ends, and may start again: the job keeps nothing. */
static void a_preempting_job_gives_back_what_it_holds(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    world_submit_to(&world, "low", "other", -1, 4);
    world_run(&world, 1);
    const uint32_t high = world_submit_to(&world, "high", "default", 100, 4);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 1);
    assert_int_equal(state_of(&world, high), WAITING_PREEMPTING);
    assert_int_equal(cluster_close(&world, "default", ""), 0);
    world_pass_end(&world);
    assert_int_equal(state_of(&world, high), WAITING_QUEUED);
    world_exit(&world, 1, 137, 0);
    world_pass_end(&world);
    assert_int_equal(gpus_used(&world), 4);
    assert_int_equal(state_of(&world, high), WAITING_QUEUED);
    assert_int_equal(cluster_open(&world, "default"), 0); /* no pause: it preempts at once */
    world_pass_end(&world);
    assert_int_equal(state_of(&world, high), WAITING_PREEMPTING);
    world_release(&world);
}

static void a_dry_run_says_it(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    cluster_close(&world, "default", "a course");
    struct plan_role role = world_role("worker", 1, 1, 1);
    struct plan plan = world_plan_of("dry", &role);
    struct event event = {.kind = EVENT_SUBMIT,
                          .now_ms = world.now_ms,
                          .user = "alice",
                          .submit = {.plan = plan_copy(&plan)}};
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct core_trial trial;
    assert_int_equal(world_trial(&world, &event, &arena, &trial, NULL), 0);
    assert_false(trial.is_placed);
    assert_non_null(strstr(trial.reason, "virtual cluster default is closed by admin"));
    world_release(&world);
}

static void it_may_be_closed_by_nobody_in_particular(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    struct event event = {
        .kind = EVENT_CLUSTER_CLOSE, .user = "", .cluster = {.name = "default", .reason = ""}};
    world_step(&world, &event);
    assert_int_equal(world_answer(&world)->code, 0);
    assert_string_equal(cluster_row(&world)->closing.by, "the platform");
    world_release(&world);
}

static void it_stays_closed_over_a_restart(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, "first-fit");
    world_keep(&world);
    world_node(&world, "n1", 16, 4);
    cluster_close(&world, "default", "a course");
    cluster_close(&world, "gone", "no configuration names it");
    cluster_close(&world, "was", "");
    cluster_open(&world, "was");
    const uint32_t job = world_submit_simple(&world, "a", 1, 1, 1);
    const uint64_t before = core_hash(world.core);
    world_restart(&world);
    assert_true(core_hash(world.core) == before);
    assert_int_equal(core_closed_count(world.core), 2);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 0);
    struct core *copy = core_copy(world.core);
    assert_true(core_hash(copy) == before);
    core_free(copy);
    cluster_open(&world, "default");
    assert_true(core_hash(world.core) != before);
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    assert_int_equal(world_job(&world, job)->state, LIFE_CREATION_REQUESTED);
    const struct cluster_record twice = {"gone", {true, "admin", "", 1}};
    assert_int_equal(core_restore_cluster(world.core, &twice, NULL), ERR_CORRUPT);
    world_release(&world);
}

/* Neither closing nor opening does more in one step than any other: whatever waits is told bit by
 * bit. */
static void many_classes_are_told_in_steps(void **state)
{
    (void)state;
    enum { CLASSES = 3000, AT_ONCE_MAX = 600 };
    struct world world;
    world_init(&world, "first-fit");
    world_node(&world, "n1", 16, 4);
    world_submit_to(&world, "full", "other", 100, 4);
    for (uint32_t i = 0; i < CLASSES; i++) {
        struct plan_role role = world_role("worker", 1, 1, 1);
        char name[20];
        snprintf(name, sizeof name, "j%u", i);
        role.memory_mib = i + 1; /* a class of its own */
        struct plan plan = world_plan_of(name, &role);
        world_submit(&world, &plan);
    }
    world_pass_end(&world);
    const enum event_kind kinds[] = {EVENT_CLUSTER_CLOSE, EVENT_CLUSTER_OPEN};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        assert_int_equal(cluster_act(&world, kinds[i], "default", ""), 0);
        do {
            assert_in_range(world.output.records.count, 0, 2 * AT_ONCE_MAX);
        } while (world_pass_step(&world));
        uint32_t closed = 0;
        for (uint32_t job = 2; job <= CLASSES + 1; job++) {
            const struct core_job *of = core_job_find(world.core, (struct job_id){job});
            closed += of->reason_topic == CLUSTER_CLOSED_TOPIC;
        }
        assert_int_equal(closed, i == 0 ? CLASSES : 0);
    }
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_starts_until_it_is_opened),
    cmocka_unit_test(others_start_meanwhile),
    cmocka_unit_test(a_closing_has_limits),
    cmocka_unit_test(a_second_closing_tells_its_reason),
    cmocka_unit_test(a_starving_job_keeps_no_room),
    cmocka_unit_test(a_preempting_job_gives_back_what_it_holds),
    cmocka_unit_test(a_dry_run_says_it),
    cmocka_unit_test(it_may_be_closed_by_nobody_in_particular),
    cmocka_unit_test(it_stays_closed_over_a_restart),
    cmocka_unit_test(many_classes_are_told_in_steps),
};
UNIT_FILE(tests, NULL, NULL);
