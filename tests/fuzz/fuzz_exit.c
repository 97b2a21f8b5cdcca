/* Failure rules and the judge: a rule file, a NUL, then exit code, signal, flags and the log. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "doc/problem.h"
#include "exits/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct exit_rules *rules, struct text rest)
{
    const struct exit_report input = {
        .exit_code = rest.length > 0 ? (unsigned char)rest.at[0] : 0,
        .signal = rest.length > 1 ? (unsigned char)rest.at[1] : 0,
        .is_oom_killed = rest.length > 2 && (rest.at[2] & 1),
        .is_user_command = rest.length > 2 && (rest.at[2] & 2),
        .has_gpu_ecc_error = rest.length > 2 && (rest.at[2] & 4),
        .reason = rest.length > 2 && (rest.at[2] & 8) ? "ImagePullError" : "",
        .message = "m",
        .log_tail =
            rest.length > 3 ? (struct text){rest.at + 3, rest.length - 3} : (struct text){0},
        .platform_tail = rest,
    };
    struct exit_verdict verdict;
    exit_judge(rules, &input, &verdict);
    assert(verdict.spec);
    assert(verdict.completion.is_success == (verdict.completion.code == 0));
    assert(verdict.completion.phrase[0] != '\0');
    assert(strlen(verdict.completion.diagnostics) < sizeof verdict.completion.diagnostics);
    assert(verdict.user_text.length <= EXIT_EXCERPT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text rest = {(const char *)data, size};
    const struct text file = text_cut(&rest, '\0');
    struct arena arena;
    arena_init(&arena);
    struct problems problems;
    problems_init(&problems, &arena);
    struct exit_rules *rules = exit_rules_new(file, &problems);
    assert((rules == NULL) == (problems.error_count > 0));
    if (rules)
        judge(rules, rest.at ? rest : (struct text){0});
    exit_rules_free(rules);
    problems_release(&problems);
    arena_release(&arena);
    return 0;
}
