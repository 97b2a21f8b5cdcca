/* The event log: what the core stepped through is read back in order, page by page, and goes by
 * age. */
#include "unit.h"
#include "world.h"

static void log_events(struct world *world, const struct store_event *events, size_t count)
{
    struct store_batch batch = {.events = events, .event_count = count};
    assert_int_equal(store_commit(world->store, &batch, &world->err), 0);
}

/* A reader's snapshot ends with the call. */
static struct store_events events_after(struct world *world, uint64_t after, uint64_t limit)
{
    struct store_events events;
    assert_int_equal(store_events(world->reader, after, limit, &world->arena, &events, &world->err),
                     0);
    return events;
}

static void events_are_read_in_order(void **state)
{
    struct world *world = *state;
    const struct store_event logged[] = {{10, 1, TEXT("one")}, {10, 2, TEXT("two\0bytes")}};
    const struct store_event later = {20, 3, TEXT("")};
    int64_t last_ms;

    assert_int_equal(events_after(world, 0, 10).count, 0);
    assert_int_equal(store_restore_time(world->reader, &last_ms, &world->err), 0);
    assert_int_equal(last_ms, 0);
    log_events(world, logged, 2);
    log_events(world, &later, 1);
    struct store_events events = events_after(world, 0, 10);
    assert_int_equal(events.count, 3);
    assert_int_equal(events.items[0].at_ms, 10);
    assert_int_equal(events.items[1].kind, 2);
    assert_true(text_equal(events.items[1].body, TEXT("two\0bytes")));
    assert_int_equal(events.items[2].body.length, 0);
    const uint64_t last = events.last;
    events = events_after(world, 0, 2);
    assert_int_equal(events.count, 2);
    events = events_after(world, events.last, 2);
    assert_int_equal(events.count, 1);
    assert_int_equal(events.items[0].kind, 3);
    assert_true(events.last == last);
    events = events_after(world, last, 2);
    assert_int_equal(events.count, 0);
    assert_true(events.last == last);
    assert_int_equal(store_restore_time(world->reader, &last_ms, &world->err), 0);
    assert_int_equal(last_ms, 20);
}

static void old_events_go(void **state)
{
    struct world *world = *state;
    const struct store_event logged[] = {
        {10, 1, TEXT("a")}, {20, 2, TEXT("b")}, {30, 3, TEXT("c")}};
    struct store_change trim = {.kind = CHANGE_LOG_TRIM, .before_ms = 20};
    struct store_batch batch = {.changes = &trim, .change_count = 1};

    log_events(world, logged, 3);
    const uint64_t last = events_after(world, 0, 10).last;
    assert_int_equal(store_commit(world->store, &batch, &world->err), 0);
    assert_int_equal(trim.code, 0);
    struct store_events events = events_after(world, 0, 10);
    assert_int_equal(events.count, 2);
    assert_int_equal(events.items[0].kind, 2);
    assert_true(events.last == last); /* no number is given again */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(events_are_read_in_order, setup, teardown),
    cmocka_unit_test_setup_teardown(old_events_go, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
