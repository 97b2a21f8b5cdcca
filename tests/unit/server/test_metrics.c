/* Histograms of the metrics add up. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "server/metrics.h"

static void histograms_add_up(void **state)
{
    struct histogram histogram = {0};
    struct buf text = BUF_INIT;
    (void)state;

    histogram_add(&histogram, 400);
    histogram_add(&histogram, 1500);
    histogram_add(&histogram, 5000000);
    histogram_write(&histogram, "x_seconds", "Help.", &text);
    assert_non_null(strstr(buf_cstr(&text), "x_seconds_bucket{le=\"0.0005\"} 1\n"));
    assert_non_null(strstr(buf_cstr(&text), "x_seconds_bucket{le=\"0.002\"} 2\n"));
    assert_non_null(strstr(buf_cstr(&text), "x_seconds_bucket{le=\"1\"} 2\n"));
    assert_non_null(strstr(buf_cstr(&text), "x_seconds_bucket{le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(buf_cstr(&text), "x_seconds_count 3\n"));
    buf_release(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(histograms_add_up),
};
UNIT_FILE(tests, NULL, NULL);
