/* YAML into a tree with places; scalars, anchors, merge keys, limits, problems. */
#include "parse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

static void test_kinds(void **state)
{
    (void)state;
    reads_as(DOC_YAML, "", "null");
    reads_as(DOC_YAML, "# nothing\n", "null");
    reads_as(DOC_YAML, "a: 1\nb: [x, {c: ~}]\n'd': \"e\\n\"\n",
             "{\"a\":1,\"b\":[\"x\",{\"c\":null}],"
             "\"d\":\"e\\n\"}");
    reads_as(DOC_YAML, "- |\n  a\n  b\n- >-\n  c\n  d\n", "[\"a\\nb\\n\",\"c d\"]");
    reads_as(DOC_YAML, "1: a\n~: b\ntrue: c\n2.5: d\n",
             "{\"1\":\"a\",\"~\":\"b\",\"true\":\"c\",\"2.5\":\"d\"}");
    reads_as(DOC_YAML, "? a\n: b\n", "{\"a\":\"b\"}");
    reads_as(DOC_YAML, "---\na\n...\n", "\"a\"");
    reads_as(DOC_YAML, "\xef\xbb\xbf{a: b}", "{\"a\":\"b\"}");
}

static void test_scalars(void **state)
{
    (void)state;
    reads_as(DOC_YAML, "[null, Null, NULL, ~, ]", "[null,null,null,null]");
    reads_as(DOC_YAML, "- \n- nulL\n", "[null,\"nulL\"]");
    reads_as(DOC_YAML, "[true, True, TRUE, false, False, FALSE, tRue, yes, no, on, off, y]",
             "[true,true,true,false,false,false,\"tRue\",\"yes\",\"no\",\"on\",\"off\",\"y\"]");
    reads_as(
        DOC_YAML, "[0, -1, +2, 007, 0o17, 0x1f, 0xFF, -0x1, 0o8, 0xg, 0x, 0o, 0b1, 1_000, 1:30]",
        "[0,-1,2,7,15,31,255,\"-0x1\",\"0o8\",\"0xg\",\"0x\",\"0o\",\"0b1\",\"1_000\",\"1:30\"]");
    reads_as(DOC_YAML, "[0x7fffffffffffffff, 0xffffffffffffffff, 0o7777777777777777777777777]",
             "[9223372036854775807,\"0xffffffffffffffff\",\"0o7777777777777777777777777\"]");
    reads_as(DOC_YAML, "[1.5, .5, 1., +1.5, -1e3, 1e+3, 1E-2, 1e, 1e+, ., -, +, 1.2.3, e3, 1e3x]",
             "[1.5,0.5,1,1.5,-1e3,1e+3,1E-2,\"1e\",\"1e+\",\".\",\"-\",\"+\",\"1.2.3\",\"e3\","
             "\"1e3x\"]");
    reads_as(DOC_YAML,
             "[.inf, -.Inf, +.INF, .nan, .NaN, .NAN, -.nan, inf, 99999999999999999999, 00.5]",
             "[null,null,null,null,null,null,\"-.nan\",\"inf\",99999999999999999999,0.5]");
    reads_as(DOC_YAML, "['1', \"true\", '']", "[\"1\",\"true\",\"\"]");
}

static void test_tags(void **state)
{
    (void)state;
    reads_as(DOC_YAML, "[!!str 1, !!int \"2\", !!float 3, !!bool 'true', !!null '', ! 4, !!null ~]",
             "[\"1\",2,3,true,null,\"4\",null]");
    reads_as(DOC_YAML, "!!map {a: !!seq [1]}", "{\"a\":[1]}");
    is_wrong(DOC_YAML, "[!!int x, !!bool 1, !!float x, !!null 1]",
             "f:1:2: [0]: the text does not suit the tag !!int\n"
             "f:1:11: [1]: the text does not suit the tag !!bool\n"
             "f:1:21: [2]: the text does not suit the tag !!float\n"
             "f:1:32: [3]: the text does not suit the tag !!null\n");
    is_wrong(DOC_YAML, "{a: !mine x, b: !!set {x}, c: !list [1]}",
             "f:1:5: a: unknown tag \"!mine\"\n"
             "f:1:17: b: unknown tag \"tag:yaml.org,2002:set\"\n"
             "f:1:31: c: unknown tag \"!list\"\n");
}

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

static void test_syntax(void **state)
{
    (void)state;
    is_wrong(DOC_YAML, "a: [1\nb: 2\n",
             "f:2:2: not valid YAML: did not find expected ',' or ']', while parsing a flow "
             "sequence (it begins on line 1)\n");
    is_wrong(DOC_YAML, "a:\n\t- b\n",
             "f:2:1: not valid YAML: found character that cannot start any token, while scanning "
             "for the next token (tabs cannot indent YAML, use spaces)\n");
    is_wrong(DOC_YAML, "a: b\nc: \xff\n", "f:2:4: not valid YAML: invalid leading UTF-8 octet\n");
    is_wrong(DOC_YAML, "a\n---\nb\n", "f:2:1: only one document is allowed in a text\n");
    is_wrong(DOC_YAML, "a: 'b\n\n\nc",
             "f:4:2: not valid YAML: found unexpected end of stream, while "
             "scanning a quoted scalar (it begins on line 1)\n");
    is_wrong(DOC_YAML, "%YAML 9.9\n---\na\n",
             "f:1:1: not valid YAML: found incompatible YAML document\n");
    is_wrong(DOC_YAML, "a: 1\na: 2\n", "f:2:1: duplicate key \"a\", first on line 1\n");
}

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

static void limit_is(struct text source, const char *message)
{
    struct parse p;
    parse_text(&p, DOC_YAML, source);
    if (message && !strstr(buf_cstr(&p.report), message))
        fail_msg("%s, not %s", buf_cstr(&p.report), message);
    else if (!message)
        assert_string_equal(buf_cstr(&p.report), "");
    assert_int_equal(p.doc == NULL, message != NULL);
    parse_free(&p);
}

static void test_limits(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    /* bytes */
    while (text.length < DOC_BYTES_MAX)
        buf_string(&text, "# a line of comment, 32 bytes. \n");
    assert_int_equal(text.length, DOC_BYTES_MAX);
    limit_is(buf_as_text(&text), NULL);
    buf_char(&text, ' ');
    limit_is(buf_as_text(&text), "the text has 4194305 bytes, at most 4194304 allowed");
    /* anchors */
    for (int count = DOC_ANCHORS_MAX; count <= DOC_ANCHORS_MAX + 1; count++) {
        buf_clear(&text);
        for (int i = 0; i < count; i++)
            buf_format(&text, "- &a%d x\n", i);
        limit_is(buf_as_text(&text), count > DOC_ANCHORS_MAX ? "more than 1000 anchors" : NULL);
    }
    /* a billion laughs: values are counted as if written out */
    buf_clear(&text);
    buf_string(&text, "a: &a [x, x, x, x, x, x, x, x, x, x]\n");
    for (int c = 'b'; c < 'k'; c++) {
        buf_format(&text, "%c: &%c [", c, c);
        for (int i = 0; i < 10; i++)
            buf_format(&text, "*%c%s", c - 1, i < 9 ? ", " : "]\n");
    }
    limit_is(buf_as_text(&text), "more than 200000 values, aliases expanded");
    /* levels, those below an alias included */
    buf_clear(&text);
    buf_string(&text, "- &a ");
    for (int i = 0; i < 40; i++)
        buf_string(&text, "[");
    for (int i = 0; i < 40; i++)
        buf_string(&text, "]");
    size_t fits = text.length;
    for (int i = 0; i < 20; i++)
        buf_format(&text, "%s%s", i ? "" : "\n- ", i < 19 ? "[" : "*a");
    for (int i = 0; i < 19; i++)
        buf_string(&text, "]");
    limit_is(buf_as_text(&text), NULL);
    text.length = fits;
    for (int i = 0; i < 21; i++)
        buf_format(&text, "%s%s", i ? "" : "\n- ", i < 20 ? "[" : "*a");
    for (int i = 0; i < 20; i++)
        buf_string(&text, "]");
    limit_is(buf_as_text(&text), "more than 60 levels deep");
    buf_release(&text);
}

static void test_getters(void **state)
{
    (void)state;
    struct parse p;
    parse_text(&p, DOC_YAML,
               TEXT("s: x\ni: 7\nr: 2.0\nb: true\nt: ' 12 '\nf: 1.5\nl: [1]\nbig: 1e300\n"
                    "text: '3.0'\nnan: .nan\n"));
    const struct doc *doc = p.doc;
    assert_string_equal(doc_get_text(doc, "s", "no").at, "x");
    assert_string_equal(doc_get_text(doc, "i", "no").at, "no");
    assert_string_equal(doc_get_text(doc, "absent", "no").at, "no");
    assert_int_equal(doc_get_int(doc, "i", 1), 7);
    assert_int_equal(doc_get_int(doc, "r", 1), 2);
    assert_int_equal(doc_get_int(doc, "t", 1), 12);
    assert_int_equal(doc_get_int(doc, "text", 1), 3);
    assert_int_equal(doc_get_int(doc, "f", 1), 1);
    assert_int_equal(doc_get_int(doc, "s", 1), 1);
    assert_int_equal(doc_get_int(doc, "big", 1), 1);
    assert_int_equal(doc_get_int(doc, "nan", 1), 1);
    assert_int_equal(doc_get_int(doc, "absent", 1), 1);
    assert_true(doc_get_bool(doc, "b", false));
    assert_true(doc_get_bool(doc, "i", true));
    assert_true(doc_get_bool(doc, "absent", true));
    assert_null(doc_get(NULL, "a"));
    assert_null(doc_get(doc_get(doc, "l"), "a"));
    assert_int_equal(doc_count(doc), 10);
    assert_int_equal(doc_count(doc_get(doc, "l")), 1);
    assert_int_equal(doc_count(doc_get(doc, "s")), 0);
    assert_int_equal(doc_count(NULL), 0);
    parse_free(&p);
    const char *names[] = {"null",     "a boolean", "an integer", "a number",
                           "a string", "a list",    "a map"};
    for (int kind = DOC_NULL; kind <= DOC_MAP; kind++)
        assert_string_equal(doc_kind_name((enum doc_kind)kind), names[kind]);
}

static void test_to_json(void **state)
{
    (void)state;
    reads_as(DOC_YAML, "[-.5, -1.50, 1.5e3, 0.5, -0.0, -01.5, 1.e3, 12., +.5, 3.25E1]",
             "[-0.5,-1.50,1.5e3,0.5,-0.0,-1.5,1000,12,0.5,3.25E1]");
    struct parse p;
    struct buf out = BUF_INIT;
    parse_text(&p, DOC_YAML,
               TEXT("a: &x [long text, long text]\nb: [*x, *x, *x]\nlonger key than that: 1\n"));
    size_t whole = p.json.length;
    for (size_t room = 0; room < whole; room++) {
        buf_clear(&out);
        buf_string(&out, "before");
        assert_int_equal(doc_to_json(p.doc, room, &out), ERR_TOO_BIG);
        assert_true(out.length < whole + 100);
    }
    buf_clear(&out);
    assert_int_equal(doc_to_json(p.doc, whole, &out), 0);
    buf_release(&out);
    parse_free(&p);
}

/* However many warnings there are: whoever is refused is told why. */
static void test_errors_before_warnings(void **state)
{
    (void)state;
    struct arena arena;
    struct problems problems;
    struct buf report = BUF_INIT;
    arena_init(&arena);
    problems_init(&problems, &arena);
    for (unsigned i = 1; i <= PROBLEMS_MAX + 5; i++)
        problem_warn(&problems, (struct place){i, 1}, "", "strange");
    assert_int_equal(problems.left_out, 5);
    struct problem *problem = problem_add(&problems, (struct place){3, 2}, "a.b", "wrong");
    problem_hint(&problems, problem, "do this");
    assert_int_equal(problems.count, PROBLEMS_MAX);
    assert_int_equal(problems.left_out, 6);
    problems_print(&problems, "f", &report);
    assert_non_null(strstr(buf_cstr(&report), "f:3:2: a.b: wrong (do this)"));
    for (unsigned i = 1; i <= PROBLEMS_MAX; i++) /* no warning is left in the end */
        problem_add(&problems, (struct place){1000 + i, 1}, "", "worse");
    for (size_t i = 0; i < problems.count; i++)
        assert_false(problems.items[i].is_warning);
    assert_int_equal(problems.error_count, PROBLEMS_MAX + 1);
    buf_release(&report);
    problems_release(&problems);
    arena_release(&arena);
}

static void test_problems(void **state)
{
    (void)state;
    struct arena arena;
    struct problems problems;
    struct buf out = BUF_INIT;
    arena_init(&arena);
    problems_init(&problems, &arena);
    problems_print(&problems, "none", &out);
    assert_string_equal(buf_cstr(&out), "");
    struct problem *problem = problem_add(&problems, (struct place){2, 3}, "a.b", "is %d", 7);
    problem_hint(&problems, problem, "did you mean %s?", "8");
    problem_hint(&problems, NULL, "nothing");
    problem_warn(&problems, (struct place){1, 9}, "", "tab\there\nand \x7f");
    problem_add(&problems, (struct place){2, 1}, "", "first of line 2");
    assert_null(problem_add(&problems, (struct place){2, 1}, "", "first of line 2"));
    problem_add(&problems, (struct place){2, 1}, "", "second of line 2");
    problem_add(&problems, (struct place){2, 1}, "p", "second of line 2");
    problems_print(&problems, "x\ny", &out);
    assert_string_equal(buf_cstr(&out), "x\\x0ay:1:9: warning: tab\\x09here\\x0aand \\x7f\n"
                                        "x\\x0ay:2:1: first of line 2\n"
                                        "x\\x0ay:2:1: second of line 2\n"
                                        "x\\x0ay:2:1: p: second of line 2\n"
                                        "x\\x0ay:2:3: a.b: is 7 (did you mean 8?)\n");
    assert_int_equal(problems.error_count, 4);
    for (unsigned i = 0; i < PROBLEMS_MAX; i++)
        problem_add(&problems, (struct place){10 + i, 1}, "", "more");
    assert_int_equal(problems.count, PROBLEMS_MAX);
    assert_int_equal(problems.left_out, 5);
    assert_int_equal(problems.error_count, 4 + PROBLEMS_MAX);
    buf_clear(&out);
    problems_print(&problems, "f", &out);
    assert_non_null(strstr(buf_cstr(&out), "\nf: 5 more problems are not shown\n"));
    buf_release(&out);
    problems_release(&problems);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),    cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_tags),     cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_merge),    cmocka_unit_test(test_syntax),
        cmocka_unit_test(test_places),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_getters),  cmocka_unit_test(test_to_json),
        cmocka_unit_test(test_problems), cmocka_unit_test(test_errors_before_warnings),
    };
    int failed = cmocka_run_group_tests_name("doc", tests, NULL, NULL);
    return failed + test_json() + test_shape();
}
