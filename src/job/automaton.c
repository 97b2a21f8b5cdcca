#include "job/automaton.h"
#include "base/memory.h"
#include <assert.h>

enum { END_OF_TEXT = 256 };
#define NO_STATE    UINT32_MAX
#define MATCH_STATE (UINT32_MAX - 1)
enum before { BEFORE_START, BEFORE_NEWLINE, BEFORE_WORD, BEFORE_OTHER };

/* A deterministic state: nodes reached by the last byte, and what that byte was. */
struct state {
    uint32_t first, count; /* in `members` */
    uint8_t before;
};

struct search {
    const struct automaton *automaton;
    struct state *states;
    uint32_t state_count;
    uint32_t *next; /* state × class → state, NO_STATE: not made yet */
    struct {
        uint32_t *items;
        size_t count, room;
    } members;
    uint32_t *table; /* hash of states */
    uint32_t *stack, *list;
    uint32_t *mark; /* node → round in which it was visited */
    uint32_t round;
    uint64_t work;
};

enum { TABLE_SIZE = 8192 };
_Static_assert(TABLE_SIZE > 2 * AUTOMATON_STATES_MAX, "the table must stay sparse");

static void search_init(struct search *search, const struct automaton *automaton)
{
    const size_t nodes = automaton->nodes.count;
    *search = (struct search){
        .automaton = automaton,
        .states = mem_alloc(mem_size(AUTOMATON_STATES_MAX, sizeof *search->states)),
        .next = mem_alloc(
            mem_size(AUTOMATON_STATES_MAX, automaton->class_count * sizeof *search->next)),
        .table = mem_alloc(mem_size(TABLE_SIZE, sizeof *search->table)),
        .stack = mem_alloc(mem_size(nodes * 2 + 2, sizeof *search->stack)),
        .list = mem_alloc(mem_size(nodes + 1, sizeof *search->list)),
        .mark = mem_zero(nodes, sizeof *search->mark),
    };
    memset(search->table, 0xff, TABLE_SIZE * sizeof *search->table);
}

static void search_release(struct search *search)
{
    mem_free(search->states);
    mem_free(search->next);
    mem_free(search->table);
    mem_free(search->stack);
    mem_free(search->list);
    mem_free(search->mark);
    ARRAY_FREE(&search->members);
}

static void search_flush(struct search *search)
{
    search->state_count = 0;
    search->members.count = 0;
    memset(search->table, 0xff, TABLE_SIZE * sizeof *search->table);
}

static int order(const void *a_pointer, const void *b_pointer)
{
    const uint32_t a = *(const uint32_t *)a_pointer, b = *(const uint32_t *)b_pointer;
    return (a > b) - (a < b);
}

/* The state of these nodes (sorted); NO_STATE when there is no room for another. */
static uint32_t state_find(struct search *search, const uint32_t *nodes, uint32_t count,
                           uint8_t before)
{
    const struct text key = {(const char *)nodes, count * sizeof *nodes};
    size_t slot = text_hash(key, before) % TABLE_SIZE;
    for (; search->table[slot] != NO_STATE; slot = (slot + 1) % TABLE_SIZE) {
        const struct state *state = &search->states[search->table[slot]];
        if (state->count == count && state->before == before &&
            (count == 0 ||
             memcmp(&search->members.items[state->first], nodes, count * sizeof *nodes) == 0))
            return search->table[slot];
    }
    if (search->state_count == AUTOMATON_STATES_MAX)
        return NO_STATE;
    const uint32_t index = search->state_count++;
    search->table[slot] = index;
    search->states[index] = (struct state){(uint32_t)search->members.count, count, before};
    ARRAY_RESERVE(&search->members, search->members.count + count);
    if (count > 0)
        memcpy(&search->members.items[search->members.count], nodes, count * sizeof *nodes);
    search->members.count += count;
    const size_t classes = search->automaton->class_count;
    for (size_t c = 0; c < classes; c++)
        search->next[index * classes + c] = NO_STATE;
    return index;
}

static uint8_t empties_between(uint8_t before, int next)
{
    uint8_t empty = 0;
    if (before == BEFORE_START)
        empty |= EMPTY_BEGIN_TEXT | EMPTY_BEGIN_LINE;
    if (before == BEFORE_NEWLINE)
        empty |= EMPTY_BEGIN_LINE;
    if (next == END_OF_TEXT)
        empty |= EMPTY_END_TEXT | EMPTY_END_LINE;
    if (next == '\n')
        empty |= EMPTY_END_LINE;
    const bool is_edge = (before == BEFORE_WORD) != is_word_byte(next);
    return empty | (is_edge ? EMPTY_WORD_EDGE : EMPTY_NO_WORD_EDGE);
}

static uint8_t before_of(int byte)
{
    return byte == '\n' ? BEFORE_NEWLINE : is_word_byte(byte) ? BEFORE_WORD : BEFORE_OTHER;
}

static bool has_byte(const struct byte_set *set, int byte)
{
    return set->bits[byte >> 6] >> (byte & 63) & 1;
}

static void push(struct search *search, uint32_t *depth, uint32_t node)
{
    if (search->mark[node] == search->round)
        return;
    search->mark[node] = search->round;
    search->stack[(*depth)++] = node;
}

/* Everything reachable without a byte, then over `byte`: into `list`. True: a match ends here. */
static bool expand(struct search *search, const struct state *state, int byte, uint32_t *count)
{
    const struct automaton *automaton = search->automaton;
    const bool is_inside = automaton->is_utf && is_continuation_byte(byte);
    const uint8_t empties = is_inside ? 0 : empties_between(state->before, byte);
    uint32_t depth = 0;
    search->round++;
    if (!is_inside)
        push(search, &depth, automaton->start); /* a match may begin anywhere */
    assert(state->count == 0 || search->members.items);
    for (uint32_t i = 0; i < state->count; i++)
        push(search, &depth, search->members.items[state->first + i]);
    *count = 0;
    while (depth > 0) {
        const struct node *node = &automaton->nodes.items[search->stack[--depth]];
        search->work++;
        switch ((enum node_kind)node->kind) {
        case NODE_MATCH:
            return true;
        case NODE_SPLIT:
            push(search, &depth, node->out2);
            push(search, &depth, node->out);
            break;
        case NODE_NOP:
            push(search, &depth, node->out);
            break;
        case NODE_EMPTY:
            if ((node->empty & empties) == node->empty)
                push(search, &depth, node->out);
            break;
        case NODE_BYTES:
            if (byte != END_OF_TEXT && has_byte(&automaton->sets.items[node->set], byte))
                search->list[(*count)++] = node->out;
            break;
        }
    }
    return false;
}

static uint32_t unique(uint32_t *list, uint32_t count)
{
    qsort(list, count, sizeof *list, order);
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++)
        if (used == 0 || list[used - 1] != list[i])
            list[used++] = list[i];
    return used;
}

/* Make the transition of `state` over `byte`. */
static uint32_t step(struct search *search, uint32_t state, int byte)
{
    uint32_t count;
    if (expand(search, &search->states[state], byte, &count))
        return MATCH_STATE;
    if (byte == END_OF_TEXT)
        return NO_STATE;
    count = unique(search->list, count);
    const uint8_t before = before_of(byte);
    const size_t classes = search->automaton->class_count;
    uint32_t next = state_find(search, search->list, count, before);
    if (next == NO_STATE) { /* forget all and go on from here */
        search_flush(search);
        return state_find(search, search->list, count, before);
    }
    search->next[state * classes + search->automaton->classes[byte]] = next;
    return next;
}

enum automaton_result automaton_search(const struct automaton *automaton, struct text text,
                                       size_t *end)
{
    struct search search;
    search_init(&search, automaton);
    const size_t classes = automaton->class_count;
    enum automaton_result result = AUTOMATON_NONE;
    uint32_t state = state_find(&search, NULL, 0, BEFORE_START);
    size_t at = 0;
    for (; at < text.length; at++) {
        const uint8_t byte = (uint8_t)text.at[at];
        uint32_t next = search.next[state * classes + automaton->classes[byte]];
        if (next == NO_STATE)
            next = step(&search, state, byte);
        if (next == MATCH_STATE || search.work > AUTOMATON_WORK_MAX) {
            result = next == MATCH_STATE ? AUTOMATON_FOUND : AUTOMATON_GIVEN_UP;
            break;
        }
        state = next;
    }
    if (at == text.length && step(&search, state, END_OF_TEXT) == MATCH_STATE)
        result = AUTOMATON_FOUND;
    *end = at;
    search_release(&search);
    return result;
}
