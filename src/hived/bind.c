/* bind.c — bindings of virtual to physical cells, preassigned cells, and doomed bad cells.
 *
 * total_left of a level counts the cells that are free or below a free one; bad_free lists the bad
 * ones among them. A virtual cluster that must get bad cells, because too few healthy ones are
 * left for its quota, is shown so at once: a bad cell is bound to one of its preassigned cells
 * ("doomed bad"), and freed the first moment that this is no longer so.
 */
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>

static void touch(struct hived *h, uint32_t virtual)
{
    if (h->cells[virtual].is_viewed)
        view_touch(h, virtual);
}

static struct quota_level *root_level(struct hived *h, const struct cell *root)
{
    return &quota_of(h, rest_of(h, root)->vc, root->chain)->levels[root->level];
}

static void root_unbound_set(struct hived *h, uint32_t virtual, bool is_unbound)
{
    assert(virtual < h->cell_count && h->cells[virtual].is_virtual);
    const struct cell *cell = &h->cells[virtual];
    if (cell->root != virtual || cell->is_pinned)
        return;
    struct quota_level *level = root_level(h, cell);
    uint32_t order = rest_of(h, cell)->order, word = order / 64;
    uint64_t bit = 1ull << (order % 64);
    if (!is_unbound) {
        level->unbound[word] &= ~bit;
        return;
    }
    level->unbound[word] |= bit;
    if (word < level->unbound_hint)
        level->unbound_hint = word;
}

/* The first preassigned cell of this level that has no physical cell, or NONE. */
static uint32_t first_unbound(struct quota_level *level)
{
    assert(level->roots.count == 0 || level->unbound);
    uint32_t words = (uint32_t)((level->roots.count + 63) / 64);
    while (level->unbound_hint < words && !level->unbound[level->unbound_hint])
        level->unbound_hint++;
    if (level->unbound_hint >= words)
        return NONE;
    unsigned bit = (unsigned)__builtin_ctzll(level->unbound[level->unbound_hint]);
    return level->roots.items[level->unbound_hint * 64 + bit];
}

static void bind_one(struct hived *h, uint32_t physical, uint32_t virtual)
{
    struct cell *p = &h->cells[physical], *v = &h->cells[virtual];
    assert(p->bound == NONE && v->bound == NONE && p->level == v->level);
    p->bound = virtual;
    v->bound = physical;
    cell_changed(h, physical);
    cell_changed(h, virtual);
    root_unbound_set(h, virtual, false);
    touch(h, virtual);
}

static void cell_unbind_one(struct hived *h, uint32_t physical)
{
    struct cell *p = &h->cells[physical];
    uint32_t virtual = p->bound;
    assert(virtual != NONE && h->cells[virtual].bound == physical);
    p->bound = NONE;
    h->cells[virtual].bound = NONE;
    h->cells[virtual].state = HIVED_CELL_FREE;
    cell_changed(h, physical);
    cell_changed(h, virtual);
    root_unbound_set(h, virtual, true);
    touch(h, virtual);
}

/* With everything above up to a bound ancestor. */
void cell_bind(struct hived *h, uint32_t physical, uint32_t virtual)
{
    while (virtual != NONE && h->cells[virtual].bound == NONE) {
        bind_one(h, physical, virtual);
        virtual = h->cells[virtual].parent;
        physical = h->cells[physical].parent;
    }
    assert(virtual == NONE || h->cells[virtual].bound == physical);
}

/* Upwards while no sibling is bound; the preassigned cell itself is released apart. */
static void unbind_up(struct hived *h, uint32_t physical)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    uint32_t virtual = h->cells[physical].bound;
    while (h->cells[virtual].root != virtual) {
        cell_unbind_one(h, h->cells[virtual].bound);
        virtual = h->cells[virtual].parent;
        const struct cell *above = &h->cells[virtual];
        for (uint32_t i = 0; i < child_number(h, above); i++)
            if (h->cells[above->child + i].bound != NONE)
                return;
    }
}

void bad_free_add(struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count);
    struct cell *c = &h->cells[cell];
    if (c->is_listed)
        return;
    struct cell_list *list = &level_of(h, c)->bad_free;
    c->is_listed = true;
    h->rests[cell].listed_at = (uint32_t)list->count;
    cell_list_add(list, cell);
}

void bad_free_remove(struct hived *h, uint32_t cell)
{
    struct cell *c = &h->cells[cell];
    if (!c->is_listed || c->is_doomed)
        return;
    struct cell_list *list = &level_of(h, c)->bad_free;
    uint32_t at = h->rests[cell].listed_at, last = list->items[--list->count];
    assert(list->items[at] == cell);
    list->items[at] = last;
    h->rests[last].listed_at = at;
    c->is_listed = false;
}

static uint32_t unbound_child(const struct hived *h, uint32_t virtual)
{
    assert(virtual < h->cell_count && h->cells[virtual].is_virtual);
    const struct cell *v = &h->cells[virtual];
    for (uint32_t i = 0; i < child_number(h, v); i++)
        if (h->cells[v->child + i].bound == NONE)
            return v->child + i;
    return NONE;
}

/* A bad cell inside one that has been given away: any unbound sibling stands for it. */
void cell_bind_spare(struct hived *h, uint32_t physical)
{
    uint32_t spare = unbound_child(h, h->cells[h->cells[physical].parent].bound);
    assert(spare != NONE);
    bind_one(h, physical, spare);
}

/* The bad cells inside a cell that has been given to a virtual cluster: they are no longer counted
 * as free, and its virtual cluster must see them. */
static void bad_cells_give(struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count);
    const struct cell *c = &h->cells[cell];
    bad_free_remove(h, cell);
    if (c->level == 1 || !c->bad_children)
        return;
    for (uint32_t i = 0; i < child_number(h, c); i++) {
        uint32_t child = c->child + i;
        if (!h->cells[child].is_bad)
            continue;
        if (h->cells[child].bound == NONE)
            bind_one(h, child, unbound_child(h, c->bound));
        bad_cells_give(h, child);
    }
}

static void bad_cells_take_back(struct hived *h, uint32_t cell)
{
    assert(cell < h->cell_count);
    const struct cell *c = &h->cells[cell];
    if (c->is_bad)
        bad_free_add(h, cell);
    for (uint32_t i = 0; i < child_number(h, c) && c->bad_children > 0; i++) {
        uint32_t child = c->child + i;
        if (!h->cells[child].is_bad)
            continue;
        if (h->cells[child].bound != NONE)
            cell_unbind_one(h, child);
        bad_cells_take_back(h, child);
    }
}

static uint32_t healthy_left(const struct level *level)
{
    return level->total_left - (uint32_t)level->bad_free.count;
}

/* Highest of the levels above a cell whose cells are not split. */
static uint8_t whole_top(const struct hived *h, const struct cell *cell)
{
    assert(!cell->is_virtual);
    uint8_t top = cell->level;
    for (uint32_t at = cell->parent; at != NONE && !h->cells[at].is_split; at = h->cells[at].parent)
        top = h->cells[at].level;
    return top;
}

static void dooms_update_early(struct hived *h, uint16_t chain, uint8_t level, bool is_given)
{
    if (!h->habits->dooms_early)
        return;
    if (is_given)
        doom_try(h, chain, level);
    else
        doom_undo_try(h, chain, level);
}

/* When all levels are counted, the top one first: what a larger quota needs goes before. */
static void dooms_update(struct hived *h, const struct cell *cell, uint8_t top, bool is_given)
{
    assert(!cell->is_virtual && top >= cell->level);
    uint16_t chain = cell->chain;
    uint8_t own = cell->level;
    if (h->habits->dooms_early)
        return;
    for (uint8_t at = top; !is_given && at >= 1; at--)
        doom_undo_try(h, chain, at);
    for (uint8_t at = top; at >= 1; at--)
        doom_try(h, chain, at);
    if (is_given)
        doom_undo_try(h, chain, own);
}

/* A physical cell is given to a preassigned cell of `vc`, to which it is bound, and leaves the free
 * lists; or it is taken back. Counted are its own level, those above that it alone split, and
 * those below. False: a level has fewer cells left than the quotas still need. */
static bool preassigned_count(struct hived *h, uint32_t physical, uint32_t vc, bool is_given,
                              bool is_doomed)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    assert(vc < h->vc_count);
    const struct cell *cell = &h->cells[physical];
    uint16_t chain = cell->chain;
    uint8_t own = cell->level;
    struct level *levels = h->chains[chain].levels;
    uint32_t by = is_given ? UINT32_MAX : 1; /* minus one, modulo 2^32 */
    quota_of(h, vc, chain)->levels[own].free += by;
    levels[own].all_vc_free += by;
    levels[own].total_left += by;
    bool is_safe = h->habits->trusts_own_level || levels[own].total_left >= levels[own].all_vc_free;
    if (!is_given)
        free_give(h, physical);
    uint8_t top = whole_top(h, cell);
    if (is_given)
        free_take(h, physical);
    for (uint32_t at = cell->parent; at != NONE && h->cells[at].level <= top;
         at = h->cells[at].parent) {
        struct level *level = level_of(h, &h->cells[at]);
        level->total_left += by;
        is_safe &= level->total_left >= level->all_vc_free;
        if (!h->cells[at].is_bad)
            dooms_update_early(h, chain, h->cells[at].level, is_given);
        else if (is_given)
            bad_free_remove(h, at);
        else
            bad_free_add(h, at);
    }
    if (is_given) {
        bad_cells_give(h, physical);
    } else {
        bad_cells_take_back(h, physical);
        cell_unbind_one(h, physical);
    }
    if (!cell->is_bad || !is_doomed)
        dooms_update_early(h, chain, own, is_given != cell->is_bad);
    for (uint8_t at = own; at > 1; at--) {
        by *= levels[at].child_number;
        levels[at - 1].total_left += by;
        is_safe &= levels[at - 1].total_left >= levels[at - 1].all_vc_free;
        if (!is_doomed)
            dooms_update_early(h, chain, (uint8_t)(at - 1), is_given);
    }
    dooms_update(h, cell, top, is_given);
    return is_safe;
}

static bool preassigned_allocate(struct hived *h, uint32_t physical, uint32_t vc, bool is_doomed)
{
    return preassigned_count(h, physical, vc, true, is_doomed);
}

static void preassigned_release(struct hived *h, uint32_t physical, uint32_t vc, bool is_doomed)
{
    preassigned_count(h, physical, vc, false, is_doomed);
}

void doom_try(struct hived *h, uint32_t chain_index, uint8_t at)
{
    assert(chain_index < h->chain_count);
    struct chain *chain = &h->chains[chain_index];
    struct level *level = &chain->levels[at];
    if (level->all_vc_free <= healthy_left(level))
        return; /* then no single virtual cluster can need more */
    if (h->dooms_held) {
        h->dooms_missed = true;
        return;
    }
    for (uint32_t i = 0; i < chain->vcs.count; i++) {
        uint32_t vc = chain->vcs.items[i];
        struct quota_level *own = &quota_of(h, vc, chain_index)->levels[at];
        while (own->free > healthy_left(level) && level->bad_free.count > 0) {
            uint32_t root = first_unbound(own);
            if (root == NONE)
                break;
            uint32_t bad = level->bad_free.items[0];
            struct cell *cell = &h->cells[bad];
            bad_free_remove(h, bad);
            bind_one(h, bad, root);
            cell->is_doomed = true;
            cell->is_listed = true;
            h->rests[bad].listed_at = (uint32_t)own->doomed.count;
            cell_list_add(&own->doomed, bad);
            level->doomed_count++;
            preassigned_allocate(h, bad, vc, true);
        }
    }
}

static void doom_forget(struct hived *h, struct quota_level *own, uint32_t physical)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    struct cell *cell = &h->cells[physical];
    uint32_t last = own->doomed.items[--own->doomed.count], at = h->rests[physical].listed_at;
    own->doomed.items[at] = last;
    h->rests[last].listed_at = at;
    cell->is_doomed = cell->is_listed = false;
    level_of(h, cell)->doomed_count--;
}

/* The doomed cell goes back, unless somebody (recovered there) uses it: then it is an ordinary
 * preassigned cell from now on. */
void doom_release(struct hived *h, uint32_t physical)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    uint32_t root = h->cells[physical].bound, vc = h->rests[root].vc;
    doom_forget(h, root_level(h, &h->cells[root]), physical);
    if (h->cells[root].priority < HIVED_PRIORITY_MIN)
        preassigned_release(h, physical, vc, true);
}

void doom_undo_try(struct hived *h, uint32_t chain_index, uint8_t at)
{
    assert(chain_index < h->chain_count);
    struct chain *chain = &h->chains[chain_index];
    struct level *level = &chain->levels[at];
    if (level->doomed_count > 0 && h->dooms_held) {
        h->dooms_missed = true;
        return;
    }
    for (uint32_t i = 0; i < chain->vcs.count && level->doomed_count > 0; i++) {
        uint32_t vc = chain->vcs.items[i];
        struct quota_level *own = &quota_of(h, vc, chain_index)->levels[at];
        while (own->doomed.count > 0 && own->free < healthy_left(level))
            doom_release(h, own->doomed.items[0]);
    }
}

/* Compound changes hold the dooms until they are whole. */
void dooms_hold(struct hived *h)
{
    h->dooms_held += !h->habits->dooms_early;
}

void dooms_let(struct hived *h)
{
    if (h->habits->dooms_early)
        return;
    assert(h->dooms_held > 0);
    if (--h->dooms_held > 0 || !h->dooms_missed)
        return;
    h->dooms_missed = false;
    for (uint32_t i = 0; i < h->chain_count; i++) {
        for (uint8_t level = h->chains[i].top; level >= 1; level--) {
            doom_undo_try(h, i, level);
            doom_try(h, i, level);
        }
    }
}

static void oppo_add(struct hived *h, uint32_t physical, uint32_t vc)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    h->rests[physical].oppo_vc = vc;
    cell_changed(h, physical);
    if (vc != NONE)
        quota_of(h, vc, h->cells[physical].chain)->oppo++;
}

static void oppo_remove(struct hived *h, uint32_t physical)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    uint32_t vc = h->rests[physical].oppo_vc;
    h->rests[physical].oppo_vc = NONE;
    cell_changed(h, physical);
    if (vc != NONE)
        quota_of(h, vc, h->cells[physical].chain)->oppo--;
}

/* False: the quotas of others can no longer all be met. */
bool leaf_allocate(struct hived *h, uint32_t physical, uint32_t virtual, int32_t priority,
                   uint32_t vc)
{
    if (virtual == NONE) {
        leaf_use(h, physical, HIVED_PRIORITY_OPPO);
        oppo_add(h, physical, vc);
        return true;
    }
    leaf_use(h, virtual, priority);
    leaf_use(h, physical, priority);
    uint32_t root = h->cells[virtual].root;
    bool is_new = h->cells[root].bound == NONE;
    if (h->cells[physical].bound == NONE)
        cell_bind(h, physical, virtual);
    assert(h->cells[physical].bound == virtual);
    if (is_new && !h->cells[root].is_pinned)
        return preassigned_allocate(h, h->cells[root].bound, vc, false);
    return true;
}

void leaf_release(struct hived *h, uint32_t physical, uint32_t vc)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    uint32_t virtual = h->cells[physical].bound;
    if (virtual == NONE || h->cells[virtual].priority < HIVED_PRIORITY_MIN) {
        oppo_remove(h, physical);
        leaf_unuse(h, physical);
        if (h->habits->leaf_released && virtual != NONE)
            h->habits->leaf_released(h, virtual, vc);
        return;
    }
    leaf_unuse(h, virtual);
    leaf_unuse(h, physical);
    uint32_t root = h->cells[virtual].root;
    uint32_t top = h->cells[root].bound;
    if (!h->cells[physical].is_bad)
        unbind_up(h, physical);
    if (h->cells[root].priority < HIVED_PRIORITY_MIN && !h->cells[root].is_pinned &&
        !h->cells[top].is_doomed)
        preassigned_release(h, top, vc == NONE ? h->rests[root].vc : vc, false);
}

/* May this virtual leaf be bound to this physical one: are they bound to each other, or both trees
 * unbound up to a pair that is, or up to a free cell? */
static bool leaf_fits(const struct hived *h, uint32_t physical, uint32_t virtual)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    assert(virtual < h->cell_count && h->cells[virtual].is_virtual);
    for (;;) {
        const struct cell *p = &h->cells[physical], *v = &h->cells[virtual];
        if (p->bound == virtual)
            return true;
        if (p->bound != NONE || v->bound != NONE || p->level != v->level)
            return false;
        if (v->root == virtual)
            return !v->is_pinned && cell_is_free(h, physical);
        if (p->parent == NONE)
            return false;
        physical = p->parent;
        virtual = v->parent;
    }
}

/* The virtual leaf to be used with a physical one where `wanted` was planned: bad cells inside may
 * have been bound in another order meanwhile. NONE: the virtual cluster has no place. */
uint32_t leaf_virtual(struct hived *h, uint32_t physical, uint32_t wanted, int32_t priority)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    const struct cell *v = &h->cells[wanted];
    if (leaf_fits(h, physical, wanted))
        return wanted;
    uint32_t pin_root = h->cells[v->root].is_pinned ? v->root : NONE;
    uint32_t other = physical_to_virtual(h, physical, rest_of(h, v)->vc, pin_root,
                                         h->cells[v->root].level, priority);
    if (other == NONE || h->cells[other].priority != HIVED_PRIORITY_FREE ||
        !leaf_fits(h, physical, other))
        return NONE;
    return other;
}

/* For a leaf that turned healthy: bound only because it was bad. */
void leaf_unbind_unused(struct hived *h, uint32_t physical)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    uint32_t virtual = h->cells[physical].bound;
    if (virtual != NONE && h->cells[virtual].priority < HIVED_PRIORITY_MIN)
        unbind_up(h, physical);
}

/* Of virtual siblings, the first unused unbound one; else the one of lowest priority below ours.
 * Unused but bound ones stand for bad cells. */
static uint32_t lowest_virtual(const struct hived *h, const uint32_t *list, uint32_t first,
                               uint32_t count, int32_t below)
{
    uint32_t best = NONE;
    int32_t lowest = below;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t cell = list ? list[i] : first + i;
        int32_t priority = h->cells[cell].priority;
        if (priority == HIVED_PRIORITY_FREE) {
            if (h->cells[cell].bound == NONE)
                return cell;
            continue;
        }
        if (priority < lowest) {
            lowest = priority;
            best = cell;
        }
    }
    return best;
}

/* The virtual leaf (or cell) of `vc` that stands for a physical one, as at a commit or recovery;
 * NONE: the virtual cluster has none at that level. `pin_root`: only inside this pinned cell. */
uint32_t physical_to_virtual(struct hived *h, uint32_t physical, uint32_t vc, uint32_t pin_root,
                             uint8_t preassigned_level, int32_t priority)
{
    assert(physical < h->cell_count && !h->cells[physical].is_virtual);
    assert(vc < h->vc_count);
    const struct cell *cell = &h->cells[physical];
    if (cell->bound != NONE) {
        const struct cell *v = &h->cells[cell->bound];
        bool is_ours = rest_of(h, v)->vc == vc &&
                       (pin_root == NONE ? !h->cells[v->root].is_pinned : v->root == pin_root);
        return is_ours ? cell->bound : NONE;
    }
    if (cell->level == preassigned_level && pin_root == NONE) {
        struct quota *quota = quota_of(h, vc, cell->chain);
        if (!quota->is_present || cell->level > quota->top)
            return NONE;
        struct quota_level *level = &quota->levels[cell->level];
        uint32_t unbound = first_unbound(level);
        if (unbound != NONE)
            return unbound;
        return lowest_virtual(h, level->roots.items, 0, (uint32_t)level->roots.count, priority);
    }
    if (cell->parent == NONE || cell->level >= preassigned_level)
        return NONE;
    uint32_t above =
        physical_to_virtual(h, cell->parent, vc, pin_root, preassigned_level, priority);
    if (above == NONE)
        return NONE;
    return lowest_virtual(h, NULL, h->cells[above].child, child_number(h, &h->cells[above]),
                          priority);
}
