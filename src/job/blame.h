/* blame.h — failures counted against a node, forgotten with time.
 *
 * Pure arithmetic: a counter that halves every `half_life_s`. A node above `avoid` is placed on
 * only when nothing else fits; above `cordon` not at all, until it is pardoned or has decayed below
 * `avoid` again (so that it does not flap around one threshold).
 */
#ifndef JOB_BLAME_H
#define JOB_BLAME_H
#include "model/completion.h"
#include <stdbool.h>
#include <stdint.h>

struct blame_policy {
    uint32_t half_life_s; /* 0: never forgotten */
    double avoid, cordon; /* avoid <= cordon */
};

enum blame_level { BLAME_NONE, BLAME_AVOID, BLAME_CORDON };

struct blame {
    double value; /* as of at_ms */
    int64_t at_ms;
    enum blame_level level; /* after the last change or refresh */
};

/* Weight of an ended try: 1 for failures of the platform (a lost node, a GPU error), 0 for the
 * user's own, for stops, and for what another node would not have avoided; and 0 when only the task
 * vouches for it: whoever can print a line must not be able to put nodes aside. `type` is the exit
 * spec's. */
double blame_weight(const struct completion *completion, const char *type,
                    enum exit_evidence evidence);

/* What is left of the value at `now_ms`; changes nothing. */
double blame_value(const struct blame *blame, const struct blame_policy *policy, int64_t now_ms);
/* Both return true when the level has changed. */
bool blame_add(struct blame *blame, const struct blame_policy *policy, double weight,
               int64_t now_ms);
bool blame_refresh(struct blame *blame, const struct blame_policy *policy, int64_t now_ms);
void blame_pardon(struct blame *blame, int64_t now_ms);
/* When blame_refresh will change the level by decay alone; 0 = never. */
int64_t blame_next_ms(const struct blame *blame, const struct blame_policy *policy);

const char *blame_level_name(enum blame_level level); /* "none", "avoid", "cordon" */

#endif
