/* A submission whose answer is lost is sent again, and is the same one.
 *
 * Covers: src/cli/job.c, src/cli/client.c */
#include "answers.h"
#include "unit.h"

#include "base/memory.h"
#include "cli/command.h"
#include "cli/job.h"

enum { KEY_MAX = 64 };

static int submit_to(struct answers *answers, struct buf *name)
{
    answers_start(answers);
    struct client *client = client_new(answers->url, NULL, NULL);
    int code = job_submit(client, "job.yaml", TEXT("the job file"), name);
    client_free(client);
    answers_join(answers);
    return code;
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_cut_submission_is_sent_again_with_its_key),
    cmocka_unit_test(another_submission_has_another_key),
};
UNIT_FILE(tests, NULL, NULL);
