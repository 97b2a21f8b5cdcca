/* Bodies of forms, nested as the clients of OpenPAI write them. */
#include "unit.h"

#include "api/form.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "doc/doc.h"

static int parse(const char *body, struct buf *json, struct err *err)
{
    cleanup_arena struct arena arena;
    const struct doc *doc;
    arena_init(&arena);
    *err = (struct err){0};
    buf_clear(json);
    int failed = form_parse(text_of(body), &arena, &doc, err);
    if (!failed)
        assert_int_equal(doc_to_json(doc, 1 << 16, json), 0);
    return failed;
}

static void test_trees(void **state)
{
    static const struct {
        const char *body, *json;
    } CASES[] = {
        {"", "{}"},
        {"a=1&b=x+y&c=%26", "{\"a\":\"1\",\"b\":\"x y\",\"c\":\"&\"}"},
        {"data[username]=ann&data[admin]=true",
         "{\"data\":{\"username\":\"ann\",\"admin\":\"true\"}}"},
        {"a=1&a=2&a=3", "{\"a\":[\"1\",\"2\",\"3\"]}"},
        {"a[]=1&a[]=2", "{\"a\":[\"1\",\"2\"]}"},
        {"a[1]=y&a[0]=x&a[]=z", "{\"a\":[\"x\",\"y\",\"z\"]}"},
        {"r[0][name]=w&r[0][ports][0][label]=http&r[1][name]=v",
         "{\"r\":[{\"name\":\"w\",\"ports\":[{\"label\":\"http\"}]},{\"name\":\"v\"}]}"},
        {"a%5Bb%5D=1", "{\"a\":{\"b\":\"1\"}}"},
        {"0=x&1=y", "{\"0\":\"x\",\"1\":\"y\"}"}, /* the body is always a map */
        {"a[=1&[b]=2&c]=3&d[e]f=4&g[h]]=5",
         "{\"a[\":\"1\",\"[b]\":\"2\",\"c]\":\"3\",\"d[e]f\":\"4\",\"g[h]]\":\"5\"}"},
    };
    cleanup_buf struct buf json = BUF_INIT;
    struct err err;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        assert_int_equal(parse(CASES[i].body, &json, &err), 0);
        assert_string_equal(buf_cstr(&json), CASES[i].json);
    }
}

static void test_refused(void **state)
{
    cleanup_buf struct buf json = BUF_INIT, many = BUF_INIT;
    struct err err;
    (void)state;
    assert_int_equal(parse("a=1&a[b]=2", &json, &err), ERR_INVALID);
    assert_string_equal(err.text, "a[b] is a value and a map");
    assert_int_equal(parse("a=%zz", &json, &err), ERR_INVALID);
    assert_int_equal(parse("a[1][2][3][4][5][6][7][8]=x", &json, &err), 0);
    assert_int_equal(parse("a[1][2][3][4][5][6][7][8][9]=x", &json, &err), ERR_TOO_BIG);
    for (int i = 0; i <= FORM_FIELDS_MAX; i++)
        buf_format(&many, "k%d=1&", i);
    assert_int_equal(parse(buf_cstr(&many), &json, &err), ERR_TOO_BIG);
}

/* What curl sends under the type of a form is still what it is. */
static void test_is_text(void **state)
{
    (void)state;
    assert_true(form_is_text(TEXT("jobName=a&taskRoles%5B0%5D%5Bname%5D=w")));
    assert_false(form_is_text(TEXT("")));
    assert_false(form_is_text(TEXT("jobName")));
    assert_false(form_is_text(TEXT("{\"a\":\"b=c\"}")));
    assert_false(form_is_text(TEXT("name: a=b")));
    assert_false(form_is_text(TEXT("commands\n- a=b\n")));
    assert_true(form_is_type(TEXT("application/x-www-form-urlencoded; charset=utf-8")));
    assert_false(form_is_type(TEXT("application/json")));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_trees),
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_is_text),
};
UNIT_FILE(tests, NULL, NULL);
