/* config.h — takes up a new configuration. Inside src/core only.
 *
 * Owns core->config.
 */
#ifndef CORE_CONFIG_H
#define CORE_CONFIG_H
#include "core/state.h"

void config_event(struct core *core, const struct event *event);
/* A piece of what the last configuration has left to later steps: the order of the queue. */
void config_go_on(struct core *core);
/* What runs was told to the placer of the policy that was asked for: it is in force. */
void config_take_over(struct core *core);

#endif
