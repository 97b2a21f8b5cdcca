#define PCRE2_CODE_UNIT_WIDTH 8
#include "job/expression.h"
#include "base/memory.h"
#include "job/exit_judge.h"
#include "job/exit_rules.h"
#include <assert.h>
#include <ctype.h>
#include <pcre2.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    REPEAT_MAX = 1000, /* RE2's */
    GROUPS_MAX = 250,
    HEAP_LIMIT_KIB = 20480,
};

/* ---- is it RE2's? ---- */

struct scan {
    struct text source;
    size_t at;
    char *reason;
    unsigned depth;
};

static bool wrong(struct scan *scan, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(struct scan *scan, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(scan->reason, 160, format, args);
    va_end(args);
    return false;
}

static int peek(const struct scan *scan, size_t ahead)
{
    const size_t at = scan->at + ahead;
    return at < scan->source.length ? (unsigned char)scan->source.at[at] : -1;
}

static bool is_octal(int c)
{
    return c >= '0' && c <= '7';
}

/* Behind a digit string or {…} that belongs to the escape just taken. */
static void skip_argument(struct scan *scan, int letter)
{
    if ((letter == 'x' || letter == 'p' || letter == 'P') && peek(scan, 0) == '{') {
        while (peek(scan, 0) >= 0 && peek(scan, 0) != '}')
            scan->at++;
        scan->at += peek(scan, 0) == '}';
    } else if (letter == 'x') {
        for (int i = 0; i < 2 && isxdigit(peek(scan, 0)); i++)
            scan->at++;
    } else if (letter == '0') {
        for (int i = 0; i < 2 && is_octal(peek(scan, 0)); i++)
            scan->at++;
    } else if (letter == 'p' || letter == 'P') {
        scan->at += peek(scan, 0) >= 0;
    }
}

/* At a backslash; leaves the scan behind the escape. */
static bool check_escape(struct scan *scan, bool is_in_class)
{
    const int c = peek(scan, 1);
    if (c < 0)
        return wrong(scan, "ends with a backslash");
    if (c >= '1' && c <= '9') {
        if (is_octal(c) && is_octal(peek(scan, 2)) && is_octal(peek(scan, 3))) {
            scan->at += 4;
            return true;
        }
        return wrong(scan, "\\%c refers back to a group, which RE2 cannot", c);
    }
    if (c == 'Q' && !is_in_class) {
        scan->at += 2;
        while (peek(scan, 0) >= 0 && !(peek(scan, 0) == '\\' && peek(scan, 1) == 'E'))
            scan->at++;
        scan->at += peek(scan, 0) >= 0 ? 2 : 0;
        return true;
    }
    const char *letters = is_in_class ? "aftnrxdDsSwWpP0" : "aftnrxdDsSwWpP0bBAz";
    if (c >= 0x80 || (isalnum(c) && !strchr(letters, c)))
        return wrong(scan, "\\%c is not one of RE2's escapes%s", c < 0x80 ? c : '?',
                     c == 'v' ? "; write \\x0b" : "");
    scan->at += 2;
    skip_argument(scan, c);
    return true;
}

/* At '['; leaves the scan behind ']'. */
static bool check_class(struct scan *scan)
{
    scan->at++;
    if (peek(scan, 0) == '^')
        scan->at++;
    if (peek(scan, 0) == ']')
        scan->at++;
    while (peek(scan, 0) != ']') {
        if (peek(scan, 0) < 0)
            return wrong(scan, "a [ is not closed");
        if (peek(scan, 0) == '\\') {
            if (!check_escape(scan, true))
                return false;
        } else if (peek(scan, 0) == '[' && peek(scan, 1) == ':') {
            scan->at += 2;
            while (isalpha(peek(scan, 0)) || peek(scan, 0) == '^')
                scan->at++;
            if (peek(scan, 0) != ':' || peek(scan, 1) != ']')
                return wrong(scan, "a [: is not closed");
            scan->at += 2;
        } else if (peek(scan, 0) == '[' && (peek(scan, 1) == '.' || peek(scan, 1) == '=')) {
            return wrong(scan, "[%c…%c] is not RE2's", peek(scan, 1), peek(scan, 1));
        } else {
            scan->at++;
        }
    }
    scan->at++;
    return true;
}

/* At '('; leaves the scan inside the group, or behind a group of flags alone. */
static bool check_group(struct scan *scan)
{
    if (peek(scan, 1) == '*')
        return wrong(scan, "(* is not RE2's");
    scan->depth++;
    if (peek(scan, 1) != '?') {
        scan->at++;
        return true;
    }
    size_t at = 2;
    const bool is_named =
        (peek(scan, 2) == 'P' && peek(scan, 3) == '<') ||
        (peek(scan, 2) == '<' && (isalpha(peek(scan, 3)) || peek(scan, 3) == '_'));
    if (is_named) {
        while (peek(scan, at) >= 0 && peek(scan, at) != '>')
            at++;
        scan->at += at + 1;
        return true;
    }
    while (peek(scan, at) > 0 && strchr("imsU-", peek(scan, at)))
        at++;
    const int end = peek(scan, at);
    if (end != ':' && end != ')')
        return wrong(scan, "(?%c is not RE2's: no look-around, atomic or conditional groups",
                     isprint(end) ? end : '?');
    if (end == ')' && at == 2)
        return wrong(scan, "(?) is empty");
    scan->depth -= end == ')';
    scan->at += at + 1;
    return true;
}

/* Length of a valid {n}, {n,} or {n,m}; 0: the brace is a character. */
static size_t repeat_length(const struct scan *scan, unsigned *most)
{
    size_t at = 1;
    unsigned numbers[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        const size_t first = at;
        for (; isdigit(peek(scan, at)); at++)
            numbers[i] = numbers[i] > REPEAT_MAX
                             ? numbers[i]
                             : numbers[i] * 10 + (unsigned)(peek(scan, at) - '0');
        if (i == 0 && at == first)
            return 0;
        if (i == 0 && peek(scan, at) != ',')
            break;
        at += i == 0;
    }
    *most = numbers[0] > numbers[1] ? numbers[0] : numbers[1];
    return peek(scan, at) == '}' ? at + 1 : 0;
}

/* At a possible quantifier; takes it with its '?'. */
static bool check_quantifier(struct scan *scan, bool *is_taken)
{
    const int c = peek(scan, 0);
    unsigned most = 0;
    size_t length = c == '*' || c == '+' || c == '?' ? 1 : 0;
    if (c == '{')
        length = repeat_length(scan, &most);
    *is_taken = length > 0;
    if (most > REPEAT_MAX)
        return wrong(scan, "repeats more than %d times", REPEAT_MAX);
    scan->at += length;
    if (length > 0 && peek(scan, 0) == '?')
        scan->at++;
    return true;
}

static bool check_source(struct scan *scan)
{
    bool can_repeat = false;
    while (peek(scan, 0) >= 0) {
        const int c = peek(scan, 0);
        bool is_taken = false, is_good = true;
        if (!check_quantifier(scan, &is_taken))
            return false;
        if (is_taken) {
            if (!can_repeat)
                return wrong(scan, "nothing to repeat before a quantifier, or one after another");
            can_repeat = false;
            continue;
        }
        can_repeat = true;
        if (c == '\\') {
            is_good = check_escape(scan, false);
        } else if (c == '[') {
            is_good = check_class(scan);
        } else if (c == '(') {
            is_good = check_group(scan);
            can_repeat = false;
        } else if (c == ')' && scan->depth == 0) {
            return wrong(scan, "a ) is not opened");
        } else {
            scan->depth -= c == ')';
            can_repeat = c != '|';
            scan->at++;
        }
        if (!is_good)
            return false;
    }
    return scan->depth == 0 || wrong(scan, "a ( is not closed");
}

bool exit_expression_check(struct text expression, char reason[160])
{
    struct expression compiled;
    if (!expression_init(&compiled, expression, reason))
        return false;
    expression_release(&compiled);
    return true;
}

/* ---- what any match must contain ---- */

/* Behind the group that opens at `at`; the source has passed the check. */
static void skip_group(struct scan *scan)
{
    unsigned depth = 0;
    do {
        const int c = peek(scan, 0);
        assert(c >= 0);
        if (c == '\\')
            check_escape(scan, false);
        else if (c == '[')
            check_class(scan);
        else {
            depth += c == '(';
            depth -= c == ')';
            scan->at++;
        }
    } while (depth > 0);
}

struct run {
    char at[EXPRESSION_LITERAL_MAX];
    size_t length;
};

static void run_end(struct run *run, struct expression *expression)
{
    if (run->length > expression->literal_length && run->length >= EXPRESSION_LITERAL_MIN) {
        memcpy(expression->literal, run->at, run->length);
        expression->literal_length = (uint8_t)run->length;
    }
    run->length = 0;
}

/* The next character at the top level if it stands for itself, else -1; behind it. */
static int take_plain(struct scan *scan)
{
    const int c = peek(scan, 0);
    if (c == '\\') {
        const int escaped = peek(scan, 1);
        check_escape(scan, false);
        return isalnum(escaped) ? -1 : escaped;
    }
    if (c == '[')
        check_class(scan);
    else if (c == '(')
        skip_group(scan);
    else
        scan->at++;
    return strchr("[(.^$|", c) || c >= 0x80 ? -1 : c;
}

static void literal_find(struct expression *expression, struct text source)
{
    char reason[160];
    struct scan scan = {.source = source, .reason = reason};
    struct run run = {.length = 0};
    while (peek(&scan, 0) >= 0) {
        if (peek(&scan, 0) == '|') { /* either side alone */
            expression->literal_length = 0;
            return;
        }
        const int c = take_plain(&scan);
        const int quantifier = peek(&scan, 0);
        bool is_repeated = false;
        check_quantifier(&scan, &is_repeated);
        if (c >= 0 && (!is_repeated || quantifier == '+') && run.length < sizeof run.at)
            run.at[run.length++] = (char)tolower(c);
        if (c < 0 || is_repeated || run.length == sizeof run.at)
            run_end(&run, expression);
    }
    run_end(&run, expression);
}

/* ---- compile and search ---- */

static bool needs_utf(struct text source)
{
    for (size_t i = 0; i < source.length; i++)
        if ((unsigned char)source.at[i] >= 0x80)
            return true;
    return text_find(source, TEXT("\\p")) != SIZE_MAX ||
           text_find(source, TEXT("\\P")) != SIZE_MAX ||
           text_find(source, TEXT("\\x{")) != SIZE_MAX;
}

bool expression_init(struct expression *expression, struct text source, char reason[160])
{
    *expression = (struct expression){.literal_index = UINT32_MAX};
    struct scan scan = {.source = source, .reason = reason};
    if (source.length > EXIT_EXPRESSION_MAX)
        return wrong(&scan, "longer than %d bytes", EXIT_EXPRESSION_MAX);
    if (!check_source(&scan))
        return false;
    /* logs are bytes: a broken character must not hide what stands beside it */
    uint32_t options = PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE |
                       PCRE2_ALT_CIRCUMFLEX;
    if (needs_utf(source))
        options |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, GROUPS_MAX);
    int code = 0;
    PCRE2_SIZE offset = 0;
    expression->code =
        pcre2_compile((PCRE2_SPTR)source.at, source.length, options, &code, &offset, context);
    pcre2_compile_context_free(context);
    if (!expression->code) {
        PCRE2_UCHAR message[120];
        pcre2_get_error_message(code, message, sizeof message);
        return wrong(&scan, "%s at character %zu", (const char *)message, offset + 1);
    }
    expression->has_automaton =
        automaton_init(&expression->automaton, source, (options & PCRE2_UTF) != 0);
    expression->matches_all = text_is(source, "") || text_is(source, "(?ms).*");
    literal_find(expression, source);
    return true;
}

void expression_release(struct expression *expression)
{
    pcre2_code_free(expression->code);
    automaton_release(&expression->automaton);
    *expression = (struct expression){0};
}

/* The line in which a match ends at `end`; a newline just before the end belongs to its line. */
static struct text line_at(struct text text, size_t end)
{
    size_t first = end > 0 && text.at[end - 1] == '\n' ? end - 1 : end, last = first;
    const size_t earliest = first > EXPRESSION_BEFORE ? first - EXPRESSION_BEFORE : 0;
    while (first > earliest && text.at[first - 1] != '\n')
        first--;
    while (last < text.length && text.at[last] != '\n')
        last++;
    return (struct text){text.at + first, last - first};
}

enum expression_result expression_search(const struct expression *expression, struct text text,
                                         struct text *found)
{
    size_t end = 0;
    if (text.length == 0)
        text.at = "";
    if (!expression->matches_all && !expression->has_automaton)
        return expression_search_slow(expression, text, found);
    if (!expression->matches_all)
        switch (automaton_search(&expression->automaton, text, &end)) {
        case AUTOMATON_NONE:
            return EXPRESSION_NONE;
        case AUTOMATON_GIVEN_UP:
            return EXPRESSION_GIVEN_UP;
        case AUTOMATON_FOUND:
            break;
        }
    if (found)
        *found = line_at(text, end);
    return EXPRESSION_FOUND;
}

enum expression_result expression_search_slow(const struct expression *expression, struct text text,
                                              struct text *found)
{
    if (text.length > EXPRESSION_SLOW_BYTES)
        text = (struct text){text.at + text.length - EXPRESSION_SLOW_BYTES, EXPRESSION_SLOW_BYTES};
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(context, EXPRESSION_SLOW_STEPS);
    pcre2_set_depth_limit(context, EXPRESSION_SLOW_STEPS);
    pcre2_set_heap_limit(context, HEAP_LIMIT_KIB);
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    const char *at = text.length > 0 ? text.at : "";
    const int rc = pcre2_match(expression->code, (PCRE2_SPTR)at, text.length, 0, 0, data, context);
    enum expression_result result = EXPRESSION_GIVEN_UP;
    if (rc >= 0) {
        const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(data);
        if (found)
            *found = (struct text){at + ends[0], ends[1] - ends[0]};
        result = EXPRESSION_FOUND;
    } else if (rc == PCRE2_ERROR_NOMATCH) {
        result = EXPRESSION_NONE;
    }
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    return result;
}
