/* Bytes on their way: in order, and no more of them in memory than are left. */
#include "unit.h"

#include "base/byte_flow.h"

enum { STANDING = 64 << 10, PART = 10007, PARTS = 10000 };

static void byte_add(struct byte_flow *flow, size_t number)
{
    buf_char(&flow->bytes, (char)(number % 251));
}

/* As with a client that reads more slowly than the task writes. */
static void test_a_flow_that_is_never_empty(void **state)
{
    struct byte_flow flow = {0};
    size_t added = 0, gone = 0;
    (void)state;
    while (added < STANDING)
        byte_add(&flow, added++);
    for (int i = 0; i < PARTS; i++) {
        for (int j = 0; j < PART; j++)
            byte_add(&flow, added++);
        assert_int_equal(byte_flow_front(&flow).at[0], (char)(gone % 251));
        byte_flow_advance(&flow, PART);
        gone += PART;
        assert_int_equal(byte_flow_left(&flow), STANDING);
        assert_true(flow.bytes.length <= 2 * STANDING + 2 * PART);
    }
    assert_true(flow.bytes.room <= 8 * STANDING);
    byte_flow_release(&flow);
}

static void test_a_flow_that_becomes_empty(void **state)
{
    struct byte_flow flow = {0};
    (void)state;
    byte_flow_advance(&flow, 0);
    buf_string(&flow.bytes, "abc");
    byte_flow_advance(&flow, 1);
    assert_true(text_is(byte_flow_front(&flow), "bc"));
    byte_flow_advance(&flow, 1);
    assert_true(text_is(byte_flow_front(&flow), "c"));
    byte_flow_advance(&flow, 1);
    assert_int_equal(flow.bytes.length, 0);
    assert_true(text_is(byte_flow_front(&flow), ""));
    assert_int_equal(byte_flow_left(&flow), 0);
    byte_flow_release(&flow);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_flow_that_is_never_empty),
    cmocka_unit_test(test_a_flow_that_becomes_empty),
};
UNIT_FILE(tests, NULL, NULL);
