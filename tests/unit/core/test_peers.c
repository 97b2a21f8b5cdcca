/* Who may be told where its peers are. */
#include "unit.h"

#include "base/memory.h"
#include "core/output.h"
#include "core/peers.h"

static struct task_record row(enum life_state state, int64_t launched_ms)
{
    return (struct task_record){.state = state,
                                .address = "10.1.0.7",
                                .job_attempt = 2,
                                .attempt_launched_ms = launched_ms};
}

static void an_address_is_known_of_what_runs_or_has_run(void **state)
{
    (void)state;
    for (int i = LIFE_CREATION_PENDING; i <= LIFE_COMPLETED; i++) {
        const struct task_record begun = row((enum life_state)i, 5);
        const struct task_record never = row((enum life_state)i, 0);
        assert_int_equal(peer_runs(&begun, 2), i == LIFE_RUNNING);
        assert_int_equal(peer_is_known(&begun, 2), i == LIFE_RUNNING || i == LIFE_COMPLETED);
        assert_int_equal(peer_is_known(&never, 2), i == LIFE_RUNNING);
        assert_int_equal(peer_is_news(&begun), i == LIFE_RUNNING || i == LIFE_COMPLETED);
        /* of an attempt before */
        assert_false(peer_runs(&begun, 3));
        assert_false(peer_is_known(&begun, 3));
    }
    struct task_record without = row(LIFE_RUNNING, 5);
    without.address = "";
    assert_false(peer_runs(&without, 2));
    without.state = LIFE_COMPLETED;
    assert_false(peer_is_known(&without, 2));
    without.is_removed = true;
    assert_false(peer_is_news(&without));
}

static void a_gang_waits_for_each_of_its_tasks(void **state)
{
    (void)state;
    for (int i = LIFE_CREATION_PENDING; i <= LIFE_COMPLETED; i++) {
        const struct task_record rows[] = {row(LIFE_RUNNING, 5), row((enum life_state)i, 0)};
        assert_int_equal(peers_may_be_told(rows, 2, 2, true),
                         i == LIFE_RUNNING || i == LIFE_COMPLETED);
        assert_true(peers_may_be_told(rows, 2, 2, false));
    }
    /* its rows are not those of this attempt yet */
    struct task_record rows[] = {row(LIFE_RUNNING, 5), row(LIFE_COMPLETED, 5)};
    rows[1].job_attempt = 1;
    assert_false(peers_may_be_told(rows, 2, 2, true));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_address_is_known_of_what_runs_or_has_run),
    cmocka_unit_test(a_gang_waits_for_each_of_its_tasks),
};
UNIT_FILE(tests, NULL, NULL);
