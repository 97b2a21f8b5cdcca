/* Storages by their names. */
#include "unit.h"

#include "model/storage.h"

static void test_find(void **state)
{
    static const struct storage two[] = {{.name = "corpus"}, {.name = "scratch"}};
    const struct storage_list list = {two, 2}, none = {0};
    (void)state;
    assert_ptr_equal(storage_find(list, TEXT("corpus")), &two[0]);
    assert_ptr_equal(storage_find(list, TEXT("scratch")), &two[1]);
    assert_null(storage_find(list, TEXT("scratc")));
    assert_null(storage_find(list, TEXT("")));
    assert_null(storage_find(none, TEXT("corpus")));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_find),
};
UNIT_FILE(tests, NULL, NULL);
