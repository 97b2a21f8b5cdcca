/* What a task could do: ids that it has, and those that it has not. */
#include "unit.h"

#include "files/rights.h"

enum { NOBODY = 2000683008, PERSON = 70000 };

static const struct files_view plain = {0, 0, false, NOBODY};
static const struct files_view persons = {PERSON, PERSON, false, NOBODY};
static const struct files_view squashed = {1000, 1000, true, NOBODY};
static const struct files_view roots = {0, 0, true, NOBODY};

static bool may(const struct files_view *view, uint32_t user, uint32_t group, uint32_t mode,
                unsigned wishes)
{
    const struct files_node node = {user, group, mode};
    return files_may(view, &node, wishes);
}

static void test_root_of_a_task_is_root(void **state)
{
    (void)state;
    assert_true(may(&plain, 0, 0, 0600, FILES_READ | FILES_WRITE));
    assert_true(may(&plain, 65535, 65535, 0, FILES_WRITE));
    assert_false(may(&plain, 65536, 0, 0770, FILES_READ));
    assert_false(may(&plain, 0, 65536, 0770, FILES_READ));
    assert_true(may(&plain, PERSON, PERSON, 0604, FILES_READ));
    assert_false(may(&plain, PERSON, PERSON, 0604, FILES_READ | FILES_WRITE));
    assert_false(may(&plain, PERSON, PERSON, 0604, FILES_EXECUTE));
}

static void test_who_owns_the_folder_is_known(void **state)
{
    (void)state;
    assert_true(may(&persons, PERSON, PERSON, 0600, FILES_READ));
    assert_true(may(&persons, 0, PERSON, 0600, FILES_READ));
    assert_false(may(&persons, PERSON + 1, PERSON, 0600, FILES_READ));
}

static void test_squashed_root_is_not_root(void **state)
{
    (void)state;
    assert_true(may(&squashed, 1000, 1000, 0600, FILES_WRITE));
    assert_true(may(&squashed, 1, 65535, 0600, FILES_WRITE));
    assert_false(may(&squashed, 0, 0, 0664, FILES_WRITE));
    assert_true(may(&squashed, 0, 0, 0664, FILES_READ));
    assert_false(may(&squashed, 0, 1000, 0660, FILES_READ));
    assert_false(may(&squashed, 1000, 0, 0660, FILES_READ));
    assert_false(may(&roots, 0, 0, 0755, FILES_WRITE));
    assert_true(may(&roots, NOBODY, NOBODY, 0600, FILES_WRITE));
    assert_false(may(&squashed, NOBODY, NOBODY, 0600, FILES_READ));
}

static void test_sticky_folders(void **state)
{
    (void)state;
    assert_true(files_may_unlink(&plain, &(struct files_node){1000, 1000, 01777}));
    assert_true(files_may_unlink(&squashed, &(struct files_node){0, 0, 0777}));
    assert_false(files_may_unlink(&squashed, &(struct files_node){0, 0, 01777}));
    assert_false(files_may_unlink(&squashed, &(struct files_node){0, 0, 0755}));
}

static void test_who_owns_what_is_written(void **state)
{
    (void)state;
    assert_int_equal(files_writer(&plain).user, 0);
    assert_int_equal(files_writer(&persons).group, 0);
    assert_int_equal(files_writer(&squashed).user, 1000);
    assert_int_equal(files_writer(&squashed).group, 1000);
    assert_int_equal(files_writer(&roots).user, NOBODY);
    assert_int_equal(files_writer(&roots).group, NOBODY);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_root_of_a_task_is_root),
    cmocka_unit_test(test_who_owns_the_folder_is_known),
    cmocka_unit_test(test_squashed_root_is_not_root),
    cmocka_unit_test(test_sticky_folders),
    cmocka_unit_test(test_who_owns_what_is_written),
};
UNIT_FILE(tests, NULL, NULL);
