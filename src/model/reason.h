/* reason.h — the words that say why a job waits, and the same taken apart again.
 *
 * Pure. A reason is one line of text, in records, events and traces: whoever finds it writes it
 * with the formats below, one behind the other, and with nothing else. reason_read finds which
 * these were, so that a client can say them in another language. The order in which they may follow
 * one another stands in the table of reason.c; each of them has its line there.
 */
#ifndef MODEL_REASON_H
#define MODEL_REASON_H
#include "base/text.h"
#include <stdbool.h>

/* Of a virtual cluster or a failed attempt. */
#define REASON_CLOSED     "virtual cluster %s is closed by %s since %s"
#define REASON_CLOSED_WHY "virtual cluster %s is closed by %s since %s: %s"
#define REASON_OPENED     "virtual cluster %s has been opened again; it waits for its turn"
#define REASON_RETRIED    "it is retried at %s: attempt %u ended with %d (%s)"

/* Of what the cluster, as it is configured now, has not. */
#define REASON_NO_CLUSTER      "there is no virtual cluster %.100s"
#define REASON_NO_PIN          "there is no pinned cell %s: policy %s"
#define REASON_NO_PIN_OF       "%s has no pinned cell %s"
#define REASON_PIN_BORROWED    "an opportunistic gang cannot use a pinned cell"
#define REASON_NO_GPU_CELLS    "the cluster has no cells with GPUs"
#define REASON_NO_CELL_TYPE    "the cluster has no cell type %.100s"
#define REASON_NO_LEAF_TYPE    "the cluster has no %.*s"
#define REASON_NO_LEAF_TYPE_OF "the virtual cluster %s has no %s outside its pinned cells"
#define REASON_TOO_MANY_GPUS   "no leaf type can serve the demand; a task has at most %d GPUs"
#define REASON_CELLS_TO_MAKE   "the cells of some nodes are still to be made"

/* Of a job that could have a place, but for … */
#define REASON_NODE_FAILED "a node that was held back for it has failed"
#define REASON_ENDED_OFTEN "others were ended for it several times, but it could not start"
#define REASON_HELD_BACK   "room is held back for %s, which has waited %lld s"
#define REASON_PORT_TAKEN  "the fixed port %u is taken on node %s"
#define REASON_PORTS_FEW   "too few free ports on node %s"
#define REASON_PORT_NODES                                                                          \
    "%u of its tasks need the fixed port %u, each on a node of its own: %u nodes could give it"

/* Of a preemption. */
#define REASON_WOULD_PREEMPT "others of lower priority would have to be preempted"
#define REASON_BUT_HELD_BACK ", but room is held back for %s"
#define REASON_BUT_PAUSED                                                                          \
    ", but others have been ended for it before and it could not start; it tries again in %lld s"
#define REASON_BUT_ANOTHER  ", but another task of the job does so first"
#define REASON_BUT_OWN      ", but they are of the same job"
#define REASON_PREEMPTS     "preempts others of lower priority"
#define REASON_NOT_ENDED    "; not ended yet: "
#define REASON_HELD_BY      "; held by "
#define REASON_HOLDER       "%s"
#define REASON_HOLDER_COUNT "%s (%u)"
#define REASON_NEXT         ", "
#define REASON_MORE         " and %zu more"
#define REASON_OTHERS       " and others"

/* What is asked for; of HiveD, and of the other policies. */
#define REASON_NEEDS         "it needs "
#define REASON_CELLS         "%u x %u"
#define REASON_TASKS         "%u x (%u GPU, %u CPU, %llu MiB)"
#define REASON_PLUS          " + "
#define REASON_CELLS_WITHIN  " (within one %s)"
#define REASON_TYPE          " %s"
#define REASON_TYPE_WITHIN   " %s within one %s"
#define REASON_LEAVES        " leaves" /* of any type */
#define REASON_LEAVES_WITHIN " leaves within one %s"
#define REASON_ALL_WITHIN    ", all within one %s,"
#define REASON_TASKS_OF      " of %s"
#define REASON_TASKS_ON_ONE  " on one node"
#define REASON_TASKS_ALL_ONE ", all on one node"
#define REASON_OWNS_NONE     ", but the virtual cluster %s owns none outside its pinned cells"
#define REASON_FOR           " for %s at priority %d"
#define REASON_FOR_BORROWED  " for opportunistic use by %s at priority %d"
#define REASON_NO_CELLS      "no cells"

/* What there is of it. */
#define REASON_ROOM_CLUSTER " in the cluster's cells of %s: %llu of %llu leaves are free"
#define REASON_ROOM_OWN     " in its cells of %s: %llu of %llu leaves are free"
#define REASON_ROOM_PINNED  " in its pinned cell %s: %llu of %llu leaves are free"
#define REASON_ROOM_LARGEST ", at most %u on one node of %u"
#define REASON_ROOM_BAD     ", %llu more on bad nodes"
#define REASON_ROOM_NODES                                                                          \
    ": free on %zu healthy node%s are %llu of %llu GPU (at most %u on one), %llu of %llu CPU, "    \
    "%llu of %llu MiB"
#define REASON_NO_TYPE ": no node has that type"
#define REASON_MAPPING                                                                             \
    "; its virtual cells are free, but to map them would need a bad node or one that may not be "  \
    "used"
#define REASON_NODE_EXCLUDED "; it would have to use node %s, which may not be used"
#define REASON_NODE_BAD      "; it would have to use node %s, which is bad"
#define REASON_SEARCH_CUT    "; the search for a mixed placement was cut at its limit"
#define REASON_NEVER         "; it can never start"
#define REASON_NEVER_ROOM    "; this is more than there is, it can never start"
#define REASON_NEVER_CELL                                                                          \
    "; none of these cells is a whole %s that is large enough, it can never start"
#define REASON_WAYS                                                                                \
    "; its roles may be on the types of cells in more ways than the %u that were tried: with a "   \
    "skuType each may be on fewer"
#define REASON_CPUS "; it would take the CPUs of GPU cells only if its skuType named them"

/* Nodes that are not used. */
#define REASON_NOT_USED      "; not used: "
#define REASON_LOST          "%s (lost)"
#define REASON_LOST_WHY      "%s (lost: %s)"
#define REASON_UNHEALTHY     "%s (not healthy)"
#define REASON_UNHEALTHY_WHY "%s (not healthy: %s)"
#define REASON_CORDONED      "%s (cordoned by %s since %s)"
#define REASON_CORDONED_WHY  "%s (cordoned by %s since %s: %s)"
#define REASON_UNUSED        "%s (%s)"
#define REASON_MORE_NODES    " and %u more"
/* behind "cordoned": what REASON_UNUSED says of a node that the platform has cordoned */
#define REASON_BLAME                                                                               \
    " by the platform since %s: %.1f failures of the platform were counted there, the last: %s"

/* Of several engines, each with its own reason. */
#define REASON_NO_ENGINE     "no engine has room for all of its tasks: "
#define REASON_ENGINE        "on %s ("
#define REASON_ENGINE_END    ")"
#define REASON_NEXT_ENGINE   "; "
#define REASON_OTHER_ENGINES "; nor on %u other%s"

struct arena;

enum { REASON_PARTS_MAX = 256, REASON_VALUES_MAX = 512, REASON_LENGTH_MAX = 8192 };

struct reason_value {
    const char *name;
    struct text text; /* in the text that was read */
    bool is_number;   /* as JSON writes one */
};

struct reason_part {
    const char *code;
    unsigned first, value_count; /* in `values` */
};

struct reason_parts {
    struct reason_part items[REASON_PARTS_MAX];
    unsigned count;
    struct reason_value values[REASON_VALUES_MAX];
};

/* In `arena`. NULL when the text is not all of such parts, or is too long: then it can only be
 * shown as it is. */
const struct reason_parts *reason_read(struct text text, struct arena *arena);

#endif
