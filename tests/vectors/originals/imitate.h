/* imitate.h — HiveD with the habits of the original that Skep does not share, so that its recorded
 * sequences can be repeated:
 * - lazy groups are downgraded even in a call in HIVED_FILTERING that ends with a Preempt: they
 * lose their guarantee although nothing was committed;
 * - a gang that its virtual cluster has room for, but only on bad nodes, waits there though it
 *   might displace lower priorities; it displaces in one chain before the next is looked at;
 * - gangs are packed greedily only, and nodes that were not suggested once stay behind their
 *   equals;
 * - doomed cells are looked for in another order, in the middle of compound changes;
 * - to get round bad nodes, the last cell that a quota needs at a level in between may be split.
 */
#ifndef ORIGINALS_IMITATE_H
#define ORIGINALS_IMITATE_H
#include "hived_view.h"

struct hived *hived_new_imitating(struct hived_config *config);

/* hived_vc_walk as the original shows a virtual cluster: opportunistic leaves as they were when
 * they were taken, also those whose end it missed. */
bool hived_vc_walk_imitating(struct hived *hived, const char *vc, hived_vc_visit *visit,
                             void *context);

#endif
