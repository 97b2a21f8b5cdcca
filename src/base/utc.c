#include "base/utc.h"
#include <stdbool.h>
#include <stdio.h>

enum { DAY_S = 86400 };
#define UTC_LAST_S 253402300799 /* the end of 9999 */

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

struct date {
    int year, month, day, second; /* all from 1 but the second, which is of the day */
};

/* The nearest date within 1970 … 9999. */
static struct date date_of(int64_t at_ms)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t at_s = at_ms < 0 ? 0 : at_ms / 1000;
    int year = 1970, month = 0, length;
    if (at_s > UTC_LAST_S)
        at_s = UTC_LAST_S;
    int day = (int)(at_s / DAY_S);
    while (day >= 365 + is_leap(year))
        day -= 365 + is_leap(year++);
    while (day >= (length = lengths[month] + (month == 1 && is_leap(year))))
        day -= length, month++;
    return (struct date){year, month + 1, day + 1, (int)(at_s % DAY_S)};
}

const char *utc_text(int64_t at_ms, char text[UTC_SIZE])
{
    const struct date date = date_of(at_ms);
    snprintf(text, UTC_SIZE, "%04d-%02d-%02d %02d:%02d:%02d UTC", date.year, date.month, date.day,
             date.second / 3600, date.second / 60 % 60, date.second % 60);
    return text;
}

const char *utc_instant(int64_t at_ms, char text[UTC_SIZE])
{
    const struct date date = date_of(at_ms);
    snprintf(text, UTC_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", date.year, date.month, date.day,
             date.second / 3600, date.second / 60 % 60, date.second % 60,
             at_ms < 0 ? 0 : (int)(at_ms % 1000));
    return text;
}
