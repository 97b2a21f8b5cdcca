/* Runtime plugins: the list in extras, and those that prerequisites ask for. */
#include <stdio.h>

#include "base/buf.h"
#include "base/json_writer.h"
#include "spec/fields.h"
#include "spec/read.h"

enum { SSH_BARRIER_S = 30 * 60 };

static struct spec_plugin *plugin_new(struct spec_reader *reader, const struct doc *doc,
                                      struct text name, const char *path)
{
    struct spec *spec = reader->spec;
    if (spec->plugin_count == SPEC_PLUGINS_MAX) {
        reader_problem(reader, doc, "more than 4096 plugins in all roles", "%s", path);
        return NULL;
    }
    struct spec_plugin *plugin = READER_ADD(reader, spec->plugins, spec->plugin_count);
    plugin->name = reader_copy(reader, name);
    plugin->parameters_json = "{}";
    return plugin;
}

/* `json` with its templates rendered, in the spec's arena. */
static const char *parameters_render(struct spec_reader *reader, struct template_scope *scope,
                                     const struct doc *doc, const char *path,
                                     const struct buf *json)
{
    cleanup_buf struct buf rendered = BUF_INIT;
    const char *copy = "{}";
    scope->is_json = true;
    scope->secret_bytes = 0;
    scope->problems = reader->problems;
    scope->place = doc->place;
    scope->path = path;
    if (template_render(scope, buf_as_text(json), SPEC_PARAMETERS_MAX, &rendered))
        reader_problem(reader, doc, "longer than 65536 bytes", "%s", path);
    else if (reader->rendered_bytes + rendered.length > SPEC_RENDERED_MAX)
        reader_problem(reader, doc, "all parameters are longer than 4194304 bytes", "%s", path);
    else
        copy = reader_copy(reader, buf_as_text(&rendered));
    reader->rendered_bytes += rendered.length;
    return copy;
}

static void cmd_check(struct spec_reader *reader, const struct doc *parameters, const char *path)
{
    const struct doc *callbacks = doc_get(parameters, "callbacks");
    if (callbacks && (doc_get(parameters, "preCommands") || doc_get(parameters, "postCommands")))
        reader_problem(reader, callbacks, "cannot stand beside preCommands and postCommands",
                       "%s.callbacks", path);
}

static bool is_common(struct text key)
{
    static const char *const common[] = {"name",        "type",        "plugin",
                                         "require",     "version",     "protocolVersion",
                                         "contributor", "description", NULL};
    for (const char *const *name = common; *name; name++)
        if (text_is(key, *name))
            return true;
    return false;
}

/* The prerequisite without what every prerequisite has. */
static struct doc parameters_of_prerequisite(struct spec_reader *reader, const struct doc *item)
{
    struct doc own = *item;
    own.as.map.entries = ARENA_ARRAY(reader->scratch, struct doc_entry, item->as.map.count);
    own.as.map.by_key = NULL; /* it would name the left out ones */
    own.as.map.count = 0;
    for (size_t i = 0; i < item->as.map.count; i++)
        if (!is_common(item->as.map.entries[i].key))
            own.as.map.entries[own.as.map.count++] = item->as.map.entries[i];
    return own;
}

void plugin_of_prerequisite(struct spec_reader *reader, const struct doc *item, size_t index,
                            const char *role, struct template_scope scope)
{
    const struct doc *plugin_doc = doc_get_kind(item, "plugin", DOC_STRING);
    struct text name = doc_get_text(item, "plugin", "");
    char path[64];
    if (!plugin_doc)
        return;
    snprintf(path, sizeof path, "prerequisites[%zu]", index);
    if (text_starts(name, TEXT(SPEC_PLUGIN_PREFIX "."))) {
        name.at += sizeof SPEC_PLUGIN_PREFIX;
        name.length -= sizeof SPEC_PLUGIN_PREFIX;
    }
    const struct shape *shape = spec_plugin_shape(name);
    if (!shape) {
        struct near near = {0};
        struct problem *problem =
            reader_problem(reader, plugin_doc, "unknown plugin", "%s.plugin", path);
        spec_plugin_offer(&near, name);
        near_hint(&near, reader->problems, problem);
        return;
    }
    struct doc own = parameters_of_prerequisite(reader, item);
    struct shape open = *shape;
    open.unknown = UNKNOWN_FREE;
    shape_check(&open, &own, path, reader->problems);
    if (text_is(name, "cmd"))
        cmd_check(reader, &own, path);
    struct spec_plugin *plugin = plugin_new(reader, item, name, path);
    if (!plugin)
        return;
    cleanup_buf struct buf json = BUF_INIT;
    if (doc_to_json(&own, SPEC_PARAMETERS_MAX, &json))
        reader_problem(reader, item, "longer than 65536 bytes", "%s", path);
    else
        plugin->parameters_json = parameters_render(reader, &scope, item, path, &json);
    const char **roles = ARENA_ARRAY(reader->arena, const char *, 1);
    roles[0] = role;
    plugin->roles = roles;
    plugin->role_count = 1;
}

static void plugin_roles(struct spec_reader *reader, struct spec_plugin *plugin,
                         const struct doc *list, size_t index)
{
    if (!list || list->as.list.count > SPEC_LIST_MAX)
        return;
    const char **roles = ARENA_ARRAY(reader->arena, const char *, list->as.list.count + 1);
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *item = list->as.list.items[i];
        if (item->kind != DOC_STRING)
            continue;
        const struct spec_role *role = reader_role(reader, item->as.string);
        if (role)
            roles[plugin->role_count++] = role->name;
        else
            role_unknown(reader, item, item->as.string, true,
                         "extras." SPEC_PLUGIN_PREFIX "[%zu].taskroles[%zu]", index, i);
    }
    plugin->roles = roles;
}

static bool has_role(const struct spec_plugin *plugin, const struct spec_role *role)
{
    for (size_t i = 0; i < plugin->role_count; i++)
        if (plugin->roles[i] == role->name)
            return true;
    return plugin->roles == NULL;
}

/* A key of a person, who wants to come in: before OpenPAI 1.0 the key itself. */
static bool has_user_key(const struct doc *parameters)
{
    const struct doc *user = doc_get(parameters, "userssh");
    if (user && user->kind == DOC_STRING)
        return text_trim(user->as.string).length > 0;
    return !text_is(doc_get_text(user, "type", "custom"), "none") &&
           text_trim(doc_get_text(user, "value", "")).length > 0;
}

static void ssh_read(struct spec_reader *reader, const struct spec_plugin *plugin,
                     const struct doc *parameters)
{
    int64_t minutes = doc_get_int(parameters, "sshbarrierTimeout", SSH_BARRIER_S / 60);
    const bool is_job = doc_get_bool(parameters, "jobssh", false);
    const char *key = is_job ? "jobssh" : "userssh";
    if (!is_job && !has_user_key(parameters))
        return;
    if (!reader->spec->is_gang) {
        reader_warning(reader, doc_get(parameters, key), "has no effect without gangAllocation",
                       "extras." SPEC_PLUGIN_PREFIX ".ssh.parameters.%s", key);
        return;
    }
    for (size_t i = 0; i < reader->spec->role_count; i++) {
        struct spec_role *role = &reader->spec->roles[i];
        if (!has_role(plugin, role))
            continue;
        role->is_ssh_optional =
            plugin->is_failure_ignored && (role->is_ssh_optional || !role->is_ssh_enabled);
        role->is_ssh_enabled = true;
        role->has_ssh_barrier |= is_job && doc_get_bool(parameters, "sshbarrier", false);
        if (role->has_ssh_barrier && minutes > 0 && minutes <= 100000)
            role->ssh_barrier_timeout_s = (uint32_t)minutes * 60;
    }
}

static void teamwise_read(struct spec_reader *reader, const struct doc *parameters, size_t index,
                          uint32_t line)
{
    const struct doc *names = doc_get_list(parameters, "storageConfigNames");
    if (names->as.list.count == 0) {
        reader->spec->wants_default_storages = true;
        reader->spec->default_storages_line = line;
        return;
    }
    for (size_t i = 0; i < names->as.list.count && i < SPEC_LIST_MAX; i++) {
        char path[160];
        snprintf(path, sizeof path,
                 "extras." SPEC_PLUGIN_PREFIX "[%zu].parameters.storageConfigNames[%zu]", index, i);
        const struct doc *name = names->as.list.items[i];
        if (name->kind == DOC_STRING)
            storage_add(reader, name, path, name->as.string, TEXT(""));
    }
}

static void plugin_read(struct spec_reader *reader, const struct doc *doc, size_t index)
{
    char path[100];
    struct text name = doc_get_text(doc, "plugin", "");
    const struct doc *parameters = doc_get_kind(doc, "parameters", DOC_MAP);
    const struct doc *roles = doc_get_kind(doc, "taskroles", DOC_LIST);
    snprintf(path, sizeof path, "extras." SPEC_PLUGIN_PREFIX "[%zu].parameters", index);
    if (!spec_plugin_shape(name))
        return; /* the shape has complained */
    if (text_is(name, "teamwise_storage")) {
        if (!doc_get_kind(doc_get(reader->root, "extras"), "storages", DOC_LIST))
            teamwise_read(reader, parameters, index, doc->place.line);
        return;
    }
    struct spec_plugin *plugin = plugin_new(reader, doc, name, path);
    if (!plugin)
        return;
    plugin->is_failure_ignored = text_is(doc_get_text(doc, "failurePolicy", "fail"), "ignore");
    plugin_roles(reader, plugin, roles ? roles : doc_get_kind(doc, "taskRoles", DOC_LIST), index);
    if (text_is(name, "cmd"))
        cmd_check(reader, parameters, path);
    if (text_is(name, "ssh"))
        ssh_read(reader, plugin, parameters);
    if (!parameters)
        return;
    struct template_scope scope = {.parameters = doc_get(reader->root, "parameters"),
                                   .secrets = reader->secrets,
                                   .secret_count = reader->secret_count,
                                   .secrets_of = reader->has_all_kept ? reader->kept->job : NULL};
    cleanup_buf struct buf json = BUF_INIT;
    if (doc_to_json(parameters, SPEC_PARAMETERS_MAX, &json))
        reader_problem(reader, parameters, "longer than 65536 bytes", "%s", path);
    else
        plugin->parameters_json = parameters_render(reader, &scope, parameters, path, &json);
}

void plugins_read(struct spec_reader *reader, const struct doc *extras)
{
    const struct doc *list = doc_get_list(extras, SPEC_PLUGIN_PREFIX);
    for (size_t i = 0; i < list->as.list.count; i++) {
        if (i == SPEC_LIST_MAX)
            break; /* the shape has complained */
        plugin_read(reader, list->as.list.items[i], i);
    }
}
