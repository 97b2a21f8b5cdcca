#include "originals/ranges.h"
#include "base/buf.h"
#include "base/memory.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void ranges_add(struct ranges *ranges, int64_t first, int64_t last)
{
    assert(first <= last);
    *ARRAY_ADD(ranges) = (struct range){first, last};
}

static int range_order(const void *a_pointer, const void *b_pointer)
{
    const struct range *a = a_pointer, *b = b_pointer;
    return (a->first > b->first) - (a->first < b->first);
}

void ranges_coalesce(struct ranges *ranges)
{
    if (ranges->count == 0)
        return;
    qsort(ranges->items, ranges->count, sizeof *ranges->items, range_order);
    size_t used = 1;
    for (size_t i = 1; i < ranges->count; i++) {
        struct range *last = &ranges->items[used - 1];
        const struct range next = ranges->items[i];
        if (last->last == INT64_MAX || next.first <= last->last + 1)
            last->last = next.last > last->last ? next.last : last->last;
        else
            ranges->items[used++] = next;
    }
    ranges->count = used;
}

void ranges_union(const struct ranges *a, const struct ranges *b, struct ranges *out)
{
    assert(out->count == 0);
    for (size_t i = 0; i < a->count; i++)
        ranges_add(out, a->items[i].first, a->items[i].last);
    for (size_t i = 0; i < b->count; i++)
        ranges_add(out, b->items[i].first, b->items[i].last);
    ranges_coalesce(out);
}

void ranges_intersect(const struct ranges *a, const struct ranges *b, struct ranges *out)
{
    assert(out->count == 0);
    size_t i = 0, j = 0;
    while (i < a->count && j < b->count) {
        const struct range x = a->items[i], y = b->items[j];
        const int64_t first = x.first > y.first ? x.first : y.first;
        const int64_t last = x.last < y.last ? x.last : y.last;
        if (first <= last)
            ranges_add(out, first, last);
        if (x.last < y.last)
            i++;
        else
            j++;
    }
}

void ranges_subtract(const struct ranges *a, const struct ranges *b, struct ranges *out)
{
    assert(out->count == 0);
    size_t j = 0;
    for (size_t i = 0; i < a->count; i++) {
        struct range left = a->items[i];
        bool is_left = true;
        while (j < b->count && b->items[j].last < left.first)
            j++;
        for (size_t k = j; is_left && k < b->count && b->items[k].first <= left.last; k++) {
            if (b->items[k].first > left.first)
                ranges_add(out, left.first, b->items[k].first - 1);
            is_left = b->items[k].last < left.last;
            if (is_left)
                left.first = b->items[k].last + 1;
        }
        if (is_left)
            ranges_add(out, left.first, left.last);
    }
}

bool ranges_contain(const struct ranges *a, const struct ranges *b)
{
    struct ranges rest = {0};
    ranges_subtract(b, a, &rest);
    const bool is_contained = rest.count == 0;
    ARRAY_FREE(&rest);
    return is_contained;
}

uint64_t ranges_count(const struct ranges *ranges)
{
    uint64_t count = 0;
    for (size_t i = 0; i < ranges->count; i++)
        count += (uint64_t)(ranges->items[i].last - ranges->items[i].first) + 1;
    return count;
}

static bool put_label(const struct port_demand *demand, struct ranges *left, struct buf *out)
{
    buf_format(out, "%s:", demand->label);
    size_t i = 0;
    for (int64_t taken = 0; taken < demand->count; taken++) {
        while (i < left->count && left->items[i].first > left->items[i].last)
            i++;
        int64_t port = demand->start + taken;
        if (demand->start == 0) {
            if (i == left->count)
                return false;
            port = left->items[i].first++;
        }
        buf_format(out, "%s%lld", taken > 0 ? "," : "", (long long)port);
    }
    buf_char(out, ';');
    return true;
}

bool port_string(const struct port_demand *demands, size_t count, const struct ranges *given,
                 struct buf *out)
{
    struct ranges fixed = {0}, left = {0};
    for (size_t i = 0; i < count; i++)
        if (demands[i].start > 0 && demands[i].count > 0)
            ranges_add(&fixed, demands[i].start, demands[i].start + demands[i].count - 1);
    ranges_coalesce(&fixed);
    bool is_enough = ranges_contain(given, &fixed);
    ranges_subtract(given, &fixed, &left);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; is_enough && i < count; i++)
            if ((demands[i].start > 0) == (pass == 0))
                is_enough = put_label(&demands[i], &left, out);
    ARRAY_FREE(&fixed);
    ARRAY_FREE(&left);
    return is_enough;
}

size_t port_demands_default(struct port_demand *demands, size_t count)
{
    static const char *const labels[] = {"http", "ssh"};
    for (size_t l = 0; l < COUNT_OF(labels); l++) {
        bool is_there = false;
        for (size_t i = 0; i < count; i++)
            is_there |= strcmp(demands[i].label, labels[l]) == 0;
        if (!is_there)
            demands[count++] = (struct port_demand){labels[l], 0, 1};
    }
    return count;
}
