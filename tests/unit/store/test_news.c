/* The last changes, each thing once. */
#include "unit.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "store/news.h"

static struct arena arena;

static int setup(void **state)
{
    arena_init(&arena);
    *state = news_new(7);
    return 0;
}

static int teardown(void **state)
{
    news_free(*state);
    arena_release(&arena);
    return 0;
}

/* "j5 r6:ann~old n1", from after the first number on. */
static const char *told(struct news *news, uint64_t after)
{
    static const char LETTERS[] = "jrn";
    struct store_news out;
    const char *text = "";
    news_read(news, ((uint64_t)7 << 10) + after, &arena, &out);
    if (out.is_lost)
        return "lost";
    for (size_t i = 0; i < out.count; i++)
        text = arena_format(&arena, "%s%s%c%u%s%s", text, i ? " " : "", LETTERS[out.items[i].kind],
                            out.items[i].id, out.items[i].name[0] ? ":" : "", out.items[i].name);
    return text;
}

static void each_thing_once(void **state)
{
    struct news *news = *state;
    assert_string_equal(told(news, 0), "");
    news_add(news, STORE_NEWS_JOB, 5, "");
    news_add(news, STORE_NEWS_JOB, 6, "");
    news_add(news, STORE_NEWS_NODE, 5, "");
    news_add(news, STORE_NEWS_JOB, 5, "");
    assert_string_equal(told(news, 0), "j6 n5 j5");
    assert_string_equal(told(news, 3), "j5");
    assert_string_equal(told(news, 4), "");
    news_add(news, STORE_NEWS_JOB_REMOVED, 6, "ann~old");
    assert_string_equal(told(news, 0), "n5 j5 r6:ann~old");
    assert_true(news_number(news) == ((uint64_t)7 << 10) + 5);
}

static void what_is_not_known_is_said(void **state)
{
    struct news *news = *state;
    struct store_news out;
    news_add(news, STORE_NEWS_JOB, 1, "");
    assert_string_equal(told(news, 2), "lost"); /* of the future */
    news_read(news, 1, &arena, &out);           /* of before the start */
    assert_true(out.is_lost);
    assert_true(out.number == news_number(news));
    news_forget(news);
    assert_string_equal(told(news, 1), "lost");
    assert_string_equal(told(news, 2), "");
    for (uint32_t i = 0; i < NEWS_KEPT; i++)
        news_add(news, STORE_NEWS_JOB, i, "x");
    assert_string_not_equal(told(news, 2), "lost");
    news_add(news, STORE_NEWS_JOB, 0, "");
    assert_string_equal(told(news, 2), "lost");
}

static void many_are_read_in_parts(void **state)
{
    struct news *news = *state;
    struct store_news out;
    uint64_t after = news_number(news);
    unsigned reads = 0;
    for (uint32_t i = 0; i < 2 * NEWS_READ_MAX + 1; i++)
        news_add(news, STORE_NEWS_JOB, i, "");
    do {
        news_read(news, after, &arena, &out);
        assert_false(out.is_lost);
        assert_true(out.count <= NEWS_READ_MAX);
        after = out.number;
        reads++;
    } while (after < news_number(news));
    assert_int_equal(reads, 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(each_thing_once, setup, teardown),
    cmocka_unit_test_setup_teardown(what_is_not_known_is_said, setup, teardown),
    cmocka_unit_test_setup_teardown(many_are_read_in_parts, setup, teardown),
};
UNIT_FILE(tests, NULL, NULL);
