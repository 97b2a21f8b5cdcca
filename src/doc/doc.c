#include "doc/doc.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/arena.h"
#include "doc/build.h"

#define YAML_TAG "tag:yaml.org,2002:"

struct anchor {
    struct text name;
    const struct doc *node; /* NULL while the collection is open */
    const struct doc *open;
    size_t node_count;
    unsigned height;
};

struct yaml_reader {
    struct builder builder;
    struct text source;
    struct anchor *anchors; /* the newest of a name counts */
    size_t anchor_count;
    unsigned document_count;
    bool is_done, is_failed;
};

static struct place place_of(yaml_mark_t mark)
{
    return (struct place){(uint32_t)mark.line + 1, (uint32_t)mark.column + 1};
}

static struct text text_copy(struct arena *arena, const yaml_char_t *at, size_t length)
{
    return (struct text){arena_copy(arena, (struct text){(const char *)at, length}), length};
}

static void anchor_add(struct yaml_reader *reader, const yaml_char_t *name, struct doc *node,
                       struct place place)
{
    if (!name)
        return;
    struct builder *builder = &reader->builder;
    node->is_shared = true;
    if (reader->anchor_count == DOC_ANCHORS_MAX) {
        build_problem(builder, place, "more than %d anchors", DOC_ANCHORS_MAX);
        builder->is_stopped = true;
        return;
    }
    if (!reader->anchors)
        reader->anchors = ARENA_ARRAY(builder->arena, struct anchor, DOC_ANCHORS_MAX);
    size_t length = strlen((const char *)name);
    bool is_scalar = node->kind != DOC_LIST && node->kind != DOC_MAP;
    reader->anchors[reader->anchor_count++] =
        (struct anchor){.name = text_copy(builder->arena, name, length),
                        .node = is_scalar ? node : NULL,
                        .open = node,
                        .node_count = 1};
}

static struct anchor *anchor_find(struct yaml_reader *reader, struct text name)
{
    for (size_t i = reader->anchor_count; i > 0; i--)
        if (text_equal(reader->anchors[i - 1].name, name))
            return &reader->anchors[i - 1];
    return NULL;
}

static void key_take(struct yaml_reader *reader, const struct doc *key, bool is_plain)
{
    bool is_merge = is_plain && text_is(key->source, "<<");
    build_key(&reader->builder, key->source, key->place, is_merge);
}

/* Something that cannot be a key: said once, and a key that nobody can write stands for it. */
static void key_refuse(struct yaml_reader *reader, struct place place)
{
    build_problem(&reader->builder, place, "a key must be a scalar");
    reader->builder.is_stopped = true;
}

static void alias_take(struct yaml_reader *reader, const yaml_event_t *event)
{
    struct builder *builder = &reader->builder;
    struct place place = place_of(event->start_mark);
    struct text name = text_of((const char *)event->data.alias.anchor);
    const struct anchor *anchor = anchor_find(reader, name);
    const struct doc *node = anchor ? anchor->node : NULL;
    size_t node_count = anchor ? anchor->node_count : 1;
    unsigned height = anchor ? anchor->height : 0;
    if (!anchor)
        build_problem(builder, place, "no anchor \"%.64s\" before this alias", name.at);
    else if (!node)
        build_problem(builder, place, "the alias \"%.64s\" stands inside what it names", name.at);
    if (!node) {
        node = build_node(builder, DOC_NULL, place);
        node_count = 1;
    }
    if (!build_wants_key(builder))
        build_value(builder, node, node_count, height);
    else if (node->kind == DOC_LIST || node->kind == DOC_MAP)
        key_refuse(reader, place);
    else
        key_take(reader, node, false);
}

static void tag_unknown(struct yaml_reader *reader, const struct doc *doc, const char *tag)
{
    build_problem(&reader->builder, doc->place, "unknown tag \"%.64s\"", tag);
}

/* `!!int "3"` and the like: the tag decides, and the text must suit it. */
static void scalar_tagged(struct yaml_reader *reader, struct doc *doc, const char *tag)
{
    const char *name = strncmp(tag, YAML_TAG, strlen(YAML_TAG)) == 0 ? tag + strlen(YAML_TAG) : tag;
    bool is_right = true;
    doc->kind = DOC_STRING;
    doc->as.string = doc->source;
    if (strcmp(name, "str") == 0 || strcmp(name, "!") == 0)
        return;
    if (strcmp(name, "null") == 0) {
        is_right = scalar_is_null(doc->source);
        doc->kind = DOC_NULL;
    } else if (strcmp(name, "bool") == 0) {
        is_right = scalar_to_bool(doc->source, &doc->as.boolean);
        doc->kind = DOC_BOOL;
    } else if (strcmp(name, "int") == 0) {
        is_right = scalar_to_int(doc->source, &doc->as.integer);
        doc->kind = DOC_INT;
    } else if (strcmp(name, "float") == 0) {
        is_right = scalar_to_real(doc->source, &doc->as.real);
        doc->kind = DOC_REAL;
    } else {
        tag_unknown(reader, doc, tag);
    }
    if (is_right)
        return;
    build_problem(&reader->builder, doc->place, "the text does not suit the tag !!%s", name);
    doc->kind = DOC_STRING;
    doc->as.string = doc->source;
}

static void scalar_take(struct yaml_reader *reader, const yaml_event_t *event)
{
    struct builder *builder = &reader->builder;
    bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    const char *tag = (const char *)event->data.scalar.tag;
    struct doc *doc = build_node(builder, DOC_STRING, place_of(event->start_mark));
    doc->end = place_of(event->end_mark);
    doc->source = text_copy(builder->arena, event->data.scalar.value, event->data.scalar.length);
    if (tag) {
        scalar_tagged(reader, doc, tag);
    } else if (is_plain) {
        scalar_resolve(doc);
    } else {
        doc->as.string = doc->source;
    }
    anchor_add(reader, event->data.scalar.anchor, doc, doc->place);
    if (build_wants_key(builder))
        key_take(reader, doc, is_plain && !tag);
    else
        build_value(builder, doc, 1, 0);
}

static void collection_open(struct yaml_reader *reader, const yaml_event_t *event)
{
    struct builder *builder = &reader->builder;
    bool is_map = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *anchor =
        is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    const char *tag =
        (const char *)(is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag);
    struct doc *node =
        build_node(builder, is_map ? DOC_MAP : DOC_LIST, place_of(event->start_mark));
    if (build_wants_key(builder)) {
        key_refuse(reader, node->place);
        return;
    }
    if (tag && strcmp(tag, is_map ? YAML_TAG "map" : YAML_TAG "seq") != 0)
        tag_unknown(reader, node, tag);
    anchor_add(reader, anchor, node, node->place);
    build_open(builder, node);
}

/* Where the last child ends; libyaml puts the end of a block where the next token stands, behind
 * comments that are not part of it. */
static struct place block_end(const struct doc *node)
{
    struct place end = node->place;
    for (size_t i = 0; i < doc_count(node); i++) {
        const struct doc *item =
            node->kind == DOC_LIST ? node->as.list.items[i] : node->as.map.entries[i].value;
        struct place other = item->end;
        if (other.line > end.line || (other.line == end.line && other.column > end.column))
            end = other;
    }
    return end;
}

static void collection_close(struct yaml_reader *reader, const yaml_event_t *event)
{
    struct builder *builder = &reader->builder;
    assert(builder->depth > 0); /* libyaml's events are balanced */
    struct doc *node = builder->frames[builder->depth - 1].node;
    build_close(builder);
    bool is_flow = event->start_mark.index != event->end_mark.index;
    node->end = is_flow ? place_of(event->end_mark) : block_end(node);
    for (size_t i = reader->anchor_count; node->is_shared && i > 0; i--) {
        struct anchor *anchor = &reader->anchors[i - 1];
        if (anchor->open != node)
            continue;
        anchor->node = node;
        anchor->node_count = builder->value_count;
        anchor->height = builder->height;
        break;
    }
}

static void document_start(struct yaml_reader *reader, const yaml_event_t *event)
{
    if (++reader->document_count == 1)
        return;
    problem_add(reader->builder.problems, place_of(event->start_mark), "",
                "only one document is allowed in a text");
    reader->is_done = true;
}

static void event_take(struct yaml_reader *reader, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        document_start(reader, event);
        break;
    case YAML_ALIAS_EVENT:
        alias_take(reader, event);
        break;
    case YAML_SCALAR_EVENT:
        scalar_take(reader, event);
        break;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        collection_open(reader, event);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        collection_close(reader, event);
        break;
    case YAML_STREAM_END_EVENT:
        reader->is_done = true;
        break;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
}

static struct place place_at(struct text source, size_t offset)
{
    struct place place = {1, 1};
    for (size_t at = 0; at < offset && at < source.length;)
        at = place_step(source, at, &place);
    return place;
}

static void syntax_problem(struct yaml_reader *reader, const yaml_parser_t *parser)
{
    struct problems *problems = reader->builder.problems;
    if (parser->error == YAML_MEMORY_ERROR)
        abort();
    if (parser->error == YAML_READER_ERROR) {
        problem_add(problems, place_at(reader->source, parser->problem_offset), "",
                    "not valid YAML: %s", parser->problem);
        return;
    }
    struct place place = place_of(parser->problem_mark);
    size_t at = doc_offset(reader->source, place);
    struct problem *problem;
    if (parser->context)
        problem = problem_add(problems, place, "", "not valid YAML: %s, %s", parser->problem,
                              parser->context);
    else
        problem = problem_add(problems, place, "", "not valid YAML: %s", parser->problem);
    if (at < reader->source.length && reader->source.at[at] == '\t')
        problem_hint(problems, problem, "tabs cannot indent YAML, use spaces");
    else if (parser->context_mark.line + 1 < place.line)
        problem_hint(problems, problem, "it begins on line %zu", parser->context_mark.line + 1);
}

static const struct doc *yaml_parse(struct text source, struct arena *arena,
                                    struct problems *problems)
{
    struct yaml_reader reader = {.source = source};
    yaml_parser_t parser;
    build_init(&reader.builder, arena, problems);
    if (!yaml_parser_initialize(&parser))
        abort(); /* out of memory */
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)source.at, source.length);
    while (!reader.is_done && !reader.is_failed && !reader.builder.is_stopped) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            syntax_problem(&reader, &parser);
            reader.is_failed = true;
            break;
        }
        event_take(&reader, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    const struct doc *root = reader.builder.root;
    if (reader.is_failed || reader.builder.is_stopped)
        root = NULL;
    else if (!root)
        root = build_node(&reader.builder, DOC_NULL, (struct place){1, 1});
    build_release(&reader.builder);
    return root;
}

const struct doc *doc_parse(struct text source, enum doc_format format, struct arena *arena,
                            struct problems *problems)
{
    if (source.length > DOC_BYTES_MAX) {
        problem_add(problems, (struct place){1, 1}, "",
                    "the text has %zu bytes, at most %d allowed", source.length, DOC_BYTES_MAX);
        return NULL;
    }
    if (text_starts(source, TEXT("\xef\xbb\xbf"))) {
        source.at += 3;
        source.length -= 3;
    }
    if (format == DOC_YAML)
        return yaml_parse(source, arena, problems);
    return json_parse(source, format == DOC_JSON_COMMENTS, arena, problems);
}

int doc_key_compare(struct text a, struct text b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common && a.at != b.at ? memcmp(a.at, b.at, common) : 0;
    if (order != 0)
        return order;
    return a.length < b.length ? -1 : a.length > b.length;
}

const struct doc *doc_find(const struct doc *doc, struct text key)
{
    if (!doc || doc->kind != DOC_MAP)
        return NULL;
    if (!doc->as.map.by_key) {
        for (size_t i = 0; i < doc->as.map.count; i++)
            if (text_equal(doc->as.map.entries[i].key, key))
                return doc->as.map.entries[i].value;
        return NULL;
    }
    size_t low = 0, high = doc->as.map.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = doc_key_compare(key, doc->as.map.by_key[middle]->key);
        if (order == 0)
            return doc->as.map.by_key[middle]->value;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct doc *doc_get(const struct doc *doc, const char *key)
{
    return doc_find(doc, text_of(key));
}

const struct doc *doc_get_kind(const struct doc *doc, const char *key, enum doc_kind kind)
{
    const struct doc *value = doc_get(doc, key);
    return value && value->kind == kind ? value : NULL;
}

struct text doc_get_text(const struct doc *doc, const char *key, const char *fallback)
{
    const struct doc *value = doc_get_kind(doc, key, DOC_STRING);
    return value ? value->as.string : text_of(fallback);
}

int64_t doc_get_int(const struct doc *doc, const char *key, int64_t fallback)
{
    const struct doc *value = doc_get(doc, key);
    int64_t number = fallback;
    if (value && !doc_to_int(value, &number) && value->kind == DOC_STRING)
        doc_text_to_int(value->as.string, &number);
    return number;
}

bool doc_get_bool(const struct doc *doc, const char *key, bool fallback)
{
    const struct doc *value = doc_get_kind(doc, key, DOC_BOOL);
    return value ? value->as.boolean : fallback;
}

const struct doc *doc_get_list(const struct doc *doc, const char *key)
{
    static const struct doc none = {.kind = DOC_LIST};
    const struct doc *value = doc_get_kind(doc, key, DOC_LIST);
    return value ? value : &none;
}

const struct doc *doc_get_map(const struct doc *doc, const char *key)
{
    static const struct doc none = {.kind = DOC_MAP};
    const struct doc *value = doc_get_kind(doc, key, DOC_MAP);
    return value ? value : &none;
}

size_t doc_count(const struct doc *doc)
{
    if (doc && doc->kind == DOC_LIST)
        return doc->as.list.count;
    return doc && doc->kind == DOC_MAP ? doc->as.map.count : 0;
}

static bool real_to_int(double real, int64_t *value)
{
    if (!(fabs(real) < 9007199254740992.0) || floor(real) != real)
        return false;
    *value = (int64_t)real;
    return true;
}

bool doc_text_to_int(struct text text, int64_t *value)
{
    double real = 0;
    text = text_trim(text);
    return text_to_int64(text, value) || (scalar_to_real(text, &real) && real_to_int(real, value));
}

bool doc_to_int(const struct doc *doc, int64_t *value)
{
    if (doc->kind == DOC_INT) {
        *value = doc->as.integer;
        return true;
    }
    return doc->kind == DOC_REAL && real_to_int(doc->as.real, value);
}

const char *doc_kind_name(enum doc_kind kind)
{
    switch (kind) {
    case DOC_NULL:
        return "null";
    case DOC_BOOL:
        return "a boolean";
    case DOC_INT:
        return "an integer";
    case DOC_REAL:
        return "a number";
    case DOC_STRING:
        return "a string";
    case DOC_LIST:
        return "a list";
    case DOC_MAP:
        return "a map";
    }
    assert(false);
    return "";
}
