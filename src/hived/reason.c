/* reason.c — why a gang waits: which cells it needs, what its quota has, who holds them. */
#include "model/reason.h"
#include "base/arena.h"
#include "base/buf.h"
#include "hived/state.h"
#include <assert.h>
#include <string.h>

enum { HOLDERS_MAX = 3, HOLDER_NODES_MAX = 64 }; /* nodes looked at, the fullest first */

/* `within`: all of it in one cell of this type; or NULL. */
static void type_write(struct buf *out, const struct hived *h, uint32_t chain, const char *within)
{
    if (chain == NONE && within)
        buf_format(out, REASON_LEAVES_WITHIN, within);
    else if (chain == NONE)
        buf_string(out, REASON_LEAVES);
    else if (within)
        buf_format(out, REASON_TYPE_WITHIN, h->config->types[h->chains[chain].leaf_type].name,
                   within);
    else
        buf_format(out, REASON_TYPE, h->config->types[h->chains[chain].leaf_type].name);
}

static void demand_write(struct buf *out, const struct hived *h, const struct wait *wait)
{
    assert(wait->item_count > 0);
    const struct pack_item *items = wait->items;
    const char *within = NULL; /* of all, when they are of one kind */
    for (uint32_t i = 0; i < wait->item_count;) {
        uint32_t same = 1;
        while (i + same < wait->item_count && items[i + same].leaves == items[i].leaves &&
               items[i + same].within == items[i].within)
            same++;
        buf_string(out, i ? REASON_PLUS : "");
        buf_format(out, REASON_CELLS, same, items[i].leaves);
        if (same == wait->item_count)
            within = items[i].within;
        else if (items[i].within)
            buf_format(out, REASON_CELLS_WITHIN, items[i].within);
        i += same;
    }
    type_write(out, h, wait->chain, within);
    if (wait->request->within_one_cell && *wait->request->within_one_cell)
        buf_format(out, REASON_ALL_WITHIN, wait->request->within_one_cell);
}

struct holders {
    uint32_t groups[HOLDERS_MAX], count;
    bool has_others;
};

static void holder_add(struct holders *holders, uint32_t group)
{
    assert(holders->count <= HOLDERS_MAX);
    for (uint32_t i = 0; i < holders->count; i++) {
        if (holders->groups[i] == group)
            return;
    }
    if (holders->count == HOLDERS_MAX) {
        holders->has_others = true;
        return;
    }
    holders->groups[holders->count++] = group;
}

/* Who uses the leaves of a view's node. */
static void holders_find(const struct hived *h, uint32_t cell, struct holders *holders)
{
    assert(cell < h->cell_count);
    const struct cell *c = &h->cells[cell];
    if (!c->used)
        return;
    uint32_t first = first_leaf(h, cell);
    uint32_t count = h->chains[c->chain].levels[c->level].leaf_count;
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t leaf = c->is_virtual ? h->cells[i].bound : i;
        if (h->priority[i] == HIVED_PRIORITY_FREE || leaf == NONE)
            continue;
        const struct cell *physical = &h->cells[leaf];
        uint32_t group = rest_of(h, physical)->reserving != NONE ? rest_of(h, physical)->reserving
                                                                 : physical->using;
        if (group != NONE)
            holder_add(holders, group);
    }
}

static void holders_write(struct buf *out, const struct hived *h, const struct view *view)
{
    struct holders holders = {0};
    uint32_t seen = 0;
    for (uint32_t b = 0; b < view->bucket_count; b++)
        for (uint32_t n = view->buckets[b].first;
             n != NONE && seen < HOLDER_NODES_MAX && !holders.has_others;
             n = h->view_nodes[n].next, seen++)
            holders_find(h, h->view_nodes[n].cell, &holders);
    for (uint32_t i = 0; i < holders.count; i++) {
        const struct group *group = h->groups[holders.groups[i]];
        buf_string(out, i ? REASON_NEXT : REASON_HELD_BY);
        buf_format(out, REASON_HOLDER_COUNT, group->name, group->leaf_count);
    }
    if (holders.has_others || (holders.count && seen == HOLDER_NODES_MAX))
        buf_string(out, REASON_OTHERS);
}

struct view_room {
    uint64_t total, free, bad; /* bad: nobody uses them, but their node cannot be used */
    uint32_t largest, node_max;
};

/* Nodes of one size tell by their bucket. */
static struct view_room room_of(const struct hived *h, const struct view *view)
{
    struct view_room room = {.total = view->leaves, .node_max = view->leaf_max};
    for (uint32_t b = 0; b < view->bucket_count; b++) {
        const struct bucket *bucket = &view->buckets[b];
        uint32_t used = key_used(bucket->key);
        if (key_is_bad(bucket->key)) {
            room.bad += bucket->leaves - (uint64_t)bucket->count * used;
            continue;
        }
        room.free += bucket->leaves - (uint64_t)bucket->count * used;
        if (!view->is_mixed && view->leaf_max - used > room.largest)
            room.largest = view->leaf_max - used;
        for (uint32_t n = bucket->first; view->is_mixed && n != NONE; n = h->view_nodes[n].next) {
            const struct cell *cell = &h->cells[h->view_nodes[n].cell];
            uint32_t free = h->chains[cell->chain].levels[cell->level].leaf_count - used;
            if (free > room.largest)
                room.largest = free;
        }
    }
    return room;
}

static const struct view *view_of(struct hived *h, const struct wait *wait)
{
    if (wait->pin != NONE)
        return &h->views[h->pins[wait->pin].view];
    if (wait->chain == NONE)
        return NULL;
    if (wait->request->priority < HIVED_PRIORITY_MIN)
        return &h->views[h->chains[wait->chain].view];
    return &h->views[quota_of(h, wait->vc, wait->chain)->view];
}

static bool type_is_asked(const struct hived *h, const struct hived_request *request,
                          uint32_t chain)
{
    assert(chain < h->chain_count);
    struct text rest = text_of(request->leaf_type);
    if (!rest.length || (request->pinned_cell && *request->pinned_cell))
        return true;
    while (rest.at)
        if (text_is(text_trim(text_cut(&rest, ',')),
                    h->config->types[h->chains[chain].leaf_type].name))
            return true;
    return false;
}

static bool within_fits(struct hived *h, const struct wait *wait, uint32_t chain, const char *type,
                        uint64_t leaves)
{
    assert(chain < h->chain_count);
    const struct chain *c = &h->chains[chain];
    uint8_t level = c->top;
    while (level && strcmp(h->config->types[c->levels[level].type].name, type))
        level--;
    if (!level || c->levels[level].leaf_count < leaves)
        return false;
    if (wait->pin != NONE)
        return h->cells[h->pins[wait->pin].root].level >= level;
    return wait->request->priority < HIVED_PRIORITY_MIN ||
           quota_of(h, wait->vc, chain)->top >= level;
}

/* The type of a withinOneCell that no cell that may be used has, or is too small for; NULL. */
static const char *within_lacking(struct hived *h, const struct wait *wait, uint32_t chain)
{
    assert(chain < h->chain_count);
    const struct hived_request *request = wait->request;
    const char *type = request->within_one_cell;
    if (type && *type && !within_fits(h, wait, chain, type, wait->leaf_count))
        return type;
    for (uint32_t i = 0; i < request->member_count; i++) {
        const struct hived_member *member = &request->members[i];
        type = member->within_one_cell;
        if (type && *type &&
            !within_fits(h, wait, chain, type, (uint64_t)member->pods * member->leaves))
            return type;
    }
    return NULL;
}

/* Pods of this size that the nodes of an empty view hold. */
static uint64_t pods_at_most(const struct hived *h, const struct view *view, uint32_t leaves)
{
    assert(leaves > 0);
    uint64_t count = 0;
    if (!view->is_mixed)
        return (uint64_t)view->count * (view->leaf_max / leaves);
    for (uint32_t b = 0; b < view->bucket_count; b++)
        for (uint32_t n = view->buckets[b].first; n != NONE; n = h->view_nodes[n].next) {
            const struct cell *cell = &h->cells[h->view_nodes[n].cell];
            count += h->chains[cell->chain].levels[cell->level].leaf_count / leaves;
        }
    return count;
}

/* Pods are whole on a node, so leaves that are left over on each do not add up. Of a view of mixed
 * nodes, which have to be counted, only the largest pods are looked at. */
static bool pods_fit(const struct hived *h, const struct wait *wait, const struct view *view)
{
    for (uint32_t i = wait->item_count; i-- > 0;) { /* the largest first */
        if (i && wait->items[i - 1].leaves == wait->items[i].leaves)
            continue;
        if (pods_at_most(h, view, wait->items[i].leaves) < wait->item_count - i)
            return false;
        if (view->is_mixed)
            break;
    }
    return true;
}

/* No end of jobs can help: on no chain that it may use would it fit an empty view. */
static bool is_never(struct hived *h, const struct wait *wait)
{
    const struct hived_request *request = wait->request;
    uint32_t largest = wait->items[wait->item_count - 1].leaves;
    for (uint32_t i = 0; i < h->chain_count; i++) {
        struct wait other = *wait;
        other.chain = i;
        bool is_oppo = request->priority < HIVED_PRIORITY_MIN;
        if (wait->pin == NONE && !is_oppo && !quota_of(h, wait->vc, i)->is_present)
            continue;
        if (!type_is_asked(h, request, i))
            continue;
        const struct view *view = view_of(h, &other);
        if (view->leaves >= wait->leaf_count && view->leaf_max >= largest &&
            pods_fit(h, wait, view) && !within_lacking(h, wait, i))
            return false;
        if (wait->pin != NONE)
            break;
    }
    return true;
}

/* Of what view there is room, and how much. */
static void room_write(struct buf *out, struct hived *h, const struct wait *wait,
                       const struct view *view)
{
    struct view_room room = room_of(h, view);
    const unsigned long long free = room.free, total = room.total;
    const char *chain = h->chains[wait->chain].name;
    if (wait->pin != NONE)
        buf_format(out, REASON_ROOM_PINNED, h->pins[wait->pin].id, free, total);
    else if (wait->request->priority < HIVED_PRIORITY_MIN)
        buf_format(out, REASON_ROOM_CLUSTER, chain, free, total);
    else
        buf_format(out, REASON_ROOM_OWN, chain, free, total);
    if (room.free)
        buf_format(out, REASON_ROOM_LARGEST, room.largest, room.node_max);
    if (room.bad)
        buf_format(out, REASON_ROOM_BAD, (unsigned long long)room.bad);
}

/* What else stands in the way, and who holds the rest. */
static void cause_write(struct buf *out, struct hived *h, const struct wait *wait,
                        const struct view *view)
{
    if (wait->is_mapping)
        buf_string(out, REASON_MAPPING);
    else if (wait->bad_node != NONE && wait->is_bad_excluded)
        buf_format(out, REASON_NODE_EXCLUDED, h->nodes[wait->bad_node].name);
    else if (wait->bad_node != NONE)
        buf_format(out, REASON_NODE_BAD, h->nodes[wait->bad_node].name);
    if (wait->is_search_cut)
        buf_string(out, REASON_SEARCH_CUT);
    holders_write(out, h, view);
}

void reason_write(struct hived *h, const struct wait *wait, struct arena *arena,
                  struct hived_result *result)
{
    assert(wait->item_count > 0);
    const struct hived_request *request = wait->request;
    cleanup_buf struct buf out = BUF_INIT;
    bool never = is_never(h, wait);
    const struct view *view = view_of(h, wait);
    buf_string(&out, REASON_NEEDS); /* no name: many of one shape wait for the same */
    demand_write(&out, h, wait);
    if (!view)
        buf_format(&out, REASON_OWNS_NONE, h->vcs[wait->vc].name);
    else if (request->priority < HIVED_PRIORITY_MIN)
        buf_format(&out, REASON_FOR_BORROWED, h->vcs[wait->vc].name, request->priority);
    else
        buf_format(&out, REASON_FOR, h->vcs[wait->vc].name, request->priority);
    if (view)
        room_write(&out, h, wait, view);
    result->topic = text_words_hash(buf_as_text(&out), 0); /* what follows comes and goes */
    if (view)
        cause_write(&out, h, wait, view);
    const char *lacking = never && view ? within_lacking(h, wait, wait->chain) : NULL;
    if (lacking)
        buf_format(&out, REASON_NEVER_CELL, lacking);
    else if (never && view)
        buf_string(&out, REASON_NEVER_ROOM);
    result->kind = HIVED_WAIT;
    result->reason = arena_copy(arena, buf_as_text(&out));
    result->is_never = never;
}
