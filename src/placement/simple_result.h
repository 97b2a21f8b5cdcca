/* simple_result.h — what a plain placer answers, and why a gang waits. Inside src/placement only.
 *
 * Owns nothing: all of an answer is in the arena given.
 */
#ifndef PLACEMENT_SIMPLE_RESULT_H
#define PLACEMENT_SIMPLE_RESULT_H
#include "placement/simple_parts.h"

struct arena;

void simple_result_bind(const struct simple_slot *slots, size_t count, struct arena *arena,
                        struct placement_result *result);
/* `is_victim`: by group. Those that have ended are not named. */
void simple_result_preempt(const struct simple *simple, const bool *is_victim, struct arena *arena,
                           struct placement_result *result);
/* `is_never`: it would not fit either if nothing was in use. */
void simple_result_wait(const struct simple_search *search, bool is_never, struct arena *arena,
                        struct placement_result *result);

#endif
