/* Which rights the tasks of a virtual cluster have: those that name it, or all. */
#include "unit.h"

#include "engine/local/rights.h"

static void a_right_is_for_the_clusters_that_it_names(void **state)
{
    (void)state;
    static const char *const all[] = {"*"}, *const some[] = {"vision", "speech"};
    struct right_list lists[RIGHTS] = {0};
    assert_int_equal(rights_of(lists, "vision"), 0);
    lists[RIGHT_FUSE].items = all;
    lists[RIGHT_FUSE].count = 1;
    lists[RIGHT_SYS_ADMIN].items = some;
    lists[RIGHT_SYS_ADMIN].count = 2;
    assert_int_equal(rights_of(lists, "vision"), 1u << RIGHT_FUSE | 1u << RIGHT_SYS_ADMIN);
    assert_int_equal(rights_of(lists, "speech"), 1u << RIGHT_FUSE | 1u << RIGHT_SYS_ADMIN);
    assert_int_equal(rights_of(lists, "visio"), 1u << RIGHT_FUSE);
    assert_int_equal(rights_of(lists, ""), 1u << RIGHT_FUSE);
}

static void every_right_has_its_own_name(void **state)
{
    (void)state;
    for (unsigned right = 0; right < RIGHTS; right++) {
        assert_non_null(right_names[right]);
        for (unsigned other = 0; other < right; other++)
            assert_string_not_equal(right_names[right], right_names[other]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_right_is_for_the_clusters_that_it_names),
    cmocka_unit_test(every_right_has_its_own_name),
};
UNIT_FILE(tests, NULL, NULL);
