/* Pods' annotations, and the automatic configuration from nodes.
 *
 * Covers: src/hived/config_read.c */
#include "gangs.h"
#include "pod_request.h"
#include "unit.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "hived/auto.h"

static int read_request(struct arena *arena, const char *yaml, struct hived_request *request,
                        struct err *err)
{
    struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(text_of(yaml), DOC_YAML, arena, &problems);
    problems_release(&problems);
    return pod_request_read(doc, "t/pod", arena, request, err);
}

static void wrong_requests_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *path, *says;
    } wrongs[] = {
        {"", "", "must be a map"},
        {"7", "", "must be a map"},
        {"leafCellNumber: 1", "virtualCluster", "is needed"},
        {"virtualCluster: [a]\nleafCellNumber: 1", "virtualCluster", "must be a string, is a list"},
        {"virtualCluster: a", "leafCellNumber", "at least 1"},
        {"virtualCluster: a\nleafCellNumber: x", "leafCellNumber", "must be an integer"},
        {"virtualCluster: a\nleafCellNumber: 99999999999", "leafCellNumber", "must be an integer"},
        {"virtualCluster: a\nleafCellNumber: 1\npriority: high", "priority", "an integer"},
        {"virtualCluster: a\nleafCellNumber: 1\npriority: 1001", "priority", "from -1 to 1000"},
        {"virtualCluster: a\nleafCellNumber: 1\npinnedCellId: {}", "pinnedCellId", "a string"},
        {"virtualCluster: a\nleafCellNumber: 1\nleafCellType: {}", "leafCellType", "a string"},
        {"virtualCluster: a\nleafCellNumber: 1\nlazyPreemptionEnable: 3", "lazyPreemptionEnable",
         "true or false"},
        {"virtualCluster: a\nleafCellNumber: 1\nignoreK8sSuggestedNodes: 3",
         "ignoreK8sSuggestedNodes", "true or false"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: [g]}", "name", "a string"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: g, withinOneCell: []}",
         "withinOneCell", "a string"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: g}", "affinityGroup.members",
         "must be a list"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: g, members: []}",
         "affinityGroup.members", "1 to 1000 members"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {members: [{podNumber: 1, "
         "leafCellNumber: 1}]}",
         "affinityGroup.name", "is needed"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: g, members: [{podNumber: "
         "x}]}",
         "podNumber", "an integer"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: g, members: [{podNumber: 1, "
         "leafCellNumber: []}]}",
         "leafCellNumber", "an integer"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: g, members: [{podNumber: 0, "
         "leafCellNumber: 1}]}",
         "affinityGroup.members", "at least 1"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: g, members: [{podNumber: 1, "
         "leafCellNumber: 0}]}",
         "affinityGroup.members", "at least 1"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: g, members: {}}",
         "affinityGroup.members", "must be a list"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: g, members: [{podNumber: x, "
         "leafCellNumber: 1}, {podNumber: 1, leafCellNumber: 1}]}",
         "podNumber", "an integer"},
        {"virtualCluster: a\nleafCellNumber: 1\npriority: -99999999999", "priority", "an integer"},
        {"virtualCluster: \"a\\0b\"\nleafCellNumber: 1", "virtualCluster", "at most 253"},
        {"virtualCluster: a\nleafCellNumber: 1\naffinityGroup: {name: g, members: [{podNumber: 1, "
         "leafCellNumber: 2}]}",
         "leafCellNumber", "no member of the gang has 1 leaves"},
    };
    for (size_t i = 0; i < COUNT_OF(wrongs); i++) {
        struct arena arena;
        struct hived_request request;
        struct err err = {0};
        arena_init(&arena);
        int code = read_request(&arena, wrongs[i].yaml, &request, &err);
        if (code != ERR_INVALID || strcmp(err.path, wrongs[i].path) ||
            !strstr(err.text, wrongs[i].says))
            fail_msg("%s\nsays %d %s: %s", wrongs[i].yaml, code, err.path, err.text);
        arena_release(&arena);
    }
}

static void long_requests_are_refused(void **state)
{
    (void)state;
    struct arena arena;
    struct hived_request request;
    struct err err = {0};
    struct buf yaml = BUF_INIT;
    arena_init(&arena);
    buf_string(&yaml, "leafCellNumber: 1\nvirtualCluster: ");
    for (int i = 0; i <= HIVED_NAME_MAX; i++)
        buf_char(&yaml, 'v');
    assert_int_equal(read_request(&arena, buf_cstr(&yaml), &request, &err), ERR_INVALID);
    assert_string_equal(err.path, "virtualCluster");
    yaml.at[--yaml.length] = '\0'; /* the longest that is allowed */
    assert_int_equal(read_request(&arena, yaml.at, &request, &err), 0);
    assert_int_equal(strlen(request.virtual_cluster), HIVED_NAME_MAX);
    buf_clear(&yaml);
    buf_string(&yaml,
               "leafCellNumber: 1\nvirtualCluster: v\naffinityGroup:\n  name: g\n  members:\n");
    for (int i = 0; i <= HIVED_MEMBERS_MAX; i++)
        buf_string(&yaml, "  - {podNumber: 1, leafCellNumber: 1}\n");
    assert_int_equal(read_request(&arena, buf_cstr(&yaml), &request, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "at most 1000 members"));
    buf_release(&yaml);
    arena_release(&arena);
}

static void requests_are_read(void **state)
{
    (void)state;
    struct arena arena;
    struct hived_request request;
    struct err err = {0};
    arena_init(&arena);
    assert_int_equal(read_request(&arena,
                                  "virtualCluster: a\ngpuNumber: 2\ngpuType: V\nfuture: {}\n"
                                  "lazyPreemptionEnable: true\nignoreK8sSuggestedNodes: false\n",
                                  &request, &err),
                     0);
    assert_string_equal(request.group, "t/pod");
    assert_string_equal(request.leaf_type, "V");
    assert_int_equal(request.leaves, 2);
    assert_int_equal(request.members[0].pods, 1);
    assert_true(request.is_lazy && request.uses_suggested);
    assert_int_equal(read_request(&arena,
                                  "{virtualCluster: 5, leafCellNumber: 1, priority: -1, "
                                  "pinnedCellId: p, affinityGroup: {name: g, withinOneCell: R, "
                                  "members: [{podNumber: 3, leafCellNumber: 1, withinOneCell: N}, "
                                  "{podNumber: 1, gpuNumber: 4}]}}",
                                  &request, &err),
                     0);
    assert_string_equal(request.virtual_cluster, "5");
    assert_string_equal(request.group, "g");
    assert_string_equal(request.within_one_cell, "R");
    assert_string_equal(request.members[0].within_one_cell, "N");
    assert_int_equal(request.member_count, 2);
    assert_int_equal(request.members[1].leaves, 4);
    assert_false(request.uses_suggested);
    arena_release(&arena);
}

/* "TYPE=number,child" of all inner types, and the SKUs. */
static const char *tell(struct arena *arena, const struct hived_config *config)
{
    struct buf out = BUF_INIT;
    for (uint32_t i = 0; i < config->type_count; i++)
        if (config->types[i].child_name)
            buf_format(&out, "%s=%ux%s%s ", config->types[i].name, config->types[i].child_number,
                       config->types[i].child_name, config->types[i].is_node_level ? "!" : "");
    for (uint32_t i = 0; i < config->sku_count; i++)
        buf_format(&out, "%s:%u,%u,%u ", config->skus[i].leaf_type, config->skus[i].gpu,
                   config->skus[i].cpu, (unsigned)config->skus[i].memory_mib);
    for (uint32_t i = 0; i < config->vcs[0].cell_count; i++)
        buf_format(&out, "%ux%s ", config->vcs[0].cells[i].number, config->vcs[0].cells[i].path);
    const char *text = arena_copy(arena, buf_as_text(&out));
    buf_release(&out);
    return text;
}

static void nodes_become_cells(void **state)
{
    (void)state;
    static const uint16_t two[] = {0, 0, 0, 0, 1, 1, 1, 1}, four[] = {0, 0, 1, 1, 2, 2, 3, 3},
                          mixed[] = {1, 0, 1, 0}, uneven[] = {0, 0, 0, 1},
                          uneven_switch[] = {0, 1, 1, 1, 2, 2, 3, 3}, single[] = {0, 1, 2, 3},
                          one_lost[] = {0, NODE_GPU_LOST, 1, 1},
                          all_lost[] = {NODE_GPU_LOST, NODE_GPU_LOST};
    static const struct {
        struct node_facts node;
        const char *says;
    } cases[] = {
        {{.name = "a",
          .cpu = 64,
          .memory_mib = 65536,
          .gpu_count = 8,
          .gpu_type = "V.1",
          .gpu_numa = two,
          .gpu_switch = four},
         "V-1-SWITCH2=2xV.1 V-1-NUMA4-BY2=2xV-1-SWITCH2 V-1-NODE8-2X2X2=2xV-1-NUMA4-BY2! "
         "CPU1-1024M-NODE16=16xCPU1-1024M! V.1:1,6,6144 CPU1-1024M:0,1,1024 1xV-1-NODE8-2X2X2 "
         "1xCPU1-1024M-NODE16 "},
        {{.name = "a",
          .cpu = 8,
          .memory_mib = 8192,
          .gpu_count = 4,
          .gpu_type = "V",
          .gpu_numa = mixed},
         "V-NUMA2=2xV V-NODE4-2X1X2=2xV-NUMA2! CPU1-512M-NODE4=4xCPU1-512M! V:1,1,1536 "
         "CPU1-512M:0,1,512 1xV-NODE4-2X1X2 1xCPU1-512M-NODE4 "},
        {{.name = "a",
          .cpu = 4,
          .memory_mib = 4096,
          .gpu_count = 4,
          .gpu_type = "V",
          .gpu_numa = uneven},
         "V-NODE4=4xV! V:1,1,768 1xV-NODE4 "},
        {{.name = "a",
          .cpu = 8,
          .memory_mib = 8192,
          .gpu_count = 8,
          .gpu_type = "V",
          .gpu_numa = two,
          .gpu_switch = uneven_switch},
         "V-NUMA4=4xV V-NODE8-2X1X4=2xV-NUMA4! V:1,1,768 1xV-NODE8-2X1X4 "},
        {{.name = "a",
          .cpu = 4,
          .memory_mib = 4096,
          .gpu_count = 4,
          .gpu_type = "V",
          .gpu_switch = single},
         "V-NODE4=4xV! V:1,1,768 1xV-NODE4 "},
        {{.name = "a",
          .cpu = 4,
          .memory_mib = 4096,
          .gpu_count = 4,
          .gpu_type = "V",
          .gpu_switch = one_lost},
         "V-NODE3=3xV! V:1,1,768 1xV-NODE3 "},
        {{.name = "a",
          .cpu = 4,
          .memory_mib = 4096,
          .gpu_count = 2,
          .gpu_type = "V",
          .gpu_switch = all_lost},
         "V-NODE2=2xV! CPU1-512M-NODE2=2xCPU1-512M! V:1,1,1536 CPU1-512M:0,1,512 1xV-NODE2 "
         "1xCPU1-512M-NODE2 "},
        {{.name = "a", .cpu = 96, .memory_mib = 98304, .gpu_type = ""},
         "CPU1-1024M-GROUP16=16xCPU1-1024M CPU1-1024M-NODE96=6xCPU1-1024M-GROUP16! "
         "CPU1-1024M:0,1,1024 1xCPU1-1024M-NODE96 "},
        {{.name = "a", .cpu = 1, .memory_mib = 100, .gpu_type = ""},
         "CPU1-100M-NODE1=1xCPU1-100M! CPU1-100M:0,1,100 1xCPU1-100M-NODE1 "},
        {{.name = "a", .cpu = 0, .memory_mib = 100, .gpu_type = ""}, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena;
        struct err err = {0};
        arena_init(&arena);
        struct hived_config *config = hived_config_auto(&cases[i].node, 1, 1, &err);
        assert_non_null(config);
        const char *text = tell(&arena, config);
        if (strcmp(text, cases[i].says))
            fail_msg("%zu: %s\nnot %s", i, text, cases[i].says);
        struct hived *hived = hived_new(config);
        assert_int_equal(hived_check(hived, &err), 0);
        hived_free(hived);
        arena_release(&arena);
    }
}

/* Topology order is not index order: the first half is GPUs 1 and 3. */
static void devices_keep_their_indices(void **state)
{
    (void)state;
    static const uint16_t numa[] = {1, 0, 1, 0};
    struct node_facts node = {.name = "a",
                              .cpu = 8,
                              .memory_mib = 8192,
                              .gpu_count = 4,
                              .gpu_type = "V",
                              .gpu_numa = numa};
    struct world world = {.hived = hived_new(hived_config_auto(&node, 1, 1, NULL))};
    arena_init(&world.arena);
    hived_node_set(world.hived, "a", true);
    struct hived_result result = world_ask(
        &world, (struct ask){.group = "g", .vc = "default", .type = "V", .pods = 1, .leaves = 2});
    assert_int_equal(result.kind, HIVED_BIND);
    assert_int_equal(result.placement.slots[0].indices[0], 1);
    assert_int_equal(result.placement.slots[0].indices[1], 3);
    world_release(&world);
}

static void poorest_node_makes_the_sku(void **state)
{
    (void)state;
    struct node_facts nodes[] = {
        {.name = "a", .cpu = 64, .memory_mib = 65536, .gpu_count = 4, .gpu_type = "V"},
        {.name = "b", .cpu = 16, .memory_mib = 262144, .gpu_count = 4, .gpu_type = "V"}};
    struct hived_config *config = hived_config_auto(nodes, 2, 1, NULL);
    assert_int_equal(hived_config_sku(config, "V")->cpu, 3);
    assert_int_equal(hived_config_sku(config, "V")->memory_mib, 12288);
    hived_config_free(config);
}

static void kinds_are_limited(void **state)
{
    (void)state;
    enum { NODES = HIVED_AUTO_KINDS_MAX * 3 };
    struct node_facts *nodes = mem_zero(NODES, sizeof *nodes);
    struct err err = {0};
    char names[NODES][12];
    for (uint32_t i = 0; i < NODES; i++) {
        snprintf(names[i], sizeof names[i], "T%u", i);
        nodes[i] = (struct node_facts){.name = names[i],
                                       .cpu = 4,
                                       .memory_mib = 1024 + i,
                                       .gpu_count = 1,
                                       .gpu_type = names[i]};
    }
    assert_null(hived_config_auto(nodes, NODES, 1, &err));
    assert_int_equal(err.code, ERR_TOO_BIG);
    nodes[1].name = nodes[0].name; /* a node twice is a problem, too */
    nodes[1].gpu_type = nodes[0].gpu_type;
    assert_null(hived_config_auto(nodes, 2, 1, &err));
    mem_free(nodes);
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    struct world world;
    world_init(&world, TWO_VCS);
    const struct ask asks[] = {
        {.group = "g", .vc = "green", .pods = 1, .leaves = 1},
        {.group = "g", .vc = "", .pods = 1, .leaves = 1},
        {.group = "", .vc = "red", .pods = 1, .leaves = 1},
        {.group = "g", .vc = "red", .pods = 0, .leaves = 1},
        {.group = "g", .vc = "red", .pods = 1, .leaves = 0},
        {.group = "g", .vc = "red", .pods = 1, .leaves = 1, .priority = 1001},
        {.group = "g", .vc = "red", .pods = 1, .leaves = 1, .priority = -2},
        {.group = "g", .vc = "red", .pods = 1, .leaves = 1, .type = "X"},
        {.group = "g", .vc = "red", .pods = 1, .leaves = 1, .pin = "pin"},
        {.group = "g", .vc = "red", .pods = 200000, .leaves = 1},
    };
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        assert_int_equal(world_refuse(&world, asks[i]), ERR_INVALID);
    world_release(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(wrong_requests_are_refused), cmocka_unit_test(long_requests_are_refused),
    cmocka_unit_test(requests_are_read),          cmocka_unit_test(nodes_become_cells),
    cmocka_unit_test(devices_keep_their_indices), cmocka_unit_test(poorest_node_makes_the_sku),
    cmocka_unit_test(kinds_are_limited),          cmocka_unit_test(bad_requests_are_refused),
};
UNIT_FILE(tests, NULL, NULL);
