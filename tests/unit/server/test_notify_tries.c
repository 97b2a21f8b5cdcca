/* Messages that a webhook did not take: how often, until when, and how many together. */
#include "unit.h"

#include "server/notify_pauses.h"
#include "server/notify_tries.h"

static void a_message_waits_longer_each_time(void **state)
{
    struct notify_tries tries = {0};
    int64_t until_ms;
    (void)state;
    assert_int_equal(notify_try_count(&tries, 7, &until_ms), 0);
    assert_int_equal(until_ms, 0);
    notify_try_failed(&tries, 7, 1000);
    assert_int_equal(notify_try_count(&tries, 7, &until_ms), 1);
    assert_int_equal(until_ms, 1000 + NOTIFY_PAUSE_FIRST_MS);
    notify_try_failed(&tries, 7, 9000);
    assert_int_equal(notify_try_count(&tries, 7, &until_ms), 2);
    assert_int_equal(until_ms, 9000 + 2 * NOTIFY_PAUSE_FIRST_MS);
    for (int i = 0; i < 20; i++)
        notify_try_failed(&tries, 7, 0);
    assert_int_equal(notify_try_count(&tries, 7, &until_ms), 22);
    assert_int_equal(until_ms, NOTIFY_PAUSE_MAX_MS);
    notify_tries_release(&tries);
}

static void what_failed_often_goes_alone(void **state)
{
    (void)state;
    assert_int_equal(notify_try_together(0, 100), 100);
    assert_int_equal(notify_try_together(1, 100), 50);
    assert_int_equal(notify_try_together(6, 100), 1);
    assert_int_equal(notify_try_together(7, 100), 1);
    assert_int_equal(notify_try_together(1000, 100), 1);
}

static void who_is_sent_is_forgotten(void **state)
{
    struct notify_tries tries = {0};
    int64_t until_ms;
    (void)state;
    for (uint64_t row = 1; row <= 3; row++)
        notify_try_failed(&tries, row, 0);
    notify_try_failed(&tries, 3, 0);
    notify_try_end(&tries, 1);
    notify_try_end(&tries, 1);
    notify_try_end(&tries, 9);
    assert_int_equal(tries.count, 2);
    assert_int_equal(notify_try_count(&tries, 1, &until_ms), 0);
    assert_int_equal(notify_try_count(&tries, 2, &until_ms), 1);
    assert_int_equal(notify_try_count(&tries, 3, &until_ms), 2);
    notify_try_failed(&tries, 4, 0); /* where the third one was */
    assert_int_equal(notify_try_count(&tries, 3, &until_ms), 2);
    assert_int_equal(notify_try_count(&tries, 4, &until_ms), 1);
    notify_try_end(&tries, 4);
    notify_try_end(&tries, 3);
    notify_try_end(&tries, 2);
    assert_int_equal(tries.count, 0);
    notify_tries_release(&tries);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_message_waits_longer_each_time),
    cmocka_unit_test(what_failed_often_goes_alone),
    cmocka_unit_test(who_is_sent_is_forgotten),
};
UNIT_FILE(tests, NULL, NULL);
