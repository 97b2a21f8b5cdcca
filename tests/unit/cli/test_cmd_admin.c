/* What a server says of its configuration, as `skep admin settings` shows it.
 *
 * Covers: src/cli/cmd_admin.c */
#include "answers.h"
#include "line.h"
#include "unit.h"

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
    cmocka_unit_test(who_may_not_is_told),
};
UNIT_FILE(tests, NULL, NULL);
