/* Timers: the earliest first, set anew and removed. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/random.h"
#include "core/timers.h"

enum { TIMERS = 60 };

/* The earliest of all, of equal ones the smallest key. */
static void timer_check_first(int64_t *want_ms, const struct timer *timer)
{
    assert_true(timer->key < TIMERS);
    assert_true(want_ms[timer->key] == timer->at_ms);
    for (size_t i = 0; i < TIMERS; i++)
        assert_false(want_ms[i] >= 0 &&
                     (want_ms[i] < timer->at_ms || (want_ms[i] == timer->at_ms && i < timer->key)));
    want_ms[timer->key] = -1;
}

static void timers_check_count(const struct timers *timers, const int64_t *want_ms)
{
    size_t count = 0;
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < TIMERS; i++) {
        count += want_ms[i] >= 0;
        if (want_ms[i] >= 0 && want_ms[i] < next_ms)
            next_ms = want_ms[i];
    }
    assert_int_equal(timers->count, count);
    assert_true(timers_next_ms(timers) == next_ms);
}

static void test_timers(void **state)
{
    (void)state;
    struct timers timers = {0};
    struct random random = {3};
    assert_true(timers_next_ms(&timers) == INT64_MAX);
    int64_t want_ms[TIMERS];
    memset(want_ms, -1, sizeof want_ms);
    struct timer timer;
    for (int i = 0; i < 20000; i++) {
        const size_t key = (size_t)random_below(&random, TIMERS);
        const int64_t at_ms = (int64_t)random_below(&random, 100);
        switch (random_below(&random, 5)) {
        case 0:
            timers_remove(&timers, key);
            want_ms[key] = -1;
            break;
        case 1:
            timers_set_earlier(&timers, key, at_ms);
            if (want_ms[key] < 0 || at_ms < want_ms[key])
                want_ms[key] = at_ms;
            break;
        case 2:
            if (timers_take(&timers, at_ms, &timer))
                timer_check_first(want_ms, &timer);
            break;
        default:
            timers_set(&timers, key, at_ms);
            want_ms[key] = at_ms;
        }
        timers_check_count(&timers, want_ms);
    }
    struct timers copy = {0};
    timers_copy(&copy, &timers);
    timers_release(&timers);
    while (timers_take(&copy, 1000, &timer))
        timer_check_first(want_ms, &timer);
    timers_check_count(&copy, want_ms);
    assert_int_equal(copy.count, 0);
    assert_true(copy.entries.count <= TIMERS);
    timers_release(&copy);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_timers),
};
UNIT_FILE(tests, NULL, NULL);
