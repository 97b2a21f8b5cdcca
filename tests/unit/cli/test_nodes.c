/* The table of nodes: columns that say something, and why a node is not taken. */
#include "unit.h"

#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "cli/nodes.h"

#define NODE(name, rest)                                                                           \
    "{\"name\":\"" name "\",\"state\":\"READY\",\"cpu\":8,\"memoryMB\":64,\"gpu\":1,"              \
    "\"gpuType\":\"V100\",\"address\":\"10.0.0.1\"" rest "}"

static void assert_printed(const char *reply, bool is_wide, const char *wanted)
{
    json_t *json = json_loads(reply, 0, NULL);
    cleanup_buf struct buf out = BUF_INIT;
    assert_non_null(json);
    nodes_print(&out, json, is_wide, false);
    assert_string_equal(buf_cstr(&out), wanted);
    json_decref(json);
}

static void one_engine_has_no_column(void **state)
{
    (void)state;
    assert_printed("[]", false, "NODE  STATE  CPU  MEMORY MIB  GPUS  GPU TYPE  ADDRESS  REASON\n");
    assert_printed("[" NODE("a", ",\"engine\":\"local\",\"reason\":null") "]", false,
                   "NODE  STATE  CPU  MEMORY MIB  GPUS  GPU TYPE  ADDRESS   REASON\n"
                   "a     READY  8    64          1     V100      10.0.0.1  -\n");
}

static void several_engines_are_named(void **state)
{
    (void)state;
    assert_printed("[" NODE("a", ",\"engine\":\"local\"") "," NODE("b", "") "," NODE(
                       "c", ",\"engine\":\"trial\"") "]",
                   false,
                   "NODE  STATE  CPU  MEMORY MIB  GPUS  GPU TYPE  ENGINE  ADDRESS   REASON\n"
                   "a     READY  8    64          1     V100      local   10.0.0.1  -\n"
                   "b     READY  8    64          1     V100      -       10.0.0.1  -\n"
                   "c     READY  8    64          1     V100      trial   10.0.0.1  -\n");
}

static void wide_sums_the_gpus_up(void **state)
{
    (void)state;
    assert_printed(
        "[" NODE("a", ",\"engine\":\"local\",\"gpus\":[{\"index\":0},{\"utilizationPercent\":40,"
                      "\"memoryUsedMB\":3,\"memoryMB\":10},{\"utilizationPercent\":60,"
                      "\"memoryUsedMB\":4,\"memoryMB\":10}]") "," NODE("b", ",\"gpus\":[]") "]",
        true,
        "NODE  STATE  CPU  MEMORY MIB  GPUS  GPU TYPE  GPU USE  GPU MEMORY MIB  ENGINE  ADDRESS   "
        "REASON\n"
        "a     READY  8    64          1     V100      50 %     7/20            local   10.0.0.1  "
        "-\n"
        "b     READY  8    64          1     V100      -        -               -       10.0.0.1  "
        "-\n");
}

static void a_node_that_refuses_says_until_when_it_is_avoided(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    assert_printed(
        "[" NODE("a", ",\"refusals\":1,\"avoidedUntil\":1700000000000") "," NODE(
            "b",
            ",\"refusals\":3,\"avoidedUntil\":1700000000000,\"reason\":\"dust\"") "," NODE("c",
                                                                                           ",\"refu"
                                                                                           "sals\":"
                                                                                           "3,"
                                                                                           "\"avoid"
                                                                                           "edUntil"
                                                                                           "\":"
                                                                                           "null") "]",
        false,
        "NODE  STATE  CPU  MEMORY MIB  GPUS  GPU TYPE  ADDRESS   REASON\n"
        "a     READY  8    64          1     V100      10.0.0.1  taken last until "
        "2023-11-14 22:13:20: it refused 1 task\n"
        "b     READY  8    64          1     V100      10.0.0.1  dust; taken last until "
        "2023-11-14 22:13:20: it refused 3 tasks in a row\n"
        "c     READY  8    64          1     V100      10.0.0.1  -\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_engine_has_no_column),
    cmocka_unit_test(several_engines_are_named),
    cmocka_unit_test(wide_sums_the_gpus_up),
    cmocka_unit_test(a_node_that_refuses_says_until_when_it_is_avoided),
};
UNIT_FILE(tests, NULL, NULL);
