#include "doc/build.h"

/* Bytes of the line break at `at`, 0 when there is none: LF, CR, CR LF, and as in YAML 1.1 also
 * NEL, LS and PS. */
static size_t break_length(struct text source, size_t at)
{
    const unsigned char *c = (const unsigned char *)source.at + at;
    size_t left = source.length - at;
    if (c[0] == '\n')
        return 1;
    if (c[0] == '\r')
        return left > 1 && c[1] == '\n' ? 2 : 1;
    if (left > 1 && c[0] == 0xc2 && c[1] == 0x85)
        return 2;
    if (left > 2 && c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9))
        return 3;
    return 0;
}

size_t place_step(struct text source, size_t at, struct place *place)
{
    size_t length = break_length(source, at);
    if (length) {
        place->line++;
        place->column = 1;
        return at + length;
    }
    place->column++;
    at++;
    while (at < source.length && ((unsigned char)source.at[at] & 0xc0) == 0x80)
        at++;
    return at;
}

size_t doc_offset(struct text source, struct place place)
{
    size_t at = text_starts(source, TEXT("\xef\xbb\xbf")) ? 3 : 0;
    struct place now = {1, 1};
    while (at < source.length &&
           (now.line < place.line || (now.line == place.line && now.column < place.column)))
        at = place_step(source, at, &now);
    return at;
}
