/* Ports of a node: taken, given back, found. */
#include "unit.h"

#include "base/memory.h"
#include "core/ports.h"

static void test_ports(void **state)
{
    (void)state;
    struct ports ports = {0};
    assert_int_equal(ports_find(&ports, 15000, 15009, 3), 15000);
    ports_take(&ports, 15000, 3);
    assert_int_equal(ports_find(&ports, 15000, 15009, 3), 15003);
    ports_take(&ports, 15003, 3);
    ports_give(&ports, 15000, 3);
    /* what was given back is taken last */
    assert_int_equal(ports_find(&ports, 15000, 15009, 2), 15006);
    ports_take(&ports, 15006, 2);
    assert_int_equal(ports_find(&ports, 15000, 15009, 3), 15000);
    assert_int_equal(ports_find(&ports, 15000, 15009, 4), 0);
    assert_false(ports_are_free(&ports, 0, 1));
    assert_false(ports_are_free(&ports, 65535, 2));
    assert_true(ports_are_free(&ports, 65535, 1));
    assert_false(ports_are_free(&ports, 65536, 1));
    ports_take(&ports, 1020, 10); /* over a page's edge */
    assert_false(ports_are_free(&ports, 1000, 21));
    assert_true(ports_are_free(&ports, 1000, 20));
    ports_release(&ports);
    assert_int_equal(ports_find(&ports, 100, 109, 8), 100);
    assert_int_equal(ports_find(&ports, 100, 109, 8), 100); /* not two more at the end */
    ports_take(&ports, 100, 8);
    assert_int_equal(ports_find(&ports, 200, 209, 2), 200); /* another range than before */
    assert_int_equal(ports_find(&ports, 100, 109, 2), 108);
    assert_int_equal(ports_find(&ports, 100, 107, 2), 0);
    ports_take(&ports, 1020, 10);
    struct ports copy;
    ports_copy(&copy, &ports);
    ports_give(&ports, 1020, 10);
    assert_false(ports_are_free(&copy, 1029, 1));
    assert_true(ports_are_free(&ports, 1029, 1));
    ports_release(&ports);
    ports_release(&copy);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ports),
};
UNIT_FILE(tests, NULL, NULL);
