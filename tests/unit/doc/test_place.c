/* Lines and columns, and the byte that stands there. */
#include "parse.h"
#include "unit.h"

#include <string.h>

static void test_places(void **state)
{
    (void)state;
    const char *source =
        "\xef\xbb\xbf"
        "a:\n  - \xc3\xa9\xc3\xa9\n  - {b: c}\nd: |\n  text\n\n# end\ne: &x\n  f: g # h\n"
        "i: [\n  ]\nj:\n";
    struct parse p;
    parse_text(&p, DOC_YAML, text_of(source));
    assert_string_equal(buf_cstr(&p.report), "");
    const struct doc *a = doc_get(p.doc, "a");
    assert_int_equal(a->place.line, 2);
    assert_int_equal(a->place.column, 3);
    assert_int_equal(a->end.line, 3);
    assert_int_equal(a->end.column, 11);
    assert_int_equal(a->as.list.items[0]->end.column, 7);
    const char *at = source + doc_offset(text_of(source), a->as.list.items[1]->place);
    assert_int_equal(strncmp(at, "{b: c}", 6), 0);
    const struct doc *e = doc_get(p.doc, "e");
    at = source + doc_offset(text_of(source), e->end);
    assert_int_equal(strncmp(at, " # h", 4), 0);
    assert_int_equal(e->place.line, 8);
    assert_int_equal(e->place.column, 4);
    assert_int_equal(doc_get(p.doc, "i")->end.line, 11);
    assert_int_equal(doc_get(p.doc, "i")->end.column, 4);
    struct place behind = {99, 1};
    assert_int_equal(doc_offset(text_of(source), behind), strlen(source));
    parse_free(&p);
    parse_text(&p, DOC_YAML,
               TEXT("a: 1\r\nb: 2\rc: 3\xc2\x85"
                    "d: 4\xe2\x80\xa8"
                    "e: 5\n\xe2\x80\xa9"
                    "f: \xe2\x82\xac\xc2\xa9 6\n"));
    assert_string_equal(buf_cstr(&p.report), "");
    assert_int_equal(doc_get(p.doc, "f")->place.line, 7);
    parse_free(&p);
    struct text breaks = TEXT("a\r\nb\rc\xc2\x85"
                              "d\xe2\x80\xa8"
                              "e\xe2\x80\xa9\xe2\x82\xac\xc2\xa9\xe2\x80");
    assert_int_equal(doc_offset(breaks, (struct place){2, 1}), 3);
    assert_int_equal(doc_offset(breaks, (struct place){4, 1}), 8);
    assert_int_equal(doc_offset(breaks, (struct place){5, 1}), 12);
    assert_int_equal(doc_offset(breaks, (struct place){6, 3}), 21);
    assert_int_equal(doc_offset(TEXT("a\r"), (struct place){2, 1}), 2);
    assert_int_equal(doc_offset(TEXT("a\xc2"), (struct place){2, 1}), 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_places),
};
UNIT_FILE(tests, NULL, NULL);
