/* worker.h — a thread that carries out tasks which take long, one after the other.
 *
 * Edge. The threads that serve requests give it what they must not wait for: a password's hash, a
 * question to another server. The request is suspended meanwhile, and `done` resumes it.
 *
 * Tasks that have owners take turns: each owner has one in each round, in the order in which they
 * came. However many somebody has given, another one's next task waits for one of theirs.
 *
 * A stranger can be as many owners as they like. So strangers have a queue of their own, with a
 * last place: the worker takes from it and from the other by turns while both have some.
 */
#ifndef SYS_WORKER_H
#define SYS_WORKER_H
#include <stdbool.h>
#include <stdint.h>

struct err;
struct worker;

/* The worker's from worker_give until `done` is called, once, by its thread. */
struct worker_task {
    void (*run)(struct worker_task *task, void *context); /* not called when the worker stops */
    void (*done)(struct worker_task *task, bool is_run);
    const char *owner; /* who asked, and lives until `done` is called; NULL: it takes no turns, and
                          waits in the order of arrival */
    bool is_stranger;  /* so is the owner */
    uint64_t round;    /* the worker's, as is … */
    struct worker_task *next; /* … this */
};

struct worker_config {
    const char *name;     /* of the thread, in errors: "the thread that checks passwords" */
    unsigned waiting_max; /* tasks that wait in a queue, without the one under way; and one of each
                           * owner who has none there … */
    unsigned strangers_max; /* … but of strangers no more than these; 0: there are none */
    const char *busy_text;  /* what is said to who comes when so many wait */
    int nice;               /* 0: the usual priority; more: less */
    void *context;          /* of `run` */
};

/* ERR_UNAVAILABLE, ERR_IO …: no thread can be made. The strings must outlive the worker. */
int worker_start(const struct worker_config *config, struct worker **worker, struct err *err);
/* Waits for the task under way; what waits is not run; later tasks are refused. */
void worker_stop(struct worker *worker);
/* Stops it first. NULL is fine. */
void worker_free(struct worker *worker);

/* ERR_BUSY: too many wait; ERR_UNAVAILABLE: stopped. Then `done` is not called. */
int worker_give(struct worker *worker, struct worker_task *task, struct err *err);

#endif
