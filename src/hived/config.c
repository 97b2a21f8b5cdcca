/* config.c — what follows from a configuration, and every rule it must keep. */
#include "hived/config.h"
#include "base/map.h"
#include "base/memory.h"
#include "doc/doc.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

struct config_checker {
    struct hived_config *config;
    struct problems *problems;
    struct text_map types; /* name → index */
    struct text_map pins;  /* id → owner: virtual cluster, or PIN_FREE */
    struct text_map nodes; /* name → number */
    struct id_map devices; /* device_key → 1 */
    struct id_map gpus;    /* gpu_key → leaf type */
    bool has_leaf_types;   /* several */
    bool is_gpu_warned;
    uint64_t leaf_count;
    uint32_t chain_type; /* of the top cell under check */
};

enum { PIN_FREE = HIVED_VCS_MAX + 1 };

struct hived_config *hived_config_new(void)
{
    struct hived_config *config = mem_zero(1, sizeof *config);
    arena_init(&config->arena);
    config->users = 1;
    return config;
}

void hived_config_share(struct hived_config *config)
{
    config->users++;
}

void hived_config_free(struct hived_config *config)
{
    if (!config || --config->users > 0)
        return;
    text_map_release(&config->type_index);
    text_map_release(&config->sku_index);
    arena_release(&config->arena);
    mem_free(config);
}

uint32_t hived_config_type(const struct hived_config *config, const char *name)
{
    assert(name);
    if (config->type_index.count)
        return text_map_get(&config->type_index, text_of(name));
    for (uint32_t i = 0; i < config->type_count; i++)
        if (!strcmp(config->types[i].name, name))
            return i;
    return HIVED_NONE;
}

const struct hived_sku *hived_config_sku(const struct hived_config *config, const char *leaf_type)
{
    if (config->sku_index.count) {
        const uint32_t at = text_map_get(&config->sku_index, text_of(leaf_type));
        return at == MAP_NONE ? NULL : &config->skus[at];
    }
    for (uint32_t i = 0; i < config->sku_count; i++)
        if (!strcmp(config->skus[i].leaf_type, leaf_type))
            return &config->skus[i];
    return NULL;
}

static void add(struct config_checker *checker, struct place place, const char *path,
                const char *name, const char *format, ...) __attribute__((format(printf, 5, 6)));

static void add(struct config_checker *checker, struct place place, const char *path,
                const char *name, const char *format, ...)
{
    char whole[320], text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(whole, sizeof whole, "%s%s%s", path, *name ? "." : "", name);
    problem_add(checker->problems, place, whole, "%s", text);
}

/* Names to indices; names used only as a child become leaf types. */
static bool link_types(struct config_checker *checker)
{
    struct hived_config *config = checker->config;
    uint32_t written = config->type_count;
    bool is_good = true;
    for (uint32_t i = 0; i < written; i++) {
        if (text_map_get(&checker->types, text_of(config->types[i].name)) != MAP_NONE) {
            add(checker, config->types[i].place, "physicalCluster.cellTypes", config->types[i].name,
                "is defined twice");
            is_good = false;
        }
        text_map_set(&checker->types, text_of(config->types[i].name), i);
    }
    for (uint32_t i = 0; i < written; i++) {
        struct hived_type *type = &config->types[i];
        if (!type->child_name) { /* a leaf type written out, by automatic configurations */
            *type = (struct hived_type){.name = type->name,
                                        .child = HIVED_NONE,
                                        .place = type->place,
                                        .leaf_type = i,
                                        .leaf_count = 1,
                                        .level = 1};
            continue;
        }
        if (type->child_number < 1) {
            add(checker, type->place, "physicalCluster.cellTypes", type->name,
                "childCellNumber must be at least 1");
            is_good = false;
        }
        uint32_t child = text_map_get(&checker->types, text_of(type->child_name));
        if (child == MAP_NONE) {
            child = config->type_count++;
            struct hived_type *leaf = &config->types[child];
            *leaf = (struct hived_type){.name = type->child_name,
                                        .child = HIVED_NONE,
                                        .place = type->place,
                                        .leaf_type = child,
                                        .leaf_count = 1,
                                        .level = 1};
            text_map_set(&checker->types, text_of(leaf->name), child);
        }
        type->child = child;
    }
    return is_good;
}

/* Levels and leaf counts from the bottom up; false: a cycle or a limit. */
static bool derive_type(struct config_checker *checker, uint32_t index)
{
    assert(index < checker->config->type_count);
    struct hived_type *types = checker->config->types;
    uint32_t chain[HIVED_LEVELS_MAX + 1];
    unsigned depth = 0;
    for (uint32_t at = index; types[at].level == 0; at = types[at].child) {
        if (depth > HIVED_LEVELS_MAX - 2) {
            add(checker, types[index].place, "physicalCluster.cellTypes", types[index].name,
                "has more than %d levels below it, or contains itself", HIVED_LEVELS_MAX - 1);
            return false;
        }
        chain[depth++] = at;
    }
    while (depth > 0) {
        struct hived_type *type = &types[chain[--depth]];
        const struct hived_type *child = &types[type->child];
        uint64_t leaves = (uint64_t)child->leaf_count * type->child_number;
        if (leaves > HIVED_LEAVES_MAX || child->level + 1 > HIVED_LEVELS_MAX) {
            add(checker, type->place, "physicalCluster.cellTypes", type->name,
                "is too large: at most %d leaves and %d levels are allowed", HIVED_LEAVES_MAX,
                HIVED_LEVELS_MAX);
            return false;
        }
        type->leaf_count = (uint32_t)leaves;
        type->level = (uint8_t)(child->level + 1);
        type->leaf_type = child->leaf_type;
        type->node_level = type->is_node_level ? type->level : child->node_level;
        type->node_level_count = (uint8_t)(child->node_level_count + type->is_node_level);
    }
    return true;
}

struct cell_at {                 /* where a listed cell stands */
    const struct cell_at *above; /* NULL: on top */
    uint32_t number;             /* among its siblings */
    const char *node;            /* name of the node around it, or NULL; its number */
    uint32_t node_number;
    const char *pin; /* of a pinned cell around it, or NULL */
    uint32_t default_index;
};

enum { PATH_SIZE = 320 };

/* Its path in the document, which is made only for what is wrong there. */
static void cell_path(const struct cell_at *at, char *path)
{
    char above[PATH_SIZE];
    if (!at->above) {
        snprintf(path, PATH_SIZE, "physicalCluster.physicalCells[%u]", at->number);
        return;
    }
    cell_path(at->above, above);
    snprintf(path, PATH_SIZE, "%.240s.cellChildren[%u]", above, at->number);
}

static void add_at(struct config_checker *checker, const struct hived_cell_spec *spec,
                   const struct cell_at *at, const char *name, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static void add_at(struct config_checker *checker, const struct hived_cell_spec *spec,
                   const struct cell_at *at, const char *name, const char *format, ...)
{
    char path[PATH_SIZE], text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cell_path(at, path);
    add(checker, spec->place, path, name, "%s", text);
}

static uint64_t gpu_key(const struct cell_at *at, uint32_t gpu)
{
    return (uint64_t)at->node_number << 32 | gpu;
}

static uint64_t device_key(const struct cell_at *at, uint32_t type, uint32_t index)
{
    enum { INDEX_BITS = 16, TYPE_BITS = 12 };
    _Static_assert(HIVED_INDEX_MAX < 1 << INDEX_BITS && HIVED_TYPES_MAX <= 1 << TYPE_BITS, "fits");
    assert(type < HIVED_TYPES_MAX && index <= HIVED_INDEX_MAX);
    return ((uint64_t)at->node_number << TYPE_BITS | type) << INDEX_BITS | index;
}

/* GPUs of a leaf, as a SKU says; without one 1, and nobody said so. */
static uint32_t leaf_gpus(const struct hived_config *config, uint32_t type, bool *is_said)
{
    const struct hived_sku *sku = hived_config_sku(config, config->types[type].name);
    *is_said = sku != NULL;
    return sku ? sku->gpu : 1;
}

/* A GPU stands for one leaf only, also where a node is in trees of several leaf types. */
static void check_gpus(struct config_checker *checker, const struct hived_cell_spec *spec,
                       uint32_t type, const struct cell_at *at, uint32_t index)
{
    assert(type < checker->config->type_count);
    struct hived_config *config = checker->config;
    bool is_said, is_other_said;
    uint32_t count = leaf_gpus(config, type, &is_said);
    for (uint32_t gpu = index * count; gpu < (index + 1) * count; gpu++) {
        uint32_t other = id_map_get(&checker->gpus, gpu_key(at, gpu));
        if (other == MAP_NONE) {
            id_map_set(&checker->gpus, gpu_key(at, gpu), type);
            continue;
        }
        if (other == type)
            continue; /* said already */
        leaf_gpus(config, other, &is_other_said);
        if (is_said && is_other_said) {
            add_at(checker, spec, at, "", "GPU %u of node %s is a %s and a %s", gpu, at->node,
                   config->types[other].name, config->types[type].name);
        } else if (!checker->is_gpu_warned) {
            char path[PATH_SIZE];
            cell_path(at, path);
            checker->is_gpu_warned = true;
            problem_warn(checker->problems, spec->place, path,
                         "GPU %u of node %s is a %s and a %s; where one of them is no GPU, "
                         "skuTypes should say so",
                         gpu, at->node, config->types[other].name, config->types[type].name);
        }
    }
}

static void check_device(struct config_checker *checker, const struct hived_cell_spec *spec,
                         uint32_t type, const struct cell_at *at, uint32_t index)
{
    assert(type < checker->config->type_count);
    const uint64_t key = device_key(at, type, index);
    if (id_map_get(&checker->devices, key) != MAP_NONE)
        add_at(checker, spec, at, "", "device %u of node %s is listed twice", index, at->node);
    id_map_set(&checker->devices, key, 1);
    if (checker->has_leaf_types)
        check_gpus(checker, spec, type, at, index);
}

static void check_cell(struct config_checker *checker, struct hived_cell_spec *spec,
                       uint32_t type_index, struct cell_at at);

static void check_children(struct config_checker *checker, struct hived_cell_spec *spec,
                           struct cell_at at)
{
    const struct hived_type *type = &checker->config->types[spec->type];
    struct hived_cell_spec defaults = {.place = spec->place};
    for (uint32_t i = 0; i < type->child_number; i++) {
        struct cell_at below = at;
        below.above = &at;
        below.number = i;
        below.default_index = at.default_index * type->child_number + i;
        defaults = (struct hived_cell_spec){.place = spec->place};
        check_cell(checker, spec->child_count ? &spec->children[i] : &defaults, type->child, below);
    }
}

static void check_pin(struct config_checker *checker, const struct hived_cell_spec *spec,
                      const struct cell_at *at)
{
    if (!spec->pin)
        return;
    if (at->pin)
        add_at(checker, spec, at, "pinnedCellId", "lies inside the pinned cell %s", at->pin);
    if (text_map_get(&checker->pins, text_of(spec->pin)) != MAP_NONE)
        add_at(checker, spec, at, "pinnedCellId", "%s is given to two cells", spec->pin);
    text_map_set(&checker->pins, text_of(spec->pin), PIN_FREE);
}

enum { NUMBER_SIZE = 16 };

static const char *number_text(char text[NUMBER_SIZE], uint32_t number)
{
    snprintf(text, NUMBER_SIZE, "%u", number);
    return text;
}

static void check_leaf(struct config_checker *checker, const struct hived_cell_spec *spec,
                       uint32_t type, const struct cell_at *at)
{
    int64_t index = at->default_index;
    const bool is_number = !spec->address || text_to_int64(text_of(spec->address), &index);
    char number[NUMBER_SIZE];
    if (!is_number || index < 0 || index > HIVED_INDEX_MAX)
        add_at(checker, spec, at, "cellAddress",
               "a device's address is its index, from 0 to %d, not %s", HIVED_INDEX_MAX,
               spec->address ? spec->address : number_text(number, at->default_index));
    else if (at->node)
        check_device(checker, spec, type, at, (uint32_t)index);
    if (spec->child_count)
        add_at(checker, spec, at, "cellChildren", "a device has no children");
}

/* The number of the node, from 0. */
static uint32_t node_number(struct config_checker *checker, const char *name)
{
    uint32_t number = text_map_get(&checker->nodes, text_of(name));
    if (number != MAP_NONE)
        return number;
    number = (uint32_t)checker->nodes.count;
    text_map_set(&checker->nodes, text_of(arena_copy(&checker->config->arena, text_of(name))),
                 number);
    return number;
}

static void check_cell(struct config_checker *checker, struct hived_cell_spec *spec,
                       uint32_t type_index, struct cell_at at)
{
    assert(type_index < checker->config->type_count);
    const struct hived_type *type = &checker->config->types[type_index];
    spec->type = type_index;
    if (spec->type_name && strcmp(spec->type_name, type->name))
        add_at(checker, spec, &at, "cellType", "is %s, but its parent's children are %s",
               spec->type_name, type->name);
    check_pin(checker, spec, &at);
    if (spec->pin)
        at.pin = spec->pin;
    if (type->level == 1) {
        check_leaf(checker, spec, type_index, &at);
        return;
    }
    char number[NUMBER_SIZE], path[PATH_SIZE];
    if (type->is_node_level && !spec->address) {
        cell_path(&at, path);
        problem_warn(checker->problems, spec->place, path,
                     "a node without cellAddress is called %s",
                     number_text(number, at.default_index));
    }
    if (type->is_node_level) {
        at.node = spec->address ? spec->address : number;
        at.node_number = node_number(checker, at.node);
        at.default_index = 0;
    }
    if (spec->child_count && spec->child_count != type->child_number) {
        add_at(checker, spec, &at, "cellChildren", "%u are listed, a %s has %u", spec->child_count,
               type->name, type->child_number);
        return;
    }
    check_children(checker, spec, at);
}

static void check_top(struct config_checker *checker, uint32_t number)
{
    struct hived_config *config = checker->config;
    struct hived_cell_spec *spec = &config->cells[number];
    char path[64];
    snprintf(path, sizeof path, "physicalCluster.physicalCells[%u]", number);
    spec->type = HIVED_NONE;
    if (!spec->type_name) {
        add(checker, spec->place, path, "cellType", "is needed");
        return;
    }
    uint32_t index = text_map_get(&checker->types, text_of(spec->type_name));
    if (index == MAP_NONE || config->types[index].child == HIVED_NONE) {
        add(checker, spec->place, path, "cellType", "%s is not one of cellTypes", spec->type_name);
        return;
    }
    const struct hived_type *type = &config->types[index];
    if (type->node_level_count != 1) {
        add(checker, spec->place, path, "cellType",
            type->node_level_count ? "%s has several node levels below it, needs exactly one"
                                   : "%s is below the node level; a top cell is a node or more",
            type->name);
        return;
    }
    uint32_t node_type = index;
    while (!config->types[node_type].is_node_level)
        node_type = config->types[node_type].child;
    if (config->types[node_type].leaf_count > HIVED_NODE_LEAVES_MAX) {
        add(checker, spec->place, path, "cellType", "a node has at most %d leaves",
            HIVED_NODE_LEAVES_MAX);
        return;
    }
    checker->leaf_count += type->leaf_count;
    if (checker->leaf_count > HIVED_LEAVES_MAX) {
        add(checker, spec->place, path, "", "the cluster has more than %d leaves",
            HIVED_LEAVES_MAX);
        return;
    }
    checker->chain_type = index;
    check_cell(checker, spec, index, (struct cell_at){.number = number, .default_index = number});
}

static bool is_chain(const struct hived_config *config, uint32_t type)
{
    assert(type < config->type_count);
    for (uint32_t i = 0; i < config->cell_count; i++)
        if (config->cells[i].type == type)
            return true;
    return false;
}

static void check_vc_cell(struct config_checker *checker, const char *path,
                          struct hived_vc_cell *cell)
{
    const struct hived_config *config = checker->config;
    struct text rest = text_of(cell->path);
    uint32_t above = HIVED_NONE;
    do {
        struct text part = text_cut(&rest, '.');
        uint32_t type = text_map_get(&checker->types, part);
        if (type == MAP_NONE) {
            add(checker, cell->place, path, "cellType", "%.*s is not a cell type",
                (int)(part.length > 100 ? 100 : part.length), part.at);
            return;
        }
        if (above == HIVED_NONE) {
            if (!is_chain(config, type)) {
                add(checker, cell->place, path, "cellType",
                    "no physical cell of type %s stands at the top", config->types[type].name);
                return;
            }
            cell->chain_type = type;
        } else if (config->types[above].child != type) {
            add(checker, cell->place, path, "cellType", "%s is not made of %s; give the whole path",
                config->types[above].name, config->types[type].name);
            return;
        }
        above = type;
    } while (rest.at);
    cell->type = above;
}

static const struct hived_cell_spec *find_pin(const struct hived_cell_spec *spec, const char *id)
{
    if (spec->pin && !strcmp(spec->pin, id))
        return spec;
    for (uint32_t i = 0; i < spec->child_count; i++) {
        const struct hived_cell_spec *found = find_pin(&spec->children[i], id);
        if (found)
            return found;
    }
    return NULL;
}

static void check_vc_pin(struct config_checker *checker, const char *path, uint32_t vc,
                         struct hived_vc_pin *pin)
{
    uint32_t owner = text_map_get(&checker->pins, text_of(pin->id));
    if (owner == MAP_NONE) {
        add(checker, pin->place, path, "pinnedCells", "no physical cell has the pinnedCellId %s",
            pin->id);
        return;
    }
    if (owner != PIN_FREE) {
        add(checker, pin->place, path, "pinnedCells", "%s is already pinned to %s", pin->id,
            checker->config->vcs[owner].name);
        return;
    }
    text_map_set(&checker->pins, text_of(pin->id), vc);
    for (uint32_t i = 0; i < checker->config->cell_count && !pin->cell; i++) {
        pin->cell = find_pin(&checker->config->cells[i], pin->id);
        pin->chain_type = checker->config->cells[i].type;
    }
    assert(pin->cell);
}

static bool is_vc_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "_.-");
    return length > 0 && !name[length] && length <= 63;
}

static void check_vcs(struct config_checker *checker)
{
    struct hived_config *config = checker->config;
    uint64_t leaves = 0;
    for (uint32_t i = 0; i < config->vc_count; i++) {
        struct hived_vc_spec *vc = &config->vcs[i];
        char path[320];
        if (!is_vc_name(vc->name))
            add(checker, vc->place, "virtualClusters", vc->name,
                "a virtual cluster's name has 1 to 63 letters, digits, '_', '.' or '-'");
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(vc->name, config->vcs[k].name))
                add(checker, vc->place, "virtualClusters", vc->name, "is defined twice");
        for (uint32_t k = 0; k < vc->cell_count; k++) {
            snprintf(path, sizeof path, "virtualClusters.%s.virtualCells[%u]", vc->name, k);
            vc->cells[k].type = HIVED_NONE;
            check_vc_cell(checker, path, &vc->cells[k]);
            if (vc->cells[k].type != HIVED_NONE)
                leaves +=
                    (uint64_t)config->types[vc->cells[k].type].leaf_count * vc->cells[k].number;
        }
        snprintf(path, sizeof path, "virtualClusters.%s", vc->name);
        for (uint32_t k = 0; k < vc->pin_count; k++)
            check_vc_pin(checker, path, i, &vc->pins[k]);
        if (leaves > HIVED_LEAVES_MAX)
            add(checker, vc->place, "virtualClusters", vc->name,
                "the virtual clusters have more than %d leaves together", HIVED_LEAVES_MAX);
    }
}

/* Cells of a type in a chain that a virtual cluster is given; *place: where the last of them is. */
static int64_t vc_wants(const struct hived_vc_spec *vc, uint32_t chain_type, uint32_t type,
                        struct place *place)
{
    int64_t count = 0;
    for (uint32_t k = 0; k < vc->cell_count; k++) {
        if (vc->cells[k].chain_type != chain_type || vc->cells[k].type != type)
            continue;
        count += vc->cells[k].number;
        *place = vc->cells[k].place;
    }
    for (uint32_t k = 0; k < vc->pin_count; k++) {
        if (vc->pins[k].chain_type != chain_type || vc->pins[k].cell->type != type)
            continue;
        count++;
        *place = vc->pins[k].place;
    }
    return count;
}

/* Who has how many, at the place of the first one that is too many. */
static void fit_complain(struct config_checker *checker, uint32_t chain_type, uint32_t type,
                         int64_t wanted, int64_t available)
{
    assert(wanted > available);
    const struct hived_config *config = checker->config;
    char holders[200] = "";
    size_t length = 0;
    struct place place = {1, 1};
    const char *first = "";
    int64_t sum = 0;
    for (uint32_t i = 0; i < config->vc_count; i++) {
        struct place own;
        int64_t count = vc_wants(&config->vcs[i], chain_type, type, &own);
        if (!count)
            continue;
        sum += count;
        if (sum > available && !*first) {
            first = config->vcs[i].name;
            place = own;
        }
        if (length < sizeof holders - 1)
            length += (size_t)snprintf(holders + length, sizeof holders - length, "%s%s %lld",
                                       length ? ", " : "", config->vcs[i].name, (long long)count);
    }
    add(checker, place, "virtualClusters", first,
        "%lld cells %s of chain %s are given away (%s), but only %lld are left for them",
        (long long)wanted, config->types[type].name, config->types[chain_type].name, holders,
        (long long)available);
}

/* From the top level down: what is left of each level after the quotas above it. */
static void check_fit(struct config_checker *checker, uint32_t chain_type)
{
    assert(chain_type < checker->config->type_count);
    const struct hived_config *config = checker->config;
    int64_t wanted[HIVED_LEVELS_MAX + 1] = {0};
    for (uint32_t i = 0; i < config->vc_count; i++) {
        const struct hived_vc_spec *vc = &config->vcs[i];
        for (uint32_t k = 0; k < vc->cell_count; k++)
            if (vc->cells[k].chain_type == chain_type)
                wanted[config->types[vc->cells[k].type].level] += vc->cells[k].number;
        for (uint32_t k = 0; k < vc->pin_count; k++)
            if (vc->pins[k].chain_type == chain_type)
                wanted[config->types[vc->pins[k].cell->type].level]++;
    }
    int64_t available = 0;
    for (uint32_t i = 0; i < config->cell_count; i++)
        available += config->cells[i].type == chain_type;
    for (uint32_t type = chain_type; type != HIVED_NONE; type = config->types[type].child) {
        uint8_t level = config->types[type].level;
        if (wanted[level] > available) {
            fit_complain(checker, chain_type, type, wanted[level], available);
            return;
        }
        available = (available - wanted[level]) * config->types[type].child_number;
    }
}

static void check_all(struct config_checker *checker)
{
    struct hived_config *config = checker->config;
    size_t errors = checker->problems->error_count;
    if (!link_types(checker))
        return;
    for (uint32_t i = 0; i < config->type_count; i++)
        if (!derive_type(checker, i))
            return;
    uint32_t leaf_types = 0;
    for (uint32_t i = 0; i < config->type_count; i++)
        leaf_types += config->types[i].level == 1;
    checker->has_leaf_types = leaf_types > 1;
    for (uint32_t i = 0; i < config->cell_count; i++)
        check_top(checker, i);
    if (checker->problems->error_count != errors)
        return;
    check_vcs(checker);
    if (checker->problems->error_count != errors)
        return;
    for (uint32_t i = 0; i < config->cell_count; i++) {
        bool is_first = true;
        for (uint32_t k = 0; k < i && is_first; k++)
            is_first = config->cells[k].type != config->cells[i].type;
        if (is_first)
            check_fit(checker, config->cells[i].type);
    }
}

/* Every search asks for some of them. A few are found as fast one by one. */
static void index_make(struct config_checker *checker)
{
    enum { LISTED_MAX = 16 };
    struct hived_config *config = checker->config;
    assert(!config->type_index.count && !config->sku_index.count);
    if (config->type_count > LISTED_MAX)
        config->type_index = checker->types;
    else
        text_map_release(&checker->types);
    checker->types = (struct text_map){0};
    if (config->sku_count <= LISTED_MAX)
        return;
    for (uint32_t i = config->sku_count; i-- > 0;) /* the first of a name counts */
        text_map_set(&config->sku_index, text_of(config->skus[i].leaf_type), i);
}

void hived_config_derive(struct hived_config *config)
{
    struct problems problems;
    struct config_checker checker = {.config = config, .problems = &problems};
    problems_init(&problems, &config->arena);
    bool is_good = link_types(&checker);
    for (uint32_t i = 0; is_good && i < config->type_count; i++)
        is_good = derive_type(&checker, i);
    assert(is_good);
    index_make(&checker);
    problems_release(&problems);
}

bool hived_config_finish(struct hived_config *config, struct problems *problems)
{
    struct config_checker checker = {.config = config, .problems = problems};
    size_t errors = problems->error_count;
    check_all(&checker);
    index_make(&checker);
    text_map_release(&checker.pins);
    text_map_release(&checker.nodes);
    id_map_release(&checker.devices);
    id_map_release(&checker.gpus);
    return problems->error_count == errors;
}
