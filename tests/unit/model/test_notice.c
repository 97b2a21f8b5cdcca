/* Which change of a job gives which message. */
#include "unit.h"

#include "base/buf.h"
#include "base/memory.h"
#include "model/notice.h"

enum {
    RUNNING = NOTICE_BIT(NOTICE_RUNNING),
    SUCCEEDED = NOTICE_BIT(NOTICE_SUCCEEDED),
    STOPPED = NOTICE_BIT(NOTICE_STOPPED),
    FAILED = NOTICE_BIT(NOTICE_FAILED),
    RETRIED = NOTICE_BIT(NOTICE_RETRIED),
};

static void the_table_of_changes(void **state)
{
    static const struct {
        struct notice_row before, now;
        unsigned changes;
    } cases[] = {
        /* nothing that somebody is told of */
        {{0, LIFE_CREATION_PENDING, 0, 0}, {0, LIFE_PREPARING, 0, 0}, 0},
        {{0, LIFE_RUNNING, 0, 5}, {0, LIFE_DELETING, 1, 5}, 0},
        {{0, LIFE_RUNNING, 0, 5}, {0, LIFE_ATTEMPT_COMPLETED, 1, 5}, 0},
        {{0, LIFE_COMPLETED, 1, 5}, {0, LIFE_COMPLETED, 1, 5}, 0},
        /* it runs, once in its life */
        {{0, LIFE_PREPARING, 0, 0}, {0, LIFE_RUNNING, 0, 5}, RUNNING},
        {{1, LIFE_PREPARING, 1, 5}, {1, LIFE_RUNNING, 1, 5}, 0},
        /* it is tried again */
        {{0, LIFE_ATTEMPT_COMPLETED, 1, 5}, {1, LIFE_CREATION_PENDING, 1, 5}, RETRIED},
        {{0, LIFE_PREPARING, 0, 0}, {1, LIFE_CREATION_PENDING, -1, 0}, RETRIED},
        /* it ends */
        {{0, LIFE_RUNNING, 0, 5}, {0, LIFE_COMPLETED, 0, 5}, SUCCEEDED},
        {{0, LIFE_RUNNING, 0, 5}, {0, LIFE_COMPLETED, 1, 5}, FAILED},
        {{0, LIFE_RUNNING, 0, 5}, {0, LIFE_COMPLETED, CODE_STOP_REQUESTED, 5}, STOPPED},
        {{0, LIFE_CREATION_PENDING, 0, 0}, {0, LIFE_COMPLETED, CODE_STOP_REQUESTED, 0}, STOPPED},
        /* all of it between two looks */
        {{0, LIFE_PREPARING, 0, 0}, {0, LIFE_COMPLETED, 0, 5}, RUNNING | SUCCEEDED},
        /* a stopped job begins a new life, runs, and ends again */
        {{0, LIFE_COMPLETED, CODE_STOP_REQUESTED, 5}, {1, LIFE_CREATION_PENDING, 0, 0}, 0},
        {{1, LIFE_PREPARING, 0, 0}, {1, LIFE_RUNNING, 0, 9}, RUNNING},
        {{0, LIFE_COMPLETED, CODE_STOP_REQUESTED, 5},
         {1, LIFE_COMPLETED, 0, 9},
         RUNNING | SUCCEEDED},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(notice_changes(&cases[i].before, &cases[i].now), cases[i].changes);
}

static void a_first_row_has_none_before_it(void **state)
{
    (void)state;
    const struct notice_row waits = {.state = LIFE_CREATION_PENDING};
    const struct notice_row refused = {.state = LIFE_COMPLETED, .code = CODE_CREATION_PERMANENT};
    assert_int_equal(notice_changes(NULL, &waits), 0);
    assert_int_equal(notice_changes(NULL, &refused), FAILED);
}

static void kinds_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < NOTICE_KINDS; i++) {
        enum notice_kind kind;
        assert_true(notice_kind_find(text_of(notice_kind_name((enum notice_kind)i)), &kind));
        assert_int_equal(kind, i);
        assert_true(notice_state_name(kind)[0] != '\0');
    }
    assert_false(notice_kind_find(text_of("RUNNING"), &(enum notice_kind){0}));
    assert_false(notice_kind_find(text_of("accepted"), &(enum notice_kind){0})); /* of no job */
}

static void a_title_names_the_job_and_what_became_of_it(void **state)
{
    cleanup_buf struct buf title = BUF_INIT;
    (void)state;
    notice_title(&(struct notice){.kind = NOTICE_FAILED, .user = "alice", .job_name = "train"},
                 &title);
    assert_string_equal(buf_cstr(&title), "alice~train failed");
}

static void a_title_names_the_request_and_the_decision(void **state)
{
    cleanup_buf struct buf title = BUF_INIT;
    (void)state;
    notice_title(&(struct notice){.kind = NOTICE_REFUSED, .virtual_cluster = "vc1"}, &title);
    assert_string_equal(buf_cstr(&title), "your request for the virtual cluster vc1 was refused");
    buf_clear(&title);
    notice_title(&(struct notice){.kind = NOTICE_ACCEPTED, .virtual_cluster = ""}, &title);
    assert_string_equal(buf_cstr(&title), "your request for an account was accepted");
    assert_true(notice_is_of_request(NOTICE_ACCEPTED) && notice_is_of_request(NOTICE_REFUSED));
    assert_false(notice_is_of_request(NOTICE_RETRIED));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_table_of_changes),
    cmocka_unit_test(a_first_row_has_none_before_it),
    cmocka_unit_test(kinds_have_names),
    cmocka_unit_test(a_title_names_the_job_and_what_became_of_it),
    cmocka_unit_test(a_title_names_the_request_and_the_decision),
};
UNIT_FILE(tests, NULL, NULL);
