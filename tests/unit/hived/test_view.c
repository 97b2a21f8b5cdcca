/* The order of a view's nodes is that of a stable sort, however many of them have changed. Looks
 * inside.
 */
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "hived/state.h"

enum { NODES = 200, LEAVES = 3 };

static void cluster_write(struct buf *out)
{
    buf_string(out, "physicalCluster:\n"
                    "  cellTypes: {BOX: {childCellType: G, childCellNumber: 3, isNodeLevel: "
                    "true}}\n"
                    "  physicalCells:\n");
    for (int i = 0; i < NODES; i++)
        buf_format(out, "  - {cellType: BOX, cellAddress: n%d}\n", i);
    buf_format(out, "virtualClusters:\n  red: {virtualCells: [{cellType: BOX, cellNumber: %d}]}\n",
               NODES);
}

/* The view of red's nodes. */
static struct view *view_of_red(struct hived *h)
{
    for (uint32_t i = 0; i < h->view_count; i++)
        if (!h->views[i].is_cluster && h->views[i].count == NODES)
            return &h->views[i];
    fail_msg("there is no such view");
    return NULL;
}

static void order_of(const struct hived *h, const struct view *view, uint32_t *nodes)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < view->bucket_count; b++)
        for (uint32_t n = view->buckets[b].first; n != HIVED_NONE; n = h->view_nodes[n].next)
            nodes[count++] = n;
    assert_int_equal(count, NODES);
}

static uint32_t used_of(const struct hived *h, uint32_t node)
{
    return h->cells[h->view_nodes[node].cell].used;
}

/* Most used first; a sort by insertion is stable. */
static void order_expect(const struct hived *h, uint32_t *nodes)
{
    for (uint32_t i = 1; i < NODES; i++) {
        const uint32_t node = nodes[i];
        uint32_t at = i;
        for (; at > 0 && used_of(h, nodes[at - 1]) < used_of(h, node); at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = node;
    }
}

static void order_check(struct hived *h)
{
    struct view *view = view_of_red(h);
    uint32_t expected[NODES], settled[NODES];
    order_of(h, view, expected);
    order_expect(h, expected);
    view_settle(h, view);
    order_of(h, view, settled);
    assert_memory_equal(settled, expected, sizeof settled);
    assert_int_equal(view->dirty_count, 0);
}

static void single_name(char *name, size_t room, uint32_t number)
{
    snprintf(name, room, "single-%u", number);
}

/* Jobs of one to three leaves come; then some of them end, and a gang takes one leaf in many nodes:
 * nodes move forward and back at once. */
static void as_many_as(uint32_t ends, uint32_t pods, uint32_t seed)
{
    struct world world;
    struct arena arena;
    struct buf yaml = BUF_INIT;
    char name[32];
    uint32_t random = seed, number = 0;
    arena_init(&arena);
    cluster_write(&yaml);
    world_init(&world, arena_copy(&arena, buf_as_text(&yaml)));
    for (;; number++) {
        random = random * 1664525 + 1013904223;
        single_name(name, sizeof name, number);
        const struct hived_result result =
            world_ask(&world, (struct ask){.group = arena_copy(&arena, text_of(name)),
                                           .vc = "red",
                                           .pods = 1,
                                           .leaves = 1 + (random >> 16) % LEAVES});
        if (result.kind != HIVED_BIND)
            break;
    }
    assert_true(number >= NODES);
    for (uint32_t i = 0; i < NODES; i++) { /* some room in many nodes, in an order of its own */
        single_name(name, sizeof name, i * 77 % number);
        hived_group_end(world.hived, name);
    }
    order_check(world.hived);
    world_ask(&world, (struct ask){.group = "gang", .vc = "red", .pods = pods, .leaves = 1});
    for (uint32_t i = NODES; i < NODES + ends; i++) {
        single_name(name, sizeof name, i * 77 % number);
        hived_group_end(world.hived, name);
    }
    order_check(world.hived);
    hived_group_end(world.hived, "gang");
    order_check(world.hived);
    world_release(&world);
    buf_release(&yaml);
    arena_release(&arena);
}

static void the_order_is_that_of_a_stable_sort(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        as_many_as(0, 2, seed);    /* a few nodes move, … */
        as_many_as(40, 20, seed);  /* … more of them, … */
        as_many_as(100, 60, seed); /* … most, in both directions */
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_order_is_that_of_a_stable_sort),
};
UNIT_FILE(tests, NULL, NULL);
