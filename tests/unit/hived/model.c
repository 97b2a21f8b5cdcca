/* model.c — see model.h. */
#include "model.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define BOXES                                                                                      \
    "    PAIR: {childCellType: G, childCellNumber: 2}\n"                                           \
    "    QUAD: {childCellType: PAIR, childCellNumber: 2}\n"                                        \
    "    BOX: {childCellType: QUAD, childCellNumber: 2, isNodeLevel: true}\n"                      \
    "    DUO: {childCellType: BOX, childCellNumber: 2}\n"                                          \
    "    ROW: {childCellType: DUO, childCellNumber: 2}\n"                                          \
    "    TRIO: {childCellType: BOX, childCellNumber: 3}\n"                                         \
    "    LITE: {childCellType: L, childCellNumber: 2, isNodeLevel: true}\n"
#define ROW_OF(a, b, c, d)                                                                         \
    "  - {cellType: ROW, cellChildren: [{cellChildren: [{cellAddress: " a "}, {cellAddress: " b    \
    "}]}, {cellChildren: [{cellAddress: " c "}, {cellAddress: " d "}]}]}\n"
#define TRIO_OF(a, b, c)                                                                           \
    "  - {cellType: TRIO, cellChildren: [{cellAddress: " a "}, {cellAddress: " b                   \
    "}, {cellAddress: " c "}]}\n"
#define HEAD "physicalCluster:\n  cellTypes:\n" BOXES "  physicalCells:\n"

const struct model_cluster model_clusters[] = {
    {.name = "rows",
     .yaml = HEAD ROW_OF("a0", "a1", "a2", "a3") ROW_OF(
         "b0", "b1", "b2", "b3") "virtualClusters:\n"
                                 "  red: {virtualCells: [{cellType: ROW.DUO.BOX, cellNumber: 3}]}\n"
                                 "  blue: {virtualCells: [{cellType: ROW.DUO, cellNumber: 1}, "
                                 "{cellType: ROW.DUO.BOX, "
                                 "cellNumber: 2}]}\n",
     .nodes = {{"a0", "ROW", 8},
               {"a1", "ROW", 8},
               {"a2", "ROW", 8},
               {"a3", "ROW", 8},
               {"b0", "ROW", 8},
               {"b1", "ROW", 8},
               {"b2", "ROW", 8},
               {"b3", "ROW", 8}},
     .roots = {{"red", "BOX", "ROW", 3, 8},
               {"blue", "DUO", "ROW", 2, 8},
               {"blue", "BOX", "ROW", 2, 8}},
     .vcs = {"red", "blue"}},
    {.name = "sockets",
     .yaml = HEAD TRIO_OF(
         "u0", "u1",
         "u2") "virtualClusters:\n"
               "  red: {virtualCells: [{cellType: TRIO.BOX, cellNumber: 1}, {cellType: "
               "TRIO.BOX.QUAD, "
               "cellNumber: 1}]}\n"
               "  blue: {virtualCells: [{cellType: TRIO.BOX.QUAD, cellNumber: 2}, {cellType: "
               "TRIO.BOX.QUAD.PAIR, cellNumber: 2}]}\n",
     .nodes = {{"u0", "TRIO", 8}, {"u1", "TRIO", 8}, {"u2", "TRIO", 8}},
     .roots = {{"red", "BOX", "TRIO", 1, 8},
               {"red", "QUAD", "TRIO", 1, 4},
               {"blue", "QUAD", "TRIO", 2, 4},
               {"blue", "PAIR", "TRIO", 2, 2}},
     .vcs = {"red", "blue"}},
    {.name = "types",
     .yaml = HEAD "  - {cellType: BOX, cellAddress: n0}\n"
                  "  - {cellType: BOX, cellAddress: n1}\n"
                  "  - {cellType: LITE, cellAddress: l0}\n"
                  "  - {cellType: LITE, cellAddress: l1}\n"
                  "  - {cellType: LITE, cellAddress: l2}\n"
                  "virtualClusters:\n"
                  "  red: {virtualCells: [{cellType: BOX, cellNumber: 1}, {cellType: LITE, "
                  "cellNumber: 1}]}\n"
                  "  blue: {virtualCells: [{cellType: BOX, cellNumber: 1}, {cellType: LITE, "
                  "cellNumber: 2}]}\n",
     .nodes = {{"n0", "BOX", 8},
               {"n1", "BOX", 8},
               {"l0", "LITE", 2},
               {"l1", "LITE", 2},
               {"l2", "LITE", 2}},
     .roots = {{"red", "BOX", "BOX", 1, 8},
               {"red", "LITE", "LITE", 1, 2},
               {"blue", "BOX", "BOX", 1, 8},
               {"blue", "LITE", "LITE", 2, 2}},
     .vcs = {"red", "blue"}},
    {.name = "trios",
     .yaml = HEAD TRIO_OF("u0", "u1", "u2") TRIO_OF(
         "v0", "v1", "v2") "virtualClusters:\n"
                           "  red: {virtualCells: [{cellType: TRIO.BOX, cellNumber: 1}, {cellType: "
                           "TRIO, cellNumber: "
                           "1}]}\n"
                           "  blue: {virtualCells: [{cellType: TRIO.BOX, cellNumber: 1}]}\n"
                           "  green: {virtualCells: [{cellType: TRIO.BOX.QUAD, cellNumber: 1}]}\n",
     .nodes = {{"u0", "TRIO", 8},
               {"u1", "TRIO", 8},
               {"u2", "TRIO", 8},
               {"v0", "TRIO", 8},
               {"v1", "TRIO", 8},
               {"v2", "TRIO", 8}},
     .roots = {{"red", "BOX", "TRIO", 1, 8},
               {"red", "TRIO", "TRIO", 3, 8},
               {"blue", "BOX", "TRIO", 1, 8},
               {"green", "QUAD", "TRIO", 1, 4}},
     .vcs = {"red", "blue", "green"}},
};
const unsigned model_cluster_count = sizeof model_clusters / sizeof *model_clusters;

struct model_group *model_find(struct model *model, const char *name)
{
    for (unsigned i = 0; i < MODEL_GROUPS; i++)
        if (model->groups[i].is_live && !strcmp(model->groups[i].name, name))
            return &model->groups[i];
    return NULL;
}

unsigned model_node(const struct model *model, const char *name)
{
    unsigned node = 0;
    while (node < MODEL_NODES && model->cluster->nodes[node].name &&
           strcmp(model->cluster->nodes[node].name, name))
        node++;
    assert(node < MODEL_NODES && model->cluster->nodes[node].name);
    return node;
}

static const char *root_named(const struct model *model, const char *type)
{
    for (unsigned i = 0; i < 8 && model->cluster->roots[i].vc; i++)
        if (!strcmp(model->cluster->roots[i].type, type))
            return model->cluster->roots[i].type;
    return NULL;
}

struct model_group *model_take(struct model *model, const struct hived_request *request,
                               const struct hived_result *result, bool is_preempting)
{
    struct model_group *group = model->groups;
    while (group->is_live)
        group++;
    *group = (struct model_group){.is_live = true,
                                  .is_preempting = is_preempting,
                                  .priority = request->priority,
                                  .is_guaranteed = request->priority >= 0,
                                  .pod_count = result->placement.slot_count};
    snprintf(group->name, sizeof group->name, "%s", request->group);
    for (unsigned i = 0; i < 4 && model->cluster->vcs[i]; i++)
        if (!strcmp(model->cluster->vcs[i], request->virtual_cluster))
            group->vc = model->cluster->vcs[i];
    for (unsigned p = 0; p < group->pod_count; p++) {
        const struct hived_slot *slot = &result->placement.slots[p];
        struct model_pod *pod = &group->pods[p];
        *pod = (struct model_pod){.node = model_node(model, slot->node),
                                  .leaf_count = slot->leaf_count,
                                  .is_bound = !is_preempting};
        for (unsigned k = 0; k < slot->leaf_count; k++) {
            pod->leaves[k] = slot->indices[k];
            pod->roots[k] = *slot->preassigned[k] ? root_named(model, slot->preassigned[k]) : NULL;
        }
    }
    return group;
}

/* --- who is where --- */

struct use { /* of one device */
    const struct model_group *user, *reserver;
    const char *root; /* of the one that counts: the reserver, else the user */
};

static struct use use_of(const struct model *model, unsigned node, unsigned leaf)
{
    struct use use = {0};
    for (unsigned g = 0; g < MODEL_GROUPS; g++) {
        const struct model_group *group = &model->groups[g];
        for (unsigned p = 0; group->is_live && p < group->pod_count; p++) {
            const struct model_pod *pod = &group->pods[p];
            for (unsigned k = 0; pod->node == node && k < pod->leaf_count; k++) {
                if (pod->leaves[k] != leaf)
                    continue;
                if (group->is_preempting)
                    use.reserver = group;
                else
                    use.user = group;
                if (group->is_preempting || !use.reserver)
                    use.root = pod->roots[k];
            }
        }
    }
    return use;
}

static const struct model_group *owner_of(const struct use *use)
{
    return use->reserver ? use->reserver : use->user;
}

const char *model_check(const struct model *model)
{
    static char text[128];
    unsigned users[MODEL_NODES][MODEL_LEAVES] = {0}, reservers[MODEL_NODES][MODEL_LEAVES] = {0};
    for (unsigned g = 0; g < MODEL_GROUPS; g++) {
        const struct model_group *group = &model->groups[g];
        for (unsigned p = 0; group->is_live && p < group->pod_count; p++) {
            for (unsigned k = 0; k < group->pods[p].leaf_count; k++) {
                unsigned node = group->pods[p].node, leaf = group->pods[p].leaves[k];
                unsigned *count =
                    group->is_preempting ? &reservers[node][leaf] : &users[node][leaf];
                if (++*count > 1) {
                    snprintf(text, sizeof text, "device %u of %s has two owners, one is %s", leaf,
                             model->cluster->nodes[node].name, group->name);
                    return text;
                }
            }
        }
    }
    return NULL;
}

/* --- feasibility, by trying everything --- */

struct bins {
    unsigned free[MODEL_NODES * 4];
    unsigned count;
};

static bool items_fit(struct bins *bins, const unsigned *items, unsigned count)
{
    if (!count)
        return true;
    for (unsigned b = 0; b < bins->count; b++) {
        bool is_same = false; /* as a bin tried already */
        for (unsigned other = 0; other < b; other++)
            is_same |= bins->free[other] == bins->free[b];
        if (is_same || bins->free[b] < items[0])
            continue;
        bins->free[b] -= items[0];
        bool is_found = items_fit(bins, items + 1, count - 1);
        bins->free[b] += items[0];
        if (is_found)
            return true;
    }
    return false;
}

static unsigned request_items(const struct hived_request *request, unsigned *items)
{
    unsigned count = 0;
    for (unsigned m = request->member_count; m-- > 0;)
        for (unsigned k = 0; k < request->members[m].pods; k++)
            items[count++] = request->members[m].leaves;
    return count;
}

/* Free devices of this root's units: those that no group of the virtual cluster with `priority` or
 * more holds. Units that nobody uses are whole. */
static void root_bins(const struct model *model, const struct model_root *root, int priority,
                      struct bins *bins)
{
    unsigned in_use = 0;
    for (unsigned node = 0; node < MODEL_NODES && model->cluster->nodes[node].name; node++) {
        if (strcmp(model->cluster->nodes[node].chain, root->chain))
            continue;
        for (unsigned first = 0; first < model->cluster->nodes[node].leaves;
             first += root->unit_leaves) {
            unsigned held = 0, kept = 0;
            for (unsigned leaf = first; leaf < first + root->unit_leaves; leaf++) {
                struct use use = use_of(model, node, leaf);
                const struct model_group *owner = owner_of(&use);
                if (!owner || !owner->is_guaranteed || strcmp(owner->vc, root->vc) || !use.root ||
                    strcmp(use.root, root->type))
                    continue;
                held++;
                kept += owner->priority >= priority;
            }
            if (!held)
                continue;
            in_use++;
            bins->free[bins->count++] = root->unit_leaves - kept;
        }
    }
    assert(in_use <= root->units);
    for (unsigned i = in_use; i < root->units; i++)
        bins->free[bins->count++] = root->unit_leaves;
}

static bool guaranteed_fits(const struct model *model, const struct hived_request *request,
                            const char *chain, int priority)
{
    struct bins bins = {.count = 0};
    unsigned items[MODEL_PODS], count = request_items(request, items);
    for (unsigned i = 0; i < 8 && model->cluster->roots[i].vc; i++) {
        const struct model_root *root = &model->cluster->roots[i];
        if (!strcmp(root->vc, request->virtual_cluster) && !strcmp(root->chain, chain))
            root_bins(model, root, priority, &bins);
    }
    return items_fit(&bins, items, count);
}

static bool oppo_fits(const struct model *model, const struct hived_request *request,
                      const char *chain)
{
    struct bins bins = {.count = 0};
    unsigned items[MODEL_PODS], count = request_items(request, items);
    for (unsigned node = 0; node < MODEL_NODES && model->cluster->nodes[node].name; node++) {
        if (strcmp(model->cluster->nodes[node].chain, chain) || model->is_bad[node] ||
            model->is_excluded[node])
            continue;
        unsigned free = 0;
        for (unsigned leaf = 0; leaf < model->cluster->nodes[node].leaves; leaf++) {
            struct use use = use_of(model, node, leaf);
            free += !use.user && !use.reserver;
        }
        bins.free[bins.count++] = free;
    }
    return items_fit(&bins, items, count);
}

enum { ANY_PRIORITY = -1000 };

/* Over the chains: a gang lies in one. */
static bool fits(const struct model *model, const struct hived_request *request, int priority)
{
    for (unsigned node = 0; node < MODEL_NODES && model->cluster->nodes[node].name; node++) {
        const char *chain = model->cluster->nodes[node].chain;
        bool is_seen = node > 0 && !strcmp(model->cluster->nodes[node - 1].chain, chain);
        if (is_seen)
            continue;
        if (request->priority < 0 ? oppo_fits(model, request, chain)
                                  : guaranteed_fits(model, request, chain, priority))
            return true;
    }
    return false;
}

/* --- judging --- */

static const char *judge_placement(struct model *model, const struct hived_request *request,
                                   const struct hived_result *result)
{
    unsigned items[MODEL_PODS], count = request_items(request, items);
    const struct hived_placement *placement = &result->placement;
    bool is_used[MODEL_PODS] = {false};
    if (placement->slot_count != count)
        return "the placement has another number of pods";
    for (unsigned p = 0; p < count; p++) {
        const struct hived_slot *slot = &placement->slots[p];
        unsigned node = model_node(model, slot->node), k = 0;
        while (k < count && (is_used[k] || items[k] != slot->leaf_count))
            k++;
        if (k == count)
            return "a pod has another number of devices";
        is_used[k] = true;
        if (model->is_bad[node])
            return "a new pod lies on a bad node";
        if (model->is_excluded[node])
            return "a new pod lies on an excluded node";
        for (unsigned i = 0; i < slot->leaf_count; i++) {
            if (slot->indices[i] >= model->cluster->nodes[node].leaves)
                return "a device does not exist";
            for (unsigned q = 0; q <= p; q++)
                for (unsigned j = 0; j < placement->slots[q].leaf_count; j++)
                    if ((q != p || i != j) && !strcmp(placement->slots[q].node, slot->node) &&
                        placement->slots[q].indices[j] == slot->indices[i])
                        return "a device is given twice in one gang";
        }
    }
    return NULL;
}

/* Of a gang that must stay in one pair of nodes or in one half of a node. */
static const char *judge_within(const struct model *model, const struct hived_request *request,
                                const struct hived_result *result)
{
    const struct hived_placement *placement = &result->placement;
    bool is_half = !strcmp(request->within_one_cell, "QUAD");
    unsigned first = model_node(model, placement->slots[0].node);
    for (unsigned p = 0; p < placement->slot_count; p++) {
        const struct hived_slot *slot = &placement->slots[p];
        unsigned node = model_node(model, slot->node);
        if (is_half ? node != first : node / 2 != first / 2)
            return "a gang is not within its cell";
        for (unsigned i = 0; is_half && i < slot->leaf_count; i++)
            if (slot->indices[i] / 4 != placement->slots[0].indices[0] / 4)
                return "a gang is not within its half of a node";
    }
    return NULL;
}

static bool is_victim(const struct hived_result *result, const char *name)
{
    for (uint32_t i = 0; i < result->victim_count; i++)
        if (!strcmp(result->victims[i].group, name))
            return true;
    return false;
}

/* May the request displace this group? */
static bool is_fair_game(const struct hived_request *request, const struct model_group *group)
{
    if (request->priority < 0)
        return false;
    if (!group->is_guaranteed)
        return true;
    return !strcmp(group->vc, request->virtual_cluster) && group->priority < request->priority;
}

static const char *judge_victims(struct model *model, const struct hived_request *request,
                                 const struct hived_result *result)
{
    const struct hived_placement *placement = &result->placement;
    unsigned pods = 0;
    for (unsigned p = 0; p < placement->slot_count; p++) {
        const struct hived_slot *slot = &placement->slots[p];
        for (unsigned i = 0; i < slot->leaf_count; i++) {
            struct use use = use_of(model, model_node(model, slot->node), slot->indices[i]);
            if (use.user && !is_victim(result, use.user->name))
                return "a device is given to two gangs";
            if (use.reserver && !is_fair_game(request, use.reserver))
                return "a reservation is taken that may not be";
        }
    }
    for (unsigned g = 0; g < MODEL_GROUPS; g++) {
        struct model_group *group = &model->groups[g];
        if (!group->is_live || group->is_preempting || !is_victim(result, group->name))
            continue;
        /* lazy groups count as opportunistic from the moment of the decision */
        if (!is_fair_game(request, group))
            return "a victim may not be displaced";
        for (unsigned p = 0; p < group->pod_count; p++)
            pods += group->pods[p].is_bound;
    }
    if (pods != result->victim_count)
        return "the victims are not whole gangs";
    return NULL;
}

const char *model_judge(struct model *model, const struct hived_request *request,
                        const struct hived_result *result)
{
    if (result->kind != HIVED_WAIT) {
        const char *wrong = judge_placement(model, request, result);
        if (!wrong)
            wrong = judge_victims(model, request, result);
        if (!wrong && request->within_one_cell)
            wrong = judge_within(model, request, result);
        if (wrong)
            return wrong;
    }
    if (request->priority < 0) {
        if (result->kind == HIVED_PREEMPT)
            return "an opportunistic gang displaces somebody";
        if (request->within_one_cell)
            return NULL;
        if ((result->kind == HIVED_BIND) != fits(model, request, ANY_PRIORITY))
            return result->kind == HIVED_BIND ? "bound, though it does not fit the free devices"
                                              : "waits, though it fits the free devices";
        return NULL;
    }
    if (!model->knows_roots || model->was_bad || request->uses_suggested ||
        request->within_one_cell)
        return NULL;
    bool fits_free = fits(model, request, ANY_PRIORITY);
    bool fits_with_preemption = fits_free || fits(model, request, request->priority);
    if (result->kind == HIVED_WAIT)
        return fits_with_preemption ? "waits, though it fits its virtual cluster" : NULL;
    if (!fits_with_preemption)
        return "placed, though it does not fit its virtual cluster";
    for (unsigned g = 0; fits_free && g < MODEL_GROUPS; g++)
        if (model->groups[g].is_live && model->groups[g].is_guaranteed &&
            is_victim(result, model->groups[g].name))
            return "displaces a guaranteed gang, though its virtual cluster has room";
    return NULL;
}
