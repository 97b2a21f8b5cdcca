#include "doc/build.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool scalar_is_null(struct text text)
{
    return text.length == 0 || text_is(text, "~") || text_is(text, "null") ||
           text_is(text, "Null") || text_is(text, "NULL");
}

bool scalar_to_bool(struct text text, bool *value)
{
    if (text_is(text, "true") || text_is(text, "True") || text_is(text, "TRUE")) {
        *value = true;
        return true;
    }
    if (text_is(text, "false") || text_is(text, "False") || text_is(text, "FALSE")) {
        *value = false;
        return true;
    }
    return false;
}

static int digit_value(char c, unsigned base)
{
    int value = is_digit(c)                              ? c - '0'
                : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                         : 99;
    return value < (int)base ? value : -1;
}

static bool based_to_int(struct text digits, unsigned base, int64_t *value)
{
    int64_t sum = 0;
    for (size_t i = 0; i < digits.length; i++) {
        int digit = digit_value(digits.at[i], base);
        if (digit < 0 || __builtin_mul_overflow(sum, (int64_t)base, &sum) ||
            __builtin_add_overflow(sum, (int64_t)digit, &sum))
            return false;
    }
    *value = sum;
    return digits.length > 0;
}

bool scalar_to_int(struct text text, int64_t *value)
{
    if (text_starts(text, TEXT("0o")))
        return based_to_int((struct text){text.at + 2, text.length - 2}, 8, value);
    if (text_starts(text, TEXT("0x")))
        return based_to_int((struct text){text.at + 2, text.length - 2}, 16, value);
    if (text.length > 1 && text.at[0] == '+' && is_digit(text.at[1]))
        return text_to_int64((struct text){text.at + 1, text.length - 1}, value);
    return text_to_int64(text, value);
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_real(struct text text)
{
    size_t at = 0, before = 0, after = 0;
    const char *c = text.at;
    if (at < text.length && (c[at] == '-' || c[at] == '+'))
        at++;
    for (; at < text.length && is_digit(c[at]); at++)
        before++;
    if (at < text.length && c[at] == '.') {
        for (at++; at < text.length && is_digit(c[at]); at++)
            after++;
    }
    if (before + after == 0)
        return false;
    if (at < text.length && (c[at] == 'e' || c[at] == 'E')) {
        at++;
        if (at < text.length && (c[at] == '-' || c[at] == '+'))
            at++;
        size_t first = at;
        while (at < text.length && is_digit(c[at]))
            at++;
        if (at == first)
            return false;
    }
    return at == text.length;
}

bool scalar_to_real(struct text text, double *value)
{
    struct text bare = text;
    bool is_signed = text.length > 0 && (text.at[0] == '-' || text.at[0] == '+');
    if (is_signed)
        bare = (struct text){text.at + 1, text.length - 1};
    if (text_is(bare, ".inf") || text_is(bare, ".Inf") || text_is(bare, ".INF")) {
        *value = text.at[0] == '-' ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    if (text_is(text, ".nan") || text_is(text, ".NaN") || text_is(text, ".NAN")) {
        *value = (double)NAN;
        return true;
    }
    if (!is_real(text))
        return false;
    *value = strtod(text.at, NULL); /* what follows the text cannot go on with the number */
    return true;
}

void scalar_resolve(struct doc *doc)
{
    assert(doc->source.at && doc->source.at[doc->source.length] == '\0');
    doc->kind = DOC_STRING;
    doc->as.string = doc->source;
    /* most scalars are words: only these first characters can start anything else */
    if (doc->source.length && !strchr("~nNtTfF.+-0123456789", doc->source.at[0]))
        return;
    bool boolean;
    int64_t integer;
    double real;
    if (scalar_is_null(doc->source)) {
        doc->kind = DOC_NULL;
    } else if (scalar_to_bool(doc->source, &boolean)) {
        doc->kind = DOC_BOOL;
        doc->as.boolean = boolean;
    } else if (scalar_to_int(doc->source, &integer)) {
        doc->kind = DOC_INT;
        doc->as.integer = integer;
    } else if (scalar_to_real(doc->source, &real)) {
        doc->kind = DOC_REAL;
        doc->as.real = real;
    }
}
