/* simple_result.c — see simple_result.h. */
#include "placement/simple_result.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "model/reason.h"

void simple_result_bind(const struct simple_slot *slots, size_t count, struct arena *arena,
                        struct placement_result *result)
{
    size_t gpu_count = 0;
    assert(count == 0 || slots);
    for (size_t i = 0; i < count; i++)
        gpu_count += bit_count(slots[i].gpus);
    uint16_t *next = ARENA_ARRAY(arena, uint16_t, gpu_count + 1);
    result->kind = PLACEMENT_BIND;
    result->slot_count = count;
    result->slots = ARENA_ARRAY(arena, struct placement_slot, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct placement_slot *slot = &result->slots[i];
        slot->node.v = slots[i].node;
        slot->gpus = next;
        for (uint64_t gpus = slots[i].gpus; gpus; gpus &= gpus - 1)
            *next++ = (uint16_t)__builtin_ctzll(gpus);
        slot->gpu_count = (uint16_t)(next - slot->gpus);
    }
}

void simple_result_preempt(const struct simple *simple, const bool *is_victim, struct arena *arena,
                           struct placement_result *result)
{
    assert(is_victim);
    result->kind = PLACEMENT_PREEMPT;
    size_t count = 0;
    for (size_t i = 0; i < simple->groups.count; i++)
        count += is_victim[i];
    result->victims = ARENA_ARRAY(arena, const char *, count + 1);
    for (size_t i = 0; i < simple->groups.count; i++)
        if (is_victim[i] && simple->groups.items[i].name) /* it may have ended since */
            result->victims[result->victim_count++] =
                arena_copy(arena, text_of(simple->groups.items[i].name));
}

static void holders_write(const struct simple *simple, struct buf *out)
{
    enum { NAMED_MAX = 3 };
    size_t named = 0, holders = simple->live_groups;
    for (size_t i = 0; i < simple->groups.count && named < NAMED_MAX; i++) {
        const struct simple_group *group = &simple->groups.items[i];
        if (!group->name || group->is_waiting)
            continue;
        buf_string(out, named++ ? REASON_NEXT : REASON_HELD_BY);
        buf_format(out, REASON_HOLDER, group->name);
    }
    if (holders > named)
        buf_format(out, REASON_MORE, holders - named);
}

/* "2 x (1 GPU, 4 CPU, 512 MiB) of V100 + 1 x (0 GPU, …)" */
static void demand_write(const struct placement_request *request, struct buf *out)
{
    const char *within = request->within_one_cell;
    for (size_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        buf_string(out, i ? REASON_PLUS : "");
        buf_format(out, REASON_TASKS, member->count, member->gpu, member->cpu,
                   (unsigned long long)member->memory_mib);
        if (*member->sku_type)
            buf_format(out, REASON_TASKS_OF, member->sku_type);
        if (*member->within_one_cell)
            buf_string(out, REASON_TASKS_ON_ONE);
    }
    if (within && *within)
        buf_string(out, REASON_TASKS_ALL_ONE);
}

struct free_room {
    uint64_t cpu, mib, gpu, all_cpu, all_mib, all_gpu;
    uint32_t largest;
    size_t healthy, suitable;
};

/* What is free on the nodes of the types asked for. */
static struct free_room room_of(const struct simple *simple,
                                const struct placement_request *request, struct arena *arena)
{
    bool *suits = ARENA_ARRAY(arena, bool, simple->kinds.count + 1);
    struct free_room room = {0};
    for (size_t i = 0; i < simple->kinds.count; i++) {
        const struct simple_kind *kind = &simple->kinds.items[i];
        suits[i] = simple_kind_suits(kind, request);
        if (!suits[i])
            continue;
        room.suitable += kind->suitable;
        room.healthy += kind->healthy;
        room.all_cpu += kind->all_cpu;
        room.all_mib += kind->all_mib;
        room.all_gpu += kind->all_gpu;
    }
    for (size_t i = 0; i < simple->nodes.count; i++) {
        const struct simple_view *view = &simple->free[i];
        const bool is_healthy = simple->traits[i] & NODE_HEALTHY;
        if (!(simple->traits[i] & NODE_KNOWN) || !suits[simple->kind_of[i]])
            continue;
        if (!is_healthy)
            continue;
        room.cpu += view->cpu;
        room.mib += view->memory_mib;
        room.gpu += view->gpu_count;
        room.largest = view->gpu_count > room.largest ? view->gpu_count : room.largest;
    }
    return room;
}

/* Returns its topic. */
static uint64_t reason_write(const struct simple *simple, const struct placement_request *request,
                             bool is_never, struct arena *arena, struct buf *out)
{
    uint64_t topic;
    struct free_room room = room_of(simple, request, arena);
    buf_string(out, REASON_NEEDS);
    demand_write(request, out);
    if (room.suitable) {
        buf_format(out, REASON_ROOM_NODES, room.healthy, room.healthy == 1 ? "" : "s",
                   (unsigned long long)room.gpu, (unsigned long long)room.all_gpu, room.largest,
                   (unsigned long long)room.cpu, (unsigned long long)room.all_cpu,
                   (unsigned long long)room.mib, (unsigned long long)room.all_mib);
        topic = text_words_hash(buf_as_text(out), 0);
        holders_write(simple, out);
    } else {
        buf_string(out, REASON_NO_TYPE);
        topic = text_words_hash(buf_as_text(out), 0);
    }
    if (is_never)
        buf_string(out, room.suitable ? REASON_NEVER_ROOM : REASON_NEVER);
    return topic;
}

void simple_result_wait(const struct simple_search *search, bool is_never, struct arena *arena,
                        struct placement_result *result)
{
    cleanup_buf struct buf reason = BUF_INIT;
    result->kind = PLACEMENT_WAIT;
    result->is_never = is_never;
    result->topic = reason_write(search->simple, search->request, result->is_never, arena, &reason);
    result->reason = arena_copy(arena, buf_as_text(&reason));
}
