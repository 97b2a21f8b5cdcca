/* placement.h — the seam between the core and what chooses places: HiveD, best fit, spread, first
 * fit.
 *
 * Pure. The core owns the queue, the jobs and the ports; a placer keeps its own record of nodes,
 * free resources and virtual clusters. The core asks for a whole gang at once and gets bind, wait
 * or preempt; it then commits or forgets. All-or-nothing: a placer never hands out part of a gang.
 *
 * A call with the same history gives the same answer: no clock, no chance.
 */
#ifndef PLACEMENT_PLACEMENT_H
#define PLACEMENT_PLACEMENT_H
#include "base/text.h"
#include "model/ids.h"
#include "model/node.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct arena;

enum {
    PLACEMENT_GPUS_MAX = 64,
    PLACEMENT_PRIORITY_OPPO = -1,
    PLACEMENT_PRIORITY_MAX = 1000,
};

/* Members of equal demand. */
struct placement_member {
    uint32_t count;
    uint32_t cpu;
    uint64_t memory_mib;
    uint32_t gpu;
    const char *sku_type; /* "" any; comma list: any of */
    const char *within_one_cell;
};

struct placement_request {
    const char *group; /* unique name of the gang: "user~job/0" */
    const char *virtual_cluster;
    int32_t priority;           /* -1 opportunistic, 0…1000 guaranteed */
    const char *pinned_cell_id; /* "" none */
    bool is_lazy_preemptible;
    /* cell type that must hold the whole gang, as far as its devices lie in such cells; NULL or ""
     */
    const char *within_one_cell;
    const struct placement_member *members;
    size_t member_count;
    /* only nodes of this engine (node_facts); NULL: of any. Not read by checks and commits */
    const char *engine;
    /* nodes to avoid while others fit (blamed for platform failures); may be NULL */
    const struct node_id *avoid;
    size_t avoid_count;
    bool may_preempt; /* false: nothing is kept of the answer (Filtering); true: a PREEMPT is
                         remembered */
    bool is_check;    /* only say whether it can ever be served: BIND without slots, or an error.
                         Nothing is searched for, and a group of this name does not matter */
    /* 0: the answer comes at once. Else the search for more tasks may be cut, into pieces of about
     * so many, and one for fewer when others have to give back more than that, who preempt for its
     * places; the same request again goes on with the next piece. It finds what it would have
     * found at once when it began: what ends meanwhile (release_*, cancel) counts after its answer,
     * or after the commit of what is bound; another node, or forget, ends it. Others may only be
     * checked meanwhile (is_check). What is bound may have been taken before the answer: it is the
     * group's with its commit, and is given back when the search ends without one. */
    uint32_t slice;
    /* what is bound may be given back, as it is to be seen whether others have room beside it: what
     * they would not get back then (lazy groups their guarantee) is taken with the commit alone */
    bool may_be_refused;
    int64_t now_ms; /* wall clock: only shown, as the time of a lazy preemption */
};

enum { PLACEMENT_CUT = 1 }; /* of a commit: not an error, there is more of it */

enum placement_kind { PLACEMENT_BIND, PLACEMENT_WAIT, PLACEMENT_PREEMPT };

struct placement_slot { /* one task's place */
    struct node_id node;
    uint16_t gpu_count;
    /* HiveD: level of the cell of the virtual cluster that the task is counted in, so that a
     * recovery finds it again; 0: none, or not known */
    uint8_t cell_level;
    const uint16_t *gpus; /* device indices, in placement order; they live as long as the slots */
};

/* With their devices, in one block: the caller's, for mem_free. */
struct placement_slot *placement_slots_copy(const struct placement_slot *slots, size_t count);

struct placement_result {
    enum placement_kind kind;
    /* BIND: one slot per task, members in order, instances in order; owned by the arena given */
    struct placement_slot *slots;
    size_t slot_count;
    /* PREEMPT: groups that must go first, whole gangs; strings in the arena */
    const char **victims;
    size_t victim_count;
    /* of a search in pieces: those before this one were named by earlier pieces already, in results
     * that say is_cut; with victim_first 0 the naming begins (again). The strings of such a search
     * live until the next search or commit, or the cancel of its group */
    size_t victim_first;
    /* WAIT: why, naming cells, quotas and holders; one line without newline */
    const char *reason;
    uint64_t topic; /* of the reason: a hash of it without its numbers and holders, which come and
                       go with every task that ends */
    bool is_never; /* WAIT that no end of jobs can cure: larger than the virtual cluster or nodes */
    uint32_t work; /* of a search in pieces: how many tasks of its slice this call took; 0: that is
                      not counted */
    bool is_cut;   /* WAIT without a reason: the search goes on when the same is asked again. It may
                      have victims, of a PREEMPT that is to come */
};

/* What a placer holds, told to a check. */
struct placement_visit {
    /* `slot` PLACEMENT_WAITING: the group waits for the places of what it preempts. `node`:
     * NODE_NONE when the placer has lost sight of the place. */
    void (*see)(void *context, const char *group, size_t slot, struct node_id node);
    void *context;
};

#define PLACEMENT_WAITING SIZE_MAX

struct placer_ops;

struct placer { /* first member of every implementation */
    const struct placer_ops *ops;
};

struct placer_ops {
    const char *name; /* "hived", "best-fit", "spread", "first-fit" */
    /* Nodes that a search without result passes in about a quarter of a microsecond: whoever asks
     * bounds his searches by their cost, and counts instead of measuring. */
    uint32_t nodes_per_work;
    /* A search for few tasks may be cut as well when it is given a slice, as its tasks may need
     * different things. It always ends, however many pieces it takes. */
    bool cuts_small;
    void (*free)(struct placer *placer);

    /* The same in pieces: what about so many nodes and tasks take. True: it is gone; until then
     * nothing but this, or free, may be asked of it. NULL: all is freed at once. */
    bool (*free_some)(struct placer *placer, uint32_t tasks);

    /* A node appeared or changed. One that is lost is not healthy; it may come back. */
    int (*node_set)(struct placer *placer, struct node_id id, const struct node_facts *node,
                    struct err *err);

    /* It was told the nodes and what runs, and is asked from now on: changes that it has been told
     * since it made its cells count after the next question. NULL: it has nothing to put off. */
    void (*take_over)(struct placer *placer);

    /* After node_set: cells are to be made anew (the automatic ones), and something is held. A new
     * placer should be told the nodes and what runs; without that, all is told anew here, in one
     * piece, and tasks may lose what they hold when units mean something else than they did. NULL:
     * never. */
    bool (*is_outdated)(const struct placer *placer);

    /* Find a place. ERR_INVALID, ERR_NOT_FOUND: the request can never be served (unknown virtual
     * cluster or SKU); such a job fails at submission. */
    int (*place)(struct placer *placer, const struct placement_request *request,
                 struct arena *arena, struct placement_result *result, struct err *err);

    /* Take exactly these slots for the group: after BIND (none can have come between), and at
     * restart for what runs already. `is_recovery`: do the best with what no longer fits (the job
     * runs; HiveD downgrades it) instead of failing; a slot whose node is NODE_NONE has ended
     * already and takes nothing.
     *
     * With a slice, slots that were not found just now may be taken in pieces of about so many
     * tasks: PLACEMENT_CUT until the same has been asked often enough. What ends meanwhile counts
     * after that. So may what runs already: told as no recovery it may be refused, and slots that
     * have ended take nothing. Another node, or forget, ends it: what was taken is given back, and
     * the same begins anew. */
    int (*commit)(struct placer *placer, const struct placement_request *request,
                  const struct placement_slot *slots, size_t slot_count, bool is_recovery,
                  struct err *err);

    /* Before what runs already is told: devices that a group has whose commit is still to come. A
     * task without devices is not recovered on top of them. The next place forgets it. NULL: only
     * devices that are named are taken. */
    void (*expect)(struct placer *placer, struct node_id node, const uint16_t *gpus, size_t count);

    /* One task of a group has ended, or the whole group has; idempotent. */
    void (*release_slot)(struct placer *placer, const char *group, size_t slot);
    void (*release_group)(struct placer *placer, const char *group);

    /* A waiting group that preempts gives up (its job was stopped). */
    void (*cancel)(struct placer *placer, const char *group);

    /* What a large group that has ended or was cancelled held is given back in pieces: here that of
     * so many tasks, from now on that of as many when such a group ends. Likewise what ended during
     * a search in pieces counts in pieces after it. False: there is more.
     * Whatever depends on it (place, commit) gives back all of it first: in pieces, when it is
     * asked with a slice. NULL: nothing is ever left, and no commit is cut. */
    bool (*tidy)(struct placer *placer, uint32_t tasks);

    /* The cells of new or changed nodes are being made, in pieces by tidy: until then those nodes
     * are not used, and nobody need ask. NULL: never. */
    bool (*is_making)(const struct placer *placer);

    /* A search that was cut is given up, if there is one. */
    void (*forget)(struct placer *placer);

    /* An independent deep copy, for look-ahead: reservations of starving gangs and forecasts run
     * copies forward. Cost: memory in use, no search. */
    struct placer *(*copy)(const struct placer *placer);

    /* The same in pieces, each of what so many tasks take. *copy is NULL before the first one.
     * False: there is more of it. Until then `placer` may be asked for checks (is_check) and be
     * copied, and nothing else, and the copy for nothing at all. */
    bool (*copy_some)(const struct placer *placer, struct placer **copy, uint32_t tasks);

    /* For core_check: visits every task that holds a place and every group that waits for some.
     * ERR_INTERNAL: the placer's tables contradict each other. Costs the whole state. */
    int (*check)(struct placer *placer, const struct placement_visit *visit, struct err *err);
};

/* True: it is gone. See free_some. */
bool placer_free_some(struct placer *placer, uint32_t tasks);

/* A placer of the policy that knows no node yet. `document`: the policy's own section of the
 * configuration (HiveD's is YAML), which nobody else needs to understand; empty: none. The plain
 * policies have none and pass over it. NULL, with the place in the document: ERR_INVALID. */
struct placer *placer_new(const char *policy, struct text document, struct err *err);

#endif
