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

static int month_days(int year, int month)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return lengths[month - 1] + (month == 2 && is_leap(year));
}

/* Of the nearest time within 1970 … 9999. */
static int64_t second_of(int64_t at_ms)
{
    const int64_t at_s = at_ms < 0 ? 0 : at_ms / 1000;
    return at_s > UTC_LAST_S ? UTC_LAST_S : at_s;
}

static struct date date_of(int64_t at_ms)
{
    const int64_t at_s = second_of(at_ms);
    int year = 1970, month = 1;
    int day = (int)(at_s / DAY_S);
    while (day >= 365 + is_leap(year))
        day -= 365 + is_leap(year++);
    while (day >= month_days(year, month))
        day -= month_days(year, month++);
    return (struct date){year, month, day + 1, (int)(at_s % DAY_S)};
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

struct utc_month utc_month_of(int64_t at_ms)
{
    const struct date date = date_of(at_ms);
    const int64_t begin_s = second_of(at_ms) - date.second - (int64_t)(date.day - 1) * DAY_S;
    const int64_t end_s = begin_s + (int64_t)month_days(date.year, date.month) * DAY_S;
    return (struct utc_month){date.year * 100 + date.month, begin_s * 1000, end_s * 1000};
}

/* --- read --- */

static bool digits_take(struct text *rest, size_t count, int *value)
{
    *value = 0;
    for (size_t i = 0; i < count; i++, rest->at++, rest->length--) {
        if (rest->length == 0 || rest->at[0] < '0' || rest->at[0] > '9')
            return false;
        *value = *value * 10 + (rest->at[0] - '0');
    }
    return true;
}

static bool char_take(struct text *rest, char c)
{
    if (rest->length == 0 || rest->at[0] != c)
        return false;
    rest->at++;
    rest->length--;
    return true;
}

/* "10:00" */
static bool hours_take(struct text *rest, int *minutes)
{
    int hour, minute;
    if (!digits_take(rest, 2, &hour) || !char_take(rest, ':') || !digits_take(rest, 2, &minute))
        return false;
    *minutes = hour * 60 + minute;
    return hour < 24 && minute < 60;
}

/* ".5": half a second. */
static bool fraction_take(struct text *rest, int *ms)
{
    int unit = 100, digit;
    *ms = 0;
    if (!char_take(rest, '.'))
        return true;
    if (!digits_take(rest, 1, &digit))
        return false;
    do {
        *ms += digit * unit;
        unit /= 10;
    } while (digits_take(rest, 1, &digit));
    return true;
}

static bool zone_take(struct text *rest, int *minutes)
{
    *minutes = 0;
    if (char_take(rest, 'Z'))
        return true;
    const bool is_west = char_take(rest, '-');
    if ((!is_west && !char_take(rest, '+')) || !hours_take(rest, minutes))
        return false;
    *minutes *= is_west ? -1 : 1;
    return true;
}

static int64_t days_before(int year, int month)
{
    int64_t days = 0;
    for (int y = 1970; y < year; y++)
        days += 365 + is_leap(y);
    for (int m = 1; m < month; m++)
        days += month_days(year, m);
    return days;
}

bool utc_read(struct text text, int64_t *at_ms)
{
    int year, month, day, minutes, seconds, ms, zone;
    if (!digits_take(&text, 4, &year) || !char_take(&text, '-') || !digits_take(&text, 2, &month) ||
        !char_take(&text, '-') || !digits_take(&text, 2, &day) || !char_take(&text, 'T') ||
        !hours_take(&text, &minutes) || !char_take(&text, ':') || !digits_take(&text, 2, &seconds))
        return false;
    if (!fraction_take(&text, &ms) || !zone_take(&text, &zone) || text.length > 0)
        return false;
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > month_days(year, month) ||
        seconds > 60)
        return false;
    const int64_t at_s =
        (days_before(year, month) + day - 1) * DAY_S + (int64_t)(minutes - zone) * 60 + seconds;
    *at_ms = at_s * 1000 + ms;
    return at_s >= 0;
}
