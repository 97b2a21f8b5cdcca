#include "sys/worker.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/log.h"
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct worker_queue {
    struct worker_task *first; /* by round; in one, as they came */
    uint64_t round;            /* of the task that was taken last */
    unsigned waiting;
};

struct worker {
    struct worker_config config;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows, but for is_running */
    pthread_cond_t moved;
    struct worker_queue known, strangers;
    bool was_stranger; /* whose task was taken last */
    bool is_stopping;
    bool is_running; /* there is a thread to be joined; the owner's */
};

/* With the lock. The one to take from; both may be empty. */
static struct worker_queue *queue_next(struct worker *worker)
{
    const bool has_both = worker->known.first && worker->strangers.first;
    const bool is_theirs = has_both ? !worker->was_stranger : worker->strangers.first != NULL;
    return is_theirs ? &worker->strangers : &worker->known;
}

/* The next task, or NULL when the thread shall end. */
static struct worker_task *task_take(struct worker *worker, bool *is_stopping)
{
    pthread_mutex_lock(&worker->lock);
    while (!worker->known.first && !worker->strangers.first && !worker->is_stopping)
        pthread_cond_wait(&worker->moved, &worker->lock);
    struct worker_queue *queue = queue_next(worker);
    struct worker_task *task = queue->first;
    if (task) {
        queue->first = task->next;
        queue->round = task->round;
        queue->waiting--;
        worker->was_stranger = task->is_stranger;
    }
    *is_stopping = worker->is_stopping;
    pthread_mutex_unlock(&worker->lock);
    return task;
}

static void *worker_run(void *context)
{
    struct worker *worker = context;
    struct worker_task *task;
    bool is_stopping;
    if (worker->config.nice && setpriority(PRIO_PROCESS, (id_t)gettid(), worker->config.nice) < 0)
        log_debug("server", "%s has the usual priority", worker->config.name);
    while ((task = task_take(worker, &is_stopping))) {
        if (!is_stopping)
            task->run(task, worker->config.context);
        task->done(task, !is_stopping);
    }
    return NULL;
}

int worker_start(const struct worker_config *config, struct worker **out, struct err *err)
{
    struct worker *worker = mem_zero(1, sizeof *worker);
    assert(config->waiting_max > 0);
    worker->config = *config;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->moved, NULL);
    int number = pthread_create(&worker->thread, NULL, worker_run, worker);
    worker->is_running = number == 0;
    if (number) {
        worker_free(worker);
        return err_errno(err, number, "start %s", config->name);
    }
    *out = worker;
    return 0;
}

void worker_stop(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->is_stopping = true;
    pthread_cond_signal(&worker->moved);
    pthread_mutex_unlock(&worker->lock);
    if (worker->is_running)
        pthread_join(worker->thread, NULL);
    worker->is_running = false;
}

void worker_free(struct worker *worker)
{
    if (!worker)
        return;
    worker_stop(worker);
    pthread_cond_destroy(&worker->moved);
    pthread_mutex_destroy(&worker->lock);
    mem_free(worker);
}

static bool is_same_owner(const struct worker_task *a, const struct worker_task *b)
{
    return a->owner && b->owner && strcmp(a->owner, b->owner) == 0;
}

/* The round after that of the owner's last task that waits. */
static uint64_t round_of(const struct worker_queue *queue, const struct worker_task *task,
                         bool *has_waiting)
{
    uint64_t round = queue->round;
    *has_waiting = !task->owner;
    for (const struct worker_task *at = queue->first; at; at = at->next)
        if (is_same_owner(at, task)) {
            round = at->round + 1;
            *has_waiting = true;
        }
    return round;
}

static void task_place(struct worker_queue *queue, struct worker_task *task)
{
    struct worker_task **at = &queue->first;
    while (*at && (*at)->round <= task->round)
        at = &(*at)->next;
    task->next = *at;
    *at = task;
    queue->waiting++;
}

int worker_give(struct worker *worker, struct worker_task *task, struct err *err)
{
    const struct worker_config *config = &worker->config;
    int code = 0;
    bool has_waiting;
    assert(!task->is_stranger || config->strangers_max > 0);
    pthread_mutex_lock(&worker->lock);
    struct worker_queue *queue = task->is_stranger ? &worker->strangers : &worker->known;
    task->round = round_of(queue, task, &has_waiting);
    const bool is_full = (has_waiting && queue->waiting >= config->waiting_max) ||
                         (task->is_stranger && queue->waiting >= config->strangers_max);
    if (worker->is_stopping)
        code = err_fail(err, ERR_UNAVAILABLE, "", "the server is ending");
    else if (is_full)
        code = err_fail(err, ERR_BUSY, "", "%s", config->busy_text);
    if (!code) {
        task_place(queue, task);
        pthread_cond_signal(&worker->moved);
    }
    pthread_mutex_unlock(&worker->lock);
    return code;
}
