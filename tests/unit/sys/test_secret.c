/* Keys, sealed texts and hashed passwords. */
#include "folder.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "sys/file.h"
#include "sys/secret.h"

static void keys_are_derived(void **state)
{
    uint8_t key[SECRET_KEY_SIZE], sub[2][SECRET_KEY_SIZE];
    (void)state;

    secret_random(key, sizeof key);
    secret_key_derive(key, 1, "skeptest", sub[0]);
    secret_key_derive(key, 2, "skeptest", sub[1]);
    assert_memory_not_equal(sub[0], sub[1], SECRET_KEY_SIZE);
}

static void secrets_open_only_with_their_key(void **state)
{
    uint8_t key[SECRET_KEY_SIZE], other[SECRET_KEY_SIZE];
    struct buf sealed = BUF_INIT, plain = BUF_INIT;
    struct err err;
    (void)state;

    secret_random(key, sizeof key);
    secret_random(other, sizeof other);
    secret_seal(key, TEXT("hunter2"), &sealed);
    assert_int_equal(text_find(buf_as_text(&sealed), TEXT("hunter2")), SIZE_MAX);
    assert_int_equal(secret_open(key, buf_as_text(&sealed), &plain, &err), 0);
    assert_string_equal(buf_cstr(&plain), "hunter2");
    assert_int_equal(secret_open(other, buf_as_text(&sealed), &plain, &err), ERR_CORRUPT);
    sealed.at[sealed.length - 1] ^= 1;
    assert_int_equal(secret_open(key, buf_as_text(&sealed), &plain, &err), ERR_CORRUPT);
    assert_int_equal(secret_open(key, TEXT("short"), &plain, &err), ERR_CORRUPT);
    buf_release(&sealed);
    buf_release(&plain);
}

static void passwords_are_hashed(void **state)
{
    char hash[PASSWORD_HASH_SIZE], word[21];
    static char longer[PASSWORD_MAX + 1];
    struct err err;
    (void)state;

    secret_random_word(word, 20);
    assert_int_equal(strlen(word), 20);
    assert_int_equal(password_hash(text_of(word), hash, &err), 0);
    assert_non_null(strstr(hash, "$argon2id$"));
    assert_true(password_matches(text_of(word), hash));
    assert_false(password_matches(TEXT("wrong"), hash));
    assert_false(password_matches(text_of(word), ""));
    assert_int_equal(password_hash((struct text){longer, sizeof longer}, hash, &err), ERR_TOO_BIG);
}

static int setup(void **state)
{
    return secret_init(NULL) < 0 ? -1 : folder_setup(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(keys_are_derived),
    cmocka_unit_test(secrets_open_only_with_their_key),
    cmocka_unit_test(passwords_are_hashed),
};
UNIT_FILE(tests, setup, folder_teardown);
