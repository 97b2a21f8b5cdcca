/* simple_need.c — see simple_need.h. */
#include "placement/simple_need.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

static uint64_t sum_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t product_saturated(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static struct simple_need *need_of(struct simple_need *needs, size_t count,
                                   const struct placement_member *member)
{
    for (size_t i = 0; i < count; i++)
        if (!needs[i].is_together && !*member->within_one_cell &&
            simple_member_compare(needs[i].member, member) == 0 &&
            strcmp(needs[i].member->sku_type, member->sku_type) == 0)
            return &needs[i];
    return NULL;
}

static void need_add(const struct placement_request *request, const struct placement_member *member,
                     struct simple_needs *needs)
{
    assert(member->count > 0);
    struct simple_need *need = need_of(needs->items, needs->count, member);
    if (!member->count)
        return;
    if (!need) {
        need = &needs->items[needs->count++];
        *need = (struct simple_need){
            .at = (size_t)(member - request->members),
            .member = member,
            .demand = {member->cpu, member->gpu, member->memory_mib},
            .is_together = *member->within_one_cell,
        };
    }
    need->count = need->is_together ? 1 : need->count + member->count;
    need->tasks = member->count;
    if (!need->is_together) /* of more on one node it is not asked */
        need->tasks = need->count < UINT32_MAX ? (uint32_t)need->count : UINT32_MAX;
}

static void demand_lower(struct demand *least, const struct demand *demand)
{
    least->cpu = demand->cpu < least->cpu ? demand->cpu : least->cpu;
    least->gpu = demand->gpu < least->gpu ? demand->gpu : least->gpu;
    if (demand->memory_mib < least->memory_mib)
        least->memory_mib = demand->memory_mib;
}

/* Sizes stand in ascending order. */
static void size_add(struct simple_sums *sums, uint32_t gpu)
{
    size_t at = 0;
    while (at < sums->size_count && sums->sizes[at].gpu < gpu)
        at++;
    if (!gpu || (at < sums->size_count && sums->sizes[at].gpu == gpu))
        return;
    assert(sums->size_count < COUNT_OF(sums->sizes));
    memmove(&sums->sizes[at + 1], &sums->sizes[at], (sums->size_count - at) * sizeof *sums->sizes);
    memset(&sums->sizes[at], 0, sizeof *sums->sizes);
    sums->sizes[at].gpu = gpu;
    sums->size_count++;
}

/* Of a gang of equal tasks the needs say as much. */
static void sums_list(struct simple_sums *sums, const struct placement_request *request)
{
    for (size_t i = 0; i < request->member_count; i++)
        size_add(sums, request->members[i].gpu);
    for (size_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        const uint64_t count = member->count;
        sums->want.cpu += count * member->cpu;
        sums->want.memory_mib =
            sum_saturated(sums->want.memory_mib, product_saturated(count, member->memory_mib));
        sums->want.gpus += count * member->gpu;
        for (size_t k = 0; k < sums->size_count && sums->sizes[k].gpu <= member->gpu; k++)
            sums->sizes[k].want += count;
    }
}

/* False: more than any node has. */
bool simple_needs_list(const struct placement_request *request, struct simple_needs *needs)
{
    needs->items = mem_zero(request->member_count + 1, sizeof *needs->items);
    if (request->within_one_cell && *request->within_one_cell) {
        struct simple_need *whole = &needs->items[needs->count++];
        *whole = (struct simple_need){.count = 1, .is_together = true, .tasks = 1};
        if (!simple_gang_demand(request, &whole->demand))
            return false;
    } else {
        for (size_t i = 0; i < request->member_count; i++)
            need_add(request, &request->members[i], needs);
        if (needs->count > 1)
            sums_list(&needs->sums, request);
    }
    needs->least = (struct demand){UINT32_MAX, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < needs->count; i++)
        demand_lower(&needs->least, &needs->items[i].demand);
    return true;
}

/* In each piece the request is another copy of the same. */
void simple_needs_settle(struct simple_needs *needs, const struct placement_request *request)
{
    for (size_t i = 0; i < needs->count; i++)
        if (needs->items[i].member)
            needs->items[i].member = &request->members[needs->items[i].at];
}

static uint64_t sum_changed(uint64_t sum, uint64_t by, bool is_added)
{
    assert(is_added || sum >= by);
    return is_added ? sum + by : sum - by;
}

void simple_sums_count(struct simple_sums *sums, const struct simple_view *view, bool is_added)
{
    struct simple_share *have = &sums->have;
    have->cpu = sum_changed(have->cpu, view->cpu, is_added);
    have->memory_mib = sum_changed(have->memory_mib, view->memory_mib, is_added);
    have->gpus = sum_changed(have->gpus, view->gpu_count, is_added);
    for (size_t i = 0; i < sums->size_count && sums->sizes[i].gpu <= view->gpu_count; i++)
        sums->sizes[i].have =
            sum_changed(sums->sizes[i].have, view->gpu_count / sums->sizes[i].gpu, is_added);
}

bool simple_sums_suffice(const struct simple_sums *sums)
{
    bool suffice = sums->have.cpu >= sums->want.cpu &&
                   sums->have.memory_mib >= sums->want.memory_mib &&
                   sums->have.gpus >= sums->want.gpus;
    for (size_t i = 0; i < sums->size_count && suffice; i++)
        suffice = sums->sizes[i].have >= sums->sizes[i].want;
    return suffice;
}

/* No node has anything. */
void simple_sums_clear(struct simple_sums *sums)
{
    sums->have = (struct simple_share){0};
    for (size_t i = 0; i < sums->size_count; i++)
        sums->sizes[i].have = 0;
}
