#include "api/range.h"
#include <assert.h>
#include <string.h>

/* Digits alone, and nothing but one. A number too large for the type is as large as it can be. */
static bool digits_parse(struct text text, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        const uint64_t digit = (uint64_t)(text.at[i] - '0');
        *value = *value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *value * 10 + digit;
    }
    return text.length > 0;
}

enum range_kind range_parse(struct text header, const struct byte_range *whole,
                            struct byte_range *part)
{
    struct text last = header;
    const struct text unit = text_cut(&last, '=');
    uint64_t first_byte = 0, last_byte = UINT64_MAX - 1;
    assert(whole->begin <= whole->end);
    if (!last.at || !text_is(unit, "bytes"))
        return RANGE_NONE;
    const struct text first = text_cut(&last, '-');
    if (!last.at || (last.length && !digits_parse(last, &last_byte)))
        return RANGE_NONE;
    if (first.length && !digits_parse(first, &first_byte))
        return RANGE_NONE;
    if (!first.length && !last.length)
        return RANGE_NONE;
    if (!first.length) { /* so many last ones */
        first_byte = last_byte < whole->end ? whole->end - last_byte : 0;
        last_byte = UINT64_MAX - 1;
    } else if (last.length && last_byte < first_byte) {
        return RANGE_NONE;
    }
    part->begin = first_byte > whole->begin ? first_byte : whole->begin;
    part->end = last_byte < whole->end ? last_byte + 1 : whole->end;
    return part->begin < part->end ? RANGE_BYTES : RANGE_OUTSIDE;
}
