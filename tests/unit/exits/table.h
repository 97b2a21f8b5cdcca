/* table.h — the built-in rules, and reports judged by them, for the tests of exits. */
#ifndef TESTS_EXITS_TABLE_H
#define TESTS_EXITS_TABLE_H
#include "unit.h"

#include "base/arena.h"
#include "doc/problem.h"
#include "exits/judge.h"

static struct exit_rules *rules;
static struct arena arena;

static inline int set_up(void **state)
{
    (void)state;
    arena_init(&arena);
    struct problems problems;
    problems_init(&problems, &arena);
    rules = exit_rules_new((struct text){0}, &problems);
    assert_int_equal(problems.count, 0); /* no warning either */
    problems_release(&problems);
    return rules ? 0 : -1;
}

static inline int tear_down(void **state)
{
    (void)state;
    exit_rules_free(rules);
    arena_release(&arena);
    return 0;
}

static inline struct exit_verdict judge(const struct exit_rules *with, struct exit_report input)
{
    struct exit_verdict verdict;
    exit_judge(with, &input, &verdict);
    assert_non_null(verdict.spec);
    return verdict;
}

#endif
