#include "api/oidc_thread.h"
#include "base/err.h"
#include "base/memory.h"
#include <pthread.h>
#include <stdatomic.h>

struct oidc_thread {
    pthread_t thread;
    struct oidc *oidc; /* the thread's */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct oidc_task *first, **last;
    unsigned waiting;
    bool is_running;
    atomic_bool is_stopping; /* read without the lock by requests to the provider */
};

/* The next task, or NULL when the thread shall end. */
static struct oidc_task *task_take(struct oidc_thread *thread)
{
    pthread_mutex_lock(&thread->lock);
    while (!thread->first && !atomic_load(&thread->is_stopping))
        pthread_cond_wait(&thread->moved, &thread->lock);
    struct oidc_task *task = thread->first;
    if (task) {
        thread->first = task->next;
        if (!thread->first)
            thread->last = &thread->first;
        thread->waiting--;
    }
    pthread_mutex_unlock(&thread->lock);
    return task;
}

static void *thread_run(void *context)
{
    struct oidc_thread *thread = context;
    struct oidc_task *task;
    while ((task = task_take(thread))) {
        bool is_run = !atomic_load(&thread->is_stopping);
        if (is_run)
            task->run(task, thread->oidc);
        task->done(task, is_run);
    }
    return NULL;
}

int oidc_thread_start(const struct oidc_config *config, struct oidc_thread **out, struct err *err)
{
    struct oidc_thread *thread = mem_zero(1, sizeof *thread);
    struct oidc_config own = *config;
    own.is_ending = &thread->is_stopping;
    pthread_mutex_init(&thread->lock, NULL);
    pthread_cond_init(&thread->moved, NULL);
    thread->last = &thread->first;
    int failed = oidc_new(&own, &thread->oidc, err);
    if (!failed) {
        int number = pthread_create(&thread->thread, NULL, thread_run, thread);
        if (number)
            failed = err_errno(err, number, "start the thread of the sign-on");
    }
    if (failed) {
        oidc_thread_free(thread);
        return failed;
    }
    thread->is_running = true;
    *out = thread;
    return 0;
}

void oidc_thread_stop(struct oidc_thread *thread)
{
    pthread_mutex_lock(&thread->lock);
    atomic_store(&thread->is_stopping, true);
    pthread_cond_signal(&thread->moved);
    pthread_mutex_unlock(&thread->lock);
    if (thread->is_running)
        pthread_join(thread->thread, NULL);
    thread->is_running = false;
}

void oidc_thread_free(struct oidc_thread *thread)
{
    if (!thread)
        return;
    oidc_thread_stop(thread);
    oidc_free(thread->oidc);
    pthread_cond_destroy(&thread->moved);
    pthread_mutex_destroy(&thread->lock);
    mem_free(thread);
}

int oidc_thread_give(struct oidc_thread *thread, struct oidc_task *task, struct err *err)
{
    int failed = 0;
    task->next = NULL;
    pthread_mutex_lock(&thread->lock);
    if (atomic_load(&thread->is_stopping))
        failed = err_fail(err, ERR_UNAVAILABLE, "", "the server is ending");
    else if (thread->waiting >= OIDC_WAITING_MAX)
        failed = err_fail(err, ERR_BUSY, "", "too many logins at this moment: try again");
    if (!failed) {
        *thread->last = task;
        thread->last = &task->next;
        thread->waiting++;
        pthread_cond_signal(&thread->moved);
    }
    pthread_mutex_unlock(&thread->lock);
    return failed;
}
