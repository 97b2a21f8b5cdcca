#include "spec/spec.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/memory.h"
#include "spec/fields.h"
#include "spec/read.h"

enum { PATH_ROOM = SPEC_NAME_MAX + 300 };

static struct problem *problem_at(struct spec_reader *reader, const struct doc *doc,
                                  bool is_warning, const char *text, const char *path_format,
                                  va_list args) __attribute__((format(printf, 5, 0)));
static struct problem *problem_at(struct spec_reader *reader, const struct doc *doc,
                                  bool is_warning, const char *text, const char *path_format,
                                  va_list args)
{
    char path[PATH_ROOM];
    struct place place = doc ? doc->place : reader->root->place;
    vsnprintf(path, sizeof path, path_format, args);
    return is_warning ? problem_warn(reader->problems, place, path, "%s", text)
                      : problem_add(reader->problems, place, path, "%s", text);
}

struct problem *reader_problem(struct spec_reader *reader, const struct doc *doc, const char *text,
                               const char *path_format, ...)
{
    va_list args;
    va_start(args, path_format);
    struct problem *problem = problem_at(reader, doc, false, text, path_format, args);
    va_end(args);
    return problem;
}

struct problem *reader_warning(struct spec_reader *reader, const struct doc *doc, const char *text,
                               const char *path_format, ...)
{
    va_list args;
    va_start(args, path_format);
    struct problem *problem = problem_at(reader, doc, true, text, path_format, args);
    va_end(args);
    return problem;
}

const char *reader_copy(struct spec_reader *reader, struct text text)
{
    return text.length ? arena_copy(reader->arena, text) : "";
}

void *reader_grow(struct spec_reader *reader, void *items, size_t count, size_t item_size)
{
    enum { FIRST = 4 };
    bool is_full = count == 0 || (count >= FIRST && (count & (count - 1)) == 0);
    if (!is_full)
        return items;
    size_t room = count == 0 ? FIRST : count * 2;
    void *moved = arena_array(reader->arena, room, item_size);
    if (count)
        memcpy(moved, items, count * item_size);
    return moved;
}

struct spec_role *reader_role(struct spec_reader *reader, struct text name)
{
    for (size_t i = 0; i < reader->spec->role_count; i++)
        if (text_is(name, reader->spec->roles[i].name))
            return &reader->spec->roles[i];
    return NULL;
}

void role_unknown(struct spec_reader *reader, const struct doc *doc, struct text name,
                  bool is_warning, const char *path_format, ...)
{
    struct near near = {0};
    char text[120];
    va_list args;
    snprintf(text, sizeof text, "\"%.64s\" names no role%s", name.at,
             is_warning ? ", ignored" : "");
    va_start(args, path_format);
    struct problem *problem = problem_at(reader, doc, is_warning, text, path_format, args);
    va_end(args);
    for (size_t i = 0; i < reader->spec->role_count; i++)
        near_offer(&near, name, text_of(reader->spec->roles[i].name));
    near_hint(&near, reader->problems, problem);
}

bool spec_role_has_port(const struct spec_role *role, const char *label)
{
    for (size_t i = 0; i < role->port_count; i++)
        if (strcmp(role->ports[i].label, label) == 0)
            return true;
    return false;
}

void reader_ports_finish(struct spec_reader *reader, struct spec_role *role, const struct doc *doc,
                         const char *path)
{
    static const char *const always[] = {"ssh", "http"};
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNT_OF(always); i++)
        if (!spec_role_has_port(role, always[i]))
            *READER_ADD(reader, role->ports, role->port_count) =
                (struct spec_port){.label = always[i], .count = 1};
    for (size_t i = 0; i < role->port_count; i++)
        sum += role->ports[i].count;
    if (sum > SPEC_PORTS_MAX)
        reader_problem(reader, doc, "more than 1000 ports with ssh and http", "%s", path);
}

/* As OpenPAI's runtime named a role in variables: lower case, letters and digits only. */
static void name_reduce(const char *name, char *out)
{
    for (; *name; name++) {
        if (*name >= 'A' && *name <= 'Z')
            *out++ = (char)(*name - 'A' + 'a');
        else if ((*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9'))
            *out++ = *name;
    }
    *out = '\0';
}

static void alike_warn(struct spec_reader *reader, const struct doc *roles, size_t index)
{
    const struct spec_role *all = reader->spec->roles;
    char mine[SPEC_NAME_MAX + 1], other[SPEC_NAME_MAX + 1];
    name_reduce(all[index].name, mine);
    for (size_t i = 0; i < index; i++) {
        name_reduce(all[i].name, other);
        if (!mine[0] || strcmp(mine, other) != 0 || strcmp(all[i].name, all[index].name) == 0)
            continue;
        char text[160];
        snprintf(text, sizeof text, "variables with reduced names cannot tell it from %.64s",
                 all[i].name);
        const struct doc *doc = doc_get(roles, all[index].name);
        reader_warning(reader, doc ? doc : roles, text, "taskRoles.%s", all[index].name);
        return;
    }
}

void reader_roles_finish(struct spec_reader *reader, const struct doc *roles)
{
    const struct spec *spec = reader->spec;
    if (spec_task_count(spec) > SPEC_TASKS_MAX)
        reader_problem(reader, roles, "more than 20000 tasks in all", "taskRoles");
    for (size_t i = 1; i < spec->role_count; i++)
        alike_warn(reader, roles, i);
}

uint32_t spec_task_count(const struct spec *spec)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < spec->role_count; i++)
        sum += spec->roles[i].instances;
    return sum;
}

static struct spec *spec_new(enum spec_format format)
{
    struct arena arena;
    arena_init(&arena);
    struct spec *spec = ARENA_NEW(&arena, struct spec);
    spec->arena = ARENA_NEW(&arena, struct arena);
    *spec->arena = arena;
    spec->format = format;
    spec->priority = SPEC_TEST;
    spec->name = spec->virtual_cluster = spec->tag = spec->within_one_cell = "";
    spec->code_dir = spec->data_dir = spec->output_dir = spec->auth_file = "";
    return spec;
}

void spec_free(struct spec *spec)
{
    if (!spec)
        return;
    struct arena arena = *spec->arena; /* it lives in itself */
    arena_release(&arena);
}

/* The first thing in the text that is neither blank nor one of our comments. */
static char first_character(struct text source)
{
    struct text rest = source;
    char first = '\0';
    if (text_starts(rest, TEXT("\xef\xbb\xbf")))
        rest = (struct text){rest.at + 3, rest.length - 3};
    rest = text_trim(rest);
    if (rest.length)
        first = rest.at[0];
    return first;
}

static void problems_move(struct problems *to, const struct problems *from)
{
    size_t beyond = from->error_count; /* errors that are not among the items */
    for (size_t i = 0; i < from->count; i++) {
        const struct problem *item = &from->items[i];
        beyond -= !item->is_warning;
        struct problem *added = item->is_warning
                                    ? problem_warn(to, item->place, item->path, "%s", item->text)
                                    : problem_add(to, item->place, item->path, "%s", item->text);
        if (added && item->hint)
            problem_hint(to, added, "%s", item->hint);
    }
    to->error_count += beyond;
    to->left_out += from->left_out;
}

/* Of the two formats only protocol 2 has a version, a `name` and roles by name. */
static bool is_v1(const struct doc *doc)
{
    const struct doc *roles = doc_get(doc, "taskRoles");
    if (!doc || doc->kind != DOC_MAP || doc_get(doc, "protocolVersion"))
        return false;
    return doc_get(doc, "jobName") || (!doc_get(doc, "name") && !(roles && roles->kind == DOC_MAP));
}

static bool is_market(const struct doc *doc)
{
    return !doc_get(doc, "protocolVersion") && !doc_get(doc, "taskRoles") &&
           (doc_get(doc, "protocol_version") || doc_get(doc, "tasks"));
}

/* Behind `{`: JSON goes on with a string, a comment or the end. */
static bool looks_like_json(struct text source)
{
    size_t open = text_find(source, TEXT("{"));
    struct text rest = {source.at + open + 1, source.length - open - 1};
    rest = text_trim(rest);
    return rest.length == 0 || strchr("\"}/", rest.at[0]);
}

/* A text that begins like JSON may be a v1 file or a v2 file written as JSON, which is YAML too. */
static const struct doc *source_parse(struct spec_reader *reader, struct text source,
                                      enum spec_format *format)
{
    struct arena *scratch = reader->scratch;
    struct problems *problems = reader->problems;
    char first = first_character(source);
    *format = SPEC_V2;
    if (first != '{' && first != '/') {
        const struct doc *only = doc_parse(source, DOC_YAML, scratch, problems);
        *format = is_market(only) ? SPEC_MARKET : SPEC_V2;
        return only;
    }
    cleanup_problems struct problems json_problems, yaml_problems;
    problems_init(&json_problems, scratch);
    problems_init(&yaml_problems, scratch);
    const struct doc *json = doc_parse(source, DOC_JSON_COMMENTS, scratch, &json_problems);
    const struct doc *yaml = NULL, *doc = json;
    if (!json)
        yaml = doc_parse(source, DOC_YAML, scratch, &yaml_problems);
    if (!json && (yaml ? yaml->kind == DOC_MAP && !is_v1(yaml) : !looks_like_json(source))) {
        doc = yaml;
        problems_move(problems, &yaml_problems);
    } else {
        problems_move(problems, &json_problems);
        *format = is_v1(json) ? SPEC_V1 : SPEC_V2;
    }
    if (is_market(doc))
        *format = SPEC_MARKET;
    reader->is_json = doc && doc == json;
    problems_release(&yaml_problems);
    return doc;
}

static void read_all(struct spec_reader *reader, enum spec_format format)
{
    if (format == SPEC_V2 && reader->root->kind == DOC_MAP && is_v1(reader->root) &&
        doc_get(reader->root, "jobName")) {
        reader_problem(reader, NULL, "a job file with jobName is of format 1 and must be JSON",
                       "%s", "");
        return;
    }
    reader->spec = spec_new(format);
    reader->arena = reader->spec->arena;
    reader->raw = reader->root;
    if (format == SPEC_MARKET)
        reader->root = market_expand(reader, reader->raw);
    if (format == SPEC_V2)
        spec_secrets_unmask(reader);
    shape_check(spec_shape(format), reader->root, "", reader->problems);
    if (reader->root->kind != DOC_MAP)
        return;
    switch (format) {
    case SPEC_V1:
        spec_v1_read(reader);
        break;
    case SPEC_V2:
        spec_v2_read(reader);
        break;
    case SPEC_MARKET:
        spec_market_read(reader);
        break;
    }
}

int spec_read(struct text source, struct spec_reader *reader)
{
    /* what a file before this one was told must not hide what is wrong with this one */
    struct problems found, *problems = reader->problems;
    enum spec_format format;
    if (source.length > SPEC_BYTES_MAX) {
        problem_add(problems, (struct place){1, 1}, "",
                    "the file has %zu bytes, at most %d allowed", source.length, SPEC_BYTES_MAX);
        return ERR_INVALID;
    }
    problems_init(&found, problems->arena);
    reader->problems = &found;
    reader->root = source_parse(reader, source, &format);
    if (reader->root)
        read_all(reader, format);
    const bool is_wrong = found.error_count > 0;
    problems_move(problems, &found);
    problems_release(&found);
    reader->problems = problems;
    if (is_wrong) {
        spec_free(reader->spec);
        reader->spec = NULL;
        return ERR_INVALID;
    }
    assert(reader->spec && reader->spec->role_count > 0);
    return 0;
}

int spec_parse(struct text source, struct arena *scratch, struct spec_parsed *parsed,
               struct problems *problems)
{
    struct spec_reader reader = {.scratch = scratch, .problems = problems, .kept = parsed->kept};
    parsed->spec = NULL;
    parsed->secrets = NULL;
    parsed->secret_count = 0;
    int code = spec_read(source, &reader);
    if (code)
        return code;
    parsed->spec = reader.spec;
    parsed->secrets = reader.secrets;
    parsed->secret_count = reader.secret_count;
    if (parsed->masked)
        spec_mask(source, reader.raw, parsed->masked);
    return 0;
}
