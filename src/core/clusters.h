/* clusters.h — virtual clusters that are closed: docs/rfc/0011-waiting-jobs.md. Inside src/core
 * only.
 *
 * Owns core->closed. The core does not know which virtual clusters there are: any name may be
 * closed, and stays closed when a configuration does not name it.
 */
#ifndef CORE_CLUSTERS_H
#define CORE_CLUSTERS_H
#include "core/state.h"

void cluster_close_event(struct core *core, const struct event *event);
void cluster_open_event(struct core *core, const struct event *event);
/* NULL: it is open. Valid until the next event. */
const struct cluster_record *cluster_closed(const struct core *core, const char *name);
int cluster_restore(struct core *core, const struct cluster_record *record, struct err *err);
uint32_t core_closed_count(const struct core *core);
const struct cluster_record *core_closed_at(const struct core *core, uint32_t nth); /* by name */
void core_clusters_copy(struct core *to, const struct core *from); /* `to` has none yet */
void core_clusters_release(struct core *core);

#endif
