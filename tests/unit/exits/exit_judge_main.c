/* exit-judge CODE < LOG: what the built-in rules make of an exit. For the corpus of programs. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "doc/problem.h"
#include "exits/judge.h"

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct buf log = BUF_INIT;
    char bytes[65536];
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, stdin)) > 0;)
        buf_add(&log, bytes, got);
    struct arena arena;
    arena_init(&arena);
    struct problems problems;
    problems_init(&problems, &arena);
    struct exit_rules *rules = exit_rules_new((struct text){0}, &problems);
    const int code = atoi(argv[1]);
    const struct exit_report input = {.exit_code = code,
                                      .signal = code > 128 && code < 193 ? code - 128 : 0,
                                      .is_user_command = true,
                                      .log_tail = buf_as_text(&log)};
    struct exit_verdict verdict;
    exit_judge(rules, &input, &verdict);
    printf("%d %s %s\n", verdict.completion.code, verdict.completion.phrase,
           verdict.completion.diagnostics);
    exit_rules_free(rules);
    problems_release(&problems);
    arena_release(&arena);
    buf_release(&log);
    return 0;
}
