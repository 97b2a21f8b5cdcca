/* liar.h — an engine that does not do what it is asked, by script: the fake one behind it does what
 * is not told to fail. The linker puts it in (`--wrap`, see meson.build). Any thread. */
#ifndef TEST_LIAR_H
#define TEST_LIAR_H
#include "model/ids.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void liar_clear(void);

/* The next `count` creations are refused with this code; 0: taken, and nothing comes of them. */
void liar_refuse(unsigned count, int code);
/* Kills are taken, and nothing comes of them. */
void liar_deafen(void);
/* What the list says beside what there is; at most LIAR_LIST_MAX. */
enum { LIAR_LIST_MAX = 8 };
void liar_list(const struct attempt_id *attempts, size_t count);

/* Of what it was told since liar_clear. */
unsigned liar_kills(struct attempt_id attempt);
uint32_t liar_grace_ms(struct attempt_id attempt); /* of the last kill */
unsigned liar_forgets(struct attempt_id attempt);
unsigned liar_creates(void);
/* How many creations came before the first kill of this one. */
unsigned liar_creates_before(struct attempt_id killed);

#endif
