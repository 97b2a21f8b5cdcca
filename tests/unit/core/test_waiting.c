/* The states of a waiting job: the table of the RFC is that of the code, and stories walk it. */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "core/jobs.h"
#include "core/state.h"
#include "core/waiting.h"

static char *cell_cut(char **line)
{
    char *cell = *line, *end = strchr(cell, '|');
    if (!end)
        return NULL;
    *end = '\0';
    *line = end + 1;
    while (*cell == ' ')
        cell++;
    for (end = cell + strlen(cell); end > cell && end[-1] == ' ';)
        *--end = '\0';
    return cell;
}

/* As the tables of the RFC call them. */
static const char *const state_names[WAITING_STATES] = {
    [WAITING_NOT] = "not waiting",
    [WAITING_QUEUED] = "queued",
    [WAITING_STARVING] = "starving",
    [WAITING_PLACING] = "placing",
    [WAITING_PLACING_STARVING] = "placing and starving",
    [WAITING_PREEMPTING] = "preempting",
    [WAITING_PREEMPTING_STARVING] = "preempting and starving",
    [WAITING_PAUSED] = "paused",
    [WAITING_PAUSED_STARVING] = "paused and starving",
    [WAITING_STARTING] = "starting",
};
static const char *const cause_names[WAITING_CAUSES] = {
    [WAITING_BY_QUEUE] = "queue",
    [WAITING_BY_UNQUEUE] = "unqueue",
    [WAITING_BY_TRY] = "try",
    [WAITING_BY_TAKEN] = "taken",
    [WAITING_BY_TIME] = "time",
    [WAITING_BY_STARVATION] = "starvation",
    [WAITING_BY_RESERVATION_LOST] = "reservation lost",
    [WAITING_BY_CLOSING] = "closed",
    [WAITING_BY_PLACER] = "placer",
};

static int state_named(const char *name)
{
    for (int i = 0; i < WAITING_STATES; i++)
        if (strcmp(state_names[i], name) == 0)
            return i;
    return -1;
}

static int cause_named(const char *name)
{
    for (int i = 0; i < WAITING_CAUSES; i++)
        if (strcmp(cause_names[i], name) == 0)
            return i;
    return -1;
}

typedef bool change_table[WAITING_CAUSES][WAITING_STATES][WAITING_STATES];

/* One line of the section "Changes"; other lines have no cause in their first cell. */
static void line_read(char *line, change_table known)
{
    char *rest = line + 1;
    const char *cause_cell = cell_cut(&rest), *from_cell = cause_cell ? cell_cut(&rest) : NULL;
    char *to_cell = from_cell ? cell_cut(&rest) : NULL;
    int cause = cause_cell ? cause_named(cause_cell) : -1;
    int from = from_cell ? state_named(from_cell) : -1;
    if (cause < 0 || from < 0 || !to_cell)
        return;
    for (char *name = strtok(to_cell, ","); name; name = strtok(NULL, ",")) {
        int to = state_named(name + (*name == ' '));
        assert_true(to >= 0);
        assert_false(known[cause][from][to]);
        known[cause][from][to] = true;
    }
}

static void the_rfc_has_the_table_of_the_code(void **state)
{
    (void)state;
    static change_table known;
    char line[2000];
    FILE *file = fopen(RFC_PATH, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (*line == '|')
            line_read(line, known);
    fclose(file);
    for (int cause = 0; cause < WAITING_CAUSES; cause++)
        for (int from = 0; from < WAITING_STATES; from++)
            for (int to = 0; to < WAITING_STATES; to++) {
                bool is_known = from == to || known[cause][from][to];
                if (is_known != waiting_can_change((enum waiting_cause)cause,
                                                   (enum waiting_state)from,
                                                   (enum waiting_state)to))
                    fail_msg("%s: %s -> %s: in one table only", cause_names[cause],
                             state_names[from], state_names[to]);
            }
}

static enum waiting_state state_of(const struct world *world, uint32_t job)
{
    struct core_job *entry = core_job_find(world->core, (struct job_id){job});
    assert_non_null(entry);
    assert_int_equal(entry->waiting, waiting_state(world->core, entry));
    return entry->waiting;
}

static uint32_t submit(struct world *world, const char *name, int32_t priority, bool is_gang,
                       uint32_t instances, uint32_t gpu)
{
    struct plan_role role = world_role("worker", instances, 1, gpu);
    struct plan plan = world_plan_of(name, &role);
    role.task_retry_max = 3;
    plan.priority = priority;
    plan.is_gang = is_gang;
    return world_submit(world, &plan);
}

/* One node of four GPUs that a job of low priority has. */
static void world_full(struct world *world)
{
    world_init(world, "first-fit");
    world_keep(world);
    world_node(world, "n1", 16, 4);
    submit(world, "low", -1, true, 1, 4);
    world_run(world, 1);
}

static void a_job_preempts_and_starts(void **state)
{
    (void)state;
    struct world world;
    world_full(&world);
    uint32_t high = submit(&world, "high", 100, true, 1, 4);
    assert_int_equal(state_of(&world, high), WAITING_PREEMPTING);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(state_of(&world, high), WAITING_NOT);
    uint32_t same = submit(&world, "same", 100, true, 1, 4);
    assert_int_equal(state_of(&world, same), WAITING_QUEUED);
    world_release(&world);
}

/* A gang that waits for its second node holds the first; a job of higher priority takes that. */
static void what_it_holds_is_taken(void **state)
{
    (void)state;
    struct world world;
    world_full(&world);
    world_node(&world, "n2", 16, 4);
    struct plan_role roles[] = {world_role("one", 1, 1, 4), world_role("two", 1, 1, 4)};
    struct plan plan = world_plan_of("gang", roles);
    plan.role_count = 2;
    plan.priority = 100;
    roles[0].affinity_group = "one";
    roles[1].affinity_group = "two";
    uint32_t gang = world_submit(&world, &plan);
    assert_int_equal(state_of(&world, gang), WAITING_PREEMPTING);
    uint32_t top = submit(&world, "top", 500, true, 1, 4);
    assert_true(world_has_trace(&world, "takes what alice~gang"));
    assert_int_equal(state_of(&world, top), WAITING_PREEMPTING);
    assert_int_equal(state_of(&world, gang), WAITING_QUEUED);
    world_pass_end(&world);
    assert_int_equal(state_of(&world, top), WAITING_NOT);
    world_release(&world);
}

/* The node fails whose tasks were told to end: nothing has come of it. */
static void whoever_preempts_in_vain_pauses(void **state)
{
    (void)state;
    struct world world;
    world_full(&world);
    uint32_t high = submit(&world, "high", 100, true, 1, 4);
    assert_int_equal(state_of(&world, high), WAITING_PREEMPTING);
    world_node_event(&world, EVENT_NODE_LOST, "n1");
    assert_int_equal(state_of(&world, high), WAITING_PAUSED);
    world_timer(&world, 29000);
    assert_int_equal(state_of(&world, high), WAITING_PAUSED);
    world_timer(&world, 1000);
    assert_int_equal(state_of(&world, high), WAITING_QUEUED);
    world_release(&world);
}

/* Nothing else happens: the end of the pause alone has it tried, and it may end others again. */
static void after_its_pause_it_preempts_again(void **state)
{
    (void)state;
    struct world world;
    world_full(&world);
    world_node(&world, "n2", 16, 4);
    submit(&world, "one", 500, true, 1, 2);
    world_run(&world, 2);
    submit(&world, "two", 500, true, 1, 2);
    world_run(&world, 3);
    uint32_t high = submit(&world, "high", 100, true, 1, 4);
    assert_int_equal(state_of(&world, high), WAITING_PREEMPTING);
    world_node_event(&world, EVENT_NODE_LOST, "n1");
    assert_int_equal(state_of(&world, high), WAITING_PAUSED);
    /* half of n2 is taken by a job that it may end, but not now, before the other half is free */
    submit(&world, "behind", -1, true, 1, 2);
    world_exit(&world, 2, 0, 0);
    const uint64_t victim = world_command(&world, COMMAND_CREATE, 0)->attempt.v;
    world_run(&world, victim);
    world_exit(&world, 3, 0, 0);
    world_timer(&world, 29000);
    assert_int_equal(state_of(&world, high), WAITING_PAUSED);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
    world_timer(&world, 1000);
    assert_int_equal(state_of(&world, high), WAITING_PREEMPTING);
    assert_int_equal(world_command(&world, COMMAND_KILL, 0)->attempt.v, victim);
    world_release(&world);
}

/* Each failure doubles the pause, until the job has started: what comes later begins anew. */
static void pauses_begin_anew_after_a_start(void **state)
{
    (void)state;
    struct world world;
    world_full(&world);
    uint32_t high = submit(&world, "high", 100, true, 1, 4);
    world_node_event(&world, EVENT_NODE_LOST, "n1");
    assert_int_equal(state_of(&world, high), WAITING_PAUSED);
    world_node(&world, "n1", 16, 4);
    assert_int_equal(state_of(&world, high), WAITING_NOT);
    world_node(&world, "n2", 16, 4); /* low is there now */
    assert_int_equal(world_command_count(&world, COMMAND_CREATE), 1);
    world_timer(&world, 30000);
    world_node_event(&world, EVENT_NODE_LOST, "n1");
    world_timer(&world, 2000);
    assert_int_equal(state_of(&world, high), WAITING_PREEMPTING);
    world_node_event(&world, EVENT_NODE_LOST, "n2");
    assert_int_equal(state_of(&world, high), WAITING_PAUSED);
    world_timer(&world, 29000);
    assert_int_equal(state_of(&world, high), WAITING_PAUSED);
    world_timer(&world, 1000);
    assert_int_equal(state_of(&world, high), WAITING_QUEUED);
    world_release(&world);
}

/* Nor may it after a restart, and the next failure doubles the pause all the same. */
static void a_pause_outlives_a_restart(void **state)
{
    (void)state;
    struct world world;
    world_full(&world);
    uint32_t high = submit(&world, "high", 100, true, 1, 4);
    world_node_event(&world, EVENT_NODE_LOST, "n1");
    world_timer(&world, 10000);
    world_restart(&world);
    assert_int_equal(state_of(&world, high), WAITING_PAUSED);
    world_timer(&world, 19000);
    assert_int_equal(state_of(&world, high), WAITING_PAUSED);
    world_timer(&world, 1000); /* asked for by the new core */
    assert_int_equal(state_of(&world, high), WAITING_QUEUED);
    const struct core_job *job = core_job_find(world.core, (struct job_id){high});
    assert_int_equal(job->life.preempt_failures, 1);
    world_node(&world, "n1", 16, 4);
    assert_int_equal(state_of(&world, high), WAITING_NOT);
    assert_int_equal(job->life.preempt_failures, 0);
    world_restart(&world);
    job = core_job_find(world.core, (struct job_id){high});
    assert_int_equal(job->life.preempt_failures, 0);
    world_release(&world);
}

static void a_pause_may_starve_and_outlives_a_stop(void **state)
{
    (void)state;
    struct world world;
    world_full(&world);
    world_node(&world, "n2", 16, 4);
    world.config.starvation_after_s = 10;
    world_configure(&world);
    submit(&world, "other", 500, true, 1, 4);
    world_run(&world, 2);
    uint32_t high = submit(&world, "high", 100, true, 1, 4);
    assert_int_equal(state_of(&world, high), WAITING_PREEMPTING);
    world_node_event(&world, EVENT_NODE_LOST, "n1");
    assert_int_equal(state_of(&world, high), WAITING_PAUSED);
    world_timer(&world, 15000);
    assert_int_equal(state_of(&world, high), WAITING_PAUSED_STARVING);
    world_timer(&world, 15000);
    assert_int_equal(state_of(&world, high), WAITING_STARVING);
    uint32_t higher = submit(&world, "higher", 200, true, 1, 4);
    world_timer(&world, 11000);
    assert_int_equal(state_of(&world, higher), WAITING_STARVING);
    assert_int_equal(state_of(&world, high), WAITING_QUEUED);
    world_release(&world);
}

/* A new placer knows neither holds nor shadows. */
static void another_policy_begins_anew(void **state)
{
    (void)state;
    struct world world;
    world_full(&world);
    world.config.starvation_after_s = 10;
    world_configure(&world);
    uint32_t same = submit(&world, "same", -1, true, 1, 4);
    world_timer(&world, 11000);
    assert_int_equal(state_of(&world, same), WAITING_STARVING);
    world.config.starvation_after_s = 1000;
    world.config.policy = "spread";
    world_configure(&world);
    assert_int_equal(state_of(&world, same), WAITING_QUEUED);
    uint32_t high = submit(&world, "high", 100, true, 1, 4);
    assert_int_equal(state_of(&world, high), WAITING_PREEMPTING);
    world.config.policy = "best-fit";
    world_configure(&world);
    assert_int_equal(state_of(&world, high), WAITING_PREEMPTING);
    assert_int_equal(world_command_count(&world, COMMAND_KILL), 0);
    world_exit(&world, 1, 143, 0);
    assert_int_equal(state_of(&world, high), WAITING_NOT);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_rfc_has_the_table_of_the_code),
    cmocka_unit_test(a_job_preempts_and_starts),
    cmocka_unit_test(what_it_holds_is_taken),
    cmocka_unit_test(whoever_preempts_in_vain_pauses),
    cmocka_unit_test(after_its_pause_it_preempts_again),
    cmocka_unit_test(pauses_begin_anew_after_a_start),
    cmocka_unit_test(a_pause_outlives_a_restart),
    cmocka_unit_test(a_pause_may_starve_and_outlives_a_stop),
    cmocka_unit_test(another_policy_begins_anew),
};
UNIT_FILE(tests, NULL, NULL);
