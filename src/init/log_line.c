#include "init/log_line.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/memory.h"

static const char whole_kinds[] = "oer.u", part_kinds[] = "OER", piece_streams[] = "oear";

#define WAITS "wait"

void log_lines_write(enum log_line_kind kind, struct text bytes, uint64_t *offset,
                     uint64_t *all_offset, struct buf *out)
{
    assert(kind < LOG_LINE_END);
    const bool is_merged = kind != LOG_LINE_RUNTIME;
    while (bytes.length > 0) {
        const size_t most = bytes.length < LOG_LINE_TEXT_MAX ? bytes.length : LOG_LINE_TEXT_MAX;
        const char *newline = memchr(bytes.at, '\n', most);
        const size_t length = newline ? (size_t)(newline - bytes.at) : most;
        buf_format(out, "%c %llu %llu ", newline ? whole_kinds[kind] : part_kinds[kind],
                   (unsigned long long)*offset, (unsigned long long)(is_merged ? *all_offset : 0));
        buf_add(out, bytes.at, length);
        buf_char(out, '\n');
        const size_t taken = length + (newline != NULL);
        bytes = (struct text){bytes.at + taken, bytes.length - taken};
        *offset += taken;
        *all_offset += is_merged ? taken : 0;
    }
}

void log_line_write_end(bool waits, struct buf *out)
{
    buf_format(out, ". 0 0 %s\n", waits ? WAITS : "");
}

bool log_line_waits(const struct log_line *line)
{
    assert(line->kind == LOG_LINE_END);
    return text_is(line->text, WAITS);
}

void log_line_use_write(uint64_t at_ms, const struct log_line_use *use, struct buf *out)
{
    buf_format(out, "u %" PRIu64 " 0 %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
               at_ms, use->cpu_ns, use->memory_bytes, use->read_bytes, use->written_bytes,
               use->pids);
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
    out->text = rest;
    return rest.length <= LOG_LINE_TEXT_MAX;
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
