/* The automaton must find exactly what PCRE2 finds: random expressions on random texts. What an
 * operator may write, and the literals that are looked for first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/random.h"
#include "job/exit_rules.h"
#include "job/expression.h"
#include "job/literals.h"

enum { ROUNDS = 20000, TEXTS = 6, TEXT_MAX = 24 };

static struct random random_state;

static uint64_t below(uint64_t limit)
{
    return random_below(&random_state, limit);
}

static void draw(struct buf *out, int depth);

static void draw_atom(struct buf *out, int depth)
{
    static const char *const atoms[] = {
        "a",           "b",
        "A",           "_",
        "\\.",         ".",
        "[ab]",        "[^a\\n]",
        "[a-c]",       "\\d",
        "\\W",         "\\s",
        "^",           "$",
        "\\b",         "\\B",
        "\\A",         "\\z",
        "\\n",         "\\x41",
        "[[:upper:]]", "[^[:alpha:]]",
        "\\Qa.b\\E",   "1",
        "[\\w-]",      "[]a]",
        "[^]]",        "\\012",
        "(?i)",        "(?s)",
        "(?m)",        "[a\\-c]",
        "\\S",         " ",
    };
    static const char *const wide[] = {"\xc3\xa9",    "[\xc3\xa9-\xe4\xb8\xad]",
                                       "[^\xc3\xa9]", "\\x{4e2d}",
                                       "\\x{1F600}",  "[a-\\x{10FFFF}]"};
    const uint64_t kind = below(12);
    if (kind < 2 && depth > 0) {
        static const char *const groups[] = {"(", "(?:", "(?i:", "(?s-i:", "(?P<n>", "(?<m>"};
        /* two groups of one name are refused, as they should be */
        buf_string(out, groups[below(4)]);
        draw(out, depth - 1);
        buf_char(out, ')');
    } else if (kind == 2) {
        buf_string(out, wide[below(COUNT_OF(wide))]);
    } else {
        buf_string(out, atoms[below(COUNT_OF(atoms))]);
    }
}

static void draw(struct buf *out, int depth)
{
    /* without {0}: PCRE2 10.42 takes /(^a){0}b/ for anchored */
    static const char *const quantifiers[] = {"*",    "+",  "?",      "{2}", "{1,3}",
                                              "{2,}", "*?", "{0,2}?", "{,2}"};
    const uint64_t length = 1 + below(4);
    for (uint64_t i = 0; i < length; i++) {
        draw_atom(out, depth);
        if (below(3) == 0)
            buf_string(out, quantifiers[below(COUNT_OF(quantifiers))]);
        if (below(9) == 0)
            buf_char(out, '|');
    }
}

static void draw_text(struct buf *out)
{
    static const char *const parts[] = {"a",
                                        "b",
                                        "A",
                                        "B",
                                        "c",
                                        "1",
                                        "_",
                                        " ",
                                        "\n",
                                        ".",
                                        "-",
                                        "]",
                                        "\xc3\xa9",
                                        "\xe4\xb8\xad",
                                        "\xf0\x9f\x98\x80",
                                        "\t"};
    const uint64_t length = below(TEXT_MAX);
    for (uint64_t i = 0; i < length; i++)
        buf_string(out, parts[below(COUNT_OF(parts))]);
}

static void agrees_with_pcre2(void **state)
{
    (void)state;
    size_t compared = 0, found_count = 0, made = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        random_state.state = round;
        struct buf source = BUF_INIT, text = BUF_INIT;
        draw(&source, 3);
        struct expression expression;
        char reason[160];
        if (expression_init(&expression, buf_as_text(&source), reason)) {
            made++;
            for (int t = 0; t < TEXTS && expression.has_automaton; t++) {
                buf_clear(&text);
                draw_text(&text);
                struct text match, line;
                const enum expression_result slow =
                    expression_search_slow(&expression, buf_as_text(&text), &match);
                const enum expression_result fast =
                    expression_search(&expression, buf_as_text(&text), &line);
                if (slow == EXPRESSION_GIVEN_UP)
                    continue;
                if (slow != fast)
                    fail_msg("round %llu: /%s/ in \"%s\": PCRE2 %d, we %d",
                             (unsigned long long)round, buf_cstr(&source), buf_cstr(&text), slow,
                             fast);
                compared++;
                found_count += slow == EXPRESSION_FOUND;
            }
            expression_release(&expression);
        }
        buf_release(&source);
        buf_release(&text);
    }
    /* the drawing must not go stale */
    assert_true(made > ROUNDS / 2 && compared > ROUNDS && found_count > compared / 10);
}

static void the_line_is_found(void **state)
{
    (void)state;
    struct expression expression;
    char reason[160];
    struct text line;
    assert_true(expression_init(&expression, TEXT("wrong\\n|bad$"), reason));
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"first\nall wrong\nlast", "all wrong"}, {"wrong\n", "wrong"}, {"so bad", "so bad"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(expression_search(&expression, text_of(cases[i].text), &line),
                         EXPRESSION_FOUND);
        assert_true(text_is(line, cases[i].want));
    }
    char wide[400];
    memset(wide, '.', sizeof wide);
    memcpy(wide + sizeof wide - 3, "bad", 3);
    expression_search(&expression, (struct text){wide, sizeof wide}, &line);
    assert_int_equal(line.length, EXPRESSION_BEFORE);
    expression_release(&expression);
}

/* \p is PCRE2's: found at the end of the text, within limits. */
static void the_rest_is_left_to_pcre2(void **state)
{
    (void)state;
    struct expression expression;
    char reason[160];
    assert_true(expression_init(&expression, TEXT("\\p{Greek}+x"), reason));
    assert_false(expression.has_automaton);
    assert_int_equal(expression_search(&expression, TEXT("a \xce\xb1\xce\xb2x"), NULL),
                     EXPRESSION_FOUND);
    assert_int_equal(expression_search(&expression, (struct text){0}, NULL), EXPRESSION_NONE);
    expression_release(&expression);
    static const char *const slow[] = {"\\Qab\\E+", "(a{999}){30}", "\\PL"};
    for (size_t i = 0; i < COUNT_OF(slow); i++) {
        assert_true(expression_init(&expression, text_of(slow[i]), reason));
        assert_false(expression.has_automaton);
        expression_release(&expression);
    }
    assert_true(expression_init(&expression, TEXT("(\\pL+\\pL+)+\\d!"), reason));
    char *text = mem_alloc(200000);
    memset(text, 'a', 200000);
    memcpy(text + 199998, "1?", 2);
    text[0] = '!';
    memcpy(text + 150000, "!", 1);
    assert_int_equal(expression_search(&expression, (struct text){text, 200000}, NULL),
                     EXPRESSION_GIVEN_UP);
    mem_free(text);
    expression_release(&expression);
}

/* Repetitions within repetitions end at the limit of nodes, at once. */
static void nested_repetitions(void **state)
{
    (void)state;
    static const char *const counts[] = {"{1}",  "{1,1}", "{0}", "{0,1}", "{2}", "{0,2}",
                                         "{1,}", "{2,}",  "*",   "+",     "?"};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct buf source = BUF_INIT;
        for (int level = 0; level < 100; level++)
            buf_char(&source, '(');
        buf_char(&source, 'a');
        for (int level = 0; level < 100; level++)
            buf_format(&source, ")%s", counts[i]);
        struct expression expression;
        char reason[160];
        if (expression_init(&expression, buf_as_text(&source), reason)) {
            if (expression.has_automaton) {
                const enum expression_result result =
                    expression_search(&expression, TEXT("a"), NULL);
                assert_int_not_equal(result, EXPRESSION_GIVEN_UP);
            }
            expression_release(&expression);
        }
        buf_release(&source);
    }
}

static void expressions_of_re2(void **state)
{
    (void)state;
    static const char *const good[] = {
        "",
        "a|b",
        "(?i)^Evicted$",
        "(?ms).*",
        "(?P<name>x)",
        "(?<name>x)",
        "(?:a)b",
        "[]a]",
        "[^]a]",
        "[[:alpha:]_]+",
        "a{2,3}?",
        "a{,5}",
        "a{",
        "a{x}",
        "\\d+\\.\\d*",
        "\\x41",
        "\\x{41}+",
        "\\x{1F600}",
        "\\pL",
        "\\p{Greek}",
        "\\Qa(b\\E",
        "\\Qa(b",
        "\\123",
        "\\0",
        "\\012",
        "(?i-s:a)",
        "[\\d\\-a-z\\x41]",
        "\xe4\xb8\xad+",
        "(?U)a+",
        "a$|^b",
        "a{1000}",
        "\\bx\\B",
        "\\Ax\\z",
        "[[:^digit:]]",
        "(a)(b)",
        "[a[b]",
        "a{3,}",
    };
    static const char *const bad[] = {
        "(?=a)",     "(?!a)",     "(?<=a)",
        "(?<!a)",    "(?>a)",     "(?|a)",
        "(?R)",      "(?1)",      "(?P=n)",
        "(?P>n)",    "(?(1)a)",   "(?#c)",
        "(*FAIL)",   "\\1",       "\\8",
        "\\g1",      "\\k<n>",    "\\K",
        "\\G",       "\\Z",       "\\X",
        "\\R",       "\\h",       "\\v",
        "\\C",       "\\N",       "a*+",
        "a++",       "a**",       "a{2}{3}",
        "*a",        "a|*",       "(*",
        "(",         ")",         "a)",
        "[a",        "[[:alpha",  "[[.a.]]",
        "[[=a=]]",   "\\",        "[\\b]",
        "[\\",       "a{1001}",   "a{5,99999}",
        "(?x)a",     "(?)",       "(?",
        "(?P<n",     "(?<n",      "\\p",
        "\\p{L",     "\\12",      "\\129",
        "\\x{41",    "((a)",      "\\p{Nonsense}",
        "[z-a]",     "\\xe4\xb8", "(?i",
        "[[:alpha:", "\\\xe4",    "a{3,2}",
    };
    char reason[160];
    for (size_t i = 0; i < COUNT_OF(good); i++)
        if (!exit_expression_check(text_of(good[i]), reason))
            fail_msg("%s: %s", good[i], reason);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        reason[0] = '\0';
        if (exit_expression_check(text_of(bad[i]), reason))
            fail_msg("%s is taken", bad[i]);
    }
    char *long_one = mem_zero(EXIT_EXPRESSION_MAX + 2, 1);
    memset(long_one, 'a', EXIT_EXPRESSION_MAX);
    assert_true(exit_expression_check(text_of(long_one), reason));
    long_one[EXIT_EXPRESSION_MAX] = 'a';
    assert_false(exit_expression_check(text_of(long_one), reason));
    mem_free(long_one);
}

static void literals_find_what_is_there(void **state)
{
    (void)state;
    static const char *const words[] = {"out of memory", "memory", "oom",    "he",
                                        "she",           "hers",   "memory", "zzz"};
    struct literals literals;
    literals_init(&literals);
    uint32_t index[COUNT_OF(words)];
    for (size_t i = 0; i < COUNT_OF(words); i++)
        literals_alphabet(&literals, text_of(words[i]));
    for (size_t i = 0; i < COUNT_OF(words); i++)
        index[i] = literals_add(&literals, text_of(words[i]));
    literals_build(&literals);
    assert_int_equal(index[1], index[6]);
    assert_int_equal(literals.count, COUNT_OF(words) - 1);
    bool present[COUNT_OF(words)] = {false};
    literals_scan(&literals, TEXT("CUDA Out Of MEMORY, usHERS"), present);
    assert_true(present[index[0]] && present[index[1]] && present[index[3]] && present[index[4]]);
    assert_true(present[index[5]]);
    assert_false(present[index[2]] || present[index[7]]);
    literals_release(&literals);
    literals_init(&literals);
    literals_build(&literals);
    literals_scan(&literals, TEXT("nothing to find"), present);
    literals_release(&literals);
}

/* The automaton must agree with a plain search, whatever the words and the text. */
static void literals_agree_with_search(void **state)
{
    (void)state;
    struct random random = {.state = 7};
    for (int round = 0; round < 300; round++) {
        char words[12][6];
        struct literals literals;
        literals_init(&literals);
        uint32_t index[12];
        for (int w = 0; w < 12; w++) {
            const size_t length = 1 + random_below(&random, 5);
            for (size_t i = 0; i < length; i++)
                words[w][i] = (char)('a' + random_below(&random, 3));
            words[w][length] = '\0';
            literals_alphabet(&literals, text_of(words[w]));
        }
        for (int w = 0; w < 12; w++)
            index[w] = literals_add(&literals, text_of(words[w]));
        literals_build(&literals);
        char text[30] = {0};
        for (size_t i = 0; i < sizeof text - 1; i++)
            text[i] = (char)('a' + random_below(&random, 4));
        bool present[12] = {false};
        literals_scan(&literals, text_of(text), present);
        for (int w = 0; w < 12; w++)
            assert_int_equal(present[index[w]],
                             text_find(text_of(text), text_of(words[w])) != SIZE_MAX);
        literals_release(&literals);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_pcre2),          cmocka_unit_test(nested_repetitions),
        cmocka_unit_test(the_line_is_found),          cmocka_unit_test(the_rest_is_left_to_pcre2),
        cmocka_unit_test(expressions_of_re2),         cmocka_unit_test(literals_find_what_is_there),
        cmocka_unit_test(literals_agree_with_search),
    };
    return cmocka_run_group_tests_name("expression", tests, NULL, NULL);
}
