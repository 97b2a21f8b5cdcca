/* What was asked of administrators, as `skep request` shows and sends it.
 *
 * Covers: src/cli/cmd_request.c */
#include "answers.h"
#include "line.h"
#include "unit.h"

enum { PRINTED_MAX = 2000 };

static const char requests[] =
    "{\"totalCount\":3,\"data\":["
    "{\"id\":\"a1\",\"kind\":\"virtualCluster\",\"status\":\"open\",\"username\":\"alice\","
    "\"virtualCluster\":\"vc1\",\"reason\":\"a course\",\"askedTime\":0},"
    "{\"id\":\"a2\",\"kind\":\"virtualCluster\",\"status\":\"accepted\",\"username\":\"bob\","
    "\"virtualCluster\":\"vc1\",\"askedTime\":0,\"decidedBy\":\"root\",\"answer\":\"for a month\","
    "\"group\":\"lab\"},"
    "{\"id\":\"a3\",\"kind\":\"account\",\"status\":\"open\",\"username\":\"carol\","
    "\"email\":\"c@d\",\"address\":\"10.0.0.7\",\"nameTaken\":true,\"askedTime\":0}],"
    "\"cursor\":null}";

static void shows(const char *line, const char *path, const char *wanted)
{
    struct answers answers = {.items = {{"200 OK", requests}}, .count = 1};
    char printed[PRINTED_MAX];
    assert_int_equal(answers_command(&answers, line, printed, sizeof printed), 0);
    assert_string_equal(printed, wanted);
    if (!strstr(answers.requests[0], path))
        fail_msg("%s", answers.requests[0]);
}

static void requests_are_shown(void **state)
{
    (void)state;
    shows(
        "request list --status open --user alice",
        "GET /api/v2/requests?limit=1000&cursor=&status=open&username=alice HTTP",
        "REQUEST  USER   FOR                          STATE                   ASKED  REASON    "
        "ANSWER\n"
        "a1       alice  virtual cluster vc1          open                    -      a course  -\n"
        "a2       bob    virtual cluster vc1          accepted by root (lab)  -      -         "
        "for a month\n"
        "a3       carol  account (the name is taken)  open                    -      -         "
        "-\n");
}

static void sends(const char *line, const char *path, const char *body, const char *wanted)
{
    struct answers answers = {.items = {{"200 OK", "{\"id\":\"a1\"}"}}, .count = 1};
    char printed[PRINTED_MAX];
    assert_int_equal(answers_command(&answers, line, printed, sizeof printed), 0);
    assert_string_equal(printed, wanted);
    if (!strstr(answers.requests[0], path) || !strstr(answers.requests[0], body))
        fail_msg("%s", answers.requests[0]);
}

static void what_is_asked_and_decided_is_sent(void **state)
{
    (void)state;
    sends("request ask --reason why vc1", "POST /api/v2/requests HTTP",
          "{\"virtualCluster\":\"vc1\",\"reason\":\"why\"}",
          "asked for the virtual cluster vc1: request a1\n");
    sends("request withdraw a1", "PUT /api/v2/requests/a1/status HTTP",
          "{\"status\":\"withdrawn\"}", "withdrew a1\n");
    sends("request accept --group lab a1", "PUT /api/v2/requests/a1/status HTTP",
          "{\"status\":\"accepted\",\"group\":\"lab\"}", "accepted a1\n");
    sends("request accept --reuse-name a1", "PUT /api/v2/requests/a1/status HTTP",
          "{\"status\":\"accepted\",\"reuseName\":true}", "accepted a1\n");
    sends("request refuse --reason full a1", "PUT /api/v2/requests/a1/status HTTP",
          "{\"status\":\"refused\",\"reason\":\"full\"}", "refused a1\n");
}

static void one_failure_keeps_no_other_out(void **state)
{
    struct answers answers = {
        .items = {{"409 Conflict", "{\"message\":\"it was refused\"}"}, {"200 OK", "{}"}},
        .count = 2};
    char printed[PRINTED_MAX];
    (void)state;
    assert_int_equal(answers_command(&answers, "request accept a1 a2", printed, sizeof printed),
                     EXIT_REFUSED);
    assert_string_equal(printed, "accepted a2\n");
}

static void what_does_not_go_together_is_refused(void **state)
{
    static const char *const lines[] = {
        "request refuse a1",
        "request list --reason x",
        "request ask --group g vc1",
        "request account carol",
        "request withdraw --user u a",
        "request accept --email m a1",
        "request refuse --reason x --reuse-name a1",
        "request list vc1",
        "request ask",
        "request lose a1",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct cli cli;
        assert_int_equal(parse(&cli, lines[i]), 0);
        if (run_request(&cli) != EXIT_USAGE)
            fail_msg("%s", lines[i]);
        client_free(cli.client);
        mem_free(cli.arguments);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(requests_are_shown),
    cmocka_unit_test(what_is_asked_and_decided_is_sent),
    cmocka_unit_test(one_failure_keeps_no_other_out),
    cmocka_unit_test(what_does_not_go_together_is_refused),
};
UNIT_FILE(tests, NULL, NULL);
