/* A whole server is walked through requests, faults of its edges, reloads and restarts: by one
 * script with one more thing at each place of it, and by chance.
 *
 * At every place, and in so many worlds: test-server-walk walk -- COUNT [SEED [log]]
 *
 * Covers: src/server/batch_failure.c, src/server/recover.c */
#include "faults.h"
#include "quiet.h"
#include "unit.h"
#include "walk.h"
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/random.h"
#include "server/state.h"
#include "sys/log.h"

static const struct walk_step script[] = {
    {WALK_SUBMIT, WALK_GANG},
    {WALK_RUN, 0},
    {WALK_SUBMIT, WALK_LOOSE},
    {WALK_RUN, 0},
    {WALK_END, 0},
    {WALK_SUBMIT, WALK_BIG},
    {WALK_SETTING, 0},
    {WALK_FAIL, 1},
    {WALK_PASS, 2},
    {WALK_RUN, 0},
    {WALK_SCALE, 5},
    {WALK_RUN, 0},
    {WALK_SUBMIT, WALK_DEBUG},
    {WALK_RUN, 0},
    {WALK_CORDON, 0},
    {WALK_NODE_GONE, 1},
    {WALK_AGAIN, 0},
    {WALK_NODE_FINE, 1},
    {WALK_PASS, 5},
    {WALK_RUN, 0},
    {WALK_SUBMIT_AGAIN, 2},
    {WALK_CLOSE, 0},
    {WALK_SUBMIT, WALK_URGENT},
    {WALK_OPEN, 0},
    {WALK_RUN, 0},
    {WALK_UNCORDON, 0},
    {WALK_RELOAD, 1},
    {WALK_ROUND, 1},
    {WALK_RUN, 0},
    {WALK_UNHEARD, 2},
    {WALK_STOP, 2},
    {WALK_SCALE, 1},
    {WALK_DELETE, 2},
    {WALK_CREATE_FAIL, 0},
    {WALK_SUBMIT, WALK_GANG},
    {WALK_PASS, 3},
    {WALK_RUN, 0},
    {WALK_VANISH, 3},
    {WALK_RELOAD, 0},
    {WALK_DRAIN, 2},
    {WALK_PASS, 2},
    {WALK_RUN, 0},
    {WALK_START, 2},
    {WALK_STRANGER, 0},
    {WALK_STOP, 0},
    {WALK_DELETE, 0},
};
enum { STEPS = sizeof script / sizeof script[0] };

/* One at a time. */
static struct walk walk;
static void *walked;

static void walk_away(void)
{
    if (!walked)
        return;
    quiet_release();
    if (walk.reader) /* of a look that went wrong */
        walk.world->service->reader_put(walk.world->service->context, walk.reader);
    teardown_faults(&walked);
    walked = NULL;
    quiet_clear();
    yard_clear();
}

static int teardown_walk(void **state)
{
    (void)state;
    walk_away();
    return 0;
}

static void walked_begin(const char *what, unsigned seed)
{
    if (!unit_argument(2))
        log_to(-1);
    walked = world_new("runMilliseconds: 1", ""); /* walk_begin starts its server */
    walk_begin(&walk, walked, what, seed);
}

static void walked_end(void)
{
    walk_end(&walk);
    walk_away();
}

/* How far apart the places are that are tried: one in so many, unless worlds are asked for. */
enum { SPARSE = 20 };

static unsigned apart(void)
{
    return unit_argument(0) ? 1 : SPARSE;
}

static void script_walk(void)
{
    for (unsigned i = 0; i < STEPS; i++)
        walk_step(&walk, &script[i]);
}

/* The script, with one more thing that happens after each of its steps in turn. */
static void script_with(const char *what, struct walk_step more)
{
    for (unsigned k = (unsigned)more.op % apart(); k < STEPS; k += apart()) {
        walked_begin(what, k);
        for (unsigned i = 0; i < STEPS; i++) {
            walk_step(&walk, &script[i]);
            if (i == k)
                walk_step(&walk, &more);
        }
        walked_end();
    }
}

/* The script, with something that comes at each of its commits in turn. */
static void script_at_commits(const char *what, void (*comes)(unsigned others))
{
    unsigned commits = 0;

    for (unsigned k = 0; k == 0 || k < commits; k += apart()) {
        walked_begin(what, k);
        commits = commits_count();
        comes(k);
        script_walk();
        commits = commits_count() - commits;
        walked_end();
    }
}

static void the_script_alone(void **state)
{
    (void)state;
    walked_begin("the script alone", 0);
    script_walk();
    walked_end();
}

static void a_restart_at_any_step(void **state)
{
    (void)state;
    script_with("a restart", (struct walk_step){WALK_RESTART, 0});
}

static void a_boot_at_any_step(void **state)
{
    (void)state;
    script_with("a boot", (struct walk_step){WALK_BOOT, 0});
}

static void a_crash_at_any_step(void **state)
{
    (void)state;
    script_with("a crash", (struct walk_step){WALK_CRASH, 0});
}

static void a_reload_at_any_step(void **state)
{
    (void)state;
    script_with("a reload", (struct walk_step){WALK_RELOAD, 3});
}

static void a_bad_reload_at_any_step(void **state)
{
    (void)state;
    script_with("a bad reload", (struct walk_step){WALK_RELOAD_BAD, 2});
}

static void a_clock_that_jumps_at_any_step(void **state)
{
    (void)state;
    script_with("a clock set forward", (struct walk_step){WALK_CLOCK, 90});
    script_with("a clock set back", (struct walk_step){WALK_CLOCK, -90});
}

static void refuse_for_now(unsigned others)
{
    commit_fails_after(others, ERR_UNAVAILABLE);
}

static void any_commit_meets_a_full_disk(void **state)
{
    (void)state;
    script_at_commits("a full disk", refuse_for_now);
}

static void refuse_one(unsigned others)
{
    commit_fails_after(others, ERR_INTERNAL);
}

static void any_commit_has_a_wrong_record(void **state)
{
    (void)state;
    script_at_commits("a wrong record", refuse_one);
}

static void fail_before(unsigned others)
{
    power_fails_after(others, false);
}

static void the_power_fails_before_any_commit(void **state)
{
    (void)state;
    script_at_commits("no power before", fail_before);
}

static void fail_behind(unsigned others)
{
    power_fails_after(others, true);
}

static void the_power_fails_behind_any_commit(void **state)
{
    (void)state;
    script_at_commits("no power behind", fail_behind);
}

/* Upkeep has its time while the disk is full, and waits for it, as everything does. */
static void a_full_disk_does_not_keep_the_core_thread_busy(void **state)
{
    static const struct walk_step begin = {WALK_SUBMIT, WALK_GANG};
    (void)state;

    walked_begin("a long outage", 0);
    walk_step(&walk, &begin);
    COMMITS(ERR_UNAVAILABLE, ERR_UNAVAILABLE, ERR_UNAVAILABLE);
    yard_node_tell(0);
    assert_true(quiet_await());
    assert_int_equal(metric(walk.world, "skep_store_writable"), 0);
    time_pass(UPKEEP_MS);
    assert_true(quiet_await());
    assert_int_equal(metric(walk.world, "skep_store_writable"), 0);
    walked_end();
}

/* --- by chance --- */

/* How often each comes, of all. */
static const unsigned char weights[WALK_OPS] = {
    [WALK_SUBMIT] = 14,   [WALK_SUBMIT_AGAIN] = 2, [WALK_STOP] = 5,      [WALK_START] = 4,
    [WALK_DELETE] = 6,    [WALK_SCALE] = 6,        [WALK_RELEASE] = 2,   [WALK_CORDON] = 2,
    [WALK_DRAIN] = 2,     [WALK_UNCORDON] = 4,     [WALK_CLOSE] = 1,     [WALK_OPEN] = 2,
    [WALK_SETTING] = 2,   [WALK_ROUND] = 4,        [WALK_RUN] = 16,      [WALK_END] = 10,
    [WALK_FAIL] = 8,      [WALK_VANISH] = 3,       [WALK_REFUSE] = 3,    [WALK_UNHEARD] = 3,
    [WALK_NODE_SICK] = 2, [WALK_NODE_GONE] = 2,    [WALK_NODE_FINE] = 5, [WALK_AGAIN] = 2,
    [WALK_STRANGER] = 1,  [WALK_CREATE_FAIL] = 3,  [WALK_PASS] = 12,     [WALK_CLOCK] = 2,
    [WALK_DISK] = 5,      [WALK_ROW] = 3,          [WALK_UNREAD] = 1,    [WALK_READABLE] = 2,
    [WALK_RELOAD] = 3,    [WALK_RELOAD_BAD] = 1,   [WALK_RESTART] = 4,   [WALK_BOOT] = 1,
    [WALK_CRASH] = 3,
};

static struct walk_step step_draw(struct random *random)
{
    unsigned all = 0;

    for (unsigned i = 0; i < WALK_OPS; i++)
        all += weights[i];
    unsigned at = (unsigned)random_below(random, all);
    struct walk_step step = {0};
    while (at >= weights[step.op])
        at -= weights[step.op++];
    step.argument = (int)random_below(random, 20);
    if (step.op == WALK_CLOCK)
        step.argument = (int)random_below(random, 400) - 200;
    return step;
}

static void a_world_by_chance(unsigned seed)
{
    enum { CHANCE_STEPS = 60, FAR = 40 };
    struct random random = {.state = seed};

    walked_begin("by chance", seed);
    for (unsigned i = 0; i < CHANCE_STEPS; i++) {
        const struct walk_step step = step_draw(&random);
        const uint64_t fault = random_below(&random, FAR);
        if (fault < 4)
            power_fails_after((unsigned)fault, random_below(&random, 2) == 0);
        walk_step(&walk, &step);
    }
    walked_end();
}

static void worlds_by_chance(void **state)
{
    enum { WORLDS = 8, SEED = 1 };
    const char *count = unit_argument(0), *seed = unit_argument(1);
    const unsigned long first = seed ? strtoul(seed, NULL, 10) : SEED;
    const unsigned long worlds = count ? strtoul(count, NULL, 10) : WORLDS;
    (void)state;

    if (unit_argument(2))
        log_setup(LOG_DEBUG, LOG_TEXT);
    for (unsigned long i = 0; i < worlds; i++)
        a_world_by_chance((unsigned)(first + i));
}

#define WALK(test) cmocka_unit_test_teardown(test, teardown_walk)
static const struct CMUnitTest tests[] = {
    WALK(the_script_alone),
    WALK(a_restart_at_any_step),
    WALK(a_boot_at_any_step),
    WALK(a_crash_at_any_step),
    WALK(a_reload_at_any_step),
    WALK(a_bad_reload_at_any_step),
    WALK(a_clock_that_jumps_at_any_step),
    WALK(any_commit_meets_a_full_disk),
    WALK(any_commit_has_a_wrong_record),
    WALK(the_power_fails_before_any_commit),
    WALK(the_power_fails_behind_any_commit),
    WALK(a_full_disk_does_not_keep_the_core_thread_busy),
    WALK(worlds_by_chance),
};
UNIT_FILE(tests, world_begin, NULL);
