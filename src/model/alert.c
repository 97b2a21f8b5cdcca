#include "model/alert.h"
#include "base/arena.h"
#include "base/memory.h"
#include <assert.h>
#include <string.h>

bool alert_is_error(const struct alert *alert)
{
    assert(alert->severity);
    return strcmp(alert->severity, "error") == 0;
}

size_t alert_label_count(const struct alert *alert)
{
    size_t count = 0;
    while (count < ALERT_LABELS && alert->labels[count].key)
        count++;
    return count;
}

void alert_key_put(const struct alert *alert, struct buf *key)
{
    const size_t labels = alert_label_count(alert);
    buf_add(key, alert->name, strlen(alert->name) + 1);
    for (size_t i = 0; i < labels; i++)
        buf_add(key, alert->labels[i].value, strlen(alert->labels[i].value) + 1);
}

uint64_t alert_fingerprint(const struct alert *alert)
{
    cleanup_buf struct buf key = BUF_INIT;
    alert_key_put(alert, &key);
    return text_hash(buf_as_text(&key), 0);
}

/* --- copies --- */

static const char *string_put(struct buf *out, const char *string)
{
    const size_t at = out->length;
    buf_add(out, string, strlen(string) + 1);
    return (const char *)(uintptr_t)at; /* becomes an address when all are there */
}

static const char *string_at(const char *base, const char *offset)
{
    return base + (uintptr_t)offset;
}

void alert_copy_set(struct alert_copy *copy, const struct alert *alert)
{
    struct buf strings = BUF_INIT;
    struct alert own = *alert;
    const size_t labels = alert_label_count(alert);
    alert_key_put(alert, &strings);
    const size_t key_length = strings.length;
    own.name = string_put(&strings, alert->name);
    own.severity = string_put(&strings, alert->severity);
    own.summary = string_put(&strings, alert->summary);
    for (size_t i = 0; i < labels; i++) {
        own.labels[i].key = string_put(&strings, alert->labels[i].key);
        own.labels[i].value = string_put(&strings, alert->labels[i].value);
    }
    char *base = buf_steal(&strings);
    own.name = string_at(base, own.name);
    own.severity = string_at(base, own.severity);
    own.summary = string_at(base, own.summary);
    for (size_t i = 0; i < labels; i++) {
        own.labels[i].key = string_at(base, own.labels[i].key);
        own.labels[i].value = string_at(base, own.labels[i].value);
    }
    mem_free(copy->strings);
    *copy = (struct alert_copy){.alert = own, .key = {base, key_length}, .strings = base};
}

void alert_copy_release(struct alert_copy *copy)
{
    mem_free(copy->strings);
    *copy = (struct alert_copy){0};
}

/* --- bytes --- */

void alert_words_write(const struct alert *alert, struct buf *out)
{
    const size_t labels = alert_label_count(alert);
    buf_put_text(out, text_of(alert->name));
    buf_put_text(out, text_of(alert->severity));
    buf_put_text(out, text_of(alert->summary));
    buf_put_u8(out, (uint8_t)labels);
    for (size_t i = 0; i < labels; i++) {
        buf_put_text(out, text_of(alert->labels[i].key));
        buf_put_text(out, text_of(alert->labels[i].value));
    }
}

static const char *string_read(struct cursor *cursor, struct arena *arena)
{
    return arena_copy(arena, cursor_text(cursor));
}

bool alert_words_read(struct cursor *cursor, struct arena *arena, struct alert *alert)
{
    alert->name = string_read(cursor, arena);
    alert->severity = string_read(cursor, arena);
    alert->summary = string_read(cursor, arena);
    const uint8_t labels = cursor_u8(cursor);
    for (uint8_t i = 0; i < labels && i < ALERT_LABELS; i++) {
        alert->labels[i].key = string_read(cursor, arena);
        alert->labels[i].value = string_read(cursor, arena);
    }
    return !cursor->is_bad && labels <= ALERT_LABELS;
}
