/* Which tasks stand still. */
#include "unit.h"

#include "job/hang.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_stands_still),
    cmocka_unit_test(all_stand_still),
    cmocka_unit_test(all_stop_one_after_the_other),
    cmocka_unit_test(alone),
};
UNIT_FILE(tests, NULL, NULL);
