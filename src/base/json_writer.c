#include "base/json_writer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { DEPTH_MAX = 63 };

void json_init(struct json_writer *json, struct buf *out)
{
    *json = (struct json_writer){.out = out};
}

static void before_value(struct json_writer *json)
{
    uint64_t bit = (uint64_t)1 << json->depth;
    if (json->is_after_key) {
        json->is_after_key = false;
        return;
    }
    if (json->has_items & bit)
        buf_char(json->out, ',');
    json->has_items |= bit;
}

static void open_level(struct json_writer *json, char c)
{
    before_value(json);
    assert(json->depth < DEPTH_MAX);
    json->depth++;
    json->has_items &= ~((uint64_t)1 << json->depth);
    buf_char(json->out, c);
}

static void close_level(struct json_writer *json, char c)
{
    assert(json->depth > 0 && !json->is_after_key);
    json->depth--;
    buf_char(json->out, c);
}

void json_object(struct json_writer *json)
{
    open_level(json, '{');
}

void json_object_end(struct json_writer *json)
{
    close_level(json, '}');
}

void json_array(struct json_writer *json)
{
    open_level(json, '[');
}

void json_array_end(struct json_writer *json)
{
    close_level(json, ']');
}

/* Is there a byte in `word` that a string cannot hold as it is: a control character, `"`, `\\`,
 * DEL, or one beyond ASCII? May say yes too often, never no. */
static bool word_is_special(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
    uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\'), del = word ^ (ones * 0x7f);
    return ((word | (word - ones * 0x20) | (quote - ones) | (slash - ones) | (del - ones)) &
            highs) != 0;
}

/* How many bytes from the beginning can be written as they are. */
static size_t plain_length(const unsigned char *at, size_t length)
{
    size_t i = 0;
    for (uint64_t word; i + sizeof word <= length; i += sizeof word) {
        memcpy(&word, at + i, sizeof word);
        if (word_is_special(word))
            break;
    }
    while (i < length && at[i] >= 0x20 && at[i] < 0x7f && at[i] != '"' && at[i] != '\\')
        i++;
    return i;
}

/* Length of the valid UTF-8 sequence at `at` (RFC 3629), 0 when there is none. */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    unsigned char c = at[0];
    size_t length = c < 0x80                ? 1
                    : c >= 0xc2 && c < 0xe0 ? 2
                    : c >= 0xe0 && c < 0xf0 ? 3
                    : c >= 0xf0 && c < 0xf5 ? 4
                                            : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xe0 && at[1] < 0xa0) || (c == 0xed && at[1] >= 0xa0) ||
        (c == 0xf0 && at[1] < 0x90) || (c == 0xf4 && at[1] >= 0x90))
        return 0;
    return length;
}

static void write_escaped(struct buf *out, unsigned char c)
{
    static const char short_names[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    if (c == '"' || c == '\\')
        buf_format(out, "\\%c", c);
    else if (c < sizeof short_names && short_names[c])
        buf_format(out, "\\%c", short_names[c]);
    else
        buf_format(out, "\\u%04x", c);
}

static void write_string(struct buf *out, struct text value)
{
    const unsigned char *at = (const unsigned char *)value.at;
    size_t start = 0, i = plain_length(at, value.length);
    if (i == value.length) {
        char *to = buf_room(out, i + 2);
        to[0] = '"';
        if (i)
            memcpy(to + 1, at, i);
        to[i + 1] = '"';
        buf_wrote(out, i + 2);
        return;
    }
    buf_char(out, '"');
    while (i < value.length) {
        size_t length = utf8_length(at + i, value.length - i);
        bool is_plain = length > 1 || (length == 1 && at[i] >= 0x20 && at[i] != '"' &&
                                       at[i] != '\\' && at[i] != 0x7f);
        if (is_plain) {
            i += length;
            continue;
        }
        buf_add(out, at + start, i - start);
        if (length == 1)
            write_escaped(out, at[i]);
        else
            buf_string(out, "\xef\xbf\xbd");
        start = ++i;
    }
    buf_add(out, at + start, i - start);
    buf_char(out, '"');
}

void json_key(struct json_writer *json, const char *key)
{
    assert(!json->is_after_key);
    before_value(json);
    write_string(json->out, text_of(key));
    buf_char(json->out, ':');
    json->is_after_key = true;
}

void json_text(struct json_writer *json, struct text value)
{
    before_value(json);
    write_string(json->out, value);
}

void json_string(struct json_writer *json, const char *value)
{
    if (value)
        json_text(json, text_of(value));
    else
        json_null(json);
}

void json_int(struct json_writer *json, int64_t value)
{
    before_value(json);
    buf_int(json->out, value);
}

void json_real(struct json_writer *json, double value)
{
    if (!isfinite(value)) {
        json_null(json);
        return;
    }
    before_value(json);
    buf_format(json->out, "%.15g", value);
}

void json_bool(struct json_writer *json, bool value)
{
    before_value(json);
    buf_string(json->out, value ? "true" : "false");
}

void json_null(struct json_writer *json)
{
    before_value(json);
    buf_string(json->out, "null");
}

void json_raw(struct json_writer *json, struct text value)
{
    before_value(json);
    buf_text(json->out, value);
}

void json_key_text(struct json_writer *json, const char *key, struct text value)
{
    json_key(json, key);
    json_text(json, value);
}

void json_key_string(struct json_writer *json, const char *key, const char *value)
{
    json_key(json, key);
    json_string(json, value);
}

void json_key_int(struct json_writer *json, const char *key, int64_t value)
{
    json_key(json, key);
    json_int(json, value);
}

void json_key_bool(struct json_writer *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

void json_key_null(struct json_writer *json, const char *key)
{
    json_key(json, key);
    json_null(json);
}

void json_key_strings(struct json_writer *json, const char *key, const char *const *items,
                      size_t count)
{
    json_key(json, key);
    json_array(json);
    for (size_t i = 0; i < count; i++)
        json_string(json, items[i]);
    json_array_end(json);
}
