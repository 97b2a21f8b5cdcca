#include "spec/convert.h"

#include <assert.h>
#include <stdio.h>

#include "base/buf.h"
#include "doc/yaml_writer.h"
#include "spec/fields.h"
#include "spec/read.h"

struct converter {
    struct spec_reader *reader;
    const struct spec *spec;
    struct yaml_writer yaml;
    const char **role_names; /* in protocol 2 */
    struct buf losses;       /* lines */
    size_t loss_count;
};

static const struct place *key_place(const struct doc *doc, const char *key)
{
    for (size_t i = 0; doc && doc->kind == DOC_MAP && i < doc->as.map.count; i++)
        if (text_is(doc->as.map.entries[i].key, key))
            return &doc->as.map.entries[i].place;
    return NULL;
}

static void loss(struct converter *c, const struct doc *doc, const char *path, const char *text)
{
    reader_warning(c->reader, doc, text, "%s", path);
    buf_format(&c->losses, "%s: %s\n", path, text);
    c->loss_count++;
}

/* Those in `doc` that no line has taken: it ends before the line where the next thing begins. */
static void comments_left(struct converter *c, const struct doc *doc)
{
    const uint32_t first = doc->place.line, end = doc->end.line;
    yaml_comments_left(&c->yaml, first, end > first ? end - 1 : first);
}

static bool is_market(const struct converter *c)
{
    return c->spec->format == SPEC_MARKET;
}

static void key(struct converter *c, const char *name, const struct place *from)
{
    yaml_key(&c->yaml, text_of(name), from);
}

static void key_text(struct converter *c, const char *name, struct text text,
                     const struct place *from)
{
    key(c, name, from);
    yaml_text(&c->yaml, text);
}

static void key_int(struct converter *c, const char *name, int64_t value, const struct place *from)
{
    key(c, name, from);
    yaml_int(&c->yaml, value);
}

static void key_bool(struct converter *c, const char *name, bool value, const struct place *from)
{
    key(c, name, from);
    yaml_bool(&c->yaml, value);
}

static void key_open(struct converter *c, const char *name, const struct place *from)
{
    key(c, name, from);
    yaml_open(&c->yaml);
}

static void item_text(struct converter *c, struct text text, const struct place *from)
{
    yaml_item(&c->yaml, from);
    yaml_text(&c->yaml, text);
}

/* ---- names ---- */

/* Letters, digits, `_` and, where allowed, `-`; with `is_identifier` no digit first. */
static const char *name_fit(struct arena *arena, const char *name, bool is_identifier)
{
    cleanup_buf struct buf fit = BUF_INIT;
    if (is_identifier && name[0] >= '0' && name[0] <= '9')
        buf_char(&fit, '_');
    for (; *name; name++) {
        bool is_good = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                       (*name >= '0' && *name <= '9') || *name == '_' ||
                       (*name == '-' && !is_identifier);
        buf_add(&fit, is_good ? name : "_", 1);
    }
    const size_t length = fit.length < SPEC_NAME_MAX ? fit.length : SPEC_NAME_MAX;
    return arena_copy(arena, (struct text){buf_cstr(&fit), length});
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The same, and another than the names before. */
static const char *name_unique(struct converter *c, const char *name, const char *const *before,
                               size_t count)
{
    enum { NUMBER_ROOM = 8 };
    struct arena *arena = c->reader->scratch;
    const char *fit = name_fit(arena, name, true), *unique = fit;
    for (size_t number = 2; is_among(unique, before, count); number++)
        unique = arena_format(arena, "%.*s_%zu", SPEC_NAME_MAX - NUMBER_ROOM, fit, number);
    return unique;
}

static const struct doc *roles_of(const struct converter *c)
{
    return doc_get_list(c->reader->raw, is_market(c) ? "tasks" : "taskRoles");
}

/* The file's own map of role `index`. */
static const struct doc *role_doc(const struct converter *c, size_t index)
{
    return roles_of(c)->as.list.items[index];
}

/* The same with its parameters put in. */
static const struct doc *role_expanded(const struct converter *c, size_t index)
{
    return doc_get_list(c->reader->root, "tasks")->as.list.items[index];
}

static void names_choose(struct converter *c)
{
    const struct spec *spec = c->spec;
    c->role_names = ARENA_ARRAY(c->reader->scratch, const char *, spec->role_count);
    for (size_t i = 0; i < spec->role_count; i++) {
        c->role_names[i] = name_unique(c, spec->roles[i].name, c->role_names, i);
        if (strcmp(c->role_names[i], spec->roles[i].name) != 0)
            reader_warning(c->reader, role_doc(c, i),
                           "gets another name, and so do the variables that have it in theirs",
                           "%s[%zu]", is_market(c) ? "tasks" : "taskRoles", i);
    }
}

/* ---- the head ---- */

static void label_copy(struct converter *c, const struct doc *from, const char *name)
{
    const struct doc *value = doc_get(from, name);
    if (!value || (value->kind == DOC_STRING && value->as.string.length == 0))
        return;
    key(c, name, key_place(from, name));
    yaml_doc(&c->yaml, value);
}

static void head_write(struct converter *c)
{
    const struct doc *raw = c->reader->raw;
    const char *name_key = is_market(c) ? "name" : "jobName";
    const char *name = name_fit(c->reader->scratch, c->spec->name, false);
    key_int(c, "protocolVersion", 2, key_place(raw, "protocol_version"));
    key_text(c, "name", text_of(name), key_place(raw, name_key));
    if (strcmp(name, c->spec->name) != 0)
        reader_warning(c->reader, doc_get(raw, name_key),
                       "gets another name: protocol 2 allows letters, digits, _ and -", "%s",
                       name_key);
    key_text(c, "type", TEXT("job"), key_place(raw, "type"));
    if (!is_market(c))
        return;
    label_copy(c, raw, "version");
    label_copy(c, raw, "contributor");
    label_copy(c, raw, "description");
}

/* ---- prerequisites ---- */

/* One address for a script or an output, a list for data. */
static void uri_write(struct converter *c, const struct doc *item, bool is_list)
{
    const struct doc *uri = doc_get(item, "uri");
    const struct place *from = key_place(item, "uri");
    cleanup_buf struct buf joined = BUF_INIT;
    if (!uri)
        return;
    if (is_list && uri->kind == DOC_STRING) {
        key_open(c, "uri", from);
        item_text(c, uri->as.string, NULL);
        yaml_close(&c->yaml);
        return;
    }
    if (is_list || uri->kind == DOC_STRING) {
        key(c, "uri", from);
        yaml_doc(&c->yaml, uri);
        return;
    }
    for (size_t i = 0; i < uri->as.list.count; i++)
        buf_format(&joined, "%s%.*s", i ? "," : "", TEXT_ARG(uri->as.list.items[i]->as.string));
    key_text(c, "uri", buf_as_text(&joined), from);
}

static void market_prerequisite_write(struct converter *c, const struct doc *item)
{
    struct text type = doc_get_text(item, "type", "");
    yaml_item_open(&c->yaml, &item->place);
    key_text(c, "name", doc_get_text(item, "name", ""), key_place(item, "name"));
    key_text(c, "type", type, key_place(item, "type"));
    label_copy(c, item, "version");
    label_copy(c, item, "contributor");
    label_copy(c, item, "description");
    uri_write(c, item, text_is(type, "data"));
    comments_left(c, item);
    yaml_close(&c->yaml);
}

static void prerequisites_write(struct converter *c)
{
    const struct doc *raw = c->reader->raw;
    const struct doc *list = doc_get_list(raw, "prerequisites");
    key_open(c, "prerequisites", key_place(raw, "prerequisites"));
    for (size_t i = 0; i < list->as.list.count && is_market(c); i++)
        market_prerequisite_write(c, list->as.list.items[i]);
    if (!is_market(c)) {
        yaml_item_open(&c->yaml, key_place(raw, "image"));
        key_text(c, "name", TEXT("image"), NULL);
        key_text(c, "type", TEXT("dockerimage"), NULL);
        key_text(c, "uri", text_of(c->spec->images[0].uri), NULL);
        yaml_close(&c->yaml);
    }
    yaml_close(&c->yaml);
}

/* ---- roles ---- */

/* Whether a template gives what was put in: it leaves out a null, and puts nothing into a value. */
static bool is_template_value(const struct doc *value)
{
    struct market_reference reference;
    if (value->kind == DOC_NULL)
        return false;
    if (value->kind == DOC_STRING)
        return !market_reference_next(value->as.string, 0, &reference);
    for (size_t i = 0; value->kind == DOC_LIST && i < value->as.list.count; i++)
        if (!is_template_value(value->as.list.items[i]))
            return false;
    return true;
}

static void line_convert(struct converter *c, const struct doc *task, struct text line,
                         struct buf *out);

/* What a task means by a name; in there the job's values are named, and nothing further. */
static void value_convert(struct converter *c, const struct doc *value, struct buf *out)
{
    if (value->kind == DOC_BOOL)
        buf_string(out, value->as.boolean ? "true" : "false");
    else if (value->kind != DOC_LIST)
        line_convert(c, NULL, value->source, out);
    for (size_t i = 0; value->kind == DOC_LIST && i < value->as.list.count; i++) {
        if (i > 0)
            buf_char(out, ',');
        value_convert(c, value->as.list.items[i], out);
    }
}

/* `$$x$$` of the job becomes a template; what the task means by it is put in. */
static void line_convert(struct converter *c, const struct doc *task, struct text line,
                         struct buf *out)
{
    const struct doc *parameters = doc_get(c->reader->raw, "parameters");
    struct market_reference reference;
    size_t from = 0;
    while (market_reference_next(line, from, &reference)) {
        const struct doc *own = market_of_task(task, reference.name);
        const struct doc *value = own ? own : market_value(parameters, reference.name);
        buf_add(out, line.at + from, reference.begin - from);
        if (value && (own || (task && !is_template_value(value))))
            value_convert(c, value, out);
        else if (value)
            buf_format(out, "<%% $parameters.%.*s %%>", TEXT_ARG(reference.name));
        else
            buf_add(out, line.at + reference.begin, reference.end - reference.begin);
        from = reference.end;
    }
    buf_add(out, line.at + from, line.length - from);
}

static bool is_variable(const char *name)
{
    const char *fit = name;
    if (*fit >= '0' && *fit <= '9')
        return false;
    while ((*fit >= 'a' && *fit <= 'z') || (*fit >= 'A' && *fit <= 'Z') ||
           (*fit >= '0' && *fit <= '9') || *fit == '_')
        fit++;
    return !*fit;
}

static void envs_write(struct converter *c)
{
    const struct doc *envs = doc_get(c->reader->raw, "jobEnvs");
    for (size_t i = 0; i < c->spec->env_count; i++) {
        const struct spec_pair *env = &c->spec->envs[i];
        cleanup_buf struct buf line = BUF_INIT;
        if (!is_variable(env->name))
            continue; /* told once, with the other losses */
        buf_format(&line, "export %s=", env->name);
        buf_shell_word(&line, text_of(env->value));
        item_text(c, buf_as_text(&line), key_place(envs, env->name));
    }
}

/* The prerequisites that the task names once its parameters are put in, and its own lines. */
static void market_commands_write(struct converter *c, size_t index)
{
    cleanup_market_lines struct market_lines lines = {.arena = c->reader->scratch};
    const struct doc *task = role_doc(c, index);
    market_lines_read(&lines, c->reader->root, role_expanded(c, index), doc_get(task, "command"));
    for (size_t i = 0; i < lines.count; i++) {
        const struct market_line *line = &lines.items[i];
        cleanup_buf struct buf text = BUF_INIT;
        if (line->is_own)
            line_convert(c, task, line->text, &text);
        else
            buf_text(&text, line->text);
        item_text(c, buf_as_text(&text), line->doc ? &line->doc->place : NULL);
    }
}

static void commands_write(struct converter *c, size_t index)
{
    const struct doc *task = role_doc(c, index);
    key_open(c, "commands", key_place(task, "command"));
    /* early commands ran without these, and a pipe or a variable that is not set may rely on it */
    item_text(c, TEXT("set +e +u +o pipefail"), NULL);
    envs_write(c);
    if (is_market(c)) {
        market_commands_write(c, index);
    } else {
        item_text(c, text_of(c->spec->roles[index].command), NULL);
    }
    yaml_close(&c->yaml);
}

static void ports_write(struct converter *c, const struct spec_role *role, const struct doc *list,
                        size_t index)
{
    const char **labels = ARENA_ARRAY(c->reader->scratch, const char *, role->port_count);
    size_t own = list->as.list.count < role->port_count ? list->as.list.count : role->port_count;
    if (own == 0)
        return;
    key_open(c, "ports", NULL);
    for (size_t i = 0; i < own; i++) {
        const struct spec_port *port = &role->ports[i];
        char path[96];
        snprintf(path, sizeof path, "%s[%zu]%s.portList[%zu]", is_market(c) ? "tasks" : "taskRoles",
                 index, is_market(c) ? ".resource" : "", i);
        labels[i] = name_unique(c, port->label, labels, i);
        key_int(c, labels[i], port->count, &list->as.list.items[i]->place);
        if (strcmp(labels[i], port->label) != 0)
            loss(c, list->as.list.items[i], path, "protocol 2 does not allow this label");
        if (port->begin_at)
            loss(c, list->as.list.items[i], path, "protocol 2 cannot ask for the first port");
    }
    yaml_close(&c->yaml);
}

/* Where the fields of a role's resources stand, which have other names in each format. */
struct role_places {
    const struct doc *role, *resource, *each, *ports;
    const char *instances, *cpu, *gpu;
};

static struct role_places role_places(const struct converter *c, size_t index)
{
    const struct doc *role = role_doc(c, index), *resource = doc_get(role, "resource");
    if (!is_market(c))
        return (struct role_places){
            role,         role,        role,       doc_get_list(role, "portList"),
            "taskNumber", "cpuNumber", "gpuNumber"};
    return (struct role_places){role,
                                resource,
                                doc_get(resource, "resourcePerInstance"),
                                doc_get_list(resource, "portList"),
                                "instances",
                                "cpu",
                                "gpu"};
}

static void prerequisite_names_write(struct converter *c, const struct doc *task)
{
    static const char *const types[] = {"data", "script", "output"};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (doc_get_text(task, types[i], "").length)
            label_copy(c, task, types[i]);
}

static void role_write(struct converter *c, size_t index)
{
    const struct spec_role *role = &c->spec->roles[index];
    const struct role_places at = role_places(c, index);
    const char *image = is_market(c) ? c->spec->images[role->image].name : "image";
    key_open(c, c->role_names[index], &at.role->place);
    key_int(c, "instances", role->instances, key_place(at.resource, at.instances));
    key_open(c, "completion", NULL);
    key_int(c, "minFailedInstances", role->completion.min_failed,
            key_place(at.role, "minFailedTaskCount"));
    key_int(c, "minSucceededInstances", role->completion.min_succeeded,
            key_place(at.role, "minSucceededTaskCount"));
    yaml_close(&c->yaml);
    key_text(c, "dockerImage", text_of(image), key_place(at.role, "dockerimage"));
    if (is_market(c))
        prerequisite_names_write(c, role_expanded(c, index));
    key_open(c, "resourcePerInstance", key_place(at.resource, "resourcePerInstance"));
    key_int(c, "cpu", role->cpu, key_place(at.each, at.cpu));
    key_int(c, "memoryMB", (int64_t)role->memory_mib, key_place(at.each, "memoryMB"));
    key_int(c, "gpu", role->gpu, key_place(at.each, at.gpu));
    ports_write(c, role, at.ports, index);
    yaml_close(&c->yaml);
    key_open(c, "extraContainerOptions", NULL);
    key_int(c, "shmMB", role->shm_mib, key_place(at.each, "shmMB"));
    yaml_close(&c->yaml);
    commands_write(c, index);
    comments_left(c, at.role);
    yaml_close(&c->yaml);
}

/* ---- the rest ---- */

static bool has_gpu_type(const struct spec *spec)
{
    for (size_t i = 0; i < spec->role_count; i++)
        if (spec->roles[i].placement.sku_type[0])
            return true;
    return false;
}

static void gpu_types_write(struct converter *c)
{
    if (!has_gpu_type(c->spec))
        return;
    key_open(c, "hivedScheduler", NULL);
    key_open(c, "taskRoles", NULL);
    for (size_t i = 0; i < c->spec->role_count; i++) {
        if (!c->spec->roles[i].placement.sku_type[0])
            continue;
        key_open(c, c->role_names[i], NULL);
        key_text(c, "skuType", text_of(c->spec->roles[i].placement.sku_type),
                 key_place(c->reader->raw, "gpuType"));
        yaml_close(&c->yaml);
    }
    yaml_close(&c->yaml);
    yaml_close(&c->yaml);
}

/* Every early job of several tasks had ssh between them, where the image had an ssh server. */
static void ssh_write(struct converter *c)
{
    if (spec_task_count(c->spec) < 2)
        return;
    key_open(c, SPEC_PLUGIN_PREFIX, NULL);
    yaml_item_open(&c->yaml, NULL);
    key_text(c, "plugin", TEXT("ssh"), NULL);
    key_text(c, "failurePolicy", TEXT("ignore"), NULL);
    key_open(c, "parameters", NULL);
    key_bool(c, "jobssh", true, NULL);
    key_bool(c, "sshbarrier", true, NULL);
    yaml_close(&c->yaml);
    yaml_close(&c->yaml);
    yaml_close(&c->yaml);
}

static bool is_written_here(struct text name)
{
    return text_is(name, "debug") || text_is(name, "startBarrier") ||
           text_is(name, "hivedScheduler") || text_is(name, SPEC_PLUGIN_PREFIX) ||
           text_is(name, "gangAllocation") || text_is(name, "storages");
}

static void extras_write(struct converter *c)
{
    const struct doc *raw = c->reader->raw, *extras = doc_get_map(raw, "extras");
    key_open(c, "extras", key_place(raw, "extras"));
    key_bool(c, "startBarrier", true, NULL);
    if (c->spec->is_debug)
        key_bool(c, "debug", true, key_place(raw, "isDebug"));
    for (size_t i = 0; i < extras->as.map.count && !is_market(c); i++) {
        const struct doc_entry *entry = &extras->as.map.entries[i];
        if (is_written_here(entry->key))
            continue; /* format 1 did nothing by them */
        yaml_key(&c->yaml, entry->key, &entry->place);
        yaml_doc(&c->yaml, entry->value);
    }
    gpu_types_write(c);
    ssh_write(c);
    yaml_close(&c->yaml);
}

static void retries_write(struct converter *c)
{
    const struct doc *raw = c->reader->raw, *count = doc_get(raw, "retryCount");
    int32_t retries = c->spec->retry_count;
    if (retries == -2)
        loss(c, count, "retryCount", "protocol 2 does not run a job again after it has succeeded");
    key_int(c, "jobRetryCount", retries < 0 ? SPEC_RETRY_MAX : retries,
            key_place(raw, "retryCount"));
}

static void losses_find(struct converter *c)
{
    static const char *const folders[] = {"codeDir", "dataDir", "outputDir", "authFile"};
    const struct doc *raw = c->reader->raw;
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        if (doc_get_text(raw, folders[i], "").length)
            loss(c, doc_get(raw, folders[i]), folders[i],
                 "protocol 2 has no file space: mount a storage, or use secrets for a login");
    if (c->spec->kill_all_on_completed)
        loss(c, doc_get(raw, "killAllOnCompletedTaskNumber"), "killAllOnCompletedTaskNumber",
             "protocol 2 cannot count over all roles: see completion");
    for (size_t i = 0; i < c->spec->env_count; i++)
        if (!is_variable(c->spec->envs[i].name))
            loss(c, doc_get(doc_get(raw, "jobEnvs"), c->spec->envs[i].name), "jobEnvs",
                 "a shell cannot set a variable of this name");
}

static void losses_write(struct converter *c)
{
    struct text rest = text_trim(buf_as_text(&c->losses));
    while (rest.at && rest.length) {
        struct text line = text_cut(&rest, '\n');
        yaml_comment(&c->yaml,
                     text_of(arena_format(c->reader->scratch, "Lost: %.*s", TEXT_ARG(line))));
    }
}

static void all_write(struct converter *c)
{
    const struct doc *raw = c->reader->raw;
    names_choose(c);
    if (!is_market(c)) /* above the brace, which has no line any more */
        yaml_comments_left(&c->yaml, 0, raw->place.line);
    head_write(c);
    prerequisites_write(c);
    if (is_market(c) && doc_count(doc_get(raw, "parameters"))) {
        key(c, "parameters", key_place(raw, "parameters"));
        yaml_doc(&c->yaml, doc_get(raw, "parameters"));
    }
    retries_write(c);
    key_open(c, "taskRoles", key_place(raw, is_market(c) ? "tasks" : "taskRoles"));
    for (size_t i = 0; i < c->spec->role_count; i++)
        role_write(c, i);
    yaml_close(&c->yaml);
    key_open(c, "defaults", NULL);
    key_text(c, "virtualCluster", text_of(c->spec->virtual_cluster),
             key_place(raw, "virtualCluster"));
    yaml_close(&c->yaml);
    extras_write(c);
    losses_find(c);
    losses_write(c);
    yaml_comments_left(&c->yaml, 0, UINT32_MAX);
}

int spec_convert(struct text source, struct arena *scratch, struct buf *out,
                 struct problems *problems, struct spec_converted *converted)
{
    struct spec_reader reader = {.scratch = scratch, .problems = problems};
    *converted = (struct spec_converted){0};
    int code = spec_read(source, &reader);
    if (code)
        return code;
    converted->format = reader.spec->format;
    if (converted->format == SPEC_V2) {
        buf_text(out, source);
    } else {
        cleanup_comments struct doc_comments comments;
        doc_comments_read(&comments, source, reader.raw, reader.is_json ? DOC_JSON : DOC_YAML);
        struct converter c = {
            .reader = &reader, .spec = reader.spec, .yaml = {.out = out, .comments = &comments}};
        all_write(&c);
        converted->loss_count = c.loss_count;
        buf_release(&c.losses);
    }
    spec_free(reader.spec);
    return 0;
}
