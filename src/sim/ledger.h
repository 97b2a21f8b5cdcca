/* ledger.h — who has which GPU, port, CPU and MiB, written down from the records and commands
 * alone.
 *
 * An oracle for simulated worlds: it never asks the core's tables, so that it can be wrong only in
 * other ways. Every function returns ERR_INTERNAL, with a text, for the first thing that is wrong.
 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H
#include <stdbool.h>
#include <stdint.h>

struct core;
struct err;
struct ledger;
struct output;
struct plan;

struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger);

/* The plan of a job that was just accepted; copied. */
void ledger_plan(struct ledger *ledger, uint32_t job, const struct plan *plan);

/* Enter what one step of the core gave at `now_ms`. After a restart the core may repeat commands.
 */
int ledger_enter(struct ledger *ledger, const struct output *output, int64_t now_ms,
                 bool is_restart, struct err *err);

/* Nothing is given twice or beyond what a node has, and the core's own counts are ours. */
int ledger_compare(const struct ledger *ledger, const struct core *core, struct err *err);

/* At the end: no attempt is live, each that ended was given up once. */
int ledger_close(const struct ledger *ledger, struct err *err);

#endif
