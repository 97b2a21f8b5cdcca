/* hived_check.c — what HiveD holds, compared with what it was given. For tests. */
#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "placement/check.h"
#include "placement/hived_parts.h"

/* A gang of HiveD is a part of a group that is held, or preempts for the group of its name. */
static int gang_check(const struct placer_hived *p, const char *gang,
                      const struct placement_visit *visit, struct err *err)
{
    struct hived_group_view view;
    CHECK(hived_group_find(p->hived, gang, &view), gang, "is not found by its name");
    if (placer_is_leaving(p, gang))
        return 0;
    uint32_t at = text_map_get(&p->held_index, text_of(gang));
    if (view.state == HIVED_GROUP_PREEMPTING) {
        cleanup_buf struct buf name = BUF_INIT;
        buf_add(&name, gang, strcspn(gang, "#"));
        visit->see(visit->context, buf_cstr(&name), PLACEMENT_WAITING, NODE_NONE);
        return 0;
    }
    CHECK(at != MAP_NONE, gang, "has cells, but nobody holds it");
    const struct held *held = &p->helds.items[at];
    bool is_part = false;
    for (uint32_t i = 0; i < held->part_count; i++)
        is_part |= strcmp(held->parts[i], gang) == 0;
    CHECK(is_part, gang, "is no part of %s", held->name);
    return 0;
}

static struct node_id slot_node(struct placer_hived *p, const struct held *held, uint32_t slot)
{
    assert(slot < held->slot_count);
    enum { DEVICES_MAX = 1 };
    const char *name;
    uint16_t devices[DEVICES_MAX];
    const struct held_slot *place = &held->places[slot];
    hived_group_slot(p->hived, held->parts[place->part], place->slot, &name, devices, DEVICES_MAX);
    uint32_t at = name ? text_map_get(&p->node_index, text_of(name)) : MAP_NONE;
    return at == MAP_NONE ? NODE_NONE : (struct node_id){p->nodes.items[at].id};
}

static int held_check(struct placer_hived *p, const struct held *held,
                      const struct placement_visit *visit, struct err *err)
{
    assert(held->name);
    uint32_t live = 0;
    for (uint32_t i = 0; i < held->slot_count; i++) {
        struct hived_group_view view;
        if (held->places[i].part == UINT32_MAX)
            continue;
        CHECK(hived_group_find(p->hived, held->parts[held->places[i].part], &view), held->name,
              "has a task that HiveD has forgotten");
        live++;
        visit->see(visit->context, held->name, i, slot_node(p, held, i));
    }
    CHECK(live > 0, held->name, "holds nothing any more");
    CHECK(live == held->taken_count, held->name, "has miscounted its tasks");
    return 0;
}

/* As if the search had been given up, and what is owed counted: the core is done with it. */
static int settled_check(struct placer_hived *p, const struct placement_visit *visit,
                         struct err *err)
{
    struct placer *copy = p->base.ops->copy(&p->base);
    int code = hived_check(p->hived, err);
    copy->ops->forget(copy);
    placer_owed_finish((struct placer_hived *)copy);
    if (!code)
        code = placer_hived_check(copy, visit, err);
    copy->ops->free(copy);
    return code;
}

int placer_hived_check(struct placer *placer, const struct placement_visit *visit, struct err *err)
{
    struct placer_hived *p = (struct placer_hived *)placer;
    if (!p->hived)
        return 0;
    if (p->search.group || placer_owes(p))
        return settled_check(p, visit, err);
    int code = hived_check(p->hived, err);
    uint32_t at = 0;
    for (const char *gang; !code && (gang = hived_group_next(p->hived, &at));)
        code = gang_check(p, gang, visit, err);
    for (size_t i = 0; i < p->helds.count && !code; i++)
        if (p->helds.items[i].name)
            code = held_check(p, &p->helds.items[i], visit, err);
    return code;
}
