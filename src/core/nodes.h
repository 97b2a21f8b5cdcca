/* nodes.h — what is known of nodes, and how far they are trusted. Inside src/core only.
 *
 * Owns core->nodes, core->blamed and core->refusing. A change is told to the placer, the
 * reservations and the rows.
 */
#ifndef CORE_NODES_H
#define CORE_NODES_H
#include <assert.h>

#include "core/state.h"

static inline struct core_node *core_node_at(const struct core *core, uint32_t at)
{
    assert(at < core->nodes.count);
    return &core->nodes.items[at];
}
/* What was asked of the placer before may be answered in another way now. */
void nodes_note_change(struct core *core);
void node_event(struct core *core, const struct event *event);
void node_lost_event(struct core *core, const struct event *event);
void node_pardon_event(struct core *core, const struct event *event);
void node_cordon_event(struct core *core, const struct event *event); /* CORDON, DRAIN */
void node_uncordon_event(struct core *core, const struct event *event);
/* Has its level changed? `what`: the failure, for people. */
bool node_blame(struct core *core, uint32_t node, double weight, const char *what);
/* It did not take a task: it is taken last for a while, longer with each refusal in a row. */
void node_refused(struct core *core, uint32_t node);
void node_accepted(struct core *core, uint32_t node); /* a task has started there */
/* Nodes that nothing can be placed on, with the reasons: "; not used: n1 (cordoned by …), …"; ""
 * when there are none. In `arena`. */
const char *nodes_not_used(const struct core *core, struct arena *arena);
void node_blame_refresh(struct core *core, uint32_t node); /* its blame may have decayed */
double node_blame_now(const struct core *core, const struct core_node *node);
bool node_is_cordoned(const struct core_node *node); /* for its failures, or by somebody */
/* Its row has room for one reason: why it is taken last or not at all, or the node's own? */
bool node_is_told_blame(const struct core_node *node);
uint32_t node_find(const struct core *core, const char *name); /* NONE */
void node_tell_placer(struct core *core, struct placer *placer, uint32_t node);
int node_restore(struct core *core, const struct node_record *record, struct err *err);
/* Nodes that are taken last, for blame or refusals: their number. */
size_t nodes_to_avoid(struct core *core, struct arena *arena, const struct node_id **nodes);
void core_nodes_copy(struct core *to, const struct core *from); /* `to` has none yet */
void core_nodes_release(struct core *core);

#endif
