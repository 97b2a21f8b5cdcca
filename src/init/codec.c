#include "init/codec.h"

#include <assert.h>

#include "base/arena.h"
#include "base/err.h"

enum { MAGIC_BYTES = 8, LENGTH_AT = MAGIC_BYTES + 4, HEAD_BYTES = LENGTH_AT + 4 };

size_t codec_begin(struct buf *out, const char *magic, uint32_t version)
{
    assert(strlen(magic) == MAGIC_BYTES);
    size_t begin = out->length;
    buf_add(out, magic, MAGIC_BYTES);
    buf_put_u32(out, version);
    buf_put_u32(out, 0);
    return begin;
}

void codec_end(struct buf *out, size_t begin)
{
    size_t length = out->length - begin - HEAD_BYTES;
    assert(length <= UINT32_MAX);
    for (size_t i = 0; i < 4; i++)
        out->at[begin + LENGTH_AT + i] = (char)(unsigned char)(length >> (8 * i));
}

int codec_open(struct text bytes, const char *magic, uint32_t version, size_t bytes_max,
               struct cursor *cursor, struct err *err)
{
    if (bytes.length > bytes_max)
        return err_fail(err, ERR_CORRUPT, "", "%zu bytes are more than a %s file can have",
                        bytes.length, magic);
    if (bytes.length < HEAD_BYTES || memcmp(bytes.at, magic, MAGIC_BYTES) != 0)
        return err_fail(err, ERR_CORRUPT, "", "does not begin with \"%s\"", magic);
    *cursor = cursor_of((struct text){bytes.at + MAGIC_BYTES, bytes.length - MAGIC_BYTES});
    uint32_t found = cursor_u32(cursor);
    if (found != version)
        return err_fail(err, ERR_UNSUPPORTED, "", "has version %u, this program reads version %u",
                        found, version);
    uint32_t length = cursor_u32(cursor);
    if (length != bytes.length - HEAD_BYTES)
        return err_fail(err, ERR_CORRUPT, "", "has %zu bytes after its head, should have %u",
                        bytes.length - HEAD_BYTES, length);
    return 0;
}

const char *codec_string(struct cursor *cursor, struct arena *arena)
{
    struct text text = cursor_text(cursor);
    if (text.length > 0 && memchr(text.at, '\0', text.length))
        cursor->is_bad = true;
    return cursor->is_bad || text.length == 0 ? "" : arena_copy(arena, text);
}

size_t codec_count(struct cursor *cursor, size_t max, size_t item_bytes)
{
    size_t count = cursor_u32(cursor);
    if (count > max || (size_t)(cursor->end - cursor->at) / item_bytes < count)
        cursor->is_bad = true;
    return cursor->is_bad ? 0 : count;
}

void codec_put_string(struct buf *out, const char *string)
{
    buf_put_text(out, string ? text_of(string) : TEXT(""));
}
