/* Names and filters of a directory: what is typed is never more than a value. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "signon/directory.h"

static void test_escape(void **state)
{
    static const struct {
        struct text given;
        const char *escaped;
    } rows[] = {
        {{"alice.B-c_1@x", 13}, "alice.B-c_1@x"},
        {{"", 0}, ""},
        {{"*)(uid=*", 8}, "\\2A\\29\\28uid\\3D\\2A"},
        {{"a,dc=x+b", 8}, "a\\2Cdc\\3Dx\\2Bb"},
        {{"\\", 1}, "\\5C"},
        {{"#a\"<>; ", 7}, "\\23a\\22\\3C\\3E\\3B\\20"},
        {{"a\0b", 3}, "a\\00b"},
        {{"\xc3\xa9", 2}, "\\C3\\A9"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        cleanup_buf struct buf text = BUF_INIT;
        directory_escape(&text, rows[i].given);
        assert_string_equal(buf_cstr(&text), rows[i].escaped);
    }
}

/* What is filled in is not looked at again. */
static void test_fill(void **state)
{
    cleanup_buf struct buf text = BUF_INIT;
    (void)state;
    directory_fill(&text, "(&(uid={user})(m={dn})(a={x}){user)", TEXT("{dn}"), TEXT("uid=a,b"));
    assert_string_equal(buf_cstr(&text), "(&(uid=\\7Bdn\\7D)(m=uid\\3Da\\2Cb)(a={x}){user)");
}

static void test_names(void **state)
{
    char much[DIRECTORY_NAME_MAX + 1];
    (void)state;
    assert_true(directory_name_is_good(TEXT("alice+x@example.org")));
    assert_true(directory_name_is_good(TEXT("*)(uid=*")));
    assert_false(directory_name_is_good(TEXT("")));
    assert_false(directory_name_is_good(TEXT("alice ")));
    assert_false(directory_name_is_good(TEXT("al\tice")));
    assert_false(directory_name_is_good((struct text){"a\0b", 3}));
    assert_false(directory_name_is_good(TEXT("\xc3\xa9")));
    memset(much, 'a', sizeof much);
    assert_true(directory_name_is_good((struct text){much, DIRECTORY_NAME_MAX}));
    assert_false(directory_name_is_good((struct text){much, DIRECTORY_NAME_MAX + 1}));
}

static void test_urls(void **state)
{
    static const struct {
        const char *url;
        bool is_plain, is_good;
    } rows[] = {
        {"ldaps://ldap.example.org", false, true},
        {"ldap://ldap.example.org:389", false, true},
        {"ldaps://ldap.example.org", true, true},
        {"ldap://ldap.example.org", true, false},
        {"ldap://127.0.0.1:3890", true, true},
        {"ldap://[::1]:3890", true, true},
        {"ldap://localhost", true, true},
        {"ldap://localhost:1", true, true},
        {"ldap://localhost.example.org", true, false},
        {"ldap://", false, false},
        {"ldapi://%2frun%2fx", false, false},
        {"http://ldap.example.org", false, false},
        {"ldap://a,b", false, false},
        {"ldap://a ldap://b", false, false},
        {"ldap://a/dc=x", false, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (directory_url_is_good(rows[i].url, rows[i].is_plain) != rows[i].is_good)
            fail_msg("%s", rows[i].url);
}

/* A bind without a password proves nothing: the directory is not even asked. */
static void test_no_password(void **state)
{
    const struct directory_config config = {
        .url = "ldap://127.0.0.1:1", .is_plain = true, .base = "", .bind_as = "uid={user}"};
    struct directory *directory;
    struct identity identity;
    struct arena *nothing = NULL;
    struct err err = {0};
    (void)state;
    assert_int_equal(directory_new(&config, &directory, &err), 0);
    assert_int_equal(
        directory_check(directory, TEXT("alice"), TEXT(""), 100, nothing, &identity, &err),
        ERR_UNAUTHORIZED);
    assert_int_equal(
        directory_check(directory, TEXT("a b"), TEXT("x"), 100, nothing, &identity, &err),
        ERR_UNAUTHORIZED);
    directory_free(directory);
    directory_free(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_escape), cmocka_unit_test(test_fill),        cmocka_unit_test(test_names),
    cmocka_unit_test(test_urls),   cmocka_unit_test(test_no_password),
};
UNIT_FILE(tests, NULL, NULL);
