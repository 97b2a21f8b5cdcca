/* simple_share.h — what groups have of the nodes of a plain placer. Inside src/placement only.
 *
 * Owns what is in use of each node, what is kept of it for groups that wait, and what follows from
 * both: what is free, what it offers to others, and the most that it might offer.
 */
#ifndef PLACEMENT_SIMPLE_SHARE_H
#define PLACEMENT_SIMPLE_SHARE_H
#include "placement/simple_parts.h"

/* What the node itself has is another. */
void simple_node_renew(struct simple *simple, uint32_t at);

/* To what a group has on one node, of one slot or of several. False: that is not free. */
typedef bool share_apply_fn(struct simple *simple, uint32_t at, const struct simple_share *share);
share_apply_fn simple_share_take, simple_share_give, /* it is in use, or not any more */
    simple_share_keep, simple_share_leave,           /* it is kept, or not any more */
    simple_share_become;                             /* what was kept is in use */

struct simple_share simple_share_of(const struct simple_slot *slot);
/* To what the group has on each of its nodes. False: some of it is not free.
 * Cost: of a large group each node is looked at once. */
bool simple_group_apply(struct simple *simple, const struct simple_group *group,
                        share_apply_fn *apply);

#endif
