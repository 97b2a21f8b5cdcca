/* bins.c — items of several sizes into bins of several sizes, exactly.
 *
 * Bins of equal free space are alike, so a state is how many bins there are of each free space.
 * Best fit decreasing answers nearly always; else a depth-first search in which equal items take
 * bins of non-increasing space, and states that failed are remembered. Bounded by PACK_STEPS_MAX.
 */
#include "base/arena.h"
#include "base/map.h"
#include "hived/state.h"
#include <assert.h>
#include <string.h>

struct bins_search {
    uint32_t *counts; /* bins of each free space, [space_max + 1] */
    uint32_t space_max;
    const uint32_t *sizes;
    uint32_t count;
    uint32_t *spaces;     /* chosen: free space of the bin before item i */
    struct id_map failed; /* hashes of states without a solution */
    uint64_t free_sum;    /* over bins */
    uint64_t *need_sum;   /* of items i … */
    uint32_t steps;
};

static uint64_t state_hash(const struct bins_search *search, uint32_t item, uint32_t limit)
{
    struct text bytes = {(const char *)search->counts,
                         (search->space_max + 1) * sizeof *search->counts};
    return text_hash(bytes, (uint64_t)item << 32 | limit);
}

static void move(struct bins_search *search, uint32_t from, uint32_t to)
{
    search->counts[from]--;
    search->counts[to]++;
}

static uint32_t limit_of(const struct bins_search *search, uint32_t item)
{
    bool is_equal = item > 0 && search->sizes[item - 1] == search->sizes[item];
    return is_equal ? search->spaces[item - 1] : search->space_max;
}

/* Space below `below` that the item may take next, or NONE. */
static uint32_t next_space(const struct bins_search *search, uint32_t item, uint32_t below)
{
    assert(item < search->count);
    uint32_t size = search->sizes[item];
    for (uint32_t space = below; space-- > size;)
        if (search->counts[space])
            return space;
    return NONE;
}

static bool state_failed(const struct bins_search *search, uint32_t item)
{
    assert(item <= search->count);
    if (search->free_sum < search->need_sum[item])
        return true;
    return id_map_get(&search->failed, state_hash(search, item, limit_of(search, item))) !=
           MAP_NONE;
}

static bool search_run(struct bins_search *search, bool *is_cut)
{
    assert(search->count > 0);
    uint32_t item = 0, below = search->space_max + 1;
    for (;;) {
        if (++search->steps > PACK_STEPS_MAX) {
            *is_cut = true;
            return false;
        }
        uint32_t space = next_space(search, item, below);
        if (space != NONE) {
            search->spaces[item] = space;
            move(search, space, space - search->sizes[item]);
            search->free_sum -= search->sizes[item];
            if (++item == search->count)
                return true;
            below = state_failed(search, item) ? 0 : limit_of(search, item) + 1;
            if (below)
                continue;
        } else {
            id_map_set(&search->failed, state_hash(search, item, limit_of(search, item)), 1);
        }
        if (item == 0)
            return false;
        item--;
        move(search, search->spaces[item] - search->sizes[item], search->spaces[item]);
        search->free_sum += search->sizes[item];
        below = search->spaces[item];
    }
}

/* Which bins, when only their free spaces are known: bins of equal space in a list, first in order
 * first out. */
static void bins_name(const struct bins_search *search, struct bins_fit *fit, struct arena *arena)
{
    uint32_t *heads = ARENA_ARRAY(arena, uint32_t, search->space_max + 1);
    uint32_t *next = ARENA_ARRAY(arena, uint32_t, fit->bin_count);
    memset(heads, 0xff, (search->space_max + 1) * sizeof *heads);
    for (uint32_t i = fit->bin_count; i-- > 0;) {
        next[i] = heads[fit->free[i]];
        heads[fit->free[i]] = i;
    }
    for (uint32_t i = 0; i < search->count; i++) {
        uint32_t bin = heads[search->spaces[i]], left = search->spaces[i] - search->sizes[i];
        heads[search->spaces[i]] = next[bin];
        next[bin] = heads[left];
        heads[left] = bin;
        fit->chosen[i] = bin;
    }
}

static bool best_fit(struct bins_search *search)
{
    assert(search->count > 0);
    for (uint32_t i = 0; i < search->count; i++) {
        uint32_t space = search->sizes[i];
        while (space <= search->space_max && !search->counts[space])
            space++;
        if (space > search->space_max)
            return false;
        search->spaces[i] = space;
        move(search, space, space - search->sizes[i]);
    }
    return true;
}

static void counts_set(struct bins_search *search, const uint32_t *free, uint32_t bin_count)
{
    memset(search->counts, 0, (search->space_max + 1) * sizeof *search->counts);
    search->free_sum = 0;
    for (uint32_t i = 0; i < bin_count; i++) {
        search->counts[free[i]]++;
        search->free_sum += free[i];
    }
}

bool bins_fill(struct bins_fit *fit, struct arena *arena)
{
    assert(fit->size_count == 0 || fit->sizes);
    uint32_t count = fit->size_count;
    struct bins_search search = {.sizes = fit->sizes, .count = count};
    for (uint32_t i = 0; i < fit->bin_count; i++)
        if (fit->free[i] > search.space_max)
            search.space_max = fit->free[i];
    search.counts = ARENA_ARRAY(arena, uint32_t, search.space_max + 1);
    search.spaces = ARENA_ARRAY(arena, uint32_t, count);
    search.need_sum = ARENA_ARRAY(arena, uint64_t, count + 1);
    for (uint32_t i = count; i-- > 0;)
        search.need_sum[i] = search.need_sum[i + 1] + fit->sizes[i];
    counts_set(&search, fit->free, fit->bin_count);
    if (!count || search.free_sum < search.need_sum[0] || fit->sizes[0] > search.space_max)
        return false;
    bool is_found = best_fit(&search);
    if (!is_found && count <= PACK_ITEMS_MAX) {
        counts_set(&search, fit->free, fit->bin_count);
        is_found = search_run(&search, &fit->is_cut);
        id_map_release(&search.failed);
    } else if (!is_found) {
        fit->is_cut = true;
    }
    if (is_found)
        bins_name(&search, fit, arena);
    return is_found;
}
