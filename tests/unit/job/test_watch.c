/* Node blame and hang detection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/blame.h"
#include "job/hang.h"

static const struct blame_policy policy = {.half_life_s = 3600, .avoid = 3, .cordon = 10};

static void blame_rises_and_decays(void **state)
{
    (void)state;
    struct blame blame = {0};
    int64_t now_ms = 1000000;
    assert_false(blame_add(&blame, &policy, 1, now_ms));
    assert_false(blame_add(&blame, &policy, 1, now_ms));
    assert_true(blame_add(&blame, &policy, 1, now_ms));
    assert_int_equal(blame.level, BLAME_AVOID);
    assert_int_equal((int)(blame_value(&blame, &policy, now_ms + 3600000) * 1000), 1500);
    assert_int_equal((int)blame_value(&blame, &policy, now_ms - 5), 3);
    assert_false(blame_look(&blame, &policy, now_ms));
    const int64_t next_ms = blame_next_ms(&blame, &policy);
    assert_true(next_ms > now_ms && next_ms <= now_ms + 2);
    assert_true(blame_look(&blame, &policy, next_ms));
    assert_int_equal(blame.level, BLAME_NONE);
    assert_int_equal(blame_next_ms(&blame, &policy), 0);
}

static void cordon_lasts_until_below_avoid(void **state)
{
    (void)state;
    struct blame blame = {0};
    int64_t now_ms = 0;
    for (int i = 0; i < 12; i++)
        blame_add(&blame, &policy, 1, now_ms);
    assert_int_equal(blame.level, BLAME_CORDON);
    assert_false(blame_look(&blame, &policy, now_ms + 3600000)); /* 6: would be avoid */
    assert_int_equal(blame.level, BLAME_CORDON);
    now_ms = blame_next_ms(&blame, &policy);
    assert_true(now_ms > 3600000);
    assert_true(blame_look(&blame, &policy, now_ms));
    assert_int_equal(blame.level, BLAME_NONE);
    blame_add(&blame, &policy, 20, now_ms);
    blame_pardon(&blame, now_ms);
    assert_int_equal(blame.level, BLAME_NONE);
    assert_true(blame_value(&blame, &policy, now_ms) == 0);
}

static void blame_without_decay(void **state)
{
    (void)state;
    const struct blame_policy forever = {.half_life_s = 0, .avoid = 1, .cordon = 2};
    struct blame blame = {0};
    blame_add(&blame, &forever, 1, 0);
    assert_true(blame_value(&blame, &forever, INT64_MAX) == 1);
    assert_int_equal(blame_next_ms(&blame, &forever), 0);
    const struct blame_policy always = {.half_life_s = 1, .avoid = 0, .cordon = 0};
    assert_false(blame_add(&blame, &always, 0, 0) && blame.level == BLAME_NONE);
    assert_int_equal(blame_next_ms(&blame, &always), 0);
    assert_string_equal(blame_level_name(BLAME_CORDON), "cordon");
}

static void only_the_platform_is_blamed(void **state)
{
    (void)state;
    const struct completion lost = completion_of(CODE_NODE_LOST, "%s", "");
    const struct completion preempted = completion_of(CODE_PREEMPTED, "%s", "");
    const struct completion object = completion_of(CODE_OBJECT_DELETED, "%s", "");
    const struct completion timeout = completion_of(CODE_OBJECT_CREATION_TIMEOUT, "%s", "");
    const struct completion good = completion_of(0, "%s", "");
    assert_true(blame_weight(&lost, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 1);
    assert_true(blame_weight(&lost, "USER_FAILURE", EVIDENCE_PLATFORM) == 0);
    assert_true(blame_weight(&lost, "PLATFORM_FAILURE", EVIDENCE_TASK) == 0);
    assert_true(blame_weight(&preempted, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    const struct completion memory = {.code = -1212}; /* not the node's: its tasks' or others' */
    assert_true(blame_weight(&memory, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    const struct completion full = {.code = -1211}; /* its health says so, and for how long */
    assert_true(blame_weight(&full, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    assert_true(blame_weight(&object, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    assert_true(blame_weight(&timeout, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    assert_true(blame_weight(&good, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
}

static void sample(struct hang_track *track, int64_t at_s, uint64_t cpu_ms, uint64_t output,
                   int gpu)
{
    const struct hang_sample taken = {.at_ms = at_s * 1000,
                                      .cpu_ns = cpu_ms * 1000000,
                                      .output_bytes = output,
                                      .has_gpus = gpu >= 0,
                                      .gpu_percent = (uint8_t)(gpu > 0 ? gpu : 0)};
    hang_track_sample(track, &taken);
}

static void one_stands_still(void **state)
{
    (void)state;
    struct hang_track tracks[3] = {0};
    for (int64_t at_s = 10; at_s <= 700; at_s += 10) {
        sample(&tracks[0], at_s, 5, 100, -1);                  /* nothing */
        sample(&tracks[1], at_s, (uint64_t)at_s * 900, 7, -1); /* computes */
        sample(&tracks[2], at_s, 5, 100, 30);                  /* uses its GPU */
        const enum hang_verdict want = at_s == 610 ? HANG_IDLE : HANG_NO;
        assert_int_equal(hang_judge(tracks, 3, 0, 600, at_s * 1000), want);
        assert_int_equal(hang_judge(tracks, 3, 1, 600, at_s * 1000), HANG_NO);
        assert_int_equal(hang_judge(tracks, 3, 2, 600, at_s * 1000), HANG_NO);
    }
    sample(&tracks[0], 710, 5, 101, -1); /* a word: begins anew */
    assert_int_equal(hang_judge(tracks, 3, 0, 600, 720000), HANG_NO);
    assert_int_equal(hang_judge(tracks, 3, 0, 0, 99999999), HANG_NO);
    assert_int_equal(hang_judge(tracks, 3, 0, UINT64_MAX, INT64_MAX), HANG_NO);
}

static void all_stand_still(void **state)
{
    (void)state;
    struct hang_track tracks[2] = {0};
    assert_int_equal(hang_judge(tracks, 2, 0, 60, 1000000), HANG_NO); /* never sampled */
    sample(&tracks[0], 10, 5, 0, 0);
    sample(&tracks[1], 10, 5, 0, 0);
    assert_int_equal(hang_judge(tracks, 2, 0, 60, 5000), HANG_NO); /* clock went back */
    assert_int_equal(hang_judge(tracks, 2, 0, 60, 70000), HANG_ALL);
    assert_int_equal(hang_judge(tracks, 2, 0, 60, 80000), HANG_NO);
    sample(&tracks[1], 90, 5, 1, 0);
    assert_int_equal(hang_judge(tracks, 2, 0, 60, 90000), HANG_IDLE);
    assert_int_equal(hang_judge(tracks, 2, 0, 60, 91000), HANG_NO);
}

/* They wait for the same thing, but came to it one after the other. */
static void all_stop_one_after_the_other(void **state)
{
    (void)state;
    struct hang_track tracks[2] = {0};
    sample(&tracks[0], 10, 5, 0, -1);
    sample(&tracks[1], 39, 5, 0, -1);
    assert_int_equal(hang_judge(tracks, 2, 0, 60, 70000), HANG_ALL);
    sample(&tracks[1], 40, 5, 1, -1); /* half of the time longer: that one moved */
    assert_int_equal(hang_judge(tracks, 2, 0, 60, 71000), HANG_IDLE);
}

static void alone(void **state)
{
    (void)state;
    struct hang_track track = {0};
    sample(&track, 10, 5, 0, -1);
    sample(&track, 5, 6, 0, -1); /* time went back: any CPU counts */
    assert_int_equal(track.moved_ms, 5000);
    sample(&track, 65, 606, 0, -1); /* 600 ms in 60 s: one percent, a trickle */
    assert_int_equal(hang_judge(&track, 1, 0, 60, 65000), HANG_IDLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blame_rises_and_decays),
        cmocka_unit_test(cordon_lasts_until_below_avoid),
        cmocka_unit_test(blame_without_decay),
        cmocka_unit_test(only_the_platform_is_blamed),
        cmocka_unit_test(one_stands_still),
        cmocka_unit_test(all_stand_still),
        cmocka_unit_test(all_stop_one_after_the_other),
        cmocka_unit_test(alone),
    };
    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
