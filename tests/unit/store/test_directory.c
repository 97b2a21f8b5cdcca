/* One process has a data directory, and the next one is told which. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "folder.h"
#include "store/directory.h"

/* What this process is told while another one has the directory; `number` is what the lock file
 * holds then, NULL: what the other one wrote. Returns the process that had it. */
static pid_t told(const char *number, struct err *err)
{
    int ready[2], over[2], fd = -1;
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(over), 0);
    const pid_t child = fork();
    if (child == 0) {
        const bool is_locked = directory_lock(in_folder(""), &fd, NULL) == 0 &&
                               (!number || ftruncate(fd, 0) == 0) &&
                               (!number || write(fd, number, strlen(number)) > 0);
        close(over[1]);
        _exit(write(ready[1], &byte, 1) == 1 && read(over[0], &byte, 1) == 0 && is_locked ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(directory_lock(in_folder(""), &fd, err), ERR_CONFLICT);
    int status;
    for (int i = 0; i < 2; i++)
        close(over[i]), close(ready[i]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return child;
}

static void who_has_it_is_named(void **state)
{
    (void)state;
    struct err err = {0};
    char wanted[64];
    const pid_t other = told(NULL, &err);
    snprintf(wanted, sizeof wanted, "is in use by another skepd (process %ld)", (long)other);
    if (!strstr(err.text, wanted))
        fail_msg("'%s' is not in: %s", wanted, err.text);
    int fd;
    assert_int_equal(directory_lock(in_folder(""), &fd, &err), 0); /* the other one is gone */
    close(fd);
}

/* Whatever stands in the file. */
static void a_long_number_is_cut(void **state)
{
    (void)state;
    struct err err = {0};
    told("77777777777777777777777777777777777777777777777777777777777777777777", &err);
    assert_non_null(strstr(err.text, "(process 7777777777777777777777777777777)"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_has_it_is_named),
    cmocka_unit_test(a_long_number_is_cut),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
