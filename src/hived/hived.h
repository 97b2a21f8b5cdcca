/* hived.h — virtual clusters with topology guarantees: where a gang goes, whom it displaces.
 *
 * Pure and deterministic; one thread at a time. A rebuild of HiveD (OSDI'20): each virtual cluster
 * owns virtual cells; a guaranteed gang is packed on these, then they are mapped onto physical
 * cells by buddy allocation; an opportunistic gang is packed straight on the physical cluster.
 * The module has no queue: the caller asks, and commits what was decided.
 *
 * A decision changes nothing by itself (but a Preempt in HIVED_PREEMPTING reserves cells, as in the
 * original): commit it before anything else is asked, or it is forgotten.
 *
 * Source of the rules: HiveD (OSDI'20) and hivedscheduler 0.3.4; our additions and differences
 * stand in docs/rfc/0003-hived.md.
 */
#ifndef HIVED_HIVED_H
#define HIVED_HIVED_H
#include "base/text.h"
#include "hived/config.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;
struct hived;

enum {
    HIVED_PRIORITY_FREE = -2, /* of a cell that nobody uses */
    HIVED_PRIORITY_OPPO = -1,
    HIVED_PRIORITY_MIN = 0, /* guaranteed */
    HIVED_PRIORITY_MAX = 1000,
    HIVED_GANG_PODS_MAX = 100000,
    HIVED_MEMBERS_MAX = 1000,
};

/* All nodes are bad until hived_node_set. The configuration becomes hived's. */
struct hived *hived_new(struct hived_config *config);
void hived_free(struct hived *hived);
/* The same for so many groups and nodes, of which *count is left. True: it is gone; until then
 * nothing else may be asked of it. */
bool hived_free_some(struct hived *hived, uint32_t *count);

/* The same in pieces of about so many leaves: nothing but hived_build_some, hived_copy and
 * hived_free may be asked until that has answered true. It is what hived_new makes of the
 * configuration. */
struct hived *hived_begin(struct hived_config *config);
bool hived_build_some(struct hived *hived, uint32_t leaves);

/* An independent deep copy; only the immutable configuration is shared, also between threads. */
struct hived *hived_copy(const struct hived *hived);
/* The same in pieces, of about so many cells, of which *cells are left. *copy is NULL before the
 * first one. False: there is more of it, and until then only checks may be asked of the original,
 * and nothing of the copy. */
bool hived_copy_some(const struct hived *hived, struct hived **copy, uint32_t *cells);

/* A mirror is for readers, on any thread: the documents and questions below that change nothing
 * may be asked of it, and it is freed as any other. Once it is there, to bring it up to date costs
 * what has changed. It must not outlive what it is of while it is still brought up to date.
 *
 * Of which cells: false when `mirror` is none, or shows cells of before a reconfiguration. */
struct hived *hived_mirror_new(const struct hived *hived);
bool hived_mirror_is_of(const struct hived *mirror, const struct hived *hived);
/* Some more of what it does not show yet, as much work as to copy so many cells. True: it shows
 * everything as it is now; until then nothing may be asked of it. Nothing of `hived` changes. */
bool hived_mirror_update(struct hived *mirror, const struct hived *hived, uint32_t cells);

/* Work-preserving: builds the cluster anew, keeps the health of nodes known by name, and recovers
 * every live group in the order in which its pods were bound. Nothing is killed: what no longer
 * fits its virtual cluster becomes opportunistic; devices that left the configuration are ignored.
 * Pending preemptions are forgotten. Device indices must mean the same as before. */
void hived_reconfigure(struct hived *hived, struct hived_config *config);

/* The same with a cluster that is built already, and knows which of its nodes are bad: it becomes
 * hived's. */
void hived_adopt(struct hived *hived, struct hived *built);

const struct hived_config *hived_config_of(const struct hived *hived);

/* Healthy: schedulable and ready. Unknown names are ignored (false). */
bool hived_node_set(struct hived *hived, const char *name, bool is_healthy);

/* One more node for a virtual cluster that owns whole nodes: a physical cell of the chain (whose
 * top is a node), with the spec's addresses, and a quota cell for it. Bad until hived_node_set.
 * Costs the size of the node, not of the cluster. False, and nothing changed: there is no such
 * chain, the virtual cluster owns none of it, or the node has one already. */
bool hived_node_add(struct hived *hived, const char *chain, const struct hived_cell_spec *spec,
                    const char *vc);
/* Without enlarging tables, for nodes of so many leaves together. */
bool hived_has_room(const struct hived *hived, uint32_t leaves);

/* Free devices of a leaf type on a node, in order; at most `room`. Returns how many there are. */
uint32_t hived_node_free(const struct hived *hived, const char *name, const char *leaf_type,
                         uint16_t *indices, uint32_t room);

/* The virtual cluster that alone has guarantees on the node: all of its devices are in cells pinned
 * to it, or in chains of which no other owns cells. NULL: several have, or none; or there is no
 * such node. */
const char *hived_node_owner(const struct hived *hived, const char *name);

/* The chain of such a device, NULL: the node has none. *is_free: nobody uses it. */
const char *hived_node_chain(const struct hived *hived, const char *name, const char *leaf_type,
                             uint32_t device, bool *is_free);

/* Highest device index of a leaf type on a node; HIVED_NONE: it has none. */
uint32_t hived_node_highest(const struct hived *hived, const char *name, const char *leaf_type);

/* Leaf types that physical cells have, in configuration order. */
uint32_t hived_leaf_type_count(const struct hived *hived);
const char *hived_leaf_type_name(const struct hived *hived, uint32_t index);

struct hived_member {
    uint32_t pods, leaves;       /* so many pods of so many leaves each */
    const char *within_one_cell; /* cell type that must hold all of them in one cell; NULL or "" */
};

struct hived_request {
    const char *group; /* unique name of the gang */
    const char *virtual_cluster;
    int32_t priority;
    const char *pinned_cell; /* NULL or "": none */
    const char *leaf_type;   /* NULL or "": any; a comma list: the first that has room */
    bool is_lazy;            /* may be downgraded to opportunistic instead of being killed */
    bool uses_suggested;     /* only nodes that the scope allows */
    const struct hived_member *members;
    uint32_t member_count;
    uint32_t leaves;             /* of the pod that asks; 0: the whole gang asks */
    const char *within_one_cell; /* cell type that must hold the whole gang; NULL or "" */
};

enum hived_phase {
    HIVED_FILTERING,
    HIVED_PREEMPTING,
    HIVED_CHECKING, /* only whether the request can ever be served: BIND without a placement, or an
                       error. Nothing is searched for, and a gang of this name does not matter */
};

/* Which nodes may be used; read only when the request says so. */
struct hived_scope {
    const char *const *nodes;
    size_t count;
    bool is_avoid; /* all but these */
};

struct hived_slot { /* a pod's place */
    const char *node;
    uint32_t leaf_count;
    const uint32_t *hints;          /* where hived finds the devices quickly; NULL does as well */
    const uint16_t *indices;        /* device indices in placement order */
    const char *const *preassigned; /* type of each leaf's preassigned cell; "": opportunistic;
                                       NULL: not recorded */
};

struct hived_placement { /* of a whole gang, ascending by leaf number */
    const char *chain;   /* "" when not known */
    struct hived_slot *slots;
    uint32_t slot_count;
};

struct hived_victim {
    const char *group, *pod, *node;
};

enum hived_kind { HIVED_BIND, HIVED_PREEMPT, HIVED_WAIT };

struct hived_result {
    enum hived_kind kind;
    struct hived_placement placement; /* BIND; also what a PREEMPT is for */
    uint32_t slot;                    /* BIND: of the pod that asked */
    uint32_t overtaken; /* BIND: work of its commit beside its own leaves, in leaves: what others
                           had reserved, who preempt no more then, goes back. PREEMPT of FILTERING:
                           the same of PREEMPTING */
    bool is_urgent; /* BIND: it displaces lazy groups, or others preempt no more for it. It is to be
                       committed before anything else is asked: else they get back what they lost */
    struct hived_victim *victims; /* PREEMPT: pods of whole gangs, by node */
    uint32_t victim_count;
    const char *reason; /* WAIT: one line that names cells, quotas and holders */
    uint64_t topic;     /* of the reason: a hash of it without its numbers and holders */
    bool is_never;      /* WAIT that no end of jobs can cure */
    bool is_too_much;   /* nothing else is in the result, and nobody has lost anything */
};

struct hived_found;

/* A search in pieces. It is cut, with nothing in the result, where it has come to the end of as
 * many pieces as it may; the same ask again, with more of them, goes on from there. Nothing else
 * may be asked of or told to hived meanwhile, but checks, questions and copies. With a PREEMPT it
 * only says for how many places (slot_count), not for which. */
struct hived_course {
    uint32_t pieces, passed; /* that it may come to the end of, and has; the caller counts on */
    uint32_t leaves;         /* reserved for a preempting gang in one piece: always cut after it */
    struct hived_found *found; /* by the pieces before, in the arena; NULL: nothing is known */
    bool is_cut;
    bool is_ordering; /* nodes have been put in their order: that is no piece, so as many are asked
                         for again */
    bool is_leaving; /* what was reserved for the gang cannot be used: some of it has gone back, and
                        the search begins anew with the next ask, from FILTERING on */
};

struct hived_ask { /* who asks, and how */
    const struct hived_request *request;
    const char *pod; /* name of the pod that asks, or NULL */
    enum hived_phase phase;
    const struct hived_scope *scope; /* NULL: all nodes */
    int64_t now_ms;
    struct hived_course *course; /* NULL: in one piece; then lazy groups lose at most … */
    uint32_t displaced_max;      /* … so many leaves for it, 0: any number; else is_too_much */
};

/* Find a place. ERR_INVALID: the request is wrong (user error). Results live in `arena`; names of
 * nodes, types and groups only until the next call. */
int hived_schedule(struct hived *hived, const struct hived_ask *ask, struct arena *arena,
                   struct hived_result *result, struct err *err);

/* The pod that asked has been bound at slot `slot` of this placement: take it, and with the first
 * pod of a gang the whole placement. Also recovers what runs already; then what does not fit its
 * virtual cluster becomes opportunistic. Phase and scope are not read. ERR_INVALID: a placement
 * without that slot, a wrong request; ERR_CONFLICT: a preempting gang's victims are still there;
 * nothing has changed. */
int hived_commit(struct hived *hived, const struct hived_ask *ask,
                 const struct hived_placement *placement, uint32_t slot, struct err *err);

/* The same for all pods of the gang at once. */
int hived_commit_gang(struct hived *hived, const struct hived_request *request,
                      const struct hived_placement *placement, int64_t now_ms, struct err *err);

/* The same in pieces of about so many leaves, for a gang that is new (what it displaces is so for
 * good from the first one on; what runs already may be downgraded in pieces as well), or has
 * preempted; any other is committed at once. Until *is_whole the group has a part of its cells and
 * no pods: nothing else may be asked of or told to hived but this again with the same, checks,
 * questions, copies, mirrors, and that the group ends. A copy may go on with the same placement. */
int hived_commit_some(struct hived *hived, const struct hived_request *request,
                      const struct hived_placement *placement, int64_t now_ms, uint32_t leaves,
                      bool *is_whole, struct err *err);

/* What commits have done so far beside taking leaves and binding pods, in leaves: others, or the
 * group itself, have lost virtual cells. */
uint64_t hived_work_beside(const struct hived *hived);

/* Of a commit in pieces that was given up a group may be left that has lost some of its virtual
 * cells: it loses so many more. True: all of them. */
bool hived_is_demoting(const struct hived *hived);
bool hived_demote_some(struct hived *hived, uint32_t leaves);

/* What hived_commit_some has done so far, or has just ended, for a gang that had preempted is taken
 * back: its cells are reserved for it as before, so many leaves of them, and `pod` (or NULL) waits
 * for it. False: there are more, for the next call. Until then nobody may ask for places, and
 * nothing may be said of the group but this, that it ends, or that it does not wait any more. */
bool hived_commit_undo(struct hived *hived, const char *group, const char *pod, uint32_t leaves);

/* A bound pod has ended; false: no such pod. With the last one the group ends and its cells are
 * free. */
bool hived_pod_end(struct hived *hived, const char *group, uint32_t slot);
void hived_group_end(struct hived *hived, const char *group);

/* The same for so many leaves: false when it has more. Nothing but this may be asked of or told
 * about the group then, until it is gone. */
bool hived_group_end_some(struct hived *hived, const char *group, uint32_t leaves);

/* A pod that was never bound is gone; the last one of a preempting group cancels the
 * preemption: so many leaves of it. False: what is left of it ends by hived_group_end_some. */
bool hived_pod_cancel(struct hived *hived, const char *group, const char *pod, uint32_t leaves);

/* The web API's documents. False: no such group or virtual cluster. */
void hived_inspect_groups(struct hived *hived, struct buf *out);
bool hived_inspect_group(struct hived *hived, const char *name, struct buf *out);
void hived_inspect_cluster(struct hived *hived, struct buf *out);
void hived_inspect_physical(struct hived *hived, struct buf *out);
void hived_inspect_vcs(struct hived *hived, struct buf *out);
bool hived_inspect_vc(struct hived *hived, const char *name, struct buf *out);

/* Numbers of a virtual cluster by leaf type, for quotas. */
struct hived_quota {
    const char *leaf_type;
    uint32_t total; /* leaves that it owns, pinned cells included */
    uint32_t used;  /* by its guaranteed gangs */
    uint32_t bad;   /* of its bound leaves, on bad nodes */
    uint32_t oppo;  /* leaves that its opportunistic gangs use, wherever */
};
uint32_t hived_vc_count(const struct hived *hived);
const char *hived_vc_name(const struct hived *hived, uint32_t vc);
/* Array in the arena, one a leaf type of the cluster, in configuration order. */
struct hived_quota *hived_vc_quota(const struct hived *hived, uint32_t vc, struct arena *arena,
                                   uint32_t *count);

/* As the web API's documents show them. */
enum hived_cell_state {
    HIVED_CELL_FREE,
    HIVED_CELL_USED,
    HIVED_CELL_RESERVING,
    HIVED_CELL_RESERVED
};
enum hived_group_state {
    HIVED_GROUP_ALLOCATED,
    HIVED_GROUP_PREEMPTING,
    HIVED_GROUP_BEING_PREEMPTED
};

struct hived_group_view {
    enum hived_group_state state;
    const char *vc, *leaf_type; /* leaf_type "": its chain left the configuration */
    int32_t priority;
    bool is_lazy_preempted, has_virtual;
    const char *preemptor; /* of a lazy preemption, or NULL */
    uint32_t slot_count;
};
bool hived_group_find(struct hived *hived, const char *name, struct hived_group_view *view);

/* A decision to bind that only its commit, and that at once, makes true: lazy groups are displaced
 * for it. It must not be left for later. */
bool hived_is_pending(const struct hived *hived);
/* A search in pieces has displaced lazy groups, and goes on, or has found a place; or it was given
 * up, and they have not got back all of what they lost. */
bool hived_is_displacing(const struct hived *hived);
/* That search, or any other one in pieces, is given up: they get back what they lost, by … */
void hived_search_forget(struct hived *hived);
/* … some leaves of it. True: they have all. What changes HiveD, and what it is asked but for
 * HIVED_CHECKING, gives the rest back at once. */
bool hived_return_some(struct hived *hived, uint32_t leaves);

/* Devices that slot `slot` of a group holds; those that left the configuration are left out.
 * Returns their number; node is NULL when none is left. */
uint32_t hived_group_slot(struct hived *hived, const char *name, uint32_t slot, const char **node,
                          uint16_t *indices, uint32_t room);

/* The names of all groups, those that preempt among them; *at begins with 0. NULL: no more. */
const char *hived_group_next(const struct hived *hived, uint32_t *at);

/* ERR_INTERNAL, with a text, when an invariant does not hold. For tests: O(cells). */
int hived_check(struct hived *hived, struct err *err);

#endif
