/* rounds.h — a world whose edges fail (faults.h), and what its tests ask of it: several requests
 * that are one round of the core thread, jobs in a state, and what an engine tells.
 */
#ifndef TEST_ROUNDS_H
#define TEST_ROUNDS_H
#include "model/ids.h"
#include "store/read.h"
#include "world.h"
#include <stdbool.h>

struct exit_report;

/* Of each test: a world with one machine, of whose troubles nothing is logged. teardown_faults. */
int setup_quiet(void **state);
#define ROUNDS(test) cmocka_unit_test_setup_teardown(test, setup_quiet, teardown_faults)

/* Requests whose answers are waited for later. */
void ask_act(struct world *world, struct wait *wait, enum service_action action, struct job_id job);
void ask_submit(struct world *world, struct wait *wait, const char *name);
void ask_change(struct world *world, struct wait *wait);

/* From here on until round_end all that is asked is one round of the core thread. */
void round_begin(struct world *world, struct wait *first);
void round_end(struct wait *first);

/* Everything that was asked of the core thread and of the launcher before is done. */
void settle(struct world *world);

bool is_writable(struct world *world); /* the store, as the server says */

struct job_id stopped_job(struct world *world, const char *name);
struct job_id running_job(struct world *world, const char *name); /* with all of its tasks */

/* The containers of a job of which all tasks run end now. */
void containers_finish(struct world *world, struct job_id job);
void containers_await_none(struct world *world);

/* The engine tells of an end. */
void tell_end(struct world *world, struct attempt_id attempt, const struct exit_report *exit);

/* Wait until an alert of this name stands, or none does: a round is shared by all who ask within a
 * second of it. */
void alert_await(struct world *world, const char *name, bool stands);

/* Those that wait for a webhook that is away. */
struct store_notices messages(struct world *world);

#endif
