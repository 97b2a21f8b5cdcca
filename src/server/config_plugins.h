/* config_plugins.h — the configuration's portal.plugins.
 *
 * Private to server; config_shape.c has the keys.
 */
#ifndef SERVER_CONFIG_PLUGINS_H
#define SERVER_CONFIG_PLUGINS_H
#include <stdbool.h>

struct arena;
struct doc;
struct portal_plugins;
struct problems;

/* Of the whole document, which fits its shape; what is wrong beyond that is a problem. */
void config_plugins_read(const struct doc *doc, struct arena *arena, struct portal_plugins *plugins,
                         struct problems *problems);
bool config_plugins_differ(const struct portal_plugins *old, const struct portal_plugins *now);

#endif
