/* Plugins of the portal: pages of somebody else's, each in a frame without an origin of its own
 * (docs/rfc/0010-http-edge.md). */
#include "api/handlers.h"
#include "api/portal.h"
#include "model/portal_plugin.h"

/* What the frame of a plugin may do: run its script and ours, load from its origins, and talk to
 * them and to this server. Its document has no origin, so that it reads nothing that the portal
 * keeps in the browser; it gets a token of its own. */
static const char *policy_of(const struct portal_plugin *plugin, struct arena *arena)
{
    cleanup_buf struct buf origins = BUF_INIT;
    buf_format(&origins, "'self' %s", plugin->origin);
    for (size_t i = 0; i < plugin->origin_count; i++)
        buf_format(&origins, " %s", plugin->origins[i]);
    const char *from = buf_cstr(&origins);
    return arena_format(
        arena,
        "sandbox allow-scripts allow-forms allow-modals allow-downloads allow-popups "
        "allow-popups-to-escape-sandbox; default-src 'none'; script-src %s; "
        "style-src %s 'unsafe-inline'; img-src %s data: blob:; font-src %s data:; "
        "connect-src %s; worker-src blob:; frame-ancestors 'self'; base-uri 'none'; "
        "form-action %s",
        from, from, from, from, from, from);
}

int handle_plugin_frame(struct call *call)
{
    const struct portal_plugins *plugins = &call->api->config.plugins;
    int64_t index;
    int code = call_number(call, "index", 0, PORTAL_PLUGINS_MAX - 1, 0, &index);
    if (code)
        return code;
    if ((size_t)index >= plugins->count)
        return call_fail(call, ERR_NOT_FOUND, "NoPluginError", "index",
                         "the portal has no plugin %lld", (long long)index);
    return portal_reply(call, policy_of(&plugins->items[index], call->arena));
}

/* Only for who has signed in: a plugin's configuration may say more than its title. */
int handle_plugin_list(struct call *call)
{
    const struct portal_plugins *plugins = &call->api->config.plugins;
    struct json_writer json;
    call_json(call, 200, &json);
    json_array(&json);
    for (size_t i = 0; i < plugins->count; i++) {
        const struct portal_plugin *plugin = &plugins->items[i];
        json_object(&json);
        json_key_string(&json, "id", plugin->id[0] ? plugin->id : NULL);
        json_key_string(&json, "title", plugin->title);
        json_key_string(&json, "uri", plugin->uri);
        json_key_string(&json, "scope", plugin->scope);
        json_key(&json, "config");
        json_raw(&json, text_of(plugin->config_json));
        json_object_end(&json);
    }
    json_array_end(&json);
    return 0;
}
