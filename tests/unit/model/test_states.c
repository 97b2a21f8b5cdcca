/* The states of a life, and what people see of them. */
#include "unit.h"

#include "base/memory.h"
#include "model/completion.h"
#include "model/states.h"

static void states_have_names(void **state)
{
    (void)state;
    for (int s = LIFE_CREATION_PENDING; s <= LIFE_COMPLETED; s++)
        for (int t = LIFE_CREATION_PENDING; t < s; t++)
            assert_string_not_equal(life_state_name((enum life_state)s),
                                    life_state_name((enum life_state)t));
    assert_string_equal(life_state_name(LIFE_PREPARING), "AttemptPreparing");
    assert_string_equal(life_state_name(LIFE_COMPLETED), "Completed");
    assert_string_equal(public_state_name(PUBLIC_STOPPING), "STOPPING");
}

/* As OpenPAI's REST server converts them. */
static void people_see_openpais_states(void **state)
{
    (void)state;
    static const struct {
        enum life_state state;
        int32_t code;
        bool is_backing_off;
        enum public_state job, attempt;
    } rows[] = {
        {LIFE_CREATION_PENDING, 0, false, PUBLIC_WAITING, PUBLIC_WAITING},
        {LIFE_CREATION_REQUESTED, 0, false, PUBLIC_WAITING, PUBLIC_WAITING},
        {LIFE_PREPARING, 0, false, PUBLIC_WAITING, PUBLIC_WAITING},
        {LIFE_RUNNING, 0, false, PUBLIC_RUNNING, PUBLIC_RUNNING},
        {LIFE_DELETION_PENDING, 1, false, PUBLIC_RUNNING, PUBLIC_RUNNING},
        {LIFE_DELETION_REQUESTED, CODE_STOP_REQUESTED, false, PUBLIC_STOPPING, PUBLIC_STOPPING},
        {LIFE_DELETING, CODE_ATTEMPT_COMPLETION, false, PUBLIC_STOPPING, PUBLIC_STOPPING},
        {LIFE_ATTEMPT_COMPLETED, 1, false, PUBLIC_RUNNING, PUBLIC_FAILED},
        {LIFE_ATTEMPT_COMPLETED, 1, true, PUBLIC_WAITING, PUBLIC_FAILED},
        {LIFE_ATTEMPT_COMPLETED, 0, false, PUBLIC_RUNNING, PUBLIC_SUCCEEDED},
        {LIFE_ATTEMPT_COMPLETED, CODE_STOP_REQUESTED, true, PUBLIC_STOPPING, PUBLIC_STOPPED},
        {LIFE_COMPLETED, 0, false, PUBLIC_SUCCEEDED, PUBLIC_SUCCEEDED},
        {LIFE_COMPLETED, CODE_ATTEMPT_COMPLETION, false, PUBLIC_STOPPED, PUBLIC_STOPPED},
        {LIFE_COMPLETED, CODE_SCALED_DOWN, false, PUBLIC_STOPPED, PUBLIC_STOPPED}, /* ours */
        {LIFE_COMPLETED, 177, false, PUBLIC_FAILED, PUBLIC_FAILED},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(life_public(rows[i].state, rows[i].code, rows[i].is_backing_off),
                         rows[i].job);
        assert_int_equal(life_public_attempt(rows[i].state, rows[i].code), rows[i].attempt);
    }
    assert_int_equal(life_public((enum life_state)77, 0, false), PUBLIC_UNKNOWN);
}

static void executions_go_one_way(void **state)
{
    (void)state;
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++)
            assert_int_equal(execution_can_change((enum execution)from, (enum execution)to),
                             from < to);
    assert_false(execution_can_change((enum execution)9, EXECUTION_STOP));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(states_have_names),
    cmocka_unit_test(people_see_openpais_states),
    cmocka_unit_test(executions_go_one_way),
};
UNIT_FILE(tests, NULL, NULL);
