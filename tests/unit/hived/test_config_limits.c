/* What a configuration may leave out, and its limits.
 *
 * Covers: src/hived/config.c, src/hived/config_read.c */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

struct wrong {
    const char *yaml, *says;
};

/* A key without a value is a key left out. */
static void nothing_is_as_if_left_out(void **state)
{
    struct hived_config *config = world_config_good(
        *state,
        "physicalCluster:\n"
        "  cellTypes:\n"
        "    PAIR: {childCellType: G, childCellNumber: 2.0, isNodeLevel: ~}\n"
        "    BOX: {childCellType: PAIR, childCellNumber: '2', isNodeLevel: true}\n"
        "  physicalCells:\n"
        "  - {cellType: BOX, cellAddress: a, pinnedCellId: ~, cellChildren: ~}\n"
        "  - {cellType: BOX, cellAddress: '', pinnedCellId: '', cellChildren: [~, {cellType: ~}]}\n"
        "  skuTypes: {G: {gpu: ~, memory: ~}}\n"
        "virtualClusters:\n"
        "  none: ~\n"
        "  empty: {virtualCells: ~, pinnedCells: ~}\n"
        "  some: {virtualCells: [{cellType: BOX, cellNumber: ~}]}\n",
        "");
    assert_int_equal(config->vc_count, 3);
    assert_int_equal(config->vcs[2].cells[0].number, 0);
    assert_int_equal(config->types[hived_config_type(config, "BOX")].leaf_count, 4);
    assert_false(config->types[hived_config_type(config, "PAIR")].is_node_level);
    assert_null(config->cells[0].pin);
    assert_int_equal(hived_config_sku(config, "G")->gpu, 0);
    struct hived *hived = hived_new(config);
    assert_int_equal(hived_check(hived, NULL), 0);
    hived_free(hived);
    world_config_wrong(*state, "physicalCluster: ~\n", "");
    hived_config_free(
        world_config_good(*state, /* an empty cluster is one */
                          "physicalCluster: {cellTypes: ~, physicalCells: ~, skuTypes: ~}\n"
                          "virtualClusters: ~\n",
                          ""));
}

/* `count` times `item` (with its number) between `head` and `tail`. */
static const char *repeat(struct arena *arena, const char *head, const char *item, unsigned count,
                          const char *tail)
{
    struct buf out = BUF_INIT;
    buf_string(&out, head);
    for (unsigned i = 0; i < count; i++) {
        const char *mark = strchr(item, '#');
        if (!mark) {
            buf_string(&out, item);
            continue;
        }
        buf_add(&out, item, (size_t)(mark - item));
        buf_format(&out, "%u%s", i, mark + 1);
    }
    buf_string(&out, tail);
    const char *text = arena_copy(arena, buf_as_text(&out));
    buf_release(&out);
    return text;
}

static void limits_are_kept(void **state)
{
    const struct wrong cases[] = {
        {repeat(*state, "physicalCluster:\n  cellTypes:\n",
                "    T#: {childCellType: G, childCellNumber: 1}\n", HIVED_TYPES_MAX / 2 + 1, ""),
         "at most 2048 types are allowed"},
        {repeat(*state, TYPES CELLS "virtualClusters:\n", "  v#: {}\n", HIVED_VCS_MAX + 1, ""),
         "at most 4096 virtual clusters are allowed"},
        {repeat(*state, TYPES "  physicalCells: [{cellType: BOX, cellAddress: ", "x",
                HIVED_NAME_MAX + 1, "}]\n"),
         "must have at most 253 characters"},
        {repeat(*state, "physicalCluster:\n  cellTypes:\n    ", "x", HIVED_NAME_MAX + 1,
                ": {childCellType: G, childCellNumber: 1}\n"),
         "a type's name has 1 to 253 characters"},
        {repeat(*state, TYPES "  physicalCells: [{cellType: DUO, cellChildren: ",
                "[{cellChildren: ", HIVED_LEVELS_MAX, "[{}]"),
         ""},
        {repeat(*state, TYPES CELLS "virtualClusters:\n  ", "v", 64, ": {}\n"),
         "a virtual cluster's name has"},
        {repeat(*state, TYPES CELLS "virtualClusters: {v: {virtualCells: [{cellType: DUO.", "x",
                150, ", cellNumber: 1}]}}\n"),
         "xxxxx is not a cell type"},
        {"physicalCluster:\n"
         "  cellTypes:\n"
         "    BOX: {childCellType: G, childCellNumber: 4096, isNodeLevel: true}\n"
         "    HALL: {childCellType: BOX, childCellNumber: 200}\n"
         "  physicalCells: [{cellType: HALL}, {cellType: HALL}]\n",
         "the cluster has more than 1048576 leaves"},
        {repeat(*state,
                "physicalCluster:\n  cellTypes:\n    T15: {childCellType: G, childCellNumber: "
                "1}\n",
                "    L#: {childCellType: T15, childCellNumber: 1}\n", 1,
                "    BOX: {childCellType: G, childCellNumber: 1048577}\n"),
         "must be an integer from 0 to 1048576"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        world_config_wrong(*state, cases[i].yaml, cases[i].says);
    hived_config_free(
        world_config_good(*state,
                          "physicalCluster:\n"
                          "  cellTypes:\n"
                          "    BOX: {childCellType: G, childCellNumber: 4096, isNodeLevel: true}\n"
                          "    HALL: {childCellType: BOX, childCellNumber: 128}\n"
                          "  physicalCells: [{cellType: HALL}, {cellType: HALL}]\n",
                          "")); /* as many as there may be */
    const char *deep = repeat(*state, TYPES "  physicalCells: [{cellType: DUO, cellChildren: ",
                              "[{cellChildren: ", HIVED_LEVELS_MAX, "[{}]");
    deep = repeat(*state, deep, "}]", HIVED_LEVELS_MAX, "}]\n");
    world_config_wrong(*state, deep, "at most 16 levels are allowed");
}

/* Made by hand, as the automatic one is: names twice are found there, too. */
static void names_twice_are_found(void **state)
{
    static struct hived_type types[] = {
        {.name = "N", .child_name = "G", .child_number = 2, .is_node_level = true},
        {.name = "N", .child_name = "G", .child_number = 4, .is_node_level = true},
        {.name = NULL}};
    static struct hived_vc_spec vcs[] = {{.name = "v"}, {.name = "v"}};
    for (uint32_t i = 0; i < 3; i++) { /* nothing, types, virtual clusters */
        struct problems problems;
        problems_init(&problems, *state);
        struct hived_config *config = hived_config_new();
        config->types = ARENA_ARRAY(&config->arena, struct hived_type, 5);
        memcpy(config->types, types, sizeof types);
        config->type_count = i == 1 ? 2 : 1;
        config->vcs = ARENA_ARRAY(&config->arena, struct hived_vc_spec, 2);
        memcpy(config->vcs, vcs, sizeof vcs);
        config->vc_count = i == 2 ? 2 : 1;
        assert_int_equal(hived_config_finish(config, &problems), i == 0);
        hived_config_free(config);
        problems_release(&problems);
    }
    hived_config_free(NULL);
}

static const struct CMUnitTest tests[] = {
    ARENA_TEST(nothing_is_as_if_left_out),
    ARENA_TEST(limits_are_kept),
    ARENA_TEST(names_twice_are_found),
};
UNIT_FILE(tests, NULL, NULL);
