/* Every rule of the configuration, and that problems name their place. */
#include "unit.h"
#include "world.h"

#include <string.h>

#include "base/memory.h"

struct wrong {
    const char *yaml, *says;
};

static const struct wrong wrongs[] = {
    {"x: 1", "physicalCluster: is needed"},
    {"physicalCluster: 7", "must be a map, is an integer"},
    {"physicalCluster: {cellTypes: {A: {childCellNumber: 2}}}", "A.childCellType: is needed"},
    {"physicalCluster: {cellTypes: {A: {childCellType: B}}}", "childCellNumber must be at least 1"},
    {"physicalCluster: {cellTypes: {A: {childCellType: B, childCellNumber: -1}}}",
     "must be an integer from 0"},
    {"physicalCluster: {cellTypes: {A: {childCellType: A, childCellNumber: 1}}}",
     "contains itself"},
    {"physicalCluster: {cellTypes: {A: {childCellType: B, childCellNumber: 1}, B: {childCellType: "
     "A, childCellNumber: 1}}}",
     "contains itself"},
    {"physicalCluster: {cellTypes: {A: {childCellType: B, childCellNumber: 1000000}, B: "
     "{childCellType: C, childCellNumber: 1000000}}}",
     "is too large"},
    {"physicalCluster: {cellTypes: {A: {childCellType: B, childCellNumber: 1, isNodeLevel: 3}}}",
     "must be true or false"},
    {"physicalCluster: {cellTypes: {a.b: {childCellType: B, childCellNumber: 1}}}", "no dot"},
    {TYPES "  physicalCells: [{cellType: WHAT, cellAddress: x}]", "WHAT is not one of cellTypes"},
    {TYPES "  physicalCells: [{cellType: G, cellAddress: x}]", "G is not one of cellTypes"},
    {TYPES "  physicalCells: [{cellAddress: x}]", "physicalCells[0].cellType: is needed"},
    {TYPES "  physicalCells: [{cellType: PAIR, cellAddress: x}]", "below the node level"},
    {"physicalCluster: {cellTypes: {N: {childCellType: G, childCellNumber: 2, isNodeLevel: true}, "
     "M: {childCellType: N, childCellNumber: 2, isNodeLevel: true}}, physicalCells: [{cellType: "
     "M}]}",
     "several node levels"},
    {TYPES "  physicalCells: [{cellType: DUO, cellChildren: [{cellAddress: a}]}]",
     "1 are listed, a DUO has 2"},
    {TYPES "  physicalCells: [{cellType: DUO, cellChildren: [{cellAddress: a, cellType: PAIR}, "
           "{cellAddress: b}]}]",
     "is PAIR, but its parent's children are BOX"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: a/b}]", "must not contain a slash"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: a}, {cellType: BOX, cellAddress: a}]",
     "device 0 of node a is listed twice"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: a, cellChildren: [{cellChildren: "
           "[{cellAddress: one}, {cellAddress: 1}]}, {}]}]",
     "a device's address is its index"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: a, cellChildren: [{cellChildren: "
           "[{cellAddress: 7}, {cellAddress: 7}]}, {}]}]",
     "device 7 of node a is listed twice"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: a, cellChildren: [{cellChildren: "
           "[{cellAddress: '7'}, {cellAddress: '07'}]}, {}]}]",
     "device 7 of node a is listed twice"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: a, pinnedCellId: p}, {cellType: BOX, "
           "cellAddress: b, pinnedCellId: p}]",
     "p is given to two cells"},
    {TYPES "  physicalCells: [{cellType: DUO, pinnedCellId: p, cellChildren: [{cellAddress: a, "
           "pinnedCellId: q}, {cellAddress: b}]}]",
     "lies inside the pinned cell p"},
    {TYPES CELLS "virtualClusters: {red: {virtualCells: [{cellType: TRIO, cellNumber: 1}]}}",
     "TRIO is not a cell type"},
    {TYPES CELLS "virtualClusters: {red: {virtualCells: [{cellType: PAIR, cellNumber: 1}]}}",
     "no physical cell of type PAIR stands at the top"},
    {TYPES CELLS "virtualClusters: {red: {virtualCells: [{cellType: DUO.PAIR, cellNumber: 1}]}}",
     "DUO is not made of PAIR; give the whole path"},
    {TYPES CELLS "virtualClusters: {red: {virtualCells: [{cellNumber: 1}]}}",
     "virtualClusters.red.virtualCells[0].cellType: is needed"},
    {TYPES CELLS "virtualClusters: {red: {pinnedCells: [{pinnedCellId: ghost}]}}",
     "no physical cell has the pinnedCellId ghost"},
    {TYPES CELLS "virtualClusters: {red: {pinnedCells: [{pinnedCellId: pin}]}, blue: "
                 "{pinnedCells: [{pinnedCellId: pin}]}}",
     "pin is already pinned to red"},
    {TYPES CELLS "virtualClusters: {red: {virtualCells: [{cellType: DUO.BOX, cellNumber: 2}], "
                 "pinnedCells: [{pinnedCellId: pin}]}}",
     "virtualClusters.red: 3 cells BOX of chain DUO are given away (red 3), but only 2"},
    {TYPES CELLS
     "virtualClusters: {red: {virtualCells: [{cellType: DUO.BOX, cellNumber: 2}]}, blue: "
     "{virtualCells: [{cellType: DUO.BOX, cellNumber: 1}]}}",
     "virtualClusters.blue: 3 cells BOX of chain DUO are given away (red 2, blue 1), but only 2"},
    {TYPES CELLS "virtualClusters: {red: {virtualCells: [{cellType: BOX, cellNumber: 0.5}]}}",
     "cellNumber: must be an integer"},
    {"physicalCluster: {cellTypes: {N: {childCellType: G, childCellNumber: 2, isNodeLevel: yes}, "
     "M: "
     "{childCellType: H, childCellNumber: 2, isNodeLevel: on}}, physicalCells: [{cellType: N, "
     "cellAddress: a}, {cellType: M, cellAddress: a}], skuTypes: {G: {gpu: 1}, H: {gpu: 2}}}",
     "GPU 0 of node a is a G and a H"},
    /* the second of the two GPUs of a leaf */
    {"physicalCluster: {cellTypes: {N: {childCellType: G, childCellNumber: 1, isNodeLevel: yes}, "
     "M: {childCellType: H, childCellNumber: 1, isNodeLevel: on}}, physicalCells: [{cellType: N, "
     "cellAddress: a, cellChildren: [{cellAddress: 1}]}, {cellType: M, cellAddress: a}], "
     "skuTypes: {G: {gpu: 1}, H: {gpu: 2}}}",
     "GPU 1 of node a is a G and a H"},
    {TYPES CELLS "virtualClusters: {red: {virtualCells: [{cellType: BOX, cellNumber: 2}]}}",
     "only 1 are left"},
    {TYPES CELLS "virtualClusters: {r d: {virtualCells: [{cellType: BOX, cellNumber: 1}]}}",
     "a virtual cluster's name has"},
    {"physicalCluster: {cellTypes: [1]}", "cellTypes: must be a map, is a list"},
    {"physicalCluster: {cellTypes: {A: 3}}", "A: must be a map, is an integer"},
    {"physicalCluster: {cellTypes: {A: {childCellType: [x], childCellNumber: 1}}}",
     "must be a string, is a list"},
    {"physicalCluster: {cellTypes: {A: {childCellType: B, childCellNumber: many}}}",
     "must be an integer from 0"},
    {"physicalCluster: {cellTypes: {A: {childCellType: B, childCellNumber: 1, isNodeLevel: true}}, "
     "physicalCells: {}}",
     "physicalCells: must be a list, is a map"},
    {TYPES "  physicalCells: [7]", "physicalCells[0]: must be a map, is an integer"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: []}]", "must be a string, is a list"},
    {TYPES "  physicalCells: [{cellType: DUO, cellChildren: 5}]", "must be a list, is an integer"},
    {TYPES "  physicalCells: [{cellType: DUO, cellChildren: [{cellAddress: a, cellChildren: "
           "[{cellChildren: [{cellAddress: 0, cellChildren: [{}]}, {}]}, {}]}, {cellAddress: b}]}]",
     "a device has no children"},
    {TYPES CELLS "  skuTypes: [1]", "skuTypes: must be a map, is a list"},
    {TYPES CELLS "  skuTypes: {G: 1}", "skuTypes: must be a map, is an integer"},
    {TYPES CELLS "  skuTypes: {G: {gpu: -1}}", "skuTypes.G.gpu: must be an integer"},
    {TYPES CELLS "  skuTypes: {G: {memory: [1]}}", "must be an amount like 25Gi"},
    {TYPES CELLS "virtualClusters: [1]", "virtualClusters: must be a map, is a list"},
    {TYPES CELLS "virtualClusters: {red: 1}", "virtualClusters.red: must be a map"},
    {TYPES CELLS "virtualClusters: {red: {virtualCells: 1}}", "virtualCells: must be a list"},
    {TYPES CELLS "virtualClusters: {red: {virtualCells: [1]}}", "virtualCells[0]: must be a map"},
    {TYPES CELLS "virtualClusters: {red: {pinnedCells: 1}}", "pinnedCells: must be a list"},
    {TYPES CELLS "virtualClusters: {red: {pinnedCells: [{}]}}", "pinnedCellId is needed"},
    {TYPES CELLS "virtualClusters: {red: {virtualCells: [{cellType: BOX, cellNumber: 900000}]}}",
     "have more than 1048576 leaves together"},
    {TYPES CELLS "  skuTypes: {G: {gpu: 1, cpu: 4, memory: lots}}", "must be an amount like 25Gi"},
    {TYPES CELLS "  skuTypes: {G: {memory: {}}}", "must be an amount like 25Gi"},
    {TYPES CELLS "  skuTypes: {G: {memory: 1234567890123}}", "must be an amount like 25Gi"},
    {TYPES CELLS "  skuTypes: {G: {memory: 5X}}", "must be an amount like 25Gi"},
    {TYPES CELLS "  skuTypes: {G: {memory: ''}}", "must be an amount like 25Gi"},
    {TYPES CELLS "  skuTypes: {G: {gpu: -0.5}}", "must be an integer from 0 to 1024"},
    {TYPES CELLS "  skuTypes: {G: {gpu: 1e9}}", "must be an integer from 0 to 1024"},
    {TYPES CELLS "  skuTypes: {G: {gpu: 1025}}", "must be an integer from 0 to 1024"},
    {"physicalCluster: {cellTypes: {'': {childCellType: B, childCellNumber: 1}}}", "no dot"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: {}}]", "must be a string, is a map"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: \"a\\0b\"}]", "must have at most 253"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: a, cellChildren: [{cellChildren: "
           "[{cellAddress: -1}, {}]}, {}]}]",
     "a device's address is its index"},
    {TYPES "  physicalCells: [{cellType: BOX, cellAddress: a, cellChildren: [{cellChildren: "
           "[{cellAddress: 65536}, {}]}, {}]}]",
     "a device's address is its index"},
    {"physicalCluster: {cellTypes: {A: {childCellType: G, childCellNumber: 2}}, physicalCells: "
     "[{cellType: A, cellAddress: a}]}",
     "node level"},
    {TYPES CELLS "virtualClusters: {'': {virtualCells: [{cellType: BOX, cellNumber: 1}]}}",
     "a virtual cluster's name has"},
    {"config: {config: {config: {config: {physicalCluster: {}}}}}", "physicalCluster: is needed"},
    {"hivedscheduler: 5", "physicalCluster: is needed"},
    {"", "physicalCluster: is needed"},
    {"{", "config"},
};

static void wrong_ones_are_refused(void **state)
{
    for (size_t i = 0; i < COUNT_OF(wrongs); i++)
        world_config_wrong(*state, wrongs[i].yaml, wrongs[i].says);
}

static void amounts_of_memory_are_read(void **state)
{
    static const struct {
        const char *text;
        unsigned mib;
    } amounts[] = {
        {"512", 512}, {"512Mi", 512}, {"2G", 2048},    {"1Ti", 1048576},   {"2048Ki", 2},
        {"3M", 3},    {"4MB", 4},     {"2Gi", 2048},   {"2GB", 2048},      {"1T", 1048576},
        {"1024K", 1}, {"~", 0},       {"7.5Gi", 7680}, {"0.25Ti", 262144}, {"1.123456789Gi", 1150}};
    for (size_t i = 0; i < COUNT_OF(amounts); i++) {
        const char *yaml =
            arena_format(*state, TYPES CELLS "  skuTypes: {G: {memory: %s}}\n", amounts[i].text);
        struct hived_config *config = world_config_good(*state, yaml, "");
        assert_int_equal(hived_config_sku(config, "G")->memory_mib, amounts[i].mib);
        hived_config_free(config);
    }
}

static void good_ones_are_read(void **state)
{
    struct hived_config *config = world_config_good(
        *state,
        TYPES CELLS "  skuTypes: {G: {gpu: 1, cpu: 4, memory: 8Gi}}\n"
                    "virtualClusters:\n"
                    "  red: {virtualCells: [{cellType: DUO.BOX, cellNumber: 1}], pinnedCells: "
                    "[{pinnedCellId: pin}]}\n"
                    "  blue: {virtualCells: [{cellType: BOX, cellNumber: 1}]}\n"
                    "unknown: key\n",
        NULL);
    assert_int_equal(hived_config_sku(config, "G")->memory_mib, 8192);
    assert_null(hived_config_sku(config, "H"));
    assert_int_equal(config->types[hived_config_type(config, "DUO")].leaf_count, 8);
    assert_int_equal(config->types[hived_config_type(config, "DUO")].level, 4);
    hived_config_free(config);
}

/* As OpenPAI's service configuration has it: the text of a file inside a file. */
static void nested_ones_are_found(void **state)
{
    struct hived_config *config = world_config_good(
        *state,
        "hivedscheduler:\n"
        "  config: |\n"
        "    physicalCluster:\n"
        "      cellTypes: {N: {childCellType: G, childCellNumber: 2, isNodeLevel: "
        "true}}\n"
        "      physicalCells: [{cellType: N, cellAddress: a}]\n"
        "    virtualClusters: {default: {virtualCells: [{cellType: N, cellNumber: "
        "1}]}}\n",
        "");
    hived_config_free(config);
}

/* The line is that of the file; columns are not known. */
static void nested_ones_name_their_line(void **state)
{
    static const char *const configs[][2] = {
        {"hivedscheduler:\n"
         "  config: |\n"
         "    physicalCluster:\n"
         "      cellTypes: {N: {childCellType: G, childCellNumber: 0, isNodeLevel: true}}\n",
         "config:4: physicalCluster.cellTypes.N: childCellNumber must be at least 1\n"},
        {"config: |\n"
         "  physicalCluster: ]\n",
         "config:2: not valid YAML"},
        {"config: \"physicalCluster: 7\\nx: 1\\n\"\n",
         "config:1:9: physicalCluster: must be a map, is an integer\n"},
        {"config: |\n"
         "\n"
         "  physicalCluster:\n"
         "    cellTypes:\n"
         "      N: {childCellType: G, childCellNumber: 1, isNodeLevel: true}\n"
         "    physicalCells: [{cellType: N}]\n",
         "config:6: warning: physicalCluster.physicalCells[0]: a node without cellAddress"},
    };
    for (size_t i = 0; i < COUNT_OF(configs); i++) {
        const char *problems;
        hived_config_free(world_config(*state, configs[i][0], &problems));
        if (strncmp(problems, configs[i][1], strlen(configs[i][1])) != 0)
            fail_msg("%s\nsays %s\nnot %s", configs[i][0], problems, configs[i][1]);
        assert_null(strstr(problems, "is needed"));
    }
}

static void skus_that_meet_no_type_are_warned_of(void **state)
{
    const char *problems;
    struct hived_config *config =
        world_config(*state, TYPES CELLS "  skuTypes: {BOX: {gpu: 1}}\n", &problems);
    assert_non_null(config);
    assert_non_null(strstr(problems, "warning: physicalCluster.skuTypes.BOX: no cellTypes have"));
    assert_non_null(strstr(problems, "warning: physicalCluster.cellTypes.PAIR.childCellType: G is "
                                     "not in skuTypes: each counts as one GPU"));
    hived_config_free(config);
}

/* HiveD reads YAML 1.1 and, in its first versions, gpuTypes. */
static void old_words_are_read(void **state)
{
    struct hived_config *config = world_config_good(
        *state,
        "physicalCluster:\n"
        "  gpuTypes: {G: {gpu: 1, cpu: 3}, CPU: {cpu: 2}}\n"
        "  cellTypes:\n"
        "    N: {childCellType: G, childCellNumber: 2, isNodeLevel: yes}\n"
        "    M: {childCellType: CPU, childCellNumber: 2, isNodeLevel: on}\n"
        "    O: {childCellType: N, childCellNumber: 2, isNodeLevel: off}\n"
        "  physicalCells: [{cellType: N, cellAddress: a}, {cellType: M, cellAddress: a}]\n",
        NULL);
    assert_int_equal(hived_config_sku(config, "G")->cpu, 3);
    hived_config_free(config);
}

/* Nobody says which of two leaf types has the GPU. */
static void gpus_of_two_types_are_warned_of(void **state)
{
    const char *problems;
    struct hived_config *config = world_config(
        *state,
        "physicalCluster:\n"
        "  cellTypes:\n"
        "    N: {childCellType: G, childCellNumber: 2, isNodeLevel: true}\n"
        "    M: {childCellType: H, childCellNumber: 2, isNodeLevel: true}\n"
        "  physicalCells: [{cellType: N, cellAddress: a}, {cellType: M, cellAddress: a}]\n",
        &problems);
    assert_non_null(config);
    assert_non_null(strstr(problems, "GPU 0 of node a is a G and a H; where one of them"));
    assert_null(strstr(problems, "GPU 1"));
    hived_config_free(config);
}

static void nodes_without_address_are_warned_of(void **state)
{
    struct hived_config *config =
        world_config_good(*state, TYPES "  physicalCells: [{cellType: DUO}]",
                          "a node without cellAddress is called 1");
    hived_config_free(config);
}

static const struct CMUnitTest tests[] = {
    ARENA_TEST(wrong_ones_are_refused),
    ARENA_TEST(good_ones_are_read),
    ARENA_TEST(amounts_of_memory_are_read),
    ARENA_TEST(nested_ones_are_found),
    ARENA_TEST(nested_ones_name_their_line),
    ARENA_TEST(skus_that_meet_no_type_are_warned_of),
    ARENA_TEST(nodes_without_address_are_warned_of),
    ARENA_TEST(old_words_are_read),
    ARENA_TEST(gpus_of_two_types_are_warned_of),
};
UNIT_FILE(tests, NULL, NULL);
