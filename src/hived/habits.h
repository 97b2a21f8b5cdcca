/* habits.h — what the original of HiveD does otherwise, for drivers that repeat its recordings.
 *
 * Inside src/hived, and for those drivers (tests/vectors/originals/imitate.c has the habits
 * themselves). No program of ours has any: hived_new() gives the empty set. A habit that could not
 * be taken out of the code that decides is a flag here, which reads false everywhere but there; the
 * others are functions that are called in place of ours or after them, and NULL.
 */
#ifndef HIVED_HABITS_H
#define HIVED_HABITS_H
#include "hived/hived.h"

struct pack;

struct habits {
    bool displaces_by_chain; /* in one chain before it looks at the next */
    bool downgrades_at_once; /* lazy groups, even when a pod is only asked for */
    bool minds_suggestions;  /* for a group under preemption, though it ignores them */
    bool dooms_early;        /* at each level as it is counted, and inside compound changes */
    bool trusts_own_level;   /* of a cell that is given away: its quota is not looked at */
    bool splits_all;         /* that one level could spare, whatever others need in between */
    /* Places for all items in the view, in place of pack.c's searches. */
    bool (*pack)(struct pack *pack);
    /* The state of a physical cell has been set. */
    void (*state_set)(struct hived *h, uint32_t physical, enum hived_cell_state state);
    /* An opportunistic pod has ended on a bad leaf that a virtual one stands for. */
    void (*leaf_released)(struct hived *h, uint32_t virtual, uint32_t vc);
};

/* As hived_new; `habits` are borrowed. */
struct hived *hived_new_with(struct hived_config *config, const struct habits *habits);

#endif
