#include "unit.h"

#include "base/memory.h"
#include "engine/kubernetes/node_metrics.h"

#define OBJECT(name, timestamp, cpu, memory)                                                       \
    "{\"metadata\":{\"name\":" name ",\"creationTimestamp\":\"2026-11-23T18:00:07Z\",\"labels\":"  \
    "{\"name\":\"x\",\"cpu\":\"7\"}},\"timestamp\":" timestamp ",\"window\":\"20.011s\",\"usage\"" \
    ":{\"cpu\":" cpu ",\"memory\":" memory "}}"

#define UNTOLD_OBJECT(rest) "{\"metadata\":{\"name\":\"n1\"}," rest "}"
#define TIMESTAMP           "\"timestamp\":\"2026-11-23T18:00:00Z\""

static const int64_t AT_MS = 1795456800000; /* 2026-11-23T18:00:00Z */

static void an_object_of_metrics_server_is_read(void **state)
{
    (void)state;
    struct node_metrics metrics;
    bool is_told;
    assert_true(node_metrics_read(
        TEXT(OBJECT("\"n1\"", "\"2026-11-23T18:00:00Z\"", "\"1234567890n\"", "\"1536Ki\"")),
        &metrics, &is_told));
    assert_true(is_told);
    assert_true(text_is(metrics.name, "n1"));
    assert_int_equal(metrics.at_ms, AT_MS);
    assert_int_equal(metrics.cpu_milli, 1234);
    assert_int_equal(metrics.memory_bytes, 1536 << 10);
}

static void nothing_is_told_where_one_amount_cannot_be_read(void **state)
{
    (void)state;
    static const char *const UNTOLD[] = {
        OBJECT("\"n1\"", "\"soon\"", "\"1\"", "\"1Ki\""),
        OBJECT("\"n1\"", "null", "\"1\"", "\"1Ki\""),
        OBJECT("\"n1\"", "\"1970-01-01T00:00:00Z\"", "\"1\"", "\"1Ki\""),
        OBJECT("\"n1\"", "\"2026-11-23T18:00:00Z\"", "\"-1\"", "\"1Ki\""),
        OBJECT("\"n1\"", "\"2026-11-23T18:00:00Z\"", "1", "\"1Ki\""),
        OBJECT("\"n1\"", "\"2026-11-23T18:00:00Z\"", "\"2M\"", "\"1Ki\""),
        OBJECT("\"n1\"", "\"2026-11-23T18:00:00Z\"", "\"1\"", "\"1KB\""),
        UNTOLD_OBJECT(TIMESTAMP),
        UNTOLD_OBJECT(TIMESTAMP ",\"usage\":{\"cpu\":\"1\"}"),
        UNTOLD_OBJECT("\"usage\":{\"cpu\":\"1\",\"memory\":\"1Ki\"}"),
    };
    static const char *const NAMELESS[] = {
        "{}",
        "{\"metadata\":{}}",
        OBJECT("\"\"", "\"2026-11-23T18:00:00Z\"", "\"1\"", "\"1Ki\""),
        OBJECT("7", "\"2026-11-23T18:00:00Z\"", "\"1\"", "\"1Ki\""),
    };
    struct node_metrics metrics;
    bool is_told = true;
    for (size_t i = 0; i < COUNT_OF(UNTOLD); i++) {
        assert_true(node_metrics_read(text_of(UNTOLD[i]), &metrics, &is_told));
        assert_false(is_told);
        assert_true(text_is(metrics.name, "n1"));
    }
    for (size_t i = 0; i < COUNT_OF(NAMELESS); i++)
        assert_false(node_metrics_read(text_of(NAMELESS[i]), &metrics, &is_told));
}

static void use_take(struct node_use *use, int64_t at_ms, int64_t cpu_milli, int64_t now_ms)
{
    const struct node_metrics metrics = {
        .at_ms = at_ms, .cpu_milli = cpu_milli, .memory_bytes = 100 * cpu_milli};
    node_use_take(use, &metrics, now_ms, AT_MS);
}

static void processor_time_grows_evenly_until_a_figure_is_old(void **state)
{
    (void)state;
    struct node_use use = {0};
    assert_false(node_use_is_known(&use, 0));
    assert_int_equal(node_use_cpu_ns(&use, 0), 0);
    use_take(&use, AT_MS, 1500, 1000);
    assert_true(node_use_is_known(&use, 1000));
    assert_int_equal(use.memory_bytes, 150000);
    assert_int_equal(node_use_cpu_ns(&use, 3000), 3000000000);
    use_take(&use, AT_MS, 9000, 3000); /* the same figure again: nothing is new */
    assert_int_equal(node_use_cpu_ns(&use, 3000), 3000000000);
    use_take(&use, AT_MS + 1, 500, 3000);
    assert_int_equal(node_use_cpu_ns(&use, 3000), 3000000000);
    assert_int_equal(node_use_cpu_ns(&use, 5000), 4000000000);
    const int64_t old_ms = 3000 + NODE_METRICS_OLD_MS;
    assert_true(node_use_is_known(&use, old_ms - 1));
    assert_false(node_use_is_known(&use, old_ms));
    assert_int_equal(node_use_cpu_ns(&use, old_ms + 7000), node_use_cpu_ns(&use, old_ms));
    use_take(&use, AT_MS + 2, 1, old_ms + 7000);
    assert_true(node_use_is_known(&use, old_ms + 7000));
}

/* The timestamp is of the node's clock: what counts is that it moves on. */
static void a_clock_may_be_wrong(void **state)
{
    (void)state;
    struct node_use use = {0};
    const int64_t late_ms = AT_MS - 3600 * 1000, early_ms = AT_MS + 3600 * 1000;
    use_take(&use, late_ms, 10, 1000); /* it may be that the node is not read any more */
    assert_false(node_use_is_known(&use, 1000));
    use_take(&use, late_ms, 10, 2000);
    assert_false(node_use_is_known(&use, 2000));
    use_take(&use, late_ms + 15000, 11, 3000); /* it is, by a clock that is late */
    assert_true(node_use_is_known(&use, 3000));
    assert_int_equal(use.cpu_milli, 11);
    use_take(&use, early_ms, 12, 4000);
    assert_int_equal(use.cpu_milli, 12);
    use_take(&use, early_ms - 5000, 13, 5000); /* of another replica, which is behind */
    assert_int_equal(use.cpu_milli, 12);
    use_take(&use, late_ms, 14, 6000); /* the clock was set back */
    assert_int_equal(use.cpu_milli, 14);
    use = (struct node_use){0};
    use_take(&use, early_ms, 15, 1000);
    assert_true(node_use_is_known(&use, 1000));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_object_of_metrics_server_is_read),
    cmocka_unit_test(nothing_is_told_where_one_amount_cannot_be_read),
    cmocka_unit_test(processor_time_grows_evenly_until_a_figure_is_old),
    cmocka_unit_test(a_clock_may_be_wrong),
};

UNIT_FILE(tests, NULL, NULL);
