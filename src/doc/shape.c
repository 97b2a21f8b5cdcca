#include "doc/shape.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "base/arena.h"

enum { PATH_ROOM = 400, SHOWN_MAX = 64 };

struct shape_checker {
    struct problems *problems;
    size_t length;
    char path[PATH_ROOM];
};

static void map_check(struct shape_checker *checker, const struct shape *shape,
                      const struct doc *doc);

/* Go down; the length before is handed back to path_back. A path that grows too long ends early. */
static size_t path_into(struct shape_checker *checker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static size_t path_into(struct shape_checker *checker, const char *format, ...)
{
    size_t before = checker->length, room = PATH_ROOM - before;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(checker->path + before, room, format, args);
    va_end(args);
    assert(length >= 0);
    checker->length += (size_t)length < room ? (size_t)length : room - 1;
    return before;
}

static size_t path_key(struct shape_checker *checker, struct text key)
{
    size_t shown = key.length < SHOWN_MAX ? key.length : SHOWN_MAX;
    return path_into(checker, "%s%.*s", checker->length ? "." : "", (int)shown, key.at);
}

static void path_back(struct shape_checker *checker, size_t before)
{
    checker->length = before;
    checker->path[before] = '\0';
}

void near_offer(struct near *near, struct text wrong, struct text name)
{
    unsigned limit = wrong.length < 5 ? 1 : wrong.length < 8 ? 2 : 3;
    if (wrong.length > name.length + limit || name.length > wrong.length + limit)
        return; /* most names: no table of edits needed */
    bool is_same = wrong.length > 0 && wrong.length == name.length &&
                   strncasecmp(wrong.at, name.at, name.length) == 0;
    unsigned distance = is_same ? 0 : text_distance(wrong, name, limit);
    if (distance <= limit && (is_same || distance < name.length) &&
        (!near->best.at || distance < near->distance))
        *near = (struct near){.best = name, .distance = distance};
}

void near_hint(const struct near *near, struct problems *problems, struct problem *problem)
{
    if (near->best.at)
        problem_hint(problems, problem, "did you mean %.*s?", TEXT_ARG(near->best));
}

static bool class_has(const char *class, char c)
{
    for (; *class; class ++) {
        if (*class == '\\')
            class ++;
        if (class[1] == '-' && class[2]) {
            if (c >= class[0] && c <= class[2])
                return true;
            class += 2;
        } else if (*class == c) {
            return true;
        }
    }
    return false;
}

bool shape_pattern_fits(const struct shape_pattern *pattern, struct text text)
{
    if (text.length == 0 || !class_has(pattern->first, text.at[0]))
        return false;
    for (size_t i = 1; i < text.length; i++)
        if (!class_has(pattern->rest, text.at[i]))
            return false;
    return true;
}

static struct problem *wrong_kind(struct shape_checker *checker, const struct doc *doc,
                                  const char *what)
{
    return problem_add(checker->problems, doc->place, checker->path, "must be %s, not %s", what,
                       doc_kind_name(doc->kind));
}

static void range_check(struct shape_checker *checker, const struct field *field,
                        const struct doc *doc, int64_t value, const char *unit)
{
    if ((field->min == 0 && field->max == 0) || (value >= field->min && value <= field->max))
        return;
    if (value < field->min && field->min == 1 && unit[0])
        problem_add(checker->problems, doc->place, checker->path, "must not be empty");
    else if (value < field->min)
        problem_add(checker->problems, doc->place, checker->path,
                    "must be at least %lld%s, not %lld", (long long)field->min, unit,
                    (long long)value);
    else
        problem_add(checker->problems, doc->place, checker->path,
                    "must be at most %lld%s, not %lld", (long long)field->max, unit,
                    (long long)value);
}

static bool is_scalar(const struct doc *doc)
{
    return doc->kind == DOC_BOOL || doc->kind == DOC_INT || doc->kind == DOC_REAL;
}

static void string_check(struct shape_checker *checker, const struct field *field,
                         const struct doc *doc)
{
    if (doc->kind != DOC_STRING) {
        struct problem *problem = wrong_kind(checker, doc, "a string");
        if (is_scalar(doc))
            problem_hint(checker->problems, problem, "quote it: \"%.*s\"", TEXT_ARG(doc->source));
        return;
    }
    struct text text = doc->as.string;
    if (memchr(text.at, '\0', text.length))
        problem_add(checker->problems, doc->place, checker->path, "must not hold a NUL character");
    if (field->kind == FIELD_STRING)
        range_check(checker, field, doc, (int64_t)text.length, " bytes");
    if (field->pattern && text.length && !shape_pattern_fits(field->pattern, text))
        problem_add(checker->problems, doc->place, checker->path, "may only have %s",
                    field->pattern->says);
}

static void int_check(struct shape_checker *checker, const struct field *field,
                      const struct doc *doc)
{
    int64_t value = 0;
    bool is_int = doc_to_int(doc, &value);
    if (!is_int && doc->kind == DOC_STRING && (field->flags & FIELD_CONVERTS))
        is_int = doc_text_to_int(doc->as.string, &value);
    if (!is_int)
        wrong_kind(checker, doc, "an integer");
    else
        range_check(checker, field, doc, value, "");
}

static bool is_choice(const struct field *field, const struct doc *doc, const char *choice)
{
    int64_t number, wanted;
    if (doc->kind == DOC_STRING)
        return text_is(doc->as.string, choice);
    return (field->flags & FIELD_CONVERTS) && doc_to_int(doc, &number) &&
           text_to_int64(text_of(choice), &wanted) && number == wanted;
}

static void choice_check(struct shape_checker *checker, const struct field *field,
                         const struct doc *doc)
{
    struct near near = {0};
    char all[200] = "";
    size_t length = 0;
    for (const char *const *choice = field->choices; *choice; choice++) {
        if (is_choice(field, doc, *choice))
            return;
        if (doc->kind == DOC_STRING)
            near_offer(&near, doc->source, text_of(*choice));
        length += (size_t)snprintf(all + length, sizeof all - length, "%s%s", length ? ", " : "",
                                   *choice);
        assert(length < sizeof all);
    }
    const char *one_of = field->choices[1] ? "one of " : "";
    struct problem *problem =
        problem_add(checker->problems, doc->place, checker->path, "must be %s%s", one_of, all);
    if (field->choices[1])
        near_hint(&near, checker->problems, problem);
}

static void strings_check(struct shape_checker *checker, const struct field *field,
                          const struct doc *doc)
{
    static const struct field item = {.kind = FIELD_STRINGS};
    if (doc->kind != DOC_LIST) {
        struct problem *problem = wrong_kind(checker, doc, "a list of strings");
        if (doc->kind == DOC_STRING)
            problem_hint(checker->problems, problem, "begin the line with \"- \"");
        return;
    }
    range_check(checker, field, doc, (int64_t)doc->as.list.count, " items");
    for (size_t i = 0; i < doc->as.list.count; i++) {
        size_t before = path_into(checker, "[%zu]", i);
        string_check(checker, &item, doc->as.list.items[i]);
        path_back(checker, before);
    }
}

static void variant_check(struct shape_checker *checker, const struct field *field,
                          const struct doc *doc)
{
    const struct doc *tag = doc_get(doc, field->tag);
    struct near near = {0};
    if (doc->kind != DOC_MAP) {
        wrong_kind(checker, doc, "a map");
        return;
    }
    for (size_t i = 0; tag && i < field->variant_count; i++) {
        const struct shape_variant *variant = &field->variants[i];
        if (tag->kind == DOC_STRING && text_is(tag->as.string, variant->tag)) {
            map_check(checker, variant->shape, doc);
            return;
        }
        near_offer(&near, tag->source, text_of(variant->tag));
    }
    size_t before = path_key(checker, text_of(field->tag));
    if (tag) {
        struct problem *problem =
            problem_add(checker->problems, tag->place, checker->path, "unknown %s \"%.64s\"",
                        field->tag, tag->source.at ? tag->source.at : "");
        near_hint(&near, checker->problems, problem);
    } else {
        problem_add(checker->problems, doc->place, checker->path, "is missing");
    }
    path_back(checker, before);
}

static void list_check(struct shape_checker *checker, const struct field *field,
                       const struct doc *doc)
{
    if (doc->kind != DOC_LIST) {
        wrong_kind(checker, doc, "a list");
        return;
    }
    range_check(checker, field, doc, (int64_t)doc->as.list.count, " items");
    for (size_t i = 0; i < doc->as.list.count; i++) {
        size_t before = path_into(checker, "[%zu]", i);
        if (field->kind == FIELD_VARIANT_LIST)
            variant_check(checker, field, doc->as.list.items[i]);
        else
            map_check(checker, field->shape, doc->as.list.items[i]);
        path_back(checker, before);
    }
}

static void names_check(struct shape_checker *checker, const struct field *field,
                        const struct doc *doc)
{
    if (doc->kind != DOC_MAP) {
        wrong_kind(checker, doc, "a map");
        return;
    }
    if (field->kind == FIELD_MAP_MAP)
        range_check(checker, field, doc, (int64_t)doc->as.map.count, " entries");
    for (size_t i = 0; i < doc->as.map.count; i++) {
        const struct doc_entry *entry = &doc->as.map.entries[i];
        size_t before = path_key(checker, entry->key);
        if (field->pattern && !shape_pattern_fits(field->pattern, entry->key))
            problem_add(checker->problems, entry->place, checker->path, "a name may only have %s",
                        field->pattern->says);
        if (field->kind == FIELD_INT_MAP)
            int_check(checker, field, entry->value);
        else if (field->shape)
            map_check(checker, field->shape, entry->value);
        path_back(checker, before);
    }
}

static void field_check(struct shape_checker *checker, const struct field *field,
                        const struct doc *doc)
{
    if (doc->kind == DOC_NULL && (field->flags & FIELD_NULLABLE))
        return;
    if (doc->kind == DOC_STRING && (field->flags & FIELD_OR_TEXT))
        return;
    switch (field->kind) {
    case FIELD_ANY:
        break;
    case FIELD_STRING:
        string_check(checker, field, doc);
        break;
    case FIELD_LABEL:
        if (doc->kind != DOC_STRING && doc->kind != DOC_INT && doc->kind != DOC_REAL)
            wrong_kind(checker, doc, "a string or a number");
        break;
    case FIELD_INT:
        int_check(checker, field, doc);
        break;
    case FIELD_BOOL:
        if (doc->kind != DOC_BOOL)
            wrong_kind(checker, doc, "true or false");
        break;
    case FIELD_CHOICE:
        choice_check(checker, field, doc);
        break;
    case FIELD_STRINGS:
        strings_check(checker, field, doc);
        break;
    case FIELD_MAP:
        map_check(checker, field->shape, doc);
        break;
    case FIELD_MAP_LIST:
    case FIELD_VARIANT_LIST:
        list_check(checker, field, doc);
        break;
    case FIELD_MAP_MAP:
    case FIELD_INT_MAP:
    case FIELD_FREE_MAP:
        names_check(checker, field, doc);
        break;
    }
}

static const struct field *field_find(const struct shape *shape, struct text name)
{
    for (size_t i = 0; i < shape->count; i++)
        if (text_is(name, shape->fields[i].name))
            return &shape->fields[i];
    return NULL;
}

/* The nearest field that the map lacks. Beyond PROBLEMS_MAX nobody would see it. */
static struct near near_field(const struct shape_checker *checker, const struct shape *shape,
                              const struct doc *doc, struct text wrong)
{
    struct near near = {0};
    if (checker->problems->count == PROBLEMS_MAX)
        return near;
    for (size_t i = 0; i < shape->count; i++) {
        struct near other = near;
        near_offer(&other, wrong, text_of(shape->fields[i].name));
        if (other.best.at != near.best.at && !doc_get(doc, shape->fields[i].name))
            near = other;
    }
    return near;
}

static void unknown_check(struct shape_checker *checker, const struct shape *shape,
                          const struct doc *doc, const struct doc_entry *entry)
{
    struct near near = near_field(checker, shape, doc, entry->key);
    if (shape->unknown == UNKNOWN_FREE && !near.best.at)
        return;
    struct problem *problem =
        shape->unknown == UNKNOWN_ERROR
            ? problem_add(checker->problems, entry->place, checker->path, "unknown field")
            : problem_warn(checker->problems, entry->place, checker->path,
                           "unknown field, ignored");
    near_hint(&near, checker->problems, problem);
    for (size_t i = 0; !near.best.at && i < shape->count; i++)
        if (shape->fields[i].kind == FIELD_MAP && field_find(shape->fields[i].shape, entry->key))
            problem_hint(checker->problems, problem, "it belongs in %s", shape->fields[i].name);
}

static void map_check(struct shape_checker *checker, const struct shape *shape,
                      const struct doc *doc)
{
    if (doc->kind != DOC_MAP) {
        wrong_kind(checker, doc, "a map");
        return;
    }
    for (size_t i = 0; i < doc->as.map.count; i++) {
        const struct doc_entry *entry = &doc->as.map.entries[i];
        const struct field *field = field_find(shape, entry->key);
        size_t before = path_key(checker, entry->key);
        if (field)
            field_check(checker, field, entry->value);
        else
            unknown_check(checker, shape, doc, entry);
        path_back(checker, before);
    }
    for (size_t i = 0; i < shape->count; i++) {
        if (!(shape->fields[i].flags & FIELD_REQUIRED) || doc_get(doc, shape->fields[i].name))
            continue;
        size_t before = path_key(checker, text_of(shape->fields[i].name));
        problem_add(checker->problems, doc->place, checker->path, "is missing");
        path_back(checker, before);
    }
}

void shape_check(const struct shape *shape, const struct doc *doc, const char *path,
                 struct problems *problems)
{
    struct shape_checker checker = {.problems = problems};
    path_into(&checker, "%s", path);
    map_check(&checker, shape, doc);
}
