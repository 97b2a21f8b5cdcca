/* config.h — takes up a new configuration. Inside src/core only.
 *
 * Owns core->config.
 */
#ifndef CORE_CONFIG_H
#define CORE_CONFIG_H
#include "core/state.h"

void config_event(struct core *core, const struct event *event);

#endif
