/* automaton.h — does an RE2 expression occur in a text? In time linear in the text. Inside src/job
 * only.
 *
 * The expression (already checked, expression.h) becomes a non-deterministic automaton over bytes;
 * a search makes the deterministic states that the text leads to as it goes, keeps at most
 * AUTOMATON_STATES_MAX of them, and gives up after AUTOMATON_WORK_MAX steps of making them. So no
 * expression can take longer than the text's length and that constant.
 *
 * Only whether there is a match and where the first one to end ends: neither greed nor groups
 * matter. Immutable after automaton_init; any number of threads may search.
 */
#ifndef JOB_AUTOMATON_H
#define JOB_AUTOMATON_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AUTOMATON_NODES_MAX = 6000,
    AUTOMATON_STATES_MAX = 2000,
    AUTOMATON_WORK_MAX = 100000000, /* visits of nodes */
};

enum node_kind { NODE_NOP, NODE_SPLIT, NODE_BYTES, NODE_EMPTY, NODE_MATCH };

/* Conditions between two bytes. */
enum {
    EMPTY_BEGIN_TEXT = 1,
    EMPTY_END_TEXT = 2,
    EMPTY_BEGIN_LINE = 4,
    EMPTY_END_LINE = 8,
    EMPTY_WORD_EDGE = 16,
    EMPTY_NO_WORD_EDGE = 32,
};

struct byte_set {
    uint64_t bits[4];
};

struct node {
    uint8_t kind;
    uint8_t empty;      /* NODE_EMPTY: all of these must hold */
    uint16_t set;       /* NODE_BYTES: in `sets` */
    uint32_t out, out2; /* out2: NODE_SPLIT */
};

struct automaton {
    struct {
        struct node *items;
        size_t count, room;
    } nodes;
    struct {
        struct byte_set *items;
        size_t count, room;
    } sets;
    uint32_t start;
    bool is_utf;          /* nothing begins, and no condition holds, inside a character */
    uint8_t classes[256]; /* bytes that no set tells apart have one class */
    uint16_t class_count;
    uint8_t examples[256]; /* a byte of each class */
};

/* False when the expression needs what this cannot do (\p, too many nodes); then nothing is
 * owned. */
bool automaton_init(struct automaton *automaton, struct text source, bool is_utf);
void automaton_release(struct automaton *automaton);

enum automaton_result { AUTOMATON_NONE, AUTOMATON_FOUND, AUTOMATON_GIVEN_UP };
/* `end`: where the match that ends first ends. */
enum automaton_result automaton_search(const struct automaton *automaton, struct text text,
                                       size_t *end);

static inline bool is_word_byte(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool is_continuation_byte(int c)
{
    return c >= 0x80 && c < 0xc0;
}

#endif
