#include "init/log_line.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

static const char whole_kinds[] = "oer.ut", part_kinds[] = "OER", piece_streams[] = "oear";

#define WAITS "wait"

enum { SUM_DIGITS = 6, SUM_MASK = 0xffffff };

unsigned log_line_sum(char kind, uint64_t offset, uint64_t all_offset, struct text text)
{
    const uint64_t seed = offset ^ all_offset << 20 ^ (uint64_t)(unsigned char)kind << 56;
    return (unsigned)(text_hash(text, seed) & SUM_MASK);
}

static void line_put(char kind, uint64_t offset, uint64_t all_offset, struct text text,
                     struct buf *out)
{
    buf_format(out, "%c %" PRIu64 " %" PRIu64 " %06x ", kind, offset, all_offset,
               log_line_sum(kind, offset, all_offset, text));
    buf_text(out, text);
    buf_char(out, '\n');
}

void log_lines_write(enum log_line_kind kind, struct text bytes, uint64_t *offset,
                     uint64_t *all_offset, struct buf *out)
{
    assert(kind < LOG_LINE_END);
    const bool is_merged = kind != LOG_LINE_RUNTIME;
    while (bytes.length > 0) {
        const size_t most = bytes.length < LOG_LINE_TEXT_MAX ? bytes.length : LOG_LINE_TEXT_MAX;
        const char *newline = memchr(bytes.at, '\n', most);
        const size_t length = newline ? (size_t)(newline - bytes.at) : most;
        line_put((newline ? whole_kinds : part_kinds)[kind], *offset, is_merged ? *all_offset : 0,
                 (struct text){bytes.at, length}, out);
        const size_t taken = length + (newline != NULL);
        bytes = (struct text){bytes.at + taken, bytes.length - taken};
        *offset += taken;
        *all_offset += is_merged ? taken : 0;
    }
}

void log_line_write_end(bool waits, struct buf *out)
{
    line_put('.', 0, 0, text_of(waits ? WAITS : ""), out);
}

bool log_line_waits(const struct log_line *line)
{
    assert(line->kind == LOG_LINE_END);
    return text_is(line->text, WAITS);
}

void log_line_use_write(uint64_t at_ms, const struct log_line_use *use, struct buf *out)
{
    cleanup_buf struct buf text = BUF_INIT;
    buf_format(&text, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, use->cpu_ns,
               use->memory_bytes, use->read_bytes, use->written_bytes, use->pids);
    line_put('u', at_ms, 0, buf_as_text(&text), out);
}

void log_line_write_told(uint64_t offset, uint64_t all_offset, uint64_t err_offset,
                         uint64_t runtime_offset, struct buf *out)
{
    cleanup_buf struct buf text = BUF_INIT;
    buf_format(&text, "%" PRIu64 " %" PRIu64, err_offset, runtime_offset);
    line_put('t', offset, all_offset, buf_as_text(&text), out);
}

static bool number_read(struct text word, uint64_t *number)
{
    int64_t value;
    if (!text_to_int64(word, &value) || value < 0)
        return false;
    *number = (uint64_t)value;
    return true;
}

static bool offset_read(struct text *rest, uint64_t *offset)
{
    struct text word = text_cut(rest, ' ');
    return rest->at && number_read(word, offset);
}

bool log_line_use_read(struct text text, struct log_line_use *use)
{
    uint64_t *const numbers[] = {&use->cpu_ns, &use->memory_bytes, &use->read_bytes,
                                 &use->written_bytes, &use->pids};
    *use = (struct log_line_use){0};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        int64_t value;
        if (!text_to_int64(text_cut(&text, ' '), &value) || value < 0)
            return false;
        *numbers[i] = (uint64_t)value;
    }
    return text.length == 0;
}

bool log_line_told_read(struct text text, uint64_t *err_offset, uint64_t *runtime_offset)
{
    return offset_read(&text, err_offset) && number_read(text, runtime_offset);
}

bool log_line_read(struct text line, struct log_line *out)
{
    *out = (struct log_line){0};
    if (line.length < 2 || line.at[0] == '\0' || line.at[1] != ' ')
        return false;
    const char *whole = strchr(whole_kinds, line.at[0]), *part = strchr(part_kinds, line.at[0]);
    if (!whole && !part)
        return false;
    out->kind = (enum log_line_kind)(whole ? whole - whole_kinds : part - part_kinds);
    out->has_newline = whole && out->kind < LOG_LINE_END;
    struct text rest = {line.at + 2, line.length - 2};
    if (!offset_read(&rest, &out->offset) || !offset_read(&rest, &out->all_offset))
        return false;
    char sum[SUM_DIGITS + 1];
    const struct text told = text_cut(&rest, ' ');
    if (!rest.at || rest.length > LOG_LINE_TEXT_MAX)
        return false;
    snprintf(sum, sizeof sum, "%06x", log_line_sum(line.at[0], out->offset, out->all_offset, rest));
    out->text = rest;
    return text_is(told, sum);
}

/* --- pieces --- */

void log_piece_write(unsigned stream, uint64_t offset, size_t length, struct buf *out)
{
    assert(stream < LOG_PIECE_STREAMS && length > 0 && length <= LOG_PIECE_MAX);
    buf_format(out, "%c %" PRIu64 " %zu\n", piece_streams[stream], offset, length);
}

void log_piece_write_end(enum log_fetch_end end, struct buf *out)
{
    buf_format(out, ". %u 0\n", (unsigned)end);
}

bool log_piece_read(struct text head, struct log_piece *out)
{
    uint64_t length = 0;
    *out = (struct log_piece){0};
    if (head.length < 2 || head.at[0] == '\0' || head.at[1] != ' ')
        return false;
    const char *stream = strchr(piece_streams, head.at[0]);
    struct text rest = {head.at + 2, head.length - 2};
    if (!offset_read(&rest, &out->offset) || !number_read(rest, &length))
        return false;
    out->is_end = head.at[0] == '.';
    out->end = (enum log_fetch_end)out->offset;
    out->stream = stream ? (unsigned)(stream - piece_streams) : 0;
    out->length = (size_t)length;
    if (out->is_end)
        return length == 0 && out->offset <= LOG_FETCH_BROKEN;
    return stream && length > 0 && length <= LOG_PIECE_MAX;
}
