/* Each code of the platform has its phrase and says what may follow; any other is a failure of
 * which nothing is known. */
#include "unit.h"

#include <string.h>

#include "base/memory.h"
#include "model/completion.h"

static void codes_say_what_may_follow(void **state)
{
    (void)state;
    static const struct {
        int32_t code;
        uint8_t attributes;
        const char *phrase;
    } cases[] = {
        {CODE_SUCCEEDED, 0, "Succeeded"},
        {CODE_TRANSIENT, EXIT_TRANSIENT, "ContainerTransientFailed"},
        {CODE_TRANSIENT_CONFLICT, EXIT_TRANSIENT | EXIT_CONFLICT,
         "ContainerTransientConflictFailed"},
        {CODE_PERMANENT, EXIT_PERMANENT, "ContainerPermanentFailed"},
        {CODE_STOP_REQUESTED, EXIT_PERMANENT, "StopFrameworkRequested"},
        {CODE_NODE_LOST, EXIT_TRANSIENT, "PodNodeLost"},
        {CODE_DEADLINE_EXCEEDED, EXIT_PERMANENT | EXIT_NEVER_RETRIED, "PodDeadlineExceeded"},
        {CODE_HUNG, 0, "ContainerHung"},
        {1, 0, "ContainerUnrecognizedFailed"},
        {-999, 0, "ContainerUnrecognizedFailed"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct completion completion = completion_of(cases[i].code, "task %d", 7);
        assert_int_equal(completion.code, cases[i].code);
        assert_int_equal(completion.exit_code, 0);
        assert_int_equal(completion.is_success, cases[i].code == CODE_SUCCEEDED);
        assert_int_equal(completion.attributes, cases[i].attributes);
        assert_string_equal(completion.phrase, cases[i].phrase);
        assert_string_equal(completion.diagnostics, "task 7");
    }
}

static void long_diagnostics_are_cut(void **state)
{
    (void)state;
    char words[2 * sizeof((struct completion *)NULL)->diagnostics];
    memset(words, 'w', sizeof words);
    words[sizeof words - 1] = '\0';
    struct completion completion = completion_of(CODE_HUNG, "%s", words);
    assert_int_equal(strlen(completion.diagnostics), sizeof completion.diagnostics - 1);
    assert_memory_equal(completion.diagnostics, words, sizeof completion.diagnostics - 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(codes_say_what_may_follow),
    cmocka_unit_test(long_diagnostics_are_cut),
};
UNIT_FILE(tests, NULL, NULL);
