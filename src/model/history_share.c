#include "model/history_share.h"
#include <assert.h>
#include <stdbool.h>

/* What can be taken from an owner. */
static uint64_t above(const struct history_owner *owner, bool has_shares)
{
    const uint64_t left = owner->kept - owner->loses;
    if (!has_shares)
        return left;
    return owner->share < 0 || left <= (uint64_t)owner->share ? 0 : left - (uint64_t)owner->share;
}

static uint64_t above_level(const struct history_owner *owners, size_t count, bool has_shares,
                            uint64_t level)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t own = above(&owners[i], has_shares);
        sum += own > level ? own - level : 0;
    }
    return sum;
}

/* The lowest level that takes no more than `most`; then one more from some who are at it. */
static uint64_t level_cut(struct history_owner *owners, size_t count, bool has_shares,
                          uint64_t most)
{
    uint64_t low = 0, high = 0, taken = 0;
    for (size_t i = 0; i < count; i++)
        if (above(&owners[i], has_shares) > high)
            high = above(&owners[i], has_shares);
    while (low < high) {
        const uint64_t level = low + (high - low) / 2;
        if (above_level(owners, count, has_shares, level) <= most)
            high = level;
        else
            low = level + 1;
    }
    const uint64_t rest = most - above_level(owners, count, has_shares, low);
    uint64_t more = low > 0 ? rest : 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t own = above(&owners[i], has_shares);
        uint64_t loses = own > low ? own - low : 0;
        if (own >= low && more > 0) {
            loses++;
            more--;
        }
        owners[i].loses += loses;
        taken += loses;
    }
    assert(taken <= most);
    return taken;
}

void history_share_cut(struct history_owner *owners, size_t count, uint64_t most)
{
    for (size_t i = 0; i < count; i++)
        owners[i].loses = 0;
    const uint64_t taken = level_cut(owners, count, true, most);
    level_cut(owners, count, false, most - taken);
}
