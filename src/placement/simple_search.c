#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "placement/simple_parts.h"

static int compare_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

int simple_compare_least(const struct simple_view *a, const struct simple_view *b)
{
    int order = compare_number(a->gpu_count, b->gpu_count);
    if (!order)
        order = compare_number(a->cpu, b->cpu);
    return order ? order : compare_number(a->memory_mib, b->memory_mib);
}

int simple_compare_most(const struct simple_view *a, const struct simple_view *b)
{
    return simple_compare_least(b, a);
}

struct simple_view simple_node_free(const struct simple_node *node)
{
    const uint64_t gpus = gpus_free(node);
    return (struct simple_view){(uint32_t)saturated(node->facts.cpu, node->cpu_used),
                                bit_count(gpus),
                                saturated(node->facts.memory_mib, node->memory_used), gpus};
}

struct simple_view simple_view_less(struct simple_view view, const struct simple_share *kept)
{
    view.cpu = (uint32_t)saturated(view.cpu, kept->cpu);
    view.memory_mib = saturated(view.memory_mib, kept->memory_mib);
    view.gpus &= ~kept->gpus;
    view.gpu_count = bit_count(view.gpus);
    return view;
}

void simple_views_reserve(struct simple *simple)
{
    const size_t room = simple->nodes.room;
    if (simple->view_room >= room)
        return;
    simple->whole = mem_realloc(simple->whole, mem_size(room, sizeof *simple->whole));
    simple->free = mem_realloc(simple->free, mem_size(room, sizeof *simple->free));
    simple->offered = mem_realloc(simple->offered, mem_size(room, sizeof *simple->offered));
    simple->kept = mem_realloc(simple->kept, mem_size(room, sizeof *simple->kept));
    simple->most = mem_realloc(simple->most, mem_size(room, sizeof *simple->most));
    simple->views = mem_realloc(simple->views, mem_size(room, sizeof *simple->views));
    simple->traits = mem_realloc(simple->traits, mem_size(room, sizeof *simple->traits));
    simple->kind_of = mem_realloc(simple->kind_of, mem_size(room, sizeof *simple->kind_of));
    simple->roomy = mem_realloc(simple->roomy, mem_size(room, sizeof *simple->roomy));
    simple->choice = mem_realloc(simple->choice, mem_size(room, sizeof *simple->choice));
    mem_free(simple->extra);
    simple->extra = mem_zero(room, sizeof *simple->extra);
    simple->view_room = room;
}

void simple_views_fill(struct simple *simple, const struct simple_view *from)
{
    const size_t count = simple->nodes.count;
    if (count > 0)
        memcpy(simple->views, from, count * sizeof *simple->views);
}

bool simple_view_take(const struct simple *simple, const struct simple_slot *slot)
{
    assert(slot->node < simple->nodes.count);
    struct simple_view *view = &simple->views[slot->node];
    bool fits = view->cpu >= slot->cpu && view->memory_mib >= slot->memory_mib &&
                (view->gpus & slot->gpus) == slot->gpus;
    view->cpu = (uint32_t)saturated(view->cpu, slot->cpu);
    view->memory_mib = saturated(view->memory_mib, slot->memory_mib);
    view->gpus &= ~slot->gpus;
    view->gpu_count = bit_count(view->gpus);
    return fits;
}

bool simple_type_fits(const char *wanted, const char *type)
{
    if (!*wanted)
        return true;
    struct text rest = text_of(wanted);
    while (rest.at)
        if (text_is(text_trim(text_cut(&rest, ',')), type))
            return true;
    return false;
}

static bool is_avoided(const struct placement_request *request, size_t node)
{
    assert(request->avoid_count == 0 || request->avoid);
    for (size_t i = 0; i < request->avoid_count; i++)
        if (request->avoid[i].v == node)
            return true;
    return false;
}

static bool kind_is_wanted(const struct simple_kind *kind, const struct placement_request *request,
                           const struct placement_member *member)
{
    return simple_type_fits(member->sku_type, kind->type) &&
           (!request->engine || strcmp(kind->engine, request->engine) == 0);
}

bool simple_node_suits(const struct simple_search *search, size_t at,
                       const struct placement_member *member)
{
    const struct simple *simple = search->simple;
    const struct simple_kind *kind = &simple->kinds.items[simple->kind_of[at]];
    return kind_is_wanted(kind, search->request, member) &&
           !(search->avoids && is_avoided(search->request, at));
}

bool simple_kind_suits(const struct simple_kind *kind, const struct placement_request *request)
{
    bool suits = false;
    for (size_t i = 0; i < request->member_count && !suits; i++)
        suits = kind_is_wanted(kind, request, &request->members[i]);
    return suits;
}

/* How often `each` is there, at most `most`: mostly that is seen without a division, the dearest
 * operation of a search. */
static uint32_t times(uint64_t have, uint64_t each, uint32_t most)
{
    uint64_t all;
    if (!__builtin_mul_overflow(each, (uint64_t)most, &all) && all <= have)
        return most;
    return have < each ? 0 : (uint32_t)(have / each);
}

/* GPUs first: of these there are few. */
uint32_t simple_view_room(const struct simple_view *view, const struct demand *demand,
                          uint32_t limit)
{
    assert(limit > 0);
    uint32_t room = times(view->gpu_count, demand->gpu, limit);
    if (room)
        room = times(view->cpu, demand->cpu, room);
    return room ? times(view->memory_mib, demand->memory_mib, room) : 0;
}

/* The devices of the smallest neighbourhood that is large enough. */
static uint64_t gpus_of_neighbourhood(const uint16_t *places, uint32_t count, uint64_t free_gpus,
                                      uint32_t need)
{
    assert(need > 0 && need <= bit_count(free_gpus));
    uint64_t best = 0;
    for (uint32_t i = 0; places && i < count; i++) {
        uint64_t same = 0;
        for (uint32_t j = 0; j < count; j++)
            if (places[j] == places[i] && (free_gpus >> j & 1))
                same |= UINT64_C(1) << j;
        if (bit_count(same) >= need && (!best || bit_count(same) < bit_count(best)))
            best = same;
    }
    return best;
}

static uint64_t gpus_choose(const struct simple_node *node, uint64_t free_gpus, uint32_t need)
{
    assert(need <= bit_count(free_gpus));
    uint64_t from =
        gpus_of_neighbourhood(node->facts.gpu_switch, node->facts.gpu_count, free_gpus, need);
    if (!from)
        from = gpus_of_neighbourhood(node->facts.gpu_numa, node->facts.gpu_count, free_gpus, need);
    if (!from)
        from = free_gpus;
    uint64_t chosen = 0;
    for (uint32_t taken = 0; taken < need; taken++) {
        uint64_t lowest = from & -from;
        chosen |= lowest;
        from &= ~lowest;
    }
    return chosen;
}

static void slot_take(const struct simple_search *search, size_t at, const struct demand *demand,
                      struct simple_slot *slot)
{
    const struct simple *simple = search->simple;
    *slot = (struct simple_slot){
        .node = (uint32_t)at,
        .cpu = demand->cpu,
        .memory_mib = demand->memory_mib,
        .gpus = demand->gpu
                    ? gpus_choose(&simple->nodes.items[at], simple->views[at].gpus, demand->gpu)
                    : 0,
    };
    bool fits = simple_view_take(simple, slot);
    assert(fits);
    (void)fits;
}

/* --- the nodes that a gang is placed on --- */

void simple_work_take(uint64_t *left, uint64_t work)
{
    *left = *left > work ? *left - work : 0;
}

/* What each task of the gang needs at least. */
static struct demand gang_least(const struct placement_request *request)
{
    struct demand least = {UINT32_MAX, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        least.cpu = member->cpu < least.cpu ? member->cpu : least.cpu;
        least.gpu = member->gpu < least.gpu ? member->gpu : least.gpu;
        least.memory_mib =
            member->memory_mib < least.memory_mib ? member->memory_mib : least.memory_mib;
    }
    return least;
}

/* For a gang of many kinds of tasks: each kind passes over these nodes only, those with the most
 * GPUs first, as far as they have enough. What is free becomes less while it is placed, so none is
 * missing. */
static void gang_list(const struct simple_search *search, struct simple_gang *gang)
{
    const struct simple *simple = search->simple;
    const struct demand least = gang_least(search->request);
    uint32_t next[PLACEMENT_GPUS_MAX + 2] = {0}; /* by GPUs: the place of the next one */
    gang->is_listed = true;
    for (size_t i = 0; i < simple->nodes.count; i++)
        if (simple_view_has(&simple->views[i], &least))
            next[simple->views[i].gpu_count]++;
    for (uint32_t gpus = PLACEMENT_GPUS_MAX + 1; gpus-- > 0;) {
        gang->roomy[gpus] = next[gpus] + (gpus < PLACEMENT_GPUS_MAX ? gang->roomy[gpus + 1] : 0);
        next[gpus] = gang->roomy[gpus] - next[gpus];
    }
    for (size_t i = 0; i < simple->nodes.count; i++)
        if (simple_view_has(&simple->views[i], &least))
            simple->roomy[next[simple->views[i].gpu_count]++] = (uint32_t)i;
}

static size_t nodes_passed(const struct simple_search *search, const struct simple_gang *gang,
                           const struct placement_member *member)
{
    assert(member->gpu <= PLACEMENT_GPUS_MAX);
    return gang->is_listed ? gang->roomy[member->gpu] : search->simple->nodes.count;
}

static size_t node_passed(const struct simple_search *search, const struct simple_gang *gang,
                          size_t at)
{
    return gang->is_listed ? search->simple->roomy[at] : at;
}

/* To read the type or engine of each costs more. */
static uint64_t work_of_passing(const struct simple_search *search, const struct simple_gang *gang,
                                const struct placement_member *member)
{
    enum { WORK_OF_WORDS = 4 };
    const bool has_words = *member->sku_type || search->avoids || search->request->engine;
    return nodes_passed(search, gang, member) * (has_words ? WORK_OF_WORDS : 1) + 1;
}

/* Without an order by id. */
static bool is_better(const struct simple *simple, uint32_t a, uint32_t b)
{
    const int order = simple->compare ? simple->compare(&simple->views[a], &simple->views[b]) : 0;
    return order ? order < 0 : a < b;
}

/* Best node for `need` more tasks at once; SIZE_MAX: none. */
static size_t node_choose(const struct simple_search *search, const struct simple_gang *gang,
                          const struct placement_member *member, const struct demand *demand,
                          uint32_t need)
{
    assert(need > 0);
    const struct simple *simple = search->simple;
    const size_t count = nodes_passed(search, gang, member);
    size_t best = SIZE_MAX;
    for (size_t k = 0; k < count; k++) {
        const size_t i = node_passed(search, gang, k);
        if (!simple_view_has(&simple->views[i], demand) ||
            (need > 1 && simple_view_room(&simple->views[i], demand, need) < need) ||
            !simple_node_may(search, i, member))
            continue;
        if (!simple->compare && !gang->is_listed)
            return i;
        if (best == SIZE_MAX || is_better(simple, (uint32_t)i, (uint32_t)best))
            best = i;
    }
    return best;
}

/* --- many equal tasks, each on its own best node --- */

/* Nodes that have room for a task: a heap, the best first. */
struct choice {
    const struct simple_search *search;
    uint32_t *nodes;
    size_t count;
};

static void choice_down(struct choice *choice, size_t at)
{
    const uint32_t node = choice->nodes[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= choice->count)
            break;
        if (child + 1 < choice->count &&
            is_better(choice->search->simple, choice->nodes[child + 1], choice->nodes[child]))
            child++;
        if (!is_better(choice->search->simple, choice->nodes[child], node))
            break;
        choice->nodes[at] = choice->nodes[child];
        at = child;
    }
    choice->nodes[at] = node;
}

static struct choice choice_of(const struct simple_search *search, const struct simple_gang *gang,
                               const struct placement_member *member, const struct demand *demand)
{
    struct simple *simple = search->simple;
    struct choice choice = {search, simple->choice, 0};
    const size_t count = nodes_passed(search, gang, member);
    for (size_t k = 0; k < count; k++) {
        const size_t i = node_passed(search, gang, k);
        if (simple_view_has(&simple->views[i], demand) && simple_node_may(search, i, member))
            choice.nodes[choice.count++] = (uint32_t)i;
    }
    for (size_t at = choice.count / 2; at-- > 0;)
        choice_down(&choice, at);
    return choice;
}

/* More of its tasks, until nothing is left. */
static enum simple_outcome member_spread(const struct simple_search *search,
                                         const struct placement_member *member,
                                         struct simple_gang *gang, struct simple_slot *slots,
                                         uint64_t *left)
{
    enum { WORK_OF_ORDER = 2 };
    const struct simple *simple = search->simple;
    const struct demand demand = {member->cpu, member->gpu, member->memory_mib};
    struct choice choice = {search, simple->choice, gang->choice_count};
    if (!gang->is_chosen) {
        choice = choice_of(search, gang, member, &demand);
        simple_work_take(left,
                         work_of_passing(search, gang, member) + choice.count * WORK_OF_ORDER);
    }
    gang->is_chosen = true;
    /* the fullest that has room, and the first one, stay so when they have one task more */
    const bool is_kept = !simple->compare || simple->compare == simple_compare_least;
    for (; gang->task<member->count && * left> 0; gang->task++) {
        if (!choice.count)
            return SIMPLE_FAILS;
        const uint32_t node = choice.nodes[0];
        simple_work_take(left, WORK_OF_TASK);
        slot_take(search, node, &demand, &slots[gang->task]);
        const bool is_full = !simple_view_has(&simple->views[node], &demand);
        if (is_full)
            choice.nodes[0] = choice.nodes[--choice.count];
        if (choice.count && (is_full || !is_kept))
            choice_down(&choice, 0);
    }
    gang->choice_count = choice.count;
    return gang->task < member->count ? SIMPLE_CUT : SIMPLE_PLACED;
}

/* On that node, or (SIZE_MAX) on any. */
static enum simple_outcome member_place(const struct simple_search *search,
                                        const struct placement_member *member,
                                        struct simple_gang *gang, struct simple_slot *slots,
                                        uint64_t *left)
{
    size_t node = gang->node;
    assert(node < search->simple->nodes.count || node == SIZE_MAX);
    const struct demand demand = {member->cpu, member->gpu, member->memory_mib};
    const bool is_together = *member->within_one_cell || node != SIZE_MAX;
    if (!is_together && member->count > 1)
        return member_spread(search, member, gang, slots, left);
    if (member->count && node == SIZE_MAX) {
        node = node_choose(search, gang, member, &demand, member->count);
        simple_work_take(left, work_of_passing(search, gang, member));
    }
    for (uint32_t i = 0; i < member->count; i++) {
        if (node == SIZE_MAX || !simple_view_has(&search->simple->views[node], &demand))
            return SIMPLE_FAILS;
        slot_take(search, node, &demand, &slots[i]);
    }
    simple_work_take(left, (uint64_t)member->count * WORK_OF_TASK);
    return SIMPLE_PLACED;
}

int simple_member_compare(const struct placement_member *a, const struct placement_member *b)
{
    int order = compare_number(b->gpu, a->gpu);
    if (!order)
        order = compare_number(b->cpu, a->cpu);
    return order ? order : compare_number(b->memory_mib, a->memory_mib);
}

bool simple_gang_demand(const struct placement_request *request, struct demand *demand)
{
    assert(request->member_count > 0);
    uint64_t cpu = 0, gpu = 0;
    *demand = (struct demand){0};
    for (size_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        cpu += (uint64_t)member->count * member->cpu;
        gpu += (uint64_t)member->count * member->gpu;
        demand->memory_mib += member->count * member->memory_mib;
    }
    demand->cpu = (uint32_t)cpu;
    demand->gpu = (uint32_t)gpu;
    return cpu <= UINT32_MAX && gpu <= PLACEMENT_GPUS_MAX;
}

/* The best node that holds the whole gang, as a cell is a node here. */
static bool gang_confine(const struct simple_search *search, size_t *node)
{
    const struct simple *simple = search->simple;
    struct demand demand;
    *node = SIZE_MAX;
    if (!simple_gang_demand(search->request, &demand))
        return false;
    for (size_t i = 0; i < simple->nodes.count; i++) {
        bool may = simple_view_has(&simple->views[i], &demand);
        for (size_t k = 0; k < search->request->member_count && may; k++)
            may = simple_node_may(search, i, &search->request->members[k]);
        if (may &&
            (*node == SIZE_MAX ||
             (simple->compare && simple->compare(&simple->views[i], &simple->views[*node]) < 0)))
            *node = i;
    }
    return *node != SIZE_MAX;
}

/* Large tasks first: they have the fewest places. Slots stay in the order of the request. */
void simple_gang_order(const struct placement_request *request, struct simple_gang *gang)
{
    uint32_t next = 0;
    assert(request->member_count <= GANG_MEMBERS_MAX);
    for (size_t i = 0; i < request->member_count; i++) {
        const struct placement_member *member = &request->members[i];
        size_t low = 0, high = i; /* behind all that are not smaller */
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (simple_member_compare(member, &request->members[gang->order[middle]]) < 0)
                high = middle;
            else
                low = middle + 1;
        }
        memmove(&gang->order[low + 1], &gang->order[low], (i - low) * sizeof *gang->order);
        gang->order[low] = (uint16_t)i;
        gang->first[i] = next;
        next += member->count;
    }
}

bool simple_gang_begin(const struct simple_search *search, struct simple_gang *gang, uint64_t *left)
{
    const struct placement_request *request = search->request;
    const char *within = request->within_one_cell;
    const bool is_confined = within && *within;
    gang->member = 0;
    gang->task = 0;
    gang->is_chosen = false;
    gang->is_listed = false;
    gang->node = SIZE_MAX;
    simple_work_take(left, search->simple->nodes.count);
    if (!is_confined && request->member_count > 1)
        gang_list(search, gang);
    return !is_confined || gang_confine(search, &gang->node);
}

enum simple_outcome simple_gang_go_on(const struct simple_search *search, struct simple_gang *gang,
                                      uint64_t *left)
{
    const struct placement_request *request = search->request;
    for (; gang->member < request->member_count; gang->member++) {
        if (!*left)
            return SIMPLE_CUT;
        const uint16_t at = gang->order[gang->member];
        const enum simple_outcome outcome = member_place(search, &request->members[at], gang,
                                                         search->slots + gang->first[at], left);
        if (outcome != SIMPLE_PLACED)
            return outcome;
        gang->task = 0;
        gang->is_chosen = false;
    }
    return SIMPLE_PLACED;
}

bool simple_gang_place(const struct simple_search *search)
{
    struct simple_gang gang;
    uint64_t left = UINT64_MAX;
    simple_gang_order(search->request, &gang);
    return simple_gang_begin(search, &gang, &left) &&
           simple_gang_go_on(search, &gang, &left) == SIMPLE_PLACED;
}

/* Tasks of one demand fit if there is room for as many, wherever they go: mostly a few nodes tell.
 */
bool simple_equal_fits(const struct simple_search *search, const struct simple_view *views)
{
    const struct simple *simple = search->simple;
    const struct placement_member *member = &search->request->members[0];
    assert(!simple_gang_is_unequal(search->request));
    const struct demand demand = {member->cpu, member->gpu, member->memory_mib};
    uint32_t left = member->count;
    for (size_t i = 0; i < simple->nodes.count && left; i++) {
        if (!simple_view_has(&views[i], &demand))
            continue;
        uint32_t room = simple_view_room(&views[i], &demand, left);
        if (*member->within_one_cell && room < left)
            room = 0;
        if (room && simple_node_may(search, i, member))
            left -= room;
    }
    return !left;
}

bool simple_gang_is_unequal(const struct placement_request *request)
{
    return request->member_count > 1 || (request->within_one_cell && *request->within_one_cell);
}

struct simple_search simple_search_empty(const struct simple_search *search)
{
    struct simple_search empty = *search;
    empty.avoids = false;
    empty.ignores_health = true;
    return empty;
}

bool simple_gang_is_possible(const struct simple_search *search)
{
    const struct simple_search empty = simple_search_empty(search);
    if (!simple_gang_is_unequal(search->request))
        return simple_equal_fits(&empty, search->simple->whole);
    simple_views_fill(search->simple, search->simple->whole);
    return simple_gang_place(&empty);
}
