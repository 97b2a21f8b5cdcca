/* alert.h — one thing that needs somebody's attention.
 *
 * Pure. Two alerts are the same when their name and the values of their labels are. Times are Unix
 * milliseconds.
 */
#ifndef MODEL_ALERT_H
#define MODEL_ALERT_H
#include "base/buf.h"
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum { ALERT_LABELS = 2 };

struct alert {
    const char *name;     /* of its kind */
    const char *severity; /* "error" or "warn" */
    struct alert_label {
        const char *key, *value; /* key NULL: none, and none follows */
    } labels[ALERT_LABELS];      /* whose it is */
    const char *summary;
    int64_t since_ms; /* found: 0 when nobody knows */
    int64_t ended_ms; /* 0: it stands */
};

bool alert_is_error(const struct alert *alert);
size_t alert_label_count(const struct alert *alert);
/* The same for the same alert on every machine and in every run. */
uint64_t alert_fingerprint(const struct alert *alert);
/* What tells it from others: name and values, each with its NUL. */
void alert_key_put(const struct alert *alert, struct buf *key);

/* A copy that owns its strings. */
struct alert_copy {
    struct alert alert;
    struct text key;
    char *strings;
};

/* Takes the place of what `copy` holds (zeroed: nothing), which `alert` may point into. */
void alert_copy_set(struct alert_copy *copy, const struct alert *alert);
void alert_copy_release(struct alert_copy *copy);

/* To and from bytes, without the times. Read: false when a string lies beyond the end or there are
 * too many labels; the strings are in the arena. */
void alert_words_write(const struct alert *alert, struct buf *out);
bool alert_words_read(struct cursor *cursor, struct arena *arena, struct alert *alert);

#endif
