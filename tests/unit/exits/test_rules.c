/* The built-in table, and an operator's file: what extends it, what is refused and where. */
#include "table.h"
#include "unit.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/random.h"
#include "doc/problem.h"
#include "exits/judge.h"

/* ---- the operator's file ---- */

static struct exit_rules *read_file(const char *text, struct buf *said)
{
    struct problems problems;
    problems_init(&problems, &arena);
    struct exit_rules *read = exit_rules_new(text_of(text), &problems);
    problems_print(&problems, "f", said);
    problems_release(&problems);
    return read;
}

/* Long matches are cut; expressions that match all, alternate or repeat are searched all the same.
 */
static void odd_expressions(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *log;
        bool is_found;
    } cases[] = {
        {"(?ms).*", "anything", true},
        {"abcd|efgh", "xx efgh", true},
        {"ab+cd", "xx ABBCD", false},
        {"(?i)ab+cd", "xx ABBCD", true},
        {"(?i)abc?d{0}(ef|gh)ij\\.k", "ABGHIJ.K", true},
        {"\\x41\\.\\Qb.\\E", "A.b.", true},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnop", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop",
         true},
        {"(?s)aaa.*bbb", "aaa\n\xff\nbbb", true},
        {"\xe4\xb8\xad+$", "x \xff \xe4\xb8\xad\xe4\xb8\xad", true},
        {"^never$", "never\n", false},
        {"(?m)^never$", "x\nnever\n", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf text = BUF_INIT, said = BUF_INIT;
        buf_format(&text,
                   "spec:\n- code: 248\n  phrase: A\n  pattern:\n    runtimeContainerPatterns:\n"
                   "    - userLogRegex: '%s'\n",
                   cases[i].expression);
        struct exit_rules *own = read_file(buf_cstr(&text), &said);
        if (!own)
            fail_msg("%s: %s", cases[i].expression, buf_cstr(&said));
        const struct exit_verdict verdict = judge(
            own, (struct exit_report){
                     .exit_code = 1, .is_user_command = true, .log_tail = text_of(cases[i].log)});
        if ((verdict.completion.code == 248) != cases[i].is_found)
            fail_msg("%s in \"%s\": code %d", cases[i].expression, cases[i].log,
                     verdict.completion.code);
        exit_rules_free(own);
        buf_release(&text);
        buf_release(&said);
    }
    struct buf said = BUF_INIT;
    struct exit_rules *own = read_file(
        "- containerExitCode: 248\n  patterns: [{userLogRegex: 'x+', platformLogRegex: 'y+'}]\n",
        &said);
    char *log = mem_alloc(2 * (EXIT_EXCERPT_MAX + 1));
    memset(log, '.', 2 * (EXIT_EXCERPT_MAX + 1));
    log[0] = 'x';
    log[EXIT_EXCERPT_MAX + 1] = 'y';
    const struct exit_verdict verdict = judge(
        own,
        (struct exit_report){.exit_code = 1,
                             .is_user_command = true,
                             .log_tail = {log, EXIT_EXCERPT_MAX + 1},
                             .platform_tail = {log + EXIT_EXCERPT_MAX + 1, EXIT_EXCERPT_MAX + 1}});
    assert_int_equal(verdict.user_text.length, EXIT_EXCERPT_MAX);
    assert_int_equal(verdict.platform_text.length, EXIT_EXCERPT_MAX);
    mem_free(log);
    exit_rules_free(own);
    buf_release(&said);
}

static void a_pattern_has_a_limit(void **state)
{
    (void)state;
    struct buf said = BUF_INIT, file = BUF_INIT;
    buf_string(&file, "spec:\n- code: 248\n  phrase: A\n  pattern:\n"
                      "    runtimeContainerPatterns:\n    - exitCode: 3\n      userLogRegex: '");
    for (int i = 0; i < EXIT_PATTERN_BYTES_MAX; i++)
        buf_char(&file, 'a');
    buf_string(&file, "'\n");
    assert_null(read_file(buf_cstr(&file), &said));
    assert_non_null(strstr(buf_cstr(&said), "has more than 65536 bytes"));
    buf_release(&file);
    buf_release(&said);
}

static void operator_extends(void **state)
{
    (void)state;
    struct buf said = BUF_INIT;
    struct exit_rules *own = read_file("spec:\n"
                                       "- code: 248\n"
                                       "  phrase: LicenceServerDown\n"
                                       "  behavior: TRANSIENT_CONFLICT\n"
                                       "  reason: no licence\n"
                                       "  pattern:\n"
                                       "    runtimeContainerPatterns:\n"
                                       "    - userLogRegex: 'no licence (left|server)'\n"
                                       "- code: 137\n"
                                       "  phrase: KilledHere\n"
                                       "  behavior: TRANSIENT\n"
                                       "  pattern:\n"
                                       "    runtimeContainerPatterns:\n"
                                       "    - exitCode: 137\n",
                                       &said);
    assert_non_null(own);
    assert_string_equal(buf_cstr(&said), "");
    struct exit_report input = {
        .exit_code = 1, .is_user_command = true, .log_tail = TEXT("no licence left\nMemoryError")};
    struct exit_verdict verdict = judge(own, input);
    assert_int_equal(verdict.completion.code, 248);
    assert_int_equal(verdict.completion.attributes, EXIT_TRANSIENT | EXIT_CONFLICT);
    assert_string_equal(verdict.spec->reaction, "ALWAYS_BACKOFF_RETRY");
    assert_true(verdict.spec->is_operators);
    assert_string_equal(verdict.completion.diagnostics, "no licence (no licence left)");
    input = (struct exit_report){.exit_code = 137, .is_user_command = true};
    verdict = judge(own, input);
    assert_string_equal(verdict.completion.phrase, "KilledHere");
    assert_int_equal(exit_rules_count(own), exit_rules_count(rules) + 1);
    assert_int_equal(exit_rules_patterns(own, 0), 1);
    assert_string_equal(exit_rules_pattern(own, 0, 0).at,
                        "{\"userLogRegex\":\"no licence (left|server)\"}");
    exit_rules_free(own);
    own = read_file("builtin: false\n", &said);
    verdict = judge(own, (struct exit_report){.exit_code = 139, .is_user_command = true});
    assert_false(verdict.is_matched);
    assert_int_equal(verdict.completion.code, 255);
    assert_int_equal(verdict.completion.exit_code, 139);
    exit_rules_free(own);
    /* the operator's own rules stay */
    own = read_file("builtin: false\nspec:\n- code: 248\n  phrase: A\n  pattern:\n"
                    "    runtimeContainerPatterns:\n    - exitCode: 5\n",
                    &said);
    verdict = judge(own, (struct exit_report){.exit_code = 5, .is_user_command = true});
    assert_int_equal(verdict.completion.code, 248);
    exit_rules_free(own);
    exit_rules_free(NULL);
    buf_release(&said);
}

static void other_shapes_are_read(void **state)
{
    (void)state;
    struct buf said = BUF_INIT;
    struct exit_rules *own = read_file("- containerExitCode: 248\n"
                                       "  patterns:\n"
                                       "  - exitCode: 5\n"
                                       "    platformLogRegex: lost\n"
                                       "  - gpuInfo: {nvidiaDoubleEccError: true}\n",
                                       &said);
    assert_non_null(own);
    struct exit_report input = {
        .exit_code = 5, .is_user_command = true, .platform_tail = TEXT("all lost")};
    assert_int_equal(judge(own, input).completion.code, 248);
    input.platform_tail = TEXT("all won");
    assert_int_equal(judge(own, input).completion.code, 5);
    input.has_gpu_ecc_error = true;
    assert_int_equal(judge(own, input).completion.code, 248);
    exit_rules_free(own);
    buf_clear(&said);
    own = read_file("- containerExitCode: 249\n"
                    "  patterns: [{gpuInfo: {nvidiaGpuLost: true, nvidiaDoubleEccError: true}}]\n"
                    "- containerExitCode: 250\n"
                    "  patterns: [{gpuInfo: {nvidiaGpuGone: true}, exitCode: 7}]\n",
                    &said);
    assert_non_null(own);
    assert_non_null(strstr(buf_cstr(&said), "nvidiaGpuGone")); /* told, and taken for nothing */
    buf_clear(&said);
    assert_int_equal(judge(own, input).completion.code, 128);
    input.has_gpu_lost = true;
    assert_int_equal(judge(own, input).completion.code, 249);
    exit_rules_free(own);
    own = read_file("podFailureSpec:\n"
                    "- code: 221\n"
                    "  phrase: Mine\n"
                    "  type: {name: Failed, attributes: [Transient, Conflict]}\n"
                    "  podPatterns:\n"
                    "  - containers:\n"
                    "    - {codeRange: {min: 7, max: 9}, signalRange: {max: 0}}\n"
                    "- code: 222\n"
                    "  type: {attributes: [Permanent]}\n"
                    "  podPatterns: [{messageRegex: deadbeef}]\n",
                    &said);
    assert_non_null(own);
    input = (struct exit_report){.exit_code = 8, .is_user_command = true};
    assert_int_equal(judge(own, input).completion.attributes, EXIT_TRANSIENT | EXIT_CONFLICT);
    input.signal = 1;
    assert_int_equal(judge(own, input).completion.code, 8);
    input.message = "0xdeadbeef";
    assert_int_equal(judge(own, input).completion.attributes, EXIT_PERMANENT);
    exit_rules_free(own);
    assert_string_equal(buf_cstr(&said), "");
    buf_release(&said);
}

static void bad_files_say_where(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"x", "must be a map or a list"},
        {"spec: 5", "f:1:7: spec: must be a list, is an integer"},
        {"spec: [5]", "spec[0]: must be a map, is an integer"},
        {"spec: [{phrase: A}]", "spec[0]: has no code"},
        {"spec: [{code: a, phrase: A}]", "spec[0].code: must be an integer, is a string"},
        {"spec: [{code: 257, phrase: A}]", "must be in -8000..256, is 257"},
        {"spec: [{code: 1}]", "spec[0].phrase: must have 1..47 characters"},
        {"spec: [{code: 1, phrase: A}, {code: 1, phrase: B}]", "code 1 is there twice"},
        {"spec: [{code: 1, phrase: A, issuer: ME}]", "'ME' is none of USER_CONTAINER"},
        {"spec: [{code: 1, phrase: A, solution: [1]}]", "solution[0]: must be a string"},
        {"spec: [{code: 1, phrase: A, pattern: {runtimeContainerPatterns: [{}]}}]",
         "has no condition and would match all"},
        {"spec: [{code: 1, phrase: A, pattern: {runtimeContainerPatterns: [7]}}]",
         "runtimeContainerPatterns[0]: must be a map"},
        {"spec: [{code: 1, phrase: A, pattern: {controllerPodPatterns: [{containers: [1]}]}}]",
         "containers[0]: must be a map"},
        {"spec: [{code: 1, phrase: A, pattern: {runtimeContainerPatterns: [{userLogRegex: "
         "'(?=a)'}]}}]",
         "userLogRegex: expression: invalid perl operator: (?="},
        {"spec: [{code: 1, phrase: A, pattern: {runtimeContainerPatterns: [{exitCode: 256}]}}]",
         "must be in 0..255"},
        {"- {}", "[0]: has no containerExitCode"},
        {"- {containerExitCode: 0}", "must be in 1..255"},
        {"podFailureSpec: [{}]", "has no code"},
        {"podFailureSpec: [{code: 200, podPatterns: [{reasonRegex: a}]}]", "must not be in -999"},
        {"podFailureSpec: [{code: 220}]", "has no podPatterns"},
        {"podFailureSpec: [{code: 220, podPatterns: 5}]", "has no podPatterns"},
        {"podFailureSpec: [{code: 220, podPatterns: []}]", "has no podPatterns"},
        {"podFailureSpec: [{code: -5, podPatterns: [{reasonRegex: a}]}]", "must not be in -999"},
        {"podFailureSpec: [{code: 9, podPatterns: [{reasonRegex: a}]}, {code: 9, podPatterns: "
         "[{reasonRegex: a}]}]",
         "code 9 is there twice"},
        {"podFailureSpec: [{code: 9, phrase: "
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, podPatterns: "
         "[{reasonRegex: a}]}]",
         "1..47 characters"},
        {"[{containerExitCode: 9}, {containerExitCode: 9}]", "code 9 is there twice"},
        {"podFailureSpec: [{code: 220, type: {name: Succeeded}, podPatterns: [{reasonRegex: a}]}]",
         "must be Failed"},
        {"a: [", "f:"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buf said = BUF_INIT;
        struct exit_rules *read = read_file(cases[i].text, &said);
        if (read || text_find(buf_as_text(&said), text_of(cases[i].want)) == SIZE_MAX)
            fail_msg("%s: wanted \"%s\", got \"%s\"", cases[i].text, cases[i].want,
                     buf_cstr(&said));
        buf_release(&said);
    }
    struct buf said = BUF_INIT;
    struct exit_rules *read =
        read_file("odd: 1\nspec: [{code: 1, phrase: A, behavior: TRANSIENT, reaction: "
                  "NEVER_RETRY, colour: red}]\npodFailureSpec: [{code: 2, phrase: B, type: "
                  "{attributes: [Odd]}, podPatterns: [{reasonRegex: a}]}]",
                  &said);
    assert_non_null(read);
    assert_non_null(strstr(buf_cstr(&said), "warning: "));
    assert_non_null(strstr(buf_cstr(&said), "ALWAYS_RETRY"));
    assert_non_null(strstr(buf_cstr(&said), "'Odd' has no meaning"));
    exit_rules_free(read);
    buf_release(&said);
}

static void limits_of_the_file(void **state)
{
    (void)state;
    struct buf text = BUF_INIT, said = BUF_INIT;
    buf_string(&text, "spec:\n");
    for (int i = 0; i <= EXIT_SPECS_MAX; i++)
        buf_format(&text, "- {code: %d, phrase: A%d}\n", -2000 - i, i);
    assert_null(read_file(buf_cstr(&text), &said));
    assert_non_null(strstr(buf_cstr(&said), "more than 1000 codes"));
    buf_clear(&text);
    buf_clear(&said);
    buf_string(&text, "spec:\n- code: 1\n  phrase: A\n  pattern:\n    runtimeContainerPatterns:\n");
    for (int i = 0; i <= EXIT_PATTERNS_MAX; i++)
        buf_string(&text, "    - {exitCode: 1}\n");
    assert_null(read_file(buf_cstr(&text), &said));
    assert_non_null(strstr(buf_cstr(&said), "more than 4000 patterns"));
    buf_release(&text);
    buf_release(&said);
}

/* An expression made to blow up a backtracking search takes no longer than another. */
static void searches_are_linear(void **state)
{
    (void)state;
    struct buf said = BUF_INIT;
    struct exit_rules *own = read_file(
        "spec: [{code: 248, phrase: A, pattern: {runtimeContainerPatterns: [{userLogRegex: "
        "'(a|aa|aaa)*[bc]z'}, {userLogRegex: '(?s)(a+)+.*.*.*never(x|y)'}]}}]",
        &said);
    assert_non_null(own);
    const size_t size = 1 << 20;
    char *log = mem_alloc(size);
    memset(log, 'a', size);
    memcpy(log + size - 6, "neverz", 6);
    const struct exit_report input = {
        .exit_code = 3, .is_user_command = true, .log_tail = {log, size}};
    const struct exit_verdict verdict = judge(own, input);
    assert_int_equal(verdict.completion.code, 3);
    exit_rules_free(own);
    /* this one has more states than can be kept: it costs its length for each byte */
    own = read_file("spec: [{code: 248, phrase: A, pattern: {runtimeContainerPatterns: "
                    "[{userLogRegex: '(a|b)*a(a|b){300}c'}]}}]",
                    &said);
    assert_non_null(own);
    struct random random = {.state = 5};
    for (size_t i = 0; i < size; i++)
        log[i] = random_below(&random, 2) ? 'a' : 'b';
    const struct exit_verdict other = judge(own, input);
    assert_int_equal(other.completion.code, 3);
    mem_free(log);
    exit_rules_free(own);
    buf_release(&said);
}

static void table_is_whole(void **state)
{
    (void)state;
    assert_true(exit_rules_count(rules) >= 62);
    for (size_t i = 0; i < exit_rules_count(rules); i++) {
        const struct exit_spec *spec = exit_rules_at(rules, i);
        assert_ptr_equal(exit_rules_exact(rules, spec->code), spec);
        assert_true(spec->reason[0] != '\0' && spec->phrase[0] != '\0');
    }
    assert_null(exit_rules_exact(rules, 7));
    assert_int_equal(exit_rules_find(rules, 7)->code, 255);
    assert_int_equal(exit_rules_find(rules, 300)->code, 256);
    assert_int_equal(exit_rules_find(rules, -7)->code, -8000);
    assert_int_equal(exit_rules_find(rules, 0)->code, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(odd_expressions),     cmocka_unit_test(a_pattern_has_a_limit),
    cmocka_unit_test(operator_extends),    cmocka_unit_test(other_shapes_are_read),
    cmocka_unit_test(bad_files_say_where), cmocka_unit_test(limits_of_the_file),
    cmocka_unit_test(searches_are_linear), cmocka_unit_test(table_is_whole),
};
UNIT_FILE(tests, set_up, tear_down);
