/* large_job.h — a job of which more rows are stored than go at once, and how many are left of it.
 */
#ifndef TEST_STORE_LARGE_JOB_H
#define TEST_STORE_LARGE_JOB_H
#include "world.h"

enum {
    LARGE_TASKS = 500,
    LARGE_STORIES = 400,
    LARGE_ATTEMPTS = 350, /* of the job, but for its current one */
    PIECE_ROWS_MAX = 300  /* that one transaction deletes, beside the rows that make the job */
};

/* Stored by several commits, all of it ended: a try of each task, with an end of each third one.
 * The tries are numbered from job * 1000 on. */
void large_job_store(struct world *world, uint32_t job, const char *name);

/* Rows of the job's attempts, tasks and stories; ends of the tries that it was stored with. */
int64_t large_job_rows(struct world *world, uint32_t job);
/* What one number the reader's database gives. */
int64_t number_read(struct world *world, const char *text);

/* Deletes what is left by one piece after the other; how many these were. */
unsigned deletions_finish(struct world *world);

#endif
