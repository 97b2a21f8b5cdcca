/* job_index.h — all jobs in memory, as lists show them: filters, orders, names.
 *
 * Private to store; no SQL. About 200 bytes a job, history included. Searching 100,000 jobs for a
 * substring in any order within 10 ms is what no index of the database gives; a scan of this does.
 * A read-write lock stands around it: many readers, one writer (the committing thread).
 */
#ifndef STORE_JOB_INDEX_H
#define STORE_JOB_INDEX_H
#include "store/read.h"

struct job_index;

/* `seed`: of the hash tables, because users choose names. */
struct job_index *job_index_new(uint64_t seed);
void job_index_free(struct job_index *jobs);

/* Everything that `from` holds, which gets what was here: for an index that was loaded anew. Others
 * may look at `jobs` meanwhile. */
void job_index_take(struct job_index *jobs, struct job_index *from);

/* The writer: between begin and end, no reader looks. */
void job_index_write_begin(struct job_index *jobs);
void job_index_write_end(struct job_index *jobs);
/* Insert or replace; ids of new jobs only grow. `has_priority` counts for new ones. */
void job_index_put(struct job_index *jobs, const struct job_record *job, bool has_priority);
/* A task of it has changed. */
void job_index_touch(struct job_index *jobs, struct job_id job);
void job_index_remove(struct job_index *jobs, struct job_id job);
void job_index_tag(struct job_index *jobs, struct job_id job, const char *name);
void job_index_untag(struct job_index *jobs, struct job_id job, const char *name);

/* What the user has. Readers, any thread. */
void job_index_use(struct job_index *jobs, struct text user, struct store_use *use);

/* The writer, without lock. */
bool job_index_has(const struct job_index *jobs, struct job_id job);
/* "user~name"; "" when it is not there. Until the next write. */
const char *job_index_name(const struct job_index *jobs, struct job_id job);

/* Readers, any thread. */
void job_index_list(struct job_index *jobs, const struct job_filter *filter, struct arena *arena,
                    struct job_page *page);
bool job_index_find(struct job_index *jobs, struct text user, struct text name, struct job_id *job);
/* Grows whenever the job or a task of it has been stored, also when the index is loaded anew; 0: no
 * such job. What is read after this was asked for is at least as new. */
uint64_t job_index_version(struct job_index *jobs, struct job_id job);
/* Has the user a job, ended ones among them? */
bool job_index_has_user(struct job_index *jobs, struct text user);
bool job_index_summary(struct job_index *jobs, struct job_id job, struct arena *arena,
                       struct store_job *row);
void job_index_counts(struct job_index *jobs, uint64_t counts[PUBLIC_STATE_COUNT]);
/* Final jobs completed before the time, oldest id first. Returns how many were written. */
size_t job_index_final(struct job_index *jobs, int64_t completed_before_ms, struct job_id *ids,
                       size_t room);
/* Final jobs, `room` of them or all, of those who lose some (model/history_share.h): the oldest ids
 * of each. */
size_t job_index_surplus(struct job_index *jobs, const struct store_shares *shares,
                         struct job_id *ids, size_t room);

#endif
