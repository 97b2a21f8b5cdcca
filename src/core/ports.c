#include "core/ports.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

enum { PORT_LAST = 65535, PAGE_WORDS = PORTS_PAGE_BITS / 64 };

static bool is_taken(const struct ports *ports, uint32_t port)
{
    const uint64_t *page = ports->pages[port / PORTS_PAGE_BITS];
    uint32_t bit = port % PORTS_PAGE_BITS;
    return page && (page[bit / 64] >> (bit % 64) & 1);
}

void ports_release(struct ports *ports)
{
    for (unsigned i = 0; i < PORTS_PAGES; i++)
        mem_free(ports->pages[i]);
    *ports = (struct ports){0};
}

void ports_copy(struct ports *to, const struct ports *from)
{
    *to = *from;
    for (unsigned i = 0; i < PORTS_PAGES; i++) {
        if (!from->pages[i])
            continue;
        to->pages[i] = mem_zero(PAGE_WORDS, sizeof(uint64_t));
        memcpy(to->pages[i], from->pages[i], PAGE_WORDS * sizeof(uint64_t));
    }
}

bool ports_are_free(const struct ports *ports, uint32_t first, uint32_t count)
{
    if (first == 0 || first > PORT_LAST || count > PORT_LAST - first + 1)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (is_taken(ports, first + i))
            return false;
    return true;
}

void ports_take(struct ports *ports, uint32_t first, uint32_t count)
{
    assert(ports_are_free(ports, first, count));
    for (uint32_t port = first; port < first + count; port++) {
        uint64_t **page = &ports->pages[port / PORTS_PAGE_BITS];
        if (!*page)
            *page = mem_zero(PAGE_WORDS, sizeof(uint64_t));
        uint32_t bit = port % PORTS_PAGE_BITS;
        (*page)[bit / 64] |= UINT64_C(1) << (bit % 64);
    }
    ports->taken += count;
}

void ports_give(struct ports *ports, uint32_t first, uint32_t count)
{
    for (uint32_t port = first; port < first + count; port++) {
        assert(is_taken(ports, port));
        uint32_t bit = port % PORTS_PAGE_BITS;
        ports->pages[port / PORTS_PAGE_BITS][bit / 64] &= ~(UINT64_C(1) << (bit % 64));
    }
    ports->taken -= count;
}

/* Within low…high; 0 when there is none. Words that are all free or all taken cost one step. */
static uint32_t find_between(const struct ports *ports, uint32_t low, uint32_t high, uint32_t count)
{
    assert(low <= high + 1 && count > 0);
    uint32_t run = 0, port = low;
    while (port <= high) {
        const uint64_t *page = ports->pages[port / PORTS_PAGE_BITS];
        uint64_t word = page ? page[port % PORTS_PAGE_BITS / 64] : 0;
        bool is_whole = port % 64 == 0 && high - port >= 63 && (!word || !~word);
        uint32_t step = is_whole ? 64 : 1;
        run = word >> (port % 64) & 1 ? 0 : run + step;
        if (run >= count) /* the run began at port + step - run */
            return port + step - run;
        port += step;
    }
    return 0;
}

uint32_t ports_find(struct ports *ports, uint32_t low, uint32_t high, uint32_t count)
{
    assert(count > 0 && low > 0 && high <= PORT_LAST);
    uint32_t start = ports->cursor >= low && ports->cursor <= high ? ports->cursor : low;
    uint32_t first = find_between(ports, start, high, count);
    if (!first && start > low)
        first = find_between(ports, low, high, count);
    if (first)
        ports->cursor = first + count > high ? low : first + count;
    return first;
}
