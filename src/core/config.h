/* config.h — takes up a new configuration, and replaces the placer. Inside src/core only.
 *
 * Owns core->config and core->placer.
 */
#ifndef CORE_CONFIG_H
#define CORE_CONFIG_H
#include "core/state.h"

int config_copy(struct core_config *to, const struct core_config *from, struct err *err);
void config_release(struct core_config *config);
void config_event(struct core *core, const struct event *event);
/* Give a new placer the nodes, and the places of all that runs. */
void placer_fill(struct core *core, struct placer *placer);
/* Another placer of the same configuration, when the nodes have outdated the one there is. */
void placer_renew(struct core *core);

#endif
