/* Problems in the order of their places; when there are too many, errors stay before warnings. */
#include "parse.h"
#include "unit.h"

#include <string.h>

/* However many warnings there are: whoever is refused is told why. */
static void test_errors_before_warnings(void **state)
{
    (void)state;
    struct arena arena;
    struct problems problems;
    struct buf report = BUF_INIT;
    arena_init(&arena);
    problems_init(&problems, &arena);
    for (unsigned i = 1; i <= PROBLEMS_MAX + 5; i++)
        problem_warn(&problems, (struct place){i, 1}, "", "strange");
    assert_int_equal(problems.left_out, 5);
    struct problem *problem = problem_add(&problems, (struct place){3, 2}, "a.b", "wrong");
    problem_hint(&problems, problem, "do this");
    assert_int_equal(problems.count, PROBLEMS_MAX);
    assert_int_equal(problems.left_out, 6);
    problems_print(&problems, "f", &report);
    assert_non_null(strstr(buf_cstr(&report), "f:3:2: a.b: wrong (do this)"));
    for (unsigned i = 1; i <= PROBLEMS_MAX; i++) /* no warning is left in the end */
        problem_add(&problems, (struct place){1000 + i, 1}, "", "worse");
    for (size_t i = 0; i < problems.count; i++)
        assert_false(problems.items[i].is_warning);
    assert_int_equal(problems.error_count, PROBLEMS_MAX + 1);
    buf_release(&report);
    problems_release(&problems);
    arena_release(&arena);
}

static void test_problems(void **state)
{
    (void)state;
    struct arena arena;
    struct problems problems;
    struct buf out = BUF_INIT;
    arena_init(&arena);
    problems_init(&problems, &arena);
    problems_print(&problems, "none", &out);
    assert_string_equal(buf_cstr(&out), "");
    struct problem *problem = problem_add(&problems, (struct place){2, 3}, "a.b", "is %d", 7);
    problem_hint(&problems, problem, "did you mean %s?", "8");
    problem_hint(&problems, NULL, "nothing");
    problem_warn(&problems, (struct place){1, 9}, "", "tab\there\nand \x7f");
    problem_add(&problems, (struct place){2, 1}, "", "first of line 2");
    assert_null(problem_add(&problems, (struct place){2, 1}, "", "first of line 2"));
    problem_add(&problems, (struct place){2, 1}, "", "second of line 2");
    problem_add(&problems, (struct place){2, 1}, "p", "second of line 2");
    problems_print(&problems, "x\ny", &out);
    assert_string_equal(buf_cstr(&out), "x\\x0ay:1:9: warning: tab\\x09here\\x0aand \\x7f\n"
                                        "x\\x0ay:2:1: first of line 2\n"
                                        "x\\x0ay:2:1: second of line 2\n"
                                        "x\\x0ay:2:1: p: second of line 2\n"
                                        "x\\x0ay:2:3: a.b: is 7 (did you mean 8?)\n");
    assert_int_equal(problems.error_count, 4);
    for (unsigned i = 0; i < PROBLEMS_MAX; i++)
        problem_add(&problems, (struct place){10 + i, 1}, "", "more");
    assert_int_equal(problems.count, PROBLEMS_MAX);
    assert_int_equal(problems.left_out, 5);
    assert_int_equal(problems.error_count, 4 + PROBLEMS_MAX);
    buf_clear(&out);
    problems_print(&problems, "f", &out);
    assert_non_null(strstr(buf_cstr(&out), "\nf: 5 more problems are not shown\n"));
    buf_release(&out);
    problems_release(&problems);
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_problems),
    cmocka_unit_test(test_errors_before_warnings),
};
UNIT_FILE(tests, NULL, NULL);
