/* When a node has no space. */
#include "unit.h"

#include <string.h>
#include <sys/statvfs.h>

#include "base/memory.h"
#include "engine/local/storage.h"

static struct statvfs disk_of(uint64_t mib, uint64_t free_mib, uint64_t inodes,
                              uint64_t free_inodes)
{
    return (struct statvfs){.f_frsize = 1 << 20,
                            .f_blocks = mib,
                            .f_bavail = free_mib,
                            .f_files = inodes,
                            .f_favail = free_inodes};
}

static bool is_short(struct statvfs disk, bool was_short, const char *words)
{
    char reason[STORAGE_REASON_MAX];
    const struct storage_reserve reserve = storage_reserve_data(&disk, 1000);
    const bool answer = storage_is_short(&disk, &reserve, was_short, "data", reason);
    if (answer)
        assert_non_null(strstr(reason, words));
    else
        assert_string_equal(reason, "");
    return answer;
}

static void test_space(void **state)
{
    (void)state;
    assert_false(is_short(disk_of(90000, 1000, 1000000, 10000), false, ""));
    assert_true(is_short(disk_of(90000, 999, 1000000, 10000), false, "999 MiB free in the data"));
    assert_true(is_short(disk_of(90000, 1000, 1000000, 9999), false, "9999 inodes free"));
    /* well again with a quarter more */
    assert_true(is_short(disk_of(90000, 1249, 1000000, 90000), true, "MiB"));
    assert_true(is_short(disk_of(90000, 1250, 1000000, 12499), true, "inodes"));
    assert_false(is_short(disk_of(90000, 1250, 1000000, 12500), true, ""));
    assert_false(is_short(disk_of(90000, 1000, 0, 0), false, "")); /* btrfs */
    assert_true(is_short(disk_of(90000, 1000, 500, STORAGE_INODES_MIN - 1), false, "inodes"));
    assert_int_equal(storage_reserve_data(&(struct statvfs){.f_files = 1ull << 40}, 1).inodes,
                     10000);
}

static void test_space_of_run(void **state)
{
    (void)state;
    const struct statvfs small = disk_of(40, 40, 1000, 1000), large = disk_of(4000, 0, 0, 0);
    assert_int_equal(storage_reserve_run(&small).bytes, 4 << 20);
    assert_int_equal(storage_reserve_run(&large).bytes, 16 << 20);
    assert_false(storage_is_exhausted(&small));
    assert_true(storage_is_exhausted(&large));
    const struct statvfs no_inodes = disk_of(40, 40, 1000, 1);
    assert_true(storage_is_exhausted(&no_inodes));
}

static void test_room_for_a_start(void **state)
{
    (void)state;
    const struct statvfs enough = disk_of(40, 1, 1000, 64), bytes = disk_of(40, 0, 1000, 1000),
                         inodes = disk_of(40, 40, 1000, 63), btrfs = disk_of(40, 1, 0, 0);
    assert_false(storage_is_tight(&enough));
    assert_true(storage_is_tight(&bytes));
    assert_true(storage_is_tight(&inodes));
    assert_false(storage_is_tight(&btrfs));
    assert_false(storage_directory_is_tight("/nowhere"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_space),
    cmocka_unit_test(test_space_of_run),
    cmocka_unit_test(test_room_for_a_start),
};
UNIT_FILE(tests, NULL, NULL);
