#include "base/buf.h"

#include <assert.h>
#include <stdio.h>

#include "base/memory.h"

static void grow(struct buf *buf, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(buf->length, more, &need) || __builtin_add_overflow(need, 1, &need))
        abort();
    size_t room = buf->room < 64 ? 64 : buf->room + buf->room / 2;
    if (room < need)
        room = need;
    buf->at = mem_realloc(buf->at, room);
    buf->room = room;
}

static inline void reserve(struct buf *buf, size_t more)
{
    if (more >= buf->room - buf->length) /* one byte stays for the NUL */
        grow(buf, more);
}

char *buf_room(struct buf *buf, size_t more)
{
    reserve(buf, more);
    return buf->at + buf->length;
}

void buf_release(struct buf *buf)
{
    mem_free(buf->at);
    *buf = (struct buf)BUF_INIT;
}

void buf_clear(struct buf *buf)
{
    buf->length = 0;
    if (buf->at)
        buf->at[0] = '\0';
}

void buf_add(struct buf *buf, const void *bytes, size_t length)
{
    reserve(buf, length);
    if (length)
        memcpy(buf->at + buf->length, bytes, length);
    buf->length += length;
    buf->at[buf->length] = '\0';
}

void buf_text(struct buf *buf, struct text text)
{
    buf_add(buf, text.at, text.length);
}

void buf_string(struct buf *buf, const char *string)
{
    buf_add(buf, string, strlen(string));
}

void buf_char(struct buf *buf, char c)
{
    reserve(buf, 1);
    buf->at[buf->length++] = c;
    buf->at[buf->length] = '\0';
}

void buf_int(struct buf *buf, int64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--at = '-';
    buf_add(buf, at, (size_t)(digits + sizeof digits - at));
}

void buf_vformat(struct buf *buf, const char *format, va_list args)
{
    enum { ROOM_FIRST = 63 }; /* with its NUL what an empty buffer gets anyway */
    va_list again;
    va_copy(again, args);
    reserve(buf, ROOM_FIRST); /* so that short texts are formatted once */
    const size_t left = buf->room - buf->length;
    const int length = vsnprintf(buf->at + buf->length, left, format, args);
    assert(length >= 0);
    if ((size_t)length >= left) {
        reserve(buf, (size_t)length);
        vsnprintf(buf->at + buf->length, (size_t)length + 1, format, again);
    }
    va_end(again);
    buf->length += (size_t)length;
}

void buf_shell_word(struct buf *buf, struct text word)
{
    buf_char(buf, '\'');
    for (size_t i = 0; i < word.length; i++) {
        if (word.at[i] == '\'')
            buf_string(buf, "'\\''");
        else
            buf_char(buf, word.at[i]);
    }
    buf_char(buf, '\'');
}

void buf_format(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vformat(buf, format, args);
    va_end(args);
}

char *buf_steal(struct buf *buf)
{
    reserve(buf, 0);
    buf->at[buf->length] = '\0';
    char *bytes = buf->at;
    *buf = (struct buf)BUF_INIT;
    return bytes;
}

static inline void put_le(struct buf *buf, uint64_t value, size_t bytes)
{
    reserve(buf, bytes);
    char *at = buf->at + buf->length;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)(unsigned char)(value >> (8 * i));
    at[bytes] = '\0';
    buf->length += bytes;
}

void buf_put_u8(struct buf *buf, uint8_t value)
{
    put_le(buf, value, 1);
}

void buf_put_u32(struct buf *buf, uint32_t value)
{
    put_le(buf, value, 4);
}

void buf_put_u64(struct buf *buf, uint64_t value)
{
    put_le(buf, value, 8);
}

void buf_put_text(struct buf *buf, struct text text)
{
    assert(text.length <= UINT32_MAX);
    buf_put_u32(buf, (uint32_t)text.length);
    buf_text(buf, text);
}

struct cursor cursor_of(struct text bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.at;
    return (struct cursor){at, at ? at + bytes.length : at, false};
}

static const unsigned char *take(struct cursor *cursor, size_t length)
{
    if (cursor->is_bad || (size_t)(cursor->end - cursor->at) < length) {
        cursor->is_bad = true;
        return NULL;
    }
    const unsigned char *at = cursor->at;
    cursor->at += length;
    return at;
}

static uint64_t get_le(struct cursor *cursor, size_t bytes)
{
    const unsigned char *at = take(cursor, bytes);
    uint64_t value = 0;
    for (size_t i = 0; at && i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

uint8_t cursor_u8(struct cursor *cursor)
{
    return (uint8_t)get_le(cursor, 1);
}

uint32_t cursor_u32(struct cursor *cursor)
{
    return (uint32_t)get_le(cursor, 4);
}

uint64_t cursor_u64(struct cursor *cursor)
{
    return get_le(cursor, 8);
}

struct text cursor_text(struct cursor *cursor)
{
    size_t length = cursor_u32(cursor);
    const unsigned char *at = take(cursor, length);
    return at ? (struct text){(const char *)at, length} : (struct text){"", 0};
}
