/* Names of quotas. */
#include "unit.h"

#include "base/err.h"
#include "model/quota.h"

static void test_names(void **state)
{
    enum quota_kind kind;
    struct quotas quotas;
    (void)state;
    for (int i = 0; i < QUOTA_KIND_COUNT; i++) {
        assert_true(quota_find(text_of(quota_name((enum quota_kind)i)), &kind));
        assert_int_equal(kind, i);
    }
    assert_string_equal(quota_name(QUOTA_SUBMITS_MINUTE), "submitsPerMinute");
    assert_false(quota_find(TEXT("livejobs"), &kind));
    assert_false(quota_find(TEXT(""), &kind));
    quotas_init(&quotas);
    for (int i = 0; i < QUOTA_KIND_COUNT; i++)
        assert_int_equal(quotas.values[i], QUOTA_NONE);
}

static void test_refusal(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(quota_refuse(QUOTA_GPUS, "lab", 8, 7, &err), ERR_QUOTA);
    assert_string_equal(err.text, "the quota gpus of group lab is 8, and 7 are used");
    assert_string_equal(err.path, "gpus");
    assert_int_equal(quota_refuse(QUOTA_LIVE_JOBS, NULL, 1, 1, &err), ERR_QUOTA);
    assert_string_equal(err.text, "the quota liveJobs is 1, and 1 is used");
    assert_int_equal(quota_refuse_hours("lab", 100, 103, 1796083200000, &err), ERR_QUOTA);
    assert_string_equal(err.text,
                        "the quota gpuHoursPerMonth of group lab is 100, and 103 are used; the "
                        "count begins anew at 2026-12-01 00:00:00 UTC");
    assert_string_equal(err.path, "gpuHoursPerMonth");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_refusal),
};
UNIT_FILE(tests, NULL, NULL);
