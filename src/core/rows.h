/* rows.h — what a store would hold of the core's records, in memory.
 *
 * Pure. Keeps copies of the latest rows of live jobs, their tasks and the nodes, and restores a
 * core from them as the server does after a crash: for replays (replay.h) and simulated worlds.
 */
#ifndef CORE_ROWS_H
#define CORE_ROWS_H
#include "core/core.h"
#include "core/output.h"
#include <stddef.h>
#include <stdint.h>

struct rows;

struct rows *rows_new(void);
void rows_free(struct rows *rows);

/* Keep copies of the records, as a commit of this output would. */
void rows_apply(struct rows *rows, const struct output *output);
/* The plan of a submission, before the step takes it: for the job that it will create. */
void rows_plan(struct rows *rows, uint32_t job, const struct plan *plan);

/* Numbers up to these are used, whether or not they appear: an epoch has begun. Numbers lower than
 * those that are used already change nothing. */
void rows_skip(struct rows *rows, struct job_id last_job, struct attempt_id last_attempt);

/* Restore everything into a fresh core; codes of core_restore_*. */
int rows_restore(const struct rows *rows, struct core *core, int64_t now_ms, struct output *output,
                 struct err *err);

struct rows_job {
    uint32_t id; /* 0: no such job */
    enum life_state state;
    bool is_stop_requested, is_deleted, has_held;
    int32_t code;
    uint32_t attempt, retries_user, retries_platform;
    char *reason, *extra;
    uint64_t reason_topic;
    size_t extra_length;
    char *plan; /* encoded */
    size_t plan_length;
};
/* All jobs ever seen, by id; `nth` is below the count. */
size_t rows_job_count(const struct rows *rows);
const struct rows_job *rows_job(const struct rows *rows, size_t nth);
/* Number of rows of all attempts of tasks ever seen: nothing of the history is lost. */
size_t rows_attempt_count(const struct rows *rows);
/* Attempts whose last row is of a state that is not final, of jobs that are. For checks. */
size_t rows_open_attempts(const struct rows *rows);

#endif
