/* The keys of a data directory: made once, private, and rotated in steps. */
#include "folder.h"
#include "unit.h"

#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "sys/file.h"
#include "sys/key_file.h"

#define DIGITS "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHERS "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void keys_are_made_once_and_kept_private(void **state)
{
    struct key_file keys, again;
    struct err err;
    struct stat status;
    (void)state;

    assert_int_equal(key_file_load(in_folder("key"), &keys, &err), 0);
    assert_int_equal(key_file_load(in_folder("key"), &again, &err), 0);
    assert_memory_equal(keys.master, again.master, sizeof keys.master);
    assert_memory_equal(keys.seal, again.seal, sizeof keys.seal);
    assert_memory_not_equal(keys.master, keys.seal, sizeof keys.seal);
    assert_false(keys.has_old);
    assert_int_equal(stat(in_folder("key"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    chmod(in_folder("key"), 0644);
    assert_int_equal(key_file_load(in_folder("key"), &keys, &err), ERR_FORBIDDEN);
}

static void a_rotation_keeps_the_master_key(void **state)
{
    struct key_file first, keys, again;
    struct err err;
    (void)state;

    assert_int_equal(key_file_load(in_folder("turn"), &first, &err), 0);
    keys = first;
    assert_int_equal(key_file_rotate(in_folder("turn"), &keys, &err), 0);
    assert_int_equal(key_file_load(in_folder("turn"), &again, &err), 0);
    assert_memory_equal(&keys, &again, sizeof keys);
    assert_memory_equal(keys.master, first.master, sizeof keys.master);
    assert_memory_equal(keys.old_seal, first.seal, sizeof keys.seal);
    assert_memory_not_equal(keys.seal, first.seal, sizeof keys.seal);
    assert_true(keys.has_old);
    assert_int_equal(key_file_settle(in_folder("turn"), &keys, &err), 0);
    assert_int_equal(key_file_load(in_folder("turn"), &again, &err), 0);
    assert_memory_equal(again.seal, keys.seal, sizeof keys.seal);
    assert_false(again.has_old);
    /* what cannot be written changes nothing */
    assert_int_not_equal(key_file_rotate(in_folder("none/key"), &again, &err), 0);
    assert_memory_equal(again.seal, keys.seal, sizeof keys.seal);
    assert_false(again.has_old);
}

static void only_what_is_right_is_read(void **state)
{
    static const char *const right[] = {DIGITS "\n", DIGITS, DIGITS "\nseal " OTHERS "\n",
                                        DIGITS "\nseal " OTHERS "\nold " DIGITS "\n"};
    static const char *const wrong[] = {"",
                                        "12ab",
                                        DIGITS "0",
                                        DIGITS "\nseal " DIGITS "0\n",
                                        DIGITS "\nold " DIGITS "\n",
                                        DIGITS "\nseal " OTHERS "\nolder " DIGITS "\n",
                                        DIGITS "\nseal " OTHERS "\nold 1\n",
                                        DIGITS "\nseal\n",
                                        DIGITS "\n\nseal " OTHERS "\n"};
    struct key_file keys;
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(file_write(in_folder("read"), text_of(right[i]), 0600, &err), 0);
        assert_int_equal(key_file_load(in_folder("read"), &keys, &err), 0);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(file_write(in_folder("read"), text_of(wrong[i]), 0600, &err), 0);
        assert_int_equal(key_file_load(in_folder("read"), &keys, &err), ERR_CORRUPT);
    }
}

static int begin(void **state)
{
    return secret_init(NULL) ? -1 : folder_setup(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(keys_are_made_once_and_kept_private),
    cmocka_unit_test(a_rotation_keeps_the_master_key),
    cmocka_unit_test(only_what_is_right_is_read),
};
UNIT_FILE(tests, begin, folder_teardown);
