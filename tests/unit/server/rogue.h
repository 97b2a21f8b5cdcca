/* rogue.h — a second engine beside the fake one: it refuses, moves, lies, and is not there. The
 * linker puts it in the place of the configuration's engine of the name "rogue" (`--wrap`, see
 * meson.build); all others are the real ones. It shares no code with them. Any thread.
 *
 * One node, rogue0, of ROGUE_CPU processors and little memory. A container runs until it is killed,
 * also while the engine is closed. It cannot follow logs.
 */
#ifndef TEST_ROGUE_H
#define TEST_ROGUE_H
#include "model/ids.h"
#include <stdbool.h>
#include <stddef.h>

enum { ROGUE_CPU = 200, ROGUE_MIB = 100 };

void rogue_clear(void); /* it has nothing, and does what it is asked to */

void rogue_refuse(unsigned count); /* the next containers */
void rogue_move(unsigned count);   /* are started elsewhere */
void rogue_away(bool is_away);     /* it cannot be opened */

/* It holds a container of this number, which runs, whoever has created it. */
void rogue_hold(struct attempt_id attempt);

/* What it tells, true or not. */
void rogue_tell_node(const char *name);
void rogue_tell_exit(struct attempt_id attempt, int code);

/* Of what it was told since rogue_clear. */
unsigned rogue_creates(void), rogue_kills(void), rogue_forgets(void), rogue_opens(void);
bool rogue_has(struct attempt_id attempt);

#endif
