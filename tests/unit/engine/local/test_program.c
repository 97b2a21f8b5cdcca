/* What the complaint of a program that fetches means for the pull. */
#include "unit.h"

#include "base/arena.h"
#include "base/memory.h"
#include "engine/local/pull.h"

static void test_complaints(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words, *reason;
        bool is_final;
    } cases[] = {
        {"time=\"2026-01-01T00:00:00Z\" level=fatal msg=\"initializing source docker://x: reading "
         "manifest v9 in x: manifest unknown\"\n",
         "initializing source docker://x: reading manifest v9 in x: manifest unknown",
         "ImageNotFound", true},
        {"some progress\ntime=\"t\" level=fatal msg=\"pinging: Get \\\"http://x/v2/\\\": dial tcp: "
         "connect: connection refused\"",
         "pinging: Get \"http://x/v2/\": dial tcp: connect: connection refused",
         "RegistryUnavailable", false},
        {"msg=\"unauthorized: authentication required\"", "unauthorized: authentication required",
         "ImagePullUnauthorized", true},
        {"write /x: no space left on device", "write /x: no space left on device", "DiskFull",
         true},
        {"something new", "something new", "ImagePullError", false},
        {"", "", "ImagePullError", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char words[512];
        bool is_final;
        pull_complaint(cases[i].text, words, sizeof words);
        assert_string_equal(words, cases[i].words);
        assert_string_equal(pull_reason(words, "", &is_final), cases[i].reason);
        assert_int_equal(is_final, cases[i].is_final);
    }
    /* a name is the user's: it says nothing about what went wrong */
    bool is_final;
    const char *refused = "pinging registry for team/denied: connection refused";
    assert_string_equal(pull_reason(refused, "", &is_final), "ImagePullUnauthorized");
    assert_string_equal(pull_reason(refused, "team/denied", &is_final), "RegistryUnavailable");
    assert_false(is_final);
    char small[8];
    pull_complaint("msg=\"a long complaint\"", small, sizeof small);
    assert_string_equal(small, "a long ");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_complaints),
};
UNIT_FILE(tests, NULL, NULL);
