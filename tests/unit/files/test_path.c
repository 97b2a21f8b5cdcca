/* Paths of requests: names alone, and none that cannot be one. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "files/path.h"

static int parse(struct text text, struct files_path *path)
{
    struct err err = {0};
    int code = files_path_parse(text, "path", path, &err);
    if (code)
        assert_string_equal(err.path, "path");
    return code;
}

static void test_names(void **state)
{
    struct files_path path;
    (void)state;
    assert_int_equal(parse(TEXT(""), &path), 0);
    assert_int_equal(path.count, 0);
    assert_int_equal(parse((struct text){NULL, 0}, &path), 0);
    assert_int_equal(path.count, 0);
    assert_int_equal(parse(TEXT("a/b c/…/..."), &path), 0);
    assert_int_equal(path.count, 4);
    assert_string_equal(files_path_name(&path, 0), "a");
    assert_string_equal(files_path_name(&path, 1), "b c");
    assert_string_equal(files_path_name(&path, 2), "…");
    assert_string_equal(files_path_name(&path, 3), "...");
}

static void test_what_is_no_name(void **state)
{
    static const char *const wrong[] = {"/",     "/a",       "a/",        "a//b", ".",
                                        "..",    "a/../b",   "../",       "./a",  "a\nb",
                                        "a\x7f", "\xff\xfe", "a/\xc0\xaf"};
    struct files_path path;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (parse(text_of(wrong[i]), &path) != ERR_INVALID)
            fail_msg("'%s' is taken for a path", wrong[i]);
    assert_int_equal(parse((struct text){"a\0b", 3}, &path), ERR_INVALID);
}

static void test_limits(void **state)
{
    char text[FILES_PATH_MAX + 2];
    struct files_path path;
    (void)state;
    memset(text, 'a', sizeof text);
    assert_int_equal(parse((struct text){text, FILES_NAME_MAX}, &path), 0);
    assert_int_equal(parse((struct text){text, FILES_NAME_MAX + 1}, &path), ERR_TOO_BIG);
    for (size_t i = 1; i < sizeof text; i += 2)
        text[i] = '/';
    assert_int_equal(parse((struct text){text, 2 * FILES_DEPTH_MAX - 1}, &path), 0);
    assert_int_equal(path.count, FILES_DEPTH_MAX);
    assert_int_equal(parse((struct text){text, 2 * FILES_DEPTH_MAX + 1}, &path), ERR_TOO_BIG);
    memset(text, 'a', sizeof text);
    for (size_t i = 200; i < sizeof text; i += 200)
        text[i] = '/';
    assert_int_equal(parse((struct text){text, FILES_PATH_MAX}, &path), 0);
    assert_int_equal(parse((struct text){text, FILES_PATH_MAX + 1}, &path), ERR_TOO_BIG);
}

static void test_spare_names(void **state)
{
    char one[FILES_SPARE_SIZE], same[FILES_SPARE_SIZE], other[FILES_SPARE_SIZE];
    (void)state;
    files_spare_name("model.pt", one);
    files_spare_name("model.pt", same);
    files_spare_name("model.pu", other);
    assert_string_equal(one, same);
    assert_string_not_equal(one, other);
    assert_int_equal(strlen(one), strlen(".skep-0123456789abcdef"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_what_is_no_name),
    cmocka_unit_test(test_limits),
    cmocka_unit_test(test_spare_names),
};
UNIT_FILE(tests, NULL, NULL);
