/* hived_check, on which the random tests rely, finds what is broken. Looks inside.
 */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/memory.h"
#include "hived/state.h"

/* Two boxes in a duo that is red's; box c is blue's and sick; box d is nobody's. */
static const char cluster[] =
    "physicalCluster:\n"
    "  cellTypes:\n"
    "    BOX: {childCellType: G, childCellNumber: 2, isNodeLevel: true}\n"
    "    DUO: {childCellType: BOX, childCellNumber: 2}\n"
    "  physicalCells:\n"
    "  - {cellType: DUO, cellChildren: [{cellAddress: a}, {cellAddress: b}]}\n"
    "  - {cellType: DUO, cellChildren: [{cellAddress: c}, {cellAddress: d}]}\n"
    "virtualClusters:\n"
    "  red: {virtualCells: [{cellType: DUO, cellNumber: 1}]}\n"
    "  blue: {virtualCells: [{cellType: DUO.BOX, cellNumber: 1}]}\n";

/* The physical cell at an address, counted from a leaf of the node upwards. */
static uint32_t cell_of(struct hived *h, const char *node, uint8_t level)
{
    uint32_t at = text_map_get(&h->node_index, text_of(node));
    uint32_t cell = h->nodes[at].leaves.items[0];
    while (h->cells[cell].level < level)
        cell = h->cells[cell].parent;
    return cell;
}

static struct cell *leaf(struct hived *h, const char *node)
{
    return &h->cells[cell_of(h, node, 1)];
}

static struct group *group_named(struct hived *h, const char *name)
{
    return h->groups[text_map_get(&h->group_index, text_of(name))];
}

static void leaf_priority(struct hived *h)
{
    leaf(h, "a")->priority = HIVED_PRIORITY_FREE;
}

static void leaf_use_count(struct hived *h)
{
    leaf(h, "a")->used = 0;
}

static void leaf_user(struct hived *h)
{
    leaf(h, "a")->using = HIVED_NONE;
}

static void leaf_state(struct hived *h)
{
    leaf(h, "a")->state = HIVED_CELL_RESERVED;
}

static void leaf_health(struct hived *h)
{
    leaf(h, "a")->is_bad = true;
}

static void node_health(struct hived *h)
{
    h->nodes[text_map_get(&h->node_index, text_of("a"))].is_bad = true;
}

static void box_use_count(struct hived *h)
{
    h->cells[cell_of(h, "a", 2)].used++;
}

static void box_priority(struct hived *h)
{
    h->cells[cell_of(h, "a", 2)].priority++;
}

static void box_health(struct hived *h)
{
    h->cells[cell_of(h, "c", 2)].bad_children--;
}

static void box_parent(struct hived *h)
{
    h->cells[cell_of(h, "a", 2)].parent = cell_of(h, "c", 3);
}

static void binding_of_one_side(struct hived *h)
{
    h->cells[h->cells[cell_of(h, "a", 2)].bound].bound = cell_of(h, "b", 2);
}

static void group_without_its_leaf(struct hived *h)
{
    group_named(h, "g")->physical[0] = cell_of(h, "d", 1);
}

static void group_of_another_priority(struct hived *h)
{
    group_named(h, "g")->priority++;
}

static void group_on_another_virtual_leaf(struct hived *h)
{
    group_named(h, "g")->virtual[0] = group_named(h, "g")->virtual[1];
}

static void opportunistic_group_with_priority(struct hived *h)
{
    group_named(h, "g")->virtual[0] = HIVED_NONE;
}

static void free_place(struct hived *h)
{
    struct chain *chain = &h->chains[h->cells[cell_of(h, "d", 2)].chain];
    assert_int_equal(chain->levels[3].free.count, 1);
    h->rests[chain->levels[3].free.items[0]].free_at += 1;
}

static void free_weight(struct hived *h)
{
    h->chains[h->cells[cell_of(h, "d", 2)].chain].levels[3].free.weights[0]++;
}

static void free_count(struct hived *h)
{
    h->chains[h->cells[cell_of(h, "a", 1)].chain].levels[2].total_left++;
}

static void quota_sum(struct hived *h)
{
    h->chains[h->cells[cell_of(h, "a", 1)].chain].levels[2].all_vc_free++;
}

static void quota_free(struct hived *h)
{
    uint32_t vc = text_map_get(&h->vc_index, text_of("red"));
    quota_of(h, vc, h->cells[cell_of(h, "a", 1)].chain)->levels[3].free++;
}

static void quota_bit(struct hived *h)
{
    uint32_t vc = text_map_get(&h->vc_index, text_of("red"));
    quota_of(h, vc, h->cells[cell_of(h, "a", 1)].chain)->levels[3].unbound[0] ^= 1;
}

static void view_count(struct hived *h)
{
    h->views[0].count++;
}

static void bucket_key(struct hived *h)
{
    h->views[0].buckets[0].key++;
}

static void what_is_broken_is_found(void **state)
{
    (void)state;
    static const struct {
        void (*break_it)(struct hived *h);
        const char *says;
    } cases[] = {
        {leaf_priority, "leaf"},
        {leaf_use_count, "use of cell"},
        {leaf_user, "leaf"},
        {leaf_state, "state of leaf"},
        {leaf_health, "cell"},
        {node_health, "health of leaf"},
        {box_use_count, "use of cell"},
        {box_priority, "priority of cell"},
        {box_health, "health of cell"},
        {box_parent, "cell"},
        {binding_of_one_side, "binding of cell"},
        {group_without_its_leaf, "place in the group of leaf"},
        {group_of_another_priority, "priority of leaf"},
        {group_on_another_virtual_leaf, "virtual leaf of leaf"},
        {opportunistic_group_with_priority, "priority of opportunistic leaf"},
        {free_place, "free cell"},
        {free_weight, "weight of free cell"},
        {free_count, "cells left of level"},
        {quota_sum, "level"},
        {quota_free, "free cells of quota level"},
        {quota_bit, "unbound bit of root"},
        {view_count, "nodes of view"},
        {bucket_key, "view"},
    };
    struct world world;
    world_init(&world, cluster);
    struct hived_result result =
        world_ask(&world, (struct ask){.group = "g", .vc = "red", .pods = 1, .leaves = 2});
    assert_string_equal(result.placement.slots[0].node, "a");
    hived_node_set(world.hived, "c", false);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct hived *copy = hived_copy(world.hived);
        struct err err = {0};
        assert_int_equal(hived_check(copy, &err), 0);
        cases[i].break_it(copy);
        if (hived_check(copy, &err) != ERR_INTERNAL || !strstr(err.text, cases[i].says))
            fail_msg("case %zu, %s: %s", i, cases[i].says, err.text);
        hived_free(copy);
    }
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_broken_is_found),
};
UNIT_FILE(tests, NULL, NULL);
