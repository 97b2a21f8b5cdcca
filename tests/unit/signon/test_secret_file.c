/* A secret in a file. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "signon/secret_file.h"

static int read_of(const char *path, const char *content, char **secret, struct err *err)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
    return secret_file_read(path, "the.key", 16, secret, err);
}

static void test_secret_file(void **state)
{
    char folder[] = "/tmp/skep-secret-test-XXXXXX", path[100], *secret = NULL;
    struct err err = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/secret", folder);
    assert_int_equal(secret_file_read(path, "the.key", 16, &secret, &err), ERR_NOT_FOUND);
    assert_int_equal(read_of(path, " \n", &secret, &err), ERR_INVALID);
    assert_string_equal(err.path, "the.key");
    assert_int_equal(read_of(path, "12345678901234567", &secret, &err), ERR_TOO_BIG);
    assert_null(secret);
    assert_int_equal(read_of(path, " a word\r\n", &secret, &err), 0);
    assert_string_equal(secret, "a word");
    mem_free(secret);
    unlink(path);
    rmdir(folder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_secret_file),
};
UNIT_FILE(tests, NULL, NULL);
