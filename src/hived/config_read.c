/* config_read.c — from the document tree to struct hived_config; nothing is derived here. */
#include "base/memory.h"
#include "doc/doc.h"
#include "hived/config.h"
#include <stdio.h>
#include <string.h>

struct config_reader {
    struct hived_config *config;
    struct arena *arena;
    struct arena scratch; /* paths */
    struct problems *problems;
    struct problems inner;  /* of a configuration that is a text in the document … */
    const struct doc *text; /* … this one, or NULL */
};

static struct text scalar_text(const struct doc *doc)
{
    if (doc->kind == DOC_STRING)
        return doc->as.string;
    return doc->source;
}

/* A name: a string, or a number written without quotes ("cellAddress: 0"). */
static const char *read_name(struct config_reader *reader, const struct doc *doc, const char *path)
{
    if (!doc || doc->kind == DOC_NULL)
        return NULL;
    if (doc->kind == DOC_LIST || doc->kind == DOC_MAP) {
        problem_add(reader->problems, doc->place, path, "must be a string, is %s",
                    doc_kind_name(doc->kind));
        return NULL;
    }
    struct text text = scalar_text(doc);
    if (text.length > HIVED_NAME_MAX || memchr(text.at, 0, text.length)) {
        problem_add(reader->problems, doc->place, path, "must have at most %d characters",
                    HIVED_NAME_MAX);
        return NULL;
    }
    return text.length ? arena_copy(reader->arena, text) : NULL;
}

static uint64_t read_count(struct config_reader *reader, const struct doc *doc, const char *path,
                           uint64_t otherwise, uint64_t max)
{
    if (!doc || doc->kind == DOC_NULL)
        return otherwise;
    int64_t value = -1;
    if (doc->kind == DOC_INT)
        value = doc->as.integer;
    else if (doc->kind == DOC_REAL && doc->as.real >= 0 && doc->as.real <= (double)max &&
             doc->as.real == (double)(int64_t)doc->as.real)
        value = (int64_t)doc->as.real;
    else
        text_to_int64(scalar_text(doc), &value);
    if (value < 0 || (uint64_t)value > max) {
        problem_add(reader->problems, doc->place, path, "must be an integer from 0 to %llu",
                    (unsigned long long)max);
        return otherwise;
    }
    return (uint64_t)value;
}

static bool is_map(struct config_reader *reader, const struct doc *doc, const char *path)
{
    if (doc->kind == DOC_MAP)
        return true;
    problem_add(reader->problems, doc->place, path, "must be a map, is %s",
                doc_kind_name(doc->kind));
    return false;
}

static size_t list_count(struct config_reader *reader, const struct doc *doc, const char *path)
{
    if (!doc || doc->kind == DOC_NULL)
        return 0;
    if (doc->kind == DOC_LIST)
        return doc->as.list.count;
    problem_add(reader->problems, doc->place, path, "must be a list, is %s",
                doc_kind_name(doc->kind));
    return 0;
}

static size_t map_count(struct config_reader *reader, const struct doc *doc, const char *path)
{
    if (!doc || doc->kind == DOC_NULL || !is_map(reader, doc, path))
        return 0;
    return doc->as.map.count;
}

#define PATH(...) arena_format(&reader->scratch, __VA_ARGS__)

static bool text_is_yes_or_no(struct text text, bool *is_yes)
{
    static const char *const words[] = {"yes", "Yes", "YES", "on",  "On",  "ON",
                                        "no",  "No",  "NO",  "off", "Off", "OFF"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!text_is(text, words[i]))
            continue;
        *is_yes = i < COUNT_OF(words) / 2;
        return true;
    }
    return false;
}

static bool read_flag(struct config_reader *reader, const struct doc *doc, const char *path)
{
    if (!doc || doc->kind == DOC_NULL)
        return false;
    if (doc->kind == DOC_BOOL)
        return doc->as.boolean;
    bool is_yes = false; /* of YAML 1.1, which HiveD reads */
    if (doc->kind != DOC_STRING || !text_is_yes_or_no(doc->as.string, &is_yes))
        problem_add(reader->problems, doc->place, path, "must be true or false");
    return is_yes;
}

static void read_types(struct config_reader *reader, const struct doc *doc)
{
    struct hived_config *config = reader->config;
    size_t count = map_count(reader, doc, "physicalCluster.cellTypes");
    if (count > HIVED_TYPES_MAX / 2) {
        problem_add(reader->problems, doc->place, "physicalCluster.cellTypes",
                    "at most %d types are allowed", HIVED_TYPES_MAX / 2);
        return;
    }
    /* each may bring one leaf type that is only named as a child */
    config->types = ARENA_ARRAY(reader->arena, struct hived_type, 2 * count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct doc_entry *entry = &doc->as.map.entries[i];
        char key[HIVED_NAME_MAX + 1];
        snprintf(key, sizeof key, "%.*s", (int)(entry->key.length & 0xff), entry->key.at);
        const char *path = PATH("physicalCluster.cellTypes.%s", key);
        if (entry->key.length == 0 || entry->key.length > HIVED_NAME_MAX ||
            memchr(entry->key.at, '.', entry->key.length)) {
            problem_add(reader->problems, entry->place, path,
                        "a type's name has 1 to %d characters and no dot", HIVED_NAME_MAX);
            continue;
        }
        if (!is_map(reader, entry->value, path))
            continue;
        struct hived_type *type = &config->types[config->type_count++];
        type->name = arena_copy(reader->arena, entry->key);
        type->place = entry->place;
        path = PATH("physicalCluster.cellTypes.%s.childCellType", key);
        type->child_name = read_name(reader, doc_get(entry->value, "childCellType"), path);
        if (!type->child_name) {
            problem_add(reader->problems, entry->place, path, "is needed");
            type->child_name = "";
        }
        path = PATH("physicalCluster.cellTypes.%s.childCellNumber", key);
        type->child_number = (uint32_t)read_count(reader, doc_get(entry->value, "childCellNumber"),
                                                  path, 0, HIVED_LEAVES_MAX);
        path = PATH("physicalCluster.cellTypes.%s.isNodeLevel", key);
        type->is_node_level = read_flag(reader, doc_get(entry->value, "isNodeLevel"), path);
    }
}

static void read_cell(struct config_reader *reader, const struct doc *doc,
                      struct hived_cell_spec *cell, const char *path, unsigned depth)
{
    cell->place = doc->place;
    if (doc->kind == DOC_NULL)
        return;
    if (!is_map(reader, doc, path))
        return;
    cell->type_name = read_name(reader, doc_get(doc, "cellType"), PATH("%s.cellType", path));
    cell->address = read_name(reader, doc_get(doc, "cellAddress"), PATH("%s.cellAddress", path));
    if (cell->address && strchr(cell->address, '/'))
        problem_add(reader->problems, doc->place, PATH("%s.cellAddress", path),
                    "must not contain a slash");
    cell->pin = read_name(reader, doc_get(doc, "pinnedCellId"), PATH("%s.pinnedCellId", path));
    const struct doc *children = doc_get(doc, "cellChildren");
    const char *below = PATH("%s.cellChildren", path);
    size_t count = list_count(reader, children, below);
    if (!count)
        return;
    if (depth >= HIVED_LEVELS_MAX || count > HIVED_LEAVES_MAX) {
        problem_add(reader->problems, children->place, below, "at most %d levels are allowed",
                    HIVED_LEVELS_MAX);
        return;
    }
    cell->children = ARENA_ARRAY(reader->arena, struct hived_cell_spec, count);
    cell->child_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        read_cell(reader, children->as.list.items[i], &cell->children[i], PATH("%s[%zu]", below, i),
                  depth + 1);
    }
}

static void read_cells(struct config_reader *reader, const struct doc *doc)
{
    struct hived_config *config = reader->config;
    size_t count = list_count(reader, doc, "physicalCluster.physicalCells");
    config->cells = ARENA_ARRAY(reader->arena, struct hived_cell_spec, count + 1);
    config->cell_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const char *path = PATH("physicalCluster.physicalCells[%zu]", i);
        read_cell(reader, doc->as.list.items[i], &config->cells[i], path, 1);
    }
}

/* "25Gi", "1024", "512Mi", "7.5Gi"; plain numbers are MiB. */
static bool memory_of(struct text text, uint64_t *mib)
{
    int64_t value = 0, fraction = 0;
    uint64_t scale = 1;
    size_t digits = 0;
    while (digits < text.length && text.at[digits] >= '0' && text.at[digits] <= '9')
        digits++;
    if (!digits || digits > 9 || !text_to_int64((struct text){text.at, digits}, &value))
        return false;
    if (digits + 1 < text.length && text.at[digits] == '.') {
        size_t from = ++digits;
        for (; digits < text.length && text.at[digits] >= '0' && text.at[digits] <= '9'; digits++)
            scale *= digits - from < 6 ? 10 : 1;
        size_t kept = digits - from < 6 ? digits - from : 6;
        if (!kept || !text_to_int64((struct text){text.at + from, kept}, &fraction))
            return false;
    }
    struct text unit = {text.at + digits, text.length - digits};
    uint64_t up = 1, down = 1;
    if (text_is(unit, "Gi") || text_is(unit, "G") || text_is(unit, "GB"))
        up = 1024;
    else if (text_is(unit, "Ti") || text_is(unit, "T"))
        up = 1024 * 1024;
    else if (text_is(unit, "Ki") || text_is(unit, "K"))
        down = 1024;
    else if (unit.length && !text_is(unit, "Mi") && !text_is(unit, "M") && !text_is(unit, "MB"))
        return false;
    *mib = ((uint64_t)value * up + (uint64_t)fraction * up / scale) / down;
    return true;
}

static bool is_leaf_type(const struct hived_config *config, const char *name)
{
    bool is_child = false;
    for (uint32_t i = 0; i < config->type_count; i++) {
        if (!strcmp(config->types[i].name, name))
            return false;
        is_child |= !strcmp(config->types[i].child_name, name);
    }
    return is_child;
}

/* Names that do not meet are a slip of the pen that nothing else would show. */
static void warn_skus(struct config_reader *reader, const struct doc *doc)
{
    const struct hived_config *config = reader->config;
    for (uint32_t i = 0; i < config->sku_count; i++)
        if (!is_leaf_type(config, config->skus[i].leaf_type))
            problem_warn(reader->problems, doc->as.map.entries[i].place,
                         PATH("physicalCluster.skuTypes.%s", config->skus[i].leaf_type),
                         "no cellTypes have devices of this type");
    for (uint32_t i = 0; i < config->type_count && config->sku_count; i++) {
        const struct hived_type *type = &config->types[i];
        if (is_leaf_type(config, type->child_name) && !hived_config_sku(config, type->child_name))
            problem_warn(reader->problems, type->place,
                         PATH("physicalCluster.cellTypes.%s.childCellType", type->name),
                         "%s is not in skuTypes: each counts as one GPU, without CPUs and memory",
                         type->child_name);
    }
}

static void read_skus(struct config_reader *reader, const struct doc *doc)
{
    struct hived_config *config = reader->config;
    size_t count = map_count(reader, doc, "physicalCluster.skuTypes");
    config->skus = ARENA_ARRAY(reader->arena, struct hived_sku, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct doc_entry *entry = &doc->as.map.entries[i];
        const char *path = "physicalCluster.skuTypes";
        if (!is_map(reader, entry->value, path))
            continue;
        struct hived_sku *sku = &config->skus[config->sku_count++];
        sku->leaf_type = arena_copy(reader->arena, entry->key);
        path = PATH("physicalCluster.skuTypes.%s.gpu", sku->leaf_type);
        sku->gpu = (uint32_t)read_count(reader, doc_get(entry->value, "gpu"), path, 0, 1024);
        path = PATH("physicalCluster.skuTypes.%s.cpu", sku->leaf_type);
        sku->cpu = (uint32_t)read_count(reader, doc_get(entry->value, "cpu"), path, 0, 1 << 20);
        const struct doc *memory = doc_get(entry->value, "memory");
        path = PATH("physicalCluster.skuTypes.%s.memory", sku->leaf_type);
        if (memory && memory->kind != DOC_NULL &&
            (memory->kind == DOC_MAP || memory->kind == DOC_LIST ||
             !memory_of(scalar_text(memory), &sku->memory_mib)))
            problem_add(reader->problems, memory->place, path,
                        "must be an amount like 25Gi, 512Mi or a number of MiB");
    }
}

static void read_vc(struct config_reader *reader, const struct doc_entry *entry,
                    struct hived_vc_spec *vc)
{
    vc->name = arena_copy(reader->arena, entry->key);
    vc->place = entry->place;
    const char *path = PATH("virtualClusters.%s", vc->name);
    if (entry->value->kind == DOC_NULL || !is_map(reader, entry->value, path))
        return;
    const struct doc *cells = doc_get(entry->value, "virtualCells");
    path = PATH("virtualClusters.%s.virtualCells", vc->name);
    size_t count = list_count(reader, cells, path);
    vc->cells = ARENA_ARRAY(reader->arena, struct hived_vc_cell, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct doc *item = cells->as.list.items[i];
        const char *below = PATH("virtualClusters.%s.virtualCells[%zu]", vc->name, i);
        if (!is_map(reader, item, below))
            continue;
        struct hived_vc_cell *cell = &vc->cells[vc->cell_count++];
        cell->place = item->place;
        cell->path = read_name(reader, doc_get(item, "cellType"), PATH("%s.cellType", below));
        if (!cell->path) {
            problem_add(reader->problems, item->place, PATH("%s.cellType", below), "is needed");
            cell->path = "";
        }
        cell->number = (uint32_t)read_count(reader, doc_get(item, "cellNumber"),
                                            PATH("%s.cellNumber", below), 0, HIVED_LEAVES_MAX);
    }
    const struct doc *pins = doc_get(entry->value, "pinnedCells");
    path = PATH("virtualClusters.%s.pinnedCells", vc->name);
    count = list_count(reader, pins, path);
    vc->pins = ARENA_ARRAY(reader->arena, struct hived_vc_pin, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct doc *item = pins->as.list.items[i];
        const char *id = read_name(reader, doc_get(item, "pinnedCellId"), path);
        if (!id) {
            problem_add(reader->problems, item->place, path, "pinnedCellId is needed");
            continue;
        }
        vc->pins[vc->pin_count++] = (struct hived_vc_pin){.id = id, .place = item->place};
    }
}

static void read_vcs(struct config_reader *reader, const struct doc *doc)
{
    struct hived_config *config = reader->config;
    size_t count = map_count(reader, doc, "virtualClusters");
    if (count > HIVED_VCS_MAX) {
        problem_add(reader->problems, doc->place, "virtualClusters",
                    "at most %d virtual clusters are allowed", HIVED_VCS_MAX);
        return;
    }
    config->vcs = ARENA_ARRAY(reader->arena, struct hived_vc_spec, count + 1);
    config->vc_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        read_vc(reader, &doc->as.map.entries[i], &config->vcs[i]);
}

/* The map that holds physicalCluster, wherever an installation put it. */
static const struct doc *find_root(struct config_reader *reader, const struct doc *doc)
{
    for (unsigned depth = 0; doc && depth < 4; depth++) {
        if (doc->kind == DOC_MAP && doc_get(doc, "physicalCluster"))
            return doc;
        if (doc->kind == DOC_STRING && !reader->text) {
            reader->text = doc;
            reader->problems = &reader->inner;
            doc = doc_parse(doc->as.string, DOC_YAML, reader->arena, reader->problems);
            continue;
        }
        const struct doc *next = doc_get(doc, "hivedscheduler");
        doc = next ? next : doc_get(doc, "config");
    }
    return NULL;
}

static void read_all(struct config_reader *reader, const struct doc *doc)
{
    const struct doc *root = find_root(reader, doc);
    if (!root && reader->problems->error_count > 0)
        return; /* it could not be parsed */
    if (!root) {
        problem_add(reader->problems, doc ? doc->place : (struct place){1, 1}, "physicalCluster",
                    "is needed");
        return;
    }
    const struct doc *physical = doc_get(root, "physicalCluster");
    if (is_map(reader, physical, "physicalCluster")) {
        read_types(reader, doc_get(physical, "cellTypes"));
        read_cells(reader, doc_get(physical, "physicalCells"));
        const struct doc *skus = doc_get(physical, "skuTypes");
        skus = skus ? skus : doc_get(physical, "gpuTypes");
        size_t errors = reader->problems->error_count;
        read_skus(reader, skus);
        if (reader->problems->error_count == errors)
            warn_skus(reader, skus);
    }
    read_vcs(reader, doc_get(root, "virtualClusters"));
}

/* Where in the document a place of the text in it is: a block begins behind its indicator's line,
 * and its lines are the document's. The column is not known, as the indentation is gone. Of any
 * other kind of text only the beginning is known. */
static struct place place_outside(const struct doc *text, struct place place)
{
    size_t breaks = 0;
    for (size_t i = 0; i < text->as.string.length; i++)
        breaks += text->as.string.at[i] == '\n';
    if (breaks > text->end.line - text->place.line)
        return text->place;
    return (struct place){text->place.line + place.line, 0};
}

static void problems_hand_over(const struct config_reader *reader, struct problems *problems)
{
    for (size_t i = 0; i < reader->inner.count; i++) {
        const struct problem *item = &reader->inner.items[i];
        struct place place = place_outside(reader->text, item->place);
        struct problem *added = item->is_warning
                                    ? problem_warn(problems, place, item->path, "%s", item->text)
                                    : problem_add(problems, place, item->path, "%s", item->text);
        if (item->hint)
            problem_hint(problems, added, "%s", item->hint);
    }
}

struct hived_config *hived_config_read(const struct doc *doc, struct problems *problems)
{
    struct hived_config *config = hived_config_new();
    struct config_reader reader = {.config = config, .arena = &config->arena, .problems = problems};
    arena_init(&reader.scratch);
    problems_init(&reader.inner, &reader.scratch);
    read_all(&reader, doc);
    if (reader.problems->error_count == 0)
        hived_config_finish(config, reader.problems);
    problems_hand_over(&reader, problems);
    problems_release(&reader.inner);
    arena_release(&reader.scratch);
    if (problems->error_count == 0)
        return config;
    hived_config_free(config);
    return NULL;
}
