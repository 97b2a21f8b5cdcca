/* The tree as it is built: aliases stand for what they name, merge keys add to a map. */
#include "parse.h"
#include "unit.h"

static void test_aliases(void **state)
{
    (void)state;
    reads_as(DOC_YAML, "a: &x [1, {b: 2}]\nc: *x\nd: &x 3\ne: *x\n",
             "{\"a\":[1,{\"b\":2}],\"c\":[1,{\"b\":2}],\"d\":3,\"e\":3}");
    reads_as(DOC_YAML, "&k a: 1\nb: {*k : 2}\n", "{\"a\":1,\"b\":{\"a\":2}}");
    is_wrong(DOC_YAML, "a: *x\n", "f:1:4: a: no anchor \"x\" before this alias\n");
    is_wrong(DOC_YAML, "a: &x [*x]\n",
             "f:1:8: a[0]: the alias \"x\" stands inside what it names\n");
    is_wrong(DOC_YAML, "a: &x [1]\nb: {*x : 1}\n", "f:2:5: b: a key must be a scalar\n");
    is_wrong(DOC_YAML, "{[a]: 1}", "f:1:2: a key must be a scalar\n");
    is_wrong(DOC_YAML, "? {a: b}\n: 1\n", "f:1:3: a key must be a scalar\n");
    struct parse p;
    parse_text(&p, DOC_YAML, TEXT("a: &x {b: 1}\nc: *x\nd: e\nf: {<<: *x}\n"));
    assert_true(doc_get(p.doc, "a")->is_shared);
    assert_ptr_equal(doc_get(p.doc, "a"), doc_get(p.doc, "c"));
    assert_false(doc_get(p.doc, "d")->is_shared);
    assert_true(doc_get(p.doc, "f")->is_shared);
    assert_true(doc_get(p.doc, "f")->as.map.entries[0].is_merged);
    assert_false(p.doc->is_shared);
    parse_free(&p);
}

static void test_merge(void **state)
{
    (void)state;
    reads_as(DOC_YAML, "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3, z: 4}\n",
             "{\"a\":{\"x\":1,\"y\":2},\"b\":{\"y\":3,\"z\":4,\"x\":1}}");
    reads_as(DOC_YAML, "{<<: [{a: 1}, {a: 2, b: 2}], c: 3}", "{\"c\":3,\"a\":1,\"b\":2}");
    reads_as(DOC_YAML, "{<<: {}, a: 1}", "{\"a\":1}");
    reads_as(DOC_YAML, "{<<: [], a: 1}", "{\"a\":1}");
    reads_as(DOC_YAML, "{'<<': {a: 1}}", "{\"<<\":{\"a\":1}}");
    reads_as(DOC_YAML, "{<<: {a: 1}, <<: {b: 1}}", "{\"a\":1,\"b\":1}");
    is_wrong(DOC_YAML, "{<<: 1, a: 1}", "f:1:2: a merge key takes a map or a list of maps\n");
    is_wrong(DOC_YAML, "x: {<<: [{a: 1}, 2]}",
             "f:1:5: x: a merge key takes a map or a list of maps\n");
    is_wrong(DOC_YAML, "{<<: {a: 1}, b: 1, b: 2}",
             "f:1:20: duplicate key \"b\", first on line 1\n");
    struct buf text = BUF_INIT;
    struct parse p;
    buf_string(&text, "base: &b {k1: base, extra: 1}\nbig:\n  <<: *b\n");
    for (int i = 30; i > 0; i--)
        buf_format(&text, "  k%d: %d\n", i, i);
    buf_string(&text, "  k7: again\n");
    parse_text(&p, DOC_YAML, buf_as_text(&text));
    assert_string_equal(buf_cstr(&p.report),
                        "f:34:3: big: duplicate key \"k7\", first on line 27\n");
    const struct doc *big = doc_get(p.doc, "big");
    assert_int_equal(doc_count(big), 31);
    assert_int_equal(doc_get_int(big, "k1", 0), 1);
    assert_int_equal(doc_get_int(big, "k7", 0), 7);
    assert_int_equal(doc_get_int(big, "extra", 0), 1);
    assert_null(doc_get(big, "k31"));
    assert_null(doc_get(big, "a"));
    assert_null(doc_get(big, "z"));
    assert_string_equal(big->as.map.entries[0].key.at, "k30");
    assert_string_equal(big->as.map.entries[30].key.at, "extra");
    parse_free(&p);
    buf_release(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_aliases),
    cmocka_unit_test(test_merge),
};
UNIT_FILE(tests, NULL, NULL);
