/* config.h — takes up a new configuration. Inside src/core only.
 *
 * Owns core->config.
 */
#ifndef CORE_CONFIG_H
#define CORE_CONFIG_H
#include "core/state.h"

int config_copy(struct core_config *to, const struct core_config *from, struct err *err);
void config_release(struct core_config *config);
void config_event(struct core *core, const struct event *event);

#endif
