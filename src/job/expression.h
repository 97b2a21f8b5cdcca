/* expression.h — one expression of a failure rule: checked to be RE2's, compiled, searched within
 * limits. Inside src/job only.
 *
 * PCRE2 says whether an expression is well formed; it is searched by an automaton in linear time
 * (automaton.h). What the automaton cannot do is left to PCRE2 within narrow limits. Most
 * expressions are never run: each has a literal that any match must contain (ASCII case folded),
 * and one pass over the log finds which of these occur at all (literals.h).
 */
#ifndef JOB_EXPRESSION_H
#define JOB_EXPRESSION_H
#include "base/text.h"
#include "job/automaton.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    EXPRESSION_LITERAL_MIN = 3,
    EXPRESSION_LITERAL_MAX = 32,
    EXPRESSION_SLOW_BYTES = 64 << 10, /* of the text's end, without automaton */
    EXPRESSION_SLOW_STEPS = 10000,    /* from each place in it */
};

struct expression {
    void *code; /* pcre2_code */
    struct automaton automaton;
    bool has_automaton;
    bool matches_all;
    char literal[EXPRESSION_LITERAL_MAX]; /* lower case */
    uint8_t literal_length;               /* 0: none */
    uint32_t literal_index;               /* for its owner */
};

/* False: `reason` says why; then nothing is owned. */
bool expression_init(struct expression *expression, struct text source, char reason[160]);
void expression_release(struct expression *expression);

enum expression_result { EXPRESSION_NONE, EXPRESSION_FOUND, EXPRESSION_GIVEN_UP };
/* `found` (may be NULL): the line of `text` in which the first match ends, from at most
 * EXPRESSION_BEFORE bytes before that end. */
enum { EXPRESSION_BEFORE = 100 };
enum expression_result expression_search(const struct expression *expression, struct text text,
                                         struct text *found);
/* By PCRE2 alone: what is left to it, and what the automaton is compared with in tests. `found` is
 * the match itself. */
enum expression_result expression_search_slow(const struct expression *expression, struct text text,
                                              struct text *found);

#endif
