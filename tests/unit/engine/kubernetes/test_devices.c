#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/devices.h"
#include "engine/kubernetes/slices.h"
#include "model/node.h"
#include "scratch.h"

static bool is_in(const void *context, uint16_t index)
{
    for (const char *at = context; *at; at++)
        if (*at - '0' == index)
            return true;
    return false;
}

/* `names`: letters, each a device of the pool p, a small one is tainted; `used`: digits. */
static void offer(struct device_table *table, const char *names, const char *used)
{
    struct slice_device devices[16];
    struct err err;
    const size_t count = strlen(names);
    for (size_t i = 0; i < count; i++) {
        const bool is_tainted = names[i] >= 'a';
        devices[i] = (struct slice_device){
            .pool = "p",
            .name = arena_format(&arena, "%c", is_tainted ? names[i] - 'a' + 'A' : names[i]),
            .model = "V100",
            .root = i < 2 ? "r0" : "r1",
            .uuid = names[i] == 'C' ? "" : arena_format(&arena, "GPU-%c", names[i]),
            .taint = is_tainted ? "broken:NoExecute" : NULL};
    }
    assert_int_equal(device_table_update(table, devices, count, is_in, used, &err), 0);
}

/* By index: a letter, a small one is lost; "." has none. */
static const char *shown(const struct device_table *table)
{
    const char *words = "", *pool, *name;
    for (size_t i = 0; i < table->all.count; i++) {
        const bool is_offered = device_table_is_offered(table, i, &pool, &name);
        words = arena_format(&arena, "%s%c", words,
                             !name        ? '.'
                             : is_offered ? name[0]
                                          : name[0] - 'A' + 'a');
    }
    return words;
}

static void a_device_keeps_its_number(void **state)
{
    (void)state;
    struct device_table table = {0};
    offer(&table, "ABC", "");
    assert_string_equal(shown(&table), "ABC");
    offer(&table, "AC", "");
    assert_string_equal(shown(&table), "AbC");
    offer(&table, "AbC", ""); /* it is back, and tainted */
    assert_string_equal(shown(&table), "AbC");
    offer(&table, "ABCD", "");
    assert_string_equal(shown(&table), "ABCD");
    offer(&table, "", "");
    assert_string_equal(shown(&table), "abcd");
    offer(&table, "BCDA", "");
    assert_string_equal(shown(&table), "ABCD");
    device_table_release(&table);
}

static void a_new_device_takes_the_place_of_one_that_has_gone(void **state)
{
    (void)state;
    struct device_table table = {0};
    offer(&table, "ABC", "");
    offer(&table, "XC", "0"); /* a task has what was A */
    assert_string_equal(shown(&table), "aXC");
    offer(&table, "XCYZ", "0");
    assert_string_equal(shown(&table), "aXCYZ");
    offer(&table, "XCYZW", "");
    assert_string_equal(shown(&table), "WXCYZ");
    device_table_release(&table);
}

static void what_attempts_have_stays_after_a_restart(void **state)
{
    (void)state;
    struct device_table table = {0};
    struct device_pick pick, other;
    assert_true(device_pick_read("gpu.test 3=p/D 1=p/B", &arena, &pick));
    assert_true(device_pick_read("gpu.test 3=p/X 0=p/B", &arena, &other)); /* it is late */
    device_table_hold(&table, &pick);
    device_table_hold(&table, &other);
    assert_string_equal(shown(&table), ".b.d");
    offer(&table, "ACDE", "13"); /* B has gone meanwhile */
    assert_string_equal(shown(&table), "AbCDE");
    device_table_release(&table);
}

static void facts_are_of_all_devices(void **state)
{
    (void)state;
    struct device_table table = {0};
    struct node_facts facts = {0};
    assert_null(device_table_facts(&table, "GPU", &arena, &facts));
    assert_int_equal(facts.gpu_count, 0);
    assert_string_equal(facts.gpu_type, "");
    assert_null(facts.gpu_switch);
    offer(&table, "ABCD", "");
    assert_null(device_table_facts(&table, "GPU", &arena, &facts));
    assert_int_equal(facts.gpu_count, 4);
    assert_string_equal(facts.gpu_type, "V100");
    const uint16_t pairs[] = {0, 0, 2, 2};
    assert_memory_equal(facts.gpu_switch, pairs, sizeof pairs);
    offer(&table, "aBCD", "");
    assert_null(device_table_facts(&table, "GPU", &arena, &facts));
    assert_true(node_gpu_is_lost(&facts, 0));
    assert_false(node_gpu_is_lost(&facts, 1));
    offer(&table, "", "");
    assert_string_equal(device_table_facts(&table, "GPU", &arena, &facts),
                        "its driver offers none of its 4 GPUs");
    assert_string_equal(facts.gpu_type, "V100");
    device_table_release(&table);
}

static void a_device_is_found_by_its_uuid(void **state)
{
    (void)state;
    struct device_table table = {0};
    struct device_pick pick;
    uint16_t index = 7;
    assert_true(device_pick_read("gpu.test 0=p/X", &arena, &pick));
    device_table_hold(&table, &pick); /* of which no slice tells */
    offer(&table, "ABC", "0");
    assert_string_equal(shown(&table), "xABC");
    assert_true(device_table_find(&table, "GPU-B", &index));
    assert_int_equal(index, 2);
    assert_false(device_table_find(&table, "GPU-C", &index));
    assert_false(device_table_find(&table, "", &index)); /* C has told none */
    assert_int_equal(index, 2);
    device_table_release(&table);
}

static void models_and_places_that_are_not_told(void **state)
{
    (void)state;
    struct device_table table = {0};
    struct node_facts facts = {0};
    struct device_pick pick;
    struct err err;
    struct slice_device devices[] = {{"p", "A", "", "", "", NULL}, {"p", "B", "", "", "", NULL}};
    assert_true(device_pick_read("gpu.test 2=p/B", &arena, &pick));
    device_table_hold(&table, &pick);
    assert_int_equal(device_table_update(&table, devices, 2, is_in, "2", &err), 0);
    assert_string_equal(shown(&table), "A.B");
    assert_null(device_table_facts(&table, "GPU", &arena, &facts));
    assert_string_equal(facts.gpu_type, "GPU");
    const uint16_t places[] = {0, NODE_GPU_LOST, 0};
    assert_memory_equal(facts.gpu_switch, places, sizeof places);
    devices[1].model = "A100";
    assert_int_equal(device_table_update(&table, devices, 2, is_in, "2", &err), 0);
    assert_non_null(strstr(device_table_facts(&table, "GPU", &arena, &facts), "several models"));
    assert_int_equal(device_table_update(&table, devices, DEVICES_MAX, is_in, "", &err),
                     ERR_TOO_BIG);
    assert_string_equal(shown(&table), "A.B");
    device_table_release(&table);
    /* of devices that only attempts tell of, nothing is known */
    device_table_hold(&table, &pick);
    assert_non_null(device_table_facts(&table, "GPU", &arena, &facts));
    assert_string_equal(facts.gpu_type, "GPU");
    device_table_release(&table);
}

static void what_an_attempt_has_is_one_line(void **state)
{
    (void)state;
    static const uint16_t gpus[] = {0, 2}, lost[] = {1}, none[] = {3};
    cleanup_buf struct buf line = BUF_INIT;
    struct device_table table = {0};
    struct device_pick pick;
    struct err err;
    offer(&table, "AbC", "");
    assert_int_equal(device_pick_write(&table, "gpu.test", gpus, 2, &line, &err), 0);
    assert_string_equal(buf_cstr(&line), "gpu.test 0=p/A 2=p/C");
    assert_int_equal(device_pick_write(&table, "d", lost, 1, &line, &err), ERR_UNAVAILABLE);
    assert_string_equal(err.text, "its driver does not offer GPU 1 now");
    assert_int_equal(device_pick_write(&table, "d", none, 1, &line, &err), ERR_UNAVAILABLE);
    assert_true(device_pick_read("d 4095=some.pool/of/gpu-7", &arena, &pick));
    assert_string_equal(pick.driver, "d");
    assert_int_equal(pick.count, 1);
    assert_int_equal(pick.items[0].index, 4095);
    assert_string_equal(pick.items[0].pool, "some.pool/of");
    assert_string_equal(pick.items[0].name, "gpu-7");
    static const char *const bad[] = {"",       "d",       " 0=p/A",     "d 0=pA",  "d 0=/A",
                                      "d 0=p/", "d x=p/A", "d 4096=p/A", "d -1=p/A"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(device_pick_read(bad[i], &arena, &pick));
    const char *many = "d";
    for (int i = 0; i <= DEVICES_CLAIM_MAX; i++)
        many = arena_format(&arena, "%s %d=p/A", many, i);
    assert_false(device_pick_read(many, &arena, &pick));
    device_table_release(&table);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_device_keeps_its_number),
    cmocka_unit_test(a_new_device_takes_the_place_of_one_that_has_gone),
    cmocka_unit_test(what_attempts_have_stays_after_a_restart),
    cmocka_unit_test(facts_are_of_all_devices),
    cmocka_unit_test(a_device_is_found_by_its_uuid),
    cmocka_unit_test(models_and_places_that_are_not_told),
    cmocka_unit_test(what_an_attempt_has_is_one_line),
};

UNIT_FILE(tests, setup, teardown);
