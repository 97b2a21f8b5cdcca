/* log_line.h — a piece of a log as one line of skep-init's own output, which a kubelet keeps.
 *
 * Pure. In a pod nobody can read the segments of /skep/log from outside; what the container itself
 * writes can be read by the API of the cluster, both streams mixed, until the kubelet rotates it
 * away, and again from the begin after each interruption. So a line says where its bytes belong:
 *
 *   KIND OFFSET ALL SUM TEXT
 *
 * KIND: o, e, r: TEXT and the newline after it belong to stdout, stderr, runtime; O, E, R: TEXT
 * alone does. OFFSET: of the first byte of TEXT in that stream. ALL: the same in the merged log of
 * both; 0 for runtime. SUM: six hexadecimal digits of all the rest. Where a kubelet rotates its
 * file, a runtime cuts a line in two, and a reader who comes late gets the halves of two lines as
 * one.
 *
 *   u AT 0 SUM CPU MEMORY READ WRITTEN PIDS   what the container has used AT ms after its begin
 *   t OUT ALL SUM ERR RUNTIME                 how long the streams are: nothing of them comes later
 *   . 0 0 SUM                                 the last line
 *   . 0 0 SUM wait                            likewise; skep-init ends when it hears that all has
 *                                             been taken (fetch.c), and says so again until then
 */
#ifndef INIT_LOG_LINE_H
#define INIT_LOG_LINE_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct buf;

enum {
    LOG_LINE_TEXT_MAX = 8 << 10, /* runtimes cut lines of 16 KiB */
    LOG_LINE_HEAD_MAX = 56,
};

enum log_line_kind {
    LOG_LINE_STDOUT,
    LOG_LINE_STDERR,
    LOG_LINE_RUNTIME,
    LOG_LINE_END,
    LOG_LINE_USE,
    LOG_LINE_TOLD,
};

struct log_line {
    enum log_line_kind kind;
    uint64_t offset, all_offset; /* USE: offset is AT; TOLD: OUT and ALL */
    struct text text;
    bool has_newline; /* one follows the text in its stream */
};

/* Append `bytes` of a stream as lines, however many they need; moves both offsets behind them. */
void log_lines_write(enum log_line_kind kind, struct text bytes, uint64_t *offset,
                     uint64_t *all_offset, struct buf *out);
void log_line_write_end(bool waits, struct buf *out);
bool log_line_waits(const struct log_line *line); /* an END */

/* `err_offset` and `runtime` of what log_lines_write has moved. */
void log_line_write_told(uint64_t offset, uint64_t all_offset, uint64_t err_offset,
                         uint64_t runtime_offset, struct buf *out);
/* The text of such a line. False: it is none. */
bool log_line_told_read(struct text text, uint64_t *err_offset, uint64_t *runtime_offset);

/* Of the container as a whole: what is summed up never falls. */
struct log_line_use {
    uint64_t cpu_ns, memory_bytes, read_bytes, written_bytes, pids;
};

void log_line_use_write(uint64_t at_ms, const struct log_line_use *use, struct buf *out);
/* The text of such a line. False: it is none. */
bool log_line_use_read(struct text text, struct log_line_use *use);

/* Of a line, of which KIND is the first character. */
unsigned log_line_sum(char kind, uint64_t offset, uint64_t all_offset, struct text text);

/* A line without its newline. False: it is none of these. */
bool log_line_read(struct text line, struct log_line *out);

/* What the kubelet has no more is fetched from the segments: pieces of streams, each a head and
 * LENGTH bytes behind it,
 *
 *   STREAM OFFSET LENGTH
 *
 * STREAM: o, e, a, r, in the order of LAYOUT_STREAMS. The last head names no stream: ". HOW 0". */
enum {
    LOG_PIECE_MAX = 64 << 10, /* bytes */
    LOG_PIECE_STREAMS = 4,
};

enum log_fetch_end {
    LOG_FETCH_PART,   /* its turn is over, or nothing more is there now */
    LOG_FETCH_WHOLE,  /* the log has ended, and that was all of it; who took it answers */
    LOG_FETCH_BROKEN, /* bytes could not be written to the segments: offsets are not those told */
};

struct log_piece {
    bool is_end;
    enum log_fetch_end end;
    unsigned stream;
    uint64_t offset;
    size_t length;
};

void log_piece_write(unsigned stream, uint64_t offset, size_t length, struct buf *out);
void log_piece_write_end(enum log_fetch_end end, struct buf *out);
/* A head without its newline. False: it is none. */
bool log_piece_read(struct text head, struct log_piece *out);

#endif
