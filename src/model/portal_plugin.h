/* portal_plugin.h — a page of somebody else's that the operator adds to the portal, as the
 * configuration names it.
 *
 * Pure. All strings are the configuration's; none is NULL.
 */
#ifndef MODEL_PORTAL_PLUGIN_H
#define MODEL_PORTAL_PLUGIN_H
#include <stddef.h>

enum { PORTAL_PLUGINS_MAX = 20, PORTAL_PLUGIN_CONFIG_MAX = 64 << 10 /* bytes of JSON */ };

struct portal_plugin {
    const char *id; /* by which jobs say who submitted them; "" */
    const char *title;
    const char *uri;            /* its script */
    const char *origin;         /* … and whose that is */
    const char *const *origins; /* others that it loads from and talks to */
    size_t origin_count;        //
    const char *scope;          /* of its token: auth_scope_name */
    const char *config_json;    /* an object, for the script */
};

struct portal_plugins {
    const struct portal_plugin *items;
    size_t count;
};

#endif
