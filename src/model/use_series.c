#include "model/use_series.h"
#include "base/buf.h"
#include "base/err.h"
#include <assert.h>
#include <string.h>

const char *const USE_FIELD_NAMES[USE_FIELDS] = {
    [USE_CPU] = "cpu",         [USE_MEMORY] = "memory",        [USE_READ] = "read",
    [USE_WRITTEN] = "written", [USE_RECEIVED] = "received",    [USE_SENT] = "sent",
    [USE_GPU] = "gpu",         [USE_GPU_MEMORY] = "gpuMemory", [USE_GPU_POWER] = "gpuPower",
};

/* ---- values in 16 bits ---- */

enum {
    DIGITS = 11,               /* significant bits */
    EXACT = 1 << DIGITS,       /* smaller values are kept as they are */
    SCALE = 1 << (DIGITS - 1), /* codes of one power of two */
};

/* 0 says that nothing is known; the values follow in their order. */
uint16_t use_code(uint64_t value)
{
    unsigned shift = 0;
    if (value == USE_UNKNOWN)
        return 0;
    while (value >> shift >= EXACT)
        shift++;
    return (uint16_t)(1 + shift * SCALE + (value >> shift));
}

uint64_t use_value(uint16_t code)
{
    if (code == 0)
        return USE_UNKNOWN;
    unsigned number = code - 1u;
    if (number < EXACT)
        return number;
    unsigned shift = number / SCALE - 1;
    return (uint64_t)(number - shift * SCALE) << shift;
}

/* ---- adding ---- */

static struct use_point *recent_at(struct use_series *series, int64_t step)
{
    return &series->recent[step % USE_RECENT_POINTS];
}

/* The point that is being gathered is complete. */
static void whole_finish(struct use_series *series)
{
    struct use_point *point = &series->whole[series->whole_count++];
    for (size_t i = 0; i < USE_FIELDS; i++)
        point->codes[i] =
            use_code(series->counts[i] ? series->sums[i] / series->counts[i] : USE_UNKNOWN);
    memset(series->sums, 0, sizeof series->sums);
    memset(series->counts, 0, sizeof series->counts);
}

static uint64_t mean_of(uint64_t a, uint64_t b)
{
    if (a == USE_UNKNOWN)
        return b;
    if (b == USE_UNKNOWN)
        return a;
    return a / 2 + b / 2 + (a % 2 + b % 2) / 2;
}

/* Two points become one. */
static void whole_halve(struct use_series *series)
{
    assert(series->whole_count == USE_WHOLE_POINTS);
    for (size_t i = 0; i < USE_WHOLE_POINTS / 2; i++)
        for (size_t k = 0; k < USE_FIELDS; k++)
            series->whole[i].codes[k] =
                use_code(mean_of(use_value(series->whole[2 * i].codes[k]),
                                 use_value(series->whole[2 * i + 1].codes[k])));
    series->whole_count /= 2;
    series->whole_steps *= 2;
}

/* Finish points until the gathered one covers the step. */
static void whole_reach(struct use_series *series, int64_t step)
{
    while ((step - series->first) / series->whole_steps > series->whole_count) {
        whole_finish(series);
        if (series->whole_count == USE_WHOLE_POINTS)
            whole_halve(series);
    }
}

static void series_begin(struct use_series *series, int64_t step)
{
    memset(series, 0, sizeof *series);
    series->first = step;
    series->last = step;
    series->whole_steps = 1;
}

void use_series_add(struct use_series *series, int64_t at_ms, const uint64_t values[USE_FIELDS])
{
    assert(at_ms >= USE_STEP_MS);
    int64_t step = at_ms / USE_STEP_MS;
    if (series->last == 0)
        series_begin(series, step);
    else if (series->last - step >= USE_RECENT_POINTS)
        step = series->last + 1;
    if (step < series->last)
        return;
    if (step - series->last >= USE_RECENT_POINTS)
        memset(series->recent, 0, sizeof series->recent);
    for (int64_t at = series->last + 1; at < step && at < series->last + USE_RECENT_POINTS; at++)
        *recent_at(series, at) = (struct use_point){0};
    series->last = step;
    whole_reach(series, step);
    for (size_t i = 0; i < USE_FIELDS; i++) {
        recent_at(series, step)->codes[i] = use_code(values[i]);
        if (values[i] == USE_UNKNOWN)
            continue;
        series->sums[i] += values[i];
        series->counts[i]++;
    }
}

/* ---- reading ---- */

static void point_take(const struct use_point *point, uint64_t values[USE_FIELDS])
{
    for (size_t i = 0; i < USE_FIELDS; i++)
        values[i] = use_value(point->codes[i]);
}

static void recent_points(const struct use_series *series, struct use_points *points)
{
    int64_t begin = series->last - USE_RECENT_POINTS + 1;
    if (begin < series->first)
        begin = series->first;
    points->begin_ms = begin * USE_STEP_MS;
    points->step_ms = USE_STEP_MS;
    points->count = (size_t)(series->last - begin + 1);
    for (size_t i = 0; i < points->count; i++)
        point_take(&series->recent[(begin + (int64_t)i) % USE_RECENT_POINTS], points->values[i]);
}

static void whole_points(const struct use_series *series, struct use_points *points)
{
    struct use_series copy = *series; /* the point that is being gathered counts */
    whole_finish(&copy);
    points->begin_ms = copy.first * USE_STEP_MS;
    points->step_ms = (int64_t)copy.whole_steps * USE_STEP_MS;
    points->count = copy.whole_count;
    for (size_t i = 0; i < points->count; i++)
        point_take(&copy.whole[i], points->values[i]);
}

void use_series_points(const struct use_series *series, enum use_resolution resolution,
                       struct use_points *points)
{
    points->count = 0;
    points->begin_ms = 0;
    points->step_ms = USE_STEP_MS;
    if (series->last == 0)
        return;
    if (resolution == USE_RECENT)
        recent_points(series, points);
    else
        whole_points(series, points);
}

/* ---- sums ---- */

void use_points_grid(struct use_points *sum, int64_t begin_ms, int64_t end_ms)
{
    int64_t first = begin_ms / USE_STEP_MS, last = end_ms / USE_STEP_MS, steps = 1;
    if (last < first)
        last = first;
    while ((last - first) / steps >= USE_WHOLE_POINTS)
        steps *= 2;
    sum->begin_ms = first * USE_STEP_MS;
    sum->step_ms = steps * USE_STEP_MS;
    sum->count = (size_t)((last - first) / steps + 1);
    for (size_t i = 0; i < sum->count; i++)
        for (size_t k = 0; k < USE_FIELDS; k++)
            sum->values[i][k] = USE_UNKNOWN;
}

/* Mean of what is known in the time from `from_ms` to before `to_ms`. */
static uint64_t mean_between(const struct use_points *points, enum use_field field, int64_t from_ms,
                             int64_t to_ms)
{
    int64_t end_ms = points->begin_ms + (int64_t)points->count * points->step_ms;
    uint64_t sum = 0, count = 0;
    if (from_ms < points->begin_ms)
        from_ms = points->begin_ms;
    if (to_ms > end_ms)
        to_ms = end_ms;
    for (int64_t at = from_ms; at < to_ms; at += points->step_ms) {
        uint64_t value = points->values[(at - points->begin_ms) / points->step_ms][field];
        if (value == USE_UNKNOWN)
            continue;
        sum += value;
        count++;
    }
    return count ? sum / count : USE_UNKNOWN;
}

void use_points_sum(struct use_points *sum, const struct use_points *more)
{
    for (size_t i = 0; i < sum->count; i++) {
        int64_t from_ms = sum->begin_ms + (int64_t)i * sum->step_ms;
        for (size_t k = 0; k < USE_FIELDS; k++) {
            uint64_t value = mean_between(more, (enum use_field)k, from_ms, from_ms + sum->step_ms);
            uint64_t *to = &sum->values[i][k];
            if (value != USE_UNKNOWN)
                *to = *to == USE_UNKNOWN ? value : *to + value;
        }
    }
}

/* ---- as bytes ---- */

static const char MAGIC[] = "use1";

static void points_write(const struct use_point *points, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < USE_FIELDS; k++) {
            buf_put_u8(out, (uint8_t)points[i].codes[k]);
            buf_put_u8(out, (uint8_t)(points[i].codes[k] >> 8));
        }
}

static void points_read(struct cursor *cursor, struct use_point *points, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < USE_FIELDS; k++) {
            uint8_t low = cursor_u8(cursor);
            points[i].codes[k] = (uint16_t)(low | cursor_u8(cursor) << 8);
        }
}

void use_series_write(const struct use_series *series, struct buf *out)
{
    size_t begin = out->length;
    for (size_t i = 0; i < 4; i++)
        buf_put_u8(out, (uint8_t)MAGIC[i]);
    buf_put_u64(out, (uint64_t)series->first);
    buf_put_u64(out, (uint64_t)series->last);
    buf_put_u32(out, series->whole_steps);
    buf_put_u32(out, series->whole_count);
    for (size_t i = 0; i < USE_FIELDS; i++) {
        buf_put_u64(out, series->sums[i]);
        buf_put_u64(out, series->counts[i]);
    }
    points_write(series->recent, USE_RECENT_POINTS, out);
    points_write(series->whole, USE_WHOLE_POINTS, out);
    assert(out->length - begin == USE_SERIES_SIZE);
    (void)begin;
}

/* What use_series_add keeps true. */
static bool series_is_sound(const struct use_series *series)
{
    uint64_t steps = series->whole_steps;
    if (series->first <= 0 || series->last < series->first ||
        series->last >= INT64_MAX / USE_STEP_MS - USE_RECENT_POINTS)
        return series->first == 0 && series->last == 0;
    return steps > 0 && series->whole_count < USE_WHOLE_POINTS &&
           (uint64_t)(series->last - series->first) / steps == series->whole_count;
}

int use_series_read(struct use_series *series, struct text bytes, struct err *err)
{
    struct cursor cursor = cursor_of(bytes);
    if (bytes.length != USE_SERIES_SIZE || memcmp(bytes.at, MAGIC, 4) != 0)
        return err_fail(err, ERR_CORRUPT, "", "it is no series of use of this version");
    cursor.at += 4;
    memset(series, 0, sizeof *series);
    series->first = (int64_t)cursor_u64(&cursor);
    series->last = (int64_t)cursor_u64(&cursor);
    series->whole_steps = cursor_u32(&cursor);
    series->whole_count = cursor_u32(&cursor);
    for (size_t i = 0; i < USE_FIELDS; i++) {
        series->sums[i] = cursor_u64(&cursor);
        series->counts[i] = cursor_u64(&cursor);
    }
    points_read(&cursor, series->recent, USE_RECENT_POINTS);
    points_read(&cursor, series->whole, USE_WHOLE_POINTS);
    assert(!cursor.is_bad && cursor.at == cursor.end);
    if (!series_is_sound(series))
        return err_fail(err, ERR_CORRUPT, "", "the times of a series of use do not fit together");
    return 0;
}
