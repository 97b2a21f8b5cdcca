/* launch.h — the thread that speaks to the engine: it turns commands into containers.
 *
 * A command to create names an attempt; everything else (image, command, environment, places of the
 * peers, secrets) is read back from the store, where the commit before has put it. A failure to
 * create is an exit like any other and goes back to the core as a fact.
 */
#ifndef SERVER_LAUNCH_H
#define SERVER_LAUNCH_H
#include "core/output.h"
#include <stddef.h>
#include <stdint.h>

struct err;
struct launcher;
struct server;

/* Borrows the server's store and engine. start: ERR_UNAVAILABLE (no thread), or
 * store_reader_open's.
 */
struct launcher *launcher_new(struct server *server);
int launcher_start(struct launcher *launcher, struct err *err);
/* What an engine is told waits until it is open, and what it holds has been compared with the rows:
 * of what has waited, attempts of before the last epoch are not created. The core thread. */
void launcher_open(struct launcher *launcher, uint8_t engine);
/* Give it the output's commands, in order (WAKE is not for it). Never blocks. */
void launcher_take(struct launcher *launcher, const struct output *output);
/* A container of which nothing is known, or whose exit is on disk. */
void launcher_kill(struct launcher *launcher, uint8_t engine, struct attempt_id attempt);
void launcher_forget(struct launcher *launcher, uint8_t engine, struct attempt_id attempt);
/* What it was given is done; then it ends. */
void launcher_stop(struct launcher *launcher);
void launcher_free(struct launcher *launcher);

/* Commands that wait for their turn or are being carried out, and those that wait until the engine
 * is open; any thread. */
size_t launcher_count(struct launcher *launcher);
size_t launcher_held_count(const struct launcher *launcher, uint8_t engine);

#endif
