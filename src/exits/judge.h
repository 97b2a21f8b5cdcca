/* judge.h — finds what the end of a container means: its exit code and the rule that matched.
 *
 * Pure, at the edge: the server calls it on the engine's thread, the core gets the verdict with its
 * event. The first matching rule in the table's order wins; inside a rule any pattern, inside a
 * pattern all of its conditions. Time is bounded: texts longer than EXIT_TAIL_MAX are cut at the
 * front, and searches take linear time.
 */
#ifndef EXITS_JUDGE_H
#define EXITS_JUDGE_H
#include "base/text.h"
#include "exits/rules.h"
#include "model/completion.h"
#include "model/exit.h"

enum {
    EXIT_TAIL_MAX = 10 << 20,
    EXIT_EXCERPT_MAX = 2048,
    EXIT_USER_LINES = 15, /* last lines kept for the history */
    EXIT_PLATFORM_LINES = 10,
};

struct exit_verdict {
    struct completion completion;
    const struct exit_spec *spec; /* row that describes the code; the rules' */
    bool is_matched;              /* by a rule; `rule` is its number in the table's order, from 0 */
    size_t rule, pattern;
    enum exit_evidence evidence;
    struct text user_text; /* the line that matched, at most EXIT_EXCERPT_MAX; in the tails */
    struct text platform_text;
    struct text user_lines, platform_lines; /* the last lines, in the tails */
};

/* Fills all of `verdict`; its texts lie in the report's tails, its rows in `rules`: both must
 * outlive it. Any thread. */
void exit_judge(const struct exit_rules *rules, const struct exit_report *report,
                struct exit_verdict *verdict);

#endif
