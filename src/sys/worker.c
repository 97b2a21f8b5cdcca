#include "sys/worker.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/log.h"
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct worker {
    struct worker_config config;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows, but for is_running */
    pthread_cond_t moved;
    struct worker_task *first; /* by round; in one, as they came */
    uint64_t round;            /* of the task that was taken last */
    unsigned waiting;
    bool is_stopping;
    bool is_running; /* there is a thread to be joined; the owner's */
};

/* The next task, or NULL when the thread shall end. */
static struct worker_task *task_take(struct worker *worker, bool *is_stopping)
{
    pthread_mutex_lock(&worker->lock);
    while (!worker->first && !worker->is_stopping)
        pthread_cond_wait(&worker->moved, &worker->lock);
    struct worker_task *task = worker->first;
    if (task) {
        worker->first = task->next;
        worker->round = task->round;
        worker->waiting--;
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

/* With the lock. The round after that of the owner's last task that waits. */
static uint64_t round_of(const struct worker *worker, const struct worker_task *task,
                         bool *has_waiting)
{
    uint64_t round = worker->round;
    *has_waiting = !task->owner;
    for (const struct worker_task *at = worker->first; at; at = at->next)
        if (is_same_owner(at, task)) {
            round = at->round + 1;
            *has_waiting = true;
        }
    return round;
}

/* With the lock. */
static void task_place(struct worker *worker, struct worker_task *task)
{
    struct worker_task **at = &worker->first;
    while (*at && (*at)->round <= task->round)
        at = &(*at)->next;
    task->next = *at;
    *at = task;
    worker->waiting++;
}

int worker_give(struct worker *worker, struct worker_task *task, struct err *err)
{
    int code = 0;
    bool has_waiting;
    pthread_mutex_lock(&worker->lock);
    task->round = round_of(worker, task, &has_waiting);
    if (worker->is_stopping)
        code = err_fail(err, ERR_UNAVAILABLE, "", "the server is ending");
    else if (has_waiting && worker->waiting >= worker->config.waiting_max)
        code = err_fail(err, ERR_BUSY, "", "%s", worker->config.busy_text);
    if (!code) {
        task_place(worker, task);
        pthread_cond_signal(&worker->moved);
    }
    pthread_mutex_unlock(&worker->lock);
    return code;
}
