/* expression.h — one expression of a failure rule: checked to be RE2's, compiled, searched within
 * limits. Inside src/job only.
 *
 * PCRE2 backtracks where RE2 does not, so each search has a limit of steps. Most expressions are
 * never run: each has a literal that any match must contain (ASCII case folded), and one pass over
 * the log finds which of these occur at all (literals.h).
 */
#ifndef JOB_EXPRESSION_H
#define JOB_EXPRESSION_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

enum { EXPRESSION_LITERAL_MIN = 3, EXPRESSION_LITERAL_MAX = 32 };

struct expression {
    void *code; /* pcre2_code */
    bool matches_all;
    char literal[EXPRESSION_LITERAL_MAX]; /* lower case */
    uint8_t literal_length;               /* 0: none */
    uint32_t literal_index;               /* for its owner */
};

/* False: `reason` says why; then nothing is owned. */
bool expression_init(struct expression *expression, struct text source, char reason[160]);
void expression_release(struct expression *expression);

enum expression_result { EXPRESSION_NONE, EXPRESSION_FOUND, EXPRESSION_GIVEN_UP };
/* First match; `found` (may be NULL) lies in `text`. */
enum expression_result expression_search(const struct expression *expression, struct text text,
                                         struct text *found);

#endif
