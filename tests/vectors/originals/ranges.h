/* ranges.h — sets of whole numbers as ranges, for ports as the early platform wrote them.
 *
 * A set is a list of ranges that rise and neither touch nor overlap; ranges_coalesce makes one of
 * any list. Both ends belong to a range. Owned by the caller; release with ARRAY_FREE. Source: the
 * early launcher. No program contains it: the driver of the recorded behaviour compares it with the
 * original.
 */
#ifndef ORIGINALS_RANGES_H
#define ORIGINALS_RANGES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

struct range {
    int64_t first, last;
};

struct ranges {
    struct range *items;
    size_t count, room;
};

void ranges_add(struct ranges *ranges, int64_t first, int64_t last); /* to any list */
void ranges_coalesce(struct ranges *ranges); /* sorts, joins what touches or overlaps */

/* Of two sets; `out` must be empty. */
void ranges_union(const struct ranges *a, const struct ranges *b, struct ranges *out);
void ranges_intersect(const struct ranges *a, const struct ranges *b, struct ranges *out);
void ranges_subtract(const struct ranges *a, const struct ranges *b, struct ranges *out);
bool ranges_contain(const struct ranges *a, const struct ranges *b); /* all of b in a */
uint64_t ranges_count(const struct ranges *ranges);                  /* numbers in a set */

/* A label of a job's ports: `start` 0 takes any numbers. */
struct port_demand {
    const char *label;
    int64_t start, count;
};
/* "label:p1,p2;label2:p3;" — labels with a fixed start first, in their order; the others take what
 * is left of `given` from its lowest number. False when `given` has too few. */
bool port_string(const struct port_demand *demands, size_t count, const struct ranges *given,
                 struct buf *out);
/* Add http and ssh, one port each, where missing; `demands` has room for two more. */
size_t port_demands_default(struct port_demand *demands, size_t count);

#endif
