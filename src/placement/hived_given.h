/* hived_given.h — slots that were not decided here, and what is known of their leaves so far: see
 * hived_parts.h. Inside src/placement only.
 */
#ifndef PLACEMENT_HIVED_GIVEN_H
#define PLACEMENT_HIVED_GIVEN_H
#include "placement/hived_parts.h"

struct claims;

enum given_stage {
    GIVEN_BEGIN,
    GIVEN_KINDS,  /* the leaf type of each kind of tasks */
    GIVEN_LEAVES, /* the leaves of each task of each part */
    GIVEN_TYPES,  /* tasks of a kind are on several leaf types: that of each task, and LEAVES again
                   */
    GIVEN_KNOWN,
};

/* All zero at first, but for the placer, how many slots there are, and whether they run already. */
struct given {
    struct placer_hived *p;
    size_t slot_count;
    bool is_recovery;
    const struct placement_request *request; /* the caller's, of this piece, … */
    const struct placement_slot *slots;      /* … likewise */
    /* what runs asks for something that is no more: its devices say enough */
    struct placement_member *bare_members; /* in the placer's arena; NULL: as it asks */
    struct placement_request bare;
    enum given_stage stage;
    uint32_t kind, member, task; /* whose turn it is: of KINDS and TYPES, … */
    uint32_t part, slot;         /* … and of LEAVES, in the decision */
    uint64_t left;               /* of the work of a piece, in leaves */
    struct split split;
    struct decision decision; /* the answer, from KNOWN on */
    struct claims *claims;    /* of the part, by the placer's nodes; NULL: nobody has asked */
    uint32_t *claim_next;     /* by the part's slots: the next one there, plus one */
    bool is_homeless;         /* a task found none of the leaves that others of its kind are on */
    uint16_t *types;          /* of TYPES, by task: which of its candidates; NULL: not scattered */
};

/* About so much more of it, of a request and slots that are equal each time. 0: all is known.
 * PLACER_CUT: it goes on with the next call. */
int given_some(struct given *given, const struct placement_request *request,
               const struct placement_slot *slots, uint64_t leaves, struct err *err);
/* It cannot be taken as it asks: it begins anew, by its devices. False: it has. */
bool given_ask_less(struct given *given);

#endif
