/* What an operator may write; that the filter never hides a match; where a match is said to be. */
#include "unit.h"

#include <string.h>

#include "base/buf.h"
#include "base/memory.h"
#include "base/random.h"
#include "exits/matcher.h"

enum { ROUNDS = 2000, SET = 8, TEXTS = 6, TEXT_MAX = 24 };

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

/* Expressions whose candidates the filter drops must not match, and every expression gives the same
 * answer in a set as alone. */
static void filter_hides_no_match(void **state)
{
    (void)state;
    size_t made = 0, found_count = 0, dropped = 0;
    for (uint64_t round = 1; round <= ROUNDS / unit_every(); round++) {
        random_state.state = round;
        struct matcher *set = matcher_new(), *alone[SET];
        char reason[160];
        size_t count = 0;
        while (count < SET) {
            struct buf source = BUF_INIT;
            draw(&source, 3);
            buf_string(&source, below(2) ? "abc" : ""); /* something to filter by */
            if (matcher_add(set, buf_as_text(&source), reason)) {
                alone[count] = matcher_new();
                assert_true(matcher_add(alone[count], buf_as_text(&source), reason));
                matcher_build(alone[count++]);
            }
            buf_release(&source);
        }
        matcher_build(set);
        assert_int_equal(matcher_count(set), count);
        made += count;
        for (int t = 0; t < TEXTS; t++) {
            struct buf text = BUF_INIT;
            bool candidates[SET];
            draw_text(&text);
            buf_string(&text, below(3) == 0 ? "aBc" : "");
            matcher_filter(set, buf_as_text(&text), candidates);
            for (size_t i = 0; i < count; i++) {
                const bool is_found = matcher_search(alone[i], 0, buf_as_text(&text), NULL);
                if (is_found && !candidates[i])
                    fail_msg("round %llu: expression %zu in \"%s\" is hidden by the filter",
                             (unsigned long long)round, i, buf_cstr(&text));
                assert_int_equal(matcher_search(set, i, buf_as_text(&text), NULL), is_found);
                found_count += is_found;
                dropped += !candidates[i];
            }
            buf_release(&text);
        }
        matcher_free(set);
        for (size_t i = 0; i < count; i++)
            matcher_free(alone[i]);
    }
    /* the drawing must not go stale */
    assert_true(found_count > made / 2 && dropped > made / 2);
}

static struct matcher *matcher_of(const char *expression)
{
    struct matcher *matcher = matcher_new();
    char reason[160];
    if (!matcher_add(matcher, text_of(expression), reason))
        fail_msg("%s: %s", expression, reason);
    matcher_build(matcher);
    return matcher;
}

static void the_line_is_found(void **state)
{
    (void)state;
    struct matcher *matcher = matcher_of("(?m)wrong\\n|bad$");
    struct text line;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"first\nall wrong\nlast", "all wrong"}, {"wrong\n", "wrong"}, {"so bad", "so bad"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(matcher_search(matcher, 0, text_of(cases[i].text), &line));
        assert_true(text_is(line, cases[i].want));
    }
    char wide[400];
    memset(wide, '.', sizeof wide);
    memcpy(wide + sizeof wide - 3, "bad", 3);
    assert_true(matcher_search(matcher, 0, (struct text){wide, sizeof wide}, &line));
    assert_int_equal(line.length, MATCHER_BEFORE);
    matcher_free(matcher);
    matcher = matcher_of("");
    assert_true(matcher_search(matcher, 0, (struct text){0}, &line));
    assert_int_equal(line.length, 0);
    matcher_free(matcher);
}

/* A byte that is no UTF-8 hides nothing from an expression on bytes; one with characters beyond
 * ASCII knows them whole. */
static void bytes_and_characters(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *text;
        bool is_found;
    } cases[] = {
        {"(?s)loss.*nan", "loss \xff\xfe nan", true},
        {"^.$", "\xc3\xa9", false},
        {"^[\xc3\xa9]$", "\xc3\xa9", true},
        {"\\p{Greek}+x", "a \xce\xb1\xce\xb2x", true},
        {"\\p{Greek}+x", "a x", false},
        {"(?i)\xc3\x89t\xc3\xa9", "\xc3\xa9T\xc3\x89", true},
        {"\xe4\xb8\xad", "\xff\xe4\xb8\xad", true},
        {"(?i)OUT of memory", "oUt OF Memory", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct matcher *matcher = matcher_of(cases[i].expression);
        bool is_candidate = false;
        matcher_filter(matcher, text_of(cases[i].text), &is_candidate);
        if (matcher_search(matcher, 0, text_of(cases[i].text), NULL) != cases[i].is_found ||
            (cases[i].is_found && !is_candidate))
            fail_msg("/%s/ in \"%s\"", cases[i].expression, cases[i].text);
        matcher_free(matcher);
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
        "(?<name>x)", "(?=a)",     "(?!a)",
        "(?<=a)",     "(?<!a)",    "(?>a)",
        "(?|a)",      "(?R)",      "(?1)",
        "(?P=n)",     "(?P>n)",    "(?(1)a)",
        "(?#c)",      "(*FAIL)",   "\\1",
        "\\8",        "\\g1",      "\\k<n>",
        "\\K",        "\\G",       "\\Z",
        "\\X",        "\\R",       "\\h",
        "\\N",        "a*+",       "a++",
        "a**",        "a{2}{3}",   "*a",
        "a|*",        "(*",        "(",
        ")",          "a)",        "[a",
        "[[:alpha",   "\\",        "[\\b]",
        "[\\",        "a{1001}",   "a{5,99999}",
        "(?x)a",      "(?",        "(?P<n",
        "(?<n",       "\\p",       "\\p{L",
        "\\x{41",     "((a)",      "\\p{Nonsense}",
        "[z-a]",      "\\xe4\xb8", "(?i",
        "[[:alpha:",  "\\\xe4",    "a{3,2}",
    };
    char reason[160];
    struct matcher *matcher = matcher_new();
    for (size_t i = 0; i < COUNT_OF(good); i++)
        if (!matcher_add(matcher, text_of(good[i]), reason))
            fail_msg("%s: %s", good[i], reason);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        reason[0] = '\0';
        if (matcher_add(matcher, text_of(bad[i]), reason) || reason[0] == '\0')
            fail_msg("%s is taken", bad[i]);
    }
    assert_int_equal(matcher_count(matcher), COUNT_OF(good));
    char *long_one = mem_zero(MATCHER_EXPRESSION_MAX + 2, 1);
    memset(long_one, 'a', MATCHER_EXPRESSION_MAX);
    assert_true(matcher_add(matcher, text_of(long_one), reason));
    long_one[MATCHER_EXPRESSION_MAX] = 'a';
    assert_false(matcher_add(matcher, text_of(long_one), reason));
    mem_free(long_one);
    assert_false(matcher_add(matcher, TEXT("([ab]{900}c){7}"), reason) || !reason[0]);
    matcher_free(matcher);
}

/* A large expression is searched in the end of a text, so that no text can keep it busy. */
static void large_expressions_see_the_end(void **state)
{
    (void)state;
    struct matcher *matcher = matcher_of("z[ab]{900}");
    const size_t size = 4 << 20;
    char *text = mem_alloc(size);
    memset(text, 'b', size);
    text[0] = 'z';
    assert_false(matcher_search(matcher, 0, (struct text){text, size}, NULL));
    text[size - 1000] = 'z';
    assert_true(matcher_search(matcher, 0, (struct text){text, size}, NULL));
    matcher_free(matcher);
    matcher = matcher_of("z[ab]+");
    text[size - 1000] = 'c';
    assert_true(matcher_search(matcher, 0, (struct text){text, size}, NULL));
    matcher_free(matcher);
    mem_free(text);
}

/* Of lines, nothing that an expression says goes beyond their ends. */
static void no_match_goes_beyond_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *text, *line; /* NULL: no match */
    } cases[] = {
        {"(?m)error\\s*$", "an error \n\n\nnext", "an error "},
        {"error: [^.]*", "an error: x\nmore\nend.", "an error: x"},
        {"(?s)a.*", "a1\na2\n", "a1"},
        {"one\\ntwo", "one\ntwo", NULL},
        {"one[\\n]two", "one\ntwo", NULL},
        {"(?m)^$", "a\n\nb", ""},
        {"(?m)^$", "a\nb", NULL},
        {"(?m)^\\s*$", "a\n  \nb", "  "},
        {"(?m)^b", "a\nb", "b"},
        {"\xc3\xa9\\s*", "x\xc3\xa9\n\ny", "x\xc3\xa9"},
        {"(?m)^$", "", ""},
    };
    char reason[160];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct matcher *matcher = matcher_new_of_lines();
        struct text found = {NULL, 0};
        assert_true(matcher_add(matcher, text_of(cases[i].expression), reason));
        matcher_build(matcher);
        const bool is_found = matcher_search(matcher, 0, text_of(cases[i].text), &found);
        if (is_found != (cases[i].line != NULL) || (is_found && !text_is(found, cases[i].line)))
            fail_msg("%s: \"%.*s\"", cases[i].expression, TEXT_ARG(found));
        if (is_found) /* a place in the text, also of an empty one */
            assert_true(found.at >= cases[i].text);
        matcher_free(matcher);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(filter_hides_no_match),       cmocka_unit_test(the_line_is_found),
    cmocka_unit_test(no_match_goes_beyond_a_line), cmocka_unit_test(bytes_and_characters),
    cmocka_unit_test(expressions_of_re2),          cmocka_unit_test(large_expressions_see_the_end),
};
UNIT_FILE(tests, NULL, NULL);
