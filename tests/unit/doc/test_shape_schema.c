/* A table of fields as a JSON Schema. */
#include "parse.h"
#include "shapes.h"
#include "unit.h"

#include "base/memory.h"
#include "doc/shape.h"

static void test_schema(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct parse p;
    shape_schema(&outer, "A title", &out);
    parse_text(&p, DOC_JSON, buf_as_text(&out));
    assert_string_equal(buf_cstr(&p.report), "");
    assert_string_equal(doc_get_text(p.doc, "title", "").at, "A title");
    assert_false(doc_get_bool(p.doc, "additionalProperties", true));
    const struct doc *properties = doc_get(p.doc, "properties");
    assert_int_equal(doc_count(properties), COUNT_OF(fields));
    const struct doc *string = doc_get(properties, "string");
    assert_string_equal(doc_get_text(string, "pattern", "").at, "^[a-z][a-z0-9\\-_]*$");
    assert_int_equal(doc_get_int(string, "maxLength", 0), 5);
    assert_int_equal(doc_count(doc_get(doc_get(properties, "choice"), "enum")), 4);
    const struct doc *either = doc_get(doc_get(properties, "map"), "anyOf");
    assert_int_equal(doc_count(either), 2);
    assert_string_equal(doc_get_text(either->as.list.items[1], "type", "").at, "null");
    const struct doc *named = doc_get(doc_get(properties, "names"), "additionalProperties");
    assert_null(doc_get(named, "additionalProperties"));
    assert_string_equal(doc_get(named, "required")->as.list.items[0]->as.string.at, "size");
    parse_free(&p);
    buf_release(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_schema),
};
UNIT_FILE(tests, NULL, NULL);
