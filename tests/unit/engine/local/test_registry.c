/* What registries answer: challenges, states; and who logs in to which. */
#include "unit.h"

#include "base/arena.h"
#include "base/memory.h"
#include "engine/local/pull.h"
#include "engine/local/registry.h"

static void test_challenge(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    assert_string_equal(
        registry_token_url(TEXT("Bearer realm=\"https://auth.x/token\",service=\"reg x\","
                                "scope=\"repository:a/b:pull\""),
                           &arena),
        "https://auth.x/token?service=reg%20x&scope=repository:a/b:pull");
    assert_string_equal(
        registry_token_url(TEXT("Bearer realm=\"https://auth.x/token?a=1\",scope=\"s\""), &arena),
        "https://auth.x/token?a=1&scope=s");
    assert_string_equal(registry_token_url(TEXT("Basic realm=\"x\""), &arena), "");
    assert_string_equal(registry_token_url(TEXT("Bearer service=\"x\""), &arena), "");
    assert_string_equal(registry_token_url(TEXT(""), &arena), "");
    arena_release(&arena);
}

static void test_auth_file(void **state)
{
    (void)state;
    struct arena arena;
    const char *user, *password;
    arena_init(&arena);
    struct text file = TEXT("{\"auths\":{\"r:5000\":{\"auth\":\"Ym9iOnM6ZWNyZXQ=\"},\"bad\":"
                            "{\"auth\":\"***\"},\"half\":{\"auth\":\"Ym9i\"},"
                            "\"https://index.docker.io/v1/\":{\"auth\":\"YTpi\"}}}");
    assert_true(registry_auth_find(file, "r:5000", &arena, &user, &password));
    assert_string_equal(user, "bob");
    assert_string_equal(password, "s:ecret");
    assert_true(registry_auth_find(file, "docker.io", &arena, &user, &password));
    assert_string_equal(user, "a");
    assert_false(registry_auth_find(file, "bad", &arena, &user, &password));
    assert_false(registry_auth_find(file, "half", &arena, &user, &password));
    assert_false(registry_auth_find(file, "r", &arena, &user, &password));
    assert_false(registry_auth_find(TEXT("{"), "r", &arena, &user, &password));
    arena_release(&arena);
}

static void test_status(void **state)
{
    (void)state;
    bool is_final;
    assert_string_equal(pull_reason_of_status(404, &is_final), "ImageNotFound");
    assert_true(is_final);
    assert_string_equal(pull_reason_of_status(401, &is_final), "ImagePullUnauthorized");
    assert_true(is_final);
    assert_string_equal(pull_reason_of_status(403, &is_final), "ImagePullUnauthorized");
    assert_true(is_final);
    assert_string_equal(pull_reason_of_status(429, &is_final), "RegistryUnavailable");
    assert_false(is_final);
    assert_string_equal(pull_reason_of_status(503, &is_final), "RegistryUnavailable");
    assert_null(pull_reason_of_status(200, &is_final));
    assert_false(is_final);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_challenge),
    cmocka_unit_test(test_auth_file),
    cmocka_unit_test(test_status),
};
UNIT_FILE(tests, NULL, NULL);
