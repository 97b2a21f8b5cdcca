/* Lines of the log as JSON and as text. */
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "sys/log.h"

static void log_writes_json_or_text(void **state)
{
    char line[LOG_LINE_MAX + 200];
    int pipes[2];
    ssize_t size;
    (void)state;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    log_to(pipes[1]);
    log_setup(LOG_INFO, LOG_AUTO);
    log_debug("core", "not shown");
    log_warning("core", "job %s: \"%s\"", "a~b", "x\ny");
    size = read(pipes[0], line, sizeof line - 1);
    assert_true(size > 0);
    line[size] = '\0';
    assert_non_null(strstr(line, "\"level\":\"warning\",\"part\":\"core\""));
    assert_non_null(strstr(line, "\"text\":\"job a~b: \\\"x\\ny\\\"\"}\n"));
    log_setup(LOG_DEBUG, LOG_TEXT);
    log_debug("core", "an\x1b[31m escape");
    size = read(pipes[0], line, sizeof line - 1);
    line[size] = '\0';
    assert_non_null(strstr(line, " debug   core: an [31m escape\n"));
    /* one character of two bytes that terminals take for ESC [, and one that they do not */
    log_debug("core", "an\xc2\x9b escape, a \xc2\xa9");
    size = read(pipes[0], line, sizeof line - 1);
    line[size] = '\0';
    assert_non_null(strstr(line, " debug   core: an  escape, a \xc2\xa9\n"));
    log_to(2);
    log_setup(LOG_INFO, LOG_AUTO);
    close(pipes[0]);
    close(pipes[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(log_writes_json_or_text),
};
UNIT_FILE(tests, NULL, NULL);
