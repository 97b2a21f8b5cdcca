/* What a server says of its configuration, as `skep admin settings` shows it.
 *
 * Covers: src/cli/cmd_admin.c */
#include "answers.h"
#include "line.h"
#include "unit.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PRINTED_MAX = 2000 };

static const char settings[] =
    "{\"file\":\"/etc/skep/skepd.yaml\",\"needRestart\":[\"api.socket\"],\"settings\":["
    "{\"key\":\"adminName\",\"source\":\"default\",\"help\":\"Its name.\",\"value\":\"admin\"},"
    "{\"key\":\"api.requestsMax\",\"source\":\"file\",\"line\":3,\"help\":\"So "
    "many.\",\"value\":50},"
    "{\"key\":\"api.listen\",\"source\":\"command line\",\"help\":\"Where.\",\"value\":\"h:1\"},"
    "{\"key\":\"api.origins\",\"source\":\"default\",\"help\":\"Whose.\",\"value\":[\"a\",\"b\"]},"
    "{\"key\":\"api.threads\",\"source\":\"default\",\"help\":\"How many.\",\"value\":null}]}";

static void shows(const char *line, const char *wanted)
{
    struct answers answers = {.items = {{"200 OK", settings}}, .count = 1};
    char printed[PRINTED_MAX];
    assert_int_equal(answers_command(&answers, line, printed, sizeof printed), 0);
    assert_string_equal(printed, wanted);
    assert_non_null(strstr(answers.requests[0], "GET /api/v2/settings HTTP"));
}

static void settings_are_shown_with_their_sources(void **state)
{
    (void)state;
    shows("admin settings", "KEY              VALUE      FROM\n"
                            "adminName        admin      default\n"
                            "api.requestsMax  50         skepd.yaml:3\n"
                            "api.listen       h:1        command line\n"
                            "api.origins      [\"a\",\"b\"]  default\n"
                            "api.threads      -          default\n"
                            "api.socket: changed in the file, takes effect only after a restart\n");
    shows("admin settings -o wide",
          "KEY              VALUE      FROM          MEANING\n"
          "adminName        admin      default       Its name.\n"
          "api.requestsMax  50         skepd.yaml:3  So many.\n"
          "api.listen       h:1        command line  Where.\n"
          "api.origins      [\"a\",\"b\"]  default       Whose.\n"
          "api.threads      -          default       How many.\n"
          "api.socket: changed in the file, takes effect only after a restart\n");
}

static void storages_are_shown_with_what_is_wrong(void **state)
{
    static const char STORAGES[] =
        "{\"storages\":["
        "{\"name\":\"home\",\"directory\":\"/srv/home\",\"claim\":\"\",\"jobs\":2,\"health\":{"
        "\"state\":\"well\",\"message\":\"\",\"totalBytes\":1073741824,\"freeBytes\":536870912}},"
        "{\"name\":\"old\",\"directory\":\"/srv/old\",\"claim\":\"\",\"jobs\":0,\"health\":{"
        "\"state\":\"absent\",\"message\":\"/srv/old cannot be opened: none\"}},"
        "{\"name\":\"pods\",\"directory\":\"\",\"claim\":\"data\",\"jobs\":0,\"health\":{"
        "\"state\":\"elsewhere\",\"message\":\"\"}}],"
        "\"jobsRead\":500,\"jobsNotRead\":7}";
    struct answers answers = {.items = {{"200 OK", STORAGES}}, .count = 1};
    char printed[PRINTED_MAX];
    (void)state;
    assert_int_equal(answers_command(&answers, "admin storages", printed, sizeof printed), 0);
    assert_string_equal(printed, "STORAGE  STATE      FREE     SIZE     JOBS  WHERE\n"
                                 "home     well       0.5 GiB  1.0 GiB  2     /srv/home\n"
                                 "old      absent     -        -        0     /srv/old\n"
                                 "pods     elsewhere  -        -        0     claim data\n"
                                 "old: /srv/old cannot be opened: none\n"
                                 "JOBS counts the newest 500 that run; 7 more do\n");
    assert_non_null(strstr(answers.requests[0], "GET /api/v2/storage/health HTTP"));
}

static void the_log_is_shown_as_lines(void **state)
{
    static const char LINES[] =
        "{\"lines\":[{\"number\":5,\"time\":1700000000000,\"level\":\"warning\",\"part\":\"store\","
        "\"text\":\"slow\\u001b[31m\"}],\"next\":5,\"missed\":false,\"complete\":true}";
    struct answers answers = {.items = {{"200 OK", LINES}}, .count = 1};
    char printed[PRINTED_MAX];
    (void)state;
    assert_int_equal(
        answers_command(&answers, "admin log --level info -n 7", printed, sizeof printed), 0);
    assert_non_null(strstr(printed, " warning store: slow"));
    assert_null(strchr(printed, '\033'));
    assert_non_null(strstr(answers.requests[0], "GET /api/v2/log?level=info&limit=7 HTTP"));
}

static void what_the_log_cannot_be_asked_is_told(void **state)
{
    struct answers answers = {.count = 0};
    char printed[PRINTED_MAX];
    (void)state;
    assert_int_equal(answers_command(&answers, "admin log --level loud", printed, sizeof printed),
                     2);
    assert_int_equal(answers_command(&answers, "admin log -n 2001", printed, sizeof printed), 2);
}

/* What a command line says is wrong with it. */
static void refuses(const char *line, const char *wanted)
{
    struct answers answers = {.count = 0};
    char printed[PRINTED_MAX], told[PRINTED_MAX] = "";
    const int to = memfd_create("told", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
    assert_true(to >= 0 && saved >= 0);
    dup2(to, STDERR_FILENO);
    const int code = answers_command(&answers, line, printed, sizeof printed);
    dup2(saved, STDERR_FILENO);
    assert_true(pread(to, told, sizeof told - 1, 0) >= 0);
    close(to);
    close(saved);
    assert_int_equal(code, 2);
    assert_string_equal(told, wanted);
}

/* Whoever looks for a backup here is told what to type. */
static void a_backup_is_the_servers_own(void **state)
{
    static const char HEAD[] = "skep: admin backup: a backup is made by the server's own program, "
                               "on its machine and as its user: skepd --backup ";
    char wanted[PRINTED_MAX];
    (void)state;
    snprintf(wanted, sizeof wanted, "%sFILE\n", HEAD);
    refuses("admin backup", wanted);
    snprintf(wanted, sizeof wanted, "%s/b/skep.db\n", HEAD);
    refuses("admin backup /b/skep.db", wanted);
    refuses("admin settings now", "skep: admin: too much: 'now'; see: skep help admin\n");
}

static void who_may_not_is_told(void **state)
{
    (void)state;
    struct answers answers = {
        .items = {{"403 Forbidden", "{\"code\":\"ForbiddenUserError\",\"message\":\"not you\"}"}},
        .count = 1};
    char printed[PRINTED_MAX];
    assert_int_not_equal(answers_command(&answers, "admin settings", printed, sizeof printed), 0);
    assert_string_equal(printed, "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(settings_are_shown_with_their_sources),
    cmocka_unit_test(storages_are_shown_with_what_is_wrong),
    cmocka_unit_test(the_log_is_shown_as_lines),
    cmocka_unit_test(what_the_log_cannot_be_asked_is_told),
    cmocka_unit_test(a_backup_is_the_servers_own),
    cmocka_unit_test(who_may_not_is_told),
};
UNIT_FILE(tests, NULL, NULL);
