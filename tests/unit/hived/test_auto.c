/* The CPU cells of the automatic configuration: how fine, how grouped. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "hived/auto.h"
#include "hived/hived.h"

static struct node_facts machine(uint32_t cpu, uint32_t gpu)
{
    return (struct node_facts){.name = "a",
                               .cpu = cpu,
                               .memory_mib = 1024 * (uint64_t)cpu,
                               .gpu_count = gpu,
                               .gpu_type = gpu ? "V" : ""};
}

static void the_grain_follows_the_inventory(void **state)
{
    (void)state;
    static const struct {
        uint32_t count, cpu, gpu, grain;
    } cases[] = {
        {0, 1, 0, 1},       {1, 512, 0, 1},     {4096, 256, 0, 1}, /* 1,048,576: the limit */
        {4097, 256, 0, 2},  {12800, 256, 8, 1}, /* 64 CPUs are left beside eight GPUs: 921,600
                                                   leaves */
        {12800, 256, 0, 4}, {12800, 512, 8, 2}, {65536, 16, 0, 1}, {65537, 16, 0, 2},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct hived_auto_sum sum = {0};
        struct node_facts node = machine(cases[i].cpu, cases[i].gpu), small = machine(3, 0);
        for (uint32_t k = 0; k < cases[i].count; k++)
            hived_auto_count(&sum, &node, true);
        assert_int_equal(hived_auto_grain(&sum), cases[i].grain);
        struct hived_auto_sum before = sum;
        hived_auto_count(&sum, &small, true); /* and it is gone again */
        assert_int_equal(sum.leaves[0], before.leaves[0] + 3);
        assert_int_equal(sum.leaves[2], before.leaves[2] + 1); /* one of all its CPUs */
        hived_auto_count(&sum, &small, false);
        assert_memory_equal(&sum, &before, sizeof sum);
    }
    struct hived_auto_sum huge; /* of GPUs: no grain will do */
    memset(&huge, 0xff, sizeof huge);
    assert_int_equal(hived_auto_grain(&huge), 1u << (HIVED_AUTO_GRAINS - 1));
}

static void leaves_of_a_machine(void **state)
{
    (void)state;
    static const struct {
        uint32_t cpu, gpu, grain, leaves, per_leaf, memory_mib;
    } cases[] = {
        {512, 0, 1, 512, 1, 1024},    {512, 0, 4, 128, 4, 4096},
        {4096, 0, 1, 4096, 1, 1024},  {4097, 0, 1, 2048, 2, 2048}, /* more than a node may have */
        {10000, 0, 2, 2500, 4, 4096}, {3, 0, 4, 1, 3, 3072},
        {9, 0, 4, 2, 4, 4608},                            /* one is left over, its memory is not */
        {256, 8, 1, 64, 1, 1024},     {4, 4, 1, 0, 0, 0}, /* each GPU has one */
        {0, 0, 1, 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct node_facts node = machine(cases[i].cpu, cases[i].gpu);
        struct hived_auto_cpus cpus = hived_auto_cpus(&node, cases[i].grain);
        assert_int_equal(cpus.leaves, cases[i].leaves);
        assert_int_equal(cpus.cpu, cases[i].per_leaf);
        assert_int_equal(cpus.memory_mib, cases[i].memory_mib);
    }
}

/* At most a sixteenth is lost; machines that differ by some MiB are of one kind. */
static void memory_of_a_leaf(void **state)
{
    (void)state;
    static const struct {
        uint64_t memory_mib, leaf_mib;
    } cases[] = {
        {0, 1},     {1, 1},      {15, 15},     {31, 31},     {33, 32},
        {400, 400}, {1000, 992}, {8046, 7936}, {8054, 7936},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct node_facts node = machine(1, 0);
        node.memory_mib = cases[i].memory_mib;
        assert_int_equal(hived_auto_cpus(&node, 1).memory_mib, cases[i].leaf_mib);
    }
}

/* Children of the cells from the node down, "32x16". */
static const char *structure(const struct hived_config *config, struct buf *out)
{
    uint32_t type = config->cells[0].type;
    buf_clear(out);
    for (; config->types[type].child_name; type = config->types[type].child)
        buf_format(out, "%s%u", out->length ? "x" : "", config->types[type].child_number);
    return buf_cstr(out);
}

static void many_leaves_lie_in_groups(void **state)
{
    (void)state;
    static const struct {
        uint32_t cpu;
        const char *says;
    } cases[] = {
        {1, "1"},        {64, "64"},         {65, "5x13"},      {96, "6x16"},       {127, "127"},
        {128, "8x16"},   {166, "166"},       {192, "12x16"},    {256, "16x16"},     {512, "32x16"},
        {1024, "64x16"}, {1100, "10x10x11"}, {2048, "8x16x16"}, {4096, "16x16x16"},
    };
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct node_facts node = machine(cases[i].cpu, 0);
        struct err err = {0};
        struct hived_config *config = hived_config_auto(&node, 1, 1, &err);
        assert_non_null(config);
        assert_string_equal(structure(config, &out), cases[i].says);
        assert_int_equal(config->types[config->cells[0].type].leaf_count, cases[i].cpu);
        struct hived *hived = hived_new(config);
        assert_int_equal(hived_check(hived, &err), 0);
        hived_free(hived);
    }
    buf_release(&out);
}

/* Machines of every size together: a type's name stands for one structure. */
static void groups_of_many_sizes(void **state)
{
    (void)state;
    enum { SIZES = 450, STEP = 9 };
    static struct node_facts nodes[SIZES];
    static char names[SIZES][8];
    for (uint32_t i = 0; i < SIZES; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        nodes[i] = machine(1 + i * STEP, 0);
        nodes[i].name = names[i];
    }
    struct err err = {0};
    struct hived_config *config = hived_config_auto(nodes, SIZES, 1, &err);
    assert_non_null(config);
    for (uint32_t i = 0; i < SIZES; i++)
        assert_int_equal(config->types[config->cells[i].type].leaf_count, nodes[i].cpu);
    hived_config_free(config);
}

/* The largest cluster fits with its grain, and only with it. */
static void a_large_cluster_fits(void **state)
{
    (void)state;
    enum { NODES = 12800 };
    struct node_facts *nodes = mem_zero(NODES, sizeof *nodes);
    char(*names)[8] = mem_zero(NODES, sizeof *names);
    struct hived_auto_sum sum = {0};
    for (uint32_t i = 0; i < NODES; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        nodes[i] = machine(256, 0);
        nodes[i].name = names[i];
        hived_auto_count(&sum, &nodes[i], true);
    }
    struct err err = {0};
    uint32_t grain = hived_auto_grain(&sum);
    struct hived_config *config = hived_config_auto(nodes, NODES, grain, &err);
    assert_non_null(config);
    assert_int_equal(config->cell_count, NODES);
    hived_config_free(config);
    assert_null(hived_config_auto(nodes, NODES, grain / 2, &err));
    assert_int_equal(err.code, ERR_TOO_BIG);
    mem_free(nodes);
    mem_free(names);
}

/* GPUs of one switch lie in one cell, whatever numbers the machine gives them. */
static void gpus_lie_with_their_switch(void **state)
{
    (void)state;
    static const uint16_t numa[] = {0, 0, 0, 0, 1, 1, 1, 1}, switches[] = {0, 1, 0, 1, 2, 3, 2, 3};
    struct err err = {0};
    struct buf out = BUF_INIT;
    struct node_facts node = machine(0, 8);
    node.gpu_numa = numa;
    node.gpu_switch = switches;
    struct hived_config *config = hived_config_auto(&node, 1, 1, &err);
    assert_non_null(config);
    assert_string_equal(structure(config, &out), "2x2x2");
    hived_config_free(config);
    buf_release(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_grain_follows_the_inventory),
    cmocka_unit_test(leaves_of_a_machine),
    cmocka_unit_test(memory_of_a_leaf),
    cmocka_unit_test(many_leaves_lie_in_groups),
    cmocka_unit_test(groups_of_many_sizes),
    cmocka_unit_test(a_large_cluster_fits),
    cmocka_unit_test(gpus_lie_with_their_switch),
};
UNIT_FILE(tests, NULL, NULL);
