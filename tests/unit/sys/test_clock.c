/* The clocks of the machine, and waits by them. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "sys/clock.h"

/* Two readings of one clock with one of another between them are in order, whatever the unit. */
static void the_monotonic_clock_has_one_pace(void **state)
{
    (void)state;
    const int64_t first_us = clock_monotonic_us();
    const int64_t between_ms = clock_monotonic_ms();
    const int64_t last_us = clock_monotonic_us();
    assert_in_range(between_ms, first_us / 1000, last_us / 1000);
}

/* Suspends count on one of the two. */
static void the_clock_from_boot_is_not_behind(void **state)
{
    (void)state;
    const int64_t monotonic_ms = clock_monotonic_ms();
    assert_true(clock_boot_ms() >= monotonic_ms);
}

static void unix_time_is_the_system_s(void **state)
{
    (void)state;
    struct timespec before, after;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &before), 0);
    const int64_t now_ms = clock_unix_ms();
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &after), 0);
    assert_in_range(now_ms / 1000, before.tv_sec, after.tv_sec);
}

static void a_boot_has_one_name(void **state)
{
    (void)state;
    char id[CLOCK_BOOT_ID_MAX], again[CLOCK_BOOT_ID_MAX];
    clock_boot_id(id);
    clock_boot_id(again);
    assert_int_equal(strlen(id), 36); /* a UUID, and no end of a line */
    assert_string_equal(id, again);
}

static void a_moment_has_seconds_and_their_rest(void **state)
{
    (void)state;
    const struct timespec zero = clock_moment(0), odd = clock_moment(61007);
    assert_int_equal(zero.tv_sec, 0);
    assert_int_equal(zero.tv_nsec, 0);
    assert_int_equal(odd.tv_sec, 61);
    assert_int_equal(odd.tv_nsec, 7000000);
}

/* By the Unix clock such a wait would end decades ago, and by the monotonic one not before. */
static void a_wait_ends_by_the_monotonic_clock(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    clock_condition_init(&condition);
    const int64_t due_ms = clock_monotonic_ms() + 20;
    const struct timespec due = clock_moment(due_ms);
    int code = 0;
    pthread_mutex_lock(&lock);
    while (code == 0)
        code = pthread_cond_timedwait(&condition, &lock, &due);
    pthread_mutex_unlock(&lock);
    assert_int_equal(code, ETIMEDOUT);
    assert_true(clock_monotonic_ms() >= due_ms);
    pthread_cond_destroy(&condition);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_monotonic_clock_has_one_pace),
    cmocka_unit_test(the_clock_from_boot_is_not_behind),
    cmocka_unit_test(unix_time_is_the_system_s),
    cmocka_unit_test(a_boot_has_one_name),
    cmocka_unit_test(a_moment_has_seconds_and_their_rest),
    cmocka_unit_test(a_wait_ends_by_the_monotonic_clock),
};
UNIT_FILE(tests, NULL, NULL);
