#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/slices.h"
#include "scratch.h"

static struct slices slices_new(void)
{
    return (struct slices){.driver = "gpu.test", .type_attribute = "productName"};
}

/* A slice of the node n1. */
static const struct doc *slice(const char *name, const char *pool, int generation, int count,
                               const char *devices)
{
    return json(arena_format(
        &arena,
        "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"driver\":\"gpu.test\",\"nodeName\":\"n1\","
        "\"pool\":{\"name\":\"%s\",\"generation\":%d,\"resourceSliceCount\":%d},\"devices\":[%s]}}",
        name, pool, generation, count, devices));
}

/* The devices of n1, "POOL/NAME …"; "?" where not all is known, "-" without a slice. */
static const char *devices_of(const struct slices *slices)
{
    const struct slice_device *devices;
    const char *words = "";
    size_t count;
    const enum slices_state state = slices_of(slices, "n1", &arena, &devices, &count);
    for (size_t i = 0; i < count && state == SLICES_WHOLE; i++)
        words = arena_format(&arena, "%s%s%s/%s", words, i > 0 ? " " : "", devices[i].pool,
                             devices[i].name);
    return state == SLICES_PART ? "?" : state == SLICES_NONE ? "-" : words;
}

#define D(name) "{\"name\":\"" name "\"}"

static void a_pool_counts_when_it_is_whole(void **state)
{
    (void)state;
    struct slices slices = slices_new();
    assert_string_equal(devices_of(&slices), "-");
    assert_string_equal(
        slices_seen(&slices, slice("a", "n1", 1, 2, D("gpu-10") "," D("gpu-9")), false, 1), "n1");
    assert_string_equal(devices_of(&slices), "?");
    slices_seen(&slices, slice("b", "n1", 1, 2, D("gpu-1")), false, 1);
    assert_string_equal(devices_of(&slices), "n1/gpu-1 n1/gpu-9 n1/gpu-10");
    /* a new generation begins, and the old one is over */
    slices_seen(&slices, slice("a", "n1", 2, 2, D("gpu-9")), false, 1);
    assert_string_equal(devices_of(&slices), "?");
    slices_seen(&slices, slice("b", "n1", 2, 2, D("gpu-8")), false, 1);
    assert_string_equal(devices_of(&slices), "n1/gpu-8 n1/gpu-9");
    /* one slice of an older generation is left, and says nothing */
    slices_seen(&slices, slice("c", "n1", 1, 3, D("gpu-7")), false, 1);
    assert_string_equal(devices_of(&slices), "n1/gpu-8 n1/gpu-9");
    assert_string_equal(slices_seen(&slices, slice("a", "n1", 2, 2, ""), true, 1), "n1");
    assert_string_equal(devices_of(&slices), "?");
    slices_release(&slices);
}

static void pools_stand_side_by_side(void **state)
{
    (void)state;
    struct slices slices = slices_new();
    slices_seen(&slices, slice("a", "x/y", 7, 1, D("gpu-0")), false, 1);
    slices_seen(&slices, slice("b", "z", 1, 1, D("gpu-0") "," D("gpu-00") "," D("gpu")), false, 2);
    assert_string_equal(devices_of(&slices), "z/gpu x/y/gpu-0 z/gpu-0 z/gpu-00");
    slices_sweep(&slices, 2);
    assert_string_equal(devices_of(&slices), "z/gpu z/gpu-0 z/gpu-00");
    slices_sweep(&slices, 3);
    assert_string_equal(devices_of(&slices), "-");
    slices_release(&slices);
}

/* It is in the list, and that is all that can be read of it. */
static void a_slice_that_cannot_be_read_stays(void **state)
{
    (void)state;
    struct slices slices = slices_new();
    slices_seen(&slices, slice("a", "x/y", 7, 1, D("gpu-0")), false, 1);
    slices_seen(&slices, slice("b", "z", 1, 1, D("gpu-1")), false, 1);
    slices_keep(&slices, "b", 2);
    slices_keep(&slices, "c", 2);
    slices_sweep(&slices, 2);
    assert_string_equal(devices_of(&slices), "z/gpu-1");
    slices_release(&slices);
}

static void what_is_not_of_one_node_is_passed_over(void **state)
{
    (void)state;
    struct slices slices = slices_new();
    assert_null(slices_seen(&slices,
                            json("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"driver\":"
                                 "\"gpu.test\",\"allNodes\":true}}"),
                            false, 1));
    assert_null(slices_seen(&slices,
                            json("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"driver\":"
                                 "\"other\",\"nodeName\":\"n1\"}}"),
                            false, 1));
    assert_null(slices_seen(
        &slices, json("{\"spec\":{\"driver\":\"gpu.test\",\"nodeName\":\"n1\"}}"), false, 1));
    assert_string_equal(devices_of(&slices), "-");
    slices_release(&slices);
}

#define TYPE(value) "\"type\":{\"string\":\"" value "\"}"

static void whole_gpus_are_told(void **state)
{
    (void)state;
    static const char devices[] = "{\"name\":\"gpu-0\",\"attributes\":{" TYPE(
        "gpu") ",\"gpu.test/productName\":{\"string\":"
               "\"Tesla V100 "
               "32GB\"},\"resource.kubernetes.io/pcieRoot\":{\"string\":\"pci0000:3a\"}}},"
               "{\"name\":\"gpu-1\",\"taints\":[{\"key\":\"told\",\"effect\":\"None\"},{\"key\":"
               "\"broken\","
               "\"effect\":\"NoExecute\"}]},"
               "{\"name\":\"gpu-2\",\"taints\":[{\"key\":\"told\",\"effect\":\"None\"}]},"
               "{\"name\":\"part\",\"attributes\":{" TYPE(
                   "mig") "}},"
                          "{\"name\":\"shared\",\"allowMultipleAllocations\":true},"
                          "{\"name\":\"late\",\"bindingConditions\":[\"attached\"]},{"
                          "\"attributes\":{}}";
    (void)state;
    struct slices slices = slices_new();
    const struct slice_device *found;
    size_t count;
    slices_seen(&slices, slice("a", "n1", 1, 1, devices), false, 1);
    assert_string_equal(devices_of(&slices), "n1/gpu-0 n1/gpu-1 n1/gpu-2");
    assert_int_equal(slices_of(&slices, "n1", &arena, &found, &count), SLICES_WHOLE);
    assert_string_equal(found[0].model, "Tesla-V100-32GB");
    assert_string_equal(found[0].root, "pci0000:3a");
    assert_null(found[0].taint);
    assert_string_equal(found[1].taint, "broken:NoExecute");
    assert_string_equal(found[1].model, "");
    assert_null(found[2].taint);
    slices_release(&slices);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_pool_counts_when_it_is_whole),
    cmocka_unit_test(pools_stand_side_by_side),
    cmocka_unit_test(a_slice_that_cannot_be_read_stays),
    cmocka_unit_test(what_is_not_of_one_node_is_passed_over),
    cmocka_unit_test(whole_gpus_are_told),
};

UNIT_FILE(tests, setup, teardown);
