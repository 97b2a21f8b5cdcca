/* skep logs --search: what is asked, page after page, and how matches are shown. */
#include "answers.h"
#include "line.h"
#include "unit.h"

/* What the command prints, and its exit code. */
static int run(struct answers *answers, const char *line, char *printed, size_t size)
{
    return answers_command(answers, line, printed, size);
}

#define MATCH                                                                                      \
    "{\"type\":\"match\",\"attempt\":%s,\"role\":\"w\",\"index\":3,\"taskAttempt\":0,"             \
    "\"line\":7,\"offset\":52,\"text\":\"loss is NaN\"%s}\n"

static void pages_follow_their_cursor(void **state)
{
    static char first[400], second[400], printed[1000];
    struct answers answers = {.items = {{"200 OK", first}, {"200 OK", second}}, .count = 2};
    (void)state;
    snprintf(first, sizeof first,
             MATCH "{\"type\":\"end\",\"matches\":1,\"bytes\":9,\"cursor\":\"0.0.3.0.64.7\"}\n",
             "0", "");
    snprintf(second, sizeof second,
             MATCH "{\"type\":\"end\",\"matches\":1,\"bytes\":9,\"cursor\":null}\n", "2",
             ",\"before\":[\"a\",\"b\"],\"after\":[\"c\"]");
    assert_int_equal(run(&answers, "logs --search NaN&x -C 2 --role w --ignore-case alice~j",
                         printed, sizeof printed),
                     0);
    assert_string_equal(printed, "w-3:7: loss is NaN\n"
                                 "w-3 2.0-5- a\nw-3 2.0-6- b\nw-3 2.0:7: loss is NaN\n"
                                 "w-3 2.0-8- c\n--\n");
    assert_non_null(strstr(answers.requests[0],
                           "GET /api/v2/jobs/alice~j/logs/search?limit=1000&q=NaN%26x&role=w&"
                           "context=2&ignoreCase=true HTTP"));
    assert_non_null(strstr(answers.requests[1], "&ignoreCase=true&cursor=0.0.3.0.64.7 HTTP"));
}

static void a_log_that_could_not_be_read_is_no_success(void **state)
{
    static char body[800];
    char printed[400];
    struct answers answers = {.items = {{"200 OK", body}}, .count = 1};
    (void)state;
    snprintf(body, sizeof body,
             MATCH "{\"type\":\"unread\",\"attempt\":0,\"role\":\"w\",\"index\":4,"
                   "\"taskAttempt\":0,\"offset\":0,\"message\":\"gone away\"}\n"
                   "{\"type\":\"end\",\"matches\":1,\"unread\":1,\"bytes\":9,\"cursor\":null}\n",
             "0", "");
    assert_int_equal(run(&answers, "logs --search NaN j", printed, sizeof printed), EXIT_REFUSED);
    assert_string_equal(printed, "w-3:7: loss is NaN\n");
}

static void nothing_is_found(void **state)
{
    char printed[100];
    struct answers answers = {
        .items = {{"200 OK", "{\"type\":\"end\",\"matches\":0,\"bytes\":9,\"cursor\":null}\n"}},
        .count = 1};
    struct answers refusing = {.items = {{"400 No", "{\"message\":\"no\"}"}}, .count = 1};
    struct answers broken = {.items = {{"200 OK", "{\"type\":"}}, .count = 1};
    (void)state;
    assert_int_equal(run(&answers, "logs -e ^x+$ j", printed, sizeof printed), EXIT_REFUSED);
    assert_string_equal(printed, "");
    assert_non_null(strstr(answers.requests[0], "&re=%5Ex%2B%24 HTTP"));
    assert_int_equal(run(&refusing, "logs -e ( j", printed, sizeof printed), EXIT_REFUSED);
    assert_int_equal(run(&broken, "logs --search x j", printed, sizeof printed), EXIT_REFUSED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pages_follow_their_cursor),
    cmocka_unit_test(a_log_that_could_not_be_read_is_no_success),
    cmocka_unit_test(nothing_is_found),
};
UNIT_FILE(tests, NULL, NULL);
