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
/* The next creation waits, with all that it was given. Await: it has come. Release: it goes on;
 * into `source` comes what its first mount says by then. */
enum { LIAR_TEXT_SIZE = 200 };
void liar_hold(void);
void liar_await_held(void);
void liar_release(char source[LIAR_TEXT_SIZE]);

/* From now on kills are taken, and nothing ends of them. */
void liar_spare(void);
/* Of the last kill of it: the grace, and the reason in `reason`. */
uint32_t liar_grace_ms(struct attempt_id attempt, char reason[LIAR_TEXT_SIZE]);

/* From now on what its containers use does not change. */
void liar_still(void);

/* What the list says beside what there is; at most LIAR_LIST_MAX. */
enum { LIAR_LIST_MAX = 8 };
void liar_list(const struct attempt_id *attempts, size_t count);

/* What it tells of GPUs from now on; they stay the caller's. */
struct engine_gpu;
void liar_gpus(const struct engine_gpu *gpus, size_t count);

/* Of what it was told since liar_clear. */
unsigned liar_kills(struct attempt_id attempt);
unsigned liar_forgets(struct attempt_id attempt);
unsigned liar_creates(void);
/* How many creations came before the first kill of this one. */
unsigned liar_creates_before(struct attempt_id killed);

#endif
