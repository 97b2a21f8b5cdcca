/* Jobs that a filter finds: what is asked of the server, and what is printed. */
#include "answers.h"
#include "line.h"
#include "unit.h"

#include "cli/bulk.h"

static int bulk_line(struct cli *cli, const void *call)
{
    assert_true(filter_is_given(cli));
    return bulk_run(cli, call);
}

/* What the command prints, and its exit code. */
static int run(struct answers *answers, const char *line, const struct bulk_call *call,
               char *printed, size_t size)
{
    return answers_run_line(answers, line, bulk_line, call, printed, size);
}

#define FOUND "{\"matched\":2,\"results\":[{\"name\":\"a~1\"},{\"name\":\"a~2\"}]}"

static const struct bulk_call stop = {.action = "stop", .done = "stopping"};

static void what_is_found_is_asked_for_by_name(void **state)
{
    char printed[200];
    struct answers answers = {
        .items = {{"200 OK", FOUND},
                  {"200 OK", "{\"results\":[{\"name\":\"a~1\",\"outcome\":\"done\"},"
                             "{\"name\":\"a~2\",\"outcome\":\"conflict\",\"message\":\"no\"}]}"}},
        .count = 2};
    (void)state;
    assert_int_equal(
        run(&answers, "stop --user a --state RUNNING --keyword x&y --since 1d --until 2020-01-01",
            &stop, printed, sizeof printed),
        EXIT_REFUSED);
    assert_string_equal(printed, "stopping a~1\n");
    assert_non_null(strstr(answers.requests[0],
                           "POST /api/v2/bulk/jobs?limit=1000&username=a&state=RUNNING&"
                           "keyword=x%26y&since="));
    assert_non_null(strstr(answers.requests[0], "&until=15"));
    assert_non_null(strstr(answers.requests[0], "&dryRun=true&offset=0 HTTP"));
    assert_non_null(strstr(answers.requests[1], "POST /api/v2/bulk/jobs HTTP"));
    assert_non_null(
        strstr(answers.requests[1], "{\"action\":\"stop\",\"jobs\":[\"a~1\",\"a~2\"]}"));
}

/* More jobs than the quota lets in at once are done nevertheless, when it does. */
static void it_goes_on_when_it_may(void **state)
{
    char printed[200];
    struct answers answers = {
        .items = {{"429 Too Many Requests\r\nRetry-After: 1", "{\"message\":\"the quota\"}"},
                  {"200 OK", "{\"results\":[{\"name\":\"a~1\"}]}"},
                  {"429 Too Many Requests\r\nRetry-After: 1", "{\"message\":\"the quota\"}"},
                  {"200 OK", "{\"results\":[{\"name\":\"a~1\",\"outcome\":\"done\"}]}"}},
        .count = 4};
    struct answers never = {.items = {{"429 No", "{\"message\":\"no\"}"}}, .count = 1};
    (void)state;
    assert_int_equal(run(&answers, "stop --all", &stop, printed, sizeof printed), 0);
    assert_string_equal(printed, "stopping a~1\n");
    assert_non_null(strstr(answers.requests[3], "{\"action\":\"stop\",\"jobs\":[\"a~1\"]}"));
    assert_int_equal(run(&never, "stop --all", &stop, printed, sizeof printed), EXIT_REFUSED);
}

static void a_dry_run_ends_with_the_names(void **state)
{
    char printed[200];
    struct answers answers = {.items = {{"200 OK", FOUND}}, .count = 1};
    struct answers none = {.items = {{"200 OK", "{\"results\":[]}"}}, .count = 1};
    struct answers refusing = {.items = {{"400 No", "{\"message\":\"no\"}"}}, .count = 1};
    const struct bulk_call tag = {.action = "addTag", .tag = "t", .done = "tagged"};
    (void)state;
    assert_int_equal(run(&answers, "tag --all --dry-run t", &tag, printed, sizeof printed), 0);
    assert_string_equal(printed, "a~1\na~2\n");
    assert_non_null(strstr(answers.requests[0], "{\"action\":\"addTag\",\"tag\":\"t\"}"));
    assert_non_null(strstr(answers.requests[0], "&all=true&dryRun=true&offset=0 HTTP"));
    assert_int_equal(run(&none, "stop --all", &stop, printed, sizeof printed), 0);
    assert_int_equal(run(&refusing, "stop --all", &stop, printed, sizeof printed), EXIT_REFUSED);
}

static void names_or_a_filter(void **state)
{
    struct cli cli;
    (void)state;
    assert_int_equal(parse(&cli, "release --keyword x"), 0);
    assert_int_equal(bulk_choice_check(&cli, 0), 0);
    assert_int_equal(bulk_choice_check(&cli, 1), EXIT_USAGE);
    mem_free(cli.arguments);
    assert_int_equal(parse(&cli, "archive --dry-run folder"), 0);
    assert_int_equal(bulk_choice_check(&cli, 0), EXIT_USAGE);
    assert_int_equal(bulk_choice_check(&cli, 1), EXIT_USAGE);
    mem_free(cli.arguments);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_or_a_filter),
    cmocka_unit_test(what_is_found_is_asked_for_by_name),
    cmocka_unit_test(it_goes_on_when_it_may),
    cmocka_unit_test(a_dry_run_ends_with_the_names),
};
UNIT_FILE(tests, NULL, NULL);
