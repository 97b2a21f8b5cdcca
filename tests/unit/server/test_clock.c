/* The core's time, by what the two clocks of the machine say. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "server/clock.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE };
#define DAY INT64_C(86400000)
static const int64_t begin = INT64_C(1700000000000);

struct machine {
    int64_t boot, wall;
    struct server_clock clock;
};

static struct machine started(void)
{
    struct machine machine = {.boot = 5000, .wall = begin};

    server_clock_start(&machine.clock, &(struct server_clock_past){0}, machine.boot, machine.wall);
    return machine;
}

/* So much time passes, in steps of the given length; what holds of any passing is checked. */
static int64_t pass(struct machine *machine, int64_t length, int64_t step)
{
    for (int64_t done = 0; done < length; done += step) {
        int64_t before = machine->clock.now_ms, now;
        machine->boot += step;
        machine->wall += step;
        now = server_clock_step(&machine->clock, machine->boot, machine->wall);
        assert_true(now >= before);
        assert_true(llabs(now - before - step) <= step / 10 + 100);
    }
    return machine->clock.now_ms;
}

static void it_goes_with_the_clocks_when_they_agree(void **state)
{
    struct machine machine = started();
    (void)state;

    assert_int_equal(machine.clock.now_ms, begin);
    pass(&machine, HOUR, 7);
    assert_int_equal(machine.clock.now_ms, machine.wall);
    pass(&machine, 30 * DAY, HOUR);
    assert_int_equal(machine.clock.now_ms, machine.wall);
    assert_int_equal(machine.clock.stepped_ms, 0);
    /* asked twice at one instant */
    assert_int_equal(server_clock_step(&machine.clock, machine.boot, machine.wall), machine.wall);
}

/* However often it is asked: a jump of the wall clock changes its speed by a tenth, no more. */
static void a_jump_is_followed_by_a_tenth(void **state)
{
    static const int64_t steps[] = {1, 10, 333, SECOND, MINUTE};
    (void)state;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            struct machine machine = started();
            int64_t jump = sign * (int64_t)HOUR, from, passed;
            pass(&machine, MINUTE, steps[i]);
            machine.wall += jump;
            from = machine.clock.now_ms;
            passed = pass(&machine, 10 * MINUTE, steps[i]) - from;
            assert_true(llabs(passed - 10 * MINUTE - sign * MINUTE) <= SECOND);
            assert_true(llabs(machine.clock.stepped_ms - jump) <= 1);
            /* it arrives after ten times the jump, and stays there */
            pass(&machine, 9 * HOUR + 49 * MINUTE, MINUTE);
            assert_true(machine.clock.now_ms != machine.wall);
            pass(&machine, 2 * MINUTE, MINUTE);
            assert_int_equal(machine.clock.now_ms, machine.wall);
        }
}

static void it_stands_still_with_the_clock_from_boot(void **state)
{
    struct machine machine = started();
    (void)state;

    machine.wall += HOUR;
    assert_true(server_clock_step(&machine.clock, machine.boot, machine.wall) - begin <= 100);
    machine.wall -= 3 * HOUR;
    assert_true(server_clock_step(&machine.clock, machine.boot, machine.wall) - begin <= 100);
    assert_true(server_clock_step(&machine.clock, machine.boot - 50, machine.wall) >= begin);
}

static void a_start_goes_on_from_what_is_stored(void **state)
{
    struct server_clock clock;
    (void)state;

    /* the clock was set back while the server was down: what waits two seconds waits two */
    const struct server_clock_past past = {.last_ms = begin, .trusted_ms = begin};
    server_clock_start(&clock, &past, 5, begin - HOUR);
    assert_int_equal(clock.now_ms, begin);
    assert_int_equal(server_clock_step(&clock, 5 + 2000, begin - HOUR + 2000), begin + 1800);
    /* down for an hour */
    server_clock_start(&clock, &past, 5, begin + HOUR);
    assert_int_equal(clock.now_ms, begin + HOUR);
}

/* The table of docs/rfc/0007: down for two hours; the wall clock is ahead by so much. */
static void a_start_on_the_same_boot_knows_what_has_passed(void **state)
{
    static const int64_t aheads[] = {-400 * DAY, -HOUR, 0, HOUR, 400 * DAY};
    struct server_clock clock;
    (void)state;

    for (size_t i = 0; i < sizeof aheads / sizeof aheads[0]; i++) {
        const int64_t wall = begin + 2 * HOUR + aheads[i];
        struct server_clock_past past = {
            .last_ms = begin, .trusted_ms = begin, .boot_ms = 5 * HOUR, .now_ms = begin};
        server_clock_start(&clock, &past, 7 * HOUR, wall);
        assert_int_equal(clock.now_ms, begin + 2 * HOUR);
        assert_int_equal(server_clock_behind_ms(&clock), aheads[i]);
        /* noted a minute before the last event */
        past.boot_ms -= MINUTE;
        past.now_ms -= MINUTE + 6 * SECOND; /* the core's time went faster by a tenth */
        server_clock_start(&clock, &past, 5 * HOUR, begin + aheads[i]);
        assert_int_equal(clock.now_ms, begin);
        /* another boot, or a clock from boot that cannot be of this one */
        past.boot_ms = i % 2 ? 0 : 8 * HOUR;
        server_clock_start(&clock, &past, 7 * HOUR, wall);
        assert_int_equal(clock.now_ms, wall > begin ? wall : begin);
    }
}

static int64_t trusted(struct machine *machine)
{
    server_clock_step(&machine->clock, machine->boot, machine->wall);
    return server_clock_trusted(&machine->clock);
}

static void retention_believes_no_jump(void **state)
{
    struct machine machine = started();
    (void)state;

    assert_int_equal(trusted(&machine), begin);
    pass(&machine, 2 * HOUR, MINUTE);
    assert_int_equal(trusted(&machine), machine.wall);
    machine.wall += 400 * DAY;
    for (int i = 0; i < 3 * 60; i++) {
        pass(&machine, MINUTE, SECOND);
        assert_true(trusted(&machine) <= begin + 6 * HOUR);
    }
    /* back again: never later than either clock */
    machine.wall -= 400 * DAY + HOUR;
    assert_int_equal(trusted(&machine), machine.wall);
}

/* A server that starts with a clock far ahead of what it last saw. */
static void retention_believes_a_late_start_after_an_hour(void **state)
{
    struct machine machine = {.boot = 5000, .wall = begin + 400 * DAY};
    (void)state;

    const struct server_clock_past past = {.last_ms = begin, .trusted_ms = begin};
    server_clock_start(&machine.clock, &past, machine.boot, machine.wall);
    assert_int_equal(trusted(&machine), begin);
    assert_int_equal(server_clock_doubted_ms(&machine.clock), 400 * DAY);
    pass(&machine, 59 * MINUTE, SECOND);
    assert_int_equal(trusted(&machine), begin + 59 * MINUTE);
    machine.wall += 2 * MINUTE; /* set: the hour begins anew */
    pass(&machine, 59 * MINUTE, SECOND);
    assert_int_equal(trusted(&machine), begin + 2 * 59 * MINUTE);
    pass(&machine, 2 * MINUTE, SECOND);
    assert_true(trusted(&machine) > begin + 400 * DAY);
    assert_int_equal(server_clock_doubted_ms(&machine.clock), 0);
}

/* However small the steps are that a clock makes between one start and the next. */
static void retention_believes_no_row_of_small_jumps(void **state)
{
    struct machine machine = {.boot = 5000, .wall = begin};
    struct server_clock_past past = {.last_ms = begin, .trusted_ms = begin};
    (void)state;

    for (int start = 1; start <= 40; start++) {
        machine.wall += 23 * HOUR;
        server_clock_start(&machine.clock, &past, machine.boot, machine.wall);
        pass(&machine, 30 * MINUTE, SECOND);
        past.trusted_ms = trusted(&machine);
        past.last_ms = machine.clock.now_ms;
        assert_int_equal(past.trusted_ms, begin + start * 30 * MINUTE);
    }
    pass(&machine, 31 * MINUTE, SECOND);
    assert_int_equal(trusted(&machine), machine.wall);
}

/* At once, then once a day, for as long as it lasts; a small difference is not worth a word. */
static void the_operator_is_reminded_of_wrong_times(void **state)
{
    static const int64_t jumps[] = {400 * DAY, -400 * DAY, 2 * HOUR, -2 * HOUR, 50 * MINUTE};
    static const int expected[] = {3, 3, 1, 1, 0}; /* the small ones are over within the day */
    (void)state;

    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        struct machine machine = started();
        int warnings = 0;
        pass(&machine, MINUTE, SECOND);
        assert_false(server_clock_warns(&machine.clock));
        machine.wall += jumps[i];
        for (int64_t passed = 0; passed < 2 * DAY + HOUR; passed += MINUTE) {
            int64_t behind;
            pass(&machine, MINUTE, MINUTE);
            behind = server_clock_behind_ms(&machine.clock);
            assert_int_equal(behind, machine.wall - machine.clock.now_ms);
            if (server_clock_warns(&machine.clock)) {
                assert_true(llabs(behind) > HOUR);
                warnings++;
            }
        }
        assert_int_equal(warnings, expected[i]);
    }
}

static void the_text_says_what_to_do(void **state)
{
    static const struct {
        int64_t behind_ms;
        const char *words, *remedy;
    } cases[] = {
        {0, "are right", NULL},
        {HOUR, "are right", NULL},
        {-HOUR, "are right", NULL},
        {400 * DAY, " 9600 h behind", "skepd --take-clock"},
        {-400 * DAY, " 9600 h ahead", NULL},
        {2 * HOUR, " 2 h behind", "skepd --take-clock"},
    };
    char text[200];
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        server_clock_text(cases[i].behind_ms, text, sizeof text);
        assert_non_null(strstr(text, cases[i].words));
        assert_true(strlen(text) < sizeof text - 1);
        assert_int_equal(!strstr(text, "--take-clock"), !cases[i].remedy);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_goes_with_the_clocks_when_they_agree),
    cmocka_unit_test(a_jump_is_followed_by_a_tenth),
    cmocka_unit_test(it_stands_still_with_the_clock_from_boot),
    cmocka_unit_test(a_start_goes_on_from_what_is_stored),
    cmocka_unit_test(a_start_on_the_same_boot_knows_what_has_passed),
    cmocka_unit_test(retention_believes_no_jump),
    cmocka_unit_test(retention_believes_no_row_of_small_jumps),
    cmocka_unit_test(retention_believes_a_late_start_after_an_hour),
    cmocka_unit_test(the_operator_is_reminded_of_wrong_times),
    cmocka_unit_test(the_text_says_what_to_do),
};
UNIT_FILE(tests, NULL, NULL);
