/* A submission whose answer is lost is sent again, and is the same one; and who waits for a job
 * bears it that there is no place to follow it.
 *
 * Covers: src/cli/job.c, src/cli/client.c */
#include "answers.h"
#include "unit.h"

#include <string.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/job.h"

enum { KEY_MAX = 64 };

static int submit_with(struct answers *answers, const char *secrets_of, struct buf *name)
{
    answers_start(answers);
    struct client *client = client_new(answers->url, NULL, NULL);
    int code = job_submit(client,
                          &(struct job_submission){.file = "job.yaml",
                                                   .content = TEXT("the job file"),
                                                   .secrets_of = secrets_of},
                          name);
    client_free(client);
    answers_join(answers);
    return code;
}

static int submit_to(struct answers *answers, struct buf *name)
{
    return submit_with(answers, NULL, name);
}

static void key_of(const struct answers *answers, int request, char key[KEY_MAX])
{
    answers_header(answers, request, "Idempotency-Key", key, KEY_MAX);
}

static void a_cut_submission_is_sent_again_with_its_key(void **state)
{
    struct answers answers = {
        .items = {{NULL, NULL}, {NULL, NULL}, {"202 Accepted", "{\"name\":\"alice~one\"}"}},
        .count = 3};
    char first[KEY_MAX], key[KEY_MAX];
    cleanup_buf struct buf name = BUF_INIT;
    (void)state;
    assert_int_equal(submit_to(&answers, &name), 0);
    assert_string_equal(buf_cstr(&name), "alice~one");
    key_of(&answers, 0, first);
    assert_int_equal(strlen(first), 32);
    for (int i = 1; i < 3; i++) {
        key_of(&answers, i, key);
        assert_string_equal(key, first);
    }
}

static void another_submission_has_another_key(void **state)
{
    struct answers one = {.items = {{"202 Accepted", "{\"name\":\"alice~one\"}"}}, .count = 1};
    struct answers refusing = {.items = {{"503 No", "{\"message\":\"no\"}"}}, .count = 1};
    char first[KEY_MAX], second[KEY_MAX];
    cleanup_buf struct buf name = BUF_INIT;
    (void)state;
    assert_int_equal(submit_to(&one, &name), 0);
    /* what is answered is not sent again */
    assert_int_equal(submit_to(&refusing, &name), EXIT_REFUSED);
    key_of(&one, 0, first);
    key_of(&refusing, 0, second);
    assert_string_not_equal(first, second);
}

static bool is_asked(const struct answers *answers, int request, const char *what)
{
    return strncmp(answers->requests[request], what, strlen(what)) == 0;
}

static void the_job_that_has_the_secrets_is_named(void **state)
{
    struct answers answers = {.items = {{"202 Accepted", "{\"name\":\"alice~one\"}"}}, .count = 1};
    cleanup_buf struct buf name = BUF_INIT;
    (void)state;
    assert_int_equal(submit_with(&answers, "alice~a b", &name), 0);
    assert_true(is_asked(&answers, 0, "POST /api/v2/jobs?secretsOf=alice~a%20b HTTP"));
}

static void a_clone_is_the_file_with_its_secrets_and_another_name(void **state)
{
    struct answers answers = {.items = {{"200 OK", "name: one # kept\nsecrets: \"******\"\n"},
                                        {"202 Accepted", "{\"name\":\"alice~one_2\"}"}},
                              .count = 2};
    char printed[200];
    (void)state;
    assert_int_equal(answers_command(&answers, "clone alice~one", printed, sizeof printed), 0);
    assert_string_equal(printed, "submitted alice~one_2\n");
    assert_true(is_asked(&answers, 0, "GET /api/v2/jobs/alice~one/config HTTP"));
    assert_true(is_asked(&answers, 1, "POST /api/v2/jobs?secretsOf=alice~one HTTP"));
    assert_non_null(strstr(answers.requests[1], "name: \"one_2\" # kept\nsecrets: \"******\"\n"));
}

static void a_job_whose_file_is_not_shown_is_not_cloned(void **state)
{
    struct answers refused = {.items = {{"403 Forbidden", "{\"message\":\"no\"}"}}, .count = 1};
    struct answers nameless = {.items = {{"200 OK", "x: 1\n"}}, .count = 1};
    char printed[200];
    (void)state;
    assert_int_equal(answers_command(&refused, "clone bob~one", printed, sizeof printed),
                     EXIT_NOT_ALLOWED);
    assert_int_equal(answers_command(&nameless, "clone one", printed, sizeof printed),
                     EXIT_REFUSED);
}

static int wait_for(struct answers *answers)
{
    answers_start(answers);
    struct client *client = client_new(answers->url, NULL, NULL);
    const int code =
        job_wait(client, "one", &(struct wait_options){.is_quiet = true, .timeout_s = 60});
    client_free(client);
    answers_join(answers);
    return code;
}

/* No place to follow the job is no reason to give it up; a quota that is used up is. */
static void who_waits_bears_that_others_follow(void **state)
{
    static const char RUNS[] = "{\"jobStatus\":{\"state\":\"RUNNING\",\"subState\":\"Running\"}}";
    static const char ENDED[] =
        "{\"jobStatus\":{\"state\":\"SUCCEEDED\",\"subState\":\"Completed\"}}";
    struct answers busy = {.items = {{"200 OK", RUNS},
                                     {"429 No", "{\"code\":\"BusyError\",\"message\":\"no\"}"},
                                     {"200 OK", ENDED}},
                           .count = 3};
    struct answers quota = {
        .items = {{"200 OK", RUNS},
                  {"429 No", "{\"code\":\"QuotaExceededError\",\"message\":\"no\"}"}},
        .count = 2};
    (void)state;
    assert_int_equal(wait_for(&quota), EXIT_SKEP);
    assert_int_equal(wait_for(&busy), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_waits_bears_that_others_follow),
    cmocka_unit_test(the_job_that_has_the_secrets_is_named),
    cmocka_unit_test(a_clone_is_the_file_with_its_secrets_and_another_name),
    cmocka_unit_test(a_job_whose_file_is_not_shown_is_not_cloned),
    cmocka_unit_test(a_cut_submission_is_sent_again_with_its_key),
    cmocka_unit_test(another_submission_has_another_key),
};
UNIT_FILE(tests, NULL, NULL);
