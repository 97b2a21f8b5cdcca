/* simple_check.c — what the plain placers hold, counted anew. For tests. */
#include <string.h>

#include "base/memory.h"
#include "placement/check.h"
#include "placement/simple_parts.h"

static int slot_count(struct simple_node *nodes, size_t node_count, const struct simple_slot *slot,
                      const char *group, struct err *err)
{
    CHECK(slot->node < node_count, group, "is on the unknown node %u", slot->node);
    struct simple_node *node = &nodes[slot->node];
    CHECK(!(node->gpus_taken & slot->gpus), group, "has a GPU of another task on node %u",
          slot->node);
    node->cpu_used += slot->cpu;
    node->memory_used += slot->memory_mib;
    node->gpus_taken |= slot->gpus;
    return 0;
}

static void share_count(struct simple_share *share, const struct simple_slot *slot)
{
    share->cpu += slot->cpu;
    share->memory_mib += slot->memory_mib;
    share->gpus |= slot->gpus;
}

static int group_count(const struct simple_group *group, const struct placement_visit *visit,
                       struct simple *counted, size_t node_count, struct err *err)
{
    size_t live = 0;
    if (group->is_waiting) {
        for (size_t i = 0; i < group->slot_count; i++)
            share_count(&counted->kept[group->slots[i].node], &group->slots[i]);
        visit->see(visit->context, group->name, PLACEMENT_WAITING, NODE_NONE);
        return 0;
    }
    for (size_t i = 0; i < group->slot_count; i++) {
        if (group->slots[i].node == UINT32_MAX)
            continue;
        live++;
        int code = slot_count(counted->nodes.items, node_count, &group->slots[i], group->name, err);
        if (code)
            return code;
        visit->see(visit->context, group->name, i, (struct node_id){group->slots[i].node});
    }
    CHECK(live > 0 && live == group->live, group->name, "has %zu live tasks, not %zu", live,
          group->live);
    return 0;
}

static int kinds_check(const struct simple *simple, struct err *err)
{
    for (size_t k = 0; k < simple->kinds.count; k++) {
        const struct simple_kind *kind = &simple->kinds.items[k];
        uint64_t cpu = 0, mib = 0, gpu = 0;
        size_t suitable = 0, healthy = 0;
        for (size_t i = 0; i < simple->nodes.count; i++) {
            const struct node_facts *facts = &simple->nodes.items[i].facts;
            if (!simple->nodes.items[i].is_known || simple->kind_of[i] != k)
                continue;
            suitable++;
            healthy += facts->is_healthy;
            cpu += facts->is_healthy ? facts->cpu : 0;
            mib += facts->is_healthy ? facts->memory_mib : 0;
            gpu += facts->is_healthy ? facts->gpu_count : 0;
        }
        CHECK(kind->suitable == suitable && kind->healthy == healthy && kind->all_cpu == cpu &&
                  kind->all_mib == mib && kind->all_gpu == gpu,
              kind->type, "is not counted as its nodes tell");
    }
    return 0;
}

/* What the groups hold, on `counted`, and how many there are of each kind. */
static int groups_count(const struct simple *simple, const struct placement_visit *visit,
                        struct simple *counted, struct err *err)
{
    for (size_t i = 0; i < simple->groups.count; i++) {
        const struct simple_group *group = &simple->groups.items[i];
        CHECK(group->name || !simple->ranks.items[i].runs, "groups", "one that is gone is ranked");
        if (!group->name)
            continue;
        counted->live_groups += !group->is_waiting;
        counted->waiting_groups += group->is_waiting;
        counted->by_priority[priority_index(group->priority)] += !group->is_waiting;
        int code = group_count(group, visit, counted, simple->nodes.count, err);
        if (code)
            return code;
        CHECK(text_map_get(&simple->names, text_of(group->name)) == i, group->name,
              "is not found by its name");
        const struct simple_rank *rank = &simple->ranks.items[i];
        CHECK(rank->runs == !group->is_waiting && rank->priority == group->priority &&
                  rank->cluster == group->cluster,
              group->name, "is not ranked as it is");
        const bool is_alone = rank->runs && group->slot_count == 1;
        CHECK(rank->node == (is_alone ? group->slots[0].node : UINT32_MAX), group->name,
              "is ranked on another node");
    }
    return 0;
}

static int counts_compare(const struct simple *simple, const struct simple *counted,
                          struct err *err)
{
    for (size_t i = 0; i < simple->nodes.count; i++) {
        const struct simple_node *node = &simple->nodes.items[i], *same = &counted->nodes.items[i];
        CHECK(node->cpu_used == same->cpu_used && node->memory_used == same->memory_used &&
                  node->gpus_taken == same->gpus_taken,
              node->facts.name, "is not used as its tasks tell");
        const struct simple_view *free = &simple->free[i], now = simple_node_free(node);
        CHECK(free->cpu == now.cpu && free->memory_mib == now.memory_mib &&
                  free->gpus == now.gpus && free->gpu_count == now.gpu_count,
              node->facts.name, "is not as free as is noted");
        CHECK(memcmp(&simple->kept[i], &counted->kept[i], sizeof *simple->kept) == 0,
              node->facts.name, "is not kept as groups wait for it");
        const struct simple_view *offered = &simple->offered[i];
        const struct simple_view less = simple_view_less(now, &simple->kept[i]);
        CHECK(offered->cpu == less.cpu && offered->memory_mib == less.memory_mib &&
                  offered->gpus == less.gpus && offered->gpu_count == less.gpu_count,
              node->facts.name, "does not offer what is noted");
        struct simple_node idle = {.facts = node->facts, .gpus_lost = node->gpus_lost};
        const struct simple_view *most = &simple->most[i];
        const struct simple_view all = simple_view_less(simple_node_free(&idle), &simple->kept[i]);
        CHECK(most->cpu == all.cpu && most->memory_mib == all.memory_mib &&
                  most->gpus == all.gpus && most->gpu_count == all.gpu_count,
              node->facts.name, "would not offer what is noted");
    }
    CHECK(counted->live_groups == simple->live_groups &&
              counted->waiting_groups == simple->waiting_groups &&
              memcmp(counted->by_priority, simple->by_priority, sizeof simple->by_priority) == 0,
          "groups", "are counted wrong");
    return 0;
}

int simple_check(struct placer *placer, const struct placement_visit *visit, struct err *err)
{
    const struct simple *simple = (const struct simple *)placer;
    struct simple *counted = mem_zero(1, sizeof *counted);
    counted->nodes.items = mem_zero(simple->nodes.count + 1, sizeof *counted->nodes.items);
    counted->kept = mem_zero(simple->nodes.count + 1, sizeof *counted->kept);
    int code = groups_count(simple, visit, counted, err);
    if (!code)
        code = counts_compare(simple, counted, err);
    if (!code)
        code = kinds_check(simple, err);
    mem_free(counted->nodes.items);
    mem_free(counted->kept);
    mem_free(counted);
    return code;
}
