/* actions.h — what happens to a simulated world from outside: submissions, requests of users,
 * faults of nodes and containers.
 *
 * Private to sim. All is drawn from the world's `random`.
 */
#ifndef SIM_ACTIONS_H
#define SIM_ACTIONS_H
#include "engine/fake/fake.h"
#include <stddef.h>

struct sim;

/* How containers end: by the kind of the job, with which its name begins. */
extern const struct engine_fake_rule action_rules[];
extern const size_t action_rule_count;

/* One of those below, by what the world's configuration allows; and when the next one comes. */
void action_next(struct sim *sim);
/* All virtual clusters, when nothing else is to come: or the last jobs would wait for ever. */
void action_open_all(struct sim *sim);

void action_submit(struct sim *sim);
void action_request(struct sim *sim);
void action_fault(struct sim *sim);

#endif
