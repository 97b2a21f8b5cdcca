#include "cli/openpai_plugins.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json_writer.h"
#include "base/origin.h"
#include "cli/openpai.h"
#include "doc/doc.h"

enum { PLUGINS_MAX = 20, CONFIG_MAX = 64 << 10 }; /* as the server takes them */

static void plugin_write(struct json_writer *json, const struct doc *plugin,
                         const struct buf *config)
{
    static const char *const KEYS[] = {"id", "title", "uri"};
    json_object(json);
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        const struct text value = doc_get_text(plugin, KEYS[i], "");
        if (value.length)
            json_key_text(json, KEYS[i], value);
    }
    if (config->length) {
        json_key(json, "config");
        json_raw(json, buf_as_text(config));
    }
    json_object_end(json);
}

/* What keeps it from being taken; NULL: nothing. */
static const char *why_not(const struct doc *plugin, size_t count, struct arena *arena)
{
    const struct text uri = doc_get_text(plugin, "uri", "");
    struct text origin;
    struct err err;
    if (!doc_get_text(plugin, "title", "").length || !uri.length)
        return "it has no title, or no uri: look at it yourself";
    if (uri.at[0] == '/')
        return arena_format(arena,
                            "%.*s is a file of OpenPAI's portal: put it on a web server, and name "
                            "its address in portal.plugins",
                            TEXT_ARG(uri));
    if (web_origin_of(uri, &origin, &err) < 0)
        return arena_copy(arena, text_of(err.text));
    return count >= PLUGINS_MAX ? "there can be 20 of them" : NULL;
}

const char *openpai_plugins(const struct doc *list, const char *file, const char *path,
                            struct arena *arena, struct openpai_output *output)
{
    cleanup_buf struct buf out = BUF_INIT;
    struct json_writer json;
    size_t count = 0;
    json_init(&json, &out);
    json_array(&json);
    for (size_t i = 0; i < doc_count(list); i++) {
        const struct doc *plugin = list->as.list.items[i];
        const char *at = arena_format(arena, "%s[%zu]", path, i);
        cleanup_buf struct buf config = BUF_INIT;
        const struct doc *given = doc_get_kind(plugin, "config", DOC_MAP);
        const char *why = why_not(plugin, count, arena);
        if (!why && given && doc_to_json(given, CONFIG_MAX, &config) < 0)
            why = "its config is larger than 64 KiB";
        if (why) {
            openpai_note(output, NOTE_TO_DO, file, at, why);
            continue;
        }
        plugin_write(&json, plugin, &config);
        count++;
        openpai_note(output, NOTE_TAKEN, file, at,
                     "it is in portal.plugins; its token is one of scope submit, where OpenPAI "
                     "gave it all that the user may do");
    }
    json_array_end(&json);
    return count ? arena_copy(arena, buf_as_text(&out)) : NULL;
}
