/* simple_parts.h — what the files of the plain placers share. Inside src/placement only. */
#ifndef PLACEMENT_SIMPLE_PARTS_H
#define PLACEMENT_SIMPLE_PARTS_H
#include "base/map.h"
#include "placement/placement.h"
#include <assert.h>

enum { PRIORITIES = PLACEMENT_PRIORITY_MAX + 2 /* from -1 */ };

struct demand {
    uint32_t cpu, gpu;
    uint64_t memory_mib;
};

struct simple_node {
    bool is_known;
    struct node_facts facts; /* owned; at most PLACEMENT_GPUS_MAX GPUs */
    uint32_t cpu_used;
    uint64_t memory_used;
    uint64_t gpus_taken; /* a bit for each device */
    uint64_t gpus_lost;
};

/* All nodes of one type of GPU and one engine. */
struct simple_kind {
    char *type, *engine;
    size_t suitable, healthy; /* nodes; of these: */
    uint64_t all_cpu, all_mib, all_gpu;
};

struct simple_slot {
    uint32_t node; /* UINT32_MAX: released */
    uint32_t cpu;
    uint64_t memory_mib, gpus;
};

struct simple_group {
    char *name;       /* NULL: free entry */
    uint32_t cluster; /* number of its virtual cluster */
    int32_t priority;
    bool is_waiting; /* preempting: the slots are kept for it, not yet its own */
    struct simple_slot *slots;
    size_t slot_count, live;
    char **victims; /* of a waiting group: the names of those that must go first; NULL: has ended */
    size_t victim_count;
};

/* Of a group, what says whether it may be ended: close together for the search. */
struct simple_rank {
    uint32_t cluster;
    int16_t priority;
    bool runs;     /* it holds something: */
    uint32_t node; /* the place of its only task, or UINT32_MAX: it has several */
};

/* What is free of a node for one search: the truth changed by what is tried. */
struct simple_view {
    uint32_t cpu, gpu_count; /* of `gpus` */
    uint64_t memory_mib, gpus;
};

/* Resources of a node. */
struct simple_share {
    uint64_t cpu, memory_mib, gpus;
};

/* Which node is to be tried first: negative when `a`. */
typedef int view_compare_fn(const struct simple_view *a, const struct simple_view *b);

enum { GANG_MEMBERS_MAX = 256 };

/* How far the placing of a gang has come, on the views. */
struct simple_gang {
    uint16_t order[GANG_MEMBERS_MAX];       /* of the members: large tasks first, … */
    uint32_t first[GANG_MEMBERS_MAX];       /* … and the first slot of each */
    size_t member;                          /* place in the order */
    uint32_t task;                          /* of this member: the next one */
    bool is_listed;                         /* nodes that may have room are in simple->roomy, … */
    uint32_t roomy[PLACEMENT_GPUS_MAX + 1]; /* … the first ones for tasks of so many GPUs: of the
                                               others none gets any */
    size_t choice_count; /* nodes that have room for its tasks, in simple->choice */
    bool is_chosen;      /* these have been found */
    size_t node;         /* on which all of it must lie, or SIZE_MAX */
};

/* The work of a search is counted in nodes that it passes over. */
enum {
    WORK_OF_SLICE = 48,   /* a piece may do, for each task of its slice */
    WORK_OF_TASK = 48,    /* it takes its place */
    WORK_OF_NAME = 64,    /* a victim is named */
    WORK_OF_GIVING = 8,   /* a task of a victim is found, wherever it is */
    WORK_OF_COUNTING = 6, /* the room of a node is counted, for one kind of tasks */
    NEEDS_PER_WORK = 8,   /* of which it is asked whether there is room */
};

enum simple_outcome { SIMPLE_PLACED, SIMPLE_FAILS, SIMPLE_CUT };

/* A search over several calls, mostly for many tasks. The views and the choice are as it left them:
 * in what they say nothing changes before its answer. */
struct simple_choice;
struct simple_course {
    char *group; /* whom it is for; NULL: there is none */
    enum {
        COURSE_FREE_AVOIDING, /* places that are free, without the nodes to avoid */
        COURSE_FREE,
        COURSE_VICTIMS, /* who must go */
        COURSE_PLACE,   /* places for when they have gone */
        COURSE_NAME,    /* the victims are named */
        COURSE_AGAIN,   /* of a group that waits: those of its victims that are left are named */
        COURSE_NEVER,   /* nobody's end would do: would it fit if nothing was in use? */
        COURSE_BIND,    /* the answer is known: bind, … */
        COURSE_PREEMPT, /* … or preempt */
        COURSE_WAIT,
    } stage;
    bool is_begun; /* the gang of this stage */
    bool is_never; /* WAIT: it would not fit either if nothing was in use */
    struct node_id *avoid;
    size_t avoid_count;
    struct simple_gang *gang;
    struct simple_slot *slots;
    struct simple_choice *choice; /* VICTIMS: how far it has come; owns simple->extra */
    bool *is_victim;              /* by group */
    size_t slot_count, group_count;
    size_t next; /* NAME: the group whose turn it is; AGAIN: the victim */
    struct {
        uint32_t *items; /* AGAIN: those that are left, by their places among its victims */
        size_t count, room;
    } left;
    struct {
        char **items; /* names of the victims; those before `named` were told with other pieces */
        size_t count, room;
    } victims;
    size_t named;
};

struct simple {
    struct placer placer;
    view_compare_fn *compare; /* NULL: lowest id */
    struct {
        struct simple_node *items;
        size_t count, room;
    } nodes;
    struct {
        struct simple_group *items;
        size_t count, room;
    } groups;
    struct {
        struct simple_rank *items; /* by group */
        size_t count, room;
    } ranks;
    struct {
        uint32_t *items;
        size_t count, room;
    } free_groups;
    size_t live_groups, waiting_groups;
    uint32_t by_priority[PRIORITIES]; /* groups that hold something, from -1 */
    struct text_map names;
    struct {
        char **items; /* names of virtual clusters, by their numbers */
        size_t count, room;
    } clusters;
    struct text_map cluster_index;
    struct simple_view *whole;   /* by node: what it has, close together for the search … */
    struct simple_view *free;    /* … what is free of that, … */
    struct simple_view *offered; /* … and what of this no group waits for */
    struct simple_share *kept;   /* by node: what waiting groups wait for, no two for one device */
    struct simple_view *most;    /* by node: what it would offer if all that runs there had ended */
    uint8_t *traits;             /* by node: enum node_trait, … */
    uint32_t *kind_of;           /* … and of which of the kinds it is, when it is known */
    struct {
        struct simple_kind *items;
        size_t count, room;
    } kinds;
    struct simple_view *views;  /* scratch, one a node */
    uint32_t *roomy;            /* likewise */
    uint32_t *choice;           /* likewise, … */
    struct simple_share *extra; /* … this one all zero without a choice of victims: what is free
                                   beside that if the groups that are tried have ended */
    size_t view_room;
    struct simple_course course;
};

enum node_trait { NODE_KNOWN = 1, NODE_HEALTHY = 2 };

struct simple_search {
    struct simple *simple;
    const struct placement_request *request;
    bool avoids, ignores_health;
    struct simple_slot *slots; /* the result */
};

/* Is the type one of a comma list? "" wants any. */
bool simple_type_fits(const char *wanted, const char *type);

/* In pairs, fours and bytes, whose sum is in the highest one; the builtin is a call where the
 * compiler may not use the processor's instruction. */
static inline uint32_t bit_count(uint64_t bits)
{
    bits -= bits >> 1 & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (uint32_t)(bits * 0x0101010101010101u >> 56);
}

static inline uint64_t gpu_mask(uint32_t count)
{
    return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static inline uint64_t gpus_free(const struct simple_node *node)
{
    return gpu_mask(node->facts.gpu_count) & ~node->gpus_lost & ~node->gpus_taken;
}

static inline uint64_t saturated(uint64_t total, uint64_t used)
{
    return total > used ? total - used : 0;
}

static inline bool simple_share_is_none(const struct simple_share *share)
{
    return !(share->cpu | share->memory_mib | share->gpus);
}

static inline uint32_t priority_index(int32_t priority)
{
    assert(priority >= PLACEMENT_PRIORITY_OPPO && priority <= PLACEMENT_PRIORITY_MAX);
    return (uint32_t)(priority + 1);
}

/* simple.c */
struct simple_group *simple_group_find(struct simple *simple, const char *name);
/* The number of a virtual cluster; a new one if it is not known. */
uint32_t simple_cluster(struct simple *simple, const char *name);

/* simple_copy.c */
bool simple_copy_some(const struct placer *placer, struct placer **copy, uint32_t tasks);
struct placer *simple_copy(const struct placer *placer);

/* simple_check.c */
int simple_check(struct placer *placer, const struct placement_visit *visit, struct err *err);

/* simple_search.c */
void simple_views_reserve(struct simple *simple); /* for all nodes */
struct simple_view simple_node_free(const struct simple_node *node);
/* Without what is kept. */
struct simple_view simple_view_less(struct simple_view view, const struct simple_share *kept);
view_compare_fn simple_compare_least, simple_compare_most;
/* From `whole`, `free` or `offered`. */
void simple_views_fill(struct simple *simple, const struct simple_view *from);
bool simple_view_take(const struct simple *simple, const struct simple_slot *slot);
/* Would the gang fit if nothing was in use, even on nodes that are not healthy? */
bool simple_gang_is_possible(const struct simple_search *search);
/* Has it several kinds of tasks, or must it lie on one node? Then counting does not tell whether it
 * fits. */
bool simple_gang_is_unequal(const struct placement_request *request);
/* The search for which nothing is to be avoided and every node counts as healthy: with the views of
 * whole nodes it answers whether the gang would ever fit. */
struct simple_search simple_search_empty(const struct simple_search *search);
/* Do the tasks of a gang of one kind fit into these views? A few nodes tell, mostly. */
bool simple_equal_fits(const struct simple_search *search, const struct simple_view *views);
/* A gang whole, on the views, into search->slots; false: it does not fit. */
bool simple_gang_place(const struct simple_search *search);
/* The same, so much work in one call: of *left is taken what was done. First the order, once. */
void simple_gang_order(const struct placement_request *request, struct simple_gang *gang);
/* False: it does not fit in any one node, as it must. */
bool simple_gang_begin(const struct simple_search *search, struct simple_gang *gang,
                       uint64_t *left);
enum simple_outcome simple_gang_go_on(const struct simple_search *search, struct simple_gang *gang,
                                      uint64_t *left);
void simple_work_take(uint64_t *left, uint64_t work);
/* May some task of the gang be on nodes of the kind? */
bool simple_kind_suits(const struct simple_kind *kind, const struct placement_request *request);
/* Is it of the type that the member wants and of the engine, and none to avoid? */
bool simple_node_suits(const struct simple_search *search, size_t at,
                       const struct placement_member *member);
/* May a task of the member be on the node, if there is room? */
static inline bool simple_node_may(const struct simple_search *search, size_t at,
                                   const struct placement_member *member)
{
    const uint8_t want = search->ignores_health ? NODE_KNOWN : NODE_KNOWN | NODE_HEALTHY;
    assert(at < search->simple->nodes.count);
    return (search->simple->traits[at] & want) == want &&
           ((!*member->sku_type && !search->avoids && !search->request->engine) ||
            simple_node_suits(search, at, member));
}
/* Is there room for one task? */
static inline bool simple_view_has(const struct simple_view *view, const struct demand *demand)
{
    return view->gpu_count >= demand->gpu && view->cpu >= demand->cpu &&
           view->memory_mib >= demand->memory_mib;
}
/* For so many tasks there is room, up to the limit. */
uint32_t simple_view_room(const struct simple_view *view, const struct demand *demand,
                          uint32_t limit);
/* What all tasks of the gang need together; false: more than any node has. */
bool simple_gang_demand(const struct placement_request *request, struct demand *demand);
/* Who is placed first: negative when `a`. */
int simple_member_compare(const struct placement_member *a, const struct placement_member *b);

/* simple_candidates.c */
/* Groups that may be ended for a gang: the lowest priority first, then in the order of the table.
 * One on whose nodes there is no room for any of its tasks, whoever ends, is none: the places may
 * be promised to groups that wait, or the nodes may be of another kind. */
struct simple_candidates {
    uint32_t *items; /* by group */
    size_t count;    /* when all are listed */
    uint32_t *next;  /* while they are listed: by priority, the place of the next one */
    size_t room;     /* the sum of these */
    bool *suits;     /* by kind of nodes: some task of the gang may be there */
};
void simple_candidates_begin(const struct simple_search *search,
                             struct simple_candidates *candidates);
/* The groups from *next on, with so much work. `least`: what each task needs at least. True: all
 * are listed. */
bool simple_candidates_go_on(const struct simple_search *search, const struct demand *least,
                             struct simple_candidates *candidates, size_t *next, uint64_t *left);
void simple_candidates_free(struct simple_candidates *candidates);
void simple_candidates_copy(struct simple_candidates *to, const struct simple_candidates *from,
                            const struct simple *simple);

/* simple_course.c */
/* The next piece of the search for the request, of which some may have been done. *work: how many
 * tasks of its slice that took. */
enum simple_outcome simple_course_go_on(struct simple *simple,
                                        const struct placement_request *request, uint32_t *work);
bool simple_course_is_of(const struct simple *simple, const char *group);
void simple_course_close(struct simple *simple);
/* A group waits, and its victims are counted anew: so many of them in a piece. CUT: there are more.
 * FAILS: none is left. */
enum simple_outcome simple_course_again(struct simple *simple, struct simple_group *waiting,
                                        uint32_t victims);
void simple_course_copy(struct simple *to, const struct simple *from);

#endif
