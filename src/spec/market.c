/* The first YAML format of OpenPAI (0.8 to 0.12), made for its marketplace: `protocol_version: v2`,
 * tasks, and prerequisites with commands. The server of that time turned it into format 1. */
#include <assert.h>
#include <stdio.h>

#include "base/buf.h"
#include "spec/fields.h"
#include "spec/read.h"

/* ---- `$$a.b$$` ---- */

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_';
}

bool market_reference_next(struct text source, size_t from, struct market_reference *found)
{
    while (from < source.length) {
        size_t open = text_find((struct text){source.at + from, source.length - from}, TEXT("$$"));
        if (open == SIZE_MAX)
            return false;
        size_t begin = from + open, name = begin + 2, end = name;
        while (end < source.length && is_name_character(source.at[end]))
            end++;
        if (end > name && end + 2 <= source.length && memcmp(source.at + end, "$$", 2) == 0) {
            *found = (struct market_reference){begin, end + 2, {source.at + name, end - name}};
            return true;
        }
        from = begin + 1;
    }
    return false;
}

static bool is_value(const struct doc *doc)
{
    bool is_plain = doc && doc->kind != DOC_MAP && doc->kind != DOC_NULL;
    for (size_t i = 0; is_plain && doc->kind == DOC_LIST && i < doc->as.list.count; i++)
        is_plain =
            doc->as.list.items[i]->kind != DOC_MAP && doc->as.list.items[i]->kind != DOC_LIST;
    return is_plain;
}

/* Down the dots; what is no single value, nor a list of such, cannot be put into a text. */
const struct doc *market_value(const struct doc *from, struct text name)
{
    while (from && name.at)
        from = doc_find(from, text_cut(&name, '.'));
    return is_value(from) ? from : NULL;
}

const struct doc *market_of_task(const struct doc *task, struct text name)
{
    const struct doc *own = market_value(doc_get(task, "parameters"), name);
    return own || !task ? own : market_value(task, name);
}

struct expansion {
    struct spec_reader *reader;
    const struct doc *parameters; /* of the job */
    const struct doc *task;       /* in its command and its own parameters, else NULL */
    bool is_full;                 /* said once */
};

static const struct doc *reference_value(const struct expansion *e, struct text name)
{
    const struct doc *value = e->task ? market_of_task(e->task, name) : NULL;
    return value ? value : market_value(e->parameters, name);
}

static void text_expand(const struct expansion *e, struct text source, struct buf *out);

static void value_put(const struct expansion *e, const struct doc *value, struct buf *out)
{
    if (value->kind == DOC_LIST) {
        for (size_t i = 0; i < value->as.list.count && out->length <= SPEC_COMMAND_MAX; i++) {
            if (i > 0)
                buf_char(out, ',');
            value_put(e, value->as.list.items[i], out);
        }
    } else if (value->kind == DOC_BOOL) {
        buf_string(out, value->as.boolean ? "true" : "false");
    } else if (e->task) {
        const struct expansion of_job = {.parameters = e->parameters};
        text_expand(&of_job, value->source, out); /* what a task names may name the job's */
    } else {
        buf_text(out, value->source);
    }
}

/* What names nothing stays as it is: `$$` is the shell's process number, too. */
static void text_expand(const struct expansion *e, struct text source, struct buf *out)
{
    struct market_reference reference;
    size_t from = 0;
    while (out->length <= SPEC_COMMAND_MAX && market_reference_next(source, from, &reference)) {
        const struct doc *value = reference_value(e, reference.name);
        buf_add(out, source.at + from, reference.begin - from);
        if (value)
            value_put(e, value, out);
        else
            buf_add(out, source.at + reference.begin, reference.end - reference.begin);
        from = reference.end;
    }
    buf_add(out, source.at + from, source.length - from);
}

static const struct doc *string_expand(struct expansion *e, const struct doc *doc)
{
    struct market_reference reference;
    struct text source = doc->as.string;
    struct doc *copy;
    if (!market_reference_next(source, 0, &reference))
        return doc;
    copy = ARENA_NEW(e->reader->scratch, struct doc);
    const struct doc *value = reference.begin == 0 && reference.end == source.length && !e->task
                                  ? reference_value(e, reference.name)
                                  : NULL;
    if (value) { /* a number stays a number */
        *copy = *value;
        copy->place = doc->place;
        copy->end = doc->end;
        return copy;
    }
    cleanup_buf struct buf text = BUF_INIT;
    text_expand(e, source, &text);
    e->reader->rendered_bytes += text.length;
    if (e->is_full || text.length > SPEC_COMMAND_MAX ||
        e->reader->rendered_bytes > SPEC_RENDERED_MAX) {
        if (!e->is_full)
            reader_problem(e->reader, doc, "too long with its parameters put in", "%s", "");
        e->is_full = true;
        return doc;
    }
    *copy = *doc;
    copy->source = copy->as.string =
        (struct text){arena_copy(e->reader->scratch, buf_as_text(&text)), text.length};
    return copy;
}

static const struct doc *doc_expand(struct expansion *e, const struct doc *doc);

static const struct doc *list_expand(struct expansion *e, const struct doc *doc)
{
    struct doc *copy = ARENA_NEW(e->reader->scratch, struct doc);
    *copy = *doc;
    copy->as.list.items =
        ARENA_ARRAY(e->reader->scratch, const struct doc *, doc->as.list.count + 1);
    for (size_t i = 0; i < doc->as.list.count; i++)
        copy->as.list.items[i] = doc_expand(e, doc->as.list.items[i]);
    return copy;
}

static const struct doc *map_expand(struct expansion *e, const struct doc *doc)
{
    struct doc *copy = ARENA_NEW(e->reader->scratch, struct doc);
    *copy = *doc;
    copy->as.map.entries = ARENA_ARRAY(e->reader->scratch, struct doc_entry, doc->as.map.count + 1);
    copy->as.map.by_key = NULL; /* it would name the values as they were */
    for (size_t i = 0; i < doc->as.map.count; i++) {
        struct doc_entry *entry = &copy->as.map.entries[i];
        *entry = doc->as.map.entries[i];
        if (text_is(entry->key, "prerequisites") || text_is(entry->key, "parameters"))
            continue;
        e->task = text_is(entry->key, "command") ? doc : NULL;
        entry->value = doc_expand(e, entry->value);
        e->task = NULL;
    }
    return copy;
}

static const struct doc *doc_expand(struct expansion *e, const struct doc *doc)
{
    switch (doc->kind) {
    case DOC_NULL:
    case DOC_BOOL:
    case DOC_INT:
    case DOC_REAL:
        break;
    case DOC_STRING:
        return string_expand(e, doc);
    case DOC_LIST:
        return list_expand(e, doc);
    case DOC_MAP:
        return map_expand(e, doc);
    }
    return doc;
}

const struct doc *market_expand(struct spec_reader *reader, const struct doc *root)
{
    struct expansion e = {.reader = reader, .parameters = doc_get(root, "parameters")};
    return doc_expand(&e, root);
}

/* ---- reading ---- */

const struct doc *market_prerequisite(const struct doc *root, const char *type, struct text name)
{
    const struct doc *list = doc_get_list(root, "prerequisites");
    for (size_t i = 0; i < list->as.list.count && i < SPEC_LIST_MAX; i++) {
        const struct doc *item = list->as.list.items[i];
        if (text_is(doc_get_text(item, "type", ""), type) &&
            text_equal(doc_get_text(item, "name", ""), name))
            return item;
    }
    return NULL;
}

static void prerequisite_unknown(struct spec_reader *reader, const struct doc *name,
                                 const char *type, const char *path)
{
    const struct doc *list = doc_get_list(reader->root, "prerequisites");
    struct near near = {0};
    char text[80];
    snprintf(text, sizeof text, "names no prerequisite of type %s", type);
    struct problem *problem = reader_problem(reader, name, text, "%s.%s", path, type);
    for (size_t i = 0; i < list->as.list.count && i < SPEC_LIST_MAX; i++)
        if (text_is(doc_get_text(list->as.list.items[i], "type", ""), type))
            near_offer(&near, name->as.string, doc_get_text(list->as.list.items[i], "name", ""));
    near_hint(&near, reader->problems, problem);
}

/* A text, or a list of texts: both were accepted in their time. */
static void texts_check(struct spec_reader *reader, const struct doc *item, const char *key,
                        size_t index)
{
    const struct doc *value = doc_get(item, key);
    bool is_good = !value || value->kind == DOC_STRING || value->kind == DOC_LIST;
    for (size_t i = 0; is_good && value && value->kind == DOC_LIST && i < value->as.list.count; i++)
        is_good = value->as.list.items[i]->kind == DOC_STRING;
    if (!is_good)
        reader_problem(reader, value, "must be a string or a list of strings",
                       "prerequisites[%zu].%s", index, key);
}

static void prerequisites_check(struct spec_reader *reader)
{
    const struct doc *list = doc_get_list(reader->root, "prerequisites");
    for (size_t i = 0; i < list->as.list.count && i < SPEC_LIST_MAX; i++) {
        const struct doc *item = list->as.list.items[i];
        struct text name = doc_get_text(item, "name", ""), type = doc_get_text(item, "type", "");
        texts_check(reader, item, "command", i);
        if (text_is(type, "dockerimage") && !doc_get_kind(item, "uri", DOC_STRING))
            reader_problem(reader, item, "a dockerimage needs a uri, one string",
                           "prerequisites[%zu].uri", i);
        else
            texts_check(reader, item, "uri", i);
        if (name.length && market_prerequisite(reader->root, type.at, name) != item)
            reader_problem(reader, doc_get(item, "name"),
                           "a prerequisite of this type and name stands before",
                           "prerequisites[%zu].name", i);
    }
}

static uint32_t image_of(struct spec_reader *reader, const struct doc *task, const char *path)
{
    struct spec *spec = reader->spec;
    const struct doc *name = doc_get_kind(task, "dockerimage", DOC_STRING);
    const struct doc *image =
        name ? market_prerequisite(reader->root, "dockerimage", name->as.string) : NULL;
    if (!image) {
        if (name)
            prerequisite_unknown(reader, name, "dockerimage", path);
        return 0;
    }
    for (size_t i = 0; i < spec->image_count; i++)
        if (text_is(name->as.string, spec->images[i].name))
            return (uint32_t)i;
    struct spec_image *added = READER_ADD(reader, spec->images, spec->image_count);
    added->name = reader_copy(reader, name->as.string);
    added->uri = reader_copy(reader, doc_get_text(image, "uri", ""));
    return (uint32_t)(spec->image_count - 1);
}

static const char *command_of(struct spec_reader *reader, const struct doc *task, const char *path)
{
    cleanup_market_lines struct market_lines lines = {.arena = reader->scratch};
    cleanup_buf struct buf command = BUF_INIT;
    market_lines_read(&lines, reader->root, task, doc_get(task, "command"));
    for (size_t i = 0; i < lines.count && command.length <= SPEC_COMMAND_MAX; i++) {
        if (i > 0)
            buf_char(&command, '\n');
        buf_text(&command, lines.items[i].text);
    }
    if (command.length > SPEC_COMMAND_MAX)
        reader_problem(reader, task, "the task's command is longer than 262144 bytes", "%s.command",
                       path);
    else if (memchr(buf_cstr(&command), '\0', command.length))
        reader_problem(reader, task, "the command must not hold a NUL character", "%s.command",
                       path);
    else
        return reader_copy(reader, buf_as_text(&command));
    return "";
}

static void names_check(struct spec_reader *reader, const struct doc *task, const char *path)
{
    static const char *const types[] = {"data", "script", "output"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const struct doc *name = doc_get_kind(task, types[i], DOC_STRING);
        if (name && name->as.string.length &&
            !market_prerequisite(reader->root, types[i], name->as.string))
            prerequisite_unknown(reader, name, types[i], path);
    }
}

static void resources_read(struct spec_reader *reader, struct spec_role *role,
                           const struct doc *task, const char *path)
{
    const struct doc *resource = doc_get(task, "resource");
    const struct doc *each = doc_get(resource, "resourcePerInstance");
    const struct doc *shm = doc_get(each, "shmMB");
    char ports_path[96];
    role->instances = early_number(resource, "instances", 1, SPEC_INSTANCES_MAX);
    role->cpu = early_number(each, "cpu", 1, SPEC_CPU_MAX);
    role->memory_mib = early_number(each, "memoryMB", 100, SPEC_MEMORY_MIB_MAX);
    role->gpu = early_number(each, "gpu", 0, SPEC_GPU_MAX);
    role->shm_mib = early_number(each, "shmMB", 64, SPEC_MEMORY_MIB_MAX);
    if (shm && role->shm_mib > role->memory_mib)
        reader_problem(reader, shm, "must not exceed memoryMB",
                       "%s.resource.resourcePerInstance.shmMB", path);
    snprintf(ports_path, sizeof ports_path, "%s.resource.portList", path);
    early_ports_read(reader, role, doc_get_list(resource, "portList"), ports_path);
}

static void task_read(struct spec_reader *reader, const struct doc *task, size_t index)
{
    struct spec *spec = reader->spec;
    struct spec_role *role = &spec->roles[spec->role_count++];
    char path[64];
    snprintf(path, sizeof path, "tasks[%zu].role", index);
    early_role_name_read(reader, role, doc_get(task, "role"), path);
    snprintf(path, sizeof path, "tasks[%zu]", index);
    role->image = image_of(reader, task, path);
    names_check(reader, task, path);
    resources_read(reader, role, task, path);
    early_completion_read(reader, role, task, path);
    early_role_defaults(reader, role);
    role->command = command_of(reader, task, path);
    reader->rendered_bytes += strlen(role->command);
    if (reader->rendered_bytes > SPEC_RENDERED_MAX)
        reader_problem(reader, task, "the commands of all tasks are longer than 4194304 bytes",
                       "%s.command", path);
}

void spec_market_read(struct spec_reader *reader)
{
    enum { RETRIES = 1 }; /* what the server of that time took when the file said nothing */
    struct spec *spec = reader->spec;
    const struct doc *tasks = doc_get_list(reader->root, "tasks");
    size_t count = tasks->as.list.count < SPEC_ROLES_MAX ? tasks->as.list.count : SPEC_ROLES_MAX;
    spec->name = reader_copy(reader, doc_get_text(reader->root, "name", ""));
    struct text cluster = doc_get_text(reader->root, "virtualCluster", "");
    spec->virtual_cluster = reader_copy(reader, cluster.length ? cluster : TEXT("default"));
    spec->retry_count = (int32_t)doc_get_int(reader->root, "retryCount", RETRIES);
    spec->is_gang = spec->has_start_barrier = true;
    spec->ignores_suggested_nodes = true;
    spec->roles = ARENA_ARRAY(reader->arena, struct spec_role, count);
    prerequisites_check(reader);
    for (size_t i = 0; i < count; i++)
        if (tasks->as.list.items[i]->kind == DOC_MAP)
            task_read(reader, tasks->as.list.items[i], i);
    reader_roles_finish(reader, tasks);
    assert(spec->role_count <= SPEC_ROLES_MAX);
}
