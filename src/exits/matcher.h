/* matcher.h — a set of regular expressions, searched in logs in linear time.
 *
 * Pure. A C header for RE2: failure rules are written for RE2's syntax, and RE2 never backtracks.
 * Most expressions are never run: RE2 tells which pieces of text every match of an expression must
 * contain, one pass over the log finds which of these pieces occur, and only expressions whose
 * pieces are there remain as candidates (matcher_filter).
 *
 * Texts are bytes: a broken character must not hide what stands beside it. Only an expression that
 * itself has characters beyond ASCII (as such, by \p or by \x{…}) is searched as UTF-8; bytes that
 * are no UTF-8 match nothing in it.
 *
 * Where a log leads RE2 to more states than it keeps, each byte costs up to as many steps as the
 * expression has instructions, some 6 ns each. Therefore an expression of more than 100
 * instructions (that is, with large counted repetitions) is searched in the end of a long text
 * only: instructions times bytes are at most MATCHER_WORK_MAX, so that no log can keep a search
 * busy for more than seconds.
 *
 * Filled by matcher_add, closed by matcher_build, then immutable: any number of threads may search.
 */
#ifndef EXITS_MATCHER_H
#define EXITS_MATCHER_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MATCHER_EXPRESSION_MAX = 4096, /* bytes of one expression */
    MATCHER_PROGRAM_MAX = 6000,    /* instructions that RE2 makes of one expression */
    MATCHER_WORK_MAX = 1 << 30,    /* instructions × bytes of text in one search */
    MATCHER_BEFORE = 100,          /* bytes of the line before the end of a match: matcher_search */
};

struct matcher;

struct matcher *matcher_new(void);
/* No match of its expressions goes beyond a line, whatever they say of ends of lines, and each is
 * within the line that matcher_search finds. */
struct matcher *matcher_new_of_lines(void);
void matcher_free(struct matcher *matcher);

/* Add an expression; its number is the count of those added before. False when RE2 does not take it
 * or it is too long or too large: `reason` is a sentence's end ("no argument for repetition
 * operator: *") and nothing has changed. */
bool matcher_add(struct matcher *matcher, struct text expression, char reason[160]);
/* After the last matcher_add, once. */
void matcher_build(struct matcher *matcher);

size_t matcher_count(const struct matcher *matcher);
/* Set candidates[i], for each expression i, to whether it may match `text`; those set to false do
 * not. One pass over the text, whatever the number of expressions. */
void matcher_filter(const struct matcher *matcher, struct text text, bool *candidates);
/* Search for expression `index`. `found` (may be NULL): the line of `text` in which the match ends
 * (the leftmost match, as RE2 defines it), from at most MATCHER_BEFORE bytes before that end. */
bool matcher_search(const struct matcher *matcher, size_t index, struct text text,
                    struct text *found);

#ifdef __cplusplus
}
#endif
#endif
