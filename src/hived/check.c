/* check.c — every invariant, recomputed from scratch. For tests. */
#include "base/err.h"
#include "hived/state.h"
#include <assert.h>

#define CHECK(condition, what, id)                                                                 \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return err_fail(err, ERR_INTERNAL, "", "%s %u: not %s", what, (unsigned)(id),          \
                            #condition);                                                           \
    } while (0)

static int check_binding(const struct hived *h, uint32_t i, struct err *err)
{
    const struct cell *cell = &h->cells[i];
    if (cell->bound == NONE)
        return 0;
    const struct cell *other = &h->cells[cell->bound];
    CHECK(other->bound == i && other->level == cell->level, "binding of cell", i);
    CHECK(other->is_virtual != cell->is_virtual, "binding of cell", i);
    bool is_root = cell->is_virtual && cell->root == i;
    CHECK(!cell->is_virtual || is_root ||
              h->cells[cell->parent].bound == h->cells[cell->bound].parent,
          "parents of binding of cell", i);
    CHECK(cell->is_virtual || !cell_is_free(h, i), "free but bound: cell", i);
    return 0;
}

/* What a cell above the leaves says of its children. */
static int check_sums(const struct hived *h, uint32_t i, struct err *err)
{
    const struct cell *cell = &h->cells[i];
    uint32_t used = 0, used_oppo = 0, bad = 0;
    int32_t priority = HIVED_PRIORITY_FREE;
    for (uint32_t k = cell->child; k < cell->child + child_number(h, cell); k++) {
        used += h->cells[k].used;
        used_oppo += h->cells[k].used_oppo;
        bad += !cell->is_virtual && h->cells[k].is_bad;
        priority = h->cells[k].priority > priority ? h->cells[k].priority : priority;
        CHECK(h->cells[k].parent == i && h->cells[k].level == cell->level - 1, "child of cell", i);
    }
    CHECK(cell->used == used && cell->used_oppo == used_oppo, "use of cell", i);
    CHECK(h->cells[i].priority == priority, "priority of cell", i);
    CHECK(cell->is_virtual || (cell->bad_children == bad && cell->is_bad == (bad > 0)),
          "health of cell", i);
    return 0;
}

static int check_cell(const struct hived *h, uint32_t i, struct err *err)
{
    const struct cell *cell = &h->cells[i];
    int code = check_binding(h, i, err);
    if (code)
        return code;
    if (cell->level > 1)
        return check_sums(h, i, err);
    CHECK(cell->used == (h->cells[i].priority != HIVED_PRIORITY_FREE), "use of leaf", i);
    return 0;
}

/* Of a group that preempts, those before this one are its own already, or still. */
static uint32_t leaves_taken(const struct hived *h, const struct group *group)
{
    const struct committing *committing = &h->committing;
    if (committing->is_on && h->groups[committing->group] == group)
        return group->slot_leaf[committing->slots];
    return group->taken;
}

/* The group that has or will have the leaf knows it. */
static int check_owner(const struct hived *h, uint32_t i, const struct group *group,
                       struct err *err)
{
    const struct cell *leaf = &h->cells[i];
    CHECK(group != NULL, "group of leaf", i);
    uint32_t at = 0;
    while (at < group->leaf_count && group->physical[at] != i)
        at++;
    CHECK(at < group->leaf_count, "place in the group of leaf", i);
    CHECK(group->state != HIVED_GROUP_PREEMPTING ||
              (h->rests[i].reserving == NONE) == (at < leaves_taken(h, group)),
          "reservation of leaf", i);
    uint32_t virtual = group->virtual[at];
    if (virtual == NONE) {
        CHECK(h->cells[i].priority == HIVED_PRIORITY_OPPO, "priority of opportunistic leaf", i);
        return 0;
    }
    CHECK(leaf->bound == virtual, "virtual leaf of leaf", i);
    CHECK(h->cells[i].priority == group->priority && h->cells[virtual].priority == group->priority,
          "priority of leaf", i);
    CHECK(h->rests[virtual].vc == group->vc, "virtual cluster of leaf", i);
    return 0;
}

/* Of a gang that takes its cells in pieces. */
static int check_committing(const struct hived *h, struct err *err)
{
    const struct committing *committing = &h->committing;
    if (!committing->is_on)
        return 0;
    const struct group *group = h->groups[committing->group];
    CHECK(group && committing->slots <= group->slot_count, "slots of the group being committed", 0);
    const bool preempts = committing->was_preempting && committing->slots < group->slot_count;
    CHECK(group->state == (preempts ? HIVED_GROUP_PREEMPTING : HIVED_GROUP_ALLOCATED),
          "group being committed", 0);
    CHECK(group->bound_count == committing->pods, "pods of the group being committed", 0);
    CHECK(!committing->pods || committing->slots == group->slot_count, "order of a commit", 0);
    const uint32_t next = group->slot_leaf[committing->slots] + committing->leaf;
    for (uint32_t i = next; i < group->leaf_count; i++)
        CHECK(preempts ? h->rests[group->physical[i]].reserving == committing->group
                       : group->physical[i] == NONE,
              "leaf that is still to be committed", i);
    return 0;
}

/* A group that loses its virtual cells in pieces. */
static int check_demotion(const struct hived *h, struct err *err)
{
    const struct demotion *demotion = &h->demotion;
    if (!demotion->group)
        return 0;
    const struct group *group = h->groups[demotion->group - 1];
    CHECK(group && group->has_virtual && !group->ended, "group that is downgraded",
          demotion->group - 1);
    CHECK(demotion->next < group->leaf_count && demotion->preemptor, "downgrade of group",
          demotion->group - 1);
    for (uint32_t i = 0; i < demotion->next; i++)
        CHECK(group->virtual[i] == NONE, "leaf that has been downgraded", i);
    return 0;
}

/* One who holds the dooms. */
static bool commit_holds(const struct hived *h)
{
    const struct committing *committing = &h->committing;
    return committing->is_on && (committing->is_downgrading ||
                                 committing->slots < h->groups[committing->group]->slot_count);
}

static int check_leaf(const struct hived *h, uint32_t i, struct err *err)
{
    const struct cell *leaf = &h->cells[i];
    bool is_used = leaf->using != NONE, is_reserved = rest_of(h, leaf)->reserving != NONE;
    enum hived_cell_state state = is_used ? (is_reserved ? HIVED_CELL_RESERVING : HIVED_CELL_USED)
                                          : (is_reserved ? HIVED_CELL_RESERVED : HIVED_CELL_FREE);
    CHECK(leaf->state == state, "state of leaf", i);
    CHECK(leaf->used == (is_used || is_reserved), "users of leaf", i);
    CHECK(leaf->is_bad == h->nodes[rest_of(h, leaf)->node].is_bad, "health of leaf", i);
    uint32_t owner = is_reserved ? rest_of(h, leaf)->reserving : leaf->using;
    return owner == NONE ? 0 : check_owner(h, i, h->groups[owner], err);
}

/* The free list of one level, and which of its cells are bad. */
static int check_free_list(const struct hived *h, const struct level *level, uint8_t at,
                           struct err *err)
{
    for (uint32_t i = 0; i < level->free.count; i++) {
        uint32_t cell = level->free.items[i];
        CHECK(h->cells[cell].is_free && h->rests[cell].free_at == i && h->cells[cell].level == at,
              "free cell", cell);
        CHECK(!h->cells[cell].is_split && h->cells[cell].bound == NONE, "free cell", cell);
        uint32_t parent = h->cells[cell].parent;
        CHECK(parent == NONE || h->cells[parent].is_split, "parent of free cell", cell);
        CHECK(level->free.weights[i] == cell_weight(h, &h->cells[cell]), "weight of free cell",
              cell);
    }
    for (size_t i = 0; i < level->bad_free.count; i++) {
        uint32_t cell = level->bad_free.items[i];
        CHECK(h->cells[cell].is_listed && h->rests[cell].listed_at == i && h->cells[cell].is_bad &&
                  cell_is_free(h, cell),
              "bad free cell", cell);
    }
    return 0;
}

/* Cells in the free list or below one that is. */
static int check_free(const struct hived *h, uint32_t chain_index, struct err *err)
{
    assert(chain_index < h->chain_count);
    const struct chain *chain = &h->chains[chain_index];
    uint32_t left[HIVED_LEVELS_MAX + 1] = {0};
    for (uint8_t at = chain->top; at >= 1; at--) {
        const struct level *level = &chain->levels[at];
        int code = check_free_list(h, level, at, err);
        if (code)
            return code;
        left[at] = level->free.count;
        if (at < chain->top)
            left[at] += left[at + 1] * chain->levels[at + 1].child_number;
        CHECK(left[at] == level->total_left, "cells left of level", at);
        CHECK(h->is_safety_broken || level->total_left >= level->all_vc_free, "safety of level",
              at);
    }
    return 0;
}

/* A cell of a quota is doomed while fewer healthy ones are free than are promised. */
static int check_dooms(const struct hived *h, const struct quota_level *own,
                       const struct level *level, uint8_t at, struct err *err)
{
    uint32_t healthy = level->total_left - (uint32_t)level->bad_free.count;
    bool is_exempt = h->dooms_held || h->habits->dooms_early;
    CHECK(is_exempt || h->is_safety_broken || own->free <= healthy || !level->bad_free.count,
          "doom of level", at);
    CHECK(is_exempt || !own->doomed.count || own->free >= healthy, "undone doom of level", at);
    return 0;
}

static int check_quota(struct hived *h, uint32_t vc, uint32_t chain, uint32_t *sums,
                       struct err *err)
{
    assert(vc < h->vc_count);
    assert(chain < h->chain_count);
    const struct quota *quota = quota_of(h, vc, chain);
    for (uint8_t at = 1; quota->is_present && at <= h->chains[chain].top; at++) {
        const struct quota_level *own = &quota->levels[at];
        uint32_t unbound = 0;
        for (size_t i = 0; i < own->roots.count; i++) {
            const struct cell *root = &h->cells[own->roots.items[i]];
            bool bit = own->unbound[i / 64] >> (i % 64) & 1;
            CHECK(bit == (root->bound == NONE), "unbound bit of root", own->roots.items[i]);
            CHECK(root->bound == NONE || root->used > 0 || h->cells[root->bound].is_doomed,
                  "bound but unused root", own->roots.items[i]);
            unbound += root->bound == NONE;
        }
        CHECK(own->free == unbound, "free cells of quota level", at);
        sums[at] += unbound;
        int code = check_dooms(h, own, &h->chains[chain].levels[at], at, err);
        if (code)
            return code;
    }
    return 0;
}

static int check_bucket(const struct hived *h, uint32_t v, uint32_t b, struct err *err)
{
    const struct view *view = &h->views[v];
    const struct bucket *bucket = &view->buckets[b];
    uint32_t last = NONE, count = 0;
    CHECK(b == 0 || view->buckets[b - 1].key < bucket->key, "order of view", v);
    for (uint32_t n = bucket->first; n != NONE; n = h->view_nodes[n].next) {
        const struct view_node *node = &h->view_nodes[n];
        CHECK(node->key == bucket->key && node->previous == last, "links of view", v);
        CHECK(node->next_key == view_node_key(h, view, node), "key of view", v);
        last = n;
        count++;
    }
    CHECK(count > 0 && count == bucket->count, "bucket of view", v);
    return 0;
}

static int check_views(const struct hived *h, struct err *err)
{
    for (uint32_t v = 0; v < h->view_count; v++) {
        const struct view *view = &h->views[v];
        uint32_t count = 0;
        for (uint32_t b = 0; b < view->bucket_count; b++) {
            int code = check_bucket(h, v, b, err);
            if (code)
                return code;
            count += view->buckets[b].count;
        }
        CHECK(count == view->count, "nodes of view", v);
    }
    return 0;
}

static int check_bad_seen(const struct hived *h, uint32_t i, struct err *err)
{
    const struct cell *cell = &h->cells[i];
    bool is_inside = cell->parent != NONE && h->cells[cell->parent].bound != NONE;
    CHECK(!cell->is_bad || !is_inside || cell->bound != NONE, "bad cell not seen by its owner", i);
    CHECK(!cell->is_bad || !cell_is_free(h, i) || cell->is_listed, "bad free cell not listed", i);
    return 0;
}

static int check_chain(struct hived *h, uint32_t chain, struct err *err)
{
    assert(chain < h->chain_count);
    uint32_t sums[HIVED_LEVELS_MAX + 1] = {0};
    int code = check_free(h, chain, err);
    for (uint32_t vc = 0; vc < h->vc_count && !code; vc++)
        code = check_quota(h, vc, chain, sums, err);
    for (uint8_t at = 1; at <= h->chains[chain].top && !code; at++)
        CHECK(sums[at] == h->chains[chain].levels[at].all_vc_free, "free quotas of level", at);
    return code;
}

const char *hived_group_next(const struct hived *h, uint32_t *at)
{
    while (*at < h->group_count) {
        const struct group *group = h->groups[(*at)++];
        if (group)
            return group->name;
    }
    return NULL;
}

/* Inside the trial of a search in pieces: what is left when it is given up. */
static int check_copy(const struct hived *h, struct err *err)
{
    struct hived *copy = hived_copy(h);
    const int code = hived_check(copy, err);
    hived_free(copy);
    return code;
}

int hived_check(struct hived *h, struct err *err)
{
    if (h->is_trial)
        return check_copy(h, err);
    int code = check_committing(h, err);
    if (!code)
        code = check_demotion(h, err);
    if (code)
        return code;
    CHECK(h->habits->dooms_early || h->dooms_held == (uint32_t)(h->pending_count > 0) +
                                                         h->holds_for_commit + commit_holds(h) +
                                                         h->is_overtaking,
          "holders of the dooms", h->dooms_held);
    for (uint32_t i = 0; i < h->cell_count && !code; i++)
        code = check_cell(h, i, err);
    for (uint32_t i = 0; i < h->cell_count && !code; i++) {
        if (h->cells[i].is_virtual)
            continue;
        if (h->cells[i].level == 1)
            code = check_leaf(h, i, err);
        if (!code)
            code = check_bad_seen(h, i, err);
    }
    for (uint32_t chain = 0; chain < h->chain_count && !code; chain++)
        code = check_chain(h, chain, err);
    return code ? code : check_views(h, err);
}
