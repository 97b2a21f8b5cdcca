/* What a plain scalar is: null, a boolean, a number or a text. */
#include "parse.h"
#include "unit.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_scalars),
};
UNIT_FILE(tests, NULL, NULL);
