/* Early PAI and QIZHI job files: format 1, JSON. */
#include <ctype.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/printable.h"
#include "spec/fields.h"
#include "spec/read.h"

uint32_t early_number(const struct doc *doc, const char *key, uint32_t fallback, int64_t most)
{
    int64_t value = doc_get_int(doc, key, fallback);
    return value < 0 || value > most ? fallback : (uint32_t)value;
}

static void ports_overlap_check(struct spec_reader *reader, const struct spec_role *role,
                                const struct doc *port, const char *path)
{
    const struct spec_port *mine = &role->ports[role->port_count - 1];
    for (size_t i = 0; i + 1 < role->port_count; i++) {
        const struct spec_port *other = &role->ports[i];
        if (strcmp(mine->label, other->label) == 0)
            reader_problem(reader, port, "a port of this label stands before", "%s.label", path);
        else if (mine->begin_at && other->begin_at &&
                 mine->begin_at < other->begin_at + other->count &&
                 other->begin_at < mine->begin_at + mine->count)
            reader_problem(reader, port, "overlaps the ports before", "%s.beginAt", path);
    }
}

void early_ports_read(struct spec_reader *reader, struct spec_role *role, const struct doc *list,
                      const char *path)
{
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct doc *item = list->as.list.items[i];
        char item_path[96];
        if (i == SPEC_LIST_MAX)
            break; /* the shape has complained */
        snprintf(item_path, sizeof item_path, "%s[%zu]", path, i);
        struct spec_port *port = READER_ADD(reader, role->ports, role->port_count);
        port->label = reader_copy(reader, doc_get_text(item, "label", ""));
        port->count = early_number(item, "portNumber", 1, SPEC_PORTS_MAX);
        port->begin_at = early_number(item, "beginAt", 0, 65535);
        if (port->begin_at && port->begin_at + port->count > 65536)
            reader_problem(reader, item, "the ports go beyond 65535", "%s.beginAt", item_path);
        ports_overlap_check(reader, role, item, item_path);
    }
    reader_ports_finish(reader, role, list, path);
}

static int32_t threshold(struct spec_reader *reader, uint32_t instances, const struct doc *doc,
                         const char *path, const char *key, int32_t fallback)
{
    const struct doc *value = doc_get(doc, key);
    int64_t count = doc_get_int(doc, key, fallback);
    if (!value)
        return fallback;
    if (value->kind == DOC_NULL)
        return -1;
    if (count > (int64_t)instances)
        reader_problem(reader, value, "must not exceed the number of tasks", "%s.%s", path, key);
    return (int32_t)count;
}

void early_completion_read(struct spec_reader *reader, struct spec_role *role,
                           const struct doc *doc, const char *path)
{
    role->completion.min_failed =
        threshold(reader, role->instances, doc, path, "minFailedTaskCount", 1);
    role->completion.min_succeeded =
        threshold(reader, role->instances, doc, path, "minSucceededTaskCount", -1);
}

void early_role_name_read(struct spec_reader *reader, struct spec_role *role,
                          const struct doc *name, const char *path)
{
    const struct spec *spec = reader->spec;
    role->name = "";
    if (!name || name->kind != DOC_STRING)
        return;
    if (name->as.string.length <= SPEC_NAME_MAX)
        role->name = reader_copy(reader, name->as.string);
    if (strchr(role->name, '-'))
        reader_warning(reader, name, "the original platforms refuse \"-\" in the name of a role",
                       "%s", path);
    for (size_t i = 0; &spec->roles[i] < role; i++)
        if (strcmp(spec->roles[i].name, role->name) == 0) {
            reader_problem(reader, name, "a role of this name stands before", "%s", path);
            return;
        }
}

void early_role_defaults(struct spec_reader *reader, struct spec_role *role)
{
    /* a server without GPUs must not occupy a device only because the workers name its type */
    struct text gpu_type = role->gpu ? doc_get_text(reader->root, "gpuType", "") : TEXT("");
    role->placement = (struct spec_placement){
        .sku_type = reader_copy(reader, gpu_type.length <= SPEC_NAME_MAX ? gpu_type : TEXT("")),
        .pinned_cell_id = "",
        .affinity_group = "",
        .within_one_cell = ""};
    role->is_ssh_enabled = role->has_ssh_barrier = role->is_ssh_optional = true;
}

static void role_read(struct spec_reader *reader, const struct doc *doc, size_t index)
{
    struct spec *spec = reader->spec;
    struct spec_role *role = &spec->roles[spec->role_count++];
    const struct doc *shm = doc_get(doc, "shmMB");
    char path[64], ports_path[96];
    snprintf(path, sizeof path, "taskRoles[%zu].name", index);
    early_role_name_read(reader, role, doc_get(doc, "name"), path);
    snprintf(path, sizeof path, "taskRoles[%zu]", index);
    role->instances = early_number(doc, "taskNumber", 1, SPEC_INSTANCES_MAX);
    role->cpu = early_number(doc, "cpuNumber", 1, SPEC_CPU_MAX);
    role->memory_mib = early_number(doc, "memoryMB", 100, SPEC_MEMORY_MIB_MAX);
    role->gpu = early_number(doc, "gpuNumber", 0, SPEC_GPU_MAX);
    role->shm_mib = early_number(doc, "shmMB", 64, SPEC_MEMORY_MIB_MAX);
    if (shm && role->shm_mib > role->memory_mib)
        reader_problem(reader, shm, "must not exceed memoryMB", "%s.shmMB", path);
    role->command = reader_copy(reader, doc_get_text(doc, "command", ""));
    early_completion_read(reader, role, doc, path);
    early_role_defaults(reader, role);
    snprintf(ports_path, sizeof ports_path, "%s.portList", path);
    early_ports_read(reader, role, doc_get_list(doc, "portList"), ports_path);
}

static void roles_read(struct spec_reader *reader)
{
    const struct doc *roles = doc_get_list(reader->root, "taskRoles");
    size_t count = roles->as.list.count;
    struct spec *spec = reader->spec;
    if (count > SPEC_ROLES_MAX)
        count = SPEC_ROLES_MAX; /* the shape has complained */
    spec->roles = ARENA_ARRAY(reader->arena, struct spec_role, count);
    for (size_t i = 0; i < count; i++)
        if (roles->as.list.items[i]->kind == DOC_MAP)
            role_read(reader, roles->as.list.items[i], i);
    reader_roles_finish(reader, roles);
    const struct doc *kill_all = doc_get(reader->root, "killAllOnCompletedTaskNumber");
    spec->kill_all_on_completed =
        early_number(reader->root, "killAllOnCompletedTaskNumber", 0, SPEC_TASKS_MAX);
    if (spec->kill_all_on_completed > spec_task_count(spec))
        reader_problem(reader, kill_all, "must not exceed the number of all tasks",
                       "killAllOnCompletedTaskNumber");
}

static bool has_one_of(struct text name, const char *others)
{
    for (size_t i = 0; i < name.length; i++)
        if (isalnum((unsigned char)name.at[i]) || (name.at[i] && strchr(others, name.at[i])))
            return true;
    return false;
}

/* Any value: text as it is, null as the empty text, anything else as JSON writes it. */
static const char *env_value(struct spec_reader *reader, const struct doc *doc, struct text name)
{
    cleanup_buf struct buf json = BUF_INIT;
    const char *value = "";
    if (doc->kind == DOC_STRING)
        return reader_copy(reader, doc->as.string);
    if (doc->kind == DOC_NULL)
        return value;
    if (doc_to_json(doc, SPEC_PARAMETERS_MAX, &json))
        reader_problem(reader, doc, "longer than 65536 bytes", "jobEnvs.%.64s", name.at);
    else
        value = reader_copy(reader, buf_as_text(&json));
    return value;
}

/* At the key, named as far as it can be shown. */
static void env_name_wrong(struct spec_reader *reader, const struct doc_entry *entry)
{
    enum { SHOWN_MAX = 64 };
    cleanup_buf struct buf shown = BUF_INIT;
    printable_put(&shown, entry->key);
    const struct text head = printable_head(buf_as_text(&shown), SHOWN_MAX);
    const char *path = arena_format(reader->arena, "jobEnvs.%.*s", TEXT_ARG(head));
    problem_add(reader->problems, entry->place, path, "not a name that a variable can have");
}

static void envs_read(struct spec_reader *reader)
{
    const struct doc *envs = doc_get_map(reader->root, "jobEnvs");
    struct spec *spec = reader->spec;
    size_t count = envs->as.map.count;
    if (count > SPEC_LIST_MAX) {
        reader_problem(reader, envs, "more than 256 variables", "jobEnvs");
        return;
    }
    spec->envs = ARENA_ARRAY(reader->arena, struct spec_pair, count);
    for (size_t i = 0; i < count; i++) {
        const struct doc_entry *entry = &envs->as.map.entries[i];
        struct text name = entry->key;
        if (!has_one_of(name, "_") || name.length > SPEC_NAME_MAX ||
            memchr(name.at, '=', name.length) || memchr(name.at, '\0', name.length)) {
            env_name_wrong(reader, entry);
            continue;
        }
        spec->envs[spec->env_count++] = (struct spec_pair){
            .name = reader_copy(reader, name), .value = env_value(reader, entry->value, name)};
        if (text_is(name, "isDebug") &&
            (entry->value->kind != DOC_BOOL || entry->value->as.boolean))
            spec->is_debug = !text_is(doc_get_text(envs, "isDebug", ""), "false");
    }
}

static const char *top_text(struct spec_reader *reader, const char *key)
{
    struct text text = doc_get_text(reader->root, key, "");
    return text.length <= SPEC_URI_MAX ? reader_copy(reader, text) : "";
}

void spec_v1_read(struct spec_reader *reader)
{
    struct spec *spec = reader->spec;
    spec->name = top_text(reader, "jobName");
    spec->virtual_cluster = top_text(reader, "virtualCluster");
    if (!spec->virtual_cluster[0])
        spec->virtual_cluster = "default";
    spec->code_dir = top_text(reader, "codeDir");
    spec->data_dir = top_text(reader, "dataDir");
    spec->output_dir = top_text(reader, "outputDir");
    spec->auth_file = top_text(reader, "authFile");
    spec->retry_count = (int32_t)doc_get_int(reader->root, "retryCount", 0);
    spec->is_gang = spec->has_start_barrier = true;
    spec->ignores_suggested_nodes = true;
    spec->images = ARENA_NEW(reader->arena, struct spec_image);
    spec->image_count = 1;
    spec->images[0] = (struct spec_image){.name = "", .uri = top_text(reader, "image")};
    roles_read(reader);
    envs_read(reader);
    const struct doc *extras = doc_get_map(reader->root, "extras");
    for (size_t i = 0; i < extras->as.map.count; i++)
        if (!has_one_of(extras->as.map.entries[i].key, "._"))
            reader_problem(reader, extras->as.map.entries[i].value,
                           "a name needs a letter, a digit, . or _", "extras");
    spec->is_debug |= doc_get_bool(reader->root, "isDebug", false);
    spec_extensions_read(reader, doc_get(reader->root, "extras"));
}
