/* simple_victims.h — whose end would make room for a gang. Inside src/placement only.
 *
 * Each try is "does it fit without these?", asked once for each group that may be ended; so what
 * fits is counted, node by node, instead of placed, as far as that tells. Trials pass over all
 * nodes: their number is bounded, and whoever leaves the places of the last one alone is spared
 * without. "The same under the plain policies" in docs/rfc/0016-gangs-in-steps.md. */
#ifndef PLACEMENT_SIMPLE_VICTIMS_H
#define PLACEMENT_SIMPLE_VICTIMS_H
#include "placement/simple_parts.h"

struct simple_choice;

/* Whose end would make room: the lowest priority first until it fits, then each is spared that can
 * be; the gang is placed as if they had ended. False: nobody's. `is_victim`: by group, all false
 * before; of no use where the answer is false.
 * Cost: linear in what runs and n log n in the gang's tasks; a gang of unequal tasks is placed on
 * trial up to some hundred times. */
bool simple_victims_find(const struct simple_search *search, bool *is_victim);
/* The same without placing the gang at the end, in pieces: so much work in one, less what is done.
 * *choice is NULL before the first one and after the last one. Then the views are as if the victims
 * had ended, or (*is_placed) search->slots, which must be the same in all pieces, are its places.
 */
enum simple_outcome simple_victims_go_on(const struct simple_search *search,
                                         struct simple_choice **choice, bool *is_victim,
                                         bool *is_placed, uint64_t *left);
/* The first victim from there on; `count`: none. */
size_t simple_victim_next(const bool *is_victim, size_t count, size_t from);

#endif
