/* A table of fields checks a tree. */
#include "parse.h"
#include "shapes.h"
#include "unit.h"

#include <string.h>

#include "base/memory.h"
#include "doc/shape.h"

static const struct shape lax = {fields, COUNT_OF(fields), UNKNOWN_FREE};

static void checks_as(const struct shape *shape, const char *source, const char *report)
{
    struct parse p;
    struct buf out = BUF_INIT;
    parse_text(&p, DOC_YAML, text_of(source));
    assert_string_equal(buf_cstr(&p.report), "");
    shape_check(shape, p.doc, "", &p.problems);
    problems_print(&p.problems, "f", &out);
    assert_string_equal(buf_cstr(&out), report);
    buf_release(&out);
    parse_free(&p);
}

static void test_right(void **state)
{
    (void)state;
    checks_as(&outer, "{}", "");
    checks_as(&outer,
              "any: [1]\nstring: a-_1\nfree: ~\nlabel: 1.5\nint: 9.0\nsoft: ' 12'\nbool: true\n"
              "choice: 7\nonly: x\nstrings: [a, '']\nmap: ~\nmaps: [{size: 1}]\n"
              "variants: [{kind: box, size: 1}, {kind: ball, size: 2}]\nnames: {a: {size: 1}}\n"
              "numbers: {A b: 3}\nopen: {x: y}\n",
              "");
    checks_as(&outer, "{label: a, choice: red, map: {size: 1}, free: x}", "");
    checks_as(&outer, "{label: 1, choice: '7', variants: [], maps: []}", "");
}

static void test_wrong(void **state)
{
    (void)state;
    checks_as(&outer, "[]", "f:1:1: must be a map, not a list\n");
    checks_as(&outer, "string: ''\n", "f:1:9: string: must not be empty\n");
    checks_as(&outer, "string: abcdef\n", "f:1:9: string: must be at most 5 bytes, not 6\n");
    checks_as(&outer, "string: 1a\n", "f:1:9: string: may only have small letters\n");
    checks_as(&outer, "string: aB\n", "f:1:9: string: may only have small letters\n");
    checks_as(&outer, "string: 12\n",
              "f:1:9: string: must be a string, not an integer (quote it: \"12\")\n");
    checks_as(&outer, "string: ~\n", "f:1:9: string: must be a string, not null\n");
    checks_as(&outer, "free: \"a\\0b\"\n", "f:1:7: free: must not hold a NUL character\n");
    checks_as(&outer, "label: true\n",
              "f:1:8: label: must be a string or a number, not a boolean\n");
    checks_as(&outer, "int: 1\n", "f:1:6: int: must be at least 2, not 1\n");
    checks_as(&outer, "int: 10\n", "f:1:6: int: must be at most 9, not 10\n");
    checks_as(&outer, "int: '3'\n", "f:1:6: int: must be an integer, not a string\n");
    checks_as(&outer, "int: 2.5\n", "f:1:6: int: must be an integer, not a number\n");
    checks_as(&outer, "soft: x\n", "f:1:7: soft: must be an integer, not a string\n");
    checks_as(&outer, "soft: '1.5'\n", "f:1:7: soft: must be an integer, not a string\n");
    checks_as(&outer, "bool: 1\n", "f:1:7: bool: must be true or false, not an integer\n");
    checks_as(&outer, "choice: gren\n",
              "f:1:9: choice: must be one of red, green, 7 (did you mean green?)\n");
    checks_as(&outer, "choice: 8\n", "f:1:9: choice: must be one of red, green, 7\n");
    checks_as(&outer, "choice: [7]\n", "f:1:9: choice: must be one of red, green, 7\n");
    checks_as(&outer, "only: 1\n", "f:1:7: only: must be x\n");
    checks_as(
        &outer, "strings: a\n",
        "f:1:10: strings: must be a list of strings, not a string (begin the line with \"- \")\n");
    checks_as(&outer, "strings: {}\n", "f:1:10: strings: must be a list of strings, not a map\n");
    checks_as(&outer, "strings: []\n", "f:1:10: strings: must not be empty\n");
    checks_as(&outer, "strings: [a, b, c]\n", "f:1:10: strings: must be at most 2 items, not 3\n");
    checks_as(&outer, "strings: [a, 1]\n",
              "f:1:14: strings[1]: must be a string, not an integer (quote it: \"1\")\n");
    checks_as(&outer, "map: {sise: 1}\n",
              "f:1:6: map.size: is missing\n"
              "f:1:7: warning: map.sise: unknown field, ignored (did you mean size?)\n");
    checks_as(&outer, "map: 1\n", "f:1:6: map: must be a map, not an integer\n");
    checks_as(&outer, "maps: {}\n", "f:1:7: maps: must be a list, not a map\n");
    checks_as(&outer, "maps: [{size: 1}, 2, {size: a}]\n",
              "f:1:7: maps: must be at most 2 items, not 3\n"
              "f:1:19: maps[1]: must be a map, not an integer\n"
              "f:1:29: maps[2].size: must be an integer, not a string\n");
    checks_as(&outer, "variants: [{kind: bax, size: 1}, {size: 1}, 3, {kind: 4}, {kind: []}]\n",
              "f:1:19: variants[0].kind: unknown kind \"bax\" (did you mean box?)\n"
              "f:1:34: variants[1].kind: is missing\n"
              "f:1:45: variants[2]: must be a map, not an integer\n"
              "f:1:55: variants[3].kind: unknown kind \"4\"\n"
              "f:1:66: variants[4].kind: unknown kind \"\"\n");
    checks_as(&outer, "names: {}\n", "f:1:8: names: must not be empty\n");
    checks_as(&outer, "names: {A: {size: 1}, '': {size: 1}, c: 1}\n",
              "f:1:8: names: must be at most 2 entries, not 3\n"
              "f:1:9: names.A: a name may only have small letters\n"
              "f:1:23: names.: a name may only have small letters\n"
              "f:1:41: names.c: must be a map, not an integer\n");
    checks_as(&outer, "numbers: {a: 4, b: x}\n",
              "f:1:14: numbers.a: must be at most 3, not 4\n"
              "f:1:20: numbers.b: must be an integer, not a string\n");
    checks_as(&outer, "numbers: []\nopen: 1\n",
              "f:1:10: numbers: must be a map, not a list\n"
              "f:2:7: open: must be a map, not an integer\n");
}

static void test_unknown(void **state)
{
    (void)state;
    checks_as(&outer, "strnig: a\nxyz: 1\nstring: a\nstrin: b\n",
              "f:1:1: strnig: unknown field (did you mean strings?)\n"
              "f:2:1: xyz: unknown field\n"
              "f:4:1: strin: unknown field (did you mean strings?)\n");
    checks_as(&outer, "size: 1\nLABEL: a\n",
              "f:1:1: size: unknown field (it belongs in map)\n"
              "f:2:1: LABEL: unknown field (did you mean label?)\n");
    checks_as(&lax, "strng: a\nxyz: 1\nstring: a\nstrings: [a]\n", "");
    checks_as(&lax, "strng: a\n",
              "f:1:1: warning: strng: unknown field, ignored (did you mean string?)\n");
    struct buf text = BUF_INIT;
    struct parse p;
    for (int i = 0; i < 300; i++)
        buf_format(&text, "strin%d: x\n", i);
    parse_text(&p, DOC_YAML, buf_as_text(&text));
    shape_check(&outer, p.doc, "top", &p.problems);
    assert_int_equal(p.problems.count, PROBLEMS_MAX);
    assert_int_equal(p.problems.left_out, 200);
    assert_string_equal(p.problems.items[0].path, "top.strin0");
    parse_free(&p);
    buf_release(&text);
}

static void test_long_path(void **state)
{
    (void)state;
    struct arena arena;
    struct problems problems;
    struct doc value = {.kind = DOC_NULL};
    char path[600];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = '\0';
    arena_init(&arena);
    problems_init(&problems, &arena);
    shape_check(&outer, &value, path, &problems);
    assert_int_equal(strlen(problems.items[0].path), 399);
    problems_release(&problems);
    arena_release(&arena);
}

static void test_near(void **state)
{
    (void)state;
    const struct {
        const char *wrong, *name;
        bool is_near;
    } cases[] = {{"taskNumbr", "taskNumber", true},
                 {"gputype", "gpuType", true},
                 {"a", "b", false},
                 {"ab", "a", false},
                 {"abcd", "abxy", false},
                 {"abc", "abd", true},
                 {"memory", "memoryMB", true},
                 {"verylongword", "verylong", false},
                 {"taskNumberOfs", "taskNumber", true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct near near = {0};
        near_offer(&near, text_of(cases[i].wrong), text_of(cases[i].name));
        assert_int_equal(near.best.at != NULL, cases[i].is_near);
    }
    struct near near = {0};
    near_offer(&near, TEXT("abcde"), TEXT("abcxx"));
    near_offer(&near, TEXT("abcde"), TEXT("abcdx"));
    near_offer(&near, TEXT("abcde"), TEXT("abcyy"));
    assert_string_equal(near.best.at, "abcdx");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_right),     cmocka_unit_test(test_wrong), cmocka_unit_test(test_unknown),
    cmocka_unit_test(test_long_path), cmocka_unit_test(test_near),
};
UNIT_FILE(tests, NULL, NULL);
