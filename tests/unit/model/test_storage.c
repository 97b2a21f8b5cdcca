/* Storages by their names. */
#include "unit.h"

#include "base/arena.h"
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

static void test_copy(void **state)
{
    char name[] = "corpus";
    const struct storage one = {.name = name,
                                .directory = "/srv/corpus",
                                .claim = "corpus-claim",
                                .type = "nfs",
                                .server = "nfs.lab",
                                .path = "/export",
                                .is_shared = true,
                                .is_read_only = true,
                                .is_root_squashed = true};
    cleanup_arena struct arena arena;
    (void)state;
    arena_init(&arena);
    const struct storage_list copy = storage_list_copy((struct storage_list){&one, 1}, &arena);
    name[0] = 'x'; /* nothing of the original is used */
    assert_int_equal(copy.count, 1);
    assert_string_equal(copy.items[0].name, "corpus");
    assert_string_equal(copy.items[0].directory, "/srv/corpus");
    assert_string_equal(copy.items[0].claim, "corpus-claim");
    assert_string_equal(copy.items[0].type, "nfs");
    assert_string_equal(copy.items[0].server, "nfs.lab");
    assert_string_equal(copy.items[0].path, "/export");
    assert_true(copy.items[0].is_shared && copy.items[0].is_read_only &&
                copy.items[0].is_root_squashed);
    assert_int_equal(storage_list_copy((struct storage_list){0}, &arena).count, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_copy),
    cmocka_unit_test(test_find),
};
UNIT_FILE(tests, NULL, NULL);
