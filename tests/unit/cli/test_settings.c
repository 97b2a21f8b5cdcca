/* Settings are kept for their owner alone. */
#include "unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/settings.h"

static void test_settings(void **state)
{
    (void)state;
    char folder[] = "/tmp/skep-cli-test-XXXXXX", path[100];
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_CONFIG_HOME", folder, 1), 0);
    struct settings read, settings = {.server = mem_copy("http://h:1"),
                                      .user = mem_copy("alice"),
                                      .token = mem_copy("a.b.c"),
                                      .fingerprint = mem_copy("sha256//x")};
    assert_int_equal(settings_load(&read, NULL), 0);
    assert_null(read.token);
    assert_int_equal(settings_save(&settings, NULL), 0);
    assert_int_equal(settings_load(&read, NULL), 0);
    assert_string_equal(read.server, "http://h:1");
    assert_string_equal(read.token, "a.b.c");
    assert_string_equal(read.user, "alice");
    assert_string_equal(read.fingerprint, "sha256//x");
    settings_release(&read);
    settings_release(&settings);
    struct stat status;
    snprintf(path, sizeof path, "%s/skep/settings", folder);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    chmod(path, 0644);
    assert_true(settings_load(&read, NULL) < 0);
    settings_release(&read);
    unlink(path);
    snprintf(path, sizeof path, "%s/skep", folder);
    rmdir(path);
    rmdir(folder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_settings),
};
UNIT_FILE(tests, NULL, NULL);
