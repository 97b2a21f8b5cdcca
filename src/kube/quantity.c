#include "kube/quantity.h"

#include "base/memory.h"

enum { MILLI = 1000, EXPONENT_MAX = 18 };

static bool digit_is(char c)
{
    return c >= '0' && c <= '9';
}

static bool scale(int64_t *value, int64_t factor)
{
    return !__builtin_mul_overflow(*value, factor, value);
}

/* Digits, a point, digits: in thousandths. */
static bool number_read(struct text *rest, int64_t *milli)
{
    bool has_digit = false, is_fraction = false;
    int64_t unit = MILLI; /* of the next digit of the fraction, times ten */
    *milli = 0;
    for (; rest->length > 0; rest->at++, rest->length--) {
        const char c = rest->at[0];
        if (c == '.' && !is_fraction) {
            is_fraction = true;
            continue;
        }
        if (!digit_is(c))
            break;
        has_digit = true;
        if (is_fraction)
            unit /= 10;
        else if (!scale(milli, 10))
            return false;
        int64_t digit = (c - '0') * (is_fraction ? unit : MILLI);
        if (__builtin_add_overflow(*milli, digit, milli))
            return false;
    }
    return has_digit;
}

static bool exponent_apply(struct text exponent, int64_t *milli)
{
    int64_t power;
    if (exponent.length > 1 && exponent.at[0] == '+')
        exponent = (struct text){exponent.at + 1, exponent.length - 1};
    if (!text_to_int64(exponent, &power) || power < -EXPONENT_MAX || power > EXPONENT_MAX)
        return false;
    for (; power > 0; power--)
        if (!scale(milli, 10))
            return false;
    for (; power < 0; power++)
        *milli /= 10;
    return true;
}

static bool suffix_apply(struct text suffix, int64_t *milli)
{
    static const struct {
        const char *name;
        int64_t factor, divisor;
    } suffixes[] = {
        {"", 1, 1},
        {"n", 1, 1000000000},
        {"u", 1, 1000000},
        {"m", 1, 1000},
        {"k", 1000, 1},
        {"M", 1000000, 1},
        {"G", 1000000000, 1},
        {"T", 1000000000000, 1},
        {"P", 1000000000000000, 1},
        {"E", 1000000000000000000, 1},
        {"Ki", INT64_C(1) << 10, 1},
        {"Mi", INT64_C(1) << 20, 1},
        {"Gi", INT64_C(1) << 30, 1},
        {"Ti", INT64_C(1) << 40, 1},
        {"Pi", INT64_C(1) << 50, 1},
        {"Ei", INT64_C(1) << 60, 1},
    };
    for (size_t i = 0; i < COUNT_OF(suffixes); i++)
        if (text_is(suffix, suffixes[i].name)) {
            *milli /= suffixes[i].divisor;
            return scale(milli, suffixes[i].factor);
        }
    if (suffix.at[0] != 'e' && suffix.at[0] != 'E')
        return false;
    return exponent_apply((struct text){suffix.at + 1, suffix.length - 1}, milli);
}

bool quantity_read(struct text text, int64_t *milli)
{
    int64_t value;
    if (!number_read(&text, &value) || !suffix_apply(text, &value))
        return false;
    *milli = value;
    return true;
}
