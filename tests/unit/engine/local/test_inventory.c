/* What a machine has: with GPUs, without, and with simulated ones. */
#include "machine.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/inventory.h"
#include "engine/local/local.h"
#include "sys/file.h"

static struct engine_local_config inventory_config(void)
{
    static const char *directories[1];
    directories[0] = in_folder("cdi-none");
    return (struct engine_local_config){.node_name = "n1",
                                        .address = "10.0.0.1",
                                        .cpu = 8,
                                        .memory_mib = 1000,
                                        .simulated_gpu_type = "",
                                        .nvml_path = "libno-such-nvml.so",
                                        .topology_path = "",
                                        .cdi_directories = directories,
                                        .cdi_directory_count = 1};
}

static void test_inventory_without_gpus(void **state)
{
    (void)state;
    struct engine_local_config config = inventory_config();
    config.cpu = 0;
    config.memory_mib = 0;
    config.node_name = config.address = "";
    struct inventory *inventory = inventory_new(&config);
    const struct node_facts *node = inventory_node(inventory);
    assert_true(node->cpu >= 1);
    assert_true(node->memory_mib > 64);
    struct sysinfo info; /* the machine keeps a share */
    assert_int_equal(sysinfo(&info), 0);
    uint64_t total_mib = (uint64_t)info.totalram * info.mem_unit >> 20;
    assert_true(node->memory_mib < total_mib);
    assert_true(node->memory_mib + 2048 >= total_mib || node->memory_mib >= total_mib / 16 * 15);
    assert_true(node->name[0] && node->address[0]);
    assert_int_equal(node->gpu_count, 0);
    assert_true(node->is_healthy);
    inventory_free(inventory);
}

static void test_inventory_simulated(void **state)
{
    (void)state;
    struct engine_local_config config = inventory_config();
    struct arena arena;
    struct device_edits edits;
    const uint16_t gpus[] = {0, 3};
    struct container container = {.gpus = gpus, .gpu_count = 2};
    config.simulated_gpus = 4;
    config.simulated_gpu_type = "K80";
    arena_init(&arena);
    struct inventory *inventory = inventory_new(&config);
    assert_int_equal(inventory_node(inventory)->gpu_count, 4);
    assert_true(inventory_node(inventory)->is_gpu_simulated);
    assert_string_equal(inventory_node(inventory)->gpu_type, "K80");
    assert_int_equal(inventory_devices(inventory, &container, &arena, &edits, NULL), 0);
    assert_int_equal(edits.device_count, 0);
    const uint16_t beyond[] = {4};
    container = (struct container){.gpus = beyond, .gpu_count = 1};
    assert_int_equal(inventory_devices(inventory, &container, &arena, &edits, NULL), ERR_NOT_FOUND);
    inventory_free(inventory);
    arena_release(&arena);
}

static void test_inventory_nvidia(void **state)
{
    (void)state;
    struct engine_local_config config = inventory_config();
    struct arena arena;
    struct device_edits edits;
    struct err err = {0};
    const uint16_t gpus[] = {1};
    struct container container = {.gpus = gpus, .gpu_count = 1};
    config.nvml_path = FAKE_NVML;
    config.topology_path = TOPOLOGY_XML;
    arena_init(&arena);
    struct inventory *inventory = inventory_new(&config);
    const struct node_facts *node = inventory_node(inventory);
    assert_int_equal(node->gpu_count, 4);
    assert_false(node->is_gpu_simulated);
    assert_string_equal(node->gpu_type, "Test-V100-16GB");
    assert_int_equal(node->gpu_numa[0], 0);
    assert_int_equal(node->gpu_numa[3], 1);
    assert_int_equal(node->gpu_switch[0], node->gpu_switch[1]);
    /* no specification, and no such device file on this machine */
    assert_int_equal(inventory_devices(inventory, &container, &arena, &edits, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/dev/nvidia1"));
    inventory_free(inventory);
    folder_put("cdi-nvidia/nvidia.yaml", specification);
    config.cdi_directories = (const char *[]){in_folder("cdi-nvidia")};
    inventory = inventory_new(&config);
    assert_int_equal(inventory_devices(inventory, &container, &arena, &edits, &err), 0);
    assert_int_equal(edits.device_count, 2);
    inventory_free(inventory);
    /* the specification alone numbers two */
    config.nvml_path = "libno-such-nvml.so";
    inventory = inventory_new(&config);
    assert_int_equal(inventory_node(inventory)->gpu_count, 2);
    inventory_free(inventory);
    arena_release(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_inventory_without_gpus),
    cmocka_unit_test(test_inventory_simulated),
    cmocka_unit_test(test_inventory_nvidia),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
