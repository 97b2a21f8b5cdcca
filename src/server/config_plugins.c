#include "server/config_plugins.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/origin.h"
#include "doc/doc.h"
#include "doc/problem.h"
#include "model/portal_plugin.h"
#include <string.h>

static const char *text_get(const struct doc *doc, const char *key, const char *fallback,
                            struct arena *arena)
{
    return arena_copy(arena, doc_get_text(doc, key, fallback));
}

/* A page's policy names it, so that nothing but an origin may stand there. */
static const char *origin_read(const struct doc *place, const char *key, struct text uri,
                               bool is_bare, struct arena *arena, struct problems *problems)
{
    struct text origin;
    struct err err;
    if (web_origin_of(uri, &origin, &err) < 0)
        problem_add(problems, place->place, key, "%s", err.text);
    else if (is_bare && origin.length != uri.length)
        problem_add(problems, place->place, key, "%.*s is more than SCHEME://NAME[:PORT]",
                    TEXT_ARG(uri));
    else
        return arena_copy(arena, origin);
    return "";
}

static void origins_read(const struct doc *item, struct arena *arena, struct portal_plugin *plugin,
                         struct problems *problems)
{
    const struct doc *list = doc_get_list(item, "origins");
    const char **origins = ARENA_ARRAY(arena, const char *, list->as.list.count);
    for (size_t i = 0; i < list->as.list.count; i++)
        origins[i] = origin_read(list->as.list.items[i], "portal.plugins.origins",
                                 list->as.list.items[i]->as.string, true, arena, problems);
    plugin->origins = origins;
    plugin->origin_count = list->as.list.count;
}

static void config_text(const struct doc *item, struct arena *arena, struct portal_plugin *plugin,
                        struct problems *problems)
{
    cleanup_buf struct buf json = BUF_INIT;
    const struct doc *config = doc_get_map(item, "config");
    if (doc_count(config) == 0)
        buf_string(&json, "{}");
    else if (doc_to_json(config, PORTAL_PLUGIN_CONFIG_MAX, &json) < 0)
        problem_add(problems, config->place, "portal.plugins.config", "has more than %d bytes",
                    PORTAL_PLUGIN_CONFIG_MAX);
    plugin->config_json = arena_copy(arena, buf_as_text(&json));
}

void config_plugins_read(const struct doc *doc, struct arena *arena, struct portal_plugins *plugins,
                         struct problems *problems)
{
    const struct doc *list = doc_get_list(doc_get(doc, "portal"), "plugins");
    const size_t count = list->as.list.count;
    struct portal_plugin *items = ARENA_ARRAY(arena, struct portal_plugin, count);
    for (size_t i = 0; i < count; i++) {
        const struct doc *item = list->as.list.items[i];
        items[i].id = text_get(item, "id", "", arena);
        items[i].title = text_get(item, "title", "", arena);
        items[i].uri = text_get(item, "uri", "", arena);
        items[i].scope = text_get(item, "scope", "submit", arena);
        items[i].origin =
            origin_read(item, "portal.plugins.uri", text_of(items[i].uri), false, arena, problems);
        origins_read(item, arena, &items[i], problems);
        config_text(item, arena, &items[i], problems);
        for (size_t j = 0; j < i; j++)
            if (items[i].id[0] && strcmp(items[i].id, items[j].id) == 0)
                problem_add(problems, item->place, "portal.plugins.id",
                            "plugin %zu is called %s as well", j + 1, items[j].id);
    }
    *plugins = (struct portal_plugins){items, count};
}

static bool plugin_differs(const struct portal_plugin *a, const struct portal_plugin *b)
{
    bool is_different = strcmp(a->id, b->id) != 0 || strcmp(a->title, b->title) != 0 ||
                        strcmp(a->uri, b->uri) != 0 || strcmp(a->scope, b->scope) != 0 ||
                        strcmp(a->config_json, b->config_json) != 0 ||
                        a->origin_count != b->origin_count;
    for (size_t i = 0; !is_different && i < a->origin_count; i++)
        is_different = strcmp(a->origins[i], b->origins[i]) != 0;
    return is_different;
}

bool config_plugins_differ(const struct portal_plugins *old, const struct portal_plugins *now)
{
    bool is_different = old->count != now->count;
    for (size_t i = 0; !is_different && i < now->count; i++)
        is_different = plugin_differs(&old->items[i], &now->items[i]);
    return is_different;
}
