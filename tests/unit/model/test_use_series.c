/* A series of use: what it gives back is what went in, in bounded space, whatever the times. */
#include "unit.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/use_series.h"
#include <string.h>

static const int64_t NOON_MS = 1795000000000;

static void values_set(uint64_t values[USE_FIELDS], uint64_t value)
{
    for (size_t i = 0; i < USE_FIELDS; i++)
        values[i] = value;
}

static void sample(struct use_series *series, int64_t at_ms, uint64_t value)
{
    uint64_t values[USE_FIELDS];
    values_set(values, value);
    use_series_add(series, at_ms, values);
}

/* Eleven bits are kept, small numbers and what is not known exactly. */
static void test_codes(void **state)
{
    (void)state;
    assert_true(use_value(use_code(USE_UNKNOWN)) == USE_UNKNOWN);
    for (uint64_t value = 0; value < 5000; value++) {
        uint64_t back = use_value(use_code(value));
        assert_true(back <= value && value - back <= value / 1024);
        assert_true(value >= 2048 || back == value);
        assert_true(use_code(value) <= use_code(value + 1));
    }
    for (unsigned shift = 11; shift < 64; shift++) {
        uint64_t value = (UINT64_C(1) << shift) + (UINT64_C(1) << (shift - 1)) + 1;
        uint64_t back = use_value(use_code(value));
        assert_true(back <= value && value - back <= value / 1024);
        assert_int_equal(use_code(back), use_code(value)); /* it does not wear off */
    }
    assert_true(use_value(use_code(USE_UNKNOWN - 1)) != USE_UNKNOWN);
}

/* Walks with gaps against all samples that were ever taken. */
struct walk {
    struct use_series series;
    struct {
        struct walk_sample {
            int64_t step;
            uint64_t value; /* or unknown */
        } * items;
        size_t count, room;
    } samples;
};

static uint64_t mean_of_steps(const struct walk *walk, int64_t from, int64_t to)
{
    uint64_t sum = 0, count = 0;
    for (size_t i = 0; i < walk->samples.count; i++) {
        const struct walk_sample *one = &walk->samples.items[i];
        if (one->step < from || one->step >= to || one->value == USE_UNKNOWN)
            continue;
        sum += one->value;
        count++;
    }
    return count ? sum / count : USE_UNKNOWN;
}

static void check_points(const struct walk *walk, enum use_resolution resolution)
{
    static struct use_points points;
    use_series_points(&walk->series, resolution, &points);
    assert_true(points.count > 0 && points.count <= USE_POINTS_MAX);
    int64_t end_ms = points.begin_ms + (int64_t)points.count * points.step_ms;
    int64_t last = walk->samples.items[walk->samples.count - 1].step;
    assert_true(end_ms > last * USE_STEP_MS && end_ms - points.step_ms <= last * USE_STEP_MS);
    assert_true(resolution == USE_WHOLE
                    ? points.begin_ms == walk->samples.items[0].step * USE_STEP_MS
                    : points.step_ms == USE_STEP_MS);
    for (size_t i = 0; i < points.count; i++) {
        int64_t from = (points.begin_ms + (int64_t)i * points.step_ms) / USE_STEP_MS;
        uint64_t real = mean_of_steps(walk, from, from + points.step_ms / USE_STEP_MS);
        uint64_t shown = points.values[i][USE_CPU];
        assert_int_equal(real == USE_UNKNOWN, shown == USE_UNKNOWN);
        if (resolution == USE_RECENT && real != USE_UNKNOWN)
            assert_true(shown == use_value(use_code(real)));
        else if (real != USE_UNKNOWN) /* a mean of means: within what the samples can be */
            assert_true(shown >= 990 && shown <= 2010);
    }
}

static void check_bytes(const struct use_series *series)
{
    struct buf bytes = BUF_INIT;
    struct use_series *back = mem_zero(1, sizeof *back);
    struct err err;
    use_series_write(series, &bytes);
    assert_int_equal(bytes.length, USE_SERIES_SIZE);
    assert_int_equal(use_series_read(back, buf_as_text(&bytes), &err), 0);
    struct buf again = BUF_INIT;
    use_series_write(back, &again);
    assert_memory_equal(bytes.at, again.at, USE_SERIES_SIZE);
    buf_release(&bytes);
    buf_release(&again);
    mem_free(back);
}

static void test_walks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct walk walk = {0};
        struct random random = {seed};
        int64_t step = NOON_MS / USE_STEP_MS;
        for (size_t i = 0, n = random_below(&random, 2000) + 1; i < n; i++) {
            uint64_t value = 1000 + random_below(&random, 1000);
            if (random_below(&random, 20) == 0)
                value = USE_UNKNOWN;
            sample(&walk.series, step * USE_STEP_MS + (int64_t)random_below(&random, USE_STEP_MS),
                   value);
            *ARRAY_ADD(&walk.samples) = (struct walk_sample){step, value};
            step += random_below(&random, 50) ? 1 : (int64_t)random_below(&random, 400) + 1;
        }
        check_points(&walk, USE_RECENT);
        check_points(&walk, USE_WHOLE);
        check_bytes(&walk.series);
        ARRAY_FREE(&walk.samples);
    }
}

/* While nothing is merged the means are exact. */
static void test_means(void **state)
{
    (void)state;
    static struct use_series series;
    static struct use_points points;
    memset(&series, 0, sizeof series);
    for (int64_t i = 0; i < 2 * USE_WHOLE_POINTS; i++)
        sample(&series, NOON_MS + i * USE_STEP_MS, (uint64_t)(i % 2 ? 300 : 100));
    use_series_points(&series, USE_WHOLE, &points);
    assert_int_equal(points.step_ms, 2 * USE_STEP_MS);
    assert_int_equal(points.count, USE_WHOLE_POINTS);
    for (size_t i = 0; i < points.count; i++)
        assert_int_equal(points.values[i][USE_GPU], 200);
}

static void test_clock(void **state)
{
    (void)state;
    static struct use_series series;
    static struct use_points points;
    memset(&series, 0, sizeof series);
    use_series_points(&series, USE_RECENT, &points);
    assert_int_equal(points.count, 0);
    sample(&series, NOON_MS, 1);
    sample(&series, NOON_MS + 5 * USE_STEP_MS, 2);
    sample(&series, NOON_MS + 3 * USE_STEP_MS, 9); /* a little back: passed over */
    use_series_points(&series, USE_RECENT, &points);
    assert_int_equal(points.count, 6);
    assert_true(points.values[3][USE_CPU] == USE_UNKNOWN);
    assert_int_equal(points.values[5][USE_CPU], 2);
    sample(&series, NOON_MS + 5 * USE_STEP_MS + 1, 4); /* the same step: the later one counts */
    use_series_points(&series, USE_RECENT, &points);
    assert_int_equal(points.values[5][USE_CPU], 4);
    sample(&series, NOON_MS - 86400000, 7); /* far back: as the next one, and all before it stays */
    sample(&series, NOON_MS - 86400000 + USE_STEP_MS, 8);
    for (enum use_resolution i = USE_RECENT; i <= USE_WHOLE; i++) {
        use_series_points(&series, i, &points);
        assert_int_equal(points.count, 8);
        assert_int_equal(points.begin_ms / USE_STEP_MS, NOON_MS / USE_STEP_MS);
        assert_int_equal(points.values[0][USE_CPU], 1);
        assert_int_equal(points.values[5][USE_CPU], i == USE_RECENT ? 4 : 3); /* its mean */
        assert_int_equal(points.values[6][USE_CPU], 7);
        assert_int_equal(points.values[7][USE_CPU], 8);
    }
    sample(&series, NOON_MS + INT64_C(86400000) * 365 * 50, 8); /* far ahead */
    use_series_points(&series, USE_WHOLE, &points);
    assert_in_range(points.count, USE_WHOLE_POINTS / 2, USE_WHOLE_POINTS);
    use_series_points(&series, USE_RECENT, &points);
    assert_int_equal(points.count, USE_RECENT_POINTS);
    assert_true(points.values[0][USE_CPU] == USE_UNKNOWN);
    check_bytes(&series);
}

/* Two tasks that begin at different times. */
static void test_sum(void **state)
{
    (void)state;
    static struct use_series early, late;
    static struct use_points points, sum;
    int64_t end_ms = NOON_MS + 999 * USE_STEP_MS;
    memset(&early, 0, sizeof early);
    memset(&late, 0, sizeof late);
    for (int64_t i = 0; i < 1000; i++) {
        sample(&early, NOON_MS + i * USE_STEP_MS, 100);
        if (i >= 504)
            sample(&late, NOON_MS + i * USE_STEP_MS, 40);
    }
    use_points_grid(&sum, NOON_MS, end_ms);
    assert_int_equal(sum.step_ms, 8 * USE_STEP_MS);
    use_series_points(&early, USE_WHOLE, &points);
    use_points_sum(&sum, &points);
    use_series_points(&late, USE_WHOLE, &points);
    use_points_sum(&sum, &points);
    for (size_t i = 0; i < sum.count; i++)
        assert_int_equal(sum.values[i][USE_CPU], i < 63 ? 100 : 140);
    use_points_grid(&sum, end_ms, NOON_MS); /* of an end before the begin: one point */
    assert_int_equal(sum.count, 1);
}

static void test_damage(void **state)
{
    (void)state;
    static struct use_series series, back;
    struct buf bytes = BUF_INIT;
    struct err err;
    memset(&series, 0, sizeof series);
    use_series_write(&series, &bytes); /* an empty one is sound */
    assert_int_equal(use_series_read(&back, buf_as_text(&bytes), &err), 0);
    bytes.length = 0;
    for (int64_t i = 0; i < 700; i++)
        sample(&series, NOON_MS + i * USE_STEP_MS, 100);
    use_series_write(&series, &bytes);
    assert_int_equal(use_series_read(&back, (struct text){bytes.at, bytes.length - 1}, &err),
                     ERR_CORRUPT);
    for (size_t at = 0; at < 28; at++) { /* the head: each damaged byte is noticed, or harmless */
        struct use_points points;
        char before = bytes.at[at];
        bytes.at[at] = (char)(before ^ 0x41);
        if (use_series_read(&back, buf_as_text(&bytes), &err) == 0) {
            use_series_points(&back, USE_RECENT, &points);
            use_series_points(&back, USE_WHOLE, &points);
            sample(&back, NOON_MS + 800 * USE_STEP_MS, 5);
        } else {
            assert_int_equal(err.code, ERR_CORRUPT);
        }
        bytes.at[at] = before;
    }
    buf_release(&bytes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_codes), cmocka_unit_test(test_walks), cmocka_unit_test(test_means),
    cmocka_unit_test(test_clock), cmocka_unit_test(test_sum),   cmocka_unit_test(test_damage),
};
UNIT_FILE(tests, NULL, NULL);
