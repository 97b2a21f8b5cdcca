/* search.h — what the files of a decision share. Inside src/hived only.
 *
 * schedule.c joins a search that was cut, or begins one, and concludes it; known.c answers for a
 * group that is known; tries.c looks for places of a new one; search.c cuts the work into pieces,
 * and writes results. See "One large part" in docs/rfc/0016-gangs-in-steps.md.
 */
#ifndef HIVED_SEARCH_H
#define HIVED_SEARCH_H
#include "hived/state.h"

struct arena;
struct err;

enum { LEAVES_LOOKED_AT = 6 }; /* as long as it takes to reserve one, so many are looked at */

/* How far one try to find places, in one chain, has come. */
enum try_stage {
    TRY_PACK,  /* cells of the view are chosen, … */
    TRY_TAKE,  /* … leaves in them: virtual ones, of an opportunistic gang physical ones */
    TRY_LAZY,  /* lazy groups in the way are displaced: at a leaf */
    TRY_MAP,   /* the virtual leaves are mapped to physical ones */
    TRY_LEAVE, /* … in vain: those who were displaced get back what they lost */
    TRY_FOUND, /* who is in the way, and the answer, follow */
};

/* What a search has found so far. One in pieces goes on from here; then what an earlier try has
 * looked for in vain is not looked for again. */
struct hived_found {
    uint32_t attempt, failed; /* number of the try, and of the last one that has failed */
    enum try_stage stage;
    uint32_t at;
    uint32_t passed;       /* pieces of FILTERING, … */
    uint32_t passed_again; /* … and those in which PREEMPTING displaces once more, … */
    uint64_t work;         /* … and what is done of the next one, in leaves looked at */
    struct pack_item *items;
    uint32_t item_count, leaf_count;
    uint32_t *virtual, *physical;
    struct wait wait, first; /* why the last try has failed; and the last one without displacing */
    bool is_displacing;
    bool has_displaced; /* lazy groups have lost their cells: they must not have got them back, … */
    bool displaces_again; /* … but for PREEMPTING, which displaces them once more, … */
    bool is_again;        /* … and has begun to */
    struct pack pack;
    struct mapping mapping;
    struct conflict conflict;
    uint32_t usable; /* leaves of a group that preempts: those before this one are */
    struct victims victims;
    struct writing writing;
    const uint32_t *starts; /* of the slots */
};

struct scheduling { /* one call of hived_schedule */
    struct hived *h;
    const struct hived_request *request;
    struct arena *arena;
    struct hived_result *result;
    const char *pod;
    enum hived_phase phase;
    const struct hived_scope *scope;
    const bool *is_excluded; /* by node, or NULL */
    uint32_t vc, pin;
    struct pack_item *items;
    uint32_t item_count, leaf_count;
    uint32_t *virtual, *physical;
    uint32_t chain;              /* where it was found */
    struct hived_course *course; /* or NULL */
    struct hived_found *found;   /* the course's, or `own` */
    struct hived_found own;
    uint32_t attempts;  /* to find places, each in one chain */
    uint32_t displaced; /* leaves that lazy groups may still lose, when it is in one piece */
    bool is_cut;
};

static inline bool is_given(const char *text)
{
    return text && *text;
}

/* The second search of a gang for which others must end, before it has a group. */
static inline bool is_displacing_again(const struct scheduling *plan)
{
    return plan->phase == HIVED_PREEMPTING && plan->found->displaces_again;
}

/* By node: whether the scope excludes it, in the arena. NULL: it excludes none. */
const bool *scope_nodes(struct scheduling *plan, const struct hived_scope *scope);

/* search.c: pieces. Is this a call of a search in pieces? */
bool is_on_course(const struct scheduling *plan);
/* So much more may be done in this piece, in leaves looked at. */
uint32_t piece_room(const struct scheduling *plan);
/* So much was done. True: it is the end of a piece, the search goes on with the next call. */
bool piece_ends(struct scheduling *plan, uint32_t leaves);

/* search.c: results. Who is in the way of these leaves, for the group `own`, or NONE; the pods of
 * these; the slots of what was found; or of a group. False: cut. */
bool conflict_find(struct scheduling *plan, const uint32_t *physical, uint32_t count, uint32_t own);
bool victims_write(struct scheduling *plan);
bool placement_write(struct scheduling *plan, const struct writing_of *of);
bool group_placement_write(struct scheduling *plan, const struct group *group);

/* known.c. A place for one more pod of a group that runs. */
int allocated_schedule(struct scheduling *plan, struct group *group, struct err *err);
/* True: answered, or cut. False: its preemption was cancelled, it must be placed anew. */
bool preempting_schedule(struct scheduling *plan, uint32_t index);
void being_preempted_schedule(struct scheduling *plan, const struct group *group);

/* tries.c. All chains that the request may use, displacing nobody of the virtual cluster when
 * `priority` is HIVED_PRIORITY_OPPO. 0 with *is_found (or cut), or a user error. */
int place_try(struct scheduling *plan, int32_t priority, bool *is_found, struct err *err);
/* Those who were displaced have their cells again. False: cut. */
bool displaced_return(struct scheduling *plan);

#endif
