/* text.h — text as (pointer, length), borrowed, not necessarily NUL-terminated.
 *
 * Pure. Everything that comes from outside travels as struct text; copies that a module keeps are
 * NUL-terminated strings in an arena.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    const char *at;
    size_t length;
};

#define TEXT(literal)  ((struct text){(literal), sizeof(literal) - 1})
#define TEXT_ARG(text) (int)(text).length, (text).at /* for "%.*s" */

static inline struct text text_of(const char *string)
{
    return (struct text){string, string ? strlen(string) : 0};
}

static inline bool text_equal(struct text a, struct text b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

static inline bool text_is(struct text text, const char *string)
{
    return text_equal(text, text_of(string));
}

static inline bool text_starts(struct text text, struct text prefix)
{
    return text.length >= prefix.length &&
           (prefix.length == 0 || memcmp(text.at, prefix.at, prefix.length) == 0);
}

/* Without white space (space, tab, CR, LF) at both ends. */
struct text text_trim(struct text text);

/* Cut `*rest` at the first `separator`: returns the part before it and leaves the part after it.
 * When there is none, returns all and leaves an empty text with at == NULL. */
struct text text_cut(struct text *rest, char separator);

/* A whole decimal integer with optional minus sign, nothing before or after it.
 * Returns false (and leaves *value alone) when it is not one or does not fit. */
bool text_to_int64(struct text text, int64_t *value);

/* First position of `needle`, or SIZE_MAX. */
size_t text_find(struct text text, struct text needle);

/* Bytes of the UTF-8 character at `at`, 0 when it is not one (RFC 3629). */
size_t text_utf8_length(struct text text, size_t at);

/* Number of edits (insert, delete, replace, swap of neighbours) between two texts, at most
 * `limit` + 1; texts longer than 64 bytes give limit + 1. For "did you mean". */
unsigned text_distance(struct text a, struct text b, unsigned limit);

/* 64-bit hash, the same on every machine and in every run. Not for adversarial keys alone: tables
 * that hold keys from outside mix in a seed. */
uint64_t text_hash(struct text text, uint64_t seed);

/* The same of the text without its digits: equal when two texts differ in numbers alone. */
uint64_t text_words_hash(struct text text, uint64_t seed);

#endif
