/* What the complaint of a program that fetches means for the pull. */
#include "unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/pull_work.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool is_never_stopping(void *context, uint32_t wait_ms)
{
    (void)context, (void)wait_ms;
    return false;
}

/* What a shell command complains of before it fails. */
static int run(const char *command, struct pull *pull, struct err *err)
{
    const char *const argv[] = {"sh", "-c", command, NULL};
    const struct program program = {.argv = argv, .check_ms = 60000};
    struct reference *reference = mem_zero(1, sizeof *reference);
    struct work *work = mem_zero(1, sizeof *work);
    *pull = (struct pull){.reference = reference, .watch = {NULL, is_never_stopping, NULL}};
    work->pull = pull;
    const int code = program_run(work, &program, err);
    assert_int_equal(work->exit_code, 3);
    mem_free(work);
    mem_free(reference);
    return code;
}

/* Of whatever it says the end is kept, in memory of a fixed size. */
static void test_floods(void **state)
{
    (void)state;
    struct pull pull;
    struct err err = {0};
    assert_true(run("yes warning | head -c 50000000 >&2; echo 'manifest unknown' >&2; exit 3",
                    &pull, &err) < 0);
    assert_string_equal(err.text, "manifest unknown");
    assert_string_equal(pull.reason, "ImageNotFound");
    assert_true(run("exit 3", &pull, &err) < 0);
    assert_string_equal(err.text, "sh ended with code 3");
}

/* Who has inherited the pipe, and lives on, holds nobody up. */
static void test_heirs(void **state)
{
    (void)state;
    struct pull pull;
    struct err err = {0};
    assert_true(run("sleep 1000 & echo $! >&2; exit 3", &pull, &err) < 0);
    const pid_t heir = atoi(err.text);
    assert_true(heir > 1);
    assert_int_equal(kill(heir, SIGKILL), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_complaints),
    cmocka_unit_test(test_floods),
    cmocka_unit_test(test_heirs),
};
UNIT_FILE(tests, NULL, NULL);
