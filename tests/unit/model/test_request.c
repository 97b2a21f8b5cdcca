/* The tables of docs/rfc/0022-requests.md. */
#include "unit.h"

#include "model/request.h"

static void names_are_found_again(void **state)
{
    (void)state;
    enum request_state found;
    for (int i = 0; i < REQUEST_STATES; i++) {
        assert_true(request_state_find(text_of(request_state_name((enum request_state)i)), &found));
        assert_int_equal(found, i);
    }
    assert_false(request_state_find(TEXT("lost"), &found));
    assert_string_equal(request_kind_name(REQUEST_CLUSTER), "virtualCluster");
    assert_string_equal(request_kind_name(REQUEST_ACCOUNT), "account");
}

static void only_what_is_open_is_decided(void **state)
{
    (void)state;
    static const struct {
        enum request_state from;
        enum request_act act;
        int to; /* -1: it stays as it is */
    } steps[] = {
        {REQUEST_OPEN, REQUEST_ACCEPT, REQUEST_ACCEPTED},
        {REQUEST_OPEN, REQUEST_REFUSE, REQUEST_REFUSED},
        {REQUEST_OPEN, REQUEST_WITHDRAW, REQUEST_WITHDRAWN},
        {REQUEST_ACCEPTED, REQUEST_ACCEPT, -1},
        {REQUEST_ACCEPTED, REQUEST_REFUSE, -1},
        {REQUEST_ACCEPTED, REQUEST_WITHDRAW, -1},
        {REQUEST_REFUSED, REQUEST_ACCEPT, -1},
        {REQUEST_REFUSED, REQUEST_REFUSE, -1},
        {REQUEST_REFUSED, REQUEST_WITHDRAW, -1},
        {REQUEST_WITHDRAWN, REQUEST_ACCEPT, -1},
        {REQUEST_WITHDRAWN, REQUEST_REFUSE, -1},
        {REQUEST_WITHDRAWN, REQUEST_WITHDRAW, REQUEST_WITHDRAWN},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        enum request_state next = REQUEST_OPEN;
        const bool is_done = request_step(steps[i].from, steps[i].act, &next);
        assert_int_equal(is_done, steps[i].to >= 0);
        assert_int_equal(next, is_done ? (enum request_state)steps[i].to : steps[i].from);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_are_found_again),
    cmocka_unit_test(only_what_is_open_is_decided),
};
UNIT_FILE(tests, NULL, NULL);
