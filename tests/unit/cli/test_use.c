/* What was used over time, as people see it. Covers: src/cli/cmd_use.c */
#include "answers.h"
#include "line.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "cli/use.h"

static int zone_set(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    return 0;
}

static void assert_printed(const char *reply, bool has_blocks, const char *wanted)
{
    json_t *json = json_loads(reply, 0, NULL);
    cleanup_buf struct buf out = BUF_INIT;
    assert_non_null(json);
    use_print(&out, json, has_blocks, false);
    assert_string_equal(buf_cstr(&out), wanted);
    json_decref(json);
}

#define REPLY                                                                                      \
    "{\"beginTime\":1767261600000,\"stepSeconds\":10,\"pointCount\":4,\"taskCount\":3,"            \
    "\"sampledTaskCount\":2,\"given\":{\"cpu\":4,\"memory\":1073741824,\"gpu\":0},\"use\":{"       \
    "\"cpu\":{\"mean\":2,\"most\":4,\"points\":[null,0,2,4]},"                                     \
    "\"memory\":{\"mean\":1536,\"most\":1073741824,\"points\":[1,1,1,1073741824]},"                \
    "\"sent\":{\"mean\":100,\"most\":2048,\"points\":[0,0,0,2048]}}}"

static void test_table(void **state)
{
    (void)state;
    assert_printed(REPLY, false,
                   "2026-01-01 10:00:00 + 40 s, 2 of 3 tasks\n"
                   "USED           GIVEN    MEAN     MOST       OVER TIME\n"
                   "processors     4.00     2.00     4.00       \x20"
                   "059\n"
                   "memory         1.0 GiB  1.5 KiB  1.0 GiB    0009\n"
                   "network, sent  -        100 B/s  2.0 KiB/s  0009\n");
}

/* As many columns as there is room for; each shows the most of its part. */
static void test_picture(void **state)
{
    (void)state;
    cleanup_buf struct buf reply = BUF_INIT, wanted = BUF_INIT;
    buf_string(&reply, "{\"beginTime\":0,\"stepSeconds\":10,\"pointCount\":80,\"given\":{},"
                       "\"use\":{\"cpu\":{\"mean\":1,\"most\":8,\"points\":[");
    for (int i = 0; i < 80; i++)
        buf_format(&reply, "%s%d", i ? "," : "", i % 2 ? 8 : 0);
    buf_string(&reply, "]}}}");
    buf_string(&wanted, "- + 13 m 20 s\nUSED        GIVEN  MEAN  MOST  OVER TIME\n"
                        "processors  -      1.00  8.00  ");
    for (int i = 0; i < 40; i++)
        buf_string(&wanted, "\u2588");
    buf_string(&wanted, "\n");
    assert_printed(buf_cstr(&reply), true, buf_cstr(&wanted));
}

#define UNKNOWN                                                                                    \
    "processors and memory are not known: a Kubernetes cluster tells them of its nodes where it "  \
    "has metrics-server\n"

static void test_nothing(void **state)
{
    (void)state;
    assert_printed("{\"beginTime\":0,\"stepSeconds\":10,\"pointCount\":0,\"use\":{}}", true,
                   "nothing is known yet: what runs is looked at every ten seconds\n" UNKNOWN);
    assert_printed("{\"beginTime\":0,\"stepSeconds\":10,\"pointCount\":0,\"taskCount\":1,"
                   "\"use\":{}}",
                   true, "nothing is known yet: what runs is looked at every ten seconds\n");
}

/* Of a machine: the reply has no count of tasks. */
static void what_a_cluster_does_not_tell_of_its_node_is_named(void **state)
{
    (void)state;
    static const char begin[] =
        "{\"beginTime\":1767261600000,\"stepSeconds\":10,\"pointCount\":1,\"use\":{";
    char reply[256];
    snprintf(reply, sizeof reply, "%s\"gpu\":{\"mean\":1,\"most\":1,\"points\":[1]}}}", begin);
    assert_printed(reply, false,
                   "2026-01-01 10:00:00 + 10 s\nUSED  GIVEN  MEAN  MOST  OVER TIME\n"
                   "GPUs  -      1.00  1.00  9\n" UNKNOWN);
    snprintf(reply, sizeof reply, "%s\"cpu\":{\"mean\":1,\"most\":1,\"points\":[1]}}}", begin);
    assert_printed(reply, false,
                   "2026-01-01 10:00:00 + 10 s\nUSED        GIVEN  MEAN  MOST  OVER TIME\n"
                   "processors  -      1.00  1.00  9\n");
}

static void what_is_asked(void **state)
{
    (void)state;
    static const struct {
        const char *line, *path; /* NULL: refused before anything is asked */
    } cases[] = {
        {"use ann~one", "/api/v2/jobs/ann~one/use?resolution=whole HTTP"},
        {"use ann~one --role w --index 0 --attempt 0 --recent",
         "/api/v2/jobs/ann~one/use?resolution=recent&role=w&index=0&jobAttempt=0 HTTP"},
        {"use --node n", "/use?resolution=whole HTTP"},
        {"use", NULL},
        {"use ann~one --node n", NULL},
        {"use --node n --role w", NULL},
        {"use --node n --index 0", NULL},
        {"use --node n --attempt 0", NULL},
        {"use ann~one --index 0", NULL},
    };
    char printed[200];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct answers answers = {
            .items = {{"200 OK", "{\"beginTime\":0,\"stepSeconds\":10,\"pointCount\":0}"}},
            .count = cases[i].path != NULL};
        const int code = answers_command(&answers, cases[i].line, printed, sizeof printed);
        assert_int_equal(code, cases[i].path ? 0 : EXIT_USAGE);
        if (cases[i].path && !strstr(answers.requests[0], cases[i].path))
            fail_msg("%s: %s", cases[i].line, answers.requests[0]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_asked),
    cmocka_unit_test(test_table),
    cmocka_unit_test(test_picture),
    cmocka_unit_test(test_nothing),
    cmocka_unit_test(what_a_cluster_does_not_tell_of_its_node_is_named),
};
UNIT_FILE(tests, zone_set, NULL);
