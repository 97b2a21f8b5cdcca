/* A tree as JSON, within a limit. */
#include "parse.h"
#include "unit.h"

#include "base/err.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_to_json),
};
UNIT_FILE(tests, NULL, NULL);
