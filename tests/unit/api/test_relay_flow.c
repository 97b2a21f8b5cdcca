/* Bytes on their way through the relay: in order, and no more of them in memory than are left. */
#include "unit.h"

#include "api/relay_flow.h"

enum { STANDING = 64 << 10, PART = 10007, PARTS = 10000 };

static void byte_add(struct relay_flow *flow, size_t number)
{
    buf_char(&flow->bytes, (char)(number % 251));
}

/* As with a client that reads more slowly than the task writes. */
static void test_a_flow_that_is_never_empty(void **state)
{
    struct relay_flow flow = {0};
    size_t added = 0, gone = 0;
    (void)state;
    while (added < STANDING)
        byte_add(&flow, added++);
    for (int i = 0; i < PARTS; i++) {
        for (int j = 0; j < PART; j++)
            byte_add(&flow, added++);
        assert_int_equal(flow.bytes.at[flow.taken], (char)(gone % 251));
        relay_flow_advance(&flow, PART);
        gone += PART;
        assert_int_equal(relay_flow_left(&flow), STANDING);
        assert_true(flow.bytes.length <= 2 * STANDING + 2 * PART);
    }
    assert_true(flow.bytes.room <= 8 * STANDING);
    relay_flow_release(&flow);
}

static void test_a_flow_that_becomes_empty(void **state)
{
    struct relay_flow flow = {0};
    (void)state;
    relay_flow_advance(&flow, 0);
    buf_string(&flow.bytes, "abc");
    relay_flow_advance(&flow, 1);
    assert_string_equal(buf_cstr(&flow.bytes) + flow.taken, "bc");
    relay_flow_advance(&flow, 1);
    assert_string_equal(buf_cstr(&flow.bytes) + flow.taken, "c");
    relay_flow_advance(&flow, 1);
    assert_int_equal(flow.bytes.length, 0);
    assert_int_equal(relay_flow_left(&flow), 0);
    relay_flow_release(&flow);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_flow_that_is_never_empty),
    cmocka_unit_test(test_a_flow_that_becomes_empty),
};
UNIT_FILE(tests, NULL, NULL);
