/* picture.h — all jobs in memory, as lists show them: filters, orders, names.
 *
 * Private to store; no SQL. About 200 bytes a job, history included. Searching 100,000 jobs for a
 * substring in any order within 10 ms is what no index of the database gives; a scan of this does.
 * A read-write lock stands around it: many readers, one writer (the committing thread).
 */
#ifndef STORE_PICTURE_H
#define STORE_PICTURE_H
#include "store/read.h"

struct picture;

/* `seed`: of the hash tables, because users choose names. */
struct picture *picture_new(uint64_t seed);
void picture_free(struct picture *picture);

/* The writer: between begin and end, no reader looks. */
void picture_write_begin(struct picture *picture);
void picture_write_end(struct picture *picture);
/* Insert or replace; ids of new jobs only grow. `has_priority` counts for new ones. */
void picture_job(struct picture *picture, const struct job_record *job, bool has_priority);
void picture_remove(struct picture *picture, struct job_id job);
void picture_tag(struct picture *picture, struct job_id job, const char *name);
void picture_untag(struct picture *picture, struct job_id job, const char *name);

/* The writer, without lock. */
bool picture_has(const struct picture *picture, struct job_id job);

/* Readers, any thread. */
void picture_list(struct picture *picture, const struct job_filter *filter, struct arena *arena,
                  struct job_page *page);
bool picture_find(struct picture *picture, struct text user, struct text name, struct job_id *job);
bool picture_summary(struct picture *picture, struct job_id job, struct arena *arena,
                     struct store_job *row);
void picture_counts(struct picture *picture, uint64_t counts[PUBLIC_STATE_COUNT]);
/* Final jobs completed before the time, oldest id first. Returns how many were written. */
size_t picture_final(struct picture *picture, int64_t completed_before_ms, struct job_id *jobs,
                     size_t room);

#endif
