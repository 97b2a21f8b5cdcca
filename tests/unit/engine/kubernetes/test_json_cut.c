#include "unit.h"

#include <stdio.h>

#include "base/memory.h"
#include "engine/kubernetes/json_cut.h"

static void values_are_cut_as_they_are_written(void **state)
{
    (void)state;
    static const char *const values[] = {
        "\"a\\\"]}\"", "{\"a\":[1,{\"b\":\"}\"}]}", "[[],[{}]]", "-1.5e3", "null", "\"\\\\\""};
    for (size_t i = 0; i < COUNT_OF(values); i++)
        for (size_t j = 0; j < 2; j++) {
            char text[64];
            struct text rest, value;
            snprintf(text, sizeof text, " \t\r\n%s%s", values[i], j ? ",7" : " }");
            rest = text_of(text);
            assert_true(json_cut_value(&rest, &value));
            assert_true(text_is(value, values[i]));
            assert_true(text_is(rest, j ? ",7" : " }"));
        }
}

static void what_does_not_end_is_no_value(void **state)
{
    (void)state;
    static const char *const none[] = {"", "  ", "\"a", "\"a\\\"", "{\"a\":1", "[[]", "}", ",1"};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        struct text rest = text_of(none[i]), value;
        assert_false(json_cut_value(&rest, &value));
    }
}

static void a_member_is_found_by_its_key(void **state)
{
    (void)state;
    const struct text object =
        TEXT(" { \"a\" : {\"b\":\"x\"}, \"b\":\"y\" ,\"c\":\"z\\n\",\"d\":7,\"ab\":\"\"}");
    struct text value;
    assert_true(json_cut_get(object, "a", &value));
    assert_true(text_is(value, "{\"b\":\"x\"}"));
    assert_true(json_cut_string(object, "b", &value));
    assert_true(text_is(value, "y"));
    assert_true(json_cut_string(object, "ab", &value));
    assert_int_equal(value.length, 0);
    assert_false(json_cut_string(object, "c", &value)); /* with an escape */
    assert_false(json_cut_string(object, "d", &value)); /* no string */
    assert_false(json_cut_string(object, "e", &value)); /* none */
    assert_false(json_cut_get(TEXT("[1]"), "a", &value));
    assert_false(json_cut_get(TEXT("{\"b\" 1}"), "b", &value));
    assert_false(json_cut_get(TEXT("{b:1}"), "b", &value));
    assert_false(json_cut_get(TEXT("{\"b\":"), "b", &value));
}

/* Wherever it is cut, it ends with the same byte. */
static void a_nest_may_come_in_pieces(void **state)
{
    (void)state;
    const struct text whole = TEXT("{\"a\":[\"\\\\\\\"]}\",{}],\"b\":\"{[\"}");
    for (size_t cut = 0; cut <= whole.length; cut++) {
        struct json_nest nest = {0};
        bool is_over = false;
        char text[64];
        snprintf(text, sizeof text, "%s,rest", whole.at);
        assert_int_equal(json_nest_take(&nest, (struct text){text, cut}, &is_over), cut);
        assert_int_equal(is_over, cut == whole.length);
        if (is_over)
            continue;
        const struct text rest = text_of(text + cut);
        assert_int_equal(json_nest_take(&nest, rest, &is_over), whole.length - cut);
        assert_true(is_over);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_are_cut_as_they_are_written),
    cmocka_unit_test(what_does_not_end_is_no_value),
    cmocka_unit_test(a_member_is_found_by_its_key),
    cmocka_unit_test(a_nest_may_come_in_pieces),
};

UNIT_FILE(tests, NULL, NULL);
