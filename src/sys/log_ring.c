#include "sys/log_ring.h"
#include "base/arena.h"
#include "base/memory.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct kept_line {
    int64_t time_ms;
    enum log_level level;
    char part[LOG_RING_PART_MAX];
    char *text;
};

static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct kept_line *ring_lines; /* NULL: none are kept; by number % LOG_RING_LINES */
static uint64_t ring_first, ring_next;

void log_ring_start(int64_t now_ms)
{
    pthread_mutex_lock(&ring_lock);
    if (!ring_lines) {
        ring_lines = mem_zero(LOG_RING_LINES, sizeof *ring_lines);
        /* no server writes a thousand lines in each ms of its life; a browser can count so far */
        ring_first = ring_next = now_ms > 0 ? (uint64_t)now_ms * 1000 : 1;
    }
    pthread_mutex_unlock(&ring_lock);
}

void log_ring_stop(void)
{
    pthread_mutex_lock(&ring_lock);
    for (size_t i = 0; ring_lines && i < LOG_RING_LINES; i++)
        mem_free(ring_lines[i].text);
    mem_free(ring_lines);
    ring_lines = NULL;
    pthread_mutex_unlock(&ring_lock);
}

/* A whole number of characters: what is cut is still UTF-8 when it was before. */
static size_t cut_length(const char *text)
{
    size_t length = strnlen(text, LOG_RING_TEXT_MAX + 1);
    if (length <= LOG_RING_TEXT_MAX)
        return length;
    length = LOG_RING_TEXT_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return length;
}

void log_ring_add(enum log_level level, int64_t time_ms, const char *part, const char *text)
{
    pthread_mutex_lock(&ring_lock);
    if (ring_lines) {
        struct kept_line *line = &ring_lines[ring_next % LOG_RING_LINES];
        const size_t length = cut_length(text);
        mem_free(line->text);
        line->text = mem_alloc(length + 1);
        memcpy(line->text, text, length);
        line->text[length] = '\0';
        snprintf(line->part, sizeof line->part, "%s", part);
        line->level = level;
        line->time_ms = time_ms;
        ring_next++;
        if (ring_next - ring_first > LOG_RING_LINES)
            ring_first++;
    }
    pthread_mutex_unlock(&ring_lock);
}

static const struct kept_line *line_at(uint64_t number)
{
    assert(number >= ring_first && number < ring_next);
    return &ring_lines[number % LOG_RING_LINES];
}

/* With the lock. Where the newest `limit` lines of this importance begin. */
static uint64_t newest_begin(enum log_level level, size_t limit)
{
    uint64_t begin = ring_next;
    for (size_t found = 0; begin > ring_first && found < limit; begin--)
        found += line_at(begin - 1)->level <= level;
    return begin;
}

/* With the lock. */
static void lines_take(enum log_level level, uint64_t begin, size_t limit, struct arena *arena,
                       struct log_ring_lines *lines)
{
    lines->items = ARENA_ARRAY(arena, struct log_ring_line, limit);
    for (lines->next = begin - 1; lines->next + 1 < ring_next; lines->next++) {
        const struct kept_line *line = line_at(lines->next + 1);
        if (line->level > level)
            continue;
        if (lines->count == limit)
            break;
        lines->items[lines->count++] =
            (struct log_ring_line){.number = lines->next + 1,
                                   .time_ms = line->time_ms,
                                   .level = line->level,
                                   .part = arena_copy(arena, text_of(line->part)),
                                   .text = arena_copy(arena, text_of(line->text))};
    }
    lines->is_complete = lines->next + 1 == ring_next;
}

void log_ring_read(enum log_level level, uint64_t after, size_t limit, struct arena *arena,
                   struct log_ring_lines *lines)
{
    assert(limit > 0);
    *lines = (struct log_ring_lines){.next = after, .is_complete = true};
    pthread_mutex_lock(&ring_lock);
    if (ring_lines) {
        uint64_t begin = after ? after + 1 : newest_begin(level, limit);
        lines->has_missed = after && begin < ring_first;
        if (begin < ring_first)
            begin = ring_first;
        if (begin > ring_next)
            begin = ring_next;
        lines_take(level, begin, limit, arena, lines);
    }
    pthread_mutex_unlock(&ring_lock);
}
