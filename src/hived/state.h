/* state.h — what the parts of hived share; nobody outside src/hived includes it.
 *
 * Cells are named by their index in `cells`, physical ones first. A tree lies level by level, so
 * the descendants of a cell at any level are neighbours: children of a cell, leaves of a cell.
 */
#ifndef HIVED_STATE_H
#define HIVED_STATE_H
#include "base/map.h"
#include "hived/habits.h"
#include "hived/hived.h"

#define NONE HIVED_NONE

struct arena;

/* What is read and written on the way up from a leaf: two cells, often siblings, a cache line. */
struct cell {
    uint32_t parent, child; /* child: the first one */
    uint32_t bound;         /* virtual cell of a physical one and the reverse */
    uint32_t used;          /* leaves below in use */
    uint32_t used_oppo;     /* of these, opportunistically */
    union {
        uint32_t using;        /* physical leaves: group */
        uint32_t bad_children; /* physical cells above them */
        uint32_t root;         /* virtual: preassigned cell */
    };
    uint16_t chain;
    int16_t priority;
    uint8_t level;
    uint8_t state; /* enum hived_cell_state; of virtual cells only when imitating */
    bool is_virtual : 1, is_pinned : 1 /* roots, too */, is_split : 1, is_bad : 1, is_doomed : 1;
    bool is_free : 1; /* in the free list of its level; physical */
    bool is_viewed : 1;
    bool is_listed : 1; /* as bad and free, or doomed; physical */
};

_Static_assert(sizeof(struct cell) == 32, "two cells are a cache line");

/* The rest of a cell, at the same index in an array of its own. */
struct cell_rest {
    _Alignas(32) uint32_t view_node; /* that this cell is, when it is viewed */
    uint32_t view;                   /* in which */
    union {
        struct {              /* physical */
            uint32_t node;    /* index of the (first) node */
            uint32_t index;   /* default own address; device index of a leaf */
            uint32_t free_at; /* position in the free list of its level, when it is free */
            uint32_t
                listed_at; /* in the bad-free list of its level, or the doomed list of its vc */
            uint32_t reserving; /* group; leaves */
            uint32_t oppo_vc;   /* that uses it opportunistically, or NONE; leaves */
        };
        struct { /* virtual */
            uint32_t vc;
            uint32_t number;        /* running index inside its root; of a root: in its vc */
            uint32_t order;         /* of a root: position in the list of its level; NONE: pinned */
            uint32_t over_released; /* imitating: leaves below taken off its use once too often */
        };
    };
};

_Static_assert(sizeof(struct cell_rest) == 32, "two are a cache line");

/* Free cells of a level: an unordered list as in the original (append, swap with the last), with a
 * tournament above it that finds the first usable one with fewest opportunistic leaves. */
struct free_list {
    uint32_t *items;
    uint32_t count, room;
    uint32_t *tree;    /* 2 * tree_size positions; [1] is the winner */
    uint32_t *weights; /* of items; UINT32_MAX: not usable */
    uint32_t tree_size;
};

struct cell_list {
    uint32_t *items;
    size_t count, room;
};

struct level {
    uint32_t type; /* of the configuration */
    uint32_t child_number, leaf_count;
    uint32_t first, count; /* physical cells of this level: neighbours only inside a top cell, so
                              `first` is meaningful for the top level */
    struct free_list free;
    struct cell_list bad_free;
    uint32_t total_left;
    uint32_t all_vc_free;
    uint32_t doomed_count;
};

struct chain {
    uint32_t type;
    const char *name;
    uint32_t leaf_type;
    uint8_t top, node_level; /* levels */
    struct level *levels;    /* [1 … top] */
    struct cell_list tops;
    struct cell_list vcs; /* virtual clusters that own non-pinned cells of this chain */
    uint32_t view;        /* opportunistic */
};

/* Non-pinned cells of one virtual cluster in one chain. */
struct quota_level {
    struct cell_list roots; /* preassigned cells of this level */
    uint64_t *unbound;      /* bit a root */
    uint32_t unbound_hint;  /* no bit is set in words before this one */
    uint32_t free;
    struct cell_list doomed;
};

struct quota {
    bool is_present;
    uint32_t oppo;        /* leaves of the chain that the virtual cluster uses opportunistically */
    uint32_t oppo_missed; /* imitating: those that were given back without the original noticing */
    uint8_t top;          /* highest level with cells */
    uint32_t view;
    struct quota_level *levels; /* [1 … chain's top] */
};

struct pin {
    const char *id;
    uint32_t cell, root; /* physical, virtual */
    uint32_t vc, view;
};

struct vc {
    const char *name;
    struct cell_list roots; /* in order, pinned ones last */
};

struct node {
    const char *name;
    bool is_bad;
    struct cell_list leaves;
};

/* What a packer sees: cells at node level (or below, where the quota is cut smaller), kept in the
 * order that a stable sort at each call would have given. Nodes of equal key share a bucket; a node
 * that changed its key joins the front of its new bucket when it came from before it, the back when
 * it came from behind. */
struct view_node {
    uint32_t cell, leaf;     /* its first one */
    uint32_t previous, next; /* in the bucket */
    int64_t label;           /* ascending inside a bucket */
    int64_t key;             /* of the bucket it is in, … */
    int64_t next_key;        /* … and of the one that it belongs in */
    bool is_dirty;           /* touched since its view was last settled */
};

struct bucket {
    int64_t key;
    uint32_t first, last;
    int64_t low, high; /* labels given at the ends */
    uint64_t leaves;   /* of its nodes */
    uint32_t count;
};

struct view {
    bool is_cluster;       /* opportunistic: physical cells */
    uint32_t first, count; /* in view_nodes; those that joined later are behind all others */
    uint32_t leaf_max;     /* of one node */
    uint64_t leaves;       /* of all */
    bool is_mixed;         /* nodes of several sizes */
    struct bucket *buckets;
    uint32_t bucket_count, bucket_room;
    uint32_t *dirty;
    uint32_t dirty_count, dirty_room;
    uint32_t *by_priority; /* leaves in use at each guaranteed priority; virtual views */
    int32_t lowest;        /* no leaf is used at a priority below this one */
    uint32_t *order;       /* imitating: nodes as the original sorted them last */
    uint32_t order_count, order_next;
};

enum { POD_NAME_INSIDE = 14 };

struct pod {
    char *name; /* or NULL; `inside`, or allocated when longer */
    uint64_t sequence;
    bool is_bound, had_virtual;
    char inside[POD_NAME_INSIDE];
};

struct lost_leaf { /* a device that left the configuration, or that another group was found on */
    uint32_t leaf;
    char *node;
    char *type; /* of its preassigned cell, or NULL */
    uint16_t index;
};

struct group { /* what its end reads comes first; one block with its pods, numbers and names */
    char *name;
    struct pod *pods;             /* [slot_count] */
    uint32_t *physical, *virtual; /* [leaf_count]; NONE: left the configuration; opportunistic */
    uint32_t slot_count, leaf_count;
    uint32_t reserved;    /* PREEMPTING: leaves before this one are reserved for it … */
    uint32_t ended;       /* … but those before this one have been given back: it is ending */
    uint32_t overtaken;   /* PREEMPTING: nobody else preempts for the leaves before this one … */
    uint32_t weaker;      /* … who did for the next one gives back what he has, plus one; or 0 */
    uint32_t taken;       /* PREEMPTING: those before this one are still its own, as a commit that
                             was given up is taken back */
    uint32_t bound_count; /* pods */
    uint32_t spare_hint;  /* no slot before this one is without a pod */
    uint32_t vc;          /* NONE: its virtual cluster left the configuration */
    int32_t priority;
    uint8_t state; /* enum hived_group_state */
    bool is_lazy, uses_suggested, has_virtual, is_downgraded;
    bool is_small;       /* lies in a chunk */
    uint32_t listing;    /* scratch: equal to that of struct hived when it is in the list */
    uint32_t *slot_leaf; /* [slot_count + 1]: first leaf of each slot */
    uint32_t *types;     /* [leaf_count] of the preassigned cell when bound; NONE: opportunistic */
    char *vc_name, *chain_name;
    char *pin; /* or NULL */
    uint64_t sequence;
    struct lost_leaf *lost;
    uint32_t lost_count;
    char *preemptor; /* that it was downgraded for */
    int64_t preemption_ms;
    char **preempting; /* names of the pods that wait for the victims */
    uint32_t preempting_count, preempting_room;
};

struct downgrade { /* that can be taken back */
    uint32_t group;
    uint32_t *virtual;
    uint32_t next; /* its leaves before this one have lost theirs */
};

/* Trees of one shape that lie one behind the other. */
struct span {
    uint32_t first, end, size;             /* of a tree */
    uint8_t top, view_level;               /* levels: of a root, of the cells that a packer sees */
    uint32_t at[HIVED_LEVELS_MAX + 1];     /* [level]: of its first cell, in a tree */
    uint32_t leaves[HIVED_LEVELS_MAX + 1]; /* [level]: below a cell */
};

enum { SPANS_MAX = 32 }; /* those of a configuration; what comes later has none */

struct journal_entry {
    bool is_split;     /* `cell` was split; else the free list of its level has changed */
    uint32_t cell, at; /* at NONE: appended; else removed from there */
};

/* How far the cells of a configuration are made; what the numbers mean follows from the stage. */
enum build_stage {
    BUILD_PHYSICAL, /* at: cell of the configuration */
    BUILD_VIRTUAL,  /* at: virtual cluster, part: of its list, number: of these cells; pin */
    BUILD_VIEWS,    /* at: view, part: tree below it */
    BUILD_NODES,    /* at: node, to be bad */
    BUILD_WHOLE,
};
struct build {
    enum build_stage stage;
    uint32_t at, part, number, pin;
};

/* The users of the cell that a virtual leaf's root is bound to lose it, before that leaf is bound
 * elsewhere. */
struct clearing {
    bool is_on;
    uint32_t virtual;        /* the leaf that was found */
    uint32_t first, at, end; /* physical leaves: nobody has those before `at` by virtual ones */
    uint32_t weaker;         /* who has reserved that one gives back all he has, plus one; or 0 */
};

/* A group that loses its virtual cells, some in each piece. */
struct demotion {
    uint32_t group;  /* plus one; 0: none */
    uint32_t next;   /* its leaves before this one have lost theirs */
    char *preemptor; /* that it is for */
};

/* A gang that takes its cells in pieces. Its group is there from the first one on. */
struct committing {
    bool is_on;
    uint32_t group;
    uint32_t slots; /* those before have their leaves; the dooms are held until all have, and until
                       it is downgraded */
    uint32_t pods;  /* those before are bound; none until all slots have their leaves */
    bool must_downgrade, has_oppo; /* as far as it has come */
    uint32_t leaf;                 /* so many leaves of the next slot are there as well, … */
    uint32_t weaker; /* … who has reserved the one behind them gives back all he has, plus one; or 0
                      */
    struct clearing clearing; /* … or others lose their virtual cells to it */
    bool was_preempting; /* its cells are reserved for it: until all are its own, it preempts */
    bool is_downgrading; /* all slots have their leaves, but not its guarantee, … */
    uint32_t downgraded; /* … which the leaves before this one have lost */
};

struct hived {
    struct hived_config *config;
    struct build build;
    struct cell *cells;
    struct cell_rest *rests; /* by cell */
    const char **addresses;  /* own parts given, by physical cell, or NULL */
    int16_t *priority;       /* of leaves again, close together: the packer scans them */
    uint32_t *taken;         /* by cell: scratch of the packer, equal to epoch when set */
    uint32_t *scratch;       /* by virtual cell, of the mapping: its vertex; then, of a leaf, the
                                physical one picked for it */
    uint32_t epoch;
    uint32_t cell_count, cell_room;
    struct span spans[SPANS_MAX]; /* ascending */
    uint32_t span_count;
    struct chain *chains;
    uint32_t chain_count;
    uint32_t *leaf_types; /* of the chains, in order */
    uint32_t leaf_type_count;
    struct vc *vcs;
    uint32_t vc_count;
    struct text_map vc_index;
    struct quota *quotas; /* [vc * chain_count + chain] */
    struct pin *pins;
    uint32_t pin_count;
    struct node *nodes;
    uint32_t node_count, node_room;
    struct arena names;                /* of nodes that joined later */
    uint32_t built_nodes, built_cells; /* those before are the configuration's */
    uint32_t joins;                    /* so many nodes have joined since */
    struct text_map node_index;
    struct view *views;
    uint32_t view_count;
    struct view_node *view_nodes;
    uint32_t view_node_count, view_node_room;
    struct group **groups; /* NULL: empty place */
    uint32_t group_count, group_room;
    struct cell_list group_gaps;
    struct {
        void **items;
        size_t count, room;
    } group_chunks;                       /* that small groups lie in */
    union group_place *spare;             /* free places in them, the last one freed first */
    union group_place *fresh, *fresh_end; /* never used ones of the last chunk */
    struct text_map group_index;
    size_t lost_count; /* leaves that all groups have lost */
    uint64_t sequence;
    int64_t now_ms;
    const struct habits *habits; /* none but in drivers that repeat recordings: habits.h */
    bool is_safety_broken;       /* a reconfiguration or recovery left less than the quotas need */
    /* a decision to bind that displaced lazy groups, to be committed or taken back */
    struct downgrade *pending;
    uint32_t pending_count, pending_room;
    char *pending_group;
    bool is_displacing; /* it belongs to a search in pieces that goes on, or has just found this;
                           or to one that was given up, and is taken back in pieces */
    /* mapping scratch: what a trial took from the free lists */
    struct journal_entry *journal;
    uint32_t journal_count, journal_room;
    bool is_trial;
    uint32_t dooms_held;
    bool dooms_missed;     /* something was to be looked at while they were held */
    bool holds_for_commit; /* one of them, until the decision is committed or forgotten */
    bool is_overtaking;    /* another, of a search in pieces: until what others had reserved, and
                              have given back, is reserved for its group */
    struct committing committing;
    struct demotion demotion; /* of that commit; or what is left when it was given up */
    uint64_t work_beside;     /* of commits so far, in leaves: others, or the group itself, have
                                 lost virtual cells */
    uint32_t listing;         /* number of the list of groups that is being made */
    /* For mirrors: the number of what HiveD was asked or told last, and of what has changed a chunk
     * of cells or a group last. In a mirror: of those that it has. */
    uint64_t changes;
    uint64_t *cell_changes;     /* by cell / CELLS_CHUNK */
    uint64_t *group_changes;    /* by group */
    const struct hived *origin; /* of a mirror; NULL: it is none */
    uint32_t nodes_seen;        /* a mirror's: as far as it has come with the nodes, … */
    struct group_copying {      /* … and with a group */
        struct group *group;    /* NULL: with none */
        uint32_t index, numbers, pods;
        uint64_t change; /* that it was copied after */
    } copying;
    struct copied { /* how far a copy in pieces has come; groups use `copying` as well */
        uint8_t stage;
        uint32_t next;
    } copied;
};

enum { CELLS_CHUNK = 64 };

static inline size_t cell_chunks(size_t cells)
{
    return cells / CELLS_CHUNK + 1;
}

/* To be called when a field of the cell has changed that questions and documents read: bound, used,
 * priority, state, is_bad, oppo_vc. */
static inline void cell_changed(struct hived *h, uint32_t cell)
{
    h->cell_changes[cell / CELLS_CHUNK] = h->changes;
}

/* Likewise of a group: leaves, pods, state, whether it is downgraded. */
static inline void group_changed(struct hived *h, uint32_t group)
{
    h->group_changes[group] = h->changes;
}

static inline struct quota *quota_of(struct hived *h, uint32_t vc, uint32_t chain)
{
    return &h->quotas[(size_t)vc * h->chain_count + chain];
}

static inline struct cell_rest *rest_of(const struct hived *h, const struct cell *cell)
{
    return &h->rests[cell - h->cells];
}

static inline struct level *level_of(struct hived *h, const struct cell *cell)
{
    return &h->chains[cell->chain].levels[cell->level];
}

static inline uint32_t child_number(const struct hived *h, const struct cell *cell)
{
    return h->chains[cell->chain].levels[cell->level].child_number;
}

/* First leaf below a cell; there are level_of(cell)->leaf_count of them, neighbours. */
static inline uint32_t first_leaf(const struct hived *h, uint32_t cell)
{
    while (h->cells[cell].level > 1)
        cell = h->cells[cell].child;
    return cell;
}

void cell_list_add(struct cell_list *list, uint32_t item);
void cell_list_release(struct cell_list *list);

/* build.c */
void hived_build_begin(struct hived *h, bool is_in_pieces);
void cells_alloc(struct hived *h, size_t count);
void hived_unbuild(struct hived *h);

/* The leaves that a virtual cluster uses opportunistically, by node; the caller's. */
struct cell_list oppo_leaves(const struct hived *h, uint32_t vc);

/* span.c */
void span_add(struct hived *h, uint32_t root);
void subtree_fetch(const struct hived *h, uint32_t cell);
void leaves_fetch(const struct hived *h, const uint32_t *leaves, uint32_t count);

/* tree.c: numbers that run up a tree */
void leaf_use(struct hived *h, uint32_t leaf, int32_t priority);
void leaf_unuse(struct hived *h, uint32_t leaf);
void cell_state_set(struct hived *h, uint32_t cell, enum hived_cell_state state);
bool cell_is_below(const struct hived *h, uint32_t cell, uint32_t above);
void cell_address(const struct hived *h, uint32_t cell, struct buf *out);
const char *cell_type_name(const struct hived *h, const struct cell *cell);

/* free_list.c */
void free_list_push(struct hived *h, struct free_list *list, uint32_t cell);
void free_list_remove(struct hived *h, struct free_list *list, uint32_t cell);
void free_list_weigh(struct hived *h, uint32_t cell);   /* its weight may have changed */
uint32_t free_list_first(const struct free_list *list); /* NONE: none usable */
void free_list_release(struct free_list *list);
void free_take(struct hived *h, uint32_t cell);
void free_give(struct hived *h, uint32_t cell);
void free_trial_begin(struct hived *h);
void free_trial_undo(struct hived *h);
uint32_t free_trial_undo_some(struct hived *h, uint32_t count); /* so many were done */
/* A search in pieces may have been given up inside one. */
static inline void hived_trial_end(struct hived *h)
{
    if (h->is_trial)
        free_trial_undo(h);
}
/* Whatever comes is not the next piece of it. */
void hived_overtaking_end(struct hived *h);
static inline void hived_search_end(struct hived *h)
{
    hived_trial_end(h);
    hived_overtaking_end(h);
}
bool cell_is_free(const struct hived *h, uint32_t cell); /* it or an ancestor is in a free list */
uint32_t cell_weight(const struct hived *h, const struct cell *cell); /* as struct free_list says */
bool cell_is_single_node(const struct hived *h, const struct cell *cell);

/* bind.c: bindings, preassigned cells, doomed bad cells */
void cell_bind(struct hived *h, uint32_t physical, uint32_t virtual);
bool leaf_allocate(struct hived *h, uint32_t physical, uint32_t virtual, int32_t priority,
                   uint32_t vc);
void leaf_release(struct hived *h, uint32_t physical, uint32_t vc);
void doom_try(struct hived *h, uint32_t chain, uint8_t level);
void doom_undo_try(struct hived *h, uint32_t chain, uint8_t level);
void doom_release(struct hived *h, uint32_t physical);
void dooms_hold(struct hived *h);
void dooms_let(struct hived *h);
void leaf_unbind_unused(struct hived *h, uint32_t physical);
uint32_t leaf_virtual(struct hived *h, uint32_t physical, uint32_t wanted, int32_t priority);
void cell_bind_spare(struct hived *h, uint32_t physical);
uint32_t physical_to_virtual(struct hived *h, uint32_t physical, uint32_t vc, uint32_t pin_root,
                             uint8_t preassigned_level, int32_t priority);
void bad_free_add(struct hived *h, uint32_t cell);
void bad_free_remove(struct hived *h, uint32_t cell);

/* health.c */
void leaves_bad_set_new(struct hived *h, uint32_t node, uint32_t first, uint32_t count);
void node_bad_set(struct hived *h, uint32_t node, bool is_bad);

/* view.c */
void view_join(struct hived *h, struct view *view, uint32_t cell);
void view_touch(struct hived *h, uint32_t cell); /* viewed */
void view_settle(struct hived *h, struct view *view);
int64_t view_node_key(const struct hived *h, const struct view *view, const struct view_node *node);
void view_count_leaf(struct view *view, int32_t priority, bool is_added);

/* keys: healthy first, then most used (by opportunistic pods, for the cluster's views), then least
 * used by others */
enum { KEY_SHIFT = 24 };
static inline int64_t view_key(bool is_bad, uint32_t same, uint32_t higher)
{
    return ((int64_t)is_bad << (2 * KEY_SHIFT)) |
           ((int64_t)((1 << KEY_SHIFT) - 1 - (int64_t)same) << KEY_SHIFT) | higher;
}

static inline bool key_is_bad(int64_t key)
{
    return key >> (2 * KEY_SHIFT);
}

static inline uint32_t key_used(int64_t key)
{
    uint32_t same =
        (uint32_t)((1 << KEY_SHIFT) - 1 - ((key >> KEY_SHIFT) & ((1 << KEY_SHIFT) - 1)));
    return same + (uint32_t)(key & ((1 << KEY_SHIFT) - 1));
}

/* pack.c */
struct pack_item { /* a pod to place */
    uint32_t leaves;
    uint32_t cell;   /* result: a view's node, or a smaller cell inside one */
    uint32_t leaf;   /* its first one */
    uint32_t first;  /* its leaves in the plan's list */
    uint32_t member; /* of the request */
    const char *within;
};

struct pack {
    struct hived *h;
    struct view *view;
    uint32_t chain;
    int32_t priority;        /* leaves below it may be taken; HIVED_PRIORITY_OPPO: free ones only */
    const bool *is_excluded; /* by node, or NULL */
    struct pack_item *items; /* ascending by leaves */
    uint32_t item_count, leaf_count;
    uint32_t *leaves; /* result: leaf cells, items in order */
    struct arena *arena;
    uint32_t bad_node;    /* out: of a node that would have fitted but is bad or excluded */
    bool is_bad_excluded; /* it is excluded, not bad */
    bool is_search_cut;   /* the complete search gave up at its limit */
    bool has_taken;       /* some of its items have their leaves */
    uint32_t epoch;       /* of these, in h->taken */
    uint32_t next;        /* after pack_run: the first item that has none yet */
    struct {              /* of items of one leaf on one cell: nothing is left before these */
        uint32_t cell, free, open;
    } one;
};

enum {
    PACK_STEPS_MAX = 200000, /* of the complete search, one gang in one chain */
    PACK_ITEMS_MAX = 4096,   /* larger gangs get the heuristics only */
};

/* Cells for all items in the view; their leaves follow. `within`: cell type that must hold the
 * whole gang, or NULL. */
bool pack_run(struct pack *pack, const char *within);
/* About so many more leaves, until all items have theirs. Returns how many. */
uint32_t pack_take(struct pack *pack, uint32_t leaves);

uint32_t pack_open_count(const struct pack *pack, uint32_t cell);
void pack_shun_note(struct pack *pack, uint32_t cell, bool is_bad);

/* bins.c: items of several sizes into bins, exactly */
struct bins_fit {
    const uint32_t *free; /* of each bin */
    uint32_t bin_count;
    const uint32_t *sizes; /* descending */
    uint32_t size_count;
    uint32_t *chosen; /* result: bin of each size */
    bool is_cut;      /* result: the search gave up at its limit */
};
bool bins_fill(struct bins_fit *fit, struct arena *arena);

/* map.c */
struct mapping {
    struct hived *h;
    uint32_t chain;
    const uint32_t *virtual; /* leaves */
    uint32_t leaf_count;
    uint32_t *physical; /* result */
    const bool *is_excluded;
    struct arena *arena;
    struct mapping_course *course; /* in pieces: how far it has come; NULL: it has not begun */
};
bool mapping_run(struct mapping *mapping);
/* The same for about so many more leaves, of which *leaves are left then. Between two pieces the
 * free lists may be those of a trial: only hived_trial_end, copies and questions may follow. */
enum mapping_outcome { MAPPING_DONE, MAPPING_FAILS, MAPPING_CUT };
enum mapping_outcome mapping_some(struct mapping *mapping, uint32_t *leaves);

/* result.c: each of these functions does about so much more, as long as to look at so many leaves
 * takes, and returns how much it was. All zero before the first piece. */
struct conflict { /* what stands in the way of a placement: groups, each once */
    uint32_t *victims, *preemptors;
    uint32_t victim_count, preemptor_count;
    uint32_t pods; /* of the victims */
    uint32_t at;   /* leaves that have been looked at */
    uint32_t listing;
};
struct conflict_of {
    const uint32_t *physical; /* leaves */
    uint32_t count;
    uint32_t own; /* a group that preempts already: not in its own way; or NONE */
    struct arena *arena;
};
uint32_t conflict_some(struct hived *h, struct conflict *conflict, const struct conflict_of *of,
                       uint32_t leaves);

enum { LEAVES_OF_VICTIM = 8 }; /* to look at a group takes as long as at so many leaves */
struct victims {
    struct hived_victim *items;
    uint32_t count;
    uint32_t group, slot; /* of the conflict: whose turn it is */
};
uint32_t victims_some(const struct hived *h, struct victims *victims,
                      const struct conflict *conflict, struct arena *arena, uint32_t leaves);
bool victims_are_whole(const struct victims *victims, const struct conflict *conflict);

struct writing { /* of a placement */
    struct hived_slot *items;
    uint16_t *indices;
    const char **types;
    uint32_t slots; /* that are written */
};
struct writing_of {
    const uint32_t *starts; /* [slots + 1]: first leaf of each */
    uint32_t slots;
    const uint32_t *physical, *virtual; /* virtual: or NULL */
    bool has_hints;                     /* `physical` lives as long as the result */
    struct arena *arena;
};
uint32_t writing_some(const struct hived *h, struct writing *writing, const struct writing_of *of,
                      uint32_t leaves);

/* commit.c: its device, which nobody uses any more, to whom it was lost at a recovery */
void leaf_pass_on(struct hived *h, uint32_t physical);

/* demote.c: the virtual leaf's root is bound elsewhere, and its users lose it: about so much of it.
 * True: all have. */
void clearing_begin(struct hived *h, uint32_t virtual, struct clearing *clearing);
bool clearing_some(struct hived *h, struct clearing *clearing, const char *preemptor,
                   uint32_t *leaves);
/* It has ended, or has lost its virtual cells. */
void demotion_drop(struct hived *h, uint32_t index);

/* group.c */
struct group *gang_find(struct hived *h, const char *name, uint32_t *index);
uint32_t gang_add(struct hived *h, const struct group *like, const uint32_t *slot_leaves);
void group_remove(struct hived *h, uint32_t index);
/* So many leaves of the group go back; with the last one the group goes, and the answer is true. */
bool group_release(struct hived *h, uint32_t index, uint32_t leaves);
void groups_free(struct hived *h);
uint32_t groups_free_some(struct hived *h, uint32_t count); /* so many were there */
void group_free(struct hived *h, struct group *group);
void pod_name_set(struct pod *pod, const char *name);
void pod_name_free(struct pod *pod);
/* A copy in pieces: without numbers and pods at first, then so many more of them (each of `from`,
 * which must not have changed). True: it is whole, and the caller's. Drop: it was not to be. */
void group_copy_begin(struct hived *h, const struct group *from);
bool group_copy_some(struct hived *h, const struct group *from, uint32_t numbers);
void group_copy_drop(struct hived *h);
void group_downgrade(struct hived *h, uint32_t index, const char *preemptor);
/* The same for some of its leaves, and what is left to be done after all of them. */
void group_leaves_downgrade(struct hived *h, struct group *group, uint32_t first, uint32_t end);
void group_downgrade_end(struct hived *h, uint32_t index, const char *preemptor);
/* So many of its leaves at most. True: all of them. */
bool group_pending_downgrade(struct hived *h, uint32_t index, const char *preemptor,
                             uint32_t *leaves);
/* They get back what they lost, so many leaves of it, the last ones first. True: all is back, and
 * it is as if it had been settled. */
bool group_pending_return(struct hived *h, uint32_t *leaves);
void group_pending_settle(struct hived *h, bool is_kept);
/* Up to so many more leaves. */
void preemption_go_on(struct hived *h, uint32_t index, uint32_t leaves);
/* So much of it: true when nobody else preempts for its leaves; and of one of them. */
bool preemption_overtake_some(struct hived *h, uint32_t index, uint32_t leaves);
void preemption_overtake(struct hived *h, uint32_t *weaker, uint32_t *leaves);
uint32_t preemption_work(const struct group *group); /* of all of it, in leaves */
void preemption_undo(struct hived *h, uint32_t index);
void preempting_add(struct group *group, const char *pod); /* it waits for the victims; or NULL */
bool preemption_undo_some(struct hived *h, uint32_t index, uint32_t leaves);
struct pack_item *request_items(const struct hived_request *request, struct arena *arena,
                                uint32_t *item_count, uint32_t *leaf_count);

/* request.c */
int request_check(const struct hived_request *request, struct err *err);
/* Of the configuration; ERR_INVALID: the cluster has none. The index of a pin, or NONE. */
int request_type(const struct hived *h, struct text name, uint32_t *type, struct err *err);
int request_within(const struct hived *h, const char *type, struct err *err);
uint32_t request_pin(const struct hived *h, const char *id);

/* reason.c */
struct wait { /* who asked for what, and what the last failure was */
    const struct hived_request *request;
    const struct pack_item *items;
    uint32_t item_count, leaf_count;
    uint32_t chain, vc, pin;
    bool is_mapping; /* the virtual placement was found, but needs bad nodes */
    bool is_search_cut, is_bad_excluded;
    uint32_t bad_node;
};
/* Into the result: the reason, its topic, and whether there is any hope. */
void reason_write(struct hived *h, const struct wait *wait, struct arena *arena,
                  struct hived_result *result);

#endif
