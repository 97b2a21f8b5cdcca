#include "job/literals.h"
#include "base/memory.h"
#include <assert.h>

void literals_init(struct literals *literals)
{
    *literals = (struct literals){.class_count = 1}; /* class 0: bytes of no literal */
}

void literals_release(struct literals *literals)
{
    mem_free(literals->next);
    mem_free(literals->found);
    mem_free(literals->shorter);
    *literals = (struct literals){0};
}

static uint8_t fold(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + ('a' - 'A')) : byte;
}

void literals_alphabet(struct literals *literals, struct text literal)
{
    assert(literals->state_count == 0);
    for (size_t i = 0; i < literal.length; i++) {
        const uint8_t byte = (uint8_t)literal.at[i];
        assert(byte == fold(byte) && byte < 0x80);
        if (literals->classes[byte] == 0)
            literals->classes[byte] = (uint8_t)literals->class_count++;
    }
}

static size_t state_add(struct literals *literals)
{
    if (literals->state_count == literals->state_room) {
        literals->state_room = literals->state_room ? literals->state_room * 2 : 256;
        const size_t room = literals->state_room;
        const size_t row = mem_size(literals->class_count, sizeof *literals->next);
        literals->next = mem_realloc(literals->next, mem_size(room, row));
        literals->found = mem_realloc(literals->found, mem_size(room, sizeof *literals->found));
        literals->shorter =
            mem_realloc(literals->shorter, mem_size(room, sizeof *literals->shorter));
    }
    const size_t state = literals->state_count++;
    memset(&literals->next[state * literals->class_count], 0,
           literals->class_count * sizeof *literals->next);
    literals->found[state] = LITERAL_NONE;
    literals->shorter[state] = 0;
    return state;
}

uint32_t literals_add(struct literals *literals, struct text literal)
{
    assert(literal.length > 0 && !literals->is_built);
    if (literals->state_count == 0)
        state_add(literals);
    if (literals->state_count + literal.length > LITERALS_STATES_MAX)
        return LITERAL_NONE;
    size_t state = 0;
    for (size_t i = 0; i < literal.length; i++) {
        const uint8_t class = literals->classes[(uint8_t)literal.at[i]];
        assert(class != 0);
        size_t next = literals->next[state * literals->class_count + class];
        if (next == 0) {
            next = state_add(literals);
            literals->next[state * literals->class_count + class] = (uint16_t)next;
        }
        state = next;
    }
    if (literals->found[state] == LITERAL_NONE)
        literals->found[state] = (uint32_t)literals->count++;
    return literals->found[state];
}

void literals_build(struct literals *literals)
{
    const size_t classes = literals->class_count;
    for (size_t byte = 'A'; byte <= 'Z'; byte++)
        literals->classes[byte] = literals->classes[fold((uint8_t)byte)];
    literals->is_built = true;
    if (literals->state_count == 0)
        return;
    uint16_t *fail = mem_zero(literals->state_count, sizeof *fail);
    uint16_t *queue = mem_zero(literals->state_count, sizeof *queue);
    size_t head = 0, tail = 0;
    for (size_t c = 0; c < classes; c++)
        if (literals->next[c] != 0)
            queue[tail++] = literals->next[c];
    while (head < tail) {
        const size_t state = queue[head++];
        const size_t suffix = fail[state];
        literals->shorter[state] =
            literals->found[suffix] != LITERAL_NONE ? (uint16_t)suffix : literals->shorter[suffix];
        for (size_t c = 0; c < classes; c++) {
            uint16_t *next = &literals->next[state * classes + c];
            const uint16_t other = literals->next[suffix * classes + c];
            if (*next == 0) {
                *next = other;
                continue;
            }
            fail[*next] = other;
            queue[tail++] = *next;
        }
    }
    mem_free(fail);
    mem_free(queue);
}

void literals_scan(const struct literals *literals, struct text text, bool *present)
{
    assert(literals->is_built);
    if (literals->state_count == 0)
        return;
    const size_t classes = literals->class_count;
    size_t state = 0;
    for (size_t i = 0; i < text.length; i++) {
        state = literals->next[state * classes + literals->classes[(uint8_t)text.at[i]]];
        if (literals->found[state] == LITERAL_NONE && literals->shorter[state] == 0)
            continue;
        for (size_t s = state; s != 0; s = literals->shorter[s])
            if (literals->found[s] != LITERAL_NONE)
                present[literals->found[s]] = true;
    }
}
