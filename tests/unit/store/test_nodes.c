/* Nodes, all of them and by name. */
#include "unit.h"
#include "world.h"

#include "base/memory.h"
#include "store/read.h"
#include "store/store.h"

static void add_node(struct world *world, uint32_t id, const char *name)
{
    *ARRAY_ADD(&world->output.records) = (struct record){
        .kind = RECORD_NODE,
        .node = {.id = {id},
                 .facts = {.name = name, .address = "", .gpu_type = "", .reason = "", .engine = ""},
                 .blame = 0}};
}

static void nodes_come_in_pages_by_name(void **state)
{
    struct world *world = *state;
    struct store_nodes nodes;
    int64_t count;
    add_node(world, 0, "c");
    add_node(world, 1, "a");
    add_node(world, 2, "B");
    assert_int_equal(commit(world, NULL, 0), 0);
    assert_int_equal(store_node_count(world->reader, &count, &world->err), 0);
    assert_int_equal(count, 3);
    assert_int_equal(store_nodes(world->reader, &world->arena, &nodes, &world->err), 0);
    assert_int_equal(nodes.count, 3);
    assert_string_equal(nodes.items[0].facts.name, "c");
    const struct text none = {NULL, 0};
    assert_int_equal(store_nodes_page(world->reader, none, 2, &world->arena, &nodes, &world->err),
                     0);
    assert_int_equal(nodes.count, 2);
    assert_string_equal(nodes.items[0].facts.name, "B"); /* names are ordered as their bytes are */
    assert_string_equal(nodes.items[1].facts.name, "a");
    assert_int_equal(
        store_nodes_page(world->reader, TEXT("a"), 2, &world->arena, &nodes, &world->err), 0);
    assert_int_equal(nodes.count, 1);
    assert_string_equal(nodes.items[0].facts.name, "c");
    assert_int_equal(nodes.items[0].id.v, 0);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
static const struct CMUnitTest tests[] = {
    WORLD(nodes_come_in_pages_by_name),
};
UNIT_FILE(tests, NULL, NULL);
