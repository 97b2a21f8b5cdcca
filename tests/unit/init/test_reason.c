/* Why a task is ended, written by a second skep-init. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"

static int told(const char *word, const char *grace)
{
    char command[800];
    snprintf(command, sizeof command, "%s reason '%s' '%s' '%s'", SKEP_INIT, in_folder(""), word,
             grace);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void read_back(char text[200])
{
    FILE *file = fopen(in_folder("run/reason"), "r");
    assert_non_null(file);
    text[fread(text, 1, 199, file)] = '\0';
    fclose(file);
}

static void the_file_is_as_the_engines_own(void **state)
{
    char text[200];
    (void)state;
    folder_put("run/other", "");
    assert_int_equal(told("preempted", "30000"), 0);
    read_back(text);
    assert_string_equal(text, "reason preempted\ngrace_ms 30000\n");
    assert_int_equal(told("stopped", "10000"), 0);
    read_back(text);
    assert_string_equal(text, "reason stopped\ngrace_ms 10000\n");
    assert_int_equal(told("time limit", "10000"), 0);
    read_back(text);
    assert_string_equal(text, "reason time limit\ngrace_ms 10000\n");
    assert_int_not_equal(access(in_folder("run/reason.new"), F_OK), 0);
}

static void what_is_no_reason_is_not_written(void **state)
{
    (void)state;
    assert_int_equal(told("stopped", "10000"), 1); /* there is no folder */
    folder_put("run/other", "");
    assert_int_equal(told("", "1"), 1);
    assert_int_equal(told("two\nlines", "1"), 1);
    assert_int_equal(
        told("a-word-that-has-more-letters-than-the-file-of-the-reason-has-room-for-it", "1"), 1);
    assert_int_equal(told("stopped", "soon"), 1);
    assert_int_equal(told("stopped", "-1"), 1);
    assert_int_equal(told("stopped", "99999999999"), 1);
    assert_int_equal(WEXITSTATUS(system(SKEP_INIT " reason /nowhere stopped")), 1);
    assert_int_not_equal(access(in_folder("run/reason"), F_OK), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_file_is_as_the_engines_own, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(what_is_no_reason_is_not_written, folder_setup,
                                    folder_teardown),
};
UNIT_FILE(tests, NULL, NULL);
