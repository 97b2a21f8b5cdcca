/* early.h — what the early platform (YARN era, release 0.1 … 0.14, QIZHI 1.0) called things: states
 * and exit codes of its launcher, for clients and clusters of that time.
 *
 * Source: tables of the launcher and its REST server; docs/rfc/0004 lists where we differ. No
 * program contains it: the driver of the recorded behaviour compares it with the original.
 */
#ifndef ORIGINALS_EARLY_H
#define ORIGINALS_EARLY_H
#include "model/completion.h"
#include "model/states.h"
#include <stddef.h>

enum early_era {
    EARLY_A, /* to 0.9, QIZHI 1.0 */
    EARLY_B, /* 0.10 … 0.12 */
    EARLY_C, /* 0.13, 0.14 */
};

/* The user-visible state of a launcher's framework or task state; `code` NULL: none yet. */
enum public_state early_job_state(enum early_era era, const char *framework_state,
                                  const int32_t *code);
enum public_state early_task_state(const char *task_state, const int32_t *code);

/* The application exit code that an era's clients knew for this end of a job. */
int32_t early_exit_code(enum early_era era, const struct completion *completion);

enum early_exit_type {
    EARLY_SUCCEEDED,
    EARLY_TRANSIENT_NORMAL,
    EARLY_TRANSIENT_CONFLICT,
    EARLY_NON_TRANSIENT,
    EARLY_UNKNOWN,
};
const char *early_exit_type_name(enum early_exit_type type); /* "TRANSIENT_NORMAL", … */
int early_exit_type_of(const char *name);                    /* -1: none of them */
/* EXIT_* of completion.h. */
uint8_t early_exit_attributes(enum early_exit_type type);

/* Table of the exit codes of users' containers. */
struct early_row {
    int32_t code;
    bool has_code, has_type; /* in a table as written */
    enum early_exit_type type;
};
extern const struct early_row early_default_rows[];
extern const size_t early_default_count;

/* Rows that can be used, by rising code, into `out` (room for `count`): those without a code, with
 * one outside 1…255 or of type SUCCEEDED are dropped, a missing type is UNKNOWN, of several with
 * one code the last counts. Returns how many. */
size_t early_rows_normalise(const struct early_row *rows, size_t count, struct early_row *out);

struct early_exit {
    int32_t code;
    enum early_exit_type type;
};
/* What the cluster manager reported → the launcher's code. `rows` are normalised. Of several rows
 * that match, the smallest code wins; diagnostics (may be NULL) are searched without regard to
 * case. */
struct early_exit early_exit_judge(int32_t raw_code, const char *diagnostics,
                                   const struct early_row *rows, size_t count);

#endif
