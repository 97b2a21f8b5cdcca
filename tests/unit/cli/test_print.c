/* Tables, times, YAML and JSON as people see them; what others wrote is shown, not obeyed. */
#include "unit.h"

#include <string.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/print.h"

static void test_print(void **state)
{
    (void)state;
    static const char *const HEADS[] = {"A", "LONGER", NULL};
    struct buf out = BUF_INIT;
    struct table table;
    table_init(&table, false, HEADS);
    table_cell(&table, "größe");
    table_cell(&table, NULL);
    table_format(&table, "%d", 5);
    table_cell(&table, "RUNNING");
    table_print(&table, &out);
    assert_string_equal(buf_cstr(&out), "A      LONGER\ngröße  -\n5      RUNNING\n");
    table.has_colours = true;
    buf_clear(&out);
    table_print(&table, &out);
    assert_non_null(strstr(buf_cstr(&out), "\033[34mRUNNING\033[0m"));
    table_release(&table);

    static const struct {
        int64_t ms;
        const char *text;
    } TIMES[] = {{-1, "-"},
                 {1500, "1.5 s"},
                 {59000, "59 s"},
                 {200000, "3 m 20 s"},
                 {7260000, "2 h 1 m"},
                 {90000000, "1 d 1 h"}};
    for (size_t i = 0; i < COUNT_OF(TIMES); i++) {
        buf_clear(&out);
        print_duration(&out, TIMES[i].ms);
        assert_string_equal(buf_cstr(&out), TIMES[i].text);
    }
    buf_clear(&out);
    print_time(&out, 0);
    assert_string_equal(buf_cstr(&out), "-");
    buf_release(&out);
}

static void test_yaml(void **state)
{
    (void)state;
    json_t *json = json_loads(
        "{\"a\":\"plain\",\"b\":[{\"c\":1,\"d\":[]},\"yes\",\"2:3\"],\"e\":{},\"f\":null,"
        "\"g h\":true,\"i\":[[1,2]]}",
        0, NULL);
    struct buf out = BUF_INIT;
    print_yaml(&out, json);
    assert_string_equal(buf_cstr(&out), "a: plain\n"
                                        "b:\n"
                                        "  - c: 1\n"
                                        "    d: []\n"
                                        "  - \"yes\"\n"
                                        "  - \"2:3\"\n"
                                        "e: {}\n"
                                        "f: null\n"
                                        "\"g h\": true\n"
                                        "i:\n"
                                        "  - - 1\n"
                                        "    - 2\n");
    json_decref(json);
    buf_release(&out);
}

/* What others wrote is shown, not obeyed: by tables, by texts, by JSON and YAML. */
static void test_control_characters(void **state)
{
    (void)state;
    static const char *const HEADS[] = {"TAGS", NULL};
    static const char TEXT_JSON[] =
        "{\"a\":\"x\\u001b[2Jy\\u009b2Jz\\u007f\\nb\",\"b\":[\"\\u001b]0;t\\u0007c\"],"
        "\"k\\u009b\":1}";
    json_t *json = json_loads(TEXT_JSON, 0, NULL), *again;
    struct buf out = BUF_INIT;
    assert_non_null(json);
    print_json_line(&out, json);
    print_yaml(&out, json);
    print_json(&out, json);
    for (size_t i = 0; i < out.length; i++) {
        unsigned char c = (unsigned char)out.at[i];
        assert_true((c >= 0x20 || c == '\n') && c < 0x7f);
    }
    /* and nothing is lost */
    *strchr(out.at, '\n') = '\0';
    again = json_loads(out.at, 0, NULL);
    assert_true(json_equal(json, again));
    json_decref(again);

    assert_string_equal(field_text(json, "a"), "xy2Jz\nb");
    assert_string_equal(item_text(json_object_get(json, "b"), 0), "c");
    assert_null(item_text(json_object_get(json, "b"), 1));
    assert_null(field_text(json, "c"));
    json_decref(json);

    struct table table;
    buf_clear(&out);
    table_init(&table, false, HEADS);
    table_cell(&table, "a\033[31mb\nc\td\xc2\x9b"
                       "e");
    table_print(&table, &out);
    assert_string_equal(buf_cstr(&out), "TAGS\nab c de\n");
    table_release(&table);
    buf_release(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_print),
    cmocka_unit_test(test_yaml),
    cmocka_unit_test(test_control_characters),
};
UNIT_FILE(tests, NULL, NULL);
