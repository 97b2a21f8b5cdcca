/* Who is told of which alerts: the table of docs/rfc/0021-notifications.md, step by step. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "model/told_book.h"

enum { AFTER = 60, KEEP = 1000, MANY = 64 };

struct state {
    struct told_book *book;
    struct arena arena;
    struct told_rules rules;
    int64_t trusted_ms; /* 0: the time of the round */
    struct told_round round;
    struct buf text;
};

static const char *const both[] = {"mail:a@b", "webhook:ops"};

static int begin(void **state)
{
    struct state *own = mem_zero(1, sizeof *own);
    own->book = told_book_new();
    own->rules = (struct told_rules){.after_ms = AFTER};
    arena_init(&own->arena);
    told_book_targets(own->book, both, 2);
    *state = own;
    return 0;
}

static int end(void **state)
{
    struct state *own = *state;
    told_book_free(own->book);
    told_book_free(NULL);
    arena_release(&own->arena);
    buf_release(&own->text);
    mem_free(own);
    return 0;
}

/* "a@5": of node a, since 5; "a@5-9": it has ended at 9; "a!@5": it is an error. */
static struct alert alert_of(struct state *own, struct text word)
{
    struct text node = text_cut(&word, '@'), since = text_cut(&word, '-');
    struct alert alert = {.name = "Node", .severity = "warn", .labels = {{"node_name", NULL}}};
    assert_true(text_to_int64(since, &alert.since_ms));
    if (word.length > 0)
        assert_true(text_to_int64(word, &alert.ended_ms));
    if (node.at[node.length - 1] == '!') {
        alert.severity = "error";
        node.length--;
    }
    if (node.at[0] >= 'A' && node.at[0] <= 'Z')
        alert.name = "Other";
    alert.labels[0].value = arena_copy(&own->arena, node);
    alert.summary = arena_format(&own->arena, "%s of %s", alert.severity, alert.labels[0].value);
    return alert;
}

static void take(struct state *own, int64_t now_ms, const char *stands)
{
    struct alert alerts[MANY];
    size_t count = 0;
    struct text rest = text_of(stands);
    while (rest.length > 0)
        alerts[count++] = alert_of(own, text_cut(&rest, ' '));
    own->rules.given_up_ms = (own->trusted_ms ? own->trusted_ms : now_ms) - KEEP;
    told_book_take(own->book, alerts, count, &own->rules, now_ms, &own->round);
}

/* What is due to a target, "-a +b!": a has ended, and b is an error that begins. */
static const char *due(struct state *own, size_t target)
{
    const struct alert *alerts[MANY];
    const size_t count = told_book_due(own->book, target, NULL, alerts, MANY);
    buf_clear(&own->text);
    for (size_t i = 0; i < count; i++)
        buf_format(&own->text, "%s%s%s%s", i ? " " : "", alerts[i]->ended_ms ? "-" : "+",
                   alerts[i]->labels[0].value, alert_is_error(alerts[i]) ? "!" : "");
    return buf_cstr(&own->text);
}

static void say(struct state *own, size_t target)
{
    const struct alert *alerts[MANY];
    told_book_said(own->book, target, alerts, told_book_due(own->book, target, NULL, alerts, MANY));
}

/* A whole round of one target: what it is told. */
static void expect(struct state *own, size_t target, const char *wanted)
{
    told_book_announce(own->book, target);
    assert_string_equal(due(own, target), wanted);
    say(own, target);
    assert_string_equal(due(own, target), "");
}

static void restart(struct state *own)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    struct err err;
    told_book_write(own->book, &bytes);
    told_book_free(own->book);
    own->book = told_book_new();
    if (bytes.length > 0)
        assert_int_equal(told_book_read(own->book, buf_as_text(&bytes), &err), 0);
    told_book_targets(own->book, both, 2);
}

/* What one target is told of one alert while it comes and goes. */
static void the_table_of_an_alert(void **state)
{
    static const struct {
        const char *name;
        struct {
            int64_t now_ms;
            const char *stands, *told;
        } steps[8];
    } cases[] = {
        {"a beginning that stays",
         {{100, "a@100", ""}, {159, "a@100", ""}, {160, "a@100", "+a"}, {300, "a@100", ""}}},
        {"its time is that of the cause", {{500, "a@100", "+a"}}},
        {"what is short is never told",
         {{100, "a@100", ""}, {159, "a@100-150", ""}, {400, "", ""}}},
        {"an end that stays",
         {{160, "a@100", "+a"},
          {259, "a@100-200", ""},
          {260, "a@100-200", "-a"},
          {400, "a@100-200", ""}}},
        {"of an end that nobody knows, the time is now",
         {{160, "a@100", "+a"}, {200, "", ""}, {259, "", ""}, {260, "", "-a"}}},
        {"an end of another time is not this one's",
         {{360, "a@300", "+a"}, {400, "a@100-200", ""}, {460, "a@100-200", "-a"}}},
        {"the time went back: the end waits for no longer",
         {{360, "a@300", "+a"}, {200, "", ""}, {259, "", ""}, {260, "", "-a"}}},
        {"the time went back behind an end",
         {{360, "a@300", "+a"},
          {350, "a@300-900", ""},
          {200, "a@300-900", ""},
          {259, "a@300-900", ""},
          {260, "a@300-900", "-a"}}},
        {"what comes again before its end was told goes on",
         {{160, "a@100", "+a"}, {259, "a@100-200", ""}, {270, "a@100", ""}, {900, "a@100", ""}}},
        {"another one, before the end of the first was told",
         {{160, "a@100", "+a"},
          {259, "a@100-200", ""},
          {261, "a@261 a@100-200", ""},
          {400, "a@261 a@100-200", ""},
          {480, "a@261-420 a@100-200", "-a"}}},
        {"another one, after its end was told",
         {{160, "a@100", "+a"},
          {260, "a@100-200", "-a"},
          {300, "a@300 a@100-200", ""},
          {360, "a@300 a@100-200", "+a"}}},
        {"a warning that becomes an error is told again",
         {{160, "a@100", "+a"},
          {170, "a!@100", "+a!"},
          {180, "a@100", ""},
          {190, "a!@100", ""},
          {300, "a!@100-240", "-a!"}}},
        {"several, the ends first",
         {{160, "b@90 a@100", "+a +b"}, {300, "c@200 b@90 a@100-210", "-a +c"}}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        void *own;
        begin(&own);
        for (size_t k = 0; k < COUNT_OF(cases[i].steps) && cases[i].steps[k].stands; k++) {
            take(own, cases[i].steps[k].now_ms, cases[i].steps[k].stands);
            expect(own, 0, cases[i].steps[k].told);
        }
        end(&own);
        /* the same with a restart before each step */
        begin(&own);
        for (size_t k = 0; k < COUNT_OF(cases[i].steps) && cases[i].steps[k].stands; k++) {
            restart(own);
            take(own, cases[i].steps[k].now_ms, cases[i].steps[k].stands);
            expect(own, 0, cases[i].steps[k].told);
        }
        end(&own);
    }
}

static void the_next_time_to_look_is_said(void **state)
{
    struct state *own = *state;
    take(own, 100, "b@90 a@100");
    assert_int_equal(own->round.next_ms, 150);
    take(own, 150, "b@90 a@100");
    assert_int_equal(own->round.next_ms, 160);
    take(own, 160, "b@90 a@100");
    assert_int_equal(own->round.next_ms, 0);
    expect(own, 0, "+b +a");
    take(own, 170, "a@100 b@90-165");
    assert_int_equal(own->round.next_ms, 225);
    take(own, 180, "a@175 b@90-165"); /* known, but not long enough for who is told of it now */
    assert_int_equal(own->round.next_ms, 225);
}

static void warnings_may_be_passed_over(void **state)
{
    struct state *own = *state;
    own->rules.is_error_only = true;
    take(own, 300, "a@100 b!@100");
    expect(own, 0, "+b!");
    take(own, 300, "a!@100 b@100"); /* milder: it goes on */
    expect(own, 0, "+a!");
    assert_int_equal(own->round.next_ms, 0);
}

/* Only who may have heard of the beginning is told of the end. */
static void each_target_has_its_own(void **state)
{
    struct state *own = *state;
    take(own, 200, "a@100");
    assert_int_equal(told_book_waiting(own->book), 2);
    expect(own, 0, "+a");
    assert_int_equal(told_book_waiting(own->book), 1);
    assert_true(told_book_announce(own->book, 1)); /* and nothing is known of what came of it */
    assert_false(told_book_announce(own->book, 1));
    restart(own);
    take(own, 210, "a@100");
    assert_string_equal(due(own, 0), "");
    assert_string_equal(due(own, 1), "+a"); /* once more */
    take(own, 300, "a@100-220");
    assert_int_equal(told_book_waiting(own->book), 2);
    expect(own, 1, "-a");
    expect(own, 0, "-a");
    assert_int_equal(told_book_waiting(own->book), 0);
    restart(own);
    take(own, 310, "a@100-220");
    assert_int_equal(told_book_waiting(own->book), 0);
}

static void who_never_heard_of_it_hears_no_end(void **state)
{
    struct state *own = *state;
    take(own, 200, "a@100");
    expect(own, 0, "+a");
    take(own, 300, "a@100-220"); /* the other one was away */
    expect(own, 1, "");
    expect(own, 0, "-a");
    take(own, 310, "b@200");
    take(own, 400, "b@200-320"); /* nobody has */
    expect(own, 0, "");
}

/* Told of the end, and of what came after it, while another target was away. */
static void what_comes_again_is_ripe_by_its_own_time(void **state)
{
    struct state *own = *state;
    take(own, 200, "a@100");
    expect(own, 0, "+a");
    expect(own, 1, "+a");
    take(own, 300, "a@100-220");
    expect(own, 0, "-a"); /* the other one is not asked */
    take(own, 310, "a@305 a@100-220");
    expect(own, 0, "");
    expect(own, 1, "");
    assert_int_equal(own->round.next_ms, 365);
    take(own, 365, "a@305 a@100-220");
    expect(own, 0, "+a");
    expect(own, 1, ""); /* for it nothing has changed */
}

static void targets_come_and_go(void **state)
{
    static const char *const others[] = {"webhook:new", "mail:a@b"};
    struct state *own = *state;
    take(own, 200, "a@100");
    expect(own, 0, "+a");
    expect(own, 1, "+a");
    told_book_targets(own->book, others, 2);
    take(own, 210, "a@100");
    expect(own, 0, "+a"); /* of all that stands */
    expect(own, 1, "");
    told_book_targets(own->book, both, 1);
    take(own, 300, "a@100-220");
    expect(own, 0, "-a");
    told_book_targets(own->book, NULL, 0);
    take(own, 400, "b@100");
    assert_int_equal(told_book_waiting(own->book), 0);
    cleanup_buf struct buf bytes = BUF_INIT;
    told_book_write(own->book, &bytes);
    assert_int_equal(bytes.length, 0);
}

static void an_end_is_given_up_after_a_time(void **state)
{
    struct state *own = *state;
    take(own, 200, "a@100");
    expect(own, 0, "+a");
    expect(own, 1, "+a");
    take(own, 220 + KEEP, "a@100-220");
    assert_int_equal(own->round.given_up, 0);
    expect(own, 0, "-a");
    take(own, 221 + KEEP, "a@100-220");
    assert_int_equal(own->round.given_up, 1);
    expect(own, 1, "");
}

/* A wall clock that is ahead for one round gives up nothing. */
static void a_time_that_is_not_trusted_gives_up_nothing(void **state)
{
    struct state *own = *state;
    take(own, 200, "a@100");
    expect(own, 0, "+a");
    own->trusted_ms = 400;
    take(own, 1000 * KEEP, "a@100-220");
    assert_int_equal(own->round.given_up, 0);
    expect(own, 0, "-a");
}

static void what_stands_fills_a_group(void **state)
{
    struct state *own = *state;
    const struct alert *alerts[MANY];
    size_t left;
    take(own, 200, "c@100 X@100 b@100 a@100");
    expect(own, 0, "+a +b +X +c");
    take(own, 300, "Y@200 d@200 c@100 X@100 b@100 a@100-220");
    told_book_announce(own->book, 0);
    assert_string_equal(due(own, 0), "-a +d +Y");
    assert_int_equal(told_book_due(own->book, 0, "Other", alerts, MANY), 1);
    assert_string_equal(alerts[0]->labels[0].value, "Y");
    assert_int_equal(told_book_due(own->book, 0, "Node", alerts, 1), 1);
    assert_string_equal(alerts[0]->labels[0].value, "a");
    assert_int_equal(told_book_due(own->book, 0, NULL, alerts, 2), 2);
    assert_string_equal(alerts[1]->labels[0].value, "d");
    assert_int_equal(told_book_standing(own->book, 0, "Node", alerts, 1, &left), 1);
    assert_string_equal(alerts[0]->labels[0].value, "b");
    assert_int_equal(left, 1);
    assert_int_equal(told_book_standing(own->book, 0, NULL, alerts, MANY, &left), 3);
    assert_int_equal(left, 0);
    assert_int_equal(told_book_standing(own->book, 1, NULL, alerts, MANY, &left), 0);
    /* of what is over, but not for long enough, the target still has to think that it stands */
    take(own, 310, "c@100-305 X@100 b@100-300");
    assert_int_equal(told_book_standing(own->book, 0, "Node", alerts, MANY, &left), 2);
    assert_int_equal(alerts[0]->ended_ms, 0);
    take(own, 360, "c@100-305 X@100 b@100-300");
    assert_int_equal(told_book_standing(own->book, 0, "Node", alerts, MANY, &left), 1);
    assert_string_equal(alerts[0]->labels[0].value, "c");
    assert_int_equal(told_book_due(own->book, 0, "Node", alerts, 2), 2);
    assert_string_equal(alerts[1]->labels[0].value, "b");
    assert_int_equal(alerts[1]->ended_ms, 300);
}

static void it_is_bounded(void **state)
{
    enum { COUNT = 4000 };
    struct state *own = *state;
    struct alert *alerts = mem_zero(COUNT + 1, sizeof *alerts);
    char summary[1000];
    cleanup_buf struct buf bytes = BUF_INIT;
    memset(summary, 'x', sizeof summary - 1);
    summary[sizeof summary - 1] = '\0';
    for (size_t i = 0; i < COUNT; i++) {
        alerts[i] = alert_of(own, text_of(arena_format(&own->arena, "n%zu@100", i)));
        alerts[i].summary = summary;
    }
    told_book_take(own->book, alerts, COUNT, &own->rules, 200, &own->round);
    const size_t warnings = COUNT - own->round.full;
    assert_in_range(warnings, 500, COUNT - 1);
    alerts[COUNT] = alert_of(own, TEXT("late!@100")); /* errors have room of their own */
    told_book_take(own->book, alerts, COUNT + 1, &own->rules, 200, &own->round);
    assert_int_equal(own->round.full, COUNT - warnings);
    for (size_t i = 0; i < COUNT; i++)
        alerts[i] = alert_of(own, text_of(arena_format(&own->arena, "e%zu!@100", i)));
    told_book_take(own->book, alerts, COUNT, &own->rules, 200, &own->round);
    assert_true(own->round.full > 0);
    for (size_t i = 0; i < 2; i++)
        told_book_announce(own->book, i);
    told_book_write(own->book, &bytes);
    assert_in_range(bytes.length, TOLD_WARN_BYTES_MAX / 8, TOLD_BYTES_MAX + 100);
    mem_free(alerts);
}

static void what_is_kept_of_a_summary(void **state)
{
    struct state *own = *state;
    struct alert alert = alert_of(own, TEXT("a@100"));
    char summary[TOLD_SUMMARY_MAX + 2];
    const struct alert *alerts[1];
    memset(summary, 'x', sizeof summary);
    memcpy(summary + TOLD_SUMMARY_MAX - 1, "\xc3\xb6", 3); /* half of it would fit */
    alert.summary = summary;
    told_book_take(own->book, &alert, 1, &own->rules, 200, &own->round);
    told_book_announce(own->book, 0);
    assert_int_equal(told_book_due(own->book, 0, NULL, alerts, 1), 1);
    assert_int_equal(strlen(alerts[0]->summary), TOLD_SUMMARY_MAX - 1);
    assert_int_equal(alerts[0]->since_ms, 100);
}

static void damage_is_found(void **state)
{
    struct state *own = *state;
    cleanup_buf struct buf bytes = BUF_INIT;
    struct err err;
    take(own, 200, "a@100");
    expect(own, 0, "+a");
    told_book_write(own->book, &bytes);
    struct told_book *book = told_book_new();
    assert_int_equal(told_book_read(book, TEXT("tld"), &err), ERR_CORRUPT);
    assert_int_equal(told_book_read(book, TEXT("something"), &err), ERR_CORRUPT);
    const size_t head = 4 + 1 + 4 + strlen(both[0]) + 4 + strlen(both[1]);
    for (size_t length = 4; length < bytes.length; length++)
        if (length != head) /* no alert */
            assert_int_equal(told_book_read(book, (struct text){bytes.at, length}, &err),
                             ERR_CORRUPT);
    bytes.at[4] = TOLD_TARGETS_MAX + 1;
    assert_int_equal(told_book_read(book, buf_as_text(&bytes), &err), ERR_CORRUPT);
    bytes.at[4] = 2;
    assert_int_equal(told_book_read(book, buf_as_text(&bytes), &err), 0);
    told_book_free(book);
}

#define BOOK(test) cmocka_unit_test_setup_teardown(test, begin, end)
static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_table_of_an_alert),
    BOOK(the_next_time_to_look_is_said),
    BOOK(warnings_may_be_passed_over),
    BOOK(each_target_has_its_own),
    BOOK(who_never_heard_of_it_hears_no_end),
    BOOK(what_comes_again_is_ripe_by_its_own_time),
    BOOK(targets_come_and_go),
    BOOK(an_end_is_given_up_after_a_time),
    BOOK(a_time_that_is_not_trusted_gives_up_nothing),
    BOOK(what_stands_fills_a_group),
    BOOK(it_is_bounded),
    BOOK(what_is_kept_of_a_summary),
    BOOK(damage_is_found),
};
UNIT_FILE(tests, NULL, NULL);
