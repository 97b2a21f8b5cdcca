/* simple_trial.h — does a gang fit with the victims of a try? Inside src/placement only.
 *
 * A gang of equal tasks, or on one node, fits if there is room for as many. For another one that
 * says only when it does not fit: else it is placed on trial. The places of the last trial that it
 * passed are kept. */
#ifndef PLACEMENT_SIMPLE_TRIAL_H
#define PLACEMENT_SIMPLE_TRIAL_H
#include "placement/simple_choice.h"

/* Is it known by counting alone? Then it fits with more victims if it does with fewer. */
bool simple_trial_counts(const struct simple_trial *trial);
/* Asked again after CUT. */
enum simple_outcome simple_trial_fits(struct simple_trial *trial);
/* The same without counting; the places are in search->slots. */
enum simple_outcome simple_trial_place(struct simple_trial *trial);
/* Are the places that are kept free, as the group that held something there is spared? */
bool simple_trial_is_kept(const struct simple_trial *trial, const struct simple_group *group);
/* How many trials a stage may make: as many as are cheap. */
size_t simple_trials_count(const struct simple_trial *trial);

#endif
