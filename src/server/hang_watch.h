/* hang_watch.h — the thread that notices running tasks without progress.
 *
 * It learns from the committed records which tasks run, samples their use of the processor and the
 * length of their logs, and lets job/hang.h judge. A task without progress whose peers have some is
 * an EVENT_TASK_IDLE: the core writes it into the job's story, and ends the task when the job asks
 * for that. A job whose tasks all are without progress gets the line alone. Time between two
 * samples: a quarter of the shortest time asked for, within HANG_SAMPLE_MIN_MS …
 * HANG_SAMPLE_MAX_MS.
 */
#ifndef SERVER_HANG_WATCH_H
#define SERVER_HANG_WATCH_H
#include "core/output.h"
#include <stdint.h>

struct arena;
struct err;
struct hang_watch;
struct server;

enum { HANG_SAMPLE_MIN_MS = 250, HANG_SAMPLE_MAX_MS = 30000 };

/* Borrows the server's engine and mailbox. start: ERR_UNAVAILABLE when no thread can be made. */
struct hang_watch *hang_watch_new(struct server *server);
int hang_watch_start(struct hang_watch *watch, struct err *err);
/* Records that are durable; any other than a task's is passed over. Never blocks for long. */
void hang_watch_take(struct hang_watch *watch, const struct record *records, size_t count);
/* For jobs that name no time of their own; 0: they are not watched. */
void hang_watch_configure(struct hang_watch *watch, uint64_t after_s);
void hang_watch_stop(struct hang_watch *watch); /* before the core thread ends */
void hang_watch_free(struct hang_watch *watch);

/* Tasks that stand still now, for the metrics. */
uint64_t hang_watch_idle_count(struct hang_watch *watch);

/* Jobs of which a running task stands still, or may do so since before the watch began, as of the
 * last sample; in the arena. Any thread. */
struct hang_job {
    struct job_id id;
    uint32_t idle, tasks; /* that stand still; that run */
    int64_t since_ms;     /* monotonic: the first of them; 0: none does */
    bool is_undecided;    /* a task has not been seen moving, nor for long enough not to; or whether
                           * the job is watched could not be read yet */
};
const struct hang_job *hang_watch_jobs(struct hang_watch *watch, struct arena *arena,
                                       size_t *count);

#endif
