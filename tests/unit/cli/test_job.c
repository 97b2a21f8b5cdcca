/* What the commands on one job share: its path, and the exit code of its end. */
#include "unit.h"

#include <stdlib.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/job.h"
#include "folder.h"

static int exit_code_of(const char *status)
{
    struct buf text = BUF_INIT;
    buf_format(&text, "{\"jobStatus\":{%s}}", status);
    json_t *detail = json_loads(buf_cstr(&text), 0, NULL);
    assert_non_null(detail);
    int code = job_exit_code(detail);
    json_decref(detail);
    buf_release(&text);
    return code;
}

static void test_exit_codes(void **state)
{
    (void)state;
    assert_int_equal(exit_code_of("\"state\":\"SUCCEEDED\",\"appExitCode\":0"), 0);
    assert_int_equal(exit_code_of("\"state\":\"FAILED\",\"appExitCode\":7"), 7);
    assert_int_equal(exit_code_of("\"state\":\"FAILED\",\"appExitCode\":255"), 255);
    assert_int_equal(
        exit_code_of("\"state\":\"FAILED\",\"appExitCode\":220,\"appOriginalExitCode\":127"), 127);
    assert_int_equal(
        exit_code_of("\"state\":\"FAILED\",\"appExitCode\":-1003,\"appOriginalExitCode\":137"),
        EXIT_PLATFORM);
    assert_int_equal(exit_code_of("\"state\":\"FAILED\",\"appExitCode\":256"), EXIT_PLATFORM);
    assert_int_equal(exit_code_of("\"state\":\"FAILED\",\"appExitCode\":-1001"), EXIT_PLATFORM);
    assert_int_equal(exit_code_of("\"state\":\"STOPPED\",\"appExitCode\":-210"), EXIT_STOPPED);
    assert_int_equal(exit_code_of("\"state\":\"FAILED\",\"appExitCode\":null"), EXIT_PLATFORM);
}

static void test_paths(void **state)
{
    (void)state;
    struct buf path = BUF_INIT;
    job_path(&path, "alice~a b/../c", "/config");
    assert_string_equal(buf_cstr(&path), "/api/v2/jobs/alice~a%20b%2F..%2Fc/config");
    buf_release(&path);
}

/* A file is read whole or not at all: nothing of it may be missing on the server. */
static void the_largest_file_is_read_whole(void **state)
{
    enum { LARGEST = 4 << 20 };
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        cleanup_buf struct buf text = BUF_INIT, content = BUF_INIT;
        for (size_t i = 0; i < LARGEST + more; i++)
            buf_char(&text, (char)('a' + i % 26));
        folder_put("job.yaml", buf_cstr(&text));
        assert_int_equal(file_content(in_folder("job.yaml"), &content), more ? EXIT_USAGE : 0);
        if (!more)
            assert_string_equal(buf_cstr(&content), buf_cstr(&text));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_largest_file_is_read_whole, folder_setup, folder_teardown),
    cmocka_unit_test(test_exit_codes),
    cmocka_unit_test(test_paths),
};
UNIT_FILE(tests, NULL, NULL);
