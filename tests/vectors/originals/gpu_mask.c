#include "originals/gpu_mask.h"
#include "base/err.h"
#include "base/text.h"
#include <assert.h>
#include <limits.h>

static uint32_t bits(uint64_t mask)
{
    uint32_t count = 0;
    for (; mask; mask &= mask - 1)
        count++;
    return count;
}

static uint64_t lowest(uint64_t free, uint32_t count)
{
    uint64_t mask = 0;
    for (; count > 0; count--) {
        const uint64_t bit = free & -free;
        mask |= bit;
        free ^= bit;
    }
    return mask;
}

static bool has_type(const char *wanted, const char *type)
{
    if (wanted[0] == '\0')
        return true;
    struct text rest = text_of(wanted);
    while (rest.at) {
        const struct text one = text_trim(text_cut(&rest, ','));
        if (text_is(one, type))
            return true;
    }
    return false;
}

static bool fits(const struct gpu_node *node, const struct gpu_request *request)
{
    const uint64_t free = node->total & ~node->used;
    if (request->gpus == 0 && request->keeps_off_gpu_nodes && node->total != 0)
        return false;
    if (node->cpu < request->cpu || node->memory_mib < request->memory_mib)
        return false;
    if (!has_type(request->gpu_types, node->gpu_type))
        return false;
    return request->mask ? (request->mask & ~free) == 0 : bits(free) >= request->gpus;
}

/* Is a tighter than b? */
static bool is_tighter(const struct gpu_node *a, const struct gpu_node *b)
{
    const uint32_t a_free = bits(a->total & ~a->used), b_free = bits(b->total & ~b->used);
    if (a_free != b_free)
        return a_free < b_free;
    if (bits(a->total) != bits(b->total))
        return bits(a->total) < bits(b->total);
    if (a->cpu != b->cpu)
        return a->cpu < b->cpu;
    return a->memory_mib < b->memory_mib;
}

int gpu_mask_choose(const struct gpu_node *nodes, size_t count, const struct gpu_request *request,
                    struct gpu_choice *choices, size_t room, struct err *err)
{
    if (request->mask != 0 && bits(request->mask) != request->gpus)
        return err_fail(err, ERR_INVALID, "gpuAttribute", "names %u GPUs, but %u are asked for",
                        bits(request->mask), request->gpus);
    assert(room <= INT_MAX);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (!fits(&nodes[i], request))
            continue;
        size_t at = used;
        while (at > 0 && is_tighter(&nodes[i], &nodes[choices[at - 1].node]))
            at--;
        if (at == room)
            continue;
        if (used < room)
            used++;
        for (size_t j = used - 1; j > at; j--)
            choices[j] = choices[j - 1];
        const uint64_t free = nodes[i].total & ~nodes[i].used;
        choices[at] =
            (struct gpu_choice){i, request->mask ? request->mask : lowest(free, request->gpus)};
    }
    return (int)used;
}
