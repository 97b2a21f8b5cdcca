/* The newest lines of the log, in memory. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "sys/log_ring.h"

enum { START_MS = 1000, FIRST = START_MS * 1000 };

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    log_ring_start(START_MS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    log_ring_stop();
    arena_release(&arena);
    return 0;
}

static void add(enum log_level level, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[40];
        snprintf(text, sizeof text, "line %zu", i);
        log_ring_add(level, 5 + (int64_t)i, "core", text);
    }
}

static struct log_ring_lines read_lines(enum log_level level, uint64_t after, size_t limit)
{
    struct log_ring_lines lines;
    log_ring_read(level, after, limit, &arena, &lines);
    return lines;
}

static void the_newest_come_in_their_order(void **state)
{
    (void)state;
    assert_int_equal(read_lines(LOG_DEBUG, 0, 5).count, 0);
    add(LOG_INFO, 3);
    struct log_ring_lines lines = read_lines(LOG_DEBUG, 0, 2);
    assert_int_equal(lines.count, 2);
    assert_string_equal(lines.items[0].text, "line 1");
    assert_string_equal(lines.items[1].text, "line 2");
    assert_string_equal(lines.items[1].part, "core");
    assert_int_equal(lines.items[1].number, FIRST + 2);
    assert_int_equal(lines.items[1].time_ms, 7);
    assert_int_equal(lines.items[1].level, LOG_INFO);
    assert_int_equal(lines.next, FIRST + 2);
    assert_true(lines.is_complete && !lines.has_missed);
}

static void only_those_that_are_important_enough(void **state)
{
    (void)state;
    add(LOG_ERROR, 1);
    add(LOG_WARNING, 1);
    add(LOG_DEBUG, 4);
    const struct log_ring_lines lines = read_lines(LOG_WARNING, 0, 2);
    assert_int_equal(lines.count, 2);
    assert_int_equal(lines.items[0].level, LOG_ERROR);
    assert_int_equal(lines.items[1].level, LOG_WARNING);
    /* what was passed over is not read again */
    assert_int_equal(lines.next, FIRST + 5);
    assert_int_equal(read_lines(LOG_WARNING, lines.next, 2).count, 0);
}

static void one_reads_on(void **state)
{
    (void)state;
    add(LOG_INFO, 2);
    uint64_t next = read_lines(LOG_DEBUG, 0, 9).next;
    assert_int_equal(read_lines(LOG_DEBUG, next, 9).count, 0);
    add(LOG_INFO, 5);
    struct log_ring_lines lines = read_lines(LOG_DEBUG, next, 2);
    assert_int_equal(lines.count, 2);
    assert_string_equal(lines.items[0].text, "line 0");
    assert_false(lines.is_complete);
    lines = read_lines(LOG_DEBUG, lines.next, 9);
    assert_int_equal(lines.count, 3);
    assert_true(lines.is_complete && !lines.has_missed);
    /* a number that was never given */
    assert_int_equal(read_lines(LOG_DEBUG, FIRST + 1000, 9).count, 0);
}

static void the_oldest_go_first(void **state)
{
    (void)state;
    add(LOG_INFO, LOG_RING_LINES);
    assert_int_equal(read_lines(LOG_DEBUG, FIRST - 1, 1).items[0].number, FIRST);
    add(LOG_INFO, 10);
    struct log_ring_lines lines = read_lines(LOG_DEBUG, FIRST, 1);
    assert_true(lines.has_missed);
    assert_int_equal(lines.items[0].number, FIRST + 10);
    lines = read_lines(LOG_DEBUG, 0, LOG_RING_LINES);
    assert_int_equal(lines.count, LOG_RING_LINES);
    assert_true(lines.is_complete);
}

static void long_lines_are_cut_between_characters(void **state)
{
    char text[LOG_RING_TEXT_MAX + 10];
    (void)state;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    memcpy(text + LOG_RING_TEXT_MAX - 1, "\xe6\xa8\xa1", 3); /* would be cut in two */
    log_ring_add(LOG_INFO, 1, "a part with a name that is far too long", text);
    log_ring_add(LOG_INFO, 1, "core", "short");
    const struct log_ring_lines lines = read_lines(LOG_DEBUG, 0, 2);
    assert_int_equal(strlen(lines.items[0].text), LOG_RING_TEXT_MAX - 1);
    assert_int_equal(strlen(lines.items[0].part), LOG_RING_PART_MAX - 1);
    assert_string_equal(lines.items[1].text, "short");
}

static void nothing_is_kept_that_nobody_asked_for(void **state)
{
    (void)state;
    log_ring_stop();
    add(LOG_INFO, 1);
    const struct log_ring_lines lines = read_lines(LOG_DEBUG, 3, 1);
    assert_int_equal(lines.count, 0);
    assert_int_equal(lines.next, 3);
    log_ring_start(-1); /* a clock before 1970 */
    log_ring_start(START_MS);
    log_setup(LOG_WARNING, LOG_JSON);
    log_info("core", "not important enough for the log");
    log_warning("core", "through the log: %d", 1);
    const struct log_ring_lines own = read_lines(LOG_DEBUG, 0, 9);
    log_setup(LOG_INFO, LOG_AUTO);
    assert_int_equal(own.count, 1);
    assert_string_equal(own.items[0].text, "through the log: 1");
    assert_true(own.items[0].time_ms > START_MS);
    assert_int_equal(own.items[0].number, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_newest_come_in_their_order, setup, teardown),
    cmocka_unit_test_setup_teardown(only_those_that_are_important_enough, setup, teardown),
    cmocka_unit_test_setup_teardown(one_reads_on, setup, teardown),
    cmocka_unit_test_setup_teardown(the_oldest_go_first, setup, teardown),
    cmocka_unit_test_setup_teardown(long_lines_are_cut_between_characters, setup, teardown),
    cmocka_unit_test_setup_teardown(nothing_is_kept_that_nobody_asked_for, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
