#include "base/text.h"

#include <limits.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct text text_trim(struct text text)
{
    while (text.length > 0 && is_space(text.at[0])) {
        text.at++;
        text.length--;
    }
    while (text.length > 0 && is_space(text.at[text.length - 1]))
        text.length--;
    return text;
}

struct text text_cut(struct text *rest, char separator)
{
    struct text part = *rest;
    const char *found = rest->length ? memchr(rest->at, separator, rest->length) : NULL;
    if (!found) {
        *rest = (struct text){NULL, 0};
        return part;
    }
    part.length = (size_t)(found - part.at);
    rest->at = found + 1;
    rest->length -= part.length + 1;
    return part;
}

bool text_to_int64(struct text text, int64_t *value)
{
    size_t i = 0;
    bool is_negative = text.length > 0 && text.at[0] == '-';
    if (is_negative)
        i = 1;
    if (i == text.length)
        return false;
    int64_t sum = 0; /* kept negative: INT64_MIN has no positive twin */
    for (; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_sub_overflow(sum, text.at[i] - '0', &sum))
            return false;
    }
    if (!is_negative && sum == INT64_MIN)
        return false;
    *value = is_negative ? sum : -sum;
    return true;
}

size_t text_find(struct text text, struct text needle)
{
    if (needle.length == 0)
        return 0;
    const char *found = text.length ? memmem(text.at, text.length, needle.at, needle.length) : NULL;
    return found ? (size_t)(found - text.at) : SIZE_MAX;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

unsigned text_distance(struct text a, struct text b, unsigned limit)
{
    enum { LENGTH_MAX = 64 };
    if (a.length > LENGTH_MAX || b.length > LENGTH_MAX)
        return limit + 1;
    unsigned rows[3][LENGTH_MAX + 1];
    for (unsigned j = 0; j <= b.length; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= a.length; i++) {
        unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *older = rows[(i + 1) % 3];
        now[0] = i;
        for (unsigned j = 1; j <= b.length; j++) {
            unsigned cost = a.at[i - 1] != b.at[j - 1];
            now[j] = min3(before[j] + 1, now[j - 1] + 1, before[j - 1] + cost);
            bool is_swap =
                i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1];
            if (is_swap && older[j - 2] + 1 < now[j])
                now[j] = older[j - 2] + 1;
        }
    }
    unsigned distance = rows[a.length % 3][b.length];
    return distance > limit ? limit + 1 : distance;
}

uint64_t text_hash(struct text text, uint64_t seed)
{
    uint64_t hash = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < text.length; i++)
        hash = (hash ^ (unsigned char)text.at[i]) * 0x100000001b3u;
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

uint64_t text_words_hash(struct text text, uint64_t seed)
{
    uint64_t hash = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            hash = (hash ^ (unsigned char)text.at[i]) * 0x100000001b3u;
    return hash;
}

size_t text_utf8_length(struct text text, size_t at)
{
    const unsigned char *c = (const unsigned char *)text.at + at;
    size_t left = text.length - at;
    if (c[0] < 0x80)
        return 1;
    if (c[0] < 0xc2 || c[0] > 0xf4)
        return 0;
    size_t length = c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    if (left < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return 0;
    return length;
}
