/* YAML into a tree with places; syntax, tags, anchors, limits; what is asked of a tree. */
#include "parse.h"
#include "unit.h"

#include <string.h>

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

/* What is too deep is said once, for YAML and for JSON, however much of it there is. */
static void test_too_deep_is_said_once(void **state)
{
    (void)state;
    for (int format = 0; format < 2; format++) {
        struct buf text = BUF_INIT;
        struct parse p;
        for (int i = 0; i < DOC_DEPTH_MAX - 1; i++)
            buf_char(&text, '[');
        buf_string(&text, "[[1], [2]], [[3]]");
        for (int i = 0; i < DOC_DEPTH_MAX - 1; i++)
            buf_char(&text, ']');
        parse_text(&p, format ? DOC_JSON : DOC_YAML, buf_as_text(&text));
        assert_null(p.doc);
        const char *said = strstr(buf_cstr(&p.report), ": more than 60 levels deep\n");
        assert_int_equal(strncmp(buf_cstr(&p.report), "f:1:61: [0]", 11), 0);
        assert_non_null(said);
        assert_null(strchr(strchr(said, '\n') + 1, '\n'));
        parse_free(&p);
        buf_release(&text);
    }
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_kinds),
    cmocka_unit_test(test_tags),
    cmocka_unit_test(test_syntax),
    cmocka_unit_test(test_limits),
    cmocka_unit_test(test_too_deep_is_said_once),
    cmocka_unit_test(test_getters),
};
UNIT_FILE(tests, NULL, NULL);
