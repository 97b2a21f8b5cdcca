/* What commands about jobs ask the server, and what they print.
 *
 * Covers: src/cli/cmd_describe.c, src/cli/cmd_job.c, src/cli/cmd_show.c, src/cli/history.c */
#include "answers.h"
#include "line.h"
#include "unit.h"

#include "folder.h"

enum { PRINTED_MAX = 4000 };

static int run(struct answers *answers, const char *line, char printed[PRINTED_MAX])
{
    return answers_command(answers, line, printed, PRINTED_MAX);
}

static const char detail[] =
    "{\"name\":\"one\",\"tags\":[\"first\",\"second\"],\"jobStatus\":{\"username\":\"ann\","
    "\"state\":\"FAILED\",\"appExitCode\":1},\"taskRoles\":{}}";

static void tags_are_listed(void **state)
{
    (void)state;
    char printed[PRINTED_MAX];
    struct answers answers = {.items = {{"200 OK", detail}}, .count = 1};
    assert_int_equal(run(&answers, "describe ann~one", printed), 0);
    assert_non_null(strstr(printed, "\nTags:            first, second\n"));
}

/* Containers that are kept for debugging: whose, and how they are let go. */
static void held_containers_are_named(void **state)
{
    (void)state;
    static const char kept[] =
        "{\"name\":\"one\",\"jobStatus\":{\"username\":\"ann\",\"state\":\"FAILED\","
        "\"held\":{\"containers\":7,\"until\":1700000000000,\"tasks\":["
        "{\"taskRoleName\":\"w\",\"taskIndex\":0},{\"taskRoleName\":\"w\",\"taskIndex\":1},"
        "{\"taskRoleName\":\"w\",\"taskIndex\":2},{\"taskRoleName\":\"w\",\"taskIndex\":3},"
        "{\"taskRoleName\":\"w\",\"taskIndex\":4},{\"taskRoleName\":\"w\",\"taskIndex\":5}]}},"
        "\"taskRoles\":{}}";
    char printed[PRINTED_MAX];
    struct answers answers = {.items = {{"200 OK", kept}}, .count = 1};
    assert_int_equal(run(&answers, "describe ann~one", printed), 0);
    assert_non_null(strstr(printed, "\nHeld:            7 containers, for debugging: "
                                    "w-0, w-1, w-2, w-3, w-4 and 2 more\nHeld until:      "));
    assert_non_null(strstr(printed, "\nLet go by:       skep release ann~one\n"));
    struct answers none = {.items = {{"200 OK", detail}}, .count = 1};
    assert_int_equal(run(&none, "describe ann~one", printed), 0);
    assert_null(strstr(printed, "Held:"));
}

static void last_lines_stand_behind_the_attempts(void **state)
{
    (void)state;
    char printed[PRINTED_MAX];
    struct answers answers = {
        .items = {{"200 OK", detail},
                  {"200 OK", "[{\"attemptIndex\":0,\"state\":\"FAILED\",\"exitCode\":1}]"},
                  {"200 OK", "{\"taskRoles\":{\"w\":{\"taskStatuses\":[{\"taskIndex\":2,"
                             "\"taskRoleName\":\"w\",\"containerExitCode\":1}]}}}"},
                  {"200 OK", "{\"attempts\":[{\"attemptId\":0,\"containerExitCode\":1,"
                             "\"containerLogTail\":\"loading\\nout of memory\\n\"}]}"}},
        .count = 4};
    assert_int_equal(run(&answers, "describe --attempts ann~one", printed), 0);
    const char *end = strstr(printed, "\nw-2, attempt 0.0:\n");
    assert_non_null(end);
    assert_string_equal(end, "\nw-2, attempt 0.0:\n"
                             "  last lines:\n    loading\n    out of memory\n");
    assert_non_null(
        strstr(answers.requests[3], "/ann~one/attempts/0/taskRoles/w/taskIndex/2/attempts HTTP"));
}

static void a_list_asks_for_what_was_given(void **state)
{
    (void)state;
    static const char none[] = "{\"data\":[],\"totalCount\":0}";
    char printed[PRINTED_MAX];
    struct answers plain = {.items = {{"200 OK", none}}, .count = 1}, all = plain;
    struct answers first = plain, none_asked = {.count = 0};
    assert_int_equal(run(&first, "list --limit 1", printed), 0);
    assert_non_null(strstr(first.requests[0], "&limit=1&offset=0 HTTP"));
    assert_int_equal(run(&none_asked, "list --limit 0", printed), EXIT_USAGE);
    assert_int_equal(run(&none_asked, "list --limit 50001", printed), EXIT_USAGE);
    assert_int_equal(run(&plain, "list", printed), 0);
    assert_non_null(
        strstr(plain.requests[0], "GET /api/v2/jobs?withTotalCount=true&limit=20&offset=0 HTTP"));
    assert_int_equal(run(&all, "list --order state,ASC --limit 50000 --offset 7", printed), 0);
    assert_non_null(strstr(all.requests[0], "?withTotalCount=true&limit=50000&offset=7&"
                                            "order=state%2CASC HTTP"));
}

static void a_log_is_that_of_the_task(void **state)
{
    (void)state;
    char printed[PRINTED_MAX];
    struct answers answers = {.items = {{"200 OK", "a line\n"}}, .count = 1};
    assert_int_equal(
        run(&answers, "logs --role w --index 1 --stream stderr --tail 5 ann~one", printed), 0);
    assert_string_equal(printed, "a line\n");
    assert_non_null(
        strstr(answers.requests[0],
               "GET /api/v2/jobs/ann~one/logs?stream=stderr&role=w&index=1&tail-lines=5 HTTP"));
}

/* What was printed before the connection broke is not asked for again. */
static void a_cut_log_goes_on_where_it_was(void **state)
{
    (void)state;
    char printed[PRINTED_MAX];
    struct answers answers = {
        .items = {{"200 OK\r\nTransfer-Encoding: chunked\r\nX-Skep-After: 3\r\nX-Skep-Offset: 100",
                   "7\r\na line\n\r\n"},
                  {"200 OK", "ready"},
                  {"200 OK", "another\n"}},
        .count = 3};
    assert_int_equal(run(&answers, "logs --follow ann~one", printed), 0);
    assert_string_equal(printed, "a line\nanother\n");
    assert_non_null(strstr(answers.requests[0], "/logs?stream=all&follow=true HTTP"));
    assert_non_null(strstr(answers.requests[1], "GET /readyz HTTP"));
    assert_non_null(
        strstr(answers.requests[2], "/logs?stream=all&follow=true&after=3&offset=107 HTTP"));
}

/* A submission prints one line, or the answer where that was asked for. */
static void a_submission_prints_the_name(void **state)
{
    (void)state;
    static const struct {
        const char *options, *wanted;
        int count;
    } cases[] = {
        {"", "submitted ann~one\n", 1},
        {"-q", "ann~one\n", 1},
        {"-o json", "{\n  \"name\": \"ann~one\"\n}\n", 1},
        {"-o json -q", "{\n  \"name\": \"ann~one\"\n}\n", 1},
        {"-o yaml", "name: ann~one\n", 1},
        {"-o json --wait", "submitted ann~one\n", 2},
    };
    char printed[PRINTED_MAX], line[300];
    folder_put("job.yaml", "name: one\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answers answers = {.items = {{"202 Accepted", "{\"name\":\"ann~one\"}"},
                                            {"403 No", "{\"message\":\"not yours\"}"}},
                                  .count = cases[i].count};
        snprintf(line, sizeof line, "submit %s %s", cases[i].options, in_folder("job.yaml"));
        assert_int_equal(run(&answers, line, printed) == 0, cases[i].count == 1);
        assert_string_equal(printed, cases[i].wanted);
    }
    struct answers refusing = {.items = {{"403 No", "{\"message\":\"no\"}"}}, .count = 1};
    snprintf(line, sizeof line, "submit -o json %s", in_folder("job.yaml"));
    assert_int_equal(run(&refusing, line, printed), EXIT_NOT_ALLOWED);
    assert_string_equal(printed, "");
}

/* A dry run is of a filter; names need none. */
static void names_are_stopped_without_a_filter(void **state)
{
    (void)state;
    char printed[PRINTED_MAX];
    struct answers none = {.count = 0};
    struct answers one = {.items = {{"202 Accepted", "{}"}}, .count = 1};
    assert_int_equal(run(&none, "stop --dry-run ann~one", printed), EXIT_USAGE);
    assert_int_equal(run(&none, "stop", printed), EXIT_USAGE);
    assert_int_equal(run(&none, "stop --user ann ann~one", printed), EXIT_USAGE);
    assert_int_equal(run(&one, "stop ann~one", printed), 0);
    assert_string_equal(printed, "stopping ann~one\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tags_are_listed),
    cmocka_unit_test(held_containers_are_named),
    cmocka_unit_test(last_lines_stand_behind_the_attempts),
    cmocka_unit_test(a_list_asks_for_what_was_given),
    cmocka_unit_test(a_log_is_that_of_the_task),
    cmocka_unit_test(a_cut_log_goes_on_where_it_was),
    cmocka_unit_test_setup_teardown(a_submission_prints_the_name, folder_setup, folder_teardown),
    cmocka_unit_test(names_are_stopped_without_a_filter),
};
UNIT_FILE(tests, NULL, NULL);
