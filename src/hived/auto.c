/* auto.c — see auto.h. */
#include "hived/auto.h"
#include "base/err.h"
#include "base/memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct node_shape { /* of a node's GPUs: so many NUMA nodes of so many switches of so many GPUs */
    uint32_t numas, switches, gpus;
};

struct hived_maker {
    struct hived_config *config;
    struct arena *arena; /* of the configuration */
    struct hived_vc_spec *vc;
    uint32_t grain, type_room, sku_room, cell_room;
    uint64_t leaves;
};

struct device {
    uint16_t numa, bridge, index;
};

static int device_compare(const void *a, const void *b)
{
    const struct device *x = a, *y = b;
    if (x->numa != y->numa)
        return x->numa - y->numa;
    if (x->bridge != y->bridge)
        return x->bridge - y->bridge;
    return x->index - y->index;
}

/* Length of the runs of one NUMA node (or of one switch of it), 0 when they differ. */
static uint32_t run_length(const struct device *devices, uint32_t count, bool by_switch)
{
    assert(count > 0);
    uint32_t length = 0;
    for (uint32_t i = 0; i < count;) {
        uint32_t run = 1;
        while (i + run < count && devices[i + run].numa == devices[i].numa &&
               (!by_switch || devices[i + run].bridge == devices[i].bridge))
            run++;
        if (length && run != length)
            return 0;
        length = run;
        i += run;
    }
    return length;
}

/* Those that work; all when none does: then the node as a whole is not healthy, and requests for
 * such GPUs wait instead of being refused. */
static struct device *devices_sort(const struct node_facts *node, struct arena *arena,
                                   uint32_t *count)
{
    struct device *devices = ARENA_ARRAY(arena, struct device, node->gpu_count);
    uint32_t lost = 0;
    for (uint32_t i = 0; i < node->gpu_count; i++)
        lost += node_gpu_is_lost(node, i);
    *count = 0;
    for (uint32_t i = 0; i < node->gpu_count; i++)
        if (lost == node->gpu_count || !node_gpu_is_lost(node, i))
            devices[(*count)++] =
                (struct device){.numa = node->gpu_numa ? node->gpu_numa[i] : 0,
                                .bridge = node->gpu_switch ? node->gpu_switch[i] : 0,
                                .index = (uint16_t)i};
    qsort(devices, *count, sizeof *devices, device_compare);
    return devices;
}

static struct node_shape shape_of(const struct device *devices, uint32_t count)
{
    assert(count > 0);
    uint32_t numa = run_length(devices, count, false), bridge = run_length(devices, count, true);
    if (!numa)
        return (struct node_shape){1, 1, count};
    if (!bridge || bridge == 1)
        bridge = numa;
    return (struct node_shape){count / numa, numa / bridge, bridge};
}

static struct hived_type *type_get(struct hived_maker *maker, const char *name, bool *is_new)
{
    struct hived_config *config = maker->config;
    uint32_t known = hived_config_type(config, name);
    *is_new = known == HIVED_NONE;
    if (!*is_new)
        return &config->types[known];
    assert(config->type_count < maker->type_room);
    struct hived_type *type = &config->types[config->type_count++];
    *type = (struct hived_type){.name = name, .place = {1, 1}};
    return type;
}

/* The cell above `child`, unless it would hold just one. */
static const char *type_above(struct hived_maker *maker, const char *name, const char *child,
                              uint32_t number, bool is_node)
{
    assert(number > 0);
    if (number == 1 && !is_node)
        return child;
    bool is_new;
    struct hived_type *type = type_get(maker, name, &is_new);
    if (is_new) {
        type->child_name = child;
        type->child_number = number;
        type->is_node_level = is_node;
    }
    return name;
}

/* A name that can stand in a path of types. */
static const char *name_clean(struct hived_maker *maker, const char *name)
{
    char *clean = arena_copy(maker->arena, text_of(name));
    for (char *at = clean; *at; at++)
        if (*at == '.' || *at == '/' || *at == ' ')
            *at = '-';
    return clean;
}

static const char *gpu_node_type(struct hived_maker *maker, const char *leaf,
                                 struct node_shape shape)
{
    const char *name = name_clean(maker, leaf);
    uint32_t per_numa = shape.switches * shape.gpus, all = per_numa * shape.numas;
    const char *below =
        type_above(maker, arena_format(maker->arena, "%s-SWITCH%u", name, shape.gpus), leaf,
                   shape.switches > 1 ? shape.gpus : 1, false);
    uint32_t number = shape.switches > 1 ? shape.switches : shape.gpus;
    const char *numa = shape.switches > 1 ? arena_format(maker->arena, "%s-NUMA%u-BY%u", name,
                                                         per_numa, shape.switches)
                                          : arena_format(maker->arena, "%s-NUMA%u", name, per_numa);
    if (shape.numas > 1) {
        below = type_above(maker, numa, below, number, false);
        number = shape.numas;
    }
    const char *node = shape.numas > 1 || shape.switches > 1
                           ? arena_format(maker->arena, "%s-NODE%u-%uX%uX%u", name, all,
                                          shape.numas, shape.switches, shape.gpus)
                           : arena_format(maker->arena, "%s-NODE%u", name, all);
    return type_above(maker, node, below, number, true);
}

static void sku_lower(struct hived_maker *maker, const char *leaf, uint32_t gpu, uint32_t cpu,
                      uint64_t memory_mib)
{
    struct hived_config *config = maker->config;
    for (uint32_t i = 0; i < config->sku_count; i++) {
        struct hived_sku *sku = &config->skus[i];
        if (strcmp(sku->leaf_type, leaf))
            continue;
        sku->cpu = cpu < sku->cpu ? cpu : sku->cpu;
        sku->memory_mib = memory_mib < sku->memory_mib ? memory_mib : sku->memory_mib;
        return;
    }
    assert(config->sku_count < maker->sku_room);
    config->skus[config->sku_count++] = (struct hived_sku){leaf, gpu, cpu, memory_mib};
}

static struct hived_cell_spec *cell_add(struct hived_maker *maker, const char *type,
                                        const char *node)
{
    struct hived_config *config = maker->config;
    assert(config->cell_count < maker->cell_room);
    struct hived_cell_spec *cell = &config->cells[config->cell_count++];
    const uint32_t index = hived_config_type(config, type);
    *cell = (struct hived_cell_spec){
        .type_name = type, .address = node, .place = {1, 1}, .type = index};
    for (uint32_t i = 0; i < maker->vc->cell_count; i++) {
        if (maker->vc->cells[i].type == index) {
            maker->vc->cells[i].number++;
            return cell;
        }
    }
    maker->vc->cells[maker->vc->cell_count++] = (struct hived_vc_cell){
        .path = type, .number = 1, .place = {1, 1}, .chain_type = index, .type = index};
    return cell;
}

/* Where topology order is not index order the leaves' addresses are written out. */
static void children_name(struct hived_maker *maker, struct hived_cell_spec *cell,
                          const char *type_name, const struct device **next)
{
    uint32_t type = hived_config_type(maker->config, type_name);
    if (type == HIVED_NONE || !maker->config->types[type].child_name) {
        cell->address = arena_format(maker->arena, "%u", (*next)++->index);
        return;
    }
    const struct hived_type *own = &maker->config->types[type];
    cell->child_count = own->child_number;
    cell->children = ARENA_ARRAY(maker->arena, struct hived_cell_spec, own->child_number);
    for (uint32_t i = 0; i < own->child_number; i++)
        children_name(maker, &cell->children[i], own->child_name, next);
}

static void gpu_cells_add(struct hived_maker *maker, const struct node_facts *node, uint32_t cpu,
                          uint64_t memory_mib)
{
    uint32_t count;
    struct device *devices = devices_sort(node, maker->arena, &count);
    const char *leaf = arena_copy(maker->arena, text_of(node->gpu_type));
    const char *type = gpu_node_type(maker, leaf, shape_of(devices, count));
    struct hived_cell_spec *cell =
        cell_add(maker, type, arena_copy(maker->arena, text_of(node->name)));
    bool is_in_order = true;
    for (uint32_t i = 0; i < count; i++)
        is_in_order &= devices[i].index == i;
    const struct device *next = devices;
    const char *name = cell->address;
    if (!is_in_order)
        children_name(maker, cell, type, &next);
    cell->address = name;
    sku_lower(maker, leaf, 1, cpu, memory_mib);
}

/* --- CPU cells --- */

struct node_share { /* of a node */
    uint32_t gpu_cpu, spare_cpu;
    uint64_t gpu_memory_mib, spare_memory_mib; /* of each GPU; left over */
};

static struct node_share share_of(const struct node_facts *node)
{
    struct node_share share = {.spare_cpu = node->cpu, .spare_memory_mib = node->memory_mib};
    if (!node->gpu_count)
        return share;
    uint32_t cpu = node->cpu / 4 * 3 + node->cpu % 4 * 3 / 4;
    share.gpu_cpu = cpu / node->gpu_count ? cpu / node->gpu_count : 1;
    share.gpu_memory_mib = node->memory_mib / 4 * 3 / node->gpu_count;
    uint64_t used = (uint64_t)share.gpu_cpu * node->gpu_count;
    share.spare_cpu = used < node->cpu ? node->cpu - (uint32_t)used : 0;
    share.spare_memory_mib -= share.gpu_memory_mib * node->gpu_count;
    return share;
}

enum { MEMORY_STEP_MIB = 256, MEMORY_STEPS = 16 };

/* Rounded down, so that machines that differ by some MiB are of one kind. */
static uint64_t memory_round(uint64_t memory_mib)
{
    uint64_t step = MEMORY_STEP_MIB;
    while (step > 1 && memory_mib < step * MEMORY_STEPS)
        step /= 2;
    return memory_mib - memory_mib % step;
}

struct hived_auto_cpus hived_auto_cpus(const struct node_facts *node, uint32_t grain)
{
    assert(grain > 0);
    struct node_share share = share_of(node);
    if (!share.spare_cpu)
        return (struct hived_auto_cpus){0};
    while (share.spare_cpu / grain > HIVED_NODE_LEAVES_MAX)
        grain *= 2;
    uint32_t per_leaf = grain < share.spare_cpu ? grain : share.spare_cpu;
    uint32_t leaves = share.spare_cpu / per_leaf;
    uint64_t memory = memory_round(share.spare_memory_mib / leaves);
    return (struct hived_auto_cpus){leaves, per_leaf, memory ? memory : 1};
}

void hived_auto_count(struct hived_auto_sum *sum, const struct node_facts *node, bool is_added)
{
    for (uint32_t i = 0; i < HIVED_AUTO_GRAINS; i++) {
        uint64_t leaves = (uint64_t)node->gpu_count + hived_auto_cpus(node, 1u << i).leaves;
        assert(is_added || sum->leaves[i] >= leaves);
        sum->leaves[i] = is_added ? sum->leaves[i] + leaves : sum->leaves[i] - leaves;
    }
}

uint32_t hived_auto_grain(const struct hived_auto_sum *sum)
{
    uint32_t i = 0;
    while (i + 1 < HIVED_AUTO_GRAINS && sum->leaves[i] > HIVED_LEAVES_MAX)
        i++;
    return 1u << i;
}

enum { GROUP_MIN = 8, GROUP_MAX = 16 };

/* How many of `count` cells lie in a group; 0: no number divides them. */
static uint32_t group_size(uint32_t count)
{
    assert(count > 0);
    for (uint32_t size = GROUP_MAX; size >= GROUP_MIN; size--)
        if (count % size == 0)
            return size;
    return 0;
}

/* The groups follow from the number of leaves, so a name stands for one structure. */
static const char *cpu_node_type(struct hived_maker *maker, const char *leaf, uint32_t leaves)
{
    assert(leaves > 0);
    const char *below = leaf;
    uint32_t number = leaves, size;
    while (number > HIVED_AUTO_FLAT_MAX && (size = group_size(number)) > 0) {
        number /= size;
        below = type_above(maker, arena_format(maker->arena, "%s-GROUP%u", leaf, leaves / number),
                           below, size, false);
    }
    return type_above(maker, arena_format(maker->arena, "%s-NODE%u", leaf, leaves), below, number,
                      true);
}

static void cpu_cells_add(struct hived_maker *maker, const struct node_facts *node)
{
    struct hived_auto_cpus cpus = hived_auto_cpus(node, maker->grain);
    if (!cpus.leaves)
        return;
    const char *leaf =
        arena_format(maker->arena, "CPU%u-%lluM", cpus.cpu, (unsigned long long)cpus.memory_mib);
    cell_add(maker, cpu_node_type(maker, leaf, cpus.leaves),
             arena_copy(maker->arena, text_of(node->name)));
    sku_lower(maker, leaf, 0, cpus.cpu, cpus.memory_mib);
}

/* --- the whole --- */

enum { TYPES_A_NODE = 6, SKUS_A_NODE = 2 }; /* three types above its GPU leaf, three for CPUs */

struct hived_maker *hived_maker_new(uint32_t count, uint32_t grain)
{
    assert(grain > 0);
    struct hived_maker *maker = mem_zero(1, sizeof *maker);
    struct hived_config *config = hived_config_new();
    const uint32_t kinds = count < HIVED_AUTO_KINDS_MAX ? count : HIVED_AUTO_KINDS_MAX;
    *maker = (struct hived_maker){.config = config,
                                  .arena = &config->arena,
                                  .grain = grain,
                                  .type_room = TYPES_A_NODE * kinds,
                                  .sku_room = SKUS_A_NODE * kinds,
                                  .cell_room = 2 * count};
    config->types = ARENA_ARRAY(maker->arena, struct hived_type, 2 * (size_t)maker->type_room + 1);
    config->skus = ARENA_ARRAY(maker->arena, struct hived_sku, maker->sku_room + 1u);
    config->cells = ARENA_ARRAY(maker->arena, struct hived_cell_spec, maker->cell_room + 1u);
    config->vcs = maker->vc = ARENA_NEW(maker->arena, struct hived_vc_spec);
    config->vc_count = 1;
    *maker->vc = (struct hived_vc_spec){.name = "default", .place = {1, 1}};
    maker->vc->cells = ARENA_ARRAY(maker->arena, struct hived_vc_cell, maker->type_room + 1u);
    return maker;
}

void hived_maker_free(struct hived_maker *maker)
{
    if (maker)
        hived_config_free(maker->config);
    mem_free(maker);
}

uint32_t hived_maker_leaves(const struct hived_maker *maker, const struct node_facts *node)
{
    return node->gpu_count + hived_auto_cpus(node, maker->grain).leaves;
}

int hived_maker_add(struct hived_maker *maker, const struct node_facts *node, struct err *err)
{
    struct hived_config *config = maker->config;
    const struct node_share share = share_of(node);
    const uint32_t leaves = hived_maker_leaves(maker, node);
    assert(node->name && config->cell_count + 2 <= maker->cell_room);
    if (config->type_count + TYPES_A_NODE > maker->type_room ||
        config->sku_count + SKUS_A_NODE > maker->sku_room)
        return err_fail(err, ERR_TOO_BIG, "", "more than %d kinds of nodes; give a configuration",
                        HIVED_AUTO_KINDS_MAX);
    if (node->gpu_count > HIVED_NODE_LEAVES_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "node %s has more than %d GPUs", node->name,
                        HIVED_NODE_LEAVES_MAX);
    if (maker->leaves + leaves > HIVED_LEAVES_MAX)
        return err_fail(err, ERR_TOO_BIG, "", "the cluster has more than %d leaves",
                        HIVED_LEAVES_MAX);
    maker->leaves += leaves;
    if (node->gpu_count)
        gpu_cells_add(maker, node, share.gpu_cpu, share.gpu_memory_mib ? share.gpu_memory_mib : 1);
    cpu_cells_add(maker, node);
    return 0;
}

struct hived_config *hived_maker_finish(struct hived_maker *maker)
{
    struct hived_config *config = maker->config;
    hived_config_derive(config);
    mem_free(maker);
    return config;
}

/* Checked like one that people wrote: also for what a caller may give twice. */
struct hived_config *hived_config_auto(const struct node_facts *nodes, uint32_t count,
                                       uint32_t grain, struct err *err)
{
    struct hived_maker *maker = hived_maker_new(count, grain);
    for (uint32_t i = 0; i < count; i++)
        if (hived_maker_add(maker, &nodes[i], err)) {
            hived_maker_free(maker);
            return NULL;
        }
    struct hived_config *config = maker->config;
    mem_free(maker);
    cleanup_problems struct problems problems;
    problems_init(&problems, &config->arena);
    bool is_good = hived_config_finish(config, &problems);
    if (!is_good)
        err_fail(err, ERR_TOO_BIG, problems.items[0].path, "%s", problems.items[0].text);
    if (is_good)
        return config;
    hived_config_free(config);
    return NULL;
}
