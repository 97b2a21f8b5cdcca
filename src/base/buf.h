/* buf.h — a growing byte buffer, always NUL-terminated.
 *
 * Pure. Owned by the caller; a failure of malloc aborts. The NUL is not counted in `length`.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H
#include "base/text.h"
#include <stdarg.h>
#include <stdint.h>

struct buf {
    char *at;
    size_t length, room;
};

#define BUF_INIT                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }

void buf_release(struct buf *buf); /* frees, and is empty and usable again */
/* In a declaration: released at the end of its block. */
#define cleanup_buf __attribute__((cleanup(buf_release)))
void buf_clear(struct buf *buf); /* keeps the memory */

/* Append. What is appended must not lie in the buffer itself, which may move. */
void buf_add(struct buf *buf, const void *bytes, size_t length);
void buf_text(struct buf *buf, struct text text);
void buf_string(struct buf *buf, const char *string);
void buf_char(struct buf *buf, char c);
void buf_int(struct buf *buf, int64_t value); /* decimal; many times faster than a format */
/* In single quotes: one word of a shell. */
void buf_shell_word(struct buf *buf, struct text word);
void buf_format(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vformat(struct buf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Room for `more` bytes (and the NUL) at the end; whoever writes there says so by buf_wrote. */
char *buf_room(struct buf *buf, size_t more);
static inline void buf_wrote(struct buf *buf, size_t length)
{
    buf->length += length;
    buf->at[buf->length] = '\0';
}

/* Never NULL: an empty buffer reads as "". */
static inline const char *buf_cstr(const struct buf *buf)
{
    return buf->at ? buf->at : "";
}

static inline struct text buf_as_text(const struct buf *buf)
{
    return (struct text){buf_cstr(buf), buf->length};
}

/* The bytes become the caller's (free with mem_free); the buffer is empty afterwards. */
char *buf_steal(struct buf *buf);

/* Fixed-layout encoding for records: little-endian integers, texts with a 32-bit length. */
void buf_put_u8(struct buf *buf, uint8_t value);
void buf_put_u32(struct buf *buf, uint32_t value);
void buf_put_u64(struct buf *buf, uint64_t value);
void buf_put_text(struct buf *buf, struct text text);

/* Reading back: a cursor that turns to `is_bad` at the first read past the end; reads after that
 * give zeros and empty texts, so that one check at the end is enough. Texts point into the input.
 */
struct cursor {
    const unsigned char *at, *end;
    bool is_bad;
};

struct cursor cursor_of(struct text bytes);
uint8_t cursor_u8(struct cursor *cursor);
uint32_t cursor_u32(struct cursor *cursor);
uint64_t cursor_u64(struct cursor *cursor);
struct text cursor_text(struct cursor *cursor);

#endif
