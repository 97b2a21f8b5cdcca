#include "base/printable.h"
#include "base/buf.h"

enum { ESCAPE = 0x1b, BELL = 0x07, DELETE = 0x7f };

static bool is_byte_in(struct text text, size_t at, unsigned char first, unsigned char last)
{
    return at < text.length && (unsigned char)text.at[at] >= first &&
           (unsigned char)text.at[at] <= last;
}

/* Behind `ESC [`: parameters, intermediates, one final byte. */
static size_t control_end(struct text text, size_t at)
{
    while (is_byte_in(text, at, 0x20, 0x3f))
        at++;
    return is_byte_in(text, at, 0x40, 0x7e) ? at + 1 : at;
}

/* Behind `ESC ]` and the like: a string up to BEL or `ESC \`, within one line. */
static size_t string_end(struct text text, size_t at)
{
    for (; at < text.length && text.at[at] != '\n'; at++) {
        if (text.at[at] == BELL)
            return at + 1;
        if (text.at[at] == ESCAPE)
            return is_byte_in(text, at + 1, '\\', '\\') ? at + 2 : at;
    }
    return at;
}

/* Where the escape sequence that begins at `at` is over. */
static size_t escape_end(struct text text, size_t at)
{
    at++;
    if (is_byte_in(text, at, '[', '['))
        return control_end(text, at + 1);
    if (at < text.length && strchr("]PX^_", text.at[at]) && text.at[at])
        return string_end(text, at + 1);
    while (is_byte_in(text, at, 0x20, 0x2f))
        at++;
    return is_byte_in(text, at, 0x30, 0x7e) ? at + 1 : at;
}

static bool is_control(const char *c, size_t length)
{
    unsigned char first = (unsigned char)c[0];
    if (length == 1)
        return (first < 0x20 && first != '\n' && first != '\t') || first == DELETE;
    return length == 2 && first == 0xc2 && (unsigned char)c[1] < 0xa0; /* U+0080 … U+009F */
}

static void line_restart(struct buf *out, size_t line)
{
    if (out->length > line) {
        out->length = line;
        out->at[line] = '\0';
    }
}

void printable_put(struct buf *out, struct text text)
{
    size_t line = out->length, i = 0;
    bool is_returned = false; /* what follows overwrites the line */
    while (i < text.length) {
        size_t length = text_utf8_length(text, i);
        const char *c = text.at + i;

        if (*c == ESCAPE) {
            i = escape_end(text, i);
            continue;
        }
        i += length ? length : 1;
        if (*c == '\r')
            is_returned = true;
        if (length && is_control(c, length))
            continue;
        if (is_returned && *c != '\n')
            line_restart(out, line);
        is_returned = false;
        if (length)
            buf_add(out, c, length);
        else
            buf_string(out, "\xef\xbf\xbd");
        if (*c == '\n')
            line = out->length;
    }
}

bool printable_is_line(struct text text)
{
    for (size_t i = 0; i < text.length;) {
        size_t length = text_utf8_length(text, i);
        const char *c = text.at + i;

        if (!length || is_control(c, length) || *c == '\n' || *c == '\t')
            return false;
        i += length;
    }
    return true;
}

void printable_strip(struct buf *out, struct text text)
{
    size_t i = 0;
    while (i < text.length) {
        const char *escape = memchr(text.at + i, ESCAPE, text.length - i);
        size_t end = escape ? (size_t)(escape - text.at) : text.length;

        buf_add(out, text.at + i, end - i);
        i = escape ? escape_end(text, end) : end;
    }
}

static bool is_inside_character(struct text text, size_t at)
{
    return at < text.length && ((unsigned char)text.at[at] & 0xc0) == 0x80;
}

struct text printable_tail(struct text text, size_t most)
{
    size_t from = text.length > most ? text.length - most : 0;
    if (from == 0)
        return text;
    /* the newline before it makes the first line whole; the last one is no reason to begin */
    const char *newline = memchr(text.at + from - 1, '\n', text.length - from);
    if (newline)
        from = (size_t)(newline + 1 - text.at);
    while (is_inside_character(text, from))
        from++;
    return (struct text){text.at + from, text.length - from};
}

struct text printable_head(struct text text, size_t most)
{
    size_t length = text.length > most ? most : text.length;
    while (length > 0 && is_inside_character(text, length))
        length--;
    return (struct text){text.at, length};
}
