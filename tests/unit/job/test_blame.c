/* The blame of a node rises with the failures of the platform, and decays. */
#include "unit.h"

#include "job/blame.h"

static const struct blame_policy policy = {.half_life_s = 3600, .avoid = 3, .cordon = 10};

static void blame_rises_and_decays(void **state)
{
    (void)state;
    struct blame blame = {0};
    int64_t now_ms = 1000000;
    assert_false(blame_add(&blame, &policy, 1, now_ms));
    assert_false(blame_add(&blame, &policy, 1, now_ms));
    assert_true(blame_add(&blame, &policy, 1, now_ms));
    assert_int_equal(blame.level, BLAME_AVOID);
    assert_int_equal((int)(blame_value(&blame, &policy, now_ms + 3600000) * 1000), 1500);
    assert_int_equal((int)blame_value(&blame, &policy, now_ms - 5), 3);
    assert_false(blame_refresh(&blame, &policy, now_ms));
    const int64_t next_ms = blame_next_ms(&blame, &policy);
    assert_true(next_ms > now_ms && next_ms <= now_ms + 2);
    assert_true(blame_refresh(&blame, &policy, next_ms));
    assert_int_equal(blame.level, BLAME_NONE);
    assert_int_equal(blame_next_ms(&blame, &policy), 0);
}

static void cordon_lasts_until_below_avoid(void **state)
{
    (void)state;
    struct blame blame = {0};
    int64_t now_ms = 0;
    for (int i = 0; i < 12; i++)
        blame_add(&blame, &policy, 1, now_ms);
    assert_int_equal(blame.level, BLAME_CORDON);
    assert_false(blame_refresh(&blame, &policy, now_ms + 3600000)); /* 6: would be avoid */
    assert_int_equal(blame.level, BLAME_CORDON);
    now_ms = blame_next_ms(&blame, &policy);
    assert_true(now_ms > 3600000);
    assert_true(blame_refresh(&blame, &policy, now_ms));
    assert_int_equal(blame.level, BLAME_NONE);
    blame_add(&blame, &policy, 20, now_ms);
    blame_pardon(&blame, now_ms);
    assert_int_equal(blame.level, BLAME_NONE);
    assert_true(blame_value(&blame, &policy, now_ms) == 0);
}

static void blame_without_decay(void **state)
{
    (void)state;
    const struct blame_policy forever = {.half_life_s = 0, .avoid = 1, .cordon = 2};
    struct blame blame = {0};
    blame_add(&blame, &forever, 1, 0);
    assert_true(blame_value(&blame, &forever, INT64_MAX) == 1);
    assert_int_equal(blame_next_ms(&blame, &forever), 0);
    const struct blame_policy always = {.half_life_s = 1, .avoid = 0, .cordon = 0};
    assert_false(blame_add(&blame, &always, 0, 0) && blame.level == BLAME_NONE);
    assert_int_equal(blame_next_ms(&blame, &always), 0);
    assert_string_equal(blame_level_name(BLAME_CORDON), "cordon");
}

static void only_the_platform_is_blamed(void **state)
{
    (void)state;
    const struct completion lost = completion_of(CODE_NODE_LOST, "%s", "");
    const struct completion preempted = completion_of(CODE_PREEMPTED, "%s", "");
    const struct completion object = completion_of(CODE_OBJECT_DELETED, "%s", "");
    const struct completion timeout = completion_of(CODE_OBJECT_CREATION_TIMEOUT, "%s", "");
    const struct completion good = completion_of(0, "%s", "");
    assert_true(blame_weight(&lost, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 1);
    assert_true(blame_weight(&lost, "USER_FAILURE", EVIDENCE_PLATFORM) == 0);
    assert_true(blame_weight(&lost, "PLATFORM_FAILURE", EVIDENCE_TASK) == 0);
    assert_true(blame_weight(&preempted, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    const struct completion memory = {.code = -1212}; /* not the node's: its tasks' or others' */
    assert_true(blame_weight(&memory, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    const struct completion full = {.code = -1211}; /* its health says so, and for how long */
    assert_true(blame_weight(&full, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    const struct completion evicted = completion_of(CODE_EVICTED, "%s", "");
    assert_true(blame_weight(&evicted, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    const struct completion removed = completion_of(CODE_CONTAINER_DELETED, "%s", "");
    assert_true(blame_weight(&removed, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    assert_true(blame_weight(&object, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    assert_true(blame_weight(&timeout, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
    assert_true(blame_weight(&good, "PLATFORM_FAILURE", EVIDENCE_PLATFORM) == 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(blame_rises_and_decays),
    cmocka_unit_test(cordon_lasts_until_below_avoid),
    cmocka_unit_test(blame_without_decay),
    cmocka_unit_test(only_the_platform_is_blamed),
};
UNIT_FILE(tests, NULL, NULL);
