/* log.c — see log.h. */
#include "sys/log.h"
#include "base/buf.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "sys/log_file.h"
#include "sys/log_ring.h"
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warning", "info", "debug"};

static _Atomic int log_level_now = LOG_INFO;
static _Atomic int log_format_now = LOG_AUTO;
static _Atomic int log_fd = 2;
static _Atomic(struct log_keeper *) log_kept;

void log_keep(struct log_keeper *file)
{
    atomic_store(&log_kept, file);
}

void log_setup(enum log_level level, enum log_format format)
{
    atomic_store(&log_level_now, (int)level);
    atomic_store(&log_format_now, (int)format);
}

void log_to(int fd)
{
    atomic_store(&log_fd, fd);
}

void log_line(enum log_level level, const char *part, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_vline(level, part, format, args);
    va_end(args);
}

static void log_as_json(struct buf *line, const char *time, enum log_level level, const char *part,
                        const char *text)
{
    struct json_writer json;
    json_init(&json, line);
    json_object(&json);
    json_key_string(&json, "time", time);
    json_key_string(&json, "level", level_names[level]);
    json_key_string(&json, "part", part);
    json_key_string(&json, "text", text);
    json_object_end(&json);
}

/* What comes from outside may hold control characters; a terminal must not act on them. */
static void log_as_text(struct buf *line, const char *time, enum log_level level, const char *part,
                        const char *text)
{
    buf_format(line, "%.23s %-7s %s: ", time, level_names[level], part);
    for (; *text; text++) {
        unsigned char c = (unsigned char)text[0], next = (unsigned char)text[1];
        bool is_pair = c == 0xc2 && next >= 0x80 && next < 0xa0; /* U+009B is what ESC [ is */
        if (c < 0x20 || c == 0x7f || is_pair)
            buf_char(line, ' ');
        else
            buf_char(line, *text);
        text += is_pair;
    }
}

void log_vline(enum log_level level, const char *part, const char *format, va_list args)
{
    char text[LOG_LINE_MAX], stamp[40], date[24];
    cleanup_buf struct buf line = BUF_INIT;
    int wanted = atomic_load(&log_format_now), fd = atomic_load(&log_fd);
    assert(level >= LOG_ERROR && level <= LOG_DEBUG);
    if ((int)level > atomic_load(&log_level_now))
        return;
    struct timeval now;
    gettimeofday(&now, NULL);
    struct tm utc;
    gmtime_r(&now.tv_sec, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp, sizeof stamp, "%s.%03dZ", date, (int)(now.tv_usec / 1000));
    vsnprintf(text, sizeof text, format, args);
    if (wanted == LOG_TEXT || (wanted == LOG_AUTO && isatty(fd)))
        log_as_text(&line, stamp, level, part, text);
    else
        log_as_json(&line, stamp, level, part, text);
    buf_char(&line, '\n');
    /* nobody is there to hear that the log cannot be written */
    ssize_t written = write(fd, line.at, line.length);
    (void)written;
    log_ring_add(level, (int64_t)now.tv_sec * 1000 + now.tv_usec / 1000, part, text);
    struct log_keeper *kept = atomic_load(&log_kept);
    if (kept)
        log_file_write(kept, buf_as_text(&line));
}
