/* OpenPAI job protocol 2: roles, prerequisites, deployments. */
#include <assert.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/memory.h"
#include "spec/fields.h"
#include "spec/read.h"

/* The list is walked for every role: what names what is found out once. */
struct prerequisite {
    const struct doc *doc;
    struct text name, type;
    uint16_t *require; /* indices, MISSING where the name names nothing */
    size_t require_count;
    bool is_cyclic; /* said once */
};
enum { MISSING = UINT16_MAX };

/* Index of the first of this name (and type, unless NULL), or MISSING. */
static size_t prerequisite_find(const struct spec_reader *reader, struct text name,
                                const char *type)
{
    for (size_t i = 0; i < reader->prerequisite_count; i++) {
        const struct prerequisite *item = &reader->prerequisites[i];
        if (text_equal(item->name, name) && (!type || text_is(item->type, type)))
            return i;
    }
    return MISSING;
}

/* "names no prerequisite", with the nearest name and what the name is of another type. */
static void prerequisite_unknown(struct spec_reader *reader, const struct doc *doc,
                                 const char *type, const char *path)
{
    size_t other = prerequisite_find(reader, doc->as.string, NULL);
    struct near near = {0};
    char text[120];
    snprintf(text, sizeof text, "names no prerequisite%s%s", type ? " of type " : "",
             type ? type : "");
    struct problem *problem = reader_problem(reader, doc, text, "%s", path);
    if (other != MISSING) {
        problem_hint(reader->problems, problem, "the prerequisite of this name is of type %.64s",
                     reader->prerequisites[other].type.at);
        return;
    }
    for (size_t i = 0; problem && i < reader->prerequisite_count; i++)
        if (!type || text_is(reader->prerequisites[i].type, type))
            near_offer(&near, doc->as.string, reader->prerequisites[i].name);
    near_hint(&near, reader->problems, problem);
}

static void require_read(struct spec_reader *reader, struct prerequisite *item, size_t index)
{
    const struct doc *list = doc_get_list(item->doc, "require");
    size_t count = list->as.list.count;
    if (count > SPEC_LIST_MAX)
        return; /* the shape has complained */
    item->require = ARENA_ARRAY(reader->scratch, uint16_t, count);
    for (size_t i = 0; i < count; i++) {
        const struct doc *name = list->as.list.items[i];
        char path[64];
        if (name->kind != DOC_STRING)
            continue;
        size_t found = prerequisite_find(reader, name->as.string, NULL);
        snprintf(path, sizeof path, "prerequisites[%zu].require[%zu]", index, i);
        if (found == MISSING)
            prerequisite_unknown(reader, name, NULL, path);
        else
            item->require[item->require_count++] = (uint16_t)found;
    }
}

static void prerequisites_read(struct spec_reader *reader)
{
    const struct doc *list = doc_get_list(reader->root, "prerequisites");
    size_t count = list->as.list.count;
    if (count > SPEC_LIST_MAX)
        count = SPEC_LIST_MAX; /* the shape has complained */
    reader->prerequisites = ARENA_ARRAY(reader->scratch, struct prerequisite, count);
    for (size_t i = 0; i < count; i++) {
        const struct doc *doc = list->as.list.items[i];
        struct text name = doc_get_text(doc, "name", ""), type = doc_get_text(doc, "type", "");
        if (name.length && prerequisite_find(reader, name, type.at) != MISSING)
            reader_problem(reader, doc_get(doc, "name"),
                           "a prerequisite of this type and name stands before",
                           "prerequisites[%zu].name", i);
        reader->prerequisites[i] = (struct prerequisite){.doc = doc, .name = name, .type = type};
        reader->prerequisite_count++;
    }
    for (size_t i = 0; i < count; i++)
        require_read(reader, &reader->prerequisites[i], i);
}

static const char *auth_text(struct spec_reader *reader, const struct doc *auth, const char *key)
{
    const struct doc *value = doc_get_kind(auth, key, DOC_STRING);
    struct template_scope scope = {
        .secrets = reader->secrets,
        .secret_count = reader->secret_count,
        .secrets_of = reader->has_all_kept ? reader->kept->job : NULL,
        .problems = reader->problems,
        .path = arena_format(reader->scratch, "prerequisites.auth.%s", key),
    };
    if (!value)
        return "";
    scope.place = value->place;
    template_secrets_check(&scope, value->as.string);
    if (value->as.string.length + scope.secret_bytes > SPEC_CREDENTIAL_MAX)
        reader_problem(reader, value, "longer than 8192 bytes with its secrets", "%s", scope.path);
    return reader_copy(reader, value->as.string);
}

static uint32_t image_add(struct spec_reader *reader, const struct doc *image)
{
    struct spec *spec = reader->spec;
    struct text name = doc_get_text(image, "name", "");
    const struct doc *auth = doc_get_kind(image, "auth", DOC_MAP);
    for (size_t i = 0; i < spec->image_count; i++)
        if (text_is(name, spec->images[i].name))
            return (uint32_t)i;
    struct spec_image *added = READER_ADD(reader, spec->images, spec->image_count);
    added->name = reader_copy(reader, name);
    added->uri = reader_copy(reader, doc_get_text(image, "uri", ""));
    if (auth) {
        struct spec_auth *copy = ARENA_NEW(reader->arena, struct spec_auth);
        copy->username = auth_text(reader, auth, "username");
        copy->password = auth_text(reader, auth, "password");
        copy->registry_uri = auth_text(reader, auth, "registryuri");
        added->auth = copy;
    }
    return (uint32_t)(spec->image_count - 1);
}

static uint32_t role_image(struct spec_reader *reader, const char *role, const struct doc *doc)
{
    const struct doc *name = doc_get_kind(doc, "dockerImage", DOC_STRING);
    if (!name)
        return 0;
    size_t image = prerequisite_find(reader, name->as.string, "dockerimage");
    char path[SPEC_NAME_MAX + 64];
    if (image != MISSING)
        return image_add(reader, reader->prerequisites[image].doc);
    snprintf(path, sizeof path, "taskRoles.%s.dockerImage", role);
    prerequisite_unknown(reader, name, "dockerimage", path);
    return 0;
}

/* What `data: x` of a role names; NULL when it names none. */
static const struct doc *role_names(struct spec_reader *reader, const char *role,
                                    const struct doc *doc, const char *type)
{
    const struct doc *name = doc_get_kind(doc, type, DOC_STRING);
    if (!name)
        return NULL;
    size_t found = prerequisite_find(reader, name->as.string, type);
    if (found != MISSING)
        return reader->prerequisites[found].doc;
    char path[SPEC_NAME_MAX + 64];
    snprintf(path, sizeof path, "taskRoles.%s.%s", role, type);
    prerequisite_unknown(reader, name, type, path);
    return NULL;
}

static struct template_scope role_scope(struct spec_reader *reader, const char *role,
                                        const struct doc *doc)
{
    return (struct template_scope){
        .parameters = doc_get(reader->root, "parameters"),
        .script = role_names(reader, role, doc, "script"),
        .output = role_names(reader, role, doc, "output"),
        .data = role_names(reader, role, doc, "data"),
        .secrets = reader->secrets,
        .secret_count = reader->secret_count,
        .secrets_of = reader->has_all_kept ? reader->kept->job : NULL,
        .problems = reader->problems,
    };
}

/* Each line trimmed, rendered and ended; false when the limit is passed. */
static bool lines_render(struct spec_reader *reader, struct template_scope *scope,
                         const struct doc *lines, const char *path, struct buf *out)
{
    for (size_t i = 0; i < lines->as.list.count; i++) {
        const struct doc *line = lines->as.list.items[i];
        char place[SPEC_NAME_MAX + 200];
        if (line->kind != DOC_STRING)
            continue;
        snprintf(place, sizeof place, "%s[%zu]", path, i);
        scope->place = line->place;
        scope->path = place;
        if (out->length)
            buf_char(out, '\n');
        if (template_render(scope, text_trim(line->as.string), SPEC_COMMAND_MAX, out)) {
            reader_problem(reader, line, "the role's command is longer than 262144 bytes", "%s",
                           place);
            return false;
        }
    }
    return true;
}

static const struct doc *deployment_find(const struct spec_reader *reader, struct text name,
                                         size_t *index)
{
    const struct doc *list = doc_get_list(reader->root, "deployments");
    for (size_t i = 0; i < list->as.list.count; i++)
        if (text_equal(doc_get_text(list->as.list.items[i], "name", ""), name)) {
            *index = i;
            return list->as.list.items[i];
        }
    return NULL;
}

static const char *role_command(struct spec_reader *reader, const char *role, const struct doc *doc,
                                struct template_scope *scope)
{
    const struct doc *defaults = doc_get(reader->root, "defaults");
    size_t index = 0;
    const struct doc *deployment =
        deployment_find(reader, doc_get_text(defaults, "deployment", ""), &index);
    const struct doc *around = doc_get(doc_get(deployment, "taskRoles"), role);
    char path[SPEC_NAME_MAX + 128];
    cleanup_buf struct buf command = BUF_INIT;
    snprintf(path, sizeof path, "deployments[%zu].taskRoles.%s.preCommands", index, role);
    bool is_fit = lines_render(reader, scope, doc_get_list(around, "preCommands"), path, &command);
    snprintf(path, sizeof path, "taskRoles.%s.commands", role);
    is_fit = is_fit && lines_render(reader, scope, doc_get_list(doc, "commands"), path, &command);
    snprintf(path, sizeof path, "deployments[%zu].taskRoles.%s.postCommands", index, role);
    is_fit =
        is_fit && lines_render(reader, scope, doc_get_list(around, "postCommands"), path, &command);
    if (memchr(buf_cstr(&command), '\0', command.length))
        reader_problem(reader, doc, "the command must not hold a NUL character", "taskRoles.%s",
                       role);
    const char *copy = "";
    if (is_fit && reader->rendered_bytes + command.length <= SPEC_RENDERED_MAX)
        copy = reader_copy(reader, buf_as_text(&command));
    else if (is_fit)
        reader_problem(reader, doc, "the commands of all roles are longer than 4194304 bytes",
                       "taskRoles.%s", role);
    reader->rendered_bytes += command.length;
    return copy;
}

static int32_t threshold(struct spec_reader *reader, const struct doc *completion, const char *role,
                         const char *key, int32_t fallback)
{
    const struct doc *doc = doc_get(completion, key);
    int64_t value = doc_get_int(completion, key, fallback);
    const char *text = NULL;
    if (!doc || doc->kind == DOC_NULL)
        return fallback;
    if (value == 0) {
        text = "0 means the default";
        value = fallback;
    } else if (value < -1) {
        text = "below -1 means -1";
        value = -1;
    } else if (value > INT32_MAX) {
        value = INT32_MAX; /* the shape has complained */
    }
    if (text)
        reader_warning(reader, doc, text, "taskRoles.%s.completion.%s", role, key);
    return (int32_t)value;
}

static void role_completion(struct spec_reader *reader, struct spec_role *role,
                            const struct doc *doc)
{
    const struct doc *completion = doc_get(doc, "completion");
    int32_t instances = (int32_t)role->instances;
    role->completion.min_failed =
        threshold(reader, completion, role->name, "minFailedInstances", 1);
    role->completion.min_succeeded =
        threshold(reader, completion, role->name, "minSucceededInstances", instances);
    if (instances && role->completion.min_failed > instances)
        reader_warning(reader, completion, "more than the role has instances: never reached",
                       "taskRoles.%s.completion.minFailedInstances", role->name);
    if (instances && role->completion.min_succeeded > instances)
        reader_warning(reader, completion, "more than the role has instances: never reached",
                       "taskRoles.%s.completion.minSucceededInstances", role->name);
}

/* A number that the shape has checked; 0 … when it was wrong. */
static uint32_t checked(int64_t value, int64_t most)
{
    return value < 0 || value > most ? 0 : (uint32_t)value;
}

static void role_resources(struct spec_reader *reader, struct spec_role *role,
                           const struct doc *doc)
{
    const struct doc *resource = doc_get(doc, "resourcePerInstance");
    const struct doc *options = doc_get(doc, "extraContainerOptions");
    const struct doc *ports = doc_get_map(resource, "ports");
    char path[SPEC_NAME_MAX + 64];
    role->cpu = checked(doc_get_int(resource, "cpu", 0), SPEC_CPU_MAX);
    role->memory_mib = checked(doc_get_int(resource, "memoryMB", 0), SPEC_MEMORY_MIB_MAX);
    role->gpu = checked(doc_get_int(resource, "gpu", 0), SPEC_GPU_MAX);
    role->shm_mib = checked(doc_get_int(options, "shmMB", 512), SPEC_MEMORY_MIB_MAX);
    role->wants_infiniband = doc_get_bool(options, "infiniband", false);
    if (doc_get(options, "shmMB") && role->shm_mib > role->memory_mib && role->memory_mib)
        reader_warning(reader, options, "more than memoryMB, which limits it as well",
                       "taskRoles.%s.extraContainerOptions.shmMB", role->name);
    for (size_t i = 0; i < ports->as.map.count; i++) {
        const struct doc_entry *entry = &ports->as.map.entries[i];
        int64_t count = 0;
        doc_to_int(entry->value, &count);
        if (role->port_count > SPEC_PORTS_MAX)
            break;
        struct spec_port *port = READER_ADD(reader, role->ports, role->port_count);
        *port = (struct spec_port){.label = reader_copy(reader, entry->key),
                                   .count = checked(count, SPEC_PORTS_MAX)};
    }
    snprintf(path, sizeof path, "taskRoles.%s.resourcePerInstance.ports", role->name);
    reader_ports_finish(reader, role, ports, path);
}

/* Depth first, so that what a prerequisite requires stands before it. */
struct prerequisite_order {
    struct spec_role *role;
    const struct template_scope *scope;
    enum { NOT_SEEN, BEING_SEEN, SEEN } states[SPEC_LIST_MAX];
};

static void prerequisite_visit(struct spec_reader *reader, struct prerequisite_order *order,
                               size_t index)
{
    struct prerequisite *item = &reader->prerequisites[index];
    struct spec_role *role = order->role;
    if (order->states[index] == SEEN)
        return;
    if (order->states[index] == BEING_SEEN) {
        if (!item->is_cyclic)
            reader_problem(reader, doc_get(item->doc, "require"), "requires itself in the end",
                           "prerequisites[%zu].require", index);
        item->is_cyclic = true;
        return;
    }
    order->states[index] = BEING_SEEN;
    for (size_t i = 0; i < item->require_count; i++)
        prerequisite_visit(reader, order, item->require[i]);
    order->states[index] = SEEN;
    const char **names = (const char **)(uintptr_t)role->prerequisites;
    *READER_ADD(reader, names, role->prerequisite_count) = reader_copy(reader, item->name);
    role->prerequisites = names;
    if (doc_get(item->doc, "plugin"))
        plugin_of_prerequisite(reader, item->doc, index, role->name, *order->scope);
}

static void role_prerequisites(struct spec_reader *reader, struct spec_role *role,
                               const struct doc *doc, const struct template_scope *scope)
{
    const struct doc *list = doc_get_list(doc, "prerequisites");
    struct prerequisite_order order = {.role = role, .scope = scope};
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *name = list->as.list.items[i];
        char path[SPEC_NAME_MAX + 64];
        if (i == SPEC_LIST_MAX)
            break; /* the shape has complained */
        if (name->kind != DOC_STRING)
            continue;
        size_t index = prerequisite_find(reader, name->as.string, NULL);
        snprintf(path, sizeof path, "taskRoles.%s.prerequisites[%zu]", role->name, i);
        if (index == MISSING)
            prerequisite_unknown(reader, name, NULL, path);
        else
            prerequisite_visit(reader, &order, index);
    }
}

static void role_read(struct spec_reader *reader, struct text name, const struct doc *doc)
{
    struct spec *spec = reader->spec;
    struct spec_role *role = &spec->roles[spec->role_count++];
    size_t shown = name.length < SPEC_NAME_MAX ? name.length : SPEC_NAME_MAX;
    role->name = reader_copy(reader, (struct text){name.at, shown});
    if (name.length > SPEC_NAME_MAX)
        reader_problem(reader, doc, "the name of a role has at most 255 bytes", "taskRoles");
    role->instances = checked(doc_get_int(doc, "instances", 1), SPEC_INSTANCES_MAX);
    role->image = role_image(reader, role->name, doc);
    role->task_retry_count = (int32_t)doc_get_int(doc, "taskRetryCount", 0);
    role->placement = (struct spec_placement){
        .sku_type = "", .pinned_cell_id = "", .affinity_group = "", .within_one_cell = ""};
    role_completion(reader, role, doc);
    role_resources(reader, role, doc);
    struct template_scope scope = role_scope(reader, role->name, doc);
    role->command = role_command(reader, role->name, doc, &scope);
    role_prerequisites(reader, role, doc, &scope);
}

static void roles_read(struct spec_reader *reader)
{
    const struct doc *roles = doc_get_map(reader->root, "taskRoles");
    size_t count = roles->as.map.count;
    if (count > SPEC_ROLES_MAX)
        count = SPEC_ROLES_MAX; /* the shape has complained */
    reader->spec->roles = ARENA_ARRAY(reader->arena, struct spec_role, count);
    for (size_t i = 0; i < count; i++)
        if (roles->as.map.entries[i].value->kind == DOC_MAP)
            role_read(reader, roles->as.map.entries[i].key, roles->as.map.entries[i].value);
    reader_roles_finish(reader, roles);
}

static void deployments_check(struct spec_reader *reader)
{
    const struct doc *list = doc_get_list(reader->root, "deployments");
    size_t count = list->as.list.count;
    for (size_t i = 0; i < count && i < SPEC_LIST_MAX; i++) {
        const struct doc *item = list->as.list.items[i];
        const struct doc *name = doc_get_kind(item, "name", DOC_STRING);
        const struct doc *roles = doc_get_map(item, "taskRoles");
        size_t first = 0;
        if (name && deployment_find(reader, name->as.string, &first) && first < i)
            reader_problem(reader, name, "a deployment of this name stands before",
                           "deployments[%zu].name", i);
        for (size_t j = 0; j < roles->as.map.count; j++) {
            struct text role = roles->as.map.entries[j].key;
            if (!reader_role(reader, role) && j < SPEC_ROLES_MAX)
                role_unknown(reader, roles->as.map.entries[j].value, role, true,
                             "deployments[%zu].taskRoles", i);
        }
    }
}

static void defaults_read(struct spec_reader *reader)
{
    const struct doc *defaults = doc_get(reader->root, "defaults");
    const struct doc *deployment = doc_get_kind(defaults, "deployment", DOC_STRING);
    const struct doc *list = doc_get_list(reader->root, "deployments");
    struct text cluster = doc_get_text(defaults, "virtualCluster", "");
    struct near near = {0};
    size_t index;
    reader->spec->virtual_cluster =
        cluster.length ? reader_copy(reader, cluster) : reader_copy(reader, TEXT("default"));
    if (!deployment || deployment_find(reader, deployment->as.string, &index))
        return;
    struct problem *problem =
        reader_problem(reader, deployment, "names no deployment", "defaults.deployment");
    for (size_t i = 0; i < list->as.list.count; i++)
        near_offer(&near, deployment->as.string, doc_get_text(list->as.list.items[i], "name", ""));
    near_hint(&near, reader->problems, problem);
}

void spec_v2_read(struct spec_reader *reader)
{
    struct spec *spec = reader->spec;
    spec->name = reader_copy(reader, doc_get_text(reader->root, "name", ""));
    spec->retry_count = (int32_t)doc_get_int(reader->root, "jobRetryCount", 0);
    spec->code_dir = spec->data_dir = spec->output_dir = spec->auth_file = "";
    spec_secrets_read(reader);
    prerequisites_read(reader);
    defaults_read(reader);
    roles_read(reader);
    deployments_check(reader);
    spec_v2_extras_read(reader);
}
