/* queue_scenes.h — the parts of queue-bench: each makes the clusters that it needs, and prints what
 * events cost there.
 */
#ifndef BENCH_QUEUE_SCENES_H
#define BENCH_QUEUE_SCENES_H
struct bench;

/* queue_waits.c: many jobs wait, by what makes them different. */
void waits_run(struct bench *bench);
/* Small jobs preempt others: one scene of these, and two in which very many run. */
void bench_preemptors(struct bench *bench);

/* queue_lives.c: large jobs, from submission to end. */
void lives_run(struct bench *bench);
/* Gangs of tasks of which no two kinds are equal. */
void unequal_run(struct bench *bench);

/* queue_cells.c: nodes appear, and one changes; the policy and the order do. */
void cells_run(struct bench *bench);
/* What readers get is copied as a whole and in pieces. */
void snapshots_run(struct bench *bench);

/* queue_starves.c: room is held back for a job. */
void starves_run(struct bench *bench);
/* A large gang starts behind such a job. */
void behind_run(struct bench *bench);

/* queue_reads.c: a barrier of a large job, and which jobs are on all nodes. */
void reads_run(struct bench *bench);

/* queue_interrupted.c: a node fails, or a large gang is stopped, while it takes its cells or gives
 * them back. */
void interrupted_run(struct bench *bench);

/* queue_overtaken.c: a large gang takes places for which others preempt. */
void overtaken_run(struct bench *bench);

/* queue_types.c: a large group is on several leaf types; the quotas shrink. */
void types_run(struct bench *bench);

#endif
