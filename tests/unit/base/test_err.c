/* An error has a code, a place and a text. */
#include "unit.h"

#include <errno.h>

#include "base/err.h"
#include "base/memory.h"

static void test_err(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(err_fail(&err, ERR_TOO_BIG, "taskRoles", "%d", 5), ERR_TOO_BIG);
    assert_string_equal(err.path, "taskRoles");
    assert_string_equal(err_name(err.code), "too-big");
    assert_int_equal(err_errno(&err, ENOENT, "open %s", "x"), ERR_IO);
    assert_string_equal(err.text, "open x: No such file or directory");
    assert_int_equal(err_fail(NULL, ERR_BUSY, "", "x"), ERR_BUSY);
    assert_string_equal(err_name(-1000), "unknown");
    assert_string_equal(err_name(1), "unknown");
    assert_int_equal(err_errno(NULL, ENOENT, "x"), ERR_IO);
    err_errno(&err, 100000, "x");
    assert_string_equal(err.text, "x: unknown error");
    err_fail(&err, ERR_INVALID, NULL, "x");
    assert_string_equal(err.path, "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_err),
};
UNIT_FILE(tests, NULL, NULL);
