/* hived_parts.h — what the files of HiveD's placer share. Inside src/placement only.
 *
 * hived.c keeps the nodes and the whole; hived_make.c makes automatic cells; hived_split.c turns a
 * request into parts, one for each leaf type, in every combination of leaf types that may serve it;
 * hived_place.c asks HiveD for each combination; hived_search.c keeps a search that was cut;
 * hived_owed.c applies what was told meanwhile; hived_hold.c takes a decision, and ends it;
 * hived_leave.c gives the cells of large groups back; hived_giving.c takes slots that were not
 * decided here, whose leaves hived_given.c looks up.
 */
#ifndef PLACEMENT_HIVED_PARTS_H
#define PLACEMENT_HIVED_PARTS_H
#include "base/arena.h"
#include "base/map.h"
#include "hived/auto.h"
#include "hived/hived.h"
#include "placement/placement.h"

struct err;

struct known_node {
    struct node_facts facts; /* owned */
    uint32_t id;
    /* automatic: it offers something else than its cells say, and is not used until there are other
     * ones; and those that are being made do not say it either */
    bool is_odd, is_odd_next;
    struct node_facts described; /* owned: what they say of it then, for a copy; or all zero */
};

/* Automatic cells that are made in pieces: the states stand in docs/rfc/0003-hived.md. */
struct cells_making {
    struct hived_maker *maker; /* of their configuration; NULL: it is made, … */
    struct hived *cells;       /* … and they are built of it. Both NULL: none are being made */
    uint32_t count;            /* nodes that there were when it began */
    uint32_t grain;            /* CPUs of a leaf of them */
    uint32_t next;             /* the node whose turn it is: to be described; to be told healthy */
    bool is_missed;            /* a node has changed that had had its turn, or joins no more */
    uint32_t leaves;           /* of a piece; 0: nobody has said, so all at once */
    bool is_settling;          /* a node has come in this step: it begins when no more come */
    uint32_t puts_off;         /* so often because a known one had changed */
    bool is_served;            /* cells without the last changes: for one question at least */
};

struct held_slot { /* of a task: gang of HiveD, slot there */
    uint32_t part, slot;
};

/* What the names in a slot stand for: most slots have those of the one before. */
struct slot_names {
    const char *node, *type;
    uint32_t at;   /* of the node, among those that are known, … */
    uint32_t step; /* … and from the one before: mostly one up, or one down */
    uint8_t level;
};

struct held { /* what a group of the core is to HiveD */
    char *name;
    char **parts;
    uint32_t part_count, slot_count;
    uint32_t listing;     /* of the victims that it was named among last */
    uint32_t taken_count; /* slots that have not ended, … */
    uint32_t *tasks_left; /* … and of each part */
    struct held_slot *places;
};

struct type_part { /* the members of a request on one leaf type */
    struct hived_request request;
    struct hived_placement placement;
    uint32_t *slots; /* by HiveD's slot: the task */
    bool *wants_gpu; /* by HiveD's slot; others see no device of their cell */
    const char *leaf_type;
    uint32_t gpu_per_leaf;
    enum hived_kind kind;
    const struct hived_victim *victims;
    uint32_t victim_count;
    uint32_t overtaken; /* as in a hived_result, … */
    bool is_urgent;     /* … likewise */
    const char *reason;
    uint64_t topic; /* of the reason, as in a placement_result */
    bool is_never;
    struct hived_found *found; /* of a search in pieces, by FILTERING: PREEMPTING finds it again */
};

/* Of the nodes, those that are looked at. */
enum scope_kind {
    SCOPE_WHOLE,  /* all that the request may have */
    SCOPE_AVOIDS, /* less those that it should avoid */
};

struct decision { /* a way to place a request */
    struct type_part *parts;
    uint32_t part_count;
    bool is_confined; /* all are asked for in one cell of a type that none of them has */
    const struct hived_scope *scope; /* by which it was found, when it is of one engine; or NULL */
};

/* A search in pieces runs from the combination of leaf types that it was cut in with each call, and
 * is cut where it has come to the end of one piece more than before; what it has asked HiveD it
 * knows by then. A copy of the placer knows nothing of that: it begins with the first combination,
 * and asks again. */
struct search_call {
    struct hived_request request; /* what was asked, … */
    enum hived_phase phase;
    enum scope_kind scope;
    bool is_done; /* … and it was answered */
    int code;
    const struct err *err;
    struct hived_result result;
    struct hived_found *found;
    uint32_t passed; /* pieces, … */
    uint32_t combo;  /* … which count with the combination that asked first */
};

struct taking_part { /* of a decision that takes its cells */
    char *gang;
    uint32_t all;        /* work, in leaves, … */
    uint32_t beside;     /* … and how much of it is what others had reserved, and, as far as that
                            has been found, what loses its guarantee */
    bool was_preempting; /* its cells were reserved for it, and are again when it is given up */
};

enum told_kind { TOLD_SLOT_OVER, TOLD_GROUP_OVER, TOLD_CANCEL };

struct told_later {
    enum told_kind kind;
    char *group;
    size_t slot;
};

struct told_list {
    struct told_later *items;
    size_t count, room;
};

struct placer_search {
    char *group; /* whom it is for, when it was cut; NULL: there is none */
    struct node_id *avoid;
    size_t avoid_count;
    bool may_be_refused; /* of the request, of the last piece */
    bool is_preempting;  /* it has begun to reserve cells, … */
    bool is_reserved;    /* … and has all of them */
    bool is_filtered;    /* what it preempts is known: a copy finds that again at once */
    uint32_t pieces, passed;
    int64_t now_ms;                /* of the last one */
    uint32_t leaves;               /* to be reserved or taken in one piece */
    struct {                       /* what is decided takes its cells before the answer */
        struct taking_part *parts; /* HiveD's groups that have some of them; NULL: none */
        uint32_t count;
        uint32_t part;  /* whose turn it is: those before have all, … */
        bool has_begun; /* … and it is there, … */
        uint32_t done;  /* … for which so much of its work was done, in leaves */
        bool is_whole;  /* it has all */
    } taking;
    struct {                          /* the decision's slots are written, in pieces */
        struct placement_slot *slots; /* NULL: it has not begun */
        uint16_t *gpus;               /* of the next slot */
        uint32_t part, slot, pieces;
        struct slot_names names;
    } keeping;
    struct {                  /* the victims are named, in pieces */
        uint32_t listing;     /* 0: it has not begun, … */
        uint32_t pieces;      /* … or, in a copy, is done so often before the next piece */
        uint32_t part;        /* of the decision, … */
        uint32_t next;        /* … and its victim whose turn it is */
        const char **victims; /* in the placer's arena */
        size_t count, first;
    } naming;
    struct { /* slots that were not found here are taken */
        bool is_on, is_recovery;
        size_t slot_count;
        uint32_t pieces;     /* in which their leaves were looked up, so far */
        struct given *given; /* in the placer's arena; NULL: a copy has to look them up again */
    } giving;
    struct search_call *calls; /* in the placer's arena; NULL: nothing is known */
    uint32_t call_count, call_room;
    uint32_t call_next;            /* the one that is likely to be asked for next */
    uint32_t combo;                /* the combination whose turn it is, among all that are tried */
    struct combos_course *courses; /* in the placer's arena; NULL: no combination was tried */
    struct split *split;           /* likewise: how the request was split; NULL: it was not yet */
    struct told_list told;         /* since it began: it counts when the search is over */
};

struct leaving {
    char *gang;
    bool is_reserved; /* it has not ended: what was taken is reserved for it again */
};

struct placer_hived {
    struct placer base;
    struct hived *hived; /* NULL: automatic, and nothing known yet */
    bool is_automatic, is_stale;
    /* automatic: CPUs of a leaf of `hived`, what the nodes ask for now; a known node's CPU leaves
     * are no longer what they were */
    uint32_t grain;
    struct hived_auto_sum sum;
    bool has_other_cpus;
    struct cells_making making;
    struct {
        struct known_node *items;
        size_t count, room;
    } nodes;
    struct text_map node_index;
    struct {
        struct held *items;
        size_t count, room;
    } helds;
    struct {
        uint32_t *items;
        size_t count, room;
    } gaps;
    struct text_map held_index; /* the core's names and HiveD's */
    uint32_t listings;          /* of victims, so far */
    struct id_map expected;     /* GPUs of groups whose recovery is still to come */
    /* the last decision to bind, for its commit */
    struct arena arena;
    const char *decided; /* group, or NULL */
    struct decision decision;
    const struct placement_slot *decided_slots;
    size_t decided_count;
    struct placer_search search;
    /* what was told during searches that are over: from `owed_next` on it does not count yet. Not
     * while there is a search */
    struct told_list owed;
    size_t owed_next;
    /* groups of HiveD that still have cells to give back; how many leaves go in one piece, 0:
     * nobody has said, so all do */
    struct {
        struct leaving *items;
        size_t count, room;
    } leaving;
    uint32_t leaving_leaves;
    bool is_hived_copied; /* of a copy in pieces that is not whole yet */
};

struct type_candidates { /* leaf types that a member may use, best first */
    const char **types;
    uint32_t count;
    uint32_t own_count; /* those behind are used only when none of these can ever serve */
};

struct split {
    struct placer_hived *p;
    const struct placement_request *request;
    struct arena *arena;
    struct type_candidates *candidates; /* by kind: the distinct lists of candidates */
    uint32_t *kinds;                    /* by member: which of them is its own */
    uint32_t kind_count;
    uint32_t *choice; /* by kind: place in its list */
    uint32_t *starts; /* by member: first task */
    bool *blamed; /* by kind, for each of those before it: that one's type is a reason why this one
                     has found none */
    bool has_others; /* candidates behind the own ones */
    bool takes_others;
};

struct attempt {
    struct placer_hived *p;
    const struct placement_request *request;
    struct arena *arena; /* the caller's */
    bool is_in_pieces;
    bool is_too_much; /* it is to be searched for in pieces */
    enum scope_kind scope_kind;
    const struct hived_scope *scope; /* in the placer's arena; NULL: all nodes */
};

enum { PLACER_CUT = PLACEMENT_CUT }; /* not an error: the search goes on with the next call */

/* hived_search.c. Another search than for this request is given up. */
void search_settle(struct placer_hived *p, const struct placement_request *request);
/* It goes on then, with the nodes to avoid that it began with, or one begins: what was known of the
 * last one is forgotten. */
void search_begin(struct placer_hived *p, struct placement_request *request);
/* It was cut. */
void search_keep(struct placer_hived *p, const struct placement_request *request);
/* It is over: what was told meanwhile is owed now. What it has not finished is undone, unless it
 * `is_answered`. */
void search_close(struct placer_hived *p, bool is_answered);
/* The placer itself is to be freed: nothing counts any more. */
void search_drop(struct placer_hived *p);
/* Is it kept for later? Then it has been. The search for the group itself is given up. */
bool search_defers(struct placer_hived *p, enum told_kind kind, const char *group, size_t slot);
/* One begins to take slots that were given, and goes on with it. */
void search_begin_given(struct placer_hived *p, const struct placement_request *request,
                        size_t slot_count, bool is_recovery);
void search_go_on_given(struct placer_hived *p, const struct placement_request *request);
/* It has come to the end of a piece. True: it goes on with the next call. */
bool search_piece_end(struct placer_hived *p);
/* What its group had reserved goes back, with the search when that is given up; whatever has been
 * found so far is worth nothing. */
void search_restart(struct placer_hived *p);
/* The question, which may have been answered. */
struct search_call *search_call_of(struct placer_hived *p, const struct hived_ask *ask,
                                   enum scope_kind scope);
void search_copy(struct placer_hived *p, const struct placer_hived *from);
void placer_hived_forget(struct placer *placer);

/* hived_make.c. Follow the nodes, when there is no configuration: at once, where that is one piece.
 */
void placer_hived_refresh(struct placer_hived *p);
bool placer_hived_is_due(const struct placer_hived *p);
/* A node is about to offer something else; and it has been told; `is_changed`: it offers something
 * else than before. */
void making_node_changes(struct placer_hived *p, uint32_t at);
void making_node_changed(struct placer_hived *p, uint32_t at, bool is_new, bool is_changed);
/* A piece of it, if there is one to be made. */
void making_tidy(struct placer_hived *p, uint32_t tasks);
bool making_is_due(const struct placer_hived *p);
/* Not before somebody has asked: whoever changes for ever hinders nobody. */
bool making_is_put_off(const struct placer_hived *p);
/* Somebody has asked for a place. */
void making_asked(struct placer_hived *p);
void making_drop(struct placer_hived *p);
/* After the nodes: it goes on at the same place. */
void making_copy(struct placer_hived *p, const struct placer_hived *from);
bool placer_hived_is_making(const struct placer *placer);
bool placer_hived_is_outdated(const struct placer *placer);
/* Leaves mean something else to the nodes than to what is held. */
bool placer_has_other_leaves(const struct placer_hived *p);

/* NULL: it has not been told. */
const struct known_node *placer_known_node(const struct placer_hived *p, struct node_id id);

/* Leaves of this type for a demand; 0: the type cannot serve it. */
uint32_t placer_leaf_count(const struct hived_config *config, const char *leaf_type, uint32_t gpu,
                           uint32_t cpu, uint64_t memory_mib);

/* GPUs of one leaf of this type. */
uint32_t placer_hived_leaf_gpus(const struct hived_config *config, const char *leaf_type);

/* All combinations of leaf types, the best first: `init` and `begin` go to it, `next` is false
 * after the last. Everything lives in the arena. `again`: the same request is asked about once
 * more, on the same cells. `failed`: a part of this combination for which
 * there is no room, on its leaf type: then the next one is without it, and without more on this
 * type. So kinds of members that are on types of their own are tried one after the other, and not
 * each type of one with each type of the others. NULL: it is not known which part it is. */
int placer_split_init(struct split *split, struct placer_hived *p,
                      const struct placement_request *request, struct arena *arena,
                      struct err *err);
void placer_split_again(struct split *split, const struct placement_request *request);
void placer_split_begin(struct split *split);
bool placer_split_next(struct split *split, const struct type_part *failed);
static inline const struct type_candidates *split_candidates(const struct split *split,
                                                             uint32_t member)
{
    return &split->candidates[split->kinds[member]];
}

/* The parts of this combination; false when a type cannot serve a member: that of the last part. */
bool placer_decision_make(const struct split *split, struct decision *decision);
/* Which task each slot of them is: only what is decided needs it. */
void placer_decision_order(const struct split *split, struct decision *decision);
/* The same where each task is on one of the types that it may be on: by task, its number. */
bool placer_decision_scatter(const struct split *split, const uint16_t *types,
                             struct decision *decision);

/* Ask HiveD about one part. */
int placer_part_schedule(struct attempt *attempt, struct type_part *part, enum hived_phase phase,
                         struct err *err);

/* A piece of what is decided takes its cells: PLACER_CUT, when there is more to be taken. 0: the
 * answer can be given, which may still have to take all of them (when it cannot be cut). */
int placer_take_some(struct placer_hived *p, int64_t now_ms, struct err *err);
/* All that is left of it. */
int placer_take_rest(struct placer_hived *p, int64_t now_ms, struct err *err);
/* The search that is over was given up: what was reserved for it is again; the rest goes back. */
void placer_taking_reserve(struct placer_hived *p, const struct placer_search *search);
void placer_taking_end(struct placer_hived *p, const struct placer_search *search);
/* In an arena; and what is decided. */
struct placement_slot *placer_slots_copy(const struct placement_slot *from, size_t count,
                                         struct arena *arena);
struct placement_slot *placer_decided_slots(const struct placer_hived *p, struct arena *arena);

/* What runs: keep a decision, forget it, or copy all of it. */
void placer_held_add(struct placer_hived *p, const char *name, const struct decision *decision,
                     size_t slot_count);
void placer_held_drop(struct placer_hived *p, uint32_t at);
/* The next of another one, in its place; how many tasks it has. */
uint32_t placer_held_copy(struct placer_hived *p, const struct placer_hived *from, uint32_t at);

/* hived_giving.c. Slots that were not just decided are taken: at once; the next piece of it, of
 * which there are no more than so many. */
enum { TAKINGS_MAX = 32 };
int placer_given_commit(struct placer_hived *p, const struct placement_request *request,
                        const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                        struct err *err);
int placer_giving_go_on(struct placer_hived *p, const struct placement_request *request,
                        const struct placement_slot *slots, size_t slot_count, struct err *err);

/* hived_owed.c. Something that was told counts later; all of such a list does (then it is empty).
 */
void told_add(struct told_list *list, enum told_kind kind, const char *group, size_t slot);
void told_copy(struct told_list *list, const struct told_list *from, size_t first);
void told_release(struct told_list *list, size_t first);
void placer_owe(struct placer_hived *p, struct told_list *told);
bool placer_owes(const struct placer_hived *p);
/* Some of it counts from now on, in its order: what about so many tasks cost, and at least one. */
void placer_owed_go_on(struct placer_hived *p, uint32_t tasks);
void placer_owed_finish(struct placer_hived *p);

/* hived_leave.c. A group of HiveD ends; or a preemption of the group of the core; or what a group
 * that had preempted has taken is reserved for it again. */
void placer_gang_end(struct placer_hived *p, const char *gang);
void placer_gang_cancel(struct placer_hived *p, const char *gang, const char *group);
void placer_gang_reserve(struct placer_hived *p, const char *gang, const char *group);
/* All that is owed or to be given back is; or some of it, if there is a slice: true when nothing is
 * left. */
void placer_leaving_finish(struct placer_hived *p);
bool placer_leaving_go_on(struct placer_hived *p, uint32_t slice);
bool placer_is_tidy(const struct placer_hived *p);
/* A search was given up, and those who had been displaced for it have not got everything back. */
bool placer_is_returning(const struct placer_hived *p);
/* It has ended. */
bool placer_is_leaving(const struct placer_hived *p, const char *gang);
void placer_leaving_copy(struct placer_hived *p, const struct placer_hived *from);
void placer_leaving_free(struct placer_hived *p);
bool placer_hived_tidy(struct placer *placer, uint32_t tasks);

/* The operations of the seam (placement.h). */
int placer_hived_place(struct placer *placer, const struct placement_request *request,
                       struct arena *arena, struct placement_result *result, struct err *err);
int placer_hived_take(struct placer *placer, const struct placement_request *request,
                      const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                      struct err *err);
void placer_hived_expect(struct placer *placer, struct node_id node, const uint16_t *gpus,
                         size_t count);
void placer_hived_slot_over(struct placer *placer, const char *group, size_t slot);
void placer_hived_group_over(struct placer *placer, const char *group);
void placer_hived_cancel(struct placer *placer, const char *group);
/* The same, now. */
void placer_slot_end(struct placer_hived *p, const char *group, size_t slot);
void placer_group_end(struct placer_hived *p, const char *group);
void placer_group_cancel(struct placer_hived *p, const char *group);
int placer_hived_check(struct placer *placer, const struct placement_visit *visit, struct err *err);

#endif
