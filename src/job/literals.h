/* literals.h — which of many literals occur in a text: one pass, ASCII case folded. Inside src/job
 * only. An Aho-Corasick automaton over the bytes that the literals use. */
#ifndef JOB_LITERALS_H
#define JOB_LITERALS_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LITERALS_STATES_MAX = 60000 };
#define LITERAL_NONE UINT32_MAX

struct literals {
    uint16_t *next;    /* state × class → state */
    uint32_t *found;   /* state → literal that ends here, or NONE */
    uint16_t *shorter; /* state → the next state on its suffixes that ends a literal, 0 = none */
    size_t state_count, state_room, count;
    uint16_t class_count;
    uint8_t classes[256];
    bool is_built;
};

/* All literals are added, then the automaton is built once. Equal ones get one index; NONE when
 * the automaton is full. `literal` is in lower case. */
void literals_init(struct literals *literals);
void literals_release(struct literals *literals);
void literals_alphabet(struct literals *literals, struct text literal); /* first for all */
uint32_t literals_add(struct literals *literals, struct text literal);
void literals_build(struct literals *literals);

/* Sets present[i] for each literal that occurs; `present` has literals->count zeroed items. */
void literals_scan(const struct literals *literals, struct text text, bool *present);

#endif
