/* Who takes no messages now, and when they are asked again. */
#include "unit.h"

#include "server/notify_pauses.h"

#define IS_ON(pauses, name, now) notify_pause_is_on(pauses, name, now, &until_ms)

static void the_next_pause_is_twice_as_long(void **state)
{
    (void)state;
    assert_int_equal(notify_pause_next(0), NOTIFY_PAUSE_FIRST_MS);
    assert_int_equal(notify_pause_next(NOTIFY_PAUSE_FIRST_MS), 2 * NOTIFY_PAUSE_FIRST_MS);
    assert_int_equal(notify_pause_next(NOTIFY_PAUSE_MAX_MS / 2), NOTIFY_PAUSE_MAX_MS);
    assert_int_equal(notify_pause_next(NOTIFY_PAUSE_MAX_MS / 2 + 1), NOTIFY_PAUSE_MAX_MS);
    assert_int_equal(notify_pause_next(NOTIFY_PAUSE_MAX_MS), NOTIFY_PAUSE_MAX_MS);
}

static void a_pause_doubles_up_to_its_bound(void **state)
{
    struct notify_pauses pauses = {0};
    int64_t until_ms = 0, now_ms = 1000, length_ms = NOTIFY_PAUSE_FIRST_MS;
    (void)state;
    assert_false(IS_ON(&pauses, "mail", now_ms));
    for (int i = 0; i < 12; i++) {
        assert_int_equal(notify_pause_begin(&pauses, "mail", true, now_ms), i == 0);
        assert_true(IS_ON(&pauses, "mail", now_ms));
        assert_int_equal(until_ms, now_ms + length_ms);
        now_ms = until_ms;
        assert_false(IS_ON(&pauses, "mail", now_ms)); /* it is asked again */
        length_ms = length_ms * 2 < NOTIFY_PAUSE_MAX_MS ? length_ms * 2 : NOTIFY_PAUSE_MAX_MS;
    }
    assert_int_equal(length_ms, NOTIFY_PAUSE_MAX_MS);
    assert_true(notify_pause_end(&pauses, "mail"));
    assert_false(notify_pause_end(&pauses, "mail"));
    assert_true(notify_pause_begin(&pauses, "mail", true, now_ms)); /* from the beginning */
    assert_true(IS_ON(&pauses, "mail", now_ms));
    assert_int_equal(until_ms, now_ms + NOTIFY_PAUSE_FIRST_MS);
    notify_pauses_release(&pauses);
}

static void users_are_no_targets(void **state)
{
    struct notify_pauses pauses = {0};
    int64_t until_ms;
    (void)state;
    notify_pause_begin(&pauses, "mail to alice", false, 0);
    notify_pause_begin(&pauses, "webhook:ops", true, 0);
    notify_pause_begin(&pauses, "mail to bob", false, 0);
    assert_int_equal(pauses.target_count, 1);
    assert_true(notify_pause_end(&pauses, "mail to alice")); /* the last one takes its place */
    assert_int_equal(pauses.target_count, 1);
    assert_true(IS_ON(&pauses, "mail to bob", 1));
    assert_true(notify_pause_end(&pauses, "webhook:ops"));
    assert_int_equal(pauses.target_count, 0);
    assert_int_equal(pauses.count, 1);
    notify_pauses_release(&pauses);
}

static void who_is_not_asked_again_is_forgotten(void **state)
{
    struct notify_pauses pauses = {0};
    int64_t until_ms;
    (void)state;
    notify_pause_begin(&pauses, "webhook:gone", true, 0);
    notify_pause_begin(&pauses, "mail", true, 1);
    notify_pauses_tidy(&pauses, NOTIFY_PAUSE_FIRST_MS + NOTIFY_PAUSE_MAX_MS - 1);
    assert_int_equal(pauses.count, 2);
    notify_pauses_tidy(&pauses, NOTIFY_PAUSE_FIRST_MS + NOTIFY_PAUSE_MAX_MS);
    assert_int_equal(pauses.count, 1);
    assert_int_equal(pauses.target_count, 1);
    assert_true(IS_ON(&pauses, "mail", 1));
    notify_pauses_release(&pauses);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_next_pause_is_twice_as_long),
    cmocka_unit_test(a_pause_doubles_up_to_its_bound),
    cmocka_unit_test(users_are_no_targets),
    cmocka_unit_test(who_is_not_asked_again_is_forgotten),
};
UNIT_FILE(tests, NULL, NULL);
