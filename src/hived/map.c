/* map.c — virtual leaves to physical ones: buddy allocation for new preassigned cells, matching of
 * siblings below bound ones. Equal topology below each cell is kept.
 *
 * Nothing is changed but the free lists, inside a trial that is undone.
 */
#include "base/arena.h"
#include "base/memory.h"
#include "hived/state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct vertex { /* a virtual cell to be bound */
    uint32_t cell;
    uint32_t first, last, next; /* children to bind, siblings */
    uint32_t count;             /* of the children; 0: with all leaves below it, or a leaf */
};

struct mapper {
    struct mapping *m;
    struct hived *h;
    struct vertex *vertices;
    uint32_t count, room;
    uint32_t needs[HIVED_LEVELS_MAX + 1]; /* preassigned cells of each level mapped so far */
};

struct family { /* new cells below one bound parent */
    uint32_t parent, first, last, count;
};

static uint32_t vertex_new(struct mapper *mapper, uint32_t cell)
{
    assert(cell < mapper->h->cell_count && mapper->h->cells[cell].is_virtual);
    if (mapper->count == mapper->room) {
        uint32_t room = 2 * mapper->room;
        struct vertex *grown = ARENA_ARRAY(mapper->m->arena, struct vertex, room);
        memcpy(grown, mapper->vertices, mapper->count * sizeof *grown);
        mapper->vertices = grown;
        mapper->room = room;
    }
    mapper->vertices[mapper->count] = (struct vertex){cell, NONE, NONE, NONE, 0};
    mapper->h->scratch[cell] = mapper->count;
    return mapper->count++;
}

static void vertex_append(struct mapper *mapper, uint32_t parent, uint32_t child)
{
    assert(parent < mapper->count && child < mapper->count);
    struct vertex *above = &mapper->vertices[parent];
    if (above->last == NONE)
        above->first = child;
    else
        mapper->vertices[above->last].next = child;
    above->last = child;
    above->count++;
}

static uint32_t vertex_of(const struct mapper *mapper, uint32_t cell)
{
    uint32_t vertex = mapper->h->scratch[cell];
    bool is_ours = vertex < mapper->count && mapper->vertices[vertex].cell == cell;
    return is_ours ? vertex : NONE;
}

/* --- which physical cells may be used --- */

static bool cell_is_allowed(const struct mapper *mapper, uint32_t cell);

/* An unbound cell that is bad, or some nodes are excluded. */
static bool cell_is_allowed_still(const struct mapper *mapper, const struct cell *c)
{
    const struct hived *h = mapper->h;
    const bool *is_excluded = mapper->m->is_excluded;
    bool is_single = cell_is_single_node(h, c);
    if (is_single && c->is_bad)
        return false;
    if (!is_excluded)
        return true;
    if (is_single)
        return !is_excluded[rest_of(h, c)->node];
    for (uint32_t i = 0; i < child_number(h, c); i++) {
        const struct cell *child = &h->cells[c->child + i];
        if (cell_is_single_node(h, child) ? !is_excluded[rest_of(h, child)->node]
                                          : cell_is_allowed(mapper, c->child + i))
            return true;
    }
    return false;
}

static bool cell_is_allowed(const struct mapper *mapper, uint32_t cell)
{
    assert(cell < mapper->h->cell_count);
    const struct cell *c = &mapper->h->cells[cell];
    if (c->bound != NONE)
        return false;
    return (!c->is_bad && !mapper->m->is_excluded) || cell_is_allowed_still(mapper, c);
}

struct candidate {
    uint32_t cell, used_oppo, order;
};

enum { CANDIDATES_ON_STACK = 8 }; /* the usual number of children */

struct cell_candidates {
    struct candidate *items;
    uint32_t count;
    struct candidate few[CANDIDATES_ON_STACK];
};

static int candidate_compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->used_oppo != y->used_oppo)
        return x->used_oppo < y->used_oppo ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Usable ones of a list (or of neighbours from `first`), those with fewer opportunistic leaves
 * first. */
static void candidates_sort(const struct mapper *mapper, const uint32_t *list, uint32_t first,
                            uint32_t count, struct cell_candidates *candidates)
{
    struct candidate *all = candidates->few;
    if (count > CANDIDATES_ON_STACK)
        all = ARENA_ARRAY(mapper->m->arena, struct candidate, count);
    uint32_t usable = 0;
    bool is_sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t cell = list ? list[i] : first + i;
        if (!cell_is_allowed(mapper, cell))
            continue;
        uint32_t used = mapper->h->cells[cell].used_oppo;
        is_sorted &= !usable || all[usable - 1].used_oppo <= used;
        all[usable++] = (struct candidate){cell, used, i};
    }
    candidates->items = all;
    candidates->count = usable;
    if (is_sorted)
        return;
    if (usable > CANDIDATES_ON_STACK) {
        qsort(all, usable, sizeof *all, candidate_compare);
        return;
    }
    for (uint32_t i = 1; i < usable; i++) {
        struct candidate moved = all[i];
        uint32_t at = i;
        for (; at > 0 && all[at - 1].used_oppo > moved.used_oppo; at--)
            all[at] = all[at - 1];
        all[at] = moved;
    }
}

static void children_sort(const struct mapper *mapper, const struct cell *parent,
                          struct cell_candidates *candidates)
{
    candidates_sort(mapper, NULL, parent->child, child_number(mapper->h, parent), candidates);
}

/* The first of the children in that order, or NONE. */
static uint32_t child_first(const struct mapper *mapper, const struct cell *parent)
{
    assert(parent->level > 1);
    const struct cell *cells = mapper->h->cells;
    uint32_t first = NONE, end = parent->child + child_number(mapper->h, parent);
    for (uint32_t i = parent->child; i < end; i++)
        if ((first == NONE || cells[i].used_oppo < cells[first].used_oppo) &&
            cell_is_allowed(mapper, i))
            first = i;
    return first;
}

/* --- matching siblings --- */

static bool family_map(struct mapper *mapper, uint32_t first, uint32_t count, uint32_t parent);

/* All leaves of an unbound virtual cell, from `leaf` on, on a physical cell: as siblings would be
 * mapped one by one, but they are alike. */
static bool whole_map(struct mapper *mapper, uint32_t leaf, uint32_t physical)
{
    assert(leaf < mapper->h->cell_count && physical < mapper->h->cell_count);
    struct hived *h = mapper->h;
    const struct cell *p = &h->cells[physical];
    uint32_t leaves = level_of(h, p)->leaf_count;
    bool is_plain = !mapper->m->is_excluded || cell_is_single_node(h, p);
    if (is_plain && !p->is_bad && !p->used_oppo) {
        uint32_t first = first_leaf(h, physical);
        for (uint32_t i = 0; i < leaves; i++)
            h->scratch[leaf + i] = first + i;
        return true;
    }
    if (p->level == 1) {
        h->scratch[leaf] = physical;
        return true;
    }
    struct cell_candidates candidates;
    children_sort(mapper, p, &candidates);
    if (candidates.count < child_number(h, p))
        return false;
    assert(candidates.count > 0); /* above the leaves a cell has children */
    leaves /= candidates.count;
    for (uint32_t i = 0; i < candidates.count; i++)
        if (!whole_map(mapper, leaf + i * leaves, candidates.items[i].cell))
            return false;
    return true;
}

/* The virtual cell on this physical one, with all that is to be bound below. */
static bool vertex_map(struct mapper *mapper, uint32_t vertex, uint32_t physical)
{
    assert(vertex < mapper->count);
    const struct vertex *v = &mapper->vertices[vertex];
    if (mapper->h->cells[physical].level == 1) {
        mapper->h->scratch[v->cell] = physical;
        return true;
    }
    if (!v->count)
        return whole_map(mapper, first_leaf(mapper->h, v->cell), physical);
    return family_map(mapper, v->first, v->count, physical);
}

struct matching {
    struct mapper *mapper;
    const struct candidate *candidates;
    uint32_t candidate_count, count;
    uint32_t *vertices;
    int8_t *fits;     /* [vertex * candidates]: -1 not known */
    uint32_t *taken;  /* by candidate: vertex, or NONE */
    uint32_t *choice; /* by vertex */
    bool *is_seen;
};

static bool matching_fits(struct matching *matching, uint32_t vertex, uint32_t candidate)
{
    int8_t *fits = &matching->fits[(size_t)vertex * matching->candidate_count + candidate];
    if (*fits < 0)
        *fits = vertex_map(matching->mapper, matching->vertices[vertex],
                           matching->candidates[candidate].cell)
                    ? 1
                    : 0;
    return *fits > 0;
}

/* An augmenting path for `vertex`; vertices below `fixed` keep their choice. */
static bool matching_augment(struct matching *matching, uint32_t vertex, uint32_t fixed)
{
    for (uint32_t c = 0; c < matching->candidate_count; c++) {
        if (matching->is_seen[c] || !matching_fits(matching, vertex, c))
            continue;
        matching->is_seen[c] = true;
        uint32_t other = matching->taken[c];
        if (other != NONE && (other < fixed || !matching_augment(matching, other, fixed)))
            continue;
        matching->taken[c] = vertex;
        matching->choice[vertex] = c;
        return true;
    }
    return false;
}

static bool matching_try(struct matching *matching, uint32_t vertex, uint32_t fixed)
{
    memset(matching->is_seen, 0, matching->candidate_count * sizeof *matching->is_seen);
    return matching_augment(matching, vertex, fixed);
}

/* Improve a perfect matching to the first one in the order of a backtracking search: each vertex
 * in turn takes its first candidate that leaves the others a place. */
static void matching_first(struct matching *matching)
{
    for (uint32_t v = 0; v < matching->count; v++) {
        for (uint32_t c = 0; c < matching->choice[v]; c++) {
            uint32_t other = matching->taken[c], own = matching->choice[v];
            if ((other != NONE && other < v) || !matching_fits(matching, v, c))
                continue;
            matching->taken[own] = NONE;
            matching->taken[c] = v;
            matching->choice[v] = c;
            if (other == NONE)
                break;
            memset(matching->is_seen, 0, matching->candidate_count * sizeof *matching->is_seen);
            if (matching_augment(matching, other, v + 1)) /* `c` is fixed: it is v's */
                break;
            matching->taken[c] = other;
            matching->taken[own] = v;
            matching->choice[v] = own;
            matching->choice[other] = c;
        }
    }
}

static bool matching_run(struct mapper *mapper, uint32_t first, uint32_t count,
                         const struct cell_candidates *candidates)
{
    struct arena *arena = mapper->m->arena;
    uint32_t candidate_count = candidates->count;
    struct matching matching = {.mapper = mapper,
                                .candidates = candidates->items,
                                .candidate_count = candidate_count,
                                .count = count};
    matching.vertices = ARENA_ARRAY(arena, uint32_t, count);
    matching.choice = ARENA_ARRAY(arena, uint32_t, count);
    matching.taken = ARENA_ARRAY(arena, uint32_t, candidate_count);
    matching.is_seen = ARENA_ARRAY(arena, bool, candidate_count);
    matching.fits = ARENA_ARRAY(arena, int8_t, (size_t)count * candidate_count);
    memset(matching.fits, -1, (size_t)count * candidate_count);
    memset(matching.taken, 0xff, candidate_count * sizeof *matching.taken);
    for (uint32_t i = 0, v = first; i < count; i++, v = mapper->vertices[v].next)
        matching.vertices[i] = v;
    for (uint32_t i = 0; i < count; i++)
        if (!matching_try(&matching, i, 0))
            return false;
    matching_first(&matching);
    for (uint32_t i = 0; i < count; i++) { /* trials may have left other picks below */
        bool is_mapped =
            vertex_map(mapper, matching.vertices[i], candidates->items[matching.choice[i]].cell);
        assert(is_mapped);
        (void)is_mapped;
    }
    return true;
}

/* Siblings on the children of a physical cell. */
static bool family_map(struct mapper *mapper, uint32_t first, uint32_t count, uint32_t parent)
{
    assert(count > 0 && first < mapper->count);
    if (count == 1) { /* the usual case, and mostly the first one does */
        uint32_t child = child_first(mapper, &mapper->h->cells[parent]);
        if (child == NONE || vertex_map(mapper, first, child))
            return child != NONE;
    }
    struct cell_candidates candidates;
    children_sort(mapper, &mapper->h->cells[parent], &candidates);
    if (candidates.count < count)
        return false;
    uint32_t vertex = first;
    for (uint32_t i = 0; i < count; i++, vertex = mapper->vertices[vertex].next)
        if (!vertex_map(mapper, vertex, candidates.items[i].cell))
            return matching_run(mapper, first, count, &candidates);
    return true;
}

/* --- preassigned cells --- */

/* The cell at the vertex' level, at or below a free one, that takes it; NONE: there is none. */
static uint32_t below_map(struct mapper *mapper, uint32_t vertex, uint32_t physical)
{
    assert(vertex < mapper->count);
    const struct hived *h = mapper->h;
    const struct cell *p = &h->cells[physical];
    if (p->level == h->cells[mapper->vertices[vertex].cell].level)
        return vertex_map(mapper, vertex, physical) ? physical : NONE;
    struct cell_candidates candidates;
    children_sort(mapper, p, &candidates);
    for (uint32_t i = 0; i < candidates.count; i++) {
        uint32_t found = below_map(mapper, vertex, candidates.items[i].cell);
        if (found != NONE)
            return found;
    }
    return NONE;
}

/* At the lowest level that has free cells. */
static uint32_t buddy_map(struct mapper *mapper, uint32_t vertex)
{
    assert(vertex < mapper->count);
    struct hived *h = mapper->h;
    struct chain *chain = &h->chains[mapper->m->chain];
    uint8_t level = h->cells[mapper->vertices[vertex].cell].level;
    while (level <= chain->top && !chain->levels[level].free.count)
        level++;
    if (level > chain->top)
        return NONE;
    const struct free_list *free = &chain->levels[level].free;
    uint32_t tried = free_list_first(free);
    if (tried == NONE)
        return NONE;
    if (cell_is_allowed(mapper, tried)) {
        uint32_t found = below_map(mapper, vertex, tried);
        if (found != NONE)
            return found;
    }
    struct cell_candidates candidates;
    candidates_sort(mapper, free->items, 0, free->count, &candidates);
    for (uint32_t i = 0; i < candidates.count; i++) {
        if (candidates.items[i].cell == tried)
            continue;
        uint32_t found = below_map(mapper, vertex, candidates.items[i].cell);
        if (found != NONE)
            return found;
    }
    return NONE;
}

/* The original splits all the cells that it may at each level tried, and goes on with all pieces in
 * front of the cells that were free. */
static void pieces_free(struct mapper *mapper, const uint32_t *pieces, uint32_t count,
                        struct free_list *list)
{
    struct hived *h = mapper->h;
    uint32_t before = list->count;
    uint32_t *others = ARENA_ARRAY(mapper->m->arena, uint32_t, before + 1);
    if (before)
        memcpy(others, list->items, before * sizeof *others);
    for (uint32_t i = 0; i < count; i++)
        free_take(h, pieces[i]);
    for (uint32_t i = before; i-- > 0;)
        free_list_remove(h, list, others[i]);
    for (uint32_t i = 0; i < count; i++)
        free_list_push(h, list, pieces[i]);
    for (uint32_t i = 0; i < before; i++)
        free_list_push(h, list, others[i]);
}

/* The free cells of the wanted level are bad or not suggested: split larger ones, but only as many
 * as the quotas of all virtual clusters leave over at each level passed. (The original looks at the
 * level split only, and so may take the last cell of a level in between.) */
static uint32_t relaxed_map(struct mapper *mapper, uint32_t vertex)
{
    assert(vertex < mapper->count);
    struct hived *h = mapper->h;
    struct chain *chain = &h->chains[mapper->m->chain];
    uint8_t own = h->cells[mapper->vertices[vertex].cell].level;
    int64_t spare[HIVED_LEVELS_MAX + 2] = {0};
    for (uint8_t at = chain->top; at > own; at--) {
        const struct level *level = &chain->levels[at];
        spare[at] = (int64_t)level->free.count - ((int64_t)level->all_vc_free - mapper->needs[at]);
        if (at < chain->top)
            spare[at] += spare[at + 1] * chain->levels[at + 1].child_number;
    }
    for (uint8_t at = (uint8_t)(own + 1); at <= chain->top; at++) {
        const struct free_list *free = &chain->levels[at].free;
        int64_t limit = spare[at] < free->count ? spare[at] : free->count;
        if (spare[at] < 1 && !h->habits->splits_all)
            return NONE; /* every level in between loses one cell as well */
        if (limit < 1)
            continue;
        uint32_t width = 1;
        for (uint8_t below = at; below > own; below--)
            width *= chain->levels[below].child_number;
        uint32_t *split = ARENA_ARRAY(mapper->m->arena, uint32_t, (size_t)limit * width);
        uint32_t count = 0;
        for (uint32_t i = 0; i < (uint32_t)limit; i++) {
            /* the first, then from the end, as taking the first of such a list time and again */
            uint32_t cell = free->items[i ? free->count - i : 0];
            while (h->cells[cell].level > own)
                cell = h->cells[cell].child;
            for (uint32_t k = 0; k < width; k++)
                split[count++] = cell + k;
        }
        if (h->habits->splits_all)
            pieces_free(mapper, split, count, &chain->levels[own].free);
        struct cell_candidates candidates;
        candidates_sort(mapper, split, 0, count, &candidates);
        for (uint32_t i = 0; i < candidates.count; i++)
            if (vertex_map(mapper, vertex, candidates.items[i].cell))
                return candidates.items[i].cell;
    }
    return NONE;
}

/* `is_last`: nothing is mapped to the free lists after it, they can stay as they are. */
static bool preassigned_map(struct mapper *mapper, uint32_t vertex, bool is_last)
{
    assert(vertex < mapper->count);
    uint32_t found = buddy_map(mapper, vertex);
    bool is_relaxed = found == NONE;
    if (is_relaxed)
        found = relaxed_map(mapper, vertex);
    if (found == NONE || is_last)
        return found != NONE;
    if (!is_relaxed || !mapper->h->habits->splits_all)
        mapper->needs[mapper->h->cells[found].level]++;
    free_take(mapper->h, found);
    return true;
}

/* --- */

struct roots {
    uint32_t *preassigned, preassigned_count;
    struct family *families;
    uint32_t family_count;
};

static void family_add(struct mapper *mapper, struct roots *roots, uint32_t parent, uint32_t vertex)
{
    assert(vertex < mapper->count);
    struct family *family = NULL;
    for (uint32_t i = roots->family_count; i-- > 0 && !family;)
        if (roots->families[i].parent == parent)
            family = &roots->families[i];
    if (!family) {
        family = &roots->families[roots->family_count++];
        *family = (struct family){parent, vertex, vertex, 1};
        return;
    }
    mapper->vertices[family->last].next = vertex;
    family->last = vertex;
    family->count++;
}

/* The highest unbound cell of which the mapping wants all leaves, in order, the first one at `at`.
 * *count: of them. */
static uint32_t whole_find(const struct mapping *m, uint32_t at, uint32_t *count)
{
    const struct hived *h = m->h;
    const uint32_t *leaves = &m->virtual[at];
    uint32_t cell = leaves[0];
    *count = 1;
    for (;;) {
        uint32_t above = h->cells[cell].parent, end = *count;
        if (above == NONE || h->cells[above].bound != NONE || h->cells[above].child != cell)
            return cell;
        uint32_t need = h->chains[m->chain].levels[h->cells[above].level].leaf_count;
        while (end < need && at + end < m->leaf_count && leaves[end] == leaves[0] + end)
            end++;
        if (end < need)
            return cell;
        cell = above;
        *count = need;
    }
}

/* The unbound cells from a virtual leaf (or a cell wanted whole) up, as far as they are not there
 * yet. */
static void path_add(struct mapper *mapper, struct roots *roots, uint32_t from)
{
    assert(from < mapper->h->cell_count);
    const struct hived *h = mapper->h;
    uint32_t below = NONE;
    for (uint32_t cell = from;; cell = h->cells[cell].parent) {
        if (cell == NONE) {
            roots->preassigned[roots->preassigned_count++] = below;
            return;
        }
        if (h->cells[cell].bound != NONE) {
            family_add(mapper, roots, cell, below);
            return;
        }
        uint32_t known = vertex_of(mapper, cell);
        if (known != NONE) {
            vertex_append(mapper, known, below);
            return;
        }
        uint32_t vertex = vertex_new(mapper, cell);
        if (below != NONE)
            vertex_append(mapper, vertex, below);
        below = vertex;
    }
}

/* --- the whole, in pieces --- */

enum mapping_stage {
    MAPPING_PATHS, /* what is to be bound is gathered: at a leaf */
    MAPPING_ROOTS, /* it is mapped, inside a trial: at a preassigned cell or, behind these, family
                    */
    MAPPING_UNDO,  /* the trial is undone */
    MAPPING_LEAVES /* the result is written: at a leaf */
};

struct mapping_course {
    struct mapper mapper;
    struct roots roots;
    enum mapping_stage stage;
    uint32_t at;
    bool has_failed;
};

/* Everything it needs lies in the arena, but small tables at first. */
static void course_begin(struct mapping *m, struct mapping_course *course)
{
    course->mapper.m = m;
    course->mapper.h = m->h;
    if (!course->mapper.vertices) {
        enum { VERTICES_FIRST = 1024 };
        course->mapper.vertices = ARENA_ARRAY(m->arena, struct vertex, VERTICES_FIRST);
        course->mapper.room = VERTICES_FIRST;
    }
    if (course->roots.preassigned)
        return;
    const size_t count = m->leaf_count; /* not zeroed: that costs as much as to fill them */
    course->roots.preassigned =
        arena_take(m->arena, mem_size(count, sizeof *course->roots.preassigned));
    course->roots.families = arena_take(m->arena, mem_size(count, sizeof *course->roots.families));
}

/* So much of what may be done in this piece. */
static void piece_use(uint32_t *left, uint32_t leaves)
{
    *left -= leaves < *left ? leaves : *left;
}

static void paths_some(struct mapping_course *course, uint32_t *left)
{
    const struct mapping *m = course->mapper.m;
    const struct hived *h = m->h;
    while (course->at<m->leaf_count && * left> 0) {
        uint32_t count = 1;
        if (h->cells[m->virtual[course->at]].bound == NONE)
            path_add(&course->mapper, &course->roots, whole_find(m, course->at, &count));
        course->at += count;
        piece_use(left, count);
    }
    if (course->at < m->leaf_count)
        return;
    course->stage = course->mapper.count ? MAPPING_ROOTS : MAPPING_LEAVES;
    course->at = 0;
    if (course->mapper.count)
        free_trial_begin(m->h);
}

static bool root_map(struct mapping_course *course, uint32_t at)
{
    struct mapper *mapper = &course->mapper;
    const struct roots *roots = &course->roots;
    if (at < roots->preassigned_count)
        return preassigned_map(mapper, roots->preassigned[at], at + 1 == roots->preassigned_count);
    const struct family *family = &roots->families[at - roots->preassigned_count];
    return family_map(mapper, family->first, family->count, mapper->h->cells[family->parent].bound);
}

/* No more than there are below the cells of the root. */
static uint32_t root_leaves(const struct mapping_course *course, uint32_t at)
{
    const struct hived *h = course->mapper.h;
    const struct roots *roots = &course->roots;
    const uint32_t vertex = at < roots->preassigned_count
                                ? roots->preassigned[at]
                                : roots->families[at - roots->preassigned_count].first;
    const uint32_t count =
        at < roots->preassigned_count ? 1 : roots->families[at - roots->preassigned_count].count;
    const struct cell *cell = &h->cells[course->mapper.vertices[vertex].cell];
    return count * h->chains[cell->chain].levels[cell->level].leaf_count;
}

static void roots_some(struct mapping_course *course, uint32_t *left)
{
    enum { LEAVES_OF_ROOT = 8 }; /* to take a cell from its free list costs as much */
    const struct roots *roots = &course->roots;
    const uint32_t count = roots->preassigned_count + roots->family_count;
    while (course->at<count && * left> 0 && !course->has_failed) {
        const uint32_t at = course->at++;
        course->has_failed = !root_map(course, at);
        piece_use(left, LEAVES_OF_ROOT + root_leaves(course, at));
    }
    if (course->at < count && !course->has_failed)
        return;
    course->stage = MAPPING_UNDO;
    course->at = 0;
}

static void undo_some(struct mapping_course *course, uint32_t *left)
{
    enum { LEAVES_OF_ENTRY = 4 };
    struct hived *h = course->mapper.h;
    const uint32_t most = *left / LEAVES_OF_ENTRY + 1;
    if (h->is_trial)
        piece_use(left, LEAVES_OF_ENTRY * free_trial_undo_some(h, most));
    if (!h->is_trial)
        course->stage = MAPPING_LEAVES;
}

static void leaves_some(struct mapping_course *course, uint32_t *left)
{
    const struct mapping *m = course->mapper.m;
    const struct hived *h = m->h;
    const uint32_t first = course->at, rest = m->leaf_count - first,
                   end = first + (rest < *left ? rest : *left);
    for (uint32_t i = first; i < end; i++) {
        const struct cell *v = &h->cells[m->virtual[i]];
        m->physical[i] = v->bound != NONE ? v->bound : h->scratch[m->virtual[i]];
    }
    course->at = end;
    piece_use(left, end - first);
}

static enum mapping_outcome course_go_on(struct mapping *m, struct mapping_course *course,
                                         uint32_t *left)
{
    course_begin(m, course);
    while (*left > 0) {
        switch (course->stage) {
        case MAPPING_PATHS:
            paths_some(course, left);
            break;
        case MAPPING_ROOTS:
            roots_some(course, left);
            break;
        case MAPPING_UNDO:
            undo_some(course, left);
            break;
        case MAPPING_LEAVES:
            if (course->has_failed)
                return MAPPING_FAILS;
            leaves_some(course, left);
            if (course->at == m->leaf_count)
                return MAPPING_DONE;
            break;
        }
    }
    return MAPPING_CUT;
}

enum mapping_outcome mapping_some(struct mapping *m, uint32_t *leaves)
{
    if (!m->course)
        m->course = ARENA_NEW(m->arena, struct mapping_course);
    return course_go_on(m, m->course, leaves);
}

enum { LEAVES_ON_STACK = 8, VERTICES_ON_STACK = 32 };

bool mapping_run(struct mapping *m)
{
    struct vertex vertices[VERTICES_ON_STACK];
    uint32_t preassigned[LEAVES_ON_STACK];
    struct family families[LEAVES_ON_STACK];
    struct mapping_course course = {.mapper = {.vertices = vertices, .room = VERTICES_ON_STACK}};
    uint32_t left = UINT32_MAX;
    if (m->leaf_count <= LEAVES_ON_STACK)
        course.roots = (struct roots){.preassigned = preassigned, .families = families};
    const enum mapping_outcome outcome = course_go_on(m, &course, &left);
    assert(outcome != MAPPING_CUT);
    return outcome == MAPPING_DONE;
}
