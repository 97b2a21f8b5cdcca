/* use_watch.h — the thread that keeps what tasks and machines use over time.
 *
 * It learns from the committed records which attempts run, asks their engines every USE_STEP_MS
 * what they have used so far, and keeps a series of each (model/use_series.h) on disk, to which the
 * samples are added once a minute and when the attempt ends (use_files.h). Of machines likewise.
 * In memory are the samples since then alone, so that an attempt costs about 350 bytes while it
 * runs, and 8 KiB on disk; one that ended before its second sample leaves nothing. While nothing
 * can be written USE_SAMPLES_MAX samples are kept. Its times are the core's
 * (server/clock.h): a clock of the machine that is wrong at a start, or is set, moves none.
 */
#ifndef SERVER_USE_WATCH_H
#define SERVER_USE_WATCH_H
#include "core/output.h"
#include "model/use_series.h"
#include "server/use_files.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine_stats;
struct err;
struct server;
struct use_watch;

enum {
    USE_SAVE_MS = 60 * 1000,    /* between two writes of a series */
    USE_SWEEP_MS = 3600 * 1000, /* between two counts of the space in use */
    USE_SAMPLES_MAX = 360,      /* of one series, in memory: an hour */
    USE_LAST_MS = 60 * 1000,    /* so long the latest sample tells what is used now */
};

/* Borrows the server's engines and store. start: ERR_UNAVAILABLE when no thread can be made. */
struct use_watch *use_watch_new(struct server *server);
int use_watch_start(struct use_watch *watch, struct err *err);
/* Records that are durable: of tasks and of deleted jobs; others are passed over. Never blocks for
 * long. */
void use_watch_take(struct use_watch *watch, const struct record *records, size_t count);
/* How much of the disk the series may use; 0: none are kept, and nothing is sampled. */
void use_watch_configure(struct use_watch *watch, uint64_t limit_bytes);
void use_watch_stop(struct use_watch *watch); /* writes what is not on disk yet */
void use_watch_free(struct use_watch *watch);

/* What is known of an attempt or of a machine. ERR_NOT_FOUND: nothing. Any thread. */
int use_watch_points(struct use_watch *watch, const struct use_key *key,
                     enum use_resolution resolution, struct use_points *points, struct err *err);

/* The latest sample of an attempt or of a machine. False: there is none of the last USE_LAST_MS.
 * Any thread. */
bool use_watch_last(struct use_watch *watch, const struct use_key *key,
                    uint64_t values[USE_FIELDS]);

/* One round as the thread makes it, at a time of the core. For tests: without thread. */
void use_watch_round(struct use_watch *watch, int64_t now_ms);

/* Of two samples of the counters, `passed_us` apart, what was used meanwhile; `before` NULL: what
 * is known without. A counter that fell was begun anew: unknown. Pure. */
void use_values(const struct engine_stats *before, const struct engine_stats *now,
                int64_t passed_us, uint64_t values[USE_FIELDS]);

#endif
