/* peers.h — which tasks of a job may be told each other's addresses, where an engine gives each
 * task one of its own that nobody knows before it runs.
 *
 * Pure. The table is in docs/rfc/0017-kubernetes-engine.md, "Whose network a pod is in". Rows are
 * those of the job's current attempt; that one of them is of an attempt before shows as a task that
 * is not known.
 */
#ifndef CORE_PEERS_H
#define CORE_PEERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task_record;

/* It runs: it can be told. */
bool peer_runs(const struct task_record *task, uint32_t job_attempt);
/* Its address is its own: it runs, or has run to its end. */
bool peer_is_known(const struct task_record *task, uint32_t job_attempt);
/* Has this record changed what others may be told? */
bool peer_is_news(const struct task_record *task);

/* May those that run be told what is known? A gang waits for each of its tasks, but those that have
 * ended for good without having run. */
bool peers_may_be_told(const struct task_record *tasks, size_t count, uint32_t job_attempt,
                       bool is_gang);

#endif
