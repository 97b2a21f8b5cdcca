/* utc.h — a time for people, in text that is the same everywhere.
 *
 * Pure.
 */
#ifndef BASE_UTC_H
#define BASE_UTC_H
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

enum { UTC_SIZE = 48 };

/* "2026-11-21 10:00:00 UTC" of Unix milliseconds; before 1970 or beyond the year 9999: the nearest
 * time within. */
const char *utc_text(int64_t at_ms, char text[UTC_SIZE]);
/* "2026-11-21T10:00:00.000Z", as JavaScript writes it; likewise. */
const char *utc_instant(int64_t at_ms, char text[UTC_SIZE]);

/* An instant as RFC 3339 writes it: "2026-11-21T10:00:00Z", with parts of a second, which count to
 * the millisecond, or another zone ("+01:00"). False: it is none, or is before 1970; a leap second
 * is the one that follows. */
bool utc_read(struct text text, int64_t *at_ms);

struct utc_month {
    int number;               /* 202611: November 2026 */
    int64_t begin_ms, end_ms; /* the next one begins at its end */
};
/* The month that it is then; likewise. */
struct utc_month utc_month_of(int64_t at_ms);

#endif
