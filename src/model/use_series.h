/* use_series.h — what a task or a machine used over time, at two resolutions, in bounded memory.
 *
 * Pure. A sample is taken about every USE_STEP_MS. The latest USE_RECENT_POINTS of them are kept as
 * they are (half an hour); beside them the whole time since the first sample is kept in at most
 * USE_WHOLE_POINTS points, each the mean of the samples that fall into it: whenever they are full,
 * two points become one and a point covers twice the time. So a series has the same size after a
 * minute and after a year: USE_SERIES_SIZE bytes when written.
 *
 * Values are whole numbers with eleven significant bits (an error of less than 0.05 %), as 16 bits.
 */
#ifndef MODEL_USE_SERIES_H
#define MODEL_USE_SERIES_H
#include "base/text.h"
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

enum {
    USE_STEP_MS = 10000,
    USE_RECENT_POINTS = 180,
    USE_WHOLE_POINTS = 240,
    USE_POINTS_MAX = USE_WHOLE_POINTS, /* the larger of both */
};

/* What is measured. All but memory are rates, so that those of tasks can be added up. */
enum use_field {
    USE_CPU,        /* thousandths of a core */
    USE_MEMORY,     /* bytes */
    USE_READ,       /* of disks, bytes a second */
    USE_WRITTEN,    /* likewise */
    USE_RECEIVED,   /* from the network, bytes a second; unknown of a task on the host's network */
    USE_SENT,       /* likewise */
    USE_GPU,        /* thousandths of a GPU that were busy */
    USE_GPU_MEMORY, /* bytes */
    USE_GPU_POWER,  /* thousandths of a watt */
    USE_FIELDS,
};
extern const char *const USE_FIELD_NAMES[USE_FIELDS]; /* "cpu", "memory", … */

#define USE_UNKNOWN UINT64_MAX /* in place of a value */

struct use_point {
    uint16_t codes[USE_FIELDS];
};

struct use_series {       /* zeroed: empty */
    int64_t first, last;  /* steps since 1970 of the first sample and of the latest; 0: none */
    uint32_t whole_steps; /* that a point of `whole` covers */
    uint32_t whole_count; /* finished points; the next is in sums */
    struct use_point recent[USE_RECENT_POINTS]; /* of a step: at its number modulo the length */
    struct use_point whole[USE_WHOLE_POINTS];
    uint64_t sums[USE_FIELDS], counts[USE_FIELDS];
};

enum {
    USE_SERIES_SIZE = 4 + 8 + 8 + 4 + 4 + 2 * USE_FIELDS * (USE_RECENT_POINTS + USE_WHOLE_POINTS) +
                      16 * USE_FIELDS
};

/* Values that the series could hold: what is written and read again is not changed any more. */
uint16_t use_code(uint64_t value);
uint64_t use_value(uint16_t code);

/* Of one step the latest sample counts. A sample that is older than the latest by less than the
 * time of all recent points is passed over (the clock was set back); one that is older still takes
 * the step after the latest: the series goes on ahead of the time, as nobody knows which of both is
 * wrong, and nothing of it is lost. */
void use_series_add(struct use_series *series, int64_t at_ms, const uint64_t values[USE_FIELDS]);

enum use_resolution { USE_RECENT, USE_WHOLE };

struct use_points {
    int64_t begin_ms, step_ms; /* of the first point; point i covers the step that begins i later */
    size_t count;
    uint64_t values[USE_POINTS_MAX][USE_FIELDS];
};

/* The points from the first that is known to the latest; a step without sample is USE_UNKNOWN. */
void use_series_points(const struct use_series *series, enum use_resolution resolution,
                       struct use_points *points);

/* A grid of USE_WHOLE_POINTS points at most, of whole steps, that covers the time; all unknown. */
void use_points_grid(struct use_points *sum, int64_t begin_ms, int64_t end_ms);
/* Add what is known of another series to each point of the grid that lies within it. */
void use_points_sum(struct use_points *sum, const struct use_points *more);

/* To and from USE_SERIES_SIZE bytes. Read: ERR_CORRUPT when it is not what write makes. */
void use_series_write(const struct use_series *series, struct buf *out);
int use_series_read(struct use_series *series, struct text bytes, struct err *err);

#endif
