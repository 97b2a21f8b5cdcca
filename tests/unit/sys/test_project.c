/* Project quotas where there are none; where there are, tests/system/engine/test_disk.c. */
#include "unit.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "sys/cleanup.h"
#include "sys/project.h"

static void test_without(void **state)
{
    (void)state;
    struct err err = {0};
    struct project_use use;
    cleanup_close int fd = memfd_create("no-projects", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_false(project_is_enforced(fd));
    assert_false(project_is_enforced(-1));
    assert_false(project_use_read(fd, 7, &use));
    assert_true(project_limit(fd, 7, 1 << 20, 10, &err) < 0);
    assert_non_null(strstr(err.text, "project 7"));
    assert_true(project_put("/no/such/folder", 7, &err) < 0);
    assert_non_null(strstr(err.text, "/no/such/folder"));
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_without)};
UNIT_FILE(tests, NULL, NULL);
