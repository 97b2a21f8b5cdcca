/* Alerts: when they begin, when they have ended, what is kept of them, and for how long. */
#include "unit.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "model/alert_book.h"

enum { T = 1000000000 };

struct state {
    struct alert_book *book;
    struct arena arena;
    struct alert *list;
    size_t count;
};

static int begin(void **state)
{
    struct state *own = mem_zero(1, sizeof *own);
    own->book = alert_book_new();
    arena_init(&own->arena);
    *state = own;
    return 0;
}

static int end(void **state)
{
    struct state *own = *state;
    alert_book_free(own->book);
    alert_book_free(NULL);
    arena_release(&own->arena);
    mem_free(own);
    return 0;
}

static struct alert of_node(const char *node, const char *summary)
{
    return (struct alert){.name = "NodeNotReady",
                          .severity = "error",
                          .labels = {{"node_name", node}},
                          .summary = summary};
}

static void list(struct state *own)
{
    alert_book_list(own->book, &own->arena, &own->list, &own->count);
}

static void take(struct state *own, const struct alert *found, size_t count, int64_t now_ms)
{
    alert_book_take(own->book, found, count, (struct alert_time){now_ms, now_ms}, NULL, NULL);
    list(own);
}

static void expect(const struct alert *alert, const char *node, int64_t since_ms, int64_t ended_ms)
{
    assert_string_equal(alert->labels[0].value, node);
    assert_int_equal(alert->since_ms, since_ms);
    assert_int_equal(alert->ended_ms, ended_ms);
}

static void one_begins_stands_and_ends(void **state)
{
    struct state *own = *state;
    struct alert a = of_node("a", "lost"), b = of_node("b", "lost");
    const struct alert both[] = {a, b};

    take(own, &a, 1, T);
    expect(&own->list[0], "a", T, 0);
    take(own, both, 2, T + 20000);
    assert_int_equal(own->count, 2);
    expect(&own->list[0], "b", T + 20000, 0); /* the newest first */
    expect(&own->list[1], "a", T, 0);
    b.summary = "lost: its disk is full";
    b.severity = "warn";
    take(own, &b, 1, T + 40000);
    assert_string_equal(own->list[0].summary, "lost: its disk is full");
    assert_string_equal(own->list[0].severity, "warn");
    expect(&own->list[0], "b", T + 20000, 0);
    expect(&own->list[1], "a", T, T + 40000); /* what has ended comes last */
    assert_string_equal(own->list[1].name, "NodeNotReady");
    assert_string_equal(own->list[1].labels[0].key, "node_name");
    b.severity = "error"; /* its words are the same */
    take(own, &b, 1, T + 40001);
    assert_string_equal(own->list[0].severity, "error");
}

static void what_has_changed_is_said(void **state)
{
    struct state *own = *state;
    struct alert a = of_node("a", "lost");

    assert_true(alert_book_take(own->book, &a, 1, (struct alert_time){T, T}, NULL, NULL));
    assert_false(
        alert_book_take(own->book, &a, 1, (struct alert_time){T + 20000, T + 20000}, NULL, NULL));
    a.summary = "lost: its disk is full";
    assert_false(
        alert_book_take(own->book, &a, 1, (struct alert_time){T + 20001, T + 20001}, NULL, NULL));
    a.severity = "warn";
    assert_true(
        alert_book_take(own->book, &a, 1, (struct alert_time){T + 20002, T + 20002}, NULL, NULL));
    assert_true(
        alert_book_take(own->book, NULL, 0, (struct alert_time){T + 20003, T + 20003}, NULL, NULL));
    assert_false(
        alert_book_take(own->book, NULL, 0, (struct alert_time){T + 20004, T + 20004}, NULL, NULL));
    assert_true(alert_book_take(own->book, &a, 1, (struct alert_time){T + 20005, T + 20005}, NULL,
                                NULL)); /* it goes on */
}

static void what_comes_again_at_once_goes_on(void **state)
{
    struct state *own = *state;
    const struct alert a = of_node("a", "lost");
    struct alert closed = a;

    take(own, &a, 1, T);
    take(own, NULL, 0, T + 20000);
    take(own, &a, 1, T + 20000 + ALERT_AGAIN_MS);
    assert_int_equal(own->count, 1);
    expect(&own->list[0], "a", T, 0);
    take(own, NULL, 0, T + 100000);
    take(own, &a, 1, T + 100001 + ALERT_AGAIN_MS);
    assert_int_equal(own->count, 2); /* another one */
    expect(&own->list[0], "a", T + 100001 + ALERT_AGAIN_MS, 0);
    expect(&own->list[1], "a", T, T + 100000);
    /* it is known to have begun after the other had ended */
    closed.since_ms = T + 300000;
    take(own, NULL, 0, T + 290000);
    take(own, &closed, 1, T + 300001);
    assert_int_equal(own->count, 3);
    expect(&own->list[0], "a", T + 300000, 0);
}

static void a_short_one_is_kept_only_when_its_time_is_known(void **state)
{
    struct state *own = *state;
    struct alert a = of_node("a", "lost"), b = of_node("b", "closed"), c = of_node("c", "closed");

    take(own, &a, 1, T);
    take(own, NULL, 0, T + ALERT_BRIEF_MS - 1);
    assert_int_equal(own->count, 0);
    b.since_ms = T + 100;
    c.since_ms = T + 900; /* of a clock that is ahead */
    const struct alert both[] = {b, c};
    take(own, both, 2, T + 500);
    expect(&own->list[0], "c", T + 500, 0);
    take(own, NULL, 0, T + 400); /* the clock was set back */
    assert_int_equal(own->count, 2);
    expect(&own->list[0], "c", T + 400, T + 400);
    expect(&own->list[1], "b", T + 100, T + 400);
}

/* As of a clock that was ahead for a round: what stands has stood since the round that finds it so,
 * over a restart as well, and whoever waits for it is woken once. */
static void a_time_that_is_to_come_is_that_of_the_round(void **state)
{
    struct state *own = *state;
    struct alert a = of_node("a", "lost");
    const struct alert both[] = {a, of_node("b", "lost")};

    take(own, both, 2, T + 900000);
    take(own, &a, 1, T + 990000);
    cleanup_buf struct buf bytes = BUF_INIT;
    struct err err;
    alert_book_write(own->book, T + 990000, SIZE_MAX / 2, &bytes);
    alert_book_free(own->book);
    own->book = alert_book_new();
    assert_int_equal(alert_book_read(own->book, buf_as_text(&bytes), &err), 0);
    for (int64_t i = 0; i < 2; i++) {
        const struct alert_time time = {T + 500 + i, T + 500 + i};
        assert_int_equal(alert_book_take(own->book, &a, 1, time, NULL, NULL), i == 0);
        list(own);
        assert_int_equal(own->count, 2);
        expect(&own->list[0], "a", T + 500, 0);
        expect(&own->list[1], "b", T + 500, T + 500);
    }
}

static bool says_b(void *context, const struct alert *alert)
{
    ++*(int *)context;
    return strcmp(alert->labels[0].value, "b") == 0;
}

static void what_cannot_be_known_stays(void **state)
{
    struct state *own = *state;
    const struct alert both[] = {of_node("a", "lost"), of_node("b", "lost")};
    int asked = 0;

    take(own, both, 2, T);
    alert_book_take(own->book, both, 1, (struct alert_time){T + 20000, T + 20000}, says_b, &asked);
    assert_int_equal(asked, 1); /* only of what was not found */
    alert_book_take(own->book, NULL, 0, (struct alert_time){T + 40000, T + 40000}, says_b, &asked);
    list(own);
    expect(&own->list[0], "b", T, 0);
    expect(&own->list[1], "a", T, T + 40000);
}

static void old_ones_go(void **state)
{
    struct state *own = *state;
    char name[ALERTS_KEPT + 2][8];
    struct alert all[ALERTS_KEPT + 2];

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        snprintf(name[i], sizeof name[i], "n%zu", i);
        all[i] = of_node(name[i], "lost");
    }
    take(own, all, COUNT_OF(all), T);
    assert_int_equal(own->count, ALERTS_KEPT + 2); /* what stands has no limit */
    take(own, all, 1, T + 20000);
    assert_int_equal(own->count, ALERTS_KEPT + 1);
    expect(&own->list[0], "n0", T, 0);
    expect(&own->list[1], "n2", T, T + 20000); /* n1 has gone */
    take(own, all, 1, T + 20000 + ALERT_KEEP_MS);
    assert_int_equal(own->count, ALERTS_KEPT + 1);
    take(own, all, 2, T + 20001 + (int64_t)ALERT_KEEP_MS);
    assert_int_equal(own->count, 2);
    expect(&own->list[0], "n1", T + 20001 + (int64_t)ALERT_KEEP_MS, 0);
    expect(&own->list[1], "n0", T, 0);
}

/* A clock that is a year ahead for a while takes no history. */
static void a_jump_of_the_clock_forgets_nothing(void **state)
{
    const int64_t year_ms = 365 * INT64_C(86400) * 1000;
    struct state *own = *state;
    const struct alert both[] = {of_node("a", "lost"), of_node("b", "lost")};
    take(own, both, 2, T);
    take(own, both, 1, T + 20000);
    alert_book_take(own->book, both, 1, (struct alert_time){T + year_ms, T + 40000}, NULL, NULL);
    list(own);
    assert_int_equal(own->count, 2);
    expect(&own->list[1], "b", T, T + 20000);
    alert_book_take(own->book, both, 1, (struct alert_time){T + year_ms, T + year_ms}, NULL, NULL);
    list(own);
    assert_int_equal(own->count, 1);
}

static void what_is_written_is_read_again(void **state)
{
    struct state *own = *state;
    struct alert of_job = {.name = "JobIdle",
                           .severity = "warn",
                           .labels = {{"job_name", "alice~train"}, {"username", "alice"}},
                           .summary = "stands still",
                           .since_ms = T - 5000};
    const struct alert a = of_node("a", "lost"), b = of_node("b", "lost");
    const struct alert found[] = {a, of_job};
    cleanup_buf struct buf bytes = BUF_INIT;
    struct err err;

    take(own, &a, 1, T);
    take(own, NULL, 0, T + 20000);
    take(own, &a, 1, T + 200000); /* twice the same, of which one stands */
    take(own, found, 2, T + 210000);
    const struct alert with_brief[] = {a, of_job, b};
    take(own, with_brief, 3, T + 211000);
    alert_book_write(own->book, T + 211000, 4096, &bytes);
    alert_book_free(own->book);
    own->book = alert_book_new();
    assert_int_equal(alert_book_read(own->book, buf_as_text(&bytes), &err), 0);
    list(own);
    assert_int_equal(own->count, 3); /* b has not stood for long enough */
    expect(&own->list[0], "a", T + 200000, 0);
    expect(&own->list[1], "alice~train", T - 5000, 0);
    assert_string_equal(own->list[1].labels[1].key, "username");
    assert_string_equal(own->list[1].labels[1].value, "alice");
    assert_string_equal(own->list[1].summary, "stands still");
    expect(&own->list[2], "a", T, T + 20000);
    /* it goes on where it was */
    take(own, &a, 1, T + 220000);
    assert_int_equal(own->count, 3);
    expect(&own->list[0], "a", T + 200000, 0);

    /* what does not fit is left out, the least important first */
    cleanup_buf struct buf few = BUF_INIT;
    alert_book_write(own->book, T + 220000, bytes.length - 1, &few);
    assert_true(few.length < bytes.length);
    alert_book_free(own->book);
    own->book = alert_book_new();
    assert_int_equal(alert_book_read(own->book, buf_as_text(&few), &err), 0);
    list(own);
    assert_int_equal(own->count, 2);
    expect(&own->list[0], "a", T + 200000, 0);
}

static void damage_is_found(void **state)
{
    struct state *own = *state;
    const struct alert a = of_node("a", "lost");
    cleanup_buf struct buf bytes = BUF_INIT;
    struct err err;

    assert_int_equal(alert_book_read(own->book, TEXT("alt"), &err), ERR_CORRUPT);
    assert_int_equal(alert_book_read(own->book, TEXT("something"), &err), ERR_CORRUPT);
    take(own, &a, 1, T);
    take(own, NULL, 0, T + 20000);
    alert_book_write(own->book, T + 20000, 4096, &bytes);
    alert_book_free(own->book);
    own->book = alert_book_new();
    for (size_t length = 5; length < bytes.length; length++)
        assert_int_equal(alert_book_read(own->book, (struct text){bytes.at, length}, &err),
                         ERR_CORRUPT);
    struct {
        size_t at;
        char value;
    } wrong[] = {
        {4 + 7, '\x80'}, /* it began before 1970 */
        {12, 1},         /* it ended before it began … */
        {12 + 7, '\x80'},
        {bytes.length - strlen("node_namea") - 9, ALERT_LABELS + 1}, /* too many labels */
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        cleanup_buf struct buf copy = BUF_INIT;
        buf_text(&copy, buf_as_text(&bytes));
        copy.at[wrong[i].at] = wrong[i].value;
        if (wrong[i].at == 12)
            memset(copy.at + 13, 0, 7);
        assert_int_equal(alert_book_read(own->book, buf_as_text(&copy), &err), ERR_CORRUPT);
    }
    list(own);
    assert_int_equal(own->count, 0);
    assert_int_equal(alert_book_read(own->book, (struct text){bytes.at, 4}, &err), 0); /* none */
}

#define BOOK(test) cmocka_unit_test_setup_teardown(test, begin, end)
static const struct CMUnitTest tests[] = {
    BOOK(one_begins_stands_and_ends),
    BOOK(what_has_changed_is_said),
    BOOK(what_comes_again_at_once_goes_on),
    BOOK(a_short_one_is_kept_only_when_its_time_is_known),
    BOOK(a_time_that_is_to_come_is_that_of_the_round),
    BOOK(what_cannot_be_known_stays),
    BOOK(old_ones_go),
    BOOK(a_jump_of_the_clock_forgets_nothing),
    BOOK(what_is_written_is_read_again),
    BOOK(damage_is_found),
};
UNIT_FILE(tests, NULL, NULL);
