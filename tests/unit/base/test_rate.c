/* Buckets of tokens: a burst, then evenly; each name for itself; as many names as are kept. */
#include "unit.h"

#include <stdio.h>

#include "base/rate.h"

enum { SECOND = 1000000 };

static void test_burst_then_evenly(void **state)
{
    struct rate_table table = {.map = {.seed = 7}};
    int64_t now = 5 * SECOND;
    (void)state;
    assert_int_equal(rate_used(&table, TEXT("a"), 4, SECOND, now), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rate_take(&table, TEXT("a"), 4, SECOND, now), 0);
        assert_int_equal(rate_used(&table, TEXT("a"), 4, SECOND, now), i + 1);
    }
    assert_int_equal(rate_take(&table, TEXT("a"), 4, SECOND, now), SECOND / 4);
    assert_int_equal(rate_take(&table, TEXT("b"), 4, SECOND, now), 0); /* another's is full */
    assert_int_equal(rate_take(&table, TEXT("a"), 4, SECOND, now + SECOND / 8), SECOND / 8);
    assert_int_equal(rate_take(&table, TEXT("a"), 4, SECOND, now + SECOND / 4), 0);
    assert_int_equal(rate_take(&table, TEXT("a"), 4, SECOND, now + SECOND / 4), SECOND / 4);
    /* never more than the bucket holds, however long nothing was taken */
    now += 1000 * SECOND;
    assert_int_equal(rate_used(&table, TEXT("a"), 4, SECOND, now), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(rate_take(&table, TEXT("a"), 4, SECOND, now), 0);
    assert_true(rate_take(&table, TEXT("a"), 4, SECOND, now) > 0);
    rate_release(&table);
}

/* Over a long time: count a period, and one bucket more. */
static void test_rate_over_time(void **state)
{
    struct rate_table table = {.map = {.seed = 7}};
    int64_t taken = 0;
    (void)state;
    for (int64_t now = 0; now < 60 * SECOND; now += 1000)
        taken += rate_take(&table, TEXT("a"), 10, SECOND, now) == 0;
    assert_in_range(taken, 600, 610);
    rate_release(&table);
}

static void test_more_tokens_than_microseconds(void **state)
{
    struct rate_table table = {.map = {.seed = 7}};
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(rate_take(&table, TEXT("a"), 100, 10, 50), 0);
    assert_int_equal(rate_used(&table, TEXT("a"), 100, 10, 50), 100);
    assert_int_equal(rate_take(&table, TEXT("a"), 100, 10, 50), 1);
    rate_release(&table);
}

/* One thing that counts as many: it is let in, and what comes after it pays. */
static void test_debt(void **state)
{
    struct rate_table table = {.map = {.seed = 7}};
    (void)state;
    assert_int_equal(rate_take(&table, TEXT("a"), 10, SECOND, 0), 0);
    rate_owe(&table, TEXT("a"), 10, SECOND, 99, 0);
    assert_int_equal(rate_used(&table, TEXT("a"), 10, SECOND, 0), 100);
    assert_int_equal(rate_take(&table, TEXT("a"), 10, SECOND, 0),
                     100 * SECOND / 10 - 9 * SECOND / 10);
    assert_true(rate_take(&table, TEXT("a"), 10, SECOND, 9 * SECOND) > 0);
    assert_int_equal(rate_take(&table, TEXT("a"), 10, SECOND, 91 * SECOND / 10), 0);
    rate_owe(&table, TEXT("a"), 10, SECOND, 0, 100 * SECOND);
    assert_int_equal(rate_used(&table, TEXT("a"), 10, SECOND, 100 * SECOND), 0);
    rate_release(&table);
}

static void test_too_many_names(void **state)
{
    struct rate_table table = {.map = {.seed = 7}};
    char name[32];
    (void)state;
    assert_int_equal(rate_take(&table, TEXT("a"), 1, SECOND, 0), 0);
    assert_true(rate_take(&table, TEXT("a"), 1, SECOND, 0) > 0);
    for (int i = 0; i < RATE_NAMES_MAX; i++) {
        int length = snprintf(name, sizeof name, "user-%d", i);
        assert_int_equal(rate_take(&table, (struct text){name, (size_t)length}, 1, SECOND, 0), 0);
    }
    assert_true(table.count <= RATE_NAMES_MAX);
    assert_int_equal(rate_take(&table, TEXT("a"), 1, SECOND, 0), 0);
    rate_release(&table);
}

/* Who only asks, and who is refused, is no name that is kept. */
static void test_waiting_keeps_no_name(void **state)
{
    struct rate_table table = {.map = {.seed = 7}};
    (void)state;
    assert_int_equal(rate_wait(&table, TEXT("a"), 2, SECOND, 0), 0);
    assert_int_equal(table.count, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rate_take(&table, TEXT("a"), 2, SECOND, 0), 0);
    assert_int_equal(rate_wait(&table, TEXT("a"), 2, SECOND, 0), SECOND / 2);
    assert_int_equal(rate_wait(&table, TEXT("a"), 2, SECOND, SECOND / 2), 0);
    assert_int_equal(rate_take(&table, TEXT("a"), 2, SECOND, SECOND / 2), 0);
    assert_int_equal(rate_wait(&table, TEXT("a"), 2, SECOND, 9 * SECOND), 0);
    assert_int_equal(table.count, 1);
    rate_release(&table);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_burst_then_evenly),
    cmocka_unit_test(test_rate_over_time),
    cmocka_unit_test(test_more_tokens_than_microseconds),
    cmocka_unit_test(test_debt),
    cmocka_unit_test(test_too_many_names),
    cmocka_unit_test(test_waiting_keeps_no_name),
};
UNIT_FILE(tests, NULL, NULL);
