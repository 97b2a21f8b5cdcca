/* JSON, strict and with comments. */
#include "parse.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static void test_values(void **state)
{
    (void)state;
    reads_as(DOC_JSON, "{}", "{}");
    reads_as(DOC_JSON, " [ ] ", "[]");
    reads_as(DOC_JSON, "", "null");
    reads_as(DOC_JSON, " \t\r\n", "null");
    reads_as(DOC_JSON, "[null, true,\tfalse,\r\n\"a\"]", "[null,true,false,\"a\"]");
    reads_as(DOC_JSON, "{\"a\": {\"b\": [1, {\"c\": []}]}, \"\": 2}",
             "{\"a\":{\"b\":[1,{\"c\":[]}]},\"\":2}");
    reads_as(DOC_JSON, "\"only a string\"", "\"only a string\"");
}

static void test_numbers(void **state)
{
    (void)state;
    reads_as(DOC_JSON, "[0, -0, 7, -12, 9223372036854775807, 92233720368547758070]",
             "[0,0,7,-12,9223372036854775807,92233720368547758070]");
    reads_as(DOC_JSON, "[1.5, 0.10, 1e3, 1E+3, 2e-3, -0.5e1]", "[1.5,0.10,1e3,1E+3,2e-3,-0.5e1]");
    const char *wrong[] = {"01", "-", "1.", "1.x", "1e", "1e+", "-x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct parse p;
        parse_text(&p, DOC_JSON, text_of(wrong[i]));
        assert_null(p.doc);
        assert_non_null(strstr(buf_cstr(&p.report), "a number that JSON does not know"));
        parse_free(&p);
    }
    is_wrong(DOC_JSON, "+1", "f:1:1: not valid JSON: a value is expected\n");
    is_wrong(DOC_JSON, "1x", "f:1:2: not valid JSON: something follows the document\n");
}

static void test_strings(void **state)
{
    (void)state;
    struct parse p;
    parse_text(&p, DOC_JSON,
               TEXT("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\", "
                    "\"a\\u0000b\", \"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"]"));
    assert_string_equal(buf_cstr(&p.report), "");
    const struct doc *const *items = p.doc->as.list.items;
    assert_string_equal(items[0]->as.string.at, "\"\\/\b\f\n\r\t");
    assert_string_equal(items[1]->as.string.at, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_true(text_equal(items[2]->as.string, TEXT("a\0b")));
    assert_string_equal(items[3]->as.string.at, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    parse_free(&p);
    is_wrong(DOC_JSON, "[\"a", "f:1:4: [0]: not valid JSON: a string without closing quote\n");
    is_wrong(DOC_JSON, "\"a\\",
             "f:1:4: not valid JSON: an unknown escape in a string "
             "(write \\\\ for a backslash)\n");
    is_wrong(DOC_JSON, "\"\\x\"",
             "f:1:3: not valid JSON: an unknown escape in a string "
             "(write \\\\ for a backslash)\n");
    is_wrong(DOC_JSON, "\"\\u12\"",
             "f:1:3: not valid JSON: an unknown escape in a string "
             "(write \\\\ for a backslash)\n");
    is_wrong(DOC_JSON, "\"\\u12g4\"",
             "f:1:3: not valid JSON: an unknown escape in a string "
             "(write \\\\ for a backslash)\n");
    is_wrong(DOC_JSON, "\"a\nb\"",
             "f:1:3: not valid JSON: a control character in a string "
             "(write \\n for a line break)\n");
    const char *halves[] = {"\"\\udc00\"", "\"\\ud800\"", "\"\\ud800\\u0041\"",
                            "\"\\ud800\\ue000\"", "\"\\ud800\\n\""};
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++)
        is_wrong(DOC_JSON, halves[i], "f:1:8: not valid JSON: half a surrogate pair in a string\n");
}

static void test_utf8(void **state)
{
    (void)state;
    const char *wrong[] = {"\xff",
                           "\xc0\xaf",
                           "\xc3",
                           "\xc3(",
                           "\xe0\x80\x80",
                           "\xed\xa0\x80",
                           "\xf0\x80\x80\x80",
                           "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80",
                           "\xe2\x82",
                           "\x80"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char source[16];
        struct parse p;
        snprintf(source, sizeof source, "\"%s\"", wrong[i]);
        parse_text(&p, DOC_JSON, text_of(source));
        assert_null(p.doc);
        assert_string_equal(buf_cstr(&p.report),
                            "f:1:2: not valid JSON: bytes that are not UTF-8\n");
        parse_free(&p);
    }
    reads_as(DOC_JSON, "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xe0\xa0\x80\xf0\x90\x80\x80\"",
             "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\xe0\xa0\x80\xf0\x90\x80\x80\"");
}

static void test_comments(void **state)
{
    (void)state;
    reads_as(DOC_JSON_COMMENTS, "// a\n{ /* b * / */ \"a\" /**/ : // c\r 1 /* d */ } // e",
             "{\"a\":1}");
    reads_as(DOC_JSON_COMMENTS, "// only\n/* comments */", "null");
    reads_as(DOC_JSON_COMMENTS, "[\"// no comment /* here */\"]", "[\"// no comment /* here */\"]");
    is_wrong(DOC_JSON, "// a\n{}", "f:1:1: not valid JSON: a comment\n");
    is_wrong(DOC_JSON_COMMENTS, "/ {}", "f:1:1: not valid JSON: unexpected \"/\"\n");
    is_wrong(DOC_JSON_COMMENTS, "{} /* x", "f:1:4: not valid JSON: a comment without end\n");
}

static void test_structure(void **state)
{
    (void)state;
    is_wrong(DOC_JSON, "{\"a\":1,}", "f:1:8: not valid JSON: a comma before \"}\"\n");
    is_wrong(DOC_JSON, "[1,]", "f:1:4: [1]: not valid JSON: a comma before \"]\"\n");
    is_wrong(DOC_JSON, "[1 2]", "f:1:4: [1]: not valid JSON: \",\" or \"]\" is expected\n");
    is_wrong(DOC_JSON, "{\"a\":1;", "f:1:7: not valid JSON: \",\" or \"}\" is expected\n");
    is_wrong(DOC_JSON, "{a: 1}", "f:1:2: not valid JSON: a key in double quotes is expected\n");
    is_wrong(DOC_JSON, "{\"a\" 1}", "f:1:6: not valid JSON: \":\" is expected behind a key\n");
    is_wrong(DOC_JSON, "[1] [2]", "f:1:5: not valid JSON: something follows the document\n");
    is_wrong(DOC_JSON, "[yes]",
             "f:1:2: [0]: not valid JSON: an unknown word (strings stand in "
             "double quotes)\n");
    is_wrong(DOC_JSON, "[\n  1,\n  \"\xc3\xa9\", x]",
             "f:3:8: [2]: not valid JSON: an unknown word (strings stand in double quotes)\n");
    is_wrong(DOC_JSON, "{\"a\": {\"b\": [0, {\"c\": }]}}",
             "f:1:23: a.b[1].c: not valid JSON: a value is expected\n");
    is_wrong(DOC_JSON, "[", "f:1:2: [0]: not valid JSON: a value is expected\n");
    is_wrong(DOC_JSON, "{\"a\"", "f:1:5: not valid JSON: \":\" is expected behind a key\n");
    is_wrong(DOC_JSON, "{\"a\": /", "f:1:7: a: not valid JSON: a comment\n");
    is_wrong(DOC_JSON, "{\"a\" /", "f:1:6: not valid JSON: a comment\n");
    is_wrong(DOC_JSON, "{\"a\": 1, \"a\": 2, \"b\": {\"c\": 1, \"c\": 1}}",
             "f:1:10: duplicate key \"a\", first on line 1\n"
             "f:1:32: b: duplicate key \"c\", first on line 1\n");
}

static void test_places(void **state)
{
    (void)state;
    struct parse p;
    parse_text(&p, DOC_JSON, TEXT("{\r\n \"\xc3\xa9\": [1,\r  \"x\\n\"],\n \"b\": {}}"));
    const struct doc_entry *entries = p.doc->as.map.entries;
    assert_int_equal(entries[0].place.line, 2);
    assert_int_equal(entries[0].place.column, 2);
    assert_int_equal(entries[0].value->place.column, 7);
    const struct doc *text = entries[0].value->as.list.items[1];
    assert_int_equal(text->place.line, 3);
    assert_int_equal(text->place.column, 3);
    assert_int_equal(text->end.column, 8);
    assert_int_equal(entries[0].value->end.line, 3);
    assert_int_equal(entries[1].place.line, 4);
    assert_int_equal(entries[1].value->end.column, 9);
    parse_free(&p);
}

static void test_limits(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    struct parse p;
    for (int depth = DOC_DEPTH_MAX; depth <= DOC_DEPTH_MAX + 1; depth++) {
        buf_clear(&text);
        for (int i = 0; i < depth; i++)
            buf_char(&text, '[');
        for (int i = 0; i < depth; i++)
            buf_char(&text, ']');
        parse_text(&p, DOC_JSON, buf_as_text(&text));
        assert_int_equal(p.doc != NULL, depth == DOC_DEPTH_MAX);
        if (!p.doc)
            assert_non_null(strstr(buf_cstr(&p.report), "more than 60 levels deep"));
        parse_free(&p);
    }
    for (int count = DOC_NODES_MAX - 1; count <= DOC_NODES_MAX; count++) {
        buf_clear(&text);
        buf_char(&text, '[');
        for (int i = 0; i < count; i++)
            buf_string(&text, i ? ",1" : "1");
        buf_char(&text, ']');
        parse_text(&p, DOC_JSON, buf_as_text(&text));
        assert_int_equal(p.doc != NULL, count < DOC_NODES_MAX);
        if (!p.doc)
            assert_non_null(strstr(buf_cstr(&p.report), "more than 200000 values"));
        parse_free(&p);
    }
    buf_clear(&text);
    buf_string(&text, "{\"");
    for (int i = 0; i < DOC_KEY_MAX + 1; i++)
        buf_char(&text, 'k');
    buf_string(&text, "\": 1}");
    parse_text(&p, DOC_JSON, buf_as_text(&text));
    assert_null(p.doc);
    assert_string_equal(buf_cstr(&p.report), "f:1:2: a key of more than 4096 bytes\n");
    parse_free(&p);
    buf_release(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_values),   cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_strings),  cmocka_unit_test(test_utf8),
    cmocka_unit_test(test_comments), cmocka_unit_test(test_structure),
    cmocka_unit_test(test_places),   cmocka_unit_test(test_limits),
};
UNIT_FILE(tests, NULL, NULL);
